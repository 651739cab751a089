"""``tablectl journal volumes``: the files of a journal, what is in each, and until when each must be kept."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from controller.certify.leaf import parse_leaf
from controller.certify.reader import Reader
from controller.certify.verify import Outcome
from controller.certify.volumes import Volume, volumes
from controller.cli.commands import Command, option, whole_number
from controller.cli.language import Phrase, here
from controller.cli.output import columns, tell
from controller.cli.target import target_of, target_options
from controller.cli.verdicts import VERDICTS
from controller.retention import kept_until


@click.command(
    "volumes",
    cls=Command,
    phrase=Phrase(
        "Montre les fichiers d'un journal : écritures, dates, contre-signature, et jusqu'à quand garder chacun.\n\n"
        "Rien n'est jamais effacé par ce programme. « tablectl journal verify » vérifie tous ces fichiers ensemble.",
        "Show the files of a journal: entries, dates, cosignature, and until when each must be kept.\n\n"
        "This program never deletes any. `tablectl journal verify` verifies all these files together.",
    ),
    exits={
        0: Phrase("tous les fichiers sont là", "all files are there"),
        4: Phrase("un fichier manque", "a file is missing"),
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@option(
    "--years",
    default="10",
    callback=whole_number(),
    phrase=Phrase("Années de conservation ; 10 sinon.", "Years of retention; 10 otherwise."),
)
def volumes_command(target: Path, vkey: str | None, years: int) -> int:
    """List the files."""
    file = target_of(target, vkey).file
    listed = volumes(file)
    with closing(Reader(file)) as reader:
        rows = [_row(volume, reader, years) for volume in listed]
    tell({"volumes": rows}, columns([_titles(), *(_cells(row) for row in rows)]))
    return 0 if all(row["present"] for row in rows) else int(Outcome.INCOMPLETE)


def _row(volume: Volume, reader: Reader, years: int) -> dict[str, Any]:
    stop = reader.size if volume.stop is None else volume.stop
    row: dict[str, Any] = {
        "file": str(volume.path),
        "first": volume.base,
        "last": stop - 1,
        "live": volume.stop is None,
        "present": volume.path.exists(),
    }
    if not row["present"] or stop == volume.base:
        return row
    first, last = (parse_leaf(reader.leaf(index)).time for index in (volume.base, stop - 1))
    return row | {
        "first_time": first,
        "last_time": last,
        "bytes": volume.path.stat().st_size,
        "cosigned": _cosigned_size(volume.path),
        "keep_until": kept_until(last, years),
    }


def _cosigned_size(file: Path) -> int | None:
    """The largest size that a cosignature in ``file`` is for, None without one. The signature is not checked here."""
    with closing(Reader(file)) as reader:
        return reader.cosigned_size()


def _titles() -> list[str]:
    return [
        here("fichier", "file"),
        here("écritures", "entries"),
        here("de", "from"),
        here("à", "to"),
        here("octets", "bytes"),
        here("contre-signé", "cosigned"),
        here("garder jusqu'au", "keep until"),
    ]


def _cells(row: dict[str, Any]) -> list[str]:
    name = Path(row["file"]).name
    entries = f"{row['first']}-{row['last']}" if row["last"] >= row["first"] else here("aucune", "none")
    if not row["present"]:
        return [name, entries, click.style(here("MANQUE", "MISSING"), fg="red"), "", "", "", ""]
    if "first_time" not in row:
        return [name, entries, "", "", "", "", ""]
    cosigned = here("non", "no") if row["cosigned"] is None else str(row["cosigned"])
    return [
        name,
        entries,
        row["first_time"][:10],
        row["last_time"][:10],
        str(row["bytes"]),
        cosigned,
        row["keep_until"],
    ]
