"""Reads the numbers and writes them as OpenMetrics; says whether the database is ready.

A connection is kept, and opened again when it has broken.  Everything has a time limit, also where the server does not
answer at all: then the socket is closed from another thread, and whoever reads from it gets an error.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

from pgaq import db, text
from pgaq.metrics.families import BUILD, COLLECTORS, CONSUMERS_OF_A_QUEUE, DURATION, LATENCY_BOUNDS, SUCCESS, UP, Collector, Family

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FRESH = 1.0  # seconds for which an answer about readiness is given again: probes of strangers are no load for the server
VERSIONS = """SELECT (SELECT extversion FROM pg_extension WHERE extname = 'pgaq') AS extension, current_setting('server_version') AS server,
    pg_is_in_recovery() AS standby"""
# a database in which there has never been a queue needs no worker
WORKER = """SELECT w.state, CASE WHEN w.state IS NULL AND EXISTS (SELECT FROM aq.queues) THEN 'none' ELSE w.problem END AS problem
    FROM (SELECT current_database() AS database) d LEFT JOIN aq.workers w USING (database)"""
Samples = dict[tuple[str, ...], Any]


class Unreadable(Exception):
    """The database does not answer, or has no extension."""


class Line:
    """A connection with a time limit for what is done on it; used by one thread at a time."""

    def __init__(self, open_connection: Callable[[float], db.Connection], timeout: float) -> None:
        self._open, self.timeout = open_connection, timeout
        self._conn: db.Connection | None = None
        self._lock = threading.Lock()

    def ask(self, work: Callable[[db.Connection, float], Any]) -> Any:
        """What work(connection, deadline) returns.  A connection that was kept can be dead: then it is tried once more on a new one."""
        deadline = time.monotonic() + self.timeout
        if not self._lock.acquire(timeout=self.timeout):
            raise Unreadable("the previous reading has not ended")
        try:
            kept = self._conn is not None
            try:
                return self._once(work, deadline)
            except db.OperationalError:
                if not kept or time.monotonic() >= deadline:
                    raise
                return self._once(work, deadline)
        except db.Error as error:
            raise Unreadable(db.said(error)[1]) from error
        finally:
            self._lock.release()

    def _once(self, work: Callable[[db.Connection, float], Any], deadline: float) -> Any:
        if self._conn is None:
            self._conn = self._open(max(0.1, deadline - time.monotonic()))
        try:
            with _ends(self._conn, deadline + 0.2):  # the server's own limit comes first
                return work(self._conn, deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None


@contextlib.contextmanager
def _ends(conn: db.Connection, deadline: float) -> Iterator[None]:
    """Closes the socket of the connection at the deadline."""
    twin = socket.socket(fileno=socket.dup(conn.fileno()))

    def end() -> None:
        with contextlib.suppress(OSError):
            twin.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        twin.close()


class Exporter:
    """What /metrics and /readyz answer."""

    def __init__(self, open_connection: Callable[[float], db.Connection], *, version: str, timeout: float, limit: int) -> None:
        self._scraping, self._probing = Line(open_connection, timeout), Line(open_connection, timeout)
        self._version, self._limit = version, limit
        self._ready: tuple[float, bool, dict[str, Any]] = (-FRESH, False, {})
        self._ready_lock = threading.Lock()
        self._said: str | None = ""

    def close(self) -> None:
        self._scraping.close()
        self._probing.close()

    # -- /metrics

    def scrape(self) -> str:
        """All metrics; pgaq_up is 0 if they could not be read."""
        began = time.monotonic()
        found: dict[str, tuple[Family, Samples]] = {}
        try:
            versions = self._scraping.ask(lambda conn, deadline: self._collect(conn, deadline, found))
            self._tell(None)
        except Unreadable as error:
            self._tell(str(error))
            found.clear()
            versions = None
        up = versions is not None
        build = (self._version, versions["extension"] if up else "", versions["server"] if up else "")
        own = ((BUILD, {build: 1}), (UP, {(): int(up)}), (DURATION, {(): round(time.monotonic() - began, 6)}))
        return "".join(written(family, samples) for family, samples in (*own, *found.values())) + "# EOF\n"

    def _collect(self, conn: db.Connection, deadline: float, found: dict[str, tuple[Family, Samples]]) -> dict[str, Any]:
        found.clear()
        successes: Samples = {}
        with conn.transaction():
            # a transaction of its own: behind a pooler that hands out other sessions, settings of a session would stay there
            db.execute(conn, "SET TRANSACTION READ ONLY")
            _limit(conn, deadline)
            versions = db.row(conn, VERSIONS)
            if versions["extension"] is None:
                raise Unreadable("the database does not have the extension pgaq")
            for collector in COLLECTORS:
                rows = self._rows(conn, collector, deadline)
                successes[(collector.name,)] = int(rows is not None)
                for family in collector.families:
                    if rows:
                        found[family.name] = (family, sampled(family, rows))
        found[SUCCESS.name] = (SUCCESS, successes)
        return versions

    def _rows(self, conn: db.Connection, collector: Collector, deadline: float) -> list[dict[str, Any]] | None:
        """None: the server refuses, or this part takes too long.  A connection that broke is an error."""
        try:
            with conn.transaction():
                _limit(conn, deadline)
                return db.rows(conn, collector.query, {"limit": self._limit, "consumers": CONSUMERS_OF_A_QUEUE})
        except db.Error as error:
            sqlstate = db.said(error)[0]
            if sqlstate is None or sqlstate.startswith(("08", "57P")):
                raise
            return None

    def _tell(self, problem: str | None) -> None:
        """A line in the log when something has changed."""
        if problem != self._said and (problem or self._said):
            text.say(f"pgaq: {'no metrics: ' + problem if problem else 'the database answers again'}", sys.stderr)
        self._said = problem

    # -- /readyz

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether queues work: the database answers in time, has the extension, and its worker has no problem."""
        with self._ready_lock:
            at, is_ready, state = self._ready
            if time.monotonic() - at >= FRESH:
                is_ready, state = self._probe()
                self._ready = (time.monotonic(), is_ready, state)
            return is_ready, state

    def _probe(self) -> tuple[bool, dict[str, Any]]:
        try:
            state: dict[str, Any] = self._probing.ask(_state)
        except Unreadable as error:
            # what the server says can have names of hosts and roles, which are not for everybody
            self._tell(str(error))
            return False, {"ready": False, "database": "no answer", "extension": None, "worker": None}
        good = state["extension"] is not None and state["worker"] in ("ok", "not visible")
        return good, {"ready": good, **state}


