"""pg_dump and restore with messages inside; DROP EXTENSION; several databases."""

from __future__ import annotations

import pytest

from conftest import PATIENCE, arrived, install, look, on_queue_tables, put, put_many, ready, take, until
from pgaq import db
from test_backup import FACTS, Facts, assert_facts
from test_wait import Waiter

DATABASE = "other"


@pytest.fixture
def other(server):
    """Name of an empty second database; afterwards the first is empty again, too."""
    with server.connect() as conn:
        conn.execute(f"CREATE DATABASE {DATABASE}")
    yield DATABASE
    with server.connect() as conn:
        conn.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        conn.execute("DROP EXTENSION pgaq CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        install(conn)
        if db.value(conn, "SELECT count(*) FROM pg_roles WHERE rolname = 'shop'"):
            conn.execute("DROP OWNED BY shop; DROP ROLE shop")


def dump(server, how, path, dbname="postgres"):
    done = server.run("pg_dump", f"--format={how}", f"--file={path}", dbname=dbname)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def restore(server, how, path, dbname):
    if how == "plain":
        done = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(path), dbname=dbname)
    else:
        done = server.run("pg_restore", "--exit-on-error", "-d", dbname, str(path), dbname=dbname)
    assert done.returncode == 0 and done.stderr == "", done.stderr


# the latest number of a partition
NUMBERS = "SELECT last_value FROM aq_internal.partition_number_seq"


