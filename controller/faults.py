"""The catalogue of codes: whatever a person may meet at a table has a code, and each code has an answer.

A message states what happened and where; its code leads here, to what that means for the table and what to do about it,
in French for the floor and in English for whoever services the machine. The texts are data (``advice/``), read when
first asked for. The house tests keep both sides equal: no code without an entry, no entry without a use.
"""

import re
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

ADVICE = Path(__file__).with_name("advice")
"""One TOML file for each part of the table; one section for each code."""

WIDTH = 88
"""Columns of an explanation."""

Language = Literal["fr", "en"]

HEADINGS: Mapping[Language, tuple[str, str, str]] = {
    "fr": (
        "Ce que cela signifie pour la table",
        "Ce qu'il faut faire",
        "Une commande qui le rencontre se termine avec le statut",
    ),
    "en": ("What it means for the table", "What to do", "A command that meets it ends with status"),
}


class CodeUnknownError(Exception):
    """Somebody asked for a code that no part of the program uses."""

    def __init__(self, code: str, nearest: list[str]) -> None:
        near = f"; did you mean {', '.join(nearest)}?" if nearest else "; docs/codes.md lists them all"
        super().__init__(f"E-CODE-UNKNOWN {code}: there is no such code{near}")
        self.code = code
        self.nearest = nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a code stands for. ``exit`` is the status of a command that meets it, where scripts may rely on one."""

    code: str
    title_fr: str
    title_en: str
    means_fr: str
    means_en: str
    do_fr: str
    do_en: str
    exit: int | None = None

    def title(self, language: Language) -> str:
        """What happened, in one line."""
        return self.title_fr if language == "fr" else self.title_en

    def means(self, language: Language) -> str:
        """What it means for the table: is play stopped, is money safe."""
        return self.means_fr if language == "fr" else self.means_en

    def do(self, language: Language) -> str:
        """What the person who reads this should do, in order."""
        return self.do_fr if language == "fr" else self.do_en


@cache
def catalogue() -> Mapping[str, Advice]:
    """Every code, in alphabetical order."""
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ADVICE.glob("*.toml"))]
    entries = [Advice(code=code, **texts) for file in files for code, texts in file.items()]
    return MappingProxyType({entry.code: entry for entry in sorted(entries, key=lambda entry: entry.code)})


def language_of(locale: str) -> Language:
    """French for a French locale ("fr_FR.UTF-8", "fr"), English for any other."""
    return "fr" if re.match(r"fr([_.@-]|$)", locale.lower()) else "en"


def advice(code: str) -> Advice:
    """The entry of ``code``, in either case, with or without its ``E-``.

    Raises CodeUnknownError, which names the nearest codes.
    """
    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("E-") else f"E-{wanted}"
    try:
        return catalogue()[wanted]
    except KeyError:
        raise CodeUnknownError(wanted, get_close_matches(wanted, catalogue(), n=3)) from None


def explain(code: str, locale: str) -> str:
    """The page that ``tablectl explain`` prints: what happened, what it means for the table, what to do.

    Raises CodeUnknownError.
    """
    entry, language = advice(code), language_of(locale)
    means, do, ends = HEADINGS[language]
    sections = [f"{entry.code}  {entry.title(language)}"]
    for heading, text in ((means, entry.means(language)), (do, entry.do(language))):
        sections.append(f"{heading}\n{textwrap.fill(text, WIDTH, initial_indent='  ', subsequent_indent='  ')}")
    if entry.exit is not None:
        sections.append(f"{ends} {entry.exit}.")
    return "\n\n".join(sections)
