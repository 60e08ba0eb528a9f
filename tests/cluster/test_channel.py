"""The broadcast channels: the children of one latch, of which one is hot."""

from __future__ import annotations

import pytest

from conftest import put, until
from pgaq import db
from test_reports import lines, report
from test_snapshots import snapshot
from test_wait import asleep, waiters  # noqa: F401 (a fixture)

SETTINGS = {"max_connections": "60", "pgaq.fetch_patience": "-1", "pgaq.max_traces": "10"}
CHANNEL = "channel operations parent latch"
GETS = 'SELECT "child#", gets, misses, sleeps FROM sys."v$latch_children" WHERE name = %s ORDER BY 1'
LISTENERS = 5


def children(conn):
    return {child: counts for child, *counts in conn.execute(GETS, [CHANNEL]).fetchall()}


@pytest.fixture
def elsewhere(server, conn):
    """A database with a queue that does not share the channel of this one."""
    channel = "SELECT oid::int % 16 FROM pg_database WHERE datname = "
    while True:
        conn.execute("DROP DATABASE IF EXISTS elsewhere WITH (FORCE)")
        conn.execute("CREATE DATABASE elsewhere")
        if db.value(conn, f"{channel} 'elsewhere'") != db.value(conn, f"{channel} current_database()"):
            break
    with server.connect("elsewhere") as other:
        other.execute("CREATE EXTENSION pgaq CASCADE")
        db.execute(other, "SELECT aq.create_queue('there')")
    yield "elsewhere"
    conn.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_one_child_is_hot(server, conn, queue, elsewhere, waiters):  # noqa: F811
    """Each get in the listeners' traces, and the sender's, is a get of the one child that belongs to their database; the report shows it."""
    hot = db.value(conn, "SELECT oid::int % 16 + 1 FROM pg_database WHERE datname = current_database()")
    group = waiters(LISTENERS, queue, statement=f"CALL aq.listen(ARRAY['{queue}'], NULL, NULL, NULL, NULL)")
    for waiter in group:
        waiter.connection.execute("SET pgaq.listen_wakeup = broadcast")
    traces = [waiter.pid for waiter in group] + [conn.info.backend_pid]  # this one is the sender, and reads hundreds of latches
    for pid in traces:
        db.execute(conn, "SELECT aq.trace_start(%s)", [pid])
    before, begin = children(conn), snapshot(conn)
    assert len(before) == 16
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    switches = [waiter.switches() for waiter in group]
    with server.connect(elsewhere) as other:
        other.execute("SET pgaq.listen_wakeup = broadcast")
        put(other, "there", 5)
    assert [waiter.switches() for waiter in group] == switches, "messages of another database wake no session here"
    put(conn, queue, 1)
    until(lambda: all(waiter.done() for waiter in group), "every listener is woken")
    after, end = children(conn), snapshot(conn)
    gets = sum(
        db.value(
            conn, "SELECT coalesce(sum(gets), 0)::int FROM aq.trace_objects(%s) WHERE operation = 'latch' AND object = %s", [pid, CHANNEL]
        )
        for pid in traces
    )
    grown = {child: after[child][0] - before[child][0] for child in after}
    assert grown.pop(hot) == gets >= 2 * LISTENERS + 1
    assert not any(grown.values())
    shown = [row for row in lines(report(conn, begin, end), "latch_children") if row["Latch Name"] == CHANNEL]
    assert [(row["Child Num"], row["Get Requests"]) for row in shown] == [(hot, gets)]
    assert (shown[0]["Misses"], shown[0]["Sleeps"]) == tuple(a - b for a, b in zip(after[hot][1:], before[hot][1:], strict=True))
    for pid in traces:
        db.execute(conn, "SELECT aq.trace_stop(%s)", [pid])
