"""The books of a whole journal, from nothing but its entries: folded, watched fact by fact, and decided again.

``Watch`` keeps a ledger beside the game and holds every sentence of the rules against each fact: money is conserved,
nothing is paid without "rien ne va plus", each pay-out is the article's.
"""

import json
from collections import Counter
from collections.abc import Iterable

from controller import codec
from controller.history import replay
from games.roulette.coup import RouletteState
from games.roulette.facts import GameRestarted, IncidentDeclared, RoundClosed, RoundVoided
from games.roulette.game import Roulette
from games.rules import Fact
from tests.games.watch import Watch


def facts_of(leaves: Iterable[bytes]) -> list[Fact]:
    """The facts of entries."""
    entries = [json.loads(leaf) for leaf in leaves]
    return [codec.decode_fact(entry["type"], entry["data"]) for entry in entries]


def audited(game: Roulette, leaves: list[bytes]) -> tuple[RouletteState, Counter[str]]:
    """Hold everything against the rules; returns the final state and how often each kind of fact came."""
    watch, state = Watch(game.rules), game.initial()
    facts = facts_of(leaves)
    for fact in facts:
        before, state = state, game.evolve(state, fact)
        watch.fact(before, fact, state)
    replayed, done = replay(game, leaves)
    assert replayed == state
    assert done.entries == len(leaves)
    return state, Counter(fact.KIND.removeprefix("fr.").removesuffix(".v1") for fact in facts)


def unresolved_incidents(leaves: list[bytes]) -> list[IncidentDeclared]:
    """The incidents whose round was not ended by persons or by rule, or after which nobody let play go on."""
    waiting: list[IncidentDeclared] = []
    ended = True
    for fact in facts_of(leaves):
        if isinstance(fact, IncidentDeclared):
            waiting.append(fact)
            ended = fact.round == 0
        elif isinstance(fact, RoundClosed | RoundVoided):
            ended = True
        elif isinstance(fact, GameRestarted) and ended:
            waiting.clear()
    return waiting
