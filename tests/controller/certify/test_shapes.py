"""The quick proof of canonical form agrees with RFC 8785 for every document, whatever was learned before."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify import shapes as shapes_module
from controller.certify.faults import LeafFault
from controller.certify.leaf import DEPTH_BOUND, INTEGER_BOUND, canonical, check_data
from controller.certify.shapes import SHAPES_BOUND, Shapes

KIND = b"fr.a.b.v1"
NAMES = st.text(st.characters(max_codepoint=127), max_size=4)
VALUES = st.recursive(
    st.booleans() | st.integers(-INTEGER_BOUND, INTEGER_BOUND) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)


def refused(shapes: Shapes, data: bytes) -> bool:
    try:
        shapes.check(KIND, data)
    except (LeafFault, UnicodeDecodeError):
        return True
    return False


def refused_at_length(data: bytes) -> bool:
    try:
        check_data([data.decode()])
    except (LeafFault, UnicodeDecodeError):
        return True
    return False


def other(value: Any, draw: Any) -> Any:
    """A value of the same structure: other scalars, and arrays of another length."""
    if isinstance(value, bool):
        return draw(st.booleans())
    if isinstance(value, int):
        return draw(st.integers(-INTEGER_BOUND, INTEGER_BOUND))
    if isinstance(value, str):
        return draw(st.text(max_size=8))
    if isinstance(value, dict):
        return {name: other(member, draw) for name, member in value.items()}
    return [other(member, draw) for member in value * draw(st.integers(0, 3))]


@given(st.lists(OBJECTS, max_size=3), st.data())
def test_canonical_documents_of_learned_and_of_new_shapes_are_accepted(
    examples: list[Any], data: st.DataObject
) -> None:
    shapes = Shapes()
    for example in examples:
        for _ in range(3):
            document = rfc8785.dumps(other(example, data.draw))
            shapes.check(KIND, document)  # raises when it refuses


@settings(max_examples=300)
@given(OBJECTS, st.data())
def test_document_that_was_mutated_in_any_way_is_judged_as_the_long_proof_judges_it(
    example: Any, data: st.DataObject
) -> None:
    shapes = Shapes()
    good = rfc8785.dumps(example)
    shapes.check(KIND, good)
    shapes.check(KIND, good)
    mutant = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(mutant)))
        match data.draw(st.integers(0, 3)):
            case 0:
                mutant[at:at] = data.draw(st.sampled_from([b" ", b"0", b"-", b"\\", b'"', b",", b"\x00", b".0", b"e1"]))
            case 1:
                del mutant[at : at + data.draw(st.integers(1, 4))]
            case 2:
                mutant[at:at] = mutant[data.draw(st.integers(0, len(mutant))) :][: data.draw(st.integers(1, 9))]
            case _:
                mutant[at : at + 1] = data.draw(st.binary(min_size=1, max_size=2))
    assert refused(shapes, bytes(mutant)) is refused_at_length(bytes(mutant)), bytes(mutant)
    if not refused(shapes, bytes(mutant)):
        assert rfc8785.dumps(json.loads(bytes(mutant))) == bytes(mutant)


EXAMPLE = canonical({"a": 1, "b": ["x", "y"], "c": {"d": True, "e": "text"}, "f": [{"g": 1}, {"g": 2}]}).encode()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b'"a":1', b'"a":01'),
        (b'"a":1', b'"a":-0'),
        (b'"a":1', b'"a":1.0'),
        (b'"a":1', b'"a":1e0'),
        (b'"a":1', b'"a":+1'),
        (b'"a":1', b'"a": 1'),
        (b'"a":1', b'"a":null'),
        (b'"a":1', b'"a":9007199254740992'),
        (b'"a":1', b'"a":1,"a":1'),
        (b'"a":1,"b":["x","y"]', b'"b":["x","y"],"a":1'),
        (b'["x","y"]', b'["x",]'),
        (b'["x","y"]', b'["x" ,"y"]'),
        (b'["x","y"]', b'["\\u0078","y"]'),
        (b'["x","y"]', b'["\\/","y"]'),
        (b'["x","y"]', b'["\\ud800","y"]'),
        (b'["x","y"]', b'["\xed\xa0\x80","y"]'),
        (b'["x","y"]', b'["\xc0\x80","y"]'),
        (b'["x","y"]', b'["\xf4\x90\x80\x80","y"]'),
        (b'["x","y"]', b'["\x1f","y"]'),
        (b'["x","y"]', b'["\\u000a","y"]'),
        (b"true", b"True"),
        (b'{"g":2}', b'{"g":2,"h":1.5}'),
        (b'{"g":2}', b'{"g":2}}'),
    ],
)
def test_what_is_not_canonical_is_refused_though_its_shape_was_learned(was: bytes, now: bytes) -> None:
    shapes = Shapes()
    shapes.check(KIND, EXAMPLE)
    mutant = EXAMPLE.replace(was, now, 1)
    assert mutant != EXAMPLE
    assert refused(shapes, mutant)
    assert refused_at_length(mutant)


@pytest.mark.parametrize(
    "document",
    [
        '{"a":"é €𝄞\x7f","b":0}',
        '{"a":"line\\nend\\t\\"\\\\\\b\\f\\r","b":-5}',
        '{"a":"\\u001f","b":9007199254740991}',
        '{"a":"","b":[]}',
        "{}",
    ],
)
def test_documents_with_all_that_text_may_hold_are_accepted_twice(document: str) -> None:
    shapes = Shapes()
    for _ in range(2):
        shapes.check(KIND, document.encode())
    assert rfc8785.dumps(json.loads(document)) == document.encode()


def test_learned_shape_is_proved_without_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    proved: list[str] = []
    monkeypatch.setattr(shapes_module, "check_data", proved.extend)
    shapes = Shapes()
    for count in range(5):
        shapes.check(KIND, canonical({"cents": 5 * count, "on": ["plein-17"] * count, "who": "é" * count}).encode())
    assert len(proved) == 2  # the empty array has a shape of its own
    shapes.check(b"fr.other.kind.v1", canonical({"cents": 0, "on": [], "who": ""}).encode())
    assert len(proved) == 3


def test_shapes_are_learned_up_to_their_bound_and_the_rest_is_proved_at_length(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = Shapes()
    documents = [canonical({f"name-{at}": at}).encode() for at in range(SHAPES_BOUND + 10)]
    for document in documents:
        shapes.check(KIND, document)
    proved: list[str] = []
    monkeypatch.setattr(shapes_module, "check_data", proved.extend)
    for document in documents:
        shapes.check(KIND, document)
    assert len(proved) == 10
    monkeypatch.undo()
    assert refused(shapes, b'{"name-999":1.5}')


def test_document_that_is_nested_too_deeply_is_refused_whatever_was_learned() -> None:
    shapes = Shapes()
    deepest: Any = 1
    for _ in range(DEPTH_BOUND - 1):
        deepest = [deepest]
    shapes.check(KIND, canonical({"a": deepest}).encode())
    assert refused(shapes, b'{"a":' + b"[" * DEPTH_BOUND + b"1" + b"]" * DEPTH_BOUND + b"}")
