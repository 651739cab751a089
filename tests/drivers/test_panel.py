"""The panel on its twin, in virtual time: what a croupier does is told once, and nothing that breaks ends a game."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.panel import AUDIT_PERIOD_US, BLINK_HALF_PERIOD_US, EDGE_GRACE_US, Panel, PanelSettings
from drivers.ports import DeviceFault, Edge
from drivers.twin.panel import (
    CALLERS_BOUND,
    COMMAND_BYTES_BOUND,
    ContactModel,
    PanelRefusedError,
    PanelSocket,
    TwinInputs,
    TwinOutputs,
)
from games.rules import Input, Lamp
from games.signals import ButtonPressed, InputFaultSeen, KeyTurned

MS = 1_000
SECOND_US = 1_000_000
BUTTONS = ("faites_vos_jeux", "rien_ne_va_plus", "valider", "incident")
KEYS = ("croupier", "director")
LAMPS = ("bets", "no_more_bets", "incident")
SETTINGS = PanelSettings(buttons=BUTTONS, keys=KEYS, lamps=LAMPS, settle_us=5 * MS, minimum_us=20 * MS)


class VirtualTime(selectors.DefaultSelector):
    """A selector that does not wait: when nothing is ready, the time that the loop would have slept has passed."""

    now_us = 0
    sleeps = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing will ever happen again"
            self.now_us += -int(-timeout * 1_000_000 // 1)
            self.sleeps += timeout > 0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self.virtual = VirtualTime()
        super().__init__(self.virtual)

    def time(self) -> float:
        return self.virtual.now_us / 1_000_000


class Cabinet:
    """A panel on its twin, what it has told, and the hand that works it. It is also the clock of its loop."""

    def __init__(self, loop: VirtualLoop, seed: int = 7, inputs: Any = None) -> None:
        self.loop = loop
        self.inputs = inputs or TwinInputs(buttons=BUTTONS, keys=KEYS, clock=self, seed=seed)
        self.outputs = TwinOutputs(LAMPS)
        self.told: list[Input] = []
        self.panel = Panel(self.inputs, self.outputs, self, self.told.append, SETTINGS)

    def mono_us(self) -> int:
        return self.loop.virtual.now_us

    def wall_ms(self) -> int:
        return self.mono_us() // 1_000

    async def wait(self, for_us: int) -> None:
        """Let time pass."""
        waiting = self.loop.create_future()
        self.loop.call_later(for_us / 1_000_000, waiting.set_result, None)
        await waiting

    def presses(self) -> list[str]:
        return [signal.button for signal in self.told if isinstance(signal, ButtonPressed)]

    def turns(self) -> list[tuple[str, bool]]:
        return [(signal.key, signal.on) for signal in self.told if isinstance(signal, KeyTurned)]

    def faults(self) -> list[tuple[str, str]]:
        """The name and the code of each fault told."""
        return [(s.name, s.detail.split(":")[0]) for s in self.told if isinstance(s, InputFaultSeen)]


Story = Callable[[Cabinet], Awaitable[None]]


def play(story: Story, *, before: Callable[[Cabinet], object] = lambda cabinet: None, **made: Any) -> Cabinet:
    """Start a cabinet's panel, live the story, and stop the panel."""
    loop = VirtualLoop()
    cabinet = Cabinet(loop, **made)
    before(cabinet)

    async def evening() -> None:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(cabinet.panel.run())
            await cabinet.wait(MS)
            await story(cabinet)
            running.cancel()

    try:
        loop.run_until_complete(evening())
    finally:
        loop.close()
    return cabinet


# ── Buttons and keys ──────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 10_000))
def test_button_pressed_with_bounces_is_one_press_and_its_release_is_none(seed: int) -> None:
    async def story(cabinet: Cabinet) -> None:
        for _ in range(3):
            cabinet.inputs.press("rien_ne_va_plus")
            await cabinet.wait(300 * MS)

    assert play(story, seed=seed).presses() == ["rien_ne_va_plus"] * 3


def test_press_is_told_with_the_instant_at_which_it_became_certain() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.press("valider")
        await cabinet.wait(300 * MS)

    loopless = play(story, inputs=None, seed=7)
    (pressed,) = [signal for signal in loopless.told if isinstance(signal, ButtonPressed)]
    assert pressed.at_us == MS + 20 * MS


