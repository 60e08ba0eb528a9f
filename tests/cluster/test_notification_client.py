"""Notification of programs: aq.wait on registrations, and aq.notifications."""

from __future__ import annotations

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import held, server_with_points, until, waiting_for
from pgaq import db

SETTINGS = {"max_worker_processes": "20", "max_prepared_transactions": "10"}
WAIT = "aq: waiting for a notification"

pytestmark = pytest.mark.own_tables


@pytest.fixture
def jobs(server):
    server.expect_log("terminating connection")
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('jobs', retry_delay => '0')")
    yield "jobs"
    with server.connect() as conn:
        conn.execute("SELECT aq.unregister(registration_id) FROM aq.registrations; SELECT aq.drop_queue('jobs', force => true)")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def register(conn, queue="jobs", name="", **options):
    given = "".join(f", {option} => {value}" for option, value in options.items())
    return db.value(conn, f"SELECT aq.register('{queue}', 'client://{name}'{given})")


def wait(conn, ids=None, timeout="90 seconds"):
    return db.value(conn, "CALL aq.wait(%s::bigint[], %s::interval)", [ids, timeout])


def put(conn, *payloads, queue="jobs"):
    for payload in payloads:
        conn.execute("SELECT aq.enqueue(%s, %s::text::jsonb)", (queue, str(payload)))


def taken(conn, ids=None):
    return [row[0] for row in conn.execute("SELECT convert_from(payload, 'UTF8') FROM aq.notifications(%s::bigint[])", [ids]).fetchall()]


def asleep(conn):
    return until(lambda: waiting_for(conn, WAIT), "a session to wait")


