"""Bytes from a post: exactly the protocol is understood; all else gets one code, one place and one sentence."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from controller.delivery import wire
from controller.delivery.wire import WireError, certified_reply, decode_post_message, is_refusal, request_id
from controller.schemas import NUMBER_BOUND, STAKES_BOUND, StakeRequest

GOOD: dict[str, Any] = {"id": "s1", "do": "stake", "round": 1, "stakes": [{"bet": "rouge", "cents": 200}]}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


def with_line(**line: Any) -> dict[str, Any]:
    return {**GOOD, "stakes": [{"bet": "noir", "cents": 100}, line]}


@pytest.mark.parametrize(
    ("message", "code", "where"),
    [
        ({**GOOD, "stakes": [{"bet": "rouge", "cents": -200}]}, "E-POST-FIELD", "stakes[0].cents"),
        (with_line(bet="rouge", cents=0), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=2.0), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=True), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents="200"), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=None), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=float("nan")), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=float("inf")), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=NUMBER_BOUND + 1), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=10**300), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="Rouge", cents=200), "E-POST-FIELD", "stakes[1].bet"),
        (with_line(bet="rouge\n", cents=200), "E-POST-FIELD", "stakes[1].bet"),
        (with_line(bet="", cents=200), "E-POST-FIELD", "stakes[1].bet"),
        (with_line(bet=17, cents=200), "E-POST-FIELD", "stakes[1].bet"),
        (with_line(bet="rouge"), "E-POST-FIELD", "stakes[1].cents"),
        (with_line(bet="rouge", cents=200, post=2), "E-POST-FIELD", "stakes[1].post"),
        ({**GOOD, "stakes": []}, "E-POST-FIELD", "stakes"),
        ({**GOOD, "stakes": {"bet": "rouge", "cents": 200}}, "E-POST-FIELD", "stakes"),
        ({**GOOD, "stakes": [["rouge", 200]]}, "E-POST-FIELD", "stakes[0]"),
        ({**GOOD, "stakes": GOOD["stakes"] * (STAKES_BOUND + 1)}, "E-POST-FIELD", "stakes"),
        ({**GOOD, "round": 0}, "E-POST-FIELD", "round"),
        ({**GOOD, "round": -1}, "E-POST-FIELD", "round"),
        ({**GOOD, "round": "1"}, "E-POST-FIELD", "round"),
        (without("round"), "E-POST-FIELD", "round"),
        ({**GOOD, "post": 2}, "E-POST-FIELD", "post"),
        ({**GOOD, "x" * 500: 2}, "E-POST-FIELD", "x" * wire.FIELD_NAME_BOUND),
        ({"id": "s1", "do": "random", "round": 1, "cents": 5, "count": 11}, "E-POST-FIELD", "count"),
        ({"id": "s1", "do": "random", "round": 1, "cents": 5, "count": 0}, "E-POST-FIELD", "count"),
        ({"id": "s1", "do": "sit", "player": "Jean Valjean"}, "E-POST-FIELD", "player"),
        ({"id": "s1", "do": "payout", "cents": 5}, "E-POST-FIELD", "cents"),
        ({"id": "s1", "do": "credit", "cents": 5}, "E-POST-REQUEST-UNKNOWN", "do"),
        ({"id": "s1", "do": None}, "E-POST-REQUEST-UNKNOWN", "do"),
        ({"id": "s1"}, "E-POST-REQUEST-UNKNOWN", "do"),
    ],
)
def test_bad_field_is_refused_with_its_place_in_both_sentences(message: dict[str, Any], code: str, where: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_post_message(json.dumps(message).encode())
    reply = json.loads(caught.value.reply({"id": "s1"}))
    assert (reply["id"], reply["ok"], reply["code"], reply["field"]) == ("s1", False, code, where)
    for sentence in (reply["message"], reply["message_en"]):
        assert where in sentence
        assert sentence.endswith(".")
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "E-POST-JSON"),
        (b"null", "E-POST-JSON"),
        (b"[]", "E-POST-JSON"),
        (b"\xff\xfe", "E-POST-JSON"),
        (b"[" * 8_000, "E-POST-JSON"),
        (b'{"a":' * 1_500, "E-POST-JSON"),
        (json.dumps(GOOD).encode("utf-16"), "E-POST-JSON"),
        (json.dumps(GOOD).encode("utf-8-sig"), "E-POST-JSON"),
        (json.dumps(GOOD).encode()[:-1], "E-POST-JSON"),
        (json.dumps(GOOD).encode() + b"{}", "E-POST-JSON"),
        (json.dumps({"do": "payout", "id": "é"}).encode(), "E-POST-FIELD"),
        (json.dumps({"do": "payout", "id": "x" * 65}).encode(), "E-POST-FIELD"),
        (json.dumps({"do": "payout", "id": 7}).encode(), "E-POST-FIELD"),
        (json.dumps({"do": "payout"}).encode(), "E-POST-FIELD"),
        (json.dumps(GOOD).encode() + b" " * wire.POST_MESSAGE_BOUND, "E-POST-OVERSIZED"),
    ],
)
def test_bad_message_without_a_readable_id_is_refused_without_one(payload: bytes, code: str) -> None:
    with pytest.raises(WireError, match=code):
        decode_post_message(payload)
    assert request_id(payload) is None


@pytest.mark.parametrize(
    "payload",
    [
        b'{"id":"s1","do":"stake","round":1,"round":1,"stakes":[{"bet":"rouge","cents":200}]}',
        b'{"id":"s1","do":"stake","round":1,"stakes":[{"bet":"rouge","cents":200,"cents":900}]}',
        b'{"id":"s1","do":"stake","round":1,"stakes":[{"bet":"rouge","cents":200,"\\u0063ents":900}]}',
        b'{"id":"s1","do":"payout","do":"payout"}',
        b'{"id":"\\"","id":"s1","do":"payout"}',
        b'{"do":{"a":["b"]},"id":"s1","do":"payout"}',
    ],
)
def test_key_that_stands_twice_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError, match="E-POST-KEY-TWICE"):
        decode_post_message(payload)
    assert request_id(payload) == "s1"


def test_longest_honest_message_fits() -> None:
    lines = [{"bet": f"{'x' * 46}{number:02}", "cents": NUMBER_BOUND} for number in range(STAKES_BOUND)]
    payload = json.dumps({"id": "i" * 64, "do": "stake", "round": NUMBER_BOUND, "stakes": lines}).encode()
    assert len(payload) <= wire.POST_MESSAGE_BOUND
    message = decode_post_message(payload)
    assert isinstance(message, StakeRequest)
    assert len(message.stakes) == STAKES_BOUND


def test_sentences_say_what_is_wrong_and_what_is_permitted() -> None:
    with pytest.raises(WireError) as caught:
        decode_post_message(json.dumps({**GOOD, "stakes": [{"bet": "rouge", "cents": 2.5}]}).encode())
    assert caught.value.french == "« stakes[0].cents » doit être un nombre entier, écrit sans guillemets ni décimales."
    assert caught.value.english == '"stakes[0].cents" must be a whole number, written without quotes or decimals.'
    with pytest.raises(WireError, match="small letters"):
        decode_post_message(json.dumps({**GOOD, "stakes": [{"bet": "Rouge", "cents": 2}]}).encode())


# An independent reading of the protocol, by hand, on the standard library's parser.

FIELDS = {
    "sit": {"player": "token"},
    "stake": {"round": "number", "stakes": "stakes"},
    "announce": {"round": "number", "announcement": "name", "cents": "number"},
    "random": {"round": "number", "cents": "number", "count": "ten"},
    "take-back": {"round": "number"},
    "minimum": {"cents": "number"},
    "payout": {},
    "away": {},
    "back": {},
    "hello": {},
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKEN_SIGNS = set(LETTERS + LETTERS.upper() + "0123456789._:-")
NAME_SIGNS = set(LETTERS + "0123456789-")


class TwiceError(ValueError):
    """A key stands twice."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise TwiceError
    return dict(pairs)


