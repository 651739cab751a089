"""The daemon of one table: every part, wired once, and the tasks that keep them going.

    wheel ─┐                                ┌─► wheel, timers               (requests)
    panel ─┤                                ├─► lamps, public board, state  (what the new state shows)
    posts ─┼─► inbox ─► table ─► journal ───┤
    orders ┤                                ├─► answers to posts and staff
    timers ┘                                └─► publisher ─► broker

Everything on the right happens after the commit. A task that ends, or an exception in any callback, ends the daemon:
systemd starts it again, and the journal says where it was.
"""

import asyncio
import hmac
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from controller import history, snapshots
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, Verifier
from controller.certify.reader import Reader
from controller.certify.rotation import pending_rotation
from controller.certify.writer import Certifier
from controller.codec import to_plain
from controller.delivery.bus import Bus, BusFault, Message
from controller.delivery.centre import Acknowledgement
from controller.delivery.enrolment import founding_list, in_force
from controller.delivery.orders import OrderDesk
from controller.delivery.posts import PostsGateway
from controller.delivery.publisher import BROKER_CURSOR, Publisher
from controller.delivery.topics import Topics
from controller.delivery.wire import certified_reply, to_json
from controller.entropy import Entropy
from controller.healing import Healing
from controller.inbox import Inbox, Outcome
from controller.inherited_faults import InheritedFaults
from controller.options import Config
from controller.registers.desk import StatementDesk
from controller.service import Heartbeat
from controller.standing_rules import refuse_other_rules
from controller.storage_watch import StorageWatch
from controller.table import Certified, Table
from controller.tasks import end_all
from controller.timers import Timers
from controller.wheel_desk import WheelDesk
from drivers.clock import Clock
from drivers.panel import Panel, PanelSettings
from drivers.ports import ByteLine, EdgeInput, Output
from drivers.slingshot_wheel import SlingshotWheel
from games.custody import EntriesRestored, KeyReplaced
from games.persons import PersonEnrolled, PersonRevoked
from games.roulette.coup import RouletteState
from games.roulette.game import STATEMENT_ROLES, Roulette
from games.roulette.incident import DIRECTOR_KEY
from games.roulette.layout import pockets
from games.rules import Fact, Input, Request, SetTimer, Started, Stopping
from games.signals import ButtonPressed, JournalDoubted, OpenSeance

REPLY_EXPIRY_S = 60
"""An answer that no post fetched within this is worth nothing: the post repeats its request."""


logger = structlog.get_logger()

JOURNAL_DOUBTS = ("E-JOURNAL-ROLLED-BACK", "E-JOURNAL-FORKED")
"""What the mirror may find: the table then begins no round any more."""

