"""A stranger at a real table: nothing but docs/examples and the published protocol, over each broker that we start.

    post.py, order.py, post.sh ──MQTT 5──► broker ◄──► tabled (a process) ◄──pseudo-terminal──► wheel (a process)

The demonstration is played as ``make run`` plays it: it leaves its last post free, and its cashier loads whoever sits
down.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from controller import codec
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier, open_note
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.delivery.orders import order_text
from controller.delivery.posts import DEAF_US, MESSAGES_AT_ONCE, MESSAGES_PER_S, REFUSALS_PER_ROUND
from controller.delivery.topics import Topics
from controller.delivery.wire import WireError, decode_post_message
from controller.published import json_schemas
from controller.rehearsal.demo import Stage, play, prepare
from controller.rehearsal.staff import CREDIT_CENTS
from controller.schemas import Challenge
from games.roulette.game import Roulette
from tests.controller.rehearsal.audit import audited

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "post-protocol.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs" / "examples"

PATIENCE_S = 60.0
"""After which a table, or a stranger, will never be done."""

SPEED = 20
COUPS = 2
DESK_CENTS = 1_234
"""What order.py loads: no twin loads as much."""

BROKERS = ("mosquitto", "iotcore")


# ── An evening with strangers ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Told:
    """What the programs of docs/examples said at one table, and what is in its journal."""

    stage: Stage
    post: list[dict[str, Any]] = field(default_factory=list)
    desk: dict[str, Any] = field(default_factory=dict)
    by_hand: dict[str, Any] = field(default_factory=dict)
    leaves: list[bytes] = field(default_factory=list)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The journal's entries, by index."""
        return [json.loads(leaf) for leaf in self.leaves]

    def heard(self, kind: str) -> list[dict[str, Any]]:
        """What the stranger's post heard of this kind of fact."""
        return [told for told in self.post if told.get("kind") == f"fr.table.{kind}.v1"]


