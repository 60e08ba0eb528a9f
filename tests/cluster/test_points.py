"""A crash, an error, a cancellation and a termination at every named test point.  Needs a library built with TEST_POINTS=1,
found through $PGAQ_LIBDIR; without one it is built into a directory of its own.

The points are read from the source of the parts that traffic goes through, so that a new one is covered at once.  Those of
other parts (links, notification, the sampler, ...) are in the tests of the part, and test_other_parts_have_tests_of_their_points looks for them.
"""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import conftest
from conftest import (
    PATIENCE,
    arrived,
    background,
    generation,
    held,
    look,
    put,
    put_many,
    ready,
    server_with_points,
    stopped_worker,
    take,
    until,
    waiting_for,
)
from pgaq import db, places
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import Options, Workload
from pgaq_proof import faults

POINTS = faults.test_points(*faults.TRAFFIC)
# these need more than plain traffic, and have tests of their own below, in test_dead_letters.py, test_empty.py, test_immediate.py, test_in_session.py, test_jms_points.py, test_launcher.py, test_lease_points.py, test_max_running.py,
# test_propagate.py, test_queue_history.py, test_rules.py, test_temporary.py or test_workers.py
RARE = {
    "range-found", "nothing-ready", "worker-connected", "worker-last-round", "worker-leaves",
    "leases-held", "leases-found", "leases-over", "queues-restoring",
    "immediate-taken", "row-frozen", "row-durable",
    "helper-next", "helper-began", "helper-executed", "helper-committed", "helper-answered",
    "timers-fired", "failed-moved", "loading", "candidates-found", "counts-written-out",
    "conversion-written", "conversion-announced", "conversion-ended", "positions-told", "positions-freed", "buffered-made",
    "database-wanted", "history-written", "recipient-added", "recipients-closing", "recipients-gone", "temporary-ends", "temporary-found",
    "dead-letters-read", "rules-matched", "rule-compiles", "queue-described", "tables-made", "work-counted", "unique-read", "object-wanted", "object-loading", "object-aging", "object-locked", "definition-locked", "row-loaded",
}  # fmt: skip
# these are only on the way of queue tables
CLASSIC = {"uncommitted-met", "change-met", "ranges-copied"}
# these are only on the way of sharded queues
SHARDED = {
    "slots-reserved", "rows-found", "rows-formed", "tables-provided", "before-log", "after-log", "messages-published",
    "consumed-listed", "before-truncation", "between-truncations", "after-truncation", "candidates-found", "counts-written-out", "loading", "prepared-finished",
}  # fmt: skip
LONG_RUNS = 200
PARTITION = 16384

pytestmark = pytest.mark.test_build


def crash_once(server, work, point, skip):
    """Arms the point and waits until the server has crashed there; returns False if no session reached it."""
    before = until(lambda: generation(server), "the server")
    faults.arm(server, point, "crash", skip)
    goal = work.control.delivered + 200_000

    def over():
        work._check_clients()
        return generation(server) != before or work.control.delivered > goal

    until(over, f"a crash at {point}", 120)
    return generation(server) != before


@contextlib.contextmanager
def transaction_manager(server, rng):
    """Finish transactions that clients have left prepared: they hold back the messages behind theirs, which can be the whole backlog."""
    ended = threading.Event()

    def recover():
        while not ended.wait(0.2):
            with contextlib.suppress(db.OperationalError):  # the server is down
                faults.finish_prepared(server, 1.0, rng)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(recover)
        try:
            yield
        finally:
            ended.set()
        done.result()


def drain(server, work, rng):
    """Let the consumers take the rest, finishing what clients have left prepared: it holds back what comes behind it."""
    deadline = time.monotonic() + 2 * PATIENCE
    drained = False
    while not drained:
        assert time.monotonic() < deadline, "not drained"
        drained = work.drain(timeout=3)
        drained = faults.finish_prepared(server, 1.0, rng) == 0 and drained


def run(server, shape, points, rng, name, skip=3):
    """A workload that turns partitions over, crashing at these points; returns those never reached."""
    options = Options(rollback=5, savepoint=5, prepare=5, reconnect=True, explicit=True, backlog=4000, seed=rng.randrange(1, 10_000))
    missed = []
    with Workload(server, PGAQ, shape, options, queue=name) as work:
        work.setup()
        work.start()
        with transaction_manager(server, random.Random(rng.random())):
            for point in points:
                began = time.monotonic()
                crashed = crash_once(server, work, point, rng.randrange(skip))
                print(f"{point}: {'crashed' if crashed else 'never reached'} after {time.monotonic() - began:.1f} s")
                if not crashed:
                    missed.append(point)
                    with server.connect() as conn:
                        conn.execute("SELECT aq.point_reset()")
                goal = work.control.delivered + 500
                until(lambda: work.control.delivered >= goal or work._check_clients(), f"progress after {point}")
        drain(server, work, rng)
        work.stop()
        report = work.check()
        assert report.ok, f"{points}: {report}"
        work.teardown()
    return missed


