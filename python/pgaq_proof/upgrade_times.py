"""How long a business waits for an upgrade: a restart with many queues, then ALTER EXTENSION ... UPDATE from the version before, beside programs.

bench/upgrade [--queues N]
"""

from __future__ import annotations

import argparse
import threading
import time

from pgaq import db
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import Options, Workload
from pgaq.server import Server
from pgaq_proof import upgrade

MESSAGES = 10  # in each queue


class Reader(threading.Thread):
    """Reads aq.queues again and again; the longest time that took."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server, self.ended, self.longest = server, threading.Event(), 0.0

    def run(self) -> None:
        with self.server.connect() as conn:
            while not self.ended.wait(0.02):
                began = time.monotonic()
                conn.execute("SELECT count(*) FROM aq.queues").fetchone()
                self.longest = max(self.longest, time.monotonic() - began)


def fill(conn: db.Connection, queues: int) -> None:
    """Queues with messages."""
    for n in range(queues):
        conn.execute("SELECT aq.create_queue(%s, shards => 1)", [f"q{n}"])
        conn.execute("SELECT aq.enqueue_array(%s, (SELECT array_agg(i::text) FROM generate_series(1, %s::int) i))", [f"q{n}", MESSAGES])


def restart(server: Server, queues: int) -> None:
    """From the command until a message has been taken, and until one has been taken of each queue."""
    with server.connect() as conn:
        conn.execute("CHECKPOINT")
    began = time.monotonic()
    server.stop()
    stopped = time.monotonic()
    server.start()
    accepts = time.monotonic()
    with server.connect() as conn:
        for n in range(queues):
            assert conn.execute("SELECT 1 FROM aq.dequeue(%s)", [f"q{n}"]).fetchone() is not None
            if n == 0:
                first = time.monotonic()
    print(f"restart with {queues} queues: stopped after {stopped - began:.2f} s, accepts connections after {accepts - began:.2f} s, first message taken after {first - began:.2f} s, "
          f"one of each queue after {time.monotonic() - began:.2f} s")  # fmt: skip


def update(server: Server, old: str) -> None:
    """The slowest calls of programs meanwhile."""
    with Workload(server, PGAQ, Shape(sessions=4), Options(fsync="none"), queue="load") as work, server.connect() as conn:
        work.setup()
        work.start()
        work.run_for(2)
        before = work.control.slowest()
        work.run_for(2)
        usual = work.control.slowest()
        reader = Reader(server)
        reader.start()
        for extension in upgrade.EXTENSIONS:
            began = time.monotonic()
            conn.execute(f"ALTER EXTENSION {extension} UPDATE")
            print(f"ALTER EXTENSION {extension} UPDATE: {time.monotonic() - began:.2f} s")
        during = work.control.slowest()
        reader.ended.set()
        reader.join()
        drained = work.drain()
        work.stop()
        report = work.check()
        assert before and drained and report.ok and work.control.errors == 0, str(report)
    for name, here, there in zip(("enqueue", "dequeue"), usual, during, strict=True):
        print(f"slowest {name}: {here / 1000:.0f} ms in two seconds before, {there / 1000:.0f} ms during the updates")
    print(
        f"slowest SELECT from aq.queues during the updates: {reader.longest * 1000:.0f} ms; {report.committed} messages, each taken once, no error"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/upgrade", description=__doc__.split("\n")[0])
    parser.add_argument("--queues", type=int, default=1000)
    arguments = parser.parse_args()
    old = [version for version in upgrade.released() if version != upgrade.version()][-1]
    with upgrade.installation(of_tree=True) as there:
        with Server.temporary("upgrade", bindir=there.bindir, settings={"fsync": "on", "max_locks_per_transaction": 256}) as server:
            with server.connect() as conn:
                upgrade.create(conn, old)
                fill(conn, arguments.queues)
            restart(server, arguments.queues)
            update(server, old)


if __name__ == "__main__":
    main()