def _state(conn: db.Connection, deadline: float) -> dict[str, Any]:
    with conn.transaction():
        _limit(conn, deadline)
        versions = db.row(conn, VERSIONS)
        state = {"database": "standby" if versions["standby"] else "ok", "extension": versions["extension"], "worker": None}
        if versions["extension"] is None:
            return state
        try:
            with conn.transaction():
                worker = db.row(conn, WORKER)
        except db.Error as error:
            if db.said(error)[0] != "42501":
                raise
            return {**state, "worker": "not visible"}
    return {**state, "worker": worker["state"] or "none" if worker["problem"] else "ok"}


def _limit(conn: db.Connection, deadline: float) -> None:
    """Half of the time that is left: a part that takes too long leaves some for those after it."""
    left = max(1, int((deadline - time.monotonic()) * 500))
    db.execute(conn, f"SET LOCAL statement_timeout = {left}")


# -- the format


def sampled(family: Family, rows: list[dict[str, Any]]) -> Samples:
    """Values by labels."""
    samples: Samples = {}
    for row in rows:
        value = row[family.value]
        if value is not None:
            labels = tuple(str(row[label]) for label in family.labels)
            if family.kind == "histogram":
                count_buckets(samples.setdefault(labels, Histogram()), value, row[family.total])
            else:
                samples[labels] = samples.get(labels, 0) + value
    return samples


@dataclass
class Histogram:
    """Messages by bucket, two of the server's in each, and the sum of their seconds."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))
    total: float = 0.0


def count_buckets(histogram: Histogram, buckets: list[int], total: float) -> None:
    for number, messages in enumerate(buckets):
        histogram.buckets[number // 2] += messages
    histogram.total += total


def lines_of(family: Family, labels: str, value: Any) -> Iterator[str]:
    """The lines of one sample, or of a histogram; labels: written, without braces."""
    if not isinstance(value, Histogram):
        yield f"{family.name}{{{labels}}} {value}" if labels else f"{family.name} {value}"
        return
    sums = itertools.accumulate(value.buckets)
    for bound, messages in zip((*(f"{bound:.12g}" for bound in LATENCY_BOUNDS), "+Inf"), sums):
        yield f'{family.name}_bucket{{{labels},le="{bound}"}} {messages}'
    yield f"{family.name}_count{{{labels}}} {sum(value.buckets)}"
    yield f"{family.name}_sum{{{labels}}} {value.total:.6f}"


def written(family: Family, samples: Samples) -> str:
    """A family in OpenMetrics; nothing if it has no samples."""
    if not samples:
        return ""
    name = family.name.removesuffix({"counter": "_total", "info": "_info"}.get(family.kind, ""))
    lines = [
        f"# TYPE {name} {family.kind}",
        *([f"# UNIT {name} {family.unit}"] if family.unit else []),
        f"# HELP {name} {escaped(family.text)}",
    ]
    for labels, value in samples.items():
        pairs = ",".join(f'{label}="{escaped(word)}"' for label, word in zip(family.labels, labels))
        lines += lines_of(family, pairs, value)
    return "\n".join(lines) + "\n"


def escaped(word: str) -> str:
    """A label value or a help text."""
    return word.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
