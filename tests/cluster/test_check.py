"""aq.check(): it returns nothing where all is well, and what was damaged where something is not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, ROOT, arrived, at_rest, held, install_points, make_server, put, put_many, ready, stopped_worker, take, until
from pgaq import db

# what of a sharded queue is damaged, and what aq.check() says of it, and of nothing else
SHARDED = {
    "open": {"open"},
    "pending": {"pending slots"},
    "inflight": {"messages in flight"},
    "nretry": {"messages with a retry count to be written"},
    "nfailed": {"messages to be moved to the exception queue"},
    "ndoubt": {"transactions in doubt"},
    "nempty": {"empty pairs, according to the queue"},
    "nstreams": {"streams"},
    "numbered": {"streams found by their number"},
    "nwaiting": {"waiting messages"},
    "block": {"messages that are not where their rows are"},
    "timers_reserved": {"timers reserved for transactions"},
    "wanting": {"sessions that wait for tables"},
    "users": {"transactions that use the queue"},
    "stops_enqueue": {"transactions that stop enqueue"},
    "stops_dequeue": {"transactions that stop dequeue"},
    "waiting": {"entries in lists, according to the queue"},
    "ndoubts": {"entries"},
    "enqueued": {"enqueued - dequeued"},
    "nready": {"ready messages"},  # of the partition and of the stream
    "stream ready": {"ready messages"},
    "nunused": {"unused entries, according to the count"},
    "next_timer": {"next timer"},
    "loading": {"loaded by no session"},
    "taken": {"empty pairs claimed by no session"},
    "message": {"messages whose consumers differ from the tables", "enqueued - dequeued"},
    "first": {"first ready message"},
    "attempts": {"messages whose attempts differ from the tables"},
    "chunk": {"chunks that are free, reserved or used"},
    "pins": {"pins"},
    "lock_waiters": {"sessions that wait for the exclusive lock"},
    "lock_holder": {"locked by a session without a transaction", "locks"},
    "object": {"loaded by no session"},
    "lease": {"messages whose lease differs from the tables"},
    "receipt": {"messages whose lease differs from the tables"},
    "nameless": {"leases without a receipt or an end", "messages whose lease differs from the tables"},
    "until": {
        "pages with a lease that ends before they are searched",
        "leases that end before they are looked for",
        "messages whose lease differs from the tables",
    },
    "page_end": {"pages with a lease that ends before they are searched"},
    "lease_end": {"leases that end before they are looked for", "next timer"},
    "nleased": {"leased messages"},
}
TABLE = {
    "range": {"a ready message lies in a range that is passed by"},
    "dequeued": {"enqueued - dequeued"},
    "nretries": {"rolled back dequeues to be counted"},
    "doubt": {"an entry of a transaction that has ended"},
    "receipt": {"leases without a receipt, a beginning or an end"},
    "until": {"leases without a receipt, a beginning or an end"},
    "holder": {"rows with a holder that are not leased"},
    "time_from": {"leases that end before they are looked for"},
    "next_time": {"leases that end before they are looked for"},
}
TOPIC_TABLE = {
    "receipt": {"leases without a receipt, a beginning or an end"},
    "lost": {"leases of messages that do not exist"},
    "failed": {"failed messages that do not say when and why", "rows with a holder that are not leased"},
}
OTHERS = {
    "latches": {"latches and mutexes of a session that has ended"},
    "stops": {"commands that stop its worker"},
    "entries": {"waits for messages without a transaction"},
}
pytestmark = pytest.mark.own_tables


def check(conn, patience="20 s"):
    return db.rows(conn, "SELECT * FROM aq.check(%s)", [patience])


@pytest.fixture(scope="module")
def damaged(library):
    """A server whose library can damage shared memory, with a queue of either store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGAQ_LIBDIR", library)
        made = make_server("damaged")
    with made.connect() as conn:
        conn.execute((ROOT / "sql" / "test_points.sql").read_text().replace("$libdir/", ""))
        db.execute(conn, "SELECT aq.create_queue('sharded', shards => 1), aq.create_queue_table('public.tab')")
        db.execute(conn, "SELECT aq.create_queue('classic', queue_table => 'public.tab')")
        for queue in ("sharded", "classic"):
            put_many(conn, queue, 1, 100)
            assert take(conn, queue, number=10) == list(range(1, 11))
        db.execute(conn, "SELECT aq.create_queue_table('public.topic_tab', multiple_consumers => true)")
        db.execute(conn, "SELECT aq.create_queue('classic_topic', queue_table => 'public.topic_tab'), aq.subscribe('classic_topic', 'a')")
        put_many(conn, "classic_topic", 1, 10)
        for queue, consumer in [("sharded", None), ("classic", None), ("classic_topic", "a")]:
            assert (
                db.value(
                    conn, "SELECT count(*) FROM aq.dequeue(%s, consumer => %s, max_messages => 5, lease => '2 hours')", [queue, consumer]
                )
                == 5
            )
        # a queue with traffic has an empty table in reserve
        put(conn, "sharded", 0, priority=2)
        put_many(conn, "sharded", 101, 33_000)
        until(
            lambda: db.value(conn, "SELECT count(*) FROM aq.partitions WHERE queue_name = 'sharded' AND state = 'empty'"), "an empty table"
        )
        until(lambda: check(conn) == [], "rest")
    yield made
    problems = made.problems()
    made.destroy()
    assert problems == []


