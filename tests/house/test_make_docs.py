"""The documents made from the code: complete, in the order of the text, and noticed when they grow old."""

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import pytest

from controller.faults import catalogue
from docs import make_docs
from games.money import Cents
from games.signals import Direction


def page(pages: make_docs.Pages) -> str:
    (text,) = pages.values()
    return text


def test_compliance_of_a_function_a_class_and_a_module_is_collected(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "test_a.py").write_text(
        dedent(
            """
            import pytest

            @pytest.mark.law("55-13")
            @pytest.mark.law("67-15")
            async def test_stake_over_the_maximum_is_refused(): ...

            @pytest.mark.law("55-13")
            class TestLimits:
                def test_cheval_up_to_forty_times_is_taken(self): ...

            def test_wheel_that_no_law_mentions_turns(): ...
            """
        ),
        encoding="utf-8",
    )
    (tmp_path / "test_b.py").write_text(
        'import pytest\npytestmark = [pytest.mark.law("67-15")]\ndef test_seance_opens_once(): ...\n', encoding="utf-8"
    )
    assert make_docs.proofs(tmp_path) == {
        "55-13": [
            ("games/test_a.py", "test_cheval_up_to_forty_times_is_taken"),
            ("games/test_a.py", "test_stake_over_the_maximum_is_refused"),
        ],
        "67-15": [
            ("games/test_a.py", "test_stake_over_the_maximum_is_refused"),
            ("test_b.py", "test_seance_opens_once"),
        ],
    }


def test_compliance_lists_articles_in_the_order_of_the_law() -> None:
    unordered = ["55-13", "67-15", "55-2", "51", "55-12", "56-3-1", "56-3"]
    assert sorted(unordered, key=make_docs.article_order) == ["51", "55-2", "55-12", "55-13", "56-3", "56-3-1", "67-15"]


def test_compliance_page_reads_a_test_as_a_sentence() -> None:
    assert make_docs.sentence("test_stake_after_no_more_bets_is_refused") == "stake after no more bets is refused"


def test_compliance_of_an_article_that_nobody_described_stops_with_its_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(make_docs, "proofs", lambda tests: {"99-9": [("test_a.py", "test_a_b_c")]})
    with pytest.raises(SystemExit, match="99-9"):
        make_docs.compliance()


def test_compliance_page_shows_no_article_without_a_test() -> None:
    text = page(make_docs.compliance())
    assert re.findall(r"## Article (.+)\n\n.+\n\n- no test", text) == []


def test_codes_page_explains_every_code_in_both_languages() -> None:
    text = page(make_docs.codes())
    for code, entry in catalogue().items():
        assert f"\n## {code}\n" in text
        assert entry.do_fr in text
        assert entry.do_en in text


def test_facts_page_names_every_kind_once_with_its_fields() -> None:
    text = page(make_docs.facts())
    assert make_docs.fact_types()
    for fact in make_docs.fact_types():
        assert text.count(f"\n## {fact.KIND}\n") == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (int, "int"),
        (Cents, "Cents"),
        (Direction, "Direction"),
        (tuple[str, ...], "list of str"),
        (tuple[Cents, ...], "list of Cents"),
        (tuple[int, Cents], "tuple[int, Cents]"),
        (dict[int, Cents], "dict[int, Cents]"),
        (int | None, "int or nothing"),
    ],
)
def test_type_of_a_field_is_named_as_a_reader_would(kind: Any, name: str) -> None:
    assert make_docs.type_name(kind) == name


def test_help_of_every_visible_command_is_found_at_any_depth() -> None:
    leaf = click.Command("verify", help="Check the journal.")
    secret = click.Command("secret", hidden=True)
    tree = click.Group("tablectl", commands=[click.Group("journal", commands=[leaf, secret])])
    found = dict(make_docs._help_of(tree, "tablectl", None))
    assert list(found) == ["tablectl", "tablectl journal", "tablectl journal verify"]
    assert "Check the journal." in found["tablectl journal verify"]


@pytest.fixture
def one_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project whose only page is ``docs/schemas/bet.json``."""
    folder = tmp_path / "docs" / "schemas"
    folder.parent.mkdir()
    made: dict[str, Callable[[], make_docs.Pages]] = {"schemas": lambda: {folder / "bet.json": "{}\n"}}
    monkeypatch.setattr(make_docs, "ROOT", tmp_path)
    monkeypatch.setattr(make_docs, "PAGES", made)
    monkeypatch.setattr(make_docs, "OWNED_FOLDERS", {"schemas": folder})
    monkeypatch.setattr(make_docs, "SAME_EVERYWHERE", {})
    return folder / "bet.json"


def test_check_of_a_missing_page_fails_and_writes_nothing(one_page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_docs.main(["--check"]) == 1
    assert "docs/schemas/bet.json is out of date: run `make docs`" in capsys.readouterr().out
    assert not one_page.exists()


def test_check_after_making_the_pages_passes(one_page: Path) -> None:
    assert make_docs.main([]) == 0
    assert one_page.read_text(encoding="utf-8") == "{}\n"
    assert make_docs.main(["--check"]) == 0


def test_check_of_an_edited_page_fails_until_it_is_made_again(one_page: Path) -> None:
    make_docs.main([])
    one_page.write_text("{ }\n", encoding="utf-8")
    assert make_docs.main(["--check"]) == 1
    assert make_docs.main(["schemas"]) == 0
    assert make_docs.main(["--check"]) == 0


def test_page_that_nothing_makes_any_more_is_noticed_and_removed(one_page: Path) -> None:
    make_docs.main([])
    stray = one_page.with_name("old.json")
    stray.write_text("{}\n", encoding="utf-8")
    assert make_docs.main(["--check"]) == 1
    make_docs.main([])
    assert not stray.exists()
    assert one_page.exists()


def test_facts_page_explains_what_the_fields_are_made_of() -> None:
    text = page(make_docs.facts())
    assert "\n## Direction\n" in text
    assert "One of: `clockwise`, `counterclockwise`." in text
    assert "\n## Person\n" in text
    assert "| role | Role |" in text
