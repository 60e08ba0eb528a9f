"""What the operations of the running server cost, and the same sessions on simulated processors with these costs."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import time
from typing import Any

from pgaq import db
from pgaq.lab.simulate.costs import MS, Costs
from pgaq.lab.simulate.programs import PROGRAMS
from pgaq.lab.site import Counters, Sessions, Site, Unsuitable, cpu_seconds
from pgaq.lab.workloads import contention, harness, row_cache, static

POLLS = 255  # of a spin between two steps of a wait scheme
CALLS = 100
BURN = 200_000  # iterations, about a millisecond
LOOP = "DO $$ DECLARE f integer; e timestamptz; BEGIN FOR i IN 1 .. {number} LOOP CALL {call}; END LOOP; END $$"
LISTENS = "SELECT wait_event_type = 'Extension' AND state = 'active' FROM pg_stat_activity WHERE pid = %s"
FALSE = "SELECT value FROM sys.\"v$sysstat\" WHERE name = 'queue wake-ups false'"


def costs(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Everything that pgaq.lab.simulate.costs has, each in a fraction of the seconds."""
    found = _locks(site, seconds) | _waits(site, seconds) | _processors(seconds) | _rows(site, seconds) | _queue(site)
    return Costs().flat() | found | _sharing(site)


def _sharing(site: Site) -> dict[str, float]:
    """How much longer the same work takes while another session works on the other processor."""
    if len(os.sched_getaffinity(0)) < 2:
        return {}
    burn = "SELECT aq_lab.burn({})"

    def fastest(conn: db.Connection) -> float:
        return float(min(db.value(conn, burn.format(BURN)) for _ in range(20)))

    with Sessions(site) as sessions:
        sessions.prepare(["one", "two"])
        alone = fastest(sessions.connections["one"])
        # longer than what is measured beside it
        sessions.start("two", lambda conn: float(db.value(conn, burn.format(BURN * 60))))
        beside = statistics.median(float(db.value(sessions.connections["one"], burn.format(BURN))) for _ in range(20))
        sessions.join()
    return {"sharing": max(1.0, beside / max(1.0, alone))}


def _locks(site: Site, seconds: float) -> dict[str, float]:
    """Gets without competition, and what the line of a lock costs that two processors use in turn."""
    gets = contention.cost(site, {}, seconds)
    hammered = {
        n: contention.hammer(Site(site.server, options={"kind": "latch", "mode": "shared"}), {"sessions": n}, seconds / 4) for n in (1, 2)
    }
    alone, together = hammered[1]["cpu_us_per_get"] * 1000, hammered[2]["cpu_us_per_get"] * 1000
    found = {"latch_ns": gets["latch_exclusive"], "mutex_ns": gets["mutex_exclusive"], "loop_ns": max(0.0, alone - gets["latch_exclusive"])}
    # a get and a release are two changes; only while both sessions have a processor does the line move
    both = min(1.0, hammered[2]["cpus"] / 2)
    if len(os.sched_getaffinity(0)) > 1 and together > alone and both > 0.1:
        found["transfer_ns"] = (together - alone) / 2 / both
    return found


def _waits(site: Site, seconds: float) -> dict[str, float]:
    """A poll, a yield, and how late a sleep ends, from one wait in three schemes."""

    def waited(scheme: int) -> dict[str, Any]:
        return static.static_wait(Site(site.server, {"pgaq.mutex_wait_scheme": scheme}), {}, seconds / 4)

    spun, yielded, slept = waited(3), waited(0), waited(1)
    poll = spun["cpu_s"] * 1e9 / (spun["sleeps"] * POLLS)
    return {
        "poll_ns": poll, "yield_ns": max(100.0, yielded["cpu_s"] * 1e9 / yielded["sleeps"] - POLLS * poll),
        "late_ns": max(0.0, (slept["ms_per_sleep"] - 1) * MS),
    }  # fmt: skip


def _play(rounds: int, first: tuple[int, int], second: tuple[int, int], processor: int) -> None:
    """The other side of a game with two pipes."""
    os.sched_setaffinity(0, {processor})
    for _ in range(rounds):
        os.read(first[0], 1)
        os.write(second[1], b"x")


def _game(processors: list[int], rounds: int) -> float:
    """Nanoseconds from a write to the end of the other process's read, both on these processors."""
    first, second = os.pipe(), os.pipe()
    before = os.sched_getaffinity(0)
    other = multiprocessing.get_context("fork").Process(target=_play, args=(rounds, first, second, processors[-1]))
    other.start()
    try:
        os.sched_setaffinity(0, {processors[0]})
        took = []
        for _ in range(rounds):
            began = time.perf_counter_ns()
            os.write(first[1], b"x")
            os.read(second[0], 1)
            took.append((time.perf_counter_ns() - began) / 2)
    finally:
        os.sched_setaffinity(0, before)
        other.join()
        for end in (*first, *second):
            os.close(end)
    return statistics.median(took)


