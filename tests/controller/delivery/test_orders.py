"""Signed orders: the right person, this table, this run, this challenge, once; the answer is the certified entry's."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, multiple, rule
from pydantic import TypeAdapter

from controller import codec
from controller import inbox as inbox_module
from controller.certify.faults import KeyFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, Record, Stamp, build_leaf
from controller.certify.note import KeyType, Signer, parse_note, sign_note
from controller.delivery.enrolment import EnrolledPerson
from controller.delivery.order_refusals import ORDER_MESSAGE_BOUND
from controller.delivery.orders import CHALLENGE_LIFE_S, OrderDesk, order_text, write_order
from controller.delivery.verbs import VERBS
from controller.entropy import SeededEntropy
from controller.inbox import Inbox, Outcome
from controller.schemas import CREDIT_BOUND_CENTS, Challenge, OrderReply
from drivers.clock import ManualClock
from games.money import Cents
from games.posts import CreditAdded
from games.refusals import Refusal
from games.rules import Fact
from games.seance import OrderRefused, PostsPutInService, SeanceOpened
from games.signals import Order, Person, Role

SITE = "casino.example"
REPLY: TypeAdapter[Any] = TypeAdapter(OrderReply)


def signer(badge: str, seed: int = 0) -> Signer:
    return Signer(f"{SITE}/personne/{badge}", f"{badge}{seed}".encode().ljust(32, b"."))


KEYS = {badge: signer(badge) for badge in ("D1", "C1", "K1", "T1", "X1", "D2")}
ROLES = {
    "D1": Role.DIRECTOR,
    "C1": Role.CROUPIER,
    "K1": Role.CASHIER,
    "T1": Role.TECHNICIAN,
    "X1": Role.DIRECTOR,
    "D2": Role.DIRECTOR,
}
PERSONS = {
    badge: EnrolledPerson(badge, ROLES[badge], key.verifier.vkey, revoked=badge == "X1") for badge, key in KEYS.items()
}
DIRECTOR, CROUPIER, CASHIER, TECHNICIAN, REVOKED, DIRECTOR_2 = KEYS.values()

STATEMENT = sign_note("table-controller/seance/v1\nread and agreed\n", Signer(f"{SITE}/table/t07/1", b"t" * 32))
"""What the table would put to the persons for the séance that waits."""

AWAITED = "2026-11-29-1"


def line(key: Signer, note: str = STATEMENT) -> str:
    """A person's signature of a statement, as it comes back."""
    return key.sign(parse_note(note).text).line


ARGUMENTS: dict[str, dict[str, Any]] = {
    "number.confirm": {"pocket": "17"},
    "number.enter": {"pocket": "00"},
    "incident.declare": {"reason": "bille éjectée"},
    "round.void": {"reason": "jeton dans le cylindre"},
    "post.credit": {"post": 3, "cents": 5_000},
    "absence.note": {"post": 3},
    "post.suspend": {"post": 3},
    "consigned.release": {"consignment": 2},
    "statement.certify": {"seance": AWAITED, "lines": [line(DIRECTOR)]},
    "person.enrol": {"badge": "C7", "role": "croupier", "vkey": signer("C7").verifier.vkey},
    "person.revoke": {"badge": "C1", "reason": "badge perdu"},
}
"""Good arguments of every verb that takes some."""

OPENING = {"seance": "2026-11-30-1", "rules_sha256": "ab" * 32}
"""What the table itself adds to an opening."""

ADDED: dict[str, dict[str, Any]] = {
    "statement.certify": {
        "note": f"{STATEMENT}{line(DIRECTOR)}\n",
        "persons": [{"badge": "D1", "role": "director"}],
    },
    "person.enrol": {"second": {"badge": "D2", "role": "director"}},
    "person.revoke": {
        "second": {"badge": "D2", "role": "director"},
        "role": "croupier",
        "vkey": CROUPIER.verifier.vkey,
        "directors": ["D1", "D2"],
    },
}
"""What the table adds to other orders, beside their arguments."""

