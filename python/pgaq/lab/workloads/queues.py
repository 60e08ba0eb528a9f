"""Throughput, response time and processor use of a queue, by bench's client: as fast as it goes, or at a rate."""

from __future__ import annotations

import contextlib
from typing import Any

from pgaq import db
from pgaq.lab.site import Site, Unsuitable
from pgaq.load.drivers import DRIVERS, Shape
from pgaq.load.workload import NoSource, Options, Workload, build_client

NAMES = {"sharded": "pgaq", "table": "classic"}


def curve(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One shape of one kind of queue; every message is checked against the clients' ledgers."""
    try:
        build_client()
    except NoSource as error:
        raise Unsuitable(str(error)) from None
    given = {**site.options, **point}
    name = NAMES.get(str(given.get("store", "sharded")), "pgaq")
    if name not in DRIVERS:
        raise Unsuitable(f"there is no driver {name}; there are {', '.join(DRIVERS)}")
    shape = Shape(
        kind=str(given.get("kind", "queue")), batch=int(given.get("batch", 10)), sessions=int(given["sessions"]), subscribers=int(given.get("subscribers", 10)),
        payload=int(given.get("payload", 512)), rate=float(given.get("rate", 0)),
    )  # fmt: skip
    with Workload(site.server, DRIVERS[name], shape, Options(), queue="lab_load") as work:
        try:
            metrics, drained = work.play(min(1.0, seconds / 2), seconds, drain=60)
            report = work.check(drained=drained)
        except Exception:
            # what is left would be in the way of the next point; there may be no queue yet
            work.kill_clients()
            with contextlib.suppress(db.Error):
                work.teardown()
            raise
        work.kill_clients()
        work.teardown()
    delivered = metrics.delivered
    return {
        "enqueued_per_s": metrics.enqueued, "delivered_per_s": delivered, "both_per_s": metrics.enqueued + delivered,
        "p50_ms": (metrics.p50 or 0) / 1000, "p99_ms": (metrics.p99 or 0) / 1000, "server_cpus": metrics.server_cpu, "client_cpus": metrics.client_cpu,
        "per_cpu_s": delivered / metrics.server_cpu if metrics.server_cpu else 0.0, "cpu_us_per_message": metrics.cpu_us_per_message,
        "enqueue_ms": (metrics.enqueue_p50 or 0) / 1000, "dequeue_ms": (metrics.dequeue_p50 or 0) / 1000, "wal_per_message": metrics.wal_per_message,
        "out_of_order": float(report.counts.get("order", 0)), "deliveries": float(report.deliveries), "left": float(report.counts.get("lost", 0)), "exactly_once": float(report.ok), "drained": float(drained), "rate": float(given.get("rate", 0)),
    }  # fmt: skip
