"""Immediate visibility on sharded queues, which the session itself executes: a row that is committed whatever becomes of the transaction."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, generation, held, server_with_points, until
from pgaq import db
from pgaq_proof import faults

pytestmark = [pytest.mark.own_tables, pytest.mark.test_build]

SETUP = """
CALL dbms_aqadm.create_sharded_queue('now', queue_payload_type => 'JSON');
CALL dbms_aqadm.start_queue('now');
CALL dbms_aqadm.create_sharded_queue('topic', multiple_consumers => true, queue_payload_type => 'JSON');
CALL dbms_aqadm.start_queue('topic');
SELECT aq.subscribe('public.topic', name) FROM unnest(ARRAY['one', 'two']) name;
"""
ENQUEUE = "CALL dbms_aq.enqueue('{}', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, to_jsonb(%s::integer), NULL)"
DEQUEUE = "CALL dbms_aq.dequeue('{}', dbms_aq.dequeue_options_t(consumer_name => {}, visibility => dbms_aq.immediate(), wait => 0), NULL, NULL::jsonb, NULL)"
PUT, TAKE = ENQUEUE.format("now"), DEQUEUE.format("now", "NULL")
PUT_TOPIC, TAKE_TOPIC = ENQUEUE.format("topic"), DEQUEUE.format("topic", "'one'")
BROWSE = "SELECT payload::text::integer FROM aq.browse('public.now', max_messages => 1000000)"
HELPERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq helper'"


@pytest.fixture(scope="module")
def points(library):
    with (
        pytest.MonkeyPatch.context() as patch,
        server_with_points(patch, library, "in_session", "terminat|cancel|crash|signal 9|is not a PostgreSQL backend process") as server,
    ):
        with server.connect() as conn:
            conn.execute(SETUP)
        yield server


@pytest.fixture(autouse=True)
def nothing_left(points):
    """Every test begins with empty queues, and needs no helper."""
    yield
    with points.connect() as conn:
        db.execute(conn, "SELECT aq.point_reset()")
        assert db.value(conn, HELPERS) == 0
        conn.execute("SELECT aq.purge_queue('public.now'); SELECT aq.purge_queue('public.topic')")


@pytest.fixture
def conn(points):
    with points.connect() as conn:
        yield conn


def there(conn):
    return sorted(number for (number,) in conn.execute(BROWSE))


class Call:
    """A statement in a thread; its session is in a transaction that is rolled back."""

    def __init__(self, server, statement, parameters=None):
        self.connection = server.connect(autocommit=False)
        self.pid = self.connection.info.backend_pid
        self.connection.execute("SELECT 1")
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(statement, parameters), daemon=True)
        self.thread.start()

    def run(self, statement, parameters):
        try:
            self.connection.execute(statement, parameters)
        except psycopg.Error as error:
            self.error = error

    def join(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def roll_back(self):
        self.join()
        with contextlib.suppress(psycopg.OperationalError):  # its session was terminated
            self.connection.rollback()
        self.connection.close()


def waiting_at(conn, point):
    until(lambda: db.value(conn, "SELECT aq.point_waiting(%s)", [point]) > 0, f"a session at {point}")


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("point", ["row-frozen", "row-durable"])
@pytest.mark.parametrize("what", ["enqueue", "dequeue"])
def test_nothing_ends_a_call_whose_row_is_there(points, conn, what, point, end):
    """The session is cancelled or terminated while only memory does not know it yet: the call is complete all the same."""
    conn.execute(PUT, [1])
    with held(points, point) as control:
        call = Call(points, PUT if what == "enqueue" else TAKE, [2] if what == "enqueue" else None)
        waiting_at(control, point)
        # no other session sees it yet
        assert there(conn) == ([1] if what == "enqueue" else [])
        conn.execute(f"SELECT {end}(%s)", [call.pid])
    call.roll_back()
    assert there(conn) == ([1, 2] if what == "enqueue" else [])
    points.restart()
    with points.connect() as again:
        assert there(again) == ([1, 2] if what == "enqueue" else [])


@pytest.mark.parametrize("point", ["row-frozen", "row-durable"])
@pytest.mark.parametrize("what", ["enqueue", "dequeue"])
def test_crash(points, what, point):
    """All or nothing; what is durable is there."""
    with points.connect() as conn:
        conn.execute(PUT, [1])
        conn.execute("CHECKPOINT")
    before = generation(points)
    faults.arm(points, point, "crash", 0)
    call = Call(points, PUT if what == "enqueue" else TAKE, [2] if what == "enqueue" else None)
    call.join()
    assert call.error is not None
    until(lambda: generation(points) not in (None, before), "the server to come back")
    with points.connect() as conn:
        done, undone = ([1, 2], [1]) if what == "enqueue" else ([], [1])
        assert there(conn) in ([done] if point == "row-durable" else [done, undone])


@pytest.mark.parametrize("point", ["row-frozen", "row-durable"])
@pytest.mark.parametrize("statement", [PUT_TOPIC, TAKE_TOPIC], ids=["enqueue", "dequeue"])
def test_check_understands_a_call_in_the_middle(points, conn, statement, point):
    for number in range(3):
        conn.execute(PUT_TOPIC, [number])
    with held(points, point) as control:
        call = Call(points, statement, [9] if statement == PUT_TOPIC else None)
        waiting_at(control, point)
        assert conn.execute("SELECT * FROM aq.check()").fetchall() == []
    call.roll_back()
    assert conn.execute("SELECT * FROM aq.check()").fetchall() == []


def test_an_error_after_messages_were_taken(points, conn):
    """They are back, and the attempt counts."""
    conn.execute("SELECT aq.create_queue('public.tried', max_retries => 5, retry_delay => '0')")
    take = DEQUEUE.format("tried", "NULL")
    conn.execute("CALL dbms_aq.enqueue('tried', NULL, NULL, '1'::jsonb, NULL)")
    faults.arm(points, "immediate-taken", "error", 0)
    with points.connect(autocommit=False) as session, pytest.raises(psycopg.Error, match="immediate-taken"):
        session.execute(take)
    until(lambda: db.value(conn, "SELECT attempts FROM aq.browse('public.tried')") == 1, "the attempt to be counted")
    assert conn.execute(take).fetchone() is not None
    conn.execute("SELECT aq.drop_queue('public.tried')")


def test_other_transactions_see_it_at_once(points, conn):
    """Whatever their isolation; and the queue can be stopped."""
    with points.connect(autocommit=False) as producer, points.connect(autocommit=False) as consumer:
        consumer.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        consumer.execute("SELECT 1")
        producer.execute(PUT, [1])
        assert consumer.execute("SELECT payload FROM aq.dequeue('public.now')").fetchall() == [(1,)]
        consumer.rollback()
        producer.execute(TAKE)
        conn.execute(
            "SET statement_timeout = '20 s'; SELECT aq.stop_queue('public.now'); SELECT aq.start_queue('public.now'); RESET statement_timeout"
        )
        producer.rollback()
    assert there(conn) == []


def test_prepared_transaction(points, conn):
    """It has nothing of its immediate calls."""
    with points.connect(autocommit=False) as session:
        session.execute(PUT, [1])
        session.execute(PUT, [2])
        session.execute(TAKE)
        session.execute("SELECT aq.enqueue('public.now', '3')")
        session.execute("PREPARE TRANSACTION 'in_session'")
    assert there(conn) == [2]
    conn.execute(TAKE)
    conn.execute("ROLLBACK PREPARED 'in_session'")
    assert there(conn) == []


def test_own_work_is_not_part_of_a_call(points, conn):
    """What the transaction has enqueued or locked, a call does not get; nor does a savepoint undo a call."""
    conn.execute(PUT, [1])
    locked = db.value(conn, "SELECT msgid FROM aq.browse('public.now')")
    with points.connect(autocommit=False) as session:
        session.execute("SELECT aq.enqueue('public.now', '2')")
        session.execute("SAVEPOINT a")
        session.execute(PUT, [3])
        session.execute("ROLLBACK TO a")
        assert session.execute("SELECT payload FROM aq.dequeue('public.now', mode => 'locked', msgid => %s)", [locked]).fetchone() == (1,)
        taken = session.execute(TAKE).fetchone()
        assert taken[1] == 3
        with pytest.raises(psycopg.Error, match="ORA-25228"):
            session.execute(TAKE)
        session.rollback()
    assert there(conn) == [1]


def test_a_condition_that_enqueues_on_commit(points, conn):
    """The message that it enqueues belongs to the transaction, for which a stop of the queue waits, whatever becomes of the dequeue."""
    conn.execute("""CREATE FUNCTION public.enqueues(payload jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM aq.enqueue('public.now', '0');
            RETURN payload = '1';
        END $$""")
    for number, visibility in ((1, "immediate"), (2, "immediate"), (2, "on_commit")):
        conn.execute(PUT, [number])
        with points.connect(autocommit=False) as session, points.connect() as other:
            taken = session.execute(
                "SELECT payload FROM aq.dequeue('public.now', condition => 'public.enqueues(payload)', visibility => %s)", [visibility]
            ).fetchall()
            assert taken == ([(1,)] if number == 1 else [])
            other.execute("SET lock_timeout = '20 s'; SET statement_timeout = '20 s'")
            thread = threading.Thread(target=other.execute, args=("SELECT aq.stop_queue('public.now', wait => true)",), daemon=True)
            thread.start()
            until(
                lambda: (
                    db.value(
                        conn,
                        "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Extension'",
                        [other.info.backend_pid],
                    )
                    > 0
                    or not thread.is_alive()
                ),
                "the stop to wait",
            )
            assert thread.is_alive()
            session.commit()
            thread.join(PATIENCE)
            assert not thread.is_alive()
        conn.execute("SELECT aq.start_queue('public.now')")
        assert there(conn) == ([0] if number == 1 else [0, 2])
        conn.execute("SELECT aq.purge_queue('public.now')")
    conn.execute("DROP FUNCTION public.enqueues")


def test_a_rule_or_condition_that_changes_the_queue(points, conn):
    """What the transaction has changed is not committed, so nothing is made final by it."""
    conn.execute("""CREATE FUNCTION public.subscribes(payload jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            IF payload = '7' THEN
                PERFORM aq.subscribe('public.topic', 'uncommitted');
            END IF;
            RETURN true;
        END $$""")
    conn.execute("SELECT aq.subscribe('public.topic', 'ruled', rule => 'public.subscribes(payload)')")
    with points.connect(autocommit=False) as session:
        with pytest.raises(psycopg.Error, match="was changed during the call"):
            session.execute(PUT_TOPIC, [7])
        session.rollback()
        conn.execute("SELECT aq.unsubscribe('public.topic', 'ruled')")
        conn.execute("SELECT aq.enqueue('public.topic', '7')")
        with pytest.raises(psycopg.Error, match="was changed during the call"):
            session.execute(
                "SELECT * FROM aq.dequeue('public.topic', 'one', condition => 'public.subscribes(payload)', visibility => 'immediate')"
            )
        session.rollback()
    assert db.value(conn, "SELECT count(*) FROM aq.dequeue('public.topic', 'one', max_messages => 10, wait => '20 s')") == 1
    conn.execute("DROP FUNCTION public.subscribes")


def test_what_the_transaction_has_made_is_not_committed(points, conn):
    """A message has neither a value of a type that is rolled back, nor an exception queue that is."""
    conn.execute("CREATE TYPE public.pair AS (a integer); SELECT aq.create_queue('public.pairs', payload_type => 'public.pair')")
    with points.connect(autocommit=False) as session:
        session.execute("SELECT aq.enqueue('public.pairs', ROW(0)::public.pair)")  # the partition has its tables
        session.commit()
        session.execute("ALTER TYPE public.pair ADD ATTRIBUTE b bigint")
        with pytest.raises(psycopg.Error, match="has changed the payload type"):
            session.execute("SELECT aq.enqueue('public.pairs', ROW(1, 2)::public.pair, visibility => 'immediate')")
        session.rollback()
        session.execute("SELECT aq.enqueue('public.pairs', ROW(1)::public.pair, visibility => 'immediate')")
        session.rollback()
        session.execute("SELECT aq.create_queue('public.uncommitted')")
        with pytest.raises(psycopg.Error, match='"public.uncommitted" does not exist'):
            session.execute("SELECT aq.enqueue('public.now', '1', exception_queue => 'public.uncommitted', visibility => 'immediate')")
        session.rollback()
    assert db.value(conn, "SELECT count(*) FROM aq.dequeue('public.pairs', NULL::public.pair, max_messages => 10)") == 2
    conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq helper'")
    until(lambda: db.value(conn, HELPERS) == 0, "the helper to end")
    conn.execute("SELECT aq.drop_queue('public.pairs')")
    conn.execute("DROP TYPE public.pair")


def test_a_loop_keeps_no_memory(points, conn):
    """A transaction can make any number of calls."""
    conn.execute("""DO $$
        DECLARE
            now dbms_aq.enqueue_options_t := dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate());
            take dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(visibility => dbms_aq.immediate(), wait => 0);
            properties dbms_aq.message_properties_t;
            payload jsonb;
            id uuid;
            size bigint;
        BEGIN
            FOR i IN 1 .. 3000 LOOP
                CALL dbms_aq.enqueue('now', now, NULL, '1'::jsonb, id);
                CALL dbms_aq.dequeue('now', take, properties, payload, id);
            END LOOP;
            SELECT sum(total_bytes) INTO size FROM pg_backend_memory_contexts WHERE name = 'pgaq notes';
            IF size > 64 * 1024 THEN
                RAISE EXCEPTION 'notes of % bytes', size;
            END IF;
        END $$""")
    assert there(conn) == []


def test_array_ends_with_a_row_of_the_log(points, conn):
    """A dequeue takes what one row of the log can say, and the next one goes on."""
    conn.execute("SELECT aq.enqueue_array('public.now', array_fill('1'::jsonb, ARRAY[2000]))")
    left = []
    while not left or left[-1] > 0:
        conn.execute("""DO $$
            DECLARE
                properties dbms_aq.message_properties_array_t;
                payloads jsonb[];
                ids dbms_aq.msgid_array_t;
                errors dbms_aq.error_array_t;
                n integer;
            BEGIN
                CALL dbms_aq.dequeue_array('now', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), 5000, properties, payloads, ids, errors, n);
                ROLLBACK;
            END $$""")
        left.append(len(there(conn)))
    assert left == [1100, 200, 0]


def test_each_message_is_what_its_call_said(points, is_long, seed):
    """Sessions are cancelled and terminated; those whose transactions all roll back keep what their calls did.  No message is there twice, or taken twice."""
    rng = random.Random(seed)
    sessions, seconds = (8, 60) if is_long else (6, 4)
    end = time.monotonic() + seconds
    put, perhaps_put, taken, perhaps_taken = set(), set(), Counter(), 0
    lock = threading.Lock()

    def connect():
        return points.connect(autocommit=False, application_name="load")

    def work(first):
        nonlocal perhaps_taken
        session, number = connect(), first
        own = random.Random(seed + first)
        while time.monotonic() < end:
            taking = own.random() < 0.4
            try:
                row = session.execute(TAKE if taking else PUT, None if taking else [number]).fetchone()
                with lock:
                    if taking:
                        taken[row[1]] += 1
                    else:
                        put.add(number)
                if own.random() < 0.5:
                    session.rollback()
            except psycopg.Error as error:
                nothing = "ORA-25228" in str(error)
                with lock:
                    if taking:
                        perhaps_taken += not nothing
                    else:
                        perhaps_put.add(number)
                if session.closed or session.broken:
                    session = connect()
                else:
                    try:
                        session.rollback()
                    except psycopg.Error:
                        session.close()
                        session = connect()
            number += sessions
        session.close()

    with points.connect() as conn, ThreadPoolExecutor(sessions) as pool:
        done = [pool.submit(work, n) for n in range(sessions)]
        while time.monotonic() < end:
            how = "pg_terminate_backend" if rng.random() < 0.3 else "pg_cancel_backend"
            # not while it connects
            load = "application_name = 'load' AND state <> 'starting'"
            conn.execute(f"SELECT {how}(pid) FROM pg_stat_activity WHERE {load} ORDER BY random() LIMIT 1")
            time.sleep(rng.random() * 0.02)
        for each in done:
            each.result()
        left = Counter(there(conn))
    found = left + taken
    print(f"{len(put)} put, {len(perhaps_put)} perhaps, {sum(taken.values())} taken, {perhaps_taken} perhaps")
    assert not found or max(found.values()) == 1
    assert set(found) <= put | perhaps_put
    assert len(put - set(found)) <= perhaps_taken
    assert len(put) > 0 and sum(taken.values()) > 0
