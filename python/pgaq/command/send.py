"""pgaq send: messages from arguments, files, lines and standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple

import typer

from pgaq import db, text
from pgaq.command import common, output
from pgaq.command.common import FAILURE, QUEUE, USAGE, Failure, asking, chosen, command, duration, span

# payload, options of its own, and where it was read (empty: the only argument)
Message = Tuple[bytes, Dict[str, Any], str]

# keys of a message in the form of pgaq receive --json that are options of its own
OWN = ("priority", "correlation", "key", "properties")
SETTABLE = {*OWN, "delay", "run_at", "expiration", "recipients", "exception_queue"}

SET_LOCAL = "SELECT set_config(%s, %s, true)"


def add_to(app: typer.Typer) -> None:
    command(app, "send")(send)


def send(
    queue: str = QUEUE,
    payloads: Optional[List[str]] = typer.Argument(
        None, metavar="[PAYLOAD...]", help="Each is a message; without any, standard input is read, a message per line.", show_default=False
    ),
    files: Optional[List[str]] = typer.Option(
        None, "--file", "-f", metavar="FILE", help="A message is the whole content of the file (- standard input).", show_default=False
    ),
    lines: Optional[List[str]] = typer.Option(
        None,
        "--lines",
        "-l",
        metavar="FILE",
        help="Each line of the file is a message: NDJSON for jsonb (- standard input).",
        show_default=False,
    ),
    messages: Optional[List[str]] = typer.Option(
        None,
        "--messages",
        "-m",
        metavar="FILE",
        help="Lines as pgaq receive --json writes them: payload, priority, correlation, key, properties, delay, ...",
        show_default=False,
    ),
    priority: Optional[int] = typer.Option(None, "--priority", "-p", help="0 to 9, smaller goes first.", show_default="1"),
    delay: Optional[str] = duration(None, "--delay", help="Time until the message is ready."),
    run_at: Optional[str] = typer.Option(None, "--at", metavar="TIME", help="Time at which it becomes ready.", show_default=False),
    expiration: Optional[str] = duration(None, "--expires", help="Time after which it is a dead letter."),
    correlation: Optional[str] = typer.Option(None, "--correlation", help="A text by which consumers find it.", show_default=False),
    key: Optional[str] = typer.Option(
        None, "--key", metavar="TEXT", help="What it belongs to: messages of one key keep their order.", show_default=False
    ),
    properties: Optional[str] = typer.Option(None, "--properties", metavar="JSON", help="Free properties.", show_default=False),
    recipients: Optional[List[str]] = typer.Option(
        None, "--to", metavar="NAME", help="Recipient of a topic, instead of the subscribers; repeatable.", show_default=False
    ),
    sender: Optional[str] = typer.Option(None, "--sender", help="Name of the sender.", show_default=False),
    producer: Optional[str] = typer.Option(
        None, "--producer", help="Name by which messages of several sessions keep their order.", show_default=False
    ),
    traceparent: Optional[str] = typer.Option(
        None,
        "--traceparent",
        help="Trace context of messages that have none: 00-TRACE-PARENT-FLAGS, as in W3C Trace Context.",
        show_default="the variable TRACEPARENT",
    ),
    tracestate: Optional[str] = typer.Option(
        None, "--tracestate", help="Further trace context, with --traceparent.", show_default="the variable TRACESTATE"
    ),
    buffered: bool = typer.Option(False, "--buffered", help="Not logged: faster, and lost in a crash."),
    rate: Optional[float] = typer.Option(None, "--rate", min=0.001, help="Maximum number of messages per second.", show_default=False),
    batch: int = typer.Option(100, "--batch", min=1, help="Messages per transaction."),
    print_ids: bool = typer.Option(False, "--ids", help="Write the id of each message."),
) -> None:
    """Enqueue messages."""
    options: dict[str, Any] = {
        "priority": priority, "delay": span(delay), "run_at": run_at, "expiration": span(expiration), "correlation": correlation, "key": key,
        "properties": _json(properties, "--properties"), "recipients": recipients or None, "sender": sender, "producer": producer,
        "delivery_mode": "buffered" if buffered else None,
    }  # fmt: skip
    if not (payloads or files or lines or messages):
        if sys.stdin.isatty():
            raise Failure(
                "there is nothing to send", "Give payloads, --file, --lines or --messages, or write lines into standard input", USAGE
            )
        lines = ["-"]
    sent: list[str | None] = []
    number = 0
    with asking() as conn:
        kind = common.queue_type(conn, queue)["payload_type"]
        context = _trace_context(conn, traceparent, tracestate)
        source = _source(payloads or [], files or [], lines or [], messages or [], kind)
        try:
            for chunk in _chunks(source, _step(rate, batch), rate):
                ids = _send(conn, queue, kind, chunk, options, context)
                number += len(ids)
                if print_ids and not chosen().json:
                    for each in filter(None, ids):
                        text.say(each)
                    sys.stdout.flush()
                if len(sent) < 100_000:
                    sent += ids
        except (Failure, db.Error) as error:
            found = error if isinstance(error, Failure) else common.failure(error, conn)
            before = f"{number} message{' was' if number == 1 else 's were'} sent before it" if number else ""
            raise Failure(found.message, common.sentences(found.do, before), found.code, found.sqlstate) from None
    unwanted = sum(each is None for each in sent)
    if chosen().json:
        output.write_json({"queue": queue, "sent": number, "unwanted": unwanted, "msgids": [each for each in sent if each]})
    elif not print_ids:
        more = f"; no subscriber wants {unwanted} of them" if unwanted else ""
        text.say(f"Sent {number} message{'' if number == 1 else 's'} to {queue}{more}.")


def _trace_context(conn: db.Connection, traceparent: str | None, tracestate: str | None) -> dict[str, str]:
    """Parameters for all messages.  An invalid one is an error as an option, and none in the environment."""
    given = [("traceparent", traceparent), ("tracestate", tracestate)]
    if traceparent is None:
        if tracestate is not None:
            raise Failure("--tracestate is given without --traceparent", "Give both: it belongs to that trace", USAGE)
        given = [(name, os.environ.get(name.upper())) for name, _ in given]
        if not common.TRACEPARENT.fullmatch(given[0][1] or ""):
            return {}
    found = {}
    for name, value in given:
        if value is None:
            continue
        try:
            db.execute(conn, SET_LOCAL, [f"pgaq.{name}", value])  # to be checked: it ends with this statement
        except db.Error:
            if traceparent is not None:
                raise
        else:
            found[f"pgaq.{name}"] = value
    return found


def _json(word: str | None, option: str) -> Any:
    if word is None:
        return None
    try:
        return text.from_json(word)
    except ValueError as error:
        raise Failure(f"{option} is not JSON: {error}", "Quote it for the shell, such as '{\"key\": 1}'", USAGE) from None


def _open(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}", code=USAGE) from None


def _source(payloads: list[str], files: list[str], lines: list[str], messages: list[str], kind: str) -> Iterator[Message | None]:
    """The messages, in the order arguments, files, lines, messages; null: no more at the moment."""
    for number, payload in enumerate(payloads, 1):
        yield payload.encode(), {}, f"payload {number}" if len(payloads) > 1 else ""
    for name in files:
        with _open(name) as file:
            yield file.read(), {}, _shown(name)
    for names, whole in ((lines, False), (messages, True)):
        for name in names:
            number = 0
            for line in _read_lines(name):
                number += line is not None
                where = f"{_shown(name)}, line {number}"
                if line is None:
                    yield None
                elif line.strip():
                    yield _message(line, where, kind) if whole else (line.rstrip(b"\r\n"), {}, where)


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def _read_lines(name: str) -> Iterator[bytes | None]:
    """The lines of a file; null where a pipe or terminal has no more at the moment."""
    with _open(name) as file:
        try:
            number = file.fileno()
            patient = name == "-" and not stat.S_ISREG(os.fstat(number).st_mode)
        except OSError:  # not a file of the system
            patient = False
        if not patient:
            yield from file
            return
        rest = b""
        while True:
            if not select.select([number], [], [], 0)[0]:
                yield None
            piece = os.read(number, 65536)
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
            if not piece:
                break
        if rest:
            yield rest


def _message(line: bytes, where: str, kind: str) -> Message:
    try:
        given = text.from_json(line)
        payload = given["payload"]
    except (ValueError, TypeError, KeyError):
        raise Failure(f"{where} is not a JSON object with a payload", "--lines sends each line as a payload", USAGE) from None
    own = {key: given[key] for key in sorted(SETTABLE & given.keys()) if given[key] is not None}
    if kind == "jsonb" or not isinstance(payload, str):
        return text.to_json(payload).encode(), own, where
    if kind == "bytea" and payload.startswith("\\x"):
        try:
            return bytes.fromhex(payload[2:]), own, where
        except ValueError:
            raise Failure(f"{where}: the payload is not bytea in hexadecimal form", code=USAGE) from None
    return payload.encode(), own, where


def _step(rate: float | None, batch: int) -> int:
    """Messages per transaction: a rate is kept to a tenth of a second."""
    return batch if rate is None else max(1, min(batch, int(rate / 10)))


def _chunks(source: Iterator[Any], step: int, rate: float | None) -> Iterator[list[Any]]:
    """The messages in pieces, each at its time; what a slow writer has written is not kept waiting for a full piece."""
    began, done = time.monotonic(), 0
    chunk: list[Any] = []
    for each in source:
        if each is not None:
            chunk.append(each)
        if len(chunk) >= step or (each is None and chunk):
            yield chunk
            done += len(chunk)
            chunk = []
            if rate is not None:
                time.sleep(max(0.0, began + done / rate - time.monotonic()))
    if chunk:
        yield chunk


def _send(
    conn: db.Connection, queue: str, kind: str, chunk: list[Message], options: dict[str, Any], context: dict[str, str]
) -> list[str | None]:
    """One transaction; the error of a message says where it was read."""
    try:
        if not context:
            return _enqueue(conn, queue, kind, chunk, options)
        with conn.transaction():  # not for the session, which others have after it behind a pooler
            for parameter in context.items():
                db.execute(conn, SET_LOCAL, parameter)
            return _enqueue(conn, queue, kind, chunk, options)
    except db.Error as error:
        found = common.failure(error, conn)
        if (found.sqlstate or "")[:2] in ("22", "23"):
            where = _first_wrong(conn, queue, kind, chunk, options)
            found.message = f"{where}: {found.message}" if where else found.message
            if kind in ("json", "jsonb") and "type json" in found.message and not found.do:
                found.do = f"Payloads of this queue are {kind}: a text has double quotes of its own, such as '\"hello\"'"
        raise found from None


def _first_wrong(conn: db.Connection, queue: str, kind: str, chunk: list[Message], options: dict[str, Any]) -> str:
    """Where the first message was read that the server refuses; empty if no single message is at fault."""

    def cast(number: int) -> None:
        db.execute(
            conn,
            f"SELECT %(values)s::text[]::{kind.replace('%', '%%')}[]",
            {"values": [payload.decode() for payload, _, _ in chunk[:number]]},
        )

    def enqueue(number: int) -> None:
        with conn.transaction(force_rollback=True):
            _enqueue(conn, queue, kind, chunk[:number], options)

    def passes(attempt: Callable[[int], None], number: int) -> bool:
        try:
            attempt(number)
        except db.Error:
            return False
        return True

    for attempt in ([cast] if kind != "bytea" else []) + ([enqueue] if any(own for _, own, _ in chunk) else []):
        if not passes(attempt, len(chunk)):
            good, bad = 0, len(chunk)
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if passes(attempt, middle) else (good, middle)
            return chunk[bad - 1][2]
    return ""


def _enqueue(conn: db.Connection, queue: str, kind: str, chunk: list[Message], options: dict[str, Any]) -> list[str | None]:
    """One call, one transaction."""
    if kind == "bytea":
        values: list[Any] = [payload for payload, _, _ in chunk]
        cast = "::bytea[]"
    else:
        values = []
        for payload, _, where in chunk:
            try:
                values.append(payload.decode())
            except UnicodeDecodeError:
                words = f'{where or "the payload"}: this is not text, and queue "{queue}" has payloads of type {kind}'
                raise Failure(words, "Create a queue with --type bytea", FAILURE) from None
        cast = "::text[]"
    given = {name: value for name, value in options.items() if value is not None}
    casts = {"properties": "::jsonb", "recipients": "::text[]", "run_at": "::timestamptz"}
    arguments = [f"{name} => %({name})s{casts.get(name, '')}" for name in given]
    parameters: dict[str, Any] = {**given, "queue": queue, "payloads": values}
    if "properties" in parameters:
        parameters["properties"] = text.to_json(parameters["properties"])
    if any(own for _, own, _ in chunk):
        arguments.append("options => %(options)s::jsonb")
        parameters["options"] = text.to_json([own for _, own, _ in chunk])
    query = f"SELECT aq.enqueue_array(%(queue)s, %(payloads)s{cast}{''.join(', ' + each for each in arguments)})::text[]"
    return db.value(conn, query, parameters)