PERMITTED: dict[str, set[str]] = {
    "director": set(VERBS) - {"post.credit"},
    "croupier": {
        "posts.put-in-service",
        "last.announce",
        "betting.open",
        "no-more-bets.call",
        "number.confirm",
        "incident.declare",
        "number.enter",
    },
    "cashier": {"post.credit", "consigned.release", "statement.certify"},
    "technician": set(),
}


@dataclass
class Desk:
    """The order desk of one table, with a journal in a list."""

    table: str = "t07"
    boot: str = "9f1c0b7e52d3a844"
    seed: int = 1
    persons: Mapping[str, EnrolledPerson] = field(default_factory=lambda: PERSONS)
    clock: ManualClock = field(default_factory=ManualClock)
    leaves: list[bytes] = field(default_factory=list)
    sent: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    inbox: Inbox = field(init=False)
    desk: OrderDesk = field(init=False)

    def __post_init__(self) -> None:
        self.inbox = Inbox()
        self.desk = OrderDesk(
            origin=f"{SITE}/table/{self.table}/1",
            boot=self.boot,
            rules_sha256=OPENING["rules_sha256"],
            clock=self.clock,
            entropy=SeededEntropy(self.seed),
            persons=self.persons,
            inbox=self.inbox,
            recall=lambda index: self.leaves[index],
            next_seance=lambda: OPENING["seance"],
            statement_note={AWAITED: STATEMENT}.get,
            publish_statement=lambda seance: 3 if seance == AWAITED else 0,
            send_reply=lambda payload, correlation: self.sent.append((payload, correlation)),
        )

    def challenge(self, correlation: bytes | None = None) -> Challenge:
        """Ask for a nonce."""
        self.desk.receive(b'{"ask":"challenge","id":"q1"}', correlation)
        return Challenge.model_validate_json(self.sent.pop()[0])

    def order(self, key: Signer, verb: str, arguments: Mapping[str, Any] | None = None) -> str:
        """A good note for a new challenge, signed by a second director where one must."""
        said = ARGUMENTS.get(verb, {}) if arguments is None else arguments
        return write_order(key, self.challenge(), verb, said, *([DIRECTOR_2] if VERBS[verb].second else []))

    def receive(self, note: str | bytes, correlation: bytes | None = None) -> None:
        """A command arrives."""
        self.desk.receive(note.encode() if isinstance(note, str) else note, correlation)

    def taken(self) -> Order | None:
        """The order that waits, if one does."""
        letter = self.inbox.take()
        if letter is None:
            return None
        assert isinstance(letter.signal, Order)
        return letter.signal

    def certify(self, *facts: Fact) -> None:
        """Let the order that waits lead to ``facts``."""
        letter = self.inbox.take()
        assert letter is not None
        assert letter.done is not None
        first = len(self.leaves)
        for index, (kind, data) in enumerate(codec.encode_decision(letter.signal, facts, first), first):
            stamp = Stamp(source=f"{SITE}/table/t07/1", boot=self.boot, mono_ms=1, wall_ms=1, quality="ntp")
            self.leaves.append(build_leaf(index, FIRST_PREVIOUS, Record(kind, data, None), stamp))
        letter.done(Outcome(first, facts))

    def answer(self) -> dict[str, Any]:
        """The only answer since the last call; it is one of those that are published."""
        ((payload, _),) = self.sent
        self.sent.clear()
        REPLY.validate_json(payload)
        reply: dict[str, Any] = json.loads(payload)
        assert None not in reply.values()
        return reply

    def refusal(self, note: str | bytes) -> str:
        """The code with which a command is refused; nothing reached the table."""
        self.receive(note)
        reply = self.answer()
        assert reply["ok"] is False
        assert reply["message"].endswith(".")
        assert self.taken() is None
        assert self.desk.counts[reply["code"]] == 1
        code: str = reply["code"]
        return code


@pytest.fixture
def desk() -> Desk:
    return Desk()


