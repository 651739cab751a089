"""Whoever has the card but no key, or the key but no memory: each known attack on a journal, and what is said of it.

Every attack is made on a copy of the same journal and judged by ``tablectl journal verify`` with the policy of the
house, and, where nothing inside the file can tell, with the checkpoint that the mirror acknowledged last. Wanted are
the right exit status and, where an entry is concerned, its number.
"""

import json
import shutil
import sqlite3
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from controller.certify.checkpoint import Checkpoint
from controller.certify.journal import Journal
from controller.certify.leaf import LEAF_PATTERN, Record, canonical, leaf_hash
from controller.certify.note import KeyType, Signer, format_note, parse_note, sign_note
from controller.certify.tree import root_of
from controller.cli import main
from docs.samples.make_samples import JUDGED, MADE_HERE
from drivers.clock import ManualClock
from proof.results import Result, all_of

ORIGIN = "casino.example/table/t07/1"
TABLE = Signer(ORIGIN, bytes(range(32)))
THIEF = Signer(ORIGIN, bytes(range(1, 33)))
MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)

SIZE = 700
STEP = 100
"""Entries of one commit, each with a checkpoint that is kept."""

SNAPSHOTS, COSIGNED, COPIED = (300, 600), (400, 600), 400
"""After how many entries a snapshot is taken, the mirror cosigns, and the thief copies the card."""


