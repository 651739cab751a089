"""The whole journal, verified once a day while nobody plays, by a process of its own.

    séance closed, nothing verified today ──► process: every entry, hash and signature ──► certified: right or wrong
                                                   │ a séance opens
                                                   └──► ended; tried again when the table is idle

The process has the lowest priority that it may have, works alone on one processor, and only reads: the table's own loop
never waits for it. A verification that found something wrong is certified like one that did not, and from then on no
round begins. One that could not be done, because the file was held or could not be read, says so and is tried again: it
has confirmed nothing and contradicts nothing. A damaged file is a finding.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import structlog

from controller.certify.log_keys import LogKeys
from controller.certify.verify import Outcome, Verdict, verify
from drivers.clock import Clock
from games.custody import VerificationEnded
from games.rules import Input

LOOK_EVERY_S = 60.0
"""How often it is asked whether there is something to verify, and whether the table is still idle."""

AGAIN_AFTER_S = 3_600.0
"""After a verification that could not be done."""

NOT_DONE = ("E-JOURNAL-BUSY", "E-JOURNAL-UNREADABLE", "E-JOURNAL-WRITE", "E-JOURNAL-MISSING")
"""What says nothing about the journal's content: somebody holds the file, it may not be read, the disk is full."""

DETAIL_BOUND = 500
"""Characters of what was found wrong that are certified."""

LOWEST_PRIORITY = 19

logger = structlog.get_logger()


class IdleVerification:
    """Looks each minute whether the journal ``file`` is to be verified by ``keys``.

    ``idle`` tells whether the table is, ``verified_day`` the last day of which a verification is certified. ``emit``
    takes what was found. ``program`` is what verifies; its arguments and answer are those of ``main``.
    """

    def __init__(
        self,
        file: Path,
        keys: LogKeys,
        *,
        clock: Clock,
        idle: Callable[[], bool],
        verified_day: Callable[[], str],
        emit: Callable[[Input], None],
        program: tuple[str, ...] = (sys.executable, "-m", "controller.idle_verification"),
    ) -> None:
        self._command = (*program, str(file), keys.text)
        self._clock = clock
        self._idle = idle
        self._verified_day = verified_day
        self._emit = emit

    async def run(self) -> None:
        """Go on until cancelled."""
        pause_s = LOOK_EVERY_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = LOOK_EVERY_S
            day = datetime.fromtimestamp(self._clock.wall_ms() / 1_000, UTC).strftime("%Y-%m-%d")
            if self._idle() and self._verified_day() != day and not await self._verify(day):
                pause_s = AGAIN_AFTER_S

    async def _verify(self, day: str) -> bool:
        """Verify, unless play begins first; False when it could not be done."""
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        answer = asyncio.get_running_loop().create_task(process.communicate())
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=LOOK_EVERY_S)
                if not self._idle():
                    return True
            return self._tell(day, answer.result()[0], process.returncode)
        finally:
            if process.returncode is None:
                process.kill()
            await answer

    def _tell(self, day: str, answer: bytes, status: int | None) -> bool:
        found = json.loads(answer) if status in set(Outcome) and answer else {"code": NOT_DONE[0]}
        if found["code"] in NOT_DONE:
            detail = answer.decode("utf-8", errors="replace")[:DETAIL_BOUND]
            logger.error("E-VERIFY-FAILED", status=status, detail=detail)
            return False
        if found["code"]:
            logger.error(found["code"], detail=found["detail"])
        self._emit(VerificationEnded(at_us=self._clock.mono_us(), day=day, **found))
        return True


def main() -> None:
    """The process: verify the journal and tell it as JSON; the status is the outcome."""
    file, keys = sys.argv[1:]
    with suppress(PermissionError):  # a supervisor may forbid it; then idleness is protection enough
        os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    verdict = verify(Path(file), LogKeys.parse(keys), processes=1)
    sys.stdout.write(json.dumps(_document(verdict)))
    sys.exit(verdict.outcome)


def _document(verdict: Verdict) -> dict[str, str | int]:
    return {
        "size": verdict.size,
        "root": verdict.root.hex(),
        "checkpoints": verdict.checkpoints,
        "code": verdict.code or "",
        "detail": (verdict.problem or "")[:DETAIL_BOUND],
    }


if __name__ == "__main__":
    main()
