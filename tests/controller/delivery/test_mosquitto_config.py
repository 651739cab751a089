"""The casino's broker as ``config/mosquitto`` sets it up: real certificates, the real access list, the real mosquitto.

Only the address, the port and the folders are replaced.
"""

import asyncio
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from controller.delivery.bus import Message, Refused

Make = Callable[..., Any]
NAMES = ("t07", "t08", "t07-p03", "t07-p04", "mirror", "witness", "desk", "stranger")
ROOT = "casino/v1/casino.example/table"


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "config" / "mosquitto"


@pytest.fixture(scope="module")
def certificates(folder: Path, tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], str]) -> Path:
    """The folder that make-certificates.sh makes, and that of another authority in ``other``."""
    program("openssl")
    made = tmp_path_factory.mktemp("certificates")
    for place in (made, made / "other"):
        subprocess.run([folder / "make-certificates.sh", place, "127.0.0.1", *NAMES], check=True, capture_output=True)
    return made


class Casino:
    """The broker that runs with the casino's configuration."""

    def __init__(self, port: int, certificates: Path, station: Make) -> None:
        self.port = port
        self.certificates = certificates
        self._station = station

    def station(self, name: str, filters: tuple[str, ...] = (), authority: str = ".", **options: Any) -> Any:
        """A ``BrokerBus`` with the certificate of ``name``."""
        files = self.certificates / authority
        proofs = {"certificate_path": files / f"{name}.crt", "key_path": files / f"{name}.key"}
        named = options.pop("client_id", name)
        return self._station(self.port, named, filters, ca_path=self.certificates / "ca.crt", **proofs | options)

    def context(self, name: str | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        if name is not None:
            context.load_cert_chain(self.certificates / f"{name}.crt", self.certificates / f"{name}.key")
        return context


@pytest.fixture
async def casino(
    folder: Path,
    certificates: Path,
    tmp_path: Path,
    free_port: int,
    program: Callable[[str], str],
    mosquitto_of: Make,
    station: Make,
) -> AsyncIterator[Casino]:
    text = (folder / "mosquitto.conf").read_text()
    for old, new in (
        ("listener 8883 192.0.2.10", f"listener {free_port} 127.0.0.1"),
        ("/etc/mosquitto/casino/acl", str(tmp_path / "acl")),
        ("/etc/mosquitto/casino/", f"{certificates}/"),
        ("/var/lib/mosquitto/", f"{tmp_path}/"),
    ):
        assert old in text
        text = text.replace(old, new)
    if os.geteuid() == 0:
        text += "\nuser root\n"  # it would become a user who may not read this test's files
    configuration = tmp_path / "mosquitto.conf"
    configuration.write_text(text)
    shutil.copy(folder / "acl", tmp_path / "acl")
    (tmp_path / "acl").chmod(0o600)
    broker = await mosquitto_of(program("mosquitto"), configuration).start()
    yield Casino(free_port, certificates, station)
    await broker.kill()


# ── Who may connect ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_casino_broker_table_and_post_and_centre_work_together(casino: Casino, topics: Any) -> None:
    table = await casino.station("t07", (topics.posts_in, topics.command, topics.ack, topics.replay)).connected()
    post = await casino.station("t07-p03", (topics.post_out(3), topics.display)).connected()
    mirror = await casino.station("mirror", (f"{ROOT}/+/up/#",)).connected()
    desk = await casino.station("desk", (topics.reply,)).connected()
    await post.bus.publish(Message(topics.post_in(3), b"stake"))
    await desk.bus.publish(Message(topics.command, b"order"))
    await mirror.bus.publish(Message(topics.ack, b"ack", retain=True))
    await mirror.bus.publish(Message(topics.replay, b"replay"))
    await table.ear.until(lambda: len(table.ear.messages) == 4)
    assert sorted(table.ear.payloads) == [b"ack", b"order", b"replay", b"stake"]
    await table.bus.publish(Message(topics.post_out(3), b"answer"))
    await table.bus.publish(Message(topics.display, b"board", retain=True))
    await table.bus.publish(Message(topics.event, b"entry"))
    await table.bus.publish(Message(topics.reply, b"done"))
    await post.ear.until(lambda: len(post.ear.messages) == 2)
    await mirror.ear.until(lambda: len(mirror.ear.messages) == 3)
    await desk.ear.until(lambda: bool(desk.ear.messages))
    assert post.ear.payloads == [b"answer", b"board"]
    assert mirror.ear.payloads == [b"board", b"entry", b"done"]
    assert desk.ear.payloads == [b"done"]
    assert [one.ear.faults for one in (table, post, mirror, desk)] == [[], [], [], []]


async def test_casino_broker_without_a_certificate_answers_nothing(casino: Casino) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", casino.port, ssl=casino.context(None), server_hostname="127.0.0.1"
    )
    writer.write(b"\x10\x10\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x03t07")
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    except (ssl.SSLError, ConnectionError):
        answer = b""
    assert answer == b""
    writer.transport.abort()


