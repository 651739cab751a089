"""The house rules over the whole product: time and chance are inputs, money is exact, errors are named."""

import ast
from collections.abc import Callable

from tests.house import house_rules as rule
from tests.house.source_tree import name, product_files, tree_of

CLOCKS = {
    "drivers/clock.py": "the one clock of the program",
    "controller/delivery/broker.py": "a broken connection is tried again by the loop's own time",
    "controller/delivery/bus.py": "a message that waits in the event loop expires by the loop's own time",
    "controller/rehearsal/": "the event loop of a simulation has a time of its own, and this is where it is made",
}
CHANCE = {
    "controller/entropy.py": "the kernel's generator",
    "controller/app.py": "the composition root names the boot and hands out the sources",
    "controller/rehearsal/": "a simulation is drawn from its seed",
    "drivers/twin/": "twins are drawn from a seed",
}
PRINTS = ("controller/cli/",)
LAST_HANDLER = {"controller/app.py"}

LINES_AT_MOST = 500
"""A file longer than this hides something: ask what, and give it a room of its own."""


def findings(rule_of_the_house: Callable[[ast.Module], list[str]], *, outside: tuple[str, ...] = ()) -> list[str]:
    """What breaks a rule, as ``file:line: what``, in product files whose name begins with none of ``outside``."""
    return [
        f"{name(path)}:{found}"
        for path in product_files()
        if not name(path).startswith(outside)
        for found in rule_of_the_house(tree_of(path))
    ]


def test_clocks_are_read_only_where_it_is_listed_why() -> None:
    assert findings(rule.clock_readings, outside=tuple(CLOCKS)) == []


def test_chance_is_drawn_only_where_it_is_listed_why() -> None:
    assert findings(rule.chance, outside=tuple(CHANCE)) == []


def test_places_listed_for_clocks_and_chance_still_need_it() -> None:
    readers = {name(path) for path in product_files() if rule.clock_readings(tree_of(path))}
    drawers = {name(path) for path in product_files() if rule.chance(tree_of(path))}
    assert [place for place in CLOCKS if not any(reader.startswith(place) for reader in readers)] == []
    assert [place for place in CHANCE if not any(drawer.startswith(place) for drawer in drawers)] == []


def test_games_count_without_floats_divisions_or_roundings() -> None:
    assert findings(rule.inexact_numbers, outside=("drivers/", "controller/")) == []


def test_product_speaks_through_logs_and_commands_and_never_prints() -> None:
    assert findings(rule.prints, outside=PRINTS) == []


def test_errors_are_caught_by_name_below_the_composition_root() -> None:
    assert findings(rule.broad_excepts, outside=tuple(LAST_HANDLER)) == []


def test_files_of_the_product_are_no_longer_than_a_reader_can_hold() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in product_files()}
    assert {path: lines for path, lines in lengths.items() if lines > LINES_AT_MOST} == {}


def test_modules_of_the_product_open_with_a_docstring() -> None:
    trees = {name(path): tree_of(path) for path in product_files()}
    assert [path for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []
