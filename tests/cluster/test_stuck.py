"""Code that cannot be interrupted keeps its own role waiting, and no other one: the process that runs it is replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, arrived, put, server_with_points, until
from pgaq import db

SETTINGS = {
    "pgaq.turn_timeout": "250 ms",
    "pgaq.notification_timeout": "100 ms",
    "pgaq.notifiers": "1",
    "pgaq.immediate_helpers": "1",
    "max_worker_processes": "20",
}

# code of role evil, which waits at a test point as a built-in function does that never looks at interrupts
SETUP = """
    CREATE ROLE evil LOGIN; CREATE ROLE good LOGIN;
    GRANT aq_user_role TO evil, good;
    GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO evil, good;
    CREATE SCHEMA evil AUTHORIZATION evil; CREATE SCHEMA good AUTHORIZATION good;
    CREATE TABLE public.seen (role name DEFAULT current_user); GRANT ALL ON public.seen TO PUBLIC;
    SET ROLE evil;
    SELECT aq.create_queue('evil', multiple_consumers => true);
    SELECT aq.subscribe('evil', 's', rule => 'aq.point_uninterrupted(''stuck'')');
    CREATE PROCEDURE evil.call(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN PERFORM aq.point_uninterrupted('stuck'); END $$;
    SET ROLE good;
    CREATE PROCEDURE good.call(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen DEFAULT VALUES; END $$;
    RESET ROLE;
"""


@pytest.fixture
def server(monkeypatch, library):
    with (
        server_with_points(monkeypatch, library, "stuck", expected="cannot be interrupted|terminat|canceling", **SETTINGS) as made,
        made.connect() as conn,
    ):
        conn.execute(SETUP)
        conn.execute("SELECT aq.point_hold('stuck')")
        yield made


def let_go(conn, processes):
    """The function returns: the process ends, and does not take the entry of its replacement with it."""
    conn.execute("SELECT aq.point_release('stuck')")
    until(lambda: db.value(conn, f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN ({processes})"), "the end of the process")


@pytest.mark.parametrize("what", ["schedules", "propagations"])
def test_turns(server, what):
    """Messages of another role go on; the error is shown; afterwards the role has turns again, and the failure counts."""
    with server.connect() as conn, server.connect(user="evil") as evil, server.connect(user="good") as good:
        good.execute("SELECT aq.create_queue('good')")
        if what == "schedules":
            evil.execute("SELECT aq.schedule('evil' || n, 'evil', '1', every => '1 second') FROM generate_series(1, 2) n")
            good.execute("SELECT aq.schedule('good', 'good', '1', every => '1 second')")
        else:
            evil.execute("SELECT aq.create_queue('source')")
            put(evil, "source", 1)
            evil.execute("SELECT aq.create_propagation('source', 'evil')")
        stuck = f"SELECT substring(last_error, 'process (.*) still runs') FROM aq.{what} WHERE state = 'stuck' AND last_error LIKE '%took longer than pgaq.turn_timeout (250 ms), and cannot be interrupted%'"
        process = until(lambda: db.value(conn, stuck), "the stuck process")
        if what == "propagations":
            good.execute("SELECT aq.create_queue('from')")
            good.execute("SELECT aq.create_propagation('from', 'good')")
            put(good, "from", 1)
        else:
            arrived(good, "good", 2)
        assert set(arrived(good, "good", 1)) == {1}
        assert db.value(conn, "SELECT aq.point_waiting('stuck')") == 1
        assert server.log_text().count("cannot be interrupted, and is replaced") == 1
        let_go(conn, process)
        until(
            lambda: db.value(
                conn, f"SELECT count(*) > 0 FROM aq.{what} WHERE last_error LIKE '%took longer than pgaq.turn_timeout (250 ms)'"
            ),
            "the failure",
        )
        until(
            lambda: db.value(
                conn,
                f"SELECT sum({'runs' if what == 'schedules' else 'messages'}) > 0 FROM aq.{what} WHERE queue_name IN ('evil', 'source')",
            ),
            "a turn of the role",
        )
        if what == "schedules":
            conn.execute("SELECT aq.unschedule(schedule_name) FROM aq.schedules")


def test_a_turn_that_has_committed(server):
    """It has not failed, although the process was told to end while it committed, and given up."""
    with server.connect() as conn, server.connect(user="good") as good:
        good.execute("SELECT aq.create_queue('good')")
        conn.execute("SELECT aq.point_hold('messages-published')")
        good.execute("SELECT aq.schedule('good', 'good', '1', every => '1 second')")
        stuck = "SELECT substring(last_error, 'process (.*) still runs') FROM aq.schedules WHERE state = 'stuck'"
        process = until(lambda: db.value(conn, stuck), "the stuck process")
        conn.execute("SELECT aq.point_release('messages-published')")
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", [process]), "the end of the process")
        until(lambda: db.value(conn, "SELECT runs > 1 FROM aq.schedules"), "the next turn")
        assert 'schedule "good" failed' not in server.log_text()
        assert db.value(conn, "SELECT last_error IS NULL FROM aq.schedules")


def test_notifier(server):
    """With one notifier, procedures of another role are called."""
    with server.connect() as conn:
        for role in ("evil", "good"):
            with server.connect(user=role) as user:
                user.execute(f"SELECT aq.create_queue('{role}_news')")
                user.execute(f"SELECT aq.register('{role}_news', 'plsql://{role}.call')")
                put(user, f"{role}_news", 1)
            if role == "evil":
                conn.execute("SELECT aq.point_await('stuck')")
        until(lambda: db.value(conn, "SELECT count(*) = 1 FROM public.seen WHERE role = 'good'"), "the call")
        assert db.value(conn, "SELECT state FROM aq.notifiers WHERE role = 'evil'") == "stuck"
        assert "pgaq.notification_timeout (100 ms), and cannot be interrupted" in db.value(
            conn, "SELECT last_error FROM aq.registrations WHERE role = 'evil' AND status = 'stuck'"
        )
        let_go(conn, "SELECT pid FROM aq.notifiers WHERE role = 'evil' AND state = 'stuck'")
        until(lambda: db.value(conn, "SELECT sum(notifications) > 0 FROM aq.registrations WHERE role = 'evil'"), "a call of the role")


def test_helper(server):
    """With one helper, another role's call is executed, and the role's own calls are refused, also one that is in line already."""
    immediate = "SELECT aq.enqueue('{}_in_table', '1', visibility => 'immediate')"  # which the session does not execute itself
    with (
        server.connect() as conn,
        server.connect(user="evil") as evil,
        server.connect(user="evil") as next_one,
        server.connect(user="good") as good,
        ThreadPoolExecutor() as pool,
    ):
        for role, user in (("evil", evil), ("good", good)):
            user.execute(f"SELECT aq.create_queue_table('{role}_table', multiple_consumers => true)")
            user.execute(f"SELECT aq.create_queue('{role}_in_table', queue_table => '{role}_table'), aq.subscribe('{role}_in_table', 's')")
        evil.execute("SELECT aq.alter_subscriber('evil_in_table', 's', 'aq.point_uninterrupted(''stuck'')')")
        call = pool.submit(evil.execute, immediate.format("evil"))
        assert db.value(conn, "SELECT aq.point_await('stuck')")
        next_call = pool.submit(next_one.execute, immediate.format("evil"))
        until(
            lambda: db.value(
                conn,
                "SELECT count(*) FROM aq.sessions WHERE waiting AND pid = %s AND event = 'aq: free helper'",
                [next_one.info.backend_pid],
            ),
            "the line",
        )
        conn.execute("SELECT pg_cancel_backend(%s)", [evil.info.backend_pid])
        with pytest.raises(psycopg.errors.QueryCanceled):
            call.result(PATIENCE)
        with pytest.raises(psycopg.DatabaseError, match="of this role cannot be interrupted"):
            next_call.result(PATIENCE)
        process = db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq helper'")
        good.execute(immediate.format("good"))
        assert arrived(good, "good_in_table", 1, "s") == [1]
        with pytest.raises(psycopg.DatabaseError, match="of this role cannot be interrupted"):
            evil.execute(immediate.format("evil"))
        let_go(conn, str(process))
        evil.execute(immediate.format("evil"))
