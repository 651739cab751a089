"""A person's side of an order: asks, signs what it was given, and hears the answer that is meant for it."""

import json
from typing import Any

import pytest

from controller.certify.note import parse_note
from controller.delivery.bus import Message
from controller.delivery.order_client import OrderClient, OrderUnansweredError
from controller.delivery.orders import write_order
from controller.schemas import Challenge
from tests.controller.rehearsal.house import House, play


def client(house: House) -> OrderClient:
    """A desk of its own on the broker; the client runs its bus."""
    return OrderClient(house.exchange.bus("desk"), house.topics, "desk-1")


def credit(house: House, cents: int = 500) -> Any:
    def write(challenge: Challenge) -> str:
        said = {"cents": cents, "post": 1}
        return write_order(house.staff["cashier"], challenge, "post.credit", said)

    return write


def test_order_is_answered_with_its_certified_entry_while_others_ask_too() -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 1_000)
        house.command(json.dumps({"ask": "challenge", "id": "another-desk"}).encode())
        desk = client(house)
        for noise in (b"?", b"\xff", b'["noise"]', b'{"id":"desk-2"}'):
            desk.on_message(Message(house.topics.reply, noise))
        answer = await desk.order(credit(house), within_s=30)
        assert (answer["ok"], answer["data"]["credit"]) == (True, 1_500)
        assert answer["index"] == len(house.leaves) - 1

    play(story)


def test_order_that_is_refused_is_answered_with_its_code() -> None:
    async def story(house: House) -> None:
        await house.open()
        answer = await client(house).order(credit(house), within_s=30)
        assert (answer["ok"], answer["code"]) == (False, "E-POST-FREE")

    play(story)


def test_challenge_that_is_signed_is_the_one_that_was_asked_for() -> None:
    async def story(house: House) -> None:
        await house.open()
        given: list[Challenge] = []

        def write(challenge: Challenge) -> str:
            given.append(challenge)
            note = write_order(house.staff["director"], challenge, "game.restart", {})
            assert f"nonce {challenge.nonce}\n" in parse_note(note).text
            return note

        answer = await client(house).order(write, within_s=30)
        assert [challenge.id for challenge in given] == ["desk-1"]
        assert answer["nonce"] == given[0].nonce

    play(story)


@pytest.mark.parametrize("held", [False, True], ids=["no table", "table that cannot commit"])
def test_order_without_an_answer_says_whether_it_may_have_acted(held: bool) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 1_000)
        if held:
            house.writer.hold()
        else:
            await house.kill()
        with pytest.raises(OrderUnansweredError, match="E-ORDER-UNANSWERED") as unanswered:
            await client(house).order(credit(house), within_s=10)
        assert unanswered.value.sent is held
        assert unanswered.value.topic == house.topics.command
        if held:
            house.writer.release()
            await house.until(lambda: house.credit(1) == 1_500)
        else:
            await house.start()

    play(story)
