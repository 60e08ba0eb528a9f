"""I/O that PostgreSQL times is in reports as it was timed, once, and not as an estimate."""

from __future__ import annotations

import pytest

from conftest import until
from pgaq import db
from test_reports import lines, report
from test_snapshots import snapshot

PARENT = "/var/tmp"  # the folder of the run may be in memory, where a flush takes less than a microsecond and PostgreSQL counts none
SETTINGS = {
    "track_io_timing": "on", "track_wal_io_timing": "on", "shared_buffers": "1MB", "autovacuum": "off", "max_parallel_workers_per_gather": "0",
    "pgaq.ash_interval": "20ms", "synchronize_seqscans": "off", "wal_sync_method": "fdatasync", "fsync": "on",
}  # fmt: skip
READ = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM large"
# from 18 on, other processes may read for a session
READS = {"IO: DataFileRead", "IO: AioIoCompletion"}
MET = f"SELECT coalesce(sum(db_samples), 0) FROM aq.sampled_waits WHERE event IN {tuple(READS)} AND NOT background"


@pytest.fixture(scope="module")
def large(server):
    """A table that does not fit into the buffers."""
    with server.connect() as conn:
        conn.execute("CREATE TABLE large AS SELECT n, repeat('x', 1000) AS filler FROM generate_series(1, 40000) n")
        conn.execute("CREATE TABLE small (n int)")


def events(model):
    return {row["Event"]: row for row in lines(model, "top_events")}


def use(conn):
    """From now on the session is in DB time."""
    conn.execute("SELECT count(*) FROM aq.queues")
    conn.execute("SELECT aq.create_queue('used', if_not_exists => true)")


def test_reads_are_those_that_explain_counts(server, conn, large):
    """Those of a session that uses queues, which is in DB time; not those of one that does not."""
    with server.connect() as reader, server.connect() as stranger:
        use(reader)
        begin = snapshot(conn)
        explained = 0.0
        while explained < 500 or not db.value(conn, MET):
            db.execute(stranger, READ)
            explained += db.value(reader, READ)[0]["Plan"][
                "Shared I/O Read Time" if conn.info.server_version >= 170000 else "I/O Read Time"
            ]
        end = snapshot(conn)
    model = report(conn, begin, end)
    found = events(model)["IO: DataFileRead"]
    # the catalogs, too, do not fit into the buffers: other statements of the sessions read a little
    assert explained / 1000 * 0.999 <= found["Total Wait Time"] <= explained / 1000 * 1.2 + 0.1
    assert (found["Timed By"], found["Sampled, +-"], found["Wait Class"]) == ("PostgreSQL", None, "User I/O")
    assert [row["Event"] for row in lines(model, "top_events") if row["Event"] in READS] == ["IO: DataFileRead"], (
        "it is not estimated as well"
    )
    sampled = {row["Event"] for row in lines(model, "server_waits")}
    assert READS & sampled, "the samples have met it, too"
    activity = [row for row in lines(model, "activity") if row["Wait Class"] == "User I/O"]
    assert sum(row["Time"] for row in activity) == pytest.approx(
        sum(row["Total Wait Time"] for row in events(model).values() if row["Wait Class"] == "User I/O")
    )


def test_wal_is_that_of_the_sessions(server, conn, large):
    """PostgreSQL's own counters of the server have the same times when one session makes nearly all of it."""
    if conn.info.server_version >= 180000:
        pytest.skip("a session cannot see its times of WAL")
    counters = "SELECT wal_sync_time, wal_write_time FROM pg_stat_wal"
    with server.connect() as writer:
        use(writer)
        for session in (writer, conn):
            session.execute("SELECT pg_stat_force_next_flush()")
        before = conn.execute(counters).fetchone()
        begin = snapshot(conn)
        for n in range(500):
            writer.execute("INSERT INTO small VALUES (%s)", [n])
        end = snapshot(conn)
        for session in (writer, conn):
            session.execute("SELECT pg_stat_force_next_flush()")
        after = conn.execute(counters).fetchone()
    found = events(report(conn, begin, end))
    assert len({event.lower() for event in found}) == len(found), "from 17 on, it is WalSync in samples"
    for event, number in (("IO: WALSync", 0), ("IO: WALWrite", 1)):
        row = found[event]
        assert row["Timed By"] == "PostgreSQL" and row["Wait Class"] == "Commit"
        grown = (after[number] - before[number]) / 1000
        assert 0.6 * grown - 0.1 <= row["Total Wait Time"] <= grown + 0.001


def test_what_was_not_always_timed_is_estimated(server, conn, large):
    """A parameter that was off at one end: no time of PostgreSQL, but that of the samples."""
    set_timing(conn, "off")
    begin = snapshot(conn)
    set_timing(conn, "on")
    before = db.value(conn, MET)
    with server.connect() as reader:
        use(reader)
        until(lambda: db.value(reader, READ) and db.value(conn, MET) > before, "a sample of it")
        end = snapshot(conn)
    # without an estimate if all of DB time was CPU time, which copies from the system's cache can be
    assert {row["Timed By"] for row in lines(report(conn, begin, end), "top_events") if row["Event"] in READS} <= {"samples"}


def set_timing(conn, value):
    conn.execute(f"ALTER SYSTEM SET track_io_timing = {value}")
    conn.execute("SELECT pg_reload_conf()")
    until(lambda: db.value(conn, "SELECT current_setting('track_io_timing')") == value, "the setting")
