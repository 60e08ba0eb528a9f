"""The command pgaq: what it does, and what it writes as JSON; its errors are in test_command_errors.py."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from rich.console import Group
from rich.live import Live
from rich.text import Text

from conftest import put, until
from pgaq import db, places, text
from pgaq.command import common, main, output, rates
from pgaq.server import Server
from pgaq.subjects import RULES, SUBJECTS, UNITS

pytestmark = pytest.mark.filterwarnings("ignore:.autocompletion.:DeprecationWarning")  # typer 0.7 has no other name for it
COMMAND = [sys.executable, "-m", "pgaq"]


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def pgaq(server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the command in this process, as a client of the file's server."""
    for name, value in server.environment().items():
        if name.startswith("PG"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str, stdin: bytes = b"", user: str | None = None, ok: bool = True) -> Result:
        monkeypatch.setenv("PGUSER", user or "postgres")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main.run(list(arguments))
        out, err = capsys.readouterr()
        assert not ok or code == 0, (code, out, err)
        return Result(code, out, err)

    return run


@pytest.fixture(scope="module")
def roles(server: Server) -> None:
    with server.connect() as conn:
        conn.execute("CREATE ROLE nothing LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
        conn.execute("CREATE DATABASE plain")


class Client(subprocess.Popen[str]):
    """A running command; a test that fails ends it instead of waiting for it."""

    def __exit__(self, failure: Any, *more: Any) -> None:
        if failure is not None:
            self.kill()
        super().__exit__(failure, *more)


def client(server: Server, *arguments: str, **more: Any) -> Client:
    return Client(
        [*COMMAND, *arguments],
        env={**os.environ, **server.environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def one_line(result: Result, code: int, *words: str) -> None:
    assert result.code == code and result.err.count("\n") == 1 and result.out == "", result
    for word in words:
        assert word in result.err


# -- subjects


def parameters_of(name: str) -> dict[str, Any]:
    known = {"queue": "q", "exception_queue": "q_exceptions", "latch": "shard stream", "pid": 0, "limit": 5, "cron": "@daily"}
    return {each: known.get(each) for each in SUBJECTS[name].parameters}


@pytest.mark.parametrize("name", SUBJECTS)
def test_subject_is_complete(name: str, server: Server, roles: None) -> None:
    """Its query returns its columns, each of which has a unit and a text; another role gets them, or needs the right it names."""
    subject = SUBJECTS[name]
    assert subject.text and subject.key in [column.name for column in subject.columns]
    for column in subject.columns:
        assert column.unit in UNITS and column.text and column.title, column
    query, given = subject.query, parameters_of(name) if subject.parameters else None
    with server.connect() as conn, server.connect(user="nothing") as other:
        conn.execute("SELECT aq.create_queue('q', if_not_exists => true)")
        if "pid" in subject.parameters and name.startswith("trace"):
            given = {**(given or {}), "pid": conn.info.backend_pid}
            conn.execute("SELECT aq.trace_start(); SELECT aq.trace_stop()")
        cursor = conn.execute(query, given)
        assert {column.name for column in cursor.description or ()} >= {column.name for column in subject.columns}
        try:
            other.execute(query, {**(given or {}), "pid": other.info.backend_pid} if given and name.startswith("trace") else given)
        except db.Error as error:
            assert db.said(error)[0] in ("42501", "42704"), error
            assert subject.needs or db.said(error)[0] == "42704"
        conn.execute("SELECT aq.drop_queue('q')")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_is_complete(rule: Any, server: Server) -> None:
    with server.connect() as conn:
        cursor = conn.execute(rule.query)
        names = [column.name for column in cursor.description or ()]
    assert sorted(names)[:1] == ["case"] and "found" in names
    assert (
        rule.level in ("problem", "warning", "note")
        and rule.text.endswith(".")
        and rule.advice(dict.fromkeys(names, "x"))
        and "..." not in rule.do
    )
    for words in re.findall("pgaq ((?:queue|subscriber|schedule|dead) [a-z]+)", rule.do):
        assert f"### pgaq {words}\n" in (places.ROOT / "docs/command-options.md").read_text()


def test_values() -> None:
    from datetime import timedelta
    from decimal import Decimal

    shown = [
        (None, "count", "-"),
        (1234567, "count", "1,234,567"),
        (True, "flag", "yes"),
        (90.0, "seconds", "1.5 min"),
        (3 << 20, "bytes", "3.0 MB"),
        (0.25, "share", "25 %"),
    ]
    shown += [(12.34, "rate", "12.3"), (2500, "us", "2.5 ms"), (Decimal(7), "count", "7"), ("a\x1b[31m\nb", "text", "a\\x1b[31m\\nb")]
    shown += [
        (timedelta(seconds=number), "interval", word)
        for number, word in ((0, "0 s"), (1, "1 s"), (600, "10 min"), (90, "1.5 min"), (100, "100 s"), (86400, "1 d"), (0.25, "250 ms"))
    ]
    for value, unit, text in shown:
        assert output.drawn(value, unit) == text
    assert [output.plain(value) for value in (Decimal("1.5"), Decimal(2), timedelta(seconds=90), b"\x01")] == [1.5, 2, 90.0, "\\x01"]


def test_spans() -> None:
    for word, seconds in (("30", 30), ("1.5h", 5400), ("2 min", 120), ("500ms", 0.5), ("1d", 86400)):
        assert common.span(word).total_seconds() == seconds


# -- queues, subscribers, messages


def test_life_of_a_queue(pgaq: Callable[..., Result]) -> None:
    created = pgaq(
        "queue", "create", "life", "--json", "--comment", "for life", "--max-depth", "50", "--max-running", "3", "--rate", "1000/day"
    )
    assert created.json == {"queue": "life", "created": True}
    assert pgaq("queue", "create", "life", "--json", "--if-not-exists").json["created"] is False
    assert pgaq("queue", "create", "life", ok=False).code == 1
    found = next(row for row in pgaq("queue", "list", "lif*", "--json").json)
    assert (found["queue"], found["state"], found["exception_queue"]) == ("life", "started", "life_exceptions")
    assert pgaq("queue", "stop", "life", "--enqueue", "--json").json["state"] == "stopped for enqueue"
    refused = pgaq("send", "life", "1", ok=False)
    assert refused.code == 1 and refused.err.count("\n") == 1
    assert pgaq("queue", "stop", "life", "--json", "--wait").json["state"] == "stopped"
    assert pgaq("queue", "start", "life").out == "Queue life is started.\n"
    pgaq("send", "life", "1", "2")
    shown = pgaq("queue", "show", "life", "--json").json
    assert (shown["comment"], shown["max_depth"], shown["on_full"], shown["consumers"][0]["backlog"]) == ("for life", 50, "wait", 2)
    assert (shown["max_running"], shown["rate"]) == (3, "1000/day")
    assert shown["shard_streams"] and isinstance(shown["shards"], int)
    assert "for life" in pgaq("queue", "show", "life").out
    assert pgaq("queue", "purge", "life", ok=False).code == 2
    assert pgaq("queue", "purge", "life", "--yes", "--json", "-w", "payload = '2'").json == {"queue": "life", "removed": 1}
    one_line(pgaq("queue", "drop", "life", ok=False), 1, "use pgaq queue drop --force")
    assert pgaq("queue", "drop", "life", "--force", ok=False).code == 2
    assert pgaq("queue", "drop", "life", "--force", "-y", "--json").json["dropped"] is True


def test_distributed_queue(pgaq: Callable[..., Result]) -> None:
    pgaq("queue", "create", "wide", "--distributed")
    assert next(row for row in pgaq("queue", "list", "wide", "--json").json)["kind"] == "queue, distributed"
    shown = pgaq("queue", "show", "wide", "--json").json
    assert shown["kind"] == "queue, distributed" and shown["units"] == []
    pgaq("queue", "drop", "wide")


def test_convert(pgaq: Callable[..., Result], server: Server) -> None:
    with server.connect() as conn:
        conn.execute(
            "SELECT aq.create_queue_table('public.sorted', sort_list => 'commit_time'); SELECT aq.create_queue_table('public.plain_table')"
        )
    pgaq("queue", "create", "by_commit", "--queue-table", "public.sorted")
    pgaq("queue", "create", "parcels", "--queue-table", "public.plain_table")
    assert pgaq("queue", "convert", "by_commit", "--check", "--json").json["obstacles"]
    refused = pgaq("queue", "convert", "by_commit", ok=False)
    assert refused.code == 1 and "cannot be converted" in refused.err
    assert pgaq("queue", "convert", "parcels", "--check").out == "Queue parcels can be converted.\n"
    assert pgaq("queue", "convert", "parcels", "--json").json["converted"] is True


def test_subscribers(pgaq: Callable[..., Result]) -> None:
    pgaq("queue", "create", "news", "--topic")
    pgaq("subscriber", "add", "news", "all", "--comment", "everything")
    assert pgaq("subscriber", "add", "news", "urgent", "--rule", "priority = 0", "--json").json["subscribed"] is True
    sent = pgaq("send", "news", "1", "--json").json
    assert (sent["sent"], sent["unwanted"]) == (1, 0)
    rows = {row["consumer"]: row for row in pgaq("subscriber", "list", "news", "--json").json}
    assert (rows["all"]["backlog"], rows["urgent"]["backlog"], rows["urgent"]["rule"]) == (1, 0, "priority = 0")
    pgaq("subscriber", "alter", "news", "urgent")
    pgaq("send", "news", "2", "--to", "urgent")
    assert pgaq("receive", "news", "-c", "urgent").out == "2\n"
    assert pgaq("receive", "news", ok=False).code == 2
    assert pgaq("subscriber", "remove", "news", "all", ok=False).code == 2
    assert pgaq("queue", "pause", "news", "-c", "all").out == "Consumer all of queue news is paused.\n"
    assert [bool(row["paused"]) for row in pgaq("subscriber", "list", "news", "--json").json] == [True, False]
    assert pgaq("queue", "resume", "news").out == "Queue news is resumed, except consumers paused by name: all.\n"
    pgaq("queue", "resume", "news", "--consumer", "all")
    assert pgaq("queue", "resume", "news", "--consumer", "nobody", ok=False).code == 6
    pgaq("subscriber", "remove", "news", "all", "-y")
    pgaq("subscriber", "remove", "news", "urgent")
    assert pgaq("send", "news", "3", "--json").json["unwanted"] == 1
    assert pgaq("subscriber", "list", "news").out == "No subscriber.\n"


def test_schedules(pgaq: Callable[..., Result], queue: str) -> None:
    """Each command does what it says; a stopped schedule does not run by itself."""
    assert pgaq("schedule", "list", queue).out == "No schedule.\n"
    created = pgaq(
        "schedule",
        "create",
        "nightly",
        queue,
        '{"n": 1}',
        "--cron",
        "30 2 * * *",
        "--zone",
        "UTC",
        "--priority",
        "3",
        "--delay",
        "0",
        "--json",
    ).json
    assert created["created"] is True and "T02:30:00" in created["next_run"]
    assert pgaq("schedule", "create", "nightly", queue, "--every", "1 day", "--if-not-exists").out == "Exists already: schedule nightly.\n"
    assert pgaq("schedule", "stop", "nightly").out == "Stopped schedule nightly.\n"
    row = pgaq("schedule", "show", "nightly", "--json").json
    assert (row["state"], row["timing"], row["payload"], row["options"]["priority"]) == ("stopped", "30 2 * * *", '{"n": 1}', 3)
    msgid = pgaq("schedule", "run", "nightly", "--json").json["msgid"]
    received = pgaq("receive", queue, "--json").json
    assert (received["msgid"], received["priority"], received["properties"]["schedule"]) == (msgid, 3, "nightly")
    pgaq("schedule", "alter", "nightly", "--every", "1 month", "--payload", '{"n": 2}', "--comment", "new")
    row = pgaq("schedule", "list", queue, "--json").json[0]
    assert (row["timing"], row["payload"], row["comment"]) == ("every 1 mon", '{"n": 2}', "new")
    assert pgaq("schedule", "start", "nightly").out.startswith("Started schedule nightly; next message 2")
    assert pgaq("schedule", "show", "nightly", "--json").json["state"] == "active"
    pgaq("schedule", "pause", "nightly")
    assert pgaq("schedule", "resume", "nightly").code == 0, "names of 0.1.0"
    times = pgaq("schedule", "times", "--cron", "0 0 1 1 *", "--zone", "UTC", "-n", "3", "--json").json
    assert [row["local_time"][8:] for row in times] == ["-01-01 00:00:00"] * 3
    pgaq("schedule", "drop", "nightly")
    assert pgaq("schedule", "list", "--json").json == []


def test_ways_to_send(pgaq: Callable[..., Result], queue: str, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"file":\n 1}')
    (tmp_path / "lines").write_bytes(b'"line 1"\r\n\n"line 2"\n')
    pgaq(
        "send",
        queue,
        '"argument"',
        "--file",
        str(tmp_path / "one.json"),
        "--lines",
        str(tmp_path / "lines"),
        "--correlation",
        "c",
        "--properties",
        '{"p": 1}',
    )
    assert pgaq("send", queue, stdin=b'"in 1"\n"in 2"\n').out == f"Sent 2 messages to {queue}.\n"
    assert len(pgaq("send", queue, '"id"', "--ids").out.strip()) == 36
    assert pgaq("send", queue, "--rate", "1000", "--batch", "7", stdin=b"1\n" * 50, ok=True).out == f"Sent 50 messages to {queue}.\n"
    got = pgaq("receive", queue, "--max", "7", "--json").lines
    assert [each["payload"] for each in got] == ["argument", {"file": 1}, "line 1", "line 2", "in 1", "in 2", "id"]
    assert (got[0]["correlation"], got[0]["properties"], got[4]["correlation"]) == ("c", {"p": 1}, None)


def test_a_slow_writer(server: Server, queue: str) -> None:
    """A message is sent when its line has come, not when there are enough for a transaction."""
    with client(server, "send", queue, stdin=subprocess.PIPE) as process, server.connect() as conn:
        assert process.stdin
        for number in (1, 2):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            assert until(lambda: db.value(conn, "SELECT payload FROM aq.dequeue(%s)", [queue]), "the message") == number
        out, err = process.communicate("3", timeout=60)
        assert (out, err) == (f"Sent 3 messages to {queue}.\n", "")
        assert db.value(conn, "SELECT payload FROM aq.dequeue(%s)", [queue]) == 3


def test_messages_go_round(pgaq: Callable[..., Result], queue: str) -> None:
    """What receive --json writes, send --messages sends."""
    pgaq("send", queue, '{"n": 1}', "-p", "3", "--correlation", "x", "--properties", '{"k": true}', "--key", "")
    pgaq("send", queue, '"text"', "1.10")
    written = pgaq("receive", queue, "--all", "--json").out
    pgaq("send", queue, "-m", "-", stdin=written.encode())
    assert '"payload": 1.10' in written
    kept = ("payload", "priority", "correlation", "key", "properties")
    again = pgaq("receive", queue, "--all", "--json").out
    assert [each["key"] for each in map(text.from_json, again.splitlines())] == [None, None, ""]
    assert [[each[key] for key in kept] for each in map(text.from_json, again.splitlines())] == [
        [text.from_json(line)[key] for key in kept] for line in written.splitlines()
    ]
    wrong = pgaq("send", queue, "-m", "-", stdin=b"{}\n", ok=False)
    assert wrong.code == 2 and "standard input, line 1 is not a JSON object with a payload" in wrong.err


def test_numbers_keep_their_digits(pgaq: Callable[..., Result], queue: str) -> None:
    """Wherever JSON is read or written: trailing zeros, and more digits than a processor's number has."""
    payload, properties = '{"price": 1.10, "id": 123456789012345678901234567890.50}', '{"rate": 2.00}'
    (msgid,) = pgaq("send", queue, payload, "--properties", properties, "--json").json["msgids"]
    whole = text.from_json(f"[{payload}, {properties}]")
    for arguments in (["browse", queue], ["browse", queue, msgid], ["browse", queue, "--state", "all"]):
        shown = text.from_json(pgaq(*arguments, "--json").out)
        (found,) = shown if isinstance(shown, list) else [shown]
        assert [found["payload"], found["properties"]] == whole, arguments
        plain = pgaq(*arguments).out
        assert "1.10" in plain and "901234567890.50" in plain
    pgaq("send", queue, "--messages", "-", stdin=pgaq("receive", queue, "--json").out.encode())
    refused = pgaq("receive", queue, "--exec", 'cat > /dev/null; echo "$PGAQ_PROPERTIES" >&2; exit 65', "--json", ok=False)
    assert refused.lines[0]["error"].endswith(properties)
    dead = text.from_json(pgaq("dead", "list", queue, "--json").out)[0]
    assert [dead["payload"], dead["properties"]] == whole


def test_other_payloads(pgaq: Callable[..., Result], server: Server, tmp_path: Path) -> None:
    """Text, bytes and composite types, as they are."""
    with server.connect() as conn:
        conn.execute('CREATE TYPE "a%ride" AS (driver text, km numeric)')
    pgaq("queue", "create", "words", "--type", "text")
    pgaq("queue", "create", "blobs", "--type", "bytea")
    pgaq("queue", "create", "rides", "--type", '"a%ride"')
    blob = bytes(range(256))
    (tmp_path / "blob").write_bytes(blob)
    pgaq("send", "blobs", "-f", str(tmp_path / "blob"))
    got = pgaq("receive", "blobs", "--directory", str(tmp_path)).out.strip()
    assert Path(got).read_bytes() == blob
    assert pgaq("receive", "blobs", ok=False).code == 7
    pgaq("send", "blobs", "-f", str(tmp_path / "blob"))
    pgaq("send", "blobs", "-m", "-", stdin=pgaq("receive", "blobs", "--json").out.encode())
    with server.connect() as conn:
        assert db.value(conn, "SELECT payload FROM aq.dequeue('blobs', NULL::bytea)") == blob
    pgaq("send", "words", "böse\n5 %")
    assert pgaq("browse", "words", "--json").json[0]["payload"] == "böse\n5 %"
    assert pgaq("receive", "words").out == "böse\n5 %\n"
    pgaq("send", "words", "", " ")
    assert pgaq("receive", "words", "--all").out == "\n \n"
    pgaq("send", "rides", "(Ada,12.5)")
    assert pgaq("browse", "rides", "--json").json[0]["payload"] == "(Ada,12.5)"
    assert pgaq("receive", "rides", "--json").lines[0]["payload"] == "(Ada,12.5)"
    assert pgaq("send", "words", stdin=b"\xff\n", ok=False).code == 1


def test_error_in_the_middle(pgaq: Callable[..., Result], queue: str) -> None:
    """What was sent before an error is sent, and the error says how many."""
    failed = pgaq("send", queue, "--batch", "2", stdin=b"1\n2\n3\nno json\n5\n", ok=False)
    one_line(failed, 1, "standard input, line 4: invalid input syntax for type json", """"hello"'. 2 messages were sent before it.""")
    assert pgaq("receive", queue, "--all").out == "1\n2\n"


def test_place_of_a_wrong_message(pgaq: Callable[..., Result], queue: str, tmp_path: Path) -> None:
    """The line, the file or the argument; not where all messages have the same fault."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"1\n\n2\n3\n{\n4\n[\n")
    one_line(pgaq("send", queue, "--lines", str(lines), ok=False), 1, f"{lines}, line 5: invalid input syntax")
    one_line(pgaq("send", queue, "--file", str(lines), ok=False), 1, f"{lines}: invalid input syntax")
    one_line(pgaq("send", queue, "1", "{", ok=False), 1, "payload 2: invalid input syntax")
    one_line(pgaq("send", queue, "{", ok=False), 1, "pgaq: invalid input syntax")
    lines.write_text('{"payload": 1}\n{"payload": 2, "priority": 77}\n{"payload": 3}\n')
    one_line(pgaq("send", queue, "--messages", str(lines), ok=False), 1, f"{lines}, line 2: ", "priority")
    assert "line" not in pgaq("send", queue, "-p", "77", stdin=b"1\n2\n", ok=False).err
    lines.write_bytes(b"1\n\xff\n")
    one_line(pgaq("send", queue, "--lines", str(lines), ok=False), 1, f"{lines}, line 2: this is not text")
    assert pgaq("receive", queue, "--all").out == ""


def test_browse(pgaq: Callable[..., Result], queue: str) -> None:
    assert pgaq("browse", queue).out == "No message.\n"
    ids = pgaq("send", queue, "1", "2", "3", "--json").json["msgids"]
    assert [row["payload"] for row in pgaq("browse", queue, "--json", "--after", ids[0], "-n", "1").json] == [2]
    assert [row["payload"] for row in pgaq("browse", queue, "--json", "-w", "payload > '2'").json] == [3]
    assert pgaq("browse", queue, ids[1], "--json").json["state"] == "READY"
    assert ids[1] in pgaq("browse", queue, ids[1]).out
    pgaq("send", queue, "4", "--delay", "1h")
    assert [row["payload"] for row in pgaq("browse", queue, "--state", "waiting", "--json").json] == [4]
    assert len(pgaq("browse", queue, "--state", "all", "--json").json) == 4
    assert pgaq("browse", queue, "--state", "odd", ok=False).code == 2
    assert pgaq("browse", queue, ids[0][:-4] + "ffff", ok=False).code == 6
    for arguments in (("browse", queue, "77"), ("browse", queue, "--after", "77"), ("dead", "show", queue, "77")):
        one_line(pgaq(*arguments, ok=False), 2, "'77' is not the id of a message")


def test_rows_are_told_apart(pgaq: Callable[..., Result], server: Server, queue: str) -> None:
    """Rates belong to a row: each has a name of its own, also where a shard has several priorities, a consumer buffered messages."""
    pgaq("send", queue, "1", "2", "3", "--priority", "0")
    pgaq("send", queue, "4")
    pgaq("send", queue, "5", "--buffered")
    with server.connect() as conn:
        for name, least in (("shards", 2), ("consumers", 2)):
            rows = output.ask(conn, SUBJECTS[name], queue=queue)
            assert len({rates.key(SUBJECTS[name], row) for row in rows}) == len(rows) >= least, rows


def test_buffered_messages(pgaq: Callable[..., Result], server: Server, queue: str) -> None:
    """They are received with --messages, also after a wait, and a purge removes them, too."""
    pgaq("send", queue, "1", "--buffered")
    assert pgaq("receive", queue, "--all").out == ""
    assert pgaq("receive", queue, "--all", "--messages", "buffered").out == "1\n"
    with client(server, "receive", queue, "--follow", "--max", "2", "--messages", "persistent_or_buffered") as process:
        pgaq("send", queue, "2", "--buffered")
        pgaq("send", queue, "3")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, sorted(out.split()), err) == (0, ["2", "3"], "")
    pgaq("send", queue, "4", "--buffered")
    pgaq("send", queue, "5")
    assert pgaq("queue", "purge", queue, "-y", "--json", "--messages", "buffered").json["removed"] == 1
    pgaq("send", queue, "6", "--buffered")
    assert pgaq("queue", "purge", queue, "-y", "--json").json["removed"] == 2
    one_line(pgaq("receive", queue, "--messages", "some", ok=False), 2, "'some' is not one of persistent, buffered")
    one_line(pgaq("receive", queue, "--messages", "buffered", "--exec", "cat", ok=False), 2, "cannot be combined")


def test_receive_waits(pgaq: Callable[..., Result], server: Server, queue: str) -> None:
    """--follow takes what comes, until there are --max; without a message receive ends with its own exit code."""
    assert pgaq("receive", queue, ok=False).code == common.NOTHING
    assert pgaq("receive", queue, "--wait", "1ms", ok=False).code == common.NOTHING
    assert pgaq("receive", queue, "--all").out == ""
    with client(server, "receive", queue, "--follow", "--max", "3") as process, server.connect() as conn:
        until(lambda: db.value(conn, "SELECT waiting FROM aq.subscribers WHERE queue_name = %s", [queue]), "the command waits")
        for number in (1, 2, 3):
            db.execute(conn, "SELECT aq.enqueue(%s, %s)", [queue, str(number)])
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "1\n2\n3\n", "")


def test_interrupted_wait(server: Server, queue: str) -> None:
    with client(server, "receive", queue, "--follow") as process, server.connect() as conn:
        until(lambda: db.value(conn, "SELECT waiting FROM aq.subscribers WHERE queue_name = %s", [queue]), "the command waits")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "\npgaq: interrupted\n")
        until(
            lambda: not db.value(conn, "SELECT waiting FROM aq.subscribers WHERE queue_name = %s", [queue]),
            "its session has stopped waiting",
        )


def test_unwritten_messages_stay(server: Server, queue: str, pgaq: Callable[..., Result]) -> None:
    """The reader of the pipe has gone: the messages are in the queue."""
    pgaq("send", queue, "1", "2")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "receive", queue, "--all"], env={**os.environ, **server.environment()}, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert done.returncode == 1, done.stderr
    assert [row["attempts"] for row in pgaq("browse", queue, "--state", "all", "--json").json if row["state"] != "PROCESSED"] == [1, 1]


# -- programs


def test_exec(pgaq: Callable[..., Result], server: Server, queue: str, tmp_path: Path) -> None:
    """The exit code decides; the program has the payload and what else is known."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('exec_dead', exception_queue => 'none')")
        db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => 'exec_dead')", [queue])
    pgaq("send", queue, '"good"', "--correlation", "c1")
    program = f"cat > {tmp_path}/payload; echo $PGAQ_QUEUE $PGAQ_ATTEMPTS $PGAQ_CORRELATION > {tmp_path}/env"
    assert pgaq("receive", queue, "--exec", program, "--json").lines[0]["outcome"] == "acknowledged"
    assert (tmp_path / "payload").read_text() == '"good"' and (tmp_path / "env").read_text() == f"{queue} 0 c1\n"
    pgaq("send", queue, '"bad"')
    failed = pgaq("receive", queue, "--exec", "echo out of paper >&2; exit 3", ok=False)
    assert failed.code == 1 and "released: exit code 3: out of paper" in failed.err
    kept = pgaq("browse", queue, "--state", "ready", "--json").json[0]
    assert (kept["attempts"], kept["last_error"]) == (1, "exit code 3: out of paper")
    assert pgaq("receive", queue, "--exec", "exit 65", "--json", ok=False).lines[0]["outcome"] == "rejected"
    letters = until(lambda: pgaq("dead", "list", queue, "--json").json, "the dead letter")
    assert (letters[0]["reason"], letters[0]["last_error"], letters[0]["payload"]) == ("rejected", "exit code 65", "bad")
    assert pgaq("dead", "show", queue, letters[0]["original_msgid"], "--json").json["attempts"] == 2
    assert pgaq("dead", "show", queue, letters[0]["msgid"]).code == 0
    assert {row["exception_queue"]: row["dead_letters"] for row in pgaq("dead", "list", "--json").json}["exec_dead"] == 1
    assert "exec_dead" in pgaq("status").out
    assert "Name the queue" in pgaq("dead", "redrive", "exec_dead", ok=False).err
    assert pgaq("dead", "redrive", queue, "--json").json == {"queue": queue, "redriven": 1}
    assert pgaq("receive", queue).out == '"bad"\n'


def test_exec_with_long_values(pgaq: Callable[..., Result], server: Server, queue: str, tmp_path: Path) -> None:
    """What does not fit into an environment is in files, which are gone afterwards."""
    long, deep = "A" * 140_000, "[" * 2000 + "]" * 2000
    with server.connect() as conn:
        for options in ({"correlation": long}, {"properties": f'{{"a": "{long}"}}'}, {"properties": f'{{"a": {deep}}}'}):
            put(conn, queue, 1, **options)
    program = 'for f in "$PGAQ_CORRELATION_FILE" "$PGAQ_PROPERTIES_FILE"; do test -z "$f" || { wc -c "$f"; }; done; echo "${PGAQ_CORRELATION-unset} ${PGAQ_PROPERTIES-unset}" | cut -c 1-8'
    done = pgaq("receive", queue, "--all", "--exec", f"{{ {program}; }} >> {tmp_path}/said")
    lines = (tmp_path / "said").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["140000", "unset", "140009", "unset", '{"a":'] and done.err == "", lines
    assert not any(Path(line.split()[1]).exists() for line in lines if line[0].isdigit())


def test_exec_goes_on(pgaq: Callable[..., Result], server: Server, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that cannot be handed over, and an error that the database cannot store, are failed attempts; the messages behind them have their turn."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '1 hour')", [queue])
        put(conn, queue, "first", correlation="A" * 140_000)
    pgaq("send", queue, '"second"', '"third"')
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    failed = pgaq(
        "receive", queue, "--all", "--exec", r"""grep third > /dev/null || { printf 'a\000b' >&2; exit 3; }""", "--json", ok=False
    )
    assert [(row["outcome"], row["exit"]) for row in failed.lines] == [("released", None), ("released", 3), ("acknowledged", 0)]
    assert "No such file" in failed.lines[0]["error"] and failed.lines[1]["error"] == "exit code 3: a\ufffdb"
    assert [row["attempts"] for row in pgaq("browse", queue, "--state", "all", "--json").json if row["state"] != "PROCESSED"] == [1, 1]


def test_lease_is_extended(server: Server, queue: str, pgaq: Callable[..., Result], tmp_path: Path) -> None:
    """A program may take longer than the lease."""
    pgaq("send", queue, "1")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        client(server, "receive", queue, "--lease", "6s", "--exec", f"cat {pipe} > /dev/null", "--json") as process,
        server.connect() as conn,
    ):
        leased = "SELECT leased_until > leased_since + interval '7 s' FROM aq.messages WHERE queue_name = %s"
        until(lambda: db.value(conn, leased, [queue]), "the lease was extended")
        pipe.write_text("")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "") and json.loads(out)["outcome"] == "acknowledged"


