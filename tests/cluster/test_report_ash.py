"""The report on samples of active sessions: each figure is a count of samples, and the samples are those of the interval."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from conftest import until
from pgaq import db
from test_ash import more_samples
from test_reports import check_form, growth, lines, report, section
from test_snapshots import snapshot

INTERVAL = 20
SETTINGS = {"pgaq.ash_interval": str(INTERVAL), "compute_query_id": "on"}

SAMPLES = """SELECT event, wait_class, session_type, p1, p2, p3, session_id, "session_serial#", blocking_session
    FROM sys."v$active_session_history" WHERE sample_time > %s AND sample_time <= %s"""


@pytest.fixture
def blocked(server):
    """Two snapshots, with a session in between that waits for a row lock: times, samples, snapshots, the holder's number."""
    with server.connect() as conn, server.connect() as holder:
        conn.execute("CREATE TABLE IF NOT EXISTS held (n int PRIMARY KEY); INSERT INTO held VALUES (1) ON CONFLICT DO NOTHING")
        holder.execute("BEGIN")
        holder.execute("UPDATE held SET n = n")
        begin = snapshot(conn)
        first = db.value(conn, "SELECT clock_timestamp()")
        waiter = threading.Thread(target=update, args=[server])
        waiter.start()
        pid = holder.info.backend_pid
        until(
            lambda: db.value(
                conn, """SELECT count(*) >= 10 FROM sys."v$active_session_history" WHERE "blocking_session_serial#" = %s""", [pid]
            ),
            "samples of the wait",
        )
        holder.execute("ROLLBACK")
        waiter.join()
        more_samples(conn)
        last = db.value(conn, "SELECT clock_timestamp()")
        end = snapshot(conn)
        found = conn.execute(SAMPLES, [first, last]).fetchall()
        return (
            first,
            last,
            found,
            begin,
            end,
            db.value(
                conn, """SELECT max(blocking_session) FROM sys."v$active_session_history" WHERE "blocking_session_serial#" = %s""", [pid]
            ),
        )


def update(server):
    with server.connect() as conn:
        conn.execute("UPDATE held SET n = n")


def test_ash_report(server, blocked):
    first, last, found, _, _, holder = blocked
    with server.connect() as conn:
        model = db.value(conn, "SELECT aq.report_ash(%s, %s)", [first, last])
    check_form(model)
    users = [row for row in found if row[2] == "FOREGROUND"]
    elapsed = (last - first).total_seconds()
    events = Counter((row[0] or "ON CPU", row[1] or "ON CPU") for row in users)
    shown = lines(model, "ash_user_events")
    assert {(r["Event"], r["Event Class"]): r["Samples"] for r in shown} == events
    for r in shown:
        assert r["% Activity"] == pytest.approx(100 * r["Samples"] / len(users))
        assert r["Avg Active"] == pytest.approx(r["Samples"] * INTERVAL / 1000 / elapsed)
    [lock] = [r for r in shown if r["Event"].startswith("Lock: ")]
    assert lock["Samples"] >= 10
    blockers = {r["Blocking Session"]: r["Samples"] for r in lines(model, "ash_blockers")}
    # the waiter may be seen once more when the holder has gone
    assert blockers[str(holder)] == len([1 for row in users if row[8] == holder]) >= 10
    sessions = Counter(str(row[7]) for row in users)
    assert {r["Process"] for r in lines(model, "ash_sessions")} <= set(sessions)
    assert section(model, "ash_activity")["chart"]["kind"] == "area"
    total = sum(r["Samples"] for r in lines(model, "ash_activity"))
    assert total == len(found)


def test_parameters(server, blocked):
    """% Event and % Activity have the same denominator; a triple is a part of its event."""
    first, last, found, *_ = blocked
    with server.connect() as conn:
        shown = lines(db.value(conn, "SELECT aq.report_ash(%s, %s)", [first, last]), "top_parameters")
    users = [row for row in found if row[2] == "FOREGROUND"]
    # a wait of the server has no parameters
    triples = Counter((row[0], ", ".join(f'"{p}"' for p in row[3:6] if p is not None)) for row in users)
    events = Counter(row[0] for row in users)
    assert shown
    for r in shown:
        key = (r["Event"], r["P1, P2, P3 Values"])
        assert r["% Activity"] == pytest.approx(100 * triples[key] / len(users))
        assert r["% Event"] == pytest.approx(100 * events[r["Event"]] / len(users))
        assert r["% Activity"] <= r["% Event"]


