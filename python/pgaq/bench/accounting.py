"""bench/accounting: what counting, timing and tracing cost; see bench/README.md.

Two servers, one with the extension as it is and one with a build that counts
nothing (make NO_ACCOUNTING=1), play the same shape by turns, each first in every
other pair of rounds.  What is compared is compared within a pair.  On a machine
with other work that is still rough, so one session on each also enqueues and
dequeues in many short slices, and its own CPU time, by the kernel's account in
nanoseconds, is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable

from pgaq import db, text
from pgaq.bench import program
from pgaq.load import build, machine, results
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import Metrics, Options, Workload
from pgaq.server import Server

ALLOWED = 0.03
WITH, WITHOUT = "with", "without"


def play(server: Server, shape: Shape, given: argparse.Namespace) -> Metrics:
    """One round; the ledger must be right."""
    with server.connect() as conn:
        db.execute(conn, "CHECKPOINT")
    with Workload(server, PGAQ, shape, Options(), queue="accounting") as workload:
        metrics, drained = workload.play(given.warm_up, given.seconds)
        report = workload.check()
        workload.teardown()
    if not (drained and report.ok):
        raise SystemExit(f"bench/accounting: the ledger is wrong: {report}")
    return metrics


def ratio(pairs: list[dict[str, Metrics]], what: Callable[[Metrics], float]) -> tuple[float, float, float]:
    """Median, lowest and highest of with / without, pair by pair."""
    found = [what(pair[WITH]) / what(pair[WITHOUT]) for pair in pairs]
    return statistics.median(found), min(found), max(found)


SLICE = """DO $$ BEGIN
FOR i IN 1 .. 100 LOOP
  PERFORM aq.enqueue_array('one', ARRAY(SELECT to_jsonb(repeat('x', 500)) FROM generate_series(1, {batch})));
  COMMIT;
  PERFORM FROM aq.dequeue('one', max_messages => {batch});
  COMMIT;
END LOOP; END $$"""


def cpu_ns(conn: db.Connection) -> int:
    """CPU time of the session's process so far."""
    return int(Path(f"/proc/{conn.info.backend_pid}/schedstat").read_text().split()[0])


def slices(servers: dict[str, Server], pairs: int, batch: int) -> list[float]:
    """CPU time of one session with / without, slice by slice."""
    found = []
    with contextlib.ExitStack() as stack:
        conns = {name: stack.enter_context(server.connect()) for name, server in servers.items()}
        for conn in conns.values():
            db.execute(conn, "SELECT aq.create_queue('one')")
            db.execute(conn, "SET synchronous_commit = off")
        for number in range(pairs + 2):
            used = {}
            for name in (WITH, WITHOUT) if number % 2 == 0 else (WITHOUT, WITH):
                before = cpu_ns(conns[name])
                db.execute(conns[name], SLICE.format(batch=batch))
                used[name] = cpu_ns(conns[name]) - before
            if number >= 2:  # the first are warm-up
                found.append(used[WITH] / used[WITHOUT])
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/accounting", description="The sharded queue with and without accounting; see bench/README.md."
    )
    parser.add_argument("--pairs", type=program.at_least(0), default=10, help="pairs of rounds (10)")
    parser.add_argument("--slices", type=program.at_least(2), default=200, help="pairs of slices of one session (200)")
    parser.add_argument("--seconds", type=program.above_zero, default=4, help="measured in each round (4)")
    parser.add_argument("--warm-up", type=program.at_least(0, float), default=1.0)
    parser.add_argument("--sessions", type=program.at_least(1), default=4, help="on each side (4)")
    parser.add_argument("--batch", type=program.at_least(1), default=10, help="messages in a transaction (10)")
    program.add_options(parser)
    return parser.parse_args(arguments)


def run(given: argparse.Namespace) -> int:
    settings = program.settings(given)
    shape = Shape(batch=given.batch, sessions=given.sessions)
    about: dict[str, Any] = {
        **results.about(settings, machine.busy()),
        "seconds": given.seconds,
        "shape": {**asdict(shape), "name": shape.name},
    }
    pairs: list[dict[str, Metrics]] = []
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, flags in ((WITH, []), (WITHOUT, ["NO_ACCOUNTING=1"])):
            library = build.make_library(*flags)
            stack.callback(shutil.rmtree, library, ignore_errors=True)
            own = {**settings, "dynamic_library_path": f"{library}:$libdir"}
            servers[name] = stack.enter_context(Server.temporary(f"accounting-{name}", parent=program.parent(given), settings=own))
            with servers[name].connect() as conn:
                db.execute(conn, "CREATE EXTENSION pgaq")
        alone = slices(servers, given.slices, given.batch)
        for number in range(given.pairs):
            order = [WITH, WITHOUT] if number % 2 == 0 else [WITHOUT, WITH]
            pairs.append({name: play(servers[name], shape, given) for name in order})
            one = pairs[-1]
            print(
                f"pair {number + 1} of {given.pairs}: "
                + "; ".join(
                    f"{name} {text.number(one[name].delivered)}/s, {one[name].cpu_us_per_message:.2f} us of the server's CPU"
                    for name in (WITH, WITHOUT)
                ),
                flush=True,
            )
    middle = statistics.median(alone)
    quartiles = statistics.quantiles(alone, n=4)
    claims = [
        Claim(
            "CPU of one session, with / without", f"<= {1 + ALLOWED:.2f}",
            f"{middle:.3f} (half of {len(alone)} slices: {quartiles[0]:.3f} to {quartiles[2]:.3f})", middle <= 1 + ALLOWED,
        ),
    ]  # fmt: skip
    if pairs:
        rate = ratio(pairs, lambda metrics: metrics.delivered)
        cpu = ratio(pairs, lambda metrics: metrics.cpu_us_per_message)
        claims += [
            Claim(
                "messages per second, with / without",
                f">= {1 - ALLOWED:.2f}",
                f"{rate[0]:.3f} (pairs: {rate[1]:.3f} to {rate[2]:.3f})",
                rate[0] >= 1 - ALLOWED,
            ),
            Claim(
                "server CPU per message, with / without",
                f"<= {1 + ALLOWED:.2f}",
                f"{cpu[0]:.3f} (pairs: {cpu[1]:.3f} to {cpu[2]:.3f})",
                cpu[0] <= 1 + ALLOWED,
            ),
        ]
    print(
        f"\n{shape.name}, {given.pairs} pairs of {given.seconds:g} s, {os.cpu_count()} CPUs, {about['cpus_busy_before']:.2f} of them busy before\n"
    )
    content = {**about, "slices": alone, "pairs": [{name: asdict(metrics) for name, metrics in pair.items()} for pair in pairs]}
    return program.conclude("accounting", content, claims, [], given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("accounting", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
