"""From bytes to typed messages, and from certified entries to answers: what posts and orders share.

    bytes ──size──► JSON, types, bounds ──► no key twice ──► a message, or one WireError: code, field, sentence

JSON lets a key stand twice, and readers differ in which one they take, so such a message is refused. One count shows
it: in a message that passed all else no text holds a quotation mark (the patterns of ``controller.schemas`` forbid it),
hence its quotation marks are two for each key and two for each text. A key that stands twice brings at least two more.

An answer is built from the certified entry and from nothing else, so it is the same today, after a repeated request,
and after a restart.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from controller.codec import INPUT, INPUT_AT
from controller.schemas import (
    BADGE,
    IDENTIFIER,
    NAME,
    POCKET,
    REASON,
    SIGNATURE_LINE,
    VERBS,
    VERIFIER_KEY,
    CertifiedRequest,
    HelloRequest,
    PostMessage,
    StakeRequest,
)

POST_MESSAGE_BOUND = 8_192
"""Bytes of a post's message: more than 64 stakes with the longest names and amounts need."""

FIELD_NAME_BOUND = 64
"""Characters of a field's name that an answer repeats, for the name may be a stranger's."""

_TEXTS_IN_A_STAKE = 3  # the keys "bet" and "cents", and the bet's name
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_IDENTIFIER = re.compile(IDENTIFIER)
_REFUSED_KIND = re.compile(r"\.refused\.v[0-9]+$")
_POST_MESSAGE: TypeAdapter[CertifiedRequest | HelloRequest] = TypeAdapter(PostMessage)

Message = TypeVar("Message", bound=BaseModel)


class WireError(Exception):
    """A message that is not taken. ``code`` is explained by ``tablectl explain``; both sentences say the same."""

    def __init__(self, code: str, french: str, english: str, field: str | None = None) -> None:
        super().__init__(f"{code} {english}")
        self.code = code
        self.french = french
        self.english = english
        self.field = field

    def reply(self, about: Mapping[str, str]) -> bytes:
        """The answer to whoever sent it; ``about`` holds the identifiers of the message that could be read."""
        said = {"ok": False, "code": self.code, "message": self.french, "message_en": self.english}
        return to_json({**about, **said} if self.field is None else {**about, **said, "field": self.field})


def to_json(document: Mapping[str, Any]) -> bytes:
    """Compact JSON in UTF-8."""
    return _encode(document).encode()


# ── In ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_post_message(payload: bytes) -> CertifiedRequest | HelloRequest:
    """What a post asked. Raises WireError for everything else, whatever the bytes."""
    if len(payload) > POST_MESSAGE_BOUND:
        raise WireError(
            "E-POST-OVERSIZED",
            f"Le message compte {len(payload)} octets ; {POST_MESSAGE_BOUND} sont permis.",
            f"The message has {len(payload)} bytes; {POST_MESSAGE_BOUND} are permitted.",
        )
    return decode(_POST_MESSAGE, payload)


def decode(kind: TypeAdapter[Message], payload: bytes) -> Message:
    """A message of this kind, from JSON that says it in full and once. Raises WireError."""
    try:
        message = kind.validate_json(payload)
    except ValidationError as error:
        raise explain(error) from None
    if payload.count(b'"') != 2 * _texts(message):
        french, english = "Un champ figure deux fois dans le message.", "A field stands twice in the message."
        raise WireError("E-POST-KEY-TWICE", french, english)
    return message


def _texts(message: BaseModel) -> int:
    """How many keys and texts the JSON of ``message`` has."""
    values = vars(message).values()
    texts = len(values) + sum(type(value) is str for value in values)
    return texts + _TEXTS_IN_A_STAKE * len(message.stakes) if isinstance(message, StakeRequest) else texts


def request_id(payload: bytes) -> str | None:
    """The ``id`` of a message that is otherwise refused, when one can be read."""
    if len(payload) > POST_MESSAGE_BOUND:
        return None
    try:
        document = from_json(payload)
    except ValueError:
        return None
    found = document.get("id") if isinstance(document, dict) else None
    return found if isinstance(found, str) and _IDENTIFIER.fullmatch(found) else None


def explain(error: ValidationError) -> WireError:
    """The first thing that is wrong, in one sentence for each language."""
    first = error.errors(include_url=False, include_input=False)[0]
    kind, context = first["type"], first.get("ctx", {})
    if kind in _WHOLE_MESSAGE:
        code, field, french, english = _WHOLE_MESSAGE[kind]
        return WireError(code, french, english, field)
    field = _place(first["loc"])
    french, english = _ONE_FIELD.get(kind, _ANY_FIELD)
    allowed = _ALLOWED.get(context.get("pattern", ""), ("", ""))
    values = {"field": field, **context}
    return WireError(
        "E-POST-FIELD", french.format(allowed=allowed[0], **values), english.format(allowed=allowed[1], **values), field
    )


