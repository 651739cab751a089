"""The roulette table: its wheels, every bet, what each covers and pays, and how much may lie on it.

A cylinder and its layout go together in law, and a bet of one is unknown at the other:

- 37 pockets: wheel of articles 51 and 55-10, bets of 55-12, maxima of 55-13; at zero an even chance loses half;
- 38 pockets: wheel of article 55-1, bets of 55-2, maxima of 55-3; at 0 and at 00 an even chance loses all.

Twelve rows are common to both; only the head differs:

    ┌───────────┐        ┌─────┬─────┐
    │     0     │        │  0  │ 00  │
    ├───┬───┬───┤        ├───┬─┴─┬───┤
    │ 1 │ 2 │ 3 │        │ 1 │ 2 │ 3 │
    ├───┼───┼───┤        ├───┼───┼───┤
    │ 4 │ 5 │ 6 │        │ 4 │ 5 │ 6 │

A piece inside a square plays that number (plein); on a line, the two numbers that share it (cheval); on a crossing, all
that meet there (carré; three numbers at the head); on the outer border, a row (transversale) or the two rows that
touch there (sixain; at the head carré 0-1-2-3 or the five numbers).

Nothing here rounds. A stake of which half may be paid or returned must be an even number of cents: it is refused
otherwise, and settling it all the same is an error.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from games.money import Cents


class Wheel(IntEnum):
    """The cylinder, by its number of pockets. It binds the bets, the maxima and the zero rule."""

    SINGLE_ZERO = 37
    DOUBLE_ZERO = 38


class BetKind(StrEnum):
    """The combinations that the law allows (articles 55-2 and 55-12)."""

    PLEIN = "plein"
    CHEVAL = "cheval"
    TRANSVERSALE = "transversale"
    CARRE = "carre"
    CINQ_NUMEROS = "cinq-numeros"  # 38 pockets only
    SIXAIN = "sixain"
    COLONNE = "colonne"
    DOUZAINE = "douzaine"
    COLONNES = "colonnes"  # à cheval on two adjacent columns, 37 pockets only
    DOUZAINES = "douzaines"  # à cheval on two adjacent dozens, 37 pockets only
    CHANCE_SIMPLE = "chance-simple"


@dataclass(frozen=True, slots=True)
class Bet:
    """One bet of the layout of ``wheel``. A winning stake is kept and pays numerator/denominator of itself on top."""

    name: str
    kind: BetKind
    wheel: Wheel
    pockets: frozenset[str]
    pays_numerator: int
    pays_denominator: int
    maximum_times: int

    def max_stake(self, table_minimum_cents: Cents) -> Cents:
        """The most, in cents, that one player may have on this bet in one round (articles 55-3 and 55-13)."""
        return Cents(self.maximum_times * table_minimum_cents)


class Payment(NamedTuple):
    """What one stake brings back: the part of the stake that is returned, and the winnings on top."""

    returned_cents: Cents
    winnings_cents: Cents


LOST = Payment(Cents(0), Cents(0))


class StakeFault(StrEnum):
    """Why a stake is refused."""

    NOT_POSITIVE = "E-STAKE-NOT-POSITIVE"
    BELOW_MINIMUM = "E-STAKE-BELOW-MINIMUM"
    NOT_EVEN = "E-STAKE-NOT-EVEN"
    ABOVE_MAXIMUM = "E-STAKE-ABOVE-MAXIMUM"


# ── The wheels ────────────────────────────────────────────────────────────────────────────────────────────────────────

_WHEEL_ORDERS: Mapping[Wheel, tuple[str, ...]] = {
    Wheel.SINGLE_ZERO: (
        *("0", "32", "15", "19", "4", "21", "2", "25", "17", "34", "6", "27", "13", "36", "11", "30", "8", "23", "10"),
        *("5", "24", "16", "33", "1", "20", "14", "31", "9", "22", "18", "29", "7", "28", "12", "35", "3", "26"),
    ),
    Wheel.DOUBLE_ZERO: (
        *("0", "28", "9", "26", "30", "11", "7", "20", "32", "17", "5", "22", "34", "15", "3", "24", "36", "13", "1"),
        *("00", "27", "10", "25", "29", "12", "8", "19", "31", "18", "6", "21", "33", "16", "4", "23", "35", "14", "2"),
    ),
}
_POCKETS: Mapping[Wheel, frozenset[str]] = {wheel: frozenset(order) for wheel, order in _WHEEL_ORDERS.items()}

RED: frozenset[str] = frozenset(map(str, (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)))
"""The red numbers. The law asks for alternating colours; which number is red is custom, the same on both wheels."""


def pockets(wheel: Wheel) -> tuple[str, ...]:
    """The pockets in the physical order of the cylinder, clockwise from zero."""
    return _WHEEL_ORDERS[wheel]


# ── The bets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a kind of bet pays, and its maximum in multiples of the table minimum."""

    numerator: int
    denominator: int
    maximum_times: int


