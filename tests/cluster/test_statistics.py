"""Statistics and time model: what sessions did is what the views say, to the last one."""

from __future__ import annotations

import threading
import time

import pytest

from conftest import put, ready, take, until
from pgaq import db

import psycopg

SETTINGS = {"max_connections": "120", "pgaq.fetch_patience": "-1"}


def system(conn):
    return dict(conn.execute("SELECT name, value FROM sys.\"v$sysstat\" WHERE source = 'pgaq'").fetchall())


def own(conn):
    return dict(conn.execute('SELECT name, s.value FROM sys."v$mystat" s JOIN sys."v$statname" USING ("statistic#")').fetchall())


def times(conn, pid):
    return dict(conn.execute('SELECT stat_name, value FROM sys."v$sess_time_model" WHERE pid = %s', [pid]).fetchall())


def grown(before, after):
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def settled(conn, before, name, number):
    """Sessions that have ended hand over what they did a moment later."""
    until(lambda: system(conn)[name] - before[name] == number, f"{number} {name}")
    return grown(before, system(conn))


def test_nothing_is_lost_when_sessions_come_and_go(server, conn, queue):
    """Twelve sessions at once, half of which end, while another one reads all the time."""
    rounds, stay = 40, []
    before = system(conn)
    payload = '"0123456789"'
    size = db.value(conn, "SELECT pg_column_size(%s::jsonb) - 4", [payload])

    def work(keep):
        own_conn = psycopg.connect(server.conninfo(), autocommit=True)
        for _ in range(rounds):
            own_conn.execute("SELECT aq.enqueue(%s, %s)", [queue, payload])
            with own_conn.transaction(force_rollback=True):
                own_conn.execute("SELECT aq.enqueue_array(%s, ARRAY[%s, %s])", [queue, payload, payload])
            assert len(own_conn.execute("SELECT * FROM aq.dequeue(%s)", [queue]).fetchall()) == 1
        if keep:
            stay.append(own_conn)
        else:
            own_conn.close()

    threads = [threading.Thread(target=work, args=[n % 2 == 0]) for n in range(12)]
    for thread in threads:
        thread.start()
    last = 0
    while any(thread.is_alive() for thread in threads):
        now = system(conn)["queue enqueue calls"]
        assert now >= last, "a total went back"
        last = now
    for thread in threads:
        thread.join()
    done = 12 * rounds
    changed = settled(conn, before, "queue commits", 2 * done)
    live = [own(each) for each in stay]
    for each in stay:
        each.close()
    assert len(live) == 6, "a session failed"
    assert {name: changed[name] for name in changed if not name.startswith(("message cache", "queue wake-ups", "queue partitions"))} == {
        "queue enqueue calls": 2 * done,
        "queue messages stored": 3 * done,
        "queue payload bytes in": 3 * done * size,
        "queue messages enqueued": done,
        "queue dequeue calls": done,
        "queue messages returned": done,
        "queue payload bytes out": done * size,
        "queue messages dequeued": done,
        "queue commits": 2 * done,
        "queue rollbacks": done,
    }
    assert all(each["queue messages dequeued"] == rounds for each in live), "a session counts what it did itself"
    assert changed["message cache hits"] >= done


def test_prepared_transactions_count_when_they_are_resolved(server, conn, queue):
    put(conn, queue, 1, 2)
    before = system(conn)
    conn.execute("BEGIN")
    take(conn, queue, number=1)
    put(conn, queue, 3)
    conn.execute("PREPARE TRANSACTION 'counted'")
    changed = grown(before, system(conn))
    assert (changed["queue prepares"], changed.get("queue messages dequeued")) == (1, None)
    conn.execute("COMMIT PREPARED 'counted'")
    changed = settled(conn, before, "queue messages dequeued", 1)
    assert (changed["queue messages enqueued"], changed.get("queue rollbacks")) == (1, None)


def test_retries_expirations_and_moves(server, conn):
    for name, options in (("dead", ""), ("counted", ", max_retries => 0, exception_queue => 'dead'")):
        db.execute(conn, f"SELECT aq.create_queue('{name}'{options})")
    before = system(conn)
    put(conn, "counted", 1)
    with conn.transaction(force_rollback=True):
        assert take(conn, "counted") == [1]
    put(conn, "counted", 2, expiration="1 ms")
    settled(conn, before, "queue messages moved to exception queue", 2)
    changed = grown(before, system(conn))
    assert (changed["queue messages rolled back"], changed["queue messages expired"]) == (1, 1)
    for name in ("counted", "dead"):
        db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


LEASES = ("taken", "acknowledged", "extended", "released", "failed", "ended", "stale")


