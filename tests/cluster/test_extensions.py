"""The extensions pgaq and pgaq_oracle: the first without the second, what stands in their way, and what is left of them."""

from __future__ import annotations

import psycopg
import pytest

from conftest import look, put, take
from pgaq import db

pytestmark = pytest.mark.own_tables

SCHEMAS = ["aq", "aq_jms", "aq_internal", "aq_data"]
ORACLE_SCHEMAS = [
    "sys",
    "dbms_aq",
    "dbms_aqadm",
    "dbms_transform",
    "dbms_aqmigtool",
    "dbms_aqelm",
    "dbms_aqjms",
    "dbms_jms_plsql",
    "dbms_shared_pool",
    "dbms_workload_repository",
    "dbms_application_info",
]


@pytest.fixture
def empty(server):
    """A session in a database without the extensions."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE empty")
    with server.connect("empty") as conn:
        yield conn
    with server.connect() as conn:
        conn.execute("DROP DATABASE empty WITH (FORCE)")


@pytest.fixture
def native(empty):
    empty.execute("CREATE EXTENSION pgaq")
    return empty


def contents(conn):
    """How many rows each catalog of this database has, and the schemas."""
    catalogs = [
        r[0]
        for r in conn.execute("""SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared
        AND relname NOT LIKE 'pg_statistic%' ORDER BY 1""")
    ]
    counts = {name: db.value(conn, f"SELECT count(*) FROM pg_catalog.{name}") for name in catalogs}
    return {
        **counts,
        "schemas": [r[0] for r in conn.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp' ORDER BY 1")],
    }


def test_no_object_of_pgaq_needs_pgaq_oracle(native):
    assert db.value(native, "SELECT count(*) FROM pg_namespace WHERE nspname = ANY (%s)", [ORACLE_SCHEMAS]) == 0
    # in code or hints; what says who made a thing is in comments
    mentioned = native.execute("""SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace IN ('aq'::regnamespace, 'aq_jms'::regnamespace, 'aq_internal'::regnamespace)
        AND (p.prosrc ~ '\\m(sys|dbms_\\w+)\\.' OR pg_get_functiondef(p.oid) ~ '\\m(sys|dbms_\\w+)\\.')""").fetchall()
    assert mentioned == []


def test_messages_without_pgaq_oracle(native):
    native.execute("SELECT aq.create_queue('q'), aq.create_queue('t', multiple_consumers => true), aq.create_queue_table('public.tab')")
    native.execute(
        "SELECT aq.create_queue('tabled', queue_table => 'public.tab'), aq.subscribe('t', 'ann', 'priority < 5'), aq.subscribe('t', 'bob')"
    )
    put(native, "q", 1, 2)
    put(native, "t", 3)
    put(native, "tabled", 4)
    put(native, "q", "b", delivery_mode="buffered")
    assert (
        take(native, "q") == [1, 2]
        and take(native, "t", "ann") == [3]
        and look(native, "t", "bob") == [3]
        and take(native, "tabled") == [4]
    )
    assert db.value(native, "SELECT sum(aq.purge_queue(queue_name)) FROM aq.queues WHERE queue_table = 'public.tab'") == 0
    native.execute("SELECT aq.drop_queue('t', force => true), aq.drop_queue_table('public.tab', force => true)")


def test_views_without_pgaq_oracle(native):
    """Each view and its columns can be read."""
    native.execute("SELECT aq.create_queue('q')")
    put(native, "q", 1)
    views = [
        r[0]
        for r in native.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'aq'::regnamespace AND relkind = 'v' ORDER BY 1"
        )
    ]
    assert {"aq.waits", "aq.latches", "aq.sessions", "aq.snapshots", "aq.session_history"} <= set(views)
    for view in views:
        native.execute(f"SELECT * FROM {view}").fetchall()


def test_users_views_are_not_read_only(native):
    """A schema sys of a user, and a user's view in schema aq: not those of the extensions."""
    native.execute("""CREATE SCHEMA sys; CREATE TABLE own AS SELECT 1 AS n; CREATE VIEW sys.own AS SELECT n FROM own; CREATE VIEW aq.own AS SELECT n FROM own;
        CREATE FUNCTION sys._rows() RETURNS SETOF own LANGUAGE sql AS 'SELECT n FROM own'; CREATE VIEW of_function AS SELECT * FROM sys._rows()""")
    for view in ("sys.own", "aq.own", "of_function"):
        assert db.value(native, f"SELECT n FROM {view} FOR UPDATE") == 1, view
    assert db.value(native, "UPDATE sys.own SET n = 2 RETURNING n") == 2
    assert db.value(native, "UPDATE aq.own SET n = 3 RETURNING n") == 3
    with pytest.raises(db.Error, match='cannot update view "queues"'):
        native.execute("UPDATE aq.queues SET comment = 'c'")


