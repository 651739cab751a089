"""A séance is closed, its statement is put to the director, he signs it, and the whole note is a certified fact."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from controller.certify.note import Signer, open_note, parse_note, sign_note
from controller.certify.reader import Reader
from controller.options import PersonSection
from controller.published import json_schemas
from controller.registers import desk as desk_module
from controller.registers.statement import Statement, read_statement, state_seance
from controller.snapshots import table as table_status
from games.signals import Role
from tests.controller.rehearsal.house import House, play, read_fact

FIRST, SECOND = "2026-11-30-1", "2026-11-30-2"


def statements(house: House) -> list[dict[str, Any]]:
    """Every message on up/statement, in order."""
    return house.centre.documents(house.topics.statement)


def notes(house: House) -> dict[str, str]:
    """The note of each séance, as it was published last."""
    return {told["seance"]: told["note"] for told in statements(house)}


def expected(house: House, name: str) -> Statement:
    """The statement that the certified entries give, by way of a plain look through the journal."""
    kinds = [json.loads(leaf) for leaf in house.leaves]
    of = [at for at, entry in enumerate(kinds) if entry.get("seance") == name]
    opening = next(at for at in of if kinds[at]["type"] == "fr.table.seance.opened.v1")
    closing = next(at for at in of if kinds[at]["type"] == "fr.table.seance.closed.v1")
    with Reader(house.file) as reader:
        return state_seance(house.leaves[opening : closing + 1], reader.root(closing + 1))


async def evening(house: House) -> str:
    """A séance with one player and one round, from the opening to the statement; returns the séance's name."""
    await house.open()
    name = house.state.seance.name
    post = await house.seat(1, 10_000)
    await house.begin_round()
    assert (await house.stake(post, rouge=500))["ok"]
    await house.reach("idle")
    assert (await post.ask("payout"))["ok"]
    closed = await house.order("director", "seance.close")
    assert closed["ok"], closed
    await house.until(lambda: name in notes(house))
    return name


def line_of(signer: Signer, note: str) -> str:
    return signer.sign(parse_note(note).text).line


async def certify(house: House, seance: str, *lines: str, by: str = "director") -> dict[str, Any]:
    return await house.order(by, "statement.certify", seance=seance, lines=list(lines))


@contextmanager
def short_parts(characters: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desk_module, "PART_CHARACTERS", characters)
        yield


# ── Closed, signed, certified ─────────────────────────────────────────────────────────────────────────────────────────


def test_statement_published_at_the_closing_is_the_certified_entries_and_signed_by_the_table() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        (told,) = statements(house)
        Draft202012Validator(json_schemas()["statement"]).validate(told)
        made = expected(house, name)
        assert told["report"] == made.report
        assert open_note(told["note"], [house.signer.verifier]).text == made.text
        assert house.topics.statement not in house.exchange.retained
        assert (told["seance"], told["roles"], told["part"], told["parts"]) == (name, ["director"], 1, 1)
        head = read_statement(made.text)
        with Reader(house.file) as reader:
            assert (head.origin, head.root) == (house.config.origin, reader.root(head.size))
        assert table_status(house.state, house.game)["statements_awaited"] == [name]

    play(story)


@pytest.mark.law("67-15")
def test_seance_certified_by_a_director_has_the_whole_note_as_a_fact() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        note = notes(house)[name]
        answer = await certify(house, name, line_of(house.staff["director"], note))
        assert answer["ok"], answer
        (fact,) = house.every("seance.certified")
        assert fact == answer["data"]
        assert (fact["seance"], fact["persons"]) == (name, [{"badge": "director", "role": "director"}])
        signed = open_note(fact["note"], [house.signer.verifier, house.staff["director"].verifier])
        assert [signature.name for signature in signed.signatures] == [
            house.config.origin,
            house.staff["director"].name,
        ]
        assert signed.text == expected(house, name).text
        assert table_status(house.state, house.game)["statements_awaited"] == []

    play(story)


