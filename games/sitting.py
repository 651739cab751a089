"""Sitting at a post: taking it, loading it, leaving it, being away too long.

One person, one post. Credit comes from the desk by a cashier's signed order and leaves by the "paiement" key, as a
pay-out that the desk honours. A director may suspend a player who is away for longer than the house allows: his stakes
in play run to their result, then everything is consigned and the place is free.
"""

from games.money import Cents
from games.posts import (
    AbsenceExceeded,
    ConsignmentReleased,
    CreditAdded,
    Player,
    PlayerCameBack,
    PlayerPaidOut,
    PlayerSat,
    PlayerSteppedAway,
    Posts,
    PostSuspended,
    RequestRefused,
    StakeConsigned,
)
from games.refusals import Refusal
from games.rules import Decision, SetTimer, TimerFired
from games.seance import Seance, lacks_role, refuse
from games.signals import (
    CashOut,
    ComeBack,
    CreditPost,
    NoteAbsence,
    PostRequest,
    ReleaseConsigned,
    Role,
    Sit,
    StepAway,
    SuspendPost,
)

ABSENCE = "absence"
"""Timers of absence are named ``absence:<post>`` and carry the sitting as their round."""

# ── What a player may ask ─────────────────────────────────────────────────────────────────────────────────────────────


def refuse_request(signal: PostRequest, reason: Refusal, bet: str = "") -> Decision:
    """The decision that refuses a request."""
    asked = type(signal).__name__
    return Decision(
        facts=(RequestRefused(post=signal.post, request=signal.request, asked=asked, reason=reason, bet=bet),)
    )


def hindrance(seance: Seance, posts: Posts, signal: PostRequest) -> Refusal | None:
    """Why the sender may ask for nothing at all, if so. ``Sit`` is the only request of a free post."""
    if signal.post not in posts.by_number:
        return Refusal.POST_UNKNOWN
    if not seance.open:
        return Refusal.POST_OUT_OF_SERVICE
    player = posts.player(signal.post)
    if isinstance(signal, Sit):
        return Refusal.POST_TAKEN if player else None
    if player is None:
        return Refusal.POST_FREE
    if player.suspended:
        return Refusal.SUSPENDED
    return Refusal.AWAY if player.away and not isinstance(signal, ComeBack) else None


def decide_request(
    seance: Seance, posts: Posts, signal: Sit | CashOut | StepAway | ComeBack, absence_ms: int
) -> Decision:
    """Sitting down, leaving, stepping away and coming back."""
    if reason := hindrance(seance, posts, signal):
        return refuse_request(signal, reason)
    match signal:
        case Sit(post=post, request=request, player=digest):
            if any(player.digest == digest for _, player in posts.players()):
                return refuse_request(signal, Refusal.PLAYER_ELSEWHERE)
            sat = PlayerSat(post=post, request=request, sitting=posts.sittings + 1, player=digest)
            return Decision(facts=(sat,))
        case CashOut():
            return _decide_cash_out(posts, signal)
        case StepAway(post=post, request=request):
            return _step_away(post, request, posts.seated(post), absence_ms)
        case ComeBack(post=post, request=request):
            player = posts.seated(post)
            if not player.away:
                return refuse_request(signal, Refusal.NOT_AWAY)
            return Decision(facts=(PlayerCameBack(post=post, request=request, sitting=player.sitting),))


def _decide_cash_out(posts: Posts, signal: CashOut) -> Decision:
    player = posts.seated(signal.post)
    if player.stakes:
        return refuse_request(signal, Refusal.STAKE_IN_PLAY)
    return Decision(facts=(pay_out(posts, signal.post, player, signal.request),))


def pay_out(posts: Posts, number: int, player: Player, request: str = "") -> PlayerPaidOut:
    """The fact that ends a sitting: everything on the post is owed at the desk."""
    return PlayerPaidOut(
        post=number, request=request, sitting=player.sitting, payout=posts.payouts + 1, cents=player.credit
    )


def _step_away(number: int, request: str, player: Player, absence_ms: int) -> Decision:
    away = PlayerSteppedAway(post=number, request=request, sitting=player.sitting)
    timer = SetTimer(name=f"{ABSENCE}:{number}", round=player.sitting, after_ms=absence_ms)
    return Decision(facts=(away,), requests=(timer,))