def test_reports_without_pgaq_oracle(native):
    native.execute("SELECT aq.create_queue('q')")
    first = db.value(native, "SELECT aq.take_snapshot()")
    put(native, "q", *range(10))
    last = db.value(native, "SELECT aq.take_snapshot()")
    assert db.value(native, "SELECT sum(errors) FROM aq.snapshots") == 0, native.execute(
        "SELECT * FROM aq.snapshot_figures WHERE source = 'error'"
    ).fetchall()
    for report in (
        f"aq.report_awr({first}, {last})",
        "aq.report_ash(now() - interval '1 minute')",
        f"aq.report_rtpctx({first}, {last})",
        "aq.rtpctx_report(aq.rtpctx_start())",
    ):
        assert db.value(native, f"SELECT count(*) FROM aq.report_text({report})") > 5
        assert "</html>" in db.value(native, f"SELECT string_agg(h::text, '') FROM aq.report_html({report}) h")
    grown = "SELECT max((figures ->> 'enqueued')::int) FROM aq.snapshot_figures WHERE source = 'queue' AND snap_id = %s"
    assert db.value(native, grown, [last]) - db.value(native, grown, [first]) == 10


def test_snapshots_have_native_names(native):
    """A source of figures that is read from a view has its name, and its columns' names; Oracle's names are in pgaq_oracle."""
    native.execute("SELECT aq.create_queue('q')")
    put(native, "q", 1)
    native.execute("SELECT aq.take_snapshot()")
    native.execute("SELECT aq_internal.ash_flush()")
    columns = dict(
        native.execute("""SELECT c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'aq'::regnamespace AND c.relkind = 'v' GROUP BY 1""").fetchall()
    )
    figures = dict(
        native.execute(
            """SELECT source, array_agg(DISTINCT k) FROM aq.snapshot_figures, jsonb_object_keys(figures) k GROUP BY 1"""
        ).fetchall()
    )
    of_views = {
        "waits",
        "wait_histogram",
        "latches",
        "latch_children",
        "mutexes",
        "object_cache",
        "dictionary_cache",
        "time_model",
        "statistics",
        "message_cache",
    }
    assert of_views <= set(figures)
    also = {"wait_histogram": {"event_id", "wait_class"}}
    assert {view: set(figures[view]) - set(columns[view]) - also.get(view, set()) for view in of_views} == {
        view: set() for view in of_views
    }
    # the tables behind them, too
    tables = {
        "snapshot": "snapshots",
        "snapshot_baseline": "baselines",
        "snapshot_control": "snapshot_settings",
        "active_session": "stored_session_history",
    }
    for table, view in tables.items():
        found = {
            r[0]
            for r in native.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", [f"aq_internal.{table}"]
            )
        }
        assert found - set(columns[view]) <= {"dbid", "user_id", "event_id", "wait_class_id", "sequence"}, table


def test_only_what_is_public_is_in_aq(native):
    """Internal functions are elsewhere; tables are in no public schema."""
    assert (
        native.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'aq'::regnamespace AND relkind NOT IN ('v', 'c') OR relnamespace = 'aq_jms'::regnamespace"
        ).fetchall()
        == []
    )
    undocumented = native.execute("""SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace IN ('aq'::regnamespace, 'aq_jms'::regnamespace)
        AND (p.proname LIKE '\\_%' OR obj_description(p.oid) IS NULL OR obj_description(p.oid) LIKE 'Internal%')""").fetchall()
    assert undocumented == []


@pytest.mark.parametrize(
    "extension, schema", [("pgaq", "aq"), ("pgaq", "aq_data"), ("pgaq_oracle", "sys"), ("pgaq_oracle", "dbms_application_info")]
)
def test_a_schema_that_exists(empty, extension, schema):
    """It is left alone, and the error says what to do."""
    empty.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.precious ()")
    with pytest.raises(db.Error) as caught:
        empty.execute(f"CREATE EXTENSION {extension} CASCADE")
    assert (
        caught.value.sqlstate == "42P06"
        and schema in str(caught.value)
        and f"ALTER SCHEMA {schema} RENAME TO" in caught.value.diag.message_hint
    )
    empty.execute(f"ALTER SCHEMA {schema} RENAME TO mine; CREATE EXTENSION {extension} CASCADE; TABLE mine.precious")


