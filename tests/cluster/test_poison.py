"""Poison messages: each rolls back what takes it, and only it fails."""

from __future__ import annotations

import itertools
import time

import pytest

from conftest import arrived, drop, look, put, put_many, ready, stopped_worker, take, until
from pgaq import db
from test_leases import Leased
from test_prepare import disturb

pytestmark = pytest.mark.own_tables
SETTINGS = {"max_prepared_transactions": "10"}
CREATE = (
    "SELECT aq.create_queue(%s, max_retries => %s, retry_delay => %s, exception_queue => %s, multiple_consumers => %s, queue_table => %s)"
)
_numbers = itertools.count(1)


@pytest.fixture(params=["sharded", "queue table"])
def store(request):
    return request.param


@pytest.fixture
def make(server, store):
    """Creates queues that have the exception queue 'dead'."""
    made = []

    def create(max_retries=5, retry_delay="0", topic=False):
        name = f"poison{next(_numbers)}"
        with server.connect() as conn:
            if not made:
                db.execute(conn, "SELECT aq.create_queue('dead')")
                made.append("dead")
            if store == "queue table":
                db.execute(conn, "SELECT aq.create_queue_table(%s, 'jsonb', multiple_consumers => %s)", [name + "_t", topic])
            conn.execute(
                CREATE,
                [name, max(max_retries, 0), retry_delay, "dead", topic and store == "sharded", None if store == "sharded" else name + "_t"],
            )
            if max_retries < 0:
                db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => -1)", [name])
        made.append(name)
        return name

    yield create
    if server.running():
        with server.connect() as conn:
            for name in reversed(made):
                drop(conn, name)
                if name != "dead" and store == "queue table":
                    db.execute(conn, "SELECT aq.drop_queue_table(%s, force => true)", [name + "_t"])


class Worker:
    """Takes batches; one that has a poison message is rolled back as a whole."""

    def __init__(self, conn, queue, poison, size=100, consumer=None):
        self.conn, self.queue, self.poison, self.size, self.consumer = conn, queue, set(poison), size, consumer
        self.done, self.failed = [], []

    def turn(self, end="ROLLBACK"):
        """One transaction; the payloads that it got."""
        self.conn.execute("BEGIN")
        got = take(self.conn, self.queue, self.consumer, self.size)
        bad = self.poison & set(got)
        self.conn.execute(end if bad else "COMMIT")
        (self.failed.append(got) if bad else self.done.extend(got))
        return got

    def run(self, patience=60):
        """Until all messages are done or have failed."""
        deadline = time.monotonic() + patience
        while db.value(
            self.conn, "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state NOT IN ('PROCESSED', 'EXPIRED')", [self.queue]
        ):
            assert time.monotonic() < deadline
            if ready(self.conn, self.queue, self.consumer, "1 s"):
                self.turn()


def test_one_of_a_batch_fails(server, make):
    """With a limit of 5: one dead letter, and the other 99 are done."""
    queue = make()
    with server.connect() as conn:
        put_many(conn, queue, 1, 100)
        worker = Worker(conn, queue, [50])
        worker.run()
        assert sorted(worker.done) == [*range(1, 50), *range(51, 101)]
        assert [len(got) for got in worker.failed] == [100, 25, 6, 1, 1, 1]
        assert arrived(conn, "dead", 1) == [50]


def test_two_of_a_batch_fail(server, make):
    queue = make(2, "0.05 s")
    with server.connect() as conn:
        put_many(conn, queue, 1, 100)
        worker = Worker(conn, queue, [3, 99])
        worker.run()
        assert sorted(worker.done) == [n for n in range(1, 101) if n not in (3, 99)]
        assert sorted(arrived(conn, "dead", 2)) == [3, 99]


@pytest.mark.parametrize("limit", [0, 1])
def test_small_limits(server, make, limit):
    """What failed together is tried once more, alone."""
    queue = make(limit)
    with server.connect() as conn:
        put_many(conn, queue, 1, 10)
        worker = Worker(conn, queue, [4, 5])
        worker.run()
        assert sorted(worker.done) == [1, 2, 3, 6, 7, 8, 9, 10]
        assert sorted(arrived(conn, "dead", 2)) == [4, 5]
        assert [len(got) for got in worker.failed] == [10, 1, 1]


