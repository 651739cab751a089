"""``tablectl key rotate``: it makes the second key, and lets the overlap end only when others have seen both."""

import json
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller.certify.journal import Journal
from controller.certify.keys import create_key, load_key
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier, parse_note
from controller.certify.rotation import open_rotation
from controller.config import load
from drivers.clock import ManualClock
from tests.controller.certify.workshop import BOOT, MIRROR, stakes
from tests.controller.cli.conftest import Run

ORIGIN = "casino.example/table/t07/1"


class Table:
    """A table whose files are in a folder: its configuration, its key, its journal and its public key."""

    def __init__(self, folder: Path, launcher: Path) -> None:
        self.folder, self.launcher = folder, launcher
        self.key, self.journal, self.vkey = folder / "table.key", folder / "journal.sqlite", folder / "table.vkey"
        signer = create_key(self.key, ORIGIN)
        Journal.create(self.journal, signer, allow_volatile=True)
        self.vkey.write_text(f"{signer.verifier.vkey}\n", encoding="ascii")
        self.config = self.configured('key = "table.key"')

    def configured(self, keys: str, *, mirror: bool = True) -> Path:
        text = self.launcher.read_text(encoding="utf-8")
        text = text.replace("/var/lib/table-controller/t07/journal.sqlite", "journal.sqlite")
        text = text.replace('key = "credential:table-key"', keys)
        text += f'\n[mirror]\nvkey = "{MIRROR.verifier.vkey}"\n' if mirror else ""
        config = self.folder / "t07.toml"
        config.write_text(text, encoding="utf-8")
        return config

    def write(self, key: Path, previous: Path | None, *, cosigned: bool) -> None:
        """What a daemon with these keys leaves in the journal."""
        signer, replaced = load_key(key), load_key(previous) if previous else None
        clock = ManualClock()
        with closing(
            Journal.open(self.journal, signer, clock, BOOT, lambda: "ntp", previous=replaced, allow_volatile=True)
        ) as journal:
            note = journal.append(stakes(3)).note
            if cosigned:
                cosignature = MIRROR.sign(parse_note(note).text, 1).line
                journal.add_cosignature(f"{note}{cosignature}\n", MIRROR.verifier)
            journal.append(stakes(1))


@pytest.fixture
def table(tmp_path: Path, launcher: Path) -> Table:
    return Table(tmp_path, launcher)


def told(run: Run, *words: object) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_rotation_makes_a_key_a_statement_and_a_second_public_key(run: Run, table: Table) -> None:
    document = told(run, "key", "rotate", "--config", table.config)
    old, new = load_key(table.key), load_key(table.folder / "table-2.key")
    assert stat.S_IMODE((table.folder / "table-2.key").stat().st_mode) == 0o600
    assert (document["vkey"], document["old_vkey"]) == (new.verifier.vkey, old.verifier.vkey)
    rotation = open_rotation(Path(document["statement"]).read_text(encoding="utf-8"))
    assert (rotation.old.vkey, rotation.new.vkey) == (old.verifier.vkey, new.verifier.vkey)
    published = LogKeys.parse(table.vkey.read_text(encoding="ascii"))
    assert [verifier.vkey for verifier in published.verifiers] == [old.verifier.vkey, new.verifier.vkey]
    shown = told(run, "key", "show", table.vkey)
    assert shown["vkeys"] == [old.verifier.vkey, new.verifier.vkey]


@pytest.mark.parametrize("locale", ["en_GB.UTF-8", "fr_FR.UTF-8"])
def test_rotation_tells_every_step_and_shows_no_private_key(run: Run, table: Table, locale: str) -> None:
    result = run("key", "rotate", "--config", table.config, locale=locale)
    assert result.exit_code == 0
    for word in ("previous_key", "table-2.key", "table-2.key.rotation", "4."):
        assert word in result.stdout
    assert "PRIVATE" not in result.output
    for file in ("table.key", "table-2.key"):
        assert (table.folder / file).read_text(encoding="ascii").split("+", 4)[-1].strip() not in result.output


