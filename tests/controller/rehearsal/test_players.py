"""The players of a rehearsal know only the published protocol, stake within it, and are the same for the same seed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.delivery.wire import decode_post_message
from controller.rehearsal.players import PlayerTwin
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct
from games.signals import PlaceAnnouncement, PlaceStakes, Stake
from tests.games.table import Table

CREDIT = 50_000


def board_of(table: Table) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(json.dumps(table.game.board(table.state)))
    return shown


def seated(player: PlayerTwin, credit: int = CREDIT) -> PlayerTwin:
    """The player as the table's answers make him: seated, with credit."""
    sat = {"id": "x", "ok": True, "kind": "fr.table.player.sat.v1", "data": {"post": player.post}}
    player.on_answer(json.dumps(sat).encode())
    credited = {"ok": True, "kind": "fr.table.credit.added.v1", "data": {"post": player.post, "credit": credit}}
    player.on_answer(json.dumps(credited).encode())
    return player


@pytest.fixture
def betting() -> dict[str, Any]:
    table = Table(Conduct.LAUNCHER).opens().seats()
    table.begins_round()
    return board_of(table)


def test_player_at_an_open_table_sits_down_once(betting: dict[str, Any]) -> None:
    player = PlayerTwin(1, seed=7)
    (request,) = player.on_display(betting)
    assert json.loads(request)["do"] == "sit"
    assert player.on_display(betting) == [], "he waits for the answer"


def test_player_at_a_closed_table_asks_for_nothing_and_sits_when_it_opens(betting: dict[str, Any]) -> None:
    player = PlayerTwin(1, seed=7)
    assert player.on_display(betting | {"seance_phase": "closed"}) == []
    assert len(player.on_display(betting)) == 1


def test_player_with_credit_stakes_once_in_each_round(betting: dict[str, Any]) -> None:
    player = seated(PlayerTwin(1, seed=7))
    for number in range(1, 6):
        requests = player.on_display(betting | {"round": number})
        assert len(requests) == 1
        assert json.loads(requests[0])["round"] == number
        assert player.on_display(betting | {"round": number}) == []


@pytest.mark.parametrize("phase", ["idle", "no_more_bets", "verifying", "manual", "halted"])
def test_player_stakes_only_while_bets_are_open(betting: dict[str, Any], phase: str) -> None:
    assert seated(PlayerTwin(1, seed=7)).on_display(betting | {"phase": phase}) == []


def test_player_without_enough_credit_stakes_nothing(betting: dict[str, Any]) -> None:
    assert seated(PlayerTwin(1, seed=7), credit=betting["minimum_cents"]).on_display(betting) == []


@given(st.integers(0, 10_000), st.sampled_from(list(Wheel)))
def test_player_whatever_his_luck_asks_for_what_the_table_takes(seed: int, wheel: Wheel) -> None:
    table = Table(Conduct.LAUNCHER, wheel, announcements=frozenset({"voisins"})).opens()
    table.sits(1, "anna", CREDIT * 100)
    player = seated(PlayerTwin(1, seed), CREDIT * 100)
    for _ in range(6):
        table.begins_round()
        (payload,) = player.on_display(board_of(table))
        message = decode_post_message(payload)
        asked = json.loads(payload)
        if asked["do"] == "stake":
            stakes = tuple(Stake(bet=line["bet"], cents=line["cents"]) for line in asked["stakes"])
            outcome = table.asks(PlaceStakes, 1, round=asked["round"], stakes=stakes)
        elif asked["do"] == "announce":
            name, cents = asked["announcement"], asked["cents"]
            outcome = table.asks(PlaceAnnouncement, 1, round=asked["round"], announcement=name, cents=cents)
        else:
            assert asked["do"] == "random"
            assert 1 <= asked["count"] <= 10
            continue_round(table)
            continue
        assert message.id == asked["id"]
        assert outcome.refusal is None, asked
        continue_round(table)


def continue_round(table: Table) -> None:
    table.closes_bets()
    table.ends_round("17")


def test_player_who_leaves_presses_the_key_and_does_not_sit_down_again(betting: dict[str, Any]) -> None:
    player = seated(PlayerTwin(1, seed=7))
    assert json.loads(player.leave())["do"] == "payout"
    paid = {"id": "x", "ok": True, "kind": "fr.table.player.paid_out.v1", "data": {"post": 1, "cents": CREDIT}}
    player.on_answer(json.dumps(paid).encode())
    assert player.on_display(betting) == []


def test_player_of_the_same_seed_plays_the_same_and_of_another_seed_or_post_otherwise(betting: dict[str, Any]) -> None:
    def played(post: int, seed: int) -> list[bytes]:
        player = seated(PlayerTwin(post, seed))
        return [request for number in range(1, 20) for request in player.on_display(betting | {"round": number})]

    assert played(1, 7) == played(1, 7)
    assert played(1, 7) != played(1, 8)
    assert played(1, 7) != played(2, 7)


def test_player_names_every_request_differently(betting: dict[str, Any]) -> None:
    player = seated(PlayerTwin(1, seed=7))
    requests = [request for number in range(1, 200) for request in player.on_display(betting | {"round": number})]
    assert len({json.loads(request)["id"] for request in requests}) == len(requests)