_TERMS: Mapping[BetKind, _Terms] = {  # articles 55-2 with 55-3, and 55-12 with 55-13: equal wherever both know the bet
    BetKind.PLEIN: _Terms(35, 1, 20),
    BetKind.CHEVAL: _Terms(17, 1, 40),
    BetKind.TRANSVERSALE: _Terms(11, 1, 60),
    BetKind.CARRE: _Terms(8, 1, 80),
    BetKind.CINQ_NUMEROS: _Terms(6, 1, 100),
    BetKind.SIXAIN: _Terms(5, 1, 120),
    BetKind.COLONNE: _Terms(2, 1, 240),
    BetKind.DOUZAINE: _Terms(2, 1, 240),
    BetKind.COLONNES: _Terms(1, 2, 480),
    BetKind.DOUZAINES: _Terms(1, 2, 480),
    BetKind.CHANCE_SIMPLE: _Terms(1, 1, 360),
}

_Place = tuple[str, BetKind, frozenset[str]]
"""A bet's name, its kind and the pockets it covers."""

_ZERO_PLACES: Mapping[Wheel, tuple[_Place, ...]] = {
    Wheel.SINGLE_ZERO: (
        ("cheval-0-1", BetKind.CHEVAL, frozenset({"0", "1"})),
        ("cheval-0-2", BetKind.CHEVAL, frozenset({"0", "2"})),
        ("cheval-0-3", BetKind.CHEVAL, frozenset({"0", "3"})),
        ("transversale-0-1-2", BetKind.TRANSVERSALE, frozenset({"0", "1", "2"})),
        ("transversale-0-2-3", BetKind.TRANSVERSALE, frozenset({"0", "2", "3"})),
        ("carre-0-3", BetKind.CARRE, frozenset({"0", "1", "2", "3"})),
    ),
    Wheel.DOUBLE_ZERO: (
        ("cheval-0-00", BetKind.CHEVAL, frozenset({"0", "00"})),
        ("cheval-0-1", BetKind.CHEVAL, frozenset({"0", "1"})),
        ("cheval-0-2", BetKind.CHEVAL, frozenset({"0", "2"})),
        ("cheval-00-2", BetKind.CHEVAL, frozenset({"00", "2"})),
        ("cheval-00-3", BetKind.CHEVAL, frozenset({"00", "3"})),
        ("transversale-0-1-2", BetKind.TRANSVERSALE, frozenset({"0", "1", "2"})),
        ("transversale-0-00-2", BetKind.TRANSVERSALE, frozenset({"0", "00", "2"})),
        ("transversale-00-2-3", BetKind.TRANSVERSALE, frozenset({"00", "2", "3"})),
    ),
}

ZERO_COMBINATIONS: Mapping[Wheel, tuple[str, ...]] = {
    wheel: tuple(name for name, _, _ in places) for wheel, places in _ZERO_PLACES.items()
}
"""The chevaux, three-number bets and carré with a zero that a house may offer: all that the head of the layout has.

The law counts numbers and does not draw the layout, so the list is custom, and a house may shorten it; the default is
the whole of it. The plein on a zero and the five numbers are named by the law and are not options.
"""

