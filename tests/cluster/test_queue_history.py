"""The history of queues: minutes and hours, as the clock goes; what is kept over errors, restarts and steps of the clock."""

from __future__ import annotations

import pytest
from conftest import background, put, put_many, server_with_points, take, until
from pgaq import db
from test_clock import moving
from test_metrics import evict

MINUTE = 1 / 60
SUMS = "SELECT COALESCE(sum(enqueued), 0)::int, COALESCE(sum(dequeued), 0)::int FROM aq.history_minutes WHERE queue_name = %s"


@pytest.fixture
def moved(request, tmp_path_factory, library, monkeypatch):
    settings = {"pgaq.ash_size": "0", **getattr(request, "param", {})}
    with moving(tmp_path_factory) as clock, server_with_points(monkeypatch, library, "history", **settings) as server:
        yield server, clock


def sums(conn, queue):
    """How many messages were enqueued and dequeued, by the minutes."""
    return tuple(conn.execute(SUMS, [queue]).fetchone())


def minute(conn, clock, queue, expected):
    """A minute ends, and its row comes."""
    clock.move(MINUTE)
    until(lambda: sums(conn, queue) == expected, f"{expected} in the minutes of {queue}")


def configure(server, conn, name, value):
    server.configure(**{name: value})
    conn.execute("SELECT pg_reload_conf()")
    until(lambda: db.value(conn, f"SHOW {name}") == value, f"{name} = {value}")


def counting(conn):
    """The turns of the worker in which it samples are counted from now on."""
    conn.execute("SELECT aq.point_arm('history-written', 'error', 1000000)")


def turns(conn):
    return db.value(conn, "SELECT aq.point_reached('history-written')")


def passes(conn, clock):
    """A minute passes; the worker does what is due. Has it sampled?"""
    before = turns(conn)
    clock.move(MINUTE)
    until(
        lambda: db.value(conn, "SELECT due IS NULL OR due > clock_timestamp() FROM aq.workers WHERE database = current_database()"),
        "a worker at rest",
    )
    return turns(conn) > before


@pytest.mark.parametrize("in_table", [False, True], ids=["sharded", "queue table"])
def test_minutes(moved, in_table):
    """A queue has rows for the minutes in which something happens, and while nothing does the worker does not look."""
    server, clock = moved
    with server.connect() as conn:
        if in_table:
            conn.execute("SELECT aq.create_queue_table('a_table', 'jsonb')")
        conn.execute("SELECT aq.create_queue('a', queue_table => %s)", ["a_table" if in_table else None])
        put(conn, "a", 1, 2, 3, 4)
        minute(conn, clock, "a", (4, 0))
        assert len(take(conn, "a", number=3)) == 3
        minute(conn, clock, "a", (4, 3))
        assert (
            db.value(
                conn, "SELECT count(*) FROM aq.history_minutes WHERE p50_seconds IS NOT NULL AND (SELECT sum(n) FROM unnest(buckets) n) = 3"
            )
            == 1
        )
        counting(conn)
        until(lambda: not passes(conn, clock), "a minute without a sample")
        rows = db.rows(conn, "SELECT * FROM aq.history_minutes WHERE queue_name = 'a' ORDER BY sampled_at")
        assert [rows[-1][name] for name in ("delivery_mode", "ready", "in_flight", "delayed")] == ["persistent", 1, 0, 0]
        assert rows[-1]["oldest_ready_seconds"] >= 60
        assert all(row["sampled_at"].second == 0 for row in rows)
        assert sum(passes(conn, clock) for _ in range(5)) <= 1  # one more if the hour has ended
        put(conn, "a", 5)
        minute(conn, clock, "a", (5, 3))
        assert len(db.rows(conn, "SELECT * FROM aq.history_minutes WHERE queue_name = 'a'")) == len(rows) + 1


def test_hours(moved):
    """The row of an hour has the sums of its minutes, also if nothing happens when it ends."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a')")
        for number in range(1, 4):
            put(conn, "a", number)
            assert take(conn, "a") == [number]
            minute(conn, clock, "a", (number, number))
        clock.move(1)
        total = "SELECT sum(enqueued) = 3 AND sum(dequeued) = 3 FROM aq.history_hours WHERE queue_name = 'a'"
        until(lambda: db.value(conn, total), "the row of the hour, or of both if one has ended between the minutes")
        rows = db.rows(conn, "SELECT * FROM aq.history_hours WHERE queue_name = 'a'")
        assert sum(sum(row["buckets"]) for row in rows) == 3
        assert all((row["sampled_at"].minute, row["sampled_at"].second) == (0, 0) for row in rows)


def test_a_turn_that_fails(moved):
    """What its row would have shown is in the next one. So it is when the worker is terminated before its commit."""
    server, clock = moved
    server.expect_log('job "history"|test point')
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a')")
        for number, action in enumerate(("error", "terminate"), 1):
            conn.execute("SELECT aq.point_arm('history-written', %s)", [action])
            put(conn, "a", number)
            clock.move(MINUTE)
            until(lambda: turns(conn) > 0, "a turn")
            conn.execute("SELECT aq.point_reset()")
            until(lambda: background(conn, "worker"), "a worker")
            minute(conn, clock, "a", (number, 0))


def test_a_restart(moved):
    """Rows are kept, but for the last ones before a crash; the counters begin at zero, and messages that were there are not counted as enqueued."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a')")
        put(conn, "a", 1, 2)
        minute(conn, clock, "a", (2, 0))
    server.restart()
    with server.connect() as conn:
        put(conn, "a", 3)
        minute(conn, clock, "a", (3, 0))
    server.kill()
    server.start()
    with server.connect() as conn:
        kept = sums(conn, "a")[0]
        assert kept in (2, 3)
        put(conn, "a", 4)
        minute(conn, clock, "a", (kept + 1, 0))


