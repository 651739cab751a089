"""The mirror: facts that it verifies, stores and acknowledges in a second, the catching up of a table, and its memory.

The mirror is the process that a casino runs, the broker is mosquitto with the casino's limits, the leaves are real
(about 500 bytes, a hundred journals, each with its own key). The tables are one process that writes MQTT by hand, so
that the machine is the mirror's. Together they send FACTS_AHEAD facts at the most beyond what the mirror acknowledged,
because the broker drops what is beyond its queue, and a signed checkpoint with each COMMIT_FACTS of a table. What is
counted was stored, cosigned, and acknowledged.
"""

import json
import os
import pwd
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.figures import Figure, rate
from controller.certify.checkpoint import Checkpoint
from controller.certify.leaf import FIRST_PREVIOUS, Record, Stamp, build_leaves, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, sign_note
from controller.certify.tree import Frontier
from controller.delivery.bus import Message
from controller.mirror.mirror import Mirror
from controller.mirror.sqlite_store import SqliteStore
from drivers.clock import SystemClock

TABLES = 100
FACTS = 600
"""Facts of each table in the run that measures the throughput."""

FACTS_AHEAD = 9_000
COMMIT_FACTS = 50
GOAL_PER_SECOND = 5_000
DAY_FACTS = 20_000
CATCH_UP_GOAL_S = 10
MEMORY_FACTS = 1_000_000
MEMORY_BOUND = 1.15
"""Resident memory after all facts, beside that after the first tenth."""

PATIENCE_S = 120
BUILD = Path("build/bench")

MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 500
max_queued_messages 10000
persistence false
log_type error
"""


def seeded(name: str, kind: KeyType = KeyType.ED25519) -> Signer:
    """The same key for the same name."""
    return Signer(name, sha256(name.encode()).digest(), kind)


class Journal:
    """A table's entries and their signed checkpoints, made beforehand."""

    def __init__(self, number: int) -> None:
        self.table = f"t{number:03d}"
        self.signer = seeded(f"bench.example/table/{self.table}/1")
        self._frontier = Frontier()
        self._previous = FIRST_PREVIOUS

    def commit(self, count: int) -> tuple[list[bytes], str]:
        """The next ``count`` entries, and the checkpoint after them."""
        first = self._frontier.size
        records = [
            Record(
                "fr.roulette.stakes.placed.v1",
                canonical(
                    {"at": first + at, "bets": [[f"plein-{n}", 500] for n in range(9)], "credit": 12_500, "post": 3}
                ),
                "2026-11-30-1",
            )
            for at in range(count)
        ]
        stamp = Stamp(source=self.signer.name, boot="0" * 16, mono_ms=first, wall_ms=1_796_000_000_000, quality="ntp")
        leaves, hashes = build_leaves(first, self._previous, records, stamp)
        for one in hashes:
            self._frontier.append(one)
        self._previous = hashes[-1]
        checkpoint = Checkpoint(self.signer.name, self._frontier.size, self._frontier.root())
        return leaves, sign_note(checkpoint.text, self.signer)


# ── MQTT 5 by hand ────────────────────────────────────────────────────────────────────────────────────────────────────


def _length(size: int) -> bytes:
    encoded = bytearray()
    while True:
        size, low = divmod(size, 128)
        encoded.append(low | 128 if size else low)
        if not size:
            return bytes(encoded)


