"""The desk that puts a statement to the persons: who signs it for the table, and what a part may hold."""

import asyncio
import json
from pathlib import Path
from typing import Any

from controller.certify.note import Signer, open_note
from controller.delivery.bus import MemoryExchange, Message
from controller.registers.desk import StatementDesk
from controller.rehearsal.virtual_time import VirtualTimeLoop
from games.signals import Role

LEAVES = (Path(__file__).parent / "seance.jsonl").read_bytes().splitlines()
ORIGIN = "casino.example.simulation/table/t07/1"
OLD, NEW = Signer(ORIGIN, b"o" * 32), Signer(ORIGIN, b"n" * 32)


class Kept:
    """A journal whose only entries are those of one séance."""

    size = len(LEAVES)

    def leaves(self, start: int, stop: int) -> list[bytes]:
        return LEAVES[start:stop]

    def root(self, size: int) -> bytes:
        return size.to_bytes(32, "big")


class Ear:
    """One end of the broker: knows when it is connected, and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.connected, self.enough = asyncio.Event(), asyncio.Event()

    def on_message(self, message: Message) -> None:
        self.heard.append(json.loads(message.payload))
        self.enough.set()

    def on_connected(self) -> None:
        self.connected.set()

    def on_disconnected(self) -> None: ...


def test_statement_is_signed_by_both_keys_while_one_replaces_the_other() -> None:
    async def story() -> dict[str, Any]:
        exchange, heard, own = MemoryExchange(), Ear(), Ear()
        table, person = exchange.bus("table"), exchange.bus("person")
        person.attach(heard, ["statement"])
        table.attach(own, [])
        desk = StatementDesk(
            entries=Kept(),
            signers=(OLD, NEW),
            bus=table,
            topic="statement",
            roles=(Role.DIRECTOR, Role.CASHIER),
            on_fault=lambda fault: None,
        )
        running = [asyncio.create_task(part.run()) for part in (table, person, desk)]
        await own.connected.wait()
        await heard.connected.wait()
        desk.await_certification(("2026-11-30-1",))
        await heard.enough.wait()
        for task in running:
            task.cancel()
        return heard.heard[0]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        told = runner.run(story())
    assert told["roles"] == ["director", "cashier"]
    for key in (OLD, NEW):
        assert len(open_note(told["note"], [key.verifier]).signatures) == 1
