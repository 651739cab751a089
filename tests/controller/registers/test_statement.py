"""The statement's text and the séance in a journal: what is read is whole and in order, or nothing is made of it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.faults import NoteFault
from controller.certify.leaf import LEAF_BOUND, Record, Stamp, build_leaf, canonical, leaf_hash
from controller.certify.note import Signer, sign_note
from controller.codec import encode_decision, to_plain
from controller.delivery.orders import write_order
from controller.registers import source
from controller.registers.faults import RegisterFault
from controller.registers.report import fingerprint
from controller.registers.seance import At, Seance
from controller.registers.source import at_once, find_certification, find_seance, state_from
from controller.registers.statement import make_statement, read_statement, state_seance
from controller.schemas import SIGNATURE_LINES_BOUND, Challenge
from games.money import Cents
from games.rules import Fact
from games.seance import SeanceClosed, SeanceOpened, TableStarted
from games.signals import Person, Role
from games.statement import CertifyStatement, SeanceCertified, Totals, TotalsCarried

KEPT = Path(__file__).parent
LEAVES = (KEPT / "seance.jsonl").read_bytes().splitlines()
ROOT = bytes(range(32))
TEXT = (KEPT / "statement.txt").read_text(encoding="utf-8")
DIRECTOR = Person(badge="D1", role=Role.DIRECTOR)


# ── The text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_text_of_a_statement_binds_origin_seance_root_and_report() -> None:
    head = read_statement(TEXT)
    assert (head.origin, head.seance) == ("casino.example.simulation/table/t07/1", "2026-11-30-1")
    assert (head.size, head.root) == (int(json.loads(LEAVES[-1])["id"]) + 1, ROOT)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("table-controller/seance/v1", "table-controller/seance/v2"),
        ("racine 5", "racine 6"),
        ("coups 1\n", "coups 01\n"),
        ("coups 1\n", "coups -1\n"),
        ("seance 2026-11-30-1", "seance "),
        ("etat sha256:", "etat md5:"),
        ("\nouverture", "\n\nouverture"),
        ("orphelins-perpetuel-cents 20000\n", "orphelins-perpetuel-cents 20000"),
    ],
)
def test_text_that_is_not_exactly_a_statement_is_refused(was: str, becomes: str) -> None:
    assert was in TEXT
    with pytest.raises(NoteFault, match="E-STATEMENT-MALFORMED"):
        read_statement(TEXT.replace(was, becomes, 1))


@pytest.mark.parametrize(
    ("root", "said"),
    [
        (bytes(32), "0000 0000 0000 0000"),
        (bytes(7) + b"\x2a" + bytes(24), "0000 0000 0000 0042"),
        (b"\xff" * 32, "6744 0737 0955 1615"),
    ],
)
def test_fingerprint_is_the_first_64_bits_of_the_root_in_its_last_sixteen_digits(root: bytes, said: str) -> None:
    assert fingerprint(root) == said


# ── The entries ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(at=st.integers(1, len(LEAVES) - 2))
def test_seance_with_an_entry_missing_changed_twice_or_elsewhere_makes_no_statement(at: int) -> None:
    changed = LEAVES[at].replace(b'"mono":"', b'"mono":"1', 1)
    for leaves in (
        LEAVES[:at] + LEAVES[at + 1 :],
        [*LEAVES[:at], changed, *LEAVES[at + 1 :]],
        [*LEAVES[:at], LEAVES[at], *LEAVES[at:]],
        LEAVES[at:],
        LEAVES[:at],
        [*LEAVES, LEAVES[-1]],
    ):
        with pytest.raises(RegisterFault, match="E-SEANCE-ENTRIES"):
            state_seance(leaves, ROOT)


def test_bytes_that_are_no_entry_make_no_statement() -> None:
    with pytest.raises(RegisterFault, match="E-SEANCE-ENTRIES"):
        state_seance([b"{}"], ROOT)


class Entries:
    """A journal in a list."""

    def __init__(self, *facts: tuple[Fact, str]) -> None:
        stamp = Stamp(source="casino.example/table/t07/1", boot="f" * 16, mono_ms=1, wall_ms=1, quality="ntp")
        self.all: list[bytes] = []
        self.read = 0
        previous = bytes(32)
        for index, (fact, seance) in enumerate(facts):
            record = Record(fact.KIND, canonical(to_plain(fact)), seance or None)
            self.all.append(build_leaf(index, previous, record, stamp))
            previous = leaf_hash(self.all[-1])

    @property
    def size(self) -> int:
        return len(self.all)

    def leaves(self, start: int, stop: int) -> list[bytes]:
        self.read += stop - start
        return self.all[start:stop]

    def root(self, size: int) -> bytes:
        return size.to_bytes(32, "big")


def played(name: str, between: int = 0) -> list[tuple[Fact, str]]:
    """The entries of a séance: opening, ``between`` others, totals, closing."""
    start = TableStarted(boot="f" * 16, unclean=False)
    return [
        (SeanceOpened(seance=name, by=DIRECTOR, rules_sha256="a" * 64), name),
        *[(start, name)] * between,
        (TotalsCarried(seance=name, totals=Totals(seances=1)), name),
        (closed(name), name),
    ]


def closed(name: str, cents: int = 0) -> SeanceClosed:
    return SeanceClosed(
        seance=name,
        by=DIRECTOR,
        rounds=0,
        credited_cents=cents,
        staked_cents=cents,
        returned_cents=cents,
        won_cents=cents,
        paid_out_cents=cents,
        orphaned_cents=cents,
    )


def certified(name: str) -> tuple[Fact, str]:
    return SeanceCertified(seance=name, note="…", persons=(DIRECTOR,)), ""


OUTSIDE = (TableStarted(boot="f" * 16, unclean=True), "")


def test_seance_is_found_by_its_name_or_as_the_last_one_wherever_steps_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = Entries(OUTSIDE, *played("2026-11-30-1", 4), OUTSIDE, *played("2026-11-30-2", 3), OUTSIDE, OUTSIDE)
    for step in (1, 2, 3, 7, 100):
        monkeypatch.setattr(source, "STEP_ENTRIES", step)
        assert at_once(find_seance(entries, "2026-11-30-1")) == range(1, 8)
        assert at_once(find_seance(entries, "2026-11-30-2")) == range(9, 15)
        assert at_once(find_seance(entries)) == range(9, 15)


def test_seance_that_is_open_or_nowhere_is_not_found() -> None:
    unfinished = Entries(OUTSIDE, *played("2026-11-30-1")[:-1])
    for name in ("", "2026-11-30-1", "2026-11-29-1"):
        with pytest.raises(RegisterFault, match="E-SEANCE-UNKNOWN"):
            at_once(find_seance(unfinished, name))


def test_certification_is_found_after_the_closing_and_none_of_another_seance() -> None:
    entries = Entries(*played("a-1"), OUTSIDE, *played("a-2"), certified("a-2"), OUTSIDE)
    found = at_once(find_certification(entries, "a-2", 6))
    assert found is not None and (found.index, found.fact.seance) == (7, "a-2")
    assert at_once(find_certification(entries, "a-1", 2)) is None


def test_statement_is_made_in_steps_of_a_bounded_size_so_that_the_table_plays_on() -> None:
    entries = Entries(*played("a-1", 1_000))
    steps, most, before = state_from(entries, "a-1"), 0, 0
    while True:
        try:
            next(steps)
        except StopIteration:
            break
        most, before = max(most, entries.read - before), entries.read
    assert most <= source.STEP_ENTRIES


# ── Bounds ────────────────────────────────────────────────────────────────────────────────────────────────────────────

GREATEST = Cents(2**53 - 1)
SITE = "a" * 64 + ".simulation"


def test_longest_certification_that_can_be_fits_an_entry() -> None:
    """The longest names that a configuration permits, the greatest amounts, two keys of the table, the most persons."""
    seance = Seance(origin=f"{SITE}/table/{'t' * 32}/9999")
    name = f"2026-11-30-{10**9}"
    index = 10**12
    seance.opening = (At(index, "2026-11-30T20:00:08.000Z"), SeanceOpened(seance=name, by=DIRECTOR, rules_sha256=""))
    seance.closing = (At(index, "2026-11-30T20:00:08.000Z"), closed(name, GREATEST))
    most = Totals(
        seances=GREATEST,
        rounds=GREATEST,
        credited_cents=GREATEST,
        staked_cents=GREATEST,
        returned_cents=GREATEST,
        won_cents=GREATEST,
        paid_out_cents=GREATEST,
        orphaned_cents=GREATEST,
    )
    seance.carried = TotalsCarried(seance=name, totals=most)
    text = make_statement(seance, ROOT).text
    tables = [Signer(seance.origin, bytes([seed]) * 32) for seed in (1, 2)]
    persons = [Signer(f"{SITE}/personne/{badge * 32}", b"p" * 32) for badge in "ABCD"]
    lines = [person.sign(text).line for person in persons]
    assert len(lines) == SIGNATURE_LINES_BOUND
    challenge = Challenge(id="q", nonce="5b" * 24, boot="f" * 16, origin=seance.origin, expires_s=1)
    evidence = write_order(persons[0], challenge, "statement.certify", {"seance": name, "lines": lines})
    note = sign_note(text, *tables, *persons)
    people = tuple(Person(badge=badge * 32, role=Role.TECHNICIAN) for badge in "ABCD")
    order = CertifyStatement(at_us=10**15, by=people[0], evidence=evidence, seance=name, note=note, persons=people)
    fact = SeanceCertified(seance=name, note=note, persons=people)
    ((kind, data),) = encode_decision(order, (fact,), index)
    stamp = Stamp(source=seance.origin, boot="f" * 16, mono_ms=10**15, wall_ms=1_796_000_000_000, quality="free")
    assert len(build_leaf(index, bytes(32), Record(kind, data, name), stamp)) < LEAF_BOUND