def test_keys_tell_how_they_stand_at_start_and_each_turn_once() -> None:
    async def story(cabinet: Cabinet) -> None:
        for key, on in (("director", True), ("croupier", True), ("director", True), ("director", False)):
            cabinet.inputs.turn(key, on)
            await cabinet.wait(100 * MS)

    expected = [("croupier", False), ("director", False), ("director", True), ("croupier", True), ("director", False)]
    assert play(story).turns() == expected


def turned_before_start(cabinet: Cabinet) -> None:
    async def turn() -> None:
        cabinet.inputs.turn("director", True)
        cabinet.inputs.stick("incident")
        await cabinet.wait(100 * MS)

    cabinet.loop.run_until_complete(turn())


def test_panel_started_with_a_turned_key_and_a_held_button_tells_the_key_and_no_press() -> None:
    async def story(cabinet: Cabinet) -> None:
        await cabinet.wait(500 * MS)
        cabinet.inputs.release("incident")
        await cabinet.wait(500 * MS)
        cabinet.inputs.press("incident")
        await cabinet.wait(500 * MS)

    cabinet = play(story, before=turned_before_start)
    assert cabinet.turns() == [("croupier", False), ("director", True)]
    assert cabinet.presses() == ["incident"]


@given(st.integers(0, 10_000))
def test_all_buttons_and_keys_at_once_are_each_told_once_and_do_no_harm(seed: int) -> None:
    async def story(cabinet: Cabinet) -> None:
        for name in BUTTONS:
            cabinet.inputs.press(name)
        for name in KEYS:
            cabinet.inputs.turn(name, True)
        await cabinet.wait(SECOND_US)

    cabinet = play(story, seed=seed)
    assert sorted(cabinet.presses()) == sorted(BUTTONS)
    assert sorted(cabinet.turns()[2:]) == [("croupier", True), ("director", True)]
    assert cabinet.faults() == []
    assert [signal.at_us for signal in cabinet.told] == sorted(signal.at_us for signal in cabinet.told)


def test_all_inputs_in_a_storm_are_each_told_as_a_fault_once_and_press_nothing() -> None:
    async def story(cabinet: Cabinet) -> None:
        for name in (*BUTTONS, *KEYS):
            cabinet.inputs.storm(name, edges=600, gap_us=MS)
        await cabinet.wait(3 * SECOND_US)
        cabinet.inputs.press("valider")
        await cabinet.wait(SECOND_US)

    cabinet = play(story)
    assert sorted(cabinet.faults()) == sorted((name, "E-INPUT-STORM") for name in (*BUTTONS, *KEYS))
    assert cabinet.presses() == ["valider"]
    assert cabinet.turns()[2:] == []


def test_button_found_down_after_a_storm_was_pressed_by_nobody() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.storm("valider", edges=501, gap_us=MS)
        await cabinet.wait(3 * SECOND_US)
        assert cabinet.panel.health().inputs[2].stable

    assert play(story).presses() == []


def test_key_found_turned_after_a_storm_is_told() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.storm("director", edges=501, gap_us=MS)
        await cabinet.wait(3 * SECOND_US)

    assert play(story).turns()[2:] == [("director", True)]


def test_button_that_sticks_is_told_once_and_works_again_when_it_is_free() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.stick("valider")
        await cabinet.wait(60 * SECOND_US)
        assert cabinet.panel.health().inputs[2].troubles == ("stuck",)
        cabinet.inputs.release("valider")
        await cabinet.wait(SECOND_US)
        assert cabinet.panel.health().inputs[2].troubles == ()
        cabinet.inputs.press("valider")
        await cabinet.wait(SECOND_US)

    cabinet = play(story)
    assert cabinet.faults() == [("valider", "E-INPUT-STUCK")]
    assert cabinet.presses() == ["valider", "valider"]


def test_interference_on_the_cable_presses_nothing_and_is_counted() -> None:
    async def story(cabinet: Cabinet) -> None:
        for width_us in (100, MS, 10 * MS, 19 * MS):
            cabinet.inputs.disturb("rien_ne_va_plus", width_us)
            await cabinet.wait(100 * MS)
        assert cabinet.panel.health().inputs[1].statistics.interference == 4

    assert play(story).presses() == []