def test_roles_that_exist_are_kept(server, empty):
    """With what they are members of and may do."""
    with server.connect() as conn:
        before = conn.execute("SELECT oid, rolname FROM pg_roles WHERE rolname LIKE 'aq\\_%' ORDER BY 1").fetchall()
    assert len(before) == 5
    empty.execute("CREATE EXTENSION pgaq_oracle CASCADE; DROP EXTENSION pgaq_oracle; DROP EXTENSION pgaq")
    assert empty.execute("SELECT oid, rolname FROM pg_roles WHERE rolname LIKE 'aq\\_%' ORDER BY 1").fetchall() == before


def test_grants_of_pgaq_oracle_go_with_it(native):
    """The role may do nothing in the database any more: it could be dropped, and no dump names it."""
    native.execute("CREATE ROLE bystander")
    try:
        native.execute("GRANT EXECUTE ON FUNCTION aq.create_queue TO bystander")
        of_role = {
            "privileges": "SELECT count(*) FROM pg_proc, aclexplode(proacl) a WHERE a.grantee = 'aq_administrator_role'::regrole",
            "initial privileges": "SELECT count(*) FROM pg_init_privs, aclexplode(initprivs) a WHERE a.grantee = 'aq_administrator_role'::regrole",
            "dependencies": """SELECT count(*) FROM pg_shdepend WHERE refobjid = 'aq_administrator_role'::regrole
                AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())""",
        }
        with native.transaction():
            native.execute("CREATE EXTENSION pgaq_oracle")
            assert db.value(native, "SELECT has_function_privilege('aq_administrator_role', 'aq.mark_hot(text, boolean)', 'EXECUTE')")
        native.execute("DROP EXTENSION pgaq_oracle")
        assert {what: db.value(native, query) for what, query in of_role.items()} == dict.fromkeys(of_role, 0)
        # and no other role's privileges
        grantees = (
            "SELECT array_agg(DISTINCT a.grantee::regrole::text) FROM pg_proc, aclexplode(proacl) a WHERE oid = 'aq.create_queue'::regproc"
        )
        assert set(db.value(native, grantees)) == {"bystander", db.value(native, "SELECT current_user::text")}
        # what a role was granted without pgaq_oracle stays
        native.execute("GRANT EXECUTE ON FUNCTION aq.create_queue TO aq_administrator_role; DROP EXTENSION IF EXISTS pgaq_oracle")
        assert db.value(native, of_role["privileges"]) == 1
        # a privilege that the role has passed on does not hinder
        native.execute("CREATE EXTENSION pgaq_oracle; GRANT EXECUTE ON FUNCTION aq.create_queue TO aq_administrator_role WITH GRANT OPTION")
        native.execute("GRANT USAGE ON SCHEMA aq TO aq_administrator_role; SET ROLE aq_administrator_role")
        native.execute(
            "GRANT EXECUTE ON FUNCTION aq.create_queue TO bystander; RESET ROLE; REVOKE USAGE ON SCHEMA aq FROM aq_administrator_role"
        )
        native.execute("DROP EXTENSION pgaq_oracle")
        assert {what: db.value(native, query) for what, query in of_role.items()} == dict.fromkeys(of_role, 0)
        # what a role has passed on to it stays, as the page on uninstalling says, unless that role revokes it before
        native.execute(
            "CREATE EXTENSION pgaq_oracle; GRANT EXECUTE ON FUNCTION aq.create_queue TO bystander WITH GRANT OPTION; GRANT USAGE ON SCHEMA aq TO bystander"
        )
        native.execute("SET ROLE bystander; GRANT EXECUTE ON FUNCTION aq.create_queue TO aq_administrator_role; RESET ROLE")
        native.execute("DROP EXTENSION pgaq_oracle; DROP OWNED BY aq_administrator_role")
        assert db.value(native, of_role["privileges"]) == 1
        native.execute(
            "CREATE EXTENSION pgaq_oracle; SET ROLE bystander; REVOKE EXECUTE ON FUNCTION aq.create_queue FROM aq_administrator_role; RESET ROLE"
        )
        native.execute("DROP EXTENSION pgaq_oracle")
        assert {what: db.value(native, query) for what, query in of_role.items()} == dict.fromkeys(of_role, 0)
        # DROP OWNED takes them along too
        native.execute("ALTER ROLE bystander SUPERUSER; SET ROLE bystander; CREATE EXTENSION pgaq_oracle; RESET ROLE")
        native.execute("DROP OWNED BY bystander CASCADE")
        assert db.value(native, "SELECT count(*) FROM pg_extension WHERE extname LIKE 'pgaq%'") == 1
        assert {what: db.value(native, query) for what, query in of_role.items()} == dict.fromkeys(of_role, 0)
        # rolled back, the extension has them again
        for command in ("CREATE EXTENSION pgaq_oracle", "BEGIN", "DROP EXTENSION pgaq_oracle", "ROLLBACK"):
            native.execute(command)
        assert db.value(native, "SELECT has_function_privilege('aq_administrator_role', 'aq.mark_hot(text, boolean)', 'EXECUTE')")
        native.execute("DROP EXTENSION pgaq CASCADE")
        assert {what: db.value(native, query) for what, query in of_role.items()} == dict.fromkeys(of_role, 0)
    finally:
        native.execute("DROP EXTENSION IF EXISTS pgaq CASCADE; DROP OWNED BY bystander; DROP ROLE bystander")


