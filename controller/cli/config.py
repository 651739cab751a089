"""``tablectl config``: check a configuration, all its mistakes at once, and explain every option."""

import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from controller.cli.commands import Group, argument
from controller.cli.failure import DONE, UNUSABLE, Failure, what_to_do
from controller.cli.language import Phrase, count, here, language
from controller.cli.output import dim, heading, tell
from controller.config import load
from controller.config_faults import ConfigError
from controller.options import Config
from controller.options_french import FRENCH

command = Group(
    "config",
    phrase=Phrase("Vérifier une configuration, connaître ses options.", "Check a configuration, know its options."),
)


# ── check ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "check",
    phrase=Phrase(
        "Nomme toutes les fautes d'une configuration à la fois.\n\n"
        "Pour chacune : le fichier, l'option, la valeur, et ce qui est permis. Le matériel n'est pas touché : voir "
        "« tablectl doctor ».",
        "Name every mistake of a configuration at once.\n\n"
        "For each: file, option, value, and what is permitted. No hardware is touched: see `tablectl doctor`.",
    ),
    exits={
        0: Phrase("toutes sont utilisables", "all can be used"),
        2: Phrase("l'une ne l'est pas", "one of them cannot"),
    },
)
@argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE...",
    phrase=Phrase("Les configurations.", "The configurations."),
)
def check_command(files: tuple[Path, ...]) -> int:
    """Check configurations."""
    results = [_checked(file) for file in files]
    tell(results, (line for result in results for line in _check_lines(result)))
    return DONE if all(result["usable"] for result in results) else UNUSABLE


def _checked(file: Path) -> dict[str, Any]:
    try:
        config = load(file)
    except ConfigError as error:
        faults = [
            {"option": fault.key, "value": fault.value, "wrong": fault.said(language())} for fault in error.faults
        ]
        return {"file": str(file), "usable": False, "faults": faults}
    return {
        "file": str(file),
        "usable": True,
        "faults": [],
        "table": config.origin,
        "rules_sha256": config.rules_sha256,
    }


def _check_lines(result: dict[str, Any]) -> Iterator[str]:
    if result["usable"]:
        yield f"{click.style('ok', fg='green')}  {result['file']}  {dim(result['table'])}"
        return
    wrong = count(len(result["faults"]), "faute", "mistake")
    yield f"{click.style('E-CONFIG', fg='red', bold=True)}  {result['file']}  {wrong}"
    for fault in result["faults"]:
        value = f" = {fault['value']}" if fault["value"] else ""
        yield f"  {click.style(fault['option'], bold=True)}{value}{here(' :', ':')} {fault['wrong']}"
    if advice := what_to_do("E-CONFIG"):
        yield f"  → {advice}"


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "options",
    phrase=Phrase(
        "Explique chaque option : genre, valeur par défaut, bornes, sens.",
        "Explain every option: kind, default, bounds, meaning.",
    ),
    exits={
        0: Phrase("les options sont données", "the options are given"),
        2: Phrase("aucune section de ce nom", "there is no such section"),
    },
)
@argument("section", required=False, phrase=Phrase("Une seule section.", "One section only."))
def options_command(section: str | None) -> None:
    """List options."""
    found = dict(_sections(Config, ""))
    if section is not None:
        if section not in found:
            known = ", ".join(name for name in found if name)
            raise Failure("E-CONFIG-SECTION", here(f"{section} : il y a {known}", f"{section}: there are {known}"))
        found = {section: found[section]}
    document = {name: [_option(name, *field) for field in _fields(model)] for name, model in found.items()}
    tell(document, (line for name, options in document.items() for line in _section_lines(name, options, found[name])))


def _meaning(name: str, english: str) -> str:
    """What an option or a section means; ``name`` is as it stands in a configuration."""
    return here(FRENCH.get(name, english), english)


def _sections(model: type[BaseModel], name: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every section with its name in a configuration; the options outside any section come first, without a name."""
    yield name, model
    for key, field in model.model_fields.items():
        below = _model_in(field.annotation)
        if below is not None:
            yield from _sections(below, f"{name}.{key}" if name else key)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation stands for, if it does: ``X``, ``X | None``, ``list[X]``."""
    for inner in (annotation, *get_args(annotation)):
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    return None


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    yield from ((key, field) for key, field in model.model_fields.items() if _model_in(field.annotation) is None)


def _option(section: str, key: str, field: FieldInfo) -> dict[str, Any]:
    default: Any = None if field.is_required() else field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        default = None
    return {
        "option": key,
        "kind": kind_of(field.annotation),
        "required": field.is_required(),
        "default": str(default) if isinstance(default, Path) else default,
        "bounds": _bounds(field),
        "description": _meaning(f"{section}.{key}" if section else key, field.description or ""),
    }


def kind_of(annotation: Any) -> str:
    """A type as the writer of a configuration sees it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return kind_of(inner[0])
    if origin is Literal:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(kind_of(arm) for arm in inner if arm is not types.NoneType)
    if origin is list:
        return f"[{kind_of(inner[0])}, …]"
    if origin is dict:
        return f"{{{kind_of(inner[0])} = {kind_of(inner[1])}, …}}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(f'"{member.value}"' for member in annotation)
    words = {
        bool: "true | false",
        int: here("entier", "integer"),
        str: here("texte", "text"),
        Path: here("fichier", "file"),
    }
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _bounds(field: FieldInfo) -> str:
    """The bounds that pydantic checks, in signs."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "multiple_of": here("multiple de", "multiple of")}
    found = [
        f"{sign} {bound}"
        for rule in field.metadata
        for name, sign in signs.items()
        if (bound := getattr(rule, name, None)) is not None
    ]
    return ", ".join(found)


def _section_lines(name: str, options: list[dict[str, Any]], model: type[BaseModel]) -> Iterator[str]:
    title = f"[[{name}]]" if name == "person" else f"[{name}]" if name else here("(en tête)", "(at the top)")
    yield f"{heading(title)}  {dim(_meaning(name, (model.__doc__ or '').splitlines()[0]))}"
    for option in options:
        given = here("obligatoire", "required") if option["required"] else f"= {_toml(option['default'])}"
        bounds = f", {option['bounds']}" if option["bounds"] else ""
        yield f"  {click.style(option['option'], bold=True)}  {option['kind']}{bounds}  {given}"
        yield f"      {option['description']}"
    yield ""


def _toml(value: Any) -> str:
    """A default as it would be written."""
    match value:
        case None:
            return here("absent", "absent")
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)
