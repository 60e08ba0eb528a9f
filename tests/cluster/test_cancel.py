"""aq.cancel beside dequeues of the same messages: each message is dequeued or cancelled, once, and none is lost."""

from __future__ import annotations

import random
import threading

import pytest

from conftest import arrived
from pgaq import db

SETTINGS = {"max_prepared_transactions": "20"}

MESSAGES = 400


def end(conn, rng, gid):
    """End the transaction in one of four ways; is it committed?"""
    committed = rng.random() < 0.6
    if rng.random() < 0.3:
        conn.execute(f"PREPARE TRANSACTION '{gid}'")
        conn.execute(f"{'COMMIT' if committed else 'ROLLBACK'} PREPARED '{gid}'")
    else:
        conn.execute("COMMIT" if committed else "ROLLBACK")
    return committed


class Racer(threading.Thread):
    """Dequeues or cancels until it is stopped; finished: the ids for which that was committed."""

    def __init__(self, server, name, seed, step, stop):
        super().__init__()
        self.server, self.step, self.stop = server, step, stop
        self.rng = random.Random(f"{seed} {name}")
        self.gid = name
        self.finished = []
        self.error = None
        self.start()

    def run(self):
        try:
            with self.server.connect() as conn:
                while not self.stop.is_set():
                    conn.execute("BEGIN")
                    got = self.step(conn, self.rng)
                    if end(conn, self.rng, self.gid):
                        self.finished += got
        except db.Error as error:
            self.error = error


@pytest.mark.parametrize("consumers", [[None], ["ann", "bob"]])
def test_each_message_is_dequeued_or_cancelled_once(server, conn, consumers, seed):
    name = "cancelled"
    conn.execute("SELECT aq.create_queue(%s, multiple_consumers => %s, max_retries => NULL)", [name, consumers[0] is not None])
    for consumer in filter(None, consumers):
        conn.execute("SELECT aq.subscribe(%s, %s)", [name, consumer])
    ids = [
        str(row[0])
        for row in conn.execute(
            "SELECT unnest(aq.enqueue_array(%s, (SELECT array_agg(n::text ORDER BY n) FROM generate_series(1, %s::int) n)))",
            [name, MESSAGES],
        )
    ]
    stop = threading.Event()

    def dequeue(consumer):
        def step(conn, rng):
            rows = conn.execute("SELECT msgid FROM aq.dequeue(%s, consumer => %s, max_messages => %s)", [name, consumer, rng.randint(1, 4)])
            return [str(row[0]) for row in rows]

        return step

    def cancel(conn, rng):
        got = []
        for msgid in rng.sample(ids, 3):
            result = db.value(conn, "SELECT aq.cancel(%s, %s)", [name, msgid])
            assert result in ("done", "busy", "gone")
            if result == "done":
                got.append(msgid)
        return got

    dequeuers = [(consumer, Racer(server, f"{consumer}{n}", seed, dequeue(consumer), stop)) for consumer in consumers for n in range(2)]
    cancellers = [Racer(server, f"cancel{n}", seed, cancel, stop) for n in range(2)]
    racers = [racer for _, racer in dequeuers] + cancellers
    while len(racers[0].finished) < MESSAGES // 8 and racers[0].is_alive():
        racers[0].join(0.05)
    stop.set()
    for racer in racers:
        racer.join()
        assert racer.error is None
    cancelled = [msgid for racer in cancellers for msgid in racer.finished]
    assert len(cancelled) == len(set(cancelled)) > 0
    for consumer in consumers:
        taken = [msgid for of, racer in dequeuers if of == consumer for msgid in racer.finished]
        query = "SELECT msgid FROM aq.messages WHERE queue_name = %s AND consumer IS NOT DISTINCT FROM %s AND state NOT IN ('PROCESSED', 'PURGED')"
        left = [str(row[0]) for row in conn.execute(query, [name, consumer])]
        assert len(taken) == len(set(taken))
        assert not set(taken + cancelled) & set(left)
        if consumer is None:
            assert sorted(taken + cancelled + left) == sorted(ids)
        assert len(arrived(conn, name, len(left), consumer)) == len(left)
    assert db.value(conn, "SELECT sum(lag) FROM aq.subscribers WHERE queue_name = %s", [name]) == 0
    conn.execute("SELECT aq.drop_queue(%s, force => true)", [name])


@pytest.mark.parametrize("queue_table", [None, "public.cancel_table"])
def test_a_message_that_one_consumer_holds_stays_for_all(server, conn, queue_table):
    name = "held"
    if queue_table:
        conn.execute("SELECT aq.create_queue_table(%s, multiple_consumers => true)", [queue_table])
        conn.execute("SELECT aq.create_queue(%s, queue_table => %s)", [name, queue_table])
    else:
        conn.execute("SELECT aq.create_queue(%s, multiple_consumers => true)", [name])
    for consumer in ("ann", "bob", "carl"):
        conn.execute("SELECT aq.subscribe(%s, %s)", [name, consumer])
    msgid = db.value(conn, "SELECT aq.enqueue(%s, '1')", [name])
    with server.connect() as other:
        other.execute("BEGIN")
        other.execute("SELECT msgid FROM aq.dequeue(%s, 'bob')", [name])
        assert db.value(conn, "SELECT aq.cancel(%s, %s)", [name, msgid]) == "busy"
        assert len(arrived(conn, name, 1, "ann")) == 1
        other.execute("COMMIT")
    assert db.value(conn, "SELECT aq.cancel(%s, %s)", [name, msgid]) == "done"
    assert db.value(conn, "SELECT aq.cancel(%s, %s)", [name, msgid]) == "gone"
    conn.execute("SELECT aq.drop_queue(%s, force => true)", [name])
    if queue_table:
        conn.execute("SELECT aq.drop_queue_table(%s)", [queue_table])


@pytest.mark.test_build
def test_an_error_inside_leaves_the_caller_s_transaction_as_it_was(points_server):
    """A handler of the error undoes what it guards, and the transaction ends with its statement."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue_table('public.failing', multiple_consumers => true)")
        conn.execute("SELECT aq.create_queue('failing', queue_table => 'public.failing')")
        conn.execute("SELECT aq.subscribe('failing', c) FROM unnest(ARRAY['ann', 'bob']) c")
        msgid = db.value(conn, "SELECT aq.enqueue('failing', '1')")
        conn.execute("CREATE TABLE said (what text)")
        conn.execute(f"""DO $$ BEGIN
            INSERT INTO said VALUES ('before');
            BEGIN
                INSERT INTO said VALUES ('undone');
                SET LOCAL pgaq.test_point = 'messages-taken:error';
                PERFORM aq.cancel('failing', '{msgid}');
            EXCEPTION WHEN OTHERS THEN
                INSERT INTO said VALUES (SQLERRM);
            END;
        END $$""")
        conn.execute("ROLLBACK")
        assert [row[0] for row in conn.execute("SELECT what FROM said")] == ["before", 'test point "messages-taken"']
        assert db.value(conn, "SELECT aq.cancel('failing', %s)", [msgid]) == "done"
