"""What the daemon shows of itself: plain JSON values, made from the certified state and from each part's own health."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from controller.certify.log_keys import LogKeys
from controller.codec import to_plain
from controller.options import Config
from games.health import refusals as health_refusals
from games.opening import opening_refusals
from games.roulette import spin
from games.roulette.coup import OPEN_PHASES, Phase, RouletteState
from games.roulette.game import Roulette, totals
from games.roulette.rules import Conduct

POST_PROTOCOL = "post/1"
"""The posts' protocol that this daemon speaks; docs/post-protocol.md."""


def condition(game: Roulette, state: RouletteState) -> str:
    """The table in one word, for ``up/state``."""
    if state.coup.phase in (Phase.MANUAL, Phase.HALTED):
        return "manual"
    if health_refusals(state.health, verify=False):
        return "degraded"
    if not state.seance.open:
        return "closed"
    return "ready" if game.round_closed(state) else "game"


def post(state: RouletteState, number: int) -> Mapping[str, Any]:
    """Where a post stands: the answer to its "hello"."""
    player = state.posts.player(number)
    return {
        "seance": state.seance.name,
        "round": state.coup.round,
        "phase": str(state.coup.phase),
        "seated": player is not None,
        "credit": player.credit if player else 0,
        "staked": player.staked if player else 0,
        "minimum": player.minimum if player else 0,
        "away": bool(player and player.away),
    }


def description(config: Config, *, keys: LogKeys, software_sha256: str) -> Mapping[str, Any]:
    """What the table is: retained for the centre, and the head of a report."""
    return {
        "version": version("table-controller"),
        "software_sha256": software_sha256,
        "origin": config.origin,
        "simulation": config.table.simulation,
        "game": config.game,
        "posts": config.table.posts,
        "vkeys": [verifier.vkey for verifier in keys.verifiers],
        "rules_sha256": config.rules_sha256,
        "rules": config.roulette.model_dump(mode="json", exclude_none=True),
        "post_protocol": POST_PROTOCOL,
    }


def table(state: RouletteState, game: Roulette) -> Mapping[str, Any]:
    """The game's side of the status: the board, the posts, the money, and every reason that stands in the way."""
    croupier = game.rules.conduct is Conduct.CROUPIER
    opening = opening_refusals(
        state.seance, state.health, state.statements, croupier=croupier, verify=game.rules.verify_wheel
    )
    return {
        "condition": condition(game, state),
        "board": game.board(state),
        "round_open": state.coup.phase in OPEN_PHASES,
        "incident": to_plain(state.coup.incident) if state.coup.incident else None,
        "keys_on": sorted(state.seance.keys_on),
        "posts": {number: post(state, number) for number, _ in state.posts.players()},
        "consigned": {number: to_plain(consigned) for number, consigned in state.posts.consigned.items()},
        "totals": totals(state.posts),
        "totals_carried": to_plain(state.statements.carried),
        "statements_awaited": list(state.statements.awaited),
        "health": to_plain(state.health),
        "opening_refused_for": [str(reason) for reason in opening],
        "round_refused_for": [str(reason) for reason in spin.hindrances(game.rules, state)],
    }
