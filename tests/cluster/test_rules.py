"""Failing rules: messages in the server log, and their effects on other sessions."""

from __future__ import annotations

import json
import random

import pytest

from conftest import put, take
from pgaq import db


@pytest.mark.own_tables
def test_a_rule_that_fails_is_logged_once(new_server):
    """A failure is logged once for all sessions; another rule is logged again.  The enqueuing session gets no
    message."""
    own = new_server("rules")
    with own.connect() as conn, own.connect() as other:
        db.execute(
            conn,
            "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'bad', '1 / payload::int > 0'), aq.subscribe('t', 'good')",
        )
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
def test_what_the_parser_refuses_is_called_a_condition_in_each_language(new_server, monkeypatch):
    """The parser takes a condition for a check constraint, and its messages are translated."""
    monkeypatch.setenv("LANGUAGE", "de")  # of messages in another locale than C
    own = new_server("translated")
    refused = {
        "EXISTS (SELECT 1)": "cannot use subquery in condition",
        "count(*) > 0": "aggregate functions are not allowed in conditions",
        "grouping(priority) > 0": "grouping operations are not allowed in conditions",
        "row_number() OVER () > 0": "window functions are not allowed in conditions",
        "generate_series(1, 2) > 0": "set-returning functions are not allowed in conditions",
    }
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        for locale in ("C", "C.utf8"):
            db.execute(conn, "SELECT set_config('lc_messages', %s, false)", [locale])
            for condition, why in refused.items():
                with pytest.raises(db.Error) as caught:
                    db.execute(conn, "SELECT payload FROM aq.dequeue('q', condition => %s)", [condition])
                assert caught.value.diag.message_primary == f'condition "{condition}" is not valid: {why}', locale
        with pytest.raises(db.Error) as caught:
            db.execute(conn, "SELECT 1 / 0")
        if caught.value.diag.message_primary == "division by zero":
            pytest.skip("the server has no German messages, or the C library does not translate in C.utf8")


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