def decide_timer(posts: Posts, signal: TimerFired) -> Decision:
    """The end of an absence's limit, if that player is still the one who is away."""
    number = int(signal.name.removeprefix(f"{ABSENCE}:"))
    player = posts.player(number)
    if player is None or player.sitting != signal.round or not player.away or player.away_too_long:
        return Decision()
    return Decision(facts=(AbsenceExceeded(post=number, sitting=player.sitting),))


def absence_timers(posts: Posts, absence_ms: int) -> tuple[SetTimer, ...]:
    """The timers to set again after a restart: each absence gets its whole limit once more."""
    return tuple(
        SetTimer(name=f"{ABSENCE}:{number}", round=player.sitting, after_ms=absence_ms)
        for number, player in posts.players()
        if player.away and not player.away_too_long
    )


# ── What the house may order ──────────────────────────────────────────────────────────────────────────────────────────


def decide_order(
    seance: Seance, posts: Posts, order: CreditPost | NoteAbsence | SuspendPost | ReleaseConsigned, absence_ms: int
) -> Decision:
    """Credit, absence, suspension and release of consigned money."""
    if not seance.open:
        return refuse(order, Refusal.SEANCE_CLOSED)
    match order:
        case CreditPost():
            return _decide_credit(posts, order)
        case NoteAbsence(post=number):
            player = posts.player(number)
            if lacks_role(order, Role.DIRECTOR):
                return refuse(order, Refusal.ROLE)
            if player is None:
                return refuse(order, Refusal.POST_FREE)
            if player.suspended:
                return refuse(order, Refusal.SUSPENDED)
            if player.away:
                return refuse(order, Refusal.AWAY)
            return _step_away(number, "", player, absence_ms)
        case SuspendPost():
            return _decide_suspension(posts, order)
        case ReleaseConsigned():
            return _decide_release(posts, order)


def _decide_credit(posts: Posts, order: CreditPost) -> Decision:
    player = posts.player(order.post)
    if lacks_role(order, Role.CASHIER):
        return refuse(order, Refusal.ROLE)
    if order.cents <= 0:
        return refuse(order, Refusal.CREDIT_NOT_POSITIVE)
    if player is None:
        return refuse(order, Refusal.POST_FREE)
    if player.suspended:
        return refuse(order, Refusal.SUSPENDED)
    credit = Cents(player.credit + order.cents)
    added = CreditAdded(post=order.post, sitting=player.sitting, cents=order.cents, credit=credit, by=order.by)
    return Decision(facts=(added,))


def _decide_suspension(posts: Posts, order: SuspendPost) -> Decision:
    player = posts.player(order.post)
    if lacks_role(order, Role.DIRECTOR):
        return refuse(order, Refusal.ROLE)
    if player is None:
        return refuse(order, Refusal.POST_FREE)
    if player.suspended:
        return refuse(order, Refusal.SUSPENDED)
    if not player.away_too_long:
        return refuse(order, Refusal.ABSENCE_WITHIN_LIMIT)
    suspended = PostSuspended(post=order.post, sitting=player.sitting, by=order.by)
    if player.stakes:
        return Decision(facts=(suspended,))
    return Decision(facts=(suspended, consign(posts, order.post, player)))


def consign(posts: Posts, number: int, player: Player) -> StakeConsigned:
    """The fact that frees a suspended player's place and puts his money aside."""
    consignment = posts.consignments + 1
    return StakeConsigned(post=number, sitting=player.sitting, consignment=consignment, cents=player.credit)


def _decide_release(posts: Posts, order: ReleaseConsigned) -> Decision:
    consignment = posts.consigned.get(order.consignment)
    if lacks_role(order, Role.DIRECTOR, Role.CASHIER):
        return refuse(order, Refusal.ROLE)
    if consignment is None:
        return refuse(order, Refusal.CONSIGNMENT_UNKNOWN)
    released = ConsignmentReleased(
        consignment=order.consignment,
        post=consignment.post,
        cents=consignment.cents,
        payout=posts.payouts + 1,
        by=order.by,
    )
    return Decision(facts=(released,))
