"""Nodes: what aq.nodes says of the other servers while they are stopped, killed, stalled, cut off and back, and that a copy does not get a node's identity."""

from __future__ import annotations

import os
import signal

import pytest

from conftest import background, generation, install, until
from nodes import EXPECTED, Node, joined, three_servers, value
from pgaq import db
from pgaq.server import free_port
from pgaq.subjects.advice import RULES
from pgaq.subjects.queues import QUEUE_UNITS
from tcp_proxy import Proxy
from test_reports import report
from test_snapshots import snapshot

pytestmark = pytest.mark.test_build


@pytest.fixture(scope="module")
def servers(library):
    with three_servers(library) as made:
        yield made


@pytest.fixture
def nodes(servers):
    with joined(servers) as made:
        yield made


def test_three_nodes(nodes):
    """Each sees itself and the two others, with their identities, versions and latencies."""
    ids = [node.id() for node in nodes]
    assert len(set(ids)) == 3 and None not in ids
    for node in nodes:
        with node.connect() as conn:
            rows = db.rows(conn, "SELECT * FROM aq.nodes ORDER BY server")
            version = db.value(conn, "SELECT extversion FROM pg_extension WHERE extname = 'pgaq'")
        assert {row["node_id"] for row in rows} == set(ids)
        assert [row["state"] for row in rows] == ["reachable", "reachable", "this node"]
        for row in rows[:2]:
            assert row["version"] == version and row["protocol"] == 1 and row["latency_us"] > 0 and row["contested"] is None
            assert row["lag"].total_seconds() < 60 and row["failures"] == 0 and row["started"] is not None


def test_stopped_and_back(nodes):
    """A node that is shut down is unreachable, for both others and only for them, and reachable again after its start."""
    a, b, c = nodes
    identity = b.id()
    b.server.stop()
    for node in (a, c):
        found = node.sees("b", "unreachable")
        assert found["lag"].total_seconds() >= 1
        # the time limit may end before an attempt has failed; 57P03 while it stops
        until(
            lambda node=node: (row := node.now("b"))["failures"] > 0 and row["sqlstate"] in ("57P01", "57P03", "08001", "08006"),
            "the error",
        )
    a.sees("c", "reachable")
    b.server.start()
    for node in (a, c):
        assert node.sees("b", "reachable")["node_id"] == identity
        b.sees("ac"[node is c], "reachable")


def test_killed(nodes):
    """The same after kill -9 of the whole server."""
    a, b, c = nodes
    identity = b.id()
    b.server.kill()
    a.sees("b", "unreachable")
    b.server.start()
    found = a.sees("b", "reachable")
    assert found["node_id"] == identity == b.id()