def test_worker_is_stopped(server: Server, queue: str, pgaq: Callable[..., Result], tmp_path: Path) -> None:
    """SIGTERM lets the program finish; the message that was taken and not begun is back at once."""
    pgaq("send", queue, "1", "2")
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)
    os.mkfifo(second)
    program = f"trap 'echo ended >&2' TERM; cat {first} {second} > /dev/null"
    with client(server, "receive", queue, "--follow", "--batch", "2", "--exec", program, "--json") as process:
        with first.open("w"):  # open when the program reads
            process.send_signal(signal.SIGTERM)
        second.write_text("")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err, json.loads(out)["outcome"]) == (130, "\npgaq: interrupted\n", "acknowledged")
    kept = pgaq("browse", queue, "--json").json
    assert [(row["payload"], row["attempts"]) for row in kept] == [(2, 0)]


def test_program_is_interrupted(server: Server, queue: str, pgaq: Callable[..., Result], tmp_path: Path) -> None:
    """Ctrl-C ends the program, and its message is back at once without an attempt."""
    pgaq("send", queue, "1")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with client(server, "receive", queue, "--exec", f"cat {pipe}") as process:
        with pipe.open("w"):  # open when the program reads
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "\npgaq: interrupted\n")
    kept = pgaq("browse", queue, "--state", "all", "--json").json[0]
    assert (kept["state"], kept["attempts"]) == ("READY", 0)


