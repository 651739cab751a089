"""A configuration: every mistake is told, all at once, with its place, what stands there and what is permitted."""

import copy
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify.keys import person_key_name
from controller.certify.note import KeyType, Signer
from controller.config import load, parse
from controller.config_document import credential
from controller.config_faults import ConfigError, ConfigFault, short
from controller.options import Config, RouletteSection
from games.roulette.announcements import HouseOption
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct, RouletteRules

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "config").glob("*.toml"))
DIRECTOR = Signer(person_key_name("casino.example", "D-01"), bytes(range(32)))
TABLE_KEY = Signer("casino.example/table/t07/1", bytes(range(1, 33)))
MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)
CAISSE = Signer("caisse.example/witness", bytes(range(3, 35)), KeyType.COSIGNATURE)
SECURITY = Signer("securite.example/witness", bytes(range(4, 36)), KeyType.COSIGNATURE)
WITNESS = {"name": "a", "vkey": CAISSE.verifier.vkey}
OTHER_WITNESS = {"name": "b", "vkey": SECURITY.verifier.vkey}
PERSON = {"badge": "D-01", "role": "director", "vkey": DIRECTOR.verifier.vkey}
GONE = object()

Changes = Mapping[str, Any]


def document(changes: Changes, example: str = "roulette-launcher") -> dict[str, Any]:
    """The example, with options set by dotted name or taken out."""
    changed = tomllib.loads((ROOT / "config" / f"{example}.toml").read_text(encoding="utf-8"))
    for name, value in changes.items():
        *sections, option = name.split(".")
        below = changed
        for section in sections:
            below = below.setdefault(section, {})
        if value is GONE:
            del below[option]
        else:
            below[option] = copy.deepcopy(value)
    return changed


def loaded(folder: Path, changes: Changes, example: str = "roulette-launcher") -> Config:
    file = folder / "table.toml"
    file.write_text(tomli_w.dumps(document(changes, example)), encoding="utf-8")
    return load(file)


def faults(folder: Path, changes: Changes, example: str = "roulette-launcher") -> list[ConfigFault]:
    """Everything that is found wrong."""
    with pytest.raises(ConfigError) as caught:
        loaded(folder, changes, example)
    assert caught.value.path == folder / "table.toml"
    return caught.value.faults


