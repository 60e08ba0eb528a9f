"""Mistakes and refusals: each is one line with what to do, and an exit code; the form of help, names and numbers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Callable

import click
import pytest
from typer.core import TyperGroup

from conftest import until
from pgaq import db
from pgaq.command import common, main, status
from pgaq.server import Server
from test_command import COMMAND, Client, Result, client, one_line, pgaq, roles  # noqa: F401 (fixtures, too)

pytestmark = pytest.mark.filterwarnings("ignore:.autocompletion.:DeprecationWarning")  # typer 0.7 has no other name for it


def test_no_server(pgaq: Callable[..., Result], tmp_path: Path) -> None:
    one_line(pgaq("-d", f"host={tmp_path}", "status", ok=False), 3, "pgaq: cannot connect to", "PGHOST")
    one_line(pgaq("-d", f"host={tmp_path}", "status", ok=False), 3, "No such file or directory. Is the server running")
    one_line(pgaq("status", "-d", "nowhere", ok=False), 3, 'database "nowhere" does not exist')
    one_line(pgaq("status", "-d", "host=x port=y", ok=False), 3, "port")
    error = json.loads(pgaq("status", "-d", "nowhere", "--json", ok=False).err)["error"]
    assert error["exit"] == 3 and error["do"]


def test_no_extension(pgaq: Callable[..., Result], roles: None) -> None:
    one_line(
        pgaq("queue", "list", "-d", "plain", ok=False), 4, 'database "plain" does not have the extension pgaq', "CREATE EXTENSION pgaq"
    )


def test_old_extension(pgaq: Callable[..., Result], server: Server) -> None:
    """What an older version of the extension lacks is not reported as a mistake in SQL."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE old")
    with server.connect("old") as conn:
        conn.execute("CREATE EXTENSION pgaq; SELECT aq.create_queue('q')")
        conn.execute("ALTER EXTENSION pgaq DROP VIEW aq.privileges; DROP VIEW aq.privileges")
        conn.execute("ALTER EXTENSION pgaq DROP FUNCTION aq.grant_queue; DROP FUNCTION aq.grant_queue")
        conn.execute("UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'pgaq'")
    for arguments in (("queue", "show", "q"), ("queue", "grant", "q", "nothing")):
        one_line(
            pgaq("-d", "old", *arguments, ok=False),
            4,
            f"has version 0.0.9, the command needs {common.VERSION}",
            "ALTER EXTENSION pgaq UPDATE",
        )


