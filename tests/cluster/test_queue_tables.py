"""Queue tables: what a held xmin, a backlog and VACUUM do to them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, drop, look, put, put_many, stopped_worker, take, until
from pgaq import db

SETTINGS = {"autovacuum": "off"}
pytestmark = pytest.mark.own_tables

EAT = """
CREATE PROCEDURE eat(queue text, consumer text, rounds int, size int) LANGUAGE plpgsql AS $$
DECLARE
	got int;
BEGIN
	FOR i IN 1..rounds LOOP
		SELECT count(*) INTO got FROM aq.dequeue(queue, consumer => consumer, max_messages => size);
		IF got <> size THEN RAISE EXCEPTION 'round %: % of % messages', i, got, size; END IF;
		COMMIT;
	END LOOP;
END $$
"""


@pytest.fixture(scope="module", autouse=True)
def helpers(server):
    with server.connect() as conn:
        conn.execute(EAT)


@pytest.fixture(params=["", "priority, enq_time"])
def table_queue(request, server):
    """A queue in a queue table of its own."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue_table('public.one', sort_list => %s)", [request.param])
        db.execute(conn, "SELECT aq.create_queue('one', queue_table => 'public.one')")
    yield "one"
    with server.connect() as conn:
        drop(conn, "one")
        db.execute(conn, "SELECT aq.drop_queue_table('public.one', force => true)")


@pytest.fixture
def table_topic(server):
    """A topic in a queue table, with the subscribers a and b."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue_table('public.many', multiple_consumers => true)")
        db.execute(conn, "SELECT aq.create_queue('many', queue_table => 'public.many')")
        db.execute(conn, "SELECT aq.subscribe('many', 'a'), aq.subscribe('many', 'b')")
    yield "many"
    with server.connect() as conn:
        drop(conn, "many")
        db.execute(conn, "SELECT aq.drop_queue_table('public.many', force => true)")


def pages(conn):
    """Pages of the queue tables and their indexes that were looked at since the last call."""
    db.execute(conn, "SELECT pg_stat_force_next_flush()")
    looked = db.value(
        conn,
        """SELECT sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))::bigint
           FROM pg_statio_all_tables WHERE schemaname = 'aq_data'""",
    )
    before, pages.last = getattr(pages, "last", 0), looked
    return looked - before


def eat(conn, queue, consumer, number):
    """Dequeue ten at a time; how many pages that took."""
    pages(conn)
    db.execute(conn, "CALL eat(%s, %s, %s, 10)", [queue, consumer, number // 10])
    return pages(conn)


def hold_xmin(conn):
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")


@pytest.mark.parametrize("turn_over", [False, True], ids=["backlog", "turnover"])
def test_dequeue_does_not_walk_over_what_is_consumed(server, conn, table_queue, is_long, turn_over):
    """With xmin held, nothing consumed can be cleaned away, and dequeue costs at the end what it cost at the beginning."""
    number = 200_000 if is_long else 20_000
    with server.connect() as other:
        hold_xmin(other)
        costs = []
        if not turn_over:
            for priority in range(10):
                put_many(conn, table_queue, 1, number // 10, priority=priority)
        for _ in range(10):
            if turn_over:
                for priority in range(10):
                    put_many(conn, table_queue, 1, number // 100, priority=priority)
            costs.append(eat(conn, table_queue, None, number // 10))
        other.execute("ROLLBACK")
    assert take(conn, table_queue) == []
    assert costs[-1] < 1.5 * costs[0], costs


def test_consumers_of_a_topic_do_not_walk_over_what_is_consumed(server, conn, table_topic):
    put_many(conn, table_topic, 1, 10_000)
    with server.connect() as other:
        hold_xmin(other)
        for consumer in ("a", "b"):
            costs = [eat(conn, table_topic, consumer, 1000) for _ in range(10)]
            assert costs[-1] < 1.5 * costs[0], (consumer, costs)
        other.execute("ROLLBACK")
    # the last one has deleted the messages
    assert db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = %s", [table_topic]) == 0


def test_what_one_transaction_has_in_hand_does_not_slow_others(server, conn, table_queue):
    put_many(conn, table_queue, 1, 12_000)
    with server.connect() as other:
        other.execute("BEGIN")
        assert len(take(other, table_queue, number=10_000)) == 10_000
        first = eat(conn, table_queue, None, 100)
        later = eat(conn, table_queue, None, 100)
        assert later < first / 2, (first, later)
        other.execute("ROLLBACK")
    # and all come back, each once
    assert sorted(take(conn, table_queue)) == sorted([*range(1, 10_001), *range(10_201, 12_001)])


def test_a_restart_finds_the_place_again(server, conn, table_queue):
    put_many(conn, table_queue, 1, 5000)
    db.execute(conn, "CALL eat(%s, NULL, 400, 10)", [table_queue])
    server.restart("immediate")
    with server.connect() as conn:
        assert db.value(conn, "SELECT lag FROM aq.subscribers WHERE queue_name = %s", [table_queue]) == 1000
        assert take(conn, table_queue, number=3) == [4001, 4002, 4003]
        conn.execute("VACUUM")
        assert len(take(conn, table_queue)) == 997


def test_a_commit_of_an_older_message_is_seen(server, conn, table_queue):
    """Ranges that are known to be empty do not hide what commits late."""
    with server.connect() as late:
        late.execute("BEGIN")
        put_many(late, table_queue, 1, 100)
        put_many(conn, table_queue, 101, 300)
        assert take(conn, table_queue) == list(range(101, 301))
        put_many(conn, table_queue, 301, 400)
        assert take(conn, table_queue) == list(range(301, 401))
        late.execute("COMMIT")
    assert take(conn, table_queue) == list(range(1, 101))


def test_ddl_on_the_tables_does_no_harm(server, conn, table_queue):
    """An index of one's own, REINDEX, VACUUM FULL, REPACK while messages go through."""
    put_many(conn, table_queue, 1, 100)
    table = db.value(conn, "SELECT 'aq_data.t' || queue_table_id FROM aq_internal.queue_table WHERE table_name = 'one'")
    conn.execute(f"CREATE INDEX mine ON {table} (correlation) WHERE correlation IS NOT NULL")
    put_many(conn, table_queue, 101, 200, correlation="x")
    conn.execute(f"REINDEX TABLE CONCURRENTLY {table}")
    assert take(conn, table_queue, number=50) == list(range(1, 51))
    conn.execute(f"VACUUM FULL {table}")
    assert take(conn, table_queue, number=50) == list(range(51, 101))
    if conn.info.server_version >= 190000:
        conn.execute(f"REPACK {table}")
    conn.execute("SET enable_seqscan = off")
    assert db.value(conn, f"SELECT count(*) FROM {table} WHERE correlation = 'x'") == 100
    conn.execute("RESET enable_seqscan")
    assert len(take(conn, table_queue)) == 100


