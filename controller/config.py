"""Reading a configuration: one TOML file, read once, refused whole with every mistake that it has."""

import difflib
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from controller.config_document import absolute, read_document
from controller.config_faults import ConfigError, ConfigFault, refused, short
from controller.contradictions import contradictions
from controller.options import Config
from controller.options_french import FRENCH

PATHS = (
    ("journal", "file"),
    ("journal", "key"),
    ("journal", "previous_key"),
    ("mqtt", "ca"),
    ("mqtt", "certificate"),
    ("mqtt", "key"),
)
"""The options that name files: a relative one starts at the configuration's own folder."""


def load(path: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration. Raises ConfigError with every mistake; ``overrides`` replaces sections' options."""
    return parse(path, _merged(read_document(path), overrides or {}))


def parse(path: Path, document: Mapping[str, Any]) -> Config:
    """Check a document that was read from ``path``. Raises ConfigError."""
    document = absolute(document, path.resolve().parent, PATHS)
    try:
        config, sound, faults = Config.model_validate(document), set(Config.model_fields), list[ConfigFault]()
    except ValidationError as error:
        config, sound = _sound_sections(document, {str(detail["loc"][0]) for detail in error.errors()})
        faults = [_fault(detail) for detail in error.errors()]
    faults += contradictions(config, sound)
    if faults:
        raise ConfigError(path, faults)
    return config


def _sound_sections(document: Mapping[str, Any], faulty: Collection[str]) -> tuple[Config, set[str]]:
    """What is right of a faulty document, as a configuration of only these sections, and their names."""
    sections = {}
    for name, field in Config.model_fields.items():
        if name in faulty:
            continue
        kind: Any = field.annotation
        absent = field.get_default(call_default_factory=True)
        sections[name] = TypeAdapter(kind).validate_python(document[name]) if name in document else absent
    return Config.model_construct(**sections), set(sections)


def _merged(document: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for name, value in overrides.items():
        below = merged.get(name)
        merged[name] = _merged(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return merged


# ── Mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fault(detail: ErrorDetails) -> ConfigFault:
    key = ".".join(str(part + 1) if isinstance(part, int) else part for part in detail["loc"] if part != "[key]")
    match detail["type"]:
        case "extra_forbidden":
            near, near_fr = _nearest(detail["loc"])
            return ConfigFault(key, short(detail["input"]), f"unknown option{near}", f"option inconnue{near_fr}")
        case "missing":
            english, french = _meaning(detail["loc"])
            return ConfigFault(key, "", f"is missing: {english}", f"manque : {french}")
        case _:
            return refused(key, detail)


def _section(loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model of the section in which an option stands."""
    model: Any = Config
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if field is None:
            return None
        model = _model_in(field.annotation)
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _model_in(annotation: Any) -> Any:
    if typing.get_origin(annotation) in (list, typing.Union, types.UnionType):
        return next((arm for arm in typing.get_args(annotation) if arm is not type(None)), None)
    return annotation


def _nearest(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """What may have been meant, to be added to a sentence: English, French."""
    section = _section(loc)
    near = difflib.get_close_matches(str(loc[-1]), section.model_fields if section else [], n=1)
    return (f"; did you mean {near[0]}?", f" ; vouliez-vous dire {near[0]} ?") if near else ("", "")


def _meaning(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """What an option that is missing would say: English, French."""
    section = _section(loc)
    field = section.model_fields.get(str(loc[-1])) if section else None
    if field is None or not field.description:
        return "a section that every table needs", "une section qu'il faut à chaque table"
    return field.description, FRENCH[".".join(part for part in loc if isinstance(part, str))]
