"""Sessions that read one property of the dictionary cache as often as they can, in a loop inside the server."""

from __future__ import annotations

import threading
import time
from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Sessions, Site, cpu_seconds, wanted_seconds

LOOP = """
CREATE OR REPLACE FUNCTION lab_read_property(seconds double precision) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	found text;
	executions bigint := 0;
BEGIN
	WHILE clock_timestamp() < ends LOOP
		FOR i IN 1 .. 20 LOOP
			SELECT value INTO found FROM sys.nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET';
		END LOOP;
		executions := executions + 20;
	END LOOP;
	RETURN executions;
END $$
"""
EVENTS = ("row cache mutex", "latch: row cache objects")
# P1, and whether the parameters are those of a latch: its address and its number
WAITING = """SELECT event, p1, (p1text, p2text) = ('address', 'number') AND p1 <> 0
		AND p2 = (SELECT "latch#" FROM sys."v$latch" WHERE name = 'row cache objects') AS described
	FROM sys."v$session" WHERE event = ANY (%s) AND state = 'WAITING'"""


class Sampler(threading.Thread):
    """What sessions wait for, as the source's queries ask it, some times a second."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self.conn, self.over, self.seen = site.server.connect(), threading.Event(), []

    def run(self) -> None:
        while not self.over.wait(0.1):
            self.seen += self.conn.execute(WAITING, [list(EVENTS)]).fetchall()

    def end(self) -> list[tuple[Any, ...]]:
        self.over.set()
        self.join()
        self.conn.close()
        return self.seen


def readers(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Executions of all sessions, gets of the cache, and what they waited for."""
    number = int(point.get("sessions", site.options.get("sessions", 1)))
    with site.server.connect() as look, Sessions(site) as sessions:
        look.execute(LOOP)
        sessions.prepare(range(number))
        for conn in sessions.connections.values():
            conn.execute("SELECT lab_read_property(0.01)")
        pids = [sessions.pid(n) for n in range(number)]
        rows = db.value(look, "SELECT count(*) FROM sys.database_properties")
        used = {pid: (cpu_seconds(pid), wanted_seconds(pid)) for pid in pids}
        before, began = Counters(look), time.monotonic()
        sampler = Sampler(site)
        sampler.start()
        for n in range(number):
            sessions.start(n, lambda conn: db.value(conn, "SELECT lab_read_property(%s)", [seconds]))
        executions = float(sum(sessions.join().values()))
        took = time.monotonic() - began
        change = Counters(look) - before
        seen = sampler.end()
        cpu, wanted = (sum(now(pid) - used[pid][i] for pid in pids) for i, now in enumerate((cpu_seconds, wanted_seconds)))
        cache = db.row(look, 'SELECT "cache#" AS number, usage, latch_child FROM sys."v$rowcache" WHERE parameter = \'dc_props\'') or {}
    mutex = change("event", EVENTS[0], "waits") or change("mutex", "Row Cache", "waits")
    event = EVENTS[0] if mutex else EVENTS[1]
    waits, wait_s = change("event", event, "waits"), change("event", event, "wait_us") / 1e6
    gets = change("cache", "dc_props")
    latch = {figure: change("latch", "row cache objects", figure) for figure in ("gets", "misses", "sleeps", "spin_gets")}
    db_time = change("time", "DB time") / 1e6
    places = {
        f"{kind}_{name}": sum(value for (group, location, of), value in change.values.items() if group == "location" and of == figure and location.startswith("row cache:") and ("find" in location) == (kind == "find"))
        for kind in ("find", "other") for name, figure in (("sleeps", "sleeps"), ("ms", "wait_us"))
    }  # fmt: skip
    found = {
        "executions": executions, "executions_per_s": executions / took, "gets": gets, "gets_per_execution": gets / max(1.0, executions),
        "properties": float(rows), "expected_gets": executions * rows, "cache_misses": change("cache", "dc_props", "misses"),
        "waits": waits, "wait_s": wait_s, "wait_ms": 1000 * wait_s / waits if waits else 0.0, "wait_percent": 100 * wait_s / (number * took),
        "mutex_sleeps": change("mutex", "Row Cache", "sleeps"), "mutex_waits": change("mutex", "Row Cache", "waits"),
        "elapsed_s": number * took, "cpu_s": cpu, "cpu_percent": 100 * cpu / (number * took), "wanted_percent": 100 * wanted / (number * took),
        "cache_number": float(cache.get("number") or 0), "usage": float(cache.get("usage") or 0), "latch_child": float(cache.get("latch_child") or 0),
        "samples": float(len(seen)), "cache_samples": float(sum(row[1] == cache.get("number") for row in seen if row[0] == EVENTS[0])),
        "mutex_samples": float(sum(row[0] == EVENTS[0] for row in seen)), "latch_samples": float(sum(row[0] == EVENTS[1] for row in seen)),
        "described_samples": float(sum(row[0] == EVENTS[1] and row[2] for row in seen)),
        "db_time_s": db_time, "db_percent": 100 * wait_s / db_time if db_time else 0.0, "total_percent": 100 * number * took / db_time if db_time else 0.0,
        "find_sleeps": places["find_sleeps"], "other_sleeps": places["other_sleeps"], "find_ms": places["find_ms"] / 1000, "other_ms": places["other_ms"] / 1000,
    }  # fmt: skip
    found |= {f"latch_{figure}": value for figure, value in latch.items()}
    found["latch_gets_per_get"] = latch["gets"] / gets if gets else 0.0
    found["spun_percent"] = 100 * latch["spin_gets"] / latch["misses"] if latch["misses"] else 0.0
    found["recurrent"] = latch["sleeps"] + latch["spin_gets"] - latch["misses"]
    return found
