"""``tablectl key``: make keys, and show the public half of one. A private half is never shown."""

from pathlib import Path

import click

from controller.certify.faults import KeyFault
from controller.certify.keys import create_key, load_key, person_key_name
from controller.certify.log_keys import LogKeys
from controller.cli import key_persons, key_rotation
from controller.cli.commands import Group, argument, option, path_option
from controller.cli.failure import USAGE, Failure
from controller.cli.language import Phrase, colon, here
from controller.cli.output import fields, tell

FILE_BOUND = 4_096
"""Bytes of a file that is read for a key."""

PRIVATE = "PRIVATE"
"""How a private key begins."""

command = Group(
    "key",
    phrase=Phrase(
        "Clés et personnes : créer, montrer, habiliter, révoquer, changer.",
        "Keys and persons: create, show, enrol, revoke, rotate.",
    ),
)


@command.command(
    "create",
    phrase=Phrase(
        "Crée une clé, lisible par son seul propriétaire, et montre sa moitié publique.\n\n"
        "--config FILE : la clé de cette table, là où sa configuration la cherche, ou dans --out.\n\n"
        "--person BADGE --site SITE --out FILE : la clé d'une personne ; sa moitié publique va dans [[person]].\n\n"
        "Une clé n'est jamais remplacée. Sous systemd : --out FILE, puis systemd-creds encrypt --name=table-key.",
        "Create a key that only its owner can read, and show its public half.\n\n"
        "--config FILE: the key of this table, where its configuration looks for it, or in --out.\n\n"
        "--person BADGE --site SITE --out FILE: a person's key; its public half goes into [[person]].\n\n"
        "A key is never replaced. Under systemd: --out FILE, then systemd-creds encrypt --name=table-key.",
    ),
    exits={
        0: Phrase("la clé est créée", "the key is created"),
        2: Phrase("nom ou emplacement inutilisable", "name or place cannot be used"),
    },
)
@path_option("--config", metavar="FILE", phrase=Phrase("La table.", "The table."))
@option("--person", metavar="BADGE", phrase=Phrase("Le badge d'une personne.", "A person's badge."))
@option("--site", metavar="SITE", phrase=Phrase("Le domaine du casino.", "The casino's domain."))
@path_option("--out", metavar="FILE", phrase=Phrase("Où écrire la clé privée.", "Where to write the private key."))
def create_command(config: Path | None, person: str | None, site: str | None, out: Path | None) -> None:
    """Make a key."""
    if config is not None and person is None and site is None:
        file, name = _table_key(config, out)
    elif person is not None and site is not None and out is not None and config is None:
        file, name = out, person_key_name(site, person)
    else:
        needed = "--config FILE | --person BADGE --site SITE --out FILE"
        raise Failure("E-USAGE", here(f"donner {needed}", f"give {needed}"), USAGE)
    signer = create_key(file, name)
    document = {"name": name, "file": str(file), "vkey": signer.verifier.vkey}
    tell(document, _lines(name, signer.verifier.vkey, file))


def _table_key(config: Path, out: Path | None) -> tuple[Path, str]:
    """Where the key of a table goes, and its name."""
    from controller.config import load

    table = load(config)
    if out is None and table.journal.key.startswith("credential:"):
        detail = here(
            f"la clé de cette table est donnée par systemd ({table.journal.key}) : nommer un fichier par --out",
            f"systemd gives this table its key ({table.journal.key}): name a file with --out",
        )
        raise Failure("E-USAGE", detail, USAGE)
    return out or Path(table.journal.key), table.origin


@command.command(
    "show",
    phrase=Phrase(
        "Montre la moitié publique d'une clé, privée ou publique.", "Show the public half of a key, private or public."
    ),
    exits={
        0: Phrase("la clé est montrée", "the key is shown"),
        2: Phrase("ce n'est pas une clé utilisable", "it is not a key that can be used"),
    },
)
@argument("file", type=click.Path(path_type=Path), metavar="FILE", phrase=Phrase("Le fichier.", "The file."))
def show_command(file: Path) -> None:
    """Show a public key."""
    keys = _public(file)
    vkeys = [verifier.vkey for verifier in keys.verifiers]
    document = {"name": keys.origin, "file": str(file), "vkey": vkeys[-1], "vkeys": vkeys}
    tell(document, [line for vkey in vkeys for line in _lines(keys.origin, vkey, None)])


def _public(file: Path) -> LogKeys:
    with file.open("rb") as opened:
        text = opened.read(FILE_BOUND).decode("ascii", errors="replace").strip()
    if text.startswith(PRIVATE):
        return LogKeys.of(load_key(file).verifier)
    try:
        return LogKeys.parse(text)
    except KeyFault as fault:
        raise Failure(
            fault.code, f"{file}{colon()}{here('ni clé privée ni clé publique', 'neither a private nor a public key')}"
        ) from None


def _lines(name: str, vkey: str, file: Path | None) -> list[str]:
    return fields(
        [
            (here("nom", "name"), name),
            (here("clé publique", "public key"), vkey),
            (here("clé privée", "private key"), str(file) if file else ""),
        ]
    )


for one in (key_persons.persons_command, key_persons.enrol_command, key_persons.revoke_command):
    command.add_command(one)
command.add_command(key_rotation.rotate_command)