def test_stranger(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    """Mistakes of a first hour, each with what to do in terms of the command."""
    pgaq("queue", "create", "first_topic", "--topic")
    one_line(pgaq("send", queue, "hello", ok=False), 1, """such as '"hello"'""")
    one_line(pgaq("receive", queue, "-c", "bob", ok=False), 1, "Leave --consumer out")
    one_line(pgaq("subscriber", "add", queue, "bob", ok=False), 1, "--topic")
    one_line(pgaq("subscriber", "alter", "first_topic", "bob", ok=False), 6, "pgaq subscriber list")
    one_line(pgaq("receive", "first_topic", "-c", "bob", ok=False), 7, "is not a subscriber")
    assert json.loads(pgaq("receive", "first_topic", "-c", "bob", "--json", ok=False).err)["notice"]
    one_line(pgaq("trace", "99999999", ok=False), 6, "pgaq top --view sessions")
    one_line(pgaq("report", "awr", "7000", "8000", ok=False), 6, "pgaq snapshot")
    one_line(pgaq("report", "ash", "--last", "0", ok=False), 2, "no interval")
    one_line(pgaq("report", "ash", "--from", "tomorrow", ok=False), 2, "ends before it begins")
    assert pgaq("report", "ash", "--from", "yesterday", "--to", "2100-01-01T00:00:00+00:00", "--json").json["kind"] == "ash"
    assert pgaq("queue", "list", "zz").out == 'No queue that this role can use has a name like "zz"; * stands for anything.\n'
    one_line(pgaq("queue", "create", "a", user="nothing", ok=False), 5, "aq.create_queue TO nothing")
    one_line(pgaq("queue", "create", "a", "--max-retries", "-2", ok=False), 2, "--max-retries")
    one_line(pgaq("status", "--jsn", ok=False), 2, "No such option", "--jsn")
    one_line(pgaq("status", "-d", "nowhere", ok=False), 3, ': database "nowhere" does not exist.')


def test_no_right(pgaq: Callable[..., Result], server: Server, queue: str, roles: None) -> None:
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.grant_queue(%s, 'nothing', 'enqueue')", [queue])
    pgaq("send", queue, "1", user="nothing")
    one_line(pgaq("receive", queue, user="nothing", ok=False), 5, f'permission denied for queue "{queue}"')
    one_line(pgaq("queue", "drop", queue, user="nothing", ok=False), 5)
    one_line(pgaq("queue", "create", "mine", user="nothing", ok=False), 5, "GRANT EXECUTE ON FUNCTION aq.create_queue")
    one_line(pgaq("snapshot", user="nothing", ok=False), 5, "pg_monitor")


def test_grants(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    """The hint of a denied permission is the command that the owner runs."""
    hidden = pgaq("send", queue, "1", user="nothing", ok=False)
    one_line(hidden, 6, "does not exist", "can share it: pgaq queue grant")
    pgaq("queue", "grant", queue, "nothing", "dequeue")
    denied = pgaq("send", queue, "1", user="nothing", ok=False)
    one_line(denied, 5, f"pgaq queue grant {queue} nothing enqueue")
    granted = pgaq(*denied.err.split("pgaq ")[1].rstrip(".\n").split(), "--json").json
    assert granted == {"queue": queue, "role": "nothing", "granted": "enqueue"}
    pgaq("send", queue, "1", user="nothing")
    shown = pgaq("queue", "show", queue, "--json").json["privileges"]
    assert [(row["role"], row["privilege"], row["grant_option"]) for row in shown] == [
        ("nothing", "dequeue", False),
        ("nothing", "enqueue", False),
    ]
    assert "nothing" in pgaq("queue", "show", queue).out
    assert pgaq("queue", "revoke", queue, "nothing", "enqueue").out == f"Revoked enqueue on {queue} from nothing.\n"
    assert pgaq("send", queue, "1", user="nothing", ok=False).code == 5
    assert pgaq("receive", queue, user="nothing").out == "1\n"
    pgaq("queue", "revoke", queue, "nothing")
    assert pgaq("receive", queue, user="nothing", ok=False).code == 6
    assert (
        pgaq("queue", "grant", queue, "nothing", "enqueue", "dequeue", "--grant-option").out
        == f"Granted enqueue, dequeue on {queue} to nothing.\n"
    )
    assert {row["grant_option"] for row in pgaq("queue", "show", queue, "--json").json["privileges"]} == {True}
    one_line(pgaq("queue", "grant", queue, "nobody_here", ok=False), 6, "nobody_here")
    one_line(pgaq("queue", "grant", queue, "nothing", "select", ok=False), 1, "select")
    one_line(pgaq("queue", "grant", queue, "nothing", user="watcher", ok=False), 5)


def test_grants_of_one_subscriber(pgaq: Callable[..., Result], roles: None) -> None:
    pgaq("queue", "create", "shared", "--topic")
    pgaq("subscriber", "add", "shared", "s1")
    pgaq("send", "shared", "1")
    pgaq("subscriber", "grant", "shared", "s2", "nothing")
    denied = pgaq("receive", "shared", "-c", "s1", user="nothing", ok=False)
    one_line(denied, 5, "pgaq subscriber grant shared s1 nothing")
    pgaq(*denied.err.split("pgaq ")[1].rstrip(".\n").split())
    assert pgaq("receive", "shared", "-c", "s1", user="nothing").out == "1\n"
    pgaq("subscriber", "revoke", "shared", "s1", "nothing")
    pgaq("send", "shared", "2")
    assert pgaq("receive", "shared", "-c", "s1", user="nothing", ok=False).code == 5


def test_dead_letters_that_a_role_may_not_read(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    """It is told so, not that there are none."""
    pgaq("send", queue, '{"n": 1}')
    pgaq("receive", queue, "--exec", "exit 65", ok=False)
    letter = pgaq("dead", "list", queue, "--json").json[0]
    assert letter["payload"] == {"n": 1}
    for arguments in (("list", queue), ("show", queue, letter["msgid"])):
        one_line(pgaq("dead", *arguments, user="watcher", ok=False), 5, f"pgaq queue grant {queue}_exceptions watcher dequeue")


def test_owner_is_named(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    """What only the owner can do is no privilege that could be granted."""
    pgaq("queue", "grant", queue, "nothing")
    denied = pgaq("queue", "stop", queue, user="nothing", ok=False)
    one_line(denied, 5, f'must be owner of queue "{queue}". Run it as postgres, or as a member of that role.')


def test_wrong_schedules(pgaq: Callable[..., Result], queue: str, roles: None) -> None:
    pgaq("schedule", "create", "mine", queue, "1", "--every", "1 day")
    one_line(
        pgaq("schedule", "create", "mine", queue, "1", "--every", "1 day", ok=False),
        1,
        "already exists. To change it, use pgaq schedule alter.",
    )
    one_line(pgaq("schedule", "create", "s", "zzz", "--every", "1 day", ok=False), 6, 'queue "zzz" does not exist', "pgaq queue list")
    one_line(pgaq("schedule", "create", "s", queue, "--cron", "61 * * * *", ok=False), 1, "invalid cron expression", "five fields")
    one_line(pgaq("schedule", "create", "s", queue, "--every", "often", ok=False), 1, 'invalid input syntax for type interval: "often"')
    one_line(pgaq("schedule", "create", "s", queue, ok=False), 2, "--cron or --every is required")
    one_line(pgaq("schedule", "times", "--cron", "@daily", "--every", "1 day", ok=False), 2, "cannot be combined")
    one_line(pgaq("schedule", "alter", "mine", ok=False), 2, "nothing to change")
    one_line(pgaq("schedule", "list", "zzz", ok=False), 6, 'queue "zzz" does not exist')
    for words in (
        ("show", "zzz"),
        ("run", "zzz"),
        ("pause", "zzz"),
        ("resume", "zzz"),
        ("drop", "zzz"),
        ("alter", "zzz", "--comment", "c"),
    ):
        one_line(pgaq("schedule", *words, ok=False), 6, 'schedule "zzz" does not exist. pgaq schedule list shows')
    # what others may not see does not exist for them
    one_line(pgaq("schedule", "drop", "mine", user="nothing", ok=False), 6, "does not exist")
    assert pgaq("schedule", "list", "--json", user="nothing").json == []
    pgaq("schedule", "drop", "mine")


def test_hints_name_commands() -> None:
    for hint, words in (
        (
            "Check the spelling: the view aq.subscribers lists subscribers, and recipients while they have messages.",
            "Check the spelling: pgaq subscriber list shows subscribers, and recipients while they have messages.",
        ),
        (
            "The owner of the queue can grant it: aq.grant_queue('my queue', 'o''hara', 'enqueue').",
            """The owner of the queue can grant it: pgaq queue grant 'my queue' 'o'"'"'hara' enqueue.""",
        ),
        ("Dequeue or purge them, or drop the queue with force => true.", "Dequeue or purge them, or use pgaq queue drop --force."),
        ("Drop one with aq.drop_queue, or wait.", "Drop one with pgaq queue drop, or wait."),
        ("Use aq.rtpctx_start() and aq.rtpctx_report(), which store nothing.", "Use pgaq report rtpctx, which stores nothing."),
        (
            "The view aq.subscribers counts them; aq.drop_queue_table drops it.",
            "The view aq.subscribers counts them; aq.drop_queue_table drops it.",
        ),
    ):
        assert common.as_commands(hint) == words


def test_options_that_exclude_each_other(pgaq: Callable[..., Result], queue: str, tmp_path: Path) -> None:
    for arguments, words in (
        (("--follow", "--all"), "--follow and --all cannot be combined"),
        (("--follow", "--wait", "1s"), "--follow and --wait cannot be combined"),
        (("--exec", "true", "--lease", "0"), "--lease 0 is no time for a program"),
        (("--exec", "true", "--lease", "0ms"), "--lease 0ms is no time for a program"),
        (("--lease", "1s"), "--lease is for --exec"),
        (("--exec", "true", "--directory", str(tmp_path)), "--exec and --directory cannot be combined"),
    ):
        one_line(pgaq("receive", queue, *arguments, ok=False), 2, words)
    one_line(pgaq("top", "--every", "1ms", ok=False), 2, "--every 1ms is too short")
    one_line(pgaq("send", queue, "1", "--delay", "999999999999d", ok=False), 2, "is too long")


def test_numbers_out_of_range(pgaq: Callable[..., Result], queue: str) -> None:
    """They are mistakes in an option, not in SQL, and nothing sleeps for longer than the system can."""
    large = str(2**31)
    for arguments in (
        ("trace", large), ("report", "awr", large, "1"), ("report", "diff", "1", "2", "3", large), ("browse", queue, "--max", large), ("dead", "list", queue, "-n", "9" * 30),
        ("dead", "redrive", queue, "--max", large), ("queue", "create", "many", "--max-retries", large), ("report", "rtpctx", "--seconds", "inf"), ("trace", "1", "--seconds", "nan"),
        ("send", queue, "1", "--rate", "1e99"),
    ):  # fmt: skip
        one_line(pgaq(*arguments, ok=False), 2, "out of range")
    for arguments in (("status", "--last", "1000000d"), ("top", "--every", "1000000d"), ("receive", queue, "--wait", "1000000d")):
        one_line(pgaq(*arguments, ok=False), 2, "is too long: at most 24855 days")


def test_later_versions_of_typer_and_click(pgaq: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """They suggest commands themselves, call a group without a command an error, and end Ctrl-C with an exit code."""

    class NoSuchCommand(click.UsageError):
        def format_message(self) -> str:
            return f"{self.message} Did you mean 'status'?"

    def resolve(*_: Any) -> None:
        raise NoSuchCommand("No such command 'stats'.")

    def parse(self: click.Group, context: click.Context, arguments: list[str]) -> list[str]:
        if not arguments:
            raise click.UsageError(context.get_help(), context)
        return click.Group.parse_args(self, context, arguments)

    def entry(self: click.Group, args: list[str], prog_name: str, **_: Any) -> Any:
        with self.make_context(prog_name, args) as context:
            try:
                return self.invoke(context)
            except KeyboardInterrupt:
                return 130

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as later:
        later.setattr(TyperGroup, "resolve_command", resolve)
        one_line(pgaq("stats", ok=False), 2, "No such command 'stats'. Did you mean 'status'? See")
    with monkeypatch.context() as later:
        later.setattr(TyperGroup, "parse_args", parse, raising=False)
        assert "grant" in pgaq("queue").out
    with monkeypatch.context() as later:
        later.setattr(TyperGroup, "main", entry)
        later.setattr(status, "read", interrupted)
        stopped = pgaq("status", ok=False)
        assert (stopped.code, stopped.err) == (130, "\npgaq: interrupted\n")


def test_durations_are_named(pgaq: Callable[..., Result]) -> None:
    """Every option that is a length of time, and only those; the help says which forms there are."""
    found = {}

    def look(command: Any, name: str) -> None:
        for each in getattr(command, "commands", {}).values():
            look(each, f"{name} {each.name}".strip())
        spans = sorted(
            parameter.opts[-1] if len(parameter.opts) == 1 else parameter.opts[0]
            for parameter in command.params
            if parameter.metavar == common.DURATION
        )
        if spans:
            found[name] = spans

    look(main.typer.main.get_command(main.app), "")
    assert found == {
        "queue create": ["--retention", "--retry-delay"], "send": ["--delay", "--expires"], "receive": ["--lease", "--wait"], "report ash": ["--last"], "status": ["--last"], "top": ["--every"],
            "console": ["--timeout"], "metrics": ["--timeout"], "schedule create": ["--delay", "--expires"], "schedule alter": ["--delay", "--expires"],
    }  # fmt: skip
    for name in found:
        shown = " ".join(pgaq(*name.split(), "--help").out.split())
        assert "DURATION" in shown and "500ms, 30s, 5min, 2h or 1d" in shown


def test_help_tells_no_default_that_is_none(pgaq: Callable[..., Result]) -> None:
    def look(command: Any, words: list[str]) -> None:
        for each in getattr(command, "commands", {}).values():
            look(each, [*words, each.name])
        if not words or words[0] not in ("bench", "lab"):
            assert "default: None" not in pgaq(*words, "--help").out, words

    look(main.typer.main.get_command(main.app), [])


def test_what_cannot_be_written_is_said(server: Server, pgaq: Callable[..., Result], queue: str, tmp_path: Path) -> None:
    """One line, and the message is still in the queue."""
    pgaq("send", queue, "1")
    one_line(pgaq("receive", queue, "--directory", "/proc", ok=False), 1, "cannot write /proc/", "The message is given back to the queue.")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "receive", queue, "--wait", "60s"],
            env={**os.environ, **server.environment()},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "pgaq: standard output: No space left on device.\n")
    assert pgaq("receive", queue, "--wait", "60s").out == "1\n"


def test_averages_are_named(pgaq: Callable[..., Result], queue: str) -> None:
    """What is an average since the queue came into use says so; status and top show the rate between two readings."""
    pgaq("send", queue, "1")
    until(
        lambda: pgaq("queue", "show", queue, "--json").json["consumers"][0]["enqueue_rate"] is not None,
        "the queue has been in use for a moment",
    )
    for arguments in (("status", "--last", "0"), ("queue", "list"), ("queue", "show", queue)):
        shown = pgaq(*arguments).out
        assert "Avg in/s" in shown and " In/s" not in shown
    assert "In/s" in pgaq("top", "--times", "2", "--every", "0.1").out.split("Queues")[2]
    shown = pgaq("status").out
    assert "In/s" in shown and "Avg in/s" not in shown


def test_rates_of_status(pgaq: Callable[..., Result], queue: str, server: Server, tmp_path: Path) -> None:
    """What was enqueued while the command ran, per second of that time; nothing of the time before."""
    for number in range(3):
        pgaq("send", queue, str(number))
    idle = next(row for row in pgaq("status", "--json", "--last", "100ms").json["queues"] if row["queue"] == queue)
    assert (idle["enqueue_rate"], idle["enqueued"]) == (0, 3)
    written = tmp_path / "status.json"
    with written.open("w") as out, Client([*COMMAND, "status", "--json", "--last", "8s"], stdout=out) as command, server.connect() as conn:
        number = 0
        while command.poll() is None:  # from before its first reading until after its last one
            db.execute(conn, "SELECT aq.enqueue(%s, '1')", [queue])
            number += 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(0.5)
    rate = next(row for row in json.loads(written.read_text())["queues"] if row["queue"] == queue)["enqueue_rate"]
    assert 0 < rate <= number / 8


def test_no_trailing_spaces(pgaq: Callable[..., Result], queue: str) -> None:
    """In a pipe; what is received is written as it is."""
    pgaq("send", queue, '"a"', "--correlation", "c")
    pgaq("snapshot")
    pgaq("snapshot")
    for arguments in (
        ("status", "--all"), ("doctor",), ("queue", "list"), ("queue", "show", queue), ("browse", queue), ("subscriber", "list"), ("schedule", "list"), ("schedule", "times", "--cron", "@daily"), ("dead", "list"), ("top", "--view", "latches"),
        ("snapshot", "list"), ("report", "awr"), ("report", "rtpctx", "--seconds", "0.1"), ("--help",), ("receive", "--help"), ("queue",), ("lab", "list"), ("lab", "--help"),
    ):  # fmt: skip
        out = pgaq(*arguments).out
        assert out and [line for line in out.splitlines() if line != line.rstrip()] == [], arguments
    pgaq("queue", "create", "spaces", "--type", "text")
    pgaq("send", "spaces", "a  ")
    assert pgaq("receive", "spaces").out == "a  \n"


def test_mistyped(pgaq: Callable[..., Result], server: Server) -> None:
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('invoices')")
    for arguments in (
        ("send", "invoice", "1"),
        ("receive", "Invoices"),
        ("queue", "show", "invioces"),
        ("browse", "invoces"),
        ("dead", "list", "invoice"),
        ("queue", "stop", "invoic"),
    ):
        one_line(pgaq(*arguments, ok=False), 6, 'Did you mean "invoices"?')
    one_line(pgaq("send", "zzz", "1", ok=False), 6, "pgaq queue list")
    one_line(pgaq("queue", "shwo", "invoices", ok=False), 2, "Did you mean 'show'?")
    one_line(pgaq("stats", ok=False), 2, "Did you mean 'status'?")
    one_line(pgaq("send", "invoices", "1", "--delay", "soon", ok=False), 2, "not a length of time")
    one_line(pgaq("send", "invoices", "--properties", "{", "1", ok=False), 2, "--properties is not JSON")
    one_line(pgaq("queue", "create", ok=False), 2, "pgaq queue create --help")


def test_lost_connection(pgaq: Callable[..., Result], server: Server, queue: str) -> None:
    with client(server, "receive", queue, "--follow") as process, server.connect() as conn:
        waits = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgaq' AND wait_event IS NOT NULL AND query LIKE 'CALL aq.wait%'"
        pid = until(lambda: db.value(conn, waits), "the command waits")
        db.execute(conn, "SELECT pg_terminate_backend(%s)", [pid])
        out, err = process.communicate(timeout=60)
    one_line(Result(process.returncode, out, err), 3, "the connection is lost")


def test_keys(pgaq: Callable[..., Result], queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages have the key of the command, or one of their own; a program has it only if the message has one."""
    monkeypatch.setenv("PGAQ_KEY", "of this process")
    pgaq("send", queue, "1", "--key", "a")
    pgaq("send", queue, "-m", "-", "--key", "a", stdin=b'{"payload": 2, "key": "b"}\n{"payload": 3}\n')
    pgaq("send", queue, "4")
    rows = pgaq("browse", queue, "--state", "ready", "--json").json
    assert {row["payload"]: row["key"] for row in rows} == {1: "a", 2: "b", 3: "a", 4: None}
    assert [row["payload"] for row in pgaq("browse", queue, "--key", "a", "--json").json] == [1, 3]
    assert pgaq("receive", queue, "--key", "c", ok=False).code == 7
    assert [(row["payload"], row["key"]) for row in pgaq("receive", queue, "--key", "b", "--all", "--json").lines] == [(2, "b")]
    pgaq("receive", queue, "--all", "--exec", f"echo ${{PGAQ_KEY-none}} >> {tmp_path}/said")
    assert (tmp_path / "said").read_text() == "a\na\nnone\n"
    long = pgaq("send", queue, "1", "--key", "x" * 513, ok=False)
    assert long.code == 1 and "512" in long.err
