"""``tabled`` is killed at any instant while stakes flow: what was answered is in the journal, once, and replays."""

import asyncio
import random
import resource
import signal
from collections import Counter

import pytest

from games.roulette.game import Roulette
from tests.controller.rehearsal.audit import audited
from tests.system.gambler import Gambler
from tests.system.rig import Rig, Tabled

CREDIT = 1_000_000
KILLS = 3


async def test_tabled_killed_while_stakes_flow_keeps_every_answered_stake_and_no_stake_twice(rig: Rig) -> None:
    luck = random.Random(7)
    tabled = await rig.start()
    await rig.open()
    gamblers = [Gambler(rig, await rig.seat(number, CREDIT)) for number in (1, 2)]
    playing = [asyncio.create_task(gambler.plays()) for gambler in gamblers]
    for kill in range(KILLS):
        answers = sum(len(gambler.answered) for gambler in gamblers) + luck.randint(5, 60)
        await rig.until(lambda answers=answers: sum(len(one.answered) for one in gamblers) >= answers)
        tabled.send(signal.SIGKILL)
        assert await tabled.ends() == -signal.SIGKILL
        assert rig.verified().ok
        tabled = await rig.start()
        await resolved(rig, kill + 1)
    for task in playing:
        task.cancel()
    await asyncio.wait(playing)
    await stopped(tabled)
    leaves = rig.leaves
    state, kinds = audited(Roulette(rig.stage.config.rules), leaves)
    assert (kinds["table.started"], kinds["table.stopped"]) == (KILLS + 1, 1)
    assert rig.verified().ok
    decided = [data for _, data in rig.facts if data.get("request", "").count("-stake-")]
    times = Counter((fact["post"], fact["request"]) for fact in decided)
    assert set(times.values()) == {1}, "no request was decided twice"
    by_request = {fact["request"]: fact for fact in decided}
    for gambler in gamblers:
        assert len(gambler.answered) > 20
        for request, answer in gambler.answered.items():
            assert answer["data"] == by_request[request], "what was answered is what is certified"
            assert {told["index"] for told in gambler.post.answers(request)} == {answer["index"]}
        assert set(by_request) - {name for one in gamblers for name in one.asked} == set()
    total = state.posts.total()
    kept = total.staked - total.returned - total.won
    assert total.credited == kept + sum(player.credit + player.staked for _, player in state.posts.players())


async def resolved(rig: Rig, starts: int) -> None:
    """The round that the crash interrupted is settled by persons or was by rule, and play goes on."""
    await rig.until_fact("table.started", starts)
    status = await rig.status()
    while status["table"]["board"]["phase"] in ("manual", "halted"):
        incident = status["table"]["incident"]
        if status["table"]["board"]["phase"] == "halted":
            await rig.office.order("director", "game.restart")
        elif incident["number_allowed"] and incident.get("hint"):
            await rig.office.order("director", "number.enter", pocket=incident["hint"])
        else:
            await rig.office.order("director", "round.void", reason="essai")
        status = await rig.status()


async def stopped(tabled: Tabled) -> None:
    tabled.send(signal.SIGTERM)
    assert await tabled.ends() == 0


async def test_tabled_whose_disk_is_full_ends_with_its_code_and_goes_on_when_there_is_room(rig: Rig) -> None:
    tabled = await rig.start()
    await rig.open()
    gambler = Gambler(rig, await rig.seat(1, CREDIT))
    playing = asyncio.create_task(gambler.plays())
    await rig.until(lambda: len(gambler.answered) >= 10)
    assert tabled.process is not None
    written = rig.journal.with_name(f"{rig.journal.name}-wal").stat().st_size
    resource.prlimit(tabled.process.pid, resource.RLIMIT_FSIZE, (written, written))  # no file may grow any more
    assert await tabled.ends() == 1
    assert "E-JOURNAL-WRITE" in tabled.codes
    playing.cancel()
    await asyncio.wait({playing})
    again = await rig.start()
    await stopped(again)
    assert rig.verified().ok
    state, _ = audited(Roulette(rig.stage.config.rules), rig.leaves)
    certified = {data["request"] for kind, data in rig.facts if kind == "table.stakes.placed"}
    assert {request for request, answer in gambler.answered.items() if answer["ok"]} <= certified
    assert state.posts.seated(1).staked == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_tabled_asked_to_stop_stops_in_order_and_leaves_the_truth_behind(
    rig: Rig, number: signal.Signals
) -> None:
    tabled = await rig.start()
    await rig.open()
    await rig.seat(1, CREDIT)
    await rig.bets_open()
    boot = (await rig.status())["boot"]
    tabled.send(number)
    assert await tabled.ends() == 0
    await tabled.hears("STOPPING=1")
    assert rig.facts[-1] == ("table.stopped", {"boot": boot})
    await rig.until_fact("table.stopped")
    assert (rig.states[-1]["state"], rig.states[-1]["boot"]) == ("lost", boot)
    checkpoints = [message for message in rig.office.ear.heard if message.topic == rig.topics.checkpoint]
    assert checkpoints[-1].payload.decode().splitlines()[1] == str(len(rig.leaves))
    assert not (rig.stage.folder / "status.sock").exists()


async def test_tabled_under_a_watchdog_shows_signs_of_life(rig: Rig) -> None:
    tabled = rig.tabled()
    await tabled.run(watchdog_us=300_000)
    await tabled.hears("READY=1")
    assert any("STATUS=" in told for told in tabled.told)
    await tabled.hears("WATCHDOG=1")
    await stopped(tabled)
