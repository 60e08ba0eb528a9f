"""The role pgaq: what it owns, who runs as it, and that nothing of pgaq runs as a superuser."""

from __future__ import annotations

import psycopg
import pytest

from conftest import put, until
from pgaq import db

pytestmark = pytest.mark.own_tables

OWNED_BY_SUPERUSERS = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolsuper AND c.relkind IN ('r', 'S') AND c.relnamespace::regnamespace::text ~ '^aq'
UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    WHERE r.rolsuper AND p.prosecdef AND d.refobjid IN (SELECT e.oid FROM pg_extension e WHERE e.extname ~ '^pgaq')"""
RECORD = """CREATE TABLE public.seen (what text, who name, UNIQUE (what, who)); GRANT ALL ON public.seen TO PUBLIC;
CREATE FUNCTION public.see(what text) RETURNS void LANGUAGE sql AS 'INSERT INTO public.seen VALUES (what, current_user) ON CONFLICT DO NOTHING';
CREATE FUNCTION public.see_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.see(current_setting('application_name')); RETURN NEW; END $$;
CREATE FUNCTION public.see_command() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.see(current_setting('application_name')); END $$;
CREATE EVENT TRIGGER see_command ON ddl_command_start EXECUTE FUNCTION public.see_command();
CREATE TRIGGER see_change BEFORE UPDATE ON aq_internal.schedule FOR EACH ROW EXECUTE FUNCTION public.see_change();
CREATE TRIGGER see_change BEFORE UPDATE ON aq_internal.propagation FOR EACH ROW EXECUTE FUNCTION public.see_change();
CREATE TRIGGER see_change BEFORE UPDATE ON aq_internal.propagation_link FOR EACH ROW EXECUTE FUNCTION public.see_change();
CREATE OR REPLACE FUNCTION aq_internal.snapshot_turn() RETURNS void LANGUAGE sql AS $$ SELECT public.see('a snapshot') $$;
CREATE OR REPLACE FUNCTION aq_internal.snapshot_due() RETURNS timestamptz LANGUAGE sql AS $$ SELECT public.see('a job'); SELECT now() $$;
CREATE OR REPLACE FUNCTION aq_internal.ash_flush_turn() RETURNS void LANGUAGE sql AS $$ SELECT public.see('another job') $$"""


def test_what_runs_has_no_superuser(server):
    """Each table and function that could give its owner's rights, and each process that runs SQL."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q'), aq.create_queue_table('public.tab'), aq.create_queue('t', multiple_consumers => true)")
        put(conn, "q", 1)
        put(conn, "q", "b", delivery_mode="buffered")
        assert conn.execute(OWNED_BY_SUPERUSERS).fetchall() == []
        attributes = "SELECT rolsuper OR rolcanlogin OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = 'pgaq'"
        assert db.value(conn, attributes) is False
        assert conn.execute(
            "SELECT roleid::regrole::text, member::regrole::text FROM pg_auth_members WHERE 'pgaq'::regrole IN (roleid, member)"
        ).fetchall() == [("pg_monitor", "pgaq")]
        conn.execute(RECORD)
        conn.execute(
            "SELECT aq.create_queue('made'), aq.schedule('each', 'q', '1', every => '1 second'), aq.create_propagation('t', 'made'), aq.set_snapshots(every => '1 hour')"
        )
        put(conn, "made", 2)
        put(conn, "t", 3)
        host, port = db.value(conn, "SHOW unix_socket_directories"), db.value(conn, "SHOW port")
        conn.execute(f"CREATE SERVER itself FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '{host}', port '{port}', dbname 'postgres')")
        conn.execute("CREATE USER MAPPING FOR postgres SERVER itself OPTIONS (user 'postgres')")
        conn.execute("SELECT aq.create_queue('sent'), aq.create_propagation('sent', 'q@itself')")
        put(conn, "sent", 4)
        expected = {"pgaq worker", "pgaq scheduler", "pgaq propagation", "pgaq link", "a job", "a snapshot"}
        until(lambda: expected <= {row[0] for row in conn.execute("SELECT what FROM public.seen")})
        seen = conn.execute("SELECT what, who::text FROM public.seen WHERE what ~ '^(pgaq|a)'").fetchall()
        assert {who for _, who in seen} == {"pgaq"}, seen


