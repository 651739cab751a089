"""Opening and closing a séance: the same for every game that plays against the house.

The croupier puts the posts in service and a director validates; with an automatic launcher the director does both (the
law, electronic roulette, 1°). At the closing no stake is open, every player is paid out, and what nobody claimed goes
to the orphans: the books of the séance balance to the cent.
"""

from games import posts as posts_
from games.health import Health
from games.health import refusals as health_refusals
from games.posts import OrphanRecorded, Posts
from games.refusals import Refusal
from games.rules import Decision, Fact
from games.seance import (
    EMPTY_ROUNDS_TO_CLOSE,
    LastRoundsAnnounced,
    PostsPutInService,
    PowerWheel,
    Seance,
    SeanceClosed,
    SeanceOpened,
    SeancePhase,
    VerifyWheel,
    conducting,
    lacks_role,
    refuse,
)
from games.signals import AnnounceLast, CloseSeance, OpenSeance, PutPostsInService, Role
from games.sitting import pay_out
from games.statement import Statements, Totals, TotalsCarried


def decide_service(seance: Seance, order: PutPostsInService, *, croupier: bool) -> Decision:
    """The croupier puts the posts in service; with a launcher, the director."""
    if lacks_role(order, *conducting(croupier=croupier)):
        return refuse(order, Refusal.ROLE)
    if seance.open:
        return refuse(order, Refusal.SEANCE_OPEN)
    if seance.in_service:
        return refuse(order, Refusal.POSTS_IN_SERVICE)
    return Decision(facts=(PostsPutInService(by=order.by),))


def opening_refusals(
    seance: Seance, health: Health, statements: Statements, *, croupier: bool, verify: bool
) -> tuple[Refusal, ...]:
    """Every reason why the séance cannot open now."""
    if seance.open:
        return (Refusal.SEANCE_OPEN,)
    not_in_service = croupier and not seance.in_service
    return (
        *((Refusal.POSTS_NOT_IN_SERVICE,) if not_in_service else ()),
        *((Refusal.STATEMENTS_FULL,) if statements.full else ()),
        *health_refusals(health, verify=verify),
    )


def decide_opening(
    seance: Seance, health: Health, statements: Statements, order: OpenSeance, *, croupier: bool, verify: bool
) -> Decision:
    """A director validates the opening."""
    if lacks_role(order, Role.DIRECTOR):
        return refuse(order, Refusal.ROLE)
    if reasons := opening_refusals(seance, health, statements, croupier=croupier, verify=verify):
        return refuse(order, *reasons)
    opened = SeanceOpened(seance=order.seance, by=order.by, rules_sha256=order.rules_sha256)
    service = () if seance.in_service else (PostsPutInService(by=order.by),)
    return Decision(facts=(*service, opened), requests=(PowerWheel(on=True),))


def decide_last(seance: Seance, order: AnnounceLast, *, croupier: bool, round_number: int) -> Decision:
    """The croupier or a director announces the three last rounds; with a launcher, the director."""
    if lacks_role(order, *conducting(croupier=croupier)):
        return refuse(order, Refusal.ROLE)
    match seance.phase:
        case SeancePhase.CLOSED:
            return refuse(order, Refusal.SEANCE_CLOSED)
        case SeancePhase.OPEN:
            return Decision(facts=(LastRoundsAnnounced(by=order.by, after_round=round_number),))
        case SeancePhase.LAST:
            return refuse(order, Refusal.LAST_ANNOUNCED)
        case SeancePhase.ENDED:
            return refuse(order, Refusal.LAST_PLAYED)


def decide_closing(
    seance: Seance, posts: Posts, carried: Totals, order: CloseSeance, *, round_open: bool, can_play: bool
) -> Decision:
    """A director validates the closing: last rounds played, or three empty ones, or no player left.

    Last rounds that were announced are played even if everybody left, unless the devices cannot (``can_play``).
    """
    if lacks_role(order, Role.DIRECTOR):
        return refuse(order, Refusal.ROLE)
    if not seance.open:
        return refuse(order, Refusal.SEANCE_CLOSED)
    if round_open:
        return refuse(order, Refusal.ROUND_OPEN)
    over = seance.phase is SeancePhase.ENDED or seance.empty >= EMPTY_ROUNDS_TO_CLOSE
    announced = seance.phase is SeancePhase.LAST
    deserted = not posts.players() and not (announced and can_play)
    if not over and not deserted:
        return refuse(order, Refusal.LAST_NOT_PLAYED)
    return Decision(facts=_closing_facts(seance, posts, carried, order), requests=(PowerWheel(on=False), VerifyWheel()))


def _closing_facts(seance: Seance, posts: Posts, carried: Totals, order: CloseSeance) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for number, player in posts.players():
        paid = pay_out(posts, number, player)
        posts = posts_.evolve(posts, paid)
        facts.append(paid)
    facts += [
        OrphanRecorded(consignment=number, post=consignment.post, cents=consignment.cents)
        for number, consignment in sorted(posts.consigned.items())
    ]
    moved = posts.total() - posts.at_opening
    orphaned = sum(consignment.cents for consignment in posts.consigned.values())
    closed = SeanceClosed(
        seance=seance.name,
        by=order.by,
        rounds=seance.rounds,
        credited_cents=moved.credited,
        staked_cents=moved.staked,
        returned_cents=moved.returned,
        won_cents=moved.won,
        paid_out_cents=moved.paid_out + moved.consigned - orphaned,  # the desk also paid what was claimed in time
        orphaned_cents=orphaned,
    )
    return (*facts, TotalsCarried(seance=seance.name, totals=carried.after(closed)), closed)
