"""The published JSON Schemas say the same as the code that reads the messages."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.delivery.verbs import VERBS as ORDER_VERBS
from controller.delivery.wire import WireError, decode_post_message
from controller.schemas import DIALECT, NUMBER_BOUND, STAKES_BOUND, VERBS, json_schemas

SCHEMAS = json_schemas()
ANNOTATIONS = {"$schema", "$defs", "title", "description", "discriminator"}


def violates(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Whether ``value`` breaks ``schema``: the keywords of JSON Schema 2020-12 that ours use, and no others."""
    return any(
        _breaks(keyword, wanted, value, schema, root)
        for keyword, wanted in schema.items()
        if keyword not in ANNOTATIONS
    )


def _breaks(keyword: str, wanted: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    number = type(value) is int
    match keyword:
        case "$ref":
            return violates(root["$defs"][wanted.removeprefix("#/$defs/")], value, root)
        case "oneOf":
            return sum(not violates(each, value, root) for each in wanted) != 1
        case "anyOf":
            return all(violates(each, value, root) for each in wanted)
        case "type":
            types = {"string": str, "integer": int, "object": dict, "array": list, "boolean": bool}
            return type(value) is not types[wanted]
        case "const":
            return bool(value != wanted or type(value) is not type(wanted))
        case "pattern":
            return type(value) is str and not re.search(wanted.replace("$", r"\Z"), value)
        case "minimum":
            return number and value < wanted
        case "exclusiveMinimum":
            return number and value <= wanted
        case "maximum":
            return number and value > wanted
        case "minItems":
            return type(value) is list and len(value) < wanted
        case "maxItems":
            return type(value) is list and len(value) > wanted
        case "items":
            return type(value) is list and any(violates(wanted, each, root) for each in value)
        case "required":
            return type(value) is dict and not set(wanted) <= set(value)
        case "properties":
            return type(value) is dict and any(
                violates(wanted[name], each, root) for name, each in value.items() if name in wanted
            )
        case "additionalProperties":
            return wanted is False and type(value) is dict and not set(value) <= set(schema["properties"])
        case _:
            raise AssertionError(f"a keyword that the test does not know: {keyword}")


def published(name: str, value: Any) -> bool:
    """Whether the published schema permits ``value``."""
    return not violates(SCHEMAS[name], value, SCHEMAS[name])


def understood(message: Any) -> bool:
    """Whether the code takes ``message``."""
    try:
        decode_post_message(json.dumps(message).encode())
    except WireError:
        return False
    return True


LINE = {"bet": "plein-17", "cents": 200}
GOOD: dict[str, dict[str, Any]] = {
    "sit": {"player": "C-1042"},
    "stake": {"round": 412, "stakes": [LINE, {"bet": "rouge", "cents": 100}]},
    "announce": {"round": 412, "announcement": "voisins-du-zero", "cents": 50},
    "random": {"round": 412, "cents": 100, "count": 3},
    "take-back": {"round": 412},
    "minimum": {"cents": 100},
    "payout": {},
    "away": {},
    "back": {},
    "hello": {},
}
ODD: list[Any] = [
    0,
    1,
    -1,
    10,
    11,
    True,
    "",
    "1",
    "a\n",
    "Rouge",
    "x" * 64,
    "x" * 65,
    [],
    {},
    [LINE],
    [{**LINE, "x": 1}],
]
ODD += [NUMBER_BOUND, NUMBER_BOUND + 1, [LINE] * STAKES_BOUND, [LINE] * (STAKES_BOUND + 1), [1], [{"bet": "noir"}]]


@pytest.mark.parametrize("verb", VERBS)
def test_good_request_of_every_verb_is_permitted_and_understood(verb: str) -> None:
    message = {"id": "a1", "do": verb, **GOOD[verb]}
    assert published("post-request", message)
    assert understood(message)


@given(verb=st.sampled_from(VERBS), data=st.data())
@settings(max_examples=400)
def test_request_with_one_odd_field_is_permitted_exactly_when_it_is_understood(verb: str, data: st.DataObject) -> None:
    message = {"id": "a1", "do": verb, **GOOD[verb]}
    name = data.draw(st.sampled_from([*message, "post", "cents"]))
    if data.draw(st.booleans()):
        message.pop(name, None)
    else:
        message[name] = data.draw(st.sampled_from(ODD))
    assert published("post-request", message) == understood(message)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_names_its_dialect_says_what_it_is_for_and_never_permits_null(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$schema"] == DIALECT == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == name
    assert schema["description"].endswith(".")
    assert "null" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("name", "value", "permitted"),
    [
        ("post-reply", {"id": "a", "ok": True, "index": 0, "kind": "fr.x.v1", "data": {}}, True),
        ("post-reply", {"id": "a", "ok": True, "kind": "fr.x.v1", "data": {}}, False),
        ("post-reply", {"id": "a", "ok": True, "data": {"credit": 5}}, True),
        ("post-reply", {"ok": False, "code": "E-POST-JSON", "message": "x", "message_en": "x"}, True),
        ("post-reply", {"ok": True, "code": "E-POST-JSON", "message": "x", "message_en": "x"}, False),
        ("order-challenge-request", {"ask": "challenge", "id": "q"}, True),
        ("order-challenge-request", {"ask": "order", "id": "q"}, False),
        ("order-reply", {"id": "q", "nonce": "5b" * 24, "boot": "9f", "origin": "o", "expires_s": 120}, True),
        ("order-reply", {"id": "q", "nonce": "5b" * 16, "boot": "9f", "origin": "o", "expires_s": 120}, False),
        ("order-arguments", {"post": 3, "cents": 5_000}, True),
        ("order-arguments", {"pocket": "37"}, False),
        ("order-arguments", {"pocket": "00"}, True),
        ("order-arguments", {"reason": " x"}, False),
    ],
)
def test_schema_permits_what_the_protocol_says(name: str, value: Any, permitted: bool) -> None:
    assert published(name, value) is permitted


def test_arguments_of_every_order_are_published() -> None:
    definitions = set(SCHEMAS["order-arguments"]["$defs"])
    assert {verb.arguments.__name__ for verb in ORDER_VERBS.values()} == definitions