def _text(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


def publication(topic: str, payload: bytes, identifier: int, *, retain: bool = False) -> bytes:
    """A PUBLISH of quality 1 (MQTT 5, section 3.3)."""
    body = _text(topic) + identifier.to_bytes(2) + b"\x00" + payload
    return bytes([0x32 | retain]) + _length(len(body)) + body


class Client:
    """One connection: what it is to send, and the packets that came."""

    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = _text("MQTT") + b"\x05\x02\x00\x00\x00" + _text(name)
        self.socket.sendall(b"\x10" + _length(len(body)) + body)
        self._rest = b""
        while not any(kind == 2 for kind, _ in self.packets()):
            pass

    def subscribe(self, pattern: str) -> None:
        """Ask for quality 0: nothing has to be answered."""
        body = b"\x00\x01\x00" + _text(pattern) + b"\x00"
        self.socket.sendall(b"\x82" + _length(len(body)) + body)
        while not any(kind == 9 for kind, _ in self.packets()):
            pass

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """The whole packets that one reading brings: kind and body."""
        data = self._rest + self.socket.recv(1 << 18)
        at = 0
        while (found := _packet(data, at)) is not None:
            kind, begin, at = found
            yield kind, data[begin:at]
        self._rest = data[at:]

    def published(self) -> Iterator[tuple[str, bytes]]:
        """The publications (of quality 0) among them: topic and payload."""
        for kind, body in self.packets():
            if kind == 3:
                size = int.from_bytes(body[:2])
                after = 2 + size
                yield body[2:after].decode(), body[after + 1 + body[after] :]


def _packet(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Kind, beginning of the body and end of the packet at ``at``, when all of it is there."""
    size = shift = 0
    begin = at + 1
    while begin < len(data):
        byte = data[begin]
        begin += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (data[at] >> 4, begin, begin + size) if begin + size <= len(data) else None
    return None


class Sender:
    """One table: its commits as packets, sent as the mirror acknowledges."""

    def __init__(self, port: int, number: int, facts: int, ahead: int) -> None:
        journal = Journal(number)
        root = f"casino/v1/bench.example/table/{journal.table}"
        self.topic = f"{root}/down/ack"
        self.keys = journal.signer.verifier.vkey
        self.facts = facts
        self._ahead = ahead
        self.acked = self.sent = self.bytes = 0
        self._commits: list[tuple[int, bytes]] = []
        for start in range(0, facts, COMMIT_FACTS):
            leaves, note = journal.commit(min(COMMIT_FACTS, facts - start))
            packets = [publication(f"{root}/up/event", leaf, at + 1) for at, leaf in enumerate(leaves)]
            packets.append(publication(f"{root}/up/checkpoint", note.encode(), COMMIT_FACTS + 1, retain=True))
            self._commits.append((len(leaves), b"".join(packets)))
            self.bytes += sum(map(len, leaves))
        self._next = 0
        self.client = Client(port, journal.table)

    def send(self) -> None:
        """As much as may be on its way."""
        while self._next < len(self._commits) and self.sent - self.acked < self._ahead:
            count, packets = self._commits[self._next]
            self._next += 1
            self.sent += count
            self.client.socket.sendall(packets)

    @property
    def done(self) -> bool:
        """Whether all was acknowledged by the mirror."""
        return self.acked >= self.facts


# ── The machine ───────────────────────────────────────────────────────────────────────────────────────────────────────


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _await(what: str, port: int) -> None:
    """Wait until somebody listens."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{what} did not come up")


@contextmanager
def running(*command: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended afterwards."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """mosquitto with the casino's limits; its port."""
    port = free_port()
    configuration = folder / "mosquitto.conf"
    configuration.write_text(MOSQUITTO.format(port=port))
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") or "mosquitto"
    with running(program, "-c", str(configuration), stderr=subprocess.DEVNULL):
        _await("mosquitto", port)
        yield port


@contextmanager
def postgres() -> Iterator[str]:
    """A throw-away cluster with PostgreSQL's own settings (fsync on); the URL of an empty database."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    initdb = places[-1] / "initdb" if places else Path(shutil.which("initdb") or "initdb")
    nobody = pwd.getpwnam("nobody")
    account: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}
    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as folder:
        if account:
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        make = (str(initdb), "-D", folder, "-U", "mirror", "-A", "trust", "--no-sync")
        subprocess.run(make, check=True, capture_output=True, cwd="/", **account)
        port = free_port()
        options = ("-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        server = str(initdb.with_name("postgres"))
        with running(server, "-D", folder, *options, cwd="/", stderr=subprocess.DEVNULL, **account):
            _await("PostgreSQL", port)
            time.sleep(1)
            yield f"postgresql://mirror@127.0.0.1:{port}/postgres"


@contextmanager
def mirror(folder: Path, port: int, store: str, logs: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """``tablectl mirror run``."""
    key, policy, config = folder / "mirror.key", folder / "policy", folder / "mirror.toml"
    key.write_text(f"{seeded('bench.example/mirror', KeyType.COSIGNATURE).skey}\n")
    key.chmod(0o600)
    policy.write_text("".join(f"log {vkey}\n" for vkey in logs) + "quorum none\n")
    service = {"mode": "mirror", "name": "mirror", "key": str(key), "policy": str(policy), "store": store}
    lines = [f"{name} = {json.dumps(value)}" for name, value in service.items()]
    config.write_text("\n".join(["[service]", *lines, "[mqtt]", 'host = "127.0.0.1"', f"port = {port}", ""]))
    with running(
        sys.executable, "-m", "controller.cli", "mirror", "run", "--config", str(config), stderr=subprocess.DEVNULL
    ) as process:
        yield process


# ── The figures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def acknowledged_in(senders: list[Sender], listener: Client) -> float:
    """Let all tables send until all is acknowledged; the seconds that it took."""
    by_topic = {sender.topic: sender for sender in senders}
    poll = select.poll()
    by_descriptor = {sender.client.socket.fileno(): sender for sender in senders}
    for descriptor in (listener.socket.fileno(), *by_descriptor):
        poll.register(descriptor, select.POLLIN)
    began_s = time.monotonic()
    for sender in senders:
        sender.send()
    while not all(sender.done for sender in senders):
        if time.monotonic() - began_s > PATIENCE_S:
            raise RuntimeError(f"only {sum(sender.acked for sender in senders)} facts were acknowledged")
        for descriptor, _ in poll.poll(1_000):
            if descriptor in by_descriptor:
                for _ in by_descriptor[descriptor].client.packets():
                    pass  # the broker's own acknowledgements are flow control
                continue
            for topic, payload in listener.published():
                sender = by_topic[topic]
                sender.acked = max(sender.acked, int(payload.split(b"\n", 2)[1]))
                sender.send()
    return time.monotonic() - began_s


def _throughput(store: str, folder: Path, tables: int, facts: int) -> tuple[float, int]:
    """Seconds for all facts of all tables, and their bytes."""
    with ExitStack() as stack:
        port = stack.enter_context(broker(folder))
        senders = [Sender(port, number, facts, FACTS_AHEAD // tables) for number in range(tables)]
        listener = Client(port, "listener")
        listener.subscribe("casino/v1/+/table/+/down/ack")
        stack.enter_context(mirror(folder, port, store, [sender.keys for sender in senders]))
        warm = Client(port, "warm")
        _await_mirror(warm)
        return acknowledged_in(senders, listener), sum(sender.bytes for sender in senders)


def _await_mirror(client: Client) -> None:
    """Until somebody listens to events: before, the broker answers that there is nobody (0x10)."""
    until_s = time.monotonic() + PATIENCE_S
    probe = publication("casino/v1/bench.example/table/probe/up/event", b"{}", 1)
    while time.monotonic() < until_s:
        client.socket.sendall(probe)
        if any(kind == 4 and len(body) == 2 for kind, body in client.packets()):
            return
        time.sleep(0.05)
    raise RuntimeError("the mirror did not come up")


def throughput() -> Iterator[Figure]:
    """A hundred tables at once, with each store."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("SQLite", "PostgreSQL"):
        with tempfile.TemporaryDirectory(dir=BUILD) as made, ExitStack() as stack:
            folder = Path(made).resolve()
            store = str(folder / "mirror.sqlite") if name == "SQLite" else stack.enter_context(postgres())
            seconds, size = _throughput(store, folder, TABLES, FACTS)
        total = TABLES * FACTS
        how = f"{total:,} facts of {size // total} bytes, {TABLES} tables"
        yield rate(f"mirror, {name}", total / seconds, GOAL_PER_SECOND, "facts", how)


def catch_up() -> Iterator[Figure]:
    """One table that was a day away."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as made:
        folder = Path(made).resolve()
        seconds, _ = _throughput(str(folder / "mirror.sqlite"), folder, 1, DAY_FACTS)
    yield Figure(
        name="mirror, catching up",
        measured=f"{seconds:.1f} s",
        beside=f"{CATCH_UP_GOAL_S} s for {DAY_FACTS:,} facts of one table",
        ratio=seconds / CATCH_UP_GOAL_S,
        bound=1,
    )


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def memory() -> Iterator[Figure]:
    """The mirror and its store without a broker, over a million facts of a hundred journals."""
    BUILD.mkdir(parents=True, exist_ok=True)
    journals = [Journal(number) for number in range(TABLES)]
    logs = [LogKeys.of(journal.signer.verifier) for journal in journals]
    signer = seeded("bench.example/mirror", KeyType.COSIGNATURE)
    each, early = 100, 0
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        store = SqliteStore.open(Path(folder).resolve() / "mirror.sqlite", allow_volatile=True)
        with closing(store):
            core = Mirror(logs, store, signer, SystemClock())
            for turn in range(MEMORY_FACTS // (TABLES * each)):
                for journal in journals:
                    leaves, note = journal.commit(each)
                    root = f"casino/v1/bench.example/table/{journal.table}/up"
                    messages = [Message(f"{root}/event", leaf) for leaf in leaves]
                    core.work([*messages, Message(f"{root}/checkpoint", note.encode())])
                if (turn + 1) * 10 * TABLES * each == MEMORY_FACTS:
                    early = _resident()
            assert sum(follower.held.cosigned for follower in core.followers) == MEMORY_FACTS
    late = _resident()
    yield Figure(
        name="mirror, memory",
        measured=f"{late / 1e6:,.1f} MB after {MEMORY_FACTS:,}",
        beside=f"{early / 1e6:,.1f} MB after {MEMORY_FACTS // 10:,} facts",
        ratio=late / early,
        bound=MEMORY_BOUND,
    )
