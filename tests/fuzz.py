#!/usr/bin/env python3
"""Calls every function of the extension with odd arguments, as several roles; has sqlsmith read its views.

    tools/python tests/fuzz.py [--minutes N] [--seed N] [--only functions|queries]

Whatever is called, the server does not crash, no internal error is raised, a role
gets no right that it does not have, and queues work afterwards.  A run with the same
seed makes the same calls.  tests/cluster/test_fuzz.py runs a bounded form.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from pgaq import db  # noqa: E402
from pgaq.server import Server  # noqa: E402
from pgaq_proof import faults  # noqa: E402

SETTINGS = {"log_min_messages": "log", "pgaq.max_queues": "1000", "max_worker_processes": "32"}

SCHEMAS = """aq aq_jms aq_internal sys dbms_aq dbms_aqadm dbms_transform dbms_aqmigtool dbms_aqelm dbms_aqjms dbms_jms_plsql dbms_shared_pool dbms_workload_repository dbms_application_info aq_lab""".split()
# what keeps a processor or a latch for as long as it is told to
LEFT_OUT = re.compile(r"^aq_lab\.(hammer|burn|cost|hold|fail)|^aq\.point_")
SECRET = "top secret"

# role -> what it is; the first two must not reach what belongs to fuzzed_keeper
ROLES = {
    "fuzzed_stranger": "no right but to enqueue into two queues",
    "fuzzed_owner": "owns queues and a queue table",
    "fuzzed_manager": "administers queues",
    "postgres": "superuser",
}
UNPRIVILEGED = ("fuzzed_stranger", "fuzzed_owner")

QUEUES = [
    "'fuzzed'",
    "'fuzzed_topic'",
    "'fuzzed_classic'",
    "'fuzzed_owner.sharded'",
    "'fuzzed_owner.in_table'",
    "'fuzzed_owner.tab'",
    "'public.fuzzed_table'",
]
TEXTS = [
    *QUEUES, "'kept'", "'kept_classic'", "'fuzzed_keeper.kept_table'", "'no such'", "''", "'a.b.c'", "'\"'", "'\"\"\"'", "E'\\\\'", "'%s'", "'%I'", "E'a\\nb'",
    "'x''; SELECT 1'", "'ann'", "'aq$x'", "pg_catalog.repeat('x', 127)", "pg_catalog.repeat('é', 64)", "pg_catalog.repeat('x', 100000)", "'remove'", "'browse'",
    "'locked'", "'first_message'", "'next_transaction'", "'before'", "'top'", "'buffered'", "'persistent_or_buffered'", "'true'", "'payload IS NULL'", "'1 / 0 = 1'",
    "'(('", "'{}'", "'[1, 2'", "'lab 1'", "'1'", "'-1'", "'latch'", "'all'", "'ENQUEUE_ANY'", "'fuzzed_stranger'", "'fuzzed_keeper'", "'RAW'", "'public'", "'SHARD_NUM'",
    "'fuzzed_schedule'", "'kept_schedule'", "'* * * * *'", "'*/7 1-3,5 29 2 */2'", "'@daily'", "'Europe/Berlin'", "'one'", "'skip'",
]  # fmt: skip
INTS = ["0", "1", "-1", "2", "3", "10", "1023", "1024", "32767", "-32768", "2147483647", "-2147483648"]
VALUES = {
    "text": TEXTS, "character varying": TEXTS, "name": [*TEXTS[:12], "'fuzzed_link'"], "smallint": [i for i in INTS if len(i) < 7], "integer": INTS, "boolean": ["true", "false"],
    "bigint": [*INTS, "9223372036854775807", "-9223372036854775808"],
    "interval": ["'0'", "'-1 s'", "'1 us'", "'178000000 years'", "'-178000000 years'", "'2147483647 days'"],
    "jsonb": ["'{}'", "'null'", "'[1]'", "(pg_catalog.repeat('[', 3000) || pg_catalog.repeat(']', 3000))", "'{\"a\": {\"b\": 1}}'", "'[{\"source\": 1}]'"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "(SELECT id FROM public.fuzzed_ids ORDER BY pg_catalog.random() LIMIT 1)"],
    "timestamp with time zone": ["pg_catalog.now()", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'"],
    "regtype": ["'jsonb'", "'public.fuzzed_pair'", "'integer'", "0", "4294967295", "'anyelement'", "'record'", "'aq_internal.queue'"],
    "regrole": ["'postgres'", "'fuzzed_stranger'", "'fuzzed_owner'", "0", "4294967295"],
    "oid": ["0", "1", "4294967295", "'lower(text)'::regprocedure", "'pg_catalog.pg_reload_conf()'::regprocedure", "'aq_internal.queue'::regclass"],
    "double precision": ["0", "-1", "'NaN'", "'infinity'", "'-infinity'", "0.001"], "numeric": ["0", "-1", "'NaN'", "'infinity'", "'-infinity'", "1e100", "0.5"],
    "bytea": ["''", "'\\x00ff'"],
    "anyelement": ["'x'::text", "1", "NULL::jsonb", "'{}'::jsonb", "ROW(1, 'a')", "ROW(1, 'a')::public.fuzzed_pair", "'{1,2}'::int[]", "'x'::name", "'a'::\"char\""],
    "anycompatible": ["'0'", "'-1 s'", "'1 ms'::interval", "'1000'", "1000", "'{}'", "'{NULL}'::uuid[]", "(SELECT id FROM public.fuzzed_ids ORDER BY pg_catalog.random() LIMIT 1)", "'x'::name"],
    "record": ["ROW(1, 2)", "ROW()", "ROW(1, 'a')::public.fuzzed_pair"], "\"any\"": ["1", "'x'::text", "NULL::jsonb"],
    "anyarray": ["ARRAY[1, 2]", "'{}'::text[]", "ARRAY[NULL]::jsonb[]", "'{{1,2},{3,4}}'::int[]", "ARRAY[ROW(1, 'a')::public.fuzzed_pair]"],
}  # fmt: skip
PSEUDO = ("anyelement", "anyarray", "anycompatible", "record", '"any"')


class Arguments:
    """Values of all types that functions of the extension take, made up."""

    def __init__(self, conn: db.Connection, seed: object) -> None:
        self.conn, self.random, self.parts = conn, random.Random(str(seed)), {}

    def of(self, type_name: str, depth: int = 0) -> str:
        chance = self.random.random()
        if type_name in PSEUDO:
            return "NULL" if chance < 0.1 else self.random.choice(VALUES[type_name])
        if chance < 0.12:
            return f"NULL::{type_name}"
        if type_name == "text" and chance < 0.35:
            return f"({self.random.choice(QUEUES)})::text"
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

    def array_of(self, type_name: str, chance: float) -> str:
        element = type_name.removesuffix("[]")
        if chance < 0.25:
            return self.random.choice([f"'{{}}'::{type_name}", f"ARRAY[NULL, NULL]::{type_name}", f"'[5:5]={{NULL}}'::{type_name}"])
        if chance < 0.35:
            return f"(SELECT pg_catalog.array_agg({self.of(element, 2)}) FROM pg_catalog.generate_series(1, 3000))"
        if chance < 0.45:
            return f"ARRAY[ARRAY[{self.of(element, 2)}]]::{type_name}"
        return f"ARRAY[{', '.join(self.of(element, 1) for _ in range(self.random.randint(1, 4)))}]::{type_name}"

    def parts_of(self, type_name: str) -> tuple[list[str], str | None]:
        if type_name not in self.parts:
            self.parts[type_name] = self.conn.execute(
                """SELECT ARRAY(SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
                   ORDER BY a.attnum), CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, NULL) END FROM pg_type t WHERE t.oid = %s::regtype""",
                [type_name],
            ).fetchone()
        return self.parts[type_name]


def functions(conn: db.Connection) -> list[tuple[str, bool, list[str]]]:
    """Name, is it a procedure?, and its arguments: of each its mode and type."""
    return conn.execute(
        """SELECT format('%%I.%%I', n.nspname, p.proname), p.prokind = 'p', ARRAY(SELECT coalesce(p.proargmodes[i]::text, 'i') || ':' || format_type(t, NULL)
               FROM unnest(CASE WHEN p.prokind = 'p' THEN coalesce(p.proallargtypes, p.proargtypes::oid[]) ELSE p.proargtypes::oid[] END) WITH ORDINALITY AS a (t, i))
           FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = ANY (%s) AND p.prokind IN ('f', 'p') AND p.prorettype <> 'trigger'::regtype ORDER BY p.oid""",
        [SCHEMAS],
    ).fetchall()


# --- what there is to call them with ---------------------------------------------


def install(server: Server) -> None:
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS pgaq_lab")
        conn.execute(
            "CREATE TYPE public.fuzzed_pair AS (a int, b text); CREATE TABLE public.fuzzed_ids (id uuid); GRANT SELECT ON public.fuzzed_ids TO PUBLIC"
        )
        for role in (*ROLES, "fuzzed_keeper"):
            if role != "postgres":
                conn.execute(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA {role} AUTHORIZATION {role}")
        conn.execute(
            "GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO fuzzed_owner, fuzzed_keeper; GRANT aq_administrator_role TO fuzzed_manager"
        )
        # nothing listens there: calls come as far as a refused connection
        conn.execute("CREATE SERVER fuzzed_link FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1')")
        conn.execute(
            "GRANT USAGE ON FOREIGN SERVER fuzzed_link TO fuzzed_owner; CREATE USER MAPPING FOR fuzzed_owner SERVER fuzzed_link OPTIONS (password 'x')"
        )
        conn.execute("SET ROLE fuzzed_keeper")
        conn.execute("SELECT aq.create_queue('kept'), aq.create_queue_table('fuzzed_keeper.kept_table')")
        conn.execute("SELECT aq.create_queue('kept_classic', queue_table => 'fuzzed_keeper.kept_table')")
        ids = [
            db.value(conn, "SELECT aq.enqueue(%s, to_jsonb(%s::text))", [queue, SECRET])
            for queue in ("kept", "kept_classic")
            for _ in range(3)
        ]
        conn.execute("SELECT aq.schedule('kept_schedule', 'kept', to_jsonb(%s::text), '0 0 29 2 *')", [SECRET])
        conn.execute("RESET ROLE")
        for each in ids:
            conn.execute("INSERT INTO public.fuzzed_ids VALUES (%s)", [each])
    prepare(server)


def prepare(server: Server) -> None:
    """Queues that are there and hold messages, so that calls come further than to their names."""
    owner = "SET ROLE fuzzed_owner"
    with server.connect() as conn:
        conn.execute("SET lock_timeout = '5s'")
        for statement in (
            "SELECT aq.create_queue('fuzzed')",
            "SELECT aq.create_queue('fuzzed_topic', multiple_consumers => true)",
            "SELECT aq.create_queue_table('public.fuzzed_table', sort_list => 'priority,enq_time', multiple_consumers => true)",
            "SELECT aq.create_queue('fuzzed_classic', queue_table => 'public.fuzzed_table')",
            "SELECT aq.subscribe(q, 'ann') FROM unnest(ARRAY['fuzzed_topic', 'fuzzed_classic']) q",
            "SELECT aq.grant_queue(q, 'fuzzed_stranger', 'enqueue') FROM unnest(ARRAY['fuzzed', 'fuzzed_topic']) q",
            "SELECT aq.schedule('fuzzed_schedule', 'fuzzed', '1', '* * * * *')",
            owner,
            "SET search_path = fuzzed_owner",
            "CALL dbms_aqadm.create_queue_table('tab', 'JSON')",
            "CALL dbms_aqadm.create_queue('in_table', 'tab')",
            "CALL dbms_aqadm.create_sharded_queue('sharded', queue_payload_type => 'JSON')",
            "CALL dbms_aqadm.start_queue('in_table')",
            "CALL dbms_aqadm.start_queue('sharded')",
            "RESET ROLE",
            *(f"INSERT INTO public.fuzzed_ids SELECT aq.enqueue({queue}, '1')" for queue in QUEUES[:5] for _ in range(3)),
            "SELECT aq.enqueue('fuzzed', '1', delivery_mode => 'buffered')",
        ):
            try:
                conn.execute(statement)
            except psycopg.Error:
                pass  # it is there, or something has stopped, renamed or dropped it


def guarded(server: Server) -> list[object]:
    """What no call of a role without rights may change."""
    with server.connect() as conn:
        return [
            conn.execute(
                "SELECT queue_name, msgid::text, state, attempts, payload FROM aq.messages WHERE queue_name LIKE 'kept%' ORDER BY 1, 2"
            ).fetchall(),
            conn.execute(
                "SELECT queue_name, owner, max_retries, retention, comment, enqueue_enabled, dequeue_enabled FROM aq.queues WHERE queue_name LIKE 'kept%' ORDER BY 1"
            ).fetchall(),
            conn.execute(
                "SELECT state, next_run, payload, options, owner, comment FROM aq.schedules WHERE schedule_name = 'kept_schedule'"
            ).fetchall(),
            conn.execute("SELECT roleid::regrole::text, member::regrole::text, admin_option FROM pg_auth_members ORDER BY 1, 2").fetchall(),
            conn.execute("SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles ORDER BY 1").fetchall(),
            conn.execute(
                "SELECT relname FROM pg_class WHERE relowner = 'fuzzed_stranger'::regrole AND relnamespace <> 'fuzzed_stranger'::regnamespace"
            ).fetchall(),
            conn.execute(
                "SELECT proname, proowner::regrole::text, proacl::text FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^(aq|aq_jms|aq_internal|dbms_.*|sys)$' ORDER BY oid"
            ).fetchall(),
        ]


# --- functions -------------------------------------------------------------------

# an internal error of the server's own functions, reached through the extension's
FOREIGN = re.compile(rb"^$")


class Broken(Exception):
    """The session has ended: there is nothing more to call."""


class Calls:
    """Calls of one role; whatever breaks a rule is noted."""

    def __init__(self, server: Server, role: str, seed: object) -> None:
        self.server, self.role, self.made, self.broken = server, role, 0, []
        self.admin = server.connect()
        self.arguments, self.functions = (
            Arguments(self.admin, f"{role} {seed}"),
            [each for each in functions(self.admin) if not LEFT_OUT.match(each[0])],
        )
        self.conn = psycopg.connect(
            self.server.conninfo(user=self.role, options="-c statement_timeout=150 -c lock_timeout=100"), autocommit=True
        )

    def note(self, what: str, statement: str) -> None:
        self.broken.append(f"{self.role}: {what}: {statement[:2000]}")

    def statement_of(self, name: str, procedure: bool, types: list[str]) -> str:
        given = ", ".join("NULL" if each.startswith("o:") else self.arguments.of(each[2:]) for each in types)
        return f"{'CALL' if procedure else 'SELECT * FROM'} {name}({given})"

    def call(self, statement: str) -> None:
        end = b"ROLLBACK" if self.arguments.random.random() < 0.5 else b"COMMIT"
        self.made += 1
        try:
            self.conn.pgconn.exec_(b"BEGIN")
            result = self.conn.pgconn.exec_(statement.encode())
            self.conn.pgconn.exec_(end)
        except MemoryError:  # what psycopg makes of a lost connection
            pass
        if self.conn.pgconn.status != psycopg.pq.ConnStatus.OK:
            self.note("the session ended", statement)
            raise Broken
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b""
        message = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        if state.startswith(b"XX") and not FOREIGN.search(message):
            self.note(f"{state.decode()} {message.decode(errors='replace')}", statement)
        if self.role in UNPRIVILEGED and self.shows_secret(result):
            self.note("it shows a message of another role's queue", statement)

    @staticmethod
    def shows_secret(result: psycopg.pq.abc.PGresult) -> bool:
        return any(
            SECRET.encode() in (result.get_value(row, column) or b"")
            for row in range(min(result.ntuples, 100))
            for column in range(result.nfields)
        )

    def round(self, deadline: float) -> None:
        """Every function once, in an order of its own."""
        order = self.functions[:]
        self.arguments.random.shuffle(order)
        for each in order:
            if time.monotonic() > deadline:
                return
            self.call(self.statement_of(*each))

    def close(self) -> None:
        self.conn.close()
        self.admin.close()


def call_functions(server: Server, seed: object, seconds: float) -> tuple[int, list[str]]:
    """Rounds over all roles until the time is over, at least one; calls made, rules broken."""
    before = guarded(server)
    made, broken = 0, []
    share = seconds / len(ROLES)
    for role in ROLES:
        deadline = time.monotonic() + share
        number = 0
        while not broken and (number == 0 or time.monotonic() < deadline):
            prepare(server)
            calls = Calls(server, role, f"{seed} {number}")
            with contextlib.suppress(Broken):
                calls.round(deadline if number else time.monotonic() + 600)
            calls.close()
            made, broken, number = made + calls.made, broken + calls.broken, number + 1
        if broken:
            return made, broken
        if role in UNPRIVILEGED:
            broken += [f"{role} has changed {was} into {now}" for was, now in zip(before, guarded(server)) if was != now]
    return made, broken + faults.differences(server) + out_of_order(server)


# --- queries -----------------------------------------------------------------------

# sqlsmith's own queries, by which it learns what there is, may take longer
CANCEL = """SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
    WHERE usename = %s AND state = 'active' AND query ~ 'ref_0|subq_0' AND clock_timestamp() > query_start + interval '300 ms'"""


def run_queries(server: Server, seed: int, number: int, user: str = "fuzzed_reader") -> list[str]:
    """sqlsmith's queries over the views, as a member of pg_monitor; what broke."""
    command = ["sqlsmith", f"--target={server.conninfo(user=user)}", f"--seed={seed}", f"--max-queries={number}", "--exclude-catalog"]
    since = len(server.log_text())
    with server.connect() as conn, tempfile.TemporaryFile("w+") as output:
        if not db.value(conn, "SELECT count(*) FROM pg_roles WHERE rolname = %s", [user]):
            conn.execute(f"CREATE ROLE {user} LOGIN; GRANT pg_monitor TO {user}")
        smith = subprocess.Popen(command, stdout=output, stderr=output)
        while smith.poll() is None:
            conn.execute(CANCEL, [user])
            time.sleep(0.1)
        output.seek(0)
        broken = [] if smith.returncode == 0 else [f"sqlsmith ended with status {smith.returncode}: {output.read()[-500:]}"]
    broken += [line for line in server.log_text()[since:].splitlines() if " ERROR:  XX" in line]
    return broken + faults.differences(server) + out_of_order(server)


