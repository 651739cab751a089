"""The reference packages of the Go project as a judge: a small program of ours around them, built once a session."""

import os
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

PACKAGE = "golang-golang-x-mod-dev"
SOURCE = Path(__file__).with_name("verify_go")

Judge = Callable[[Iterable[str]], list[str]]
"""Cases in, one verdict for each: see ``verify_go/main.go``."""


@pytest.fixture(scope="session")
def go_code(program: Callable[[str], str]) -> str:
    """Where the source of the Go packages is installed."""
    listed = subprocess.run([program("dpkg"), "-L", PACKAGE], capture_output=True, text=True, check=False).stdout
    places = [line for line in listed.splitlines() if line.endswith("/gocode")]
    if not places and "CI" in os.environ:
        pytest.fail(f"{PACKAGE} is not installed, and in continuous integration no test may be skipped")
    if not places:
        pytest.skip(f"{PACKAGE} is not installed")
    return places[0]


@pytest.fixture(scope="session")
def judge(program: Callable[[str], str], go_code: str, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """``judge(cases)`` are the verdicts of the Go program."""
    folder = tmp_path_factory.mktemp("go")
    binary = folder / "verify"
    settings = {"GO111MODULE": "off", "GOFLAGS": "", "GOPATH": f"{folder}{os.pathsep}{go_code}"}
    environment = os.environ | settings | {"GOCACHE": str(folder / "cache")}
    subprocess.run([program("go"), "build", "-o", binary, "."], cwd=SOURCE, env=environment, check=True)

    def ask(cases: Iterable[str]) -> list[str]:
        asked = "".join(f"{case}\n" for case in cases)
        told = subprocess.run([binary], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(told) == asked.count("\n")
        return told

    return ask


def base64(data: bytes) -> str:
    """Bytes as a word of a case."""
    return b64encode(data).decode() or "-"


def record(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> str:
    """The case of an inclusion proof."""
    return f"record {base64(root)} {size} {index} {base64(leaf)} {base64(b''.join(proof))}"


def tree(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> str:
    """The case of a consistency proof."""
    return f"tree {base64(new_root)} {new} {base64(old_root)} {old} {base64(b''.join(proof))}"


def note(text: str, *vkeys: str) -> str:
    """The case of a signed note."""
    return f"note {base64(text.encode())} {' '.join(vkeys)}"
