"""The disk of the power cuts: what a flush keeps, what a cut takes, and how a liar differs."""

import asyncio
import random
import struct
from pathlib import Path

import pytest

from proof.lossy_disk import PAGE_SECTORS, SECTOR_BYTES, LossyDisk

BYTES = 128 * SECTOR_BYTES
PAGE_BYTES = PAGE_SECTORS * SECTOR_BYTES


def sectors(mark: int, count: int = 8) -> bytes:
    return bytes([mark]) * (count * SECTOR_BYTES)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "disk.img"
    file.write_bytes(bytes(BYTES))
    return file


def disk_on(image: Path, seed: int = 7, *, lies: bool = False) -> LossyDisk:
    return LossyDisk(image, image.with_suffix(".sock"), random.Random(seed), lies=lies)


def test_guest_reads_what_it_wrote_whether_flushed_or_not(image: Path) -> None:
    disk = disk_on(image)
    disk.write(0, sectors(1))
    disk.flush()
    disk.write(2 * SECTOR_BYTES, sectors(2, 1))
    assert disk.read(0, 4 * SECTOR_BYTES) == sectors(1, 2) + sectors(2, 1) + sectors(1, 1)


def test_cut_takes_no_flushed_page_and_some_of_the_others_each_as_a_whole(image: Path) -> None:
    disk = disk_on(image)
    disk.write(0, sectors(1, 64))
    disk.flush()
    disk.write(0, sectors(2, 64))
    cached, kept = disk.cut()
    found = image.read_bytes()[: 64 * SECTOR_BYTES]
    pages = {found[at : at + PAGE_BYTES] for at in range(0, len(found), PAGE_BYTES)}
    assert (cached, pages) == (64, {sectors(1), sectors(2)})
    assert 0 < kept < 64


def test_lying_disk_loses_flushed_sectors_but_only_the_last_ones(image: Path) -> None:
    disk = disk_on(image, lies=True)
    for mark in range(1, 9):
        disk.write((mark - 1) * PAGE_BYTES, sectors(mark))
        disk.flush()
    disk.cut()
    found = [image.read_bytes()[at * PAGE_BYTES] for at in range(8)]
    kept = sum(mark > 0 for mark in found)
    assert 0 < kept < 8
    assert found == [*range(1, kept + 1), *[0] * (8 - kept)]


async def test_disk_speaks_the_protocol_that_a_machine_speaks_to_it(image: Path) -> None:
    disk = disk_on(image)
    await disk.start()
    reader, writer = await asyncio.open_unix_connection(str(image.with_suffix(".sock")))
    assert await reader.readexactly(18) == b"NBDMAGICIHAVEOPT\0\x01"
    writer.write(struct.pack(">I", 1) + b"IHAVEOPT" + struct.pack(">II", 7, 6) + bytes(6))
    about = await reader.readexactly(20 + 12 + 20)
    assert struct.unpack(">Q", about[22:30]) == (BYTES,)
    writer.write(struct.pack(">IHHQQI", 0x25609513, 0, 1, 1, 512, 512) + sectors(9, 1))
    writer.write(struct.pack(">IHHQQI", 0x25609513, 0, 3, 2, 0, 0))
    writer.write(struct.pack(">IHHQQI", 0x25609513, 0, 0, 3, 512, 512))
    answers = await reader.readexactly(16 * 3 + 512)
    assert [answers[at + 15] for at in (0, 16, 32)] == [1, 2, 3]
    assert answers[48:] == sectors(9, 1)
    assert disk.cut() == (0, 0), "what was flushed is not in the cache any more"
    writer.close()
    await disk.close()
