"""The daemon whole, in virtual time: nothing is told before it is certified, and nothing that comes in can harm it."""

import json
from typing import Any

import pytest

from controller.certify.faults import JournalFault
from controller.delivery.bus import Message
from controller.delivery.orders import write_order
from controller.delivery.posts import DEAF_US, MESSAGES_AT_ONCE
from controller.inbox import InboxFullError
from controller.schemas import Challenge
from drivers.twin.wheel import BEFORE_GAME
from games.signals import ClockStepped
from tests.controller.rehearsal.house import House, ended, play

BOTH = pytest.mark.parametrize("conduct", ["launcher", "croupier"])


# ── Write, then tell ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_daemon_that_starts_says_nothing_outside_before_its_start_is_certified() -> None:
    async def story(house: House) -> None:
        house.raise_daemon(hold=True)
        await house.let_pass(30)
        assert house.writer.asked, "the start waits for the disk"
        assert not house.daemon.bus.connected
        assert house.centre.heard == []
        assert house.daemon.wheel.health().opened == 0
        house.writer.release()
        await house.until(lambda: bool(house.centre.heard))
        assert house.facts[0][0] == "table.started"
        assert house.centre.documents(house.topics.event)[0]["type"] == "fr.table.started.v1"

    play(story)


def test_daemon_answers_a_stake_when_it_is_certified_and_not_before() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        house.writer.hold()
        request = post.say("stake", round=1, stakes=[{"bet": "rouge", "cents": 200}])
        await house.let_pass(5)
        assert post.answers(request) == []
        assert house.credit(1) == 10_000
        house.writer.release()
        await house.until(lambda: bool(post.answers(request)))
        assert post.answers(request)[0]["data"]["credit"] == 9_800
        assert house.every("table.stakes.placed")[0]["request"] == request

    play(story)


def test_daemon_answers_an_order_when_it_is_certified_and_not_before() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 100)
        challenge = await house.challenge()
        house.writer.hold()
        arguments: dict[str, object] = {"cents": 5_000, "post": 1}
        house.command(write_order(house.staff["cashier"], challenge, "post.credit", arguments).encode())
        await house.let_pass(5)
        replies = house.centre.documents(house.topics.reply)
        assert not [reply for reply in replies if reply.get("nonce") == challenge.nonce and "ok" in reply]
        assert [told["data"]["cents"] for told in post.news] == [100]
        house.writer.release()
        await house.until(lambda: len(post.news) == 2)
        assert post.news[1]["data"]["credit"] == 5_100

    play(story)


def test_daemon_lights_a_lamp_and_changes_the_board_when_certified_and_not_before() -> None:
    async def story(house: House) -> None:
        await house.open()
        assert house.board["text"] == "Patientez"
        house.writer.hold()
        house.inputs.press("faites-vos-jeux")
        await house.let_pass(5)
        assert house.writer.asked[-1].records[0].kind == "fr.roulette.betting.opened.v1"
        assert not house.outputs.lit("faites-vos-jeux")
        assert house.board["text"] == "Patientez"
        house.writer.release()
        await house.until(lambda: house.board["text"] == "Faites vos jeux")
        assert house.outputs.lit("faites-vos-jeux")

    play(story, conduct="croupier")


def test_daemon_launches_the_ball_when_the_launch_is_certified_and_not_before() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 100)
        await house.begin_round()
        house.writer.hold()
        await house.let_pass(house.config.roulette.betting_ms / 1_000 + 5)
        assert house.writer.asked[-1].records[0].kind == "fr.roulette.launch.ordered.v1"
        assert house.twin.state == BEFORE_GAME
        house.writer.release()
        await house.until(lambda: house.state.coup.spin is not None)
        assert house.twin.state != BEFORE_GAME

    play(story)


