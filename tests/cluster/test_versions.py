"""From one version of the extensions to the next: the new library serves the old catalog, and ALTER EXTENSION ... UPDATE comes to what a new installation
has, with messages inside and beside programs that run.

The scripts of released versions are in tests/released, and a copy of the installed server has them.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import psycopg
import pytest

from conftest import arrived, end_server, look, put, put_many, ready, take, until
from pgaq import db, places
from pgaq.console import pages
from pgaq.metrics.families import COLLECTORS
from pgaq.load.drivers import LEASE1, PGAQ, Shape
from pgaq.load.workload import Options, Workload
from pgaq.server import Server
from pgaq_proof import upgrade
from pgaq_proof.catalog import differences, members
from pgaq_proof.upgrade import EXTENSIONS, create, update

pytestmark = pytest.mark.own_tables

NEW = upgrade.version()
OLD = [version for version in upgrade.released() if version != NEW][-1]
NEXT = NEW + "1"  # a version that is not there yet
EARLIER = OLD + "1"  # one between the two

PGAQ_ONLY = EXTENSIONS[:1]

# C functions whose arguments or results are not those of the version before, and which serve both
SERVE_BOTH = {
    "aq_admin_alter_queue", "aq_admin_create_queue",
    "aq_classic_views_buffered_messages", "aq_classic_views_messages", "aq_message_view_rows",
    "aq_dequeue_browse_jsonb", "aq_dequeue_browse_typed", "aq_dequeue_jsonb", "aq_dequeue_typed",
    "aq_enqueue_calls_array", "aq_enqueue_calls_text", "aq_enqueue_calls_typed", "aq_metrics", "aq_metrics_of_queue", "aq_node_arrival_deliver", "aq_propagation_arrival_put",
}  # fmt: skip


@pytest.fixture(scope="module")
def installation():
    with upgrade.installation() as made:
        yield made


@pytest.fixture(scope="module")
def server(installation):
    made = Server.temporary("versions", bindir=installation.bindir, settings={"pgaq.node_heartbeat": "100ms"})
    yield made
    end_server(made)


@pytest.fixture
def database(server):
    """Makes databases, and drops them."""
    names = []

    def make(name, version=None, extensions=PGAQ_ONLY):
        with server.connect() as conn:
            conn.execute(f"CREATE DATABASE {name}")
        names.append(name)
        made = server.connect(name)
        if version is not None:
            create(made, version, extensions)
        return made

    yield make
    with server.connect() as conn:
        for name in names:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def link(server, conn, name):
    """A link to another database of the server, with the name of that database."""
    conn.execute(
        f"CREATE SERVER {name} FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '{server.socket_dir}', port '{server.port}', dbname '{name}')"
    )
    conn.execute(f"CREATE USER MAPPING FOR postgres SERVER {name} OPTIONS (user 'postgres')")


def test_update(server, database):
    """What a database of the version before holds is used before, in a session that goes on, and after the update, with a running worker; then the catalog
    is the same as an installed one."""
    with (
        database("installed", NEW, EXTENSIONS) as installed,
        database("filled", OLD, EXTENSIONS) as conn,
        server.connect("filled") as other,
    ):
        installed.execute("SELECT aq.create_queue('target')")
        link(server, conn, "installed")
        conn.execute("""SELECT aq.create_queue('q', retry_delay => '0', shards => 1), aq.create_queue('t', shards => 1, multiple_consumers => true),
            aq.create_queue_table('public.tab'), aq.create_queue('source'), aq.create_queue('ticks')""")
        conn.execute(
            "SELECT aq.create_queue('tabled', queue_table => 'public.tab'), aq.subscribe('t', 'ann', 'priority < 5'), aq.subscribe('t', 'bob')"
        )
        conn.execute("SELECT aq.propagate('source', 'target@installed'), aq.schedule('tick', 'ticks', '0', every => '1 second')")
        put_many(conn, "q", 1, 100)
        put_many(conn, "tabled", 1, 10)
        put(conn, "t", 1, 2)
        put(conn, "q", "b", delivery_mode="buffered")
        put(conn, "source", 1)
        assert take(other, "q", number=50) == list(range(1, 51)) and take(other, "t", "ann", 1) == [1]
        assert arrived(installed, "target", 1) == [1]
        leased = conn.execute("SELECT msgid, receipt FROM aq.dequeue('q', lease => '1 hour')").fetchone()
        for gid, command in {"put": "SELECT aq.enqueue('q', '\"prepared\"')", "take": "SELECT * FROM aq.dequeue('q')"}.items():
            conn.execute(f"BEGIN; {command}; PREPARE TRANSACTION '{gid}'")

        update(conn, NEW)

        for extension in EXTENSIONS:
            found = differences(members(installed, extension), members(conn, extension))
            assert found == {}, f"{upgrade.shown(found)}\ntools/upgrade --write writes what is mechanical of it into sql/upgrade"
        conn.execute("COMMIT PREPARED 'put'")
        conn.execute("ROLLBACK PREPARED 'take'")
        assert db.value(other, "SELECT result FROM aq.acknowledge('q', %s, %s)", leased) == "done"
        for session in (other, conn):
            put(session, "q", "new")
            put(session, "t", "new")
        assert arrived(other, "q", 52) == [*range(52, 101), "prepared", "new", "new"] and take(conn, "tabled") == list(range(1, 11))
        assert take(conn, "t", "ann") == [2, "new", "new"] and look(other, "t", "bob") == [1, 2, "new", "new"]
        assert db.value(conn, "SELECT payload FROM aq.dequeue('q', delivery_mode => 'buffered')") == "b"
        put(conn, "source", 2)
        assert arrived(installed, "target", 1) == [2]
        take(conn, "ticks")
        assert ready(conn, "ticks", timeout="1 minute")
        conn.execute("SELECT aq.unschedule('tick'), aq.alter_propagation('source', 'target@installed', enabled => false)")


def test_a_difference_is_seen(database):
    """Things that an upgrade script could miss: privileges, comments, a constraint, whether rows are dumped."""
    with database("installed", NEW) as conn:
        before = members(conn, "pgaq")
        for change, seen, aspect in (
            ("COMMENT ON VIEW aq.queues IS 'other'", "view aq.queues", "comment"),
            ("COMMENT ON COLUMN aq.queues.owner IS NULL", "view aq.queues", "comment of column owner"),
            ("GRANT SELECT ON aq_internal.registration TO PUBLIC", "table aq_internal.registration", "rights"),
            ("ALTER TABLE aq_internal.queue ALTER key DROP NOT NULL", "table aq_internal.queue", "columns"),
            ("ALTER TABLE aq_internal.queue ALTER retention SET DEFAULT '1 s'", "table aq_internal.queue", "columns"),
            ("ALTER TABLE aq_internal.queue DROP CONSTRAINT queue_shards_check", "table aq_internal.queue", "definition"),
            (
                "UPDATE pg_extension SET extconfig = extconfig[2:], extcondition = extcondition[2:] WHERE extname = 'pgaq'",
                "table aq_internal.property",
                "dumped",
            ),
            ("ALTER EXTENSION pgaq DROP VIEW aq.errors", "view aq.errors", "definition"),
        ):
            conn.execute("BEGIN")
            conn.execute(change)
            assert aspect in differences(before, members(conn, "pgaq"))[seen], change
            conn.execute("ROLLBACK")


SYMBOLS = """SELECT p.prosrc, concat_ws(' ', p.prokind, p.proisstrict, p.proretset, p.prorettype::regtype, coalesce(p.proallargtypes, p.proargtypes)::regtype[], p.proargmodes)
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname = 'c' AND p.probin = 'pgaq'"""


def test_functions_of_the_library(database):
    """A C function that the old catalog calls has the arguments and results that it had: another form needs another C function.
    (That it exists is checked by CREATE EXTENSION.)"""
    forms = {OLD: defaultdict(set), NEW: defaultdict(set)}
    for number, version in enumerate(forms):
        with database(f"forms{number}", version, EXTENSIONS) as conn:
            for symbol, form in conn.execute(SYMBOLS):
                forms[version][symbol].add(form)
    changed = {symbol for symbol, old in forms[OLD].items() if symbol in forms[NEW] and not old <= forms[NEW][symbol]}
    assert len(forms[OLD]) > 200 and changed == SERVE_BOTH


def test_a_failed_update_changes_nothing(server, database, installation):
    """It is one transaction: queues are used as before."""
    (installation.scripts / f"pgaq--{OLD}--{NEXT}.sql").write_text(
        (installation.scripts / f"pgaq--{OLD}--{NEW}.sql").read_text() + "SELECT 1 / 0;\n"
    )
    with database("failing", OLD) as conn:
        before = members(conn, "pgaq")
        conn.execute("SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        with pytest.raises(db.Error):
            conn.execute(f"ALTER EXTENSION pgaq UPDATE TO '{NEXT}'")
        assert differences(before, members(conn, "pgaq")) == {}
        assert take(conn, "q") == [1]
    server.expect_log("division by zero")


def test_privileges_on_functions_remain(server, database):
    """What users have granted on functions, and revoked; also on those that get more arguments. They are dumped as theirs, not as the extension's."""
    granted = """SELECT p.proname::text, a.grantee::regrole::text, a.is_grantable FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.pronamespace = 'aq'::regnamespace AND a.grantee <> p.proowner"""
    with database("granted", OLD) as conn, database("installed", NEW) as installed:
        conn.execute("CREATE ROLE auditor; GRANT EXECUTE ON ALL ROUTINES IN SCHEMA aq TO auditor")
        conn.execute(
            'CREATE ROLE "Head of it"; GRANT EXECUTE ON FUNCTION aq.create_queue, aq.enqueue_array TO "Head of it" WITH GRANT OPTION'
        )
        conn.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA aq FROM PUBLIC")
        conn.execute("REVOKE EXECUTE ON FUNCTION aq.propagation_put FROM auditor, postgres")  # nobody has any
        before = set(conn.execute(granted))
        update(conn, NEW, PGAQ_ONLY)
        after = set(conn.execute(granted))
        assert before - after == set() and {name for name, role, _ in before if role == "-"}.isdisjoint({"enqueue", "dequeue"})
        assert {name for name, role, _ in after if role == "-"}.isdisjoint(
            {"create_queue", "alter_queue", "metrics", "enqueue", "enqueue_array", "dequeue", "dequeue_full", "browse"}
        )
        assert {name for name, role, _ in before} <= {name for name, _, _ in after}
        initial = """SELECT p.oid::regprocedure::text, i.initprivs::text FROM pg_init_privs i JOIN pg_proc p ON p.oid = i.objoid
            WHERE p.pronamespace = 'aq'::regnamespace AND p.proname IN ('create_queue', 'enqueue', 'dequeue', 'node_deliver') ORDER BY 1"""
        assert conn.execute(initial).fetchall() == installed.execute(initial).fetchall()
        dump = server.run("pg_dump", "--schema-only", dbname="granted").stdout
        for signature in (r"create_queue\(.*on_full text.*\)", r"enqueue_array\(.*key text\)"):
            assert re.search(rf"GRANT ALL ON FUNCTION aq.{signature} TO \"Head of it\" WITH GRANT OPTION", dump), dump
        assert re.search(r"REVOKE ALL ON FUNCTION aq.enqueue\(.*key text\) FROM PUBLIC", dump)
        conn.execute('DROP OWNED BY auditor, "Head of it"; DROP ROLE auditor, "Head of it"')


