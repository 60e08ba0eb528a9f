"""Bodies of large messages go with their message, however it ends; no chunk is left without one."""

from __future__ import annotations

import os
import socket

import psycopg
import pytest

from conftest import _numbers, differences, drop, until
from pgaq import db

SETTINGS = {"pgaq.partition_size": "1MB", "pgaq.reuse_grace": "0"}

CHUNK = 100_000
CHUNKS = 3

MESSAGE = """ROW('bytes', '{"content_length": 300000}', NULL, NULL, NULL, NULL)::aq.jms_message"""

# the rows of chunks that are there for a new snapshot, and the bytes that the queue's messages occupy
ROWS = """SELECT coalesce(sum((xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM aq_data.' || source, false, true, '')))[1]::text::integer), 0)
    FROM (SELECT 'q' || queue_id || '_' || table_no || ' WHERE ordinal < 0' FROM aq_internal.message_table JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %(queue)s
        UNION ALL SELECT 'k' || queue_table_id FROM aq_internal.queue WHERE queue_name = %(queue)s AND queue_table_id IS NOT NULL) t(source)"""
BYTES = """SELECT coalesce(sum(pg_total_relation_size(format('aq_data.q%%s_%%s', queue_id, table_no))), 0)::bigint
    FROM aq_internal.message_table JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s"""


@pytest.fixture
def queue(server):
    """A fresh queue of messages of Jakarta Messaging, whose failed messages can be tried once more."""
    name = f"j{next(_numbers)}"
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue(%s, 'aq.jms_message')", [name])
    yield name
    with server.connect() as conn:
        drop(conn, name)