_LAYOUTS_BOUND = 16
"""Layouts kept ready. A table has one; the rest is for tools and tests, and a dropped one is only built anew."""


def layout(wheel: Wheel, zero_combinations: Collection[str] | None = None) -> Mapping[str, Bet]:
    """Every bet of the wheel by name, and none of the other wheel's.

    ``zero_combinations`` names those of ``ZERO_COMBINATIONS[wheel]`` that the house offers; None means all of them.
    Raises ValueError for a name that is not among them.
    """
    return _layout(wheel, None if zero_combinations is None else frozenset(zero_combinations))


@lru_cache(maxsize=_LAYOUTS_BOUND)
def _layout(wheel: Wheel, zero_combinations: frozenset[str] | None) -> Mapping[str, Bet]:
    offered = frozenset(ZERO_COMBINATIONS[wheel]) if zero_combinations is None else zero_combinations
    if unknown := offered.difference(ZERO_COMBINATIONS[wheel]):
        raise ValueError(
            f"no zero combination of the {wheel}-pocket layout: {', '.join(sorted(unknown))}; "
            f"it has {', '.join(ZERO_COMBINATIONS[wheel])}"
        )
    places = [*_inside_places(), *(place for place in _ZERO_PLACES[wheel] if place[0] in offered)]
    if wheel is Wheel.SINGLE_ZERO:
        places += [("plein-0", BetKind.PLEIN, frozenset({"0"})), *_twenty_four_number_places()]
    else:
        places += [(f"plein-{zero}", BetKind.PLEIN, frozenset({zero})) for zero in ("0", "00")]
        places.append(("cinq-numeros", BetKind.CINQ_NUMEROS, frozenset({"0", "00", "1", "2", "3"})))
    places += _outside_places()
    return MappingProxyType({place[0]: _bet(wheel, *place) for place in places})


def _bet(wheel: Wheel, name: str, kind: BetKind, covered: frozenset[str]) -> Bet:
    terms = _TERMS[kind]
    return Bet(name, kind, wheel, covered, terms.numerator, terms.denominator, terms.maximum_times)


def _numbers(*numbers: int) -> frozenset[str]:
    return frozenset(map(str, numbers))


def _inside_places() -> Iterator[_Place]:
    """The bets on 1 to 36 by their squares, lines, crossings and rows; named after the first and the last number."""
    for first in range(1, 37):
        yield f"plein-{first}", BetKind.PLEIN, _numbers(first)
        begins_row, ends_row, in_last_row = first % 3 == 1, first % 3 == 0, first > 33
        if not ends_row:
            yield f"cheval-{first}-{first + 1}", BetKind.CHEVAL, _numbers(first, first + 1)
        if not in_last_row:
            yield f"cheval-{first}-{first + 3}", BetKind.CHEVAL, _numbers(first, first + 3)
        if begins_row:
            yield f"transversale-{first}-{first + 2}", BetKind.TRANSVERSALE, _numbers(*range(first, first + 3))
        if not ends_row and not in_last_row:
            yield f"carre-{first}-{first + 4}", BetKind.CARRE, _numbers(first, first + 1, first + 3, first + 4)
        if begins_row and not in_last_row:
            yield f"sixain-{first}-{first + 5}", BetKind.SIXAIN, _numbers(*range(first, first + 6))


def _column(column: int) -> frozenset[str]:
    return _numbers(*range(column, 37, 3))


def _dozen(dozen: int) -> frozenset[str]:
    return _numbers(*range(12 * dozen - 11, 12 * dozen + 1))


def _twenty_four_number_places() -> Iterator[_Place]:
    for first in (1, 2):
        second = first + 1
        yield f"colonnes-{first}-{second}", BetKind.COLONNES, _column(first) | _column(second)
        yield f"douzaines-{first}-{second}", BetKind.DOUZAINES, _dozen(first) | _dozen(second)


