"""Keys of messages: where messages with a key go, who sees the key, and what keeps it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from conftest import until


def shards_of(conn, queue):
    return dict(conn.execute("SELECT key, shard FROM aq.messages WHERE queue_name = %s AND key IS NOT NULL", [queue]).fetchall())


@pytest.fixture
def keyed(conn, queue):
    """A queue with several shards."""
    conn.execute("SELECT aq.create_queue(%s, shards => 8, max_retries => 0, retry_delay => '0')", [queue + "_keyed"])
    return queue + "_keyed"


@pytest.mark.sharded("a queue table has no shards")
def test_a_key_has_one_shard_whoever_enqueues(server, conn, keyed):
    """Three sessions enqueue for forty keys, alone, as an array with one key, and as an array with many."""
    keys = [f"key {i}" for i in range(40)]
    for _ in range(3):
        with server.connect() as other:
            for key in keys:
                other.execute("SELECT aq.enqueue(%s, '1', key => %s)", [keyed, key])
                other.execute("SELECT aq.enqueue_array(%s, ARRAY['1', '2'], key => %s)", [keyed, key])
            other.execute(
                "SELECT aq.enqueue_array(%s, array_agg('1'::text), options => jsonb_agg(jsonb_build_object('key', k))) FROM unnest(%s::text[]) k",
                [keyed, keys],
            )
    rows = conn.execute(
        "SELECT key, count(DISTINCT shard), count(*) FROM aq.messages WHERE queue_name = %s GROUP BY key ORDER BY key", [keyed]
    ).fetchall()
    assert rows == sorted((key, 1, 12) for key in keys)
    assert len(set(shards_of(conn, keyed).values())) == 8


def test_an_array_of_keys_keeps_ids_and_order(conn, keyed):
    """The ids come in the order of the payloads, although the messages are stored shard by shard."""
    count = 200
    ids = conn.execute(
        "SELECT aq.enqueue_array(%s, array_agg(n::text ORDER BY n), options => jsonb_agg("
        "CASE n %% 7 WHEN 0 THEN NULL ELSE jsonb_build_object('key', n %% 5) END ORDER BY n)) FROM generate_series(1, %s) n".replace(
            "n %% 5", "(n %% 5)::text"
        ),
        [keyed, count],
    ).fetchone()[0]
    stored = dict(conn.execute("SELECT msgid, (payload, key) FROM aq.messages WHERE queue_name = %s", [keyed]).fetchall())
    assert [stored[i] for i in ids] == [(str(n), None if n % 7 == 0 else str(n % 5)) for n in range(1, count + 1)]
    taken = conn.execute("SELECT payload, key FROM aq.dequeue_full(%s, NULL::jsonb, max_messages => %s)", [keyed, count]).fetchall()
    by_key = defaultdict(list)
    for payload, key in taken:
        by_key[key].append(payload)
    assert len(taken) == count
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def test_order_over_sessions(server, conn, keyed):
    """A session enqueues for the key when the one before has committed: the messages come out in this order."""
    for number in range(60):
        with server.connect() as other:
            other.execute("SELECT aq.enqueue(%s, %s, key => %s)", [keyed, str(number), str(number % 3)])
    by_key = defaultdict(list)
    while rows := conn.execute("SELECT payload, key FROM aq.dequeue_full(%s, NULL::jsonb)", [keyed]).fetchall():
        by_key[rows[0][1]].append(rows[0][0])
    assert dict(by_key) == {str(k): list(range(k, 60, 3)) for k in range(3)}


def test_dequeue_by_key(conn, keyed):
    """Only messages of the key, in their order; one that waits for it is woken by it; LIKE has no meaning."""
    conn.execute(
        "SELECT aq.enqueue_array(%s, array_agg(n::text ORDER BY n), options => jsonb_agg(jsonb_build_object('key', (n %% 3)::text) ORDER BY n))"
        " FROM generate_series(1, 30) n", [keyed])  # fmt: skip
    by_key = "SELECT payload FROM aq.dequeue(%s, key => %s, max_messages => 100)"
    assert conn.execute("SELECT payload FROM aq.browse(%s, key => '2')", [keyed]).fetchall() == [(n,) for n in range(2, 31, 3)]
    assert conn.execute(by_key, [keyed, "1"]).fetchall() == [(n,) for n in range(1, 31, 3)]
    assert conn.execute(by_key, [keyed, "%"]).fetchall() == []
    assert conn.execute("SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state = 'READY'", [keyed]).fetchone() == (20,)


def test_a_dead_letter_keeps_its_key_and_redrive_too(conn, keyed):
    conn.execute("SELECT aq.enqueue(%s, '1', key => 'k')", [keyed])
    msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 minute')", [keyed]).fetchone()
    conn.execute("SELECT aq.reject(%s, %s, %s)", [keyed, msgid, receipt])
    letters = keyed + "_exceptions"
    until(lambda: conn.execute("SELECT key FROM aq.dead_letters WHERE exception_queue = %s", [letters]).fetchall() == [("k",)])
    assert conn.execute("SELECT aq.redrive(%s)", [keyed]).fetchone() == (1,)
    assert conn.execute("SELECT key FROM aq.dequeue_full(%s, NULL::jsonb)", [keyed]).fetchone() == ("k",)


def test_a_topic_of_each_consumer_sees_the_key(conn, queue):
    conn.execute("SELECT aq.create_queue(%s, multiple_consumers => true)", [queue + "_topic"])
    for name in ("a", "b"):
        conn.execute("SELECT aq.subscribe(%s, %s)", [queue + "_topic", name])
    conn.execute("SELECT aq.enqueue(%s, '1', key => 'k')", [queue + "_topic"])
    for name in ("a", "b"):
        rows = conn.execute("SELECT key FROM aq.dequeue_full(%s, NULL::jsonb, %s)", [queue + "_topic", name]).fetchall()
        assert rows == [("k",)]


def test_keys_survive_a_restart(server, conn, keyed):
    conn.execute("SELECT aq.enqueue(%s, '1', key => 'k'), aq.enqueue(%s, '2')", [keyed, keyed])
    server.restart()
    with server.connect() as other:
        rows = other.execute("SELECT payload, key FROM aq.dequeue_full(%s, NULL::jsonb, max_messages => 9)", [keyed]).fetchall()
        assert sorted(rows) == [(1, "k"), (2, None)]


@pytest.mark.parametrize("visibility", ["on_commit", "immediate"])
def test_immediate_visibility(conn, keyed, visibility):
    conn.execute("SELECT aq.enqueue(%s, '1', visibility => %s, key => 'k')", [keyed, visibility])
    conn.execute("SELECT aq.enqueue_array(%s, ARRAY['2'], visibility => %s, key => 'k')", [keyed, visibility])
    with conn.transaction():
        conn.execute("SELECT 1")
        rows = conn.execute("SELECT payload FROM aq.dequeue(%s, max_messages => 9, key => 'k', visibility => %s)", [keyed, visibility])
        assert rows.fetchall() == [(1,), (2,)]


def test_what_is_refused(conn, keyed):
    with pytest.raises(Exception, match="key is too long"):
        conn.execute("SELECT aq.enqueue(%s, '1', key => repeat('x', 513))", [keyed])
    with pytest.raises(Exception, match='"key" in element 1 of "options" must be a string'):
        conn.execute("SELECT aq.enqueue_array(%s, ARRAY['1'], options => '[{\"key\": 1}]')", [keyed])
    conn.execute("SELECT aq.enqueue(%s, '1', key => '')", [keyed])
    assert conn.execute("SELECT key FROM aq.dequeue_full(%s, NULL::jsonb)", [keyed]).fetchone() == ("",)
