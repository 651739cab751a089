"""Every house rule is shown a sample that breaks it and one that keeps it."""

import ast
from collections.abc import Callable
from textwrap import dedent

import pytest

from tests.house import house_rules as rule

Rule = Callable[[ast.Module], list[str]]


def tree(source: str) -> ast.Module:
    return ast.parse(dedent(source))


BROKEN: list[tuple[Rule, str, list[str]]] = [
    (rule.clock_readings, "import time\nnow = time.time()", ["2: time.time"]),
    (rule.clock_readings, "import time as t\nread = t.monotonic_ns", ["2: time.monotonic_ns"]),
    (rule.clock_readings, "from time import perf_counter as tick\ntick()", ["2: time.perf_counter"]),
    (rule.clock_readings, "from datetime import datetime, UTC\ndatetime.now(UTC)", ["2: datetime.datetime.now"]),
    (rule.clock_readings, "import datetime\ndatetime.date.today()", ["2: datetime.date.today"]),
    (rule.clock_readings, "loop.time()", ["1: loop.time()"]),
    (
        rule.clock_readings,
        "import asyncio\nasyncio.get_running_loop().time()",
        ["2: asyncio.get_running_loop().time()"],
    ),
    (rule.chance, "import random\nrandom.choice(pockets)", ["2: random", "2: random.choice"]),
    (rule.chance, "from secrets import randbelow\nrandbelow(37)", ["2: secrets.randbelow"]),
    (rule.chance, "import os\nos.urandom(8)", ["2: os.urandom"]),
    (rule.inexact_numbers, "rake = pot * 0.04", ["1: 0.04"]),
    (rule.inexact_numbers, "half = stake / 2", ["1: stake / 2"]),
    (rule.inexact_numbers, "stake /= 2", ["1: stake /= 2"]),
    (rule.inexact_numbers, "float(stake), round(stake)", ["1: float(stake)", "1: round(stake)"]),
    (rule.sleeps, "import time\ntime.sleep(0.1)", ["2: time.sleep(0.1)"]),
    (rule.sleeps, "from asyncio import sleep as nap\nnap(pause)", ["2: nap(pause)"]),
    (rule.sleeps, "import asyncio\nasyncio.sleep(delay=1)", ["2: asyncio.sleep(delay=1)"]),
    (rule.prints, "print('ball')", ["1: print('ball')"]),
    (rule.broad_excepts, "try: ...\nexcept: ...", ["2: except"]),
    (rule.broad_excepts, "try: ...\nexcept Exception as why: ...", ["2: except Exception"]),
    (rule.broad_excepts, "try: ...\nexcept (OSError, BaseException): ...", ["2: except (OSError, BaseException)"]),
    (rule.broad_excepts, "from contextlib import suppress\nsuppress(Exception)", ["2: suppress(Exception)"]),
    (rule.nameless_tests, "def test_wheel(): ...", ["1: test_wheel"]),
    (rule.nameless_tests, "async def test_Wheel_silent_stops(): ...", ["1: test_Wheel_silent_stops"]),
    (rule.foreign_marks, "import pytest\n@pytest.mark.skip\ndef test_a_b_c(): ...", ["2: skip"]),
    (rule.foreign_marks, "import pytest\npytestmark = pytest.mark.xfail(strict=False)", ["2: xfail"]),
]

KEPT: list[tuple[Rule, str]] = [
    (rule.clock_readings, "import time\ntime.gmtime(at_s)\nclock.mono_us()"),
    (rule.chance, "chance.draw(37)"),
    (rule.inexact_numbers, "half, rest = divmod(stake, 2)\nthird = stake // 3"),
    (rule.sleeps, "import asyncio\nasyncio.sleep(0)"),
    (rule.prints, "console.print('ball')"),
    (rule.broad_excepts, "try: ...\nexcept OSError: ..."),
    (rule.nameless_tests, "def test_wheel_silent_stops_the_table(): ...\ndef wheel(): ..."),
    (rule.foreign_marks, "import pytest\n@pytest.mark.law('51')\ndef test_a_b_c(): ..."),
]


@pytest.mark.parametrize(("broken", "sample", "findings"), BROKEN)
def test_rule_shown_a_sample_that_breaks_it_names_line_and_cause(
    broken: Rule, sample: str, findings: list[str]
) -> None:
    assert sorted(set(broken(tree(sample)))) == findings


@pytest.mark.parametrize(("kept", "sample"), KEPT)
def test_rule_shown_a_sample_that_keeps_it_finds_nothing(kept: Rule, sample: str) -> None:
    assert kept(tree(sample)) == []


def test_codes_in_docstrings_do_not_count_as_used() -> None:
    sample = '"""About E-ONE."""\nfault = "E-TWO wheel"\nother = f"E-THREE-A {wheel}"\nlimit = 1\n"""E-FOUR."""'
    assert rule.codes(tree(sample)) == {"E-TWO", "E-THREE-A"}


def test_libraries_of_a_file_are_its_top_level_imports_at_any_depth() -> None:
    sample = "import gpiod.line as l\nfrom serial.tools import list_ports\ndef f():\n    import smbus2"
    assert rule.libraries(tree(sample)) == {"gpiod", "serial", "smbus2"}


def test_articles_of_a_file_are_read_from_its_marks() -> None:
    sample = "import pytest\n@pytest.mark.law('55-13')\n@pytest.mark.law('67-15')\ndef test_a(): ..."
    assert sorted(rule.articles(tree(sample))) == ["55-13", "67-15"]


@pytest.mark.parametrize("module", ["drivers.utils", "controller.journal_helpers", "games.common.money"])
def test_module_with_a_vague_name_is_found(module: str) -> None:
    assert rule.vague_names(module)


@pytest.mark.parametrize(
    "line", ["# TO" + "DO later", "FIX" + "ME", "it is not " + "yet implemented", "Lorem " + "ipsum"]
)
def test_unfinished_work_is_found_in_any_text(line: str) -> None:
    assert rule.lines_matching(rule.UNFINISHED, f"fine\n{line}\n") == [f"2: {line}"]


@pytest.mark.parametrize(
    "path", ["/" + "home/pi/table", "cd /" + "root/x", "see '/" + "tmp/journal'", "/" + "work/main"]
)
def test_path_of_one_machine_is_found_in_any_text(path: str) -> None:
    assert rule.lines_matching(rule.MACHINE_PATH, path)


@pytest.mark.parametrize(
    "path", ["$HOME/tmp/x", "ProtectHome=yes", "/var/lib/table-controller", "tests/work/a", "/tmp"]
)
def test_path_that_every_machine_has_is_let_through(path: str) -> None:
    assert rule.lines_matching(rule.MACHINE_PATH, path) == []


@pytest.mark.parametrize("line", ["https://py" + "pi.org/simple", "--index" + "-url x", "files.python" + "hosted.org"])
def test_host_of_a_package_index_is_found_in_any_text(line: str) -> None:
    assert rule.lines_matching(rule.INDEX_HOST, line)


@pytest.mark.parametrize(
    ("kind", "good"), [("fr.table.bet.placed.v1", True), ("fr.bet.v1", False), ("table.bet.v1", False)]
)
def test_kind_of_a_fact_has_country_domain_subject_and_version(kind: str, good: bool) -> None:
    assert bool(rule.FACT_KIND.fullmatch(kind)) is good