def test_a_commit_wakes_the_session_which_held_neither_snapshot_nor_locks(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        id = register(client, with_payload="true")
        waiting = pool.submit(wait, client, [id])
        pid = client.info.backend_pid
        asleep(conn)
        assert db.value(conn, "SELECT backend_xmin IS NULL AND backend_xid IS NULL FROM pg_stat_activity WHERE pid = %s", [pid])
        assert db.value(conn, "SELECT count(*) FROM pg_locks WHERE pid = %s AND locktype = 'relation'", [pid]) == 0
        with server.connect(autocommit=False) as other:
            put(other, 1)
            put(conn, 2)
            assert waiting.result(60) == [id]
            assert taken(client) == ["2"]
            waiting = pool.submit(wait, client, [id])
            asleep(conn)
        assert waiting.result(60) == [id]
        assert taken(client) == ["1"]


def test_a_message_of_a_non_persistent_queue_wakes_the_session(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        conn.execute("SELECT aq.create_queue('alarms', queue_type => 'non_persistent')")
        try:
            id = register(client, queue="alarms")
            waiting = pool.submit(wait, client, [id])
            asleep(conn)
            conn.execute("BEGIN; SELECT aq.enqueue('alarms', '1'); ROLLBACK")
            put(conn, 2, queue="alarms")
            assert waiting.result(60) == [id]
            assert taken(client) == ["2"]
            conn.execute("SELECT aq.stop_queue('alarms', enqueue => false)")
            put(conn, 3, queue="alarms")
            waiting = pool.submit(wait, client, [id])
            asleep(conn)
            conn.execute("SELECT aq.start_queue('alarms')")
            assert waiting.result(60) == [id]
            assert taken(client) == ["3"]
        finally:
            conn.execute("SELECT aq.drop_queue('alarms')")


def test_one_session_waits_for_hundreds_of_registrations(server, jobs, pool, seed):
    with server.connect() as conn, server.connect() as client:
        conn.execute("SELECT count(aq.create_queue('jobs' || i)) FROM generate_series(1, 150) i")
        conn.execute("SELECT count(aq.register('jobs' || i, 'client://' || k)) FROM generate_series(1, 150) i, generate_series(1, 2) k")
        sent = random.Random(seed).choices(range(1, 151), k=300)
        got = []
        sending = pool.submit(lambda: [put(conn, i, queue=f"jobs{i}") for i in sent])
        while len(got) < 600:
            assert wait(client, timeout="1 minute")
            got += [int(row[0][4:]) for row in client.execute("SELECT name FROM aq.notifications()").fetchall()]
        sending.result(60)
        assert sorted(got) == sorted(sent * 2)
        assert wait(client, timeout="0") is None
        conn.execute("SELECT aq.drop_queue('jobs' || i, force => true) FROM generate_series(1, 150) i")


def test_a_session_without_news_sleeps(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        id = register(client)
        waiting = pool.submit(wait, client, [id])
        asleep(conn)
        wakeups = "SELECT coalesce(sum(waits), 0)::int FROM aq.session_waits WHERE event = %s"
        before = db.value(conn, wakeups, [WAIT])
        # the worker looks at all registrations, which must not make it look again
        for i in range(1000):
            conn.execute("SELECT aq.post('nobody')")
        assert db.value(conn, wakeups, [WAIT]) - before < 10
        put(conn, 1)
        assert waiting.result(60) == [id]


def test_registrations_that_begin_and_end_during_a_wait_are_noticed(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        put(conn, 1)
        waiting = pool.submit(wait, client)
        asleep(conn)
        id = register(conn)
        assert waiting.result(60) == [id]
        assert len(taken(client)) == 1
        waiting = pool.submit(wait, client, [id])
        asleep(conn)
        conn.execute("SELECT aq.unregister(%s)", [id])
        with pytest.raises(psycopg.errors.UndefinedObject, match=f"registration {id} does not exist"):
            waiting.result(60)


def test_prepared_transactions_are_notified_when_they_end(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        id = register(client, with_payload="true")
        conn.execute("BEGIN; SELECT aq.enqueue('jobs', '1'); PREPARE TRANSACTION 'message'")
        waiting = pool.submit(wait, client, [id])
        asleep(conn)
        conn.execute("COMMIT PREPARED 'message'")
        assert waiting.result(60) == [id]
        # what a prepared transaction has taken is new again when it is rolled back
        client.execute("BEGIN; SELECT * FROM aq.notifications(); PREPARE TRANSACTION 'taken'")
        conn.execute("ROLLBACK PREPARED 'taken'")
        assert wait(client, [id], "1 minute") == [id]
        assert taken(client) == ["1"]


def test_posted_and_delayed_messages_and_retries_wake_the_session(server, jobs, pool):
    with server.connect() as conn, server.connect() as client:
        id, news = register(client, with_payload="true"), register(client, "news", namespace="'anonymous'")
        waiting = pool.submit(wait, client, [id, news])
        asleep(conn)
        conn.execute("SELECT aq.post('news', 'posted')")
        assert waiting.result(60) == [news]
        assert taken(client) == ["posted"]
        conn.execute("SELECT aq.enqueue('jobs', '1', delay => '0.2 seconds')")
        assert wait(client, [id, news]) == [id]
        assert taken(client) == ["1"]
        waiting = pool.submit(wait, client, [id, news])
        asleep(conn)
        conn.execute("BEGIN; SELECT aq.dequeue('jobs'); ROLLBACK")
        assert waiting.result(60) == [id]
        assert taken(client) == ["1"]


def test_a_group_is_notified_once_with_its_count(server, jobs):
    with server.connect() as conn, server.connect() as client:
        id = register(client, group_time="'1 second'", group_repeat="1")
        with conn.transaction():
            put(conn, 1, 2, 3)
        # taken too early, it would be counted in two groups
        assert wait(client, [id]) == [id]
        assert client.execute("SELECT message_count, cardinality(msgids), payload FROM aq.notifications()").fetchall() == [(3, 3, None)]
        put(conn, 4, 5)
        assert wait(client, [id], "1 minute") == [id]
        assert client.execute("SELECT message_count FROM aq.notifications()").fetchall() == [(1,), (1,)]


def test_the_group_of_messages_that_came_while_nobody_waited_is_complete(server, jobs):
    with server.connect() as conn:
        with server.connect() as client:
            id = register(client, group_time="'1 second'", group_type="'last'", with_payload="true")
            put(conn, 1)
            assert wait(client, [id]) == [id]
        put(conn, 2, 3)
        with server.connect() as client:
            until(
                lambda: (
                    wait(client, [id], "1 minute"),
                    db.value(conn, "SELECT min(enqueue_time) < clock_timestamp() - interval '2 seconds' FROM aq.browse('jobs')"),
                )[1],
                "the group to end",
            )
            assert client.execute("SELECT message_count, convert_from(payload, 'UTF8') FROM aq.notifications()").fetchall() == [(3, "3")]


def test_a_session_that_is_ended_between_wait_and_take_loses_nothing(server, jobs):
    with server.connect() as conn:
        client = server.connect()
        id = register(client, with_payload="true")
        put(conn, 1)
        assert wait(client, [id], "1 minute") == [id]
        client.execute("BEGIN")
        assert taken(client) == ["1"]
        os.kill(client.info.backend_pid, signal.SIGTERM)
        until(
            lambda: not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [client.info.backend_pid]),
            "the session to end",
        )
        client.close()
        with server.connect() as client:
            assert wait(client, [id], "1 minute") == [id]
            assert taken(client) == ["1"]
            assert wait(client, [id], "0") is None


def serve(server, id, rounds, seed, got, all_got):
    """Takes notifications, rolls some back, and closes its connection now and then."""
    chance = random.Random(seed)
    while not all_got():
        with server.connect() as client:
            for _ in range(rounds):
                if not wait(client, [id], "0.1 seconds"):
                    continue
                client.execute("BEGIN")
                some = taken(client, [id])
                if chance.random() < 0.3:
                    client.execute("ROLLBACK")
                else:
                    client.execute("COMMIT")
                    got.extend(some)


def test_several_sessions_serve_a_registration_each_notification_once(server, jobs, pool, seed):
    number = 200
    with server.connect() as conn, server.connect() as client:
        id = register(client, with_payload="true")
        got = []
        serving = [pool.submit(serve, server, id, 10, seed + i, got, lambda: len(got) >= number) for i in range(3)]
        for i in range(number):
            put(conn, i)
        for each in serving:
            each.result(120)
        assert sorted(map(int, got)) == list(range(number))


def test_a_restart_keeps_what_was_taken(new_server):
    server = new_server("clients", **SETTINGS)
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('jobs')")
        id = register(conn, with_payload="true")
        put(conn, 1, 2)
        assert taken(conn) == ["1", "2"]
        put(conn, 3)
    server.kill()
    server.start()
    with server.connect() as conn:
        assert wait(conn, [id], "1 minute") == [id]
        assert taken(conn) == ["3"]


@pytest.mark.test_build
@pytest.mark.parametrize("point", ["client-watches", "client-waits"])
def test_a_message_that_comes_between_the_look_and_the_sleep_wakes_the_session(monkeypatch, library, point, pool):
    with server_with_points(monkeypatch, library, "clients", **SETTINGS) as server:
        with server.connect() as conn, server.connect() as client:
            conn.execute("SELECT aq.create_queue('jobs')")
            id = register(client, with_payload="true")
            with held(server, point):
                waiting = pool.submit(wait, client, [id])
                until(lambda: db.value(conn, "SELECT aq.point_reached(%s)", [point]) > 0, "the session to look")
                put(conn, 1)
            assert waiting.result(60) == [id]
            assert taken(client) == ["1"]


@pytest.mark.test_build
def test_a_worker_that_dies_before_it_wakes_the_session_loses_no_notification(monkeypatch, library, pool):
    with server_with_points(monkeypatch, library, "clients", **SETTINGS) as server:
        with server.connect() as conn, server.connect() as client:
            conn.execute("SELECT aq.create_queue('jobs')")
            id = register(client, with_payload="true")
            waiting = pool.submit(wait, client, [id])
            asleep(conn)
            # its first look, at all registrations, would wake the session, too
            until(lambda: waiting_for(conn, "aq: worker idle"), "the worker to have looked")
            conn.execute("SELECT aq.point_arm('clients-to-wake', 'terminate', 0)")
            put(conn, 1)
            assert waiting.result(60) == [id]
            assert db.value(conn, "SELECT aq.point_reached('clients-to-wake')") > 0


@pytest.mark.test_build
def test_a_session_that_ends_while_it_takes_loses_no_notification(monkeypatch, library):
    with server_with_points(monkeypatch, library, "clients", **SETTINGS) as server:
        with server.connect() as conn:
            conn.execute("SELECT aq.create_queue('jobs')")
            register(conn, with_payload="true")
            put(conn, 1)
            with server.connect() as client:
                conn.execute("SELECT aq.point_arm('client-takes', 'terminate', 0)")
                with pytest.raises(db.OperationalError):
                    taken(client)
            assert taken(conn) == ["1"]
