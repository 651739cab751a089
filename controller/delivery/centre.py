"""What the centre says to a table: what it holds durably (``down/ack``), and what it wants again (``down/replay``).

An acknowledgement is our own checkpoint with the mirror's cosignature under it; a witness's line (``down/witness/…``)
has the same form, and says that the witness saw that much. It says "I hold durably every entry up
to this size, and the root is this". Both signatures are demanded: the mirror's makes it an acknowledgement, our own
shows that the checkpoint is one that this table signed. Without the second, a mirror that errs, or the acknowledgement
of another table on our topic, would pass for proof that our journal is forked.
"""

import json
from dataclasses import dataclass

from controller.certify.checkpoint import parse_checkpoint
from controller.certify.faults import NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier, open_note

REPLAY_REQUEST_BOUND = 256
"""Bytes of a request for a replay."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """``cosigner`` holds, or saw, ``size`` entries under ``root``. ``note`` is the evidence, as it came."""

    size: int
    root: bytes
    note: str
    cosigner: Verifier


def open_acknowledgement(payload: bytes, own: LogKeys, cosigner: Verifier) -> Acknowledgement:
    """Read and verify one. Raises NoteFault when it is malformed, of another journal, or not signed by both."""
    try:
        note = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoteFault("E-NOTE-MALFORMED", "the acknowledgement is not UTF-8") from error
    opened = open_note(note, [*own.verifiers, cosigner])
    for name, made in ((own.origin, own.made), (cosigner.name, cosigner.made)):
        if not any(made(signature) for signature in opened.signatures):
            raise NoteFault("E-NOTE-UNSIGNED", f"the acknowledgement is not signed by {name}")
    checkpoint = parse_checkpoint(opened.text)
    if checkpoint.origin != own.origin:
        raise NoteFault("E-NOTE-FOREIGN", f"the acknowledgement is for {checkpoint.origin}, not for {own.origin}")
    return Acknowledgement(checkpoint.size, checkpoint.root, note, cosigner)


def parse_replay(payload: bytes, size: int) -> range:
    """What a replay asks for: ``{"from": first, "to": end}``, the entries first to end - 1, all of which must exist.

    Raises ValueError.
    """
    if len(payload) > REPLAY_REQUEST_BOUND:
        raise ValueError(f"the request is longer than {REPLAY_REQUEST_BOUND} bytes")
    try:
        wanted = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ValueError('the request is not JSON like {"from": 0, "to": 10}') from error
    if not isinstance(wanted, dict) or set(wanted) != {"from", "to"} or {type(at) for at in wanted.values()} != {int}:
        raise ValueError('the request is not like {"from": 0, "to": 10}')
    if not 0 <= wanted["from"] < wanted["to"] <= size:
        raise ValueError(f"entries {wanted['from']} up to {wanted['to']} are not among the {size} of the journal")
    return range(wanted["from"], wanted["to"])
