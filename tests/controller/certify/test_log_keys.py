"""The keys of one log: one text line each, all of one name."""

import pytest

from controller.certify.faults import KeyFault
from controller.certify.log_keys import KEYS_BOUND, LogKeys
from controller.certify.note import Signer
from tests.controller.certify.workshop import SIGNER


def test_keys_of_one_log_survive_their_text_form() -> None:
    keys = LogKeys.of(SIGNER.verifier, Signer.generate(SIGNER.name).verifier)
    again = LogKeys.parse(keys.text)
    assert (again.origin, again.text) == (SIGNER.name, keys.text)
    assert LogKeys.parse(SIGNER.verifier.vkey).text == f"{SIGNER.verifier.vkey}\n"


def test_only_a_signature_by_one_of_the_keys_is_theirs() -> None:
    successor = Signer.generate(SIGNER.name)
    keys = LogKeys.of(SIGNER.verifier, successor.verifier)
    assert keys.made(SIGNER.sign("x\n"))
    assert keys.made(successor.sign("x\n"))
    assert not keys.made(Signer.generate(SIGNER.name).sign("x\n"))


@pytest.mark.parametrize("text", ["", "\n", "nonsense", SIGNER.verifier.vkey[:-1], SIGNER.verifier.vkey + "\r\n"])
def test_text_that_holds_no_good_key_is_refused(text: str) -> None:
    with pytest.raises(KeyFault, match="E-KEY-MALFORMED"):
        LogKeys.parse(text)


def test_keys_of_several_logs_or_too_many_are_refused() -> None:
    stranger = Signer.generate(f"{SIGNER.name}0").verifier
    for verifiers in ((SIGNER.verifier, stranger), (SIGNER.verifier,) * (KEYS_BOUND + 1)):
        with pytest.raises(KeyFault, match="E-KEY-MALFORMED"):
            LogKeys.of(*verifiers)
