"""What the centre says, at its edges: the size of a request, and the code of each acknowledgement that is none."""

from collections.abc import Callable
from typing import Any

import pytest

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note
from controller.delivery import centre
from controller.delivery.centre import open_acknowledgement, parse_replay


def refusal(payload: bytes, own: LogKeys, mirror: Signer) -> str:
    with pytest.raises(NoteFault) as refused:
        open_acknowledgement(payload, own, mirror.verifier)
    return refused.value.code


def test_acknowledgement_of_both_keys_opens_and_each_other_has_its_code(
    journal_of: Callable[..., Any], mirror: Signer, acknowledge: Callable[[str, Signer], bytes]
) -> None:
    journal = journal_of(3)
    own, checkpoint = LogKeys.of(journal.signer.verifier), journal.checkpoint()
    payload = acknowledge(checkpoint, mirror)
    opened = open_acknowledgement(payload, own, mirror.verifier)
    assert (opened.size, opened.root, opened.note) == (3, journal.root(3), payload.decode())
    assert opened.cosigner is mirror.verifier or opened.cosigner.vkey == mirror.verifier.vkey
    stranger = Signer("stranger.example", bytes(32), KeyType.COSIGNATURE)
    assert refusal(b"\xff", own, mirror) == "E-NOTE-MALFORMED"
    assert refusal(checkpoint.encode(), own, mirror) == "E-NOTE-UNSIGNED"
    assert refusal(acknowledge(checkpoint, stranger), own, mirror) == "E-NOTE-UNSIGNED"
    text = Checkpoint(journal.signer.name, 3, journal.root(3)).text
    assert refusal(format_note(text, [mirror.sign(text, 1)]).encode(), own, mirror) == "E-NOTE-UNSIGNED"


def test_acknowledgement_of_another_journal_is_foreign_though_both_keys_signed_it(
    journal_of: Callable[..., Any], mirror: Signer
) -> None:
    journal = journal_of(1)
    text = Checkpoint("casino.example/table/t08/1", 1, journal.root(1)).text
    payload = format_note(text, [journal.signer.sign(text), mirror.sign(text, 1)]).encode()
    assert refusal(payload, LogKeys.of(journal.signer.verifier), mirror) == "E-NOTE-FOREIGN"


def test_request_for_a_replay_has_at_most_256_bytes() -> None:
    assert centre.REPLAY_REQUEST_BOUND == 256
    asked = b'{"from":0,"to":10}'
    assert parse_replay(asked.ljust(256), 10) == range(10)
    with pytest.raises(ValueError, match="longer than 256 bytes"):
        parse_replay(asked.ljust(257), 10)
    with pytest.raises(ValueError, match="entries 0 up to 10 are not among the 9 of the journal"):
        parse_replay(asked, 9)
