"""The list in force at a running table: two directors change it by one order, at once, and for good."""

import asyncio
from typing import Any

import pytest

from controller import table as table_module
from controller.certify.keys import person_key_name
from controller.certify.note import Signer
from controller.delivery.enrolment import EnrolledPerson, in_force
from controller.delivery.orders import write_order
from controller.history import replay
from controller.options import PersonSection
from games.persons import Enrolment, Persons
from games.roulette.game import Roulette
from games.signals import Role
from tests.controller.rehearsal.house import House, play

SITE = "casino.example.simulation"


def key(badge: str, seed: int = 1, site: str = SITE) -> Signer:
    return Signer(person_key_name(site, badge), bytes([seed]) * 31 + badge.encode()[-1:])


SECOND, NEWCOMER = key("D2"), key("K9")


def with_a_second_director(house: House) -> None:
    """Another director on the founding list."""
    listed = PersonSection(badge="D2", role=Role.DIRECTOR, vkey=SECOND.verifier.vkey)
    house.config = house.config.model_copy(update={"person": [*house.config.person, listed]})
    house.staff = {**house.staff, "D2": SECOND}
    house.office.staff = house.staff


async def both_order(house: House, verb: str, by: str = "director", second: Signer = SECOND, **said: object) -> Any:
    """An order that two persons sign; returns the answer."""
    challenge = await house.challenge()
    house.command(write_order(house.staff[by], challenge, verb, said, second).encode())

    def answers() -> list[Any]:
        replies = house.centre.documents(house.topics.reply)
        return [reply for reply in replies if reply.get("nonce") == challenge.nonce and "ok" in reply]

    await house.until(lambda: bool(answers()))
    return answers()[-1]


async def enrol(house: House, signer: Signer, role: str = "cashier", badge: str = "", **more: Any) -> Any:
    badge = badge or signer.name.rpartition("/")[2]
    return await both_order(house, "person.enrol", badge=badge, role=role, vkey=signer.verifier.vkey, **more)


async def revoke(house: House, badge: str, **more: Any) -> Any:
    return await both_order(house, "person.revoke", badge=badge, reason="badge perdu", **more)


@pytest.mark.parametrize("snapshot_every", [1, 1_000_000], ids=["from a snapshot", "from the first entry"])
def test_person_enrolled_by_two_directors_signs_at_once_and_revoked_never_again(
    snapshot_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "SNAPSHOT_EVERY", snapshot_every)

    async def story(house: House) -> None:
        with_a_second_director(house)
        house.staff["K9"] = NEWCOMER
        await house.open()
        await house.seat(1, 1_000)
        stranger = await house.order("K9", "post.credit", post=1, cents=500)
        assert stranger["code"] == "E-ORDER-SIGNER"
        enrolled = await enrol(house, NEWCOMER)
        assert (enrolled["ok"], enrolled["data"]["second"]) == (True, {"badge": "D2", "role": "director"})
        assert (await house.order("K9", "post.credit", post=1, cents=500))["ok"]
        await house.restart()
        assert (await house.order("K9", "post.credit", post=1, cents=500))["ok"], "it survives a restart"
        assert (await revoke(house, "K9"))["ok"]
        for _ in range(2):
            refused = await house.order("K9", "post.credit", post=1, cents=500)
            assert refused["code"] == "E-ORDER-REVOKED"
            await house.restart()
        assert (await enrol(house, NEWCOMER))["code"] == "E-KEY-REVOKED"
        fresh = key("K9", seed=2)
        assert (await enrol(house, fresh))["ok"], "the person may come back with a new key"
        assert house.credit(1) == 2_000
        _, replayed = replay(Roulette(house.config.rules), house.leaves)
        assert replayed.entries == len(house.leaves), "a journal is decided again without the founding list"

    play(story)


def test_list_is_changed_by_nothing_less_than_two_different_directors_who_may_sign() -> None:
    async def story(house: House) -> None:
        with_a_second_director(house)
        await house.start()
        said = {"badge": "K9", "role": "cashier", "vkey": NEWCOMER.verifier.vkey}
        alone = await house.order("director", "person.revoke", badge="croupier", reason="départ")
        assert alone["code"] == "E-SECOND-DIRECTOR"
        twice = await both_order(house, "person.enrol", second=house.staff["director"], **said)
        assert twice["code"] == "E-ORDER-SIGNER"
        for other in ("croupier", "cashier"):
            mixed = await both_order(house, "person.enrol", second=house.staff[other], **said)
            assert mixed["code"] == "E-ORDER-ROLE"
            mixed = await both_order(house, "person.enrol", by=other, **said)
            assert mixed["code"] == "E-ORDER-ROLE"
        stranger = await both_order(house, "person.enrol", second=key("D7"), **said)
        assert stranger["code"] == "E-ORDER-SIGNER"
        assert house.state.persons == Persons()

    play(story)


