"""``tablectl statement``, and ``tablectl key persons``, ``enrol`` and ``revoke`` as far as they need no table."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from controller.certify.journal import Journal
from controller.certify.keys import create_key, person_key_name
from controller.certify.leaf import Record, canonical
from controller.certify.note import Signer, open_note, parse_note, sign_note
from controller.cli import ordering
from controller.codec import to_plain
from controller.registers.statement import read_statement
from controller.rehearsal.simulate import JOURNAL, VKEY
from drivers.clock import ManualClock
from games.persons import PersonEnrolled, PersonRevoked
from games.rules import Fact
from games.signals import Person, Role
from games.statement import SeanceCertified
from tests.controller.cli.conftest import Run, Serve, Status
from tests.controller.cli.forgery import flip_byte

SITE = "casino.example.simulation"
SEANCE = "2026-11-30-1"
DIRECTOR = Person(badge="D1", role=Role.DIRECTOR)
SECOND = Person(badge="D2", role=Role.DIRECTOR)


@pytest.fixture
def director(tmp_path: Path) -> Path:
    """A director's key."""
    file = tmp_path / "D1.key"
    create_key(file, person_key_name(SITE, "D1"))
    return file


@pytest.fixture
def note(run: Run, evening: Path, tmp_path: Path) -> Path:
    """The statement of the evening, signed by the table."""
    text = run("statement", "show", evening, "--note").stdout
    file = tmp_path / "seance.note"
    file.write_text(sign_note(text, table(evening)), encoding="utf-8")
    return file


def table(folder: Path) -> Signer:
    """The table's key of a simulation with this seed: nothing keeps it, so it is drawn again."""
    from controller.entropy import SeededEntropy
    from controller.rehearsal.simulate import staff_keys

    entropy = SeededEntropy(7)
    staff_keys(SITE, entropy)
    signer = Signer(f"{SITE}/table/t07/1", bytes.fromhex(entropy.hex(32)))
    assert f"{signer.verifier.vkey}\n" == (folder / VKEY).read_text(encoding="ascii")
    return signer


def append(folder: Path, *facts: Fact) -> None:
    """Certify facts at the end of a journal."""
    journal = Journal.open(
        folder / JOURNAL, table(folder), ManualClock(), "f" * 16, lambda: "free", allow_volatile=True
    )
    journal.append([Record(fact.KIND, canonical(to_plain(fact)), None) for fact in facts])
    journal.close()


def certify(run: Run, folder: Path, text: str = "") -> str:
    """Let a director certify the evening; ``text`` stands for what he would have signed."""
    text = text or run("statement", "show", folder, "--note").stdout
    whole = sign_note(text, table(folder), Signer(person_key_name(SITE, "D1"), b"1" * 32))
    append(folder, SeanceCertified(seance=SEANCE, note=whole, persons=(DIRECTOR,)))
    return whole


# ── show ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_report_of_a_seance_that_nobody_certified_says_so_before_it(run: Run, evening: Path) -> None:
    shown = run("statement", "show", evening)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(
        "TO BE CERTIFIED: nobody has signed it.\n\nÉTAT DE SÉANCE table-controller/etat/v1\n"
    )
    assert run("statement", "show", evening, SEANCE, "--lang", "fr").stdout.startswith("À CERTIFIER")


def test_report_alone_has_the_digest_that_the_text_to_be_signed_binds(run: Run, evening: Path) -> None:
    report = run("statement", "show", evening, "--report").stdout
    head = read_statement(run("statement", "show", evening, "--note").stdout)
    assert hashlib.sha256(report.encode()).hexdigest() == head.report_sha256
    document = json.loads(run("statement", "show", evening, "--json").stdout)
    assert (document["report"], document["certified"], document["persons"]) == (report, False, [])
    assert report.splitlines()[-2].endswith(document["fingerprint"])


def test_report_of_a_certified_seance_is_a_duplicata_and_names_who_signed(run: Run, own_evening: Path) -> None:
    whole = certify(run, own_evening)
    shown = run("statement", "show", own_evening)
    assert shown.stdout.startswith("DUPLICATA. Certified by director D1, entry ")
    assert run("statement", "show", own_evening, "--note").stdout == whole