def test_no_limit(server, make):
    """The batches get smaller, and it is tried for ever."""
    queue = make(-1)
    with server.connect() as conn:
        put_many(conn, queue, 1, 20)
        worker = Worker(conn, queue, [1], 20)
        until(lambda: worker.turn() and len(worker.failed) >= 10, "10 attempts")
        assert [len(got) for got in worker.failed[:4]] == [20, 5, 1, 1]
        conn.execute("SELECT aq.alter_queue(%s, max_retries => 3)", [queue])
        worker.run()
        assert sorted(worker.done) == [*range(2, 21)]
        assert arrived(conn, "dead", 1) == [1]


def test_each_by_itself_in_one_transaction(server, make):
    """A loop of single dequeues: the one that may fail for good ends it."""
    queue = make(2)
    with server.connect() as conn:
        put_many(conn, queue, 1, 4)
        done = []
        for _ in range(20):
            conn.execute("BEGIN")
            got = [payload for _ in range(4) for payload in take(conn, queue, number=1)]
            conn.execute("ROLLBACK" if 2 in got else "COMMIT")
            done += [] if 2 in got else got
            ready(conn, queue, timeout="0.2 s")
        assert sorted(done) == [1, 3, 4]
        assert arrived(conn, "dead", 1) == [2]


def test_a_transaction_gets_nothing_beside_it(server, make):
    queue = make(1)
    with server.connect() as conn, server.connect() as other:
        put(conn, queue, 1)
        conn.execute("BEGIN")
        assert take(conn, queue) == [1]
        conn.execute("ROLLBACK")
        assert ready(conn, queue, timeout="60 s")
        put(conn, queue, 2, 3)
        conn.execute("BEGIN")
        assert take(conn, queue) == [1]
        assert (take(conn, queue), ready(conn, queue)) == ([], False)
        # to others nothing has changed; a call that would wait for ever gets a message
        assert take(other, queue, number=1) == [2]
        assert conn.execute("SELECT payload FROM aq.dequeue(%s, wait => '-1 s')", [queue]).fetchall() == [(3,)]
        conn.execute("ROLLBACK")
        assert sorted(arrived(conn, queue, 2)) == [1, 3]  # it was not alone: 1 is over the limit, and stays


def test_it_does_not_join_a_transaction(server, make):
    queue = make(1)
    with server.connect() as conn:
        put(conn, queue, 0, 1, 2)
        conn.execute("BEGIN")
        assert conn.execute("SELECT payload FROM aq.dequeue(%s, condition => 'payload::int = 1')", [queue]).fetchall() == [(1,)]
        conn.execute("ROLLBACK")
        conn.execute("BEGIN")
        assert take(conn, queue, number=1) == [0]
        assert (take(conn, queue, number=1), take(conn, queue), ready(conn, queue)) == ([], [], False)
        conn.execute("COMMIT")
        assert (take(conn, queue), take(conn, queue)) == ([1], [2])


def test_to_a_savepoint(server, make):
    """A message that is rolled back alone to a savepoint is the one that fails."""
    queue = make(0)
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        conn.execute("BEGIN")
        assert take(conn, queue, number=1) == [1]
        conn.execute("SAVEPOINT a")
        assert take(conn, queue, number=1) == [2]
        conn.execute("ROLLBACK TO a")
        conn.execute("COMMIT")
        assert arrived(conn, "dead", 1) == [2]


@pytest.mark.parametrize("how", ["nothing", "restart", "kill"])
def test_prepared(server, make, how):
    queue = make(1)
    with server.connect() as conn:
        put(conn, queue, 1, 2)
        for expected in ([1, 2], [1]):
            conn.execute("BEGIN")
            assert until(lambda: take(conn, queue), "the messages") == expected
            conn.execute("PREPARE TRANSACTION 'p'")
            if len(expected) == 2:
                conn.execute("ROLLBACK PREPARED 'p'")
    disturb(server, how)
    with server.connect() as conn:
        assert look(conn, queue) in ([2], [])  # 2 is held back in a sharded queue
        conn.execute("ROLLBACK PREPARED 'p'")
        assert arrived(conn, "dead", 1) == [1]
        assert arrived(conn, queue, 1) == [2]


@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_prepared_leases(server, make, how):
    """Each was leased alone, but they are rolled back together, so none fails."""
    queue = make(0)
    with server.connect() as conn:
        put(conn, queue, 1, 2)
        conn.execute("BEGIN")
        assert [Leased(conn, queue, "1 hour", 1).payloads for _ in range(2)] == [[1], [2]]
        conn.execute("PREPARE TRANSACTION 'p'")
    disturb(server, how)
    with server.connect() as conn:
        conn.execute("ROLLBACK PREPARED 'p'")
        assert arrived(conn, queue, 2) == [1, 2]


