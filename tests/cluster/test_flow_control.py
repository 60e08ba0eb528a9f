"""Flow control of buffered messages: who waits for room is seen, woken by what makes room, and can be ended."""

from __future__ import annotations

import threading

import pytest

from conftest import PATIENCE, drop, put, until
from pgaq import db

# a session that has prepared its transaction has no row any more; the limit also applies to the helper of dbms_aq
SETTINGS = {
    "pgaq.buffered_message_limit": "3",
    "pgaq.flow_control_timeout": "1 min",
    "max_prepared_transactions": "5",
    "shared_buffers": "16MB",
}

EVENT = "Streams AQ: enqueue blocked due to flow control"
BUFFERED = {"delivery_mode": "buffered"}
FULL = "AQ118"


def fill(conn, queue, number=3, **options):
    for n in range(number):
        put(conn, queue, n, **BUFFERED, **options)


def take_buffered(conn, queue, number=100, consumer=None):
    query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => %s, delivery_mode => 'buffered')"
    return [row[0] for row in conn.execute(query, [queue, consumer, number])]


def waiters(conn):
    return db.value(conn, "SELECT count(*) FROM sys.v$session_wait WHERE state = 'WAITING' AND event = %s", [EVENT])


class Enqueuer(threading.Thread):
    """Enqueues, and is left when it waits; result() is the SQLSTATE of its error, or None."""

    def __init__(self, server, conn, statement, parameters=()):
        super().__init__()
        self.server, self.statement, self.parameters = server, statement, parameters
        self.error = self.pid = None
        before = waiters(conn)
        self.start()
        until(lambda: waiters(conn) > before or not self.is_alive(), "the enqueuer waits")
        assert self.is_alive(), self.error

    def run(self):
        try:
            with self.server.connect() as conn:
                self.pid = db.value(conn, "SELECT pg_backend_pid()")
                conn.execute(self.statement, self.parameters)
        except db.Error as error:
            self.error = error

    def result(self):
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.error and (self.error.sqlstate or "gone")


def enqueuer(server, conn, queue, payload="more"):
    return Enqueuer(server, conn, f"SELECT aq.enqueue('{queue}', '\"{payload}\"', delivery_mode => 'buffered')")


PACKAGE = "CALL dbms_aq.enqueue('{queue}', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), NULL, '\"more\"', NULL)"
ROOM = {
    "a dequeue": "SELECT * FROM aq.dequeue('{queue}', delivery_mode => 'buffered')",
    "a purge": "SELECT aq.purge_queue('{queue}', delivery_mode => 'buffered')",
    "dbms_aq.dequeue": "CALL dbms_aq.dequeue('{queue}', dbms_aq.dequeue_options_t(visibility => 1, delivery_mode => 2, wait => 0), NULL, NULL::jsonb, NULL)",
}


@pytest.mark.parametrize("by", ["aq.enqueue", "dbms_aq.enqueue"])
@pytest.mark.parametrize("how", ROOM)
def test_room_lets_it_go_on(server, conn, queue, by, how):
    fill(conn, queue)
    call = (
        PACKAGE.format(queue=queue) if by == "dbms_aq.enqueue" else f"SELECT aq.enqueue('{queue}', '\"more\"', delivery_mode => 'buffered')"
    )
    waiting = Enqueuer(server, conn, call)
    found = db.row(conn, "SELECT p1, p2, p3, wait_class FROM sys.v$session_wait WHERE event = %s AND state = 'WAITING'", [EVENT])
    number = db.value(conn, "SELECT queue_id FROM aq_internal.queue WHERE queue_name = %s", [queue])
    assert found == {"p1": number, "p2": 3, "p3": 3, "wait_class": "Queueing"}
    conn.execute(ROOM[how].format(queue=queue))
    assert waiting.result() is None
    assert take_buffered(conn, queue) == {"a purge": ["more"]}.get(how, [1, 2, "more"])
    totals = db.row(conn, "SELECT total_waits, total_timeouts FROM sys.v$system_event WHERE event = %s", [EVENT])
    assert totals["total_waits"] > 0


