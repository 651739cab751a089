"""What must keep a table from starting: other rules than those of the open séance, other posts, a salt that is none."""

from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from controller.app import player_salt
from controller.certify.faults import KeyFault
from controller.config import load
from controller.history import RestoreError, next_seance, restore
from controller.options import Config
from controller.standing_rules import RulesFault, refuse_other_rules
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.seance import Seance, SeancePhase

CONFIGURATION = Path("config/roulette-launcher.toml")
AT_OPENING = load(CONFIGURATION)


def state_of(config: Config, seance: Seance) -> RouletteState:
    return replace(Roulette(config.rules).initial(), seance=seance)


def open_seance(config: Config) -> Seance:
    return Seance(name="2026-11-30-1", phase=SeancePhase.OPEN, rules_sha256=config.rules_sha256)


@pytest.mark.parametrize(
    "change",
    [{"wheel": 38, "announcements": []}, {"minimum_cents": 500}, {"conduct": "croupier"}, {"absence_ms": 60_000}],
)
def test_start_under_other_rules_than_those_of_the_open_seance_is_refused(change: dict[str, object]) -> None:
    changed = load(CONFIGURATION, {"roulette": change, "panel": {"device": "none"}})
    with pytest.raises(RulesFault, match="E-RULES-CHANGED"):
        refuse_other_rules(changed, state_of(changed, open_seance(AT_OPENING)))


def test_start_under_other_rules_while_the_seance_is_closed_is_taken() -> None:
    changed = load(CONFIGURATION, {"roulette": {"minimum_cents": 500}})
    refuse_other_rules(changed, state_of(changed, Seance()))


def test_start_under_the_rules_of_the_open_seance_is_taken() -> None:
    refuse_other_rules(AT_OPENING, state_of(AT_OPENING, open_seance(AT_OPENING)))


@pytest.mark.parametrize("posts", [5, 7])
def test_start_with_another_number_of_posts_is_refused_even_when_closed(posts: int) -> None:
    changed = load(CONFIGURATION, {"table": {"posts": posts}})
    with pytest.raises(RulesFault, match="E-POSTS-CHANGED"):
        refuse_other_rules(changed, state_of(AT_OPENING, Seance()))


def test_entry_that_does_not_fit_the_table_is_named() -> None:
    leaf = b'{"type":"fr.table.player.came_back.v1","data":{"post":9,"request":"a","sitting":1}}'

    class Past:
        size = 1

        def leaves(self, start: int, stop: int) -> list[bytes]:
            return [leaf][start:stop]

        def latest_snapshot(self) -> None:
            return None

    with pytest.raises(RestoreError, match="entry 0"):
        restore(Roulette(AT_OPENING.rules), Past(), RouletteState)


def test_salt_is_made_once_and_kept(tmp_path: Path) -> None:
    assert player_salt(tmp_path) == player_salt(tmp_path)
    assert len(player_salt(tmp_path)) == 32
    assert (tmp_path / "player-salt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_salt_that_the_table_did_not_make_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "player-salt").write_bytes(content)
    (tmp_path / "player-salt").chmod(0o600)
    with pytest.raises(KeyFault, match="E-SALT"):
        player_salt(tmp_path)


def test_salt_that_others_may_read_is_refused(tmp_path: Path) -> None:
    player_salt(tmp_path)
    (tmp_path / "player-salt").chmod(0o644)
    with pytest.raises(KeyFault, match="E-SALT"):
        player_salt(tmp_path)


@pytest.mark.parametrize(
    ("last", "wall_ms", "name"),
    [
        ("", 1_796_068_800_000, "2026-11-30-1"),
        ("2026-11-30-1", 1_796_068_800_000, "2026-11-30-2"),
        ("2026-11-29-4", 1_796_068_800_000, "2026-11-30-1"),
        ("2026-12-01-3", 1_796_068_800_000, "2026-12-01-4"),
    ],
)
def test_name_of_a_seance_is_never_given_twice_even_if_the_clock_was_set_back(
    last: str, wall_ms: int, name: str
) -> None:
    assert next_seance(last, wall_ms, ZoneInfo("Europe/Paris")) == name
