"""bench/leases: what leases cost, beside a plain dequeue and beside SQL in the manner of pgmq; see bench/README.md.

Three parts, each with its contestants by turns on one server.  The first and the second
fill a queue, and count the CPU time of the server's processes while consumers empty it.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Any, Callable

from pgaq import db, text
from pgaq.bench import program, throughput
from pgaq.load import machine, results
from pgaq.load.drivers import LEASE1, LEASE2, PGAQ, VT, Driver, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import RUN, LoadError, Options, Workload
from pgaq.server import Server

RUNNING = 100_000  # leases that run all the time in the second contestant of its kind
MANY = 1_000  # messages of a call, in the second part
QUEUE = "leases"

CONTESTANTS: dict[str, tuple[Driver, int]] = {"plain": (PGAQ, 0), "one": (LEASE1, 0), "two": (LEASE2, 0), "running": (LEASE1, RUNNING)}


def lease_many(server: Server, number: int) -> None:
    """Take leases that run until the end of the measurement."""
    with server.connect() as conn:
        for _ in range(number // MANY):
            db.execute(conn, f"SELECT aq.enqueue_array('{QUEUE}', array_fill(repeat('x', 512), ARRAY[{MANY}]))")
        for _ in range(number // MANY // 10):
            db.execute(
                conn, f"SELECT count(*) FROM aq.dequeue('{QUEUE}', as_type => null::text, max_messages => {10 * MANY}, lease => '1 day')"
            )
        held = db.value(conn, "SELECT leased FROM aq.metrics() WHERE queue_name = %s", [QUEUE])
    if held != number:
        raise LoadError(f"{held} leases run instead of {number}")


def fill(workload: Workload, shape: Shape, messages: int) -> int:
    """Puts about this number of messages into the queue; returns the exact number."""
    workload.shape = replace(shape, batch=100, sessions=4)
    workload.options = Options(consumer_sessions=0, messages=messages, backlog=0)
    workload.start()
    workload.until(lambda: workload.control.quiet >= workload.producers, 600, "the queue was not filled")
    workload.stop()
    workload.shape = shape
    return sum(result["messages"] for result in workload.results)


def empty(server: Server, driver: Driver, running: int, given: argparse.Namespace) -> float:
    """CPU microseconds of the server for each message that consumers take and finish, ten in a call."""
    shape = Shape(batch=10, sessions=given.sessions)
    with server.connect() as conn:
        db.execute(conn, "CHECKPOINT")
    with Workload(server, driver, shape, queue=QUEUE) as workload:
        workload.setup()
        if running:
            lease_many(server, running)
        stored = fill(workload, shape, given.messages)
        workload.options = Options(producer_sessions=0)
        workload.start(run=False)
        before = machine.cpu(server).server
        workload.control.set_phase(RUN)
        workload.until(lambda: workload.control.delivered >= stored, 600, "the queue was not emptied")
        used = machine.cpu(server).server - before
        # what was taken last is acknowledged when nothing more is found
        workload.until(lambda: workload.control.idle >= workload.consumers, 60, "the last messages were not acknowledged")
        workload.stop()
        report = workload.check()
        with server.connect() as conn:
            left = db.value(conn, "SELECT leased FROM aq.metrics() WHERE queue_name = %s", [QUEUE])
        workload.teardown()
    if not report.ok or left != running:
        raise LoadError(f"the ledger is wrong, or leases are left ({left}): {report}")
    return used / stored * 1e6


def many(server: Server, given: argparse.Namespace) -> dict[str, float]:
    """CPU microseconds for each message of calls with 1,000: plain dequeue, dequeue with a lease, acknowledgement."""
    shape = Shape(sessions=1)
    calls = max(1, given.messages // 2 // MANY)
    take = f"SELECT * FROM aq.dequeue('{QUEUE}', as_type => null::text, max_messages => {MANY}"
    found: dict[str, float] = {}

    def measure(name: str, work: Callable[[], Any]) -> None:
        before = machine.cpu(server).server
        work()
        found[name] = (machine.cpu(server).server - before) / calls / MANY * 1e6

    with Workload(server, PGAQ, shape, queue=QUEUE) as workload:
        workload.setup()
        fill(workload, shape, 2 * calls * MANY)
        with server.connect() as conn:
            held: list[tuple[list[Any], int]] = []

            def lease() -> None:
                for _ in range(calls):
                    rows = conn.execute(f"{take}, lease => '1 hour')", binary=True).fetchall()
                    held.append(([row[6] for row in rows], rows[0][7]))

            def finish() -> None:
                for ids, receipt in held:
                    rows = conn.execute(f"SELECT result FROM aq.acknowledge('{QUEUE}', %s, %s)", [ids, receipt], binary=True).fetchall()
                    assert rows == [("done",)] * MANY

            db.execute(conn, "CHECKPOINT")
            measure("take", lambda: [conn.execute(f"{take})", binary=True).fetchall() for _ in range(calls)])
            measure("lease", lease)
            measure("acknowledge", finish)
        workload.teardown()
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/leases", description="What leases cost; see bench/README.md.")
    program.add_rounds(parser, rounds=5, warm_up=2, parts=("10", "1000", "pgmq"), measured="in a round of the third part")
    parser.add_argument(
        "--messages", type=program.at_least(10 * MANY), default=200_000, help="taken in a round of the first part (200,000)"
    )
    parser.add_argument("--sessions", type=program.at_least(1), default=16, help="on each side (16)")
    program.add_options(parser)
    given = parser.parse_args(arguments)
    given.text, given.processes, given.backlog = False, 1, None
    return given


def by_turns(names: list[str], rounds: int) -> list[str]:
    """The order changes too, so that none always follows the same one."""
    return [name for number in range(rounds) for name in names[number % len(names) :] + names[: number % len(names)]]


def median_ratio(rounds: dict[str, list[float]], one: str, other: str) -> tuple[float, str]:
    """The median of the ratios of neighbouring turns, and their range."""
    found = [x / y for x, y in zip(rounds[one], rounds[other])]
    return statistics.median(found), f"{min(found):.2f} to {max(found):.2f}"


def judge(about: dict[str, Any]) -> list[Claim]:
    """What was measured, as far as it was, against the goals."""
    claims = []

    def claim(what: str, part: str, one: str, other: str, limit: float, least: bool = False) -> None:
        if part not in about:
            return
        ratio, spread = median_ratio(about[part], one, other)
        claims.append(
            Claim(what, f"{'>=' if least else '<='} {limit:g} x", f"{ratio:.2f} x ({spread})", ratio >= limit if least else ratio <= limit)
        )

    claim("CPU, acknowledge + next take in one statement / plain dequeue", "cpu_10", "one", "plain", 1.5)
    claim("CPU, acknowledge + next take in two statements / plain dequeue", "cpu_10", "two", "plain", 2)
    claim(f"CPU, {RUNNING:,} running leases / none", "cpu_10", "running", "one", 1.1)
    claim("CPU, 1,000 acknowledgements / dequeue of 1,000", "cpu_1000", "acknowledge", "take", 1)
    claim("messages/s, leases in one statement / UPDATE vt, DELETE", "rates", "lease1", "vt", 2.5, True)
    return claims


def table(about: dict[str, Any]) -> str:
    rows = []
    for part, unit in (("cpu_10", "us/msg, 10 in a call"), ("cpu_1000", "us/msg, 1,000 in a call"), ("rates", "messages/s")):
        for name, values in about.get(part, {}).items():
            rows.append(
                [
                    unit,
                    name,
                    text.number(statistics.median(values), 0 if part == "rates" else 2),
                    " ".join(text.number(v, 0 if part == "rates" else 1) for v in values),
                ]
            )
    return text.table(["", "", "median", "rounds"], rows, left=2)


def run(given: argparse.Namespace) -> int:
    settings = {**program.settings(given), "shared_preload_libraries": "pgaq"}
    about: dict[str, Any] = {
        **results.about(settings, machine.busy()), "sessions": given.sessions, "messages": given.messages, "seconds": given.seconds, "running": RUNNING,
    }  # fmt: skip
    with Server.temporary("leases", parent=program.parent(given), settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
            db.execute(conn, "CREATE EXTENSION pgaq")
        if "10" in given.parts:
            about["cpu_10"] = {name: [] for name in CONTESTANTS}
            for name in by_turns(list(CONTESTANTS), given.rounds):
                about["cpu_10"][name].append(empty(server, *CONTESTANTS[name], given))
                print(f"{name}: {about['cpu_10'][name][-1]:.2f} us of the server's CPU per message", flush=True)
        if "1000" in given.parts:
            about["cpu_1000"] = {}
            for _ in range(given.rounds):
                for name, value in many(server, given).items():
                    about["cpu_1000"].setdefault(name, []).append(value)
        if "pgmq" in given.parts:
            contest = throughput.Bench(server, [PGAQ, LEASE1, LEASE2, VT], given)
            about["contest"] = contest.measure(Shape(batch=10, sessions=given.sessions))
            about["titles"] = {driver.name: driver.title for driver in contest.contestants}
            about["rates"] = {name: [r["delivered"] for r in rounds] for name, rounds in about["contest"].items()}
        problems = server.problems()
    claims = judge(about)
    print(f"\n{given.sessions} sessions, {about['cpus_busy_before']:.2f} CPUs were busy before\n")
    print(table(about) + "\n")
    return program.conclude("leases", about, claims, problems, given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("leases", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
