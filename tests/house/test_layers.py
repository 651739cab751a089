"""Layers: controller, then drivers, then games; and each hardware library behind one door."""

import importlib
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.house.house_rules import libraries, vague_names
from tests.house.source_tree import ROOT, name, product_files, product_modules, tree_of

BEHIND_ONE_DOOR = ("aiomqtt", "gpiod", "gpiozero", "iotcore", "serial", "smbus2")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_import_contracts_of_the_product_are_kept() -> None:
    answer = lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout


def test_import_contracts_shown_a_game_that_imports_a_driver_are_broken(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for package in ("games", "drivers", "controller"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    assert lint_imports(tmp_path).returncode == 0
    (tmp_path / "games" / "roulette.py").write_text("import drivers\n", encoding="utf-8")
    answer = lint_imports(tmp_path)
    assert (answer.returncode, "games.roulette -> drivers" in answer.stdout) == (1, True), answer.stdout


@pytest.mark.parametrize("library", BEHIND_ONE_DOOR)
def test_hardware_library_of_the_product_is_imported_in_one_file_at_most(library: str) -> None:
    doors = defaultdict(list)
    for path in product_files():
        for imported in libraries(tree_of(path)):
            doors[imported].append(name(path))
    assert len(doors[library]) <= 1, doors[library]


@pytest.mark.parametrize("module", product_modules())
def test_module_of_the_product_can_be_imported_on_any_machine(module: str) -> None:
    importlib.import_module(module)


def test_modules_of_the_product_have_names_that_say_something() -> None:
    assert [module for module in product_modules() if vague_names(module)] == []
