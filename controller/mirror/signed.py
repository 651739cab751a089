"""A checkpoint as a table signed it, and the past that it is compared with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import Note, format_note, open_note


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint that the table's keys signed, with its note, which has the signatures of these keys only."""

    checkpoint: Checkpoint
    note: Note

    @property
    def text(self) -> str:
        """The note."""
        return format_note(self.note.text, self.note.signatures)


@dataclass(frozen=True, slots=True)
class Past:
    """What was stored earlier: leaves by range, the root at an earlier size. A witness has none."""

    leaves: Callable[[int, int], Sequence[bytes]]
    root: Callable[[int], bytes]


def open_signed(text: str, keys: LogKeys) -> Signed:
    """Read and verify a checkpoint. Raises NoteFault when it is malformed, of another journal, or not signed."""
    note = open_note(text, keys.verifiers)
    checkpoint = parse_checkpoint(note.text)
    if checkpoint.origin != keys.origin:
        raise NoteFault("E-NOTE-FOREIGN", f"it is one of {checkpoint.origin}, not of {keys.origin}")
    return Signed(checkpoint, note)


def size_of(text: str) -> int:
    """The size that a note of a checkpoint states, before anything of it is believed; -1 when it states none."""
    lines = text.split("\n", 2)
    return int(lines[1]) if len(lines) > 2 and lines[1].isascii() and lines[1].isdecimal() else -1
