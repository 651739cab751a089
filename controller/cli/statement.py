"""``tablectl statement``: a séance's report and statement, signed by persons, and checked by anyone."""

from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import NoteFault
from controller.certify.keys import load_key
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import Note, Signature, Verifier, open_note, parse_note
from controller.certify.policy import POLICY_BOUND, Policy
from controller.certify.reader import Reader
from controller.certify.tree import verify_inclusion
from controller.cli.commands import Group, argument, option, path_option
from controller.cli.failure import USAGE, Failure
from controller.cli.language import Phrase, colon, here
from controller.cli.ordering import give_order, order_options
from controller.cli.output import fields, progress, tell, wants_json
from controller.cli.target import NO_KEY, Target, signed_checkpoint, target_of, target_options
from controller.cli.words import who
from controller.registers.report import fingerprint
from controller.registers.source import Certified, at_once, find_certification, find_seance, state_from
from controller.registers.statement import Statement, StatementHead, read_statement

FILE_BOUND = 65_536
"""Bytes of a note that is read."""

REPORT_BOUND = 64_000_000
"""Bytes of a report that is read: more than a séance without end would give."""

command = Group(
    "statement",
    phrase=Phrase("Lire, signer et vérifier l'état d'une séance.", "Read, sign and check the statement of a séance."),
)


# ── show ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "show",
    phrase=Phrase(
        "Montre l'état d'une séance, et qui l'a certifié ; la dernière fermée sans SEANCE.\n\n"
        "Tout vient des écritures certifiées, prouvées par la signature de la table. Un état certifié est marqué "
        "DUPLICATA : l'original est le registre papier.",
        "Show the report of a séance, and who certified it; of the last one that was closed without SEANCE.\n\n"
        "All of it comes from certified entries, proven by the table's signature. A certified report is marked "
        "DUPLICATA: the original is the paper register.",
    ),
    exits={
        0: Phrase("l'état est montré", "the report is shown"),
        1: Phrase("il n'est pas dans l'arbre signé, ou la note dit autre chose", "it is not in the signed tree"),
        2: Phrase("pas de séance fermée de ce nom", "there is no closed séance of this name"),
        3: Phrase("clé absente ou inconnue", "the key is missing or unknown"),
        5: Phrase("le journal ne peut pas être lu", "the journal cannot be read"),
    },
)
@target_options
@argument("seance", required=False, default="", metavar="[SEANCE]", phrase=Phrase("Son nom.", "Its name."))
@option(
    "--note",
    "only_note",
    is_flag=True,
    phrase=Phrase(
        "Seulement la note certifiée, ou le texte à signer tant qu'elle ne l'est pas.",
        "Only the certified note, or the text to be signed while it is not.",
    ),
)
@option(
    "--report",
    "only_report",
    is_flag=True,
    phrase=Phrase(
        "Seulement le rapport, dont l'empreinte est dans la note.", "Only the report, whose digest the note has."
    ),
)
def show_command(target: Path, vkey: str | None, seance: str, only_note: bool, only_report: bool) -> None:
    """Print a report."""
    statement, certified = _proven(target_of(target, vkey), seance)
    note = certified.fact.note if certified else statement.text
    if (only_note or only_report) and not wants_json():
        click.echo(note if only_note else statement.report, nl=False)
        return
    head = read_statement(statement.text)
    document: dict[str, Any] = {
        "seance": statement.seance,
        "certified": certified is not None,
        "entry": certified.index if certified else None,
        "persons": [person.badge for person in certified.fact.persons] if certified else [],
        "root": head.root.hex(),
        "size": head.size,
        "fingerprint": fingerprint(head.root),
        "report_sha256": head.report_sha256,
        "note": note,
        "report": statement.report,
    }
    tell(document, [*_certification_lines(certified), "", *statement.report.splitlines()])


def _proven(target: Target, seance: str) -> tuple[Statement, Certified | None]:
    """A statement whose entries are in the signed tree, and what certified it. Raises Failure and CertifyFault."""
    keys = target.keys
    with closing(Reader(target.file)) as reader, progress(here("Lecture", "Reading")) as step:
        statement = at_once(state_from(reader, seance))
        step(1, 3)
        closed = at_once(find_seance(reader, statement.seance)).stop - 1
        step(2, 3)
        certified = at_once(find_certification(reader, statement.seance, closed))
        checkpoint = signed_checkpoint(target.file, keys)  # last: a table that runs signs more all the time
        for index in (closed, certified.index if certified else closed):
            _check_signed(reader, index, checkpoint)
    if certified is not None and parse_note(certified.fact.note).text != statement.text:
        raise Failure("E-STATEMENT-UNTRUE", f"{statement.seance}{colon()}{here('écriture', 'entry')} {certified.index}")
    if certified is not None:
        open_note(certified.fact.note, keys.verifiers)
    return statement, certified


