"""``tablectl key rotate``: another key for a table, in two steps with an overlap between them.

    no previous_key ──► the new key is made, both keys sign the statement, the next steps are told
    previous_key    ──► may the overlap end? only when both keys' signatures reached those who remember

It changes neither the configuration nor a running table: that is done by hand, at a time of the house's choosing.
"""

import os
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from controller.certify.faults import KeyFault, NoteFault
from controller.certify.keys import create_key, load_key
from controller.certify.log_keys import LogKeys
from controller.certify.note import Note, Verifier, open_note
from controller.certify.reader import Reader
from controller.certify.rotation import sign_rotation
from controller.cli.commands import Command, path_option
from controller.cli.failure import UNUSABLE, USAGE, WRONG, Failure
from controller.cli.language import Phrase, colon, here
from controller.cli.output import fields, tell
from controller.cli.public_keys import public_keys
from controller.cli.target import VKEY
from controller.config import load
from controller.options import Config

_NUMBERED = re.compile(r"(.*)-([1-9][0-9]{0,5})")


@click.command(
    "rotate",
    cls=Command,
    phrase=Phrase(
        "Change la clé d'une table, avec un recouvrement.\n\n"
        "D'abord : crée la nouvelle clé, écrit la déclaration signée par les deux clés, et dit quoi faire.\n\n"
        "Tant que previous_key est donnée, les deux clés signent. Redonner alors la commande : elle dit si le "
        "recouvrement peut finir, c'est-à-dire si le miroir a contresigné un point de contrôle signé des deux.",
        "Change the key of a table, with an overlap.\n\n"
        "First: makes the new key, writes the statement that both keys signed, and says what to do.\n\n"
        "As long as previous_key is given, both keys sign. Then give the command again: it says whether the overlap "
        "may end, that is, whether the mirror cosigned a checkpoint that both signed.",
    ),
    exits={
        0: Phrase("fait, ou le recouvrement peut finir", "done, or the overlap may end"),
        1: Phrase("le recouvrement ne peut pas encore finir", "the overlap may not end yet"),
        2: Phrase("configuration, clé ou emplacement inutilisable", "configuration, key or place cannot be used"),
        5: Phrase("le journal ne peut pas être lu", "the journal cannot be read"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table.", "The table."))
@path_option("--out", metavar="FILE", phrase=Phrase("Où écrire la nouvelle clé.", "Where to write the new key."))
@path_option(
    "--current",
    metavar="FILE",
    phrase=Phrase(
        "La clé actuelle, si systemd la garde : systemd-creds decrypt FICHIER.",
        "The present key, if systemd keeps it: systemd-creds decrypt FILE.",
    ),
)
def rotate_command(config: Path, out: Path | None, current: Path | None) -> int:
    """Begin a change of the table's key, or say whether it may end."""
    table = load(config)
    return _begin(table, out, current) if table.journal.previous_key is None else _end(table)


# ── The beginning ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _begin(table: Config, out: Path | None, current: Path | None) -> int:
    sealed = table.journal.key.startswith("credential:")
    if sealed and (out is None or current is None):
        detail = here(
            f"systemd garde la clé de cette table ({table.journal.key}) : donner --current et --out",
            f"systemd keeps the key of this table ({table.journal.key}): give --current and --out",
        )
        raise Failure("E-USAGE", detail, USAGE)
    old_file = current or Path(table.journal.key)
    new_file = out or _next(old_file)
    old = load_key(old_file)
    if old.name != table.origin:
        raise Failure("E-KEY-OTHER", f"{old_file}{colon()}{old.name} ≠ {table.origin}", UNUSABLE)
    statement_file = new_file.with_name(f"{new_file.name}.rotation")
    new = create_key(new_file, table.origin)
    statement = sign_rotation(old, new)
    _write(statement_file, statement)
    published = _publish(table.journal.file.with_name(VKEY), new.verifier)
    steps = _sealed_steps(table, new_file) if sealed else _steps(table, new_file)
    pairs = [
        (here("table", "table"), table.origin),
        (here("nouvelle clé", "new key"), str(new_file)),
        (here("clé publique", "public key"), new.verifier.vkey),
        (here("déclaration", "statement"), str(statement_file)),
        (here("clés publiques", "public keys"), str(published) if published else ""),
    ]
    document = {
        "origin": table.origin,
        "file": str(new_file),
        "vkey": new.verifier.vkey,
        "old_vkey": old.verifier.vkey,
        "statement": str(statement_file),
        "steps": steps,
    }
    tell(document, [*fields(pairs), *_numbered(steps)])
    return 0


def _next(current: Path) -> Path:
    """``table.key`` is followed by ``table-2.key``, and that by ``table-3.key``."""
    numbered = _NUMBERED.fullmatch(current.stem)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (current.stem, 1)
    return current.with_name(f"{stem}-{number + 1}{current.suffix}")


def _write(file: Path, statement: str) -> None:
    """The statement is public, but it is never overwritten. Raises KeyFault (E-KEY-EXISTS) and OSError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise KeyFault("E-KEY-EXISTS", f"{file} exists; a statement is never overwritten") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(statement)
        written.flush()
        os.fsync(descriptor)


def _publish(file: Path, new: Verifier) -> Path | None:
    """Add the new public key to those beside the journal, where there are any: from the overlap on both are needed."""
    if not file.exists():
        return None
    keys = LogKeys.parse(file.read_text(encoding="ascii"))
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(LogKeys.of(*keys.verifiers, new).text, encoding="ascii")
    draft.replace(file)
    return file


def _steps(table: Config, new_file: Path) -> list[str]:
    return [f'[journal] key = "{new_file}", previous_key = "{table.journal.key}"', *_shared_steps()]


def _sealed_steps(table: Config, new_file: Path) -> list[str]:
    name = table.journal.key.removeprefix("credential:")
    sealed = _sealed(table, "-next")
    unit = f"systemctl edit tabled@{table.table.name}"
    load = f"[Service] LoadCredentialEncrypted={name}-next:{sealed}"
    return [
        f"systemd-creds encrypt --name={name}-next {new_file} {sealed}",
        f"{unit}{colon()}{load}",
        f'[journal] key = "credential:{name}-next", previous_key = "{table.journal.key}"',
        here("effacer les clés en clair (--current, --out)", "erase the keys in clear (--current, --out)"),
        *_shared_steps(),
    ]


def _sealed(table: Config, suffix: str = "") -> str:
    """Where the unit looks for a sealed key (systemd/tabled@.service)."""
    return f"/etc/table-controller/keys/{table.table.name}{suffix}.cred"


def _shared_steps() -> list[str]:
    return [
        here(
            "ajouter la nouvelle clé publique à la politique du miroir et de chaque témoin (une ligne log de plus)",
            "add the new public key to the policy of the mirror and of each witness (one log line more)",
        ),
        here("redémarrer la table, séance fermée", "restart the table, with the séance closed"),
        here(
            "plus tard, redonner cette commande : elle dit quand et comment finir",
            "later, give this command again: it says when and how to end",
        ),
    ]


def _last_steps(table: Config) -> list[str]:
    """How the overlap ends. A sealed key gets the name that the unit knows, so that the next change begins like this
    one.
    """
    restart = here("redémarrer la table, séance fermée", "restart the table, with the séance closed")
    name, previous = (str(key).removeprefix("credential:") for key in (table.journal.key, table.journal.previous_key))
    if name == table.journal.key:
        removed = here("ôter previous_key de la configuration", "take previous_key out of the configuration")
        return [removed, restart, here("effacer l'ancienne clé", "erase the old key")]
    resealed = f"systemd-creds encrypt --name={previous} - {_sealed(table)}"
    drop_in = f"LoadCredentialEncrypted={name}"
    return [
        f"systemd-creds decrypt --name={name} {_sealed(table, '-next')} - | {resealed}",
        here(
            f'[journal] key = "credential:{previous}", ôter previous_key',
            f'[journal] key = "credential:{previous}", take previous_key out',
        ),
        here(f"systemctl edit : ôter {drop_in}", f"systemctl edit: take {drop_in} out"),
        restart,
    ]


def _numbered(steps: Sequence[str]) -> list[str]:
    return [here("À faire", "To do"), *(f"  {number}. {step}" for number, step in enumerate(steps, 1))]


# ── The end ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _end(table: Config) -> int:
    keys = public_keys(table)
    if keys is None or len(keys.verifiers) < 2:
        beside = table.journal.file.with_name(VKEY)
        detail = here(
            f"les deux clés publiques sont introuvables (ni les clés, ni {beside})",
            f"the two public keys cannot be found (neither the keys nor {beside})",
        )
        raise Failure("E-KEY-ROTATION", detail, UNUSABLE)
    mirror = None if table.mirror is None else Verifier.parse(table.mirror.vkey)
    with closing(Reader(table.journal.file)) as reader:
        size = _reached(reader, keys, mirror)
    if size is None:
        who = mirror.name if mirror else here("la table", "the table")
        detail = here(
            f"aucun point de contrôle signé des deux clés n'est encore connu de {who}",
            f"no checkpoint that both keys signed is known to {who} yet",
        )
        raise Failure("E-KEY-ROTATION", detail, WRONG)
    steps = _last_steps(table)
    known = here(f"{size} écritures, signées des deux clés", f"{size} entries, signed by both keys")
    if mirror:
        known += here(f", contresignées par {mirror.name}", f", cosigned by {mirror.name}")
    tell({"origin": table.origin, "size": size, "may_end": True, "steps": steps}, [known, *_numbered(steps)])
    return 0


def _reached(reader: Reader, keys: LogKeys, mirror: Verifier | None) -> int | None:
    """The largest size whose checkpoint the last two keys signed, and the mirror, if there is one, cosigned."""
    wanted = [*keys.verifiers[-2:], *([mirror] if mirror else [])]
    for note in reversed(reader.notes(0)):
        try:
            opened = open_note(note, wanted)
        except NoteFault:
            continue
        if _all_signed(opened, wanted):
            return int(opened.text.split("\n")[1])
    return None


def _all_signed(opened: Note, wanted: Sequence[Verifier]) -> bool:
    return all(any(map(key.made, opened.signatures)) for key in wanted)
