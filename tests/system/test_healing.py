"""``tabled`` on a disk that went back in time: healed from the mirror before anything new, or not started at all."""

import asyncio
import json
import random
import shutil
import signal
import sqlite3
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest
import tomli_w

from controller.certify.checkpoint import parse_checkpoint
from controller.delivery.bus import Message
from tests.controller.mirror.casino import CENTRE
from tests.controller.mirror.rig import MirrorProcess
from tests.system.rig import Rig, Tabled
from tests.system.test_crashes import Gambler, resolved

MENDED_BY_A_PERSON = 2


class Mirror:
    """A mirror in its simplest form: it keeps what follows, cosigns what it has whole, and gives entries again."""

    def __init__(self, rig: Rig) -> None:
        self.signer = CENTRE
        self.entries: list[bytes] = []
        self.acknowledged = 0
        self.recalls: list[dict[str, int]] = []
        self._rig, self._topics = rig, rig.topics
        self._note = ""
        self._early: dict[int, bytes] = {}
        self.bus = rig.client("mirror")
        self.bus.attach(self, [self._topics.event, self._topics.checkpoint, self._topics.recall])

    def on_connected(self) -> None:
        self._rig.stir()

    def on_disconnected(self) -> None:
        pass

    def on_message(self, message: Message) -> None:
        if message.topic == self._topics.recall:
            self.recalls.append(json.loads(message.payload))
            for leaf in self.entries[self.recalls[-1]["from"] : self.recalls[-1]["to"]]:
                self.bus.publish(Message(self._topics.entry, leaf))
        elif message.topic == self._topics.event:
            self._early[int(json.loads(message.payload)["id"])] = message.payload
            while len(self.entries) in self._early:
                self.entries.append(self._early[len(self.entries)])
        else:
            self._note = message.payload.decode()
        self._acknowledge()
        self._rig.stir()

    def _acknowledge(self) -> None:
        if not self._note:
            return
        text = self._note.rpartition("\n\n")[0] + "\n"
        size = parse_checkpoint(text).size
        if self.acknowledged < size == len(self.entries):
            self.acknowledged = size
            line = self.signer.sign(text, 1_800_000_000).line
            self.bus.publish(Message(self._topics.ack, f"{self._note}{line}\n".encode(), retain=True))


@pytest.fixture
async def rig(tmp_path: Path, program: Callable[[str], str]) -> AsyncIterator[Rig]:
    """A table with a mirror in its configuration, on a real mosquitto; nobody waits for long at a start."""
    async with Rig(tmp_path, "mosquitto", program) as made:
        document = tomllib.loads(made.stage.config_file.read_text(encoding="utf-8"))
        key = CENTRE
        document["mirror"] = {"vkey": key.verifier.vkey, "start_wait_s": 3}
        made.stage.config_file.write_text(tomli_w.dumps(document), encoding="utf-8")
        yield made


async def plays_once(rig: Rig, mirror: Mirror) -> None:
    """A start and an orderly stop, until the mirror holds all of it."""
    tabled = await rig.start()
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0
    await rig.until(lambda: mirror.acknowledged == len(rig.leaves))


def kept(rig: Rig, name: str) -> Path:
    """A copy of the journal's files as they are now."""
    folder = rig.stage.folder / name
    folder.mkdir()
    for file in rig.journal.parent.glob("journal.sqlite*"):
        shutil.copy(file, folder / file.name)
    return folder


def gone_back(rig: Rig, folder: Path) -> None:
    """The disk is again what it was."""
    for file in rig.journal.parent.glob("journal.sqlite*"):
        file.unlink()
    for file in folder.iterdir():
        shutil.copy(file, rig.journal.parent / file.name)


async def test_disk_that_went_back_is_healed_and_that_is_the_first_new_entry(rig: Rig) -> None:
    mirror = Mirror(rig)
    await plays_once(rig, mirror)
    earlier, size = kept(rig, "earlier"), len(rig.leaves)
    await plays_once(rig, mirror)
    lost = rig.leaves
    gone_back(rig, earlier)
    assert len(rig.leaves) == size
    await plays_once(rig, mirror)
    assert mirror.recalls == [{"from": size, "to": len(lost)}]
    assert rig.leaves[: len(lost)] == lost
    (kind, data), (then, _) = rig.facts[len(lost) : len(lost) + 2]
    assert kind == "table.journal.healed"
    assert (data["from_size"], data["to_size"], data["cosigner"]) == (size, len(lost), "centre.example/mirror")
    assert then == "table.started"
    assert rig.verified().ok
    assert rig.replayed().custody.healed_size == len(lost)
    assert mirror.entries == rig.leaves
    assert not (rig.journal.parent / "healing.json").exists()


async def refused(rig: Rig, code: str) -> Tabled:
    """A start that ends by itself, for a person to mend, and changes no entry."""
    before = rig.leaves
    tabled = await rig.tabled().run()
    assert await tabled.ends() == MENDED_BY_A_PERSON
    assert code in tabled.codes
    assert tabled.heard() == []
    assert rig.leaves == before
    return tabled


async def test_journal_that_went_on_without_the_network_after_its_disk_went_back_is_frozen_and_kept(rig: Rig) -> None:
    mirror = Mirror(rig)
    await plays_once(rig, mirror)
    earlier = kept(rig, "earlier")
    await plays_once(rig, mirror)
    gone_back(rig, earlier)
    await starts_without_network(rig)
    await refused(rig, "E-JOURNAL-FORKED")
    (evidence,) = (rig.journal.parent / "evidence").iterdir()
    assert (evidence / "journal.sqlite").read_bytes() == rig.journal.read_bytes()
    await refused(rig, "E-JOURNAL-FORKED")
    assert list((rig.journal.parent / "evidence").iterdir()) == [evidence]


