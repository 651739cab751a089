"""Paying a round, or giving every stake back. Each post's figures add up, and so do the round's."""

from games import posts as posts_
from games.money import Cents
from games.posts import Player, PostRecredited, Posts, PostSettled
from games.roulette.facts import RoundClosed, RoundVoided
from games.roulette.layout import settle
from games.roulette.rules import RouletteRules
from games.rules import Fact
from games.signals import Person
from games.sitting import consign


def settlement(rules: RouletteRules, posts: Posts, round_number: int, pocket: str) -> tuple[Fact, ...]:
    """The facts that pay every post for ``pocket`` and close the round."""
    settled = tuple(
        _settle_post(rules, round_number, pocket, number, player) for number, player in posts.players() if player.stakes
    )
    closed = RoundClosed(
        round=round_number,
        pocket=pocket,
        posts=len(settled),
        staked=Cents(sum(post.staked for post in settled)),
        returned=Cents(sum(post.returned for post in settled)),
        won=Cents(sum(post.won for post in settled)),
    )
    return (*settled, *_consign_suspended(posts, settled), closed)


def _settle_post(rules: RouletteRules, round_number: int, pocket: str, number: int, player: Player) -> PostSettled:
    returned = won = 0
    for name, cents in player.stakes.items():
        stake_back, winnings = settle(rules.bets[name], cents, pocket, rules.wheel)
        returned += stake_back
        won += winnings
    return PostSettled(
        post=number,
        round=round_number,
        staked=player.staked,
        returned=Cents(returned),
        won=Cents(won),
        credit=Cents(player.credit + returned + won),
    )


def voiding(
    posts: Posts, round_number: int, reason: str, croupier: Person | None, director: Person | None
) -> tuple[Fact, ...]:
    """The facts that give every stake back and close a void round."""
    recredited = tuple(
        PostRecredited(
            post=number, round=round_number, cents=player.staked, credit=Cents(player.credit + player.staked)
        )
        for number, player in posts.players()
        if player.stakes
    )
    voided = RoundVoided(
        round=round_number,
        reason=reason,
        cents=Cents(sum(post.cents for post in recredited)),
        croupier=croupier,
        director=director,
    )
    return (*recredited, *_consign_suspended(posts, recredited), voided)


def _consign_suspended(posts: Posts, results: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Players suspended while their stakes were in play: now everything is consigned and the place is free."""
    for result in results:
        posts = posts_.evolve(posts, result)
    facts = []
    for number, player in posts.players():
        if player.suspended:
            consigned = consign(posts, number, player)
            posts = posts_.evolve(posts, consigned)
            facts.append(consigned)
    return tuple(facts)
