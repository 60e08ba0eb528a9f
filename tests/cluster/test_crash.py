"""kill -9 of anything under load, immediate stop, restart: the ledger proves that nothing is lost or doubled."""

from __future__ import annotations

import dataclasses
import subprocess
import time

import pytest

from conftest import arrived, make_server, put, put_many, ready, take, until
from pgaq import db, places
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import Options
from pgaq_proof import faults, stress


LOST = "WARNING:  buffered messages of queue .* may have been lost"


def expect_crash_lines(server):
    server.expect_log(r"terminating connection because of crash|terminated by signal 9|reinitializing|terminating any other active")
    server.expect_log(r"WARNING:  there is (already a|no) transaction in progress")


def prove(server, plan):
    """Carry out a plan of load and faults; the ledger must be without a violation."""
    expect_crash_lines(server)
    outcome = stress.carry_out(server, PGAQ, plan)
    report = str(outcome.report)
    assert outcome.report.ok, f"{plan}\n{report}\n{outcome.said[-2000:]}"
    assert outcome.drained, f"not drained: {plan}\n{report}\n{outcome.said[-2000:]}"
    assert outcome.log == []
    assert outcome.report.committed > 0 and outcome.report.deliveries > 0
    return outcome


SHAPES = {"queue": Shape(sessions=4, batch=10, payload=100), "topic": Shape(kind="topic", sessions=2, batch=10, subscribers=3, payload=100)}


@pytest.mark.parametrize("number, fault", list(enumerate(sorted(faults.FAULTS))), ids=sorted(faults.FAULTS))
def test_faults_under_load(server, seed, number, fault):
    """Each fault twice in a run with rollbacks and savepoints; queues and topics by turns."""
    shape = list(SHAPES.values())[number % 2]
    options = Options(fsync="each", explicit=True, reconnect=True, rollback=5, savepoint=5, backlog=3000, seed=seed + number)
    prove(server, stress.Plan(seed * 100 + number, shape, options, [fault, fault], [0.6, 0.6, 0.5]))


@pytest.mark.parametrize("fault", ["kill_backend", "crash"])
def test_prepared_transactions_under_faults(server, seed, fault):
    options = Options(fsync="each", explicit=True, reconnect=True, rollback=5, prepare=30, backlog=3000, seed=seed)
    prove(server, stress.Plan(seed * 100 + 50 + len(fault), SHAPES["queue"], options, [fault], [0.8, 0.6]))


def test_clients_killed_with_the_server(server, seed):
    """All clients are killed, and then the server: only committed work counts."""
    options = Options(fsync="each", explicit=True, reconnect=True, rollback=5, backlog=3000, seed=seed)
    prove(server, stress.Plan(seed * 100 + 60, SHAPES["queue"], options, ["crash"], [0.6, 0.5], kill_clients=True))


@pytest.mark.parametrize(
    "more",
    [{"retry_delay_ms": 50, "max_retries": 1, "expiration_ms": 1000}, {"retry_delay_ms": 50, "buffered": True}],
    ids=["given up", "buffered"],
)
def test_options_of_queues_under_faults(server, seed, more):
    """Each message waits for its retry delay, is moved to the exception queue, or is lost in the crash and counted as
    lost."""
    server.expect_log(LOST)
    options = Options(fsync="each", explicit=True, reconnect=True, rollback=20, savepoint=5, backlog=3000, seed=seed)
    plan = stress.Plan(seed * 100 + 70 + len(more), dataclasses.replace(SHAPES["queue"], **more), options, ["crash"], [0.6, 0.5])
    prove(server, plan)


