"""pgaq report: the reports of the extension as text, HTML or JSON."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Optional

import typer

from pgaq import db, text
from pgaq.command import output
from pgaq.command.common import MISSING, USAGE, Failure, asking, chosen, command, duration, group, span
from pgaq.report import page
from pgaq.subjects import SNAPSHOTS

app = group("Where the time went: reports between snapshots, from samples, of an interval.")
HTML = typer.Option(None, "--html", metavar="FILE", help="Write an HTML page into this file (- standard output).", show_default=False)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="report")


def _write(conn: db.Connection, model: Any, html: Path | None) -> None:
    """The model in the wanted form."""
    if html is not None:
        drawn = page(model)
        if str(html) == "-":
            sys.stdout.write(drawn)
            return
        try:
            html.write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise Failure(f"{html}: {error.strerror}", code=USAGE) from None
        output.say(f"Wrote {html}.", file=str(html), bytes=len(drawn.encode()))
    elif chosen().json:
        output.write_json(model)
    else:
        for (line,) in conn.execute("SELECT * FROM aq.report_text(%s::jsonb)", [text.to_json(model)]):
            text.say(line.rstrip())


def _latest(conn: db.Connection, number: int) -> list[int]:
    """The latest snapshots of this database between which the server was not restarted, the oldest first."""
    rows = output.ask(conn, SNAPSHOTS, limit=number)
    if len(rows) < number:
        raise Failure(
            f"there {'is' if len(rows) == 1 else 'are'} {len(rows) or 'no'} snapshot{'' if len(rows) == 1 else 's'}; the report takes {number}",
            "pgaq snapshot takes one: before and after the load",
            MISSING,
        )
    if rows[0]["startup_time"] != rows[1]["startup_time"]:
        raise Failure("the server was started between the last two snapshots", "Take another snapshot: pgaq snapshot", MISSING)
    return [row["snap_id"] for row in reversed(rows)]


@command(app, "awr")
def awr(
    first: Optional[int] = typer.Argument(None, metavar="[FIRST]", help="Number of a snapshot.", show_default="the last but one"),
    last: Optional[int] = typer.Argument(None, metavar="[LAST]", help="Number of a later one.", show_default="the last"),
    html: Optional[Path] = HTML,
) -> None:
    """The report between two snapshots."""
    if first is not None and last is None:
        raise Failure("one snapshot is given, the report takes two", "pgaq snapshot list shows them", USAGE)
    with asking() as conn:
        pair = [first, last] if first is not None else _latest(conn, 2)
        _write(conn, db.value(conn, "SELECT aq.report_awr(%s, %s)", pair), html)


@command(app, "diff")
def diff(
    numbers: Optional[list[int]] = typer.Argument(
        None, metavar="[FIRST LAST FIRST LAST]", help="Two intervals between snapshots.", show_default="between the last three"
    ),
    html: Optional[Path] = HTML,
) -> None:
    """Two intervals compared."""
    if numbers and len(numbers) != 4:
        raise Failure(f"{len(numbers)} snapshots are given, the comparison takes four", "pgaq report diff FIRST LAST FIRST LAST", USAGE)
    with asking() as conn:
        if numbers:
            four = list(numbers)
        else:
            one, two, three = _latest(conn, 3)
            four = [one, two, two, three]
        _write(conn, db.value(conn, "SELECT aq.report_awr_diff(%s, %s, %s, %s)", four), html)


@command(app, "ash")
def ash(
    last: str = duration("15min", "--last", help="Length of the interval, which ends now."),
    begin: Optional[str] = typer.Option(
        None, "--from", metavar="TIME", help="Beginning, such as 2026-11-24 14:00, or yesterday.", show_default="by --last"
    ),
    end: Optional[str] = typer.Option(None, "--to", metavar="TIME", help="End.", show_default="now"),
    html: Optional[Path] = HTML,
) -> None:
    """Activity of sessions, from samples."""
    if not span(last):
        raise Failure(f"--last {last} is no interval", "Give one such as 5min", USAGE)
    given = {"begin": begin, "end": end, "last": span(last)}
    with asking() as conn:
        interval = "COALESCE(%(begin)s::timestamptz, COALESCE(%(end)s::timestamptz, clock_timestamp()) - %(last)s) AS b, COALESCE(%(end)s::timestamptz, clock_timestamp()) AS e"
        if db.value(conn, f"SELECT b >= e FROM (SELECT {interval}) i", given):
            raise Failure("the report ends before it begins", "Check --from and --to", USAGE)
        _write(conn, db.value(conn, f"SELECT aq.report_ash(b, e) FROM (SELECT {interval}) i", given), html)


@command(app, "rtpctx")
def rtpctx(
    seconds: float = typer.Option(10, "--seconds", "-s", min=0.1, help="Length of the interval."), html: Optional[Path] = HTML
) -> None:
    """Where the time of the next seconds goes; Ctrl-C ends them early."""
    with asking() as conn:
        mark = db.value(conn, "SELECT aq.rtpctx_start()::text")
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            sys.stderr.write("\n")
        _write(conn, db.value(conn, "SELECT aq.rtpctx_report(%s::jsonb)", [mark]), html)
