"""pgaq schedule: list, show, times, create, alter, run, start, stop, drop."""

from __future__ import annotations

from datetime import datetime
from typing import Any, List, Optional

import typer

from pgaq import db
from pgaq.command import common, output
from pgaq.command.common import (
    MISSING,
    QUEUE,
    USAGE,
    Failure,
    asking,
    command,
    duration,
    group,
    names_of_queues,
    names_of_schedules,
    one_of,
    span,
)
from pgaq.subjects import SCHEDULE, SCHEDULE_TIMES, SCHEDULES

app = group("Schedules: messages that are enqueued again and again.")
NAME = typer.Argument(..., metavar="NAME", help="Name of the schedule.", autocompletion=names_of_schedules, show_default=False)
CRON = typer.Option(
    None,
    "--cron",
    metavar="EXPRESSION",
    help="Minute, hour, day of the month, month and day of the week, or @hourly, @daily, ...",
    show_default=False,
)
EVERY = typer.Option(
    None, "--every", metavar="INTERVAL", help="An interval of SQL, such as '10 min', '1 day' or '1 month'.", show_default=False
)
ZONE = typer.Option(
    None, "--zone", metavar="ZONE", help="Time zone of the expression, and of an interval's days and months.", show_default=False
)
START = typer.Option(None, "--start", metavar="TIME", help="No time before it; an interval is counted from it.", show_default=False)
UNTIL = typer.Option(None, "--until", metavar="TIME", help="No time after it; infinity: no limit.", show_default=False)
PRIORITY = typer.Option(None, "--priority", "-p", help="Of the messages: 0 to 9, smaller goes first.", show_default=False)
DELAY = duration(None, "--delay", help="Time until a message is ready.")
EXPIRES = duration(None, "--expires", help="Time after which a message is a dead letter.")
CORRELATION = typer.Option(None, "--correlation", help="A text by which consumers find the messages.", show_default=False)
PROPERTIES = typer.Option(None, "--properties", metavar="JSON", help="Free properties.", show_default=False)
RECIPIENTS = typer.Option(
    None, "--to", metavar="NAME", help="Recipient of a topic, instead of the subscribers; repeatable.", show_default=False
)
COMMENT = typer.Option(None, "--comment", help="A comment.", show_default=False)


def _missed_times(default: Optional[str]) -> Any:
    words = "What missed times get: skip (nothing), one (one message for all of them) or all (a message each)."
    return typer.Option(
        default, "--catch-up", metavar="POLICY", autocompletion=one_of(("skip", "one", "all")), help=words, show_default=default is not None
    )


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="schedule")


@command(app, "list")
def list_schedules(
    queue: Optional[str] = typer.Argument(
        None, metavar="[QUEUE]", help="Only of this queue.", autocompletion=names_of_queues, show_default=False
    ),
) -> None:
    """Schedules with their states and next times."""
    with asking() as conn:
        if queue is not None:
            common.queue_type(conn, queue)
        rows = output.ask(conn, SCHEDULES, queue=queue)
    output.show(SCHEDULES, rows)


@command(app, "show")
def show(name: str = NAME) -> None:
    """One schedule: its timing, its message, its last error."""
    with asking() as conn:
        rows = output.ask(conn, SCHEDULE, schedule=name)
    if not rows:
        raise Failure(f'schedule "{name}" does not exist', common.SCHEDULES_LISTED, MISSING)
    output.show_one(SCHEDULE, rows[0])


@command(app, "times")
def times(
    cron: Optional[str] = CRON,
    every: Optional[str] = EVERY,
    zone: Optional[str] = ZONE,
    number: int = typer.Option(10, "--max", "-n", min=1, max=10000, help="So many times."),
) -> None:
    """The next times of an expression or interval, to try it."""
    _one_timing(cron, every, required=True)
    with asking() as conn:
        rows = output.ask(conn, SCHEDULE_TIMES, cron=cron, every=every, zone=zone, limit=number)
    output.show(SCHEDULE_TIMES, rows)


@command(app, "create")
def create(
    name: str = NAME,
    queue: str = QUEUE,
    payload: Optional[str] = typer.Argument(
        None, metavar="[PAYLOAD]", help="Payload of each message, as text; without it, null.", show_default=False
    ),
    cron: Optional[str] = CRON,
    every: Optional[str] = EVERY,
    zone: Optional[str] = ZONE,
    catch_up: str = _missed_times("one"),
    start: Optional[str] = START,
    until: Optional[str] = UNTIL,
    priority: Optional[int] = PRIORITY,
    delay: Optional[str] = DELAY,
    expiration: Optional[str] = EXPIRES,
    correlation: Optional[str] = CORRELATION,
    properties: Optional[str] = PROPERTIES,
    recipients: Optional[List[str]] = RECIPIENTS,
    comment: Optional[str] = COMMENT,
    if_not_exists: bool = typer.Option(False, "--if-not-exists", help="Do nothing if it exists."),
) -> None:
    """Enqueue a message again and again, at times of the clock (--cron) or at intervals (--every)."""
    _one_timing(cron, every, required=True)
    given = _settings(
        payload, cron, every, zone, catch_up, start, until, priority, delay, expiration, correlation, properties, recipients, comment
    )
    with asking() as conn:
        next_run = db.value(
            conn,
            f"SELECT aq.schedule(%(name)s, %(queue)s, %(payload)s::text, if_not_exists => %(exists)s, {SETTINGS})",
            {**given, "name": name, "queue": queue, "exists": if_not_exists},
        )
    created = next_run is not None
    output.say(
        f"Created schedule {name}; {_next(next_run)}." if created else f"Exists already: schedule {name}.",
        schedule=name,
        created=created,
        next_run=next_run,
    )


