"""Puts every closed séance to the persons who must certify it, until they have.

    séance closed ──► its entries read, in small steps ──► report and note ──► up/statement
                                                                └──► again on each connection, and when asked for

Nothing of it is kept but the journal: after a restart the same entries give the same report and the same text. A report
may be longer than a broker's packet, so it goes in parts; the note is in each.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from controller.certify.faults import CertifyFault
from controller.certify.note import Signer, sign_note
from controller.delivery.bus import Bus, BusFault, Message
from controller.delivery.wire import to_json
from controller.registers.source import Entries, state_from
from games.signals import Role

PART_CHARACTERS = 16_000
"""Characters of a report in one message: every broker takes so much, however many bytes its letters need."""

STATEMENT_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Posted:
    """A statement as it is published: the note that the table signed, and the payload of each message."""

    note: str
    payloads: tuple[bytes, ...]


class StatementDesk:
    """Only the event loop's thread may call it.

    ``signers`` are the table's keys, two while one replaces the other; ``roles`` are those whose signatures each
    statement needs.
    """

    def __init__(
        self,
        *,
        entries: Entries,
        signers: tuple[Signer, ...],
        bus: Bus,
        topic: str,
        roles: tuple[Role, ...],
        on_fault: Callable[[BusFault], None],
    ) -> None:
        self._entries = entries
        self._signers = signers
        self._bus = bus
        self._topic = topic
        self._roles = roles
        self._on_fault = on_fault
        self._awaited: tuple[str, ...] = ()
        self._posted: dict[str, Posted] = {}
        self._failed: set[str] = set()
        self._stirred = asyncio.Event()

    def await_certification(self, seances: tuple[str, ...]) -> None:
        """The closed séances that nobody has certified are now these."""
        if seances == self._awaited:
            return
        self._awaited = seances
        for name in self._posted.keys() - set(seances):
            del self._posted[name]
        self._stirred.set()

    def note(self, seance: str) -> str | None:
        """The note to be signed, None when no statement of this séance waits, or it is not made yet."""
        posted = self._posted.get(seance)
        return None if posted is None else posted.note

    def publish(self, seance: str) -> int:
        """Publish a statement that waits, once more; returns in how many parts, 0 when there is none."""
        posted = self._posted.get(seance)
        if posted is None:
            return 0
        for payload in posted.payloads:
            self._bus.publish(Message(self._topic, payload, content_type=STATEMENT_TYPE))
        return len(posted.payloads)

    def publish_all(self) -> None:
        """There is a new connection: whoever listens now may have missed what was said before."""
        for seance in self._posted:
            self.publish(seance)

    async def run(self) -> None:
        """Make what is to be made, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            for seance in self._awaited:
                if seance not in self._posted and seance not in self._failed:
                    await self._make(seance)

    async def _make(self, seance: str) -> None:
        """Make one statement. A séance that cannot be read is told as a fault, and the table plays on."""
        steps = state_from(self._entries, seance)
        try:
            while True:
                next(steps)
                await asyncio.sleep(0)
        except StopIteration as ended:
            statement = ended.value
        except CertifyFault as fault:
            self._failed.add(seance)
            self._on_fault(BusFault(fault.code, fault.detail))
            return
        note = sign_note(statement.text, *self._signers)
        self._posted[seance] = Posted(note, tuple(self._payloads(seance, note, statement.report)))
        self.publish(seance)

    def _payloads(self, seance: str, note: str, report: str) -> list[bytes]:
        parts = [report[at : at + PART_CHARACTERS] for at in range(0, len(report), PART_CHARACTERS)]
        return [
            to_json(
                {
                    "seance": seance,
                    "roles": list(self._roles),
                    "note": note,
                    "part": number,
                    "parts": len(parts),
                    "report": part,
                }
            )
            for number, part in enumerate(parts, 1)
        ]
