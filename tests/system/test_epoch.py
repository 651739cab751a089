"""A second epoch as a casino begins it: by the commands, two persons' keys, and a ``tabled`` that asks for both."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from controller.certify.journal import Journal
from controller.certify.keys import create_key, load_key
from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.rehearsal.demo import Stage, prepare
from tests.controller.rehearsal.house import read_fact
from tests.system.rig import LAUNCHER, Tabled

MENDED_BY_A_PERSON = 2


class House:
    """A table of the first epoch, whose key was lost, and its configuration for the second."""

    def __init__(self, folder: Path) -> None:
        self.stage: Stage = prepare(LAUNCHER, folder / "old", speed=1, seed=7, faults="")
        self.folder = folder / "new"
        self.folder.mkdir()
        self.config = self.folder / "table.toml"
        self.site = self.stage.config.site
        self.journal = self.folder / "journal.sqlite"
        document: dict[str, Any] = tomllib.loads(self.stage.config_file.read_text(encoding="utf-8"))
        document["table"]["epoch"] = 2
        document["journal"] |= {"file": str(self.journal), "key": str(self.folder / "table.key")}
        document["panel"] = {"device": "none"}
        document["wheel"]["port"] = str(self.folder / "wheel")
        document["person"] = [
            {"badge": badge, "role": role, "vkey": self.person(badge)}
            for badge, role in (("D1", "director"), ("T1", "technician"))
        ]
        self.config.write_text(tomli_w.dumps(document), encoding="utf-8")

    def person(self, badge: str) -> str:
        return create_key(self.folder / f"{badge}.key", f"{self.site}/personne/{badge}").verifier.vkey

    def tablectl(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "controller.cli", *map(str, words))
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def tabled(self) -> Tabled:
        return Tabled(self.config, self.folder / "tabled.log")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
async def started(house: House) -> AsyncIterator[Callable[[], Tabled]]:
    """``started()`` is a daemon on the new configuration; each is ended at the end."""
    made: list[Tabled] = []

    def make() -> Tabled:
        made.append(house.tabled())
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def test_second_epoch_is_begun_by_two_persons_and_played(house: House, started: Callable[[], Tabled]) -> None:
    statement = house.folder / "statement.note"
    steps: tuple[tuple[object, ...], ...] = (
        ("key", "create", "--config", house.config),
        (
            *("epoch", "begin", "--config", house.config, "--reason", "Clé perdue.", "--out", statement),
            *("--old-journal", house.stage.config.journal.file),
        ),
        ("epoch", "sign", statement, "--key", house.folder / "T1.key", "--yes"),
        ("epoch", "sign", statement, "--key", house.folder / "D1.key", "--yes"),
        ("epoch", "accept", statement, "--config", house.config, "--yes"),
    )
    for words in steps:
        done = house.tablectl(*words)
        assert done.returncode == 0, done.stderr
    tabled = await started().run()
    await tabled.hears("READY=1")
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0
    with closing(Reader(house.journal)) as reader:
        facts = [read_fact(leaf) for leaf in reader.leaves(0, reader.size)]
    assert [kind for kind, _ in facts[:2]] == ["table.epoch.begun", "table.started"]
    assert facts[0][1]["old_origin"] == house.stage.config.origin
    keys = LogKeys.parse((house.folder / "table.vkey").read_text(encoding="ascii"))
    assert verify(house.journal, keys, processes=1).ok
    assert house.tablectl("replay", house.journal, "--config", house.config).returncode == 0
    assert house.stage.config.journal.file.exists()


async def test_second_epoch_that_was_begun_in_silence_does_not_start(
    house: House, started: Callable[[], Tabled]
) -> None:
    assert house.tablectl("key", "create", "--config", house.config).returncode == 0
    refused = house.tablectl("journal", "create", "--config", house.config, "--yes")
    assert (refused.returncode, refused.stderr.split()[0]) == (2, "E-EPOCH-UNPROCLAIMED")
    Journal.create(house.journal, load_key(house.folder / "table.key"), allow_volatile=True)
    before = house.journal.read_bytes()
    tabled = await started().run()
    assert await tabled.ends() == MENDED_BY_A_PERSON
    assert tabled.codes == ["E-EPOCH-UNPROCLAIMED"]
    assert tabled.heard() == []
    assert house.journal.read_bytes() == before
