"""The pin factory over libgpiod, on a chip in memory that behaves as the kernel's does."""

import asyncio
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpiod
import pytest
from gpiod.line import Bias, Direction, Edge, Value

from drivers import gpio_factory
from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.gpio_factory import EDGES_A_TURN, HeaderPinFactory, open_header
from drivers.ports import DeviceFault
from drivers.ports import Edge as SeenEdge

RISING, FALLING = gpiod.EdgeEvent.Type.RISING_EDGE, gpiod.EdgeEvent.Type.FALLING_EDGE


class Kernel:
    """What all opened chips share: their labels, who may open them, the lines and who holds them."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels = labels
        self.forbidden: set[str] = set()
        self.levels: dict[int, bool] = {}
        self.lines: dict[int, Line] = {}
        self.holders: dict[int, str] = {}
        self.open_chips = 0
        self.gone = False
        self.read_only = False

    def edge(self, bcm: int, *, high: bool, at_ns: int, unseen: int = 0) -> None:
        """The line changes; ``unseen`` edges before this one did not fit into the queue."""
        self.levels[bcm] = high
        line = self.lines[bcm]
        if line.settings.edge_detection is not Edge.BOTH:
            return
        line.number += 1 + unseen
        line.queue.append(Event(RISING if high else FALLING, at_ns, line.number))
        os.write(line.bell, b"!")

    def answer(self) -> None:
        if self.gone:
            raise OSError(errno.ENODEV, "No such device")


@dataclass(frozen=True)
class Event:
    event_type: gpiod.EdgeEvent.Type
    timestamp_ns: int
    line_seqno: int


class Line:
    """A line request: its descriptor is readable while edges wait."""

    def __init__(self, kernel: Kernel, bcm: int, settings: gpiod.LineSettings) -> None:
        self.fd, self.bell = os.pipe()
        self.kernel, self.bcm = kernel, bcm
        self.queue: list[Event] = []
        self.number = 0
        self.reads = 0
        self.configure(settings)

    def configure(self, settings: gpiod.LineSettings) -> None:
        self.settings = settings
        if settings.direction is Direction.OUTPUT:
            self.kernel.levels[self.bcm] = settings.output_value is Value.ACTIVE

    def reconfigure_lines(self, config: dict[int, gpiod.LineSettings]) -> None:
        self.kernel.answer()
        self.configure(config[self.bcm])

    def get_value(self, bcm: int) -> Value:
        self.kernel.answer()
        return Value.ACTIVE if self.kernel.levels.get(bcm) else Value.INACTIVE

    def set_value(self, bcm: int, value: Value) -> None:
        self.kernel.answer()
        self.kernel.levels[bcm] = value is Value.ACTIVE

    def wait_edge_events(self, timeout: float) -> bool:
        assert timeout == 0, "a port never blocks"
        return bool(self.queue)

    def read_edge_events(self, max_events: int) -> list[Event]:
        self.reads += 1
        self.kernel.answer()
        events, self.queue = self.queue[:max_events], self.queue[max_events:]
        os.read(self.fd, len(events))
        return events

    def release(self) -> None:
        os.close(self.fd)
        os.close(self.bell)
        del self.kernel.lines[self.bcm]


class Chip:
    """An open chip."""

    def __init__(self, kernel: Kernel, path: str) -> None:
        if path in kernel.forbidden:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        self.kernel, self.path = kernel, path
        kernel.open_chips += 1

    def get_info(self) -> Any:
        return SimpleNamespace(label=self.kernel.labels[self.path])

    def get_line_info(self, bcm: int) -> Any:
        return SimpleNamespace(consumer=self.kernel.holders.get(bcm))

    def request_lines(self, config: dict[int, gpiod.LineSettings], consumer: str, event_buffer_size: int) -> Line:
        ((bcm, settings),) = config.items()
        self.kernel.answer()
        if self.kernel.read_only:
            raise OSError(errno.EPERM, "Operation not permitted")
        if bcm in self.kernel.holders or bcm in self.kernel.lines:
            raise OSError(errno.EBUSY, "Device or resource busy")
        assert (consumer, event_buffer_size) == ("tabled", gpio_factory.EDGE_QUEUE)
        self.kernel.lines[bcm] = Line(self.kernel, bcm, settings)
        return self.kernel.lines[bcm]

    def close(self) -> None:
        self.kernel.open_chips -= 1


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    for number in (0, 4, 11):
        (tmp_path / f"gpiochip{number}").touch()
    return tmp_path


@pytest.fixture
def kernel(devices: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A Pi 5 as it came first: the header's chip is number 4, and one file only looks like a chip."""
    labels = {str(devices / "gpiochip0"): "gpio-brcmstb@107d508500", str(devices / "gpiochip4"): "pinctrl-rp1"}
    simulated = Kernel(labels)
    monkeypatch.setattr(gpiod, "Chip", lambda path: Chip(simulated, path))
    monkeypatch.setattr(gpiod, "is_gpiochip_device", lambda path: path in labels)
    return simulated


