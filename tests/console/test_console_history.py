"""The charts of the console, which show the history that the server records."""

from __future__ import annotations

import re

from conftest import until
from console_server import client, console, no_failures, people, server  # noqa: F401
from pgaq import db, text


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