def test_points_exist():
    assert len(POINTS) >= 5 and RARE <= set(POINTS), POINTS


def test_other_parts_have_tests_of_their_points():
    """A point of a part that traffic does not go through is named by a test."""
    tests = "".join(path.read_text() for path in places.ROOT.glob("tests/cluster/*.py"))
    assert [point for point in set(faults.test_points()) - set(POINTS) if not re.search(f"[\"']{point}[\"':]", tests)] == []


def test_crash_at_points(points_server, seed):
    """Each point once (the long form: two hundred random crashes)."""
    rng = random.Random(seed)
    points = sorted(set(POINTS) - RARE - (SHARDED if conftest.on_queue_tables else CLASSIC))
    rng.shuffle(points)
    assert run(points_server, Shape(sessions=3, batch=20, payload=40), points, rng, "points") == []


def befall_once(server, work, point, action, skip):
    """Arm the point and wait until a session has met with the action.  A worker that has failed pauses for some seconds."""
    faults.arm(server, point, action, skip)

    def reached():
        with (
            contextlib.suppress(db.OperationalError),
            server.connect() as conn,
        ):  # this may be the session that meets with it, when it commits
            return db.value(conn, "SELECT aq.point_reached(%s)", [point]) > skip
        return False

    until(lambda: reached() or work._check_clients(), f"{action} at {point}", 120)


def end_sessions(server, shape, cases, rng, name):
    """A workload whose sessions meet with each (point, action); all messages arrive once, in order."""
    server.expect_log("test point|canceling|terminating")
    options = Options(rollback=5, savepoint=5, prepare=5, reconnect=True, explicit=True, backlog=4000, seed=rng.randrange(1, 10_000))
    with Workload(server, PGAQ, shape, options, queue=name) as work:
        work.setup()
        work.start()
        with transaction_manager(server, random.Random(rng.random())):
            for point, action in cases:
                print(f"{action} at {point}")
                befall_once(server, work, point, action, rng.randrange(3))
                goal = work.control.delivered + 500
                until(lambda: work.control.delivered >= goal or work._check_clients(), f"progress after {action} at {point}")
        drain(server, work, rng)
        work.stop()
        report = work.check()
        assert report.ok, report
        work.teardown()


def test_sessions_end_at_points(points_server, seed):
    """An error, a cancellation or a termination at each point leaves nothing behind."""
    rng = random.Random(seed)
    points = sorted(set(POINTS) - RARE - (SHARDED if conftest.on_queue_tables else CLASSIC))
    cases = [
        (point, action)
        for point in points
        for action in ("error", "cancel", "terminate")
        if action == "terminate" or point not in faults.held_points()
    ]
    rng.shuffle(cases)
    end_sessions(points_server, Shape(sessions=3, batch=20, payload=40), cases, rng, "ends")


ENDS = ["error", "cancel", "terminate"]


@contextlib.contextmanager
def ending(server, point, action):
    """The next session at the point ends in this way; it is another one's, or the caller's."""
    server.expect_log("test point|canceling|terminating")
    faults.arm(server, point, action)
    with contextlib.suppress(db.Error):
        yield
    with server.connect() as conn:
        assert db.value(conn, "SELECT aq.point_await(%s)", [point])
        conn.execute("SELECT aq.point_reset()")


@pytest.mark.sharded("the frame of a partition")
def test_drop_while_counts_are_written(points_server):
    """A drop of an empty queue clears rolled back dequeues of removed consumers while the worker writes their counts:
    both continue."""
    points_server.expect_log("crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('t', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('t', 'a')")
        put(conn, "t", 1)
    points_server.restart()  # the partition takes no more messages, so it goes when it is consumed
    before = until(lambda: generation(points_server), "the server")
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("SELECT aq.point_hold('retries-written')")
        conn.execute("BEGIN")
        assert take(conn, "t", "a") == [1]
        conn.execute("ROLLBACK")
        try:
            assert db.value(conn, "SELECT aq.point_await('retries-written')")
            conn.execute("SELECT aq.unsubscribe('t', 'a')")
            pid = other.info.backend_pid
            dropped = pool.submit(other.execute, "SELECT aq.drop_queue('t')")
            until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [pid]) > 0, "a drop that waits")
        finally:
            conn.execute("SELECT aq.point_reset()")
        dropped.result(PATIENCE)
    assert generation(points_server) == before


