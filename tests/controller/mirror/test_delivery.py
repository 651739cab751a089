"""The mirror as a process at a real broker: killed at any instant, cloned tables, witnesses. Nothing is lost."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.delivery.bus import Message
from controller.delivery.centre import open_acknowledgement
from tests.controller.mirror.casino import CENTRE, ORIGIN, TOPICS, WITNESS, Opener, Table
from tests.controller.mirror.conftest import free_port
from tests.controller.mirror.rig import PATIENCE_S, Broker, Delivery, Listening, MirrorProcess

KILLS = 5


class House:
    """One broker, its mirrors and its tables; everything is stopped at the end."""

    def __init__(self, folder: Path, mosquitto: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.broker = Broker(mosquitto, folder, self.port)
        self.ends: list[Callable[[], Awaitable[object]]] = []

    def config(self, store: str, *tables: Table, mode: str = "mirror", signer: Signer = CENTRE) -> Path:
        """Write the configuration of a mirror or a witness that follows ``tables``."""
        key, policy, config = (self.folder / f"{mode}.{ending}" for ending in ("key", "policy", "toml"))
        key.write_text(f"{signer.skey}\n")
        key.chmod(0o600)
        logs = [f"log {verifier.vkey}\n" for table in tables for verifier in table.keys.verifiers]
        policy.write_text("".join([*logs, "quorum none\n"]))
        lines = (
            f'mode = "{mode}"',
            f'name = "{mode}"',
            f'key = "{key}"',
            f'policy = "{policy}"',
            f'store = "{store}"',
            "volatile = true",
        )
        mqtt = ("[mqtt]", 'host = "127.0.0.1"', f"port = {self.port}")
        config.write_text("\n".join(["[service]", *lines, *mqtt, ""]))
        return config

    async def mirror(self, config: Path) -> MirrorProcess:
        process = await MirrorProcess(config).start()
        self.ends.append(process.stop)
        return process

    def table(self, table: Table, **options: str) -> Delivery:
        delivery = Delivery(table, self.port, **options)  # type: ignore[arg-type]
        self.ends.append(delivery.stop)
        return delivery

    async def listening(self, *filters: str, name: str = "ear") -> Listening:
        listener = await Listening(self.port, filters, name).connected()
        self.ends.append(listener.stop)
        return listener


@pytest.fixture
async def house(tmp_path: Path, program: Callable[[str], str]) -> AsyncIterator[House]:
    made = House(tmp_path, program("mosquitto"))
    await made.broker.start()
    yield made
    for end in reversed(made.ends):
        await end()
    await made.broker.kill()


async def test_mirror_process_acknowledges_what_a_table_delivers_and_stops_when_asked(
    house: House, opening: Opener
) -> None:
    table = Table(entries=1_000)
    mirror = await house.mirror(house.config(opening.url, table))
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 1_000)
    delivery.certify(500)
    await delivery.until(lambda: delivery.acknowledged == 1_500)
    assert await mirror.stop() == 0
    assert opening.read().leaves(ORIGIN, 0, 9_999) == table.all


async def test_mirror_process_killed_again_and_again_loses_nothing(house: House, opening: Opener) -> None:
    tables = [Table(f"casino.example/table/t0{number}/1", entries=20) for number in range(3)]
    config = house.config(opening.url, *tables)
    mirror = await house.mirror(config)
    deliveries = [house.table(table) for table in tables]
    for kill in range(KILLS):
        for delivery in deliveries:
            delivery.certify(300 + 50 * kill)
        # A different instant each time: after nothing, after the first acknowledgement, after some of them.
        await deliveries[0].until(partial(are_acknowledged, deliveries, kill % 3))
        await mirror.kill()
        mirror = await house.mirror(config)
    for delivery in deliveries:
        await delivery.until(partial(is_acknowledged, delivery))
    await mirror.stop()
    store = opening.read()
    assert {held.origin: (held.size, held.fork) for held in store.held()} == {
        table.origin: (len(table.all), "") for table in tables
    }
    for table in tables:
        assert store.leaves(table.origin, 0, 99_999) == table.all


async def test_mirror_process_says_everything_again_to_a_broker_that_forgot(house: House, tmp_path: Path) -> None:
    table = Table(entries=50)
    await house.mirror(house.config(str(tmp_path / "mirror.sqlite"), table))
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 50)
    await delivery.stop()
    await house.broker.kill()
    await house.broker.start()
    ear = await house.listening(TOPICS.ack)
    await ear.until(lambda: bool(ear.messages))
    assert ear.messages[0].payload.decode() == delivery.acks[-1].note


async def test_mirror_process_cloned_card_is_a_fork_and_its_evidence_comes_out_as_files(
    house: House, tmp_path: Path
) -> None:
    table = Table(entries=100)
    config = house.config(str(tmp_path / "mirror.sqlite"), table)
    mirror = await house.mirror(config)
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 100)
    clone = table.branch(90, 60)
    twin = house.table(clone, name="twin")
    await twin.until(lambda: bool(twin.faults))  # it hears what is held, and sends nothing but its checkpoint
    await mirror.until(lambda: delivery.acknowledged == 100)
    delivery.certify(80)
    await mirror.until(lambda: "E-MIRROR-FORK" in mirror.codes)
    status, shown = await tablectl("mirror", "forks", "--json", "--config", str(config), "--out", str(tmp_path / "out"))
    assert status == 1
    (fork,) = shown["forks"]
    assert (fork["origin"], fork["cosigned"]) == (ORIGIN, 100)
    contents = contents_of(shown["written"])
    assert clone.note().encode() in contents
    assert delivery.acks[-1].note.encode() in contents
    assert delivery.acknowledged == 100
    status, rows = await tablectl("mirror", "status", "--json", "--config", str(config))
    assert status == 1
    assert rows[0]["fork"]


async def test_mirror_process_table_with_a_cut_tail_is_shown_and_told_what_is_held(
    house: House, tmp_path: Path
) -> None:
    table = Table(entries=100)
    config = house.config(str(tmp_path / "mirror.sqlite"), table)
    mirror = await house.mirror(config)
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 100)
    await delivery.stop()
    back = house.table(table.branch(60, 0), name="back")
    await back.until(lambda: bool(back.faults))
    await mirror.until(lambda: "E-MIRROR-ROLLED-BACK" in mirror.codes)
    status, rows = await tablectl("mirror", "status", "--json", "--config", str(config))
    assert (status, rows[0]["rolled_back_to"], rows[0]["fork"]) == (1, 60, None)


async def test_mirror_process_gives_back_what_a_table_recalls(house: House, tmp_path: Path) -> None:
    table = Table(entries=400)
    await house.mirror(house.config(str(tmp_path / "mirror.sqlite"), table))
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 400)
    ear = await house.listening(TOPICS.entry)
    await ear.bus.publish(Message(TOPICS.recall, json.dumps({"from": 10, "to": 390}).encode()))
    await ear.until(lambda: len(ear.messages) == 380)
    assert [message.payload for message in ear.messages] == table.all[10:390]


async def test_witness_process_beside_the_mirror_cosigns_the_same_tree_with_another_key(
    house: House, tmp_path: Path
) -> None:
    table = Table(entries=300)
    (tmp_path / "w").mkdir()
    await house.mirror(house.config(str(tmp_path / "mirror.sqlite"), table))
    await house.mirror(house.config(str(tmp_path / "w" / "witness.sqlite"), table, mode="witness", signer=WITNESS))
    ear = await house.listening(TOPICS.witness("witness"))
    delivery = house.table(table)
    await delivery.until(lambda: delivery.acknowledged == 300)
    keys = LogKeys.of(*table.keys.verifiers)
    await ear.until(lambda: any(b"\n300\n" in message.payload for message in ear.messages))
    (word,) = [message for message in ear.messages if b"\n300\n" in message.payload]
    assert open_acknowledgement(word.payload, keys, WITNESS.verifier).root == table.root(300)


def is_acknowledged(delivery: Delivery) -> bool:
    """Whether the mirror acknowledged all that the table certified."""
    return delivery.acknowledged == delivery.size


def are_acknowledged(deliveries: list[Delivery], at_least: int) -> bool:
    return sum(map(is_acknowledged, deliveries)) >= at_least


def contents_of(paths: list[str]) -> set[bytes]:
    return {Path(path).read_bytes() for path in paths}


async def tablectl(*words: str) -> tuple[int, Any]:
    """Run a command; its status and its JSON."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "controller.cli", *words, stdout=pipe, stderr=pipe
    )
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(said)
