"""A table gets another key in the middle of its life, and no key is ever found anywhere but in its own file."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, open_note
from controller.certify.reader import Reader
from controller.certify.rotation import open_rotation
from controller.certify.verify import Verdict, verify
from controller.entropy import SeededEntropy
from controller.rehearsal.simulate import JOURNAL, VKEY, simulate, staff_keys
from tests.controller.rehearsal.house import EXAMPLE, House, play
from tests.controller.rehearsal.stages import staked


def verdict(house: House, *signers: Signer) -> Verdict:
    return verify(house.file, LogKeys.of(*(signer.verifier for signer in signers)), processes=1)


@pytest.mark.law("67-15")
def test_key_is_replaced_with_an_overlap_and_the_change_is_certified_once() -> None:
    async def story(house: House) -> None:
        old, new = house.signer, Signer(house.signer.name, bytes(range(32)))
        await staked(house)
        await house.stop()
        await house.kill()
        house.signer, house.previous = new, old
        await house.start()
        assert json.loads(house.daemon.description())["vkeys"] == [old.verifier.vkey, new.verifier.vkey]
        await house.restart()
        (change,) = house.every("table.key.rotated")
        assert open_rotation(change["statement"]).new.vkey == change["new_vkey"] == new.verifier.vkey
        assert change["old_vkey"] == old.verifier.vkey
        with Reader(house.file) as reader:
            assert len(open_note(reader.checkpoint(), [old.verifier, new.verifier]).signatures) == 2
        assert all(verdict(house, *signers).ok for signers in ((old,), (new,), (old, new)))
        house.previous = None
        await house.restart()
        assert len(house.every("table.key.rotated")) == 1
        assert json.loads(house.daemon.description())["vkeys"] == [new.verifier.vkey]
        assert verdict(house, new).ok
        assert verdict(house, old, new).ok
        assert verdict(house, old).code == "E-JOURNAL-KEY"

    play(story)


# ── Where a key is not ───────────────────────────────────────────────────────────────────────────────────────────────


def spellings(seed: bytes) -> Iterator[bytes]:
    """A key, in all the ways in which it might be written."""
    yield seed
    yield seed.hex().encode()
    yield seed.hex().upper().encode()
    for before in (b"", b"\1"):  # as it is, and as in a key's text form; base64 of its inner bytes at any offset
        yield b64encode(before + seed).rstrip(b"=")[:40]
    yield b64encode(seed[1:31])
    yield b64encode(seed[2:32])


def leaks(folder: Path, seeds: list[bytes]) -> list[Path]:
    """The files below ``folder`` in which a key stands."""
    wanted = [spelling for seed in seeds for spelling in spellings(seed)]
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [file for file in files if any(spelling in file.read_bytes() for spelling in wanted)]


def test_key_stands_in_no_file_that_a_played_evening_leaves_behind(tmp_path: Path) -> None:
    simulate(EXAMPLE, tmp_path / "out", coups=6, seed=5)
    entropy = SeededEntropy(5)
    staff = staff_keys("casino.example.simulation", entropy)
    table = bytes.fromhex(entropy.hex(32))
    public = (tmp_path / "out" / VKEY).read_text(encoding="ascii").strip()
    assert (
        Signer(public.partition("+")[0], table).verifier.vkey == public
    )  # the seed that is looked for is the right one
    seeds = [table, *(seed_of(signer) for signer in staff.values())]
    assert leaks(tmp_path, seeds) == []
    (tmp_path / "out" / "table.key").write_text(Signer("a/table/b/1", table).skey, encoding="ascii")
    assert [file.name for file in leaks(tmp_path, seeds)] == ["table.key"]  # it would have been found
    assert (tmp_path / "out" / JOURNAL).stat().st_size > 100_000


def test_key_stands_in_no_file_of_a_table_whose_key_was_changed() -> None:
    async def story(house: House) -> None:
        old, new = house.signer, Signer(house.signer.name, bytes(range(32)))
        await staked(house)
        house.signer, house.previous = new, old
        await house.restart()
        await house.let_pass(5)
        assert leaks(house.file.parent, [seed_of(old), seed_of(new)]) == []
        assert {file.name for file in house.file.parent.iterdir()} >= {"journal.sqlite", "journal.sqlite-wal"}

    play(story)


def seed_of(signer: Signer) -> bytes:
    """The secret inside a signer."""
    return b64decode(signer.skey.removeprefix("PRIVATE+KEY+").split("+", 2)[2])[1:]