@pytest.mark.sharded("loading a queue table writes nothing")
@pytest.mark.parametrize("action", ["cancel", "terminate"])
def test_load_ends_early(points_server, action):
    """The session that loads a partition fails: another one that waits for it loads it itself."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('loaded')")
        put_many(conn, "loaded", 1, 20_000)
    points_server.restart("fast")
    points_server.expect_log("test point|terminating|canceling")
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as third, ThreadPoolExecutor() as pool:
        db.execute(conn, "SET pgaq.test_point = 'loading:wait'")  # this session's only: the worker counts meanwhile
        first = pool.submit(take, conn, "loaded", number=10)
        try:
            until(lambda: db.value(third, "SELECT aq.point_waiting('loading') = 1"), "the session that loads")
            second = pool.submit(take, other, "loaded", number=10)
            until(
                lambda: db.value(third, "SELECT EXISTS (SELECT FROM sys.\"v$session_wait\" WHERE event = 'aq: partition load')"),
                "a session that waits",
            )
            db.execute(third, f"SELECT pg_{action}_backend(%s)", [conn.info.backend_pid])
            with pytest.raises(db.Error):
                first.result(PATIENCE)
            assert second.result(PATIENCE) == list(range(1, 11))
        finally:
            db.execute(third, "SELECT aq.point_reset()")


@pytest.mark.sharded("queue tables keep no places of rows in memory")
def test_two_sessions_find_a_new_partition(points_server):
    """Each looks for the rows that are in its table already: the one that ends last leaves the rows that the other has inserted meanwhile."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('found', shards => 1)")
        db.execute(other, "SET pgaq.test_point = 'rows-found:wait'")
        late = pool.submit(put_many, other, "found", 1, 10)
        try:
            until(lambda: db.value(conn, "SELECT aq.point_waiting('rows-found') = 1"), "the session that looks for rows")
            put_many(conn, "found", 11, 20)
        finally:
            db.execute(conn, "SELECT aq.point_reset()")
        late.result(PATIENCE)
        assert sorted(take(conn, "found", number=20)) == list(range(1, 21))


@pytest.mark.parametrize("action", ENDS)
def test_first_use_ends_early(points_server, action):
    """The first session to use a queue fails: the next one finds the queue as if it were the first."""
    points_server.expect_log("test point|canceling|terminating")
    for point in ("object-wanted", "object-loading"):
        queue = point.replace("-", "_")
        with points_server.connect() as conn, points_server.connect() as other:
            db.execute(conn, f"SELECT aq.create_queue('{queue}')")
            db.execute(other, f"SET pgaq.test_point = '{point}:{action}'")
            with pytest.raises(db.Error):
                put(other, queue, 1)
            put_many(conn, queue, 1, 10)
            assert take(conn, queue, number=20) == list(range(1, 11))


@pytest.mark.sharded("a queue table has no partitions")
@pytest.mark.parametrize("action", ENDS)
def test_making_tables_ends_early(points_server, action):
    """The worker fails while it makes tables: the enqueuer that waits gets some all the same."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        with ending(points_server, "tables-made", action):
            put_many(conn, "q", 1, 10)
        assert take(conn, "q", number=10) == list(range(1, 11))


def test_crash_when_timers_fire(points_server, seed):
    """Delayed messages become ready once, however often the worker dies over it."""
    shape = Shape(sessions=2, batch=10, payload=40, delay_ms=100)
    assert run(points_server, shape, ["timers-fired", "timers-fired"], random.Random(seed), "timers") == []


def test_crash_when_failed_messages_are_moved(points_server):
    """An expired message is in the exception queue once, and not in its own queue any more."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('dead'), aq.create_queue('mortal', exception_queue => 'dead')")
        before = generation(points_server)
        faults.arm(points_server, "failed-moved", "crash", 2)
        with contextlib.suppress(db.OperationalError):  # committed, but the worker may be faster than the answer
            put_many(conn, "mortal", 1, 1000, expiration="0.3 s")
    until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        assert sorted(arrived(conn, "dead", 1000)) == list(range(1, 1001))
        assert db.value(conn, "SELECT count(*) FROM aq.browse('mortal')") == 0


@pytest.mark.sharded("queue tables insert row by row")
def test_error_after_rows_were_formed(points_server):
    """Rows formed by a failed enqueue do not appear in the next one, whether it is shorter or longer."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('formed')")
        for number in (1, 5):
            conn.execute("SELECT aq.point_arm('rows-formed', 'error', 0)")
            with pytest.raises(db.Error):
                put_many(conn, "formed", 101, 103)
            put_many(conn, "formed", 1, number)
            assert take(conn, "formed", number=10) == list(range(1, number + 1))


@pytest.mark.own_tables
def test_commit_during_a_dequeue(points_server):
    """A dequeue does not get the second message of a transaction whose first one it has met uncommitted."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue_table('public.t'), aq.create_queue('met', queue_table => 'public.t')")
        conn.execute("BEGIN")
        put_many(conn, "met", 1, 2)
        with held(points_server, "uncommitted-met") as third:
            found = pool.submit(lambda: take(other, "met"))
            assert db.value(third, "SELECT aq.point_await('uncommitted-met')")
            conn.execute("COMMIT")
        assert found.result(PATIENCE) + take(conn, "met") == [1, 2]