# ── Good orders ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", VERBS)
def test_order_of_every_verb_becomes_its_input_with_the_signer_and_the_evidence(desk: Desk, verb: str) -> None:
    badge = "K1" if verb == "post.credit" else "D1"
    desk.clock.advance_us(7)
    note = desk.order(KEYS[badge], verb)
    desk.receive(note)
    order = desk.taken()
    assert order is not None
    assert type(order) is VERBS[verb].order
    assert (order.at_us, order.by, order.evidence) == (7, Person(badge=badge, role=ROLES[badge]), note)
    own = {name: value for name, value in codec.to_plain(order).items() if name not in ("at_us", "by", "evidence")}
    said = {name: value for name, value in ARGUMENTS.get(verb, {}).items() if name != "lines"}
    assert own == (OPENING if verb == "seance.open" else said | ADDED.get(verb, {}))
    assert desk.sent == [], "nothing is told before it is certified"


def test_every_order_of_the_games_has_a_verb() -> None:
    assert {verb.order.__name__ for verb in VERBS.values()} == {order.__name__ for order in Order.__subclasses__()}


@pytest.mark.law("67-15")
@pytest.mark.parametrize("badge", ["D1", "C1", "K1", "T1"])
@pytest.mark.parametrize("verb", VERBS)
def test_role_decides_who_may_order_what(desk: Desk, badge: str, verb: str) -> None:
    note = desk.order(KEYS[badge], verb)
    if verb in PERMITTED[ROLES[badge].value]:
        desk.receive(note)
        assert desk.taken() is not None
    else:
        assert desk.refusal(note) == "E-ORDER-ROLE"


def test_challenge_names_table_boot_and_life_and_never_comes_twice(desk: Desk) -> None:
    first, second = desk.challenge(), desk.challenge()
    assert (first.id, first.origin, first.boot) == ("q1", "casino.example/table/t07/1", "9f1c0b7e52d3a844")
    assert first.expires_s == CHALLENGE_LIFE_S
    assert first.nonce != second.nonce


def test_answers_carry_the_correlation_data_of_their_command(desk: Desk) -> None:
    desk.receive(b'{"ask":"challenge","id":"q1"}', b"one")
    challenge = Challenge.model_validate_json(desk.sent[0][0])
    desk.receive(write_order(DIRECTOR, challenge, "game.restart", {}), b"two")
    desk.certify(
        OrderRefused(order="RestartGame", by=Person(badge="D1", role=Role.DIRECTOR), reason=Refusal.NOT_HALTED)
    )
    desk.receive(b"?", b"three")
    assert [correlation for _, correlation in desk.sent] == [b"one", b"two", b"three"]


def test_text_that_is_signed_is_exactly_the_published_one(desk: Desk) -> None:
    challenge = Challenge(id="q", nonce="5b" * 24, boot="9f1c", origin="casino.example/table/t07/1", expires_s=1)
    text = order_text(challenge, "post.credit", {"post": 3, "cents": 5_000})
    assert text == (
        f"table-controller/order/v1\ncasino.example/table/t07/1\nboot 9f1c\nnonce {'5b' * 24}\n"
        'do post.credit\nargs {"cents":5000,"post":3}\n'
    )


# ── Answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answer_comes_after_the_commit_and_shows_the_last_fact_of_the_signer(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "seance.open")
    desk.receive(note)
    director = Person(badge="D1", role=Role.DIRECTOR)
    opened = SeanceOpened(seance="2026-11-30-1", by=director, rules_sha256="ab" * 32)
    desk.certify(PostsPutInService(by=director), opened)
    reply = desk.answer()
    assert (reply["ok"], reply["index"], reply["kind"]) == (True, 1, SeanceOpened.KIND)
    assert reply["nonce"] in note
    assert reply["data"] == codec.to_plain(opened)


def test_answer_without_a_fact_of_the_signer_shows_the_first(desk: Desk) -> None:
    desk.receive(desk.order(DIRECTOR, "seance.close"))
    house = Person(badge="key:director", role=Role.DIRECTOR)
    desk.certify(PostsPutInService(by=house), PostsPutInService(by=house))
    assert desk.answer()["index"] == 0


def test_order_that_the_game_refuses_is_answered_with_its_certified_reason(desk: Desk) -> None:
    desk.receive(desk.order(DIRECTOR, "game.restart"))
    person = Person(badge="D1", role=Role.DIRECTOR)
    desk.certify(OrderRefused(order="RestartGame", by=person, reason=Refusal.NOT_HALTED))
    reply = desk.answer()
    assert (reply["ok"], reply["code"], reply["index"]) == (False, "E-NOT-HALTED", 0)


