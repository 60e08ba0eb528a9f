"""Objects that other roles created before the extension, locks that every role may take, and what roles see of others' data."""

from __future__ import annotations

import pytest

from conftest import install, put, take
from pgaq import db

SETTINGS = {"shared_preload_libraries": "pgaq,pg_stat_statements"}
HIDDEN = "kept-to-myself"
SHOWS = """SELECT format('SELECT %%L WHERE EXISTS (SELECT FROM %%s r WHERE strpos(r::text, %%L) > 0 OR strpos(r::text, %%L) > 0)', c.oid::regclass, c.oid::regclass, %(text)s::text,
        encode(convert_to(%(text)s::text, 'UTF8'), 'hex')) AS query
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v') AND n.nspname IN ('aq', 'aq_internal', 'aq_data') ORDER BY c.relname"""


def test_what_others_have_made_in_public_is_not_used(server):
    """An operator that matches better than the server's own would be called by every user of the extension."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE prepared")
    with server.connect(dbname="prepared") as conn:
        conn.execute("CREATE FUNCTION public.joined(text, integer) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        conn.execute("CREATE OPERATOR public.|| (FUNCTION = public.joined, LEFTARG = text, RIGHTARG = integer)")
        conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
        assert db.value(conn, "SELECT 'x' || 1 = 'x'"), "outside of the extension it is used"
        used = "SELECT count(*) FROM pg_depend WHERE deptype = 'n' AND refobjid IN (SELECT o.oid FROM pg_operator o WHERE o.oprnamespace = 'public'::regnamespace) AND classid = 'pg_proc'::regclass"
        assert db.value(conn, used) == 0


def test_nobody_stops_the_history_of_sessions(server):
    """No lock that everybody may take keeps samples from being kept."""
    with server.connect() as holder, server.connect() as conn:
        holder.execute("SELECT pg_advisory_lock('aq_internal.active_session'::regclass::oid::bigint)")
        db.execute(conn, "SET statement_timeout = '30s'")
        db.execute(conn, "SELECT aq_internal.ash_flush()")


@pytest.fixture
def hidden(server):
    """A database of role owning with data of others in every table that has some."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE owning LOGIN; CREATE ROLE watching IN ROLE pg_monitor; CREATE ROLE producing; CREATE ROLE nobody")
        conn.execute("CREATE DATABASE owned OWNER owning")
        conn.execute(
            f"CREATE EXTENSION pg_stat_statements; ALTER ROLE nobody PASSWORD '{HIDDEN}'; DO $$ BEGIN PERFORM '{HIDDEN}'; END $$; SELECT length('{HIDDEN}')"
        )
    with server.connect("owned") as conn:
        install(conn)
        conn.execute("CREATE EXTENSION pg_stat_statements")
        conn.execute(
            "SELECT aq.create_queue('q', max_retries => 0), aq.create_queue('alarms', queue_type => 'non_persistent'), aq.create_queue('news', multiple_consumers => true), aq.create_queue('far')"
        )
        conn.execute("SELECT aq.grant_queue('q', 'producing', 'enqueue'), aq.subscribe('news', 'ann')")
        mine = {"correlation": HIDDEN, "properties": f'{{"a": "{HIDDEN}"}}'}
        put(conn, "q", HIDDEN, HIDDEN, **mine)
        with pytest.raises(db.Error), conn.transaction():
            take(conn, "q", number=1)
            conn.execute("SELECT 1 / 0")
        db.rows(conn, "SELECT aq.reject('q', ARRAY[msgid], receipt, error => %s) FROM aq.dequeue('q', lease => '1 min')", [HIDDEN])
        put(conn, "q", HIDDEN, delivery_mode="buffered")
        put(conn, "news", HIDDEN, **mine)
        db.rows(
            conn, "SELECT aq.register(name, 'client://', context => convert_to(%s, 'UTF8')) FROM unnest('{alarms}'::text[]) name", [HIDDEN]
        )
        put(conn, "alarms", HIDDEN, **mine)
        db.rows(
            conn, "SELECT aq.schedule('daily', 'q', %s::jsonb, every => '1 day', start_at => now() + interval '1 day')", [f'"{HIDDEN}"']
        )
        conn.execute(
            "CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1', enabled 'off'); CREATE USER MAPPING FOR CURRENT_USER SERVER there"
        )
        conn.execute("SELECT aq.create_propagation('far', 'dest@there')")
        conn.execute(f"""UPDATE aq_internal.propagation SET last_error = '{HIDDEN}';
            INSERT INTO aq_internal.propagation_batch SELECT schedule_id, 99, gen_random_uuid(), 'dest', NULL, 'jsonb', 1, 1, '{{{HIDDEN}}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}' FROM aq_internal.propagation""")
        conn.execute(
            f"INSERT INTO aq_internal.active_session (dbid, sample_id, sample_time, session, pid, background, module) VALUES (1, 1, now(), 1, 1, false, '{HIDDEN}')"
        )
        conn.execute("SELECT aq.take_snapshot()")
        yield conn
    with server.connect() as conn:
        conn.execute("DROP DATABASE owned WITH (FORCE)")
        conn.execute("DROP EXTENSION pg_stat_statements; DROP ROLE owning, watching, producing, nobody")