INITIAL_ROLES = """WITH named AS (SELECT DISTINCT i.objoid, a.grantee FROM pg_init_privs i, aclexplode(i.initprivs) a
        WHERE i.classoid = 'pg_proc'::regclass AND a.grantee >= 12000),
    known AS (SELECT objid, refobjid FROM pg_shdepend WHERE classid = 'pg_proc'::regclass AND deptype = 'i'
        AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()))
    SELECT coalesce(n.objoid, k.objid)::regprocedure::text, n.grantee, k.refobjid FROM named n FULL JOIN known k ON k.objid = n.objoid AND k.refobjid = n.grantee
    WHERE n.grantee IS NULL OR k.refobjid IS NULL"""


def test_roles_of_initial_privileges(database):
    """PostgreSQL 17 keeps roles that initial privileges name from being dropped, also those whose privileges were revoked since."""
    with database("initial") as conn:
        if conn.info.server_version < 170000:
            pytest.skip("before PostgreSQL 17, initial privileges keep no role")
        conn.execute("CREATE ROLE guest; CREATE ROLE chief SUPERUSER; SET ROLE chief")
        conn.execute("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO guest")
        create(conn, OLD, PGAQ_ONLY)
        conn.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM guest")
        conn.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA aq FROM guest")
        assert conn.execute(INITIAL_ROLES).fetchall() == []
        update(conn, NEW, PGAQ_ONLY)
        assert conn.execute(INITIAL_ROLES).fetchall() == []
        conn.execute("RESET ROLE; DROP EXTENSION pgaq; DROP OWNED BY guest, chief; DROP ROLE guest, chief")


