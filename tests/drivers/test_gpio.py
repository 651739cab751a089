"""Buttons, keys and lamps through gpiozero, on its mock pins with the kernel's times put in by hand."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from gpiozero.pins.mock import MockFactory, MockPin

from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.ports import DeviceFault, Edge


class TimedPin(MockPin):
    """A mock pin whose edges happen when the test says."""

    def drive_at(self, *, high: bool, at_us: int) -> None:
        self._state = high
        self._last_change = at_us / 1_000_000
        if self._when_changed is not None:
            self._call_when_changed()


@pytest.fixture
def factory() -> Iterator[MockFactory]:
    mock = MockFactory(pin_class=TimedPin)
    yield mock
    mock.reset()


async def turn_of_the_loop() -> None:
    await asyncio.sleep(0)


async def test_edge_of_a_button_to_ground_is_active_when_low_and_has_the_time_of_the_pin(factory: MockFactory) -> None:
    inputs = GpioInputs({"rien_ne_va_plus": InputLine(bcm=17)}, factory)
    seen: list[Edge] = []
    inputs.on_edge(seen.append)
    factory.pin(17).drive_at(high=False, at_us=12_345_678_901)
    factory.pin(17).drive_at(high=True, at_us=12_345_690_002)
    assert seen == []
    await turn_of_the_loop()
    assert seen == [
        Edge(line="rien_ne_va_plus", active=True, at_us=12_345_678_901),
        Edge(line="rien_ne_va_plus", active=False, at_us=12_345_690_002),
    ]
    inputs.close()


@pytest.mark.parametrize(
    ("line", "resting", "active_when_high"),
    [
        (InputLine(bcm=5, pull_up=True, active_low=True), "up", False),
        (InputLine(bcm=5, pull_up=True, active_low=False), "up", True),
        (InputLine(bcm=5, pull_up=False, active_low=False), "down", True),
        (InputLine(bcm=5, pull_up=None, active_low=False), "floating", True),
        (InputLine(bcm=5, pull_up=None, active_low=True), "floating", False),
    ],
)
async def test_level_of_a_line_follows_its_wiring(
    factory: MockFactory, line: InputLine, resting: str, active_when_high: bool
) -> None:
    inputs = GpioInputs({"door": line}, factory)
    pin = factory.pin(5)
    assert pin.pull == resting
    pin.drive_at(high=True, at_us=1)
    assert inputs.level("door") is active_when_high
    pin.drive_at(high=False, at_us=2)
    assert inputs.level("door") is not active_when_high
    inputs.close()


async def test_edge_from_a_foreign_thread_arrives_in_the_thread_of_the_loop(factory: MockFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    arrived = asyncio.get_running_loop().create_future()
    inputs.on_edge(lambda edge: arrived.set_result((edge.at_us, threading.get_ident())))
    stranger = threading.Thread(target=lambda: factory.pin(17).drive_at(high=False, at_us=77))
    stranger.start()
    assert await arrived == (77, threading.get_ident())
    stranger.join()
    inputs.close()


async def test_callback_that_fails_is_reported_and_input_goes_on(factory: MockFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    reports: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(repr(context["exception"])))
    seen: list[int] = []

    def fail_once(edge: Edge) -> None:
        seen.append(edge.at_us)
        if len(seen) == 1:
            raise ZeroDivisionError("of the first edge")

    inputs.on_edge(fail_once)
    for at_us in (1, 2, 3):
        factory.pin(17).drive_at(high=at_us == 2, at_us=at_us)
    await turn_of_the_loop()
    assert (seen, reports) == ([1, 2, 3], ["ZeroDivisionError('of the first edge')"])
    inputs.close()


async def test_edge_on_its_way_when_nobody_listens_any_more_is_dropped(factory: MockFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    seen: list[Edge] = []
    inputs.on_edge(seen.append)
    factory.pin(17).drive_at(high=False, at_us=1)
    inputs.on_edge(None)
    factory.pin(17).drive_at(high=True, at_us=2)
    await turn_of_the_loop()
    assert seen == []
    inputs.close()


def test_two_inputs_on_one_pin_are_refused_by_their_names(factory: MockFactory) -> None:
    with pytest.raises(DeviceFault, match="E-GPIO-TWICE GPIO17: spin, stop use the same pin"):
        GpioInputs({"spin": InputLine(bcm=17), "stop": InputLine(bcm=17)}, factory)


def test_two_lamps_on_one_pin_are_refused_by_their_names(factory: MockFactory) -> None:
    with pytest.raises(DeviceFault, match="E-GPIO-TWICE GPIO22: bets, incident use the same pin"):
        GpioOutputs({"bets": 22, "incident": 22}, factory)


def test_lamp_on_the_pin_of_a_button_is_refused_and_leaves_the_button_alone(factory: MockFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    with pytest.raises(DeviceFault, match="E-GPIO-TWICE bets on GPIO17"):
        GpioOutputs({"incident": 22, "bets": 17}, factory)
    assert inputs.level("spin") is False
    GpioOutputs({"incident": 22}, factory).close()
    inputs.close()


@pytest.mark.parametrize("bcm", [-1, 54, 99])
def test_pin_that_the_header_does_not_have_is_refused(factory: MockFactory, bcm: int) -> None:
    with pytest.raises(DeviceFault, match=f"E-GPIO-PIN spin on GPIO{bcm}"):
        GpioInputs({"spin": InputLine(bcm=bcm)}, factory)


def test_lines_of_closed_inputs_may_be_taken_again(factory: MockFactory) -> None:
    for _ in range(2):
        GpioInputs({"spin": InputLine(bcm=17)}, factory).close()


def test_lamps_at_start_are_off_and_follow_what_is_set_until_closed(factory: MockFactory) -> None:
    outputs = GpioOutputs({"bets": 22, "incident": 23}, factory)
    bets, incident = factory.pin(22), factory.pin(23)
    assert (bets.function, bets.state, incident.state) == ("output", False, False)
    outputs.set("bets", on=True)
    assert (bets.state, incident.state) == (True, False)
    outputs.set("bets", on=False)
    outputs.set("incident", on=True)
    assert (bets.state, incident.state) == (False, True)
    outputs.close()
    assert incident.function == "input"
