"""Facts: each has a kind of its own that says country, domain, subject, what happened, and version."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass

from games.rules import Fact
from tests.house.house_rules import FACT_KIND
from tests.house.source_tree import product_modules


def _below(base: type[Fact]) -> Iterator[type[Fact]]:
    for child in base.__subclasses__():
        yield child
        yield from _below(child)


def facts() -> list[type[Fact]]:
    """Every fact of the product that has a kind (slots make a dataclass anew: its unslotted draft is left out)."""
    for module in product_modules():
        importlib.import_module(module)
    return [
        fact
        for fact in _below(Fact)
        if "KIND" in vars(fact) and getattr(sys.modules[fact.__module__], fact.__name__, None) is fact
    ]


def test_kind_of_every_fact_follows_the_pattern() -> None:
    assert facts()
    assert [fact.KIND for fact in facts() if not FACT_KIND.fullmatch(fact.KIND)] == []


def test_kind_of_every_fact_is_its_own() -> None:
    kinds = sorted(fact.KIND for fact in facts())
    assert kinds == sorted(set(kinds))


def test_fact_without_descendants_has_a_kind() -> None:
    named = set(facts())
    leaves = [fact for fact in _below(Fact) if fact.__module__.split(".")[0] in {"games", "drivers", "controller"}]
    living = [fact for fact in leaves if getattr(sys.modules[fact.__module__], fact.__name__, None) is fact]
    assert [fact.__name__ for fact in living if fact not in named and not list(_below(fact))] == []


def test_fact_is_frozen_slotted_and_explained() -> None:
    careless = [
        fact.__name__
        for fact in facts()
        if not (is_dataclass(fact) and fact.__dataclass_params__.frozen and "__slots__" in vars(fact) and fact.__doc__)
    ]
    assert careless == []