def test_what_users_have_made_of_functions(database):
    """A view and a function with a parsed body that call functions which get more arguments: the update names them, and works without them."""
    with database("used", OLD) as conn:
        conn.execute("SELECT aq.create_queue('q')")
        conn.execute("CREATE VIEW waiting AS SELECT payload FROM aq.browse('q')")
        conn.execute("CREATE VIEW lags AS SELECT queue_name, lag FROM aq.metrics()")
        conn.execute("CREATE FUNCTION send(jsonb) RETURNS uuid BEGIN ATOMIC SELECT aq.enqueue('q', jsonb => $1); END")
        conn.execute("CREATE FUNCTION retries(text, integer) RETURNS void BEGIN ATOMIC SELECT aq.alter_queue($1, max_retries => $2); END")
        conn.execute("CREATE FUNCTION send_by_name(text) RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN RETURN aq.enqueue('q', $1); END $$")
        before = members(conn, "pgaq")
        refused(
            conn,
            f"ALTER EXTENSION pgaq UPDATE TO '{NEW}'",
            "get more arguments or columns",
            "view public.waiting",
            "view public.lags",
            "function public.send(jsonb)",
            "function public.retries(text,integer)",
            "Drop what calls them",
        )
        assert differences(before, members(conn, "pgaq")) == {}
        conn.execute("DROP VIEW waiting, lags; DROP FUNCTION send(jsonb), retries(text, integer)")
        update(conn, NEW, PGAQ_ONLY)
        defaults = (
            "SELECT (default_priority, default_delay, default_expiration, max_depth, on_full)::text FROM aq.queues WHERE queue_name = 'q'"
        )
        assert db.value(conn, defaults) == "(,00:00:00,,,wait)"
        conn.execute("SELECT send_by_name('1')")
        assert take(conn, "q") == [1]