def test_no_rule_reads_all_queues_for_each_queue(server: Server, roles: None) -> None:
    """The number of queues is not in the cost twice; the server says how often it has read their table.  And the rows of one queue are read without the others."""

    def scans(plan: dict[str, Any]) -> Iterator[int]:
        if plan.get("Relation Name") == "queue" and "Index Cond" not in plan and "Recheck Cond" not in plan:
            yield plan["Actual Loops"]
        for part in plan.get("Plans", []):
            yield from scans(part)

    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('many_' || i, exception_queue => 'none') FROM generate_series(1, 60) i")
        conn.execute("SELECT aq.enqueue('many_' || i, '{}'::jsonb) FROM generate_series(1, 60) i")
        # autovacuum may know that the table has two pages, which are read sooner than the index
        conn.execute("ANALYZE aq_internal.queue; SET seq_page_cost = 100")
        queries = [rule.query.replace("> 300", ">= 0").replace("= 0 AND waiting", ">= 0 AND waiting") for rule in RULES] + [
            subject.query for subject in SUBJECTS.values() if not subject.parameters
        ]
        for query in queries:
            (plan,) = db.value(conn, f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {query}")
            assert max(scans(plan["Plan"]), default=0) < 10, query
        for view in ("metrics()", "metrics('many_7')", "subscribers", "shards", "partitions"):
            (plan,) = db.value(
                conn, f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, VERBOSE) SELECT queue_name FROM aq.{view} WHERE queue_name = 'many_7'"
            )
            assert bool(re.search('"Rows Removed by Filter": [1-9]', json.dumps(plan))) == (view == "metrics()"), (view, plan)
        assert db.rows(conn, "SELECT queue_name, lag FROM aq.metrics('many_7')") == [{"queue_name": "many_7", "lag": 1}]
        conn.execute("SELECT aq.drop_queue('many_' || i, force => true) FROM generate_series(1, 60) i")


