"""What the table adds to an order before it is decided, asked directly: each addition, and each refusal by its code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller.certify.note import Signer, parse_note, sign_note
from controller.delivery import completion
from controller.delivery.completion import Completion
from controller.delivery.enrolment import EnrolledPerson
from controller.delivery.verbs import VERBS
from controller.delivery.wire import WireError
from games.signals import Person, Role

PREFIX = "casino.example/personne/"
STATEMENT = sign_note("table-controller/seance/v1\nread and agreed\n", Signer("casino.example/table/t07/1", bytes(32)))
DIRECTOR = Person(badge="D2", role=Role.DIRECTOR)


def key(badge: str, seed: int = 0, prefix: str = PREFIX) -> Signer:
    return Signer(prefix + badge, f"{badge}{seed}".encode().ljust(32, b"."))


def enrolled(badge: str, role: Role, *, revoked: bool = False) -> EnrolledPerson:
    return EnrolledPerson(badge, role, key(badge).verifier.vkey, revoked=revoked)


PERSONS = {
    "D1": enrolled("D1", Role.DIRECTOR),
    "D2": enrolled("D2", Role.DIRECTOR),
    "D0": enrolled("D0", Role.DIRECTOR, revoked=True),
    "C1": enrolled("C1", Role.CROUPIER),
    "C0": enrolled("C0", Role.CROUPIER, revoked=True),
}


@dataclass
class Table:
    persons: Mapping[str, EnrolledPerson] = field(default_factory=lambda: PERSONS)

    def complete(self, verb: str, second: Person | None = None, **arguments: Any) -> dict[str, Any]:
        made = Completion(
            prefix=PREFIX,
            persons=self.persons,
            rules_sha256="ab" * 32,
            next_seance=lambda: "2026-11-30-1",
            statement_note={"2026-11-29-1": STATEMENT}.get,
        )
        return made.complete(VERBS[verb], arguments, second)

    def refusal(self, verb: str, second: Person | None = None, **arguments: Any) -> WireError:
        with pytest.raises(WireError) as refused:
            self.complete(verb, second, **arguments)
        return refused.value


def line(badge: str, text: str | None = None, seed: int = 0) -> str:
    return key(badge, seed).sign(text or parse_note(STATEMENT).text).line


def test_opening_gets_its_seance_and_its_rules_and_other_orders_keep_their_own() -> None:
    assert Table().complete("seance.open") == {"seance": "2026-11-30-1", "rules_sha256": "ab" * 32}
    assert Table().complete("post.suspend", post=3) == {"post": 3}


def test_second_signature_is_there_where_it_must_be_and_nowhere_else() -> None:
    table = Table()
    assert table.refusal("person.revoke", badge="C1", reason="départ").code == "E-SECOND-DIRECTOR"
    assert table.refusal("post.suspend", DIRECTOR, post=3).code == "E-ORDER-SIGNER"
    croupier = Person(badge="C1", role=Role.CROUPIER)
    assert table.refusal("person.revoke", croupier, badge="C1", reason="départ").code == "E-ORDER-ROLE"


# ── Statements ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_certification_joins_the_lines_to_the_note_and_names_who_signed() -> None:
    lines = [line("D1"), line("C1")]
    assert Table().complete("statement.certify", seance="2026-11-29-1", lines=lines) == {
        "seance": "2026-11-29-1",
        "note": f"{STATEMENT}{lines[0]}\n{lines[1]}\n",
        "persons": (Person(badge="D1", role=Role.DIRECTOR), Person(badge="C1", role=Role.CROUPIER)),
    }


@pytest.mark.parametrize(
    ("seance", "lines", "code"),
    [
        ("2026-11-28-1", [line("D1")], "E-STATEMENT-NOT-AWAITED"),
        ("2026-11-29-1", ["no line"], "E-STATEMENT-SIGNATURE"),
        ("2026-11-29-1", [line("D1"), line("D1", "something else\n")], "E-STATEMENT-SIGNATURE"),
        ("2026-11-29-1", [line("D1", seed=1)], "E-STATEMENT-SIGNATURE"),
        ("2026-11-29-1", [line("D9")], "E-STATEMENT-SIGNATURE"),
        ("2026-11-29-1", [line("D1"), line("D0")], "E-ORDER-REVOKED"),
    ],
)
def test_certification_by_a_line_that_does_not_count_is_refused(seance: str, lines: list[str], code: str) -> None:
    assert Table().refusal("statement.certify", seance=seance, lines=lines).code == code


# ── Persons ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def enrolment(badge: str, signer: Signer, role: str = "cashier") -> dict[str, str]:
    return {"badge": badge, "role": role, "vkey": signer.verifier.vkey}


def test_enrolment_of_a_new_person_or_of_one_who_comes_back_is_completed() -> None:
    for signer in (key("K9"), key("C0", seed=1), key("C0")):
        badge = signer.name.removeprefix(PREFIX)
        assert Table().complete("person.enrol", DIRECTOR, **enrolment(badge, signer)) == {
            "second": DIRECTOR,
            "badge": badge,
            "role": Role.CASHIER,
            "vkey": signer.verifier.vkey,
        }


def test_enrolment_of_a_person_in_force_or_with_the_key_of_another_is_refused() -> None:
    table = Table()
    assert table.refusal("person.enrol", DIRECTOR, **enrolment("C1", key("C1", seed=1))).code == "E-PERSON-ENROLLED"
    for other in ("C1", "C0"):
        copied = Signer(f"{PREFIX}K9", f"{other}0".encode().ljust(32, b"."))
        assert table.refusal("person.enrol", DIRECTOR, **enrolment("K9", copied)).code == "E-KEY-SHARED"


def test_enrolment_with_a_key_that_is_none_or_has_another_name_says_so_in_both_languages() -> None:
    table, vkey = Table(), key("K9").verifier.vkey
    broken = table.refusal("person.enrol", DIRECTOR, badge="K9", role="cashier", vkey=vkey[:-4])
    assert broken.code == "E-ORDER-MALFORMED"
    assert broken.french.startswith("La clé ne convient pas")
    assert broken.english.startswith("The key will not do")
    foreign = table.refusal(
        "person.enrol", DIRECTOR, **enrolment("K9", key("K9", prefix="elsewhere.example/personne/"))
    )
    assert (foreign.code, foreign.french) == ("E-ORDER-MALFORMED", f"La clé doit être nommée {PREFIX}K9.")
    assert foreign.english == f"The key must be named {PREFIX}K9."


def test_revocation_names_the_person_and_the_directors_who_remain() -> None:
    for badge, remaining in (("C1", ("D1", "D2")), ("D1", ("D2",))):
        assert Table().complete("person.revoke", DIRECTOR, badge=badge, reason="départ") == {
            "second": DIRECTOR,
            "badge": badge,
            "role": PERSONS[badge].role,
            "vkey": PERSONS[badge].vkey,
            "reason": "départ",
            "directors": remaining,
        }


def test_revocation_names_sixteen_directors_at_the_most_in_order() -> None:
    assert completion.DIRECTORS_NAMED == 16
    badges = [f"D{number:02}" for number in reversed(range(20))]
    many = {badge: enrolled(badge, Role.DIRECTOR) for badge in badges}
    completed = Table(many).complete("person.revoke", DIRECTOR, badge="D00", reason="départ")
    assert completed["directors"] == tuple(f"D{number:02}" for number in range(1, 17))


@pytest.mark.parametrize("badge", ["C0", "C9"])
def test_revocation_of_a_stranger_or_a_second_time_is_refused(badge: str) -> None:
    assert Table().refusal("person.revoke", DIRECTOR, badge=badge, reason="départ").code == "E-PERSON-UNKNOWN"