def test_order_that_changes_nothing_is_told_so(desk: Desk) -> None:
    desk.receive(desk.order(DIRECTOR, "presence.attest"))
    desk.certify()
    reply = desk.answer()
    assert (reply["ok"], reply["code"]) == (False, "E-ORDER-NO-EFFECT")
    assert len(reply["nonce"]) == 48


def test_longest_order_fits_an_entry_with_its_evidence(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "incident.declare", {"reason": '"' * 200})
    desk.receive(note)
    person = Person(badge="D1", role=Role.DIRECTOR)
    desk.certify(OrderRefused(order="DeclareIncident", by=person, reason=Refusal.SEANCE_CLOSED))
    (leaf,) = desk.leaves
    assert len(leaf) + 2 * (ORDER_MESSAGE_BOUND - len(note.encode())) <= LEAF_BOUND
    assert json.loads(leaf)["data"]["input"]["evidence"] == note, "anyone can check the signature later"


# ── Bad orders ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_order_by_a_stranger_is_refused(desk: Desk) -> None:
    assert desk.refusal(desk.order(signer("D9"), "game.restart")) == "E-ORDER-SIGNER"


def test_order_by_another_key_of_the_same_name_is_refused(desk: Desk) -> None:
    assert desk.refusal(desk.order(signer("D1", seed=2), "game.restart")) == "E-ORDER-SIGNER"


def test_order_by_the_same_badge_of_another_house_is_refused(desk: Desk) -> None:
    stranger = Signer("elsewhere.example/personne/D1", b"D10".ljust(32, b"."))
    assert desk.refusal(desk.order(stranger, "game.restart")) == "E-ORDER-SIGNER"


def test_order_with_a_second_signature_is_refused(desk: Desk) -> None:
    text = order_text(desk.challenge(), "game.restart", {})
    assert desk.refusal(sign_note(text, DIRECTOR, CROUPIER)) == "E-ORDER-SIGNER"


def test_order_whose_text_was_altered_is_refused(desk: Desk) -> None:
    note = desk.order(CASHIER, "post.credit")
    assert desk.refusal(note.replace('"cents":5000', '"cents":50000')) == "E-ORDER-SIGNER"


def test_order_whose_signature_is_cut_is_refused(desk: Desk) -> None:
    text = order_text(desk.challenge(), "game.restart", {})
    whole = DIRECTOR.sign(text)
    short = type(whole)(whole.name, whole.key_id, whole.value[:10])
    assert desk.refusal(f"{text}\n{short.line}\n") == "E-ORDER-SIGNER"


def test_order_whose_signature_names_another_key_identifier_is_refused(desk: Desk) -> None:
    text = order_text(desk.challenge(), "game.restart", {})
    good = DIRECTOR.sign(text)
    assert desk.refusal(f"{text}\n{type(good)(good.name, bytes(4), good.value).line}\n") == "E-ORDER-SIGNER"


def test_order_by_a_revoked_person_is_refused(desk: Desk) -> None:
    assert desk.refusal(desk.order(REVOKED, "game.restart")) == "E-ORDER-REVOKED"


def test_revocation_counts_from_the_next_order(desk: Desk) -> None:
    persons = dict(PERSONS)
    desk = Desk(persons=persons)
    note = desk.order(DIRECTOR, "game.restart")
    persons["D1"] = EnrolledPerson("D1", Role.DIRECTOR, DIRECTOR.verifier.vkey, revoked=True)
    assert desk.refusal(note) == "E-ORDER-REVOKED"


def test_order_on_a_used_challenge_is_refused_with_the_advice_to_look_first(desk: Desk) -> None:
    challenge = desk.challenge()
    desk.receive(write_order(CASHIER, challenge, "post.credit", {"post": 3, "cents": 100}))
    assert desk.taken() is not None
    desk.receive(write_order(CASHIER, challenge, "post.credit", {"post": 3, "cents": 200}))
    assert desk.taken() is None
    reply = desk.answer()
    assert (reply["code"], reply["nonce"]) == ("E-ORDER-NONCE", challenge.nonce)
    assert reply["message_en"].index("Look first") < reply["message_en"].index("sign again")
    assert reply["message"].index("Regardez d'abord") < reply["message"].index("signez de nouveau")


