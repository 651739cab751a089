"""Evidence: when a start finds its journal wrong, the files are copied aside as they are, before anybody touches them.

Nothing is moved or repaired: the originals stay where they are. The same state is copied once, however often the start
is tried. A copy that would fill the disk is not made, and that is said.
"""

import os
import shutil
from hashlib import file_digest, sha256
from pathlib import Path

import structlog

from controller.certify.keys import sync_folder

EVIDENCE = {
    "E-JOURNAL-ALTERED",
    "E-JOURNAL-DAMAGED",
    "E-JOURNAL-FORKED",
    "E-JOURNAL-INCOMPLETE",
    "E-JOURNAL-ROLLED-BACK",
    "E-JOURNAL-UNSIGNED",
    "E-HEAL-BEHIND",
    "E-HEAL-TOO-MANY",
}
"""The faults of a start after which the journal's files are evidence."""

SPARE_BYTES = 64 << 20
"""What a copy must leave free."""

logger = structlog.get_logger()


def keep_evidence(journal: Path, code: str) -> Path | None:
    """Copy the live files of ``journal`` into ``evidence/`` beside it; returns the folder, or None without room.

    Earlier volumes stay where they are: nobody writes to them any more. Raises OSError.
    """
    files = sorted(file for file in journal.parent.glob(f"{journal.name}*") if file.is_file())
    digests = sha256()
    for file in files:
        with file.open("rb") as opened:
            digests.update(file.name.encode() + b"\0" + file_digest(opened, "sha256").digest())
    folder = journal.parent / "evidence" / f"{code.removeprefix('E-').lower()}-{digests.hexdigest()[:16]}"
    if folder.exists():
        return folder
    needed = sum(file.stat().st_size for file in files)
    if shutil.disk_usage(journal.parent).free < needed + SPARE_BYTES:
        logger.error("E-EVIDENCE-SPACE", needed_bytes=needed, detail=f"{journal} is not copied: no room beside it")
        return None
    draft = folder.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for file in files:
        _copy(file, draft / file.name)
    sync_folder(draft)
    draft.replace(folder)
    sync_folder(folder.parent)
    return folder


def _copy(file: Path, copy: Path) -> None:
    shutil.copy2(file, copy)
    copy.chmod(0o440)
    descriptor = os.open(copy, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
