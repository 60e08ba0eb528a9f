"""A storm of terminated, cancelled and lost sessions over a queue whose backlog does not fit in memory.

    python3 -m pgaq_proof.storm --minutes 10
    python3 -m pgaq_proof.storm --seconds 5 --store classic --kind topic --seed 7

The server keeps running: no process is killed.  What is to be shown is that a session that ends leaves nothing behind.
So during the storm some consumer always makes progress; afterwards everything is delivered exactly once and in
order, as the ledger says, and aq.check() returns no row.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

from pgaq import db, places
from pgaq.load import ledger
from pgaq.load.drivers import DRIVERS, Driver, Shape
from pgaq.load.workload import DRAIN, Options, Workload
from pgaq.server import Server
from pgaq_proof import faults

PATIENCE = 20.0  # seconds in which a message has to be delivered
BALLAST = 80_000  # messages of a transaction that keeps most of the cache
SETTINGS: dict[str, object] = {"pgaq.message_cache_size": "4MB", "pgaq.reuse_grace": "0", "client_connection_check_interval": "200ms"}
SHAPES = {"queue": Shape(sessions=6, batch=10, payload=60), "topic": Shape(kind="topic", sessions=4, batch=10, subscribers=2, payload=60)}


@dataclass
class Outcome:
    """The result of a storm."""

    report: ledger.Report | None = None
    strikes: dict[str, int] = field(default_factory=dict)
    delivered: int = 0
    trouble: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.trouble and self.report is not None and self.report.ok


def storm(
    server: Server, driver: Driver, shape: Shape, seconds: float, seed: int, *, backlog: int = 40_000, name: str = "storm"
) -> Outcome:
    """One storm on a running server, which has the settings above."""
    rng = random.Random(seed)
    outcome = Outcome()
    options = Options(
        fsync="each", explicit=True, reconnect=True, rollback=10, savepoint=10, prepare=10, backlog=backlog, seed=seed % 10_000 + 1,
        leasers=2,
    )  # fmt: skip
    with Workload(server, driver, shape, options, queue=name) as work, _ballast(server, name):
        work.setup()
        work.start()
        with _Strangers(server, name, shape, rng):
            for part in range(2):
                if not _rage(server, work, seconds / 2, rng, outcome):
                    return outcome
                if part == 0:
                    outcome.strikes["clients"] = outcome.strikes.get("clients", 0) + 1
                    work.kill_clients()
                    work.start()
        if not _drain(server, work, rng, outcome):
            return outcome
        outcome.delivered = work.control.delivered
        work.stop()
        faults.await_end_of_sessions(server)
        outcome.report = work.check()
        if not outcome.report.ok:
            outcome.trouble.append(str(outcome.report))
        outcome.trouble += faults.differences(server)
        if outcome.ok:
            work.teardown()
    return outcome


class _ballast:
    """A transaction whose messages occupy most of the message cache."""

    def __init__(self, server: Server, name: str) -> None:
        self.conn = server.connect()
        self.queue = f"{name}_ballast"

    def __enter__(self) -> None:
        db.execute(self.conn, "SELECT aq.create_queue(%s, shards => 1)", [self.queue])
        self.conn.execute("BEGIN")
        db.execute(self.conn, "SELECT cardinality(aq.enqueue_array(%s, array_fill('1'::text, ARRAY[%s::int])))", [self.queue, BALLAST])

    def __exit__(self, *_: object) -> None:
        self.conn.execute("ROLLBACK")
        db.execute(self.conn, "SELECT aq.drop_queue(%s, force => true)", [self.queue])
        self.conn.close()


class _Strangers:
    """Clients whose connections break in the middle of a statement; they change nothing."""

    STATEMENTS = (
        "BEGIN; SELECT aq.enqueue('{queue}', '1'::text) FROM generate_series(1, 50); SELECT pg_sleep(1)",
        "CALL aq.wait('{queue}', {consumer}, '10 s', NULL)",
        "BEGIN; SELECT count(*) FROM aq.dequeue_full('{queue}', null::text, consumer => {consumer}, condition => 'priority = 99', wait => '10 s')",
        "SELECT count(*) FROM aq.browse('{queue}', consumer => {consumer}, max_messages => 20000)",
    )

    def __init__(self, server: Server, queue: str, shape: Shape, rng: random.Random) -> None:
        self.server = server
        self.rng = random.Random(rng.random())
        self.statements = [text.format(queue=queue, consumer="'s00'" if shape.consumers else "NULL") for text in self.STATEMENTS]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._go)

    def _go(self) -> None:
        while not self.over.wait(self.rng.uniform(0.01, 0.1)):
            try:
                conn = self.server.connect(application_name="load stranger")
            except db.OperationalError:
                continue
            conn.pgconn.send_query(self.rng.choice(self.statements).encode())
            time.sleep(self.rng.uniform(0, 0.05))
            with socket.socket(fileno=socket.dup(conn.pgconn.socket)) as line:
                line.shutdown(socket.SHUT_RDWR)
            conn.close()

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def _rage(server: Server, work: Workload, seconds: float, rng: random.Random, outcome: Outcome) -> bool:
    """Terminate and cancel at random; False when nothing was delivered for too long."""
    deadline = time.monotonic() + seconds
    last, since = work.control.delivered, time.monotonic()
    finish = 0.0
    with server.connect() as conn:
        while (now := time.monotonic()) < deadline or work.control.delivered == last:
            work._check_clients()
            if work.control.delivered != last:
                last, since = work.control.delivered, now
            elif now - since > PATIENCE:
                outcome.trouble.append(f"nothing was delivered for {PATIENCE:g} s during the storm")
                outcome.trouble += _asleep(server) + faults.differences(server)
                return False
            verb = rng.choice(["terminate", "terminate", "cancel"])
            # leave off before the end, so that what was there can be delivered
            if now < deadline and db.value(
                conn,
                f"SELECT pg_{verb}_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'load%%' ORDER BY random() LIMIT 1) v",
            ):
                outcome.strikes[verb] = outcome.strikes.get(verb, 0) + 1
            if now > finish:
                faults.finish_prepared(server, 0.5, rng)
                finish = now + 0.3
            time.sleep(rng.uniform(0.002, 0.04))
    return True


def _asleep(server: Server) -> list[str]:
    """The wait events of the load's sessions."""
    with server.connect() as conn:
        query = """SELECT w.event, count(*) FROM aq.sessions w
            WHERE w.waiting AND w.application_name LIKE 'load%%' GROUP BY 1 ORDER BY 1"""
        return [f"{row['count']} sessions wait: {row['event']}" for row in db.rows(conn, query)]


