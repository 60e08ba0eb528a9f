"""Notification: registered procedures, which background workers call as the role that registered."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from conftest import server_with_points, until
from pgaq import db

SETTINGS = {
    "pgaq.notification_retry_delay": "20ms",
    "pgaq.notification_failures": "3",
    "max_worker_processes": "20",
    "max_prepared_transactions": "10",
}

pytestmark = pytest.mark.own_tables

SETUP = """
CREATE ROLE ann LOGIN;
CREATE ROLE bob LOGIN;
CREATE SCHEMA n AUTHORIZATION ann;
GRANT USAGE ON SCHEMA n TO bob;
CREATE TABLE n.seen (number serial, role name DEFAULT current_user, what text, count integer);
CREATE TABLE n.settings (fail boolean, pause float8);
INSERT INTO n.settings VALUES (false, 0);
GRANT ALL ON n.seen, n.settings TO PUBLIC;
GRANT ALL ON SEQUENCE n.seen_number_seq TO PUBLIC;
-- notes the messages, and leaves them
CREATE PROCEDURE n.note(n aq.notification) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO n.seen (what, count) VALUES (coalesce(convert_from(n.payload, 'UTF8'), array_to_string(n.msgids, ',')), n.message_count);
END $$;
-- dequeues the message
CREATE PROCEDURE n.take(n aq.notification) LANGUAGE plpgsql AS $$
DECLARE
    taken jsonb := (SELECT d.payload FROM aq.dequeue(n.name, consumer => n.consumer, msgid => n.msgids[1]) d);
BEGIN
    INSERT INTO n.seen (what, count) VALUES (taken::text, n.message_count);
    IF (SELECT fail FROM n.settings) THEN
        RAISE 'it fails';
    END IF;
    PERFORM pg_sleep((SELECT pause FROM n.settings));
END $$;
"""


@pytest.fixture(scope="module", autouse=True)
def setup(server):
    server.expect_log("terminating background worker|cancel")
    with server.connect() as conn:
        conn.execute(SETUP)


@pytest.fixture
def jobs(server):
    """A queue that ann and bob may dequeue from."""
    with server.connect() as conn:
        conn.execute(
            "SELECT aq.create_queue('jobs', retry_delay => '0'); SELECT aq.grant_queue('jobs', 'ann', 'dequeue'), aq.grant_queue('jobs', 'bob', 'dequeue')"
        )
        conn.execute("TRUNCATE n.seen; UPDATE n.settings SET fail = false, pause = 0")
    yield "jobs"
    with server.connect() as conn:
        conn.execute("SELECT aq.unregister(registration_id) FROM aq.registrations")
        conn.execute("SELECT aq.drop_queue('jobs', force => true)")


@pytest.fixture
def alarms(server, jobs):
    """A non-persistent queue for which ann may be notified."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('alarms', queue_type => 'non_persistent'); SELECT aq.grant_queue('alarms', 'ann', 'dequeue')")
    yield "alarms"
    with server.connect() as conn:
        conn.execute("SELECT aq.drop_queue('alarms')")


def seen(conn):
    return [row[0] for row in conn.execute("SELECT what FROM n.seen ORDER BY number").fetchall()]


def put(conn, *payloads, queue="jobs", **options):
    for payload in payloads:
        conn.execute("SELECT aq.enqueue(%s, %s::text::jsonb)", (queue, str(payload)))


def noted(conn, *what):
    try:
        until(lambda: sorted(seen(conn)) == sorted(map(str, what)), "the procedure to have seen them")
    except BaseException:
        pytest.fail(f"seen {seen(conn)}, not {what}; {conn.execute('SELECT role, status, last_error FROM aq.registrations').fetchall()}")


