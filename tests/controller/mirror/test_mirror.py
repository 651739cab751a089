"""The mirror without its broker: what it stores, what it cosigns, what it asks for, and what it refuses."""

import json
from pathlib import Path

import pytest

from controller.certify.faults import KeyFault
from controller.certify.note import open_note
from controller.delivery.bus import Message
from controller.mirror.dossier import EVIDENCE_BOUND
from controller.mirror.follower import AHEAD_BOUND_BYTES, PENDING_BOUND
from controller.mirror.gap import PATIENCE_MS, REPEAT_FIRST_MS, REPLAY_BOUND
from controller.mirror.mirror import RECALL_BOUND, STRANGERS_BOUND, Mirror
from controller.mirror.store import stored_root
from drivers.clock import ManualClock
from tests.controller.certify.workshop import MIRROR, SIGNER, build, open_journal, stakes
from tests.controller.mirror.casino import CENTRE, ORIGIN, Centre, MemoryStore, Opener, Table, seeded


def replays(said: list[Message]) -> list[tuple[int, int]]:
    asked = [json.loads(message.payload) for message in said if message.topic.endswith("/down/replay")]
    return [(one["from"], one["to"]) for one in asked]


@pytest.fixture
def table() -> Table:
    return Table(entries=300)


@pytest.fixture
def centre(table: Table) -> Centre:
    return Centre(MemoryStore(), table)


# ── What is held and cosigned ─────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_entries_and_their_checkpoint_are_stored_and_then_cosigned(opening: Opener) -> None:
    table = Table(entries=700)
    centre = Centre(opening(), table)
    centre.hear(*table.events(0, 300))
    assert centre.acks(table) == []
    centre.hear(*table.events(300), table.checkpoint())
    (ack,) = centre.acks(table)
    assert (ack.size, ack.root) == (700, table.root(700))
    again = opening()
    assert again.leaves(ORIGIN, 0, 9_999) == table.all
    (held,) = again.held()
    assert (held.size, held.cosigned, held.announced) == (700, 700, 700)
    assert held.ack == ack.note
    assert [stored_root(again, ORIGIN, size) for size in (256, 512, 700)] == [table.root(s) for s in (256, 512, 700)]


def test_mirror_checkpoint_before_its_entries_is_cosigned_when_they_are_there(centre: Centre, table: Table) -> None:
    centre.hear(table.checkpoint(299))
    assert centre.said == []
    centre.hear(*table.events(0, 298))
    assert centre.said == []
    centre.hear(*table.events(298))
    assert [ack.size for ack in centre.acks(table)] == [299]


def test_mirror_checkpoint_of_earlier_entries_is_cosigned_from_what_is_stored(centre: Centre, table: Table) -> None:
    centre.hear(*table.events())
    centre.hear(table.checkpoint(257))
    assert [(ack.size, ack.root) for ack in centre.acks(table)] == [(257, table.root(257))]


def test_mirror_several_checkpoints_of_one_turn_are_answered_by_the_newest(centre: Centre, table: Table) -> None:
    centre.hear(table.checkpoint(100), table.checkpoint(200), *table.events())
    assert [ack.size for ack in centre.acks(table)] == [200]


def test_mirror_checkpoints_in_the_wrong_order_are_answered_by_the_newest(centre: Centre, table: Table) -> None:
    centre.hear(*table.events())
    centre.hear(table.checkpoint(200), table.checkpoint(100))
    assert [ack.size for ack in centre.acks(table)] == [200]


def test_mirror_first_entry_that_claims_one_before_it_is_refused_and_is_no_fork(centre: Centre, table: Table) -> None:
    later = Table(entries=2)
    first = later.all[1].replace(b'"id":"1"', b'"id":"0"')
    centre.hear(Message(table.topics.event, first))
    assert centre.codes == ["E-MIRROR-REFUSED"]
    centre.hear(*table.events())
    assert centre.size(table) == 300


