"""``tablectl simulate``: a whole evening in virtual time, by the code that a table in service runs."""

from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Command, option, path_option, whole_number
from controller.cli.failure import WRONG, Failure
from controller.cli.faults import SYNTAX, plan_of
from controller.cli.folder import fresh_folder
from controller.cli.language import Phrase, here
from controller.cli.output import fields, heading, money, percent, progress, tell
from controller.cli.words import CAUSES, word
from controller.config import load
from controller.rehearsal.evening import Seen
from controller.rehearsal.simulate import JOURNAL, Simulated, StuckError, simulate

LAST_BALLS = 3
"""The fewest rounds of an evening: the three last balls are always played."""


def seen_document(seen: Seen) -> dict[str, Any]:
    """The evening's figures, for programs; money in cents."""
    return {
        "rounds": seen.rounds,
        "voids": seen.voids,
        "incidents": dict(sorted(seen.incidents.items())),
        "staked_cents": seen.staked,
        "returned_cents": seen.returned,
        "won_cents": seen.won,
        "kept_cents": seen.staked - seen.returned - seen.won,
        "closed": seen.closed,
    }


def seen_pairs(seen: Seen) -> list[tuple[str, str]]:
    """The evening's figures, for people."""
    back = seen.returned + seen.won
    causes = ", ".join(f"{word(CAUSES, cause)} ×{times}" for cause, times in sorted(seen.incidents.items()))
    return [
        (here("coups valables", "valid rounds"), str(seen.rounds)),
        (here("coups nuls", "void rounds"), str(seen.voids)),
        (here("incidents", "incidents"), causes or here("aucun", "none")),
        (here("misé", "staked"), money(seen.staked)),
        (here("rendu", "returned"), money(seen.returned)),
        (here("gagné", "won"), money(seen.won)),
        (here("gardé", "kept"), money(seen.staked - back)),
        (here("retour aux joueurs", "return to players"), percent(back, seen.staked)),
    ]


@click.command(
    "simulate",
    cls=Command,
    phrase=Phrase(
        "Joue une soirée en temps virtuel et en écrit le journal.\n\n"
        "Tout le programme d'une table en service, avec un cylindre, des joueurs et un personnel simulés. La même "
        "graine donne la même racine. Les trois dernières billes se jouent toujours.\n\n" + SYNTAX.fr,
        "Play an evening in virtual time and write its journal.\n\n"
        "The whole program of a table in service, with a simulated wheel, players and staff. The same seed gives the "
        "same root. The three last balls are always played.\n\n" + SYNTAX.en,
    ),
    exits={
        0: Phrase("la soirée est jouée et fermée", "the evening is played and closed"),
        1: Phrase("soirée sans fin, ou réponse négative", "an evening without end, or the answer was no"),
        2: Phrase("configuration, défauts ou dossier inutilisables", "configuration, faults or folder cannot be used"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table à jouer.", "The table to be played."))
@option(
    "--coups",
    required=True,
    metavar="N",
    callback=whole_number(LAST_BALLS),
    phrase=Phrase("Coups valables à jouer, 3 ou plus.", "Valid rounds to be played, 3 or more."),
)
@option(
    "--seed",
    default="1",
    metavar="S",
    callback=whole_number(),
    phrase=Phrase("Graine ; 1 sinon.", "Seed; 1 otherwise."),
)
@path_option("--out", metavar="DIR", required=True, phrase=Phrase("Dossier du journal.", "Folder for the journal."))
@option("--faults", metavar="PLAN", phrase=Phrase("Défauts du cylindre, voir plus haut.", "Wheel faults, see above."))
@option("--yes", is_flag=True, phrase=Phrase("Remplace sans demander.", "Replace without asking."))
def command(config: Path, coups: int, seed: int, out: Path, faults: str | None, yes: bool) -> None:
    """Simulate an evening."""
    plan = plan_of(faults)
    load(config)
    fresh_folder(out, yes=yes)
    with progress(here("Coups", "Rounds")) as step:
        try:
            done = simulate(
                config, out, coups=coups, seed=seed, faults=plan, progress=lambda so: step(so.rounds, coups)
            )
        except StuckError as error:
            seen, played_s = error.seen, round(error.played_s)
            french = f"{seen.rounds} coups valables et {seen.voids} coups nuls en {played_s} s de jeu, et pas de fin"
            raise Failure(error.code, here(french, error.detail), WRONG) from None
    document = {
        "journal": str(out / JOURNAL),
        "seed": seed,
        **seen_document(done.seen),
        "played_s": round(done.played_s),
        "refused_orders": done.refused_orders,
        "entries": done.size,
        "root": done.root.hex(),
    }
    tell(document, _lines(out, done))


def _lines(out: Path, done: Simulated) -> list[str]:
    minutes, seconds = divmod(round(done.played_s), 60)
    pairs = [
        *seen_pairs(done.seen),
        (here("durée jouée", "played time"), f"{minutes} min {seconds:02d} s"),
        (here("ordres refusés", "refused orders"), str(done.refused_orders)),
        (here("écritures", "entries"), str(done.size)),
        (here("racine", "root"), done.root.hex()),
    ]
    closing = f"tablectl journal verify {out} · tablectl replay {out}"
    return [heading(f"SIMULATION {out / JOURNAL}"), *fields(pairs, indent="  "), f"  {closing}"]
