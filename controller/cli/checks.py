"""What ``tablectl doctor`` looks at, one check for each thing that a table needs before it can start or open.

A check that would disturb a running table is not made: what the daemon holds (port, pins, lock), the daemon is asked
about. A check never ends the others: whatever it meets becomes a finding.
"""

import asyncio
import shutil
import socket
import sqlite3
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from controller.certify.faults import JournalFault, KeyFault
from controller.certify.keys import load_key
from controller.certify.note import Verifier
from controller.certify.recovery import recover
from controller.certify.storage import check_layout, connect_reader, faults_of, refuse_volatile
from controller.cli.language import here
from controller.cli.status import QUALITIES, reason_detail, reasons
from controller.cli.target import VKEY
from controller.cli.words import word
from controller.config import credential
from controller.delivery.broker_settings import BrokerSettings, CredentialsError
from controller.options import Config
from controller.service import TimeQuality, time_quality
from controller.storage_watch import LEVELS
from drivers.clock import SystemClock
from drivers.gpio import GpioInputs, GpioOutputs, InputLine
from drivers.gpio_factory import open_header
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.slingshot_wheel import SlingshotWheel
from games.rules import Input
from games.signals import Role, WheelVerified

BROKER_WITHIN_S = 3.0
"""Patience for the broker to accept a connection."""

HOT_MC = 80_000
"""From this temperature on a board slows itself down (thousandths of a degree)."""

STEPS = ("E-POSTS-NOT-IN-SERVICE", "E-SEANCE-OPEN")
"""Reasons that are no trouble: what staff do next, or have done."""


class Level(StrEnum):
    """How a check ended: well, well enough to open, or not."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``code`` is empty when all is well."""

    level: Level
    subject: str
    detail: str
    code: str = ""


def _well(subject: str, detail: str) -> Finding:
    return Finding(Level.OK, subject, detail)


def _warn(subject: str, code: str, detail: str) -> Finding:
    return Finding(Level.WARN, subject, detail, code)


def _error(subject: str, code: str, detail: str) -> Finding:
    return Finding(Level.ERROR, subject, detail, code)


Status = Mapping[str, Any]
"""What the running daemon answered."""


def checks(config: Config, status: Status | None) -> Iterator[Finding]:
    """Every finding. ``status`` is None when no daemon answers."""
    yield from _running(config, status)
    yield from _key(config, running=status is not None)
    yield from _journal(config)
    yield from _space(config)
    yield from _wheel(config, status)
    yield from _panel(config, status)
    yield from _broker(config, status)
    yield _clock()
    yield from _persons(config)
    if status is not None:
        yield from _opening(status)


# ── The daemon ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _running(config: Config, status: Status | None) -> Iterator[Finding]:
    subject = here("table", "table")
    if status is None:
        holder = lock_holder(config.journal.file.with_name(f"{config.journal.file.name}.lock"))
        if holder is not None:
            detail = here(
                f"le processus {holder} tient le journal et ne répond pas",
                f"process {holder} holds the journal and does not answer",
            )
            yield _error(subject, "E-JOURNAL-BUSY", detail)
        else:
            yield _well(subject, here("arrêtée : le matériel est essayé ici", "stopped: its hardware is tried here"))
        return
    yield _well(subject, here("en marche", "running") + f", {status['origin']}")
    service = status.get("service", {})
    if service.get("withheld"):
        yield _error(subject, "E-SERVICE-AILING", service["withheld"])
    board = service.get("board") or {}
    if board.get("undervoltage"):
        yield _warn(subject, "E-BOARD-UNDERVOLTAGE", here("tension trop basse", "the supply is too low"))
    if board.get("temperature_mc", 0) >= HOT_MC:
        yield _warn(subject, "E-BOARD-HOT", f"{board['temperature_mc'] // 1_000} °C")
    for code, detail in status["faults"].items():
        yield _warn(subject, code, detail)


def lock_holder(lock: Path) -> int | None:
    """The process that holds a lock file, without touching the lock: a starting daemon must find it free."""
    try:
        wanted = str(lock.stat().st_ino)
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if "FLOCK" in words and words[5].rpartition(":")[2] == wanted:
            return int(words[4])
    return None


def _opening(status: Status) -> Iterator[Finding]:
    subject = here("ouverture", "opening")
    table = status["table"]
    if halted := status["delivery"].get("halted"):
        yield _error(here("livraison", "delivery"), halted, here("livraison arrêtée", "delivery is halted"))
    found = reasons(table)
    for code in found:
        level = Level.WARN if code in STEPS else Level.ERROR
        yield Finding(level, subject, reason_detail(code, table["health"]), code)
    if not found:
        opened = table["board"]["seance_phase"] != "closed"
        yield _well(subject, here("séance ouverte", "séance open") if opened else here("possible", "possible"))


