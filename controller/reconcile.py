"""Before the first new entry: what do others remember of this journal? A disk may have gone back in time.

    nothing beyond the journal, same roots      ──► go on
    nobody answers in time                      ──► go on, and say so: the table plays without a network
    beyond the journal, and the mirror has it   ──► take the missing entries back, all or none, and certify that
    beyond the journal, and the mirror has not  ──► do not start: what was signed is held by nobody, or not yet
    another root                                ──► do not start: there are two histories under our key

A new entry in the place of a lost one would make our key sign two histories, which nothing heals. So the question comes
first, on a connection of its own that publishes nothing but the recall. What comes back is taken only if it follows our
own last entry and leads to the root that our own key signed; the mirror is believed in nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from controller.certify.faults import JournalFault
from controller.certify.leaf import FIRST_PREVIOUS, leaf_hash
from controller.certify.note import Verifier
from controller.delivery.bus import Bus
from controller.delivery.centre import Acknowledgement
from controller.delivery.memories import Memories, Memory, Others
from controller.delivery.recall import HEALED_BOUND, Recalled, ask, page_of
from controller.delivery.topics import Topics
from controller.healing import Healing, HealingNote
from controller.tasks import end_all

SETTLE_S = 0.5
"""After the acknowledgement: the other retained messages of the same subscription come within this."""

RECALL_WITHIN_S = 5.0
"""Patience for something new of a page of entries, before it is asked for again."""

RECALL_TRIES = 3
"""How often a page is asked for in vain before the start gives up; the next start asks again."""

QUIET_S = 1.0
"""When what came does not fit, each page is asked for once more, until nothing new comes for so long."""

ROUNDS = 5
"""How often a start heals at the most: the mirror may have held more by the time that a healing ends."""

logger = structlog.get_logger()


class Restorable(Protocol):
    """A journal that is open for writing, as far as it is healed here."""

    @property
    def size(self) -> int:
        """How many entries are certified."""
        ...

    def leaf(self, index: int) -> bytes:
        """Entry ``index``."""
        ...

    def restore_entries(self, leaves: Sequence[bytes], note: str, cosigner: Verifier) -> object:
        """Take the missing entries up to those of the acknowledgement ``note``, all or none. Raises JournalFault."""
        ...


class Reconciliation:
    """One comparison of ``journal`` with what ``others`` remember. ``root`` gives the journal's root at a size."""

    def __init__(
        self,
        journal: Restorable,
        root: Callable[[int], bytes],
        *,
        bus: Bus,
        topics: Topics,
        others: Others,
        note: HealingNote,
    ) -> None:
        self._journal = journal
        self._root = root
        self._bus = bus
        self._topics = topics
        self._others = others
        self._note = note
        self._memories = Memories(topics, others)
        bus.attach(self._memories, self._memories.filters)

    @property
    def answered(self) -> bool:
        """Whether the mirror's acknowledgement was heard."""
        return self._memories.ack is not None

    async def run(self, wait_s: float) -> Healing | None:
        """Compare, and heal what must and can be. Returns what is to be certified as healed, by this start or before.

        ``wait_s`` is how long the mirror's acknowledgement is waited for. Raises OSError, and JournalFault:
        E-JOURNAL-FORKED, E-HEAL-BEHIND, E-HEAL-SILENT, E-HEAL-TOO-MANY, E-JOURNAL-WRITE.
        """
        connection = asyncio.get_running_loop().create_task(self._bus.run())
        try:
            for _ in range(ROUNDS):
                await self._wait(wait_s)
                furthest = self._compare()
                if furthest is None or furthest.size <= self._journal.size:
                    break
                await self._heal(furthest)
            else:
                raise JournalFault("E-HEAL-SILENT", f"after {ROUNDS} healings the mirror still holds more")
        finally:
            await end_all([connection])
        if not connection.cancelled():
            connection.result()  # it never ends by itself, but by a bug
        return self._note.done(self._journal.size, self._root)

    async def _wait(self, wait_s: float) -> None:
        """Until the acknowledgement is there and reaches whatever else is remembered beyond the journal, or in vain."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while await self._memories.heard(SETTLE_S) or not self._complete():
                    pass

    def _complete(self) -> bool:
        """Whether the mirror answered, and holds whatever is remembered beyond the journal."""
        ack, furthest = self._memories.ack, self._memories.furthest
        return ack is not None and furthest is not None and furthest.size <= max(self._journal.size, ack.size)

    def _compare(self) -> Memory | None:
        """The largest memory, after those within the journal were found to be of its history."""
        for memory in self._memories:
            if memory.size <= self._journal.size and self._root(memory.size) != memory.root:
                detail = f"{memory.keeper} keeps a checkpoint of {memory.size} entries that this table signed"
                raise JournalFault("E-JOURNAL-FORKED", f"{detail}; the first {memory.size} of this journal are others")
        return self._memories.furthest

    # ── Healing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _heal(self, furthest: Memory) -> None:
        """Take back what is missing, up to the mirror's acknowledgement."""
        size, ack = self._journal.size, self._memories.ack
        if ack is None or ack.size < furthest.size:
            held = "does not answer" if ack is None else f"holds {ack.size}"
            detail = f"{furthest.keeper} keeps a checkpoint of {furthest.size} entries that this table signed"
            raise JournalFault("E-HEAL-BEHIND", f"{detail}; the journal has {size}, the mirror {held}", size)
        if ack.size - size > HEALED_BOUND:
            raise JournalFault("E-HEAL-TOO-MANY", f"the mirror holds {ack.size} entries, the journal {size}", size)
        logger.warning("E-JOURNAL-ROLLED-BACK", journal_size=size, mirror_size=ack.size, detail="healing begins")
        recalled = self._memories.recalled = Recalled(self._others.own.origin, range(size, ack.size))
        await self._recall(recalled)
        self._note.write(Healing(from_size=size, to_size=ack.size, root=ack.root.hex(), cosigner=ack.cosigner.name))
        if not self._restored(recalled, ack):
            await self._recall_all(recalled)
            if not self._restored(recalled, ack):
                detail = f"nothing that came back follows entry {size - 1} and leads to the {ack.size} entries"
                raise JournalFault("E-JOURNAL-FORKED", f"{detail} that this table signed", size)
        logger.warning("healed", from_size=size, to_size=ack.size)

    async def _recall(self, recalled: Recalled) -> None:
        """Ask page by page until something came for every entry."""
        tries = 0
        while (missing := recalled.missing) and tries < RECALL_TRIES:
            page = page_of(missing)
            ask(self._bus, self._topics, page)
            while recalled.missing.start < page.stop and await self._memories.heard(RECALL_WITHIN_S):
                pass
            tries = 0 if recalled.missing.start > missing.start else tries + 1
        if recalled.full:
            raise JournalFault("E-HEAL-TOO-MANY", f"more came back than a start can hold, at entry {missing.start}")
        if missing:
            detail = f"the mirror did not give entries {missing.start} to {missing.stop - 1} again"
            raise JournalFault("E-HEAL-SILENT", detail, missing.start)

    async def _recall_all(self, recalled: Recalled) -> None:
        """Ask for everything once more: rubbish may have come first, and the right entries after it."""
        wanted = recalled.wanted
        while wanted:
            page = page_of(wanted)
            ask(self._bus, self._topics, page)
            while await self._memories.heard(QUIET_S):
                pass
            wanted = range(page.stop, wanted.stop)

    def _restored(self, recalled: Recalled, ack: Acknowledgement) -> bool:
        """Whether the journal took one of the chains that follow our last entry."""
        size = self._journal.size
        last = leaf_hash(self._journal.leaf(size - 1)) if size else FIRST_PREVIOUS
        for chain in recalled.chains(last):
            try:
                self._journal.restore_entries(chain, ack.note, ack.cosigner)
            except JournalFault as fault:
                if fault.code == "E-JOURNAL-WRITE":
                    raise
                logger.warning(fault.code, detail=fault.detail)
            else:
                return True
        return False
