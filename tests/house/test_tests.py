"""The tests themselves: their names are sentences, they never sleep, and none is left out."""

import ast
import re
from collections.abc import Callable

from tests.house import house_rules as rule
from tests.house.source_tree import files_of_tests, name, tree_of

ARTICLE = re.compile(r"\d+(-\d+)*( bis| ter| quater)?")


def findings(rule_of_the_house: Callable[[ast.Module], list[str]]) -> list[str]:
    return [f"{name(path)}:{found}" for path in files_of_tests() for found in rule_of_the_house(tree_of(path))]


def test_names_of_tests_are_sentences_of_subject_situation_and_outcome() -> None:
    assert findings(rule.nameless_tests) == []


def test_tests_wait_for_what_happens_and_never_sleep() -> None:
    assert findings(rule.sleeps) == []


def test_marks_of_tests_name_an_article_or_nothing() -> None:
    assert findings(rule.foreign_marks) == []


def test_articles_of_the_law_marks_are_numbered_as_in_the_text() -> None:
    assert [article for article in findings(rule.articles) if not ARTICLE.fullmatch(article.split(":", 1)[1])] == []


def test_file_with_tests_has_a_name_that_pytest_collects() -> None:
    strays = [
        name(path)
        for path in files_of_tests()
        if not path.name.startswith("test_")
        and any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in tree_of(path).body)
    ]
    assert strays == []