def test_keys_of_messages(server, database):
    """Queues that were made before the update get messages with keys after it: no table with messages is altered, a queue table only if it is not in use."""
    shown = "SELECT payload, key FROM aq.messages WHERE queue_name = %s AND state = 'READY' ORDER BY payload"
    with database("keyed", OLD) as conn, server.connect("keyed") as other:
        conn.execute("SELECT aq.create_queue('q', shards => 1, max_retries => 0, retry_delay => '0'), aq.create_queue_table('public.tab')")
        conn.execute("SELECT aq.create_queue('tabled', queue_table => 'public.tab')")
        dead(conn, 1)
        put(conn, "q", 1, 2)
        put(conn, "tabled", 1, 2)
        refused(
            conn,
            """SELECT aq.enqueue_array('q', ARRAY['0'], options => '[{"key": "k"}]')""",
            "has no keys of messages",
            "ALTER EXTENSION pgaq UPDATE",
        )
        command_of_this_version(server, "keyed")
        update(conn, NEW, PGAQ_ONLY)
        with conn.transaction():
            assert take(other, "q", number=1) == [1]
            put(conn, "q", 3)
            put(conn, "q", 4, key="k")
        put(conn, "q", 5)
        assert conn.execute(shown, ["q"]).fetchall() == [("2", None), ("3", None), ("4", "k"), ("5", None)]
        assert by_key(other, "q") == [4] and take(other, "q") == [2, 3, 5]
        dead(conn, 6, key="k")
        assert conn.execute("SELECT payload, key FROM aq.dead_letters WHERE exception_queue = 'q_exceptions' ORDER BY 1").fetchall() == [
            ("1", None),
            ("6", "k"),
        ]
        other.execute("BEGIN; SELECT aq.enqueue('tabled', '3')")
        refused(conn, "SELECT aq.enqueue('tabled', '4', key => 'k')", "has no column for keys yet", "try again")
        other.execute("COMMIT")
        until(lambda: put_into(conn, "SELECT aq.enqueue('tabled', '4', key => 'k')"), "the column")
        assert conn.execute(shown, ["tabled"]).fetchall() == [("1", None), ("2", None), ("3", None), ("4", "k")]
        assert by_key(other, "tabled") == [4] and take(other, "tabled") == [1, 2, 3]


