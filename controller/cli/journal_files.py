"""``tablectl journal`` export, create and unpack: journals as files. Nothing here can change an entry."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import click

from controller.certify.reader import Reader
from controller.certify.verify import Outcome
from controller.cli.commands import Command, option, path_option, whole_number
from controller.cli.failure import UNUSABLE, Failure
from controller.cli.language import Phrase, colon, here
from controller.cli.output import confirm, fields, progress, tell
from controller.cli.target import VKEY, target_of, target_options
from controller.cli.verdicts import VERDICTS

# ── export ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "export",
    cls=Command,
    phrase=Phrase(
        "Écrit les écritures telles qu'elles sont signées, une par ligne (JSON).",
        "Write the entries as they are signed, one on each line (JSON).",
    ),
    exits={
        0: Phrase("tout a été écrit", "all was written"),
        2: Phrase("le fichier existe déjà", "the file exists already"),
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@option("--from", "start", default="0", callback=whole_number(), phrase=Phrase("Première écriture.", "First entry."))
@option("--to", "stop", callback=whole_number(), phrase=Phrase("Dernière écriture.", "Last entry."))
@path_option("--out", metavar="FILE", phrase=Phrase("Dans ce fichier.", "Into this file."))
def export_command(target: Path, vkey: str | None, start: int, stop: int | None, out: Path | None) -> None:
    """Write leaves, byte for byte."""
    with closing(Reader(target_of(target, vkey).file)) as reader:
        end = reader.size if stop is None else min(stop + 1, reader.size)
        leaves = reader.leaves(start, end)
        if out is None:
            _write(leaves, sys.stdout.buffer)
            return
        try:
            with out.open("xb") as file:
                _write(leaves, file)
        except FileExistsError:
            raise _exists(out) from None


def _exists(out: Path) -> Failure:
    return Failure("E-OUT-EXISTS", here(f"{out} existe déjà", f"{out} exists already"), UNUSABLE)


def _write(leaves: Iterator[bytes], stream: BinaryIO) -> None:
    stream.writelines(leaf + b"\n" for leaf in leaves)
    stream.flush()


# ── create ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "create",
    cls=Command,
    phrase=Phrase(
        "Crée le journal vide d'une nouvelle table, et table.vkey à côté.\n\n"
        "Un journal existant n'est jamais remplacé. Sous systemd la clé n'est donnée qu'à la table : nommer ici son "
        "fichier par --key.",
        "Create the empty journal of a new table, and table.vkey beside it.\n\n"
        "An existing journal is never replaced. Under systemd only the table is given the key: name its file here, "
        "with --key.",
    ),
    exits={
        0: Phrase("le journal est créé", "the journal is created"),
        1: Phrase("réponse négative : rien n'est changé", "the answer was no: nothing is changed"),
        2: Phrase("configuration, clé ou emplacement inutilisable", "configuration, key or place cannot be used"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table.", "The table."))
@path_option("--key", metavar="FILE", phrase=Phrase("Sa clé privée.", "Its private key."))
@option("--yes", is_flag=True, phrase=Phrase("Sans demander.", "Without asking."))
def create_command(config: Path, key: Path | None, yes: bool) -> None:
    """Make an empty journal."""
    from controller.app import table_key
    from controller.certify.journal import Journal
    from controller.config import load

    table = load(config, {"journal": {"key": str(key.absolute())}} if key else None)
    signer, file = table_key(table), table.journal.file
    confirm(
        here(
            f"Créer le journal vide {file} de {table.origin} ?", f"Create the empty journal {file} of {table.origin}?"
        ),
        yes=yes,
    )
    Journal.create(file, signer, allow_volatile=table.journal.volatile)
    public = file.parent / VKEY
    public.write_text(f"{signer.verifier.vkey}\n", encoding="ascii")
    document = {"journal": str(file), "origin": table.origin, "vkey": signer.verifier.vkey, "vkey_file": str(public)}
    created = here("journal créé", "journal created")
    tell(document, [f"{created}{colon()}{file}", f"{here('clé publique', 'public key')}{colon()}{public}"])


# ── unpack ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "unpack",
    cls=Command,
    phrase=Phrase(
        "Range les faits dans une base SQLite neuve, une table par sorte, pour les interroger en SQL.",
        "Lay the facts out in a new SQLite database, one table for each kind, to be asked in SQL.",
    ),
    exits={
        0: Phrase("tout a été rangé", "all was laid out"),
        2: Phrase("le fichier existe déjà", "the file exists already"),
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@path_option("--out", metavar="FILE", required=True, phrase=Phrase("La base à faire.", "The database to be made."))
def unpack_command(target: Path, vkey: str | None, out: Path) -> int:
    """Unpack a journal for an auditor."""
    from controller.unpack import unpack  # a heavy library, which no other command needs

    with closing(Reader(target_of(target, vkey).file)) as reader, progress(here("Rangement", "Unpacking")) as step:
        size = reader.size
        try:
            rows = unpack(reader.leaves(0, size), out, lambda done: step(done, size))
        except FileExistsError:
            raise _exists(out) from None
    tell(rows, fields((table, str(count)) for table, count in sorted(rows.items())))
    return 0
