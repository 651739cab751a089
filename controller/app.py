"""``tabled``: the composition root. It opens the real ports, keys, journal and broker, and runs the daemon.

This is the only place where the program meets the machine it runs on: signals, files, exit codes. Any failure below
ends here, with its code in the log and an exit code that tells systemd whether to try again.
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog

import controller
import drivers
import games
from controller import history, log
from controller.certify.faults import CertifyFault, JournalFault, KeyFault
from controller.certify.journal import Journal
from controller.certify.keys import load_key, sync_folder
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, Verifier
from controller.certify.reader import Reader
from controller.certify.writer import Writer
from controller.codec import to_plain
from controller.config import load
from controller.config_document import credential
from controller.config_faults import ConfigError
from controller.daemon import Daemon, Hardware, Surroundings, state_document
from controller.delivery.broker import BrokerBus
from controller.delivery.bus import BusFault, Message
from controller.delivery.memories import Others
from controller.delivery.topics import Topics
from controller.entropy import KernelEntropy
from controller.epoch import refuse_unproclaimed
from controller.evidence import EVIDENCE, keep_evidence
from controller.healing import Healing, HealingNote
from controller.idle_verification import IdleVerification
from controller.options import Config
from controller.reconcile import Reconciliation
from controller.retention import refuse_lowered
from controller.service import Heartbeat, Notifier, step_while_down, time_quality, watchdog_us
from controller.standing_rules import RulesFault
from controller.status import StatusServer
from controller.storage_reserve import Reserve
from controller.storage_watch import StorageWatch
from controller.upkeep import last_time, relieved, turned, turning_when_due
from drivers.clock import Clock, SystemClock
from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.gpio_factory import open_header
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.twin.panel import PanelSocket, TwinInputs, TwinOutputs
from games.custody import RetentionAsked
from games.signals import ClockStepped

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2
"""The configuration, the key or the journal must be mended by a person: starting again cannot help."""

SALT_BYTES = 32

RETRIED = ("E-JOURNAL-WRITE", "E-JOURNAL-BUSY", "E-HEAL-BEHIND", "E-HEAL-SILENT")
"""Faults of the journal at a start that may be gone at the next: a full disk, another program's hold, a mirror away."""

logger = structlog.get_logger()


def main() -> None:
    """Run the daemon of one table until it is asked to stop."""
    parser = argparse.ArgumentParser(prog="tabled", description="The certified controller of one casino table.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the table's configuration (TOML)")
    arguments = parser.parse_args()
    log.configure(SystemClock())
    sys.exit(serve(arguments.config))


def serve(path: Path) -> int:
    """Run the daemon configured by ``path``; returns the exit code."""
    try:
        config = load(path)
        log.banner(path)
        return _kept(config, path)
    except ConfigError as error:
        for fault in error.faults:
            logger.error("E-CONFIG", file=str(error.path), option=fault.key, value=fault.value, wrong=fault.wrong)
        return EXIT_CONFIG
    except CertifyFault as fault:
        logger.error(fault.code, detail=fault.detail)
        return EXIT_FAILED if fault.code in RETRIED else EXIT_CONFIG
    except (RulesFault, history.RestoreError) as fault:
        logger.error(fault.code, detail=fault.detail)
        return EXIT_CONFIG
    except OSError as error:
        logger.error("E-FILE", file=str(error.filename or ""), detail=error.strerror or str(error))
        return EXIT_FAILED
    except DeviceFault as fault:
        logger.error(fault.code, device=fault.device, detail=fault.detail)
        return EXIT_FAILED  # what is busy or absent at boot may be there at the next try
    except BaseExceptionGroup as group:
        return _report(group)


def _kept(config: Config, path: Path) -> int:
    """Serve; when the journal was found wrong, its files are copied aside before anybody touches them."""
    try:
        asyncio.run(_serve(config, path))
    except JournalFault as fault:
        if fault.code in EVIDENCE:
            folder = keep_evidence(config.journal.file, fault.code)
            logger.error(fault.code, evidence=str(folder))
        raise
    return EXIT_STOPPED


def _report(group: BaseExceptionGroup[BaseException]) -> int:
    """A part of the daemon ended: say which and why. A failed commit is not tried again in this process."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            _report(error)
        elif isinstance(error, JournalFault):
            logger.error(error.code, detail=error.detail)
        else:
            logger.error("E-DAEMON-FAILED", exc_info=error)
    return EXIT_FAILED


async def _serve(config: Config, path: Path) -> None:
    clock, boot = SystemClock(), secrets.token_hex(8)
    signer = table_key(config)
    previous = previous_key(config, signer)
    reserve = relieved(config)
    turned(config, LogKeys.of(*(one.verifier for one in (signer, previous) if one is not None)), clock, reserve)
    journal = Journal.open(
        config.journal.file,
        signer,
        clock,
        boot,
        time_quality,
        previous=previous,
        allow_volatile=config.journal.volatile,
    )
    around = Surroundings(
        clock=clock,
        entropy=KernelEntropy(),
        boot=boot,
        salt=player_salt(config.journal.file.parent),
        signer=signer,
        previous=previous,
        software_sha256=software_digest(),
    )
    faults: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        writer = Writer(journal)
        stack.callback(writer.close)
        reader = stack.enter_context(Reader(config.journal.file))
        healing = await _healing(config, journal, reader, around, faults)
        if journal.base == 0:  # a start that accepted the first entry came before the first turning
            refuse_unproclaimed(config.origin, journal.leaf(0) if journal.size else None)
        stepped = step_while_down(last_time(journal), clock, time_quality()) if journal.size else None
        hardware = await _hardware(config, clock, stack)
        daemon = Daemon(
            config,
            past=journal,
            reader=reader,
            writer=writer,
            bus=_bus(config, boot, faults),
            healing=healing,
            hardware=hardware,
            around=around,
            faults=faults,
        )
        refuse_lowered(config.journal.retention_years, daemon.table.state.custody.retention_years)
        await _run(daemon, path, stack, reserve, stepped)


async def _healing(
    config: Config, journal: Journal, reader: Reader, around: Surroundings, faults: dict[str, str]
) -> Healing | None:
    """What came back into the journal from the mirror. Nothing new is certified before (see ``reconcile``)."""
    if config.mirror is None:
        return None
    witnesses = {witness.name: Verifier.parse(witness.vkey) for witness in config.witness}
    mirror, wait_s = Verifier.parse(config.mirror.vkey), config.mirror.start_wait_s
    reconciliation = Reconciliation(
        journal,
        reader.root,
        bus=_bus(config, None, faults),
        topics=Topics(config.site, config.table.name),
        others=Others(own=around.keys, mirror=mirror, witnesses=witnesses),
        note=HealingNote(config.journal.file.parent),
    )
    healing = await reconciliation.run(wait_s)
    if not reconciliation.answered:
        faults["E-ACK-NONE"] = f"{mirror.name} did not acknowledge within {wait_s} s of the start"
        logger.warning("E-ACK-NONE", detail=faults["E-ACK-NONE"])
    return healing


async def _run(
    daemon: Daemon, path: Path, stack: AsyncExitStack, reserve: Reserve, stepped: ClockStepped | None
) -> None:
    config, clock = daemon.config, daemon.around.clock
    notifier = Notifier.from_environment(os.environ)
    heartbeat = Heartbeat(
        clock=clock,
        notifier=notifier,
        watchdog_us=watchdog_us(os.environ, os.getpid()),
        ailing=daemon.ailing,
        emit=daemon.emit,
    )
    storage = StorageWatch(
        config.journal.file.parent, clock, daemon.emit, reserve=reserve, turn=turning_when_due(daemon)
    )
    verification = IdleVerification(
        config.journal.file,
        daemon.around.keys,
        clock=clock,
        idle=lambda: not daemon.table.state.seance.open,
        verified_day=lambda: daemon.table.state.custody.verified_day,
        emit=daemon.emit,
    )

    async def status() -> Mapping[str, Any]:
        return {**daemon.status(), "service": to_plain(heartbeat.health()), "config": str(path)}

    async def self_test() -> Mapping[str, Any]:
        if daemon.table.state.seance.open:
            return {"code": "E-SELF-TEST-SEANCE", "message": "the wheel tests itself only while the séance is closed"}
        report = await daemon.wheel.self_test()
        if report.codes == (0,):
            daemon.inherited_faults.self_test_passed()
        return {"self_test": to_plain(report)}

    answers = {"status": status, "self-test": self_test}
    await stack.enter_async_context(StatusServer(status_socket(config), answers))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    loop.set_exception_handler(lambda _, context: daemon.fail(context.get("exception") or RuntimeError(str(context))))
    logger.info("starting", origin=config.origin, journal_size=daemon.journal_size, simulation=config.table.simulation)

    def ready() -> None:
        HealingNote(config.journal.file.parent).forget()
        if stepped is not None:
            daemon.emit(stepped)
        daemon.emit(RetentionAsked(at_us=clock.mono_us(), years=config.journal.retention_years))
        notifier.ready(f"{config.origin} certifies")

    await daemon.run(heartbeat, storage, verification, on_ready=ready)
    notifier.stopping()


def table_key(config: Config) -> Signer:
    """The table's own key. Raises KeyFault when it is missing, exposed, or another table's."""
    return _key_of(config, config.journal.key)


def previous_key(config: Config, signer: Signer) -> Signer | None:
    """The key that ``signer`` replaces, while both sign. Raises KeyFault like ``table_key``, and E-KEY-ROTATION."""
    if config.journal.previous_key is None:
        return None
    previous = _key_of(config, config.journal.previous_key)
    if previous.verifier.public == signer.verifier.public:
        raise KeyFault("E-KEY-ROTATION", "key and previous_key hold the same key")
    return previous


def _key_of(config: Config, key: str) -> Signer:
    try:
        file = credential(key)
    except KeyError:
        raise KeyFault("E-KEY-MISSING", f"{key}: no systemd credential here") from None
    signer = load_key(file)
    if signer.name != config.origin:
        raise KeyFault("E-KEY-OTHER", f"{file} is the key of {signer.name}; this table is {config.origin}")
    return signer


def player_salt(folder: Path) -> bytes:
    """What players' identifiers are hashed with. Erase the file, and no digest in the journal leads back to anybody.

    Raises KeyFault (E-SALT) when the file is not one that this program made.
    """
    file = folder / "player-salt"
    if not file.exists():
        draft = folder / "player-salt.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as fresh:
            fresh.write(secrets.token_bytes(SALT_BYTES))
            fresh.flush()
            os.fsync(descriptor)
        draft.replace(file)
        sync_folder(folder)
    salt = file.read_bytes()
    if len(salt) != SALT_BYTES or file.stat().st_mode & 0o077:
        raise KeyFault("E-SALT", f"{file} must hold {SALT_BYTES} bytes that only its owner may read")
    return salt


def software_digest() -> str:
    """SHA-256 over the program's own files, in order of their names."""
    digest = sha256()
    for package in (games, drivers, controller):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{package.__name__}/{file.relative_to(folder)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def status_socket(config: Config) -> Path:
    """Where the daemon answers: systemd's runtime folder, else beside the journal."""
    runtime = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(runtime) / "status.sock" if runtime else config.journal.file.parent / "status.sock"


def _bus(config: Config, boot: str | None, faults: dict[str, str]) -> BrokerBus:
    """The broker's client; without ``boot`` it leaves no will."""
    topics = Topics(config.site, config.table.name)
    settings = config.mqtt.settings(config.table.name)

    def will(session: int) -> Message:
        payload = state_document("lost", boot or "", session, simulation=config.table.simulation)
        return Message(topics.state, payload, retain=True)

    def on_fault(fault: BusFault) -> None:
        faults[fault.code] = fault.detail
        logger.warning(fault.code, detail=fault.detail)

    return BrokerBus(settings, will=will if boot else None, random=random.random, on_fault=on_fault)


async def _hardware(config: Config, clock: Clock, stack: AsyncExitStack) -> Hardware:
    panel = config.panel

    def open_line() -> SerialLine:
        return SerialLine(config.wheel.port)

    wired = panel.buttons or panel.keys or panel.lamps
    if panel.device == "none" or not wired:
        return Hardware(open_line=open_line)
    if panel.device.startswith("twin:"):
        twin = TwinInputs(buttons=tuple(panel.buttons), keys=tuple(panel.keys), clock=clock, seed=0)
        await stack.enter_async_context(PanelSocket(Path(panel.device.removeprefix("twin:")), twin))
        return Hardware(open_line=open_line, inputs=twin, outputs=TwinOutputs(tuple(panel.lamps)))
    factory = open_header()
    stack.callback(factory.close)
    lines: dict[str, InputLine] = {name: InputLine(bcm=pin) for name, pin in panel.buttons.items()}
    lines |= {name: InputLine(bcm=pin) for name, pin in panel.keys.items()}
    inputs = GpioInputs(lines, factory)
    stack.callback(inputs.close)
    outputs = GpioOutputs(panel.lamps, factory) if panel.lamps else None
    if outputs:
        stack.callback(outputs.close)
    return Hardware(open_line=open_line, inputs=inputs, outputs=outputs)


if __name__ == "__main__":
    main()
