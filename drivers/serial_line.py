"""A real serial line: pyserial opens and sets it up, its descriptor lives in the event loop.

pyserial is the only one who knows every baud rate of every kernel, so it opens, locks and configures. It does not read
or write here: its non-blocking write turns for ever while the output buffer is full, and its read fails above
descriptor 1023. An unplugged adapter shows itself in three ways (an OSError, a read of nothing, a termios.error); all
become one DeviceFault. Close a lost line before you open it again: while it is held, the adapter comes back under
another name (pyserial/pyserial#36).
"""

import asyncio
import contextlib
import errno
import os
import termios
import threading
from collections.abc import Callable

import serial

from drivers.ports import DeviceFault

READ_BOUND = 4_096
"""Bytes of one read: the kernel's own buffer for a line."""

CLOSED = -1
"""The descriptor of a line that was closed: reading or writing it fails as on a lost one."""

ABSENT, BUSY, DENIED = "E-SERIAL-ABSENT", "E-SERIAL-BUSY", "E-SERIAL-DENIED"
LOST, STALLED = "E-SERIAL-LOST", "E-SERIAL-STALLED"

CODES_OF_OPENING = {
    errno.EAGAIN: BUSY,  # another process holds the lock
    errno.EBUSY: BUSY,
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
}
"""What it means when a line can't be opened; any other error says that no serial line is there."""


class SerialLine:
    """A ByteLine of 8 data bits, no parity, 1 stop bit, no flow control, held by this process alone.

    Raises DeviceFault: E-SERIAL-ABSENT, E-SERIAL-BUSY or E-SERIAL-DENIED when it can't be opened, E-SERIAL-LOST when it
    vanished, E-SERIAL-STALLED when the far end takes no bytes. ``path`` should be a name that survives replugging.
    """

    def __init__(self, path: str, baud: int = 9_600) -> None:
        self._path = path
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._port = serial.Serial(path, baud, timeout=0, write_timeout=0, exclusive=True)
            self._descriptor = self._port.fileno()
            _tell_nothing_from_gone(self._descriptor)
        except (OSError, termios.error) as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            # The message of pyserial repeats the path and the number; the system's own word for the number is enough.
            why = os.strerror(number) if number else str(error)
            raise DeviceFault(CODES_OF_OPENING.get(number, ABSENT), path, why) from error

    def read(self) -> bytes:
        """All bytes that have arrived, perhaps none."""
        try:
            data = os.read(self._descriptor, READ_BOUND)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise DeviceFault(LOST, self._path, error.strerror or str(error)) from error
        if not data:
            raise DeviceFault(LOST, self._path, "it is ready to read but gives no byte: it was unplugged")
        return data

    def write(self, data: bytes) -> None:
        """Send all of ``data`` at once; a command is far shorter than the kernel's buffer."""
        try:
            sent = os.write(self._descriptor, data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise DeviceFault(LOST, self._path, error.strerror or str(error)) from error
        if sent < len(data):
            raise DeviceFault(STALLED, self._path, f"took {sent} of {len(data)} bytes")

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        """Call back from the running loop whenever bytes, or the line's end, may be read; None ends it."""
        if self._loop is not None:
            self._loop.remove_reader(self._descriptor)
            self._loop = None
        if callback is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._descriptor, callback)

    def close(self) -> None:
        """Let the device go, lost or not. The kernel may wait half a minute for bytes that the far end does not take
        any more, so the closing itself is left to a thread; nobody waits for it."""
        self.on_readable(None)
        if self._descriptor != CLOSED:
            # Its number may soon stand for another file: it is forgotten at once, and closed exactly once.
            self._descriptor = CLOSED
            threading.Thread(target=self._let_go, name="serial-close", daemon=True).start()

    def _let_go(self) -> None:
        with contextlib.suppress(OSError, termios.error):
            self._port.close()


def _tell_nothing_from_gone(descriptor: int) -> None:
    """pyserial asks for reads of no byte at least, and then an idle line and an unplugged one both read as nothing.
    With one byte at least, a non-blocking read of an idle line fails with EAGAIN, and nothing means gone."""
    attributes = termios.tcgetattr(descriptor)
    attributes[6][termios.VMIN] = 1
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