@BOTH
def test_daemon_publishes_every_entry_as_it_stands_in_the_journal(conduct: str) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 1_000)
        await house.begin_round()
        await house.reach("idle")
        leaves = house.leaves
        await house.until(lambda: len(house.centre.documents(house.topics.event)) >= len(leaves))
        heard = [message.payload for message in house.centre.heard if message.topic == house.topics.event]
        assert heard[: len(leaves)] == leaves

    play(story, conduct=conduct)


# ── A disk that fails ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stored", [False, True], ids=["nothing stored", "stored all the same"])
def test_daemon_whose_disk_fails_ends_untold_and_the_post_that_repeats_has_its_stake_once(stored: bool) -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        size = len(house.leaves)
        house.writer.fail_next(stored=stored)
        request = post.say("stake", round=1, stakes=[{"bet": "rouge", "cents": 200}])
        (error,) = await ended(house.running)
        assert isinstance(error, JournalFault)
        assert error.code == "E-JOURNAL-WRITE"
        assert post.answers(request) == []
        assert len(house.leaves) == size + stored
        await house.restart()
        assert house.credit(1) == 10_000, "the power-cut rule gave the stake back, if it was there"
        again = await post.ask("stake", id=request, round=1, stakes=[{"bet": "rouge", "cents": 200}])
        assert again["ok"] is stored
        assert again.get("code") == (None if stored else "E-STAKE-LATE")
        assert len(house.every("table.stakes.placed")) == stored
        assert len(house.every("table.post.recredited")) == stored

    play(story)


def test_daemon_whose_disk_fails_at_the_start_ends_and_is_seen_by_nobody() -> None:
    async def story(house: House) -> None:
        house.raise_daemon()
        house.writer.fail_next(stored=False)
        (error,) = await ended(house.running)
        assert isinstance(error, JournalFault)
        await house.let_pass(5)
        assert house.centre.heard == []

    play(story)


def test_daemon_whose_disk_fills_begins_no_round_and_goes_on_when_it_was_cleared_while_it_was_off() -> None:
    async def story(house: House) -> None:
        house.free_percent = 50
        await house.open()
        post = await house.seat(1, 1_000)
        await house.begin_round()
        house.free_percent = 4
        await house.reach("idle")
        await house.let_pass(120)
        assert house.state.coup.phase == "idle"
        assert house.state.coup.round == 1
        assert "E-STORAGE-LOW" in house.daemon.status()["table"]["round_refused_for"]
        assert (await post.ask("hello"))["data"]["credit"] == house.credit(1)
        await house.kill()
        house.free_percent = 50
        await house.start()
        await house.until(lambda: house.state.coup.round == 2)
        assert [fact["level"] for fact in house.every("table.storage.ran_low")] == ["close", "ok"]

    play(story)


# ── Start and stop ────────────────────────────────────────────────────────────────────────────────────────────────────


@BOTH
@pytest.mark.parametrize("stage", ["before", "betting", "launched", "no_more_bets"])
def test_daemon_stopped_in_good_order_at_any_stage_certifies_it_last(conduct: str, stage: str) -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 1_000)
        if stage != "before":
            await house.begin_round()
            await house.stake(post, rouge=200)
        if stage in ("launched", "no_more_bets"):
            await house.reach(stage)
        house.daemon.stop()
        late = post.say("stake", round=1, stakes=[{"bet": "noir", "cents": 200}])
        house.inputs.press("incident")
        await house.running
        kinds = [kind for kind, _ in house.facts]
        assert kinds[-1] == "table.stopped"
        assert kinds.count("table.stopped") == 1
        assert post.answers(late) == []
        events = house.centre.documents(house.topics.event)
        assert events[-1]["type"] == "fr.table.stopped.v1", "everything was delivered before the end"
        state = json.loads(house.exchange.retained[house.topics.state].payload)
        assert (state["state"], state["boot"]) == ("lost", house.daemon.around.boot)
        await house.restart()
        assert house.every("table.started")[-1]["unclean"] is False

    play(story, conduct=conduct)


