"""French typography: some signs never stand at the beginning of a line, so the space before them does not break."""

import re

NO_BREAK = "\u00a0"

_BEFORE = re.compile(r" (?=[:;?!»](?:\s|$))")
_AFTER = re.compile(r"(?<=«) ")


def typeset(text: str) -> str:
    """A French sentence whose spaces before ``: ; ? ! »`` and after ``«`` do not break."""
    return _AFTER.sub(NO_BREAK, _BEFORE.sub(NO_BREAK, text))
