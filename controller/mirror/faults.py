"""What may go wrong at the mirror. Each fault carries a code that is explained to people."""

from dataclasses import dataclass

from controller.certify.faults import CertifyFault


class MirrorFault(CertifyFault):
    """The mirror cannot start, or cannot go on."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something about one journal that a person should know. ``about`` is its origin, or the topic it came on."""

    code: str
    about: str
    detail: str
