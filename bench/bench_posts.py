"""What a post's message costs on its way in, and its answer on its way out, beside ``json.loads`` of the same bytes.

    python bench/bench_posts.py [--stakes 10]

The figures are ratios to the standard library's parser in the same run; the microseconds only say on what machine.
"""

import argparse
import json
import timeit
from collections.abc import Callable

from controller import codec
from controller.certify.leaf import FIRST_PREVIOUS, Record, Stamp, build_leaf
from controller.delivery.posts import MESSAGES_PER_S, PostsGateway
from controller.delivery.wire import certified_reply, decode_post_message
from controller.entropy import KernelEntropy
from controller.inbox import Inbox, Outcome
from drivers.clock import ManualClock
from games.money import Cents
from games.posts import StakesPlaced
from games.signals import PlaceStakes, Stake

REPEATS = 7
CALLS = 5_000


def cost_us(work: Callable[[], object]) -> float:
    """The best of several runs, in microseconds a call."""
    return min(timeit.repeat(work, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def payload_of(stakes: int) -> bytes:
    """A message with so many stakes."""
    lines = [{"bet": f"plein-{number % 37}", "cents": 200} for number in range(stakes)]
    return json.dumps({"id": "p12-000123", "do": "stake", "round": 412, "stakes": lines}).encode()


def leaf_of(stakes: int) -> bytes:
    """The entry that such a message leads to."""
    lines = tuple(Stake(bet=f"plein-{number % 37}", cents=Cents(200)) for number in range(stakes))
    asked = PlaceStakes(at_us=1, post=12, request="p12-000123", round=412, stakes=lines)
    cents = Cents(200 * stakes)
    placed = StakesPlaced(
        post=12, request=asked.request, round=412, origin="bets", stakes=lines, cents=cents, credit=cents
    )
    ((kind, data),) = codec.encode_decision(asked, (placed,), 0)
    stamp = Stamp(source="casino.example/table/t07/1", boot="9f1c0b7e52d3a844", mono_ms=1, wall_ms=1, quality="ntp")
    return build_leaf(0, FIRST_PREVIOUS, Record(kind, data, "2026-11-30-1"), stamp)


def receiver(payload: bytes, leaf: bytes) -> Callable[[], object]:
    """Everything that the gateway does for one message: in, to the inbox, and the answer out."""
    inbox, clock = Inbox(), ManualClock()
    made = 0
    gateway = PostsGateway(
        posts=12,
        pockets=[str(number) for number in range(37)],
        inbox=inbox,
        clock=clock,
        entropy=KernelEntropy(),
        digest_player=str,
        recall=lambda index: leaf,
        round_now=lambda: made,
        greet=lambda post: {},
        send=lambda post, answer: None,
    )

    def work() -> None:
        nonlocal made
        made += 1
        clock.advance_us(1_000_000 // MESSAGES_PER_S)  # the fastest that a post may go on for ever
        request = f"p12-{made:06}"
        gateway.receive(12, payload.replace(b"p12-000123", request.encode()))
        letter = inbox.take()
        assert letter is not None
        assert letter.done is not None
        assert isinstance(letter.signal, PlaceStakes)
        placed = StakesPlaced(
            post=12, request=request, round=412, origin="bets", stakes=(), cents=Cents(0), credit=Cents(0)
        )
        letter.done(Outcome(made, (placed,)))

    return work


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--stakes", type=int, default=10, help="stakes in the message (1 to 64)")
    stakes = arguments.parse_args().stakes
    payload, leaf = payload_of(stakes), leaf_of(stakes)
    plain = cost_us(lambda: json.loads(payload))
    print(f"a message of {stakes} stakes, {len(payload)} bytes; its entry, {len(leaf)} bytes")
    print(f"{'json.loads of the message':36} {plain:7.2f} µs   1.00")
    for name, work in (
        ("decoded and checked", lambda: decode_post_message(payload)),
        ("answer from the entry", lambda: certified_reply({"id": "p12-000123"}, leaf)),
        ("message in, inbox, answer out", receiver(payload, leaf)),
    ):
        spent = cost_us(work)
        print(f"{name:36} {spent:7.2f} µs {spent / plain:6.2f}")


if __name__ == "__main__":
    main()
