"""``tablectl mirror``: run the reference central service, see what it holds, and take the evidence of a fork out."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Group, argument, path_option
from controller.cli.failure import DONE, UNUSABLE, WRONG, Failure
from controller.cli.language import Phrase, here
from controller.cli.output import columns, dim, fields, heading, tell, trouble
from controller.mirror.store import Evidence, Held, Store

command = Group(
    "mirror",
    phrase=Phrase(
        "Le service central de référence : il garde ce que les tables certifient, et acquitte.",
        "The reference central service: it keeps what the tables certify, and acknowledges.",
    ),
)

_CONFIG = Phrase("La configuration du service (voir config/mirror/mirror.toml).", "The service's configuration.")
_UNUSABLE = Phrase("configuration, clé, politique ou base inutilisable", "configuration, key, policy or store unusable")


# ── run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "run",
    phrase=Phrase(
        "Suit les tables jusqu'à ce qu'on l'arrête (SIGTERM, Ctrl-C).\n\n"
        "Il vérifie chaque écriture, la garde, et seulement alors contre-signe. Il peut être tué à tout moment.",
        "Follow the tables until stopped (SIGTERM, Ctrl-C).\n\n"
        "It verifies each entry, keeps it, and only then cosigns. It may be killed at any moment.",
    ),
    exits={
        0: Phrase("arrêté à la demande", "stopped as asked"),
        1: Phrase("la base a fait défaut : relancer", "the store failed: start again"),
        2: _UNUSABLE,
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=_CONFIG)
def run_command(config: Path) -> int:
    """Run the service."""
    from controller import log
    from controller.mirror.app import serve
    from controller.mirror.options import load
    from drivers.clock import SystemClock

    options = load(config)
    log.configure(SystemClock())
    return serve(options, config)


# ── key ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "key",
    phrase=Phrase(
        "Crée la clé d'un service central ou d'un témoin, et montre sa moitié publique.\n\n"
        "Un témoin a une autre clé que le service central. Une clé n'est jamais remplacée.",
        "Create the key of a mirror or a witness, and show its public half.\n\n"
        "A witness has another key than the mirror. A key is never replaced.",
    ),
    exits={
        0: Phrase("la clé est créée", "the key is created"),
        2: Phrase("nom ou emplacement inutilisable", "name or place cannot be used"),
    },
)
@argument("name", phrase=Phrase("Son nom, par exemple casino.example/mirror.", "Its name, like casino.example/mirror."))
@path_option("--out", metavar="FILE", required=True, phrase=Phrase("Où écrire la clé privée.", "Where to write it."))
def key_command(name: str, out: Path) -> None:
    """Make a cosigning key."""
    from controller.certify.keys import create_cosigner_key

    vkey = create_cosigner_key(out, name).verifier.vkey
    shown = [(here("nom", "name"), name), (here("clé publique", "public key"), vkey)]
    tell(
        {"name": name, "file": str(out), "vkey": vkey}, fields([*shown, (here("clé privée", "private key"), str(out))])
    )


# ── status ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "status",
    phrase=Phrase(
        "Ce qui est gardé de chaque journal. Le service peut tourner ou non.",
        "What is held of each journal. The service may run or not.",
    ),
    exits={
        0: Phrase("tout ce qui fut signé est là, et acquitté", "all that was signed is here, and acknowledged"),
        1: Phrase(
            "il manque des écritures, ou une table est revenue en arrière, ou deux histoires existent",
            "entries are missing, or a table went back, or there are two histories",
        ),
        2: _UNUSABLE,
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=_CONFIG)
def status_command(config: Path) -> int:
    """Show each journal."""
    store, known = _store_of(config)
    with closing(store):
        held = {one.origin: one for one in store.held()}
    rows = [held.get(origin, Held(origin=origin)) for origin in sorted({*known, *held})]
    strangers = {origin for origin in held if origin not in known}
    tell([_document(one, one.origin in strangers) for one in rows], _status_lines(rows, strangers))
    return DONE if all(_is_well(one) for one in rows) else WRONG


def _store_of(config: Path) -> tuple[Store, tuple[str, ...]]:
    """The store of a configuration, to look at, and the origins of its policy."""
    from controller.mirror.app import policy_of
    from controller.mirror.options import load
    from controller.mirror.stores import read_store

    options = load(config)
    origins = tuple(keys.origin for keys in policy_of(options).logs)
    return read_store(options.service.store), origins


def _is_well(held: Held) -> bool:
    whole = held.size >= held.announced and held.cosigned >= max(held.claimed, held.announced)
    return whole and not held.fork and held.latest >= held.announced


def _document(held: Held, stranger: bool) -> dict[str, Any]:
    return {
        "origin": held.origin,
        "size": held.size,
        "announced": held.announced,
        "missing": max(0, held.announced - held.size),
        "cosigned": held.cosigned,
        "claimed": held.claimed,
        "rolled_back_to": held.latest if held.latest < held.announced else None,
        "fork": held.fork or None,
        "heard": _instant(held.heard_ms),
        "in_policy": not stranger,
    }


def _instant(wall_ms: int) -> str | None:
    return datetime.fromtimestamp(wall_ms / 1_000, UTC).isoformat(timespec="seconds") if wall_ms else None


def _status_lines(rows: Sequence[Held], strangers: set[str]) -> Iterator[str]:
    titles = (
        here("journal", "journal"),
        here("gardées", "held"),
        here("acquittées", "cosigned"),
        here("manquent", "missing"),
        here("entendu", "heard"),
    )
    table = [
        (
            one.origin,
            str(one.size),
            str(one.cosigned),
            str(max(0, one.announced - one.size)),
            _instant(one.heard_ms) or "–",
        )
        for one in rows
    ]
    yield from columns([tuple(map(dim, titles)), *table], right={1, 2, 3})
    for one in rows:
        if one.fork:
            yield from trouble("E-MIRROR-FORK", f"{one.origin}, {one.fork}")
        if one.latest < one.announced:
            detail = here(
                f"{one.latest} écritures après {one.announced}", f"{one.latest} entries after {one.announced}"
            )
            yield from trouble("E-MIRROR-ROLLED-BACK", f"{one.origin}, {detail}")
        if one.claimed > one.cosigned:
            yield from trouble("E-MIRROR-RESTORED", f"{one.origin}, {one.cosigned} < {one.claimed}")
        if one.origin in strangers:
            yield from trouble("E-MIRROR-STRANGER", one.origin)


# ── forks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "forks",
    phrase=Phrase(
        "Montre les journaux qui ont deux histoires, et en sort les preuves dans un dossier.\n\n"
        "Les deux branches sont gardées telles qu'elles sont arrivées. Rien n'y est jamais choisi ni effacé.",
        "Show the journals that have two histories, and take the evidence out into a folder.\n\n"
        "Both branches are kept as they came. Nothing of them is ever chosen or erased.",
    ),
    exits={
        0: Phrase("il n'y en a pas", "there are none"),
        1: Phrase("il y en a", "there are some"),
        2: _UNUSABLE,
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=_CONFIG)
@path_option("--out", metavar="FOLDER", phrase=Phrase("Y écrire les preuves.", "Write the evidence there."))
def forks_command(config: Path, out: Path | None) -> int:
    """Show forks and write their evidence."""
    store, _ = _store_of(config)
    with closing(store):
        forks = [(one, store.evidence(one.origin)) for one in store.held() if one.fork]
    written = [str(path) for held, pieces in forks for path in (_write(out, held, pieces) if out else ())]
    document = [
        {"origin": held.origin, "why": held.fork, "size": held.size, "cosigned": held.cosigned, "pieces": len(pieces)}
        for held, pieces in forks
    ]
    tell({"forks": document, "written": written}, _fork_lines(forks, written))
    return WRONG if forks else DONE


def _write(out: Path, held: Held, pieces: Sequence[Evidence]) -> Iterator[Path]:
    """``<origin>/<entry|checkpoint>-<index or size>-<held|other>[-n]``: the bytes as they came."""
    folder = out / held.origin.replace("/", "_")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Failure("E-OUT-EXISTS", here(f"{folder} existe déjà", f"{folder} exists already"), UNUSABLE) from None
    for piece in pieces:
        ending = "json" if piece.kind == "entry" else "note"
        names = (f"{piece.kind}-{piece.at}-{piece.side}{f'-{n}' if n else ''}.{ending}" for n in range(len(pieces)))
        path = next(folder / name for name in names if not (folder / name).exists())
        path.write_bytes(piece.content)
        yield path


def _fork_lines(forks: Sequence[tuple[Held, Sequence[Evidence]]], written: Sequence[str]) -> Iterator[str]:
    if not forks:
        yield click.style(here("aucun journal n'a deux histoires", "no journal has two histories"), fg="green")
    for held, pieces in forks:
        yield heading(held.origin)
        yield from trouble("E-MIRROR-FORK", held.fork)
        yield from fields(
            [
                (here("gardées", "held"), str(held.size)),
                (here("acquittées", "cosigned"), str(held.cosigned)),
                (here("preuves", "evidence"), str(len(pieces))),
            ],
            indent="  ",
        )
    yield from written
