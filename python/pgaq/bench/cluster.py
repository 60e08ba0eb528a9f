"""bench/cluster: what a queue costs that spans nodes, and what it forwards; see bench/README.md.

Three servers of this machine are nodes of each other, a, b and c.  Producers are on a.
The parts differ in where the consumers are; all nodes share the machine's processors.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from dataclasses import asdict
from typing import Any

from pgaq import db, text
from pgaq.bench import program, throughput
from pgaq.bench.leases import by_turns, median_ratio
from pgaq.cluster import Cluster
from pgaq.load import machine, results
from pgaq.load.drivers import DISTRIBUTED, PGAQ, Driver, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import LoadError, Options, Workload
from pgaq.server import Server

NODES = "abc"
LOCAL = Shape(batch=10, sessions=4)
RATE = Shape(batch=100, sessions=4)
LATENCY = Shape(batch=1, sessions=4, rate=1000, take=10)
LOCALLY, TO_B, TO_BOTH = "a, not distributed", "a to b", "a to b and c"
# contestant: driver, and the nodes with consumers
CONTESTANTS = {LOCALLY: (PGAQ, "a"), "a, distributed": (DISTRIBUTED, "a"), TO_B: (DISTRIBUTED, "b"), TO_BOTH: (DISTRIBUTED, "bc")}
# part: shape, and its contestants, by turns
PARTS = {"local": (LOCAL, [LOCALLY, "a, distributed"]), "forward": (RATE, [TO_B, TO_BOTH]), "latency": (LATENCY, [LOCALLY, TO_B])}
BUSY = 0.2  # CPUs of others: a missed goal says nothing


def play(cluster: Cluster, driver: Driver, consumers: str, shape: Shape, given: argparse.Namespace) -> dict[str, Any]:
    """One round; the ledger must be right."""
    first, *others = cluster.servers.values()
    with first.connect() as conn:
        db.execute(conn, "CHECKPOINT")
    with Workload(first, driver, shape, Options(), queue="cluster", nodes=others if driver is DISTRIBUTED else ()) as workload:
        workload.consumers_at = [cluster.servers[name] for name in consumers]
        metrics, drained = workload.play(given.warm_up, given.seconds, drain=120)
        report = workload.check()
        said = workload.said()
        workload.teardown()
    if not (drained and report.ok):
        raise LoadError(f"the ledger is wrong{'' if drained else ', or messages are left'}: {report} {said[:1000]}")
    return asdict(metrics)


def idle(cluster: Cluster, seconds: float) -> list[float]:
    """CPU seconds per second of each server, with a distributed queue that is not used."""
    for name in cluster.servers:
        with cluster.connect(name) as conn:
            DISTRIBUTED.setup(conn, "cluster", RATE)
    time.sleep(1)
    before = [machine.cpu(server).server for server in cluster.servers.values()]
    began = time.monotonic()
    time.sleep(seconds)
    used = [
        (machine.cpu(server).server - cpu) / (time.monotonic() - began)
        for server, cpu in zip(cluster.servers.values(), before, strict=True)
    ]
    for name in cluster.servers:
        with cluster.connect(name) as conn:
            DISTRIBUTED.teardown(conn, "cluster")
    return used


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/cluster", description="What a queue costs that spans nodes, and what it forwards; see bench/README.md."
    )
    program.add_rounds(parser, rounds=4, warm_up=3, parts=(*PARTS, "idle"))
    program.add_options(parser)
    return parser.parse_args(arguments)


def judge(about: dict[str, Any]) -> list[Claim]:
    """What was measured, as far as it was, against the goals."""
    claims = []

    def claim(what: str, wanted: str, measured: str, ok: bool, rounds: list[dict[str, Any]]) -> None:
        claims.append(Claim(what, wanted, measured, None if not ok and (throughput.middle(rounds, "other_cpu") or 0.0) > BUSY else ok))

    if "local" in about:
        one, other = PARTS["local"][1]
        for what, key, wanted, good in (
            ("local messages/s, distributed / not", "delivered", ">= 0.98 x", lambda ratio: ratio >= 0.98),
            ("the server's CPU per local message, distributed / not", "cpu_us_per_message", "<= 1.02 x", lambda ratio: ratio <= 1.02),
        ):
            ratio, spread = median_ratio({name: [r[key] for r in rounds] for name, rounds in about["local"].items()}, other, one)
            claim(what, wanted, f"{ratio:.3f} x ({spread})", good(ratio), about["local"][other])
    for name, where in ((TO_B, "one node"), (TO_BOTH, "two nodes")):
        if rounds := about.get("forward", {}).get(name):
            rate = throughput.middle(rounds, "delivered") or 0.0
            claim(f"messages/s forwarded to {where}, 100 per call", ">= 30,000", text.number(rate), rate >= 30_000, rounds)
    if "latency" in about:
        p50 = throughput.middle(about["latency"][TO_B], "p50") or 0.0
        claim("p50 of a forwarded message at 1,000/s", "< 5 ms", text.duration(p50), 0 < p50 < 5_000, about["latency"][TO_B])
    if "idle" in about:
        used = statistics.median(about["idle"])
        claim("a server's CPU with two other nodes and an unused queue", "<= 1 %", f"{used:.1%}", used <= 0.01, [])
    return claims


def table(about: dict[str, Any]) -> str:
    rows = []
    for part, name, rounds in ((part, name, rounds) for part in PARTS for name, rounds in about.get(part, {}).items()):
        middle = {key: throughput.middle(rounds, key) for key in ("enqueued", "delivered", "p50", "p99", "client_cpu", "other_cpu")}
        used = [
            throughput.middle([{"us": us} for us in each], "us") for each in zip(*(r["extra"]["node_cpu_us"] for r in rounds), strict=True)
        ]
        rows.append([
            part, name, text.number(middle["enqueued"]), text.number(middle["delivered"]), text.duration(middle["p50"]), text.duration(middle["p99"]),
            *(text.number(us, 1) for us in [*used, None, None][: len(NODES)]), f"{middle['client_cpu']:.2f}", f"{middle['other_cpu']:.2f}",
        ])  # fmt: skip
    return text.table(["", "", "in/s", "out/s", "p50", "p99", "us/msg a", "b", "c", "client", "other"], rows, left=2)


def run(given: argparse.Namespace) -> int:
    settings = {**program.settings(given, shared_buffers="256MB"), "shared_preload_libraries": "pgaq"}
    about: dict[str, Any] = {**results.about(settings, machine.busy()), "seconds": given.seconds}
    with contextlib.ExitStack() as stack:
        cluster = Cluster({})
        for name in NODES:
            server = stack.enter_context(Server.temporary(f"cluster-{name}", parent=program.parent(given), settings=settings, tcp=True))
            cluster.servers[name] = server
            with server.connect() as conn:
                about["server"] = db.value(conn, "SELECT version()")
                db.execute(conn, "CREATE EXTENSION pgaq")
        cluster.join()
        turns = [(part, name) for part in PARTS if part in given.parts for name in by_turns(PARTS[part][1], given.rounds)]
        progress = text.Progress(len(turns) * (given.seconds + given.warm_up + 2))
        for number, (part, name) in enumerate(turns):
            progress.show(f"{part}: {name}", f"run {number + 1} of {len(turns)}")
            about.setdefault(part, {}).setdefault(name, []).append(play(cluster, *CONTESTANTS[name], PARTS[part][0], given))
        if "idle" in given.parts:
            progress.show("idle")
            about["idle"] = idle(cluster, given.seconds)
        progress.clear()
        problems = [line for server in cluster.servers.values() for line in server.problems()]
    about["cpus_busy_after"] = machine.busy()
    print(
        f"\n{about['machine']['cpus']} CPUs, {about['cpus_busy_before']:.2f} were busy before; medians of {given.rounds} rounds of {given.seconds:g} s\n"
    )
    print(table(about) + "\n")
    return program.conclude("cluster", about, judge(about), problems, given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("cluster", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
