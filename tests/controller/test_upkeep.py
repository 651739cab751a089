"""What is done to a journal at a start, before it is opened."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from controller import upkeep
from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.config import load
from drivers.clock import ManualClock
from tests.controller.certify.workshop import SIGNER

CONFIG = Path(__file__).resolve().parents[2] / "config" / "roulette-launcher.toml"


def turning_that_fails(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(upkeep, "turn", Mock(side_effect=JournalFault(code, "a reason")))
    reserve = Mock(missing_bytes=0)
    upkeep.turned(load(CONFIG), LogKeys.of(SIGNER.verifier), ManualClock(), reserve)


def test_start_goes_on_in_the_live_file_when_another_file_stands_where_the_volume_belongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turning_that_fails(monkeypatch, "E-VOLUME-FOREIGN")


def test_start_ends_when_the_journal_that_is_to_be_turned_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JournalFault, match="E-JOURNAL-ALTERED"):
        turning_that_fails(monkeypatch, "E-JOURNAL-ALTERED")
