"""One traced session: the four cases of a listen with its dequeue; system calls of a session under contention."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from pgaq import db
from pgaq.lab.site import Calls, Sessions, Site, Unsuitable

MINE, OTHER = "ksub_1", "ksub_31"
CHANNEL = "channel operations parent latch"
COUNTS = """SELECT operation, sum(gets)::float AS gets, sum(releases)::float AS releases,
	coalesce(sum(gets) FILTER (WHERE object = %s), 0)::float AS channel FROM aq.trace_objects(%s) GROUP BY 1"""
BEGUN = "SELECT count(*) FROM aq.trace(%s) WHERE operation = 'wait' AND action = 'begin'"


class Case:
    """A session that listens and dequeues, and one that enqueues."""

    def __init__(self, site: Site, point: dict[str, Any], look: db.Connection, sessions: Sessions) -> None:
        self.site, self.look, self.sessions = site, look, sessions
        self.session = sessions.connections["traced"]
        self.pid = sessions.pid("traced")
        self.session.execute(f"SET pgaq.listen_wakeup = {point['mode']}; SET pgaq.session_pins = {point['pins']}")

    def publish(self, consumer: str) -> None:
        self.look.execute("SELECT aq.enqueue('lab_case', %s::jsonb, recipients => %s)", ["1", [consumer]])

    def listen(self, timeout: float) -> None:
        call = f"CALL aq.listen(ARRAY['lab_case'], ARRAY['{MINE}'], '{timeout} s', NULL, NULL)"
        self.sessions.start("traced", lambda conn: db.value(conn, call))

    def dequeue(self) -> int:
        return len(self.session.execute(f"SELECT payload FROM aq.dequeue('lab_case', '{MINE}', 1)").fetchall())

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for operation, gets, releases, channel in self.look.execute(COUNTS, [CHANNEL, self.pid]).fetchall():
            found[operation] = gets
            found[f"{operation}_releases"] = releases
            found["channel"] += channel
        return found

    def begun(self) -> int:
        return int(db.value(self.look, BEGUN, [self.pid]))

    def play(self, before: int, others: int, own: int, timeout: float) -> tuple[Counter[str], Counter[str]]:
        """Counts when the session waits first, and at the end."""
        self.listen(0.01)
        self.sessions.join()
        for _ in range(before):
            self.publish(MINE)
        self.look.execute("SELECT aq.trace_start(%s)", [self.pid])
        self.listen(timeout)
        waiting: Counter[str] = Counter()
        if not before:
            self.site.until(lambda: self.begun() == 1, "the session listens")
            waiting = self.counts()
            for n in range(others):
                self.publish(OTHER)
                if self.session.info.transaction_status >= 0 and self.false_wakes:
                    self.site.until(lambda n=n: self.begun() == n + 2, "it listens again")
            for _ in range(own):
                self.publish(MINE)
        self.sessions.join()
        if before or own:
            self.dequeue()
        self.look.execute("SELECT aq.trace_stop(%s)", [self.pid])
        counts = self.counts()
        self.look.execute(f"SELECT count(*) FROM aq.dequeue('lab_case', '{OTHER}', 100)")
        return waiting, counts


def cases(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Operations of the four cases, and of a fifth with four false wake-ups."""
    with site.server.connect() as look, Sessions(site) as sessions:
        look.execute("SELECT aq.drop_queue('lab_case', force => true) FROM aq.queues WHERE queue_name = 'lab_case'")
        look.execute("SELECT aq.create_queue('lab_case', multiple_consumers => true, shards => 1)")
        look.execute("SELECT aq.subscribe('lab_case', c) FROM unnest(%s::text[]) c", [[MINE, OTHER]])
        sessions.prepare(["traced"])
        case = Case(site, point, look, sessions)
        case.false_wakes = point["mode"] == "broadcast"  # type: ignore[attr-defined]
        # everything has been used once
        case.publish(MINE)
        case.publish(OTHER)
        case.dequeue()
        look.execute(f"SELECT count(*) FROM aq.dequeue('lab_case', '{OTHER}', 100)")
        found: dict[str, Any] = {}
        for name, before, others, own, timeout in (
            ("case1", 1, 0, 0, 60), ("case2", 0, 0, 1, 60), ("case3", 0, 1, 1, 60), ("case4", 0, 0, 0, 0.3), ("case5", 0, 4, 1, 60),
        ):  # fmt: skip
            waiting, counts = case.play(before, others, own, timeout)
            for prefix, one in ((name, counts), ("waiting", waiting)):
                if prefix == "waiting" and name != "case2":
                    continue
                for kind in ("lock", "pin", "latch", "mutex", "channel"):
                    found[f"{prefix}_{kind}"] = float(one[kind])
                found[f"{prefix}_operations"] = float(sum(n for key, n in one.items() if key.split("_")[0] in ("lock", "pin", "latch", "mutex")))
                found[f"{prefix}_releases"] = float(sum(n for key, n in one.items() if key.endswith("_releases") and not key.startswith("wait")))
                found[f"{prefix}_gets"] = float(sum(one[kind] for kind in ("lock", "pin", "latch", "mutex")))
        look.execute("SELECT aq.trace_stop(pid) FROM aq.traces WHERE state = 'running'")
        sessions.close()
        look.execute("SELECT aq.drop_queue('lab_case', force => true)")
    for kind in ("lock", "pin", "latch", "mutex", "channel"):
        found[f"wake_{kind}"] = found[f"case3_{kind}"] - found[f"case2_{kind}"]
        found[f"predicted5_{kind}"] = found[f"case2_{kind}"] + 4 * found[f"wake_{kind}"]
    return found


def system_calls(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """strace of one of the sessions that hammer a latch or mutex."""
    kind = point["kind"]
    name = "lab" if kind == "latch" else "lab 1"
    options = {"hold_us": 0, "sessions": 4, **site.options}
    with site.server.connect() as look, Sessions(site) as sessions:
        call = f"SELECT sum(gets) FROM aq_lab.hammer_{kind}('{name}', sessions => {options['sessions']}, seconds => {seconds + 2}, hold_us => {options['hold_us']})"
        sessions.start("hammer", lambda conn: float(db.value(conn, call)))
        site.until(lambda: db.value(look, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq lab'") == options["sessions"], "the workers")
        pid = db.value(look, "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq lab'")
        calls = Calls(pid, Path(tempfile.mkdtemp(prefix="pgaq-lab-")) / "calls")
        look.execute("SELECT pg_sleep(%s)", [seconds])
        seen = calls.end()
        sessions.join()
    if not seen:
        raise Unsuitable("strace has seen no system call")
    counts = Counter(name for name, _ in seen)
    sleeping = [(name, took) for name, took in seen if name != "sched_yield" and took > 0.0001]
    timed = sum(1 for name, _ in sleeping if name not in ("futex", "epoll_wait"))
    return {
        "yields": float(counts["sched_yield"]), "yields_per_s": counts["sched_yield"] / seconds, "calls": float(sum(counts.values())),
        "timed_sleeps": float(timed), "posted_sleeps": float(len(sleeping) - timed), "calls_per_s": sum(counts.values()) / seconds,
    }  # fmt: skip