@pytest.mark.own_tables
def test_dequeue_by_id_while_the_worker_counts(points_server):
    """A message whose retry count is being written is there: who asks for it by its id waits for that."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue_table('public.t'), aq.create_queue('counted', queue_table => 'public.t')")
        msgid = db.value(conn, "SELECT aq.enqueue('counted', '1')")
        db.execute(conn, "SELECT aq.point_hold('retries-written')")
        conn.execute("BEGIN")
        assert take(conn, "counted") == [1]
        conn.execute("ROLLBACK")
        try:
            assert db.value(conn, "SELECT aq.point_await('retries-written')")
            query = "SELECT payload, attempts FROM aq.dequeue('counted', msgid => %s)"
            found = pool.submit(lambda: other.execute(query, [msgid]).fetchall())
            waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event IS NOT NULL AND state = 'active'"
            until(lambda: found.done() or db.value(conn, waits, [other.info.backend_pid]), "a dequeue that waits")
        finally:
            db.execute(conn, "SELECT aq.point_reset()")
        assert found.result(PATIENCE) == [(1, 1)]


@pytest.mark.own_tables
def test_counted_while_a_dequeue_looks(points_server):
    """A dequeue that meets the old version of a message, whose retry count is then committed, finds the new one."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue_table('public.t'), aq.create_queue('looked', queue_table => 'public.t')")
        put(conn, "looked", 1)
        with held(points_server, "retries-written") as third:
            conn.execute("BEGIN")
            assert take(conn, "looked") == [1]
            conn.execute("ROLLBACK")
            assert db.value(third, "SELECT aq.point_await('retries-written')")
            db.execute(third, "SELECT aq.point_hold('change-met')")
            found = pool.submit(take, other, "looked")
            assert db.value(third, "SELECT aq.point_await('change-met')")
            db.execute(third, "SELECT aq.point_release('retries-written')")
            until(lambda: db.value(third, "SELECT attempts FROM aq.messages WHERE queue_name = 'looked'") == 1, "the count")
            assert look(conn, "looked") == [1]  # waits until the count is off the worker's list
        assert found.result(PATIENCE) == [1]


def test_counted_while_a_dequeue_has_others(points_server):
    """A dequeue that has one message, and meets another whose retry count was committed since it began, takes that one, too."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as gate, ThreadPoolExecutor() as pool:
        db.execute(
            conn,
            "SELECT aq.create_queue_table('public.overtaken_t'), aq.create_queue('overtaken', queue_table => 'public.overtaken_t', retry_delay => '0')",
        )
        put_many(conn, "overtaken", 1, 3)
        db.execute(gate, "SELECT pg_advisory_lock(34)")
        waits = "pg_advisory_xact_lock_shared(34) IS NOT NULL"
        with held(points_server, "retries-written") as third:
            conn.execute("BEGIN")
            assert db.value(conn, "SELECT payload FROM aq.dequeue('overtaken', condition => 'payload::int = 2')") == 2
            conn.execute("ROLLBACK")
            assert db.value(third, "SELECT aq.point_await('retries-written')")
            found = pool.submit(
                db.value, other, f"SELECT array_agg(payload::int) FROM aq.dequeue('overtaken', max_messages => 12, condition => '{waits}')"
            )
            until(
                lambda: db.value(third, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1,
                "the dequeue is at the first message",
            )
            db.execute(third, "SELECT aq.point_release('retries-written')")
            until(lambda: db.value(third, "SELECT max(attempts) FROM aq.messages WHERE queue_name = 'overtaken'") == 1, "the count")
            assert look(conn, "overtaken") == [1, 2, 3]  # waits until the count is off the worker's list
            db.execute(gate, "SELECT pg_advisory_unlock(34)")
            assert found.result(PATIENCE) == [1, 2, 3]


@pytest.mark.sharded("a queue table asks the transaction's status")
@pytest.mark.parametrize("how", ["error", "terminate"])
def test_not_settled_by_the_session_that_finishes(points_server, how):
    """It fails, or ends, between its COMMIT PREPARED and settling what that has decided: the worker settles it."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("SELECT aq.create_queue('q')")
        conn.execute("BEGIN")
        put_many(conn, "q", 1, 3)
        conn.execute("PREPARE TRANSACTION 'p'")
        if how == "error":
            conn.execute("SELECT aq.point_arm('prepared-finished', 'error', 0)")
            conn.execute("COMMIT PREPARED 'p'")  # which has worked
        else:
            conn.execute("SELECT aq.point_hold('prepared-finished')")
            with stopped_worker(conn):
                pid = other.info.backend_pid
                ended = pool.submit(other.execute, "COMMIT PREPARED 'p'")
                assert db.value(conn, "SELECT aq.point_await('prepared-finished')")
                assert take(conn, "q") == []
                conn.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])
                with pytest.raises(db.Error):
                    ended.result(PATIENCE)
            conn.execute("SELECT aq.point_reset()")
        assert arrived(conn, "q", 3) == [1, 2, 3]


