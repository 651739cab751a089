"""Mutation testing, in small: a mistake that the tests find is killed, and one that they do not find is reported."""

import ast

import pytest

from proof.mutants import mutants, sample
from proof.mutation import LISTED, ROOT, TESTS, Listed, Tried, attempt, killed_after_all, listed

MODULE = '''
"""Sums."""

LARGEST = 7


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


def is_small(number: int) -> bool:
    if number < 10:
        return True
    return False


def count(to: int) -> int:
    at = 0
    while at < to:
        at += 1
    return at


def unknown() -> int:
    return 4
'''

TEST = """
import sums


def test_sums():
    assert sums.add(2, 3) == 5
    assert sums.is_small(3)
    assert not sums.is_small(30)
    assert sums.count(3) == 3
    assert sums.LARGEST == 7
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    folder = tmp_path_factory.mktemp("sums")
    module, test = folder / "sums.py", folder / "test_sums.py"
    module.write_text(MODULE, encoding="utf-8")
    test.write_text(TEST, encoding="utf-8")
    return attempt(module, "sums", [test], shares=1)


def test_mutant_that_a_test_notices_is_killed(tried: Tried) -> None:
    killed = {mutant.change for mutant in tried.mutants} - {mutant.change for mutant in tried.survivors}
    assert {"return left + right → return left - right", "return left + right → return None"} <= killed
    assert {"return True → return False", "return False → return True", "number < 10 → number >= 10"} <= killed


def test_mutant_that_works_when_the_module_is_loaded_is_killed(tried: Tried) -> None:
    constants = [mutant for mutant in tried.mutants if not mutant.in_body]
    assert [mutant.change for mutant in constants] == ["LARGEST = 7 → LARGEST = 8", "LARGEST = 7 → LARGEST = 6"]
    assert not {*constants} & {*tried.survivors}


def test_mutant_that_never_ends_is_killed(tried: Tried) -> None:
    assert "at += 1 → left out" in {mutant.change for mutant in tried.mutants}
    assert "at += 1 → left out" not in {mutant.change for mutant in tried.survivors}


def test_mutant_that_no_test_notices_or_reaches_is_reported_with_its_place(tried: Tried) -> None:
    found = {(mutant.first, mutant.function, mutant.change) for mutant in tried.survivors}
    assert found == {
        (13, "is_small", "number < 10 → number <= 10"),
        (13, "is_small", "number < 10 → number < 11"),
        (13, "is_small", "number < 10 → number < 9"),
        (19, "count", "at = 0 → at = 1"),
        (19, "count", "at = 0 → at = -1"),
        (26, "unknown", "return 4 → return 5"),
        (26, "unknown", "return 4 → return 3"),
    }


def test_reason_for_a_survivor_that_is_killed_is_told(tried: Tried) -> None:
    right = Listed("sums.py", "is_small", "number < 10 → number <= 10", "a weak test")
    stale = Listed("sums.py", "add", "return left + right → return None", "it is killed")
    gone = Listed("sums.py", "away", "1 → 2", "there is no such function")
    elsewhere = Listed("other.py", "add", "1 → 2", "this is about another module")
    assert killed_after_all(tried, [right, stale, gone, elsewhere]) == [stale, gone]


def test_mutants_of_what_is_not_tried_are_none() -> None:
    source = '''
"""Documentation."""
from typing import Protocol, TYPE_CHECKING

if TYPE_CHECKING:
    SIZE = 1

class Shape(Protocol):
    def size(self) -> int: return 1

class Point:
    """A point."""

    __slots__ = ("x", "y")
    x: "int"

def fail(log, what: "str"):
    log.warning("it", count=1)
    print("this is a sentence")
'''
    assert [mutant.change for mutant in mutants(source)] == ["print('this is a sentence') → left out"]


def test_mutants_of_a_raise_are_its_absence_and_its_code() -> None:
    source = 'def fail(at):\n    raise Fault("E-JOURNAL-AWAY", f"{at + 1} of them")\n'
    left_out, code = mutants(source)
    assert left_out.change.endswith("→ left out")
    assert code.change.endswith("Fault('', f'{at + 1} of them')")


def test_mutants_leave_the_module_as_it_was() -> None:
    before = ast.dump(ast.parse(MODULE))
    found = mutants(MODULE)
    codes = [mutant.code("sums.py") for mutant in found]
    assert len({*codes}) == len(found)
    assert ast.dump(ast.parse(MODULE)) == before
    assert compile(MODULE, "sums.py", "exec", dont_inherit=True) not in codes


def test_sample_of_many_mutants_is_spread_evenly_and_always_the_same() -> None:
    found = mutants(MODULE)
    assert sample(found, len(found)) == found
    assert sample(found, 4) == [found[number * len(found) // 4] for number in range(4)]


def test_modules_and_tests_of_the_proof_exist_and_reasons_are_about_them() -> None:
    assert [file for file in TESTS if not (ROOT / file).exists()] == []
    assert [test for tests in TESTS.values() for test in tests if not (ROOT / "tests/controller" / test).exists()] == []
    changes = {
        (file, mutant.function, mutant.change)
        for file in TESTS
        for mutant in mutants((ROOT / file).read_text(encoding="utf-8"))
    }
    reasons = listed(LISTED)
    assert [one for one in reasons if (one.file, one.function, one.change) not in changes] == []
    assert [one for one in reasons if not one.reason] == []
