"""pgaq browse: messages without taking them."""

from __future__ import annotations

from typing import Optional

import typer

from pgaq import db
from pgaq.command import common, output
from pgaq.command.common import CONSUMER, MISSING, QUEUE, USAGE, Failure, asking, command, message_id, one_of
from pgaq.subjects import MESSAGES

STATES = ("ready", "waiting", "locked", "leased", "processed", "purged", "expired")


def add_to(app: typer.Typer) -> None:
    command(app, "browse")(browse)


def browse(
    queue: str = QUEUE,
    msgid: Optional[str] = typer.Argument(
        None, metavar="[MSGID]", help="Only this message, with all that is known of it.", callback=message_id, show_default=False
    ),
    consumer: Optional[str] = CONSUMER,
    number: int = typer.Option(20, "--max", "-n", min=1, help="Maximum number of messages."),
    state: Optional[str] = typer.Option(
        None,
        "--state",
        metavar="STATE",
        autocompletion=one_of([*STATES, "all"]),
        help=f"{', '.join(STATES)}, or all, also buffered ones; the order is that of the tables.",
        show_default="ready persistent ones, in the order of dequeue",
    ),
    condition: Optional[str] = typer.Option(
        None, "--condition", "-w", metavar="SQL", help='Only messages that meet it, such as "priority = 0".', show_default=False
    ),
    correlation: Optional[str] = typer.Option(
        None, "--correlation", metavar="PATTERN", help="Only messages whose correlation is LIKE this.", show_default=False
    ),
    key: Optional[str] = typer.Option(None, "--key", metavar="TEXT", help="Only messages with this key.", show_default=False),
    after: Optional[str] = typer.Option(
        None, "--after", metavar="MSGID", help="Continue behind this message.", callback=message_id, show_default=False
    ),
) -> None:
    """Read messages without taking them."""
    if state is not None and state.lower() not in (*STATES, "all"):
        raise Failure(f"there is no state '{state}'", f"States: {', '.join(STATES)}, all", USAGE)
    with asking() as conn:
        kind = common.queue_type(conn, queue)
        if msgid is not None or state is not None:
            wanted = None if state is None or state.lower() == "all" else state.upper()
            rows = output.payloads(
                output.ask(conn, MESSAGES, queue=queue, state=wanted, consumer=consumer, msgid=msgid, limit=number), kind["payload_type"]
            )
        else:
            if kind["multiple_consumers"] and consumer is None:
                raise Failure(f'queue "{queue}" is a topic', "Name a consumer with --consumer, or give --state all", USAGE)
            payload = "payload" if kind["payload_type"] == "jsonb" else "payload::text AS payload"
            by_key = "" if key is None else ", key => %(key)s"
            rows = db.rows(
                conn,
                f"""SELECT msgid::text AS msgid, 'READY' AS state, priority, attempts, enqueue_time, correlation, {payload}, properties
                    FROM aq.browse(%(queue)s, as_type => NULL::{kind["payload_type"].replace("%", "%%")}, consumer => %(consumer)s, max_messages => %(most)s,
                        correlation => %(correlation)s, condition => %(condition)s, after => %(after)s::uuid{by_key})""",
                {
                    "queue": queue,
                    "consumer": consumer,
                    "most": number,
                    "correlation": correlation,
                    "condition": condition,
                    "key": key,
                    "after": after,
                },
            )
    if msgid is None:
        output.show(MESSAGES, rows)
    elif not rows:
        raise Failure(f'queue "{queue}" has no message {msgid} that this role can see', code=MISSING)
    else:
        output.show_one(MESSAGES, rows[0])