@dataclass(frozen=True, slots=True)
class Attack:
    """``make`` spoils the journal of a scene. ``status`` and ``index`` are what must be said of it.

    ``remembered``: nothing inside the file can tell; the checkpoint that somebody else remembers does.
    """

    name: str
    make: Callable[["Scene"], None]
    status: int
    index: int | None = None
    remembered: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder with the table's journal, an older copy of it, a fork by the same key, and a thief's own journal."""

    folder: Path

    @property
    def journal(self) -> Path:
        """The journal that is attacked."""
        return self.folder / "journal.sqlite"

    def put(self, name: str) -> None:
        """Put another file into the place of the journal."""
        shutil.copy(self.folder / name, self.journal)


def make_scene(folder: Path) -> Scene:
    """All that the attacks need, in ``folder``."""
    scene = Scene(folder)
    _play(scene.journal, TABLE, 0)
    _play(folder / "thief" / "journal.sqlite", THIEF, 0)
    shutil.copy(folder / "copy-1.sqlite", folder / "fork.sqlite")
    _go_on(folder / "fork.sqlite", TABLE, SIZE - COPIED, note=1_000)
    shutil.copy(folder / "copy-1.sqlite", folder / "clone.sqlite")
    _go_on(folder / "clone.sqlite", TABLE, 3 * STEP, note=2_000)
    policy = f"log {TABLE.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\nquorum centre\n"
    (folder / "policy").write_text(policy, encoding="ascii")
    return scene


def _records(first: int, count: int) -> list[Record]:
    return [
        Record("fr.table.credit.added.v1", canonical({"cents": 500 + at, "post": at % 9}), "2026-11-30-1")
        for at in range(first, first + count)
    ]


def _opened(path: Path, signer: Signer, clock: ManualClock) -> Journal:
    return Journal.open(path, signer, clock, "0123456789abcdef", lambda: "ntp", allow_volatile=True)


def _play(path: Path, signer: Signer, note: int) -> None:
    clock = ManualClock()
    path.parent.mkdir(exist_ok=True)
    Journal.create(path, signer, allow_volatile=True)
    for size in range(STEP, SIZE + 1, STEP):
        with closing(_opened(path, signer, clock)) as journal:
            snapshot = b"{}" if size in SNAPSHOTS else None
            journal.append(_records(note + size - STEP, STEP), snapshot=snapshot, keep_checkpoint=True)
            if size in COSIGNED:
                _cosign(journal, path.parent / f"ack-{size}")
            clock.advance_us(60_000_000)
        if size == COPIED and signer is TABLE:
            shutil.copy(path, path.parent / "copy-1.sqlite")


def _go_on(path: Path, signer: Signer, count: int, note: int) -> None:
    with closing(_opened(path, signer, ManualClock(now_us=900_000_000))) as journal:
        for first in range(0, count, STEP):
            journal.append(_records(note + first, STEP), keep_checkpoint=True)


def _cosign(journal: Journal, acknowledged: Path) -> None:
    parsed = parse_note(journal.checkpoint)
    note = format_note(parsed.text, [*parsed.signatures, MIRROR.sign(parsed.text, 1_796_000_000)])
    acknowledged.write_text(note, encoding="utf-8")
    journal.add_cosignature(note, MIRROR.verifier)


# ── A forger's tools ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _forging(scene: Scene) -> Iterator[sqlite3.Connection]:
    """The file without its guards, which are put back."""
    with closing(sqlite3.connect(scene.journal)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)
        connection.commit()


def _leaves(connection: sqlite3.Connection, start: int = 0) -> list[bytes]:
    return [leaf for (leaf,) in connection.execute("SELECT leaf FROM log WHERE idx >= ? ORDER BY idx", (start,))]


def _spoiled(leaf: bytes) -> bytes:
    return leaf.replace(b'"cents":', b'"cents":1', 1)


def _chained(leaves: Sequence[bytes], start: int, previous: bytes) -> list[bytes]:
    """Leaves with numbers from ``start`` on and a chain that holds."""
    chained = []
    for index, leaf in enumerate(leaves, start):
        match = LEAF_PATTERN.fullmatch(leaf)
        assert match is not None
        leaf = leaf.replace(b'"id":"' + match[3] + b'"', b'"id":"%d"' % index)
        leaf = leaf.replace(match[5], b64encode(previous))
        chained.append(leaf)
        previous = leaf_hash(leaf)
    return chained


def _replace_from(connection: sqlite3.Connection, start: int, leaves: Sequence[bytes]) -> None:
    """Everything from ``start`` on is ``leaves``, linked, with the tiles that belong to them."""
    previous = leaf_hash(_leaves(connection, start - 1)[0])
    connection.execute("DELETE FROM log WHERE idx >= ?", (start,))
    rows = enumerate(_chained(leaves, start, previous), start)
    connection.executemany("INSERT INTO log VALUES (?, ?)", rows)
    hashes = [leaf_hash(leaf) for leaf in _leaves(connection)]
    connection.execute("DELETE FROM tile")
    for n in range(len(hashes) // 256):
        block = hashes[n * 256 : (n + 1) * 256]
        connection.execute("INSERT INTO tile VALUES (0, ?, ?, ?)", (n, root_of(block), b"".join(block)))


def _sql(*statements: str) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        with _forging(scene) as connection:
            for statement in statements:
                connection.execute(statement)

    return make


def _edited(index: int) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        with _forging(scene) as connection:
            leaf = _spoiled(_leaves(connection, index)[0])
            connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf, index))

    return make


def _relinked(index: int) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        with _forging(scene) as connection:
            leaves = _leaves(connection, index)
            _replace_from(connection, index, [_spoiled(leaves[0]), *leaves[1:]])

    return make


def _deleted_and_renumbered(scene: Scene) -> None:
    with _forging(scene) as connection:
        _replace_from(connection, 137, _leaves(connection, 138))


def _inserted(scene: Scene) -> None:
    with _forging(scene) as connection:
        leaves = _leaves(connection, 650)
        _replace_from(connection, 650, [_spoiled(leaves[0]), *leaves])


def _appended(scene: Scene) -> None:
    with _forging(scene) as connection:
        last = _leaves(connection, SIZE - 1)
        (leaf,) = _chained(last, SIZE, leaf_hash(last[0]))
        connection.execute("INSERT INTO log VALUES (?, ?)", (SIZE, leaf))


def _swapped_entries(scene: Scene) -> None:
    with _forging(scene) as connection:
        first, second = _leaves(connection, 210)[:2]
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 210", (second,))
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 211", (first,))


def _cut_back(size: int) -> Callable[[Scene], None]:
    """The tail cut off with all that tells of it: a journal as it was once."""
    return _sql(
        f"DELETE FROM log WHERE idx >= {size}",
        f"DELETE FROM tile WHERE (n + 1) * 256 > {size}",
        *(f"DELETE FROM {table} WHERE size > {size}" for table in ("checkpoint", "cosignature", "snapshot", "cursor")),
    )


def _put(name: str) -> Callable[[Scene], None]:
    return lambda scene: scene.put(name)


def _second_history(scene: Scene) -> None:
    note = sign_note(Checkpoint(ORIGIN, 350, bytes(32)).text, TABLE)
    with _forging(scene) as connection:
        connection.execute("INSERT INTO checkpoint VALUES (350, ?)", (note,))


def _without_a_guard(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.journal)) as connection:
        connection.execute("DROP TRIGGER log_no_delete")


def _halved(scene: Scene) -> None:
    content = scene.journal.read_bytes()
    scene.journal.write_bytes(content[: len(content) // 2])


def _overwritten(scene: Scene) -> None:
    scene.journal.write_bytes(b"no database at all\n" * 400)


_SWAP = "UPDATE {0} SET {1} = (SELECT {1} FROM {0} AS other WHERE other.size = {2}) WHERE size = {3}"
_LINE = "UPDATE cosignature SET line = replace(line, 'A', 'B')"

ATTACKS = (
    Attack("an entry edited", _edited(137), 1, 137),
    Attack("the first entry edited", _edited(0), 1, 0),
    Attack("the last entry edited", _edited(SIZE - 1), 1, SIZE - 1),
    Attack("an entry edited, all after it linked anew, tiles too", _relinked(137), 1, 100),
    Attack("an entry of the last commit edited and linked anew", _relinked(650), 1, SIZE - 1),
    Attack("two entries swapped", _swapped_entries, 1, 210),
    Attack("an entry deleted", _sql("DELETE FROM log WHERE idx = 137"), 4, 137),
    Attack("an entry deleted, all after it numbered and linked anew", _deleted_and_renumbered, 2, SIZE - 1),
    Attack("an entry inserted past the snapshot and linked in", _inserted, 3, SIZE),
    Attack("an entry added at the end", _appended, 3, SIZE),
    Attack("the tail cut off", _sql("DELETE FROM log WHERE idx >= 650"), 2, 650),
    Attack("the tail cut back to an older checkpoint", _cut_back(500), 2, 500, remembered=True),
    Attack("the card of an earlier hour put back", _put("copy-1.sqlite"), 2, COPIED, remembered=True),
    Attack("another history by the same key", _put("fork.sqlite"), 2, None, remembered=True),
    Attack("a cloned card that was played on", _put("clone.sqlite"), 2, None, remembered=True),
    Attack("a checkpoint of another history by the same key", _second_history, 2, 300),
    Attack("a journal by another key of the same name", _put("thief/journal.sqlite"), 3),
    Attack("two checkpoints swapped", _sql(_SWAP.format("checkpoint", "note", 300, 200)), 1),
    Attack("the last checkpoint deleted", _sql("DELETE FROM checkpoint WHERE size > 600"), 3, 600),
    Attack("all checkpoints deleted", _sql("DELETE FROM checkpoint"), 3),
    Attack("a guard taken away", _without_a_guard, 1),
    Attack("a guard made toothless", _sql("CREATE TRIGGER more AFTER INSERT ON log BEGIN SELECT 1; END"), 1),
    Attack("a snapshot edited", _sql("UPDATE snapshot SET body = x'7b7d20' WHERE size = 600"), 1),
    Attack("a snapshot moved to other entries", _sql("UPDATE snapshot SET size = 650 WHERE size = 600"), 1),
    Attack("a cosignature edited", _sql(_LINE), 1),
    Attack("a cosignature moved to another checkpoint", _sql("UPDATE cosignature SET size = 500 WHERE size = 400"), 1),
    Attack("the origin in the file edited", _sql("UPDATE meta SET value = 'x' WHERE name = 'origin'"), 1),
    Attack(
        "the key in the file edited", _sql(f"UPDATE meta SET value = '{THIEF.verifier.vkey}' WHERE name = 'vkey'"), 3
    ),
    Attack("what was delivered set beyond the end", _sql("INSERT INTO cursor VALUES ('mirror', 900)"), 2, SIZE),
    Attack("a hash edited in a tile", _sql("UPDATE tile SET hashes = zeroblob(8192) WHERE n = 1"), 1),
    Attack("the root of a tile edited", _sql("UPDATE tile SET root = zeroblob(32) WHERE n = 1"), 1),
    Attack("a tile deleted", _sql("DELETE FROM tile WHERE n = 1"), 4),
    Attack("a tile added", _sql("INSERT INTO tile VALUES (0, 9, zeroblob(32), zeroblob(8192))"), 1),
    Attack("the second half of the file gone", _halved, 5),
    Attack("the file overwritten", _overwritten, 5),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of an attack: exit status, code, and the entry that was named."""

    attack: Attack
    status: int
    code: str | None
    index: int | None

    @property
    def right(self) -> bool:
        """Whether it is what had to be said."""
        return (self.status, self.index) == (self.attack.status, self.attack.index)


