"""Citus: the objects of queues belong to one node, and messages commit with rows on other nodes.

The first tests need no Citus: its setting is a placeholder, and a trigger watches it.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import psycopg
import pytest

from conftest import PATIENCE, arrived, differences, install, put, put_many, retry_at_once, take, until
from nodes import QUICK, Load, Node, Shared, value
from pgaq import db, places
from pgaq.cluster import CALLS
from pgaq.server import Server

pytestmark = pytest.mark.own_tables

PROPAGATES = "citus.enable_ddl_propagation"
SETTINGS = {PROPAGATES: "on"}
# of other nodes that end, and of shards that could not be removed yet
EXPECTED = "prepared transaction|terminat|connect|failed to|the database system is"

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
    for command in (
        "CREATE TABLE seen (i int)",
        "CREATE VIEW seen AS SELECT 1",
        "GRANT SELECT ON pg_class TO reader",
        "COMMENT ON TYPE pair IS 'x'",
    ):
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
    made = (
        db.value(watched, "SELECT count(*) FROM pg_views WHERE schemaname = 'public'"),
        db.value(watched, "SELECT count(*) FROM pg_proc WHERE proname = 'swap'"),
    )
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
        for call in (
            "SELECT aq.create_queue('typed', payload_type => 'aq.no_such_type')",
            "SELECT aq.create_queue('q')",
            "CALL dbms_aqadm.create_queue_table('nowhere.tab', 'pair')",
        ):
            with pytest.raises(psycopg.Error), watched.transaction():
                watched.execute(call)
            assert db.value(watched, f"SHOW {PROPAGATES}") == "on"
    watched.execute("SELECT aq.drop_queue('q')")


# -- with Citus: a coordinator and two workers


class Nodes:
    """The servers, the coordinator first, with the table "orders" distributed over the workers, and a queue "q" of its own on each."""

    def __init__(self) -> None:
        self.servers = [self.server(number) for number in range(3)]
        with self.connect() as conn:
            # Citus takes whatever libpq takes as a host, also the directory of a socket
            for call, server in zip(("set_coordinator_host", "add_node", "add_node"), self.servers):
                conn.execute(f"SELECT citus_{call}(%s, %s)", [str(server.socket_dir), server.port])
            install(conn)
            conn.execute("CREATE TABLE orders (id int PRIMARY KEY, state text)")
            conn.execute("SELECT create_distributed_table('orders', 'id')")
        for server in self.servers:
            with server.connect() as conn:
                if server != self.servers[0]:
                    conn.execute(f"SET {PROPAGATES} = off")
                    retry_at_once(conn)
                conn.execute("SELECT aq.create_queue('q')")

    @staticmethod
    def server(number: int) -> Server:
        settings = {
            "shared_preload_libraries": "citus,pgaq",
            "citus.node_conninfo": "sslmode=prefer",
            "citus.recover_2pc_interval": "-1",
            "synchronous_commit": "local",
        }
        server = Server.temporary(f"citus{number}", tcp=True, settings={**QUICK, **settings, "wal_level": "logical"}, start=False)
        server.configure(**{"citus.local_hostname": str(server.socket_dir)})
        server.start()
        with server.connect() as conn:
            conn.execute("CREATE EXTENSION citus")
        return server

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
        server.expect_log(EXPECTED)
        problems += [*server.problems(), *differences(server)]
    for server in made.servers:
        server.destroy()
    assert problems == []


def objects(nodes: Nodes, number: int) -> list[str]:
    with nodes.connect(number) as conn:
        return [
            row[0]
            for row in conn.execute(
                "SELECT relname FROM pg_class WHERE relnamespace IN ('aq_data'::regnamespace, 'public'::regnamespace) AND relkind IN ('r', 'v', 'S') ORDER BY 1"
            )
        ]


@pytest.mark.parametrize("number", [0, 1], ids=["coordinator", "worker"])
def test_a_queue_belongs_to_the_node_that_made_it(nodes, number):
    before = [objects(nodes, node) for node in range(3)]
    with nodes.connect(number) as conn:
        conn.execute(
            "SELECT aq.create_queue('mine', multiple_consumers => true), aq.create_queue_table('public.tab'), aq.create_queue('tabled', queue_table => 'public.tab')"
        )
        conn.execute("CALL dbms_aqadm.create_queue_table('public.otab', 'RAW')")
        made = [objects(nodes, node) for node in range(3)]
        conn.execute("SELECT aq.drop_queue('mine'), aq.drop_queue_table('public.tab', force => true)")
        conn.execute("CALL dbms_aqadm.drop_queue_table('public.otab', force => true)")
    assert [len(made[node]) > len(before[node]) for node in range(3)] == [node == number for node in range(3)]
    assert [objects(nodes, node) for node in range(3)] == before


def test_messages_commit_and_roll_back_with_distributed_rows(nodes):
    with nodes.connect(autocommit=False) as conn:
        for state, end in (("kept", conn.commit), ("undone", conn.rollback)):
            conn.execute(
                "INSERT INTO orders SELECT n, %s FROM generate_series(1, 10) n ON CONFLICT (id) DO UPDATE SET state = excluded.state",
                [state],
            )
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


def stopped_commit(nodes: Nodes, where: str, work) -> None:
    """A transaction of the coordinator that stops inside its commit.

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
    work(conn)
    conn.execute("NOTIFY held")
    conn.pgconn.send_query(b"COMMIT")
    wait_event(nodes, conn, "object" if where == "before" else "SyncRep")