def shown(conn, role):
    """The relations that show it to the role."""
    queries = [row["query"] for row in db.rows(conn, SHOWS, {"text": HIDDEN})]
    found = []
    conn.execute(f"SET ROLE {role}")
    for query in queries:
        try:
            found += [value for row in db.rows(conn, query) for value in row.values()]
        except db.Error as error:
            assert error.sqlstate == "42501", (query, error)
    conn.execute("RESET ROLE")
    return found


def test_data_of_others_are_hidden(server, hidden, tmp_path):
    """From the database's owner, from members of pg_monitor and from a role that may only enqueue; a dump by the owner has none of it, and one by a superuser all."""
    everything = shown(hidden, "postgres")
    tables = ["active_session", "posting", "propagation", "propagation_batch", "registration", "schedule"]
    assert set(tables) <= {name.split(".")[1] for name in everything}
    assert "aq_internal.snapshot_data" not in everything, "secrets of statements are not even stored"
    assert "aq.messages" in everything and any(name.startswith("aq_data.q") for name in everything)
    assert {role: shown(hidden, role) for role in ("owning", "producing")} == {"owning": [], "producing": []}
    assert set(shown(hidden, "watching")) <= {"aq.propagations", "aq.stored_session_history"}, "errors, and modules, of all sessions"
    for options, complete in ((["--role=owning", "--exclude-schema=aq_data"], False), ([], True)):
        done = server.run("pg_dump", f"--file={tmp_path / 'dump'}", *options, dbname="owned")
        assert done.returncode == 0, done.stderr
        assert (HIDDEN in (tmp_path / "dump").read_text()) == complete
    with server.connect() as conn:
        conn.execute("CREATE DATABASE again")
    done = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(tmp_path / "dump"), dbname="again")
    assert done.returncode == 0, done.stderr
    # samples: those of the test; both databases are sampled meanwhile
    rows = "SELECT count(*) AS number, sum(hashtext(to_jsonb(t)::text)) AS hash FROM aq_internal.{0} t WHERE '{0}' <> 'active_session' OR to_jsonb(t)->>'module' = '{1}'".format
    with server.connect("again") as conn:
        for table in ["snapshot", "snapshot_data", "notified", "propagation_link", *tables]:
            assert db.rows(conn, rows(table, HIDDEN)) == db.rows(hidden, rows(table, HIDDEN)), table
        assert db.value(conn, "SELECT count(*) FROM aq_internal.dump_row") == 0
    with server.connect() as conn:
        conn.execute("DROP DATABASE again WITH (FORCE)")


@pytest.mark.parametrize("statement, kept", [
    ("ALTER ROLE x PASSWORD 'y'", "ALTER ROLE"), ("/* a */ -- b\n alter\n user x PASSWORD 'y'", "alter user"), ("SET a.b TO 'y'", "SET a.b"), ("DO $$y$$", "DO"), ("/* /* */ */ SELECT 'y'", "utility statement"),
    ("EXPLAIN SELECT 'y'", "EXPLAIN SELECT"), ("CALL aq.wait('y')", "CALL aq.wait"), ("COPY t FROM PROGRAM 'y'", "COPY t"), ("SELECT a,\n  $1 FROM t", "SELECT a, $1 FROM t"),
    (" ( SELECT 'y', 1", "( SELECT .."), ("WITH a AS (SELECT $q$y$q$) TABLE a", "WITH a AS (SELECT .."), ("select E'a\\'b', 'y'", "select E.."), ("SELECTED 'y'", "SELECTED"), ("", "utility statement"),
])  # fmt: skip
def test_texts_of_statements_keep_no_constants(server, statement, kept):
    with server.connect() as conn:
        assert db.value(conn, "SELECT aq_internal.statement_shown(%s)", [statement]) == kept


def test_a_schema_of_the_same_name(server):
    """In a database without the extension, DROP SERVER by a superuser reads nothing of a role's schema aq_internal."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE namesake LOGIN")
        conn.execute("CREATE DATABASE bare OWNER namesake")
    with server.connect(user="namesake", dbname="bare") as conn:
        conn.execute("""
            CREATE SCHEMA aq_internal CREATE TABLE queue (n int);
            CREATE FUNCTION aq_internal.trap() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
            CREATE VIEW aq_internal.propagation AS SELECT aq_internal.trap() AS destination""")
    with server.connect(dbname="bare") as conn:
        conn.execute("CREATE FOREIGN DATA WRAPPER plain; CREATE SERVER there FOREIGN DATA WRAPPER plain")
        conn.execute("DROP SERVER there")
    with server.connect() as conn:
        conn.execute("DROP DATABASE bare WITH (FORCE)")
        conn.execute("DROP ROLE namesake")
