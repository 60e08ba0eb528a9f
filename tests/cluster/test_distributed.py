"""Distributed queues: messages that are enqueued on one node and consumed on another, each once, whatever happens to either, or to the network between them."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, arrived, drop, held, look, put, put_many, take, until
from nodes import NAMES, Load, Shared, joined, three_servers, value
from pgaq import db
from pgaq_proof import faults
from tcp_proxy import Proxy
from test_prepare import FINISH, disturb, prepare

pytestmark = pytest.mark.test_build

POINTS = "ab"
TRACED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ELSEWHERE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def servers(library):
    with three_servers(library, POINTS, max_prepared_transactions="10") as made:
        yield made


@pytest.fixture
def nodes(servers):
    with joined(servers, POINTS) as made:
        yield made
    for server in servers:
        assert faults.differences(server, "20 s") == []


@pytest.fixture
def queue(nodes):
    """A queue on all nodes with one shard, so with one unit."""
    made = Shared(nodes, f"d{next(_numbers)}", shards=1)
    yield made
    made.drop()


@pytest.fixture
def wide(nodes):
    """A queue with four shards."""
    made = Shared(nodes, f"d{next(_numbers)}")
    yield made
    made.drop()


@pytest.fixture
def topic(nodes):
    """A topic with the subscribers x and y."""
    made = Shared(nodes, f"d{next(_numbers)}", ("x", "y"), shards=1)
    yield made
    made.drop()


# -- messages


def test_consumed_elsewhere(nodes, queue):
    """Messages of one node are consumed on another, in order, and are done where they came from."""
    a, b, c = nodes
    before = a.now("b")
    with a.connect() as here, b.connect() as there:
        ids = queue.put_and_lend(here, b, *range(1, 6))
        assert queue.states(a) == {"LEASED": 5} and queue.states(b) == {"READY": 5}
        assert there.execute(
            "SELECT original_msgid::text FROM aq.messages WHERE queue_name = %s ORDER BY payload", [queue.name]
        ).fetchall() == [(each,) for each in ids]
        assert arrived(there, queue.name, 5) == [1, 2, 3, 4, 5]
    queue.settled(a)
    assert queue.states(a) == queue.states(b) == {}
    after = a.now("b")
    assert (after["forwarded"] - before["forwarded"], after["reported"] - before["reported"]) == (5, 5)


def test_topic(nodes, topic):
    """Each subscriber of a topic gets what its rule lets through, on the node where it consumes."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there, c.connect() as third:
        here.execute("SELECT aq.alter_subscriber(%s, 'x', rule => 'priority < 3')", [topic.name])
        for n in range(1, 7):
            put(here, topic.name, n, priority=n)
        assert arrived(there, topic.name, 2, "x") == [1, 2]
        assert arrived(third, topic.name, 6, "y") == [1, 2, 3, 4, 5, 6]
    topic.settled(a)
    assert topic.states(a) == {}


def test_order(nodes, wide):
    """Messages of a session with one priority keep their order, and urgent ones come first of those that are sent together."""
    a, b, c = nodes
    with a.connect() as one, a.connect() as two, b.connect() as there:
        for n in range(100):
            put(one, wide.name, ["one", n], priority=1 + n % 2)
            put(two, wide.name, ["two", n], priority=1 + n % 2)
        got = arrived(there, wide.name, 200)
    for session in ("one", "two"):
        mine = [n for name, n in got if name == session]
        assert mine == [*range(0, 100, 2), *range(1, 100, 2)]


def test_properties(nodes, queue):
    """Priority, correlation, key, properties, sender and payload arrive as they were sent."""
    a, b, c = nodes
    query = "SELECT payload, priority, correlation, key, properties, sender FROM aq.messages WHERE queue_name = %s"
    with a.connect() as here, b.connect() as there:
        put(
            here, queue.name, {"text": 'ä\\"{},NULL'}, priority=3, correlation='x,{y}"', key='NULL,{y}"', properties='{"p": [1, null, "q"]}'
        )
        sent = here.execute(query, [queue.name]).fetchall()
        queue.lend(b)
        queue.holds(b, 1)
        assert there.execute(query, [queue.name]).fetchall() == sent


def test_trace_context(nodes, queue):
    """A message has the trace context of the session that enqueued it, not that of the role of a link."""
    a, b, c = nodes
    query = "SELECT payload, properties ->> 'traceparent' FROM aq.messages WHERE queue_name = %s ORDER BY payload"
    with a.connect() as here, b.connect() as there:
        there.execute(f"ALTER DATABASE {there.info.dbname} SET pgaq.traceparent = '{ELSEWHERE}'")
        try:
            there.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
            )
            put(here, queue.name, 1)
            here.execute("SELECT set_config('pgaq.traceparent', %s, false)", [TRACED])
            put(here, queue.name, 2)
            queue.lend(b)
            queue.holds(b, 2)
            assert there.execute(query, [queue.name]).fetchall() == [("1", None), ("2", TRACED)]
        finally:
            there.execute(f"ALTER DATABASE {there.info.dbname} RESET pgaq.traceparent")


