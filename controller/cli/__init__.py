"""``tablectl``, the technician's tool: it asks the running daemon, reads the journal, and rehearses.

One file for each group of commands; none is imported before it is used.
"""

from importlib.metadata import version
from typing import Any

import click

from controller.cli.commands import Lazy, Option
from controller.cli.language import Phrase


def _show_version(ctx: click.Context, _: click.Parameter, wanted: Any) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"tablectl {version('table-controller')}")
        ctx.exit()


def _lazy(**commands: Phrase) -> dict[str, tuple[str, Phrase]]:
    return {name: (f"controller.cli.{name}", phrase) for name, phrase in commands.items()}


COMMANDS = _lazy(
    status=Phrase("Ce que fait la table", "What the table is doing"),
    watch=Phrase("La table en direct", "The table, live"),
    doctor=Phrase("Tout ce qui l'empêcherait de démarrer ou d'ouvrir", "Every reason why it would not start or open"),
    devices=Phrase("Le cylindre, les boutons, les clés et les lampes", "Wheel, buttons, keys and lamps"),
    journal=Phrase("Lire, vérifier, prouver, archiver le journal", "Read, verify, prove and archive the journal"),
    statement=Phrase("L'état d'une séance : lire, signer, vérifier", "A séance's statement: read, sign, check"),
    epoch=Phrase(
        "Commencer un nouveau journal quand la clé ou le journal est perdu", "Begin a new journal after a loss"
    ),
    replay=Phrase("Décider à nouveau tout un journal", "Decide a whole journal again"),
    simulate=Phrase("Jouer une soirée en temps virtuel", "Play an evening in virtual time"),
    demo=Phrase("Jouer une table entière sur cette machine", "Play a whole table on this machine"),
    rules=Phrase("Les règles à afficher au public", "The rules to be displayed to the public"),
    explain=Phrase("Ce que veut dire un code", "What a code means"),
    config=Phrase("Vérifier une configuration, connaître ses options", "Check a configuration, know its options"),
    mirror=Phrase("Le service central de référence, et ce qu'il garde", "The reference central service, what it holds"),
    key=Phrase("Créer et montrer des clés", "Create and show keys"),
)

main = Lazy(
    "tablectl",
    lazy=COMMANDS,
    phrase=Phrase(
        "L'outil du technicien d'une table de jeu électronique.\n\n"
        "Chaque commande accepte --json et --help. Sans terminal, la sortie est du texte brut ; NO_COLOR est respecté.",
        "The technician's tool for an electronic casino table.\n\n"
        "Every command takes --json and --help. Without a terminal the output is plain text; NO_COLOR is respected.",
    ),
    params=[
        Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            phrase=Phrase("Montre la version.", "Show the version."),
        ),
    ],
)

__all__ = ["COMMANDS", "main"]