@pytest.mark.parametrize("how", ["plain", "custom"])
def test_dump_and_restore(server, conn, table_queue, table_topic, tmp_path, how):
    """Messages, their order, attempts, consumers, the exception queue and definitions come back."""
    put_many(conn, table_queue, 1, 100)
    assert take(conn, table_queue, number=10) == list(range(1, 11))
    conn.execute("BEGIN")
    assert take(conn, table_queue, number=1) == [11]
    conn.execute("ROLLBACK")
    until(lambda: db.value(conn, "SELECT max(attempts) = 1 FROM aq.browse(%s)", [table_queue]), "attempt written")
    put(conn, table_queue, "late", delay="1 s")
    put_many(conn, table_topic, 1, 10)
    assert take(conn, table_topic, "a", 3) == [1, 2, 3]
    conn.execute("CREATE DATABASE other")
    dump = str(tmp_path / "dump")
    done = server.run("pg_dump", f"--format={how}", f"--file={dump}", dbname="postgres")
    assert (done.returncode, done.stderr) == (0, "")
    command = (
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump]
        if how == "plain"
        else ["pg_restore", "--exit-on-error", "-d", "other", dump]
    )
    done = server.run(*command, dbname="other")
    assert (done.returncode, done.stderr) == (0, "")
    with server.connect("other") as there:
        until(lambda: "late" in look(there, table_queue), "the delay is over")
        got = there.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 1000)", [table_queue]).fetchall()
        assert [row for row in got if row[0] != "late"] == [(11, 1)] + [(n, 0) for n in range(12, 101)]
        assert take(there, table_topic, "a") == list(range(4, 11))
        assert take(there, table_topic, "b") == list(range(1, 11))
        put(there, table_queue, "new")
        assert take(there, table_queue) == ["new"]
        assert db.value(there, "SELECT count(*) FROM aq.messages") == 0
        db.execute(there, "SELECT aq.start_queue('public.aq$_one_e', enqueue => false)")
        db.execute(there, "SELECT aq.create_queue('more', queue_table => 'public.one')")
        db.execute(there, "SELECT aq.drop_queue_table('public.one', force => true), aq.drop_queue_table('public.many', force => true)")
    db.execute(conn, "DROP DATABASE other WITH (FORCE)")


