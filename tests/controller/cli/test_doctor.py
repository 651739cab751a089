"""``tablectl doctor``: a table of real parts that could open, and each part taken away in turn."""

import fcntl
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from gpiozero.pins.mock import MockFactory

from controller.certify.journal import Journal
from controller.certify.keys import create_key
from controller.cli import device_checks
from controller.cli.checks import lock_holder
from controller.service import TimeQuality
from drivers.ports import DeviceFault
from tests.controller.cli.conftest import Run, Serve, Status
from tests.controller.cli.forgery import alter, flip_byte

Document = dict[str, Any]


class Cabinet(NamedTuple):
    """A table that is complete and stopped, with its configuration."""

    folder: Path
    config: Path

    def change(self, old: str, new: str) -> None:
        """Change the configuration."""
        text = self.config.read_text(encoding="utf-8")
        assert old in text
        self.config.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def broker() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def cabinet(run: Run, launcher: Path, tmp_path: Path, broker: int) -> Cabinet:
    """Key, journal, persons and broker; the wheel is not connected."""
    text = launcher.read_text(encoding="utf-8")
    text = text[: text.index("[mqtt]")].replace("posts = 6", "posts = 6\nsimulation = true")
    text = text.replace('"credential:table-key"', f'"{tmp_path / "table.key"}"\nvolatile = true')
    text = text.replace("/var/lib/table-controller/t07", str(tmp_path))
    text = text.replace('device = "gpio"', f'device = "twin:{tmp_path / "panel.sock"}"')
    text = text.replace('"/dev/table/wheel"', f'"{tmp_path / "wheel"}"\nstatus_period_ms = 100\nsilence_ms = 500')
    text += f'[mqtt]\nhost = "127.0.0.1"\nport = {broker}\n'
    for badge, role in (("D1", "director"), ("C1", "cashier")):
        words = ("--person", badge, "--site", "casino.example.simulation", "--out", tmp_path / badge)
        vkey = json.loads(run("key", "create", *words, "--json").stdout)["vkey"]
        text += f'\n[[person]]\nbadge = "{badge}"\nrole = "{role}"\nvkey = "{vkey}"\n'
    config = tmp_path / "table.toml"
    config.write_text(text, encoding="utf-8")
    assert run("key", "create", "--config", config).exit_code == 0
    assert run("journal", "create", "--config", config, "--yes").exit_code == 0
    return Cabinet(tmp_path, config)


