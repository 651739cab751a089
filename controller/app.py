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
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.certify.writer import Writer
from controller.codec import to_plain
from controller.config import credential, load
from controller.config_faults import ConfigError
from controller.daemon import Daemon, Hardware, RulesFault, Surroundings, state_document
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import BusFault, Message
from controller.delivery.topics import Topics
from controller.entropy import KernelEntropy
from controller.options import Config
from controller.service import Heartbeat, Notifier, time_quality, watchdog_us
from controller.status import StatusServer
from controller.storage_watch import StorageWatch
from drivers.clock import Clock, SystemClock
from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.gpio_factory import open_header
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.twin.panel import PanelSocket, TwinInputs, TwinOutputs

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2
"""The configuration, the key or the journal must be mended by a person: starting again cannot help."""

SALT_BYTES = 32

RETRIED = ("E-JOURNAL-WRITE", "E-JOURNAL-BUSY")
"""Faults of the journal at a start that may be gone at the next: a full disk, another program's hold."""

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
        asyncio.run(_serve(config, path))
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
    journal = Journal.open(
        config.journal.file, signer, clock, boot, time_quality, allow_volatile=config.journal.volatile
    )
    around = Surroundings(
        clock=clock,
        entropy=KernelEntropy(),
        boot=boot,
        salt=player_salt(config.journal.file.parent),
        signer=signer,
        software_sha256=software_digest(),
    )
    faults: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        writer = Writer(journal)
        stack.callback(writer.close)
        reader = stack.enter_context(Reader(config.journal.file))
        hardware = await _hardware(config, clock, stack)
        daemon = Daemon(
            config,
            past=journal,
            reader=reader,
            writer=writer,
            bus=_bus(config, boot, faults),
            hardware=hardware,
            around=around,
            faults=faults,
        )
        await _run(daemon, path, stack)


async def _run(daemon: Daemon, path: Path, stack: AsyncExitStack) -> None:
    config, clock = daemon.config, daemon.around.clock
    notifier = Notifier.from_environment(os.environ)
    heartbeat = Heartbeat(
        clock=clock,
        notifier=notifier,
        watchdog_us=watchdog_us(os.environ, os.getpid()),
        ailing=daemon.ailing,
        emit=daemon.emit,
    )
    storage = StorageWatch(config.journal.file.parent, clock, daemon.emit)

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
    await daemon.run(heartbeat, storage, on_ready=lambda: notifier.ready(f"{config.origin} certifies"))
    notifier.stopping()


def table_key(config: Config) -> Signer:
    """The table's own key. Raises KeyFault when it is missing, exposed, or another table's."""
    try:
        file = credential(config.journal.key)
    except KeyError:
        raise KeyFault("E-KEY-MISSING", f"{config.journal.key}: no systemd credential here") from None
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


def _bus(config: Config, boot: str, faults: dict[str, str]) -> BrokerBus:
    options, topics = config.mqtt, Topics(config.site, config.table.name)
    settings = BrokerSettings(
        host=options.host,
        port=options.port,
        client_id=config.table.name,
        ca_path=options.ca,
        certificate_path=options.certificate,
        key_path=options.key,
        keepalive_s=options.keepalive_s,
    )

    def will(session: int) -> Message:
        payload = state_document("lost", boot, session, simulation=config.table.simulation)
        return Message(topics.state, payload, retain=True)

    def on_fault(fault: BusFault) -> None:
        faults[fault.code] = fault.detail
        logger.warning(fault.code, detail=fault.detail)

    return BrokerBus(settings, will=will, random=random.random, on_fault=on_fault)


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
