"""At the limits: parameters used up, workers missing, tables touched by an administrator."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import (
    PATIENCE,
    arrived,
    background,
    install,
    look,
    make_server,
    put,
    put_many,
    ready,
    stopped_worker,
    take,
    until,
    waiting_for,
)
from pgaq import db
from pgaq.server import Server

PARTITION = 16384  # messages

# where a queue's messages are
TABLE = """SELECT coalesce((SELECT messages::text FROM aq.partitions p WHERE p.queue_name = q.queue_name AND state = 'open'), 'aq_data.t' || queue_table_id)
           FROM aq_internal.queue q WHERE queue_name = %s"""


def refused(conn, state, query, parameters=()):
    """The query fails with this SQLSTATE; returns the error."""
    with pytest.raises(db.Error) as caught:
        conn.execute(query, parameters)
    assert caught.value.sqlstate == state, f"{caught.value.sqlstate} {caught.value}"
    return caught.value


def hint(error):
    return error.diag.message_hint or ""


def test_not_preloaded():
    """CREATE EXTENSION warns, the first call says what is missing."""
    with Server.temporary("bare", settings={"shared_preload_libraries": ""}) as server, server.connect() as conn:
        server.expect_log("pgaq is not loaded")
        notices = []
        conn.add_notice_handler(lambda notice: notices.append((notice.severity, notice.message_hint)))
        conn.execute("CREATE EXTENSION pgaq")
        assert [(severity, "shared_preload_libraries" in text) for severity, text in notices] == [("WARNING", True)]
        assert "shared_preload_libraries" in hint(refused(conn, "55000", "SELECT aq.create_queue('q')"))


def test_views_not_preloaded():
    """Every view gives an answer or says what is missing; none takes the server down."""
    with Server.temporary("bare_views", settings={"shared_preload_libraries": ""}) as server, server.connect() as conn:
        server.expect_log("pgaq is not loaded")
        conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
        views = db.rows(
            conn,
            """SELECT oid::regclass::text AS name FROM pg_class
                                 WHERE relkind = 'v' AND relnamespace IN ('aq'::regnamespace, 'sys'::regnamespace)""",
        )
        refusals = 0
        for view in views:
            try:
                conn.execute(f"SELECT * FROM {view['name']}")
            except db.Error as error:
                assert error.sqlstate == "55000", f"{view['name']}: {error}"
                refusals += 1
        assert refusals > 10


@pytest.mark.sharded("the tables of a partition")
@pytest.mark.parametrize("lost", ["q", "l", "both"])
@pytest.mark.parametrize("loaded", [True, False])
def test_lost_tables(new_server, lost, loaded):
    """If tables of a queue were dropped, an error names the missing ones; the views show it, and all other queues; it can be dropped with force."""
    own = new_server("lost")
    own.expect_log(r'table "aq_data\.[ql]\d+_\d+" is missing')
    own.expect_log("could not open relation")
    with own.connect() as conn:
        for name in ("lost", "kept"):
            db.execute(
                conn, "SELECT aq.create_queue(%s, shards => 1)", (name,)
            )  # else the next session may write to another shard's tables
            put(conn, name, 1)
        tables = db.row(
            conn, "SELECT messages::text AS q, log::text AS l FROM aq.partitions WHERE queue_name = 'lost' AND messages IS NOT NULL"
        )
    if not loaded:
        own.restart()
    with own.connect() as conn:
        conn.execute("SET lock_timeout = 0")
        conn.execute(f"DROP TABLE {tables['q'] + ', ' + tables['l'] if lost == 'both' else tables[lost]}")
        if not loaded:
            own.restart()
    with own.connect() as conn:
        if not loaded:
            error = refused(conn, "XX001", "SELECT aq.enqueue('lost', '1')")
            assert "is missing" in str(error) and "force => true" in hint(error)
            until(lambda: 'pgaq worker for database "postgres"' in own.log_text(), "the worker says where it is")
            for source in ("aq.metrics()", "aq.subscribers"):
                ready = db.rows(conn, f"SELECT queue_name, ready FROM {source} WHERE queue_name IN ('lost', 'kept') ORDER BY queue_name")
                assert [(r["queue_name"], r["ready"] is None) for r in ready] == [("kept", False), ("lost", True)], source
            assert [r["queue_name"] for r in db.rows(conn, "SELECT queue_name FROM aq.messages")] == ["kept"]
        elif lost != "l":
            assert "Tables of a queue are missing" in hint(refused(conn, "42704", "SELECT aq.enqueue('lost', '1')"))
        found = db.rows(conn, "SELECT queue_name, place FROM aq.check() WHERE what = 'tables that are missing'")
        assert [(r["queue_name"], r["place"] in [f"table {name}" for name in tables.values()]) for r in found] == [("lost", True)]
        db.execute(conn, "SELECT aq.drop_queue('lost', force => true)")
        assert [r["queue_name"] for r in db.rows(conn, "SELECT queue_name FROM aq.queues WHERE queue_type = 'normal'")] == ["kept"]
        assert (
            db.value(conn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[qls]1(_|$)'") == 0
        )
        assert take(conn, "kept") == [1]


@pytest.mark.own_tables
@pytest.mark.parametrize("loaded", [True, False])
def test_lost_tables_of_queue_tables(new_server, loaded):
    """The same for a queue table and for buffered messages; the command shows the other queues."""
    own = new_server("lost")
    own.expect_log(r'table "aq_data\.[tcbd]\d+" is missing')
    lost = {"jobs": "t{table}", "news": "c{table}", "events": "d{queue}"}
    with own.connect() as conn:
        conn.execute("SELECT aq.create_queue_table('t_jobs'), aq.create_queue_table('t_news', multiple_consumers => true)")
        conn.execute("""SELECT aq.create_queue('jobs', queue_table => 't_jobs'), aq.create_queue('news', queue_table => 't_news'),
                               aq.create_queue('events', multiple_consumers => true, shards => 1), aq.create_queue('kept', shards => 1)""")
        conn.execute("SELECT aq.subscribe('news', 's'), aq.subscribe('events', 's', delivery_mode => 'buffered')")
        for name in ("jobs", "news", "kept"):
            put(conn, name, 1)
        put(conn, "events", 1, delivery_mode="buffered")
        conn.execute("SET lock_timeout = 0")
        for name, table in lost.items():
            ids = db.row(conn, "SELECT queue_id AS queue, queue_table_id AS table FROM aq_internal.queue WHERE queue_name = %s", [name])
            lost[name] = table.format(**ids)
            conn.execute(f"DROP TABLE aq_data.{lost[name]} CASCADE")
    if not loaded:
        own.restart()
    with own.connect() as conn:
        for name, table in lost.items():
            mode = "buffered" if name == "events" else "persistent"
            error = refused(conn, "XX001", f"SELECT aq.enqueue('{name}', '2', delivery_mode => '{mode}')")
            assert f'table "aq_data.{table}" is missing' in str(error) and "force => true" in hint(error)
        for source in ("aq.metrics()", "aq.subscribers", "aq.messages"):
            found = {row["queue_name"] for row in db.rows(conn, f"SELECT queue_name FROM {source}")}
            assert "kept" in found, source
        conn.execute("SELECT FROM aq.messages WHERE delivery_mode = 'buffered'; SELECT FROM aq.buffered_queues")
        found = db.rows(
            conn,
            "SELECT queue_name, place FROM aq.check() WHERE what = 'tables that are missing' AND queue_name IN ('jobs', 'news', 'events')",
        )
        assert {r["queue_name"]: r["place"] for r in found} == {name: f"table aq_data.{table}" for name, table in lost.items()}
        for command, code in (("status", 0), ("doctor", 0 if loaded else 1)):
            said = subprocess.run(
                [sys.executable, "-m", "pgaq", command], env={**os.environ, **own.environment()}, capture_output=True, text=True
            )
            assert said.returncode == code and (loaded or "was dropped, or left out of a restore" in said.stdout), said.stdout + said.stderr
        refused(conn, "XX001", "SELECT aq.drop_queue('jobs')")
        for name in lost:
            db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", (name,))
        conn.execute("SELECT aq.drop_queue_table('t_jobs', force => true), aq.drop_queue_table('t_news', force => true)")
        assert (
            db.value(conn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[tcbd][0-9]+(_|$)'")
            == 0
        )
        assert take(conn, "kept") == [1]


@pytest.mark.sharded("the tables of a partition")
def test_truncated_tables(server, conn):
    """A message that is not in its table any more is an error that says what to do."""
    conn.execute("SELECT aq.create_queue('emptied', shards => 1)")
    put(conn, "emptied", "x" * 10000)
    conn.execute("SET lock_timeout = 0")
    table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'emptied' AND messages IS NOT NULL")
    conn.execute(f"TRUNCATE {table}")
    error = refused(conn, "XX001", "SELECT * FROM aq.dequeue('emptied')")
    assert "is not in its table" in str(error) and "restart the server" in hint(error)
    db.execute(conn, "SELECT aq.drop_queue('emptied', force => true)")


@pytest.mark.parametrize("who", ["worker", "launcher"])
def test_workers_come_back(server, conn, queue, who):
    """pg_terminate_backend of a worker is no end: delays, retries and new partitions go on."""
    put(conn, queue, 1)
    old = None
    for _ in range(3):
        old = until(lambda: background(conn, who) not in (None, old) and background(conn, who), f"another {who}")
        conn.execute("SELECT pg_terminate_backend(%s)", [old])
        put(conn, queue, "delayed", delay="0.1 s")
        conn.execute("BEGIN")
        take(conn, queue, number=1)
        conn.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.browse(%s)", [queue]) == 2, "the delayed and the rolled back one")
        assert db.value(conn, "SELECT count(*) FROM aq.dequeue(%s, condition => %s)", [queue, "payload = '\"delayed\"'"]) == 1
    assert take(conn, queue) == [1]


@pytest.mark.sharded("a queue table needs no message cache")
def test_message_cache_used_up(new_server):
    """One transaction larger than the cache: an error names the parameter; other sessions continue."""
    own = new_server("smallcache", **{"pgaq.message_cache_size": "4MB"})
    with own.connect() as conn, own.connect() as other:
        db.execute(conn, "SELECT aq.create_queue('q'), aq.create_queue('other')")
        put(other, "q", "kept")
        conn.execute("SET statement_timeout = '30 s'")
        conn.execute("BEGIN")
        with pytest.raises(db.Error) as caught:
            for start in range(1, 2_000_000, 20_000):
                put_many(conn, "q", start, start + 19_999)
        assert caught.value.sqlstate == "53400", str(caught.value)
        assert "pgaq.message_cache_size" in hint(caught.value)
        conn.execute("ROLLBACK")
        assert take(other, "q") == ["kept"]
        put_many(conn, "q", 1, 20_000)
        assert take(other, "q") == list(range(1, 20_001))
        # the same on the dequeuing side: far more than fits, committed in pieces, taken in one transaction
        for start in range(1, 200_000, 10_000):
            put_many(conn, "q", start, start + 9_999)
        other.execute("BEGIN")
        error = refused(other, "53400", "SELECT payload FROM aq.dequeue('q', max_messages => 1000000)")
        assert "pgaq.message_cache_size" in hint(error)
        other.execute("ROLLBACK")
        got = []
        while len(got) < 200_000 and ready(conn, "q", timeout="20 s"):
            got += take(conn, "q", number=5_000)
        assert got == list(range(1, 200_001))


@pytest.mark.sharded("a queue table needs no message cache")
def test_many_consumers_in_a_small_cache(new_server):
    """A partition that fits by the sizing formula, 520 kB and 4 kB for each of 500 consumers, can be filled and loaded again."""
    own = new_server("smallcache", **{"pgaq.message_cache_size": "4MB"})
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true, shards => 1), aq.create_queue('other')")
        conn.execute("SELECT count(aq.subscribe('t', 's' || n)) FROM generate_series(1, 500) n")
        put_many(conn, "t", 1, 16384)
        for start in range(1, 80_000, 10_000):
            put_many(conn, "other", start, start + 9_999)
        assert not db.value(conn, "SELECT bool_or(resident) FROM aq.partitions WHERE queue_name = 't'")
        assert take(conn, "t", "s1") == list(range(1, 16385))
    own.restart()
    with own.connect() as conn:
        for consumer in ("s2", "s500"):
            assert take(conn, "t", consumer) == list(range(1, 16385))


@pytest.mark.sharded("a queue table needs no message cache")
def test_a_transaction_that_fills_the_cache(new_server):
    """Sixty queues share what an open transaction has left of the cache: a call of theirs loads one partition, and makes no tables."""
    own = new_server("smallcache", **{"pgaq.message_cache_size": "4MB"})
    counters = "SELECT name, value FROM sys.\"v$sysstat\" WHERE name LIKE 'message cache partitions %%'"
    with own.connect() as conn, own.connect() as holder:
        db.execute(conn, "SELECT count(aq.create_queue('q' || n)) FROM generate_series(1, 60) n")
        for number in range(1, 61):
            put(conn, f"q{number}", 0)
        holder.execute("BEGIN")
        for start in range(1, 120_000, 10_000):
            put_many(holder, "q1", start, start + 9_999)
        before = dict(conn.execute(counters).fetchall())
        tables = db.value(conn, "SELECT count(*) FROM aq.partitions")
        conn.execute("SET statement_timeout = '30 s'")
        for _ in range(3):
            for number in range(2, 61):
                put(conn, f"q{number}", 1)
                assert take(conn, f"q{number}", number=1) in ([0], [1])
        done = {name.removeprefix("message cache partitions "): value - before[name] for name, value in conn.execute(counters)}
        assert 0 < done["loaded"] <= 3 * 59 * 2
        assert done["evicted"] <= done["loaded"] + 60
        assert done["checked"] <= done["evicted"] * 3 * tables
        assert db.value(conn, "SELECT count(*) FROM aq.partitions") <= tables + 5
        holder.execute("ROLLBACK")


@pytest.mark.sharded("a queue table needs no message cache")
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_the_end_of_a_transaction_ends_the_wait_for_the_cache(new_server, end):
    """It makes room without freeing memory: the session that waits is woken, and does not go on with its next look."""
    own = new_server("smallcache", deadlock_timeout="10 min", **{"pgaq.message_cache_size": "4MB"})
    full = "aq: message cache full"
    with own.connect() as conn, own.connect() as keeper, own.connect() as waiter, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q'), aq.create_queue('other')")
        keeper.execute("BEGIN")
        for start in range(0, 6 * PARTITION, PARTITION):
            put_many(keeper, "q", start + 1, start + PARTITION)
        filled = pool.submit(put_many, waiter, "other", 1, 2 * PARTITION)
        until(lambda: waiting_for(conn, full), "a wait for memory")
        keeper.execute(end)
        filled.result(PATIENCE)
        # it looks every 100 ms, and the end of the transaction may take longer
        assert db.value(conn, 'SELECT total_waits > total_timeouts FROM sys."v$system_event" WHERE event = %s', [full])


def test_idle_sessions_leave_the_message_cache(new_server):
    """However many sessions have used queues: what they keep for their next messages is a small part of the cache."""
    own = new_server("crowd", max_connections="200", **{"pgaq.message_cache_size": "4MB"})
    with own.connect() as conn, contextlib.ExitStack() as crowd:
        db.execute(conn, "SELECT aq.create_queue('q')")
        for number in range(150):
            other = crowd.enter_context(own.connect())
            put(other, "q", number)
            assert take(other, "q") == [number]
        assert db.value(conn, "SELECT used_bytes < total_bytes / 3 FROM aq.message_cache")
        put_many(conn, "q", 1, 60_000)
        assert take(conn, "q") == list(range(1, 60_001))


@pytest.mark.sharded("a queue table needs no message cache")
@pytest.mark.parametrize("retry_delay", ["0", "2 s"])
def test_a_full_cache_rolled_back(new_server, retry_delay):
    """Retry counts are written and messages come back in their order when there is no memory left to note it."""
    own = new_server("smallcache", **{"pgaq.message_cache_size": "4MB"})
    with own.connect() as conn, own.connect() as other:
        db.execute(conn, "SELECT aq.create_queue('q', retry_delay => %s)", [retry_delay])
        for start in range(1, 150_000, 10_000):
            put_many(conn, "q", start, start + 9_999)
        other.execute("BEGIN")
        assert take(other, "q", number=110_000) == list(range(1, 110_001))
        assert db.value(conn, "SELECT free_bytes < 600000 FROM aq.message_cache")
        other.execute("ROLLBACK")
        got = []
        while len(got) < 150_000 and ready(conn, "q", timeout="20 s"):
            got += conn.execute("SELECT payload, attempts FROM aq.dequeue('q', max_messages => 5000)").fetchall()
        if retry_delay == "0":
            assert got == [(number, int(number <= 110_000)) for number in range(1, 150_001)]
        else:  # what rests is outside of the order: the worker makes it ready by 256, and a dequeue may come in between
            assert sorted(number for number, attempts in got if attempts == 1) == list(range(1, 110_001))
            assert [number for number, attempts in got if attempts == 0] == list(range(110_001, 150_001))


@pytest.mark.sharded("a queue table needs no message cache")
def test_a_wait_for_counts_that_are_written_out(new_server):
    """A session that asks whether there are messages, while their counts are written and they leave memory, hears that there are."""
    own = new_server("smallcache", **{"pgaq.message_cache_size": "4MB"})
    with own.connect() as conn, own.connect() as holder, own.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q'), aq.create_queue('full')")
        for start in range(1, 120_000, 10_000):
            put_many(conn, "q", start, start + 9_999)
        holder.execute("BEGIN")
        assert take(holder, "q", number=110_000) == list(range(1, 110_001))
        other.execute("BEGIN")  # no memory is left for counts
        put_many(other, "full", 1, 11_000)
        with stopped_worker(conn):
            holder.execute("ROLLBACK")
            found = pool.submit(ready, conn, "q")
            waits = "SELECT true FROM sys.\"v$session_wait\" WHERE pid = %s AND event = 'aq: retry count write' AND state = 'WAITING'"
            until(lambda: db.value(holder, waits, [conn.info.backend_pid]), "a wait for the counts")
        assert found.result()
        other.execute("ROLLBACK")
        assert arrived(conn, "q", 120_000) == list(range(1, 120_001))


@pytest.mark.parametrize(
    "name, value, messages", [("pgaq.max_queues", "16", 1_000), ("pgaq.max_streams", "64", 1_000), ("pgaq.max_partitions", "64", 20_000)]
)
def test_shared_memory_for_few(new_server, name, value, messages):
    """More queues, priorities, messages than the parameter allows for: an error that names it, or room made."""
    own = new_server("few", **{name: value})
    with own.connect() as conn:
        conn.execute("SET statement_timeout = '2 min'")  # waiting for ever would be no answer
        made = 0
        try:
            for number in range(40):
                db.execute(conn, "SELECT aq.create_queue(%s)", [f"q{number}"])
                put(conn, f"q{number}", number, priority=number % 10)
                put_many(conn, f"q{number}", 1, messages, priority=(number + 1) % 10)
                made += 1
        except db.Error as error:
            assert error.sqlstate == "53400", str(error)
            assert name in hint(error), hint(error)
        assert made > 0
        for number in range(made):
            assert len(take(conn, f"q{number}")) == messages + 1
        for number in range(made):
            db.execute(conn, "SELECT aq.drop_queue(%s)", [f"q{number}"])
        # what was given back can be used
        db.execute(conn, "SELECT aq.create_queue('again')")
        put(conn, "again", 1)
        assert take(conn, "again") == [1]


@pytest.mark.parametrize(
    "statement", ["VACUUM", "VACUUM FULL", "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING)", "ANALYZE", "REINDEX DATABASE postgres"]
)
def test_maintenance_of_the_whole_database(server, conn, queue, topic, statement):
    """Maintenance commands move messages in their tables: nothing is lost or mixed up."""
    for number in range(0, 1000, 10):
        put(conn, queue, number)
        conn.execute("BEGIN")
        put_many(conn, queue, 0, 20)
        conn.execute("ROLLBACK")
    put(conn, topic, *range(20))
    assert take(conn, queue, number=30) == list(range(0, 300, 10))
    assert take(conn, topic, "a", 5) == list(range(5))
    with server.connect() as other:
        other.execute("SET statement_timeout = '60 s'")
        other.execute(statement)
    put(conn, queue, "after")
    assert take(conn, queue, number=10) == list(range(300, 400, 10))
    server.restart()
    with server.connect() as now:
        now.execute(statement)
        put(now, topic, "after")
        assert sorted(map(str, take(now, queue))) == sorted(map(str, [*range(400, 1000, 10), "after"]))
        for consumer, first in (("a", 5), ("b", 0)):
            # the last one is by another session and may come between
            got = take(now, topic, consumer)
            assert [m for m in got if m != "after"] == list(range(first, 20)) and got.count("after") == 1


def test_vacuum_full_while_messages_are_in_hand(server, conn, queue):
    """It waits for the transaction, as for any table; nothing is mixed up afterwards."""
    conn.execute("BEGIN")
    put_many(conn, queue, 0, 50)
    conn.execute("ROLLBACK")
    put_many(conn, queue, 1, 100)
    with server.connect() as holder, server.connect() as admin:
        holder.execute("BEGIN")
        assert take(holder, queue, number=10) == list(range(1, 11))
        table = db.value(conn, TABLE, [queue])
        admin.execute("SET lock_timeout = '200 ms'")
        refused(admin, "55P03", f"VACUUM FULL {table}")
        holder.execute("COMMIT")
        admin.execute(f"VACUUM FULL {table}")
    assert take(conn, queue) == list(range(11, 101))


def test_rename_database(server):
    with server.connect() as conn:
        conn.execute("CREATE DATABASE old_name")
        with server.connect("old_name") as there:
            install(there)
            db.execute(there, "SELECT aq.create_queue('q')")
            put(there, "q", 1)
            put(there, "q", "delayed", delay="1 s")
        until(
            lambda: db.value(
                conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'old_name' AND backend_type = 'client backend'"
            ),
            "our session's end",
        )
        conn.execute("ALTER DATABASE old_name RENAME TO new_name")
        with server.connect("new_name") as there:
            assert arrived(there, "q", 2) == [1, "delayed"]
        conn.execute("DROP DATABASE new_name WITH (FORCE)")


def test_unsubscribe_with_messages_in_hand(server, conn, topic):
    """Also in the hands of a prepared transaction; afterwards the space can be reclaimed and the name used."""
    put(conn, topic, *range(10))
    with server.connect() as holder, server.connect() as other:
        holder.execute("BEGIN")
        assert take(holder, topic, "a", 3) == [0, 1, 2]
        other.execute("BEGIN")
        assert take(other, topic, "a", 3) == [3, 4, 5]
        other.execute("PREPARE TRANSACTION 'hand'")
        conn.execute("SET lock_timeout = '20 s'")
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
        assert take(conn, topic, "a") == []
        holder.execute("ROLLBACK")
        other.execute("ROLLBACK PREPARED 'hand'")
    assert take(conn, topic, "a") == []
    assert take(conn, topic, "b") == list(range(10))
    db.execute(conn, "SELECT aq.subscribe(%s, 'a')", [topic])
    put(conn, topic, "new")
    assert take(conn, topic, "a") == ["new"] and take(conn, topic, "b") == ["new"]
    until(lambda: empty(conn, topic), "nothing outstanding")
    db.execute(conn, "SELECT aq.drop_queue(%s)", [topic])


def test_unsubscribe_while_messages_are_enqueued(server, conn, topic):
    """If a consumer is removed before an enqueue commits, the messages are kept only for the other consumers."""
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, topic, "now")
        put(other, topic, "later", delay="0.1 s")
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
        other.execute("COMMIT")
    assert sorted(arrived(conn, topic, 2, "b")) == ["later", "now"]
    until(lambda: empty(conn, topic), "nothing outstanding")


def empty(conn, queue):
    return db.value(conn, "SELECT coalesce(sum(outstanding), 0) = 0 FROM aq.partitions WHERE queue_name = %s", [queue])


@pytest.mark.long
def test_places_of_consumers_are_used_again(server, conn, topic):
    """Subscribers that come and go use up their places only until what they could have had is consumed."""
    for turn in range(3):
        for number in range(900):
            name = f"passing{turn}_{number}"
            db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, name])
            if number % 100 == 0:
                put(conn, topic, number)
                assert take(conn, topic, name) == [number]
            db.execute(conn, "SELECT aq.unsubscribe(%s, %s)", [topic, name])
        assert len(take(conn, topic, "a")) == len(take(conn, topic, "b")) == 9
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM aq_internal.subscriber WHERE kind = 'removed'"), "places given back", 120)


def test_rows_and_messages_come_together(server, conn, queue):
    """A session that gets a message sees the row stored in the same transaction, at every isolation level."""
    import threading

    conn.execute("CREATE TABLE fact (n int PRIMARY KEY)")
    errors, found = [], []

    def consume(level):
        try:
            with server.connect() as mine:
                mine.execute(f"SET default_transaction_isolation = '{level}'")
                while True:
                    ready(mine, queue, timeout="10 s")
                    mine.execute("BEGIN")
                    got = take(mine, queue, number=5)
                    there = [row[0] for row in mine.execute("SELECT n FROM fact WHERE n = ANY (%s)", [[n for n in got if n >= 0]])]
                    if sorted(there) != sorted(n for n in got if n >= 0):
                        errors.append(f"{level}: took {got}, saw {there}")
                    mine.execute("COMMIT")
                    found.extend(n for n in got if n >= 0)
                    if -1 in got:
                        put(mine, queue, *([-1] * (got.count(-1) - 1)), priority=9)
                        return
        except db.Error as error:
            errors.append(f"{level}: {error}")

    levels = ["read committed", "repeatable read", "serializable", "repeatable read"]
    threads = [threading.Thread(target=consume, args=[level]) for level in levels]
    for thread in threads:
        thread.start()
    for number in range(1500):
        conn.execute("BEGIN")
        put(conn, queue, number)
        conn.execute("INSERT INTO fact VALUES (%s)", [number])
        conn.execute("COMMIT")
    put(conn, queue, *([-1] * len(threads)), priority=9)
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sorted(found) == list(range(1500))
    conn.execute("DROP TABLE fact")


def test_subscribers_come_and_go_under_traffic(server, conn, topic):
    """The steady ones get everything once, whatever others do; a passing one gets a run without holes."""
    import threading

    stop = threading.Event()
    errors, sent = [], [0]

    def produce():
        try:
            with server.connect() as mine:
                while not stop.is_set():
                    put(mine, topic, sent[0])
                    sent[0] += 1
        except db.Error as error:
            errors.append(str(error))

    thread = threading.Thread(target=produce)
    thread.start()
    for number in range(30):
        name = f"passing{number % 2}"
        db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, name])
        got = []
        while len(got) < 20:
            got += take(conn, topic, name, 7)
        assert got == list(range(got[0], got[0] + len(got))), got
        db.execute(conn, "SELECT aq.unsubscribe(%s, %s)", [topic, name])
    stop.set()
    thread.join()
    assert errors == []
    assert take(conn, topic, "a") == take(conn, topic, "b") == list(range(sent[0]))


# -- transaction ids


def test_messages_older_than_all_transaction_ids(new_server):
    """Rows frozen long ago are visible to every snapshot."""
    server = new_server("wrapped")
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('orders'), aq.create_queue('events', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('events', 'a')")
        for queue in ("orders", "events"):
            put_many(conn, queue, 1, 3)
        conn.execute("ALTER DATABASE template0 ALLOW_CONNECTIONS true")  # or it is not frozen
    for billions in (1, 2, 3):
        assert server.run("vacuumdb", "--all", "--freeze").returncode == 0
        server.stop()
        # the first id of a segment of pg_xact: the server makes that itself
        server.reset_wal("-x", str(billions * 1000 * 2**20))
        server.start()
    with server.connect() as conn:
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for queue, consumer in (("orders", None), ("events", "a")):
            assert look(conn, queue, consumer) == take(conn, queue, consumer) == [1, 2, 3]
        conn.execute("ROLLBACK")


def test_lock_table_used_up(new_server):
    """Too many locks for one transaction: the hint names the parameter and aq.drop_queues, which drops as many queues as there are."""
    own = new_server("locks", max_connections="10", max_prepared_transactions="0", max_wal_senders="0", max_locks_per_transaction="10")
    with own.connect() as conn:
        conn.execute("DO $$BEGIN FOR n IN 1..150 LOOP PERFORM aq.create_queue('q' || n); COMMIT; END LOOP; END$$")
        for statement in (
            "SELECT aq.create_queue('n' || n) FROM generate_series(1, 1000) n",
            "SELECT aq.drop_queue(queue_name) FROM aq.queues WHERE queue_type = 'normal'",
            "DROP EXTENSION pgaq CASCADE",
        ):
            text = hint(refused(conn, "53200", statement))
            assert "max_locks_per_transaction (now 10)" in text and "aq.drop_queues" in text, statement
        assert "aq.drop_queues" not in hint(refused(conn, "53200", "SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 20000) n"))
        conn.execute("CALL aq.drop_queues('q%')")
        assert db.value(conn, "SELECT count(*) FROM aq.queues") == 0


@pytest.mark.sharded("the tables of a partition")
def test_errors_name_the_queue(server, conn, queue):
    """An error about a table of aq_data says whose it is: by name if the session has used the queue, otherwise where to look."""
    put(conn, queue, 1)
    number = db.value(conn, "SELECT queue_id FROM aq.queues WHERE queue_name = %s", [queue])
    table = f"q{number}_1"
    with server.connect() as other:
        other.execute(f"BEGIN; LOCK TABLE aq_data.{table}")
        assert (
            refused(conn, "55P03", f"BEGIN; LOCK TABLE aq_data.{table} NOWAIT").diag.context
            == f'aq_data.{table} belongs to queue "{queue}"'
        )
        conn.execute("ROLLBACK")
        other.execute("ROLLBACK")
        error = refused(other, "42809", f"DROP VIEW aq_data.{table}")  # its text has no schema, and anybody can have a table of this name
        assert error.diag.context is None
        error = refused(other, "42P01", f"TABLE aq_data.q{number}_99")
        assert error.diag.context == f"aq_data.q{number}_99 belongs to the queue with queue_id {number} in aq.queues"
    assert refused(conn, "22012", f"SELECT 1 / 0 AS {table}").diag.context is None
