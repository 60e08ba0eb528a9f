"""Dead letters and default exception queues: over crashes, dumped, and put back while sessions end."""

from __future__ import annotations

import contextlib
import time

import pytest

from conftest import generation, put, put_many, take, until
from pgaq import db
from test_dump import dump, restore

LETTERS = """SELECT queue_name, reason, last_error, attempts, first_attempt, last_attempt, died, payload, original_msgid
    FROM aq.dead_letters WHERE exception_queue = %s ORDER BY payload"""


def reject(conn, queue, error, consumer=None):
    conn.execute(
        """WITH taken AS MATERIALIZED (SELECT msgid, receipt FROM aq.dequeue(%s, consumer => %s, max_messages => 100000, lease => '1 hour'))
        SELECT array_agg(msgid) AS ids, max(receipt) AS receipt INTO TEMP taken FROM taken""",
        [queue, consumer],
    )
    conn.execute("SELECT count(*) FROM taken, aq.reject(%s, ids, taken.receipt, consumer => %s, error => %s)", [queue, consumer, error])
    conn.execute("DROP TABLE taken")


def letters(conn, queue, wanted):
    query = "SELECT count(*) FROM aq.dead_letters WHERE exception_queue = %s || '_exceptions'"
    until(lambda: db.value(conn, query, [queue]) == wanted, "the dead letters")
    return conn.execute(LETTERS, [queue + "_exceptions"]).fetchall()


def test_crash_dump_and_redrive(server, queue, tmp_path):
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3)
        reject(conn, queue, "no")
        before = letters(conn, queue, 3)
        assert [row[:4] for row in before] == [(queue, "rejected", "no", 1)] * 3
        conn.execute("CREATE DATABASE copy")
    server.restart("immediate")
    dump(server, "custom", tmp_path / "dump")
    restore(server, "custom", tmp_path / "dump", "copy")
    for dbname in ["postgres", "copy"]:
        with server.connect(dbname=dbname) as conn:
            assert conn.execute(LETTERS, [queue + "_exceptions"]).fetchall() == before
            assert db.value(conn, "SELECT aq.redrive(%s, condition => 'payload <> ''2''')", [queue]) == 2
            assert take(conn, queue, number=10) == [1, 3]
            assert [row[7] for row in letters(conn, queue, 1)] == ["2"]
    with server.connect() as conn:
        conn.execute("DROP DATABASE copy WITH (FORCE)")


def test_redrive_is_undone(server, queue):
    """By a rollback, a terminated session and a crash: then each dead letter is there once, and none is in the queue."""
    with server.connect() as conn:
        put(conn, queue, *range(10))
        reject(conn, queue, "no")
        letters(conn, queue, 10)
    for how in ["rollback", "terminate", "crash", "commit"]:
        own = server.connect()
        own.execute("BEGIN")
        assert db.value(own, "SELECT aq.redrive(%s)", [queue]) == 10
        if how == "crash":
            server.restart("immediate")
        elif how == "terminate":
            with server.connect() as conn:
                assert db.value(conn, "SELECT pg_terminate_backend(%s, 10000)", [own.info.backend_pid])
        else:
            own.execute(how)
        own.close()
        with server.connect() as conn:
            assert len(letters(conn, queue, 0 if how == "commit" else 10)) == (0 if how == "commit" else 10)
            assert len(take(conn, queue, number=100)) == (10 if how == "commit" else 0)


