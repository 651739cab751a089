"""What every test may rely on: where things are, and a world without luck, clocks or strangers."""

import ipaddress
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# A property may take as long as it takes: a deadline would be a real clock. Continuous integration plays the same
# examples each time; a workstation explores new ones, and `--hypothesis-profile deep` explores for long.
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.register_profile("deep", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the project."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """The worked cases, as JSON files."""
    return ROOT / "tests" / "cases"


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """``program("mosquitto")`` is its path; the test is skipped where it is not installed, except in CI."""

    def find(name: str) -> str:
        places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        path = shutil.which(name, path=places)
        if path is None and "CI" in os.environ:
            pytest.fail(f"{name} is not installed, and in continuous integration no test may be skipped")
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return find


def _is_stranger(address: Any) -> bool:
    """Whether a socket address is neither a local file nor on loopback."""
    if not isinstance(address, tuple):
        return False
    try:
        return not ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return bool(address[0] != "localhost")


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """No test speaks to another machine: such a connection is refused at once, and says who wanted it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if _is_stranger(address):
            raise AssertionError(f"a test wanted to connect to {address!r}; only loopback is allowed")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield
