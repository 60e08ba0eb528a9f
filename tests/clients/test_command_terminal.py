"""The command pgaq in a real terminal: wide, narrow, without colors; and what it writes into a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Iterator

import pytest

from conftest import put, until
from pgaq import db
from pgaq.server import Server

pexpect = pytest.importorskip("pexpect", reason="missing: python3-pexpect")

ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>]|\([A-Z])")
COLOR = re.compile(r"\x1b\[(\d+;)*[34]\d")


class Terminal:
    """A command in a terminal of that size; what is on the screen is read as text."""

    def __init__(self, server: Server, columns: int, *arguments: str, **environment: str) -> None:
        env = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")},
            **server.environment(),
        }
        env |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        self.child = pexpect.spawn(
            sys.executable, ["-m", "pgaq", *arguments], dimensions=(24, columns), env=env, encoding="utf-8", timeout=60
        )
        self.raw = ""

    def key(self, key: str, *expected: str) -> str:
        """Press a key; returns the text up to what is expected, which the key must have brought."""
        self.child.send(key)
        return self.see(*expected)

    def see(self, *expected: str) -> str:
        text = ""
        for pattern in expected:
            self.child.expect(pattern)
            text += self.child.before + self.child.after
        self.raw += text
        return ESCAPE.sub("", text)

    def end(self) -> tuple[int, str]:
        """The exit code and the rest of the output."""
        self.child.expect(pexpect.EOF)
        self.raw += self.child.before
        self.child.close()
        return self.child.exitstatus, ESCAPE.sub("", self.child.before)


@pytest.fixture(scope="module")
def busy(server: Server) -> Iterator[str]:
    """A queue with messages, and a topic with a long name and rules."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('busy'), aq.create_queue('a_topic_with_a_long_name', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('a_topic_with_a_long_name', 'archive', rule => 'priority > 0')")
        put(conn, "busy", {"n": 1}, {"n": 2}, {"text": "x" * 200})
        put(conn, "a_topic_with_a_long_name", 1)
    yield "busy"


def test_top(server: Server, busy: str) -> None:
    """Views, rows, drilling down and back, order, pause, help, quit."""
    term = Terminal(server, 110, "top", "--every", "60")
    term.see("1 queues", "every 60 s", "Queues: 2, by Backlog|Queues: 4, by Backlog", "busy")
    assert "Sessions" in term.key("2", "Sessions: [0-9]+, by For")
    term.key("3", "Waits: [0-9]+, by Time")
    term.key("4", "Latches: [0-9]+, by Sleeps", "shard stream")
    term.key("\r", "Children of the latch of [a-z ]+: [0-9]+", "Misses by location of")
    term.key("\x1b", "Latches: [0-9]+, by Sleeps")
    term.key("1", "Queues: [0-9]+, by Backlog", "busy")
    term.key("s", "by Ready")
    term.key("r", "by Ready upwards")
    term.key("S", "by Backlog upwards")
    term.key("r", "by Backlog")
    term.key("\r", "Consumers of busy: 1", "Shards of busy")
    term.key("\x7f", "Queues: [0-9]+")
    term.key("\x1b[B", "Queues: [0-9]+")
    term.key("\r", "Consumers of a_topic_with_a_long_name: 1", "archive")
    term.key("\x1b[D", "Queues: [0-9]+")
    term.key("p", "paused")
    term.key("p", "every 60 s")
    term.key("+", "every 60 s")
    term.key("-", "every 30 s")
    term.key("?", "look into it")
    term.key("?", "Queues: [0-9]+")
    term.child.send("q")
    assert term.end()[0] == 0
    assert COLOR.search(term.raw) is None or "\x1b[?1049h" in term.raw  # it uses the other screen, and leaves it
    assert "\x1b[?1049l" in term.raw


