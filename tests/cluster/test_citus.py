"""Citus: the objects of queues belong to one node, and messages commit with rows on other nodes.

The first tests need no Citus: its setting is a placeholder, and a trigger watches it.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from conftest import differences, install, put, put_many, take, until
from pgaq import db, places
from pgaq.server import Server

pytestmark = pytest.mark.own_tables

PROPAGATES = "citus.enable_ddl_propagation"
SETTINGS = {PROPAGATES: "on"}

# what Citus does on a worker to most commands, and on the coordinator by making the object everywhere
WATCH = f"""
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('{PROPAGATES}') = 'on' THEN
		RAISE EXCEPTION 'operation is not allowed on this node' USING DETAIL = tg_tag;
	END IF;
END $$;
CREATE EVENT TRIGGER watch ON ddl_command_start EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def watched(server):
    """A session in which a command that Citus would pass on to other nodes fails."""
    with server.connect() as conn:
        conn.execute("CREATE TYPE pair AS (x int, y int); CREATE ROLE reader; GRANT CREATE ON SCHEMA public TO reader; " + WATCH)
        yield conn
        conn.execute(f"SET {PROPAGATES} = off")
        conn.execute("DROP EVENT TRIGGER watch; DROP FUNCTION refuse(); DROP OWNED BY reader; DROP ROLE reader; DROP TYPE pair")


def queues_left(conn):
    return db.value(conn, "SELECT count(*) FROM aq.queues") + db.value(conn, "SELECT count(*) FROM aq.queue_tables")


def test_the_watch_sees_commands(watched):
    for command in ("CREATE TABLE seen (i int)", "CREATE VIEW seen AS SELECT 1", "GRANT SELECT ON pg_class TO reader", "COMMENT ON TYPE pair IS 'x'"):
        with pytest.raises(psycopg.Error, match="not allowed on this node"):
            watched.execute(command)


def test_definitions_are_local(watched):
    """Every command with which a queue is made, changed and dropped."""
    for call in (
        "create_queue('q')", "create_queue('typed', payload_type => 'pair')", "create_queue('t', multiple_consumers => true)",
        "create_queue_table('public.tab', multiple_consumers => true)", "create_queue('tabled', queue_table => 'public.tab')",
        "create_queue_table('public.single')", "create_queue('old', queue_table => 'public.single')", "convert_queue('old')",
        "subscribe('t', 'ann', 'priority < 5')", "grant_queue('t', 'reader')", "revoke_queue('t', 'reader')", "grant_consumer('t', 'ann', 'reader')",
        "alter_queue('q', new_owner => 'reader')", "alter_queue_table('public.tab', 'noted')",
    ):  # fmt: skip
        watched.execute(f"SELECT aq.{call}")
    put(watched, "q", "b", delivery_mode="buffered")
    for queue in ("q", "typed", "t", "tabled", "old"):
        watched.execute("SELECT aq.drop_queue(%s, force => true)", [queue])
    watched.execute("SELECT aq.drop_queue_table('public.tab', force => true), aq.drop_queue_table('public.single')")
    assert queues_left(watched) == 0
    assert db.value(watched, f"SHOW {PROPAGATES}") == "on"


def test_definitions_of_the_packages_are_local(watched):
    """Views of queues and queue tables, and the functions of transformations."""
    for call in (
        "dbms_aqadm.create_queue_table('public.tab', 'pair', multiple_consumers => true)", "dbms_aqadm.create_queue('public.q', 'public.tab')",
        "dbms_aqadm.create_transactional_event_queue('public.s', queue_payload_type => 'pair')",
        "dbms_transform.create_transformation('public', 'swap', 'public', 'pair', 'public', 'pair', 'ROW(source.user_data.y, source.user_data.x)')",
    ):  # fmt: skip
        watched.execute(f"CALL {call}")
    made = db.value(watched, "SELECT count(*) FROM pg_views WHERE schemaname = 'public'"), db.value(watched, "SELECT count(*) FROM pg_proc WHERE proname = 'swap'")
    assert made == (5, 1)
    for call in (
        "dbms_transform.drop_transformation('public', 'swap')", "dbms_aqadm.drop_transactional_event_queue('public.s')",
        "dbms_aqadm.drop_queue_table('public.tab', force => true)",
    ):  # fmt: skip
        watched.execute(f"CALL {call}")
    assert queues_left(watched) == 0


