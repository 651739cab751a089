"""Writes the documents that are made from the code, so that they cannot disagree with it.

    python docs/make_docs.py             write them all
    python docs/make_docs.py --check     write nothing; name those that are out of date, and end with status 1
    python docs/make_docs.py codes facts  write only these

Each page is one function from the code to ``{file: text}``. A page owns its files: in a folder that a page owns, a
file that it no longer makes is removed.
"""

import argparse
import ast
import importlib
import json
import os
import pkgutil
import sys
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from typing import Any, NewType, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

SAME_EVERYWHERE = {"LC_ALL": "C.UTF-8", "LANGUAGE": "en", "NO_COLOR": "1", "COLUMNS": "100"}
"""What would otherwise let a page depend on whose terminal made it."""

Pages = dict[Path, str]

MADE = "<!-- Made by docs/make_docs.py from {source}: change that, then run `make docs`. -->\n\n"


# ── compliance: which test proves which article ───────────────────────────────────────────────────────────────────────


def _articles_of(decorators: list[ast.expr]) -> Iterator[str]:
    """The articles of the ``pytest.mark.law("…")`` among some decorators."""
    for decorator in decorators:
        for node in ast.walk(decorator):
            match node:
                case ast.Call(func=ast.Attribute(attr="law"), args=[ast.Constant(value=str(article))]):
                    yield article
                case _:
                    pass


def _marks_of_module(tree: ast.Module) -> list[str]:
    return [
        article
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for article in _articles_of([node.value])
    ]


def _marked_tests(body: list[ast.stmt], inherited: list[str]) -> Iterator[tuple[str, str]]:
    """Every (article, test name) below ``body``; a class or a module marks all its tests."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _marked_tests(node.body, [*inherited, *_articles_of(node.decorator_list)])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for article in dict.fromkeys([*inherited, *_articles_of(node.decorator_list)]):
                yield article, node.name


def proofs(tests: Path) -> dict[str, list[tuple[str, str]]]:
    """For each article, the tests that prove it, as (file below ``tests``, test name), in order."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for article, test in _marked_tests(tree.body, _marks_of_module(tree)):
            found.setdefault(article, []).append((path.relative_to(tests).as_posix(), test))
    return {article: sorted(found[article]) for article in found}


def article_order(article: str) -> list[int]:
    """Articles in the order of the text: 55-2 before 55-12."""
    return [int(part) for part in article.split(" ")[0].split("-")]


def sentence(test: str) -> str:
    """A test's name, read aloud."""
    return test.removeprefix("test_").replace("_", " ")


def compliance() -> Pages:
    """``compliance.md``: each article of the law, and the tests that prove it."""
    subjects = tomllib.loads((DOCS / "articles.toml").read_text(encoding="utf-8"))["articles"]
    proved = proofs(ROOT / "tests")
    unknown = sorted(set(proved) - set(subjects))
    if unknown:
        raise SystemExit(f"docs/articles.toml lacks the subject of article {', '.join(unknown)}, which a test proves")
    lines = [
        "# The law, article by article\n",
        "Arrêté du 14 mai 2007 relatif à la réglementation des jeux dans les casinos (NOR INTD0754510A). Each line",
        "below an article is a test that fails when the table no longer keeps it. `make test` runs them all.\n",
        "| article | what it rules | tests |",
        "|---|---|---:|",
    ]
    ordered = sorted(subjects, key=article_order)
    lines += [
        f"| [{article}](#article-{article}) | {subjects[article]} | {len(proved.get(article, []))} |"
        for article in ordered
    ]
    for article in ordered:
        lines += [f"\n## Article {article}\n", f"{subjects[article]}.\n"]
        lines += [f"- {sentence(test)} (`tests/{path}`)" for path, test in proved.get(article, [])] or ["- no test"]
    return {DOCS / "compliance.md": MADE.format(source="the marks of the tests") + "\n".join(lines) + "\n"}


# ── codes: the catalogue ──────────────────────────────────────────────────────────────────────────────────────────────


def codes() -> Pages:
    """``codes.md``: every code, in French and in English."""
    from controller.faults import catalogue

    lines = [
        "# Codes\n",
        "What `tablectl explain CODE` says, for every code that a person may meet at a table.\n",
    ]
    for code, entry in catalogue().items():
        ends = "" if entry.exit is None else f" A command that meets it ends with status {entry.exit}."
        lines += [
            f"## {code}\n",
            f"**{entry.title_fr}.** {entry.means_fr} *À faire :* {entry.do_fr}\n",
            f"**{entry.title_en}.** {entry.means_en} *What to do:* {entry.do_en}{ends}\n",
        ]
    return {DOCS / "codes.md": MADE.format(source="controller/advice") + "\n".join(lines)}


# ── commands: what can be typed ───────────────────────────────────────────────────────────────────────────────────────