def test_daemon_that_lost_its_power_says_so_at_the_next_start() -> None:
    async def story(house: House) -> None:
        await house.start()
        await house.restart()
        await house.restart()
        await house.stop()
        await house.restart()
        assert [fact["unclean"] for fact in house.every("table.started")] == [False, True, True, False]
        assert len({fact["boot"] for fact in house.every("table.started")}) == 4

    play(story)


def test_daemon_asked_to_stop_before_it_is_ready_certifies_both() -> None:
    async def story(house: House) -> None:
        house.raise_daemon(hold=True)
        await house.let_pass(1)
        house.daemon.stop()
        house.writer.release()
        await house.running
        assert [kind for kind, _ in house.facts] == ["table.started", "table.stopped"]

    play(story)


def test_daemon_stops_although_the_broker_is_away() -> None:
    async def story(house: House) -> None:
        await house.open()
        house.exchange.partition("table")
        await house.stop()
        assert house.facts[-1][0] == "table.stopped"

    play(story)


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), InboxFullError("full")], ids=lambda error: type(error).__name__
)
def test_daemon_with_a_callback_that_failed_ends_with_its_error(error: Exception) -> None:
    async def story(house: House) -> None:
        await house.open()
        house.daemon.fail(error)
        assert await ended(house.running) == [error]
        assert house.facts[-1][0] != "table.stopped", "the next start finds an unclean end"

    play(story)


# ── Whatever comes in ─────────────────────────────────────────────────────────────────────────────────────────────────

STAKE = {"id": "x", "do": "stake", "round": 1, "stakes": [{"bet": "rouge", "cents": 200}]}


def stake(**changed: Any) -> bytes:
    return json.dumps({name: value for name, value in (STAKE | changed).items() if value is not None}).encode()


BAD_REQUESTS: list[tuple[bytes, str]] = [
    (b"", "E-POST-JSON"),
    (b"\xff\xfe\x00", "E-POST-JSON"),
    (b"rouge 200", "E-POST-JSON"),
    (b"[" * 4_000, "E-POST-JSON"),
    (b"{}", "E-POST-REQUEST-UNKNOWN"),
    (stake(do="steal"), "E-POST-REQUEST-UNKNOWN"),
    (stake(post=2), "E-POST-FIELD"),
    (stake(round="1"), "E-POST-FIELD"),
    (stake(round=None), "E-POST-FIELD"),
    (stake(stakes=[]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": 0}]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": -200}]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": 2.5}]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": True}]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": 2**60}]), "E-POST-FIELD"),
    (stake(stakes=[{"bet": "rouge", "cents": 200}] * 65), "E-POST-FIELD"),
    (b'{"id":"x","id":"y","do":"payout"}', "E-POST-KEY-TWICE"),
    (stake(id="x" * 9_000), "E-POST-OVERSIZED"),
    (b" " * 100_000, "E-POST-OVERSIZED"),
    (stake(stakes=[{"bet": "vert", "cents": 200}]), "E-BET-UNKNOWN"),
    (stake(stakes=[{"bet": "rouge", "cents": 2}]), "E-STAKE-BELOW-MINIMUM"),
    (stake(stakes=[{"bet": "plein-17", "cents": 100_000}]), "E-STAKE-ABOVE-MAXIMUM"),
    (stake(stakes=[{"bet": f"plein-{number}", "cents": 1_000} for number in range(37)]), "E-CREDIT-SHORT"),
    (stake(round=2), "E-ROUND-OTHER"),
    (stake(do="announce", stakes=None, announcement="voisins", cents=0), "E-POST-FIELD"),
    (stake(do="announce", stakes=None, announcement="couleur", cents=100), "E-ANNOUNCEMENT-UNKNOWN"),
    (stake(do="random", stakes=None, count=11, cents=100), "E-POST-FIELD"),
    (b'{"id":"x","do":"sit","player":"carte-0001"}', "E-POST-TAKEN"),
    (b'{"id":"x","do":"back"}', "E-PLAYER-NOT-AWAY"),
]


