"""Clients with leases, beside those of bench/load, on the same queue.

Each takes messages with leases of 0.3 to 3 seconds, and acknowledges, extends,
gives back, rejects or abandons them; some it tries when their time is over.  Its
ledger has the times, receipts and answers by which lease_rules.py judges.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pgaq import db
from pgaq.load import payload
from pgaq.load.ledger import NO_DELAY, Writer

if TYPE_CHECKING:
    from pgaq.load.workload import Workload

FIRST = 7000  # number of the first one: others have lower numbers
_numbers = itertools.count()
LEASES = (300, 1000, 3000)  # ms


class Held(NamedTuple):
    """Messages of one take."""

    receipt: int
    ids: list[str]
    sent: list[payload.Sent]
    until: float


def now() -> int:
    """The clock of bench/load."""
    return time.monotonic_ns() // 1000


class Leasers:
    """They run from their creation to stop()."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.over = threading.Event()
        names = work.shape.consumers or [""]
        self.clients = [_Leaser(self, number, names[number % len(names)]) for number in range(work.options.leasers)]
        for client in self.clients:
            client.start()

    def stop(self) -> None:
        """Each acknowledges what it holds, if the server lets it; leases of the others end by themselves."""
        self.over.set()
        for client in self.clients:
            client.join()
        for client in self.clients:
            if client.problem is not None:
                raise client.problem

    def count(self) -> None:
        """So that producers do not take for a backlog what was acknowledged."""
        self.work.control._set("acknowledged", sum(client.acknowledged for client in self.clients))


