"""Where rehearsals leave their journals."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.controller.rehearsal.house import MEMORY


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on a disk that syncs in no time, where there is one."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)
