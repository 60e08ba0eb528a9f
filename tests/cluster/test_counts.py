"""Retry counts that a rolled back dequeue leaves to the worker: no message overtakes, and no later message is lost,
whatever delays the worker."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import (
    PATIENCE,
    arrived,
    background,
    end_server,
    held,
    install_points,
    look,
    make_server,
    put,
    put_many,
    ready,
    stopped_worker,
    take,
    until,
)
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


def roll_back(conn, queue, consumer=None, number=1):
    conn.execute("BEGIN")
    got = take(conn, queue, consumer, number)
    conn.execute("ROLLBACK")
    return got


def waits(conn, other):
    """The wait event of the other session, with its parameters."""
    query = """SELECT event, p2 FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING'"""
    return conn.execute(query, [other.info.backend_pid]).fetchone()


def slept(conn, session, event):
    """How often the session has slept for the event."""
    query = 'SELECT coalesce(sum(total_waits), 0) FROM sys."v$session_event" WHERE pid = %s AND event = %s'
    return db.value(conn, query, [session.info.backend_pid, event])


def test_what_the_worker_counts_is_in_no_range(server, conn, table_queue):
    """Sessions that walk over it meanwhile do not remember that there is nothing."""
    put_many(conn, table_queue, 1, 32)
    with server.connect() as other, server.connect() as looker, ThreadPoolExecutor() as pool:
        with held(server, "retries-written") as third:
            assert roll_back(conn, table_queue) == [1]
            assert db.value(third, "SELECT aq.point_await('retries-written')")
            found = pool.submit(take, other, table_queue, None, 4 * 27)  # behind a failed message a quarter
            # a session that only looks gives up after a while
            assert not ready(looker, table_queue)
        assert found.result(PATIENCE) == list(range(1, 28))
    assert look(conn, table_queue) == take(conn, table_queue) == list(range(28, 33))


def test_nothing_overtakes_what_waits_for_its_count(server, conn, either):
    """The worker is stopped for longer than any patience: a dequeue waits for it, and says so."""
    for number in (1, 2, 3):
        put(conn, either, number, priority=number)
    worker = background(conn, "worker")
    with server.connect() as other, server.connect() as looker, server.connect() as waiter, ThreadPoolExecutor() as pool:
        with stopped_worker(conn):
            assert roll_back(conn, either, number=3) == [1, 2, 3]
            found = pool.submit(take, other, either)
            seen = pool.submit(look, looker, either)
            for session in (other, looker):
                until(lambda: waits(conn, session) == ("aq: retry count write", worker), "a session that waits")
            # one that only looks has patience once, not for each priority; a sleep lasts a second
            assert not ready(waiter, either)
            assert 0 < slept(conn, waiter, "aq: retry count write") <= 7
            assert not found.done() and not seen.done()
        assert found.result(PATIENCE) == [1, 2, 3]
        # the two run at the same time, so it may show messages that the dequeue has not taken yet
        assert set(seen.result(PATIENCE)) <= {1, 2, 3}
    assert take(conn, either) == []


@pytest.mark.parametrize("fails", [False, True], ids=["", "fails"])
def test_a_wait_does_not_wait_for_the_worker(server, conn, either, fails):
    """One that has a timeout is woken when the counts are written."""
    put_many(conn, either, 0, 2)
    if fails:  # what stands behind it is what there is then
        db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => 0)", [either])
    count, sleep = "aq: retry count write", "Streams AQ: waiting for messages in the queue"
    with server.connect() as waiter, server.connect() as looker, ThreadPoolExecutor() as pool:
        with stopped_worker(conn):
            assert roll_back(conn, either) == [0]
            found = pool.submit(ready, waiter, either, None, "120 s")
            assert not ready(looker, either, timeout="0.01 s")
            assert slept(conn, looker, count) == 0
            until(lambda: (waits(conn, waiter) or [""])[0] == sleep, "a session that waits")
        assert found.result(PATIENCE / 2)  # not at the wait's end, nor because the worker looks after waiters sometimes
        assert slept(conn, waiter, count) == 0
    assert take(conn, either) == ([1, 2] if fails else [0, 1, 2])


