"""Our signed notes and cosignatures, judged by the Go package note and by openssl; and the C2SP examples, by us."""

import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import NoteFault
from controller.certify.note import (
    KeyType,
    Signature,
    Signer,
    Verifier,
    format_note,
    open_note,
    parse_note,
    sign_note,
)
from controller.certify.proof import Proof
from controller.certify.tree import EMPTY_ROOT
from tests.interop.conftest import Judge, note

ORIGIN = "casino.example/table/t07/1"
OLD = Signer(ORIGIN, bytes(range(32)))
NEW = Signer(ORIGIN, bytes(range(1, 33)))
MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)
WITNESS = Signer("caisse.example/témoin", bytes(range(3, 35)), KeyType.COSIGNATURE)
DIRECTOR = Signer("casino.example/personne/D12", bytes(range(4, 36)))
TEXT = Checkpoint(ORIGIN, 137, bytes(range(32))).text
TIME_S = 1_796_000_000

OLD_KEY, NEW_KEY, MIRROR_KEY, WITNESS_KEY, DIRECTOR_KEY = (
    signer.verifier.vkey for signer in (OLD, NEW, MIRROR, WITNESS, DIRECTOR)
)


def lines(*signers: Signer) -> list[Signature]:
    return [signer.sign(TEXT, TIME_S) for signer in signers]


ROTATED = format_note(TEXT, lines(OLD, NEW, MIRROR, WITNESS))
"""A checkpoint while the table's key is being changed, cosigned by two witnesses."""


# ── Go ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("signed", "keys", "signers"),
    [
        (ROTATED, [OLD_KEY], [OLD]),
        (ROTATED, [NEW_KEY], [NEW]),
        (ROTATED, [OLD_KEY, NEW_KEY], [OLD, NEW]),
        (ROTATED, [OLD_KEY, NEW_KEY, MIRROR_KEY, WITNESS_KEY, DIRECTOR_KEY], [OLD, NEW, MIRROR, WITNESS]),
        (ROTATED, [WITNESS_KEY], [WITNESS]),
        (sign_note("une ligne\n\nune autre : é, €, 😀\n", OLD, DIRECTOR), [OLD_KEY, DIRECTOR_KEY], [OLD, DIRECTOR]),
    ],
)
def test_note_of_ours_opens_in_go_for_the_keys_that_are_known(
    judge: Judge, signed: str, keys: list[str], signers: list[Signer]
) -> None:
    assert judge([note(signed, *keys)]) == [" ".join(["ok", *(signer.name for signer in signers)])]
    opened = open_note(signed, [Verifier.parse(key) for key in keys])
    assert [signature.name for signature in opened.signatures] == [signer.name for signer in signers]


def test_note_with_any_character_altered_is_refused_by_go_and_by_us(judge: Judge) -> None:
    signed = format_note(TEXT, lines(OLD, MIRROR))
    altered = [signed[:at] + ("A" if old != "A" else "B") + signed[at + 1 :] for at, old in enumerate(signed)]
    believed = [note(one, OLD_KEY, MIRROR_KEY) for one in altered]
    for verdict, one in zip(judge(believed), altered, strict=True):
        ours = signers_of(one, OLD, MIRROR)
        # A key name or an identifier that was altered makes the line one of an unknown key, which says nothing.
        assert verdict.split()[1:] == ours if ours else verdict.startswith("refused: "), one
        assert len(ours) < 2


def signers_of(signed: str, *signers: Signer) -> list[str]:
    """Who signed, by our reading; nobody when the note is refused."""
    try:
        opened = open_note(signed, [signer.verifier for signer in signers])
    except NoteFault:
        return []
    return [signature.name for signature in opened.signatures]


def test_cosignature_of_another_time_text_or_key_is_refused_by_go_and_by_us(judge: Judge) -> None:
    right = MIRROR.sign(TEXT, TIME_S)
    later = Signature(right.name, right.key_id, (TIME_S + 1).to_bytes(8) + right.value[8:])
    elsewhere = MIRROR.sign(TEXT.replace("137", "138"), TIME_S)
    untimed = Signature(right.name, right.key_id, right.value[8:])
    bare = Signature(right.name, right.key_id, bytes(8) + OLD.sign(TEXT).value)
    for wrong in (later, elsewhere, untimed, bare):
        signed = format_note(TEXT, [OLD.sign(TEXT), wrong])
        assert judge([note(signed, OLD_KEY, MIRROR_KEY)]) == [
            f"refused: invalid signature for key {MIRROR.name}+{MIRROR.verifier.key_id.hex()}"
        ]
        assert signers_of(signed, OLD, MIRROR) == []
        assert judge([note(signed, OLD_KEY)]) == [f"ok {ORIGIN}"]


