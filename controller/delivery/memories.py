"""What others remember of this table's journal: checkpoints that our key signed, and who keeps them.

The mirror's acknowledgement says what it holds durably; the line of a witness, what it saw; our own retained
checkpoint, what we once published. None is believed for who keeps it: it bears our signature, or it is passed over.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import structlog

from controller.certify.checkpoint import parse_checkpoint
from controller.certify.faults import NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier, open_note
from controller.delivery.bus import Message
from controller.delivery.centre import Acknowledgement, open_acknowledgement
from controller.delivery.recall import Recalled
from controller.delivery.topics import Topics

BROKER = "the broker"
"""Who keeps what we published ourselves."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Who may remember: the mirror, and witnesses by the names of their topics. ``own`` are the table's keys."""

    own: LogKeys
    mirror: Verifier
    witnesses: Mapping[str, Verifier]


@dataclass(frozen=True, slots=True)
class Memory:
    """``keeper`` keeps a checkpoint of ``size`` entries under ``root`` that our key signed."""

    size: int
    root: bytes
    keeper: str


class Memories:
    """Hears what is remembered, and entries that come back (``Listener``)."""

    def __init__(self, topics: Topics, others: Others) -> None:
        self.ack: Acknowledgement | None = None
        """The mirror's newest."""
        self.recalled: Recalled | None = None
        """Where entries go that come back; None while none was asked for."""
        self._topics = topics
        self._others = others
        self._by_keeper: dict[str, Memory] = {}
        self._cosigners = {topics.witness(name): witness for name, witness in others.witnesses.items()}
        self._cosigners[topics.ack] = others.mirror
        self.filters = (topics.entry, topics.checkpoint, *self._cosigners)
        self._heard = asyncio.Event()

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._by_keeper.values())

    @property
    def furthest(self) -> Memory | None:
        """The largest that anybody remembers."""
        return max(self._by_keeper.values(), key=lambda memory: memory.size, default=None)

    async def heard(self, within_s: float) -> bool:
        """Wait until something new is heard; False when nothing is ``within_s``."""
        self._heard.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._heard.wait()
        except TimeoutError:
            return False
        return True

    def on_connected(self) -> None:
        """See ``Listener``: the retained messages follow."""

    def on_disconnected(self) -> None:
        """See ``Listener``: what was asked in vain is asked again."""

    def on_message(self, message: Message) -> None:
        """See ``Listener``."""
        if message.topic == self._topics.entry:
            if self.recalled is not None and self.recalled.take(message.payload):
                self._heard.set()
            return
        try:
            if message.topic == self._topics.checkpoint:
                self._remember(self._published(message.payload))
            else:
                self._acknowledged(message)
        except NoteFault as fault:
            logger.warning("E-ACK-REFUSED", topic=message.topic, detail=f"{fault.detail} ({fault.code})")

    def _published(self, payload: bytes) -> Memory:
        own = self._others.own
        checkpoint = parse_checkpoint(open_note(payload.decode("utf-8", errors="replace"), own.verifiers).text)
        if checkpoint.origin != own.origin:
            raise NoteFault("E-NOTE-FOREIGN", f"the checkpoint is one of {checkpoint.origin}, not of {own.origin}")
        return Memory(checkpoint.size, checkpoint.root, BROKER)

    def _acknowledged(self, message: Message) -> None:
        cosigner = self._cosigners[message.topic]
        ack = open_acknowledgement(message.payload, self._others.own, cosigner)
        if cosigner is self._others.mirror and (self.ack is None or ack.size > self.ack.size):
            self.ack = ack
        self._remember(Memory(ack.size, ack.root, cosigner.name))

    def _remember(self, memory: Memory) -> None:
        known = self._by_keeper.get(memory.keeper)
        if known is None or memory.size > known.size:
            self._by_keeper[memory.keeper] = memory
            self._heard.set()
