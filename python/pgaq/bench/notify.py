"""bench/notify: notification of programs compared with a wait for the queue itself; see bench/README.md.

One producer and one consumer, by turns: the consumer waits for the queue and
dequeues; or it waits for the registration of the queue, or for those of many
queues, takes notifications, and dequeues the messages that they name in the same
statement.  Each is played at a fixed rate, for the latency, and as fast as it goes.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import threading
import time
from dataclasses import asdict, dataclass

from pgaq import db, text
from pgaq.bench import program
from pgaq.load import machine, results
from pgaq.server import Server

BATCH = 10  # messages of a transaction, as fast as it goes
AHEAD = 500  # of the consumer, then the producer waits
TAKE = "SELECT (d.payload ->> 0)::float FROM aq.notifications(NULL, 100) n, LATERAL aq.dequeue(n.name, msgid => n.msgids[1]) d"


@dataclass
class Figures:
    per_second: float
    median_ms: float
    p99_ms: float


class Play:
    """One contestant on its own queues: without registrations, or with a registration of each."""

    def __init__(self, server: Server, queues: int, registered: bool) -> None:
        self.server, self.queues, self.registered = server, [f"q{number}" for number in range(queues)], registered
        self.received: list[tuple[float, float]] = []  # when, and after how long
        self.sent = 0
        self.stopped = False

    def run(self, rate: float, seconds: float) -> Figures:
        with self.server.connect() as conn:
            for queue in self.queues:
                db.execute(conn, "SELECT aq.create_queue(%s)", [queue])
                if self.registered:
                    db.execute(conn, "SELECT aq.register(%s, 'client://')", [queue])
            consumer = threading.Thread(target=self._consume)
            consumer.start()
            try:
                self._produce(conn, rate, seconds)
            finally:
                self.stopped = True
                consumer.join()
            for queue in self.queues:
                db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [queue])
        if len(self.received) != self.sent:
            raise SystemExit(f"bench/notify: {self.sent} messages were sent, {len(self.received)} received")
        late = [late * 1000 for _, late in self.received]
        took = self.received[-1][0] - self.received[0][0]
        return Figures(self.sent / took, statistics.median(late), statistics.quantiles(late, n=100)[98])

    def _produce(self, conn: db.Connection, rate: float, seconds: float) -> None:
        chance = random.Random(1)
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + seconds:
            queue = chance.choice(self.queues)
            if rate:
                due = begin + self.sent / rate
                time.sleep(max(0.0, due - now))
                db.execute(conn, "SELECT aq.enqueue(%s, jsonb_build_array(%s::float))", [queue, due])
                self.sent += 1
            elif self.sent - len(self.received) < AHEAD:
                db.execute(conn, "SELECT aq.enqueue_array(%s, array_fill(jsonb_build_array(%s::float), ARRAY[%s]))", [queue, now, BATCH])
                self.sent += BATCH
            else:
                time.sleep(0.001)

    def _consume(self) -> None:
        with self.server.connect() as conn:
            wait = "CALL aq.wait(NULL::bigint[], '0.2 s')" if self.registered else "CALL aq.wait('q0', '0.2 s')"
            take = TAKE if self.registered else "SELECT (payload ->> 0)::float FROM aq.dequeue('q0', max_messages => 100)"
            while not (self.stopped and len(self.received) >= self.sent):
                found = conn.execute(take).fetchall()
                now = time.monotonic()
                self.received += [(now, now - sent) for (sent,) in found]
                if not found:
                    db.execute(conn, wait)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/notify", description="Notification of programs; see bench/README.md.")
    parser.add_argument("--rounds", type=program.at_least(1), default=3, help="of each contestant (3)")
    parser.add_argument("--seconds", type=program.above_zero, default=5, help="of each round (5)")
    parser.add_argument("--rate", type=program.above_zero, default=50, help="messages per second where latency is measured (50)")
    parser.add_argument("--queues", type=program.at_least(2), default=100, help="of the last contestant (100)")
    program.add_options(parser)
    return parser.parse_args(arguments)


def run(given: argparse.Namespace) -> int:
    settings = program.settings(given)
    contestants = {"aq.wait and dequeue": (1, False), "one registration": (1, True), f"{given.queues} registrations": (given.queues, True)}
    kinds = {"latency": given.rate, "speed": 0}
    about = {**results.about(settings, machine.busy()), "seconds": given.seconds, "rate": given.rate}
    found: dict[str, dict[str, list[Figures]]] = {name: {kind: [] for kind in kinds} for name in contestants}
    with Server.temporary("notify", parent=program.parent(given), settings=settings) as server:
        with server.connect() as conn:
            db.execute(conn, "CREATE EXTENSION pgaq")
        for number in range(given.rounds):
            for name, (queues, registered) in contestants.items():
                for kind, rate in kinds.items():
                    found[name][kind].append(Play(server, queues, registered).run(rate, given.seconds))
            print(f"round {number + 1} of {given.rounds}", flush=True)
    rows = []
    for name, by_kind in found.items():
        middle = [
            statistics.median(each.median_ms for each in by_kind["latency"]),
            statistics.median(each.p99_ms for each in by_kind["latency"]),
            statistics.median(each.per_second for each in by_kind["speed"]),
        ]
        rows.append([name, f"{middle[0]:.2f} ms", f"{middle[1]:.2f} ms", f"{text.number(middle[2])}/s"])
    print(
        f"\nmedians of {given.rounds} rounds of {given.seconds:g} s, {os.cpu_count()} CPUs, {about['cpus_busy_before']:.2f} of them busy before\n"
    )
    print(text.table(["consumer", f"median latency at {given.rate:g}/s", "99 %", "as fast as it goes"], rows, left=1))
    if not given.no_save:
        content = {
            **about,
            "rounds": {
                name: {kind: [asdict(each) for each in plays] for kind, plays in by_kind.items()} for name, by_kind in found.items()
            },
        }
        print(f"\nwritten: {results.save('notify', content, None, given.output)}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("notify", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
