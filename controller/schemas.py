"""What may stand on the wire: posts' requests, signed orders, and the answers to both.

Nothing is guessed: an unknown field, a number in quotes, ``true`` for 1 or ``2.0`` for 2 is refused. Numbers are from
1 to 2^53 - 1, which every JSON reader holds exactly (RFC 7493). Names are of letters, digits and a few signs, so that
no text of a post needs an escape.

The same models give the JSON Schemas (2020-12) that are published for those who write posts and central systems.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

STAKES_BOUND = 64
"""Stakes in one message."""

RANDOM_POCKETS_BOUND = 10
"""Pockets in one random combination."""

NUMBER_BOUND = 2**53 - 1
"""The largest number on the wire (RFC 7493, 2.2)."""

IDENTIFIER = r"^[A-Za-z0-9._:-]{1,64}$"
"""What a post may call a message, and the house a player."""

NAME = r"^[a-z0-9-]{1,48}$"
"""What a bet or an announcement may be called."""

POCKET = r"^(0|00|[1-9]|[12][0-9]|3[0-6])$"
"""The pockets of both wheels; the game refuses the double zero on the wheel that has none."""

REASON = r"^[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,199}$"
"""One line of text: no control character, and no space first."""

BADGE = r"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$"
"""A badge number."""

VERIFIER_KEY = r"^[a-z0-9.-]{1,253}/personne/[A-Za-z0-9-]{1,32}\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{44}$"
"""A person's verifier key."""

SIGNATURE_LINE = r"^\u2014 [a-z0-9.-]{1,253}/personne/[A-Za-z0-9-]{1,32} [A-Za-z0-9+/=]{92}$"
"""A person's signature line in a signed note."""

SIGNATURE_LINES_BOUND = 4
"""Signature lines in one order: the law never asks for more than two persons."""

CREDIT_BOUND_CENTS = 10_000_000_000
"""The most that one order may load on a post: a hundred million euros is a mistake, and no sum of such overflows."""

Identifier: TypeAlias = Annotated[str, Field(pattern=IDENTIFIER)]
Name: TypeAlias = Annotated[str, Field(pattern=NAME)]
Pocket: TypeAlias = Annotated[str, Field(pattern=POCKET)]
Reason: TypeAlias = Annotated[str, Field(pattern=REASON)]
Badge: TypeAlias = Annotated[str, Field(pattern=BADGE)]
VerifierKey: TypeAlias = Annotated[str, Field(pattern=VERIFIER_KEY)]
SignatureLine: TypeAlias = Annotated[str, Field(pattern=SIGNATURE_LINE)]
Number: TypeAlias = Annotated[int, Field(gt=0, le=NUMBER_BOUND)]
Index: TypeAlias = Annotated[int, Field(ge=0)]


def _say_absent(schema: dict[str, Any]) -> None:
    """An optional field is left out, never null."""
    del schema["default"]


_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class Wire(BaseModel):
    """Base of all that is read or written on the wire."""

    model_config = _STRICT


# ── A post asks ───────────────────────────────────────────────────────────────────────────────────────────────────────


class SitRequest(Wire):
    """A player takes the post. ``player`` is the house's identifier of him; only its salted digest is certified."""

    id: Identifier
    do: Literal["sit"]
    player: Identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeLine:
    """An amount, in cents, on one bet of the layout."""

    __pydantic_config__ = _STRICT
    bet: Name
    cents: Number


class StakeRequest(Wire):
    """Stake on bets of the layout in round ``round``, all or nothing."""

    id: Identifier
    do: Literal["stake"]
    round: Number
    stakes: Annotated[list[StakeLine], Field(min_length=1, max_length=STAKES_BOUND)]


class AnnounceRequest(Wire):
    """Stake a classic announcement with ``cents`` on each piece."""

    id: Identifier
    do: Literal["announce"]
    round: Number
    announcement: Name
    cents: Number


class RandomRequest(Wire):
    """Stake ``cents`` en plein on each of ``count`` different pockets that the table draws."""

    id: Identifier
    do: Literal["random"]
    round: Number
    cents: Number
    count: Annotated[int, Field(gt=0, le=RANDOM_POCKETS_BOUND)]