MISTAKES: list[tuple[str, Changes, str, str, str]] = [
    # class of mistake, the changes, the option that is named, what stands there, what is said to be permitted
    ("unknown", {"roulette.minimum": 100}, "roulette.minimum", "100", "did you mean minimum_cents?"),
    ("unknown", {"wheel.parameters.firmwares": "V2"}, "wheel.parameters.firmwares", "'V2'", "did you mean firmware?"),
    ("unknown", {"roulete": {"wheel": 37}}, "roulete", "{'wheel': 37}", "did you mean roulette?"),
    ("unknown", {"mqtt.zzz": 1}, "mqtt.zzz", "1", "unknown option"),
    ("unknown", {"panel.keys.cashier": 2}, "panel.keys.cashier", "'cashier'", "'croupier' or 'director'"),
    ("unknown to the game", {"panel.buttons.fermetur": 2}, "panel.buttons.fermetur", "", "did you mean fermeture?"),
    ("unknown to the game", {"panel.buttons.zzz": 2}, "panel.buttons.zzz", "", "permitted: mise-en-service, ouverture"),
    ("unknown to the game", {"panel.lamps.zzz": 2}, "panel.lamps.zzz", "", "permitted: faites-vos-jeux"),
    ("missing", {"roulette.wheel": GONE}, "roulette.wheel", "", "Pockets: 37"),
    ("missing", {"roulette.conduct": GONE}, "roulette.conduct", "", "Who launches the ball"),
    ("missing", {"roulette.minimum_cents": GONE}, "roulette.minimum_cents", "", "Table minimum"),
    ("missing", {"table.site": GONE}, "table.site", "", "Domain of the casino"),
    ("missing", {"wheel": GONE}, "wheel", "", "a section that every table needs"),
    ("missing", {"person": [{"badge": "D-01", "role": "director"}]}, "person.1.vkey", "", "Verifier key"),
    ("out of law", {"roulette.wheel": 36}, "roulette.wheel", "36", "37 or 38"),
    ("out of law", {"roulette.wheel": "37"}, "roulette.wheel", "'37'", "37 or 38"),
    ("out of law", {"roulette.minimum_cents": 4}, "roulette.minimum_cents", "4", "at least 10"),
    ("out of law", {"roulette.minimum_cents": 51}, "roulette.minimum_cents", "51", "multiple of 2"),
    ("out of law", {"roulette.minimum_cents": 0.5}, "roulette.minimum_cents", "0.5", "whole number"),
    ("out of law", {"roulette.conduct": "player"}, "roulette.conduct", "'player'", "'croupier' or 'launcher'"),
    ("out of law", {"roulette.announcements": ["couleur"]}, "roulette.announcements.1", "'couleur'", "'jeu-zero'"),
    ("out of law", {"roulette.absence_ms": 1}, "roulette.absence_ms", "1", "at least 60000"),
    ("out of law", {"table.posts": 0}, "table.posts", "0", "at least 1"),
    ("out of law", {"table.posts": True}, "table.posts", "True", "whole number"),
    ("out of law", {"table.name": "T 7"}, "table.name", "'T 7'", "small letters, digits or dashes"),
    ("out of law", {"panel.buttons.incident": 28}, "panel.buttons.incident", "28", "at most 27"),
    ("out of law", {"mqtt.port": 70_000}, "mqtt.port", "70000", "at most 65535"),
    ("out of law", {"game": "boule"}, "game", "'boule'", "'roulette'"),
    ("contradiction", {"wheel.commands": False}, "wheel.commands", "false", "launcher must obey commands"),
    ("contradiction", {"wheel.rotor_min_mrpm": 30_000}, "wheel.rotor_max_mrpm", "", "must be above 30000"),
    ("contradiction", {"wheel.silence_ms": 500}, "wheel.silence_ms", "", "two status periods or more"),
    ("contradiction", {"wheel.direction_control": True}, "wheel.direction_control", "", "needs option bit 16"),
    (
        "contradiction",
        {"roulette.no_more_bets_after_ms": 20_000},
        "roulette.no_more_bets_after_ms",
        "20000",
        "must be below no_more_bets_limit_ms",
    ),
    (
        "contradiction",
        {"roulette.wheel": 38},
        "roulette.announcements",
        "",
        "sectors of the 37-pocket wheel",
    ),
    (
        "contradiction",
        {"roulette.zero_combinations": ["rouge"]},
        "roulette.zero_combinations",
        "rouge",
        "no combination with zero of a 37-pocket layout",
    ),
    (
        "contradiction",
        {"roulette.zero_combinations": ["cheval-0-00"]},
        "roulette.zero_combinations",
        "cheval-0-00",
        "no combination with zero of a 37-pocket layout",
    ),
    (
        "contradiction",
        {"roulette.button_calls_no_more_bets": True},
        "roulette.button_calls_no_more_bets",
        "true",
        "no effect when the conduct is launcher",
    ),
    ("contradiction", {"mqtt.ca": GONE}, "mqtt", "", "ca, certificate and key together"),
    ("contradiction", {"panel.device": "twin:x.sock"}, "panel.device", "twin:x.sock", "table.simulation must be true"),
    ("contradiction", {"panel.device": "usb"}, "panel.device", "usb", '"gpio", "none" or "twin:SOCKET"'),
    ("contradiction", {"journal.volatile": True}, "journal.volatile", "true", "must survive a power cut"),
    ("contradiction", {"table.site": "a.simulation"}, "table.site", "a.simulation", "table.simulation = true"),
    ("contradiction", {"panel.keys": {}}, "person", "", "enrol a director, or wire the director's key"),
    (
        "contradiction",
        {"panel.keys": {}, "person": [{**PERSON, "revoked": True}]},
        "person",
        "",
        "enrol a director, or wire the director's key",
    ),
    ("contradiction", {"person": [PERSON, PERSON]}, "person.2.badge", "D-01", "enrolled twice"),
    ("contradiction", {"person": [{**PERSON, "badge": "D-02"}]}, "person.1.vkey", DIRECTOR.name, "…/personne/D-02"),
    ("contradiction", {"person": [{**PERSON, "vkey": "abc"}]}, "person.1.vkey", "'abc'", "E-KEY-MALFORMED"),
    ("contradiction", {"mirror.vkey": "abc"}, "mirror.vkey", "'abc'", "E-KEY-MALFORMED"),
    ("contradiction", {"mirror.vkey": TABLE_KEY.verifier.vkey}, "mirror.vkey", TABLE_KEY.name, "type 0x04"),
    ("contradiction", {"witness": [WITNESS, WITNESS | {"name": "b"}]}, "witness.2.vkey", "caisse", "listed already"),
    ("contradiction", {"witness": [WITNESS | {"vkey": TABLE_KEY.verifier.vkey}]}, "witness.1.vkey", "t07", "type 0x04"),
    ("contradiction", {"witness": [WITNESS | {"vkey": "abc"}]}, "witness.1.vkey", "'abc'", "E-KEY-MALFORMED"),
    ("contradiction", {"witness": [WITNESS, OTHER_WITNESS | {"name": "a"}]}, "witness.2.name", "a", "listed already"),
    ("same pin", {"panel.buttons.incident": 17}, "panel.keys.director", "17", "already serves panel.buttons.incident"),
    ("same pin", {"panel.lamps.numero": 5}, "panel.lamps.numero", "5", "already serves panel.buttons.ouverture"),
    ("same pin", {"panel.buttons.dizaine": 21}, "panel.buttons.unite", "21", "already serves panel.buttons.dizaine"),
    ("same port", {"journal.key": "/dev/table/wheel"}, "journal.key", "/dev/table/wheel", "already serves wheel.port"),
    (
        "same port",
        {"journal.file": "/etc/table-controller/tls/t07.key"},
        "mqtt.key",
        "/etc/table-controller/tls/t07.key",
        "already serves journal.file",
    ),
]


