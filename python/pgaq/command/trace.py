"""pgaq trace: every latch, mutex and wait of one session for a while."""

from __future__ import annotations

import sys
import time
from typing import List, Optional

import typer

from pgaq import db, text
from pgaq.command import output
from pgaq.command.common import asking, chosen, command, one_of
from pgaq.subjects import TRACE_OBJECTS, TRACE_ROWS

OPERATIONS = ("lock", "pin", "latch", "mutex", "wait", "publish", "wake-up")


def add_to(app: typer.Typer) -> None:
    command(app, "trace")(trace)


def trace(
    pid: int = typer.Argument(..., metavar="PID", help="Process id of the session, as pgaq top shows it.", show_default=False),
    seconds: float = typer.Option(5, "--seconds", "-s", min=0, help="How long to trace; Ctrl-C ends it early."),
    operations: Optional[List[str]] = typer.Option(
        None,
        "--operation",
        metavar="NAME",
        autocompletion=one_of(OPERATIONS),
        help=f"Keep rows of {', '.join(OPERATIONS[:-1])} or {OPERATIONS[-1]} only; repeatable.",
        show_default="all",
    ),
    rows: int = typer.Option(20, "--rows", min=0, help="So many of the latest rows."),
    histogram: bool = typer.Option(False, "--histogram", help="Also the distribution of the times."),
) -> None:
    """Trace a session: what it got, held and waited for."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.trace_start(%s, %s)", [pid, operations or None])
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            sys.stderr.write("\n")
        finally:
            db.execute(conn, "SELECT aq.trace_stop(%s)", [pid])
        summary = db.value(conn, "SELECT aq.trace_summary(%s)", [pid])
        objects = output.ask(conn, TRACE_OBJECTS, pid=pid)
        latest = output.ask(conn, TRACE_ROWS, pid=pid, limit=rows)
        shapes = db.rows(conn, "SELECT * FROM aq.trace_histogram(%s)", [pid]) if histogram and chosen().json else []
        lines = [line for (line,) in conn.execute("SELECT * FROM aq.trace_quantize(%s)", [pid])] if histogram and not chosen().json else []
    if chosen().json:
        output.write_json(
            {"pid": pid, "summary": summary, "objects": objects, "rows": latest, **({"histogram": shapes} if histogram else {})}
        )
        return
    text.say(f"Gets and releases: {summary.strip('= ')}")
    for subject, found in ((TRACE_OBJECTS, objects), (TRACE_ROWS, latest)):
        if found or subject is TRACE_OBJECTS:
            text.say()
            output.show(subject, found, title=True)
    if lines:
        for line in ["", *lines]:
            text.say(line.rstrip())