def test_certified_note_that_is_not_of_this_journal_is_told_and_not_shown(run: Run, own_evening: Path) -> None:
    text = run("statement", "show", own_evening, "--note").stdout
    certify(run, own_evening, text.replace("coups 5", "coups 6"))
    shown = run("statement", "show", own_evening)
    assert shown.exit_code == 1
    assert "E-STATEMENT-UNTRUE" in shown.stderr
    assert shown.stdout == ""


def test_entry_of_the_seance_that_was_altered_is_found_and_nothing_shown(run: Run, own_evening: Path) -> None:
    kept = json.loads(run("statement", "show", own_evening, "--json").stdout)
    for index in (kept["size"] // 2, kept["size"] - 1):
        flip_byte(own_evening / JOURNAL, index, b"2026", b"2027")
        shown = run("statement", "show", own_evening)
        assert shown.exit_code == 1
        assert "E-SEANCE-ENTRIES" in shown.stderr or "E-JOURNAL-ALTERED" in shown.stderr
        assert shown.stdout == ""


def test_certification_that_was_altered_is_found_and_nothing_shown(run: Run, own_evening: Path) -> None:
    certify(run, own_evening)
    entry = json.loads(run("statement", "show", own_evening, "--json").stdout)["entry"]
    flip_byte(own_evening / JOURNAL, entry, b'"badge":"D1"', b'"badge":"D7"')
    shown = run("statement", "show", own_evening)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "E-JOURNAL-ALTERED" in shown.stderr


def test_seance_that_is_not_in_the_journal_is_told(run: Run, evening: Path) -> None:
    shown = run("statement", "show", evening, "2026-11-29-1")
    assert (shown.exit_code, "E-SEANCE-UNKNOWN" in shown.stderr) == (2, True)


# ── sign and check ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_line_signed_offline_makes_the_note_complete(run: Run, note: Path, director: Path, evening: Path) -> None:
    line = run("statement", "sign", note, "--key", director).stdout
    whole = note.with_name("whole.note")
    whole.write_text(note.read_text(encoding="utf-8") + line, encoding="utf-8")
    vkey = json.loads(run("key", "show", director, "--json").stdout)["vkey"]
    checked = run("statement", "check", whole, "--vkey", evening / VKEY, "--person", vkey)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("The signatures are right.")
    open_note(whole.read_text(encoding="utf-8"), [table(evening).verifier])
    unknown = json.loads(run("statement", "check", whole, "--vkey", evening / VKEY, "--json").stdout)
    assert unknown["not_checked"] == [person_key_name(SITE, "D1")]


def test_text_without_a_signature_may_be_signed_too(run: Run, note: Path, director: Path) -> None:
    bare = note.with_name("bare.txt")
    bare.write_text(parse_note(note.read_text(encoding="utf-8")).text, encoding="utf-8")
    signed = [run("statement", "sign", file, "--key", director).stdout for file in (note, bare)]
    assert signed[0] == signed[1]


def test_report_that_is_not_that_of_the_note_is_not_signed(run: Run, note: Path, director: Path, evening: Path) -> None:
    report = note.with_name("report.txt")
    report.write_text(run("statement", "show", evening, "--report").stdout, encoding="utf-8")
    assert run("statement", "sign", note, "--key", director, "--report", report).exit_code == 0
    report.write_text(report.read_text(encoding="utf-8").replace("5,00", "6,00", 1), encoding="utf-8")
    refused = run("statement", "sign", note, "--key", director, "--report", report)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "E-STATEMENT-UNTRUE" in refused.stderr


@pytest.mark.parametrize("content", ["", "An ordinary letter.\n", "table-controller/seance/v1\nx\nseance 1\n"])
def test_text_that_is_no_statement_is_not_signed(run: Run, director: Path, tmp_path: Path, content: str) -> None:
    other = tmp_path / "other.txt"
    other.write_text(content, encoding="utf-8")
    refused = run("statement", "sign", other, "--key", director)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "E-STATEMENT-MALFORMED" in refused.stderr


def test_note_whose_text_was_altered_fails_the_check(run: Run, note: Path, evening: Path) -> None:
    note.write_text(note.read_text(encoding="utf-8").replace("coups 5", "coups 6"), encoding="utf-8")
    checked = run("statement", "check", note, "--vkey", evening / VKEY)
    assert (checked.exit_code, "E-NOTE-SIGNATURE" in checked.stderr) == (1, True)


def test_note_that_a_person_has_not_signed_or_of_another_table_fails_the_check(
    run: Run, note: Path, evening: Path, director: Path, tmp_path: Path
) -> None:
    vkey = json.loads(run("key", "show", director, "--json").stdout)["vkey"]
    assert run("statement", "check", note, "--vkey", evening / VKEY, "--person", vkey).exit_code == 3
    other = Signer(f"{SITE}/table/t08/1", b"8" * 32)
    assert run("statement", "check", note, "--vkey", other.verifier.vkey).exit_code == 3
    same_name = Signer(f"{SITE}/table/t07/1", b"8" * 32)
    assert run("statement", "check", note, "--vkey", same_name.verifier.vkey).exit_code == 3


def test_check_by_a_policy_is_the_same_as_by_the_key(run: Run, note: Path, evening: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_text(f"log {table(evening).verifier.vkey}\nquorum none\n", encoding="utf-8")
    by_policy = run("statement", "check", note, "--policy", policy)
    assert by_policy.exit_code == 0
    assert by_policy.stdout == run("statement", "check", note, "--vkey", evening / VKEY).stdout
    for words in ([], ["--policy", policy, "--vkey", evening / VKEY]):
        assert run("statement", "check", note, *words).exit_code == 64


# ── Persons ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def person(badge: str, role: str = "croupier") -> dict[str, Any]:
    return {
        "badge": badge,
        "role": role,
        "vkey": Signer(person_key_name(SITE, badge), badge.encode() * 16).verifier.vkey,
    }


def test_persons_are_those_of_the_configuration_and_those_of_the_entries(
    run: Run, own_evening: Path, launcher: Path
) -> None:
    nobody = run("key", "persons", own_evening)
    assert nobody.stdout == "Nobody may sign an order.\n"
    config = own_evening / "table.toml"
    listed = "".join(
        f'\n[[person]]\nbadge = "{one["badge"]}"\nrole = "{one["role"]}"\nvkey = "{one["vkey"]}"\n'
        for one in (person("D1", "director"), person("C1"))
    )
    config.write_text(launcher.read_text(encoding="utf-8").replace("simulation = false", "") + listed, encoding="utf-8")
    both: dict[str, Person] = {"by": DIRECTOR, "second": SECOND}
    append(
        own_evening,
        PersonEnrolled(badge="C2", role=Role.CROUPIER, vkey=person("C2")["vkey"], **both),
        PersonRevoked(badge="C1", role=Role.CROUPIER, vkey=person("C1")["vkey"], reason="départ", **both),
    )
    shown = [line.split() for line in run("key", "persons", own_evening).stdout.splitlines()]
    assert [(line[0], line[1], line[2]) for line in shown] == [
        ("C1", "croupier", "revoked"),
        ("C2", "croupier", "may"),
        ("D1", "director", "may"),
    ]
    assert shown[2][-2:] == ["founding", "list"]


def test_order_of_one_key_alone_is_not_sent(run: Run, launcher: Path, director: Path) -> None:
    words = ("key", "revoke", "--config", launcher, "--badge", "C1", "--reason", "départ", "--key", director)
    refused = run(*words)
    assert (refused.exit_code, "E-SECOND-DIRECTOR" in refused.stderr) == (2, True)


def test_order_that_no_table_answers_is_told(
    run: Run, launcher: Path, director: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_key(tmp_path / "D2.key", person_key_name(SITE, "D2"))
    monkeypatch.setattr(ordering, "WITHIN_S", 0)
    words = ("key", "revoke", "--config", launcher, "--badge", "C1", "--reason", "départ")
    told = run(*words, "--key", director, "--key", tmp_path / "D2.key", "--lang", "fr")
    assert (told.exit_code, "E-ORDER-UNANSWERED" in told.stderr, "rien envoyé" in told.stderr) == (3, True, True)


# ── status ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_names_the_seances_that_wait_to_be_certified(
    run: Run, serve: Serve, launcher_statuses: list[Status]
) -> None:
    waiting = run("status", "--socket", serve(launcher_statuses[-1]))
    assert ["to", "be", "certified", SEANCE] in [line.split() for line in waiting.stdout.splitlines()]
    before = run("status", "--socket", serve(launcher_statuses[0]))
    assert "to be certified" not in before.stdout
