"""PostgreSQL's own waits are sampled more often in the minute after a snapshot or a mark, and each sample counts for its time."""

from __future__ import annotations

import time

import pytest

from conftest import until
from pgaq import db
from test_snapshots import snapshot

INTERVAL = 10.0
SETTINGS = {"pgaq.ash_interval": f"{INTERVAL:.0f}s"}
EVENT = "Lock: advisory"


def figures(conn):
    """Samples of the profile, of the ring; of the lock: samples, seconds."""
    return db.row(
        conn,
        """SELECT s.profile_samples, s.samples, coalesce(sum(w.db_samples), 0)::bigint AS met, (coalesce(sum(w.db_time_us), 0) / 1e6)::float8 AS seconds
        FROM aq.session_sampler s LEFT JOIN aq.sampled_waits w ON w.event = %s GROUP BY 1, 2""",
        [EVENT],
    )


@pytest.mark.parametrize("begin", ["snapshot", "mark"])
def test_short_intervals_have_many_samples(server, conn, queue, begin):
    """Seven samples of a session that is blocked all the time: seven are counted, for the time that passed, and the history has one at most."""
    conn.execute("SELECT pg_advisory_lock(4711)")
    with server.connect() as blocked:
        db.execute(blocked, "SELECT aq.enqueue(%s, '1'::jsonb)", [queue])
        blocked.pgconn.send_query(b"SELECT pg_advisory_lock(4711)")
        pid = blocked.info.backend_pid
        until(lambda: db.value(conn, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = %s", [pid]), "the lock wait")
        snapshot(conn) if begin == "snapshot" else db.execute(conn, "SELECT aq.rtpctx_start()")
        until(lambda: figures(conn)["profile_samples"] >= 1, "the first sample")
        # a sample may be going on at either end
        before, began = figures(conn), time.monotonic()
        until(lambda: figures(conn)["profile_samples"] >= before["profile_samples"] + 7, "seven samples")
        after, took = figures(conn), time.monotonic() - began
        conn.execute("SELECT pg_advisory_unlock(4711)")
        while blocked.pgconn.get_result():
            pass
    rounds = after["profile_samples"] - before["profile_samples"]
    assert abs(after["met"] - before["met"] - rounds) <= 1
    assert after["samples"] - before["samples"] <= took / INTERVAL + 1
    # the first one counts for the time since the sample before it
    assert after["seconds"] - before["seconds"] <= took + INTERVAL
    assert after["seconds"] - before["seconds"] >= (rounds - 1) * INTERVAL / 10 * 0.9 - 1
