"""Mistakes in a configuration, all told at once, in both languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import ErrorDetails

from controller.faults import Language
from controller.french import typeset


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One mistake in a configuration: where, what stands there, and what is permitted (``french`` says the same)."""

    key: str
    value: str
    wrong: str
    french: str

    def said(self, language: Language) -> str:
        """What is wrong, in a language."""
        return typeset(self.french) if language == "fr" else self.wrong

    def line(self, language: Language) -> str:
        """The whole mistake, in a language."""
        place = f"{self.key}{f' = {self.value}' if self.value else ''}"
        return f"{place}{typeset(' :') if language == 'fr' else ':'} {self.said(language)}"

    def __str__(self) -> str:
        return self.line("en")


class ConfigError(Exception):
    """The configuration cannot be used. ``faults`` has all its mistakes."""

    def __init__(self, path: Path, faults: list[ConfigFault]) -> None:
        super().__init__(f"E-CONFIG {path}: " + "; ".join(map(str, faults)))
        self.path = path
        self.faults = faults


def short(value: object) -> str:
    """A value as it stands, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


# ── What the schema refuses ───────────────────────────────────────────────────────────────────────────────────────────


def refused(key: str, detail: ErrorDetails) -> ConfigFault:
    """The mistake that pydantic found in the value of an option."""
    context = detail.get("ctx", {})
    french, english = _SENTENCES.get(detail["type"], _ANY_VALUE)
    values = {**context, "allowed_fr": "", "allowed_en": ""}
    if "pattern" in context:
        values["allowed_fr"], values["allowed_en"] = ALLOWED[context["pattern"]]
    expected = str(context.get("expected", ""))
    values |= {"expected_fr": expected.replace(" or ", " ou "), "expected_en": expected}
    return ConfigFault(key, short(detail["input"]), english.format(**values), french.format(**values))


_WHOLE_NUMBER = ("doit être un nombre entier, écrit sans guillemets", "must be a whole number, written without quotes")
_SECTION = ("doit être une section ou une table", "must be a section or a table")
_ANY_VALUE = ("n'est pas permis ici", "is not permitted here")

_SENTENCES: Mapping[str, tuple[str, str]] = {
    "int_type": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "bool_type": ("doit être true ou false, sans guillemets", "must be true or false, without quotes"),
    "string_type": ("doit être un texte entre guillemets", "must be a text in quotes"),
    "path_type": ("doit être un chemin entre guillemets", "must be a path in quotes"),
    "list_type": ("doit être une liste entre crochets", "must be a list in brackets"),
    "dict_type": _SECTION,
    "model_type": _SECTION,
    "greater_than_equal": ("doit être au moins {ge}", "must be at least {ge}"),
    "less_than_equal": ("doit être au plus {le}", "must be at most {le}"),
    "multiple_of": ("doit être un multiple de {multiple_of}", "must be a multiple of {multiple_of}"),
    "string_too_short": ("ne doit pas être vide", "must not be empty"),
    "string_too_long": ("compte plus de {max_length} signes", "has more than {max_length} characters"),
    "string_pattern_mismatch": ("attend {allowed_fr}", "takes {allowed_en}"),
    "literal_error": ("doit être {expected_fr}", "must be {expected_en}"),
    "enum": ("doit être {expected_fr}", "must be {expected_en}"),
}
"""What is wrong with one value, by pydantic's name for it: French, English."""

SITE = r"^[a-z0-9](-?[a-z0-9])*(\.[a-z0-9](-?[a-z0-9])*)*$"
NAME = r"^[a-z0-9][a-z0-9-]{0,31}$"
BADGE = r"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$"

ALLOWED: Mapping[str, tuple[str, str]] = {
    SITE: (
        "un nom de domaine : minuscules sans accent, chiffres, tirets et points",
        "a domain name: unaccented small letters, digits, dashes and dots",
    ),
    NAME: (
        "1 à 32 minuscules sans accent, chiffres ou tirets, sans tiret au début",
        "1 to 32 unaccented small letters, digits or dashes, with no dash at the beginning",
    ),
    BADGE: (
        "1 à 32 lettres sans accent, chiffres ou tirets, sans tiret au début",
        "1 to 32 unaccented letters, digits or dashes, with no dash at the beginning",
    ),
}
"""What each pattern permits, in words."""
