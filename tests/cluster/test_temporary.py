"""Temporary queues and subscribers end with their session, however it ends; nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from conftest import background, look, put, server_with_points, stopped_worker, take, until
from pgaq import db
from pgaq_proof import faults
from test_wait import Waiter, asleep

SETTINGS = {"max_prepared_transactions": "10", "pgaq.max_temporary_queues": "5"}

# what a session makes: a queue with a message, a topic with a subscriber, and subscribers of a topic that lasts
MAKE = """
    SELECT aq.create_temporary_queue() AS q, aq.create_temporary_queue('text', true) AS t,
        aq.subscribe('lasting', 'ends', temporary => true), aq.subscribe('lasting', 'remains')
"""
CLIENT = f"""
import sys, psycopg
conn = psycopg.connect(sys.argv[1], autocommit=True)
q, t, *_ = conn.execute({MAKE!r}).fetchone()
conn.execute("SELECT aq.enqueue(%s, '1'), aq.subscribe(%s, 'ann', temporary => true)", [q, t])
conn.execute("SELECT aq.enqueue(%s, 'x'::text)", [t])
print(q, t, conn.info.backend_pid, flush=True)
sys.stdin.readline()
"""


def relations(conn):
    """All relations of queues but those of the queue that lasts."""
    query = """SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace
        AND relname !~ (SELECT '^[qsl]' || queue_id || '(_|$)' FROM aq.queues WHERE queue_name = 'lasting')"""
    return db.value(conn, query)


@pytest.fixture
def lasting(server):
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('lasting', multiple_consumers => true)")
        put(conn, "lasting", 1, recipients=["first"])
        before = relations(conn)
    yield before
    with server.connect() as conn:
        conn.execute("SELECT aq.drop_queue('lasting', true)")


class Owner:
    """A client in a process of its own."""

    def __init__(self, server):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, server.conninfo()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline().split()
        self.queue, self.topic, self.pid = line[0], line[1], int(line[2])

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def nothing_left(conn, before):
    left = "SELECT count(*) FROM aq_internal.temporary"
    until(lambda: db.value(conn, left) == 0, "temporary objects removed")
    assert db.value(conn, "SELECT count(*) FROM aq.queues WHERE temporary") == 0
    assert [
        row["consumer"] for row in db.rows(conn, "SELECT consumer FROM aq.subscribers WHERE queue_name = 'lasting' AND kind = 'subscriber'")
    ] == ["remains"]
    conn.execute("SELECT aq.unsubscribe('lasting', 'remains')")
    if before is not None:
        assert relations(conn) == before


def end_normally(conn, owner):
    owner.end()


def kill_the_client(conn, owner):
    owner.process.kill()
    owner.process.wait()


def terminate_the_backend(conn, owner):
    conn.execute("SELECT pg_terminate_backend(%s)", [owner.pid])
    owner.end()


@pytest.mark.parametrize("how", [end_normally, kill_the_client, terminate_the_backend])
def test_the_session_ends(server, conn, lasting, how):
    owner = Owner(server)
    put(conn, "lasting", 2)
    assert look(conn, "lasting", "ends") == [2] and look(conn, owner.queue) == [1]
    how(conn, owner)
    nothing_left(conn, lasting)
    with pytest.raises(db.Error) as caught:
        put(conn, owner.queue, 2)
    assert caught.value.sqlstate == "42704"


@pytest.mark.parametrize("how", ["backend", "immediate", "fast"])
def test_the_server_ends(server, lasting, how):
    """After a crash, and after a restart, the session is gone although it has removed nothing."""
    owner = Owner(server)
    if how == "backend":
        server.expect_log(
            "terminated by signal 9|because of crash of another server process|database system was (interrupted|not properly)|in recovery mode|not yet accepting"
        )
        os.kill(owner.pid, signal.SIGKILL)
        until(lambda: not alive(server, owner.pid), "the server again")
    else:
        server.stop(how)
        server.start()
    owner.end()
    with server.connect() as conn:
        nothing_left(conn, lasting)


def alive(server, pid):
    try:
        with server.connect() as conn:
            return db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]) > 0
    except psycopg.OperationalError:
        return True


def test_other_sessions_keep_theirs(server, conn, lasting):
    with server.connect() as one, server.connect() as two:
        kept = db.value(one, "SELECT aq.create_temporary_queue()")
        gone = db.value(two, "SELECT aq.create_temporary_queue()")
        put(conn, kept, 1)
        put(conn, gone, 1)
        two.close()
        until(lambda: db.value(conn, "SELECT array_agg(queue_name) FROM aq.queues WHERE temporary") == [kept], "one of them is gone")
        put(one, kept, 2)
        assert take(one, kept) == [1, 2]
    until(lambda: db.value(conn, "SELECT count(*) FROM aq.queues WHERE temporary") == 0, "the other one, too")


def test_the_worker_is_away(server, conn, lasting):
    """What ends while no worker runs is removed by the next one."""
    owner = Owner(server)
    worker = background(conn, "worker")
    with stopped_worker(conn):
        owner.process.kill()
        owner.process.wait()
        until(lambda: not alive(server, owner.pid), "the session is gone")
        assert db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 4
        conn.execute("SELECT pg_terminate_backend(%s)", [worker])
    nothing_left(conn, lasting)


@pytest.mark.parametrize("prepared", [False, True])
def test_in_use(server, conn, lasting, prepared):
    """A transaction that uses the queue keeps it, and no error is logged meanwhile."""
    owner = Owner(server)
    with server.connect(autocommit=False) as user:
        put(user, owner.queue, 2)
        user.execute("SELECT aq.enqueue('lasting', '3')")
        owner.process.kill()
        owner.process.wait()
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 1, "what is not in use is removed")
        if prepared:
            user.execute("PREPARE TRANSACTION 'temporary'")
            user.rollback()
            assert db.value(conn, "SELECT count(*) FROM aq.queues WHERE temporary") == 1
            conn.execute("COMMIT PREPARED 'temporary'")
        else:
            user.commit()
    nothing_left(conn, lasting)


def test_a_session_waits_for_it(server, conn, lasting):
    owner = Owner(server)
    waiter = Waiter(server, owner.queue)
    take(conn, owner.queue)
    waiter.wait()
    asleep(conn, [waiter])
    subscriber = Waiter(server, "lasting", "ends").wait()
    asleep(conn, [subscriber])
    owner.process.kill()
    owner.process.wait()
    assert waiter.answer() == "42704"
    nothing_left(conn, lasting)
    # as after aq.unsubscribe: it waits for a name that is not known
    asleep(conn, [subscriber])
    waiter.close()
    subscriber.close()


def test_dump_and_restore(server, conn, lasting, tmp_path):
    """A restored database has none of them, and the other queues."""
    owner = Owner(server)
    conn.execute("CREATE DATABASE restored")
    try:
        done = server.run("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        done = server.run("pg_restore", "--exit-on-error", "-d", "restored", str(tmp_path / "dump"))
        assert done.returncode == 0 and done.stderr == "", done.stderr
        with server.connect("restored") as there:
            nothing_left(there, None)
            assert take(there, "lasting", "first") == [1]
        # here nothing has changed
        assert look(conn, owner.queue) == [1]
    finally:
        conn.execute("DROP DATABASE restored WITH (FORCE)")
        owner.end()
    nothing_left(conn, lasting)


def test_promoted_standby(server, conn, lasting):
    owner = Owner(server)
    standby = server.basebackup("temporary_standby")
    try:
        standby.start()
        standby.wait_for_replay(server)
        standby.promote()
        with standby.connect() as there:
            nothing_left(there, None)
    finally:
        standby.destroy()
    owner.end()
    nothing_left(conn, lasting)


def test_discarded_session(server, conn, lasting):
    """DISCARD ALL does not end the session."""
    with server.connect() as one:
        queue = db.value(one, "SELECT aq.create_temporary_queue()")
        one.execute("DISCARD ALL")
        with server.connect() as two:
            db.value(two, "SELECT aq.create_temporary_queue()")
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 1, "that of the session that has ended is gone")
        put(one, queue, 1)
        assert take(one, queue) == [1]


def test_a_subscriber_of_several_sessions(server, conn, lasting):
    """It is removed with the last session that subscribed it, whichever that is; one that lasts is not."""
    again = "SELECT aq.subscribe('lasting', %s, if_not_exists => true, temporary => true)"
    owner = Owner(server)
    with server.connect() as one, server.connect() as two:
        for other in (one, two, two):
            other.execute(again, ["ends"])
            other.execute(again, ["remains"])
        put(conn, "lasting", 2)
        owner.process.kill()
        owner.process.wait()
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 2, "the first session is forgotten")
        assert look(one, "lasting", "ends") == [2]
        one.close()
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 1, "the second one, too")
        assert look(two, "lasting", "ends") == [2]
    nothing_left(conn, lasting)


@pytest.mark.long
@pytest.mark.test_build
@pytest.mark.parametrize("action", ["error", "cancel", "terminate", "crash"])
def test_the_worker_ends_early(library, monkeypatch, action):
    """The next worker, or the next attempt, removes what is left."""
    with server_with_points(
        monkeypatch, library, "temporary", r"test point|terminat|cancel|crash|signal 9|recovery mode|not yet accepting"
    ) as server:
        with server.connect() as conn:
            conn.execute("SELECT aq.create_queue('lasting', multiple_consumers => true)")
        owner = Owner(server)
        faults.arm(server, "temporary-ends", action)
        owner.process.kill()
        owner.process.wait()
        until(lambda: ended(server), "temporary objects removed")
        with server.connect() as conn:
            nothing_left(conn, None)


def ended(server):
    try:
        with server.connect() as conn:
            return db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 0
    except psycopg.OperationalError:
        return False


def test_claims_in_a_full_table_of_locks(server):
    """Names of temporary destinations of Jakarta Messaging: a call that finds no room for its locks leaves none."""
    # whichever session asks for a lock then gets the error
    server.expect_log("out of shared memory")
    with server.connect() as conn:
        queue = db.value(conn, "SELECT aq.create_temporary_queue('aq.jms_message')")
        with server.connect() as other:
            with pytest.raises(psycopg.errors.OutOfMemory):
                other.execute("SELECT pg_advisory_lock(n) FROM generate_series(1, 1000000) AS n")
            # room for some of the claims of a call
            other.execute("SELECT pg_advisory_unlock(n) FROM generate_series(1, 20) AS n")
            with pytest.raises(psycopg.errors.OutOfMemory):
                conn.execute("SELECT aq_jms.claim(%s, 1, 100)", [queue])
        assert db.value(conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()") == 0
        assert len(db.value(conn, "SELECT aq_jms.claim(%s, 1, 8)", [queue])) == 8
