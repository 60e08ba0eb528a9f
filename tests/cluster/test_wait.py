"""Waiting: many sessions, no CPU, no snapshot, and a wake-up only for who can be served."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, at_rest, held, put, put_many, ready, stopped_worker, take, until
from pgaq import db
from test_limits import TABLE

import psycopg

# except where a test sets it, no other session is told of a message that its waiter does not fetch
SETTINGS = {"max_connections": "250", "pgaq.fetch_patience": "-1"}
WAITERS = 100


class Waiter:
    """A session in CALL aq.wait, driven without a thread."""

    def __init__(self, server, queue, consumer=None, timeout="NULL", statement=None, **more):
        self.connection = psycopg.connect(server.conninfo(application_name="waiter", **more), autocommit=True)
        self.pg = self.connection.pgconn
        self.pid = self.pg.backend_pid
        self.queue, self.consumer, self.timeout, self.statement = queue, consumer, timeout, statement

    def wait(self):
        name = f"'{self.consumer}'" if self.consumer else "NULL"
        text = self.statement or f"CALL aq.wait('{self.queue}', {name}, {self.timeout}, NULL)"
        self.pg.send_query(text.encode())
        while self.pg.flush():
            pass
        return self

    def done(self):
        """Has the answer arrived?"""
        while select.select([self.pg.socket], [], [], 0)[0]:
            self.pg.consume_input()
            if not self.pg.is_busy():
                return True
        return not self.pg.is_busy()

    def answer(self):
        """First column, or the SQLSTATE."""
        until(self.done, f"an answer to session {self.pid}")
        found = None
        while True:
            result = self.pg.get_result()
            if result is None:
                return found
            if result.error_field(psycopg.pq.DiagnosticField.SQLSTATE):
                found = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode()
            elif result.ntuples:
                value = result.get_value(0, 0)
                found = None if value is None else value.decode()

    def switches(self):
        """How often it went to sleep so far: grows with every wake-up."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def cpu(self):
        """Clock ticks used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def close(self):
        self.connection.close()


@pytest.fixture
def waiters(server):
    made = []

    def make(number, *arguments, **named):
        new = [Waiter(server, *arguments, **named) for _ in range(number)]
        made.extend(new)
        return new

    yield make
    for waiter in made:
        waiter.close()


def stable(waiter):
    """In an interruptible sleep now?"""
    return Path(f"/proc/{waiter.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def asleep(conn, waiters):
    """Wait until all of them wait."""
    pids = [waiter.pid for waiter in waiters]
    query = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = ANY (%s) AND state = 'WAITING' AND event ~ 'message'"""
    until(lambda: db.value(conn, query, [pids]) == len(pids), f"{len(pids)} sessions waiting for messages")
    # the server says so just before they sleep
    until(lambda: all(stable(waiter) for waiter in waiters), "everybody asleep")


def test_the_server_knows_the_names_of_waits(server, conn, queue, waiters):
    """pg_stat_activity names what a session waits for, as our own view does."""
    if conn.info.server_version < 170000:
        pytest.skip("before PostgreSQL 17 every wait of an extension is called Extension")
    [waiter] = waiters(1, queue)
    asleep(conn, [waiter.wait()])
    both = """SELECT a.wait_event AS server, w.event AS ours FROM pg_stat_activity a JOIN sys."v$session_wait" w USING (pid)
              WHERE pid = %s AND w.state = 'WAITING'"""
    name = "Streams AQ: waiting for messages in the queue"
    assert db.row(conn, both, [waiter.pid]) == {"server": name, "ours": name}
    idle = "SELECT count(DISTINCT wait_event) = 3 FROM pg_stat_activity WHERE wait_event IN ('aq: launcher idle', 'aq: worker idle', 'aq: sampler idle')"
    until(lambda: db.value(conn, idle), "the processes of the extension idle, by name")
    missing = """SELECT array_agg(name) FROM sys."v$event_name"
                 WHERE name NOT IN (SELECT name FROM pg_wait_events WHERE type = 'Extension')"""
    assert db.value(conn, missing) is None


def pause(conn):
    """A second that ends by an event of ours."""
    db.execute(conn, "SELECT aq.create_queue('pause')")
    assert not ready(conn, "pause", timeout="1 s")
    db.execute(conn, "SELECT aq.drop_queue('pause')")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_levels_wait_as_well(server, conn, queue, waiters, level):
    """A message enqueued during the wait ends it, although the waiting statement's snapshot cannot see it."""
    waiter = waiters(1, queue)[0]
    waiter.connection.execute(f"SET default_transaction_isolation = '{level}'")
    waiter.wait()
    asleep(conn, [waiter])
    put(conn, queue, 1)
    assert waiter.answer() == "t"
    assert take(waiter.connection, queue) == [1]