# ── Key and journal ───────────────────────────────────────────────────────────────────────────────────────────────────


def _key(config: Config, *, running: bool) -> Iterator[Finding]:
    subject = here("clé", "key")
    held = here("tenue par la table en marche", "held by the running table")
    try:
        file = credential(config.journal.key)
    except KeyError:
        skipped = here("systemd ne la donne qu'à la table", "systemd gives it to the table only")
        yield _well(subject, held) if running else _warn(subject, "E-CHECK-SKIPPED", skipped)
        return
    try:
        signer = load_key(file)
    except KeyFault as fault:
        unreadable = running and fault.code == "E-KEY-UNREADABLE"
        yield _well(subject, held) if unreadable else _error(subject, fault.code, fault.detail)
        return
    if signer.name != config.origin:
        other = here(f"{file} est la clé de {signer.name}", f"{file} is the key of {signer.name}")
        yield _error(subject, "E-KEY-OTHER", other)
    else:
        yield _well(subject, signer.name)


def _verifier(config: Config) -> Verifier | None:
    """The table's public key: from its private one, else from the file beside the journal."""
    try:
        return load_key(credential(config.journal.key)).verifier
    except (KeyFault, KeyError):
        beside = config.journal.file.parent / VKEY
    try:
        return Verifier.parse(beside.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError, KeyFault):
        return None


def _journal(config: Config) -> Iterator[Finding]:
    subject, file = here("journal", "journal"), config.journal.file
    try:
        if not config.journal.volatile:
            refuse_volatile(file)
        if not file.exists():
            missing = here(f"{file} ; tablectl journal create --config", f"{file}; tablectl journal create --config")
            raise JournalFault("E-JOURNAL-MISSING", missing)
        verifier = _verifier(config)
        with faults_of(file), closing(connect_reader(file)) as connection:
            check_layout(connection, file)
            if verifier is None:
                nobody = here("pas de clé pour vérifier sa fin", "no key to verify its end with")
                yield _warn(subject, "E-CHECK-SKIPPED", nobody)
                return
            size = _verified_size(connection, file, verifier)
    except JournalFault as fault:
        yield _error(subject, fault.code, fault.detail)
        return
    yield _well(subject, here(f"{size} écritures, la fin est signée", f"{size} entries, its end is signed"))


def _verified_size(connection: sqlite3.Connection, file: Path, verifier: Verifier) -> int:
    """What a start would verify, in one look at the file: a running table goes on writing."""
    connection.execute("BEGIN")
    size = recover(connection, file, verifier).edge.size
    connection.execute("COMMIT")
    return size


def _space(config: Config) -> Iterator[Finding]:
    subject, folder = here("espace", "space"), config.journal.file.parent
    if not folder.is_dir():
        return  # the journal is missing, and that is told already
    usage = shutil.disk_usage(folder)
    percent = 100 * usage.free // usage.total
    detail = here(
        f"{percent}\u202f% libres, {usage.free // 1_000_000} Mo", f"{percent}% free, {usage.free // 1_000_000} MB"
    )
    level = next((level for threshold, level in LEVELS if percent < threshold), "ok")
    if level == "ok":
        yield _well(subject, detail)
    else:
        yield Finding(Level.WARN if level == "warn" else Level.ERROR, subject, detail, "E-STORAGE-LOW")


# ── Devices ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wheel(config: Config, status: Status | None) -> Iterator[Finding]:
    subject, port = here("cylindre", "wheel"), config.wheel.port
    if status is not None:
        wheel = status["wheel"]
        if wheel["link_is_up"]:
            yield _well(subject, ", ".join(filter(None, (port, wheel["firmware"]))))
        else:
            code, _, detail = wheel["fault"].partition(" ")
            yield _error(subject, code or "E-WHEEL-SILENT", detail or port)
        return
    try:
        SerialLine(port).close()
    except DeviceFault as fault:
        yield _error(subject, fault.code, f"{fault.device}: {fault.detail}")
        return
    differences = asyncio.run(_ask_wheel(config)).differences
    if differences:
        yield _error(subject, "E-WHEEL-NOT-VERIFIED", "; ".join(differences))
    else:
        yield _well(subject, here(f"{port}, vérifié", f"{port}, verified"))


