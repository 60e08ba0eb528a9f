"""`pgaq lab load` without a server: its arguments, what it writes, how it ends."""

from __future__ import annotations

import json
import threading

import pytest

from pgaq.command.main import run
from pgaq.lab import experiment, jobs
from pgaq.lab.command import app
from pgaq.lab.site import Report, Sessions
from pgaq.lab.workloads.harness import Program

pytestmark = pytest.mark.filterwarnings("ignore:.autocompletion.:DeprecationWarning")  # typer 0.7 has no other name for it

MODEL = {
    "kind": "awr", "title": "Activity Report", "header": [], "advice": [{"severity": "note"}],
    "sections": [
        {"id": "summary", "title": "Summary", "notes": [], "columns": [{"name": "a"}], "rows": [["b"]], "chart": None},
        {"id": "top_events", "title": "Top", "notes": ["x"], "chart": None,
         "columns": [{"name": name} for name in ("Event", "Waits", "Total Wait Time", "Avg Wait", "% DB time", "Wait Class", "Sampled, +-", "Timed By")],
         "rows": [[f"event {n}", n, 1.5, 0.2, 70.0, "Other", None, "pgaq"] for n in range(12)]},
        {"id": "latch_sleeps", "title": "Latches", "notes": [], "chart": None,
         "columns": [{"name": name} for name in ("Latch Name", "Get Requests", "Misses", "Sleeps", "Spin Gets", "Recurrent Sleeps")],
         "rows": [[f"latch {n}", 9, 8, 7, 6, 5] for n in range(9)]},
        {"id": "mutex_sleeps", "title": "Mutexes", "notes": [], "chart": None,
         "columns": [{"name": name} for name in ("Mutex Type", "Location", "Sleeps", "Waits", "Wait Time")], "rows": []},
    ],
}  # fmt: skip


@pytest.fixture
def lab(monkeypatch, capsys):
    """The command, which notes the load that it would run."""
    asked = []

    def instead(program, seconds, tell):
        asked.append((program, seconds))
        for step, done in (("starting a server", 0), ("running", 0), ("running", 0.1), ("writing the report", seconds)):
            tell(step, done)
        return jobs.Found(1200, 1100, 2.0, Report(MODEL, "<html>the page</html>"), ["line of the report"])

    monkeypatch.setattr(jobs, "run", instead)

    def start(*arguments):
        asked.clear()
        code = run(["load", *arguments], app, "lab")
        return (code, asked[0] if asked else None, *capsys.readouterr())

    return start


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--sessions", "0"], "Invalid value for '--sessions': 0 is not in the range x>=1. See lab load --help."),
        (
            ["--sessions", str(jobs.MOST + 1)],
            "150 + 150 sessions need 302 connections, and the server of the lab has 300 (max_connections). Give --sessions 149 or fewer.",
        ),
        (["--method", "browse"], "Invalid value for '--method': 'browse' is not one of listen, subscriber. See lab load --help."),
        (["--store", "heap"], "Invalid value for '--store': 'heap' is not one of table, sharded. See lab load --help."),
        (["--visibility", "never"], "Invalid value for '--visibility': 'never' is not one of immediate, on_commit. See lab load --help."),
        (["--seconds", "0"], "Invalid value for '--seconds' / '-s': 0.0 is not in the range x>=0.1. See lab load --help."),
        (["--burn-us", "-1"], "Invalid value for '--burn-us': -1.0 is not in the range x>=0. See lab load --help."),
        (
            ["-o", "/nonexistent/page.html"],
            "/nonexistent/page.html: there is no directory /nonexistent. Create it, or give another --output.",
        ),
        (["-o", "/"], "/ is a directory. Give --output a file."),
    ],
)
def test_mistakes(lab, arguments, said):
    """Said in one line, before anything runs."""
    code, asked, out, err = lab(*arguments)
    assert (code, asked, out, err.splitlines()[-1].partition(": ")[2]) == (2, None, "", said) and err.count("\n") == 1


def test_as_text(lab, tmp_path):
    """By default the source's test run; what was counted, the report's first lines, and where the page is."""
    page = tmp_path / "page.html"
    code, asked, out, err = lab("-o", str(page))
    assert (code, asked, err) == (0, (Program(16, "listen", "table", "immediate", 4000), 60.0), "")
    assert page.read_text() == "<html>the page</html>"
    lines = [" ".join(line.split()) for line in out.splitlines() if line]
    assert lines == [
        "16 + 16 sessions for 60 s: listen, table, immediate, burner of 4000 us", "starting a server", "running", "writing the report",
        "enqueued 1,200 messages 600.0 per second", "dequeued 1,100 messages 550.0 per second", "line of the report", f"page: {page}",
    ]  # fmt: skip


def test_as_json(lab, tmp_path):
    """The same as one document; the steps go to standard error."""
    page = str(tmp_path / "page.html")
    given = [
        "--sessions",
        "149",
        "--method",
        "subscriber",
        "--store",
        "sharded",
        "--visibility",
        "on_commit",
        "--seconds",
        "0.5",
        "--burn-us",
        "0",
    ]
    code, asked, out, err = lab(*given, "-o", page, "--json")
    assert (code, asked) == (0, (Program(149, "subscriber", "sharded", "on_commit", 0), 0.5)) and "running" in err
    found = json.loads(out)
    assert {name: found[name] for name in ("sessions", "method", "store", "visibility", "burn_us", "seconds", "page")} == {
        "sessions": 149, "method": "subscriber", "store": "sharded", "visibility": "on_commit", "burn_us": 0, "seconds": 0.5, "page": page,
    }  # fmt: skip
    assert (found["enqueued"], found["dequeued"], found["enqueued_per_s"], found["dequeued_per_s"], found["took"]) == (
        1200,
        1100,
        600,
        550,
        2,
    )
    assert len(found["top_events"]) == 10 and len(found["latch_sleeps"]) == 5 and found["mutex_sleeps"] == []
    assert found["top_events"][0] == {
        "event": "event 0",
        "waits": 0,
        "seconds": 1.5,
        "avg_ms": 0.2,
        "percent_db_time": 70.0,
        "wait_class": "Other",
    }
    assert found["latch_sleeps"][0] == {"latch": "latch 0", "gets": 9, "misses": 8, "sleeps": 7, "spin_gets": 6}


def test_defaults_are_those_of_the_lab():
    """A load has the options of the lab's own run of the source's program."""
    (source,) = (each for each in experiment.load() if each.number == jobs.SOURCE)
    settings = source.runs[jobs.RUN]
    assert settings.workload == "queue_loop" and Program.of(settings.options) == Program()
    assert Program.of({"sessions": 3.0, "hot": 1, "method": "browse", "burn_us": 5, "pgaq.listen_wakeup": "x"}) == Program(
        3, "browse", burn_us=5.0, hot=True
    )


def test_a_session_that_fails_ends_the_load():
    """Its error does not wait for the sessions that still run."""
    go_on = threading.Event()
    sessions = Sessions(None)
    sessions.connections = dict.fromkeys(("enq", "deq"))
    sessions.start("deq", lambda conn: go_on.wait())
    sessions.start("enq", lambda conn: 1 // 0)
    try:
        with pytest.raises(ZeroDivisionError):
            sessions.watch(lambda: None)
        assert sessions.running()
    finally:
        go_on.set()
    for thread in sessions.threads:
        thread.join()