class _Leaser(threading.Thread):
    def __init__(self, group: Leasers, number: int, consumer: str) -> None:
        super().__init__(daemon=True)
        self.group, self.work, self.consumer = group, group.work, consumer
        self.rng = random.Random(self.work.options.seed * 100 + number)
        self.ledger = Writer(
            self.work.ledger_dir, "consumer", FIRST + next(_numbers), consumer=consumer, batch=self.work.shape.most, sync=False
        )
        self.conn: db.Connection | None = None
        self.held: list[Held] = []
        self.acknowledged = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.group.over.is_set():
                if self.connected():
                    self.take() if len(self.held) < 4 and self.rng.random() < 0.5 else self.use()
            self.finish()
        except BaseException as error:
            self.problem = error
        finally:
            self.ledger.close()
            if self.conn is not None:
                self.conn.close()

    def connected(self) -> bool:
        if self.conn is not None and self.conn.closed:
            self.conn = None
        if self.conn is None:
            try:
                self.conn = self.work.server.connect(self.work.dbname, application_name="load leaser", connect_timeout="5")
            except db.OperationalError:
                self.group.over.wait(0.1)
        return self.conn is not None

    def finish(self) -> None:
        deadline = time.monotonic() + 10
        while self.held and time.monotonic() < deadline:
            if self.connected():
                self.end(self.held.pop(), "A", False)
            else:
                time.sleep(0.1)

    # -- calls

    def call(self, query: str, parameters: list[Any], block: bool) -> list[tuple[Any, ...]] | None:
        """Its rows; None: an error.  Opens a transaction for block, which the caller ends."""
        try:
            if block:
                self.conn.execute("BEGIN")
            self.ledger.time(now())
            rows = self.conn.execute(query, parameters).fetchall()
            self.ledger.time(now())
            return rows
        except db.Error as error:
            if error.sqlstate is not None and error.sqlstate[:2] in ("22", "42"):
                raise  # the call is wrong
            return None

    def broken(self) -> bool:
        """Did the connection break in the last call?"""
        return self.conn.closed or self.conn.broken

    def end_block(self) -> str:
        """Commit, roll back or prepare; the outcome."""
        verb = self.rng.choices(["COMMIT", "ROLLBACK", "PREPARE"], [80, 12, 8 if self.work.options.prepare else 0])[0]
        gid = f"load-leaser-{FIRST}-{id(self)}-{now()}"
        try:
            self.ledger.time(now(), commits=True)
            if verb != "PREPARE":
                self.conn.execute(verb)
                return "R" if verb == "ROLLBACK" else "C"
            self.conn.execute(f"PREPARE TRANSACTION '{gid}'")
            try:
                self.conn.execute(f"COMMIT PREPARED '{gid}'")
                return "C"
            except db.Error:
                return "U"  # someone else ends it
        except db.Error:
            if self.broken():
                return "R" if verb == "ROLLBACK" else "U"
            return "U" if verb == "PREPARE" and self.conn.info.transaction_status == 0 else self.roll_back()

    def roll_back(self) -> str:
        try:
            self.conn.execute("ROLLBACK")
        except db.Error:
            pass
        return "R"

    def lost(self, block: bool) -> str:
        """The outcome after an error in a call; says what it may have held."""
        if self.broken():
            self.ledger.connection_lost()
            return "R" if block else "U"
        return self.roll_back() if block else "R"

    # -- what it does

    def take(self) -> None:
        shape, block = self.work.shape, self.rng.random() < 0.5
        ms, number = self.rng.choice(LEASES), self.rng.randint(1, shape.most)
        rows = self.call(
            "SELECT payload, priority, attempts, msgid::text, receipt FROM aq.dequeue(%s, as_type => null::text, consumer => %s, max_messages => %s, lease => %s)",
            [self.work.queue, self.consumer or None, number, f"{ms} ms"], block,
        )  # fmt: skip
        if rows is None:
            self.ledger.dequeue_lost(number)
            self.ledger.outcome(self.lost(block), now())
            self.group.over.wait(0.02)
            return
        held = Held(rows[0][4] if rows else 0, [], [], time.monotonic() + ms / 1000)
        for text, priority, attempts, msgid, receipt in rows:
            sent = payload.read(text, shape.payload)
            if sent is None:
                self.ledger.bad_payload()
                continue
            self.ledger.leased(receipt, ms, attempts, *sent, priority=priority)
            held.ids.append(msgid)
            held.sent.append(sent)
        outcome = self.end_block() if block else "C"
        self.ledger.outcome(outcome, 0 if outcome == "U" else now())
        if held.ids and outcome != "R":
            self.held.append(held)
        if not rows:
            self.group.over.wait(0.05)

    def use(self) -> None:
        """Of what was taken at some time: its lease may be over."""
        if not self.held:
            return
        held = self.rng.choice(self.held)
        late = time.monotonic() > held.until + 0.5
        if not late and self.rng.random() < 0.3:
            self.group.over.wait(self.rng.uniform(0, 0.2))
            return
        kinds = ["A", "F", "W", "H", "J" if self.work.shape.gives_up else "A", ""]
        kind = self.rng.choices(kinds, [60, 10, 5, 10, 5, 10])[0]
        if kind == "" or late:
            self.held.remove(held)  # abandoned, unless it is late
        if kind:
            self.end(held, kind, self.rng.random() < 0.5)

    def end(self, held: Held, kind: str, block: bool) -> None:
        chosen = [at for at in range(len(held.ids)) if kind == "A" or self.rng.random() < 0.7]
        ms = {"F": self.rng.choice([0, 0, 200, NO_DELAY]), "H": self.rng.choice(LEASES)}.get(kind, 0)
        name, more = {
            "A": ("acknowledge", ""), "J": ("reject", ""), "H": ("extend", f", '{ms} ms'::interval"),
            "F": ("release", ", delay => " + ("NULL" if ms == NO_DELAY else f"'{ms} ms'")), "W": ("release", ", delay => '0', count => false"),
        }[kind]  # fmt: skip
        rows = self.call(
            f"SELECT result FROM aq.{name}(%s, %s::uuid[], %s{more}, consumer => %s)",
            [self.work.queue, [held.ids[at] for at in chosen], held.receipt, self.consumer or None], block,
        )  # fmt: skip
        if rows is None:
            outcome = self.lost(block)
            for at in chosen if outcome == "U" else ():
                # each may have been done, or not: a transaction of its own
                self.ledger.lease(kind, held.receipt, "unknown", *held.sent[at], ms=ms)
                self.ledger.outcome("U")
            if outcome != "U":
                self.ledger.outcome(outcome, now())
            return
        for at, (answer,) in zip(chosen, rows):
            self.ledger.lease(kind, held.receipt, answer, *held.sent[at], ms=ms)
        outcome = self.end_block() if block else "C"
        self.ledger.outcome(outcome, 0 if outcome == "U" else now())
        if outcome == "C" and kind == "A":
            self.acknowledged += sum(answer == "done" for (answer,) in rows)
            self.group.count()