def _help_of(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """(full name, help text) of a click command and of all below it."""
    import click

    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for child in sorted(command.list_commands(context)):
            below = command.get_command(context, child)
            if below is not None and not below.hidden:
                yield from _help_of(below, child, context)


def commands() -> Pages:
    """``commands.md``: the help text of every command."""
    from controller.cli import main

    lines = ["# Commands\n", "What `tablectl … --help` says.\n"]
    for name, text in _help_of(main, "tablectl", None):
        lines += [f"## {name}\n", "```text", text, "```\n"]
    return {DOCS / "commands.md": MADE.format(source="controller/cli") + "\n".join(lines)}


# ── facts: what the journal holds ─────────────────────────────────────────────────────────────────────────────────────


def type_name(kind: Any) -> str:
    """A field's type as a reader of the journal sees it."""
    if isinstance(kind, NewType):
        return kind.__name__
    if kind is types.NoneType:
        return "nothing"
    if isinstance(kind, types.UnionType):
        return " or ".join(type_name(one) for one in get_args(kind))
    if get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,):
        return f"list of {type_name(get_args(kind)[0])}"
    if get_origin(kind) is not None:
        inner = ", ".join(type_name(one) for one in get_args(kind))
        return f"{get_origin(kind).__name__}[{inner}]"
    return str(getattr(kind, "__name__", kind))


def _descendants(base: type[Any]) -> Iterator[type[Any]]:
    for child in base.__subclasses__():
        yield child
        yield from _descendants(child)


def fact_types() -> list[type[Any]]:
    """Every kind of fact, by kind. (Slots make a dataclass anew; the unslotted draft is left out.)"""
    import games
    from games.rules import Fact

    for module in pkgutil.walk_packages(games.__path__, "games."):
        importlib.import_module(module.name)
    living = [
        fact
        for fact in _descendants(Fact)
        if "KIND" in vars(fact) and getattr(sys.modules[fact.__module__], fact.__name__, None) is fact
    ]
    return sorted(living, key=lambda fact: fact.KIND)


def parts_of(kind: Any) -> Iterator[Any]:
    """The enumerations and records that a field's type is made of."""
    if isinstance(kind, type) and (issubclass(kind, Enum) or is_dataclass(kind)):
        yield kind
    for inner in get_args(kind):
        yield from parts_of(inner)


def _fields_table(record: type[Any]) -> list[str]:
    rows = [f"| {field.name} | {type_name(field.type)} |" for field in fields(record)]
    return ["| field | type |", "|---|---|", *rows, ""] if rows else []


def _explained(documented: type[Any]) -> str:
    return cleandoc(documented.__doc__ or "").replace("``", "`") + "\n"


def _records(roots: list[type[Any]]) -> list[type[Any]]:
    """The records and enumerations below the fields of some records, by name."""
    found: dict[str, type[Any]] = {}
    waiting = [part for root in roots for field in fields(root) for part in parts_of(field.type)]
    while waiting:
        part = waiting.pop()
        if part.__name__ not in found:
            found[part.__name__] = part
            waiting += [] if issubclass(part, Enum) else [one for field in fields(part) for one in parts_of(field.type)]
    return [found[name] for name in sorted(found)]


def facts() -> Pages:
    """``facts.md``: every kind of fact with its fields, then what the fields are made of."""
    lines = [
        "# Facts\n",
        "What the journal holds: each entry's `type` is one of these, and its `data` has these fields. Money is an",
        "integer number of cents.\n",
    ]
    for fact in fact_types():
        lines += [f"## {fact.KIND}\n", _explained(fact), *_fields_table(fact)]
    lines += ["# What the fields are made of\n"]
    for part in _records(fact_types()):
        lines += [f"## {part.__name__}\n", _explained(part)]
        values = ", ".join(f"`{member.value}`" for member in part) if issubclass(part, Enum) else ""
        lines += [f"One of: {values}.\n"] if values else _fields_table(part)
    return {DOCS / "facts.md": MADE.format(source="the fact classes of games/") + "\n".join(lines)}


# ── schemas: what may stand on the wire ───────────────────────────────────────────────────────────────────────────────


def schemas() -> Pages:
    """``schemas/<name>.json``: the JSON Schemas of entries, documents and messages; ``asyncapi.json``: the topics."""
    from controller.published import asyncapi, json_schemas

    made = {DOCS / "schemas" / f"{name}.json": schema for name, schema in json_schemas().items()}
    return {
        path: json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        for path, schema in (made | {DOCS / "asyncapi.json": asyncapi()}).items()
    }


# ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────────

PAGES: Mapping[str, Callable[[], Pages]] = {
    "codes": codes,
    "commands": commands,
    "compliance": compliance,
    "facts": facts,
    "schemas": schemas,
}

OWNED_FOLDERS: Mapping[str, Path] = {"schemas": DOCS / "schemas"}


def stale(made: Pages) -> list[Path]:
    """The pages whose file is missing or differs."""
    return [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def leftovers(names: list[str], made: Pages) -> list[Path]:
    """Files in the folders of these pages that no page makes any more."""
    folders = [OWNED_FOLDERS[name] for name in names if name in OWNED_FOLDERS]
    return [path for folder in folders if folder.exists() for path in sorted(folder.iterdir()) if path not in made]


def main(arguments: list[str]) -> int:
    """Make the pages named, or check them. The status is 1 when --check finds one out of date."""
    parser = argparse.ArgumentParser(description="Write the documents that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing, name what is out of date")
    parser.add_argument("page", nargs="*", choices=[*PAGES, []], metavar="page", help=f"some of: {', '.join(PAGES)}")
    options = parser.parse_args(arguments)
    os.environ |= SAME_EVERYWHERE
    names = options.page or list(PAGES)
    made = {path: text for name in names for path, text in PAGES[name]().items()}
    changed, gone = stale(made), leftovers(names, made)
    for path in [*changed, *gone]:
        sys.stdout.write(f"{path.relative_to(ROOT)}{' is out of date: run `make docs`' if options.check else ''}\n")
    if options.check:
        return 1 if changed or gone else 0
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
