"""Commands that speak two languages: click, with our own help page, our own errors, and what every command has.

Every command has ``--json``, ``--lang`` and ``--help``, documents its exit statuses, and returns its own. Modules are
imported when their command is used and not before (``Lazy``): a technician's terminal may be a slow line to a small
board.
"""

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from controller.cli.failure import FAULTS, INTERRUPTED, JSON, USAGE, Failure, failure_of, report, usage_sentence
from controller.cli.language import CHOSEN, Phrase, here

PIPE_CLOSED = 141
"""The exit status of a program whose reader went away, as if by SIGPIPE."""

Exits = Mapping[int, Phrase]
"""What each exit status of a command means."""


class Option(click.Option):
    """An option explained in both languages."""

    def __init__(self, declarations: Sequence[str] | None = None, *, phrase: Phrase, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.phrase = phrase

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """How it is spelled, and what it is for."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        return record[0], f"{self.phrase}{here(' [obligatoire]', ' [required]') if self.required else ''}"


class Argument(click.Argument):
    """An argument explained in both languages."""

    def __init__(self, declarations: Sequence[str], *, phrase: Phrase, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.phrase = phrase


def whole_number(least: int = 0) -> Callable[[click.Context, click.Parameter, Any], int | None]:
    """The callback of an option that is a whole number from ``least`` on."""

    def read(ctx: click.Context, param: click.Parameter, value: Any) -> int | None:
        if value is None or (isinstance(value, int) and value >= least):
            return value
        text = str(value)
        if text.isascii() and text.isdecimal() and int(text) >= least:
            return int(text)
        wrong = here(
            f"« {text} » doit être un nombre entier, {least} ou plus",
            f"{text!r} must be a whole number, {least} or more",
        )
        raise click.BadParameter(wrong, ctx, param)

    return read


Decorate = Callable[[Callable[..., Any]], Callable[..., Any]]


def option(*declarations: str, phrase: Phrase, **attributes: Any) -> Decorate:
    """Give a command an option, explained in both languages."""
    return click.option(*declarations, cls=Option, phrase=phrase, **attributes)


def argument(*declarations: str, phrase: Phrase, **attributes: Any) -> Decorate:
    """Give a command an argument, explained in both languages."""
    return click.argument(*declarations, cls=Argument, phrase=phrase, **attributes)


def path_option(*declarations: str, phrase: Phrase, **attributes: Any) -> Decorate:
    """Give a command an option that names a file or a folder; whether it is there is for the command to say."""
    return option(*declarations, phrase=phrase, type=click.Path(path_type=Path), **attributes)


def _remember(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        if value:
            ctx.meta[key] = value
        return value

    return keep


def _common() -> list[click.Parameter]:
    kept: dict[str, Any] = {"expose_value": False, "is_eager": True}
    as_json = Phrase("Répond en JSON, pour un programme.", "Answer in JSON, for a program.")
    speak = Phrase("Langue ; sinon celle de la session.", "Language; otherwise that of the locale.")
    return [
        Option(["--json"], is_flag=True, phrase=as_json, callback=_remember(JSON), **kept),
        _language_option(speak, **kept),
    ]


def _language_option(speak: Phrase, **kept: Any) -> Option:
    return Option(["--lang"], type=click.Choice(["fr", "en"]), phrase=speak, callback=_remember(CHOSEN), **kept)


class _Page:
    """The help page of commands and groups, in the language to speak now."""

    phrase: Phrase
    exits: Exits
    params: list[click.Parameter]
    collect_usage_pieces: Callable[[click.Context], list[str]]
    get_help_option: Callable[[click.Context], click.Option | None]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces, prefix=here("Usage : ", "Usage: "))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(str(self.phrase))
        arguments = [param for param in self.params if isinstance(param, Argument)]
        names = [(str(one.metavar or one.human_readable_name), str(one.phrase)) for one in arguments]
        options = [param.get_help_record(ctx) for param in self.params if isinstance(param, Option)]
        helping = ("--help", here("Montre cette aide.", "Show this help."))
        _section(formatter, here("Arguments", "Arguments"), names)
        _section(formatter, here("Options", "Options"), [*filter(None, options), helping])
        _section(formatter, here("Commandes", "Commands"), self.listed())
        exits = [(str(status), str(phrase)) for status, phrase in sorted(self.exits.items())]
        _section(formatter, here("Statut de fin", "Exit status"), exits)

    def listed(self) -> list[tuple[str, str]]:
        """The commands below, with one line each."""
        return []


def _section(formatter: click.HelpFormatter, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title + here("\u202f", "")):  # French sets a thin space before its colon
            formatter.write_dl(rows)


class Command(_Page, click.Command):
    """One command. Its function returns the exit status, None for 0; ``phrase`` begins with its one-line summary."""

    def __init__(self, *arguments: Any, phrase: Phrase, exits: Exits | None = None, **attributes: Any) -> None:
        attributes |= {"params": [*attributes.get("params", ()), *_common()], "help": phrase.en}
        super().__init__(*arguments, **attributes)
        self.phrase = phrase
        self.exits = exits or {}

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; what a person can mend is told here, as one sentence and a status."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return PIPE_CLOSED
        except FAULTS as fault:
            failure = failure_of(fault)
        except Failure as known:
            failure = known
        report(failure)
        return failure.status


class Group(_Page, click.Group):
    """Commands under one word."""

    command_class = Command

    def __init__(self, *arguments: Any, phrase: Phrase, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes | {"help": phrase.en, "invoke_without_command": True})
        self.phrase = phrase
        self.exits: Exits = {}
        speak = Phrase("Langue ; sinon celle de la session.", "Language; otherwise that of the locale.")
        self.params.append(_language_option(speak, expose_value=False, is_eager=True))

    def listed(self) -> list[tuple[str, str]]:
        """See ``_Page``."""
        return [
            (name, summary(command.phrase)) for name, command in self.commands.items() if isinstance(command, _Page)
        ]

    def invoke(self, ctx: click.Context) -> Any:
        """Without a command below, show what there is."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command below, or say which one may have been meant."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None:
            near = get_close_matches(name, self.list_commands(ctx), n=2) or self.list_commands(ctx)
            known = ", ".join(near)
            ctx.fail(
                here(
                    f"« {name} » n'est pas une commande ; voir : {known}",
                    f"{name!r} is not a command; there are: {known}",
                )
            )
        return name, command, args[1:]


def summary(phrase: Phrase) -> str:
    """The first sentence of an explanation."""
    return str(phrase).split("\n", 1)[0].removesuffix(".")


class Lazy(Group):
    """A group whose commands are imported when they are used: name → (module, one line)."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, Phrase]], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without importing anything."""
        return list(self.lazy)

    def listed(self) -> list[tuple[str, str]]:
        """The names with one line each, without importing anything."""
        return [(name, str(phrase)) for name, (_, phrase) in self.lazy.items()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; in its module it has the name ``command``."""
        if cmd_name not in self.lazy:
            return None
        command = import_module(self.lazy[cmd_name][0]).command
        assert isinstance(command, click.Command), f"{cmd_name} names a command"
        return command

    def main(self, *arguments: Any, **extra: Any) -> Any:
        """Run a command line and end the process with its status."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal without our letters must not stop us
        if os.environ.get("NO_COLOR"):
            extra.setdefault("color", False)
        sys.exit(self._status(*arguments, **extra))

    def _status(self, *arguments: Any, **extra: Any) -> int:
        try:
            returned = super().main(*arguments, **extra | {"standalone_mode": False})
            sys.stdout.flush()
        except click.UsageError as error:
            if error.ctx is not None:
                with error.ctx.scope(cleanup=False):
                    _report_usage(error, error.ctx)
            return USAGE
        except click.Abort:
            return INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more is said at the very end
            return PIPE_CLOSED
        return returned if isinstance(returned, int) else 0


def _report_usage(error: click.UsageError, ctx: click.Context) -> None:
    report(Failure("E-USAGE", usage_sentence(error), USAGE))
    see = here(f"Voir : {ctx.command_path} --help", f"See: {ctx.command_path} --help")
    click.echo(f"  {see}", err=True)