def found(conn, damage):
    """The findings of aq.check() with this damage."""
    conn.execute(damage, {"by": 1}, prepare=False)
    said = {row["what"] for row in check(conn, "0.1 s")}
    conn.execute(damage, {"by": -1}, prepare=False)
    assert check(conn) == []
    return said


@pytest.mark.parametrize("what", sorted(SHARDED))
def test_damage_of_a_sharded_queue(damaged, what):
    with damaged.connect() as conn:
        assert found(conn, f"SELECT aq.damage('sharded', '{what}', %(by)s)") == SHARDED[what]


@pytest.mark.parametrize("what", sorted(TABLE))
def test_damage_of_a_queue_table(damaged, what):
    """A range that hides a ready message is the worst: no dequeue meets it."""
    with damaged.connect() as conn:
        assert found(conn, f"SELECT aq.damage_queue_table('classic', '{what}', %(by)s)") == TABLE[what]


@pytest.mark.parametrize("what", sorted(TOPIC_TABLE))
def test_damage_of_a_topic_in_a_queue_table(damaged, what):
    with damaged.connect() as conn:
        assert found(conn, f"SELECT aq.damage_queue_table('classic_topic', '{what}', %(by)s)") == TOPIC_TABLE[what]


@pytest.mark.parametrize("what", sorted(OTHERS))
def test_damage_of_what_all_queues_share(damaged, what):
    with damaged.connect() as conn:
        assert found(conn, f"SELECT aq.damage_{what}(%(by)s)") == OTHERS[what]


def test_doubt_without_a_transaction(damaged):
    """The worker would remove the entry, and does: so it is seen while the worker stands still."""
    with damaged.connect() as conn, stopped_worker(conn):
        conn.execute("SELECT aq.damage('sharded', 'doubt', 1)")
        assert {row["what"] for row in check(conn, "0.1 s")} == {"in doubt because of a transaction that has ended"}
    with damaged.connect() as conn:
        until(lambda: check(conn) == [], "the worker's sweep")


def test_a_message_in_memory_for_half_of_all_transaction_ids(damaged):
    """No damage: it is older than 2^31 transactions, and visible to every snapshot."""
    with damaged.connect() as conn:
        first = db.value(conn, "SELECT payload FROM aq.browse('sharded')")
        conn.execute("SELECT aq.damage('sharded', 'age', 1)")
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert db.value(conn, "SELECT payload FROM aq.browse('sharded')") == first
        conn.execute("ROLLBACK")
        conn.execute("SELECT aq.damage('sharded', 'age', -1)")


def test_damage_of_a_partition_that_is_not_in_memory(library, monkeypatch, new_server):
    """Its running leases are counted without it."""
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    server = new_server("away")
    install_points(server)
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('away', shards => 1)")
        put_many(conn, "away", 1, 10)
        assert db.value(conn, "SELECT count(*) FROM aq.dequeue('away', max_messages => 5, lease => '2 hours')") == 5
    server.restart()
    with server.connect() as conn:
        until(lambda: db.value(conn, "SELECT leased FROM aq.metrics() WHERE queue_name = 'away'") == 5, "the count")
        assert found(conn, "SELECT aq.damage('away', 'away_leased', %(by)s)") == {"leased messages, according to the tables"}
        assert take(conn, "away", number=1) == [6]
        assert check(conn) == []


