"""The samples of archives: one good one, and one for each way in which an archive can be bad.

    python -m docs.samples.make_samples [FOLDER]

They are made from fixed keys, a fixed clock and fixed facts, so they come out the same on any machine, and a test
compares. The keys are published here on purpose: they protect nothing.
"""

import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from controller.certify.archive import bundle, write_archive
from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note, parse_note
from controller.certify.reader import Reader
from controller.certify.tar import TarReader, TarWriter
from controller.codec import to_plain
from controller.registers.statement import state_seance
from drivers.clock import ManualClock
from games import posts
from games.money import Cents
from games.roulette.facts import RoundClosed
from games.rules import Fact
from games.seance import PostsPutInService, SeanceClosed, SeanceOpened
from games.signals import Person, Role, Stake
from games.statement import SeanceCertified, Totals, TotalsCarried

ORIGIN = "casino.example/table/t07/1"
SEANCE = "2026-11-30-1"
BOOT = "0123456789abcdef"
TABLE = Signer(ORIGIN, bytes(range(32)))
STRANGER = Signer(ORIGIN, bytes(range(1, 33)))
"""Another key of the same name: a thief's, or that of another epoch."""

MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)
DIRECTOR = Signer("casino.example/personne/d-012", bytes(range(3, 35)))
OPENED_MS = 1_796_068_803_000
ROUNDS = 6

MADE_HERE = Path(__file__).parent


def facts(last_pocket: str = "17") -> Iterator[tuple[Fact, str | None]]:
    """The facts of one evening, each with its séance. ``last_pocket`` is the number of the last round."""
    director = Person(badge="d-012", role=Role.DIRECTOR)
    yield PostsPutInService(by=director), None
    yield SeanceOpened(seance=SEANCE, by=director, rules_sha256="5f" * 32), SEANCE
    cashier = Person(badge="c-003", role=Role.CASHIER)
    yield posts.CreditAdded(post=3, sitting=1, cents=Cents(50_000), credit=Cents(50_000), by=cashier), SEANCE
    for number in range(1, ROUNDS + 1):
        credit = Cents(50_000 - 500 * number)
        stake = Stake(bet="plein-17", cents=Cents(500))
        request = f"r-{number:04d}"
        yield (
            posts.StakesPlaced(
                post=3, request=request, round=number, origin="", stakes=(stake,), cents=Cents(500), credit=credit
            ),
            SEANCE,
        )
        pocket = last_pocket if number == ROUNDS else str(number + 17)
        zero = Cents(0)
        yield RoundClosed(round=number, pocket=pocket, posts=1, staked=Cents(500), returned=zero, won=zero), SEANCE
        yield posts.PostSettled(post=3, round=number, staked=Cents(500), returned=zero, won=zero, credit=credit), SEANCE
    closed = SeanceClosed(
        seance=SEANCE,
        by=director,
        rounds=ROUNDS,
        credited_cents=Cents(50_000),
        staked_cents=Cents(500 * ROUNDS),
        returned_cents=Cents(0),
        won_cents=Cents(0),
        paid_out_cents=Cents(0),
        orphaned_cents=Cents(0),
    )
    yield TotalsCarried(seance=SEANCE, totals=Totals().after(closed)), SEANCE
    yield closed, SEANCE


def record_of(fact: Fact, seance: str | None) -> Record:
    """What the journal is asked to certify."""
    return Record(type(fact).KIND, canonical(to_plain(fact)), seance)


def play(path: Path, signer: Signer = TABLE, last_pocket: str = "17") -> Path:
    """The journal ``path`` of the evening, certified by the director and cosigned by the mirror."""
    clock = ManualClock(wall_offset_ms=OPENED_MS)
    Journal.create(path, signer, allow_volatile=True)
    with closing(Journal.open(path, signer, clock, BOOT, lambda: "ntp", allow_volatile=True)) as journal:
        for fact, seance in facts(last_pocket):
            clock.advance_us(7_000_000)
            journal.append([record_of(fact, seance)], keep_checkpoint=isinstance(fact, SeanceOpened | SeanceClosed))
        cosign(journal, clock)
        clock.advance_us(300_000_000)
        note = _statement(journal, signer)
        director = (Person(badge="d-012", role=Role.DIRECTOR),)
        certified = SeanceCertified(seance=SEANCE, note=note, persons=director)
        journal.append([record_of(certified, None)], keep_checkpoint=True)
        cosign(journal, clock)
    return path


