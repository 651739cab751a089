"""The players' posts: each message is checked, decided once, and answered when what it led to is certified.

    payload ──too fast?──► decode ──► already known? ──yes──► the same answer, from the same certified entry
                                           │ no
                                           └─► inbox ──► decided, certified ──► answer from the entry ──► remembered

**Not faster than a player.** A post may send MESSAGES_PER_S, and MESSAGES_AT_ONCE before that counts. The message that
goes beyond is told E-POST-FLOOD, and whatever follows within one second is dropped unread, so that a post gone mad
costs the others nothing. That is the only limit for what names no round (hello, sit, minimum, payout, away, back): such
a post is heard again a second later, also when no round begins.

**Once.** A post names each message (``id``). MQTT may deliver a message twice, and a post that got no answer sends it
again; neither may act twice. While a message is in flight its repeats are absorbed, and afterwards they get the answer
again.

**What is forgotten cannot act.** Memory is bounded: the last REQUESTS_REMEMBERED decided ids of each post, and as many
of those that name no round. Staking and taking back name their round, and the game refuses every round but the present
one, so such an id need not be remembered longer than its round lasts. It is not forgotten sooner, because of what one
post can get decided in one round:

    in flight when the round begins     ≤ REQUESTS_PER_ROUND
    + taken while the round lasts       ≤ REQUESTS_PER_ROUND
    = decided in the round              ≤ REQUESTS_REMEMBERED

An id is forgotten when REQUESTS_REMEMBERED newer ones are decided. With itself that is one more than a round can hold,
so its round is over. Requests in flight when a round begins count in that round too, which bounds the first term; those
found in the journal at the start that name the present round count as well, so that a restart gives no fresh allowance.
Those that name another round moved nothing in this one: they are remembered apart, and push none of these out.

Requests that move no stake name no round. One that comes back from beyond the memory is decided as a new one, on the
post as it is then; it can neither pay nor take more than the player then has.

**Refusals are certified, but not without end.** An entry that refuses 64 stakes holds them all. After
REFUSALS_PER_ROUND a post's requests that name a round are told E-POST-FLOOD, uncertified, until the next round. Those
in flight by then are still decided.

**After a restart** the memory is rebuilt from the certified entries, which name the post and the id: what was certified
is answered, what was not is new. Nothing else is stored.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from controller.codec import INPUT
from controller.delivery.wire import WireError, certified_reply, decode_post_message, is_refusal, request_id, to_json
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
    RoundRequest,
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

MESSAGES_PER_S = 100
"""Messages of one post that are read in a second, whatever they are. A player's hand makes a few."""

MESSAGES_AT_ONCE = 200
"""Messages that a post may send in one burst: all that it asked anew after it was cut off, for instance."""

DEAF_US = 1_000_000
"""How long a post that sent more is not heard."""

REQUESTS_PER_ROUND = 1_024
"""Requests naming a round that are taken from one post in one round; a player makes a few dozen."""

REQUESTS_REMEMBERED = 2 * REQUESTS_PER_ROUND
"""Decided requests of one post whose answer can be given again (see above: why twice)."""

REFUSALS_PER_ROUND = 64
"""Refused requests naming a round, of one post in one round, after which no more are taken in it."""


class Pace:
    """How fast one post speaks: a bucket of MESSAGES_AT_ONCE that fills again at MESSAGES_PER_S.

    It holds one instant, when the bucket will be full again; each message moves that on by its share of a second.
    """

    def __init__(self) -> None:
        self._full_again_us = 0
        self._deaf_until_us = 0

    def deaf(self, now_us: int) -> bool:
        """Whether the post is not heard now."""
        return now_us < self._deaf_until_us

    def spend(self, now_us: int) -> bool:
        """Take one message from the bucket. False when it is empty: the post is then not heard for DEAF_US."""
        share_us = 1_000_000 // MESSAGES_PER_S
        full_again_us = max(self._full_again_us, now_us) + share_us
        if full_again_us - now_us > MESSAGES_AT_ONCE * share_us:
            self._deaf_until_us = now_us + DEAF_US
            return False
        self._full_again_us = full_again_us
        return True


