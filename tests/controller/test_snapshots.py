"""What the daemon shows of itself is true, plain JSON, and made of certified state."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller import snapshots
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.config import load
from games.roulette.coup import Phase
from games.roulette.game import Roulette
from games.roulette.rules import Conduct
from tests.games.table import EURO, Table, playing

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "config" / "roulette-launcher.toml"
KEYS = LogKeys.of(*(Signer("casino.example/table/t07/1", bytes([at]) * 32).verifier for at in (1, 2)))
POST_KEYS = {"seance", "round", "phase", "seated", "credit", "staked", "minimum", "away"}


def shown(table: Table) -> dict[str, Any]:
    """The game's side of the status, through JSON."""
    document: dict[str, Any] = json.loads(json.dumps(snapshots.table(table.state, table.game)))
    return document


def opened(conduct: Conduct) -> Table:
    return playing(conduct)


@pytest.mark.parametrize("conduct", list(Conduct))
@pytest.mark.parametrize(
    ("make", "condition"),
    [
        (lambda conduct: silent(Table(conduct)), "degraded"),
        (lambda conduct: closed(conduct), "closed"),
        (lambda conduct: opened(conduct), "ready"),
        (lambda conduct: opened(conduct).reaches(Phase.BETTING), "game"),
        (lambda conduct: opened(conduct).reaches(Phase.NO_MORE_BETS), "game"),
        (lambda conduct: opened(conduct).reaches(Phase.MANUAL), "manual"),
        (lambda conduct: opened(conduct).reaches(Phase.HALTED), "manual"),
        (lambda conduct: silent(opened(conduct)), "degraded"),
        (lambda conduct: silent(opened(conduct).reaches(Phase.BETTING)), "manual"),
    ],
    ids=[
        "silent and closed",
        "closed",
        "ready",
        "betting",
        "no more bets",
        "manual",
        "halted",
        "silent",
        "silent in play",
    ],
)
def test_condition_of_a_table_is_one_true_word(
    conduct: Conduct, make: Callable[[Conduct], Table], condition: str
) -> None:
    table = make(conduct)
    assert snapshots.condition(table.game, table.state) == condition
    assert shown(table)["condition"] == condition


def closed(conduct: Conduct) -> Table:
    table = Table(conduct)
    table.wheel_is_verified()
    return table


def silent(table: Table) -> Table:
    table.wheel_falls_silent()
    return table


@pytest.mark.parametrize("phase", list(Phase))
def test_status_of_a_table_in_any_phase_is_plain_json(phase: Phase) -> None:
    table = opened(Conduct.CROUPIER).reaches(phase)
    document = shown(table)
    assert document["board"]["phase"] == phase
    assert document["round_open"] is (phase not in (Phase.IDLE, Phase.HALTED))
    assert (document["incident"] is not None) is (phase in (Phase.MANUAL, Phase.HALTED))


def test_status_shows_each_seated_post_and_the_money_to_the_cent() -> None:
    table = opened(Conduct.LAUNCHER)
    table.begins_round()
    table.stakes(1, {"rouge": 2 * EURO, "plein-17": EURO})
    document = shown(table)
    assert set(document["posts"]) == {"1", "2"}
    assert document["posts"]["1"] | {"seance": ""} == {
        "seance": "",
        "round": 1,
        "phase": "betting",
        "seated": True,
        "credit": 997 * EURO,
        "staked": 3 * EURO,
        "minimum": 0,
        "away": False,
    }
    totals = document["totals"]
    assert (totals["credited"], totals["staked"]) == (2_000 * EURO, 3 * EURO)
    kept = totals["staked"] - totals["returned"] - totals["won"]
    seated = sum(post["credit"] for post in document["posts"].values())
    assert totals["credited"] == seated + kept + totals["paid_out"] + totals["consigned"]


def test_status_tells_every_reason_that_stands_in_the_way_at_once() -> None:
    table = Table(Conduct.CROUPIER)
    table.wheel_falls_silent()
    table.storage_is("close")
    document = shown(table)
    assert document["opening_refused_for"] == [
        "E-POSTS-NOT-IN-SERVICE",
        "E-WHEEL-SILENT",
        "E-WHEEL-NOT-VERIFIED",
        "E-STORAGE-LOW",
    ]
    assert document["round_refused_for"] == [
        "E-SEANCE-CLOSED",
        "E-WHEEL-SILENT",
        "E-WHEEL-NOT-VERIFIED",
        "E-STORAGE-LOW",
    ]


def test_status_of_a_table_that_stands_ready_names_no_reason() -> None:
    document = shown(opened(Conduct.CROUPIER))
    assert document["round_refused_for"] == []


def test_greeting_of_a_free_post_and_of_an_unknown_one_says_that_nobody_sits_there() -> None:
    table = opened(Conduct.LAUNCHER)
    for number in (3, 99):
        greeting = snapshots.post(table.state, number)
        assert set(greeting) == POST_KEYS
        assert (greeting["seated"], greeting["credit"], greeting["staked"]) == (False, 0, 0)


def test_greeting_of_a_player_who_stepped_away_says_so() -> None:
    table = opened(Conduct.LAUNCHER)
    table.steps_away(1)
    assert snapshots.post(table.state, 1)["away"] is True
    assert snapshots.post(table.state, 2)["away"] is False


def test_description_names_what_a_centre_must_know_to_check_everything() -> None:
    config = load(LAUNCHER, {"table": {"simulation": True}})
    described = json.loads(json.dumps(snapshots.description(config, keys=KEYS, software_sha256="f" * 64)))
    assert described["origin"] == "casino.example.simulation/table/t07/1"
    assert described["simulation"] is True
    assert described["vkeys"] == KEYS.text.splitlines()
    assert described["rules_sha256"] == config.rules_sha256
    assert described["rules"]["minimum_cents"] == 50
    assert described["post_protocol"] == "post/1"
    assert described["posts"] == config.table.posts
    assert Roulette(config.rules).rules.posts == described["posts"]