@contextmanager
def wheel(link: Path) -> Iterator[None]:
    """A wheel on a real pseudo-terminal, five times faster than life."""
    command = [sys.executable, "-m", "drivers.twin.wheel", "--link", str(link), "--speed", "5"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            while not link.exists():
                assert process.poll() is None, "the wheel ended by itself"
                select.select([process.stderr], [], [], 0.02)
            yield
        finally:
            process.terminate()


def examined(run: Run, cabinet: Cabinet, *words: object) -> Document:
    document: Document = json.loads(run("doctor", "--config", cabinet.config, "--json", *words).stdout)
    return document


def codes(document: Document, subject: str) -> list[tuple[str, str]]:
    return [(one["level"], one["code"]) for one in document["findings"] if one["subject"] == subject]


def test_doctor_of_a_complete_table_finds_that_it_could_open(run: Run, cabinet: Cabinet) -> None:
    with wheel(cabinet.folder / "wheel"):
        told = examined(run, cabinet)
    assert told["could_open"] is True, told
    assert {one["code"] for one in told["findings"]} <= {"", "E-CLOCK-UNSURE", "E-MIRROR-NONE"}, (
        "a machine may have no time server"
    )
    subjects = {one["subject"] for one in told["findings"]}
    assert subjects == {
        "configuration",
        "table",
        "key",
        "journal",
        "rules",
        "space",
        "wheel",
        "panel",
        "broker",
        "mirror",
        "clock",
        "persons",
    }


def test_doctor_of_a_table_without_anything_names_every_reason_at_once(run: Run, launcher: Path) -> None:
    result = run("doctor", "--config", launcher)
    assert result.exit_code == 1
    for code in ("E-JOURNAL-MISSING", "E-SERIAL-ABSENT", "E-MQTT-CREDENTIALS", "E-PERSON-MISSING"):
        assert code in result.stdout
    assert re.search(r"^error +journal ", result.stdout, re.MULTILINE)
    assert f"tablectl journal create --config {launcher}\n" in result.stdout, "to be copied as it stands"
    assert "→" in result.stdout


def test_doctor_of_a_bad_configuration_names_every_mistake_with_status_2(run: Run, cabinet: Cabinet) -> None:
    cabinet.change("posts = 6", "posts = 600\npost = 6")
    result = run("doctor", "--config", cabinet.config)
    assert result.exit_code == 2
    assert result.stdout.count("error") >= 2
    assert "table.posts" in result.stdout
    assert "table.post" in result.stdout


def forget_key(cabinet: Cabinet) -> None:
    (cabinet.folder / "table.key").unlink()


def expose_key(cabinet: Cabinet) -> None:
    (cabinet.folder / "table.key").chmod(0o644)


def exchange_key(cabinet: Cabinet) -> None:
    (cabinet.folder / "table.key").unlink()
    create_key(cabinet.folder / "table.key", "casino.example.simulation/table/t99/1")


def lose_journal(cabinet: Cabinet) -> None:
    (cabinet.folder / "journal.sqlite").unlink()


def replace_journal(cabinet: Cabinet) -> None:
    (cabinet.folder / "journal.sqlite").write_text("something else", encoding="ascii")


def forget_checkpoint(cabinet: Cabinet) -> None:
    alter(cabinet.folder / "journal.sqlite", "DELETE FROM checkpoint")


def damage_salt(cabinet: Cabinet) -> None:
    (cabinet.folder / "player-salt").write_bytes(b"short")


@pytest.mark.parametrize(
    ("spoil", "subject", "code"),
    [
        (forget_key, "key", "E-KEY-MISSING"),
        (expose_key, "key", "E-KEY-EXPOSED"),
        (exchange_key, "key", "E-KEY-OTHER"),
        (lose_journal, "journal", "E-JOURNAL-MISSING"),
        (replace_journal, "journal", "E-JOURNAL-FOREIGN"),
        (forget_checkpoint, "journal", "E-JOURNAL-UNSIGNED"),
        (damage_salt, "salt", "E-SALT"),
    ],
)
def test_doctor_finds_what_is_wrong_with_key_and_journal(
    run: Run, cabinet: Cabinet, spoil: Callable[[Cabinet], None], subject: str, code: str
) -> None:
    spoil(cabinet)
    told = examined(run, cabinet)
    assert ("error", code) in codes(told, subject), told
    assert told["could_open"] is False


def test_doctor_finds_an_altered_end_of_the_journal(run: Run, cabinet: Cabinet, evening: Path) -> None:
    shutil.copy(evening / "journal.sqlite", cabinet.folder / "journal.sqlite")
    shutil.copy(evening / "table.vkey", cabinet.folder / "table.vkey")
    forget_key(cabinet)
    assert codes(examined(run, cabinet), "journal") == [("ok", "")]
    flip_byte(cabinet.folder / "journal.sqlite", 100, b'"specversion":"1.0"', b'"specversion":"1.1"')
    told = examined(run, cabinet)
    assert codes(told, "journal") == [("error", "E-JOURNAL-ALTERED")]
    assert "100" in next(one["detail"] for one in told["findings"] if one["subject"] == "journal")


def test_doctor_finds_posts_that_are_not_those_of_the_journal(run: Run, cabinet: Cabinet, evening: Path) -> None:
    shutil.copy(evening / "journal.sqlite", cabinet.folder / "journal.sqlite")
    forget_key(cabinet)
    cabinet.change("posts = 6", "posts = 5")
    assert codes(examined(run, cabinet), "rules")[0][0] == "error"


def test_doctor_finds_an_epoch_that_began_in_silence(run: Run, cabinet: Cabinet) -> None:
    cabinet.change("posts = 6", "posts = 6\nepoch = 2")
    forget_key(cabinet)
    lose_journal(cabinet)
    signer = create_key(cabinet.folder / "table.key", "casino.example.simulation/table/t07/2")
    Journal.create(cabinet.folder / "journal.sqlite", signer, allow_volatile=True)
    assert codes(examined(run, cabinet), "rules") == [("error", "E-EPOCH-UNPROCLAIMED")]


def test_doctor_finds_a_journal_at_a_place_that_forgets(run: Run, cabinet: Cabinet) -> None:
    cabinet.change("volatile = true", "")
    cabinet.change(str(cabinet.folder / "journal.sqlite"), "/dev/shm/no-table/journal.sqlite")
    assert codes(examined(run, cabinet), "journal") == [("error", "E-JOURNAL-VOLATILE")]


def test_doctor_finds_the_process_that_holds_the_journal_and_does_not_answer(run: Run, cabinet: Cabinet) -> None:
    assert lock_holder(cabinet.folder) is None
    descriptor = os.open(cabinet.folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    told = examined(run, cabinet)
    os.close(descriptor)
    assert codes(told, "table") == [("error", "E-JOURNAL-BUSY")]
    assert str(os.getpid()) in next(one["detail"] for one in told["findings"] if one["subject"] == "table")


@pytest.mark.parametrize(
    ("free", "level", "code"), [(50, "ok", ""), (15, "warn", "E-STORAGE-LOW"), (7, "error", "E-STORAGE-LOW")]
)
def test_doctor_judges_the_free_space_as_the_table_does(
    run: Run, cabinet: Cabinet, monkeypatch: pytest.MonkeyPatch, free: int, level: str, code: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=100, free=free))
    assert codes(examined(run, cabinet), "space") == [(level, code)]


def test_doctor_finds_a_wheel_whose_parameters_are_not_the_registered_ones(run: Run, cabinet: Cabinet) -> None:
    cabinet.change("[panel]", '[wheel.parameters]\nfirmware = "V2.53"\n\n[panel]')
    with wheel(cabinet.folder / "wheel"):
        told = examined(run, cabinet)
    assert codes(told, "wheel") == [("error", "E-WHEEL-NOT-VERIFIED")]
    assert "V2.53" in next(one["detail"] for one in told["findings"] if one["subject"] == "wheel")


def test_doctor_finds_a_port_that_another_program_holds(run: Run, cabinet: Cabinet) -> None:
    with wheel(cabinet.folder / "wheel"), (cabinet.folder / "wheel").open("rb", buffering=0) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert codes(examined(run, cabinet), "wheel") == [("error", "E-SERIAL-BUSY")]


def test_doctor_finds_a_board_without_pins_and_pins_that_are_held(
    run: Run, cabinet: Cabinet, monkeypatch: pytest.MonkeyPatch
) -> None:
    cabinet.change(f'"twin:{cabinet.folder / "panel.sock"}"', '"gpio"')

    def absent() -> Any:
        raise DeviceFault("E-GPIO-ABSENT", "/dev", "no chip")

    monkeypatch.setattr(device_checks, "open_header", absent)
    assert codes(examined(run, cabinet), "panel") == [("error", "E-GPIO-ABSENT")]
    monkeypatch.setattr(device_checks, "open_header", MockFactory)
    assert codes(examined(run, cabinet), "panel") == [("ok", "")]


@pytest.mark.parametrize(("key", "level"), [(True, "warn"), (False, "error")])
def test_doctor_finds_a_broker_out_of_reach_and_weighs_it_by_the_director_key(
    run: Run, cabinet: Cabinet, broker: int, key: bool, level: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    cabinet.change(f"port = {broker}", f"port = {free}")
    if not key:
        cabinet.change("director = 17", "")
    assert codes(examined(run, cabinet), "broker") == [(level, "E-MQTT-UNREACHABLE")]


def test_doctor_warns_when_nobody_can_load_a_post(run: Run, cabinet: Cabinet) -> None:
    cabinet.change('role = "cashier"', 'role = "technician"')
    told = examined(run, cabinet)
    assert codes(told, "persons") == [("warn", "E-PERSON-MISSING")]


@pytest.mark.parametrize(
    ("quality", "expected"), [(TimeQuality.NTP, ("ok", "")), (TimeQuality.FREE, ("warn", "E-CLOCK-UNSURE"))]
)
def test_doctor_warns_of_a_clock_that_nobody_set(
    run: Run, cabinet: Cabinet, monkeypatch: pytest.MonkeyPatch, quality: TimeQuality, expected: tuple[str, str]
) -> None:
    monkeypatch.setattr("controller.cli.checks.time_quality", lambda: quality)
    assert codes(examined(run, cabinet), "clock") == [expected]


# ── A table that runs ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_of_a_running_table_asks_it_and_leaves_its_port_alone(
    run: Run, cabinet: Cabinet, serve: Serve, betting: Status
) -> None:
    told = examined(run, cabinet, "--socket", serve(betting))
    assert codes(told, "wheel") == [("ok", "")]
    assert codes(told, "panel") == [("ok", "")]
    assert codes(told, "opening") == [("ok", "")]
    assert told["could_open"] is True
    shown = run("doctor", "--config", cabinet.config, "--socket", serve(betting))
    assert (shown.exit_code, "nothing stands in the way" in shown.stdout) == (0, True)


def test_doctor_of_a_running_table_tells_what_ails_it(
    run: Run, cabinet: Cabinet, serve: Serve, betting: Status
) -> None:
    betting["wheel"] |= {"link_is_up": False, "fault": "E-SERIAL-LOST /dev/table/wheel: gone"}
    betting["panel"]["inputs"][2]["troubles"] = ["stuck"]
    betting["panel"]["lamps"][0]["fault"] = "E-GPIO-GONE: the chip is gone"
    betting["service"] |= {"withheld": "4000 inputs wait", "board": {"temperature_mc": 83_000, "undervoltage": True}}
    betting["delivery"]["halted"] = "E-JOURNAL-FORKED"
    betting["faults"] = {"E-MQTT-TLS": "expired"}
    betting["table"]["round_refused_for"] = ["E-WHEEL-SILENT", "E-ROUND-OPEN"]
    told = examined(run, cabinet, "--socket", serve(betting))
    assert codes(told, "wheel") == [("error", "E-SERIAL-LOST")]
    assert codes(told, "panel") == [("warn", "E-INPUT-STUCK"), ("warn", "E-GPIO-GONE")]
    assert codes(told, "delivery") == [("error", "E-JOURNAL-FORKED")]
    assert codes(told, "opening") == [("error", "E-WHEEL-SILENT")]
    assert codes(told, "table")[1:] == [
        ("error", "E-SERVICE-AILING"),
        ("warn", "E-BOARD-UNDERVOLTAGE"),
        ("warn", "E-BOARD-HOT"),
        ("warn", "E-MQTT-TLS"),
    ]


def test_doctor_of_a_closed_table_waits_for_the_croupier_without_calling_it_trouble(
    run: Run, cabinet: Cabinet, serve: Serve, croupier_statuses: list[Status]
) -> None:
    closed = next(one for one in croupier_statuses if one["table"]["opening_refused_for"] == ["E-POSTS-NOT-IN-SERVICE"])
    told = examined(run, cabinet, "--socket", serve(closed))
    assert codes(told, "opening") == [("warn", "E-POSTS-NOT-IN-SERVICE")]


def test_doctor_without_words_and_without_a_table_asks_which_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("controller.cli.link.RUNTIME", tmp_path)
    result = run("doctor")
    assert (result.exit_code, "E-TABLE-UNNAMED" in result.stderr) == (3, True)


def test_doctor_changes_nothing_in_the_folder_of_a_table(run: Run, cabinet: Cabinet) -> None:
    def content() -> dict[str, bytes]:
        files = [path for path in cabinet.folder.iterdir() if path.is_file() and "sqlite-" not in path.name]
        return {path.name: path.read_bytes() for path in files}  # a reader leaves SQLite's index beside a journal

    before = content()
    examined(run, cabinet)
    assert content() == before
