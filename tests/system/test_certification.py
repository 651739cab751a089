"""The commands of a director at a real table: a séance is certified, and two directors change who may sign."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from controller.certify.keys import create_key, person_key_name
from controller.certify.note import Signer
from tests.system.rig import Rig


async def tablectl(*words: object, status: int = 0) -> dict[str, Any]:
    """Run a command with ``--json``; it must end with ``status``."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "controller.cli", *map(str, words), "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    assert process.returncode == status, told.decode()
    document: dict[str, Any] = json.loads(told)
    return document


def key_file(folder: Path, signer: Signer) -> Path:
    """A person's key, as it lies on his own device."""
    file = folder / f"{signer.name.rpartition('/')[2]}.key"
    file.touch(mode=0o600)
    file.write_text(f"{signer.skey}\n", encoding="ascii")
    return file


def listed(rig: Rig, signer: Signer, role: str) -> None:
    """One more person on the founding list."""
    person = (
        f'\n[[person]]\nbadge = "{signer.name.rpartition("/")[2]}"\nrole = "{role}"\nvkey = "{signer.verifier.vkey}"\n'
    )
    with rig.stage.config_file.open("a", encoding="utf-8") as file:
        file.write(person)


@pytest.mark.law("67-15")
async def test_director_reads_signs_and_certifies_a_seance_with_the_commands(rig_on_both: Rig, tmp_path: Path) -> None:
    rig = rig_on_both
    config, director = rig.stage.config_file, key_file(tmp_path, rig.stage.staff["director"])
    await rig.start()
    await rig.open()
    assert (await rig.office.order("director", "seance.close"))["ok"]
    await rig.until(lambda: bool(rig.office.ear.documents(rig.topics.statement)))
    (told,) = rig.office.ear.documents(rig.topics.statement)
    note, report = tmp_path / "seance.note", tmp_path / "report.txt"
    note.write_text(told["note"], encoding="utf-8")
    report.write_text(told["report"], encoding="utf-8")
    line = (await tablectl("statement", "sign", note, "--key", director, "--report", report))["line"]
    cashier = key_file(tmp_path, rig.stage.staff["cashier"])
    await tablectl(
        "statement", "certify", note, "--config", config, "--key", cashier, status=1
    )  # he signs as a cashier
    answer = await tablectl("statement", "certify", note, "--config", config, "--key", cashier, "--line", line)
    assert answer["kind"] == "fr.seance.certified.v1"
    again = await tablectl("statement", "certify", note, "--config", config, "--key", director, status=1)
    assert again["error"]["code"] == "E-STATEMENT-NOT-AWAITED"
    shown = await tablectl("statement", "show", rig.journal, "--vkey", rig.stage.vkey_file)
    assert (shown["certified"], shown["entry"], shown["persons"]) == (True, answer["index"], ["director"])
    assert shown["report"] == told["report"]
    note.write_text(shown["note"], encoding="utf-8")
    person = rig.stage.staff["director"].verifier.vkey
    words = ("statement", "check", note, "--vkey", rig.stage.vkey_file, "--person", person, "--report", report)
    assert (await tablectl(*words))["not_checked"] == []


async def test_two_directors_enrol_and_revoke_with_the_commands_and_the_list_survives_a_restart(
    rig_on_both: Rig, tmp_path: Path
) -> None:
    rig = rig_on_both
    config, site = rig.stage.config_file, rig.stage.config.site
    second = create_key(tmp_path / "D2.key", person_key_name(site, "D2"))
    listed(rig, second, "director")
    third = create_key(tmp_path / "D3.key", person_key_name(site, "D3"))
    one = key_file(tmp_path, rig.stage.staff["director"])
    keys = ("--key", one, "--key", tmp_path / "D2.key")
    running = await rig.start()
    enrol = ("key", "enrol", "--config", config, "--badge", "D3", "--role", "director", "--vkey", third.verifier.vkey)
    alone = await tablectl(*enrol, "--key", one, "--key", one, status=1)
    assert alone["error"]["code"] == "E-ORDER-SIGNER"
    enrolled = await tablectl(*enrol, *keys)
    assert enrolled["kind"] == "fr.table.person.enrolled.v1"
    revoke = ("key", "revoke", "--config", config, "--badge", "D2", "--reason", "badge perdu")
    revoked = await tablectl(*revoke, "--key", one, "--key", tmp_path / "D3.key")
    assert revoked["data"]["second"] == {"badge": "D3", "role": "director"}
    running.send(15)
    assert await running.ends() == 0
    await rig.start()
    lost = await tablectl(*enrol, *keys, status=1)
    assert lost["error"]["code"] == "E-ORDER-REVOKED", "the second key is revoked, after the restart too"
    persons = (await tablectl("key", "persons", rig.journal, "--config", config))["persons"]
    known = {person["badge"]: (person["revoked"], person["entry"]) for person in persons}
    assert known["D2"] == (True, revoked["index"])
    assert known["D3"] == (False, enrolled["index"])
    assert known["director"] == (False, None)
