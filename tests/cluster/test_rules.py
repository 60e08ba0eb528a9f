"""Failing rules: messages in the server log, and their effects on other sessions."""

from __future__ import annotations

import pytest

from conftest import put, take
from pgaq import db


@pytest.mark.own_tables
def test_a_rule_that_fails_is_logged_once(new_server):
    """A failure is logged once for all sessions; another rule is logged again.  The enqueuing session gets no
    message."""
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


@pytest.mark.own_tables
@pytest.mark.parametrize("condition", ["lock_not_available", "statement_too_complex", "query_canceled"])
def test_what_the_session_runs_into_is_no_failure_of_the_rule(server, conn, condition):
    """The subscriber would miss a message that its rule wants: the enqueue fails."""
    db.execute(conn, f"CREATE OR REPLACE FUNCTION public.runs_into() RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE {condition}; END'")
    db.execute(conn, "SELECT aq.create_queue('limits', multiple_consumers => true), aq.subscribe('limits', 'a', 'public.runs_into()')")
    with pytest.raises(db.Error) as caught:
        put(conn, "limits", 1)
    assert caught.value.diag.message_primary == condition
    assert db.value(conn, "SELECT rule_failures FROM aq.subscribers WHERE queue_name = 'limits'") == 0
    db.execute(conn, "SELECT aq.drop_queue('limits', true)")
    db.execute(conn, "DROP FUNCTION public.runs_into()")


@pytest.mark.test_build
@pytest.mark.own_tables
def test_an_error_between_two_rules_leaves_no_subtransaction(points_server):
    """Rules that call built-in functions share a subtransaction: an error outside of them ends it, before a handler ends its own."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'a', 'payload::int > 0'), aq.subscribe('t', 'b')")
        db.execute(conn, "CREATE TABLE written (n integer)")
        conn.execute("BEGIN; SET LOCAL pgaq.test_point = 'rules-matched:error'")
        conn.execute("DO $$ BEGIN INSERT INTO written VALUES (1); PERFORM aq.enqueue('t', '1'); EXCEPTION WHEN OTHERS THEN INSERT INTO written VALUES (2); END $$")
        assert db.value(conn, "SELECT max(n) FROM written") == 2
        conn.execute("SET LOCAL pgaq.test_point = ''")
        put(conn, "t", 2)
        conn.execute("COMMIT")
        assert conn.execute("SELECT n FROM written").fetchall() == [(2,)]
        assert take(conn, "t", "a") == [2] and take(conn, "t", "b") == [2]
