"""A certified entry survives the power: a whole machine is cut off, again and again, while stakes flow.

A virtual machine with Debian's kernel and ext4 plays a table on a disk that forgets what was not flushed
(``proof.lossy_disk``); every commit is told to the world outside after it returned. At a random moment the plug is
pulled. The next boot finds the disk as it was left, opens and verifies the journal, and is compared with what the world
was told. Then the same on a disk that lies about flushing, where entries are lost: the start must notice by what the
mirror acknowledged, take the lost entries back from it, and play on.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.leaf import LEAF_PATTERN, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import format_note, open_note
from controller.certify.tree import root_of
from proof.lossy_disk import LossyDisk
from proof.machine import BOOT_WITHIN_S, Machine, build
from proof.recorded_writer import MIRROR, TABLE
from proof.results import Result, none_of

ROUNDS, LYING_ROUNDS = 50, 10
DISK_BYTES = 96 << 20
FRESH_EVERY = 10
"""Rounds after which the next one begins on an empty disk: a long journal would make every boot verify for long."""

FLOWING_COMMITS = 20
"""Commits that are waited for before the plug may be pulled."""

LOOK_S = 0.05
"""How often the world outside looks whether it was told something."""

KEYS = LogKeys.of(TABLE.verifier)
INDEX = 3
"""In ``LEAF_PATTERN``: the index of an entry."""


@dataclass(slots=True)
class World:
    """What the outside remembers of one disk: the entries it was told, and the newest checkpoint over them."""

    folder: Path
    entries: list[bytes] = field(default_factory=list)
    promised: Checkpoint | None = None
    _note: str = ""

    def prepare(self) -> None:
        """Lay out what the next boot may ask for."""
        (self.folder / "mount").unlink(missing_ok=True)
        for name in ("told", "entries"):
            (self.folder / name).write_bytes(b"")
        (self.folder / "remembered").write_bytes(b"".join(leaf + b"\n" for leaf in self.entries))
        (self.folder / "acknowledgement").write_text(self._cosigned(), encoding="utf-8")

    def _cosigned(self) -> str:
        if self.promised is None:
            return ""
        text = self.promised.text
        own = open_note(self._note, KEYS.verifiers).signatures
        return format_note(text, [*own, MIRROR.sign(text, 1_796_000_000)])

    def told(self) -> list[dict[str, Any]]:
        """What was said since the last boot; a line that the cut tore is nothing."""
        lines = (self.folder / "told").read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def learn(self) -> None:
        """Take in what was published before the cut."""
        for leaf in (self.folder / "entries").read_bytes().split(b"\n")[:-1]:
            match = LEAF_PATTERN.fullmatch(leaf)
            assert match is not None
            del self.entries[int(match[INDEX]) :]
            self.entries.append(leaf)
        for said in self.told():
            if "certified" in said:
                self._note = said["certified"]
                self.promised = parse_checkpoint(open_note(self._note, KEYS.verifiers).text)
        if self.promised is not None:
            del self.entries[self.promised.size :]
            assert root_of([leaf_hash(leaf) for leaf in self.entries]) == self.promised.root


@dataclass(frozen=True, slots=True)
class Boot:
    """What a boot after a cut found: entries promised before it, entries found, and what was said of them."""

    promised: int
    found: int
    sound: bool
    detected: str
    healed: int


class UnmountableError(Exception):
    """The disk holds no file system any more."""


class Table:
    """One disk through several cuts."""

    def __init__(self, work: Path, seed: int, *, lies: bool) -> None:
        self._work, self._lies = work, lies
        self._chance = random.Random(seed)
        self._built = build()
        self._image = work / "disk.img"
        shared = work / "shared"
        shared.mkdir()
        self.world = World(shared)
        self._make_file_system()

    def _make_file_system(self) -> None:
        with self._image.open("wb") as image:
            image.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)

    async def boot_and_cut(self) -> Boot:
        """Switch it on, let stakes flow for a while, pull the plug.

        A disk that lies may leave a file system that cannot be mounted. Then a technician makes a new one, and the
        start finds that the mirror has a journal and the disk has none.
        """
        try:
            return await self._boot_and_cut()
        except UnmountableError:
            if not self._lies:
                raise
            self._make_file_system()
            return await self._boot_and_cut()

    async def _boot_and_cut(self) -> Boot:
        promised = self.world.promised.size if self.world.promised else 0
        self.world.prepare()
        socket = self._work / "nbd"
        socket.unlink(missing_ok=True)
        disk = LossyDisk(self._image, socket, self._chance, lies=self._lies)
        await disk.start()
        machine = Machine(self._built, socket, self.world.folder)
        await machine.start([sys.executable, "-m", "proof.guest", "/run/data", "/run/shared"])
        try:
            await self._until_stakes_flow(machine)
            await asyncio.sleep(self._chance.random() * 2)
        finally:
            disk.cut()
            await machine.pull_the_plug()
            await disk.close()
        told = {key: value for said in self.world.told() for key, value in said.items() if key != "certified"}
        self.world.learn()
        return Boot(promised, told["found"], told.get("sound", False), told.get("detected", ""), told.get("healed", 0))

    async def _until_stakes_flow(self, machine: Machine) -> None:
        assert machine.process is not None
        async with asyncio.timeout(BOOT_WITHIN_S):
            while sum("certified" in said for said in self.world.told()) < FLOWING_COMMITS:
                if machine.process.returncode is not None and (self.world.folder / "mount").exists():
                    raise UnmountableError(f"the disk's file system is broken: {self._log()}")
                if machine.process.returncode is not None:
                    raise RuntimeError(f"the machine switched itself off: {self._log()}")
                await asyncio.sleep(LOOK_S)

    def _log(self) -> str:
        names = ("mount", "log", "console")
        there = [self.world.folder / name for name in names if (self.world.folder / name).exists()]
        return " / ".join(file.read_text(encoding="utf-8", errors="replace")[-2_000:] for file in there)


def cut(rounds: int, *, lies: bool) -> list[Boot]:
    """So many cuts, each followed by a boot that looks."""
    boots: list[Boot] = []
    seed = 0
    while len(boots) < rounds:
        seed += 1
        with tempfile.TemporaryDirectory() as work:
            table = Table(Path(work).resolve(), seed, lies=lies)
            asyncio.run(table.boot_and_cut())
            for _ in range(min(FRESH_EVERY, rounds - len(boots))):
                boots.append(asyncio.run(table.boot_and_cut()))
                lost = max(0, boots[-1].promised - boots[-1].found)
                print(
                    f"    cut {len(boots):>3} of {rounds}: {boots[-1].promised:,} promised, {lost:,} lost", flush=True
                )
    return boots


def prove() -> Iterator[Result]:
    """Honest disks, then lying ones."""
    boots = cut(ROUNDS, lies=False)
    lost = sum(max(0, boot.promised - boot.found) for boot in boots)
    promised = sum(boot.promised for boot in boots)
    yield none_of(
        "certified entries lost by a power cut that tears pages of 4 KiB",
        lost,
        promised,
        f"entries at {len(boots)} cuts",
        at_least=1,
    )
    unsound = sum(not boot.sound for boot in boots)
    yield none_of("journals that do not verify after a power cut", unsound, len(boots), "cuts", at_least=ROUNDS)
    lying = cut(LYING_ROUNDS, lies=True)
    losing = [boot for boot in lying if boot.found < boot.promised]
    what = "cuts of a lying disk that lost entries"
    yield Result(
        claim="control: a disk that lies about flushing loses entries",
        found=len(losing),
        tried=len(lying),
        what="cuts of a lying disk",
        goal="some",
        met=bool(losing),
    )
    undetected = sum(not boot.detected for boot in losing)
    yield none_of("losses that the next start did not notice", undetected, len(losing), what, at_least=1)
    unhealed = sum(boot.healed != boot.promised for boot in losing)
    yield none_of("losses not healed from the mirror's copy", unhealed, len(losing), what, at_least=1)
