"""``tablectl epoch``: a new journal after a loss is begun by two persons who both signed, and never else."""

import json
import shutil
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from controller.certify.faults import CertifyFault
from controller.certify.journal import Journal
from controller.certify.keys import create_key, load_key
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, sign_note
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.config import load
from controller.epoch import EPOCH_HEADER, refuse_unproclaimed
from controller.history import replay
from drivers.clock import ManualClock
from games.roulette.game import Roulette
from tests.controller.certify.workshop import stakes
from tests.controller.cli.conftest import Run

MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)
SITE = "casino.example.simulation"
OLD, NEW = f"{SITE}/table/t07/1", f"{SITE}/table/t07/2"
WHO = ("D1", "director"), ("D2", "director"), ("T1", "technician"), ("T2", "technician"), ("C1", "cashier")


@dataclass
class House:
    """A table whose old journal is there, its new configuration, and the persons' keys."""

    folder: Path
    run: Run

    @property
    def config(self) -> Path:
        return self.folder / "table.toml"

    @property
    def statement(self) -> Path:
        return self.folder / "statement.note"

    @property
    def journal(self) -> Path:
        return self.folder / "new" / "journal.sqlite"

    @property
    def old(self) -> Path:
        return self.folder / "old" / "journal.sqlite"

    def begins(self, *words: object) -> Any:
        reason = ("--reason", "La carte est illisible.")
        return self.run("epoch", "begin", "--config", self.config, *reason, "--out", self.statement, *words)

    def signs(self, badge: str, *words: object) -> Any:
        return self.run("epoch", "sign", self.statement, "--key", self.folder / f"{badge}.key", "--yes", *words)

    def accepts(self, *words: object) -> Any:
        return self.run("epoch", "accept", self.statement, "--config", self.config, "--yes", *words)

    def change(self, edit: Callable[[dict[str, Any]], object]) -> None:
        document = load(self.config).model_dump(mode="json", exclude_none=True, exclude_unset=True)
        edit(document)
        self.config.write_text(tomli_w.dumps(document), encoding="utf-8")

    def first_entry(self) -> bytes:
        with closing(Reader(self.journal)) as reader:
            assert reader.size == 1
            return reader.leaf(0)

    @property
    def fact(self) -> dict[str, Any]:
        document = json.loads(self.first_entry())
        assert document["type"] == "fr.table.epoch.begun.v1"
        data: dict[str, Any] = document["data"]
        return data