def test_tables_of_the_worker_are_local(server, watched):
    """More messages than the partitions that a new queue has: the worker makes more."""
    watched.execute("SELECT aq.create_queue('q')")
    for first in range(1, 100_001, 20_000):
        put_many(watched, "q", first, first + 19_999)
    until(lambda: db.value(watched, "SELECT count(*) FROM aq_internal.message_table") > 6, "tables of partitions")
    assert take(watched, "q") == list(range(1, 100_001))
    watched.execute("SELECT aq.drop_queue('q')")


def test_an_error_restores_the_setting(watched):
    watched.execute("SELECT aq.create_queue('q')")
    with watched.transaction():
        for call in ("SELECT aq.create_queue('typed', payload_type => 'aq.no_such_type')", "SELECT aq.create_queue('q')", "CALL dbms_aqadm.create_queue_table('nowhere.tab', 'pair')"):
            with pytest.raises(psycopg.Error), watched.transaction():
                watched.execute(call)
            assert db.value(watched, f"SHOW {PROPAGATES}") == "on"
    watched.execute("SELECT aq.drop_queue('q')")


# -- with Citus: a coordinator and two workers


class Nodes:
    """The servers, the coordinator first, with the table "orders" distributed over the workers, and a queue "q" of its own on each."""

    def __init__(self) -> None:
        settings = {"shared_preload_libraries": "citus,pgaq", "citus.node_conninfo": "sslmode=prefer", "citus.recover_2pc_interval": "-1", "synchronous_commit": "local"}
        self.servers = [Server.temporary(f"citus{number}", settings=settings) for number in range(3)]
        for server in self.servers:
            with server.connect() as conn:
                conn.execute("CREATE EXTENSION citus")
        with self.connect() as conn:
            # Citus takes whatever libpq takes as a host, also the directory of a socket
            for call, server in zip(("set_coordinator_host", "add_node", "add_node"), self.servers):
                conn.execute(f"SELECT citus_{call}(%s, %s)", [str(server.socket_dir), server.port])
            install(conn)
            conn.execute("CREATE TABLE orders (id int PRIMARY KEY, state text)")
            conn.execute("SELECT create_distributed_table('orders', 'id')")
        for server in self.servers:
            with server.connect() as conn:
                conn.execute("SELECT aq.create_queue('q')")

    def connect(self, number: int = 0, **more):
        return self.servers[number].connect(**more)

    def ask(self, query: str, number: int = 0):
        with self.connect(number) as conn:
            return db.value(conn, query)

    def recover(self) -> None:
        """What Citus does every citus.recover_2pc_interval."""
        self.ask("SELECT recover_prepared_transactions()")

    def prepared(self) -> int:
        return sum(self.ask("SELECT count(*) FROM pg_prepared_xacts", number) for number in (1, 2))

    def restart_killed(self) -> None:
        """Kill the coordinator and start it again; commits wait for no standby any more."""
        self.servers[0].kill()
        self.servers[0].configure(synchronous_standby_names=None)
        self.servers[0].start()


@pytest.fixture(scope="module")
def nodes():
    if not (Path(places.pg_config("sharedir")) / "extension" / "citus.control").exists():
        pytest.skip("missing: Citus")
    made = Nodes()
    yield made
    problems = []
    # of all servers first: Citus logs it when another node ends
    for server in made.servers:
        server.expect_log("prepared transaction|terminat|connection")
        problems += [*server.problems(), *differences(server)]
    for server in made.servers:
        server.destroy()
    assert problems == []


def objects(nodes: Nodes, number: int) -> list[str]:
    with nodes.connect(number) as conn:
        return [row[0] for row in conn.execute("SELECT relname FROM pg_class WHERE relnamespace IN ('aq_data'::regnamespace, 'public'::regnamespace) AND relkind IN ('r', 'v', 'S') ORDER BY 1")]