def test_a_pending_drop_lets_nothing_overtake(server, conn, either):
    """The worker does not get the lock to count, because a session waits for one: no session skips the message, and
    there is no deadlock. A drop with force ends the wait."""
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
        other.execute("SAVEPOINT before")  # without it, the error ends the use of the queue, and the drop goes on
        try:
            with pytest.raises(db.Error, match="Another session drops the queue"):
                take(other, either)
        finally:
            db.execute(conn, "SELECT pg_cancel_backend(%s)", [dropper.info.backend_pid])
        with pytest.raises(db.Error, match="canceling statement"):
            dropped.result(PATIENCE)
        other.execute("ROLLBACK TO before")
        assert arrived(other, either, 3) == [2, 3, 4]
        other.execute("COMMIT")
    assert take(conn, either) == []


def test_a_drop_ends_the_wait_for_counts(server, conn):
    """The worker does nothing more for a dropped queue: a dequeue that waits for it gets an error."""
    name = f"line{next(_numbers)}"
    db.execute(conn, "SELECT aq.create_queue(%s)", [name])
    put(conn, name, 1)
    with server.connect() as other, server.connect() as looker, ThreadPoolExecutor() as pool:
        with stopped_worker(conn):
            assert roll_back(conn, name) == [1]
            found = [pool.submit(take, other, name), pool.submit(look, looker, name)]
            for session in (other, looker):
                until(lambda: "aq: retry count write" in (waits(conn, session) or []), "a session that waits")
            db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])
        for one in found:
            with pytest.raises(db.Error, match="does not exist|Another session drops the queue") as caught:
                one.result(PATIENCE)
            assert caught.value.sqlstate == "42704"


def test_a_whole_partition_is_rolled_back(server, conn):
    """Dequeues have already moved to the next partition: the next one goes back and waits for the counts."""
    name = f"line{next(_numbers)}"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [name])
    put_many(conn, name, 1, 16386)
    with server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("BEGIN")
        assert len(take(conn, name, number=16384)) == 16384
        assert take(other, name, number=1) == [16385]
        with stopped_worker(other):
            conn.execute("ROLLBACK")
            found = pool.submit(take, conn, name, None, 1)
            until(lambda: found.done() or "aq: retry count write" in (waits(other, conn) or []), "a dequeue that waits")
        assert found.result(PATIENCE) == [1]
    db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


def test_counts_for_another_consumer(server, conn):
    """A message that a session has locked and released can be dequeued, although the worker must count another
    consumer's rolled back dequeue."""
    topic = make_table_queue(conn, multiple=True)
    db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [topic])
    put(conn, topic, 1)
    with server.connect() as other, stopped_worker(conn):
        assert roll_back(conn, topic, "a") == [1]
        other.execute("BEGIN")
        assert db.value(other, "SELECT payload FROM aq.dequeue(%s, 'b', mode => 'locked')", [topic]) == 1
        other.execute("ROLLBACK")
        other.execute("SET statement_timeout = '20 s'")
        assert take(other, topic, "b") == [1]
    assert take(conn, topic, "a") == [1]


@pytest.mark.parametrize("more", [0, 42])
def test_more_news_than_a_walk_can_know(server, conn, table_queue, more):
    """A message that becomes ready again while a dequeue skips it is found again, whatever happens before the dequeue
    records the skipped range."""
    put_many(conn, table_queue, 1, 31)
    with ThreadPoolExecutor(1) as pool, held(server, "range-found") as third, server.connect() as walker:
        conn.execute("BEGIN")
        # the worker has no attempt to count, so only the rollback announces the messages
        assert db.value(conn, "SELECT aq.purge_queue(%s, condition => 'payload::int <= 30')", [table_queue]) == 30
        walk = pool.submit(take, walker, table_queue, number=1)
        assert db.value(third, "SELECT aq.point_await('range-found')")
        conn.execute("ROLLBACK")
        # fewer than 42 are kept
        for number in range(32, 32 + more):
            put_many(conn, table_queue, number, number)
        db.execute(third, "SELECT aq.point_reset()")
        assert walk.result(PATIENCE) == [31]
    assert sorted(take(conn, table_queue)) == [*range(1, 31), *range(32, 32 + more)]