@pytest.mark.parametrize("key", [CASHIER, DIRECTOR], ids=["same-person", "another-person"])
def test_order_on_a_used_challenge_is_refused_whoever_signs_it(desk: Desk, key: Signer) -> None:
    challenge = desk.challenge()
    desk.receive(write_order(CASHIER, challenge, "consigned.release", {"consignment": 1}))
    assert desk.taken() is not None
    assert desk.refusal(write_order(key, challenge, "consigned.release", {"consignment": 2})) == "E-ORDER-NONCE"


@pytest.mark.parametrize(("late_us", "good"), [(-1, True), (0, False)])
def test_challenge_is_good_until_it_expires(desk: Desk, late_us: int, good: bool) -> None:
    note = desk.order(DIRECTOR, "game.restart")
    desk.clock.advance_us(CHALLENGE_LIFE_S * 1_000_000 + late_us)
    desk.receive(note)
    assert (desk.taken() is not None) is good
    assert desk.desk.counts["E-ORDER-NONCE"] == (0 if good else 1)


@pytest.mark.parametrize("at", range(0, 48, 5))
def test_order_on_a_challenge_that_was_altered_is_refused(desk: Desk, at: int) -> None:
    good = desk.challenge()
    other = "0" if good.nonce[at] != "0" else "f"
    altered = good.model_copy(update={"nonce": good.nonce[:at] + other + good.nonce[at + 1 :]})
    assert desk.refusal(write_order(DIRECTOR, altered, "game.restart", {})) == "E-ORDER-NONCE"


def test_order_on_a_challenge_of_another_key_is_refused(desk: Desk) -> None:
    other = Desk(seed=desk.seed + 1).challenge()
    assert desk.refusal(write_order(DIRECTOR, other, "game.restart", {})) == "E-ORDER-NONCE"


def test_order_on_a_challenge_that_nobody_issued_is_refused(desk: Desk) -> None:
    made_up = desk.challenge().model_copy(update={"nonce": "0" * 48})
    assert desk.refusal(write_order(DIRECTOR, made_up, "game.restart", {})) == "E-ORDER-NONCE"


def test_order_signed_before_a_restart_is_refused_after_it(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "game.restart")
    again = Desk(boot="0000000000000001", seed=desk.seed)
    again.challenge()  # even if chance gave the same nonce again
    assert again.refusal(note) == "E-ORDER-NONCE"


def test_order_for_another_table_is_refused(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "game.restart")
    assert Desk(table="t08").refusal(note) == "E-ORDER-TABLE"


def test_refused_order_leaves_its_challenge_good(desk: Desk) -> None:
    challenge = desk.challenge()
    assert desk.refusal(write_order(signer("D9"), challenge, "game.restart", {})) == "E-ORDER-SIGNER"
    assert desk.refusal(write_order(CROUPIER, challenge, "game.restart", {})) == "E-ORDER-ROLE"
    desk.receive(write_order(DIRECTOR, challenge, "game.restart", {}))
    assert desk.taken() is not None


def test_inbox_full_is_told_and_the_same_order_may_be_sent_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    note = desk.order(CASHIER, "post.credit")
    with monkeypatch.context() as full:
        full.setattr(inbox_module, "STAFF_LANE_BOUND", 0)
        assert desk.refusal(note) == "E-INBOX-FULL"
    desk.receive(note)
    assert desk.taken() is not None