@pytest.mark.own_tables
@pytest.mark.parametrize("timeout, sqlstate", [("lock_timeout", "55P03"), ("statement_timeout", "57014")])
def test_a_session_that_cannot_compile_a_rule_now_does_not_lose_the_message(server, conn, timeout, sqlstate):
    """The catalog is locked, for example by REINDEX SYSTEM: the enqueue fails, the next one succeeds."""
    db.execute(
        conn,
        "SELECT aq.create_queue('locked', multiple_consumers => true), aq.subscribe('locked', 'a', $$payload @? '$.x ? (@ > 3)'$$), aq.subscribe('locked', 'all')",
    )
    with server.connect() as fresh:
        db.execute(fresh, "SELECT aq.create_queue('warm'), aq.enqueue('warm', '1')")
        fresh.execute(f"SET {timeout} = '200ms'")
        with conn.transaction():
            conn.execute("LOCK TABLE pg_catalog.pg_operator IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(db.Error) as caught:
                put(fresh, "locked", {"x": 7})
        assert caught.value.sqlstate == sqlstate
        fresh.execute(f"RESET {timeout}")
        put(fresh, "locked", {"x": 8})
        assert take(fresh, "locked", "a") == take(fresh, "locked", "all") == [{"x": 8}]
        assert db.value(conn, "SELECT sum(rule_failures) FROM aq.subscribers WHERE queue_name = 'locked'") == 0
        db.execute(fresh, "SELECT aq.drop_queue('locked', true), aq.drop_queue('warm', true)")


@pytest.mark.test_build
@pytest.mark.own_tables
def test_the_sqlstate_says_whose_error_it_is(points_server):
    """An error while a rule is compiled: of the user's text and data, it counts as false; all others fail the enqueue."""
    others = [
        "08006",
        "0B000",
        "25006",
        "25P04",
        "28000",
        "40001",
        "40P01",
        "53000",
        "53100",
        "53200",
        "53400",
        "54001",
        "55000",
        "55006",
        "55P03",
        "57014",
        "57P01",
        "58030",
        "58P01",
        "72000",
        "F0000",
        "HV000",
        "XX000",
        "XX001",
        "XX002",
        "AQ006",
        "AQ118",
    ]
    users = [
        "0A000",
        "20000",
        "21000",
        "22012",
        "22P02",
        "23505",
        "23514",
        "2D000",
        "2F005",
        "38000",
        "3F000",
        "42601",
        "42883",
        "42P01",
        "44000",
        "54000",
        "54023",
        "P0001",
        "P0002",
        "ZZ001",
        "45000",
        "AQ001",
        "AQ018",
    ]
    with points_server.connect() as conn:
        db.execute(
            conn,
            "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'a', 'payload::int > 0'), aq.subscribe('t', 'all')",
        )
        for number, code in enumerate(others + users):
            with points_server.connect() as fresh:
                fresh.execute(f"SET pgaq.test_point = 'rule-compiles:error={code}'")
                if code in others:
                    with pytest.raises(db.Error) as caught:
                        put(fresh, "t", number)
                    assert caught.value.sqlstate == code
                else:
                    put(fresh, "t", number)
        assert sorted(take(conn, "t", "all")) == list(range(len(others), len(others) + len(users)))
        assert take(conn, "t", "a") == []
        assert db.value(conn, "SELECT rule_failures FROM aq.subscribers WHERE consumer = 'a'") == len(users)


@pytest.mark.test_build
@pytest.mark.own_tables
def test_an_error_between_two_rules_leaves_no_subtransaction(points_server):
    """Rules that call built-in functions share a subtransaction: an error outside of them ends it, before a handler ends its own."""
    with points_server.connect() as conn:
        db.execute(
            conn,
            "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'a', 'payload::int > 0'), aq.subscribe('t', 'b')",
        )
        db.execute(conn, "CREATE TABLE written (n integer)")
        conn.execute("BEGIN; SET LOCAL pgaq.test_point = 'rules-matched:error'")
        conn.execute(
            "DO $$ BEGIN INSERT INTO written VALUES (1); PERFORM aq.enqueue('t', '1'); EXCEPTION WHEN OTHERS THEN INSERT INTO written VALUES (2); END $$"
        )
        assert db.value(conn, "SELECT max(n) FROM written") == 2
        conn.execute("SET LOCAL pgaq.test_point = ''")
        put(conn, "t", 2)
        conn.execute("COMMIT")
        assert conn.execute("SELECT n FROM written").fetchall() == [(2,)]
        assert take(conn, "t", "a") == [2] and take(conn, "t", "b") == [2]


# -- rules that are found by the constant that they compare with

VALUES = ["payload->>'a'", "payload ->> 'b'", "(payload->>'a')", "PAYLOAD->'n'->>'a'", "tab.user_data->>'a'", "user_data -> 'n' -> 'n' ->> 'x y'", "properties->>'a'", "tab.user_prop->>'a'",
          "correlation", "corrid", "sender", "payload->>'it''s'", "payload->>'A'", "payload->>'größe'", "\n payload\t->> 'a' "]  # fmt: skip
CONSTANTS = [
    "x",
    "y",
    "",
    " x",
    "X",
    "1",
    "true",
    "null",
    '{"a": "x"}',
    "it''s",
    "größe",
    "R&D",
    "ä",
    "a%",
    "longer than the others, and with 'quotes'".replace("'", "''"),
]
# what looks like it, and is another rule
OTHERS = ["payload->>'a' <> 'x'", "payload->'a' = '\"x\"'", "payload->>'a' = E'x'", "payload->>'a' = 'x' || ''", "payload->>'a' = 'x' OR correlation = 'y'", "payload->>'a' --> 'x'\n= 'y'",
          "payload->>'a' = 'x'\n'y'", "NOT payload->>'a' = 'x'", "payload->>0 = 'x'", "payload->-1->>'a' = 'x'", "'x' = 'x'", "correlation = sender", "payload->>'a' = 'x'::text", "payload#>>'{a}' = 'x'",
          "payload->>'a' = 'C:\\x'", "payload->>'a' IS NULL", "payload->>'a' = NULL", "priority = '1'", "payload->>'a' /* one */ = 'x'", "payload->>'a' = U&'x'", "payload->>'a' >= 'x'"]  # fmt: skip


def some_json(rng: random.Random, depth: int = 0):
    if depth < 3 and rng.random() < 0.7:
        return {key: some_json(rng, depth + 1) for key in ("a", "b", "A", "n", "x y", "it's", "größe") if rng.random() < 0.6}
    return rng.choice(
        [
            "x",
            "y",
            "",
            " x",
            "X",
            1,
            True,
            None,
            "it's",
            "größe",
            "R&D",
            "ä",
            "C:\\x",
            ["x"],
            [{"a": "x"}],
            "longer than the others, and with 'quotes'",
        ]
    )


@pytest.mark.own_tables
def test_rules_found_by_a_constant_match_as_evaluated_ones_do(server, conn, seed):
    """Each rule in two forms; the second, with AND true, is evaluated."""
    rng = random.Random(seed)
    rules = (
        [f"{value} = '{rng.choice(CONSTANTS)}'" for value in VALUES for _ in range(4)]
        + [f" '{rng.choice(CONSTANTS)}'= {value}" for value in VALUES]
        + OTHERS
    )
    db.execute(conn, "SELECT aq.create_queue('pairs', multiple_consumers => true)")
    for number, rule in enumerate(rules):
        conn.execute(
            "SELECT aq.subscribe('pairs', %s, %s), aq.subscribe('pairs', %s, %s)",
            [f"found {number}", rule, f"evaluated {number}", f"({rule}\n) AND true"],
        )
    texts = [None, "x", "y", " x", "it's", "größe", "ä"]
    with server.connect() as session:
        for step in range(60):
            properties = json.dumps({"a": some_json(rng)}) if rng.random() < 0.8 else None
            messages = [json.dumps(some_json(rng)) if rng.random() < 0.95 else None for _ in range(rng.choice([1, 3]))]
            session.execute(
                "SELECT aq.enqueue_array('pairs', %s::text[], properties => %s::text::jsonb, correlation => %s, sender => %s)",
                [messages, properties, rng.choice(texts), rng.choice(texts)],
            )
            if step == 30:  # rules are taken over
                conn.execute(
                    "SELECT aq.subscribe('pairs', 'one more'), aq.alter_subscriber('pairs', 'found 0', 'true'), aq.alter_subscriber('pairs', 'evaluated 0', 'true')"
                )
    matched = 0
    for number, rule in enumerate(rules):
        found, evaluated = (
            [row[0] for row in conn.execute("SELECT msgid FROM aq.dequeue('pairs', %s, max_messages => 1000)", [f"{form} {number}"])]
            for form in ("found", "evaluated")
        )
        assert found == evaluated, f"seed {seed}: {rule}"
        matched += bool(found)
    assert matched > len(rules) / 6  # usually 30 to 60 of 96: most rules are not those that nothing meets
    assert db.value(conn, "SELECT sum(rule_failures) FROM aq.subscribers WHERE queue_name = 'pairs'") == 0
    db.execute(conn, "SELECT aq.drop_queue('pairs', true)")


@pytest.mark.test_build
@pytest.mark.own_tables
def test_rules_cost_nothing_again_while_other_queues_change(points_server):
    """Nothing is read or compiled after changes of other queues, and after a change of the topic only what is new; a rule that is
    found by its constant is never compiled."""
    with points_server.connect() as conn, points_server.connect() as other:
        db.execute(
            conn,
            "SELECT aq.create_queue('t', multiple_consumers => true), aq.create_queue('v', multiple_consumers => true), aq.create_queue('warm')",
        )
        for number in range(20):
            conn.execute(
                "SELECT aq.subscribe('t', %s, %s), aq.subscribe('t', %s, %s)",
                [f"a{number}", f"payload->>'x' = 's{number}'", f"b{number}", f"priority = {number}"],
            )

        def compiled():
            return db.value(other, "SELECT aq.point_reached('rule-compiles')")

        def described():
            """How often this session has read a queue's row; others, such as the worker, read them too."""
            return (
                db.value(
                    conn,
                    "SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_xact_all_tables WHERE relid = 'aq_internal.queue'::regclass",
                )
                or 0
            )

        def enqueue():
            with conn.transaction():
                before = compiled(), described()
                put(conn, "t", {"x": "s3"}, priority=4)
                return compiled() - before[0], described() - before[1]

        with points_server.connect() as conn:
            db.execute(conn, "SELECT aq.enqueue('warm', '1')")
            assert enqueue()[0] == 20
            assert enqueue() == (0, 0)
            for change in ("aq.create_queue('u')", "aq.enqueue('u', '1')", "aq.stop_queue('u')", "aq.drop_queue('u', force => true)", "aq.create_temporary_queue()", "aq.subscribe('v', 'x')",
                           "aq.alter_subscriber('v', 'x', 'true')", "aq.unsubscribe('v', 'x')"):  # fmt: skip
                other.execute(f"SELECT {change}")
                assert enqueue() == (0, 0), change
            other.execute("SELECT aq.subscribe('t', 'c', 'priority > 100')")
            assert enqueue() == (1, 1)
            other.execute("SELECT aq.alter_subscriber('t', 'b4', 'priority < 100')")
            assert enqueue() == (1, 1)
            other.execute("SELECT aq.alter_subscriber('t', 'a3', $$payload->>'x' = 's4'$$)")
            assert enqueue() == (0, 1)
        assert len(take(other, "t", "a3")) == 12 and len(take(other, "t", "b4")) == 13 and take(other, "t", "a4") == []
