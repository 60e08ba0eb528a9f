"""Leases: over restarts and crashes, prepared by others, evicted, dumped, in great numbers."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import conftest
from conftest import PATIENCE, arrived, drop, look, put, put_many, ready, take, until
from pgaq import db
from pgaq.load.drivers import LEASE1, LEASE2, Shape
from pgaq.load.workload import Workload
from test_dump import dump, restore
from test_metrics import evict, metrics
from test_prepare import FINISH, disturb
from test_xmin import PARTITION

SETTINGS = {"pgaq.message_cache_size": "8MB", "max_prepared_transactions": "10"}
HOW = ["nothing", "restart", "immediate", "kill", "kill twice"]


class Leased:
    """Messages that were dequeued with a lease."""

    def __init__(self, conn, queue, lease, number=100_000, consumer=None):
        query = "SELECT msgid::text, payload, attempts, receipt FROM aq.dequeue(%s, consumer => %s, max_messages => %s, lease => %s)"
        rows = conn.execute(query, [queue, consumer, number, lease]).fetchall()
        self.queue, self.consumer = queue, consumer
        self.ids = [row[0] for row in rows]
        self.payloads = [row[1] for row in rows]
        self.attempts = [row[2] for row in rows]
        assert len({row[3] for row in rows}) <= 1
        self.receipt = rows[0][3] if rows else None

    def call(self, conn, name, more="", ids=None):
        """The results, without repetition."""
        query = f"SELECT DISTINCT result FROM aq.{name}(%s, %s::uuid[], %s{more}, consumer => %s) ORDER BY 1"
        return " ".join(row[0] for row in conn.execute(query, [self.queue, ids or self.ids, self.receipt, self.consumer]))

    def acknowledge(self, conn, ids=None):
        return self.call(conn, "acknowledge", ids=ids)


def states(conn, queue):
    """Of the messages that are not done; rows of those that are go when the worker has truncated their partition."""
    query = (
        "SELECT payload::int, state, attempts FROM aq.messages WHERE queue_name = %s AND state NOT IN ('PROCESSED', 'EXPIRED') ORDER BY 1"
    )
    return conn.execute(query, [queue]).fetchall()


# -- restarts


@pytest.mark.parametrize("how", HOW)
def test_a_lease_survives(server, queue, how):
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        leased = Leased(conn, queue, "1 hour", 2)
        assert (leased.payloads, leased.attempts) == ([1, 2], [0, 0])
    disturb(server, how)
    with server.connect() as conn:
        assert states(conn, queue) == [(1, "LEASED", 1), (2, "LEASED", 1), (3, "READY", 0)]
        assert take(conn, queue) == [3]
        assert leased.acknowledge(conn, leased.ids[:1]) == "done"
        assert leased.call(conn, "release", ids=leased.ids[1:]) == "done"
        assert leased.acknowledge(conn) == "stale"
        again = Leased(conn, queue, "1 hour")
        assert (again.payloads, again.attempts) == ([2], [1])
        assert again.receipt != leased.receipt
    disturb(server, how)
    with server.connect() as conn:
        assert leased.acknowledge(conn) == "stale"
        assert again.acknowledge(conn) == "done"
        assert take(conn, queue) == []


@pytest.mark.parametrize("how", ["restart", "immediate", "down meanwhile"])
def test_a_lease_ends_after_a_restart(server, queue, how):
    """By itself, at its place; also when its time was over before the server started."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        leased = Leased(conn, queue, "3 s", 2)
        other = Leased(conn, queue, "1 hour")
        assert other.payloads == [3]
    if how == "down meanwhile":
        server.kill()
        time.sleep(3.2)  # the lease's time passes, and nothing that could be waited for happens
        server.start()
    else:
        disturb(server, how)
    with server.connect() as conn:
        assert ready(conn, queue, timeout="60 s")
        assert leased.acknowledge(conn) == "stale"
        assert other.call(conn, "release") == "done"
        got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 100)", [queue]).fetchall()
        assert got == [(1, 1), (2, 1), (3, 1)]