@pytest.fixture
def house(own_evening: Path, launcher: Path, tmp_path: Path, run: Run) -> House:
    """After an evening of the first epoch: its journal is kept in ``old``, a new key is made."""
    old = Path(shutil.copytree(own_evening, tmp_path / "old"))
    new = tmp_path / "new"
    new.mkdir()
    persons = []
    for badge, role in WHO:
        signer = create_key(tmp_path / f"{badge}.key", f"{SITE}/personne/{badge}")
        persons.append({"badge": badge, "role": role, "vkey": signer.verifier.vkey})
    config = load(
        launcher,
        {
            "table": {"simulation": True, "epoch": 2},
            "journal": {"file": str(new / "journal.sqlite"), "key": str(new / "table.key"), "volatile": True},
            "panel": {"device": "none"},
            "person": persons,
        },
    )
    document = config.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    (tmp_path / "table.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    create_key(new / "table.key", NEW)
    assert (old / "table.vkey").exists()
    return House(tmp_path, run)


def code_of(result: Any) -> str:
    """The code of a command that could not do it."""
    assert result.exit_code != 0, result.output
    return str(next(word for word in result.stderr.split() if word.startswith("E-")))


# ── The whole way ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_epoch_begins_with_the_statement_that_two_persons_signed(house: House) -> None:
    assert house.begins("--old-journal", house.old).exit_code == 0
    for badge in ("T1", "D1"):
        assert house.signs(badge).exit_code == 0
    assert house.accepts().exit_code == 0
    fact = house.fact
    with closing(Reader(house.old)) as old:
        assert (fact["old_origin"], fact["old_size"], fact["known_by"]) == (OLD, old.size, "signature")
        assert fact["old_root"] == old.root(old.size).hex()
    assert fact["persons"] == [{"badge": "D1", "role": "director"}, {"badge": "T1", "role": "technician"}]
    assert fact["reason"] == "La carte est illisible."
    assert fact["note"] == house.statement.read_text(encoding="utf-8")
    vkey = LogKeys.parse((house.journal.parent / "table.vkey").read_text())
    assert vkey.origin == NEW
    assert verify(house.journal, vkey, processes=1).ok


def test_new_epoch_is_decided_again_by_a_replay(house: House) -> None:
    house.begins()
    for badge in ("D1", "T1"):
        house.signs(badge)
    house.accepts()
    state, replayed = replay(Roulette(load(house.config).rules), [house.first_entry()])
    assert replayed.entries == 1
    assert state == Roulette(load(house.config).rules).initial()


def test_statement_names_the_totals_of_an_old_journal_that_verifies(house: House) -> None:
    house.begins("--old-journal", house.old)
    note = house.statement.read_text(encoding="utf-8")
    assert note.startswith(f"{EPOCH_HEADER}\nnouvelle {NEW}\n")
    assert "\nseances 1\ncoups 5\n" in note
    assert "totaux inconnus" not in note


def test_statement_names_no_totals_of_an_old_journal_that_was_altered(house: House) -> None:
    content = bytearray(house.old.read_bytes())
    at = content.index(b'"bet":')
    content[at + 10] ^= 1
    house.old.write_bytes(content)
    assert house.begins("--old-journal", house.old).exit_code == 0
    assert "\ntotaux inconnus\n" in house.statement.read_text(encoding="utf-8")


def test_statement_without_anything_of_the_old_epoch_says_that_it_is_unknown(house: House) -> None:
    house.begins()
    assert "\ndernier inconnu\ntotaux inconnus\n" in house.statement.read_text(encoding="utf-8")


def cosigned(old: Path) -> str:
    with closing(Reader(old)) as reader:
        note = reader.checkpoint()
    text = note.rpartition("\n\n")[0] + "\n"
    return f"{note}{MIRROR.sign(text, 1_800_000_000).line}\n"


def test_statement_takes_the_last_checkpoint_from_the_acknowledgement_of_the_mirror(house: House) -> None:
    house.change(lambda document: document.update(mirror={"vkey": MIRROR.verifier.vkey}))
    ack = house.folder / "ack.note"
    ack.write_text(cosigned(house.old), encoding="utf-8")
    with closing(Reader(house.old)) as reader:
        size = reader.size
    assert house.begins("--old-ack", ack, "--old-vkey", house.old.parent / "table.vkey").exit_code == 0
    assert f"\ndernier contresigné {size} " in house.statement.read_text(encoding="utf-8")


def test_statement_with_a_mirror_counts_only_what_it_cosigned(house: House) -> None:
    house.change(lambda document: document.update(mirror={"vkey": MIRROR.verifier.vkey}))
    house.begins("--old-journal", house.old)
    assert "\ndernier inconnu\n" in house.statement.read_text(encoding="utf-8")


def test_acknowledgement_that_the_mirror_did_not_sign_is_refused(house: House) -> None:
    house.change(lambda document: document.update(mirror={"vkey": MIRROR.verifier.vkey}))
    ack = house.folder / "ack.note"
    ack.write_text(cosigned(house.old).rpartition("— ")[0], encoding="utf-8")
    result = house.begins("--old-ack", ack, "--old-vkey", house.old.parent / "table.vkey")
    assert code_of(result) == "E-NOTE-UNSIGNED"
    assert not house.statement.exists()


# ── Who must sign ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "badges",
    [[], ["D1"], ["T1"], ["D1", "D2"], ["T1", "T2"], ["D1", "C1"], ["C1", "T1"], ["D1", "D2", "T1"]],
    ids="+".join,
)
def test_epoch_without_a_director_and_a_technician_is_not_begun(house: House, badges: list[str]) -> None:
    house.begins()
    for badge in badges:
        house.signs(badge)
    assert code_of(house.accepts()) == "E-EPOCH-SIGNATURES"
    assert not house.journal.exists()


@pytest.mark.parametrize("badge", ["D1", "T1"])
def test_person_who_is_revoked_begins_no_epoch(house: House, badge: str) -> None:
    house.begins()
    for one in ("D1", "T1"):
        house.signs(one)
    house.change(lambda document: next(p for p in document["person"] if p["badge"] == badge).update(revoked=True))
    assert code_of(house.accepts()) == "E-EPOCH-SIGNATURES"
    assert not house.journal.exists()


def test_person_who_is_not_enrolled_begins_no_epoch(house: House) -> None:
    house.begins()
    for badge in ("D1", "T1"):
        house.signs(badge)
    house.change(lambda document: document["person"].pop(0))
    assert code_of(house.accepts()) == "E-EPOCH-SIGNATURES"


def test_person_with_two_badges_and_one_key_is_one_person(house: House) -> None:
    director = load_key(house.folder / "D1.key")
    double = Signer(f"{SITE}/personne/T1", b64decode(director.skey.split("+", 4)[4])[1:])
    key = house.folder / "T1.key"
    key.unlink()
    key.touch(0o600)
    key.write_text(f"{double.skey}\n", encoding="ascii")
    house.change(
        lambda document: next(p for p in document["person"] if p["badge"] == "T1").update(vkey=double.verifier.vkey)
    )
    begun = house.begins()
    assert (code_of(begun), "badge D1" in begun.stderr) == ("E-CONFIG", True)
    assert not house.statement.exists()


def test_person_who_signs_twice_is_refused(house: House) -> None:
    house.begins()
    house.signs("D1")
    before = house.statement.read_bytes()
    assert code_of(house.signs("D1")) == "E-EPOCH-SIGNED-TWICE"
    assert house.statement.read_bytes() == before