def test_client_encoding(nodes, queue):
    """Texts arrive as they are, whatever encoding the database sets for its clients."""
    a, b, c = nodes
    ends_link = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'pgaq link'"
    with a.connect() as here, b.connect() as there:
        here.execute("ALTER DATABASE postgres SET client_encoding = 'latin1'")
        try:
            here.execute(ends_link)
            queue.put_and_lend(here, b, "ä €", correlation="ä €")
        finally:
            here.execute("ALTER DATABASE postgres RESET client_encoding")
            here.execute(ends_link)
        assert there.execute("SELECT payload, correlation FROM aq.dequeue(%s)", [queue.name]).fetchall() == [("ä €", "ä €")]


def test_rollback(nodes, queue):
    """Messages whose dequeue is rolled back stay at the holder, as tried, in front of the others."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2, 3)
        there.execute("BEGIN")
        assert take(there, queue.name, number=2) == [1, 2]
        there.execute("ROLLBACK")
        got = []
        while len(got) < 3:
            got += there.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 3, wait => '10 s')", [queue.name]).fetchall()
        assert got == [(1, 1), (2, 1), (3, 0)]


def test_savepoint(nodes, queue):
    """What is dequeued after a savepoint that is rolled back is not consumed; the rest of the transaction is."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2, 3)
        there.execute("BEGIN")
        assert take(there, queue.name, number=1) == [1]
        there.execute("SAVEPOINT s")
        assert take(there, queue.name, number=1) == [2]
        there.execute("ROLLBACK TO s")
        there.execute("COMMIT")
        until(lambda: queue.states(a) == {"LEASED": 2}, "the report of one message")
        assert arrived(there, queue.name, 2) == [2, 3]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_prepared(nodes, queue, how, finish):
    """A dequeue in a prepared transaction keeps its unit, also over a crash of the holder, until it is finished."""
    a, b, c = nodes
    with a.connect() as here:
        put(here, queue.name, 1, 2, 3)
    queue.lend(b)
    queue.holds(b, 3)
    assert prepare(b.server, queue.name, "d", dequeue=2) == [1, 2]
    disturb(b.server, how)
    queue.ask_back(a, at_once=True)
    until(lambda: [unit["returns"] for unit in queue.units(b, "held")] == [True], "the recall")
    with b.connect() as there:
        assert take(there, queue.name) == []
        other_comes_back(nodes)
        assert queue.states(a) == {"LEASED": 3}
        there.execute(f"{finish} 'd'")
    until(lambda: queue.units(b, "held") == [], "the return")
    rest = [3] if finish == "COMMIT PREPARED" else [1, 2, 3]
    with a.connect() as here:
        assert arrived(here, queue.name, len(rest)) == rest


def other_comes_back(nodes):
    """A unit of another queue goes from a to b and back: whatever could go back before has gone back."""
    a, b, c = nodes
    other = Shared(nodes, f"d{next(_numbers)}", shards=1)
    with a.connect() as here:
        put(here, other.name, 1)
    other.lend(b)
    other.holds(b, 1)
    returned = a.now("b")["returned"]
    other.ask_back(a, at_once=True)
    until(lambda: a.now("b")["returned"] > returned, "the return of another queue's unit")
    for node in nodes:
        value(node, "SELECT aq.drop_queue(%s, force => true)", [other.name])


