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

**In order.** A person's orders are taken in the order in which he asked for their challenges. One that was held back on
the way, until another of the same person had passed, is refused: what he signed last is what he means.

A signature that is not good uses up nothing: somebody who sees a nonce go by cannot spoil it. A nonce is used by the
order that the inbox took.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter, ValidationError

from controller.certify.faults import NoteFault
from controller.certify.leaf import canonical
from controller.certify.note import Note, Signer, parse_note, sign_note
from controller.delivery.completion import Completion
from controller.delivery.enrolment import EnrolledPerson, signer_of
from controller.delivery.nonces import KEY_BYTES, Nonces, order_of
from controller.delivery.order_refusals import ORDER_MESSAGE_BOUND, malformed, oversized, refused
from controller.delivery.verbs import VERBS
from controller.delivery.wire import WireError, certified_reply, decode, explain, request_id
from controller.entropy import Entropy
from controller.inbox import Door, InboxFullError, Outcome
from controller.schemas import Challenge, ChallengeRequest, StatementReply, StatementRequest
from drivers.clock import Clock
from games.signals import Order, Person

CHALLENGE_LIFE_S = 120
"""How long a person has to read, sign and send."""

_LIFE_US = CHALLENGE_LIFE_S * 1_000_000

SIGNERS_BOUND = 2
"""Persons who sign one order, at the most."""

HEADER = "table-controller/order/v1"

_TEXT = re.compile(
    rf"{re.escape(HEADER)}\n(?P<origin>[^\n]+)\nboot (?P<boot>[^\n]+)\nnonce (?P<nonce>[0-9a-f]{{48}})\n"
    r"do (?P<verb>[a-z.-]+)\nargs (?P<arguments>\{[^\n]*\})\n"
)
_CHALLENGE_REQUEST = TypeAdapter(ChallengeRequest)
_STATEMENT_REQUEST = TypeAdapter(StatementRequest)


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
    """An order whose signatures are good, not yet judged. ``second`` signed it with the first, or is None."""

    person: Person
    second: Person | None
    origin: str
    boot: str
    nonce: str
    verb: str
    arguments: str
    note: str


def order_text(challenge: Challenge, verb: str, arguments: Mapping[str, object]) -> str:
    """The text that a person signs, or two persons."""
    return (
        f"{HEADER}\n{challenge.origin}\nboot {challenge.boot}\nnonce {challenge.nonce}\n"
        f"do {verb}\nargs {canonical(dict(arguments))}\n"
    )


def write_order(signer: Signer, challenge: Challenge, verb: str, arguments: Mapping[str, object], *more: Signer) -> str:
    """The signed note that carries an order: what clients send. ``more`` sign it too, where two persons must."""
    return sign_note(order_text(challenge, verb, arguments), signer, *more)


