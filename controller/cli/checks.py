"""What ``tablectl doctor`` looks at, one check for each thing that a table needs before it can start or open.

A check that would disturb a running table is not made: what the daemon holds (port, pins, lock), the daemon is asked
about. A check never ends the others: whatever it meets becomes a finding.
"""

import shutil
import socket
import sqlite3
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from controller import history
from controller.app import SALT_BYTES
from controller.certify.faults import JournalFault, KeyFault
from controller.certify.keys import load_key
from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.recovery import recover
from controller.certify.storage import check_layout, connect_reader, faults_of, refuse_volatile
from controller.cli import device_checks
from controller.cli.findings import Finding, Level, Status, error, warn, well
from controller.cli.language import colon, here
from controller.cli.public_keys import public_keys
from controller.cli.status import QUALITIES, reason_detail, reasons
from controller.cli.target import Past
from controller.cli.words import ROLES, word
from controller.config_document import credential
from controller.delivery.broker_settings import BrokerSettings, CredentialsError
from controller.epoch import EpochFault, refuse_unproclaimed
from controller.options import Config
from controller.service import TimeQuality, time_quality
from controller.standing_rules import RulesFault, refuse_other_rules
from controller.storage_watch import LEVELS
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.signals import Role

BROKER_WITHIN_S = 3.0
"""Patience for the broker to accept a connection."""

HOT_MC = 80_000
"""From this temperature on a board slows itself down (thousandths of a degree)."""

STEPS = ("E-POSTS-NOT-IN-SERVICE", "E-SEANCE-OPEN")
"""Reasons that are no trouble: what staff do next, or have done."""


def checks(config: Config, file: Path, status: Status | None) -> Iterator[Finding]:
    """Every finding about the table that ``file`` configures. ``status`` is None when no daemon answers."""
    yield from _running(config, status)
    yield from _key(config, running=status is not None)
    yield from _journal(config, file)
    yield from _past(config)
    yield from _salt(config)
    yield from _space(config)
    yield from device_checks.wheel(config, status)
    yield from device_checks.panel(config, status)
    yield from _broker(config, status)
    yield _mirror(config, status)
    yield _clock()
    yield from _persons(config)
    if status is not None:
        yield from _opening(status)


def _mirror(config: Config, status: Status | None) -> Finding:
    """Whether somebody outside remembers the journal (docs/trust.md)."""
    subject = here("service central", "mirror")
    if config.mirror is None:
        detail = here(
            "aucun miroir ([mirror]) : une fin de journal coupée ne se verrait pas",
            "there is no mirror ([mirror]): a tail that was cut off the journal would not show",
        )
        return warn(subject, "E-MIRROR-NONE", detail)
    name = config.mirror.vkey.partition("+")[0]
    if status is None:
        return well(subject, name)
    delivery = status["delivery"]
    told = here(
        f"{delivery['cursor']} acquittées sur {delivery['size']}", f"{delivery['cursor']} of {delivery['size']}"
    )
    return well(subject, f"{name}, {told}")


# ── The daemon ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _running(config: Config, status: Status | None) -> Iterator[Finding]:
    subject = here("table", "table")
    if status is None:
        holder = lock_holder(config.journal.file.resolve().parent)
        if holder is not None:
            detail = here(
                f"le processus {holder} tient le journal et ne répond pas",
                f"process {holder} holds the journal and does not answer",
            )
            yield error(subject, "E-JOURNAL-BUSY", detail)
        else:
            yield well(subject, here("arrêtée : le matériel est essayé ici", "stopped: its hardware is tried here"))
        return
    yield well(subject, here("en marche", "running") + f", {status['origin']}")
    service = status.get("service", {})
    if service.get("withheld"):
        yield error(subject, "E-SERVICE-AILING", service["withheld"])
    board = service.get("board") or {}
    if board.get("undervoltage"):
        yield warn(subject, "E-BOARD-UNDERVOLTAGE", here("tension trop basse", "the supply is too low"))
    if board.get("temperature_mc", 0) >= HOT_MC:
        yield warn(subject, "E-BOARD-HOT", f"{board['temperature_mc'] // 1_000} °C")
    for code, detail in status["faults"].items():
        yield warn(subject, code, detail)


def lock_holder(folder: Path) -> int | None:
    """The process that writes a journal in ``folder``; its lock is not touched: a starting daemon must find it free."""
    try:
        wanted = str(folder.stat().st_ino)
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
        yield error(here("livraison", "delivery"), halted, here("livraison arrêtée", "delivery is halted"))
    found = reasons(table)
    for code in found:
        level = Level.WARN if code in STEPS else Level.ERROR
        yield Finding(level, subject, reason_detail(code, table["health"]), code)
    if not found:
        opened = table["board"]["seance_phase"] != "closed"
        yield well(subject, here("séance ouverte", "séance open") if opened else here("possible", "possible"))


# ── Key and journal ───────────────────────────────────────────────────────────────────────────────────────────────────


def _key(config: Config, *, running: bool) -> Iterator[Finding]:
    yield from _one_key(config, here("clé", "key"), config.journal.key, running=running)
    if config.journal.previous_key is not None:
        yield from _one_key(
            config, here("clé précédente", "previous key"), config.journal.previous_key, running=running
        )