def command_of_this_version(server, name):
    """It works with queue q, which has a dead letter, in a catalog that knows no keys; what asks for a key asks for the update."""

    def pgaq(*arguments, code=0):
        environment = {**server.environment(), "PGDATABASE": name, "PYTHONPATH": str(places.ROOT / "python")}
        done = subprocess.run([sys.executable, "-m", "pgaq", *arguments], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    pgaq("send", "q", '"sent"', "--priority", "0")
    assert "sent" in pgaq("browse", "q", "--max", "1")
    assert '"key": null' in pgaq("browse", "q", "--state", "ready", "--json")
    assert '"payload": "sent"' in (said := pgaq("receive", "q", "--json")) and '"key": null' in said
    assert '"key": null' in pgaq("dead", "list", "q", "--json")
    assert '"state": "started"' in (said := pgaq("queue", "list", "q", "--json")) and '"paused": null' in said
    pgaq("queue", "show", "q")
    pgaq("subscriber", "list")
    pgaq("doctor")
    pgaq("queue", "pause", "q", code=4)
    pgaq("queue", "resume", "q", code=4)
    for arguments in (("send", "q", "1"), ("receive", "q"), ("browse", "q")):
        assert "Run ALTER EXTENSION pgaq UPDATE" in pgaq(*arguments, "--key", "k", code=4)
    with server.connect(name) as conn:
        assert {row["paused_seconds"] for row in db.rows(conn, COLLECTORS[0].query, {"limit": 9, "consumers": 9})} == {0}
        assert db.value(conn, pages.CAN_PAUSE) is False
        for query, more in (
            (pages.MESSAGES, {"offset": 0, "priority": None, "state": "", "consumer": "", "correlation": "", "key": "", "text": ""}),
            (pages.MESSAGE, {}),
        ):
            msgid = db.value(conn, "SELECT msgid::text FROM aq.messages WHERE queue_name = 'q' LIMIT 1")
            assert {row["key"] for row in db.rows(conn, query, {"queue": "q", "msgid": msgid, **more})} == {None}


def test_groups_of_jakarta_messaging(database, server):
    """Java programs with JMSXGroupID go on while a session uses the queue table; the group becomes the key when the table has the column."""
    with database("grouped", OLD) as conn, server.connect("grouped") as other:
        conn.execute("SELECT aq.create_queue_table('public.tab', 'aq.jms_message')")
        conn.execute("SELECT aq.create_queue('q', queue_table => 'public.tab')")
        send = """SELECT aq.enqueue('q', ROW('text', NULL, '{"JMSXGroupID": "g"}', NULL, 'x', NULL)::aq.jms_message)"""
        send_two = (
            send.replace("aq.enqueue(", "aq.enqueue_array(")
            .replace("ROW(", "ARRAY[ROW(")
            .replace("::aq.jms_message", "]::aq.jms_message[]")
        )
        keys = "SELECT array_agg(DISTINCT coalesce(key, '-')) FROM aq.messages"
        update(conn, NEW, PGAQ_ONLY)
        other.execute("BEGIN")
        other.execute(send)
        conn.execute(send)
        conn.execute(send_two)
        assert db.value(conn, keys) == ["-"]
        other.execute("COMMIT")

        def becomes_key():
            conn.execute(send)
            return db.value(conn, keys) == ["-", "g"]

        until(becomes_key, "the column")


@pytest.mark.parametrize("source", ["sharded", "tabled"])
def test_a_dead_letter_with_a_key(server, database, source):
    """Of an exception queue whose table was made before the update, the worker asks for the column, without an error."""
    with database("letters", OLD) as conn:
        conn.execute("SELECT aq.create_queue_table('public.letters'), aq.create_queue_table('public.tab')")
        conn.execute("SELECT aq.create_queue('letters', queue_table => 'public.letters')")
        table = {"sharded": None, "tabled": "public.tab"}[source]
        conn.execute("SELECT aq.create_queue('q', queue_table => %s, max_retries => 0, exception_queue => 'letters')", [table])
        put(conn, "q", 0)
        assert take(conn, "q") == [0]
        update(conn, NEW, PGAQ_ONLY)
        if source == "tabled":
            until(lambda: put_into(conn, "SELECT aq.enqueue('q', '1', key => 'k')"), "the column")
        else:
            put(conn, "q", 1, key="k")
        before = server.log_text().count("no column for keys")
        msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue('q', lease => '1 hour')").fetchone()
        conn.execute("SELECT aq.reject('q', ARRAY[%s::uuid], %s)", [msgid, receipt])
        until(lambda: by_key(conn, "letters") == [1], "the dead letter")
        assert server.log_text().count("no column for keys") == before


def dead(conn, payload, **options):
    """A dead letter of queue q."""
    letters = "SELECT count(*) FROM aq.messages WHERE queue_name = 'q_exceptions' AND state = 'READY'"
    before = db.value(conn, letters)
    put(conn, "q", payload, **options)
    msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue('q', lease => '1 hour')").fetchone()
    conn.execute("SELECT aq.reject('q', %s, %s)", [msgid, receipt])
    until(lambda: db.value(conn, letters) > before, "a dead letter")


def test_keys_before_the_update_is_committed(database):
    """The worker, which makes the tables and columns for keys, does not see the update: a message with a key is refused, and no column is made."""
    keys = """SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'aq_data'::regnamespace AND c.relkind = 'r' AND a.attname = 'key'"""
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r'"
    with database("uncommitted", OLD) as conn:
        conn.execute("SELECT aq.create_queue('q'), aq.create_queue_table('public.tab')")
        conn.execute("SELECT aq.create_queue('tabled', queue_table => 'public.tab')")
        put(conn, "q", 1)
        put(conn, "tabled", 1)
        conn.execute("SET statement_timeout = '20s'")
        for queue, why in (("q", "Commit the update first"), ("tabled", "no column for keys yet")):
            until(lambda: begins_update(conn), "the update")
            refused(conn, f"SELECT aq.enqueue('{queue}', '2', key => 'k')", why)
            conn.execute("ROLLBACK")
        put(conn, "q", 2)
        put(conn, "tabled", 2)
        assert take(conn, "q") == [1, 2] and take(conn, "tabled") == [1, 2]
        # the worker makes some spare tables of a queue that is used
        assert db.value(conn, keys) == 0 and db.value(conn, tables) < 50


def begins_update(conn):
    try:
        conn.execute(f"BEGIN; ALTER EXTENSION pgaq UPDATE TO '{NEW}'")
    except psycopg.errors.LockNotAvailable:
        conn.execute("ROLLBACK")
        return False
    return True


def by_key(conn, queue, mode="remove"):
    return [row[0] for row in conn.execute("SELECT payload FROM aq.dequeue(%s, key => 'k', mode => %s)", [queue, mode])]


def put_into(conn, command):
    try:
        conn.execute(command)
    except psycopg.errors.ObjectNotInPrerequisiteState:
        return False
    return True


def test_a_schema_of_the_user_has_the_name_of_a_new_one(database):
    """The update says what to do, and changes nothing; then it works."""
    with database("named", OLD) as conn:
        conn.execute("CREATE SCHEMA aq_jms")
        refused(conn, f"ALTER EXTENSION pgaq UPDATE TO '{NEW}'", 'schema "aq_jms" already exists', "ALTER SCHEMA aq_jms RENAME TO")
        conn.execute("ALTER SCHEMA aq_jms RENAME TO mine")
        update(conn, NEW, PGAQ_ONLY)


def test_a_transaction_keeps_its_lock_timeout(database):
    """Commands behind the update in its transaction wait for locks as before."""
    with database("timeout", OLD) as conn, conn.transaction():
        conn.execute("SET LOCAL lock_timeout = '1 min'")
        update(conn, NEW, PGAQ_ONLY)
        assert db.value(conn, "SHOW lock_timeout") == "1min"


def test_dump_of_the_old_catalog(server, database, tmp_path):
    """It is restored into the new one."""
    dump = tmp_path / "dump"
    with database("dumped", OLD) as conn:
        conn.execute("SELECT aq.create_queue('q', shards => 1), aq.create_queue('t', shards => 1, multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('t', 'ann', 'priority < 5'), aq.schedule('tick', 'q', '0', cron => '@yearly')")
        put(conn, "q", 1, 2)
        put(conn, "t", 1)
        dump.write_text(server.run("pg_dump", dbname="dumped").stdout)
    with database("restored") as conn:
        done = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump), dbname="restored")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert db.value(conn, "SELECT extversion FROM pg_extension WHERE extname = 'pgaq'") == NEW
        assert take(conn, "q") == [1, 2] and take(conn, "t", "ann") == [1]
        assert db.value(conn, "SELECT count(*) FROM aq.schedules") == 1


