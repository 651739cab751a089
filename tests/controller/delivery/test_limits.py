"""What is just permitted and what is just not, on the wire and among topics; and what is said in each case."""

import json
from collections.abc import Callable

import pytest

from controller.certify.note import Signer, format_note
from controller.delivery import order_refusals, orders, posts, wire
from controller.delivery.order_refusals import ORDER_MESSAGE_BOUND
from controller.delivery.orders import OrderDesk
from controller.delivery.posts import Memory, Pace
from controller.delivery.topics import POST_MAXIMUM, Topics
from controller.delivery.verbs import VERBS
from controller.delivery.wire import WireError, decode_post_message, request_id, to_json
from controller.entropy import SeededEntropy
from controller.inbox import Inbox
from drivers.clock import ManualClock

TOPICS = Topics("casino.example", "t07")


def test_posts_are_numbered_from_1_to_999() -> None:
    assert POST_MAXIMUM == 999
    assert TOPICS.post_in(999).endswith("/post/999/in")
    assert TOPICS.post_out(1).endswith("/post/1/out")
    with pytest.raises(ValueError, match="posts are numbered from 1 to 999"):
        TOPICS.post_in(1_000)


def test_topic_of_a_post_that_ends_otherwise_than_its_own_is_nobodys() -> None:
    assert TOPICS.post_of(f"{TOPICS.root}/post/3/in") == 3
    assert TOPICS.post_of(f"{TOPICS.root}/post/3/on") is None
    assert TOPICS.post_of(f"{TOPICS.root}/post/3in/in") is None


def test_topics_show_themselves_without_what_is_derived_for_speed() -> None:
    assert repr(TOPICS) == "Topics(site='casino.example', table='t07', root='casino/v1/casino.example/table/t07')"


# ── Messages of posts ─────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(document: object) -> WireError:
    with pytest.raises(WireError) as refused:
        decode_post_message(document if isinstance(document, bytes) else json.dumps(document).encode())
    return refused.value


def test_bounds_of_the_wire_and_of_what_a_post_may_send_are_the_published_ones() -> None:
    assert (wire.POST_MESSAGE_BOUND, wire.FIELD_NAME_BOUND) == (8_192, 64)
    assert (posts.MESSAGES_PER_S, posts.MESSAGES_AT_ONCE, posts.DEAF_US) == (100, 200, 1_000_000)
    assert (posts.REQUESTS_PER_ROUND, posts.REQUESTS_REMEMBERED, posts.REFUSALS_PER_ROUND) == (1_024, 2_048, 64)
    assert (orders.CHALLENGE_LIFE_S, orders.SIGNERS_BOUND, order_refusals.ORDER_MESSAGE_BOUND) == (120, 2, 2_048)


def test_message_of_just_the_permitted_length_is_read() -> None:
    message = b'{"id":"s1","do":"payout"}'
    assert decode_post_message(message.ljust(8_192)).id == "s1"
    assert request_id(message.ljust(8_192)) == "s1"
    assert refusal(message.ljust(8_193)).code == "E-POST-OVERSIZED"
    assert request_id(message.ljust(8_193)) is None


def test_answers_keep_their_letters_and_faults_show_their_code() -> None:
    assert to_json({"message": "séance « 1 »"}) == '{"message":"séance « 1 »"}'.encode()
    assert str(WireError("E-POST-JSON", "français", "English")) == "E-POST-JSON English"


@pytest.mark.parametrize(
    ("message", "french", "english"),
    [
        (
            {"id": "s1", "do": "random", "round": 1, "cents": 5, "count": 11},
            "« count » ne doit pas dépasser 10.",
            '"count" must not exceed 10.',
        ),
        (
            {"id": "s1", "do": "random", "round": 1, "cents": 0, "count": 1},
            "« cents » doit être supérieur à 0.",
            '"cents" must be greater than 0.',
        ),
        (
            {"id": "s1", "do": "stake", "round": 1, "stakes": []},
            "« stakes » doit compter au moins 1 élément.",
            '"stakes" must have at least 1 item.',
        ),
        (
            {"id": "s1", "do": "stake", "round": 1, "stakes": [{"bet": "rouge", "cents": 200}] * 65},
            "« stakes » doit compter au plus 64 éléments.",
            '"stakes" must have at most 64 items.',
        ),
        (
            {"id": "s1", "do": "stake", "round": 1, "stakes": ["rouge"]},
            "« stakes[0] » doit être un objet JSON.",
            '"stakes[0]" must be a JSON object.',
        ),
        (
            {"id": "s1", "do": "stake", "round": 1, "stakes": [{"bet": "Rouge", "cents": 200}]},
            "« stakes[0].bet » attend : 1 à 48 minuscules sans accent, chiffres ou tirets.",
            '"stakes[0].bet" takes: 1 to 48 unaccented small letters, digits or dashes.',
        ),
        (
            {"id": "s1", "do": "payout", "stake": 1, "more": 2},
            "Le champ « stake » est inconnu dans cette demande.",
            'The field "stake" is unknown in this request.',
        ),
    ],
)
def test_first_thing_that_is_wrong_is_said_in_both_languages(message: object, french: str, english: str) -> None:
    error = refusal(message)
    assert (error.french, error.english) == (french, english)


