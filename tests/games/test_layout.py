"""The wheels and the layout: what lies where, against the geometry of a drawn layout and the articles of the law."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.roulette.layout import RED, ZERO_COMBINATIONS, BetKind, Wheel, layout, pockets

BOTH = pytest.mark.parametrize("wheel", list(Wheel), ids=lambda wheel: f"{wheel}-pockets")

KIND_OF_INSIDE = {
    1: BetKind.PLEIN,
    2: BetKind.CHEVAL,
    3: BetKind.TRANSVERSALE,
    4: BetKind.CARRE,
    5: BetKind.CINQ_NUMEROS,
    6: BetKind.SIXAIN,
}

wheels = st.sampled_from(list(Wheel))


def by_kind(wheel: Wheel) -> Counter[BetKind]:
    return Counter(bet.kind for bet in layout(wheel).values())


# ── The wheels ────────────────────────────────────────────────────────────────────────────────────────────────────────


@BOTH
@pytest.mark.law("51")
@pytest.mark.law("55-1")
@pytest.mark.law("55-10")
def test_wheel_holds_every_number_once_and_its_zeros(wheel: Wheel) -> None:
    zeros = {"0"} if wheel is Wheel.SINGLE_ZERO else {"0", "00"}
    order = pockets(wheel)
    assert len(order) == len(set(order)) == wheel == 36 + len(zeros)
    assert set(order) == {str(number) for number in range(1, 37)} | zeros


@BOTH
@pytest.mark.law("51")
@pytest.mark.law("55-1")
def test_wheel_without_its_zeros_alternates_red_and_black_all_the_way_round(wheel: Wheel) -> None:
    colours = [pocket in RED for pocket in pockets(wheel) if pocket not in ("0", "00")]
    neighbours = list(pairwise(colours))
    if wheel is Wheel.DOUBLE_ZERO:  # the double zero lies between two numbers of one colour
        neighbours.pop(17)
    assert all(left is not right for left, right in neighbours)
    assert colours.count(True) == colours.count(False) == 18


def test_red_numbers_follow_the_croupiers_rule_of_odd_and_even_by_tens() -> None:
    # The croupier's rule: in 1-10 and 19-28 odd is red, in 11-18 and 29-36 even is red.
    odd_is_red = {*range(1, 11), *range(19, 29)}
    assert {str(number) for number in range(1, 37) if (number % 2 == 1) == (number in odd_is_red)} == RED


@pytest.mark.law("55-1")
def test_double_zero_wheel_has_its_zeros_and_each_odd_number_opposite_the_next_one() -> None:
    order = pockets(Wheel.DOUBLE_ZERO)
    opposite = {pocket: order[(at + 19) % 38] for at, pocket in enumerate(order)}
    assert opposite["0"] == "00"
    assert all(opposite[str(odd)] == str(odd + 1) for odd in range(1, 37, 2))


# ── Coverage, by the geometry of the layout ───────────────────────────────────────────────────────────────────────────

Square = tuple[int, int, int, int]


def drawn(wheel: Wheel) -> dict[str, Square]:
    """Each square of the drawn layout as left, top, right, bottom: columns are 4 wide, rows and head 2 high."""
    squares = {
        str(3 * row + column + 1): (4 * column, 2 * row + 2, 4 * column + 4, 2 * row + 4)
        for row in range(12)
        for column in range(3)
    }
    if wheel is Wheel.SINGLE_ZERO:
        return squares | {"0": (0, 0, 12, 2)}
    return squares | {"0": (0, 0, 6, 2), "00": (6, 0, 12, 2)}


def under_a_piece(squares: dict[str, Square], across: int, down: int) -> frozenset[str]:
    """What a piece at this point plays: the squares it touches, or on the outer border the whole rows it touches."""
    touched = {
        pocket
        for pocket, (left, top, right, bottom) in squares.items()
        if left <= across <= right and top <= down <= bottom
    }
    if across == 0:
        rows = {squares[pocket][1] for pocket in touched}
        touched = {pocket for pocket, square in squares.items() if square[1] in rows}
    return frozenset(touched)


def drawn_bets(wheel: Wheel) -> set[tuple[BetKind, frozenset[str]]]:
    """Lay a piece on every point inside the drawing, and on the outer border from the head's lower edge on."""
    squares = drawn(wheel)
    points = [(across, down) for across in range(1, 12) for down in range(1, 26)]
    points += [(0, down) for down in range(2, 26)]
    covered = {under_a_piece(squares, across, down) for across, down in points}
    return {(KIND_OF_INSIDE[len(numbers)], numbers) for numbers in covered}


@BOTH
@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_inside_bets_are_exactly_those_that_a_piece_on_the_layout_can_play(wheel: Wheel) -> None:
    inside = [(bet.kind, bet.pockets) for bet in layout(wheel).values() if bet.kind in KIND_OF_INSIDE.values()]
    assert len(inside) == len(set(inside))
    assert set(inside) == drawn_bets(wheel)


