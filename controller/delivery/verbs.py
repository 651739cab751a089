"""Every order that a person may sign: its verb, the input it becomes, its arguments, and who may give it."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.schemas import (
    CertifyArguments,
    ConsignmentArguments,
    CreditArguments,
    EnrolArguments,
    NoArguments,
    PocketArguments,
    PostArguments,
    ReasonArguments,
    RevokeArguments,
    Wire,
)
from games.persons import EnrolPerson, RevokePerson
from games.signals import (
    AnnounceLast,
    AttestPresence,
    CallNoMoreBets,
    CloseSeance,
    ConfirmNumber,
    CreditPost,
    DeclareIncident,
    EnterNumber,
    NoteAbsence,
    OpenBetting,
    OpenSeance,
    Order,
    PutPostsInService,
    ReleaseConsigned,
    RestartGame,
    Role,
    SuspendPost,
    VoidRound,
)
from games.statement import CertifyStatement

_DIRECTOR = frozenset({Role.DIRECTOR})
_GAME_STAFF = frozenset({Role.DIRECTOR, Role.CROUPIER})
_CASHIER = frozenset({Role.CASHIER})
_DIRECTOR_OR_CASHIER = frozenset({Role.DIRECTOR, Role.CASHIER})


@dataclass(frozen=True, slots=True)
class Verb:
    """What an order may say: the input it becomes, the arguments it takes, and who may give it.

    ``second`` are the roles of another person who must sign with the first; without any, one person signs alone.
    """

    order: type[Order]
    roles: frozenset[Role]
    arguments: type[Wire] = NoArguments
    second: frozenset[Role] = frozenset()


VERBS: Mapping[str, Verb] = {
    "posts.put-in-service": Verb(PutPostsInService, _GAME_STAFF),
    "seance.open": Verb(OpenSeance, _DIRECTOR),
    "seance.close": Verb(CloseSeance, _DIRECTOR),
    "last.announce": Verb(AnnounceLast, _GAME_STAFF),
    "betting.open": Verb(OpenBetting, _GAME_STAFF),
    "no-more-bets.call": Verb(CallNoMoreBets, _GAME_STAFF),
    "number.confirm": Verb(ConfirmNumber, _GAME_STAFF, PocketArguments),
    "incident.declare": Verb(DeclareIncident, _GAME_STAFF, ReasonArguments),
    "number.enter": Verb(EnterNumber, _GAME_STAFF, PocketArguments),
    "presence.attest": Verb(AttestPresence, _DIRECTOR),
    "round.void": Verb(VoidRound, _DIRECTOR, ReasonArguments),
    "game.restart": Verb(RestartGame, _DIRECTOR),
    "post.credit": Verb(CreditPost, _CASHIER, CreditArguments),
    "absence.note": Verb(NoteAbsence, _DIRECTOR, PostArguments),
    "post.suspend": Verb(SuspendPost, _DIRECTOR, PostArguments),
    "consigned.release": Verb(ReleaseConsigned, _DIRECTOR_OR_CASHIER, ConsignmentArguments),
    "statement.certify": Verb(CertifyStatement, _DIRECTOR_OR_CASHIER, CertifyArguments),
    "person.enrol": Verb(EnrolPerson, _DIRECTOR, EnrolArguments, second=_DIRECTOR),
    "person.revoke": Verb(RevokePerson, _DIRECTOR, RevokeArguments, second=_DIRECTOR),
}
"""Every order. The game may narrow it further: with a launcher the croupier conducts nothing."""
