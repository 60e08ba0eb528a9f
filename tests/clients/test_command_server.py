"""What the command shows of the server: status, doctor, top, reports, traces."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from conftest import put, until
from pgaq import db
from pgaq.command.doctor import findings
from pgaq.server import Server
from test_command import COMMAND, Result, client, pgaq, roles  # noqa: F401 (fixtures, too)

pytestmark = pytest.mark.filterwarnings("ignore:.autocompletion.:DeprecationWarning")  # typer 0.7 has no other name for it


def test_status(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    pgaq("send", queue, "1")
    state = pgaq("status", "--json").json
    assert next(row for row in state["queues"] if row["queue"] == queue)["backlog"] == 1
    assert state["server"]["pgaq"] and state["message_cache"] and "waits" in state and state["notes"] == []
    assert queue in pgaq("status").out
    assert pgaq("status", "--all").out.count("_exceptions") > pgaq("status").out.count("_exceptions ")
    pgaq("queue", "stop", queue)
    assert {"rule": "stopped", "case": queue} in [
        {key: each[key] for key in ("rule", "case")} for each in pgaq("status", "--json").json["advice"]
    ]


def test_status_of_other_roles(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    """What a role may not see says so, the rest is there."""
    seen = pgaq("status", user="nothing")
    assert "Sessions: permission denied; it takes membership in pg_monitor." in seen.err and "no queue" in seen.out
    assert [note.split(":")[0] for note in pgaq("status", "--json", user="nothing").json["notes"]] == ["Sessions", "Waits"]
    assert queue in pgaq("status", user="watcher").out
    doctor = pgaq("doctor", "--json", user="nothing").json
    assert "monitor" in [each["rule"] for each in doctor["findings"]] and "worker" in doctor["not_examined"]


def test_doctor(pgaq: Callable[..., Result]) -> None:
    found = pgaq("doctor", "--json").json
    assert found["client"]["psycopg"] and found["tables"]["tables"] >= 0 and found["not_examined"] == []
    assert "fsync" in [each["case"] for each in found["findings"]] and found["findings"][0]["do"]
    assert "Extension" in pgaq("doctor").out


def test_pause(pgaq: Callable[..., Result], queue: str) -> None:
    assert pgaq("queue", "pause", queue, "--reason", "under repair").out == f"Queue {queue} is paused.\n"
    found = next(row for row in pgaq("queue", "list", queue, "--json").json)
    assert (found["state"], found["pause_reason"]) == ("paused", "under repair") and found["paused"] and found["paused_by"]
    assert "under repair" in pgaq("queue", "show", queue).out
    assert pgaq("queue", "stop", queue, "--dequeue", "--json").json["state"] == "stopped for dequeue"
    assert pgaq("queue", "list", queue, "--json").json[0]["state"] == "no dequeue, paused"
    pgaq("queue", "start", queue)
    assert pgaq("queue", "resume", queue, "--json").json == {"queue": queue, "consumer": None, "state": "resumed"}
    assert pgaq("queue", "list", queue, "--json").json[0]["state"] == "started"


def test_a_long_pause(server: Server, queue: str) -> None:
    """A pause is a note; after five minutes, with messages that wait, it is a warning, and nothing else is said of them."""

    def found() -> list[tuple[str, str]]:
        with server.connect() as conn:
            return [(each["rule"], each["found"]) for each in findings(conn, thorough=False)[0] if each["case"] == queue]

    with server.connect() as conn:
        conn.execute("SELECT aq.enqueue(%s, '1'), aq.enqueue(%s, '2')", [queue, queue])
        conn.execute("SELECT aq.pause(%s, reason => 'under repair')", [queue])
        ((rule, note),) = found()
        assert rule == "paused" and "(under repair), and 2 messages wait" in note
        conn.execute("UPDATE aq_internal.queue SET paused = now() - interval '301 seconds' WHERE queue_name = %s", [queue])
        ((rule, warning),) = found()
        assert rule == "paused_long" and "it has been paused for 30" in warning
        conn.execute("SELECT aq.purge_queue(%s)", [queue])
        ((rule, note),) = found()
        assert rule == "paused" and "no message waits" in note
        conn.execute("SELECT aq.resume(%s)", [queue])
        assert not found()


def test_commands_that_the_doctor_names_can_be_copied(server: Server, pgaq: Callable[..., Result]) -> None:
    """With the names that they need, whatever these are; the shell and SQL take them as they are."""

    def advice(rule: str) -> str:
        findings = [
            each for each in pgaq("doctor", "--json", ok=False).json["findings"] if each["rule"] == rule and "$HOME" in (each["case"] or "")
        ]
        return findings[0]["do"].partition(": ")[2] if findings else ""

    def shell(words: str) -> None:
        assert words.startswith("pgaq ")
        subprocess.run(
            ["sh", "-c", shlex.join(COMMAND) + words.removeprefix("pgaq")],
            env={**os.environ, **server.environment()},
            check=True,
            capture_output=True,
        )

    odd, name = "it's \\ $HOME", '-> "$HOME" it\'s'
    with server.connect() as conn:
        conn.execute(
            "SELECT aq.create_queue(%(odd)s), aq.create_queue(%(odd)s || ' 2', exception_queue => %(odd)s), aq.stop_queue(%(odd)s)",
            {"odd": odd},
        )
        shell(advice("stopped"))
        assert db.value(conn, "SELECT enqueue_enabled AND dequeue_enabled FROM aq.queues WHERE queue_name = %s", [odd])
        conn.execute("SELECT aq.enqueue(%s, '1')", [odd + " 2"])
        msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 min')", [odd + " 2"]).fetchone() or ()
        conn.execute("SELECT aq.reject(%s, ARRAY[%s::uuid], %s)", [odd + " 2", msgid, receipt])
        until(lambda: advice("dead_letters"), "a dead letter")
        listed, _, moved = advice("dead_letters").partition(". To put them back: ")
        shell(listed)
        shell(moved)
        assert db.value(conn, "SELECT count(*) FROM aq.dequeue(%s)", [odd + " 2"]) == 1
        conn.execute(
            "SELECT aq.create_queue(%(odd)s || ' 3', multiple_consumers => true), aq.subscribe(%(odd)s || ' 3', %(name)s, rule => '1 / priority > 0')",
            {"odd": odd, "name": name},
        )
        conn.execute("SELECT aq.enqueue(%s, '1', priority => 0)", [odd + " 3"])
        shell(advice("rule_errors").rpartition(": ")[2].replace("CONDITION", "'priority > 0'"))
        assert db.value(conn, "SELECT rule FROM aq.subscribers WHERE consumer = %s", [name]) == "priority > 0"
        conn.execute("SELECT aq.pause(%s, %s, %s)", [odd + " 3", name, odd])
        shell(advice("paused"))
        assert not advice("paused") and db.value(conn, "SELECT paused FROM aq.subscribers WHERE consumer = %s", [name]) is None
        conn.execute("SELECT aq.pause(%s)", [odd + " 3"])
        shell(advice("paused"))
        assert not advice("paused")
        conn.execute("SELECT aq.schedule(%(odd)s, %(odd)s, '{}', every => '1 s'), aq.stop_queue(%(odd)s)", {"odd": odd})
        until(lambda: advice("schedule"), "a failure of the schedule")
        shell(advice("schedule"))
        conn.execute(
            "SELECT aq.drop_queue(%(odd)s || ' 2', force => true), aq.drop_queue(%(odd)s || ' 3', force => true), aq.drop_queue(%(odd)s, force => true)",
            {"odd": odd},
        )


def test_top_on_a_pipe(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    frames = pgaq("top", "--json", "--times", "2", "--every", "0.1").lines
    assert len(frames) == 2 and queue in [row["queue"] for row in frames[0]["rows"]]
    counted = pgaq("top", "--view", "latches", "--json", "--times", "2", "--every", "0.1").lines[1]["rows"]
    assert counted and all(row["gets per second"] >= 0 for row in counted if row["gets per second"] is not None)
    assert queue in pgaq("top").out
    assert pgaq("top", "--view", "nothing", ok=False).code == 2
    # nothing was enqueued between the readings: the rate is not the average since the queue came into use
    pgaq("send", queue, "1", "2", "3")
    first, second = (
        next(row for row in frame["rows"] if row["queue"] == queue)
        for frame in pgaq("top", "--json", "--times", "2", "--every", "1.1").lines
    )
    assert (first["enqueue_rate"], second["enqueue_rate"], second["enqueued"]) == (None, 0, 3)
    hidden = pgaq("top", "--view", "latches", user="nothing")
    assert hidden.out == "" and "pg_monitor" in hidden.err, "not: no latch was got"


def test_reports(pgaq: Callable[..., Result], queue: str, tmp_path: Path) -> None:
    assert pgaq("report", "awr", ok=False).code == 6
    first = pgaq("snapshot", "--json").json["snapshot"]
    pgaq("send", queue, "1")
    second, third = (pgaq("snapshot", "take", "--json").json["snapshot"] for _ in range(2))
    assert [row["snap_id"] for row in pgaq("snapshot", "list", "--json").json] == [third, second, first]
    assert pgaq("report", "awr", str(first), str(second), "--json").json["kind"] == "awr"
    assert f"Snapshots {second} to {third}" in pgaq("report", "awr").out
    assert "Comparison" in pgaq("report", "diff").out
    assert pgaq("report", "ash", "--last", "1h", "--json").json["kind"] == "ash"
    assert pgaq("report", "rtpctx", "--seconds", "0.1", "--json").json["sections"]
    page = tmp_path / "report.html"
    assert pgaq("report", "awr", "--html", str(page)).out == f"Wrote {page}.\n"
    assert page.read_text().startswith("<!DOCTYPE html>") and pgaq("report", "ash", "--html", "-").out.startswith("<!DOCTYPE html>")
    assert pgaq("report", "awr", "--html", str(tmp_path / "no" / "page"), ok=False).code == 2
    assert pgaq("report", "awr", "1", ok=False).code == 2
    assert pgaq("report", "awr", "998", "999", ok=False).code in (1, 6)


def test_trace(pgaq: Callable[..., Result], server: Server, queue: str) -> None:
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.enqueue(%s, '1')", [queue])
        pid = str(conn.info.backend_pid)
        traced = pgaq("trace", pid, "--seconds", "0", "--json", "--histogram").json
        assert traced["summary"] and traced["objects"] == [] and traced["histogram"] == []
        assert pgaq("trace", pid, "--seconds", "0", "--operation", "latch").code == 0
    assert pgaq("trace", "1", ok=False).code == 6


def test_trace_context(pgaq: Callable[..., Result], server: Server, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages get that of the options, or else of the environment; a program gets that of its message, and no other."""
    one, two, three = (f"00-{digit * 32}-{digit * 16}-01" for digit in "123")
    pgaq("send", queue, "0")
    pgaq("send", queue, "1", "--traceparent", one, "--tracestate", "a=1")
    monkeypatch.setenv("TRACEPARENT", two)
    pgaq("send", queue, "2")
    monkeypatch.setenv("TRACESTATE", "b=2")
    pgaq("send", queue, "3", "--properties", '{"k": 1}')
    pgaq("send", queue, "4", "--properties", f'{{"traceparent": "{three}"}}')
    monkeypatch.setenv("TRACESTATE", "?")
    pgaq("send", queue, "5")
    monkeypatch.setenv("TRACEPARENT", "?")
    pgaq("send", queue, "6")
    assert 'invalid value for parameter "pgaq.traceparent"' in pgaq("send", queue, "7", "--traceparent", "?", ok=False).err
    assert (
        'invalid value for parameter "pgaq.tracestate"' in pgaq("send", queue, "7", "--traceparent", one, "--tracestate", "?", ok=False).err
    )
    assert "--tracestate is given without --traceparent" in pgaq("send", queue, "7", "--tracestate", "a=1", ok=False).err
    got = pgaq("browse", queue, "--json").json
    expected = [
        None, {"traceparent": one, "tracestate": "a=1"}, {"traceparent": two}, {"k": 1, "traceparent": two, "tracestate": "b=2"}, {"traceparent": three},
        {"traceparent": two}, None,
    ]  # fmt: skip
    assert [row["properties"] for row in sorted(got, key=lambda row: int(row["payload"]))] == expected
    with server.connect() as conn:
        put(conn, queue, 7, properties='{"traceparent": 1, "tracestate": ["a"]}')
        # of somebody who wants to harm the program, or whoever receives the message
        for n, (parent, state) in enumerate(
            [(f"{one}\nX", "a=1"), ("\U0001f600" * 32767, "a=1"), (one, "a=1\nX=2"), (one, "\U0001f600" * 32767)], 8
        ):
            put(conn, queue, n, properties=json.dumps({"traceparent": parent, "tracestate": state}))
        put(conn, queue, 12, properties=f'{{"n": {"9" * 5000}, "traceparent": "{one}", "tracestate": "a=1"}}')
    pgaq("receive", queue, "--all", "--exec", f"""echo "$(cat) ${{TRACEPARENT-unset}} ${{TRACESTATE-unset}}" >> {tmp_path}/said""")
    said = [f"{n} {(each or {}).get('traceparent', 'unset')} {(each or {}).get('tracestate', 'unset')}" for n, each in enumerate(expected)]
    assert sorted((tmp_path / "said").read_text().splitlines()) == sorted(
        [*said, *(f"{n} unset unset" for n in (7, 8, 9)), f"10 {one} unset", f"11 {one} unset", f"12 {one} a=1"]
    )


def test_a_program_in_a_locale_of_few_characters(server: Server, queue: str, tmp_path: Path) -> None:
    """Messages with others do not end the command."""
    with server.connect() as conn:
        put(conn, queue, 1, properties='{"price": "5 \u20ac"}', correlation="\u4e2d")
    words = [*COMMAND, "receive", queue, "--all", "--exec", f'echo "$PGAQ_PROPERTIES $PGAQ_CORRELATION" > {tmp_path}/said']
    environment = {**os.environ, **server.environment(), "LC_ALL": "xx_XX.ISO-8859-1", "PYTHONUTF8": "0"}
    done = subprocess.run(words, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_bytes() == b'{"price": "5 \xe2\x82\xac"} \xe4\xb8\xad\n'
