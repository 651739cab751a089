"""``tablectl rules``: the rules that the house must display to the public, in French, made from the configuration.

What the law leaves to the house comes from ``[roulette]``; bets, pay-outs and maxima come from the layout by which the
table plays. So the text can't say anything else than what the table does.
"""

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from controller.cli.commands import Command, path_option
from controller.cli.language import Phrase
from controller.cli.output import columns, heading, tell
from controller.config import load
from controller.french import typeset
from controller.options import Config
from games.money import Cents, euros
from games.roulette.announcements import HouseOption, announcement_names
from games.roulette.layout import ZERO_COMBINATIONS, Bet, BetKind, Wheel, pockets, settle
from games.roulette.rules import Conduct, RouletteRules
from games.seance import EMPTY_ROUNDS_TO_CLOSE, LAST_ROUNDS

WIDTH = 92
"""Columns of the text."""

NAMES: Mapping[BetKind, str] = {
    BetKind.PLEIN: "Plein",
    BetKind.CHEVAL: "À cheval",
    BetKind.TRANSVERSALE: "Transversale",
    BetKind.CARRE: "Carré",
    BetKind.CINQ_NUMEROS: "Cinq numéros (0, 00, 1, 2, 3)",
    BetKind.SIXAIN: "Sixain",
    BetKind.COLONNE: "Colonne",
    BetKind.DOUZAINE: "Douzaine",
    BetKind.COLONNES: "Deux colonnes voisines",
    BetKind.DOUZAINES: "Deux douzaines voisines",
    BetKind.CHANCE_SIMPLE: "Chances simples",
}

SPOKEN: Mapping[BetKind, str] = {
    BetKind.PLEIN: "plein",
    BetKind.CHEVAL: "cheval",
    BetKind.TRANSVERSALE: "transversale",
    BetKind.CARRE: "carré",
}
"""The kinds of the combinations with zero, within a sentence."""

OPTIONS: Mapping[HouseOption, str] = {
    HouseOption.JEU_ZERO: "jeu zéro",
    HouseOption.ORPHELINS_EN_PLEIN: "orphelins en plein",
    HouseOption.FINALE_CHEVAL: "finales à cheval",
    HouseOption.VOISINS: "un numéro et ses deux voisins de chaque côté",
    HouseOption.COMPLET: "un numéro complet",
}


def rules_document(config: Config) -> dict[str, Any]:
    """The rules, for programs; money in cents, returns in ten-thousandths."""
    rules = config.rules
    names = announcement_names(rules.wheel, rules.announcements, rules.zero_combinations)
    return {
        "game": config.game,
        "table": config.origin,
        "posts": rules.posts,
        "wheel": int(rules.wheel),
        "conduct": str(rules.conduct),
        "minimum_cents": rules.minimum,
        "bets": [_bet_document(rules, bet) for bet in _kinds(rules)],
        "zero_combinations": sorted(rules.zero_combinations or ZERO_COMBINATIONS[rules.wheel]),
        "announcements": list(names),
        "random_combinations": rules.random_combinations,
        "player_minimum": rules.player_minimum,
        "absence_ms": rules.absence_ms,
        "last_rounds": LAST_ROUNDS,
        "rules_sha256": config.rules_sha256,
        "text": "\n".join(map(click.unstyle, rules_lines(config))),
    }


def _bet_document(rules: RouletteRules, bet: Bet) -> dict[str, Any]:
    return {
        "kind": str(bet.kind),
        "numbers": len(bet.pockets),
        "pays": [bet.pays_numerator, bet.pays_denominator],
        "maximum_cents": bet.max_stake(rules.minimum),
        "return": expected_return(bet),
    }


def _kinds(rules: RouletteRules) -> list[Bet]:
    """One bet of each kind on the layout, in the order of the law."""
    first: dict[BetKind, Bet] = {}
    for bet in rules.bets.values():
        first.setdefault(bet.kind, bet)
    return [first[kind] for kind in BetKind if kind in first]


def expected_return(bet: Bet) -> int:
    """What a bet gives back in the long run, in ten-thousandths of the stake, to the nearest."""
    stake, every = Cents(2), pockets(bet.wheel)
    back = sum(sum(settle(bet, stake, pocket, bet.wheel)) for pocket in every)
    whole = stake * len(every)
    return (20_000 * back + whole) // (2 * whole)


