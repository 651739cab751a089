"""What a start of the real ``tabled`` does for its journal: turns it, raises retention, tells of a clock set back."""

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller import codec
from controller.certify.journal import Journal
from controller.certify.keys import load_key
from controller.certify.leaf import Record
from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.certify.volumes import volumes
from controller.rehearsal.demo import prepare
from drivers.clock import ManualClock
from games.roulette.game import Roulette
from games.rules import Started, Stopping
from tests.system.rig import LAUNCHER, Tabled
from tests.system.test_refused_starts import refused

LONG_AGO_MS = 1_796_000_000_000 - 40 * 86_400_000
"""A month that is over."""

FAR_AHEAD_MS = 4_000_000_000_000


def table_of(folder: Path, starts: int, wall_ms: int) -> Path:
    """The journal of a table that was started and stopped so often, by a clock that showed ``wall_ms``."""
    stage = prepare(LAUNCHER, folder, speed=1, seed=7, faults="")
    game, clock, boot = Roulette(stage.config.rules), ManualClock(wall_offset_ms=wall_ms), "0123456789abcdef"
    file, signer = stage.config.journal.file, load_key(Path(stage.config.journal.key))
    state = game.initial()
    with closing(Journal.open(file, signer, clock, boot, lambda: "free", allow_volatile=True)) as journal:
        records: list[Record] = []
        for at in range(starts):
            for one in (Started(at_us=2 * at, boot=boot, unclean=False), Stopping(at_us=2 * at + 1, boot=boot)):
                facts = game.decide(state, one).facts
                for fact in facts:
                    state = game.evolve(state, fact)
                entries = codec.encode_decision(one, facts, len(records))
                records += [Record(kind, data, None) for kind, data in entries]
        journal.append(records)
    return file


async def started_and_stopped(file: Path) -> Tabled:
    """One run of the daemon, to a good end."""
    tabled = Tabled(file.with_name("table.toml"), file.with_name("run.log"))
    try:
        await tabled.run()
        await tabled.hears("READY=1")
        tabled.send(signal.SIGTERM)
        assert await tabled.ends() == 0
    finally:
        await tabled.close()
    return tabled


def facts(file: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The data of all facts of a kind."""
    with Reader(file) as reader:
        for leaf in reader.leaves(0, reader.size):
            document = json.loads(leaf)
            if document["type"] == kind:
                yield document["data"]


def keys_of(file: Path) -> LogKeys:
    return LogKeys.parse(file.with_name("table.vkey").read_text(encoding="ascii"))


async def test_start_in_another_month_turns_the_journal_and_the_table_goes_on_in_a_small_file(tmp_path: Path) -> None:
    file = table_of(tmp_path / "table", 2_000, LONG_AGO_MS)
    with Reader(file) as reader:
        before, leaves = reader.size, list(reader.leaves(0, reader.size))
    tabled = await started_and_stopped(file)
    assert [line["size"] for line in tabled.log if line["event"] == "journal.turned"] == [before]
    first, live = volumes(file)
    assert (first.base, first.stop) == (0, live.base)
    assert 0 < live.base < before
    with Reader(file) as reader:
        assert list(reader.leaves(0, before)) == leaves
        assert reader.size > before
    assert verify(file, keys_of(file), processes=1).ok
    again = await started_and_stopped(file)
    assert not [line for line in again.log if line["event"] == "journal.turned"]


async def test_retention_is_certified_once_and_a_start_with_fewer_years_is_refused(tmp_path: Path) -> None:
    file = table_of(tmp_path / "table", 1, LONG_AGO_MS)
    config = file.with_name("table.toml")
    text = config.read_text(encoding="utf-8")

    def ask(years: int) -> None:
        config.write_text(text.replace("[journal]\n", f"[journal]\nretention_years = {years}\n"), encoding="utf-8")

    for years in (12, 12, 13):
        ask(years)
        await started_and_stopped(file)
    assert [data["years"] for data in facts(file, "fr.table.retention.set.v1")] == [12, 13]
    ask(12)
    assert (await refused(file)).codes == ["E-RETENTION-LOWERED"]


@pytest.mark.parametrize(("wall_ms", "steps"), [(FAR_AHEAD_MS, 1), (LONG_AGO_MS, 0)])
async def test_clock_behind_the_last_entry_is_a_fact_and_the_order_stays(
    tmp_path: Path, wall_ms: int, steps: int
) -> None:
    file = table_of(tmp_path / "table", 1, wall_ms)
    await started_and_stopped(file)
    found = [data["by_ms"] for data in facts(file, "fr.table.clock.stepped.v1")]
    assert len(found) == steps
    assert all(by_ms < 0 for by_ms in found)
    assert verify(file, keys_of(file), processes=1).ok