@pytest.mark.parametrize("prepared", [False, True], ids=["committed", "prepared"])
def test_leases(server, conn, queue, prepared):
    """Each step counts when it is committed, and not when it is rolled back."""

    def run(query, end="COMMIT"):
        conn.execute("BEGIN")
        rows = conn.execute(query).fetchall()
        conn.execute("PREPARE TRANSACTION 'leases'" if prepared else end)
        if prepared:
            conn.execute(f"{end} PREPARED 'leases'")
        return rows

    def lease(number, span, end="COMMIT"):
        rows = run(f"SELECT msgid::text, receipt FROM aq.dequeue('{queue}', max_messages => {number}, lease => '{span}')", end)
        return rows and f"'{queue}', '{{{','.join(row[0] for row in rows)}}}', {rows[0][1]}"

    put(conn, queue, *range(20))
    before = system(conn)
    first = db.value(conn, "SELECT aq.take_snapshot()")
    mine = lease(1, "1 hour")
    for end in ("ROLLBACK", "COMMIT"):
        run(f"SELECT * FROM aq.extend({mine}, '2 hours')", end)
        run(f"SELECT * FROM aq.acknowledge({mine})", end)
    db.execute(conn, f"SELECT * FROM aq.extend({mine}, '2 hours')")
    mine = lease(2, "1 hour")
    run(f"SELECT * FROM aq.release({mine}, delay => '1 hour')")
    mine = lease(3, "1 hour")
    run(f"SELECT * FROM aq.release({mine}, delay => '1 hour', count => false)")
    mine = lease(4, "1 hour")
    run(f"SELECT * FROM aq.reject({mine})")
    lease(5, "0.1 s")
    settled(conn, before, "queue leases ended", 5)
    changed = settled(conn, before, "queue leases taken", 15)
    counted = {name: changed.get(f"queue leases {name}", 0) for name in LEASES}
    assert counted == {"taken": 15, "acknowledged": 1, "extended": 1, "released": 5, "failed": 4, "ended": 5, "stale": 1}
    assert changed["queue messages dequeued"] == 15
    last = db.value(conn, "SELECT aq.take_snapshot()")
    report = db.value(conn, "SELECT string_agg(r::text, ' ') FROM aq.report_text(aq.report_awr(%s, %s)) r", [first, last])
    assert all(f"queue leases {name}" in report for name in LEASES)


class Listener(threading.Thread):
    """Waits in a separate session for a message of one of several consumers, then takes it."""

    def __init__(self, server, queue, consumer, wakeup, timeout="60 s"):
        super().__init__()
        self.connection = psycopg.connect(server.conninfo(), autocommit=True)
        self.connection.execute(f"SET pgaq.listen_wakeup = {wakeup}")
        self.pid = self.connection.info.backend_pid
        self.call = f"CALL aq.listen(ARRAY['{queue}'], ARRAY['{consumer}'], '{timeout}', NULL, NULL)"
        self.error = None
        self.start()

    def run(self):
        try:
            self.connection.execute(self.call)
        except psycopg.Error as error:
            self.error = error.sqlstate

    def asleep(self, conn):
        query = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING' AND wait_class = 'Idle'"""
        until(lambda: db.value(conn, query, [self.pid]) == 1, "a session that listens")
        return self


@pytest.mark.parametrize("wakeup, false", [("broadcast", 1), ("targeted", None)])
def test_wake_ups_are_accounted_for(server, conn, topic, wakeup, false):
    """Sent = useful + false + passed on; only broadcast wakes who cannot be served."""
    listeners = [Listener(server, topic, consumer, wakeup).asleep(conn) for consumer in ("a", "b")]
    before = system(conn)
    put(conn, topic, 1, recipients=["a"])
    listeners[0].join()
    if false:
        until(lambda: grown(before, system(conn)).get("queue wake-ups false") == false, "the false wake-up")
        listeners[1].asleep(conn)
    changed = grown(before, system(conn))
    assert (changed["queue wake-ups useful"], changed.get("queue wake-ups false")) == (1, false)
    assert changed["queue wake-ups sent"] == 1 + (false or 0)
    listeners[1].connection.cancel()
    listeners[1].join()
    assert listeners[1].error == "57014"
    changed = grown(before, system(conn))
    assert changed["queue wake-ups sent"] == sum(changed.get(f"queue wake-ups {how}", 0) for how in ("useful", "false", "passed on"))
    for listener in listeners:
        listener.connection.close()


# -- time model


def test_idle_waits_are_not_db_time(server, conn, queue):
    idle = "SELECT sum(time_waited_micro)::bigint FROM sys.\"v$session_event\" WHERE pid = %s AND wait_class = 'Idle'"
    began = time.monotonic_ns() // 1000
    with server.connect() as waiter:
        pid = waiter.info.backend_pid
        assert not ready(waiter, queue, timeout="1 s")
        listened = db.value(conn, idle, [pid])
        assert not waiter.execute("SELECT * FROM aq.dequeue(%s, wait => '1 s')", [queue]).fetchall()
        found, waited = times(conn, pid), db.value(conn, idle, [pid])
        elapsed = time.monotonic_ns() // 1000 - began
        assert 0 < listened < waited
        assert 0 < found["DB time"] <= elapsed - waited
        assert 0 < found["queue listen elapsed time"] <= elapsed - waited
        assert 0 < found["queue dequeue elapsed time"] <= elapsed - waited
        waiter.execute("SELECT pg_sleep(0.3)")
        assert times(conn, pid)["DB time"] >= found["DB time"] + 300_000, "time of any statement counts"


