"""The long journals of the benchmarks are journals: they verify, and a table that starts on one knows where it is."""

from pathlib import Path

import pytest

from bench import past
from controller import history
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.certify.verify import verify
from drivers.clock import ManualClock
from games.roulette.coup import RouletteState


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> past.Evening:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past, "COUPS", 5)
        return past.play_evening(tmp_path_factory.mktemp("evening"))


def test_past_of_many_evenings_verifies_and_has_the_size_that_was_asked_for(
    evening: past.Evening, tmp_path: Path
) -> None:
    file, signer = tmp_path / "journal.sqlite", Signer.generate("bench.example/table/t00/1")
    Journal.create(file, signer, allow_volatile=True)
    size = past.fill(file, signer, evening, 5_000)
    assert abs(size - 5_000) <= len(evening.records)
    verdict = verify(file, LogKeys.of(signer.verifier))
    assert (verdict.ok, verdict.size) == (True, size)


def test_past_of_many_evenings_leaves_a_table_as_one_evening_does(evening: past.Evening, tmp_path: Path) -> None:
    file, signer = tmp_path / "journal.sqlite", Signer.generate("bench.example/table/t00/1")
    Journal.create(file, signer, allow_volatile=True)
    past.fill(file, signer, evening, 3_000)
    journal = Journal.open(file, signer, ManualClock(), "0" * 16, lambda: "free", allow_volatile=True)
    restored = history.restore(evening.game, journal, RouletteState)
    journal.close()
    assert restored == evening.state
    assert not restored.seance.open


def test_past_evening_can_be_replayed(evening: past.Evening, tmp_path: Path) -> None:
    state, replayed = history.replay(evening.game, evening.leaves)
    assert (state, replayed.entries) == (evening.state, len(evening.leaves))


def test_past_is_delivered_so_that_a_start_has_nothing_to_send(evening: past.Evening, tmp_path: Path) -> None:
    file, signer = tmp_path / "journal.sqlite", Signer.generate("bench.example/table/t00/1")
    Journal.create(file, signer, allow_volatile=True)
    size = past.fill(file, signer, evening, 1_000)
    journal = Journal.open(file, signer, ManualClock(), "0" * 16, lambda: "free", allow_volatile=True)
    assert journal.cursor("broker") == size
    journal.close()
    with Reader(file) as reader:
        assert reader.size == size