@pytest.mark.sharded("a queue table lists its transactions in doubt elsewhere")
def test_producer_goes_on_before_its_prepared_transaction_is_settled(points_server):
    """COMMIT PREPARED releases the producer's lock before it settles the enqueued messages: the next message still
    comes later."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("SELECT aq.create_queue('q')")
        conn.execute("BEGIN")
        put(conn, "q", 1, producer="p")
        conn.execute("PREPARE TRANSACTION 'p'")
        conn.execute("SELECT aq.point_hold('prepared-finished')")
        with stopped_worker(conn):
            finished = pool.submit(other.execute, "COMMIT PREPARED 'p'")
            assert db.value(conn, "SELECT aq.point_await('prepared-finished')")
            put(conn, "q", 2, producer="p")
            got = take(conn, "q")
            conn.execute("SELECT aq.point_reset()")
            finished.result(PATIENCE)
        assert got == [1, 2]


@pytest.mark.sharded("a queue table has no log")
def test_vacuum_before_a_rollback_is_settled(points_server):
    """VACUUM removes the log rows of the rolled back transaction; messages taken by another prepared one stay taken."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        conn.execute("SELECT aq.create_queue('q', shards => 1, multiple_consumers => true), aq.subscribe('q', 'a'), aq.subscribe('q', 'b')")
        for message in (1, 2):
            with points_server.connect() as producer:
                put(producer, "q", message)
        for gid, consumer in (("stays", "a"), ("goes", "a"), ("goes too", "b")):
            conn.execute("BEGIN")
            assert len(take(conn, "q", consumer, number=1)) == 1
            conn.execute(f"PREPARE TRANSACTION '{gid}'")
        conn.execute("SELECT aq.point_hold('prepared-finished')")
        with stopped_worker(conn):
            finished = pool.submit(lambda: [other.execute(f"ROLLBACK PREPARED '{gid}'") for gid in ("goes", "goes too")])
            assert db.value(conn, "SELECT aq.point_await('prepared-finished')")
            for (log,) in conn.execute(
                "SELECT oid::regclass FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^l[0-9]'"
            ).fetchall():
                conn.execute(f"VACUUM {log}")
            conn.execute("SELECT aq.point_reset()")
            finished.result(PATIENCE)
        assert arrived(conn, "q", 1, "a") == [2]
        assert arrived(conn, "q", 2, "b") == [1, 2]
        conn.execute("ROLLBACK PREPARED 'stays'")
        assert arrived(conn, "q", 1, "a") == [1]