def test_press_whose_release_was_lost_does_not_swallow_the_next_press() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.stick("valider")
        await cabinet.wait(500 * MS)
        cabinet.inputs.lose_edges(100)
        cabinet.inputs.release("valider")
        await cabinet.wait(2 * AUDIT_PERIOD_US)
        cabinet.inputs.lose_edges(0)
        cabinet.inputs.press("valider")
        await cabinet.wait(500 * MS)
        assert cabinet.panel.health().inputs[2].statistics.missed == 1

    assert play(story).presses() == ["valider", "valider"]


def test_key_whose_edges_were_lost_is_found_by_the_audit() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.lose_edges(100)
        cabinet.inputs.turn("director", True)
        await cabinet.wait(AUDIT_PERIOD_US + EDGE_GRACE_US + 40 * MS)

    assert play(story).turns()[2:] == [("director", True)]


class SlowInputs:
    """Inputs whose edges reach the loop late: the level is already the next one while they are on their way."""

    def __init__(self) -> None:
        self.levels = dict.fromkeys((*BUTTONS, *KEYS), False)
        self.tell: Callable[[Edge], None] | None = None

    def level(self, line: str) -> bool:
        return self.levels[line]

    def on_edge(self, callback: Callable[[Edge], None] | None) -> None:
        self.tell = callback

    def deliver(self, line: str, active: bool, at_us: int) -> None:
        assert self.tell is not None
        self.tell(Edge(line=line, active=active, at_us=at_us))

    def close(self) -> None:
        self.tell = None


def test_release_on_its_way_when_the_press_falls_due_does_not_undo_the_press() -> None:
    """The press is seen, then the loop hangs until after the release; its edge comes after the panel's own timer."""

    async def story(cabinet: Cabinet) -> None:
        inputs, began_us = cabinet.inputs, cabinet.mono_us()
        inputs.levels["valider"] = True
        inputs.deliver("valider", True, began_us)
        await cabinet.wait(10 * MS)
        inputs.levels["valider"] = False
        await cabinet.wait(30 * MS)
        assert cabinet.presses() == []
        inputs.deliver("valider", False, began_us + 35 * MS)
        assert cabinet.told[-1] == ButtonPressed(at_us=began_us + 20 * MS, button="valider")
        await cabinet.wait(SECOND_US)

    assert play(story, inputs=SlowInputs()).presses() == ["valider"]


def test_pulse_whose_end_is_on_its_way_when_it_falls_due_is_no_press() -> None:
    async def story(cabinet: Cabinet) -> None:
        inputs, began_us = cabinet.inputs, cabinet.mono_us()
        inputs.deliver("valider", True, began_us)
        await cabinet.wait(40 * MS)
        inputs.deliver("valider", False, began_us + 3 * MS)
        await cabinet.wait(SECOND_US)

    assert play(story, inputs=SlowInputs()).presses() == []


def test_edges_of_two_buttons_read_late_are_told_in_the_order_of_their_presses() -> None:
    async def story(cabinet: Cabinet) -> None:
        inputs, began_us = cabinet.inputs, cabinet.mono_us()
        edges = [("valider", True, 0), ("incident", True, 30), ("incident", False, 80), ("valider", False, 200)]
        for line, active, at_ms in edges:
            inputs.deliver(line, active, began_us + at_ms * MS)
        await cabinet.wait(SECOND_US)

    assert play(story, inputs=SlowInputs()).presses() == ["valider", "incident"]


def test_chip_that_vanishes_is_told_once_for_each_input_and_comes_back() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.unplug()
        await cabinet.wait(10 * SECOND_US)
        assert cabinet.panel.health().inputs[0].raw is None
        assert cabinet.panel.health().inputs[0].troubles == ("E-GPIO-GONE: the twin's chip was unplugged",)
        cabinet.inputs.replug()
        cabinet.inputs.turn("director", True)
        await cabinet.wait(3 * SECOND_US)
        assert cabinet.panel.health().inputs[0].troubles == ()

    cabinet = play(story)
    assert cabinet.faults() == [(name, "E-GPIO-GONE") for name in (*BUTTONS, *KEYS)]
    assert cabinet.turns()[2:] == [("director", True)]