# --- afterwards ----------------------------------------------------------------------


def out_of_order(server: Server) -> list[str]:
    """New queues of both stores keep what is put into them, and its order."""
    broken = []
    with server.connect() as conn:
        conn.execute(
            "SELECT aq.create_queue_table('public.after_table'); SELECT aq.create_queue('after_classic', queue_table => 'public.after_table')"
        )
        conn.execute("SELECT aq.create_queue('after_sharded')")
        for queue in ("after_classic", "after_sharded"):
            for n in range(20):
                conn.execute("SELECT aq.enqueue(%s, to_jsonb(%s::int))", [queue, n])
            got = [row[0] for row in conn.execute("SELECT payload FROM aq.dequeue(%s, max_messages => 100)", [queue])]
            if got != list(range(20)):
                broken.append(f"{queue} has given {got}")
        conn.execute("SELECT aq.drop_queue('after_sharded'); SELECT aq.drop_queue_table('public.after_table', force => true)")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", choices=("functions", "queries"))
    given = parser.parse_args()
    print("seed", given.seed, flush=True)
    end = time.monotonic() + given.minutes * 60
    made, rounds, broken = 0, 0, []
    with Server.temporary("fuzz", settings=SETTINGS) as server:
        with server.connect() as conn:
            conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
        install(server)
        while not rounds or time.monotonic() < end:
            if given.only != "queries":
                calls, found = call_functions(
                    server, given.seed + rounds, min(120, max(0, end - time.monotonic()) / (1 if given.only else 2))
                )
                made, broken = made + calls, broken + found
            if given.only != "functions":
                broken += run_queries(server, given.seed + rounds, 500)
            rounds += 1
            broken += server.problems()
            for each in dict.fromkeys(broken):
                print(each, flush=True)
            if broken:
                break
    print(f"{rounds} rounds, {made} calls, {len(broken)} broken rules")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
