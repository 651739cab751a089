"""The players' posts: each message is checked, decided once, and answered when what it led to is certified.

    payload ──decode──► already known? ──yes──► the same answer, from the same certified entry
                              │ no
                              └─► inbox ──► decided, certified ──► answer from the entry ──► remembered

**Once.** A post names each message (``id``). MQTT may deliver a message twice, and a post that got no answer sends it
again; neither may act twice. While a message is in flight its repeats are absorbed, and afterwards they get the answer
again.

**What is forgotten cannot act.** Memory is bounded: the last REQUESTS_REMEMBERED decided ids of each post. Staking and
taking back name their round, and the game refuses every round but the present one, so such an id need not be remembered
longer than its round lasts. It is not forgotten sooner, because of what one post can get decided in one round:

    in flight when the round begins     ≤ REQUESTS_PER_ROUND
    + taken while the round lasts       ≤ REQUESTS_PER_ROUND
    = decided in the round              ≤ REQUESTS_REMEMBERED

An id is forgotten when REQUESTS_REMEMBERED newer ones are decided. With itself that is one more than a round can hold,
so its round is over. Requests in flight when a round begins count in that round too, which bounds the first term; those
found in the journal at the start count as well, so that a restart gives no fresh allowance.

Requests that move no stake (sit, minimum, payout, away, back) name no round. One that comes back from beyond the memory
is decided as a new one, on the post as it is then; it can neither pay nor take more than the player then has.

**After a restart** the memory is rebuilt from the certified entries, which name the post and the id: what was certified
is answered, what was not is new. Nothing else is stored.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from controller.delivery.wire import WireError, certified_reply, decode_post_message, request_id, to_json
from controller.entropy import Entropy
from controller.inbox import Inbox, InboxFullError, Outcome
from controller.schemas import (
    AnnounceRequest,
    AwayRequest,
    BackRequest,
    CertifiedRequest,
    HelloRequest,
    MinimumRequest,
    PayoutRequest,
    RandomRequest,
    SitRequest,
    StakeRequest,
    TakeBackRequest,
)
from drivers.clock import Clock
from games.money import Cents
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

REQUESTS_PER_ROUND = 1_024
"""Requests of one post that are taken in one round; a player makes a few dozen. One more is told E-POST-FLOOD."""

REQUESTS_REMEMBERED = 2 * REQUESTS_PER_ROUND
"""Decided requests of one post whose answer can be given again (see above: why twice)."""


class Memory:
    """What one post has asked: what is in flight, what was decided by which entry, how much in the present round."""

    def __init__(self) -> None:
        self.in_flight: set[str] = set()
        self._decided: dict[str, int] = {}
        self._round = 0
        self._taken = 0

    @property
    def full(self) -> bool:
        """Whether the post has had its allowance of this round."""
        return self._taken >= REQUESTS_PER_ROUND

    def enter(self, round_now: int) -> None:
        """Begin a new count when the round is a new one."""
        if round_now != self._round:
            self._round, self._taken = round_now, len(self.in_flight)

    def entry_of(self, request: str) -> int | None:
        """The index of the entry that decided ``request``, if it is remembered."""
        return self._decided.get(request)

    def take(self, request: str) -> None:
        """``request`` is on its way to the table."""
        self.in_flight.add(request)
        self._taken += 1

    def decide(self, request: str, index: int) -> None:
        """Entry ``index`` decided ``request``."""
        self.in_flight.discard(request)
        self._decided[request] = index
        if len(self._decided) > REQUESTS_REMEMBERED:
            del self._decided[next(iter(self._decided))]

    def find(self, request: str, index: int) -> None:
        """Entry ``index`` of the journal names ``request``; the first that does is its answer."""
        if request not in self._decided:
            self.take(request)
            self.decide(request, index)


class PostsGateway:
    """Between the posts' topics and the inbox. Only the event loop's thread may call it.

    ``digest_player`` salts and hashes what identifies a player; ``recall`` reads a certified leaf by its index;
    ``round_now`` is the number of the present, or last, round; ``greet`` says where a post stands, as plain JSON; and
    ``send`` gives a payload to a post.
    """

    def __init__(
        self,
        *,
        posts: int,
        pockets: Sequence[str],
        inbox: Inbox,
        clock: Clock,
        entropy: Entropy,
        digest_player: Callable[[str], str],
        recall: Callable[[int], bytes],
        round_now: Callable[[], int],
        greet: Callable[[int], Mapping[str, Any]],
        send: Callable[[int, bytes], None],
    ) -> None:
        self._memories = {post: Memory() for post in range(1, posts + 1)}
        self._pockets = tuple(pockets)
        self._inbox = inbox
        self._clock = clock
        self._entropy = entropy
        self._digest_player = digest_player
        self._recall = recall
        self._round_now = round_now
        self._greet = greet
        self._send = send
        self.counts: Counter[str] = Counter()
        """How many messages were ``taken``, ``repeated``, or rejected, by code. Since the start; for the status."""

    def receive(self, post: int, payload: bytes) -> None:
        """A message came from post ``post``. Whatever the bytes, it is answered and counted, and nothing is raised."""
        memory = self._memories.get(post)
        if memory is None:
            self.counts["E-POST-UNKNOWN"] += 1
            return
        try:
            message = decode_post_message(payload)
        except WireError as error:
            self._reject(post, request_id(payload), error)
            return
        if isinstance(message, HelloRequest):
            self._send(post, to_json({"id": message.id, "ok": True, "data": self._greet(post)}))
        elif message.id in memory.in_flight:
            self.counts["repeated"] += 1
        elif (index := memory.entry_of(message.id)) is not None:
            self.counts["repeated"] += 1
            self._send(post, certified_reply({"id": message.id}, self._recall(index)))
        else:
            self._take(post, memory, message)

    def remember(self, leaf: bytes, index: int) -> None:
        """At the start: entry ``index`` of the journal, in order, once the state has folded it.

        The daemon gives every entry since the open round began, or more.
        """
        if b'"request":"' not in leaf:
            return
        data = json.loads(leaf)["data"]
        memory, request = self._memories.get(data.get("post")), data.get("request")
        if memory is not None and request:  # it is empty when the house, not the player, acted for the post
            memory.enter(self._round_now())
            memory.find(request, index)

    def _take(self, post: int, memory: Memory, message: CertifiedRequest) -> None:
        memory.enter(self._round_now())
        if memory.full:
            self._reject(post, message.id, _FLOOD)
            return
        try:
            self._inbox.put(self._signal(post, message), partial(self._answer, post, memory, message.id))
        except InboxFullError:
            self._reject(post, message.id, _INBOX_FULL)
            return
        memory.take(message.id)
        self.counts["taken"] += 1

    def _answer(self, post: int, memory: Memory, request: str, outcome: Outcome) -> None:
        for index, fact in enumerate(outcome.facts, outcome.first_index):
            if getattr(fact, "request", None) == request and getattr(fact, "post", None) == post:
                memory.decide(request, index)
                self._send(post, certified_reply({"id": request}, self._recall(index)))
                return
        memory.in_flight.discard(request)
        self._reject(post, request, _NOTHING_DECIDED)

    def _reject(self, post: int, request: str | None, error: WireError) -> None:
        self.counts[error.code] += 1
        self._send(post, error.reply({} if request is None else {"id": request}))

    def _signal(self, post: int, message: CertifiedRequest) -> PostRequest:
        """The input that the message asks for. The device's own draw is made here, and stands in the input."""
        at_us, request = self._clock.mono_us(), message.id
        match message:
            case StakeRequest():
                stakes = tuple([Stake(bet=line.bet, cents=Cents(line.cents)) for line in message.stakes])
                return PlaceStakes(at_us=at_us, post=post, request=request, round=message.round, stakes=stakes)
            case AnnounceRequest(round=number, announcement=name, cents=cents):
                return PlaceAnnouncement(
                    at_us=at_us, post=post, request=request, round=number, announcement=name, cents=Cents(cents)
                )
            case RandomRequest(round=number, cents=cents, count=count):
                drawn = tuple(self._pockets[at] for at in self._entropy.distinct(len(self._pockets), count))
                return PlaceRandom(
                    at_us=at_us, post=post, request=request, round=number, cents=Cents(cents), pockets=drawn
                )
            case TakeBackRequest(round=number):
                return TakeBack(at_us=at_us, post=post, request=request, round=number)
            case SitRequest(player=player):
                return Sit(at_us=at_us, post=post, request=request, player=self._digest_player(player))
            case MinimumRequest(cents=cents):
                return ChooseMinimum(at_us=at_us, post=post, request=request, cents=Cents(cents))
            case PayoutRequest():
                return CashOut(at_us=at_us, post=post, request=request)
            case AwayRequest():
                return StepAway(at_us=at_us, post=post, request=request)
            case BackRequest():
                return ComeBack(at_us=at_us, post=post, request=request)
            case _:
                assert_never(message)


_FLOOD = WireError(
    "E-POST-FLOOD",
    f"Le poste a déjà envoyé {REQUESTS_PER_ROUND} demandes pendant ce coup ; attendez le suivant.",
    f"The post has already sent {REQUESTS_PER_ROUND} requests in this round; wait for the next one.",
)
_INBOX_FULL = WireError(
    "E-INBOX-FULL",
    "La table est saturée et n'a pas pris la demande ; renvoyez-la telle quelle.",
    "The table is overloaded and did not take the request; send it again unchanged.",
)
_NOTHING_DECIDED = WireError(
    "E-POST-NO-EFFECT",
    "La demande ne change rien ; rien n'a été certifié.",
    "The request changes nothing; nothing was certified.",
)