@pytest.mark.parametrize("how", ["plain", "custom"])
def test_dump_and_restore(server, other, tmp_path, how):
    with server.connect() as conn:
        conn.execute("CREATE ROLE shop; GRANT EXECUTE ON FUNCTION aq.create_queue_table TO shop")
        conn.execute("CREATE TYPE parcel AS (id int, town text)")
        conn.execute("SELECT aq.create_queue('dead'), aq.create_queue('jobs', max_retries => 3, exception_queue => 'dead', comment => 'c')")
        conn.execute("SELECT aq.create_queue('news', multiple_consumers => true), aq.create_queue('parcels', 'parcel')")
        conn.execute("SELECT aq.create_queue('java', 'aq.jms_message')")
        conn.execute("SELECT aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob', 'priority < 5')")
        conn.execute("SELECT aq.create_queue('owned'), aq.grant_queue('owned', 'shop', 'enqueue')")
        conn.execute("SELECT aq.alter_queue('jobs', new_owner => 'shop')")
        put_many(conn, "jobs", 1, 100)
        assert take(conn, "jobs", number=30) == list(range(1, 31))
        put(conn, "jobs", "late", delay="1 s")
        put(conn, "jobs", "odd", priority=7, correlation="k", key="order", sender="me", properties='{"a": 1}')
        conn.execute("BEGIN")
        assert take(conn, "jobs", number=1) == [31]
        conn.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT max(attempts) = 1 FROM aq.browse('jobs')"), "attempt written")
        put(conn, "news", "n1", "n2", priority=9)
        put(conn, "news", "n3", recipients=["bob", "guest"])
        put(conn, "news", "n4")
        assert take(conn, "news", "ann", 1) == ["n4"]
        conn.execute("SELECT aq.enqueue('parcels', ROW(1, 'Oslo')::parcel)")
        conn.execute("SELECT aq.enqueue('java', ROW('text', '{}', '{\"color\": \"red\"}', NULL, 'body', NULL)::aq.jms_message)")
        conn.execute("BEGIN")
        large = db.value(conn, "SELECT aq.enqueue('java', ROW('bytes', '{\"content_length\": 8}', NULL, NULL, NULL, NULL)::aq.jms_message)")
        conn.execute("SELECT aq_jms.write_chunk('java', %s, 0, 'body'), aq_jms.write_chunk('java', %s, 1, 'more')", [large, large])
        conn.execute("COMMIT")
        ann = look(conn, "news", "ann")
        bob = look(conn, "news", "bob")
        conn.execute("SELECT aq.stop_queue('owned', enqueue => false)")
        conn.execute("SELECT aq.pause('news', 'ann', 'on leave'), aq.pause('parcels')")
        conn.execute("SELECT aq.alter_queue('parcels', max_depth => 1, on_full => 'error')")
        conn.execute("SELECT aq.create_queue('alarms', queue_type => 'non_persistent')")
        alarms = db.value(conn, "SELECT aq.register('alarms', 'client://')")
        put(conn, "alarms", "a1")
        used = db.value(conn, NUMBERS)
    dump(server, how, tmp_path / "dump")
    restore(server, how, tmp_path / "dump", other)
    for name in ("postgres", other):
        with server.connect(name) as conn:
            assert db.value(conn, NUMBERS) >= used > (not on_queue_tables), "the numbers of partitions begin again"
            until(lambda: len(look(conn, "jobs")) == 72, "the delayed one is ready")
            found = []
            while more := db.rows(
                conn, "SELECT * FROM aq.dequeue_full('jobs', NULL::jsonb, max_messages => 100)"
            ):  # smaller batches after an attempt
                found += more
            by_payload = {row["payload"]: row for row in found}
            assert [row["payload"] for row in found if row["payload"] not in ("late", "odd")] == list(range(31, 101)), name
            assert "late" in by_payload and [row["attempts"] for row in found if row["attempts"]] == [1] and by_payload[31]["attempts"] == 1
            odd = by_payload["odd"]
            assert (odd["priority"], odd["correlation"], odd["key"], odd["sender"], odd["properties"]) == (7, "k", "order", "me", {"a": 1})
            assert take(conn, "news", "ann") == []
            assert db.value(conn, "SELECT pause_reason FROM aq.subscribers WHERE paused IS NOT NULL") == "on leave"
            assert db.row(conn, "SELECT (payload).town FROM aq.dequeue('parcels', NULL::parcel)") is None
            with pytest.raises(db.Error) as caught:
                conn.execute("SELECT aq.enqueue('parcels', ROW(2, 'Rome')::parcel)")
            assert caught.value.sqlstate == "AQ053"  # the limit counts what was there
            conn.execute("SELECT aq.resume('news', 'ann'), aq.resume('parcels')")
            assert take(conn, "news", "ann") == ann
            assert take(conn, "news", "bob") == bob
            assert take(conn, "news", "guest") == ["n3"]
            assert db.value(conn, "SELECT (payload).town FROM aq.dequeue('parcels', NULL::parcel)") == "Oslo"
            java = "SELECT (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, condition => 'payload.properties ->> ''color'' = ''red''')"
            assert db.value(conn, java) == "body"
            body = "SELECT string_agg(convert_from(aq_jms.read_chunk('java', NULL, %s, n), 'UTF8'), '-' ORDER BY n) FROM generate_series(0, 2) n"
            assert db.value(conn, body, [large]) == "body-more"
            assert db.value(conn, "SELECT msgid FROM aq.dequeue('java', NULL::aq.jms_message)") == large
            assert db.value(conn, "SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[%s]::bigint[])", [alarms]) == '"a1"'
            put(conn, "alarms", "a2")
            assert db.value(conn, "SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[%s]::bigint[])", [alarms]) == '"a2"'
            # definitions and rights
            assert db.value(conn, "SELECT comment FROM aq_internal.queue WHERE queue_name = 'jobs'") == "c"
            assert db.value(conn, "SELECT rule FROM aq_internal.subscriber WHERE consumer = 'bob'") == "priority < 5"
            conn.execute("SET ROLE shop")
            put(conn, "owned", 1)
            with pytest.raises(db.Error):
                take(conn, "owned")
            conn.execute("SELECT aq.alter_queue('jobs', comment => 'mine')")
            conn.execute("RESET ROLE")
            with pytest.raises(db.Error) as caught:
                take(conn, "owned")
            assert caught.value.sqlstate == "55000"  # stopped for dequeue, there as here
            # new messages go on with new numbers
            put(conn, "jobs", "new")
            assert take(conn, "jobs") == ["new"]
            put(conn, "news", "all", priority=0)
            assert take(conn, "news", "ann") == ["all"] and take(conn, "news", "bob") == ["all"]


