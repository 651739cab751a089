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
from controller.cli.target import POLICY, VKEY, policy_option, read_policy, target_of, target_options
from controller.cli.verdicts import VERDICTS

# ── export ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "export",
    cls=Command,
    phrase=Phrase(
        "Écrit les écritures telles qu'elles sont signées, une par ligne (JSON), ou une archive.\n\n"
        "Avec --seance ou --archive, le fichier --out est une archive tar que chacun peut vérifier sans ce programme : "
        "écritures, arbre, signatures, procès-verbal, et un README qui dit comment.",
        "Write the entries as they are signed, one on each line (JSON), or an archive.\n\n"
        "With --seance or --archive, the file --out is a tar archive that anybody can check without this program: "
        "entries, tree, signatures, statement, and a README that says how.",
    ),
    exits={
        0: Phrase("tout a été écrit", "all was written"),
        1: Phrase("le journal ne concorde pas : pas d'archive", "the journal does not agree: no archive"),
        2: Phrase(
            "le fichier existe déjà, ou la séance n'existe pas", "the file exists already, or there is no such séance"
        ),
        3: VERDICTS[Outcome.UNSIGNED_OR_UNKNOWN_KEY],
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@option("--from", "start", callback=whole_number(), phrase=Phrase("Première écriture.", "First entry."))
@option("--to", "stop", callback=whole_number(), phrase=Phrase("Dernière écriture.", "Last entry."))
@path_option("--out", metavar="FILE", phrase=Phrase("Dans ce fichier.", "Into this file."))
@option("--seance", metavar="NAME", phrase=Phrase("L'archive de cette séance.", "The archive of this séance."))
@option("--archive", is_flag=True, phrase=Phrase("L'archive de tout le journal.", "The archive of the whole journal."))
@policy_option(
    Phrase(
        "Les témoins dont l'archive garde les contre-signatures (c2sp.org/tlog-policy) ; "
        "sinon policy à côté du journal.",
        "The witnesses whose cosignatures the archive keeps (c2sp.org/tlog-policy); "
        "otherwise policy beside the journal.",
    )
)
def export_command(
    target: Path,
    vkey: str | None,
    start: int | None,
    stop: int | None,
    out: Path | None,
    seance: str | None,
    archive: bool,
    policy: Path | None,
) -> int:
    """Write leaves, byte for byte."""
    journal = target_of(target, vkey)
    if seance is not None or archive:
        out = _archive_file(start, stop, out, seance, archive=archive)
        from controller.cli.journal_archive import export_archive  # it knows every fact, which lines of JSON need not

        beside = journal.file.parent / POLICY
        believed = read_policy(policy or (beside if beside.exists() else None))
        return export_archive(journal, out, seance, believed)
    with closing(Reader(journal.file)) as reader:
        end = reader.size if stop is None else min(stop + 1, reader.size)
        leaves = reader.leaves(start or 0, end)
        if out is None:
            _write(leaves, sys.stdout.buffer)
            return 0
        try:
            with out.open("xb") as file:
                _write(leaves, file)
        except FileExistsError:
            raise _exists(out) from None
    return 0


def _archive_file(start: int | None, stop: int | None, out: Path | None, seance: str | None, *, archive: bool) -> Path:
    """Where the archive goes. Raises click.UsageError for words that contradict each other."""
    if (start, stop) != (None, None) or (archive and seance is not None):
        wrong = (
            "--seance, --archive et --from/--to s'excluent",
            "--seance, --archive and --from/--to exclude each other",
        )
        raise click.UsageError(here(*wrong))
    if out is None:
        raise click.UsageError(here("une archive demande --out FICHIER", "an archive needs --out FILE"))
    return out


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
    if table.table.epoch > 1:
        detail = here(
            f"{table.origin} suit une autre époque : tablectl epoch begin",
            f"{table.origin} follows another epoch: tablectl epoch begin",
        )
        raise Failure("E-EPOCH-UNPROCLAIMED", detail)
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
