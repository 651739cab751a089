"""A hundred posts that stake as fast as they are answered: MQTT 5 by hand, in a process of their own.

A client library would cost more than what it measures. Each connection speaks for some of the posts and keeps a window
of requests open; each message has four stakes, and now and then a post takes all its stakes back, so that nobody ever
runs out of credit or reaches a maximum. Every answer must say that the request was certified.
"""

import select
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench.bench_broker import packet, text

CONNECTIONS = 4
WINDOW = 64
"""Requests of one connection that wait for their answer."""

STAKES = ("rouge", "pair", "manque", "douzaine-1")
CENTS = 50
TAKE_BACK_EVERY = 16
"""Every so many requests of a post takes its stakes back."""

PUBLISH, PUBACK, SUBACK = 3, 4, 9
LARGEST_READ = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send where: ``root`` is the table's topic, ``run`` makes the identifiers of requests new."""

    port: int
    root: str
    posts: int
    round: int
    run: str
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back: answers a second, those that were not a success by their code, and milliseconds, sorted."""

    per_second: float
    stakes_per_second: float
    refused: Counter[str]
    latencies_ms: list[float]


class Client:
    """One connection, which speaks for some of the posts."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._posts = range(1 + number, load.posts + 1, CONNECTIONS)
        self._made = dict.fromkeys(self._posts, 0)
        self._turn = self._packet = 0
        self._sent_s: dict[bytes, float] = {}
        self._in = b""
        self.socket = socket.create_connection(("127.0.0.1", load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.out = bytearray(packet(0x10, text("MQTT") + b"\x05\x02\x00\x3c\x00" + text(f"posts-{load.run}-{number}")))
        filters = b"".join(text(f"{load.root}/post/{post}/out") + b"\x01" for post in self._posts)
        self.out += packet(0x82, b"\x00\x01\x00" + filters)
        self.subscribed = False
        self.stakes = 0
        self.refused: Counter[str] = Counter()
        self.latencies_ms: list[float] = []

    @property
    def waiting(self) -> int:
        """Requests without an answer."""
        return len(self._sent_s)

    def fill_window(self, most: int) -> int:
        """Ask until the window is full, or ``most`` was asked; returns how much was."""
        asked = max(0, min(WINDOW - len(self._sent_s), most))
        for _ in range(asked):
            self._ask(self._posts[self._turn % len(self._posts)])
            self._turn += 1
        return asked

    def _ask(self, post: int) -> None:
        self._made[post] += 1
        made, load = self._made[post], self._load
        request = f"{load.run}-{post}-{made}"
        if made % TAKE_BACK_EVERY:
            lines = ",".join(f'{{"bet":"{bet}","cents":{CENTS}}}' for bet in STAKES)
            body = f'{{"id":"{request}","do":"stake","round":{load.round},"stakes":[{lines}]}}'
            self.stakes += len(STAKES)
        else:
            body = f'{{"id":"{request}","do":"take-back","round":{load.round}}}'
        self._packet = self._packet % 65_535 + 1
        head = text(f"{load.root}/post/{post}/in") + self._packet.to_bytes(2) + b"\x00"
        self.out += packet(0x32, head + body.encode())
        self._sent_s[request.encode()] = time.perf_counter()

    def flush(self) -> None:
        """Send what the socket takes."""
        if self.out:
            try:
                del self.out[: self.socket.send(self.out)]
            except BlockingIOError:
                return

    def read(self) -> None:
        """Take in whatever came, whole packets only."""
        data, at = self._in + self.socket.recv(LARGEST_READ), 0
        while (end := _end_of_packet(data, at)) is not None:
            start, stop = end
            kind = data[at] >> 4
            if kind == PUBLISH:
                self._answer(data[start:stop])
            elif kind == SUBACK:
                self.subscribed = True
            at = stop
        self._in = data[at:]

    def _answer(self, publication: bytes) -> None:
        topic = int.from_bytes(publication[:2])
        self.out += bytes((PUBACK << 4, 2)) + publication[2 + topic : 4 + topic]
        _, _, rest = publication.partition(b'{"id":"')
        sent_s = self._sent_s.pop(rest[: rest.find(b'"')], None)
        if sent_s is None:
            return
        self.latencies_ms.append((time.perf_counter() - sent_s) * 1_000)
        if b'"ok":true' not in rest:
            self.refused[rest.partition(b'"code":"')[2].partition(b'"')[0].decode()] += 1


def _end_of_packet(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the content of the packet at ``at`` begins and ends, None when it is not complete (MQTT 5, 1.5.5)."""
    length, shift, cursor = 0, 0, at + 1
    while cursor < len(data):
        length |= (data[cursor] & 0x7F) << shift
        cursor += 1
        if not data[cursor - 1] & 0x80:
            return (cursor, cursor + length) if cursor + length <= len(data) else None
        shift += 7
    return None


def generate(load: Load, report: Connection) -> None:
    """Put the load on the table, and send an ``Answered`` through ``report``."""
    clients = [Client(load, number) for number in range(CONNECTIONS)]
    while not all(client.subscribed for client in clients):
        _pump(clients)
    began_s, left = time.perf_counter(), load.messages
    while left or any(client.waiting for client in clients):
        for client in clients:
            left -= client.fill_window(left)
        _pump(clients)
    took_s = time.perf_counter() - began_s
    latencies_ms = sorted(latency for client in clients for latency in client.latencies_ms)
    report.send(
        Answered(
            per_second=len(latencies_ms) / took_s,
            stakes_per_second=sum(client.stakes for client in clients) / took_s,
            refused=sum((client.refused for client in clients), Counter()),
            latencies_ms=latencies_ms,
        )
    )
    for client in clients:
        client.socket.close()


def _pump(clients: Sequence[Client]) -> None:
    by_file = {client.socket.fileno(): client for client in clients}
    for client in clients:
        client.flush()
    writable = [file for file, client in by_file.items() if client.out]
    readable, _, _ = select.select(list(by_file), writable, [], 0.01)
    for file in readable:
        by_file[file].read()