def test_in_the_report_of_snapshots(server, blocked):
    """Sampled waits of PostgreSQL's own between two snapshots, and the activity over time."""
    _, _, _, begin, end, _ = blocked
    with server.connect() as conn:
        model = report(conn, begin, end)
        found = growth(conn, (begin, end), "dba_hist_sampled_event", "event_name, session_type", "samples", "time_waited_micro")
    check_form(model)
    shown = {(r["Event"], r["Session Type"]): [r["Samples"], r["Estimated Time"]] for r in lines(model, "server_waits")}
    assert shown == {key: [samples, pytest.approx(micros / 1e6)] for key, (samples, micros) in found.items() if samples}
    assert any(event.startswith("Lock: ") for event, _ in shown)
    assert lines(model, "ash_activity") and lines(model, "top_parameters")


def test_what_is_kept_on_disk(server, blocked):
    """After a restart the ring is empty: the report is made of one sample in ten, and of all samples since."""
    first, last, found, *_ = blocked
    with server.connect() as conn:
        conn.execute("SELECT aq_internal.ash_flush()")
        kept = db.value(
            conn, "SELECT count(*) FROM sys.dba_hist_active_sess_history WHERE sample_time > %s AND sample_time <= %s", [first, last]
        )
    server.restart()
    with server.connect() as conn:
        model = db.value(conn, "SELECT aq.report_ash(%s, %s)", [first, last])
    assert dict(model["header"])["Samples"] == f"{kept} active sessions"
    assert kept and sum(r["Samples"] for r in lines(model, "ash_activity")) == kept
    assert dict(model["header"])["Each Stands For"] == f"{INTERVAL / 100} s"
    memory = """FROM sys."v$active_session_history" h, sys."v$ash_info" WHERE h.sample_time > started AND session_type = 'FOREGROUND'"""
    with server.connect() as conn, server.connect() as other:
        until(lambda: db.value(other, "SELECT 1") and db.value(conn, f"SELECT count(*) > 5 {memory}"), "samples since")
        now = db.value(conn, "SELECT clock_timestamp()")
        mixed = db.value(conn, "SELECT aq.report_ash(%s, %s)", [first, now])
        since = db.value(conn, f"SELECT count(*) {memory} AND h.sample_time <= %s", [now])
    check_form(mixed)
    assert dict(mixed["header"])["Each Stands For"] == f"{INTERVAL / 1000} or {INTERVAL / 100} s"
    shown = lines(mixed, "ash_user_events")
    assert sum(r["Samples"] for r in shown) >= since + sum(r["Samples"] for r in lines(model, "ash_user_events")) > since > 5
    # what is on disk weighs ten times as much
    [lock] = [r for r in shown if r["Event"].startswith("Lock: ")]
    assert lock["Avg Active"] == pytest.approx(lock["Samples"] * INTERVAL / 100 / (now - first).total_seconds())
    for r in shown:
        assert r["% Activity"] == pytest.approx(100 * r["Avg Active"] / sum(s["Avg Active"] for s in shown))


def test_before_the_first_sample(server, blocked):
    """A report that begins before there were samples says so."""
    with server.connect() as conn:
        conn.execute("SELECT aq_internal.ash_flush()")
        model = db.value(conn, "SELECT aq.report_ash(now() - interval '1 year', now())")
        oldest = db.value(
            conn,
            """SELECT to_char(least(min(sample_time), (SELECT started FROM sys."v$ash_info")), 'YYYY-MM-DD HH24:MI:SS')
            FROM sys.dba_hist_active_sess_history""",
        )
    assert ["Note", f"Samples are kept since {oldest} only."] in model["header"]
