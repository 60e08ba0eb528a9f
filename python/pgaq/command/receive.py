"""pgaq receive: messages to standard output, to files, or to a program for each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional

import typer

from pgaq import db, text
from pgaq.command import common, output
from pgaq.command.common import CONSUMER, FAILURE, NOTHING, QUEUE, USAGE, Failure, asking, chosen, command, duration, span
from pgaq.subjects import across_versions

REJECT = 65  # EX_DATAERR: the message can never succeed
LARGE = 32 << 10  # bytes; a value that is longer is in a file, because the system limits those of the environment (Linux: 128 kB each)
LONG = timedelta(days=1)
COLUMNS = "msgid::text AS msgid, payload, priority, attempts, correlation, key, properties::text AS properties, enqueue_time, receipt"


def add_to(app: typer.Typer) -> None:
    command(app, "receive")(receive)


@dataclass
class Job:
    """What is to be received."""

    queue: str
    kind: str
    messages: str
    consumer: str | None
    condition: str | None
    correlation: str | None
    key: str | None
    batch: int
    lease: timedelta
    program: str | None
    directory: Path | None
    reject_code: int


def receive(
    queue: str = QUEUE,
    consumer: Optional[str] = CONSUMER,
    number: Optional[int] = typer.Option(
        None, "--max", "-n", min=1, help="Maximum number of messages.", show_default="1, with --follow all"
    ),
    follow: bool = typer.Option(False, "--follow", "-f", help="Continue until Ctrl-C, waiting for messages."),
    wait: Optional[str] = duration(None, "--wait", help="How long to wait for a message.", show_default="not at all"),
    all_ready: bool = typer.Option(False, "--all", help="All messages that are ready."),
    program: Optional[str] = typer.Option(
        None,
        "--exec",
        "-x",
        metavar="COMMAND",
        help="Run this shell command for each message, with the payload as its input.",
        show_default=False,
    ),
    lease: Optional[str] = duration(
        None, "--lease", help="With --exec: the message is the program's for this time, and extended while it runs.", show_default="1min"
    ),
    reject_code: int = typer.Option(REJECT, "--reject-code", help="Exit code of the program for a message that can never succeed."),
    directory: Optional[Path] = typer.Option(
        None, "--directory", metavar="DIR", help="Write each payload into a file of this directory, named by its id.", show_default=False
    ),
    condition: Optional[str] = typer.Option(
        None, "--condition", "-w", metavar="SQL", help='Only messages that meet it, such as "priority = 0".', show_default=False
    ),
    correlation: Optional[str] = typer.Option(
        None, "--correlation", metavar="PATTERN", help="Only messages whose correlation is LIKE this.", show_default=False
    ),
    key: Optional[str] = typer.Option(None, "--key", metavar="TEXT", help="Only messages with this key.", show_default=False),
    messages: str = common.messages_of("persistent", "Those to take"),
    batch: Optional[int] = typer.Option(None, "--batch", min=1, help="Messages per transaction.", show_default="100, with --exec 1"),
) -> int:
    """Dequeue messages.

    A message is removed when it was written, or when its program has ended with exit code 0. After another exit code it
    is given back and tried again later; after --reject-code it is a dead letter.
    """
    if follow and all_ready:
        raise Failure("--follow and --all cannot be combined", "--follow takes what is ready, too, and then waits", USAGE)
    if follow and wait is not None:
        raise Failure("--follow and --wait cannot be combined", "--follow waits until Ctrl-C", USAGE)
    if lease is not None and program is None:
        raise Failure("--lease is for --exec", "Without a program a message is removed when it was written", USAGE)
    if program is not None and directory is not None:
        raise Failure("--exec and --directory cannot be combined", "The program gets the payload as its standard input", USAGE)
    if program is not None and messages != "persistent":
        raise Failure(
            f"--exec and --messages {messages} cannot be combined",
            "A program takes its message with a lease, which buffered messages do not have",
            USAGE,
        )
    if lease is not None and not span(lease):
        raise Failure(f"--lease {lease} is no time for a program", "Give a lease such as 30s: it is extended while the program runs", USAGE)
    if directory is not None and not directory.is_dir():
        raise Failure(f"--directory: there is no directory {directory}", "Create it first", USAGE)
    if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
        raise Failure(f"--directory: no file can be created in {directory}", "Its permissions do not allow it", USAGE)
    with asking() as conn:
        kind = common.queue_type(conn, queue)
        if kind["multiple_consumers"] and consumer is None:
            raise Failure(f'queue "{queue}" is a topic', "Name a consumer with --consumer; pgaq subscriber list shows them", USAGE)
        limit = number if number is not None else None if follow or all_ready else 1
        job = Job(
            queue,
            kind["payload_type"],
            messages,
            consumer,
            condition,
            correlation,
            key,
            batch or (1 if program else 100),
            span(lease) or timedelta(minutes=1),
            program,
            directory,
            reject_code,
        )
        runner = _Runner(conn, job)
        try:
            done = runner.run(limit, LONG if follow else span(wait) or timedelta(0), follow)
        except KeyboardInterrupt:
            if not conn.closed:
                conn.cancel()
            raise
        if runner.failed:
            text.say(f"pgaq: {runner.failed} of {done + runner.failed} messages failed", sys.stderr)
    if runner.failed:
        return FAILURE
    return 0 if done or follow or all_ready else NOTHING


class _Runner:
    """Takes messages until there are enough."""

    def __init__(self, conn: db.Connection, job: Job) -> None:
        self.conn, self.job = conn, job
        self.done = self.failed = 0

    def run(self, limit: int | None, wait: timedelta, follow: bool) -> int:
        """Returns how many succeeded."""
        deadline = time.monotonic() + wait.total_seconds()
        while limit is None or self.done + self.failed < limit:
            most = self.job.batch if limit is None else min(self.job.batch, limit - self.done - self.failed)
            if self.job.program is not None:
                got = self._execute(most)
            else:
                got = self._write(most)
            if got:
                continue
            left = deadline - time.monotonic() if not follow else 30.0
            if left <= 0:
                break
            # holds no snapshot while it waits
            db.execute(
                self.conn,
                "CALL aq.wait(%s, %s, %s, %s, NULL)",
                [self.job.queue, self.job.consumer, timedelta(seconds=left), self.job.messages],
            )
        return self.done

    def _take(self, most: int, lease: timedelta | None) -> list[dict[str, Any]]:
        """The next messages."""
        job = self.job
        by_key = "" if job.key is None else ", key => %(key)s"
        query = f"""SELECT {COLUMNS} FROM aq.dequeue_full(%(queue)s, as_type => NULL::{job.kind.replace("%", "%%")}, consumer => %(consumer)s, max_messages => %(most)s,
            correlation => %(correlation)s, condition => %(condition)s, delivery_mode => %(messages)s, lease => %(lease)s{by_key})"""
        if job.kind != "bytea":  # of jsonb, too: numbers keep their digits
            query = query.replace("payload,", "payload::text AS payload,", 1)
        return db.rows(
            self.conn,
            across_versions(query),
            {
                "queue": job.queue,
                "consumer": job.consumer,
                "most": most,
                "correlation": job.correlation,
                "condition": job.condition,
                "key": job.key,
                "messages": job.messages,
                "lease": lease,
            },
        )

    def _write(self, most: int) -> int:
        """Takes, writes, commits: what could not be written is still in the queue."""
        with self.conn.transaction():
            taken = self._take(most, None)
            for message in taken:
                self._put(message)
            sys.stdout.flush()
        self.done += len(taken)
        return len(taken)

    def _put(self, message: dict[str, Any]) -> None:
        payload = message["payload"]
        if self.job.directory is not None:
            path = self.job.directory / f"{message['msgid']}{'.json' if self.job.kind == 'jsonb' else ''}"
            try:
                path.write_bytes(_bytes(payload))
            except OSError as error:
                raise Failure(f"cannot write {path}: {error.strerror}", "The message is given back to the queue") from None
            if not chosen().json:
                text.say(str(path))
                return
        if chosen().json:
            _write_message({"queue": self.job.queue, "payload_type": self.job.kind, **message})
        elif isinstance(payload, bytes):
            if sys.stdout.isatty():
                text.say(payload.decode(errors="backslashreplace"))
            else:
                sys.stdout.buffer.write(payload)
        elif sys.stdout.isatty():
            text.say(payload or "")
        else:
            sys.stdout.write((payload or "") + "\n")

    def _execute(self, most: int) -> int:
        """Takes with a lease, runs the program for each, and settles it by its exit code."""
        taken = self._take(most, self.job.lease)
        number = len(taken)
        with _Stop() as stop:
            while taken and not stop.asked:
                message = taken[0]
                with _Heartbeat(self.job, message) as beat:
                    code, said = _handed_over(self.job, message, stop)
                if stop.kills and code != 0:
                    break
                self._end(taken.pop(0), code, said, beat.lost)
            for unseen in taken:
                self._settle("release", unseen, ", count => false, delay => '0'")
        if stop.asked:
            raise KeyboardInterrupt
        return number

    def _end(self, message: dict[str, Any], code: int | None, said: str, lost: bool) -> None:
        """The exit code decides what happens to the message."""
        how = "acknowledge" if code == 0 else "reject" if code == self.job.reject_code else "release"
        answer = self._settle(how, message, "" if code == 0 else ", error => %(error)s", said)
        done = code == 0 and answer == "done"
        self.done += done
        self.failed += not done
        self._tell(message, code, answer, said, lost)

    def _settle(self, how: str, message: dict[str, Any], more: str = "", error: str = "") -> str:
        query = f"SELECT result FROM aq.{how}(%(queue)s, ARRAY[%(msgid)s::uuid], %(receipt)s, consumer => %(consumer)s{more})"
        given = {
            "queue": self.job.queue,
            "msgid": message["msgid"],
            "receipt": message["receipt"],
            "consumer": self.job.consumer,
            "error": error,
        }
        try:
            return str(db.value(self.conn, query, given))
        except db.Error as failed:
            if failed.sqlstate != "22P05":  # the database's encoding does not have what the program said
                raise
            return str(db.value(self.conn, query, {**given, "error": error.encode("ascii", "backslashreplace").decode()}))

    def _tell(self, message: dict[str, Any], code: int | None, answer: str, said: str, lost: bool) -> None:
        outcome = (
            "stale"
            if answer != "done" or lost
            else "acknowledged"
            if code == 0
            else "rejected"
            if code == self.job.reject_code
            else "released"
        )
        if chosen().json:
            output.write_json(
                {
                    "msgid": message["msgid"],
                    "attempts": message["attempts"],
                    "exit": code,
                    "outcome": outcome,
                    "error": None if code == 0 else said,
                },
                indent=None,
            )
        elif outcome != "acknowledged":
            why = "the lease was over before the program ended" if outcome == "stale" else said
            text.say(f"pgaq: {message['msgid']} {outcome}: {why}", sys.stderr)


def _write_message(message: dict[str, Any]) -> None:
    """A line of JSON, with documents as the server wrote them: Python reads only those that are not nested deeply."""

    def word(name: str, value: Any) -> str:
        as_it_is = value is not None and (name == "properties" or name == "payload" and message["payload_type"] == "jsonb")
        return text.escaped(value) if as_it_is else text.to_json(value, output.plain)

    parts = (f"{json.dumps(name)}: {word(name, value)}" for name, value in message.items() if name != "receipt")
    sys.stdout.write("{" + ", ".join(parts) + "}\n")


def _bytes(payload: str | bytes | None) -> bytes:
    return payload if isinstance(payload, bytes) else (payload or "").encode()


class _Stop:
    """While programs run, signals do not end this process: it has a message to settle.

    SIGTERM lets the program finish, as a worker's service manager expects; Ctrl-C, or a second signal, ends it.

    An exception could come at any moment, for instance when the program has begun and its process id is not known yet.
    """

    def __init__(self) -> None:
        self.asked = self.kills = 0
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Stop":
        self.before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: object) -> None:
        self.asked += 1
        self.kills += number == signal.SIGINT or self.asked > 1
        self.end()

    def end(self) -> None:
        """Ends the program, if that was asked; at the second time whether it wants or not."""
        if self.kills and self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM if self.kills == 1 else signal.SIGKILL)


def _trace_context(properties: str | None) -> dict[str, str | None]:
    """The variables for the program: those of the message, not those of this process.  Of another form than that of W3C Trace Context, they are left out."""
    try:
        found = json.loads(properties, parse_int=str) if properties else None  # int() refuses those that are very long
    except RecursionError:  # nested deeper than this interpreter reads
        found = None
    given = found if isinstance(found, dict) else {}
    parent, state = (value if isinstance(value := given.get(name), str) else "" for name in ("traceparent", "tracestate"))
    good = common.TRACEPARENT.fullmatch(parent)
    return {"TRACEPARENT": parent if good else None, "TRACESTATE": state if good and common.TRACESTATE.fullmatch(state) else None}


def _handed_over(job: Job, message: dict[str, Any], stop: _Stop) -> tuple[int | None, str]:
    """Exit code of the program, and what it said last; null: it could not be started, so the attempt has failed, and the next message has its turn."""
    own = {
        "PGAQ_QUEUE": job.queue, "PGAQ_CONSUMER": job.consumer or "", "PGAQ_MSGID": message["msgid"], "PGAQ_ATTEMPTS": str(message["attempts"]),
        "PGAQ_PRIORITY": str(message["priority"]), "PGAQ_ENQUEUE_TIME": message["enqueue_time"].isoformat(),
    }  # fmt: skip
    # UTF-8 also where the locale has fewer characters
    environment: dict[str, str | bytes] = {**os.environ, **{name: value.encode(errors="surrogateescape") for name, value in own.items()}}
    for name, value in {"PGAQ_KEY": message["key"], **_trace_context(message["properties"])}.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value.encode()
    values = {"PGAQ_CORRELATION": message["correlation"] or "", "PGAQ_PROPERTIES": message["properties"] or ""}
    large = {name: value.encode() for name, value in values.items() if len(value.encode()) > LARGE}
    try:
        with contextlib.ExitStack() as ends:
            if large:
                directory = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="pgaq-")))
            for name, value in values.items():
                if name in large:
                    (directory / name).write_bytes(large[name])
                    environment.pop(name, None)
                    environment[f"{name}_FILE"] = str(directory / name)
                else:
                    environment[name] = value.encode()
            return _program(job, message, environment, stop)
    except OSError as error:
        return None, f"the program could not be started: {error.strerror or error}"


def _program(job: Job, message: dict[str, Any], environment: dict[str, str | bytes], stop: _Stop) -> tuple[int, str]:
    """Exit code of the program, and what it said last on standard error."""
    # in a session of its own: Ctrl-C in the terminal reaches this process alone, which then ends the program
    process = subprocess.Popen(
        job.program or "", shell=True, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    stop.process = process
    stop.end()  # if it was asked meanwhile
    _, said = process.communicate(_bytes(message["payload"]))
    words = said.decode(errors="replace").replace("\0", "\ufffd").strip()
    if words:
        if sys.stderr.isatty():
            text.say(words.replace("\n", " | "), sys.stderr)
        else:
            sys.stderr.write(words + "\n")
    last = words.splitlines()[-1] if words else ""
    code = process.returncode
    ended = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
    return code if code >= 0 else 128 - code, f"{ended}: {last}" if last else ended


class _Heartbeat:
    """Extends a lease while its program runs, on a connection of its own."""

    def __init__(self, job: Job, message: dict[str, Any]) -> None:
        self.job, self.message = job, message
        self.over, self.lost = threading.Event(), False
        self.info = chosen().dbname
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "_Heartbeat":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _beat(self) -> None:
        conn: db.Connection | None = None
        query = "SELECT result FROM aq.extend(%s, ARRAY[%s::uuid], %s, %s, consumer => %s)"
        given = [self.job.queue, self.message["msgid"], self.message["receipt"], self.job.lease, self.job.consumer]
        while not self.over.wait(self.job.lease.total_seconds() / 3):
            try:
                if conn is None or conn.closed:
                    conn = db.connect(db.conninfo(self.info) if self.info else "", fallback_application_name="pgaq", prepare_threshold=None)
                if db.value(conn, query, given) == "stale":
                    self.lost = True
                    break
            except db.Error:
                continue  # again at the next beat; when the lease is over, the acknowledgement says so
        if conn is not None:
            conn.close()
