"""One traced session: the four cases of a listen with its dequeue; system calls of a session under contention."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from pgaq import db
from pgaq.lab.site import Calls, Sessions, Site, Unsuitable
from pgaq.lab.workloads import harness

CHANNEL = "channel operations parent latch"
COUNTS = """SELECT operation, sum(gets)::float AS gets, sum(releases)::float AS releases,
	coalesce(sum(gets) FILTER (WHERE object = %s), 0)::float AS channel, coalesce(sum(releases) FILTER (WHERE object = %s), 0)::float AS channel_releases FROM unnest(%s::int[]) traced, LATERAL aq.trace_objects(traced) GROUP BY 1"""
# a row is out of order if its time is before the one of the row before, or if it releases what was not got
ROWS = """SELECT count(*)::float AS rows, (count(*) FILTER (WHERE at_ns < before OR held < 0))::float AS unordered FROM (
	SELECT at_ns, lag(at_ns) OVER (PARTITION BY traced ORDER BY sequence) AS before,
		sum(CASE action WHEN 'get' THEN 1 ELSE -1 END) OVER (PARTITION BY traced, operation, object, number ORDER BY sequence) AS held
	FROM unnest(%s::int[]) traced, LATERAL aq.trace(traced) WHERE operation = ANY (%s) AND action IN ('get', 'release')) r"""
# background workers that execute calls with immediate visibility for the session; the run allows one, so that it is that of the traced session
HELPERS = "SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity WHERE backend_type = 'pgaq helper'"
BUSY = "SELECT count(*) FROM aq.sessions WHERE pid = ANY (%s) AND pid <> %s AND NOT (waiting AND event = 'aq: helper idle')"
SLICE = 0.5  # seconds: what the sources divide a wait into is longer
BEGUN = "SELECT count(*) FROM aq.trace(%s) WHERE operation = 'wait' AND action = 'begin'"


class Program:
    """The case by the source's program, which the harness runs as well, on a queue of either store."""

    timeout = 1

    def __init__(self, look: db.Connection, point: dict[str, Any]) -> None:
        harness.prepare(look, 2, str(point["store"]), str(point["visibility"]))

    def publish(self, look: db.Connection, number: int) -> None:
        # without that option: what executes immediate calls is traced
        look.execute(
            "SELECT aq.enqueue('lab_aq.messages', ROW('case', 'case', rpad('ABC', 4000, 'x'))::lab_aq.message, recipients => ARRAY['ksub_' || %s])",
            [number],
        )

    def take(self, conn: db.Connection, wait: float) -> None:
        conn.execute("CALL lab_aq.listen_once(1, %s, NULL, NULL)", [int(wait)])

    def clear(self, look: db.Connection) -> None:
        look.execute("CALL lab_aq.subscriber(2, 0.001, NULL)")

    def drop(self, look: db.Connection) -> None:
        harness.drop(look)


class Case:
    """A session that listens and dequeues, traced, and one that enqueues."""

    def __init__(self, site: Site, point: dict[str, Any], look: db.Connection, sessions: Sessions) -> None:
        self.site, self.look, self.sessions = site, look, sessions
        self.queue = Program(look, {**site.options, **point})
        self.broadcast = point["mode"] == "broadcast"
        self.pid = sessions.pid("traced")
        conn = sessions.connections["traced"]
        conn.execute(f"{harness.PATH}; SET pgaq.listen_wakeup = {point['mode']}; SET pgaq.session_pins = {point['pins']}")
        # everything has been used once
        self.queue.publish(look, 1)
        self.queue.take(conn, 1)
        self.queue.publish(look, 2)
        self.queue.clear(look)
        self.traced = [self.pid, *db.value(look, HELPERS)]

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for operation, gets, releases, *channel in self.look.execute(COUNTS, [CHANNEL, CHANNEL, self.traced]).fetchall():
            found[operation], found[f"{operation}_releases"] = gets, releases
            found["channel"] += channel[0]
            found["channel_releases"] += channel[1]
        return found

    def begun(self) -> int:
        return int(db.value(self.look, BEGUN, [self.pid]))

    def await_helpers(self) -> None:
        """A helper still gets and releases mutexes after its answer, so a trace must neither begin nor end then."""
        self.site.until(lambda: db.value(self.look, BUSY, [self.traced, self.pid]) == 0, "the helpers are idle")

    def start(self, wait: float) -> None:
        self.sessions.start("traced", lambda conn: self.queue.take(conn, wait))

    def play(self, before: int, others: int, own: int) -> tuple[Counter[str], Counter[str]]:
        """Counts when the session waits first, and at the end."""
        wait = 60 if before + own else self.queue.timeout
        # the check that finds out that there is nothing costs more than those that follow
        self.start(self.queue.timeout)
        self.sessions.join()
        for _ in range(before):
            self.queue.publish(self.look, 1)
        self.await_helpers()
        self.look.execute("SELECT aq.trace_start(pid) FROM unnest(%s::int[]) pid", [self.traced])
        self.start(wait)
        waiting: Counter[str] = Counter()
        if not before:
            self.site.until(lambda: self.begun() == 1, "the session listens")
            waiting = self.counts()
            for n in range(others):
                self.queue.publish(self.look, 2)
                if self.broadcast:
                    self.site.until(lambda n=n: self.begun() == n + 2, "it listens again")
            for _ in range(own):
                self.queue.publish(self.look, 1)
        self.sessions.join()
        self.await_helpers()
        self.look.execute("SELECT aq.trace_stop(pid) FROM unnest(%s::int[]) pid", [self.traced])
        counts = self.counts()
        if others:
            self.queue.clear(self.look)
        return waiting, counts