def test_mirror_cosignature_states_the_time_of_its_own_clock(centre: Centre, table: Table) -> None:
    centre.clock.advance_us(5_000_000)
    centre.hear(*table.events(), table.checkpoint())
    note = open_note(centre.acks(table)[0].note, [CENTRE.verifier])
    assert [line.time_s for line in note.signatures] == [centre.clock.wall_ms() // 1_000]


def test_mirror_journal_of_no_entries_is_not_cosigned(centre: Centre, table: Table) -> None:
    centre.hear(table.checkpoint(0))
    assert (centre.said, centre.alarms) == ([], [])


def test_mirror_two_keys_while_one_is_rotated_are_both_kept_in_the_acknowledgement() -> None:
    table = Table(entries=10, signers=[seeded(ORIGIN), SIGNER])
    centre = Centre(MemoryStore(), table)
    centre.hear(*table.events(), table.checkpoint())
    assert len(open_note(centre.acks(table)[0].note, table.keys.verifiers).signatures) == 2


def test_mirror_acknowledgement_is_one_that_the_journal_keeps(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [3, 4])
    table = Table(entries=0, signers=[SIGNER])
    centre = Centre(MemoryStore(), table)
    journal = open_journal(path)
    journal.append(stakes(2, 7))
    centre.hear(
        *(Message(table.topics.event, leaf) for leaf in journal.leaves(0, 9)),
        Message(table.topics.checkpoint, journal.checkpoint.encode()),
    )
    (ack,) = centre.acks(table)
    assert journal.add_cosignature(ack.note, CENTRE.verifier).size == 9
    journal.close()


# ── Order, repeats and gaps ───────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_entries_in_the_wrong_order_wait_for_the_earlier_ones(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(200), *table.events(100, 200))
    assert centre.size(table) == 0
    centre.hear(*table.events(0, 100))
    assert centre.size(table) == 300


def test_mirror_repeats_old_and_new_change_nothing(centre: Centre, table: Table) -> None:
    table.grow(2_000)
    centre.hear(*table.events(), table.checkpoint())
    before = centre.held(table)
    centre.start()
    assert centre.hear(*table.events(), *table.events(2_000), table.checkpoint(), table.checkpoint()) == []
    assert centre.held(table) == before
    assert centre.alarms == []


def test_mirror_gap_is_asked_for_after_a_moment_and_then_less_and_less(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(0, 10), *table.events(20, 30))
    assert replays(centre.wait(PATIENCE_MS - 1)) == []
    assert replays(centre.wait(1)) == [(10, 20)]
    assert replays(centre.wait(REPEAT_FIRST_MS - 1)) == []
    assert replays(centre.wait(1)) == [(10, 20)]
    assert replays(centre.wait(2 * REPEAT_FIRST_MS - 1)) == []
    assert replays(centre.wait(1)) == [(10, 20)]
    centre.hear(*table.events(10, 20))
    assert centre.size(table) == 30
    assert replays(centre.wait(1_000_000)) == []


def test_mirror_entries_that_were_signed_and_never_came_are_asked_for_a_part_at_a_time() -> None:
    table = Table(entries=3 * REPLAY_BOUND)
    centre = Centre(MemoryStore(), table)
    centre.hear(table.checkpoint())
    centre.wait(0)
    assert replays(centre.wait(PATIENCE_MS)) == [(0, REPLAY_BOUND)]
    assert replays(centre.hear(*table.events(0, REPLAY_BOUND))) == [(REPLAY_BOUND, 2 * REPLAY_BOUND)]
    assert replays(centre.hear(*table.events(REPLAY_BOUND, 2 * REPLAY_BOUND))) == [(2 * REPLAY_BOUND, 3 * REPLAY_BOUND)]
    assert replays(centre.hear(*table.events(2 * REPLAY_BOUND))) == []
    assert [ack.size for ack in centre.acks(table)] == [3 * REPLAY_BOUND]


def test_mirror_entries_that_wait_are_bounded_and_come_by_replay(table: Table) -> None:
    table.grow(AHEAD_BOUND_BYTES // 200)
    centre = Centre(MemoryStore(), table)
    centre.hear(*table.events(1))
    (follower,) = centre.mirror.followers
    assert follower._ahead_bytes <= AHEAD_BOUND_BYTES < sum(map(len, table.all))
    centre.hear(*table.events(0, 1))
    assert 0 < centre.size(table) < len(table.all)
    centre.hear(*table.events(centre.size(table)))
    assert centre.size(table) == len(table.all)
    assert (follower._ahead_bytes, follower._ahead) == (0, {})


def test_mirror_checkpoints_that_wait_are_bounded_and_the_first_and_the_last_are_kept(
    centre: Centre, table: Table
) -> None:
    sizes = range(10, 300, 10)
    centre.hear(*(table.checkpoint(size) for size in sizes))
    (follower,) = centre.mirror.followers
    assert len(follower._pending) == PENDING_BOUND
    assert {min(sizes), max(sizes)} <= set(follower._pending)


# ── Who is heard ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_unknown_origin_is_counted_told_once_and_refused(centre: Centre) -> None:
    stranger = Table("casino.example/table/t99/1", entries=3)
    centre.hear(*stranger.events(), stranger.checkpoint())
    assert centre.mirror.strangers == 4
    assert centre.codes == ["E-MIRROR-STRANGER"] * 2  # by each of its two topics
    assert centre.store.held() == []


def test_mirror_strangers_that_are_told_are_bounded(centre: Centre) -> None:
    count = STRANGERS_BOUND + 50
    centre.hear(*(Message(f"casino/v1/casino.example/table/x{at}/up/event", b"{}") for at in range(count)))
    assert (centre.mirror.strangers, len(centre.alarms)) == (count, STRANGERS_BOUND)


def test_mirror_entry_on_the_topic_of_another_table_is_refused(table: Table) -> None:
    other = Table("casino.example/table/t08/1", entries=2)
    centre = Centre(MemoryStore(), table, other)
    centre.hear(*(Message(table.topics.event, leaf) for leaf in other.all))
    centre.hear(Message(table.topics.checkpoint, other.note().encode()))
    centre.hear(*other.events(0, 1), Message(table.topics.event, other.all[1]))
    assert set(centre.codes) == {"E-MIRROR-STRANGER"}
    assert (centre.size(table), centre.size(other)) == (0, 1)


def test_mirror_epoch_that_is_in_no_policy_is_refused_and_one_that_is_goes_on_the_same_topic() -> None:
    first, second = Table(entries=5), Table("casino.example/table/t07/2", entries=3)
    third = Table("casino.example/table/t07/3", entries=3)
    centre = Centre(MemoryStore(), second, first)
    centre.hear(*first.events(), first.checkpoint())
    centre.hear(*second.events(), second.checkpoint(), *third.events())
    assert (centre.size(first), centre.size(second)) == (5, 3)
    assert [message.payload for message in centre.mirror.acknowledgements()] == [centre.held(second).ack.encode()]
    assert centre.mirror.strangers == 3


@pytest.mark.parametrize("leaf", [b"", b"{}", b"\xff" * 40, b"x" * 9_000])
def test_mirror_bytes_that_are_no_entry_are_refused(centre: Centre, table: Table, leaf: bytes) -> None:
    centre.hear(Message(table.topics.event, leaf))
    assert centre.codes == ["E-MIRROR-REFUSED"]


def test_mirror_entry_whose_data_is_not_canonical_is_refused_and_the_right_one_is_taken(
    centre: Centre, table: Table
) -> None:
    altered = table.all[1].replace(b'"at":1,', b'"at": 1,')
    assert altered != table.all[1]
    centre.hear(*table.events(0, 1), Message(table.topics.event, altered), *table.events(2, 3))
    assert (centre.codes, centre.size(table)) == (["E-MIRROR-REFUSED"], 1)
    centre.hear(*table.events(1))
    assert (centre.size(table), centre.held(table).fork) == (300, "")


@pytest.mark.parametrize("change", ["signature", "key", "origin", "form", "bytes"])
def test_mirror_checkpoint_that_the_table_did_not_sign_is_refused(centre: Centre, table: Table, change: str) -> None:
    other = Table("casino.example/table/t08/1", entries=300, signers=[seeded(ORIGIN)])
    payload = {
        "signature": table.note().replace("\n300\n", "\n299\n").encode(),
        "key": Table(entries=300, signers=[seeded("another")]).note().encode(),
        "origin": other.note().replace("t08", "t07", 1).encode(),
        "form": table.note().replace("\n300\n", "\n0300\n").encode(),
        "bytes": ORIGIN.encode() + b"\n\xff",
    }[change]
    centre.hear(*table.events(), Message(table.topics.checkpoint, payload))
    assert centre.codes == ["E-MIRROR-REFUSED"]
    assert centre.said == []


def test_mirror_key_that_cannot_cosign_is_refused() -> None:
    with pytest.raises(KeyFault, match="E-MIRROR-KEY"):
        Mirror([], MemoryStore(), seeded("centre"), ManualClock())


def test_mirror_policy_with_a_log_that_is_no_table_is_refused() -> None:
    signer = seeded("example.com/log")
    with pytest.raises(KeyFault, match="E-POLICY-LOG"):
        Centre(MemoryStore(), Table("casino.example/personne/b1/1", signers=[signer]))


# ── Forks and rollbacks ───────────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_same_index_with_other_bytes_is_a_fork_and_both_are_kept(opening: Opener) -> None:
    table = Table(entries=300)
    centre = Centre(opening(), table)
    centre.hear(*table.events(0, 200), table.checkpoint(200))
    clone = table.branch(150, 100)
    centre.hear(*clone.events(150))
    assert centre.codes == ["E-MIRROR-FORK"]
    centre.hear(clone.checkpoint())
    centre.hear(*table.events(200), table.checkpoint())
    assert [ack.size for ack in centre.acks(table)] == [200]
    (held,) = opening().held()
    assert (held.size, held.cosigned) == (200, 200)
    assert held.fork
    kept = opening().evidence(ORIGIN)
    assert [one.content for one in kept if (one.kind, one.side, one.at) == ("entry", "held", 150)] == [table.all[150]]
    assert {one.content for one in kept if (one.kind, one.side) == ("entry", "other")} >= set(clone.all[150:])
    assert {one.content for one in kept if one.kind == "checkpoint"} == {
        centre.acks(table)[0].note.encode(),
        clone.note().encode(),
        table.note().encode(),
    }


def test_mirror_fork_is_still_one_after_a_restart(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(0, 100), *table.branch(50, 10).events(50))
    centre.start()
    centre.hear(*table.events(100), table.checkpoint())
    assert centre.size(table) == 100
    assert centre.acks(table) == []
    assert centre.wait(1_000_000) == []


@pytest.mark.parametrize("size", [299, 300, 320])
def test_mirror_checkpoint_with_another_root_is_a_fork(centre: Centre, table: Table, size: int) -> None:
    clone = table.branch(290, 30)
    table.grow(50)
    centre.hear(*table.events(0, 295), table.checkpoint(280))
    centre.hear(clone.checkpoint(size))
    centre.hear(*table.events(295))
    assert centre.codes == ["E-MIRROR-FORK"]
    assert [ack.size for ack in centre.acks(table)] == [280]
    notes = [one.content for one in centre.store.evidence(ORIGIN) if one.kind == "checkpoint"]
    assert set(notes) == {clone.note(size).encode(), centre.acks(table)[0].note.encode()}


def test_mirror_entry_that_follows_another_one_is_a_fork(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(0, 100))
    centre.hear(*table.branch(99, 10).events(100))
    assert centre.codes == ["E-MIRROR-FORK"]
    assert centre.size(table) == 100


def test_mirror_two_signed_checkpoints_of_one_size_are_a_fork_before_their_entries_came(
    centre: Centre, table: Table
) -> None:
    clone = table.branch(10, 290)
    centre.hear(table.checkpoint(), clone.checkpoint())
    assert centre.codes == ["E-MIRROR-FORK"]
    kept = {one.content for one in centre.store.evidence(ORIGIN)}
    assert kept == {table.note().encode(), clone.note().encode()}


def test_mirror_fork_among_entries_that_wait_is_noticed(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(100, 110), *table.branch(50, 60).events(100))
    assert centre.codes == ["E-MIRROR-FORK"]


def test_mirror_fork_among_older_entries_of_the_store_is_noticed(centre: Centre, table: Table) -> None:
    table.grow(2_000)
    centre.hear(*table.events())
    centre.start()
    centre.hear(*table.branch(3, 1).events(3))
    assert centre.codes == ["E-MIRROR-FORK"]


def test_mirror_fork_at_one_table_leaves_the_others_alone(table: Table) -> None:
    other = Table("casino.example/table/t08/1", entries=10)
    centre = Centre(MemoryStore(), table, other)
    centre.hear(*table.events(), *table.branch(9, 1).events(9), *other.events(), other.checkpoint(), table.checkpoint())
    assert (centre.acks(table), [ack.size for ack in centre.acks(other)]) == ([], [10])


def test_mirror_evidence_of_a_fork_is_bounded(centre: Centre, table: Table) -> None:
    clone = table.branch(5, 2 * EVIDENCE_BOUND)
    for _ in range(2):
        centre.hear(*table.events(0, 10), *clone.events(5))
        centre.start()
    assert len(centre.store.evidence(ORIGIN)) == EVIDENCE_BOUND


def test_mirror_table_that_went_back_is_told_once_and_answered_with_what_is_held(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(), table.checkpoint())
    (first,) = centre.said
    assert first.retain
    assert centre.hear(table.checkpoint(200)) == [first]
    assert centre.hear(table.checkpoint(201)) == [first]
    assert centre.codes == ["E-MIRROR-ROLLED-BACK"]
    assert centre.held(table).latest < centre.held(table).announced
    centre.hear(*table.grow(5).events(300), table.checkpoint())
    assert centre.held(table).latest == centre.held(table).announced == 305


# ── The mirror's own past ─────────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_started_again_says_again_what_it_last_cosigned(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(), table.checkpoint())
    centre.start()
    assert centre.mirror.acknowledgements() == centre.said


def test_mirror_restored_from_a_backup_asks_again_and_never_says_less_than_before(opening: Opener) -> None:
    table = Table(entries=600)
    centre = Centre(opening(), table)
    centre.hear(*table.events(0, 200), table.checkpoint(200))
    opening.backup()
    centre.store = opening()
    centre.start()
    centre.hear(*table.events(200, 500), table.checkpoint(500))
    (_, retained) = centre.said
    opening.restore()
    centre.store = opening()
    centre.start()
    assert [open_note(m.payload.decode(), [CENTRE.verifier]).text for m in centre.mirror.acknowledgements()] != []
    centre.said.clear()
    centre.hear(retained)
    assert centre.codes == ["E-MIRROR-RESTORED"]
    assert centre.mirror.acknowledgements() == []
    centre.wait(0)
    assert replays(centre.wait(PATIENCE_MS)) == [(200, 500)]
    centre.hear(table.checkpoint(400), *table.events(200, 450))
    assert (centre.acks(table), centre.held(table).cosigned) == ([], 200)
    centre.start()  # and it does not forget what it said
    assert centre.mirror.acknowledgements() == []
    centre.hear(retained, *table.events(450, 500))
    assert [ack.size for ack in centre.acks(table)] == [500]


def test_mirror_own_acknowledgement_that_comes_back_changes_nothing(centre: Centre, table: Table) -> None:
    centre.hear(*table.events(), table.checkpoint(200))
    centre.hear(table.checkpoint())
    before = centre.held(table)
    centre.hear(*centre.said)
    assert (centre.held(table), centre.alarms) == (before, [])


def test_mirror_of_a_site_whose_name_is_a_word_of_the_topics_hears_its_own_word() -> None:
    table = Table("up/table/up/1", entries=30)
    centre = Centre(MemoryStore(), table)
    centre.hear(*table.events(), table.checkpoint())
    (retained,) = centre.said
    restored = Centre(MemoryStore(), table)
    restored.hear(retained)
    assert restored.codes == ["E-MIRROR-RESTORED"]
    assert restored.held(table).claimed == 30


def test_mirror_acknowledgement_by_another_key_binds_nobody(centre: Centre, table: Table) -> None:
    note = table.note()
    forged = f"{note}{MIRROR.sign(note.rpartition(chr(10) * 2)[0] + chr(10), 1).line}\n"
    centre.hear(Message(table.topics.ack, forged.encode(), retain=True))
    assert centre.codes == ["E-MIRROR-REFUSED"]
    centre.hear(*table.events(0, 100), table.checkpoint(100))
    assert [ack.size for ack in centre.acks(table)] == [100]


# ── Recalls ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def recall(table: Table, start: int, stop: int) -> Message:
    return Message(table.topics.recall, json.dumps({"from": start, "to": stop}).encode())


def test_mirror_recall_gives_back_the_exact_bytes(centre: Centre, table: Table) -> None:
    centre.hear(*table.events())
    answers = centre.mirror.recall(recall(table, 5, 9))
    assert [message.payload for message in answers] == table.all[5:9]
    assert {(message.topic, message.retain) for message in answers} == {(table.topics.entry, False)}


def test_mirror_recall_of_more_than_is_given_at_once_is_cut(table: Table) -> None:
    table.grow(RECALL_BOUND + 100)
    centre = Centre(MemoryStore(), table)
    centre.hear(*table.events())
    assert [m.payload for m in centre.mirror.recall(recall(table, 1, 1_400))] == table.all[1 : RECALL_BOUND + 1]


@pytest.mark.parametrize(("start", "stop"), [(0, 301), (5, 5), (-1, 3), (400, 500)])
def test_mirror_recall_of_what_is_not_held_is_refused(centre: Centre, table: Table, start: int, stop: int) -> None:
    centre.hear(*table.events())
    assert centre.mirror.recall(recall(table, start, stop)) == []
    assert [alarm.code for alarm in centre.mirror.alarms()] == ["E-MIRROR-RECALL"]


def test_mirror_recall_by_a_stranger_is_refused(centre: Centre) -> None:
    assert centre.mirror.recall(recall(Table("casino.example/table/t99/1"), 0, 1)) == []
    assert centre.mirror.strangers == 1


# ── The witness ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def witness(table: Table) -> Centre:
    return Centre(MemoryStore(), table, witness="caisse")


def test_witness_follows_the_same_stream_and_keeps_no_entries(opening: Opener) -> None:
    table = Table(entries=700)
    witness = Centre(opening(), table, witness="caisse")
    witness.hear(*table.events(0, 300), table.checkpoint(300))
    witness.store = opening()
    witness.start()
    witness.hear(*table.events(300), table.checkpoint())
    assert [(ack.size, ack.root) for ack in witness.acks(table)] == [(s, table.root(s)) for s in (300, 700)]
    assert {message.topic for message in witness.said} == {table.topics.witness("caisse")}
    store = opening()
    assert store.leaves(ORIGIN, 0, 999) == []
    assert store.blocks(ORIGIN, 9) == []
    assert len(store.held()[0].nodes) == (700).bit_count()


def test_witness_refuses_a_smaller_tree_and_repeats_its_word(witness: Centre, table: Table) -> None:
    witness.hear(*table.events(), table.checkpoint())
    assert witness.hear(table.branch(100, 50).checkpoint()) == witness.said[:1]
    assert witness.codes == ["E-MIRROR-ROLLED-BACK"]
    assert [ack.size for ack in witness.acks(table)] == [300, 300]


def test_witness_refuses_another_tree_of_the_same_size(witness: Centre, table: Table) -> None:
    witness.hear(*table.events(), table.checkpoint())
    witness.hear(*table.grow(1).events(300))
    witness.hear(table.branch(250, 50).checkpoint())
    assert witness.codes == ["E-MIRROR-FORK"]


def test_witness_refuses_a_longer_tree_that_does_not_continue_its_own(witness: Centre, table: Table) -> None:
    witness.hear(*table.events(), table.checkpoint())
    clone = table.branch(250, 100)
    witness.hear(*clone.events(300), clone.checkpoint())
    assert witness.codes == ["E-MIRROR-FORK"]
    assert [ack.size for ack in witness.acks(table)] == [300]
    kept = {(one.kind, one.side) for one in witness.store.evidence(ORIGIN)}
    assert kept == {("entry", "other"), ("checkpoint", "held"), ("checkpoint", "other")}
