"""Partitions are used again, and backlogs larger than the message cache survive everything."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, arrived, at_rest, end_server, make_server, put, put_many, stopped_worker, take, until
from pgaq import db, places
from pgaq.load.tables import inserted, size
from pgaq.subjects import RULES
from test_xmin import PARTITION, ROUNDS

SETTINGS = {"pgaq.message_cache_size": "4MB", "pgaq.reuse_grace": "0", "max_wal_size": "2GB"}


@pytest.fixture(scope="module", autouse=True)
def helpers(server):
    with server.connect() as conn:
        conn.execute(ROUNDS)


def enqueue_numbers(conn, queue, first, last, step=10_000):
    for start in range(first, last + 1, step):
        put_many(conn, queue, start, min(last, start + step - 1))


def dequeue_numbers(conn, queue, first, last, consumer=None, step=1000):
    """Dequeue exactly these numbers in order, in transactions of their own."""
    query = "SELECT count(*), min(payload::int), max(payload::int), bool_and(payload::int = %s + n - 1) FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue(%s, consumer => %s, max_messages => %s)) s"
    at = first
    while at <= last:
        number = min(step, last - at + 1)
        found = conn.execute(query, [at, queue, consumer, number]).fetchone()
        assert found == (number, at, at + number - 1, True), f"at {at}: {found}"
        at += number


def test_partitions_are_reused(server, conn, queue, is_long):
    rounds = 20 if is_long else 6
    conn.execute("CALL turn_over(%s, %s, 1000)", [queue, 4 * PARTITION // 1000])
    _, tables = size(conn)
    for _ in range(rounds):
        conn.execute("CALL turn_over(%s, %s, 1000)", [queue, 4 * PARTITION // 1000])
    assert size(conn)[1] <= tables + 8
    assert take(conn, queue) == []


@pytest.mark.sharded("a queue table has no partitions")
def test_partitions_take_turns(server, conn, queue):
    """Those in reserve too: only truncation keeps a table's relfrozenxid young."""
    conn.execute("CALL turn_over(%s, %s, 1000)", [queue, 4 * PARTITION // 1000])
    mine = f"q{db.value(conn, 'SELECT queue_id FROM aq.queues WHERE queue_name = %s', [queue])}_"
    for _ in range(12):  # a slow worker makes more tables, whose turn comes later
        rows = {name: count for name, count in inserted(conn).items() if name.startswith(mine)}
        if min(rows.values()) > PARTITION:
            break
        conn.execute("CALL turn_over(%s, %s, 1000)", [queue, len(rows) * PARTITION // 1000])
        conn.execute("SELECT pg_stat_force_next_flush()")
    assert min(rows.values()) > PARTITION, rows


@pytest.mark.sharded("a queue table has no partitions")
def test_truncations_are_counted(server, conn):
    """Three full partitions and a beginning: three pairs of tables are truncated, and those that were made are counted once."""
    db.execute(conn, "SELECT aq.create_queue('counted', shards => 1)")
    put_many(conn, "counted", 1, 3 * PARTITION + 1)
    for _ in range(4):
        take(conn, "counted", number=PARTITION)
    query = 'SELECT trunc_partition_qt, trunc_partition_dq, add_partition_fg, add_partition_bg = partitions_qt FROM sys."v$aq_partition_stats" JOIN aq.queues USING (queue_id) WHERE queue_name = %s'
    until(lambda: conn.execute(query, ["counted"]).fetchone()[1] == 3, "truncations")
    # the worker makes tables until there are some in reserve
    until(lambda: conn.execute(query, ["counted"]).fetchone() == (3, 3, 0, True), "what was made to be what there is")
    # the server counts truncations as VACUUM, from PostgreSQL 18 on with their time
    times = "SELECT count(*), max((to_jsonb(t) ->> 'total_vacuum_time')::float) FROM pg_stat_all_tables t WHERE schemaname = 'aq_data' AND vacuum_count > 0"
    number, milliseconds = conn.execute(times).fetchone()
    assert number >= 3 and (milliseconds or 0) < 3_600_000
    db.execute(conn, "SELECT aq.drop_queue('counted')")


TRUNCATED = 'SELECT trunc_partition_dq FROM sys."v$aq_partition_stats" JOIN aq.queues USING (queue_id) WHERE queue_name = %s'


@pytest.mark.sharded("a queue table has no partitions")
def test_a_reader_keeps_its_partition(server, conn):
    """A transaction that has read a message table counts the same rows again; other partitions are truncated meanwhile."""
    db.execute(conn, "SELECT aq.create_queue('read', shards => 1)")
    put_many(conn, "read", 1, 2 * PARTITION + 1)
    first = conn.execute(
        "SELECT messages::text FROM aq.partitions WHERE queue_name = 'read' AND state <> 'empty' ORDER BY first_ordinal LIMIT 1"
    ).fetchone()[0]
    with server.connect(autocommit=False) as reader:
        rows = f"SELECT count(*) FROM {first}"
        assert db.value(reader, rows) == PARTITION
        take(conn, "read", number=2 * PARTITION)
        until(lambda: db.value(conn, TRUNCATED, ["read"]) == 1, "the other partition truncated")
        until(lambda: at_rest(conn, "worker"), "the worker has tried both")
        assert db.value(reader, rows) == PARTITION
    until(lambda: db.value(conn, TRUNCATED, ["read"]) == 2, "the reader's partition truncated")
    db.execute(conn, "SELECT aq.drop_queue('read', force => true)")


@pytest.mark.sharded("rows of queue tables are deleted one by one")
def test_consumed_messages_stay_as_long_as_retention_says(new_server):
    """A full partition, also after a crash; without any other use of the queue it is truncated when its time has come."""
    own = new_server("kept", **SETTINGS)
    own.expect_log("terminating connection because of crash|was terminated by signal 9")
    kept = "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state = 'PROCESSED'"
    with own.connect() as conn:
        db.execute(
            conn,
            "SELECT aq.create_queue('long', shards => 1, retention => '1 day'), aq.create_queue('short', shards => 1, retention => '2 s')",
        )
        for name in ("short", "long"):
            put_many(conn, name, 1, PARTITION + 1)
            take(conn, name, number=PARTITION)
        until(lambda: db.value(conn, TRUNCATED, ["short"]) == 1, "truncated when its time has come")
        assert db.value(conn, kept, ["long"]) == PARTITION
        own.kill()
    own.start()
    with own.connect() as conn:
        assert take(conn, "long") == [PARTITION + 1]
        put_many(conn, "short", 1, PARTITION)
        take(conn, "short")
        until(lambda: db.value(conn, TRUNCATED, ["short"]) >= 1, "truncated again")
        assert db.value(conn, kept, ["long"]) == PARTITION + 1
        assert db.value(conn, TRUNCATED, ["long"]) == 0


SPACE = """SELECT coalesce(sum(pg_total_relation_size(format('aq_data.%%s%%s_%%s', letter, queue_id, table_no)::regclass)), 0)::integer
    FROM aq_internal.message_table JOIN aq_internal.queue USING (queue_id), unnest(ARRAY['q', 'l']) letter WHERE queue_name = %s"""
LARGE = 300_000  # bytes of a message, more than an idle queue keeps
BODY = f"(SELECT substr(string_agg(sha512((i || %s)::bytea), ''), 1, {LARGE}) FROM generate_series(1, {LARGE // 64 + 1}) i)"


@pytest.fixture(scope="module")
def idle_server():
    own = make_server("idle", **{"pgaq.reuse_grace": "0", "pgaq.idle_grace": "0", "max_prepared_transactions": "5"})
    yield own
    end_server(own)


def put_large(conn, queue, text="x", options=""):
    return db.value(conn, f"SELECT aq.enqueue(%s, {BODY} {options})", [queue, text])


def take_large(conn, queue, **options):
    more = "".join(f", {name} => %s" for name in options)
    return db.value(conn, f"SELECT count(*) FROM aq.dequeue(%s, NULL::bytea, max_messages => 100{more})", [queue, *options.values()])


def given_back(conn, queue):
    until(lambda: db.value(conn, SPACE, [queue]) < LARGE / 3, f"the space of {queue}")


HOW = [
    "consumed",
    "rolled back",
    "purged",
    "expired",
    "acknowledged",
    "a topic",
    "without subscribers",
    "temporary",
    "created by the transaction",
]


@pytest.mark.sharded("VACUUM gives the space of queue tables back")
@pytest.mark.parametrize("how", HOW)
def test_an_idle_queue_gives_its_space_back(idle_server, how):
    """Its partition is not full, and it is not used again."""
    with idle_server.connect() as conn:
        topic = how in ("a topic", "without subscribers")
        queue = "idle " + how
        if how == "temporary":
            queue = db.value(conn, "SELECT aq.create_temporary_queue('bytea')")
        elif how == "created by the transaction":
            conn.execute("BEGIN")
        if how != "temporary":
            db.execute(conn, "SELECT aq.create_queue(%s, 'bytea', shards => 1, multiple_consumers => %s)", [queue, topic])
        if how == "a topic":
            db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [queue])
        if how == "rolled back":
            conn.execute("BEGIN")
        for number in range(3):
            put_large(conn, queue, str(number), ", expiration => '1 ms'" if how == "expired" else "")
        if how == "rolled back":
            assert db.value(conn, SPACE, [queue]) > 3 * LARGE
            conn.execute("ROLLBACK")
        elif how == "purged":
            assert db.value(conn, "SELECT aq.purge_queue(%s)", [queue]) == 3
        elif how == "acknowledged":
            leased = conn.execute(
                "SELECT array_agg(msgid), max(receipt) FROM aq.dequeue(%s, NULL::bytea, max_messages => 3, lease => '1 h')", [queue]
            ).fetchone()
            db.execute(conn, "SELECT aq.acknowledge(%s, %s, %s)", [queue, *leased])
        elif how == "a topic":
            assert (take_large(conn, queue, consumer="a"), take_large(conn, queue, consumer="b")) == (3, 3)
        elif how not in ("expired", "without subscribers"):
            assert take_large(conn, queue) == 3
        if how == "created by the transaction":
            conn.execute("COMMIT")
        given_back(conn, queue)


@pytest.mark.sharded("VACUUM gives the space of queue tables back")
@pytest.mark.parametrize("how", ["in a transaction", "prepared", "delayed", "leased", "locked", "for another subscriber"])
def test_what_is_not_consumed_keeps_an_idle_partition(idle_server, how):
    """The worker has looked at it; then the message is there, and when it is consumed, the space is given back."""
    with idle_server.connect() as conn, idle_server.connect() as other:
        queue, consumer = "kept " + how, {}
        db.execute(
            conn, "SELECT aq.create_queue(%s, 'bytea', shards => 1, multiple_consumers => %s)", [queue, how == "for another subscriber"]
        )
        if how == "for another subscriber":
            db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['fast', 'slow']) c", [queue])
            consumer = {"consumer": "fast"}
        if how in ("in a transaction", "prepared"):
            other.execute("BEGIN")
            put_large(other, queue, "kept")
        elif how == "delayed":
            put_large(conn, queue, "kept", ", delay => '1 h'")
        if how == "prepared":
            other.execute("PREPARE TRANSACTION 'kept'")
        for number in range(3):
            put_large(conn, queue, str(number))
        if how == "leased":
            msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, NULL::bytea, lease => '1 h')", [queue]).fetchone()
        elif how == "locked":
            other.execute("BEGIN")
            other.execute("SELECT msgid FROM aq.dequeue(%s, NULL::bytea)", [queue])
        taken = take_large(conn, queue, **consumer)
        until(lambda: at_rest(conn, "worker"), "the worker has looked")
        assert taken == 3 - (how in ("leased", "locked"))
        if how in ("in a transaction", "locked"):
            other.execute("ROLLBACK" if how == "locked" else "COMMIT")
        elif how == "prepared":
            other.execute("COMMIT PREPARED 'kept'")
        elif how == "for another subscriber":
            consumer = {"consumer": "slow"}
        if how == "leased":
            db.execute(conn, "SELECT aq.acknowledge(%s, ARRAY[%s::uuid], %s)", [queue, msgid, receipt])
        elif how == "delayed":
            assert db.value(conn, "SELECT aq.purge_queue(%s)", [queue]) == 1
        else:
            assert take_large(conn, queue, **consumer) == (3 if how == "for another subscriber" else 1)
        given_back(conn, queue)


@pytest.mark.sharded("VACUUM gives the space of queue tables back")
def test_a_small_queue_keeps_its_partition(idle_server):
    """Its tables are not worth a truncation."""
    with idle_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('small', shards => 1)")
        put_many(conn, "small", 1, 100)
        assert len(take(conn, "small", number=100)) == 100
        until(lambda: at_rest(conn, "worker"), "the worker has nothing to do")
        assert db.value(conn, "SELECT state FROM aq.partitions WHERE queue_name = 'small' AND state <> 'empty'") == "open"


@pytest.mark.sharded("a queue table has no partitions")
def test_a_removed_consumer_keeps_nothing(new_server):
    """What only removed consumers have not taken is truncated, and then their places are free: in memory, not in memory, and after a crash before the worker knew."""
    own = new_server("removed", **SETTINGS)
    own.expect_log("terminating connection because of crash|was terminated by signal 9")

    def without_a(conn, name):
        until(lambda: db.value(conn, TRUNCATED, [name]) == 1, f"the partition of {name}")
        assert take(conn, name, "b") == [PARTITION + 1]
        until(
            lambda: (
                db.value(
                    conn,
                    "SELECT count(*) FROM aq_internal.subscriber JOIN aq_internal.queue USING (queue_id) WHERE queue_name = %s",
                    [name],
                )
                == 1
            ),
            "a's place",
        )

    with own.connect() as conn:
        for name in ("here", "restarted", "crashed"):
            db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => true, shards => 1)", [name])
            db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [name])
            put_many(conn, name, 1, PARTITION + 1)
            take(conn, name, "b", PARTITION)
        db.execute(conn, "SELECT aq.unsubscribe('here', 'a')")
        without_a(conn, "here")
    own.restart()
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.unsubscribe('restarted', 'a')")
        without_a(conn, "restarted")
        with contextlib.suppress(ProcessLookupError), stopped_worker(conn):
            db.execute(conn, "SELECT aq.unsubscribe('crashed', 'a')")
            own.kill()
    own.start()
    with own.connect() as conn:
        without_a(conn, "crashed")