class OrderDesk:
    """Between the command topic and the inbox. Only the event loop's thread may call it.

    ``origin`` is the journal's (``<site>/table/<table>/<epoch>``). ``persons`` maps badges to enrolled persons and is
    looked up for each order, so that a revocation counts at once. ``next_seance`` names the séance that an opening
    would begin. ``statement_note`` is the note of a séance that waits to be certified; ``publish_statement`` publishes
    one again and returns in how many parts, 0 when none of that name waits. ``recall`` reads a certified leaf;
    ``send_reply`` gets each answer and its command's correlation data.
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
        statement_note: Callable[[str], str | None],
        publish_statement: Callable[[str], int],
        send_reply: Callable[[bytes, bytes | None], None],
    ) -> None:
        self._origin = origin
        self._person_prefix = f"{origin.partition('/table/')[0]}/personne/"
        self._boot = boot
        self._clock = clock
        self._nonces = Nonces(bytes.fromhex(entropy.hex(KEY_BYTES)), _LIFE_US)
        self._persons = persons
        self._inbox = inbox
        self._recall = recall
        self._completion = Completion(
            prefix=self._person_prefix,
            persons=persons,
            rules_sha256=rules_sha256,
            next_seance=next_seance,
            statement_note=statement_note,
        )
        self._publish_statement = publish_statement
        self._send_reply = send_reply
        self._used: dict[str, _Use] = {}
        self._latest: dict[str, str] = {}  # by badge: when the challenge of the last order taken was given
        self.counts: Counter[str] = Counter()
        """How many commands were ``challenged``, ``taken``, ``repeated``, or rejected, by code; for the status."""

    def receive(self, payload: bytes, correlation: bytes | None = None) -> None:
        """A command came. Whatever the bytes, it is answered and counted, and nothing is raised.

        A repeat of an order in flight gets its answer, once, when that order is certified.
        """
        about: dict[str, str] = {}
        try:
            if len(payload) > ORDER_MESSAGE_BOUND:
                raise oversized(payload)
            if payload.startswith(b"{"):
                self._ask(payload, correlation, about)
            else:
                self._take(payload, correlation, about)
        except WireError as error:
            self.counts[error.code] += 1
            self._send_reply(error.reply(about), correlation)

    def _ask(self, payload: bytes, correlation: bytes | None, about: dict[str, str]) -> None:
        if (named := request_id(payload)) is not None:
            about["id"] = named
        statement = b'"statement"' in payload
        try:
            asked = decode(_STATEMENT_REQUEST, payload) if statement else decode(_CHALLENGE_REQUEST, payload)
        except WireError as error:
            raise malformed(error.french, error.english) from None
        if isinstance(asked, StatementRequest):
            self._statement(asked, correlation)
        else:
            self._challenge(asked, correlation)

    def _statement(self, asked: StatementRequest, correlation: bytes | None) -> None:
        parts = self._publish_statement(asked.seance)
        if not parts:
            raise refused("E-STATEMENT-NOT-AWAITED")
        answer = StatementReply(id=asked.id, ok=True, seance=asked.seance, parts=parts)
        self._send_reply(answer.model_dump_json().encode(), correlation)

    def _challenge(self, asked: ChallengeRequest, correlation: bytes | None) -> None:
        nonce = self._nonces.give(self._clock.mono_us())
        self.counts["challenged"] += 1
        answer = Challenge(id=asked.id, nonce=nonce, boot=self._boot, origin=self._origin, expires_s=CHALLENGE_LIFE_S)
        self._send_reply(answer.model_dump_json().encode(), correlation)

    def _take(self, payload: bytes, correlation: bytes | None, about: dict[str, str]) -> None:
        signed = self._open(payload, about)
        if signed.origin != self._origin:
            raise refused("E-ORDER-TABLE")
        now_us, note_sha256 = self._clock.mono_us(), hashlib.sha256(payload).digest()
        self._forget(now_us)
        if (use := self._used.get(signed.nonce)) is not None and use.note_sha256 == note_sha256:
            self._repeat(signed.nonce, use, correlation)
            return
        if use is not None or signed.boot != self._boot or not self._nonces.good(signed.nonce, now_us):
            raise refused("E-ORDER-NONCE")
        signers = [signer.badge for signer in (signed.person, signed.second) if signer is not None]
        if any(order_of(signed.nonce) < self._latest.get(badge, "") for badge in signers):
            raise refused("E-ORDER-OVERTAKEN")
        use = _Use(note_sha256, now_us + _LIFE_US, correlation)
        try:
            self._inbox.put(self._order(signed), partial(self._decided, signed, use))
        except InboxFullError:
            raise refused("E-INBOX-FULL") from None
        self._used[signed.nonce] = use
        self._latest |= dict.fromkeys(signers, order_of(signed.nonce))
        self.counts["taken"] += 1

    def _repeat(self, nonce: str, use: _Use, correlation: bytes | None) -> None:
        """The same note came again: it gets the answer that it had, or will have. The last who asked is told."""
        self.counts["repeated"] += 1
        use.correlation = correlation
        if use.decided:
            self._answer(nonce, use)

    def _open(self, payload: bytes, about: dict[str, str]) -> _Signed:
        """The order in the note, if one enrolled person signed it, or two different ones."""
        try:
            text = payload.decode()
            note = parse_note(text)
        except (UnicodeDecodeError, NoteFault):
            raise refused("E-ORDER-UNSIGNED") from None
        found = _TEXT.fullmatch(note.text)
        if found:
            about["nonce"] = found["nonce"]
        first, *others = self._signers(note)
        if not found:
            raise malformed("Le texte signé n'est pas un ordre.", "The signed text is not an order.")
        second = others[0] if others else None
        return _Signed(person=first, second=second, note=text, **found.groupdict())

    def _signers(self, note: Note) -> list[Person]:
        """The one or two persons who signed, in the order of their signatures."""
        if len(note.signatures) > SIGNERS_BOUND:
            raise refused("E-ORDER-SIGNER")
        signers = [signer_of(self._persons, self._person_prefix, note.text, one) for one in note.signatures]
        known = {signer.badge: signer for signer in signers if signer is not None}
        if len(known) < len(signers):
            raise refused("E-ORDER-SIGNER")
        if any(signer.revoked for signer in known.values()):
            raise refused("E-ORDER-REVOKED")
        return [signer.person for signer in known.values()]

    def _order(self, signed: _Signed) -> Order:
        """The input that the order asks for, if its signer may."""
        verb = VERBS.get(signed.verb)
        if verb is None:
            listed = ", ".join(VERBS)
            raise malformed(f"L'ordre doit être l'un de : {listed}.", f"The order must be one of: {listed}.")
        if signed.person.role not in verb.roles:
            raise refused("E-ORDER-ROLE")
        try:
            arguments = verb.arguments.model_validate_json(signed.arguments).model_dump()
        except ValidationError as error:
            explained = explain(error)
            raise malformed(explained.french, explained.english) from None
        if canonical(arguments) != signed.arguments:
            raise malformed("Les arguments ne sont pas du JSON canonique.", "The arguments are not canonical JSON.")
        completed = self._completion.complete(verb, arguments, signed.second)
        return verb.order(at_us=self._clock.mono_us(), by=signed.person, evidence=signed.note, **completed)

    def _decided(self, signed: _Signed, use: _Use, outcome: Outcome) -> None:
        """The entry to show is the last that names the signer; an opening, for one, is several facts and ends with it.

        Without facts there is none.
        """
        use.decided = True
        if outcome.facts:
            named = [at for at, fact in enumerate(outcome.facts) if getattr(fact, "by", None) == signed.person]
            use.index = outcome.first_index + (named[-1] if named else 0)
        else:
            self.counts["E-ORDER-NO-EFFECT"] += 1
        self._answer(signed.nonce, use)

    def _answer(self, nonce: str, use: _Use) -> None:
        about = {"nonce": nonce}
        if use.index is None:
            self._send_reply(refused("E-ORDER-NO-EFFECT").reply(about), use.correlation)
        else:
            self._send_reply(certified_reply(about, self._recall(use.index)), use.correlation)

    def _forget(self, now_us: int) -> None:
        """Uses are kept equally long, so the oldest goes first."""
        while self._used and next(iter(self._used.values())).forgotten_us <= now_us:
            del self._used[next(iter(self._used))]
