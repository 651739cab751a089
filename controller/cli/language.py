"""French and English: what ``tablectl`` says, each sentence written in both where it is said.

The language follows ``--lang``, else the locale: LC_ALL, then LC_MESSAGES, then LANG (locale(7)).
"""

import os
from dataclasses import dataclass

import click

from controller.faults import Language, language_of
from controller.french import typeset

CHOSEN = "tablectl.language"
"""Where the running command keeps the language of ``--lang``."""

LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")


def language() -> Language:
    """The language to speak now."""
    context = click.get_current_context(silent=True)
    chosen: Language | None = context.meta.get(CHOSEN) if context else None
    return chosen or language_of(next(filter(None, map(os.environ.get, LOCALES)), ""))


def here(fr: str, en: str) -> str:
    """The one of two sentences that is in the language to speak now."""
    return typeset(fr) if language() == "fr" else en


def colon() -> str:
    """What stands between a name and what is told of it."""
    return here(" : ", ": ")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence in both languages; as text it is in the language to speak at that moment."""

    fr: str
    en: str

    def __str__(self) -> str:
        return here(self.fr, self.en)


def count(number: int, fr: str, en: str) -> str:
    """``3 entries``: a number and its noun, in the plural when there are several. Nouns that only take an s."""
    noun = here(fr, en)
    return f"{number} {noun}" if abs(number) < 2 and (number or language() == "fr") else f"{number} {noun}s"
