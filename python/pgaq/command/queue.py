"""pgaq queue: list, show, create, drop, stop, start, pause, resume, grant, revoke, purge, convert."""

from __future__ import annotations

from typing import List, Optional

import typer

from pgaq import db, text
from pgaq.command import common, output
from pgaq.command.common import (
    CONSUMER,
    MISSING,
    QUEUE,
    Failure,
    asking,
    chosen,
    command,
    confirm,
    duration,
    group,
    messages_of,
    near_queue,
    one_of,
    span,
)
from pgaq.subjects import CONSUMERS, PRIVILEGES, QUEUE_UNITS, QUEUES, SHARDS, SUBSCRIBERS
from pgaq.subjects import QUEUE as SETTINGS

app = group("Queues and topics: list, create, stop, purge, drop them, grant privileges on them.")
YES = typer.Option(False, "--yes", "-y", help="Do not ask.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="queue")


@command(app, "list")
def list_queues(
    pattern: Optional[str] = typer.Argument(
        None, metavar="[PATTERN]", help="Only queues with such a name; * stands for anything.", show_default=False
    ),
) -> None:
    """Queues with their rates and backlogs."""
    with asking() as conn:
        rows = output.ask(conn, QUEUES)
    if pattern is not None:
        import fnmatch

        rows = [row for row in rows if fnmatch.fnmatchcase(row["queue"], pattern)]
        if not rows and not chosen().json:
            text.say(f'No queue that this role can use has a name like "{pattern}"{"" if "*" in pattern else "; * stands for anything"}.')
            return
    output.show(QUEUES, rows)


@command(app, "show")
def show(queue: str = QUEUE) -> None:
    """One queue: its settings, consumers, privileges, shards, and those at other nodes."""
    with asking() as conn:
        settings = output.ask(conn, SETTINGS, queue=queue)
        if not settings:
            raise Failure(f'queue "{queue}" does not exist', near_queue(conn, queue), MISSING)
        consumers, subscribers = output.ask(conn, CONSUMERS, queue=queue), output.ask(conn, SUBSCRIBERS, queue=queue)
        privileges = output.ask(conn, PRIVILEGES, queue=queue)
        shards, note = output.ask_or_note(conn, SHARDS, queue=queue)
        units = output.ask(conn, QUEUE_UNITS, queue=queue)
    if chosen().json:
        output.write_json(
            {
                **settings[0],
                "consumers": consumers,
                "subscribers": subscribers,
                "privileges": privileges,
                "shard_streams": shards,
                "units": units,
            }
        )
        return
    output.show_one(SETTINGS, settings[0])
    for subject, rows in (
        (CONSUMERS, consumers),
        (SUBSCRIBERS, subscribers),
        (PRIVILEGES, privileges),
        (SHARDS, shards),
        (QUEUE_UNITS, units),
    ):
        if rows:
            text.say()
            output.show(subject, rows, title=True)
    output.notes([note] if note else [])


@command(app, "create")
def create(
    queue: str = typer.Argument(..., metavar="QUEUE", help="Name of the queue or topic.", show_default=False),
    topic: bool = typer.Option(False, "--topic", help="A topic: each subscriber gets every message."),
    payload_type: str = typer.Option(
        "jsonb", "--type", metavar="TYPE", help="Type of the payload: jsonb, text, bytea, xml or a composite type."
    ),
    shards: Optional[int] = typer.Option(
        None, "--shards", min=1, max=32, help="Number of shards; 1 keeps one order for all sessions.", show_default="pgaq.default_shards"
    ),
    max_retries: int = typer.Option(5, "--max-retries", min=-1, help="Failed attempts before a message is a dead letter; -1: no limit."),
    retry_delay: str = duration("1s", "--retry-delay", help="Delay after the first failed attempt."),
    retention: Optional[str] = duration(None, "--retention", help="How long consumed messages remain visible.", show_default="0"),
    exception_queue: Optional[str] = typer.Option(
        None, "--exception-queue", metavar="NAME", help="Where dead letters go; none: they are deleted.", show_default="QUEUE_exceptions"
    ),
    queue_table: Optional[str] = typer.Option(
        None, "--queue-table", metavar="NAME", help="Create it in this queue table.", show_default=False
    ),
    max_depth: Optional[int] = typer.Option(
        None, "--max-depth", min=1, help="Unfinished messages with which the queue is full.", show_default="no limit"
    ),
    on_full: str = typer.Option("wait", "--on-full", metavar="ACTION", help="What an enqueue into the full queue does: wait or error."),
    max_running: Optional[int] = typer.Option(
        None, "--max-running", min=1, help="Messages of each consumer that may be in work at a time.", show_default="no limit"
    ),
    rate: Optional[str] = typer.Option(
        None, "--rate", metavar="RATE", help="Messages that each consumer gets in a time, such as 100/minute.", show_default="no limit"
    ),
    distributed: bool = typer.Option(False, "--distributed", help="Consumers on other nodes get its messages, too."),
    comment: Optional[str] = typer.Option(None, "--comment", help="A comment.", show_default=False),
    if_not_exists: bool = typer.Option(False, "--if-not-exists", help="Do nothing if it exists."),
) -> None:
    """Create a queue or a topic."""
    with asking() as conn:
        there = db.value(conn, "SELECT 1 FROM aq.queues WHERE queue_name = %s", [queue])
        # a queue of a queue table has its type
        kind = "" if queue_table else ", payload_type => %(type)s::regtype, multiple_consumers => %(topic)s"
        # a database before the update does not know them
        limits = ", max_depth => %(depth)s, on_full => %(full)s" if max_depth else ""
        limits += ", max_running => %(running)s" if max_running else ""
        limits += ", rate => %(rate)s" if rate else ""
        name = db.value(
            conn,
            f"""SELECT aq.create_queue(%(queue)s{kind}, shards => %(shards)s, max_retries => %(retries)s, retry_delay => %(delay)s, retention => %(retention)s,
                exception_queue => %(exception)s, comment => %(comment)s, queue_table => %(table)s, if_not_exists => %(exists)s,
                distributed => %(distributed)s{limits})""",
            {
                "queue": queue, "type": payload_type, "topic": topic, "shards": shards, "retries": None if max_retries < 0 else max_retries, "delay": span(retry_delay),
                "retention": span(retention or "0"), "exception": exception_queue, "comment": comment, "table": queue_table, "exists": if_not_exists, "distributed": distributed, "depth": max_depth, "full": on_full, "running": max_running, "rate": rate,
            },
        )  # fmt: skip
    created = not (if_not_exists and there)
    output.say(f"{'Created' if created else 'Exists already:'} {'topic' if topic else 'queue'} {name}.", queue=name, created=created)


@command(app, "drop")
def drop(queue: str = QUEUE, force: bool = typer.Option(False, "--force", help="Even if it holds messages."), yes: bool = YES) -> None:
    """Drop a queue and its exception queue."""
    with asking() as conn:
        common.queue_type(conn, queue)
        if force:
            confirm(f'Drop queue "{queue}" with all its messages?', yes)
        db.execute(conn, "SELECT aq.drop_queue(%s, force => %s)", [queue, force])
    output.say(f"Dropped queue {queue}.", queue=queue, dropped=True)


ENQUEUE = typer.Option(False, "--enqueue", help="Only enqueue.")
DEQUEUE = typer.Option(False, "--dequeue", help="Only dequeue.")


@command(app, "stop")
def stop(
    queue: str = QUEUE,
    enqueue: bool = ENQUEUE,
    dequeue: bool = DEQUEUE,
    wait: bool = typer.Option(False, "--wait", help="Wait until no transaction uses it."),
) -> None:
    """Refuse enqueue and dequeue."""
    _switch("stop", queue, enqueue, dequeue, ", wait => %(wait)s", wait=wait)


@command(app, "start")
def start(queue: str = QUEUE, enqueue: bool = ENQUEUE, dequeue: bool = DEQUEUE) -> None:
    """Allow enqueue and dequeue again."""
    _switch("start", queue, enqueue, dequeue, "")


def _switch(verb: str, queue: str, enqueue: bool, dequeue: bool, more: str, **values: object) -> None:
    both = enqueue == dequeue
    given = {"queue": queue, "enqueue": both or enqueue, "dequeue": both or dequeue, **values}
    with asking() as conn:
        db.execute(conn, f"SELECT aq.{verb}_queue(%(queue)s, enqueue => %(enqueue)s, dequeue => %(dequeue)s{more})", given)
        state = db.row(conn, "SELECT enqueue_enabled, dequeue_enabled FROM aq.queues WHERE queue_name = %s", [queue]) or {}
    words = {(True, True): "started", (True, False): "stopped for dequeue", (False, True): "stopped for enqueue", (False, False): "stopped"}
    now = words.get((state.get("enqueue_enabled"), state.get("dequeue_enabled")), "changed")
    output.say(f"Queue {queue} is {now}.", queue=queue, state=now)


@command(app, "pause")
def pause(
    queue: str = QUEUE,
    consumer: Optional[str] = CONSUMER,
    reason: Optional[str] = typer.Option(None, "--reason", help="Shown with the role and the time.", show_default=False),
) -> None:
    """Give consumers no messages, without errors; enqueue continues."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.pause(%s, %s, %s)", [queue, consumer, reason])
    _say_of(queue, consumer, "paused")


@command(app, "resume")
def resume(queue: str = QUEUE, consumer: Optional[str] = CONSUMER) -> None:
    """Give consumers messages again."""
    with asking() as conn:
        db.execute(conn, "SELECT aq.resume(%s, %s)", [queue, consumer])
        named = "SELECT consumer FROM aq.subscribers WHERE queue_name = %s AND consumer IS NOT NULL AND paused IS NOT NULL ORDER BY 1"
        rest = [] if consumer else [row["consumer"] for row in db.rows(conn, named, [queue])]
    _say_of(queue, consumer, "resumed", f", except consumers paused by name: {', '.join(rest)}" if rest else "")


def _say_of(queue: str, consumer: str | None, done: str, more: str = "") -> None:
    """Without a consumer, of all consumers of the queue."""
    who = f"Consumer {consumer} of queue" if consumer else "Queue"
    output.say(f"{who} {queue} is {done}{more}.", queue=queue, consumer=consumer, state=done)


ROLE = typer.Argument(
    ..., metavar="ROLE", help="The role, or public; as in SQL, a name with capital letters needs double quotes.", show_default=False
)
PRIVILEGE = typer.Argument(
    None,
    metavar="[PRIVILEGE...]",
    autocompletion=one_of(("enqueue", "dequeue", "subscribe", "all")),
    help="enqueue, dequeue, subscribe or all.",
    show_default="all",
)


@command(app, "grant")
def grant(
    queue: str = QUEUE,
    role: str = ROLE,
    privileges: Optional[List[str]] = PRIVILEGE,
    grant_option: bool = typer.Option(False, "--grant-option", help="The role may grant them to others."),
) -> None:
    """Grant privileges on a queue to a role."""
    words = ", ".join(privileges or ["all"])
    with asking() as conn:
        db.execute(conn, "SELECT aq.grant_queue(%s, %s, %s, grant_option => %s)", [queue, role, words, grant_option])
    output.say(f"Granted {words} on {queue} to {role}.", queue=queue, role=role, granted=words)


@command(app, "revoke")
def revoke(queue: str = QUEUE, role: str = ROLE, privileges: Optional[List[str]] = PRIVILEGE) -> None:
    """Revoke privileges on a queue from a role."""
    words = ", ".join(privileges or ["all"])
    with asking() as conn:
        db.execute(conn, "SELECT aq.revoke_queue(%s, %s, %s)", [queue, role, words])
    output.say(f"Revoked {words} on {queue} from {role}.", queue=queue, role=role, revoked=words)


@command(app, "purge")
def purge(
    queue: str = QUEUE,
    consumer: Optional[str] = CONSUMER,
    condition: Optional[str] = typer.Option(
        None, "--condition", "-w", metavar="SQL", help='Only messages that meet it, such as "priority > 3".', show_default=False
    ),
    delivery_mode: str = messages_of("persistent_or_buffered", "Those to remove"),
    yes: bool = YES,
) -> None:
    """Remove messages without reading them."""
    with asking() as conn:
        common.queue_type(conn, queue)
        which = "the chosen" if condition else "all" if delivery_mode == "persistent_or_buffered" else f"all {delivery_mode}"
        confirm(f'Remove {which} messages of queue "{queue}"?', yes)
        removed = db.value(
            conn,
            "SELECT aq.purge_queue(%s, consumer => %s, condition => %s, delivery_mode => %s)",
            [queue, consumer, condition, delivery_mode],
        )
    output.say(f"Removed {removed} message{'' if removed == 1 else 's'} of queue {queue}.", queue=queue, removed=removed)


@command(app, "convert")
def convert(
    queue: str = QUEUE,
    shards: Optional[int] = typer.Option(None, "--shards", min=1, max=32, help="Number of shards.", show_default="pgaq.default_shards"),
    check: bool = typer.Option(False, "--check", help="Only say what stands in the way."),
) -> None:
    """Convert a queue of a queue table to a sharded queue."""
    with asking() as conn:
        common.queue_type(conn, queue)
        obstacles = db.rows(conn, "SELECT obstacle, hint FROM aq.conversion_obstacles(%s)", [queue])
        if obstacles and not check:
            first = obstacles[0]
            more = f" (and {len(obstacles) - 1} more: pgaq queue convert --check)" if len(obstacles) > 1 else ""
            raise Failure(f'queue "{queue}" cannot be converted: {first["obstacle"]}{more}', first["hint"] or "")
        if not check:
            db.execute(conn, "SELECT aq.convert_queue(%s, shards => %s)", [queue, shards])
    if chosen().json:
        output.write_json({"queue": queue, "converted": not check, "obstacles": obstacles})
    elif check:
        lines = [f"{row['obstacle']}{'. ' + row['hint'] if row['hint'] else ''}" for row in obstacles]
        for line in lines or [f"Queue {queue} can be converted."]:
            text.say(line)
    else:
        text.say(f"Converted queue {queue}; messages in the queue table are dequeued first.")
