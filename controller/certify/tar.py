"""The one tar file that its content can have: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format").

    512 bytes  header: name, length, time, checksum; everything else is fixed
    …          content, filled up to 512 with zeros
    …          the other members, by name
    1,024      zeros, and nothing after them

Owner, rights and order are fixed, and one time is that of all members. So the same content always makes the same bytes,
and whoever reads can demand every one of them: a byte that differs anywhere is found, even where it means nothing.
There are no links, no folders, no long names, no sparse files: nothing that could write elsewhere when it is unpacked.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from controller.certify.faults import JournalFault

BLOCK = 512
NAME_BYTES = 100
PREFIX_BYTES = 155

CONTENT_BOUND = 8**11 - 1
"""Bytes of the longest member: eleven octal digits."""

MEMBERS_BOUND = 100_000
"""Members of an archive that is read: enough for ten million entries."""

_NOBODY = (b"0000000\0", b"0000000\0")
_END = bytes(2 * BLOCK)
_FOLDER = re.compile(r"[A-Za-z0-9._-]{1,80}")
_OCTAL = re.compile(rb"[0-7]{11}\0")


def header(folder: str, name: str, length: int, time_s: int) -> bytes:
    """The header of member ``name`` in ``folder``: 512 bytes. Raises JournalFault (E-ARCHIVE-LARGE)."""
    path = name.encode("ascii")
    if len(path) > NAME_BYTES or length > CONTENT_BOUND:
        raise JournalFault("E-ARCHIVE-LARGE", f"{name} with {length} bytes does not fit into an archive")
    fields = (
        path.ljust(NAME_BYTES, b"\0"),
        b"0000644\0",  # rights
        *_NOBODY,  # owner, group
        b"%011o\0" % length,
        b"%011o\0" % time_s,
        b" " * 8,  # the checksum is made over spaces
        b"0",  # a plain file
        bytes(100),
        b"ustar\0",
        b"00",
        bytes(64),
        *_NOBODY,  # device
        folder.encode("ascii").ljust(PREFIX_BYTES, b"\0"),
        bytes(12),
    )
    block = b"".join(fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


class TarWriter:
    """Writes members into ``file``, which can be sought; they must come in the order of their names."""

    def __init__(self, file: BinaryIO, folder: str, time_s: int) -> None:
        self._file = file
        self._folder = folder
        self._time_s = time_s

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """One member. Its length is known when it is written, and goes back into the header."""
        at = self._file.tell()
        self._file.write(bytes(BLOCK))
        length = 0
        for chunk in chunks:
            self._file.write(chunk)
            length += len(chunk)
        self._file.write(bytes(-length % BLOCK))
        self._file.seek(at)
        self._file.write(header(self._folder, name, length, self._time_s))
        self._file.seek(0, os.SEEK_END)

    def end(self) -> None:
        """The end of the archive."""
        self._file.write(_END)


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member's content is, and how long."""

    offset: int
    length: int


class TarReader:
    """An archive whose frame is right: every header, filling and the end are exactly those of its content."""

    def __init__(self, file: BinaryIO, folder: str, time_s: int, members: dict[str, Member]) -> None:
        self._file = file
        self.folder = folder
        self.time_s = time_s
        self.members = members

    @classmethod
    def open(cls, file: BinaryIO) -> Self:
        """Read the frame of ``file``, which can be sought; no content is read.

        Raises JournalFault: E-ARCHIVE-FOREIGN when this is no such archive, E-ARCHIVE-INCOMPLETE when its end is
        missing, E-ARCHIVE-FORM when a byte of the frame differs, E-ARCHIVE-LARGE; and OSError.
        """
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        block = file.read(BLOCK)
        first = _read_header(block)
        if first is None:
            raise JournalFault("E-ARCHIVE-FOREIGN", "this is not an archive that tablectl wrote")
        folder, time_s, _, _ = first
        reader = cls(file, folder, time_s, {})
        while block != bytes(BLOCK):
            reader._take(block, size)
            block = file.read(BLOCK)
        end = block + file.read(2 * BLOCK)
        if len(end) < len(_END) and not any(end):
            raise JournalFault("E-ARCHIVE-INCOMPLETE", "the file ends before the archive does")
        if end != _END:
            raise JournalFault("E-ARCHIVE-FORM", "the archive does not end with 1,024 zero bytes")
        return reader

    def _take(self, block: bytes, size: int) -> None:
        """One header, and on to the next; the filling between them is looked at."""
        last = next(reversed(self.members), "")
        if len(block) < BLOCK:
            raise JournalFault("E-ARCHIVE-INCOMPLETE", f"the file ends after {last or 'its beginning'}")
        read = _read_header(block)
        if read is None or read[:2] != (self.folder, self.time_s) or (name := read[2]) <= last:
            raise JournalFault("E-ARCHIVE-FORM", f"the header after {last} is not that of a member that follows it")
        if len(self.members) == MEMBERS_BOUND:
            raise JournalFault("E-ARCHIVE-LARGE", f"the archive has more than {MEMBERS_BOUND} members")
        member = Member(self._file.tell(), read[3])
        filled = member.offset + member.length + -member.length % BLOCK
        if filled > size:
            raise JournalFault("E-ARCHIVE-INCOMPLETE", f"the file ends inside {name}")
        self._file.seek(member.offset + member.length)
        if any(self._file.read(-member.length % BLOCK)):
            raise JournalFault("E-ARCHIVE-FORM", f"there is something in the filling after {name}")
        self.members[name] = member

    def read(self, name: str, bound: int) -> bytes:
        """The content of a member. Raises JournalFault: E-ARCHIVE-INCOMPLETE when there is none, E-ARCHIVE-LARGE."""
        member = self.member(name)
        if member.length > bound:
            raise JournalFault("E-ARCHIVE-LARGE", f"{name} has {member.length} bytes where {bound} are the most")
        self._file.seek(member.offset)
        return self._file.read(member.length)

    def part(self, name: str, offset: int, length: int) -> bytes:
        """Some bytes of a member, fewer at its end."""
        member = self.member(name)
        self._file.seek(member.offset + offset)
        return self._file.read(max(0, min(length, member.length - offset)))

    def member(self, name: str) -> Member:
        """Where a member is. Raises JournalFault (E-ARCHIVE-INCOMPLETE)."""
        if name not in self.members:
            raise JournalFault("E-ARCHIVE-INCOMPLETE", f"{name} is missing from the archive")
        return self.members[name]


def is_archive(path: Path) -> bool:
    """Whether ``path`` is a tar file, by its magic. Raises OSError."""
    with path.open("rb") as file:
        return file.read(BLOCK)[257:262] == b"ustar"


def _read_header(block: bytes) -> tuple[str, int, str, int] | None:
    """Folder, time, name and length of a header, when every byte of it is as we write it."""
    if len(block) < BLOCK or not _OCTAL.fullmatch(block[124:136]) or not _OCTAL.fullmatch(block[136:148]):
        return None
    try:
        name = block[:NAME_BYTES].rstrip(b"\0").decode("ascii")
        folder = block[345:500].rstrip(b"\0").decode("ascii")
    except UnicodeDecodeError:
        return None
    length, time_s = int(block[124:135], 8), int(block[136:147], 8)
    if not _FOLDER.fullmatch(folder) or not name or header(folder, name, length, time_s) != block:
        return None
    return folder, time_s, name, length