def old_for_new(conn) -> None:
    """A row on one worker, a message here, and a dequeued message."""
    conn.execute("INSERT INTO orders VALUES (7, 'new')")
    assert take(conn, "q") == ["old"]
    put(conn, "q", "new")


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
    stopped_commit(nodes, where, old_for_new)
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
    crash_in_commit(nodes, "aq.create_propagation('near', 'far')")
    assert nodes.ask("SELECT string_agg(state, ' ') FROM orders") == "new"
    assert nodes.ask("SELECT string_agg(destination, ' ') FROM aq.propagations") == "far"
    nodes.ask("SELECT aq.drop_queue('near', force => true)")


def test_what_is_posted_commits_in_two_phases(nodes):
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute(
            "CREATE PROCEDURE note(n aq.notification) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.orders VALUES (8, 'noted'); END $$"
        )
        conn.execute("SELECT aq.register('news', 'plsql://public.note', namespace => 'anonymous')")
    crash_in_commit(nodes, "aq.post('news', 'x')")
    # the registered procedure changes rows of the workers, too
    until(lambda: nodes.ask("SELECT string_agg(state, ' ' ORDER BY id) FROM orders") == "new noted", "the notification")


def announce(nodes: Nodes, queue: str) -> None:
    """From now on, a message is enqueued for each row that is inserted into the empty table."""
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
        conn.execute(
            f"CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM aq.enqueue('{queue}', to_jsonb(new.id)); RETURN NULL; END $$"
        )
        conn.execute("SET citus.enable_unsafe_triggers = on")
        conn.execute("CREATE TRIGGER announce AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION announce()")


def announce_no_more(nodes: Nodes) -> None:
    with nodes.connect() as conn:
        conn.execute("SET citus.enable_unsafe_triggers = on")
        conn.execute("DROP TRIGGER announce ON orders")
        conn.execute("DROP FUNCTION announce() CASCADE")  # shards that were moved away have triggers, too


def test_a_trigger_on_a_shard_enqueues_on_the_node_of_the_shard(nodes):
    """In one transaction on both workers. After a crash of the coordinator its messages are in doubt until Citus recovers; others are not."""
    announce(nodes, "q")
    with nodes.connect() as conn:
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
    announce_no_more(nodes)


# -- distributed queues


def on_all_nodes(nodes: Nodes, command: str) -> list[str]:
    with nodes.connect() as conn:
        rows = conn.execute("SELECT success, result FROM run_command_on_all_nodes(%s) ORDER BY nodeid", [command]).fetchall()
    assert all(row[0] for row in rows), rows
    return [row[1] for row in rows]