@pytest.mark.long
def test_many_random_faults(seed):
    for number in range(40):
        server = make_server("faults", fsync="on")
        server.expect_log(LOST)
        try:
            prove(server, stress.choose(seed + number))
        finally:
            server.destroy()


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_state_after_restart(server, conn, queue, topic, how):
    """Whatever a message is doing when the server ends: it does it afterwards."""
    expect_crash_lines(server)
    db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => 5)", [queue])
    put(conn, queue, "first", priority=3, correlation="c", properties='{"p": 1}', sender="s")
    put(conn, queue, "urgent", priority=0)
    put(conn, queue, "soon", delay="0.5 s", priority=9)
    put(conn, queue, "far", delay="1 day")
    put(conn, queue, "taken")
    query = "SELECT payload FROM aq.dequeue(%s, condition => %s)"
    assert db.value(conn, query, [queue, "payload = '\"taken\"'"]) == "taken"
    conn.execute("BEGIN")
    assert db.value(conn, query, [queue, "payload = '\"first\"'"]) == "first"
    conn.execute("ROLLBACK")
    until(lambda: db.value(conn, "SELECT max(attempts) = 1 FROM aq.browse(%s)", [queue]), "the attempt was written")
    put(conn, topic, 1, 2)
    assert take(conn, topic, "a", 1) == [1]
    # left open: an enqueue and a dequeue that never commit
    open_transaction = server.connect()
    open_transaction.execute("BEGIN")
    put(open_transaction, queue, "never")
    assert take(open_transaction, topic, "b", 1) == [1]
    if how == "kill":
        server.kill()
        server.start()
    else:
        server.restart(how)
    open_transaction.close()
    with server.connect() as after:
        found = db.rows(after, "SELECT * FROM aq.dequeue_full(%s, NULL::jsonb, max_messages => 8)", [queue])
        assert [row["payload"] for row in found] == ["urgent", "first"]
        first = found[1]
        assert (first["priority"], first["correlation"], first["properties"], first["sender"], first["attempts"]) == (
            3,
            "c",
            {"p": 1},
            "s",
            1,
        )
        assert arrived(after, queue, 1) == ["soon"]
        assert take(after, topic, "a") == [2]
        assert take(after, topic, "b") == [1, 2]
        assert db.value(after, "SELECT aq.purge_queue(%s)", [queue]) == 1


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_retry_delay_goes_on_after_a_restart(server, conn, topic, how):
    """A retry delay lasts until its time, for the consumer that failed, and then wakes that consumer."""
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '1 hour')", [topic])
    put(conn, topic, "long", "short")
    conn.execute("BEGIN")
    assert take(conn, topic, "a", 1) == ["long"]
    conn.execute("ROLLBACK")
    assert take(conn, topic, "a", 1) == ["short"]  # so the count of "long" is written
    its_end = "SELECT ready_at FROM aq.messages WHERE queue_name = %s AND consumer = 'a' AND payload = '\"long\"'"
    end = db.value(conn, its_end, [topic])
    put(conn, topic, "short")
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '4 s')", [topic])
    conn.execute("BEGIN")
    assert take(conn, topic, "a", 1) == ["short"]
    rolled_back = time.monotonic()
    conn.execute("ROLLBACK")
    assert not ready(conn, topic, "a")
    expect_crash_lines(server)
    if how == "kill":
        server.kill()
        server.start()
    else:
        server.restart(how)
    with server.connect() as now:
        assert take(now, topic, "b") == ["long", "short", "short"]
        states = "SELECT payload, state FROM aq.messages WHERE queue_name = %s AND consumer = 'a' AND state <> 'PROCESSED'"
        assert ('"long"', "WAITING") in now.execute(states, [topic]).fetchall()
        assert db.value(now, its_end, [topic]) == end is not None
        assert ready(now, topic, "a", "60 s")
        assert time.monotonic() > rolled_back + 4
        got = now.execute("SELECT payload, attempts FROM aq.dequeue(%s, 'a', max_messages => 10)", [topic]).fetchall()
        assert got == [("short", 1)]


def test_the_first_of_many_times_counts_after_a_restart(server, conn):
    """Several messages expire one after the other. The first one expires in time, even if no session uses the queue."""
    db.execute(conn, "SELECT aq.create_queue('expired')")
    db.execute(conn, "SELECT aq.create_queue('expiring', exception_queue => 'expired')")
    for payload, expiration in (("late", "1 hour"), ("soon", "2 s"), ("later", "2 hours")):
        put(conn, "expiring", payload, expiration=expiration)
    server.restart()
    with server.connect() as now:
        assert arrived(now, "expired", 1) == ["soon"]
        assert take(now, "expiring") == ["late", "later"]
        db.execute(now, "SELECT aq.drop_queue('expiring'), aq.drop_queue('expired')")


