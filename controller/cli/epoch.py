"""``tablectl epoch``: begin another journal when the key or the journal of a table is lost. Two persons must sign."""

from collections.abc import Iterator
from pathlib import Path

import click

from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, parse_note
from controller.cli.commands import Group, argument, option, path_option
from controller.cli.failure import UNUSABLE, USAGE, Failure
from controller.cli.language import Phrase, here
from controller.cli.output import confirm, fields, progress, tell
from controller.cli.target import VKEY, target_of
from controller.config import load
from controller.entropy import KernelEntropy
from controller.options import Config

STATEMENT_BOUND = 65_536
"""Bytes of a statement's file that are read."""

command = Group(
    "epoch",
    phrase=Phrase(
        "Commencer un nouveau journal quand la clé ou le journal est perdu : deux personnes signent.\n\n"
        "1. Dans la configuration : table.epoch + 1, et journal.file dans un dossier neuf ; l'ancien reste, fermé. Y "
        "mettre les personnes à jour : « tablectl key persons » dit qui a été habilité ou révoqué.\n\n"
        "2. tablectl key create --config FILE : la nouvelle clé.\n\n"
        "3. tablectl epoch begin : la déclaration, d'après l'ancien journal ou l'accusé de réception du miroir.\n\n"
        "4. tablectl epoch sign : un membre du comité de direction et un technicien, chacun avec sa clé.\n\n"
        "5. tablectl epoch accept : le journal est créé ; sa première écriture est la déclaration.",
        "Begin a new journal when the key or the journal is lost: two persons sign.\n\n"
        "1. In the configuration: table.epoch + 1, and journal.file in a new folder; the old one stays, closed. Bring "
        "its persons up to date: `tablectl key persons` tells who was enrolled or revoked.\n\n"
        "2. tablectl key create --config FILE: the new key.\n\n"
        "3. tablectl epoch begin: the statement, from the old journal or from the mirror's acknowledgement.\n\n"
        "4. tablectl epoch sign: a director and a technician, each with his own key.\n\n"
        "5. tablectl epoch accept: the journal is created; its first entry is the statement.",
    ),
)


