"""Where a point is measured: a private server with the extensions, sessions with the point's settings, counters."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

from pgaq import db
from pgaq.report import page
from pgaq.server import Server

TICK = os.sysconf("SC_CLK_TCK")
SETTINGS = {
    "max_connections": "300", "max_worker_processes": "120", "autovacuum": "off", "jit": "off", "shared_buffers": "256MB",
    "max_wal_size": "4GB", "pgaq.max_traces": "4",
}  # fmt: skip


class Unsuitable(Exception):
    """What this machine lacks for a workload."""


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, by the scheduler's account."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICK


def wanted_seconds(pid: int) -> float:
    """Processor time that a process has had, and has waited for in the run queue: what other work takes from it is in it."""
    try:
        had, waited = Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
        return (int(had) + int(waited)) / 1e9
    except (OSError, ValueError):
        return cpu_seconds(pid)


@dataclass
class Site:
    """A server, and what the run says."""

    server: Server
    settings: dict[str, Any] = field(default_factory=dict)  # of the measuring sessions
    options: dict[str, Any] = field(default_factory=dict)
    output: Path | None = None  # of the records of this run of the lab
    repeat: int = 1

    def connect(self) -> db.Connection:
        """A session with the point's settings."""
        conn = self.server.connect(application_name="pgaq lab")
        for name, value in self.settings.items():
            conn.execute(db.sql.SQL("SET {} = {}").format(db.sql.Identifier(*name.split(".")), db.sql.Literal(str(value))))
        return conn

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 60) -> None:
        """Wait for something that the server shows."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout:g} s")
            time.sleep(0.005)


@dataclass
class Report:
    """The workload report of an interval: the document, and its page."""

    model: dict[str, Any] = field(default_factory=dict)
    page: str = ""


@contextlib.contextmanager
def reported(server: Server) -> Iterator[Report]:
    """Two snapshots around what is measured, and the report between them; it is there when the block has ended without an error."""
    report = Report()
    with server.connect() as conn:
        first = db.value(conn, "SELECT aq.take_snapshot()")
        yield report
        last = db.value(conn, "SELECT aq.take_snapshot()")
        report.model = db.value(conn, "SELECT aq.report_awr(%s, %s)", [first, last])
        report.page = page(report.model)


@contextlib.contextmanager
def pinned(server: Server, processors: int | None) -> Iterator[None]:
    """The server's processes on the first processors, up to this number; its clients on the others, if there are any."""
    mine = sorted(os.sched_getaffinity(0))
    if processors is None or processors == len(mine):
        yield
        return
    if processors > len(mine):
        raise Unsuitable(f"this machine has {len(mine)} processors, not {processors}")
    everyone = [pid for pid in (server.postmaster_pid(), *server.child_pids()) if pid]
    try:
        for pid in everyone:
            _set_processors(pid, mine[:processors])
        _set_processors(0, mine[processors:])
        yield
    finally:
        _set_processors(0, mine)
        for pid in everyone:
            _set_processors(pid, mine)


