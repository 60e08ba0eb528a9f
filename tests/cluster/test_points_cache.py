"""The object cache and the cache of rows at named test points: who waits for whom, and what a crash leaves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, generation, put, server_with_points, stopped_worker, take, until, waiting_for
from pgaq import db
from pgaq_proof import faults

pytestmark = pytest.mark.test_build


@pytest.fixture
def few_queues(library, monkeypatch):
    """A server with test points and room for sixteen queues."""
    with server_with_points(monkeypatch, library, "few", r"terminat|crash|signal 9|cancel", **{"pgaq.max_queues": "16"}) as server:
        yield server


def held_and_asked(conn, name):
    """(type, mode held, mode requested) of all who hold more than the null lock of the queue, or wait."""
    query = """SELECT l.type, l.mode_held, l.mode_requested FROM sys."v$libcache_locks" l JOIN sys."v$db_object_cache" o
        ON l.object_handle = o.addr WHERE o.name = upper(%s) AND (l.mode_held > 1 OR l.mode_requested > 0)"""
    return sorted(conn.execute(query, [name]).fetchall())


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_definition_is_locked_while_its_change_commits(points_server, end):
    """A session that locks a queue for each use waits for the end of a change, and then sees it: event library cache
    lock."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q')")
        other.execute("SET pgaq.session_pins = off")
        put(other, "q", 1)
        conn.execute("BEGIN")
        db.execute(conn, "SELECT aq.stop_queue('q')")
        put(other, "q", 2)  # a change that has not begun to commit blocks no session
        with stopped_worker(third):  # it would wait, too, or have a pin
            third.execute("SELECT aq.point_hold('definition-locked')")
            committed = pool.submit(conn.execute, "COMMIT")
            assert db.value(third, "SELECT aq.point_await('definition-locked')")
            used = pool.submit(put, other, "q", 3)
            assert until(lambda: waiting_for(third, "library cache lock"), "the wait") == [210]
            assert held_and_asked(third, "q") == [("LOCK", 1, 2), ("LOCK", 3, 0), ("PIN", 2, 0)]
        if end == "COMMIT":
            third.execute("SELECT aq.point_release('definition-locked')")
            committed.result(PATIENCE)
            with pytest.raises(db.Error) as caught:
                used.result(PATIENCE)
            assert caught.value.sqlstate == "55000"
        else:
            conn.cancel()
            with pytest.raises(db.Error):
                committed.result(PATIENCE)
            used.result(PATIENCE)
            third.execute("SELECT aq.point_reset()")
            conn.execute("ROLLBACK")
            assert take(other, "q") == [1, 2, 3]
        until(lambda: not [row for row in held_and_asked(third, "q") if row[0] == "LOCK"], "no lock, but for the worker's")


def test_a_change_waits_for_the_session_that_has_the_lock(points_server):
    """The commit waits until a session that locks the queue for its next use has its pin, and then continues."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q')")
        other.execute("SET pgaq.session_pins = off")
        put(other, "q", 1)
        with stopped_worker(third):  # it locks queues for each use, too
            third.execute("SELECT aq.point_hold('object-locked')")
            used = pool.submit(put, other, "q", 2)
            assert db.value(third, "SELECT aq.point_await('object-locked')")
            committed = pool.submit(db.execute, conn, "SELECT aq.alter_queue('q', max_retries => 3)")
            assert until(lambda: waiting_for(third, "library cache lock"), "the wait") == [310]
            third.execute("SELECT aq.point_reset()")
        try:
            committed.result(PATIENCE)
        finally:
            conn.cancel()  # it would wait for ever
        used.result(PATIENCE)
        assert take(third, "q") == [1, 2]


def test_who_waits_for_a_lock_can_be_cancelled(points_server):
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q')")
        other.execute("SET pgaq.session_pins = off")
        put(other, "q", 1)
        conn.execute("BEGIN")
        db.execute(conn, "SELECT aq.alter_queue('q', max_retries => 3)")
        third.execute("SELECT aq.point_hold('definition-locked')")
        committed = pool.submit(conn.execute, "COMMIT")
        assert db.value(third, "SELECT aq.point_await('definition-locked')")
        used = pool.submit(put, other, "q", 2)
        until(lambda: waiting_for(third, "library cache lock"), "the wait")
        other.cancel()
        with pytest.raises(db.Error) as caught:
            used.result(PATIENCE)
        assert caught.value.sqlstate == "57014"
        assert ("LOCK", 1, 2) not in held_and_asked(third, "q")
        third.execute("SELECT aq.point_release('definition-locked')")
        committed.result(PATIENCE)
        assert take(other, "q") == [1]


def test_a_change_that_commits_while_the_queue_is_being_loaded_is_seen(points_server):
    """The commit finds nothing in memory to note it in: the session that loads the queue, as it was before, reads it again
    when it hears of a change."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        db.execute(third, "SELECT aq.create_queue('warm')")
        put(conn, "warm", 1)
        with stopped_worker(third):  # it would load the queue
            db.execute(third, "SELECT aq.create_queue('loaded')")
            third.execute("SELECT aq.point_hold('definition-locked')")
            stopped = pool.submit(db.execute, other, "SELECT aq.stop_queue('loaded')")
            assert db.value(third, "SELECT aq.point_await('definition-locked')")
            third.execute("SELECT aq.point_hold('object-loading')")
            used = pool.submit(take, conn, "loaded")
            assert db.value(third, "SELECT aq.point_await('object-loading')")
            third.execute("SELECT aq.point_hold('queue-described'), aq.point_release('object-loading')")
            assert db.value(third, "SELECT aq.point_await('queue-described')")
            third.execute("SELECT aq.point_release('definition-locked')")
            stopped.result(PATIENCE)
            third.execute("SELECT aq.point_reset()")
            used.exception(PATIENCE)  # perhaps it has heard of it already
        with pytest.raises(db.Error) as caught:
            take(conn, "loaded")
        assert caught.value.sqlstate == "55000"


