"""The history of active sessions: who was active is there, who was idle is not; it survives its sampler, not the server."""

from __future__ import annotations

import os
import signal
import threading
import time

from conftest import background, generation, put, stopped_worker, take, until
from pgaq import db
from test_sessions import Sessions, session

import psycopg
import pytest

INTERVAL = 20
SETTINGS = {
    "pgaq.ash_interval": str(INTERVAL),
    "pgaq.ash_size": "2MB",
    "max_connections": "130",
    "compute_query_id": "on",
    "pgaq.fetch_patience": "-1",
}


SAMPLED = 'SELECT sample_rows FROM sys."v$ash_info"'
NEWEST = "SELECT max(sample_id) FROM sys.\"v$active_session_history\" WHERE is_awr_sample = 'Y' AND database = current_database()"


def samples(conn):
    return db.value(conn, 'SELECT sample_count FROM sys."v$ash_info"')


def more_samples(conn, number=2):
    """Wait for that many samples that began after this call."""
    enough = samples(conn) + number + 1
    until(lambda: samples(conn) >= enough, "samples")


def history(conn, pid, columns="*"):
    query = f'SELECT {columns} FROM sys."v$active_session_history" WHERE "session_serial#" = %s ORDER BY sample_id'
    return conn.execute(query, [pid]).fetchall()


def test_who_is_active_is_noted(server, conn, queue):
    """A session in a lock wait with its blocker, one in a queue operation with its queue; not those that are idle."""
    conn.execute("CREATE TABLE held (n int PRIMARY KEY); INSERT INTO held VALUES (1)")
    with Sessions(server) as sessions:
        idle = sessions.send(f"CALL aq.wait('{queue}', NULL, NULL, NULL)")
        until(lambda: session(conn, idle)["wait_class"] == "Idle" and session(conn, idle)["operation"], "it sleeps")
        more_samples(conn)
        before = len(history(conn, idle))
        holder = sessions.send("SELECT 1", "BEGIN", "UPDATE held SET n = n")
        blocked = sessions.send("UPDATE held SET n = n", "CALL dbms_application_info.set_module('shop', 'pay')")
        until(lambda: session(conn, blocked)["blocking_session"] is not None, "the block")
        more_samples(conn, 5)
        seen = history(
            conn,
            blocked,
            """event, wait_class, session_state, blocking_session, "blocking_session_serial#", sql_id, module, action, username, database,
            "event#", time_waited, program""",
        )
        lock = [row for row in seen if row[0] == "Lock: transactionid"]
        found = session(conn, blocked)
        assert lock[-1] == (
            "Lock: transactionid", "Application", "WAITING", session(conn, holder)["sid"], holder, found["sql_id"], "shop", "pay", "postgres", "postgres", None, None, "busy",
        )  # fmt: skip
        assert len(history(conn, idle)) < before + 3, "but for a moment in which the server called it"
        busy = sessions.send(f"DO $$ BEGIN LOOP PERFORM aq.enqueue('{queue}', '1'); COMMIT; END LOOP; END $$")
        until(lambda: ("queue enqueue", queue) in history(conn, busy, "operation, queue_name"), "a sample in the operation")
        assert history(conn, background(conn, "sampler")) == []
    conn.execute("DROP TABLE held")


def test_partition_waits_are_timed(server, conn):
    """An enqueuer waits for an empty partition while the worker is stopped: the last sample has the whole time, no other one has."""
    db.execute(conn, "SELECT aq.create_queue('parts', shards => 1)")
    put(conn, "parts", 1)
    number = db.value(conn, "SELECT queue_id FROM aq_internal.queue WHERE queue_name = 'parts'")
    fill = "SELECT cardinality(aq.enqueue_array('parts', (SELECT array_agg(n::text) FROM generate_series(1, 16384 * 5) n)))"
    with Sessions(server) as sessions:
        with stopped_worker(conn):
            pid = sessions.send(fill)
            event = "aq: waiting for a partition"
            until(lambda: len([1 for row in history(conn, pid, "event") if row[0] == event]) >= 3, "samples of the wait")
        until(lambda: session(conn, pid)["server_state"] == "idle", "its end")
        more_samples(conn, 2)
        rows = [
            row for row in history(conn, pid, 'event, p1, "seq#", waited_micro, time_waited, wait_class, "current_obj#"') if row[0] == event
        ]
        waits = {row[2] for row in rows}
        assert (
            {row[1] for row in rows} == {number} and {row[5] for row in rows} == {"Configuration"} and {row[6] for row in rows} == {number}
        )
        for wait in waits:
            mine = [row for row in rows if row[2] == wait]
            assert [row[4] for row in mine[:-1]] == [None] * (len(mine) - 1)
            assert mine[-1][4] is not None and mine[-1][4] >= mine[-1][3]
        total = db.value(conn, 'SELECT time_waited_micro FROM sys."v$session_event" WHERE pid = %s AND event = %s', [pid, event])
        assert max(row[4] or 0 for row in rows) <= total
    db.execute(conn, "SELECT aq.drop_queue('parts', force => true)")


