"""What other systems are promised: the schema of every entry and document, and the map of topics (AsyncAPI 3).

Schemas are made from the same type hints that the codec writes by, so they cannot promise anything else. The documents
``docs/schemas/*.json`` and ``docs/asyncapi.json`` are this module's output; tests hold against them what a table sends.
"""

import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, NewType, Union

from controller import schemas
from controller.codec import FACTS, INPUT, INPUT_AT, INPUT_KIND, INPUTS
from controller.delivery.topics import Topics
from controller.schemas import DIALECT

Schema = dict[str, Any]

INTEGER: Schema = {"type": "integer"}
TEXT: Schema = {"type": "string"}


def schema_of(hint: Any) -> Schema:
    """The JSON Schema of what the codec writes for a type."""
    if isinstance(hint, NewType):
        return schema_of(hint.__supertype__) | {"title": hint.__name__}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return schema_of(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if is_dataclass(hint):
        return _object(hint)
    if issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    return {bool: {"type": "boolean"}, int: INTEGER}.get(hint, TEXT)


def _object(cls: Any) -> Schema:
    hints = typing.get_type_hints(cls)
    always = [
        field.name
        for field in fields(cls)
        if field.default is MISSING and type(None) not in typing.get_args(hints[field.name])
    ]
    properties = {field.name: schema_of(hints[field.name]) for field in fields(cls)}
    return {"type": "object", "properties": properties, "required": always, "additionalProperties": False}


def _fact(kind: str, cls: Any) -> Schema:
    data = _object(cls)
    data["properties"] |= {INPUT: {"$ref": "#/$defs/input"}, INPUT_AT: INTEGER}
    data["description"] = (cls.__doc__ or "").strip()
    return {"properties": {"type": {"const": kind}, "data": data}}


def _input(name: str, cls: Any) -> Schema:
    described = _object(cls)
    described["properties"] |= {INPUT_KIND: {"const": name}}
    described["required"] = [*described["required"], INPUT_KIND]
    return described


def entry_schema() -> Schema:
    """An entry of the journal: a CloudEvents 1.0 object whose data depends on its type."""
    attributes = dict.fromkeys(("boot", "id", "mono", "prev", "seance", "source", "time", "tq", "type"), TEXT)
    return {
        "$schema": DIALECT,
        "title": "entry",
        "description": "One certified entry, as published on up/event: exactly these bytes are hashed and signed.",
        "type": "object",
        "properties": attributes | {"specversion": {"const": "1.0"}, "data": {"type": "object"}},
        "required": ["boot", "data", "id", "mono", "prev", "source", "specversion", "time", "tq", "type"],
        "additionalProperties": False,
        "oneOf": [_fact(kind, cls) for kind, cls in sorted(FACTS.items())],
        "$defs": {"input": {"oneOf": [_input(name, cls) for name, cls in sorted(INPUTS.items())]}},
    }


def _document(title: str, description: str, properties: Schema) -> Schema:
    return {
        "$schema": DIALECT,
        "title": title,
        "description": description,
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}

DISPLAY = _document(
    "display",
    "The public board, retained on up/display. Only certified values.",
    {
        "game": {"const": "roulette"},
        "wheel": {"enum": [37, 38]},
        "conduct": {"enum": ["croupier", "launcher"]},
        "minimum_cents": INTEGER,
        "maxima_cents": {"type": "object", "additionalProperties": INTEGER},
        "announcements": TEXTS,
        "random_combinations": FLAG,
        "seance": TEXT,
        "seance_phase": {"enum": ["closed", "open", "last", "ended"]},
        "last_left": INTEGER,
        "round": INTEGER,
        "phase": {"enum": ["idle", "betting", "no_more_bets", "verifying", "manual", "halted"]},
        "text": TEXT,
        "detected": TEXT,
        "dialled": TEXT,
        "last_numbers": TEXTS,
        "simulation": FLAG,
    },
)

STATE = _document(
    "state",
    "What the table is doing, retained on up/state, and the will. A late will of an old connection has an old session.",
    {
        "state": {"enum": ["closed", "ready", "game", "manual", "degraded", "lost"]},
        "boot": TEXT,
        "session": INTEGER,
        "simulation": FLAG,
    },
)

DESCRIPTION = _document(
    "description",
    "What the table is, retained on up/description.",
    {
        "version": TEXT,
        "software_sha256": TEXT,
        "origin": TEXT,
        "simulation": FLAG,
        "game": TEXT,
        "posts": INTEGER,
        "vkeys": TEXTS,
        "rules_sha256": TEXT,
        "rules": {"type": "object"},
        "post_protocol": TEXT,
    },
)

STATEMENT = _document(
    "statement",
    "The statement of a closed séance that waits to be certified, on up/statement, in parts: the report is cut, the "
    "note is in each. The persons of the roles sign the text of the note.",
    {"seance": TEXT, "roles": TEXTS, "note": TEXT, "part": INTEGER, "parts": INTEGER, "report": TEXT},
)

REPLAY = _document(
    "replay",
    "Asks for the entries from to to - 1 again: the centre (down/replay), or the table (up/recall).",
    {"from": INTEGER, "to": INTEGER},
)


def json_schemas() -> dict[str, Schema]:
    """Every published schema by name."""
    own = {
        "entry": entry_schema(),
        "display": DISPLAY,
        "state": STATE,
        "description": DESCRIPTION,
        "statement": STATEMENT,
        "replay": REPLAY,
    }
    return schemas.json_schemas() | own


CHANNELS = (
    # name, who writes it, retained, payload schema or media type, what it is
    ("event", "table", False, "entry", "Certified entries in order, once or more; (source, id) is the key."),
    ("checkpoint", "table", True, "text/plain", "The newest signed checkpoint (C2SP signed note)."),
    ("state", "table", True, "state", "What the table is doing; also its will."),
    ("description", "table", True, "description", "Version, keys and rules."),
    ("display", "table", True, "display", "The public board."),
    ("statement", "table", False, "statement", "What persons must read and sign, until a séance is certified."),
    ("reply", "table", False, "order-reply", "Answers to challenges and orders, with their correlation data."),
    ("ack", "centre", True, "text/plain", "A checkpoint with the mirror's cosignature."),
    ("replay", "centre", False, "replay", "Ask for entries again."),
    ("recall", "table", False, "replay", "Ask the mirror for entries again that the table's own disk lost."),
    ("entry", "centre", False, "entry", "An entry that the table asked for, the exact bytes as on up/event."),
    ("command", "staff", False, "text/plain", "A request for a challenge, or a signed order."),
)


def asyncapi() -> Schema:
    """The map of the table's topics, as an AsyncAPI 3 document."""
    topics = Topics("SITE", "TABLE")
    channels = {name: _channel(getattr(topics, name), payload, text) for name, _, _, payload, text in CHANNELS} | {
        "post-in": _channel(f"{topics.root}/post/POST/in", "post-request", "What a post asks."),
        "post-out": _channel(f"{topics.root}/post/POST/out", "post-reply", "Answers to a post, and its results."),
        "witness": _channel(topics.witness("WITNESS"), "text/plain", "A checkpoint with a witness's cosignature."),
    }
    channels["post-out"]["messages"]["news"] = _message("post-news")
    sends = {name for name, writer, *_ in CHANNELS if writer == "table"} | {"post-out"}
    retained = {name for name, _, keeps, *_ in CHANNELS if keeps} | {"witness"}
    operations = {
        name: {
            "action": "send" if name in sends else "receive",
            "channel": {"$ref": f"#/channels/{name}"},
            "bindings": {"mqtt": {"qos": 1, "retain": name in retained}},
        }
        for name in channels
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Table controller",
            "version": "1",
            "description": "MQTT 5 topics of one electronic casino table, from the table's side.",
        },
        "channels": channels,
        "operations": operations,
    }


def _channel(address: str, payload: str, text: str) -> Schema:
    braced = address
    for name in ("site", "table", "post", "witness"):
        braced = braced.replace(name.upper(), f"{{{name}}}")
    names = [name for name in ("site", "table", "post", "witness") if f"{{{name}}}" in braced]
    return {
        "address": braced,
        "description": text,
        "parameters": {name: {"description": f"The {name}."} for name in names},
        "messages": {"message": _message(payload)},
    }


def _message(payload: str) -> Schema:
    """A message of a published schema, or of a media type."""
    if "/" in payload:
        return {"contentType": payload}
    return {"contentType": "application/json", "payload": {"$ref": f"schemas/{payload}.json"}}
