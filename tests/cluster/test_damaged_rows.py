"""What a superuser may have written into the tables of messages: an error names the queue, and no process ends."""

from __future__ import annotations

import pytest

from conftest import generation, put, until
from pgaq import db

pytestmark = pytest.mark.own_tables

# by the queue: what is written, and what its error says
ROWS = {
    "shard": ("q{sharded}_1", "stream = -5", "stream -5"),
    "no shard": ("q{sharded}_1", "stream = 32767", "stream 32767"),
    "log": ("l{sharded}_1", "consumer = 5000", "consumer 5000"),
    "log, negative": ("l{sharded}_1", "consumer = -7", "consumer -7"),
    "queue": ("t{single}", "position = 5000", "position 5000"),
    "topic": ("c{topic}", "position = 5000", "position 5000"),
    "topic, negative": ("c{topic}", "position = -1", "position -1"),
}


def make(conn):
    """A queue of each kind with a message, of which one in the log, one waiting and one leased."""
    conn.execute(
        "SELECT aq.create_queue('sharded', shards => 1), aq.create_queue_table('t_single'), aq.create_queue_table('t_topic', multiple_consumers => true)"
    )
    conn.execute(
        "SELECT aq.create_queue('single', queue_table => 't_single'), aq.create_queue('topic', queue_table => 't_topic'), aq.create_queue('kept', shards => 1)"
    )
    conn.execute("SELECT aq.subscribe('topic', 's')")
    for queue in ("sharded", "single", "topic", "kept"):
        consumer = "s" if queue == "topic" else None
        put(conn, queue, 1), put(conn, queue, 2), put(conn, queue, 3), put(conn, queue, 4)
        conn.execute("SELECT FROM aq.dequeue(%s, consumer => %s)", [queue, consumer])
        conn.execute("SELECT FROM aq.dequeue(%s, consumer => %s, lease => '2 seconds')", [queue, consumer])
        put(conn, queue, 5, delay="1 second")
        put(conn, queue, 6, expiration="1 second")
    return db.row(
        conn,
        """SELECT max(queue_id) FILTER (WHERE queue_name = 'sharded') AS sharded, max(queue_table_id) FILTER (WHERE queue_name = 'single') AS single,
        max(queue_table_id) FILTER (WHERE queue_name = 'topic') AS topic FROM aq_internal.queue""",
    )


def use(server, queue, consumer):
    """All that reads rows; the errors."""
    errors = []
    for statement in (
        f"SELECT FROM aq.messages WHERE queue_name = '{queue}'",
        f"SELECT FROM aq.metrics('{queue}')",
        "SELECT FROM aq.subscribers",
        f"SELECT FROM aq.enqueue('{queue}', '7')",
        f"SELECT FROM aq.dequeue('{queue}', consumer => {consumer}, max_messages => 100)",
        f"SELECT FROM aq.browse('{queue}', consumer => {consumer})",
        "SELECT FROM aq.check()",
    ):
        with server.connect() as conn:
            try:
                conn.execute(statement)
            except db.Error as error:
                errors.append(str(error))
    return errors


@pytest.mark.parametrize("what", ROWS)
def test_rows(new_server, what):
    """A number that no row of ours has."""
    own = new_server("damaged_rows")
    own.expect_log(r"is damaged")
    with own.connect() as conn:
        ids = make(conn)
    own.restart()
    table, change, said = ROWS[what]
    table = table.format(**ids)
    queue = {"q": "sharded", "l": "sharded", "t": "single", "c": "topic"}[table[0]]
    with own.connect() as conn:
        column, value = change.split(" = ")
        only = "true" if table[0] in "ql" else f"queue_id = (SELECT queue_id FROM aq_internal.queue WHERE queue_name = '{queue}')"
        conn.execute(f'UPDATE aq_data.{table} SET "{column}" = {value} WHERE {only}')
    own.restart()
    before = generation(own)
    errors = use(own, queue, "'s'" if queue == "topic" else "NULL")
    with own.connect() as conn:
        until(
            lambda: db.value(conn, "SELECT count(*) = 0 FROM aq.messages WHERE queue_name = 'kept' AND state IN ('WAITING')"), "the worker"
        )
        damaged = f'table "aq_data.{table}" of queue "{queue}" is damaged: a row has {said}'
        until(lambda: any(damaged in error for error in errors) or damaged in own.log_text(), "the error, of a session or the worker")
        if table[0] in "tc":
            conn.execute(f'DELETE FROM aq_data.{table} WHERE "{column}" = {value}')
        conn.execute("SELECT aq.drop_queue(%s, force => true)", [queue])
    assert generation(own) == before


def test_a_view_in_the_place_of_a_table(new_server):
    """It counts as no table."""
    own = new_server("damaged_tables")
    own.expect_log(r"is missing|could not open relation")
    with own.connect() as conn:
        conn.execute("SELECT aq.create_queue('sharded', shards => 1), aq.create_queue('kept', shards => 1)")
        put(conn, "sharded", 1), put(conn, "kept", 1)
        table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'sharded' AND messages IS NOT NULL LIMIT 1")
    own.restart()
    with own.connect() as conn:
        conn.execute(f"CREATE TABLE public.copy AS TABLE {table}; DROP TABLE {table}; CREATE VIEW {table} AS SELECT * FROM public.copy")
    own.restart()
    before = generation(own)
    errors = use(own, "sharded", "NULL")
    assert generation(own) == before
    assert any(f'table "{table}" is missing' in error for error in errors), errors
    with own.connect() as conn:
        assert db.value(conn, "SELECT array_agg(payload) FROM aq.messages WHERE queue_name = 'kept'") == ["1"]
        conn.execute(f"DROP VIEW {table}; SELECT aq.drop_queue('sharded', force => true)")
