"""``tablectl replay``: decide every input of a journal again, by the house rules, and arrive at the same facts."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from controller import history
from controller.certify.leaf import parse_leaf
from controller.certify.reader import Reader
from controller.cli.commands import Command, path_option
from controller.cli.failure import UNUSABLE, WRONG, Failure
from controller.cli.language import Phrase, here
from controller.cli.output import fields, heading, progress, tell
from controller.cli.target import Past, Target, target_of, target_options
from controller.codec import CodecError, decode_fact, to_plain
from controller.config import load
from controller.options import Config
from drivers.clock import SystemClock
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.seance import SeanceOpened

OPENED = f'"type":"{SeanceOpened.KIND}"}}'.encode()
"""How the leaf of an opening ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found. The end was compared with the fold from entry ``restored_from``, that of the snapshot."""

    entries: int
    decisions: int
    seances: int
    restored_from: int
    took_us: int

    @property
    def facts_per_s(self) -> int:
        """How fast it went."""
        return self.entries * 1_000_000 // max(1, self.took_us)

    @property
    def document(self) -> dict[str, Any]:
        """For programs."""
        return {**to_plain(self), "facts_per_s": self.facts_per_s, "agrees": True}

    @property
    def lines(self) -> list[str]:
        """For people."""
        pairs = [
            (here("écritures", "entries"), str(self.entries)),
            (here("décisions", "decisions"), str(self.decisions)),
            (here("séances", "séances"), str(self.seances)),
            (here("vitesse", "speed"), here(f"{self.facts_per_s} faits/s", f"{self.facts_per_s} facts/s")),
        ]
        agreed = here("chaque décision est la même, octet pour octet", "every decision is decided alike, byte for byte")
        return [*fields(pairs, indent="  "), "  " + click.style(agreed, fg="green")]


def replay_target(target: Target, config: Config) -> Replay:
    """Decide a whole journal again.

    Raises Failure: E-REPLAY-DIFFERS, E-REPLAY-RULES, E-REPLAY-STATE, E-LEAF-…; and JournalFault.
    """
    clock, game, openings = SystemClock(), Roulette(config.rules), list[int]()
    began_us = clock.mono_us()
    with closing(Reader(target.file)) as reader, progress(here("Nouvelle décision", "Deciding again")) as step:
        past = Past(target.file, reader)
        leaves = _checked(past.leaves(0, past.size), config.rules_sha256, openings)
        try:
            final, done = history.replay(game, leaves, lambda now: step(now.entries, past.size))
            took_us = clock.mono_us() - began_us
            restored = history.restore(game, past, RouletteState)
        except history.ReplayError as error:
            raise Failure("E-REPLAY-DIFFERS", str(error).removeprefix("E-REPLAY-DIFFERS "), WRONG) from None
        except history.RestoreError as error:
            raise Failure(error.code, error.detail, WRONG) from None
        except CodecError as error:
            raise Failure("E-REPLAY-UNREADABLE", str(error), UNUSABLE) from None
        taken = past.latest_snapshot()
    if to_plain(final) != to_plain(restored):
        detail = here(
            "l'état décidé à nouveau n'est pas celui que donnent l'instantané et les écritures",
            "the state decided again is not the one that the snapshot and the entries give",
        )
        raise Failure("E-REPLAY-STATE", detail, WRONG)
    return Replay(
        entries=done.entries,
        decisions=done.decisions,
        seances=len(openings),
        restored_from=taken[0] if taken else 0,
        took_us=took_us,
    )


def _checked(leaves: Iterable[bytes], rules_sha256: str, openings: list[int]) -> Iterator[bytes]:
    """The leaves, each well formed; an opening under other house rules ends the replay before it misleads anybody."""
    for index, leaf in enumerate(leaves):
        if leaf.endswith(OPENED):
            _check_opening(index, leaf, rules_sha256)
            openings.append(index)
        yield leaf


def _check_opening(index: int, leaf: bytes, rules_sha256: str) -> None:
    envelope = parse_leaf(leaf)
    opened = decode_fact(envelope.kind, json.loads(envelope.data))
    if isinstance(opened, SeanceOpened) and opened.rules_sha256 != rules_sha256:
        detail = here(
            f"écriture {index} : la séance {opened.seance} a été ouverte sous d'autres règles "
            f"({opened.rules_sha256[:16]}…, ici {rules_sha256[:16]}…)",
            f"entry {index}: séance {opened.seance} was opened under other rules "
            f"({opened.rules_sha256[:16]}…, here {rules_sha256[:16]}…)",
        )
        raise Failure("E-REPLAY-RULES", detail, UNUSABLE)


@click.command(
    "replay",
    cls=Command,
    phrase=Phrase(
        "Décide à nouveau tout un journal.\n\n"
        "Chaque entrée est décidée par les règles de la maison, et doit donner les mêmes faits, octet pour octet. Les "
        "signatures se vérifient par « tablectl journal verify ».",
        "Decide a whole journal again.\n\n"
        "Each input is decided by the house rules and must give the same facts, byte for byte. Signatures are verified "
        "by `tablectl journal verify`.",
    ),
    exits={
        0: Phrase("chaque décision est la même", "every decision is decided alike"),
        1: Phrase("une écriture diffère ; elle est nommée", "an entry differs; it is named"),
        2: Phrase("configuration ou règles inutilisables", "configuration or rules cannot be used"),
        5: Phrase("le journal ne peut pas être lu", "the journal cannot be read"),
    },
)
@target_options
@path_option(
    "--config",
    metavar="FILE",
    phrase=Phrase(
        "Les règles de ces séances ; sinon table.toml à côté du journal.",
        "The rules of these séances; otherwise table.toml beside the journal.",
    ),
)
def command(target: Path, vkey: str | None, config: Path | None) -> int:
    """Replay a journal."""
    judged = target_of(target, vkey)
    found = replay_target(judged, load(config or judged.config))
    tell({"journal": str(judged.file), **found.document}, [heading(str(judged.file)), *found.lines])
    return 0
