"""One queue on several servers of this machine, which are nodes of each other: what each node uses, and where messages are consumed."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any, Iterator

from pgaq import db
from pgaq.cluster import Cluster
from pgaq.lab.site import Site, Unsuitable
from pgaq.load import ledger
from pgaq.load.drivers import DISTRIBUTED, Shape
from pgaq.load.workload import NoSource, Options, Workload, build_client
from pgaq.server import Server

# as the server of the other runs, but smaller; commits are synced, as in the source
SETTINGS = {
    "fsync": "on",
    "shared_buffers": "64MB",
    "max_wal_size": "1GB",
    "max_connections": "100",
    "autovacuum": "off",
    "pgaq.node_heartbeat": "200ms",
}
QUEUE, APART = "lab_load", "lab_apart"
SUBSCRIBERS = 10
ATTEMPTS = 3
TAKE = "SELECT count(*)::int FROM aq.dequeue(%s, as_type => NULL::text, wait => %s)"


@contextlib.contextmanager
def cluster_of(number: int) -> Iterator[Cluster]:
    """So many new servers that know each other."""
    with contextlib.ExitStack() as stack:
        cluster = Cluster(
            {name: stack.enter_context(Server.temporary(f"lab-{name}", settings=SETTINGS, tcp=True)) for name in "abcdefgh"[:number]}
        )
        for name in cluster.servers:
            with cluster.connect(name) as conn:
                conn.execute("CREATE EXTENSION pgaq")
        cluster.join()
        yield cluster


def instances(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A queue and a topic on several nodes, and the same queue on one of them."""
    try:
        build_client()
    except NoSource as error:
        raise Unsuitable(str(error)) from None
    number, sessions = int(point["instances"]), int(site.options.get("sessions", 6))
    queue = Shape(kind="queue", batch=10, sessions=sessions, payload=512)
    topic = Shape(kind="topic", batch=10, sessions=sessions, subscribers=SUBSCRIBERS, payload=512)
    with cluster_of(number) as cluster:
        every = list(cluster.servers.values())
        first, *others = every
        # of a topic each node has a session for every subscriber, as in the source
        plays = {
            "single": (queue, sessions, [first], [first], [first]), "together": (queue, sessions, every, every, every),
            "apart": (queue, sessions, every, [first], others), "topic": (topic, SUBSCRIBERS * number, every, every, every),
        }  # fmt: skip
        found: dict[str, Any] = {}
        for name, play in plays.items():
            found |= {f"{name}_{metric}": value for metric, value in _play(*play, seconds).items()}
        return found | _empty(cluster)


def _play(
    shape: Shape, takers: int, nodes: list[Server], producers: list[Server], consumers: list[Server], seconds: float
) -> dict[str, Any]:
    """Rates, the processor time of each node, the share of messages that were consumed where they were enqueued."""
    first, *others = nodes
    with Workload(first, DISTRIBUTED, shape, Options(consumer_sessions=takers), queue=QUEUE, nodes=others) as work:
        work.producers_at, work.consumers_at = producers, consumers
        try:
            metrics, drained = work.play(min(1.0, seconds / 2), seconds, drain=60)
            report = work.check(drained=drained)
            here = _consumed(work)
        finally:
            work.kill_clients()
            with contextlib.suppress(db.Error):
                work.teardown()
    # processor seconds for a message, of each node, and those of the first one in a second
    each = metrics.extra["node_cpu_us"]
    used = [metrics.server_cpu * us / each[0] if each[0] else 0.0 for us in each]
    machine = len(os.sched_getaffinity(0)) / 100
    return {
        "enqueued_per_s": metrics.enqueued, "delivered_per_s": metrics.delivered, "both_per_s": metrics.enqueued + metrics.delivered, "p50_ms": (metrics.p50 or 0) / 1000,
        "node_percent_max": max(used) / machine, "node_percent_min": min(used) / machine, "per_cpu_s": metrics.delivered / sum(used) if sum(used) else 0.0,
        "consumed": float(here.total()), "local_percent": 100 * here[True] / max(1, here.total()), "exactly_once": float(report.ok), "drained": float(drained),
    }  # fmt: skip


def _consumed(work: Workload) -> Counter[bool]:
    """Messages by whether they were consumed on the node on which they were enqueued, from the clients' ledgers."""
    found: Counter[bool] = Counter()
    for path in work.ledger_dir.glob("*.led"):
        client = ledger.read(path)
        if client.role != "consumer":
            continue
        at = work.placed["consumer", client.number]
        for span in (span for transaction in client.transactions if transaction.outcome == "C" for span in transaction.spans):
            found[work.placed["producer", span.session >> 12] is at] += span.count
    return found


def _empty(cluster: Cluster) -> dict[str, float]:
    """A dequeue on a node without messages while another one has some: at once, and when it waits."""
    empty = came = 0
    first, second, *_ = cluster.servers
    for number in range(ATTEMPTS):
        # a queue of its own: what a node has taken part in once stays there for a while
        queue = f"{APART}_{number}"
        for name in cluster.servers:
            with cluster.connect(name) as conn:
                DISTRIBUTED.setup(conn, queue, Shape())
        with cluster.connect(first) as there, cluster.connect(second) as here:
            there.execute("SELECT aq.enqueue(%s, 'a message'::text)", [queue])
            at_once = db.value(here, TAKE, [queue, "0 s"])
            empty, came = empty + 1 - at_once, came + (at_once or db.value(here, TAKE, [queue, "10 s"]))
    return {"attempts": float(ATTEMPTS), "empty_at_once": float(empty), "came_with_wait": float(came)}
