"""``tablectl mirror`` and ``tablectl journal diff``, as they are typed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controller.certify.keys import load_cosigner_key
from controller.certify.leaf import leaf_hash
from controller.certify.note import KeyType
from controller.cli import main
from controller.mirror.app import EXIT_CONFIG, serve
from controller.mirror.options import load
from controller.mirror.store import Held, Kept
from tests.controller.certify.workshop import SIGNER, build, open_journal, stakes
from tests.controller.mirror.casino import CENTRE, ORIGIN, Centre, Opener, Table

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def type_command(*words: object, locale: str = "en_GB.UTF-8") -> Result:
        environment = {"LC_ALL": locale, "LC_MESSAGES": None, "LANG": None, "NO_COLOR": None}
        return CliRunner().invoke(main, [str(word) for word in words], env=environment)

    return type_command


@pytest.fixture
def table() -> Table:
    return Table(entries=300)


def configured(folder: Path, store: str, *tables: Table) -> Path:
    """A configuration with its key and policy."""
    (folder / "mirror.key").write_text(f"{CENTRE.skey}\n")
    (folder / "mirror.key").chmod(0o600)
    logs = "".join(f"log {verifier.vkey}\n" for table in tables for verifier in table.keys.verifiers)
    (folder / "policy").write_text(f"{logs}quorum none\n")
    options = ('mode = "mirror"', 'name = "mirror"', 'key = "mirror.key"', 'policy = "policy"', f'store = "{store}"')
    mqtt = ("[mqtt]", 'host = "127.0.0.1"', "port = 1")
    path = folder / "mirror.toml"
    path.write_text("\n".join(["[service]", *options, "volatile = true", *mqtt, ""]))
    return path


def shown(result: Result) -> Any:
    return json.loads(result.stdout)


# ── status ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_status_of_a_mirror_that_holds_everything_is_well(
    run: Run, opening: Opener, tmp_path: Path, table: Table
) -> None:
    Centre(opening(), table).hear(*table.events(), table.checkpoint())
    opening.close()
    config = configured(tmp_path, opening.url, table)
    result = run("mirror", "status", "--config", config, "--json")
    assert result.exit_code == 0
    (row,) = shown(result)
    assert (row["origin"], row["size"], row["cosigned"], row["missing"]) == (ORIGIN, 300, 300, 0)
    assert (row["fork"], row["rolled_back_to"], row["in_policy"]) == (None, None, True)
    assert row["heard"].startswith("2026-")
    plain = run("mirror", "status", "--config", config)
    assert ORIGIN in plain.stdout


@pytest.mark.parametrize(
    ("held", "code"),
    [
        (Held(origin=ORIGIN, size=5, announced=5, latest=5, cosigned=5, fork="two"), "E-MIRROR-FORK"),
        (Held(origin=ORIGIN, size=5, announced=5, latest=3, cosigned=5), "E-MIRROR-ROLLED-BACK"),
        (Held(origin=ORIGIN, size=5, announced=9, latest=9, cosigned=5, claimed=9), "E-MIRROR-RESTORED"),
    ],
)
def test_mirror_status_with_trouble_says_which_and_ends_with_one(
    run: Run, opening: Opener, tmp_path: Path, table: Table, held: Held, code: str
) -> None:
    opening().keep([Kept(held=held)])
    opening.close()
    config = configured(tmp_path, opening.url, table)
    for locale, said in (("en_GB.UTF-8", "cosigned"), ("fr_FR.UTF-8", "acquittées")):
        result = run("mirror", "status", "--config", config, locale=locale)
        assert result.exit_code == 1
        assert code in result.stdout
        assert said in result.stdout


def test_mirror_status_of_a_table_that_was_never_heard_and_of_one_in_no_policy_shows_both(
    run: Run, opening: Opener, tmp_path: Path, table: Table
) -> None:
    other = Table("casino.example/table/t08/1", entries=3)
    Centre(opening(), other).hear(*other.events(), other.checkpoint())
    opening.close()
    result = run("mirror", "status", "--json", "--config", configured(tmp_path, opening.url, table))
    assert [(row["origin"], row["size"], row["in_policy"]) for row in shown(result)] == [
        (ORIGIN, 0, True),
        (other.origin, 3, False),
    ]


# ── forks and keys ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mirror_forks_without_any_says_so_and_with_one_writes_the_evidence_once(
    run: Run, opening: Opener, tmp_path: Path, table: Table
) -> None:
    centre = Centre(opening(), table)
    centre.hear(*table.events(), table.checkpoint())
    config = configured(tmp_path, opening.url, table)
    assert run("mirror", "forks", "--config", config).exit_code == 0
    clone = table.branch(290, 5)
    centre.hear(*clone.events(290))
    centre.hear(clone.checkpoint())
    opening.close()
    result = run("mirror", "forks", "--config", config, "--json", "--out", tmp_path / "out")
    assert result.exit_code == 1
    contents = {Path(path).read_bytes() for path in shown(result)["written"]}
    assert {*clone.all[290:], table.all[290], centre.said[0].payload, clone.note().encode()} <= contents
    again = run("mirror", "forks", "--config", config, "--out", tmp_path / "out")
    assert again.exit_code == 2
    assert "E-OUT-EXISTS" in again.stderr


def test_mirror_key_is_made_once_and_can_cosign(run: Run, tmp_path: Path) -> None:
    result = run("mirror", "key", "casino.example/mirror", "--out", tmp_path / "key", "--json")
    signer = load_cosigner_key(tmp_path / "key")
    assert shown(result)["vkey"] == signer.verifier.vkey
    assert signer.key_type is KeyType.COSIGNATURE
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert run("mirror", "key", "casino.example/mirror", "--out", tmp_path / "key").exit_code == 2
    assert run("mirror", "key", "two words", "--out", tmp_path / "other").exit_code == 2


@pytest.mark.parametrize("broken", ["key", "policy", "origin"])
def test_mirror_run_with_what_a_person_must_mend_ends_at_once(
    tmp_path: Path, opening: Opener, table: Table, broken: str
) -> None:
    config = configured(tmp_path, opening.url, table)
    if broken == "key":
        (tmp_path / "mirror.key").write_text(f"{SIGNER.skey}\n")
    elif broken == "policy":
        (tmp_path / "policy").write_text("nonsense\n")
    else:
        stranger = Table("casino.example/personne/b1/1").keys.verifiers[0]
        (tmp_path / "policy").write_text(f"log {stranger.vkey}\nquorum none\n")
    assert serve(load(config), config) == EXIT_CONFIG


# ── journal diff ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of twelve entries, with its public key beside it."""
    (tmp_path / "journal").mkdir()
    path = build(tmp_path / "journal" / "journal.sqlite", [5, 4, 3])
    (path.parent / "table.vkey").write_text(f"{SIGNER.verifier.vkey}\n")
    return path