def test_statement_that_was_changed_after_it_was_signed_is_refused(house: House) -> None:
    house.begins()
    for badge in ("D1", "T1"):
        house.signs(badge)
    note = house.statement.read_text(encoding="utf-8")
    house.statement.write_text(note.replace("illisible", "volée"), encoding="utf-8")
    assert code_of(house.accepts()) == "E-EPOCH-STATEMENT"
    assert not house.journal.exists()


def test_statement_that_says_more_than_this_program_reads_is_refused(house: House) -> None:
    house.begins()
    text = house.statement.read_text(encoding="utf-8").rpartition("\n\n")[0] + "\n"
    new = load_key(house.journal.parent / "table.key")
    house.statement.write_text(sign_note(f"{text}clause secrete\n", new), encoding="utf-8")
    assert code_of(house.signs("D1")) == "E-EPOCH-STATEMENT"


def test_statement_for_another_key_is_refused(house: House) -> None:
    house.begins()
    for badge in ("D1", "T1"):
        house.signs(badge)
    key = house.journal.parent / "table.key"
    key.unlink()
    create_key(key, NEW)
    assert code_of(house.accepts()) == "E-EPOCH-STATEMENT"
    assert not house.journal.exists()


def test_epoch_that_is_the_first_needs_no_statement_and_gets_none(house: House) -> None:
    house.change(lambda document: document["table"].update(epoch=1))
    assert house.begins().exit_code == 64


def test_epoch_that_skips_one_is_refused(house: House) -> None:
    house.change(lambda document: document["table"].update(epoch=3))
    key = house.journal.parent / "table.key"
    key.unlink()
    create_key(key, f"{SITE}/table/t07/3")
    result = house.begins("--old-journal", house.old)
    assert code_of(result) == "E-EPOCH-STATEMENT"


@pytest.mark.parametrize("reason", ["", "x", "two\nlines", "y" * 201, " padded "])
def test_statement_needs_a_reason_of_one_line(house: House, reason: str) -> None:
    result = house.run("epoch", "begin", "--config", house.config, "--reason", reason, "--out", house.statement)
    assert code_of(result) == "E-EPOCH-STATEMENT"
    assert not house.statement.exists()


# ── Failures in pairs, and the daemon's question ──────────────────────────────────────────────────────────────────────


def signed(house: House) -> None:
    house.begins()
    for badge in ("D1", "T1"):
        house.signs(badge)


def test_epoch_whose_first_entry_a_power_cut_prevented_is_begun_by_the_same_command(house: House) -> None:
    signed(house)
    Journal.create(house.journal, load_key(house.journal.parent / "table.key"), allow_volatile=True)
    assert house.accepts().exit_code == 0
    assert house.fact["old_origin"] == OLD


def test_epoch_that_was_begun_is_not_begun_again(house: House) -> None:
    signed(house)
    house.accepts()
    before = house.first_entry()
    assert code_of(house.accepts()) == "E-JOURNAL-EXISTS"
    assert house.first_entry() == before


def refusal(origin: str, leaf: bytes | None) -> str:
    with pytest.raises(CertifyFault) as caught:
        refuse_unproclaimed(origin, leaf)
    return caught.value.code


def test_daemon_takes_a_first_epoch_and_a_proclaimed_one(house: House) -> None:
    signed(house)
    house.accepts()
    refuse_unproclaimed(NEW, house.first_entry())
    refuse_unproclaimed(OLD, None)


def test_daemon_does_not_start_an_epoch_that_began_in_silence(house: House, tmp_path: Path) -> None:
    signer = load_key(house.journal.parent / "table.key")
    Journal.create(house.journal, signer, allow_volatile=True)
    assert refusal(NEW, None) == "E-EPOCH-UNPROCLAIMED"
    boot = "0123456789abcdef"
    with closing(
        Journal.open(house.journal, signer, ManualClock(), boot, lambda: "free", allow_volatile=True)
    ) as journal:
        journal.append(stakes(1))
    assert refusal(NEW, house.first_entry()) == "E-EPOCH-UNPROCLAIMED"


def test_daemon_does_not_start_an_epoch_whose_first_entry_says_what_nobody_signed(house: House) -> None:
    signed(house)
    house.accepts()
    good = house.first_entry()
    for old, new in (
        (b'"old_size":0', b'"old_size":1'),
        (b"illisible", b"illisiblE"),
        (b'"badge":"D1"', b'"badge":"D2"'),
        (b'"role":"technician"', b'"role":"director"'),
        (b'"persons":[{"badge":"D1","role":"director"},', b'"persons":['),
    ):
        forged = good.replace(old, new)
        assert forged != good, old
        assert refusal(NEW, forged) == "E-EPOCH-UNPROCLAIMED"
    assert refusal(f"{SITE}/table/t08/2", good) == "E-EPOCH-UNPROCLAIMED"