def test_daemon_whatever_a_post_sends_is_answered_with_its_code_and_moves_no_money() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        for number, (payload, code) in enumerate(BAD_REQUESTS):
            before = len(post.heard)
            post.send(payload.replace(b'"x"', b'"bad-%d"' % number))
            await house.until(lambda before=before: len(post.heard) > before)
            answer = post.heard[-1]
            assert (answer["ok"], answer["code"]) == (False, code), payload[:100]
            assert "index" in answer or (answer["message"] and answer["message_en"])
        assert house.credit(1) == 10_000
        assert (await house.stake(post, rouge=200))["ok"], "and the next good request is taken"

    play(story)


def test_daemon_stake_for_another_post_is_impossible_to_say_and_an_unknown_post_is_not_heard() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 10_000)
        await house.begin_round()
        stranger = house.post(99)
        await house.until(lambda: stranger.bus.connected)
        size = len(house.leaves)
        stranger.send(stake())
        for topic in ("post/0/in", "post/1/in/x", "post/x/in", "post/01/in", "post/1/out", "up/event", "down/ack"):
            stranger.bus.publish(Message(f"{house.topics.root}/{topic}", stake()))
        stranger.bus.publish(Message(house.topics.post_in(1).replace("/t07/", "/t08/"), stake()))
        await house.let_pass(1)
        assert house.credit(1) == 10_000
        assert len(house.leaves) == size
        assert stranger.heard == []
        assert house.daemon.status()["requests"]["posts"]["E-POST-UNKNOWN"] >= 1

    play(story)


def test_daemon_request_that_comes_twice_acts_once_and_is_answered_alike() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        first = await post.ask("stake", id="mine", round=1, stakes=[{"bet": "rouge", "cents": 200}])
        again = await post.ask("stake", id="mine", round=1, stakes=[{"bet": "noir", "cents": 5_000}])
        assert again == first
        house.writer.hold()
        for _ in range(5):
            post.say("stake", id="held", round=1, stakes=[{"bet": "rouge", "cents": 200}])
        house.writer.release()
        await house.until(lambda: bool(post.answers("held")))
        await house.let_pass(1)
        assert len(post.answers("held")) == 1
        assert house.credit(1) == 9_600
        assert (await post.ask("hello", id="mine"))["data"]["credit"] == 9_600, "hello is asked anew each time"

    play(story)


def test_daemon_post_that_floods_is_told_so_once_and_the_others_are_served() -> None:
    async def story(house: House) -> None:
        await house.open()
        flood, other = await house.seat(1, 10_000), await house.seat(2, 10_000)
        await house.begin_round()
        for _ in range(10 * MESSAGES_AT_ONCE):
            flood.say("minimum", cents=100)
        assert (await house.stake(other, rouge=200))["ok"]
        await house.let_pass(2 * DEAF_US / 1_000_000)
        told = [answer["code"] for answer in flood.heard if answer.get("code")]
        assert told == ["E-POST-FLOOD"]
        assert MESSAGES_AT_ONCE - 20 < len(house.every("table.post.minimum.chosen")) <= MESSAGES_AT_ONCE
        assert (await house.stake(flood, rouge=200))["ok"], "it is heard again"

    play(story)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "E-ORDER-UNSIGNED"),
        (b"\xff", "E-ORDER-UNSIGNED"),
        (b"open the table", "E-ORDER-UNSIGNED"),
        (b"{}", "E-ORDER-MALFORMED"),
        (b'{"ask":"money","id":"x"}', "E-ORDER-MALFORMED"),
        (b"x" * 5_000, "E-ORDER-OVERSIZED"),
    ],
)
def test_daemon_command_that_is_none_is_answered_with_its_code(payload: bytes, code: str) -> None:
    async def story(house: House) -> None:
        await house.start()
        size = len(house.leaves)
        house.command(payload)
        await house.until(lambda: bool(house.centre.documents(house.topics.reply)))
        assert house.centre.documents(house.topics.reply)[-1]["code"] == code
        assert len(house.leaves) == size

    play(story)