def test_lease_keeps_the_unit(nodes, queue):
    """A unit with a leased message does not go back before it is acknowledged."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2)
        msgid, receipt = there.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 hour')", [queue.name]).fetchone()
        queue.ask_back(a, at_once=True)
        until(lambda: [unit["returns"] for unit in queue.units(b, "held")] == [True], "the recall")
        other_comes_back(nodes)
        assert queue.states(a) == {"LEASED": 2}
        assert db.value(there, "SELECT result FROM aq.acknowledge(%s, ARRAY[%s::uuid], %s)", [queue.name, msgid, receipt]) == "done"
        until(lambda: queue.units(b, "held") == [], "the return")
        assert arrived(here, queue.name, 1) == [2]


def test_retries(nodes):
    """A message that fails too often goes to the exception queue of the node where it fails, and is done at its origin."""
    a, b, c = nodes
    queue = Shared(nodes, f"d{next(_numbers)}", shards=1, max_retries=2, retry_delay="0")
    dead = f"{queue.name}_exceptions"
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2)
        for _ in range(3):
            until(lambda: fails(there, queue.name) == [1], "the message again")
        assert dead_letters(there, dead, 1) == [1]
        until(lambda: queue.states(a) == {"LEASED": 1}, "the report of the failed message")
        assert arrived(there, queue.name, 1) == [2]
        assert look(here, dead) == []
    queue.drop()


def fails(conn, queue):
    """Dequeue and roll back."""
    conn.execute("BEGIN")
    got = take(conn, queue, number=1)
    conn.execute("ROLLBACK")
    return got


def dead_letters(conn, queue, number):
    """Exception queues are not started."""
    until(lambda: len(look(conn, queue)) == number, "the messages in the exception queue")
    return look(conn, queue)


def test_expiration(nodes, queue):
    """A message expires at the holder, and is done at its origin."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put(here, queue.name, 1, expiration="2 s")
        put(here, queue.name, 2)
        queue.lend(b)
        until(lambda: queue.states(a) == {"LEASED": 1}, "the report of the expired message")
        assert dead_letters(there, f"{queue.name}_exceptions", 1) == [1]
        assert look(here, f"{queue.name}_exceptions") == []
        assert arrived(there, queue.name, 1) == [2]


def test_purge_browse_and_id(nodes, queue):
    """Messages of other nodes are browsed, purged, and dequeued by id at the holder, and then done at their origin, which cannot purge them."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        ids = queue.put_and_lend(here, b, 1, 2, 3)
        assert look(there, queue.name) == [1, 2, 3]
        msgid = db.value(there, "SELECT msgid FROM aq.messages WHERE original_msgid = %s", [ids[1]])
        assert db.value(there, "SELECT aq.purge_queue(%s, condition => 'payload = ''1''')", [queue.name]) == 1
        until(lambda: queue.states(a) == {"LEASED": 2}, "the report of the purged message")
        assert there.execute("SELECT payload FROM aq.dequeue(%s, msgid => %s)", [queue.name, msgid]).fetchall() == [(2,)]
        until(lambda: queue.states(a) == {"LEASED": 1}, "the report of the message that was taken by its id")
        assert db.value(here, "SELECT aq.purge_queue(%s)", [queue.name]) == 0
        assert here.execute("SELECT payload FROM aq.dequeue(%s, msgid => %s)", [queue.name, ids[2]]).fetchall() == []
        assert arrived(there, queue.name, 1) == [3]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_level(nodes, queue, level):
    """Databases with another isolation level by default, for their processes and for consumers."""
    a, b, c = nodes
    set_isolation(a, b, f"SET default_transaction_isolation = '{level}'")
    try:
        with a.connect() as here, b.connect() as there:
            queue.put_and_lend(here, b, 1, 2)
            there.execute("BEGIN")
            assert take(there, queue.name, number=1) == [1]
            there.execute("COMMIT")
            queue.ask_back(a, at_once=True)
            until(lambda: queue.units(b, "held") == [], "the return")
            assert arrived(here, queue.name, 1) == [2]
    finally:
        set_isolation(a, b, "RESET default_transaction_isolation")


def set_isolation(a, b, command):
    """For new processes; those that there are end."""
    for node in (a, b):
        with node.connect() as conn:
            conn.execute(f"ALTER DATABASE postgres {command}")
            conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'pgaq %' OR usename = 'remote'")


def test_backlog(nodes, queue):
    """More messages than a partition has, and than a holder gets ahead, are consumed in order on another node."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put_many(here, queue.name, 1, 20_000)
        assert arrived(there, queue.name, 20_000) == list(range(1, 20_001))
    queue.settled(a)


def test_failed_request_is_no_attempt(nodes, queue):
    """Messages whose request fails before it is sent keep their place, and were not tried."""
    a, b, c = nodes
    faults.arm(a.server, "node-lent", "error")
    with a.connect() as here:
        queue.put_and_lend(here, b, *range(1, 11))
        assert value(a, "SELECT aq.point_reached('node-lent')") > 1
        queue.ask_back(a, at_once=True)
        until(lambda: queue.units(b, "held") == [], "the return")
        got = []
        until(
            lambda: (
                got.extend(here.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 10)", [queue.name])) or len(got) == 10
            ),
            "the messages",
        )
        assert got == [(n, 0) for n in range(1, 11)]