@pytest.mark.parametrize(
    ("verb", "arguments", "says"),
    [
        ("post.debit", "{}", "must be one of"),
        ("game.restart", '{"now":true}', '"now" is unknown'),
        ("post.credit", '{"cents":5000}', '"post" is missing'),
        ("post.credit", '{"cents":-5,"post":3}', '"cents" must be greater'),
        ("post.credit", '{"cents":5.0,"post":3}', '"cents" must be a whole number'),
        ("post.credit", f'{{"cents":{CREDIT_BOUND_CENTS + 1},"post":3}}', '"cents" must not exceed'),
        ("post.credit", '{"post":3,"cents":5000}', "canonical"),
        ("post.credit", '{"cents":5000, "post":3}', "canonical"),
        ("post.credit", '{"cents":5000,"cents":5000,"post":3}', "canonical"),
        ("post.credit", '{"cents":5000,"post":3', None),
        ("post.credit", "{" * 500 + "}", "not JSON"),
        ("number.enter", '{"pocket":"37"}', '"pocket" takes'),
        ("number.enter", '{"pocket":17}', '"pocket" must be a text'),
        ("incident.declare", '{"reason":""}', '"reason" takes'),
        ("incident.declare", '{"reason":"a\\nb"}', '"reason" takes'),
        ("incident.declare", '{"reason":"\\u0061"}', "canonical"),
        ("incident.declare", json.dumps({"reason": "a" * 201}), '"reason" takes'),
        ("Game.restart", "{}", None),
    ],
)
def test_order_with_bad_verb_or_arguments_is_refused(desk: Desk, verb: str, arguments: str, says: str | None) -> None:
    key = CASHIER if verb.startswith("post.") else DIRECTOR
    text = order_text(desk.challenge(), "X", {}).replace("do X\nargs {}", f"do {verb}\nargs {arguments}")
    desk.receive(sign_note(text, key))
    reply = desk.answer()
    assert reply["code"] == "E-ORDER-MALFORMED"
    assert says is None or says in reply["message_en"]
    assert desk.taken() is None


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("table-controller/order/v1", "table-controller/order/v2"),
        ("nonce ", "nonce  "),
        ("do game", "\ndo game"),
        ("args {}", "args {}\nargs {}"),
        ("args {}", "args []"),
    ],
)
def test_order_with_another_text_is_refused(desk: Desk, was: str, becomes: str) -> None:
    text = order_text(desk.challenge(), "game.restart", {}).replace(was, becomes)
    assert desk.refusal(sign_note(text, DIRECTOR)) == "E-ORDER-MALFORMED"


@pytest.mark.parametrize(
    "payload", [b"", b"game.restart", b"\xff\xfe\n\n\xe2\x80\x94 a b\n", b"a\n\n\xe2\x80\x94 a b\n"]
)
def test_order_that_is_no_note_is_refused(desk: Desk, payload: bytes) -> None:
    assert desk.refusal(payload) == "E-ORDER-UNSIGNED"


def test_order_over_the_bound_is_refused_unread(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "game.restart")
    assert desk.refusal(note.replace("\n\n", "\n" * ORDER_MESSAGE_BOUND)) == "E-ORDER-OVERSIZED"


# ── Challenges ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b'{"ask":"order","id":"q"}', '"ask" must be'),
        (b'{"ask":"challenge"}', '"id" is missing'),
        (b'{"ask":"challenge","id":"q","stake":1}', '"stake" is unknown'),
        (b'{"ask":"challenge","id":"q","id":"q"}', "twice"),
        (b'{"ask":"challenge","id":"q"', "not JSON"),
    ],
)
def test_bad_request_for_a_challenge_is_refused(desk: Desk, payload: bytes, says: str) -> None:
    desk.receive(payload)
    reply = desk.answer()
    assert reply["code"] == "E-ORDER-MALFORMED"
    assert says in reply["message_en"]
    assert reply.get("id") == ("q" if b'"id":"q"' in payload and payload.endswith(b"}") else None)


def test_challenges_without_end_shut_nobody_out_and_never_come_twice(desk: Desk) -> None:
    first = desk.order(DIRECTOR, "game.restart")
    nonces = {desk.challenge().nonce for _ in range(2_000)}
    assert len(nonces) == 2_000
    desk.receive(first)
    assert desk.taken() is not None, "those that are out stay good"
    desk.receive(desk.order(CASHIER, "post.credit"))
    assert desk.taken() is not None


# ── Repeats ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def credited(cents: int) -> CreditAdded:
    return CreditAdded(
        post=3, sitting=1, cents=Cents(cents), credit=Cents(cents), by=Person(badge="K1", role=Role.CASHIER)
    )