@pytest.mark.own_tables
def test_roles_in_the_catalog(server, other, tmp_path):
    """Writers of rules and owners of queue tables are dumped by their current names.  A role that was dropped, or is
    missing in a restore, does not become another role."""
    roles = ["-", "10", 'A "b"', "again", "gone", "missing", "renamed", "stays"]
    rules = "SELECT consumer, rule_role FROM aq.subscribers WHERE queue_name = 'news'"
    tables = "SELECT split_part(queue_table, '.', 2), owner FROM aq.queue_tables"
    binary = "COPY aq_internal.{} {} (FORMAT binary)"
    server.expect_log("rules and transformations of subscribers still run")
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('news', multiple_consumers => true); GRANT CREATE ON SCHEMA public TO PUBLIC")
        for role in roles:
            name = db.sql.Identifier(role)
            conn.execute(
                db.sql.SQL(
                    "CREATE ROLE {0} IN ROLE aq_manage_any; GRANT EXECUTE ON FUNCTION aq.create_queue_table TO {0}; SET ROLE {0}"
                ).format(name)
            )
            conn.execute(
                "SELECT aq.subscribe('news', %s, %s), aq.create_queue_table(%s)", [role, f"current_user = '{role}'", "public." + role]
            )
            conn.execute(db.sql.SQL("RESET ROLE; REASSIGN OWNED BY {0} TO CURRENT_USER; DROP OWNED BY {0}").format(name))
        conn.execute("DROP ROLE again, gone; ALTER ROLE renamed RENAME TO new_name; SELECT aq.alter_queue('news', comment => 'read again')")
        names = {**{role: role for role in roles}, "again": None, "gone": None, "renamed": "new_name"}
        assert dict(conn.execute(rules)) == dict(conn.execute(tables)) == names
        # others of these names have written no rules
        conn.execute("CREATE ROLE again SUPERUSER; CREATE ROLE renamed SUPERUSER; CREATE ROLE gone")
        put(conn, "news", "here")
        known = [role for role in roles if names[role] == role]
        assert [role for role in roles if look(conn, "news", role)] == known
        assert dict(conn.execute(rules)) == dict(conn.execute(tables)) == names
        conn.execute("DROP ROLE gone")
    dump(server, "plain", tmp_path / "dump")
    with server.connect() as conn:
        conn.execute("DROP ROLE missing")
    restore(server, "plain", tmp_path / "dump", other)
    names["missing"] = None
    with server.connect() as conn, server.connect(other) as there:
        assert dict(there.execute(rules)) == dict(there.execute(tables)) == names
        put(there, "news", "there")
        assert [role for role in roles if len(look(there, "news", role)) == 2] == [role for role in known if role != "missing"]
        # a binary copy has the names, too
        for table in ("subscriber", "queue_table"):
            there.execute(f"DELETE FROM aq_internal.{table}")
            with (
                conn.cursor().copy(binary.format(table, "TO STDOUT")) as source,
                there.cursor().copy(binary.format(table, "FROM STDIN")) as target,
            ):
                for data in source:
                    target.write(data)
        assert dict(there.execute(rules)) == dict(there.execute(tables)) == names
    with server.connect() as conn:
        conn.execute('DROP ROLE "-", "10", "A ""b""", again, new_name, renamed, stays; SELECT aq.drop_queue(\'news\', true)')