def test_ranges_that_change_while_they_are_read(server, conn, table_queue):
    """A message that becomes ready again while a walk copies the ranges of the queue is not skipped, by it or later."""
    put_many(conn, table_queue, 1, 31)
    with server.connect() as other, server.connect() as walker, ThreadPoolExecutor(1) as pool:
        db.execute(other, "BEGIN")
        # the worker has no attempt to count, so only the rollback announces the messages
        assert db.value(other, "SELECT aq.purge_queue(%s, condition => 'payload::int <= 30')", [table_queue]) == 30
        # its walk adds the range of the 30 messages, which end at the one that it takes
        assert take(conn, table_queue, number=1) == [31]
        put_many(conn, table_queue, 32, 61)
        assert take(conn, table_queue, number=30) == list(range(32, 62))
        with held(server, "ranges-copied") as third:
            walk = pool.submit(take, walker, table_queue)
            assert db.value(third, "SELECT aq.point_await('ranges-copied')")
            other.execute("ROLLBACK")
            db.execute(third, "SELECT aq.point_reset()")
            assert walk.result(PATIENCE) == list(range(1, 31))
    assert take(conn, table_queue) == []


def latches(conn):
    """Gets of the latch "queue table lines", by child."""
    return dict(conn.execute("""SELECT "child#", gets FROM sys."v$latch_children" WHERE name = 'queue table lines'""").fetchall())


def test_a_walk_does_not_wait_for_the_latch_of_the_ranges(server, conn, table_queue):
    """A dequeue reads the queue's ranges while another session has their latch, and a third one waits for it."""
    conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab")
    before = latches(conn)
    put_many(conn, table_queue, 1, 31)
    [child] = [number for number, gets in latches(conn).items() if gets > before.get(number, 0)]
    assert take(conn, table_queue, number=30) == list(range(1, 31))
    # its walk adds a range
    assert take(conn, table_queue, number=1) == [31]
    put_many(conn, table_queue, 32, 33)
    with server.connect() as holder, server.connect() as waiter, ThreadPoolExecutor(2) as pool:
        hold = pool.submit(holder.execute, "SELECT aq_lab.hold_latch('queue table lines', 600, child => %s)", [child])
        try:
            until(lambda: db.value(conn, "SELECT count(*) FROM aq.latch_holders WHERE latch = 'queue table lines'"), "the holder")
            put = pool.submit(put_many, waiter, table_queue, 34, 34)
            event, _ = until(lambda: waits(conn, waiter), "the waiter")
            conn.execute(f"SET statement_timeout = '{PATIENCE} s'")
            assert take(conn, table_queue) == [32, 33]
        finally:
            conn.execute("RESET statement_timeout; SELECT pg_cancel_backend(%s)" % holder.info.backend_pid)
        assert "cancel" in str(hold.exception(PATIENCE))
        put.result(PATIENCE)
    assert event == "latch: queue table lines"
    assert take(conn, table_queue) == [34]


@pytest.mark.parametrize("how", ["error", "terminate"])
def test_a_count_that_fails_is_written_again(server, conn, either, how):
    """The worker's transaction fails when all is written: the attempts count all the same, once."""
    server.expect_log("test point|terminating background worker|terminat")
    put_many(conn, either, 1, 3)
    with server.connect() as other:
        if how == "error":
            db.execute(other, "SELECT aq.point_arm('retries-written', 'error', 0)")
            assert roll_back(conn, either, number=2) == [1, 2]
        else:
            with held(server, "retries-written"):
                assert roll_back(conn, either, number=2) == [1, 2]
                assert db.value(other, "SELECT aq.point_await('retries-written')")
                db.execute(other, "SELECT pg_terminate_backend(%s)", [background(conn, "worker")])
        found = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 100)", [either]).fetchall()
        db.execute(other, "SELECT aq.point_reset()")
    assert found == [(1, 1), (2, 1), (3, 0)]


def test_what_expires_while_locked_is_moved_once(server, conn, either):
    """Expired in the hands of a transaction that keeps it: when that commits, the message is in the exception queue, and in no other."""
    dead = f"dead_{either}"
    db.execute(conn, "SELECT aq.create_queue(%s)", [dead])
    db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => %s)", [either, dead])
    expected = []

    def locked():
        """False when the machine was so slow that it expired before."""
        expected.append(len(expected) + 1)
        put(conn, either, expected[-1], expiration="0.5 s")
        conn.execute("BEGIN")
        got = conn.execute("SELECT payload FROM aq.dequeue(%s, mode => 'locked')", [either]).fetchall()
        if not got:
            conn.execute("ROLLBACK")
        return got

    until(locked, "a locked message")
    held_one = expected[-1]
    with server.connect() as other:
        put(other, either, 1000, expiration="0.5 s")
        # it expires later than the locked one: the worker has come by both
        found = arrived(other, dead, len(expected))
        assert sorted(found) == sorted({*expected, 1000} - {held_one})
        conn.execute("COMMIT")
        assert arrived(other, dead, 1) == [held_one]
        assert look(other, either) == take(other, dead) == []


