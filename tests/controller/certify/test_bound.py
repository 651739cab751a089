"""The root over the first entries, however many, comes from nothing that the signed root does not vouch for."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile

import pytest

from controller.certify.bound import BoundEntries
from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.recovery import recover
from controller.certify.storage import connect_reader
from controller.certify.tree import root_of
from controller.certify.volumes import Chain
from tests.controller.certify.workshop import SIGNER, build, forgery, stored

SIZES = [
    0,
    1,
    2,
    3,
    255,
    256,
    257,
    511,
    512,
    513,
    40_000,
    65_279,
    65_535,
    65_536,
    65_537,
    65_791,
    65_792,
    65_793,
    65_900,
]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """65,900 entries: two levels of full tiles, and partial ones of both."""
    return build(tmp_path_factory.mktemp("long") / "journal.db", [65_900])


@contextmanager
def bound_entries(path: Path) -> Iterator[BoundEntries]:
    with closing(connect_reader(path)) as connection, Chain(path, connection) as chain:
        yield BoundEntries(chain, recover(connection, path, LogKeys.of(SIGNER.verifier)).edge)


def test_root_over_any_number_of_first_entries_is_that_of_their_hashes(long: Path) -> None:
    hashes = [leaf_hash(leaf) for (leaf,) in stored(long, "SELECT leaf FROM log ORDER BY idx")]
    with bound_entries(long) as bound:
        assert {size: bound.root(size) for size in SIZES} == {size: root_of(hashes[:size]) for size in SIZES}


@pytest.mark.parametrize(
    ("change", "size"),
    [
        ("UPDATE tile SET root = zeroblob(32) WHERE level = 0 AND n = 3", 1_000),
        ("UPDATE tile SET hashes = zeroblob(8192) WHERE level = 0 AND n = 3", 1_000),
        ("UPDATE tile SET hashes = zeroblob(8192) WHERE level = 1 AND n = 0", 1_000),
        ("UPDATE tile SET hashes = zeroblob(8192) WHERE level = 1 AND n = 0", 65_535),
    ],
)
def test_root_from_a_tile_that_was_changed_is_not_given(long: Path, tmp_path: Path, change: str, size: int) -> None:
    copy = tmp_path / "copy.db"
    copyfile(long, copy)
    with bound_entries(copy) as bound:
        with forgery(copy) as connection:
            connection.execute(change)
        with pytest.raises(JournalFault) as caught:
            bound.root(size)
        assert caught.value.code == "E-JOURNAL-ALTERED"