@pytest.fixture
def factory(kernel: Kernel, devices: Path) -> Iterator[HeaderPinFactory]:
    opened = open_header(devices)
    yield opened
    opened.close()
    assert (kernel.open_chips, kernel.lines) == (0, {})


async def edges_delivered(count: int, seen: list[SeenEdge]) -> list[SeenEdge]:
    """Let the loop run until so many edges came; it gives up after many turns."""
    for _ in range(100):
        if len(seen) >= count:
            break
        await asyncio.sleep(0)
    return seen


@pytest.mark.parametrize("label", ["pinctrl-rp1", "pinctrl-bcm2711", "pinctrl-bcm2835"])
def test_chip_of_the_header_is_found_by_its_label_whatever_its_number(
    kernel: Kernel, devices: Path, label: str
) -> None:
    kernel.labels[str(devices / "gpiochip4")] = label
    opened = open_header(devices)
    assert kernel.open_chips == 1
    opened.close()
    assert kernel.open_chips == 0


def test_machine_without_a_header_is_told_so(kernel: Kernel, devices: Path) -> None:
    kernel.labels[str(devices / "gpiochip4")] = "INT34C6:00"
    with pytest.raises(DeviceFault, match=r"E-GPIO-ABSENT.*this machine has no header"):
        open_header(devices)
    assert kernel.open_chips == 0


def test_machine_without_any_chip_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(DeviceFault, match="E-GPIO-ABSENT"):
        open_header(tmp_path)


def test_chip_that_may_not_be_opened_is_told_with_the_group_that_may(kernel: Kernel, devices: Path) -> None:
    kernel.forbidden.add(str(devices / "gpiochip4"))
    with pytest.raises(DeviceFault, match=r"E-GPIO-DENIED.*gpiochip4: .*the group gpio"):
        open_header(devices)


def test_line_held_by_another_program_is_refused_with_its_name(kernel: Kernel, factory: HeaderPinFactory) -> None:
    kernel.holders[17] = "pigpiod"
    with pytest.raises(DeviceFault, match="E-GPIO-BUSY spin on GPIO17: the line is held by 'pigpiod'"):
        GpioInputs({"stop": InputLine(bcm=16), "spin": InputLine(bcm=17)}, factory)
    assert kernel.lines == {}
    with pytest.raises(DeviceFault, match="E-GPIO-BUSY bets on GPIO17"):
        GpioOutputs({"bets": 17}, factory)


def test_line_of_a_chip_that_may_be_read_only_is_refused(kernel: Kernel, factory: HeaderPinFactory) -> None:
    kernel.read_only = True
    with pytest.raises(DeviceFault, match=r"E-GPIO-DENIED spin on GPIO17: .*gpiochip4 may not be written"):
        GpioInputs({"spin": InputLine(bcm=17)}, factory)


def test_line_of_a_chip_that_vanished_is_refused(kernel: Kernel, factory: HeaderPinFactory) -> None:
    kernel.gone = True
    with pytest.raises(DeviceFault, match="E-GPIO-GONE spin on GPIO17"):
        GpioInputs({"spin": InputLine(bcm=17)}, factory)
    kernel.gone = False