def _outside_places() -> Iterator[_Place]:
    for third in (1, 2, 3):
        yield f"colonne-{third}", BetKind.COLONNE, _column(third)
        yield f"douzaine-{third}", BetKind.DOUZAINE, _dozen(third)
    yield "pair", BetKind.CHANCE_SIMPLE, _numbers(*range(2, 37, 2))
    yield "impair", BetKind.CHANCE_SIMPLE, _numbers(*range(1, 37, 2))
    yield "manque", BetKind.CHANCE_SIMPLE, _numbers(*range(1, 19))
    yield "passe", BetKind.CHANCE_SIMPLE, _numbers(*range(19, 37))
    yield "rouge", BetKind.CHANCE_SIMPLE, RED
    yield "noir", BetKind.CHANCE_SIMPLE, _numbers(*range(1, 37)) - RED


# ── Limits and settlement ─────────────────────────────────────────────────────────────────────────────────────────────


def _loses_half_at_zero(bet: Bet) -> bool:
    """Article 55-12, last paragraph. Article 55-2 has no such mercy, and dozens and columns lose all on both wheels."""
    return bet.kind is BetKind.CHANCE_SIMPLE and bet.wheel is Wheel.SINGLE_ZERO


def _refuse_mix(bet: Bet, wheel: Wheel) -> None:
    if bet.wheel is not wheel:
        raise ValueError(f"{bet.name} of the {bet.wheel}-pocket layout at a wheel of {wheel} pockets: rules never mix")


def requires_even_cents(bet: Bet, wheel: Wheel) -> bool:
    """Whether half of a stake on ``bet`` may come to be paid or returned, so that it must be even (notes, 10.8).

    Raises ValueError when the bet is not of this wheel's layout.
    """
    _refuse_mix(bet, wheel)
    return bet.pays_denominator == 2 or _loses_half_at_zero(bet)


def refusal(
    bet: Bet, cents: Cents, minimum_cents: Cents, already_cents: Cents, table_minimum_cents: Cents, wheel: Wheel
) -> StakeFault | None:
    """Why a player who has ``already_cents`` on ``bet`` may not stake ``cents`` more, or None when he may.

    ``minimum_cents`` is the least stake at his post: the table minimum, or the higher one that he chose (electronic
    roulette). Maxima are multiples of the table minimum and hold for his whole stake on the bet.
    Raises ValueError when the bet is not of this wheel's layout.
    """
    even_only = requires_even_cents(bet, wheel)
    if cents <= 0:
        return StakeFault.NOT_POSITIVE
    if cents < max(minimum_cents, table_minimum_cents):
        return StakeFault.BELOW_MINIMUM
    if even_only and cents % 2:
        return StakeFault.NOT_EVEN
    if already_cents + cents > bet.max_stake(table_minimum_cents):
        return StakeFault.ABOVE_MAXIMUM
    return None


def settle(bet: Bet, cents: Cents, winning_pocket: str, wheel: Wheel) -> Payment:
    """What a stake of ``cents`` on ``bet`` brings back when the ball lies in ``winning_pocket`` of ``wheel``.

    Raises ValueError for what must never reach a settlement: a bet of the other wheel, a pocket that the wheel does not
    have, a stake that is not positive, or an odd stake where half a cent could be due.
    """
    if winning_pocket not in _POCKETS[wheel]:
        raise ValueError(f"no pocket {winning_pocket!r} in a wheel of {wheel} pockets: nothing can be settled on it")
    if cents <= 0 or (requires_even_cents(bet, wheel) and cents % 2):
        raise ValueError(f"{cents} cents on {bet.name} cannot be settled exactly: the stake should have been refused")
    if winning_pocket in bet.pockets:
        return Payment(cents, Cents(cents * bet.pays_numerator // bet.pays_denominator))
    if winning_pocket == "0" and _loses_half_at_zero(bet):
        return Payment(Cents(cents // 2), Cents(0))
    return LOST