def test_hundred_waiters_cost_nothing(server, conn, queue, topic, waiters):
    group = waiters(WAITERS - 10, queue) + waiters(10, topic, "a")
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    pids = [waiter.pid for waiter in group]
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
    assert db.value(conn, query, [pids]) == 0
    db.execute(conn, "SELECT aq.create_queue('elsewhere')")
    cpu = [waiter.cpu() for waiter in group]
    switches = [waiter.switches() for waiter in group]
    # traffic in another queue, and time
    for number in range(100):
        put(conn, "elsewhere", number)
        assert take(conn, "elsewhere") == [number]
    pause(conn)
    assert db.value(conn, query, [pids]) == 0
    assert sum(waiter.cpu() for waiter in group) - sum(cpu) <= 2
    woken = sum(waiter.switches() > before for waiter, before in zip(group, switches))
    assert woken == 0, f"{woken} of {len(group)} sessions were woken for nothing"
    assert not any(waiter.done() for waiter in group)
    db.execute(conn, "SELECT aq.drop_queue('elsewhere', true)")


def test_only_served_sessions_are_woken(server, conn, queue, waiters):
    group = waiters(50, queue)
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    for number in (1, 1, 3, 10):
        before = {waiter: waiter.switches() for waiter in group}
        put_many(conn, queue, 1, number)
        until(lambda: sum(waiter.done() for waiter in group) >= number, f"{number} sessions woken")
        pause(conn)
        answered = [waiter for waiter in group if waiter.done()]
        assert len(answered) == number
        disturbed = [w for w in group if w not in answered and w.switches() > before[w]]
        assert len(disturbed) <= number, f"{len(disturbed)} others were woken"
        assert [w.answer() for w in answered] == ["t"] * number
        assert len(take(conn, queue)) == number
        group = [waiter for waiter in group if waiter not in answered]


WAITS_FOR = [
    "SELECT payload FROM aq.dequeue('{queue}', correlation => '{key}', wait => '1 minute')",
    "SELECT payload FROM aq.dequeue('{queue}', correlation => '{key}', condition => 'payload IS NOT NULL', wait => '1 minute')",
    "CALL aq.receive('{queue}', timeout => '1 minute', correlation => '{key}')",
]


@pytest.mark.sharded("a queue table wakes all that wait for some of the messages")
@pytest.mark.parametrize("statement", WAITS_FOR)
def test_a_correlation_wakes_those_that_wait_for_it(server, conn, queue, waiters, statement):
    """Messages that all have the same correlation; others wait for another one, and one for a pattern that it does not match."""
    sent = """SELECT value FROM v$sysstat WHERE name = 'queue wake-ups sent'"""
    conn.execute("SET search_path = sys")
    group = [
        w
        for key in ["a", "b", "c", "a_", "ä", "longer than the others"]
        for w in waiters(2, queue, statement=statement.format(queue=queue, key=key))
    ]
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    before = db.value(conn, sent)
    put(conn, queue, 1, 2, 3, correlation="nobody's")
    put(conn, queue, 4)
    assert db.value(conn, sent) - before <= 4 * 2, "woken for messages of others, except by the pattern"
    for waiter in group:
        assert not waiter.done()
    asleep(conn, group)
    before = db.value(conn, sent)
    conn.execute("SELECT aq.enqueue_array(%s, '{5,6}', correlation => 'b')", [queue])
    assert [waiter.answer() is not None for waiter in group[2:4]] == [True, True]
    assert db.value(conn, sent) - before <= 2 + 2
    # with different correlations all are woken, and those find theirs
    conn.execute('SELECT aq.enqueue_array(%s, \'{7,8}\', options => \'[{"correlation": "c"}, {"correlation": "ä"}]\')', [queue])
    until(lambda: sum(waiter.done() for waiter in group[4:6]) == 1 and sum(waiter.done() for waiter in group[8:10]) == 1, "one for each")
    assert not any(waiter.done() for waiter in group[:2] + group[6:8] + group[10:])