def test_dump_of_a_holder(nodes, queue, tmp_path):
    """A database that is restored from a holder's dump delivers its own messages, and drops those of others, which their origin delivers."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2)
        put(there, queue.name, 3)
        done = b.server.run("pg_dump", f"--file={tmp_path / 'dump'}")
        assert done.returncode == 0, done.stderr
        there.execute("CREATE DATABASE restored")
        done = b.server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "dump"), dbname="restored")
        assert done.returncode == 0, done.stderr
        with b.server.connect("restored") as restored:
            assert arrived(restored, queue.name, 1) == [3]
            until(
                lambda: db.value(restored, "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state = 'READY'", [queue.name]) == 0,
                "the others are dropped",
            )
            until(lambda: db.rows(restored, "SELECT * FROM aq.check()") == [], "nothing left over")
        there.execute("DROP DATABASE restored WITH (FORCE)")
        assert sorted(arrived(there, queue.name, 3)) == [1, 2, 3]


@pytest.mark.long
def test_large_messages(nodes, queue):
    """Large messages behind many small ones do not fit into a request together: they arrive in order, and none is marked as tried."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.lend(b)
        put_many(here, queue.name, 1, 2000)
        assert arrived(there, queue.name, 2000) == list(range(1, 2001))  # now a request has many
        here.execute("SELECT aq.enqueue(%s, to_jsonb(n || repeat('x', 8000000))) FROM generate_series(10, 39) n", [queue.name])
        queue.holds(b, 30)
        got = [
            (row[0], row[1])
            for row in there.execute(
                "SELECT left(payload #>> '{}', 2)::int, attempts FROM aq.dequeue(%s, max_messages => 100)", [queue.name]
            )
        ]
        assert got == [(n, 0) for n in range(10, 40)]


# -- units


def lent(queue, node):
    """Where its units are: the server of each that is not at home."""
    return [unit["server"] for unit in queue.units(node, "lent")]


def test_units_go_where_consumers_are(nodes, wide):
    """All units of a node without consumers go to the node that has some; the other one holds none."""
    a, b, c = nodes
    until(lambda: wide.lend(b) or lent(wide, a) == ["b"] * 4, "all units")
    assert lent(wide, b) == [] and wide.units(c, "held") == []


def test_units_are_shared(nodes, wide):
    """Of two nodes with consumers each gets half of the units; when the second one comes later, the first one gives its half back after a while."""
    a, b, c = nodes
    other = Shared(nodes, f"d{next(_numbers)}")
    wide.lend(a)
    wide.lend(b)
    until(lambda: wide.lend(a) or wide.lend(b) or lent(wide, a) == ["b", "b"], "half of them")
    until(lambda: other.lend(b) or lent(other, a) == ["b"] * 4, "all units")
    until(lambda: other.lend(a) or other.lend(b) or lent(other, a) == ["b", "b"], "half of them again")
    until(lambda: other.lend(a) or other.lend(b) or lent(other, b) == ["a", "a"], "half of those of the other one")
    other.drop()


def test_units_stay(nodes, wide, seed):
    """While all nodes have consumers, each has some of the units of each, and the units stay where they are."""

    def shares(node):
        servers = lent(wide, node)
        return sorted((4 - len(servers), *(servers.count(name) for name in NAMES if node.now(name))))

    def ages():
        return [
            value(
                node, "SELECT clock_timestamp() - min(since) FROM aq.node_units WHERE queue_name = %s AND direction = 'lent'", [wide.name]
            )
            for node in nodes
        ]

    def counters():
        return [
            (row["server"], row["granted"], row["returned"])
            for node in nodes
            for row in (node.now(name) for name in NAMES if node.now(name))
        ]

    for node in nodes:
        wide.lend(node)
    with Load(nodes, wide.name, seed) as load:
        until(lambda: all(shares(node) == [1, 1, 2] for node in nodes), "an even distribution")
        before = counters()
        until(lambda: all(age.total_seconds() > 7 for age in ages()), "units that have not moved for long")
        assert counters() == before
        print(load.finish())


def test_consumers_move(nodes, wide):
    """When the consumers have moved to a third node, the units follow, and what was not consumed comes in order."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as second, c.connect() as third:
        for n in range(1, 401):
            put(here, wide.name, n)
        wide.lend(b)
        wide.holds(b, 400)
        got = take(second, wide.name, number=50)
        got += arrived(third, wide.name, 350)
    assert got == list(range(1, 401))
    until(lambda: wide.lend(c) or lent(wide, a) == ["c"] * 4, "all units")
    until(lambda: wide.units(b, "held") == [], "the end of the old ones")


def test_come_back_in_order(nodes, queue):
    """Messages that come back are in front of those that were never sent."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put_many(here, queue.name, 1, 3000)
        queue.lend(b)
        queue.holds(b, 2000)
        got = take(there, queue.name, number=10)
        queue.lend(a)
        queue.ask_back(a, at_once=True)
        got += arrived(here, queue.name, 2990)
    assert got == list(range(1, 3001))


# -- what is refused


def refused(node, name, sqlstate_or_words):
    """Wait until aq.nodes says so; returns queue_error."""
    return until(lambda: (found := node.now(name)["queue_error"]) and sqlstate_or_words in found and found, sqlstate_or_words)


