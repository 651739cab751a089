"""Signed orders in the hands of an attacker: replayed, redirected, expired, re-ordered, altered. None may be taken.

The attacker holds every note that was ever signed at two tables, in two epochs, before and after a restart, and may
change any part of one or let time pass. He has keys of his own, but none that is enrolled. Each attack is made on a
new pair of tables and of a kind; beside each, the same order is delivered as it was meant, and must be taken: a table
that refuses everything would prove nothing.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.certify.note import Signature, Signer, format_note, parse_note, sign_note
from controller.delivery.enrolment import EnrolledPerson
from controller.delivery.orders import CHALLENGE_LIFE_S, OrderDesk, order_text, write_order
from controller.delivery.verbs import VERBS
from controller.entropy import SeededEntropy
from controller.inbox import Inbox
from controller.schemas import Challenge
from drivers.clock import ManualClock
from games.signals import Role
from proof.results import Result, all_of, none_of

ATTACKS = 20_000
"""Attacks of one proof, over all kinds in turn."""

SITE = "casino.example"
SEANCE = "2026-11-30-1"


def key(badge: str, seed: int = 0, site: str = SITE) -> Signer:
    """A person's key; ``seed`` makes others of the same name."""
    return Signer(f"{site}/personne/{badge}", f"{badge} {seed}".encode().ljust(32, b"."))


ROLES = {"D1": Role.DIRECTOR, "D2": Role.DIRECTOR, "C1": Role.CROUPIER, "K1": Role.CASHIER, "X1": Role.DIRECTOR}
PERSONS = {
    badge: EnrolledPerson(badge, role, key(badge).verifier.vkey, revoked=badge == "X1") for badge, role in ROLES.items()
}
STATEMENT = sign_note("table-controller/seance/v1\nread\n", Signer(f"{SITE}/table/t07/1", b"t" * 32))

ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "number.confirm": {"pocket": "17"},
    "number.enter": {"pocket": "00"},
    "incident.declare": {"reason": "bille éjectée"},
    "round.void": {"reason": "jeton dans le cylindre"},
    "post.credit": {"cents": 5_000, "post": 3},
    "absence.note": {"post": 3},
    "post.suspend": {"post": 3},
    "consigned.release": {"consignment": 2},
    "statement.certify": {"lines": [key("D1").sign(parse_note(STATEMENT).text).line], "seance": SEANCE},
    "person.enrol": {"badge": "C7", "role": "croupier", "vkey": key("C7").verifier.vkey},
    "person.revoke": {"badge": "C1", "reason": "badge perdu"},
}


@dataclass
class Desk:
    """The order desk of one run of one table. ``taken`` counts the orders that it let in."""

    clock: ManualClock
    table: str = "t07"
    epoch: int = 1
    boot: str = "9f1c0b7e52d3a844"
    seed: int = 1
    replies: list[bytes] = field(default_factory=list)
    taken: int = 0

    def __post_init__(self) -> None:
        self.inbox = Inbox()
        self.desk = OrderDesk(
            origin=f"{SITE}/table/{self.table}/{self.epoch}",
            boot=self.boot,
            rules_sha256="ab" * 32,
            clock=self.clock,
            entropy=SeededEntropy(self.seed),
            persons=PERSONS,
            inbox=self.inbox,
            recall=lambda _: b"",
            next_seance=lambda: SEANCE,
            statement_note={SEANCE: STATEMENT}.get,
            publish_statement=lambda _: 1,
            send_reply=lambda payload, _: self.replies.append(payload),
        )

    def challenge(self) -> Challenge:
        """Something to sign."""
        self.desk.receive(b'{"ask":"challenge","id":"q"}')
        return Challenge.model_validate_json(self.replies.pop())

    def deliver(self, note: str | bytes) -> bool:
        """Whether the desk took what was delivered."""
        self.desk.receive(note.encode() if isinstance(note, str) else note)
        letter = self.inbox.take()
        self.taken += letter is not None
        return letter is not None


@dataclass(frozen=True, slots=True)
class Signing:
    """An order as persons meant it: verb, arguments, and who must sign."""

    verb: str
    arguments: Mapping[str, Any]
    signers: tuple[Signer, ...]

    def write(self, challenge: Challenge) -> str:
        """The note."""
        first, *more = self.signers
        return write_order(first, challenge, self.verb, self.arguments, *more)