async def test_casino_broker_certificate_of_another_authority_is_refused_and_told(casino: Casino) -> None:
    table = casino.station("t07", authority="other")
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert set(table.ear.codes) == {"E-MQTT-TLS"}
    assert table.ear.connections == 0


async def test_casino_broker_without_tls_is_refused(casino: Casino, station: Make) -> None:
    table = station(casino.port)
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.connections == 0
    assert set(table.ear.codes) == {"E-MQTT-UNREACHABLE"}


async def test_casino_broker_with_a_false_certificate_is_not_trusted_by_the_table(
    casino: Casino, station: Make, certificates: Path
) -> None:
    files = certificates
    table = station(
        casino.port,
        ca_path=files / "other" / "ca.crt",
        certificate_path=files / "t07.crt",
        key_path=files / "t07.key",
    )
    await table.ear.until(lambda: bool(table.ear.faults))
    assert table.ear.codes == ["E-MQTT-TLS"]
    assert "CERTIFICATE_VERIFY_FAILED" in table.ear.faults[0].detail


async def test_casino_broker_older_tls_is_refused(casino: Casino) -> None:
    context = casino.context("t07")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", casino.port, ssl=context, server_hostname="127.0.0.1")


async def test_casino_broker_identity_in_no_list_connects_and_may_do_nothing(casino: Casino, topics: Any) -> None:
    stranger = await casino.station("stranger", ("#",)).connected()
    table = await casino.station("t07").connected()
    await table.bus.publish(Message(topics.display, b"board"))
    with pytest.raises(Refused, match="Not authorized"):
        await stranger.bus.publish(Message(topics.event, b"forged"))
    await table.bus.publish(Message(topics.display, b"board"))
    assert stranger.ear.messages == []


async def test_casino_broker_client_that_borrows_a_client_id_throws_nobody_out(casino: Casino) -> None:
    table = await casino.station("t07").connected()
    thief = await casino.station("t08", client_id="t07").connected()
    await thief.bus.publish(Message(f"{ROOT}/t08/up/event", b"own"))
    await table.bus.publish(Message(f"{ROOT}/t07/up/event", b"own"))
    assert table.ear.losses == 0


# ── Who may say and hear what ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("who", "topic"),
    [
        ("t08", f"{ROOT}/t07/up/event"),
        ("t08", f"{ROOT}/t07/up/state"),
        ("t08", f"{ROOT}/t07/post/3/out"),
        ("t07", f"{ROOT}/t07/down/ack"),
        ("t07", f"{ROOT}/t07/down/command"),
        ("t07", f"{ROOT}/t07/post/3/in"),
        ("t07", "casino/v1/other.example/table/t07/up/event"),
        ("t07-p03", f"{ROOT}/t07/post/4/in"),
        ("t07-p03", f"{ROOT}/t08/post/3/in"),
        ("t07-p03", f"{ROOT}/t07/post/3/out"),
        ("t07-p03", f"{ROOT}/t07/up/event"),
        ("t07-p03", f"{ROOT}/t07/up/display"),
        ("t07-p03", f"{ROOT}/t07/down/command"),
        ("t07-p03", f"{ROOT}/t07-p03/up/event"),  # a post is not a table of its own name
        ("mirror", f"{ROOT}/t07/down/command"),
        ("mirror", f"{ROOT}/t07/up/event"),
        ("mirror", f"{ROOT}/mirror/up/event"),
        ("mirror", f"{ROOT}/t07/down/witness/witness"),
        ("witness", f"{ROOT}/t07/down/ack"),
        ("witness", f"{ROOT}/t07/down/entry"),
        ("witness", f"{ROOT}/t07/down/command"),
        ("desk", f"{ROOT}/t07/down/ack"),
        ("desk", f"{ROOT}/t07/down/replay"),
        ("desk", f"{ROOT}/t07/post/3/in"),
    ],
)
async def test_casino_broker_publication_outside_an_identity_is_refused_and_seen_as_refused(
    casino: Casino, who: str, topic: str
) -> None:
    one = await casino.station(who).connected()
    with pytest.raises(Refused, match="Not authorized"):
        await one.bus.publish(Message(topic, b"forged"))
    assert one.ear.codes == ["E-MQTT-PUBLISH-REFUSED"]
    assert topic in one.ear.faults[0].detail


