"""v$session and the views of waits: they show all sessions and blockers, without blocking any session."""

from __future__ import annotations

import contextlib
import os
import signal

from conftest import put, until
from pgaq import db

import psycopg

SETTINGS = {"max_connections": "130", "pgaq.fetch_patience": "-1", "compute_query_id": "on"}
MANY = 100


def session(conn, pid):
    return db.row(conn, 'SELECT * FROM sys."v$session" WHERE pid = %s', [pid])


class Sessions:
    """Sessions whose statements are sent and not waited for."""

    def __init__(self, server):
        self.server, self.made = server, []

    def send(self, statement, *before, dbname="postgres"):
        connection = psycopg.connect(self.server.conninfo(application_name="busy", dbname=dbname), autocommit=True)
        self.made.append(connection)
        for each in before:
            connection.execute(each)
        connection.pgconn.send_query(statement.encode())
        while connection.pgconn.flush():
            pass
        return connection.info.backend_pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.made:
            with contextlib.suppress(psycopg.Error):  # the server may be gone
                connection.cancel()
            connection.pgconn.finish()


def test_a_hundred_sessions_in_every_view(new_server):
    """All are shown in their waits; the sum over sessions is what the system waited for."""
    own, queue = new_server("hundred", **SETTINGS), "hundred"
    with own.connect() as conn, Sessions(own) as sessions:
        db.execute(conn, "SELECT aq.create_queue(%s)", [queue])
        pids = [sessions.send(f"CALL aq.wait('{queue}', NULL, NULL, NULL)") for _ in range(MANY)]
        query = """SELECT count(*) FROM sys."v$session" WHERE pid = ANY (%s) AND state = 'WAITING' AND wait_class = 'Idle' AND NOT active
                   AND operation = 'queue listen' AND queue_id = (SELECT queue_id FROM aq_internal.queue WHERE queue_name = %s) AND program = 'busy'"""
        until(lambda: db.value(conn, query, [pids, queue]) == MANY, "all of them wait")
        assert db.value(conn, 'SELECT count(DISTINCT sid) FROM sys."v$session" WHERE pid = ANY (%s)', [pids]) == MANY
        assert db.value(conn, 'SELECT count(*) FROM sys."v$session_wait" WHERE pid = ANY (%s)', [pids]) == MANY
        # every process of the server, once
        until(
            lambda: db.value(conn, 'SELECT count(*) FROM sys."v$session" FULL JOIN pg_stat_activity USING (pid) WHERE sid IS NULL') == 0,
            "the same processes in both",
        )
        event = "Streams AQ: waiting for messages in the queue"
        put(conn, queue, *range(MANY))
        idle = """SELECT count(*) FROM sys."v$session" WHERE pid = ANY (%s) AND server_state = 'idle'"""
        until(lambda: db.value(conn, idle, [pids]) == MANY, "nobody waits any more")
        total = db.row(
            conn,
            """SELECT sum(e.total_waits) AS sessions, (SELECT sum(wait_count) FROM sys."v$event_histogram" WHERE event = %s) AS milli,
            (SELECT sum(wait_count) FROM sys."v$event_histogram_micro" WHERE event = %s) AS micro,
            (SELECT sum(total_waits) FROM sys."v$system_event" WHERE event = %s) AS system
            FROM sys."v$session_event" e WHERE e.event = %s AND e.pid = ANY (%s)""",
            [event, event, event, event, pids],
        )
        assert len(set(total.values())) == 1 and total["sessions"] >= MANY


def test_how_long_a_wait_may_still_take(server, conn, queue):
    """What is left of a wait with a time-out and what it has taken are the time-out; without one it is -1, after it null."""
    with Sessions(server) as sessions:
        timed = sessions.send(f"CALL aq.wait('{queue}', NULL, '600 s', NULL)")
        endless = sessions.send(f"CALL aq.wait('{queue}', NULL, NULL, NULL)")
        for view in 'sys."v$session"', 'sys."v$session_wait"':
            query = f"SELECT wait_time_micro + time_remaining_micro, time_remaining_micro FROM {view} WHERE pid = %s AND state = 'WAITING' AND event LIKE 'Streams%%'"
            until(lambda: conn.execute(query, [timed]).fetchone() and conn.execute(query, [endless]).fetchone(), "both wait")
            total, left = conn.execute(query, [timed]).fetchone()
            assert 590e6 < total <= 600e6 and left < total
            assert conn.execute(query, [endless]).fetchone()[1] == -1
    mine = 'SELECT state, time_remaining_micro FROM sys."v$session_wait" WHERE pid = pg_backend_pid()'

    def waited():
        conn.execute(f"CALL aq.wait('{queue}', NULL, '0.001 s', NULL)")  # whose time may be over before it sleeps
        return conn.execute(mine).fetchone()

    state, left = until(waited, "a wait that slept")
    assert state.startswith("WAITED") and left is None


