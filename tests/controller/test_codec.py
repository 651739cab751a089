"""Facts, inputs and states as bytes: nothing is lost, nothing is guessed, and nothing published ever changes."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NewType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import codec
from controller.certify.leaf import INTEGER_BOUND, canonical
from controller.codec import CodecError, decode_fact, decode_input, encode_decision, from_plain, to_plain
from games.money import Cents
from games.posts import PlayerPaidOut, PlayerSat, StakesPlaced
from games.roulette.coup import RouletteState
from games.roulette.facts import BettingOpened
from games.rules import Fact, Input
from games.seance import TableStopped
from games.signals import ButtonPressed, CreditPost, Direction, Person, PlaceStakes, Role, Stake
from tests.controller import golden_samples
from tests.controller.golden_samples import plain_input

NUMBERS = st.integers(-INTEGER_BOUND, INTEGER_BOUND)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8)


FEW = settings(max_examples=20)
"""Examples of each kind: there are a hundred kinds."""


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, from the type alone."""
    if isinstance(hint, NewType):
        return values_of(hint.__supertype__)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(st.none() if argument is type(None) else values_of(argument) for argument in arguments)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(values_of(arguments[0]), max_size=3)
    if origin is not None and issubclass(origin, Mapping):
        keys = st.integers(0, 300) if arguments[0] is int else NAMES
        return st.dictionaries(keys, values_of(arguments[1]), max_size=3)
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{one.name: values_of(hints[one.name]) for one in dataclasses.fields(hint)})
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return {bool: st.booleans(), int: NUMBERS, str: TEXTS}[hint]


SIGNAL = ButtonPressed(at_us=1, button="incident")
FACT = TableStopped(boot="9f1c0b7e52d3a844")


def written(plain: Any) -> Any:
    """Through the journal and back."""
    return json.loads(canonical(plain))


def by_name(classes: Mapping[str, type]) -> Any:
    return pytest.mark.parametrize("cls", classes.values(), ids=classes.keys())


# ── There and back ────────────────────────────────────────────────────────────────────────────────────────────────────


@by_name(codec.FACTS)
def test_codec_fact_of_every_kind_is_written_in_the_one_spelling_and_comes_back_as_it_went(cls: type[Fact]) -> None:
    @FEW
    @given(values_of(cls), values_of(cls))
    def comes_back(first: Fact, second: Fact) -> None:
        entries = encode_decision(SIGNAL, (first, second), 7)
        assert entries == [
            (cls.KIND, canonical({**to_plain(first), "input": plain_input(SIGNAL)})),
            (cls.KIND, canonical({**to_plain(second), "input_at": 7})),
        ]
        for fact, (kind, data) in zip((first, second), entries, strict=True):
            again = decode_fact(kind, json.loads(data))
            assert (type(again), again) == (cls, fact)

    comes_back()


@by_name(codec.INPUTS)
def test_codec_input_of_every_kind_is_written_in_the_one_spelling_and_comes_back_as_it_went(cls: type[Input]) -> None:
    @FEW
    @given(values_of(cls))
    def comes_back(signal: Input) -> None:
        ((kind, data),) = encode_decision(signal, (FACT,), 7)
        assert (kind, data) == (FACT.KIND, canonical({**to_plain(FACT), "input": plain_input(signal)}))
        again = decode_input(json.loads(data)["input"])
        assert (type(again), again) == (cls, signal)

    comes_back()


@given(values_of(RouletteState))
def test_codec_state_of_a_table_comes_back_as_it_went(state: RouletteState) -> None:
    assert from_plain(RouletteState, written(to_plain(state))) == state


@given(values_of(PlayerSat), values_of(StakesPlaced), values_of(PlaceStakes), st.integers(0, INTEGER_BOUND))
def test_codec_entries_of_a_decision_hold_the_input_once_and_each_fact_whole(
    sat: PlayerSat, placed: StakesPlaced, signal: PlaceStakes, index: int
) -> None:
    entries = encode_decision(signal, (sat, placed), index)
    first, second = (json.loads(data) for _, data in entries)
    assert [kind for kind, _ in entries] == [PlayerSat.KIND, StakesPlaced.KIND]
    assert decode_input(first["input"]) == signal
    assert "input_at" not in first
    assert (second["input_at"], "input" in second) == (index, False)
    assert (decode_fact(entries[0][0], first), decode_fact(entries[1][0], second)) == (sat, placed)


@pytest.mark.parametrize("cents", [INTEGER_BOUND + 1, -INTEGER_BOUND - 1, 10**30])
def test_codec_number_that_not_every_reader_holds_is_refused_before_it_is_certified(cents: int) -> None:
    signal = CreditPost(at_us=1, by=Person(badge="K", role=Role.CASHIER), post=1, cents=Cents(cents))
    fact = PlayerPaidOut(post=1, request="r", sitting=1, payout=1, cents=Cents(cents))
    with pytest.raises(ValueError, match=str(cents)):
        encode_decision(signal, (fact,), 0)