def test_time_of_operations_belongs_to_their_queues(server, conn, queue):
    """What a session's enqueues and dequeues took is divided among its queues, nothing lost; CPU time as well, of which not every call is measured."""
    other = f"{queue}_other"
    db.execute(conn, "SELECT aq.create_queue(%s)", [other])
    with server.connect() as worker:
        for n in range(100):
            put(worker, queue, n)
            put(worker, other, n)
            assert len(take(worker, queue, number=1)) == 1
        assert len(take(worker, other)) == 100
        found = times(conn, worker.info.backend_pid)
    query = "SELECT enqueue_elapsed, dequeue_elapsed, enqueue_cpu, dequeue_cpu FROM aq_internal.queue_traffic(%s)"
    booked = [conn.execute(query, [name]).fetchone() for name in (queue, other)]
    assert all(min(row[:2]) > 0 for row in booked)
    kinds = ["queue enqueue elapsed time", "queue dequeue elapsed time", "queue enqueue cpu time", "queue dequeue cpu time"]
    for kind, *parts in zip(kinds, *booked):
        assert abs(found[kind] - sum(parts) / 1000) < 1, kind
    db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [other])


def test_statements_in_a_transaction_are_booked_once(server, conn, queue):
    with server.connect() as worker:
        pid = worker.info.backend_pid
        put(worker, queue, 0)
        before = times(conn, pid)["DB time"]
        began = time.monotonic_ns() // 1000
        worker.execute("BEGIN")
        put(worker, queue, 1)
        worker.execute("SELECT pg_sleep(0.2)")
        assert times(conn, pid)["DB time"] - before >= 200_000, "before the transaction ends"
        take(worker, queue)
        worker.execute("COMMIT")
        found = times(conn, pid)
        assert found["DB time"] - before <= time.monotonic_ns() // 1000 - began
        assert (
            found["DB time"]
            >= found["queue enqueue elapsed time"] + found["queue dequeue elapsed time"] + found["queue commit elapsed time"]
        )
        assert found["queue commit elapsed time"] > 0 and found["DB CPU"] > 0


def test_errors_end_an_operation(server, conn, topic):
    """An error inside an operation, caught by plpgsql or not, or a cancel: what follows is not booked under it."""
    with server.connect() as worker:
        pid = worker.info.backend_pid
        put(worker, topic, 0)
        worker.execute("""CREATE FUNCTION caught(queue text, options text) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN EXECUTE format('SELECT aq.enqueue(%L, ''1''%s)', queue, options);
            EXCEPTION WHEN OTHERS THEN PERFORM pg_sleep(0.3); END $$""")
        worker.execute("SELECT caught(%s, ', recipients => ARRAY[''nobody'', NULL]')", [topic])
        # the rule ends the enqueue in which it runs
        worker.execute("CREATE FUNCTION locked() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE lock_not_available; END $$")
        db.execute(worker, "SELECT aq.subscribe(%s, 'broken', 'public.locked()')", [topic])
        with pytest.raises(psycopg.Error):
            put(worker, topic, 1)
        worker.execute("SELECT pg_sleep(0.3)")
        worker.execute("SELECT caught(%s, '')", [topic])
        with pytest.raises(psycopg.errors.QueryCanceled), worker.transaction():
            worker.execute("SET LOCAL statement_timeout = '100 ms'")
            worker.execute("SELECT * FROM aq.dequeue(%s, consumer => 'b', correlation => 'none', wait => '1 min')", [topic])
        worker.execute("SELECT pg_sleep(0.3)")
        found = times(conn, pid)
        assert found["queue enqueue elapsed time"] + found["queue dequeue elapsed time"] <= found["DB time"] - 1_200_000


def test_background_jobs_have_their_time(server, conn, queue):
    before = dict(conn.execute('SELECT stat_name, value FROM sys."v$sys_time_model"').fetchall())
    put(conn, queue, 1, expiration="1 ms")
    until(
        lambda: (
            take(conn, queue) == []
            and db.value(conn, 'SELECT value FROM sys."v$sys_time_model" WHERE stat_name = %s', ["background elapsed time"])
            > before["background elapsed time"]
        ),
        "a job",
    )


def test_switched_off_it_costs_no_clock(server, conn, queue):
    with server.connect() as worker:
        pid = worker.info.backend_pid
        worker.execute("SET pgaq.timed_statistics = off")
        put(worker, queue, 1)
        before = times(conn, pid)
        put(worker, queue, 2)
        after = times(conn, pid)
        assert {name: after[name] for name in after if name != "DB CPU"} == {name: before[name] for name in before if name != "DB CPU"}
        worker.execute("SET pgaq.timed_statistics = on")
        put(worker, queue, 3)
        assert times(conn, pid)["queue enqueue elapsed time"] > after["queue enqueue elapsed time"]