def test_top_tells_buffered_from_persistent(server: Server) -> None:
    """In a narrow terminal, too."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('mixed'), aq.enqueue('mixed', '1', delivery_mode => 'buffered')")
        put(conn, "mixed", *range(20))  # more than the others have, so it is the first
    term = Terminal(server, 60, "top", "--every", "60")
    term.see("Queues: [0-9]+, by Backlog", "mixed")
    shown = term.key("\r", "Consumers of mixed: 2", "Shards of mixed")
    assert "persistent" in shown and "buffered" in shown
    term.child.send("q")
    assert term.end()[0] == 0
    with server.connect() as conn:
        conn.execute("SELECT aq.drop_queue('mixed', force => true)")


def test_top_shows_waiting_sessions(server: Server, busy: str) -> None:
    """A session that waits is seen with its event, and inside it its waits."""
    with server.connect(application_name="worker 7") as worker, server.connect() as conn:
        worker.execute("SELECT aq.enqueue('busy', '1')")
        term = Terminal(server, 110, "top", "--view", "sessions", "--every", "60")
        term.see("Sessions: [0-9]+", "worker 7")
        term.key("\r", "Waits of the session of [0-9]+", "Statistics of the session of [0-9]+", "enqueue")
        term.child.send("q")
        assert term.end()[0] == 0
        assert until(
            lambda: not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgaq'"), "its connection is closed"
        )


def test_top_is_left_by_ctrl_c(server: Server, busy: str) -> None:
    """The terminal is as it was; the exit code is the one of Ctrl-C."""
    term = Terminal(server, 80, "top", "--every", "60")
    term.see("busy")
    term.child.sendintr()
    assert term.end()[0] == 130 and "\x1b[?1049l" in term.raw and "\x1b[?25h" in term.raw


def test_top_loses_its_connection(server: Server, busy: str) -> None:
    """The terminal is as it was, and one line says what happened."""
    term = Terminal(server, 100, "top", "--every", "60")
    term.see("busy")
    with server.connect() as conn:
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgaq'")
    term.child.send(" ")
    code, text = term.end()
    assert code == 3 and "\x1b[?1049l" in term.raw and "pgaq: the connection is lost" in text


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["queue", "list"],
        ["queue", "show", "busy"],
        ["browse", "busy"],
        ["subscriber", "list"],
        ["doctor"],
        ["top", "--times", "1"],
    ],
    ids=lambda words: " ".join(words),
)
def test_fits_the_terminal(server: Server, busy: str, arguments: list[str], columns: int) -> None:
    """No line is wider than the terminal, and the names are there."""
    code, text = Terminal(server, columns, *arguments).end()
    assert code == 0 and ("busy" in text or "archive" in text or "Extension" in text or "Payload" in text)
    assert [line for line in text.splitlines() if len(line.rstrip()) > columns] == []


def test_long_columns_give_first(server: Server) -> None:
    """A long error does not hide the other columns of a narrow table."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('failing'), aq.enqueue('failing', to_jsonb('payload'::text))")
        row = conn.execute("SELECT msgid, receipt FROM aq.dequeue('failing', lease => '1 hour')").fetchone()
        conn.execute("SELECT aq.reject('failing', ARRAY[%s::uuid], %s, error => %s)", [*(row or ()), "out of paper " * 20])
    code, text = Terminal(server, 60, "dead", "list", "failing").end()
    assert code == 0 and "rejected" in text and "payload" in text and "out of paper" in text
    assert [line for line in text.splitlines() if len(line.rstrip()) > 60] == []


def test_colors(server: Server, busy: str) -> None:
    """Colors in a terminal; none with NO_COLOR, with --no-color, or in a pipe."""
    with server.connect() as conn:
        conn.execute("SELECT aq.stop_queue('busy')")
    try:
        found = {}
        for name, arguments, environment in (("plain", [], {}), ("variable", [], {"NO_COLOR": "1"}), ("option", ["--no-color"], {})):
            term = Terminal(server, 100, "doctor", *arguments, **environment)
            assert term.end()[0] == 0
            found[name] = bool(COLOR.search(term.raw))
        assert found == {"plain": True, "variable": False, "option": False}
    finally:
        with server.connect() as conn:
            conn.execute("SELECT aq.start_queue('busy')")
    piped = subprocess.run(
        [sys.executable, "-m", "pgaq", "browse", "busy"],
        env={**os.environ, **server.environment()},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "\x1b" not in piped and "x" * 200 in piped  # nothing is cut in a pipe


def test_payload_cannot_steer_the_terminal(server: Server, busy: str) -> None:
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('evil', 'text'), aq.enqueue('evil', E'\\x1b]0;owned\\x07\\x1b[2J')")
    for arguments in (["browse", "evil"], ["receive", "evil"]):
        term = Terminal(server, 100, *arguments)
        assert term.end()[0] == 0 and "\x1b]0;" not in term.raw and "owned" in term.raw


def test_questions(server: Server, busy: str) -> None:
    """What loses messages is asked for; no is no."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('asked'), aq.enqueue('asked', '1')")
    for answer, code, left in (("n", 1, 1), ("y", 0, 0)):
        term = Terminal(server, 100, "queue", "purge", "asked")
        term.see("Remove all messages of queue .asked.")
        term.child.sendline(answer)
        assert term.end()[0] == code
        with server.connect() as conn:
            assert db.value(conn, "SELECT count(*) FROM aq.browse('asked')") == left


def test_help_in_a_narrow_terminal(server: Server) -> None:
    code, text = Terminal(server, 60, "receive", "--help").end()
    assert code == 0 and "--exec" in text and "--dbname" in text
    assert [line for line in text.splitlines() if len(line.rstrip()) > 60] == []


def test_nothing_to_send(server: Server, busy: str) -> None:
    """A terminal as standard input is no source of messages."""
    code, text = Terminal(server, 200, "send", "busy").end()
    assert code == 2 and text.startswith("pgaq: there is nothing to send.")