def test_time_is_up(server, conn, queue):
    """Nothing is enqueued, the transaction can be rolled back to a savepoint and go on."""
    fill(conn, queue)
    conn.execute("SET pgaq.flow_control_timeout = '100 ms'")
    conn.execute("BEGIN")
    put(conn, queue, "persistent")
    conn.execute("SAVEPOINT s")
    with pytest.raises(db.Error) as caught:
        put(conn, queue, "more", **BUFFERED)
    assert caught.value.sqlstate == FULL
    conn.execute("ROLLBACK TO s")
    conn.execute("COMMIT")
    assert take_buffered(conn, queue) == [0, 1, 2]
    assert db.value(conn, "SELECT payload FROM aq.dequeue(%s)", [queue]) == "persistent"
    put(conn, queue, "more", **BUFFERED)


def test_as_much_room_as_there_is(server, conn, queue):
    """Many wait; all come in as consumers make room, and none of them waits although there is room."""
    fill(conn, queue)
    waiting = [enqueuer(server, conn, queue, f"w{n}") for n in range(6)]
    got = []
    until(lambda: got.extend(take_buffered(conn, queue, 1)) or len(got) == 9, "all come in")
    assert [w.result() for w in waiting] == [None] * 6
    assert sorted(map(str, got)) == ["0", "1", "2", *(f"w{n}" for n in range(6))]