def test_waits_by_correlation_miss_nothing(server, conn, queue, seed):
    """Random producers and consumers; each consumer gets what its correlation has, once."""
    import random
    import threading

    keys = [f"key {n}" for n in range(6)]
    ledger = {key: [] for key in keys}
    got = {key: [] for key in keys}
    errors = []
    lock = threading.Lock()

    def consume(key, rng):
        how = rng.choice(["correlation => %(key)s", "correlation => %(pattern)s", "correlation => %(key)s, condition => 'priority < 9'"])
        names = {"key": key, "pattern": key + "%", "queue": queue}
        tried = set()
        try:
            with server.connect() as mine:
                while True:
                    mine.execute("BEGIN")
                    row = mine.execute(f"SELECT payload FROM aq.dequeue(%(queue)s, {how}, wait => '60 s')", names).fetchone()
                    if row is None:
                        errors.append(f"{key} waited in vain")
                        return
                    if rng.random() < 0.1 and row[0] not in tried:
                        tried.add(row[0])
                        mine.execute("ROLLBACK")
                        continue
                    mine.execute("COMMIT")
                    if row[0] == "end":
                        return
                    got[key].append(row[0])
        except Exception as error:  # noqa: BLE001
            errors.append(repr(error))

    def produce(number, rng):
        try:
            with server.connect() as mine:
                for step in range(60):
                    chosen = [rng.choice(keys) for _ in range(rng.choice([1, 1, 3]))]
                    payloads = [number * 10_000 + step * 10 + i for i in range(len(chosen))]
                    form = rng.choice(["single", "array", "each", "delay", "rollback"])
                    if form == "array":
                        chosen = chosen[:1] * len(chosen)
                    with lock:
                        for key, payload in zip(chosen, payloads):
                            if form != "rollback":
                                ledger[key].append(payload)
                    mine.execute("BEGIN")
                    if form in ("single", "delay", "rollback"):
                        for key, payload in zip(chosen, payloads):
                            put(mine, queue, payload, correlation=key, **({"delay": "20 ms"} if form == "delay" else {}))
                    elif form == "array":
                        mine.execute(
                            "SELECT aq.enqueue_array(%s, %s::text[], correlation => %s)", [queue, [str(p) for p in payloads], chosen[0]]
                        )
                    else:
                        options = "[" + ", ".join('{"correlation": "%s"}' % key for key in chosen) + "]"
                        mine.execute(
                            "SELECT aq.enqueue_array(%s, %s::text[], options => %s::text::jsonb)",
                            [queue, [str(p) for p in payloads], options],
                        )
                    mine.execute("ROLLBACK" if form == "rollback" else "COMMIT")
        except Exception as error:  # noqa: BLE001
            errors.append(repr(error))

    put(conn, queue, *range(100, 300), correlation="nobody's")
    consumers = [threading.Thread(target=consume, args=(key, random.Random(f"{seed} {key}"))) for key in keys]
    producers = [threading.Thread(target=produce, args=(number, random.Random(f"{seed} {number}"))) for number in (1, 2)]
    for thread in consumers + producers:
        thread.start()
    for thread in producers:
        thread.join()
    until(lambda: errors or all(len(got[key]) >= len(ledger[key]) for key in keys), f"all taken, seed {seed}")
    for key in keys:
        put(conn, queue, "end", correlation=key)
    for thread in consumers:
        thread.join()
    assert errors == [] and {key: sorted(got[key]) for key in keys} == {key: sorted(ledger[key]) for key in keys}, f"seed {seed}"


@pytest.mark.sharded("a queue table uses an index, or reads its rows")
def test_a_search_by_correlation_reads_few_of_the_others(server, conn, queue):
    """One message lies behind two thousand others, each in a page of its own; in memory as they were enqueued, and as they were loaded."""
    conn.execute("SELECT cardinality(aq.enqueue_array(%s, array_agg(to_jsonb(repeat('x', 1000) || n)::text), options => jsonb_agg(jsonb_build_object('correlation', 'c' || n))))"
                 " FROM generate_series(1, 2000) n", [queue])  # fmt: skip
    put(conn, queue, "mine", correlation="mine")

    def read(key):
        plan = db.value(conn, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM aq.browse('{queue}', correlation => '{key}')")
        return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]

    assert read("none") < read("c1") + 10 < 1900 < read("none%")
    server.restart()
    with server.connect() as conn:
        assert take(conn, queue, number=1)  # it is loaded
        assert read("none") < read("c1") + 10 < 1900 < read("none%")
        assert conn.execute("SELECT payload FROM aq.dequeue(%s, correlation => 'mine')", [queue]).fetchall() == [("mine",)]


@pytest.mark.parametrize("gone", [False, True])
def test_message_that_its_waiter_does_not_fetch(new_server, gone):
    """The client of the first waiter is idle, or has disconnected: another waiter is told after pgaq.fetch_patience."""
    own = new_server("patience", **{"pgaq.fetch_patience": "100 ms"})
    first, second = Waiter(own, "q"), Waiter(own, "q")
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 0)
        assert take(conn, "q") == [0]
        # what the worker knows of the queue is out of date when it looks for the waiters
        until(lambda: at_rest(conn, "worker"), "the worker at rest")
        db.execute(conn, "SELECT aq.alter_queue('q', comment => 'another')")
        for waiter in (first, second):
            waiter.wait()
            asleep(conn, [waiter])
        put(conn, "q", 1)
        assert first.answer() == "t"
        if gone:
            first.close()
        assert second.answer() == "t"
        assert take(conn, "q") == [1]
    first.close()
    second.close()


