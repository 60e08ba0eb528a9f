"""CALL aq_jms.receive: one session waits for several sources, and acknowledges before it waits."""

from __future__ import annotations

import os
import signal
import struct

import psycopg
import pytest

from conftest import background, stopped_worker, until
from pgaq import db
from test_wait import Waiter, asleep, sent

# no other session is told of a message that its waiter does not fetch
SETTINGS = {"pgaq.fetch_patience": "-1"}
TYPE = "aq.jms_message"


class Receiver(Waiter):
    def __init__(self, server, sources, lease="NULL", timeout="NULL", acknowledge=(), most=1, **more):
        def array(values, type):
            return "ARRAY[" + ", ".join("NULL" if value is None else "$q$" + str(value) + "$q$" for value in values) + f"]::{type}[]"

        queues, consumers, conditions = zip(*sources)
        lists = [array([lease[i] for lease in acknowledge], type) for i, type in enumerate(("text", "text", "uuid", "bigint"))]
        statement = (
            f"CALL aq_jms.receive({array(queues, 'text')}, {array(consumers, 'text')}, {array(conditions, 'text')}, "
            f"{array([most] * len(sources), 'int')}, {timeout}, {lease}, {', '.join(lists)}, NULL)"
        )
        super().__init__(server, queues[0], statement=statement, **more)

    def source(self):
        """Index of the source, and the indexes of stale acknowledgements; or the SQLSTATE."""
        answer = self.answer()
        if not answer.startswith("\\x"):
            return answer
        data = bytes.fromhex(answer[2:])
        (stale,) = struct.unpack_from(">i", data)
        numbers = struct.unpack_from(f">{stale}i", data, 4)
        return struct.unpack_from(">i", data, 4 + 4 * stale)[0], list(numbers)


@pytest.fixture
def queues(conn):
    names = ["one", "two", "three"]
    for name in names:
        conn.execute("SELECT aq.create_queue(%s, %s)", [name, TYPE])
    yield names
    for name in names:
        conn.execute("SELECT aq.drop_queue(%s, true)", [name])


