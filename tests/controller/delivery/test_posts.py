"""The posts' protocol: nothing malformed gets through, nothing acts twice, and answers come from certified entries."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import TypeAdapter

from controller import codec
from controller import inbox as inbox_module
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, Record, Stamp, build_leaf
from controller.delivery import posts as posts_module
from controller.delivery.posts import (
    DEAF_US,
    MESSAGES_AT_ONCE,
    MESSAGES_PER_S,
    REFUSALS_PER_ROUND,
    REQUESTS_PER_ROUND,
    REQUESTS_REMEMBERED,
    PostsGateway,
)
from controller.entropy import SeededEntropy
from controller.inbox import Inbox, Outcome
from controller.schemas import NUMBER_BOUND, STAKES_BOUND, PostReply
from drivers.clock import ManualClock
from games.money import Cents
from games.posts import MinimumChosen, PlayerPaidOut, PlayerSat, PlayerSteppedAway, RequestRefused, StakesPlaced
from games.refusals import Refusal
from games.rules import Fact, Input, Started
from games.signals import (
    CashOut,
    ChooseMinimum,
    ComeBack,
    PlaceAnnouncement,
    PlaceRandom,
    PlaceStakes,
    PostRequest,
    Sit,
    Stake,
    StepAway,
    TakeBack,
)

POCKETS = tuple(str(number) for number in range(37))
POSTS = 3
PACE_US = 1_000_000 // MESSAGES_PER_S
STAMP = Stamp(source="casino.example/table/t07/1", boot="9f1c0b7e52d3a844", mono_ms=1, wall_ms=1, quality="ntp")
NOTHING_ASKED = Started(at_us=0, boot="9f1c0b7e52d3a844", unclean=False)
REPLY: TypeAdapter[Any] = TypeAdapter(PostReply)

Reply = dict[str, Any]


@dataclass
class Table:
    """A small table: decides requests into real facts, certifies them in a list, and can be killed at any instant."""

    round: int = 1
    minimum: int = 0
    leaves: list[bytes] = field(default_factory=list)
    round_began_at: int = 0
    sent: list[tuple[int, bytes]] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)
    inbox: Inbox = field(init=False)
    gateway: PostsGateway = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start on what is certified, with nothing else."""
        self.inbox = Inbox()
        self.gateway = PostsGateway(
            posts=POSTS,
            pockets=POCKETS,
            inbox=self.inbox,
            clock=self.clock,
            entropy=SeededEntropy(len(self.leaves)),
            digest_player=lambda player: f"digest-of-{player}",
            recall=lambda index: self.leaves[index],
            round_now=lambda: self.round,
            greet=lambda post: {"post": post, "round": self.round, "phase": "betting", "credit": 500},
            send=lambda post, payload: self.sent.append((post, payload)),
        )
        for index in range(self.round_began_at, len(self.leaves)):
            self.gateway.remember(self.leaves[index], index)

    def certify(self, signal: Input, *facts: Fact) -> Outcome:
        """Append facts to the journal, as entries of the real form."""
        first = len(self.leaves)
        for kind, data in codec.encode_decision(signal, facts, first):
            self.leaves.append(build_leaf(len(self.leaves), FIRST_PREVIOUS, Record(kind, data, None), STAMP))
        return Outcome(first, facts)

    def commit(self, most: int = 1_000_000, *, answered: bool = True) -> None:
        """Decide and certify what waits, at most so many, then answer; or be killed between the two."""
        done = []
        while most > 0 and (letter := self.inbox.take()):
            most -= 1
            assert letter.done is not None
            done.append((letter.done, self.certify(letter.signal, *self.decide(letter.signal))))
        if answered:
            for tell, outcome in done:
                tell(outcome)

    def decide(self, signal: Input) -> tuple[Fact, ...]:
        """The rule that the gateway relies on: only the present round can be staked on."""
        assert isinstance(signal, PostRequest)
        post, request = signal.post, signal.request
        match signal:
            case PlaceStakes(round=number) if number != self.round:
                return (RequestRefused(post=post, request=request, asked="PlaceStakes", reason=Refusal.ROUND_OTHER),)
            case PlaceStakes(round=number, stakes=stakes):
                cents = Cents(sum(stake.cents for stake in stakes))
                placed = StakesPlaced(
                    post=post, request=request, round=number, origin="bets", stakes=stakes, cents=cents, credit=Cents(0)
                )
                return (placed,)
            case Sit(player=player):
                return (PlayerSat(post=post, request=request, sitting=1, player=player),)
            case CashOut():
                other = PlayerPaidOut(post=post + 1, request=request, sitting=1, payout=1, cents=Cents(5))
                return (other, PlayerPaidOut(post=post, request=request, sitting=1, payout=2, cents=Cents(7)))
            case ChooseMinimum(cents=cents) if cents == self.minimum:
                return ()
            case ChooseMinimum(cents=cents):
                self.minimum = cents
                return (MinimumChosen(post=post, request=request, cents=cents),)
            case _:
                return (PlayerSteppedAway(post=post, request=request, sitting=1),)

    def next_round(self) -> None:
        """The next round begins."""
        self.round += 1
        self.round_began_at = len(self.leaves)

    def ask(self, post: int, **message: Any) -> None:
        """A post sends a message, and then waits for as long as it must to be heard for ever."""
        self.gateway.receive(post, json.dumps(message).encode())
        self.clock.advance_us(PACE_US)

    def answers(self) -> list[Reply]:
        """What the posts were told since the last call; each answer is one of those that are published."""
        replies = [json.loads(payload) for _, payload in self.sent]
        for _, payload in self.sent:
            REPLY.validate_json(payload)
        assert all(None not in reply.values() for reply in replies)
        self.sent.clear()
        return replies

    def answer(self) -> Reply:
        """The only answer since the last call."""
        (only,) = self.answers()
        return only

    def stakes_certified(self) -> Counter[tuple[int, str]]:
        """How often each request of each post became a stake."""
        entries = [json.loads(leaf) for leaf in self.leaves]
        placed = [entry["data"] for entry in entries if entry["type"] == StakesPlaced.KIND]
        return Counter((data["post"], data["request"]) for data in placed)


