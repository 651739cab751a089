"""Announcements: a player says one word, and pieces go to several bets of the table.

An announcement is a bundle and nothing more: each component is an ordinary stake, under the limits of its own bet, and
is settled as one. The classic ones are allowed by the law (electronic roulette, "les annonces classiques"); an older
wording of article 67-5 lists them: voisins du zéro, tiers, orphelins, and the finales of a number. All others are
customary, and each family of them is a house option.

    the wheel of 37 in three:   voisins du zéro   22 … 0 … 25, on both sides of zero    17 numbers, 9 pieces
                                tiers             27 … 33, opposite                     12 numbers, 6 pieces
                                orphelins         1 20 14 31 9 and 17 34 6, between      8 numbers, 5 pieces

These, the jeu zéro and the orphelins en plein are sectors of that wheel and mean nothing on the wheel of 38. Finales,
neighbours and completes exist on both; 00 is in no finale.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from games.roulette.layout import Bet, BetKind, Wheel, layout, pockets


class HouseOption(StrEnum):
    """A family of announcements beyond the classic ones, which a house may offer."""

    JEU_ZERO = "jeu-zero"
    ORPHELINS_EN_PLEIN = "orphelins-en-plein"
    FINALE_CHEVAL = "finale-cheval"  # finale-cheval-0-1 …: two final digits that are neighbours on the layout
    VOISINS = "voisins"  # voisins-17 …: a number and its two neighbours on each side in the wheel
    COMPLET = "complet"  # complet-17 …: every inside bet that covers the number


class AnnouncementFault(StrEnum):
    """Why an announcement is refused."""

    UNKNOWN = "E-ANNOUNCEMENT-UNKNOWN"
    WRONG_WHEEL = "E-ANNOUNCEMENT-WRONG-WHEEL"
    NOT_PERMITTED = "E-ANNOUNCEMENT-NOT-PERMITTED"
    NOT_ON_LAYOUT = "E-ANNOUNCEMENT-NOT-ON-LAYOUT"


@dataclass(frozen=True, slots=True)
class Piece:
    """One component: so many ``pieces`` of the announced value on ``bet``, by the bet's name."""

    bet: str
    pieces: int


@dataclass(frozen=True, slots=True)
class _Announcement:
    """The components of an announcement, and the house option that it needs; None for a classic one."""

    name: str
    option: HouseOption | None
    pieces: tuple[Piece, ...]


_NEIGHBOURS_ON_EACH_SIDE = 2

_OUTSIDE_KINDS = frozenset(
    {BetKind.COLONNE, BetKind.DOUZAINE, BetKind.COLONNES, BetKind.DOUZAINES, BetKind.CHANCE_SIMPLE}
)

_FINAL_DIGIT_PAIRS = (
    *((digit, digit + 1) for digit in range(9)),  # side by side, as 0 and 1 in 10-11
    *((digit, digit + 3) for digit in range(7)),  # one under the other, as 0 and 3 in 10-13
)

_BOOKS_BOUND = 16
"""Announcement books kept ready, one for each layout in use; a dropped one is only built anew."""


def components(
    name: str, wheel: Wheel, permitted: Collection[str], zero_combinations: Collection[str] | None = None
) -> tuple[Piece, ...] | AnnouncementFault:
    """The bets behind an announcement, or the reason why this table refuses it.

    ``permitted`` holds the house options in force, ``zero_combinations`` is that of ``layout``. An announcement one of
    whose bets the house has taken off its layout is refused as a whole.
    """
    announcement = _book(wheel, _key(zero_combinations)).get(name)
    if announcement is None:
        other = Wheel.DOUBLE_ZERO if wheel is Wheel.SINGLE_ZERO else Wheel.SINGLE_ZERO
        return AnnouncementFault.WRONG_WHEEL if name in _book(other, None) else AnnouncementFault.UNKNOWN
    if announcement.option is not None and announcement.option not in permitted:
        return AnnouncementFault.NOT_PERMITTED
    bets = layout(wheel, zero_combinations)
    if any(piece.bet not in bets for piece in announcement.pieces):
        return AnnouncementFault.NOT_ON_LAYOUT
    return announcement.pieces


def announcement_names(
    wheel: Wheel, house_options: Collection[str], zero_combinations: Collection[str] | None = None
) -> tuple[str, ...]:
    """The announcements that can be made at this table."""
    return tuple(
        name
        for name in _book(wheel, _key(zero_combinations))
        if not isinstance(components(name, wheel, house_options, zero_combinations), AnnouncementFault)
    )


