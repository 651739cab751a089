"""What a start does for the journal's files before anything is certified, and when the daemon asks for such a start.

start:  disk full? ─► the reserve is given back      journal due? ─► it is turned (``certify.turning``)
later:  due, and the séance closed? ─► an orderly stop; the supervisor starts the daemon again (Restart=always)
"""

from collections.abc import Callable

import structlog

from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.leaf import parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.storage import is_full
from controller.certify.turning import due, turn
from controller.daemon import Daemon
from controller.options import Config
from controller.storage_reserve import Reserve
from drivers.clock import Clock

logger = structlog.get_logger()


def last_time(journal: Journal) -> str:
    """The UTC time in the last entry. Raises IndexError when there is none, and JournalFault."""
    return parse_leaf(journal.leaf(journal.size - 1)).time


def relieved(config: Config) -> Reserve:
    """The reserve, given back at once when the disk is too full even for a start. A rehearsal holds none."""
    size_bytes = 0 if config.journal.volatile else config.journal.reserve_mib << 20
    reserve = Reserve(config.journal.file.parent, size_bytes)
    if is_full(config.journal.file):
        logger.warning("reserve.given_back", bytes=reserve.give_back())
    return reserve


def turned(config: Config, keys: LogKeys, clock: Clock, reserve: Reserve) -> None:
    """Turn the journal when it is due: only here does nobody write it. Without a reserve the room is for the play.

    A file that stands where the volume belongs (a live file from before an earlier turning was put back, and healed)
    is a matter for a person, and no reason not to play: the live file goes on.
    """
    if reserve.missing_bytes:
        return
    try:
        made = turn(config.journal.file, keys, clock.wall_ms(), config.journal.volume_entries)
    except JournalFault as fault:
        if fault.code != "E-VOLUME-FOREIGN":
            raise
        logger.error(fault.code, detail=fault.detail)
        return
    if made is not None:
        logger.info("journal.turned", volume=str(made.volume), size=made.size, taken_over=made.taken_over)


def turning_when_due(daemon: Daemon) -> Callable[[], None]:
    """What stops the daemon in good order when the journal is due and the séance closed: its supervisor starts it anew.

    A journal that this start could not turn, because another program read it, waits for the next start.
    """
    journal, clock = daemon.config.journal, daemon.around.clock
    hopeless = due(journal.file, clock.wall_ms(), journal.volume_entries)

    def turning() -> None:
        if hopeless or daemon.table.state.seance.open:
            return
        if due(journal.file, clock.wall_ms(), journal.volume_entries):
            logger.info("journal.due", file=str(journal.file))
            daemon.stop()

    return turning