SERVERS = """
SELECT format('CREATE SERVER IF NOT EXISTS node_%s FOREIGN DATA WRAPPER pgaq_link OPTIONS (host %L, port %L, dbname %L)', groupid, '127.0.0.1', nodeport, current_database())
FROM pg_dist_node WHERE noderole = 'primary'
"""
MAPPINGS = """
SELECT format('CREATE USER MAPPING IF NOT EXISTS FOR CURRENT_USER SERVER %I OPTIONS (user %L, password %L)', srvname, 'remote', 'secret')
FROM pg_foreign_server WHERE srvname LIKE 'node\\_%'
"""
ADD = """
SELECT count(aq.add_node(srvname)) FROM pg_foreign_server, pg_dist_local_group
WHERE srvname LIKE 'node\\_%' AND srvname <> 'node_' || groupid AND srvname NOT IN (SELECT server FROM aq.nodes WHERE server IS NOT NULL)
"""


def join(nodes: Nodes) -> None:
    """Each node of Citus is a node for the others, with the commands of docs/citus.md; also once more."""
    with nodes.connect() as conn:
        for (command,) in conn.execute(SERVERS).fetchall():
            conn.execute(command)
        mappings = conn.execute(MAPPINGS).fetchall()
    on_all_nodes(nodes, f"GRANT EXECUTE ON FUNCTION {CALLS} TO remote")
    for (command,) in mappings:
        on_all_nodes(nodes, command)
    on_all_nodes(nodes, ADD)


@pytest.fixture(scope="module")
def linked(nodes):
    with nodes.connect() as conn:
        conn.execute("CREATE ROLE remote LOGIN PASSWORD 'secret'")
    join(nodes)
    made = [Node(server) for server in nodes.servers]
    for number, node in enumerate(made):
        for other in range(3):
            if other != number:
                node.sees(f"node_{other}", "reachable", mutual=True)
    return made


@pytest.fixture
def shared(linked):
    queue = Shared(linked, "shared")
    yield queue
    queue.drop()


def test_servers_change_on_all_nodes(nodes, linked):
    """Links follow what Citus passes on: CREATE SERVER, of the fixture, and ALTER SERVER; it is refused elsewhere."""
    coordinator, one, two = linked
    alter = "ALTER SERVER node_2 OPTIONS ({} enabled 'false')"
    with coordinator.connect() as conn:
        conn.execute(alter.format("ADD"))
        coordinator.sees("node_2", "unreachable")
        one.sees("node_2", "unreachable")
        conn.execute("ALTER SERVER node_2 OPTIONS (DROP enabled)")
    coordinator.sees("node_2", "reachable")
    one.sees("node_2", "reachable")
    with two.connect() as conn, pytest.raises(db.Error, match="not allowed on this node"):
        conn.execute(alter.format("ADD"))


class Distributed(Load):
    """The ledgers are also in a distributed table."""

    def __init__(self, nodes, queue, seed, **more):
        super().__init__(nodes, queue, seed, **more)
        with nodes[0].connect() as conn:
            conn.execute(
                "DROP TABLE IF EXISTS ledger; CREATE TABLE ledger (entry text, event text); SELECT create_distributed_table('ledger', 'entry')"
            )

    def note(self, conn, ledger, *row):
        super().note(conn, ledger, *row)
        conn.execute("INSERT INTO ledger VALUES (%s, %s)", [row[0], ledger])

    def finish(self, patience=120):
        result = super().finish(patience)
        for ledger in ("sent", "got"):
            here = sorted(row for node in self.nodes for row in rows(node, f"SELECT message FROM {ledger}"))
            assert here == sorted(rows(self.nodes[0], f"SELECT entry FROM ledger WHERE event = '{ledger}'"))
        return result


def rows(node, query):
    with node.connect() as conn:
        return [row[0] for row in conn.execute(query).fetchall()]


@pytest.fixture
def recovering(nodes):
    """Citus finishes prepared transactions soon."""
    for interval in ("1 s", "-1"):
        for server in nodes.servers:
            server.start()
            server.configure(**{"citus.recover_2pc_interval": interval})
            server.reload()
        if interval != "-1":
            yield