# -- the wrong order


def of_version(version: str, folder: Path, name: str) -> Path:
    """The script of this name, as another version has it."""
    path = folder / name.replace(NEW, version)
    path.write_text((folder / name).read_text().replace(f"'{NEW}'", f"'{version}'").replace(f" {NEW} ", f" {version} "))
    return path


def refused(conn, command, *words):
    with pytest.raises(db.Error) as error:
        conn.execute(command)
    text = "\n".join(filter(None, (error.value.diag.message_primary, error.value.diag.message_detail, error.value.diag.message_hint)))
    assert all(word in text for word in words), text


def test_a_new_catalog_needs_the_new_library(database, installation):
    """Files of the next version are installed, and the server has not been restarted: nothing is updated or created."""
    made = [of_version(NEXT, installation.scripts, name) for name in (f"pgaq--{NEW}.sql", f"pgaq--{OLD}--{NEW}.sql")]
    said = (
        f'version {NEXT} of the extension "pgaq" needs the library of this version',
        f"the library of version {NEW}",
        "Restart the server.",
    )
    with database("early", OLD) as conn, database("earlier") as empty:
        before = members(conn, "pgaq")
        refused(conn, f"ALTER EXTENSION pgaq UPDATE TO '{NEXT}'", *said)
        refused(empty, f"CREATE EXTENSION pgaq VERSION '{NEXT}'", *said)
        assert differences(before, members(conn, "pgaq")) == {}
    for path in made:
        path.unlink()


