"""TARGET: a journal to be read, and the public key that it is judged by.

A target is a journal's file, or a folder with ``journal.sqlite``. The key is ``table.vkey`` beside it, or what
``--vkey`` names: a file, or the key itself. What stands beside a journal could have been put there with it, so whoever
checks a table from elsewhere brings the key along.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from controller.certify.checkpoint import Checkpoint
from controller.certify.log_keys import LogKeys
from controller.certify.policy import POLICY_BOUND, Policy
from controller.certify.reader import Reader
from controller.certify.storage import connect_reader, faults_of
from controller.certify.trust import last_checkpoint
from controller.cli.commands import argument, option, path_option
from controller.cli.failure import Failure
from controller.cli.language import Phrase, colon, here

JOURNAL, VKEY, CONFIG, POLICY = "journal.sqlite", "table.vkey", "table.toml", "policy"
"""What a folder with a journal holds."""

NO_KEY = 3
"""The exit status of what cannot be judged for want of the right key (``verify.Outcome``)."""

VKEY_BOUND = 4_096
"""Bytes of a file that is read for a public key."""


@dataclass(frozen=True, slots=True)
class Target:
    """A journal's file, and the text of the verifier keys to judge it by, where there is one.

    ``found_beside`` says that the keys lay beside the journal, where whoever changed it could have put them.
    """

    file: Path
    vkey: str | None
    found_beside: bool = False

    @property
    def config(self) -> Path:
        """The configuration that lies beside the journal of a rehearsal."""
        return self.file.parent / CONFIG

    @property
    def keys(self) -> LogKeys:
        """The table's keys. Raises Failure (E-VKEY-MISSING) and KeyFault."""
        if self.vkey is None:
            beside = self.file.parent / VKEY
            detail = here(f"ni {beside} ni --vkey : avec quelle clé ?", f"neither {beside} nor --vkey: by which key?")
            raise Failure("E-VKEY-MISSING", detail, NO_KEY)
        return LogKeys.parse(self.vkey)


def target_of(path: Path, vkey: str | None) -> Target:
    """What the words of a command line mean. Raises Failure: E-JOURNAL-MISSING, E-VKEY-MISSING."""
    file = path / JOURNAL if path.is_dir() else path
    if not file.exists():
        raise Failure("E-JOURNAL-MISSING", here(f"il n'y a pas de journal {file}", f"there is no journal {file}"))
    if vkey is not None:
        return Target(file, given_key(vkey))
    beside = file.parent / VKEY
    return Target(file, _key_text(beside), found_beside=True) if beside.exists() else Target(file, None)


def given_key(vkey: str) -> str:
    """The keys' text that ``--vkey`` names: that of a file, or the key itself. Raises Failure (E-VKEY-MISSING)."""
    return _key_text(Path(vkey)) if "+" not in vkey or Path(vkey).exists() else vkey


def _key_text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(VKEY_BOUND).decode("ascii", errors="replace").strip()
    except OSError as error:
        raise Failure("E-VKEY-MISSING", f"{file}{colon()}{error.strerror}", NO_KEY) from None


def policy_option(phrase: Phrase) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``--policy``."""
    return path_option("--policy", metavar="FILE", phrase=phrase)


def read_policy(file: Path | None) -> Policy | None:
    """The policy of a file, None without one. Raises KeyFault (E-POLICY-MALFORMED) and OSError."""
    if file is None:
        return None
    with file.open("rb") as opened:
        return Policy.parse(opened.read(POLICY_BOUND + 1))


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument TARGET and the option ``--vkey``."""
    key = Phrase(
        "Clé publique de la table, ou son fichier ; sinon table.vkey à côté du journal.",
        "The table's public key, or its file; otherwise table.vkey beside the journal.",
    )
    journal = Phrase(
        "Le fichier d'un journal, ou un dossier avec journal.sqlite.",
        "A journal's file, or a folder with journal.sqlite.",
    )
    command = option("--vkey", metavar="FILE|KEY", phrase=key)(command)
    return argument("target", type=click.Path(path_type=Path), metavar="TARGET", phrase=journal)(command)


class Past:
    """A journal as it was when it was opened: what a running table adds later is left out (``history.PastReader``)."""

    def __init__(self, file: Path, reader: Reader) -> None:
        self._file = file
        self._reader = reader
        self._size = reader.size

    @property
    def size(self) -> int:
        """Number of entries."""
        return self._size

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """The entries from ``start`` up to, not including, ``stop``. Raises JournalFault."""
        return self._reader.leaves(start, min(stop, self._size))

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        """The latest snapshot of these entries. Raises JournalFault."""
        query = "SELECT size, body FROM snapshot WHERE size <= ? ORDER BY size DESC LIMIT 1"
        with faults_of(self._file), closing(connect_reader(self._file)) as connection:
            row = connection.execute(query, (self._size,)).fetchone()
        return None if row is None else (row[0], row[1])


def signed_checkpoint(file: Path, keys: LogKeys) -> Checkpoint:
    """The newest checkpoint of a journal, if one of these keys signed it. Raises JournalFault."""
    with faults_of(file), closing(connect_reader(file)) as connection:
        return last_checkpoint(connection, keys)[0]
