"""A disk that went back in time, healed from what the mirror holds: all of it, or nothing, and never a second history.

The mirror here is scripted: it says what it holds, and gives entries back in whatever way a test wants. The journal is
real, on a real disk, and so is the copy of an earlier time that takes its place.
"""

import asyncio
import json
import random
import shutil
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.leaf import FIRST_PREVIOUS, Stamp, build_leaves, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.delivery import recall
from controller.delivery.bus import MemoryExchange, Message
from controller.delivery.memories import Others
from controller.delivery.topics import Topics
from controller.healing import Healing, HealingNote
from controller.reconcile import RECALL_TRIES, Reconciliation
from tests.controller.certify.workshop import BOOT, MIRROR, ORIGIN, SIGNER, build, open_journal, stakes, stored

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Give = Callable[[Sequence[bytes]], Sequence[bytes]]

TOPICS = Topics("casino.example", "t07")
CAISSE = Signer("caisse.example/witness", bytes(range(3, 35)), KeyType.COSIGNATURE)
WAIT_S = 10
EARLIER, SIZE = 300, 700


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``full.db`` of ``SIZE`` entries and ``earlier.db``, a copy of its file at ``EARLIER`` entries."""
    folder = tmp_path_factory.mktemp("past")
    full = build(folder / "full.db", [100, 150, 50])
    shutil.copy(full, folder / "earlier.db")
    with closing(open_journal(full)) as journal:
        for count in (1, 255, 100, 44):
            journal.append(stakes(count, journal.size), keep_checkpoint=True)
    return folder


def leaves_of(path: Path) -> list[bytes]:
    with closing(Reader(path)) as reader:
        return list(reader.leaves(0, reader.size))


def note_of(path: Path, size: int | None = None) -> str:
    with closing(Reader(path)) as reader:
        return reader.checkpoint() if size is None else reader.notes(size)[0]


def cosigned(note: str, cosigner: Signer = MIRROR) -> bytes:
    text = note.rpartition("\n\n")[0] + "\n"
    return f"{note}{cosigner.sign(text, 1_800_000_000).line}\n".encode()


class Centre:
    """A mirror that holds ``leaves``, and gives them back by ``give``."""

    def __init__(self, exchange: MemoryExchange, leaves: Sequence[bytes]) -> None:
        self.leaves = list(leaves)
        self.give: Give = lambda wanted: wanted
        self.asked: list[range] = []
        self.bus = exchange.bus("mirror")
        self.bus.attach(self, [TOPICS.recall])

    def on_message(self, message: Message) -> None:
        request = json.loads(message.payload)
        self.asked.append(range(request["from"], request["to"]))
        for leaf in self.give(self.leaves[request["from"] : request["to"]]):
            self.bus.publish(Message(TOPICS.entry, leaf))

    def on_connected(self) -> None:
        pass

    def on_disconnected(self) -> None:
        pass

    def keep(self, topic: str, payload: bytes) -> None:
        self.bus.publish(Message(topic, payload, retain=True))


class Stage:
    """A table at its start: a journal, a mirror and the broker between them."""

    def __init__(self, journal: Journal, root: Callable[[int], bytes], folder: Path, leaves: Sequence[bytes]) -> None:
        self.exchange = MemoryExchange()
        self.centre = Centre(self.exchange, leaves)
        self.journal = journal
        self.note = HealingNote(folder)
        self.root = root
        self.reconciliation: Reconciliation | None = None

    async def start(self, prepare: Callable[[Centre], None]) -> Healing | None:
        task = asyncio.create_task(self.centre.bus.run())
        await asyncio.sleep(0)
        prepare(self.centre)
        self.reconciliation = Reconciliation(
            self.journal,
            self.root,
            bus=self.exchange.bus("t07"),
            topics=TOPICS,
            others=Others(
                own=LogKeys.of(SIGNER.verifier), mirror=MIRROR.verifier, witnesses={"caisse": CAISSE.verifier}
            ),
            note=self.note,
        )
        try:
            return await self.reconciliation.run(WAIT_S)
        finally:
            task.cancel()
            await asyncio.wait({task})


class Table:
    """The journal ``file`` of a table that starts."""

    def __init__(self, file: Path, run: Run, leaves: Sequence[bytes]) -> None:
        self.file = file
        self._run = run
        self.leaves = leaves
        self.stage: Stage | None = None

    def starts(self, prepare: Callable[[Centre], None] = lambda centre: None) -> Healing | None:
        with closing(open_journal(self.file)) as journal, closing(Reader(self.file)) as reader:
            self.stage = Stage(journal, reader.root, self.file.parent, self.leaves)
            healing: Healing | None = self._run(self.stage.start(prepare))
            return healing

    @property
    def asked(self) -> list[range]:
        assert self.stage is not None
        return self.stage.centre.asked

    @property
    def size(self) -> int:
        return len(leaves_of(self.file))


@pytest.fixture
def table(past: Path, tmp_path: Path, in_virtual_time: Run) -> Table:
    """A table whose disk went back to ``EARLIER`` entries, and a mirror that holds all of them."""
    file = tmp_path / "journal.db"
    shutil.copy(past / "earlier.db", file)
    return Table(file, in_virtual_time, leaves_of(past / "full.db"))


@pytest.fixture
def ack(past: Path) -> bytes:
    """What the mirror keeps: it holds all ``SIZE`` entries."""
    return cosigned(note_of(past / "full.db"))


def keeping(ack: bytes, give: Give = lambda wanted: wanted) -> Callable[[Centre], None]:
    def prepare(centre: Centre) -> None:
        centre.give = give
        centre.keep(TOPICS.ack, ack)

    return prepare


def healed(past: Path, table: Table) -> bool:
    """Whether the journal is byte for byte the one that was lost, and verifies in full."""
    verdict = verify(table.file, LogKeys.of(SIGNER.verifier), processes=1)
    return leaves_of(table.file) == leaves_of(past / "full.db") and verdict.ok


# ── Nothing to heal ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_start_of_a_journal_that_agrees_with_the_mirror_asks_for_nothing(past: Path, table: Table) -> None:
    assert table.starts(keeping(cosigned(note_of(past / "earlier.db")))) is None
    assert table.asked == []
    assert table.size == EARLIER


def test_start_without_an_answer_goes_on_when_its_patience_ends(table: Table) -> None:
    assert table.starts() is None
    assert table.stage is not None and table.stage.reconciliation is not None
    assert not table.stage.reconciliation.answered
    assert table.size == EARLIER


def test_start_without_a_broker_goes_on_when_its_patience_ends(table: Table) -> None:
    def cut_off(centre: Centre) -> None:
        assert table.stage is not None
        table.stage.exchange.bus("t07")
        table.stage.exchange.partition("t07")

    assert table.starts(cut_off) is None


@pytest.mark.parametrize("payload", [b"", b"\xff", b"rubbish\n\nrubbish\n", b"x" * 70_000])
def test_start_passes_over_an_acknowledgement_that_is_none(table: Table, payload: bytes) -> None:
    assert table.starts(keeping(payload)) is None
    assert table.size == EARLIER


def test_start_believes_no_acknowledgement_that_our_key_did_not_sign(past: Path, table: Table, ack: bytes) -> None:
    lines = ack.decode().splitlines(keepends=True)
    without_ours = "".join(line for line in lines if not line.startswith(f"— {ORIGIN} ")).encode()
    assert table.starts(keeping(without_ours)) is None
    assert table.asked == []


def test_start_believes_no_acknowledgement_of_another_mirror(past: Path, table: Table) -> None:
    assert table.starts(keeping(cosigned(note_of(past / "full.db"), CAISSE))) is None
    assert table.asked == []


# ── Healing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_disk_that_went_back_is_healed_with_the_very_bytes_that_were_lost(past: Path, table: Table, ack: bytes) -> None:
    healing = table.starts(keeping(ack))
    assert healing is not None
    assert (healing.from_size, healing.to_size, healing.cosigner) == (EARLIER, SIZE, MIRROR.name)
    assert healed(past, table)
    assert table.asked == [range(EARLIER, SIZE)]


def test_healing_keeps_the_cosignature_that_it_rests_on(table: Table, ack: bytes) -> None:
    table.starts(keeping(ack))
    assert stored(table.file, "SELECT size, name FROM cosignature") == [(SIZE, MIRROR.name)]


def test_journal_that_lost_everything_is_healed_from_its_first_entry(
    past: Path, tmp_path: Path, in_virtual_time: Run, ack: bytes
) -> None:
    file = tmp_path / "journal.db"
    Journal.create(file, SIGNER, allow_volatile=True)
    table = Table(file, in_virtual_time, leaves_of(past / "full.db"))
    healing = table.starts(keeping(ack))
    assert healing is not None and healing.from_size == 0
    assert healed(past, table)


def test_journal_that_was_healed_takes_new_entries_after_it(past: Path, table: Table, ack: bytes) -> None:
    table.starts(keeping(ack))
    with closing(open_journal(table.file)) as journal:
        journal.append(stakes(3, SIZE))
    assert verify(table.file, LogKeys.of(SIGNER.verifier), processes=1).size == SIZE + 3


def test_healing_asks_page_by_page_for_more_than_a_mirror_gives_at_once(
    past: Path, table: Table, ack: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "RECALL_BOUND", 150)
    assert table.starts(keeping(ack)) is not None
    assert table.asked == [range(300, 450), range(450, 600), range(600, 700)]
    assert healed(past, table)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entries_come_back_in_any_order_twice_and_among_rubbish(
    past: Path, tmp_path: Path, in_virtual_time: Run, ack: bytes, seed: int
) -> None:
    luck = random.Random(seed)

    def give(wanted: Sequence[bytes]) -> Sequence[bytes]:
        mixed = [leaf for leaf in wanted for _ in range(luck.choice((1, 1, 1, 2)))]
        mixed += [rubbish(luck, luck.choice(wanted)) for _ in range(40)]
        luck.shuffle(mixed)
        return mixed

    folder = tmp_path / f"{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(past / "earlier.db", folder / "journal.db")
    table = Table(folder / "journal.db", in_virtual_time, leaves_of(past / "full.db"))
    assert table.starts(keeping(ack, give)) is not None
    assert healed(past, table)


def rubbish(luck: random.Random, leaf: bytes) -> bytes:
    """Bytes that are no entry, an entry of another table, or one with another content."""
    other = {
        0: b"",
        1: luck.randbytes(40),
        2: leaf.replace(b"table/t07", b"table/t08"),
        3: leaf.replace(b'"cents":', b'"cents":1'),
        4: leaf[:-1],
        5: b"x" * 9_000,
    }
    return other[luck.randrange(6)]


def test_entries_of_which_a_false_one_came_first_are_asked_for_again_and_the_right_ones_found(
    past: Path, table: Table, ack: bytes
) -> None:
    def give(wanted: Sequence[bytes]) -> Sequence[bytes]:
        false = [leaf.replace(b'"cents":', b'"cents":1') for leaf in wanted]
        return false if len(table.asked) == 1 else wanted

    assert table.starts(keeping(ack, give)) is not None
    assert healed(past, table)
    assert table.asked == [range(EARLIER, SIZE)] * 2


def test_entries_that_the_network_lost_are_asked_for_again(past: Path, table: Table, ack: bytes) -> None:
    def give(wanted: Sequence[bytes]) -> Sequence[bytes]:
        return wanted[: 1 + len(wanted) // 2]

    assert table.starts(keeping(ack, give)) is not None
    assert healed(past, table)
    assert len(table.asked) > 3


def test_acknowledgement_that_grows_meanwhile_is_healed_up_to_its_end(past: Path, table: Table) -> None:
    first = cosigned(note_of(past / "full.db", 301))
    last = cosigned(note_of(past / "full.db"))

    def prepare(centre: Centre) -> None:
        def give(wanted: Sequence[bytes]) -> Sequence[bytes]:
            centre.keep(TOPICS.ack, last)
            return wanted

        keeping(first, give)(centre)

    healing = table.starts(prepare)
    assert healing is not None and healing.to_size == SIZE
    assert healed(past, table)


def test_mirror_that_is_still_catching_up_is_waited_for(past: Path, table: Table, ack: bytes) -> None:
    def prepare(centre: Centre) -> None:
        centre.keep(TOPICS.checkpoint, note_of(past / "full.db").encode())
        centre.keep(TOPICS.ack, cosigned(note_of(past / "full.db", 301)))
        asyncio.get_running_loop().call_later(WAIT_S / 2, centre.keep, TOPICS.ack, ack)

    healing = table.starts(prepare)
    assert healing is not None and healing.to_size == SIZE
    assert table.asked == [range(EARLIER, SIZE)]


# ── What must not be healed ───────────────────────────────────────────────────────────────────────────────────────────


def refused(table: Table, prepare: Callable[[Centre], None], size: int = EARLIER) -> str:
    """The code of a start that fails, which changes no entry."""
    before = leaves_of(table.file)
    with pytest.raises(JournalFault) as caught:
        table.starts(prepare)
    assert leaves_of(table.file) == before
    assert len(before) == size
    return caught.value.code


def test_journal_that_went_on_after_the_disk_went_back_is_frozen(past: Path, table: Table, ack: bytes) -> None:
    with closing(open_journal(table.file)) as journal:
        journal.append(stakes(2, 5_000))
    assert refused(table, keeping(ack), EARLIER + 2) == "E-JOURNAL-FORKED"


def test_journal_with_another_history_of_the_same_length_is_frozen(past: Path, table: Table) -> None:
    with closing(open_journal(table.file)) as journal:
        journal.append(stakes(1, 5_000))
    assert refused(table, keeping(cosigned(note_of(past / "full.db", 301))), 301) == "E-JOURNAL-FORKED"
    assert table.asked == []


def test_entries_that_do_not_lead_to_our_signature_are_not_taken(past: Path, table: Table, ack: bytes) -> None:
    def give(wanted: Sequence[bytes]) -> Sequence[bytes]:
        return chained(leaves_of(table.file)[-1], len(wanted))

    assert refused(table, keeping(ack, give)) == "E-JOURNAL-FORKED"


def chained(last: bytes, count: int) -> list[bytes]:
    """False entries that follow ``last`` in good form."""
    leaves, _ = build_leaves(EARLIER, leaf_hash(last), stakes(count, 9_000), STAMP)
    return leaves


def test_mirror_that_gives_nothing_back_keeps_the_table_from_starting(table: Table, ack: bytes) -> None:
    assert refused(table, keeping(ack, lambda wanted: [])) == "E-HEAL-SILENT"
    assert table.asked == [range(EARLIER, SIZE)] * RECALL_TRIES


@pytest.mark.parametrize("keeper", ["broker", "witness"])
def test_entries_that_were_signed_and_that_the_mirror_does_not_hold_keep_the_table_from_starting(
    past: Path, table: Table, keeper: str
) -> None:
    def prepare(centre: Centre) -> None:
        keeping(cosigned(note_of(past / "full.db", 301)))(centre)
        note = note_of(past / "full.db")
        if keeper == "broker":
            centre.keep(TOPICS.checkpoint, note.encode())
        else:
            centre.keep(TOPICS.witness("caisse"), cosigned(note, CAISSE))

    assert refused(table, prepare) == "E-HEAL-BEHIND"
    assert table.asked == []


def test_signed_entries_that_only_the_broker_remembers_keep_the_table_from_starting(past: Path, table: Table) -> None:
    note = note_of(past / "full.db").encode()
    assert refused(table, lambda centre: centre.keep(TOPICS.checkpoint, note)) == "E-HEAL-BEHIND"


def test_disk_that_lost_more_than_a_start_can_take_back_is_for_a_person(
    table: Table, ack: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.reconcile.HEALED_BOUND", SIZE - EARLIER - 1)
    assert refused(table, keeping(ack)) == "E-HEAL-TOO-MANY"
    assert table.asked == []


def test_rubbish_without_end_fills_a_bound_and_not_the_memory(
    table: Table, ack: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "HELD_BOUND_BYTES", 20_000)
    assert refused(table, keeping(ack)) == "E-HEAL-TOO-MANY"


# ── Failures in pairs ─────────────────────────────────────────────────────────────────────────────────────────────────


class _BrokenDisk:
    """The journal, whose restoring fails: before it did anything, or after it did everything."""

    def __init__(self, journal: Journal, *, stores: bool) -> None:
        self._journal = journal
        self._stores = stores

    @property
    def size(self) -> int:
        return self._journal.size

    def leaf(self, index: int) -> bytes:
        return self._journal.leaf(index)

    def restore_entries(self, leaves: Sequence[bytes], note: str, cosigner: Any) -> None:
        if self._stores:
            self._journal.restore_entries(leaves, note, cosigner)
        raise JournalFault("E-JOURNAL-WRITE", "disk I/O error")


@pytest.mark.parametrize("stores", [False, True], ids=["nothing-stored", "all-stored"])
def test_healing_that_failed_is_ended_and_told_by_the_next_start(
    past: Path, table: Table, ack: bytes, in_virtual_time: Run, stores: bool
) -> None:
    with closing(open_journal(table.file)) as journal, closing(Reader(table.file)) as reader:
        stage = Stage(_broken(journal, stores=stores), reader.root, table.file.parent, table.leaves)
        with pytest.raises(JournalFault, match="E-JOURNAL-WRITE"):
            in_virtual_time(stage.start(keeping(ack)))
    assert table.size == (SIZE if stores else EARLIER)
    healing = table.starts(keeping(ack))
    assert healing is not None
    assert (healing.from_size, healing.to_size) == (EARLIER, SIZE)
    assert table.asked == ([] if stores else [range(EARLIER, SIZE)])
    assert healed(past, table)


def _broken(journal: Journal, *, stores: bool) -> Any:
    return _BrokenDisk(journal, stores=stores)


def test_healing_that_was_told_is_told_no_more(table: Table, ack: bytes) -> None:
    assert table.starts(keeping(ack)) is not None
    HealingNote(table.file.parent).forget()
    assert table.starts(keeping(ack)) is None


def test_note_of_a_healing_that_never_came_is_not_believed(table: Table) -> None:
    note = HealingNote(table.file.parent)
    note.write(Healing(from_size=EARLIER, to_size=EARLIER + 1, root="00" * 32, cosigner=MIRROR.name))
    with closing(open_journal(table.file)) as journal:
        journal.append(stakes(2, 5_000))
    assert table.starts() is None


def test_note_of_a_healing_that_is_damaged_is_passed_over(table: Table) -> None:
    (table.file.parent / "healing.json").write_text('{"from_size": 1')
    assert table.starts() is None


# ── What is kept of what comes back ───────────────────────────────────────────────────────────────────────────────────

STAMP = Stamp(source=ORIGIN, boot=BOOT, mono_ms=1, wall_ms=1, quality="ntp")


def entries(start: int, count: int, origin: str = ORIGIN, first: int = 0) -> list[bytes]:
    """Entries in good form; ``first`` numbers their content."""
    leaves, _ = build_leaves(start, FIRST_PREVIOUS, stakes(count, first), replace(STAMP, source=origin))
    return leaves


def test_entry_of_another_table_or_of_another_number_is_not_kept() -> None:
    recalled = recall.Recalled(ORIGIN, range(5, 8))
    assert not recalled.take(entries(5, 1, "casino.example/table/t08/1")[0])
    assert not recalled.take(entries(4, 1)[0])
    assert not recalled.take(entries(8, 1)[0])
    assert recalled.take(entries(5, 1)[0])
    assert not recalled.take(entries(5, 1)[0]), "twice"
    assert recalled.missing == range(6, 8)


def test_entries_of_one_number_are_kept_up_to_a_bound() -> None:
    recalled = recall.Recalled(ORIGIN, range(1))
    taken = [recalled.take(entries(0, 1, first=at)[0]) for at in range(recall.VARIANTS_BOUND + 2)]
    assert taken == [True] * recall.VARIANTS_BOUND + [False, False]


def test_first_entry_follows_nothing(tmp_path: Path) -> None:
    recalled = recall.Recalled(ORIGIN, range(1))
    (leaf,) = entries(0, 1)
    assert recalled.take(leaf)
    assert list(recalled.chains(FIRST_PREVIOUS)) == [[leaf]]
    assert list(recalled.chains(bytes([1]) * 32)) == []