# ── The text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def rules_lines(config: Config) -> Iterator[str]:
    """The text, section by section."""
    rules = config.rules
    yield heading(f"ROULETTE ÉLECTRONIQUE – TABLE {config.table.name.upper()}")
    yield ""
    yield from _section("Appareil", _device(rules))
    yield from _section("Mises", _stakes(rules))
    yield from _bets(rules)
    yield from _section("Zéro", _zero(rules))
    yield from _section("Annonces", _announcements(rules))
    yield from _section("Déroulement", _course(rules))
    yield from _section("Incident", _incident(rules))
    yield from _section("Absence", _absence(rules))
    yield from _section("Fin de séance", _end(rules))
    yield f"Règles certifiées à l'ouverture de chaque séance sous l'empreinte {config.rules_sha256[:16]}."


def _section(title: str, text: str) -> Iterator[str]:
    yield heading(title)
    yield from textwrap.wrap(typeset(text), WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""


def _device(rules: RouletteRules) -> str:
    wheel = (
        "Cylindre de 37 cases : les numéros 1 à 36 et le zéro (articles 51 et 55-10 de l'arrêté du 14 mai 2007)."
        if rules.wheel is Wheel.SINGLE_ZERO
        else "Cylindre de 38 cases : les numéros 1 à 36, le zéro et le double zéro "
        "(article 55-1 de l'arrêté du 14 mai 2007)."
    )
    conduct = (
        "Un croupier lance la bille et annonce le numéro."
        if rules.conduct is Conduct.CROUPIER
        else "Un lanceur automatique lance la bille, et l'appareil annonce le numéro."
    )
    return f"{wheel} {conduct} {rules.posts} postes de jeu ; un joueur ne peut jouer que sur un seul poste."


def _stakes(rules: RouletteRules) -> str:
    plein = rules.bets["plein-0"].max_stake(rules.minimum)
    own = (
        f" Chaque joueur peut fixer la valeur de sa mise, de {euros(rules.minimum)} à {euros(plein)}."
        if rules.player_minimum
        else ""
    )
    return (
        f"Mise minimum : {euros(rules.minimum)} par combinaison.{own} Les maxima ci-dessous valent pour un joueur, une "
        f"combinaison et un coup. La mise gagnante reste au joueur et s'ajoute au paiement."
    )


def _bets(rules: RouletteRules) -> Iterator[str]:
    head = ("Combinaison", "Numéros", "Paiement", "Maximum", "Retour théorique")
    rows = [
        (
            NAMES[bet.kind],
            str(len(bet.pockets)),
            f"{bet.pays_numerator} fois" if bet.pays_denominator == 1 else "la moitié",
            euros(bet.max_stake(rules.minimum)),
            "{},{:02d}\u202f%".format(*divmod(expected_return(bet), 100)),
        )
        for bet in _kinds(rules)
    ]
    yield from columns([head, *rows], right=(1, 2, 3, 4), indent="  ")
    yield ""


def _zero(rules: RouletteRules) -> str:
    rule = (
        "Quand le zéro sort, les chances simples perdent la moitié de la mise ; l'autre moitié est rendue aussitôt. "
        "Douzaines et colonnes perdent tout."
        if rules.wheel is Wheel.SINGLE_ZERO
        else "Quand le zéro ou le double zéro sort, les chances simples, les douzaines et les colonnes perdent tout."
    )
    names = ZERO_COMBINATIONS[rules.wheel]
    offered = names if rules.zero_combinations is None else [name for name in names if name in rules.zero_combinations]
    told = ", ".join(_spoken(rules.bets[name]) for name in offered) or "aucune autre que le plein"
    return f"{rule} Combinaisons avec zéro : {told}."


def _spoken(bet: Bet) -> str:
    """``carré 0-1-2-3``: a combination by its kind and its numbers; 00 comes after 0."""
    numbers = sorted(bet.pockets, key=lambda pocket: (int(pocket), len(pocket)))
    return f"{SPOKEN[bet.kind]} {'-'.join(numbers)}"


def _announcements(rules: RouletteRules) -> str:
    classic = "voisins du zéro, tiers, orphelins, finales" if rules.wheel is Wheel.SINGLE_ZERO else "finales"
    house = [OPTIONS[option] for option in HouseOption if option in rules.announcements]
    more = f" et, par option de la maison : {' ; '.join(house)}" if house else ""
    chance = " L'appareil propose des combinaisons aléatoires." if rules.random_combinations else ""
    return (
        f"Annonces classiques ({classic}){more}. Une annonce place ses pièces sur les combinaisons du tapis, chacune "
        f"dans ses limites.{chance}"
    )


def _course(rules: RouletteRules) -> str:
    croupier = rules.conduct is Conduct.CROUPIER
    seconds = rules.no_more_bets_after_ms // 1_000
    later = f", ou {seconds} secondes après le lancer" if rules.no_more_bets_after_ms else ""
    called = ", ou par le croupier" if croupier and rules.button_calls_no_more_bets else ""
    pace = "" if croupier else f" {rules.betting_ms // 1_000} secondes pour miser."
    number = (
        "Le croupier vérifie le numéro dans le cylindre et l'annonce."
        if croupier
        else "L'appareil détecte le numéro dans le cylindre et l'annonce."
    )
    return (
        f"{_opening(croupier)} « Faites vos jeux » ouvre le coup.{pace} Le plateau tourne à chaque coup dans le sens "
        f"opposé au précédent. « Rien ne va plus » est appelé quand la bille ralentit{later}{called} : aucune mise "
        f"n'est plus prise. {number} Pour quitter le poste, appuyer sur la touche « paiement »."
    )


def _opening(croupier: bool) -> str:
    """Who begins and ends a séance (the law, electronic roulette)."""
    director = "un membre du comité de direction"
    if croupier:
        return f"Le croupier met les postes en service ; {director} valide l'ouverture et la fermeture de la séance."
    return f"{director.capitalize()} met les postes en service, et valide l'ouverture et la fermeture de la séance."


def _incident(rules: RouletteRules) -> str:
    persons = (
        "le croupier, en présence d'un membre du comité de direction,"
        if rules.conduct is Conduct.CROUPIER
        else "un membre du comité de direction"
    )
    return (
        f"Si « rien ne va plus » ou le numéro n'est pas détecté, et pour tout autre incident, {persons} passe en mode "
        f"manuel. Un coup nul rend exactement toutes les mises. Un membre du comité de direction relance le jeu."
    )


def _absence(rules: RouletteRules) -> str:
    return (
        f"Un joueur peut s'absenter {rules.absence_ms // 60_000} minutes. Au-delà, un membre du comité de direction "
        f"peut suspendre son poste : ce qui s'y trouve est consigné, et va aux orphelins si personne ne le réclame "
        f"avant la fin de la séance."
    )


def _end(rules: RouletteRules) -> str:
    by = "le croupier ou un membre du comité de direction"
    by = by if rules.conduct is Conduct.CROUPIER else "un membre du comité de direction"
    words = {3: "trois"}
    return (
        f"Les {words.get(LAST_ROUNDS, str(LAST_ROUNDS))} dernières billes sont annoncées par {by}. Après "
        f"{words.get(EMPTY_ROUNDS_TO_CLOSE, str(EMPTY_ROUNDS_TO_CLOSE))} coups sans mise, le jeu peut cesser."
    )


@click.command(
    "rules",
    cls=Command,
    phrase=Phrase(
        "Les règles de la maison, telles qu'elles doivent être affichées au public.\n\n"
        "Le texte est en français, quelle que soit la langue ; --json donne aussi les chiffres.",
        "The house rules as they must be displayed to the public.\n\n"
        "The text is in French, whatever the language; --json gives the figures too.",
    ),
    exits={
        0: Phrase("le texte est donné", "the text is given"),
        2: Phrase("configuration inutilisable", "configuration cannot be used"),
    },
)
@path_option("--config", metavar="FILE", required=True, phrase=Phrase("La table.", "The table."))
def command(config: Path) -> None:
    """Print the rules."""
    table = load(config)
    tell(rules_document(table), rules_lines(table))
