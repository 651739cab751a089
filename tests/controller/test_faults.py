"""The catalogue of codes: complete in both languages, and explained without a shrug."""

import re
import tomllib
from dataclasses import fields

import pytest

from controller.certify.verify import _OUTCOMES
from controller.faults import ADVICE, WIDTH, Advice, CodeUnknownError, advice, catalogue, explain, language_of

CODE = re.compile(r"E-[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")
TEXTS = [field.name for field in fields(Advice) if field.name.endswith(("_fr", "_en"))]


def test_catalogue_has_every_text_of_every_code_in_both_languages() -> None:
    empty = [
        f"{code}.{text}" for code, entry in catalogue().items() for text in TEXTS if not getattr(entry, text).strip()
    ]
    assert catalogue()
    assert empty == []


def test_catalogue_explains_no_code_twice() -> None:
    sections = [code for file in ADVICE.glob("*.toml") for code in tomllib.loads(file.read_text(encoding="utf-8"))]
    assert sorted(sections) == list(catalogue())


def test_catalogue_codes_are_capitals_and_hyphens_in_alphabetical_order() -> None:
    assert [code for code in catalogue() if not CODE.fullmatch(code)] == []
    assert list(catalogue()) == sorted(catalogue())


def test_catalogue_titles_are_one_line_without_a_full_stop() -> None:
    titles = [title for entry in catalogue().values() for title in (entry.title_fr, entry.title_en)]
    assert [title for title in titles if title.endswith(".") or len(title) > WIDTH] == []


def test_catalogue_texts_are_whole_sentences() -> None:
    texts = [
        text
        for entry in catalogue().values()
        for text in (entry.means_fr, entry.means_en, entry.do_fr, entry.do_en)
        if not re.fullmatch(r"[A-ZÀÉÊ«`0-9].*[.!?»)]", text)
    ]
    assert texts == []


def test_catalogue_titles_tell_two_codes_apart() -> None:
    for language in ("fr", "en"):
        titles = [entry.title(language) for entry in catalogue().values()]
        assert sorted(titles) == sorted(set(titles))


def test_catalogue_gives_the_status_with_which_a_verification_ends() -> None:
    given = {code: entry.exit for code, entry in catalogue().items() if code in _OUTCOMES}
    assert given == {code: int(outcome) for code, outcome in _OUTCOMES.items()}


@pytest.mark.parametrize("locale", ["fr_FR.UTF-8", "fr", "FR_be", "en_GB.UTF-8", "C", ""])
def test_explanation_of_every_code_has_its_three_parts_within_the_width(locale: str) -> None:
    for code, entry in catalogue().items():
        page = explain(code, locale)
        assert page.startswith(f"{code}  {entry.title(language_of(locale))}\n\n")
        assert len(page.split("\n\n")) == (3 if entry.exit is None else 4)
        assert max(map(len, page.splitlines()[1:])) <= WIDTH


def test_explanation_in_french_is_not_the_english_one() -> None:
    for code in catalogue():
        assert explain(code, "fr_FR.UTF-8") != explain(code, "en_US.UTF-8")


def test_language_of_a_locale_is_french_only_where_french_is_spoken() -> None:
    assert [language_of(locale) for locale in ("fr_FR.UTF-8", "fr.UTF-8", "fur_IT", "de_DE", "POSIX")] == [
        "fr",
        "fr",
        "en",
        "en",
        "en",
    ]


def test_code_written_carelessly_is_found_all_the_same() -> None:
    code = next(iter(catalogue()))
    assert advice(code.lower()).code == code
    assert advice(f" {code.removeprefix('E-')} ").code == code


def test_code_misspelt_is_refused_with_its_nearest_neighbours() -> None:
    with pytest.raises(CodeUnknownError, match=r"E-CODE-UNKNOWN E-CODE-UNKNOWM.*did you mean E-CODE-UNKNOWN") as caught:
        explain("E-CODE-UNKNOWM", "C")
    assert "E-CODE-UNKNOWN" in caught.value.nearest


def test_code_unlike_any_other_is_refused_with_where_to_look() -> None:
    with pytest.raises(CodeUnknownError, match=r"docs/codes\.md"):
        advice("zzzzzzzzzz")
