"""What is kept of one fork: both branches as they came, a bounded number of pieces."""

from controller.mirror.store import Evidence, EvidenceKind, Side

EVIDENCE_BOUND = 256
"""Pieces of evidence that are kept of one fork; what more comes is of the same kind."""


class Dossier:
    """The evidence about one journal: ``count`` pieces are stored, more are drafted."""

    def __init__(self, origin: str, count: int) -> None:
        self._origin = origin
        self._count = count
        self._drafted: list[Evidence] = []

    @property
    def full(self) -> bool:
        """Whether nothing more is kept."""
        return self._count >= EVIDENCE_BOUND

    def add(self, kind: EvidenceKind, side: Side, at: int, content: bytes, heard_ms: int) -> bool:
        """Draft a piece, if there is room for it."""
        if self.full:
            return False
        self._count += 1
        self._drafted.append(
            Evidence(origin=self._origin, kind=kind, side=side, at=at, content=content, heard_ms=heard_ms)
        )
        return True

    def take(self) -> list[Evidence]:
        """The draft, to be stored."""
        drafted, self._drafted = self._drafted, []
        return drafted
