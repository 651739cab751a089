"""French typography: what must not begin a line."""

import pytest

from controller.french import typeset


@pytest.mark.parametrize(
    ("typed", "set_"),
    [
        ("Usage : tablectl", "Usage\u00a0: tablectl"),
        ("il manque ceci ; voir « cela » ?", "il manque ceci\u00a0; voir «\u00a0cela\u00a0»\u00a0?"),
        ("à 12:30, un :mot", "à 12:30, un :mot"),
        ("déjà\u00a0: fait", "déjà\u00a0: fait"),
        ("", ""),
    ],
)
def test_french_sentence_keeps_its_signs_with_the_word_before(typed: str, set_: str) -> None:
    assert typeset(typed) == set_
    assert typeset(set_) == set_