def test_many_that_do_not_fetch_it(new_server):
    """However many clients are told and do nothing, the others are told after one pgaq.fetch_patience: not one after another."""
    own = new_server("frozen", **{"pgaq.fetch_patience": "1 s", "max_connections": "100"})
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        group = [Waiter(own, "q").wait() for _ in range(80)]
        asleep(conn, group)
        put(conn, "q", 1)
        until(lambda: all(waiter.done() for waiter in group), "the last one")
        assert take(conn, "q") == [1]
    for waiter in group:
        waiter.close()


def test_consumers_of_a_topic_are_woken_by_their_messages_only(server, conn, topic, waiters):
    a, b = waiters(5, topic, "a"), waiters(5, topic, "b")
    for waiter in a + b:
        waiter.wait()
    asleep(conn, a + b)
    before = {waiter: waiter.switches() for waiter in b}
    put(conn, topic, 1, recipients=["a"])
    until(lambda: any(waiter.done() for waiter in a), "a session of a")
    pause(conn)
    assert sum(waiter.done() for waiter in a) == 1
    assert all(waiter.switches() == before[waiter] for waiter in b)
    put(conn, topic, 2, recipients=["b"])
    until(lambda: any(waiter.done() for waiter in b), "a session of b")


def useful(conn, waiter):
    """Wake-ups by which it found a message.  What else ends a sleep, such as a signal, is none."""
    query = """SELECT s.value FROM sys."v$sesstat" s JOIN sys."v$statname" n USING ("statistic#") WHERE s.pid = %s AND n.name = 'queue wake-ups useful'"""
    return db.value(conn, query, [waiter.pid])


def sent(conn):
    """Wake-ups that all sessions have sent."""
    return db.value(conn, """SELECT value FROM sys."v$sysstat" WHERE name = 'queue wake-ups sent'""")


def test_every_way_a_message_becomes_ready_wakes(server, conn, queue, waiters):
    """Commit of an enqueue, end of a delay, rollback of a dequeue, death of a holder, savepoint: a wake-up is sent, and finds it."""
    (waiter,) = waiters(1, queue)
    before = 0

    def waiting():
        waiter.wait()
        asleep(conn, [waiter])

    def woken():
        nonlocal before
        before += 1
        return waiter.answer() == "t" and useful(conn, waiter) == before

    waiting()
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, queue, 1)
        assert not waiter.done()
        other.execute("COMMIT")
    assert woken()
    take(conn, queue)

    waiting()
    put(conn, queue, 2, delay="0.2 s")
    assert woken()

    other = server.connect()
    try:
        other.execute("BEGIN")
        assert take(other, queue) == [2]
        waiting()
        other.execute("ROLLBACK")
        assert woken()
        other.execute("BEGIN")
        other.execute("SAVEPOINT s")
        assert take(other, queue) == [2]
        waiting()
        other.execute("ROLLBACK TO s")
        assert woken()
        other.execute("COMMIT")
        other.execute("BEGIN")
        assert take(other, queue) == [2]
        waiting()
        db.execute(conn, "SELECT pg_terminate_backend(%s)", [other.info.backend_pid])
        assert woken()
    finally:
        other.close()
    assert take(conn, queue) == [2]

    waiting()
    with server.connect() as other:
        other.execute("BEGIN; SELECT 1")
        put(other, queue, 3)
        other.execute("PREPARE TRANSACTION 'wake'")
    assert not waiter.done()
    conn.execute("COMMIT PREPARED 'wake'")
    assert woken()


@pytest.mark.parametrize("recipients", [False, True])
def test_as_many_are_woken_as_there_are_messages(server, conn, queue, topic, waiters, recipients):
    """Five waiters and an array of five messages: each waiter gets its own wake-up."""
    name, consumer = (topic, "a") if recipients else (queue, None)
    group = waiters(5, name, consumer)
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    put_many(conn, name, 1, 5)
    assert [waiter.answer() for waiter in group] == ["t"] * 5
    assert [useful(conn, waiter) for waiter in group] == [1] * 5
    assert take(conn, name, consumer) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("delivery_mode", ["persistent", "buffered"])
def test_stop_queue_wakes(server, conn, queue, waiters, delivery_mode):
    """Also the sessions that wait for its buffered messages: the stopping session sends the wake-up itself."""
    (waiter,) = waiters(1, queue, statement=f"CALL aq.wait('{queue}', NULL, NULL, '{delivery_mode}', NULL)")
    asleep(conn, [waiter.wait()])
    before = sent(conn)
    db.execute(conn, "SELECT aq.stop_queue(%s)", [queue])
    assert sent(conn) == before + 1
    assert waiter.answer() == "55000"


@pytest.fixture
def full_cache(new_server):
    """A server with 100,000 messages in a queue, which nearly fill its message cache."""
    server = new_server("full", **{"pgaq.message_cache_size": "4MB", "pgaq.fetch_patience": "-1"})
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('large', shards => 1), aq.create_queue('other', shards => 1)")
        for start in range(1, 100_000, 20_000):
            put_many(conn, "large", start, start + 19_999)
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.partitions WHERE queue_name = 'large' AND state = 'empty'"), "an empty table")
    return server


