"""The story of a table: each kind of fact has a sentence of its own, in both languages."""

import typing
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from itertools import pairwise
from typing import Any, NewType

import click
import pytest

from controller.cli.language import CHOSEN
from controller.cli.output import cut, money, percent, width_of
from controller.cli.story import story
from controller.cli.words import colour_of, spoken
from controller.codec import FACTS
from games.roulette.layout import Wheel, pockets
from games.rules import Fact


def value_of(hint: Any) -> Any:
    """Some value of a field's type."""
    if isinstance(hint, NewType):
        return value_of(hint.__supertype__)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if type(None) in arguments:
        return value_of(next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        return (value_of(arguments[0]),)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    simple: Mapping[Any, Any] = {int: 17, str: "17", bool: True}
    return simple[hint] if hint in simple else made(hint)


def made(cls: Any) -> Any:
    """An instance with some value in each field."""
    hints = typing.get_type_hints(cls)
    return cls(**{field.name: value_of(hints[field.name]) for field in fields(cls)})


def told(fact: Fact, language: str) -> str:
    with click.Context(click.Command("test")) as context:
        context.meta[CHOSEN] = language
        return click.unstyle(story(fact))


@pytest.mark.parametrize("kind", sorted(FACTS))
def test_story_of_every_kind_of_fact_is_one_line_in_each_language(kind: str) -> None:
    fact = made(FACTS[kind])
    french, english = told(fact, "fr"), told(fact, "en")
    assert kind not in (french, english)
    assert "\n" not in french + english
    assert french != english or "incident" in french.lower()


@pytest.mark.law("51")
@pytest.mark.parametrize("wheel", list(Wheel))
def test_colours_of_the_wheel_alternate_and_zeros_have_neither(wheel: Wheel) -> None:
    colours = [colour_of(pocket) for pocket in pockets(wheel)]
    assert colours.count("red") == colours.count("black") == 18
    assert {pocket for pocket in pockets(wheel) if colour_of(pocket) == "green"} <= {"0", "00"}
    numbers = [colour for colour in colours if colour != "green"]
    assert colours.count("green") == wheel - 36
    if wheel is Wheel.SINGLE_ZERO:
        assert all(one != other for one, other in pairwise(numbers))


def test_number_is_announced_with_its_colour() -> None:
    assert click.unstyle(spoken("17")).strip() == "17 black"
    assert click.unstyle(spoken("00")).strip() == "00 green"


@pytest.mark.parametrize(
    ("cents", "french", "english"),
    [
        (0, "0,00\u202f€", "€0.00"),
        (5, "0,05\u202f€", "€0.05"),
        (-13_450, "-134,50\u202f€", "-€134.50"),
        (123_456_789, "1\u202f234\u202f567,89\u202f€", "€1,234,567.89"),
    ],
)
def test_money_is_written_as_each_language_writes_it(cents: int, french: str, english: str) -> None:
    for language, expected in (("fr", french), ("en", english)):
        with click.Context(click.Command("test")) as context:
            context.meta[CHOSEN] = language
            assert money(cents) == expected


def test_share_is_given_to_the_nearest_hundredth() -> None:
    assert [percent(36, 37), percent(1, 3), percent(2, 3), percent(0, 5), percent(1, 0)] == [
        "97.30%",
        "33.33%",
        "66.67%",
        "0.00%",
        "–",
    ]


def test_line_that_is_cut_keeps_its_colours_and_its_width() -> None:
    line = click.style("rouge", fg="red") + " et " + click.style("noir", fg="black")
    assert cut(line, 80) == line
    for width in range(1, width_of(line)):
        short = cut(line, width)
        assert width_of(short) == width
        assert click.unstyle(short) == click.unstyle(line)[: width - 1] + "…"