@pytest.fixture
def table() -> Table:
    return Table()


def fact_of(leaf: bytes) -> dict[str, Any]:
    """The fact's own fields in an entry."""
    data = json.loads(leaf)["data"]
    return {name: value for name, value in data.items() if name not in ("input", "input_at")}


def stake(request: str, number: int, *lines: tuple[str, int]) -> dict[str, Any]:
    return {
        "id": request,
        "do": "stake",
        "round": number,
        "stakes": [{"bet": bet, "cents": cents} for bet, cents in lines or (("rouge", 200),)],
    }


# ── Each request becomes one input ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"do": "sit", "player": "C-1042"}, Sit(at_us=9, post=2, request="a1", player="digest-of-C-1042")),
        (
            stake("a1", 4, ("plein-17", 200), ("rouge", 1000)),
            PlaceStakes(
                at_us=9,
                post=2,
                request="a1",
                round=4,
                stakes=(Stake(bet="plein-17", cents=Cents(200)), Stake(bet="rouge", cents=Cents(1000))),
            ),
        ),
        (
            {"do": "announce", "round": 4, "announcement": "voisins-du-zero", "cents": 50},
            PlaceAnnouncement(at_us=9, post=2, request="a1", round=4, announcement="voisins-du-zero", cents=Cents(50)),
        ),
        ({"do": "take-back", "round": 4}, TakeBack(at_us=9, post=2, request="a1", round=4)),
        ({"do": "minimum", "cents": 100}, ChooseMinimum(at_us=9, post=2, request="a1", cents=Cents(100))),
        ({"do": "payout"}, CashOut(at_us=9, post=2, request="a1")),
        ({"do": "away"}, StepAway(at_us=9, post=2, request="a1")),
        ({"do": "back"}, ComeBack(at_us=9, post=2, request="a1")),
    ],
    ids=lambda value: value["do"] if isinstance(value, dict) else type(value).__name__,
)
def test_request_well_formed_becomes_its_input(table: Table, message: dict[str, Any], expected: Input) -> None:
    table.clock.advance_us(9)
    table.ask(2, **{"id": "a1", **message})
    letter = table.inbox.take()
    assert letter is not None
    assert letter.signal == expected
    assert table.inbox.take() is None
    assert table.answers() == [], "nothing is told before it is certified"