def cosign(journal: Journal, clock: ManualClock) -> None:
    """Let the mirror cosign the newest checkpoint."""
    parsed = parse_note(journal.checkpoint)
    line = MIRROR.sign(parsed.text, clock.wall_ms() // 1_000)
    journal.add_cosignature(format_note(parsed.text, [*parsed.signatures, line]), MIRROR.verifier)


def _statement(journal: Journal, signer: Signer) -> str:
    leaves = journal.leaves(1, journal.size)
    text = state_seance(leaves, journal.root).text
    return format_note(text, [signer.sign(text), DIRECTOR.sign(text)])


# ── Archives ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive taken apart: its folder, the time of its members, and their contents by name."""

    folder: str
    time_s: int
    contents: Mapping[str, bytes]

    @classmethod
    def read(cls, path: Path) -> "Archive":
        """Take the archive ``path`` apart."""
        with path.open("rb") as file:
            tar = TarReader.open(file)
            contents = {name: tar.read(name, member.length) for name, member in tar.members.items()}
        return cls(tar.folder, tar.time_s, contents)

    def write(self, path: Path) -> Path:
        """Put it together again."""
        with path.open("wb+") as file:
            tar = TarWriter(file, self.folder, self.time_s)
            for name in sorted(self.contents):
                tar.add(name, [self.contents[name]])
            tar.end()
        return path

    def with_member(self, name: str, content: bytes) -> "Archive":
        """The same with another content of one member."""
        return replace(self, contents={**self.contents, name: content})

    def without(self, name: str) -> "Archive":
        """The same without one member."""
        return replace(self, contents={other: kept for other, kept in self.contents.items() if other != name})

    @property
    def leaves(self) -> list[bytes]:
        """The entries of the only bundle."""
        (name,) = (name for name in self.contents if name.startswith("tile/entries/"))
        content, leaves = self.contents[name], []
        while content:
            end = 2 + int.from_bytes(content[:2])
            leaves.append(content[2:end])
            content = content[end:]
        return leaves

    def with_leaves(self, leaves: Sequence[bytes]) -> "Archive":
        """The same with other entries, wherever they are: bundle, tile and lines, but not the signed root."""
        first = self.leaves.index(self.contents["events.jsonl"].split(b"\n")[0])
        count = self.contents["events.jsonl"].count(b"\n")
        lines = b"".join(leaf + b"\n" for leaf in leaves[first : first + count])
        contents = dict(self.contents) | {"events.jsonl": lines}
        for name in contents:
            if name.startswith("tile/entries/"):
                contents[name] = bundle(leaves)
            elif name.startswith("tile/0/"):
                contents[name] = b"".join(map(leaf_hash, leaves))
        return replace(self, contents=contents)


def archive(journal: Path, out: Path, signer: Signer = TABLE) -> Path:
    """The archive of the séance of ``journal``."""
    with closing(Reader(journal)) as reader, out.open("wb+") as file:
        keys = LogKeys.of(signer.verifier)
        write_archive(file, reader, keys, [MIRROR.verifier], seance=SEANCE, report=report)
    return out


def report(leaves: Iterable[bytes], root: bytes) -> str:
    """The report of the séance."""
    return state_seance(leaves, root).report


ALTERED_ENTRY = 11
"""Entry 11 is a settlement, entry 9 the stake before it: both say what credit is left."""


def _altered(good: Archive) -> Archive:
    """One entry changed wherever it stands: its line, its bundle, its hash in the tile."""
    leaves = good.leaves
    leaves[ALTERED_ENTRY] = leaves[ALTERED_ENTRY].replace(b'"credit":48500', b'"credit":98500')
    assert leaves != good.leaves
    return good.with_leaves(leaves)


def _altered_line(good: Archive) -> Archive:
    """One entry changed in ``events.jsonl`` only."""
    lines = good.contents["events.jsonl"].replace(b'"credit":48500', b'"credit":98500', 1)
    return good.with_member("events.jsonl", lines)


def _altered_report(good: Archive) -> Archive:
    """An amount changed in the report that the director signed."""
    return good.with_member("seance.txt", good.contents["seance.txt"].replace(b"30,00", b"20,00"))


def _without_tile(good: Archive) -> Archive:
    return good.without(next(name for name in good.contents if name.startswith("tile/0/")))


@dataclass(frozen=True, slots=True)
class Bad:
    """A way to spoil the good archive."""

    name: str
    spoil: Callable[[Archive], Archive]


SPOILED = (
    Bad("altered-entry", _altered),
    Bad("altered-line", _altered_line),
    Bad("altered-report", _altered_report),
    Bad("missing-tile", _without_tile),
)

JUDGED: Mapping[str, tuple[int, int | None]] = {
    "good": (0, None),
    "altered-entry": (1, 11),
    "altered-line": (1, 9),
    "altered-report": (1, None),
    "other-history": (2, None),
    "other-key": (3, None),
    "missing-tile": (4, None),
    "cut-tail": (4, None),
    "hostile": (5, None),
}
"""What ``tablectl journal verify`` must say of each, with ``remembered.note``: exit status, and the entry it names."""

CUT_BYTES = 12_000
"""What is left of the archive whose tail was cut."""


def _make_hostile(path: Path) -> None:
    """A tar that would write elsewhere when it is unpacked without care."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        link = tarfile.TarInfo("journal/tile")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("../../etc/passwd"))


def make(folder: Path) -> None:
    """Write all samples, and the keys and checkpoints that they are judged by, into ``folder``."""
    with tempfile.TemporaryDirectory() as work:
        journals = [Path(work) / name for name in ("good", "other-key", "other-history")]
        for path in journals:
            path.mkdir()
        good = archive(play(journals[0] / "journal.sqlite"), folder / "good.tar")
        archive(play(journals[1] / "journal.sqlite", STRANGER), folder / "other-key.tar", STRANGER)
        archive(play(journals[2] / "journal.sqlite", last_pocket="0"), folder / "other-history.tar")
    content = Archive.read(good)
    for bad in SPOILED:
        bad.spoil(content).write(folder / f"{bad.name}.tar")
    _make_hostile(folder / "hostile.tar")
    (folder / "cut-tail.tar").write_bytes(good.read_bytes()[:CUT_BYTES])
    (folder / "table.vkey").write_text(f"{TABLE.verifier.vkey}\n", encoding="ascii")
    (folder / "remembered.note").write_bytes(content.contents["checkpoint"])


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else MADE_HERE)