@pytest.fixture
def topic(server):
    name = f"j{next(_numbers)}"
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue(%s, 'aq.jms_message', multiple_consumers => true)", [name])
        conn.execute("SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [name])
    yield name
    with server.connect() as conn:
        drop(conn, name)


def write(conn, queue, msgid, numbers=range(CHUNKS)):
    for number in numbers:
        conn.execute("SELECT aq_jms.write_chunk(%s, %s, %s, %s)", [queue, msgid, number, os.urandom(CHUNK)])


def send(conn, queue, **options):
    """In the open transaction, or in one of its own."""
    own = conn.info.transaction_status.name == "IDLE"
    if own:
        conn.execute("BEGIN")
    more = "".join(f", {name} => %s" for name in options)
    msgid = db.value(conn, f"SELECT aq.enqueue(%s, {MESSAGE}{more})", [queue, *options.values()])
    write(conn, queue, msgid)
    if own:
        conn.execute("COMMIT")
    return msgid


def length(conn, queue, msgid, consumer=None):
    """Of the body as it can be read."""
    return db.value(
        conn,
        "SELECT coalesce(sum(length(aq_jms.read_chunk(%s, %s, %s, n))), 0) FROM generate_series(0, %s) n",
        [queue, consumer, msgid, CHUNKS],
    )


def take(conn, queue, consumer=None, number=1):
    return [
        row[0]
        for row in conn.execute(
            "SELECT msgid FROM aq.dequeue(%s, NULL::aq.jms_message, %s, max_messages => %s)", [queue, consumer, number]
        ).fetchall()
    ]


def rows_read(conn, queue):
    """Rows of message tables that scans have read in the open transaction."""
    return db.value(
        conn,
        """SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(format('aq_data.q%%s_%%s', queue_id, table_no)::regclass)), 0)::integer
            FROM aq_internal.message_table JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s""",
        [queue],
    )


def rows(conn, queue):
    return db.value(conn, ROWS, {"queue": queue})


def freed(conn, queue):
    """Waits until nothing of the consumed bodies is left but what an open partition holds."""
    if db.value(conn, "SELECT queue_table IS NULL FROM aq.queues WHERE queue_name = %s", [queue]):
        until(lambda: db.value(conn, BYTES, [queue]) < 1_500_000, "partitions truncated")
    else:
        assert rows(conn, queue) == 0


@pytest.mark.parametrize("how", ["consumed", "acknowledged", "purged", "expired"])
def test_bodies_go_with_their_messages(conn, queue, how):
    options = {"expiration": "1 s"} if how == "expired" else {}
    if how == "expired":
        conn.execute("SELECT aq.alter_queue(%s, exception_queue => 'none')", [queue])
    for _ in range(20):
        send(conn, queue, **options)
    assert rows(conn, queue) == 20 * CHUNKS or how == "expired"
    if how == "consumed":
        assert len(take(conn, queue, number=20)) == 20
    elif how == "acknowledged":
        leased = conn.execute(
            "SELECT msgid, receipt FROM aq.dequeue(%s, NULL::aq.jms_message, max_messages => 20, lease => '1 min')", [queue]
        ).fetchall()
        assert length(conn, queue, leased[7][0]) == CHUNKS * CHUNK
        conn.execute("SELECT * FROM aq.acknowledge(%s, %s, %s)", [queue, [row[0] for row in leased], leased[0][1]])
    elif how == "purged":
        conn.execute("SELECT aq.purge_queue(%s)", [queue])
    else:
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM aq.browse(%s, NULL::aq.jms_message)", [queue]), "expired")
        until(lambda: db.value(conn, "SELECT count(*) = 0 FROM aq.messages WHERE queue_name = %s AND state = 'READY'", [queue]), "expired")
        if db.value(conn, "SELECT queue_table IS NOT NULL FROM aq.queues WHERE queue_name = %s", [queue]):
            until(lambda: rows(conn, queue) == 0, "deleted")
    freed(conn, queue)


def test_a_topics_body_stays_for_its_last_consumer(conn, topic):
    ids = [send(conn, topic) for _ in range(20)]
    assert take(conn, topic, "a", 20) == ids
    assert {length(conn, topic, msgid, "b") for msgid in ids} == {CHUNKS * CHUNK}
    assert take(conn, topic, "b", 20) == ids
    freed(conn, topic)


@pytest.mark.parametrize("how", ["ROLLBACK", "ROLLBACK TO s"])
def test_rolled_back_bodies_leave_nothing(conn, queue, how):
    for _ in range(10):
        conn.execute("BEGIN")
        conn.execute("SAVEPOINT s")
        msgid = send(conn, queue)
        conn.execute(how)
        conn.execute("COMMIT" if how != "ROLLBACK" else "SELECT 1")
        assert length(conn, queue, msgid) == 0
    assert rows(conn, queue) == 0
    kept = send(conn, queue)
    assert length(conn, queue, kept) == CHUNKS * CHUNK
    assert take(conn, queue, number=10) == [kept]
    freed(conn, queue)


@pytest.mark.parametrize("killed", [False, True], ids=["", "kill"])
@pytest.mark.parametrize("finish", ["COMMIT", "ROLLBACK"])
def test_prepared(server, queue, finish, killed):
    with server.connect() as conn:
        conn.execute("BEGIN")
        sent = send(conn, queue)
        conn.execute("PREPARE TRANSACTION 'send'")
    if killed:
        server.kill()
        server.start()
    with server.connect() as conn:
        assert take(conn, queue) == [] and length(conn, queue, sent) == 0
        conn.execute(f"{finish} PREPARED 'send'")
        if finish == "ROLLBACK":
            assert take(conn, queue) == [] and length(conn, queue, sent) == 0
            return
        conn.execute("BEGIN")
        until(lambda: take(conn, queue) == [sent], "the message")
        assert length(conn, queue, sent) == CHUNKS * CHUNK
        conn.execute("PREPARE TRANSACTION 'take'")
        conn.execute("ROLLBACK PREPARED 'take'")
        until(lambda: take(conn, queue), "the message again")


@pytest.mark.parametrize("what", ["client", "server"])
def test_killed_while_a_body_is_written(server, queue, what):
    with server.connect() as conn:
        whole = send(conn, queue)
    conn = server.connect()
    conn.execute("BEGIN")
    for _ in range(10):
        torn = db.value(conn, f"SELECT aq.enqueue(%s, {MESSAGE})", [queue])
        write(conn, queue, torn)
    if what == "client":
        # nothing but the end of the connection tells the server
        with socket.socket(fileno=os.dup(conn.fileno())) as connection:
            connection.shutdown(socket.SHUT_RDWR)
        conn.close()
    else:
        server.kill()
        server.start()
    with server.connect() as conn:
        until(
            lambda: db.value(conn, "SELECT count(*) = 1 FROM pg_stat_activity WHERE state LIKE 'idle in%%' OR pid = pg_backend_pid()"),
            "the session has ended",
        )
        assert rows(conn, queue) == CHUNKS
        assert length(conn, queue, torn) == 0 and length(conn, queue, whole) == CHUNKS * CHUNK
        assert take(conn, queue, number=10) == [whole]
        freed(conn, queue)
    assert differences(server) == []


def test_dead_letters_have_copies(conn, topic):
    """One letter for each consumer that failed, each with the body; then back, and to the end."""
    conn.execute("SELECT aq.alter_queue(%s, max_retries => 0, retry_delay => '0')", [topic])
    send(conn, topic)
    for consumer in "ab":
        conn.execute("BEGIN")
        assert len(take(conn, topic, consumer)) == 1
        conn.execute("ROLLBACK")
    exceptions = db.value(conn, "SELECT exception_queue FROM aq.queues WHERE queue_name = %s", [topic])
    letters = until(
        lambda: (
            [found]
            if len(
                found := conn.execute(
                    "SELECT msgid FROM aq.messages WHERE queue_name = %s AND state <> 'PROCESSED'", [exceptions]
                ).fetchall()
            )
            == 2
            else None
        ),
        "two letters",
    )[0]
    assert {length(conn, exceptions, msgid) for (msgid,) in letters} == {CHUNKS * CHUNK}
    until(lambda: rows(conn, topic) in (0, CHUNKS, 2 * CHUNKS), "moved")
    assert db.value(conn, "SELECT aq.redrive(%s)", [topic]) == 2
    for consumer in "ab":
        conn.execute("BEGIN")
        (msgid,) = take(conn, topic, consumer)
        assert length(conn, topic, msgid, consumer) == CHUNKS * CHUNK
        conn.execute("COMMIT")


@pytest.fixture
def bodies(conn):
    """A queue with 20 messages of three chunks each: 80 rows in one table."""
    name = f"j{next(_numbers)}"
    conn.execute("SELECT aq.create_queue(%s, 'aq.jms_message', shards => 1, max_retries => 0, retry_delay => '0')", [name])
    conn.execute("BEGIN")
    ids = [db.value(conn, f"SELECT aq.enqueue(%s, {MESSAGE})", [name]) for _ in range(20)]
    for msgid in ids:
        conn.execute("SELECT aq_jms.write_chunk(%s, %s, n, %s) FROM generate_series(0, %s) n", [name, msgid, b"a chunk", CHUNKS - 1])
    conn.execute("COMMIT")
    yield name, ids
    drop(conn, name)


def chunks(conn, queue, msgid):
    return db.value(conn, "SELECT count(aq_jms.read_chunk(%s, NULL, %s, n)) FROM generate_series(0, %s) n", [queue, msgid, 2 * CHUNKS])


@pytest.mark.sharded("queue tables have an index")
def test_one_scan_finds_the_bodies_of_all_messages(server, conn, bodies):
    """Read in turn, with chunks that do not exist, and messages that do not exist."""
    queue, ids = bodies
    with server.connect() as reader:
        reader.execute("BEGIN")
        for msgid in 3 * ids:
            assert chunks(reader, queue, msgid) == CHUNKS
            conn.execute("SELECT pg_current_xact_id()")  # a transaction ends, which could have added chunks
        assert rows_read(reader, queue) == 20 * (1 + CHUNKS)
        conn.execute("BEGIN")
        late = send(conn, queue)
        assert [chunks(reader, queue, late) for _ in range(50)] == 50 * [0]
        # transactions of the worker can end meanwhile, but not as many
        assert rows_read(reader, queue) < 50 * 20 * (1 + CHUNKS)
        conn.execute("COMMIT")
        assert chunks(reader, queue, late) == CHUNKS
        reader.execute("COMMIT")


@pytest.mark.sharded("queue tables have an index")
def test_bodies_are_moved_with_one_scan(conn, bodies):
    queue, ids = bodies
    for _ in ids:
        conn.execute("BEGIN")
        assert len(take(conn, queue)) == 1
        conn.execute("ROLLBACK")
    exceptions = db.value(conn, "SELECT exception_queue FROM aq.queues WHERE queue_name = %s", [queue])
    until(lambda: db.value(conn, "SELECT count(*) FROM aq.browse(%s, NULL::aq.jms_message)", [exceptions]) == 20, "all have failed")
    conn.execute("BEGIN")
    assert db.value(conn, "SELECT aq.redrive(%s)", [queue]) == 20
    assert rows_read(conn, exceptions) == 20 * (1 + CHUNKS)
    again = take(conn, queue, number=20)
    assert [chunks(conn, queue, msgid) for msgid in again] == 20 * [CHUNKS]
    conn.execute("COMMIT")


@pytest.mark.sharded("queue tables have an index")
def test_bodies_that_arrive_one_by_one(server, conn, bodies):
    """Only what was added is read, with the last block; a body that lay there before it was committed is found, too."""
    queue, ids = bodies
    with server.connect() as reader, server.connect() as late:
        late.execute("BEGIN")
        early = send(late, queue)
        reader.execute("BEGIN")
        assert chunks(reader, queue, ids[0]) == CHUNKS
        for number in range(200):
            conn.execute("BEGIN")
            msgid = db.value(conn, f"SELECT aq.enqueue(%s, {MESSAGE})", [queue])
            conn.execute("SELECT aq_jms.write_chunk(%s, %s, n, %s) FROM generate_series(0, %s) n", [queue, msgid, b"a chunk", CHUNKS - 1])
            conn.execute("COMMIT")
            assert (
                db.value(
                    reader, "SELECT count(aq_jms.read_chunk(%s, NULL, %s, n)) FROM generate_series(0, %s) n", [queue, msgid, CHUNKS - 1]
                )
                == CHUNKS
            )
        # about 100 rows are in a block; each body needed a scan of 480 rows on average
        assert rows_read(reader, queue) < 200 * 200
        late.execute("COMMIT")
        assert length(reader, queue, early) == CHUNKS * CHUNK
        reader.execute("COMMIT")


@pytest.mark.parametrize("sort", ["enq_time", "priority"])
@pytest.mark.parametrize("retention", ["0", "1 h"])
@pytest.mark.parametrize("multi", [False, True], ids=["queue", "topic"])
def test_queues_of_one_queue_table(server, multi, retention, sort):
    """Who may dequeue from one queue reads no body of another one of the same queue table, and adds none to a message that was there."""
    consumer = "a" if multi else None
    with server.connect() as conn:
        conn.execute("DROP ROLE IF EXISTS spy; CREATE ROLE spy")
        conn.execute("SELECT aq.create_queue_table('shared', 'aq.jms_message', multiple_consumers => %s, sort_list => %s)", [multi, sort])
        for name in ("secret", "open"):
            conn.execute("SELECT aq.create_queue(%s, queue_table => 'shared', retention => %s)", [name, retention])
            if multi:
                conn.execute("SELECT aq.subscribe(%s, 'a'), aq.subscribe(%s, 'b')", [name, name])
        conn.execute("SELECT aq.grant_queue('open', 'spy', 'all')")
        secret, known = send(conn, "secret"), send(conn, "open")
        with server.connect() as reader:
            reader.execute("SET ROLE spy")
            assert length(reader, "open", secret, consumer) == 0
            assert length(reader, "open", known, consumer) == CHUNKS * CHUNK
            reader.execute("BEGIN")
            assert (
                reader.execute("SELECT msgid FROM aq.dequeue('open', NULL::aq.jms_message, %s, lease => '1 h')", [consumer]).fetchone()[0]
                == known
            )
            assert length(reader, "open", known, consumer) == CHUNKS * CHUNK
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="has not enqueued"):
                write(reader, "open", known, [CHUNKS])
            reader.execute("ROLLBACK")
            reader.execute("BEGIN")
            assert take(reader, "open", consumer) == [known]
            assert length(reader, "open", known, consumer) == CHUNKS * CHUNK
            assert length(reader, "open", secret, consumer) == 0
            reader.execute("ROLLBACK")
        drop(conn, "secret")
        drop(conn, "open")
        conn.execute("SELECT aq.drop_queue_table('shared', force => true)")
        conn.execute("DROP OWNED BY spy; DROP ROLE spy")


