"""``tablectl status``: what the running table is doing, and every reason that stands in its way."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Command
from controller.cli.language import Phrase, here
from controller.cli.link import SILENT_EXIT, link_to, table_options
from controller.cli.output import columns, fields, heading, money, tell, trouble
from controller.cli.words import CAUSES, CONDITIONS, PHASE_COLOURS, PHASES, ROLES, SEANCES, chip, word

Document = Mapping[str, Any]
"""What the daemon answered, or a part of it."""

QUALITIES = {
    "ntp": Phrase("serveur de temps", "time server"),
    "rtc": Phrase("puce d'horloge", "clock chip"),
    "free": Phrase("non réglée", "not set"),
}

NUMBERS_SHOWN = 10


def reasons(table: Document) -> list[str]:
    """The codes that stand in the way of the next step: of opening, or of the next round; none of what is natural."""
    if table["board"]["seance_phase"] == "closed":
        return list(table["opening_refused_for"])
    return [code for code in table["round_refused_for"] if code not in ("E-ROUND-OPEN", "E-NOBODY-SEATED")]


def status_lines(status: Document) -> Iterator[str]:
    """Everything that a technician asks first."""
    table = status["table"]
    if status["simulation"]:
        yield click.style(" SIMULATION ", fg="black", bg="yellow", bold=True)
    yield heading(f"{status['origin']}")
    yield from fields(_game(table), indent="  ")
    if table["posts"]:
        yield heading(here("Postes", "Posts"))
        yield from post_lines(table["posts"])
    yield heading(here("Compteurs", "Meters"))
    yield from fields(_totals(table["totals"]), indent="  ")
    yield heading(here("Service", "Service"))
    yield from fields([*_delivery(status), *_service(status.get("service", {}))], indent="  ")
    yield from _troubles(status)


def _game(table: Document) -> list[tuple[str, str]]:
    board, incident = table["board"], table["incident"]
    left = board["last_left"]
    last = f", {here('encore', 'left:')} {left}" if board["seance_phase"] == "last" else ""
    keys = ", ".join(word(ROLES, key) for key in table["keys_on"])
    return [
        (here("table", "table"), word(CONDITIONS, table["condition"])),
        (here("séance", "séance"), f"{board['seance'] or '–'}, {word(SEANCES, board['seance_phase'])}{last}"),
        (here("coup", "round"), f"{board['round']}, {phase_text(board)}"),
        (here("incident", "incident"), word(CAUSES, incident["cause"]) if incident else ""),
        (here("numéros", "numbers"), "".join(map(chip, board["last_numbers"][:NUMBERS_SHOWN]))),
        (here("clés", "keys"), keys),
        (here("à certifier", "to be certified"), ", ".join(table["statements_awaited"])),
    ]


def phase_text(board: Document) -> str:
    """The phase in its colour, with what the croupier must look at."""
    phase = board["phase"]
    text = click.style(word(PHASES, phase), fg=PHASE_COLOURS.get(phase), bold=True)
    number = board["detected"] or board["dialled"]
    return f"{text} {chip(number)}" if number else text


def post_lines(posts: Document) -> list[str]:
    """The occupied posts: credit, stakes, and what is unusual."""
    head = (here("n°", "no."), here("crédit", "credit"), here("misé", "staked"), "")
    rows = [
        (str(number), money(post["credit"]), money(post["staked"]) if post["staked"] else "", _post_note(post))
        for number, post in posts.items()
    ]
    return columns([head, *rows], right=(0, 1, 2), indent="  ")


def _post_note(post: Document) -> str:
    minimum = here(f"mise minimum {money(post['minimum'])}", f"minimum stake {money(post['minimum'])}")
    notes = [minimum] if post["minimum"] else []
    return ", ".join(notes + ([here("absent", "away")] if post["away"] else []))


def _totals(totals: Mapping[str, int]) -> list[tuple[str, str]]:
    kept = totals["staked"] - totals["returned"] - totals["won"]
    return [
        (here("crédité", "credited"), money(totals["credited"])),
        (here("misé", "staked"), money(totals["staked"])),
        (here("rendu", "returned"), money(totals["returned"])),
        (here("gagné", "won"), money(totals["won"])),
        (here("gardé", "kept"), money(kept)),
        (here("payé", "paid out"), money(totals["paid_out"])),
        (here("consigné", "consigned"), money(totals["consigned"])),
    ]


def _delivery(status: Document) -> list[tuple[str, str]]:
    delivery, wheel = status["delivery"], status["wheel"]
    link = here("reçu", "heard") if wheel["link_is_up"] else here("muet", "silent")
    return [
        (here("journal", "journal"), here(f"{status['journal_size']} écritures", f"{status['journal_size']} entries")),
        (here("livraison", "delivery"), delivery_text(delivery)),
        (here("entrées en attente", "inputs waiting"), str(status["inbox"])),
        (here("cylindre", "wheel"), ", ".join(filter(None, (link, wheel["firmware"], wheel["fault"])))),
    ]


def delivery_text(delivery: Document) -> str:
    """Whether the broker hears the table, and how much waits for it."""
    state = here("reliée", "connected") if delivery["connected"] else here("non reliée", "not connected")
    colour = "green" if delivery["connected"] else "yellow"
    waiting = here(f"{delivery['waiting']} en attente", f"{delivery['waiting']} waiting")
    halted = delivery.get("halted")
    return f"{click.style(state, fg=colour)}, {waiting}" + (f", {click.style(halted, fg='red')}" if halted else "")


def _service(service: Document) -> Iterator[tuple[str, str]]:
    if not service:
        return
    lag, board = service["lag"], service.get("board") or {}
    late = here(f"au pire {lag['worst_us'] // 1_000} ms", f"at worst {lag['worst_us'] // 1_000} ms")
    late += here(f", {lag['late_beats']} retards", f", late {lag['late_beats']} times") if lag["late_beats"] else ""
    yield here("boucle", "loop"), late
    yield here("horloge", "clock"), word(QUALITIES, service["time_quality"])
    if "temperature_mc" in board:
        yield here("température", "temperature"), f"{board['temperature_mc'] // 1_000} °C"
    if board.get("undervoltage"):
        yield here("tension", "supply"), click.style(here("trop basse", "too low"), fg="red")


def _troubles(status: Document) -> Iterator[str]:
    """Faults of the parts, then what stands in the way of the next step."""
    table, withheld = status["table"], status.get("service", {}).get("withheld", "")
    faults = dict(status["faults"]) | ({"E-SERVICE-AILING": withheld} if withheld else {})
    if halted := status["delivery"].get("halted"):
        faults[halted] = faults.get(halted, "")
    if faults:
        yield heading(here("Défauts", "Faults"))
        for code, detail in faults.items():
            yield from trouble(code, detail)
    if codes := reasons(table):
        closed = table["board"]["seance_phase"] == "closed"
        yield heading(
            here("Pourquoi la séance n'ouvre pas", "Why the séance does not open")
            if closed
            else here("Pourquoi le coup suivant ne commence pas", "Why the next round does not begin")
        )
        for code in codes:
            yield from trouble(code, reason_detail(code, table["health"]))


def reason_detail(code: str, health: Document) -> str:
    """What the devices said about a reason."""
    match code:
        case "E-WHEEL-FAULTY":
            return ", ".join(f"{word(CAUSES, kind)} ({detail})" for kind, detail in health["faults"].items())
        case "E-WHEEL-NOT-VERIFIED":
            return "; ".join(health["differences"])
        case "E-WHEEL-SILENT":
            return ", ".join(health["links_lost"])
        case _:
            return ""


@click.command(
    "status",
    cls=Command,
    phrase=Phrase(
        "Ce que fait la table en marche : jeu, postes, compteurs, livraison, défauts.\n\n"
        "Pour chaque défaut et chaque empêchement : son code, ce qu'il veut dire, ce qu'il faut faire.",
        "What the running table is doing: game, posts, meters, delivery, faults.\n\n"
        "For each fault and each hindrance: its code, what it means, what to do.",
    ),
    exits={
        0: Phrase("la table a répondu", "the table answered"),
        2: Phrase("configuration inutilisable", "configuration cannot be used"),
        3: SILENT_EXIT,
    },
)
@table_options
def command(config: Path | None, socket: Path | None) -> None:
    """Show the status."""
    status = link_to(config, socket).ask()
    tell(status, status_lines(status))
