"""``tablectl doctor``: every reason why the table would not start or open, at once, each with what to do about it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Command
from controller.cli.failure import DONE, UNUSABLE, WRONG, Failure, advice_lines, title_of, what_to_do
from controller.cli.findings import Finding, Level
from controller.cli.language import Phrase, colon, count, here, language
from controller.cli.link import Link, link_to, sockets_of, table_options
from controller.cli.output import columns, tell, waiting
from controller.config import load
from controller.config_faults import ConfigError
from controller.options import Config

SIGNS = {Level.OK: "green", Level.WARN: "yellow", Level.ERROR: "red"}


@click.command(
    "doctor",
    cls=Command,
    phrase=Phrase(
        "Dit à la fois tout ce qui empêcherait la table de démarrer ou d'ouvrir.\n\n"
        "Configuration, clé, journal, espace, cylindre, pupitre, messages, horloge, personnes. Une table en marche est "
        "interrogée ; d'une table arrêtée, le port et les broches sont essayés ici. Rien n'est changé.",
        "Name every reason why the table would not start or open, at once.\n\n"
        "Configuration, key, journal, space, wheel, panel, broker, clock, persons. A running table is asked; of a "
        "stopped one, the port and the pins are tried here. Nothing is changed.",
    ),
    exits={
        0: Phrase("elle pourrait ouvrir", "it could open"),
        1: Phrase("elle ne le pourrait pas", "it could not"),
        2: Phrase("configuration inutilisable", "configuration cannot be used"),
        3: Phrase("quelle table ? Ni --config ni table en marche", "which table? Neither --config nor a running table"),
    },
)
@table_options
def command(config: Path | None, socket: Path | None) -> int:
    """Examine a table."""
    try:
        file, table, status = _table(config, socket)
    except ConfigError as error:
        findings = [Finding(Level.ERROR, "configuration", fault.line(language()), "E-CONFIG") for fault in error.faults]
        tell(_document(findings, UNUSABLE), _lines(findings))
        return UNUSABLE
    from controller.cli.checks import checks  # needs everything that a table is made of

    with waiting(here("Examen de la table", "Examining the table")):
        findings = [Finding(Level.OK, "configuration", table.origin), *checks(table, file, status)]
    exit_status = WRONG if any(finding.level is Level.ERROR for finding in findings) else DONE
    tell(_document(findings, exit_status), _lines(findings))
    return exit_status


def _table(config: Path | None, socket: Path | None) -> tuple[Path, Config, dict[str, Any] | None]:
    """The configuration's file, the configuration, and what the daemon answers, None when none does.

    Raises ConfigError, Failure.
    """
    if config is not None:
        table = load(config)
        return config, table, _answer(Link((socket,) if socket else sockets_of(table), table))
    status = link_to(None, socket).ask()
    file = Path(status.get("config", ""))
    return file, load(file), status


def _answer(link: Link) -> dict[str, Any] | None:
    try:
        return link.ask()
    except Failure:
        return None


def _document(findings: Sequence[Finding], exit_status: int) -> dict[str, Any]:
    told = [
        {
            "level": str(finding.level),
            "subject": finding.subject,
            "code": finding.code,
            "detail": finding.detail,
            "advice": what_to_do(finding.code) if finding.code else "",
        }
        for finding in findings
    ]
    return {"could_open": exit_status == DONE, "findings": told}


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    rows = columns(
        (click.style(finding.level, fg=SIGNS[finding.level], bold=True), finding.subject, _told(finding))
        for finding in findings
    )
    for at, (finding, row) in enumerate(zip(findings, rows, strict=True)):
        yield row
        repeated = at + 1 < len(findings) and findings[at + 1].code == finding.code
        if finding.code and not repeated:
            yield from advice_lines(finding.code, " " * 7)
    wrong = sum(finding.level is Level.ERROR for finding in findings)
    if wrong:
        yield click.style(count(wrong, "empêchement", "hindrance"), fg="red", bold=True)
    else:
        yield click.style(here("rien n'empêche d'ouvrir", "nothing stands in the way"), fg="green", bold=True)


def _told(finding: Finding) -> str:
    if not finding.code:
        return finding.detail
    title = title_of(finding.code)
    named = finding.code if title == finding.code else f"{finding.code} {title}"
    return f"{named}{colon()}{finding.detail}" if finding.detail else named