def test_rotation_that_was_begun_already_replaces_nothing(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    before = {file.name: file.read_bytes() for file in table.folder.iterdir()}
    again = run("key", "rotate", "--config", table.config)
    assert (again.exit_code, "E-KEY-EXISTS" in again.stderr) == (2, True)
    assert {file.name: file.read_bytes() for file in table.folder.iterdir()} == before


def test_rotation_of_a_rotated_key_counts_on(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    config = table.configured('key = "table-2.key"')
    assert Path(told(run, "key", "rotate", "--config", config)["file"]).name == "table-3.key"


def test_rotation_with_the_key_of_another_table_is_refused(run: Run, table: Table) -> None:
    create_key(table.folder / "other.key", "casino.example/table/t08/1")
    result = run("key", "rotate", "--config", table.config, "--current", table.folder / "other.key")
    assert (result.exit_code, "E-KEY-OTHER" in result.stderr) == (2, True)
    assert not (table.folder / "other-2.key").exists()


def test_rotation_of_a_key_that_systemd_keeps_needs_both_files_and_tells_how_to_seal(run: Run, table: Table) -> None:
    config = table.configured('key = "credential:table-key"')
    for words in ((), ("--out", table.folder / "new.key"), ("--current", table.key)):
        assert run("key", "rotate", "--config", config, *words).exit_code == 64
    document = told(run, "key", "rotate", "--config", config, "--current", table.key, "--out", table.folder / "new.key")
    steps = "\n".join(document["steps"])
    assert "systemd-creds encrypt --name=table-key-next" in steps
    assert "LoadCredentialEncrypted=table-key-next:" in steps
    assert 'key = "credential:table-key-next", previous_key = "credential:table-key"' in steps


def test_overlap_may_end_only_after_the_mirror_cosigned_what_both_keys_signed(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    new = table.folder / "table-2.key"
    config = table.configured('key = "table-2.key"\nprevious_key = "table.key"')
    table.write(table.key, None, cosigned=True)  # the old key's checkpoints say nothing about the new one
    early = run("key", "rotate", "--config", config)
    assert (early.exit_code, "E-KEY-ROTATION" in early.stderr, MIRROR.name in early.stderr) == (1, True, True)
    table.write(new, table.key, cosigned=False)
    assert run("key", "rotate", "--config", config).exit_code == 1
    table.write(new, table.key, cosigned=True)
    document = told(run, "key", "rotate", "--config", config)
    assert (document["may_end"], document["size"]) == (True, 11)
    assert "previous_key" in run("key", "rotate", "--config", config).stdout


def test_overlap_of_a_table_without_a_mirror_may_end_once_both_keys_signed(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    config = table.configured('key = "table-2.key"\nprevious_key = "table.key"', mirror=False)
    assert run("key", "rotate", "--config", config).exit_code == 1
    table.write(table.folder / "table-2.key", table.key, cosigned=False)
    assert told(run, "key", "rotate", "--config", config)["size"] == 4


def test_overlap_is_judged_by_the_public_keys_when_systemd_keeps_the_private_ones(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    table.write(table.folder / "table-2.key", table.key, cosigned=True)
    config = table.configured('key = "credential:table-key-next"\nprevious_key = "credential:table-key"')
    document = told(run, "key", "rotate", "--config", config)
    assert document["size"] == 3
    steps = "\n".join(document["steps"])
    assert "systemd-creds decrypt --name=table-key-next /etc/table-controller/keys/t07-next.cred -" in steps
    assert "systemd-creds encrypt --name=table-key - /etc/table-controller/keys/t07.cred" in steps
    table.vkey.unlink()
    blind = run("key", "rotate", "--config", config)
    assert (blind.exit_code, "E-KEY-ROTATION" in blind.stderr) == (2, True)


def test_doctor_looks_at_both_keys(run: Run, table: Table) -> None:
    told(run, "key", "rotate", "--config", table.config)
    table.write(table.folder / "table-2.key", table.key, cosigned=False)
    config = table.configured('key = "table-2.key"\nprevious_key = "table.key"')
    table.key.chmod(0o644)
    found = run("doctor", "--config", config).output
    assert "previous key" in found
    assert "E-KEY-EXPOSED" in found
    assert load(config).journal.previous_key == str(table.key)
    assert Verifier.parse(load_key(table.folder / "table-2.key").verifier.vkey).name == ORIGIN
