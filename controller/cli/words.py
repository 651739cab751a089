"""The words of the floor, in both languages: phases, causes, roles, pockets."""

from collections.abc import Mapping

import click

from controller.cli.language import Phrase, here
from games.roulette.layout import RED
from games.signals import Person

PHASES: Mapping[str, Phrase] = {
    "idle": Phrase("Patientez", "Between rounds"),
    "betting": Phrase("Faites vos jeux", "Place your bets"),
    "no_more_bets": Phrase("Rien ne va plus", "No more bets"),
    "verifying": Phrase("Rien ne va plus, numéro à confirmer", "No more bets, number to be confirmed"),
    "manual": Phrase("Incident : mode manuel", "Incident: manual mode"),
    "halted": Phrase("Jeu suspendu", "Play is halted"),
}

PHASE_COLOURS: Mapping[str, str] = {
    "idle": "white",
    "betting": "green",
    "no_more_bets": "red",
    "verifying": "yellow",
    "manual": "magenta",
    "halted": "magenta",
}

SEANCES: Mapping[str, Phrase] = {
    "closed": Phrase("séance fermée", "no séance open"),
    "open": Phrase("séance ouverte", "séance open"),
    "last": Phrase("les trois dernières", "the three last balls"),
    "ended": Phrase("trois dernières jouées, à fermer", "last balls played, to be closed"),
}

CONDITIONS: Mapping[str, Phrase] = {
    "manual": Phrase("mode manuel", "manual mode"),
    "degraded": Phrase("diminuée : voir les défauts", "degraded: see the faults"),
    "closed": Phrase("fermée", "closed"),
    "ready": Phrase("prête", "ready"),
    "game": Phrase("en jeu", "a round is open"),
}

CAUSES: Mapping[str, Phrase] = {
    "ball_missing": Phrase("pas de bille", "no ball"),
    "ball_not_in_track": Phrase("la bille n'est pas dans la gorge", "the ball is not in its track"),
    "ball_with_rotor": Phrase("la bille tourne avec le plateau", "the ball turns with the rotor"),
    "bouton": Phrase("bouton du croupier", "croupier's button"),
    "declared": Phrase("déclaré par le personnel", "declared by staff"),
    "launch_failed": Phrase("lancer manqué", "failed launch"),
    "launch_not_ordered": Phrase("lancer non demandé", "launch that nobody ordered"),
    "launch_not_seen": Phrase("lancer non vu", "launch not seen"),
    "no_more_bets_undetected": Phrase("rien ne va plus non détecté", "no more bets not detected"),
    "number_contradicted": Phrase("numéro contredit", "number contradicted"),
    "number_undetected": Phrase("numéro non détecté", "number not detected"),
    "pocket_unknown": Phrase("case inconnue", "unknown pocket"),
    "power_cut": Phrase("coupure de courant", "power cut"),
    "result_missed": Phrase("résultat manqué", "missed result"),
    "result_of_another_spin": Phrase("résultat d'un autre lancer", "result of another spin"),
    "rotor_not_alternating": Phrase("sens du plateau non alterné", "rotor did not alternate"),
    "rotor_speed": Phrase("vitesse du plateau", "rotor speed"),
    "self_test": Phrase("défaut de l'autotest", "self-test fault"),
    "sensor_fault": Phrase("défaut de capteur", "sensor fault"),
    "stopped": Phrase("le cylindre s'est arrêté", "the wheel stopped itself"),
    "parameter_drift": Phrase("réglages changés", "changed parameters"),
    "wheel_silent": Phrase("cylindre muet", "wheel silent"),
}

ROLES: Mapping[str, Phrase] = {
    "director": Phrase("membre du comité de direction", "director"),
    "croupier": Phrase("croupier", "croupier"),
    "cashier": Phrase("caissier", "cashier"),
    "technician": Phrase("technicien", "technician"),
}

DIRECTIONS: Mapping[str, Phrase] = {
    "clockwise": Phrase("sens horaire", "clockwise"),
    "counterclockwise": Phrase("sens antihoraire", "counterclockwise"),
}


def word(words: Mapping[str, Phrase], name: str) -> str:
    """A word of a list; a name that is not in it stands for itself."""
    return str(words.get(name, name))


def who(person: Person | None) -> str:
    """``director (key)``, ``cashier C12``: who acted; the device when nobody did."""
    if person is None:
        return here("l'appareil", "the device")
    if person.badge.startswith("key:"):
        return here(f"{word(ROLES, person.role)} (clé)", f"{word(ROLES, person.role)} (key)")
    return f"{word(ROLES, person.role)} {person.badge}" if person.badge != person.role else word(ROLES, person.role)


def colour_of(pocket: str) -> str:
    """The colour of a pocket: "red", "black", or "green" for the zeros."""
    if pocket in ("0", "00"):
        return "green"
    return "red" if pocket in RED else "black"


COLOURS = {"red": Phrase("rouge", "red"), "black": Phrase("noir", "black"), "green": Phrase("vert", "green")}


def chip(pocket: str) -> str:
    """A pocket as a small coloured sign."""
    return click.style(f" {pocket:>2} ", fg="bright_white", bg=colour_of(pocket), bold=True)


def spoken(pocket: str) -> str:
    """``17 noir``: a pocket as it is announced, in its colour."""
    colour = colour_of(pocket)
    text = f"{pocket} {COLOURS[colour]}"
    return click.style(f" {text} ", fg="bright_white", bg=colour, bold=True)
