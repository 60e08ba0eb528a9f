"""A queue with max_depth: enqueuers into the full queue wait, are woken by what makes room, and can be ended; who must not wait does not."""

from __future__ import annotations

import os
import signal
from concurrent import futures

import pytest

from conftest import PATIENCE, generation, put, take, until
from test_deadlock import FLOWS, Sessions, checked_again, deadlock, end
from pgaq import db

# no wait ends by its own limit, and none looks again without being woken
SETTINGS = {"pgaq.flow_control_timeout": "10 min", "deadlock_timeout": "10min", "max_prepared_transactions": "5", "shared_buffers": "16MB"}

EVENT = "aq: queue full"
FULL = "AQ053"
MORE = "SELECT aq.enqueue(%s, '\"more\"')"
HELPED = "SELECT aq.enqueue_array(%s, ARRAY['\"more\"'::jsonb], visibility => 'immediate')"


@pytest.fixture(scope="module", autouse=True)
def table(server):
    with server.connect() as conn:
        conn.execute("CREATE TABLE work (id integer PRIMARY KEY, n integer); INSERT INTO work VALUES (1, 0), (2, 0)")


class Enqueuers(Sessions):
    """Sessions that enqueue; waits() returns when the session waits for room.  Those of new() look for deadlocks."""

    def new(self) -> db.Connection:
        session = super().new()
        session.execute("SET deadlock_timeout = '100ms'")
        return session

    def waits(self, queue, statement=MORE, session=None) -> tuple[db.Connection, futures.Future]:
        session = session or self.stack.enter_context(self.server.connect())
        call = self.start(session, statement, queue)
        self.wait_for(session, EVENT)
        return session, call


