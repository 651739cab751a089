"""``tablectl devices``: wheel, buttons, keys and lamps as the running table sees them, raw beside stable."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Group, option
from controller.cli.failure import DONE, SILENT, WRONG, Failure
from controller.cli.language import Phrase, here
from controller.cli.link import SILENT_EXIT, Link, link_to, table_options
from controller.cli.output import columns, confirm, fields, heading, plain_json, tell, waiting, wants_json
from controller.cli.words import word

Document = Mapping[str, Any]

PERIOD_S = 0.1
"""How often ``watch`` asks: often enough to see a finger on a button."""

SELF_TEST_S = 330.0
"""Patience for the wheel's own test, which may take five minutes."""

COUNTERS = {
    "status": Phrase("lignes d'état", "status lines"),
    "numbers": Phrase("numéros", "numbers"),
    "replies": Phrase("réponses", "replies"),
    "rejected": Phrase("rejetées", "rejected"),
    "glued": Phrase("collées", "glued"),
    "late": Phrase("en retard", "late"),
    "bursts": Phrase("rafales", "bursts"),
    "implausible": Phrase("invraisemblables", "implausible"),
    "strays": Phrase("égarées", "strays"),
    "replies_dropped": Phrase("réponses perdues", "replies dropped"),
}

SHOWN = {"off": Phrase("éteinte", "off"), "on": Phrase("allumée", "on"), "blinking": Phrase("clignote", "blinking")}
"""What a lamp should show."""

SEEN = {
    "raw": Phrase("brut", "raw"),
    "stable": Phrase("stable", "stable"),
    "lit": Phrase("allumée", "lit"),
    "port": Phrase("port", "port"),
    "link": Phrase("liaison", "link"),
}
"""What ``watch`` looks at."""

TROUBLES = {"stuck": Phrase("reste enfoncé", "stuck"), "storm": Phrase("change trop vite", "storm")}
"""What is wrong with an input."""

command = Group(
    "devices",
    phrase=Phrase(
        "Le cylindre, les boutons, les clés et les lampes de la table en marche.",
        "Wheel, buttons, keys and lamps of the running table.",
    ),
)


def device_lines(status: Document) -> Iterator[str]:
    """All devices."""
    yield heading(here("Cylindre", "Wheel"))
    yield from fields(_wheel(status["wheel"]), indent="  ")
    panel = status["panel"]
    if panel is None:
        yield heading(here("Pupitre : aucun", "Panel: none"))
        return
    yield heading(here("Boutons et clés", "Buttons and keys"))
    yield from columns([_input_head(), *map(_input, panel["inputs"])], right=(3, 4, 5, 6), indent="  ")
    if panel["lamps"]:
        yield heading(here("Lampes", "Lamps"))
        yield from columns([_lamp_head(), *map(_lamp, panel["lamps"])], indent="  ")


def _wheel(wheel: Document) -> list[tuple[str, str]]:
    port = here("ouvert", "open") if wheel["port_is_open"] else here("fermé", "closed")
    link = here("reçu", "heard") if wheel["link_is_up"] else click.style(here("muet", "silent"), fg="red")
    age = wheel.get("last_line_age_ms")
    counts = ", ".join(f"{word(COUNTERS, name)} {count}" for name, count in wheel["counters"].items() if count)
    last = wheel.get("last_command") or {}
    told = f" ({last['text']})" if last.get("text") else ""
    return [
        (here("port", "port"), f"{port}, {here('ouvertures', 'openings')} {wheel['opened']}"),
        (here("défaut", "fault"), click.style(wheel["fault"], fg="red") if wheel["fault"] else ""),
        (here("liaison", "link"), link),
        (here("logiciel", "firmware"), wheel["firmware"]),
        (here("dernière ligne", "last line"), "" if age is None else here(f"il y a {age} ms", f"{age} ms ago")),
        (here("reçu", "received"), counts or "0"),
        (here("réponses non demandées", "unasked replies"), str(wheel["unasked_replies"])),
        (here("dernière commande", "last command"), f"{last['command']} {last['outcome']}{told}" if last else ""),
    ]


def _input_head() -> tuple[str, ...]:
    return (
        here("nom", "name"),
        here("brut", "raw"),
        here("stable", "stable"),
        here("fronts", "edges"),
        here("changements", "changes"),
        here("parasites", "interference"),
        here("rebonds ms", "bounce ms"),
        here("troubles", "troubles"),
    )


def _lamp_head() -> tuple[str, ...]:
    return (here("nom", "name"), here("montre", "shows"), here("allumée", "lit"), here("défaut", "fault"))


def _level(level: bool | None) -> str:
    if level is None:
        return click.style("?", fg="red")
    return click.style("■", fg="green") if level else "·"


def _input(one: Document) -> tuple[str, ...]:
    statistics = one["statistics"]
    shortest, longest = statistics.get("shortest_bounce_us"), statistics.get("longest_bounce_us")
    bounce = "" if longest is None else f"{_ms(shortest or 0)}–{_ms(longest)}"
    troubles = ", ".join(word(TROUBLES, told) for told in one["troubles"])
    return (
        one["name"],
        _level(one.get("raw")),
        _level(one["stable"]),
        str(statistics["edges"]),
        str(statistics["changes"]),
        str(statistics["interference"]),
        bounce,
        click.style(troubles, fg="red") if troubles else "",
    )