def outside_bets(wheel: Wheel) -> dict[str, set[int]]:
    """The outside bets by arithmetic on each number."""
    numbers = range(1, 37)
    columns = {third: {n for n in numbers if (n - third) % 3 == 0} for third in (1, 2, 3)}
    dozens = {third: {n for n in numbers if (n + 11) // 12 == third} for third in (1, 2, 3)}
    expected = {f"colonne-{third}": column for third, column in columns.items()}
    expected |= {f"douzaine-{third}": dozen for third, dozen in dozens.items()}
    expected |= {
        "pair": {n for n in numbers if n % 2 == 0},
        "impair": {n for n in numbers if n % 2},
        "manque": {n for n in numbers if n <= 18},
        "passe": {n for n in numbers if n > 18},
        "rouge": {n for n in numbers if str(n) in RED},
        "noir": {n for n in numbers if str(n) not in RED},
    }
    if wheel is Wheel.SINGLE_ZERO:
        expected |= {"colonnes-1-2": columns[1] | columns[2], "colonnes-2-3": columns[2] | columns[3]}
        expected |= {"douzaines-1-2": dozens[1] | dozens[2], "douzaines-2-3": dozens[2] | dozens[3]}
    return expected


@BOTH
@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_outside_bets_cover_what_their_names_say(wheel: Wheel) -> None:
    outside = {
        name: set(map(int, bet.pockets))
        for name, bet in layout(wheel).items()
        if bet.kind not in KIND_OF_INSIDE.values()
    }
    assert outside == outside_bets(wheel)


@pytest.mark.law("55-12")
def test_layout_of_the_single_zero_has_each_kind_as_often_as_the_law_and_custom_know() -> None:
    assert by_kind(Wheel.SINGLE_ZERO) == {
        BetKind.PLEIN: 37,
        BetKind.CHEVAL: 60,
        BetKind.TRANSVERSALE: 14,
        BetKind.CARRE: 23,
        BetKind.SIXAIN: 11,
        BetKind.COLONNE: 3,
        BetKind.DOUZAINE: 3,
        BetKind.COLONNES: 2,
        BetKind.DOUZAINES: 2,
        BetKind.CHANCE_SIMPLE: 6,
    }


@pytest.mark.law("55-2")
def test_layout_of_the_double_zero_has_each_kind_as_often_as_the_law_and_custom_know() -> None:
    assert by_kind(Wheel.DOUBLE_ZERO) == {
        BetKind.PLEIN: 38,
        BetKind.CHEVAL: 62,
        BetKind.TRANSVERSALE: 15,
        BetKind.CARRE: 22,
        BetKind.CINQ_NUMEROS: 1,
        BetKind.SIXAIN: 11,
        BetKind.COLONNE: 3,
        BetKind.DOUZAINE: 3,
        BetKind.CHANCE_SIMPLE: 6,
    }


@BOTH
def test_bet_names_with_numbers_begin_with_the_first_and_end_with_the_last_number_covered(wheel: Wheel) -> None:
    for name, bet in layout(wheel).items():
        assert name == bet.name
        if bet.kind in KIND_OF_INSIDE.values() and bet.kind is not BetKind.CINQ_NUMEROS:
            covered = sorted(bet.pockets, key=lambda pocket: (int(pocket), len(pocket)))
            listed = name.removeprefix(f"{bet.kind}-").split("-")
            three_with_zero = bet.kind is BetKind.TRANSVERSALE and covered[0] in ("0", "00")
            assert listed == (covered if three_with_zero or len(covered) == 1 else [covered[0], covered[-1]])


# ── House options and mixes ───────────────────────────────────────────────────────────────────────────────────────────


@given(wheels, st.data())
def test_layout_with_fewer_zero_combinations_lacks_exactly_the_others(wheel: Wheel, data: st.DataObject) -> None:
    offered = data.draw(st.lists(st.sampled_from(ZERO_COMBINATIONS[wheel])))
    whole, shortened = layout(wheel), layout(wheel, offered)
    assert whole.keys() - shortened.keys() == set(ZERO_COMBINATIONS[wheel]) - set(offered)
    assert all(whole[name] == bet for name, bet in shortened.items())


@BOTH
def test_zero_combinations_are_all_bets_that_join_a_zero_to_other_numbers(wheel: Wheel) -> None:
    joined = {name for name, bet in layout(wheel).items() if bet.pockets & {"0", "00"} and 2 <= len(bet.pockets) <= 4}
    assert joined == set(ZERO_COMBINATIONS[wheel])


@BOTH
@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_layout_without_zero_combinations_keeps_the_bets_that_the_law_names(wheel: Wheel) -> None:
    bare = layout(wheel, ())
    named = {"plein-0"} if wheel is Wheel.SINGLE_ZERO else {"plein-0", "plein-00", "cinq-numeros"}
    assert {name for name, bet in bare.items() if bet.pockets & {"0", "00"}} == named


@pytest.mark.parametrize(
    ("wheel", "name"),
    [
        (Wheel.SINGLE_ZERO, "cheval-0-00"),
        (Wheel.DOUBLE_ZERO, "carre-0-3"),
        (Wheel.SINGLE_ZERO, "cheval-1-2"),
        (Wheel.DOUBLE_ZERO, "cinq-numeros"),
        (Wheel.SINGLE_ZERO, ""),
    ],
)
def test_layout_with_a_zero_combination_that_it_does_not_have_is_refused_by_name(wheel: Wheel, name: str) -> None:
    with pytest.raises(ValueError, match=f"no zero combination of the {int(wheel)}-pocket layout: {name};"):
        layout(wheel, [name])


@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_layouts_of_the_two_wheels_do_not_know_each_others_bets() -> None:
    single, double = layout(Wheel.SINGLE_ZERO), layout(Wheel.DOUBLE_ZERO)
    assert single.keys() - double.keys() == {
        *("cheval-0-3", "transversale-0-2-3", "carre-0-3"),
        *("colonnes-1-2", "colonnes-2-3", "douzaines-1-2", "douzaines-2-3"),
    }
    assert double.keys() - single.keys() == {
        *("plein-00", "cheval-0-00", "cheval-00-2", "cheval-00-3", "transversale-0-00-2", "transversale-00-2-3"),
        "cinq-numeros",
    }
