"""Packaging: what is written is installed, what is declared is locked, and what is locked was tested."""

import re
import tomllib
from fnmatch import fnmatch
from importlib.metadata import version
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.source_tree import PRODUCT, ROOT, name, product_files, written_files

LOCK_LINE = re.compile(r"(?P<library>[A-Za-z0-9_.-]+)==(?P<version>\S+)(\s+#.*)?")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked() -> dict[str, str]:
    """The version of each library of the lock, by its canonical name."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [LOCK_LINE.fullmatch(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin["library"]): pin["version"] for pin in pins if pin}


def declared() -> list[Requirement]:
    table = project()["project"]
    extras = [line for lines in table["optional-dependencies"].values() for line in lines]
    requirements = [Requirement(line) for line in [*table["dependencies"], *extras]]
    return [requirement for requirement in requirements if requirement.name != table["name"]]


def test_packages_with_modules_are_all_installed() -> None:
    written = {name(path.parent).replace("/", ".") for path in product_files()}
    assert sorted(project()["tool"]["setuptools"]["packages"]) == sorted(written)


def data_files() -> list[str]:
    """Everything in the product's folders that is no Python module."""
    return [name(path) for path in written_files() if name(path).split("/")[0] in PRODUCT and path.suffix != ".py"]


def is_packaged(file: str, declared_data: dict[str, list[str]]) -> bool:
    """Whether a pattern of one of the packages above a file takes it along."""
    return any(
        file.startswith(f"{folder}/") and fnmatch(file.removeprefix(f"{folder}/"), pattern)
        for package, patterns in declared_data.items()
        for folder in [package.replace(".", "/")]
        for pattern in patterns
    )


def test_data_files_of_the_product_are_all_installed() -> None:
    declared_data = project()["tool"]["setuptools"]["package-data"]
    assert data_files()
    assert [file for file in data_files() if not is_packaged(file, declared_data)] == []


def test_data_file_that_no_package_declares_is_noticed() -> None:
    assert is_packaged("controller/advice/posts.toml", {"controller": ["advice/*.toml"]})
    assert not is_packaged("controller/advice/posts.toml", {"controller": ["py.typed"], "games": ["*"]})


def test_lock_is_pins_and_comments_and_nothing_else() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#") and not LOCK_LINE.fullmatch(line)] == []
    assert len(locked()) == sum(1 for line in lines if line and not line.startswith("#"))


def test_lock_holds_every_declared_library_within_its_bounds() -> None:
    outside = [
        str(requirement)
        for requirement in declared()
        if not requirement.specifier.contains(locked().get(canonicalize_name(requirement.name), "0"))
    ]
    assert outside == []


def test_declared_libraries_have_a_lower_bound() -> None:
    unbounded = [
        str(requirement) for requirement in declared() if not any(one.operator == ">=" for one in requirement.specifier)
    ]
    assert unbounded == []


def test_lock_is_what_these_tests_run_on() -> None:
    tested = {library: version(library) for library in locked() if library != "setuptools"}
    assert {library: pin for library, pin in locked().items() if library in tested and tested[library] != pin} == {}
