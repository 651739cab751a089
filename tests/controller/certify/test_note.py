"""Signed notes and cosignatures: the published vectors, openssl, and everything malformed."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.faults import CertifyFault, KeyFault, NoteFault
from controller.certify.note import (
    NOTE_BOUND,
    SIGNATURES_BOUND,
    TIME_BOUND_S,
    KeyType,
    Signature,
    Signer,
    Verifier,
    format_note,
    open_note,
    parse_note,
    parse_signature,
    sign_note,
)

# The example of c2sp.org/signed-note.
SPEC_VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPEC_NOTE = (
    "This is an example message.\n\n— example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)

# The example of the Go package golang.org/x/mod/sumdb/note, with its private key.
GO_SKEY = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)

# A checkpoint of a public certificate log, cosigned by public witnesses.
WITNESSED_VKEY = "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
WITNESS_VKEY = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"
WITNESSED_NOTE = """\
arche2025h1.staging.ct.transparency.dev
1432088532
U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=

— arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=
— arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=
— transparency.dev/DEV:witness-little-garden 2AQqhwAAAABqEiEgzgFIqqhbUoDwjMWE6UP8nd8/KYTzwZ2rhIgcqoXHAwVkjZr4AscylP3v7sEodkRAErumC2q44vdgJY096st5BQ==
— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==
"""  # noqa: E501

TABLE = Signer("casino.example/table/t07/1", bytes(32))
DIRECTOR = Signer("casino.example/personne/D12", bytes([1] * 32))
MIRROR = Signer("centre.example/mirror", bytes([2] * 32), KeyType.COSIGNATURE)
TEXT = "casino.example/table/t07/1\n137\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(CertifyFault) as caught:
        action()
    return caught.value.code


def test_note_of_the_specification_opens_with_its_key() -> None:
    assert open_note(SPEC_NOTE, [Verifier.parse(SPEC_VKEY)]).text == "This is an example message.\n"


def test_note_of_the_go_package_is_signed_byte_for_byte_with_its_private_key() -> None:
    signer = Signer.parse(GO_SKEY)
    assert (signer.skey, signer.verifier.vkey) == (GO_SKEY, GO_VKEY)
    assert sign_note(open_note(GO_NOTE, [Verifier.parse(GO_VKEY)]).text, signer) == GO_NOTE


def test_checkpoint_of_a_public_log_opens_with_its_key_and_its_witness() -> None:
    opened = open_note(WITNESSED_NOTE, [Verifier.parse(WITNESSED_VKEY), Verifier.parse(WITNESS_VKEY)])
    assert [signature.name for signature in opened.signatures] == [
        "arche2025h1.staging.ct.transparency.dev",
        "remora.n621.de",
    ]
    assert opened.signatures[1].time_s == 0x6A122120
    altered = WITNESSED_NOTE.replace("1432088532", "1432088533")
    assert code_of(lambda: open_note(altered, [Verifier.parse(WITNESS_VKEY)])) == "E-NOTE-SIGNATURE"


def test_note_signature_is_a_plain_ed25519_one_for_openssl(tmp_path: Path, program: Callable[[str], str]) -> None:
    openssl = program("openssl")
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")
    (tmp_path / "signature").write_bytes(TABLE.sign(TEXT).value)
    prefix = bytes.fromhex("302a300506032b6570032100")  # the fixed DER header of an Ed25519 public key (RFC 8410)
    (tmp_path / "key.der").write_bytes(prefix + TABLE.verifier.public)
    command = [openssl, "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-rawin", "-in", "text"]
    command += ["-sigfile", "signature"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "text").write_text(TEXT.replace("137", "138"), encoding="utf-8")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0


def test_note_with_several_signatures_opens_with_any_of_the_keys_and_ignores_the_others() -> None:
    note = sign_note(TEXT, TABLE, DIRECTOR)
    for signers in ([TABLE], [DIRECTOR], [TABLE, DIRECTOR]):
        opened = open_note(note, [signer.verifier for signer in signers])
        assert [signature.name for signature in opened.signatures] == [signer.name for signer in signers]


def test_note_without_a_known_key_is_unsigned_even_if_name_or_identifier_agree() -> None:
    same_name = Signer(TABLE.name, bytes([9] * 32))
    line = TABLE.sign(TEXT)
    same_identifier = Signature("casino.example/table/t08/1", line.key_id, line.value)
    assert code_of(lambda: open_note(sign_note(TEXT, TABLE), [same_name.verifier])) == "E-NOTE-UNSIGNED"
    assert code_of(lambda: open_note(format_note(TEXT, [same_identifier]), [TABLE.verifier])) == "E-NOTE-UNSIGNED"


def test_note_with_one_wrong_signature_of_a_known_key_is_refused_whatever_else_is_right() -> None:
    wrong = Signature(DIRECTOR.name, DIRECTOR.verifier.key_id, bytes(64))
    note = format_note(TEXT, [TABLE.sign(TEXT), wrong])
    assert open_note(note, [TABLE.verifier]).text == TEXT
    assert code_of(lambda: open_note(note, [TABLE.verifier, DIRECTOR.verifier])) == "E-NOTE-SIGNATURE"


def test_cosignature_states_its_time_and_holds_only_for_it() -> None:
    line = MIRROR.sign(TEXT, time_s=1_679_315_147)
    note = format_note(TEXT, [TABLE.sign(TEXT), line])
    opened = open_note(note, [TABLE.verifier, MIRROR.verifier])
    assert [signature.time_s for signature in opened.signatures if signature.name == MIRROR.name] == [1_679_315_147]
    later = Signature(line.name, line.key_id, (1_679_315_148).to_bytes(8) + line.value[8:])
    assert code_of(lambda: open_note(format_note(TEXT, [later]), [MIRROR.verifier])) == "E-NOTE-SIGNATURE"


def test_cosignature_beyond_the_last_time_is_refused_and_at_it_accepted() -> None:
    for time_s, holds in [(TIME_BOUND_S, True), (TIME_BOUND_S + 1, False)]:
        assert MIRROR.verifier.verifies(TEXT, MIRROR.sign(TEXT, time_s)) is holds


def test_signature_of_one_type_never_passes_for_the_other() -> None:
    plain = Signer(MIRROR.name, bytes([2] * 32))
    assert plain.verifier.key_id != MIRROR.verifier.key_id
    assert not MIRROR.verifier.verifies(TEXT, plain.sign(TEXT))
    assert not plain.verifier.verifies(TEXT, MIRROR.sign(TEXT, 1))


@given(st.text(max_size=200) | st.text(max_size=200).map(lambda text: f"{text}\n"))
def test_note_of_any_text_opens_to_it_or_is_never_made(text: str) -> None:
    is_sound = text.endswith("\n") and all(c >= " " or c == "\n" for c in text)
    if is_sound:
        assert open_note(sign_note(text, TABLE), [TABLE.verifier]).text == text
    else:
        assert code_of(lambda: sign_note(text, TABLE)) == "E-NOTE-MALFORMED"


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_note_with_any_flipped_byte_is_never_believed_as_something_else(at: int, flip: int) -> None:
    note = bytearray(sign_note(TEXT, TABLE).encode())
    note[at % len(note)] ^= flip
    try:
        opened = open_note(note.decode(errors="surrogateescape"), [TABLE.verifier])
    except NoteFault:
        return
    raise AssertionError(opened)


LINE = TABLE.sign(TEXT).line


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        TEXT,
        f"{TEXT}\n",
        f"{TEXT}{LINE}\n",
        f"{TEXT}\n{LINE}",
        f"{TEXT}\n{LINE}\n\n",
        f"{TEXT}\n{LINE}\nstray\n",
        f"{TEXT}\r\n\n{LINE}\n",
        f"tab\t\n\n{LINE}\n",
        f"zero\0\n\n{LINE}\n",
        f"half \udcff\n\n{LINE}\n",
        f"{TEXT}\n{LINE.replace('— ', '- ')}\n",
        f"{TEXT}\n{LINE.replace('— ', '—  ')}\n",
        f"{TEXT}\n— name+plus AAAAAAAA\n",
        f"{TEXT}\n— \u00a0 AAAAAAAA\n",
        f"{TEXT}\n— name AAAAAA==\n",
        f"{TEXT}\n— name AAAAAAB=\n",
        f"{TEXT}\n— name AAAA AAAA\n",
        f"{TEXT}\n— name AAAAAA\n",
        f"{TEXT}\n— name !!!!!!!!\n",
        f"{TEXT}\n— name é\n",
        f"{TEXT}\n" + f"{LINE}\n" * (SIGNATURES_BOUND + 1),
        "x" * NOTE_BOUND + f"\n\n{LINE}\n",
    ],
)
def test_note_in_a_form_that_is_only_nearly_right_is_malformed(note: str) -> None:
    assert code_of(lambda: open_note(note, [TABLE.verifier])) == "E-NOTE-MALFORMED"


def test_note_at_each_bound_opens() -> None:
    assert len(parse_note(f"{TEXT}\n" + f"{LINE}\n" * SIGNATURES_BOUND).signatures) == SIGNATURES_BOUND
    filler = "x" * (NOTE_BOUND - len(f"\n\n{LINE}\n"))
    assert parse_note(f"{filler}\n\n{LINE}\n").text == f"{filler}\n"


def test_note_text_may_have_empty_lines_because_the_last_one_separates() -> None:
    text = "one\n\ntwo\n\n\nthree\n"
    assert open_note(sign_note(text, TABLE), [TABLE.verifier]).text == text


def test_signature_line_reads_back_as_it_was_written() -> None:
    assert parse_signature(LINE) == TABLE.sign(TEXT)


MATERIAL = b64encode(b"\1" + bytes(32)).decode()


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "name",
        "name+12345678",
        f"+12345678+{MATERIAL}",
        f"a name+12345678+{MATERIAL}",
        f"name+1234567+{MATERIAL}",
        f"name+1234567G+{MATERIAL}",
        f"name+12345678+{MATERIAL}",
        "name+12345678+AAAA",
        "name+12345678+!!!",
        "name+12345678+" + b64encode(b"\2" + bytes(32)).decode(),
        SPEC_VKEY.replace("530d903a", "530D903A"),
        SPEC_VKEY.replace("example.com/foo", "example.com/fo"),
        SPEC_VKEY + "\n",
    ],
)
def test_key_text_that_is_only_nearly_right_is_malformed(vkey: str) -> None:
    assert code_of(lambda: Verifier.parse(vkey)) == "E-KEY-MALFORMED"
    assert code_of(lambda: Signer.parse(f"PRIVATE+KEY+{vkey}")) == "E-KEY-MALFORMED"
    assert code_of(lambda: Signer.parse(vkey)) == "E-KEY-MALFORMED"


def test_key_text_of_either_type_reads_back() -> None:
    for signer in (TABLE, MIRROR):
        assert Verifier.parse(signer.verifier.vkey).vkey == signer.verifier.vkey
        assert Signer.parse(signer.skey).sign(TEXT, 7) == signer.sign(TEXT, 7)


def test_private_key_that_is_malformed_is_not_shown_in_the_message() -> None:
    secret = TABLE.skey.rpartition("+")[2]
    for broken in (TABLE.skey.replace("KEY", "KEI"), TABLE.skey[:-1], TABLE.skey.replace("t07", "t08")):
        with pytest.raises(KeyFault) as caught:
            Signer.parse(broken)
        assert secret[2:20] not in str(caught.value)
        assert b64decode(secret)[1:].hex() not in repr(caught.value)


def test_new_keys_are_different_each_time_and_have_a_valid_name() -> None:
    assert Signer.generate("a.example/x").skey != Signer.generate("a.example/x").skey
    assert code_of(lambda: Signer.generate("a name")) == "E-KEY-NAME"
