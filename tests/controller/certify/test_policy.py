"""Policies as c2sp.org/tlog-policy has them: who is believed, and how many witnesses are enough."""

from contextlib import suppress
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import KeyFault, NoteFault
from controller.certify.note import KeyType, Signer, format_note
from controller.certify.policy import LINES_BOUND, POLICY_BOUND, Policy

ORIGIN = "casino.example/table/t07/1"
TABLE, SUCCESSOR = Signer(ORIGIN, bytes(32)), Signer(ORIGIN, bytes([1] * 32))
OTHER = Signer("casino.example/table/t08/1", bytes([2] * 32))
WITNESSES = {
    name: Signer(f"{name}.example", bytes([n + 10] * 32), KeyType.COSIGNATURE) for n, name in enumerate("ABCDE")
}
LINES = [f"log {TABLE.verifier.vkey}", *(f"witness {name} {one.verifier.vkey}" for name, one in WITNESSES.items())]


def policy(*lines: str) -> Policy:
    return Policy.parse("\n".join([*LINES, *lines, ""]))


def subsets() -> list[tuple[str, ...]]:
    return [chosen for size in range(6) for chosen in combinations("ABCDE", size)]


def test_policy_with_two_levels_of_groups_is_satisfied_by_exactly_the_subsets_that_the_format_says() -> None:
    two_levels = policy("group X 2 A B C", "group Y any D E", "group all-of-it all X Y", "quorum all-of-it")
    for chosen in subsets():
        expected = len(set("ABC") & set(chosen)) >= 2 and bool(set("DE") & set(chosen))
        assert two_levels.satisfied_by(chosen) is expected, chosen


def test_quorum_of_one_witness_needs_that_one_and_quorum_none_needs_nobody() -> None:
    for chosen in subsets():
        assert policy("quorum C").satisfied_by(chosen) is ("C" in chosen)
        assert policy("quorum none").satisfied_by(chosen)
    assert not policy("quorum C").satisfied_by(["c", "stranger"])


def test_two_keys_of_one_log_are_the_keys_of_that_log() -> None:
    read = policy(f"log {SUCCESSOR.verifier.vkey} https://t07.example", f"log {OTHER.verifier.vkey}", "quorum none")
    assert [keys.origin for keys in read.logs] == [ORIGIN, OTHER.name]
    assert [verifier.vkey for verifier in read.keys(ORIGIN).verifiers] == [TABLE.verifier.vkey, SUCCESSOR.verifier.vkey]
    with pytest.raises(KeyFault, match="E-POLICY-LOG"):
        read.keys("casino.example/table/t09/1")


def test_blanks_tabs_comments_and_empty_lines_mean_nothing() -> None:
    plain = policy("group g all A B", "quorum g")
    spaced = [line.replace(" ", " \t") for line in [*LINES, "group g all A B"]]
    dressed = "\n\t \n# é\n  # x\n" + "\n".join(f"\t {line} " for line in spaced)
    assert Policy.parse(f"{dressed}\nquorum\tg").text == plain.text


def test_text_of_a_policy_reads_back_as_the_same_policy() -> None:
    read = policy("group X 2 A B C", "group Y any X D", "quorum Y")
    again = Policy.parse(read.text.encode())
    assert (again.text, again.groups, again.quorum) == (read.text, read.groups, "Y")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "no quorum line"),
        (["quorum none", "quorum A"], "second quorum"),
        (["quorum F"], "'F' is neither"),
        (["quorum g", "group g any A"], "'g' is neither"),
        (["group g any g", "quorum g"], "'g' is neither"),
        (["group g any none", "quorum g"], "'none' is neither"),
        (["group none any A", "quorum none"], "'none' is defined already"),
        (["group A any B", "quorum A"], "'A' is defined already"),
        (["group g any A A", "quorum g"], "a member already"),
        (["group g any A", "group h any A", "quorum h"], "a member already"),
        (["group g any", "quorum none"], "1 to 0"),
        (["group g 0 A", "quorum g"], "'0'"),
        (["group g 2 A", "quorum g"], "'2'"),
        (["group g 01 A", "quorum g"], "'01'"),
        (["group g most A", "quorum g"], "'most'"),
        (["quorum"], "no line of"),
        (["quorum none none"], "no line of"),
        (["witness F", "quorum none"], "no line of"),
        (["Quorum none"], "no line of"),
        (["quorum none # not a comment"], "no line of"),
        ([LINES[0], "quorum none"], "second time"),
        ([f"witness F {WITNESSES['A'].verifier.vkey}", "quorum none"], "second time"),
        ([f"log {WITNESSES['A'].verifier.vkey}", "quorum none"], "of type 1"),
        ([f"witness F {TABLE.verifier.vkey}", "quorum none"], "of type 4"),
        (["log nonsense", "quorum none"], "E-KEY-MALFORMED"),
        (["quorum none\r"], "control character"),
        (["quorum none\x0b"], "control character"),
    ],
)
def test_malformed_policy_is_refused_with_what_is_wrong(lines: list[str], says: str) -> None:
    with pytest.raises(KeyFault, match="E-POLICY-MALFORMED") as refused:
        policy(*lines)
    assert says in str(refused.value)


def test_policy_that_is_too_long_or_too_rich_is_refused() -> None:
    rich = [f"group g{n} any {f'g{n - 1}' if n else 'A'}" for n in range(LINES_BOUND)]
    for bad in ("#" * POLICY_BOUND + "\nquorum none", "\n".join([*LINES, *rich, "quorum none"])):
        with pytest.raises(KeyFault, match="E-POLICY-MALFORMED"):
            Policy.parse(bad)


def test_octets_that_are_no_utf_8_mean_nothing_and_are_kept() -> None:
    name, other = b"caf\xe9", b"caf\xe8"
    lines = [f"witness NAME {WITNESSES['A'].verifier.vkey}".encode().replace(b"NAME", name), b"# \xff"]
    read = Policy.parse(b"\n".join([*lines, b"quorum " + name]))
    assert Policy.parse(read.text).quorum == read.quorum
    with pytest.raises(KeyFault, match="E-POLICY-MALFORMED"):
        Policy.parse(b"\n".join([*lines, b"quorum " + other]))


@given(st.binary(max_size=200))
def test_garbage_is_refused_by_a_code_and_never_by_an_accident(garbage: bytes) -> None:
    with suppress(KeyFault):
        Policy.parse(garbage)


def test_checkpoint_counts_with_the_witnesses_whose_lines_are_right() -> None:
    read = policy("quorum none")
    text = Checkpoint(ORIGIN, 7, bytes(32)).text
    own, by_a, by_b = TABLE.sign(text), WITNESSES["A"].sign(text, 1_000), WITNESSES["B"].sign(text, 1_001)
    stranger = Signer("stranger.example", bytes([99] * 32), KeyType.COSIGNATURE).sign(text, 1_002)
    witnessed = read.witnessed(format_note(text, [own, by_a, stranger, by_b]))
    assert (witnessed.checkpoint.size, witnessed.by) == (7, {"A", "B"})
    with pytest.raises(NoteFault, match="E-NOTE-UNSIGNED"):
        read.witnessed(format_note(text, [by_a]))
    with pytest.raises(NoteFault, match="E-NOTE-SIGNATURE"):
        read.witnessed(format_note(text, [own, WITNESSES["A"].sign(text + "x\n", 1_000)]))
    with pytest.raises(KeyFault, match="E-POLICY-LOG"):
        read.witnessed(format_note(Checkpoint(OTHER.name, 7, bytes(32)).text, [own]))