def test_statement_waits_through_a_restart_and_comes_again_the_same_byte_for_byte() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        (before,) = statements(house)
        signed_before_the_cut = line_of(house.staff["director"], before["note"])
        await house.restart()
        await house.until(lambda: len(statements(house)) > 1)
        assert statements(house)[-1] == before
        answer = await certify(house, name, signed_before_the_cut)
        assert answer["ok"], "a signature of the text is good whenever it was made"
        told = len(statements(house))
        await house.restart()
        await house.let_pass(30)
        assert len(statements(house)) == told, "what is certified is put to nobody any more"

    play(story)


def test_second_seance_is_played_before_the_first_is_certified_and_carries_its_totals() -> None:
    async def story(house: House) -> None:
        assert [await evening(house), await evening(house)] == [FIRST, SECOND]
        first, second = parse_note(notes(house)[FIRST]).text, parse_note(notes(house)[SECOND]).text
        assert "mise-cents 500\nmise-perpetuel-cents 500\n" in first
        assert "mise-cents 500\nmise-perpetuel-cents 1000\n" in second
        assert "seances-perpetuel 2\n" in second
        for name in (SECOND, FIRST):
            assert (await certify(house, name, line_of(house.staff["director"], notes(house)[name])))["ok"]
        assert [fact["seance"] for fact in house.every("seance.certified")] == [SECOND, FIRST]

    play(story)


def test_statement_is_published_again_on_a_new_connection_and_when_it_is_asked_for() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        (told,) = statements(house)
        house.exchange.partition("table")
        await house.let_pass(5)
        house.exchange.heal("table")
        await house.until(lambda: len(statements(house)) == 2)
        house.command(json.dumps({"ask": "statement", "id": "again", "seance": name}).encode())
        await house.until(lambda: len(statements(house)) == 3)
        assert statements(house) == [told, told, told]
        assert {"id": "again", "ok": True, "seance": name, "parts": 1} in house.centre.documents(house.topics.reply)
        house.command(json.dumps({"ask": "statement", "id": "none", "seance": "2026-11-29-1"}).encode())
        await house.until(lambda: any(told.get("id") == "none" for told in house.centre.documents(house.topics.reply)))
        assert house.centre.documents(house.topics.reply)[-1]["code"] == "E-STATEMENT-NOT-AWAITED"

    play(story)


def test_report_longer_than_a_message_comes_in_parts_that_make_it_whole() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        told = statements(house)
        assert [part["part"] for part in told] == list(range(1, told[0]["parts"] + 1))
        assert told[0]["parts"] > 3
        assert "".join(part["report"] for part in told) == expected(house, name).report
        assert {part["note"] for part in told} == {notes(house)[name]}

    with short_parts(300):
        play(story)


# ── What certifies nothing ────────────────────────────────────────────────────────────────────────────────────────────

Lines = Callable[[House, str], list[str]]


def of_another_text(house: House, note: str) -> list[str]:
    altered = parse_note(note).text.replace("mise-cents 500", "mise-cents 501")
    return [house.staff["director"].sign(altered).line]


def of_a_stranger(house: House, note: str) -> list[str]:
    return [line_of(Signer(f"{house.config.site}/personne/D9", b"9" * 32), note)]


def of_another_key(house: House, note: str) -> list[str]:
    return [line_of(Signer(house.staff["director"].name, b"9" * 32), note)]


def of_another_house(house: House, note: str) -> list[str]:
    return [line_of(Signer("elsewhere.example/personne/director", b"9" * 32), note)]


def of_the_croupier(house: House, note: str) -> list[str]:
    return [line_of(house.staff["croupier"], note)]


def of_the_cashier(house: House, note: str) -> list[str]:
    return [line_of(house.staff["cashier"], note)]


def of_the_director_twice(house: House, note: str) -> list[str]:
    return 2 * [line_of(house.staff["director"], note)]


