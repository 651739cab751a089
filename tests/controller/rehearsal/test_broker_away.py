"""The broker is away, hangs or refuses: the table plays on, and afterwards everything is delivered, in order."""

import json

import pytest

from controller.delivery.bus import Disconnected, Message
from tests.controller.rehearsal.house import House, play

HOUR_S = 3_600.0


def heard(house: House) -> list[bytes]:
    """The entries in the order in which the centre first heard each."""
    events = [message.payload for message in house.centre.heard if message.topic == house.topics.event]
    return list(dict.fromkeys(events))


async def all_delivered(house: House) -> None:
    """Wait until nothing waits, and compare with the journal, byte for byte."""
    await house.until(lambda: heard(house) == house.leaves)
    status = house.daemon.publisher.status()
    assert (status.waiting, status.halted) == (0, None)


@pytest.mark.parametrize("losing", [True, False], ids=["last words lost", "last words arrive"])
def test_broker_away_for_an_hour_leaves_the_table_playing_and_then_hears_everything_in_order(losing: bool) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 10_000)
        await house.begin_round()
        house.exchange.partition("table", losing=losing)
        before = len(heard(house))
        await house.let_pass(HOUR_S)
        assert len(house.every("roulette.round.closed")) > 40
        assert len(heard(house)) - before <= 1, "at most what was on its way"
        assert house.daemon.publisher.status().waiting > 200
        house.exchange.heal("table")
        await all_delivered(house)
        assert [json.loads(leaf)["id"] for leaf in heard(house)] == [str(at) for at in range(len(house.leaves))]

    play(story)


def test_broker_away_is_told_by_the_will_and_its_return_by_the_true_state() -> None:
    async def story(house: House) -> None:
        await house.open()

        def state() -> tuple[str, int]:
            told = json.loads(house.exchange.retained[house.topics.state].payload)
            return told["state"], told["session"]

        assert state() == ("ready", 1)
        house.exchange.partition("table")
        assert state() == ("lost", 1)
        house.exchange.heal("table")
        await house.until(lambda: state() == ("ready", 2))

    play(story)


def test_broker_away_while_a_post_stakes_loses_no_answer_that_the_post_asks_for_again() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        await house.begin_round()
        request = post.say("stake", round=1, stakes=[{"bet": "rouge", "cents": 200}])
        await house.until(lambda: house.credit(1) == 9_800)
        house.exchange.partition("table", losing=True)
        await house.let_pass(5)
        assert post.answers(request) == []
        house.exchange.heal("table")
        await house.until(lambda: house.daemon.bus.connected)
        again = await post.ask("stake", id=request, round=1, stakes=[{"bet": "rouge", "cents": 200}])
        assert again["data"]["credit"] == 9_800
        assert len(house.every("table.stakes.placed")) == 1

    play(story)


def test_broker_that_is_away_takes_no_stake_and_says_so_to_the_post() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, 10_000)
        house.exchange.partition("post-1")
        sent = post.bus.publish(Message(house.topics.post_in(1), b'{"id":"x","do":"payout"}'))
        assert isinstance(sent.exception(), Disconnected)
        assert house.credit(1) == 10_000

    play(story)


def test_broker_that_hangs_and_goes_on_hears_everything_in_order() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 10_000)
        await house.begin_round()
        house.exchange.stall()
        await house.let_pass(HOUR_S / 4)
        rounds = len(house.every("roulette.round.closed"))
        assert rounds > 10
        house.exchange.go_on()
        await all_delivered(house)

    play(story)


def test_broker_that_refuses_entries_gets_them_again_when_it_takes_them() -> None:
    async def story(house: House) -> None:
        await house.start()
        house.exchange.deny(house.topics.event)
        await house.open()
        await house.seat(1, 10_000)
        await house.let_pass(120)
        refused = heard(house)
        assert len(refused) < len(house.leaves)
        house.exchange.permit(house.topics.event)
        await all_delivered(house)

    play(story)


@pytest.mark.parametrize("losing", [True, False], ids=["last words lost", "last words arrive"])
def test_broker_away_and_the_power_cut_meanwhile_still_hears_every_entry(losing: bool) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 10_000)
        await house.begin_round()
        house.exchange.partition("table", losing=losing)
        await house.let_pass(HOUR_S / 6)
        await house.kill(losing=losing)
        house.raise_daemon()
        house.exchange.partition("table", losing=losing)
        await house.let_pass(HOUR_S / 6)
        house.exchange.heal("table")
        await house.until(lambda: set(heard(house)) == set(house.leaves))
        indexes = [int(json.loads(leaf)["id"]) for leaf in heard(house)]
        assert indexes == sorted(indexes), "first heard in order, whatever comes twice"

    play(story)
