"""bench/growth: what a call costs with more queues, rules, messages or waiting sessions; see bench/README.md.

    bench/growth --parts rules,waiters

Each part measures one quantity at three or more sizes and fits a power law,
quantity = a * size ^ exponent, by least squares of the logarithms.  The exponent
is the claim: 0 means that the size does not matter, 1 that twice the size costs
twice as much.  A quantity that has a fixed part grows more slowly than its
exponent says at first, so the sizes reach far enough for the growing part to show.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from pgaq import db, places, text
from pgaq.bench import program
from pgaq.load import machine, results
from pgaq.load.results import Claim
from pgaq.places import SurroundingsError
from pgaq.server import Server

FLAT = 0.25  # an exponent up to here is that of noise
ROUNDS = 20  # calls whose median counts


@dataclass
class Part:
    """One quantity, and the sizes at which it is measured."""

    name: str
    what: str
    size: str  # what is counted
    unit: str
    sizes: list[int]
    large: list[int]  # also with --large
    exponent: float  # at most
    measure: Callable[["Bench", int], float]
    found: dict[int, float] = field(default_factory=dict)

    def law(self) -> float:
        return exponent(self.found)


def exponent(found: dict[int, float]) -> float:
    """The slope of log(quantity) by log(size); nothing counts as a thousandth of a unit."""
    points = [(math.log(size), math.log(max(value, 0.001))) for size, value in found.items()]
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


class Bench:
    """A server with a database for each measurement, so that none sees what another one has left."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.kept: dict[str, int] = {}  # databases that grow from size to size

    def database(self, name: str) -> str:
        with self.server.connect() as conn:
            conn.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            conn.execute(f"CREATE DATABASE {name}")
        with self.server.connect(dbname=name) as conn:
            conn.execute("CREATE EXTENSION pgaq")
        return name

    def connect(self, name: str) -> db.Connection:
        conn = self.server.connect(dbname=name)
        conn.execute("SET synchronous_commit = off")
        return conn

    def queues(self, number: int) -> str:
        """A database with that many queues, each with one old ready message."""
        name = "queues"
        have = self.kept.get(name, 0)
        if not have or have > number:
            self.database(name)
            have = 0
        while have < number:  # a new session now and then, as its descriptions of queues take memory
            with self.connect(name) as conn:
                for i in range(have, min(have + 500, number)):
                    conn.execute("SELECT aq.create_queue('q' || %s, exception_queue => 'none', shards => 1)", [i])
                    conn.execute("SELECT aq.enqueue('q' || %s, '{}')", [i])
            have = min(have + 500, number)
        self.kept[name] = have
        return name

    def rules(self, number: int) -> str:
        """A database with a topic, and that many subscribers with rules of which each message meets one."""
        name = self.database("rules")
        with self.connect(name) as conn:
            conn.execute("SELECT aq.create_queue('t', shards => 1, multiple_consumers => true)")
            for i in range(number):
                conn.execute("SELECT aq.subscribe('t', 's' || %s::int, rule => format('payload->>''x'' = ''s%%s''', %s::int))", [i, i])
        return name

    def fill(self, conn: db.Connection, queue: str, number: int, correlation: str) -> None:
        """Messages with the correlation, of which %s is the number."""
        for first in range(0, number, 20000):
            last = min(first + 20000, number) - 1
            conn.execute(
                "SELECT cardinality(aq.enqueue_array(%s, array_agg('{}'::jsonb ORDER BY i), options => jsonb_agg(jsonb_build_object('correlation', format(%s, i)) ORDER BY i))) "
                "FROM generate_series(%s::int, %s::int) i",
                [queue, correlation, first, last],
            )  # fmt: skip


def microseconds(
    conn: db.Connection, call: Callable[[], object], rounds: int = ROUNDS, before: Callable[[], object] | None = None
) -> float:
    """The CPU time of the session's process for a call: the median."""
    pid, times = conn.info.backend_pid, []
    for _ in range(rounds):
        if before is not None:
            before()
        began = machine.process_seconds(pid)
        call()
        times.append((machine.process_seconds(pid) - began) * 1e6)
    return statistics.median(times)


# -- what is measured


def rules(bench: Bench, size: int) -> float:
    with bench.connect(bench.rules(size)) as conn:
        call = lambda: conn.execute("""SELECT aq.enqueue('t', '{"x": "s0"}')""")  # noqa: E731
        call()
        return microseconds(conn, call)


def unrelated(bench: Bench, size: int) -> float:
    name = bench.rules(size)
    with bench.connect(name) as conn, bench.connect(name) as other:
        number = iter(range(1000))
        call = lambda: conn.execute("""SELECT aq.enqueue('t', '{"x": "s0"}')""")  # noqa: E731
        call()
        return microseconds(conn, call, before=lambda: other.execute("SELECT aq.create_queue('other' || %s)", [next(number)]))


