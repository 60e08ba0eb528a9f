"""The lab as a user starts it: every experiment executes and its figures add up; a second start measures nothing again.

It asks for no finding to show: that depends on the machine.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conftest import PATIENCE, until
from pgaq import db
from pgaq.command.main import run
from pgaq.lab import experiment, predicates
from pgaq.lab import run as runs
from pgaq.lab.command import app
from pgaq.lab.workloads import harness
from pgaq.load import java
from pgaq_proof import turning
from test_lab import Holder

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {"max_worker_processes": "20"}
# a wait with its system calls, a trace, views
SLICE = ["F18", "B3", "E7"]
# what a machine may lack for an experiment
MISSING = (
    "not checked: strace",
    "not checked: the Jakarta Messaging clients need",
    "not checked: the libraries of the Jakarta Messaging clients",
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pgaq.lab.command", *arguments]


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True)


def results(output: Path) -> dict:
    return json.loads((output / "results.json").read_text())


def published(name: str) -> set[tuple[str, str]]:
    """Run and metric of the figures that an experiment compares with published ones."""
    (e,) = experiment.choose(experiment.load(), [name])
    return {(run_name or e.run, metric) for text in e.figures() for run_name, metric in predicates.names(predicates.expression(text))}


def check(output: Path, ids: list[str]) -> None:
    """Executed, without an error, and what the views say agrees with what was counted elsewhere."""
    cards = {card["id"]: card for card in results(output)["cards"]}
    for name in ids:
        card = cards[name]
        assert card["failed"] == [], name
        assert card["verdict"] != "not run", name
        assert card["account"] in ("adds up", "") or card["account"].startswith(MISSING), (name, card["checks"])
        for run_name, metric in published(name):
            found = [r for r in runs.read_records(output) if r["run"] == run_name]
            assert any(metric in r["metrics"] for r in found) or all("unsuitable" in r for r in found), (name, run_name, metric)
    # what the search for records in python/tests/test_turning.py takes for granted
    assert [(r["run"], r["point"], wrong) for r in runs.read_records(output) for wrong in turning.misdescribed(r)] == []
    assert results(output)["about"]["failed"] == 0
    assert (output / "index.html").read_text().count("<article") == sum(card["why"] != "not measured" for card in cards.values())


def test_slice(tmp_path):
    output = tmp_path / "out"
    how = ["--quick", "--seconds", "0.2", "--repeat", "1", "-o", str(output)]
    done = lab("run", *SLICE, *how)
    assert done.returncode == 0, done.stdout + done.stderr
    check(output, SLICE)
    files = {path: path.stat().st_mtime_ns for path in (output / "runs").iterdir()}
    again = lab("run", *SLICE, *how)
    assert again.returncode == 0, again.stdout + again.stderr
    assert {path: path.stat().st_mtime_ns for path in (output / "runs").iterdir()} == files, "nothing is measured twice"
    both = lab("compare", str(output), str(output), "-o", str(tmp_path / "both.html"))
    assert both.returncode == 0 and "F18" not in both.stdout, both.stdout + both.stderr
    both = lab("compare", str(output), str(output), "-o", str(tmp_path / "both.html"), "--json")
    assert len({tuple(each["verdicts"]) for each in json.loads(both.stdout)["experiments"] if each["id"] in SLICE}) >= 1
    written = json.loads(lab("report", str(output), "--json").stdout)
    assert [each["id"] for each in written["experiments"]] and written["page"] == str(output / "index.html")
    measured = json.loads(lab("run", "E7", *how, "--json").stdout)
    assert [each["id"] for each in measured["experiments"]] == ["E7"] and not measured["interrupted"]
    other = results(output)
    changed = next(card for card in other["cards"] if card["id"] == "E7")
    changed["verdict"] = "weak" if changed["verdict"] == "shows" else "shows"
    (tmp_path / "other.json").write_text(json.dumps(other))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    broken = lab("report", str(tmp_path / "broken"))
    assert broken.returncode == 2 and "cannot be read" in broken.stderr and broken.stderr.count("\n") == 1, broken.stderr
    apart = lab("compare", str(output), str(tmp_path / "other.json"), "-o", str(tmp_path / "apart.html"))
    assert "E7" in apart.stdout and "F18" not in apart.stdout, apart.stdout + apart.stderr
    page = (tmp_path / "apart.html").read_text()
    assert page.index(">E7<") < page.index("<details>") < page.index(">F18<"), "what differs is first, the rest is folded"
    assert "F18" in lab("compare", str(output), str(output), "--all", "-o", str(tmp_path / "both.html")).stdout


def test_load(tmp_path):
    """The jobs run between two snapshots: the report of the time between them has the messages that their clients have counted, and no others."""
    page = tmp_path / "load.html"
    done = lab("load", "--sessions", "2", "--seconds", "0.5", "-o", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    counted = dict(re.findall(r"^(enqueued|dequeued) +([\d,]+) messages", done.stdout, re.M))
    (row,) = re.findall(
        r"<td>lab_aq.messages</td><td>topic</td><td[^>]*>([\d,.]+)</td><td[^>]*>[\d,.]+</td><td[^>]*>([\d,.]+)</td>", page.read_text()
    )
    assert counted["enqueued"] != "0" and (counted["enqueued"], counted["dequeued"]) == row
    assert "% DB time" in done.stdout and "Latch Sleeps" in done.stdout and "Mutex Sleeps" in done.stdout and f"page: {page}" in done.stdout


def test_interrupted(tmp_path):
    """Ctrl-C leaves a page of what was done; the same command continues."""
    output = tmp_path / "out"
    arguments = ["run", "E7", "E8", "F18", "E1", "--quick", "--repeat", "1", "-o", str(output)]
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: list(output.glob("runs/*.json")), "a first measurement", 3 * PATIENCE)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130 and "Interrupted" in said, said
    done = {path.name: path.stat().st_mtime_ns for path in output.glob("runs/*.json")}
    assert len(done) < 4 and "<article" in (output / "index.html").read_text()
    assert lab(*arguments).returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in output.glob("runs/*.json")}
    assert len(after) == 4 and done.items() <= after.items()


@pytest.mark.filterwarnings("ignore:.autocompletion.:DeprecationWarning")  # typer 0.7 has no other name for it
def test_mistakes(capsys):
    """An unknown id, two profiles, a page that is not there; the word run left out, an id in small letters."""

    def said(*arguments: str) -> tuple[str, str]:
        run(list(arguments), app, "lab")
        return capsys.readouterr()

    for arguments in (["run", "F99"], ["F99"]):
        assert said(*arguments)[1] == "lab: there is no experiment, run or source F99; see pgaq lab list.\n"
    assert said("rnu")[1] == "lab: No such command 'rnu'. Did you mean 'run'? See lab --help.\n"
    for arguments in (["run", "F3"], ["f3"], []):
        assert said(*arguments, "--quick", "--full")[1] == "lab: --quick and --full cannot be combined.\n"
    assert said("E7", "--markdown", "/nonexistent/page.md")[1] == "lab: /nonexistent/page.md: No such file or directory.\n"
    for arguments in (["list", "F3", "b4T", "--json"], ["--json", "list", "F3", "b4T"]):
        assert [e["id"] for e in json.loads(said(*arguments)[0])] == ["B4t", "F3"]


def test_samples_carry_their_parameters(server):
    """What A2 counts: samples of both events with the parameters of each, here of waits that are made on purpose."""
    with server.connect() as look, server.connect() as waiter:
        look.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab; CREATE EXTENSION IF NOT EXISTS pgaq_oracle")
        harness.prepare(look, 1)
        waiter.execute(f"{harness.PATH}; SET pgaq.session_pins = off; SET pgaq.listen_wakeup = broadcast")
        pid = waiter.info.backend_pid
        look.execute("SELECT aq.trace_start(%s)", [pid])
        waiter.execute("CALL lab_aq.listen_once(1, 1, NULL, NULL)")
        look.execute("SELECT aq.trace_stop(%s)", [pid])
        assert db.value(look, harness.HASH, [pid]) == 1
        idn = db.value(look, """SELECT hash_value FROM sys."v$db_object_cache" WHERE upper(name) = 'MESSAGES'""")
        child = db.value(look, "SELECT max(number) FROM aq.trace_objects(%s) WHERE object = %s", [pid, harness.CHANNEL])
        assert db.row(look, harness.SAMPLED, [3600]) == {"samples": 0, "mutex_x_samples": 0, "latch_free_samples": 0}
        for figure, call in (
            ("mutex_x_samples", f"hold_mutex('{idn}', 600)"),
            ("latch_free_samples", f"hold_latch('{harness.CHANNEL}', 600, child => {child})"),
        ):
            holder = Holder(
                server, f"SELECT aq_lab.{call}", "SELECT EXISTS (SELECT FROM aq.sessions WHERE event = 'aq: lab hold' AND waiting)"
            )
            waits = threading.Thread(target=waiter.execute, args=["CALL lab_aq.listen_once(1, 1, NULL, NULL)"])
            waits.start()
            try:
                until(lambda figure=figure: db.row(look, harness.SAMPLED, [3600])[figure] > 0, figure)
            finally:
                holder.conn.cancel()
                holder.end()
                waits.join()
        found = db.row(look, harness.SAMPLED, [3600])
        assert found["samples"] == found["mutex_x_samples"] + found["latch_free_samples"]
        harness.drop(look)


@pytest.mark.parametrize("seconds", ["0.2", pytest.param("600", marks=pytest.mark.long)])
def test_everything(tmp_path, seconds, monkeypatch):
    """Every experiment executes and adds up: with short measurements, and with those of the profile quick."""
    output = tmp_path / "out"
    if seconds != "600":
        monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(java.QUICK))
    done = lab("run", "--quick", "--seconds", seconds, *([] if seconds == "600" else ["--repeat", "1"]), "-o", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    check(output, [card["id"] for card in results(output)["cards"]])