def test_over_a_restart(server, make):
    queue = make(0)
    with server.connect() as conn:
        put_many(conn, queue, 1, 5)
        Worker(conn, queue, [3]).turn()
        assert ready(conn, queue, timeout="60 s")
    disturb(server, "kill")
    with server.connect() as conn:
        worker = Worker(conn, queue, [3])
        worker.run()
        assert (sorted(worker.done), worker.failed) == ([1, 2, 4, 5], [[3]])
        assert arrived(conn, "dead", 1) == [3]


def test_consumers_of_a_topic(server, make):
    """Each counts by itself; the message is bad for one."""
    queue = make(2, topic=True)
    with server.connect() as conn:
        conn.execute("SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b', 'c']) c", [queue])
        put_many(conn, queue, 1, 12)
        workers = {name: Worker(conn, queue, [5] if name == "b" else [], 12, name) for name in "abc"}
        deadline = time.monotonic() + 60
        while sum(len(worker.done) for worker in workers.values()) < 35 or len(workers["b"].failed) < 3:
            assert time.monotonic() < deadline
            for name, worker in workers.items():
                if ready(conn, queue, name, "0.1 s"):
                    worker.turn()
        assert sorted(workers["b"].done) == [n for n in range(1, 13) if n != 5]
        assert sorted(workers["a"].done) == sorted(workers["c"].done) == [*range(1, 13)]
        assert arrived(conn, "dead", 1) == [5]


# -- leases


@pytest.mark.parametrize("how", ["lost", "released"])
def test_leased(server, make, how):
    queue = make(3)
    done, failed = [], []
    with server.connect() as conn:
        put_many(conn, queue, 1, 100)
        deadline = time.monotonic() + 60
        while len(done) < 99 or len(failed) < 4:
            assert time.monotonic() < deadline
            if not ready(conn, queue, timeout="1 s"):
                continue
            with stopped_worker(conn):  # it ends no lease before the acknowledgement
                leased = Leased(conn, queue, "0.3 s" if how == "lost" else "1 hour", 100)
                if 50 not in leased.payloads:
                    assert leased.acknowledge(conn) == "done"
                    done += leased.payloads
                    continue
            failed.append(len(leased.payloads))
            if how == "released":
                assert leased.call(conn, "release") == "done"
        assert sorted(done) == [*range(1, 50), *range(51, 101)]
        assert (failed[:2], failed[-1], len(failed)) == ([100, 25], 1, 4)
        assert arrived(conn, "dead", 1) == [50]


def test_a_killed_worker(server, make):
    """The message kills the server; the others of its lease do not fail."""
    queue = make(1)
    with server.connect() as conn:
        put(conn, queue, "poison", "good")
        assert Leased(conn, queue, "1 s").payloads == ["poison", "good"]
    disturb(server, "kill")
    with server.connect() as conn:
        assert ready(conn, queue, timeout="60 s")
        leased = until(lambda: (got := Leased(conn, queue, "1 s")).payloads and got, "the message")
        assert (leased.payloads, leased.attempts) == (["poison"], [1])
    disturb(server, "kill")
    with server.connect() as conn:
        assert arrived(conn, "dead", 1) == ["poison"]
        assert arrived(conn, queue, 1) == ["good"]


@pytest.mark.parametrize("how", ["lost", "released"])
def test_leased_with_others(server, make, how):
    """A limit of 0: a batch that is lost or released is tried again, one by one."""
    queue = make(0)
    with server.connect() as conn:
        put(conn, queue, 1, 2)
        if how == "lost":
            assert Leased(conn, queue, "0.2 s").payloads == [1, 2]
            until(lambda: look(conn, queue) == [1, 2], "the end of the lease")
        else:
            assert Leased(conn, queue, "1 hour").call(conn, "release") == "done"
        first, second = Leased(conn, queue, "1 hour"), Leased(conn, queue, "1 hour")
        assert (first.payloads, second.payloads, first.receipt & 1) == ([1], [2], 1)
        assert first.call(conn, "release", ", delay => '0.1 s'") == "done"
        assert second.acknowledge(conn) == "done"
        assert arrived(conn, "dead", 1) == [1]
