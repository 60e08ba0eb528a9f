"""Several sessions of the server compete for one latch or mutex of the lab; and what a get costs without competition."""

from __future__ import annotations

import os
from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Site


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


def cost(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Nanoseconds of an uncontended get and release."""
    with site.connect() as conn:
        rows = db.rows(conn, "SELECT what, mode, nanoseconds FROM aq_lab.cost(%s)", [max(100, int(seconds * 2000))])
    return {f"{row['what']}_{row['mode']}".replace(" ", "_").lower().strip("_"): float(row["nanoseconds"]) for row in rows}