class Host:
    """Lets the demonstration play, and the strangers in."""

    def __init__(self, stage: Stage) -> None:
        self.told = Told(stage)
        self._stage = stage
        self._credits = 0
        self._stirred = asyncio.Event()

    async def evening(self) -> Told:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            table = tasks.create_task(play(self._stage, coups=0, on_event=self._hear))
            await self._until_the_staff_rests()
            self.told.desk = json.loads((await self._order())[-1])
            async with asyncio.TaskGroup() as visits:
                visit = visits.create_task(self._run(sys.executable, EXAMPLES / "post.py", *self._table(6), COUPS))
                by_hand = visits.create_task(self._by_hand())
            self.told.post = [json.loads(line[6:]) for line in visit.result() if line.startswith("post  ")]
            self.told.by_hand = by_hand.result()
            signal.raise_signal(signal.SIGTERM)  # as Ctrl-C: the daemon stops in good order
            await table
        with closing(Reader(self._stage.config.journal.file)) as reader:
            self.told.leaves = list(reader.leaves(0, reader.size))
        return self.told

    def _hear(self, event: Any) -> None:
        self._credits += event["type"] == "fr.table.credit.added.v1"
        self._stirred.set()

    async def _until_the_staff_rests(self) -> None:
        """Every twin is loaded: until somebody else sits down, the demonstration's staff orders nothing more."""
        while self._credits < self._stage.free_post - 1:
            self._stirred.clear()
            await self._stirred.wait()

    def _table(self, *more: object) -> tuple[object, ...]:
        config = self._stage.config
        return (config.mqtt.host, config.mqtt.port, Topics(config.site, config.table.name).root, *more)

    async def _order(self) -> list[str]:
        key = self._stage.folder / "cashier.key"
        key.write_text(f"{self._stage.staff['cashier'].skey}\n", encoding="ascii")
        arguments = json.dumps({"post": 1, "cents": DESK_CENTS})
        return await self._run(sys.executable, EXAMPLES / "order.py", *self._table(key, "post.credit", arguments))

    async def _by_hand(self) -> dict[str, Any]:
        """post.sh at a twin's post, which only asks where it stands. The retained board shows that it listens."""
        process = await self._start("sh", EXAMPLES / "post.sh", *self._table(1), stdin=asyncio.subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        try:
            while not (await self._line(process.stdout))[0].endswith("/up/display"):
                continue
            process.stdin.write(b'{"id":"by-hand","do":"hello"}\n')
            while (heard := await self._line(process.stdout))[1].get("id") != "by-hand":
                continue
        finally:
            await _end(process)
        return heard[1]

    async def _line(self, stdout: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
        topic, _, payload = (await stdout.readline()).decode().partition(" ")
        return topic, json.loads(payload)

    async def _run(self, *words: object) -> list[str]:
        """The lines that a program said. It must end well."""
        process = await self._start(*words)
        try:
            said, _ = await process.communicate()
        finally:
            await _end(process)
        assert process.returncode == 0, said.decode()
        return said.decode().splitlines()

    async def _start(self, *words: object, stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        """Away from our own modules: an example imports nothing of this project."""
        return await asyncio.create_subprocess_exec(
            *map(str, words),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            cwd=self._stage.folder,
            start_new_session=True,
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    """The program and what it started, whether or not it ended by itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    await process.wait()


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], str]) -> Callable[[str], Told]:
    """``evening(broker)``: one evening for each broker, whatever the order of the tests."""

    @cache
    def spend(broker: str) -> Told:
        if broker == "iotcore":
            pytest.importorskip("iotcore")
        program("mosquitto_pub")
        folder = tmp_path_factory.mktemp(broker)
        table = folder / "table.toml"
        example = (ROOT / "config" / "roulette-launcher.toml").read_text(encoding="utf-8")
        named = program("mosquitto") if broker == "mosquitto" else broker
        table.write_text(f'{example}\n[rehearsal]\nbroker = "{named}"\n', encoding="utf-8")
        stage = prepare(table, folder / "demo", speed=SPEED, seed=7, faults="")
        return asyncio.run(Host(stage).evening())

    return spend


@pytest.mark.parametrize("broker", BROKERS)
def test_stranger_with_plain_mqtt_sits_is_credited_stakes_is_paid_and_leaves(
    evening: Callable[[str], Told], broker: str
) -> None:
    told = evening(broker)
    kinds = [one["kind"].removeprefix("fr.table.").removesuffix(".v1") for one in told.post if "kind" in one]
    assert kinds[:3] == ["player.sat", "credit.added", "stakes.placed"]
    assert kinds[-1] == "player.paid_out"
    (credited,), (left,) = told.heard("credit.added"), told.heard("player.paid_out")
    assert "id" not in credited and credited["data"]["cents"] == CREDIT_CENTS
    placed, settled = told.heard("stakes.placed"), told.heard("post.settled")
    assert len(placed) == len(settled) >= COUPS
    staked = sum(one["data"]["cents"] for one in placed)
    returned = sum(one["data"]["returned"] + one["data"]["won"] for one in settled)
    assert staked == 2 * told.stage.config.roulette.minimum_cents * len(placed)
    assert left["data"]["cents"] == CREDIT_CENTS - staked + returned


@pytest.mark.law("67-15")
@pytest.mark.parametrize("broker", BROKERS)
def test_stranger_who_stakes_after_no_more_bets_is_refused_and_the_journal_has_it_in_that_order(
    evening: Callable[[str], Told], broker: str
) -> None:
    told = evening(broker)
    late = [one for one in told.post if one.get("code") == "E-STAKE-LATE"]
    assert len(late) >= COUPS
    for refused in late:
        before = [entry["type"] for entry in told.entries[: refused["index"]]]
        called = len(before) - 1 - before[::-1].index("fr.roulette.no_more_bets.called.v1")
        opened = len(before) - 1 - before[::-1].index("fr.roulette.betting.opened.v1")
        assert opened < called
        assert "fr.table.post.settled.v1" not in before[called:]


@pytest.mark.parametrize("broker", BROKERS)
def test_stranger_hears_only_what_the_journal_certifies_and_the_journal_verifies_and_replays(
    evening: Callable[[str], Told], broker: str
) -> None:
    told = evening(broker)
    certified = [one for one in told.post if "index" in one]
    assert len(certified) > 3 * COUPS
    for one in certified:
        entry = told.entries[one["index"]]
        assert (entry["id"], entry["type"]) == (str(one["index"]), one["kind"])
        assert one["data"] == {name: entry["data"][name] for name in one["data"]}
        assert entry["data"]["post"] == told.stage.free_post
        assert one.get("id", "") == entry["data"].get("request", "")
    keys = LogKeys.parse(told.stage.vkey_file.read_text(encoding="ascii"))
    verdict = verify(told.stage.config.journal.file, keys, processes=1)
    assert (verdict.ok, verdict.size) == (True, len(told.entries))
    _, counts = audited(Roulette(told.stage.config.rules), told.leaves)
    assert counts["table.player.paid_out"] == 1


@pytest.mark.parametrize("broker", BROKERS)
def test_stranger_at_the_desk_gives_a_signed_order_that_anybody_can_check_later(
    evening: Callable[[str], Told], broker: str
) -> None:
    told = evening(broker)
    assert told.desk["ok"] and told.desk["kind"] == "fr.table.credit.added.v1"
    data = told.entries[told.desk["index"]]["data"]
    assert (data["post"], data["cents"], data["by"]["badge"]) == (1, DESK_CENTS, "cashier")
    signed = open_note(data["input"]["evidence"], [told.stage.staff["cashier"].verifier])
    assert f'\ndo post.credit\nargs {{"cents":{DESK_CENTS},"post":1}}\n' in signed.text


@pytest.mark.parametrize("broker", BROKERS)
def test_stranger_by_hand_with_two_commands_of_mosquitto_hears_where_the_post_stands(
    evening: Callable[[str], Told], broker: str
) -> None:
    answer = evening(broker).by_hand
    assert answer["ok"] and answer["data"]["seated"]
    Draft202012Validator(json_schemas()["post-reply"]).validate(answer)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_knows_nothing_of_this_project(example: Path) -> None:
    imported = set(re.findall(r"^(?:from|import) ([a-z_]+)", example.read_text(encoding="utf-8"), re.MULTILINE))
    assert "paho" in imported
    assert not imported & {"controller", "drivers", "games", "tests"}


# ── What the page shows is what the published schemas promise ─────────────────────────────────────────────────────────


def exchanges() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer of the page with the request that it answers; news have none."""
    request = ""
    for arrow, message in re.findall(r"^([→←]) (.+)$", PAGE, re.MULTILINE):
        if arrow == "→":
            request = message
        else:
            yield request, json.loads(message)


def documents() -> list[dict[str, Any]]:
    """The JSON documents of the page that stand alone."""
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]


def test_page_requests_are_read_as_the_page_says_and_refused_ones_with_the_code_that_it_says() -> None:
    read: set[str] = set()
    for request, answer in exchanges():
        if answer["ok"] or "index" in answer:
            read.add(decode_post_message(request.encode()).do)
            continue
        with pytest.raises(WireError) as refused:
            decode_post_message(request.encode())
        assert refused.value.code == answer["code"]
    assert len(read) == 10


def test_page_requests_to_be_typed_by_hand_are_read() -> None:
    typed = re.findall(r"""^(?:.*-m ')?(\{"id":"\d+".*?\})'?$""", PAGE.split("\n## Try it\n")[1], re.MULTILINE)
    assert [decode_post_message(request.encode()).do for request in typed] == ["sit", "hello", "stake", "payout"]


def test_page_answers_are_those_of_the_published_schema_and_news_are_facts_without_a_request() -> None:
    reply, news = Draft202012Validator(json_schemas()["post-reply"]), 0
    for _, answer in exchanges():
        if "id" in answer or not answer["ok"]:
            reply.validate(answer)
            continue
        news += 1
        assert set(answer) == {"ok", "index", "kind", "data"}
        assert not getattr(codec.decode_fact(answer["kind"], answer["data"]), "request", "")
    assert news >= 3


def test_page_orders_are_those_of_the_published_schemas_and_the_signature_is_good() -> None:
    schemas = {name: Draft202012Validator(schema) for name, schema in json_schemas().items()}
    asked, challenge, answer, refused, replay = documents()
    schemas["order-challenge-request"].validate(asked)
    for told in (challenge, answer, refused):
        schemas["order-reply"].validate(told)
    schemas["replay"].validate(replay)
    given = Challenge.model_validate(challenge)
    (text,) = re.findall(r"^```text\n(table-controller/order/v1\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(r"^— \S+ \S+$", PAGE, re.MULTILINE)
    (vkey,) = re.findall(r"is `(\S+/personne/cashier\+\S+)`", PAGE)
    assert text == order_text(given, "post.credit", {"post": 1, "cents": 5_000})
    assert open_note(f"{text}\n{line}\n", [Verifier.parse(vkey)]).text == text


def test_page_gives_the_pace_of_the_program() -> None:
    assert f"{MESSAGES_PER_S} messages a second" in PAGE
    assert f"{MESSAGES_AT_ONCE} at once" in PAGE
    assert f"{REFUSALS_PER_ROUND} refusals in one round" in PAGE
    assert DEAF_US == 1_000_000 and "nothing is heard for one second" in PAGE