def test_what_waits_for_its_count_is_browsed_once(server, conn, table_queue):
    """A browse that finds it waits for the worker, and continues after the messages that it has shown."""
    put_many(conn, table_queue, 1, 3)
    with server.connect() as other, ThreadPoolExecutor() as pool:
        with stopped_worker(conn):
            conn.execute("BEGIN")
            assert db.value(conn, "SELECT payload FROM aq.dequeue(%s, condition => 'payload = ''2''')", [table_queue]) == 2
            conn.execute("ROLLBACK")
            query = "SELECT payload, attempts FROM aq.browse(%s, max_messages => 10)"
            found = pool.submit(lambda: other.execute(query, [table_queue]).fetchall())
            waits = """SELECT 1 FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING' AND event = 'aq: retry count write'"""
            until(lambda: db.value(conn, waits, [other.info.backend_pid]), "a browse that waits")
        assert found.result(PATIENCE) == [(1, 0), (2, 1), (3, 0)]


def test_the_end_of_a_session_is_not_an_attempt(server, conn, table_queue):
    """Another transaction has dequeued before and after it, and on both sides, with savepoints, and is rolled back."""
    choose = "SELECT payload FROM aq.dequeue(%s, condition => %s)"
    put_many(conn, table_queue, 1, 3)
    ended = server.connect()
    ended.execute("BEGIN")
    conn.execute("BEGIN; SAVEPOINT one")
    assert db.value(conn, choose, [table_queue, "payload = '1'"]) == 1
    assert db.value(ended, choose, [table_queue, "payload = '2'"]) == 2
    conn.execute("RELEASE one; SAVEPOINT two")
    assert db.value(conn, choose, [table_queue, "payload = '3'"]) == 3
    assert db.value(conn, "SELECT pg_terminate_backend(%s, 10000)", [ended.info.backend_pid])
    ended.close()
    conn.execute("RELEASE two; ROLLBACK")
    found = conn.execute("SELECT payload, attempts FROM aq.browse(%s, max_messages => 3)", [table_queue]).fetchall()
    assert found == [(1, 1), (2, 0), (3, 1)]


def test_a_prepared_transaction_does_not_keep_others_from_being_counted(server, conn, table_topic):
    """It has dequeued for more consumers than the worker counts in a round."""
    each = "FROM generate_series(1, 260) n"
    db.execute(conn, f"SELECT aq.subscribe(%s, 'c' || n) {each}", [table_topic])
    put(conn, table_topic, 1)
    with server.connect() as other:
        with stopped_worker(conn):
            conn.execute("BEGIN")
            assert take(conn, table_topic, "a") == [1]
            conn.execute("ROLLBACK; BEGIN")
            assert db.value(conn, f"SELECT count(*) {each}, aq.dequeue(%s, 'c' || n)", [table_topic]) == 260
            conn.execute("PREPARE TRANSACTION 'many'")
        try:
            db.execute(other, f"SET statement_timeout = '{PATIENCE} s'")
            assert other.execute("SELECT payload, attempts FROM aq.dequeue(%s, 'a')", [table_topic]).fetchall() == [(1, 1)]
        finally:
            conn.execute("ROLLBACK PREPARED 'many'")


def test_a_topic_is_empty_when_all_are_done(server, conn, table_topic):
    """Two consumers at the same time: though the worker has still to look at the message, the topic can be dropped."""
    put(conn, table_topic, 1)
    with server.connect() as other, stopped_worker(conn):
        for session, consumer in ((conn, "a"), (other, "b")):
            session.execute("BEGIN")
            assert take(session, table_topic, consumer) == [1]
        conn.execute("COMMIT")
        other.execute("COMMIT")
        db.execute(conn, "SELECT aq.drop_queue(%s)", [table_topic])


def test_messages_of_a_topic_without_statistics(server, conn, table_topic):
    """A nested loop over both tables would read one as often as the other has rows: minutes instead of a second."""
    put_many(conn, table_topic, 1, 20_000)
    conn.execute(f"SET statement_timeout = '{PATIENCE} s'")
    for state in ("", " AND state = 'READY'"):
        assert db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = %s" + state, [table_topic]) == 40_000
    assert db.value(conn, "SHOW enable_nestloop") == "on"