@pytest.mark.law("67-15")
@given(count=st.integers(1, 10))
def test_random_combination_is_drawn_by_the_table_and_holds_distinct_pockets(count: int) -> None:
    table = Table()
    table.ask(1, id="r", do="random", round=1, cents=100, count=count)
    letter = table.inbox.take()
    assert letter is not None
    drawn = letter.signal
    assert isinstance(drawn, PlaceRandom)
    assert len(drawn.pockets) == len(set(drawn.pockets)) == count
    assert set(drawn.pockets) <= set(POCKETS)
    assert (drawn.round, drawn.cents) == (1, 100)


def test_hello_is_answered_at_once_and_not_certified(table: Table) -> None:
    table.ask(3, id="h", do="hello")
    assert table.answer() == {
        "id": "h",
        "ok": True,
        "data": {"post": 3, "round": 1, "phase": "betting", "credit": 500},
    }
    assert len(table.inbox) == 0


# ── Answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_stake_is_answered_only_after_the_commit_with_its_certified_entry(table: Table) -> None:
    table.certify(NOTHING_ASKED, PlayerSteppedAway(post=9, request="z", sitting=1))
    table.ask(1, **stake("s1", 1, ("plein-17", 300)))
    assert table.answers() == []
    table.commit()
    assert table.answer() == {
        "id": "s1",
        "ok": True,
        "index": 1,
        "kind": "fr.table.stakes.placed.v1",
        "data": fact_of(table.leaves[1]),
    }


@pytest.mark.law("67-15")
def test_stake_of_another_round_is_refused_with_its_certified_reason(table: Table) -> None:
    table.ask(1, **stake("s1", 2))
    table.commit()
    reply = table.answer()
    assert (reply["ok"], reply["code"], reply["index"]) == (False, "E-ROUND-OTHER", 0)
    assert reply["kind"] == "fr.table.post.request.refused.v1"
    assert reply["data"] == fact_of(table.leaves[0])


def test_answer_is_the_entry_that_names_the_request_among_others_of_the_decision(table: Table) -> None:
    table.ask(1, id="p", do="payout")
    table.commit()
    reply = table.answer()
    assert (reply["index"], reply["data"]["post"], reply["data"]["cents"]) == (1, 1, 7)


def test_request_without_effect_is_told_so_and_may_be_asked_again(table: Table) -> None:
    table.minimum = 100
    table.ask(1, id="m", do="minimum", cents=100)
    table.commit()
    assert table.answer()["code"] == "E-POST-NO-EFFECT"
    table.minimum = 50
    table.ask(1, id="m", do="minimum", cents=100)
    table.commit()
    assert table.answer()["kind"] == MinimumChosen.KIND


