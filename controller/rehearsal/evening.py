"""One evening at a table: the séance opens, players come and stake, incidents are settled, the last three are played.

The same evening runs on a broker in memory under virtual time (``tablectl simulate``) and on a real broker with a real
pseudo-terminal (``tablectl demo``): only the buses and the croupier's hands differ.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.delivery.bus import Bus, Message
from controller.delivery.topics import Topics
from controller.rehearsal.players import PlayerTwin
from controller.rehearsal.staff import CREDIT_CENTS, StaffTwin
from games.seance import LAST_ROUNDS

THINK_S = 1.0
"""What a person needs to see, decide and act."""

REPEAT_S = 20.0
"""After which a person whose order was refused, or whose button did nothing, tries again."""

STUCK_S = 180.0
"""After which staff do something about a table that stands still: a wheel is switched off and on, or play restarted."""

BETTING_S = 12.0
"""How long a croupier leaves the bets open before he launches the ball."""


class Hands(Protocol):
    """What the croupier, and the technician whom he calls, touch."""

    def press(self, button: str) -> None:
        """Press a button of the panel."""
        ...

    def turn(self, key: str, on: bool) -> None:
        """Turn a key switch."""
        ...

    def spin(self) -> None:
        """Launch the ball against the rotor; nothing happens while the last spin is not over."""
        ...

    def mend(self) -> None:
        """Switch a wheel that stopped itself off and on: one that takes no commands is mended by hand."""
        ...


@dataclass(slots=True)
class Seen:
    """What the evening has seen, for its summary."""

    rounds: int = 0
    voids: int = 0
    staked: int = 0
    returned: int = 0
    won: int = 0
    incidents: dict[str, int] = field(default_factory=dict)
    closed: bool = False


class PostClient:
    """A player's post on its own connection."""

    def __init__(self, player: PlayerTwin, bus: Bus, topics: Topics) -> None:
        self.player = player
        self._bus = bus
        self._topics = topics
        bus.attach(self, [topics.display, topics.post_out(player.post)])

    def on_message(self, message: Message) -> None:
        """The board, or an answer."""
        if message.topic == self._topics.display:
            self._send(self.player.on_display(json.loads(message.payload)))
        else:
            self._send(self.player.on_answer(message.payload))

    def on_connected(self) -> None:
        """Nothing to do: the retained board comes by itself."""

    def on_disconnected(self) -> None:
        """Wait for the connection."""

    def _send(self, requests: list[bytes]) -> None:
        for request in requests:
            self._bus.publish(Message(self._topics.post_in(self.player.post), request))


