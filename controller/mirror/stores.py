"""A store by its address: ``postgresql://…``, ``sqlite:///FILE``, or a file."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from controller.mirror.faults import MirrorFault
from controller.mirror.options import POSTGRESQL, SQLITE
from controller.mirror.sqlite_store import SqliteStore
from controller.mirror.store import Store

if TYPE_CHECKING:
    from controller.mirror.postgres_store import PostgresStore


def open_store(address: str, *, allow_volatile: bool = False) -> Store:
    """The store at ``address``, for writing; made if there is none.

    ``allow_volatile`` permits an SQLite file on a file system that loses commits, for a rehearsal.
    Raises MirrorFault: E-MIRROR-STORE, E-MIRROR-BUSY, E-MIRROR-POSTGRES.
    """
    if _scheme(address) != POSTGRESQL:
        return SqliteStore.open(_file(address), allow_volatile=allow_volatile)
    return _postgres().open(address)


def read_store(address: str) -> Store:
    """An existing store, to look at. Raises MirrorFault: E-MIRROR-STORE, E-MIRROR-POSTGRES."""
    if _scheme(address) != POSTGRESQL:
        return SqliteStore.read(_file(address))
    return _postgres().read(address)


def _scheme(address: str) -> str:
    return urlsplit(address).scheme if "://" in address else ""


def _file(address: str) -> Path:
    """``sqlite:///relative`` and ``sqlite:////absolute``, as others write it, or the file's path."""
    return Path(unquote(address.removeprefix(f"{SQLITE}:///"))) if _scheme(address) == SQLITE else Path(address)


def _postgres() -> "type[PostgresStore]":
    """PostgreSQL's client is needed, and installed, only where a mirror keeps its store there."""
    try:
        from controller.mirror.postgres_store import PostgresStore
    except ImportError as error:
        raise MirrorFault("E-MIRROR-POSTGRES", f"the client of PostgreSQL cannot be loaded: {error}") from error
    return PostgresStore
