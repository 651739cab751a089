"""What the table itself adds to an order before it is decided: what the signer cannot know, or cannot be believed on.

The game knows no keys. So the signatures in a statement are checked here, a person's key is read here, and the input
that the game decides, and that anyone may decide again, holds what was found.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controller.certify.faults import KeyFault, NoteFault
from controller.certify.note import parse_note, parse_signature
from controller.delivery.enrolment import EnrolledPerson, signer_of
from controller.delivery.order_refusals import malformed, refused
from controller.delivery.verbs import Verb
from games.persons import EnrolPerson, RevokePerson
from games.signals import OpenSeance, Person, Role
from games.statement import CertifyStatement

DIRECTORS_NAMED = 16
"""Directors that an order to revoke names, at the most: two of them suffice, and an entry has a bound."""


class Completion:
    """``prefix`` begins the name of every person's key, ``persons`` are those in force, by badge.

    ``next_seance`` names the séance that an opening would begin; ``statement_note`` is the note, signed by the table,
    of a séance that waits to be certified, None when there is none.
    """

    def __init__(
        self,
        *,
        prefix: str,
        persons: Mapping[str, EnrolledPerson],
        rules_sha256: str,
        next_seance: Callable[[], str],
        statement_note: Callable[[str], str | None],
    ) -> None:
        self._prefix = prefix
        self._persons = persons
        self._rules_sha256 = rules_sha256
        self._next_seance = next_seance
        self._statement_note = statement_note

    def complete(self, verb: Verb, arguments: dict[str, Any], second: Person | None) -> dict[str, Any]:
        """The fields of the order, beside who gives it. Raises WireError when it cannot be completed."""
        if (second is None) == bool(verb.second):
            raise refused("E-SECOND-DIRECTOR" if verb.second else "E-ORDER-SIGNER")
        if second is not None and second.role not in verb.second:
            raise refused("E-ORDER-ROLE")
        if verb.order is OpenSeance:
            return {"seance": self._next_seance(), "rules_sha256": self._rules_sha256}
        if verb.order is CertifyStatement:
            return self._certification(**arguments)
        if verb.order is EnrolPerson:
            return {"second": second, **self._enrolment(**arguments)}
        if verb.order is RevokePerson:
            return {"second": second, **self._revocation(**arguments)}
        return arguments

    def _certification(self, seance: str, lines: list[str]) -> dict[str, Any]:
        note = self._statement_note(seance)
        if note is None:
            raise refused("E-STATEMENT-NOT-AWAITED")
        text, persons = parse_note(note).text, []
        for line in lines:
            try:
                person = signer_of(self._persons, self._prefix, text, parse_signature(line))
            except NoteFault:
                person = None
            if person is None:
                raise refused("E-STATEMENT-SIGNATURE")
            if person.revoked:
                raise refused("E-ORDER-REVOKED")
            persons.append(person.person)
        return {"seance": seance, "note": note + "".join(f"{line}\n" for line in lines), "persons": tuple(persons)}

    def _enrolment(self, badge: str, role: str, vkey: str) -> dict[str, Any]:
        try:
            enrolled = EnrolledPerson(badge=badge, role=Role(role), vkey=vkey)
        except KeyFault as fault:
            raise malformed(
                f"La clé ne convient pas : {fault.detail}.", f"The key will not do: {fault.detail}."
            ) from None
        if enrolled.verifier.name != self._prefix + badge:
            wanted = f"{self._prefix}{badge}"
            raise malformed(f"La clé doit être nommée {wanted}.", f"The key must be named {wanted}.")
        known = self._persons.get(badge)
        if known is not None and not known.revoked:
            raise refused("E-PERSON-ENROLLED")
        if any(
            other.verifier.public == enrolled.verifier.public and other.badge != badge
            for other in self._persons.values()
        ):
            raise refused("E-KEY-SHARED")
        return {"badge": badge, "role": enrolled.role, "vkey": vkey}

    def _revocation(self, badge: str, reason: str) -> dict[str, Any]:
        person = self._persons.get(badge)
        if person is None or person.revoked:
            raise refused("E-PERSON-UNKNOWN")
        directors = [
            other.badge
            for other in self._persons.values()
            if other.role is Role.DIRECTOR and not other.revoked and other.badge != badge
        ]
        return {
            "badge": badge,
            "role": person.role,
            "vkey": person.vkey,
            "reason": reason,
            "directors": tuple(sorted(directors)[:DIRECTORS_NAMED]),
        }