def test_message_that_asks_for_nothing_known_is_told_what_there_is() -> None:
    listed = "sit, stake, announce, random, take-back, minimum, payout, away, back, hello"
    error = refusal({"id": "s1", "do": "dance"})
    assert sorted(error.english.rpartition(": ")[2].rstrip(".").split(", ")) == sorted(listed.split(", "))


# ── What a post may send ──────────────────────────────────────────────────────────────────────────────────────────────


def test_post_that_sends_too_much_at_once_is_not_heard_for_a_second() -> None:
    pace = Pace()
    assert not pace.deaf(0)
    assert all(pace.spend(0) for _ in range(200))
    assert not pace.spend(0)
    assert pace.deaf(999_999)
    assert not pace.deaf(1_000_000)
    assert all(pace.spend(1_000_000) for _ in range(100))
    assert not pace.spend(1_000_000), "in a second a hundred messages came back"


def test_post_that_was_refused_too_often_or_asked_too_much_is_hindered_until_the_next_round() -> None:
    memory = Memory()
    memory.enter(1)
    for number in range(63):
        memory.find(f"r{number}", number, of_round=True, refused=True)
    memory.find("of no round", 63, of_round=False, refused=True)
    memory.find("good", 64, of_round=True, refused=False)
    assert memory.hindrance is None
    memory.find("r63", 65, of_round=True, refused=True)
    assert memory.hindrance is not None
    memory.enter(2)
    assert memory.hindrance is None


def test_post_begins_with_nothing_asked_in_no_round() -> None:
    memory = Memory()
    for number in range(1_023):
        memory.take(f"r{number}", of_round=True)
        memory.drop(f"r{number}")
    memory.enter(0)
    assert memory.hindrance is None
    memory.take("last", of_round=True)
    assert memory.hindrance is not None


def test_post_that_is_refused_before_any_round_is_hindered_after_64() -> None:
    memory = Memory()
    for number in range(63):
        memory.find(f"r{number}", number, of_round=True, refused=True)
    assert memory.hindrance is None
    memory.find("last", 63, of_round=True, refused=True)
    assert memory.hindrance is not None


@pytest.mark.parametrize("of_round", [True, False])
def test_answers_of_a_post_are_remembered_apart_and_the_oldest_goes_first(of_round: bool) -> None:
    memory = Memory()
    memory.find("other", 7, of_round=not of_round, refused=False)
    for number in range(2_048):
        memory.find(f"r{number}", number, of_round=of_round, refused=False)
    assert memory.entry_of("r0") == 0
    memory.find("one more", 2_048, of_round=of_round, refused=False)
    assert memory.entry_of("r0") is None
    assert (memory.entry_of("r1"), memory.entry_of("one more"), memory.entry_of("other")) == (1, 2_048, 7)


# ── Orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Sent:
    """An order desk that knows nobody, and what it sent."""

    def __init__(self, statements: Callable[[str], int] = lambda seance: 3 if seance == "2026-11-29-1" else 0) -> None:
        self.replies: list[tuple[dict[str, object], bytes | None]] = []
        self.desk = OrderDesk(
            origin="casino.example/table/t07/1",
            boot="9f1c0b7e52d3a844",
            rules_sha256="ab" * 32,
            clock=ManualClock(),
            entropy=SeededEntropy(1),
            persons={},
            inbox=Inbox(),
            recall=lambda index: b"",
            next_seance=lambda: "2026-11-30-1",
            statement_note=lambda seance: None,
            publish_statement=statements,
            send_reply=lambda payload, correlation: self.replies.append((json.loads(payload), correlation)),
        )

    def answer(self, payload: bytes, correlation: bytes | None = None) -> dict[str, object]:
        self.desk.receive(payload, correlation)
        ((reply, heard),) = self.replies
        self.replies.clear()
        assert heard == correlation
        return reply


def test_statement_that_waits_is_published_again_and_the_answer_says_in_how_many_parts() -> None:
    asked = b'{"ask":"statement","id":"q1","seance":"2026-11-29-1"}'
    assert Sent().answer(asked, b"one") == {"id": "q1", "ok": True, "seance": "2026-11-29-1", "parts": 3}


def test_statement_that_does_not_wait_is_refused_with_the_id_of_the_request() -> None:
    reply = Sent().answer(b'{"ask":"statement","id":"q1","seance":"2026-11-28-1"}')
    assert (reply["id"], reply["ok"], reply["code"]) == ("q1", False, "E-STATEMENT-NOT-AWAITED")


def test_command_of_just_the_permitted_length_is_read() -> None:
    asked = b'{"ask":"challenge","id":"q1"}'
    assert Sent().answer(asked.ljust(ORDER_MESSAGE_BOUND))["id"] == "q1"
    assert Sent().answer(asked.ljust(ORDER_MESSAGE_BOUND + 1))["code"] == "E-ORDER-OVERSIZED"


def test_order_with_three_signatures_is_refused_whoever_they_are() -> None:
    text = "table-controller/order/v1\n"
    signers = [Signer(f"casino.example/personne/D{number}", bytes([number] * 32)) for number in range(3)]
    note = format_note(text, [signer.sign(text) for signer in signers])
    assert Sent().answer(note.encode())["code"] == "E-ORDER-SIGNER"
    assert "seance.open" in VERBS
