"""Real stores, real journals and a real broker for the mirror."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from controller.mirror.postgres_store import PostgresStore
from controller.mirror.sqlite_store import SqliteStore
from controller.mirror.store import Store
from tests.controller.mirror.casino import Opener

POSTGRES_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Postgres:
    """A throw-away cluster: made, run as somebody who is not root (it refuses to be), and taken away again."""

    def __init__(self, initdb: Path) -> None:
        self.port = free_port()
        # Not below pytest's folders, which belong to root alone.
        self._folder = Path(tempfile.mkdtemp(prefix="mirror-postgres-"))
        self._initdb = initdb
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"store{number}" for number in count())

    def start(self, *settings: str) -> "Postgres":
        account = self._account()
        if account:
            os.chown(self._folder, account["user"], account["group"])
        made = (
            self._initdb,
            "-D",
            self._folder,
            "-U",
            "mirror",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        subprocess.run([*map(str, made)], check=True, capture_output=True, cwd="/", **account)
        server = (self._initdb.with_name("postgres"), "-D", self._folder, "-p", self.port)
        options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=16MB", *settings)
        command = [*map(str, server), *(word for one in options for word in ("-c", one))]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd="/", **account)
        assert self._process.stderr is not None
        said = b""
        while b"ready to accept connections" not in said:
            line = self._process.stderr.readline()
            assert line, said.decode()
            said += line
        return self

    def _account(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = next(self._names)
        with closing(psycopg.connect(self._url("postgres"), autocommit=True)) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._url(name)

    def copy(self, url: str) -> str:
        """A copy of a database that nobody uses now: what a backup would have."""
        name = next(self._names)
        with closing(psycopg.connect(self._url("postgres"), autocommit=True)) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {url.rpartition('/')[2]}".encode())
        return self._url(name)

    def _url(self, name: str) -> str:
        return f"postgresql://mirror@127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)  # at once: nobody needs what is in it
        self._process.communicate()
        shutil.rmtree(self._folder)


@pytest.fixture(scope="session")
def initdb(program: Callable[[str], str]) -> Path:
    """Debian keeps PostgreSQL's programs out of the way."""
    return POSTGRES_PLACES[-1] / "initdb" if POSTGRES_PLACES else Path(program("initdb"))


@pytest.fixture(scope="session")
def postgres(initdb: Path) -> Iterator[Postgres]:
    """One cluster for all tests of a run; each test takes a database of its own."""
    server = Postgres(initdb).start()
    yield server
    server.stop()


class Opening:
    """The stores of one kind: opened, opened again, looked at, and put back to an earlier state."""

    def __init__(self, kind: str, folder: Path, server: Postgres | None) -> None:
        self.kind = kind
        self.url = server.database() if server else str(folder / "mirror" / "mirror.sqlite")
        self._server = server
        self._opened: list[Store] = []
        (folder / "mirror").mkdir(exist_ok=True)

    def __call__(self) -> Store:
        """The store, for writing, after the one that was opened before was closed."""
        self.close()
        store: Store = (
            PostgresStore.open(self.url) if self._server else SqliteStore.open(Path(self.url), allow_volatile=True)
        )
        self._opened.append(store)
        return store

    def read(self) -> Store:
        """The store, to look at it."""
        store: Store = PostgresStore.read(self.url) if self._server else SqliteStore.read(Path(self.url))
        self._opened.append(store)
        return store

    def backup(self) -> None:
        """Close it and remember what is in it now."""
        self.close()
        if self._server:
            self._backup = self._server.copy(self.url)
        else:
            self._backup = f"{self.url}.backup"
            shutil.copy(self.url, self._backup)

    def restore(self) -> None:
        """Put the backup in its place."""
        self.close()
        if self._server:
            self.url = self._server.copy(self._backup)
        else:
            for rest in Path(self.url).parent.glob("mirror.sqlite-*"):
                rest.unlink()
            shutil.copy(self._backup, self.url)

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


@pytest.fixture(params=["sqlite", "postgresql"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """The same tests for both stores."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    made = Opening(request.param, tmp_path, server)
    yield made
    made.close()
