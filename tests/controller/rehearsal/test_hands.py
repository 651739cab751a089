"""The croupier's hands in a simulation: two wishes to press one button are two presses, one after the other."""

import asyncio
import random

from controller.rehearsal.simulate import CroupierHands
from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from drivers.ports import Edge
from drivers.twin.panel import ContactModel, TwinInputs
from drivers.twin.serial import TwinCable
from drivers.twin.wheel import TwinSettings, WheelTwin
from tests.virtual import time_passes


async def pressed(times: int) -> list[bool]:
    """The levels that a button took when it was wanted so many times at once."""
    clock = LoopClock(asyncio.get_running_loop())
    contacts = ContactModel(bounces=0)
    inputs = TwinInputs(buttons=("confirmer",), keys=(), clock=clock, seed=1, contacts=contacts)
    told: list[Edge] = []
    inputs.on_edge(told.append)
    twin = WheelTwin(TwinSettings(croupier=True), random.Random(1), now_us=clock.mono_us())
    cable = TwinCable(twin, clock)
    hands = CroupierHands(inputs, cable)
    for _ in range(times):
        hands.press("confirmer")
    await time_passes(10)
    cable.close()
    return [edge.active for edge in told]


def test_button_that_is_held_is_pressed_again_when_it_is_free() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(pressed(1)) == [True, False]
        assert runner.run(pressed(3)) == [True, False] * 3