def of_the_director_and_the_cashier(house: House, note: str) -> list[str]:
    return [line_of(house.staff[role], note) for role in ("director", "cashier")]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (of_another_text, "E-STATEMENT-SIGNATURE"),
        (of_a_stranger, "E-STATEMENT-SIGNATURE"),
        (of_another_key, "E-STATEMENT-SIGNATURE"),
        (of_another_house, "E-STATEMENT-SIGNATURE"),
        (of_the_croupier, "E-STATEMENT-ROLES"),
        (of_the_cashier, "E-STATEMENT-ROLES"),
        (of_the_director_twice, "E-STATEMENT-ROLES"),
        (of_the_director_and_the_cashier, "E-STATEMENT-ROLES"),
    ],
    ids=lambda value: value.__name__ if callable(value) else value,
)
def test_lines_that_are_not_the_signature_of_a_director_under_this_text_certify_nothing(
    lines: Lines, code: str
) -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        note = notes(house)[name]
        answer = await certify(house, name, *lines(house, note))
        assert (answer["ok"], answer["code"]) == (False, code)
        assert house.every("seance.certified") == []
        assert house.state.statements.awaited == (name,)
        good = await certify(house, name, line_of(house.staff["director"], note), by="cashier")
        assert good["ok"], "the cashier may bring what the director signed"

    play(story)


def test_line_of_a_director_who_is_revoked_certifies_nothing() -> None:
    async def story(house: House) -> None:
        gone = Signer(f"{house.config.site}/personne/D2", b"2" * 32)
        listed = PersonSection(badge="D2", role=Role.DIRECTOR, vkey=gone.verifier.vkey, revoked=True)
        house.config = house.config.model_copy(update={"person": [*house.config.person, listed]})
        name = await evening(house)
        answer = await certify(house, name, line_of(gone, notes(house)[name]))
        assert (answer["ok"], answer["code"]) == (False, "E-ORDER-REVOKED")
        assert house.state.statements.awaited == (name,)

    play(story)


def test_seance_that_is_open_unknown_or_certified_is_certified_by_no_signature() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        line = line_of(house.staff["director"], notes(house)[name])
        await house.open()
        for other in (SECOND, "2026-11-29-1"):
            assert (await certify(house, other, line))["code"] == "E-STATEMENT-NOT-AWAITED"
        assert (await certify(house, name, line))["ok"]
        assert (await certify(house, name, line))["code"] == "E-STATEMENT-NOT-AWAITED"
        assert len(house.every("seance.certified")) == 1

    play(story)


def test_two_certifications_in_flight_give_one_fact_and_one_certified_refusal() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        line = line_of(house.staff["director"], notes(house)[name])
        house.writer.hold()
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(certify(house, name, line)) for _ in range(2)]
            await house.let_pass(5)
            house.writer.release()
        assert sorted(answer.result()["ok"] for answer in answers) == [False, True]
        assert len(house.every("seance.certified")) == 1
        assert [fact["reason"] for fact in house.every("table.order.refused")] == ["E-STATEMENT-NOT-AWAITED"]

    play(story)


# ── The table plays on ────────────────────────────────────────────────────────────────────────────────────────────────


def test_seance_whose_entries_cannot_be_read_is_a_fault_and_the_table_plays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await evening(house)
        monkeypatch.setattr("controller.registers.source._CLOSED", b"nothing ends like this")
        await house.restart()
        await house.until(lambda: "E-SEANCE-UNKNOWN" in house.daemon.status()["faults"])
        await house.open()
        assert house.state.seance.name == SECOND
        assert house.state.statements.awaited == (FIRST,), "and it is not forgotten"

    play(story)


def test_note_of_the_fact_is_what_stands_in_the_statement_and_no_other_bytes() -> None:
    async def story(house: House) -> None:
        name = await evening(house)
        note = notes(house)[name]
        line = line_of(house.staff["director"], note)
        await certify(house, name, line)
        kinds = [read_fact(leaf) for leaf in house.leaves]
        (whole,) = [data["note"] for kind, data in kinds if kind == "seance.certified"]
        assert whole == sign_note(parse_note(note).text, house.signer, house.staff["director"])

    play(story)