@pytest.mark.law("67-15")
def test_credit_that_was_carried_out_gets_the_same_certified_answer_again_and_is_not_given_twice(desk: Desk) -> None:
    note = desk.order(CASHIER, "post.credit")
    desk.receive(note)
    desk.certify(credited(5_000))
    first = desk.answer()
    for _ in range(3):
        desk.receive(note)
        assert desk.answer() == first
    assert (first["ok"], first["index"], first["data"]["cents"]) == (True, 0, 5_000)
    assert desk.taken() is None
    assert desk.desk.counts == {"challenged": 1, "taken": 1, "repeated": 3}


def test_refusal_that_was_certified_is_answered_alike_when_its_order_comes_again(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "game.restart")
    desk.receive(note)
    person = Person(badge="D1", role=Role.DIRECTOR)
    desk.certify(OrderRefused(order="RestartGame", by=person, reason=Refusal.NOT_HALTED))
    first = desk.answer()
    desk.receive(note)
    assert desk.answer() == first
    assert first["code"] == "E-NOT-HALTED"


def test_order_repeated_in_flight_is_answered_once_to_the_last_who_asked(desk: Desk) -> None:
    note = desk.order(CASHIER, "post.credit")
    for correlation in (b"one", b"two"):
        desk.receive(note, correlation)
    assert desk.sent == []
    desk.certify(credited(5_000))
    assert [correlation for _, correlation in desk.sent] == [b"two"]
    assert desk.answer()["ok"] is True
    assert desk.taken() is None
    desk.receive(note, b"three")
    assert [correlation for _, correlation in desk.sent] == [b"three"]


def test_order_that_changed_nothing_is_told_so_again(desk: Desk) -> None:
    note = desk.order(DIRECTOR, "presence.attest")
    desk.receive(note)
    desk.certify()
    first = desk.answer()
    desk.receive(note)
    assert desk.answer() == first
    assert desk.taken() is None


@pytest.mark.parametrize(("late_us", "answered"), [(-1, True), (0, False)])
def test_order_carried_out_is_answered_again_for_a_life_of_a_challenge_after_its_use(
    desk: Desk, late_us: int, answered: bool
) -> None:
    note = desk.order(CASHIER, "post.credit")
    desk.clock.advance_us(CHALLENGE_LIFE_S * 1_000_000 - 1)
    desk.receive(note)
    desk.certify(credited(5_000))
    first = desk.answer()
    desk.clock.advance_us(CHALLENGE_LIFE_S * 1_000_000 + late_us)
    desk.receive(note)
    again = desk.answer()
    assert (again == first) is answered
    assert answered or again["code"] == "E-ORDER-NONCE"
    assert desk.taken() is None


def test_order_of_a_person_revoked_since_gets_no_answer_again() -> None:
    persons = dict(PERSONS)
    desk = Desk(persons=persons)
    note = desk.order(CASHIER, "post.credit")
    desk.receive(note)
    desk.certify(credited(5_000))
    desk.answer()
    persons["K1"] = EnrolledPerson("K1", Role.CASHIER, CASHIER.verifier.vkey, revoked=True)
    assert desk.refusal(note) == "E-ORDER-REVOKED"


# ── Order ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_order_held_back_until_a_newer_one_of_the_same_person_passed_is_refused(desk: Desk) -> None:
    older, newer = desk.order(CASHIER, "post.credit"), desk.order(CASHIER, "post.credit")
    desk.receive(newer)
    assert desk.taken() is not None
    assert desk.refusal(older) == "E-ORDER-OVERTAKEN"


def test_order_held_back_while_another_person_s_passed_is_taken(desk: Desk) -> None:
    older, newer = desk.order(CASHIER, "post.credit"), desk.order(DIRECTOR, "game.restart")
    for note in (newer, older):
        desk.receive(note)
        assert desk.taken() is not None


@pytest.mark.parametrize("alone", [DIRECTOR, DIRECTOR_2])
def test_order_of_two_is_overtaken_by_a_newer_one_of_either(desk: Desk, alone: Signer) -> None:
    both = desk.order(DIRECTOR, "person.enrol")
    desk.receive(desk.order(alone, "game.restart"))
    assert desk.taken() is not None
    assert desk.refusal(both) == "E-ORDER-OVERTAKEN"


