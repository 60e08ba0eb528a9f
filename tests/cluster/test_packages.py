"""Oracle's packages with several sessions: what their waits hold, and that they wake."""

from __future__ import annotations

import threading

import psycopg
import pytest

import conftest
from conftest import until
from pgaq import db

SETUP = """
CREATE SCHEMA ora;
CREATE TYPE ora.order_t AS (id integer, note text);
{queues}
CALL dbms_aqadm.start_queue('ora.orders');
CALL dbms_aqadm.start_queue('ora.topic');
CALL dbms_aqadm.add_subscriber('ora.topic', sys.aq$_agent('ANN', NULL, NULL));
CREATE PROCEDURE ora.next(OUT note text) LANGUAGE plpgsql AS $$
DECLARE
    o dbms_aq.dequeue_options_t;
    p dbms_aq.message_properties_t;
    m ora.order_t;
    id uuid;
BEGIN
    CALL dbms_aq.dequeue('ora.orders', o, p, m, id);
    note := m.note;
END $$;
"""
SHARDED = """
CALL dbms_aqadm.create_sharded_queue('ora.orders', queue_payload_type => 'ora.order_t');
CALL dbms_aqadm.create_sharded_queue('ora.topic', queue_payload_type => 'JSON', multiple_consumers => true);
"""
CLASSIC = """
CALL dbms_aqadm.create_queue_table('ora.orders', 'ora.order_t');
CALL dbms_aqadm.create_queue('ora.orders', 'ora.orders');
CALL dbms_aqadm.create_queue_table('ora.topic', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue('ora.topic', 'ora.topic');
"""
DEQUEUE = "CALL dbms_aq.dequeue('ora.orders', NULL, NULL, NULL::ora.order_t, NULL)"
SELECTIVE = "CALL dbms_aq.dequeue('ora.orders', dbms_aq.dequeue_options_t(correlation => 'wan%'), NULL, NULL::ora.order_t, NULL)"
ARRAY = "CALL dbms_aq.dequeue_array('ora.orders', NULL, 10, NULL, NULL::ora.order_t[], NULL, NULL, NULL)"
LISTEN = "CALL dbms_aq.listen(ARRAY[sys.aq$_agent('ANN', 'ora.topic', NULL), sys.aq$_agent(NULL, 'ora.orders', NULL)], NULL, NULL)"
LISTEN_ONE = "CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'ora.orders', NULL)], NULL, NULL)"
PROCEDURE = "CALL ora.next(NULL)"
BLOCK = "DO $$ DECLARE note text; BEGIN CALL ora.next(note); END $$"


def set_up(conn):
    conn.execute(SETUP.replace("{queues}", CLASSIC if conftest.on_queue_tables else SHARDED))


@pytest.fixture(scope="module", autouse=True)
def queues(server):
    with server.connect() as setup:
        set_up(setup)


@pytest.fixture(autouse=True)
def nothing_left(server):
    """Every test begins with empty queues that are started."""
    yield
    with server.connect() as conn:
        conn.execute("SELECT aq.purge_queue('ora.orders'); CALL dbms_aqadm.start_queue('ora.topic')")


class Session:
    """A session that executes one statement in a thread."""

    def __init__(self, server, statement, transaction, level="read committed"):
        self.connection = psycopg.connect(server.conninfo(), autocommit=not transaction)
        self.connection.execute(f"SET default_transaction_isolation = '{level}'")
        self.connection.commit()
        self.pid = self.connection.info.backend_pid
        if transaction:
            self.connection.execute("SET LOCAL application_name = 'in a transaction'")
        self.rows = self.error = None
        self.thread = threading.Thread(target=self.run, args=(statement,))
        self.thread.start()

    def run(self, statement):
        try:
            cursor = self.connection.execute(statement)
            self.rows = cursor.fetchall() if cursor.description else []
            self.connection.commit()
        except psycopg.Error as error:
            self.error = error
        finally:
            self.connection.close()

    def end(self):
        self.thread.join(60)
        assert not self.thread.is_alive() and self.error is None, self.error
        return self.rows


def asleep(conn, pid, xmin):
    """Wait until the session waits for messages, with or without an xmin."""
    query = f"""SELECT 1 FROM pg_stat_activity a JOIN sys.v$session_wait w USING (pid)
        WHERE a.pid = %s AND w.state = 'WAITING' AND a.backend_xmin IS {"NOT NULL" if xmin else "NULL"}
            AND w.event IN ('Streams AQ: waiting for messages in the queue', 'wait for unread message on broadcast channel')"""
    until(lambda: db.value(conn, query, [pid]), f"session {pid} asleep, xmin held: {xmin}")


@pytest.mark.parametrize("transaction", [False, True], ids=["autocommit", "in a transaction"])
@pytest.mark.parametrize("statement", [DEQUEUE, SELECTIVE, ARRAY, LISTEN], ids=["dequeue", "selective", "array", "listen"])
def test_wait_without_snapshot(server, conn, statement, transaction):
    session = Session(server, statement, transaction)
    asleep(conn, session.pid, False)
    # a message that it does not want wakes it in vain, and it gives its snapshot back again
    if statement == SELECTIVE:
        db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(0,other)', NULL)")
        asleep(conn, session.pid, False)
    db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, dbms_aq.message_properties_t(correlation => 'wanted'), '(1,wanted)', NULL)")
    assert "wanted" in str(session.end()) or statement == LISTEN


@pytest.mark.parametrize("statement", [PROCEDURE, BLOCK], ids=["procedure", "block"])
def test_wait_in_plpgsql(server, conn, statement):
    """Outside of a transaction block no snapshot is held; inside one PL/pgSQL holds it."""
    for transaction in (False, True):
        session = Session(server, statement, transaction)
        asleep(conn, session.pid, transaction)
        db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(2,came)', NULL)")
        session.end()