@pytest.mark.sharded("a queue table asks the transaction's status")
def test_commit_prepared_does_not_wait_for_a_drop(points_server):
    """A drop that has settled what the transaction took, and stays open, is not waited for."""
    with (
        points_server.connect() as conn,
        points_server.connect() as dropper,
        points_server.connect() as other,
        ThreadPoolExecutor() as pool,
    ):
        conn.execute("SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        conn.execute("BEGIN")
        assert take(conn, "q") == [1]
        conn.execute("PREPARE TRANSACTION 'p'")
        conn.execute("SELECT aq.point_hold('prepared-finished')")
        finished = pool.submit(other.execute, "COMMIT PREPARED 'p'")
        assert db.value(conn, "SELECT aq.point_await('prepared-finished')")
        dropper.execute("BEGIN")
        dropper.execute("SELECT aq.drop_queue('q')")
        conn.execute("SELECT aq.point_reset()")
        try:
            finished.result(PATIENCE)
        finally:
            dropper.execute("ROLLBACK")
        assert not ready(conn, "q")


@pytest.mark.sharded("loading a queue table writes nothing")
def test_crash_while_loading(points_server):
    """The first session after a restart dies while it reads what is there; the next reads it all the same."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('loaded')")
        put_many(conn, "loaded", 1, 30_000)
        assert take(conn, "loaded", number=10_000) == list(range(1, 10_001))
    for skip in (0, 1):
        points_server.restart("immediate")
        before = until(lambda: generation(points_server), "the server")
        faults.arm(points_server, "loading", "crash", skip)
        try:
            with points_server.connect() as conn:
                conn.execute("BEGIN")
                take(conn, "loaded")
        except db.OperationalError:
            pass
        until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        assert arrived(conn, "loaded", 20_000) == list(range(10_001, 30_001))


@pytest.fixture
def small_cache(library, monkeypatch):
    """A server with test points whose message cache holds seven partitions."""
    with server_with_points(monkeypatch, library, "small", r"terminat|crash|signal 9", **{"pgaq.message_cache_size": "4MB"}) as server:
        yield server


@pytest.mark.sharded("a queue table needs no message cache")
def test_evicted_between_look_and_take(small_cache):
    """A selective dequeue gets what it has found, though the partition has left the cache meanwhile."""
    server = small_cache
    with server.connect() as conn, server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('looked_at', shards => 1), aq.create_queue('large')")
        put_many(conn, "looked_at", 1, 20_000)
        for start in range(1, 150_000, 10_000):
            put_many(conn, "large", start, start + 9_999)
        query = "SELECT payload FROM aq.dequeue('looked_at', max_messages => 3, condition => 'priority = 1')"
        with held(server, "candidates-found"):
            found = pool.submit(lambda: other.execute(query).fetchall())
            assert db.value(conn, "SELECT aq.point_await('candidates-found')")
            conn.execute("BEGIN")
            assert db.value(conn, "SELECT count(*) FROM aq.dequeue('large', max_messages => 110000, mode => 'locked')") == 110_000
            assert db.value(conn, "SELECT bool_or(NOT resident) FROM aq.partitions WHERE queue_name = 'looked_at' AND state = 'closed'")
            conn.execute("ROLLBACK")
        assert found.result(PATIENCE) == [(1,), (2,), (3,)]
        assert take(conn, "looked_at") == list(range(4, 20_001))


@pytest.mark.sharded("a queue table needs no message cache")
def test_own_messages_stay_in_memory(small_cache):
    """A partition from which a transaction has dequeued its own messages is not evicted while the transaction commits."""
    with small_cache.connect() as conn, small_cache.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1), aq.create_queue('large')")
        for start in range(1, 150_000, 50_000):
            put_many(conn, "large", start, start + 49_999)
        other.execute("BEGIN")
        put_many(other, "q", 1, PARTITION)
        assert take(other, "q", number=2) == [1, 2]
        with held(small_cache, "messages-published"):
            commit = pool.submit(other.execute, "COMMIT")
            assert db.value(conn, "SELECT aq.point_await('messages-published')")
            assert db.value(conn, "SELECT count(*) FROM aq.browse('large', max_messages => 200000)") == 150_000
            assert db.value(conn, "SELECT resident FROM aq.partitions WHERE queue_name = 'q' AND state = 'closed'")
        commit.result(PATIENCE)
        assert take(conn, "q") == list(range(3, PARTITION + 1))


@pytest.mark.sharded("a queue table needs no message cache")
# once, under load, a dequeue found the message cache full for 10 s after the error: not understood yet
@pytest.mark.parametrize("action", [pytest.param("error", marks=pytest.mark.long), "crash"])
def test_counts_are_written_out(small_cache, action):
    """Retry counts for which there is no memory: an error or a crash while they are written loses none and counts none twice."""
    with small_cache.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', retry_delay => '1 s')")  # whose timers do not fit
        for start in range(1, 120_000, 10_000):
            put_many(conn, "q", start, start + 9_999)
        conn.execute("BEGIN")
        assert take(conn, "q", number=110_000) == list(range(1, 110_001))
        with small_cache.connect() as other:
            other.execute("SELECT aq.point_arm('counts-written-out', %s, 2)", [action])
        before = generation(small_cache)
        with stopped_worker(conn):  # or it writes what fits into memory while the rollback is under way
            conn.execute("ROLLBACK")
        if action == "error":
            until(lambda: "test point" in small_cache.log_text(), "the error")
    if action == "crash":
        until(lambda: generation(small_cache) not in (None, before), "a crash")
    found = []
    with small_cache.connect() as conn:
        while len(found) < 120_000 and ready(conn, "q", timeout="20 s"):
            found += conn.execute("SELECT payload, attempts FROM aq.dequeue('q', max_messages => 5000)").fetchall()
    assert sorted(number for number, _ in found) == list(range(1, 120_001))
    # what rests until another time may come in another order
    once = sorted(number for number, attempts in found if attempts == 1)
    assert all(attempts <= 1 for _, attempts in found)
    # a crash is no rollback: what was not written then does not count
    assert once == list(range(1, 110_001 if action == "error" else 2 * PARTITION + 1))


@pytest.fixture
def old_queue(points_server):
    """A queue of a queue table with the messages 1 to 100."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue_table('public.tab')")
        db.execute(conn, "SELECT aq.create_queue('old', queue_table => 'public.tab')")
        put_many(conn, "old", 1, 100)
    return "old"


def converting(conn):
    return conn.execute("SELECT converting, queue_table IS NULL FROM aq.queues WHERE queue_name = 'old'").fetchone()