def _set_processors(pid: int, processors: list[int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(pid, processors)


class Counters:
    """Counters of the server as a flat dict; a difference of two is what happened between them."""

    QUERY = """
        SELECT 'latch', latch, gets, misses, sleeps, spin_gets, wait_us, 0 FROM aq.latches
        UNION ALL SELECT 'mutex', mutex_type, sum(gets), sum(misses), sum(sleeps), sum(spin_gets), sum(wait_us), sum(waits) FROM aq.mutexes GROUP BY 2
        UNION ALL SELECT 'location', location, gets, misses, sleeps, spin_gets, wait_us, waits FROM aq.mutexes
        UNION ALL SELECT 'spin', CASE latch WHEN 'lab' THEN 'latch' ELSE latch END, spin_us, 0, 0, 0, 0, 0 FROM aq.latches
        UNION ALL SELECT 'spin', mutex_type, sum(spin_us), 0, 0, 0, 0, 0 FROM aq.mutexes GROUP BY 2
        UNION ALL SELECT 'event', event, total_waits, 0, 0, 0, time_waited_micro, total_waits FROM sys."v$system_event"
        UNION ALL SELECT 'statistic', name, value, 0, 0, 0, 0, 0 FROM sys."v$sysstat" WHERE value IS NOT NULL
        UNION ALL SELECT 'time', stat_name, value, 0, 0, 0, 0, 0 FROM sys."v$sys_time_model" WHERE value IS NOT NULL
        UNION ALL SELECT 'cache', parameter, gets, getmisses, mutex_sleeps, 0, 0, 0 FROM sys."v$rowcache"
    """
    FIGURES = ("gets", "misses", "sleeps", "spin_gets", "wait_us", "waits")

    def __init__(self, conn: db.Connection) -> None:
        self.values: dict[tuple[str, str, str], float] = {}
        for kind, name, *figures in conn.execute(self.QUERY).fetchall():
            for figure, value in zip(self.FIGURES, figures):
                key = (kind, name, figure)
                self.values[key] = self.values.get(key, 0) + float(value or 0)

    def __sub__(self, earlier: "Counters") -> "Counters":
        made = object.__new__(Counters)
        made.values = {key: value - earlier.values.get(key, 0) for key, value in self.values.items()}
        return made

    def __call__(self, kind: str, name: str, figure: str = "gets") -> float:
        """One figure; 0 for what was never counted."""
        return self.values.get((kind, name, figure), 0.0)


class Sessions:
    """Sessions in threads; each runs a function with its own connection and returns a value."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.threads: list[threading.Thread] = []
        self.results: dict[Any, Any] = {}
        self.errors: list[BaseException] = []
        self.connections: dict[Any, db.Connection] = {}

    def prepare(self, keys: Iterable[Any]) -> None:
        """Open the connections, before anything is measured."""
        for key in keys:
            self.connections[key] = self.site.connect()

    def start(self, key: Any, work: Callable[[db.Connection], Any]) -> None:
        if key not in self.connections:
            self.prepare([key])

        def run() -> None:
            try:
                self.results[key] = work(self.connections[key])
            except BaseException as error:  # noqa: BLE001 - reported by join
                self.errors.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def pid(self, key: Any) -> int:
        return self.connections[key].info.backend_pid

    def running(self) -> bool:
        """Does one still work?"""
        return any(thread.is_alive() for thread in self.threads)

    def join(self) -> dict[Any, Any]:
        """The results; the first error of a session is raised."""
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return self.results

    def watch(self, tell: Callable[[], None]) -> dict[Any, Any]:
        """The same; `tell` is called ten times a second meanwhile, and an error does not wait for the other sessions."""
        while self.running():
            if self.errors:
                raise self.errors[0]
            tell()
            time.sleep(0.1)
        return self.join()

    def close(self) -> None:
        """End all sessions, also those that still run a statement."""
        for conn in self.connections.values():
            try:
                conn.cancel()
            except db.Error:
                pass
        for thread in self.threads:
            thread.join(30)
        for conn in self.connections.values():
            conn.close()

    def __enter__(self) -> "Sessions":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Calls:
    """System calls of one process, seen by strace."""

    LINE = re.compile(r"^(?:\[pid +\d+\] )?(\d+\.\d+) (\w+)\(.*?(?:<(\d+\.\d+)>)?$")

    def __init__(self, pid: int) -> None:
        program = shutil.which("strace")
        if program is None:
            raise Unsuitable("strace is not installed")
        self.directory = tempfile.TemporaryDirectory(prefix="pgaq-lab-")
        self.file = Path(self.directory.name) / "calls"
        command = [
            program,
            "-ttt",
            "-T",
            "-o",
            str(self.file),
            "-p",
            str(pid),
            "-e",
            "trace=futex,sched_yield,poll,ppoll,select,pselect6,epoll_wait,clock_nanosleep,nanosleep,semtimedop",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()  # type: ignore[union-attr]
        if "attached" not in line:
            self.process.wait()
            raise Unsuitable(f"strace cannot attach: {line.strip()}")

    def end(self) -> list[tuple[str, float]]:
        """The calls in order, each with its seconds."""
        self.process.terminate()
        self.process.wait()
        found = []
        for line in self.file.read_text(errors="replace").splitlines():
            parts = self.LINE.match(line)
            if parts and parts[3]:
                # to wake another session is no wait, however long it takes on a busy machine
                found.append(("futex_wake" if "FUTEX_WAKE" in line else parts[2], float(parts[3])))
        self.directory.cleanup()
        return found
