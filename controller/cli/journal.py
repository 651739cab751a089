"""``tablectl journal``: read, verify and create a table's journal. Nothing here can change an entry."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from controller.certify.archive_check import archived_checkpoint
from controller.certify.faults import KeyFault, LeafFault, NoteFault
from controller.certify.leaf import Leaf, leaf_hash, parse_leaf
from controller.certify.policy import Policy
from controller.certify.reader import Reader
from controller.certify.tar import is_archive
from controller.certify.tree import verify_inclusion
from controller.certify.verify import Outcome, verify
from controller.cli import journal_files, journal_proofs
from controller.cli.commands import Group, argument, option, path_option, whole_number
from controller.cli.entries import entry_of, known, no_such_entry
from controller.cli.failure import Failure
from controller.cli.journal_diff import diff_command
from controller.cli.journal_volumes import volumes_command
from controller.cli.language import Phrase, colon, here
from controller.cli.output import dim, fields, heading, progress, tell, trouble, wants_json
from controller.cli.story import story
from controller.cli.target import (
    NO_KEY,
    Target,
    policy_option,
    read_policy,
    signed_checkpoint,
    target_of,
    target_options,
)
from controller.cli.verdicts import VERDICTS, verdict_document, verdict_lines

FOLLOW_S = 0.25
"""How often ``tail -f`` looks for new entries."""

command = Group(
    "journal",
    phrase=Phrase(
        "Lire, vérifier, prouver et archiver le journal d'une table.",
        "Read, verify, prove and archive a table's journal.",
    ),
)


# ── verify ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "verify",
    phrase=Phrase(
        "Vérifie chaque écriture, chaque empreinte et chaque signature d'un journal ou d'une archive.\n\n"
        "Il ne faut que le fichier et la clé publique de la table ; la table peut jouer pendant ce temps.",
        "Verify every entry, every hash and every signature of a journal or of an archive.\n\n"
        "Only the file and the table's public key are needed; the table may play meanwhile.",
    ),
    exits={int(outcome): phrase for outcome, phrase in VERDICTS.items()},
)
@target_options
@path_option(
    "--remembered",
    metavar="NOTE",
    phrase=Phrase(
        "Un point de contrôle gardé ailleurs : le journal doit en être la suite.",
        "A checkpoint that was kept elsewhere: the journal must have grown from it.",
    ),
)
@policy_option(
    Phrase(
        "Les clés et les témoins que l'on croit (c2sp.org/tlog-policy), au lieu de --vkey.",
        "The keys and witnesses that are believed (c2sp.org/tlog-policy), instead of --vkey.",
    )
)
def verify_command(target: Path, vkey: str | None, remembered: Path | None, policy: Path | None) -> int:
    """Verify a journal or an archive; the status is the outcome."""
    judged = target_of(target, vkey)
    try:
        note = remembered.read_text(encoding="utf-8") if remembered else None
        believed = read_policy(policy)
        if believed is not None:
            judged = replace(judged, vkey=believed.keys(_origin(judged)).text, found_beside=False)
        if is_archive(judged.file):
            return _verify_archive(judged, note, believed)
        with progress(here("Vérification", "Verifying")) as step:
            verdict = verify(judged.file, judged.keys, step, remembered=note, policy=believed)
    except (KeyFault, NoteFault) as fault:
        raise Failure(fault.code, fault.detail, NO_KEY) from None
    except OSError as error:
        raise Failure("E-FILE", f"{error.filename}{colon()}{error.strerror}", Outcome.UNREADABLE) from None
    tell(verdict_document(judged, verdict), verdict_lines(judged, verdict, remembered=note is not None))
    return int(verdict.outcome)


def _origin(judged: Target) -> str:
    """The log that a journal or an archive says it is. Raises JournalFault and OSError."""
    if is_archive(judged.file):
        return archived_checkpoint(judged.file).partition("\n")[0]
    with closing(Reader(judged.file)) as reader:
        return reader.checkpoint().partition("\n")[0]


def _verify_archive(judged: Target, remembered: str | None, policy: Policy | None) -> int:
    from controller.cli import journal_archive  # it knows every fact, which a journal's verification need not

    verdict, contents = journal_archive.judge_archive(judged, remembered, policy)
    document = verdict_document(judged, verdict) | journal_archive.contents_document(contents)
    lines = verdict_lines(judged, verdict, remembered=remembered is not None)
    tell(document, [*lines, *journal_archive.contents_lines(contents)])
    return int(verdict.outcome)


# ── tail ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "tail",
    phrase=Phrase("Montre les dernières écritures, une par ligne.", "Show the last entries, one on each line."),
    exits={
        0: Phrase("tout a été lu", "all was read"),
        1: Phrase("une écriture ne peut pas être lue", "an entry cannot be read"),
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@option(
    "-n",
    "--lines",
    default="20",
    callback=whole_number(),
    phrase=Phrase("Combien ; 20 sinon.", "How many; 20 otherwise."),
)
@option("-f", "--follow", is_flag=True, phrase=Phrase("Attend les suivantes (Ctrl-C).", "Wait for more (Ctrl-C)."))
def tail_command(target: Path, vkey: str | None, lines: int, follow: bool) -> int:
    """Print the last entries."""
    status = 0
    with closing(Reader(target_of(target, vkey).file)) as reader:
        size = reader.size
        start = max(0, size - lines)
        try:
            while True:
                for index, leaf in enumerate(reader.leaves(start, size), start):
                    status |= _print_entry(index, leaf)
                if not follow:
                    return status
                start = size
                time.sleep(FOLLOW_S)
                size = reader.size
        except KeyboardInterrupt:
            return status


def _print_entry(index: int, leaf: bytes) -> int:
    try:
        entry = entry_of(leaf)
    except LeafFault as fault:
        click.echo(f"{index:>7} {click.style(str(fault), fg='red')}")
        return 1
    click.echo(leaf.decode() if wants_json() else entry.line)
    return 0


# ── show ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "show",
    phrase=Phrase(
        "Montre une écriture en entier, et si elle est bien dans l'arbre signé.",
        "Show one entry in full, and whether it is in the signed tree.",
    ),
    exits={
        0: Phrase("l'écriture est prouvée", "the entry is proven"),
        1: Phrase("elle n'est pas dans l'arbre signé", "it is not in the signed tree"),
        2: Phrase("pas d'écriture de ce numéro", "there is no entry of this number"),
        3: VERDICTS[Outcome.UNSIGNED_OR_UNKNOWN_KEY],
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@argument("index", callback=whole_number(), phrase=Phrase("Numéro de l'écriture.", "Number of the entry."))
def show_command(target: Path, vkey: str | None, index: int) -> int:
    """Print one entry with its proof."""
    judged = target_of(target, vkey)
    with closing(Reader(judged.file)) as reader:
        checkpoint = signed_checkpoint(judged.file, judged.keys)
        if index >= checkpoint.size:
            raise Failure("E-JOURNAL-ENTRY", no_such_entry(index, checkpoint.size), 2)
        leaf = reader.leaf(index)
        proof = reader.inclusion_proof(index, checkpoint.size)
    proven = verify_inclusion(leaf_hash(leaf), index, checkpoint.size, proof, checkpoint.root)
    read = parse_leaf(leaf)
    document = {
        "entry": json.loads(leaf),
        "leaf_hash": leaf_hash(leaf).hex(),
        "proven": proven,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "proof": [node.hex() for node in proof],
    }
    tell(document, [*_leaf_lines(read, leaf), *_proof_lines(proven, checkpoint.size, checkpoint.root)])
    return 0 if proven else 1


def _leaf_lines(leaf: Leaf, raw: bytes) -> Iterator[str]:
    data = json.loads(leaf.data)
    fact = known(leaf.kind, data)
    yield heading(f"{here('Écriture', 'Entry')} {leaf.index}") + f"  {story(fact) if fact else leaf.kind}"
    yield from fields(
        [
            (here("genre", "kind"), leaf.kind),
            (here("heure", "time"), f"{leaf.time} ({leaf.quality})"),
            (here("séance", "séance"), leaf.seance or ""),
            (here("table", "table"), leaf.source),
            (here("démarrage", "boot"), f"{leaf.boot}, {leaf.mono_ms} ms"),
            (here("précédente", "previous"), leaf.previous.hex()),
            (here("empreinte", "hash"), leaf_hash(raw).hex()),
        ],
        indent="  ",
    )
    yield from ("  " + line for line in json.dumps(data, ensure_ascii=False, indent=2).splitlines())


def _proof_lines(proven: bool, size: int, root: bytes) -> list[str]:
    if not proven:
        detail = here(
            "cette écriture, ou une autre, n'est pas celle qui a été signée ; « tablectl journal verify » la nomme",
            "this entry, or another one, is not the one that was signed; `tablectl journal verify` names it",
        )
        return trouble("E-JOURNAL-ALTERED", detail)
    text = here(
        f"prouvée : elle est dans l'arbre signé de {size} écritures",
        f"proven: it is in the signed tree of {size} entries",
    )
    return [f"  {click.style(text, fg='green')} {dim(root.hex())}"]


for one in (
    diff_command,
    volumes_command,
    journal_files.export_command,
    journal_files.create_command,
    journal_files.unpack_command,
    journal_proofs.prove_command,
    journal_proofs.check_proof_command,
):
    command.add_command(one)
