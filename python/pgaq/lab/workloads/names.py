"""Messages for many names that were never declared, and the limit of declared subscribers."""

from __future__ import annotations

from typing import Any

from pgaq import db
from pgaq.lab.site import Site
from pgaq.lab.workloads import harness

QUEUE = "lab_names"
DECLARED = 100
FIRST = 9990001  # of the source's numbers


def many_names(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """How many undeclared names can be used one after the other, by the source's program, what the views show of them; how many can be declared."""
    wanted = int(point["names"])
    with site.connect() as conn:
        harness.prepare(conn, DECLARED, str(site.options.get("store", "table")))
        used, got = 0, 0
        try:
            for number in range(FIRST, FIRST + wanted):
                conn.execute("CALL lab_aq.put(%s)", [number])
                used += 1
                got += db.value(conn, "CALL lab_aq.listen_once(%s, 10, NULL, NULL)", [number])
        except db.Error:
            pass
        row = db.row(conn, SUBSCRIBERS, ["MESSAGES"]) or {}
        found = {
            "names": float(wanted), "used": float(used), "dequeued": float(got), "undeclared_seen": row["undeclared"], "declared_seen": row["declared"],
            "declared_in_dictionary": db.value(conn, IN_DICTIONARY, ["messages"]),
            "undeclared_in_dictionary": db.value(conn, f"{IN_DICTIONARY} AND consumer_name LIKE 'KSUB_999%%'", ["messages"]),
        }  # fmt: skip
        harness.drop(conn)
        _create(conn)
        found |= _limit(conn)
        conn.execute("SELECT aq.drop_queue(%s, force => true)", [QUEUE])
    return found


SUBSCRIBERS = """SELECT count(*) FILTER (WHERE subscriber_name NOT LIKE 'KSUB_999%%')::float8 AS declared,
	count(*) FILTER (WHERE subscriber_name LIKE 'KSUB_999%%')::float8 AS undeclared, coalesce(sum(enqueued_msgs), 0)::float8 AS messages
	FROM sys."v$persistent_subscribers" WHERE queue_name = %s"""
IN_DICTIONARY = "SELECT count(*)::float8 FROM sys.dba_queue_subscribers WHERE lower(queue_name) = %s"


def restart(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What the view of active subscribers shows before and after a restart of the server."""
    found: dict[str, Any] = {"names": float(point["names"])}
    with site.connect() as conn:
        _create(conn)
        conn.execute("SELECT aq.subscribe(%s, 'ksub_' || n) FROM generate_series(1, %s) n", [QUEUE, point["names"]])
        for name in [f"ksub_{part}{n}" for n in range(1, int(point["names"]) + 1) for part in ("", "999")]:
            conn.execute("SELECT aq.enqueue(%s, '1'::jsonb, recipients => ARRAY[%s])", [QUEUE, name])
            conn.execute("SELECT payload FROM aq.dequeue(%s, %s, 1)", [QUEUE, name])
        found |= _subscribers(conn, "before")
    site.server.restart()
    with site.connect() as conn:
        found |= _subscribers(conn, "after")
        conn.execute("SELECT aq.enqueue(%s, '1'::jsonb, recipients => ARRAY['ksub_1'])", [QUEUE])
        found |= _subscribers(conn, "used")
        conn.execute("SELECT aq.drop_queue(%s, force => true)", [QUEUE])
    return found


def _subscribers(conn: db.Connection, when: str) -> dict[str, float]:
    row = db.row(conn, SUBSCRIBERS, [QUEUE.upper()]) or {}
    return {f"{name}_{when}": value for name, value in row.items()} | {f"dictionary_{when}": db.value(conn, IN_DICTIONARY, [QUEUE])}


def _create(conn: db.Connection) -> None:
    conn.execute("SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = %s", [QUEUE])
    conn.execute("SELECT aq.create_queue(%s, multiple_consumers => true)", [QUEUE])


def _limit(conn: db.Connection) -> dict[str, float]:
    """How many subscribers can be declared, how many are listed then, and whether the next one was refused because of the limit."""
    number, refused = 0, False
    while number < 1200 and not refused:
        try:
            conn.execute("SELECT aq.subscribe(%s, %s)", [QUEUE, f"s{number + 1}"])
            number += 1
        except db.Error as error:
            if error.sqlstate not in ("54000", "AQ015"):
                break
            refused = True
    return {"limit": float(number), "listed_at_limit": db.value(conn, IN_DICTIONARY, [QUEUE]), "refused_by_limit": float(refused)}
