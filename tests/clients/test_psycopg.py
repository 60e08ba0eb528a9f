"""The documented calls through psycopg: untyped parameters, typed objects, arrays,
pipelines, server-side cursors, prepared statements, autocommit on and off.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.json import Json, Jsonb

from pgaq import db

QUEUES = {"f": "jsonb", "f_text": "text", "f_bytea": "bytea", "f_xml": "xml", "f_row": "parcel"}


@pytest.fixture(scope="module", autouse=True)
def queues(server):
    with server.connect() as conn:
        conn.execute("CREATE TYPE parcel AS (id int, weight numeric, destination text)")
        for name, payload_type in QUEUES.items():
            conn.execute("SELECT aq.create_queue(%s, %s)", [name, payload_type])
        conn.execute("SELECT aq.create_queue(queue_name => %s, multiple_consumers => %s)", ["f_topic", True])
        conn.execute(
            "SELECT aq.subscribe(%s, %s), aq.subscribe(%s, consumer => %s, rule => %s)",
            ["f_topic", "ann", "f_topic", "bob", "priority = 0"],
        )


@pytest.fixture(params=["autocommit", "transactions", "prepared", "client-side binding", "binary results"])
def conn(request, server):
    """A connection in each way of working; everything is committed or empty at the end."""
    how = request.param
    more = {"cursor_factory": psycopg.ClientCursor} if how == "client-side binding" else {}
    if how == "prepared":
        more["prepare_threshold"] = 0
    with psycopg.connect(server.conninfo(), autocommit=how != "transactions", **more) as connection:
        connection.row_factory = dict_row
        yield connection
        connection.rollback()
    with server.connect() as cleaner:
        for name in [*QUEUES, "f_topic"]:
            cleaner.execute("SELECT aq.purge_queue(%s)", [name])


def values(conn, query, parameters=()):
    return [next(iter(row.values())) for row in conn.execute(query, parameters).fetchall()]


def test_enqueue_of_python_objects(conn):
    for payload in ('{"n": 1}', Json({"n": 1}), Jsonb({"n": 1})):
        (msgid,) = values(conn, "SELECT aq.enqueue(%s, %s)", ["f", payload])
        assert isinstance(msgid, uuid.UUID)
        row = conn.execute("SELECT * FROM aq.dequeue(%s)", ["f"]).fetchone()
        assert (row["msgid"], row["payload"], row["priority"], row["correlation"], row["attempts"], row["properties"]) == (
            msgid,
            {"n": 1},
            1,
            None,
            0,
            None,
        )
        assert row["enqueue_time"].tzinfo is not None


def test_named_arguments(conn):
    query = """SELECT aq.enqueue(queue_name => %(queue)s, payload => %(payload)s, priority => %(priority)s, delay => %(delay)s,
        expiration => %(expiration)s, correlation => %(correlation)s, recipients => %(recipients)s, sender => %(sender)s,
        exception_queue => %(exception_queue)s, properties => %(properties)s)"""
    conn.execute(
        query,
        {
            "queue": "f", "payload": "[1]", "priority": 2, "delay": timedelta(0), "expiration": timedelta(hours=1), "correlation": "c",
            "recipients": None, "sender": "me", "exception_queue": None, "properties": Jsonb({"a": 1}),
        },
    )  # fmt: skip
    row = conn.execute("SELECT * FROM aq.dequeue_full(%s, NULL::jsonb)", ["f"]).fetchone()
    assert (row["payload"], row["priority"], row["correlation"], row["sender"], row["properties"]) == ([1], 2, "c", "me", {"a": 1})
    assert timedelta(minutes=59) < row["expires_at"] - row["enqueue_time"] <= timedelta(minutes=61)


def test_nulls(conn):
    conn.execute("SELECT aq.enqueue(%s, %s, priority => %s, correlation => %s, recipients => %s)", ["f", "1", None, None, None])
    assert values(
        conn,
        "SELECT payload FROM aq.dequeue(%s, consumer => %s, correlation => %s, msgid => %s, condition => %s, wait => %s)",
        ["f", None, None, None, None, None],
    ) == [1]


def test_text(conn):
    for payload in ("", "hello", "two\nlines ü 😀 \\ '"):
        conn.execute("SELECT aq.enqueue(%s, %s)", ["f_text", payload])
        assert values(conn, "SELECT payload FROM aq.dequeue(%s, as_type => NULL::text)", ["f_text"]) == [payload]


def test_bytes(conn):
    for payload in (b"", b"\x00\xff", bytes(range(256)) * 40):
        conn.execute("SELECT aq.enqueue(%s, %s)", ["f_bytea", payload])
        assert values(conn, "SELECT payload FROM aq.dequeue(%s, as_type => NULL::bytea)", ["f_bytea"]) == [payload]


def test_bytes_in_binary(conn):
    if conn.cursor_factory is psycopg.ClientCursor:
        pytest.skip("client-side binding has no binary parameters")
    conn.execute("SELECT aq.enqueue(%s, %b)", ["f_bytea", b"\x00\x01"])
    row = conn.execute("SELECT payload FROM aq.dequeue(%s, as_type => NULL::bytea)", ["f_bytea"], binary=True).fetchone()
    assert row["payload"] == b"\x00\x01"


def test_xml(conn):
    conn.execute("SELECT aq.enqueue(%s, %s)", ["f_xml", "<a>1</a>"])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, as_type => NULL::xml)", ["f_xml"]) == ["<a>1</a>"]


def test_composite(conn):
    if conn.cursor_factory is psycopg.ClientCursor:
        pytest.skip("psycopg reads types by binary results")
    info = CompositeInfo.fetch(conn, "parcel")
    register_composite(info, conn)
    conn.execute("SELECT aq.enqueue(%s, ROW(%s, %s, %s)::parcel)", ["f_row", 1, 2.5, "Oslo"])
    conn.execute("SELECT aq.enqueue(%s, %s)", ["f_row", "(2,3.5,Rome)"])
    conn.execute("SELECT aq.enqueue(%s, %s)", ["f_row", info.python_type(3, 4, "Bern")])
    got = values(conn, "SELECT payload FROM aq.dequeue(%s, NULL::parcel, max_messages => %s)", ["f_row", 10])
    assert [(p.id, float(p.weight), p.destination) for p in got] == [(1, 2.5, "Oslo"), (2, 3.5, "Rome"), (3, 4.0, "Bern")]


def test_arrays(conn):
    (ids,) = values(conn, "SELECT aq.enqueue_array(%s, %s)", ["f", ["1", '{"a": "x,y"}', "3"]])
    assert len(ids) == 3 and all(isinstance(i, uuid.UUID) for i in ids)
    rows = conn.execute("SELECT msgid, payload FROM aq.dequeue(%s, max_messages => %s)", ["f", 10]).fetchall()
    assert [row["msgid"] for row in rows] == ids
    assert [row["payload"] for row in rows] == [1, {"a": "x,y"}, 3]
    conn.execute("SELECT aq.enqueue_array(%s, %s)", ["f", [Jsonb(4), Jsonb({"b": 5})]])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, max_messages => %s)", ["f", 10]) == [4, {"b": 5}]
    conn.execute("SELECT aq.enqueue_array(%s, %s)", ["f", [Json(6), Json({"c": 7})]])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, max_messages => %s)", ["f", 10]) == [6, {"c": 7}]
    conn.execute("SELECT aq.enqueue_array(%s, %s)", ["f_bytea", [b"\x01", b""]])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, as_type => NULL::bytea, max_messages => %s)", ["f_bytea", 10]) == [b"\x01", b""]
    conn.execute("SELECT aq.enqueue_array(%s, %s)", ["f_text", ["a", "b"]])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, as_type => NULL::text, max_messages => %s)", ["f_text", 10]) == ["a", "b"]


def test_receive(conn):
    """Messages are dictionaries, and every parameter is what Python has."""
    assert values(conn, "CALL aq.receive(%s, timeout => %s)", ["f", timedelta(milliseconds=10)]) == [[]]
    ids = values(conn, "SELECT unnest(aq.enqueue_array(%s, %s))", ["f", ["1", '{"a": "x"}', "3"]])
    conn.commit()
    (messages,) = values(conn, "CALL aq.receive(%s, max_messages => %s, timeout => %s)", ["f", 2, "1 minute"])
    assert [message["payload"] for message in messages] == [1, {"a": "x"}]
    assert [uuid.UUID(message["msgid"]) for message in messages] == ids[:2]
    assert datetime.fromisoformat(messages[0]["enqueue_time"]).tzinfo is not None
    (messages,) = values(conn, "CALL aq.receive(%s, condition => %s)", ["f", "payload = '3'"])
    assert [message["payload"] for message in messages] == [3]
    conn.execute("SELECT aq.enqueue(%s, %s)", ["f_topic", "1"])
    assert [message["payload"] for message in values(conn, "CALL aq.receive(%s, %s, %s)", ["f_topic", "ann", 10])[0]] == [1]


def test_empty_array(conn):
    assert values(conn, "SELECT aq.enqueue_array(%s, %s)", ["f", []]) == [[]]


def test_topic(conn):
    conn.execute("SELECT aq.enqueue(%s, %s, priority => %s)", ["f_topic", "1", 0])
    conn.execute("SELECT aq.enqueue(%s, %s, recipients => %s)", ["f_topic", "2", ["ann", "guest"]])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, %s, %s)", ["f_topic", "ann", 10]) == [1, 2]
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => %s)", ["f_topic", "bob", 10]) == [1]
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, NULL::jsonb, %s)", ["f_topic", "guest"]) == [2]


def test_choice(conn):
    (first,) = values(conn, "SELECT aq.enqueue(%s, %s, correlation => %s)", ["f", "1", "x1"])
    (second,) = values(conn, "SELECT aq.enqueue(%s, %s, correlation => %s)", ["f", "2", "x2"])
    assert values(conn, "SELECT payload FROM aq.browse(%s)", ["f"]) == [1, 2]
    assert values(conn, "SELECT payload FROM aq.browse(%s, after => %s)", ["f", first]) == [2]
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, msgid => %s)", ["f", second]) == [2]
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, mode => %s, correlation => %s)", ["f", "browse", "x%"]) == [1]
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, condition => %s)", ["f", "correlation = 'x1'"]) == [1]


def test_wait_and_listen(conn):
    assert values(conn, "CALL aq.wait(%s, NULL, %s, NULL)", ["f", "10 ms"]) == [False]
    conn.execute("SELECT aq.enqueue(%s, %s)", ["f", "1"])
    conn.commit()
    assert values(conn, "CALL aq.wait(%s, %s, %s, %s)", ["f", None, timedelta(seconds=10), None]) == [True]
    assert values(conn, "CALL aq.wait('f', NULL, '1 minute', NULL)") == [True]
    row = conn.execute("CALL aq.listen(%s, %s, %s, NULL, NULL)", [["f_topic", "f"], ["ann", None], "10 s"]).fetchone()
    assert row == {"queue_name": "f", "consumer": None}
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, wait => %s)", ["f", timedelta(seconds=1)]) == [1]


def test_wait_sees_own_uncommitted_messages(conn):
    """What dequeue would return at once is not waited for."""
    with conn.transaction():
        conn.execute("SELECT aq.enqueue(%s, %s)", ["f", "1"])
        assert values(conn, "CALL aq.wait(%s, NULL, %s, NULL)", ["f", "1 s"]) == [True]
        assert values(conn, "SELECT payload FROM aq.dequeue(%s)", ["f"]) == [1]


def test_many_times(conn):
    """Past every threshold for prepared statements."""
    for number in range(20):
        conn.execute("SELECT aq.enqueue(%s, %s)", ["f", str(number)])
        assert values(conn, "SELECT payload FROM aq.dequeue(%s)", ["f"]) == [number]


def test_executemany(conn):
    with conn.cursor() as cursor:
        cursor.executemany("SELECT aq.enqueue(%s, %s)", [("f", str(number)) for number in range(50)])
    assert values(conn, "SELECT payload FROM aq.dequeue(%s, max_messages => %s)", ["f", 100]) == list(range(50))


def test_pipeline(conn):
    if conn.cursor_factory is psycopg.ClientCursor:
        pytest.skip("client-side binding has no pipeline")
    with conn.pipeline():
        for number in range(30):
            conn.execute("SELECT aq.enqueue(%s, %s)", ["f", str(number)])
        cursor = conn.execute("SELECT payload FROM aq.dequeue(%s, max_messages => %s)", ["f", 100])
    assert [row["payload"] for row in cursor.fetchall()] == list(range(30))


def test_server_side_cursor(conn):
    conn.execute("SELECT aq.enqueue_array(%s, %s)", ["f", [str(n) for n in range(50)]])
    with conn.transaction(), psycopg.ServerCursor(conn, "many") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT payload FROM aq.dequeue('f', max_messages => 50)")
        assert [row["payload"] for row in cursor] == list(range(50))


def test_transactions_and_savepoints(conn):
    with conn.transaction():
        conn.execute("SELECT aq.enqueue(%s, %s)", ["f", "1"])
        with pytest.raises(ZeroDivisionError), conn.transaction():
            conn.execute("SELECT aq.enqueue(%s, %s)", ["f", "2"])
            raise ZeroDivisionError
        with conn.transaction():
            conn.execute("SELECT aq.enqueue(%s, %s)", ["f", "3"])
    with pytest.raises(ZeroDivisionError), conn.transaction():
        assert values(conn, "SELECT payload FROM aq.dequeue(%s)", ["f"]) == [1]
        raise ZeroDivisionError
    assert [(row["payload"], row["attempts"]) for row in conn.execute("SELECT * FROM aq.dequeue('f', max_messages => 9)")] in (
        [(1, 1), (3, 0)],
        [(1, 0), (3, 0)],
    )


def test_errors_by_sqlstate(conn):
    for query, state in (
        ("SELECT aq.enqueue('no such queue', '1')", "42704"),
        ("SELECT aq.dequeue('f_topic')", "22004"),
        ("SELECT aq.enqueue('f', '1', priority => 10)", "22023"),
        ("CALL aq.wait('f', 'x', '0', NULL)", "42809"),
    ):
        with pytest.raises(psycopg.Error) as caught:
            conn.execute(query)
        assert caught.value.sqlstate == state, query
        conn.rollback()


def test_the_loop_of_the_documentation(server):
    """docs/start.md: wait outside a transaction, take and work inside one."""
    sent = []
    with psycopg.connect(server.conninfo(), autocommit=True) as other:
        other.execute("SELECT aq.enqueue_array('f', ARRAY['1', '2', '3'])")
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        while len(sent) < 3:
            conn.execute("CALL aq.wait('f', NULL, '1 minute', NULL)")
            with conn.transaction():
                for _, payload in conn.execute("SELECT msgid, payload FROM aq.dequeue('f', max_messages => 10)"):
                    sent.append(payload)
    assert sent == [1, 2, 3]


def test_async(server):
    """Two hundred messages between coroutines; cancelling a wait leaves the connection usable."""

    async def scenario():
        got = []
        async with (
            await psycopg.AsyncConnection.connect(server.conninfo(), autocommit=True) as producer,
            await psycopg.AsyncConnection.connect(server.conninfo(), autocommit=True) as consumer,
        ):

            async def produce():
                for number in range(200):
                    await producer.execute("SELECT aq.enqueue(%s, %s)", ["f", str(number)])

            async def consume():
                while len(got) < 200:
                    await consumer.execute("CALL aq.wait('f', NULL, '1 minute', NULL)")
                    cursor = await consumer.execute("SELECT payload FROM aq.dequeue('f', max_messages => 10)")
                    got.extend([row[0] for row in await cursor.fetchall()])

            await asyncio.gather(produce(), consume())
        return got

    assert asyncio.run(scenario()) == list(range(200))


@pytest.fixture(scope="module")
def packages(server):
    """A queue and a topic of dbms_aqadm."""
    with server.connect() as conn:
        conn.execute("CREATE SCHEMA ora")
        for name, multiple in (("q", False), ("topic", True)):
            conn.execute(
                "CALL dbms_aqadm.create_sharded_queue(%s, multiple_consumers => %s, queue_payload_type => 'JSON')",
                [f"ora.{name}", multiple],
            )
            conn.execute("CALL dbms_aqadm.start_queue(%s)", [f"ora.{name}"])
        conn.execute("CALL dbms_aqadm.add_subscriber('ora.topic', sys.aq$_agent(%s, NULL, NULL))", ["ANN"])


def test_dbms_aq(conn, packages):
    call = "CALL dbms_aq.enqueue(%s, NULL, dbms_aq.message_properties_t(priority => %s, correlation => %s), %s, NULL)"
    (first,) = values(conn, call, ["ORA.Q", 2, "c", '{"n": 1}'])
    (second,) = values(conn, call, ["ora.q", 0, None, Jsonb({"n": 2})])
    row = conn.execute("CALL dbms_aq.dequeue(%s, dbms_aq.dequeue_options_t(wait => %s), NULL, NULL::jsonb, NULL)", ["ora.q", 5]).fetchone()
    assert (row["payload"], row["msgid"]) == ({"n": 2}, second)
    row = conn.execute(
        "CALL dbms_aq.dequeue(%s, dbms_aq.dequeue_options_t(wait => 5, navigation => 1, correlation => %s), NULL, NULL::text, NULL)",
        ["ora.q", "c%"],
    ).fetchone()
    assert (row["payload"], row["msgid"]) == ('{"n": 1}', first)


def test_dbms_aq_arrays(conn, packages):
    properties = "ARRAY[NULL, dbms_aq.message_properties_t(priority => 0)]::dbms_aq.message_properties_t[]"
    row = conn.execute(
        f"CALL dbms_aq.enqueue_array('ora.q', NULL, 2, {properties}, %s::jsonb[], NULL, NULL, NULL)", [['"a"', '"b"']]
    ).fetchone()
    assert row["enqueued"] == 2 and len(row["msgid_array"]) == 2
    row = conn.execute(
        "CALL dbms_aq.dequeue_array('ora.q', dbms_aq.dequeue_options_t(wait => 5, navigation => 1), 10, NULL, NULL::jsonb[], NULL, NULL, NULL)"
    ).fetchone()
    assert (row["dequeued"], row["payload_array"]) == (2, ["b", "a"])


def test_dbms_aq_listen_and_nothing(conn, packages):
    with pytest.raises(psycopg.Error) as error:
        conn.execute(
            "CALL dbms_aq.dequeue('ora.topic', dbms_aq.dequeue_options_t(consumer_name => 'ann', wait => 0), NULL, NULL::jsonb, NULL)"
        )
    assert error.value.sqlstate == "AQ063" and "ORA-25228" in str(error.value)
    conn.rollback()
    conn.execute("CALL dbms_aq.enqueue('ora.topic', NULL, NULL, '1', NULL)")
    conn.commit()
    row = conn.execute("CALL dbms_aq.listen(ARRAY[sys.aq$_agent(%s, 'ora.topic', NULL)], %s, NULL)", ["ANN", 5]).fetchone()
    assert "ANN" in str(row["agent"])
    row = conn.execute(
        "CALL dbms_aq.dequeue('ora.topic', dbms_aq.dequeue_options_t(consumer_name => %s, wait => 5), NULL, NULL::jsonb, NULL)", ["Ann"]
    ).fetchone()
    assert row["payload"] == 1
    conn.commit()


def test_cancel_while_waiting(server):
    import threading

    with psycopg.connect(server.conninfo(), autocommit=True) as conn, server.connect() as watcher:
        outcome = []

        def wait():
            try:
                conn.execute("CALL aq.wait('f', NULL, NULL, NULL)")
            except psycopg.errors.QueryCanceled as error:
                outcome.append(error.sqlstate)

        thread = threading.Thread(target=wait)
        thread.start()
        query = "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = %s"
        while not db.value(watcher, query, [conn.info.backend_pid]):
            pass
        conn.cancel()
        thread.join(30)
        assert outcome == ["57014"]
        conn.execute("SELECT aq.enqueue('f', '1')")
        assert conn.execute("SELECT payload FROM aq.dequeue('f')").fetchone()[0] == 1


def test_dbms_aq_program(server):
    """The Python program of docs/oracle.md: properties with fields, and a list of agents."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "oracle.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    printed = []
    with server.connect() as conn:
        conn.execute("CREATE SCHEMA shop")
        conn.execute("CREATE TYPE shop.order_t AS (id integer, customer text, total numeric)")
        conn.execute(
            "CALL dbms_aqadm.create_sharded_queue('shop.orders', queue_payload_type => 'shop.order_t', multiple_consumers => true)"
        )
        conn.execute("CALL dbms_aqadm.start_queue('shop.orders')")
        with psycopg.connect(server.conninfo()) as own:
            exec(program, {"conn": own, "print": lambda *values: printed.append(values)})
        assert printed == [("from python", 1, "(7,Lin,20)")]
        left = "SELECT array_agg(consumer_name) FROM shop.aq$orders WHERE msg_state = 'READY'"
        assert db.value(conn, left) == ["BILLING"]