def test_an_old_library_refuses_a_new_catalog(server, database):
    """As after a return to old files: sessions that begin then do nothing."""
    server.expect_log("needs a newer library")
    with database("late", NEW) as conn:
        conn.execute("SELECT aq.create_queue('q')")
        conn.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'pgaq'", [NEXT])
        with server.connect("late") as other:
            refused(
                other,
                "SELECT aq.enqueue('q', '1')",
                f'version {NEXT} of the extension "pgaq" needs a newer library than version {NEW}',
                f"Install version {NEXT}",
            )
        conn.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'pgaq'", [NEW])
        put(conn, "q", 1)


@pytest.mark.parametrize("extension", EXTENSIONS[1:])
def test_pgaq_is_first(database, extension):
    """The other extensions need the new pgaq."""
    with database("first", OLD, ["pgaq", extension]) as conn:
        refused(
            conn,
            f"ALTER EXTENSION {extension} UPDATE TO '{NEW}'",
            f'version {NEW} of the extension "{extension}" needs version {NEW} of the extension "pgaq"',
            "ALTER EXTENSION pgaq UPDATE",
        )
        conn.execute(f"DROP EXTENSION {extension}")
        refused(conn, f"CREATE EXTENSION {extension}", "ALTER EXTENSION pgaq UPDATE")


def test_a_version_is_skipped(database, installation):
    """A library creates the extensions of an earlier version than its own, and updates through it."""
    made = [
        of_version(EARLIER, installation.scripts, name) for it in EXTENSIONS for name in (f"{it}--{NEW}.sql", f"{it}--{OLD}--{NEW}.sql")
    ]
    try:
        with database("skipped", OLD, EXTENSIONS) as conn, database("earlier_version", EARLIER, PGAQ_ONLY):
            update(conn, EARLIER, PGAQ_ONLY)
            conn.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'pgaq'", [NEW])
            update(conn, EARLIER, EXTENSIONS[1:])
    finally:
        for path in made:
            path.unlink()


# -- beside programs


class Readers:
    """Sessions that read views in transactions of several statements; the errors that they get."""

    QUERIES = (
        "SELECT queue_name, owner, shards FROM aq.queues",  # by name, because it has got columns
        "SELECT queue_name, consumer, ready FROM aq.subscribers",  # the same
        "SELECT queue_name, lag, since FROM aq.metrics()",  # the same
        "SELECT * FROM aq.schedules",
        "SELECT * FROM aq.nodes",
        "SELECT msgid, state FROM aq.messages LIMIT 5",  # by name, because it has got a column
    )

    def __init__(self, server, dbname, number):
        self.server, self.dbname = server, dbname
        self.errors, self.rounds, self.ended = [], 0, threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(n,)) for n in range(number)]

    def read(self, number):
        queries = self.QUERIES if number % 2 else self.QUERIES[::-1]
        try:
            with self.server.connect(self.dbname) as conn:
                while not self.ended.wait(0.01):
                    with conn.transaction():
                        for query in queries:
                            conn.execute(query, prepare=True).fetchall()
                    self.rounds += 1
        except db.Error as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        until(lambda: self.rounds >= len(self.threads), "readers")
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def test_beside_programs(server, database):
    """Producers, consumers, sessions with leases and sessions that read views get no error while the extensions are updated, and each message comes once."""
    server.expect_log("lock timeout|deadlock")
    options = Options(rollback=5, savepoint=10, fsync="none", backlog=500)
    with contextlib.ExitStack() as stack:
        conn = stack.enter_context(database("busy", OLD, EXTENSIONS))
        topic = Workload(server, PGAQ, Shape(kind="topic", sessions=2, subscribers=2, batch=2), options, queue="topic", dbname="busy")
        leased = Workload(server, LEASE1, Shape(sessions=2, batch=2), Options(fsync="none", backlog=500), queue="leased", dbname="busy")
        works = [stack.enter_context(work) for work in (topic, leased)]
        for work in works:
            work.setup()
            work.start()
        with Readers(server, "busy", 2) as readers:
            update(conn, NEW)
            done, delivered = readers.rounds, [work.control.delivered for work in works]
            until(lambda: readers.errors or readers.rounds > done + 2, "readers")
            for work, before in zip(works, delivered, strict=True):
                work.until(lambda work=work, before=before: work.control.delivered > before + 100, 60, "no messages come after the update")
        for work in works:
            drained = work.drain()
            work.stop()
            report = work.check()
            assert drained and report.ok and report.committed > 100, str(report)
            assert work.control.errors == 0, work.said()
        assert readers.errors == []