def test_codec_decision_without_facts_makes_no_entry() -> None:
    assert encode_decision(SIGNAL, (), 7) == []


# ── Names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def below(base: type) -> dict[str, type]:
    """Every class of the games below one, by its full name. A class with slots is made twice: the last one counts."""
    found = {f"{base.__module__}.{base.__qualname__}": base} if base.__module__.startswith("games.") else {}
    for cls in base.__subclasses__():
        found |= below(cls)
    return found


def test_codec_every_kind_of_fact_of_the_games_is_known_under_its_own_name() -> None:
    kinds = [cls.KIND for cls in below(Fact).values() if hasattr(cls, "KIND")]
    assert sorted(kinds) == sorted(codec.FACTS), "two facts share a kind, or one is not known"


def test_codec_every_kind_of_input_of_the_games_is_known_under_its_own_name() -> None:
    names = [cls.__name__ for cls in below(Input).values()]
    assert sorted(names) == sorted(codec.INPUTS), "two inputs share a name, or one is not known"


# ── Strictness ────────────────────────────────────────────────────────────────────────────────────────────────────────

SAT = {"post": 3, "request": "r1", "sitting": 1, "player": "abc"}
PLACED = {
    "post": 3,
    "request": "r2",
    "round": 1,
    "origin": "bets",
    "stakes": [{"bet": "rouge", "cents": 100}],
    "cents": 100,
    "credit": 900,
}


@pytest.mark.parametrize(
    ("kind", "data", "wrong"),
    [
        (PlayerSat.KIND, {**SAT, "name": "Anna"}, "has no field"),
        (PlayerSat.KIND, {name: SAT[name] for name in SAT if name != "player"}, "lacks"),
        (PlayerSat.KIND, {**SAT, "post": "3"}, "'3' is not int"),
        (PlayerSat.KIND, {**SAT, "post": 3.0}, "3.0 is not int"),
        (PlayerSat.KIND, {**SAT, "post": True}, "True is not int"),
        (PlayerSat.KIND, {**SAT, "player": 5}, "5 is not str"),
        (PlayerSat.KIND, {**SAT, "player": None}, "None is not str"),
        (StakesPlaced.KIND, {**PLACED, "stakes": {"rouge": 100}}, "is not a list"),
        (StakesPlaced.KIND, {**PLACED, "stakes": [["rouge", 100]]}, "is not an object of Stake"),
        (StakesPlaced.KIND, {**PLACED, "stakes": [{"bet": "rouge"}]}, "Stake lacks"),
        (StakesPlaced.KIND, {**PLACED, "stakes": [{"bet": "rouge", "cents": 1, "odds": 35}]}, "Stake has no field"),
        (BettingOpened.KIND, {"round": 1, "direction": "left"}, "is not one of Direction"),
        (BettingOpened.KIND, {"round": 1, "direction": ["clockwise"]}, "is not one of Direction"),
        (BettingOpened.KIND, {"round": 1, "direction": None}, "is not one of Direction"),
        ("fr.table.player.sat.v2", SAT, "unknown kind of fact"),
        ("", SAT, "unknown kind of fact"),
    ],
)
def test_codec_fact_that_is_not_exactly_one_of_its_kind_is_refused(kind: str, data: Any, wrong: str) -> None:
    with pytest.raises(CodecError, match=wrong):
        decode_fact(kind, data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "Nothing"},
        {"kind": ["CashOut"]},
        {"kind": "CashOut", "at_us": 1, "post": 1},
        {"kind": "CashOut", "at_us": 1, "post": 1, "request": "r", "cents": 5},
        {"kind": "CashOut", "at_us": "1", "post": 1, "request": "r"},
        [],
        "CashOut",
        None,
    ],
)
def test_codec_input_that_is_not_exactly_one_of_its_kind_is_refused(data: Any) -> None:
    with pytest.raises(CodecError):
        decode_input(data)


@given(st.sampled_from(list(codec.FACTS.items())), st.data())
def test_codec_fact_with_one_value_of_another_type_is_refused(
    kind: tuple[str, type[Fact]], data: st.DataObject
) -> None:
    name, cls = kind
    plain = written(to_plain(data.draw(values_of(cls))))
    if not plain:
        return
    where = data.draw(st.sampled_from(sorted(plain)))
    plain[where] = {str: 5, int: "5", bool: 1, list: {}, dict: []}[type(plain[where])]
    with pytest.raises(CodecError):
        decode_fact(name, plain)


