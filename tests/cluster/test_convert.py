"""Conversion of a queue of a queue table to a sharded queue, while it is used."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, arrived, drop, put, put_many, take, until
from pgaq import db
from pgaq.load.drivers import CLASSIC, Shape
from pgaq.load.workload import Options, Workload

SETTINGS = {"max_prepared_transactions": "20"}

pytestmark = pytest.mark.sharded


@pytest.fixture(params=["queue", "topic"])
def in_table(request, server):
    """A queue, or a topic with the subscribers a and b, in its own queue table."""
    topic = request.param == "topic"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue_table('public.tab', multiple_consumers => %s)", [topic])
        db.execute(conn, "SELECT aq.create_queue('old', queue_table => 'public.tab')")
        if topic:
            db.execute(conn, "SELECT aq.subscribe('old', 'a'), aq.subscribe('old', 'b')")
    yield ["a", "b"] if topic else [None]
    with server.connect() as conn:
        drop(conn, "old")
        db.execute(conn, "SELECT aq.drop_queue_table('public.tab', force => true)")


def convert(conn, queue="old"):
    db.execute(conn, "SELECT aq.convert_queue(%s)", [queue])


def has_left(conn, queue="old"):
    return db.value(conn, "SELECT queue_table IS NULL FROM aq.queues WHERE queue_name = %s", [queue])


def convert_under_load(server, driver, shape, options, name):
    """Clients enqueue and dequeue all the time; one that gets an error fails the test."""
    with Workload(server, driver, shape, options, queue=name) as work:
        work.setup()
        work.start()
        work.until(lambda: work.control.delivered > 500, PATIENCE, "no messages")
        with server.connect() as conn:
            convert(conn, name)
            goal = work.control.delivered + 20 * options.backlog
            work.until(lambda: work.control.delivered > goal, PATIENCE, "no messages after the conversion")
            assert work.drain(), "not drained"
            work.stop()
            report = work.check()
            assert report.ok, str(report)
            for (gid,) in conn.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
                conn.execute(f"COMMIT PREPARED '{gid}'")
            until(lambda: has_left(conn, name), "the end of the conversion")
            db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])
        work.teardown()


@pytest.mark.parametrize(
    "shape",
    [
        Shape(sessions=3, payload=40),
        Shape(sessions=3, payload=40, priorities=True, single=True),
        Shape(kind="topic", sessions=3, subscribers=3, payload=40),
    ],
    ids=["queue", "priorities", "topic"],
)
def test_nothing_is_lost_or_repeated(server, shape):
    """Rollbacks, savepoints and prepared transactions before, during and after."""
    options = Options(rollback=5, savepoint=5, prepare=5, explicit=True, backlog=300)
    convert_under_load(server, CLASSIC, shape, options, "under_load")


def test_order_is_kept(server):
    """A session's messages from before the conversion come before its later ones; many small rounds, because timing
    matters."""
    driver = dataclasses.replace(CLASSIC, ordered=True)
    for number in range(6):
        options = Options(consumer_sessions=1, backlog=20, explicit=True, seed=number + 1)
        convert_under_load(server, driver, Shape(sessions=3, batch=2, payload=40), options, f"ordered{number}")


def test_old_messages_come_first(server, conn, in_table):
    put_many(conn, "old", 1, 3000)
    convert(conn)
    put_many(conn, "old", 3001, 6000)
    for consumer in in_table:
        assert take(conn, "old", consumer) == list(range(1, 6001))
    until(lambda: has_left(conn), "the end of the conversion")


def test_a_transaction_on_both_sides(server, conn, in_table):
    """A transaction enqueues before and after the conversion; no consumer gets its later message first."""
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, "old", 1)
        convert(conn)
        put(other, "old", 2)
        assert [take(conn, "old", consumer) for consumer in in_table] == [[]] * len(in_table)
        assert not has_left(conn)
        other.execute("COMMIT")
    for consumer in in_table:
        assert take(conn, "old", consumer) == [1, 2]


def test_prepared_before_and_finished_after(server, in_table):
    """A restart in between has no effect.  In the queue table, 3 waits for the prepared message; 5, in the sharded
    store, does not."""
    with server.connect() as conn:
        put_many(conn, "old", 1, 3)
        conn.execute("BEGIN")
        put(conn, "old", 4)
        conn.execute("PREPARE TRANSACTION 'put'")
        conn.execute("BEGIN")
        assert take(conn, "old", in_table[0], number=2) == [1, 2]
        conn.execute("PREPARE TRANSACTION 'took'")
        convert(conn)
        put(conn, "old", 5)
    server.restart("immediate")
    with server.connect() as conn:
        assert take(conn, "old", in_table[0]) == [5]
        assert not has_left(conn)
        conn.execute("COMMIT PREPARED 'put'")
        conn.execute("ROLLBACK PREPARED 'took'")
        assert sorted(arrived(conn, "old", 4, consumer=in_table[0])) == [1, 2, 3, 4]
        for consumer in in_table[1:]:
            assert take(conn, "old", consumer) == [1, 2, 3, 4, 5]
        until(lambda: has_left(conn), "the end of the conversion")


def test_restart_on_the_way(server, in_table):
    """Delays, attempts and ids are as they were."""
    with server.connect() as conn:
        (late,) = put(conn, "old", "late", delay="1 hour")
        put_many(conn, "old", 1, 2)
        conn.execute("BEGIN")
        take(conn, "old", in_table[0])
        conn.execute("ROLLBACK")
        convert(conn)
        put_many(conn, "old", 3, 4)
    server.restart("immediate")
    with server.connect() as conn:
        query = "SELECT payload, attempts FROM aq.dequeue('old', consumer => %s, max_messages => 10)"
        assert conn.execute(query, [in_table[0]]).fetchall() == [(1, 1), (2, 1), (3, 0), (4, 0)]
        assert (
            db.value(conn, "SELECT lag FROM aq.subscribers WHERE queue_name = 'old' AND consumer IS NOT DISTINCT FROM %s", [in_table[0]])
            == 1
        )
        for consumer in in_table:
            query = "SELECT payload FROM aq.dequeue('old', consumer => %s, msgid => %s)"
            assert conn.execute(query, [consumer, late]).fetchall() == [("late",)]


@pytest.mark.parametrize("option", ["priority => 50", "deviation => 'top'"])
@pytest.mark.parametrize("in_table", ["topic"], indirect=True)
def test_options_of_queue_tables_during_the_conversion(server, conn, in_table, option):
    """An enqueue has read its options, and waits in a rule, when the queue is converted."""
    db.execute(
        conn, "CREATE FUNCTION waits() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN true; END'"
    )
    db.execute(conn, "SELECT aq.subscribe('old', 'slow', 'public.waits()')")
    with server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT pg_advisory_lock(1)")
        enqueue = pool.submit(lambda: other.execute(f"SELECT aq.enqueue('old', '1', {option})"))
        until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1, "the rule")
        convert(conn)
        db.execute(conn, "SELECT pg_advisory_unlock(1)")
        with pytest.raises(psycopg.Error, match="priority 50 is out of range|is not in a queue table"):
            enqueue.result(PATIENCE)
    db.execute(conn, "DROP FUNCTION waits()")


@pytest.mark.parametrize(
    "how", ["CALL aq.wait('old', {}, '1 min', NULL)", "SELECT payload FROM aq.dequeue('old', {}, wait => '1 min')"], ids=["wait", "dequeue"]
)
def test_who_waits_hears_of_new_messages(server, conn, in_table, how):
    name = f"'{in_table[0]}'" if in_table[0] else "NULL"
    with server.connect() as waiter, ThreadPoolExecutor() as pool:
        found = pool.submit(lambda: waiter.execute(how.format(name)).fetchall())
        until(lambda: db.value(conn, "SELECT sum(waiting) FROM aq.subscribers WHERE queue_name = 'old'") == 1, "the waiter")
        convert(conn)
        put(conn, "old", 1)
        assert found.result(PATIENCE) in ([(True,)], [(1,)])
