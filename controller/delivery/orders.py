"""Signed orders: a person acts on this table, now, once.

    person                                table
      │ {"ask":"challenge","id":…} ───────► │ a nonce: of this boot, good for CHALLENGE_LIFE_S
      │ ◄─────── nonce, boot, origin, … ─── │
      │ signs, on his own device:           │
      │   table-controller/order/v1         │
      │   casino.example/table/t07/1        │  this table and no other
      │   boot 9f1c0b7e52d3a844             │  this run of it
      │   nonce 5b0e…                       │  this challenge, once
      │   do post.credit                    │
      │   args {"cents":5000,"post":3}      │  canonical JSON: one spelling
      │                                     │
      │   — casino.example/personne/<badge> │
      │ ──────────────────────────────────► │ order ──► inbox ──► certified ──► answer

A late order finds its nonce expired; one sent to another table, or after a restart, another origin or boot; an altered
one, a false signature. The signed note goes with the order, so that anyone can check years later who asked for what.

**A challenge costs nothing.** Its nonce carries its own proof (``controller.delivery.nonces``), so nothing is kept for
it, and nobody can shut out the staff by asking for many.

**Once.** What is kept is each nonce that an order used, with that order's digest and the entry that decided it. The
same note again is a repeat, and gets the same answer from the same entry; while it is in flight it is absorbed, and
answered when it commits. Another note with that nonce is refused. All this is kept for CHALLENGE_LIFE_S after the use,
hence longer than the nonce is good. A person who is told E-ORDER-NONCE cannot know whether the order was carried out,
and is told to look before he signs again: a credit must not be given twice.

A signature that is not good uses up nothing: somebody who sees a nonce go by cannot spoil it. A nonce is used by the
order that the inbox took.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pydantic import TypeAdapter, ValidationError

from controller.certify.faults import KeyFault, NoteFault
from controller.certify.leaf import canonical
from controller.certify.note import KeyType, Signer, Verifier, parse_note, sign_note
from controller.delivery.nonces import KEY_BYTES, Nonces
from controller.delivery.wire import WireError, certified_reply, decode, explain, request_id
from controller.entropy import Entropy
from controller.inbox import Door, InboxFullError, Outcome
from controller.schemas import (
    Challenge,
    ChallengeRequest,
    ConsignmentArguments,
    CreditArguments,
    NoArguments,
    PocketArguments,
    PostArguments,
    ReasonArguments,
    Wire,
)
from drivers.clock import Clock
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
    Person,
    PutPostsInService,
    ReleaseConsigned,
    RestartGame,
    Role,
    SuspendPost,
    VoidRound,
)

ORDER_MESSAGE_BOUND = 2_048
"""Bytes of a command. Escaped in a leaf as evidence it stays far under the leaf's own bound."""

CHALLENGE_LIFE_S = 120
"""How long a person has to read, sign and send."""

_LIFE_US = CHALLENGE_LIFE_S * 1_000_000

HEADER = "table-controller/order/v1"

_TEXT = re.compile(
    rf"{re.escape(HEADER)}\n(?P<origin>[^\n]+)\nboot (?P<boot>[^\n]+)\nnonce (?P<nonce>[0-9a-f]{{48}})\n"
    r"do (?P<verb>[a-z.-]+)\nargs (?P<arguments>\{[^\n]*\})\n"
)
_CHALLENGE_REQUEST = TypeAdapter(ChallengeRequest)

_DIRECTOR = frozenset({Role.DIRECTOR})
_GAME_STAFF = frozenset({Role.DIRECTOR, Role.CROUPIER})
_CASHIER = frozenset({Role.CASHIER})
_DIRECTOR_OR_CASHIER = frozenset({Role.DIRECTOR, Role.CASHIER})


@dataclass(frozen=True, slots=True)
class Verb:
    """What an order may say: the input it becomes, the arguments it takes, and who may give it."""

    order: type[Order]
    roles: frozenset[Role]
    arguments: type[Wire] = NoArguments


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
}
"""Every order. The game may narrow it further: with a launcher the croupier conducts nothing."""


@dataclass(frozen=True, slots=True)
class EnrolledPerson:
    """A person whose orders the table knows. Raises KeyFault when the key is not one that may sign for this badge."""

    badge: str
    role: Role
    vkey: str
    revoked: bool = False
    verifier: Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        verifier = Verifier.parse(self.vkey)
        if not verifier.name.endswith(f"/personne/{self.badge}") or verifier.key_type is not KeyType.ED25519:
            raise KeyFault(
                "E-KEY-PERSON", f"the key of badge {self.badge} must be an Ed25519 key named …/personne/{self.badge}"
            )
        object.__setattr__(self, "verifier", verifier)


@dataclass(slots=True)
class _Use:
    """An order that used its nonce. ``decided`` is false while it is in flight; ``index`` is the entry, if one is."""

    note_sha256: bytes
    forgotten_us: int
    correlation: bytes | None
    decided: bool = False
    index: int | None = None


