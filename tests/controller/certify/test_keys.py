"""Key files: made on purpose, kept to the owner, never overwritten."""

import os
import stat
from pathlib import Path

import pytest

from controller.certify.faults import KeyFault
from controller.certify.keys import create_key, load_key, person_key_name, table_key_name
from controller.certify.note import Signer

NAME = "casino.example/table/t07/1"


def fault_of(path: Path) -> KeyFault:
    with pytest.raises(KeyFault) as caught:
        load_key(path)
    return caught.value


def test_key_file_that_was_created_loads_and_is_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "table.key"
    umask = os.umask(0)
    try:
        created = create_key(path, NAME)
    finally:
        os.umask(umask)
    assert load_key(path).verifier.vkey == created.verifier.vkey
    assert created.name == NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text(encoding="ascii") == f"{created.skey}\n"


def test_key_file_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "table.key"
    path.write_text("precious", encoding="ascii")
    with pytest.raises(KeyFault) as caught:
        create_key(path, NAME)
    assert caught.value.code == "E-KEY-EXISTS"
    assert path.read_text(encoding="ascii") == "precious"


def test_key_file_behind_a_dangling_link_is_not_written_through_it(tmp_path: Path) -> None:
    path = tmp_path / "table.key"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyFault) as caught:
        create_key(path, NAME)
    assert caught.value.code == "E-KEY-EXISTS"
    assert not (tmp_path / "elsewhere").exists()


def test_key_file_in_a_folder_that_is_missing_is_a_clear_fault(tmp_path: Path) -> None:
    with pytest.raises(KeyFault, match="No such file") as caught:
        create_key(tmp_path / "none" / "table.key", NAME)
    assert caught.value.code == "E-KEY-WRITE"


def test_key_file_that_is_missing_is_never_made_by_loading(tmp_path: Path) -> None:
    path = tmp_path / "table.key"
    assert fault_of(path).code == "E-KEY-MISSING"
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o777])
def test_key_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "table.key"
    create_key(path, NAME)
    path.chmod(mode)
    fault = fault_of(path)
    assert fault.code == "E-KEY-EXPOSED"
    assert f"{mode:04o}" in fault.detail


def test_key_file_handed_over_by_systemd_may_show_rights_of_the_group_but_not_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.key"
    created = create_key(path, NAME)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    path.chmod(0o440)
    assert load_key(path).skey == created.skey
    path.chmod(0o444)
    assert fault_of(path).code == "E-KEY-EXPOSED"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "other"))
    path.chmod(0o440)
    assert fault_of(path).code == "E-KEY-EXPOSED"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "E-KEY-MALFORMED"),
        (b"\xff\xfe", "E-KEY-MALFORMED"),
        (b"x" * 10_000, "E-KEY-MALFORMED"),
        (Signer(NAME, bytes(32)).skey.encode()[:-1], "E-KEY-MALFORMED"),
        (Signer(NAME, bytes(32)).skey.encode() + b"\n\n", "E-KEY-MALFORMED"),
        (Signer("anything", bytes(32)).skey.encode(), "E-KEY-NAME"),
    ],
)
def test_key_file_with_other_content_is_refused(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "table.key"
    path.write_bytes(content)
    path.chmod(0o600)
    assert fault_of(path).code == code


def test_key_file_that_is_a_folder_is_unreadable(tmp_path: Path) -> None:
    assert fault_of(tmp_path).code == "E-KEY-UNREADABLE"


def test_key_names_are_built_for_tables_and_persons() -> None:
    assert table_key_name("casino.example", "t07") == "casino.example/table/t07/1"
    assert table_key_name("casino.example", "t07", epoch=2) == "casino.example/table/t07/2"
    assert person_key_name("casino.example", "D-12") == "casino.example/personne/D-12"


@pytest.mark.parametrize(
    ("site", "table", "epoch"),
    [
        ("", "t07", 1),
        ("Casino.example", "t07", 1),
        ("casino example", "t07", 1),
        ("casino.example/x", "t07", 1),
        ("c" * 254, "t07", 1),
        ("casino.example", "", 1),
        ("casino.example", "t+7", 1),
        ("casino.example", "T07", 1),
        ("casino.example", "t/7", 1),
        ("casino.example", "t" * 33, 1),
        ("casino.example", "t07", 0),
        ("casino.example", "t07", -1),
    ],
)
def test_key_name_of_a_table_that_is_out_of_form_is_refused(site: str, table: str, epoch: int) -> None:
    with pytest.raises(KeyFault) as caught:
        table_key_name(site, table, epoch)
    assert caught.value.code == "E-KEY-NAME"


def test_key_name_out_of_form_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyFault) as caught:
        create_key(tmp_path / "key", "casino.example/person/D12")
    assert caught.value.code == "E-KEY-NAME"
    assert list(tmp_path.iterdir()) == []