def test_who_blocks_whom(server, conn):
    """A chain of locks of the server: the next one, and the one at its end."""
    conn.execute("CREATE TABLE chain (n int PRIMARY KEY); INSERT INTO chain VALUES (1), (2)")
    with Sessions(server) as sessions:
        first = sessions.send("SELECT pg_sleep(600)", "BEGIN", "UPDATE chain SET n = n WHERE n = 1")
        second = sessions.send("UPDATE chain SET n = n WHERE n = 1", "BEGIN", "UPDATE chain SET n = n WHERE n = 2")
        until(lambda: session(conn, second)["event"] == "Lock: transactionid", "the second waits")
        third = sessions.send("UPDATE chain SET n = n WHERE n = 2")
        until(lambda: session(conn, third)["event"] == "Lock: transactionid", "the third waits")
        found = session(conn, third)
        assert found["blocking_session"] == session(conn, second)["sid"]
        assert found["final_blocking_session"] == session(conn, first)["sid"]
        assert (found["wait_class"], found["state"], found["event#"], found["active"]) == ("Application", "WAITING", None, True)
        assert found["sql_id"] is not None and found["attached"] is False
        held = session(conn, first)
        assert (held["blocking_session"], held["event"], held["active"]) == (None, "Timeout: PgSleep", False)
    conn.execute("DROP TABLE chain")


def test_checkpointer_ahead_of_schedule_is_idle(server, conn):
    """It sleeps between its writes: that is no activity of the server."""
    server.expect_log("aborting backup")
    conn.execute("CREATE TABLE dirty AS SELECT n, repeat('x', 500) AS pad FROM generate_series(1, 20000) n")
    with Sessions(server) as sessions:
        sessions.send("SELECT pg_backup_start('slow')")
        query = """SELECT wait_class, active FROM sys."v$session" WHERE backend_type = 'checkpointer' AND event = 'Timeout: CheckpointWriteDelay'"""
        found = []
        until(lambda: found.extend(conn.execute(query).fetchall()) or found, "it is ahead of its schedule")
        assert set(found) == {("Idle", False)}
        conn.execute("CHECKPOINT")
    conn.execute("DROP TABLE dirty")


def test_who_writes_the_log_waits_to_commit(server, conn):
    """Input and output of the log by a client is of class Commit, however the server's version spells its name."""
    with Sessions(server) as sessions:
        pid = sessions.send(
            "DO $$ BEGIN LOOP PERFORM pg_logical_emit_message(true, 'pgaq', repeat('x', 1000000)); COMMIT; END LOOP; END $$"
        )
        seen = """SELECT wait_class FROM sys."v$session" WHERE pid = %s AND event ~* '^IO: WAL'"""
        found = []
        until(lambda: found.extend(row["wait_class"] for row in db.rows(conn, seen, [pid])) or len(found) >= 5, "it writes")
        assert set(found) == {"Commit"}


def test_nobody_is_waited_for(server, conn):
    """A session that is stopped in the middle of its work does not stop who looks.

    Work that needs no lock of PostgreSQL's: who is stopped with one of those may stop everybody.
    """
    conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab")
    with Sessions(server) as sessions:
        sessions.send("SELECT aq_lab.hammer_latch('lab', sessions => 1, seconds => 600)")
        until(lambda: db.value(conn, """SELECT gets > 1000 FROM sys."v$latch_children" WHERE name = 'lab' AND "child#" = 1"""), "it works")
        pid = db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq lab'")
        conn.execute("SET statement_timeout = '30 s'")
        for _ in range(5):
            os.kill(pid, signal.SIGSTOP)
            try:
                for view in (
                    "session",
                    "session_wait",
                    "session_event",
                    "system_event",
                    "event_histogram",
                    "sesstat",
                    "sess_time_model",
                    "latch",
                    "latchholder",
                ):
                    conn.execute(f'SELECT count(*) FROM sys."v${view}"')
            finally:
                os.kill(pid, signal.SIGCONT)
        conn.execute("RESET statement_timeout")
