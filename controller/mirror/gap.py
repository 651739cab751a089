"""When to ask a table for entries again: not at once, a bounded number, and less and less often without an answer.

The table sends by itself everything that is not acknowledged, so a gap mostly closes before anybody asks. What does
not come within ``PATIENCE_MS`` was lost on the way: the broker forgot it, or it was sent while nobody listened.
"""

PATIENCE_MS = 500
"""How long nothing may come before the first request."""

REPEAT_FIRST_MS = 1_000
REPEAT_LAST_MS = 60_000
"""How long an answer is awaited: doubled each time until the last."""

REPLAY_BOUND = 4_096
"""Entries that one request asks for."""


class Gap:
    """The requests of one journal. All times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._since_ms: int | None = None
        self._next_ms = 0
        self._wait_ms = REPEAT_FIRST_MS
        self._asked_stop = 0

    def grown(self, now_ms: int) -> None:
        """Entries came whose turn it was."""
        self._since_ms = now_ms
        self._wait_ms = REPEAT_FIRST_MS

    def ask(self, size: int, stop: int, now_ms: int) -> range | None:
        """What to ask for now, when the entries ``size`` to ``stop - 1`` are known to exist; None: nothing is due."""
        if stop <= size:
            self._since_ms = None
            self._asked_stop = 0
            return None
        if self._since_ms is None:
            self._since_ms = now_ms
        answered = 0 < self._asked_stop <= size  # the last request came in full, and there is more
        quiet = now_ms - self._since_ms >= PATIENCE_MS and now_ms >= self._next_ms
        if not answered and not quiet:
            return None
        self._asked_stop = min(stop, size + REPLAY_BOUND)
        self._next_ms = now_ms + self._wait_ms
        self._wait_ms = min(2 * self._wait_ms, REPEAT_LAST_MS)
        self._since_ms = now_ms
        return range(size, self._asked_stop)
