"""A report of two snapshots draws its course from samples; one of three draws the snapshots."""

from __future__ import annotations

import pytest

from conftest import put_many, take, until
from pgaq import db
from test_reports import report, section
from test_snapshots import snapshot

SETTINGS = {"pgaq.ash_interval": "20ms"}


def samples(conn):
    return db.value(conn, "SELECT samples FROM aq.session_sampler")


def of_chart(model, name):
    """The sum of the chart's values at each step; none without a chart."""
    chart = section(model, name)["chart"]
    return [sum(values) for values in zip(*(series["values"] for series in chart["series"]), strict=True)] if chart else []


def test_two_snapshots_are_drawn_from_samples(server, conn, queue):
    conn.execute("SELECT pg_advisory_lock(4712)")
    begin = snapshot(conn)
    with server.connect() as blocked:
        db.execute(blocked, "SELECT aq.enqueue(%s, '1'::jsonb)", [queue])
        blocked.pgconn.send_query(b"SELECT pg_advisory_lock(4712)")
        enough = samples(conn) + 30
        until(lambda: samples(conn) >= enough, "samples")
        middle = snapshot(conn)
        end = snapshot(conn)
        conn.execute("SELECT pg_advisory_unlock(4712)")
        while blocked.pgconn.get_result():
            pass
    model = report(conn, begin, middle)
    assert of_chart(model, "activity") == [], "no chart of one step"
    assert section(model, "activity")["rows"], "its table remains"
    drawn = of_chart(model, "ash_activity")
    taken = db.value(
        conn,
        "SELECT extract(epoch FROM e.taken - b.taken)::float8 FROM aq.snapshots b, aq.snapshots e WHERE b.snap_id = %s AND e.snap_id = %s",
        [begin, middle],
    )
    slots = len(drawn)
    met = db.value(
        conn,
        """SELECT count(*) FROM aq.session_history h, aq.snapshots b, aq.snapshots e
        WHERE b.snap_id = %s AND e.snap_id = %s AND h.sample_time > b.taken AND h.sample_time <= e.taken""",
        [begin, middle],
    )
    assert slots > 10 and met >= 30
    # the area is that of the samples: each stands for 20 ms
    assert abs(sum(drawn) * taken / slots - met * 0.02) <= 0.1 * met * 0.02 + 0.05
    assert len(of_chart(report(conn, begin, end), "activity")) == 2


def test_one_interval_is_drawn_by_queue(server, conn, queue, topic):
    """Of two snapshots, the averages of each queue are drawn; of three, also the course."""
    begin = snapshot(conn)
    put_many(conn, queue, 1, 300)
    take(conn, queue, number=200)
    put_many(conn, topic, 1, 100)
    middle = snapshot(conn)
    end = snapshot(conn)
    model = report(conn, begin, middle)
    assert section(model, "throughput")["chart"] is None
    chart = section(model, "queues")["chart"]
    seconds = db.value(
        conn,
        "SELECT extract(epoch FROM e.taken - b.taken)::float8 FROM aq.snapshots b, aq.snapshots e WHERE b.snap_id = %s AND e.snap_id = %s",
        [begin, middle],
    )
    assert (chart["kind"], chart["x"]["values"]) == ("bar", [queue, topic])
    assert [series["values"] for series in chart["series"]] == [
        pytest.approx([300 / seconds, 100 / seconds], abs=0.1),
        pytest.approx([200 / seconds, 0], abs=0.1),
    ]
    chart = section(report(conn, begin, end), "throughput")["chart"]
    assert chart["kind"] == "line" and len(chart["x"]["values"]) == 2
