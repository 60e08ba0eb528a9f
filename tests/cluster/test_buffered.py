"""Buffered messages: kept by a shutdown, lost by a crash, visibly; one taker each; woken waiters; PREPARE, standby, dump."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

from conftest import PATIENCE, arrived, at_rest, drop, generation, put, put_many, stopped_worker, take, until
from pgaq import db

SETTINGS = {"wal_level": "replica", "max_wal_senders": "5", "shared_buffers": "2MB"}

LOST = r"WARNING:  buffered messages of queue \"[a-z0-9]+\" may have been lost"
# a waiter; told by our own view, because before PostgreSQL 17 every wait of an extension is called Extension
ASLEEP = (
    "SELECT count(*) FROM sys.v$session_wait WHERE state = 'WAITING' AND event ~ 'Streams AQ: waiting for messages|wait for unread message'"
)
BUFFERED = {"delivery_mode": "buffered"}


def take_buffered(conn, queue, consumer=None, number=100_000, delivery_mode="buffered"):
    query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => %s, delivery_mode => %s)"
    return [row[0] for row in conn.execute(query, [queue, consumer, number, delivery_mode])]


def state(conn, queue):
    return db.row(conn, "SELECT messages, losses, lost_at IS NOT NULL AS lost FROM aq.buffered_queues WHERE queue_name = %s", [queue])


def losses(conn, queue):
    found = state(conn, queue)
    return found and found["losses"]


def crash(server, how):
    """Whatever makes PostgreSQL recover."""
    server.expect_log(r"terminating connection because of crash|terminated by signal 9|reinitializing|terminating any other active")
    if how == "backend":
        before = generation(server)
        with server.connect() as victim:
            pid = db.value(victim, "SELECT pg_backend_pid()")
            os.kill(pid, signal.SIGKILL)
        until(lambda: generation(server) not in (None, before), "the server is back")
    elif how == "kill":
        server.kill()
        server.start()
    else:
        server.restart("immediate")


@pytest.mark.parametrize("how", ["immediate", "kill", "backend"])
def test_crash_loses_them_visibly(server, queue, topic, how):
    server.expect_log(LOST)
    with server.connect() as conn:
        conn.execute("SELECT aq.subscribe(%s, 'c', delivery_mode => 'buffered')", [topic])
        for name in (queue, topic):
            put(conn, name, 1, 2)
            put(conn, name, 3, 4, **BUFFERED)
        put(conn, queue, "later", delay="1 day", **BUFFERED)
        assert take_buffered(conn, topic, "c", 1) == [3]
        assert state(conn, queue) == {"messages": 3, "losses": 0, "lost": False}
    crash(server, how)
    with server.connect() as conn:
        for name, consumer in ((queue, None), (topic, "a")):
            until(lambda: losses(conn, name) == 1, "the loss is noted")
            assert state(conn, name) == {"messages": 0, "losses": 1, "lost": True}
            assert f'WARNING:  buffered messages of queue "{name}" may have been lost' in server.log_text()
            assert take(conn, name, consumer) == [1, 2]
        assert take_buffered(conn, topic, "c") == []
        # the queue can be used, and the next loss is detected, too
        put(conn, queue, 5, **BUFFERED)
        put(conn, topic, 5, **BUFFERED)
        assert take_buffered(conn, topic, "c") == [5]
    crash(server, how)
    with server.connect() as conn:
        until(lambda: losses(conn, queue) == 2, "the second loss is noted")
        assert take_buffered(conn, queue) == []


@pytest.mark.parametrize("mode", ["SHARE", "ACCESS EXCLUSIVE"])
def test_a_lock_hides_the_loss(server, queue, mode):
    """A prepared transaction has locked the tables, so the worker cannot check them after the crash: it does when the
    lock is released, although no session uses the queue."""
    server.expect_log(LOST)
    with server.connect() as conn:
        put(conn, queue, 1, **BUFFERED)
        number = db.value(conn, "SELECT queue_id FROM aq_internal.queue WHERE queue_name = %s", [queue])
        conn.execute(f"BEGIN; LOCK TABLE aq_data.b{number} IN {mode} MODE; PREPARE TRANSACTION 'lock'")
    crash(server, "kill")
    with server.connect() as conn:
        until(lambda: at_rest(conn, "worker"), "the worker at rest")
        conn.execute("ROLLBACK PREPARED 'lock'")
        until(lambda: losses(conn, queue) == 1, "the loss is noted")


def test_nothing_is_said_of_queues_without_them(server, conn, queue):
    put(conn, queue, 1)
    before = server.log_text().count("may have been lost")
    server.expect_log(LOST)
    crash(server, "kill")
    with server.connect() as conn:
        assert arrived(conn, queue, 1) == [1]
        # the worker has loaded the queue, and would have said it
        until(lambda: at_rest(conn, "worker"), "the worker at rest")
        assert server.log_text().count("may have been lost") == before
        assert state(conn, queue) is None


def test_shutdown_keeps_them(server, queue, topic):
    with server.connect() as conn:
        conn.execute("SELECT aq.subscribe(%s, 'c', 'priority < 5', delivery_mode => 'persistent_or_buffered')", [topic])
        put(conn, queue, 1, 2, 3, **BUFFERED)
        put(conn, queue, 0, priority=0, **BUFFERED)
        put(conn, queue, 4, delay="0.5 s", **BUFFERED)
        conn.execute("BEGIN")
        assert take_buffered(conn, queue, number=2) == [0, 1]
        conn.execute("ROLLBACK")
        put(conn, topic, 1, 2, **BUFFERED)
        put(conn, topic, 3, priority=9, recipients=["d"], **BUFFERED)
        assert take_buffered(conn, topic, "c", 1) == [1]
    server.restart()
    with server.connect() as conn:
        query = "SELECT payload, attempts FROM aq.dequeue(%s, wait => '10 s', delivery_mode => 'buffered')"
        found = [conn.execute(query, [queue]).fetchone() for _ in range(5)]
        assert found == [(0, 1), (1, 1), (2, 0), (3, 0), (4, 0)]
        assert take_buffered(conn, topic, "c") == [2]
        assert take_buffered(conn, topic, "d") == [3]
        assert state(conn, queue) == {"messages": 0, "losses": 0, "lost": False}


@pytest.mark.parametrize("finish", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
@pytest.mark.parametrize("how", ["nothing", "restart", "kill"])
def test_prepared(server, queue, how, finish):
    """A prepared transaction over a crash: its persistent messages are kept, its buffered ones are lost.  Until it
    ends, message 2 waits for the one that it has taken."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, **BUFFERED)
        conn.execute("BEGIN")
        put(conn, queue, 3, **BUFFERED)
        put(conn, queue, "p")
        assert take_buffered(conn, queue, number=1) == [1]
        conn.execute("PREPARE TRANSACTION 'b'")
    if how == "restart":
        server.restart()
    elif how == "kill":
        server.expect_log(LOST)
        crash(server, "kill")
    with server.connect() as conn:
        if how == "kill":
            until(lambda: losses(conn, queue) == 1, "the loss is noted")
        assert take_buffered(conn, queue) == take(conn, queue) == []
        conn.execute(f"{finish} 'b'")
        committed = finish == "COMMIT PREPARED"
        expected = [] if how == "kill" else [2, 3] if committed else [1, 2]
        got = []
        until(lambda: got.extend(take_buffered(conn, queue)) or len(got) >= len(expected), "what the transaction leaves")
        assert got == expected
        assert arrived(conn, queue, int(committed)) == (["p"] if committed else [])