def test_timeouts_and_interrupts(server, conn):
    with server.connect() as other:
        with pytest.raises(psycopg.Error) as error:
            other.execute(
                "CALL dbms_aq.dequeue('ora.topic', dbms_aq.dequeue_options_t(consumer_name => 'nobody', wait => 1), NULL, NULL::jsonb, NULL)"
            )
        assert error.value.sqlstate == "AQ063"
    session = Session(server, DEQUEUE, False)
    asleep(conn, session.pid, False)
    db.execute(conn, "SELECT pg_cancel_backend(%s)", [session.pid])
    session.thread.join(60)
    assert session.error.sqlstate == "57014"


def test_a_queue_that_is_stopped_or_dropped_ends_the_wait(server, conn):
    session = Session(
        server, "CALL dbms_aq.dequeue('ora.topic', dbms_aq.dequeue_options_t(consumer_name => 'ann'), NULL, NULL::jsonb, NULL)", False
    )
    asleep(conn, session.pid, False)
    db.execute(conn, "CALL dbms_aqadm.stop_queue('ora.topic')")
    session.thread.join(60)
    assert session.error.sqlstate == "AQ007"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("statement", [DEQUEUE, ARRAY, LISTEN_ONE, BLOCK], ids=["dequeue", "array", "listen", "block"])
def test_wait_in_other_isolation_levels(server, conn, statement, level):
    """A CALL that waits outside a transaction block gets messages that are newer than its snapshot."""
    session = Session(server, statement, False, level)
    until(
        lambda: db.value(
            conn, "SELECT state = 'WAITING' FROM sys.v$session_wait WHERE pid = %s AND event LIKE '%%message%%'", [session.pid]
        ),
        "asleep",
    )
    db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(2,came)', NULL)")
    session.end()


IMMEDIATE = (
    "CALL dbms_aq.dequeue('ora.orders', dbms_aq.dequeue_options_t(visibility => 1, correlation => %s), NULL, NULL::ora.order_t, NULL)"
)


@pytest.mark.parametrize("transaction", [False, True], ids=["autocommit", "in a transaction"])
def test_immediate_dequeue_waits_without_snapshot(server, conn, transaction):
    session = Session(server, IMMEDIATE.replace("%s", "'wan%'") if not transaction else IMMEDIATE.replace("%s", "NULL"), transaction)
    asleep(conn, session.pid, False)
    if not transaction:
        db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(0,other)', NULL)")
        asleep(conn, session.pid, False)
    db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, dbms_aq.message_properties_t(correlation => 'wanted'), '(4,wanted)', NULL)")
    assert "wanted" in str(session.end())


def test_immediate_is_seen_before_the_commit(server, conn):
    with psycopg.connect(server.conninfo()) as producer:
        producer.execute("CALL dbms_aq.enqueue('ora.orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(5,early)', NULL)")
        assert "early" in str(conn.execute(DEQUEUE).fetchone())
        producer.rollback()


def test_immediate_after_a_cancel(server, conn):
    with server.connect() as consumer:
        thread = threading.Thread(target=lambda: pytest.raises(psycopg.Error, consumer.execute, IMMEDIATE, [None]))
        pid = consumer.info.backend_pid
        thread.start()
        asleep(conn, pid, False)
        db.execute(conn, "SELECT pg_cancel_backend(%s)", [pid])
        thread.join(60)
        enqueue = "CALL dbms_aq.enqueue('ora.orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(6,again)', NULL)"
        consumer.execute(enqueue)
        assert db.value(conn, "SELECT aq.purge_queue('ora.orders')") == 1


def test_immediate_beside_own_locks(server):
    """The helper does not need the locks that a change of the queue holds; for others see test_immediate.py."""
    with psycopg.connect(server.conninfo()) as holder:
        holder.execute("CALL dbms_aqadm.alter_queue('ora.orders', comment => 'locked')")
        holder.execute("CALL dbms_aq.enqueue('ora.orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(8,free)', NULL)")
        holder.rollback()


def test_a_client_that_disconnects_gives_its_message_back(server, conn):
    db.execute(conn, "CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(3,back)', NULL)")
    consumer = psycopg.connect(server.conninfo())
    assert "back" in str(consumer.execute(DEQUEUE).fetchone())
    consumer.close()
    assert "back" in str(conn.execute(DEQUEUE).fetchone())


def test_dump_and_restore(server, new_server, tmp_path):
    """Queues, their views, transformations and rights of the packages come back."""
    with server.connect() as setup:
        setup.execute(
            "CALL dbms_transform.create_transformation('ora', 'shout', NULL, 'ora.order_t', NULL, 'ora.order_t', 'ROW((source.user_data).id, upper((source.user_data).note))')"
        )
        setup.execute("CALL dbms_aq.enqueue('ora.orders', NULL, NULL, '(7,kept)', NULL)")
    path = tmp_path / "packages"
    done = server.run("pg_dump", "--format=custom", f"--file={path}", dbname="postgres")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    copy = new_server("copy")
    with copy.connect() as empty:
        empty.execute("DROP EXTENSION IF EXISTS pgaq, pgaq_oracle")
    done = copy.run("pg_restore", "--exit-on-error", "-d", "postgres", str(path), dbname="postgres")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with copy.connect() as restored:
        assert db.value(restored, 'SELECT user_data::text FROM ora."aq$orders"') == "(7,kept)"
        row = restored.execute(
            "CALL dbms_aq.dequeue('ora.orders', dbms_aq.dequeue_options_t(wait => 10, transformation => 'ora.shout'), NULL, NULL::ora.order_t, NULL)"
        ).fetchone()
        assert "KEPT" in str(row)