def test_silent(nodes):
    """A server whose processes are stopped (SIGSTOP) is unreachable, and reachable after SIGCONT."""
    a, b, c = nodes
    pids = [b.server.postmaster_pid(), *b.server.child_pids()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        found = a.sees("b", "unreachable")
        assert found["lag"].total_seconds() >= 1
        a.sees("c", "reachable")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    a.sees("b", "reachable")


def test_partition(nodes):
    """A network that is silent, then cut, then back."""
    a, b, c = nodes
    proxy = Proxy(b.server.port)
    try:
        with a.connect() as conn:
            conn.execute(f"ALTER SERVER b OPTIONS (SET port '{proxy.port}')")
        until(lambda: proxied(a), "the new connection")
        a.sees("b", "reachable")
        proxy.stall()
        a.sees("b", "unreachable")
        b.sees("a", "reachable")  # its own link does not use the proxy
        proxy.cut()
        proxy.flow()
        a.sees("b", "reachable")
    finally:
        proxy.close()


def proxied(node):
    with node.connect() as conn:
        return db.value(
            conn,
            "SELECT remote_host LIKE '127.0.0.1:%%' AND remote_host <> %s AND state = 'connected' FROM aq.links WHERE server = 'b'",
            ["127.0.0.1:0"],
        )


def test_wrong_password(nodes):
    """A changed password: unreachable with its SQLSTATE, advice in a report and a finding of the doctor; reachable when the mapping is corrected."""
    a, b, c = nodes
    with a.connect() as conn, b.connect() as there:
        begin = snapshot(conn)
        there.execute("ALTER ROLE remote PASSWORD 'other'")
        there.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'remote'")
        try:
            found = until(lambda: (row := a.now("b"))["state"] == "unreachable" and row["sqlstate"] == "28P01" and row, "the error")
            assert "password authentication failed" in found["error"] and "ALTER USER MAPPING" in found["hint"]
            [advice] = [advice for advice in report(conn, begin, snapshot(conn))["advice"] if advice["rule"] == "node"]
            assert advice["title"] == "Node b is unreachable" and "28P01" in advice["why"] and "ALTER USER MAPPING" in advice["do"]
            [rule] = [rule for rule in RULES if rule.name == "node"]
            [(case, said, hint)] = conn.execute(rule.query).fetchall()
            assert case == "b" and "unreachable with SQLSTATE 28P01" in said and "ALTER USER MAPPING" in hint
            conn.execute("ALTER USER MAPPING FOR postgres SERVER b OPTIONS (SET password 'other')")
            a.sees("b", "reachable")
        finally:
            there.execute("ALTER ROLE remote PASSWORD 'secret'")
            conn.execute("ALTER USER MAPPING FOR postgres SERVER b OPTIONS (SET password 'secret')")


def found_by(conn, name):
    """What a rule of the doctor finds."""
    [rule] = [rule for rule in RULES if rule.name == name]
    return conn.execute(rule.query).fetchall()


@pytest.mark.sharded("a distributed queue is sharded")
def test_advice_on_distributed_queues(nodes):
    """A queue that is missing on a node, and a node that is down with messages of another one: advice in a report, findings of the doctor, units of the queue."""
    a, b, c = nodes
    with a.connect() as conn, b.connect() as there:
        for each in (conn, there):
            each.execute(
                "GRANT EXECUTE ON FUNCTION aq.node_want, aq.node_resume, aq.node_deliver, aq.node_recall, aq.node_finish, aq.node_return TO remote"
            )
        there.execute("SELECT aq.create_queue('spread', distributed => true), aq.grant_queue('spread', 'remote', 'enqueue, dequeue')")
        begin = snapshot(there)
        there.execute("SELECT FROM aq.dequeue('spread')")
        until(lambda: b.now("a")["queue_error"], "an error with the queue")
        [(case, said)] = [row for row in found_by(there, "node_queue") if row[0] == "a"]
        assert 'queue "spread" does not exist' in said
        [advice] = [
            each
            for each in report(there, begin, snapshot(there))["advice"]
            if each["rule"] == "node_queue" and each["title"].endswith("node a")
        ]
        assert 'queue "spread" does not exist' in advice["why"]
        conn.execute("SELECT aq.create_queue('spread', distributed => true), aq.grant_queue('spread', 'remote', 'enqueue, dequeue')")
        conn.execute("SELECT aq.enqueue('spread', '1')")
        until(lambda: there.execute("SELECT FROM aq.dequeue('spread', wait => '0.1 s')").fetchall(), "the message")
        until(lambda: not any(row[0] == "a" for row in found_by(there, "node_queue")), "no error any more")
        units = conn.execute(QUEUE_UNITS.query, {"queue": "spread"}).fetchall()
        assert units and all(direction == "lent" and server == "b" for _, _, direction, server, *_ in units)
        assert found_by(conn, "node_units") == []
        b.server.kill()
        a.sees("b", "unreachable")
        assert found_by(conn, "node_units") == [("b", f"it is unreachable, and holds {len(units)} shards of distributed queues")]
        b.server.start()
        a.sees("b", "reachable")
        assert found_by(conn, "node_units") == []
    for node in (a, b):
        with node.connect() as each:
            each.execute("SELECT aq.drop_queue('spread', force => true)")


def test_without_the_privilege(nodes):
    """A node that may not send heartbeats is refused, and says so; the privilege is enough to end that."""
    a, b, c = nodes
    with b.connect() as there:
        there.execute("REVOKE EXECUTE ON FUNCTION aq.node_beat FROM remote")
        try:
            found = a.sees("b", "refused")
            assert found["sqlstate"] == "42501" and "node_beat" in found["error"]
        finally:
            there.execute("GRANT EXECUTE ON FUNCTION aq.node_beat TO remote")
    a.sees("b", "reachable")


def test_one_side_only(nodes):
    """A node that was removed there is still reachable, but not mutual."""
    a, b, c = nodes
    b.remove("a")
    a.sees("b", "reachable", mutual=False)
    b.add("a")
    a.sees("b", "reachable", mutual=True)


def test_server_dropped(nodes):
    """Without its foreign server a node is unreachable; a new one of this name is used at once."""
    a, b, c = nodes
    with a.connect() as conn:
        conn.execute("DROP SERVER b CASCADE; DROP SERVER c CASCADE")
        assert a.now("b")["state"] == "unreachable" and a.now("b")["sqlstate"] == "42704"
    until(lambda: background_link(a) is None, "the end of the link worker, which has no link")
    a.link("b", b.server.port)
    a.sees("b", "reachable")


def background_link(node):
    with node.connect() as conn:
        return background(conn, "link")


def test_leads_elsewhere(nodes):
    """A foreign server that leads to another node than before, to one that was added before, or to this node itself, is refused."""
    a, b, c = nodes
    with a.connect() as conn:
        conn.execute(f"ALTER SERVER b OPTIONS (SET port '{c.server.port}')")
        error = a.sees("b", "refused", sqlstate="AQ182")["error"]
        assert error == f"node {c.id()} answers instead of node {b.id()}"
        conn.execute(f"ALTER SERVER b OPTIONS (SET port '{b.server.port}')")
    a.link("self", a.server.port)
    a.link("twin", b.server.port)
    a.add("self")
    a.add("twin")
    assert "leads to this node itself" in a.sees("self", "refused", sqlstate="AQ182")["error"]
    assert 'the same node as server "b"' in a.sees("twin", "refused", sqlstate="AQ182")["error"]
    a.sees("b", "reachable")
    # also if the one that shows up with the other's identity was added before it
    a.remove("c")
    a.link("early", 1)
    a.add("early")
    a.add("c")
    a.sees("c", "reachable")
    with a.connect() as conn:
        conn.execute(f"ALTER SERVER early OPTIONS (SET port '{c.server.port}')")
    assert 'the same node as server "c"' in a.sees("early", "refused", sqlstate="AQ182")["error"]
    a.sees("c", "reachable")


def test_copy_of_the_server(nodes, throw_away):
    """A promoted base backup has the node's identity: while the node runs, the others refuse the copy; afterwards it takes the place, and the old server never gets it back."""
    a, b, c = nodes
    identity = b.id()
    copy = Node(throw_away(b.server.basebackup("copy")))
    copy.server.expect_log(EXPECTED)
    copy.server.tcp, copy.server.port = True, free_port()
    copy.server.configure()
    copy.server.start()
    copy.server.promote()
    until(lambda: not value(copy, "SELECT pg_is_in_recovery()"), "the promotion")
    found = copy.sees("a", "refused", sqlstate="AQ182")
    assert f"another server has the identity of node {identity}" in found["error"] and "aq.reset_node" in found["hint"]
    assert a.sees("b", "reachable")["contested"] is not None
    # it becomes a node of its own
    other = value(copy, "SELECT aq.reset_node()")
    assert other != identity
    assert copy.sees("a", "reachable", mutual=False)["sqlstate"] == "AQ182"  # of its latest error
    with copy.connect() as conn:
        conn.execute("UPDATE aq_internal.node_identity SET node_id = %s", [identity])
    copy.sees("a", "refused", sqlstate="AQ182")
    # the node is gone: a failover
    b.server.stop()
    with a.connect() as conn:
        conn.execute(f"ALTER SERVER b OPTIONS (SET port '{copy.server.port}')")
    copy.sees("a", "reachable", mutual=True)
    found = a.sees("b", "reachable")
    assert found["node_id"] == identity and found["timeline"] > 1
    copy.server.stop()
    a.sees("b", "unreachable")
    b.server.start()
    assert "another server has the identity" in b.sees("a", "refused", sqlstate="AQ182")["error"]
    with a.connect() as conn:
        conn.execute(f"ALTER SERVER b OPTIONS (SET port '{b.server.port}')")
    a.sees("b", "refused", sqlstate="AQ182")
    # the administrator decides
    for node, name in ((a, "a"), (c, "c")):
        node.remove("b")
        node.add("b")
        node.sees("b", "reachable")
        b.sees(name, "reachable", mutual=True)


def test_copy_of_the_database(nodes):
    """A database made from the node's with CREATE DATABASE ... TEMPLATE is a copy: it sends no heartbeats and refuses those of others, until it is reset."""
    a, b, c = nodes
    with b.connect() as conn:
        conn.execute("CREATE DATABASE between TEMPLATE template0")
    with b.server.connect("between") as conn:
        # the other nodes' links would connect again
        conn.execute("ALTER DATABASE postgres CONNECTION LIMIT 0")
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'remote'")
        conn.execute("CREATE DATABASE copied TEMPLATE postgres")
        conn.execute("ALTER DATABASE postgres CONNECTION LIMIT -1")
    with b.server.connect("copied") as conn:
        row = db.row(conn, "SELECT * FROM aq.nodes WHERE server IS NULL")
        assert row["state"] == "copy" and row["node_id"] == b.id()
        with pytest.raises(db.Error, match="the database is a copy of node") as error:
            conn.execute("SELECT * FROM aq.node_beat(gen_random_uuid(), 1, now())")
        assert error.value.sqlstate == "AQ182"
        with pytest.raises(db.Error, match="the database is a copy of node"):
            conn.execute("SELECT aq.add_node('a')")
        assert db.value(conn, "SELECT state FROM aq.nodes WHERE server = 'a'") == "unknown"
        assert db.value(conn, "SELECT aq.reset_node()") != b.id()
        until(lambda: db.value(conn, "SELECT state FROM aq.nodes WHERE server = 'a'") == "reachable", "the new node")
        assert db.value(conn, "SELECT mutual FROM aq.nodes WHERE server = 'a'") is False
    with b.connect() as conn:
        conn.execute("DROP DATABASE copied WITH (FORCE)")
        conn.execute("DROP DATABASE between WITH (FORCE)")
    assert a.sees("b", "reachable")["contested"] is None


def test_dump_and_restore(nodes, tmp_path):
    """A dump has the other nodes, and not the identity: the restored database is no node until it adds one."""
    a, b, c = nodes
    done = c.server.run("pg_dump", f"--file={tmp_path / 'dump'}")
    assert done.returncode == 0, done.stderr
    with c.connect() as conn:
        conn.execute("CREATE DATABASE restored")
    done = c.server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "dump"), dbname="restored")
    assert done.returncode == 0, done.stderr
    with c.server.connect("restored") as conn:
        assert conn.execute("SELECT server, state FROM aq.nodes ORDER BY server").fetchall() == [("a", "unknown"), ("b", "unknown")]
        c2 = db.value(conn, "SELECT count(*) FROM aq_internal.node_identity")
        assert c2 == 0
        conn.execute("SELECT aq.remove_node('a')")
        conn.execute("SELECT aq.add_node('a')")
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.nodes WHERE state = 'reachable'") == 2, "heartbeats")
        assert db.value(conn, "SELECT node_id FROM aq.nodes WHERE server IS NULL") != c.id()
    with c.connect() as conn:
        conn.execute("DROP DATABASE restored WITH (FORCE)")