def _processors(seconds: float) -> dict[str, float]:
    """A switch, a post, a wake-up on an idle processor, a reading of the clock."""
    rounds = max(50, int(seconds * 300))
    ends = os.pipe()
    began = time.perf_counter_ns()
    for _ in range(rounds):
        os.write(ends[1], b"x")
        os.read(ends[0], 1)
    alone = (time.perf_counter_ns() - began) / rounds
    for end in ends:
        os.close(end)
    mine = sorted(os.sched_getaffinity(0))
    same = _game(mine[:1], rounds)
    # a write that wakes is a write and the wake-up of a task, as a post is
    found = {"switch_ns": max(200.0, (same - alone) / 2), "post_ns": max(500.0, (same - alone) / 2)}
    if len(mine) > 1:
        found["wake_ns"] = max(1000.0, _game(mine[:2], rounds) - alone)
    return found


def _rows(site: Site, seconds: float) -> dict[str, float]:
    """An execution that reads the dictionary cache, in processor time."""
    alone = row_cache.readers(site, {"sessions": 1}, seconds / 4)
    return {"execution_ns": alone["cpu_s"] * 1e9 / max(1.0, alone["executions"]), "rows": alone["properties"]}


def _queue(site: Site) -> dict[str, float]:
    """The parts of the queue's loop: the processor time of the session, and its gets."""
    settings = {"pgaq.listen_wakeup": "broadcast", "pgaq.session_pins": "off"}
    found: dict[str, float] = {}
    with site.server.connect() as look, Sessions(Site(site.server, settings)) as sessions:
        harness.prepare(look, 2)
        sessions.prepare(["one", "two"])
        one, two = sessions.connections["one"], sessions.connections["two"]
        for conn in (one, two):
            conn.execute(harness.PATH)

        def measured(name: str, key: str, call: str) -> None:
            """So many calls in one statement, as the loops make them."""
            sessions.connections[key].execute(LOOP.format(number=5, call=call))
            cpu, before = cpu_seconds(sessions.pid(key)), Counters(look)
            sessions.connections[key].execute(LOOP.format(number=CALLS, call=call))
            cpu, change = cpu_seconds(sessions.pid(key)) - cpu, Counters(look) - before
            found.update({f"{name}_ns": cpu * 1e9 / CALLS, f"{name}_gets": change("mutex", "Library Cache") / CALLS})

        measured("put", "one", "lab_aq.put(1)")
        measured("take", "two", "lab_aq.listen_once(1, 0, f, e)")
        measured("vain", "two", "lab_aq.listen_once(2, 0, f, e)")
        found |= _false_wakeups(site, look, sessions, found["put_gets"])
        sessions.close()
        harness.drop(look)
    return found


def _false_wakeups(site: Site, look: db.Connection, sessions: Sessions, put_gets: float) -> dict[str, float]:
    """A session listens while messages for another consumer come: its processor time for each."""
    pid, one = sessions.pid("two"), sessions.connections["one"]

    def listens() -> bool:
        return bool(db.value(look, LISTENS, [pid]))

    def false() -> float:
        return float(db.value(look, FALSE))

    sessions.start("two", lambda conn: conn.execute("CALL lab_aq.listen_once(2, 60, NULL, NULL)") and None)
    site.until(listens, "the session listens")
    cpu, before, woken = cpu_seconds(pid), Counters(look), false()
    for _ in range(CALLS):
        one.execute("CALL lab_aq.put(1)")
        # one wake-up for each message: it must listen again
        site.until(listens, "the session listens again")
    cpu, change, woken = cpu_seconds(pid) - cpu, Counters(look) - before, max(1.0, false() - woken)
    one.execute("CALL lab_aq.put(2)")
    sessions.join()
    return {"recheck_ns": cpu * 1e9 / woken, "recheck_gets": max(0.0, (change("mutex", "Library Cache") - CALLS * put_gets) / woken)}


def simulated(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The point on simulated processors: the options name the program; the seconds are simulated ones."""
    given = {**site.options, **point}
    measured = _costs(site)
    # the scheduler's slice grows with the logarithm of the processors, to those of eight
    processors = int(given["processors"])
    measured.slice_ns = 0.7 * MS * (1 + min(3, processors.bit_length() - 1))
    if processors > 2:
        # the sources count cores
        measured.sharing = 1.0
    return PROGRAMS[given["program"]](measured, given, seconds, site.repeat) | {"simulated": 1.0}


def _costs(site: Site) -> Costs:
    """Those that this run of the lab has measured."""
    records = [json.loads(path.read_text()) for path in sorted(site.output.glob("runs/simulated-costs-*.json"))] if site.output else []
    good = [record["metrics"] for record in records if record["metrics"]]
    if not good:
        raise Unsuitable("what the server's operations cost was not measured")
    return Costs.of({name: statistics.median([metrics[name] for metrics in good if name in metrics]) for name in good[0]})
