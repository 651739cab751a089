"""Stakes: accepted whole or refused whole, with the reason, and only between "faites vos jeux" and "rien ne va plus".

The law, electronic roulette: "chaque poste de jeu peut permettre au joueur de choisir sa mise minimum. Les annonces
classiques ainsi que les combinaisons aléatoires proposées par l'appareil sont également autorisées (…) A chaque mise,
le compteur des crédits est débité (…) un "rien ne va plus" s'enclenche (…) et les joueurs ne peuvent plus miser."
"""

import pytest

from games.money import Cents
from games.posts import MinimumChosen, PostSettled, RequestRefused, StakesPlaced, StakesTakenBack
from games.refusals import Refusal
from games.roulette.announcements import HouseOption
from games.roulette.coup import Phase
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct
from games.signals import PlaceStakes, Stake
from tests.games.table import EURO, Table, playing

both = pytest.mark.parametrize("conduct", list(Conduct))


def betting(wheel: Wheel = Wheel.SINGLE_ZERO, **rules: object) -> Table:
    """An open table with two players of 1 000 €, bets open."""
    return playing(Conduct.CROUPIER, wheel, **rules).reaches(Phase.BETTING)


def refused_bet(table: Table) -> str:
    """The bet that the last refusal named."""
    return table.last.the(RequestRefused).bet


# ── Stakes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.law("67-15")
def test_stake_debits_the_credit_at_once(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.BETTING)
    placed = table.stakes(1, {"plein-17": 5 * EURO, "rouge": 10 * EURO}).the(StakesPlaced)
    assert (placed.round, placed.origin, placed.cents, placed.credit) == (1, "bets", 15 * EURO, 985 * EURO)
    assert (table.credit(1), table.staked(1)) == (985 * EURO, 15 * EURO)


@pytest.mark.parametrize(
    ("bets", "reason", "bet"),
    [
        ({"plein-17": 0}, Refusal.STAKE_NOT_POSITIVE, "plein-17"),
        ({"plein-17": -100}, Refusal.STAKE_NOT_POSITIVE, "plein-17"),
        ({"plein-17": 99}, Refusal.STAKE_BELOW_MINIMUM, "plein-17"),
        ({"plein-17": 20 * EURO + 1}, Refusal.STAKE_ABOVE_MAXIMUM, "plein-17"),
        ({"rouge": 101}, Refusal.STAKE_NOT_EVEN, "rouge"),
        ({"colonnes-1-2": 101}, Refusal.STAKE_NOT_EVEN, "colonnes-1-2"),
        ({"plein-37": EURO}, Refusal.BET_UNKNOWN, "plein-37"),
        ({"cheval-1-5": EURO}, Refusal.BET_UNKNOWN, "cheval-1-5"),
        ({"": EURO}, Refusal.BET_UNKNOWN, ""),
        ({}, Refusal.STAKE_NOT_POSITIVE, ""),
    ],
)
def test_stake_against_the_rules_is_refused_with_its_reason_and_its_bet(
    bets: dict[str, int], reason: Refusal, bet: str
) -> None:
    table = betting()
    assert table.stakes(1, bets).refusal is reason
    assert refused_bet(table) == bet
    assert (table.credit(1), table.staked(1)) == (1_000 * EURO, 0)


@pytest.mark.law("55-12")
@pytest.mark.law("55-2")
@pytest.mark.parametrize(
    ("wheel", "bet"),
    [
        (Wheel.SINGLE_ZERO, "cinq-numeros"),
        (Wheel.SINGLE_ZERO, "plein-00"),
        (Wheel.DOUBLE_ZERO, "douzaines-1-2"),
        (Wheel.DOUBLE_ZERO, "colonnes-2-3"),
        (Wheel.DOUBLE_ZERO, "carre-0-3"),
    ],
)
def test_bet_of_the_other_wheel_is_refused(wheel: Wheel, bet: str) -> None:
    table = betting(wheel)
    assert table.stakes(1, {bet: 2 * EURO}).refusal is Refusal.BET_UNKNOWN


@pytest.mark.law("55-13")
def test_stakes_of_several_messages_share_the_maximum_of_the_bet_and_players_do_not() -> None:
    table = betting()
    assert table.stakes(1, {"plein-17": 12 * EURO}).refusal is None
    assert table.stakes(1, {"plein-17": 9 * EURO}).refusal is Refusal.STAKE_ABOVE_MAXIMUM
    assert table.stakes(1, {"plein-17": 8 * EURO}).refusal is None
    assert table.stakes(1, {"plein-17": EURO}).refusal is Refusal.STAKE_ABOVE_MAXIMUM
    assert table.stakes(2, {"plein-17": 20 * EURO}).refusal is None


