"""Rules that fail: what the server's log and other sessions see of them."""

from __future__ import annotations

import pytest

from conftest import put, take
from pgaq import db


@pytest.mark.own_tables
def test_a_rule_that_fails_is_logged_once(new_server):
    """By whichever sessions it fails; another rule is logged again.  The enqueuing session is told nothing."""
    own = new_server("rules")
    with own.connect() as conn, own.connect() as other:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'bad', '1 / payload::int > 0'), aq.subscribe('t', 'good')")
        told = []
        for session in (conn, other):
            session.add_notice_handler(lambda notice: told.append(notice.message_primary))
            session.execute("SET client_min_messages = log")

        def lines():
            return [line for line in own.log_text().splitlines() if 'rule of subscriber "bad" of queue "t" failed' in line]

        for number, session in enumerate((conn, other, conn, other)):
            put(session, "t", 0)
            assert len(lines()) == 1, f"enqueue {number}"
        assert lines()[0].endswith("failed: division by zero")
        db.execute(conn, "SELECT aq.alter_subscriber('t', 'bad', 'payload::int / 0 > 0')")
        put(other, "t", 5)
        put(conn, "t", 6)
        assert len(lines()) == 2
        assert told == []
        shown = "SELECT consumer, rule_failures, rule_error FROM aq.subscribers WHERE queue_name = 't' ORDER BY 1"
        assert conn.execute(shown).fetchall() == [("bad", 6, "22012"), ("good", 0, None)]
        assert sorted(take(conn, "t", "good")) == [0] * 4 + [5, 6] and take(conn, "t", "bad") == []
