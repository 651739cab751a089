"""What is just permitted and what is just not, and what a person is told: proofs, notes, keys, policies."""

from base64 import b64encode
from hashlib import sha256

import pytest

from controller.certify import log_keys, note, policy
from controller.certify.checkpoint import Checkpoint, snapshot_text
from controller.certify.faults import KeyFault, LeafFault, NoteFault
from controller.certify.leaf import (
    FIRST_PREVIOUS,
    QUALITIES,
    Record,
    Stamp,
    build_leaf,
    check_data,
    leaf_hash,
    parse_leaf,
)
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, Verifier, format_note, open_note, parse_note, parse_signature
from controller.certify.policy import Policy
from controller.certify.tiles import Edge
from controller.certify.tree import (
    Frontier,
    consistency_proof,
    frontier_of,
    inclusion_proof,
    node_hash,
    root_of,
    subtrees_of,
    verify_consistency,
    verify_inclusion,
)

ORIGIN = "casino.example/table/t07/1"
TABLE = Signer(ORIGIN, bytes(32))
MIRROR = Signer("centre.example/mirror", bytes([2] * 32), KeyType.COSIGNATURE)
TEXT = f"{ORIGIN}\n137\n{b64encode(bytes(32)).decode()}\n"
HASHES = [leaf_hash(b"entry %d" % at) for at in range(9)]
SUBTREES = subtrees_of(HASHES)
ROOTS = [root_of(HASHES[:size]) for size in range(10)]


def key_refusal(text: str) -> str:
    with pytest.raises(KeyFault, match="E-KEY-MALFORMED") as refused:
        Verifier.parse(text)
    return refused.value.detail


# ── Proofs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_frontier_counts_the_entries_of_each_subtree() -> None:
    frontier = Frontier()
    frontier.append(HASHES[0])
    assert frontier.size == 1
    frontier.append(HASHES[1])
    frontier.append(SUBTREES(2, 4), 1)
    assert (frontier.size, frontier.root()) == (4, ROOTS[4])
    assert [frontier_of(HASHES[:size]).size for size in range(10)] == list(range(10))


def test_frontier_takes_no_subtree_that_would_begin_inside_another() -> None:
    frontier = Frontier()
    frontier.append(HASHES[0])
    with pytest.raises(AssertionError):
        frontier.append(SUBTREES(1, 3), 1)


def test_inclusion_of_a_negative_index_is_refused_though_it_folds_like_the_last_one() -> None:
    proof = inclusion_proof(3, 4, SUBTREES)
    assert verify_inclusion(HASHES[3], 3, 4, proof, ROOTS[4])
    assert not verify_inclusion(HASHES[3], -1, 4, proof, ROOTS[4])


def test_inclusion_proof_that_leads_beyond_the_stated_size_is_refused() -> None:
    assert verify_inclusion(HASHES[1], 1, 2, [HASHES[0]], ROOTS[2])
    assert not verify_inclusion(HASHES[1], 0, 1, [HASHES[0]], ROOTS[2])


def test_consistency_with_a_negative_size_is_refused_though_it_folds_to_both_roots() -> None:
    assert not verify_consistency(-1, 2, HASHES[0], ROOTS[2], [HASHES[0], HASHES[1]])


def test_consistency_proof_that_leads_beyond_the_stated_sizes_is_refused() -> None:
    proof = consistency_proof(3, 4, SUBTREES)
    assert verify_consistency(3, 4, ROOTS[3], ROOTS[4], proof)
    beside = HASHES[8]
    old, new = node_hash(beside, ROOTS[3]), node_hash(beside, ROOTS[4])
    assert not verify_consistency(3, 4, old, new, [*proof, beside])


# ── Notes and keys ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bounds_of_notes_keys_and_policies_are_those_of_their_formats() -> None:
    assert (note.NOTE_BOUND, note.SIGNATURES_BOUND, note.TIME_BOUND_S) == (65_536, 64, 9_223_372_036_854_775_807)
    assert (log_keys.KEYS_BOUND, policy.POLICY_BOUND, policy.LINES_BOUND) == (16, 65_536, 512)


def test_signature_of_one_byte_reads_and_of_none_does_not() -> None:
    least = parse_signature("— name " + b64encode(b"1234s").decode())
    assert (least.key_id, least.value) == (b"1234", b"s")
    with pytest.raises(NoteFault, match="too short"):
        parse_signature("— name " + b64encode(b"1234").decode())


def test_cosignature_of_no_stated_time_states_the_beginning_of_1970() -> None:
    assert MIRROR.sign(TEXT).time_s == 0
    assert MIRROR.sign(TEXT).value[:8] == bytes(8)


