"""What the tests of archives build: journals with several séances, their archives, and keys to judge them by."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from controller.certify.archive import write_archive
from controller.certify.archive_check import Contents, verify_archive
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, format_note, parse_note
from controller.certify.reader import Reader
from controller.certify.tile_paths import Span
from controller.certify.verify import Verdict
from docs.samples.make_samples import Archive
from tests.controller.certify.workshop import MIRROR, SIGNER, open_journal, stakes

KEYS = LogKeys.of(SIGNER.verifier)
Part = tuple[int, str | None]
"""How many entries, and of which séance."""

TWO_SEANCES: tuple[Part, ...] = ((40, None), (300, "s-1"), (5, None), (200, "s-2"), (5, None))


def play(
    path: Path, parts: Sequence[Part] = TWO_SEANCES, cosigned: Iterable[int] = (), signer: Signer = SIGNER
) -> Path:
    """A journal with one commit for each part; those in ``cosigned`` are cosigned by the mirror."""
    Journal.create(path, signer, allow_volatile=True)
    go_on(path, parts, cosigned, signer)
    return path


def go_on(path: Path, parts: Sequence[Part], cosigned: Iterable[int] = (), signer: Signer = SIGNER) -> None:
    """More commits to the journal ``path``."""
    with closing(open_journal(path, signer=signer)) as journal:
        for at, (count, seance) in enumerate(parts):
            records = [replace(record, seance=seance) for record in stakes(count, journal.size)]
            journal.append(records, keep_checkpoint=True)
            if at in cosigned:
                cosign(journal)


def cosign(journal: Journal, time_s: int = 1_796_000_000) -> None:
    """Let the mirror cosign the newest checkpoint."""
    parsed = parse_note(journal.checkpoint)
    line = MIRROR.sign(parsed.text, time_s)
    journal.add_cosignature(format_note(parsed.text, [*parsed.signatures, line]), MIRROR.verifier)


def archive(journal: Path, out: Path, seance: str | None = None, keys: LogKeys = KEYS) -> Span:
    """Write the archive of a séance, or of the whole journal, with the mirror's cosignatures."""
    with closing(Reader(journal)) as reader, out.open("wb+") as file:
        return write_archive(file, reader, keys, [MIRROR.verifier], seance=seance, report=report)


def report(leaves: Iterable[bytes], root: bytes) -> str:
    """A report that says what it was made from."""
    return f"{len(list(leaves))} écritures, racine {root.hex()}\n"


def judge(path: Path, remembered: str | None = None, keys: LogKeys = KEYS) -> Verdict:
    """The verdict on an archive."""
    verdict, contents = verify_archive(path, keys, remembered=remembered)
    assert (contents is None) != verdict.ok
    return verdict


def contents_of(path: Path) -> Contents:
    """What an archive that verifies holds."""
    verdict, contents = verify_archive(path, KEYS)
    assert contents is not None, verdict.problem
    return contents


def taken_apart(path: Path) -> Archive:
    """The members of an archive, to be changed."""
    return Archive.read(path)