@pytest.mark.own_tables
@pytest.mark.parametrize("store", ["sharded", "classic"])
def test_attempts_are_durable_before_the_message_is_ready_again(new_server, store):
    """The worker's commits are asynchronous, so it flushes this one: no other process does within ten seconds."""
    own = new_server("durable", wal_writer_delay="10s")
    expect_crash_lines(own)
    with own.connect() as conn:
        if store == "classic":
            db.execute(conn, "SELECT aq.create_queue_table('tab')")
        db.execute(conn, "SELECT aq.create_queue('q', queue_table => %s)", ["tab" if store == "classic" else None])
        put(conn, "q", 1)
        conn.execute("BEGIN")
        assert take(conn, "q") == [1]
        conn.execute("ROLLBACK")
        assert ready(conn, "q", timeout="60 s")
        assert look_attempts(conn, "q") == [1]
        own.kill()
    own.start()
    with own.connect() as conn:
        assert look_attempts(conn, "q") == [1]


@pytest.mark.sharded("looks at the order of the rows of a log")
def test_a_failed_message_moves_once_wherever_its_log_rows_lie(server, conn):
    """The log says failed, then moved; the rows may lie the other way round, for a row goes where there is room."""
    db.execute(conn, "SELECT aq.create_queue('failed')")
    db.execute(conn, "SELECT aq.create_queue('failing', shards => 1, exception_queue => 'failed')")
    put(conn, "failing", "stays")
    put(conn, "failing", "moved", expiration="1 ms")
    assert arrived(conn, "failed", 1) == ["moved"]
    log = db.value(conn, "SELECT log FROM aq.partitions WHERE queue_name = 'failing' AND state = 'open'")
    assert db.value(conn, f"SELECT string_agg(kind, '' ORDER BY ctid) FROM {log}") == "xm"
    conn.execute(f"CREATE INDEX by_kind ON {log} (kind)")
    conn.execute(f"CLUSTER {log} USING by_kind")
    assert db.value(conn, f"SELECT string_agg(kind, '' ORDER BY ctid) FROM {log}") == "mx"
    conn.execute("DROP INDEX aq_data.by_kind")
    server.restart()
    with server.connect() as now:
        put(now, "failing", "next", expiration="1 ms")
        # the worker moves what has failed in the order of the partitions and slots
        assert arrived(now, "failed", 1) == ["next"]
        assert take(now, "failing") == ["stays"]
        db.execute(now, "SELECT aq.drop_queue('failing'), aq.drop_queue('failed')")


def test_killed_consumers_do_not_count_as_attempts(server, conn, queue):
    put(conn, queue, 1)
    for _ in range(3):
        other = server.connect()
        other.execute("BEGIN")
        assert take(other, queue) == [1]
        db.execute(conn, "SELECT pg_terminate_backend(%s)", [other.info.backend_pid])
        assert until(lambda: look_attempts(conn, queue) == [0], "given back")
        other.close()


def look_attempts(conn, queue):
    return [row[0] for row in conn.execute("SELECT attempts FROM aq.browse(%s)", [queue])]


def test_client_disappears(server, conn, queue):
    """[disconnect] A client disconnects without a message: the next consumer gets its messages."""
    put_many(conn, queue, 1, 10)
    script = f"BEGIN;\nSELECT payload FROM aq.dequeue('{queue}', max_messages => 5);\n"
    client = subprocess.Popen(
        [places.program("psql"), "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=server.environment()
    )
    client.stdin.write(script)
    client.stdin.flush()
    assert [client.stdout.readline().strip() for _ in range(5)] == ["1", "2", "3", "4", "5"]
    client.kill()
    client.communicate()
    found = db.rows(conn, "SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 5)", [queue])
    found += db.rows(conn, "SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 10, wait => '60 s')", [queue])
    assert sorted(row["payload"] for row in found) == list(range(1, 11))
    assert {row["attempts"] for row in found} == {0}


def test_ten_restarts_of_a_backlog(server, conn, queue):
    """Unconsumed messages survive many restarts, each of which could duplicate or lose them."""
    expect_crash_lines(server)
    put_many(conn, queue, 1, 3000)
    for number in range(6):
        with server.connect() as now:
            first = number * 500 + 1
            assert take(now, queue, number=500) == list(range(first, first + 500))
        if number % 3 == 0:
            server.kill()
            server.start()
        else:
            server.restart("immediate" if number % 3 == 1 else "fast")
    with server.connect() as now:
        assert take(now, queue) == []
