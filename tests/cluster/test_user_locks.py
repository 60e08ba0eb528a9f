"""No lock of a user holds the worker: the other queues of the database go on, and that queue when the lock is gone."""

from __future__ import annotations

import threading

import psycopg
import pytest

from conftest import arrived, put, until
from pgaq import db

SETTINGS = {"max_prepared_transactions": 5}


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
        pid = user.info.backend_pid
        until(lambda: db.value(conn, "SELECT count(*) > 0 FROM pg_locks WHERE pid = %s AND NOT granted", [pid]), "a wait for the lock")
        others_go_on(server, queue)
        # the holder cannot wait for itself
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='while this transaction has locked "part"'):
            holder.execute(enqueue)
        holder.execute("ROLLBACK")
        waiting.join(60)
        assert not waiting.is_alive()
        assert db.value(conn, f"SELECT count(*) FROM aq.dequeue('typed', NULL::whole, delivery_mode => '{delivery}')") == 1


@pytest.mark.parametrize("command", ["SELECT aq.purge_queue('dead', block => true)", "SELECT aq.drop_queue('dead', true)"])
def test_exception_queue(server, queue, command):
    """A message goes to an exception queue in which a transaction keeps others out."""
    with server.connect() as conn, server.connect() as holder:
        for name in ("dead", "dying"):
            db.execute(conn, "SELECT aq.create_queue(%s)", [name])
        put(conn, "dead", "first")
        assert arrived(conn, "dead", 1) == ["first"]
        holder.execute("BEGIN")
        db.execute(holder, command)
        put(conn, "dying", 1, expiration="1 ms", exception_queue="dead")
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
