"""A file of nothing beside the journal: its room is given back when the disk is full, so that the séance can be closed.

The room is really allotted (posix_fallocate), not only promised. The reserve is given back once, at the level "close"
(certification notes, 7.6), and made again when there is room. It holds no data: losing it loses nothing.
"""

import os
from pathlib import Path

from controller.certify.keys import sync_folder

RESERVE_MIB = 64
"""The usual size: some 50,000 entries with their write-ahead log."""


class Reserve:
    """The reserve of ``size_bytes`` in ``folder``; with 0 there is none."""

    def __init__(self, folder: Path, size_bytes: int = RESERVE_MIB << 20) -> None:
        self._file = folder / "reserve"
        self._draft = folder / "reserve.new"
        self.size_bytes = size_bytes

    @property
    def held_bytes(self) -> int:
        """How much room is held back now."""
        try:
            return self._file.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def missing_bytes(self) -> int:
        """How much room was given back, or never held."""
        return max(0, self.size_bytes - self.held_bytes)

    def hold(self) -> bool:
        """Make the reserve if it is missing; whether it is there now. A disk without the room changes nothing."""
        if not self.missing_bytes:
            return True
        try:
            descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self.size_bytes)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._draft.replace(self._file)
            sync_folder(self._file.parent)
        except OSError:
            self._draft.unlink(missing_ok=True)
            return False
        return True

    def give_back(self) -> int:
        """Let the room go; how many bytes that were. Raises OSError."""
        held = self.held_bytes
        if held:
            self._file.unlink()
            sync_folder(self._file.parent)
        return held
