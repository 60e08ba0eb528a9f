"""The workloads of the lab: each measures one point of a run and returns its metrics.

A metric is a number, or a curve as a dict from x to y.  A workload takes a Site
(a private server and what the run says), the point's axes, and the seconds.
"""

from __future__ import annotations

from typing import Any, Callable

from pgaq.lab.site import Site
from pgaq.lab.workloads import (
    contention,
    harness,
    jms,
    names,
    nodes,
    payloads,
    queries,
    queues,
    row_cache,
    simulated,
    static,
    ten_calls,
    traced,
    uncommitted,
)

Workload = Callable[[Site, dict[str, Any], float], dict[str, Any]]

WORKLOADS: dict[str, Workload] = {
    "static_wait": static.static_wait,
    "hammer": contention.hammer,
    "two_classes": contention.two_classes,
    "cost": contention.cost,
    "memory": contention.memory,
    "queue_loop": harness.queue_loop,
    "traced_cases": traced.cases,
    "traced_wait": traced.system_calls,
    "wait_calls": traced.wait_calls,
    "ten_calls": ten_calls.ten_calls,
    "row_cache": row_cache.readers,
    "many_names": names.many_names,
    "restart": names.restart,
    "large_bodies": payloads.large_bodies,
    "listen_beside": uncommitted.listen_beside,
    "queue_curve": queues.curve,
    "jms_figures": jms.figures,
    "large_message": jms.large,
    "instances": nodes.instances,
    "queries": queries.questions,
    "simulation_costs": simulated.costs,
    "simulated": simulated.simulated,
}