@pytest.mark.law("55-13")
def test_stakes_of_one_message_on_the_same_bet_share_its_maximum() -> None:
    table = betting()
    twice = (Stake(bet="plein-17", cents=Cents(12 * EURO)), Stake(bet="plein-17", cents=Cents(9 * EURO)))
    assert table.asks(PlaceStakes, 1, round=1, stakes=twice).refusal is Refusal.STAKE_ABOVE_MAXIMUM


def test_stakes_of_which_one_is_refused_are_all_refused() -> None:
    table = betting()
    assert table.stakes(1, {"rouge": 10 * EURO, "plein-17": 21 * EURO}).refusal is Refusal.STAKE_ABOVE_MAXIMUM
    assert table.staked(1) == 0


def test_stakes_beyond_the_credit_are_refused_and_those_up_to_it_are_not() -> None:
    table = betting()
    table.cashes_out(1)
    table.sits(1, "anna", 30 * EURO)
    assert table.stakes(1, {"rouge": 20 * EURO, "noir": 12 * EURO}).refusal is Refusal.CREDIT_SHORT
    assert table.stakes(1, {"rouge": 20 * EURO, "noir": 10 * EURO}).refusal is None
    assert table.credit(1) == 0
    assert table.stakes(1, {"plein-4": EURO}).refusal is Refusal.CREDIT_SHORT


@both
def test_stakes_for_another_round_or_when_there_is_none_are_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.ROUND_NONE
    assert table.stakes(1, {"rouge": 2 * EURO}, of_round=1).refusal is Refusal.ROUND_NONE
    table.reaches(Phase.BETTING)
    for other in (0, 2, -1):
        assert table.stakes(1, {"rouge": 2 * EURO}, of_round=other).refusal is Refusal.ROUND_OTHER


@both
@pytest.mark.law("67-15")
def test_stakes_after_rien_ne_va_plus_are_refused_as_late_until_the_next_round(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.NO_MORE_BETS)

    def late() -> set[Refusal | None]:
        asked = [
            table.stakes(1, {"rouge": 2 * EURO}, of_round=1),
            table.announces(1, "tiers", EURO),
            table.stakes_at_random(1, ("4",), EURO),
            table.takes_back(1),
        ]
        return {outcome.refusal for outcome in asked}

    assert late() == {Refusal.STAKE_LATE}
    table.ends_round("17")
    assert table.phase is Phase.IDLE
    assert late() == {Refusal.STAKE_LATE}


@pytest.mark.law("67-15")
def test_stakes_while_the_number_is_verified_or_an_incident_is_settled_are_refused_as_late() -> None:
    for phase in (Phase.VERIFYING, Phase.MANUAL, Phase.HALTED):
        assert playing().reaches(phase).stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE, phase


def test_stakes_taken_back_while_bets_are_open_return_exactly() -> None:
    table = betting()
    table.stakes(1, {"plein-17": 5 * EURO})
    table.stakes(1, {"rouge": 10 * EURO, "plein-17": 5 * EURO})
    table.stakes(2, {"noir": 10 * EURO})
    back = table.takes_back(1).the(StakesTakenBack)
    assert (back.cents, back.credit) == (20 * EURO, 1_000 * EURO)
    assert table.takes_back(1).refusal is Refusal.NO_STAKE
    table.closes_bets()
    assert [settled.post for settled in table.ends_round("17").every(PostSettled)] == [2]


# ── Announcements, random combinations, minimum ───────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_announcement_is_staked_as_the_bets_behind_it() -> None:
    table = betting()
    placed = table.announces(1, "voisins-du-zero", 2 * EURO).the(StakesPlaced)
    assert (placed.origin, placed.cents) == ("voisins-du-zero", 18 * EURO)
    stakes = {stake.bet: stake.cents for stake in placed.stakes}
    assert stakes["transversale-0-2-3"] == stakes["carre-25-29"] == 4 * EURO
    assert stakes["cheval-4-7"] == 2 * EURO