def selection(bench: Bench, size: int) -> float:
    with bench.connect(bench.database("selection")) as conn:
        conn.execute("SELECT aq.create_queue('s', shards => 1)")
        bench.fill(conn, "s", size, "c%s")
        number = iter(range(size - 1, 0, -7))
        take = lambda: conn.execute("SELECT payload FROM aq.dequeue('s', correlation => 'c' || %s::text)", [next(number)]).fetchone()  # noqa: E731
        take()
        return microseconds(conn, take)


def waiters(bench: Bench, size: int) -> float:
    """CPU of all that wait, for a message for one of them, before 5,000 messages of others."""
    name = bench.database("waiters")
    messages, taken = 40, threading.Semaphore(0)
    done = threading.Event()

    def wait(conn: db.Connection, correlation: str) -> None:
        while not done.is_set():
            try:
                if conn.execute("SELECT payload FROM aq.dequeue('r', correlation => %s, wait => '60 s')", [correlation]).fetchall():
                    taken.release()
            except db.Error:
                return  # canceled, at the end

    with bench.connect(name) as conn, ExitStack() as stack:
        conn.execute("SELECT aq.create_queue('r', shards => 1)")
        bench.fill(conn, "r", 5000, "other")
        sessions = [stack.enter_context(bench.connect(name)) for _ in range(size)]
        threads = [threading.Thread(target=wait, args=(session, f"c{i}"), daemon=True) for i, session in enumerate(sessions)]
        for thread in threads:
            thread.start()
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%correlation%' AND state = 'active' AND wait_event_type = 'Extension'"
        while (db.value(conn, asleep) or 0) < size:
            time.sleep(0.05)
        before = sum(machine.process_seconds(session.info.backend_pid) for session in sessions)
        for i in range(messages):
            conn.execute("SELECT aq.enqueue('r', '{}', correlation => %s)", [f"c{i * 7 % size}"])
            if not taken.acquire(timeout=60):
                raise SurroundingsError("a message was not taken within a minute")
        used = sum(machine.process_seconds(session.info.backend_pid) for session in sessions) - before
        done.set()
        for session in sessions:
            session.cancel()
        for thread in threads:
            thread.join(60)
    return used / messages * 1e6


def _view(query: str) -> Callable[[Bench, int], float]:
    def measure(bench: Bench, size: int) -> float:
        with bench.connect(bench.queues(size)) as conn:
            call = lambda: conn.execute(query).fetchall()  # noqa: E731
            call()
            return microseconds(conn, call, rounds=5) / 1000

    return measure


def status(bench: Bench, size: int) -> float:
    name = bench.queues(size)
    with bench.connect(name) as conn:  # in the memory of a session that has just looked at everything
        conn.execute("SELECT count(*) FROM aq.metrics()")
    began = time.monotonic()
    command = [sys.executable, "-m", "pgaq", "status", "-d", bench.server.conninfo(name)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(places.ROOT / "python")}, timeout=600
    )
    if done.returncode not in (0, 1):
        raise SurroundingsError(f"pgaq status: {done.stderr.strip()}")
    return time.monotonic() - began


def memory(bench: Bench, size: int) -> float:
    """What a session has more after that many queues were created, used and dropped, from the 50th on."""
    with bench.connect(bench.database("memory")) as conn:
        conn.prepare_threshold = None
        had = 0
        for i in range(50 + size):
            if i == 50:
                had = machine.private_memory(conn.info.backend_pid)
            conn.execute("SELECT aq.create_queue('t' || %s)", [i])
            conn.execute("SELECT aq.enqueue('t' || %s, '{}')", [i])
            conn.execute("SELECT payload FROM aq.dequeue('t' || %s)", [i]).fetchall()
            conn.execute("SELECT aq.drop_queue('t' || %s)", [i])
        return max(0, machine.private_memory(conn.info.backend_pid) - had) / 1024


def space(bench: Bench, size: int) -> float:
    """Megabytes of an idle queue's tables, a while after as many payloads of 100 kB were consumed; at least what it may keep."""
    with bench.connect(bench.database("space")) as conn:
        conn.execute("SELECT aq.create_queue('s', 'bytea', shards => 1)")
        for _ in range(size):
            conn.execute("SELECT aq.enqueue('s', (SELECT string_agg(sha512(random()::text::bytea), '') FROM generate_series(1, 1600)))")
        while db.value(conn, "SELECT count(*) FROM aq.dequeue('s', as_type => NULL::bytea, max_messages => 50)"):
            pass
        query = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = 'aq_data'::regnamespace"
        grace = float(
            db.value(conn, "SELECT sum(setting::float) / 1000 FROM pg_settings WHERE name IN ('pgaq.reuse_grace', 'pgaq.idle_grace')") or 0
        )
        until = time.monotonic() + min(grace, 60) + 60
        while (kept := int(db.value(conn, query) or 0)) > 1 << 20 and time.monotonic() < until:
            time.sleep(0.5)
        return max(kept / (1 << 20), 0.25)