@pytest.mark.parametrize("number", [0, 1], ids=["coordinator", "worker"])
def test_a_queue_belongs_to_the_node_that_made_it(nodes, number):
    before = [objects(nodes, node) for node in range(3)]
    with nodes.connect(number) as conn:
        conn.execute("SELECT aq.create_queue('mine', multiple_consumers => true), aq.create_queue_table('public.tab'), aq.create_queue('tabled', queue_table => 'public.tab')")
        conn.execute("CALL dbms_aqadm.create_queue_table('public.otab', 'RAW')")
        made = [objects(nodes, node) for node in range(3)]
        conn.execute("SELECT aq.drop_queue('mine'), aq.drop_queue_table('public.tab', force => true)")
        conn.execute("CALL dbms_aqadm.drop_queue_table('public.otab', force => true)")
    assert [len(made[node]) > len(before[node]) for node in range(3)] == [node == number for node in range(3)]
    assert [objects(nodes, node) for node in range(3)] == before


def test_messages_commit_and_roll_back_with_distributed_rows(nodes):
    with nodes.connect(autocommit=False) as conn:
        for state, end in (("kept", conn.commit), ("undone", conn.rollback)):
            conn.execute("INSERT INTO orders SELECT n, %s FROM generate_series(1, 10) n ON CONFLICT (id) DO UPDATE SET state = excluded.state", [state])
            put(conn, "q", state)
            end()
        assert db.value(conn, "SELECT string_agg(DISTINCT state, ' ') FROM orders") == "kept"
        assert take(conn, "q") == ["kept"]
        conn.execute("DELETE FROM orders")
        conn.rollback()
        assert db.value(conn, "SELECT count(*) FROM orders") == 10
        assert take(conn, "q") == ["kept"]
        conn.execute("DELETE FROM orders")
        conn.commit()
    assert nodes.ask("SELECT count(*) FROM orders") == 0
    with nodes.connect() as conn:
        assert take(conn, "q") == []


def wait_for_standby(nodes: Nodes) -> None:
    """From now on sessions of the coordinator with synchronous_commit = on wait for a standby that never comes."""
    nodes.servers[0].configure(synchronous_standby_names="none")
    with nodes.connect() as conn:
        conn.execute("SELECT pg_reload_conf()")
    until(lambda: nodes.ask("SHOW synchronous_standby_names") == "none")


def stopped_commit(nodes: Nodes, where: str) -> None:
    """A transaction with a row on one worker, a message here and a dequeued message, that stops inside its commit.

    before: behind the callbacks of pre-commit, waiting for the lock of NOTIFY, which
    another commit holds that waits for a standby; after: behind the record of the
    commit, waiting for the standby itself.
    """
    wait_for_standby(nodes)
    if where == "before":
        holder = nodes.connect()
        holder.execute("SET synchronous_commit = on")
        holder.pgconn.send_query(b"SELECT pg_logical_emit_message(true, 'something', 'to wait for'); NOTIFY held")
        wait_event(nodes, holder, "SyncRep")
    conn = nodes.connect(autocommit=False)
    if where == "after":
        conn.execute("SET synchronous_commit = on")
    conn.execute("INSERT INTO orders VALUES (7, 'new')")
    assert take(conn, "q") == ["old"]
    put(conn, "q", "new")
    conn.execute("NOTIFY held")
    conn.pgconn.send_query(b"COMMIT")
    wait_event(nodes, conn, "object" if where == "before" else "SyncRep")


def taken(nodes: Nodes, number: int) -> list:
    with nodes.connect(number) as conn:
        return take(conn, "q")


def wait_event(nodes: Nodes, conn, event: str) -> None:
    until(lambda: nodes.ask(f"SELECT wait_event FROM pg_stat_activity WHERE pid = {conn.info.backend_pid}") == event, f"wait event {event}")