def _drain(server: Server, work: Workload, rng: random.Random, outcome: Outcome) -> bool:
    """Let the consumers take the rest; False when they do not."""
    work.end_leases()
    control = work.control
    control.set_phase(DRAIN)
    last, since = -1, time.monotonic()
    while True:
        work._check_clients()
        faults.finish_prepared(server, 1.0, rng)
        now = time.monotonic()
        if control.delivered != last:
            last, since = control.delivered, now
        settled = control.quiet >= work.producers and control.idle >= work.consumers and _prepared(server) == 0
        if settled and _lag(server, work) == 0 and now - since > 0.5:
            return True
        if now - since > PATIENCE:
            outcome.trouble.append(f"not drained: {_lag(server, work)} messages are left, nothing was delivered for {PATIENCE:g} s")
            outcome.trouble += _asleep(server) + faults.differences(server)
            return False
        time.sleep(0.05)


def _prepared(server: Server) -> int:
    with server.connect() as conn:
        return db.value(conn, "SELECT count(*) FROM pg_prepared_xacts")


def _lag(server: Server, work: Workload) -> int:
    with server.connect() as conn:
        return db.value(conn, "SELECT coalesce(sum(lag), 0)::bigint FROM aq.subscribers WHERE queue_name = %s", [work.queue])


def plans(given: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    """Seeds, stores and kinds, until the time is over."""
    deadline = time.monotonic() + 60 * given.minutes
    seed = given.seed if given.seed is not None else int(time.time()) % 1_000_000
    while True:
        for store in [given.store] if given.store else ["pgaq", "classic"]:
            for kind in [given.kind] if given.kind else sorted(SHAPES):
                yield seed, store, kind
                seed += 1
                if given.minutes and time.monotonic() > deadline:
                    return
        if not given.minutes:
            return


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pgaq_proof.storm", description="Sessions end at random; nothing may be left of them.")
    parser.add_argument("--minutes", type=float, default=0, help="in all; default: one storm of each kind")
    parser.add_argument("--seconds", type=float, default=10, help="of one storm")
    parser.add_argument("--seed", type=int, default=None, help="of the first storm; default: from the clock")
    parser.add_argument("--store", choices=["pgaq", "classic"])
    parser.add_argument("--kind", choices=sorted(SHAPES))
    given = parser.parse_args(arguments)
    places.clean_up_when_terminated()
    failed = done = 0
    with Server.temporary("storm", settings=SETTINGS) as server:
        with server.connect() as conn:
            conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq")
        server.expect_log(r"WARNING:  (there is (already a|no) transaction in progress|PID \d+ is not a PostgreSQL backend process)")
        for seed, store, kind in plans(given):
            outcome = storm(server, DRIVERS[store], SHAPES[kind], given.seconds, seed, name=f"storm_{seed}")
            done += 1
            failed += not outcome.ok
            strikes: dict[str, Any] = outcome.strikes
            print(f"{seed:>7}  {store:<8} {kind:<6} {outcome.delivered:>9,}  {strikes}  {'ok' if outcome.ok else 'FAILED'}", flush=True)
            for text in outcome.trouble:
                print("  " + text.replace("\n", "\n  "), flush=True)
            if not outcome.ok:
                Path(tempfile.gettempdir(), f"pgaq-storm-{seed}.log").write_text(server.log_text())
                break
        for text in server.problems():
            print(text)
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