def test_samples_of_the_servers_waits_add_up(server, conn):
    with Sessions(server) as sessions:
        sessions.send("SELECT 1", "BEGIN", "SELECT pg_advisory_xact_lock(7)")
        query = "SELECT coalesce(sum(samples), 0)::int, coalesce(sum(time_waited_micro), 0)::int FROM sys.\"v$sampled_event\" WHERE event = 'Lock: advisory'"
        before = conn.execute(query).fetchone()
        pid = sessions.send("SELECT pg_advisory_xact_lock(7)")
        until(lambda: len(history(conn, pid)) >= 5, "samples")
    more_samples(conn)
    after = conn.execute(query).fetchone()
    met = len([1 for row in history(conn, pid, "event") if row[0] == "Lock: advisory"])
    assert after[0] - before[0] == met and after[1] - before[1] == met * INTERVAL * 1000


def test_one_in_ten_is_kept(server, conn, queue):
    """Samples are saved once, whichever session flushes; only those of this database; with names; and they belong to
    snapshots."""
    db.execute(conn, "CREATE DATABASE elsewhere")
    snapshot = "SELECT dbms_workload_repository.create_snapshot()"
    first = db.value(conn, snapshot)
    with Sessions(server) as sessions:
        pid = sessions.send(f"DO $$ BEGIN LOOP PERFORM aq.enqueue('{queue}', '1'); COMMIT; END LOOP; END $$")
        other = sessions.send("DO $$ BEGIN LOOP END LOOP; END $$", dbname="elsewhere")
        kept = 'SELECT count(*) FROM sys."v$active_session_history" WHERE is_awr_sample = \'Y\' AND "session_serial#" = %s'
        for each in (pid, other):
            until(lambda: db.value(conn, kept, [each]) >= 3, "samples to be kept")
    second = db.value(conn, snapshot)
    latest = db.value(conn, 'SELECT latest_sample_id FROM sys."v$ash_info"')
    db.execute(conn, "SELECT aq_internal.ash_flush(), aq_internal.ash_flush()")
    both = """SELECT h.sample_id, h.session_id, h.event, h."current_obj#" FROM sys."v$active_session_history" h WHERE is_awr_sample = 'Y' AND sample_id <= %s AND (database = 'postgres' OR database IS NULL)
              EXCEPT SELECT sample_id, session_id, event, "current_obj#" FROM sys.dba_hist_active_sess_history"""
    assert conn.execute(both, [latest]).fetchall() == []
    assert (
        db.value(
            conn, 'SELECT count(*) FROM sys.dba_hist_active_sess_history WHERE sample_id %% 10 <> 0 OR "session_serial#" = %s', [other]
        )
        == 0
    )
    mine = conn.execute(
        'SELECT DISTINCT snap_id, username FROM sys.dba_hist_active_sess_history WHERE "session_serial#" = %s', [pid]
    ).fetchall()
    assert mine == [(second, "postgres")] and second == first + 1
    # they go with their snapshots
    db.execute(conn, "CALL dbms_workload_repository.drop_snapshot_range(%s, %s)", [second, second])
    assert db.value(conn, 'SELECT count(*) FROM sys.dba_hist_active_sess_history WHERE "session_serial#" = %s', [pid]) == 0
    db.execute(conn, "DROP DATABASE elsewhere WITH (FORCE)")


def test_the_worker_keeps_before_the_ring_turns(server, conn, queue):
    """The ring wraps around without manual flushes: every tenth sample of a busy session is on disk, without a gap."""
    with Sessions(server) as sessions:
        pids = [sessions.send("SELECT pg_advisory_lock(8), count(*) FROM generate_series(1, 1000)") for _ in range(60)]
        total = db.value(conn, 'SELECT total_size FROM sys."v$ash_info"')
        start = db.value(conn, SAMPLED)
        put(conn, queue, 1)
        for part in range(1, 7):
            until(lambda: db.value(conn, SAMPLED) > start + part * total / 3, "a third of a turn of the ring")
            with stopped_worker(conn, "sampler"):  # if the worker gets no time of the CPU, there is a gap
                until(
                    lambda: db.value(conn, "SELECT max(sample_id) FROM sys.dba_hist_active_sess_history") == db.value(conn, NEWEST),
                    "the worker's turn",
                )
    db.execute(conn, "SELECT aq_internal.ash_flush()")
    pid = pids[30]
    ids = [
        row[0]
        for row in conn.execute('SELECT sample_id FROM sys.dba_hist_active_sess_history WHERE "session_serial#" = %s ORDER BY 1', [pid])
    ]
    assert len(ids) > 5 and ids == list(range(ids[0], ids[-1] + 10, 10))
    oldest = db.value(conn, 'SELECT min(sample_id) FROM sys."v$active_session_history"')
    assert ids[0] < oldest, "the ring has forgotten what is on disk"


