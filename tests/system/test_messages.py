"""Whatever comes over a real broker, malformed, oversized, doubled, retained or foreign: it moves no money."""

from typing import Any

from controller.delivery.bus import Message
from controller.delivery.link import PAYLOAD_BOUND
from tests.controller.rehearsal.people import Ear, Post
from tests.system.rig import Rig

CREDIT = 10_000
PAYOUT = b'{"id":"kept","do":"payout"}'


async def at_the_table(rig: Rig) -> Post:
    """An open table with a player at post 1."""
    await rig.start()
    await rig.open()
    return await rig.seat(1, CREDIT)


async def heard(rig: Rig, post: Post, count: int) -> dict[str, Any]:
    await rig.until(lambda: len(post.heard) >= count)
    return post.heard[count - 1]


async def test_messages_that_are_none_are_answered_with_their_code_and_the_next_good_one_is_taken(
    rig_on_both: Rig,
) -> None:
    rig = rig_on_both
    post = await at_the_table(rig)
    for payload, code in (
        (b"", "E-POST-JSON"),
        (b"\xff\x00", "E-POST-JSON"),
        (b"[" * 5_000, "E-POST-JSON"),
        (b'{"id":"x","do":"steal"}', "E-POST-REQUEST-UNKNOWN"),
        (b'{"id":"x","do":"payout","post":2}', "E-POST-FIELD"),
        (b'{"id":"x","do":"hello","do":"payout"}', "E-POST-KEY-TWICE"),
        (b'{"id":"x","do":"hello"}' + b" " * 9_000, "E-POST-OVERSIZED"),
        (b"x" * PAYLOAD_BOUND, "E-POST-OVERSIZED"),
    ):
        count = len(post.heard) + 1
        post.send(payload)
        assert (await heard(rig, post, count))["code"] == code
    post.send(b"x" * (PAYLOAD_BOUND + 1))  # never handed on, and told to the technician
    assert (await post.ask("hello"))["data"]["credit"] == CREDIT
    assert rig.running.codes == ["E-MQTT-OVERSIZE"]


async def test_messages_on_topics_of_nobody_or_of_another_table_reach_nobody(rig_on_both: Rig) -> None:
    rig = rig_on_both
    post = await at_the_table(rig)
    stranger = Ear(rig, "stranger", [f"{rig.topics.root}/post/+/out"])
    await rig.until(lambda: stranger.bus.connected)
    size = (await rig.status())["journal_size"]
    own = rig.topics.post_in(1)
    for topic in (
        own.replace("/1/", "/0/"),
        own.replace("/1/", "/7/"),
        own.replace("/1/", "/01/"),
        own.replace("/1/", "/1000/"),
        own.replace("/1/", "/x/"),
        own.replace("/t07/", "/t08/"),
        own.replace("/v1/", "/v2/"),
        f"{own}/x",
        rig.topics.post_out(1),
    ):
        stranger.bus.publish(Message(topic, PAYOUT))
    assert (await post.ask("hello"))["data"]["credit"] == CREDIT, "asked after all of them"
    status = await rig.status()
    assert status["requests"]["posts"]["E-POST-UNKNOWN"] == 1, "post 7 is none of this table's"
    kinds = [kind for kind, _ in rig.facts[size:]]
    assert not [kind for kind in kinds if kind.startswith("table.player") or "refused" in kind]


async def test_messages_that_come_twice_act_once_and_a_retained_one_never_acts_again(rig_on_both: Rig) -> None:
    rig = rig_on_both
    post = await at_the_table(rig)
    post.bus.publish(Message(rig.topics.post_in(1), PAYOUT, retain=True))
    await rig.until(lambda: len(post.answers("kept")) == 1)
    post.send(PAYOUT)
    await rig.until(lambda: len(post.answers("kept")) == 2)
    first, second = post.answers("kept")
    assert first == second
    assert first["data"]["cents"] == CREDIT
    assert (await post.ask("sit", player="card-2"))["ok"]
    assert (await rig.office.order("cashier", "post.credit", post=1, cents=500))["ok"]
    await rig.running.close()
    await rig.start()
    assert (await post.ask("hello"))["data"]["credit"] == 500, "what a broker had kept is nobody's wish of now"
    assert len(post.answers("kept")) == 2
    assert len(rig.every("table.player.paid_out")) == 1


async def test_orders_by_strangers_are_refused_and_those_of_the_staff_are_taken(rig: Rig) -> None:
    await rig.start()
    for payload, code in (
        (b"open the table", "E-ORDER-UNSIGNED"),
        (b"x" * 3_000, "E-ORDER-OVERSIZED"),
        (b'{"ask":"money","id":"x"}', "E-ORDER-MALFORMED"),
    ):
        before = len(rig.office.ear.documents(rig.topics.reply))
        rig.office.command(payload)
        await rig.until(lambda before=before: len(rig.office.ear.documents(rig.topics.reply)) > before)
        assert rig.office.ear.documents(rig.topics.reply)[-1]["code"] == code
    await rig.open()