def test_note_that_is_cut_says_where() -> None:
    whole = format_note(TEXT, [TABLE.sign(TEXT)])
    with pytest.raises(NoteFault, match="ends with a line end"):
        parse_note(whole[:-1])
    with pytest.raises(NoteFault, match="no empty line between"):
        parse_note(TEXT)


def test_note_of_strangers_names_who_signed_and_who_was_wanted() -> None:
    line = TABLE.sign(TEXT)
    other = Signer("casino.example/personne/D12", bytes([1] * 32))
    with pytest.raises(NoteFault) as refused:
        open_note(format_note(TEXT, [line, line]), [other.verifier, MIRROR.verifier])
    signed = f"{ORIGIN} ({TABLE.verifier.key_id.hex()})"
    wanted = [f"{one.name} ({one.verifier.key_id.hex()})" for one in (other, MIRROR)]
    expected = f"the note is signed by {signed}, {signed}, and not by {wanted[0]}, {wanted[1]}"
    assert refused.value.detail == expected


def test_key_with_a_name_that_no_key_may_have_is_refused_though_its_identifier_fits() -> None:
    assert "name+identifier+base64" in key_refusal(Verifier("a name", KeyType.ED25519, TABLE.verifier.public).vkey)
    assert "name+identifier+base64" in key_refusal(Verifier("", KeyType.ED25519, TABLE.verifier.public).vkey)


def test_key_text_with_stray_characters_is_told_not_to_be_base64() -> None:
    vkey = TABLE.verifier.vkey
    assert "is not base64" in key_refusal(f"{vkey}!")
    assert "is not base64" in key_refusal(f"{vkey}\n")
    assert "identifier" in key_refusal(vkey.replace("t07", "t08"))


def test_private_key_without_its_prefix_is_told_how_one_begins() -> None:
    with pytest.raises(KeyFault, match=r"begins with PRIVATE\+KEY\+"):
        Signer.parse(TABLE.skey.removeprefix("PRIVATE+KEY+"))


# ── Keys of a log ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_log_has_one_to_sixteen_keys() -> None:
    several = [Signer(ORIGIN, bytes([at] * 32)).verifier for at in range(17)]
    assert LogKeys.of(*several[:16]).verifiers == tuple(several[:16])
    with pytest.raises(KeyFault, match=f"not keys of: {ORIGIN}"):
        LogKeys.of(*several)


def test_log_without_a_key_or_with_keys_of_two_is_told_whose_they_are() -> None:
    with pytest.raises(KeyFault, match="not keys of: none"):
        LogKeys.of()
    with pytest.raises(KeyFault, match=f"not keys of: {ORIGIN}, {MIRROR.name}"):
        LogKeys.of(MIRROR.verifier, TABLE.verifier)


# ── Checkpoints and snapshots ─────────────────────────────────────────────────────────────────────────────────────────


def test_text_of_a_snapshot_is_its_header_the_checkpoint_and_the_digest_of_its_body() -> None:
    root = bytes(range(32))
    assert snapshot_text(ORIGIN, 7, root, b"state").split("\n") == [
        "table-controller/snapshot/v1",
        ORIGIN,
        "7",
        b64encode(root).decode(),
        f"sha256:{sha256(b'state').hexdigest()}",
        "",
    ]
    assert Checkpoint(ORIGIN, 7, root).text == f"{ORIGIN}\n7\n{b64encode(root).decode()}\n"


# ── Policies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LOG = f"log {TABLE.verifier.vkey}"
WITNESS = f"witness mirror {MIRROR.verifier.vkey}"


def policy_refusal(*lines: str) -> str:
    with pytest.raises(KeyFault, match="E-POLICY-MALFORMED") as refused:
        Policy.parse("\n".join(lines))
    return refused.value.detail


def test_policy_of_just_the_permitted_length_is_read() -> None:
    lines = f"{LOG}\nquorum none\n#"
    longest = lines + "x" * (policy.POLICY_BOUND - len(lines))
    assert Policy.parse(longest).quorum == "none"
    assert "longer than 65536 bytes" in policy_refusal(longest + "x")


def test_policy_of_just_the_permitted_lines_is_read() -> None:
    groups = [f"group g{at} any {f'g{at - 1}' if at else 'mirror'}" for at in range(511)]
    full = [LOG, WITNESS, *groups[:510]]
    assert len(Policy.parse("\n".join([*full, "quorum none"])).groups) == 510
    assert (
        policy_refusal(*full, groups[510])
        == "line 513 of the policy: there are more than 512 logs, witnesses and groups"
    )