def test_origin_refuses_wishes(nodes, queue):
    """A node whose link's role may not dequeue gets no messages, and says why; the privilege is enough to end that."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put(here, queue.name, 1)
        here.execute("SELECT aq.revoke_queue(%s, 'remote', 'dequeue')", [queue.name])
        until(lambda: queue.lend(b) or "permission denied" in (b.now("a")["queue_error"] or ""), "the error")
        assert queue.units(a, "lent") == []
        here.execute("SELECT aq.grant_queue(%s, 'remote', 'dequeue')", [queue.name])
        assert arrived(there, queue.name, 1) == [1]
        until(lambda: b.now("a")["queue_error"] is None, "no error any more")


def test_privilege_is_revoked_later(nodes, queue):
    """When the role may no longer dequeue, nothing else is sent, and the origin says why."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put(here, queue.name, 1)
        assert arrived(there, queue.name, 1) == [1]
        here.execute("SELECT aq.revoke_queue(%s, 'remote', 'dequeue')", [queue.name])
        put(here, queue.name, 2)
        assert "may no longer dequeue them" in refused(a, "b", "may no longer")
        assert queue.states(a) == {"READY": 1}
        here.execute("SELECT aq.grant_queue(%s, 'remote', 'dequeue')", [queue.name])
        assert arrived(there, queue.name, 1) == [2]


def test_holder_refuses_messages(nodes, queue):
    """A role that may not enqueue at the holder sends nothing; the messages stay, and arrive when it may."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        there.execute("SELECT aq.revoke_queue(%s, 'remote', 'enqueue')", [queue.name])
        put(here, queue.name, 1, 2)
        until(lambda: queue.lend(b) or "permission denied" in (a.now("b")["queue_error"] or ""), "the error")
        there.execute("SELECT aq.grant_queue(%s, 'remote', 'enqueue')", [queue.name])
        assert arrived(there, queue.name, 2) == [1, 2]


def test_refused_messages_stop_no_other_unit(nodes):
    """The holder refuses a message: those of other units, and those before it, arrive, although one request had all of them. When it takes them, the rest arrives, too."""
    a, b, c = nodes
    for node in nodes:
        with node.connect() as conn:
            conn.execute("CREATE DOMAIN public.small AS integer; CREATE TYPE public.box AS (n public.small)")
    queue = Shared(nodes, f"d{next(_numbers)}", payload_type="public.box")

    def fetch(conn):
        return [
            n
            for (n,) in conn.execute(
                "SELECT (payload).n FROM aq.dequeue(%s, as_type => NULL::public.box, max_messages => 100, wait => '0.2 s')", [queue.name]
            )
        ]

    with a.connect() as here, b.connect() as there:
        until(lambda: fetch(there) == [] and lent(queue, a) == ["b"] * 4, "all units")
        there.execute("ALTER DOMAIN public.small ADD CONSTRAINT no_eight CHECK (VALUE <> 8) NOT VALID")
        here.execute("BEGIN")
        for n in range(16):
            here.execute("SELECT aq.enqueue(%s, row(%s)::public.box, producer => %s)", [queue.name, n, str(n)])
        here.execute("COMMIT")
        refused_unit = here.execute(
            "SELECT payload FROM aq.messages m WHERE queue_name = %s AND shard = (SELECT shard FROM aq.messages WHERE queue_name = m.queue_name AND payload = '(8)')",
            [queue.name],
        ).fetchall()
        later = sorted(n for n in (int(payload.strip("()")) for (payload,) in refused_unit) if n >= 8)
        got = []
        until(lambda: got.extend(fetch(there)) or len(got) == 16 - len(later), "messages of the other units")
        assert sorted(got + later) == list(range(16)) and 8 in later
        assert "no_eight" in refused(a, "b", "no_eight")
        there.execute("ALTER DOMAIN public.small DROP CONSTRAINT no_eight")
        until(lambda: got.extend(fetch(there)) or len(got) == 16, "the others")
        assert sorted(got) == list(range(16))
    queue.drop()
    for node in nodes:
        with node.connect() as conn:
            conn.execute("DROP TYPE public.box; DROP DOMAIN public.small")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("not there", "does not exist"),
        ("not distributed", "is not distributed"),
        ("other type", "pg_catalog.text on node"),
        ("no such consumer", '"x" is not a consumer of queue'),
    ],
)
def test_queues_that_differ(nodes, how, words):
    """A queue that differs on the node that has the messages: the consumers' node says how."""
    a, b, c = nodes
    name = f"d{next(_numbers)}"
    multi = how == "no such consumer"
    value(
        b,
        "SELECT aq.create_queue(%s, payload_type => %s::regtype, distributed => true, multiple_consumers => %s)",
        [name, "text" if how == "other type" else "jsonb", multi],
    )
    value(
        c,
        "SELECT aq.create_queue(%s, payload_type => %s::regtype, distributed => true, multiple_consumers => %s)",
        [name, "text" if how == "other type" else "jsonb", multi],
    )
    if how != "not there":
        value(a, "SELECT aq.create_queue(%s, distributed => %s, multiple_consumers => %s)", [name, how != "not distributed", multi])
        value(a, "SELECT aq.grant_queue(%s, 'remote', 'all')", [name])
    if multi:
        value(b, "SELECT aq.subscribe(%s, 'x')", [name])
    asks = f"SELECT count(*) FROM aq.dequeue(%s, as_type => NULL::{'text' if how == 'other type' else 'jsonb'}, consumer => %s)"
    until(lambda: value(b, asks, [name, "x" if multi else None]) == 0 and words in (b.now("a")["queue_error"] or ""), words)
    for node in nodes:
        with node.connect() as conn:
            drop(conn, name)