class Memory:
    """What one post has asked: what is in flight, what was decided by which entry, how much in the present round."""

    def __init__(self) -> None:
        self.in_flight: dict[str, bool] = {}
        """The requests on their way to the table, and whether each names a round."""
        self._of_rounds: dict[str, int] = {}
        self._of_no_round: dict[str, int] = {}
        self._round = 0
        self._taken = 0
        self._refused = 0

    @property
    def hindrance(self) -> WireError | None:
        """Why no further request that names a round is taken in this round, if none is."""
        if self._taken >= REQUESTS_PER_ROUND:
            return _TOO_MANY
        return _TOO_MANY_REFUSED if self._refused >= REFUSALS_PER_ROUND else None

    def enter(self, round_now: int) -> None:
        """Begin a new count when the round is a new one."""
        if round_now != self._round:
            self._round, self._taken, self._refused = round_now, sum(self.in_flight.values()), 0

    def entry_of(self, request: str) -> int | None:
        """The index of the entry that decided ``request``, if it is remembered."""
        index = self._of_rounds.get(request)
        return self._of_no_round.get(request) if index is None else index

    def take(self, request: str, *, of_round: bool) -> None:
        """``request`` is on its way to the table; ``of_round`` says that it names a round."""
        self.in_flight[request] = of_round
        self._taken += of_round

    def drop(self, request: str) -> None:
        """Nothing was decided about ``request``."""
        del self.in_flight[request]

    def decide(self, request: str, index: int, *, refused: bool) -> None:
        """Entry ``index`` decided ``request``."""
        of_round = self.in_flight.pop(request)
        self._refused += of_round and refused
        decided = self._of_rounds if of_round else self._of_no_round
        decided[request] = index
        if len(decided) > REQUESTS_REMEMBERED:
            del decided[next(iter(decided))]

    def find(self, request: str, index: int, *, of_round: bool, refused: bool) -> None:
        """Entry ``index`` of the journal names ``request``; the first that does is its answer.

        ``of_round`` says that it names the present round.
        """
        if self.entry_of(request) is None:
            self.take(request, of_round=of_round)
            self.decide(request, index, refused=refused)


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
        self._paces = {post: Pace() for post in self._memories}
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
        """How many messages were ``taken``, ``repeated``, ``dropped`` unread, or rejected, by code; for the status."""

    def receive(self, post: int, payload: bytes) -> None:
        """A message came from post ``post``. Whatever the bytes, it is counted and nothing is raised.

        It is answered too, unless it came within a second of one that was told that the post is too fast.
        """
        memory = self._memories.get(post)
        if memory is None:
            self.counts["E-POST-UNKNOWN"] += 1
            return
        pace, now_us = self._paces[post], self._clock.mono_us()
        if pace.deaf(now_us):
            self.counts["dropped"] += 1
        elif pace.spend(now_us):
            self._read(post, memory, payload)
        else:
            self._reject(post, request_id(payload), _TOO_FAST)

    def _read(self, post: int, memory: Memory, payload: bytes) -> None:
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
        entry = json.loads(leaf)
        data = entry["data"]
        memory, request = self._memories.get(data.get("post")), data.get("request")
        if memory is not None and request:  # it is empty when the house, not the player, acted for the post
            present = self._round_now()
            memory.enter(present)
            memory.find(request, index, of_round=_round_named(data) == present, refused=is_refusal(entry["type"]))

    def _take(self, post: int, memory: Memory, message: CertifiedRequest) -> None:
        of_round = isinstance(message, RoundRequest)
        memory.enter(self._round_now())
        if of_round and (hindrance := memory.hindrance):
            self._reject(post, message.id, hindrance)
            return
        try:
            self._inbox.put(self._signal(post, message), partial(self._answer, post, memory, message.id))
        except InboxFullError:
            self._reject(post, message.id, _INBOX_FULL)
            return
        memory.take(message.id, of_round=of_round)
        self.counts["taken"] += 1

    def _answer(self, post: int, memory: Memory, request: str, outcome: Outcome) -> None:
        for index, fact in enumerate(outcome.facts, outcome.first_index):
            if getattr(fact, "request", None) == request and getattr(fact, "post", None) == post:
                memory.decide(request, index, refused=is_refusal(fact.KIND))
                self._send(post, certified_reply({"id": request}, self._recall(index)))
                return
        memory.drop(request)
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


def _round_named(data: Mapping[str, Any]) -> int | None:
    """The round that an entry is about. A refusal does not name it, but the refused request that it keeps does."""
    found: int | None = data["round"] if "round" in data else data.get(INPUT, {}).get("round")
    return found


_TOO_FAST = WireError(
    "E-POST-FLOOD",
    f"Le poste envoie plus de {MESSAGES_PER_S} messages par seconde ; la table ne le lit plus pendant une seconde. "
    "Renvoyez ensuite ce qui n'a pas eu de réponse.",
    f"The post sends more than {MESSAGES_PER_S} messages a second; the table does not read it for one second. "
    "Then send again what got no answer.",
)
_TOO_MANY = WireError(
    "E-POST-FLOOD",
    f"Le poste a déjà envoyé {REQUESTS_PER_ROUND} demandes pendant ce coup ; attendez le suivant.",
    f"The post has already sent {REQUESTS_PER_ROUND} requests in this round; wait for the next one.",
)
_TOO_MANY_REFUSED = WireError(
    "E-POST-FLOOD",
    f"La table a déjà refusé {REFUSALS_PER_ROUND} demandes du poste pendant ce coup ; attendez le suivant.",
    f"The table has already refused {REFUSALS_PER_ROUND} requests of the post in this round; wait for the next one.",
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