def test_what_is_released_rests_over_a_restart(server, queue):
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        leased = Leased(conn, queue, "1 hour")
        assert leased.call(conn, "release", ", delay => '1 hour'", leased.ids[:1]) == "done"
        assert leased.call(conn, "release", ", count => false, delay => '3 s'", leased.ids[1:2]) == "done"
        assert leased.call(conn, "extend", ", '2 hours'", leased.ids[2:]) == "done"
        assert states(conn, queue) == [(1, "WAITING", 1), (2, "WAITING", 0), (3, "LEASED", 1)]
    disturb(server, "kill")
    with server.connect() as conn:
        assert ready(conn, queue, timeout="60 s")
        assert states(conn, queue) == [(1, "WAITING", 1), (2, "READY", 0), (3, "LEASED", 1)]
        until(lambda: metrics(conn, queue) == (3, 1, 1, 1), "the counts")
        assert leased.acknowledge(conn, leased.ids[2:]) == "done"
        assert take(conn, queue) == [2]


# -- workers that die


def test_a_killed_worker_counts(server, queue):
    """Its message comes back as often as max_retries allows, and then fails."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('le_poison')")
        db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => 2, exception_queue => 'le_poison')", [queue])
        put(conn, queue, "poison")
    for attempt in range(3):
        with server.connect() as worker:
            leased = until(lambda w=worker: (got := Leased(w, queue, "200 ms")).payloads and got, "the message")
            assert leased.attempts == [attempt]
        disturb(server, ["kill", "nothing", "immediate"][attempt])
    with server.connect() as conn:
        assert arrived(conn, "le_poison", 1) == ["poison"]
        assert leased.acknowledge(conn) == "stale"
        assert take(conn, queue) == []
        drop(conn, queue)
        drop(conn, "le_poison")


def test_an_attempt_is_on_disk_before_its_holder_has_it(server, queue):
    """Also with synchronous_commit = off: invariant I12."""
    with server.connect() as conn:
        put(conn, queue, 1)
        conn.execute("SET synchronous_commit = off")
        leased = Leased(conn, queue, "1 hour")
        server.kill()
    server.start()
    with server.connect() as conn:
        assert states(conn, queue) == [(1, "LEASED", 1)]
        assert leased.acknowledge(conn) == "done"


# -- prepared transactions


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", HOW)
def test_prepared_acknowledgement(server, queue, how, finish):
    """While it is in doubt the lease does not end."""
    with server.connect() as conn:
        put(conn, queue, 1, 2)
        leased = Leased(conn, queue, "3 s", 1)
        conn.execute("BEGIN")
        assert leased.acknowledge(conn) == "done"
        conn.execute("PREPARE TRANSACTION 'a'")
    disturb(server, how)
    with server.connect() as conn:
        assert leased.acknowledge(conn) == "busy"
        db.execute(conn, "SELECT pg_sleep(3.2)")
        assert states(conn, queue)[0][1] != "READY"
        assert look(conn, queue) == []  # 2 is held back, as behind a prepared dequeue
        conn.execute(f"{finish} 'a'")
        expected = [(1, 1), (2, 0)] if finish == "ROLLBACK PREPARED" else [(2, 0)]
        query = "SELECT payload, attempts FROM aq.browse(%s)"
        assert until(lambda: len(got := conn.execute(query, [queue]).fetchall()) == len(expected) and got) == expected
        assert leased.acknowledge(conn) == "stale"


@pytest.mark.sharded("is about the memory of partitions")
def test_many_prepared_acknowledgements_of_single_messages(server, queue):
    """When they are rolled back, no memory is needed for each of them."""
    number = 4500  # the cache has 4096 chunks
    with server.connect() as conn:
        put_many(conn, queue, 1, number)
        taken = conn.execute(
            """SELECT array_agg(d.msgid::text), array_agg(d.receipt) FROM generate_series(1, %s) n,
            LATERAL aq.dequeue(%s, max_messages => least(n, 1), lease => '1 hour') d""",
            [number, queue],
        ).fetchone()
        acknowledge = """SELECT result, count(*) FROM unnest(%s::uuid[], %s::bigint[]) taken (msgid, receipt),
            LATERAL aq.acknowledge(%s, ARRAY[taken.msgid], taken.receipt) GROUP BY 1"""
        conn.execute("BEGIN")
        assert conn.execute(acknowledge, [*taken, queue]).fetchall() == [("done", number)]
        conn.execute("PREPARE TRANSACTION 'single'")
        conn.execute("ROLLBACK PREPARED 'single'")
        assert conn.execute(acknowledge, [*taken, queue]).fetchall() == [("done", number)]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", HOW)
def test_prepared_take(server, queue, how, finish):
    with server.connect() as conn:
        put(conn, queue, 1, 2)
        conn.execute("BEGIN")
        leased = Leased(conn, queue, "1 hour", 1)
        conn.execute("PREPARE TRANSACTION 't'")
    disturb(server, how)
    with server.connect() as conn:
        assert leased.acknowledge(conn) == "stale"
        conn.execute(f"{finish} 't'")
        if finish == "COMMIT PREPARED":
            assert states(conn, queue) == [(1, "LEASED", 1), (2, "READY", 0)]
            assert leased.acknowledge(conn) == "done"
            assert take(conn, queue) == [2]
        else:
            assert ready(conn, queue, timeout="60 s")
            assert leased.acknowledge(conn) == "stale"
            got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 10)", [queue]).fetchall()
            assert got == [(1, 1), (2, 0)]


CALLS = {"release": "", "release later": ", delay => '1 hour'", "release unseen": ", count => false", "reject": "", "extend": ", '1 day'"}


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
@pytest.mark.parametrize("call", CALLS)
def test_prepared_end(server, queue, call, how, finish):
    with server.connect() as conn:
        put(conn, queue, 1)
        leased = Leased(conn, queue, "1 hour")
        conn.execute("BEGIN")
        assert leased.call(conn, call.split()[0], CALLS[call]) == "done"
        conn.execute("PREPARE TRANSACTION 'e'")
    disturb(server, how)
    with server.connect() as conn:
        assert leased.acknowledge(conn) == "busy"
        conn.execute(f"{finish} 'e'")
        goes_on = finish == "ROLLBACK PREPARED" or call == "extend"
        after = {"release": [(1, "READY", 1)], "release later": [(1, "WAITING", 1)], "release unseen": [(1, "READY", 0)], "reject": []}
        assert states(conn, queue) == ([(1, "LEASED", 1)] if goes_on else after[call])
        assert leased.acknowledge(conn) == ("done" if goes_on else "stale")


# -- memory


@pytest.mark.sharded("is about partitions and their frames")
def test_leases_of_evicted_partitions(server, conn, queue):
    """Their leases end, are acknowledged and are counted."""
    put_many(conn, queue, 1, PARTITION)
    long = Leased(conn, queue, "1 hour", 2000)
    short = Leased(conn, queue, "5 s", 2000)
    evict(conn, [queue])
    lag, ready, delayed, leased = metrics(conn, queue)
    # on a slow machine the short ones are ending already
    assert (lag, ready + leased, delayed) == (PARTITION, PARTITION, 0) and 2000 <= leased <= 4000
    assert long.acknowledge(conn, long.ids[:1000]) == "done"
    evict(conn, [queue])
    until(lambda: metrics(conn, queue) == (PARTITION - 1000, PARTITION - 2000, 0, 1000), "the end of the leases")
    assert short.acknowledge(conn) == "stale"
    assert take(conn, queue) == list(range(2001, PARTITION + 1))
    assert long.acknowledge(conn) == "done stale"
    assert metrics(conn, queue) == (0, 0, 0, 0)


@pytest.mark.sharded("is about partitions and their frames")
def test_a_partition_of_leases_of_many_subscribers(new_server, is_long):
    """None ends early for want of timers: 100 subscribers (20 in the short run) x 16,384 leases."""
    subscribers = 100 if is_long else 20
    big = new_server(**{"pgaq.message_cache_size": "256MB"})
    with big.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('many', multiple_consumers => true, shards => 1)")
        db.execute(conn, "SELECT aq.subscribe('many', 's' || n) FROM generate_series(1, %s) n", [subscribers])
        put_many(conn, "many", 1, PARTITION)
        leased = [Leased(conn, "many", "1 hour", consumer=f"s{n}") for n in range(1, subscribers + 1)]
        assert all(len(lease.ids) == PARTITION for lease in leased)
        columns = "sum(lag), sum(ready), sum(delayed), sum(in_flight)"
        total = subscribers * PARTITION
        assert conn.execute(f"SELECT {columns} FROM aq.metrics() WHERE queue_name = 'many'").fetchone() == (total, 0, 0, total)
        assert leased[0].call(conn, "release", ", delay => '1 hour'") == "done"
        assert leased[1].call(conn, "release") == "done"
        assert take(conn, "many", "s2") == list(range(1, PARTITION + 1))
        for lease in leased[2:]:
            assert lease.acknowledge(conn) == "done"
        assert conn.execute(f"SELECT {columns} FROM aq.metrics() WHERE queue_name = 'many'").fetchone() == (PARTITION, 0, PARTITION, 0)
        assert conn.execute("SELECT * FROM aq.check('20 s')").fetchall() == []


# -- waiting, consumers


def test_the_end_of_a_lease_wakes_a_waiter(server, conn, queue):
    put(conn, queue, 1)
    leased = Leased(conn, queue, "1 s")
    with ThreadPoolExecutor(1) as pool, server.connect() as other:
        waits = pool.submit(ready, other, queue, None, "60 s")
        assert waits.result(timeout=30)
    assert leased.acknowledge(conn) == "stale"
    assert take(conn, queue) == [1]


def test_a_lease_does_not_end_early(server, conn, queue):
    put_many(conn, queue, 1, 1000)
    began = db.value(conn, "SELECT clock_timestamp()")
    leased = [Leased(conn, queue, "3 s", 100) for _ in range(10)]
    assert ready(conn, queue, timeout="60 s")
    assert db.value(conn, "SELECT clock_timestamp() - %s >= interval '3 s'", [began])
    assert arrived(conn, queue, 1000) == list(range(1, 1001))
    assert {lease.acknowledge(conn) for lease in leased} == {"stale"}


@pytest.mark.sharded("is about partitions and their frames")
def test_a_lock_on_the_tables_delays_the_end(server, conn, queue):
    put(conn, queue, 1)
    table = db.value(
        conn,
        "SELECT log::text FROM aq_internal.partitions() p JOIN aq.queues USING (queue_id) WHERE queue_name = %s AND state = 'open'",
        [queue],
    )
    with server.connect() as other:
        leased = Leased(conn, queue, "3 s")
        other.execute(f"BEGIN; LOCK {table} IN SHARE MODE")
        db.execute(conn, "SELECT pg_sleep(3.5)")
        assert states(conn, queue) == [(1, "LEASED", 1)]
        other.execute("ROLLBACK")
    assert arrived(conn, queue, 1) == [1]
    assert leased.acknowledge(conn) == "stale"


def test_unsubscribed(server, conn, topic):
    put(conn, topic, 1, 2)
    leased = Leased(conn, topic, "1 hour", consumer="a")
    with server.connect() as other:
        other.execute("BEGIN")
        assert leased.acknowledge(other, leased.ids[:1]) == "done"
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
        other.execute("ROLLBACK")
    assert leased.acknowledge(conn) == "stale"
    assert take(conn, topic, "b") == [1, 2]


def test_extended_while_it_is_acknowledged(server, conn, queue):
    """A heartbeat in another session never makes a lease that runs look like one that has ended."""
    put(conn, queue, 1)
    leased = Leased(conn, queue, "1 hour")
    stop = threading.Event()
    found = set()

    def extend():
        with server.connect() as other:
            while not stop.is_set():
                found.add(leased.call(other, "extend", ", '1 hour'"))

    with ThreadPoolExecutor(1) as pool:
        beats = pool.submit(extend)
        for _ in range(300):
            conn.execute("BEGIN")
            found.add(leased.acknowledge(conn))
            conn.execute("ROLLBACK")
        stop.set()
        beats.result(PATIENCE)
    assert found <= {"done", "busy"}
    assert leased.acknowledge(conn) == "done"


# -- partitions, other stores, other servers


@pytest.mark.sharded("is about partitions and their frames")
@pytest.mark.parametrize("retention", ["0", "1 s"])
def test_a_leased_message_keeps_its_partition(new_server, retention):
    """All others of the partition are done: it is truncated when this one is, too."""
    own = new_server(**{"pgaq.reuse_grace": "0"})
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('kept', shards => 1), aq.alter_queue('kept', retention => %s)", [retention])
        put_many(conn, "kept", 1, 2 * PARTITION + 1)
        leased = Leased(conn, "kept", "1 hour", 1)
        assert take(conn, "kept") == list(range(2, 2 * PARTITION + 2))
        query = "SELECT count(*) FROM aq.partitions WHERE queue_name = 'kept' AND state = 'closed'"
        until(lambda: db.value(conn, query) == 1, "the second partition to be truncated")
        db.execute(conn, "SELECT pg_sleep(1)")  # the worker may do nothing, which cannot be waited for
        assert db.value(conn, query) == 1
        assert states(conn, "kept") == [(1, "LEASED", 1)]
        own.restart()
    with own.connect() as conn:
        assert states(conn, "kept") == [(1, "LEASED", 1)]
        assert leased.acknowledge(conn) == "done"
        until(
            lambda: db.value(conn, "SELECT count(*) FROM aq.partitions WHERE queue_name = 'kept' AND state IN ('closed', 'consumed')") == 0,
            "truncation",
        )
        assert leased.acknowledge(conn) == "stale"


def end_leases(conn, queue, ids, consumer=None):
    return [row[0] for row in conn.execute("SELECT result FROM aq.end_leases(%s, %s, %s)", [queue, ids, consumer])]


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
def test_leases_ended_without_receipts_by_a_prepared_transaction(server, queue, outcome):
    """They are in doubt, over a crash, too; then all are over, or go on with their receipts."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        leases = [Leased(conn, queue, "1 hour", 1) for _ in range(3)]
        ids = [id for lease in leases for id in lease.ids]
        conn.execute("BEGIN")
        assert end_leases(conn, queue, ids) == ["done"] * 3
        conn.execute("PREPARE TRANSACTION 'ending'")
        assert end_leases(conn, queue, ids) == ["busy"] * 3
    server.restart("immediate")
    with server.connect() as conn:
        assert [lease.acknowledge(conn) for lease in leases] == ["busy"] * 3
        conn.execute(f"{outcome} PREPARED 'ending'")
        ended = outcome == "COMMIT"
        assert states(conn, queue) == [(n, "READY" if ended else "LEASED", 1) for n in (1, 2, 3)]
        assert [lease.acknowledge(conn) for lease in leases] == ["stale" if ended else "done"] * 3
        assert sorted(take(conn, queue)) == ([1, 2, 3] if ended else [])
        assert conn.execute("SELECT * FROM aq.check('20 s')").fetchall() == []


