"""Checks between options: each looks only at sections that are right, and the examples pass them all."""

from pathlib import Path
from typing import Any

import pytest

from controller.certify.note import Signer
from controller.config import load
from controller.contradictions import contradictions
from controller.options import Config, PersonSection
from games.roulette.game import BUTTONS
from games.signals import Role

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "config").glob("*.toml"))
ALL = set(Config.model_fields)


@pytest.fixture
def config() -> Config:
    return load(EXAMPLES[0])


def changed(config: Config, section: str, **options: Any) -> Config:
    """A configuration that its schema permits, whatever contradicts what."""
    return config.model_copy(update={section: getattr(config, section).model_copy(update=options)})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_contradictions_of_every_example_are_none(example: Path) -> None:
    assert list(contradictions(load(example), ALL)) == []


def test_contradictions_are_found_by_every_check_at_once(config: Config) -> None:
    wrong = changed(config, "wheel", silence_ms=500, port=str(config.journal.file))
    wrong = changed(wrong, "panel", buttons={**config.panel.buttons, "zzz": 1}, keys={}, device="usb")
    wrong = changed(wrong, "mqtt", ca=None)
    wrong = changed(wrong, "journal", volatile=True)
    found = {fault.key for fault in contradictions(wrong, ALL)}
    assert found >= {
        "wheel.silence_ms",
        "panel.buttons.zzz",
        "panel.device",
        "person",
        "journal.file",
        "journal.volatile",
        "mqtt",
    }


def test_contradictions_of_sections_that_are_wrong_in_themselves_are_not_guessed(config: Config) -> None:
    only_mqtt = Config.model_construct(mqtt=config.mqtt.model_copy(update={"key": None}))
    assert [fault.key for fault in contradictions(only_mqtt, {"mqtt"})] == ["mqtt"]
    assert list(contradictions(Config.model_construct(), set())) == []


def test_contradictions_of_a_pin_that_serves_three_name_each_place_but_the_first(config: Config) -> None:
    first, second, third = BUTTONS[:3]
    wrong = changed(
        config, "panel", buttons={first: 1, second: 1, third: 1}, keys={"director": 2, "croupier": 3}, lamps={}
    )
    found = [(fault.key, fault.wrong) for fault in contradictions(wrong, ALL)]
    assert found == [
        (f"panel.buttons.{second}", f"pin 1 already serves panel.buttons.{first}"),
        (f"panel.buttons.{third}", f"pin 1 already serves panel.buttons.{first}"),
    ]


def test_key_under_two_badges_is_a_contradiction_because_two_directors_are_two_people(config: Config) -> None:
    def person(badge: str, seed: int) -> PersonSection:
        vkey = Signer(f"casino.example/personne/{badge}", bytes([seed] * 32)).verifier.vkey
        return PersonSection(badge=badge, role=Role.DIRECTOR, vkey=vkey)

    two = config.model_copy(update={"person": [person("d1", 1), person("d2", 2)]})
    assert list(contradictions(two, ALL)) == []
    one = config.model_copy(update={"person": [person("d1", 1), person("d2", 1)]})
    (fault,) = contradictions(one, ALL)
    assert (fault.key, "badge d1" in fault.wrong) == ("person.2.vkey", True)