def test_standby(server, conn, queue, throw_away):
    put(conn, queue, 1)
    put(conn, queue, 2, **BUFFERED)
    copy = throw_away(server.basebackup("standby"))
    copy.expect_log(r"WARNING:.*standby")
    copy.expect_log(LOST)
    copy.start()
    put(conn, queue, 3)
    copy.wait_for_replay(server)
    with copy.connect() as there:
        # there is nothing to be read of unlogged tables, and no error for trying
        assert db.rows(there, "SELECT * FROM aq.buffered_queues") == []
    copy.promote()
    with copy.connect() as there:
        assert arrived(there, queue, 2) == [1, 3]
        until(lambda: losses(there, queue) == 1, "the loss is noted")
        put(there, queue, 4, **BUFFERED)
        assert take_buffered(there, queue) == [4]
    assert take_buffered(conn, queue) == [2]
    assert losses(conn, queue) == 0


@pytest.mark.parametrize("option, kept", [("--format=plain", [2, 3]), ("--no-unlogged-table-data", [])])
def test_dump(server, conn, queue, tmp_path, option, kept):
    if not kept:
        server.expect_log(LOST)
    put(conn, queue, 1)
    put(conn, queue, 2, 3, **BUFFERED)
    done = server.run("pg_dump", option, f"--file={tmp_path / 'dump'}")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    conn.execute("CREATE DATABASE other")
    try:
        done = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "dump"), dbname="other")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        with server.connect("other") as there:
            assert take(there, queue) == [1]
            assert take_buffered(there, queue) == kept
            if not kept:
                until(lambda: losses(there, queue) == 1, "the loss is noted")
            else:
                assert losses(there, queue) == 0
    finally:
        conn.execute("DROP DATABASE other WITH (FORCE)")