def test_restored_queue_survives_a_crash(server, other, tmp_path):
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('kept')")
        put_many(conn, "kept", 1, 500)
        take(conn, "kept", number=100)
    dump(server, "custom", tmp_path / "dump")
    restore(server, "custom", tmp_path / "dump", other)
    with server.connect(other) as conn:
        assert take(conn, "kept", number=50) == list(range(101, 151))
        put(conn, "kept", "new")
    server.expect_log(r"terminat|crash")
    server.kill()
    server.start()
    with server.connect(other) as conn:
        assert sorted(map(str, arrived(conn, "kept", 351))) == sorted(map(str, [*range(151, 501), "new"]))
    with server.connect() as conn:
        assert take(conn, "kept") == list(range(101, 501))
        db.execute(conn, "SELECT aq.drop_queue('kept')")


def test_dump_during_load_is_consistent(server, other, tmp_path):
    with server.connect() as conn:
        conn.execute("CREATE TABLE produced (n int); CREATE TABLE consumed (n int)")
        db.execute(conn, "SELECT aq.create_queue('facts')")
        conn.execute(FACTS)
    with Facts(server) as facts:
        until(lambda: facts.rounds() > 100, "facts")
        dump(server, "custom", tmp_path / "dump")
        now = facts.rounds()
        until(lambda: facts.rounds() > now + 20, "more facts")
    restore(server, "custom", tmp_path / "dump", other)
    with server.connect(other) as conn:
        assert_facts(conn)
    with server.connect() as conn:
        assert_facts(conn)
        db.execute(conn, "SELECT aq.drop_queue('facts')")
        conn.execute("DROP PROCEDURE facts_round; DROP TABLE produced, consumed")


def test_dump_by_the_owner_of_the_database(server, other, tmp_path):
    """With the extension alone; the messages of all roles' queues need the right to read all data."""
    with server.connect() as conn:
        conn.execute(f"CREATE ROLE owning LOGIN; ALTER DATABASE {other} OWNER TO owning")
        conn.execute("CREATE DATABASE target")
    try:
        with server.connect(other) as conn:
            install(conn)
        as_owner = ("--role=owning", f"--file={tmp_path / 'dump'}")
        done = server.run("pg_dump", *as_owner, dbname=other)
        assert done.returncode == 0, done.stderr
        with server.connect(other) as conn:
            conn.execute(
                "SELECT aq.create_queue('q'), aq.create_queue('events', multiple_consumers => true), aq.subscribe('events', 'x', 'priority = 1')"
            )
            conn.execute("SELECT aq.create_queue_table('public.tab'), aq.create_queue('tabled', queue_table => 'public.tab')")
            put(conn, "q", "secret")
            put(conn, "tabled", "secret, too")
        done = server.run("pg_dump", *as_owner, dbname=other)
        assert done.returncode != 0 and "permission denied for" in done.stderr and "aq_data" in done.stderr, done.stderr
        done = server.run("pg_dump", "--exclude-schema=aq_data", *as_owner, dbname=other)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        with server.connect() as conn:
            conn.execute("GRANT pg_read_all_data TO owning")
        done = server.run("pg_dump", *as_owner, dbname=other)
        assert done.returncode == 0, done.stderr
        restore(server, "plain", tmp_path / "dump", "target")
        with server.connect("target") as conn:
            assert take(conn, "q") == ["secret"] and take(conn, "tabled") == ["secret, too"]
            assert db.value(conn, "SELECT rule FROM aq.subscribers WHERE consumer = 'x'") == "priority = 1"
    finally:
        with server.connect() as conn:
            conn.execute(f"ALTER DATABASE {other} OWNER TO CURRENT_USER")
            conn.execute("DROP DATABASE target WITH (FORCE)")
            conn.execute("DROP ROLE owning")


