"""The mirror's store: SQLite and PostgreSQL keep the same promise, by the same tests."""

from pathlib import Path

import psycopg
import pytest

from controller.certify.tree import root_of
from controller.mirror.faults import MirrorFault
from controller.mirror.postgres_store import PostgresStore
from controller.mirror.sqlite_store import SqliteStore
from controller.mirror.store import Evidence, Held, Kept, stored_root
from tests.controller.mirror.casino import ORIGIN, Opener, Table
from tests.controller.mirror.conftest import Postgres

OTHER = "casino.example/table/t08/1"
HELD = Held(
    origin=ORIGIN,
    size=3,
    previous=b"p" * 32,
    nodes=(b"a" * 32, b"b" * 32),
    cosigned=2,
    ack="note é\n",
    announced=9,
    latest=8,
    claimed=7,
    heard_ms=1_796_000_000_000,
    fork="because",
)


def piece(at: int, content: bytes, side: str = "other") -> Evidence:
    assert side in ("held", "other")
    return Evidence(
        origin=ORIGIN, kind="entry", side="held" if side == "held" else "other", at=at, content=content, heard_ms=5
    )


def test_store_that_is_new_holds_nothing(opening: Opener) -> None:
    store = opening()
    assert store.held() == []
    assert store.leaves(ORIGIN, 0, 10) == []
    assert store.blocks(ORIGIN, 10) == []
    assert store.evidence(ORIGIN) == []


def test_store_opened_again_has_everything_that_was_kept(opening: Opener) -> None:
    store = opening()
    pieces = [piece(1, b"one", "held"), piece(1, b"two")]
    other = Held(origin=OTHER, size=1)
    store.keep(
        [
            Kept(held=HELD, leaves=[b"l0", b"l1", b"l2"], blocks=[(0, b"r" * 32)], evidence=pieces),
            Kept(held=other, leaves=[b"m0"]),
        ]
    )
    again = opening()
    assert again.held() == [HELD, other]
    assert again.leaves(ORIGIN, 0, 9) == [b"l0", b"l1", b"l2"]
    assert again.leaves(ORIGIN, 1, 2) == [b"l1"]
    assert again.leaves(OTHER, 0, 9) == [b"m0"]
    assert again.blocks(ORIGIN, 9) == [b"r" * 32]
    assert again.evidence(ORIGIN) == pieces
    assert again.evidence(OTHER) == []


def test_store_row_of_a_journal_is_replaced_and_its_entries_are_added(opening: Opener) -> None:
    store = opening()
    store.keep([Kept(held=Held(origin=ORIGIN, size=1), leaves=[b"l0"])])
    store.keep([Kept(held=Held(origin=ORIGIN, size=2), first=1, leaves=[b"l1"])])
    assert store.held() == [Held(origin=ORIGIN, size=2)]
    assert store.leaves(ORIGIN, 0, 9) == [b"l0", b"l1"]


def test_store_second_entry_of_an_index_is_refused_and_the_whole_transaction_with_it(opening: Opener) -> None:
    store = opening()
    store.keep([Kept(held=Held(origin=ORIGIN, size=1), leaves=[b"l0"])])
    fresh = Kept(held=Held(origin=OTHER, size=1), leaves=[b"m0"])
    with pytest.raises(MirrorFault, match="E-MIRROR-STORE"):
        store.keep([fresh, Kept(held=Held(origin=ORIGIN, size=2), leaves=[b"other"])])
    again = opening()
    assert again.held() == [Held(origin=ORIGIN, size=1)]
    assert again.leaves(ORIGIN, 0, 9) == [b"l0"]
    assert again.leaves(OTHER, 0, 9) == []


def test_store_evidence_that_comes_twice_is_kept_once(opening: Opener) -> None:
    store = opening()
    for _ in range(2):
        store.keep([Kept(held=HELD, evidence=[piece(4, b"same")])])
    assert opening().evidence(ORIGIN) == [piece(4, b"same")]


def test_store_that_a_mirror_writes_is_busy_for_another_and_open_to_readers(opening: Opener) -> None:
    opening().keep([Kept(held=HELD)])
    with pytest.raises(MirrorFault, match="E-MIRROR-BUSY"):
        PostgresStore.open(opening.url) if opening.kind == "postgresql" else SqliteStore.open(
            Path(opening.url), allow_volatile=True
        )
    assert opening.read().held() == [HELD]


def test_store_reader_writes_nothing(opening: Opener) -> None:
    opening().keep([Kept(held=HELD)])
    with pytest.raises(MirrorFault, match="E-MIRROR-STORE"):
        opening.read().keep([Kept(held=Held(origin=OTHER))])
    assert opening.read().held() == [HELD]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 600])
def test_store_root_at_an_earlier_size_is_that_of_the_tree(opening: Opener, size: int) -> None:
    table = Table(entries=600)
    blocks = [(n, root_of(table.hashes[256 * n : 256 * (n + 1)])) for n in range(2)]
    store = opening()
    store.keep([Kept(held=Held(origin=ORIGIN, size=600), leaves=table.all, blocks=blocks)])
    assert stored_root(store, ORIGIN, size) == table.root(size)


# ── Where a store cannot be ───────────────────────────────────────────────────────────────────────────────────────────


def test_sqlite_store_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mirror.sqlite"
    path.write_bytes(b"a letter\n" * 100)
    with pytest.raises(MirrorFault, match="E-MIRROR-STORE"):
        SqliteStore.open(path, allow_volatile=True)
    assert path.read_bytes() == b"a letter\n" * 100


def test_sqlite_store_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MirrorFault, match="E-MIRROR-STORE"):
        SqliteStore.open(tmp_path / "nowhere" / "mirror.sqlite", allow_volatile=True)
    with pytest.raises(MirrorFault, match="there is no store"):
        SqliteStore.read(tmp_path / "mirror.sqlite")


def test_sqlite_store_draft_of_a_making_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "mirror.sqlite.new").write_bytes(b"half")
    store = SqliteStore.open(tmp_path / "mirror.sqlite", allow_volatile=True)
    assert store.held() == []
    store.close()


def test_postgresql_store_where_nobody_listens_is_refused() -> None:
    with pytest.raises(MirrorFault, match="E-MIRROR-STORE PostgreSQL"):
        PostgresStore.open("postgresql://mirror@127.0.0.1:1/nowhere")


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_postgresql_store_of_a_server_that_a_power_cut_empties_is_refused(initdb: Path, setting: str) -> None:
    server = Postgres(initdb).start(f"{setting}=off")
    try:
        with pytest.raises(MirrorFault, match=f"PostgreSQL runs with {setting} = off"):
            PostgresStore.open(server.database())
    finally:
        server.stop()


def test_postgresql_store_asks_for_commits_that_wait_for_the_disk_whatever_the_database_says(
    postgres: Postgres,
) -> None:
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    store = PostgresStore.open(url)
    row = store._connection.execute("SELECT current_setting('synchronous_commit')").fetchone()
    assert row == ("on",)
    store.close()
