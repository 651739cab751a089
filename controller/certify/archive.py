"""The archive of a séance, or of a whole journal: one tar file that anybody can check with nothing but a public key.

    seance-2026-11-30-1/
      README                  how to check it without this program
      checkpoint              the signed root, with the cosignatures
      checkpoints/<size>      those that were kept between the first and the last entry, with theirs
      events.jsonl            the séance's entries, byte for byte, one on each line
      policy                  the keys that signed here (c2sp.org/tlog-policy)
      seance.txt, statement.note    the report and the signed statement about it, where there are any
      tile/…                  tiles and entries (c2sp.org/tlog-tiles): what proves each entry, the root, and the growth
                              from the first entry on

Nothing in it is there by itself: the README is that of the format, the policy names exactly the keys whose signatures
are in it, everything else is bound to the signed root or signed, and the tar is the only one that this content can have
(``tar``). So a byte that differs anywhere is found (``archive_check``), and the same journal always makes the same
bytes. A cosignature by a key that nobody named is left out: it could be neither checked nor bound.

What can be taken out unseen is surplus evidence, whole and nothing else: an older checkpoint, or a cosignature. Whoever
counts on witnesses says so with a policy, and then misses them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import BinaryIO

from controller.certify.archive_readme import README
from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import JournalFault
from controller.certify.leaf import LEAF_PATTERN, leaf_hash, parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signature, Verifier, format_note, open_note
from controller.certify.policy import NONE, Group, Policy
from controller.certify.reader import Reader
from controller.certify.tar import TarWriter
from controller.certify.tile_paths import Span, TileName
from controller.certify.tiles import TILE_HEIGHT, TILE_WIDTH
from controller.certify.verify import Progress

WHOLE = "journal"
"""The folder of a whole journal's archive."""

SEANCE = "seance-"
"""What begins the folder of a séance's archive; the séance's name follows."""


Report = Callable[[Iterable[bytes], bytes], str]
"""Makes the report of a séance from its entries and the root of the journal up to them."""