def test_panel_started_without_its_chip_tells_no_key_until_it_can_be_read() -> None:
    async def story(cabinet: Cabinet) -> None:
        assert cabinet.turns() == []
        cabinet.inputs.turn("director", True)
        cabinet.inputs.replug()
        await cabinet.wait(3 * SECOND_US)

    assert play(story, before=lambda cabinet: cabinet.inputs.unplug()).turns() == [("director", True)]


def test_panel_that_stopped_hears_no_edges() -> None:
    class Listened(SlowInputs):
        pass

    inputs = Listened()

    async def story(cabinet: Cabinet) -> None:
        assert inputs.tell is not None

    play(story, inputs=inputs)
    assert inputs.tell is None


def test_panel_on_which_nothing_happens_wakes_for_its_audits_only() -> None:
    async def story(cabinet: Cabinet) -> None:
        before = cabinet.loop.virtual.sleeps
        await cabinet.wait(60 * SECOND_US)
        assert cabinet.loop.virtual.sleeps - before <= 62

    play(story)


# ── Lamps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def lit(cabinet: Cabinet) -> list[str]:
    return [lamp for lamp in LAMPS if cabinet.outputs.lit(lamp)]


def test_lamps_that_are_shown_are_lit_at_once_and_the_others_are_off() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.panel.show({"bets": Lamp.ON, "incident": Lamp.ON})
        assert lit(cabinet) == ["bets", "incident"]
        cabinet.panel.show({"no_more_bets": Lamp.ON, "bets": Lamp.OFF})
        assert lit(cabinet) == ["no_more_bets"]

    play(story)


def test_lamp_that_the_cabinet_does_not_have_is_left_out() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.panel.show({"disco": Lamp.BLINKING, "bets": Lamp.ON})
        assert lit(cabinet) == ["bets"]

    assert play(story).told == [
        KeyTurned(at_us=0, key="croupier", on=False),
        KeyTurned(at_us=0, key="director", on=False),
    ]


