"""Logs: one form for a person at a terminal, another for a machine, and a banner that explains the rest."""

import io
import json
import logging
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import structlog

from controller import log
from drivers.clock import ManualClock


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_put_back() -> Iterator[None]:
    """Logging is global: leave it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines_of(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_log_away_from_a_terminal_is_one_json_object_per_line() -> None:
    stream = io.StringIO()
    log.configure(ManualClock(now_us=1_500_000, wall_offset_ms=1_796_000_000_123), stream)
    structlog.get_logger().info("round opened", round=412, seance="2026-11-30-1")
    structlog.get_logger().warning("wheel silent", device="roue n° 1")
    first, second = lines_of(stream)
    assert first == {
        "event": "round opened",
        "level": "info",
        "round": 412,
        "seance": "2026-11-30-1",
        "timestamp": "2026-11-30T00:53:21.623+00:00",
        "mono_us": 1_500_000,
    }
    assert (second["level"], second["device"]) == ("warning", "roue n° 1")


def test_log_on_a_terminal_is_a_sentence_and_not_json() -> None:
    stream = Terminal()
    log.configure(ManualClock(), stream)
    structlog.get_logger().info("round opened", round=412)
    assert "round opened" in stream.getvalue()
    assert "{" not in stream.getvalue()


def test_log_on_a_terminal_without_colours_has_no_escape_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    log.configure(ManualClock(), stream)
    structlog.get_logger().info("round opened")
    assert "\x1b" not in stream.getvalue()


def test_log_below_the_level_asked_for_is_not_written() -> None:
    stream = io.StringIO()
    log.configure(ManualClock(), stream, logging.WARNING)
    structlog.get_logger().info("quiet")
    structlog.get_logger().error("loud")
    assert [line["event"] for line in lines_of(stream)] == ["loud"]


def test_log_of_a_library_joins_the_same_stream_under_its_name() -> None:
    stream = io.StringIO()
    log.configure(ManualClock(), stream)
    logging.getLogger("mqtt").warning("connection to %s lost", "the broker")
    logging.getLogger("mqtt").info("chatter")
    assert [(line["library"], line["event"]) for line in lines_of(stream)] == [
        ("mqtt", "connection to the broker lost")
    ]


def test_log_of_an_error_carries_its_traceback() -> None:
    stream = io.StringIO()
    log.configure(ManualClock(), stream)
    try:
        raise ValueError("the cause")
    except ValueError:
        structlog.get_logger().exception("the table stops")
    assert "ValueError: the cause" in str(lines_of(stream)[0]["exception"])


def test_banner_of_a_run_names_versions_board_and_the_digest_of_its_configuration(tmp_path: Path) -> None:
    config = tmp_path / "roulette.toml"
    config.write_bytes(b'[table]\nname = "t07"\n')
    stream = io.StringIO()
    log.configure(ManualClock(), stream)
    log.banner(config)
    (line,) = lines_of(stream)
    assert line["config_sha256"] == sha256(config.read_bytes()).hexdigest()
    assert {"program", "python", "sqlite", "libraries", "kernel", "board"} <= line.keys()


def test_board_of_a_raspberry_is_the_model_it_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"Raspberry Pi 5 Model B Rev 1.0\0")
    monkeypatch.setattr(log, "BOARD_MODEL", model)
    assert log.board() == "Raspberry Pi 5 Model B Rev 1.0"


def test_board_of_another_machine_is_its_architecture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(log, "BOARD_MODEL", tmp_path / "none")
    assert log.board() not in ("", "Raspberry Pi")