def test_prepared(nodes):
    """A transaction that has changed nodes cannot be prepared."""
    a, b, c = nodes
    with a.connect() as conn:
        conn.execute("BEGIN")
        conn.execute("SELECT aq.remove_node('b')")
        with pytest.raises(db.Error, match="cannot PREPARE a transaction that has changed nodes"):
            conn.execute("PREPARE TRANSACTION 'x'")
    a.sees("b", "reachable")


def test_a_transaction_holds_the_row(nodes):
    """The link worker does not wait for a transaction that has removed a node and is still open."""
    a, b, c = nodes
    with a.connect() as conn:
        conn.execute("BEGIN")
        conn.execute("SELECT aq.remove_node('b')")
        b.server.restart()
        b.sees("a", "reachable")
        before = a.now("c")["last_seen"]
        until(lambda: a.now("c")["last_seen"] > before, "another heartbeat to c")
        conn.execute("ROLLBACK")
    a.sees("b", "reachable")


def test_grant_is_durable(new_server):
    """The origin of a unit knows its holder after kill -9, although synchronous_commit is off: no other process flushes the WAL within ten seconds."""
    own = new_server("granting", wal_writer_delay="10s")
    own.expect_log(EXPECTED)
    holder = "00000000-0000-4000-8000-00000000000b"
    with own.connect() as conn:
        conn.execute(
            "CREATE SERVER b FOREIGN DATA WRAPPER pgaq_link OPTIONS (enabled 'off'); CREATE USER MAPPING FOR postgres SERVER b OPTIONS (user 'u', password 'p')"
        )
        conn.execute("SELECT aq.create_queue('q', distributed => true), aq.add_node('b')")
        conn.execute("UPDATE aq_internal.node SET node_id = %s", [holder])
        conn.execute("SET synchronous_commit = off")
        epochs = "SELECT array_agg(epoch ORDER BY shard) FROM aq.node_units WHERE server = 'b'"

        def wanted() -> bool:
            """A node says so again and again: a call does nothing while another session distributes the queue's units."""
            db.execute(conn, "SELECT aq.node_want(%s, 'q', NULL, 'pg_catalog.jsonb')", [holder])
            return db.value(conn, epochs) is not None

        until(wanted, "the units")
        granted = db.value(conn, epochs)
        assert len(granted) == 4
        own.kill()
    own.start()
    with own.connect() as conn:
        assert db.value(conn, epochs) == granted


