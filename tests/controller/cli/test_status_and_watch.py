"""``tablectl status`` and ``tablectl watch``, asked of daemons that answer what real ones answered."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.cli import link as link_
from controller.cli.board import board_lines
from controller.cli.entries import entry_of
from controller.cli.failure import Failure
from controller.cli.output import width_of
from controller.cli.watch import Feed
from tests.controller.cli.conftest import Run, Serve, Status
from tests.controller.cli.test_journal_command import leaves_of


def first(statuses: list[Status], wanted: Callable[[Status], bool]) -> Status:
    chosen: Status = json.loads(json.dumps(next(one for one in statuses if wanted(one))))
    return chosen


# ── status ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_of_a_table_in_play_shows_phase_posts_meters_and_delivery(
    run: Run, serve: Serve, betting: Status
) -> None:
    result = run("status", "--socket", serve(betting))
    assert result.exit_code == 0
    for told in ("SIMULATION", betting["origin"], "Place your bets", "the three last balls", "connected, "):
        assert told in result.stdout
    lines = result.stdout.splitlines()
    for number, post in betting["table"]["posts"].items():
        euros = f"€{post['credit'] // 100}.{post['credit'] % 100:02d}"
        assert any(line.split()[:2] == [number, euros] for line in lines)


def test_status_in_french_counts_in_french_euros(run: Run, serve: Serve, betting: Status) -> None:
    shown = run("status", "--socket", serve(betting), locale="fr_FR.UTF-8").stdout
    assert "Faites vos jeux" in shown
    assert "3\u202f000,00\u202f€" in shown, "six players with 500 € each"


def test_status_for_a_program_is_what_the_daemon_answered(run: Run, serve: Serve, betting: Status) -> None:
    assert json.loads(run("status", "--socket", serve(betting), "--json").stdout) == betting


def test_status_of_a_faulty_wheel_explains_each_hindrance_with_what_to_do(
    run: Run, serve: Serve, croupier_statuses: list[Status]
) -> None:
    faulty = first(
        croupier_statuses,
        lambda one: (
            one["table"]["round_refused_for"] == ["E-WHEEL-FAULTY"] and one["table"]["board"]["phase"] == "idle"
        ),
    )
    shown = run("status", "--socket", serve(faulty)).stdout
    assert "Why the next round does not begin" in shown
    assert "E-WHEEL-FAULTY" in shown
    assert "sensor fault" in shown
    assert "→" in shown


def test_status_of_a_closed_table_says_why_it_does_not_open(
    run: Run, serve: Serve, launcher_statuses: list[Status]
) -> None:
    closed = first(launcher_statuses, lambda one: bool(one["table"]["opening_refused_for"]))
    shown = run("status", "--socket", serve(closed)).stdout
    assert "Why the séance does not open" in shown
    assert closed["table"]["opening_refused_for"][0] in shown


def test_status_tells_faults_of_delivery_service_and_board(run: Run, serve: Serve, betting: Status) -> None:
    betting["faults"] = {"E-MQTT-LOST": "connection reset"}
    betting["delivery"] |= {"connected": False, "waiting": 12, "halted": "E-JOURNAL-FORKED"}
    betting["service"] |= {"withheld": "4000 inputs wait", "board": {"temperature_mc": 61_200, "undervoltage": True}}
    shown = run("status", "--socket", serve(betting)).stdout
    for told in (
        "E-MQTT-LOST",
        "connection reset",
        "not connected, 12 waiting",
        "E-JOURNAL-FORKED",
        "E-SERVICE-AILING",
        "4000 inputs wait",
        "61 °C",
        "too low",
    ):
        assert told in shown


def test_status_of_a_table_that_does_not_run_ends_with_status_3(run: Run, tmp_path: Path) -> None:
    result = run("status", "--socket", tmp_path / "status.sock")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("E-STATUS-SILENT")


def test_status_by_configuration_finds_the_socket_beside_the_journal(
    run: Run, serve: Serve, betting: Status, launcher: Path
) -> None:
    socket = serve(betting)
    text = launcher.read_text(encoding="utf-8").replace("/var/lib/table-controller/t07", str(socket.parent))
    (socket.parent / "t07.toml").write_text(text, encoding="utf-8")
    assert run("status", "--config", socket.parent / "t07.toml").exit_code == 0


def test_status_without_words_asks_the_only_table_of_the_machine(
    run: Run, serve: Serve, betting: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(link_, "RUNTIME", tmp_path)
    nowhere = run("status")
    assert (nowhere.exit_code, "E-TABLE-UNNAMED" in nowhere.stderr) == (3, True)
    for name in ("t07", "t08"):
        (tmp_path / name).mkdir()
    (tmp_path / "t07" / "status.sock").symlink_to(serve(betting))
    assert run("status").exit_code == 0
    (tmp_path / "t08" / "status.sock").touch()
    several = run("status")
    assert (several.exit_code, "several tables" in several.stderr) == (3, True)


def test_status_of_something_that_is_no_daemon_ends_with_status_3(run: Run, tmp_path: Path) -> None:
    (tmp_path / "status.sock").write_text("a file", encoding="ascii")
    result = run("status", "--socket", tmp_path / "status.sock")
    assert (result.exit_code, "E-STATUS-SILENT" in result.stderr) == (3, True)


class Moments:
    """Statuses behind a name, so that a failing example is printed without them."""

    def __init__(self, statuses: list[Status]) -> None:
        self.statuses = statuses


@pytest.fixture(scope="session")
def moments(croupier_statuses: list[Status]) -> Moments:
    """All statuses of an evening."""
    return Moments(croupier_statuses)


# ── The board ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def crowded(status: Status, posts: int) -> Status:
    """The same table with so many players."""
    one = {"credit": 123_456_789, "staked": 18_000, "minimum": 0, "away": True}
    table = {**status["table"], "posts": {str(number): one for number in range(1, posts + 1)}}
    return {**status, "table": table}


@given(
    moment=st.integers(0, 999),
    width=st.integers(20, 220),
    height=st.integers(10, 70),
    posts=st.integers(0, 250),
    is_lost=st.booleans(),
)
def test_board_fits_a_terminal_of_any_size_whatever_the_table_does(
    evening: Path, moments: Moments, moment: int, width: int, height: int, posts: int, is_lost: bool
) -> None:
    status = crowded(moments.statuses[moment % len(moments.statuses)], posts)
    entries = [entry_of(leaf) for leaf in leaves_of(evening)[:60]]
    lost = Failure("E-STATUS-SILENT", "x" * 300) if is_lost else None
    lines = board_lines(status, entries, width, height, lost)
    assert len(lines) <= height
    assert [line for line in lines if width_of(line) > width or "\n" in line] == []


def test_board_of_a_small_terminal_has_everything_that_matters(evening: Path, betting: Status) -> None:
    entries = [entry_of(leaf) for leaf in leaves_of(evening)]
    text = [click.unstyle(line) for line in board_lines(betting, entries, 80, 24)]
    assert text[0].strip() == "SIMULATION"
    assert "PLACE YOUR BETS" in "".join(text[:5])
    assert [line for line in text if line.startswith("Posts  6 occupied")]
    assert [line for line in text if line.split()[:1] == [str(entries[-1].index)]]
    assert "Ctrl-C" in text[-1]


def test_board_of_a_real_table_has_no_simulation_banner(betting: Status) -> None:
    assert "SIMULATION" not in "".join(board_lines({**betting, "simulation": False}, [], 80, 24))


def test_board_of_a_table_that_stopped_says_so_and_keeps_its_last_state(betting: Status) -> None:
    lost = Failure("E-STATUS-SILENT", "no table answers")
    text = "\n".join(map(click.unstyle, board_lines(betting, [], 80, 24, lost)))
    assert "E-STATUS-SILENT" in text
    assert "PLACE YOUR BETS" in text


def test_board_names_the_incident_and_the_number_to_be_confirmed(croupier_statuses: list[Status]) -> None:
    manual = first(croupier_statuses, lambda one: one["table"]["board"]["phase"] == "manual")
    assert "sensor fault" in "\n".join(map(click.unstyle, board_lines(manual, [], 100, 30)))
    verifying = first(croupier_statuses, lambda one: one["table"]["board"]["phase"] == "verifying")
    text = "\n".join(map(click.unstyle, board_lines(verifying, [], 100, 30)))
    assert f" {verifying['table']['board']['detected']} " in text


# ── watch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_feed_gives_each_entry_once_and_first_the_last_ones(evening: Path) -> None:
    leaves = leaves_of(evening)
    feed = Feed(evening / "journal.sqlite", 5)
    assert feed.fresh() == leaves[-5:]
    assert feed.fresh() == []
    feed.close()


def test_feed_of_a_journal_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    for file in (None, tmp_path / "none.sqlite"):
        feed = Feed(file, 5)
        assert feed.fresh() == []
        feed.close()


def follow(socket: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "controller.cli", "watch", "--socket", str(socket), *words]
    environment = {**os.environ, "LC_ALL": "en_GB.UTF-8", "PYTHONUTF8": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    )


def certify_one(folder: Path) -> None:
    """Let a daemon that plays in ``folder`` certify one more entry."""
    from controller.certify.journal import Journal
    from controller.certify.leaf import Record
    from controller.certify.note import Signer
    from controller.entropy import SeededEntropy
    from controller.rehearsal.simulate import staff_keys
    from drivers.clock import ManualClock

    entropy = SeededEntropy(7)
    staff_keys("casino.example.simulation", entropy)
    signer = Signer("casino.example.simulation/table/t07/1", bytes.fromhex(entropy.hex(32)))
    file = folder / "journal.sqlite"
    journal = Journal.open(file, signer, ManualClock(), "0" * 16, lambda: "free", allow_volatile=True)
    data = '{"boot":"0000000000000000","input":{"at_us":1,"boot":"0000000000000000","kind":"Stopping"}}'
    journal.append([Record("fr.table.stopped.v1", data, None)])
    journal.close()


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_watch_without_a_terminal_prints_each_new_entry_until_interrupted(
    serve: Serve, betting: Status, own_evening: Path, words: tuple[str, ...]
) -> None:
    size = len(leaves_of(own_evening))
    told: dict[str, Any] = {**betting, "config": str(own_evening / "moved.toml")}
    config = (own_evening / "table.toml").read_text(encoding="utf-8")
    moved = config.replace("/var/lib/table-controller/t07", str(own_evening))
    (own_evening / "moved.toml").write_text(moved, encoding="utf-8")
    with follow(serve(told), *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        serve.wait_until_asked(2)  # by then the journal is open
        certify_one(own_evening)
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()
    if words:
        assert int(json.loads(line)["id"]) == size
    else:
        assert int(line.split()[0]) == size
        assert line.endswith("The table stops in good order\n")


def test_watch_of_a_table_that_does_not_run_ends_with_status_3(run: Run, tmp_path: Path) -> None:
    result = run("watch", "--socket", tmp_path / "status.sock")
    assert (result.exit_code, "E-STATUS-SILENT" in result.stderr) == (3, True)
