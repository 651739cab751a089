"""``tablectl journal`` prove and check-proof: one entry shown to be in the log, to whoever has nothing else of it."""

from contextlib import closing
from pathlib import Path

import click

from controller.certify.faults import LeafFault, NoteFault
from controller.certify.leaf import LEAF_BOUND
from controller.certify.log_keys import LogKeys
from controller.certify.policy import Policy
from controller.certify.proof import PROOF_BOUND, Proven, check, newest_cosigned, prove
from controller.certify.reader import Reader
from controller.certify.verify import Outcome
from controller.cli.commands import Command, argument, option, path_option, whole_number
from controller.cli.entries import entry_of, no_such_entry
from controller.cli.failure import UNUSABLE, Failure
from controller.cli.language import Phrase, colon, here
from controller.cli.output import fields, tell, wants_json
from controller.cli.target import (
    NO_KEY,
    given_key,
    policy_option,
    read_policy,
    signed_checkpoint,
    target_of,
    target_options,
)
from controller.cli.verdicts import VERDICTS

STATUSES = {"E-NOTE-SIGNATURE": Outcome.ALTERED, "E-NOTE-UNSIGNED": Outcome.UNSIGNED_OR_UNKNOWN_KEY}
"""The exit statuses of faults to which the catalogue gives none."""

# ── prove ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "prove",
    cls=Command,
    phrase=Phrase(
        "Écrit la preuve qu'une écriture est dans le journal (c2sp.org/tlog-proof).\n\n"
        "Avec --out FICHIER, l'écriture elle-même, à l'octet près, est écrite à côté : FICHIER.leaf. Les deux et la "
        "clé publique suffisent à « tablectl journal check-proof », ou à tout autre programme qui connaît le format.",
        "Write the proof that an entry is in the journal (c2sp.org/tlog-proof).\n\n"
        "With --out FILE the entry itself, to the byte, is written beside it: FILE.leaf. Both and the public key are "
        "all that `tablectl journal check-proof` needs, or any other program that knows the format.",
    ),
    exits={
        0: Phrase("la preuve est faite et vérifiée", "the proof is made and checked"),
        1: Phrase("l'écriture n'est pas dans l'arbre signé", "the entry is not in the signed tree"),
        2: Phrase(
            "pas d'écriture de ce numéro, pas encore contresignée, ou le fichier existe déjà",
            "there is no entry of this number, it is not cosigned yet, or the file exists already",
        ),
        3: VERDICTS[Outcome.UNSIGNED_OR_UNKNOWN_KEY],
        5: VERDICTS[Outcome.UNREADABLE],
    },
)
@target_options
@argument("index", callback=whole_number(), phrase=Phrase("Numéro de l'écriture.", "Number of the entry."))
@path_option("--out", metavar="FILE", phrase=Phrase("Dans ce fichier, .tlog-proof.", "Into this file, .tlog-proof."))
@option(
    "--cosigned",
    is_flag=True,
    phrase=Phrase(
        "Sous le dernier point de contrôle contresigné par un témoin, au lieu du dernier tout court.",
        "Under the newest checkpoint that a witness cosigned, instead of the newest of all.",
    ),
)
def prove_command(target: Path, vkey: str | None, index: int, out: Path | None, cosigned: bool) -> None:
    """Make one proof, and check it before anybody gets it."""
    journal = target_of(target, vkey)
    with closing(Reader(journal.file)) as reader:
        size = signed_checkpoint(journal.file, journal.keys).size
        if index >= size:
            raise Failure("E-JOURNAL-ENTRY", no_such_entry(index, size), UNUSABLE)
        leaf, text, proven = _proven(reader, journal.keys, index, cosigned=cosigned)
    document = {**_document(proven), "proof": text, "leaf": leaf.decode()}
    if out is not None:
        _write(out, leaf, text)
        written = [(here("preuve", "proof"), str(out)), (here("écriture", "entry"), str(_beside(out)))]
        tell({**document, "file": str(out), "leaf_file": str(_beside(out))}, fields(written))
    elif wants_json():
        tell(document, ())
    else:
        click.echo(text, nl=False)


def _proven(reader: Reader, keys: LogKeys, index: int, *, cosigned: bool) -> tuple[bytes, str, Proven]:
    """The entry, its proof, and what that shows. Raises Failure for what does not agree, and JournalFault."""
    try:
        note = newest_cosigned(reader, keys, index) if cosigned else reader.checkpoint()
        if note is None:
            nobody = f"aucun témoin n'a encore contresigné l'écriture {index}"
            raise Failure("E-PROOF-UNCOSIGNED", here(nobody, f"no witness has cosigned entry {index} yet"))
        text = prove(reader, index, note).text
        leaf = next(reader.leaves(index, index + 1), b"")  # of one that is gone, nothing, which is never right
        return leaf, text, check(text, leaf, Policy((keys,)))
    except NoteFault as fault:
        known = fault.code != "E-NOTE-UNSIGNED"
        raise _failure("E-JOURNAL-ALTERED" if known else fault.code, fault.detail) from None


