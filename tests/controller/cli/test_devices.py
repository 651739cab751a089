"""``tablectl devices``."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.devices import levels
from tests.controller.cli.conftest import Run, Serve, Status


def test_list_shows_wheel_inputs_and_lamps(run: Run, serve: Serve, betting: Status) -> None:
    result = run("devices", "list", "--socket", serve(betting))
    assert result.exit_code == 0
    for name in ("faites-vos-jeux", "croupier", "director", "rien-ne-va-plus"):
        assert name in result.stdout
    key = next(line.split() for line in result.stdout.splitlines() if line.split()[:1] == ["croupier"])
    assert key[1:3] == ["■", "■"], "the croupier's key is turned on, raw and stable"
    assert "status lines" in result.stdout


def test_list_shows_a_lost_wheel_and_a_stuck_button(run: Run, serve: Serve, betting: Status) -> None:
    betting["wheel"] |= {"link_is_up": False, "port_is_open": False, "fault": "E-SERIAL-LOST /dev/table/wheel: gone"}
    betting["panel"]["inputs"][0]["troubles"] = ["stuck"]
    shown = run("devices", "list", "--socket", serve(betting)).stdout
    assert "silent" in shown
    assert "E-SERIAL-LOST" in shown
    assert next(line for line in shown.splitlines() if "mise-en-service" in line).endswith("stuck")


def test_list_of_a_table_without_a_panel_says_so(run: Run, serve: Serve, betting: Status) -> None:
    assert "Panel: none" in run("devices", "list", "--socket", serve({**betting, "panel": None})).stdout


def test_list_for_a_program_is_what_the_daemon_knows(run: Run, serve: Serve, betting: Status) -> None:
    told = json.loads(run("devices", "list", "--socket", serve(betting), "--json").stdout)
    assert told == {"wheel": betting["wheel"], "panel": betting["panel"]}


def test_levels_tell_raw_beside_stable_for_every_device(betting: Status) -> None:
    seen = levels(betting)
    assert seen["croupier"] == {"raw": True, "stable": True}
    assert set(seen["wheel"]) == {"port", "link"}
    assert len(seen) == 1 + len(betting["panel"]["inputs"]) + len(betting["panel"]["lamps"])


def report(outcome: str, *codes: int, text: str = "") -> dict[str, Any]:
    return {"self_test": {"result": {"command": "*F", "outcome": outcome, "text": text}, "codes": list(codes)}}


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (report("done", 0), 0, "no fault"),
        (report("done", 21, 7), 1, "fault codes of the wheel: 21, 7"),
        (report("busy", text="BUSY"), 1, "*F busy BUSY"),
        (report("silent", text="no answer in 310000 ms"), 1, "no answer in 310000 ms"),
    ],
)
def test_self_test_tells_what_the_wheel_found(
    run: Run, serve: Serve, betting: Status, answer: dict[str, Any], status: int, told: str
) -> None:
    result = run("devices", "self-test", "--yes", "--socket", serve(betting, self_test=answer))
    assert (result.exit_code, told in result.stdout) == (status, True)


def test_self_test_without_a_yes_asks_nothing_of_the_wheel(run: Run, serve: Serve, betting: Status) -> None:
    result = run("devices", "self-test", "--socket", serve(betting, self_test=report("done", 0)))
    assert (result.exit_code, "--yes" in result.stderr, result.stdout) == (2, True, "")


@pytest.mark.parametrize("code", ["E-SELF-TEST-SEANCE", "E-STATUS-QUESTION"])
def test_self_test_that_the_table_refuses_is_told_with_its_code(
    run: Run, serve: Serve, betting: Status, code: str
) -> None:
    refusal = {"code": code, "message": "not now"}
    result = run("devices", "self-test", "--yes", "--socket", serve(betting, self_test=refusal))
    assert (result.exit_code, result.stderr.startswith(f"{code} not now")) == (1, True)


@pytest.mark.parametrize("words", [("list",), ("watch",), ("self-test", "--yes")])
def test_devices_of_a_table_that_does_not_run_end_with_status_3(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    result = run("devices", *words, "--socket", tmp_path / "status.sock")
    assert (result.exit_code, "E-STATUS-SILENT" in result.stderr) == (3, True)