def test_daemon_order_that_is_sent_again_or_after_a_restart_or_late_has_no_second_effect() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 100)

        async def sent(order: bytes) -> dict[str, Any]:
            before = len(house.centre.documents(house.topics.reply))
            house.command(order)
            await house.until(lambda: len(house.centre.documents(house.topics.reply)) > before)
            return house.centre.documents(house.topics.reply)[-1]

        challenge = await house.challenge()
        order = credit_order(house, challenge, 5_000)
        first = await sent(order)
        assert first["ok"]
        assert await sent(order) == first, "a repeat gets the same answer, from the same entry"
        assert (await sent(credit_order(house, challenge, 6_000)))["code"] == "E-ORDER-NONCE"
        await house.restart()
        assert (await sent(order))["code"] == "E-ORDER-NONCE"
        challenge = await house.challenge()
        await house.let_pass(challenge.expires_s + 1)
        assert (await sent(credit_order(house, challenge, 5_000)))["code"] == "E-ORDER-NONCE"
        assert [fact["cents"] for fact in house.every("table.credit.added")] == [100, 5_000]

    play(story)


def credit_order(house: House, challenge: Challenge, cents: int) -> bytes:
    """An order of the cashier for post 1."""
    return write_order(house.staff["cashier"], challenge, "post.credit", {"cents": cents, "post": 1}).encode()


@pytest.mark.parametrize("role", ["director", "croupier"])
def test_daemon_order_of_a_person_who_may_not_give_it_is_refused(role: str) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 100)
        refused = await house.order(role, "post.credit", post=1, cents=5_000)
        assert (refused["ok"], refused["code"]) == (False, "E-ORDER-ROLE")
        assert house.credit(1) == 100

    play(story)


def test_daemon_hundreds_of_openings_at_once_open_one_seance_and_end_nothing() -> None:
    async def story(house: House) -> None:
        await house.start()
        await house.let_pass(8)
        challenges = [await house.challenge() for _ in range(100)]
        for challenge in challenges:
            house.command(write_order(house.staff["director"], challenge, "seance.open", {}).encode())
        nonces = {challenge.nonce for challenge in challenges}

        def answered() -> list[dict[str, Any]]:
            return [
                reply
                for reply in house.centre.documents(house.topics.reply)
                if reply.get("nonce") in nonces and "ok" in reply
            ]

        await house.until(lambda: len(answered()) == 100)
        assert [reply["ok"] for reply in answered()].count(True) == 1
        assert {reply.get("code") for reply in answered()} == {None, "E-SEANCE-OPEN"}
        assert not house.running.done()

    play(story)


@pytest.mark.law("67-15")
def test_daemon_opening_reads_the_wheel_again_and_a_wheel_that_drifted_keeps_the_table_shut() -> None:
    async def story(house: House) -> None:
        await house.start()
        await house.let_pass(8)
        reads = len(house.every("table.wheel.parameters.read"))
        house.twin.memory.parameters["n"] = "1"
        refused = await house.order("director", "seance.open")
        assert refused["code"] == "E-WHEEL-NOT-VERIFIED"
        assert len(house.every("table.wheel.parameters.read")) == reads + 1
        assert "no-more-bets threshold: is 1" in house.every("table.wheel.parameters.read")[-1]["differences"][0]

    play(story)


def test_daemon_opening_button_opens_under_the_directors_key_and_not_without() -> None:
    async def story(house: House) -> None:
        await house.start()
        await house.let_pass(8)
        await house.press("ouverture", lambda: bool(house.every("table.order.refused")))
        assert not house.state.seance.open
        house.inputs.turn("director", on=True)
        await house.until(lambda: "director" in house.state.seance.keys_on)
        await house.press("ouverture", lambda: house.state.seance.open)
        assert house.every("table.seance.opened")[0]["by"] == {"badge": "key:director", "role": "director"}
        assert house.every("table.seance.opened")[0]["seance"] == "2026-11-30-1"

    play(story)


