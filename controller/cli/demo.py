"""``tablectl demo``: a whole table on this machine, for a newcomer to watch, and its verification at the end."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from controller.certify.policy import NONE, Policy
from controller.certify.verify import Verdict, verify
from controller.cli.commands import Command, option, path_option, whole_number
from controller.cli.entries import published
from controller.cli.failure import DONE, WRONG, Failure
from controller.cli.faults import SYNTAX, plan_of
from controller.cli.language import Phrase, here
from controller.cli.output import cut, dim, fields, heading, plain_json, tell, terminal_width, wants_json
from controller.cli.replay import Replay, replay_target
from controller.cli.simulate import LAST_BALLS, seen_document, seen_pairs
from controller.cli.target import Target, target_of
from controller.cli.verdicts import verdict_document, verdict_lines
from controller.delivery.embedded import BrokerAbsentError
from controller.delivery.topics import Topics
from controller.entropy import KernelEntropy
from controller.rehearsal import centre
from controller.rehearsal.demo import DemoError, Stage, play, prepare
from controller.rehearsal.evening import Seen
from games.roulette.facts import BettingOpened

SEEDS = 1_000_000
"""A demonstration without a seed draws one below this, and tells it."""


@click.command(
    "demo",
    cls=Command,
    phrase=Phrase(
        "Joue une table entière sur cette machine.\n\n"
        "Un vrai serveur de messages, un cylindre sur une vraie ligne série, des joueurs, un personnel, et la table "
        "d'une maison de jeu, sans rien changer au programme. Ctrl-C ferme la table ; le journal est alors vérifié et "
        "décidé à nouveau.\n\n" + SYNTAX.fr,
        "Play a whole table on this machine.\n\n"
        "A real broker, a wheel on a real serial line, players, staff, and the table of a casino, with nothing changed "
        "in the program. Ctrl-C stops the table; then its journal is verified and decided again.\n\n" + SYNTAX.en,
    ),
    exits={
        0: Phrase("le journal est intact et se décide de même", "the journal is intact and is decided alike"),
        1: Phrase("ce n'est pas le cas, ou la table s'est arrêtée", "it is not so, or the table ended by itself"),
        2: Phrase("configuration ou dossier inutilisable", "configuration or folder cannot be used"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table à jouer.", "The table to be played."))
@option(
    "--coups",
    metavar="N",
    callback=whole_number(LAST_BALLS),
    phrase=Phrase("Coups valables, 3 ou plus ; sans fin sinon.", "Valid rounds, 3 or more; otherwise without end."),
)
@option(
    "--speed",
    metavar="N",
    callback=whole_number(1),
    phrase=Phrase("Combien de fois plus vite.", "How many times faster than life."),
)
@option(
    "--seed", metavar="S", callback=whole_number(), phrase=Phrase("Graine ; tirée sinon.", "Seed; otherwise drawn.")
)
@option("--faults", metavar="PLAN", phrase=Phrase("Défauts du cylindre, voir plus haut.", "Wheel faults, see above."))
@path_option(
    "--out",
    metavar="DIR",
    default="var/demo",
    phrase=Phrase("Dossier ; var/demo sinon.", "Folder; otherwise var/demo."),
)
def command(config: Path, coups: int | None, speed: int | None, seed: int | None, faults: str | None, out: Path) -> int:
    """Play a demonstration; the status is that of the verification."""
    plan_of(faults)
    drawn = KernelEntropy().below(SEEDS) if seed is None else seed
    try:
        stage = prepare(config, out, speed=speed, seed=drawn, faults=faults or "", mirrored=True)
        if not wants_json():
            for line in _banner(stage, out):
                click.echo(line)
        seen = asyncio.run(play(stage, coups=coups or 0, on_event=_show))
    except DemoError as error:
        raise Failure(error.code, error.detail, WRONG) from None
    except BrokerAbsentError as error:
        raise Failure(error.code, error.detail) from None
    return _judge(stage, seen)


def _show(event: Mapping[str, Any]) -> None:
    """One certified entry, as it was published: a round begins after an empty line, a terminal cuts long lines."""
    if wants_json():
        click.echo(plain_json(event))
        return
    entry = published(event)
    if isinstance(entry.fact, BettingOpened):
        click.echo()
    width = terminal_width()
    click.echo(cut(entry.line, width) if width else entry.line)


# ── Before ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _banner(stage: Stage, out: Path) -> Iterator[str]:
    table, mqtt = stage.config.table, stage.config.mqtt
    yield click.style(f" SIMULATION  {stage.config.origin} ", fg="black", bg="yellow", bold=True)
    yield from fields(
        [
            (here("table", "table"), f"tabled --config {_short(stage.config_file)}"),
            (here("cylindre", "wheel"), f"{stage.config.roulette.wheel}, {_short(stage.wheel)}"),
            (here("messages", "broker"), f"{stage.config.rehearsal.broker}, {mqtt.host}:{mqtt.port}, MQTT 5"),
            (here("service central", "mirror"), f"tablectl mirror run --config {_short(stage.folder / centre.CONFIG)}"),
            (here("joueurs", "players"), _players(stage.free_post)),
            (here("allure", "pace"), here(f"{stage.speed} fois plus vite", f"{stage.speed} times faster than life")),
            (here("graine", "seed"), str(stage.seed)),
            (here("dossier", "folder"), str(_short(stage.folder))),
        ],
        indent="  ",
    )
    yield ""
    yield here("À essayer dans un autre terminal :", "To be tried in another terminal:")
    tablectl, file = _tablectl(), _short(stage.config_file)
    topics = Topics(stage.config.site, table.name)
    yield f"  {tablectl} watch --config {file}"
    yield f"  {tablectl} status --config {file}"
    yield f"  {tablectl} devices list --config {file}"
    yield f"  {tablectl} journal tail -f {out}"
    yield f"  {tablectl} mirror status --config {_short(stage.folder / centre.CONFIG)}"
    words = f"{mqtt.host} {mqtt.port} {topics.root} {stage.free_post}"
    yield f"  {_short(Path(sys.executable))} docs/examples/post.py {words}"
    yield f"  mosquitto_sub -V 5 -h {mqtt.host} -p {mqtt.port} -v -t '{topics.root}/#'"
    yield ""
    yield dim(here("Ctrl-C ferme la table.", "Ctrl-C stops the table."))
    yield ""


def _players(free: int) -> str:
    """How many posts are played, and which one is left to whoever writes a post of his own."""
    return here(f"{free - 1}, le poste {free} est libre", f"{free - 1}, post {free} is free")


def _short(path: Path) -> Path:
    """A path as seen from here, where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _tablectl() -> str:
    """How this command was called."""
    called = sys.argv[0]
    return called if Path(called).name == "tablectl" else f"{_short(Path(sys.executable))} -m controller.cli"


