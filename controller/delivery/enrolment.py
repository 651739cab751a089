"""Who may sign orders at a table: the founding list of its configuration, and what certified facts made of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from controller.certify.faults import KeyFault
from controller.certify.note import KeyType, Signature, Verifier
from games.persons import Persons
from games.signals import Person, Role


@dataclass(frozen=True, slots=True)
class EnrolledPerson:
    """A person whose orders the table knows. Raises KeyFault when the key is not one that may sign for this badge."""

    badge: str
    role: Role
    vkey: str
    revoked: bool = False
    verifier: Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        verifier = Verifier.parse(self.vkey)
        if not verifier.name.endswith(f"/personne/{self.badge}") or verifier.key_type is not KeyType.ED25519:
            raise KeyFault(
                "E-KEY-PERSON", f"the key of badge {self.badge} must be an Ed25519 key named …/personne/{self.badge}"
            )
        object.__setattr__(self, "verifier", verifier)

    @property
    def person(self) -> Person:
        """Who acts, as facts name him."""
        return Person(badge=self.badge, role=self.role)


class Listed(Protocol):
    """A person of the founding list, as a configuration has him."""

    @property
    def badge(self) -> str:
        """The badge."""
        ...

    @property
    def role(self) -> Role:
        """What he may do."""
        ...

    @property
    def vkey(self) -> str:
        """His verifier key."""
        ...

    @property
    def revoked(self) -> bool:
        """Whether no order of his is taken."""
        ...


def founding_list(listed: Iterable[Listed]) -> tuple[EnrolledPerson, ...]:
    """The founding list. Raises KeyFault when a key is not one that may sign for its badge."""
    return tuple(EnrolledPerson(one.badge, one.role, one.vkey, one.revoked) for one in listed)


def signer_of(
    persons: Mapping[str, EnrolledPerson], prefix: str, text: str, signature: Signature
) -> EnrolledPerson | None:
    """Who of ``persons``, whose keys' names begin with ``prefix``, signed this ``text``; None when nobody did."""
    person = persons.get(signature.name.removeprefix(prefix))
    if person is None or not person.verifier.made(signature) or not person.verifier.verifies(text, signature):
        return None
    return person


def in_force(founding: Iterable[EnrolledPerson], persons: Persons) -> dict[str, EnrolledPerson]:
    """The list in force, by badge. What facts say of a badge goes before the founding list, whatever that says now."""
    listed = {
        person.badge: replace(person, revoked=True) if person.vkey in persons.revoked_keys else person
        for person in founding
    }
    enrolled = {
        badge: EnrolledPerson(badge, one.role, one.vkey, one.revoked) for badge, one in persons.by_badge.items()
    }
    return listed | enrolled
