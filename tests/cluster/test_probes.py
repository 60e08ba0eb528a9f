"""Static probes (USDT): they are in the library, documented, and gdb and bpftrace count with them what a trace counts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, put, take, until
from pgaq import db, places

SCRIPTS = ROOT / "tools" / "probes"


def library() -> str:
    directory = subprocess.run([places.program("pg_config"), "--pkglibdir"], check=True, capture_output=True, text=True).stdout.strip()
    return os.path.join(directory, "pgaq.so")


def notes() -> dict[str, int]:
    """Probe -> number of its values, from the library's notes."""
    if not shutil.which("readelf"):
        pytest.skip("missing: readelf (binutils)")
    text = subprocess.run(["readelf", "-n", library()], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"Provider: pgaq\s+Name: (\w+)\s.*?Arguments:([^\n]*)", text, re.S)
    if not found:
        pytest.skip("missing: sys/sdt.h when the library was built (systemtap-sdt-dev)")
    return {name: len(values.split()) for name, values in found}


def tool(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed")
    if os.geteuid() != 0:
        pytest.skip(f"{name} needs root to look into another user's process")
    notes()
    return found


def test_the_library_has_the_documented_probes():
    """docs/tracing.md lists exactly the probes of the library, with as many values as they have."""
    documented = re.findall(r"^\| `([a-z_]+)` \| ([^|]*) \|", (ROOT / "docs/tracing.md").read_text(), re.M)
    assert {name: len(values.split(",")) for name, values in documented} == notes()


@pytest.mark.sharded
def test_gdb_counts_what_a_trace_counts(server, conn, queue):
    """One dequeue under tools/probes/counts.gdb, and another one traced."""
    gdb = tool("gdb")
    with server.connect() as other:
        put(other, queue, 1, 2, 3)
        assert take(other, queue, number=1) == [1]
        process = subprocess.Popen(
            [gdb, "-nx", "-q", "-batch", "-p", str(other.info.backend_pid), "-x", str(SCRIPTS / "counts.gdb")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        said = ""
        for line in process.stdout:
            said += line
            if line == "ready\n":
                break
        else:
            process.wait()
            if "ptrace" in said:
                pytest.skip("gdb may not attach to a process here")
            pytest.fail(said)
        assert take(other, queue, number=1) == [2]
        said += process.communicate(timeout=60)[0]
        counted = re.search(
            r"Operations: (\d+)-Counter: \[ LATCH: (\d+)/(\d+), MUTEX: (\d+)/(\d+) \], waits (\d+), messages published (\d+)", said
        )
        assert counted, said
        db.execute(conn, "SELECT aq.trace_start(%s)", [other.info.backend_pid])
        assert take(other, queue, number=1) == [3]
        db.execute(conn, "SELECT aq.trace_stop(%s)", [other.info.backend_pid])
        trace = db.row(conn, "SELECT * FROM aq.traces WHERE pid = %s", [other.info.backend_pid])
        assert [int(text) for text in counted.groups()] == [
            sum(trace[name] for name in ("latch_gets", "latch_releases", "mutex_gets", "mutex_releases")),
            trace["latch_gets"], trace["latch_releases"], trace["mutex_gets"], trace["mutex_releases"], trace["waits"], 0,
        ]  # fmt: skip
        assert trace["latch_gets"] > 0


def filled_in(script: Path, more: str, directory: Path) -> Path:
    """The script with the library in it, and something added, readable by bpftrace."""
    path = directory / script.name
    path.write_text((script.read_text() + more).replace("PGAQ", library()))
    return path


@pytest.mark.parametrize("name", ["latches", "mutexes", "waits"])
def test_bpftrace_understands(name, tmp_path):
    """Its parser and its type checks accept the script."""
    bpftrace = tool("bpftrace")
    done = subprocess.run([bpftrace, "-d", str(filled_in(SCRIPTS / f"{name}.bt", "", tmp_path))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bpftrace_measures_latches(server, queue, tmp_path):
    """tools/probes/latches.bt on a session that dequeues."""
    bpftrace = tool("bpftrace")
    script = filled_in(SCRIPTS / "latches.bt", 'usdt:PGAQ:pgaq:latch__free { printf("freed\\n"); }\n', tmp_path)
    log = tmp_path / "log"
    with server.connect() as other, log.open("w") as out:
        put(other, queue, 0)
        process = subprocess.Popen([bpftrace, "-p", str(other.info.backend_pid), str(script)], stdout=out, stderr=subprocess.STDOUT)

        def freed():
            if process.poll() is not None:
                pytest.skip("bpftrace cannot work on this machine: " + log.read_text()[-300:])
            put(other, queue, 1)
            take(other, queue)
            return "freed" in log.read_text()

        until(freed, "a probe that was passed")
        put(other, queue, 2)
        take(other, queue)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert "@hold_ns[" in log.read_text() and "@acquire_ns[" in log.read_text(), log.read_text()
