"""What a session that waits by a condition has looked at: it looks at new messages only, and at all after one was put back."""

from __future__ import annotations

import random
import threading

import pytest

from conftest import put, put_many, take, until
from test_wait import asleep, waiters  # noqa: F401

pytestmark = pytest.mark.sharded("a queue table is read again for each message")

MINE = "SELECT payload FROM aq.dequeue('{queue}', condition => $$correlation = 'mine'$$, wait => '60 s')"


@pytest.fixture
def line(conn, queue):
    """One shard, so that all messages are in one stream."""
    conn.execute(
        "SELECT aq.create_queue(%s, shards => 1, max_retries => NULL, retry_delay => '10 ms', exception_queue => 'none')", [queue + "_line"]
    )
    return queue + "_line"


def test_a_waiter_looks_only_at_new_messages(conn, line, waiters):  # noqa: F811
    """Twenty messages that it does not want, behind two thousand others: it reads the rows of those once."""
    put_many(conn, line, 1, 2000)
    (waiter,) = waiters(1, line, statement=MINE.format(queue=line))
    reads = ("SELECT pg_stat_force_next_flush(), sum(heap_blks_hit + heap_blks_read)::int FROM pg_statio_all_tables"
             " WHERE relname ~ ('^q' || (SELECT queue_id FROM aq.queues WHERE queue_name = %s) || '_')")  # fmt: skip
    conn.execute(reads, [line])
    before = conn.execute(reads, [line]).fetchone()[1]
    waiter.wait()
    for number in range(20):
        asleep(conn, [waiter])
        put(conn, line, number)
    asleep(conn, [waiter])
    put(conn, line, "mine", correlation="mine")
    assert waiter.answer() == '"mine"'
    waiter.connection.execute("SELECT pg_stat_force_next_flush()")
    assert conn.execute(reads, [line]).fetchone()[1] - before < 2 * 2000


def test_what_is_put_back_is_looked_at_again(server, conn, line, waiters):  # noqa: F811
    """Another transaction has the message, and rolls back, while the waiter has seen those behind it; the same with one that is not committed yet."""
    for way in ("taken", "pending"):
        with server.connect(autocommit=False) as other:
            if way == "taken":
                put(conn, line, "mine", correlation="mine")
                assert other.execute(MINE.format(queue=line)).fetchall() == [("mine",)]
            else:
                put(other, line, "mine", correlation="mine")
            put_many(conn, line, 1, 1500)
            (waiter,) = waiters(1, line, statement=MINE.format(queue=line))
            waiter.wait()
            for number in range(3):
                asleep(conn, [waiter])
                put(conn, line, number)
            asleep(conn, [waiter])
            other.rollback() if way == "taken" else other.commit()
        assert waiter.answer() == '"mine"'
        take(conn, line)


def test_waits_by_condition_miss_nothing(server, conn, line, seed):
    """Random producers and consumers, several of which want the same messages; what one rolls back or releases, another one gets while it waits."""
    kinds = range(3)
    ledger = {kind: [] for kind in kinds}
    got = {kind: [] for kind in kinds}
    failed, errors, lock = set(), [], threading.Lock()

    def settle(mine, kind, payload, msgid, receipt, rng):
        """Returns whether it was the last one."""
        with lock:
            give_back = rng.random() < 0.5 and payload not in failed and payload != "end"
            failed.add(payload)
            if not give_back and payload != "end":
                got[kind].append(payload)
        if receipt is not None:
            mine.execute(f"SELECT aq.{'release' if give_back else 'acknowledge'}(%s, %s, %s)", [line, [msgid], receipt])
        mine.execute("ROLLBACK" if give_back and receipt is None else "COMMIT")
        return payload == "end"

    def consume(kind, rng):
        with server.connect() as mine:
            last = False
            while not last:
                lease = rng.choice(["NULL", "NULL", "'1 min'"])
                mine.execute("BEGIN")
                row = mine.execute(
                    f"SELECT payload, msgid, receipt FROM aq.dequeue(%s, condition => $$correlation = '{kind}'$$, wait => '60 s', lease => {lease})",
                    [line],
                ).fetchone()
                assert row is not None, f"{kind} waited in vain"
                if row[2] is not None:
                    mine.execute("COMMIT")
                    mine.execute("BEGIN")
                last = settle(mine, kind, *row, rng)

    def produce(number, rng):
        with server.connect() as mine:
            for step in range(40):
                mine.execute("BEGIN")
                for i in range(rng.choice([1, 1, 2, 5])):
                    kind, payload = rng.choice([*kinds, 9]), number * 10_000 + step * 10 + i
                    with lock:
                        ledger.get(kind, []).append(payload)
                    put(mine, line, payload, correlation=str(kind), **({"delay": "10 ms"} if rng.random() < 0.1 else {}))
                mine.execute("SELECT pg_sleep(%s)", [rng.choice([0, 0, 0.005])])
                mine.execute("COMMIT")

    def start(work, *arguments):
        def run():
            try:
                work(*arguments)
            except Exception as error:  # noqa: BLE001
                errors.append(repr(error))

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    consumers = [start(consume, kind, random.Random(f"{seed} {kind} {n}")) for kind in kinds for n in range(3)]
    producers = [start(produce, number, random.Random(f"{seed} {number}")) for number in (1, 2, 3)]
    for thread in producers:
        thread.join()
    until(lambda: errors or all(len(got[kind]) >= len(ledger[kind]) for kind in kinds), f"all taken, seed {seed}")
    for kind in kinds:
        for _ in range(3):
            put(conn, line, "end", correlation=str(kind))
    for thread in consumers:
        thread.join()
    assert errors == [] and {kind: sorted(got[kind]) for kind in kinds} == {kind: sorted(ledger[kind]) for kind in kinds}, f"seed {seed}"
