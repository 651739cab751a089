"""A configuration's file before its schema: read, its paths made absolute, its keys found. A table's and a mirror's."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from controller.config_faults import ConfigError, ConfigFault

CREDENTIAL = "credential:"
"""How the option of a key begins that systemd hands over."""


def read_document(path: Path) -> dict[str, Any]:
    """The TOML in a file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        why = error.strerror
        unread = ConfigFault(str(path), "", f"cannot be read: {why}", f"ne peut pas être lu : {why}")
        raise ConfigError(path, [unread]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        no_toml = ConfigFault(str(path), "", f"is not TOML: {error}", f"n'est pas du TOML : {error}")
        raise ConfigError(path, [no_toml]) from None


def absolute(document: Mapping[str, Any], folder: Path, paths: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The document with the options ``paths`` (section, option) absolute: a relative one starts at ``folder``."""
    found = {name: dict(section) if isinstance(section, dict) else section for name, section in document.items()}
    for section, option in paths:
        value = found.get(section, {}).get(option) if isinstance(found.get(section), dict) else None
        if isinstance(value, str) and not value.startswith(CREDENTIAL):
            found[section][option] = str(folder / value)
    return found


def credential(key: str) -> Path:
    """The file of a key option. Raises KeyError when a systemd credential is named outside systemd."""
    if key.startswith(CREDENTIAL):
        return Path(os.environ["CREDENTIALS_DIRECTORY"]) / key.removeprefix(CREDENTIAL)
    return Path(key)