@pytest.fixture
def sessions(server, conn):
    sessions = Enqueuers(server, conn)
    yield sessions
    conn.execute(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    sessions.stack.close()


def limit(conn, queue, number=3, **options):
    """The queue takes so many messages."""
    conn.execute("SELECT aq.alter_queue(%s, max_depth => %s, on_full => %s)", [queue, number, options.get("on_full", "wait")])


def fill(conn, queue, number=3):
    limit(conn, queue, number)
    put(conn, queue, *range(number))


def sqlstate(call) -> str:
    with pytest.raises(db.Error) as caught:
        call.result(PATIENCE)
    return caught.value.sqlstate or "gone"


def counted(conn, queue):
    query = "SELECT enqueues_waited, enqueues_refused FROM aq.metrics(%s) WHERE delivery_mode = 'persistent'"
    return tuple(db.row(conn, query, [queue]).values())


ROOM = {
    "a dequeue": "SELECT FROM aq.dequeue('{queue}')",
    "an immediate dequeue": "SELECT FROM aq.dequeue('{queue}', visibility => 'immediate')",
    "a purge": "SELECT aq.purge_queue('{queue}')",
    "a cancel": "SELECT aq.cancel('{queue}', (SELECT msgid FROM aq.dequeue('{queue}', mode => 'browse')))",
    "a higher limit": "SELECT aq.alter_queue('{queue}', max_depth => 4)",
    "no limit": "SELECT aq.alter_queue('{queue}', max_depth => -1)",
    "an acknowledged lease": "SELECT result FROM aq.dequeue('{queue}', lease => '1 h') m, aq.acknowledge('{queue}', m.msgid, m.receipt)",
    "a rejected lease": "SELECT result FROM aq.dequeue('{queue}', lease => '1 h') m, aq.reject('{queue}', m.msgid, m.receipt)",
}


@pytest.mark.parametrize("how", ROOM)
@pytest.mark.parametrize("by", [MORE, HELPED, "SELECT aq.enqueue(%s, '\"more\"', visibility => 'immediate')"])
def test_room_lets_it_go_on(conn, queue, sessions, how, by):
    fill(conn, queue)
    _, call = sessions.waits(queue, by)
    found = db.row(conn, "SELECT p1, p2, p3, wait_class FROM aq.sessions WHERE event = %s AND waiting", [EVENT])
    number = db.value(conn, "SELECT queue_id FROM aq.queues WHERE queue_name = %s", [queue])
    assert found == {"p1": number, "p2": 3, "p3": 3, "wait_class": "Queueing"}
    assert counted(conn, queue) == (1, 0)
    if "lease" in how:
        message, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 h')", [queue]).fetchone()
        verb = "acknowledge" if "acknowledged" in how else "reject"
        assert db.value(conn, f"SELECT result FROM aq.{verb}(%s, %s, %s)", [queue, message, receipt]) == "done"
    else:
        conn.execute(ROOM[how].format(queue=queue))
    call.result(PATIENCE)
    assert "more" in take(conn, queue)
    assert counted(conn, queue) == (1, 0)


def test_an_expired_message_makes_room(conn, queue, sessions):
    """Whether the enqueuer comes before the message has expired or after it."""
    limit(conn, queue, 1)
    put(conn, queue, "late", expiration="1 s")
    with sessions.server.connect() as other:
        sessions.start(other, MORE, queue).result(PATIENCE)


def test_a_rollback_makes_no_room(conn, queue, sessions):
    fill(conn, queue)
    _, call = sessions.waits(queue)
    conn.execute("BEGIN")
    assert take(conn, queue, number=1) == [0]
    conn.execute("ROLLBACK")
    assert not call.done()
    until(lambda: take(conn, queue, number=1), "the message is there again")
    call.result(PATIENCE)


def test_all_come_in(conn, queue, sessions):
    """Many wait; each comes in when there is room, and none waits although there is."""
    fill(conn, queue)
    calls = [sessions.waits(queue)[1] for _ in range(6)]
    got: list = []
    until(lambda: got.extend(take(conn, queue, number=1)) or len(got) == 9, "all come in")
    for call in calls:
        call.result(PATIENCE)
    assert got.count("more") == 6
    assert counted(conn, queue) == (6, 0)


def test_attempts_leave_no_memory_behind(conn, queue, sessions):
    """An attempt to enqueue reads the payload, here of 1 MB: woken 500 times, the session does not keep all of them."""
    fill(conn, queue)
    session, call = sessions.waits(queue, "SELECT aq.enqueue(%s, '\"' || repeat('x', 1000000) || '\"')")

    def peak() -> int:
        with open(f"/proc/{session.info.backend_pid}/status") as status:
            return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

    before = peak()
    for _ in range(500):
        limit(conn, queue)
    assert not call.done() and peak() < before + 30
    limit(conn, queue, 4)
    call.result(PATIENCE)


def test_time_is_up(conn, queue):
    """Nothing is enqueued; the transaction can go on from a savepoint."""
    fill(conn, queue)
    conn.execute("SET pgaq.flow_control_timeout = '20 ms'; BEGIN; SAVEPOINT s")
    with pytest.raises(db.Error) as caught:
        put(conn, queue, "more")
    assert caught.value.sqlstate == FULL
    conn.execute("ROLLBACK TO s; COMMIT")
    assert take(conn, queue) == [0, 1, 2]
    assert counted(conn, queue) == (1, 1)


@pytest.mark.parametrize("how, expected", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")])
@pytest.mark.parametrize("by", [MORE, HELPED])
def test_interrupted(server, conn, queue, sessions, how, expected, by):
    """Cancelled or terminated while it waits: nothing is enqueued, and no other session is blocked."""
    fill(conn, queue)
    server.expect_log(r"FATAL:  terminating connection due to administrator command")
    session, call = sessions.waits(queue, by)
    conn.execute(f"SELECT {how}(%s)", [session.info.backend_pid])
    assert sqlstate(call) in (expected, "gone")
    _, other = sessions.waits(queue)
    assert take(conn, queue, number=1) == [0]
    other.result(PATIENCE)
    assert sorted(map(str, take(conn, queue))) == ["1", "2", "more"]


def test_killed(new_server):
    """kill -9 of a waiter: after the recovery the messages are counted, and the limit applies."""
    own = new_server("killed", **SETTINGS)
    own.expect_log(r"terminat|crash")
    with own.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        fill(conn, "q")
        sessions = Enqueuers(own, conn)
        session, call = sessions.waits("q")
        before = generation(own)
        os.kill(session.info.backend_pid, signal.SIGKILL)
        assert sqlstate(call)
        sessions.pool.shutdown()
    until(lambda: generation(own) not in (None, before), "the server's recovery")
    with own.connect() as conn:
        conn.execute("SELECT aq.alter_queue('q', on_full => 'error')")
        with pytest.raises(db.Error) as caught:
            put(conn, "q", "more")
        assert caught.value.sqlstate == FULL
        assert take(conn, "q") == [0, 1, 2]
        put(conn, "q", "more")


CHANGES = {
    "stop": ("SELECT aq.stop_queue('{queue}')", "55000"),
    "drop": ("SELECT aq.drop_queue('{queue}', force => true)", "42704"),
    "drop and create": (
        "SELECT aq.drop_queue('{queue}', force => true); SELECT aq.create_queue('{queue}', payload_type => 'text')",
        "42704",
    ),
    "error": ("SELECT aq.alter_queue('{queue}', on_full => 'error')", FULL),
    "rename": ("SELECT aq.alter_queue('{queue}', new_name => '{queue}_old'); SELECT aq.create_queue('{queue}')", None),
}


@pytest.mark.parametrize("table", [None, "locking"], ids=["", "table"])
@pytest.mark.parametrize("delivery", ["persistent", "buffered"])
def test_a_drop_with_force_ends_waits(server, conn, sessions, table, delivery):
    """Also of a transaction that has enqueued into the queue, and has locks of its tables."""
    if table:
        db.execute(conn, "SELECT aq.create_queue_table(%s)", [table])
    db.execute(conn, "SELECT aq.create_queue('locking', max_depth => 3, queue_table => %s)", [table])
    more = f"SELECT aq.enqueue(%s, '1', delivery_mode => '{delivery}')"
    session = sessions.stack.enter_context(server.connect())
    for user in (session, conn):
        user.execute("SET pgaq.buffered_message_limit = 3")
    session.execute("BEGIN")
    session.execute(more, ["locking"])
    for _ in range(3):
        conn.execute(more, ["locking"])
    call = sessions.start(session, more, "locking")
    sessions.wait_for(session, EVENT if delivery == "persistent" else FLOWS)
    conn.execute(f"RESET pgaq.buffered_message_limit; SET lock_timeout = '{PATIENCE}s'")
    db.execute(conn, f"SELECT aq.drop_queue{'_table' if table else ''}('locking', force => true)")
    assert sqlstate(call) == "42704"


@pytest.mark.sharded("drops and renames the queue, whose queue table has its name")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("by", [MORE, HELPED])
def test_the_queue_changes_meanwhile(conn, sessions, change, by):
    """The command does not wait for who waits; who waits finds the queue as it is then."""
    conn.execute("SELECT aq.create_queue('changing')")
    fill(conn, "changing")
    _, call = sessions.waits("changing", by)
    statements, expected = CHANGES[change]
    conn.execute("BEGIN")
    for statement in statements.format(queue="changing").split("; "):
        conn.execute(statement)
    conn.execute("COMMIT")
    if expected is None:
        call.result(PATIENCE)
        assert take(conn, "changing") == ["more"]
    else:
        assert sqlstate(call) == expected
    for (name,) in conn.execute("SELECT queue_name FROM aq.queues WHERE queue_name ~ '^changing' AND queue_type = 'normal'").fetchall():
        conn.execute("SELECT aq.drop_queue(%s, force => true)", [name])


def test_the_slow_subscriber_is_removed(conn, topic, sessions):
    conn.execute("SELECT aq.unsubscribe(queue_name, consumer) FROM aq.subscribers WHERE queue_name = %s", [topic])
    conn.execute("SELECT aq.subscribe(%s, 'slow'), aq.subscribe(%s, 'fast')", [topic, topic])
    fill(conn, topic)
    assert take(conn, topic, consumer="fast") == [0, 1, 2]
    _, call = sessions.waits(topic)
    conn.execute("SELECT aq.unsubscribe(%s, 'slow')", [topic])
    call.result(PATIENCE)
    assert take(conn, topic, consumer="fast") == ["more"]


@pytest.mark.parametrize("finish", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
def test_prepared(conn, queue, sessions, finish):
    """What a prepared transaction has dequeued is finished when it commits, although this calls no callback."""
    fill(conn, queue)
    conn.execute("BEGIN")
    assert take(conn, queue, number=1) == [0]
    conn.execute("PREPARE TRANSACTION 'took'")
    _, call = sessions.waits(queue)
    conn.execute(f"{finish} 'took'")
    if finish == "ROLLBACK PREPARED":
        assert until(lambda: take(conn, queue, number=1))
    call.result(PATIENCE)


def test_prepared_messages_count_when_committed(conn, queue, sessions):
    limit(conn, queue)
    conn.execute("BEGIN")
    put(conn, queue, 0, 1, 2)
    conn.execute("PREPARE TRANSACTION 'put'")
    with sessions.server.connect() as other:
        put(other, queue, 3)
    conn.execute("COMMIT PREPARED 'put'")
    until(lambda: db.value(conn, "SELECT lag FROM aq.metrics(%s)", [queue]) == 4, "they are counted")
    _, call = sessions.waits(queue)
    assert len(take(conn, queue, number=2)) == 2
    call.result(PATIENCE)


def test_a_waiter_is_prepared_afterwards(conn, queue, sessions):
    fill(conn, queue)
    session = sessions.new()
    session.execute("SET deadlock_timeout = '10min'")
    _, call = sessions.waits(queue, session=session)
    take(conn, queue, number=1)
    call.result(PATIENCE)
    session.execute("PREPARE TRANSACTION 'waited'")
    conn.execute("COMMIT PREPARED 'waited'")
    got: list = []
    until(lambda: got.extend(take(conn, queue)) or len(got) == 3, "all messages")
    assert sorted(map(str, got)) == ["1", "2", "more"]


def test_a_restart_counts_what_is_there(server, queue):
    """No enqueue is let in before the worker has counted the messages."""
    with server.connect() as conn:
        fill(conn, queue)
        conn.execute("SELECT aq.alter_queue(%s, on_full => 'error')", [queue])
    server.restart()
    with server.connect() as conn:
        with pytest.raises(db.Error) as caught:
            put(conn, queue, "more")
        assert caught.value.sqlstate == FULL and "is full" in str(caught.value)
        assert take(conn, queue, number=1) == [0]
        put(conn, queue, "more")
        assert sorted(map(str, take(conn, queue))) == ["1", "2", "more"]


# --- helpers for immediate visibility see other things than their sessions


def test_an_uncommitted_limit(conn, queue):
    """A helper does not see the higher limit: its error comes at once, without a wait that could not end."""
    fill(conn, queue)
    conn.execute("BEGIN")
    conn.execute("SELECT aq.alter_queue(%s, max_depth => 10)", [queue])
    with pytest.raises(db.Error) as caught:
        conn.execute(HELPED, [queue])
    assert caught.value.sqlstate == FULL
    conn.execute("ROLLBACK")


@pytest.mark.sharded("creates a queue with a limit")
def test_messages_that_the_helper_has_enqueued(conn, queue):
    """A payload whose check enqueues into the same queue: the helper's own messages fill it, which the session does not see."""
    conn.execute("""
        CREATE FUNCTION put_another(value text) RETURNS boolean LANGUAGE plpgsql AS
        $$BEGIN IF value = 'two' THEN PERFORM aq.enqueue('fills_itself', '(one)'::text); END IF; RETURN true; END$$;
        CREATE DOMAIN checked AS text CHECK (put_another(value)); CREATE TYPE filling AS (value checked);
        CREATE ROLE filler; GRANT CREATE ON SCHEMA public TO filler; ALTER TYPE filling OWNER TO filler; GRANT EXECUTE ON FUNCTION aq.create_queue TO filler;
        SET ROLE filler""")
    conn.execute("SELECT aq.create_queue('fills_itself', 'filling', max_depth => 2)")
    conn.execute("SELECT aq.enqueue('fills_itself', '(one)')")
    with pytest.raises(db.Error) as caught:
        conn.execute("SELECT aq.enqueue_array('fills_itself', ARRAY['(two)'], visibility => 'immediate')")
    assert caught.value.sqlstate == FULL
    conn.execute("SELECT aq.drop_queue('fills_itself', force => true); RESET ROLE; DROP OWNED BY filler CASCADE; DROP ROLE filler")


# --- deadlocks


def test_a_consumer_that_waits_for_the_enqueuer(conn, queue, sessions):
    """The consumer, which has taken all messages, waits for a row of the session that waits for room."""
    producer, consumer = sessions.new(), sessions.new()
    fill(conn, queue)
    sessions.row(producer).result(PATIENCE)
    assert len(take(consumer, queue)) == 3
    _, call = sessions.waits(queue, session=producer)
    changed = sessions.row(consumer)
    assert EVENT in deadlock(call).diag.message_detail
    end(producer)
    assert changed.result(PATIENCE)
    end(consumer)


def test_a_consumer_beside_one_that_waits(conn, queue, sessions):
    """There is no deadlock while a message can be taken by another session."""
    producer, consumer = sessions.new(), sessions.new()
    fill(conn, queue)
    sessions.row(producer).result(PATIENCE)
    assert len(take(consumer, queue, number=2)) == 2
    _, call = sessions.waits(queue, session=producer)
    changed = sessions.row(consumer)
    sessions.wait_for_lock(consumer)
    checked_again(sessions, producer)
    assert take(conn, queue) == [2]
    call.result(PATIENCE)
    producer.execute("COMMIT")
    assert changed.result(PATIENCE)
    end(consumer)


def test_two_full_queues(conn, queue, other_queue, sessions):
    """Each session has taken all messages of the queue into which the other one enqueues: one of them gets the error."""
    one, two = sessions.new(), sessions.new()
    for name, session in ((queue, one), (other_queue, two)):
        fill(conn, name)
        assert len(take(session, name)) == 3
    calls = {one: sessions.waits(other_queue, session=one)[1], two: sessions.start(two, MORE, queue)}
    lower, higher = sorted(calls, key=lambda session: session.info.backend_pid)
    deadlock(calls[lower])
    end(lower)
    if lower is one:
        until(lambda: take(conn, queue, number=1), "the messages are there again")
    else:
        until(lambda: take(conn, other_queue, number=1), "the messages are there again")
    calls[higher].result(PATIENCE)
    end(higher)


@pytest.fixture
def other_queue(conn):
    conn.execute("SELECT aq.create_queue('other_full')")
    yield "other_full"
    conn.execute("SELECT aq.drop_queue('other_full', force => true)")


def test_workers_that_enqueue_the_next_message(conn, queue, sessions):
    """Each has taken a message of the full queue and enqueues another one: none waits, whoever ends first."""
    fill(conn, queue)
    workers = [sessions.new() for _ in range(3)]
    for worker in workers:
        assert len(take(worker, queue, number=1)) == 1
    for worker in workers:
        put(worker, queue, "next")
    assert counted(conn, queue) == (0, 0)
    for worker in workers:
        worker.execute("COMMIT")
    assert take(conn, queue) == ["next"] * 3


def test_a_transaction_takes_what_it_enqueues(conn, queue):
    """In turns, more messages than the limit: none is refused."""
    limit(conn, queue)
    conn.execute("BEGIN")
    for n in range(10):
        put(conn, queue, n)
        assert take(conn, queue) == [n]
    conn.execute("COMMIT")
    put(conn, queue, 10, 11, 12)


def test_no_more_than_the_limit(server, conn, queue):
    """Four producers and a consumer that comes late: no more messages than the limit and one for each producer, and all arrive in order."""
    limit(conn, queue)
    most, got = [], []

    def publish(number):
        with server.connect() as own:
            for n in range(50):
                put(own, queue, number * 100 + n)

    with futures.ThreadPoolExecutor() as pool:
        calls = [pool.submit(publish, number) for number in range(4)]
        while len(got) < 200:
            most.append(db.value(conn, "SELECT lag FROM aq.metrics(%s)", [queue]) or 0)
            got.extend(take(conn, queue, number=2))
            assert not any(call.done() and call.exception() for call in calls)
    assert max(most) <= 3 + 4
    assert sorted(got) == sorted(number * 100 + n for number in range(4) for n in range(50))
    for number in range(4):
        mine = [n for n in got if n // 100 == number]
        assert mine == sorted(mine)
