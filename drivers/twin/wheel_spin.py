"""The physics of one spin as a list of stretches, so that a fault is an edit of a list.

    state 2, about 9 s           3, 4 s    4, 26.5 s              5, 5.5 s
    brake ─► turn over, speed up, launch ─► rim ─► slowed, drops ─► number
    old direction │ new direction

The medians are those of a recorded wheel (wheel notes, 2.3 item 9), scattered. A misfire goes round state 2 again, and
turns the rotor over once more: the wheel alternates attempts, the law spins. The rotor of a croupier's wheel has no
motor: he stops it, pushes it the other way, and it slows down from there.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, replace

from drivers.twin.wheel_faults import FaultKind

BALL_MISSING, BALL_WITH_ROTOR, DEVICE_FAULT, LAUNCH_FAILED = 1, 2, 4, 8

STOPS_AFTER_SECONDS = 75
"""A wheel without a ball, or with a dead sensor, switches itself off after so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a spin: the state, direction and flags stand still, the rotor's speed (rpm) goes in a straight line.

    ``seconds`` are those of the wheel; None lasts until somebody resets it.
    """

    state: int
    seconds: float | None
    clockwise: bool
    rotor: tuple[float, float]
    flags: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotor:
    """How the rotor turned last, the set range of its speed, and how far it may change after no more bets (rpm)."""

    clockwise: bool
    rpm: float
    slowest: float
    fastest: float
    change: float


def plan_spin(
    rng: random.Random, rotor: Rotor, faults: Collection[FaultKind], *, clockwise: bool, by_hand: bool
) -> list[Stretch]:
    """All stretches of a spin that is launched ``clockwise``; a misfire ends up the other way.

    A spin that ends in state 5 has a number, one that ends in another state has none.
    """
    speed = rng.uniform(24, 28) if by_hand else rng.uniform(rotor.slowest, rotor.fastest)
    launches = 2 if FaultKind.MISFIRE in faults else 1
    stretches = _launch(rng, rotor.clockwise, clockwise, rotor.rpm, speed)
    for _ in range(launches - 1):
        again = _launch(rng, clockwise, not clockwise, speed, speed)
        stretches += [replace(stretch, flags=LAUNCH_FAILED) for stretch in again]
        clockwise = not clockwise
    stretches += _flight(rng, rotor, faults, clockwise, speed, by_hand=by_hand)
    if FaultKind.MISFIRE in faults:
        stretches = _with_lingering_flag(stretches)
    return stretches


def _launch(rng: random.Random, before: bool, after: bool, rpm: float, speed: float) -> list[Stretch]:
    whole = _scattered(rng, 9, 1, 6, 14)
    return [
        Stretch(state=2, seconds=whole * 0.3, clockwise=before, rotor=(rpm, 0)),
        Stretch(state=2, seconds=whole * 0.4, clockwise=after, rotor=(0, speed)),
        Stretch(state=2, seconds=whole * 0.3, clockwise=after, rotor=(speed, speed)),
    ]


def _flight(
    rng: random.Random, rotor: Rotor, faults: Collection[FaultKind], clockwise: bool, speed: float, *, by_hand: bool
) -> list[Stretch]:
    """From the launched ball on."""
    change = -0.15 * speed if by_hand else rng.uniform(-rotor.change, rotor.change)
    rim = Stretch(state=3, seconds=_scattered(rng, 4, 0.5, 2.5, 6), clockwise=clockwise, rotor=(speed, speed))
    seconds = _scattered(rng, 26.5, 3, 7.5, 40)
    slowed = replace(rim, state=4, seconds=seconds, rotor=(speed, speed + change))
    rest = 0.9 * slowed.rotor[1] if by_hand else slowed.rotor[1]
    number = replace(rim, state=5, seconds=_scattered(rng, 5.5, 0.3, 4.5, 7), rotor=(slowed.rotor[1], rest))
    stopped = replace(rim, state=6, seconds=None, rotor=(0, 0))
    if FaultKind.BALL_WITH_ROTOR in faults:
        rim, slowed = replace(rim, flags=BALL_WITH_ROTOR), replace(slowed, flags=BALL_WITH_ROTOR)
    if FaultKind.BALL_REMOVED in faults:
        gone = replace(slowed, seconds=STOPS_AFTER_SECONDS, flags=BALL_MISSING)
        return [rim, replace(slowed, seconds=3), gone, stopped]
    if FaultKind.SENSOR_FAULT in faults:
        blind = replace(slowed, seconds=20, flags=DEVICE_FAULT)
        return [rim, replace(slowed, seconds=5), blind, replace(stopped, flags=DEVICE_FAULT)]
    if FaultKind.RUNAWAY_ROTOR in faults:
        brake = replace(slowed, seconds=4, rotor=(speed, 8))
        climb = replace(slowed, seconds=6, rotor=(8, rng.uniform(90, 98)))
        dead = replace(slowed, seconds=40, rotor=(0, 0), flags=DEVICE_FAULT)
        return [rim, brake, climb, dead, replace(stopped, flags=DEVICE_FAULT)]
    if FaultKind.NO_RESULT in faults:
        return [rim, replace(slowed, seconds=None)]
    if FaultKind.NOT_IN_TRACK in faults:
        return [rim, replace(slowed, seconds=8), replace(slowed, state=7, seconds=None)]
    if FaultKind.NO_MORE_BETS_SKIPPED in faults:
        return [replace(rim, seconds=seconds), number]
    return [rim, slowed, number]


def _with_lingering_flag(stretches: list[Stretch]) -> list[Stretch]:
    """After a relaunch flag 8 still shows in the first 1.5 s of state 3 (the maker ignores it there for 3 s)."""
    spin = list[Stretch]()
    for stretch in stretches:
        if stretch.state == 3 and stretch.seconds is not None:
            spin.append(replace(stretch, seconds=1.5, flags=stretch.flags | LAUNCH_FAILED))
            spin.append(replace(stretch, seconds=stretch.seconds - 1.5))
        else:
            spin.append(stretch)
    return spin


def _scattered(rng: random.Random, middle: float, spread: float, least: float, most: float) -> float:
    return min(most, max(least, rng.gauss(middle, spread)))