def test_policy_that_is_malformed_names_its_line_and_what_the_key_is_for() -> None:
    assert policy_refusal("# first", LOG, LOG).startswith("line 3 of the policy: the key of")
    assert policy_refusal(LOG, LOG).endswith("for the second time as a log")
    another = f"witness other {MIRROR.verifier.vkey}"
    assert policy_refusal(WITNESS, another).endswith("for the second time as a witness")
    assert policy_refusal(f"log {MIRROR.verifier.vkey}").endswith("the key of a log is of type 1, not 4")
    assert policy_refusal(f"witness one {TABLE.verifier.vkey}").endswith("the key of a witness is of type 4, not 1")


def test_policy_defines_the_name_of_a_witness_once() -> None:
    successor = Signer(MIRROR.name, bytes([3] * 32), KeyType.COSIGNATURE)
    again = f"witness mirror {successor.verifier.vkey}"
    assert policy_refusal(WITNESS, again) == "line 2 of the policy: 'mirror' is defined already"


def test_policy_without_the_key_of_a_log_says_whose_it_has() -> None:
    other = Signer("casino.example/table/t08/1", bytes([5] * 32))
    both = Policy.parse("\n".join([LOG, f"log {other.verifier.vkey}", "quorum none"]))
    with pytest.raises(KeyFault, match=f"no key of nobody; it has keys of: {ORIGIN}, {other.name}"):
        both.keys("nobody")
    with pytest.raises(KeyFault, match="no key of nobody; it has keys of: none"):
        Policy.parse("quorum none").keys("nobody")


# ── Leaves ────────────────────────────────────────────────────────────────────────────────────────────────────────────

STAMP = Stamp(source=ORIGIN, boot="9f1c0b7e52d3a844", mono_ms=0, wall_ms=0, quality="ntp")


def leaf_refusal(leaf: bytes) -> str:
    with pytest.raises(LeafFault) as refused:
        parse_leaf(leaf)
    return refused.value.code


@pytest.mark.parametrize("quality", ["ntp", "rtc", "free"])
def test_leaf_states_one_of_three_qualities_of_the_clock(quality: str) -> None:
    assert quality in QUALITIES
    stamp = Stamp(source=ORIGIN, boot=STAMP.boot, mono_ms=0, wall_ms=0, quality=quality)
    read = parse_leaf(build_leaf(0, FIRST_PREVIOUS, Record("fr.a.v1", "{}", None), stamp))
    assert (read.quality, read.mono_ms) == (quality, 0)


@pytest.mark.parametrize("data", ['{"a": 1}', '{"b":1,"a":2}', '{"a":1.5}', "[]", '{"a":null}'])
def test_leaf_of_data_in_another_spelling_is_not_built(data: str) -> None:
    with pytest.raises(LeafFault):
        build_leaf(0, FIRST_PREVIOUS, Record("fr.a.v1", data, None), STAMP)


def test_data_with_floating_point_says_so() -> None:
    with pytest.raises(LeafFault, match="no place for floating point") as refused:
        check_data(['{"a":1.5}'])
    assert refused.value.code == "E-LEAF-VALUE"


def test_number_of_sixteen_digits_is_weighed_and_of_fifteen_is_not() -> None:
    check_data(['{"a":999999999999999}', '{"a":9007199254740991}'])
    with pytest.raises(LeafFault, match="integers must stay within"):
        check_data(['{"a":9007199254740992}'])


def test_bytes_that_are_no_leaf_have_the_code_of_their_form() -> None:
    leaf = build_leaf(0, FIRST_PREVIOUS, Record("fr.a.v1", "{}", None), STAMP)
    assert leaf_refusal(b"{}") == "E-LEAF-FORM"
    assert leaf_refusal(leaf.replace(b"1970-01-01", b"1970-19-01")) == "E-LEAF-FORM"
    assert leaf_refusal(leaf.replace(b"{}", b'{"a":"\xff"}')) == "E-LEAF-FORM"
    assert leaf_refusal(leaf.replace(b"fr.a.v1", b"fr..v1")) == "E-LEAF-FORM"


# ── Tiles ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edge_holds_the_hashes_that_no_full_tile_holds_and_no_others() -> None:
    edge, hashes = Edge(), [leaf_hash(b"entry %d" % at) for at in range(300)]
    assert edge.node(0, 0) is None
    (tile,) = edge.extend(hashes)
    assert (tile.level, tile.n, tile.root, tile.hashes) == (0, 0, root_of(hashes[:256]), b"".join(hashes[:256]))
    assert [edge.node(0, at) for at in (255, 256, 299, 300)] == [None, hashes[256], hashes[299], None]
    assert [edge.node(1, at) for at in (0, 1)] == [tile.root, None]
    assert edge.node(2, 0) is None