def test_blinking_lamps_go_together_with_the_period_of_the_house() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.panel.show({"bets": Lamp.BLINKING})
        await cabinet.wait(BLINK_HALF_PERIOD_US // 2)
        cabinet.panel.show({"bets": Lamp.BLINKING, "incident": Lamp.BLINKING, "no_more_bets": Lamp.ON})
        for half in range(8):
            expected = list(LAMPS) if half % 2 == 0 else ["no_more_bets"]
            assert lit(cabinet) == expected
            await cabinet.wait(BLINK_HALF_PERIOD_US)
        cabinet.panel.show({})
        await cabinet.wait(BLINK_HALF_PERIOD_US)
        assert lit(cabinet) == []

    play(story)


def test_lamp_that_begins_to_blink_is_lit_first() -> None:
    async def story(cabinet: Cabinet) -> None:
        for _ in range(3):
            cabinet.panel.show({"incident": Lamp.BLINKING})
            assert lit(cabinet) == ["incident"]
            cabinet.panel.show({"incident": Lamp.OFF})
            await cabinet.wait(BLINK_HALF_PERIOD_US + MS)

    play(story)


def test_lamp_that_cannot_be_driven_is_told_once_and_lit_when_it_can() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.outputs.unplug()
        cabinet.panel.show({"bets": Lamp.BLINKING, "incident": Lamp.ON})
        await cabinet.wait(10 * SECOND_US)
        health = {lamp.name: lamp for lamp in cabinet.panel.health().lamps}
        assert (health["incident"].shows, health["incident"].lit) == (Lamp.ON, None)
        assert health["incident"].fault == "E-GPIO-GONE: the twin's chip was unplugged"
        cabinet.inputs.press("valider")
        cabinet.outputs.replug()
        await cabinet.wait(2 * AUDIT_PERIOD_US)
        assert cabinet.outputs.lit("incident")
        assert {lamp.fault for lamp in cabinet.panel.health().lamps} == {""}

    cabinet = play(story)
    assert cabinet.faults() == [("bets", "E-GPIO-GONE"), ("incident", "E-GPIO-GONE")]
    assert cabinet.presses() == ["valider"]


def test_cabinet_without_lamps_shows_nothing_and_works() -> None:
    loop = VirtualLoop()
    cabinet = Cabinet(loop)
    panel = Panel(cabinet.inputs, None, cabinet, cabinet.told.append, SETTINGS)

    async def evening() -> None:
        running = loop.create_task(panel.run())
        panel.show({"bets": Lamp.BLINKING})
        await cabinet.wait(MS)
        cabinet.inputs.press("valider")
        await cabinet.wait(SECOND_US)
        running.cancel()

    loop.run_until_complete(evening())
    loop.close()
    assert (cabinet.presses(), cabinet.faults()) == (["valider"], [])


def test_health_shows_the_raw_level_beside_the_stable_one_and_what_the_contact_did() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.panel.show({"bets": Lamp.ON})
        cabinet.inputs.stick("incident")
        await cabinet.wait(15 * MS)
        health = {one.name: one for one in cabinet.panel.health().inputs}
        assert (health["incident"].kind, health["incident"].raw, health["incident"].stable) == ("button", True, False)
        await cabinet.wait(100 * MS)
        after = {one.name: one for one in cabinet.panel.health().inputs}
        assert (after["incident"].raw, after["incident"].stable) == (True, True)
        assert after["incident"].statistics.changes == 1
        assert after["incident"].statistics.longest_bounce_us is not None
        assert (after["director"].kind, after["director"].raw, after["director"].stable) == ("key", False, False)
        assert [(lamp.name, lamp.lit) for lamp in cabinet.panel.health().lamps] == [
            ("bets", True),
            ("no_more_bets", False),
            ("incident", False),
        ]

    play(story)


# ── The twin ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def edges_of_a_press(seed: int) -> list[Edge]:
    loop = VirtualLoop()
    cabinet = Cabinet(loop, seed=seed)
    edges: list[Edge] = []

    async def press() -> None:
        cabinet.inputs.on_edge(edges.append)
        cabinet.inputs.press("valider")
        await cabinet.wait(SECOND_US)

    loop.run_until_complete(press())
    loop.close()
    return edges


def test_twin_with_one_seed_bounces_in_one_way_and_with_another_in_another() -> None:
    assert edges_of_a_press(3) == edges_of_a_press(3)
    assert edges_of_a_press(3) != edges_of_a_press(4)


@given(st.integers(0, 10_000))
def test_twin_bounces_between_alternating_levels_and_ends_at_rest(seed: int) -> None:
    edges = edges_of_a_press(seed)
    assert [edge.active for edge in edges] == [number % 2 == 0 for number in range(len(edges))]
    assert not edges[-1].active


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda inputs: inputs.press("disco"), "there is no button 'disco'; there are faites_vos_jeux, "),
        (lambda inputs: inputs.press("director"), "there is no button 'director'"),
        (lambda inputs: inputs.turn("valider", True), "there is no key 'valider'; there are croupier, director"),
        (lambda inputs: (inputs.stick("valider"), inputs.press("valider")), "the button 'valider' is held already"),
    ],
)
def test_twin_asked_for_what_no_hand_can_do_refuses(act: Callable[[TwinInputs], object], why: str) -> None:
    async def story(cabinet: Cabinet) -> None:
        with pytest.raises(PanelRefusedError, match=why):
            act(cabinet.inputs)

    play(story)


def test_twin_closed_in_the_middle_of_a_press_tells_no_more_edges() -> None:
    async def story(cabinet: Cabinet) -> None:
        cabinet.inputs.press("valider")
        cabinet.inputs.close()
        await cabinet.wait(SECOND_US)

    assert play(story).presses() == []


# ── The socket of the twin ────────────────────────────────────────────────────────────────────────────────────────────


class RestingClock:
    """A clock for the socket's tests, where no time is measured."""

    def mono_us(self) -> int:
        return 5

    def wall_ms(self) -> int:
        return 5


class Hand:
    """A twin behind its socket, and the edges that it gave."""

    def __init__(self) -> None:
        plain = ContactModel(bounces=0)
        self.inputs = TwinInputs(buttons=BUTTONS, keys=KEYS, clock=RestingClock(), seed=1, contacts=plain)
        self.edges: asyncio.Queue[Edge] = asyncio.Queue()
        self.inputs.on_edge(self.edges.put_nowait)