def _ms(us: int) -> str:
    return f"{us // 1_000}{here(',', '.')}{us % 1_000 // 100}"


def _lamp(one: Document) -> tuple[str, ...]:
    fault = one["fault"]
    return one["name"], word(SHOWN, one["shows"]), _level(one.get("lit")), click.style(fault, fg="red") if fault else ""


@command.command(
    "list",
    phrase=Phrase("Tous les appareils, une fois.", "All devices, once."),
    exits={0: Phrase("la table a répondu", "the table answered"), 3: SILENT_EXIT},
)
@table_options
def list_command(config: Path | None, socket: Path | None) -> None:
    """Show the devices."""
    status = link_to(config, socket).ask()
    tell({"wheel": status["wheel"], "panel": status["panel"]}, device_lines(status))


# ── watch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "watch",
    phrase=Phrase(
        "Les appareils en direct, jusqu'à Ctrl-C.\n\n"
        "Le niveau brut est à côté du niveau stable : appuyer sur chaque bouton, et voir. Sans terminal, une ligne par "
        "changement.",
        "The devices, live, until Ctrl-C.\n\n"
        "The raw level is beside the stable one: press each button, and see. Without a terminal, one line for each "
        "change.",
    ),
    exits={0: Phrase("interrompu", "interrupted"), 3: SILENT_EXIT},
)
@table_options
def watch_command(config: Path | None, socket: Path | None) -> int:
    """Show the devices until interrupted."""
    link = link_to(config, socket)
    link.ask()
    try:
        asyncio.run(_draw(link) if sys.stdout.isatty() and not wants_json() else _follow(link))
    except KeyboardInterrupt:
        return DONE
    return SILENT


async def _draw(link: Link) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, screen=True) as live:
        while True:
            status = await link.asked()
            live.update(Text.from_ansi("\n".join(device_lines(status))), refresh=True)
            await asyncio.sleep(PERIOD_S)


async def _follow(link: Link) -> None:
    before: dict[str, Any] = {}
    while True:
        now = levels(await link.asked())
        for name, level in now.items():
            if name in before and before[name] != level:
                click.echo(plain_json({"device": name, **level}) if wants_json() else _change_line(name, level))
        before = now
        await asyncio.sleep(PERIOD_S)


def levels(status: Document) -> dict[str, dict[str, Any]]:
    """What ``watch`` looks at, by the device's name."""
    wheel, panel = status["wheel"], status["panel"] or {"inputs": (), "lamps": ()}
    found: dict[str, dict[str, Any]] = {"wheel": {"port": wheel["port_is_open"], "link": wheel["link_is_up"]}}
    found |= {one["name"]: {"raw": one.get("raw"), "stable": one["stable"]} for one in panel["inputs"]}
    found |= {f"lamp {one['name']}": {"lit": one.get("lit")} for one in panel["lamps"]}
    return found


def _change_line(name: str, level: Mapping[str, Any]) -> str:
    return f"{name:<24} " + "  ".join(f"{word(SEEN, what)} {_level(value)}" for what, value in level.items())


# ── self-test ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "self-test",
    phrase=Phrase(
        "Fait faire au cylindre son propre essai, jusqu'à 5 minutes, séance fermée.",
        "Let the wheel run its own test, up to 5 minutes, while the séance is closed.",
    ),
    exits={
        0: Phrase("aucun défaut", "no fault"),
        1: Phrase("des défauts, pas d'essai, ou réponse négative", "faults, no test, or the answer was no"),
        3: SILENT_EXIT,
    },
)
@table_options
@option("--yes", is_flag=True, phrase=Phrase("Sans demander.", "Without asking."))
def self_test_command(config: Path | None, socket: Path | None, yes: bool) -> int:
    """Test the wheel."""
    link = link_to(config, socket)
    confirm(here("Le cylindre va tourner. Commencer ?", "The wheel will turn. Begin?"), yes=yes)
    try:
        with waiting(here("Essai du cylindre, jusqu'à 5 minutes", "Testing the wheel, up to 5 minutes")):
            answer = link.ask("self-test", SELF_TEST_S)
    except Failure as failure:
        status = SILENT if failure.code == "E-STATUS-SILENT" else WRONG
        raise Failure(failure.code, failure.detail, status) from None
    report = answer["self_test"]
    tell(report, _self_test_lines(report))
    return DONE if is_well(report) else WRONG


def is_well(report: Document) -> bool:
    """Whether the test was done and told no fault."""
    return report["result"]["outcome"] == "done" and not any(report["codes"])


def _self_test_lines(report: Document) -> Iterator[str]:
    result = report["result"]
    if is_well(report):
        yield click.style(here("aucun défaut", "no fault"), fg="green")
        return
    faults = ", ".join(str(code) for code in report["codes"] if code)
    if faults:
        yield here(f"codes de défaut du cylindre : {faults}", f"fault codes of the wheel: {faults}")
    if result["outcome"] != "done":
        yield f"{result['command']} {result['outcome']} {result['text']}"
