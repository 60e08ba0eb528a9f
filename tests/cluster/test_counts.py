"""What a rolled back dequeue leaves to the worker: nothing overtakes it, and nothing is lost behind it, whatever keeps the worker from it."""

from __future__ import annotations

import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, arrived, background, end_server, install_points, look, make_server, put_many, ready, stopped_worker, take, until
from pgaq import db

pytestmark = [pytest.mark.own_tables, pytest.mark.test_build]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(library):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGAQ_LIBDIR", library)
        made = make_server("counts", autovacuum="off")
        install_points(made)
        yield made
        end_server(made)


def make_table_queue(conn, multiple=False, sort="", **options):
    name = f"line{next(_numbers)}"
    db.execute(conn, "SELECT aq.create_queue_table(%s, sort_list => %s, multiple_consumers => %s)", [f"public.t_{name}", sort, multiple])
    more = "".join(f", {option} => %s" for option in options)
    db.execute(conn, f"SELECT aq.create_queue(%s, queue_table => %s{more})", [name, f"public.t_{name}", *options.values()])
    return name


@pytest.fixture
def table_queue(conn):
    return make_table_queue(conn)


@pytest.fixture(params=["sharded", "queue table"])
def either(request, conn):
    """A queue of each store."""
    if request.param == "queue table":
        return make_table_queue(conn)
    name = f"line{next(_numbers)}"
    db.execute(conn, "SELECT aq.create_queue(%s)", [name])
    return name


@contextlib.contextmanager
def held(server, point):
    """Whoever arrives at the test point stays there."""
    with server.connect() as other:
        db.execute(other, "SELECT aq.point_hold(%s)", [point])
        try:
            yield other
        finally:
            db.execute(other, "SELECT aq.point_reset()")


def roll_back(conn, queue, consumer=None, number=1):
    conn.execute("BEGIN")
    got = take(conn, queue, consumer, number)
    conn.execute("ROLLBACK")
    return got


def waits(conn, other):
    """What the other session waits for, with its parameters."""
    query = """SELECT event, p2 FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING'"""
    return conn.execute(query, [other.info.backend_pid]).fetchone()


def test_what_the_worker_counts_is_in_no_range(server, conn, table_queue):
    """Sessions that walk over it meanwhile do not remember that there is nothing."""
    put_many(conn, table_queue, 1, 32)
    with server.connect() as other, server.connect() as looker, ThreadPoolExecutor() as pool:
        with held(server, "retries-written") as third:
            assert roll_back(conn, table_queue) == [1]
            assert db.value(third, "SELECT aq.point_await('retries-written')")
            found = pool.submit(take, other, table_queue, None, 27)
            # a session that only looks gives up after a while
            assert not ready(looker, table_queue)
        assert found.result(PATIENCE) == list(range(1, 28))
    assert look(conn, table_queue) == take(conn, table_queue) == list(range(28, 33))


def test_nothing_overtakes_what_waits_for_its_count(server, conn, either):
    """The worker is stopped for longer than any patience: a dequeue waits for it, and says so."""
    put_many(conn, either, 1, 3)
    worker = background(conn, "worker")
    with server.connect() as other, server.connect() as looker, server.connect() as waiter, ThreadPoolExecutor() as pool:
        with stopped_worker(conn):
            assert roll_back(conn, either) == [1]
            found = pool.submit(take, other, either)
            seen = pool.submit(look, looker, either)
            for session in (other, looker):
                assert until(lambda: waits(conn, session), "a session that waits") == ("aq: retry count write", worker)
            # a wait has its own timeout, so it does not last: by then a patience would be over
            assert not ready(waiter, either)
            assert not found.done() and not seen.done()
        assert found.result(PATIENCE) == [1, 2, 3]
        assert seen.result(PATIENCE) in ([1, 2, 3], [])
    assert take(conn, either) == []


def test_a_pending_drop_lets_nothing_overtake(server, conn, either):
    """The worker does not get the lock to count, because a session waits for one: the message is passed by nobody, and nobody waits in a circle."""
    put_many(conn, either, 1, 4)
    with server.connect() as other, server.connect() as dropper, ThreadPoolExecutor() as pool:
        other.execute("BEGIN")
        assert take(other, either, number=1) == [1]
        conn.execute("BEGIN")
        assert take(conn, either, number=1) == [2]
        dropped = pool.submit(db.execute, dropper, "SELECT aq.drop_queue(%s, force => true)", [either])
        query = "SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted"
        until(lambda: db.value(conn, query, [dropper.info.backend_pid]), "a drop that waits")
        conn.execute("ROLLBACK")
        try:
            found = take(other, either)
        finally:
            db.execute(conn, "SELECT pg_cancel_backend(%s)", [dropper.info.backend_pid])
        assert found == []
        with pytest.raises(db.Error):
            dropped.result(PATIENCE)
        assert arrived(other, either, 3) == [2, 3, 4]
        other.execute("COMMIT")
    assert take(conn, either) == []


@pytest.mark.parametrize("news", [42, 43])
def test_more_news_than_a_walk_can_know(server, conn, table_queue, news):
    """What is given back while a dequeue passes it is found again, however many other things have happened before it remembers what it passed."""
    put_many(conn, table_queue, 1, 31)
    with held(server, "range-found") as third, server.connect() as walker, ThreadPoolExecutor(1) as pool:
        conn.execute("BEGIN")
        assert take(conn, table_queue, number=30) == list(range(1, 31))
        walk = pool.submit(take, walker, table_queue, number=1)
        assert db.value(third, "SELECT aq.point_await('range-found')")
        conn.execute("ROLLBACK")
        counted = "SELECT count(*) = 30 FROM aq.messages WHERE queue_name = %s AND attempts = 1 AND state = 'READY'"
        until(lambda: db.value(conn, counted, [table_queue]), "the worker has counted the attempts")
        # 42 are kept: 40 of these are the queue's, the others the rollback's and the worker's
        for number in range(news):
            put_many(conn, table_queue, 32 + number, 32 + number)
        db.execute(third, "SELECT aq.point_reset()")
        assert walk.result(PATIENCE) == [31]
    assert sorted(take(conn, table_queue)) == [*range(1, 31), *range(32, 32 + news)]
