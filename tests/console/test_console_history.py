"""The charts of the console, which show the history that the server records."""

from __future__ import annotations

import re

from conftest import until
from console_server import client, console, no_failures, people, server  # noqa: F401
from pgaq import db, text
from pgaq.console import pages, words


def test_what_is_held_between_rows():
    """Of each delivery mode its last number; the most of an age is shown in this age only."""
    known = {3: (9, 2), 1: (4, 4)}
    assert pages.held([known], 5, 1) == [None, 9, 2, 4, 4, 1]
    assert pages.held([known], 5, 1, hold=False) == [None, 9, None, 4, None, 1]
    assert pages.held([{4: (5, 5)}, known], 5, 1) == [5, 14, 7, 9, 9, 1]


def test_a_point_with_gaps_around_it_is_drawn():
    assert words.curve([None, 1, None, 2]).count("<polyline") == 2


def test_a_curve_of_both_delivery_modes(people, server):  # noqa: F811
    """A mode without a row has the messages of its row before.  A queue without any row has the curves of the login."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('modes')")
        number = db.value(conn, "SELECT queue_id FROM aq.queues WHERE queue_name = 'modes'")
        for span in pages.SPANS:
            page = people["boss"].get("/queue", params={"name": "modes", "span": span}).text
            assert "Time of the charts" in page and "In per second" in page and "Failed per second" not in page, span
        page = people["boss"].get("/queues?q=modes").text
        assert all(len(points.split()) < 60 for points in re.findall('points="([^"]*)"', page))
        add = "INSERT INTO aq_internal.history_{} VALUES (now() - %s::interval, %s, 1, %s, 0, 0, 600, 0, 0, NULL)"
        for ring, age, queue, ready in (
            ("minute", "30:00:02", number, 5), ("minute", "30:00:01", number, 3), ("minute", "29:00", -number, 1),
            ("minute", "0:50:30", number, 7), ("minute", "0:40:30", -number, 2), ("hour", "961:00", number, 8),
        ):  # fmt: skip
            conn.execute(add.format(ring), [age, queue, ready])
        found = pages.history(conn, "modes", "2 d", 0)
        assert sorted({*found["backlogs"]} - {None}) == [0, 3, 4, 5, 8, 9] and found["backlogs"].count(5) == 1
        assert [max(found["enqueued"]), sum(found["enqueued"])] == [2, 5]
        assert pages.history(conn, "modes", "1 h", 0)["backlogs"] == [None] * 9 + [7] * 10 + [9] * 41 + [0]
        found = pages.history(conn, "modes", "90 d", 0)["backlogs"]
        assert found[found.index(8) - 1] is found[found.index(8) + 1] is None
        page = people["boss"].get("/queue?name=modes").text
        assert "Failed per second" in page and "Latency p50 since the start" in page and "Backlog: now 0, at most 9" in page
        assert "Backlog: now 0, at most 9" in people["boss"].get("/queues?q=modes").text
        db.execute(conn, "SELECT aq.drop_queue('modes')")


def test_charts_show_the_history(people, server, console):  # noqa: F811
    """Of an hour, two days or 90 days, with the server's record; without a record, what the login has seen."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('recorded')")
        number = db.value(conn, "SELECT queue_id FROM aq.queues WHERE queue_name = 'recorded'")
        add = "INSERT INTO aq_internal.history_{} VALUES (now() - %s::interval, %s, 1, 5, 1, 1, %s, %s, 0, '{{0,0,4}}')"
        for ring, age, n in (("minute", "30 minutes", 600), ("minute", "30 hours", 1200), ("hour", "40 days", 216000)):
            conn.execute(add.format(ring), [age, number, n, n // 2])
        page = people["boss"].get("/queues?q=recorded").text
        assert "Backlog: now 0, at most 7" in page
        for span, most in (("", 10), ("1+h", 10), ("2+d", 2), ("90+d", 10)):
            page = people["boss"].get(f"/queue?name=recorded&span={span}" if span else "/queue?name=recorded").text
            charts = dict(re.findall(r"<title>([^:<]+): now [^<]*, at most ([^<]+)</title>", page))
            assert {name: charts[name] for name in ("In per second", "Out per second", "Backlog")} == {"In per second": text.number(most), "Out per second": text.number(most / 2), "Backlog": "7"}, span  # fmt: skip
        assert people["boss"].get("/queue?name=recorded&span=3+d").status_code == 400
        conn.execute("ALTER SYSTEM SET pgaq.history = off")
        conn.execute("SELECT pg_reload_conf()")
        try:
            until(lambda: db.value(conn, "SHOW pgaq.history") == "off")
            other = client(console, "boss", "of it all")
            assert "Time of the charts" not in other.get("/queue?name=recorded").text
            assert "at most 7" not in other.get("/queues?q=recorded").text
            other.close()
        finally:
            conn.execute("ALTER SYSTEM RESET pgaq.history")
            conn.execute("SELECT pg_reload_conf()")
        db.execute(conn, "SELECT aq.drop_queue('recorded')")