def test_load_with_kills(nodes, linked, shared, recovering, is_long, seed):
    """Servers are killed between the phases of commits, and elsewhere."""
    rng = random.Random(seed)
    with Distributed(linked, shared.name, seed) as load:
        for _ in range(60 if is_long else 4):
            goal = load.got + rng.choice((50, 100, 200))
            until(lambda: load.got > goal, "progress", 2 * PATIENCE)
            node = rng.choice(linked)
            node.server.kill()
            time.sleep(rng.choice((0, 0.5, 2)))
            node.server.start()
            shared.ask_back(rng.choice(linked))
        print(load.finish(2 * PATIENCE))
    until(lambda: sum(value(node, "SELECT count(*) FROM pg_prepared_xacts") for node in linked) == 0, "recovery")
    print("recovered:", sum(server.log_text().count("recovered a prepared transaction") for server in nodes.servers))


def all_taken(nodes: Nodes, queue: str, number: int) -> list:
    """That many messages, from whatever node they come."""
    got: list = []

    def enough() -> bool:
        for at in range(3):
            with nodes.connect(at) as conn:
                got.extend(take(conn, queue))
        return len(got) >= number

    until(enough, f"{number} messages")
    return sorted(got)


def test_rows_of_shards_are_announced_once(nodes, shared):
    """By triggers, into a distributed queue; also if the shards move to another node and back."""
    announce(nodes, shared.name)
    for first, mode in ((1, "block_writes"), (101, "force_logical"), (201, None)):
        with nodes.connect() as conn:
            conn.execute("INSERT INTO orders SELECT n, 'x' FROM generate_series(%s::int, %s::int) n", [first, first + 99])
            if mode:
                workers = conn.execute("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid IN (1, 2)").fetchall()
                for shard, *at in conn.execute(
                    "SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = 'orders'::regclass ORDER BY shardid LIMIT 4"
                ).fetchall():
                    (to,) = (worker for worker in workers if worker != tuple(at))
                    conn.execute("SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, %s)", [shard, *at, *to, mode])
        assert all_taken(nodes, shared.name, 100) == list(range(first, first + 100))
    announce_no_more(nodes)


def test_messages_in_doubt_come_once(nodes, shared):
    """Those that triggers have enqueued in a transaction that is prepared on the workers; others come as ever."""
    announce(nodes, shared.name)
    stopped_commit(nodes, "after", lambda conn: conn.execute("INSERT INTO orders SELECT n, 'x' FROM generate_series(1, 100) n"))
    nodes.restart_killed()
    nodes.servers[1].kill()
    nodes.servers[1].start()
    assert nodes.prepared() > 1
    with nodes.connect(1) as conn:
        put_many(conn, shared.name, 101, 200)
    assert all_taken(nodes, shared.name, 100) == list(range(101, 201))
    nodes.recover()
    assert all_taken(nodes, shared.name, 100) == list(range(1, 101))
    announce_no_more(nodes)