async def say(path: Path, *commands: bytes) -> list[str]:
    """Connect, send the commands, and give the answers until the other side hangs up or all are answered."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"".join(commands))
    writer.write_eof()
    answers = (await reader.read()).decode().splitlines()
    writer.close()
    await writer.wait_closed()
    return answers


async def test_socket_told_to_press_a_button_presses_it(tmp_path: Path) -> None:
    hand = Hand()
    async with PanelSocket(tmp_path / "panel.sock", hand.inputs):
        assert await say(tmp_path / "panel.sock", b"press valider\n") == ["ok"]
        assert await hand.edges.get() == Edge(line="valider", active=True, at_us=5)
        assert await hand.edges.get() == Edge(line="valider", active=False, at_us=5)


async def test_socket_told_to_turn_a_key_turns_it_on_and_off(tmp_path: Path) -> None:
    hand = Hand()
    async with PanelSocket(tmp_path / "panel.sock", hand.inputs):
        assert await say(tmp_path / "panel.sock", b"turn director on\n") == ["ok"]
        assert (await hand.edges.get()).active
        assert await say(tmp_path / "panel.sock", b"turn director off\n") == ["ok"]
        assert not (await hand.edges.get()).active


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (b"\n", "'' is neither 'press NAME' nor 'turn KEY on|off'"),
        (b"press\n", "'press' is neither"),
        (b"press valider twice\n", "'press valider twice' is neither"),
        (b"turn director sideways\n", "'turn director sideways' is neither"),
        (b"PRESS valider\n", "'PRESS valider' is neither"),
        (b"press disco\n", "there is no button 'disco'"),
        (b"turn valider on\n", "there is no key 'valider'"),
        (b"press \xff\xfe\n", "there is no button"),
    ],
)
async def test_socket_told_something_else_answers_with_an_error_and_goes_on(
    tmp_path: Path, command: bytes, why: str
) -> None:
    hand = Hand()
    async with PanelSocket(tmp_path / "panel.sock", hand.inputs):
        error, after = await say(tmp_path / "panel.sock", command, b"turn director on\n")
    assert error.startswith(f"error E-PANEL-COMMAND: {why}")
    assert after == "ok"


async def test_socket_told_a_line_without_end_answers_with_an_error_and_hangs_up(tmp_path: Path) -> None:
    hand = Hand()
    async with PanelSocket(tmp_path / "panel.sock", hand.inputs):
        answers = await say(tmp_path / "panel.sock", b"x" * (2 * COMMAND_BYTES_BOUND))
        assert answers == [f"error E-PANEL-COMMAND: a command has at most {COMMAND_BYTES_BOUND} bytes"]
        assert await say(tmp_path / "panel.sock", b"press valider\n") == ["ok"]


async def test_socket_told_half_a_command_presses_nothing(tmp_path: Path) -> None:
    hand = Hand()
    async with PanelSocket(tmp_path / "panel.sock", hand.inputs):
        assert await say(tmp_path / "panel.sock", b"press valider") == []
    assert hand.edges.empty()


async def test_socket_with_all_callers_connected_answers_one_more_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "panel.sock"
    async with PanelSocket(path, Hand().inputs):
        callers = [await asyncio.open_unix_connection(path) for _ in range(CALLERS_BOUND)]
        for reader, writer in callers:
            writer.write(b"turn director on\n")
            assert await reader.readline() == b"ok\n"
        assert await say(path) == [f"error E-PANEL-COMMAND: {CALLERS_BOUND} callers are connected already"]
    for reader, writer in callers:
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_socket_belongs_to_its_user_replaces_a_dead_one_and_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "panel.sock"
    for _ in range(2):
        async with PanelSocket(path, Hand().inputs):
            assert path.stat().st_mode & 0o777 == 0o600
        assert not path.exists()


def test_device_fault_of_a_lamp_carries_its_code() -> None:
    outputs = TwinOutputs(LAMPS)
    outputs.unplug()
    with pytest.raises(DeviceFault) as caught:
        outputs.set("bets", on=True)
    assert (caught.value.code, caught.value.device) == ("E-GPIO-GONE", "bets")