def _check_signed(reader: Reader, index: int, checkpoint: Checkpoint) -> None:
    """Raise Failure (E-JOURNAL-ALTERED) when an entry is not in the signed tree."""
    proof = reader.inclusion_proof(index, checkpoint.size)
    if not verify_inclusion(leaf_hash(reader.leaf(index)), index, checkpoint.size, proof, checkpoint.root):
        detail = here(f"l'écriture {index} n'est pas celle qui a été signée", f"entry {index} is not the signed one")
        raise Failure("E-JOURNAL-ALTERED", detail)


def _certification_lines(certified: Certified | None) -> Iterator[str]:
    if certified is None:
        yield here("À CERTIFIER : personne ne l'a encore signé.", "TO BE CERTIFIED: nobody has signed it.")
        return
    signed = ", ".join(map(who, certified.fact.persons))
    yield here(
        f"DUPLICATA. Certifié par {signed}, écriture {certified.index}.",
        f"DUPLICATA. Certified by {signed}, entry {certified.index}.",
    )


# ── sign ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "sign",
    phrase=Phrase(
        "Signe une note, hors ligne, et montre la ligne de signature.\n\n"
        "NOTE est la note publiée par la table, ou le texte que « statement show --note » écrit.",
        "Sign a note, offline, and show the signature line.\n\n"
        "NOTE is the note that the table published, or the text that `statement show --note` writes.",
    ),
    exits={
        0: Phrase("signé", "signed"),
        1: Phrase("le rapport lu n'est pas celui de la note", "the report that was read is not that of the note"),
        2: Phrase("note ou clé inutilisable", "note or key cannot be used"),
    },
)
@argument("note", type=click.Path(path_type=Path), metavar="NOTE", phrase=Phrase("Le fichier.", "The file."))
@path_option("--key", metavar="FILE", required=True, phrase=Phrase("La clé de la personne.", "The person's key."))
@path_option(
    "--report",
    metavar="FILE",
    phrase=Phrase("Le rapport lu : il doit être celui de la note.", "The report that was read."),
)
def sign_command(note: Path, key: Path, report: Path | None) -> None:
    """Sign a statement."""
    text = _text_of(note)
    head = _checked_report(text, report)
    signature = load_key(key).sign(text)
    document = {"seance": head.seance, "name": signature.name, "line": signature.line}
    tell(document, [signature.line])


def _text_of(file: Path) -> str:
    """The text of a note, or a text that nobody has signed. Raises NoteFault (E-STATEMENT-MALFORMED)."""
    content = _read(file, FILE_BOUND)
    try:
        return parse_note(content).text
    except NoteFault:
        return content


def _checked_report(text: str, report: Path | None) -> StatementHead:
    head = read_statement(text)
    if report is not None and sha256(_read(report, REPORT_BOUND).encode()).hexdigest() != head.report_sha256:
        detail = here("ce rapport n'est pas celui de la note", "this report is not that of the note")
        raise Failure("E-STATEMENT-UNTRUE", f"{report}{colon()}{detail}")
    return head


def _read(file: Path, bound: int) -> str:
    with file.open("rb") as opened:
        content = opened.read(bound + 1)
    if len(content) > bound:
        raise NoteFault("E-STATEMENT-MALFORMED", f"{file} is longer than {bound} bytes")
    return content.decode(errors="replace")


# ── certify ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "certify",
    phrase=Phrase(
        "Envoie à la table les lignes de signature d'une note, par un ordre signé.\n\n"
        "--key signe l'ordre ; sans --line, cette personne signe aussi la note.",
        "Send the signature lines of a note to the table, by a signed order.\n\n"
        "--key signs the order; without --line, this person signs the note too.",
    ),
    exits={
        0: Phrase("la séance est certifiée", "the séance is certified"),
        1: Phrase("refusé", "refused"),
        2: Phrase("note ou clé inutilisable", "note or key cannot be used"),
        3: Phrase("la table ne répond pas", "the table does not answer"),
    },
)
@argument("note", type=click.Path(path_type=Path), metavar="NOTE", phrase=Phrase("Le fichier.", "The file."))
@order_options
@path_option("--key", metavar="FILE", required=True, phrase=Phrase("La clé de qui envoie.", "The sender's key."))
@option("--line", "lines", multiple=True, metavar="LINE", phrase=Phrase("Une ligne de signature.", "A signature line."))
def certify_command(
    note: Path,
    config: Path,
    certificate: Path | None,
    certificate_key: Path | None,
    key: Path,
    lines: tuple[str, ...],
) -> None:
    """Certify a séance."""
    from controller.config import load

    text = _text_of(note)
    seance = read_statement(text).seance
    arguments: dict[str, object] = {"seance": seance, "lines": list(lines) or [load_key(key).sign(text).line]}
    answer = give_order(load(config), (certificate, certificate_key), "statement.certify", arguments, key)
    entry = answer["index"]
    told = here(f"Séance {seance} certifiée, écriture {entry}.", f"Séance {seance} certified, entry {entry}.")
    tell(answer, [told])