@pytest.mark.sharded("conversion to a sharded queue")
def test_conversion_before_others_hear_of_it(points_server):
    """Its commit is visible, and announced, before PostgreSQL tells other sessions that their caches of the catalog are old."""
    with points_server.connect() as conn, points_server.connect() as other, points_server.connect() as user, ThreadPoolExecutor(2) as pool:
        db.execute(conn, "SELECT aq.create_queue_table('public.heard'), aq.create_queue('heard', queue_table => 'public.heard')")
        put(user, "heard", 1)  # from now on it knows the queue as one of a queue table
        conn.execute("SELECT aq.point_hold('conversion-announced')")
        try:
            converted = pool.submit(db.execute, other, "SELECT aq.convert_queue('heard')")
            assert db.value(conn, "SELECT aq.point_await('conversion-announced')")
            came = pool.submit(put, user, "heard", 2)
            # the worker has not made a table yet, or it has, and the enqueue is done before the conversion has ended
            blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
            until(
                lambda: waiting_for(conn, "aq: waiting for a partition") or db.value(conn, blocked, [user.info.backend_pid]) or came.done(),
                "the wait",
            )
        finally:
            conn.execute("SELECT aq.point_reset()")
        converted.result(PATIENCE)
        came.result(PATIENCE)
        assert take(conn, "heard") == [1, 2]
        db.execute(conn, "SELECT aq.drop_queue('heard', true), aq.drop_queue_table('public.heard', force => true)")


@pytest.mark.sharded
@pytest.mark.parametrize("point", ["conversion-written", "in-commit-callback"])
def test_crash_while_converting(points_server, old_queue, point):
    """The queue is what it was, or it is converted; in both its messages are there, and it can be converted."""
    before = generation(points_server)
    faults.arm(points_server, point, "crash", 0)
    try:
        with points_server.connect() as conn:
            db.execute(conn, "SELECT aq.convert_queue('old')")
    except db.OperationalError:
        pass
    until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        state = converting(conn)
        # any transaction's commit may have been the one that crashed
        assert state == (False, False) or (point == "in-commit-callback" and state == (True, False))
        if state == (False, False):
            db.execute(conn, "SELECT aq.convert_queue('old')")
        put_many(conn, "old", 101, 200)
        assert take(conn, "old") == list(range(1, 201))
        until(lambda: converting(conn) == (False, True), "the end of the conversion")


@pytest.mark.sharded
def test_crash_at_the_end_of_a_conversion(points_server, old_queue):
    """The worker dies when the queue is about to leave its queue table: the next one lets it."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.convert_queue('old')")
        put_many(conn, "old", 101, 200)
        before = generation(points_server)
        faults.arm(points_server, "conversion-ended", "crash", 0)
        assert take(conn, "old", number=100) == list(range(1, 101))
    until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        until(lambda: converting(conn) == (False, True), "the end of the conversion")
        assert take(conn, "old") == list(range(101, 201))


@pytest.mark.sharded
def test_the_queue_table_is_looked_at_again(points_server, old_queue):
    """Messages that come into the queue table after a dequeue found it empty are not skipped."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        take(conn, "old")
        conn.execute("BEGIN")
        put_many(conn, "old", 1, 1)
        with points_server.connect() as third:
            db.execute(third, "SELECT aq.convert_queue('old')")
            put_many(third, "old", 3, 3)
            third.execute("SELECT aq.point_hold('candidates-found')")
            found = pool.submit(take, other, "old", number=1)
            try:
                assert db.value(third, "SELECT aq.point_await('candidates-found')")
                put_many(conn, "old", 2, 2)
                conn.execute("COMMIT")
            finally:
                third.execute("SELECT aq.point_reset()")
        assert found.result(PATIENCE) == [1]
        assert sorted(take(conn, "old")) == [2, 3]


@pytest.mark.parametrize("action", ["error", "crash"])
def test_first_buffered_message(points_server, action):
    """The worker fails or dies when it has made the tables, before its commit: they are made again, and nothing was lost."""
    points_server.expect_log("test point")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('buf')")
        put(conn, "buf", 1)
        conn.execute("SELECT aq.point_arm('buffered-made', %s, 0)", [action])
    before = generation(points_server)
    try:
        with points_server.connect() as conn:
            put(conn, "buf", 2, delivery_mode="buffered")
    except db.OperationalError:
        assert action == "crash"
    if action == "crash":
        until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        put(conn, "buf", 3, delivery_mode="buffered")
        query = "SELECT payload FROM aq.dequeue('buf', max_messages => 10, delivery_mode => 'persistent_or_buffered')"
        assert sorted(row[0] for row in conn.execute(query)) == ([1, 3] if action == "crash" else [1, 2, 3])
        assert db.value(conn, "SELECT losses FROM aq.buffered_queues WHERE queue_name = 'buf'") == 0