def _one_key(config: Config, subject: str, key: str, *, running: bool) -> Iterator[Finding]:
    held = here("tenue par la table en marche", "held by the running table")
    try:
        file = credential(key)
    except KeyError:
        skipped = here("systemd ne la donne qu'à la table", "systemd gives it to the table only")
        yield well(subject, held) if running else warn(subject, "E-CHECK-SKIPPED", skipped)
        return
    try:
        signer = load_key(file)
    except KeyFault as fault:
        unreadable = running and fault.code == "E-KEY-UNREADABLE"
        yield well(subject, held) if unreadable else error(subject, fault.code, fault.detail)
        return
    if signer.name != config.origin:
        other = here(f"{file} est la clé de {signer.name}", f"{file} is the key of {signer.name}")
        yield error(subject, "E-KEY-OTHER", other)
    else:
        yield well(subject, signer.name)


def _journal(config: Config, config_file: Path) -> Iterator[Finding]:
    subject, file = here("journal", "journal"), config.journal.file
    try:
        if not config.journal.volatile:
            refuse_volatile(file)
        if not file.exists():
            create = f"tablectl journal create --config {config_file}"
            raise JournalFault("E-JOURNAL-MISSING", here(f"{file} ; {create}", f"{file}; {create}"))
        keys = public_keys(config)
        with faults_of(file), closing(connect_reader(file)) as connection:
            check_layout(connection, file)
            if keys is None:
                nobody = here("pas de clé pour vérifier sa fin", "no key to verify its end with")
                yield warn(subject, "E-CHECK-SKIPPED", nobody)
                return
            size = _verified_size(connection, file, keys)
    except JournalFault as fault:
        yield error(subject, fault.code, fault.detail)
        return
    yield well(subject, here(f"{size} écritures, la fin est signée", f"{size} entries, its end is signed"))


def _verified_size(connection: sqlite3.Connection, file: Path, keys: LogKeys) -> int:
    """What a start would verify, in one look at the file: a running table goes on writing."""
    connection.execute("BEGIN")
    size = recover(connection, file, keys).edge.size
    connection.execute("COMMIT")
    return size


def _past(config: Config) -> Iterator[Finding]:
    """Whether the table may go on from its journal under this configuration; what the journal lacks is told already."""
    subject, file = here("règles", "rules"), config.journal.file
    try:
        with closing(Reader(file)) as reader:
            state = history.restore(Roulette(config.rules), Past(file, reader), RouletteState)
            refuse_unproclaimed(config.origin, reader.leaf(0) if reader.size else None)
        refuse_other_rules(config, state)
    except JournalFault:
        return
    except (EpochFault, RulesFault, history.RestoreError) as fault:
        yield error(subject, fault.code, fault.detail)
    else:
        yield well(subject, config.rules_sha256[:16])


def _salt(config: Config) -> Iterator[Finding]:
    """What players are hashed with: made at the first start, and never by hand."""
    salt = config.journal.file.with_name("player-salt")
    try:
        status = salt.stat()
    except OSError:
        return
    if status.st_size != SALT_BYTES or status.st_mode & 0o077:
        detail = here(f"{salt} : {SALT_BYTES} octets, pour lui seul", f"{salt}: {SALT_BYTES} bytes, for its owner only")
        yield error(here("sel", "salt"), "E-SALT", detail)


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
        yield well(subject, detail)
    else:
        yield Finding(Level.WARN if level == "warn" else Level.ERROR, subject, detail, "E-STORAGE-LOW")


# ── Network, time, persons ────────────────────────────────────────────────────────────────────────────────────────────


def _broker(config: Config, status: Status | None) -> Iterator[Finding]:
    """Without the broker a table still certifies, and a director's key still opens it; a signed order does not come."""
    subject, mqtt = here("messages", "broker"), config.mqtt
    level = Level.WARN if "director" in config.panel.keys else Level.ERROR
    if status is not None and status["delivery"]["connected"]:
        yield well(subject, f"{mqtt.host}:{mqtt.port}")
        return
    settings = mqtt.settings(config.table.name)
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
        return Finding(level, subject, f"{address}{colon()}{error.reason or error}", "E-MQTT-TLS")
    except OSError as error:
        return Finding(level, subject, f"{address}{colon()}{error.strerror or error}", "E-MQTT-UNREACHABLE")
    return well(subject, address)


def _clock() -> Finding:
    quality = time_quality()
    subject, detail = here("horloge", "clock"), word(QUALITIES, quality)
    return warn(subject, "E-CLOCK-UNSURE", detail) if quality is TimeQuality.FREE else well(subject, detail)


def _persons(config: Config) -> Iterator[Finding]:
    """Who may sign orders. Without a cashier nobody can load a post; a director may also turn his key."""
    subject = here("personnes", "persons")
    roles = [person.role for person in config.person if not person.revoked]
    lacking = [role for role in (Role.DIRECTOR, Role.CASHIER) if role not in roles]
    if not lacking:
        yield well(subject, ", ".join(f"{word(ROLES, role)} {roles.count(role)}" for role in Role if role in roles))
    for role in lacking:
        said = word(ROLES, role)
        nobody = here(f"aucun {said} ne peut signer d'ordre", f"no {said} can sign an order")
        yield warn(subject, "E-PERSON-MISSING", nobody)
