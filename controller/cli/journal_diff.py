"""``tablectl journal diff``: a table's journal beside the mirror's copy of it, entry by entry.

Either may be the shorter one, and that is explained: what the mirror lacks has yet to arrive, or its copy is an older
one. But a journal that ends before what the mirror has *cosigned* went back in time, and two entries of one index that
differ are two histories.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from controller.certify.reader import Reader
from controller.certify.verify import Outcome
from controller.cli.commands import Command, option
from controller.cli.failure import Failure
from controller.cli.language import Phrase, here
from controller.cli.output import fields, heading, progress, tell, trouble
from controller.cli.target import target_of, target_options
from controller.cli.verdicts import VERDICTS
from controller.mirror.faults import MirrorFault
from controller.mirror.store import Held, Store
from controller.mirror.stores import read_store

AT_A_TIME = 1_024
"""Entries that are compared at a time."""


class Relation(StrEnum):
    """How the journal stands to the mirror's copy."""

    SAME = "same"
    AHEAD = "ahead"  # the mirror's copy is the beginning of the journal
    OLDER = "older"  # the journal is the beginning of the copy, and the mirror has cosigned no more than it holds
    ROLLED_BACK = "rolled-back"
    FORKED = "forked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What was found. ``index`` is the first entry that differs, or the first that only one of them has."""

    relation: Relation
    journal_size: int
    mirror_size: int
    cosigned: int
    index: int | None


def compare(reader: Reader, store: Store, held: Held, step: Callable[[int, int], None]) -> Difference:
    """Compare all entries that both have. Raises JournalFault and MirrorFault."""
    size = reader.size
    both = min(size, held.size)
    index = None
    for start in range(0, both, AT_A_TIME):
        stop = min(start + AT_A_TIME, both)
        pairs = zip(reader.leaves(start, stop), store.leaves(held.origin, start, stop), strict=True)
        index = next((at for at, (ours, theirs) in enumerate(pairs, start) if ours != theirs), None)
        step(stop, both)
        if index is not None:
            break
    relation = _relation(size, held, index)
    if index is None and size != held.size:
        index = both
    return Difference(relation=relation, journal_size=size, mirror_size=held.size, cosigned=held.cosigned, index=index)


def _relation(size: int, held: Held, differs: int | None) -> Relation:
    if differs is not None or held.fork:
        return Relation.FORKED
    if size < max(held.cosigned, held.claimed):
        return Relation.ROLLED_BACK
    if size < held.size:
        return Relation.OLDER
    return Relation.AHEAD if size > held.size else Relation.SAME


@click.command(
    "diff",
    cls=Command,
    phrase=Phrase(
        "Compare un journal à la copie du service central.\n\n"
        "MIRROR est la base du service : un fichier SQLite, ou une adresse postgresql://.",
        "Compare a journal with the mirror's copy.\n\n"
        "MIRROR is the service's store: an SQLite file, or a postgresql:// address.",
    ),
    exits={
        0: Phrase("pareils, ou l'un est le début de l'autre", "the same, or one is the beginning of the other"),
        2: VERDICTS[Outcome.ROLLED_BACK_OR_FORKED],
        3: VERDICTS[Outcome.UNSIGNED_OR_UNKNOWN_KEY],
        4: Phrase("le service n'a rien de ce journal", "the mirror has nothing of this journal"),
        5: Phrase("l'un des deux ne peut pas être lu", "one of them cannot be read"),
    },
)
@target_options
@option(
    "--mirror",
    metavar="FILE|URL",
    required=True,
    phrase=Phrase("La base du service central.", "The mirror's store."),
)
def diff_command(target: Path, vkey: str | None, mirror: str) -> int:
    """Compare a journal with the mirror's copy."""
    judged = target_of(target, vkey)
    origin = judged.keys.origin
    try:
        with closing(read_store(mirror)) as store, closing(Reader(judged.file)) as reader:
            held = next((one for one in store.held() if one.origin == origin), None)
            if held is None:
                detail = here(f"il n'a rien de {origin}", f"it has nothing of {origin}")
                raise Failure("E-MIRROR-NOTHING", detail, Outcome.INCOMPLETE)
            with progress(here("Comparaison", "Comparing")) as step:
                found = compare(reader, store, held, step)
    except MirrorFault as fault:
        raise Failure(fault.code, fault.detail, Outcome.UNREADABLE) from None
    tell(_document(origin, found), _lines(origin, found))
    wrong = found.relation in (Relation.FORKED, Relation.ROLLED_BACK)
    return Outcome.ROLLED_BACK_OR_FORKED if wrong else Outcome.OK


def _document(origin: str, found: Difference) -> dict[str, Any]:
    return {
        "origin": origin,
        "relation": found.relation.value,
        "journal": found.journal_size,
        "mirror": found.mirror_size,
        "cosigned": found.cosigned,
        "entry": found.index,
    }


_MEANINGS = {
    Relation.SAME: Phrase("les deux ont les mêmes écritures", "both have the same entries"),
    Relation.AHEAD: Phrase(
        "le service a le début du journal ; le reste est en route",
        "the mirror has its beginning; the rest is on its way",
    ),
    Relation.OLDER: Phrase(
        "le journal est un état plus ancien de la même histoire", "the journal is an older state of the same history"
    ),
}


def _lines(origin: str, found: Difference) -> list[str]:
    lines = [heading(origin)]
    lines += fields(
        [
            (here("journal", "journal"), str(found.journal_size)),
            (here("service central", "mirror"), str(found.mirror_size)),
            (here("acquittées", "cosigned"), str(found.cosigned)),
            (here("première différence", "first difference"), "" if found.index is None else str(found.index)),
        ],
        indent="  ",
    )
    if found.relation is Relation.FORKED:
        return lines + trouble("E-JOURNAL-FORKED")
    if found.relation is Relation.ROLLED_BACK:
        return lines + trouble("E-JOURNAL-ROLLED-BACK")
    return [*lines, "  " + click.style(str(_MEANINGS[found.relation]), fg="green")]