def free_chunks(conn):
    return db.value(conn, "SELECT free_bytes / chunk_bytes FROM aq.message_cache")


@pytest.mark.sharded("a queue table needs no message cache")
def test_delay_that_ends_while_the_message_is_not_in_memory_wakes(full_cache):
    """The worker loads it, and then it is ready without a timer."""
    with full_cache.connect() as conn:
        put(conn, "other", "later", delay="1 hour")
        waiter = Waiter(full_cache, "other")
        with stopped_worker(conn):
            put(conn, "other", "now", delay="0.1 s")
            asleep(conn, [waiter.wait()])
            conn.execute("BEGIN")
            assert db.value(conn, "SELECT count(*) FROM aq.dequeue('large', max_messages => 100000, mode => 'locked')") == 100_000
            # a chunk holds 64 messages: there is room for them when the queue "other" is evicted
            put_many(conn, "large", 1, (free_chunks(conn) + 2) * 64)
            assert not db.value(conn, "SELECT bool_or(resident) FROM aq.partitions WHERE queue_name = 'other'")
            conn.execute("ROLLBACK")
        assert waiter.answer() == "t" and useful(conn, waiter) == 1
        assert take(conn, "other") == ["now"]
        waiter.close()


@pytest.mark.sharded("a queue table needs no message cache")
@pytest.mark.parametrize("retry_delay", ["0", "0.3 s"])
def test_rollback_wakes_when_memory_is_short(full_cache, retry_delay):
    """Retry counts for which there is no memory are written to the log only, the frames go, and the waiter is woken: at once, or when the delay is over."""
    evicted = """SELECT value FROM sys."v$sysstat" WHERE name = 'message cache partitions evicted'"""
    with full_cache.connect() as conn, full_cache.connect() as other:
        put(conn, "other", 1)
        db.execute(conn, "SELECT aq.alter_queue('large', retry_delay => %s)", [retry_delay])
        conn.execute("BEGIN")
        assert db.value(conn, "SELECT count(*) FROM aq.dequeue('large', max_messages => 100000)") == 100_000
        waiter = Waiter(full_cache, "large")
        asleep(conn, [waiter.wait()])
        other.execute("BEGIN")
        put_many(other, "other", 1, (free_chunks(other) - 40) * 64)
        with stopped_worker(other):
            conn.execute("ROLLBACK")
            before = db.value(other, evicted)
        assert waiter.answer() == "t" and useful(conn, waiter) == 1
        assert db.value(other, evicted) > before
        other.execute("ROLLBACK")
        waiter.close()


@pytest.mark.own_tables
@pytest.mark.parametrize("delivery_mode", ["persistent", "buffered"])
def test_a_large_message_wakes(server, conn, waiters, delivery_mode):
    """Its payload is stored out of line, and who waits has no snapshot with which to fetch it: not the second time, when it knows the catalogs."""
    db.execute(conn, "SELECT aq.create_queue_table('public.large'), aq.create_queue('large', queue_table => 'public.large')")
    payload = db.value(conn, "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) n")
    (waiter,) = waiters(1, "large", statement=f"CALL aq.wait('large', NULL, NULL, '{delivery_mode}', NULL)")
    for _ in range(3):
        asleep(conn, [waiter.wait()])
        put(conn, "large", payload, delivery_mode=delivery_mode)
        assert waiter.answer() == "t"
        assert conn.execute("SELECT payload FROM aq.dequeue('large', delivery_mode => %s)", [delivery_mode]).fetchall() == [(payload,)]
    db.execute(conn, "SELECT aq.drop_queue('large'), aq.drop_queue_table('public.large', force => true)")


def test_retry_delay_wakes(server, conn, queue, waiters):
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0.2 s')", [queue])
    (waiter,) = waiters(1, queue)
    put(conn, queue, 1)
    conn.execute("BEGIN")
    assert take(conn, queue) == [1]
    conn.execute("ROLLBACK")
    assert waiter.wait().answer() == "t"


@pytest.mark.parametrize("statement", ["wait", "listen"])
def test_signal_is_no_wake_up(server, conn, queue, waiters, statement):
    """A timer of the server's sets the latch of a waiting session: it sleeps on, and leaves no list."""
    listen = f"CALL aq.listen(ARRAY['{queue}'], NULL, NULL, NULL, NULL)" if statement == "listen" else None
    (waiter,) = waiters(1, queue, statement=listen)
    asleep(conn, [waiter.wait()])
    waits = """SELECT "seq#" FROM sys."v$session_wait" WHERE pid = %s"""
    gets = """SELECT sum(gets) FROM sys."v$latch" WHERE name IN ('queue waiters', 'channel operations parent latch')"""
    before = db.value(conn, gets)
    assert before > 0
    for _ in range(3):
        sequence = db.value(conn, waits, [waiter.pid])
        os.kill(waiter.pid, signal.SIGALRM)
        until(lambda: db.value(conn, waits, [waiter.pid]) > sequence, "the next wait")
        asleep(conn, [waiter])
    assert db.value(conn, gets) == before
    assert not waiter.done()
    put(conn, queue, 1)
    assert waiter.answer() in ("t", queue)