@pytest.mark.law("67-15")
def test_announcement_takes_the_limits_of_the_bets_behind_it() -> None:
    table = betting()
    table.stakes(1, {"plein-1": 18 * EURO})
    assert table.announces(1, "orphelins", 3 * EURO).refusal is Refusal.STAKE_ABOVE_MAXIMUM
    assert refused_bet(table) == "plein-1"
    assert table.announces(1, "orphelins", 2 * EURO).refusal is None


@pytest.mark.parametrize(
    ("announcement", "reason"),
    [
        ("voisins-du-pot", Refusal.ANNOUNCEMENT_UNKNOWN),
        ("", Refusal.ANNOUNCEMENT_UNKNOWN),
        ("voisins-00", Refusal.ANNOUNCEMENT_WRONG_WHEEL),
        ("jeu-zero", Refusal.ANNOUNCEMENT_NOT_PERMITTED),
    ],
)
def test_announcement_that_the_table_does_not_have_is_refused_by_its_name(announcement: str, reason: Refusal) -> None:
    table = betting()
    assert table.announces(1, announcement, EURO).refusal is reason
    assert refused_bet(table) == announcement


def test_announcement_on_a_bet_that_the_house_took_off_its_layout_is_refused() -> None:
    table = betting(zero_combinations=frozenset())
    assert table.announces(1, "voisins-du-zero", EURO).refusal is Refusal.ANNOUNCEMENT_NOT_ON_LAYOUT


def test_announcement_that_the_house_offers_is_accepted() -> None:
    table = betting(announcements=frozenset(HouseOption))
    assert table.announces(1, "jeu-zero", EURO).the(StakesPlaced).cents == 4 * EURO


@pytest.mark.parametrize("cents", [0, -EURO])
def test_announcement_of_pieces_without_value_is_refused(cents: int) -> None:
    assert betting().announces(1, "tiers", cents).refusal is Refusal.STAKE_NOT_POSITIVE


@pytest.mark.law("67-15")
def test_random_combination_is_staked_en_plein_on_what_was_drawn() -> None:
    table = betting()
    placed = table.stakes_at_random(1, ("4", "0", "36"), EURO).the(StakesPlaced)
    assert placed.origin == "random"
    assert [stake.bet for stake in placed.stakes] == ["plein-4", "plein-0", "plein-36"]


def test_random_combination_is_refused_where_the_house_has_none_and_on_pockets_that_do_not_exist() -> None:
    assert betting(random_combinations=False).stakes_at_random(1, ("4",), EURO).refusal is Refusal.RANDOM_OFF
    assert betting().stakes_at_random(1, ("00",), EURO).refusal is Refusal.BET_UNKNOWN
    assert betting().stakes_at_random(1, (), EURO).refusal is Refusal.STAKE_NOT_POSITIVE


@pytest.mark.law("67-15")
def test_minimum_of_a_post_is_the_players_choice_above_that_of_the_table() -> None:
    table = betting()
    assert table.chooses_minimum(1, 5 * EURO).facts == (
        MinimumChosen(post=1, request=table.last.the(MinimumChosen).request, cents=Cents(5 * EURO)),
    )
    assert table.stakes(1, {"plein-17": 4 * EURO}).refusal is Refusal.STAKE_BELOW_MINIMUM
    assert table.stakes(1, {"plein-17": 5 * EURO}).refusal is None
    assert table.stakes(2, {"plein-17": EURO}).refusal is None  # his neighbour chose nothing


def test_minimum_of_a_post_leaves_the_maxima_as_they_are() -> None:
    table = betting()
    table.chooses_minimum(1, 5 * EURO)
    assert table.stakes(1, {"plein-17": 21 * EURO}).refusal is Refusal.STAKE_ABOVE_MAXIMUM


@pytest.mark.parametrize("cents", [-EURO, 0, 99, 20 * EURO + 1])
def test_minimum_under_that_of_the_table_or_over_the_maximum_of_a_plein_is_refused(cents: int) -> None:
    assert betting().chooses_minimum(1, cents).refusal is Refusal.MINIMUM_OUT_OF_RANGE


def test_minimum_is_refused_where_the_house_fixes_it_and_forgotten_when_the_player_leaves() -> None:
    assert betting(player_minimum=False).chooses_minimum(1, 5 * EURO).refusal is Refusal.MINIMUM_FIXED
    table = betting()
    table.chooses_minimum(1, 5 * EURO)
    table.cashes_out(1)
    table.sits(1, "carla", 10 * EURO)
    assert table.stakes(1, {"plein-17": EURO}).refusal is None
