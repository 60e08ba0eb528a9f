"""aq.enqueue_unique under load, crashes and restarts, and what becomes of the rows of unique keys."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, held, put_many, take, until
from pgaq import db
from test_dump import dump, restore
from test_metrics import evict
from test_wait import Waiter

pytestmark = pytest.mark.sharded("queue tables have no unique keys")

SETTINGS = {"pgaq.message_cache_size": "8MB", "max_prepared_transactions": "20"}


def send(conn, queue, key, payload="1", more=""):
    """Is it new, and the id of the message that has the key."""
    return conn.execute(f"SELECT is_new, msgid FROM aq.enqueue_unique(%s, %s, %s{more})", [queue, payload, key]).fetchone()


def keys(conn, queue):
    query = "SELECT unique_key FROM aq_internal.unique_key JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s ORDER BY 1"
    return [key for (key,) in conn.execute(query, [queue]).fetchall()]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_prepared_transaction_keeps_the_key(server, conn, queue, end):
    conn.execute("BEGIN")
    assert send(conn, queue, "k")[0]
    conn.execute("PREPARE TRANSACTION 'p'")
    waiting = Waiter(server, queue, statement=f"SELECT is_new FROM aq.enqueue_unique('{queue}', '2', 'k')").wait()
    until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", [waiting.pid]) == 1, "the wait")
    conn.execute(f"{end} PREPARED 'p'")
    assert waiting.answer() == ("f" if end == "COMMIT" else "t")
    waiting.close()
    assert len(take(conn, queue)) == 1


@pytest.mark.parametrize("how", ["evict", "fast", "immediate", "promotion"])
def test_a_key_survives(server, conn, queue, throw_away, how):
    """Also while its message is not in memory; and it is free when the message is done."""
    assert send(conn, queue, "k", "1")[0]
    assert send(conn, queue, "t", "2", ", unique_for => '1 hour'")[0]
    put_many(conn, queue, 3, 20_000)
    there = server
    if how == "evict":
        evict(conn, [queue])
    elif how == "promotion":
        there = throw_away(server.basebackup("standby"))
        there.start()
        there.wait_for_replay(server)
        there.promote()
    else:
        conn.close()
        server.restart(how)
    with there.connect() as other:
        assert [send(other, queue, key)[0] for key in "kt"] == [False, False]
        assert take(other, queue, number=2) == [1, 2]
        if how == "evict":
            evict(other, [queue])
        assert [send(other, queue, key)[0] for key in "kt"] == [True, False]


def test_dump_and_restore(server, conn, queue, tmp_path):
    """Keys are in force in the restored database as in the dumped one."""
    for key, more in (("done", ""), ("time", ", unique_for => '1 day'"), ("waits", "")):
        assert send(conn, queue, key, f'"{key}"', more)[0]
    assert take(conn, queue, number=2) == ["done", "time"]
    dump(server, "custom", tmp_path / "dump")
    conn.execute("CREATE DATABASE unique_restored")
    restore(server, "custom", tmp_path / "dump", "unique_restored")
    with server.connect("unique_restored") as there:
        assert [send(there, queue, key)[0] for key in ("done", "time", "waits")] == [True, False, False]
        assert sorted(map(str, take(there, queue, number=9))) == ["1", "waits"]
        assert send(there, queue, "waits")[0]
    conn.execute("DROP DATABASE unique_restored WITH (FORCE)")


def test_the_worker_deletes_old_rows(server, queue):
    """Those that are an hour old and no longer in force; not one whose key a transaction has locked, nor by waiting for it."""
    with server.connect() as conn:
        for key, more in (
            ("done", ""),
            ("over", ", unique_for => '1 microsecond'"),
            ("long", ", unique_for => '1 day'"),
            ("locked", ""),
            ("young", ""),
        ):
            assert send(conn, queue, key, f'"{key}"', more)[0]
        assert take(conn, queue, number=5) == ["done", "over", "long", "locked", "young"]
        assert send(conn, queue, "waits", '"waits"')[0]
        conn.execute("UPDATE aq_internal.unique_key SET created = now() - interval '2 hours' WHERE unique_key <> 'young'")
    # then the worker looks again after the first enqueue with a unique key
    server.restart()
    with server.connect() as conn, server.connect() as other:
        other.execute("BEGIN")
        assert send(other, queue, "locked")[0]
        assert send(conn, queue, "first")[0]
        until(lambda: keys(conn, queue) == ["first", "locked", "long", "waits", "young"], "the worker")
        other.execute("ROLLBACK")
        assert [send(conn, queue, key)[0] for key in ("done", "over", "long", "locked", "young", "waits")] == [
            True,
            True,
            False,
            True,
            True,
            False,
        ]


@pytest.mark.test_build
def test_a_key_is_used_again_while_the_worker_looks(points_server):
    """The worker, which has read the row that is deleted now, leaves the key alone."""
    server = points_server
    old = "INSERT INTO aq_internal.unique_key SELECT queue_id, 'old', 1, gen_random_uuid(), '-infinity', now() - interval '2 hours' FROM aq_internal.queue WHERE queue_name = 'q'"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        conn.execute(old)
        with held(server, "unique-read") as holder:
            assert send(conn, "q", "new")[0]
            assert db.value(holder, "SELECT aq.point_await('unique-read')")
            # a shard for another session would need the worker
            assert send(conn, "q", "old")[0]
        # waits for the worker, which has locks
        conn.execute("BEGIN; LOCK TABLE aq_internal.unique_key")
        assert keys(conn, "q") == ["new", "old"]
        conn.execute("COMMIT")
        assert "concurrently" not in server.log_text()
        assert [send(conn, "q", key)[0] for key in ("new", "old")] == [False, False]
        db.execute(conn, "SELECT aq.drop_queue('q', force => true)")


@pytest.mark.parametrize("conflict", ["ignore", "replace"])
def test_ledger(server, conn, queue, seed, conflict):
    """Whatever sessions do, a message with a key is not enqueued before the one that had it is done."""
    server.expect_log("terminating connection")
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0', max_retries => -1)", [queue])
    lock = threading.Lock()
    sent, done = [], {}  # (key, payload, time of the answer); payload -> time before its commit
    numbers = itertools.count(1)
    stop = threading.Event()

    def produce(number):
        rnd = random.Random(seed * 100 + number)
        while not stop.is_set():
            with contextlib.suppress(psycopg.OperationalError, psycopg.errors.DeadlockDetected), server.connect() as own:
                while not stop.is_set():
                    own.execute("BEGIN")
                    new = []
                    for key in rnd.sample("abc", rnd.choice((1, 1, 2))):
                        payload = next(numbers)
                        if send(own, queue, key, str(payload), f", on_conflict => '{rnd.choice(('ignore', conflict))}'")[0]:
                            new.append((key, payload, time.monotonic()))
                    how = rnd.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "terminate", "PREPARE"))
                    if how == "terminate":
                        own.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                    if how == "PREPARE":
                        gid = f"{number}_{payload}"
                        own.execute(f"PREPARE TRANSACTION '{gid}'")
                        how = rnd.choice(("COMMIT", "ROLLBACK")) + f" PREPARED '{gid}'"
                    own.execute(how)
                    if how.startswith("COMMIT"):
                        with lock:
                            sent.extend(new)

    def consume(number):
        rnd = random.Random(seed * 200 + number)
        with server.connect() as own:
            while not stop.is_set():
                own.execute("BEGIN")
                got = take(own, queue, number=rnd.choice((1, 2)))
                how = rnd.choice(("COMMIT", "COMMIT", "ROLLBACK"))
                if how == "COMMIT":
                    with lock:
                        done.update(dict.fromkeys(got, time.monotonic()))
                own.execute(how)

    with ThreadPoolExecutor() as pool:
        all_of = [pool.submit(produce, n) for n in range(4)] + [pool.submit(consume, n) for n in range(2)]
        until(lambda: len(done) > 300 or any(one.done() for one in all_of), "messages")
        stop.set()
        for one in all_of:
            one.result(timeout=PATIENCE)
    done.update(dict.fromkeys(take(conn, queue, number=10), time.monotonic()))
    assert len(done) == len({payload for _, payload, _ in sent} & set(done)), "nothing else was consumed"
    for key in "abc":
        of_key = sorted((each for each in sent if each[0] == key), key=lambda each: each[2])
        for (_, before, _), (_, payload, answered) in itertools.pairwise(of_key):
            if before in done:
                assert done[before] <= answered, f"{payload} was new while {before} was not done"
            else:
                assert conflict == "replace", f"{before} is lost"
    assert db.value(conn, "SELECT count(*) FROM aq.check('0')") == 0
