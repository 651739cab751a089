"""The statement of a séance: the text that the table and the persons sign (certification notes, 7.4).

    table-controller/seance/v1
    casino.example/table/t07/1
    seance 2026-11-30-1
    ouverture 100231 2026-11-30T20:00:03Z        entry and time
    cloture 104877 2026-12-01T03:10:44Z
    racine 104878 CsUYapGG…xq2I=                 the journal up to the closing: size and root
    etat sha256:5f0c…                            digest of the report
    coups 212                                    of this séance, then perpetual
    coups-perpetuel 40833
    mise-cents 4820000
    …
    — casino.example/table/t07/1 Az3g…           the table, and then the persons

A note and not a cosignature: a cosignature says "the largest tree that I have seen", which no person can check. The
statement says what he did check: the report.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from controller.certify.faults import NoteFault
from controller.certify.note import decode_base64
from controller.registers.report import ends_of, report
from controller.registers.seance import At, Seance, read_seance
from games.seance import SeanceClosed
from games.statement import Totals

HEADER = "table-controller/seance/v1"

_HEAD = re.compile(
    rf"{re.escape(HEADER)}\n(?P<origin>[^\n ]+)\nseance (?P<seance>[A-Za-z0-9._-]{{1,64}})\n"
    r"ouverture (?P<opened>0|[1-9][0-9]*) [0-9TZ:-]{20}\ncloture (?P<closed>0|[1-9][0-9]*) [0-9TZ:-]{20}\n"
    r"racine (?P<size>[1-9][0-9]*) (?P<root>[A-Za-z0-9+/=]{44})\netat sha256:(?P<report>[0-9a-f]{64})\n"
    r"(?:[a-z-]+ (?:0|[1-9][0-9]*)\n)+"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A séance as it is put to the persons: the report that they read, and the text that they sign."""

    seance: str
    report: str
    text: str


@dataclass(frozen=True, slots=True)
class StatementHead:
    """What a statement's text binds: ``root`` stands for the first ``size`` entries of ``origin``."""

    origin: str
    seance: str
    size: int
    root: bytes
    report_sha256: str


def state_seance(leaves: Iterable[bytes], root: bytes) -> Statement:
    """The statement of the séance of ``leaves``, its opening to its closing entry; ``root`` is that of the journal
    up to the closing entry, included. Raises RegisterFault and CodecError.
    """
    return make_statement(read_seance(leaves), root)


def make_statement(seance: Seance, root: bytes) -> Statement:
    """The statement of a séance that was read. Raises RegisterFault (E-SEANCE-ENTRIES)."""
    (opened_at, opened), (closed_at, closed), totals = ends_of(seance)
    told = report(seance, root)
    lines = (
        HEADER,
        seance.origin,
        f"seance {opened.seance}",
        f"ouverture {_at(opened_at)}",
        f"cloture {_at(closed_at)}",
        f"racine {closed_at.index + 1} {b64encode(root).decode()}",
        f"etat sha256:{sha256(told.encode()).hexdigest()}",
        *_figures(closed, totals),
    )
    return Statement(opened.seance, told, "".join(f"{line}\n" for line in lines))


def _at(at: At) -> str:
    return f"{at.index} {at.time[:19]}Z"


def _figures(closed: SeanceClosed, totals: Totals) -> tuple[str, ...]:
    return (
        f"seances-perpetuel {totals.seances}",
        f"coups {closed.rounds}",
        f"coups-perpetuel {totals.rounds}",
        f"credite-cents {closed.credited_cents}",
        f"credite-perpetuel-cents {totals.credited_cents}",
        f"mise-cents {closed.staked_cents}",
        f"mise-perpetuel-cents {totals.staked_cents}",
        f"rendu-cents {closed.returned_cents}",
        f"rendu-perpetuel-cents {totals.returned_cents}",
        f"gagne-cents {closed.won_cents}",
        f"gagne-perpetuel-cents {totals.won_cents}",
        f"paye-cents {closed.paid_out_cents}",
        f"paye-perpetuel-cents {totals.paid_out_cents}",
        f"orphelins-cents {closed.orphaned_cents}",
        f"orphelins-perpetuel-cents {totals.orphaned_cents}",
    )


def read_statement(text: str) -> StatementHead:
    """What a statement's text binds. Raises NoteFault (E-STATEMENT-MALFORMED)."""
    found = _HEAD.fullmatch(text)
    if found is None or int(found["size"]) != int(found["closed"]) + 1:
        raise NoteFault("E-STATEMENT-MALFORMED", f"the signed text is not the statement of a séance: {text[:80]!r}")
    root = decode_base64(found["root"], "the root of a statement")
    return StatementHead(found["origin"], found["seance"], int(found["size"]), root, found["report"])
