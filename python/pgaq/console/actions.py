"""What can be changed, as data: a question with the number that it concerns, and a call of a public function.

It runs as the role that has logged in, and the row of the log is written in the same transaction: neither is there without the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping

from pgaq import db
from pgaq.console import words
from pgaq.console.pages import NotFound, Wrong

LAG = "SELECT COALESCE(sum(lag), 0)::bigint FROM aq.metrics(%(queue)s)"
# a group of dead letters, by the columns that Dead letters groups by; its names are also those of a condition of aq.redrive
LETTERS = """SELECT count(*) FROM aq.dead_letters WHERE exception_queue = %(exception_queue)s AND queue_name = %(queue)s
    AND (%(reason)s = '' OR reason = %(reason)s) AND (%(by_consumer)s = '' OR consumer IS NOT DISTINCT FROM NULLIF(%(consumer)s, ''))
    AND (%(by_error)s = '' OR left(last_error, 300) IS NOT DISTINCT FROM NULLIF(%(error)s, ''))"""
CONDITION = """concat_ws(' AND ', 'true', CASE WHEN %(reason)s <> '' THEN format('dead_letter ->> ''reason'' = %%L', %(reason)s::text) END,
    CASE WHEN %(by_consumer)s <> '' THEN format('dead_letter ->> ''consumer'' IS NOT DISTINCT FROM %%L', NULLIF(%(consumer)s, '')::text) END,
    CASE WHEN %(by_error)s <> '' THEN format('left(dead_letter ->> ''error'', 300) IS NOT DISTINCT FROM %%L', NULLIF(%(error)s, '')::text) END)"""


# parameters that only say how others are meant
FLAGS = ("by_error", "by_consumer")


class Refused(Exception):
    """It was not done; the transaction is rolled back."""


class Grown(Exception):
    """It would concern more messages than the question has said; the argument is their number now."""


@dataclass(frozen=True)
class Action:
    """One kind of change."""

    title: str
    question: str  # with {messages}, what is counted, the verbs {are} and {go}, and the parameters
    object: str  # the parameter that names what is changed
    run: str  # returns the number of messages that were changed, or anything else
    hidden: tuple[str, ...] = ()  # further parameters, from the page that led here
    asked: dict[str, str] = field(default_factory=dict)  # parameters that the form asks for, and their titles
    count: str = "SELECT NULL::bigint"
    back: str = ""  # path of the page to return to, with the object at its end
    dangerous: bool = False
    good: str = ""  # the only result that is a success
    what: tuple[str, str] = ("message", "messages")  # what is counted
    present: str = ""  # what the parameters that the form asks for are now: a row
    confirmed: bool = False  # it is done only if it concerns no more messages than the question has said

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.object, *self.hidden, *self.asked)


QUEUE = "queue?name="
ACTIONS = {
    "stop": Action(
        "Stop the queue", "Enqueue and dequeue are refused from now on. {messages} in it.", "queue",
        "SELECT aq.stop_queue(%(queue)s, enqueue => %(side)s <> 'dequeue', dequeue => %(side)s <> 'enqueue')::text", hidden=("side",), count=LAG, back=QUEUE,
    ),
    "start": Action(
        "Start the queue", "Enqueue and dequeue are allowed again. {messages} in it.", "queue", "SELECT aq.start_queue(%(queue)s)::text", count=LAG, back=QUEUE,
    ),
    "pause": Action(
        "Pause the queue", "Consumers get no messages from now on, without errors; enqueue continues. {messages} in it.", "queue",
        "SELECT aq.pause(%(queue)s, NULLIF(%(consumer)s, ''), NULLIF(%(reason)s, ''))::text",
        asked={"consumer": "Only this subscriber of a topic", "reason": "Reason"}, count=LAG, back=QUEUE,
    ),
    "resume": Action(
        "Resume the queue", "Consumers get messages again, except those that are paused by name: name one to resume it. {messages} in it.", "queue", "SELECT aq.resume(%(queue)s, NULLIF(%(consumer)s, ''))::text",
        asked={"consumer": "Only this subscriber of a topic"}, count=LAG, back=QUEUE,
    ),
    "purge": Action(
        "Purge the queue", "{messages} {are} removed, and cannot be brought back. Those that are leased or locked remain.", "queue",
        "SELECT aq.purge_queue(%(queue)s, consumer => NULLIF(%(consumer)s, ''), delivery_mode => 'persistent_or_buffered')", hidden=("consumer",),
        count=LAG + " WHERE %(consumer)s = '' OR consumer = %(consumer)s", back=QUEUE, dangerous=True, confirmed=True,
    ),
    "alter": Action(
        "Change settings", "What is empty remains as it is. {messages} in the queue.", "queue",
        """SELECT aq.alter_queue(%(queue)s, max_retries => NULLIF(%(max_retries)s, '')::int, retry_delay => NULLIF(%(retry_delay)s, '')::interval,
            retention => NULLIF(%(retention)s, '')::interval, exception_queue => NULLIF(%(exception_queue)s, ''),
            max_depth => NULLIF(%(max_depth)s, '')::bigint, on_full => NULLIF(%(on_full)s, ''),
            max_running => NULLIF(%(max_running)s, '')::int, rate => NULLIF(%(rate)s, ''))::text""",
        asked={"max_retries": "Max retries (-1: no limit)", "retry_delay": "Retry delay", "retention": "Retention", "exception_queue": "Exception queue",
            "max_depth": "Max depth (-1: no limit)", "on_full": "On full (wait, or error)",
            "max_running": "Max running (-1: no limit)", "rate": "Rate, such as 100/minute (none: no limit)"},
        present="SELECT COALESCE(max_retries, -1) AS max_retries, retry_delay, retention, exception_queue, COALESCE(max_depth, -1) AS max_depth, on_full, COALESCE(max_running, -1) AS max_running, COALESCE(rate, 'none') AS rate FROM aq.queues WHERE queue_name = %(queue)s", count=LAG, back=QUEUE,
    ),
    "redrive": Action(
        "Redrive dead letters", "{messages} {go} back to queue {queue}, as new messages without attempts.", "queue",
        f"SELECT aq.redrive(%(queue)s, max_messages => NULLIF(%(most)s, '')::int, condition => {CONDITION}, exception_queue => %(exception_queue)s)",
        hidden=("exception_queue", "reason", "by_error", "error", "by_consumer", "consumer"), asked={"most": "At most"}, count=LETTERS, back=QUEUE,
        what=("dead letter", "dead letters"), confirmed=True,
    ),
    "cancel": Action(
        "Cancel the message", "{messages} {are} removed for all consumers, and cannot be brought back.", "queue",
        "SELECT aq.cancel(%(queue)s, %(id)s::uuid)", hidden=("id",), count="SELECT count(DISTINCT msgid) FROM aq.message(%(queue)s, %(id)s::uuid)",
        back="messages?queue=", dangerous=True, good="done",
    ),
    "stop-schedule": Action("Stop the schedule", "It enqueues nothing until it is started.", "schedule", "SELECT aq.stop_schedule(%(schedule)s)::text"),
    "start-schedule": Action("Start the schedule", "It continues with its next time.", "schedule", "SELECT aq.start_schedule(%(schedule)s)::text"),
    "run-schedule": Action("Run the schedule now", "1 message is enqueued now; its times do not change.", "schedule", "SELECT aq.run_schedule(%(schedule)s)::text"),
    "snapshot": Action("Take a snapshot", "The counters of the server are kept, for reports.", "object", "SELECT 'snapshot ' || aq.take_snapshot()", back="reports?after="),
}  # fmt: skip


def given(action: Action, form: Mapping[str, str]) -> dict[str, str]:
    """The parameters of the action; all are text."""
    found = {name: form.get(name, "") for name in action.parameters}
    if not found[action.object] and action.object != "object":
        raise NotFound(f"No {action.object} is named.")
    if action.hidden == ("id",) and not words.is_uuid(found["id"]):
        raise Wrong("id is not the id of a message")
    for name in ("max_retries", "most"):
        if found.get(name) and not re.fullmatch(r"-?\d{1,9}", found[name]):
            raise Wrong(f"{name} is not a number")
    return found


def count(conn: db.Connection, action: Action, parameters: Mapping[str, str]) -> int | None:
    """How many messages it concerns."""
    found = db.value(conn, action.count, parameters)
    if action.good and found == 0:
        raise NotFound("There is no such message, or this role cannot dequeue it.")
    return found


def question(action: Action, parameters: Mapping[str, str], number: int | None) -> str:
    one = number == 1
    messages = f"{words.shown(number, 'count')} {action.what[0 if one else 1]}"
    shown = {key: words.shown(value) for key, value in parameters.items()}
    return action.question.format(**{**shown, "messages": messages, "are": "is" if one else "are", "go": "goes" if one else "go"})


def _check_confirmed(parameters: Mapping[str, str], number: int, confirmed: str) -> None:
    """Of a limit that was entered, no number has to be confirmed."""
    if not parameters.get("most") and (not re.fullmatch(r"\d{1,18}", confirmed) or number > int(confirmed)):
        raise Grown(number)


def present(conn: db.Connection, action: Action, parameters: Mapping[str, str]) -> dict[str, Any]:
    """What is to be changed, as it is now."""
    return next(iter(db.rows(conn, action.present, parameters)), {}) if action.present else {}


def perform(conn: db.Connection, name: str, action: Action, parameters: Mapping[str, str], confirmed: str) -> int | None:
    """Does it, and writes the log.  confirmed: the number that the question has said."""
    before = count(conn, action, parameters)
    if action.confirmed:
        _check_confirmed(parameters, before or 0, confirmed)
    done = db.value(conn, action.run, parameters)
    if action.good and done != action.good:
        raise Refused(
            f"The server says: {done}. A message that a transaction or a lease holds cannot be changed."
            if done == "busy"
            else f"The server says: {done}."
        )
    number = done if isinstance(done, int) else before
    if action.confirmed:
        _check_confirmed(parameters, number or 0, confirmed)  # messages can have come since they were counted
    detail = ", ".join(f"{key}: {value}" for key, value in parameters.items() if value and key not in (action.object, *FLAGS))
    result = str(done) if action.object == "object" else detail
    db.value(conn, "SELECT aq.log_action(%s, %s, %s, %s)", [name, parameters[action.object] or "server", number, result or None])
    return number