def model_rows(model, name):
    """Rows of a section of a report."""
    [found] = [s for s in model["sections"] if s["id"] == name]
    names = [c["name"] for c in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def rows_of(model, name):
    """The same, by their first column."""
    return {next(iter(row.values())): row for row in model_rows(model, name)}


def test_waits_of_the_server_are_estimated(server, conn, queue):
    """A wait for a lock, a client that sends slowly, and pg_sleep: the report's estimates are the durations that the client measured."""
    conn.execute("CREATE TABLE wanted (n int); CREATE TABLE sent (n int)")
    with Sessions(server) as sessions, server.connect() as slow:
        sessions.send("SELECT 1", "BEGIN", "LOCK wanted IN ACCESS EXCLUSIVE MODE")
        begin = db.value(conn, "SELECT aq.take_snapshot()")
        began = time.monotonic()
        # only sessions that use pgaq have DB time
        use = f"SELECT aq.enqueue('{queue}', '1')"
        slow.execute(use)
        pids = [sessions.send("INSERT INTO wanted VALUES (1)", use), sessions.send("SELECT pg_sleep(600)", use)]
        with slow.cursor().copy("COPY sent FROM STDIN") as copy:
            waiting = "SELECT count(*) = 3 FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event IN ('relation', 'PgSleep', 'ClientRead') AND state = 'active'"
            until(lambda: db.value(conn, waiting, [[*pids, slow.info.backend_pid]]), "all three wait")
            all_wait = time.monotonic()
            more_samples(conn, 100)
            at_least = time.monotonic() - all_wait
            copy.write("1\n")
        conn.execute("SELECT pg_cancel_backend(pid) FROM unnest(%s::int[]) pid", [pids])
        until(lambda: db.value(conn, "SELECT bool_and(state <> 'active') FROM pg_stat_activity WHERE pid = ANY (%s)", [pids]), "their ends")
        seconds = time.monotonic() - began
        end = db.value(conn, "SELECT aq.take_snapshot()")
        model = db.value(conn, "SELECT aq.report_awr(%s, %s)", [begin, end])
    events, classes = rows_of(model, "top_events"), rows_of(model, "wait_classes")
    for event, wait_class in (("Lock: relation", "Application"), ("Timeout: PgSleep", "Idle"), ("Client: ClientRead", "Network")):
        found = events[event]
        assert found["Wait Class"] == wait_class and found["Waits"] is None and 0 < found["Sampled, +-"] < found["Total Wait Time"]
        assert at_least - 3 * found["Sampled, +-"] <= found["Total Wait Time"] <= seconds + 3 * found["Sampled, +-"]
        assert classes[wait_class]["Total Wait Time"] >= 0.99 * found["Total Wait Time"]
    # the report begins with the largest parts
    assert model["sections"][0]["id"] == "summary"
    largest = {row["Event"]: row["Time"] for row in model_rows(model, "summary")}
    assert largest.items() <= {event: row["Total Wait Time"] for event, row in events.items()}.items()
    assert {"Lock: relation", "Timeout: PgSleep", "Client: ClientRead"} <= largest.keys()
    time_model = rows_of(model, "time_model")["DB time"]["Time"]
    assert sum(row["Total Wait Time"] for row in classes.values()) == pytest.approx(time_model, rel=0.01)


def test_readers_and_the_sampler_do_not_wait_for_each_other(server, conn, queue):
    """Many read while rows are overwritten: no sample is torn; a reader that is stopped does not stop the sampler."""
    with Sessions(server) as sessions:
        pids = [sessions.send("SELECT pg_advisory_lock(9)") for _ in range(40)]
        reader = sessions.send(
            'SELECT max(n) FROM (SELECT pg_advisory_lock(10) IS NULL) l, generate_series(1, 1000000) n, LATERAL (SELECT count(*) FROM sys."v$active_session_history") h'
        )
        wrong = []

        def read():
            with server.connect() as own:
                for _ in range(20):
                    wrong.extend(
                        own.execute(
                            """SELECT sample_id, session_id, event, blocking_session, wait_class, program FROM sys."v$active_session_history"
                        WHERE "session_serial#" = ANY (%s) AND event = 'Lock: advisory' AND (blocking_session IS NULL OR wait_class <> 'Application' OR program <> 'busy')""",
                            [pids],
                        ).fetchall()
                    )
                    wrong.extend(
                        own.execute(
                            """SELECT sample_id, session_id FROM sys."v$active_session_history" GROUP BY 1, 2 HAVING count(*) > 1"""
                        ).fetchall()
                    )

        threads = [threading.Thread(target=read) for _ in range(3)]
        # it reads now, and holds no lock of PostgreSQL's that others need
        until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 10 AND granted"), "it reads")
        os.kill(reader, signal.SIGSTOP)
        try:
            more_samples(conn, 5)
        finally:
            os.kill(reader, signal.SIGCONT)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong[:3] == []


def test_the_sampler_comes_back(server, conn):
    """After the sampler is terminated, a new one continues with the same ring."""
    more_samples(conn)
    before = db.row(conn, 'SELECT sample_rows, latest_sample_id, started FROM sys."v$ash_info"')
    old = until(lambda: background(conn, "sampler"), "the sampler")
    conn.execute("SELECT pg_terminate_backend(%s)", [old])
    until(lambda: background(conn, "sampler") not in (None, old), "another sampler")
    more_samples(conn)
    after = db.row(conn, 'SELECT sample_rows, latest_sample_id, started FROM sys."v$ash_info"')
    assert (
        after["started"] == before["started"]
        and after["latest_sample_id"] > before["latest_sample_id"]
        and after["sample_rows"] >= before["sample_rows"]
    )


def test_it_can_be_paused(server, conn):
    server.configure(**{"pgaq.ash_interval": "0"})
    idle = """SELECT count(*) FROM sys."v$session_wait" WHERE event = 'aq: sampler idle' AND state = 'WAITING' AND p1 = 0"""
    conn.execute("SELECT pg_reload_conf()")
    until(lambda: db.value(conn, idle) == 1, "a pause")
    before = samples(conn)
    conn.execute("SELECT count(*) FROM generate_series(1, 300000)")
    assert samples(conn) == before
    server.configure(**{"pgaq.ash_interval": str(INTERVAL)})
    conn.execute("SELECT pg_reload_conf()")
    more_samples(conn)


def test_killed_sessions_and_restarts(new_server):
    """After a crash and after a restart samples go on, with ids above all old ones, so that the history on disk has no doubles."""
    own = new_server("restarts", **SETTINGS)
    own.expect_log("terminating connection because of crash|terminated by signal 9|reinitializing|terminating any other active")
    last = 0
    for kill in (True, False):
        with own.connect() as conn:
            db.execute(conn, "SELECT aq.create_queue('q') WHERE NOT EXISTS (SELECT FROM aq_internal.queue)")
            with Sessions(own) as sessions:
                pid = sessions.send("DO $$ BEGIN LOOP END LOOP; END $$")
                until(lambda: len(history(conn, pid)) > 20, "samples")
                db.execute(conn, "SELECT aq_internal.ash_flush()")
                ids = db.row(
                    conn, 'SELECT min(sample_id), max(sample_id) FROM sys.dba_hist_active_sess_history WHERE "session_serial#" = %s', [pid]
                )
                assert ids["min"] > last
                last = ids["max"]
                if kill:
                    before = generation(own)
                    os.kill(pid, signal.SIGKILL)
                    # until the postmaster has seen it, the old samples are there
                    until(lambda: generation(own) not in (None, before), "the server's recovery")
        if not kill:
            own.restart()

        def back():
            try:
                with own.connect() as conn:
                    return samples(conn) > 0
            except psycopg.Error:
                return False

        until(back, "the server and its sampler")
    with own.connect() as conn:
        assert db.value(conn, "SELECT count(*) FROM sys.dba_hist_active_sess_history") > 3, "the history outlives the server"


def test_without_history(new_server):
    """pgaq.ash_size = 0: no sampler, empty views, and everything else works."""
    own = new_server("without", **{"pgaq.ash_size": "0"})
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        assert take(conn, "q") == [1]
        assert background(conn, "sampler") is None
        assert db.value(conn, 'SELECT count(*) FROM sys."v$active_session_history"') == 0
        db.execute(conn, "SELECT dbms_workload_repository.create_snapshot()")