async def starts_without_network(rig: Rig) -> None:
    """A start and a stop for which the broker is somewhere else."""
    config = rig.stage.config_file.read_text(encoding="utf-8")
    port = rig.stage.config.mqtt.port
    rig.stage.config_file.write_text(config.replace(f"port = {port}", "port = 1"), encoding="utf-8")
    tabled = await rig.tabled().run()
    await tabled.hears("READY=1")
    assert "E-ACK-NONE" in tabled.codes
    assert "E-ACK-NONE" in (await rig.status())["faults"]
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0
    rig.stage.config_file.write_text(config, encoding="utf-8")


async def test_journal_that_was_altered_is_kept_as_evidence(rig: Rig) -> None:
    mirror = Mirror(rig)
    await plays_once(rig, mirror)
    content = bytearray(rig.journal.read_bytes())
    at = content.index(b'"fr.table.started.v1"')
    content[at + 4] ^= 1
    rig.journal.write_bytes(content)
    tabled = await rig.tabled().run()
    assert await tabled.ends() == MENDED_BY_A_PERSON
    assert "E-JOURNAL-ALTERED" in tabled.codes
    (evidence,) = (rig.journal.parent / "evidence").iterdir()
    assert (evidence / "journal.sqlite").read_bytes() == bytes(content) == rig.journal.read_bytes()


# ── With the reference mirror, while stakes flow ──────────────────────────────────────────────────────────────────────

CUTS = 3


def forgets(rig: Rig, earlier: Path) -> None:
    """The disk is what it was when ``earlier`` was taken, as after a power cut of a disk that lies about flushing."""
    for file in rig.journal.parent.glob("journal.sqlite*"):
        file.unlink()
    shutil.copy(earlier, rig.journal)


def snapshot(rig: Rig) -> Path:
    """The journal as it is at this instant, while the table plays."""
    earlier = rig.stage.folder / "forgotten.sqlite"
    earlier.unlink(missing_ok=True)
    with closing(sqlite3.connect(rig.journal)) as source, closing(sqlite3.connect(earlier)) as copy:
        source.backup(copy)
    return earlier


async def mirror_of(rig: Rig) -> MirrorProcess:
    """``tablectl mirror run`` for this table."""
    folder = rig.stage.folder / "mirror"
    folder.mkdir()
    (folder / "mirror.key").touch(0o600)
    (folder / "mirror.key").write_text(f"{CENTRE.skey}\n", encoding="ascii")
    vkey = rig.stage.vkey_file.read_text(encoding="ascii").strip()
    (folder / "policy").write_text(f"log {vkey}\nquorum none\n", encoding="utf-8")
    service = {
        "mode": "mirror",
        "name": "mirror",
        "key": str(folder / "mirror.key"),
        "policy": str(folder / "policy"),
        "store": str(folder / "mirror.sqlite"),
    }
    document = {"service": service, "mqtt": {"host": "127.0.0.1", "port": rig.stage.config.mqtt.port}}
    (folder / "mirror.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    return await MirrorProcess(folder / "mirror.toml").start()


async def test_disk_that_forgot_its_last_moments_while_stakes_flowed_is_healed_and_contradicts_nobody(rig: Rig) -> None:
    luck = random.Random(7)
    mirror = await mirror_of(rig)
    acks = rig.client("listener")
    heard: list[int] = []
    acks.attach(Heard(rig, heard), [rig.topics.ack])
    tabled = await rig.start()
    await rig.open()
    gamblers = [Gambler(rig, await rig.seat(number, 1_000_000)) for number in (1, 2)]
    playing = [asyncio.create_task(gambler.plays()) for gambler in gamblers]
    for cut in range(CUTS):
        await answered(rig, gamblers, 20)
        earlier, size = snapshot(rig), len(rig.leaves)
        await rig.until(lambda size=size: heard[-1] > size)
        await answered(rig, gamblers, luck.randint(5, 120))
        tabled.send(signal.SIGKILL)
        await tabled.ends()
        forgets(rig, earlier)
        tabled = await rig.start()
        await resolved(rig, cut + 1)
    for task in playing:
        task.cancel()
    await asyncio.wait(playing)
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0
    await rig.until(lambda: bool(heard) and heard[-1] == len(rig.leaves))
    assert await mirror.stop() == 0
    assert [code for code in mirror.codes if code.startswith("E-")] == []
    healed = [data for kind, data in rig.facts if kind == "table.journal.healed"]
    assert len(healed) == CUTS
    assert all(one["from_size"] < one["to_size"] for one in healed)
    assert rig.verified().ok
    rig.replayed()


class Heard:
    """Keeps the sizes that were acknowledged."""

    def __init__(self, rig: Rig, sizes: list[int]) -> None:
        self._rig, self._sizes = rig, sizes

    def on_message(self, message: Message) -> None:
        self._sizes.append(int(message.payload.split(b"\n")[1]))
        self._rig.stir()

    def on_connected(self) -> None:
        self._rig.stir()

    def on_disconnected(self) -> None:
        self._rig.stir()


async def answered(rig: Rig, gamblers: list[Gambler], more: int) -> None:
    """Wait until so many stakes more were answered."""
    wanted = sum(len(one.answered) for one in gamblers) + more
    await rig.until(lambda: sum(len(one.answered) for one in gamblers) >= wanted)