async def _ask_wheel(config: Config) -> WheelVerified:
    """Read the wheel's parameters, as at an opening. Nothing is changed in it."""
    told: list[Input] = []
    settings = config.wheel_settings
    wheel = SlingshotWheel(lambda: SerialLine(config.wheel.port), SystemClock(), told.append, settings)
    running = asyncio.get_running_loop().create_task(wheel.run())
    try:
        await asyncio.sleep(settings.silence_ms / 1_000)
        return await wheel.verify()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _panel(config: Config, status: Status | None) -> Iterator[Finding]:
    subject, panel = here("pupitre", "panel"), config.panel
    if panel.device == "none" or not (panel.buttons or panel.keys or panel.lamps):
        yield _well(subject, here("aucun", "none"))
    elif status is not None:
        yield from _panel_troubles(subject, status["panel"])
    elif panel.device.startswith("twin:"):
        yield _well(subject, here("simulé", "simulated"))
    else:
        yield _pins(config, subject)


def _panel_troubles(subject: str, panel: Status) -> Iterator[Finding]:
    found = False
    for one in panel["inputs"]:
        for told in one["troubles"]:
            found = True
            code = {"stuck": "E-INPUT-STUCK", "storm": "E-INPUT-STORM"}.get(told, told.partition(":")[0])
            yield _warn(subject, code, f"{one['name']}: {told}")
    for lamp in panel["lamps"]:
        if lamp["fault"]:
            found = True
            yield _warn(subject, lamp["fault"].partition(":")[0], f"{lamp['name']}: {lamp['fault']}")
    if not found:
        inputs, lamps = len(panel["inputs"]), len(panel["lamps"])
        yield _well(subject, here(f"{inputs} entrées, {lamps} lampes", f"{inputs} inputs, {lamps} lamps"))


def _pins(config: Config, subject: str) -> Finding:
    """Take every pin of the panel, and let it go."""
    panel = config.panel
    lines = {name: InputLine(bcm=pin) for name, pin in (panel.buttons | dict(panel.keys.items())).items()}
    try:
        with closing(open_header()) as factory, closing(GpioInputs(lines, factory)):
            GpioOutputs(panel.lamps, factory).close()
    except DeviceFault as fault:
        return _error(subject, fault.code, f"{fault.device}: {fault.detail}")
    return _well(subject, here(f"{len(lines)} entrées", f"{len(lines)} inputs"))


# ── Network, time, persons ────────────────────────────────────────────────────────────────────────────────────────────


def _broker(config: Config, status: Status | None) -> Iterator[Finding]:
    """Without the broker a table still certifies, and a director's key still opens it; a signed order does not come."""
    subject, mqtt = here("messages", "broker"), config.mqtt
    level = Level.WARN if "director" in config.panel.keys else Level.ERROR
    if status is not None and status["delivery"]["connected"]:
        yield _well(subject, f"{mqtt.host}:{mqtt.port}")
        return
    settings = BrokerSettings(
        host=mqtt.host,
        port=mqtt.port,
        client_id=config.table.name,
        ca_path=mqtt.ca,
        certificate_path=mqtt.certificate,
        key_path=mqtt.key,
    )
    context: ssl.SSLContext | None = None
    try:
        context = settings.tls_context()
    except CredentialsError as error:
        yield Finding(level, subject, str(error), error.code)
    yield _reached(subject, level, settings, context)


def _reached(subject: str, level: Level, settings: BrokerSettings, context: ssl.SSLContext | None) -> Finding:
    address = f"{settings.host}:{settings.port}"
    try:
        with socket.create_connection((settings.host, settings.port), BROKER_WITHIN_S) as line:
            if context is not None:
                context.wrap_socket(line, server_hostname=settings.host).close()
    except ssl.SSLError as error:
        return Finding(level, subject, f"{address}: {error.reason or error}", "E-MQTT-TLS")
    except OSError as error:
        return Finding(level, subject, f"{address}: {error.strerror or error}", "E-MQTT-UNREACHABLE")
    return _well(subject, address)


def _clock() -> Finding:
    quality = time_quality()
    subject, detail = here("horloge", "clock"), word(QUALITIES, quality)
    return _warn(subject, "E-CLOCK-UNSURE", detail) if quality is TimeQuality.FREE else _well(subject, detail)


def _persons(config: Config) -> Iterator[Finding]:
    """Who may sign orders. Without a cashier nobody can load a post; a director may also turn his key."""
    subject = here("personnes", "persons")
    roles = [person.role for person in config.person if not person.revoked]
    lacking = [role for role in (Role.DIRECTOR, Role.CASHIER) if role not in roles]
    if not lacking:
        yield _well(subject, ", ".join(f"{role} {roles.count(role)}" for role in Role if role in roles))
    for role in lacking:
        nobody = here(f"aucun « {role} » ne peut signer d'ordre", f"no {role} can sign an order")
        yield _warn(subject, "E-PERSON-MISSING", nobody)