def browsing(bench: Bench, size: int) -> float:
    """The first rows of aq.messages."""
    with bench.connect(bench.database("browsing")) as conn:
        conn.execute("SELECT aq.create_queue('s', shards => 1)")
        bench.fill(conn, "s", size, "c%s")
        call = lambda: conn.execute("SELECT * FROM aq.messages LIMIT 10").fetchall()  # noqa: E731
        call()
        return microseconds(conn, call, rounds=5) / 1000


def relations(bench: Bench, size: int) -> float:
    """Relations that pg_dump locks, for each queue with one message; the rest are the extension's."""
    with bench.connect(bench.queues(size)) as conn:
        return (
            float(
                db.value(conn, "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'v', 'S') AND relnamespace = 'aq_data'::regnamespace")
                or 0
            )
            / size
        )


PARTS = [
    Part(
        "rules", "enqueue into a topic with rules of the form payload->>'x' = constant", "rules", "µs", [10, 100, 1000], [3000], FLAT, rules
    ),
    Part("unrelated", "the same, after another queue was created", "rules", "µs", [10, 100, 1000], [3000], FLAT, unrelated),
    Part("selection", "dequeue by correlation", "messages", "µs", [1000, 10000, 100000], [1000000], FLAT, selection),
    Part(
        "waiters",
        "a message for one of the sessions that wait by correlation: CPU of all of them",
        "sessions",
        "µs",
        [5, 25, 100],
        [],
        FLAT,
        waiters,
    ),
    Part("metrics", "aq.metrics()", "queues", "ms", [10, 100, 1000], [10000], 1.1, _view("SELECT * FROM aq.metrics()")),
    Part("one", "aq.metrics('q0')", "queues", "ms", [10, 100, 1000], [10000], FLAT, _view("SELECT * FROM aq.metrics('q0')")),
    Part("messages", "SELECT * FROM aq.messages LIMIT 10", "messages", "ms", [1000, 10000, 100000], [1000000], FLAT, browsing),
    Part("status", "pgaq status, from start to end", "queues", "s", [10, 100, 1000], [10000], 1.1, status),
    Part("memory", "memory of a session, for queues created, used and dropped", "rounds", "kB", [250, 500, 1000], [4000], FLAT, memory),
    Part("space", "space of an idle queue whose messages of 100 kB were consumed", "messages", "MB", [50, 100, 200], [400], FLAT, space),
    Part("relations", "relations that pg_dump locks, for a queue", "queues", "", [10, 100, 1000], [10000], FLAT, relations),
]


def play(bench: Bench, part: Part, large: bool) -> None:
    print(f"{part.name}: {part.what}", flush=True)
    for size in part.sizes + (part.large if large else []):
        part.found[size] = part.measure(bench, size)
        print(f"  {size:>9,} {part.size:<9} {figure(part.found[size])} {part.unit}".rstrip(), flush=True)


def figure(value: float) -> str:
    return text.number(value, 0 if value >= 100 else 2)


def claim(part: Part) -> Claim:
    measured = ", ".join(figure(value) for value in part.found.values())
    wanted = f"exponent <= {part.exponent:g}"
    return Claim(
        f"{part.what}, by {part.size}", wanted, f"{part.law():.2f} ({measured} {part.unit}".rstrip() + ")", part.law() <= part.exponent
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    known = [part.name for part in PARTS]

    def chosen(value: str) -> list[str]:
        for name in value.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no part {name!r}; there are {', '.join(known)}")
        return value.split(",")

    parser = argparse.ArgumentParser(
        prog="bench/growth", description="What a call costs with more queues, rules, messages or waiting sessions; see bench/README.md."
    )
    parser.add_argument("--parts", type=chosen, default=known, metavar="PART,...", help=f"of {', '.join(known)}")
    parser.add_argument("--large", action="store_true", help="also 10,000 queues, a million messages, 3,000 rules: half an hour")
    program.add_options(parser)
    return parser.parse_args(arguments)


def run(given: argparse.Namespace) -> int:
    settings = program.settings(
        given, **{"pgaq.max_queues": 12000, "pgaq.max_partitions": 65536, "pgaq.max_streams": 65536, "max_locks_per_transaction": 256}
    )
    about = results.about(settings, machine.busy())
    parts = [part for part in PARTS if part.name in given.parts]
    with Server.temporary("growth", parent=program.parent(given), settings=settings) as server:
        bench = Bench(server)
        for part in parts:
            play(bench, part, given.large)
        problems = server.problems()
    claims = [claim(part) for part in parts]
    content = {**about, "parts": {part.name: {"unit": part.unit, "exponent": part.law(), "found": {str(k): v for k, v in part.found.items()}} for part in parts},
               "options": {k: v for k, v in vars(given).items() if not isinstance(v, Path)}}  # fmt: skip
    print()
    return program.conclude("growth", content, claims, problems, given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("growth", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