def test_standby(installation, throw_away):
    """A synchronous standby is promoted with the old catalog, and is updated afterwards; or its primary is updated, and it is promoted then."""
    with Server.temporary("primary", bindir=installation.bindir) as primary:
        with primary.connect() as conn:
            create(conn, OLD, PGAQ_ONLY)
            conn.execute("SELECT aq.create_queue('q', shards => 1)")
            put(conn, "q", 1, 2)
            first, second = (throw_away(primary.basebackup(name)) for name in ("first", "second"))
            for standby, number in ((first, 1), (second, 2)):
                standby.start()
                primary.configure(synchronous_standby_names=f"FIRST {number} (*)")
            primary.reload()
            until(lambda: db.value(conn, "SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state = 'sync'"), "synchronous standbys")
            put(conn, "q", 3)
            primary.configure(synchronous_standby_names="*")
            primary.reload()
            first.promote()
            with first.connect() as promoted:
                assert take(promoted, "q", number=2) == [1, 2]
                update(promoted, NEW, PGAQ_ONLY)
                put(promoted, "q", 4)
                assert take(promoted, "q") == [3, 4]
            update(conn, NEW, PGAQ_ONLY)
            assert take(conn, "q", number=2) == [1, 2]
            new = members(conn, "pgaq")
        primary.stop()
        second.promote()
        with second.connect() as promoted:
            assert differences(new, members(promoted, "pgaq")) == {}
            assert take(promoted, "q") == [3]


# -- databases of two versions


def comes_with_key(here, queue, there, target):
    put(here, queue, 3, key="k")
    assert ready(there, target, timeout="1 minute")
    return db.value(there, "SELECT key FROM aq.dequeue_full(%s, NULL::jsonb)", [target]) == "k"


@pytest.mark.parametrize("versions", [(OLD, NEW), (NEW, OLD)], ids=["from-old", "from-new"])
def test_links_and_nodes(server, database, versions):
    """Propagation, and a queue on two nodes, between databases of both versions, while the older one is updated."""
    names = "here", "there"
    here, there = (database(name, version) for name, version in zip(names, versions, strict=True))
    with here, there:
        for conn, other in ((here, "there"), (there, "here")):
            link(server, conn, other)
            conn.execute("SELECT aq.node_add(%s)", [other])
            conn.execute(
                "SELECT aq.create_queue('target'), aq.create_queue('source'), aq.create_queue('both', distributed => true, shards => 1)"
            )
        assert db.value(here, "SELECT remote_version FROM aq.check_link('there')") == versions[1]
        here.execute("SELECT aq.propagate('source', 'target@there')")
        for number in (1, 2):
            keyed = number == 2 or versions[0] == NEW  # the other functions have no such argument
            for queue, target in (("source", "target"), ("both", "both")):
                put(here, queue, number, **({"key": "k"} if keyed else {}))
                assert arrived(there, target, 1) == [number]
            if number == 1:
                update(here if versions[0] == OLD else there, NEW, PGAQ_ONLY)
        for queue, target in (("source", "target"), ("both", "both")):
            # keys are sent when the link has found out that the other side knows them
            until(lambda queue=queue, target=target: comes_with_key(here, queue, there, target), "a key")
        here.execute("SELECT aq.alter_propagation('source', 'target@there', enabled => false)")
        for conn, other in ((here, "there"), (there, "here")):
            conn.execute("SELECT aq.node_remove(%s, force => true)", [other])