def test_stopped_queues(nodes, queue):
    """A queue that is stopped for dequeue at its origin sends nothing; one that is stopped for enqueue at the holder takes what is sent."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        here.execute("SELECT aq.stop_queue(%s, enqueue => false)", [queue.name])
        there.execute("SELECT aq.stop_queue(%s, dequeue => false)", [queue.name])
        put(here, queue.name, 1)
        until(lambda: queue.lend(b) or lent(queue, a) == ["b"], "the unit")
        other_comes_back(nodes)
        assert queue.states(a) == {"READY": 1}
        here.execute("SELECT aq.start_queue(%s)", [queue.name])
        there.execute("SELECT aq.start_queue(%s)", [queue.name])
        assert arrived(there, queue.name, 1) == [1]


def test_recall_that_sessions_have_not_heard_of(nodes, queue):
    """A recall is visible to the stream of reports before sessions hear of it; the unit goes back when they all have."""
    a, b, c = nodes
    other = Shared(nodes, f"d{next(_numbers)}", shards=1)
    with a.connect() as here, b.connect() as there, b.connect() as link, ThreadPoolExecutor() as pool:
        for each in (queue, other):
            each.put_and_lend(here, b, 1, 2)
        assert look(there, queue.name) == [1, 2]
        epoch = db.value(
            here, "SELECT epoch FROM aq_internal.node_unit JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s", [queue.name]
        )
        link.execute("SET pgaq.test_point = 'node-told:wait'; SET ROLE remote")
        recall = pool.submit(db.value, link, "SELECT aq.node_recall(%s, %s)", [a.id(), epoch])
        until(lambda: [unit["returns"] for unit in queue.units(b, "held")] == [True], "the recall")
        for left in ({"LEASED": 1}, {}):  # after each report, the stream looks for units to give back
            assert take(there, other.name, number=1) != []
            until(lambda left=left: other.states(a) == left, "the report")
        assert take(there, queue.name, number=1) == [1]
        there.execute("SELECT aq.point_release('node-told')")
        assert recall.result(PATIENCE)
        until(lambda: queue.units(b, "held") == [], "the return")
        assert arrived(here, queue.name, 1) == [2]
    other.drop()


# -- an administrator


def breaks(node, queue, force=False, shard=0, consumer=None):
    value(node, "SELECT aq.reclaim_unit(%s, %s, %s, force => %s)", [queue.name, shard, consumer, force])


def test_reclaim_unit(nodes, queue):
    """A unit is taken from a reachable node by force only. What it has consumed and not reported comes twice, nothing else."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        with pytest.raises(db.Error, match="no other node holds these messages"):
            breaks(a, queue)
        queue.put_and_lend(here, b, 1, 2, 3, 4)
        assert take(there, queue.name, number=1) == [1]
        until(lambda: queue.states(a) == {"LEASED": 3}, "the report")
        until(lambda: "is reachable" in breaking_says(here, queue), "the refusal")
        with held(b.server, "node-reporting"):
            assert take(there, queue.name, number=1) == [2]
            until(lambda: value(b, "SELECT aq.point_waiting('node-reporting')") == 1, "a report that does not go out")
            there.execute("BEGIN")
            assert take(there, queue.name, number=1) == [3]
            breaks(a, queue, force=True)
            assert arrived(here, queue.name, 3) == [2, 3, 4]
        until(lambda: [unit["returns"] for unit in queue.units(b, "held")] == [True], "the news")
        there.execute("COMMIT")
        until(lambda: queue.units(b, "held") == [], "the end of the unit")
        assert take(there, queue.name) == [] and take(here, queue.name) == []
    assert queue.states(a) == queue.states(b) == {}


