"""Documents: what they tell a reader to type exists, and what exists can be found in them."""

import re
import shlex

import click
import pytest

from tests.house.source_tree import ROOT, name, written_files

DOCUMENTS = [path for path in written_files() if path.suffix == ".md"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands(text: str) -> list[list[str]]:
    """The words of every line in the ``sh`` blocks of a document, comments and prompts left out."""
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def is_command(words: list[str]) -> bool:
    """Whether ``tablectl`` followed by these words reaches a command, with options that it has."""
    from controller.cli import main

    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        if below is None:
            return False
        command, words = below, words[1:]
    options = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
    return {word.split("=")[0] for word in words if word.startswith("--")} <= {*options, "--help", "--version"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_make_targets_that_a_document_names_exist(document: object) -> None:
    text = (ROOT / str(document)).read_text(encoding="utf-8")
    named = {word for words in commands(text) if words[0] == "make" for word in words[1:] if word.isalpha()}
    assert named <= TARGETS
    assert set(re.findall(r"`make ([a-z]+)", text)) <= TARGETS


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_tablectl_commands_that_a_document_names_exist(document: object) -> None:
    text = (ROOT / str(document)).read_text(encoding="utf-8")
    typed = [words[1:] for words in commands(text) if words[0].endswith("tablectl")]
    assert [" ".join(words) for words in typed if not is_command(words)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_files_that_a_document_links_to_exist(document: object) -> None:
    path = ROOT / str(document)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (path.parent / link).exists()] == []


def test_readme_names_every_make_target_that_help_explains() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    helped = re.findall(r"'make ([a-z]+) ", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [target for target in helped if f"make {target}" not in text] == []