class Evening:
    """The staff on its own connection, and the course of the evening. ``finished`` is set when the séance is closed."""

    def __init__(
        self,
        bus: Bus,
        topics: Topics,
        staff: StaffTwin,
        *,
        coups: int,
        hands: Hands | None,
        speed: float = 1.0,
        on_event: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        """``coups`` valid rounds are played, or play goes on for ever when it is 0; ``hands`` are the croupier's."""
        self._bus = bus
        self._topics = topics
        self._staff = staff
        self._coups = coups
        self._hands = hands
        self._speed = speed
        self._on_event = on_event
        self._next = 0
        self._board: Mapping[str, Any] = {}
        self._acted: tuple[Any, ...] = ()
        self.seen = Seen()
        self.finished = asyncio.Event()
        bus.attach(self, [topics.display, topics.reply, topics.event])

    @property
    def refused(self) -> list[dict[str, Any]]:
        """The orders that were refused, with the answers."""
        return self._staff.refused

    def on_connected(self) -> None:
        """Take up an order whose answer was lost."""
        self._publish(self._staff.again())

    def on_disconnected(self) -> None:
        """Wait for the connection."""

    def on_message(self, message: Message) -> None:
        """The board, an answer to an order, or a certified fact."""
        match message.topic:
            case self._topics.display:
                self._board = json.loads(message.payload)
                self._consider()
            case self._topics.reply:
                refused = len(self._staff.refused)
                self._publish(self._staff.on_reply(message.payload))
                if len(self._staff.refused) > refused:
                    self._after(REPEAT_S, self._act)
            case _:
                self._witness(json.loads(message.payload))

    def _publish(self, commands: list[bytes]) -> None:
        for command in commands:
            self._bus.publish(Message(self._topics.command, command, expiry_s=30))

    def _order(self, role: str, verb: str, **arguments: object) -> None:
        if not self._staff.wants(verb):
            self._publish(self._staff.order(role, verb, **arguments))

    # ── What the staff sees happen ────────────────────────────────────────────────────────────────────────────────────

    def _witness(self, entry: Mapping[str, Any]) -> None:
        if int(entry["id"]) < self._next:
            return  # sent again, because the mirror asked for it or the broker was away
        self._next = int(entry["id"]) + 1
        data, seen = entry["data"], self.seen
        match entry["type"]:
            case "fr.table.player.sat.v1":
                self._publish(self._staff.order("cashier", "post.credit", post=data["post"], cents=CREDIT_CENTS))
            case "fr.roulette.round.closed.v1":
                seen.rounds += 1
                seen.staked += data["staked"]
                seen.returned += data["returned"]
                seen.won += data["won"]
            case "fr.roulette.round.voided.v1":
                seen.voids += 1
            case "fr.roulette.incident.declared.v1":
                seen.incidents[data["cause"]] = seen.incidents.get(data["cause"], 0) + 1
                self._later(self._settle_incident, data)
            case "fr.table.order.refused.v1" if self._hands and "E-WHEEL-FAULTY" in data["reasons"]:
                self._later(self._hands.mend)
            case "fr.roulette.entry.made.v1" if self._hands:
                self._later(self._order, "director", "presence.attest")
            case "fr.table.seance.closed.v1":
                seen.closed = True
                self.finished.set()
        self._on_event(entry)

    def _settle_incident(self, declared: Mapping[str, Any]) -> None:
        """Read the number where it may count, else void the round. With a croupier, the director then attests."""
        if not declared["round"]:
            return
        if declared["number_allowed"] and declared["hint"]:
            self._order("croupier" if self._hands else "director", "number.enter", pocket=declared["hint"])
        elif self._hands:
            self._hands.press("coup-nul")
        else:
            self._order("director", "round.void", reason=declared["cause"])

    # ── What the board makes them do ──────────────────────────────────────────────────────────────────────────────────

    def _consider(self) -> None:
        board = self._board
        now = (board["seance"], board["seance_phase"], board["round"], board["phase"], self.seen.closed)
        if now == self._acted:
            return
        self._acted = now
        self._later(self._act)

    def _later(self, act: Callable[..., None], *arguments: Any) -> None:
        self._after(THINK_S, act, *arguments)

    def _after(self, wait_s: float, act: Callable[..., None], *arguments: Any) -> None:
        asyncio.get_running_loop().call_later(wait_s / self._speed, act, *arguments)

    def _act(self) -> None:
        board = self._board
        if self.seen.closed:
            return
        match board["seance_phase"]:
            case "closed":
                self._open()
            case "ended":
                self._order("director", "seance.close")
            case "open" if self._coups and self.seen.rounds >= self._coups - LAST_ROUNDS and board["phase"] == "idle":
                self._order("director", "last.announce")
        if board["phase"] == "halted":
            self._order("director", "game.restart")
        if board["seance_phase"] in ("open", "last"):
            if self._hands:
                self._conduct(self._hands)
                self._after(REPEAT_S, self._act_again, self._acted)
            self._after(STUCK_S, self._unstick, self._acted)

    def _act_again(self, acted: tuple[Any, ...]) -> None:
        """Nothing moved since then: the button that was pressed had no effect, and may have one now."""
        if acted == self._acted and self._board["phase"] in ("idle", "verifying"):
            self._act()

    def _unstick(self, acted: tuple[Any, ...]) -> None:
        """Nothing moved for long: the wheel is mended by hand, or reset by an incident and its restart."""
        if acted != self._acted:
            return
        if self._hands:
            self._hands.mend()
            self._act()
        elif self._board["phase"] == "idle":
            self._order("director", "incident.declare", reason="arrêt")

    def _open(self) -> None:
        if self._hands:
            self._hands.turn("croupier", on=True)
            self._later(self._hands.press, "mise-en-service")
            self._later(self._later, self._validate_opening)
        else:
            self._validate_opening()

    def _validate_opening(self) -> None:
        self._order("director", "seance.open")
        if 0 < self._coups <= LAST_ROUNDS:
            self._order("director", "last.announce")

    def _conduct(self, hands: Hands) -> None:
        match self._board["phase"]:
            case "idle":
                hands.press("faites-vos-jeux")
            case "betting":
                self._after(BETTING_S, self._launch, hands, self._board["round"])
            case "verifying":
                hands.press("confirmer")

    def _launch(self, hands: Hands, round_number: int) -> None:
        """Launch the ball for this round while its bets are open, and again when the spin was refused."""
        if self._board["phase"] == "betting" and self._board["round"] == round_number:
            hands.spin()
            self._after(REPEAT_S, self._launch, hands, round_number)
