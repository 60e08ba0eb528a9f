"""Many subscribers, queues, sessions, delays; payloads of every size."""

from __future__ import annotations

import hashlib
import threading

import pytest

from conftest import PATIENCE, arrived, drop, put, put_many, ready, take, until
from pgaq import db
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import Options, Workload

SETTINGS = {"max_connections": "250", "max_locks_per_transaction": "256", "max_wal_size": "2GB"}


def test_thousand_subscribers(server, conn):
    db.execute(conn, "SELECT aq.create_queue('wide', multiple_consumers => true)")
    db.execute(conn, "SELECT count(aq.subscribe('wide', 'c' || n)) FROM generate_series(1, 1000) n")
    put(conn, "wide", *range(20))
    for number in (1, 2, 500, 999, 1000):
        assert take(conn, "wide", f"c{number}") == list(range(20)), number
    server.restart()
    with server.connect() as now:
        assert take(now, "wide", "c1") == [] and take(now, "wide", "c3") == list(range(20))
        query = "SELECT count(*), sum(n) FROM generate_series(1, 1000) c, LATERAL (SELECT count(*) AS n FROM aq.dequeue('wide', consumer => 'c' || c, max_messages => 100)) s"
        assert now.execute(query).fetchone() == (1000, 994 * 20)
        db.execute(now, "SELECT count(aq.unsubscribe('wide', 'c' || n)) FROM generate_series(1, 999) n")
        put(now, "wide", "last")
        assert take(now, "wide", "c1000") == ["last"]
        db.execute(now, "SELECT aq.drop_queue('wide')")


def test_limit_of_subscribers(server, conn, topic):
    db.execute(conn, "SELECT count(aq.subscribe(%s, 'c' || n)) FROM generate_series(1, 1021) n", [topic])
    conn.execute("SET statement_timeout = '30 s'")  # waiting would be no answer
    for query, hint in (
        ("SELECT aq.subscribe(%s, 'one too many')", "aq.unsubscribe"),
        ("SELECT aq.enqueue(%s, '0', recipients => ARRAY['one too many'])", "A recipient's position becomes free when"),
    ):
        with pytest.raises(db.Error) as caught:
            db.execute(conn, query, [topic])
        assert caught.value.sqlstate == "54000" and "1023" in str(caught.value)
        assert hint in caught.value.diag.message_hint
    with server.connect(autocommit=False) as other:
        put(other, topic, 0)
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'c1')", [topic])
        with pytest.raises(db.Error) as caught:
            db.execute(conn, "SELECT aq.subscribe(%s, 'one too many')", [topic])
        assert (
            caught.value.diag.message_detail
            == "It has 1022 subscribers and 0 recipients. Places of removed consumers that are not free yet: 1."
        )
        other.rollback()
    put(conn, topic, 1)
    assert take(conn, topic, "c1021") == [1]