def test_timeout(server, conn, queue, waiters):
    (waiter,) = waiters(1, queue, timeout="'0.3 s'")
    start = time.monotonic()
    assert waiter.wait().answer() == "f"
    assert 0.25 < time.monotonic() - start < 10


def test_listen(server, conn, queue, topic, waiters):
    statement = f"CALL aq.listen(ARRAY['{queue}', '{topic}'], ARRAY[NULL, 'b'], NULL, NULL, NULL)"
    group = waiters(5, queue, statement=statement)
    for waiter in group:
        waiter.wait()
    asleep(conn, group)
    pids = [waiter.pid for waiter in group]
    assert db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND backend_xmin IS NOT NULL", [pids]) == 0
    put(conn, topic, 1, recipients=["a"])
    put(conn, topic, 2)
    until(lambda: any(waiter.done() for waiter in group), "a listener")
    first = next(waiter for waiter in group if waiter.done())
    assert first.answer() == topic


@pytest.fixture(scope="module")
def both_stores(server):
    """A sharded queue, one in a queue table, and topics of both kinds; the statement that listens to them, in this order."""
    pairs = [("s", None), ("t", None), ("s_topic", "a"), ("t_topic", "a")]
    with server.connect() as conn:
        for name, consumer in pairs:
            table = None
            if name.startswith("t"):
                table = f"public.{name}"
                db.execute(conn, "SELECT aq.create_queue_table(%s, multiple_consumers => %s)", [table, consumer is not None])
            db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => %s, queue_table => %s)", [name, consumer is not None, table])
            if consumer:
                db.execute(conn, "SELECT aq.subscribe(%s, %s)", [name, consumer])
    names = ", ".join(f"'{name}'" for name, _ in pairs)
    return pairs, f"CALL aq.listen(ARRAY[{names}], ARRAY[NULL, NULL, 'a', 'a'], %s, NULL, NULL)"


@pytest.mark.own_tables
def test_listen_returns_the_first_of_the_list(server, conn, both_stores):
    """Whatever came first; and it consumes nothing."""
    pairs, statement = both_stores
    for name, _ in reversed(pairs):
        put(conn, name, name)
        assert conn.execute(statement % "'0'").fetchone()[0] == name
    for name, consumer in pairs:
        assert conn.execute(statement % "'0'").fetchone()[:2] == (name, consumer)
        assert take(conn, name, consumer) == [name]
    assert conn.execute(statement % "'0'").fetchone() == (None, None)


@pytest.mark.own_tables
@pytest.mark.parametrize("how", ["targeted", "broadcast"])
def test_listen_misses_nothing(server, conn, both_stores, waiters, how, seed):
    """One message at a time, put while the listener goes to sleep: each must wake it, there is nothing else that would."""
    import random

    rng = random.Random(seed)
    pairs, statement = both_stores
    waiter = waiters(1, None, statement=statement % "NULL")[0]
    waiter.connection.execute(f"SET pgaq.listen_wakeup = {how}")
    for number in range(200):
        name, consumer = rng.choice(pairs)
        waiter.wait()
        for _ in range(rng.choice([0, 0, 1, 3])):
            db.execute(conn, "SELECT 1")  # so that it is somewhere else each time
        put(conn, name, number)
        assert waiter.answer() == name
        assert take(conn, name, consumer) == [number]