@pytest.mark.own_tables
def test_a_queue_that_is_being_converted(server, conn):
    """While the queue has two stores, new leases are refused, and those from before are finished; the conversion waits for them."""
    converting = "SELECT converting FROM aq.queues WHERE queue_name = 'conv'"
    db.execute(conn, "SELECT aq.create_queue_table('public.t'), aq.create_queue('conv', queue_table => 'public.t')")
    put(conn, "conv", 1, 2)
    leased = Leased(conn, "conv", "1 hour")
    put(conn, "conv", 0)
    lost = Leased(conn, "conv", "90000 years")
    db.execute(conn, "SELECT aq.convert_queue('conv')")
    put(conn, "conv", 3)
    with pytest.raises(db.Error, match="cannot be leased"):
        db.execute(conn, "SELECT * FROM aq.dequeue('conv', lease => '1 s')")
    assert look(conn, "conv") == [3]
    assert leased.call(conn, "extend", ", '2 hours'") == "done"
    assert leased.acknowledge(conn, leased.ids[:1]) == "done"
    assert db.value(conn, converting)
    assert leased.call(conn, "release", ids=leased.ids[1:]) == "done"
    assert take(conn, "conv", number=1) == [2]
    assert db.value(conn, converting)
    assert end_leases(conn, "conv", lost.ids) == ["done"]
    assert take(conn, "conv", number=1) == [0]
    until(lambda: not db.value(conn, converting), "the end of the conversion")
    assert leased.acknowledge(conn) == lost.acknowledge(conn) == "stale"
    again = Leased(conn, "conv", "1 hour")
    assert again.payloads == [3]
    assert again.acknowledge(conn) == "done"
    db.execute(conn, "SELECT aq.drop_queue('conv'), aq.drop_queue_table('public.t', force => true)")


