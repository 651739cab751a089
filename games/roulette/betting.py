"""Stakes: accepted whole or refused whole, with the reason, and only between "faites vos jeux" and "rien ne va plus".

The law's maxima hold for one player on one bet, over all his stakes of the round; they are multiples of the *table's*
minimum. The player's own minimum may only raise the floor (regulation notes, 10.5).
"""

from games.money import Cents
from games.posts import MinimumChosen, Player, StakesPlaced, StakesTakenBack
from games.refusals import Refusal
from games.roulette.announcements import AnnouncementFault, components
from games.roulette.coup import OPEN_PHASES, Phase, RouletteState
from games.roulette.layout import refusal
from games.roulette.rules import RouletteRules
from games.rules import Decision
from games.signals import ChooseMinimum, PlaceAnnouncement, PlaceRandom, PlaceStakes, Stake, TakeBack
from games.sitting import hindrance, refuse_request

Staking = PlaceStakes | PlaceAnnouncement | PlaceRandom


def decide(rules: RouletteRules, state: RouletteState, signal: Staking | TakeBack | ChooseMinimum) -> Decision:
    """Answer what a player wants with his stakes."""
    if reason := hindrance(state.seance, state.posts, signal):
        return refuse_request(signal, reason)
    player = state.posts.seated(signal.post)
    if isinstance(signal, ChooseMinimum):
        return _choose_minimum(rules, signal)
    if reason := _untimely(state, signal):
        return refuse_request(signal, reason)
    if isinstance(signal, TakeBack):
        return _take_back(signal, player)
    match signal:
        case PlaceStakes(stakes=stakes):
            return _place(rules, signal, player, stakes, "bets")
        case PlaceAnnouncement(announcement=name, cents=cents):
            pieces = components(name, rules.wheel, rules.announcements, rules.zero_combinations)
            if isinstance(pieces, AnnouncementFault):
                return refuse_request(signal, Refusal(pieces), name)
            stakes = tuple(Stake(bet=piece.bet, cents=Cents(piece.pieces * cents)) for piece in pieces)
            return _place(rules, signal, player, stakes, name)
        case PlaceRandom(cents=cents, pockets=pockets):
            if not rules.random_combinations:
                return refuse_request(signal, Refusal.RANDOM_OFF)
            return _place(rules, signal, player, tuple(Stake(bet=f"plein-{p}", cents=cents) for p in pockets), "random")


def _untimely(state: RouletteState, signal: Staking | TakeBack) -> Refusal | None:
    coup = state.coup
    if coup.round and signal.round == coup.round:
        return None if coup.phase is Phase.BETTING else Refusal.STAKE_LATE
    return Refusal.ROUND_OTHER if coup.phase in OPEN_PHASES else Refusal.ROUND_NONE


def _place(rules: RouletteRules, signal: Staking, player: Player, stakes: tuple[Stake, ...], origin: str) -> Decision:
    if fault := _fault(rules, player, stakes):
        return refuse_request(signal, *fault)
    total = sum(stake.cents for stake in stakes)
    if total > player.credit:
        return refuse_request(signal, Refusal.CREDIT_SHORT)
    placed = StakesPlaced(
        post=signal.post,
        request=signal.request,
        round=signal.round,
        origin=origin,
        stakes=stakes,
        cents=Cents(total),
        credit=Cents(player.credit - total),
    )
    return Decision(facts=(placed,))


def _fault(rules: RouletteRules, player: Player, stakes: tuple[Stake, ...]) -> tuple[Refusal, str] | None:
    bets = rules.bets
    floor = max(rules.minimum, player.minimum)
    in_play = dict(player.stakes)
    for stake in stakes:
        bet = bets.get(stake.bet)
        if bet is None:
            return Refusal.BET_UNKNOWN, stake.bet
        already = in_play.get(stake.bet, 0)
        if fault := refusal(bet, stake.cents, floor, Cents(already), rules.minimum, rules.wheel):
            return Refusal(fault), stake.bet
        in_play[stake.bet] = Cents(already + stake.cents)
    return None if stakes else (Refusal.STAKE_NOT_POSITIVE, "")


def _take_back(signal: TakeBack, player: Player) -> Decision:
    if not player.stakes:
        return refuse_request(signal, Refusal.NO_STAKE)
    back = StakesTakenBack(
        post=signal.post,
        request=signal.request,
        round=signal.round,
        cents=player.staked,
        credit=Cents(player.credit + player.staked),
    )
    return Decision(facts=(back,))


def _choose_minimum(rules: RouletteRules, signal: ChooseMinimum) -> Decision:
    if not rules.player_minimum:
        return refuse_request(signal, Refusal.MINIMUM_FIXED)
    plein = rules.bets["plein-0"]
    if not rules.minimum <= signal.cents <= plein.maximum_times * rules.minimum:
        return refuse_request(signal, Refusal.MINIMUM_OUT_OF_RANGE)
    return Decision(facts=(MinimumChosen(post=signal.post, request=signal.request, cents=signal.cents),))