@dataclass(frozen=True, slots=True)
class _Signed:
    """An order whose signature is good, not yet judged."""

    person: EnrolledPerson
    origin: str
    boot: str
    nonce: str
    verb: str
    arguments: str
    note: str


def order_text(challenge: Challenge, verb: str, arguments: Mapping[str, object]) -> str:
    """The text that a person signs."""
    return (
        f"{HEADER}\n{challenge.origin}\nboot {challenge.boot}\nnonce {challenge.nonce}\n"
        f"do {verb}\nargs {canonical(dict(arguments))}\n"
    )


def write_order(signer: Signer, challenge: Challenge, verb: str, arguments: Mapping[str, object]) -> str:
    """The signed note that carries an order: what clients send."""
    return sign_note(order_text(challenge, verb, arguments), signer)


class OrderDesk:
    """Between the command topic and the inbox. Only the event loop's thread may call it.

    ``origin`` is the journal's (``<site>/table/<table>/<epoch>``). ``persons`` maps badges to enrolled persons and is
    looked up for each order, so that a revocation counts at once. ``next_seance`` names the séance that an opening
    would begin. ``recall`` reads a certified leaf; ``send_reply`` gets each answer and its command's correlation data.
    """

    def __init__(
        self,
        *,
        origin: str,
        boot: str,
        rules_sha256: str,
        clock: Clock,
        entropy: Entropy,
        persons: Mapping[str, EnrolledPerson],
        inbox: Door,
        recall: Callable[[int], bytes],
        next_seance: Callable[[], str],
        send_reply: Callable[[bytes, bytes | None], None],
    ) -> None:
        self._origin = origin
        self._person_prefix = f"{origin.partition('/table/')[0]}/personne/"
        self._boot = boot
        self._rules_sha256 = rules_sha256
        self._clock = clock
        self._nonces = Nonces(bytes.fromhex(entropy.hex(KEY_BYTES)), _LIFE_US)
        self._persons = persons
        self._inbox = inbox
        self._recall = recall
        self._next_seance = next_seance
        self._send_reply = send_reply
        self._used: dict[str, _Use] = {}
        self.counts: Counter[str] = Counter()
        """How many commands were ``challenged``, ``taken``, ``repeated``, or rejected, by code; for the status."""

    def receive(self, payload: bytes, correlation: bytes | None = None) -> None:
        """A command came. Whatever the bytes, it is answered and counted, and nothing is raised.

        A repeat of an order in flight gets its answer, once, when that order is certified.
        """
        about: dict[str, str] = {}
        try:
            if len(payload) > ORDER_MESSAGE_BOUND:
                raise _oversized(payload)
            if payload.startswith(b"{"):
                self._challenge(payload, correlation, about)
            else:
                self._take(payload, correlation, about)
        except WireError as error:
            self.counts[error.code] += 1
            self._send_reply(error.reply(about), correlation)

    def _challenge(self, payload: bytes, correlation: bytes | None, about: dict[str, str]) -> None:
        if (named := request_id(payload)) is not None:
            about["id"] = named
        try:
            asked = decode(_CHALLENGE_REQUEST, payload)
        except WireError as error:
            raise _malformed(error.french, error.english) from None
        nonce = self._nonces.give(self._clock.mono_us())
        self.counts["challenged"] += 1
        answer = Challenge(id=asked.id, nonce=nonce, boot=self._boot, origin=self._origin, expires_s=CHALLENGE_LIFE_S)
        self._send_reply(answer.model_dump_json().encode(), correlation)

    def _take(self, payload: bytes, correlation: bytes | None, about: dict[str, str]) -> None:
        signed = self._open(payload, about)
        if signed.origin != self._origin:
            raise _refused("E-ORDER-TABLE")
        now_us, note_sha256 = self._clock.mono_us(), hashlib.sha256(payload).digest()
        self._forget(now_us)
        if (use := self._used.get(signed.nonce)) is not None and use.note_sha256 == note_sha256:
            self._repeat(signed.nonce, use, correlation)
            return
        if use is not None or signed.boot != self._boot or not self._nonces.good(signed.nonce, now_us):
            raise _refused("E-ORDER-NONCE")
        use = _Use(note_sha256, now_us + _LIFE_US, correlation)
        try:
            self._inbox.put(self._order(signed), partial(self._decided, signed, use))
        except InboxFullError:
            raise _refused("E-INBOX-FULL") from None
        self._used[signed.nonce] = use
        self.counts["taken"] += 1

    def _repeat(self, nonce: str, use: _Use, correlation: bytes | None) -> None:
        """The same note came again: it gets the answer that it had, or will have. The last who asked is told."""
        self.counts["repeated"] += 1
        use.correlation = correlation
        if use.decided:
            self._answer(nonce, use)

    def _open(self, payload: bytes, about: dict[str, str]) -> _Signed:
        """The order in the note, if one enrolled person signed it."""
        try:
            text = payload.decode()
            note = parse_note(text)
        except (UnicodeDecodeError, NoteFault):
            raise _refused("E-ORDER-UNSIGNED") from None
        found = _TEXT.fullmatch(note.text)
        if found:
            about["nonce"] = found["nonce"]
        signature, *others = note.signatures
        person = self._persons.get(signature.name.removeprefix(self._person_prefix))
        if others or person is None or not person.verifier.made(signature):
            raise _refused("E-ORDER-SIGNER")
        if not person.verifier.verifies(note.text, signature):
            raise _refused("E-ORDER-SIGNER")
        if person.revoked:
            raise _refused("E-ORDER-REVOKED")
        if not found:
            raise _malformed("Le texte signé n'est pas un ordre.", "The signed text is not an order.")
        return _Signed(person=person, note=text, **found.groupdict())

    def _order(self, signed: _Signed) -> Order:
        """The input that the order asks for, if its signer may."""
        verb = VERBS.get(signed.verb)
        if verb is None:
            listed = ", ".join(VERBS)
            raise _malformed(f"L'ordre doit être l'un de : {listed}.", f"The order must be one of: {listed}.")
        if signed.person.role not in verb.roles:
            raise _refused("E-ORDER-ROLE")
        try:
            arguments = verb.arguments.model_validate_json(signed.arguments).model_dump()
        except ValidationError as error:
            explained = explain(error)
            raise _malformed(explained.french, explained.english) from None
        if canonical(arguments) != signed.arguments:
            raise _malformed("Les arguments ne sont pas du JSON canonique.", "The arguments are not canonical JSON.")
        if verb.order is OpenSeance:
            arguments = {"seance": self._next_seance(), "rules_sha256": self._rules_sha256}
        person = Person(badge=signed.person.badge, role=signed.person.role)
        return verb.order(at_us=self._clock.mono_us(), by=person, evidence=signed.note, **arguments)

    def _decided(self, signed: _Signed, use: _Use, outcome: Outcome) -> None:
        """The entry to show is the last that names the signer; an opening, for one, is several facts and ends with it.

        Without facts there is none.
        """
        use.decided = True
        if outcome.facts:
            signer = Person(badge=signed.person.badge, role=signed.person.role)
            named = [at for at, fact in enumerate(outcome.facts) if getattr(fact, "by", None) == signer]
            use.index = outcome.first_index + (named[-1] if named else 0)
        else:
            self.counts["E-ORDER-NO-EFFECT"] += 1
        self._answer(signed.nonce, use)

    def _answer(self, nonce: str, use: _Use) -> None:
        about = {"nonce": nonce}
        if use.index is None:
            self._send_reply(_refused("E-ORDER-NO-EFFECT").reply(about), use.correlation)
        else:
            self._send_reply(certified_reply(about, self._recall(use.index)), use.correlation)

    def _forget(self, now_us: int) -> None:
        """Uses are kept equally long, so the oldest goes first."""
        while self._used and next(iter(self._used.values())).forgotten_us <= now_us:
            del self._used[next(iter(self._used))]