def test_promotion(server, queue, throw_away):
    """Leases run on, are in doubt, and end in the standby that takes over; its receipts are new ones."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3, 4, 5)
        held, short, doubted, rests = (Leased(conn, queue, lease, 1) for lease in ("1 hour", "3 s", "1 hour", "1 hour"))
        copy = throw_away(server.basebackup("standby"))
        copy.start()
        conn.execute("BEGIN")
        assert doubted.acknowledge(conn) == "done"
        conn.execute("PREPARE TRANSACTION 'promoted'")
        assert rests.call(conn, "release", ", delay => '1 hour'") == "done"
        copy.wait_for_replay(server)
        copy.promote()
    with copy.connect() as there:
        assert doubted.acknowledge(there) == "busy"
        until(lambda: (2, "READY", 1) in states(there, queue), "the end of the short lease")
        assert short.acknowledge(there) == "stale"
        again = Leased(there, queue, "1 hour", 1)
        assert again.payloads == [2]
        assert again.receipt not in (held.receipt, short.receipt, doubted.receipt, rests.receipt)
        there.execute("COMMIT PREPARED 'promoted'")
        assert states(there, queue) == [(1, "LEASED", 1), (2, "LEASED", 2), (4, "WAITING", 1), (5, "READY", 0)]
        assert end_leases(there, queue, held.ids) == ["done"]
        held_again = Leased(there, queue, "1 hour", 1)
        assert held_again.payloads == [1]
        assert [lease.acknowledge(there) for lease in (held, held_again, again, doubted, rests)] == [
            "stale",
            "done",
            "done",
            "stale",
            "stale",
        ]
        assert there.execute("SELECT * FROM aq.check('20 s')").fetchall() == []
    with server.connect() as conn:
        conn.execute("ROLLBACK PREPARED 'promoted'")
        assert doubted.acknowledge(conn) == "done"


def test_promotion_that_has_lost_the_latest(server, throw_away):
    """A standby that has not seen the latest messages gives their ids to others (sharded queues), but no receipt again."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('lost', shards => 1)")
    copy = throw_away(server.basebackup("standby"))
    copy.start()
    copy.wait_for_replay(server)
    copy.promote()
    with server.connect() as conn, copy.connect() as there:
        put(conn, "lost", 1)
        put(there, "lost", 2)
        lost, new = Leased(conn, "lost", "1 hour"), Leased(there, "lost", "1 hour")
        assert (lost.payloads, new.payloads) == ([1], [2])
        assert conftest.on_queue_tables or lost.ids == new.ids
        assert 0 < lost.receipt != new.receipt > 0
        assert max(lost.receipt, new.receipt) < 2**53
        assert lost.acknowledge(there) == "stale"
        assert new.acknowledge(there) == "done"
        drop(conn, "lost")