AILING_INBOX = 4_000
"""So many inputs waiting mean that the table does not decide any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The ports of one table. ``open_line`` opens the wheel's serial line anew after each loss."""

    open_line: Callable[[], ByteLine]
    inputs: EdgeInput | None = None
    outputs: Output | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What differs between a table in service and a rehearsal. ``previous`` is the key that ``signer`` replaces."""

    clock: Clock
    entropy: Entropy
    boot: str
    salt: bytes
    signer: Signer
    software_sha256: str
    previous: Signer | None = None

    @property
    def signers(self) -> tuple[Signer, ...]:
        """Those that sign for this table now."""
        return (self.signer,) if self.previous is None else (self.previous, self.signer)

    @property
    def keys(self) -> LogKeys:
        """Their keys."""
        return LogKeys.of(*(signer.verifier for signer in self.signers))


class Part(Protocol):
    """A part of the daemon that has something to do of its own."""

    async def run(self) -> None:
        """Go on until cancelled."""
        ...


class Daemon:
    """One table. ``run`` keeps it going until ``stop`` is called or something fails."""

    def __init__(
        self,
        config: Config,
        *,
        past: Journal,
        reader: Reader,
        writer: Certifier,
        bus: Bus,
        hardware: Hardware,
        around: Surroundings,
        faults: dict[str, str] | None = None,
        healing: Healing | None = None,
    ) -> None:
        """``faults`` are the delivery's, by code, as far as the bus tells them: the status shows them.

        ``healing`` is what came back into the journal before this start, and is the first thing to be certified.
        """
        self.config = config
        self.around = around
        self.bus = bus
        self._reader = reader
        self._writer = writer
        self.topics = Topics(config.site, config.table.name)
        self.inbox = Inbox()
        self.game = Roulette(config.rules)
        self.timers = Timers(self.inbox, around.clock)
        self.wheel = SlingshotWheel(hardware.open_line, around.clock, self.emit, config.wheel_settings)
        self.wheel_desk = WheelDesk(self.wheel)
        self.panel = self._make_panel(hardware)
        state = history.restore(self.game, past, RouletteState)
        refuse_other_rules(config, state)
        self.inherited_faults = InheritedFaults(
            state.health.faults,
            around.clock,
            self.inbox.put,
            lambda: self.wheel.health().link_is_up,
            config.wheel.status_period_ms,
        )
        self.table = Table(
            self.game,
            state,
            self.inbox,
            writer,
            around.clock,
            size=past.size,
            seance_name=lambda state: state.seance.name,
            perform=self._perform,
            certified=self._on_certified,
        )
        self.publisher = self._make_publisher(past, reader)
        self.posts = self._make_posts()
        self.statements = StatementDesk(
            entries=reader,
            signers=around.signers,
            bus=bus,
            topic=self.topics.statement,
            roles=STATEMENT_ROLES,
            on_fault=self._on_fault,
        )
        self._founding = founding_list(config.person)
        self.persons = in_force(self._founding, state.persons)
        self.orders = self._make_orders()
        self.unclean = history.ended_unclean(past)
        self._healing = healing
        bus.attach(self, [self.topics.posts_in, self.topics.command])
        for index, leaf in history.tail(past):
            self.posts.remember(leaf, index)
        self._latest = range(0)
        self._latest_leaves: list[bytes] = []
        self._faults = {} if faults is None else faults
        self._ending: asyncio.Future[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()

    # ── Wiring ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _make_panel(self, hardware: Hardware) -> Panel | None:
        if hardware.inputs is None:
            return None
        options = self.config.panel
        settings = PanelSettings(
            buttons=tuple(options.buttons),
            keys=tuple(options.keys),
            lamps=tuple(options.lamps),
            settle_us=options.settle_ms * 1_000,
            minimum_us=options.minimum_ms * 1_000,
        )
        return Panel(hardware.inputs, hardware.outputs, self.around.clock, self.emit, settings)

    def _make_publisher(self, past: Journal, reader: Reader) -> Publisher:
        mirror = Verifier.parse(self.config.mirror.vkey) if self.config.mirror else None
        return Publisher(
            reader=reader,
            bus=self.bus,
            topics=self.topics,
            own=self.around.keys,
            mirror=mirror,
            witnesses={witness.name: Verifier.parse(witness.vkey) for witness in self.config.witness},
            cursor=past.cursor(BROKER_CURSOR),
            save_cursor=lambda name, size: self._on_journal(lambda journal: journal.set_cursor(name, size)),
            keep_acknowledgement=self._keep_acknowledgement,
            on_fault=self._on_fault,
        )

    def _keep_acknowledgement(self, ack: Acknowledgement) -> None:
        self._faults.pop("E-ACK-NONE", None)  # it was silent at the start, and is no more
        self._on_journal(lambda journal: journal.add_cosignature(ack.note, ack.cosigner))

    def _make_posts(self) -> PostsGateway:
        return PostsGateway(
            posts=self.config.table.posts,
            pockets=sorted(pockets(self.game.rules.wheel)),
            inbox=self.inbox,
            clock=self.around.clock,
            entropy=self.around.entropy,
            digest_player=self._digest_player,
            recall=self._recall,
            round_now=lambda: self.table.state.coup.round,
            greet=lambda post: snapshots.post(self.table.state, post),
            send=self._send_to_post,
        )

    def _make_orders(self) -> OrderDesk:
        return OrderDesk(
            origin=self.config.origin,
            boot=self.around.boot,
            rules_sha256=self.config.rules_sha256,
            clock=self.around.clock,
            entropy=self.around.entropy,
            persons=self.persons,
            inbox=self,
            recall=self._recall,
            next_seance=self._next_seance,
            statement_note=self.statements.note,
            publish_statement=self.statements.publish,
            send_reply=self._send_reply,
        )

    # ── In ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, signal: Input, done: Callable[[Outcome], None] | None = None) -> None:
        """Let an order in. The wheel is read before an opening: its parameters must be right now, not yesterday."""
        if isinstance(signal, OpenSeance) and self.config.wheel.commands and not self.table.state.seance.open:
            self._later(self._open_when_verified(signal, done))
            return
        self.inbox.put(signal, done)

    async def _open_when_verified(self, order: OpenSeance, done: Callable[[Outcome], None] | None) -> None:
        await self.wheel_desk.verified()
        self.inbox.put(order, done)

    def emit(self, signal: Input) -> None:
        """Let an observation in. The opening button needs a date, which only the shell knows."""
        self.inherited_faults.observe(signal)
        opening = isinstance(signal, ButtonPressed) and signal.button == "ouverture"
        if not opening or "director" not in self.table.state.seance.keys_on:
            self.inbox.put(signal)
            return
        self.put(
            OpenSeance(
                at_us=signal.at_us,
                by=DIRECTOR_KEY,
                seance=self._next_seance(),
                rules_sha256=self.config.rules_sha256,
            )
        )

    def on_message(self, message: Message) -> None:
        """A post or a member of staff wrote (``Listener``). What a broker had kept is nobody's wish of now."""
        if message.retain:
            return
        post = self.topics.post_of(message.topic)
        if post is not None:
            self.posts.receive(post, message.payload)
        else:
            self.orders.receive(message.payload, message.correlation)

    def on_connected(self) -> None:
        """The publisher sends what is retained; statements are not, and are said again."""
        self.statements.publish_all()

    def on_disconnected(self) -> None:
        """The table plays on; the posts see the broker's silence themselves."""

    # ── Out, after the commit ─────────────────────────────────────────────────────────────────────────────────────────

    def _on_certified(self, certified: Certified[RouletteState]) -> None:
        self._latest, self._latest_leaves = range(certified.first_index, certified.size), []
        self.publisher.certified(certified.size)
        if certified.milestone:
            self.publisher.flush()
        if all(_asked_by_post(fact) for fact in certified.facts):
            return  # answers to posts change nothing that is shown
        self.statements.await_certification(certified.state.statements.awaited)
        if any(isinstance(fact, PersonEnrolled | PersonRevoked) for fact in certified.facts):
            self.persons.update(in_force(self._founding, certified.state.persons))  # nobody is ever taken off the list
        self._show(certified.state)
        for index, fact in enumerate(certified.facts, certified.first_index):
            post = getattr(fact, "post", None)
            if post and not getattr(fact, "request", ""):
                self._send_to_post(post, certified_reply({}, self._recall(index)))

    def _show(self, state: RouletteState) -> None:
        self.publisher.set_document("display", to_json({**self.game.board(state), "simulation": self._simulation}))
        condition = snapshots.condition(self.game, state)
        self.publisher.set_document("state", lambda session: self._state_document(condition, session))
        if self.panel:
            known = self.config.panel.lamps
            self.panel.show({name: lamp for name, lamp in self.game.lamps(state).items() if name in known})

    def _perform(self, request: Request) -> None:
        if isinstance(request, SetTimer):
            self.timers.set(request)
        else:
            self.wheel_desk.perform(request)

    def _send_to_post(self, post: int, payload: bytes) -> None:
        self.bus.publish(Message(self.topics.post_out(post), payload, expiry_s=REPLY_EXPIRY_S))

    def _send_reply(self, payload: bytes, correlation: bytes | None) -> None:
        self.bus.publish(Message(self.topics.reply, payload, expiry_s=REPLY_EXPIRY_S, correlation=correlation))

    def _on_fault(self, fault: BusFault) -> None:
        self._faults[fault.code] = fault.detail
        if fault.code in JOURNAL_DOUBTS:
            self.emit(JournalDoubted(at_us=self._now_us(), code=fault.code, detail=fault.detail))
        logger.warning(fault.code, detail=fault.detail)

    def _on_journal(self, work: Callable[[Journal], Any]) -> None:
        self._later(self._writer.call(work))

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside the table; if it fails, the daemon ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

    # ── Facts about ourselves ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _simulation(self) -> bool:
        return self.config.table.simulation

    def _recall(self, index: int) -> bytes:
        """A certified entry. Those of the last commit are read together: a burst of answers needs them one by one."""
        if index not in self._latest:
            return self._reader.leaf(index)
        if not self._latest_leaves:
            self._latest_leaves = list(self._reader.leaves(self._latest.start, self._latest.stop))
        return self._latest_leaves[index - self._latest.start]

    def _digest_player(self, player: str) -> str:
        return hmac.digest(self.around.salt, player.encode(), "sha256").hex()[:32]

    def _next_seance(self) -> str:
        return history.next_seance(self.table.state.seance.last_name, self.around.clock.wall_ms(), self.config.zone)

    def _state_document(self, condition: str, session: int) -> bytes:
        return state_document(condition, self.around.boot, session, simulation=self._simulation)

    async def _certify_healing(self) -> None:
        """Entries that the disk had lost are here again: that comes before anything new."""
        if self._healing is not None:
            start, stop, cosigner = self._healing.from_size, self._healing.to_size, self._healing.cosigner
            await self._certify(EntriesRestored(at_us=self._now_us(), from_size=start, to_size=stop, cosigner=cosigner))

    async def _certify_rotation(self) -> None:
        """The first start with a new key says so in the journal; both keys sign what follows (see ``rotation``)."""
        statement = pending_rotation(self.around.previous, self.around.signer, self.table.state.custody.vkey)
        if statement is not None:
            old, new = (verifier.vkey for verifier in self.around.keys.verifiers)
            await self._certify(KeyReplaced(at_us=self._now_us(), old_vkey=old, new_vkey=new, statement=statement))

    def description(self) -> bytes:
        """What this table is, for the centre (retained)."""
        return to_json(
            snapshots.description(self.config, keys=self.around.keys, software_sha256=self.around.software_sha256)
        )

    def status(self) -> Mapping[str, Any]:
        """Everything that the daemon knows of itself, as plain JSON values."""
        return {
            "origin": self.config.origin,
            "boot": self.around.boot,
            "software_sha256": self.around.software_sha256,
            "simulation": self._simulation,
            "journal_size": self.table.size,
            "inbox": len(self.inbox),
            "table": snapshots.table(self.table.state, self.game),
            "wheel": to_plain(self.wheel.health()),
            "panel": to_plain(self.panel.health()) if self.panel else None,
            "delivery": to_plain(self.publisher.status()),
            "faults": dict(self._faults),
            "requests": {"posts": dict(self.posts.counts), "orders": dict(self.orders.counts)},
        }

    # ── Running ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(
        self,
        heartbeat: Heartbeat | None = None,
        storage: StorageWatch | None = None,
        verification: Part | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Play until ``stop``. Raises what ended a part of it; the process must then end too.

        ``on_ready`` is called when the start is certified. Nothing is sent to the outside before that (I-03).
        """
        ending = asyncio.get_running_loop().create_future()
        self._ending = ending
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.table.run())]
            await self._certify_healing()
            await self._certify(Started(at_us=self._now_us(), boot=self.around.boot, unclean=self.unclean))
            await self._certify_rotation()
            self.publisher.set_document("description", self.description())
            self._show(self.table.state)
            parts: list[Part | None] = [
                self.bus,
                self.publisher,
                self.statements,
                self.wheel,
                self.wheel_desk,
                self.panel,
                heartbeat,
                storage,
                verification,
            ]
            tasks += [group.create_task(part.run()) for part in parts if part is not None]
            on_ready()
            await ending
            await self._certify(Stopping(at_us=self._now_us(), boot=self.around.boot))
            self.publisher.set_document("state", lambda session: self._state_document("lost", session))
            await self.publisher.drain()
            await end_all(tasks)
        self.timers.stop()

    def stop(self) -> None:
        """Let ``run`` certify that the table stops, and return."""
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)

    def fail(self, error: BaseException) -> None:
        """A callback of the event loop failed: ``run`` raises it."""
        if self._ending is not None and not self._ending.done():
            self._ending.set_exception(error)

    def ailing(self) -> str:
        """The part of the daemon that is not alive, empty when all are: the watchdog is fed only then."""
        return "" if len(self.inbox) < AILING_INBOX else f"{len(self.inbox)} inputs wait"

    async def _certify(self, signal: Input) -> None:
        done = asyncio.get_running_loop().create_future()
        self.inbox.put(signal, done.set_result)
        await done

    def _now_us(self) -> int:
        return self.around.clock.mono_us()

    @property
    def journal_size(self) -> int:
        """Number of certified entries."""
        return self.table.size


def _asked_by_post(fact: Fact) -> bool:
    return bool(getattr(fact, "request", ""))


def state_document(condition: str, boot: str, session: int, *, simulation: bool) -> bytes:
    """The retained state, and, with "lost", the will: a late will of an old session is known by its number."""
    return to_json({"state": condition, "boot": boot, "session": session, "simulation": simulation})
