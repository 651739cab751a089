"""Codes: every one that the product gives out is explained, and every one that is explained is given out."""

from controller.faults import catalogue
from tests.house.house_rules import CODE, codes
from tests.house.source_tree import name, product_files, tree_of, written_files


def given_out() -> set[str]:
    return {code for path in product_files() for code in codes(tree_of(path))}


def test_code_that_the_product_gives_out_is_in_the_catalogue() -> None:
    assert sorted(given_out() - set(catalogue())) == []


def test_code_in_the_catalogue_is_given_out_by_the_product() -> None:
    assert sorted(set(catalogue()) - given_out()) == []


def test_code_named_in_a_document_or_a_unit_exists() -> None:
    readers = [path for path in written_files() if path.suffix in {".md", ".toml", ".service", ".conf"}]
    named = {(name(path), code) for path in readers for code in CODE.findall(path.read_text(encoding="utf-8"))}
    assert sorted(where for where in named if where[1] not in catalogue()) == []