def test_set_back(moved):
    """Nothing is lost or counted twice; the views leave out what is in the future."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a')")
        put(conn, "a", 1, 2)
        minute(conn, clock, "a", (2, 0))
        worker = background(conn, "worker")
        clock.move(-5)
        until(lambda: background(conn, "worker") not in (None, worker), "the next worker")
        put(conn, "a", 3)
        minute(conn, clock, "a", (1, 0))
        clock.move(6)
        until(lambda: sums(conn, "a") == (3, 0), "all")


def test_off(moved):
    """pgaq.history = off ends it; what is counted then is not shown when it is on again."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a')")
        put(conn, "a", 1)
        minute(conn, clock, "a", (1, 0))
        configure(server, conn, "pgaq.history", "off")
        counting(conn)
        put_many(conn, "a", 2, 1001)
        clock.move(2)
        assert sums(conn, "a") == (1, 0)
        assert turns(conn) == 0
        configure(server, conn, "pgaq.history", "on")

        def shown():
            """The turn that sees where the counters are comes when the worker knows the setting and something changes."""
            put(conn, "a", 0)
            clock.move(MINUTE)
            return sums(conn, "a")[0] > 1

        until(shown, "what was put in a later minute")
        assert sums(conn, "a")[0] < 1000


def test_who_sees_what(moved):
    """A role sees its queues; the sum of those beyond pgaq.history_queues is for members of pg_monitor. A dropped queue has none."""
    server, clock = moved
    with server.connect() as conn:
        configure(server, conn, "pgaq.history_queues", "1")
        conn.execute("CREATE ROLE reader; CREATE ROLE monitor IN ROLE pg_monitor")
        conn.execute("SELECT aq.create_queue(n) FROM unnest('{a,b,c}'::text[]) n")
        conn.execute("SELECT aq.grant_queue('a', 'reader', 'dequeue')")
        with conn.transaction():  # the worker can have its first turn at any time
            put(conn, "a", 1, 2, 3)
            put(conn, "b", 1)
            put(conn, "c", 1)
        minute(conn, clock, "a", (3, 0))
        seen = "SELECT queue_name, enqueued FROM aq.history_minutes WHERE enqueued > 0 ORDER BY 1"
        for role, rows in (("reader", [("a", 3)]), ("monitor", [("a", 3), (None, 2)])):
            conn.execute(f"SET ROLE {role}")
            assert [tuple(row) for row in conn.execute(seen).fetchall()] == rows
            with pytest.raises(db.Error, match="permission denied"):
                conn.execute("SELECT * FROM aq_internal.history_minute")
            conn.execute("RESET ROLE")
        conn.execute("SELECT aq.drop_queue('a', force => true)")
        assert sums(conn, "a") == (0, 0)
        conn.execute("DROP EXTENSION pgaq CASCADE")
        conn.execute("CREATE EXTENSION pgaq")
        conn.execute("SELECT aq.create_queue('a')")
        put(conn, "a", 1)
        minute(conn, clock, "a", (1, 0))


def test_a_reader_that_stays(moved):
    """The worker neither empties a table that a transaction reads nor waits for it; a dump contains no history."""
    server, _ = moved
    count = "SELECT count(*) FROM aq_internal.history_minute"
    with server.connect() as conn, server.connect() as reader:
        # of two turns, the first of which is to make room at the end
        conn.execute(
            "INSERT INTO aq_internal.history_minute SELECT timestamptz '2000-01-01 00:00Z' + i * interval '8 hours', 1, NULL, 0, 0, 0, 1, 0, 0 FROM generate_series(0, 7) i"
        )
        turn = "SELECT aq_internal.history_turn('2000-01-03 08:00Z', false)"
        with reader.transaction():
            assert db.value(reader, count) == 8
            conn.execute("SET lock_timeout = '1s'")
            assert db.value(conn, turn) is True
            assert db.value(conn, turn.replace("08:00", "16:00")) is False, "nothing is added to rows of the first turn"
            assert db.value(conn, count) == 8
        assert db.value(conn, turn) is True
        assert db.value(conn, count) == 7
        assert (
            db.value(conn, "SELECT count(*) FROM pg_extension e, unnest(e.extconfig) c WHERE c::regclass::text ~ 'history_(minute|hour)'")
            == 0
        )


@pytest.mark.parametrize("moved", [{"pgaq.message_cache_size": "4MB"}], indirect=True, ids=["small cache"])
def test_messages_that_are_not_in_memory(moved):
    """The worker does not read them: their number is known in a queue with one consumer, and null in a topic."""
    server, clock = moved
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('a', shards => 1), aq.create_queue('b', shards => 1, multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('b', 'ann')")
        for queue in ("a", "b"):
            put_many(conn, queue, 1, 17_000, delay="1 day")
        evict(conn, ["a", "b"])
        for queue in ("a", "b"):
            put(conn, queue, 1)
            minute(conn, clock, queue, (17_001, 0))
        numbers = "SELECT ready, in_flight, delayed FROM aq.history_minutes WHERE queue_name = %s ORDER BY sampled_at DESC LIMIT 1"
        assert conn.execute(numbers, ["a"]).fetchone() == (1, 0, 17_000)
        assert conn.execute(numbers, ["b"]).fetchone() == (None, None, None)