def test_reclaim_unit_in_a_transaction_with_an_old_snapshot(nodes, queue):
    """It breaks what was lent after the snapshot was taken."""
    a, b, c = nodes
    with a.connect() as here, a.connect() as admin:
        admin.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        admin.execute("SELECT count(*) FROM aq_internal.node_unit")
        queue.put_and_lend(here, b, 1, 2)
        admin.execute("SELECT aq.reclaim_unit(%s, 0, force => true)", [queue.name])
        admin.execute("COMMIT")
        assert arrived(here, queue.name, 2) == [1, 2]
    until(lambda: queue.units(b, "held") == [], "the end of the unit")


def breaking_says(conn, queue):
    """The error of a break that is rolled back."""
    conn.execute("BEGIN")
    try:
        conn.execute("SELECT aq.reclaim_unit(%s, 0)", [queue.name])
        return ""
    except db.Error as error:
        return str(error)
    finally:
        conn.execute("ROLLBACK")


def test_reclaim_unit_of_a_node_that_is_down(nodes, queue):
    """The messages of a node that is gone are ready again; when it is back, it drops what it has of them."""
    a, b, c = nodes
    with a.connect() as here:
        queue.put_and_lend(here, b, 1, 2, 3)
        b.server.kill()
        a.sees("b", "unreachable")
        breaks(a, queue)
        assert arrived(here, queue.name, 3) == [1, 2, 3]
    b.server.start()
    until(lambda: queue.units(b, "held") == [], "the end of the unit")
    assert queue.states(b) == {}


def test_remove_node(nodes, queue):
    """A node that has messages of this one, or the other way round, is removed by force only: those that are lent are ready again, those that are held stay."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        queue.put_and_lend(here, b, 1, 2)
        for node, name in ((a, "b"), (b, "a")):
            with pytest.raises(db.Error, match="units of distributed queues are lent to, or borrowed from, node"):
                node.remove(name)
        value(a, "SELECT aq.remove_node('b', force => true)")
        value(b, "SELECT aq.remove_node('a', force => true)")
        assert arrived(here, queue.name, 2) == [1, 2] and arrived(there, queue.name, 2) == [1, 2]
    b.server.restart("fast")
    until(
        lambda: (
            value(
                b, "SELECT count(*) FROM aq_internal.node_held JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s", [queue.name]
            )
            == 0
        ),
        "the end of what was held",
    )


@pytest.mark.parametrize("side", ["origin", "holder"])
def test_drop_the_queue(nodes, side):
    """A queue that is dropped at its origin has no messages left anywhere; one that is dropped at the holder has them at its origin again."""
    a, b, c = nodes
    queue = Shared(nodes, f"d{next(_numbers)}", shards=1)
    with a.connect() as here:
        queue.put_and_lend(here, b, 1, 2)
        if side == "origin":
            here.execute("SELECT aq.drop_queue(%s, force => true)", [queue.name])
            assert value(b, "SELECT payload FROM aq.dequeue(%s)", [queue.name]) == 1  # its report is news for both
            until(lambda: queue.units(b, "held") == [] and queue.states(b) == {}, "the end of the unit")
        else:
            value(b, "SELECT aq.drop_queue(%s, force => true)", [queue.name])
            queue.ask_back(a, at_once=True)
            assert arrived(here, queue.name, 2) == [1, 2]
            until(lambda: value(b, "SELECT count(*) FROM aq_internal.node_held") == 0, "the end of the unit")
    queue.drop()


@pytest.mark.parametrize("side", ["origin", "holder"])
def test_unsubscribe(nodes, topic, side):
    """A subscriber that is removed at the origin, or at the holder, leaves nothing behind, and the other one is not affected."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there:
        put(here, topic.name, 1, 2)
        topic.lend(b, "x")
        topic.lend(b, "y")
        topic.holds(b, 4)
        value(a if side == "origin" else b, "SELECT aq.unsubscribe(%s, 'x')", [topic.name])
        if side == "origin":
            until(lambda: [unit["consumer"] for unit in topic.units(b, "held")] == ["y"], "the end of the unit")
        assert arrived(there, topic.name, 2, "y") == [1, 2]
        if side == "holder":
            assert arrived(here, topic.name, 2, "x") == [1, 2]
    until(lambda: topic.states(a) == {} and topic.states(b) == {}, "nothing left")


# -- failures


