"""Base backup and replay, standby, promotion."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from conftest import PATIENCE, arrived, put, put_many, take, until
from pgaq import db
from pgaq.console import pages
from pgaq.load import ledger
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.workload import Options, Workload

SETTINGS = {"wal_level": "replica", "max_wal_senders": "5", "pgaq.reuse_grace": "0"}


@pytest.fixture
def standby(server, throw_away):
    copy = throw_away(server.basebackup("standby"))
    copy.expect_log(r"WARNING:.*standby")
    copy.start()
    return copy


def test_base_backup(server, conn, queue, topic, throw_away):
    """A backup started as a separate server has the data that was committed when it was taken."""
    put_many(conn, queue, 1, 1000)
    assert take(conn, queue, number=400) == list(range(1, 401))
    put(conn, topic, "x")
    assert take(conn, topic, "a") == ["x"]
    copy = throw_away(server.basebackup("backup", standby=False))
    copy.start()
    with copy.connect() as there:
        assert take(there, queue) == list(range(401, 1001))
        assert take(there, topic, "a") == []
        assert take(there, topic, "b") == ["x"]
    # the original is its own
    assert take(conn, queue) == list(range(401, 1001))


def test_base_backup_under_load(server, throw_away):
    """The messages that the backup delivers and those consumed before are together every message once."""
    with Workload(server, PGAQ, Shape(sessions=3, payload=100), Options(backlog=3000), queue="backup") as work:
        work.setup()
        with server.connect() as conn:
            conn.execute("CREATE TABLE produced (n int); CREATE TABLE consumed (n int)")
            conn.execute("SELECT aq.create_queue('facts')")
            conn.execute(FACTS)
        work.start()
        until(lambda: work.control.delivered > 2000, "load")
        with Facts(server) as facts:
            until(lambda: facts.rounds() > 50, "facts")
            copy = throw_away(server.basebackup("backup", standby=False))
        work.drain()
        work.stop()
        assert work.check().ok, str(work.check())
        copy.start()
        with copy.connect() as there:
            assert_facts(there)
        work.teardown()


# Producers and consumers that note in tables what they did, in the same transaction:
# any consistent copy must have produced = consumed + still in the queue.
FACTS = """
CREATE PROCEDURE facts_round(n int) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO produced SELECT i FROM generate_series(n * 10, n * 10 + 9) i;
	PERFORM aq.enqueue('facts', to_jsonb(i)) FROM generate_series(n * 10, n * 10 + 9) i;
	COMMIT;
	INSERT INTO consumed SELECT payload::int FROM aq.dequeue('facts', max_messages => 1 + (12 * random())::int);
	COMMIT;
END $$;
"""


class Facts:
    """Runs facts_round in a thread until the end of the with block."""

    def __init__(self, server):
        import threading

        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._rounds = 0
        self.error = None

    def _run(self):
        try:
            with self._server.connect() as conn:
                while not self._stop.is_set():
                    conn.execute(f"CALL facts_round({self._rounds})")
                    self._rounds += 1
        except db.Error as error:
            self.error = error

    def rounds(self):
        assert self.error is None, self.error
        return self._rounds

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(PATIENCE)
        assert self.error is None, self.error


def assert_facts(conn):
    """Every produced number is consumed or comes out of the queue now, once."""
    left = db.value(conn, "SELECT count(*) FROM (SELECT n FROM produced EXCEPT SELECT n FROM consumed) s")
    got = arrived(conn, "facts", left)
    rest = [row[0] for row in conn.execute("SELECT n FROM produced EXCEPT SELECT n FROM consumed ORDER BY 1")]
    assert sorted(got) == rest
    assert got == sorted(got)
    return rest


def test_standby_refuses_clearly(server, conn, queue, standby):
    put(conn, queue, 1)
    standby.wait_for_replay(server)
    with standby.connect() as there:
        for statement in (
            "SELECT aq.enqueue(%s, '1')",
            "SELECT aq.enqueue_array(%s, ARRAY['1'])",
            "SELECT * FROM aq.dequeue(%s)",
            "SELECT aq.purge_queue(%s)",
            "CALL aq.wait(%s, NULL, '0', NULL)",
            "SELECT aq.create_queue(%s || 'x')",
            "SELECT aq.drop_queue(%s)",
        ):
            with pytest.raises(db.Error) as caught:
                there.execute(statement, [queue])
            assert caught.value.sqlstate == "25006", f"{statement}: {caught.value}"
        # reading: allowed or clearly refused, never wrong
        for statement in (
            "SELECT payload FROM aq.browse(%s)",
            "SELECT 1 FROM aq.queues WHERE queue_name = %s",
            "SELECT 1 FROM aq.messages WHERE queue_name = %s",
        ):
            try:
                assert db.value(there, statement, [queue]) == 1
            except db.Error as error:
                assert error.sqlstate in ("25006", "55000"), f"{statement}: {error}"
                assert "recovery" in str(error) or "standby" in str(error) or "read-only" in str(error), str(error)
        page = pages.queue(there, SimpleNamespace(lock=threading.Lock(), kept={}), {"name": queue})
        assert page["waited"] == {"p50": None, "p99": None}  # nothing is dequeued there
    assert take(conn, queue) == [1]


def test_promotion(server, conn, queue, topic, standby):
    put_many(conn, queue, 1, 2000)
    assert take(conn, queue, number=700) == list(range(1, 701))
    put(conn, queue, "delayed", delay="1 s")
    put(conn, topic, "x", "y")
    assert take(conn, topic, "a", 1) == ["x"]
    conn.execute("BEGIN")
    put(conn, queue, "in doubt")
    conn.execute("PREPARE TRANSACTION 'promoted'")
    conn.execute("BEGIN")
    put(conn, queue, "open")
    standby.wait_for_replay(server)
    standby.promote()
    with standby.connect() as there:
        assert take(there, queue, number=1300) == list(range(701, 2001))
        assert take(there, topic, "a") == ["y"]
        assert take(there, topic, "b") == ["x", "y"]
        there.execute("COMMIT PREPARED 'promoted'")
        assert sorted(arrived(there, queue, 2)) == ["delayed", "in doubt"]
        put(there, queue, "new life")
        assert take(there, queue) == ["new life"]
    conn.execute("ROLLBACK")
    conn.execute("ROLLBACK PREPARED 'promoted'")


def test_promotion_after_reuse_and_load(server, throw_away):
    """Partitions are truncated and used again while the standby replays; after promotion nothing is doubled."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('replayed')")
    copy = throw_away(server.basebackup("standby"))
    copy.start()
    with Workload(server, PGAQ, Shape(sessions=3, batch=50, payload=50), Options(backlog=20000), queue="load2") as work:
        work.setup()
        work.start()
        until(lambda: work.control.delivered > 150_000, "several partitions' worth of messages")
        work.drain()
        work.stop()
        assert work.check().ok, str(work.check())
        with server.connect() as conn:
            put_many(conn, "replayed", 1, 100)
            db.execute(conn, "SELECT aq.enqueue(%s, 'last')", ["load2"])
        copy.wait_for_replay(server)
        copy.promote()
        with copy.connect() as there:
            found = [
                row[0] for row in there.execute("SELECT payload FROM aq.dequeue('load2', as_type => NULL::text, max_messages => 1000)")
            ]
            assert found == ["last"]
            assert take(there, "replayed") == list(range(1, 101))
        work.teardown()
