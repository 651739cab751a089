"""Tables of real processes, on both brokers where that matters."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.system.rig import Rig


@pytest.fixture
async def rig(tmp_path: Path, program: Callable[[str], str]) -> AsyncIterator[Rig]:
    """Broker (iotcore) and wheel run; ``tabled`` does not."""
    pytest.importorskip("iotcore")
    async with Rig(tmp_path, "iotcore", program) as made:
        yield made


@pytest.fixture(params=["mosquitto", "iotcore"])
async def rig_on_both(
    request: pytest.FixtureRequest, tmp_path: Path, program: Callable[[str], str]
) -> AsyncIterator[Rig]:
    """The same, on each broker."""
    if request.param == "iotcore":
        pytest.importorskip("iotcore")
    async with Rig(tmp_path, request.param, program) as made:
        yield made
