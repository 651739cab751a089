"""What the program says about itself, on standard error: colours for a person, one JSON object per line for a machine.

Logs help to find a cause. They are never evidence: evidence is in the journal. Each run's log begins with a banner that
holds what a maintainer always has to ask for: versions, board, configuration.
"""

import logging
import os
import platform
import sqlite3
import sys
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from drivers.clock import Clock

BOARD_MODEL = Path("/proc/device-tree/model")
"""Where a Raspberry Pi tells its model; other machines have none."""

LIBRARIES = ("aiomqtt", "cryptography", "gpiod", "gpiozero", "pydantic", "pyserial")
"""Libraries whose version has explained a fault before."""


class _Stamp:
    """Adds the instant, from the program's own clock: wall time for people, monotonic for order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        wall = datetime.fromtimestamp(self._clock.wall_ms() / 1_000, UTC)
        return {**event, "timestamp": wall.isoformat(timespec="milliseconds"), "mono_us": self._clock.mono_us()}


class _Forward(logging.Handler):
    """Hands what the libraries log to the same output."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(library=record.name)
        logger.log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def _renderer(stream: TextIO) -> list[Processor]:
    if stream.isatty():
        colours = "NO_COLOR" not in os.environ
        return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]


def configure(clock: Clock, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send all logs of this process, and of its libraries, to ``stream`` (standard error)."""
    stream = sys.stderr if stream is None else stream
    structlog.configure(
        processors=[structlog.processors.add_log_level, _Stamp(clock), *_renderer(stream)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Forward()]
    root.setLevel(max(level, logging.WARNING))


def board() -> str:
    """The model of the machine, as it names itself."""
    if BOARD_MODEL.exists():
        return BOARD_MODEL.read_text(encoding="utf-8", errors="replace").rstrip("\0\n")
    return platform.machine()


def banner(config: Path) -> None:
    """Write the facts about this run that every question about a log begins with.

    ``config`` is the table's configuration; its SHA-256 says whether two tables run the same one.
    """
    structlog.get_logger().info(
        "started",
        program=version("table-controller"),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        libraries={name: version(name) for name in LIBRARIES},
        kernel=platform.release(),
        board=board(),
        config=str(config),
        config_sha256=sha256(config.read_bytes()).hexdigest(),
    )
