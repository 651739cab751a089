"""Messages per second through one table's connection: requests of 100 posts in, one reply and one entry out for each.

    load generator (4 connections, 100 posts) ──► mosquitto ──► the client under test ──► mosquitto ──► generator
                                                                       └──► up/event, with quality of service 1

Three processes share the machine's processors, as they would on a table with its own broker. The same load is put, in
turn and several times, on our ``BrokerBus`` and on a plain paho client that does the same echo in its callback; the
figure is the ratio of the two. A last run keeps a fixed pace and shows how busy the client is, how late the replies.

    python bench/bench_broker.py [--seconds 3] [--rounds 3] [--pace 2000] [--profile]
"""

import argparse
import asyncio
import cProfile
import json
import multiprocessing
import os
import pstats
import random
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import Message
from controller.delivery.topics import Topics

POSTS = 100
CONNECTIONS = 4
WINDOW = 50  # requests of one generator connection that wait for their reply
REQUEST = json.dumps({"id": "r" * 12, "do": "stake", "round": 412, "stakes": [{"bet": "plein-17", "cents": 250}] * 4})
REPLY = json.dumps({"id": "r" * 12, "ok": True, "index": 1_234_567, "credit": 12_500}).encode()
EVENT = b"e" * 500
TOPICS = Topics("bench", "t07")
PREFIX = f"{TOPICS.root}/post/"


# ── The load generator: MQTT 5 by hand, because a client library would cost more than what it measures ────────────────


def packet(kind: int, body: bytes) -> bytes:
    length, encoded = len(body), bytearray()
    while True:
        length, digit = divmod(length, 128)
        encoded.append(digit | (0x80 if length else 0))
        if not length:
            return bytes([kind]) + bytes(encoded) + body


def text(value: str) -> bytes:
    return len(value.encode()).to_bytes(2) + value.encode()


class Post:
    """One generator connection, which speaks for some of the posts."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        posts = range(1 + number, POSTS + 1, CONNECTIONS)
        self.publications = [text(TOPICS.post_in(post)) for post in posts]
        self.replies = self.turn = self.identifier = 0
        self.sent: deque[int] = deque()
        self.latencies_us: list[float] = []
        self.buffer = b""
        self.out = bytearray(packet(0x10, text("MQTT") + b"\x05\x02\x00\x3c\x00" + text(f"generator-{number}")))
        filters = b"".join(text(TOPICS.post_out(post)) + b"\x01" for post in posts)
        self.out += packet(0x82, b"\x00\x01\x00" + filters)
        self.ready = False

    def request(self, count: int) -> None:
        now = time.perf_counter_ns()
        for _ in range(count):
            self.turn = (self.turn + 1) % len(self.publications)
            self.identifier = self.identifier % 65_535 + 1
            body = self.publications[self.turn] + self.identifier.to_bytes(2) + b"\x00" + REQUEST.encode()
            self.out += packet(0x32, body)
            self.sent.append(now)

    def read(self) -> int:
        data = self.buffer + self.socket.recv(262_144)
        at, replies, now = 0, 0, time.perf_counter_ns()
        while len(data) - at >= 2:
            length, shift, cursor = 0, 0, at + 1
            while True:
                if cursor >= len(data):
                    cursor = -1
                    break
                length |= (data[cursor] & 0x7F) << shift
                shift += 7
                cursor += 1
                if not data[cursor - 1] & 0x80:
                    break
            if cursor < 0 or cursor + length > len(data):
                break
            kind = data[at] >> 4
            if kind == 3:
                topic_length = int.from_bytes(data[cursor : cursor + 2])
                self.out += b"\x40\x02" + data[cursor + 2 + topic_length : cursor + 4 + topic_length]
                self.latencies_us.append((now - self.sent.popleft()) / 1_000)
                replies += 1
            elif kind == 9:
                self.ready = True
            at = cursor + length
        self.buffer = data[at:]
        self.replies += replies
        return replies

    def flush(self) -> None:
        if self.out:
            try:
                del self.out[: self.socket.send(self.out)]
            except BlockingIOError:
                return


def generate(port: int, seconds: float, pace: int, pipe: Connection) -> None:
    """Load for ``seconds``: as much as the windows allow, or ``pace`` requests per second. Reports through ``pipe``."""
    posts = [Post(port, number) for number in range(CONNECTIONS)]
    by_file = {post.socket.fileno(): post for post in posts}
    for post in posts:
        post.socket.setblocking(False)
    while not all(post.ready for post in posts):
        pump(posts, by_file)
    began = time.perf_counter()
    asked = 0
    while (now := time.perf_counter() - began) < seconds:
        if pace:
            due = int(now * pace) - asked
            for turn in range(due):
                posts[(asked + turn) % CONNECTIONS].request(1)
            asked += due
        else:
            for post in posts:
                post.request(WINDOW - len(post.sent))
        pump(posts, by_file)
    elapsed = time.perf_counter() - began
    latencies = sorted(latency for post in posts for latency in post.latencies_us)
    pipe.send((sum(post.replies for post in posts) / elapsed, latencies, time.process_time() / elapsed))


def pump(posts: list[Post], by_file: dict[int, Post]) -> None:
    for post in posts:
        post.flush()
    writable = [file for file, post in by_file.items() if post.out]
    readable, _, _ = select.select(list(by_file), writable, [], 0.001)
    for file in readable:
        by_file[file].read()


# ── The two clients under test ────────────────────────────────────────────────────────────────────────────────────────


class Echo:
    """Answers each request on its post's topic and publishes one entry, over a ``BrokerBus``."""

    def __init__(self, bus: BrokerBus, up: asyncio.Event) -> None:
        self.bus = bus
        self.up = up
        bus.attach(self, (TOPICS.posts_in,))

    def on_message(self, message: Message) -> None:
        post = TOPICS.post_of(message.topic)
        if post is not None:
            self.bus.publish(Message(TOPICS.post_out(post), REPLY))
            self.bus.publish(Message(TOPICS.event, EVENT, content_type="application/cloudevents+json"))

    def on_connected(self) -> None:
        self.up.set()

    def on_disconnected(self) -> None:
        self.up.clear()