def test_nothing_is_left_in_the_database(empty):
    before = contents(empty)
    empty.execute("CREATE EXTENSION pgaq_oracle CASCADE")
    empty.execute(
        "CREATE SCHEMA shop; SELECT aq.create_queue('q'); CALL dbms_aqadm.create_sharded_queue('shop.orders', queue_payload_type => 'JSON')"
    )
    put(empty, "q", 1)
    # the queues and what Oracle's packages made in other schemas belong to the user
    empty.execute(
        "CALL dbms_aqadm.drop_sharded_queue('shop.orders', force => true); SELECT aq.drop_queue('q', force => true); DROP SCHEMA shop"
    )
    empty.execute("DROP EXTENSION pgaq_oracle")
    assert db.value(empty, "SELECT count(*) FROM pg_namespace WHERE nspname = ANY (%s)", [ORACLE_SCHEMAS]) == 0
    empty.execute("DROP EXTENSION pgaq")
    after = contents(empty)
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}


def test_pgaq_oracle_comes_and_goes(native):
    """Queues of one interface are there for the other; the views on messages that dbms_aqadm made go by CASCADE."""
    native.execute("SELECT aq.create_queue('q'); CREATE EXTENSION pgaq_oracle; CREATE SCHEMA shop")
    native.execute(
        "CALL dbms_aqadm.create_sharded_queue('shop.orders', queue_payload_type => 'JSON'); CALL dbms_aqadm.start_queue('shop.orders')"
    )
    put(native, "shop.orders", 1)
    with pytest.raises(db.Error, match="other objects depend on it") as caught:
        native.execute("DROP EXTENSION pgaq_oracle")
    assert 'view shop."aq$orders"' in caught.value.diag.message_detail
    native.execute("DROP EXTENSION pgaq_oracle CASCADE")
    assert take(native, "shop.orders") == [1]
    native.execute("CREATE EXTENSION pgaq_oracle")
    assert db.value(native, "SELECT array_agg(name ORDER BY name) FROM sys.dba_queues WHERE queue_type = 'NORMAL_QUEUE'") == ["ORDERS", "Q"]
    native.execute("CALL dbms_aqadm.drop_sharded_queue('shop.orders', force => true)")


def through_records(conn, payload):
    """Enqueue and dequeue with options and properties in records, in this session; the correlation and the seconds of expiration."""
    conn.execute(
        """CALL dbms_aq.enqueue('shop.orders', dbms_aq.enqueue_options_t(visibility => 2),
        dbms_aq.message_properties_t(correlation => 'c', expiration => 60, sender_id => sys.aq$_agent('ann', NULL, NULL)), %s::jsonb, NULL)""",
        [str(payload)],
    )
    row = conn.execute(
        "CALL dbms_aq.dequeue('shop.orders', dbms_aq.dequeue_options_t(wait => 0, correlation => 'c'), NULL, NULL::jsonb, NULL)"
    ).fetchone()
    return db.value(
        conn,
        "SELECT (%s::dbms_aq.message_properties_t).correlation || (%s::dbms_aq.message_properties_t).expiration"
        " || ((%s::dbms_aq.message_properties_t).sender_id).name",
        [row[0]] * 3,
    ), row[1]


