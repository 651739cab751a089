"""The staff of a rehearsal gives signed orders one at a time, as any house's would: challenge, signature, answer."""

import json

import pytest

from controller.certify.note import Signer, open_note
from controller.rehearsal.staff import StaffTwin
from controller.schemas import Challenge

SITE = "casino.example.simulation"
DIRECTOR = Signer(f"{SITE}/personne/director", bytes(range(32)))
CASHIER = Signer(f"{SITE}/personne/cashier", bytes(range(1, 33)))


def challenge(nonce: str = "ab" * 24) -> bytes:
    answer = Challenge(id="staff", nonce=nonce, boot="0123456789abcdef", origin=f"{SITE}/table/t07/1", expires_s=120)
    return answer.model_dump_json().encode()


def done(**fields: object) -> bytes:
    return json.dumps({"nonce": "ab" * 24, "ok": True, "index": 1, "kind": "k", "data": {}, **fields}).encode()


@pytest.fixture
def staff() -> StaffTwin:
    return StaffTwin({"director": DIRECTOR, "cashier": CASHIER})


def test_staff_order_asks_for_a_challenge_signs_it_and_is_over_with_the_answer(staff: StaffTwin) -> None:
    assert staff.order("director", "seance.open") == [b'{"ask":"challenge","id":"staff"}']
    (note,) = staff.on_reply(challenge())
    opened = open_note(note.decode(), [DIRECTOR.verifier])
    assert opened.text.splitlines()[-2:] == ["do seance.open", "args {}"]
    assert staff.wants("seance.open")
    assert staff.on_reply(done()) == []
    assert not staff.wants("seance.open")


def test_staff_orders_wait_for_each_other_and_are_signed_by_whose_they_are(staff: StaffTwin) -> None:
    staff.order("director", "seance.open")
    assert staff.order("cashier", "post.credit", post=1, cents=500) == []
    staff.on_reply(challenge())
    assert staff.on_reply(done()) == [b'{"ask":"challenge","id":"staff"}']
    (note,) = staff.on_reply(challenge())
    assert 'args {"cents":500,"post":1}' in open_note(note.decode(), [CASHIER.verifier]).text


def test_staff_order_that_is_refused_is_kept_with_the_answer(staff: StaffTwin) -> None:
    staff.order("director", "seance.open")
    staff.on_reply(challenge())
    staff.on_reply(done(ok=False, code="E-WHEEL-SILENT"))
    assert [(refused["verb"], refused["code"]) for refused in staff.refused] == [("seance.open", "E-WHEEL-SILENT")]
    assert not staff.wants("seance.open")


def test_staff_answer_to_somebody_else_is_left_alone(staff: StaffTwin) -> None:
    assert staff.on_reply(done()) == []
    assert staff.on_reply(challenge()) == []
    assert staff.refused == []


def test_staff_whose_connection_was_lost_asks_for_a_new_challenge(staff: StaffTwin) -> None:
    staff.order("director", "seance.open")
    staff.on_reply(challenge())
    assert staff.again() == [b'{"ask":"challenge","id":"staff"}']
    assert len(staff.on_reply(challenge("cd" * 24))) == 1
    assert StaffTwin({}).again() == []