@pytest.mark.parametrize("number", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_many_queues(server, conn, number):
    db.execute(conn, "SELECT count(aq.create_queue('many' || n)) FROM generate_series(1, %s::int) n", [number])
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r'"
    before = db.value(conn, tables)
    for name in (1, number // 2, number):
        put(conn, f"many{name}", name)
    assert db.value(conn, tables) - before <= 12, "queues that were never used have tables"
    db.execute(conn, "SELECT count(aq.enqueue('many' || n, to_jsonb(n))) FROM generate_series(1, %s::int) n", [number])
    server.restart()
    with server.connect() as now:
        query = "SELECT count(*) FROM generate_series(1, %s::int) n, LATERAL aq.dequeue('many' || n, max_messages => 10) d WHERE d.payload = to_jsonb(n)"
        assert db.value(now, query, [number]) == number + 3
        db.execute(now, "SELECT count(aq.drop_queue('many' || n)) FROM generate_series(1, %s::int) n", [number])
        assert db.value(now, "SELECT count(*) FROM aq.queues WHERE queue_name LIKE 'many%'") == 0


@pytest.mark.parametrize("size", [0, 1, 1_000_000, pytest.param(100_000_000, marks=pytest.mark.long)])
def test_payload_sizes(server, conn, size):
    db.execute(conn, "SELECT aq.create_queue('big', 'bytea')")
    payload = (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]
    try:
        db.execute(conn, "SELECT aq.enqueue('big', %b)", [payload])
        db.execute(conn, "SELECT aq.enqueue('big', %b)", [payload[::-1]])
        assert conn.execute("SELECT payload FROM aq.dequeue('big', as_type => NULL::bytea)", binary=True).fetchone()[0] == payload
        conn.execute("BEGIN")
        assert db.value(conn, "SELECT length(payload) FROM aq.dequeue('big', as_type => NULL::bytea)") == size
        conn.execute("ROLLBACK")
        server.restart()
        with server.connect() as now:
            assert ready(now, "big", timeout="60 s")
            got = now.execute("SELECT payload FROM aq.dequeue('big', as_type => NULL::bytea)", binary=True).fetchone()[0]
            assert got == payload[::-1]
    finally:
        with server.connect() as now:
            drop(now, "big")


def test_array_of_large_payloads(server, conn):
    db.execute(conn, "SELECT aq.create_queue('big', 'text')")
    db.execute(
        conn, "SELECT aq.enqueue_array('big', (SELECT array_agg(repeat(md5(n::text), 4000) ORDER BY n) FROM generate_series(1, 100) n))"
    )
    query = "SELECT bool_and(payload = repeat(md5(n::text), 4000)), count(*) FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue('big', as_type => NULL::text, max_messages => 1000)) s"
    assert conn.execute(query).fetchone() == (True, 100)
    drop(conn, "big")


@pytest.mark.parametrize("what", ["delay", "expiration", "retry"])
def test_times_by_the_thousand(server, conn, queue, what):
    """Five thousand due within a second, twenty thousand not due for a day."""
    number = 5000
    if what == "delay":
        put_many(conn, queue, number + 1, 5 * number, delay="1 day")
        put_many(conn, queue, 1, number, delay="0.5 s")
        assert arrived(conn, queue, number) == list(range(1, number + 1))
        assert db.value(conn, "SELECT aq.purge_queue(%s)", [queue]) == 4 * number
    elif what == "expiration":
        db.execute(conn, "SELECT aq.create_queue(%s)", [f"{queue}_dead"])
        db.execute(conn, "SELECT aq.alter_queue(%s, exception_queue => %s)", [queue, f"{queue}_dead"])
        put_many(conn, queue, number + 1, 5 * number, expiration="1 day")
        put_many(conn, queue, 1, number, expiration="0.5 s")
        assert sorted(arrived(conn, f"{queue}_dead", number)) == list(range(1, number + 1))
        assert take(conn, queue) == list(range(number + 1, 5 * number + 1))
        drop(conn, queue)
        drop(conn, f"{queue}_dead")
    else:
        db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0.2 s')", [queue])
        put_many(conn, queue, 1, number)
        for _ in range(2):
            until(lambda: ready(conn, queue, timeout="1 s"), "ready again")
            conn.execute("BEGIN")
            assert len(take(conn, queue)) > 0
            conn.execute("ROLLBACK")
        # what rests after the second rollback comes behind what rested once only
        assert sorted(arrived(conn, queue, number)) == list(range(1, number + 1))


def test_times_survive_a_crash(server, conn, queue):
    put_many(conn, queue, 1, 2000, delay="1 s")
    put_many(conn, queue, 2001, 4000, delay="1 day")
    server.expect_log("terminat|crash")
    server.kill()
    server.start()
    with server.connect() as now:
        assert arrived(now, queue, 2000) == list(range(1, 2001))
        assert db.value(now, "SELECT aq.purge_queue(%s)", [queue]) == 2000


def test_two_hundred_sessions(server):
    with Workload(server, PGAQ, Shape(sessions=100, batch=5, payload=100), Options(backlog=5000, rollback=3), queue="crowd") as work:
        work.setup()
        work.start()
        until(lambda: work.control.delivered > 50_000 or work._check_clients(), "50,000 deliveries", 120)
        assert work.drain(), "not drained"
        work.stop()
        assert work.check().ok, str(work.check())
        work.teardown()


def test_one_of_ten_subscribers_is_stopped(server, conn):
    """The others go on; its lag can be seen; on its return it gets everything, in order."""
    db.execute(conn, "SELECT aq.create_queue('ten', multiple_consumers => true)")
    db.execute(conn, "SELECT count(aq.subscribe('ten', 's' || n)) FROM generate_series(0, 9) n")
    total = 40_000
    others = [f"s{n}" for n in range(1, 10)]
    for start in range(1, total, 10_000):
        put_many(conn, "ten", start, start + 9999)
        for consumer in others:
            assert take(conn, "ten", consumer) == list(range(start, start + 10_000))
    lag = dict(conn.execute("SELECT consumer, lag FROM aq.subscribers WHERE queue_name = 'ten'").fetchall())
    assert lag["s0"] == total and all(lag[consumer] == 0 for consumer in others), lag
    got = []
    while len(got) < total:
        some = take(conn, "ten", "s0", 5000)
        assert some, len(got)
        got += some
    assert got == list(range(1, total + 1))
    db.execute(conn, "SELECT aq.drop_queue('ten')")


def test_concurrent_consumers_share_without_overlap(server, conn, queue):
    """Twenty sessions drain one queue: each message once, no session waits for another."""
    put_many(conn, queue, 1, 20_000)
    found, errors = [], []

    def consume():
        try:
            with server.connect() as mine:
                mine.execute("SET statement_timeout = '30 s'")
                while got := take(mine, queue, number=50):
                    found.extend(got)
        except db.Error as error:
            errors.append(str(error))

    threads = [threading.Thread(target=consume) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(found) == list(range(1, 20_001))


def test_ddl_while_others_work(server, conn, queue):
    """Queues come and go, subscribers and rights change, under traffic in the same and in other queues."""
    stop = threading.Event()
    errors, sent, got = [], [], []

    def work():
        try:
            with server.connect() as mine:
                while not stop.is_set():
                    sent.extend(put(mine, queue, 1))
                    got.extend(take(mine, queue, number=1))
        except db.Error as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(60):
        name = f"ddl{number % 3}"
        db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => true)", [name])
        db.execute(conn, "SELECT aq.subscribe(%s, 'x')", [name])
        put(conn, name, 1)
        db.execute(conn, "SELECT aq.alter_queue(%s, max_retries => %s, comment => %s)", [queue, number, str(number)])
        db.execute(conn, "SELECT aq.grant_queue(%s, 'pg_monitor')", [queue])
        assert take(conn, name, "x") == [1]
        db.execute(conn, "SELECT aq.drop_queue(%s)", [name])
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    left = take(conn, queue)
    assert len(sent) == len(set(sent)) == len(got) + len(left)


def test_drop_under_traffic(server, conn):
    """Sessions in the middle of enqueue and dequeue: the drop waits, then they get an error."""
    for number in range(10):
        db.execute(conn, "SELECT aq.create_queue('gone')")
        states = []

        def work():
            try:
                with server.connect() as mine:
                    while True:
                        put(mine, "gone", 1)
                        take(mine, "gone", number=1)
            except db.Error as error:
                states.append(f"{error.sqlstate} {error}")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(take(conn, "gone", number=1)) == 1 or number, "traffic")
        db.execute(conn, "SELECT aq.drop_queue('gone', true)")
        for thread in threads:
            thread.join(PATIENCE)
        busy = conn.execute(
            "SELECT * FROM sys.\"v$session_wait\" WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE state = 'active')"
        ).fetchall()
        assert [state[:5] for state in states] == ["42704"] * 4, (states, busy)
