"""Odd arguments of every function, and objects that somebody has made before the extension came."""

from __future__ import annotations

import random
import re

import psycopg
import pytest
from pgaq import db

SETTINGS = {"log_min_messages": "log"}

SCHEMAS = """aq sys dbms_aq dbms_aqadm dbms_transform dbms_aqmigtool dbms_shared_pool dbms_workload_repository dbms_application_info aq_lab""".split()
# what keeps a processor or a latch for as long as it is told to
LEFT_OUT = re.compile(r"^aq_lab\.(hammer|burn|cost|hold|fail)|^aq\.point_")

TEXTS = [
    "'fuzzed'", "'fuzzed_topic'", "'fuzzed_classic'", "'public.fuzzed_table'", "'no such'", "''", "'a.b.c'", "'\"'", "'\"\"\"'", "E'\\\\'", "'%s'", "'%I'",
    "E'a\\nb'", "'x''; SELECT 1'", "'ann'", "'aq$x'", "repeat('x', 127)", "repeat('é', 64)", "repeat('x', 100000)", "'remove'", "'browse'", "'locked'",
    "'first_message'", "'buffered'", "'true'", "'payload IS NULL'", "'1 / 0 = 1'", "'(('", "'{}'", "'[1, 2'", "'lab 1'", "'1'", "'-1'", "'latch'", "'all'",
]  # fmt: skip
INTS = ["0", "1", "-1", "2", "10", "1023", "1024", "32767", "-32768", "2147483647", "-2147483648"]
VALUES = {
    "text": TEXTS, "character varying": TEXTS, "name": TEXTS[:10], "smallint": INTS[:9], "integer": INTS, "boolean": ["true", "false"],
    "bigint": [*INTS, "9223372036854775807", "-9223372036854775808"],
    "interval": ["'0'", "'-1 s'", "'1 us'", "'178000000 years'", "'-178000000 years'", "'2147483647 days'"],
    "jsonb": ["'{}'", "'null'", "'[1]'", "(repeat('[', 3000) || repeat(']', 3000))", "'{\"a\": {\"b\": 1}}'", "'[{\"source\": 1}]'"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "(SELECT id FROM public.fuzzed_ids ORDER BY random() LIMIT 1)"],
    "timestamp with time zone": ["now()", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'"],
    "regtype": ["'jsonb'", "'public.fuzzed_pair'", "'integer'", "0", "4294967295", "'anyelement'", "'record'"],
    "regrole": ["'postgres'", "'fuzzed_stranger'", "0", "4294967295"], "oid": ["0", "1", "4294967295", "'lower(text)'::regprocedure"],
    "double precision": ["0", "-1", "'NaN'", "'infinity'", "'-infinity'", "0.001"], "numeric": ["0", "-1", "'NaN'", "'infinity'", "1e100"],
    "bytea": ["''", "'\\x00ff'"],
    "anyelement": ["'x'::text", "1", "NULL::jsonb", "'{}'::jsonb", "ROW(1, 'a')", "ROW(1, 'a')::public.fuzzed_pair", "'{1,2}'::int[]", "'x'::name", "'a'::\"char\""],
    "record": ["ROW(1, 2)", "ROW()", "ROW(1, 'a')::public.fuzzed_pair"], "\"any\"": ["1", "'x'::text", "NULL::jsonb"],
    "anyarray": ["ARRAY[1, 2]", "'{}'::text[]", "ARRAY[NULL]::jsonb[]", "'{{1,2},{3,4}}'::int[]", "ARRAY[ROW(1, 'a')::public.fuzzed_pair]"],
}  # fmt: skip
PSEUDO = ("anyelement", "anyarray", "record", '"any"')


class Arguments:
    """Values of all types that functions of the extension take, made up."""

    def __init__(self, conn, seed):
        self.conn, self.random, self.parts = conn, random.Random(seed), {}

    def of(self, type_name, depth=0):
        chance = self.random.random()
        if type_name in PSEUDO:
            return "NULL" if chance < 0.1 else self.random.choice(VALUES[type_name])
        if chance < 0.12:
            return f"NULL::{type_name}"
        if type_name in VALUES:
            return f"({self.random.choice(VALUES[type_name])})::{type_name}"
        if type_name.endswith("[]"):
            return self.array_of(type_name, chance)
        fields, base = self.parts_of(type_name)
        if base:
            return f"({self.of(base, depth + 1)})::{type_name}"
        if not fields or depth > 2:
            return f"NULL::{type_name}"
        return "ROW(" + ", ".join("NULL" if self.random.random() < 0.6 else self.of(each, depth + 1) for each in fields) + f")::{type_name}"

    def array_of(self, type_name, chance):
        element = type_name.removesuffix("[]")
        if chance < 0.25:
            return self.random.choice([f"'{{}}'::{type_name}", f"ARRAY[NULL, NULL]::{type_name}", f"'[5:5]={{NULL}}'::{type_name}"])
        if chance < 0.35:
            return f"(SELECT array_agg({self.of(element, 2)}) FROM generate_series(1, 3000))"
        if chance < 0.45:
            return f"ARRAY[ARRAY[{self.of(element, 2)}]]::{type_name}"
        return f"ARRAY[{', '.join(self.of(element, 1) for _ in range(self.random.randint(1, 4)))}]::{type_name}"

    def parts_of(self, type_name):
        if type_name not in self.parts:
            self.parts[type_name] = self.conn.execute(
                """SELECT ARRAY(SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
                   ORDER BY a.attnum), CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, NULL) END FROM pg_type t WHERE t.oid = %s::regtype""",
                [type_name],
            ).fetchone()
        return self.parts[type_name]


def functions(conn):
    """Name, is it a procedure?, and its arguments: of each its mode and type."""
    return conn.execute(
        """SELECT format('%%I.%%I', n.nspname, p.proname), p.prokind = 'p', ARRAY(SELECT coalesce(p.proargmodes[i]::text, 'i') || ':' || format_type(t, NULL)
               FROM unnest(CASE WHEN p.prokind = 'p' THEN coalesce(p.proallargtypes, p.proargtypes::oid[]) ELSE p.proargtypes::oid[] END) WITH ORDINALITY AS a (t, i))
           FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = ANY (%s) AND p.prokind IN ('f', 'p') AND p.prorettype <> 'trigger'::regtype ORDER BY p.oid""",
        [SCHEMAS],
    ).fetchall()


def prepare(conn):
    """Queues that are there, so that calls come further than to their names."""
    for statement in (
        "SELECT aq.create_queue('fuzzed')",
        "SELECT aq.create_queue('fuzzed_topic', multiple_consumers => true)",
        "SELECT aq.create_queue_table('public.fuzzed_table', sort_list => 'priority,enq_time', multiple_consumers => true)",
        "SELECT aq.create_queue('fuzzed_classic', queue_table => 'public.fuzzed_table')",
        "SELECT aq.subscribe('fuzzed_topic', 'ann'), aq.subscribe('fuzzed_classic', 'ann')",
        "SELECT aq.grant_queue(q, 'fuzzed_stranger', 'enqueue') FROM unnest(ARRAY['fuzzed', 'fuzzed_topic']) q",
        "INSERT INTO public.fuzzed_ids SELECT aq.enqueue(q, '1') FROM unnest(ARRAY['fuzzed', 'fuzzed_topic', 'fuzzed_classic']) q",
        "SELECT aq.enqueue('fuzzed', '1', delivery_mode => 'buffered')",
    ):
        try:
            conn.execute(statement)
        except psycopg.Error:
            pass  # it is there, or something has stopped, renamed or dropped it


def session_of(server, user):
    return psycopg.connect(server.conninfo(user=user, options="-c statement_timeout=300 -c lock_timeout=200"), autocommit=True)


def fuzz(server, user, seed, rounds):
    """Calls everything; an error is fine, the end of the session is not."""
    with server.connect() as admin:
        arguments, calls = Arguments(admin, f"{user} {seed}"), functions(admin)
        conn, made = session_of(server, user), 0
        for _ in range(rounds):
            prepare(admin)
            for name, procedure, types in calls:
                if LEFT_OUT.match(name):
                    continue
                given = ", ".join("NULL" if each.startswith("o:") else arguments.of(each[2:]) for each in types)
                statement = f"{'CALL' if procedure else 'SELECT * FROM'} {name}({given})"
                try:
                    conn.pgconn.exec_(b"BEGIN")
                    result = conn.pgconn.exec_(statement.encode())
                    conn.pgconn.exec_(b"ROLLBACK" if arguments.random.random() < 0.5 else b"COMMIT")
                finally:
                    assert conn.pgconn.status == psycopg.pq.ConnStatus.OK, f"{user}, seed {seed}: {statement}: {result.error_message}"
                state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b""
                assert state != b"XX001", statement
                made += 1
        conn.close()
    return made


@pytest.mark.own_tables
def test_odd_arguments_end_no_session(server, seed, is_long):
    """Nulls, negative numbers, wrong names and types, empty and huge arrays: for a superuser, and for who has almost no right."""
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION pgaq_lab; CREATE ROLE fuzzed_stranger LOGIN; CREATE TYPE public.fuzzed_pair AS (a int, b text)")
        conn.execute("CREATE TABLE public.fuzzed_ids (id uuid); GRANT SELECT ON public.fuzzed_ids TO PUBLIC")
        started = db.value(conn, "SELECT pg_postmaster_start_time()"), db.value(conn, "SELECT aq._startup_time()")
    assert fuzz(server, "fuzzed_stranger", seed, 5 if is_long else 1) > 200
    assert fuzz(server, "postgres", seed, 5 if is_long else 1) > 200
    with server.connect() as conn:
        assert (db.value(conn, "SELECT pg_postmaster_start_time()"), db.value(conn, "SELECT aq._startup_time()")) == started
        db.execute(conn, "SELECT aq.create_queue('after_all')")
        assert db.value(conn, "SELECT aq.enqueue('after_all', '1') IS NOT NULL")


def test_what_others_have_made_in_public_is_not_used(server):
    """An operator that fits better than the server's own would be called by whoever uses the extension."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE prepared")
    with server.connect(dbname="prepared") as conn:
        conn.execute("CREATE FUNCTION public.joined(text, integer) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        conn.execute("CREATE OPERATOR public.|| (FUNCTION = public.joined, LEFTARG = text, RIGHTARG = integer)")
        conn.execute("CREATE EXTENSION pgaq")
        assert db.value(conn, "SELECT 'x' || 1 = 'x'"), "outside of the extension it is used"
        used = "SELECT count(*) FROM pg_depend WHERE deptype = 'n' AND refobjid IN (SELECT o.oid FROM pg_operator o WHERE o.oprnamespace = 'public'::regnamespace) AND classid = 'pg_proc'::regclass"
        assert db.value(conn, used) == 0


def test_nobody_stops_the_history_of_sessions(server):
    """No lock that everybody may take keeps samples from being kept."""
    with server.connect() as holder, server.connect() as conn:
        holder.execute("SELECT pg_advisory_lock('aq.active_session'::regclass::oid::bigint)")
        db.execute(conn, "SET statement_timeout = '30s'")
        db.execute(conn, "SELECT aq._ash_flush()")