class TakeBackRequest(Wire):
    """Take back all stakes of this post in round ``round``."""

    id: Identifier
    do: Literal["take-back"]
    round: Number


class MinimumRequest(Wire):
    """Fix the value of this post's pieces, in cents."""

    id: Identifier
    do: Literal["minimum"]
    cents: Number


class PayoutRequest(Wire):
    """The "paiement" key: leave the post and be paid at the desk."""

    id: Identifier
    do: Literal["payout"]


class AwayRequest(Wire):
    """The player leaves the post for a while."""

    id: Identifier
    do: Literal["away"]


class BackRequest(Wire):
    """The player is back at the post."""

    id: Identifier
    do: Literal["back"]


class HelloRequest(Wire):
    """Ask where the table stands: round, phase, credit of this post. Nothing is certified for it."""

    id: Identifier
    do: Literal["hello"]


RoundRequest: TypeAlias = StakeRequest | AnnounceRequest | RandomRequest | TakeBackRequest
"""What names the round that it is meant for, and is refused in any other."""

CertifiedRequest: TypeAlias = RoundRequest | SitRequest | MinimumRequest | PayoutRequest | AwayRequest | BackRequest
"""What is decided by the table and answered once it is certified."""

PostMessage: TypeAlias = Annotated[CertifiedRequest | HelloRequest, Field(discriminator="do")]
"""Everything a post may send."""

VERBS = ("sit", "stake", "announce", "random", "take-back", "minimum", "payout", "away", "back", "hello")
"""What ``do`` may be."""


# ── A person orders ───────────────────────────────────────────────────────────────────────────────────────────────────


class ChallengeRequest(Wire):
    """Ask for a nonce to sign. ``id`` comes back in the answer."""

    ask: Literal["challenge"]
    id: Identifier


class Challenge(Wire):
    """A nonce of this table and this boot, good for one order within ``expires_s`` seconds."""

    id: Identifier
    nonce: Annotated[str, Field(pattern="^[0-9a-f]{48}$")]
    boot: str
    origin: str
    expires_s: Number


class StatementRequest(Wire):
    """Ask for the statement of a closed séance that waits to be certified: it comes again on up/statement."""

    ask: Literal["statement"]
    id: Identifier
    seance: Identifier


class StatementReply(Wire):
    """The statement is published once more, in ``parts`` messages."""

    id: Identifier
    ok: Literal[True]
    seance: Identifier
    parts: Number


class NoArguments(Wire):
    """The verb says it all."""


class PocketArguments(Wire):
    """The pocket that the person read in the cylinder."""

    pocket: Pocket


class ReasonArguments(Wire):
    """Why, in one line of at most 200 characters."""

    reason: Reason


class CreditArguments(Wire):
    """The post to load, and the money received for it in cents."""

    post: Number
    cents: Annotated[int, Field(gt=0, le=CREDIT_BOUND_CENTS)]


class PostArguments(Wire):
    """The post concerned."""

    post: Number


class ConsignmentArguments(Wire):
    """The number of the consigned amount."""

    consignment: Number


class CertifyArguments(Wire):
    """The séance, and the signature lines of the persons who certify its statement, as they stand in a signed note."""

    seance: Identifier
    lines: Annotated[list[SignatureLine], Field(min_length=1, max_length=SIGNATURE_LINES_BOUND)]


class EnrolArguments(Wire):
    """The person's badge, role, and verifier key, named after the house and the badge."""

    badge: Badge
    role: Literal["director", "croupier", "cashier", "technician"]
    vkey: VerifierKey


class RevokeArguments(Wire):
    """The person's badge, and why, in one line of at most 200 characters."""

    badge: Badge
    reason: Reason


# ── The table answers ─────────────────────────────────────────────────────────────────────────────────────────────────


class HelloReply(Wire):
    """Where the table stands. It has no ``index``: it is not certified."""

    id: Identifier
    ok: Literal[True]
    data: dict[str, Any]