def test_line_is_free_again_after_the_other_program_let_it_go(kernel: Kernel, factory: HeaderPinFactory) -> None:
    kernel.holders[17] = "pigpiod"
    with pytest.raises(DeviceFault):
        GpioInputs({"spin": InputLine(bcm=17)}, factory)
    del kernel.holders[17]
    GpioInputs({"spin": InputLine(bcm=17)}, factory).close()


@pytest.mark.parametrize("name", [28, 47, -1, "GPIO28", "BOARD11", ""])
def test_pin_that_is_not_on_the_header_is_refused(factory: HeaderPinFactory, name: int | str) -> None:
    with pytest.raises(DeviceFault, match=r"E-GPIO-PIN .*BCM numbers 0 to 27"):
        factory.pin(name)


def test_pin_of_a_lamp_used_for_a_button_too_is_refused(factory: HeaderPinFactory) -> None:
    outputs = GpioOutputs({"bets": 22}, factory)
    with pytest.raises(DeviceFault, match="E-GPIO-TWICE spin on GPIO22"):
        GpioInputs({"spin": InputLine(bcm=22)}, factory)
    outputs.close()
    GpioInputs({"spin": InputLine(bcm=22)}, factory).close()


async def test_input_is_requested_with_its_pull_and_detects_edges_only_while_watched(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17), "door": InputLine(bcm=5, pull_up=None, active_low=False)}, factory)
    spin, door = kernel.lines[17], kernel.lines[5]
    assert (spin.settings.bias, door.settings.bias) == (Bias.PULL_UP, Bias.DISABLED)
    assert spin.settings.edge_detection is Edge.NONE
    inputs.on_edge(lambda edge: None)
    assert (spin.settings.edge_detection, spin.settings.bias) == (Edge.BOTH, Bias.PULL_UP)
    inputs.on_edge(None)
    assert spin.settings.edge_detection is Edge.NONE
    assert kernel.lines == {17: spin, 5: door}
    inputs.close()


