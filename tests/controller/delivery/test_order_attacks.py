"""Replayed, redirected, expired and re-ordered orders: whatever the attacker chooses, none is taken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify.note import Signer, sign_note
from controller.delivery.orders import CHALLENGE_LIFE_S, order_text, write_order
from controller.delivery.verbs import VERBS
from drivers.clock import ManualClock
from proof.orders import ARGUMENTS, KINDS, PERSONS, ROLES, Attack, Desk, Signing, attack, attacked, key
from tests.controller.rehearsal.house import House, play

NAMED = [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=NAMED)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_attack_of_this_kind_is_never_taken_and_the_order_as_it_was_meant_always_is(kind: Attack, seed: int) -> None:
    assert attack(kind, seed) == (False, True)


def test_count_of_attacks_has_every_kind_and_its_denominator() -> None:
    count = attacked(3 * len(KINDS))
    assert count.made == dict.fromkeys(NAMED, 3)
    assert count.meant == 3 * len(KINDS)


OURS, BOOT = "casino.example/table/t07/1", "9f1c0b7e52d3a844"
STRANGERS = [key("D9"), key("D1", seed=2), key("D1", site="x.example")]


def mostly(good: str, *others: str) -> st.SearchStrategy[str]:
    """What is right, and one time in so many what is not: most orders must be wrong in one part alone."""
    return st.sampled_from([*[good] * 3 * len(others), *others])


ORIGINS = mostly(OURS, "casino.example/table/t08/1", "casino.example/table/t07/2", "x.example/table/t07/1")
BOOTS = mostly(BOOT, "0000000000000001")
NONCES = mostly("given", "given to another run", "used", "made up")
SIGNERS = st.one_of(
    st.sampled_from([[key("D1")], [key("K1")], [key("D1"), key("D2")], [key("D2"), key("D1")]]),
    st.lists(st.sampled_from([key(badge) for badge in PERSONS] + STRANGERS), min_size=1, max_size=3),
)


@given(
    origin=ORIGINS,
    boot=BOOTS,
    nonce=NONCES,
    late_s=st.sampled_from([0, 1, CHALLENGE_LIFE_S - 1, 2, 3, CHALLENGE_LIFE_S, 10 * CHALLENGE_LIFE_S]),
    persons=SIGNERS,
    verb=st.sampled_from([*VERBS, "post.debit"]),
    foreign_arguments=st.sampled_from([False, False, False, True]),
)
@settings(max_examples=400)
def test_order_is_taken_exactly_when_every_part_of_it_is_right(
    origin: str, boot: str, nonce: str, late_s: int, persons: list[Signer], verb: str, foreign_arguments: bool
) -> None:
    """Each part is chosen alone; the oracle is one conjunction, written from the protocol and not from the code."""
    desk, other = Desk(ManualClock()), Desk(ManualClock(), boot="0000000000000001")
    used = desk.challenge()
    meant = Signing("post.credit", ARGUMENTS["post.credit"], (key("K1"),))
    assert desk.deliver(meant.write(used))
    given_now, elsewhere = desk.challenge(), other.challenge()
    number = {
        "given": given_now.nonce,
        "given to another run": elsewhere.nonce[:-2] + "00",
        "used": used.nonce,
        "made up": "ab" * 24,
    }[nonce]
    arguments = {"surplus": 1} if foreign_arguments else ARGUMENTS.get(verb, {})
    challenge = given_now.model_copy(update={"origin": origin, "boot": boot, "nonce": number})
    desk.clock.advance_us(late_s * 1_000_000)
    was_taken = desk.deliver(sign_note(order_text(challenge, verb, arguments), *persons))
    badges = [badge for signer in persons for badge, person in PERSONS.items() if person.vkey == signer.verifier.vkey]
    known = VERBS.get(verb)
    assert was_taken == (
        known is not None
        and not foreign_arguments
        and (origin, boot, nonce) == (OURS, BOOT, "given")
        and late_s < CHALLENGE_LIFE_S
        and len(badges) == len(persons) == len(set(badges)) == (2 if known.second else 1)
        and "X1" not in badges
        and ROLES[badges[0]] in known.roles
        and all(ROLES[badge] in known.second for badge in badges[1:])
    )


@pytest.mark.law("67-15")
@pytest.mark.parametrize("losing", [True, False], ids=["answers lost", "answers kept"])
def test_orders_carried_out_or_held_back_before_a_power_cut_do_nothing_at_the_running_table_after_it(
    losing: bool,
) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, 1_000)
        challenges = [await house.challenge() for _ in range(3)]
        notes = [
            write_order(house.staff["cashier"], challenge, "post.credit", {"cents": 500, "post": 1}).encode()
            for challenge in challenges
        ]
        house.command(notes[0])
        await house.until(lambda: house.credit(1) == 1_500)
        await house.restart(losing=losing)
        for note in (*notes, *reversed(notes)):
            house.command(note)
        await house.let_pass(5)
        assert house.credit(1) == 1_500
        assert len(house.every("table.credit.added")) == 2
        assert house.daemon.orders.counts["E-ORDER-NONCE"] == 2 * len(notes)
        assert house.daemon.orders.counts["taken"] == 0

    play(story)