def serve_bus(port: int, pipe: Connection, profiled: bool) -> None:
    profile = cProfile.Profile() if profiled else None

    async def main() -> float:
        bus = BrokerBus(
            BrokerSettings(host="127.0.0.1", port=port, client_id="t07"),
            will=lambda session: Message(TOPICS.state, b"lost", retain=True),
            random=random.random,
            on_fault=lambda fault: print(fault, file=sys.stderr),
        )
        up = asyncio.Event()
        Echo(bus, up)
        running = asyncio.create_task(bus.run())
        await up.wait()
        pipe.send("ready")
        began = time.process_time()
        if profile:
            profile.enable()
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        used = time.process_time() - began
        if profile:
            profile.disable()
        running.cancel()
        await asyncio.wait({running})
        return used

    pipe.send(asyncio.run(main()))
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


def serve_paho(port: int, pipe: Connection, profiled: bool) -> None:
    up = threading.Event()

    def on_message(client: paho.Client, userdata: object, message: paho.MQTTMessage) -> None:
        client.publish(message.topic[:-2] + "out", REPLY, 1)
        client.publish(TOPICS.event, EVENT, 1)

    def on_subscribe(*_: object) -> None:
        up.set()

    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="t07", protocol=paho.MQTTv5)
    client.on_message = on_message
    client.on_subscribe = on_subscribe
    client.max_inflight_messages_set(400)
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe(TOPICS.posts_in, 1)
    up.wait()
    pipe.send("ready")
    began = time.process_time()
    pipe.recv()
    pipe.send(time.process_time() - began)
    client.disconnect()
    client.loop_stop()


# ── One run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(
    serve: Callable[[int, Connection, bool], None], port: int, seconds: float, pace: int, profiled: bool = False
) -> tuple[float, list[float], float, float]:
    """Put the load on ``serve``: requests answered per second, sorted latencies in µs, processor share of both ends."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(port, theirs, profiled))
    server.start()
    ours.recv()
    result, end = multiprocessing.Pipe()
    generator = multiprocessing.Process(target=generate, args=(port, seconds, pace, end))
    generator.start()
    rate, latencies, generator_share = result.recv()
    generator.join()
    ours.send("stop")
    used = ours.recv()
    server.join()
    return rate, latencies, used / seconds, generator_share


def broker(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    program = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        sys.exit("mosquitto is not installed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true", "max_inflight_messages 500"]
    configuration = folder / "mosquitto.conf"
    configuration.write_text("\n".join([*lines, "max_queued_messages 10000", "log_type error", ""]))
    process = subprocess.Popen([program, "-c", str(configuration)])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except ConnectionRefusedError:
            time.sleep(0.01)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=3.0)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--pace", type=int, default=2_000)
    arguments.add_argument("--profile", action="store_true", help="print where the client under test spends its time")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, port = broker(Path(folder))
        try:
            if chosen.profile:
                run(serve_bus, port, chosen.seconds, 0, profiled=True)
                return
            ours, plain = [], []
            for _ in range(chosen.rounds):
                plain.append(run(serve_paho, port, chosen.seconds, 0)[0])
                ours.append(run(serve_bus, port, chosen.seconds, 0)[0])
            rate, latencies, share, generator_share = run(serve_bus, port, chosen.seconds, chosen.pace)
        finally:
            process.terminate()
            process.wait()
    median = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
    print(f"requests answered per second, BrokerBus:   {', '.join(f'{rate:,.0f}' for rate in ours)}")
    print(f"requests answered per second, plain paho:  {', '.join(f'{rate:,.0f}' for rate in plain)}")
    print(f"ratio of BrokerBus to plain paho, median:  {median:.2f}")
    at = {part: latencies[int(len(latencies) * part)] / 1_000 for part in (0.5, 0.99)}
    print(f"at {chosen.pace} requests per second: answered {rate:,.0f}, after {at[0.5]:.2f} ms, p99 {at[0.99]:.2f} ms")
    print(f"  processor share: client {share:.0%}, load generator {generator_share:.0%} of one core")


if __name__ == "__main__":
    main()