@pytest.mark.parametrize("where", ["before", "after"])
def test_crash_inside_a_commit_separates_nothing(nodes, where):
    """With the row on one worker only, Citus would commit it before the message, unless it is asked for two phases."""
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute("SELECT aq.purge_queue('q')")
        put(conn, "q", "old")
    stopped_commit(nodes, where)
    assert nodes.prepared() == 1
    nodes.restart_killed()
    nodes.recover()
    assert nodes.prepared() == 0
    committed = where == "after"
    with nodes.connect() as conn:
        assert db.value(conn, "SELECT count(*) FROM orders") == committed
        assert take(conn, "q") == (["new"] if committed else ["old"])


def crash_in_commit(nodes: Nodes, change: str) -> None:
    """A transaction that changes a table of pgaq, but no queue, and a row on one worker; the crash comes behind the record of its commit."""
    wait_for_standby(nodes)
    stopped = nodes.connect(autocommit=False)
    stopped.execute("SET synchronous_commit = on")
    stopped.execute("INSERT INTO orders VALUES (7, 'new')")
    stopped.execute(f"SELECT {change}")
    stopped.pgconn.send_query(b"COMMIT")
    wait_event(nodes, stopped, "SyncRep")
    assert nodes.prepared() == 1
    nodes.restart_killed()
    nodes.recover()


def test_a_registration_commits_in_two_phases(nodes):
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
    crash_in_commit(nodes, "aq.register('q', 'client://')")
    assert nodes.ask("SELECT string_agg(state, ' ') FROM orders") == "new"
    assert nodes.ask("SELECT count(aq.unregister(registration_id)) FROM aq.registrations") == 1


def test_a_schedule_of_propagation_commits_in_two_phases(nodes):
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute("SELECT aq.create_queue('near'), aq.create_queue('far')")
    crash_in_commit(nodes, "aq.propagate('near', 'far')")
    assert nodes.ask("SELECT string_agg(state, ' ') FROM orders") == "new"
    assert nodes.ask("SELECT string_agg(destination, ' ') FROM aq.propagations") == "far"
    nodes.ask("SELECT aq.drop_queue('near', force => true)")


def test_what_is_posted_commits_in_two_phases(nodes):
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute("CREATE PROCEDURE note(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.orders VALUES (8, 'noted'); END $$")
        conn.execute("SELECT aq.register('news', 'plsql://public.note', namespace => 'anonymous')")
    crash_in_commit(nodes, "aq.post('news', 'x')")
    # the registered procedure changes rows of the workers, too
    until(lambda: nodes.ask("SELECT string_agg(state, ' ' ORDER BY id) FROM orders") == "new noted", "the notification")


def test_a_trigger_on_a_shard_enqueues_on_the_node_of_the_shard(nodes):
    """In one transaction on both workers. After a crash of the coordinator its messages are in doubt until Citus recovers; others are not."""
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute("CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM aq.enqueue('q', to_jsonb(new.id)); RETURN NULL; END $$")
        conn.execute("SET citus.enable_unsafe_triggers = on")
        conn.execute("CREATE TRIGGER announce AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION announce()")
        conn.execute("INSERT INTO orders SELECT n, 'x' FROM generate_series(1, 100) n")
    got = [taken(nodes, number) for number in (1, 2)]
    assert all(got) and sorted(sum(got, [])) == list(range(1, 101))
    wait_for_standby(nodes)
    stopped = nodes.connect()
    stopped.execute("SET synchronous_commit = on")
    stopped.pgconn.send_query(b"INSERT INTO orders SELECT n, 'x' FROM generate_series(101, 200) n")
    wait_event(nodes, stopped, "SyncRep")
    nodes.restart_killed()
    assert nodes.prepared() > 1
    assert [taken(nodes, number) for number in (1, 2)] == [[], []]
    nodes.recover()
    got = [taken(nodes, number) for number in (1, 2)]
    assert all(got) and sorted(sum(got, [])) == list(range(101, 201))
    with nodes.connect() as conn:
        conn.execute("SET citus.enable_unsafe_triggers = on")
        conn.execute("DROP TRIGGER announce ON orders")
        conn.execute("DROP FUNCTION announce()")
