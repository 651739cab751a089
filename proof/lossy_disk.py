"""A disk with a volatile cache, as a network block device (NBD, fixed newstyle) for a virtual machine.

What the guest writes stays in the cache until the guest flushes. When the power goes, each cached page of 4 KiB, which
is what a flash memory writes at once, reaches the medium or not, by chance: writes are torn and reordered. (Torn into
sectors of 512 bytes, ext4 itself does not always mount: a checksum of its journal covers 4 KiB. The journal of a table
is proved against such tears without a file system, in ``proof.crash_states``.) A disk that *lies* answers a flush at
once and does not do it: it writes in order, but later, when its cache is full, and the power takes the last writes with
it, flushed or not. So it goes back in time, and every check of its own content passes.
"""

import asyncio
import os
import random
import struct
from collections.abc import Iterable
from pathlib import Path

SECTOR_BYTES = 512
PAGE_SECTORS = 8
CACHE_SECTORS = 4_096
"""A lying disk writes its cache out when it holds more than this (2 MiB)."""

_MAGIC, _OPTION_MAGIC, _REPLY_MAGIC = b"NBDMAGIC", b"IHAVEOPT", 0x3E889045565A9
_REQUEST, _ANSWER = struct.Struct(">IHHQQI"), struct.Struct(">IIQ")
_ANSWER_MAGIC = 0x67446698
_EXPORT_NAME, _ABORT, _INFO, _GO = 1, 2, 6, 7
_ACKNOWLEDGED, _INFORMATION, _UNSUPPORTED = 1, 3, 0x80000001
_READ, _WRITE, _DISCONNECT, _FLUSH = 0, 1, 2, 3
_FORCE = 1
_FEATURES = 1 | 4 | 8
"""Has flags, understands flush, understands forced writes."""


class LossyDisk:
    """The medium ``image``, offered on the socket ``socket``; one guest at a time."""

    def __init__(self, image: Path, socket: Path, chance: random.Random, *, lies: bool = False) -> None:
        self._image = os.open(image, os.O_RDWR)
        self._bytes = os.fstat(self._image).st_size
        self._socket = socket
        self._chance = chance
        self._lies = lies
        self._cache: dict[int, bytes] = {}
        self._order: list[tuple[int, bytes]] = []
        self._server: asyncio.Server | None = None
        self._on = True
        self.flushes = 0

    async def start(self) -> None:
        """Offer it."""
        self._server = await asyncio.start_unix_server(self._serve, str(self._socket))

    async def close(self) -> None:
        """Let the medium go."""
        if self._server is not None:
            self._server.close()
        os.close(self._image)

    def cut(self) -> tuple[int, int]:
        """The power goes: sectors that were in the cache, and those of them that still reached the medium."""
        self._on = False
        cached = len(self._cache)
        if self._lies:
            kept = self._order[: PAGE_SECTORS * self._chance.randint(0, len(self._order) // PAGE_SECTORS)]
        else:
            pages = sorted({sector // PAGE_SECTORS for sector in self._cache})
            lucky = {page for page in pages if self._chance.random() < 0.5}
            kept = [one for one in self._cache.items() if one[0] // PAGE_SECTORS in lucky]
        self._write_out(kept)
        return cached, len(dict(kept))

    def _write_out(self, sectors: Iterable[tuple[int, bytes]]) -> None:
        for at, sector in sectors:
            os.pwrite(self._image, sector, at * SECTOR_BYTES)
        self._cache.clear()
        self._order.clear()

    def write(self, at: int, data: bytes) -> None:
        """The guest writes whole sectors."""
        for begin in range(0, len(data), SECTOR_BYTES):
            sector, content = (at + begin) // SECTOR_BYTES, data[begin : begin + SECTOR_BYTES]
            self._cache[sector] = content
            if self._lies:
                self._order.append((sector, content))

    def read(self, at: int, count: int) -> bytes:
        """What the guest sees: the cache over the medium."""
        found = bytearray(os.pread(self._image, count, at))
        for begin in range(0, count, SECTOR_BYTES):
            cached = self._cache.get((at + begin) // SECTOR_BYTES)
            if cached is not None:
                found[begin : begin + SECTOR_BYTES] = cached
        return bytes(found)

    def flush(self) -> None:
        """The guest wants everything on the medium."""
        self.flushes += 1
        if not self._lies:
            self._write_out(sorted(self._cache.items()))
        elif len(self._cache) > CACHE_SECTORS:
            self._write_out(list(self._order))

    # ── The protocol ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(_MAGIC + _OPTION_MAGIC + struct.pack(">H", 1))
            await reader.readexactly(4)
            if await self._agree(reader, writer):
                while await self._answer(reader, writer):
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the machine's plug was pulled
        finally:
            writer.close()

    async def _agree(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """The options of the beginning; whether the transmission begins."""
        while True:
            _, option, length = struct.unpack(">QII", await reader.readexactly(16))
            await reader.readexactly(length)
            if option == _EXPORT_NAME:
                writer.write(struct.pack(">QH", self._bytes, _FEATURES) + bytes(124))
                return True
            if option == _ABORT:
                return False
            if option not in (_INFO, _GO):
                writer.write(struct.pack(">QIII", _REPLY_MAGIC, option, _UNSUPPORTED, 0))
                continue
            about = struct.pack(">HQH", 0, self._bytes, _FEATURES)
            writer.write(struct.pack(">QIII", _REPLY_MAGIC, option, _INFORMATION, len(about)) + about)
            writer.write(struct.pack(">QIII", _REPLY_MAGIC, option, _ACKNOWLEDGED, 0))
            if option == _GO:
                return True

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether another may come."""
        _, flags, kind, handle, at, count = _REQUEST.unpack(await reader.readexactly(_REQUEST.size))
        data = await reader.readexactly(count) if kind == _WRITE else b""
        if not self._on:
            return False
        found = b""
        if kind == _READ:
            found = self.read(at, count)
        elif kind == _WRITE:
            self.write(at, data)
        if kind == _FLUSH or flags & _FORCE:
            self.flush()
        if kind == _DISCONNECT:
            return False
        writer.write(_ANSWER.pack(_ANSWER_MAGIC, 0, handle) + found)
        return True