_CERTIFIES = b',"type":"fr.seance.certified.v1"}'


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint with those signatures that were checked, each with the key that made it."""

    checkpoint: Checkpoint
    signatures: tuple[tuple[Verifier, Signature], ...]

    @property
    def note(self) -> str:
        """The note, its signatures in the order of ``in_order``."""
        return format_note(self.checkpoint.text, [signature for _, signature in self.signatures])

    @property
    def cosigners(self) -> tuple[str, ...]:
        """The names of the witnesses that cosigned."""
        return tuple(verifier.name for verifier, _ in self.signatures if verifier.key_type is KeyType.COSIGNATURE)


def signed_checkpoint(note: str, keys: LogKeys, witnesses: Sequence[Verifier]) -> Signed:
    """Open a checkpoint with the keys of its log and of its witnesses. Raises NoteFault."""
    verifiers = in_order(keys, witnesses)
    opened = open_note(note, verifiers)
    made = [(one, signature) for one in verifiers for signature in opened.signatures if one.made(signature)]
    return Signed(parse_checkpoint(opened.text), tuple(made))


def in_order(keys: LogKeys, witnesses: Sequence[Verifier]) -> list[Verifier]:
    """All keys in the order in which an archive has them: the table's, then the witnesses' by name."""
    return [*sorted(keys.verifiers, key=vkey_of), *sorted(witnesses, key=vkey_of)]


def vkey_of(verifier: Verifier) -> str:
    """The text form, by which keys are put in order."""
    return verifier.vkey


def policy_of(signed: Sequence[Signed]) -> Policy:
    """The policy of an archive: just the keys that made ``signed``. Any one witness is enough, where there is one."""
    used = sorted({verifier.vkey: verifier for one in signed for verifier, _ in one.signatures}.items())
    logs = [verifier for _, verifier in used if verifier.key_type is KeyType.ED25519]
    cosigners = [verifier for _, verifier in used if verifier.key_type is KeyType.COSIGNATURE]
    named = {f"w{at}": verifier for at, verifier in enumerate(cosigners, 1)}
    groups = {"witnesses": Group(1, tuple(named))} if named else {}
    return Policy((LogKeys.of(*logs),), named, groups, next(iter(groups), NONE))


def bundle(leaves: Sequence[bytes]) -> bytes:
    """The entries of a tile, each after its length in two bytes (c2sp.org/tlog-tiles, "Log Entries")."""
    return b"".join(len(leaf).to_bytes(2) + leaf for leaf in leaves)


def seconds_of(leaf: bytes) -> int:
    """The time of an entry, in seconds since 1970. Raises LeafFault."""
    return int(datetime.fromisoformat(parse_leaf(leaf).time).timestamp())


def seance_of(leaf: bytes) -> bytes | None:
    """The name of the séance that an entry is of, None when it is of none."""
    match = LEAF_PATTERN.fullmatch(leaf)
    return None if match is None else match[6]


def certified_note(leaf: bytes, seance: str) -> str | None:
    """The signed statement that an entry keeps, when that entry certifies ``seance``."""
    if not leaf.endswith(_CERTIFIES):
        return None
    data = json.loads(parse_leaf(leaf).data)
    note = data.get("note")
    return note if isinstance(note, str) and data.get("seance") == seance else None


def digest_line(report: bytes) -> str:
    """The line of a statement that binds the report."""
    return f"etat sha256:{sha256(report).hexdigest()}"


def find_seance(reader: Reader, seance: str, progress: Progress) -> tuple[int, int, int | None]:
    """The first entry of a séance, the first one after it, and the one that certifies it, if any.

    Raises JournalFault (E-ARCHIVE-SEANCE) and LeafFault.
    """
    wanted, size = seance.encode(), reader.size
    first = last = -1
    later = None
    for index, leaf in enumerate(reader.leaves(0, size)):
        if index % TILE_WIDTH == 0:
            progress(index, size)
        if seance_of(leaf) == wanted:
            first, last = index if first < 0 else first, index
        if later is None and certified_note(leaf, seance) is not None:
            later = index
    if first < 0:
        raise JournalFault("E-ARCHIVE-SEANCE", f"no entry of this journal is of the séance {seance}")
    return first, last + 1, later


def write_archive(
    file: BinaryIO,
    reader: Reader,
    keys: LogKeys,
    witnesses: Sequence[Verifier] = (),
    *,
    seance: str | None = None,
    report: Report,
    progress: Progress = lambda done, size: None,
) -> Span:
    """Write the archive of ``seance``, or of the whole journal without one, into ``file``, which can be sought.

    Cosignatures by keys other than ``witnesses`` are left out. ``report`` makes the report of a séance, which is
    in the archive once the statement about it is certified. ``progress`` is told entries, as ``verify`` does. What the
    journal's file says is written as it is: whoever hands an archive out verifies it first. Returns what is in it.
    Raises JournalFault (E-ARCHIVE-SEANCE, E-ARCHIVE-LARGE and those of the reader), NoteFault and LeafFault.
    """
    start, stop, later = (0, None, None) if seance is None else find_seance(reader, seance, progress)
    kept = [signed_checkpoint(note, keys, witnesses) for note in reader.notes(start)]
    if stop is None:
        head = kept[-1]
        stop = head.checkpoint.size
    else:
        covering = [one for one in kept if one.checkpoint.size >= max(stop, 0 if later is None else later + 1)]
        head = max(covering, key=lambda one: len(one.cosigners))  # of several, the first
        stop = _grown(reader, seance, stop, head.checkpoint.size)
    span = Span(start, stop, head.checkpoint.size, later)
    within = [one for one in kept if one.checkpoint.size <= stop and one is not head]
    texts = {
        "README": README,
        "checkpoint": head.note,
        **{f"checkpoints/{one.checkpoint.size}": one.note for one in within},
        "policy": policy_of([head, *within]).text,
    }
    if seance is not None and later is not None:
        texts["statement.note"] = certified_note(reader.leaf(later), seance) or ""
        texts["seance.txt"] = report(reader.leaves(start, stop), reader.root(stop))
    folder = WHOLE if seance is None else f"{SEANCE}{seance}"
    tar = TarWriter(file, folder, seconds_of(reader.leaf(stop - 1)) if stop else 0)
    _add_all(tar, reader, span, texts, progress)
    return span


def _grown(reader: Reader, seance: str | None, stop: int, size: int) -> int:
    """The first entry after the séance, when a table that plays has added some meanwhile."""
    for leaf in reader.leaves(stop, size):
        if seance is None or seance_of(leaf) != seance.encode():
            break
        stop += 1
    return stop


def _add_all(tar: TarWriter, reader: Reader, span: Span, texts: Mapping[str, str], progress: Progress) -> None:
    tiles = {tile.path: tile for tile in [*span.hash_tiles, *span.bundles]}
    for name in sorted([*texts, *tiles, "events.jsonl"]):
        if name in texts:
            tar.add(name, [texts[name].encode()])
        elif name in tiles:
            tar.add(name, _tile(reader, tiles[name]))
        else:
            tar.add(name, _lines(reader, span, progress))
    tar.end()


def _lines(reader: Reader, span: Span, progress: Progress) -> Iterator[bytes]:
    for index, leaf in enumerate(reader.leaves(span.start, span.stop), span.start):
        if index % TILE_WIDTH == 0:
            progress(index - span.start, span.stop - span.start)
        yield leaf + b"\n"


def _tile(reader: Reader, tile: TileName) -> Iterator[bytes]:
    first = tile.n * TILE_WIDTH
    if tile.level is None:
        yield bundle(list(reader.leaves(first, first + tile.width)))
    elif tile.level == 0:
        yield b"".join(map(leaf_hash, reader.leaves(first, first + tile.width)))
    else:
        height = TILE_HEIGHT * tile.level
        yield b"".join(reader.subtree(n << height, n + 1 << height) for n in range(first, first + tile.width))