@pytest.mark.parametrize(
    ("badge", "signer", "code"),
    [
        ("director", key("director", seed=9), "E-PERSON-ENROLLED"),
        ("K8", NEWCOMER, "E-ORDER-MALFORMED"),
        ("K9", key("K9", site="elsewhere.example"), "E-ORDER-MALFORMED"),
    ],
    ids=["badge in force", "key of another badge", "key of another house"],
)
def test_key_that_cannot_sign_for_the_badge_here_is_not_enrolled(badge: str, signer: Signer, code: str) -> None:
    async def story(house: House) -> None:
        with_a_second_director(house)
        await house.start()
        assert (await enrol(house, signer, badge=badge))["code"] == code
        assert house.every("table.person.enrolled") == []

    play(story)


def test_one_key_under_two_badges_is_refused_because_one_person_would_sign_for_two() -> None:
    async def story(house: House) -> None:
        with_a_second_director(house)
        await house.start()
        seed = bytes([1]) * 31 + b"2"
        assert Signer(SECOND.name, seed).skey == SECOND.skey, "the second director's own secret"
        assert (await enrol(house, Signer(person_key_name(SITE, "D3"), seed), "director"))["code"] == "E-KEY-SHARED"

    play(story)


def test_two_directors_remain_and_whoever_is_not_there_cannot_be_revoked() -> None:
    async def story(house: House) -> None:
        with_a_second_director(house)
        await house.start()
        last = await revoke(house, "D2")
        assert (last["code"], last["kind"]) == ("E-DIRECTORS-LAST", "fr.table.order.refused.v1")
        assert (await revoke(house, "K9"))["code"] == "E-PERSON-UNKNOWN"
        assert (await enrol(house, key("D3"), "director"))["ok"]
        assert (await revoke(house, "D2", second=key("D3")))["ok"]
        assert (await revoke(house, "D2", second=key("D3")))["code"] == "E-PERSON-UNKNOWN"
        assert (await revoke(house, "D3", second=key("D3")))["code"] == "E-DIRECTORS-LAST"

    play(story)


def test_order_that_waited_behind_the_revocation_of_its_signer_is_refused_as_a_certified_fact() -> None:
    async def story(house: House) -> None:
        with_a_second_director(house)
        await house.open()
        await house.seat(1, 1_000)
        house.writer.hold()
        async with asyncio.TaskGroup() as group:
            revoked = group.create_task(revoke(house, "cashier"))
            await house.let_pass(1)
            credited = group.create_task(house.order("cashier", "post.credit", post=1, cents=500))
            await house.let_pass(1)
            house.writer.release()
        assert revoked.result()["ok"]
        answer = credited.result()
        assert (answer["ok"], answer["code"], answer["kind"]) == (False, "E-ORDER-REVOKED", "fr.table.order.refused.v1")
        assert house.credit(1) == 1_000

    play(story)


# ── The list ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(badge: str, seed: int = 1, role: Role = Role.CROUPIER, *, revoked: bool = False) -> EnrolledPerson:
    return EnrolledPerson(badge, role, key(badge, seed).verifier.vkey, revoked)


def of_facts(badge: str, seed: int = 1, role: Role = Role.CROUPIER, *, revoked: bool = False) -> dict[str, Enrolment]:
    return {badge: Enrolment(role=role, vkey=key(badge, seed).verifier.vkey, revoked=revoked)}


def test_list_in_force_is_the_founding_one_until_facts_say_otherwise() -> None:
    founding = [listed("C1"), listed("C2", revoked=True)]
    assert in_force(founding, Persons()) == {"C1": listed("C1"), "C2": listed("C2", revoked=True)}
    enrolled = in_force(founding, Persons(by_badge=of_facts("C3")))
    assert enrolled["C3"] == listed("C3")


def test_configuration_written_anew_brings_nobody_back_whom_facts_revoked() -> None:
    revoked = Persons(
        by_badge=of_facts("C1", revoked=True),
        revoked_keys=frozenset({key("C1").verifier.vkey, key("C4").verifier.vkey}),
    )
    for founding in ([listed("C1")], [listed("C1", seed=2)], [listed("C1", seed=2, role=Role.DIRECTOR)]):
        assert in_force(founding, revoked)["C1"].revoked
    assert in_force([listed("C4")], revoked)["C4"].revoked, "a dead key is dead whoever lists it"