@pytest.mark.parametrize("how", ["restart", "kill"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_restart(nodes, queue, side, how):
    """The origin or the holder is restarted, or killed, while messages are on their way, taken, and not reported."""
    a, b, c = nodes
    server = nodes[NAMES.index(side)].server
    with a.connect() as here:
        put_many(here, queue.name, 1, 4000)
    there = b.connect()
    got = arrived(there, queue.name, 100)
    there.execute("BEGIN")
    take(there, queue.name, number=10)
    if how == "kill":
        server.kill()
        server.start()
    else:
        server.restart("fast")
    there.close()
    with b.connect() as there:
        got += arrived(there, queue.name, 4000 - len(got))
    assert got == list(range(1, 4001))
    # not by aq.node_units, which does not know what a restarted server has not counted yet
    until(lambda: queue.states(a) == queue.states(b) == {}, "reports of all messages")


@pytest.mark.parametrize("side", ["forward", "report"])
@pytest.mark.parametrize("how", ["cut", "stall", "delay"])
def test_network(nodes, queue, side, how):
    """The connection that sends messages, or the one that reports, is cut, silent for a while, or slow: each message comes once, in order."""
    a, b, c = nodes
    at, name, target = (a, "b", b) if side == "forward" else (b, "a", a)
    proxy = Proxy(target.server.port)
    try:
        set_port(at, name, proxy.port)
        with a.connect() as here, b.connect() as there:
            if how == "delay":
                proxy.delay(0.05)
            got = []
            for n in range(1, 2001, 200):
                put_many(here, queue.name, n, n + 199)
                got += arrived(there, queue.name, 50)
                if how == "cut":
                    proxy.cut()
                elif how == "stall" and n == 801:
                    proxy.stall()
                    at.sees(name, "unreachable")
                    proxy.cut()
                    proxy.flow()
            got += arrived(there, queue.name, 2000 - len(got))
            assert got == list(range(1, 2001))
        queue.settled(a)
    finally:
        set_port(at, name, target.server.port)
        proxy.close()


def set_port(node, name, port):
    with node.connect() as conn:
        conn.execute(f"ALTER SERVER {name} OPTIONS (SET port '{port}')")


def test_late_reports(nodes, queue):
    """Reports and returns that come twice, late, or from another node change nothing."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there, a.server.connect(user="remote", password="secret") as remote:
        ids = queue.put_and_lend(here, b, 1, 2, 3)
        [old] = [unit["epoch"] for unit in queue.units(b, "held")]
        assert take(there, queue.name, number=1) == [1]
        until(lambda: queue.states(a) == {"LEASED": 2}, "the report")
        finish = "SELECT aq.node_finish(%s, %s, %s::uuid[])"
        assert db.value(remote, finish, [b.id(), [old], ids[:1]]) == []
        queue.ask_back(a, at_once=True)
        until(lambda: queue.lend(b) or [unit["epoch"] > old for unit in queue.units(b, "held")] == [True], "another grant")
        queue.holds(b, 2)
        [new] = [unit["epoch"] for unit in queue.units(b, "held")]
        assert db.value(remote, finish, [b.id(), [old], ids[1:2]]) == [old]
        assert db.value(remote, finish, [c.id(), [new], ids[1:2]]) == [new]
        assert db.value(remote, finish, [b.id(), [new], [a.id()]]) == []
        assert db.value(remote, "SELECT aq.node_return(%s, %s)", [b.id(), old]) is False
        assert db.value(remote, "SELECT aq.node_return(%s, %s)", [c.id(), new]) is False
        assert queue.states(a) == {"LEASED": 2}
        assert arrived(there, queue.name, 2) == [2, 3]


def test_late_messages(nodes, queue):
    """Messages with an old token, a question with one, and the recall of an old grant change nothing; a question says which messages have not arrived."""
    a, b, c = nodes
    with a.connect() as here, b.connect() as there, b.server.connect(user="remote", password="secret") as remote:
        ids = queue.put_and_lend(here, b, 1)
        [epoch] = [unit["epoch"] for unit in queue.units(b, "held")]
        deliver = "SELECT aq.node_deliver(%s, 1, %s, %s, 0, NULL, 'pg_catalog.jsonb', '{9}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', ARRAY[gen_random_uuid()])"
        for query, parameters in ((deliver, [a.id(), epoch, queue.name]), ("SELECT aq.node_resume(%s, 1, '{}', '{}')", [a.id()])):
            with pytest.raises(db.Error, match="of another node ha(s|ve) come late"):
                remote.execute(query, parameters)
        assert db.value(remote, "SELECT aq.node_recall(%s, %s)", [a.id(), epoch - 1]) is False
        assert db.value(remote, "SELECT aq.node_recall(%s, %s)", [c.id(), epoch]) is False
        assert [unit["returns"] for unit in queue.units(b, "held")] == [False]
        token = value(a, "SELECT (1::bigint << 44) + last_value FROM aq_internal.node_epoch_seq")
        missing = db.value(
            remote,
            "SELECT aq.node_resume(%s, %s, %s, %s::uuid[])",
            [a.id(), token + 1, [epoch, epoch, epoch - 1], [ids[0], str(a.id()), ids[0]]],
        )
        assert missing == [2, 3]
        put(here, queue.name, 2)
        assert arrived(there, queue.name, 2) == [1, 2]
