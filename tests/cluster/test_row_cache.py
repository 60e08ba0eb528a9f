"""The dictionary cache with many sessions: exact counts, switching its protection, changes by others, clones."""

from __future__ import annotations

import threading

import pytest

from conftest import put, take, until
from pgaq import db

# ANALYZE of a table of ours empties the cache
SETTINGS = {"max_prepared_transactions": "5", "pgaq.row_cache_rows": "64", "autovacuum": "off"}
VALUE = "SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT'"


def properties(conn):
    return db.value(conn, "SELECT count(*) FROM sys.database_properties")


def counts(conn, cache="dc_props"):
    return conn.execute("""SELECT gets, getmisses FROM sys."v$rowcache" WHERE parameter = %s""", [cache]).fetchone()


def latch_gets(conn):
    return db.value(
        conn,
        """SELECT l.gets FROM sys."v$latch_children" l JOIN sys."v$rowcache" r ON r.latch_child = l."child#"
        WHERE l.name = 'row cache objects' AND r.parameter = 'dc_props'""",
    )


def serialize(server, by):
    server.configure(**{"pgaq.row_cache_serialization": by})
    server.reload()
    with server.connect() as conn:
        until(lambda: db.value(conn, "SHOW pgaq.row_cache_serialization") == by, "the reload")


class Readers:
    """Sessions that read the properties over and over, and count how often."""

    def __init__(self, server, number):
        self.server, self.over, self.executions, self.failures = server, threading.Event(), [0] * number, []
        self.threads = [threading.Thread(target=self.read, args=[n]) for n in range(number)]

    def read(self, number):
        try:
            with self.server.connect() as conn:
                while not self.over.is_set():
                    assert len(conn.execute(VALUE).fetchall()) == 1
                    self.executions[number] += 1
        except Exception as error:  # noqa: BLE001
            self.failures.append(repr(error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def more(self, number):
        goal = sum(self.executions) + number
        until(lambda: sum(self.executions) >= goal or self.failures, f"{number} executions")

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert self.failures == []


@pytest.mark.parametrize("by", ["mutex", "latch"])
def test_every_get_is_counted(server, conn, by):
    """As many gets as executions times properties, no more and no less, however many sessions there are."""
    serialize(server, by)
    each = properties(conn)
    gets, misses = counts(conn)
    latch = latch_gets(conn)
    with Readers(server, 6) as readers:
        readers.more(3000)
    total = sum(readers.executions) * each
    assert counts(conn) == (gets + total, misses)
    assert latch_gets(conn) - latch == (3 * total if by == "latch" else 0)


def test_switched_while_sessions_are_inside(server, conn):
    """The count is exact over ten switches between the two, and what is read is right."""
    each = properties(conn)
    gets, _ = counts(conn)
    with Readers(server, 4) as readers:
        for n in range(10):
            serialize(server, ("latch", "mutex")[n % 2])
            readers.more(200)
    assert counts(conn)[0] == gets + sum(readers.executions) * each


def test_changes_under_load(server, conn):
    """After a commit every session sees its changes; no session sees uncommitted or rolled back changes."""
    with Readers(server, 3) as readers, server.connect() as other:
        for n in range(200):
            conn.execute("BEGIN")
            db.execute(conn, "SELECT aq.set_property('NLS_SORT', %s)", [f"S{n}"])
            assert db.value(conn, VALUE) == f"S{n}"
            assert db.value(other, VALUE) == (f"S{n - 2 + n % 2}" if n else "BINARY")
            conn.execute("ROLLBACK" if n % 2 else "COMMIT")
            assert db.value(other, VALUE) == f"S{n - n % 2}"
            readers.more(1)
    with server.connect() as later:  # which has never heard of any change
        assert db.value(later, VALUE) == "S198"
    db.execute(conn, "SELECT aq.set_property('NLS_SORT', NULL)")


def test_prepared(server, conn):
    """No session sees a prepared change until it is committed, by any session."""
    with server.connect() as other:
        db.value(other, VALUE)
        conn.execute("BEGIN")
        db.execute(conn, "SELECT aq.set_property('NLS_SORT', 'PREPARED')")
        conn.execute("PREPARE TRANSACTION 'p'")
        assert db.value(conn, VALUE) == db.value(other, VALUE) == "BINARY"
        other.execute("COMMIT PREPARED 'p'")
        assert db.value(conn, VALUE) == db.value(other, VALUE) == "PREPARED"
    db.execute(conn, "SELECT aq.set_property('NLS_SORT', NULL)")
    assert db.value(conn, VALUE) == "BINARY"


def test_each_database_has_its_own(server, conn):
    conn.execute("CREATE DATABASE second")
    with server.connect("second") as second:
        second.execute("CREATE EXTENSION pgaq_oracle CASCADE")
        db.execute(conn, "SELECT aq.set_property('NLS_SORT', 'FIRST')")
        db.execute(second, "SELECT aq.set_property('NLS_SORT', 'SECOND')")
        assert (db.value(conn, VALUE), db.value(second, VALUE)) == ("FIRST", "SECOND")
    conn.execute("DROP DATABASE second")
    db.execute(conn, "SELECT aq.set_property('NLS_SORT', NULL)")


def test_more_rows_than_places(conn):
    """Names of queues push each other out, and are found all the same."""
    conn.execute("SET pgaq.session_pins = off")
    for n in range(100):
        db.execute(conn, "SELECT aq.create_queue(%s)", [f"q{n}"])
        put(conn, f"q{n}", n)
    for n in range(100):
        assert take(conn, f"q{n}") == [n]
    assert db.value(conn, """SELECT sum(usage) FROM sys."v$rowcache" """) <= 64
    for n in range(100):
        db.execute(conn, "SELECT aq.drop_queue(%s)", [f"q{n}"])


def test_hot_rows_have_clones(server, conn):
    """With a threshold of one sleep, rows that sessions meet at are cloned; changes reach the clones; counts stay exact."""
    serialize(server, "mutex")
    server.configure(**{"pgaq.row_cache_clone_sleeps": "1", "pgaq.mutex_spin_count": "1", "pgaq.mutex_wait_scheme": "0"})
    server.reload()
    each = properties(conn)
    gets, _ = counts(conn)
    with Readers(server, 6) as readers:
        until(lambda: db.value(conn, """SELECT sum(clones) FROM sys."v$rowcache" """) > 0 or readers.failures, "a clone", 120)
    assert counts(conn)[0] == gets + sum(readers.executions) * each
    db.execute(conn, "SELECT aq.set_property('NLS_SORT', 'CLONED')")
    connections = [server.connect() for _ in range(8)]
    try:
        assert {db.value(each, VALUE) for each in connections} == {"CLONED"}
    finally:
        for each in connections:
            each.close()
    db.execute(conn, "SELECT aq.set_property('NLS_SORT', NULL)")
    server.configure(**{"pgaq.row_cache_clone_sleeps": "0", "pgaq.mutex_spin_count": "255", "pgaq.mutex_wait_scheme": "2"})
    server.reload()