def judge(scene: Scene, attack: Attack, *, remembered: bool | None = None) -> Judged:
    """Attack a copy of the scene and ask ``tablectl journal verify``."""
    with tempfile.TemporaryDirectory() as work:
        attacked = Scene(Path(shutil.copytree(scene.folder, Path(work) / "scene")))
        attack.make(attacked)
        words = ["journal", "verify", str(attacked.journal), "--policy", str(attacked.folder / "policy"), "--json"]
        if attack.remembered if remembered is None else remembered:
            words += ["--remembered", str(attacked.folder / f"ack-{COSIGNED[-1]}")]
        result = CliRunner().invoke(main, words)
    told = json.loads(result.stdout)
    told = told.get("error", told)
    return Judged(attack, result.exit_code, told.get("code"), told.get("entry"))


def judge_sample(name: str) -> tuple[int, int | None]:
    """Exit status and entry for one of the sample archives, with the checkpoint that somebody else remembers."""
    words = ["journal", "verify", str(MADE_HERE / f"{name}.tar"), "--vkey", str(MADE_HERE / "table.vkey")]
    result = CliRunner().invoke(main, [*words, "--remembered", str(MADE_HERE / "remembered.note"), "--json"])
    return result.exit_code, json.loads(result.stdout).get("entry")


def prove() -> Iterator[Result]:
    """Make every attack, and yield what was said of them."""
    with tempfile.TemporaryDirectory() as work:
        scene = make_scene(Path(work))
        judged = [judge(scene, attack) for attack in ATTACKS]
        alone = [judge(scene, attack, remembered=False) for attack in ATTACKS if attack.remembered]
    for one in judged:
        if not one.right:
            print(f"{one.attack.name}: {one}", file=sys.stderr)
    right = sum(one.right for one in judged)
    yield all_of("an attack on a journal gets its status and its entry", right, len(ATTACKS), "attacks", at_least=35)
    yield Result(
        claim="… of which nobody can tell without a checkpoint kept elsewhere",
        found=sum(one.status == 0 for one in alone),
        tried=len(ATTACKS),
        what="attacks",
        goal="told apart",
        met=True,
    )
    samples = sum(judge_sample(name) == wanted for name, wanted in JUDGED.items())
    yield all_of("a sample archive gets its status and its entry", samples, len(JUDGED), "archives", at_least=9)
