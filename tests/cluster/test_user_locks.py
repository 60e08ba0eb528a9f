"""No lock of a user blocks the worker: other queues of the database continue, and that queue when the lock is
released."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import conftest
from conftest import arrived, put, put_many, take, until
from pgaq import db
from test_limits import TABLE

SETTINGS = {"max_prepared_transactions": 5, "pgaq.max_temporary_queues": 40}


@pytest.fixture
def typed(server):
    """A queue of another role, with the row type of its table; and nothing has been enqueued yet."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner; GRANT EXECUTE ON FUNCTION aq.create_queue TO owner")
    with server.connect(user="owner") as conn:
        conn.execute("CREATE TABLE public.part (a int); CREATE TYPE public.whole AS (parts public.part[])")
        db.execute(conn, "SELECT aq.create_queue('typed', 'public.whole')")
    yield "typed"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.drop_queue('typed', true)")
        conn.execute("DROP OWNED BY owner CASCADE; DROP ROLE owner")


def waits_for_lock(conn, session):
    pid = session.info.backend_pid
    until(lambda: db.value(conn, "SELECT count(*) > 0 FROM pg_locks WHERE pid = %s AND NOT granted", [pid]), "a wait for the lock")


def tries(server):
    """How often a user's lock has made the worker give up, as far as it says so."""
    return server.log_text().count('could not obtain lock on relation "q')


def others_go_on(server, queue):
    """Its first message needs the worker: for a table, and at the end of the delay.  On queue tables only the latter."""
    with server.connect() as conn:
        conn.execute("SET statement_timeout = '30 s'")
        put(conn, queue, "others", delay="1 ms")
        assert arrived(conn, queue, 1) == ["others"]


@pytest.mark.sharded("queue tables have their tables from the beginning")
@pytest.mark.parametrize("delivery", ["persistent", "buffered"])
def test_payload_type(server, typed, queue, delivery):
    """LOCK TABLE on what a payload type consists of: tables with a column of the type cannot be made meanwhile."""
    enqueue = f"SELECT aq.enqueue('typed', '(\"{{(1)}}\")', delivery_mode => '{delivery}') IS NOT NULL"
    with server.connect(user="owner") as holder, server.connect() as conn, server.connect() as user:
        holder.execute("BEGIN; LOCK TABLE public.part")
        waiting = threading.Thread(target=user.execute, args=[enqueue])
        waiting.start()
        waits_for_lock(conn, user)
        others_go_on(server, queue)
        # the holder cannot wait for itself
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='while this transaction has locked "part"'):
            holder.execute(enqueue)
        holder.execute("ROLLBACK")
        waiting.join(60)
        assert not waiting.is_alive()
        assert db.value(conn, f"SELECT count(*) FROM aq.dequeue('typed', NULL::whole, delivery_mode => '{delivery}')") == 1


@pytest.mark.parametrize("command", ["SELECT aq.purge_queue('dead', block => true)", "SELECT aq.drop_queue('dead', true)", "LOCK TABLE {}"])
def test_exception_queue(server, queue, command):
    """A message goes to an exception queue in which a transaction keeps others out."""
    with server.connect() as conn, server.connect() as holder:
        for name in ("dead", "dying"):
            db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [name])
        put(conn, "dead", "first")
        assert arrived(conn, "dead", 1) == ["first"]
        holder.execute("BEGIN")
        db.execute(holder, command.format(db.value(conn, TABLE, ["dead"])))
        tried = tries(server)
        put(conn, "dying", 1, expiration="1 ms", exception_queue="dead")
        if command.startswith("LOCK") and not conftest.on_queue_tables:
            until(lambda: tries(server) > tried, "the worker's try")
        # once may be before the expired message in a round of the worker
        others_go_on(server, queue)
        others_go_on(server, queue)
        holder.execute("ROLLBACK")
        assert arrived(conn, "dead", 1) == [1]
        db.execute(conn, "SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['dying', 'dead']) q")


@pytest.mark.sharded("queue tables can be read meanwhile")
def test_load(server, queue):
    """After a restart, a prepared transaction still keeps others out of a queue."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('kept')")
        put(conn, "kept", 1)
        conn.execute("BEGIN")
        db.execute(conn, "SELECT aq.purge_queue('kept', block => true)")
        conn.execute("PREPARE TRANSACTION 'keeper'")
    server.restart()
    others_go_on(server, queue)
    with server.connect() as conn:
        conn.execute("ROLLBACK PREPARED 'keeper'")
        assert arrived(conn, "kept", 1) == [1]
        db.execute(conn, "SELECT aq.drop_queue('kept', true)")


@pytest.mark.sharded("a queue table can be loaded without its rows")
def test_load_of_a_locked_table(server, queue):
    """An administrator has locked a table of a queue that is not in memory: a session waits for that, the worker for neither."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('kept')")
        put(conn, "kept", 1)
        table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'kept' AND state = 'open'")
        conn.execute(f"BEGIN; LOCK TABLE {table}; PREPARE TRANSACTION 'keeper'")
    tried = tries(server)
    server.restart()
    until(lambda: tries(server) > tried, "the worker's try")
    others_go_on(server, queue)
    with server.connect() as conn, server.connect() as user, ThreadPoolExecutor(1) as pool:
        came = pool.submit(arrived, user, "kept", 1)
        waits_for_lock(conn, user)
        until(lambda: "another session is loading the queue" in server.log_text(), "the worker's next try")
        others_go_on(server, queue)
        conn.execute("ROLLBACK PREPARED 'keeper'")
        assert came.result(60) == [1]
        db.execute(conn, "SELECT aq.drop_queue('kept', true)")


