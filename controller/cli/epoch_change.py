"""The two ends of a change of epoch: what is known of the old one, and the first entry of the new one."""

from contextlib import closing
from pathlib import Path

from controller import codec, history
from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import JournalFault, NoteFault
from controller.certify.journal import Journal
from controller.certify.keys import table_key_name
from controller.certify.leaf import Record
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, Verifier, open_note
from controller.certify.reader import Reader
from controller.certify.verify import Progress, verify
from controller.cli.target import Past
from controller.delivery.centre import open_acknowledgement
from controller.delivery.enrolment import EnrolledPerson
from controller.epoch import EpochFault, OldEpoch, proclaim, read
from controller.options import Config
from controller.service import time_quality
from drivers.clock import SystemClock
from games.custody import EpochProclaimed
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.statement import Totals


def ended_epoch(
    config: Config, keys: LogKeys | None, journal: Path | None, ack: str | None, step: Progress | None = None
) -> OldEpoch:
    """What can still be known of the epoch before that of ``config``; ``keys`` were that one's.

    The last checkpoint that the mirror cosigned counts, because whoever has the old key can sign others; without a
    mirror in the configuration it is the last that the key signed. ``journal`` may be damaged or absent. Raises
    NoteFault when ``ack`` is not good, KeyFault, and EpochFault (E-EPOCH-STATEMENT) when keys or mirror are wanting.
    """
    origin = table_key_name(config.site, config.table.name, config.table.epoch - 1)
    if (journal is not None or ack is not None) and (keys is None or keys.origin != origin):
        named = "none was given" if keys is None else f"those given are of {keys.origin}"
        raise EpochFault("E-EPOCH-STATEMENT", f"the public key of {origin} is needed: {named}")
    mirror = None if config.mirror is None else Verifier.parse(config.mirror.vkey)
    found: list[Checkpoint] = []
    if ack is not None and keys is not None:
        if mirror is None:
            raise EpochFault(
                "E-EPOCH-STATEMENT", "an acknowledgement is judged by the key in [mirror], which is absent"
            )
        opened = open_acknowledgement(ack.encode(), keys, mirror)
        found.append(Checkpoint(origin, opened.size, opened.root))
    totals = None
    if journal is not None and keys is not None:
        found += _checkpoints(journal, keys, mirror)
        totals = _totals(config, journal, keys, step)
    last = max(found, key=lambda checkpoint: checkpoint.size, default=None)
    known_by = "nothing" if last is None else "signature" if mirror is None else "cosignature"
    return OldEpoch(origin=origin, checkpoint=last, known_by=known_by, totals=totals)


def _checkpoints(file: Path, keys: LogKeys, mirror: Verifier | None) -> list[Checkpoint]:
    """The last good checkpoint that a journal keeps; none when it cannot be read."""
    try:
        with closing(Reader(file)) as reader:
            notes = reader.notes(0)
    except JournalFault:
        return []
    for note in reversed(notes):
        try:
            if mirror is not None:
                ack = open_acknowledgement(note.encode(), keys, mirror)
                return [Checkpoint(keys.origin, ack.size, ack.root)]
            return [parse_checkpoint(open_note(note, keys.verifiers).text)]
        except NoteFault:
            continue  # not cosigned, or altered: an earlier one counts
    return []


def _totals(config: Config, file: Path, keys: LogKeys, step: Progress | None) -> Totals | None:
    """The perpetual totals, if all of the journal agrees; figures from an altered one would be worth nothing."""
    if not verify(file, keys, step).ok:
        return None
    try:
        with closing(Reader(file)) as reader:
            return history.restore(Roulette(config.rules), Past(file, reader), RouletteState).statements.carried
    except (history.RestoreError, JournalFault):
        return None


def judge(config: Config, signer: Signer, note: str) -> EpochProclaimed:
    """What the new epoch begins with, if ``note`` is for this key and the persons of ``config`` signed it.

    Raises EpochFault: E-EPOCH-STATEMENT, E-EPOCH-SIGNATURES.
    """
    stated = read(note)
    if stated.vkey != signer.verifier.vkey:
        detail = f"the statement is for the key {stated.vkey}, the table's is {signer.verifier.vkey}"
        raise EpochFault("E-EPOCH-STATEMENT", detail)
    persons = [EnrolledPerson(person.badge, person.role, person.vkey, person.revoked) for person in config.person]
    return proclaim(note, {person.badge: person for person in persons}, SystemClock().mono_us())


def begin_epoch(config: Config, signer: Signer, signal: EpochProclaimed, boot: str) -> None:
    """Create the journal of ``config``'s epoch with what was proclaimed as its first entry.

    A try that a power cut ended between the two is taken up again. Raises JournalFault: E-JOURNAL-EXISTS, and others of
    ``Journal``.
    """
    file, volatile = config.journal.file, config.journal.volatile
    game = Roulette(config.rules)
    facts = game.decide(game.initial(), signal).facts
    if not file.exists():
        Journal.create(file, signer, allow_volatile=volatile)
    with closing(Journal.open(file, signer, SystemClock(), boot, time_quality, allow_volatile=volatile)) as journal:
        if journal.size:
            raise JournalFault("E-JOURNAL-EXISTS", f"{file} exists and has {journal.size} entries")
        entries = codec.encode_decision(signal, facts, 0)
        journal.append([Record(kind, data, None) for kind, data in entries], keep_checkpoint=True)