def fits(value: Any, kind: str) -> bool:
    match kind:
        case "number":
            return type(value) is int and 1 <= value <= 2**53 - 1
        case "ten":
            return type(value) is int and 1 <= value <= 10
        case "token":
            return type(value) is str and 1 <= len(value) <= 64 and set(value) <= TOKEN_SIGNS
        case "name":
            return type(value) is str and 1 <= len(value) <= 48 and set(value) <= NAME_SIGNS
        case _:
            return type(value) is list and 1 <= len(value) <= 64 and all(is_line(line) for line in value)


def is_line(line: Any) -> bool:
    return (
        type(line) is dict
        and set(line) == {"bet", "cents"}
        and fits(line["bet"], "name")
        and fits(line["cents"], "number")
    )


def is_well_formed(payload: bytes) -> bool:
    if len(payload) > 8_192:
        return False
    try:
        document = json.loads(payload.decode("utf-8"), object_pairs_hook=object_of)
    except (ValueError, RecursionError):
        return False
    if type(document) is not dict or type(document.get("do")) is not str or document["do"] not in FIELDS:
        return False
    fields = {**FIELDS[document["do"]], "id": "token"}
    return set(document) == {*fields, "do"} and all(fits(document[name], kind) for name, kind in fields.items())


ODD_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        True,
        False,
        None,
        0,
        -1,
        1.0,
        1e300,
        2**53,
        2**53 - 1,
        "1",
        "",
        "é",
        'a"b',
        "\\",
        [],
        {},
        [[]],
        float("nan"),
        10**40,
    ]
) | st.recursive(st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
TOKENS = st.text(st.sampled_from(sorted(TOKEN_SIGNS)), min_size=1, max_size=64)
NAMES = st.text(st.sampled_from(sorted(NAME_SIGNS)), min_size=1, max_size=48)
NUMBERS = st.integers(1, 2**53 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": NUMBERS,
    "ten": st.integers(1, 10),
    "token": TOKENS,
    "name": NAMES,
    "stakes": st.lists(st.fixed_dictionaries({"bet": NAMES, "cents": NUMBERS}), min_size=1, max_size=5),
}


@st.composite
def good_messages(draw: st.DrawFn) -> dict[str, Any]:
    verb = draw(st.sampled_from(sorted(FIELDS)))
    fields = {name: draw(VALUES[kind]) for name, kind in FIELDS[verb].items()}
    return {"id": draw(TOKENS), "do": verb, **fields}


@st.composite
def nearly_good_payloads(draw: st.DrawFn) -> bytes:
    """A good message with one thing done to it."""
    message = draw(good_messages())
    name = draw(st.sampled_from(sorted(message)))
    match draw(st.sampled_from(["as it is", "gone", "odd", "stranger", "twice", "line", "cut", "byte", "spaces"])):
        case "gone":
            del message[name]
        case "odd":
            message[name] = draw(ODD_VALUES)
        case "stranger":
            message[draw(st.text(max_size=5))] = draw(ODD_VALUES)
        case "line" if "stakes" in message:
            message["stakes"][-1][draw(st.sampled_from(["bet", "cents", "x"]))] = draw(ODD_VALUES)
        case "twice":
            again = json.dumps({name: draw(st.just(message[name]) | ODD_VALUES)})
            return f"{json.dumps(message)[:-1]},{again[1:]}".encode()
        case "cut":
            text = json.dumps(message).encode()
            return text[: draw(st.integers(0, len(text)))]
        case "byte":
            text = json.dumps(message).encode()
            at = draw(st.integers(0, len(text)))
            return text[:at] + draw(st.binary(min_size=1, max_size=2)) + text[at + draw(st.integers(0, 1)) :]
        case "spaces":
            return json.dumps(message, indent=draw(st.integers(0, 3))).encode()
    return json.dumps(message, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


@given(nearly_good_payloads())
@settings(max_examples=600)
def test_message_nearly_good_is_taken_exactly_when_the_protocol_says_so(payload: bytes) -> None:
    if not is_well_formed(payload):
        with pytest.raises(WireError) as caught:
            decode_post_message(payload)
        assert "n'est pas permise" not in caught.value.french, "each thing that can be wrong has its own sentence"
        return
    message = decode_post_message(payload)
    assert TypeAdapter(dict[str, Any]).dump_python(vars(message)) == json.loads(payload)


# ── Answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leaf(kind: str, data: dict[str, Any]) -> bytes:
    return json.dumps({"boot": "9f1c", "data": data, "id": "412", "type": kind}, ensure_ascii=False).encode()


def test_answer_of_a_certified_entry_carries_its_index_kind_and_data() -> None:
    data = {"post": 3, "request": "s1", "bet": "carré", "cents": 200}
    reply = json.loads(certified_reply({"id": "s1"}, leaf("fr.table.stakes.placed.v1", data)))
    assert reply == {"id": "s1", "ok": True, "index": 412, "kind": "fr.table.stakes.placed.v1", "data": data}


def test_answer_leaves_out_the_input_that_the_entry_keeps_for_replay() -> None:
    first = leaf("fr.table.player.sat.v1", {"post": 3, "input": {"kind": "Sit", "player": "d1"}})
    later = leaf("fr.table.player.sat.v1", {"post": 3, "input_at": 411})
    assert [json.loads(certified_reply({}, entry))["data"] for entry in (first, later)] == [{"post": 3}, {"post": 3}]


@pytest.mark.parametrize("version", ["v1", "v12"])
def test_answer_of_a_certified_refusal_of_any_version_carries_its_reason_as_code(version: str) -> None:
    data = {"post": 3, "request": "s1", "reason": "E-STAKE-LATE"}
    reply = json.loads(certified_reply({"id": "s1"}, leaf(f"fr.table.post.request.refused.{version}", data)))
    assert (reply["ok"], reply["code"], reply["index"], reply["data"]) == (False, "E-STAKE-LATE", 412, data)


def test_answer_of_a_kind_that_only_resembles_a_refusal_is_no_refusal() -> None:
    assert json.loads(certified_reply({}, leaf("fr.table.refused.stakes.v1", {})))["ok"] is True


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("fr.table.post.request.refused.v1", True),
        ("fr.table.order.refused.v12", True),
        ("fr.table.refused.stakes.v1", False),
        ("fr.table.stakes.placed.v1", False),
    ],
)
def test_kind_is_a_refusal_exactly_when_it_ends_so(kind: str, refused: bool) -> None:
    assert is_refusal(kind) is refused