@dataclass
class Scene:
    """What an attack is made on: a table, an order for it, and chance."""

    desk: Desk
    signing: Signing
    chance: random.Random

    def good(self) -> str:
        """The order, signed on a challenge of now."""
        return self.signing.write(self.desk.challenge())

    def elsewhere(self, **changed: Any) -> Desk:
        """Another table, epoch or run, which gave nonces with the same key: even then nothing may pass."""
        return Desk(**{"clock": self.desk.clock, "seed": self.desk.seed, **changed})


Attack = Callable[[Scene], bool]
"""Makes one attack; returns whether what must not be taken was taken."""


# ── The attacks ───────────────────────────────────────────────────────────────────────────────────────────────────────


def replayed(scene: Scene) -> bool:
    """The same note again, and again: at once, and until long after its life."""
    note = scene.good()
    assert scene.desk.deliver(note)
    again = False
    for _ in range(scene.chance.randint(1, 4)):
        scene.desk.clock.advance_us(scene.chance.randint(0, CHALLENGE_LIFE_S * 1_000_000))
        again |= scene.desk.deliver(note)
    return again


def same_challenge_twice(scene: Scene) -> bool:
    """Another order on the challenge of one that passed, signed by the same persons."""
    challenge = scene.desk.challenge()
    assert scene.desk.deliver(scene.signing.write(challenge))
    return scene.desk.deliver(a_signing(scene.chance).write(challenge))


def to_another_table(scene: Scene) -> bool:
    """Another table of the house."""
    other = scene.elsewhere(table=scene.chance.choice(("t08", "t7", "t07-2")), boot=scene.desk.boot)
    return other.deliver(scene.good())


def to_another_epoch(scene: Scene) -> bool:
    """The same table, in a new epoch of its journal."""
    return scene.elsewhere(epoch=scene.chance.randint(2, 9)).deliver(scene.good())


def after_a_restart(scene: Scene) -> bool:
    """Signed before a restart, delivered after it, whatever came in between."""
    note, restarted = scene.good(), scene.elsewhere(boot=f"{scene.chance.getrandbits(64):016x}")
    for _ in range(scene.chance.randint(0, 3)):
        restarted.challenge()
    return restarted.deliver(note)


def expired(scene: Scene) -> bool:
    """Held back for the life of its challenge, or for longer."""
    note = scene.good()
    scene.desk.clock.advance_us(CHALLENGE_LIFE_S * 1_000_000 + scene.chance.randint(0, 10**9))
    return scene.desk.deliver(note)


def overtaken(scene: Scene) -> bool:
    """Held back until a newer order of the same persons had passed."""
    older = scene.good()
    scene.desk.clock.advance_us(scene.chance.randint(0, 10**6))
    assert scene.desk.deliver(scene.good())
    return scene.desk.deliver(older)


def by_another_signer(scene: Scene) -> bool:
    """A stranger, another key of the same name, another house, a revoked director."""
    name = scene.signing.signers[0].name.rpartition("/")[2]
    thief = scene.chance.choice(
        (key("D9"), key(name, seed=scene.chance.randint(1, 99)), key(name, site="elsewhere.example"), key("X1"))
    )
    signers = list(scene.signing.signers)
    signers[scene.chance.randrange(len(signers))] = thief
    challenge = scene.desk.challenge()
    text = order_text(challenge, scene.signing.verb, scene.signing.arguments)
    return scene.desk.deliver(sign_note(text, *signers))


def by_the_wrong_number(scene: Scene) -> bool:
    """One signature where two are needed, two where one is, the same twice, or none of the text."""
    first, *more = scene.signing.signers
    signers = [first] if more else [first, key("D2")]
    if more and scene.chance.random() < 0.5:
        signers = [first, first]
    text = order_text(scene.desk.challenge(), scene.signing.verb, scene.signing.arguments)
    return scene.desk.deliver(sign_note(text, *signers))


def by_the_wrong_role(scene: Scene) -> bool:
    """A person who is enrolled, and may not order this."""
    wrong = [badge for badge in ("D1", "C1", "K1") if ROLES[badge] not in VERBS[scene.signing.verb].roles]
    signers = (key(scene.chance.choice(wrong or ["X1"])), *scene.signing.signers[1:])
    return scene.desk.deliver(
        Signing(scene.signing.verb, scene.signing.arguments, signers).write(scene.desk.challenge())
    )