def test_the_servers_memory_is_flat(server, queue):
    """A body of 100 MB, written, moved and read: far less than it in a process's own memory."""
    count = 100

    def own_memory(conn):
        with open(f"/proc/{conn.info.backend_pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

    with server.connect() as conn:
        conn.execute("SELECT aq.alter_queue(%s, max_retries => 0, retry_delay => '0')", [queue])
        conn.execute("BEGIN")
        msgid = db.value(conn, f"SELECT aq.enqueue(%s, {MESSAGE})", [queue])
        data = os.urandom(1 << 20)
        for number in range(count):
            conn.execute("SELECT aq_jms.write_chunk(%s, %s, %s, %s)", [queue, msgid, number, data])
            before = own_memory(conn) if number == 9 else 0 if number < 9 else before
        assert own_memory(conn) < before + 10_000
        conn.execute("COMMIT")
        for number in range(count):
            assert db.value(conn, "SELECT length(aq_jms.read_chunk(%s, NULL, %s, %s))", [queue, msgid, number]) == 1 << 20
        assert own_memory(conn) < before + 20_000
        conn.execute("BEGIN")
        assert take(conn, queue) == [msgid]
        conn.execute("ROLLBACK")
        exceptions = db.value(conn, "SELECT exception_queue FROM aq.queues WHERE queue_name = %s", [queue])
        until(lambda: db.value(conn, "SELECT count(*) = 1 FROM aq.messages WHERE queue_name = %s", [exceptions]), "moved")
        assert db.value(conn, "SELECT aq.redrive(%s)", [queue]) == 1
        assert own_memory(conn) < before + 20_000