async def test_edges_of_several_pins_come_in_the_order_of_the_kernels_time(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    inputs = GpioInputs({"a": InputLine(bcm=20), "b": InputLine(bcm=21)}, factory)
    seen: list[SeenEdge] = []
    inputs.on_edge(seen.append)
    kernel.edge(21, high=False, at_ns=1_000_000)
    kernel.edge(20, high=False, at_ns=2_000_000)
    kernel.edge(21, high=True, at_ns=3_000_500)
    kernel.edge(20, high=True, at_ns=4_000_000)
    assert [(edge.line, edge.active, edge.at_us) for edge in await edges_delivered(4, seen)] == [
        ("b", True, 1_000),
        ("a", True, 2_000),
        ("b", False, 3_000),
        ("a", False, 4_000),
    ]
    inputs.close()


async def test_line_in_a_storm_gives_way_to_the_others_after_so_many_edges(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    inputs = GpioInputs({"noise": InputLine(bcm=20), "stop": InputLine(bcm=21)}, factory)
    seen: list[SeenEdge] = []
    inputs.on_edge(seen.append)
    for number in range(10 * EDGES_A_TURN):
        kernel.edge(20, high=number % 2 == 0, at_ns=number * 1_000)
    kernel.edge(21, high=False, at_ns=1_000_000_000)
    await edges_delivered(10 * EDGES_A_TURN + 1, seen)
    assert [edge.line for edge in seen].index("stop") == EDGES_A_TURN
    assert len(seen) == 10 * EDGES_A_TURN + 1
    inputs.close()


async def test_watcher_that_fails_is_reported_and_the_other_pins_go_on(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["exception"]))
    inputs = GpioInputs({"good": InputLine(bcm=21)}, factory)
    seen: list[SeenEdge] = []
    inputs.on_edge(seen.append)
    bad = factory.pin(20)
    bad.function = "input"
    bad.when_changed = lambda ticks, state: 1 / 0
    for at_ns in (1_000, 3_000):
        kernel.edge(20, high=True, at_ns=at_ns)
        kernel.edge(21, high=at_ns == 3_000, at_ns=at_ns + 1_000)
    assert len(await edges_delivered(2, seen)) == 2
    assert [type(report) for report in reports] == [ZeroDivisionError, ZeroDivisionError]
    inputs.close()


async def test_edge_read_when_its_watcher_goes_away_is_told_to_nobody(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    inputs = GpioInputs({"first": InputLine(bcm=20), "second": InputLine(bcm=21)}, factory)
    seen: list[SeenEdge] = []

    def stop_listening(edge: SeenEdge) -> None:
        seen.append(edge)
        inputs.on_edge(None)

    inputs.on_edge(stop_listening)
    kernel.edge(20, high=False, at_ns=1_000)
    kernel.edge(21, high=False, at_ns=2_000)
    await edges_delivered(2, seen)
    assert [edge.line for edge in seen] == ["first"]
    inputs.close()


async def test_edges_that_did_not_fit_into_the_queue_are_counted(kernel: Kernel, factory: HeaderPinFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    seen: list[SeenEdge] = []
    inputs.on_edge(seen.append)
    kernel.edge(17, high=False, at_ns=1_000)
    kernel.edge(17, high=True, at_ns=9_000, unseen=40)
    kernel.edge(17, high=False, at_ns=10_000)
    await edges_delivered(3, seen)
    assert factory.lost_edges() == {"GPIO17": 40}
    inputs.close()


async def test_chip_that_is_gone_is_told_by_its_levels_and_does_not_spin_the_loop(
    kernel: Kernel, factory: HeaderPinFactory
) -> None:
    inputs, outputs = GpioInputs({"spin": InputLine(bcm=17)}, factory), GpioOutputs({"bets": 22}, factory)
    seen: list[SeenEdge] = []
    inputs.on_edge(seen.append)
    kernel.edge(17, high=False, at_ns=1_000)
    kernel.gone = True
    assert await edges_delivered(1, seen) == []
    assert kernel.lines[17].reads == 1
    with pytest.raises(DeviceFault, match=r"E-GPIO-GONE GPIO17: .*gpiochip4 does not answer: No such device"):
        inputs.level("spin")
    with pytest.raises(DeviceFault, match="E-GPIO-GONE GPIO22"):
        outputs.set("bets", on=True)
    inputs.close()
    outputs.close()
    assert kernel.lines == {}
    kernel.gone = False


async def test_chip_that_vanished_before_it_was_watched_is_told(kernel: Kernel, factory: HeaderPinFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    kernel.gone = True
    with pytest.raises(DeviceFault, match="E-GPIO-GONE GPIO17"):
        inputs.on_edge(lambda edge: None)
    inputs.close()
    kernel.gone = False


def test_lamps_are_requested_dark_and_driven(kernel: Kernel, factory: HeaderPinFactory) -> None:
    kernel.levels[22] = True
    outputs = GpioOutputs({"bets": 22}, factory)
    assert (kernel.lines[22].settings.direction, kernel.levels[22]) == (Direction.OUTPUT, False)
    assert factory.pin(22).function == "output"
    outputs.set("bets", on=True)
    assert kernel.levels[22] is True
    outputs.close()
    assert (kernel.levels[22], kernel.lines) == (False, {})


def test_lamps_that_nobody_closed_are_dark_after_their_chip_is(kernel: Kernel, devices: Path) -> None:
    opened = open_header(devices)
    GpioOutputs({"bets": 22}, opened).set("bets", on=True)
    opened.close()
    assert (kernel.levels[22], kernel.lines, kernel.open_chips) == (False, {}, 0)


def test_lamp_that_does_not_answer_at_the_end_is_let_go_all_the_same(kernel: Kernel, factory: HeaderPinFactory) -> None:
    outputs = GpioOutputs({"bets": 22}, factory)
    kernel.gone = True
    outputs.close()
    assert kernel.lines == {}
    kernel.gone = False


async def test_pin_of_a_closed_device_has_nobody_to_tell_and_no_line(kernel: Kernel, factory: HeaderPinFactory) -> None:
    inputs = GpioInputs({"spin": InputLine(bcm=17)}, factory)
    inputs.on_edge(lambda edge: None)
    inputs.close()
    pin = factory.pin(17)
    assert (pin.when_changed, kernel.lines) == (None, {})
    with pytest.raises(DeviceFault, match="E-GPIO-GONE GPIO17: the line was closed"):
        _ = pin.state
