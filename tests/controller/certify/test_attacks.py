"""Every known attack on a journal is found by ``tablectl journal verify``, with its status and its entry."""

import pytest

from proof.attacks import ATTACKS, COSIGNED, Attack, Scene, judge, make_scene

OUTSIDE = [attack for attack in ATTACKS if attack.remembered]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A journal of 700 entries with snapshots and cosignatures, an older copy, a fork, and a thief's journal."""
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack_is_found_with_its_status_and_its_entry(scene: Scene, attack: Attack) -> None:
    judged = judge(scene, attack)
    assert (judged.status, judged.index) == (attack.status, attack.index), judged.code


@pytest.mark.parametrize("attack", OUTSIDE, ids=lambda attack: attack.name)
def test_attack_that_leaves_a_whole_history_needs_somebody_who_remembers(scene: Scene, attack: Attack) -> None:
    assert judge(scene, attack, remembered=False).status == 0


@pytest.mark.parametrize("remembered", [False, True])
def test_journal_that_nobody_attacked_agrees(scene: Scene, remembered: bool) -> None:
    untouched = Attack("nothing", lambda _: None, 0)
    assert (judge(scene, untouched, remembered=remembered).right, COSIGNED[-1]) == (True, 600)