def _place(loc: tuple[int | str, ...]) -> str:
    """``("stake", "stakes", 3, "cents")`` is ``stakes[3].cents``: the verb goes, and a long name is cut."""
    steps = loc[1:] if len(loc) > 1 and loc[0] in VERBS else loc
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:FIELD_NAME_BOUND]}" for step in steps)
    return place.removeprefix(".")


_VERBS_LISTED = ", ".join(VERBS)

_WHOLE_MESSAGE: Mapping[str, tuple[str, str | None, str, str]] = {
    kind: (code, field, french, english)
    for kinds, code, field, french, english in (
        (
            ("json_invalid", "json_type"),
            "E-POST-JSON",
            None,
            "Le message n'est pas du JSON en UTF-8.",
            "The message is not JSON in UTF-8.",
        ),
        (
            ("dict_type", "model_type", "model_attributes_type"),
            "E-POST-JSON",
            None,
            "Le message n'est pas un objet JSON.",
            "The message is not a JSON object.",
        ),
        (
            ("union_tag_not_found", "union_tag_invalid"),
            "E-POST-REQUEST-UNKNOWN",
            "do",
            f"Le champ « do » manque ou est inconnu ; il vaut l'un de : {_VERBS_LISTED}.",
            f'The field "do" is missing or unknown; it is one of: {_VERBS_LISTED}.',
        ),
    )
    for kind in kinds
}
"""What is wrong with the message as a whole, by pydantic's name for it: code, field, both sentences."""

_MISSING = ("Le champ « {field} » manque.", 'The field "{field}" is missing.')
_UNKNOWN = ("Le champ « {field} » est inconnu dans cette demande.", 'The field "{field}" is unknown in this request.')
_OBJECT = ("« {field} » doit être un objet JSON.", '"{field}" must be a JSON object.')
_ANY_FIELD = ("La valeur de « {field} » n'est pas permise.", 'The value of "{field}" is not permitted.')

_ONE_FIELD: Mapping[str, tuple[str, str]] = {
    "missing": _MISSING,
    "extra_forbidden": _UNKNOWN,
    "unexpected_keyword_argument": _UNKNOWN,
    "dataclass_type": _OBJECT,
    "int_type": (
        "« {field} » doit être un nombre entier, écrit sans guillemets ni décimales.",
        '"{field}" must be a whole number, written without quotes or decimals.',
    ),
    "greater_than": ("« {field} » doit être supérieur à {gt}.", '"{field}" must be greater than {gt}.'),
    "less_than_equal": ("« {field} » ne doit pas dépasser {le}.", '"{field}" must not exceed {le}.'),
    "string_type": ("« {field} » doit être un texte.", '"{field}" must be a text.'),
    "string_pattern_mismatch": ("« {field} » attend : {allowed}.", '"{field}" takes: {allowed}.'),
    "list_type": ("« {field} » doit être une liste.", '"{field}" must be a list.'),
    "too_short": (
        "« {field} » doit compter au moins {min_length} élément.",
        '"{field}" must have at least {min_length} item.',
    ),
    "too_long": (
        "« {field} » doit compter au plus {max_length} éléments.",
        '"{field}" must have at most {max_length} items.',
    ),
    "literal_error": ("« {field} » doit valoir {expected}.", '"{field}" must be {expected}.'),
}
"""What is wrong with one field, by pydantic's name for it."""

_ALLOWED: Mapping[str, tuple[str, str]] = {
    IDENTIFIER: (
        "1 à 64 lettres sans accent, chiffres ou signes . _ : -",
        "1 to 64 unaccented letters, digits or signs . _ : -",
    ),
    NAME: ("1 à 48 minuscules sans accent, chiffres ou tirets", "1 to 48 unaccented small letters, digits or dashes"),
    POCKET: ("0, 00, ou 1 à 36", "0, 00, or 1 to 36"),
    BADGE: ("1 à 32 lettres sans accent, chiffres ou tirets", "1 to 32 unaccented letters, digits or dashes"),
    VERIFIER_KEY: ("la clé publique d'une personne", "a person's verifier key"),
    SIGNATURE_LINE: ("la ligne de signature d'une personne", "a person's signature line"),
    REASON: ("1 à 200 signes sur une ligne", "1 to 200 characters on one line"),
}
"""What each pattern permits, in words."""


# ── Out ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_refusal(kind: str) -> bool:
    """Whether entries of this kind certify that something was refused."""
    return _REFUSED_KIND.search(kind) is not None


def certified_reply(about: Mapping[str, str], leaf: bytes) -> bytes:
    """The answer that the certified entry ``leaf`` gives to the request or order that ``about`` identifies.

    A refusal is certified too: it is an answer with ``ok`` false and the reason as its code. The input that the entry
    keeps for replay is left out: the sender knows it.
    """
    entry = json.loads(leaf)
    index, kind, data = int(entry["id"]), entry["type"], entry["data"]
    data.pop(INPUT, None)
    data.pop(INPUT_AT, None)
    if is_refusal(kind):
        refused = {"ok": False, "index": index, "kind": kind, "code": data["reason"], "data": data}
        return to_json({**about, **refused})
    return to_json({**about, "ok": True, "index": index, "kind": kind, "data": data})
