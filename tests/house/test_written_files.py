"""Every file that a person wrote: finished, and at home on any machine."""

import re

import pytest

from tests.house.house_rules import INDEX_HOST, MACHINE_PATH, UNFINISHED, lines_matching
from tests.house.source_tree import name, written_files


@pytest.mark.parametrize(
    "pattern", [UNFINISHED, MACHINE_PATH, INDEX_HOST], ids=["unfinished work", "one machine's path", "a package index"]
)
def test_written_files_hold_no_trace_of(pattern: re.Pattern[str]) -> None:
    found = [
        f"{name(path)}:{line}"
        for path in written_files()
        for line in lines_matching(pattern, path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_written_files_end_with_one_newline() -> None:
    texts = {name(path): path.read_text(encoding="utf-8") for path in written_files() if path.suffix != ".json"}
    assert [path for path, text in texts.items() if text and not re.search(r"[^\n]\n\Z", text)] == []
