"""Announcements: each a bundle of table bets, checked against the wheel's order, the digits and the law's limits."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.money import Cents
from games.roulette.announcements import AnnouncementFault, HouseOption, Piece, announcement_names, components
from games.roulette.layout import ZERO_COMBINATIONS, BetKind, StakeFault, Wheel, layout, pockets, refusal, settle

SINGLE, DOUBLE = Wheel.SINGLE_ZERO, Wheel.DOUBLE_ZERO
BOTH = pytest.mark.parametrize("wheel", list(Wheel), ids=lambda wheel: f"{wheel}-pockets")
ALL_OPTIONS = frozenset(HouseOption)
FINALES = {f"finale-{digit}" for digit in range(10)}
SECTORS = {"voisins-du-zero", "tiers", "orphelins"}

wheels = st.sampled_from(list(Wheel))
house_options = st.frozensets(st.sampled_from(list(HouseOption)))


def bundle(name: str, wheel: Wheel, zero_combinations: Iterable[str] | None = None) -> tuple[Piece, ...]:
    """The components of an announcement with all house options on."""
    offered = None if zero_combinations is None else tuple(zero_combinations)
    pieces = components(name, wheel, ALL_OPTIONS, offered)
    assert not isinstance(pieces, AnnouncementFault), pieces
    return pieces


def covered(name: str, wheel: Wheel) -> Counter[str]:
    """How many of the components cover each pocket."""
    bets = layout(wheel)
    return Counter(pocket for piece in bundle(name, wheel) for pocket in bets[piece.bet].pockets)


def arc(first: str, last: str) -> list[str]:
    """The pockets of the 37-pocket wheel from ``first`` clockwise to ``last``."""
    order = pockets(SINGLE)
    start = order.index(first)
    turned = order[start:] + order[:start]
    return list(turned[: turned.index(last) + 1])


# ── The classic announcements ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_classic_announcements_of_the_single_zero_are_the_three_sectors_and_the_ten_finales() -> None:
    assert set(announcement_names(SINGLE, frozenset())) == SECTORS | FINALES


@pytest.mark.law("67-15")
def test_classic_announcements_of_the_double_zero_are_the_ten_finales() -> None:
    assert set(announcement_names(DOUBLE, frozenset())) == FINALES


def test_great_announcements_share_out_the_whole_wheel_and_leave_no_number_twice() -> None:
    sectors = [covered(name, SINGLE) for name in sorted(SECTORS)]
    assert sorted(pocket for sector in sectors for pocket in sector) == sorted(pockets(SINGLE))


@pytest.mark.parametrize(
    ("name", "pieces", "arcs"),
    [
        ("voisins-du-zero", 9, [("22", "25")]),
        ("tiers", 6, [("27", "33")]),
        ("orphelins", 5, [("17", "6"), ("1", "9")]),
        ("orphelins-en-plein", 8, [("17", "6"), ("1", "9")]),
        ("jeu-zero", 4, [("12", "15")]),
    ],
)
def test_sector_announcement_covers_its_arcs_of_the_wheel_with_the_pieces_of_custom(
    name: str, pieces: int, arcs: list[tuple[str, str]]
) -> None:
    assert sorted(covered(name, SINGLE)) == sorted(pocket for ends in arcs for pocket in arc(*ends))
    assert sum(piece.pieces for piece in bundle(name, SINGLE)) == pieces


def test_orphelins_a_cheval_play_17_twice_and_every_other_number_once() -> None:
    assert {pocket: times for pocket, times in covered("orphelins", SINGLE).items() if times > 1} == {"17": 2}


@BOTH
def test_finale_plays_en_plein_every_number_that_ends_in_its_digit(wheel: Wheel) -> None:
    for digit in range(10):
        expected = {f"plein-{number}" for number in range(37) if str(number).endswith(str(digit))}
        pieces = bundle(f"finale-{digit}", wheel)
        assert {piece.bet for piece in pieces} == expected
        assert len(pieces) == (4 if digit <= 6 else 3)
        assert all(piece.pieces == 1 for piece in pieces)


# ── House options ─────────────────────────────────────────────────────────────────────────────────────────────────────


@given(wheels, house_options)
def test_house_options_switch_exactly_their_families(wheel: Wheel, options: frozenset[HouseOption]) -> None:
    everything = announcement_names(wheel, ALL_OPTIONS)
    families = tuple(f"{option}-" for option in options)
    expected = {
        name for name in everything if name in SECTORS | FINALES or name in options or name.startswith(families)
    }
    assert set(announcement_names(wheel, options)) == expected
    for name in everything:
        refused = components(name, wheel, options) is AnnouncementFault.NOT_PERMITTED
        assert refused == (name not in expected)


@pytest.mark.parametrize(("wheel", "families"), [(SINGLE, [1, 1, 16, 37, 37]), (DOUBLE, [0, 0, 16, 38, 38])])
def test_each_house_option_adds_its_whole_family(wheel: Wheel, families: list[int]) -> None:
    classic = len(announcement_names(wheel, ()))
    assert [len(announcement_names(wheel, {option})) - classic for option in HouseOption] == families


@BOTH
def test_finale_a_cheval_plays_each_number_of_its_digits_once_and_uses_every_cheval_there_is(wheel: Wheel) -> None:
    bets = layout(wheel)
    pairs = [(low, high) for low in range(10) for high in (low + 1, low + 3) if high <= 9]
    assert len(pairs) == 16
    for low, high in pairs:
        name = f"finale-cheval-{low}-{high}"
        numbers = {str(number) for number in range(37) if number % 10 in (low, high)}
        assert covered(name, wheel) == Counter(numbers)
        possible = {
            bet.name
            for bet in bets.values()
            if bet.kind is BetKind.CHEVAL and bet.pockets <= numbers
            if {int(pocket) % 10 for pocket in bet.pockets} == {low, high}
        }
        assert {piece.bet for piece in bundle(name, wheel) if piece.bet.startswith("cheval")} == possible


@BOTH
def test_neighbours_of_a_number_are_the_five_within_two_pockets_of_it(wheel: Wheel) -> None:
    order = pockets(wheel)
    for at, pocket in enumerate(order):
        within = {
            other for other in order if min((order.index(other) - at) % wheel, (at - order.index(other)) % wheel) <= 2
        }
        assert {piece.bet for piece in bundle(f"voisins-{pocket}", wheel)} == {f"plein-{other}" for other in within}
        assert len(within) == 5


@BOTH
def test_complete_on_a_number_has_each_inside_bet_on_it_with_a_piece_for_each_number_covered(wheel: Wheel) -> None:
    inside = [bet for bet in layout(wheel).values() if len(bet.pockets) <= 6]
    for pocket in pockets(wheel):
        expected = {bet.name: len(bet.pockets) for bet in inside if pocket in bet.pockets}
        assert {piece.bet: piece.pieces for piece in bundle(f"complet-{pocket}", wheel)} == expected


@pytest.mark.law("55-13")
@pytest.mark.law("55-3")
@given(wheels, st.data())
def test_complete_on_a_number_reaches_the_limits_of_all_its_bets_at_once(wheel: Wheel, data: st.DataObject) -> None:
    minimum = Cents(data.draw(st.integers(1, 10_000)))
    value = data.draw(st.integers(minimum, 40 * minimum))
    name = f"complet-{data.draw(st.sampled_from(pockets(wheel)))}"
    faults = {
        refusal(layout(wheel)[piece.bet], Cents(piece.pieces * value), minimum, Cents(0), minimum, wheel)
        for piece in bundle(name, wheel)
    }
    assert faults == {None if value <= 20 * minimum else StakeFault.ABOVE_MAXIMUM}


# ── Refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [*sorted(SECTORS), "orphelins-en-plein", "jeu-zero"])
def test_sector_announcement_at_the_double_zero_is_refused_as_of_another_wheel(name: str) -> None:
    assert components(name, DOUBLE, ALL_OPTIONS) is AnnouncementFault.WRONG_WHEEL


@pytest.mark.parametrize("name", ["voisins-00", "complet-00"])
def test_announcement_on_the_double_zero_at_the_single_zero_is_refused_as_of_another_wheel(name: str) -> None:
    assert components(name, SINGLE, ALL_OPTIONS) is AnnouncementFault.WRONG_WHEEL
    assert bundle(name, DOUBLE)


@pytest.mark.parametrize(
    "name", ["", "voisins", "voisins-37", "finale-10", "finale-00", "finale-cheval-0-2", "TIERS", "plein-17", "tiers "]
)
def test_announcement_that_does_not_exist_is_refused_as_unknown(name: str) -> None:
    assert {components(name, wheel, ALL_OPTIONS) for wheel in Wheel} == {AnnouncementFault.UNKNOWN}


@given(st.text(), wheels, house_options)
def test_announcement_of_any_text_gets_a_typed_answer(name: str, wheel: Wheel, options: frozenset[HouseOption]) -> None:
    answer = components(name, wheel, options)
    assert isinstance(answer, AnnouncementFault) != (name in announcement_names(wheel, options))


@pytest.mark.parametrize(("name", "missing"), [("voisins-du-zero", "transversale-0-2-3"), ("jeu-zero", "cheval-0-3")])
def test_announcement_that_needs_a_bet_off_the_layout_is_refused_whole(name: str, missing: str) -> None:
    offered = [other for other in ZERO_COMBINATIONS[SINGLE] if other != missing]
    assert components(name, SINGLE, ALL_OPTIONS, offered) is AnnouncementFault.NOT_ON_LAYOUT
    assert name not in announcement_names(SINGLE, ALL_OPTIONS, offered)
    assert components(name, SINGLE, ALL_OPTIONS, [missing]) == bundle(name, SINGLE)


# ── A bundle and nothing more ─────────────────────────────────────────────────────────────────────────────────────────


@given(wheels, st.data())
def test_announcements_of_any_layout_place_only_bets_of_that_layout_and_each_once(
    wheel: Wheel, data: st.DataObject
) -> None:
    offered = data.draw(st.frozensets(st.sampled_from(ZERO_COMBINATIONS[wheel])))
    bets = layout(wheel, offered)
    for name in announcement_names(wheel, ALL_OPTIONS, offered):
        pieces = bundle(name, wheel, offered)
        assert {piece.bet for piece in pieces} <= bets.keys()
        assert len({piece.bet for piece in pieces}) == len(pieces) > 0
        assert all(piece.pieces >= 1 for piece in pieces)


@BOTH
def test_announcement_returns_over_all_numbers_what_its_pieces_alone_would(wheel: Wheel) -> None:
    bets = layout(wheel)
    for name in announcement_names(wheel, ALL_OPTIONS):
        pieces = bundle(name, wheel)
        back = sum(
            sum(settle(bets[piece.bet], Cents(piece.pieces), pocket, wheel))
            for piece in pieces
            for pocket in pockets(wheel)
        )
        five_numbers = sum(piece.pieces for piece in pieces if piece.bet == "cinq-numeros")
        assert back == 36 * sum(piece.pieces for piece in pieces) - five_numbers


def test_announcements_never_place_a_bet_that_needs_an_even_stake() -> None:
    inside = {bet.name for bet in layout(SINGLE).values() if len(bet.pockets) <= 6}
    placed = {piece.bet for name in announcement_names(SINGLE, ALL_OPTIONS) for piece in bundle(name, SINGLE)}
    assert placed <= inside