@pytest.mark.test_build
def test_woken_while_it_takes(points_server):
    """A waiter that is woken while it takes an earlier message passes the wake-up on: the other one gets the new message."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('t')")
        first, second = (
            Waiter(points_server, "t", statement="SELECT payload FROM aq.dequeue('t', wait => '10 minutes')") for _ in range(2)
        )
        asleep(conn, [first.wait()])
        with held(points_server, "messages-taken") as control:
            put(conn, "t", 1)
            until(lambda: db.value(control, "SELECT aq.point_reached('messages-taken')"), "a message taken")
            asleep(conn, [second.wait()])
            put(conn, "t", 2)
        for waiter, message in ((first, "1"), (second, "2")):
            until(waiter.done, f"message {message}")
            assert waiter.answer() == message
            waiter.close()


@pytest.mark.own_tables
@pytest.mark.parametrize("how", ["targeted", "broadcast"])
def test_woken_while_it_looks(server, conn, both_stores, waiters, how):
    """A message for a queue that was looked at already, while the look waits for a lock at the next one: that wait takes the signal."""
    _, statement = both_stores
    waiter = waiters(1, None, statement=statement % "NULL")[0]
    # the alarm of this timeout would wake it, too
    waiter.connection.execute(f"SET pgaq.listen_wakeup = {how}; SET deadlock_timeout = '10 min'")
    waiter.wait()
    asleep(conn, [waiter])
    table = db.value(conn, TABLE, ["t"])
    at_lock = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
    with server.connect() as holder:
        holder.execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        db.execute(conn, "SELECT aq.alter_queue('s', comment => 'new')")  # wakes it in vain
        until(lambda: db.value(conn, at_lock, [waiter.pid]), "a look that waits for the lock")
        before = waiter.switches()
        put(conn, "s", 1)
        until(lambda: waiter.switches() > before and stable(waiter), "the signal taken")
        holder.execute("ROLLBACK")
    until(waiter.done, "an answer", PATIENCE / 2)  # a sleep ends by itself some time
    assert waiter.answer() == "s"
    assert take(conn, "s") == [1]


@pytest.mark.parametrize("how", ["targeted", "broadcast"])
def test_whom_a_message_wakes_that_listens(server, conn, queue, topic, waiters, how):
    """targeted: as many as there are messages for them; broadcast: everybody, by every message of any queue."""
    group = waiters(10, queue, statement=f"CALL aq.listen(ARRAY['{queue}'], ARRAY[NULL], NULL, NULL, NULL)")
    for waiter in group:
        waiter.connection.execute(f"SET pgaq.listen_wakeup = {how}")
        waiter.wait()
    asleep(conn, group)
    until(lambda: all(stable(waiter) for waiter in group), "everybody asleep")
    before = [waiter.switches() for waiter in group]
    put(conn, topic, "for somebody else", recipients=["a"])
    if how == "broadcast":
        until(lambda: all(waiter.switches() > old for waiter, old in zip(group, before)), "everybody woken")
        asleep(conn, group)
    else:
        pause(conn)
        assert [waiter.switches() for waiter in group] == before
    assert not any(waiter.done() for waiter in group)
    pids = [waiter.pid for waiter in group]
    assert db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND backend_xmin IS NOT NULL", [pids]) == 0
    put(conn, queue, 1)
    until(lambda: sum(waiter.done() for waiter in group) >= (10 if how == "broadcast" else 1), "listeners")
    if how == "targeted":
        pause(conn)
        assert sum(waiter.done() for waiter in group) == 1
    else:
        gets = "SELECT gets FROM sys.v$latch WHERE name = 'channel operations parent latch'"
        assert db.value(conn, gets) >= 20
    assert next(waiter for waiter in group if waiter.done()).answer() == queue


@pytest.mark.sharded("the view shows sharded queues")
@pytest.mark.parametrize("how", ["targeted", "broadcast"])
def test_who_listens_is_shown(server, conn, queue, topic, waiters, how):
    """While a session listens, to this consumer; not one that dequeues, not one that has gone."""
    query = 'SELECT s.consumer, l.active_listener FROM sys."v$aq_subscriber_load" l JOIN aq.queues q USING (queue_id) CROSS JOIN LATERAL sys._queue_consumers(q.queue_name) s WHERE q.queue_name = %s AND s."position" = l.subscriber_id'
    alone = 'SELECT l.active_listener FROM sys."v$aq_subscriber_load" l JOIN aq.queues q USING (queue_id) WHERE q.queue_name = %s'

    def shown():
        return dict(conn.execute(query, [topic]).fetchall()) | {None: db.value(conn, alone, [queue])}

    (listener,) = waiters(1, queue, statement=f"CALL aq.listen(ARRAY['{queue}', '{topic}'], ARRAY[NULL, 'b'], NULL, NULL, NULL)")
    (dequeuer,) = waiters(1, topic, statement=f"SELECT payload FROM aq.dequeue('{topic}', 'a', wait => '10 min')")
    assert shown() == {"a": "FALSE", "b": "FALSE", None: "FALSE"}
    listener.connection.execute(f"SET pgaq.listen_wakeup = {how}")
    listener.wait()
    dequeuer.wait()
    asleep(conn, [listener, dequeuer])
    assert shown() == {"a": "FALSE", "b": "TRUE", None: "TRUE"}
    server.expect_log("terminat")
    conn.execute("SELECT pg_terminate_backend(%s)", [listener.pid])
    until(lambda: shown() == {"a": "FALSE", "b": "FALSE", None: "FALSE"}, "nobody listening")
    put(conn, topic, 1, recipients=["a"])
    assert dequeuer.answer() == "1"


@pytest.mark.parametrize("how", ["cancel", "terminate", "statement_timeout", "lock_timeout is no reason"])
def test_interrupted(server, conn, queue, waiters, how):
    waiter, other = waiters(2, queue)
    if how == "statement_timeout":
        waiter.connection.execute("SET statement_timeout = '300 ms'")
    if how.startswith("lock"):
        waiter.connection.execute("SET lock_timeout = '10 ms'")
        waiter.timeout = "'0.3 s'"
    waiter.wait()
    if how == "statement_timeout":
        assert waiter.answer() == "57014"
    elif how == "cancel":
        asleep(conn, [waiter])
        db.execute(conn, "SELECT pg_cancel_backend(%s)", [waiter.pid])
        assert waiter.answer() == "57014"
    elif how == "terminate":
        asleep(conn, [waiter])
        db.execute(conn, "SELECT pg_terminate_backend(%s)", [waiter.pid])
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", [waiter.pid]), "gone")
    else:
        assert waiter.answer() == "f"
    # the one who left is not counted among those who are woken
    other.wait()
    asleep(conn, [other])
    put(conn, queue, 1)
    assert other.answer() == "t"
    if how != "terminate":
        waiter.timeout = "'60 s'"
        waiter.connection.execute("RESET ALL")
        assert waiter.wait().answer() == "t"


@pytest.mark.parametrize(
    "statement",
    ["CALL aq.wait('{}')", "SELECT payload FROM aq.dequeue('{}', wait => '-1 s')", "CALL aq.listen(ARRAY['{}'], NULL, NULL, NULL, NULL)"],
)
def test_waiter_whose_client_is_gone(server, conn, queue, waiters, statement):
    """Its session ends by itself, and takes no wake-up from those that still wait."""
    (gone,) = waiters(1, queue, statement=statement.format(queue))
    gone.wait()
    asleep(conn, [gone])
    gone.pg.finish()
    until(lambda: not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [gone.pid]), "the session's end")
    (waiter,) = waiters(1, queue)
    waiter.wait()
    asleep(conn, [waiter])
    put(conn, queue, 1)
    assert waiter.answer() == "t"
    assert take(conn, queue) == [1]


@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_wake_up_is_handed_on(server, conn, queue, waiters, how):
    """A session that ends after it was woken, and before it has looked, does not swallow the message."""
    server.expect_log("terminat|cancel")
    first, second = waiters(2, queue)
    for waiter in (first, second):
        asleep(conn, [waiter.wait()])
    os.kill(first.pid, signal.SIGSTOP)
    try:
        put(conn, queue, 1)
        db.execute(conn, f"SELECT pg_{how}_backend(%s)", [first.pid])
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert second.answer() == "t"
    assert take(conn, queue) == [1]


def test_shutdown_while_waiting(new_server):
    own = new_server("shutdown")
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        group = [Waiter(own, "q").wait() for _ in range(5)]
        asleep(conn, group)
    own.stop("fast")
    own.start()
    for waiter in group:
        waiter.close()


def test_dequeue_with_wait(server, conn, queue, waiters):
    """The convenience: wakes like aq.wait, sees what came during the wait, holds xmin."""
    (waiter,) = waiters(1, queue, statement=f"SELECT payload FROM aq.dequeue('{queue}', wait => '60 s')")
    waiter.wait()
    asleep(conn, [waiter])
    assert db.value(conn, "SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = %s", [waiter.pid])
    put(conn, queue, "came meanwhile")
    assert waiter.answer() == '"came meanwhile"'
    assert take(conn, queue) == []


def test_producer_consumer_ping_pong_never_stalls(server, conn, queue, waiters):
    """A thousand wake-ups, each of which could be missed."""
    (waiter,) = waiters(1, queue, timeout="'30 s'")
    with server.connect() as producer:
        for number in range(1000):
            waiter.wait()
            put(producer, queue, number)
            assert waiter.answer() == "t", f"round {number}"
            assert take(conn, queue) == [number]


@pytest.mark.parametrize("consumers", [1, 8])
def test_no_message_is_left_lying(server, conn, queue, waiters, consumers):
    """Consumers that only dequeue when told so find everything: no wake-up is missed under concurrency."""
    import threading

    found = []
    errors = []

    def consume():
        try:
            with server.connect() as mine:
                while ready(mine, queue, timeout="20 s"):
                    got = take(mine, queue, number=3)
                    found.extend(got)
                    if "end" in got:
                        put(mine, queue, *got[got.index("end") + 1 :], priority=9)  # for the others
                        return
                errors.append("a consumer waited in vain")
        except Exception as error:  # noqa: BLE001
            errors.append(repr(error))

    threads = [threading.Thread(target=consume) for _ in range(consumers)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        put(conn, queue, number)
    until(lambda: errors or len([m for m in found if m != "end"]) == 2000, "all consumed")
    for _ in threads:
        put(conn, queue, "end", priority=9)
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    assert sorted(m for m in found if m != "end") == list(range(2000))