@pytest.mark.parametrize("where", ["before", "after"])
def test_crash_of_a_holder_inside_a_commit(nodes, shared, where):
    """The coordinator dequeues messages of a worker, and changes a row on a worker."""
    coordinator, worker, _ = shared.nodes
    with nodes.connect() as conn:
        conn.execute("DELETE FROM orders")
    with nodes.connect(1) as conn:
        put_many(conn, shared.name, 1, 10)
    shared.lend(coordinator)
    shared.holds(coordinator, 10)

    def work(conn) -> None:
        conn.execute("INSERT INTO orders VALUES (7, 'new')")
        assert take(conn, shared.name) == list(range(1, 11))

    stopped_commit(nodes, where, work)
    assert nodes.prepared() == 1
    nodes.restart_killed()
    nodes.recover()
    assert nodes.ask("SELECT count(*) FROM orders") == (where == "after")
    assert all_taken(nodes, shared.name, 0 if where == "after" else 10) == ([] if where == "after" else list(range(1, 11)))
    until(lambda: shared.states(worker) == {}, "the report")


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_dequeue_in_doubt_keeps_its_unit(nodes, shared, where):
    """A trigger on a shard dequeues a message of the coordinator, which then crashes inside its commit."""
    coordinator, worker, _ = shared.nodes
    with nodes.connect() as conn:
        put_many(conn, shared.name, 1, 10)
        conn.execute("CREATE TABLE work (id int, message jsonb); SELECT create_distributed_table('work', 'id')")
        conn.execute(
            f"CREATE FUNCTION get_message() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.message := (SELECT payload FROM aq.dequeue('{shared.name}')); RETURN new; END $$"
        )
        conn.execute("SET citus.enable_unsafe_triggers = on")
        conn.execute("CREATE TRIGGER get_message BEFORE INSERT ON work FOR EACH ROW EXECUTE FUNCTION get_message()")
        number = db.value(
            conn,
            "SELECT n FROM generate_series(1, 1000) n JOIN citus_shards s ON s.shardid = get_shard_id_for_distribution_column('work', n) WHERE nodeport = %s LIMIT 1",
            [nodes.servers[1].port],
        )
    shared.lend(worker)
    shared.holds(worker, 10)

    def work(conn) -> None:
        conn.execute("INSERT INTO work VALUES (%s)", [number])
        put(conn, "q", "worked")

    stopped_commit(nodes, where, work)
    nodes.restart_killed()
    shared.ask_back(coordinator, at_once=True)
    until(lambda: [unit["returns"] for unit in shared.units(worker, "held")] == [True], "the recall")
    with nodes.connect(1) as conn:
        assert take(conn, shared.name) == []
    nodes.recover()
    until(lambda: shared.units(worker, "held") == [], "the return")
    done = [1] if where == "after" else []
    with nodes.connect() as conn:
        assert arrived(conn, shared.name, 10 - len(done)) == list(range(1 + len(done), 11))
        assert [row[0] for row in conn.execute("SELECT message FROM work").fetchall()] == done
        assert take(conn, "q") == ["worked"] * len(done)
        conn.execute("DROP TABLE work")
        conn.execute("DROP FUNCTION get_message()")


def test_a_node_comes_and_goes_under_load(nodes, shared, recovering, throw_away, seed):
    """It gets extension, role, and links from Citus; shards of the ledger move there and back."""
    server = throw_away(nodes.server(3))
    server.expect_log(EXPECTED)
    node = Node(server)
    others = list(shared.nodes)
    with Distributed(others, shared.name, seed) as load:
        until(lambda: load.got > 100, "progress")
        nodes.ask(f"SELECT citus_add_node('{server.socket_dir}', {server.port})")
        group = value(node, "SELECT groupid FROM pg_dist_local_group")
        join(nodes)
        with node.connect() as conn:
            conn.execute(
                "SELECT aq.create_queue('shared', distributed => true, max_retries => NULL, retry_delay => '0', if_not_exists => true)"
            )
            conn.execute("SELECT aq.grant_queue('shared', 'remote', 'enqueue, dequeue')")
        number = load.join(node)
        nodes.ask("SELECT rebalance_table_shards('ledger', shard_transfer_mode => 'block_writes')")
        until(lambda: value(node, "SELECT count(*) FROM got") > 50, "progress of the new node")
        until(lambda: value(node, "SELECT sum(forwarded) FROM aq.nodes") > 0, "messages of the new node elsewhere")
        load.leave(number)
        until(lambda: shared.states(node) == {}, "the last messages of the node")
        load.active[number] = False
        until(lambda: shared.units(node, "held") == [], "the return of all units")
        with node.connect() as conn:
            conn.execute("SELECT aq.drop_queue('shared')")
        for other in others:
            until(lambda: f"node_{group}" not in [unit["server"] for unit in shared.units(other, "held")], "the end of the node's units")
        nodes.ask(f"SELECT citus_drain_node('{server.socket_dir}', {server.port}, shard_transfer_mode => 'block_writes')")
        for other in others:
            other.remove(f"node_{group}")
        with node.connect() as conn:
            conn.execute("SELECT aq.remove_node(server) FROM aq.nodes WHERE server IS NOT NULL")
        nodes.ask(f"SELECT citus_remove_node('{server.socket_dir}', {server.port})")
        with nodes.connect() as conn:
            conn.execute(f"DROP SERVER node_{group} CASCADE")
        print(load.finish(2 * PATIENCE))