# -- names that steer a terminal


EVIL = "e\x1b]0;title\x07\x9b31m\u202e\u2028\n\rq"
BARE = re.compile(r"(?<![.\w])print\(|std(out|err)(\.buffer)?\.write\(")


def test_names_do_not_steer_the_terminal(pgaq: Callable[..., Result], server: Server) -> None:
    """Whatever a command says of a queue, consumer, schedule or message, and as JSON too."""
    with server.connect() as conn:
        db.rows(conn, "SELECT aq.create_queue(%s), aq.create_queue(%s, multiple_consumers => true)", [EVIL, EVIL + "t"])
        put(conn, EVIL, EVIL, correlation=EVIL, properties=json.dumps({EVIL: EVIL}))
    calls = [
        ["queue", "list"], ["queue", "show", EVIL], ["queue", "stop", EVIL], ["queue", "start", EVIL], ["queue", "show", "absent" + EVIL], ["status", "--all", "--last", "0"], ["top", "--times", "1"],
        ["browse", EVIL], ["receive", EVIL, "--json"], ["subscriber", "add", EVIL + "t", EVIL], ["subscriber", "list"], ["subscriber", "remove", EVIL + "t", EVIL], ["schedule", "create", EVIL, EVIL, "--every", "1d"], ["schedule", "list"],
        ["schedule", "drop", EVIL], ["send", EVIL, '"1"'], ["queue", "drop", EVIL + "t"], ["queue", "convert", EVIL, "--check"], ["queue", "drop", EVIL], ["doctor"],
    ]  # fmt: skip
    for call in calls:
        for more in ([], ["--json"]):
            done = pgaq(*call, *more, ok=False)
            assert all(line.isprintable() for line in (done.out + done.err).split("\n")), (call, more, done)
    with server.connect() as conn:
        conn.execute("DELETE FROM aq_internal.schedule")
        for name in (EVIL, EVIL + "t"):
            if db.value(conn, "SELECT count(*) FROM aq.queues WHERE queue_name = %s", [name]):
                db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


