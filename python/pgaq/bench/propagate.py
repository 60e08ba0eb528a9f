"""bench/propagate: what propagation to another queue of the database delivers and costs; see bench/README.md.

Three parts on one server: the rate with a hundred messages per batch, the latency at a
thousand messages per second, and what producers lose while their messages go on.
"""

from __future__ import annotations

import argparse
import os
import statistics
from dataclasses import replace
from typing import Any

from pgaq import db, text
from pgaq.bench import program, throughput
from pgaq.bench.leases import by_turns, median_ratio
from pgaq.load import machine, results
from pgaq.load.drivers import PGAQ, PROPAGATED, Driver, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import Options, Workload
from pgaq.server import Server

RATE = Shape(batch=100, sessions=2)
LATENCY = Shape(batch=1, sessions=2, rate=1000)
CONTESTANTS = {driver.name: driver for driver in (PGAQ, PROPAGATED)}


def source_rate(server: Server, driver: Driver, given: argparse.Namespace) -> float:
    """Messages per second that one session enqueues, a hundred per transaction, without a consumer."""
    with server.connect() as conn:
        db.execute(conn, "CHECKPOINT")
    options = Options(consumer_sessions=0, backlog=0)
    with Workload(server, driver, replace(RATE, sessions=1), options, queue="propagate") as workload:
        workload.setup()
        workload.start()
        workload.run_for(given.warm_up)
        workload.measure(given.seconds)
        workload.stop()
        found = workload.metrics().enqueued
        workload.teardown()
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/propagate", description="What propagation delivers and costs; see bench/README.md.")
    program.add_rounds(parser, rounds=3, warm_up=2, parts=("rate", "latency", "source"))
    program.add_options(parser)
    given = parser.parse_args(arguments)
    given.text, given.processes, given.backlog = False, 1, None
    return given


def judge(about: dict[str, Any]) -> list[Claim]:
    """What was measured, as far as it was, against the goals."""
    claims = []
    if "rate" in about:
        rate = throughput.middle(about["rate"]["propagated"], "delivered") or 0.0
        claims.append(Claim("propagated messages/s, 100 per batch", ">= 30,000", text.number(rate), rate >= 30_000))
    if "latency" in about:
        p50 = throughput.middle(about["latency"]["propagated"], "p50")
        claims.append(Claim("p50 at 1,000 messages/s", "<= 10 ms", text.duration(p50), p50 is not None and p50 <= 10_000))
    if "source" in about:
        ratio, spread = median_ratio(about["source"], "propagated", "pgaq")
        # producer, its client and the process each keep a CPU busy
        ok = ratio >= 0.95 if ratio >= 0.95 or (os.cpu_count() or 1) >= 4 else None
        claims.append(Claim("enqueued messages/s, with propagation / without", ">= 0.95 x", f"{ratio:.2f} x ({spread})", ok))
    return claims


def table(about: dict[str, Any]) -> str:
    rows = []
    for part in ("rate", "latency"):
        for name, rounds in about.get(part, {}).items():
            middle = {
                key: throughput.middle(rounds, key) for key in ("enqueued", "delivered", "p50", "p99", "server_cpu", "cpu_us_per_message")
            }
            rows.append([
                part, CONTESTANTS[name].title, text.number(middle["enqueued"]), text.number(middle["delivered"]), text.duration(middle["p50"]),
                text.duration(middle["p99"]), f"{middle['server_cpu']:.2f}", text.number(middle["cpu_us_per_message"], 1),
            ])  # fmt: skip
    for name, rates in about.get("source", {}).items():
        rows.append(["source", CONTESTANTS[name].title, text.number(statistics.median(rates)), "-", "-", "-", "-", "-"])
    return text.table(["", "", "in/s", "out/s", "p50", "p99", "server", "us/msg"], rows, left=2)


def run(given: argparse.Namespace) -> int:
    settings = {**program.settings(given), "shared_preload_libraries": "pgaq"}
    about: dict[str, Any] = {**results.about(settings, machine.busy()), "seconds": given.seconds}
    with Server.temporary("propagate", parent=program.parent(given), settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
            db.execute(conn, "CREATE EXTENSION pgaq")
        bench = throughput.Bench(server, list(CONTESTANTS.values()), given)
        for part, shape in (("rate", RATE), ("latency", LATENCY)):
            if part in given.parts:
                about[part] = bench.measure(shape)
        if "source" in given.parts:
            about["source"] = {name: [] for name in CONTESTANTS}
            for name in by_turns(list(CONTESTANTS), given.rounds):
                about["source"][name].append(source_rate(server, CONTESTANTS[name], given))
        problems = server.problems()
    claims = judge(about)
    print(f"\n{about['machine']['cpus']} CPUs, {about['cpus_busy_before']:.2f} were busy before\n")
    print(table(about) + "\n")
    return program.conclude("propagate", about, claims, problems, given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("propagate", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
