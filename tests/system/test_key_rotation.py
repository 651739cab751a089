"""A real table changes its key with the command, plays through the overlap, and leaves no key but in its key files."""

import signal
from pathlib import Path

import pytest

from controller.certify.keys import load_key
from controller.certify.log_keys import LogKeys
from controller.certify.verify import verify
from tests.controller.rehearsal.test_key_rotation import leaks, seed_of
from tests.system.rig import Rig, Tabled
from tests.system.test_certification import tablectl


async def stopped(tabled: Tabled) -> None:
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0
    await tabled.close()


def configure(file: Path, was: str, now: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(was) == 1
    file.write_text(text.replace(was, now), encoding="utf-8")


@pytest.mark.law("67-15")
async def test_key_of_a_real_table_is_replaced_with_an_overlap_and_stays_in_its_file(rig: Rig) -> None:
    config, key = rig.stage.config_file, Path(rig.stage.config.journal.key)
    await stopped(await rig.start())
    begun = await tablectl("key", "rotate", "--config", config)
    one, both = f'key = "{key}"', f'key = "{begun["file"]}"\nprevious_key = "{key}"'
    configure(config, one, both)
    tabled = await rig.start()
    await rig.open()
    await rig.seat(1, 5_000)
    await rig.bets_open()
    await stopped(tabled)
    assert rig.verified().ok
    (rotated,) = [data for kind, data in rig.facts if kind == "table.key.rotated"]
    assert (rotated["old_vkey"], rotated["new_vkey"]) == (begun["old_vkey"], begun["vkey"])
    assert (await tablectl("key", "rotate", "--config", config))["may_end"]
    configure(config, both, both.partition("\n")[0])
    await stopped(await rig.start())
    old, new = load_key(key), load_key(Path(begun["file"]))
    assert verify(rig.journal, LogKeys.of(new.verifier), processes=1).ok
    assert verify(rig.journal, LogKeys.of(old.verifier), processes=1).code == "E-JOURNAL-KEY"
    found = leaks(rig.stage.folder, [seed_of(old), seed_of(new), *map(seed_of, rig.stage.staff.values())])
    assert {file.suffix for file in found} <= {".key"}
    assert {key, Path(begun["file"])} <= set(found)
