"""To another cluster by pg_upgrade, or by dump and restore: what the old one's queues were, the new one's are.

From a version to itself, which pg_upgrade allows, so that it always runs; and to
the version of the pg_config in PGAQ_UPGRADE_TO, where pgaq must be installed, too.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import arrived, end_server, look, put, put_many, take, until
from pgaq import db, places
from pgaq.server import Server

pytestmark = pytest.mark.own_tables

STORES = ["sharded", "table"]
TO = "PGAQ_UPGRADE_TO"
# more than a partition, so that tables have been reused
MANY = 17_000
BUFFERED = {"delivery_mode": "buffered"}

# all that a message is, but for what time may do to some while the server is down, where it is kept, and what is done with,
# which is there until its partition is used again
MESSAGES = """SELECT to_jsonb(m) - 'in_memory' FROM aq.messages m
    WHERE payload NOT IN ('"soon"', '"dying"') AND (state NOT IN ('PROCESSED', 'EXPIRED') OR queue_name ~ 'kept') ORDER BY queue_name, msgid, consumer"""
DEFINITIONS = {
    "queues": "SELECT to_jsonb(q) FROM aq.queues q ORDER BY queue_name",
    "subscribers": "SELECT to_jsonb(s) FROM aq_internal.subscriber s ORDER BY queue_id, position",
    "queue tables": "SELECT to_jsonb(t) FROM aq_internal.queue_table t ORDER BY queue_table_id",
    "properties": "SELECT to_jsonb(p) FROM aq_internal.property p ORDER BY name",
    "rights": """SELECT jsonb_build_array(relname, relowner::regrole, grantee::regrole, privilege_type, is_grantable)
        FROM pg_class, aclexplode(relacl) WHERE relname ~ '^q[0-9]+$' AND relkind = 'v' AND grantee <> relowner ORDER BY relname, privilege_type""",
    "owners": "SELECT jsonb_build_array(relname, relowner::regrole) FROM pg_class WHERE relname ~ '^q[0-9]+$' AND relkind = 'v' ORDER BY relname",
    # before PostgreSQL 16 the table's name stands before each column
    "users' objects": r"""SELECT regexp_replace(text, '\w+\.(queue_name|comment)', '\1', 'g') FROM (
        SELECT pg_get_viewdef(oid) FROM pg_class WHERE relname ~ '^my_' UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname ~ '^my_'
        UNION ALL SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename ~ '^my_' UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname ~ '^my_') AS d (text)
        ORDER BY 1""",
    "schedules": "SELECT to_jsonb(s) FROM aq.schedules s ORDER BY schedule_name",
    "buffered": "SELECT jsonb_build_array(queue_name, created, losses, lost_at) FROM aq.buffered_queues ORDER BY queue_name",
}


@dataclass
class Before:
    """State of the old server: its contents, the id of its database, its dumps by target."""

    seen: dict[str, Any] = field(default_factory=dict)
    dbid: int = 0
    dumps: dict[str, Path] = field(default_factory=dict)


@dataclass
class Seen:
    """The new server, what there was before, and what there was right after."""

    new: Server
    before: dict[str, Any]
    after: dict[str, Any]
    old_dbid: int


def observe(conn):
    found = {name: [row[0] for row in conn.execute(query)] for name, query in DEFINITIONS.items()}
    return {**found, "messages": [row[0] for row in conn.execute(MESSAGES)]}


class Fill:
    """Queues of one store, with messages in every state."""

    def __init__(self, conn, store):
        self.conn, self.store = conn, store

    def make(self, name, topic=False, **options):
        name = f"{self.store}_{name}"
        if self.store == "table":
            self.conn.execute(
                "SELECT aq.create_queue_table(%s, multiple_consumers => %s, sort_list => 'priority,enq_time')",
                [f"public.{name}_tab", topic],
            )
            options = {**options, "queue_table": f"public.{name}_tab"}
        else:
            # one shard, so that new messages of whatever session stand behind the old ones
            options = {**options, "multiple_consumers": topic, "shards": 1}
        more = "".join(f", {option} => %s" for option in options)
        self.conn.execute(f"SELECT aq.create_queue('{name}'{more})", list(options.values()))
        return name

    def give_back(self, queue, consumer=None, number=1, **how):
        with self.conn.transaction(force_rollback=True):
            query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => %s, delivery_mode => %s)"
            return [row[0] for row in self.conn.execute(query, [queue, consumer, number, how.get("delivery_mode", "persistent")])]

    @property
    def dead(self):
        """Options of a queue that shall have an exception queue; a queue table brings its own."""
        return {"exception_queue": "sharded_failed"} if self.store == "sharded" else {}

    def all(self):
        if self.store == "sharded":
            self.conn.execute("SELECT aq.create_queue('sharded_failed')")
        self.jobs()
        self.others()
        self.topic()

    def jobs(self):
        conn = self.conn
        jobs = self.make("jobs", max_retries=2, comment="work", **self.dead)
        number = MANY if self.store == "sharded" else 200
        put_many(conn, jobs, 1, number)
        assert take(conn, jobs, number=number - 100) == list(range(1, number - 99))
        assert self.give_back(jobs, number=2) == [number - 99, number - 98]
        until(
            lambda: db.value(conn, "SELECT count(*) = 2 FROM aq.browse(%s, max_messages => 1000) WHERE attempts = 1", [jobs]),
            "attempts written",
        )
        put(conn, jobs, "odd", priority=9, correlation="k", sender="me", properties='{"a": [1]}')
        put(conn, jobs, "urgent", priority=0)
        put(conn, jobs, "later", delay="1 day")
        put(conn, jobs, *("b1", "b2", "b3"), **BUFFERED)
        put(conn, jobs, "b later", delay="1 day", **BUFFERED)
        assert self.give_back(jobs, **BUFFERED) == ["b1"]
        until(
            lambda: db.value(
                conn, "SELECT sum(attempts) = 1 FROM aq.messages WHERE queue_name = %s AND delivery_mode = 'buffered'", [jobs]
            ),
            "attempt written",
        )

    def others(self):
        conn = self.conn
        self.make("passing", **self.dead)
        bad = self.make("bad", max_retries=0, **self.dead)
        put(conn, bad, "bad")
        assert self.give_back(bad) == ["bad"]
        moved = "SELECT count(*) = 1 FROM aq.queues q JOIN aq.messages m ON m.queue_name = q.exception_queue WHERE q.queue_name = %s"
        until(lambda: db.value(conn, moved, [bad]), "the message in the exception queue")
        resting = self.make("resting", max_retries=5, retry_delay="1 day")
        put(conn, resting, "tired", "fresh")
        assert self.give_back(resting) == ["tired"]
        until(lambda: look(conn, resting) == ["fresh"], "rest")
        kept = self.make("kept", retention="1 day")
        put(conn, kept, 1, 2, 3)
        assert take(conn, kept, number=2) == [1, 2]
        stopped = self.make("stopped")
        put(conn, stopped, 1)
        conn.execute("SELECT aq.grant_queue(%s, 'shop', 'enqueue'), aq.stop_queue(%s, enqueue => false)", [stopped, stopped])
        leased = self.make("leased")
        put(conn, leased, "held", "free")
        conn.execute("INSERT INTO held SELECT %s, msgid, receipt FROM aq.dequeue(%s, lease => '1 day')", [leased, leased])

    def topic(self):
        conn = self.conn
        news = self.make("news", topic=True)
        conn.execute(
            "SELECT aq.subscribe(%s, 'ann'), aq.subscribe(%s, 'bob', 'priority < 5'), aq.subscribe(%s, 'cy'), aq.subscribe(%s, 'dan', delivery_mode => 'buffered')",
            [news] * 4,
        )
        put_many(conn, news, 1, 10)
        put(conn, news, "nine", priority=9)
        put(conn, news, "private", recipients=["guest", "bob"])
        assert take(conn, news, "ann", 7) == [1, 2, 3, 4, 5, 6, 7]
        assert take(conn, news, "bob", 3) == [1, 2, 3]
        assert self.give_back(news, "bob") == [4]
        until(lambda: db.value(conn, "SELECT attempts = 1 FROM aq.browse(%s, 'bob')", [news]), "attempt written")
        conn.execute("SELECT aq.unsubscribe(%s, 'cy')", [news])
        put(conn, news, *("b1", "b2", "b3"), **BUFFERED)
        assert [row[0] for row in conn.execute("SELECT payload FROM aq.dequeue(%s, 'dan', delivery_mode => 'buffered')", [news])] == ["b1"]

    def passing(self):
        """Messages that become due while the server is down, or shortly after."""
        put(self.conn, f"{self.store}_passing", "soon", delay="3 s")
        put(self.conn, f"{self.store}_passing", "dying", expiration="3 s")


def being_converted(conn):
    """A queue with both stores: old messages in its queue table, new ones not."""
    conn.execute("SELECT aq.create_queue_table('public.old_tab'), aq.create_queue('old', queue_table => 'public.old_tab')")
    put_many(conn, "old", 1, 3)
    conn.execute("SELECT aq.convert_queue('old')")
    put_many(conn, "old", 4, 6)


def users_objects(conn):
    """Definitions that lock or change views of pgaq, which statements may not do.  They are restored before the trigger."""
    conn.execute("""CREATE VIEW my_view AS SELECT queue_name, comment FROM aq.queues;
        CREATE FUNCTION my_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER my_trigger INSTEAD OF UPDATE ON my_view FOR EACH ROW EXECUTE FUNCTION my_trigger();
        CREATE VIEW my_locks AS SELECT queue_name FROM aq.messages FOR UPDATE;
        CREATE MATERIALIZED VIEW my_saved_locks AS SELECT queue_name FROM aq.messages FOR UPDATE WITH NO DATA;
        CREATE FUNCTION my_function() RETURNS void LANGUAGE sql BEGIN ATOMIC UPDATE my_view SET comment = NULL; SELECT FROM aq.messages FOR UPDATE; END;
        CREATE RULE my_rule AS ON DELETE TO my_view DO INSTEAD UPDATE my_view SET comment = NULL WHERE queue_name = old.queue_name""")


def snapshot(conn):
    return db.value(conn, "SELECT dbms_workload_repository.create_snapshot()")


def other_version(option):
    """The output of pg_config for the target installation."""
    return subprocess.run([os.environ[TO], f"--{option}"], capture_output=True, text=True, check=True).stdout.strip()


def targets():
    """Directories of programs to go to, by name."""
    return {"same": places.pg_config("bindir"), **({"other": other_version("bindir")} if TO in os.environ else {})}


def make(name, bindir=None):
    # 18's initdb wants checksums, unlike those before
    return Server.temporary(name, start=False, initdb=("--data-checksums",), bindir=bindir)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """The old server, filled, dumped for each target, and stopped."""
    with make("upgrade-old") as server:
        server.start()
        server.before = Before()
        with server.connect() as conn:
            conn.execute("CREATE EXTENSION pgaq_oracle CASCADE; CREATE ROLE shop; SELECT aq.set_property('NLS_SORT', 'GERMAN')")
            conn.execute("CREATE TABLE held (queue text, msgid uuid, receipt bigint)")
            for store in STORES:
                Fill(conn, store).all()
            conn.execute("SELECT aq.schedule('yearly', 'sharded_kept', '1', cron => '0 0 1 1 *')")
            being_converted(conn)
            users_objects(conn)
            conn.execute('CALL dbms_workload_repository.modify_snapshot_settings("interval" => 0, retention => 43200)')
            server.before.dbid = db.value(conn, "SELECT dbid FROM sys.dba_hist_wr_control")
            snapshot(conn), snapshot(conn)
            server.before.seen = observe(conn)
            for store in STORES:
                Fill(conn, store).passing()
        for name, bindir in targets().items():
            server.before.dumps[name] = tmp_path_factory.mktemp(name) / "dump"
            done = server.run("pg_dump", "-f", str(server.before.dumps[name]), bindir=bindir)
            assert done.returncode == 0 and done.stderr == "", done.stderr
        server.stop()
        yield server
        assert server.problems() == []


@pytest.fixture(scope="module", params=[f"{how}-{target}" for target in targets() for how in ("pg_upgrade", "dump")])
def seen(request, old):
    how, target = request.param.split("-")
    with make("upgrade-new", targets()[target]) as new:
        if how == "pg_upgrade":
            new.upgrade(old)
            new.start()
        else:
            new.start()
            with new.connect() as conn:
                conn.execute("CREATE ROLE shop")
            done = new.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(old.before.dumps[target]))
            assert done.returncode == 0 and done.stderr == "", done.stderr
        with new.connect() as conn:
            after = observe(conn)
        yield Seen(new, old.before.seen, after, old.before.dbid)
        end_server(new)


@pytest.fixture
def conn(seen):
    with seen.new.connect() as connection:
        yield connection


@pytest.fixture(params=STORES)
def store(request):
    return request.param


@pytest.mark.skipif(TO not in os.environ, reason=f"{TO} names no pg_config of another version")
def test_another_version():
    """The tests with "other" in their names say something of their own."""
    assert other_version("version") != places.pg_config("version")


@pytest.mark.parametrize("what", [*DEFINITIONS, "messages"])
def test_all_is_as_it_was(seen, what):
    assert seen.before[what] and seen.after[what] == seen.before[what]


def last_number(store):
    return MANY if store == "sharded" else 200


def take_buffered(conn, queue, consumer=None):
    query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => 100, delivery_mode => 'buffered')"
    return [row[0] for row in conn.execute(query, [queue, consumer])]


def test_once_and_in_order(conn, store):
    """New messages come after the old ones; consumed messages do not reappear, even after a crash."""
    jobs, last = f"{store}_jobs", last_number(store)
    put(conn, jobs, "new")
    assert take(conn, jobs) == ["urgent", *range(last - 99, last + 1), "new", "odd"]
    assert take(conn, jobs) == []


def test_consumers_are_at_their_places(conn, store):
    news = f"{store}_news"
    put(conn, news, "new")
    assert take(conn, news, "ann") == [8, 9, 10, "new", "nine"]
    assert take(conn, news, "bob") == [4, 5, 6, 7, 8, 9, 10, "private", "new"]
    assert take(conn, news, "guest") == ["private"]
    for consumer in ("ann", "bob", "guest"):
        assert take(conn, news, consumer) == []
    # a removed one is not known any more, and its name begins anew
    conn.execute("SELECT aq.subscribe(%s, 'cy')", [news])
    assert take(conn, news, "cy") == []


def test_buffered(conn, store):
    """pg_upgrade takes unlogged tables along, and they are not mistaken for emptied ones."""
    jobs, news = f"{store}_jobs", f"{store}_news"
    put(conn, jobs, "b new", **BUFFERED)
    assert take_buffered(conn, jobs) == ["b1", "b2", "b3", "b new"]
    assert take_buffered(conn, news, "dan") == ["b2", "b3"]
    assert take_buffered(conn, news, "dan") == []
    assert db.value(conn, "SELECT sum(losses) FROM aq.buffered_queues") == 0


def test_time_goes_on(conn, store):
    """Delayed, it is ready; expired, it is in the exception queue."""
    passing = f"{store}_passing"
    assert arrived(conn, passing, 1) == ["soon"]
    failed = db.value(conn, "SELECT exception_queue FROM aq.queues WHERE queue_name = %s", [passing])
    conn.execute("SELECT aq.start_queue(%s, enqueue => false)", [failed])
    expected = ["dying"] if store == "table" else ["bad", "dying"]
    assert sorted(arrived(conn, failed, len(expected))) == expected


def test_what_rests_and_what_is_kept(conn, store):
    """A rest after a rollback goes on; what was consumed stays visible as long as retention says, and is not delivered."""
    assert take(conn, f"{store}_resting") == ["fresh"]
    assert take(conn, f"{store}_kept") == [3]
    states = "SELECT array_agg((payload, state) ORDER BY payload) FROM aq.messages WHERE queue_name = %s AND (state <> 'PROCESSED' OR queue_name ~ 'kept')"
    assert db.value(conn, states, [f"{store}_resting"]) == [('"tired"', "WAITING")]
    assert db.value(conn, states, [f"{store}_kept"]) == [("1", "PROCESSED"), ("2", "PROCESSED"), ("3", "PROCESSED")]


def test_leases_go_on(conn, store):
    """A leased message is not delivered, and its receipt acknowledges it."""
    leased = f"{store}_leased"
    assert take(conn, leased) == ["free"]
    acknowledged = "SELECT result FROM held, aq.acknowledge(queue, ARRAY[msgid], receipt) WHERE queue = %s"
    assert conn.execute(acknowledged, [leased]).fetchall() == [("done",)]


def test_a_conversion_ends(conn):
    assert take(conn, "old") == [1, 2, 3, 4, 5, 6]
    until(lambda: db.value(conn, "SELECT queue_table IS NULL FROM aq.queues WHERE queue_name = 'old'"), "the end of the conversion")


def test_history_is_there_under_the_old_number(seen, conn):
    """A report of the past names it; the settings are those of before; new snapshots stand apart."""
    this = db.value(conn, "SELECT aq_internal.dbid()")
    assert this != seen.old_dbid
    first, last = conn.execute("SELECT min(snap_id), max(snap_id) FROM sys.dba_hist_snapshot WHERE dbid = %s", [seen.old_dbid]).fetchone()
    assert db.value(conn, "SELECT aq.report_awr(%s, %s, %s) IS NOT NULL", [first, last, seen.old_dbid])
    settings = "SELECT snap_interval = '0', retention = '30 days' FROM sys.dba_hist_wr_control WHERE dbid = %s"
    assert conn.execute(settings, [this]).fetchone() == (True, True)
    assert snapshot(conn) > last
    conn.execute("CALL dbms_workload_repository.drop_snapshot_range(%s, %s, %s)", [first, last, seen.old_dbid])
    assert db.value(conn, "SELECT array_agg(DISTINCT dbid) FROM sys.dba_hist_snapshot") == [this]


def test_a_crash_afterwards(seen):
    """Nothing comes back, what is to come is there."""
    with seen.new.connect() as conn:
        for store in STORES:
            take(conn, f"{store}_jobs")
    seen.new.expect_log(r"terminat|crash|buffered messages of queue")
    seen.new.kill()
    seen.new.start()
    with seen.new.connect() as conn:
        for store in STORES:
            jobs = f"{store}_jobs"
            put(conn, jobs, "newest")
            assert take(conn, jobs) == ["newest"]
            assert db.value(conn, "SELECT array_agg(payload) FROM aq.messages WHERE queue_name = %s AND state = 'WAITING'", [jobs]) == [
                '"later"'
            ]
