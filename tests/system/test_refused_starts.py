"""``tabled`` that cannot be trusted to start does not: it ends with a status and a code, and touches nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller import codec
from controller.certify.journal import Journal
from controller.certify.keys import create_key, load_key
from controller.certify.leaf import Record
from controller.certify.note import Signer
from controller.rehearsal.demo import prepare
from drivers.clock import ManualClock
from games.roulette.game import Roulette
from games.rules import Started, Stopping
from tests.controller.certify.workshop import forgery
from tests.system.rig import LAUNCHER, Rig, Tabled

TRIED_AGAIN, MENDED_BY_A_PERSON = 1, 2
"""The exit statuses: the second one tells systemd not to start again."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The journal of a table that was started and stopped once."""
    stage = prepare(LAUNCHER, tmp_path / "table", speed=1, seed=7, faults="")
    game = Roulette(stage.config.rules)
    signer, boot = load_key(Path(stage.config.journal.key)), "0123456789abcdef"
    file = stage.config.journal.file
    with closing(Journal.open(file, signer, ManualClock(), boot, lambda: "free", allow_volatile=True)) as journal:
        for signal in (Started(at_us=1, boot=boot, unclean=False), Stopping(at_us=2, boot=boot)):
            facts = game.decide(game.initial(), signal).facts
            entries = codec.encode_decision(signal, facts, journal.size)
            journal.append([Record(kind, data, None) for kind, data in entries])
    return file


async def refused(file: Path) -> Tabled:
    """A start that ends by itself, and never says that it is ready."""
    tabled = Tabled(file.with_name("table.toml"), file.with_name("refused.log"))
    try:
        await tabled.run()
        assert await tabled.ends() == MENDED_BY_A_PERSON
    finally:
        await tabled.close()
    assert tabled.told == []
    return tabled


def alter(file: Path) -> None:
    """One bit of the second entry."""
    with forgery(file) as connection:
        ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = 1").fetchall()
        changed = bytearray(leaf)
        changed[len(changed) // 2] ^= 1
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 1", (bytes(changed),))


def take_key_away(file: Path) -> None:
    file.with_name("table.key").unlink()


def open_key(file: Path) -> None:
    file.with_name("table.key").chmod(0o644)


def change_key(file: Path) -> None:
    key = file.with_name("table.key")
    key.unlink()
    create_key(key, "casino.example.simulation/table/t07/1")


def take_another_tables_key(file: Path) -> None:
    key = file.with_name("table.key")
    key.unlink()
    create_key(key, "casino.example.simulation/table/t99/1")


def take_another_tables_journal(file: Path) -> None:
    clear(file)
    Journal.create(file, Signer("casino.example.simulation/table/t99/1", bytes(range(32))), allow_volatile=True)


def take_any_database(file: Path) -> None:
    clear(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE log (idx INTEGER PRIMARY KEY, leaf BLOB)")


def take_any_file(file: Path) -> None:
    clear(file)
    file.write_bytes(b"this is no database" * 100)


def clear(file: Path) -> None:
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)


def break_configuration(file: Path) -> None:
    table = file.with_name("table.toml")
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace("wheel = 37", "wheel = 36").replace("posts = 6", "posts = 0"), encoding="utf-8")


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (alter, "E-JOURNAL-ALTERED"),
        (clear, "E-JOURNAL-MISSING"),
        (take_key_away, "E-KEY-MISSING"),
        (open_key, "E-KEY-EXPOSED"),
        (change_key, "E-JOURNAL-KEY"),
        (take_another_tables_key, "E-KEY-OTHER"),
        (take_another_tables_journal, "E-JOURNAL-KEY"),
        (take_any_database, "E-JOURNAL-FOREIGN"),
        (take_any_file, "E-JOURNAL-FOREIGN"),
        (break_configuration, "E-CONFIG"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_tabled_with_a_journal_key_or_configuration_that_is_wrong_refuses_to_start_and_says_why(
    table: Path, harm: Callable[[Path], None], code: str
) -> None:
    harm(table)
    tabled = await refused(table)
    assert set(tabled.codes) == {code}
    if code == "E-JOURNAL-ALTERED":
        assert any("1" in str(line.get("detail")) for line in tabled.log)
    if code == "E-CONFIG":
        told = {line["option"]: (line["value"], line["wrong"]) for line in tabled.log if line["event"] == code}
        assert set(told) == {"roulette.wheel", "table.posts"}


async def test_tabled_on_a_journal_that_another_one_writes_ends_and_the_first_plays_on(rig: Rig) -> None:
    first = await rig.start()
    second = await rig.tabled().run()
    assert await second.ends() == TRIED_AGAIN, "the first one may be on its way out"
    assert second.codes == ["E-JOURNAL-BUSY"]
    assert (await rig.status())["table"]["condition"]
    assert first.process is not None
    assert first.process.returncode is None