CASES = {"case1": (1, 0, 0), "case2": (0, 0, 1), "case3": (0, 1, 1), "case4": (0, 0, 0), "case5": (0, 4, 1)}
KINDS = ("lock", "pin", "latch", "mutex")


def cases(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Operations of the four cases, and of a fifth with four false wake-ups."""
    found: dict[str, Any] = {}
    with site.server.connect() as look, Sessions(site) as sessions:
        look.execute(harness.PATH)
        sessions.prepare(["traced"])
        case = Case(site, point, look, sessions)
        try:
            for name, (before, others, own) in CASES.items():
                waiting, counts = case.play(before, others, own)
                found |= _figures(name, counts)
                rows = db.row(look, ROWS, [case.traced, list(KINDS)]) or {}
                found |= {f"{name}_{figure}": value for figure, value in rows.items()}
                if name == "case2":
                    found |= _figures("waiting", waiting)
        finally:
            look.execute("SELECT aq.trace_stop(pid) FROM aq.traces WHERE state = 'running'")
            sessions.close()
            case.queue.drop(look)
    for kind in (*KINDS, "channel"):
        found[f"wake_{kind}"] = found[f"case3_{kind}"] - found[f"case2_{kind}"]
        found[f"predicted5_{kind}"] = found[f"case2_{kind}"] + 4 * found[f"wake_{kind}"]
    return found


def _figures(name: str, counts: Counter[str]) -> dict[str, float]:
    """Gets by kind, and gets and releases together."""
    gets, releases = (float(sum(counts[kind + end] for kind in KINDS)) for end in ("", "_releases"))
    return {f"{name}_{kind}": float(counts[kind]) for kind in (*KINDS, "channel")} | {f"{name}_{kind}_releases": float(counts[f"{kind}_releases"]) for kind in (*KINDS, "channel")} | {
        f"{name}_gets": gets, f"{name}_releases": releases, f"{name}_operations": gets + releases,
    }  # fmt: skip


def system_calls(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """strace of one of the sessions that hammer a latch or mutex."""
    kind = point["kind"]
    name = "lab" if kind == "latch" else "lab 1"
    options = {"hold_us": 0, "sessions": 4, **site.options}
    with site.server.connect() as look, Sessions(site) as sessions:
        call = f"SELECT sum(gets) FROM aq_lab.hammer_{kind}('{name}', sessions => {options['sessions']}, seconds => {seconds + 2}, hold_us => {options['hold_us']})"
        sessions.start("hammer", lambda conn: float(db.value(conn, call)))
        site.until(
            lambda: db.value(look, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq lab'") == options["sessions"],
            "the workers",
        )
        pid = db.value(look, "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq lab'")
        calls = Calls(pid)
        look.execute("SELECT pg_sleep(%s)", [seconds])
        seen = calls.end()
        sessions.join()
    if not seen:
        raise Unsuitable("strace has seen no system call")
    counts = Counter(name for name, _ in seen)
    sleeping = [(name, took) for name, took in seen if name not in ("sched_yield", "futex_wake") and took > 0.0001]
    timed = sum(1 for name, _ in sleeping if name not in ("futex", "epoll_wait"))
    return {
        "yields": float(counts["sched_yield"]), "yields_per_s": counts["sched_yield"] / seconds, "calls": float(sum(counts.values())),
        "timed_sleeps": float(timed), "posted_sleeps": float(len(sleeping) - timed), "calls_per_s": sum(counts.values()) / seconds,
    }  # fmt: skip


WAITED = "SELECT coalesce(sum(total_us), 0)::float8 / 1e6 FROM aq.session_waits WHERE pid = %s AND event = ANY (%s)"
MESSAGES = ["wait for unread message on broadcast channel", "Streams AQ: waiting for messages in the queue"]
IN_VAIN = {"listen": "CALL lab_aq.listen_once(1, {seconds}, NULL, NULL)", "subscriber": "CALL lab_aq.subscriber_once(1, {seconds}, NULL)"}


def wait_calls(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """strace of a session that waits for a message which does not come: into how many calls its wait is divided."""
    wait = max(1, round(seconds))
    with site.server.connect() as look, Sessions(site) as sessions:
        harness.prepare(look, 1)
        try:
            sessions.prepare(["waiter"])
            conn = sessions.connections["waiter"]
            conn.execute(harness.PATH)
            call = IN_VAIN[point["method"]]
            conn.execute(call.format(seconds=1))
            pid = sessions.pid("waiter")
            before = db.value(look, WAITED, [pid, MESSAGES])
            calls = Calls(pid)
            began = time.monotonic()
            conn.execute(call.format(seconds=wait))
            took = time.monotonic() - began
            seen = calls.end()
            waited = db.value(look, WAITED, [pid, MESSAGES]) - before
        finally:
            sessions.close()
            harness.drop(look)
    # others are short: for a latch, for the disk, until the client's next statement
    slices = [length for name, length in seen if name not in ("sched_yield", "futex_wake") and length >= SLICE]
    return {"slices": float(len(slices)), "longest_s": max(slices, default=0.0), "took_s": took, "waited_s": waited, "asked_s": float(wait)}
