"""The door of the table: two lanes, each with a bound, each in its order of arrival."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.inbox import POST_LANE_BOUND, STAFF_LANE_BOUND, Inbox, InboxFullError, Outcome
from games.money import Cents
from games.rules import Input, Stopping, TimerFired
from games.signals import BallSlowed, CashOut, CreditPost, Direction, KeyTurned, Person, PostRequest, Role, Sit

CASHIER = Person(badge="K-03", role=Role.CASHIER)


def post_says(number: int) -> PostRequest:
    return CashOut(at_us=number, post=1, request=f"r{number}")


def key_turns(number: int) -> Input:
    return KeyTurned(at_us=number, key="director", on=True)


def fill(inbox: Inbox, bound: int, of: type[Input]) -> None:
    make = post_says if issubclass(of, PostRequest) else key_turns
    for number in range(bound):
        inbox.put(make(number))


def emptied(inbox: Inbox) -> list[Input]:
    taken = []
    while letter := inbox.take():
        taken.append(letter.signal)
    return taken


@pytest.mark.parametrize(
    "first",
    [
        BallSlowed(at_us=9, spin=1, direction=Direction.CLOCKWISE, rotor_mrpm=16_000),
        KeyTurned(at_us=9, key="croupier", on=True),
        TimerFired(at_us=9, name="launch", round=1),
        CreditPost(at_us=9, by=CASHIER, post=1, cents=Cents(1_000)),
        Stopping(at_us=9, boot="9f1c0b7e52d3a844"),
    ],
    ids=lambda signal: type(signal).__name__,
)
def test_inbox_whatever_a_device_a_timer_or_the_staff_says_goes_before_the_posts(first: Input) -> None:
    inbox = Inbox()
    requests = [Sit(at_us=number, post=number, request="r", player="p") for number in range(5)]
    for request in requests:
        inbox.put(request)
    inbox.put(first)
    assert emptied(inbox) == [first, *requests]


@given(st.lists(st.booleans()))
def test_inbox_any_mix_of_inputs_keeps_the_order_of_arrival_in_each_lane(is_post: list[bool]) -> None:
    inbox = Inbox()
    signals = [post_says(at) if post else key_turns(at) for at, post in enumerate(is_post)]
    for signal in signals:
        inbox.put(signal)
    assert len(inbox) == len(signals)
    staff = [signal for signal in signals if not isinstance(signal, PostRequest)]
    assert emptied(inbox) == staff + [signal for signal in signals if isinstance(signal, PostRequest)]
    assert len(inbox) == 0


@pytest.mark.parametrize(("of", "bound"), [(CashOut, POST_LANE_BOUND), (KeyTurned, STAFF_LANE_BOUND)])
def test_inbox_full_lane_takes_nothing_more_and_the_other_lane_is_open(of: type[Input], bound: int) -> None:
    inbox = Inbox()
    fill(inbox, bound, of)
    with pytest.raises(InboxFullError, match=str(bound)):
        inbox.put(post_says(-1) if of is CashOut else key_turns(-1))
    assert len(inbox) == bound
    inbox.put(key_turns(-2) if of is CashOut else post_says(-2))
    taken = emptied(inbox)
    assert len(taken) == bound + 1
    assert -1 not in [signal.at_us for signal in taken]


def test_inbox_full_lane_has_room_again_after_one_is_taken() -> None:
    inbox = Inbox()
    fill(inbox, POST_LANE_BOUND, CashOut)
    inbox.take()
    inbox.put(post_says(POST_LANE_BOUND))
    assert emptied(inbox)[-1] == post_says(POST_LANE_BOUND)


def test_inbox_letter_carries_whom_to_tell() -> None:
    inbox, told = Inbox(), list[Outcome]()
    inbox.put(post_says(1), told.append)
    letter = inbox.take()
    assert letter is not None
    assert letter.done is not None
    letter.done(Outcome(7, ()))
    assert told == [Outcome(7, ())]


async def test_inbox_empty_waits_until_something_is_put() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put(post_says(1))
    await waiting
    assert inbox.take() is not None


async def test_inbox_emptied_waits_again() -> None:
    inbox = Inbox()
    inbox.put(post_says(1))
    await inbox.wait()
    assert emptied(inbox) == [post_says(1)]
    waiting = asyncio.create_task(inbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
