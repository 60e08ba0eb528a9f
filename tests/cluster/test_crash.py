"""kill -9 of anything under load, immediate stop, restart: the ledger proves that nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal

import pytest

from conftest import PATIENCE, arrived, make_server, put, put_many, take, until
from pgaq import db
from pgaq.lab.drivers import PGAQ, Shape
from pgaq.lab.load import Options, Workload


def backends(server, kind):
    """Process ids: clients under load or the extension's workers."""
    where = {
        "backend": "backend_type = 'client backend' AND application_name LIKE 'load%'",
        "worker": "backend_type LIKE 'pgaq%'",
    }[kind]
    with server.connect() as conn:
        return [row[0] for row in conn.execute(f"SELECT pid FROM pg_stat_activity WHERE {where}")]


def strike(server, how, rng):
    """One fault."""
    if how in ("backend", "worker"):
        pids = until(lambda: backends(server, how), f"a {how}")
        start = postmaster_generation(server)
        os.kill(rng.choice(pids), signal.SIGKILL)
        until(lambda: postmaster_generation(server) != start, "reinitialization")
    elif how == "terminate":
        with server.connect() as conn:
            conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'load%' AND random() < 0.3")
    elif how == "cancel":
        with server.connect() as conn:
            conn.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'load%' AND random() < 0.3")
    elif how == "postmaster":
        server.kill_postmaster()
        server.start()
    elif how == "power":
        server.kill()
        server.start()
    else:
        server.restart(how)


def postmaster_generation(server):
    """Changes with every start of shared memory; None while the server does not answer."""
    try:
        with server.connect() as conn:
            # the checkpointer is started anew after each crash
            return db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    except db.OperationalError:
        return None


def expect_crash_lines(server):
    for pattern in (
        r"terminating connection because of crash",
        r"terminated by signal 9",
        r"all server processes terminated; reinitializing",
        r"terminating any other active server processes",
        r"WARNING:  there is no transaction in progress",
    ):
        server.expect_log(pattern)


def run(server, shape, options, faults, rng, name):
    """A workload with faults in it, drained and proved."""
    with Workload(server, PGAQ, shape, options, queue=name) as work:
        work.setup()
        work.start()
        for fault in faults:
            goal = work.control.delivered + 2000
            until(lambda: work.control.delivered >= goal or work._check_clients(), f"progress before {fault}")
            strike(server, fault, rng)
        goal = work.control.delivered + 1000
        until(lambda: work.control.delivered >= goal or work._check_clients(), "progress after the last fault")
        assert work.drain(timeout=PATIENCE), "not drained"
        work.stop()
        report = work.check()
        assert report.ok, str(report)
        assert report.committed > 1000
        work.teardown()
        return report


SHAPES = {
    "queue": Shape(sessions=4, batch=10, payload=100),
    "topic": Shape(kind="topic", sessions=2, batch=10, subscribers=3, payload=100),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("faults", [("backend", "worker"), ("postmaster", "power"), ("immediate", "fast"), ("terminate", "cancel")], ids="-".join)
def test_faults_under_load(server, seed, shape, faults):
    expect_crash_lines(server)
    options = Options(rollback=5, savepoint=5, reconnect=True, fsync="each" if "power" in faults else "none", backlog=3000)
    run(server, SHAPES[shape], options, faults, random.Random(seed), f"crash_{shape}_{faults[0]}")


def test_prepared_transactions_under_faults(server, seed):
    expect_crash_lines(server)
    options = Options(rollback=5, prepare=30, reconnect=True, backlog=3000)
    run(server, SHAPES["queue"], options, ("backend", "power"), random.Random(seed), "crash_prepared")


@pytest.mark.long
def test_many_random_faults(seed):
    rng = random.Random(seed)
    kinds = ["backend", "worker", "postmaster", "power", "immediate", "fast", "terminate", "cancel"]
    for number in range(20):
        server = make_server("faults")
        expect_crash_lines(server)
        shape = rng.choice(list(SHAPES.values()))
        options = Options(rollback=rng.choice([0, 10]), savepoint=rng.choice([0, 10]), prepare=rng.choice([0, 10]), reconnect=True, seed=number + 1, backlog=5000)
        try:
            run(server, shape, options, [rng.choice(kinds) for _ in range(10)], rng, "faults")
        finally:
            server.destroy()


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_state_after_restart(server, conn, queue, topic, how):
    """Whatever a message is doing when the server ends: it does it afterwards."""
    expect_crash_lines(server)
    db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => 5)", [queue])
    put(conn, queue, "first", priority=3, correlation="c", properties='{"p": 1}', sender="s")
    put(conn, queue, "urgent", priority=0)
    put(conn, queue, "soon", delay="0.5 s")
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
        found = db.rows(after, "SELECT * FROM aq.dequeue_full(%s, NULL::jsonb, max_messages => 2)", [queue])
        assert [row["payload"] for row in found] == ["urgent", "first"]
        first = found[1]
        assert (first["priority"], first["correlation"], first["properties"], first["sender"], first["attempts"]) == (3, "c", {"p": 1}, "s", 1)
        assert arrived(after, queue, 1) == ["soon"]
        assert take(after, topic, "a") == [2]
        assert take(after, topic, "b") == [1, 2]
        assert db.value(after, "SELECT aq.purge_queue(%s)", [queue]) == 1


def test_killed_consumers_do_not_count_as_attempts(server, conn, queue):
    put(conn, queue, 1)
    for _ in range(3):
        with server.connect() as other:
            other.execute("BEGIN")
            assert take(other, queue) == [1]
            db.execute(conn, "SELECT pg_terminate_backend(%s)", [other.info.backend_pid])
            assert until(lambda: look_attempts(conn, queue) == [0], "given back")


def look_attempts(conn, queue):
    return [row[0] for row in conn.execute("SELECT attempts FROM aq.browse(%s)", [queue])]


def test_client_disappears(server, conn, queue):
    """A client that is gone without a word: its messages come back to the next."""
    put_many(conn, queue, 1, 10)
    other = server.connect()
    other.execute("BEGIN")
    assert take(other, queue, number=5) == [1, 2, 3, 4, 5]
    os.close(other.fileno())
    assert arrived(conn, queue, 10) in ([6, 7, 8, 9, 10, 1, 2, 3, 4, 5], list(range(1, 11)))
    other.pgconn.__dict__.clear() if hasattr(other.pgconn, "__dict__") else None


def test_ten_restarts_of_a_backlog(server, conn, queue):
    """Messages that nobody takes survive restart after restart, each of which could double or lose them."""
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
