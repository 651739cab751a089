"""``tablectl demo``: a real broker, a real daemon, a real pseudo-terminal, and a verdict at the end."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controller.certify.verify import Outcome, Verdict
from controller.cli import demo
from controller.rehearsal.demo import prepare
from controller.rehearsal.evening import Seen
from tests.controller.cli.conftest import Run


def start(config: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "controller.cli", "demo", "--config", str(config), "--out", str(out)]
    environment = {**os.environ, "LC_ALL": "fr_FR.UTF-8", "PYTHONUTF8": "1"}
    return subprocess.Popen(
        [*command, "--speed", "60", "--seed", "7", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )


def test_demo_plays_three_rounds_tells_them_and_verifies_its_journal(launcher: Path, tmp_path: Path) -> None:
    with start(launcher, tmp_path / "demo", "--coups", "3") as process:
        told, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    lines = told.splitlines()
    assert "SIMULATION" in lines[0]
    assert "mosquitto_sub -V 5 -h 127.0.0.1 -p " in told
    assert "le poste 6 est libre" in told
    assert re.search(r"python\S* docs/examples/post\.py 127\.0\.0\.1 \d+ \S+/table/t07 6\n", told)
    for part in ("faites vos jeux", "Rien ne va plus", "annoncé par l'appareil", "fermée par", "coups valables"):
        assert part in told
    indices = [int(line.split()[0]) for line in lines if line[:7].strip().isdecimal()]
    assert indices == list(range(indices[0], indices[0] + len(indices)))
    assert len(indices) > 50
    assert "tout concorde" in told
    assert f"{len(indices)} écritures gardées et contresignées" in told
    assert "octet pour octet" in told


@pytest.mark.parametrize("example", ["croupier", "launcher"])
def test_demo_interrupted_stops_in_good_order_and_verifies_what_was_played(
    root: Path, tmp_path: Path, example: str
) -> None:
    with start(root / "config" / f"roulette-{example}.toml", tmp_path / "demo", "--json") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "fr.roulette.no_more_bets.called.v1":
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    summary = json.loads(rest[rest.index("\n{\n") :])
    assert summary["verified"]["outcome"] == "ok"
    assert summary["replayed"]["agrees"] is True


def test_demo_never_writes_into_a_folder_of_something_else(run: Run, launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="ascii")
    result = run("demo", "--config", launcher, "--coups", "3", "--out", tmp_path)
    assert (result.exit_code, "E-DEMO-FOLDER" in result.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_demo_of_a_bad_configuration_starts_nothing(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--config", tmp_path / "none.toml", "--out", tmp_path / "out")
    assert (result.exit_code, "E-CONFIG" in result.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


def test_demo_whose_journal_does_not_verify_ends_with_status_1(
    run: Run, launcher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = prepare(launcher, tmp_path / "out", speed=60, seed=7, faults="", mirrored=True)

    async def played(*_: object, **__: object) -> Seen:
        return Seen()

    altered = Verdict(outcome=Outcome.ALTERED, code="E-JOURNAL-ALTERED", problem="entry 0 was altered", index=0)
    monkeypatch.setattr(demo, "prepare", lambda *_, **__: stage)
    monkeypatch.setattr(demo, "play", played)
    assert run("demo", "--config", launcher, "--out", tmp_path / "out").exit_code == 0
    monkeypatch.setattr(demo, "verify", lambda *_, **__: altered)
    result = run("demo", "--config", launcher, "--out", tmp_path / "out")
    assert (result.exit_code, "E-JOURNAL-ALTERED" in result.stdout) == (1, True)