# ── begin ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "begin",
    phrase=Phrase(
        "Écrit la déclaration, signée par la nouvelle clé.\n\n"
        "Le dernier point de contrôle de l'ancienne époque est pris de --old-journal ou de --old-ack ; sans l'un ni "
        "l'autre il est déclaré inconnu.",
        "Write the statement, signed by the new key.\n\n"
        "The last checkpoint of the old epoch is taken from --old-journal or --old-ack; without either it is stated as "
        "unknown.",
    ),
    exits={
        0: Phrase("la déclaration est écrite", "the statement is written"),
        2: Phrase("configuration, clé ou fichier inutilisable", "configuration, key or file cannot be used"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table, à sa nouvelle époque.", "The table."))
@path_option("--key", metavar="FILE", phrase=Phrase("Sa nouvelle clé privée.", "Its new private key."))
@path_option("--old-journal", metavar="FILE", phrase=Phrase("L'ancien journal.", "The old journal."))
@path_option("--old-ack", metavar="FILE", phrase=Phrase("L'accusé du miroir.", "The mirror's acknowledgement."))
@option("--old-vkey", metavar="FILE|KEY", phrase=Phrase("L'ancienne clé publique.", "The old public key."))
@option("--reason", required=True, metavar="TEXT", phrase=Phrase("Le motif, une ligne.", "The reason, one line."))
@path_option("--out", metavar="FILE", required=True, phrase=Phrase("Où l'écrire.", "Where to write it."))
def begin_command(
    config: Path,
    key: Path | None,
    old_journal: Path | None,
    old_ack: Path | None,
    old_vkey: str | None,
    reason: str,
    out: Path,
) -> None:
    """Make the statement of a new epoch."""
    from controller import epoch
    from controller.cli.epoch_change import ended_epoch

    table, signer = _table(config, key)
    keys = _old_keys(old_journal, old_vkey)
    ack = None if old_ack is None else _read(old_ack)
    with progress(here("Vérification de l'ancien journal", "Verifying the old journal")) as step:
        old = ended_epoch(table, keys, old_journal, ack, step)
    note = epoch.draft(signer, old, reason)
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(note)
    except FileExistsError:
        raise Failure("E-OUT-EXISTS", here(f"{out} existe déjà", f"{out} exists already"), UNUSABLE) from None
    tell({"statement": str(out), "note": note}, [*_readable(note), f"{here('écrite dans', 'written to')} {out}"])


# ── sign ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "sign",
    phrase=Phrase(
        "Montre la déclaration à une personne, et y ajoute sa signature.",
        "Show the statement to a person, and add that person's signature.",
    ),
    exits={
        0: Phrase("la signature est ajoutée", "the signature is added"),
        1: Phrase("réponse négative : rien n'est changé", "the answer was no: nothing is changed"),
        2: Phrase("déclaration ou clé inutilisable", "statement or key cannot be used"),
    },
)
@argument("statement", type=click.Path(path_type=Path), phrase=Phrase("La déclaration.", "The statement."))
@path_option("--key", metavar="FILE", required=True, phrase=Phrase("La clé de la personne.", "The person's key."))
@option("--yes", is_flag=True, phrase=Phrase("Sans demander.", "Without asking."))
def sign_command(statement: Path, key: Path, yes: bool) -> None:
    """Sign a statement."""
    from controller import epoch
    from controller.certify.keys import load_key

    signer, note = load_key(key), _read(statement)
    signed = epoch.countersign(note, signer)
    for line in _readable(note):
        click.echo(line, err=True)
    confirm(here(f"Signer comme {signer.name} ?", f"Sign as {signer.name}?"), yes=yes)
    draft = statement.with_name(f"{statement.name}.new")
    draft.write_text(signed, encoding="utf-8")
    draft.replace(statement)
    added = here("signée par", "signed by")
    tell({"statement": str(statement), "signed_by": signer.name}, [f"{added} {signer.name}"])


# ── accept ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "accept",
    phrase=Phrase(
        "Crée le journal de la nouvelle époque ; sa première écriture est la déclaration, avec ses signatures.\n\n"
        "Il faut la signature d'un membre du comité de direction et celle d'un technicien, inscrits dans la "
        "configuration et non révoqués.",
        "Create the journal of the new epoch; its first entry is the statement, with its signatures.\n\n"
        "A director and a technician must have signed who are enrolled in the configuration and not revoked.",
    ),
    exits={
        0: Phrase("le journal est créé", "the journal is created"),
        1: Phrase("réponse négative : rien n'est changé", "the answer was no: nothing is changed"),
        2: Phrase("déclaration, signatures ou emplacement inutilisables", "statement, signatures or place are unfit"),
    },
)
@argument("statement", type=click.Path(path_type=Path), phrase=Phrase("La déclaration.", "The statement."))
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table.", "The table."))
@path_option("--key", metavar="FILE", phrase=Phrase("Sa nouvelle clé privée.", "Its new private key."))
@option("--yes", is_flag=True, phrase=Phrase("Sans demander.", "Without asking."))
def accept_command(statement: Path, config: Path, key: Path | None, yes: bool) -> None:
    """Begin the new epoch."""
    from controller.cli.epoch_change import begin_epoch, judge

    (table, signer), note = _table(config, key), _read(statement)
    signal = judge(table, signer, note)
    for line in _readable(note):
        click.echo(line, err=True)
    file = table.journal.file
    question = here(f"Commencer {table.origin} dans {file} ?", f"Begin {table.origin} in {file}?")
    confirm(question, yes=yes)
    begin_epoch(table, signer, signal, KernelEntropy().hex(8))
    public = file.parent / VKEY
    public.write_text(f"{signer.verifier.vkey}\n", encoding="ascii")
    document = {"journal": str(file), "origin": table.origin, "vkey": signer.verifier.vkey, "vkey_file": str(public)}
    tell(
        document,
        fields([(here("nouvelle époque", "new epoch"), table.origin), (here("journal", "journal"), str(file))]),
    )


# ── What all three need ───────────────────────────────────────────────────────────────────────────────────────────────


def _table(config: Path, key: Path | None) -> tuple[Config, Signer]:
    """The configuration, which must be at a second or later epoch, and the new key."""
    from controller.app import table_key

    table = load(config, {"journal": {"key": str(key.absolute())}} if key else None)
    if table.table.epoch == 1:
        detail = here(
            "table.epoch vaut 1 dans la configuration : y inscrire la nouvelle époque",
            "table.epoch is 1 in the configuration: write the new epoch there",
        )
        raise Failure("E-USAGE", detail, USAGE)
    return table, table_key(table)


def _old_keys(journal: Path | None, vkey: str | None) -> LogKeys | None:
    """The public keys of the old epoch: what was given, or what lies beside the old journal."""
    if journal is not None:
        return target_of(journal, vkey).keys
    if vkey is None:
        return None
    file = Path(vkey)
    return LogKeys.parse(_read(file).strip() if file.exists() else vkey)


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(STATEMENT_BOUND).decode("utf-8", errors="replace")


def _readable(note: str) -> Iterator[str]:
    """The statement as persons read it, and who signed it so far."""
    parsed = parse_note(note)
    yield from fields((line.partition(" ")[0], line.partition(" ")[2]) for line in parsed.text.splitlines()[1:])
    for signature in parsed.signatures:
        yield f"— {signature.name}"