@pytest.mark.sharded("VACUUM keeps queue tables young")
def test_truncation_keeps_tables_young(new_server):
    """A table that is more than a million transactions old is as good as new when it was truncated."""
    own = new_server("young", **SETTINGS)
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1)")
        put_many(conn, "q", 1, PARTITION)
        old = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'q' AND state <> 'empty'")
    own.stop()
    segment = 0x100000  # transactions of a file of pg_xact
    for number in (1, 2):
        file = own.data / f"pg_xact/{number:04X}"
        file.write_bytes(bytes(segment // 4))
        places.give_to_server(file)
    command = [places.program("pg_resetwal"), "-x", str(2 * segment), "-D", str(own.data)]
    subprocess.run(command, check=True, capture_output=True, cwd="/", **places.popen_user())
    own.start()
    with own.connect() as conn:
        put_many(conn, "q", PARTITION + 1, PARTITION + 1)
        age = f"SELECT max(age(relfrozenxid)) FROM pg_class WHERE oid IN ('{old}'::regclass, '{old.replace('.q', '.l')}'::regclass)"
        assert db.value(conn, age) > segment
        dequeue_numbers(conn, "q", 1, PARTITION + 1)
        until(lambda: db.value(conn, TRUNCATED, ["q"]) == 1, "truncated")
        assert db.value(conn, age) < 1000


def burn(conn, number):
    """Use up transaction ids."""
    conn.execute(
        f"DO $$BEGIN FOR i IN 1..{number} LOOP BEGIN INSERT INTO burnt VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END$$"
    )


@pytest.mark.sharded("VACUUM keeps queue tables young")
def test_unused_tables_stay_young(new_server):
    """Those in reserve, and those of a queue that is not used any more: before autovacuum would have to freeze them."""
    limit = 100_000
    own = new_server("unused", **SETTINGS, autovacuum_freeze_max_age=limit, autovacuum="off")
    ages = "SELECT relname::text, age(relfrozenxid) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[ql][0-9]+_' ORDER BY 2 DESC"
    with own.connect() as conn:
        conn.execute("CREATE TABLE burnt (i integer)")
        db.execute(
            conn,
            "SELECT aq.create_queue('quiet', shards => 1), aq.create_queue('full', shards => 1), aq.create_queue('backlog', shards => 1)",
        )
        for name in ("quiet", "full", "backlog"):
            put_many(conn, name, 1, 3 if name == "quiet" else PARTITION + 1)
            take(conn, name, number=3 if name == "backlog" else PARTITION + 1)
        until(lambda: db.value(conn, TRUNCATED, ["full"]) == 1, "tables in reserve")
        backlog = {
            row[0]
            for row in conn.execute(
                "SELECT unnest(ARRAY[messages, log])::regclass::text FROM aq.partitions WHERE queue_name = 'backlog' AND state IN ('open', 'closed')"
            ).fetchall()
        }
        backlog = {name.removeprefix("aq_data.") for name in backlog}
        assert len(backlog) == 4
        burn(conn, limit // 3)
        assert max(age for name, age in conn.execute(ages).fetchall() if name not in backlog) > limit // 4
        conn.execute("SELECT pg_reload_conf()")  # the worker looks around
        until(lambda: max(age for name, age in conn.execute(ages).fetchall() if name not in backlog) < limit // 8, "all others young")
        old = {name for name, age in conn.execute(ages).fetchall() if age > limit // 4}
        assert old == backlog, "the tables with messages are left to autovacuum"
        put_many(conn, "quiet", 4, 5)
        assert take(conn, "quiet") == [4, 5]
        assert take(conn, "full") == []
        assert len(take(conn, "backlog", number=PARTITION)) == PARTITION - 2


@pytest.mark.sharded("VACUUM keeps queue tables young")
def test_tables_have_different_freeze_limits(server, conn):
    """So autovacuum does not freeze all at the same time: each between half of its limit and the whole."""
    for number in range(8):
        db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [f"spread {number}"])
        put(conn, f"spread {number}", 1)
    query = """SELECT split_part(o, '=', 2)::integer FROM pg_class, unnest(reloptions) o WHERE relnamespace = 'aq_data'::regnamespace
        AND relname ~ '^[ql][0-9]+_' AND o ~ '^autovacuum_freeze_max_age='"""
    limits = [row[0] for row in conn.execute(query).fetchall()]
    assert len(limits) >= 16 and len(set(limits)) >= 6
    assert all(100_000_000 <= limit <= 200_000_000 for limit in limits)
    for number in range(8):
        db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [f"spread {number}"])


@pytest.mark.sharded("VACUUM keeps queue tables young")
def test_doctor_finds_tables_that_autovacuum_cannot_freeze(new_server):
    """A session that keeps a table locked, while transaction ids pass the limit."""
    limit = 100_000
    own = new_server("unfrozen", **SETTINGS, autovacuum_freeze_max_age=limit, autovacuum="off")
    rule = next(rule for rule in RULES if rule.name == "old_tables")
    with own.connect() as conn, own.connect(autocommit=False) as other:
        conn.execute("CREATE TABLE burnt (i integer)")
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1)")
        put(conn, "q", 1)
        assert conn.execute(rule.query).fetchall() == []
        messages = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = 'q' AND state = 'open'")
        other.execute(f"LOCK TABLE {messages} IN SHARE UPDATE EXCLUSIVE MODE")
        burn(conn, limit * 12 // 10)
        assert db.value(conn, f"SELECT age(relfrozenxid) FROM pg_class WHERE oid = '{messages}'::regclass") > limit
        assert [row[0] for row in conn.execute(rule.query).fetchall()] == ["autovacuum"]
        other.rollback()
        assert take(conn, "q") == [1]


def through_a_cache(new_server, size):
    """Enqueues and dequeues twelve partitions with a cache of this many MB; returns its work, and its advice by
    type."""
    own = new_server(f"cache{size}", **{**SETTINGS, "pgaq.message_cache_size": f"{size}MB"})
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1)")
        enqueue_numbers(conn, "q", 1, 12 * PARTITION)
        dequeue_numbers(conn, "q", 1, 12 * PARTITION, step=4096)
        done = conn.execute('SELECT num_evicted, num_unevicted, max_subsh_size FROM sys."v$aq_message_cache_stat"').fetchone()
        advice = conn.execute(
            'SELECT estd_size_type, size_for_estimate::int, estd_evictions, estd_fg_unevictions + estd_bg_unevictions, estd_fg_unevictions FROM sys."v$aq_message_cache_advice"'
        )
        return done, {kind: figures for kind, *figures in advice}


@pytest.mark.sharded("a queue table has no partitions")
def test_what_the_advice_foretells(new_server):
    """A larger cache behaves as the view predicts."""
    (evicted, unevicted, most), advice = through_a_cache(new_server, 4)
    assert evicted > 4 and unevicted > 4 and most == PARTITION
    # what it has done itself, all of it for a session
    assert advice["CURRENT"] == advice["MINIMUM"] == [4, evicted, unevicted, unevicted]
    size, *foretold = advice["MAXIMUM"]
    assert 4 < advice["PREFERRED"][0] <= size and advice["PREFERRED"][2] <= unevicted / 5
    assert foretold == [0, 0, 0]
    done, advice = through_a_cache(new_server, size)
    assert done == (0, 0, PARTITION)
    assert advice["CURRENT"] == [size, 0, 0, 0]
    assert 4 < advice["MAXIMUM"][0] <= size and advice["MINIMUM"] == [4, None, None, None]


def test_backlog_larger_than_the_cache(server, conn, queue, is_long):
    """Four megabytes of cache; the backlog needs a multiple of it.  A restart in the middle."""
    total = 2_000_000 if is_long else 200_000
    enqueue_numbers(conn, queue, 1, total)
    dequeue_numbers(conn, queue, 1, total // 4)
    server.restart()
    with server.connect() as now:
        dequeue_numbers(now, queue, total // 4 + 1, total // 2)
        put(now, queue, total + 1, priority=9)  # by another session: only priority puts it last
    server.expect_log("terminat|crash")
    server.kill()
    server.start()
    with server.connect() as now:
        dequeue_numbers(now, queue, total // 2 + 1, total)
        assert take(now, queue) == [total + 1]
        # the space is given back
        until(lambda: size(now)[0] < 40 * 1024 * 1024, "reuse of space", 120)


def test_subscribers_at_different_places(server, conn, topic):
    """One reads at once, one lags by more than the cache, one has not begun: each gets everything in order."""
    total = 150_000
    db.execute(conn, "SELECT aq.subscribe(%s, 'stopped')", [topic])
    enqueue_numbers(conn, topic, 1, total)
    dequeue_numbers(conn, topic, 1, total - 500, "a", step=10_000)
    dequeue_numbers(conn, topic, 1, total // 3, "b", step=10_000)
    server.restart()
    with server.connect() as now:
        # alternate between places far apart
        dequeue_numbers(now, topic, total - 499, total, "a", 50)
        at = {"b": total // 3 + 1, "stopped": 1}
        for _ in range(20):
            for consumer in at:
                dequeue_numbers(now, topic, at[consumer], at[consumer] + 999, consumer, 500)
                at[consumer] += 1000
        for consumer, first in at.items():
            dequeue_numbers(now, topic, first, total, consumer, 20_000)
            assert take(now, topic, consumer) == []


def test_few_loads_for_many_small_dequeues(server, conn, topic):
    """Four consumers at four places of four shards, 16 partitions to read and room for 7: a loaded one is made use of."""
    for name in ("c", "d"):
        db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, name])
    with contextlib.ExitStack() as stack:
        readers = {name: stack.enter_context(server.connect()) for name in "abcd"}
        for reader in readers.values():  # each session to a shard of its own
            put_many(reader, topic, 1, 4 * PARTITION)
        for number, (name, reader) in enumerate(readers.items()):
            for _ in range(64 * number):  # a partition of each shard, two, three
                take(reader, topic, name, number=PARTITION // 16)
        resident = "SELECT table_no FROM aq.partitions WHERE queue_name = %s AND resident"
        loads, before = 0, set(conn.execute(resident, [topic]))
        for _ in range(500):
            for name, reader in readers.items():
                assert len(take(reader, topic, name, number=10)) == 10
            now = set(conn.execute(resident, [topic]))
            loads += len(now - before)
            before = now
        assert loads <= 40


def test_priorities_beyond_the_cache(server, conn, queue):
    """An urgent message behind a backlog that does not fit goes first."""
    enqueue_numbers(conn, queue, 1, 120_000)
    put(conn, queue, 0, priority=0)
    assert take(conn, queue, number=3) == [0, 1, 2]
    server.restart()
    with server.connect() as now:
        put(now, queue, -1, priority=0)
        assert take(now, queue, number=2) == [-1, 3]
        dequeue_numbers(now, queue, 4, 120_000, step=20_000)


def test_choice_by_id_beyond_the_cache(server, conn, queue):
    (first,) = put(conn, queue, 0)
    enqueue_numbers(conn, queue, 1, 100_000)
    (last,) = put(conn, queue, 100_001)
    query = "SELECT payload FROM aq.dequeue(%s, msgid => %s)"
    assert db.value(conn, query, [queue, last]) == 100_001
    assert db.value(conn, query, [queue, first]) == 0
    dequeue_numbers(conn, queue, 1, 100_000, step=20_000)


@pytest.mark.sharded("a queue table has no partitions")
def test_a_backlog_that_the_snapshot_does_not_see(server, conn, queue):
    """A transaction passes five partitions of which its snapshot sees nothing; then they are all there."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT FROM aq.queues")
        enqueue_numbers(conn, queue, 1, 4 * PARTITION + 1)
        assert take(other, queue) == []
        other.execute("COMMIT")
        dequeue_numbers(other, queue, 1, 4 * PARTITION + 1, step=20_000)


@pytest.mark.sharded("a queue table has no partitions")
def test_what_the_snapshot_does_not_see_is_not_passed_for_good(server, conn, queue):
    """A message, and a partition, that a transaction cannot see and takes a later message instead, is still to be dequeued."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    for first, last in ((1, 1), (3, PARTITION)):  # the later message is in the same partition, and in the next one
        with server.connect() as early, server.connect() as other:
            early.execute("BEGIN")
            put_many(early, queue, first, last)
            put(other, queue, last + 1)
            conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            conn.execute("SELECT FROM aq.queues")
            early.execute("COMMIT")
            assert take(conn, queue) == [last + 1]
            conn.execute("COMMIT")
            assert take(conn, queue) == list(range(first, last + 1))


@pytest.mark.sharded("a queue table is read row by row")
def test_a_large_dequeue_can_be_cancelled(server, conn, queue):
    """A long call can be cancelled before it has finished."""
    count = "SELECT value FROM sys.\"v$sysstat\" WHERE name = 'queue messages returned'"
    enqueue_numbers(conn, queue, 1, 3 * PARTITION)
    before = db.value(conn, count)
    # until the transaction has failed: the timeout could also hit the statement that resets it
    with pytest.raises(db.Error, match="statement timeout"), conn.transaction():
        conn.execute("SET LOCAL statement_timeout = '1 ms'")
        conn.execute("SELECT count(*) FROM aq.dequeue(%s, max_messages => 1000000)", [queue])
    assert db.value(conn, count) == before  # of calls that have found all they could
    assert len(arrived(conn, queue, 3 * PARTITION)) == 3 * PARTITION


def test_rollback_of_a_large_dequeue(server, conn, queue):
    enqueue_numbers(conn, queue, 1, 50_000)
    conn.execute("BEGIN")
    dequeue_numbers(conn, queue, 1, 40_000, step=20_000)
    conn.execute("ROLLBACK")
    assert arrived(conn, queue, 50_000) == list(range(1, 50_001))


def test_rollback_of_a_large_enqueue(server, conn, queue):
    conn.execute("BEGIN")
    enqueue_numbers(conn, queue, 1, 60_000)
    conn.execute("ROLLBACK")
    assert take(conn, queue) == []
    put(conn, queue, "after")
    assert take(conn, queue) == ["after"]
    until(lambda: size(conn)[0] < 60 * 1024 * 1024, "reuse of space", 120)


@pytest.mark.sharded("a queue table has no partitions")
@pytest.mark.parametrize("how", ["ROLLBACK", "PREPARE TRANSACTION 'twice'"])
def test_the_last_of_a_partition_is_rolled_back(server, conn, queue, how):
    """The partition is truncated then; so it is when PREPARE fails."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    conn.execute("BEGIN; SELECT 1; PREPARE TRANSACTION 'twice'")
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, queue, "undone")
        put_many(conn, queue, 1, PARTITION)
        assert len(take(conn, queue)) == PARTITION
        with contextlib.suppress(db.Error):  # there is a transaction of this name
            other.execute(how)
    until(lambda: db.value(conn, TRUNCATED, [queue]) == 1, "truncated")
    conn.execute("ROLLBACK PREPARED 'twice'")


@pytest.mark.sharded("a queue table has no partitions")
def test_a_partition_is_used_again_under_a_dequeue(server, conn, queue):
    """A dequeue that is about to look into a partition, which is consumed and used for later messages meanwhile, takes the oldest one."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    put_many(conn, queue, 1, PARTITION)
    table = db.value(conn, "SELECT messages::text FROM aq.partitions WHERE queue_name = %s AND state <> 'empty'", [queue])
    put_many(conn, queue, PARTITION + 1, 2 * PARTITION)
    used = "SELECT EXISTS (SELECT FROM aq.partitions WHERE messages::text = %s AND outstanding > 0)"
    waits = "SELECT true FROM sys.\"v$session_wait\" WHERE pid = %s AND event = 'aq: retry count write' AND state = 'WAITING'"
    with server.connect() as other, ThreadPoolExecutor(1) as pool:
        with stopped_worker(conn):
            conn.execute("BEGIN")
            take(conn, queue, number=1)
            conn.execute("ROLLBACK")
            query = "SELECT payload FROM aq.dequeue(%s, condition => 'priority = 1')"
            found = pool.submit(lambda: other.execute(query, [queue]).fetchall())
            until(lambda: db.value(conn, waits, [other.info.backend_pid]), "a dequeue that waits")
            os.kill(other.info.backend_pid, signal.SIGSTOP)
        try:
            first = 1
            while first == 1 or not db.value(conn, used, [table]):
                put_many(conn, queue, first + 2 * PARTITION, first + 3 * PARTITION - 1)
                # the first message has failed, so its batch is smaller
                assert take(conn, queue, number=PARTITION * (4 if first == 1 else 1)) == list(range(first, first + PARTITION))
                first += PARTITION
                until(lambda: db.value(conn, TRUNCATED, [queue]) == first // PARTITION, "truncated")
        finally:
            os.kill(other.info.backend_pid, signal.SIGCONT)
        assert found.result(PATIENCE) == [(first,)]


@pytest.mark.sharded("a queue table has no partitions")
def test_empty_tables_are_given_back(new_server):
    """What restarts leave behind is dropped down to a reserve, but not under a reader; other messages stay, and tables are made again."""
    own = new_server("surplus", **{"pgaq.reuse_grace": "0", "max_prepared_transactions": "2"})
    pairs = "SELECT (SELECT count(*) FROM aq_internal.message_table), (SELECT count(*) / 2 FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[ql][0-9]+_' AND relkind = 'r')"
    messages = list(range(10))
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue(q) FROM unnest(ARRAY['q', 'kept']) q")
        # a partition for each priority, and of delayed messages; what is left of the second queue stays
        for priority in messages:
            put(conn, "q", priority, priority=priority)
            put(conn, "q", priority, priority=priority, delay="0.001 s")
            put(conn, "kept", priority, priority=priority)
        assert sorted(arrived(conn, "q", 20)) == sorted(2 * messages)
        assert conn.execute(pairs).fetchone() == (30, 30)
        reader = conn.execute("SELECT messages::text FROM aq.partitions WHERE queue_name = 'q' ORDER BY table_no LIMIT 1").fetchone()[0]
        conn.execute("BEGIN")
        conn.execute(f"LOCK TABLE {reader} IN ACCESS SHARE MODE")
        conn.execute("PREPARE TRANSACTION 'reader'")
    own.restart("immediate")
    with own.connect() as conn:
        # 10 with messages, the reader's, and a reserve of two for each table kept ready
        until(lambda: conn.execute(pairs).fetchone() == (17, 17), "the surplus is dropped")
        assert db.value(conn, "SELECT to_regclass(%s) IS NOT NULL", [reader])
        conn.execute("COMMIT PREPARED 'reader'")
        until(lambda: conn.execute(pairs).fetchone() == (16, 16), "the reader's table, or another one")
        until(lambda: db.value(conn, "SELECT known_partitions FROM aq.message_cache") == 16, "their places are free")
        for priority in messages:
            put(conn, "q", priority, priority=priority)
        assert take(conn, "q") == messages and take(conn, "kept") == messages
        # the next restart leaves these behind, too; the worker begins with one that is empty already
        put_many(conn, "q", 1, PARTITION + 1)
        assert len(take(conn, "q")) == PARTITION + 1
        empty = "SELECT messages::text FROM aq.partitions WHERE queue_name = 'q' AND state = 'empty' ORDER BY table_no LIMIT 1"
        reader = until(lambda: db.value(conn, empty), "a table in reserve")
        conn.execute("BEGIN")
        conn.execute(f"LOCK TABLE {reader} IN ACCESS SHARE MODE")
        conn.execute("PREPARE TRANSACTION 'reader'")
    own.restart("immediate")
    with own.connect() as conn:
        until(lambda: conn.execute(pairs).fetchone() == (12, 12), "the surplus is dropped, but for the reader's table")
        assert db.value(conn, "SELECT to_regclass(%s) IS NOT NULL", [reader])
        assert "lock timeout" not in own.log_text()  # the worker has not waited for the reader
        conn.execute("COMMIT PREPARED 'reader'")


def loads(conn):
    return db.value(conn, """SELECT value FROM sys."v$sysstat" WHERE name = 'message cache partitions loaded'""")


@pytest.mark.sharded("a queue table has no partitions")
@pytest.mark.parametrize("sessions", [1, 6])
@pytest.mark.parametrize("finish", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
def test_held_back_beyond_the_cache(server, conn, queue, sessions, finish):
    """Later messages of the sessions that prepared transactions have taken from are passed by without reading them again and again."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    taken = list(range(1, sessions + 1))
    last = sessions + 10 * PARTITION
    with contextlib.ExitStack() as stack:
        producers = [stack.enter_context(server.connect()) for _ in taken]
        for number, producer in zip(taken, producers):
            put_many(producer, queue, number, number)
        for n, first in enumerate(range(sessions + 1, last + 1, 2000)):
            put_many(producers[n % sessions], queue, first, min(last, first + 1999))
    with server.connect() as other:
        other.execute("BEGIN")
        assert take(other, queue, number=sessions) == taken
        other.execute("PREPARE TRANSACTION 'beyond'")
    before = loads(conn)
    put(conn, queue, "other")
    assert take(conn, queue) == ["other"]
    # which sessions have enqueued into a partition is known without reading it, as long as they are few
    assert loads(conn) - before <= 1 if sessions == 1 else loads(conn) - before >= 3
    before = loads(conn)
    put(conn, queue, "other")
    assert take(conn, queue) == ["other"] and take(conn, queue) == []
    assert loads(conn) == before
    assert db.rows(conn, "SELECT * FROM aq.check('20 s')") == []
    conn.execute(f"{finish} 'beyond'")
    if finish == "ROLLBACK PREPARED":
        # they have failed, so their batch is smaller
        assert take(conn, queue, number=4 * sessions) == taken
    dequeue_numbers(conn, queue, sessions + 1, last, step=10_000)
    assert take(conn, queue) == []
    db.execute(conn, "SELECT aq.drop_queue(%s)", [queue])
