"""Several sessions of the server compete for one latch or mutex of the lab; and what a get costs without competition."""

from __future__ import annotations

import os
from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Sessions, Site

# of the class that is changed, and of the class of all other latches
LATCHES = {"own": ("lab", 1), "rest": ("message cache", 0)}

APART = """SELECT min(number - before) FROM (SELECT at AS number, lag(at) OVER (ORDER BY at) AS before
	FROM (SELECT ('x' || lpad(addr, 16, '0'))::bit(64)::bigint AS at FROM sys."v$latch_children" WHERE name = 'lab') a) b"""


def hammer(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Throughput, processor time and the views' account; the sessions' own count of gets beside it."""
    given = {**site.options, **point}
    kind = given.get("kind", "latch")
    call = {
        "sessions": int(given.get("sessions", 4)), "mode": str(given.get("mode", "exclusive")), "seconds": seconds,
        "hold_us": int(given.get("hold_us", 0)), "pause_us": int(given.get("pause_us", 0)),
    }  # fmt: skip
    name = "lab" if kind == "latch" else "lab 1"
    arguments = ", ".join(f"{key} => %({key})s" for key in call)
    with site.connect() as conn:
        # by another session, so that it does not count itself
        with site.server.connect() as look:
            before = Counters(look)
            rows = db.rows(conn, f"SELECT * FROM aq_lab.hammer_{kind}(%(name)s, {arguments})", {**call, "name": name})
            change = Counters(look) - before
    done = float(sum(row["gets"] for row in rows))
    elapsed = max(row["elapsed_us"] for row in rows) / 1e6
    cpu = sum(row["cpu_us"] for row in rows) / 1e6
    views = ("latch", "lab") if kind == "latch" else ("mutex", "Lab")
    figures = {figure: change(*views, figure) for figure in ("gets", "misses", "spin_gets", "sleeps")}
    spun = change("spin", kind if kind == "latch" else "Lab")
    event = "latch: lab" if kind == "latch" else "aq: lab mutex X"
    events = change("event", event, "waits") or change("event", event.replace("X", "S"), "waits") or change("event", "latch free", "waits")
    processors = float(len(os.sched_getaffinity(0)))
    gets_of = [row["gets"] for row in rows]
    return {
        **figures, "done": done, "throughput": done / elapsed, "cpu_s": cpu, "cpus": cpu / elapsed, "processors": processors, "cpu_us_per_get": cpu * 1e6 / max(1.0, done),
        "wait_s": change(*views, "wait_us") / 1e6, "waits": change(*views, "waits") if kind == "mutex" else figures["sleeps"], "events": events,
        "recurrent": figures["sleeps"] + figures["spin_gets"] - figures["misses"], "unfair": max(gets_of) / max(1, min(gets_of)),
        "spun_us_per_miss": spun / figures["misses"] if figures["misses"] else 0.0,
    }  # fmt: skip


def two_classes(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Two latches of different classes under the same contention at the same time: what a spin count does to each."""
    given = {
        "hold_us": 50,
        "pause_us": 20,
        "sessions": 4,
        **{key: value for key, value in site.options.items() if key in ("hold_us", "pause_us", "sessions")},
        "seconds": seconds,
    }
    call = f"SELECT sum(gets) AS gets, max(elapsed_us) / 1e6 AS elapsed, sum(cpu_us) AS cpu FROM aq_lab.hammer_latch(%(latch)s, child => %(child)s, {', '.join(f'{key} => {value}' for key, value in given.items())})"
    with site.server.connect() as look, Sessions(site) as sessions:
        sessions.prepare(LATCHES)
        before = Counters(look)
        for which, (latch, child) in LATCHES.items():
            sessions.start(which, lambda conn, latch=latch, child=child: db.row(conn, call, {"latch": latch, "child": child}))
        results = sessions.join()
        change = Counters(look) - before
    found: dict[str, Any] = {}
    for which, (latch, _) in LATCHES.items():
        done, elapsed, cpu = (float(value) for value in results[which].values())
        misses = change("latch", latch, "misses")
        found |= {
            f"{which}_done": done, f"{which}_gets": change("latch", latch, "gets"), f"{which}_misses": misses, f"{which}_sleeps": change("latch", latch, "sleeps"),
            f"{which}_throughput": done / elapsed, f"{which}_cpu_us_per_get": cpu / max(1.0, done),
            f"{which}_spun_us_per_miss": change("spin", "latch" if latch == "lab" else latch) / misses if misses else 0.0,
            f"{which}_ended_by_spin": 100 * change("latch", latch, "spin_gets") / misses if misses else 0.0,
        }  # fmt: skip
    return found


def cost(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Nanoseconds of an uncontended get and release."""
    with site.connect() as conn:
        rows = db.rows(conn, "SELECT what, mode, nanoseconds FROM aq_lab.cost(%s)", [max(100, int(seconds * 2000))])
    return {f"{row['what']}_{row['mode']}".replace(" ", "_").lower().strip("_"): float(row["nanoseconds"]) for row in rows}


def memory(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Bytes of a latch and of a mutex; and by the addresses that the view of latches shows, the distance of two."""
    with site.connect() as conn:
        found = {f"{row['what'].lower()}_bytes": float(row["bytes"]) for row in db.rows(conn, "SELECT what, bytes FROM aq_lab.memory()")}
        found["difference"] = found["latch_bytes"] - found["mutex_bytes"]
        found["latch_apart"] = float(db.value(conn, APART))
    return found