def _write(out: Path, leaf: bytes, text: str) -> None:
    """Both files, or none of them when one is there already."""
    for file in (out, _beside(out)):
        if file.exists():
            raise Failure("E-OUT-EXISTS", here(f"{file} existe déjà", f"{file} exists already"), UNUSABLE)
    for file, content in ((out, text.encode()), (_beside(out), leaf)):
        with file.open("xb") as opened:
            opened.write(content)


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.name}.leaf")


# ── check-proof ───────────────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "check-proof",
    cls=Command,
    phrase=Phrase(
        "Vérifie la preuve d'une écriture, sans le journal.\n\n"
        "Il faut la preuve, l'écriture à l'octet près, et la clé publique de la table ou une politique.",
        "Check the proof of an entry, without the journal.\n\n"
        "What is needed: the proof, the entry to the byte, and the table's public key or a policy.",
    ),
    exits={
        0: Phrase("l'écriture est prouvée", "the entry is proven"),
        1: Phrase("l'écriture, la preuve ou une signature est fausse", "the entry, the proof or a signature is wrong"),
        3: Phrase(
            "pas signé par une clé connue, ou pas assez de témoins", "not signed by a known key, or too few witnesses"
        ),
        5: Phrase("un fichier ne peut pas être lu", "a file cannot be read"),
    },
)
@argument("proof", type=click.Path(path_type=Path), phrase=Phrase("Le fichier .tlog-proof.", "The file .tlog-proof."))
@argument("leaf", type=click.Path(path_type=Path), phrase=Phrase("L'écriture, à l'octet près.", "The entry's bytes."))
@option(
    "--vkey",
    metavar="FILE|KEY",
    phrase=Phrase("Clé publique de la table, ou son fichier.", "The table's public key, or its file."),
)
@policy_option(
    Phrase(
        "Les clés et les témoins que l'on croit (c2sp.org/tlog-policy), au lieu de --vkey.",
        "The keys and witnesses that are believed (c2sp.org/tlog-policy), instead of --vkey.",
    )
)
def check_proof_command(proof: Path, leaf: Path, vkey: str | None, policy: Path | None) -> None:
    """Check one proof."""
    try:
        believed = _believed(vkey, policy)
        text, entry = _read(proof, PROOF_BOUND), _read(leaf, LEAF_BOUND)
    except OSError as error:
        raise Failure("E-FILE", f"{error.filename}{colon()}{error.strerror}", Outcome.UNREADABLE) from None
    try:
        proven = check(text, entry, believed)
    except NoteFault as fault:
        raise _failure(fault.code, fault.detail) from None
    tell(_document(proven), _lines(proven, entry))


def _believed(vkey: str | None, policy: Path | None) -> Policy:
    """Whom the caller believes. Raises OSError, click.UsageError, Failure (E-VKEY-MISSING) and KeyFault."""
    if vkey is not None and policy is not None:
        raise click.UsageError(here("--vkey et --policy s'excluent", "--vkey and --policy exclude each other"))
    read = read_policy(policy)
    if read is not None:
        return read
    if vkey is None:
        detail = here("ni --vkey ni --policy : avec quelle clé ?", "neither --vkey nor --policy: by which key?")
        raise Failure("E-VKEY-MISSING", detail, NO_KEY)
    return Policy((LogKeys.parse(given_key(vkey)),))


def _read(file: Path, bound: int) -> bytes:
    """A file's bytes; of one beyond the bound as many as show it to be."""
    with file.open("rb") as opened:
        return opened.read(bound + 1)


def _failure(code: str, detail: str) -> Failure:
    return Failure(code, detail, STATUSES.get(code))


def _document(proven: Proven) -> dict[str, object]:
    checkpoint = proven.checkpoint
    return {
        "proven": True,
        "index": proven.index,
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "cosigned_by": sorted(proven.by),
    }


def _lines(proven: Proven, leaf: bytes) -> list[str]:
    checkpoint, by = proven.checkpoint, ", ".join(sorted(proven.by))
    text = here(
        f"prouvée : écriture {proven.index} des {checkpoint.size} de {checkpoint.origin}",
        f"proven: entry {proven.index} of the {checkpoint.size} of {checkpoint.origin}",
    )
    pairs = [
        (here("racine", "root"), checkpoint.root.hex()),
        (here("contresigné par", "cosigned by"), by or here("personne de connu", "nobody known")),
        (here("écriture", "entry"), _told(leaf)),
    ]
    return [click.style(text, fg="green"), *fields(pairs, indent="  ")]


def _told(leaf: bytes) -> str:
    """What the entry says; nothing when it is an entry of another kind of log."""
    try:
        return entry_of(leaf).told
    except LeafFault:
        return ""
