"""``tablectl key persons``, ``enrol`` and ``revoke``: who may sign at a table, changed by two directors together."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from controller.certify.leaf import parse_leaf
from controller.certify.note import Verifier
from controller.certify.reader import Reader
from controller.cli.commands import Command, option, path_option
from controller.cli.failure import Failure
from controller.cli.language import Phrase, here
from controller.cli.ordering import give_order, order_options
from controller.cli.output import columns, progress, tell
from controller.cli.target import target_of, target_options
from controller.cli.words import ROLES, word
from controller.codec import decode_fact
from controller.delivery.enrolment import EnrolledPerson, founding_list, in_force
from games.persons import PersonEnrolled, PersonRevoked, Persons, evolve
from games.signals import Role

FILE_BOUND = 4_096
"""Bytes of a file that is read for a key."""

STEP_ENTRIES = 4_096
"""Entries read between two signs of progress."""

_KINDS = tuple(f'"type":"{kind.KIND}"}}'.encode() for kind in (PersonEnrolled, PersonRevoked))


# ── persons ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Change:
    """The last entry that enrolled or revoked a badge."""

    index: int
    time: str


@click.command(
    "persons",
    cls=Command,
    phrase=Phrase(
        "Montre qui peut signer à une table, et depuis quand.\n\n"
        "La liste de fondation vient de --config (sinon de table.toml à côté du journal), le reste des écritures.",
        "Show who may sign at a table, and since when.\n\n"
        "The founding list comes from --config (or table.toml beside the journal), the rest from the entries.",
    ),
    exits={
        0: Phrase("la liste est montrée", "the list is shown"),
        2: Phrase("configuration inutilisable", "the configuration cannot be used"),
        5: Phrase("le journal ne peut pas être lu", "the journal cannot be read"),
    },
)
@target_options
@path_option("--config", metavar="FILE", phrase=Phrase("La configuration de la table.", "The table's configuration."))
def persons_command(target: Path, vkey: str | None, config: Path | None) -> None:
    """List the persons."""
    judged = target_of(target, vkey)
    beside = judged.config if judged.config.exists() else None
    founding = _founding(config or beside)
    with closing(Reader(judged.file)) as reader:
        persons, changes = _changes(reader)
    listed = sorted(in_force(founding, persons).items())
    document = {
        "persons": [
            {
                "badge": badge,
                "role": person.role,
                "vkey": person.vkey,
                "revoked": person.revoked,
                "entry": changes[badge].index if badge in changes else None,
                "since": changes[badge].time if badge in changes else None,
            }
            for badge, person in listed
        ]
    }
    nobody = [here("Personne ne peut signer par un ordre.", "Nobody may sign an order.")]
    tell(document, columns([*_row(person, changes.get(badge))] for badge, person in listed) or nobody)


def _founding(config: Path | None) -> tuple[EnrolledPerson, ...]:
    if config is None:
        return ()
    from controller.config import load

    return founding_list(load(config).person)


def _changes(reader: Reader) -> tuple[Persons, dict[str, Change]]:
    persons, changes, size = Persons(), dict[str, Change](), reader.size
    with progress(here("Lecture", "Reading")) as step:
        for index, leaf in enumerate(reader.leaves(0, size)):
            if leaf.endswith(_KINDS):
                entry = parse_leaf(leaf)
                fact = decode_fact(entry.kind, json.loads(entry.data))
                persons = evolve(persons, fact)
                if isinstance(fact, PersonEnrolled | PersonRevoked):
                    changes[fact.badge] = Change(index, entry.time)
            if index % STEP_ENTRIES == 0:
                step(index, size)
    return persons, changes


def _row(person: EnrolledPerson, change: Change | None) -> Iterator[str]:
    yield person.badge
    yield word(ROLES, person.role)
    yield here("révoqué", "revoked") if person.revoked else here("peut signer", "may sign")
    if change is None:
        yield here("liste de fondation", "founding list")
    else:
        yield here(f"écriture {change.index}, {change.time}", f"entry {change.index}, {change.time}")


# ── enrol and revoke ──────────────────────────────────────────────────────────────────────────────────────────────────

EXITS = {
    0: Phrase("c'est fait et certifié", "it is done and certified"),
    1: Phrase("refusé par la table", "the table refused"),
    2: Phrase("clé ou configuration inutilisable", "key or configuration cannot be used"),
    3: Phrase("la table ne répond pas", "the table does not answer"),
}

TWO_KEYS = Phrase("La clé d'un membre du comité ; à donner deux fois.", "A director's key; to be given twice.")
BADGE = Phrase("Le badge de la personne.", "The person's badge.")


@click.command(
    "enrol",
    cls=Command,
    phrase=Phrase(
        "Enregistre une personne, par l'ordre de deux membres du comité de direction.\n\n"
        "La table doit être en marche. La clé est celle que « key create --person » a montrée.",
        "Enrol a person, by the order of two directors.\n\n"
        "The table must be running. The key is what `key create --person` showed.",
    ),
    exits=EXITS,
)
@order_options
@option("--badge", metavar="BADGE", required=True, phrase=BADGE)
@option(
    "--role", type=click.Choice([role.value for role in Role]), required=True, phrase=Phrase("Sa fonction.", "Role.")
)
@option("--vkey", metavar="FILE|KEY", required=True, phrase=Phrase("Sa clé publique.", "The person's public key."))
@option("--key", "keys", multiple=True, type=click.Path(path_type=Path), metavar="FILE", phrase=TWO_KEYS)
def enrol_command(
    config: Path,
    certificate: Path | None,
    certificate_key: Path | None,
    badge: str,
    role: str,
    vkey: str,
    keys: tuple[Path, ...],
) -> None:
    """Enrol a person."""
    arguments: dict[str, object] = {"badge": badge, "role": role, "vkey": _public_key(vkey)}
    answer = _order(config, (certificate, certificate_key), "person.enrol", arguments, keys)
    entry = answer["index"]
    tell(answer, [here(f"{badge} peut signer, écriture {entry}.", f"{badge} may sign, entry {entry}.")])


@click.command(
    "revoke",
    cls=Command,
    phrase=Phrase(
        "Révoque une personne, par l'ordre de deux membres du comité de direction.\n\n"
        "La table doit être en marche. Une clé révoquée ne revient jamais.",
        "Revoke a person, by the order of two directors.\n\nThe table must be running. A revoked key never comes back.",
    ),
    exits=EXITS,
)
@order_options
@option("--badge", metavar="BADGE", required=True, phrase=BADGE)
@option("--reason", metavar="TEXT", required=True, phrase=Phrase("Pourquoi, en une ligne.", "Why, in one line."))
@option("--key", "keys", multiple=True, type=click.Path(path_type=Path), metavar="FILE", phrase=TWO_KEYS)
def revoke_command(
    config: Path,
    certificate: Path | None,
    certificate_key: Path | None,
    badge: str,
    reason: str,
    keys: tuple[Path, ...],
) -> None:
    """Revoke a person."""
    arguments: dict[str, object] = {"badge": badge, "reason": reason}
    answer = _order(config, (certificate, certificate_key), "person.revoke", arguments, keys)
    entry = answer["index"]
    tell(answer, [here(f"{badge} ne signe plus, écriture {entry}.", f"{badge} signs no more, entry {entry}.")])


def _order(
    config: Path,
    certificate: tuple[Path | None, Path | None],
    verb: str,
    arguments: dict[str, object],
    keys: tuple[Path, ...],
) -> dict[str, Any]:
    from controller.config import load

    if len(keys) != 2:
        detail = here(f"--key a été donné {len(keys)} fois", f"--key was given {len(keys)} times")
        raise Failure("E-SECOND-DIRECTOR", detail)
    return give_order(load(config), certificate, verb, arguments, *keys)


def _public_key(given: str) -> str:
    if "+" in given and not Path(given).exists():
        return Verifier.parse(given).vkey
    with Path(given).open("rb") as opened:
        return Verifier.parse(opened.read(FILE_BOUND).decode("ascii", errors="replace").strip()).vkey