def test_one_taker_each(server, queue, seed):
    """Four producers and four consumers, both kinds, with rollbacks: each committed message is taken and committed once."""
    produced: list[list[int]] = [[] for _ in range(4)]
    consumed: list[list[int]] = [[] for _ in range(4)]
    ended = threading.Event()

    def produce(number):
        choice = random.Random(seed + number)
        with server.connect(autocommit=False) as conn:
            for first in range(number * 10_000, number * 10_000 + 400, 4):
                put(conn, queue, *range(first, first + 4), delivery_mode=choice.choice(["persistent", "buffered"]))
                if choice.random() < 0.2:
                    conn.rollback()
                else:
                    conn.commit()
                    produced[number].extend(range(first, first + 4))

    def consume(number):
        choice = random.Random(seed + 100 + number)
        with server.connect(autocommit=False) as conn:
            while True:
                over = ended.is_set()
                got = take_buffered(conn, queue, None, choice.randint(1, 6), "persistent_or_buffered")
                if got and choice.random() < 0.2:
                    conn.rollback()
                    continue
                conn.commit()
                consumed[number].extend(got)
                if over and not got:
                    return

    producers = [threading.Thread(target=produce, args=[n]) for n in range(4)]
    consumers = [threading.Thread(target=consume, args=[n]) for n in range(4)]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join(PATIENCE)
    ended.set()
    for thread in consumers:
        thread.join(PATIENCE)
    # what another consumer gave back as the last one left
    with server.connect() as conn:
        rest = arrived(conn, queue, 0, patience=0) + take_buffered(conn, queue)
    everything = sorted(sum(consumed, rest))
    assert everything == sorted(sum(produced, []))
    assert len(everything) > 400


@pytest.mark.parametrize("wait", ["aq.wait", "aq.listen", "aq.dequeue", "dbms_aq.dequeue"])
@pytest.mark.parametrize(
    "delivery_mode, kind", [("buffered", "buffered"), ("persistent_or_buffered", "buffered"), ("persistent_or_buffered", "persistent")]
)
def test_waiters_are_woken(server, conn, queue, wait, delivery_mode, kind):
    """Also if the queue had no buffered message before."""
    number = {"buffered": 2, "persistent_or_buffered": 3}[delivery_mode]
    call = {
        "aq.wait": f"CALL aq.wait('{queue}', NULL, '2 min', '{delivery_mode}', NULL)",
        "aq.listen": f"CALL aq.listen('{{{queue}}}', NULL, '2 min', '{delivery_mode}', NULL, NULL, NULL)",
        "aq.dequeue": f"SELECT payload FROM aq.dequeue('{queue}', wait => '2 min', delivery_mode => '{delivery_mode}')",
        "dbms_aq.dequeue": f"CALL dbms_aq.dequeue('{queue}', dbms_aq.dequeue_options_t(delivery_mode => {number}, visibility => 1, wait => 120), NULL, NULL::jsonb, NULL)",
    }[wait]
    found = []

    def run():
        with server.connect() as waiter:
            found.append(waiter.execute(call).fetchone())

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: db.value(conn, ASLEEP), "the waiter asleep")
    put(conn, queue, "here", delivery_mode=kind)
    thread.join(PATIENCE / 2)
    assert not thread.is_alive()
    assert found[0] is not None
    if wait == "aq.listen":
        assert found[0] == (queue, None, kind)
    elif wait != "aq.wait":
        assert "here" in found[0]


