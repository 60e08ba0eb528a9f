"""The command: its parts, how it begins and how it ends."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any, Callable

try:
    import click
    import typer

    import rich  # noqa: F401
except ImportError as error:  # pragma: no cover - says what to do
    raise SystemExit(
        "pgaq needs typer and rich: run tools/setup, or apt-get install python3-typer python3-rich, or pip install typer rich"
    ) from error

from pgaq import db
from pgaq.command import (
    bench,
    browse,
    console,
    dead,
    doctor,
    metrics,
    notify,
    queue,
    receive,
    report,
    schedule,
    send,
    snapshot,
    status,
    subscriber,
    top,
    trace,
)
from pgaq.command.common import FAILURE, INTERRUPTED, USAGE, VERSION, Failure, Group, Interrupted, failure
from pgaq.command.output import write_failure


class Root(Group):
    """The root: the lab is loaded when it is asked for, because it takes longer than a command should."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*super().list_commands(context), "lab"]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name != "lab":
            return super().get_command(context, name)
        try:
            from pgaq.lab.command import app as lab  # noqa: PLC0415
        except ImportError as error:
            loose = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
            return click.Command("lab", callback=_no_lab(error), help="The experiments of the lab.", context_settings=loose)
        found = typer.main.get_command(lab)
        found.name = "lab"
        return found


def _no_lab(error: ImportError) -> Callable[[], None]:
    def callback() -> None:
        raise Failure(f"the lab cannot be loaded: {error}", "Run ./lab in a clone of the project: it installs what is missing")

    return callback


app = typer.Typer(
    cls=Root,
    name="pgaq",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Queues of pgaq: see them, use them, find out what is slow.",
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 no connection, 4 no extension, 5 permission denied, 6 does not exist, 7 no message.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"pgaq {VERSION}")
        raise typer.Exit()


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version of the command."),
) -> None:
    pass


for part in (
    status,
    top,
    queue,
    subscriber,
    schedule,
    send,
    receive,
    notify,
    browse,
    console,
    dead,
    report,
    snapshot,
    trace,
    doctor,
    metrics,
    bench,
):
    part.add_to(app)


def run(arguments: list[str] | None = None, application: typer.Typer = app, name: str = "pgaq") -> int:
    """The exit code; every error is one line on standard error."""
    try:
        code = _run(typer.main.get_command(application), arguments, name)
        sys.stdout.flush()
        return code
    except OSError as error:
        if error.filename is None:
            # standard output; what is left in its buffer goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # a reader of the output that has left has what it wanted
        if not isinstance(error, BrokenPipeError):
            write_failure(Failure(f"{error.filename or 'standard output'}: {error.strerror}"), name, _asks_for_json(arguments))
        return FAILURE


def _asks_for_json(arguments: list[str] | None) -> bool:
    return "--json" in (sys.argv[1:] if arguments is None else arguments)


def _run(entry: click.Command, arguments: list[str] | None, name: str) -> int:
    # typer parses through click's own entry: with standalone_mode off, errors come back as exceptions
    as_json = _asks_for_json(arguments)
    try:
        result: Any = entry.main(args=arguments, prog_name=name, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, Interrupted, KeyboardInterrupt):
        sys.stderr.write(f"\n{name}: interrupted\n")
        return INTERRUPTED
    except click.ClickException as error:
        where = error.ctx.command_path if getattr(error, "ctx", None) else name
        message = re.sub(r"(?<![.?]) Did you mean", ". Did you mean", " ".join(error.format_message().split()))
        write_failure(Failure(message, f"See {where} --help", USAGE), where, as_json)
        return USAGE
    except Failure as error:
        write_failure(error, name, as_json)
        return error.code
    except db.Error as error:
        found = failure(error)
        write_failure(found, name, as_json)
        return found.code


def _leave(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    signal.signal(signal.SIGTERM, _leave)
    sys.exit(run())