def test_a_row_says_where(damaged):
    with damaged.connect() as conn:
        conn.execute("SELECT aq.damage('sharded', 'inflight', 2)")
        (row,) = check(conn, "0.1 s")
        conn.execute("SELECT aq.damage('sharded', 'inflight', -2)")
        place = row.pop("place")
        assert row == {
            "queue_name": "sharded",
            "store": "sharded",
            "what": "messages in flight",
            "in_memory": 2,
            "expected": 0,
            "detail": None,
        }
        assert place.startswith("stream ") and ", partition " in place


# -- where all is well

SETTINGS = {"pgaq.message_cache_size": "4MB"}
QUEUES = [("one", None), ("many", "b"), ("table_one", None), ("table_many", "b")]


@pytest.fixture(scope="module")
def queues(server):
    """A queue and a topic of each store, with messages of several partitions."""
    with server.connect() as conn:
        for table, multi in (("", False), ("", True), ("public.t1", False), ("public.t2", True)):
            name = f"{'table_' if table else ''}{'many' if multi else 'one'}"
            if table:
                db.execute(
                    conn,
                    "SELECT aq.create_queue_table(%s, multiple_consumers => %s), aq.create_queue(%s, queue_table => %s)",
                    [table, multi, name, table],
                )
            else:
                db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => %s)", [name, multi])
            if multi:
                db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [name])
            put_many(conn, name, 1, 5_000 if table else 40_000)


def test_nothing_to_say_of_what_runs_and_of_what_is_prepared(server, queues):
    with server.connect() as conn, server.connect() as other:
        assert check(conn) == []
        conn.execute("BEGIN")
        for name, consumer in QUEUES:
            take(conn, name, consumer, number=2_000)
            put(conn, name, 1, delay="1 hour", expiration="2 hours")
            conn.execute("SAVEPOINT s")
            take(conn, name, consumer, number=10)
            conn.execute("ROLLBACK TO s")
        assert check(other) == [] and check(conn) == []
        conn.execute("ROLLBACK")
        assert check(other) == []
        conn.execute("BEGIN")
        for name, consumer in QUEUES:
            take(conn, name, consumer, number=3)
            put(conn, name, 1, delay="1 hour")
        conn.execute("PREPARE TRANSACTION 'check'")
        for name, _ in QUEUES:
            put(conn, name, 2)  # stands behind it
        assert check(other) == []
        conn.execute("COMMIT PREPARED 'check'")
        assert check(other) == []


@pytest.mark.sharded("a queue table's rows go with their consumer")
@pytest.mark.parametrize("end", ["COMMIT PREPARED", "ROLLBACK PREPARED", "COMMIT", "ROLLBACK"])
def test_nothing_to_say_of_what_was_taken_for_a_removed_consumer(server, topic, end):
    """While the transaction that has taken it runs, or is prepared, and after its end."""
    with server.connect() as conn, server.connect() as other:
        put(conn, topic, 1, 2)
        other.execute("BEGIN")
        assert take(other, topic, "b", 1) == [1]
        if "PREPARED" in end:
            other.execute("PREPARE TRANSACTION 'removed'")
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'b')", [topic])
        assert check(conn) == []
        other.execute(end + " 'removed'" * ("PREPARED" in end))
        assert check(conn) == []
        assert take(conn, topic, "a") == [1, 2]


@pytest.mark.sharded("a queue table asks the transaction's status")
def test_nothing_to_say_of_own_messages_behind_a_prepared_transaction(damaged):
    """The messages wait for a prepared transaction, which another session finishes while their transaction commits."""
    with damaged.connect() as conn, damaged.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('own', shards => 1)")
        other.execute("BEGIN")
        put(other, "own", 1)
        other.execute("PREPARE TRANSACTION 'first'")
        other.execute("BEGIN")
        put(other, "own", 2, 3)
        assert take(other, "own", number=1) == [2]
        with held(damaged, "messages-published"):
            commit = pool.submit(other.execute, "COMMIT")
            assert db.value(conn, "SELECT aq.point_await('messages-published')")
            conn.execute("COMMIT PREPARED 'first'")
            assert take(conn, "own", number=1) == [1]
        commit.result(PATIENCE)
        assert take(conn, "own") == [3]
        assert check(conn) == []