@pytest.mark.parametrize(
    ("who", "hears"),
    [
        ("t07-p03", {"post/3/out", "up/display"}),
        ("t07", {"down/ack", "down/command", "down/replay", "post/3/in", "post/4/in"}),
        ("t08", set()),
        ("mirror", {"up/event", "up/display", "up/state", "down/ack"}),
        ("witness", {"up/event", "up/display", "up/state"}),
        ("desk", {"up/event", "up/display", "up/state"}),
        ("stranger", set()),
    ],
)
async def test_casino_broker_each_identity_hears_only_what_is_its_own(
    casino: Casino, who: str, hears: set[str]
) -> None:
    listener = await casino.station(who, ("#", "probe/#")).connected()
    said = {
        "t07": {"up/event", "up/display", "up/state", "post/3/out", "post/4/out"},
        "t07-p03": {"post/3/in"},
        "t07-p04": {"post/4/in"},
        "mirror": {"down/ack", "down/replay"},
        "desk": {"down/command"},
    }
    for name, leaves in said.items():
        speaker = listener if name == who else await casino.station(name).connected()
        for leaf in sorted(leaves):
            await speaker.bus.publish(Message(f"{ROOT}/t07/{leaf}", b"said"))
    await listener.ear.until(lambda: len(listener.ear.messages) >= len(hears))
    witness = await casino.station("t08").connected()
    await witness.bus.publish(Message(f"{ROOT}/t08/up/event", b"the end"))  # whatever was on its way has arrived
    heard = {
        message.topic.removeprefix(f"{ROOT}/t07/") for message in listener.ear.messages if b"said" in message.payload
    }
    assert heard == hears


async def test_casino_broker_too_large_publication_is_refused_before_it_is_sent(casino: Casino, topics: Any) -> None:
    table = await casino.station("t07").connected()
    with pytest.raises(Refused, match="packets of at most 65536"):
        await table.bus.publish(Message(topics.event, b"x" * 70_000))
    assert table.bus.connected


async def test_casino_broker_client_of_the_older_protocol_is_told_success_and_reaches_nobody(
    casino: Casino, topics: Any
) -> None:
    table = await casino.station("t07", (topics.posts_in,)).connected()
    acknowledged = await asyncio.to_thread(publish_with_version_3, casino, topics.post_in(4), topics.post_in(3))
    assert acknowledged == 2  # it cannot know that the first was refused: that is why no client of ours speaks it
    await table.ear.until(lambda: bool(table.ear.messages))
    assert [message.topic for message in table.ear.messages] == [topics.post_in(3)]


def publish_with_version_3(casino: Casino, *names: str) -> int:
    """Publish to each topic as post 3 with MQTT 3.1.1; returns how many publications were acknowledged."""
    connected = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, "t07-p03", protocol=paho.MQTTv311)
    client.on_connect = lambda *_: connected.set()
    client.tls_set_context(casino.context("t07-p03"))
    client.connect("127.0.0.1", casino.port)
    client.loop_start()
    assert connected.wait(10)
    sent = [client.publish(name, b"old", 1) for name in names]
    for one in sent:
        one.wait_for_publish(10)
    client.disconnect()
    client.loop_stop()
    return sum(one.is_published() for one in sent)


