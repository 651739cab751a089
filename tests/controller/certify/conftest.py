"""A journal to write to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.certify.journal import Journal
from drivers.clock import ManualClock
from tests.controller.certify.workshop import SIGNER, open_journal


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty journal's file."""
    path = tmp_path / "journal.db"
    Journal.create(path, SIGNER, allow_volatile=True)
    return path


@pytest.fixture
def journal(path: Path, clock: ManualClock) -> Iterator[Journal]:
    """An empty journal, open."""
    journal = open_journal(path, clock)
    yield journal
    journal.close()
