"""What may go wrong with leaves, notes, keys and the journal. Each fault carries a code that is explained to people."""


class CertifyFault(Exception):
    """Base of the four faults below.

    ``code`` is explained by ``tablectl explain``; ``detail`` says what was found, and where.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code} {self.detail}"


class LeafFault(CertifyFault):
    """A value that no leaf may carry, or bytes that are not a leaf."""


class NoteFault(CertifyFault):
    """A signed note, a checkpoint or a statement that is malformed, unsigned or falsely signed."""


class KeyFault(CertifyFault):
    """A key file or a key text that cannot be used."""


class JournalFault(CertifyFault):
    """The journal file cannot be created, opened, trusted or written. ``index`` is the entry concerned, if known."""

    def __init__(self, code: str, detail: str, index: int | None = None) -> None:
        super().__init__(code, detail)
        self.args = (code, detail, index)  # so that the fault survives its way back from a verifying process
        self.index = index