@pytest.mark.parametrize(
    "signed",
    [
        "",
        TEXT,
        ROTATED[:-1],
        ROTATED.replace("\n\n", "\n"),
        ROTATED.replace("— ", "- ", 1),
        ROTATED.replace("— ", "—  ", 1),
        ROTATED.replace("137", "137\r"),
        ROTATED.replace("137", "137\0"),
        f"{ROTATED}\n",
        f"{ROTATED}garbage\n",
    ],
)
def test_note_that_is_only_nearly_one_is_refused_by_go_and_by_us(judge: Judge, signed: str) -> None:
    assert judge([note(signed, OLD_KEY)]) == ["refused: malformed note"]
    with pytest.raises(NoteFault, match="E-NOTE-MALFORMED"):
        open_note(signed, [OLD.verifier])


# ── openssl ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def openssl(tmp_path: Path, program: Callable[[str], str]) -> Callable[[bytes, bytes, bytes], bool]:
    """``openssl(public, text, signature)``: whether openssl accepts a raw Ed25519 signature."""
    binary = program("openssl")
    der = bytes.fromhex("302a300506032b6570032100")  # before the 32 bytes of an Ed25519 key (RFC 8410)

    def verify(public: bytes, text: bytes, signature: bytes) -> bool:
        for name, content in (("key", der + public), ("text", text), ("signature", signature)):
            (tmp_path / name).write_bytes(content)
        words = ["-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "text"]
        told = subprocess.run(
            [binary, "pkeyutl", *words, "-sigfile", "signature"], cwd=tmp_path, capture_output=True, check=False
        )
        return told.returncode == 0

    return verify


def test_each_line_of_a_note_is_a_plain_ed25519_signature_for_openssl(
    openssl: Callable[[bytes, bytes, bytes], bool],
) -> None:
    old, new, mirror, witness = parse_note(ROTATED).signatures
    text, cosigned = TEXT.encode(), f"cosignature/v1\ntime {TIME_S}\n{TEXT}".encode()
    assert openssl(OLD.verifier.public, text, old.value)
    assert openssl(NEW.verifier.public, text, new.value)
    assert openssl(MIRROR.verifier.public, cosigned, mirror.value[8:])
    assert openssl(WITNESS.verifier.public, cosigned, witness.value[8:])
    assert not openssl(NEW.verifier.public, text, old.value)
    assert not openssl(MIRROR.verifier.public, text, mirror.value[8:])


# ── The examples of the C2SP specifications ───────────────────────────────────────────────────────────────────────────

SPEC_VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPEC_NOTE = (
    "This is an example message.\n\n— example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)

SPEC_CHECKPOINT = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""  # noqa: E501

SPEC_HASHES = """\
gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=
B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=
EKNzoDWG8LGC0Yp9o+sv3qllpMP9uHQ9B20KNL+Q1zs=
RoopEkOdqkYqMB4MJXrbt/hMjOxsVn0IrWjpz1ZMMes=
AHCioX9nLjsrse6YhjRRmk1WUEirVOLLRoOQ6vfO5vk=
"""


def test_note_of_the_specification_opens_in_go_and_by_us(judge: Judge) -> None:
    assert judge([note(SPEC_NOTE, SPEC_VKEY)]) == ["ok example.com/foo"]
    assert open_note(SPEC_NOTE, [Verifier.parse(SPEC_VKEY)]).text == "This is an example message.\n"
    altered = SPEC_NOTE.replace("an", "no")
    assert judge([note(altered, SPEC_VKEY)]) == ["refused: invalid signature for key example.com/foo+530d903a"]


def test_checkpoint_of_the_specification_states_the_time_that_the_specification_says() -> None:
    parsed = parse_note(SPEC_CHECKPOINT)
    checkpoint = parse_checkpoint(parsed.text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20_852_163)
    assert checkpoint.text == parsed.text
    log, witness = parsed.signatures
    assert (len(log.value), len(witness.value), witness.time_s) == (64, 72, 1_679_315_147)
    assert format_note(parsed.text, parsed.signatures) == SPEC_CHECKPOINT


def test_proof_in_the_form_of_the_specification_is_read_hash_by_hash() -> None:
    text = f"c2sp.org/tlog-proof@v1\nextra YWdl\nindex 73894\n{SPEC_HASHES}\n{SPEC_CHECKPOINT}"
    proof = Proof.parse(text)
    assert (proof.index, proof.extra, proof.note) == (73_894, b"age", SPEC_CHECKPOINT)
    assert list(proof.hashes) == [b64decode(line) for line in SPEC_HASHES.split()]
    assert proof.text == text


def test_root_of_an_empty_log_is_that_of_rfc_6962() -> None:
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
