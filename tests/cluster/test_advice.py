"""Advice: each rule sees its situation and says what to do about it, with figures; a system without it gets none."""

from __future__ import annotations

import json
import threading

import pytest

from conftest import drop, put, put_many, take, until
from pgaq import db
from test_reports import report, rules
from test_snapshots import snapshot
from test_statistics import Listener, grown, system

SETTINGS = {"fsync": "on", "max_wal_size": "2GB", "pgaq.fetch_patience": "-1", "pgaq.reuse_grace": "10min", "max_connections": "60"}


class Interval:
    """Two snapshots around a block; then the report's advice."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        with self.server.connect() as conn:
            self.begin = snapshot(conn)
        return self

    def __exit__(self, *failure):
        if failure[0] is None:
            with self.server.connect() as conn:
                self.end = snapshot(conn)
                self.look(conn)

    def look(self, conn):
        self.model = report(conn, self.begin, self.end)
        self.text = [line for (line,) in conn.execute("SELECT aq.report_text(%s)", [json.dumps(self.model)])]

    def only(self, rule):
        """The advice by this rule; there is no other."""
        assert rules(self.model) == [rule], self.model["advice"]
        [found] = self.model["advice"]
        assert found["severity"] in ("high", "medium", "low")
        assert found["title"] and found["why"] and found["do"] and len(found["figures"]) >= 3
        assert all(len(f) == 3 and f[1] is not None for f in found["figures"])
        assert any(line.startswith(f"[{found['severity']}] {found['title']}") for line in self.text)
        return found, {label: value for label, value, _ in found["figures"]}


@pytest.fixture
def interval(server):
    return Interval(server)


def test_none_on_a_healthy_system(server, interval, queue, topic):
    """Producers and consumers that keep up with each other, on a queue and a topic, in batches."""
    with interval, server.connect() as conn:
        for _ in range(20):
            put_many(conn, queue, 1, 200)
            put_many(conn, topic, 1, 200)
            assert len(take(conn, queue)) == len(take(conn, topic, "a")) == len(take(conn, topic, "b")) == 200
    assert interval.model["advice"] == []


def count(statistics, how):
    return statistics.get(f"queue wake-ups {how}", 0)


def test_listen_herd(server, interval, topic):
    """Messages for one consumer wake all who listen for the other."""
    with interval, server.connect() as conn:
        listeners = [Listener(server, topic, "b", "broadcast").asleep(conn) for _ in range(12)]
        before = system(conn)
        # a session that is processing a wake-up is not woken again
        while (herd := grown(before, system(conn))).get("queue wake-ups false", 0) < 120:
            put(conn, topic, 1, recipients=["a"])
            until(lambda: count(grown(before, system(conn)), "sent") == count(grown(before, system(conn)), "false"), "false wake-ups")
        take(conn, topic, "a")
        for listener in listeners:
            listener.connection.cancel()
            listener.join()
            listener.connection.close()
    found, figures = interval.only("listen_herd")
    assert figures["wake-ups sent"] == figures["false"] == count(herd, "false")
    assert figures["messages dequeued"] == herd["queue messages enqueued"]
    assert found["severity"] == "high" and "pgaq.listen_wakeup" in found["do"]


def test_commit_bound(server, interval, queue):
    """One message in each transaction, and a commit that takes its time."""
    with interval, server.connect() as conn:
        conn.execute("SET commit_delay = 5000; SET commit_siblings = 0")
        for number in range(100):
            put(conn, queue, number)
    _, figures = interval.only("commit_bound")
    assert figures["commits with messages"] == 100 and figures["messages per transaction"] == 1
    # the same in batches
    with interval, server.connect() as conn:
        conn.execute("SET commit_delay = 5000; SET commit_siblings = 0")
        put_many(conn, queue, 1, 2000)
        take(conn, queue)
    assert interval.model["advice"] == []


def test_slow_subscriber(server, interval, topic):
    """It is behind by more than two partitions, and others are not."""
    with interval, server.connect() as conn:
        put_many(conn, topic, 1, 40_000)
        assert len(take(conn, topic, "a")) == 40_000
    found, figures = interval.only("slow_subscriber")
    assert "b" in found["title"].split() and topic in found["title"]
    assert (figures["lag at begin"], figures["lag at end"], figures["smallest lag of the topic"]) == (0, 40_000, 0)
    # it catches up
    with interval, server.connect() as conn:
        take(conn, topic, "b", number=1000)
    assert interval.model["advice"] == []


@pytest.mark.sharded("a queue table has no partitions")
def test_xmin_holder(server, interval, queue):
    """A transaction older than the consumption of several partitions."""
    with server.connect(application_name="old report") as holder:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        started = (
            "SELECT min(xact_start) < clock_timestamp() - interval '1.2 s' FROM pg_stat_activity WHERE application_name = 'old report'"
        )
        with interval, server.connect() as conn:
            put_many(conn, queue, 1, 90_000)
            assert len(take(conn, queue, number=90_000)) == 90_000
            until(lambda: db.value(conn, started), "a transaction of some age")
            until(
                lambda: db.value(conn, "SELECT count(*) >= 4 FROM aq.partitions WHERE queue_name = %s AND state = 'done'", [queue]),
                "consumed partitions",
            )
        found, figures = interval.only("xmin_holder")
        assert "old report" in figures["session"] and figures["partitions that wait"] >= 4
        holder.execute("ROLLBACK")
    with interval, server.connect() as conn:
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM aq.partitions WHERE queue_name = %s AND state = 'done'", [queue]), "reuse")
    assert interval.model["advice"] == []


@pytest.mark.sharded("a queue table is not in the message cache")
def test_message_cache_too_small(new_server):
    """Ten queues whose first partitions do not fit into it at once, dequeued in turn."""
    own = new_server("small", **{"pgaq.message_cache_size": "4MB", "max_wal_size": "2GB"})
    interval = Interval(own)
    with own.connect() as conn:
        queues = [f"q{n}" for n in range(10)]
        for queue in queues:
            db.execute(conn, "SELECT aq.create_queue(%s)", [queue])
            put_many(conn, queue, 1, 16_000)
        with interval:
            for _ in range(2):
                for queue in queues:
                    take(conn, queue, number=2000)
        _, figures = interval.only("message_cache")
        assert figures["partitions evicted"] >= 4 and figures["partitions loaded"] >= 4 and figures["size"] == 4 * 1024 * 1024


def hold(server, mutex, seconds):
    with server.connect() as conn:
        conn.execute("SELECT aq_lab.hold_mutex(%s, %s)", [mutex, seconds])


def test_hot_object(server, interval, queue):
    """Sessions wait for the mutex of one queue."""
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab")
        put(conn, queue, 1)
        mutex = db.value(conn, """SELECT hash_value::text FROM sys."v$db_object_cache" WHERE lower(name) = %s""", [queue])
        # new sessions pin the queue at their first call
        with interval:
            holder = threading.Thread(target=hold, args=[server, mutex, 1.0])
            holder.start()
            until(lambda: db.value(conn, """SELECT count(*) > 0 FROM sys."v$mutexholder" """), "a holder")
            with server.connect() as other:
                take(other, queue)
            holder.join()
    found, figures = interval.only("hot_object")
    assert queue in found["title"] and figures["hash"] == mutex
    # what it says can be done
    with server.connect() as conn:
        conn.execute(found["do"][found["do"].index("SELECT") : found["do"].index(";")])
        assert db.value(
            conn, """SELECT count(*) > 0 FROM sys."v$db_object_cache" WHERE lower(name) = %s AND property LIKE 'HOT%%'""", [queue]
        )


@pytest.mark.sharded("a queue table has no shards")
def test_one_shard(server, interval, queue):
    """Sessions wait for the latch of a shard that has most of a queue's messages.

    The waits are written into the second snapshot: a latch of a shard is never held long enough to be waited for on purpose.
    """
    with server.connect() as conn:
        with interval:
            put_many(conn, queue, 1, 1000)
        assert interval.model["advice"] == []
        end = interval.end
        micros = db.value(
            conn, "SELECT (value * 0.4)::bigint FROM sys.dba_hist_sys_time_model WHERE snap_id = %s AND stat_name = 'DB time'", [end]
        )
        event = {
            "event": "latch: shard stream",
            "wait_class": "Concurrency",
            "waits": 50,
            "timeouts": 0,
            "total_us": micros,
            "client_waits": 50,
            "client_timeouts": 0,
            "client_us": micros,
        }
        conn.execute(
            "UPDATE aq_internal.snapshot_data SET data = data || %s WHERE snap_id = %s AND source = 'waits'", [json.dumps([event]), end]
        )
        interval.look(conn)
    found, figures = interval.only("one_shard")
    assert queue in found["title"] and figures["share of the queue"] == 100 and figures["shards of the queue"] == 4


def test_flow_control(server, interval, queue):
    """Sessions wait for room for buffered messages, but no consumer dequeues."""

    def enqueue():
        with server.connect() as conn:
            conn.execute("SET pgaq.buffered_message_limit = 1; SET pgaq.flow_control_timeout = '1 s'")
            with pytest.raises(db.Error):
                put(conn, queue, 1, delivery_mode="buffered")

    with server.connect() as conn:
        put(conn, queue, 1, delivery_mode="buffered")
    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    with interval:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found, figures = interval.only("flow_control")
    assert figures["time"] >= 4 and figures["waits"] >= 4
