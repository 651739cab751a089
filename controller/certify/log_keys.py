"""The keys that may speak for one log: one, or two while the table's key is being changed.

A key's name is the origin of its log. When a table gets a new key, both keys sign for a while, and whoever verifies
trusts both: what one of them signed is the table's word, and what either of them signed wrongly is refused.
"""

from dataclasses import dataclass
from typing import Self

from controller.certify.faults import KeyFault
from controller.certify.note import Signature, Verifier

KEYS_BOUND = 16
"""Keys of one log, at the most: a table changes its key about once a year."""


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The verifiers of the log ``origin``, in the order in which they came into use."""

    origin: str
    verifiers: tuple[Verifier, ...]

    @classmethod
    def of(cls, *verifiers: Verifier) -> Self:
        """These keys. Raises KeyFault (E-KEY-MALFORMED) when there is none, too many, or they name several logs."""
        names = {verifier.name for verifier in verifiers}
        if len(names) != 1 or len(verifiers) > KEYS_BOUND:
            named = ", ".join(sorted(names)) or "none"
            raise KeyFault("E-KEY-MALFORMED", f"1 to {KEYS_BOUND} keys of one log are needed, not keys of: {named}")
        return cls(verifiers[0].name, verifiers)

    @classmethod
    def parse(cls, text: str) -> Self:
        """One verifier key on each line, all of the same name. Raises KeyFault (E-KEY-MALFORMED)."""
        return cls.of(*(Verifier.parse(line) for line in text.split("\n") if line))

    @property
    def text(self) -> str:
        """One verifier key on each line."""
        return "".join(f"{verifier.vkey}\n" for verifier in self.verifiers)

    def made(self, signature: Signature) -> bool:
        """Whether ``signature`` claims to be by one of these keys."""
        return any(verifier.made(signature) for verifier in self.verifiers)