class RejectedReply(Wire):
    """The message was not understood or not taken: nothing was decided or certified.

    ``id`` is absent when none could be read; ``field`` is absent when no single field is at fault.
    """

    id: Identifier | SkipJsonSchema[None] = Field(default=None, json_schema_extra=_say_absent)
    ok: Literal[False]
    code: str
    message: str
    message_en: str
    field: str | SkipJsonSchema[None] = Field(default=None, json_schema_extra=_say_absent)


class CertifiedReply(Wire):
    """The request was carried out. ``kind`` and ``data`` are those of the fact that entry ``index`` certifies."""

    id: Identifier
    ok: Literal[True]
    index: Index
    kind: str
    data: dict[str, Any]


class RefusedReply(Wire):
    """The request was decided, and refused; the refusal itself is certified. ``code`` is the reason in ``data``."""

    id: Identifier
    ok: Literal[False]
    index: Index
    kind: str
    code: str
    data: dict[str, Any]


class PostNews(Wire):
    """What happened to a post that did not ask: a result, credit from the desk, a pay-out at the closing."""

    ok: Literal[True]
    index: Index
    kind: str
    data: dict[str, Any]


class RejectedOrderReply(Wire):
    """The order was not taken: nothing was decided or certified. ``nonce`` or ``id`` is there when it could be read."""

    nonce: str | SkipJsonSchema[None] = Field(default=None, json_schema_extra=_say_absent)
    id: Identifier | SkipJsonSchema[None] = Field(default=None, json_schema_extra=_say_absent)
    ok: Literal[False]
    code: str
    message: str
    message_en: str


class CertifiedOrderReply(Wire):
    """The order was carried out; see ``CertifiedReply``."""

    nonce: str
    ok: Literal[True]
    index: Index
    kind: str
    data: dict[str, Any]


class RefusedOrderReply(Wire):
    """The order was decided, and refused; see ``RefusedReply``."""

    nonce: str
    ok: Literal[False]
    index: Index
    kind: str
    code: str
    data: dict[str, Any]


OrderArguments: TypeAlias = (
    NoArguments
    | PocketArguments
    | ReasonArguments
    | CreditArguments
    | PostArguments
    | ConsignmentArguments
    | CertifyArguments
    | EnrolArguments
    | RevokeArguments
)
PostReply: TypeAlias = CertifiedReply | RefusedReply | HelloReply | RejectedReply
OrderReply: TypeAlias = CertifiedOrderReply | RefusedOrderReply | Challenge | StatementReply | RejectedOrderReply


# ── The published schemas ─────────────────────────────────────────────────────────────────────────────────────────────

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PUBLISHED: Mapping[str, tuple[TypeAdapter[Any], str]] = {
    "post-request": (
        TypeAdapter(PostMessage),
        "What a post sends on post/<n>/in. Numbers are written without a decimal point, and no key stands twice.",
    ),
    "post-reply": (TypeAdapter(PostReply), "What a post is told on post/<n>/out about a request that it sent."),
    "post-news": (TypeAdapter(PostNews), "What a post is told on post/<n>/out without having asked: there is no id."),
    "order-challenge-request": (
        TypeAdapter(ChallengeRequest),
        "What a person's device sends on down/command to get something to sign. Orders themselves are signed notes.",
    ),
    "order-statement-request": (
        TypeAdapter(StatementRequest),
        "What is sent on down/command to get the statement of a closed séance once more on up/statement.",
    ),
    "order-arguments": (
        TypeAdapter(OrderArguments),
        "The last line of an order's text, after its verb: canonical JSON (RFC 8785), one of these for each verb.",
    ),
    "order-reply": (TypeAdapter(OrderReply), "What is answered on up/reply to a challenge request or to an order."),
}


def json_schemas() -> dict[str, dict[str, Any]]:
    """Each published schema by name; ``docs/schemas/<name>.json`` holds it."""
    return {
        name: adapter.json_schema() | {"$schema": DIALECT, "title": name, "description": description}
        for name, (adapter, description) in _PUBLISHED.items()
    }