@pytest.mark.sharded("loading a queue table writes nothing")
def test_nothing_to_say_of_a_consumer_removed_while_its_messages_are_loaded(library, monkeypatch, new_server):
    """Messages of a removed consumer do not stay, although the session that loads them read the tables before the
    removal."""
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    server = new_server("removed")
    install_points(server)
    with server.connect() as conn:
        db.execute(
            conn, "SELECT aq.create_queue('t', multiple_consumers => true, shards => 1), aq.subscribe('t', 'a'), aq.subscribe('t', 'b')"
        )
        put_many(conn, "t", 1, 10)
    server.restart()
    outstanding = "SELECT sum(outstanding) FROM aq.partitions WHERE queue_name = 't'"
    with server.connect() as conn, server.connect() as other, ThreadPoolExecutor() as pool:
        put(conn, "t", 11, priority=5)  # the worker counts the others, and does not keep them in memory
        until(lambda: db.value(conn, outstanding) == 22 and at_rest(conn, "worker"), "the worker's count")
        with held(server, "loading"):
            taken = pool.submit(take, other, "t", "a")
            assert db.value(conn, "SELECT aq.point_await('loading')")
            conn.execute("SELECT aq.unsubscribe('t', 'b')")
            counted = """SELECT count(*) FROM sys."v$session_wait" WHERE event = 'aq: partition load' AND state = 'WAITING'"""
            until(lambda: db.value(conn, counted), "the worker, which has been there and counts again")
        assert taken.result(PATIENCE) == list(range(1, 12))
        until(lambda: db.value(conn, outstanding) == 0, "the end of the messages for b", 20)
        assert check(conn) == []


def test_nothing_to_say_of_those_who_wait(server, queues):
    with server.connect() as conn, server.connect() as waiter, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('empty')")
        waits = pool.submit(ready, waiter, "empty", timeout="1 minute")
        until(lambda: db.value(conn, "SELECT waiting FROM aq.subscribers WHERE queue_name = 'empty'") == 1, "a waiter")
        assert check(conn) == []
        put(conn, "empty", 1)
        assert waits.result(PATIENCE)
        assert check(conn) == []


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_nothing_to_say_after_a_restart(server, queues, how):
    server.restart(how)
    with server.connect() as conn:
        assert check(conn) == []
        for name, consumer in QUEUES:
            take(conn, name, consumer, number=100)
        assert check(conn) == []


@pytest.mark.sharded("a queue table's rows are counted in another way")
def test_lag_of_others_when_a_consumer_goes(server):
    """Partitions that are not in memory are then counted again; that is no lag of the remaining consumers, nor of the
    next one at the position."""
    lags = "SELECT consumer, lag FROM aq.subscribers WHERE queue_name = 'left' ORDER BY 1"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('left', multiple_consumers => true), aq.subscribe('left', 'a'), aq.subscribe('left', 'b')")
        put_many(conn, "left", 1, 20_000)
    server.restart()
    with server.connect() as conn:
        assert len(take(conn, "left", "b", 5)) == 5
        until(lambda: conn.execute(lags).fetchall() == [("a", 20_000), ("b", 19_995)], "both partitions counted")
        conn.execute("SELECT aq.unsubscribe('left', 'a')")
        until(lambda: check(conn) == [], "agreement")
        assert conn.execute(lags).fetchall() == [("b", 19_995)]
        assert len(take(conn, "left", "b")) == 19_995
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.subscriber WHERE kind = 'removed'") == 0, "a free position")
        conn.execute("SELECT aq.subscribe('left', 'c')")
        assert conn.execute(lags).fetchall() == [("b", 0), ("c", 0)]
        assert check(conn) == []


@pytest.mark.sharded("a queue table's rows say it")
def test_failed_for_one_consumer_and_loaded_before_the_other_is_done(server):
    """Its message goes to the exception queue when the other has dequeued it, though it has left memory meanwhile."""
    with server.connect() as conn:
        db.execute(
            conn,
            "SELECT aq.create_queue('dead'), aq.create_queue('mortal', multiple_consumers => true, max_retries => 0, exception_queue => 'dead')",
        )
        conn.execute("SELECT aq.subscribe('mortal', 'a'), aq.subscribe('mortal', 'b')")
        put(conn, "mortal", 1)
        conn.execute("BEGIN")
        assert take(conn, "mortal", "a") == [1]
        conn.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT lag FROM aq.subscribers WHERE queue_name = 'mortal' AND consumer = 'a'") == 0, "the failure")
    server.restart()
    with server.connect() as conn:
        assert take(conn, "mortal", "a") == []
        assert check(conn) == []
        assert take(conn, "mortal", "b") == [1]
        assert arrived(conn, "dead", 1) == [1]
        assert check(conn) == []
