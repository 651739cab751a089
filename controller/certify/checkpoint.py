"""What the table's key states by itself: the checkpoint of every commit, and what a snapshot contains.

A checkpoint (c2sp.org/tlog-checkpoint) says "my journal has this many entries, and this root". A table never signs two
that contradict each other. The statement about a snapshot begins with a line that no origin can be, so that neither
text can ever pass for the other.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256

from controller.certify.faults import NoteFault
from controller.certify.note import decode_base64

SNAPSHOT_HEADER = "table-controller/snapshot/v1"

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a journal: ``root`` stands for its first ``size`` entries."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"


def parse_checkpoint(text: str) -> Checkpoint:
    """Read a checkpoint's text: exactly origin, size, root. Raises NoteFault (E-CHECKPOINT-MALFORMED)."""
    lines = text.split("\n")
    if len(lines) != 4 or lines[3] or not lines[0]:
        raise NoteFault("E-CHECKPOINT-MALFORMED", "a checkpoint has three lines: origin, size, root")
    origin, size, encoded, _ = lines
    if not _SIZE.fullmatch(size):
        raise NoteFault("E-CHECKPOINT-MALFORMED", f"the size of a checkpoint is a decimal number, not {size[:40]!r}")
    root = decode_base64(encoded, "the root of a checkpoint")
    if len(root) != 32:
        raise NoteFault("E-CHECKPOINT-MALFORMED", f"the root of a checkpoint has 32 bytes, not {len(root)}")
    return Checkpoint(origin, int(size), root)


def snapshot_text(origin: str, size: int, root: bytes, body: bytes) -> str:
    """The text that is signed for a snapshot: the state after the ``size`` entries that ``root`` stands for."""
    return f"{SNAPSHOT_HEADER}\n{Checkpoint(origin, size, root).text}sha256:{sha256(body).hexdigest()}\n"
