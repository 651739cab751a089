"""Archives on the command line: ``tablectl journal export --seance``, and ``tablectl journal verify ARCHIVE.tar``."""

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO

import click

from controller.certify.archive import write_archive
from controller.certify.archive_check import Contents, verify_archive
from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier
from controller.certify.policy import Policy
from controller.certify.reader import Reader
from controller.certify.verify import Verdict
from controller.cli.failure import UNUSABLE, Failure
from controller.cli.language import colon, here
from controller.cli.output import dim, fields, progress, tell
from controller.cli.target import Target
from controller.codec import CodecError
from controller.registers.statement import state_seance
from games.seance import SeanceClosed


def export_archive(journal: Target, out: Path, seance: str | None, policy: Policy | None) -> int:
    """Write an archive, verify it, and tell what is in it. What does not agree is taken away again.

    Cosignatures are those of the ``policy``'s witnesses; without a policy there are none, since nobody named a key.
    """
    witnesses = () if policy is None else policy.witnesses
    try:
        file = out.open("xb+")
    except FileExistsError:
        raise Failure("E-OUT-EXISTS", here(f"{out} existe déjà", f"{out} exists already"), UNUSABLE) from None
    kept = False
    try:
        with file:
            _write(file, journal, seance, witnesses)
        contents = _verified(out, journal.keys)
        kept = True
    finally:
        if not kept:
            out.unlink()
    with out.open("rb") as written:
        digest = file_digest(written, "sha256").hexdigest()
    document = {"archive": str(out), "sha256": digest, **_document(contents)}
    lines = [f"{here('archive', 'archive')}{colon()}{out}", *_lines(contents), *fields([("SHA-256", digest)], "  ")]
    if policy is None:
        left_out = here(
            "sans --policy, l'archive ne garde aucune contre-signature", "without --policy it keeps no cosignature"
        )
        lines.append(f"  {dim(left_out)}")
    tell(document, lines)
    return 0


def _write(file: BinaryIO, journal: Target, seance: str | None, witnesses: Sequence[Verifier]) -> None:
    with closing(Reader(journal.file)) as reader, progress(here("Archivage", "Archiving")) as step:
        write_archive(file, reader, journal.keys, witnesses, seance=seance, report=_report, progress=step)
    file.flush()
    os.fsync(file.fileno())


def _report(leaves: Iterable[bytes], root: bytes) -> str:
    try:
        return state_seance(leaves, root).report
    except CodecError as error:
        raise JournalFault("E-ARCHIVE-REPORT", f"this program does not know an entry of the séance: {error}") from error


def _verified(out: Path, keys: LogKeys) -> Contents:
    with progress(here("Vérification", "Verifying")) as step:
        verdict, contents = verify_archive(out, keys, step, report=_report)
    if contents is None:
        raise Failure("E-ARCHIVE-REFUSED", f"{verdict.code} {verdict.problem}", int(verdict.outcome))
    return contents


def judge_archive(archive: Target, remembered: str | None, policy: Policy | None) -> tuple[Verdict, Contents | None]:
    """The verdict on an archive. Raises CertifyFault, Failure (E-VKEY-MISSING) and OSError."""
    with progress(here("Vérification", "Verifying")) as step:
        return verify_archive(archive.file, archive.keys, step, remembered=remembered, policy=policy, report=_report)


def contents_document(contents: Contents | None) -> dict[str, Any]:
    """What a verified archive holds, for programs."""
    return {"contents": None if contents is None else _document(contents)}


def contents_lines(contents: Contents | None) -> list[str]:
    """What a verified archive holds, for people."""
    return [] if contents is None else _lines(contents)


def _document(contents: Contents) -> dict[str, Any]:
    span = contents.span
    return {
        "seance": contents.seance,
        "first": span.start,
        "entries": span.stop - span.start,
        "size": span.size,
        "cosigners": list(contents.signed.cosigners),
        "closed": _is_closed(contents),
        "certified_by_entry": span.later,
    }


def _lines(contents: Contents) -> list[str]:
    span = contents.span
    cosigners = ", ".join(contents.signed.cosigners) or here("personne", "nobody")
    reach = f"{span.start} … {span.stop - 1} " if span.stop > span.start else ""
    pairs = [
        (here("séance", "séance"), contents.seance or here("tout le journal", "the whole journal")),
        (here("écritures", "entries"), f"{reach}({span.stop - span.start})"),
        (here("contresigné par", "cosigned by"), cosigners),
        (here("procès-verbal", "statement"), _statement(contents)),
    ]
    return fields(pairs, indent="  ")


def _statement(contents: Contents) -> str:
    """Whether the séance is closed and certified; nothing for a whole journal."""
    if contents.seance is None:
        return ""
    if not _is_closed(contents):
        return click.style(here("la séance n'est pas close", "the séance is not closed"), fg="yellow")
    if contents.span.later is None:
        return dim(here("close, pas encore certifiée", "closed, not certified yet"))
    return here(f"certifié par l'écriture {contents.span.later}", f"certified by entry {contents.span.later}")


def _is_closed(contents: Contents) -> bool:
    return contents.last_kind == SeanceClosed.KIND
