"""pgaq snapshot: take one, list them."""

from __future__ import annotations

import typer

from pgaq import db
from pgaq.command import output
from pgaq.command.common import asking, command, group
from pgaq.subjects import SNAPSHOTS

app = group("Snapshots of all counters, for pgaq report; without a command, take one.", no_args_is_help=False, invoke_without_command=True)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="snapshot")


@app.callback()
def default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        take()


@command(app, "take")
def take() -> None:
    """Take a snapshot."""
    with asking() as conn:
        number = db.value(conn, "SELECT aq.take_snapshot()")
    output.say(f"Took snapshot {number}.", snapshot=number)


@command(app, "list")
def list_snapshots(number: int = typer.Option(20, "--max", "-n", min=1, help="Maximum number, the latest first.")) -> None:
    """The snapshots of this database."""
    with asking() as conn:
        rows = output.ask(conn, SNAPSHOTS, limit=number)
    output.show(SNAPSHOTS, rows)