@pytest.mark.own_tables
def test_schema_public_is_not_needed(server, other, tmp_path):
    """The extension can be made without it, dropping it does no harm, and neither does its lack in a restore."""
    with server.connect() as conn:
        conn.execute("CREATE DATABASE target")
    try:
        with server.connect(other) as conn:
            install(conn)
            conn.execute("SELECT aq.create_queue('early')")
            put(conn, "early", 1)
            conn.execute("DROP SCHEMA public CASCADE")
            assert take(conn, "early") == [1]
            conn.execute("DROP EXTENSION pgaq CASCADE")
            install(conn)
            # what the extension does not name a schema for would be in no schema now
            assert (
                db.value(conn, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND probin LIKE '%pgaq%'") == 0
            )
            conn.execute(
                "CREATE SCHEMA shop; SELECT aq.create_queue('q'), aq.create_queue_table('shop.tab'), aq.create_queue('tabled', queue_table => 'shop.tab')"
            )
            put(conn, "q", 2)
            put(conn, "tabled", 3)
            for create in ("SELECT aq.create_queue_table('unqualified')", "CALL dbms_aqadm.create_queue_table('unqualified', 'JSON')"):
                with pytest.raises(db.Error) as caught:
                    conn.execute(create)
                assert caught.value.sqlstate == "3F000", caught.value
        with server.connect("target") as conn:
            conn.execute("DROP SCHEMA public")
        dump(server, "plain", tmp_path / "dump", other)
        assert "public" not in (tmp_path / "dump").read_text()
        restore(server, "plain", tmp_path / "dump", "target")
        with server.connect("target") as conn:
            assert take(conn, "q") == [2] and take(conn, "tabled") == [3]
            conn.execute("CREATE EXTENSION pgaq_lab")
    finally:
        with server.connect() as conn:
            conn.execute("DROP DATABASE target WITH (FORCE)")


def test_schema_only_dump(server, other, tmp_path):
    """It is not a backup of a queue, as documented; but it can be restored, and the extension can be created again on
    it."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('empty')")
        put(conn, "empty", 1)
        number = db.value(conn, "SELECT queue_id FROM aq_internal.queue WHERE queue_name = 'empty'")
    done = server.run("pg_dump", "--schema-only", f"--file={tmp_path / 'dump'}")
    assert done.returncode == 0, done.stderr
    restore(server, "plain", tmp_path / "dump", other)
    with server.connect(other) as conn:
        assert db.value(conn, "SELECT count(*) FROM aq.queues") == 0
        # numbers whose tables are there without their queue are passed over
        conn.execute("SELECT setval('aq_internal.queue_id_seq', %s, false)", [number])
        conn.execute(f"CREATE TABLE aq_data.q{number + 1}_1 (); CREATE TABLE aq_data.l{number + 1}_2 ()")
        db.execute(conn, "SELECT aq.create_queue('new')")
        put(conn, "new", 1)
        assert take(conn, "new") == [1]
        conn.execute("DROP EXTENSION pgaq CASCADE")
        install(conn)
        db.execute(conn, "SELECT aq.create_queue('empty')")
        put(conn, "empty", 2)
        assert take(conn, "empty") == [2]


WAITS = (
    "CALL aq.wait('q')",
    "SELECT aq.dequeue('q', wait => '-1 s')",
    "CALL aq.receive('topic', 'x')",
    "CALL aq.listen(ARRAY['q', 'topic'], ARRAY[NULL, 'x'], NULL, NULL, NULL)",
)


def test_drop_extension_ends_waits(server, other):
    """A session that waits without a time limit gets an error; it would never be woken again."""
    with server.connect(other) as conn:
        install(conn)
        conn.execute("SELECT aq.create_queue('q'), aq.create_queue('topic', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('topic', 'x')")
        waiters = [Waiter(server, "q", statement=statement, dbname=other).wait() for statement in WAITS]
        pids = [waiter.pid for waiter in waiters]
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.sessions WHERE pid = ANY (%s) AND waiting", [pids]) == len(WAITS))
        conn.execute("DROP EXTENSION pgaq CASCADE")
        assert {waiter.answer() for waiter in waiters} == {"42704"}
        for waiter in waiters:
            waiter.connection.close()


LOCKED_WAITS = (
    "BEGIN; SELECT aq.enqueue('q', '1'); SELECT aq.enqueue('full', '2')",
    "BEGIN; SELECT aq.enqueue('q', '1', delivery_mode => 'buffered'); SELECT aq.enqueue('full', '2', delivery_mode => 'buffered')",
    "SELECT aq.enqueue_array('full', ARRAY['2'], visibility => 'immediate')",
    "BEGIN; SELECT aq.enqueue('q', '1'); SELECT aq.dequeue('empty', wait => '-1 s')",
)


@pytest.mark.sharded
def test_drop_extension_ends_waits_that_have_locks(server, other):
    """Of sessions that wait for room, and for messages, in transactions that have locks of tables of pgaq."""
    with server.connect(other) as conn:
        install(conn)
        conn.execute("SELECT aq.create_queue('q'), aq.create_queue('empty'), aq.create_queue('full', max_depth => 1)")
        conn.execute(f"ALTER DATABASE {other} SET pgaq.flow_control_timeout = '1 d'")
        conn.execute(f"ALTER DATABASE {other} SET pgaq.buffered_message_limit = 1")
        put(conn, "full", 1)
        put(conn, "full", 1, delivery_mode="buffered")
        waiters = [Waiter(server, "q", statement=statement, dbname=other).wait() for statement in LOCKED_WAITS]
        pids = [waiter.pid for waiter in waiters]
        query = "SELECT count(*) FROM aq.sessions WHERE pid = ANY (%s) AND waiting AND event ~ 'queue full|flow control|message'"
        until(lambda: db.value(conn, query, [pids]) == len(waiters))
        conn.execute(f"SET lock_timeout = '{PATIENCE}s'")
        conn.execute("DROP EXTENSION pgaq CASCADE")
        assert {waiter.answer() for waiter in waiters} == {"42704"}
        for waiter in waiters:
            waiter.connection.close()


def test_two_databases(server, other):
    """The same names, nothing in common."""
    with server.connect() as here, server.connect(other) as there:
        install(there)
        for conn in (here, there):
            db.execute(conn, "SELECT aq.create_queue('same', multiple_consumers => true)")
            db.execute(conn, "SELECT aq.subscribe('same', 'x')")
        put(here, "same", "here")
        put(there, "same", "there", "there too")
        assert not [m for m in take(there, "same", "x", 1) if m != "there"]
        assert take(here, "same", "x") == ["here"]
        assert take(there, "same", "x") == ["there too"]
        # attempts, delays and expiry work in both: each has its worker
        for conn in (here, there):
            put(conn, "same", "again")
            conn.execute("BEGIN")
            assert take(conn, "same", "x") == ["again"]
            conn.execute("ROLLBACK")
            assert arrived(conn, "same", 1, "x") == ["again"]
            put(conn, "same", "delayed", delay="0.1 s")
        for conn in (here, there):
            assert arrived(conn, "same", 1, "x") == ["delayed"]
            db.execute(conn, "SELECT aq.drop_queue('same')")


def test_drop_database_with_a_worker_in_it(server, other):
    with server.connect(other) as conn:
        install(conn)
        db.execute(conn, "SELECT aq.create_queue('q')")
        put_many(conn, "q", 1, 100)
        conn.execute("BEGIN")
        take(conn, "q", number=1)
        conn.execute("ROLLBACK")
        assert arrived(conn, "q", 100)
        workers = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type LIKE 'pgaq%%'"
        until(lambda: db.value(conn, workers, [other]) > 0, "a worker in the database")
    with server.connect() as conn:
        until(
            lambda: db.value(
                conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'", [other]
            ),
            "our session's end",
        )
        conn.execute(f"DROP DATABASE {other}")
        # and a new one of the same name knows nothing of it
        conn.execute(f"CREATE DATABASE {other}")
    with server.connect(other) as conn:
        install(conn)
        assert db.value(conn, "SELECT count(*) FROM aq.queues") == 0


def test_database_as_template_and_renamed(server, other):
    with server.connect(other) as conn:
        install(conn)
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1, 2)
    with server.connect() as conn:
        until(
            lambda: db.value(
                conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'", [other]
            ),
            "our session's end",
        )
        conn.execute(f"CREATE DATABASE copied TEMPLATE {other}")
        try:
            with server.connect("copied") as there:
                assert take(there, "q") == [1, 2]
            with server.connect(other) as there:
                assert take(there, "q") == [1, 2]
        finally:
            conn.execute("DROP DATABASE copied WITH (FORCE)")


def test_drop_extension(server, other):
    with server.connect(other) as conn:
        for number in range(3):
            install(conn)
            db.execute(conn, "SELECT aq.create_queue('q'), aq.create_queue('t', multiple_consumers => true)")
            db.execute(conn, "SELECT aq.subscribe('t', 'x')")
            put(conn, "q", number)
            put(conn, "t", number)
            conn.execute("CREATE VIEW mine AS SELECT * FROM aq.queues")
            with pytest.raises(db.Error) as caught:
                conn.execute("DROP EXTENSION pgaq, pgaq_oracle")
            assert caught.value.sqlstate == "2BP01"
            assert take(conn, "q") == [number]
            # in a transaction that is rolled back: all is as it was
            put(conn, "q", "kept")
            conn.execute("BEGIN; DROP EXTENSION pgaq CASCADE; ROLLBACK")
            assert take(conn, "q") == ["kept"]
            conn.execute("DROP EXTENSION pgaq CASCADE")
            left = "SELECT count(*) FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('aq', 'aq_jms', 'aq_internal', 'aq_data'))"
            assert db.value(conn, left) == 0
            assert (
                db.value(conn, "SELECT count(*) FROM pg_namespace WHERE nspname IN ('aq', 'aq_jms', 'aq_internal', 'aq_data', 'sys')") == 0
            )


def test_drop_extension_without_cascade_when_empty(server, other):
    with server.connect(other) as conn:
        install(conn)
        conn.execute("DROP EXTENSION pgaq_oracle, pgaq")
        install(conn)
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        assert ready(conn, "q") and take(conn, "q") == [1]


def test_drop_extension_wakes_or_fails_a_waiter(server, other):
    """A session that waits for a queue that is dropped gets an error."""
    import threading

    with server.connect(other) as conn, server.connect(other) as waiter:
        install(conn)
        db.execute(conn, "SELECT aq.create_queue('q')")
        outcome = []

        def wait():
            try:
                outcome.append(ready(waiter, "q", timeout="60 s"))
            except db.Error as error:
                outcome.append(error.sqlstate)

        thread = threading.Thread(target=wait)
        thread.start()
        until(
            lambda: db.value(conn, "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = %s", [waiter.info.backend_pid]),
            "waiting",
        )
        db.execute(conn, "SELECT aq.drop_queue('q', true)")
        thread.join(30)
        assert outcome == ["42704"]


@pytest.mark.sharded
def test_dump_of_a_queue_that_is_being_converted(server, other, tmp_path):
    """Old and new messages come over, and the conversion ends there."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue_table('public.tab')")
        conn.execute("SELECT aq.create_queue('old', queue_table => 'public.tab')")
        put_many(conn, "old", 1, 3)
        conn.execute("BEGIN")
        take(conn, "old", number=1)
        conn.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT max(attempts) = 1 FROM aq.browse('old')"), "attempt written")
        conn.execute("SELECT aq.convert_queue('old')")
        put_many(conn, "old", 4, 6)
        ids = conn.execute("SELECT msgid, payload, attempts FROM aq.browse('old')").fetchall()
    dump(server, "plain", tmp_path / "dump")
    restore(server, "plain", tmp_path / "dump", other)
    with server.connect(other) as conn:
        assert conn.execute("SELECT msgid, payload, attempts FROM aq.dequeue('old', max_messages => 10)").fetchall() == ids
        assert [row[1:] for row in ids] == [(1, 1), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)]
        until(lambda: db.value(conn, "SELECT queue_table IS NULL FROM aq.queues WHERE queue_name = 'old'"), "the end of the conversion")