def test_a_session_finds_the_fields_of_new_types(native):
    """A session keeps where the fields of the packages' records are, until the types change or others have taken their place."""
    native.execute("CREATE EXTENSION pgaq_oracle; CREATE SCHEMA shop")
    native.execute(
        "CALL dbms_aqadm.create_sharded_queue('shop.orders', queue_payload_type => 'JSON'); CALL dbms_aqadm.start_queue('shop.orders')"
    )
    assert through_records(native, 1) == ("c60ann", 1)
    native.execute("ALTER TYPE dbms_aq.message_properties_t ADD ATTRIBUTE more text")
    assert through_records(native, 2) == ("c60ann", 2)
    native.execute("DROP EXTENSION pgaq_oracle CASCADE; CREATE EXTENSION pgaq_oracle")
    assert through_records(native, 3) == ("c60ann", 3)
    native.execute("ALTER TYPE dbms_aq.dequeue_options_t RENAME ATTRIBUTE correlation TO other")
    with pytest.raises(psycopg.errors.InternalError_, match='has no field "correlation"'):
        native.execute("CALL dbms_aq.dequeue('shop.orders', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL)")


@pytest.mark.parametrize("extension", ["pgaq", "pgaq_oracle"])
def test_dump_and_restore(server, empty, tmp_path, extension):
    empty.execute(f"CREATE EXTENSION {extension} CASCADE; SELECT aq.create_queue('q'), aq.take_snapshot()")
    put(empty, "q", 1)
    done = server.run("pg_dump", f"--file={tmp_path / 'dump'}", dbname="empty")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with server.connect() as conn:
        conn.execute("CREATE DATABASE restored")
    try:
        done = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "dump"), dbname="restored")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        with server.connect("restored") as conn:
            assert [r[0] for r in conn.execute("SELECT extname FROM pg_extension WHERE extname LIKE 'pgaq%' ORDER BY 1")] == sorted(
                {"pgaq", extension}
            )
            assert take(conn, "q") == [1]
            assert db.value(conn, "SELECT count(*) FROM aq.snapshots") == 1
    finally:
        with server.connect() as conn:
            conn.execute("DROP DATABASE restored WITH (FORCE)")


def test_names_of_roles_give_nothing(new_server):
    """A role with CREATEROLE makes the roles of pgaq_oracle itself, where the extension is not installed, or before it is, or again."""
    server = new_server("names")
    with server.connect() as conn:
        conn.execute(
            "DROP EXTENSION pgaq_oracle; DROP OWNED BY aq_enqueue_any, aq_dequeue_any, aq_manage_any, aq_user_role, aq_administrator_role"
        )
        conn.execute(
            "DROP ROLE aq_enqueue_any, aq_dequeue_any, aq_manage_any, aq_user_role, aq_administrator_role; CREATE ROLE maker CREATEROLE LOGIN"
        )
        conn.execute("SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        conn.execute(
            "SET ROLE maker; CREATE ROLE aq_enqueue_any; CREATE ROLE aq_dequeue_any; CREATE ROLE aq_manage_any; GRANT aq_enqueue_any, aq_dequeue_any, aq_manage_any TO maker"
        )
        for call in ("aq.enqueue('q', '2')", "aq.dequeue('q')", "aq.stop_queue('q')", "aq.alter_queue('q', new_owner => 'maker')"):
            with pytest.raises(psycopg.Error, match="does not exist"):
                conn.execute(f"SELECT {call}")
        assert db.value(conn, "SELECT count(*) FROM aq.messages") == db.value(conn, "SELECT count(*) FROM aq.queues") == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("ALTER ROLE aq_manage_any SET pgaq.system_role = 'aq_manage_any'")
        conn.execute("RESET ROLE")
        with pytest.raises(psycopg.errors.DuplicateObject, match="already exists"):
            conn.execute("CREATE EXTENSION pgaq_oracle")
        # that it has members is what is wrong with it
        conn.execute("REVOKE aq_enqueue_any, aq_dequeue_any, aq_manage_any FROM maker CASCADE; CREATE EXTENSION pgaq_oracle")
        conn.execute("GRANT aq_dequeue_any TO maker")
        conn.execute("CREATE DATABASE second")
        with server.connect("second") as second:
            second.execute("CREATE EXTENSION pgaq_oracle CASCADE; DROP EXTENSION pgaq_oracle")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            conn.execute("DROP ROLE aq_dequeue_any")
        conn.execute("SET ROLE maker")
        assert take(conn, "q") == [1]
        with pytest.raises(psycopg.Error, match="permission denied"):
            conn.execute("SELECT aq.enqueue('q', '2')")
        # a role made again is another one
        conn.execute(
            "RESET ROLE; DROP OWNED BY aq_dequeue_any; DROP ROLE aq_dequeue_any; SET ROLE maker; CREATE ROLE aq_dequeue_any; GRANT aq_dequeue_any TO maker"
        )
        with pytest.raises(psycopg.Error, match="does not exist"):
            conn.execute("SELECT aq.dequeue('q')")