@pytest.mark.parametrize("how", ["rejected", "expired"])
def test_a_failed_message_is_expired_while_it_is_moved(server, conn, either, how):
    """Also while the worker's transaction has its row: no consumer has taken it."""
    dead = f"dead_{either}"
    db.execute(conn, "SELECT aq.create_queue(%s), aq.alter_queue(%s, exception_queue => %s)", [dead, either, dead])
    point = "failed-moved" if how == "rejected" else "timers-fired"
    with held(server, point) as other:
        put(conn, either, 1, expiration="0.2 s" if how == "expired" else None)
        if how == "rejected":
            leased = conn.execute("SELECT ARRAY[msgid], receipt FROM aq.dequeue(%s, lease => '1 hour')", [either]).fetchone()
            assert db.value(conn, "SELECT result FROM aq.reject(%s, %s, %s)", [either, *leased]) == "done"
        assert db.value(other, "SELECT aq.point_await(%s)", [point])
        assert conn.execute("SELECT payload, state FROM aq.messages WHERE queue_name = %s", [either]).fetchall() == [("1", "EXPIRED")]
    assert arrived(conn, dead, 1) == [1]


def test_a_failed_message_waits_for_its_exception_queue(server, conn):
    """All consumers of a topic have given up while the exception queue's table is locked: the message is moved later, not lost."""
    topic, dead = make_table_queue(conn, multiple=True, max_retries=0), make_table_queue(conn)
    db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => %s)", [topic, dead])
    db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [topic])
    tables = dict(conn.execute("SELECT queue_name, queue_table_id FROM aq_internal.queue").fetchall())
    put(conn, topic, 7)
    with server.connect() as other:
        other.execute(f"BEGIN; LOCK TABLE aq_data.t{tables[dead]} IN SHARE MODE")
        for consumer in ("a", "b"):
            assert roll_back(conn, topic, consumer) == [7]
        # a row that asks the worker to look again
        until(lambda: db.value(conn, f"SELECT count(*) FROM aq_data.c{tables[topic]} WHERE position = -1"), "a move that has to wait")
        other.execute("ROLLBACK")
    # a dead letter for each of them
    assert arrived(conn, dead, 2) == [7, 7]
    until(lambda: db.value(conn, f"SELECT count(*) = 0 FROM aq_data.c{tables[topic]}"), "nothing left")


def test_failed_messages_are_seen_behind_consumed_ones(server, conn):
    """An old snapshot keeps what was consumed in the index; a range over it ends where the next failed message comes."""
    queue = make_table_queue(conn, max_retries=0)
    dead = f"public.aq$_t_{queue}_e"
    db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => %s)", [queue, dead])
    db.execute(conn, "SELECT aq.start_queue(%s, enqueue => false)", [dead])
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        put_many(conn, queue, 1, 43)
        assert [roll_back(conn, queue) for _ in range(40)] == [[number] for number in range(1, 41)]
        assert arrived(conn, dead, 40) == list(range(1, 41))
        assert take(conn, dead) == look(conn, dead) == []
        assert [roll_back(conn, queue) for _ in range(3)] == [[41], [42], [43]]
        assert arrived(conn, dead, 3) == [41, 42, 43]
        other.execute("ROLLBACK")


