"""A terminal of a chosen size with ``tablectl`` in it: what it shows is read, what is typed is its input."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from types import TracebackType
from typing import Self

PATIENCE_S = 20.0
"""A text that has not come by then never will."""


class Terminal:
    """``with Terminal("watch", …) as terminal:`` runs the command until it ends by itself."""

    def __init__(self, *words: object, columns: int = 80, lines: int = 24, locale: str = "en_GB.UTF-8") -> None:
        self._command = [sys.executable, "-m", "controller.cli", *map(str, words)]
        self._size = struct.pack("HHHH", lines, columns, 0, 0)
        self._environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONUTF8": "1", "LC_ALL": locale}
        self.shown = ""

    def __enter__(self) -> Self:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, self._size)
        self._process = subprocess.Popen(
            self._command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=self._environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(other)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._own)

    def see(self, text: str) -> str:
        """Wait until ``text`` was shown; everything shown so far."""
        while text not in self.shown:
            more = self._read()
            assert more, f"ended, or nothing came, before {text!r}; shown: {self.shown!r}"
            self.shown += more
        return self.shown

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._own, text.encode())

    def status(self) -> int:
        """Wait for the end; the exit status."""
        while more := self._read():
            self.shown += more
        return self._process.wait(PATIENCE_S)

    def _read(self) -> str:
        ready, _, _ = select.select([self._own], [], [], PATIENCE_S)
        if not ready:
            return ""
        try:
            return os.read(self._own, 65_536).decode("utf-8", errors="replace")
        except OSError:  # the last holder of the other end is gone
            return ""