# ── check ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@command.command(
    "check",
    phrase=Phrase(
        "Vérifie la note d'une séance : la signature de la table, et celles des personnes que l'on connaît.",
        "Check the note of a séance: the table's signature, and those of the persons who are known.",
    ),
    exits={
        0: Phrase("tout ce qui est connu a bien signé", "all who are known have signed it rightly"),
        1: Phrase("une signature ou le rapport ne va pas", "a signature or the report does not fit"),
        2: Phrase("ce n'est pas l'état d'une séance", "this is not the statement of a séance"),
        3: Phrase("la table ou une personne demandée n'a pas signé", "the table or a person asked for has not signed"),
    },
)
@argument("note", type=click.Path(path_type=Path), metavar="NOTE", phrase=Phrase("Le fichier.", "The file."))
@option("--vkey", metavar="FILE|KEY", phrase=Phrase("La clé publique de la table.", "The table's public key."))
@path_option("--policy", metavar="FILE", phrase=Phrase("Ou une politique qui la contient.", "Or a policy with it."))
@option(
    "--person",
    "persons",
    multiple=True,
    metavar="FILE|KEY",
    phrase=Phrase("La clé publique d'une personne qui doit avoir signé.", "The key of a person who must have signed."),
)
@path_option("--report", metavar="FILE", phrase=Phrase("Le rapport de cette séance.", "The report of this séance."))
def check_command(
    note: Path, vkey: str | None, policy: Path | None, persons: tuple[str, ...], report: Path | None
) -> None:
    """Check a note."""
    parsed = _parsed(note)
    head = read_statement(parsed.text)
    keys = _table_keys(head.origin, vkey, policy)
    wanted = [Verifier.parse(_key_text(person)) for person in persons]
    by_table = [signature for signature in parsed.signatures if keys.made(signature)]
    _require(parsed, *keys.verifiers)
    for verifier in wanted:
        _require(parsed, verifier)
    _checked_report(parsed.text, report)
    known = {signature.line for signature in by_table} | {
        signature.line for signature in parsed.signatures for verifier in wanted if verifier.made(signature)
    }
    unknown = [signature for signature in parsed.signatures if signature.line not in known]
    document = {
        "seance": head.seance,
        "origin": head.origin,
        "size": head.size,
        "root": head.root.hex(),
        "report_sha256": head.report_sha256,
        "signed_by": [head.origin, *(verifier.name for verifier in wanted)],
        "not_checked": [signature.name for signature in unknown],
    }
    tell(document, _check_lines(head, wanted, unknown))


def _parsed(file: Path) -> Note:
    try:
        return parse_note(_read(file, FILE_BOUND))
    except NoteFault as fault:
        raise NoteFault("E-STATEMENT-MALFORMED", f"{file}{colon()}{fault.detail}") from None


def _table_keys(origin: str, vkey: str | None, policy: Path | None) -> LogKeys:
    if (vkey is None) == (policy is None):
        raise Failure("E-USAGE", here("donner --vkey ou --policy", "give --vkey or --policy"), USAGE)
    keys = Policy.parse(_read(policy, POLICY_BOUND)).keys(origin) if policy else LogKeys.parse(_key_text(str(vkey)))
    if keys.origin != origin:
        detail = here(
            f"la note est de {origin}, la clé de {keys.origin}", f"a note of {origin}, a key of {keys.origin}"
        )
        raise Failure("E-NOTE-UNSIGNED", detail, NO_KEY)
    return keys


def _key_text(given: str) -> str:
    return _read(Path(given), FILE_BOUND).strip() if "+" not in given or Path(given).exists() else given


def _require(note: Note, *verifiers: Verifier) -> None:
    """One of these signed the note, and each that says so did. Raises Failure: 1 wrong, 3 absent."""
    made = [(verifier, one) for one in note.signatures for verifier in verifiers if verifier.made(one)]
    for verifier, signature in made:
        if not verifier.verifies(note.text, signature):
            raise Failure("E-NOTE-SIGNATURE", verifier.name, 1)
    if not made:
        raise Failure("E-NOTE-UNSIGNED", verifiers[0].name, NO_KEY)


def _check_lines(head: StatementHead, persons: list[Verifier], unknown: list[Signature]) -> Iterator[str]:
    yield click.style(here("Signatures justes.", "The signatures are right."), fg="green")
    yield from fields(
        [
            (here("séance", "séance"), head.seance),
            (here("table", "table"), head.origin),
            (here("personnes", "persons"), ", ".join(verifier.name for verifier in persons)),
            (here("racine", "root"), f"{head.size} {head.root.hex()}"),
            (here("empreinte à lire", "to read aloud"), fingerprint(head.root)),
            (here("rapport", "report"), f"sha256 {head.report_sha256}"),
            (here("non vérifiées", "not checked"), ", ".join(signature.name for signature in unknown)),
        ],
        indent="  ",
    )
