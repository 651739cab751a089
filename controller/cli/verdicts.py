"""The verdict on a journal, in words: for the commands that verify one."""

from collections.abc import Iterator
from typing import Any

import click

from controller.certify.verify import Outcome, Verdict
from controller.cli.language import Phrase, colon, here
from controller.cli.output import dim, fields, heading, trouble
from controller.cli.target import Target

VERDICTS = {
    Outcome.OK: Phrase(
        "tout concorde : rien n'a changé depuis la signature", "all agrees: nothing changed since it was signed"
    ),
    Outcome.ALTERED: Phrase("le journal a été altéré", "the journal was altered"),
    Outcome.ROLLED_BACK_OR_FORKED: Phrase(
        "des écritures signées manquent, ou deux histoires existent",
        "signed entries are gone, or there are two histories",
    ),
    Outcome.UNSIGNED_OR_UNKNOWN_KEY: Phrase(
        "pas signé, ou signé par une autre clé, ou clé absente", "not signed, or by another key, or the key is absent"
    ),
    Outcome.INCOMPLETE: Phrase("une écriture manque", "an entry is missing"),
    Outcome.UNREADABLE: Phrase("le journal ne peut pas être lu", "the journal cannot be read"),
}


def verdict_document(target: Target, verdict: Verdict) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "journal": str(target.file),
        "vkey": target.vkey,
        "outcome": verdict.outcome.name.lower(),
        "size": verdict.size,
        "root": verdict.root.hex(),
        "checkpoints": verdict.checkpoints,
        "cosignatures": verdict.cosignatures,
        "unknown_cosignatures": verdict.unknown_cosignatures,
        "witnessed": verdict.witnessed,
        "key_found_beside": target.found_beside,
        "code": verdict.code,
        "problem": verdict.problem,
        "entry": verdict.index,
        "others": list(verdict.others),
    }


def verdict_lines(target: Target, verdict: Verdict, *, remembered: bool = False) -> list[str]:
    """What was found, for people. ``remembered`` says that it was compared with a checkpoint kept elsewhere."""
    lines = [heading(str(target.file))]
    if verdict.ok:
        pairs = [
            (here("écritures", "entries"), str(verdict.size)),
            (here("racine", "root"), verdict.root.hex()),
            (here("points de contrôle", "checkpoints"), str(verdict.checkpoints)),
            (here("contre-signatures", "cosignatures"), _cosignatures(verdict)),
            (here("clé", "key"), target.keys.origin),
        ]
        lines += [*fields(pairs, indent="  "), "  " + click.style(str(VERDICTS[verdict.outcome]), fg="green")]
        return [*lines, *("  " + dim(caveat) for caveat in _caveats(target, verdict, remembered))]
    lines += trouble(verdict.code or "", verdict.problem or "")
    lines += [f"  {here('et aussi', 'and also')}{colon()}{other}" for other in verdict.others]
    if verdict.index is not None:
        lines.append(f"  {here('première écriture concernée', 'first entry concerned')}{colon()}{verdict.index}")
    return lines


def _caveats(target: Target, verdict: Verdict, remembered: bool) -> Iterator[str]:
    """What this verification cannot exclude (docs/trust.md)."""
    if target.found_beside:
        yield here(
            "clé trouvée à côté du journal : la comparer à celle reçue d'ailleurs (--vkey, --policy)",
            "key found beside the journal: compare it with the one received from elsewhere (--vkey, --policy)",
        )
    if not verdict.cosignatures and not remembered:
        yield here(
            "aucun témoin vérifié (--policy, --remembered) : une fin coupée ne se verrait pas",
            "no witness verified (--policy, --remembered): a tail that was cut off would not show",
        )


def _cosignatures(verdict: Verdict) -> str:
    """How many were verified, how far they reach, and how many are by keys that nobody named; empty without any."""
    told = []
    if verdict.cosignatures:
        told.append(
            here(
                f"{verdict.cosignatures}, jusqu'à {verdict.witnessed} écritures",
                f"{verdict.cosignatures}, up to {verdict.witnessed} entries",
            )
        )
    if verdict.unknown_cosignatures:
        unknown = verdict.unknown_cosignatures
        told.append(here(f"{unknown} de clés non données (--policy)", f"{unknown} by keys not given (--policy)"))
    return here(" ; ", "; ").join(told)
