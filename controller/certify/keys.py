"""Key files: one private key, one line, mode 0600. They are made on purpose, and never overwritten or copied.

A table's key is named ``<site>/table/<table>/<epoch>``, which is also the origin of its journal; a person's key is
named ``<site>/personne/<badge>``. A lost key is not restored from a backup, because a restored key is a clone: the
journal of a new epoch begins instead. So a missing key stops the start, and nothing here ever makes one by itself.
"""

import os
import re
import stat
from pathlib import Path

from controller.certify.faults import KeyFault
from controller.certify.note import KeyType, Signer

FILE_BOUND = 4_096
"""Bytes of the longest key file that is read."""

_SITE = r"(?=.{1,253}/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_TABLE_NAME = re.compile(_SITE + r"/table/[a-z0-9][a-z0-9-]{0,31}/[1-9][0-9]{0,5}")
_PERSON_NAME = re.compile(_SITE + r"/personne/[A-Za-z0-9][A-Za-z0-9-]{0,31}")


def table_key_name(site: str, table: str, epoch: int = 1) -> str:
    """The name of a table's key, and the origin of its journal. Raises KeyFault (E-KEY-NAME)."""
    return _checked(f"{site}/table/{table}/{epoch}")


def person_key_name(site: str, badge: str) -> str:
    """The name of a person's key. Raises KeyFault (E-KEY-NAME)."""
    return _checked(f"{site}/personne/{badge}")


def is_table_name(name: str) -> bool:
    """Whether ``name`` is that of a table's key, and so the origin of a journal."""
    return _TABLE_NAME.fullmatch(name) is not None


def _checked(name: str) -> str:
    if not _TABLE_NAME.fullmatch(name) and not _PERSON_NAME.fullmatch(name):
        forms = "<site>/table/<table>/<epoch> or <site>/personne/<badge>"
        raise KeyFault("E-KEY-NAME", f"{name!r} must read {forms}: site and table in lower case, digits and hyphens")
    return name


def create_key(path: Path, name: str) -> Signer:
    """Make a new key named ``name`` and write it to ``path``, durably, for the owner's eyes only.

    Raises KeyFault: E-KEY-NAME, E-KEY-EXISTS when there is anything at ``path``, E-KEY-WRITE when it cannot be written.
    """
    return _written(path, Signer.generate(_checked(name)))


def create_cosigner_key(path: Path, name: str) -> Signer:
    """Make a new key of a mirror or a witness (type 0x04), like ``create_key``; any name that a key may have."""
    return _written(path, Signer.generate(name, KeyType.COSIGNATURE))


def _written(path: Path, signer: Signer) -> Signer:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(descriptor, 0o600)
            file.write(f"{signer.skey}\n")
            file.flush()
            os.fsync(descriptor)
        sync_folder(path.parent)
    except FileExistsError:
        raise KeyFault("E-KEY-EXISTS", f"{path} exists; a key is never overwritten") from None
    except OSError as error:
        raise KeyFault("E-KEY-WRITE", f"{path} cannot be written: {error.strerror}") from error
    return signer


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load_key(path: Path) -> Signer:
    """Read a key file.

    Raises KeyFault: E-KEY-MISSING, E-KEY-UNREADABLE, E-KEY-EXPOSED when others than the owner may read it,
    E-KEY-MALFORMED, E-KEY-NAME.
    """
    signer = load_cosigner_key(path)
    _checked(signer.name)
    return signer


def load_cosigner_key(path: Path) -> Signer:
    """Read the key file of a mirror or a witness, which may have any name. Raises KeyFault like ``load_key``."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(FILE_BOUND)
    except FileNotFoundError:
        raise KeyFault("E-KEY-MISSING", f"there is no key file {path}") from None
    except OSError as error:
        raise KeyFault("E-KEY-UNREADABLE", f"{path} cannot be read: {error.strerror}") from error
    others = stat.S_IMODE(status.st_mode) & (0o007 if _is_credential(path) else 0o077)
    if others:
        raise KeyFault("E-KEY-EXPOSED", f"{path} has mode {stat.S_IMODE(status.st_mode):04o}; it must be 0600 or 0400")
    line = content.decode("ascii", errors="replace").removesuffix("\n")
    return Signer.parse(line)


def _is_credential(path: Path) -> bool:
    """Whether systemd hands this file over (``LoadCredential=``).

    It guards them by an access list for the service's user, whose mask shows as rights of the group.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return folder is not None and path.parent == Path(folder)