async def test_casino_broker_killed_keeps_what_it_retains(
    casino: Casino, topics: Any, tmp_path: Path, program: Callable[[str], str], mosquitto_of: Make
) -> None:
    mirror = await casino.station("mirror").connected()
    await mirror.bus.publish(Message(topics.ack, b"size 4711", retain=True))
    store = tmp_path / "mosquitto.db"
    async with asyncio.timeout(10):
        while not holds(store, b"size 4711"):
            await mirror.bus.publish(Message(topics.replay, b"{}"))  # the broker saves after changes, once a second
    await mirror.stop()
    text = (tmp_path / "mosquitto.conf").read_text()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    again = tmp_path / "again.conf"
    again.write_text(text.replace(f"listener {casino.port}", f"listener {port}"))
    second = await mosquitto_of(program("mosquitto"), again).start()
    try:
        table = await Casino(port, casino.certificates, casino._station).station("t07", (topics.ack,)).connected()
        await table.ear.until(lambda: bool(table.ear.messages))
        assert table.ear.payloads == [b"size 4711"]
    finally:
        await second.kill()


def holds(store: Path, text: bytes) -> bool:
    return store.exists() and text in store.read_bytes()


# ── The files themselves ──────────────────────────────────────────────────────────────────────────────────────────────


def test_mosquitto_conf_has_one_listener_on_one_address_and_no_websocket(folder: Path) -> None:
    lines = [line.split() for line in (folder / "mosquitto.conf").read_text().splitlines()]
    options = [line for line in lines if line and not line[0].startswith("#")]
    assert [line for line in options if line[0] == "listener"] == [["listener", "8883", "192.0.2.10"]]
    assert [line[1:] for line in options if line[0] == "protocol"] == [["mqtt"]]
    for wanted in (
        ["tls_version", "tlsv1.3"],
        ["require_certificate", "true"],
        ["use_identity_as_username", "true"],
        ["allow_anonymous", "false"],
        ["persistence", "true"],
        ["autosave_on_changes", "true"],
        ["autosave_interval", "1"],
    ):
        assert wanted in options


def test_acl_in_the_folder_is_what_its_script_writes(folder: Path) -> None:
    acl = (folder / "acl").read_text()
    arguments = re.match(r"# Written by make-acl\.sh (.*)\n", acl)
    assert arguments is not None
    made = subprocess.run([folder / "make-acl.sh", *arguments[1].split()], check=True, capture_output=True, text=True)
    assert made.stdout == acl
    assert not re.search(r"^\s*pattern", acl, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["casino.example"],
        ["a/b", "t07:8"],
        ["a+", "t07:8"],
        ["casino.example", "t07"],
        ["casino.example", "t07:0"],
        ["casino.example", "t07:1000"],
        ["casino.example", "t#:8"],
        ["casino.example", "t 7:8"],
        ["casino.example", "mirror:8"],
        ["casino.example", "desk:8"],
        ["casino.example", "t07:8", "t07:3"],
        ["casino.example", "t07-p03:8"],
    ],
)
def test_make_acl_with_a_wrong_argument_writes_nothing_and_says_why(folder: Path, arguments: list[str]) -> None:
    made = subprocess.run([folder / "make-acl.sh", *arguments], capture_output=True, text=True)
    assert (made.returncode, made.stdout) == (2, "")
    assert "usage: make-acl.sh" in made.stderr


def test_make_certificates_keeps_what_is_there_and_adds_what_is_new(
    certificates: Path, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(certificates, tmp_path / "copy")
    before = {path.name: path.read_bytes() for path in (tmp_path / "copy").glob("*.crt")}
    subprocess.run([folder / "make-certificates.sh", tmp_path / "copy", "127.0.0.1", "t07", "t09"], check=True)
    after = {path.name: path.read_bytes() for path in (tmp_path / "copy").glob("*.crt")}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"t09.crt"}


def test_make_certificates_keys_are_readable_by_their_owner_only(certificates: Path) -> None:
    keys = list(certificates.glob("*.key"))
    assert len(keys) == len(NAMES) + 2
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


@pytest.mark.parametrize("name", ["ca", "broker", "a/b", "", "-x", "é"])
def test_make_certificates_for_a_name_that_cannot_be_an_identity_makes_nothing(
    folder: Path, tmp_path: Path, name: str
) -> None:
    made = subprocess.run([folder / "make-certificates.sh", tmp_path / "new", "127.0.0.1", name], capture_output=True)
    assert made.returncode == 2
    assert not (tmp_path / "new").exists()
