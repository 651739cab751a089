"""The worked cases of the single-zero roulette: each figure there was computed by two methods, apart from this code."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from games.money import Cents
from games.roulette.announcements import AnnouncementFault, HouseOption, Piece, components
from games.roulette.layout import RED, Bet, BetKind, Wheel, layout, pockets, settle

WHEEL = Wheel.SINGLE_ZERO
BETS = layout(WHEEL)
NUMBERS = [str(number) for number in range(37)]
KINDS = {"deux-colonnes": BetKind.COLONNES, "deux-douzaines": BetKind.DOUZAINES}
NAMES = {"orphelins-a-cheval": "orphelins"}


@pytest.fixture(scope="module")
def roulette(cases: Path) -> dict[str, Any]:
    """The case file."""
    loaded: dict[str, Any] = json.loads((cases / "roulette_bets.json").read_text(encoding="utf-8"))
    return loaded


def net(bet: Bet, cents: int, number: str) -> int:
    """What the player has more (or less) after the spin."""
    return sum(settle(bet, Cents(cents), number, WHEEL)) - cents


def bundle(name: str) -> tuple[Piece, ...]:
    """The components of an announcement, all house options on."""
    pieces = components(name, WHEEL, frozenset(HouseOption))
    assert not isinstance(pieces, AnnouncementFault)
    return pieces


def net_of_bundle(name: str, number: str) -> int:
    """The result of an announcement in units of one piece."""
    piece_cents = 100
    cents = sum(net(BETS[piece.bet], piece.pieces * piece_cents, number) for piece in bundle(name))
    units, rest = divmod(cents, piece_cents)
    assert rest == 0
    return units


def test_cases_of_the_wheel_give_its_order_and_its_red_numbers(roulette: dict[str, Any]) -> None:
    assert pockets(WHEEL) == tuple(map(str, roulette["wheel"]))
    assert set(map(str, roulette["red"])) == RED


def test_cases_of_the_counts_find_as_many_bets_of_each_kind(roulette: dict[str, Any]) -> None:
    counts = {KINDS.get(kind, kind): count for kind, count in roulette["counts"].items()}
    assert counts == {kind: sum(bet.kind == kind for bet in BETS.values()) for kind in counts}
    assert sum(counts.values()) == len(BETS)


@pytest.mark.law("55-12")
def test_cases_of_the_bets_cover_and_pay_as_worked_out(roulette: dict[str, Any]) -> None:
    assert len(roulette["bets"]) > 100
    for case in roulette["bets"]:
        bet = BETS[case["id"]]
        assert bet.kind == KINDS.get(case["kind"], case["kind"]), case["id"]
        assert bet.pockets == set(map(str, case["numbers"])), case["id"]
        assert Fraction(bet.pays_numerator, bet.pays_denominator) == Fraction(case["payout"]), case["id"]


@pytest.mark.law("55-12")
def test_cases_of_the_bets_settle_as_worked_out_for_each_number(roulette: dict[str, Any]) -> None:
    halved = 0
    for case in roulette["bets"]:
        expected = list(case["net"])
        if "net_zero_partage" in case:
            expected[0] = case["net_zero_partage"]
            halved += 1
        nets = [net(BETS[case["id"]], roulette["stake_units"], number) for number in NUMBERS]
        assert nets == expected, case["id"]
    assert halved == sum(case["kind"] == "chance-simple" for case in roulette["bets"]) > 0


def test_cases_of_the_edges_are_what_the_house_keeps(roulette: dict[str, Any]) -> None:
    edges = roulette["edges"]
    for bet in BETS.values():
        kept = Fraction(-sum(net(bet, 200, number) for number in NUMBERS), 37 * 200)
        even_chance = bet.kind is BetKind.CHANCE_SIMPLE
        assert kept == Fraction(edges["even_partage" if even_chance else "all_other_bets"]), bet.name


@pytest.mark.law("67-15")
@pytest.mark.parametrize("chapter", ["announcements", "finales", "finales_cheval"])
def test_cases_of_the_announcements_place_and_pay_as_worked_out(roulette: dict[str, Any], chapter: str) -> None:
    assert roulette[chapter]
    for case in roulette[chapter]:
        name = NAMES.get(case["id"], case["id"])
        placed = {piece.bet: piece.pieces for piece in bundle(name)}
        assert placed == {place["bet"]: place["chips"] for place in case["placement"]}, name
        assert sum(placed.values()) == case["chips"], name
        assert set().union(*(BETS[bet].pockets for bet in placed)) == set(map(str, case["covers"])), name
        assert [net_of_bundle(name, number) for number in NUMBERS] == [int(n) for n in case["net_per_chip_unit"]], name


def test_cases_of_the_neighbours_name_the_same_five_numbers(roulette: dict[str, Any]) -> None:
    assert len(roulette["neighbours"]) == 37
    for case in roulette["neighbours"]:
        expected = tuple(Piece(f"plein-{number}", 1) for number in case["neighbours_2"])
        assert bundle(f"voisins-{case['number']}") == expected


def test_cases_of_the_completes_cost_and_win_as_worked_out(roulette: dict[str, Any]) -> None:
    assert roulette["complete"]
    for case in roulette["complete"]:
        pieces = bundle(f"complet-{case['number']}")
        won = sum(
            settle(BETS[piece.bet], Cents(piece.pieces), str(case["number"]), WHEEL).winnings_cents for piece in pieces
        )
        assert (sum(piece.pieces for piece in pieces), won) == (case["chips"], int(case["win_if_number"]))
