"""The archive as it is written: what is in it, that it is always the same, and that others can check it."""

import json
import re
import subprocess
import tarfile
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from controller.certify.archive import write_archive
from controller.certify.archive_readme import README
from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.leaf import Record
from controller.certify.note import parse_note
from controller.certify.reader import Reader
from controller.certify.tiles import HASH_BYTES
from controller.certify.turning import turn
from tests.controller.certify.archives import KEYS, archive, contents_of, go_on, judge, play, report, taken_apart
from tests.controller.certify.workshop import MIRROR, SIGNER, open_journal, stakes


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with two séances, the second one cosigned when it ended."""
    return play(tmp_path / "journal.db", cosigned=[3])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


def leaves_of(journal: Path) -> list[bytes]:
    with closing(Reader(journal)) as reader:
        return list(reader.leaves(0, reader.size))


def test_archive_of_a_seance_has_its_entries_byte_for_byte(journal: Path, out: Path) -> None:
    span = archive(journal, out, "s-1")
    lines = taken_apart(out).contents["events.jsonl"].split(b"\n")
    assert lines.pop() == b""
    assert lines == leaves_of(journal)[40:340]
    assert (span.start, span.stop) == (40, 340)


def test_archive_of_the_whole_journal_has_every_entry(journal: Path, out: Path) -> None:
    archive(journal, out)
    assert taken_apart(out).contents["events.jsonl"].split(b"\n")[:-1] == leaves_of(journal)


def test_archive_made_twice_is_the_same(journal: Path, tmp_path: Path) -> None:
    for name in ("first.tar", "second.tar"):
        archive(journal, tmp_path / name, "s-2")
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()


def test_archive_of_a_seance_is_the_same_when_the_journal_has_grown(tmp_path: Path) -> None:
    parts = [(40, None), (300, "s-1"), (5, None)]
    short = play(tmp_path / "short.db", parts, cosigned=[1])
    long = play(tmp_path / "long.db", [*parts, (500, "s-2")], cosigned=[1])
    archive(short, tmp_path / "short.tar", "s-1")
    archive(long, tmp_path / "long.tar", "s-1")
    assert (tmp_path / "short.tar").read_bytes() == (tmp_path / "long.tar").read_bytes()


def test_archive_takes_the_checkpoint_that_was_cosigned_and_else_the_first_that_covers(
    tmp_path: Path, out: Path
) -> None:
    for cosigned, size in (([], 340), ([2], 345), ([2, 4], 345)):
        folder = tmp_path / str(cosigned)
        folder.mkdir()
        assert archive(play(folder / "journal.db", cosigned=cosigned), out, "s-1").size == size
        names = {
            signature.name for signature in parse_note(taken_apart(out).contents["checkpoint"].decode()).signatures
        }
        assert names == ({SIGNER.name, MIRROR.name} if cosigned else {SIGNER.name})


def test_archive_keeps_the_checkpoints_of_the_seance_and_no_others(journal: Path, out: Path) -> None:
    archive(journal, out, "s-1")
    assert {name for name in taken_apart(out).contents if "checkpoints" in name} == {
        "checkpoints/40",
        "checkpoints/340",
    }
    archive(journal, out, "s-2")
    assert {name for name in taken_apart(out).contents if "checkpoints" in name} == {"checkpoints/345"}


def test_archive_of_a_seance_that_is_not_in_the_journal_is_refused(journal: Path, out: Path) -> None:
    with pytest.raises(JournalFault, match="E-ARCHIVE-SEANCE"):
        archive(journal, out, "s-3")


def test_archive_of_an_empty_journal_verifies(tmp_path: Path, out: Path) -> None:
    archive(play(tmp_path / "journal.db", []), out)
    assert (judge(out).ok, judge(out).size) == (True, 0)


@pytest.mark.parametrize(
    "parts",
    [
        [(1, "s-1")],
        [(255, None), (1, "s-1"), (1, None)],
        [(256, None), (256, "s-1"), (256, None)],
        [(256, None), (256, "s-1")],
        [(257, None), (254, "s-1"), (1, None)],
        [(700, None), (3, "s-1"), (1_200, None)],
        [(65_536, None), (5, "s-1"), (300, None)],
        [(65_530, None), (12, "s-1"), (66_000, None)],
    ],
    ids=lambda parts: "-".join(str(count) for count, _ in parts),
)
def test_archive_of_a_seance_anywhere_in_the_tree_verifies(
    tmp_path: Path, out: Path, parts: list[tuple[int, str | None]]
) -> None:
    journal = play(tmp_path / "journal.db", parts, cosigned=[len(parts) - 1])
    span = archive(journal, out, "s-1")
    verdict = judge(out)
    assert verdict.ok, verdict.problem
    assert verdict.size == sum(count for count, _ in parts)
    with closing(Reader(journal)) as reader:
        assert verdict.root == reader.root(verdict.size)
    assert contents_of(out).span == span


def test_archive_proves_every_entry_with_nothing_but_its_own_tiles(journal: Path, out: Path) -> None:
    """A checker of its own, with hashlib alone: from each line up to the signed root."""
    archive(journal, out, "s-2")
    with tarfile.open(out) as tar:
        opened = {member.name.partition("/")[2]: tar.extractfile(member) for member in tar}
        files = {name: file.read() for name, file in opened.items() if file is not None}
    size, root = files["checkpoint"].decode().split("\n")[1:3]
    top = files["tile/1/000.p/2"]
    tail = files["tile/0/002.p/33"]

    def tree(hashes: list[bytes]) -> bytes:
        if len(hashes) == 1:
            return hashes[0]
        half = 1 << (len(hashes) - 1).bit_length() - 1
        return sha256(b"\1" + tree(hashes[:half]) + tree(hashes[half:])).digest()

    def cells(tile: bytes) -> list[bytes]:
        return [tile[at : at + HASH_BYTES] for at in range(0, len(tile), HASH_BYTES)]

    whole = sha256(b"\1" + sha256(b"\1" + top).digest() + tree(cells(tail))).hexdigest()
    assert (int(size), whole) == (545, b64decode(root).hex())
    assert tree(cells(files["tile/0/001"])) == cells(top)[1]
    for line in files["events.jsonl"].splitlines():
        index = int(json.loads(line)["id"])
        tile = files["tile/0/001"] if index < 512 else tail
        assert sha256(b"\0" + line).digest() == cells(tile)[index % 256]


def test_readme_commands_typed_in_a_shell_check_signature_and_entry(
    journal: Path, out: Path, program: Callable[[str], str], tmp_path: Path
) -> None:
    for name in ("openssl", "sha256sum", "od", "base64"):
        program(name)
    archive(journal, out, "s-1")
    with tarfile.open(out) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / "seance-s-1"
    blocks = re.findall(r"(?:^ {7,8}\S.*\n)+", README, re.MULTILINE)
    signature, cosignature, entry, tile = blocks

    def shell(text: str, key: str = SIGNER.verifier.vkey) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-e"],
            input=text,
            text=True,
            cwd=folder,
            capture_output=True,
            env={"KEY": key, "PATH": "/usr/bin:/bin"},
        )

    assert "Signature Verified Successfully" in shell(signature).stdout
    assert "Signature Verified Successfully" not in shell(signature, MIRROR.verifier.vkey).stdout
    by_openssl = "".join(signature.splitlines(keepends=True)[2:])  # the key's file, and the check itself
    assert "Signature Verified Successfully" in shell(cosignature + by_openssl, MIRROR.verifier.vkey).stdout
    assert "Signature Verified Successfully" not in shell(cosignature + by_openssl).stdout
    digest = shell(entry).stdout.split()[0]
    hashes = shell(tile).stdout.split()
    assert hashes[40] == digest  # the first line is entry 40
    assert digest == sha256(b"\0" + leaves_of(journal)[40]).hexdigest()


def test_policy_of_an_archive_names_the_keys_that_signed(journal: Path, out: Path) -> None:
    archive(journal, out, "s-2")
    assert taken_apart(out).contents["policy"].decode() == (
        f"log {SIGNER.verifier.vkey}\nwitness w1 {MIRROR.verifier.vkey}\ngroup witnesses 1 w1\nquorum witnesses\n"
    )


def test_policy_of_an_archive_that_nobody_cosigned_names_the_table_alone(tmp_path: Path, out: Path) -> None:
    archive(play(tmp_path / "journal.db"), out, "s-1")
    assert taken_apart(out).contents["policy"].decode() == f"log {SIGNER.verifier.vkey}\nquorum none\n"


# ── A table that plays meanwhile ──────────────────────────────────────────────────────────────────────────────────────


class Growing(Reader):
    """A journal to which the table adds 20 entries of the séance between two looks of the reader."""

    def __init__(self, path: Path, table: Journal) -> None:
        super().__init__(path)
        self._table = table

    def notes(self, start: int) -> list[str]:
        self._table.append(of_the_seance(20, self._table.size))
        return super().notes(start)


def of_the_seance(count: int, first: int) -> list[Record]:
    return [replace(record, seance="s-1") for record in stakes(count, first)]


@pytest.mark.parametrize(("seance", "start"), [("s-1", 40), (None, 0)])
def test_archive_of_a_journal_that_grows_meanwhile_is_one_of_a_moment(
    tmp_path: Path, out: Path, seance: str | None, start: int
) -> None:
    journal = play(tmp_path / "journal.db", [(40, None)])
    with closing(open_journal(journal)) as table:
        for first in (40, 55):  # the checkpoint of 70 entries is replaced by the next one
            table.append(of_the_seance(15, first))
        with closing(Growing(journal, table)) as reader, out.open("wb+") as file:
            span = write_archive(file, reader, KEYS, seance=seance, report=report)
    assert (span.start, span.stop, span.size) == (start, 90, 90)
    assert judge(out).ok


@pytest.mark.parametrize("seance", ["s-1", "s-2", None])
def test_archive_of_a_journal_in_several_volumes_is_that_of_one_file(
    tmp_path: Path, out: Path, seance: str | None
) -> None:
    parts = [(300, None), (400, "s-1"), (3_000, None), (50, "s-2"), (20, None)]
    (tmp_path / "one").mkdir()
    whole = play(tmp_path / "one" / "journal.db", parts, cosigned=[1])
    (tmp_path / "several").mkdir()
    turned = play(tmp_path / "several" / "journal.db", parts[:3], cosigned=[1])
    made = turn(turned, KEYS, 0, volume_entries=1_000)
    assert made is not None and made.taken_over < 3_700
    go_on(turned, parts[3:])
    archive(whole, out, seance)
    archive(turned, tmp_path / "several.tar", seance)
    assert judge(tmp_path / "several.tar").ok
    assert (tmp_path / "several.tar").read_bytes() == out.read_bytes()
