"""What roulette bets pay and how much they may hold, against the tables of the law and the game's arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from games.money import Cents
from games.roulette.layout import (
    LOST,
    Bet,
    BetKind,
    Payment,
    StakeFault,
    Wheel,
    layout,
    pockets,
    refusal,
    requires_even_cents,
    settle,
)

BOTH = pytest.mark.parametrize("wheel", list(Wheel), ids=lambda wheel: f"{wheel}-pockets")

PAYS = {1: "35", 2: "17", 3: "11", 4: "8", 5: "6", 6: "5", 12: "2", 18: "1", 24: "1/2"}
"""Articles 55-2 and 55-12: numbers covered, times the stake."""

MAXIMA = {1: 20, 2: 40, 3: 60, 4: 80, 5: 100, 6: 120, 12: 240, 18: 360, 24: 480}
"""Articles 55-3 and 55-13: numbers covered, times the table minimum."""

wheels = st.sampled_from(list(Wheel))
stakes = st.integers(min_value=1, max_value=5_000_000).map(Cents)
even_stakes = st.integers(min_value=1, max_value=2_500_000).map(lambda half: Cents(2 * half))


def bets_of(wheel: Wheel) -> st.SearchStrategy[Bet]:
    return st.sampled_from(list(layout(wheel).values()))


any_bet = wheels.flatmap(bets_of)


def may_be_halved(bet: Bet) -> bool:
    """By the articles: an even chance at the single zero, and the 24 numbers that pay one half."""
    return bet.wheel is Wheel.SINGLE_ZERO and len(bet.pockets) in (18, 24)


def stakes_on(bet: Bet) -> st.SearchStrategy[tuple[Bet, Cents]]:
    """The bet with a stake that it takes."""
    return st.tuples(st.just(bet), even_stakes if may_be_halved(bet) else stakes)


any_stake = any_bet.flatmap(stakes_on)
any_bag = wheels.flatmap(lambda wheel: st.lists(bets_of(wheel).flatmap(stakes_on), min_size=1, max_size=60))


def returned_in_all(bet: Bet, cents: int) -> int:
    """What a stake brings back when each pocket of its wheel wins once."""
    return sum(sum(settle(bet, Cents(cents), pocket, bet.wheel)) for pocket in pockets(bet.wheel))


# ── Payment ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(any_stake, st.data())
@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_settle_of_any_stake_on_any_number_follows_the_table_of_the_law(
    staked: tuple[Bet, Cents], data: st.DataObject
) -> None:
    bet, cents = staked
    pocket = data.draw(st.sampled_from(pockets(bet.wheel)))
    returned = won = Fraction(0)
    if pocket in bet.pockets:
        returned, won = Fraction(cents), Fraction(PAYS[len(bet.pockets)]) * cents
    elif pocket == "0" and len(bet.pockets) == 18 and bet.wheel is Wheel.SINGLE_ZERO:
        returned = Fraction(cents, 2)
    assert tuple(map(Fraction, settle(bet, cents, pocket, bet.wheel))) == (returned, won)


@pytest.mark.law("55-10")
@pytest.mark.law("55-12")
@pytest.mark.parametrize("name", ["pair", "impair", "manque", "passe", "rouge", "noir"])
def test_settle_of_an_even_chance_at_the_single_zero_returns_half_and_wins_nothing(name: str) -> None:
    bet = layout(Wheel.SINGLE_ZERO)[name]
    assert settle(bet, Cents(1_000), "0", Wheel.SINGLE_ZERO) == Payment(Cents(500), Cents(0))


@pytest.mark.law("55-2")
@pytest.mark.parametrize("zero", ["0", "00"])
@pytest.mark.parametrize("name", ["pair", "impair", "manque", "passe", "rouge", "noir"])
def test_settle_of_an_even_chance_at_a_zero_of_the_double_zero_wheel_returns_nothing(name: str, zero: str) -> None:
    assert settle(layout(Wheel.DOUBLE_ZERO)[name], Cents(1_000), zero, Wheel.DOUBLE_ZERO) == LOST == (0, 0)


@BOTH
@pytest.mark.law("55-2")
@pytest.mark.law("55-12")
def test_settle_of_columns_and_dozens_at_a_zero_loses_the_whole_stake(wheel: Wheel) -> None:
    wide = [bet for bet in layout(wheel).values() if len(bet.pockets) in (12, 24)]
    assert len(wide) == (10 if wheel is Wheel.SINGLE_ZERO else 6)
    for bet in wide:
        for zero in {"0", "00"}.intersection(pockets(wheel)):
            assert settle(bet, Cents(1_000), zero, wheel) == LOST


@pytest.mark.law("55-12")
def test_edge_of_every_bet_of_the_single_zero_is_one_in_37_and_half_that_on_even_chances() -> None:
    for bet in layout(Wheel.SINGLE_ZERO).values():
        expected = Fraction(1, 74) if bet.kind is BetKind.CHANCE_SIMPLE else Fraction(1, 37)
        assert 1 - Fraction(returned_in_all(bet, 200), 37 * 200) == expected, bet.name


@pytest.mark.law("55-2")
def test_edge_of_every_bet_of_the_double_zero_is_one_in_19_and_3_in_38_on_five_numbers() -> None:
    for bet in layout(Wheel.DOUBLE_ZERO).values():
        expected = Fraction(3, 38) if bet.kind is BetKind.CINQ_NUMEROS else Fraction(1, 19)
        assert 1 - Fraction(returned_in_all(bet, 201), 38 * 201) == expected, bet.name


@given(any_bag)
def test_round_of_any_stakes_over_all_numbers_leaves_the_house_its_edge_to_the_cent(
    bag: list[tuple[Bet, Cents]],
) -> None:
    wheel = bag[0][0].wheel
    staked = sum(cents for _, cents in bag)
    kept = 0
    for pocket in pockets(wheel):
        payments = [settle(bet, cents, pocket, wheel) for bet, cents in bag]
        kept += staked - sum(payment.returned_cents + payment.winnings_cents for payment in payments)
    # Every bet would be fair on 36 pockets, so each zero is worth one stake to the house, or half of one where half
    # comes back; five numbers pay for 35 pockets of 38.
    exceptions = {BetKind.CHANCE_SIMPLE: Fraction(1, 2)} if wheel is Wheel.SINGLE_ZERO else {BetKind.CINQ_NUMEROS: 3}
    assert kept == sum(exceptions.get(bet.kind, wheel - 36) * cents for bet, cents in bag)


@given(any_stake, st.integers(min_value=1, max_value=2_500_000), st.data())
def test_settle_of_two_stakes_is_the_settlement_of_their_sum(
    staked: tuple[Bet, Cents], more: int, data: st.DataObject
) -> None:
    bet, first = staked
    second = Cents(2 * more)
    pocket = data.draw(st.sampled_from(pockets(bet.wheel)))
    apart = zip(settle(bet, first, pocket, bet.wheel), settle(bet, second, pocket, bet.wheel), strict=True)
    assert settle(bet, Cents(first + second), pocket, bet.wheel) == tuple(map(sum, apart))


@BOTH
def test_even_cents_are_required_exactly_where_the_law_halves_a_stake(wheel: Wheel) -> None:
    required = {name for name, bet in layout(wheel).items() if requires_even_cents(bet, wheel)}
    halved = {"colonnes-1-2", "colonnes-2-3", "douzaines-1-2", "douzaines-2-3"}
    halved |= {"pair", "impair", "manque", "passe", "rouge", "noir"}
    assert required == (halved if wheel is Wheel.SINGLE_ZERO else set())


@given(
    st.sampled_from(["rouge", "passe", "colonnes-1-2", "douzaines-2-3"]),
    even_stakes,
    st.sampled_from(pockets(Wheel.SINGLE_ZERO)),
)
def test_settle_of_an_odd_stake_where_half_may_be_due_is_an_error_whatever_wins(
    name: str, cents: Cents, pocket: str
) -> None:
    with pytest.raises(ValueError, match="should have been refused"):
        settle(layout(Wheel.SINGLE_ZERO)[name], Cents(cents - 1), pocket, Wheel.SINGLE_ZERO)


@BOTH
@pytest.mark.parametrize("cents", [0, -2, -1_000])
def test_settle_of_a_stake_that_is_none_is_an_error(wheel: Wheel, cents: int) -> None:
    with pytest.raises(ValueError, match="should have been refused"):
        settle(layout(wheel)["plein-17"], Cents(cents), "17", wheel)


@pytest.mark.parametrize(
    ("wheel", "pocket"),
    [(Wheel.SINGLE_ZERO, "00"), (Wheel.SINGLE_ZERO, "37"), (Wheel.DOUBLE_ZERO, "000"), (Wheel.DOUBLE_ZERO, "")],
)
def test_settle_on_a_pocket_that_the_wheel_does_not_have_is_an_error(wheel: Wheel, pocket: str) -> None:
    with pytest.raises(ValueError, match="nothing can be settled"):
        settle(layout(wheel)["rouge"], Cents(200), pocket, wheel)


@given(any_bet, st.data())
def test_bet_of_one_wheel_at_the_other_is_never_judged_nor_paid(bet: Bet, data: st.DataObject) -> None:
    other = Wheel.DOUBLE_ZERO if bet.wheel is Wheel.SINGLE_ZERO else Wheel.SINGLE_ZERO
    pocket = data.draw(st.sampled_from(pockets(other)))
    with pytest.raises(ValueError, match="rules never mix"):
        settle(bet, Cents(200), pocket, other)
    with pytest.raises(ValueError, match="rules never mix"):
        requires_even_cents(bet, other)
    with pytest.raises(ValueError, match="rules never mix"):
        refusal(bet, Cents(0), Cents(100), Cents(0), Cents(100), other)


# ── Limits ────────────────────────────────────────────────────────────────────────────────────────────────────────────

minima = st.integers(min_value=1, max_value=10_000).map(Cents)


@BOTH
@pytest.mark.law("55-3")
@pytest.mark.law("55-13")
def test_maximum_of_every_bet_is_the_multiple_of_the_table_minimum_that_the_law_gives(wheel: Wheel) -> None:
    for bet in layout(wheel).values():
        assert bet.maximum_times == MAXIMA[len(bet.pockets)], bet.name
        assert bet.max_stake(Cents(250)) == 250 * MAXIMA[len(bet.pockets)], bet.name


@given(any_bet, minima, st.data())
@pytest.mark.law("55-3")
@pytest.mark.law("55-13")
def test_refusal_of_any_stake_gives_the_first_rule_it_breaks(bet: Bet, minimum: Cents, data: st.DataObject) -> None:
    maximum = MAXIMA[len(bet.pockets)] * minimum
    chosen = Cents(data.draw(st.integers(0, 20 * minimum)))
    already = Cents(data.draw(st.integers(0, maximum)))
    edges = st.sampled_from([0, 1, minimum - 1, minimum, chosen - 1, chosen, maximum - already, maximum - already + 1])
    cents = Cents(data.draw(edges | st.integers(-minimum, maximum + minimum)))
    fault = refusal(bet, cents, chosen, already, minimum, bet.wheel)
    broken = [
        (cents <= 0, StakeFault.NOT_POSITIVE),
        (cents < minimum or cents < chosen, StakeFault.BELOW_MINIMUM),
        (may_be_halved(bet) and cents % 2 == 1, StakeFault.NOT_EVEN),
        (already + cents > maximum, StakeFault.ABOVE_MAXIMUM),
    ]
    assert fault == next((reason for is_broken, reason in broken if is_broken), None)


@BOTH
def test_refusal_of_odd_cents_meets_exactly_the_bets_that_may_be_halved(wheel: Wheel) -> None:
    for bet in layout(wheel).values():
        odd = StakeFault.NOT_EVEN if may_be_halved(bet) else None
        faults = [refusal(bet, Cents(cents), Cents(100), Cents(0), Cents(100), wheel) for cents in range(100, 106)]
        assert faults == [None, odd, None, odd, None, odd], bet.name


@given(any_bet, minima, st.data())
@pytest.mark.law("55-3")
@pytest.mark.law("55-13")
def test_refusal_over_many_stakes_on_one_bet_never_lets_the_total_pass_the_maximum(
    bet: Bet, minimum: Cents, data: st.DataObject
) -> None:
    maximum = MAXIMA[len(bet.pockets)] * minimum
    total = 0
    for cents in data.draw(st.lists(st.integers(minimum, maximum).map(Cents), max_size=12)):
        fault = refusal(bet, cents, minimum, Cents(total), minimum, bet.wheel)
        if fault is None:
            total += cents
        elif fault is StakeFault.ABOVE_MAXIMUM:
            assert total + cents > maximum
        assert total <= maximum


@given(any_bet, minima, st.data())
def test_stake_that_is_not_refused_can_be_settled_whatever_wins(bet: Bet, minimum: Cents, data: st.DataObject) -> None:
    cents = Cents(data.draw(st.integers(minimum, bet.max_stake(minimum))))
    assume(refusal(bet, cents, minimum, Cents(0), minimum, bet.wheel) is None)
    for pocket in pockets(bet.wheel):
        payment = settle(bet, cents, pocket, bet.wheel)
        assert 0 <= payment.returned_cents <= cents
        assert payment.winnings_cents >= 0


@pytest.mark.law("67-15")
def test_refusal_under_the_minimum_of_the_post_leaves_the_maxima_where_the_table_has_them() -> None:
    bet = layout(Wheel.SINGLE_ZERO)["plein-17"]
    table, chosen = Cents(100), Cents(500)
    judged = {
        cents: refusal(bet, Cents(cents), chosen, Cents(0), table, Wheel.SINGLE_ZERO)
        for cents in (499, 500, 2_000, 2_001)
    }
    assert judged == {499: StakeFault.BELOW_MINIMUM, 500: None, 2_000: None, 2_001: StakeFault.ABOVE_MAXIMUM}


def test_refusal_under_a_post_minimum_below_the_tables_keeps_the_tables_floor() -> None:
    bet = layout(Wheel.SINGLE_ZERO)["plein-17"]
    judged = [refusal(bet, Cents(cents), Cents(10), Cents(0), Cents(100), Wheel.SINGLE_ZERO) for cents in (99, 100)]
    assert judged == [StakeFault.BELOW_MINIMUM, None]