def test_views_for_users(server):
    """The views of Oracle's package in a user's schema are made and dropped without a command of a superuser."""
    with server.connect() as conn:
        conn.execute("""CREATE ROLE shop LOGIN; CREATE SCHEMA shop AUTHORIZATION shop; GRANT EXECUTE ON FUNCTION aq.create_queue_table TO shop;
            CREATE TABLE public.ran (command text, who name); GRANT ALL ON public.ran TO PUBLIC;
            CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (tg_tag, current_user); END $$;
            CREATE EVENT TRIGGER note ON ddl_command_start EXECUTE FUNCTION public.note()""")
    with server.connect(user="shop") as shop:
        shop.execute("CALL dbms_aqadm.create_queue_table('shop.tab', 'JSON', multiple_consumers => true)")
        owners = "SELECT array_agg(relname::text ORDER BY relname), array_agg(DISTINCT relowner::regrole::text) FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'v'"
        assert shop.execute(owners).fetchone() == (["aq$tab", "aq$tab_r", "aq$tab_s", "tab"], ["shop"])
        assert shop.execute('SELECT count(*) FROM shop."aq$tab"').fetchone() == (0,)
        shop.execute("CALL dbms_aqadm.drop_queue_table('shop.tab')")
        assert shop.execute(owners).fetchone() == (None, None)
    with server.connect() as conn:
        assert conn.execute("SELECT DISTINCT who::text FROM public.ran WHERE who NOT IN ('pgaq', 'shop')").fetchall() == []


def test_the_role_is_for_superusers_only(server):
    """A role with CREATEROLE neither becomes a member nor changes it; one that stands in the way is not used."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE maker CREATEROLE; SET ROLE maker")
        for command in (
            "GRANT pgaq TO maker",
            "CREATE ROLE other IN ROLE pgaq",
            "ALTER GROUP pgaq ADD USER maker",
            "ALTER ROLE pgaq LOGIN PASSWORD 'x'",
            "ALTER ROLE pgaq RENAME TO y",
            "ALTER ROLE pgaq SET work_mem = '1MB'",
            "DROP ROLE pgaq",
            "GRANT maker TO pgaq",
            "CREATE ROLE other ROLE pgaq",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be superuser"):
                conn.execute(command)


def test_a_role_that_stands_in_the_way(new_server):
    server = new_server("taken")
    with server.connect() as conn:
        conn.execute("DROP EXTENSION pgaq CASCADE; DROP ROLE pgaq; CREATE ROLE pgaq LOGIN")
        with pytest.raises(psycopg.errors.DuplicateObject, match='role "pgaq" already exists'):
            conn.execute("CREATE EXTENSION pgaq")
        conn.execute("ALTER ROLE pgaq NOLOGIN; CREATE ROLE friend IN ROLE pgaq")
        with pytest.raises(psycopg.errors.DuplicateObject, match="has members"):
            conn.execute("CREATE EXTENSION pgaq")
        conn.execute("DROP ROLE friend; CREATE TABLE public.own (); ALTER TABLE public.own OWNER TO pgaq")
        with pytest.raises(psycopg.errors.DuplicateObject, match="owns objects"):
            conn.execute("CREATE EXTENSION pgaq")
        conn.execute("DROP TABLE public.own; CREATE EXTENSION pgaq")
        conn.execute("CREATE DATABASE second")
        with server.connect("second") as second:
            second.execute("CREATE EXTENSION pgaq")
            second.execute("SELECT aq.create_queue('q')")
            put(second, "q", 1)