@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
@pytest.mark.parametrize("point", ["node-answered", "node-changed", "node-noted"])
def test_points(nodes, point, action):
    """Whatever happens to the link worker or a called session at a named point, the nodes see each other again."""
    a, b, c = nodes
    before = generation(a.server)
    with a.connect() as conn:
        conn.execute("SELECT aq.point_arm(%s, %s)", [point, action])
    if point == "node-changed":
        b.server.restart()
    if action == "crash":
        until(lambda: generation(a.server) not in (None, before), "the restart")
    else:
        until(lambda: value(a, f"SELECT aq.point_reached('{point}')") > 0, "the point")
    for node, name in ((a, "b"), (a, "c"), (b, "a"), (c, "a")):
        node.sees(name, "reachable", mutual=True)


def test_drop_extension(nodes):
    """DROP EXTENSION ends the heartbeats; a new one is no node."""
    a, b, c = nodes
    with c.connect() as conn:
        conn.execute("SET statement_timeout = '60 s'")
        conn.execute("DROP EXTENSION pgaq CASCADE")
        until(lambda: background(conn, "link") is None, "the end of the link worker")
        until(lambda: a.now("c")["sqlstate"] in ("42883", "3F000"), "the failure of a heartbeat")
        assert a.now("c")["state"] == "refused"
        install(conn)
        conn.execute("GRANT EXECUTE ON FUNCTION aq.node_beat TO remote")
        assert conn.execute("SELECT * FROM aq.nodes").fetchall() == []
    found = a.sees("c", "refused", sqlstate="55000")
    assert "is not a node" in found["error"] and "aq.add_node" in found["hint"]
