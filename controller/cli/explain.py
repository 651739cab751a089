"""``tablectl explain``: what a code means for the table, and what to do."""

from typing import Any

import click

from controller.cli.commands import Command, argument, option
from controller.cli.failure import Failure, what_to_do
from controller.cli.language import Phrase, here, language
from controller.cli.output import columns, tell
from controller.faults import Advice, CodeUnknownError, advice, catalogue, explain


@click.command(
    "explain",
    cls=Command,
    phrase=Phrase(
        "Ce que veut dire un code.\n\n"
        "Ce qui s'est passé, ce que cela signifie pour la table, ce qu'il faut faire. Le E- et les majuscules sont "
        "facultatifs.",
        "What a code means.\n\n"
        "What happened, what it means for the table, what to do. The E- and the capitals may be left out.",
    ),
    exits={
        0: Phrase("le code est expliqué", "the code is explained"),
        1: Phrase("aucun code de ce nom", "there is no such code"),
    },
)
@argument(
    "code", required=False, phrase=Phrase("Le code, par exemple wheel-silent.", "The code, such as wheel-silent.")
)
@option(
    "--all", "everything", is_flag=True, phrase=Phrase("Tous les codes, une ligne chacun.", "Every code, one line.")
)
def command(code: str | None, everything: bool) -> int:
    """Explain one code, or list them all."""
    if everything:
        entries = catalogue().values()
        tell(
            [_document(entry) for entry in entries], columns([entry.code, entry.title(language())] for entry in entries)
        )
        return 0
    if code is None:
        raise Failure("E-USAGE", here("donner un code, ou --all", "give a code, or --all"), status=64)
    try:
        entry = advice(code)
    except CodeUnknownError as error:
        near = ", ".join(error.nearest)
        found = here(f" ; vouliez-vous dire {near} ?", f"; did you mean {near}?") if near else ""
        detail = here(f"{error.code} n'existe pas{found}", f"there is no {error.code}{found}")
        raise Failure("E-CODE-UNKNOWN", detail, status=1) from None
    tell(_document(entry), explain(entry.code, language()).splitlines())
    return 0


def _document(entry: Advice) -> dict[str, Any]:
    spoken = language()
    return {
        "code": entry.code,
        "title": entry.title(spoken),
        "means": entry.means(spoken),
        "do": what_to_do(entry.code),
        "exit": entry.exit,
    }