def test_making_the_tables_can_be_cancelled(server, conn, queue):
    """The first buffered message waits for the worker: seen, and ended by a timeout; the next one works."""
    put(conn, queue, 1)
    with stopped_worker(conn):
        with pytest.raises(db.Error) as caught, conn.transaction():
            conn.execute("SET LOCAL statement_timeout = '300 ms'")
            put(conn, queue, 2, **BUFFERED)
        assert caught.value.sqlstate == "57014"
    put(conn, queue, 3, **BUFFERED)
    assert take_buffered(conn, queue) == [3]
    assert take(conn, queue) == [1]


def test_first_messages_at_the_same_time(server, queue):
    """Many sessions need the tables at once: one makes them."""
    start = threading.Barrier(6)
    errors = []

    def run(number):
        try:
            with server.connect() as conn:
                start.wait()
                put(conn, queue, number, **BUFFERED)
        except db.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    with server.connect() as conn:
        assert sorted(take_buffered(conn, queue)) == list(range(6))


def test_spill(server, conn, queue):
    """More than shared buffers hold: some are on disk, the counters say so, and all come back."""
    put_many(conn, queue, 1, 20_000, properties='{"filling": "%s"}' % ("x" * 300), **BUFFERED)
    found = db.row(conn, "SELECT messages, spilled, enqueued FROM aq.buffered_queues WHERE queue_name = %s", [queue])
    assert found["messages"] == found["enqueued"] == 20_000
    assert 10_000 < found["spilled"] < 20_000
    shown = db.row(conn, 'SELECT num_msgs, spill_msgs, cnum_msgs FROM sys."v$buffered_queues" WHERE queue_name = upper(%s)', [queue])
    assert shown["num_msgs"] + shown["spill_msgs"] == shown["cnum_msgs"] == 20_000
    assert shown["spill_msgs"] > 10_000
    assert take_buffered(conn, queue) == list(range(1, 20_001))


def test_a_dropped_queue_is_not_missed(server, conn):
    """A queue with buffered messages is dropped, its creation rolled back: nothing is left of them."""
    conn.execute("SELECT aq.create_queue('gone')")
    put(conn, "gone", 1, **BUFFERED)
    drop(conn, "gone")
    conn.execute("BEGIN")
    conn.execute("SELECT aq.create_queue('gone')")
    put(conn, "gone", 1, **BUFFERED)
    conn.execute("ROLLBACK")
    assert (
        db.value(
            conn,
            "SELECT count(*) FROM aq_internal.buffered_queue b WHERE NOT EXISTS (SELECT FROM aq_internal.queue q WHERE q.queue_id = b.queue_id)",
        )
        == 0
    )
    assert (
        db.value(
            conn,
            "SELECT count(*) FROM pg_class c WHERE relname ~ '^[bd][0-9]+$' AND NOT EXISTS (SELECT FROM aq_internal.buffered_queue b WHERE b.queue_id = substr(c.relname, 2)::int)",
        )
        == 0
    )
    server.restart()


@pytest.mark.parametrize("wait", ["aq.wait", "aq.dequeue"])
def test_queue_made_anew_under_a_waiter(server, conn, wait):
    """The queue is dropped and created again, without buffered messages yet: the waiter finds the new queue's messages,
    or gets an error."""
    conn.execute("SELECT aq.create_queue('anew')")
    call = {
        "aq.wait": "CALL aq.wait('anew', NULL, '20 s', 'buffered', NULL)",
        "aq.dequeue": "SELECT payload FROM aq.dequeue('anew', wait => '20 s', delivery_mode => 'buffered')",
    }[wait]
    found = []

    def run():
        with server.connect() as waiter:
            try:
                found.append(waiter.execute(call).fetchone()[0])
            except db.Error as error:
                found.append(error.sqlstate)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: db.value(conn, ASLEEP), "the waiter asleep")
    conn.execute("BEGIN")
    drop(conn, "anew")
    conn.execute("SELECT aq.create_queue('anew')")
    conn.execute("COMMIT")
    # an error, or asleep again
    until(lambda: found or db.value(conn, ASLEEP), "the waiter has looked")
    if not found:
        put(conn, "anew", "here", **BUFFERED)
    thread.join(25)
    assert found[0] in ("42704", True, "here")
    drop(conn, "anew")