@pytest.fixture
def held_worker(points_server):
    """A topic whose consumer "old" was removed, and the worker that has just freed its position goes no further."""
    with points_server.connect() as conn:
        for topic in ("topic", "other"):
            db.execute(
                conn,
                f"SELECT aq.create_queue('{topic}', multiple_consumers => true), aq.subscribe('{topic}', 'ann'), aq.subscribe('{topic}', 'old')",
            )
            put_many(conn, topic, 1, 3)
            assert take(conn, topic, "ann") == [1, 2, 3]
        conn.execute("SELECT aq.unsubscribe('topic', 'old')")
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM aq_internal.subscriber WHERE kind = 'removed'"), "a free position")
        db.execute(conn, "SELECT aq.subscribe('topic', 'old'), aq.point_hold('positions-freed')")
        conn.execute("SELECT aq.unsubscribe('topic', 'old')")
        assert db.value(conn, "SELECT aq.point_await('positions-freed')")
        yield conn
        conn.execute("SELECT aq.point_reset()")


@pytest.mark.sharded("a queue table has no partitions")
def test_position_used_again(held_worker):
    """A new consumer at the position of a removed one gets its own messages at once, however slow the worker is."""
    held_worker.execute("SELECT aq.subscribe('topic', 'new')")
    put_many(held_worker, "topic", 4, 5)
    held_worker.execute("SELECT aq.point_release('positions-freed')")
    assert take(held_worker, "topic", "new") == [4, 5]


@pytest.mark.sharded("a queue table has no partitions")
def test_position_is_not_used_again_before_an_enqueue_ends(points_server):
    """An enqueue that has found its consumers, and has no place for the message yet, is not for who subscribes when one of them was removed."""
    with points_server.connect() as conn, points_server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(
            conn, "SELECT aq.create_queue('topic', multiple_consumers => true), aq.subscribe('topic', 'ann'), aq.subscribe('topic', 'old')"
        )
        other.execute("BEGIN")
        other.execute("SELECT pg_current_xact_id()")
        other.execute("SET LOCAL pgaq.test_point = 'tables-provided:wait'")
        came = pool.submit(put, other, "topic", 1)
        try:
            assert db.value(conn, "SELECT aq.point_await('tables-provided')")
            conn.execute("SELECT aq.point_hold('positions-freed')")
            conn.execute("SELECT aq.unsubscribe('topic', 'old')")
            assert db.value(conn, "SELECT aq.point_await('positions-freed')"), "the worker has looked for free positions"
            db.execute(conn, "SELECT aq.subscribe('topic', 'new')")
        finally:
            conn.execute("SELECT aq.point_reset()")
        came.result(PATIENCE)
        other.execute("COMMIT")
        assert take(conn, "topic", "new") == []
        assert take(conn, "topic", "ann") == [1]


@pytest.mark.sharded("a queue table has no partitions")
def test_drop_after_unsubscribe(held_worker):
    """Messages for a removed consumer only do not keep a queue from being dropped, though the worker has not been there."""
    held_worker.execute("SELECT aq.unsubscribe('other', 'old')")
    held_worker.execute("SELECT aq.drop_queue('other')")


SHAPES = [Shape(sessions=3, batch=20, payload=40), Shape(kind="topic", sessions=2, batch=20, subscribers=3, payload=40)]


def server_of_long_run(library, monkeypatch, rng):
    """Its message cache is small or large."""
    return server_with_points(
        monkeypatch, library, "points", **{"pgaq.reuse_grace": "0", "pgaq.message_cache_size": rng.choice(["4MB", "128MB"])}
    )


@pytest.mark.long
def test_two_hundred_crashes(library, monkeypatch, seed):
    rng = random.Random(seed)
    common = sorted(set(POINTS) - RARE - CLASSIC)
    done = 0
    while done < LONG_RUNS:
        with server_of_long_run(library, monkeypatch, rng) as server:
            points = [rng.choice(common) for _ in range(10)]
            done += len(points) - len(run(server, rng.choice(SHAPES), points, rng, f"points{done}", skip=rng.choice([2, 20, 2000])))


@pytest.mark.long
def test_two_hundred_terminations(library, monkeypatch, seed):
    rng = random.Random(seed)
    common = sorted(set(POINTS) - RARE - CLASSIC)
    for done in range(0, LONG_RUNS, 10):
        with server_of_long_run(library, monkeypatch, rng) as server:
            end_sessions(server, rng.choice(SHAPES), [(rng.choice(common), "terminate") for _ in range(10)], rng, f"ends{done}")


def test_the_sampler_survives_an_error(points_server):
    """An error ends the sampler; the postmaster restarts it, and it continues with the same history."""
    info = 'SELECT sample_count, started FROM sys."v$ash_info"'
    with points_server.connect() as conn:
        old = until(lambda: background(conn, "sampler"), "the sampler")
        before = db.row(conn, info)
        db.execute(conn, "SELECT aq.point_arm('sampled', 'error', 0)")
        until(lambda: background(conn, "sampler") not in (None, old), "another sampler")
        after = until(lambda: db.row(conn, info)["sample_count"] > before["sample_count"] + 1 and db.row(conn, info), "samples")
        assert after["started"] == before["started"]
