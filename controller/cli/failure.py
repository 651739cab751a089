"""Why a command could not do what it was asked, told in one sentence, with its code and what to do about it.

Exit statuses are the same everywhere: 0 all is as it should be, 1 it is not, 2 what was given cannot be used, 3 no
table answers, 64 the command line is wrong, 130 interrupted. A code of the catalogue may fix its own, as the outcomes
of a journal's verification do (``verify.Outcome``).
"""

import json
import sys
import textwrap
from shutil import get_terminal_size
from typing import Any

import click

from controller.certify.faults import CertifyFault
from controller.cli.language import colon, here, language
from controller.config_faults import ConfigError
from controller.faults import CodeUnknownError, advice
from drivers.ports import DeviceFault

DONE, WRONG, UNUSABLE, SILENT, USAGE, INTERRUPTED = 0, 1, 2, 3, 64, 130
"""The exit statuses of all commands."""

JSON = "tablectl.json"
"""Where the running command keeps whether ``--json`` was given."""


class Failure(Exception):
    """A command ends here. ``status`` is its exit status; without one, the catalogue's, or 2."""

    def __init__(self, code: str, detail: str, status: int | None = None) -> None:
        super().__init__(f"{code} {detail}")
        self.code = code
        self.detail = detail
        self.status = _status_of(code) if status is None else status


FAULTS = (CertifyFault, ConfigError, DeviceFault, OSError)
"""What the parts of the table raise that a person can do something about."""


def failure_of(fault: CertifyFault | ConfigError | DeviceFault | OSError) -> Failure:
    """The failure that a fault means for a command."""
    match fault:
        case CertifyFault():
            return Failure(fault.code, fault.detail)
        case ConfigError():
            lines = [one.line(language()) for one in fault.faults]
            return Failure("E-CONFIG", "\n  ".join([str(fault.path), *lines]))
        case DeviceFault():
            return Failure(fault.code, f"{fault.device}{colon()}{fault.detail}")
        case _:
            named = f"{fault.filename}{colon()}" if fault.filename else ""
            return Failure("E-FILE", f"{named}{fault.strerror or fault}", UNUSABLE)


def what_to_do(code: str) -> str:
    """The advice of the catalogue for a code, empty when it has none."""
    try:
        return advice(code).do(language())
    except CodeUnknownError:
        return ""


def title_of(code: str) -> str:
    """What a code means in one line; the code itself when the catalogue has no entry."""
    try:
        return advice(code).title(language())
    except CodeUnknownError:
        return code


def _status_of(code: str) -> int:
    try:
        status = advice(code).exit
    except CodeUnknownError:
        status = None
    return UNUSABLE if status is None else status


def report(failure: Failure) -> None:
    """Say it: on standard error for people, on standard output where JSON was asked for."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(JSON):
        told: dict[str, Any] = {"code": failure.code, "message": failure.detail, "advice": what_to_do(failure.code)}
        click.echo(json.dumps({"error": told}, ensure_ascii=False))
        return
    click.echo(f"{click.style(failure.code, fg='red', bold=True)} {failure.detail}", err=True)
    for line in advice_lines(failure.code):
        click.echo(line, err=True)


def advice_lines(code: str, indent: str = "  ") -> list[str]:
    """The advice for a code as lines below it, wrapped on a terminal."""
    text = what_to_do(code)
    if not text:
        return []
    arrow = f"{indent}→ "
    if not sys.stdout.isatty():
        return [arrow + text]
    width = max(40, get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=arrow, subsequent_indent=indent + "  ", break_long_words=False)


def usage_sentence(error: click.UsageError) -> str:
    """What is wrong with a command line, in the language to speak now."""
    match error:
        case click.NoSuchOption(option_name=name):
            return here(f"l'option {name} n'existe pas", f"there is no option {name}")
        case click.MissingParameter(param=parameter) if parameter is not None:
            name = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
            return here(f"il manque {name}", f"{name} is missing")
        case click.BadParameter(param=parameter) if parameter is not None:
            name = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
            return f"{name}{colon()}{error.message}"
        case _:
            return error.format_message()