# ── After ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _judge(stage: Stage, seen: Seen) -> int:
    """Verify the journal and decide it again."""
    target = target_of(stage.config.journal.file, None)
    policy = Policy.parse((stage.folder / centre.POLICY).read_bytes())
    verdict = verify(target.file, target.keys, policy=replace(policy, quorum=NONE))  # an evening may be cut short
    mirrored = centre.cosigned(stage.folder, stage.config.origin)
    replayed: Replay | None = None
    failure: Failure | None = None
    try:
        replayed = replay_target(target, stage.config)
    except Failure as fault:
        failure = fault
    document = {
        **seen_document(seen),
        "verified": verdict_document(target, verdict),
        "mirrored": mirrored,
        "replayed": replayed.document if replayed else {"agrees": False},
    }
    tell(document, _summary(target, seen, verdict, mirrored, replayed))
    if failure is not None:
        raise failure
    return DONE if verdict.ok else WRONG


def _summary(target: Target, seen: Seen, verdict: Verdict, mirrored: int, replayed: Replay | None) -> Iterator[str]:
    yield ""
    yield heading(here("La soirée", "The evening"))
    yield from fields(seen_pairs(seen), indent="  ")
    yield from verdict_lines(target, verdict)
    held = here(f"{mirrored} écritures gardées et contresignées", f"{mirrored} entries kept and cosigned")
    yield from fields([(here("service central", "mirror"), held)], indent="  ")
    if replayed is not None:
        yield from replayed.lines
