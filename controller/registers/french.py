"""The French words of the registers. They are part of a document's form: a published form never changes."""

from collections.abc import Mapping

from games.money import euros
from games.signals import Person, Role

CAUSES: Mapping[str, str] = {
    "ball_missing": "pas de bille",
    "ball_not_in_track": "bille hors de la gorge",
    "ball_with_rotor": "bille dans le sens du plateau",
    "bouton": "bouton du pupitre",
    "declared": "déclaré par le personnel",
    "launch_failed": "lancer manqué",
    "launch_not_ordered": "lancer non demandé",
    "launch_not_seen": "lancer non vu",
    "no_more_bets_undetected": "rien ne va plus non détecté",
    "number_contradicted": "numéro contredit",
    "number_undetected": "numéro non détecté",
    "parameter_drift": "réglages du cylindre changés",
    "pocket_unknown": "case inconnue",
    "power_cut": "coupure de courant",
    "result_missed": "résultat non reçu",
    "result_of_another_spin": "résultat d'un autre lancer",
    "rotor_not_alternating": "plateau non alterné",
    "rotor_speed": "vitesse du plateau",
    "self_test": "autotest du cylindre",
    "sensor_fault": "défaut de capteur",
    "slowing_of_another_spin": "ralentissement d'un autre lancer",
    "stopped": "arrêt du cylindre",
    "wheel_silent": "cylindre muet",
}
"""What an incident's cause is called."""

DEVICES: Mapping[str, str] = {"wheel": "cylindre", "panel": "pupitre"}
"""What a device is called."""

ROLES: Mapping[Role, str] = {
    Role.DIRECTOR: "MCD",
    Role.CROUPIER: "croupier",
    Role.CASHIER: "caissier",
    Role.TECHNICIAN: "technicien",
}
"""A role before a badge; MCD is the membre du comité de direction."""


def cause(name: str) -> str:
    """A cause, or the reason that a person gave: one line of text."""
    return CAUSES.get(name, " ".join(name.split()))


def who(person: Person | None) -> str:
    """``MCD D1``, ``croupier (clé)``: who acted; the device when nobody did."""
    if person is None:
        return "l'appareil"
    return f"{ROLES[person.role]} {'(clé)' if person.badge.startswith('key:') else person.badge}"


def amount(cents: int) -> str:
    """``12 345,67``: euros, with plain spaces so that every printer has them."""
    return euros(cents).removesuffix("\u202f€").replace("\u202f", " ")


def moment(time: str) -> str:
    """The time of an entry to the second: ``2026-11-30 20:03:11``."""
    return f"{time[:10]} {time[11:19]}"