def test_daemon_all_buttons_at_once_and_a_storm_of_bounces_do_no_harm() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        await house.stake(post, rouge=200)
        for button in house.config.panel.buttons:
            if button not in ("incident", "rien-ne-va-plus"):
                house.inputs.press(button)
        house.inputs.storm("coup-nul", edges=4_000, gap_us=400)
        await house.let_pass(30)
        assert not house.running.done()
        assert house.credit(1) == 9_800
        await house.reach("idle")
        assert house.every("roulette.round.closed")[0]["staked"] == 200

    play(story, conduct="croupier")


def test_daemon_step_of_the_wall_clock_is_a_fact_and_moves_nothing() -> None:
    async def story(house: House) -> None:
        await house.open()
        before = house.state
        house.daemon.emit(ClockStepped(at_us=house.clock.mono_us(), by_ms=-3_600_000, quality="free"))
        await house.until(lambda: house.facts[-1][0] == "table.clock.stepped")
        assert house.state == before

    play(story)


# ── What it shows ─────────────────────────────────────────────────────────────────────────────────────────────────────


@BOTH
@pytest.mark.parametrize("stage", ["start", "betting", "launched", "no_more_bets", "idle"])
def test_daemon_status_at_any_stage_is_plain_json_and_agrees_with_the_journal(conduct: str, stage: str) -> None:
    async def story(house: House) -> None:
        await house.start()
        if stage != "start":
            await house.open()
            post = await house.seat(1, 1_000)
            await house.begin_round()
            await house.stake(post, rouge=200)
            if stage != "betting":
                await house.reach(stage)
        await house.let_pass(0.01)  # what was certified is shown
        status = json.loads(json.dumps(house.daemon.status()))
        assert status["journal_size"] == len(house.leaves) == house.daemon.journal_size
        assert status["simulation"] is True
        assert status["table"]["board"] == {name: value for name, value in house.board.items() if name != "simulation"}
        assert status["wheel"]["port_is_open"] is True
        assert house.daemon.ailing() == ""

    play(story, conduct=conduct)


def test_daemon_board_tells_the_public_what_must_be_displayed() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 1_000)
        texts: list[str] = []
        await house.begin_round()
        await house.until(lambda: house.board["phase"] == "betting")
        texts.append(house.board["text"])
        await house.reach("no_more_bets")
        await house.until(lambda: house.board["phase"] == "no_more_bets")
        texts.append(house.board["text"])
        await house.reach("idle")
        await house.until(lambda: house.board["phase"] == "idle")
        texts.append(house.board["text"])
        assert texts == ["Faites vos jeux", "Rien ne va plus", "Patientez"]
        assert house.board["last_numbers"] == ["17"]
        assert house.board["minimum_cents"] == 50
        assert house.board["simulation"] is True

    play(story, pockets=["17"])


def test_daemon_post_hears_by_itself_what_the_house_does_with_its_money() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        silent = await house.seat(2, 10_000)
        await house.begin_round()
        await house.stake(post, rouge=200)
        await house.reach("idle")
        await house.until(lambda: len(post.news) == 2)
        kinds = [told["kind"].removeprefix("fr.table.").removesuffix(".v1") for told in post.news]
        assert kinds == ["credit.added", "post.settled"]
        assert [told["kind"] for told in silent.news] == ["fr.table.credit.added.v1"]
        assert post.news[-1]["data"]["credit"] == house.credit(1)

    play(story)


def test_daemon_table_without_a_panel_plays() -> None:
    async def story(house: House) -> None:
        house.has_panel = False
        await house.open()
        await house.seat(1, 1_000)
        await house.begin_round()
        await house.reach("idle")
        assert house.daemon.status()["panel"] is None

    play(story)