@pytest.mark.test_build
def test_redrive_ends_between_two_batches(points_server):
    """The session raises, is cancelled or terminated, or the server crashes, when the first thousand are put back: all are dead letters, as before."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put_many(conn, "q", 1, 1100)
        reject(conn, "q", "no")
        letters(conn, "q", 1100)
    for action in ["error", "cancel", "terminate", "crash"]:
        before = until(lambda: generation(points_server), "the server")
        with contextlib.suppress(db.Error), points_server.connect() as own:
            own.execute(f"BEGIN; SET LOCAL pgaq.test_point = 'redriven:{action}'")
            own.execute("SELECT aq.redrive('q')")
            own.execute("COMMIT")
        if action == "crash":
            until(lambda: generation(points_server) not in (None, before), "a crash")
        with points_server.connect() as conn:
            letters(conn, "q", 1100)
            assert take(conn, "q") == [], action
    with points_server.connect() as conn:
        assert db.value(conn, "SELECT aq.redrive('q')") == 1100
        assert sorted(take(conn, "q", number=2000)) == list(range(1, 1101))


def reached(conn, point):
    return db.value(conn, "SELECT aq.point_reached(%s)", [point])


@pytest.mark.test_build
@pytest.mark.sharded("queue tables have no log")
def test_the_log_is_read_for_dead_letters_only(points_server):
    """Not of messages that are dropped, nor while the exception queue cannot be used; then the worker tries less and less often."""
    with points_server.connect() as conn, points_server.connect() as holder:
        # arrivals are counted from the first question on
        assert reached(conn, "failed-moved") == reached(conn, "dead-letters-read") == 0
        db.execute(conn, "SELECT aq.create_queue('dropping', exception_queue => 'none'), aq.create_queue('q')")
        put_many(conn, "dropping", 1, 100)
        reject(conn, "dropping", "no")
        until(lambda: reached(conn, "failed-moved") > 0, "all are dropped")
        assert reached(conn, "dead-letters-read") == 0
        put(conn, "q", 1)
        reject(conn, "q", "no")
        letters(conn, "q", 1)
        read = reached(conn, "dead-letters-read")
        assert read > 0
        holder.execute("BEGIN")
        db.execute(holder, "SELECT aq.purge_queue('q_exceptions', block => true)")
        put(conn, "q", 2)
        began = time.monotonic()
        tried = reached(conn, "failed-moved")
        reject(conn, "q", "no")
        # pauses of 0.1, 0.2, 0.4 and 0.8 seconds
        until(lambda: reached(conn, "failed-moved") >= tried + 5, "five tries")
        assert time.monotonic() - began > 1.4
        assert reached(conn, "dead-letters-read") == read
        holder.execute("ROLLBACK")
        letters(conn, "q", 2)


@pytest.mark.sharded("queue tables have no log")
def test_log_rows_of_an_earlier_partition(server, topic):
    """A crash between the truncation of messages and log leaves rows of messages that are gone: they say nothing of those in their places."""
    row = """INSERT INTO %s (kind, stream, consumer, at, ordinals, receipt, detail, written)
        SELECT '%s', m.stream, s.position, now(), ARRAY[m.ordinal - 16384], %s, 'jold', now()
        FROM %s m, aq_internal.subscriber s WHERE s.queue_id = %s AND s.consumer = 'b'"""
    with server.connect() as conn:
        put(conn, topic, 1)
        number, messages = conn.execute(
            "SELECT queue_id, messages::text FROM aq.partitions JOIN aq_internal.queue USING (queue_name) WHERE queue_name = %s", [topic]
        ).fetchone()
        for kind, receipt in [("x", 65536), ("s", 131072), ("r", "NULL")]:
            conn.execute(row % (messages.replace(".q", ".l"), kind, receipt, messages, number))
        seen = "SELECT consumer, state, attempts FROM aq.messages WHERE queue_name = %s ORDER BY 1"
        assert conn.execute(seen, [topic]).fetchall() == [("a", "READY", 0), ("b", "READY", 0)]
        reject(conn, topic, "no", "a")
        assert take(conn, topic, "b") == [1]
        letters(conn, topic, 1)
        query = "SELECT consumer, attempts, last_error FROM aq.dead_letters WHERE queue_name = %s"
        assert conn.execute(query, [topic]).fetchall() == [("a", 1, "no")]


@pytest.mark.sharded("a queue table has an exception queue of its own")
def test_unused_ones_take_no_place(new_server):
    """After a start the worker loads the queues, but not the exception queues that have had no message."""
    own = new_server("few", **{"pgaq.max_queues": "16"})
    with own.connect() as conn:
        for n in range(10):
            db.execute(conn, "SELECT aq.create_queue(%s)", [f"q{n}"])
        put(conn, "q0", 1)
        reject(conn, "q0", "no")
        letters(conn, "q0", 1)
    own.restart()
    with own.connect() as conn:
        loaded = """SELECT count(*), count(*) FILTER (WHERE name LIKE '%%EXCEPTIONS'), min(aged_out)
            FROM sys."v$db_object_cache", sys."v$librarycache" """
        until(lambda: conn.execute(loaded).fetchone() == (11, 1, 0), "the worker has loaded them")


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_texts_are_cut_between_characters(server, before):
    """In a database in SQL_ASCII, where the server does not know them: errors, and names made of names."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with server.connect(dbname="ascii") as conn:
        conn.execute("SET client_encoding = 'UTF8'")
        conn.execute("CREATE EXTENSION pgaq")
        for queue, text in (
            ("q" + before + "\u00e9" * 57, before + "\u00e9" * 300),
            ("r" + before + "\U0001f60a" * 30, before + "\U0001f60a" * 150),
        ):
            db.execute(conn, "SELECT aq.create_queue(%s)", [queue])
            put(conn, queue, 1)
            msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 min')", [queue]).fetchone()
            db.execute(conn, "SELECT aq.release(%s, ARRAY[%s]::uuid[], %s, error => %s)", [queue, msgid, receipt, text])
            error = db.value(conn, "SELECT last_error FROM aq.messages WHERE queue_name = %s AND last_error IS NOT NULL", [queue])
            assert text.startswith(error) and len(error) > 50
            with pytest.raises(db.Error) as caught:
                conn.execute("SELECT aq.create_queue(%s, exception_queue => %s)", [queue + "x", text * 3])
            assert text[0] in caught.value.diag.message_primary
        names = {row[0] for row in conn.execute("SELECT queue_name FROM aq.queues WHERE queue_name LIKE '%\\_exceptions'")}
        assert len(names) == 2 and all(name[1:].startswith(before) for name in names)
    with server.connect() as conn:
        conn.execute("DROP DATABASE ascii WITH (FORCE)")
