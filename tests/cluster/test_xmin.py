"""A held xmin, pg_dump in progress: no dead tuples, no growth, no stalls."""

from __future__ import annotations

import subprocess

import pytest

import conftest
from conftest import put_many, take, until
from pgaq import places
from pgaq.load import holders
from pgaq.load.tables import catalog_dead, dead_tuples, frozen_age, size

PARTITION = 16384
SETTINGS = {"wal_level": "logical", "pgaq.reuse_grace": "0", "autovacuum": "off", "max_replication_slots": "5"}

ROUNDS = """
CREATE PROCEDURE turn_over(queue text, rounds int, size int) LANGUAGE plpgsql AS $$
DECLARE
	got int;
BEGIN
	FOR i IN 1..rounds LOOP
		PERFORM aq.enqueue_array(queue, (SELECT array_agg(n::text) FROM generate_series(1, size) n));
		COMMIT;
		SELECT count(*) INTO got FROM aq.dequeue(queue, max_messages => size);
		IF got <> size THEN RAISE EXCEPTION 'round %: % of % messages', i, got, size; END IF;
		COMMIT;
	END LOOP;
END $$
"""


@pytest.fixture(scope="module", autouse=True)
def helpers(server):
    with server.connect() as conn:
        conn.execute(ROUNDS)
        conn.execute("CREATE EXTENSION pgstattuple")


@pytest.fixture(params=["idle", "repeatable-read", "slot", "logical-slot", "prepared", "slow-dump"])
def holder(request, server):
    """Something that holds back xmin."""
    with holders.HOLDERS[request.param](server):
        yield request.param


@pytest.mark.sharded("rows of queue tables die; test_queue_tables.py shows what that costs")
def test_no_dead_tuples_and_no_growth(server, conn, queue, holder, is_long):
    conn.execute("VACUUM pg_class")
    conn.execute("CALL turn_over(%s, 100, 500)", [queue])  # three partitions: warm
    catalog, dead = catalog_dead(conn), dead_tuples(conn)  # of definitions dropped by other tests
    bytes_before, tables_before = size(conn)
    conn.execute("CALL turn_over(%s, %s, 500)", [queue, 2000 if is_long else 400])
    bytes_after, tables_after = size(conn)
    assert dead_tuples(conn) == dead
    assert catalog_dead(conn) - catalog <= 10  # a few partitions more, at most
    # 200,000 messages went through; what may be left is a few partitions waiting for their turn
    assert tables_after - tables_before <= 12, (tables_before, tables_after)
    assert bytes_after - bytes_before < 40 * 1024 * 1024
    assert frozen_age(conn) < 10_000_000


def test_readers_snapshot_keeps_what_it_sees(server, conn, queue):
    """While a repeatable-read reader browses, reuse does not pull rows from under it within the grace."""
    put_many(conn, queue, 1, 100)
    with server.connect() as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert len(reader.execute("SELECT 1 FROM aq.browse(%s, max_messages => 1000)", [queue]).fetchall()) == 100
        assert len(take(conn, queue)) == 100
        # taken messages are gone for the reader, too: it sees the latest committed state
        assert reader.execute("SELECT 1 FROM aq.browse(%s, max_messages => 1000)", [queue]).fetchall() == []
        reader.execute("COMMIT")


def test_locks_like_those_of_pg_dump_stall_nobody(server, conn, queue):
    conn.execute("SET lock_timeout = '20 s'; SET statement_timeout = '120 s'")
    conn.execute("CALL turn_over(%s, 40, 500)", [queue])
    dead = dead_tuples(conn)
    with server.connect() as dumper:
        dumper.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        names = [
            row[0]
            for row in dumper.execute(
                "SELECT format('%I.%I', 'aq_data', relname) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r'"
            )
        ]
        dumper.execute("LOCK TABLE " + ", ".join(names) + " IN ACCESS SHARE MODE")
        tables = size(conn)[1]
        conn.execute("CALL turn_over(%s, 200, 500)", [queue])  # six partitions' worth
        assert size(conn)[1] - tables <= 30
        dumper.execute("ROLLBACK")
    conn.execute("CALL turn_over(%s, 100, 500)", [queue])
    assert dead_tuples(conn) == dead or conftest.on_queue_tables
    conn.execute("RESET ALL")


def test_pg_dump_in_a_loop_stalls_nobody(server, conn, queue, tmp_path):
    command = [places.program("pg_dump"), "--format=custom", "-f", str(tmp_path / "dump")]
    conn.execute("SET lock_timeout = '20 s'; SET statement_timeout = '120 s'")
    dumps = 0
    running = None
    for _ in range(30):
        if running is None or running.poll() is not None:
            assert running is None or running.returncode == 0
            running = subprocess.Popen(command, env=server.environment(), stderr=subprocess.PIPE)
            dumps += 1
        conn.execute("CALL turn_over(%s, 20, 500)", [queue])
    assert running.wait(60) == 0
    assert dumps > 1
    conn.execute("RESET ALL")


def test_vacuum_and_analyze_by_hand_stall_nobody(server, conn, queue):
    put_many(conn, queue, 1, 1000)
    with server.connect() as other:
        for statement in ("VACUUM", "VACUUM FREEZE", "ANALYZE", "CHECKPOINT"):
            other.execute(statement)
            conn.execute("CALL turn_over(%s, 1, 500)", [queue])
    assert len(take(conn, queue)) == 1000