@pytest.fixture
def receiver(server):
    made = []

    def make(*arguments, **named):
        made.append(Receiver(server, *arguments, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()


def put(conn, queue, color="red", number=1):
    for _ in range(number):
        conn.execute(
            "SELECT aq.enqueue(%s, ROW('text', '{}', jsonb_build_object('color', %s::text), NULL, 'body', NULL)::aq.jms_message)",
            [queue, color],
        )


def put_array(conn, queue, number):
    """All by one call."""
    one = "ROW('text', '{}', NULL, NULL, 'body', NULL)::aq.jms_message"
    conn.execute(f"SELECT aq.enqueue_array(%s, array_fill({one}, ARRAY[%s]))", [queue, number])


def red(queue):
    return (queue, None, "payload.properties ->> 'color' = 'red'")


def test_any_source_wakes(conn, queues, receiver):
    """Each of the sources, with its condition or without, and none of the messages that do not meet the condition."""
    waiter = receiver([red("one"), ("two", None, None), red("three")])
    for number, queue in enumerate(queues):
        waiter.wait()
        asleep(conn, [waiter])
        if queue != "two":
            put(conn, queue, "blue")
            asleep(conn, [waiter])
            assert not waiter.done()
        put(conn, queue)
        assert waiter.source() == (number, [])
    assert db.rows(conn, "SELECT (payload).properties FROM aq.browse('one', NULL::aq.jms_message)")[0]["properties"] == {"color": "blue"}


def test_no_snapshot(conn, queues, receiver):
    waiter = receiver([red("one"), red("two")]).wait()
    asleep(conn, [waiter])
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
    assert db.value(conn, query, [waiter.pid]) == 0
    put(conn, "two")
    assert waiter.source() == (1, [])


def test_same_queue_twice(conn, queues, receiver):
    """Two consumers of a session on one queue, with different conditions, or one without: one entry in the list."""
    blue = ("one", None, "payload.properties ->> 'color' = 'blue'")
    selective = receiver([red("one"), blue]).wait()
    asleep(conn, [selective])
    put(conn, "one", "green")
    put(conn, "one", "blue")
    assert selective.source() == (1, [])
    plain = receiver([blue, ("one", None, None)]).wait()
    assert plain.source() == (1, [])
    plain.wait()
    asleep(conn, [plain])
    put(conn, "one", "green")
    assert plain.source() == (1, [])


def test_wakeup_is_passed_on(conn, queues, receiver):
    """A session that is woken for two queues takes from one: the other message is for the next waiter of that queue."""
    both = receiver([("one", None, None), ("two", None, None)]).wait()
    asleep(conn, [both])
    other = receiver([("two", None, None)]).wait()
    asleep(conn, [other])
    with conn.transaction():
        put(conn, "one")
        put(conn, "two")
    assert both.source() == (0, [])
    assert other.source() == (0, [])


@pytest.mark.parametrize("calls", [1, 5])
def test_who_takes_many_counts_as_many(conn, queues, receiver, calls):
    """Five messages of a transaction wake three of the sessions that take two each, however many calls send them."""
    group = [receiver([("one", None, None)], most=2) for _ in range(4)]
    for waiter in group:
        asleep(conn, [waiter.wait()])
    before = sent(conn)
    with conn.transaction():
        for _ in range(calls):
            put_array(conn, "one", 5 // calls)
    assert [waiter.source() for waiter in group[:3]] == [(0, [])] * 3
    assert not group[3].done()
    assert before + 3 <= sent(conn) <= before + 4
    put(conn, "one")
    assert group[3].source() == (0, [])


def test_the_rest_is_passed_on(conn, queues, receiver):
    """A session that is woken for three messages takes one, because its first source has a condition: two are for others."""
    first = receiver([red("one"), ("one", None, None)], most=3).wait()
    asleep(conn, [first])
    others = [receiver([("one", None, None)]) for _ in range(2)]
    for waiter in others:
        asleep(conn, [waiter.wait()])
    with conn.transaction():
        put(conn, "one", "blue", 2)
        put(conn, "one", "red")
    assert first.source() == (0, [])
    assert [waiter.source() for waiter in others] == [(0, [])] * 2


@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_who_goes_passes_all_on(server, conn, queues, receiver, how):
    """A session that is woken for three messages, and ends before it looks: three others get its wake-up."""
    server.expect_log("terminat|cancel")
    first = receiver([("one", None, None)], most=3).wait()
    asleep(conn, [first])
    others = [receiver([("one", None, None)]) for _ in range(3)]
    for waiter in others:
        asleep(conn, [waiter.wait()])
    before = sent(conn)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        put_array(conn, "one", 3)
        assert sent(conn) == before + 1
        db.execute(conn, f"SELECT pg_{how}_backend(%s)", [first.pid])
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert [waiter.source() for waiter in others] == [(0, [])] * 3


@pytest.mark.parametrize("why", ["older snapshot", "poisoned message"])
def test_who_may_not_take_passes_the_rest_on(conn, queues, receiver, why):
    """A session that is woken for three messages, none of which its transaction may take: others get two of them."""
    first = receiver([("one", None, None)], timeout="'1 hour'", most=3)
    if why == "older snapshot":
        first.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
    else:
        conn.execute("SELECT aq.alter_queue('one', max_retries => 1, retry_delay => '0')")
        put(conn, "one")
        take = "SELECT msgid FROM aq.dequeue('one', NULL::aq.jms_message, wait => '1 minute')"
        with conn.transaction(force_rollback=True):
            assert len(db.rows(conn, take)) == 1
        first.connection.execute("BEGIN")
        assert len(db.rows(first.connection, take)) == 1
    asleep(conn, [first.wait()])
    others = [receiver([("one", None, None)]) for _ in range(2)]
    for waiter in others:
        asleep(conn, [waiter.wait()])
    put_array(conn, "one", 3)
    assert [waiter.source() for waiter in others] == [(0, [])] * 2
    asleep(conn, [first])
    conn.execute("SELECT pg_cancel_backend(%s)", [first.pid])
    assert first.source() == "57014"
    first.connection.execute("ROLLBACK")


@pytest.mark.parametrize("end", ["COMMIT PREPARED", "ROLLBACK TO"])
def test_wakes_for_what_becomes_ready(conn, queues, receiver, end):
    """Three messages of a prepared transaction wake three sessions; two of three, when one is rolled back, wake two."""
    group = [receiver([("one", None, None)]) for _ in range(3)]
    for waiter in group:
        asleep(conn, [waiter.wait()])
    before = sent(conn)
    conn.execute("BEGIN")
    put_array(conn, "one", 2)
    conn.execute("SAVEPOINT s")
    put_array(conn, "one", 1)
    if end == "ROLLBACK TO":
        conn.execute("ROLLBACK TO s")
        conn.execute("COMMIT")
        assert sent(conn) == before + 2
        put(conn, "one")
    else:
        conn.execute("PREPARE TRANSACTION 'three'")
        assert sent(conn) == before
        conn.execute("COMMIT PREPARED 'three'")
    assert [waiter.source() for waiter in group] == [(0, [])] * 3


@pytest.mark.parametrize("block", [False, True])
def test_acknowledged_before_the_wait(server, conn, queues, receiver, block):
    put(conn, "one")
    row = db.rows(conn, "SELECT msgid, receipt FROM aq.dequeue('one', NULL::aq.jms_message, lease => '1 hour')")[0]
    leased = ("one", None, row["msgid"], row["receipt"])
    waiter = receiver([("two", None, None)], acknowledge=[leased, leased[:3] + (77,)])
    if block:
        waiter.connection.execute("BEGIN")
    waiter.wait()
    asleep(conn, [waiter])
    busy = db.rows(conn, "SELECT result FROM aq.acknowledge('one', ARRAY[%s]::uuid[], %s)", [row["msgid"], row["receipt"]])
    assert [one["result"] for one in busy] == ["busy" if block else "stale"]
    # a wait that is cancelled leaves what was committed
    conn.execute("SELECT pg_cancel_backend(%s)", [waiter.pid])
    assert waiter.source() == "57014"
    if block:
        waiter.connection.execute("ROLLBACK")
    again = db.rows(conn, "SELECT result FROM aq.acknowledge('one', ARRAY[%s]::uuid[], %s)", [row["msgid"], row["receipt"]])
    assert [one["result"] for one in again] == ["done" if block else "stale"]


def test_leases_after_a_wait(server, conn, queues, receiver):
    """The transaction after the acknowledgements leases and commits as any other."""
    put(conn, "one")
    row = db.rows(conn, "SELECT msgid, receipt FROM aq.dequeue('one', NULL::aq.jms_message, lease => '1 hour')")[0]
    waiter = receiver([red("one"), red("two")], lease="'1 hour'", acknowledge=[("one", None, row["msgid"], row["receipt"])]).wait()
    asleep(conn, [waiter])
    put(conn, "two")
    assert waiter.source() == (1, [])
    assert db.value(conn, "SELECT count(*) FROM aq.browse('two', NULL::aq.jms_message)") == 0
    assert db.value(conn, "SELECT state FROM aq.messages WHERE queue_name = 'two'") == "LEASED"


def test_dropped_and_revoked_during_the_wait(server, conn, queues, receiver):
    """A source that goes away ends the wait with an error, whichever it is."""
    conn.execute("CREATE ROLE java LOGIN; SELECT aq.grant_queue('one', 'java'), aq.grant_queue('two', 'java')")
    try:
        waiter = receiver([red("one"), red("two")], user="java").wait()
        asleep(conn, [waiter])
        conn.execute("SELECT aq.revoke_queue('two', 'java')")
        assert waiter.source() == "42501"
        conn.execute("SELECT aq.grant_queue('two', 'java')")
        waiter.wait()
        asleep(conn, [waiter])
        conn.execute("SELECT aq.drop_queue('two', true)")
        assert waiter.source() == "42704"
        conn.execute("SELECT aq.create_queue('two', %s)", [TYPE])
    finally:
        conn.execute("SELECT aq.revoke_queue('one', 'java')")
        conn.execute("DROP OWNED BY java; DROP ROLE java")


def test_too_many_sources(conn, receiver):
    conn.execute("SELECT aq.create_queue('many' || i, %s) FROM generate_series(1, 257) i", [TYPE])
    waiter = receiver([(f"many{i}", None, None) for i in range(1, 257)]).wait()
    asleep(conn, [waiter])
    put(conn, "many256")
    assert waiter.source() == (255, [])
    assert receiver([(f"many{i}", None, None) for i in range(1, 258)]).wait().source() == "22023"
    conn.execute("SELECT aq.drop_queue('many' || i, true) FROM generate_series(1, 257) i")


def test_terminated_after_the_acknowledgement(server, conn, queues, receiver):
    put(conn, "one")
    row = db.rows(conn, "SELECT msgid, receipt FROM aq.dequeue('one', NULL::aq.jms_message, lease => '1 hour')")[0]
    waiter = receiver([("two", None, None)], acknowledge=[("one", None, row["msgid"], row["receipt"])]).wait()
    asleep(conn, [waiter])
    conn.execute("SELECT pg_terminate_backend(%s)", [waiter.pid])
    until(lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [waiter.pid]) == 0, "it is gone")
    put(conn, "two")
    assert db.value(conn, "SELECT aq_jms.acknowledge('{one}', '{NULL}', ARRAY[%s]::uuid[], ARRAY[%s])", [row["msgid"], row["receipt"]]) == [
        0
    ]
    with psycopg.connect(server.conninfo(), autocommit=True) as other:
        assert db.value(other, "SELECT (payload).text FROM aq.dequeue('two', NULL::aq.jms_message)") == "body"


def test_reading_messages_can_be_canceled(conn):
    """Reading a million takes seconds; otherwise the error would be that the last one cannot be read."""
    null, headers = struct.pack(">i", -1), b'{"a": 1}'
    message = null + struct.pack(">i", len(headers)) + headers + 4 * null
    group = struct.pack(">i", 6) + b"absent" + struct.pack(">iqq", 4, 0, 0) + 3 * null + struct.pack(">i", 1_000_000) + 1_000_000 * message
    group = group[: -4 * 4 - 1] + b"!" + group[-4 * 4 :]
    with conn.transaction():
        # prepared, so that the timeout does not begin before the value has come
        conn.execute("SELECT aq_jms.send(%s)", [b""], binary=True, prepare=True)
        conn.execute("SET LOCAL statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled), conn.transaction():
            conn.execute("SELECT aq_jms.send(%s)", [group], binary=True, prepare=True)


def peak(conn):
    """The largest size of a session's process so far, in MB."""
    (pid,) = conn.execute("SELECT pg_backend_pid()").fetchone()
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def test_tries_leave_no_memory_behind(server, conn, queues):
    """A wait tries its sources at each wake-up; here there are as many sources."""
    n = 20000
    with server.connect() as session:
        session.execute("CALL aq_jms.receive('{one}', NULL, '{priority = 7}', '{1}', '0')")
        before = peak(session)
        session.execute(
            "CALL aq_jms.receive(%s::text[], NULL, %s::text[], %s::integer[], '0')", [["one"] * n, ["priority = 7"] * n, [1] * n]
        )
        assert peak(session) - before < 60


def test_work_during_a_wait_has_a_limit(server, conn, queues, receiver):
    """statement_timeout does not end the wait, but does end a condition that waits for a lock."""
    conn.execute(
        "CREATE OR REPLACE FUNCTION public.locked() RETURNS boolean LANGUAGE sql AS 'SELECT pg_advisory_xact_lock(77); SELECT true'"
    )
    waiter = receiver([("one", None, "public.locked()")], options="-c statement_timeout=1s").wait()
    asleep(conn, [waiter])
    conn.execute("SELECT pg_advisory_lock(77)")
    put(conn, "one")
    assert waiter.source() == "57014"
    conn.execute("SELECT pg_advisory_unlock(77)")
    assert waiter.wait().source() == (0, [])
    conn.execute("DROP FUNCTION public.locked()")


# --- leases that end with their session


def lease(session, queue, number):
    """Leases messages for an hour, as the provider does."""
    session.execute(
        "CALL aq_jms.receive(ARRAY[%s]::text[], '{NULL}', '{NULL}', ARRAY[%s]::int[], '0', '1 hour', NULL, NULL, NULL, NULL, NULL)",
        [queue, number],
    )


def leased(conn, queue):
    return db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state = 'LEASED'", [queue])


def attempts(conn, queue):
    return db.value(conn, "SELECT array_agg(attempts ORDER BY attempts) FROM aq.messages WHERE queue_name = %s", [queue])


@pytest.mark.parametrize("how", ["close", "terminate", "lost while it waits"])
def test_leases_end_with_their_session(server, conn, queues, receiver, how):
    """Those of other sessions, and ordinary ones of the same session, go on."""
    put(conn, "one", number=300)
    put(conn, "two", number=3)
    waiter = receiver([("three", None, None)])
    session = waiter.connection
    lease(session, "one", 298)
    lease(session, "two", 1)
    session.execute("SELECT FROM aq.dequeue('two', NULL::aq.jms_message, lease => '1 hour')")
    with server.connect() as other:
        lease(other, "one", 1)
        lease(other, "two", 1)
        waiting = Waiter(server, "one")
        assert (leased(conn, "one"), leased(conn, "two")) == (299, 3)
        if how == "terminate":
            conn.execute("SELECT pg_terminate_backend(%s)", [waiter.pid])
        elif how == "lost while it waits":
            waiter.wait()
            asleep(conn, [waiter])
        session.close()
        until(lambda: (leased(conn, "one"), leased(conn, "two")) == (1, 2), "only those of the session have ended")
        assert attempts(conn, "one") == [0] + 299 * [1]
        assert waiting.wait().answer() is not None
        waiting.close()
    until(lambda: (leased(conn, "one"), leased(conn, "two")) == (0, 1), "those of the other session, too")
    assert db.rows(conn, "SELECT * FROM aq.check('20 s')") == []


def test_leases_of_a_queue_and_its_exception_queue_end(server, conn, queues):
    """Both queues have one owner view."""
    conn.execute("SELECT aq.alter_queue('one', max_retries => 0, retry_delay => '0')")
    put(conn, "one")
    with server.connect(autocommit=False) as other:
        other.execute("SELECT FROM aq.dequeue('one', NULL::aq.jms_message)")
        other.rollback()
    exceptions = db.value(conn, "SELECT exception_queue FROM aq.queues WHERE queue_name = 'one'")
    until(lambda: db.value(conn, "SELECT count(*) FROM aq.browse(%s, NULL::aq.jms_message)", [exceptions]) == 1, "the message has failed")
    put(conn, "one")
    with server.connect() as session:
        lease(session, "one", 1)
        lease(session, exceptions, 1)
        assert (leased(conn, "one"), leased(conn, exceptions)) == (1, 1)
    until(lambda: (leased(conn, "one"), leased(conn, exceptions)) == (0, 0), "both leases have ended")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_that_ends_a_lease_outlasts_the_session(server, conn, queues, end):
    """It decides about the message; after its rollback, the lease goes on until its time is over."""
    put(conn, "one", number=2)
    other = server.connect(autocommit=False)
    with server.connect() as session:
        lease(session, "one", 2)
        msgid = db.value(conn, "SELECT msgid FROM aq.messages WHERE queue_name = 'one' LIMIT 1")
        assert db.value(other, "SELECT result FROM aq.end_leases('one', ARRAY[%s]::uuid[])", [msgid]) == "done"
    until(lambda: db.value(conn, "SELECT count(*) FROM aq.browse('one', NULL::aq.jms_message)") == 1, "the other one is given back")
    getattr(other, end)()
    other.close()
    assert leased(conn, "one") == (end == "rollback")
    assert db.rows(conn, "SELECT * FROM aq.check('20 s')") == []


def test_sessions_with_the_same_number(server, conn, queues):
    """A process that gets the number of an earlier one, and sessions that have used many queues."""
    names = [f"q{i}" for i in range(12)]
    for name in names:
        conn.execute("SELECT aq.create_queue(%s, %s)", [name, TYPE])
        put(conn, name)
    for _ in range(3):
        with server.connect() as session:
            for name in names[:8]:
                lease(session, name, 1)
            assert leased(conn, "q0") == 1
        until(lambda: [leased(conn, name) for name in names[:8]] == 8 * [0], "they end, all of them")
    with server.connect() as session:
        for name in names:
            lease(session, name, 1)
    until(lambda: [leased(conn, name) for name in names[:8]] == 8 * [0], "those of eight queues")
    assert [leased(conn, name) for name in names[8:]] == 4 * [1]
    for name in names:
        conn.execute("SELECT aq.drop_queue(%s, true)", [name])


def test_a_session_uses_many_queues_that_are_dropped(server, conn, queues):
    """Leases from the next queue end with the session, however many queues were dropped before."""
    with server.connect() as session:
        for i in range(20):
            conn.execute("SELECT aq.create_queue(%s, %s)", [f"q{i}", TYPE])
            put(conn, f"q{i}")
            lease(session, f"q{i}", 1)
            if i < 17:
                conn.execute("SELECT aq.drop_queue(%s, true)", [f"q{i}"])
        assert [leased(conn, f"q{i}") for i in (17, 18, 19)] == 3 * [1]
    until(lambda: [leased(conn, f"q{i}") for i in (17, 18, 19)] == 3 * [0], "the leases have ended")
    for i in (17, 18, 19):
        conn.execute("SELECT aq.drop_queue(%s, true)", [f"q{i}"])
    assert db.rows(conn, "SELECT * FROM aq.check('20 s')") == []


def test_the_worker_is_away_when_the_session_ends(server, conn, queues):
    put(conn, "one", number=2)
    worker = background(conn, "worker")
    with stopped_worker(conn):
        with server.connect() as session:
            lease(session, "one", 2)
        conn.execute("SELECT pg_terminate_backend(%s)", [worker])
    until(lambda: leased(conn, "one") == 0, "the next worker ends them")


def test_leases_of_a_queue_of_an_earlier_extension(server, conn):
    """The extension is dropped and created again, so ids of queues and receipts begin again, too: the leases of the new queue go on."""
    conn.execute("CREATE DATABASE again")
    with server.connect("again") as new:
        old = server.connect("again")
        for session in (old, new):
            new.execute("DROP EXTENSION IF EXISTS pgaq CASCADE; CREATE EXTENSION pgaq")
            new.execute("SELECT aq.create_queue('one', %s)", [TYPE])
            put(new, "one", number=5)
            lease(session, "one", 2)
        old.close()
        # what the worker has done when it has twice ended the leases of a later session
        for _ in range(2):
            with server.connect("again") as later:
                lease(later, "one", 1)
                assert leased(new, "one") in (2, 3)
            until(lambda: leased(new, "one") < 3, "the later session's lease ends")
        assert leased(new, "one") == 2
    conn.execute("DROP DATABASE again WITH (FORCE)")