# -- dump


def test_dump_and_restore(server, queue, tmp_path):
    """A lease runs on in the copy; its receipts are given to no other message."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3, 4)
        leased = Leased(conn, queue, "1 hour", 2)
        assert leased.acknowledge(conn, leased.ids[:1]) == "done"
        conn.execute("CREATE DATABASE copy")
    dump(server, "custom", tmp_path / "dump")
    restore(server, "custom", tmp_path / "dump", "copy")
    with server.connect(dbname="copy") as conn:
        assert states(conn, queue) == [(2, "LEASED", 1), (3, "READY", 0), (4, "READY", 0)]
        again = Leased(conn, queue, "1 hour", 1)
        assert again.payloads == [3]
        assert again.receipt > leased.receipt
        assert again.acknowledge(conn, leased.ids) == "stale"
        assert leased.acknowledge(conn) == "done stale"
        assert take(conn, queue) == [4]
    with server.connect() as conn:
        conn.execute("DROP DATABASE copy WITH (FORCE)")
        assert leased.acknowledge(conn, leased.ids[1:]) == "done"


# -- many sessions


@pytest.mark.sharded("the contestants of bench/leases")
@pytest.mark.parametrize("driver", [LEASE1, LEASE2], ids=["with the next take", "in a second statement"])
def test_acknowledged_under_load(server, driver):
    """Every message comes once, in its session's order, and no lease is left."""
    with Workload(server, driver, Shape(sessions=4), queue="load") as workload:
        _, drained = workload.play(0.2, 1)
        report = workload.check()
        assert drained and report.ok, str(report)
        assert report.committed > 100
        with server.connect() as conn:
            assert conn.execute("SELECT lag, leased FROM aq.metrics() WHERE queue_name = 'load'").fetchall() == [(0, 0)]
        workload.teardown()