def mirrored(journal: Path) -> Table:
    """The journal as a table that publishes."""
    table = Table(signers=[SIGNER])
    opened = open_journal(journal)
    table.all = list(opened.leaves(0, opened.size))
    opened.close()
    table.hashes = [leaf_hash(leaf) for leaf in table.all]
    return table


@pytest.mark.parametrize(
    ("held", "cosigned", "cut", "relation", "entry", "status"),
    [
        (12, 12, 12, "same", None, 0),
        (7, 7, 12, "ahead", 7, 0),
        (12, 5, 7, "older", 7, 0),
        (12, 12, 7, "rolled-back", 7, 2),
    ],
)
def test_journal_diff_of_two_states_of_one_history_says_which_is_ahead(
    run: Run,
    opening: Opener,
    journal: Path,
    tmp_path: Path,
    held: int,
    cosigned: int,
    cut: int,
    relation: str,
    entry: int | None,
    status: int,
) -> None:
    table = mirrored(journal)
    Centre(opening(), table).hear(table.checkpoint(cosigned), *table.events(0, held))
    opening.close()
    if cut < 12:
        (tmp_path / "cut").mkdir()
        shorter = build(tmp_path / "cut" / "journal.sqlite", [5])
        opened = open_journal(shorter)
        opened.append(stakes(cut - 5, 5))
        opened.close()
        (shorter.parent / "table.vkey").write_text(f"{SIGNER.verifier.vkey}\n")
        journal = shorter
    result = run("journal", "diff", journal, "--mirror", opening.url, "--json")
    assert (shown(result)["relation"], shown(result)["entry"]) == (relation, entry)
    assert result.exit_code == status
    assert ORIGIN in run("journal", "diff", journal, "--mirror", opening.url, locale="fr_FR.UTF-8").stdout


def test_journal_diff_of_two_histories_names_the_first_entry_that_differs(
    run: Run, opening: Opener, journal: Path
) -> None:
    other = mirrored(journal).branch(8, 3)
    Centre(opening(), other).hear(*other.events(), other.checkpoint())
    opening.close()
    result = run("journal", "diff", journal, "--mirror", opening.url, "--json")
    assert result.exit_code == 2
    assert (shown(result)["relation"], shown(result)["entry"]) == ("forked", 8)
    plain = run("journal", "diff", journal, "--mirror", opening.url)
    assert (plain.exit_code, "E-JOURNAL-FORKED" in plain.stdout) == (2, True)


def test_journal_diff_with_nothing_to_compare_or_nothing_to_read_says_so(
    run: Run, opening: Opener, journal: Path, tmp_path: Path
) -> None:
    opening()
    opening.close()
    nothing = run("journal", "diff", journal, "--mirror", opening.url)
    assert (nothing.exit_code, "E-MIRROR-NOTHING" in nothing.stderr) == (4, True)
    unreadable = run("journal", "diff", journal, "--mirror", tmp_path / "nowhere")
    assert (unreadable.exit_code, "E-MIRROR-STORE" in unreadable.stderr) == (5, True)