@pytest.mark.parametrize("how, expected", [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")])
@pytest.mark.parametrize("by", ["aq.enqueue", "dbms_aq.enqueue"])
def test_interrupted(server, conn, queue, by, how, expected):
    """Cancelled or killed while waiting: nothing is enqueued, and no other session is blocked."""
    fill(conn, queue)
    if by == "dbms_aq.enqueue":
        server.expect_log(
            r"FATAL:  terminating background worker \"pgaq helper\" due to administrator command|FATAL:  terminating connection"
        )
    server.expect_log(r"FATAL:  terminating connection due to administrator command")
    call = (
        PACKAGE.format(queue=queue) if by == "dbms_aq.enqueue" else f"SELECT aq.enqueue('{queue}', '\"more\"', delivery_mode => 'buffered')"
    )
    waiting = Enqueuer(server, conn, call)
    conn.execute(f"SELECT {how}(%s)", [waiting.pid])
    assert waiting.result() in (expected, "gone")
    until(lambda: waiters(conn) == 0, "nobody waits")
    assert take_buffered(conn, queue, 1) == [0]
    put(conn, queue, "next", **BUFFERED)
    assert take_buffered(conn, queue) == [1, 2, "next"]


@pytest.mark.sharded("drops and renames the queue, whose queue table has its name")
@pytest.mark.parametrize(
    "change, expected",
    [
        ("SELECT aq.stop_queue('{queue}')", "55000"),
        ("SELECT aq.drop_queue('{queue}', force => true)", "42704"),
        ("SELECT aq.drop_queue('{queue}', force => true); SELECT aq.create_queue('{queue}', payload_type => 'text')", "42704"),
        ("SELECT aq.alter_queue('{queue}', new_name => '{queue}_old'); SELECT aq.create_queue('{queue}')", None),
    ],
)
def test_the_queue_changes_meanwhile(server, conn, change, expected):
    """The command does not wait for who waits, who looks at the queue again."""
    conn.execute("SELECT aq.create_queue('changing')")
    fill(conn, "changing")
    waiting = enqueuer(server, conn, "changing")
    conn.execute("BEGIN")
    for statement in change.format(queue="changing").split("; "):
        conn.execute(statement)
    conn.execute("COMMIT")
    assert waiting.result() == expected
    if expected is None:
        assert "more" in str(take_buffered(conn, "changing"))
    for (name,) in conn.execute("SELECT queue_name FROM aq.queues WHERE queue_name ~ 'changing' AND queue_type = 'normal'").fetchall():
        drop(conn, name)


def test_the_slow_subscriber_is_removed(server, conn, topic):
    """Removing a consumer lets enqueuers that wait for it continue; its position begins at zero for the next one, also
    after the worker has cleaned up."""
    conn.execute(
        "SELECT aq.subscribe(%s, 'slow', delivery_mode => 'buffered'), aq.subscribe(%s, 'fast', delivery_mode => 'buffered')",
        [topic, topic],
    )
    position = db.value(
        conn,
        "SELECT position FROM aq_internal.subscriber JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s AND consumer = 'slow'",
        [topic],
    )
    fill(conn, topic)
    assert take_buffered(conn, topic, consumer="fast") == [0, 1, 2]
    waiting = enqueuer(server, conn, topic)
    conn.execute("SELECT aq.unsubscribe(%s, 'slow')", [topic])
    assert waiting.result() is None
    assert take_buffered(conn, topic, consumer="fast") == ["more"]
    until(lambda: not db.value(conn, "SELECT count(*) FROM aq_internal.subscriber WHERE kind = 'removed'"), "its place is free")
    conn.execute("SELECT aq.subscribe(%s, 'next', delivery_mode => 'buffered')", [topic])
    assert db.value(conn, "SELECT position FROM aq_internal.subscriber WHERE consumer = 'next'") == position
    fill(conn, topic)
    assert take_buffered(conn, topic, consumer="next") == [0, 1, 2]


@pytest.mark.parametrize("finish", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
def test_prepared(server, conn, queue, finish):
    """The dequeues and enqueues of a prepared transaction count when it commits, although this calls no callback."""
    fill(conn, queue, 2)
    conn.execute("BEGIN")
    assert take_buffered(conn, queue, 1) == [0]
    conn.execute("PREPARE TRANSACTION 'took'")
    with server.connect() as other:
        put(other, queue, 2, **BUFFERED)
    waiting = enqueuer(server, conn, queue)
    conn.execute("BEGIN")
    assert take_buffered(conn, queue, 1) == [2]  # 1 stands behind 0
    conn.execute("ROLLBACK")
    conn.execute(f"{finish} 'took'")
    found = []
    if finish == "ROLLBACK PREPARED":
        assert waiting.is_alive()
        found += until(lambda: take_buffered(conn, queue, 1))
    assert waiting.result() is None
    until(lambda: found.extend(take_buffered(conn, queue)) or len(found) >= (3 if finish == "COMMIT PREPARED" else 4), "what is left")
    assert set(found) == {1, 2, "more"} | ({0} if finish == "ROLLBACK PREPARED" else set())


def test_prepared_messages_count_when_committed(server, conn, queue):
    conn.execute("BEGIN")
    fill(conn, queue)
    conn.execute("PREPARE TRANSACTION 'put'")
    fill(conn, queue, 1)
    conn.execute("COMMIT PREPARED 'put'")
    conn.execute("SET pgaq.flow_control_timeout = 0")
    counted = "SELECT num_msgs FROM sys.v$buffered_subscribers WHERE queue_name = upper(%s)"
    until(lambda: db.value(conn, counted, [queue]) == 4, "they are counted")
    with pytest.raises(db.Error):
        put(conn, queue, "more", **BUFFERED)
    assert len(take_buffered(conn, queue)) == 4


def test_restart_counts_what_is_there(server, queue):
    with server.connect() as conn:
        fill(conn, queue)
    server.restart()
    with server.connect() as conn:
        conn.execute("SET pgaq.flow_control_timeout = 0")
        with pytest.raises(db.Error) as caught:
            put(conn, queue, "more", **BUFFERED)
        assert caught.value.sqlstate == FULL
        assert take_buffered(conn, queue, 1) == [0]
        put(conn, queue, "more", **BUFFERED)
        assert take_buffered(conn, queue) == [1, 2, "more"]


def test_disk_is_not_filled(server, conn, queue):
    """Four publishers, a consumer that comes late: no more lie there than the limit and one for each."""
    conn.execute("SET pgaq.flow_control_timeout = 0")
    most = []

    def publish(number):
        with server.connect() as own:
            for n in range(50):
                put(own, queue, number * 100 + n, **BUFFERED)

    threads = [threading.Thread(target=publish, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    got: list[int] = []
    while len(got) < 200:
        most.append(db.value(conn, "SELECT messages FROM aq.buffered_queues WHERE queue_name = %s", [queue]) or 0)
        got.extend(take_buffered(conn, queue, 2))
    for thread in threads:
        thread.join(PATIENCE)
    assert max(most) <= 3 + 4
    assert sorted(got) == sorted(number * 100 + n for number in range(4) for n in range(50))
    for number in range(4):
        mine = [n for n in got if n // 100 == number]
        assert mine == sorted(mine)
