"""Snapshots: taken by the worker, atomic in a crash, aware of restarts."""

from __future__ import annotations

import os
import signal

import pytest

from conftest import generation, put, until
from pgaq import db
from test_dump import dump, restore

IDS = "SELECT array_agg(snap_id ORDER BY snap_id) FROM sys.dba_hist_snapshot"


def snapshot(conn):
    return db.value(conn, "SELECT dbms_workload_repository.create_snapshot()")


def make_older(conn, snap, age):
    conn.execute("UPDATE aq_internal.snapshot SET taken = taken - %s::interval WHERE snap_id = %s", [age, snap])


def test_worker_takes_what_is_due(new_server):
    """An hour after the last one the worker takes the next; a change of the settings reaches it."""
    own, queue = new_server("due"), "q"
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue(%s)", [queue])
        put(conn, queue, 1)
        kept, old, last = snapshot(conn), snapshot(conn), snapshot(conn)
        also_kept = snapshot(conn)
        db.execute(conn, "SELECT dbms_workload_repository.create_baseline(%s, %s, 'kept')", [last, also_kept])
        for snap in (kept, last, also_kept):
            make_older(conn, snap, "2 hours")
        make_older(conn, old, "9 days")
        conn.execute("CALL dbms_workload_repository.modify_snapshot_settings(\"interval\" => 0)")
        make_older(conn, last, "9 days")
        conn.execute("CALL dbms_workload_repository.modify_snapshot_settings(\"interval\" => 60)")
        flags = "SELECT count(*) FROM sys.dba_hist_snapshot WHERE snap_flag = 0"
        until(lambda: db.value(conn, flags) == 1, "a snapshot by the worker")
        made = db.value(conn, "SELECT snap_id FROM sys.dba_hist_snapshot WHERE snap_flag = 0")
        assert db.value(conn, "SELECT backlog FROM sys.dba_hist_queue WHERE snap_id = %s AND queue_name = %s", [made, queue]) == 1
        # older than the retention: purged, but for the baseline
        assert db.value(conn, IDS) == [kept, last, also_kept, made]
        assert db.value(conn, "SELECT count(DISTINCT snap_id) FROM aq_internal.snapshot_data") == 4


def test_worker_does_not_wait(server, queue):
    """While a session holds the snapshots' lock, the worker continues with its other work."""
    with server.connect() as conn, server.connect() as holder:
        put(conn, queue, 1)
        make_older(conn, snapshot(conn), "30 days")
        holder.execute("BEGIN")
        snapshot(holder)
        conn.execute("CALL dbms_workload_repository.modify_snapshot_settings(\"interval\" => 60)")
        # a message that expires needs the worker
        put(conn, queue, 2, expiration="1 millisecond")
        expired = "SELECT count(*) = 0 FROM aq.messages WHERE queue_name = %s AND payload = '2' AND state <> 'EXPIRED'"
        until(lambda: db.value(conn, expired, [queue]), "the worker's other work")
        holder.execute("ROLLBACK")


def test_crash_while_a_snapshot_is_taken(new_server):
    """It leaves nothing of it; snapshots before and after are of different startups."""
    own = new_server("snapshots")
    own.expect_log(r"terminat|crash")
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        before = snapshot(conn)
        first = generation(own)
    victim = own.connect()
    victim.execute("BEGIN")
    snapshot(victim)
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    until(lambda: generation(own) not in (None, first), "the server has started anew")
    victim.close()
    with own.connect() as conn:
        assert db.value(conn, IDS) == [before]
        assert db.value(conn, "SELECT array_agg(DISTINCT snap_id) FROM aq_internal.snapshot_data") == [before]
        after = snapshot(conn)
        assert after > before
        starts = db.value(conn, "SELECT count(DISTINCT startup_time) FROM sys.dba_hist_snapshot")
        assert starts == 2
        assert db.value(conn, "SELECT begin_interval_time = startup_time FROM sys.dba_hist_snapshot WHERE snap_id = %s", [after])


def test_history_survives_a_dump(new_server, tmp_path):
    """Snapshots, baselines and settings are dumped with the database, and keep the id of the one they are of."""
    own = new_server("dumped")
    with own.connect() as conn:
        snapshot(conn), snapshot(conn)
        db.execute(conn, "SELECT dbms_workload_repository.create_baseline(1, 2, 'kept')")
        conn.execute("CALL dbms_workload_repository.modify_snapshot_settings(\"interval\" => 0)")
        conn.execute("CREATE DATABASE copy")
        dump(own, "custom", tmp_path / "dump")
        restore(own, "custom", tmp_path / "dump", "copy")
        query = "SELECT array_agg((dbid, snap_id, source, data)::text ORDER BY snap_id, source) FROM aq_internal.snapshot_data"
        with own.connect("copy") as there:
            assert db.value(there, query) == db.value(conn, query)
            assert db.value(there, "SELECT dbid <> aq_internal.dbid() FROM sys.dba_hist_baseline WHERE baseline_name = 'kept'")
            assert snapshot(there) > 2


def test_on_a_standby(new_server, throw_away):
    """Nothing can be stored there, and the error says what can be done instead; the history of the primary can be read."""
    own = new_server("primary")
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        begin, end = snapshot(conn), snapshot(conn)
    copy = throw_away(own.basebackup("standby"))
    copy.expect_log(r"WARNING:.*standby")
    copy.start()
    with copy.connect() as there:
        with pytest.raises(db.Error, match="cannot be taken on a standby") as raised:
            snapshot(there)
        assert "rtpctx_start" in raised.value.diag.message_hint
        assert db.value(there, "SELECT aq.report_awr(%s, %s)", [begin, end])["sections"]
        mark = db.value(there, "SELECT aq.rtpctx_start()::text")
        assert db.value(there, "SELECT aq.rtpctx_report(%s)", [mark])["kind"] == "rtpctx"