@command(app, "alter")
def alter(
    name: str = NAME,
    payload: Optional[str] = typer.Option(None, "--payload", help="Payload of each message, as text.", show_default=False),
    cron: Optional[str] = CRON,
    every: Optional[str] = EVERY,
    zone: Optional[str] = ZONE,
    catch_up: Optional[str] = _missed_times(None),
    start: Optional[str] = START,
    until: Optional[str] = UNTIL,
    priority: Optional[int] = PRIORITY,
    delay: Optional[str] = DELAY,
    expiration: Optional[str] = EXPIRES,
    correlation: Optional[str] = CORRELATION,
    properties: Optional[str] = PROPERTIES,
    recipients: Optional[List[str]] = RECIPIENTS,
    comment: Optional[str] = COMMENT,
) -> None:
    """Change a schedule. Options that are not given leave their settings unchanged. The count of failures is reset, so a disabled schedule runs again."""
    _one_timing(cron, every, required=False)
    given = _settings(
        payload, cron, every, zone, catch_up, start, until, priority, delay, expiration, correlation, properties, recipients, comment
    )
    if all(value is None for value in given.values()):
        raise Failure("there is nothing to change", "See pgaq schedule alter --help", USAGE)
    with asking() as conn:
        next_run = db.value(conn, f"SELECT aq.alter_schedule(%(name)s, %(payload)s::text, {SETTINGS})", {**given, "name": name})
    output.say(f"Changed schedule {name}; {_next(next_run)}.", schedule=name, next_run=next_run)


@command(app, "run")
def run(name: str = NAME) -> None:
    """Enqueue its message now; its times remain."""
    with asking() as conn:
        msgid = db.value(conn, "SELECT aq.run_schedule(%s)", [name])
    output.say(f"Enqueued message {msgid}." if msgid else "No subscriber wants the message.", schedule=name, msgid=msgid)


@command(app, "start")
@command(app, "resume", hidden=True)  # its name in 0.1.0
def start(name: str = NAME) -> None:
    """Start a schedule that was stopped, or disabled after failures."""
    with asking() as conn:
        next_run = db.value(conn, "SELECT aq.start_schedule(%s)", [name])
    output.say(f"Started schedule {name}; {_next(next_run)}.", schedule=name, stopped=False, next_run=next_run)


@command(app, "stop")
@command(app, "pause", hidden=True)  # its name in 0.1.0
def stop(name: str = NAME) -> None:
    """Stop a schedule until it is started."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.stop_schedule(%s)", [name])
    output.say(f"Stopped schedule {name}.", schedule=name, stopped=True)


@command(app, "drop")
def drop(name: str = NAME) -> None:
    """Drop a schedule; messages that it has enqueued remain."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.unschedule(%s)", [name])
    output.say(f"Dropped schedule {name}.", schedule=name, dropped=True)


# the arguments that aq.schedule and aq.alter_schedule share
SETTINGS = """cron => %(cron)s::text, every => %(every)s::text::interval, time_zone => %(zone)s::text, catch_up => %(catch_up)s::text,
    start_at => %(start)s::text::timestamptz, until => %(until)s::text::timestamptz, priority => %(priority)s::int, delay => %(delay)s::interval,
    expiration => %(expiration)s::interval, correlation => %(correlation)s::text, properties => %(properties)s::text::jsonb,
    recipients => %(recipients)s::text[], comment => %(comment)s::text"""


def _settings(
    payload: str | None, cron: str | None, every: str | None, zone: str | None, catch_up: str | None, start: str | None, until: str | None, priority: int | None,
    delay: str | None, expiration: str | None, correlation: str | None, properties: str | None, recipients: list[str] | None, comment: str | None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "payload": payload, "cron": cron, "every": every, "zone": zone, "catch_up": catch_up, "start": start, "until": until, "priority": priority,
        "delay": span(delay), "expiration": span(expiration), "correlation": correlation, "properties": properties, "recipients": recipients or None, "comment": comment,
    }  # fmt: skip


def _one_timing(cron: str | None, every: str | None, required: bool) -> None:
    if cron is not None and every is not None:
        raise Failure("--cron and --every cannot be combined", code=USAGE)
    if required and cron is None and every is None:
        raise Failure("--cron or --every is required", code=USAGE)


def _next(time: datetime | None) -> str:
    return f"next message {output.drawn(time, 'time')}" if time else "no time is left"