@pytest.mark.parametrize(
    ("changes", "option", "value", "permitted"),
    [mistake[1:] for mistake in MISTAKES],
    ids=[f"{mistake[0]}: {mistake[2]}-{number}" for number, mistake in enumerate(MISTAKES)],
)
def test_config_one_mistake_is_told_with_its_place_its_value_and_what_is_permitted(
    tmp_path: Path, changes: Changes, option: str, value: str, permitted: str
) -> None:
    found = faults(tmp_path, changes)
    assert [fault.key for fault in found] == [option]
    assert value in found[0].value
    assert permitted in found[0].wrong
    assert found[0].french not in ("", found[0].wrong), "and in French"


@pytest.mark.parametrize("option", ["betting_ms", "between_ms", "launch_limit_ms"])
def test_config_option_of_a_launcher_at_a_croupiers_table_is_told_even_at_its_default(
    tmp_path: Path, option: str
) -> None:
    usual = RouletteSection.model_fields[option].default
    (found,) = faults(tmp_path, {f"roulette.{option}": usual}, "roulette-croupier")
    assert (found.key, found.value) == (f"roulette.{option}", str(usual))
    assert found.wrong == "has no effect when the conduct is croupier: take it out"


def test_config_mistakes_of_every_class_are_told_all_at_once(tmp_path: Path) -> None:
    changes = {
        "roulette.minimum": 100,  # unknown
        "table.site": GONE,  # missing
        "roulette.minimum_cents": 5,  # out of law
        "mqtt.ca": GONE,  # contradiction, in a section that is right otherwise
        "wheel.port": "/etc/table-controller/tls/t07.key",  # same port
        "panel.buttons.zzz": 17,  # unknown to the game
        "person": [{**PERSON, "badge": "D-02"}],  # another person's key
        "mirror.vkey": "abc",
    }
    found = {fault.key: fault.wrong for fault in faults(tmp_path, changes)}
    assert set(found) == {
        "roulette.minimum",
        "roulette.minimum_cents",
        "table.site",
        "mqtt",
        "mqtt.key",
        "person.1.vkey",
        "mirror.vkey",
    }, "what the faulty sections contradict is told when they are right"
    only_contradictions = {name: changes[name] for name in ("wheel.port", "panel.buttons.zzz", "mqtt.ca")}
    again = {fault.key for fault in faults(tmp_path, only_contradictions | {"panel.lamps.seance": 22})}
    assert again == {"mqtt", "mqtt.key", "panel.buttons.zzz", "panel.keys.director", "panel.lamps.seance"}


