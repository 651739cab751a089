"""The client of a real broker, on mosquitto and on iotcore: what is acknowledged, lost, found again."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.delivery import broker as broker_module
from controller.delivery import link as link_module
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import Disconnected, Message

Make = Callable[..., Any]


async def test_broker_message_arrives_with_its_properties(broker: Any, station: Make) -> None:
    centre = await station(broker.port, "centre", ["t/+/up"]).connected()
    table = await station(broker.port).connected()
    sent = Message("t/7/up", b"\x00\xffpayload", False, 60, b"corr", "t/7/down", "application/json")
    await table.bus.publish(sent)
    await centre.ear.until(lambda: bool(centre.ear.messages))
    heard = centre.ear.messages[0]
    assert (heard.topic, heard.payload, heard.retain) == ("t/7/up", b"\x00\xffpayload", False)
    assert (heard.correlation, heard.response_topic) == (b"corr", "t/7/down")
    assert heard.content_type == "application/json"


async def test_broker_messages_of_one_sender_arrive_in_order_however_many(broker: Any, station: Make) -> None:
    centre = await station(broker.port, "centre", ["t"]).connected()
    table = await station(broker.port).connected()
    count = 3 * table.bus.window
    futures = [table.bus.publish(Message("t", b"%d" % number)) for number in range(count)]
    status = table.bus.status()
    assert 0 < status.in_flight <= table.bus.window
    assert status.queued == count - status.in_flight
    await asyncio.wait_for(asyncio.gather(*futures), 10)
    await centre.ear.until(lambda: len(centre.ear.messages) == count)
    assert centre.ear.payloads == [b"%d" % number for number in range(count)]
    assert (table.bus.status().in_flight, table.bus.status().queued) == (0, 0)


async def test_broker_retained_message_meets_who_comes_later(broker: Any, station: Make) -> None:
    table = await station(broker.port).connected()
    await table.bus.publish(Message("s", b"old", retain=True))
    await table.bus.publish(Message("s", b"new", retain=True))
    late = await station(broker.port, "late", ["s"]).connected()
    await late.ear.until(lambda: bool(late.ear.messages))
    assert (late.ear.messages[0].payload, late.ear.messages[0].retain) == (b"new", True)


async def test_broker_killed_connection_fails_what_is_in_flight_and_comes_back(broker: Any, station: Make) -> None:
    table = await station(broker.port, filters=["t"]).connected()
    assert table.bus.session == 1
    broker.freeze()
    flying = [table.bus.publish(Message("t", b"x")) for _ in range(table.bus.window + 5)]
    await broker.kill()
    await table.ear.until(lambda: table.ear.losses == 1)
    assert all(isinstance(future.exception(), Disconnected) for future in flying)
    assert not table.bus.connected
    refused = table.bus.publish(Message("t", b"y"))
    assert isinstance(refused.exception(), Disconnected)
    assert "E-MQTT-LOST" in table.ear.codes
    await broker.start()
    await table.ear.until(lambda: table.ear.connections == 2)
    assert table.ear.attempts >= 2
    await table.bus.publish(Message("t", b"z"))
    await table.ear.until(lambda: b"z" in table.ear.payloads)
    assert table.ear.payloads == [b"z"]  # nothing that was given up comes later by itself
    assert table.bus.status().fault is None


async def test_broker_that_is_away_is_told_once_and_found_when_it_comes(broker: Any, station: Make) -> None:
    await broker.kill()
    table = station(broker.port)
    await table.ear.until(lambda: table.ear.attempts >= 4)
    assert table.ear.codes == ["E-MQTT-UNREACHABLE"]
    assert str(broker.port) in table.ear.faults[0].detail
    await broker.start()
    await table.connected()


async def test_broker_that_hangs_is_given_up_after_the_keepalive_and_found_again(broker: Any, station: Make) -> None:
    table = await station(broker.port, keepalive_s=1).connected()
    broker.freeze()
    flying = table.bus.publish(Message("t", b"x"))
    await table.ear.until(lambda: table.ear.losses == 1)
    assert isinstance(flying.exception(), Disconnected)
    broker.thaw()
    await table.ear.until(lambda: table.ear.connections == 2)
    await table.bus.publish(Message("t", b"y"))


async def test_broker_that_hangs_for_a_moment_loses_nothing(broker: Any, station: Make) -> None:
    centre = await station(broker.port, "centre", ["t"]).connected()
    table = await station(broker.port).connected()
    broker.freeze()
    futures = [table.bus.publish(Message("t", b"%d" % number)) for number in range(1_000)]
    done, _ = await asyncio.wait(futures, timeout=0.05)
    assert not done
    broker.thaw()
    await asyncio.wait_for(asyncio.gather(*futures), 10)
    await centre.ear.until(lambda: len(centre.ear.messages) == 1_000)
    assert table.ear.losses == 0


async def test_broker_publishes_the_will_of_a_lost_connection_with_its_session_number(
    broker: Any, station: Make, topics: Any
) -> None:
    centre = await station(broker.port, "centre", [topics.state]).connected()
    table = await station(broker.port).connected()
    table.bus._link._paho.socket().shutdown(socket.SHUT_RDWR)  # no goodbye
    await centre.ear.until(lambda: bool(centre.ear.messages))
    assert centre.ear.payloads == [b"lost 1"]
    await table.ear.until(lambda: table.ear.connections == 2)


async def test_broker_goodbye_leaves_no_will(broker: Any, station: Make, topics: Any) -> None:
    centre = await station(broker.port, "centre", [topics.state]).connected()
    table = await station(broker.port).connected()
    await table.bus.publish(Message(topics.state, b"closed", retain=True))
    await table.stop()
    assert table.ear.losses == 1
    await station(broker.port, "other").connected()  # the broker has worked since
    await centre.ear.until(lambda: bool(centre.ear.messages))
    assert centre.ear.payloads == [b"closed"]


async def test_broker_too_large_message_is_dropped_counted_and_told(broker: Any, station: Make) -> None:
    table = await station(broker.port, filters=["in"]).connected()
    limit = link_module.PAYLOAD_BOUND
    for size in (limit, limit + 1, limit + 2, 1):
        await table.bus.publish(Message("in", b"x" * size))
    await table.ear.until(lambda: b"x" in table.ear.payloads)
    assert [len(payload) for payload in table.ear.payloads] == [limit, 1]
    assert table.bus.status().oversize == 2
    assert table.ear.codes == ["E-MQTT-OVERSIZE"]


@pytest.mark.parametrize("topic", ["", "a/+/b", "a/#", "a\0b", "x" * 1_025])
async def test_broker_topic_that_cannot_be_published_to_is_refused_here(broker: Any, station: Make, topic: str) -> None:
    table = await station(broker.port).connected()
    future = table.bus.publish(Message(topic, b""))
    assert "not a topic" in str(future.exception())
    await table.bus.publish(Message("t", b""))
    assert table.bus.status().refused == 1


async def test_broker_name_used_by_two_clients_is_told_as_stolen(broker: Any, station: Make) -> None:
    first = await station(broker.port).connected()
    other = station(broker.port)
    other.ear.on_fault = first.ear.on_fault  # whichever of the two is thrown out for the fifth time
    other.bus._on_fault = first.ear.on_fault
    await first.ear.until(lambda: "E-MQTT-ID-STOLEN" in first.ear.codes)
    stolen = next(fault for fault in first.ear.faults if fault.code == "E-MQTT-ID-STOLEN")
    assert "'t07' was thrown out 5 times" in stolen.detail


async def test_broker_that_restarts_again_and_again_is_no_theft(broker: Any, station: Make) -> None:
    table = await station(broker.port).connected()
    for turn in range(2, broker_module.STOLEN_AFTER + 2):
        attempts = table.ear.attempts
        await broker.kill()
        await table.ear.until(lambda seen=attempts: table.ear.attempts > seen + 1)  # one attempt at least is refused
        await broker.start()
        await table.ear.until(lambda wanted=turn: table.ear.connections == wanted)
    assert "E-MQTT-ID-STOLEN" not in table.ear.codes
    assert table.ear.codes.count("E-MQTT-LOST") == broker_module.STOLEN_AFTER  # each time, since it had come back


async def test_broker_listener_that_fails_ends_run_with_its_exception(broker: Any, station: Make) -> None:
    class Faulty:
        def on_message(self, message: Message) -> None:
            raise ZeroDivisionError("a bug")

        def on_connected(self) -> None:
            pass

        def on_disconnected(self) -> None:
            pass

    table = station(broker.port, filters=["other"])
    table.bus.attach(Faulty(), ["in"])
    await table.connected()
    table.bus.publish(Message("in", b""))
    await asyncio.wait({table.task}, timeout=10)
    assert isinstance(table.task.exception(), ZeroDivisionError)
    assert table.ear.losses == 1


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 20, 50])
async def test_broker_run_cancelled_at_any_moment_leaves_nothing_running(
    broker: Any, station: Make, turns: int
) -> None:
    before = asyncio.all_tasks()
    table = station(broker.port, filters=["t"])
    for _ in range(turns):
        await asyncio.sleep(0)
    await table.stop()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert table.ear.losses == table.ear.connections


async def test_broker_wait_between_attempts_grows_to_its_bound_and_is_spread(
    station: Make, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(broker_module.asyncio, "sleep", noted)
    table = station(free_port, retry_first_s=1.0, retry_last_s=10.0)
    await table.ear.until(lambda: bool(table.ear.faults))
    async with asyncio.timeout(10):
        while len(waits) < 7:
            await sleep(0)
    await table.stop()
    assert waits[:7] == [0.75, 1.5, 3.0, 6.0, 7.5, 7.5, 7.5]  # three quarters: the test's random number is one half


# ── Settings and files ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"host": ""}, "host"),
        ({"client_id": ""}, "client_id"),
        ({"client_id": "té"}, "client_id"),
        ({"client_id": "x" * 65}, "client_id"),
        ({"port": 0}, "port"),
        ({"port": 65_536}, "port"),
        ({"keepalive_s": 0}, "keepalive_s"),
        ({"ca_path": Path("ca")}, "ca_path, certificate_path, key_path"),
        ({"password_path": Path("p")}, "password_path"),
        ({"retry_first_s": 0.0}, "retry_first_s"),
        ({"retry_first_s": 20.0}, "retry_first_s"),
    ],
)
def test_broker_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"E-MQTT-SETTINGS.*{named}"):
        BrokerSettings(**{"host": "h", "client_id": "t07", **wrong})


def test_broker_settings_with_several_mistakes_name_all_of_them() -> None:
    with pytest.raises(ValueError, match=r"host.*client_id.*port"):
        BrokerSettings(host="", client_id="", port=0)


async def test_broker_missing_certificate_is_told_and_waited_for(station: Make, free_port: int, tmp_path: Path) -> None:
    files = {"ca_path": tmp_path / "ca", "certificate_path": tmp_path / "c", "key_path": tmp_path / "k"}
    table = station(free_port, **files)
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-CREDENTIALS"]
    assert str(tmp_path) in table.ear.faults[0].detail


async def test_broker_missing_password_is_told(station: Make, free_port: int, tmp_path: Path) -> None:
    table = station(free_port, username="t07", password_path=tmp_path / "absent")
    await table.ear.until(lambda: bool(table.ear.faults))
    assert table.ear.codes == ["E-MQTT-CREDENTIALS"]


def test_broker_password_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sésame\nrest\n", encoding="utf-8")
    settings = BrokerSettings(host="h", client_id="c", username="u", password_path=tmp_path / "password")
    assert settings.password() == "sésame"
