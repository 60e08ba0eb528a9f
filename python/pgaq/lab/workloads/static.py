"""One session holds a mutex in examine mode; another one requests it, in the point's wait scheme."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from pgaq import db
from pgaq.lab.site import Calls, Counters, Sessions, Site, Unsuitable, cpu_seconds, wanted_seconds

MUTEX = "lab 1"
HELD = "SELECT count(*) > 0 FROM aq.mutex_holders"
WAITS = "SELECT count(*) > 0 FROM sys.\"v$session_wait\" WHERE pid = %s AND event LIKE '%%mutex%%' AND state = 'WAITING'"
FOREVER = 3600
# what a sleep of each scheme is in the kernel; the latch's own calls are not among them
SLEEPS = ("futex", "poll", "ppoll", "select", "pselect6", "clock_nanosleep", "nanosleep", "semtimedop")


def hold(conn: db.Connection) -> None:
    """Hold the mutex until the call is cancelled."""
    try:
        conn.execute(f"SELECT aq_lab.hold_mutex('{MUTEX}', {FOREVER}, 'examine')")
    except db.Canceled:
        pass


def static_wait(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Waits, sleeps and processor time of the one wait; with the option calls its system calls as well.

    The mutex is released this number of seconds after the other session was seen waiting, however long it took to start.
    """
    with site.server.connect() as look, Sessions(site) as sessions:
        sessions.prepare(["holder", "waiter"])
        # attached and warm, so that the wait is all that happens
        sessions.connections["waiter"].execute("SELECT aq_lab.hold_mutex('lab 2', 0)")
        before = Counters(look)
        pid = sessions.pid("waiter")
        calls = trace_calls(site, pid)
        sessions.start("holder", hold)
        site.until(lambda: db.value(look, HELD), "the holder")
        cpu, wanted, began = cpu_seconds(pid), wanted_seconds(pid), time.monotonic()
        sessions.start("waiter", lambda conn: conn.execute(f"SELECT aq_lab.hold_mutex('{MUTEX}', 0)") and None)
        site.until(lambda: db.value(look, WAITS, [pid]), "the waiter")
        seen_at = time.monotonic()
        time.sleep(seconds)
        held = time.monotonic() - seen_at
        sessions.connections["holder"].cancel()
        sessions.join()
        took, used, wanted = time.monotonic() - began, cpu_seconds(pid) - cpu, wanted_seconds(pid) - wanted
        seen = calls.end() if calls else None
        change = Counters(look) - before
        own = (
            db.row(
                look,
                "SELECT coalesce(sum(waits), 0) AS waits, coalesce(sum(total_us), 0) AS us FROM aq.session_waits WHERE pid = %s AND event LIKE '%%mutex%%'",
                [pid],
            )
            or {}
        )
    sleeps = change("mutex", "Lab", "sleeps")
    found = {
        "sleeps": sleeps, "slept_s": change("mutex", "Lab", "wait_us") / 1e6, "waits": float(own["waits"]), "wait_s": float(own["us"]) / 1e6,
        "held_s": held, "took_s": took, "cpu_s": used, "cpu_percent": 100 * used / took, "wanted_percent": 100 * wanted / took,
        "sleeps_per_s": sleeps / took,
        "ms_per_sleep": 1000 * took / sleeps if sleeps else 0.0,
    }  # fmt: skip
    return found | (of_calls(seen) if seen is not None else {})


def trace_calls(site: Site, pid: int) -> Calls | None:
    """strace of the waiter, if the run asks for it."""
    if not site.options.get("calls"):
        return None
    return Calls(pid)


def of_calls(seen: list[tuple[str, float]]) -> dict[str, Any]:
    """Yields and sleeps of the trace: their numbers, and the length of the first sleeps."""
    if not seen:
        raise Unsuitable("strace has seen no system call")
    counts = Counter(name for name, _ in seen)
    # a call that finds what it would wait for takes no time
    sleeps = [1000 * seconds for name, seconds in seen if name in SLEEPS and seconds > 0.0005]
    return {
        "yields": float(counts["sched_yield"]), "sleep_calls": float(len(sleeps)), "calls": float(sum(counts.values())),
        "steps": {float(n): ms for n, ms in enumerate(sleeps[:16], 1)}, "longest_ms": max(sleeps, default=0.0),
        "yields_per_sleep": counts["sched_yield"] / len(sleeps) if sleeps else float(counts["sched_yield"]),
    }  # fmt: skip
