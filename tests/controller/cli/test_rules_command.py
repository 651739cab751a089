"""``tablectl rules``: the text that the house displays says what the law says and what the table does."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.controller.cli.conftest import Run


def told(run: Run, root: Path, example: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        run("rules", "--config", root / "config" / f"{example}.toml", "--json").stdout
    )
    return document


def text(run: Run, config: Path) -> str:
    """The text with its lines joined and its spaces made plain."""
    shown = run("rules", "--config", config).stdout
    return " ".join(shown.replace("\u202f", " ").replace("\u00a0", " ").split())


@pytest.mark.law("55-13")
@pytest.mark.law("55-12")
def test_rules_of_37_pockets_display_pay_outs_and_maxima_of_the_law(run: Run, root: Path) -> None:
    by_kind = {bet["kind"]: bet for bet in told(run, root, "roulette-launcher")["bets"]}
    table = {kind: (bet["numbers"], bet["pays"], bet["maximum_cents"] // 50) for kind, bet in by_kind.items()}
    assert table == {
        "plein": (1, [35, 1], 20),
        "cheval": (2, [17, 1], 40),
        "transversale": (3, [11, 1], 60),
        "carre": (4, [8, 1], 80),
        "sixain": (6, [5, 1], 120),
        "colonne": (12, [2, 1], 240),
        "douzaine": (12, [2, 1], 240),
        "colonnes": (24, [1, 2], 480),
        "douzaines": (24, [1, 2], 480),
        "chance-simple": (18, [1, 1], 360),
    }


@pytest.mark.law("55-3")
@pytest.mark.law("55-2")
def test_rules_of_38_pockets_display_the_five_numbers_and_no_bet_on_24(run: Run, root: Path) -> None:
    by_kind = {bet["kind"]: bet for bet in told(run, root, "roulette-launcher-38")["bets"]}
    assert (by_kind["cinq-numeros"]["pays"], by_kind["cinq-numeros"]["maximum_cents"]) == ([6, 1], 5_000)
    assert not {"colonnes", "douzaines"} & set(by_kind)


def test_returns_displayed_are_those_of_the_arithmetic(run: Run, root: Path) -> None:
    single = {bet["kind"]: bet["return"] for bet in told(run, root, "roulette-launcher")["bets"]}
    double = {bet["kind"]: bet["return"] for bet in told(run, root, "roulette-launcher-38")["bets"]}
    hundredths = lambda share: int((Decimal(10_000) * share).to_integral_value())  # noqa: E731
    assert single["plein"] == hundredths(Decimal(36) / 37)
    assert single["chance-simple"] == hundredths((Decimal(36) + Decimal("0.5")) / 37)
    assert double["chance-simple"] == hundredths(Decimal(36) / 38)
    assert double["cinq-numeros"] == hundredths(Decimal(35) / 38)


@pytest.mark.law("67-15")
def test_rules_of_a_launcher_name_the_director_and_those_of_a_croupier_name_him(
    run: Run, launcher: Path, croupier: Path
) -> None:
    assert "l'appareil annonce le numéro" in text(run, launcher)
    assert "annoncées par un membre du comité de direction" in text(run, launcher)
    assert "Un croupier lance la bille" in text(run, croupier)
    assert "en présence d'un membre du comité de direction" in text(run, croupier)


@pytest.mark.law("55-12")
@pytest.mark.law("55-2")
def test_rules_display_what_zero_does_to_even_chances(run: Run, root: Path) -> None:
    assert "perdent la moitié de la mise" in text(run, root / "config" / "roulette-launcher.toml")
    assert "les chances simples, les douzaines et les colonnes perdent tout" in text(
        run, root / "config" / "roulette-launcher-38.toml"
    )


def test_rules_are_in_french_whatever_the_language(run: Run, launcher: Path) -> None:
    assert run("rules", "--config", launcher).stdout == run("rules", "--config", launcher, "--lang", "fr").stdout


def test_rules_follow_the_options_of_the_house(run: Run, launcher: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    options = "minimum_cents = 200\nplayer_minimum = false\nrandom_combinations = false\nabsence_ms = 1200000"
    options += '\nzero_combinations = ["cheval-0-2"]\nno_more_bets_after_ms = 12000'
    source = launcher.read_text(encoding="utf-8").replace('announcements = ["jeu-zero", "voisins"]', "")
    plain.write_text(source.replace("minimum_cents = 50", options), encoding="utf-8")
    shown = text(run, plain)
    assert "Mise minimum : 2,00 €" in shown
    assert "peut fixer" not in shown
    assert "aléatoires" not in shown
    assert "option de la maison" not in shown
    assert "s'absenter 20 minutes" in shown
    assert "Combinaisons avec zéro : cheval 0-2." in shown
    assert "ou 12 secondes après le lancer" in shown
    assert "Plein 1 35 fois 40,00 €" in shown


@pytest.mark.law("67-15")
def test_rules_say_who_conducts_calls_and_announces(run: Run, launcher: Path, croupier: Path, tmp_path: Path) -> None:
    by_hand, automatic = text(run, croupier), text(run, launcher)
    assert "Le croupier met les postes en service ; un membre du comité de direction valide l'ouverture" in by_hand
    assert "est appelé quand la bille ralentit, ou par le croupier :" in by_hand
    assert "Le croupier vérifie le numéro dans le cylindre et l'annonce." in by_hand
    assert "Un membre du comité de direction met les postes en service, et valide l'ouverture" in automatic
    assert "est appelé quand la bille ralentit :" in automatic
    silent = tmp_path / "silent.toml"
    source = croupier.read_text(encoding="utf-8")
    silent.write_text(source.replace("minimum_cents = 50", "minimum_cents = 50\nbutton_calls_no_more_bets = false"))
    assert "est appelé quand la bille ralentit :" in text(run, silent)


@pytest.mark.parametrize(
    ("example", "combinations"),
    [
        (
            "roulette-croupier",
            "cheval 0-1, cheval 0-2, cheval 0-3, transversale 0-1-2, transversale 0-2-3, carré 0-1-2-3",
        ),
        (
            "roulette-croupier-38",
            "cheval 0-00, cheval 0-1, cheval 0-2, cheval 00-2, cheval 00-3, transversale 0-1-2, transversale 0-00-2, "
            "transversale 00-2-3",
        ),
    ],
)
def test_rules_name_the_combinations_with_zero_by_their_numbers(
    run: Run, root: Path, example: str, combinations: str
) -> None:
    assert f"Combinaisons avec zéro : {combinations}." in text(run, root / "config" / f"{example}.toml")


def test_rules_display_the_digest_that_each_opening_certifies(run: Run, evening: Path, launcher: Path) -> None:
    digest = json.loads(run("rules", "--config", launcher, "--json").stdout)["rules_sha256"]
    opened = run("journal", "export", evening).stdout
    assert f'"rules_sha256":"{digest}"' in opened
    assert digest[:16] in text(run, launcher)