@pytest.mark.sharded("queue tables have no partitions")
def test_count_of_a_partition(server, queue):
    """After a restart, a log that is locked keeps the worker from counting what is in a partition: it tries again later."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('kept')")
        put(conn, "kept", 1, 2)
        assert take(conn, "kept", number=1) == [1]
        table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'kept' AND state = 'open'")
        conn.execute(f"BEGIN; LOCK TABLE {table.replace('.q', '.l')}; PREPARE TRANSACTION 'keeper'")
    server.restart()
    others_go_on(server, queue)
    with server.connect() as conn:
        conn.execute("ROLLBACK PREPARED 'keeper'")
        until(lambda: db.value(conn, "SELECT lag FROM aq.subscribers WHERE queue_name = 'kept'") == 1, "the count")
        assert take(conn, "kept") == [2]
        db.execute(conn, "SELECT aq.drop_queue('kept', true)")


@pytest.mark.sharded("rows of queue tables are not loaded")
def test_load_of_a_partition(server, queue):
    """A session that is to load it waits behind VACUUM FULL, and that for a session that dequeues from it."""
    with server.connect() as conn:
        put(conn, queue, 1)
        put(conn, queue, 2)
    server.restart()
    with contextlib.ExitStack() as stack:
        conn, reader, admin, user = (stack.enter_context(server.connect()) for _ in range(4))
        pool = stack.enter_context(ThreadPoolExecutor(2))
        query = "SELECT messages::text FROM aq.partitions WHERE queue_name = %s AND outstanding = 2 AND NOT resident"
        table = until(lambda: db.value(conn, query, [queue]), "the worker has counted it")
        reader.execute(f"SET statement_timeout = '30 s'; BEGIN; LOCK TABLE {table} IN ACCESS SHARE MODE")
        vacuum = pool.submit(admin.execute, f"VACUUM FULL {table}")
        waits_for_lock(conn, admin)
        came = pool.submit(arrived, user, queue, 1)
        waits_for_lock(conn, user)
        assert take(reader, queue, number=1) == [1]
        reader.execute("COMMIT")
        assert came.result(60) == [2]
        vacuum.result(60)


@pytest.mark.parametrize("command", ["VACUUM FULL", "REPACK", "REPACK (CONCURRENTLY)"])
def test_rewritten_in_use(server, queue, command):
    """A message table that is rewritten keeps its messages; without a key PostgreSQL does not rewrite it concurrently."""
    with server.connect() as conn:
        if command != "VACUUM FULL" and conn.info.server_version < 190000:
            pytest.skip("PostgreSQL 19 has brought REPACK")
        put_many(conn, queue, 1, 100)
        assert take(conn, queue, number=10) == list(range(1, 11))
        table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = %s AND state = 'open'", [queue])
        if command == "REPACK (CONCURRENTLY)":
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="REPACK"):
                conn.execute(f"{command} {table}")
        else:
            conn.execute(f"{command} {table}")
        put_many(conn, queue, 101, 110)
        assert take(conn, queue) == list(range(11, 111))


@pytest.mark.parametrize("hold", ["schedules", "queues", "rights"])
def test_rows_of_temporary_queues(server, queue, hold):
    """A transaction has changed many queues whose session has ended: the worker waits for none of them, and removes them afterwards."""
    with server.connect() as conn, server.connect() as holder:
        with server.connect() as owner:
            queues = [db.value(owner, "SELECT aq.create_temporary_queue()") for _ in range(40)]
            for name in queues:
                db.execute(owner, "SELECT aq.schedule(%s, %s, '1', every => '1 day')", [name, name])
            holder.execute("BEGIN")
            for name, number in holder.execute("SELECT queue_name, queue_id FROM aq.queues WHERE temporary").fetchall():
                holder.execute({
                    "schedules": f"SELECT aq.stop_schedule('{name}')",
                    "queues": f"SELECT aq.alter_queue('{name}', comment => 'held')",
                    "rights": f"GRANT SELECT ON aq_data.q{number} TO pg_monitor",
                }[hold])  # fmt: skip
        until(
            lambda: db.value(conn, "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'client backend'"),
            "the end of the owner",
        )
        # once may be before the end in a round of the worker
        others_go_on(server, queue)
        others_go_on(server, queue)
        assert db.value(conn, "SELECT count(*) FROM aq.queues WHERE temporary") == 40
        holder.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.queues WHERE temporary") == 0, "the end of the temporary queues")
