"""A stranger's post at a table of real processes: the examples of docs/post-protocol.md, run as they are printed."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.controller.rehearsal.house import ROOT
from tests.system.rig import PATIENCE_S, Rig

EXAMPLES = ROOT / "docs" / "examples"
CREDIT = 10_000


def where(rig: Rig, post: int) -> tuple[str, ...]:
    """The words with which both examples are told which post they are."""
    return "127.0.0.1", str(rig.stage.config.mqtt.port), rig.topics.root, str(post)


async def credited_when_seated(rig: Rig) -> None:
    """The cashier loads whoever sits down."""
    await rig.until_fact("table.player.sat")
    post = rig.every("table.player.sat")[-1]["post"]
    assert (await rig.office.order("cashier", "post.credit", post=post, cents=CREDIT))["ok"]


async def test_strangers_post_in_plain_paho_sits_stakes_is_refused_late_is_paid_and_leaves(rig_on_both: Rig) -> None:
    rig = rig_on_both
    await rig.start()
    await rig.open()
    stranger = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLES / "post.py"), *where(rig, 6), "2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        await credited_when_seated(rig)
        printed, complained = await stranger.communicate()
    assert (stranger.returncode, complained.decode()) == (0, "")
    told = [json.loads(line.removeprefix(b"post ")) for line in printed.splitlines() if line.startswith(b"post ")]
    kinds = [one["kind"].removeprefix("fr.table.").removesuffix(".v1") for one in told if "kind" in one]
    assert kinds[:2] == ["player.sat", "credit.added"]
    assert kinds.count("stakes.placed") == 2
    assert [one["code"] for one in told if not one["ok"]] == ["E-STAKE-LATE"] * 2
    assert kinds[-1] == "player.paid_out"
    placed, settled = rig.every("table.stakes.placed"), rig.every("table.post.settled")
    assert [fact["post"] for fact in (*placed, *settled)] == [6] * 4
    moved = sum(fact["returned"] + fact["won"] - fact["staked"] for fact in settled)
    assert rig.every("table.player.paid_out")[-1]["cents"] == CREDIT + moved


async def test_strangers_post_by_hand_with_mosquittos_clients_is_a_post_like_any_other(
    rig_on_both: Rig, program: Callable[[str], str]
) -> None:
    rig = rig_on_both
    program("mosquitto_pub")
    program("mosquitto_sub")
    await rig.start()
    await rig.open()
    hand = await asyncio.create_subprocess_exec(
        *("/bin/sh", str(EXAMPLES / "post.sh"), *where(rig, 2)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert hand.stdin is not None
    assert hand.stdout is not None
    lines = hand.stdout

    async def shown(wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that is wanted."""
        async with asyncio.timeout(PATIENCE_S):
            while line := await lines.readline():
                topic, _, payload = line.decode().partition(" ")
                told = {"topic": topic, **json.loads(payload)}
                if wanted(told):
                    return told
        raise AssertionError("the listener ended")

    def answers(request: str) -> Callable[[dict[str, Any]], bool]:
        return lambda told: told.get("id") == request

    def types(**fields: Any) -> None:
        assert hand.stdin is not None
        hand.stdin.write(json.dumps(fields).encode() + b"\n")

    await shown(lambda told: "phase" in told)  # the retained board: the listener listens
    types(id="1", do="sit", player="card-1")
    assert (await shown(answers("1")))["ok"]
    await credited_when_seated(rig)
    board = await shown(lambda told: told.get("phase") == "betting")
    types(id="2", do="stake", round=board["round"], stakes=[{"bet": "rouge", "cents": 200}])
    assert (await shown(answers("2")))["data"]["credit"] == CREDIT - 200
    await shown(lambda told: told.get("phase") == "no_more_bets")
    types(id="3", do="stake", round=board["round"], stakes=[{"bet": "rouge", "cents": 200}])
    assert (await shown(answers("3")))["code"] == "E-STAKE-LATE"
    settled = await shown(lambda told: told.get("kind") == "fr.table.post.settled.v1")
    types(id="4", do="payout")
    paid = await shown(answers("4"))
    assert paid["data"]["cents"] == settled["data"]["credit"]
    hand.stdin.close()
    async with asyncio.timeout(PATIENCE_S):
        assert await hand.wait() == 0