@pytest.mark.parametrize(
    ("number", "name_length", "cents"),
    [(1, len("transversale-34-36"), NUMBER_BOUND // STAKES_BOUND), (NUMBER_BOUND, 48, NUMBER_BOUND)],
    ids=["taken", "refused"],
)
def test_longest_message_leads_to_an_entry_with_room_to_spare(
    table: Table, number: int, name_length: int, cents: int
) -> None:
    lines = [(f"{'x' * (name_length - 2)}{at:02}", cents) for at in range(STAKES_BOUND)]
    table.ask(1, **stake("i" * 64, number, *lines))
    table.commit()
    assert table.answer()["ok"] is (number == table.round)
    assert len(table.leaves[0]) <= LEAF_BOUND - 512


def test_inbox_full_is_told_and_the_same_request_may_be_sent_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "POST_LANE_BOUND", 1)
    table.ask(1, **stake("a", 1))
    table.ask(2, **stake("b", 1))
    reply = table.answer()
    assert (reply["id"], reply["ok"], reply["code"]) == ("b", False, "E-INBOX-FULL")
    table.commit()
    table.ask(2, **stake("b", 1))
    table.commit()
    assert [reply["ok"] for reply in table.answers()] == [True, True]
    assert table.stakes_certified() == {(1, "a"): 1, (2, "b"): 1}


# ── Once ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repeat_in_flight_is_absorbed_and_answered_once(table: Table) -> None:
    for _ in range(3):
        table.ask(1, **stake("s", 1))
    assert len(table.inbox) == 1
    table.commit()
    assert table.answer()["index"] == 0
    assert table.gateway.counts == {"taken": 1, "repeated": 2}


def test_repeat_after_the_commit_gets_the_same_bytes_and_no_second_effect(table: Table) -> None:
    table.ask(1, **stake("s", 1))
    table.commit()
    table.next_round()
    table.ask(1, **stake("s", 1))
    assert len(table.inbox) == 0
    first, second = table.sent
    assert first == second


def test_repeat_of_a_refusal_gets_the_same_refusal(table: Table) -> None:
    table.ask(1, **stake("s", 2))
    table.commit()
    table.next_round()
    table.ask(1, **stake("s", 2))
    table.commit()
    first, second = table.answers()
    assert first == second
    assert first["code"] == "E-ROUND-OTHER"


def test_same_id_of_two_posts_is_two_requests(table: Table) -> None:
    table.ask(1, **stake("s", 1))
    table.ask(2, **stake("s", 1))
    table.commit()
    assert [(post, json.loads(payload)["data"]["post"]) for post, payload in table.sent] == [(1, 1), (2, 2)]


def test_kill_after_the_commit_leaves_the_answer_in_the_journal(table: Table) -> None:
    table.ask(1, **stake("s", 1))
    table.commit(answered=False)
    table.start()
    table.ask(1, **stake("s", 1))
    assert table.answer()["index"] == 0
    assert table.stakes_certified() == {(1, "s"): 1}


def test_kill_before_the_commit_leaves_nothing_and_the_repeat_is_new(table: Table) -> None:
    table.ask(1, **stake("s", 1))
    table.start()
    table.ask(1, **stake("s", 1))
    table.commit()
    assert table.answer()["ok"] is True
    assert table.stakes_certified() == {(1, "s"): 1}


def test_restart_ignores_entries_that_no_request_of_a_post_caused(table: Table) -> None:
    table.certify(NOTHING_ASKED, PlayerPaidOut(post=1, request="", sitting=1, payout=1, cents=Cents(5)))
    table.certify(NOTHING_ASKED, PlayerSteppedAway(post=POSTS + 1, request="x", sitting=1))
    table.leaves.append(b'{"data":{"note":{"request":"x"}},"id":"2","type":"fr.table.noted.v1"}')
    table.start()
    table.ask(1, id="x", do="away")
    table.commit()
    assert table.answer()["index"] == 3


def test_restart_answers_with_the_first_entry_that_names_the_request(table: Table) -> None:
    for sitting in (1, 2):
        table.certify(NOTHING_ASKED, PlayerSteppedAway(post=1, request="x", sitting=sitting))
    table.start()
    table.ask(1, id="x", do="away")
    assert table.answer()["index"] == 0


def test_restart_does_not_count_what_the_house_did_for_a_post(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_PER_ROUND", 1)
    table.certify(NOTHING_ASKED, PlayerSteppedAway(post=1, request="", sitting=1))
    table.start()
    table.ask(1, **stake("x", 1))
    assert len(table.inbox) == 1


class Once(RuleBasedStateMachine):
    """Posts that repeat, flood and reuse ids; a table that is killed anywhere; and very little memory."""

    per_round = 3
    remembered = 6

    @initialize()
    def begin(self) -> None:
        self.bounds = pytest.MonkeyPatch()
        self.bounds.setattr(posts_module, "REQUESTS_PER_ROUND", self.per_round)
        self.bounds.setattr(posts_module, "REQUESTS_REMEMBERED", self.remembered)
        self.table = Table()

    def teardown(self) -> None:
        if hasattr(self, "bounds"):
            self.bounds.undo()

    @rule(post=st.integers(1, 2), request=st.sampled_from("abcdefghij"), ahead=st.integers(-1, 1))
    def ask(self, post: int, request: str, ahead: int) -> None:
        self.table.ask(post, **stake(request, max(1, self.table.round + ahead)))

    @rule(post=st.integers(1, 2), request=st.sampled_from("abcdefghij"))
    def step_away(self, post: int, request: str) -> None:
        self.table.ask(post, id=request, do="away")

    @rule(most=st.integers(1, 20))
    def commit(self, most: int) -> None:
        self.table.commit(most)

    @rule()
    def next_round(self) -> None:
        self.table.next_round()

    @rule(most=st.integers(0, 20))
    def kill(self, most: int) -> None:
        self.table.commit(most, answered=False)
        self.table.start()

    @invariant()
    def no_request_acted_twice_in_a_round(self) -> None:
        if not hasattr(self, "table"):
            return
        entries = [json.loads(leaf) for leaf in self.table.leaves]
        placed = [entry["data"] for entry in entries if entry["type"] == StakesPlaced.KIND]
        counted = Counter((data["post"], data["request"], data["round"]) for data in placed)
        assert all(times == 1 for times in counted.values()), counted


TestOnce = Once.TestCase
TestOnce.settings = settings(max_examples=60, stateful_step_count=40)


def flooded_rounds(table: Table, per_round: int, rounds: int) -> None:
    """One post sends ``per_round`` stakes a round, in bursts that straddle the rounds, then repeats them all."""
    sent: list[dict[str, Any]] = []
    for _ in range(rounds):
        for number in range(per_round):
            message = stake(f"{table.round}.{number}", table.round)
            sent.append(message)
            table.ask(1, **message)
            if number % 7 == 0:
                table.commit(5)
        table.next_round()
        table.commit(per_round // 2)
        for message in sent[-per_round:]:
            table.ask(1, **message)
    for message in sent:
        table.ask(1, **message)
    table.commit()


def test_forgotten_request_never_acts_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "REFUSALS_PER_ROUND", REQUESTS_REMEMBERED)
    flooded_rounds(table, per_round=REQUESTS_PER_ROUND + 50, rounds=4)
    certified = table.stakes_certified()
    assert len(certified) > REQUESTS_REMEMBERED, "the memory was filled"
    assert set(certified.values()) == {1}


def test_forgotten_request_would_act_again_if_a_round_could_hold_more_than_the_memory(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_REMEMBERED", 20)
    for _ in range(2):
        for number in range(30):
            table.ask(1, **stake(str(number), 1))
        table.commit()
    assert max(table.stakes_certified().values()) == 2


# ── Allowance of a round ──────────────────────────────────────────────────────────────────────────────────────────────


def test_flood_of_a_round_is_refused_uncertified_counted_and_over_with_the_round(table: Table) -> None:
    for number in range(REQUESTS_PER_ROUND):
        table.ask(1, **stake(str(number), 1))
    table.commit()
    assert all(reply["ok"] for reply in table.answers())
    table.ask(1, **stake("one-more", 1))
    table.ask(2, **stake("another-post", 1))
    table.ask(1, **stake("0", 1))
    flood, repeat = table.answers()
    assert (flood["id"], flood["code"]) == ("one-more", "E-POST-FLOOD")
    assert (repeat["id"], repeat["index"]) == ("0", 0), "what was decided is still answered"
    assert len(table.inbox) == 1
    assert table.gateway.counts["E-POST-FLOOD"] == 1
    table.next_round()
    table.ask(1, **stake("one-more", 2))
    assert len(table.inbox) == 2


def test_flood_allowance_is_not_renewed_by_a_restart(table: Table) -> None:
    for number in range(REQUESTS_PER_ROUND):
        table.ask(1, **stake(str(number), 1))
    table.commit()
    table.answers()
    table.start()
    table.ask(1, **stake("one-more", 1))
    assert table.answer()["code"] == "E-POST-FLOOD"


def test_requests_in_flight_when_the_round_changes_count_in_the_new_one(table: Table) -> None:
    for number in range(REQUESTS_PER_ROUND):
        table.ask(1, **stake(str(number), 1))
    table.next_round()
    table.ask(1, **stake("one-more", 2))
    assert table.answer()["code"] == "E-POST-FLOOD"


@pytest.mark.parametrize("restart", [False, True])
def test_requests_that_name_no_round_take_nothing_of_the_allowance_of_the_round(
    table: Table, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_PER_ROUND", 2)
    for number in range(5):
        table.ask(1, id=f"away-{number}", do="away")
    table.commit()
    if restart:
        table.start()
    table.ask(1, **stake("a", 1))
    table.ask(1, **stake("b", 1))
    table.ask(1, id="last", do="away")
    table.commit()
    assert [reply["ok"] for reply in table.answers()] == [True] * 8


def test_requests_that_name_no_round_in_flight_do_not_count_in_the_next(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_PER_ROUND", 1)
    table.ask(1, id="away", do="away")
    table.next_round()
    table.ask(1, **stake("a", 2))
    assert len(table.inbox) == 2


def test_requests_that_name_no_round_push_no_stake_out_of_the_memory(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_REMEMBERED", 3)
    table.ask(1, **stake("s", 1))
    for number in range(10):
        table.ask(1, id=f"away-{number}", do="away")
    table.commit()
    table.ask(1, **stake("s", 1))
    table.commit()
    assert table.stakes_certified() == {(1, "s"): 1}


@pytest.mark.parametrize("named", [1, 9], ids=["of-the-last-round", "refused-for-a-round-to-come"])
def test_restart_counts_only_what_names_the_present_round(
    table: Table, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_PER_ROUND", 2)
    for number in range(2):
        table.ask(1, **stake(str(number), named))
    table.commit()
    table.round += 1  # the journal's tail reaches back beyond the round
    table.start()
    table.answers()
    table.ask(1, **stake("0", named))
    assert table.answer()["index"] == 0, "it is remembered all the same"
    table.ask(1, **stake("new", 2))
    assert len(table.inbox) == 1


def test_restart_keeps_a_stake_of_the_present_round_whatever_others_the_journal_holds(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_REMEMBERED", 3)
    table.ask(1, **stake("s", 1))
    for number in range(5):
        table.ask(1, **stake(str(number), 9))
        table.ask(1, id=f"away-{number}", do="away")
    table.commit()
    table.start()
    table.ask(1, **stake("s", 1))
    table.commit()
    assert table.stakes_certified() == {(1, "s"): 1}


def test_request_that_changed_nothing_leaves_no_trace_in_the_next_round(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts_module, "REQUESTS_PER_ROUND", 1)
    table.minimum = 100
    table.ask(1, id="m", do="minimum", cents=100)
    table.commit()
    table.next_round()
    table.ask(1, **stake("a", 2))
    assert len(table.inbox) == 1


# ── Refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def refused_stakes(table: Table, count: int) -> None:
    """One post has so many stakes refused, certified."""
    for number in range(count):
        table.ask(1, **stake(f"{table.round}.{number}", table.round + 5))
    table.commit()
    assert {reply["code"] for reply in table.answers()} <= {"E-ROUND-OTHER"}


def test_refusals_of_a_round_are_certified_up_to_their_bound_and_again_in_the_next(table: Table) -> None:
    refused_stakes(table, REFUSALS_PER_ROUND)
    table.ask(1, **stake("one-more", 1))
    reply = table.answer()
    assert (reply["id"], reply["code"], "index" in reply) == ("one-more", "E-POST-FLOOD", False)
    assert len(table.leaves) == REFUSALS_PER_ROUND
    table.ask(2, **stake("another-post", 1))
    table.ask(1, id="away", do="away")
    assert len(table.inbox) == 2, "others, and what names no round, are still taken"
    table.commit()
    table.next_round()
    table.ask(1, **stake("one-more", 2))
    table.commit()
    assert [reply["ok"] for reply in table.answers()] == [True] * 3


def test_refusals_below_their_bound_hinder_nothing(table: Table) -> None:
    refused_stakes(table, REFUSALS_PER_ROUND - 1)
    table.ask(1, **stake("s", 1))
    table.commit()
    assert table.answer()["ok"] is True


def test_refusals_of_the_present_round_count_after_a_restart(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "REFUSALS_PER_ROUND", 1)
    refused = PlaceStakes(at_us=1, post=1, request="r", round=1, stakes=())
    table.certify(refused, RequestRefused(post=1, request="r", asked="PlaceStakes", reason=Refusal.STAKE_LATE))
    table.start()
    table.ask(1, **stake("s", 1))
    assert table.answer()["code"] == "E-POST-FLOOD"


# ── Pace ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

HELLO = b'{"id":"h","do":"hello"}'


def test_burst_is_read_up_to_its_bound_then_told_once_then_dropped_for_a_second(table: Table) -> None:
    for _ in range(MESSAGES_AT_ONCE + 50):
        table.gateway.receive(1, HELLO)
    *greeted, told = table.answers()
    assert [reply["ok"] for reply in greeted] == [True] * MESSAGES_AT_ONCE
    assert (told["id"], told["ok"], told["code"]) == ("h", False, "E-POST-FLOOD")
    assert table.gateway.counts == {"E-POST-FLOOD": 1, "dropped": 49}
    table.clock.advance_us(DEAF_US - 1)
    table.gateway.receive(1, HELLO)
    assert table.answers() == []
    table.clock.advance_us(1)
    table.gateway.receive(1, HELLO)
    assert table.answer()["ok"] is True


@pytest.mark.parametrize("payload", [HELLO, b"{", b"x" * 100_000, json.dumps(stake("s", 1)).encode()])
def test_message_of_any_kind_counts_and_costs_the_other_posts_nothing(table: Table, payload: bytes) -> None:
    for _ in range(5_000):
        table.gateway.receive(1, payload)
    assert table.gateway.counts["dropped"] == 5_000 - MESSAGES_AT_ONCE - 1
    table.sent.clear()
    table.gateway.receive(2, HELLO)
    assert table.answer()["ok"] is True


def test_flood_without_a_readable_id_is_told_without_one(table: Table) -> None:
    for _ in range(MESSAGES_AT_ONCE + 1):
        table.gateway.receive(1, b"{")
    assert table.answers()[-1].keys() == {"ok", "code", "message", "message_en"}


def test_post_at_the_permitted_pace_is_heard_for_ever(table: Table) -> None:
    for _ in range(20 * MESSAGES_AT_ONCE):
        table.ask(1, id="h", do="hello")
    assert table.gateway.counts == {}


@given(st.lists(st.tuples(st.integers(0, 2_000_000), st.integers(1, 400)), max_size=12))
@settings(max_examples=60)
def test_post_is_never_read_more_than_its_burst_and_its_pace_allow(bursts: list[tuple[int, int]]) -> None:
    table = Table()
    read_at_us: list[int] = []
    for pause_us, count in bursts:
        table.clock.advance_us(pause_us)
        table.sent.clear()
        for _ in range(count):
            table.gateway.receive(1, HELLO)
        read_at_us += [table.clock.now_us] * sum(b'"ok":true' in payload for _, payload in table.sent)
    for first, began_us in enumerate(read_at_us):
        for last in range(first, len(read_at_us)):
            allowed = MESSAGES_AT_ONCE + (read_at_us[last] - began_us) * MESSAGES_PER_S // 1_000_000
            assert last - first + 1 <= allowed + 1


# ── Bad messages (test_wire.py has them all) ──────────────────────────────────────────────────────────────────────────


def test_bad_message_is_answered_with_its_id_counted_and_never_reaches_the_table(table: Table) -> None:
    table.ask(1, **stake("s1", 1, ("rouge", -200)))
    reply = table.answer()
    assert (reply["id"], reply["ok"], reply["code"]) == ("s1", False, "E-POST-FIELD")
    assert reply["field"] == "stakes[0].cents"
    assert len(table.inbox) == 0
    assert table.gateway.counts == {"E-POST-FIELD": 1}


def test_bad_message_is_not_remembered_and_its_id_may_be_used(table: Table) -> None:
    table.ask(1, **stake("s1", 0))
    table.ask(1, **stake("s1", 1))
    table.commit()
    assert [reply["ok"] for reply in table.answers()] == [False, True]


@pytest.mark.parametrize("post", [0, -1, POSTS + 1])
def test_message_of_a_post_that_the_table_has_not_is_counted_and_dropped(table: Table, post: int) -> None:
    table.ask(post, **stake("s1", 1))
    assert table.answers() == []
    assert table.gateway.counts == {"E-POST-UNKNOWN": 1}


@given(st.binary(max_size=200) | st.text(st.sampled_from('{}[]":,\\ud8eE+-.019 tfn'), max_size=60).map(str.encode))
@settings(max_examples=300)
def test_message_of_any_bytes_is_answered_and_never_reaches_the_table(payload: bytes) -> None:
    table = Table()
    table.gateway.receive(1, payload)
    assert table.answer()["ok"] is False
    assert len(table.inbox) == 0
