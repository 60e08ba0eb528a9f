"""Snapshots: taken by the worker, atomic in a crash, aware of restarts."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from conftest import arrived, generation, held, put, until
from pgaq import db
from pgaq_proof import faults
from test_dump import dump, restore

IDS = "SELECT array_agg(snap_id ORDER BY snap_id) FROM sys.dba_hist_snapshot"
BY_WORKER = "SELECT count(*) FROM sys.dba_hist_snapshot WHERE snap_flag = 0"


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
        conn.execute('CALL dbms_workload_repository.modify_snapshot_settings("interval" => 0)')
        make_older(conn, last, "9 days")
        conn.execute('CALL dbms_workload_repository.modify_snapshot_settings("interval" => 60)')
        until(lambda: db.value(conn, BY_WORKER) == 1, "a snapshot by the worker")
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
        conn.execute('CALL dbms_workload_repository.modify_snapshot_settings("interval" => 60)')
        # a message that expires needs the worker
        put(conn, queue, 2, expiration="1 millisecond")
        expired = "SELECT count(*) = 0 FROM aq.messages WHERE queue_name = %s AND payload = '2' AND state <> 'EXPIRED'"
        until(lambda: db.value(conn, expired, [queue]), "the worker's other work")
        holder.execute("ROLLBACK")


@pytest.mark.test_build
def test_worker_continues_while_one_is_taken(points_server):
    """However long that takes: a delay ends, a message expires, in the same database."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        make_older(conn, snapshot(conn), "30 days")
        with held(points_server, "snapshot-taken"):
            conn.execute("SELECT aq.set_snapshots(every => '1 hour')")
            until(lambda: db.value(conn, "SELECT aq.point_reached('snapshot-taken')") > 0, "a snapshot")
            put(conn, "q", 1, delay="1 millisecond")
            put(conn, "q", 2, expiration="1 millisecond")
            assert arrived(conn, "q", 1) == [1]
            until(
                lambda: db.value(
                    conn, "SELECT count(*) = 0 FROM aq.messages WHERE queue_name = 'q' AND payload = '2' AND state <> 'EXPIRED'"
                ),
                "the worker's other work",
            )
            assert db.value(conn, BY_WORKER) == 0
        until(lambda: db.value(conn, BY_WORKER) == 1, "the snapshot")


@pytest.mark.test_build
@pytest.mark.parametrize("action", ["crash", "terminate", "error", "cancel"])
def test_its_process_ends(points_server, action):
    """It leaves nothing of the snapshot, and another process takes the next one."""
    points_server.expect_log(r"background worker|terminat|crash")
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        make_older(conn, snapshot(conn), "3 hours")
        before = generation(points_server)
        faults.arm(points_server, "snapshot-taken", action)
        with contextlib.suppress(db.Error):
            conn.execute("SELECT aq.set_snapshots(every => '1 hour')")
        if action != "crash":
            until(lambda: db.value(conn, "SELECT aq.point_reached('snapshot-taken') > 0"), "a snapshot")
            until(
                lambda: db.value(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pgaq snapshot'"),
                "the end of the process",
            )
            # the next process may be there at once, if the settings have changed since the worker has started this one
            taken, arrivals = db.value(conn, BY_WORKER), db.value(conn, "SELECT aq.point_reached('snapshot-taken')")
            assert taken < arrivals
            db.execute(conn, "SELECT aq.point_reset()")
            conn.execute("SELECT aq.set_snapshots(every => '2 hours')")
    if action == "crash":
        until(lambda: generation(points_server) not in (before, None), "a crash")
        faults.wait_until_up(points_server)
    with points_server.connect() as conn:
        until(lambda: db.value(conn, BY_WORKER) == 1, "a snapshot")
        assert db.value(conn, "SELECT count(DISTINCT snap_id) FROM aq_internal.snapshot_data") == 2


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
        conn.execute('CALL dbms_workload_repository.modify_snapshot_settings("interval" => 0)')
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
