"""A disk as a power cut leaves it: rebuilt from the system calls of a program, up to any of them.

    write, ftruncate            reach the page cache; the medium only when the file is synced
    open (a new file), link,    change the folder in memory; the medium only when the folder itself is synced
    rename, unlink

Three things may be found after the last call: everything (the program was killed, the machine was not), only what was
synced, or what was synced and of the rest any half: each sector of 512 bytes by itself, so that writes are torn and
reordered, and of the changes of the folder some first ones. The folder's part is stricter than common file systems are.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECTOR_BYTES = 512

CALLS = "openat,close,dup,write,pwrite64,lseek,fsync,fdatasync,ftruncate,rename,link,unlink"
"""What is recorded."""

IGNORED_SUFFIX = "-shm"
"""SQLite's index of its write-ahead log: memory that happens to have a name, made anew at each start."""

_CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call that succeeded: strings as bytes, the rest as the words of the trace."""

    name: str
    strings: tuple[bytes, ...]
    words: tuple[str, ...]
    result: int


def read_trace(trace: Path) -> Iterator[Call]:
    """The calls of a trace by ``strace -xx``, those that failed left out."""
    with trace.open(encoding="ascii") as lines:
        for line in lines:
            found = _CALL.match(line)
            if found and not found["result"].startswith("-"):
                strings = tuple(bytes.fromhex(one.replace("\\x", "")) for one in _STRING.findall(found["arguments"]))
                words = tuple(_STRING.sub('""', found["arguments"]).split(", "))
                yield Call(found["name"], strings, words, int(found["result"]))


Change = tuple[int, bytes] | int
"""Bytes at an offset, or the length to which a file is cut or grown."""


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
        return
    at, data = change
    content.extend(bytes(max(0, at - len(content))))
    content[at : at + len(data)] = data


@dataclass(slots=True)
class _File:
    content: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        _apply(self.content, change)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()

    def torn(self, chance: random.Random) -> bytes:
        found = bytearray(self.synced)
        for change in self.pending:
            for piece in _pieces(change):
                if chance.random() < 0.5:
                    _apply(found, piece)
        return bytes(found)


def _pieces(change: Change) -> Iterator[Change]:
    """The parts of a change that the medium takes each as a whole."""
    if isinstance(change, int):
        yield change
        return
    at, data = change
    begin = 0
    while begin < len(data):
        end = begin + SECTOR_BYTES - (at + begin) % SECTOR_BYTES
        yield at + begin, data[begin:end]
        begin = end


Content = Mapping[str, bytes]
"""The files of the folder, by name."""


class Disk:
    """The folder ``folder`` of a recorded program. A disk that ``lies`` says that it synced, and did not."""

    def __init__(self, folder: Path, *, lies: bool = False) -> None:
        self._folder = f"{folder}/".encode()
        self._lies = lies
        self._open: dict[int, tuple[_File, int]] = {}
        self._folders: set[int] = set()
        self._names: dict[str, _File] = {}
        self._synced: dict[str, _File] = {}
        self._pending: list[tuple[str, _File | None]] = []

    def take(self, call: Call) -> bool:
        """Take the next call; whether it changed anything that may be found."""
        match call.name:
            case "openat":
                return self._take_open(call)
            case "close":
                self._open.pop(int(call.words[0]), None)
                self._folders.discard(int(call.words[0]))
                return False
            case "write" | "pwrite64" | "ftruncate" | "lseek":
                return self._take_write(call)
            case "fsync" | "fdatasync":
                return self._take_sync(int(call.words[0]))
            case "link" | "rename" | "unlink":
                return self._take_name(call)
            case _:
                raise ValueError(f"the call {call.name} is not modelled")

    def _name(self, path: bytes) -> str | None:
        if not path.startswith(self._folder) or path.endswith(IGNORED_SUFFIX.encode()):
            return None
        return path.removeprefix(self._folder).decode()

    def _take_open(self, call: Call) -> bool:
        path, flags = call.strings[0], call.words[2]
        if path + b"/" == self._folder:
            self._folders.add(call.result)
        name = self._name(path)
        if name is None:
            return False
        new = name not in self._names
        if new:
            self._rename(name, _File())
        file = self._names[name]
        if "O_TRUNC" in flags and file.content:
            file.change(0)
        self._open[call.result] = (file, 0)
        return new

    def _take_write(self, call: Call) -> bool:
        number = int(call.words[0])
        if number not in self._open:
            return False
        file, at = self._open[number]
        if call.name == "lseek":
            self._open[number] = (file, call.result)
            return False
        if call.name == "ftruncate":
            file.change(int(call.words[1]))
        elif call.name == "pwrite64":
            file.change((int(call.words[3]), call.strings[0][: call.result]))
        else:
            file.change((at, call.strings[0][: call.result]))
            self._open[number] = (file, at + call.result)
        return True

    def _take_sync(self, number: int) -> bool:
        if self._lies:
            return False
        if number in self._folders:
            self._synced = dict(self._names)
            self._pending.clear()
        elif number in self._open:
            self._open[number][0].sync()
        else:
            return False
        return True

    def _take_name(self, call: Call) -> bool:
        old = self._name(call.strings[0])
        if call.name == "unlink":
            if old is None:
                return False
            self._rename(old, None)
            return True
        new = self._name(call.strings[1])
        if old is None or new is None:
            return False
        self._rename(new, self._names[old])
        if call.name == "rename":
            self._rename(old, None)
        return True

    def _rename(self, name: str, file: _File | None) -> None:
        self._pending.append((name, file))
        _set(self._names, name, file)

    # ── What may be found ─────────────────────────────────────────────────────────────────────────────────────────────

    def killed(self) -> Content:
        """The program ended, the machine goes on: everything that was written."""
        return {name: bytes(file.content) for name, file in self._names.items()}

    def synced(self) -> Content:
        """Only what was synced."""
        return {name: bytes(file.synced) for name, file in self._synced.items()}

    def torn(self, chance: random.Random) -> Content:
        """What was synced, and of the rest any half."""
        names = dict(self._synced)
        for name, file in self._pending[: chance.randint(0, len(self._pending))]:
            _set(names, name, file)
        return {name: file.torn(chance) for name, file in names.items()}


def _set(names: dict[str, _File], name: str, file: _File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file
