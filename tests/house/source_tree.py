"""The project as files: what is product, what is test, and what a person wrote at all."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("games", "drivers", "controller")


def name(path: Path) -> str:
    """A file's path from the top of the project, as people write it."""
    return path.relative_to(ROOT).as_posix()


def product_files() -> list[Path]:
    """Every Python file that runs on a table."""
    return [path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py"))]


def product_modules() -> list[str]:
    """The dotted name of every product module."""
    return [name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in product_files()]


def files_of_tests() -> list[Path]:
    """Every Python file under tests."""
    return sorted((ROOT / "tests").rglob("*.py"))


def _ignored() -> list[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    return [".git", *(line.strip("/") for line in lines)]


def _walk(folder: Path, ignored: list[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if any(fnmatch(path.name, pattern) for pattern in ignored):
            continue
        if path.is_dir():
            yield from _walk(path, ignored)
        else:
            yield path


def written_files() -> list[Path]:
    """Every text file that people wrote: all but what .gitignore names."""
    return [path for path in _walk(ROOT, _ignored()) if b"\0" not in path.read_bytes()[:1_024]]


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