def test_a_procedure_takes_each_message_as_the_role_that_registered(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take')")
        put(conn, 1, 2, 3)
        noted(conn, 1, 2, 3)
        assert db.value(conn, "SELECT array_agg(DISTINCT role::text) FROM n.seen") == ["ann"]
        assert db.value(conn, "SELECT count(*) FROM aq.browse('jobs')") == 0


def test_messages_that_stay_are_notified_once_and_failed_ones_again(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
        put(conn, 1, 2)
        noted(conn, 1, 2)
        put(conn, 3)
        noted(conn, 1, 2, 3)
        conn.execute("BEGIN; SELECT aq.dequeue('jobs', condition => 'payload = ''2''::jsonb'); ROLLBACK")
        noted(conn, 1, 2, 2, 3)
        put(conn, 4)
        noted(conn, 1, 2, 2, 3, 4)


def test_an_uncommitted_or_delayed_message_is_notified_when_it_is_ready(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take')")
        conn.execute("SELECT aq.enqueue('jobs', '2', delay => '1 second')")
        with server.connect(autocommit=False) as other:
            put(other, 1)
            put(conn, 3)
            noted(conn, 2, 3)
            other.commit()
        noted(conn, 1, 2, 3)


def test_each_consumer_of_a_topic_has_its_own(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute("SELECT aq.create_queue('news', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('news', c) FROM unnest(ARRAY['a', 'b']) c")
        conn.execute("SELECT aq.grant_queue('news', 'ann', 'dequeue')")
        ann.execute("SELECT aq.register('news', 'plsql://n.take', consumer => 'a')")
        put(conn, 1, queue="news")
        noted(conn, 1)
        assert conn.execute("SELECT payload FROM aq.dequeue('news', 'a')").fetchall() == []
        assert conn.execute("SELECT payload FROM aq.dequeue('news', 'b')").fetchall() == [(1,)]
        conn.execute("SELECT aq.drop_queue('news', force => true)")
        assert db.value(conn, "SELECT count(*) FROM aq.registrations") == 0


def test_a_failing_procedure_is_retried_then_disabled_and_others_go_on(server, jobs):
    server.expect_log("registration .* was disabled")
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        conn.execute("UPDATE n.settings SET fail = true")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take')")
        bob.execute("SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
        put(conn, 1)
        until(
            lambda: db.value(conn, "SELECT status FROM aq.registrations WHERE role = 'ann'") == "disabled",
            "the registration to be disabled",
        )
        assert conn.execute("SELECT failures, last_error FROM aq.registrations WHERE role = 'ann'").fetchone() == (3, "it fails")
        until(lambda: "1" in seen(conn), "bob's procedure to have seen it")
        # another registration enables it again
        conn.execute("UPDATE n.settings SET fail = false; TRUNCATE n.seen")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take')")
        until(lambda: db.value(conn, "SELECT count(*) FROM n.seen WHERE role = 'ann'") == 1, "ann's procedure to have taken it")
        assert conn.execute("SELECT status, failures FROM aq.registrations WHERE role = 'ann'").fetchone() == ("enabled", 0)


def test_errors_of_the_server_do_not_disable_a_registration(server, jobs):
    """The limit is three failures."""
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("CREATE PROCEDURE n.full(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.full')")
        put(conn, 1)
        until(lambda: db.value(conn, "SELECT failures FROM aq.registrations") > 3, "more failures than the limit")
        assert conn.execute("SELECT status, last_error FROM aq.registrations").fetchone() == ("retrying", "disk_full")
        ann.execute("SELECT aq.unregister(registration_id) FROM aq.registrations; DROP PROCEDURE n.full")


def test_a_procedure_that_loops_is_cancelled_and_ended(server, jobs):
    server.expect_log("registration .* was disabled|statement timeout")
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute(
            "CREATE PROCEDURE n.loops(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN LOOP BEGIN PERFORM pg_sleep(100); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$"
        )
        conn.execute("ALTER SYSTEM SET pgaq.notification_timeout = '50ms'")
        server.reload()
        try:
            ann.execute("SELECT aq.register('jobs', 'plsql://n.loops')")
            put(conn, 1)
            until(
                lambda: (db.value(conn, "SELECT last_error FROM aq.registrations") or "").startswith("the notifier ended"),
                "the process to be ended",
            )
        finally:
            conn.execute("ALTER SYSTEM RESET pgaq.notification_timeout")
            server.reload()
            ann.execute("SELECT aq.unregister(registration_id) FROM aq.registrations; DROP PROCEDURE n.loops")


def test_a_procedure_that_waits_for_messages_is_cancelled(server, jobs):
    """aq_jms.receive suspends the time limits of a client's statement, not that of a notifier."""
    server.expect_log("registration .* was disabled|statement timeout")
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute("SELECT aq.create_queue('idle'); SELECT aq.grant_queue('idle', 'ann', 'dequeue')")
        call = "CALL aq_jms.receive(ARRAY['idle'], ARRAY[NULL], ARRAY[NULL], ARRAY[1], '1 h', messages => NULL)"
        ann.execute(f"CREATE PROCEDURE n.waits(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN EXECUTE $c${call}$c$; END $$")
        conn.execute("ALTER SYSTEM SET pgaq.notification_timeout = '50ms'")
        server.reload()
        try:
            ann.execute("SELECT aq.register('jobs', 'plsql://n.waits')")
            put(conn, 1)
            error = "SELECT last_error FROM aq.registrations WHERE last_error IS NOT NULL"
            until(lambda: db.value(conn, error), "the end of the call")
            assert db.value(conn, error) == "canceling statement due to statement timeout"
        finally:
            conn.execute("ALTER SYSTEM RESET pgaq.notification_timeout")
            server.reload()
            ann.execute("SELECT aq.unregister(registration_id) FROM aq.registrations; DROP PROCEDURE n.waits")
            conn.execute("SELECT aq.drop_queue('idle', force => true)")


def test_a_role_without_the_right_or_the_procedure_is_not_served(server, jobs):
    server.expect_log("registration .* was disabled")
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.note')")
        bob.execute("SELECT aq.register('jobs', 'plsql://n.note')")
        conn.execute("SELECT aq.revoke_queue('jobs', 'ann', 'dequeue')")
        conn.execute("REVOKE EXECUTE ON PROCEDURE n.note FROM PUBLIC")
        put(conn, 1)
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.registrations WHERE status = 'disabled'") == 2, "both to be disabled")
        assert conn.execute("SELECT role, last_error FROM aq.registrations ORDER BY role").fetchall() == [
            ("ann", 'queue "jobs" does not exist'),
            ("bob", "permission denied for procedure n.note"),
        ]
        assert seen(conn) == []
        conn.execute("GRANT EXECUTE ON PROCEDURE n.note TO PUBLIC")


def test_an_address_is_served_only_with_the_right_to_enqueue_and_while_a_superuser_owns_the_queue(server, jobs):
    """Each time the registration is disabled; registered again, it sends what it had not sent, once."""
    server.expect_log("registration .* was disabled")
    register = "SELECT aq.register('jobs', 'https://example.org/', with_payload => true)"
    query = (
        "SELECT string_agg(payload -> 'body' ->> 'payload', ' ' ORDER BY payload -> 'body' ->> 'payload') FROM aq.browse('pgaq_outgoing')"
    )
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute("SELECT aq.create_queue('pgaq_outgoing'), aq.grant_queue('pgaq_outgoing', 'ann', 'enqueue')")
        try:
            ann.execute(register)
            put(conn, 0)
            until(lambda: db.value(conn, query) == "0", "the first notification")
            for number, (change, back, error) in enumerate((
                ("aq.revoke_queue('pgaq_outgoing', 'ann', 'enqueue')", "aq.grant_queue('pgaq_outgoing', 'ann', 'enqueue')", 'queue "pgaq_outgoing" does not exist'),
                ("aq.alter_queue('pgaq_outgoing', new_owner => 'bob')", "aq.alter_queue('pgaq_outgoing', new_owner => 'postgres')", 'queue "pgaq_outgoing" belongs to role "bob", which is not a superuser'),
            ), 1):  # fmt: skip
                conn.execute(f"SELECT {change}")
                put(conn, number)
                until(lambda: db.value(conn, "SELECT status FROM aq.registrations") == "disabled", "the registration to be disabled")
                assert db.value(conn, "SELECT last_error FROM aq.registrations") == error
                conn.execute(f"SELECT {back}")
                ann.execute(register)
                wanted = " ".join(map(str, range(number + 1)))
                until(lambda: db.value(conn, query) == wanted, "the notification")
        finally:
            conn.execute("SELECT aq.drop_queue('pgaq_outgoing', force => true)")


def test_another_role_cannot_put_its_procedure_in_the_place_of_a_registered_one(server, jobs):
    """As an attacker: bob may create procedures in the schema, and gets one of the registered name there."""
    server.expect_log("registration .* was disabled")
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        conn.execute("CREATE SCHEMA s; GRANT ALL ON SCHEMA s TO ann, bob")
        ann.execute("CREATE PROCEDURE s.p(n aq.notification) LANGUAGE sql AS $$ SELECT $$")
        ann.execute("SELECT aq.register('jobs', 'plsql://s.p')")
        ann.execute("DROP PROCEDURE s.p")
        bob.execute("CREATE PROCEDURE s.p(n aq.notification) LANGUAGE sql AS $$ INSERT INTO n.seen (what) VALUES ('stolen') $$")
        put(conn, 1)
        until(lambda: db.value(conn, "SELECT status FROM aq.registrations") == "disabled", "the registration to be disabled")
        assert db.value(conn, "SELECT last_error FROM aq.registrations") == "owner of procedure s.p has changed since it was registered"
        assert seen(conn) == []
        conn.execute("DROP SCHEMA s CASCADE")


def test_a_procedure_that_is_made_after_it_was_registered(server, jobs):
    """By dbms_aq.register: until then the calls fail, and only the role, or one with its privileges, can make it."""
    server.expect_log("registration .* was disabled")
    register = "CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('jobs', 1, 'plsql://early.p')], 1)"
    status = "SELECT status, last_error FROM aq.registrations"
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        ann.execute(register)
        put(conn, 1)
        until(lambda: conn.execute(status).fetchall() == [("disabled", 'schema "early" does not exist')], "the first calls to fail")
        conn.execute("CREATE SCHEMA early; GRANT ALL ON SCHEMA early TO ann, bob")
        ann.execute(register)
        until(
            lambda: conn.execute(status).fetchall() == [("disabled", "procedure early.p to be called by notification does not exist")],
            "further ones to fail",
        )
        bob.execute("CREATE PROCEDURE early.p(n aq.notification) LANGUAGE sql AS $$ INSERT INTO n.seen (what) VALUES ('stolen') $$")
        conn.execute("UPDATE aq_internal.registration SET status = 'enabled', failures = 0, next_at = NULL")
        put(conn, 2)
        until(
            lambda: conn.execute(status).fetchall() == [("disabled", "owner of procedure early.p has changed since it was registered")],
            "the foreign one to be refused",
        )
        assert seen(conn) == []
        bob.execute("DROP PROCEDURE early.p")
        ann.execute("CREATE PROCEDURE early.p(n aq.notification) LANGUAGE sql AS $$ INSERT INTO n.seen (what) VALUES ('made') $$")
        conn.execute("UPDATE aq_internal.registration SET status = 'enabled', failures = 0, next_at = NULL")
        put(conn, 3)
        until(lambda: "made" in str(seen(conn)), "it to be called")
        ann.execute("SELECT aq.unregister(registration_id) FROM aq.registrations")
        conn.execute("DROP SCHEMA early CASCADE")


@pytest.mark.parametrize(
    "attempt",
    [
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "RESET SESSION AUTHORIZATION",
        "SELECT set_config('role', 'postgres', false)",
    ],
)
def test_a_procedure_cannot_become_another_role(server, jobs, attempt):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute(f"""CREATE OR REPLACE PROCEDURE n.climbs(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN
            BEGIN EXECUTE $q${attempt}$q$; EXCEPTION WHEN OTHERS THEN NULL; END;
            INSERT INTO n.seen (what) VALUES (current_user || ' ' || session_user); END $$""")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.climbs')")
        put(conn, 1)
        noted(conn, "ann ann")
        ann.execute("DROP PROCEDURE n.climbs")


def test_names_in_a_procedure_are_not_looked_up_in_other_roles_schemas(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute("ALTER ROLE ann SET search_path = evil, pg_catalog; CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO ann")
        conn.execute("CREATE FUNCTION evil.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'stolen' $$")
        ann.execute(
            "CREATE PROCEDURE n.lowers(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO n.seen (what) VALUES (lower('FINE')); END $$"
        )
        ann.execute("SELECT aq.register('jobs', 'plsql://n.lowers')")
        put(conn, 1)
        noted(conn, "fine")
        conn.execute("ALTER ROLE ann RESET search_path; DROP SCHEMA evil CASCADE; DROP PROCEDURE n.lowers")


def test_a_session_state_of_a_call_does_not_stay(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute(
            "CREATE PROCEDURE n.leaves(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(77); CREATE TEMP TABLE IF NOT EXISTS t (i integer); PERFORM set_config('my.setting', 'x', false); INSERT INTO n.seen (what) VALUES ('done'); END $$"
        )
        ann.execute("SELECT aq.register('jobs', 'plsql://n.leaves')")
        put(conn, 1)
        noted(conn, "done")
        until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0, "the lock to be released")
        ann.execute("DROP PROCEDURE n.leaves")


def test_an_unregistered_or_dropped_queue_is_not_notified(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        first = db.value(ann, "SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
        second = db.value(ann, "SELECT aq.register('news', 'plsql://n.note', namespace => 'anonymous')")
        assert db.value(ann, "SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)") == first
        put(conn, 1)
        noted(conn, 1)
        ann.execute("SELECT aq.unregister(%s)", [first])
        put(conn, 2)
        conn.execute("SELECT aq.post('news', 'posted')")
        noted(conn, 1, "posted")
        assert conn.execute("SELECT registration_id FROM aq.registrations").fetchall() == [(second,)]


def test_once_and_timeout_end_a_registration(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.note', once => true, with_payload => true)")
        ann.execute("SELECT aq.register('other', 'plsql://n.note', namespace => 'anonymous', timeout => '1 second')")
        put(conn, 1, 2)
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.registration") == 0, "both to end")
        assert seen(conn) == ["1"]


def test_groups_by_time(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.note', group_time => '1 second', group_repeat => 1)")
        with conn.transaction():
            put(conn, 1, 2, 3)
        until(lambda: len(seen(conn)) == 1, "the summary")
        assert db.value(conn, "SELECT count FROM n.seen") == 3
        assert db.value(conn, "SELECT what FROM n.seen").count(",") == 2
        put(conn, 4, 5)
        until(lambda: len(seen(conn)) == 3, "a call for each message")
        assert db.value(conn, "SELECT array_agg(count ORDER BY number) FROM n.seen") == [3, 1, 1]


def test_a_prepared_transaction_is_notified_when_it_is_committed(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        with server.connect() as other:
            other.execute("BEGIN; SELECT aq.enqueue('jobs', '1'); PREPARE TRANSACTION 'message'")
            other.execute(
                "SET SESSION AUTHORIZATION ann; BEGIN; SELECT aq.register('jobs', 'plsql://n.note', with_payload => true); PREPARE TRANSACTION 'registration'"
            )
        with server.connect() as other:
            other.execute("COMMIT PREPARED 'registration'")
            put(conn, 2)
            noted(conn, 2)
            other.execute("COMMIT PREPARED 'message'")
        noted(conn, 1, 2)


def test_posted_notifications_commit_with_their_transaction(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('news', 'plsql://n.note', namespace => 'anonymous', context => 'x')")
        conn.execute("BEGIN; SELECT aq.post('news', 'lost'); ROLLBACK")
        conn.execute("BEGIN; SELECT aq.post('news', 'prepared'); PREPARE TRANSACTION 'p'")
        assert db.value(conn, "SELECT aq.post('news', 'kept')") == 1
        noted(conn, "kept")
        conn.execute("COMMIT PREPARED 'p'")
        noted(conn, "kept", "prepared")


def test_messages_of_a_non_persistent_queue_commit_with_their_transaction(server, alarms):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('alarms', 'plsql://n.note')")
        conn.execute("BEGIN; SELECT aq.enqueue('alarms', '0'); ROLLBACK")
        conn.execute("BEGIN; SELECT aq.enqueue('alarms', '3'); PREPARE TRANSACTION 'p'")
        conn.execute(
            "BEGIN; SELECT aq.enqueue('alarms', '1'); SAVEPOINT s; SELECT aq.enqueue('alarms', '0'); ROLLBACK TO s; SELECT aq.enqueue('alarms', '2'); COMMIT"
        )
        noted(conn, 1, 2)
        assert seen(conn) == ["1", "2"]
        conn.execute("COMMIT PREPARED 'p'")
        noted(conn, 1, 2, 3)


def test_messages_of_a_stopped_non_persistent_queue_wait_for_its_start(server, alarms):
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('alarms', 'plsql://n.note')")
        conn.execute("SELECT aq.stop_queue('alarms', enqueue => false)")
        put(conn, 1, queue="alarms")
        # the notifier has looked at all registrations when it has called this one
        ann.execute("SELECT aq.register('news', 'plsql://n.note', namespace => 'anonymous')")
        conn.execute("SELECT aq.post('news', 'news')")
        noted(conn, "news")
        conn.execute("SELECT aq.start_queue('alarms')")
        noted(conn, "news", 1)


def test_messages_of_a_paused_queue_wait_until_it_is_resumed(server, jobs):
    """A procedure, or a program, that takes the message of its notification would not find it."""
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take'), aq.register('jobs', 'client://')")
        conn.execute("SELECT aq.pause('jobs')")
        put(conn, 1)
        # the notifier has looked at all registrations when it has called this one
        ann.execute("SELECT aq.register('news', 'plsql://n.note', namespace => 'anonymous')")
        conn.execute("SELECT aq.post('news', 'news')")
        noted(conn, "news")
        assert ann.execute("SELECT * FROM aq.notifications()").fetchall() == []
        ann.execute("SELECT aq.unregister(registration_id) FROM aq.registrations WHERE callback LIKE 'client%'")
        conn.execute("SELECT aq.resume('jobs')")
        noted(conn, "news", 1)


def test_messages_of_a_non_persistent_queue_wait_for_a_failing_procedure(server, alarms):
    server.expect_log("registration .* was disabled")
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute(
            "CREATE PROCEDURE n.later(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN CALL n.note(n); IF (SELECT fail FROM n.settings) THEN RAISE 'it fails'; END IF; END $$"
        )
        conn.execute("UPDATE n.settings SET fail = true")
        ann.execute("SELECT aq.register('alarms', 'plsql://n.later')")
        put(conn, 1, 2, queue="alarms")
        until(lambda: db.value(conn, "SELECT status = 'disabled' FROM aq.registrations"), "the registration to be disabled")
        put(conn, 3, queue="alarms")  # without a registration
        conn.execute("UPDATE n.settings SET fail = false")
        ann.execute("SELECT aq.register('alarms', 'plsql://n.later')")
        put(conn, 4, queue="alarms")
        noted(conn, 1, 2, 4)
        ann.execute("DROP PROCEDURE n.later")


def test_oracles_form(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute(
            "CREATE SCHEMA ora; GRANT USAGE ON SCHEMA ora TO ann; CALL dbms_aqadm.create_sharded_queue('ora.orders', queue_payload_type => 'RAW'); CALL dbms_aqadm.start_queue('ora.orders')"
        )
        conn.execute("CALL dbms_aqadm.grant_queue_privilege('ALL', 'ora.orders', 'ann')")
        ann.execute("""CREATE PROCEDURE n.callback(context bytea, reginfo sys.aq$_reg_info, descr sys.aq$_descriptor, payload bytea, payloadl numeric) LANGUAGE plpgsql AS $$
            DECLARE
                message bytea;
                properties dbms_aq.message_properties_t;
                id uuid;
            BEGIN
                CALL dbms_aq.dequeue(descr.queue_name, dbms_aq.dequeue_options_t(msgid => descr.msg_id, wait => 0), properties, message, id);
                INSERT INTO n.seen (what) VALUES (concat_ws(' ', convert_from(context, 'UTF8'), reginfo.name, reginfo.namespace, descr.queue_name,
                    (descr.msg_prop).priority, convert_from(message, 'UTF8'), convert_from(payload, 'UTF8'), payloadl));
            END $$""")
        ann.execute(
            "CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('ora.orders', dbms_aq.namespace_aq(), 'plsql://n.callback?PR=0', 'ctx', 3, 0)], 1)"
        )
        conn.execute("CALL dbms_aq.enqueue('ora.orders', NULL, dbms_aq.message_properties_t(priority => 4), 'hello'::bytea, NULL)")
        noted(conn, 'ctx "ORA"."ORDERS" 1 "ORA"."ORDERS" 4 hello hello 5')
        ann.execute("CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('\"ORA\".\"ORDERS\"', 1, 'plsql://n.callback?PR=0')], 1)")
        assert db.value(conn, "SELECT count(*) FROM sys.dba_subscr_registrations") == 0
        conn.execute("DROP PROCEDURE n.callback; CALL dbms_aqadm.drop_sharded_queue('ora.orders', force => true); DROP SCHEMA ora")


def test_a_dropped_role_and_one_that_cannot_log_in_are_disabled(server, jobs):
    with server.connect() as conn:
        for role in ("carl", "dora"):
            conn.execute(f"CREATE ROLE {role} LOGIN; SELECT aq.grant_queue('jobs', '{role}', 'dequeue'); GRANT USAGE ON SCHEMA n TO {role}")
            with server.connect(user=role) as other:
                other.execute("SELECT aq.register('jobs', 'plsql://n.note')")
        until(
            lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq notifier' AND state = 'active'") == 0,
            "the notifiers to be idle",
        )
        conn.execute("DROP OWNED BY carl; DROP ROLE carl; ALTER ROLE dora NOLOGIN")
        conn.execute("SELECT aq.post('nobody')")
        conn.execute(
            "SET SESSION AUTHORIZATION bob; SELECT aq.register('x', 'plsql://n.note', namespace => 'anonymous'); RESET SESSION AUTHORIZATION"
        )
        until(
            lambda: (
                db.value(conn, "SELECT array_agg(status ORDER BY role) FROM aq.registrations WHERE namespace = 'queue'")
                == ["disabled", "disabled"]
            ),
            "both to be disabled",
        )
        assert conn.execute("SELECT role FROM aq.registrations WHERE namespace = 'queue' ORDER BY role").fetchall() == [("",), ("dora",)]
        conn.execute("DROP OWNED BY dora; DROP ROLE dora")


def test_a_notifier_that_is_killed_is_started_again(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann:
        conn.execute("UPDATE n.settings SET pause = 1000")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.take')")
        put(conn, 1)
        pid = until(
            lambda: db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq notifier' AND wait_event = 'PgSleep'"),
            "the procedure to run",
        )
        conn.execute("UPDATE n.settings SET pause = 0")
        os.kill(pid, signal.SIGTERM)
        noted(conn, 1)


def test_idle_notifiers_make_place_for_other_roles_and_end(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        conn.execute("ALTER SYSTEM SET pgaq.notifiers = 1")
        server.reload()
        try:
            ann.execute("SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
            bob.execute("SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
            put(conn, 1)
            noted(conn, 1, 1)
            put(conn, 2)
            noted(conn, 1, 1, 2, 2)
            assert db.value(conn, "SELECT count(*) FROM aq.notifiers WHERE state <> 'backing off'") <= 1
            conn.execute("ALTER SYSTEM SET pgaq.notifier_idle_timeout = '100ms'")
            server.reload()
            until(
                lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq notifier'") == 0,
                "the notifiers to end",
            )
            put(conn, 3)
            noted(conn, 1, 1, 2, 2, 3, 3)
        finally:
            conn.execute("ALTER SYSTEM RESET ALL")
            server.reload()


def test_a_restart_keeps_what_was_notified_and_finds_what_was_not(new_server):
    server = new_server("notified", **SETTINGS)
    with server.connect() as conn:
        conn.execute(SETUP)
        conn.execute("SELECT aq.create_queue('jobs'); SELECT aq.grant_queue('jobs', 'ann', 'dequeue')")
        conn.execute(
            "SET SESSION AUTHORIZATION ann; SELECT aq.register('jobs', 'plsql://n.note', with_payload => true); RESET SESSION AUTHORIZATION"
        )
        put(conn, 1, 2)
        noted(conn, 1, 2)
        conn.execute("BEGIN; SELECT aq.enqueue('jobs', '3'); PREPARE TRANSACTION 'p'")
    server.restart()
    with server.connect() as conn:
        conn.execute("COMMIT PREPARED 'p'")
        noted(conn, 1, 2, 3)
        # what a non-persistent queue has passed on is kept, too
        conn.execute("SELECT aq.create_queue('alarms', queue_type => 'non_persistent'); SELECT aq.grant_queue('alarms', 'ann', 'dequeue')")
        conn.execute("SET SESSION AUTHORIZATION ann; SELECT aq.register('alarms', 'plsql://n.note'); RESET SESSION AUTHORIZATION")
        conn.execute("SELECT aq.stop_queue('alarms', enqueue => false)")
        put(conn, 5, queue="alarms")
    server.kill()
    server.start()
    with server.connect() as conn:
        put(conn, 4)
        noted(conn, 1, 2, 3, 4)
        conn.execute("SELECT aq.start_queue('alarms')")
        noted(conn, 1, 2, 3, 4, 5)


def test_a_crash_neither_loses_nor_doubles_what_is_sent_to_an_address(new_server):
    server = new_server("sent", **SETTINGS)
    sent = "SELECT array_agg(payload -> 'body' ->> 'payload' ORDER BY (payload -> 'body' ->> 'payload')::int) FROM aq.browse('pgaq_outgoing', max_messages => 1000)"
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('jobs'), aq.create_queue('pgaq_outgoing')")
        conn.execute("SELECT aq.register('jobs', 'https://example.org/', with_payload => true)")
        put(conn, *range(50))
        until(lambda: db.value(conn, sent), "the first notifications")
    server.kill()
    server.start()
    with server.connect() as conn:
        put(conn, 50)
        until(lambda: "50" in db.value(conn, sent), "the last notification")
        assert db.value(conn, sent) == [str(number) for number in range(51)]


def test_a_promoted_standby_notifies(new_server, throw_away):
    server = new_server("primary", **SETTINGS)
    with server.connect() as conn:
        conn.execute(SETUP)
        conn.execute("SELECT aq.create_queue('jobs'); SELECT aq.grant_queue('jobs', 'ann', 'dequeue')")
        conn.execute(
            "SET SESSION AUTHORIZATION ann; SELECT aq.register('jobs', 'plsql://n.note', with_payload => true); RESET SESSION AUTHORIZATION"
        )
        put(conn, 1)
        noted(conn, 1)
    standby = throw_away(server.basebackup("promoted"))
    standby.expect_log(r"WARNING:.*standby")
    standby.start()
    with server.connect() as conn:
        conn.execute("BEGIN; SELECT aq.enqueue('jobs', '2'); PREPARE TRANSACTION 'p'")
    standby.wait_for_replay(server)
    server.stop()
    standby.promote()
    with standby.connect() as conn:
        conn.execute("COMMIT PREPARED 'p'")
        noted(conn, 1, 2)


def test_a_procedure_that_unregisters_itself_or_commits(server, jobs):
    server.expect_log("registration .* was disabled")
    with server.connect() as conn, server.connect(user="ann") as ann:
        ann.execute(
            "CREATE PROCEDURE n.ends(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN PERFORM aq.unregister(n.registration_id); INSERT INTO n.seen (what) VALUES ('ended'); END $$"
        )
        ann.execute("CREATE PROCEDURE n.commits(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$")
        ann.execute("SELECT aq.register('jobs', 'plsql://n.ends'), aq.register('jobs', 'plsql://n.commits')")
        put(conn, 1)
        noted(conn, "ended")
        until(
            lambda: (
                conn.execute("SELECT callback, status, last_error FROM aq.registrations").fetchall()
                == [("plsql://n.commits", "disabled", "invalid transaction termination")]
            ),
            "the other one to be disabled",
        )
        ann.execute("DROP PROCEDURE n.ends; DROP PROCEDURE n.commits")


def test_a_busy_role_leaves_its_place_to_another_one(server, jobs):
    with server.connect() as conn, server.connect(user="ann") as ann, server.connect(user="bob") as bob:
        conn.execute("ALTER SYSTEM SET pgaq.notifiers = 1")
        server.reload()
        try:
            conn.execute("UPDATE n.settings SET pause = 0.2")
            conn.execute("SELECT aq.create_queue('many'); SELECT aq.grant_queue('many', 'ann', 'dequeue')")
            put(conn, *range(10, 60), queue="many")
            ann.execute("SELECT aq.register('many', 'plsql://n.take')")
            until(lambda: seen(conn), "ann's calls to begin")
            bob.execute("SELECT aq.register('jobs', 'plsql://n.note', with_payload => true)")
            put(conn, 1)
            until(lambda: "1" in seen(conn), "bob's procedure to be called")
            assert len(seen(conn)) < 51
            conn.execute("UPDATE n.settings SET pause = 0")
            noted(conn, 1, *range(10, 60))
        finally:
            conn.execute("SELECT aq.drop_queue('many', force => true)")
            conn.execute("ALTER SYSTEM RESET ALL")
            server.reload()


@pytest.mark.test_build
@pytest.mark.parametrize(
    "point",
    [
        "notifier-called",
        *(
            pytest.param(point, marks=pytest.mark.long)
            for point in ("notifier-marked", "notifier-watches", "notifier-call", "notifier-committed")
        ),
    ],
)
def test_a_crash_at_a_point_loses_no_notification(monkeypatch, library, point):
    with server_with_points(monkeypatch, library, "notifier", **SETTINGS) as server:
        with server.connect() as conn:
            conn.execute(SETUP)
            conn.execute("SELECT aq.create_queue('jobs'); SELECT aq.grant_queue('jobs', 'ann', 'dequeue')")
            conn.execute("SET SESSION AUTHORIZATION ann; SELECT aq.register('jobs', 'plsql://n.take'); RESET SESSION AUTHORIZATION")
            conn.execute("SELECT aq.point_arm(%s, 'crash', 0)", [point])
            enqueued = set()
            with pytest.raises(psycopg.OperationalError):
                for number in (1, 2):
                    put(conn, number)
                    enqueued.add(str(number))
                until(lambda: db.value(conn, "SELECT false"), "the crash")
        until(lambda: can_connect(server), "the server")
        with server.connect() as conn:
            put(conn, 3)
            enqueued.add("3")
            # the answer to the enqueue of another one may be lost
            until(
                lambda: db.value(conn, "SELECT count(*) FROM aq.browse('jobs')") == 0 and enqueued <= set(seen(conn)),
                "the messages to be taken",
            )
            assert len(set(seen(conn))) == len(seen(conn))


def can_connect(server):
    try:
        with server.connect(connect_timeout="5") as conn:
            return db.value(conn, "SELECT true")
    except db.OperationalError:
        return False