@given(st.sampled_from(list(codec.FACTS.items())), st.data())
def test_codec_whatever_is_fed_is_decoded_or_refused_and_never_anything_else(
    kind: tuple[str, type[Fact]], data: st.DataObject
) -> None:
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
        max_leaves=6,
    )
    name, cls = kind
    keys = [one.name for one in dataclasses.fields(cls)]
    plain = data.draw(st.dictionaries(st.sampled_from([*keys, "x"]), json_values))
    try:
        fact = decode_fact(name, plain)
    except CodecError:
        return
    assert type(fact) is cls


@pytest.mark.parametrize("name", ["x", "", " 1", "01", "+1", "-1", "1_0", "١", "1.0"])
def test_codec_post_number_that_is_not_spelled_as_a_number_is_refused(name: str) -> None:
    plain = to_plain(RouletteState(posts=from_plain(RouletteState, EMPTY).posts))
    plain["posts"]["by_number"] = {name: plain["posts"]["by_number"]["1"]}
    with pytest.raises(CodecError, match="is not a number"):
        from_plain(RouletteState, plain)


EMPTY = {"posts": {"by_number": {"1": {}}}}


def test_codec_field_that_is_none_is_left_out_and_comes_back() -> None:
    opened = BettingOpened(round=1, direction=None)
    assert to_plain(opened) == {"round": 1}
    assert decode_fact(BettingOpened.KIND, {"round": 1}) == opened
    turned = BettingOpened(round=1, direction=Direction.CLOCKWISE)
    assert to_plain(turned) == {"round": 1, "direction": "clockwise"}


def test_codec_values_that_come_back_have_the_types_that_they_had() -> None:
    again = decode_fact(StakesPlaced.KIND, PLACED)
    assert isinstance(again, StakesPlaced)
    assert again.stakes == (Stake(bet="rouge", cents=Cents(100)),)
    assert type(again.stakes) is tuple
    opened = decode_fact(BettingOpened.KIND, {"round": 1, "direction": "clockwise"})
    assert isinstance(opened, BettingOpened)
    assert opened.direction is Direction.CLOCKWISE


# ── What is published ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_codec_every_kind_has_a_golden_file_and_every_golden_file_a_kind() -> None:
    missing = {name for name, _ in golden_samples.texts()} ^ set(golden_samples.kept())
    assert sorted(missing) == [], "run: python -m tests.controller.golden_samples"


@pytest.mark.parametrize("name", sorted(name for name, _ in golden_samples.texts()))
def test_codec_published_kind_is_written_and_read_as_on_the_day_it_was_published(name: str) -> None:
    text = golden_samples.kept()[name]
    assert dict(golden_samples.texts())[name] == text, "a published kind never changes: give what is new a new version"
    decoded = golden_samples.read(name, json.loads(text))
    plain = plain_input(decoded) if isinstance(decoded, Input) else to_plain(decoded)
    assert canonical(plain) == text


# ── The shape of a state ──────────────────────────────────────────────────────────────────────────────────────────────


class Colour(Enum):
    RED = "red"


class ColourWithMore(Enum):
    RED = "red"
    GREEN = "green"


ColourWithMore.__name__ = ColourWithMore.__qualname__ = "Colour"


def state_of(inner: dict[str, Any], outer: dict[str, Any]) -> Any:
    """A state class with a part, of these fields, always under the same names."""
    part = dataclasses.make_dataclass("Part", list(inner.items()), frozen=True)
    parts = types.GenericAlias(dict, (int, part))
    return dataclasses.make_dataclass("State", [*outer.items(), ("parts", parts)], frozen=True)


PLAIN: tuple[dict[str, Any], dict[str, Any]] = ({"cents": int, "colour": Colour}, {"round": int})


def test_codec_shape_of_the_same_fields_is_the_same() -> None:
    assert codec.shape(state_of(*PLAIN)) == codec.shape(state_of(*PLAIN))
    assert codec.shape(RouletteState) == codec.shape(RouletteState)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ({"cents": int, "colour": Colour, "away": bool}, {"round": int}),
        ({"cents": int}, {"round": int}),
        ({"credit": int, "colour": Colour}, {"round": int}),
        ({"cents": str, "colour": Colour}, {"round": int}),
        ({"cents": int, "colour": ColourWithMore}, {"round": int}),
        ({"cents": int, "colour": Colour}, {"round": int | None}),
        ({"cents": int, "colour": Colour}, {"round": int, "name": str}),
    ],
    ids=["field more", "field less", "field renamed", "type changed", "enum grew", "may be absent", "outer field more"],
)
def test_codec_shape_of_a_state_that_changed_anywhere_is_another(inner: dict[str, Any], outer: dict[str, Any]) -> None:
    assert codec.shape(state_of(inner, outer)) != codec.shape(state_of(*PLAIN))


def test_codec_shape_of_a_state_that_holds_itself_is_found() -> None:
    @dataclass(frozen=True)
    class Knot:
        name: str
        below: tuple["Knot", ...] = field(default=())

    globals()["Knot"] = Knot
    assert len(codec.shape(Knot)) == 16
    del globals()["Knot"]
