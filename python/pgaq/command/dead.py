"""pgaq dead: dead letters, the messages in exception queues."""

from __future__ import annotations

import shlex
from typing import Any, Optional

import typer

from pgaq import db, text
from pgaq.command import common, output
from pgaq.command.common import (
    FAILURE,
    MISSING,
    QUEUE,
    RIGHT,
    Failure,
    asking,
    chosen,
    command,
    group,
    identifier,
    message_id,
    names_of_queues,
)
from pgaq.subjects import DEAD_LETTERS, EXCEPTION_QUEUES

app = group("Dead letters: messages that expired, were rejected, or failed too often.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="dead")


def _letters(conn: db.Connection, place: str, **wanted: object) -> list[dict[str, Any]]:
    """Dead letters in an exception queue; a role that sees only how many there are is told so."""
    found = db.row(conn, "SELECT payload_type::text AS kind, may_dequeue FROM aq.queues WHERE queue_name = %s", [place])
    rows = output.ask(conn, DEAD_LETTERS, exception_queue=place, **wanted)
    if not rows and not (found and found["may_dequeue"]):
        do = f"The owner of the queue can grant it: pgaq queue grant {shlex.quote(place)} {shlex.quote(identifier(conn.info.user))} dequeue"
        raise Failure(f'permission denied for queue "{place}"', do, RIGHT)
    return output.payloads(rows, found["kind"] if found else "")


def _where(conn: db.Connection, queue: str) -> tuple[str, str | None]:
    """The exception queue to look into, and the queue whose dead letters are wanted (null: all of that exception queue)."""
    found = common.queue_type(conn, queue)
    if found["queue_type"] == "exception" or db.value(conn, "SELECT 1 FROM aq.queues WHERE exception_queue = %s", [queue]):
        return queue, None
    if found["exception_queue"] is None:
        raise Failure(f'queue "{queue}" has no exception queue: what fails is deleted', code=FAILURE)
    return found["exception_queue"], queue


@command(app, "list")
def list_letters(
    queue: Optional[str] = typer.Argument(
        None,
        metavar="[QUEUE]",
        help="Dead letters of this queue, or in this exception queue; without it, how many there are.",
        autocompletion=names_of_queues,
        show_default=False,
    ),
    number: int = typer.Option(20, "--max", "-n", min=1, help="Maximum number, the latest first."),
) -> None:
    """Dead letters and why they failed."""
    with asking() as conn:
        if queue is None:
            rows = output.ask(conn, EXCEPTION_QUEUES)
        else:
            place, of = _where(conn, queue)
            rows = _letters(conn, place, queue=of, limit=number)
    output.show(EXCEPTION_QUEUES if queue is None else DEAD_LETTERS, rows)


@command(app, "show")
def show(
    queue: str = QUEUE,
    msgid: str = typer.Argument(
        ..., metavar="MSGID", help="Its id, or the id that it had in its queue.", callback=message_id, show_default=False
    ),
) -> None:
    """One dead letter, with all that is kept of it."""
    with asking() as conn:
        place, _ = _where(conn, queue)
        rows = _letters(conn, place, msgid=msgid, limit=1)
    if not rows:
        raise Failure(
            f'there is no dead letter {msgid} of queue "{queue}" that this role can see', "pgaq dead list shows their ids", MISSING
        )
    output.show_one(DEAD_LETTERS, rows[0])


@command(app, "redrive")
def redrive(
    queue: str = QUEUE,
    number: Optional[int] = typer.Option(None, "--max", "-n", min=1, help="Maximum number.", show_default="all"),
    condition: Optional[str] = typer.Option(
        None,
        "--condition",
        "-w",
        metavar="SQL",
        help="Only those that meet it, such as \"dead_letter ->> 'reason' = 'rejected'\".",
        show_default=False,
    ),
) -> None:
    """Put dead letters back into the queue that they came from."""
    with asking() as conn:
        _, of = _where(conn, queue)
        if of is None:
            sources = db.value(
                conn, "SELECT string_agg(queue_name, ', ' ORDER BY queue_name) FROM aq.queues WHERE exception_queue = %s", [queue]
            )
            raise Failure(
                f'"{queue}" is an exception queue', f"Name the queue that the messages came from{': ' + sources if sources else ''}"
            )
        moved = db.value(conn, "SELECT aq.redrive(%s, max_messages => %s, condition => %s)", [queue, number, condition])
    if chosen().json:
        output.write_json({"queue": queue, "redriven": moved})
    else:
        text.say(f"Put {moved} dead letter{'' if moved == 1 else 's'} back into {queue}.")