@settings(max_examples=40)
@given(st.sets(st.sampled_from(range(len(MISTAKES))), min_size=1, max_size=8))
def test_config_any_mistakes_together_hide_no_mistake_of_a_sound_section(
    tmp_path_factory: pytest.TempPathFactory, chosen: set[int]
) -> None:
    changes: dict[str, Any] = {}
    for number in sorted(chosen):
        if not any(name.split(".")[0] in {other.split(".")[0] for other in changes} for name in MISTAKES[number][1]):
            changes |= MISTAKES[number][1]
    told = {fault.key for fault in faults(tmp_path_factory.getbasetemp(), changes)}
    for kind, made, option, _, _ in MISTAKES:
        if made.items() <= changes.items() and kind in ("unknown", "missing", "out of law"):
            assert option in told


def test_config_error_names_the_file_and_every_mistake_in_one_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^E-CONFIG .*table\.toml: ") as caught:
        loaded(tmp_path, {"roulette.wheel": 36, "table.posts": 0})
    assert "roulette.wheel = 36: " in str(caught.value)
    assert "table.posts = 0: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"game = ", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"[table]\nposts = 1\nposts = 2\n", "is not TOML"),
        (b"", "is missing"),
        (b"table = 5\n", "must be a section"),
    ],
)
def test_config_file_that_is_no_configuration_says_why(tmp_path: Path, content: bytes, wrong: str) -> None:
    file = tmp_path / "table.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert any(wrong in str(fault) for fault in caught.value.faults)


def test_config_file_that_is_absent_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "table.toml")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
        max_leaves=5,
    ),
    st.sampled_from(["table", "roulette", "panel.buttons", "person", "wheel.parameters", "mqtt.ca", "game"]),
)
def test_config_whatever_stands_in_a_section_is_a_configuration_or_a_list_of_mistakes(value: Any, place: str) -> None:
    found: list[ConfigFault] = []
    try:
        parse(ROOT / "config" / "table.toml", document({place: value}))
    except ConfigError as error:
        found = error.faults
    assert all(fault.key and fault.wrong for fault in found)


# ── What is read ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_config_every_example_is_right(example: Path) -> None:
    config = load(example)
    assert config.rules.wheel == config.roulette.wheel
    assert config.wheel_settings.pockets == config.roulette.wheel


@pytest.mark.law("55-1")
@pytest.mark.law("51")
def test_config_examples_play_both_wheels_with_both_conducts() -> None:
    rules = [load(example).rules for example in EXAMPLES]
    assert {(one.wheel, one.conduct) for one in rules} == {(wheel, way) for wheel in Wheel for way in Conduct}


