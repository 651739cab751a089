"""The keys with which a daemon signs: from files or from systemd's credentials, one, or two during a change."""

from pathlib import Path

import pytest

from controller.app import previous_key, table_key
from controller.certify.faults import KeyFault
from controller.certify.keys import create_key
from controller.certify.note import Signer
from controller.config import load
from controller.config_faults import ConfigError
from controller.options import Config

EXAMPLE = Path(__file__).resolve().parents[2] / "config" / "roulette-launcher.toml"
ORIGIN = "casino.example/table/t07/1"
NEW = Signer(ORIGIN, bytes(32))
SEALED = {"key": "credential:table-key-next", "previous_key": "credential:table-key"}


def configured(**keys: str) -> Config:
    return load(EXAMPLE, {"journal": keys})


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which systemd hands over credentials, with both keys of a table, as it sets their modes."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    for name in ("table-key", "table-key-next"):
        create_key(folder / name, ORIGIN)
        (folder / name).chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


def code_of(config: Config) -> str:
    with pytest.raises(KeyFault) as caught:
        previous_key(config, NEW)
    return caught.value.code


def test_key_and_previous_key_come_from_two_credentials(credentials: Path) -> None:
    config = configured(**SEALED)
    old, new = (Signer.parse((credentials / name).read_text().strip()) for name in ("table-key", "table-key-next"))
    assert table_key(config).verifier.vkey == new.verifier.vkey
    previous = previous_key(config, new)
    assert previous is not None
    assert previous.verifier.vkey == old.verifier.vkey


def test_table_without_a_previous_key_signs_with_one(credentials: Path) -> None:
    config = configured(key="credential:table-key")
    assert table_key(config).name == ORIGIN
    assert previous_key(config, NEW) is None


def test_previous_key_that_is_missing_exposed_or_another_tables_stops_the_start(
    credentials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_key(tmp_path / "other.key", "casino.example/table/t08/1")
    assert code_of(configured(key="credential:table-key", previous_key=str(tmp_path / "other.key"))) == "E-KEY-OTHER"
    exposed = create_key(tmp_path / "exposed.key", ORIGIN)
    (tmp_path / "exposed.key").chmod(0o640)
    assert (
        code_of(configured(key="credential:table-key", previous_key=str(tmp_path / "exposed.key"))) == "E-KEY-EXPOSED"
    )
    assert exposed.name == ORIGIN
    (credentials / "table-key").unlink()
    assert code_of(configured(**SEALED)) == "E-KEY-MISSING"
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert code_of(configured(**SEALED)) == "E-KEY-MISSING"


def test_copy_of_the_key_is_no_previous_key(credentials: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.key"
    copy.touch(mode=0o600)
    copy.write_bytes((credentials / "table-key").read_bytes())
    config = configured(key="credential:table-key", previous_key=str(copy))
    with pytest.raises(KeyFault) as caught:
        previous_key(config, table_key(config))
    assert caught.value.code == "E-KEY-ROTATION"


def test_previous_key_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "t07.toml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("credential:table-key", "table-2.key")
    file.write_text(text.replace("[roulette]", 'previous_key = "table.key"\n\n[roulette]', 1), encoding="utf-8")
    assert load(file).journal.previous_key == str(tmp_path / "table.key")


def test_one_file_cannot_be_both_keys() -> None:
    with pytest.raises(ConfigError, match="journal"):
        configured(key="credential:table-key", previous_key="credential:table-key")