def _key(zero_combinations: Collection[str] | None) -> frozenset[str] | None:
    return None if zero_combinations is None else frozenset(zero_combinations)


@lru_cache(maxsize=_BOOKS_BOUND)
def _book(wheel: Wheel, zero_combinations: frozenset[str] | None) -> Mapping[str, _Announcement]:
    """Every announcement that has a meaning at the wheel, by name, house options included."""
    bets = layout(wheel, zero_combinations)
    announcements = [*_finales(), *_finales_a_cheval(bets), *_voisins(wheel), *_complets(wheel, bets)]
    if wheel is Wheel.SINGLE_ZERO:
        announcements = [*_SECTORS, *announcements]
    return MappingProxyType({announcement.name: announcement for announcement in announcements})


def _pleins(numbers: Iterable[int | str]) -> tuple[Piece, ...]:
    return tuple(Piece(f"plein-{number}", 1) for number in numbers)


def _one_on_each(*bets: str) -> tuple[Piece, ...]:
    return tuple(Piece(bet, 1) for bet in bets)


_SECTORS = (
    _Announcement(
        "voisins-du-zero",
        None,
        (
            Piece("transversale-0-2-3", 2),
            *_one_on_each("cheval-4-7", "cheval-12-15", "cheval-18-21", "cheval-19-22", "cheval-32-35"),
            Piece("carre-25-29", 2),
        ),
    ),
    _Announcement(
        "tiers",
        None,
        _one_on_each("cheval-5-8", "cheval-10-11", "cheval-13-16", "cheval-23-24", "cheval-27-30", "cheval-33-36"),
    ),
    _Announcement(
        "orphelins",
        None,
        _one_on_each("plein-1", "cheval-6-9", "cheval-14-17", "cheval-17-20", "cheval-31-34"),
    ),
    _Announcement(
        "orphelins-en-plein",
        HouseOption.ORPHELINS_EN_PLEIN,
        _pleins((1, 6, 9, 14, 17, 20, 31, 34)),
    ),
    _Announcement(
        "jeu-zero",
        HouseOption.JEU_ZERO,
        _one_on_each("cheval-0-3", "cheval-12-15", "plein-26", "cheval-32-35"),
    ),
)


def _finales() -> Iterator[_Announcement]:
    """The numbers that end in one digit, en plein."""
    for digit in range(10):
        yield _Announcement(f"finale-{digit}", None, _pleins(range(digit, 37, 10)))


def _finales_a_cheval(bets: Mapping[str, Bet]) -> Iterator[_Announcement]:
    """The numbers that end in one of two digits: à cheval where the layout has the cheval, en plein where not."""
    for low, high in _FINAL_DIGIT_PAIRS:
        chevaux: list[str] = []
        alone: list[int] = []
        for tens in (0, 10, 20, 30):
            first, second = tens + low, tens + high
            cheval = f"cheval-{first}-{second}"
            if cheval in bets:
                chevaux.append(cheval)
            else:
                alone += [number for number in (first, second) if number <= 36]
        yield _Announcement(
            f"finale-cheval-{low}-{high}", HouseOption.FINALE_CHEVAL, (*_one_on_each(*chevaux), *_pleins(alone))
        )


def _voisins(wheel: Wheel) -> Iterator[_Announcement]:
    """A number and its neighbours in the wheel, en plein, in the order of the wheel."""
    order = pockets(wheel)
    span = range(-_NEIGHBOURS_ON_EACH_SIDE, _NEIGHBOURS_ON_EACH_SIDE + 1)
    for at, pocket in enumerate(order):
        around = [order[(at + step) % len(order)] for step in span]
        yield _Announcement(f"voisins-{pocket}", HouseOption.VOISINS, _pleins(around))


def _complets(wheel: Wheel, bets: Mapping[str, Bet]) -> Iterator[_Announcement]:
    """Every inside bet that covers a number, with as many pieces as it covers numbers.

    The maxima of these bets grow in the same proportion, so all components reach their limits together.
    """
    inside = [bet for bet in bets.values() if bet.kind not in _OUTSIDE_KINDS]
    for pocket in pockets(wheel):
        pieces = tuple(Piece(bet.name, len(bet.pockets)) for bet in inside if pocket in bet.pockets)
        yield _Announcement(f"complet-{pocket}", HouseOption.COMPLET, pieces)