def test_one_way_to_the_terminal() -> None:
    """Only these write by another way than output.console(), output.write_json() and text.say(); of a live screen, too, only styles are control sequences."""
    ways = {
        (path.name, line.strip())
        for path in Path(common.__file__).parent.glob("*.py")
        for line in path.read_text().splitlines()
        if BARE.search(line)
    }
    assert {name for name, _ in ways} <= {"common.py", "main.py", "output.py", "receive.py", "report.py", "trace.py"} and len(ways) == 12, (
        ways
    )
    stream = io.StringIO()
    console = output._Console(file=stream, force_terminal=True, width=60, color_system="standard")
    with Live(console=console, screen=True, auto_refresh=False) as live:
        live.update(Group(Text(EVIL, style="bold"), Text.assemble((EVIL, "red"), EVIL), EVIL), refresh=True)
    console.print(EVIL)
    left = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "\\x1b]0;title" in left and all(line.isprintable() for line in re.split(r"\r?\n\r?", left)), left


# -- how it connects, and how it is installed


def test_ways_to_connect(pgaq: Callable[..., Result], server: Server, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service, a URI, a connection string, the name of a database."""
    host = server.environment()["PGHOST"]
    for name in ("PGHOST", "PGDATABASE", "PGPORT"):
        monkeypatch.setenv(name, "1" if name == "PGPORT" else "nowhere")
    port = server.environment().get("PGPORT", "5432")
    (tmp_path / "services").write_text(f"[shop]\nhost={host}\nport={port}\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    for word in (f"host={host} port={port} dbname=postgres", f"postgresql:///postgres?host={host}&port={port}", "service=shop"):
        assert queue in [row["queue"] for row in pgaq("-d", word, "queue", "list", "--json").json]
    monkeypatch.setenv("PGSERVICE", "shop")
    for name in ("PGHOST", "PGDATABASE", "PGPORT"):
        monkeypatch.delenv(name)
    assert queue in [row["queue"] for row in pgaq("queue", "list", "--json").json]


def test_service_before_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service says where its server is; PGHOST, which later versions of psycopg resolve themselves, is not another place for it."""
    (tmp_path / "services").write_text("[shop]\nhost=db.shop.example\n[any]\ndbname=x\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGHOST", "192.0.2.1")
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(db.psycopg, "connect", lambda conninfo, **_: seen.append(db.parts(conninfo) if conninfo else {}))
    db.connect("service=shop")
    db.connect("service=any")
    db.connect("service=shop host=other")
    assert "PGSERVICE" not in os.environ
    monkeypatch.setenv("PGSERVICE", "shop")
    db.connect("")
    db.connect("service=any")
    assert [each["host"] for each in seen] == ["db.shop.example", "192.0.2.1", "other", "db.shop.example", "192.0.2.1"] and os.environ[
        "PGSERVICE"
    ] == "shop"


def test_completion(server: Server, queue: str) -> None:
    """The shell completes commands, and the names of queues."""
    environment = {**os.environ, **server.environment(), "_PGAQ_COMPLETE": "complete_bash"}

    def complete(words: str, place: int) -> list[str]:
        return subprocess.run(
            COMMAND, env={**environment, "COMP_WORDS": words, "COMP_CWORD": str(place)}, capture_output=True, text=True, check=True
        ).stdout.split()

    assert complete("pgaq sta", 1) == ["status"]
    assert queue in complete(f"pgaq queue show {queue[:1]}", 3)
    assert complete("pgaq top --view l", 3) == ["latches"]
    assert complete("pgaq browse q --state le", 4) == ["leased"]
    assert complete("pgaq trace 1 --operation la", 4) == ["latch"]
    assert complete("pgaq queue grant q r d", 5) == ["dequeue"]
    assert complete("pgaq receive q --messages b", 4) == ["buffered"]
    assert complete("pgaq lab run F1", 3)[:2] == ["F1", "F10"]
    assert complete("pgaq lab load --method ", 4) == ["listen", "subscriber"]
    environment["PGDATABASE"] = "nowhere"
    assert complete("pgaq queue show ", 3) == []
    assert queue in complete("pgaq -d postgres queue show ", 5)
    shown = subprocess.run(
        [*COMMAND, "--show-completion", "bash"], env={**os.environ, **server.environment()}, capture_output=True, text=True
    )
    assert shown.returncode == 0 and "_PGAQ_COMPLETE" in shown.stdout


def test_installed(server: Server, queue: str, tmp_path: Path) -> None:
    """pip install ./python gives the command, without what is only for the tests."""
    import shutil

    source, venv = tmp_path / "python", tmp_path / "venv"
    shutil.copytree(places.ROOT / "python", source, ignore=shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__"))
    clean = {name: value for name, value in {**os.environ, **server.environment()}.items() if name != "PYTHONPATH"}

    def run(*command: object, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(word) for word in command], env=clean, cwd=tmp_path, capture_output=True, text=True, **more)

    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", venv, check=True)
    done = run(
        venv / "bin/python",
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--disable-pip-version-check",
        source,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    version = next(
        line.split("'")[1] for line in (places.ROOT / "pgaq.control").read_text().splitlines() if line.startswith("default_version")
    )
    assert run(venv / "bin/pgaq", "--version").stdout == f"pgaq {version}\n"
    assert queue in [row["queue"] for row in json.loads(run(venv / "bin/pgaq", "queue", "list", "--json").stdout)]
    assert run(venv / "bin/python", "-c", "import pgaq_proof").returncode == 1
    (installed,) = venv.glob("lib/python*/site-packages/pgaq")
    needed = [path.relative_to(source / "pgaq") for path in (source / "pgaq").rglob("*") if path.is_file() and path.suffix != ".md"]
    assert [path for path in needed if not (installed / path).exists()] == [], "also experiments, SQL and so on"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "matplotlib.py").write_text("raise ImportError")
    clean["PYTHONPATH"] = str(hidden)
    lab = run(venv / "bin/pgaq", "lab", "run", "E7", "--output", tmp_path / "lab")
    one_line(Result(lab.returncode, lab.stdout, lab.stderr), 1, "the page needs matplotlib")
    assert not (tmp_path / "lab").exists(), "nothing is measured before"
    del clean["PYTHONPATH"]
    assert "there is no source here" in run(venv / "bin/pgaq", "bench", "--quick").stderr


def test_examples_of_the_page(server: Server, pgaq: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of docs/command.md, in its order, in a database of its own."""
    import re

    page = (places.ROOT / "docs" / "command.md").read_text()
    with server.connect() as conn:
        conn.execute("CREATE DATABASE page")
    with server.connect("page") as conn:
        conn.execute("CREATE EXTENSION pgaq")
    monkeypatch.setenv("PGDATABASE", "page")
    monkeypatch.chdir(tmp_path)
    said = ""
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S):
        for line in block.splitlines():
            said += example(pgaq, line)
    assert re.search("Put [01] dead letters? back into orders.", said) and (tmp_path / "report.html").stat().st_size > 10_000


def example(pgaq: Callable[..., Result], line: str) -> str:
    """Runs a line of the page: pgaq in this process, without a process for each, its neighbours in a pipe as they are."""
    words = list(shlex.shlex(line, posix=True, punctuation_chars="|>"))
    ok = words[-2:] != ["||", "true"]
    words = words if ok else words[:-2]
    data = b""
    while words:
        end = next((number for number, word in enumerate(words) if word in ("|", ">")), len(words))
        part, mark, words = words[:end], words[end : end + 1], words[end + 1 :]
        if part[0] == "pgaq":
            data = pgaq(*part[1:], stdin=data, ok=ok).out.encode()
        else:
            data = subprocess.run(part, input=data, capture_output=True, check=True).stdout
        if mark == [">"]:
            Path(words[0]).write_bytes(data)
            break
    return data.decode()


def test_reader_has_left(server: Server, queue: str) -> None:
    """A closed pipe ends a command in silence."""
    for arguments in (
        ["bench", "--list"],
        ["bench", "--help"],
        ["lab", "list"],
        ["lab", "--help"],
        ["--help"],
        ["queue", "list"],
        ["status", "--json"],
        ["top", "--every", "0.1", "-n", "3"],
    ):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*COMMAND, *arguments], env={**os.environ, **server.environment()}, stdout=writer, stderr=subprocess.PIPE, text=True
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, ""), arguments


def test_results_of_the_benchmark_as_json(tmp_path: Path) -> None:
    """The same objects as in the files of bench/run; tables and progress go to standard error."""
    arguments = [
        "--json",
        "bench",
        "--shapes",
        "queue-100x4",
        "--contestants",
        "bare",
        "--seconds",
        "0.2",
        "--warm-up",
        "0",
        "--rounds",
        "1",
    ]
    before = set((places.ROOT / "bench/results").iterdir())
    done = subprocess.run([*COMMAND, *arguments], env={**os.environ, "PGAQ_NO_BUILD": "1"}, capture_output=True, text=True)
    lacking = re.search("package lists lack (.*) - ", done.stderr)
    if lacking:
        pytest.skip(f"missing: {lacking[1]}")
    assert done.returncode == 0, done.stderr
    [shape] = json.loads(done.stdout)
    assert shape["contestants"]["bare"]["rounds"] and "queue-100x4" in done.stderr
    assert set((places.ROOT / "bench/results").iterdir()) == before


def test_bench_and_lab(pgaq: Callable[..., Result]) -> None:
    """They take the common options; what they cannot do with one they say."""
    shown = subprocess.run([*COMMAND, "bench", "--help"], env=os.environ, capture_output=True, text=True)
    assert "usage: bench/run" in shown.stdout and shown.returncode == 0
    assert {"shape": "queue-1x4"} in pgaq("bench", "--list", "--json").json
    # PG_CONFIG is what bench/run's setup would complain of: it does not come so far
    for mistake in (["nosuch"], ["--shapes", "nosuch"]):
        said = subprocess.run(
            [*COMMAND, "bench", *mistake], env={**os.environ, "PG_CONFIG": "/nonexistent"}, capture_output=True, text=True
        )
        assert (
            said.returncode == 2
            and ("nosuch" in said.stderr or "no shape has such a name" in said.stderr)
            and "PG_CONFIG" not in said.stdout + said.stderr
        )
    one_line(pgaq("bench", "--list", "-d", "shop", ok=False), 2, "private server")
    assert "Commands" in pgaq("lab", "--help").out
    for arguments in (
        ("lab", "list", "E7", "--json", "--no-color", "-d", "shop"),
        ("-d", "shop", "--json", "--no-color", "lab", "list", "E7"),
    ):
        found = pgaq(*arguments)
        assert [each["id"] for each in found.json] == [
            "E7"
        ] and found.err == "The lab measures on private servers of its own: -d is not used.\n"
    one_line(pgaq("lab", "list", "E777", ok=False), 2, "there is no experiment, run or source E777")
    one_line(pgaq("lab", "run", "--quick", "--full", ok=False), 2, "cannot be combined")
    assert json.loads(pgaq("lab", "report", "nowhere", "--json", ok=False).err)["error"]["exit"] == 2