def stop_half_way(conn, other, queue, state):
    """Bring the messages 11 to 50 into the state; returns what brings them back."""
    other.execute("BEGIN")
    if state == "purged":
        db.execute(other, "SELECT aq.purge_queue(%s, condition => 'payload::int > 10')", [queue])
        return lambda: other.execute("ROLLBACK")
    mode = "locked" if state == "locked" else "remove"
    if state in ("savepoint", "locked and removed"):
        ids = [row[0] for row in other.execute("SELECT msgid FROM aq.browse(%s, max_messages => 100)", [queue]).fetchall()][10:]
        if state == "locked and removed":
            for msgid in ids:
                assert other.execute("SELECT payload FROM aq.dequeue(%s, msgid => %s, mode => 'locked')", [queue, msgid]).fetchall()
        other.execute("SAVEPOINT s")
        for msgid in ids:
            assert other.execute("SELECT payload FROM aq.dequeue(%s, msgid => %s)", [queue, msgid]).fetchall()
        if state == "locked and removed":
            other.execute("ROLLBACK TO s")
            return lambda: other.execute("COMMIT")
        return lambda: other.execute("ROLLBACK TO s; COMMIT")
    query = "SELECT payload FROM aq.dequeue(%s, max_messages => 100, mode => %s, condition => 'payload::int > 10')"
    assert len(other.execute(query, [queue, mode]).fetchall()) == 40
    if state == "locked":
        return lambda: other.execute("COMMIT")
    if state == "prepared":
        other.execute("PREPARE TRANSACTION 'half'")
        return lambda: other.execute("ROLLBACK PREPARED 'half'")
    return lambda: other.execute("ROLLBACK")


@pytest.mark.parametrize("state", ["taken", "purged", "purged and prepared", "prepared", "savepoint", "locked", "locked and removed"])
def test_nothing_is_lost_in_any_state(server, conn, state):
    """Messages in use by a transaction are met by every kind of dequeue, none of which remembers that there is nothing."""
    queue = make_table_queue(conn)
    put_many(conn, queue, 1, 50)
    ids = [row[0] for row in conn.execute("SELECT msgid FROM aq.browse(%s, max_messages => 100)", [queue]).fetchall()]
    with server.connect() as other:
        back = stop_half_way(conn, other, queue, state.removesuffix(" and prepared"))
        if state == "purged and prepared":
            other.execute("PREPARE TRANSACTION 'half'")
            back = lambda: other.execute("ROLLBACK PREPARED 'half'")  # noqa: E731
        for _ in range(2):
            assert look(conn, queue) == list(range(1, 11))
            assert ready(conn, queue)
            for condition, found in (("payload::int > 10", []), ("payload::int = 3", [(3,)])):
                query = "SELECT payload FROM aq.dequeue(%s, max_messages => 100, condition => %s, mode => 'browse')"
                assert conn.execute(query, [queue, condition]).fetchall() == found
            assert db.value(conn, "SELECT count(*) FROM aq.dequeue(%s, msgid => %s)", [queue, ids[30]]) == 0
        assert take(conn, queue) == list(range(1, 11))
        assert take(conn, queue) == [] and not ready(conn, queue)
        assert db.value(conn, "CALL aq.listen(%s, NULL, '0', NULL, NULL)", [[queue]]) is None
        back()
    assert arrived(conn, queue, 40) == list(range(11, 51))


def test_a_message_locked_and_removed_to_a_savepoint(server, conn):
    """It is still locked, for its transaction, which can take it again."""
    queue = make_table_queue(conn)
    with server.connect() as other:
        for end in ("COMMIT", "ROLLBACK"):
            put(conn, queue, 1)
            query = "SELECT payload FROM aq.dequeue(%s, msgid => %s)"
            msgid = db.value(conn, "SELECT msgid FROM aq.browse(%s)", [queue])
            conn.execute("BEGIN")
            assert conn.execute("SELECT payload FROM aq.dequeue(%s, mode => 'locked')", [queue]).fetchall() == [(1,)]
            conn.execute("SAVEPOINT s")
            assert conn.execute(query, [queue, msgid]).fetchall() == [(1,)]
            conn.execute("ROLLBACK TO s")
            assert take(conn, queue) == look(other, queue) == take(other, queue) == []
            assert conn.execute(query, [queue, msgid]).fetchall() == [(1,)]
            conn.execute(end)
            assert take(other, queue) == ([] if end == "COMMIT" else [1])


def test_a_dequeue_finds_what_is_counted_meanwhile(conn, either):
    """The worker writes a new version of the row for each attempt: a dequeue that finds neither the old nor the new
    version searches again."""
    put(conn, either, 1)
    conn.execute(
        f"""DO $$ BEGIN
            FOR i IN 1..3000 LOOP
                PERFORM aq.dequeue('{either}');
                IF NOT FOUND THEN RAISE EXCEPTION 'nothing found in round %', i; END IF;
                ROLLBACK;
            END LOOP;
        END $$"""
    )
    assert take(conn, either) == [1]