def _oversized(payload: bytes) -> WireError:
    return WireError(
        "E-ORDER-OVERSIZED",
        f"L'ordre compte {len(payload)} octets ; {ORDER_MESSAGE_BOUND} sont permis.",
        f"The order has {len(payload)} bytes; {ORDER_MESSAGE_BOUND} are permitted.",
    )


def _malformed(french: str, english: str) -> WireError:
    return WireError("E-ORDER-MALFORMED", french, english)


def _refused(code: str) -> WireError:
    """A new one each time: an exception that is raised again keeps every place where it was raised."""
    french, english = _SENTENCES[code]
    return WireError(code, french, english)


_SENTENCES: Mapping[str, tuple[str, str]] = {
    "E-ORDER-UNSIGNED": ("L'ordre n'est pas une note signée.", "The order is not a signed note."),
    "E-ORDER-SIGNER": (
        "L'ordre n'est pas signé, seul et correctement, par une personne enregistrée à cette table.",
        "The order is not signed, rightly and alone, by a person enrolled at this table.",
    ),
    "E-ORDER-REVOKED": ("La clé de cette personne est révoquée.", "The key of this person is revoked."),
    "E-ORDER-TABLE": ("L'ordre est destiné à une autre table.", "The order is meant for another table."),
    "E-ORDER-NONCE": (
        "Le défi signé n'est pas, ou n'est plus, valable ici. Regardez d'abord l'état de la table et son journal : "
        "l'ordre peut déjà être exécuté. S'il ne l'est pas, demandez un autre défi et signez de nouveau.",
        "The signed challenge is not, or no longer, good here. Look first at the table's state and its journal: "
        "the order may have been carried out already. If it was not, ask for another challenge and sign again.",
    ),
    "E-ORDER-ROLE": (
        "La fonction de cette personne ne permet pas cet ordre.",
        "The role of this person does not permit this order.",
    ),
    "E-ORDER-NO-EFFECT": (
        "L'ordre ne change rien ; rien n'a été certifié.",
        "The order changes nothing; nothing was certified.",
    ),
    "E-INBOX-FULL": (
        "La table est saturée et n'a pas pris l'ordre ; renvoyez-le tel quel.",
        "The table is overloaded and did not take the order; send it again unchanged.",
    ),
}
"""Why an order is not taken, in both languages."""