def altered_text(scene: Scene) -> bool:
    """Another verb, other arguments, another origin, boot or nonce, under the signatures of the first text."""
    challenge, other = scene.desk.challenge(), scene.desk.challenge()
    note = parse_note(scene.signing.write(challenge))
    text = note.text
    changes = (
        (f"do {scene.signing.verb}\n", f"do {scene.chance.choice([v for v in VERBS if v != scene.signing.verb])}\n"),
        ("args {", 'args {"more":1,' if scene.signing.arguments else 'args {"more":1'),
        (challenge.nonce, other.nonce),
        (challenge.boot, f"{scene.chance.getrandbits(64):016x}"),
        (challenge.origin, f"{SITE}/table/t08/1"),
    )
    was, becomes = scene.chance.choice(changes)
    return scene.desk.deliver(format_note(text.replace(was, becomes, 1), note.signatures))


def altered_byte(scene: Scene) -> bool:
    """Any one byte of the note changed to any other."""
    note = bytearray(scene.good().encode())
    note[scene.chance.randrange(len(note))] ^= scene.chance.randint(1, 255)
    return scene.desk.deliver(bytes(note))


def made_up_nonce(scene: Scene) -> bool:
    """Rightly signed, on a challenge that this run never gave."""
    real = scene.desk.challenge()
    digits = list(real.nonce)
    for at in scene.chance.sample(range(48), scene.chance.randint(1, 48)):
        digits[at] = scene.chance.choice([digit for digit in "0123456789abcdef" if digit != digits[at]])
    return scene.desk.deliver(scene.signing.write(real.model_copy(update={"nonce": "".join(digits)})))


def signatures_of_another_order(scene: Scene) -> bool:
    """The signature lines of one good order under another good text, or their parts mixed."""
    challenge = scene.desk.challenge()
    note, other = parse_note(scene.signing.write(challenge)), parse_note(scene.good())
    lines = list(other.signatures)
    if scene.chance.random() < 0.5:
        mine = note.signatures[0]
        lines[0] = Signature(mine.name, mine.key_id, other.signatures[0].value)
    return scene.desk.deliver(format_note(note.text, lines))


KINDS: tuple[Attack, ...] = (
    replayed,
    same_challenge_twice,
    to_another_table,
    to_another_epoch,
    after_a_restart,
    expired,
    overtaken,
    by_another_signer,
    by_the_wrong_number,
    by_the_wrong_role,
    altered_text,
    altered_byte,
    made_up_nonce,
    signatures_of_another_order,
)


# ── Many of them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def a_signing(chance: random.Random) -> Signing:
    """Any order that persons may give, signed by those who may."""
    verb = chance.choice(list(VERBS))
    signers = ("D1", "D2") if VERBS[verb].second else ("K1",) if verb == "post.credit" else ("D1",)
    return Signing(verb, ARGUMENTS.get(verb, {}), tuple(key(badge) for badge in signers))


def attack(kind: Attack, seed: int) -> tuple[bool, bool]:
    """One attack: whether it was taken, and whether the order as it was meant was taken, at a table of its own."""
    chance = random.Random(f"{kind.__name__} {seed}")
    signing = a_signing(chance)
    desk = Desk(ManualClock(now_us=chance.randint(0, 10**12)), seed=seed % 997)
    control = Desk(ManualClock(), seed=seed % 991)
    meant = control.deliver(signing.write(control.challenge()))
    return kind(Scene(desk, signing, chance)), meant


@dataclass(frozen=True, slots=True)
class Count:
    """What many attacks came to, by the name of their kind; ``meant`` are good orders that were taken."""

    made: Counter[str]
    taken: Counter[str]
    meant: int


def attacked(attacks: int, seed: int = 1) -> Count:
    """So many attacks, over all kinds in turn."""
    made, taken, meant = Counter[str](), Counter[str](), 0
    for number in range(attacks):
        kind = KINDS[number % len(KINDS)]
        was_taken, was_meant = attack(kind, seed * attacks + number)
        made[kind.__name__] += 1
        taken[kind.__name__] += was_taken
        meant += was_meant
    return Count(made, taken, meant)


def prove() -> Iterator[Result]:
    """What came of ``ATTACKS`` attacks: one line for each kind, and one for the orders beside them."""
    count = attacked(ATTACKS)
    for kind in KINDS:
        name = kind.__name__
        claim = f"order {name.replace('_', ' ')}: taken"
        yield none_of(claim, count.taken[name], count.made[name], "attacks", at_least=ATTACKS // len(KINDS))
    yield none_of("all attacks together: taken", count.taken.total(), count.made.total(), "attacks", at_least=ATTACKS)
    yield all_of("the same orders, as they were meant: taken", count.meant, ATTACKS, "orders", at_least=ATTACKS)
