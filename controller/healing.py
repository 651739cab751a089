"""A note on the disk that a healing is under way, so that a power cut between its two halves hides nothing.

    note written ──► entries back in the journal ──► fact certified ──► note gone
              cut: nothing changed, begins anew  cut: the next start certifies it

The note names the root that the healing leads to: a journal that grew otherwise was not healed.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from controller.certify.keys import sync_folder

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """The disk went back to ``from_size`` entries; up to ``to_size``, under ``root`` (hexadecimal), they come back."""

    from_size: int
    to_size: int
    root: str
    cosigner: str


class HealingNote:
    """The note in the journal's folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "healing.json"

    def write(self, healing: Healing) -> None:
        """Before the entries are taken. Raises OSError."""
        draft = self._file.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(asdict(healing), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)
        sync_folder(self._file.parent)

    def done(self, size: int, root: Callable[[int], bytes]) -> Healing | None:
        """What came back into a journal of ``size`` entries and is not certified yet. ``root`` gives that of a size."""
        healing = self._read()
        if healing is None or healing.to_size > size or root(healing.to_size).hex() != healing.root:
            return None
        return healing

    def forget(self) -> None:
        """The fact is certified, or there is none to certify."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> Healing | None:
        try:
            return Healing(**json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            logger.warning("E-HEAL-NOTE", file=str(self._file), detail=str(error))
            return None