# ── Enrolment ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (signer("D2").verifier.vkey, "E-KEY-PERSON"),
        (Signer(f"{SITE}/personne/D1", b"d" * 32, KeyType.COSIGNATURE).verifier.vkey, "E-KEY-PERSON"),
        ("casino.example/personne/D1+00000000+AA==", "E-KEY-MALFORMED"),
    ],
)
def test_enrolment_with_a_key_that_cannot_sign_for_the_badge_raises(key: str, code: str) -> None:
    with pytest.raises(KeyFault, match=code):
        EnrolledPerson("D1", Role.DIRECTOR, key)


# ── Everything that an attacker may do with good notes ────────────────────────────────────────────────────────────────

TABLES = ("t07", "t08")


class Attacker(RuleBasedStateMachine):
    """He holds every note that was ever signed, and delivers them anywhere, in any order, as often as he likes."""

    notes = Bundle("notes")

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.boots = Counter[str]()
        self.desks = {table: self.start(table) for table in TABLES}
        self.meant_for: dict[str, tuple[str, str, int]] = {}
        self.nonce_of: dict[str, str] = {}
        self.taken: set[str] = set()
        self.asked_as: dict[str, int] = {}
        self.newest = Counter[tuple[str, str]]()

    def start(self, table: str) -> Desk:
        self.boots[table] += 1
        return Desk(table=table, boot=f"{self.boots[table]:016x}", seed=1, clock=self.clock)

    @rule(target=notes, table=st.sampled_from(TABLES), twice=st.booleans())
    def sign(self, table: str, twice: bool) -> Any:
        challenge = self.desks[table].challenge()
        notes = []
        for cents in (100, 200) if twice else (100,):
            note = write_order(CASHIER, challenge, "post.credit", {"post": 1, "cents": cents})
            self.meant_for[note] = (table, challenge.boot, self.clock.mono_us() + CHALLENGE_LIFE_S * 1_000_000)
            self.nonce_of[note] = f"{table} {challenge.boot} {challenge.nonce}"
            self.asked_as[note] = len(set(self.nonce_of.values()))
            notes.append(note)
        return multiple(*notes)

    @rule(table=st.sampled_from(TABLES))
    def restart(self, table: str) -> None:
        self.desks[table] = self.start(table)

    @rule(by_s=st.sampled_from([1, CHALLENGE_LIFE_S // 2, CHALLENGE_LIFE_S]))
    def wait(self, by_s: int) -> None:
        self.clock.advance_us(by_s * 1_000_000)

    @rule(note=notes, table=st.sampled_from(TABLES))
    def deliver(self, note: str, table: str) -> None:
        desk = self.desks[table]
        wanted, boot, expires_us = self.meant_for[note]
        fresh = self.nonce_of[note] not in self.taken
        in_time = self.clock.mono_us() < expires_us
        in_order = self.asked_as[note] >= self.newest[table, boot]
        desk.receive(note)
        was_taken = desk.taken() is not None
        assert was_taken == (fresh and in_time and in_order and wanted == table and boot == desk.boot)
        if was_taken:
            self.taken.add(self.nonce_of[note])
            self.newest[table, boot] = self.asked_as[note]

    @rule(note=consumes(notes), at=st.integers(0, 10_000), flip=st.integers(1, 255), table=st.sampled_from(TABLES))
    def alter(self, note: str, at: int, flip: int, table: str) -> None:
        altered = bytearray(note.encode())
        altered[at % len(altered)] ^= flip
        self.desks[table].receive(bytes(altered))
        assert self.desks[table].taken() is None


TestAttacker = Attacker.TestCase
TestAttacker.settings = settings(max_examples=60, stateful_step_count=30)


@given(st.binary(max_size=300) | st.text(st.sampled_from("{}\"':,\n—+ askid0"), max_size=80).map(str.encode))
@settings(max_examples=200)
def test_command_of_any_bytes_is_answered_and_never_reaches_the_table(payload: bytes) -> None:
    desk = Desk()
    desk.receive(payload)
    answer = desk.answer()
    assert "expires_s" in answer or answer["ok"] is False, "a good request for a challenge may be among them"
    assert desk.taken() is None