def test_config_relative_files_start_at_its_own_folder_and_credentials_do_not(tmp_path: Path) -> None:
    config = loaded(tmp_path, {"journal.file": "j/journal.sqlite", "mqtt.ca": "tls/ca.pem"})
    assert config.journal.file == tmp_path / "j" / "journal.sqlite"
    assert config.mqtt.ca == tmp_path / "tls" / "ca.pem"
    assert config.journal.key == "credential:table-key"


def test_config_key_is_a_file_or_a_credential_of_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert credential("/etc/key") == Path("/etc/key")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(KeyError):
        credential("credential:table-key")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert credential("credential:table-key") == tmp_path / "table-key"


def test_config_overrides_replace_options_and_leave_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_text(tomli_w.dumps(document({})), encoding="utf-8")
    config = load(file, {"table": {"posts": 3, "simulation": True}, "person": [PERSON]})
    assert (config.table.posts, config.table.name) == (3, "t07")
    assert [person.badge for person in config.person] == ["D-01"]


def test_config_of_a_rehearsal_has_a_name_that_no_real_table_may_have(tmp_path: Path) -> None:
    real = loaded(tmp_path, {})
    rehearsed = loaded(tmp_path, {"table.simulation": True})
    assert real.origin == "casino.example/table/t07/1"
    assert rehearsed.origin == "casino.example.simulation/table/t07/1"
    assert "table.site" in {fault.key for fault in faults(tmp_path, {"table.site": rehearsed.site})}


# ── The digest of the house rules ─────────────────────────────────────────────────────────────────────────────────────

OTHERWISE: Mapping[str, Any] = {
    "wheel": 38,
    "conduct": "croupier",
    "minimum_cents": 100,
    "announcements": [HouseOption.VOISINS],
    "zero_combinations": ["plein-0"],
    "random_combinations": False,
    "player_minimum": False,
    "button_calls_no_more_bets": False,
    "no_more_bets_after_ms": 9_000,
    "betting_ms": 16_000,
    "between_ms": 6_000,
    "launch_limit_ms": 50_000,
    "no_more_bets_limit_ms": 30_000,
    "number_limit_ms": 80_000,
    "relaunch_limit": 4,
    "absence_ms": 300_000,
}
"""Another value of every house rule."""


@pytest.fixture
def usual() -> Config:
    """The example without announcements, so that each rule can change alone."""
    return Config.model_validate(document({"roulette.announcements": []}))


@pytest.mark.parametrize("option", sorted(RouletteSection.model_fields))
def test_rules_digest_changes_with_every_house_rule(usual: Config, option: str) -> None:
    changed = usual.model_copy(update={"roulette": usual.roulette.model_copy(update={option: OTHERWISE[option]})})
    assert changed.rules_sha256 != usual.rules_sha256
    assert changed.rules != usual.rules, "the game must hear of it too"


def test_rules_digest_changes_with_the_number_of_posts(usual: Config) -> None:
    changed = usual.model_copy(update={"table": usual.table.model_copy(update={"posts": 7})})
    assert changed.rules_sha256 != usual.rules_sha256


def test_rules_digest_is_the_same_for_the_same_rules_wherever_the_table_stands(usual: Config) -> None:
    moved = document({"roulette.announcements": [], "table.name": "t09", "mqtt.host": "other.example"})
    assert Config.model_validate(moved).rules_sha256 == usual.rules_sha256
    assert re.fullmatch("[0-9a-f]{64}", usual.rules_sha256)


def test_rules_of_a_configuration_hold_every_house_rule_of_the_game(usual: Config) -> None:
    named = set(RouletteSection.model_fields) - {"minimum_cents"} | {"minimum", "posts", "verify_wheel"}
    assert set(RouletteRules.__dataclass_fields__) == named


def test_short_value_of_any_length_fits_a_message() -> None:
    assert short("abc") == "'abc'"
    assert short("x" * 500).endswith("…")
    assert len(short("x" * 500)) <= 60
