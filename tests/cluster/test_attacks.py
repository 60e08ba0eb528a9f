"""Objects that other roles created before the extension, and locks that every role may take."""

from __future__ import annotations

from pgaq import db


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