def test_one_loads_the_others_wait(points_server):
    """Event library cache pin; when the one who loads dies of an error, another loads."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
    points_server.restart()
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        # the worker has loaded it: make it load again
        until(lambda: db.value(third, """SELECT count(*) FROM sys."v$db_object_cache" WHERE name = 'Q'"""), "the worker")
        db.execute(third, "SELECT aq.create_queue('fresh', multiple_consumers => true)")
        third.execute("SELECT aq.point_hold('object-loading')")
        first = pool.submit(conn.execute, "SELECT * FROM aq.browse('fresh', 'a')")
        assert db.value(third, "SELECT aq.point_await('object-loading')")
        second = pool.submit(other.execute, "SELECT * FROM aq.browse('fresh', 'a')")
        assert until(lambda: waiting_for(third, "library cache pin"), "the wait") == [210]
        assert held_and_asked(third, "fresh") == [("PIN", 0, 2), ("PIN", 3, 0)]
        conn.cancel()
        with pytest.raises(db.Error):
            first.result(PATIENCE)
        third.execute("SELECT aq.point_reset()")
        second.result(PATIENCE)
        until(lambda: held_and_asked(third, "fresh") == [("PIN", 2, 0)], "one pin, but for the worker's")
        assert take(other, "q") == [1]


def use_many(conn, number):
    for n in range(number):
        db.execute(conn, "SELECT aq.create_queue(%s)", [f"q{n}"])
        put(conn, f"q{n}", n)


@pytest.mark.parametrize("stays", [False, True], ids=["", "stays"])
def test_who_wants_a_queue_that_makes_room_gets_it(few_queues, stays):
    """It waits until the queue has left memory, and loads it again; or until the queue stays, because it has something to do."""
    with few_queues.connect() as conn, few_queues.connect() as other, few_queues.connect() as third, ThreadPoolExecutor() as pool:
        conn.execute("SET pgaq.session_pins = off; SET statement_timeout = '60 s'")
        use_many(conn, 14)
        for n in range(14 if stays else 0):
            put(conn, f"q{n}", "later", delay="1 hour")
        third.execute("SELECT aq.point_hold('object-aging')")
        full = pool.submit(
            lambda: [db.execute(other, "SELECT aq.create_queue(%s)", [f"more{n}"]) or put(other, f"more{n}", n) for n in range(4)]
        )
        assert db.value(third, "SELECT aq.point_await('object-aging')")
        query = """SELECT lower(name) FROM sys."v$db_object_cache" WHERE status = 'AGING'"""
        aging = db.value(third, query)
        wanted = pool.submit(take, conn, aging)
        until(lambda: waiting_for(third, "library cache pin"), "the wait")
        third.execute("SELECT aq.point_reset()")
        assert wanted.result(PATIENCE) == [int(aging.removeprefix("q"))]
        full.result(PATIENCE)


@pytest.mark.own_tables
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_old_description_of_a_converted_queue(few_queues, kind):
    """A session that has looked a queue up, and loads it after it was converted and unloaded, uses the sharded
    queue."""
    consumer = "a" if kind == "topic" else None
    ended = "SELECT NOT converting AND queue_table IS NULL FROM aq.queues WHERE queue_name = 'old'"
    with few_queues.connect() as conn, few_queues.connect() as late, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue_table('public.tab', multiple_consumers => %s)", [kind == "topic"])
        db.execute(conn, "SELECT aq.create_queue('old', queue_table => 'public.tab')")
        if consumer:
            db.execute(conn, "SELECT aq.subscribe('old', 'a')")
        late.execute("SET pgaq.test_point = 'object-wanted:wait'")
        conn.execute("SET pgaq.session_pins = off")
        done = pool.submit(put, late, "old", 1)
        try:
            assert db.value(conn, "SELECT aq.point_await('object-wanted')")
            db.execute(conn, "SELECT aq.convert_queue('old')")
            until(lambda: db.value(conn, ended), "the end of the conversion")
            use_many(conn, 20)
            assert db.value(conn, """SELECT count(*) FROM sys."v$db_object_cache" WHERE name = 'OLD'""") == 0
        finally:
            conn.execute("SELECT aq.point_reset()")
        done.result(PATIENCE)
        put(conn, "old", 2)
        assert sorted(take(conn, "old", consumer)) == [1, 2]


@pytest.mark.parametrize("point", ["object-aging", "object-loading", "definition-locked"])
def test_crash_in_the_object_cache(few_queues, point):
    with few_queues.connect() as conn:
        use_many(conn, 30)
        before = generation(few_queues)
        faults.arm(few_queues, point, "crash", 0)
        with pytest.raises(db.Error):
            if point == "definition-locked":
                db.execute(conn, "SELECT aq.stop_queue('q1')")
            for n in range(30):
                db.value(conn, "SELECT count(*) FROM aq.browse(%s)", [f"q{n}"])
    until(lambda: generation(few_queues) not in (None, before), "a crash")
    with few_queues.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        assert [take(conn, f"q{n}") for n in range(30)] == [[n] for n in range(30)]


def test_what_was_read_before_a_change_does_not_come_in(points_server):
    """A session that has read a row, and enters it when another has changed it meanwhile, keeps it to itself."""
    value = "SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT'"
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("SELECT aq.point_hold('row-loaded')")
        read = pool.submit(db.value, other, value)
        assert db.value(conn, "SELECT aq.point_await('row-loaded')")
        conn.execute(
            "INSERT INTO aq_internal.property SELECT property_name, 'new' FROM (VALUES ('DBTIMEZONE'), ('NLS_SORT')) p (property_name)"
        )
        conn.execute("SELECT aq.point_reset()")
        read.result(PATIENCE)
        assert db.value(conn, "SELECT property_value FROM sys.database_properties WHERE property_name = 'DBTIMEZONE'") == "new"
        assert db.value(conn, value) == "new"
        assert db.value(other, value) == "new"


@pytest.mark.parametrize("on_table", [False, True])
def test_a_change_comes_before_the_messages_of_its_transaction(points_server, on_table):
    """A session that has got a message finds another queue as the message's transaction has left it: stopped."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        if on_table:
            db.execute(conn, "CREATE SCHEMA IF NOT EXISTS t")
            db.execute(conn, "SELECT aq.create_queue_table('t.orders', 'jsonb')")
        db.execute(conn, "SELECT aq.create_queue('source', queue_table => %s)", ["t.orders" if on_table else None])
        db.execute(conn, "SELECT aq.create_queue('target'), aq.create_queue('last')")
        put(other, "target", 1)
        conn.execute("BEGIN")
        db.execute(conn, "SELECT aq.stop_queue('target')")
        put(conn, "source", 2)
        put(conn, "last", 3)
        third.execute("SELECT aq.point_hold('messages-published')")
        committed = pool.submit(conn.execute, "COMMIT")
        assert db.value(third, "SELECT aq.point_await('messages-published')")
        try:
            other.execute("BEGIN")
            assert take(other, "source") == [2]
            with pytest.raises(db.Error) as caught:
                put(other, "target", 4)
            assert caught.value.sqlstate == "55000"
        finally:
            third.execute("SELECT aq.point_release('messages-published')")
        committed.result(PATIENCE)
