"""The canonical form, against ``rfc8785``; leaves as CloudEvents; and everything that is not a leaf."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.faults import LeafFault
from controller.certify.leaf import (
    DEPTH_BOUND,
    FIRST_PREVIOUS,
    INTEGER_BOUND,
    LEAF_BOUND,
    Record,
    Stamp,
    build_leaf,
    build_leaves,
    canonical,
    check_data,
    leaf_hash,
    parse_leaf,
    time_text,
)

STAMP = Stamp(
    source="casino.example/table/t07/1",
    boot="9f1c0b7e52d3a844",
    mono_ms=123_456_789,
    wall_ms=1_796_073_303_123,
    quality="ntp",
)
RECORD = Record("fr.table.bet.placed.v1", '{"cents":250,"on":"straight:17"}', "2026-11-30-1")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(max_codepoint=127), max_size=8)
SCALARS = st.booleans() | st.integers(-INTEGER_BOUND, INTEGER_BOUND) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


@given(VALUES)
def test_canonical_form_of_any_value_is_that_of_rfc8785(value: Any) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(DOCUMENTS)
def test_canonical_data_of_any_document_passes_its_own_check(document: dict[str, Any]) -> None:
    check_data([canonical(document)])


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (1.5, "value is a float"),
        ({"a": [1, {"b": None}]}, r"value\.a\[1\]\.b is a NoneType"),
        ({"é": 1}, "has the name 'é'"),
        ({1: 1}, "has the name 1"),
        (2**53, "integers must stay within"),
        ([-(2**53)], r"value\[0\] is -9007199254740992"),
        ("half \ud800", "half a surrogate pair"),
        (b"bytes", "value is a bytes"),
    ],
)
def test_canonical_form_of_what_has_no_place_is_refused(value: Any, complaint: str) -> None:
    with pytest.raises(LeafFault, match=complaint) as caught:
        canonical(value)
    assert caught.value.code == "E-LEAF-VALUE"


def test_canonical_form_at_each_bound_is_given_and_one_beyond_is_refused() -> None:
    nested: Any = 1
    for _ in range(DEPTH_BOUND):
        nested = [nested]
    assert canonical([INTEGER_BOUND, -INTEGER_BOUND]) == "[9007199254740991,-9007199254740991]"
    assert canonical(nested) == "[" * DEPTH_BOUND + "1" + "]" * DEPTH_BOUND
    with pytest.raises(LeafFault, match="nested deeper than 16"):
        canonical([nested])


def test_data_at_the_bound_of_depth_is_taken_however_wide_it_is_and_one_level_more_is_refused() -> None:
    lists = DEPTH_BOUND - 1
    wide = '{"stakes":[' + ",".join(['{"bet":"rouge","cents":100}'] * 4 * DEPTH_BOUND) + "]}"
    deepest = '{"a":' + "[" * lists + "]" * lists + "}"
    check_data([wide, deepest, wide])
    with pytest.raises(LeafFault, match="nested deeper than 16"):
        check_data([wide, deepest.replace("[]", "[{}]"), wide])


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{"b":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a":1.5}',
        '{"a":1e+16}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":null}',
        '{"a":01}',
        '{"a":-0}',
        '{"a":9007199254740992}',
        '{"a":"\\u0041"}',
        '{"a":"\\/"}',
        '{"é":1}',
        '{"a":' + "[" * 17 + "]" * 17 + "}",
        '{"a":' + "[" * 5_000 + "]" * 5_000 + "}",
        "[1]",
        "1",
        "",
        '{"a":1},{"b":2}',
        '{"a":1',
        '{"a":"\ud800"}',
    ],
)
def test_data_in_any_other_spelling_is_refused_wherever_it_stands(text: str) -> None:
    good = '{"a":1}'
    for texts in ([text], [good, text], [text, good]):
        with pytest.raises(LeafFault) as caught:
            check_data(texts)
        assert caught.value.code in {"E-LEAF-DATA", "E-LEAF-VALUE"}


def test_data_in_two_halves_that_fit_each_other_is_refused() -> None:
    with pytest.raises(LeafFault, match="must be one JSON object"):
        check_data(['{"a":1},{"b":[1', "2]}"])


def test_leaf_of_a_known_record_is_this_golden_text() -> None:
    assert build_leaf(412, bytes(range(32)), RECORD, STAMP).decode() == (
        '{"boot":"9f1c0b7e52d3a844","data":{"cents":250,"on":"straight:17"},"id":"412","mono":"123456789",'
        '"prev":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","seance":"2026-11-30-1",'
        '"source":"casino.example/table/t07/1","specversion":"1.0","time":"2026-11-30T21:15:03.123Z","tq":"ntp",'
        '"type":"fr.table.bet.placed.v1"}'
    )


@given(
    DOCUMENTS,
    st.none() | st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    st.integers(0, 10**18),
    st.binary(min_size=32, max_size=32),
)
def test_leaf_of_any_record_is_canonical_json_and_reads_back(
    document: dict[str, Any], seance: str | None, index: int, previous: bytes
) -> None:
    leaf = build_leaf(index, previous, Record("fr.a.b.v1", canonical(document), seance), STAMP)
    assert rfc8785.dumps(json.loads(leaf)) == leaf
    read = parse_leaf(leaf)
    assert (read.index, read.previous, read.seance, read.data) == (index, previous, seance, canonical(document))
    assert (read.source, read.boot, read.mono_ms, read.quality) == (STAMP.source, STAMP.boot, STAMP.mono_ms, "ntp")


def test_leaves_of_one_commit_are_numbered_and_chained() -> None:
    leaves, hashes = build_leaves(7, FIRST_PREVIOUS, [RECORD, RECORD, RECORD], STAMP)
    read = [parse_leaf(leaf) for leaf in leaves]
    assert [leaf.index for leaf in read] == [7, 8, 9]
    assert [leaf.previous for leaf in read] == [bytes(32), *hashes[:2]]
    assert hashes == [sha256(b"\x00" + leaf).digest() for leaf in leaves] == list(map(leaf_hash, leaves))


def test_leaf_at_the_bound_is_built_and_one_byte_longer_is_refused() -> None:
    def sized(length: int) -> Record:
        return Record("fr.a.b.v1", canonical({"a": "x" * length}), None)

    spare = LEAF_BOUND - len(build_leaf(0, FIRST_PREVIOUS, sized(0), STAMP))
    full = build_leaf(0, FIRST_PREVIOUS, sized(spare), STAMP)
    assert len(full) == LEAF_BOUND
    assert parse_leaf(full).index == 0
    with pytest.raises(LeafFault, match="8193 bytes") as caught:
        build_leaf(0, FIRST_PREVIOUS, sized(spare + 1), STAMP)
    assert caught.value.code == "E-LEAF-LONG"
    with pytest.raises(LeafFault, match="8193 bytes"):
        parse_leaf(full.replace(b"xx", b"xxx", 1))


@pytest.mark.parametrize(
    ("record", "stamp"),
    [
        (Record("Fr.A.v1", "{}", None), {}),
        (Record('fr.a"b.v1', "{}", None), {}),
        (Record("kind", "{}", None), {}),
        (Record("fr.a.v1", "{}", ""), {}),
        (Record("fr.a.v1", "{}", 'x"y'), {}),
        (Record("fr.a.v1", "{}", "séance"), {}),
        (Record("fr.a.v1", "{}", "s" * 65), {}),
        (RECORD, {"source": "casino"}),
        (RECORD, {"source": 'casino/"'}),
        (RECORD, {"boot": "short"}),
        (RECORD, {"quality": "gps"}),
        (RECORD, {"mono_ms": -1}),
        (RECORD, {"wall_ms": 10**18}),
    ],
)
def test_leaf_with_a_bad_field_is_refused(record: Record, stamp: dict[str, Any]) -> None:
    fields = {name: getattr(STAMP, name) for name in ("source", "boot", "mono_ms", "wall_ms", "quality")}
    with pytest.raises(LeafFault) as caught:
        build_leaf(0, FIRST_PREVIOUS, record, Stamp(**{**fields, **stamp}))
    assert caught.value.code == "E-LEAF-FORM"


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_time_text_of_any_instant_reads_back_to_the_millisecond(wall_ms: int) -> None:
    text = time_text(wall_ms)
    read = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    assert (read.days * 86_400 + read.seconds) * 1_000 + read.microseconds // 1_000 == wall_ms
    assert len(text) == 24


def test_every_byte_of_a_leaf_when_flipped_gives_another_leaf_or_none() -> None:
    leaf = build_leaf(412, bytes(range(32)), RECORD, STAMP)
    original = parse_leaf(leaf)
    for at in range(len(leaf)):
        for bit in (1, 4, 32, 128):
            altered = bytearray(leaf)
            altered[at] ^= bit
            try:
                read = parse_leaf(bytes(altered))
            except LeafFault:
                continue
            assert read != original
            assert rfc8785.dumps(json.loads(bytes(altered))) == bytes(altered)


@pytest.mark.parametrize(
    "change",
    [
        (b'"id":"412"', b'"id":"0412"'),
        (b'"id":"412"', b'"id":412'),
        (b'"specversion":"1.0"', b'"specversion":"1.1"'),
        (b"2026-11-30T21", b"2026-13-30T21"),
        (b'"boot"', b' "boot"'),
        (b',"tq":"ntp"', b""),
        (b'"type"', b'"x":1,"type"'),
        (b'GxwdHh8="', b'GxwdHh9="'),
    ],
)
def test_leaf_in_a_form_that_is_only_nearly_right_is_refused(change: tuple[bytes, bytes]) -> None:
    leaf = build_leaf(412, bytes(range(32)), RECORD, STAMP)
    altered = leaf.replace(*change)
    assert altered != leaf
    with pytest.raises(LeafFault):
        parse_leaf(altered)
