"""External disturbances of a queue: sessions, slots and dumps that hold back xmin.

Each is a context manager; what it names is held from its beginning to its end.
"""

from __future__ import annotations

import fcntl
import struct
import subprocess
import tempfile
import termios
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from pgaq import db, places
from pgaq.server import Server

SLOT = "pgaq_held"
TRANSACTION = "pgaq_held"
PIPE = 65536  # bytes that fit into one


class Hold:
    """Callbacks of a holder: `turn` is called from time to time, `ended` once at the end."""

    def __init__(self) -> None:
        self.dumps = 0  # complete ones

    def turn(self) -> None:
        """Whatever must be done regularly while it is held."""


@contextmanager
def none(server: Server) -> Iterator[Hold]:
    """Nothing."""
    yield Hold()


@contextmanager
def idle(server: Server) -> Iterator[Hold]:
    """A transaction that has written and is now idle."""
    with server.connect() as conn:
        conn.execute("BEGIN; SELECT pg_current_xact_id()")
        yield Hold()
        conn.execute("ROLLBACK")


@contextmanager
def repeatable_read(server: Server) -> Iterator[Hold]:
    """A reader that keeps its snapshot."""
    with server.connect() as conn:
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT 1")
        yield Hold()
        conn.execute("ROLLBACK")


@contextmanager
def prepared(server: Server) -> Iterator[Hold]:
    """A prepared transaction that is never finished."""
    with server.connect() as conn:
        conn.execute(f"BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '{TRANSACTION}'")
        yield Hold()
        conn.execute(f"ROLLBACK PREPARED '{TRANSACTION}'")


@contextmanager
def logical_slot(server: Server) -> Iterator[Hold]:
    """A logical replication slot without a reader: it holds catalog_xmin, and all WAL."""
    with server.connect() as conn:
        conn.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", [SLOT])
        yield Hold()
        conn.execute("SELECT pg_drop_replication_slot(%s)", [SLOT])


class _Slot(Hold):
    def __init__(self, conn: db.Connection) -> None:
        super().__init__()
        self._conn = conn

    def turn(self) -> None:
        """The slot keeps xmin, not the WAL of hours: that would fill the disk."""
        self._conn.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", [SLOT])


@contextmanager
def slot(server: Server) -> Iterator[Hold]:
    """The replication slot of a removed standby with hot_standby_feedback: it holds xmin and catalog_xmin."""
    with server.connect() as conn:
        conn.execute("SELECT pg_create_physical_replication_slot(%s, true)", [SLOT])
        stream = _feedback(server, int(db.value(conn, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text")))
        try:
            _await_slot(conn, "xmin IS NOT NULL")
        finally:
            stream.close()
        _await_slot(conn, "NOT active")
        yield _Slot(conn)
        conn.execute("SELECT pg_drop_replication_slot(%s)", [SLOT])


def _await_slot(conn: db.Connection, condition: str) -> None:
    deadline = time.monotonic() + 30
    while not db.value(conn, f"SELECT {condition} FROM pg_replication_slots WHERE slot_name = %s", [SLOT]):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not so for 30 s: {condition} of the slot")
        time.sleep(0.01)


@contextmanager
def standby(server: Server, with_slot: bool = True) -> Iterator[Hold]:
    """A connected standby with hot_standby_feedback and an old snapshot on it."""
    with server.connect() as conn:
        if with_slot:
            conn.execute("SELECT pg_create_physical_replication_slot(%s, true)", [SLOT])
        stream = _feedback(server, int(db.value(conn, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text")), with_slot)
        try:
            yield Hold()
        finally:
            stream.close()
        if with_slot:
            _await_slot(conn, "NOT active")
            conn.execute("SELECT pg_drop_replication_slot(%s)", [SLOT])


def _feedback(server: Server, xmin: int, with_slot: bool = True) -> db.Connection:
    """Say what a standby says of the oldest snapshot on it (protocol: hot standby feedback message).

    The caller closes the connection when it has taken effect: what is on its way is lost with it.
    """
    conn = server.connect(replication="true")
    try:
        # from here on libpq alone: a stream is nothing psycopg knows
        plain = conn.pgconn
        position = plain.exec_(b"IDENTIFY_SYSTEM").get_value(0, 2).decode()
        slot = f"SLOT {SLOT} " if with_slot else ""
        answer = plain.exec_(f"START_REPLICATION {slot}PHYSICAL {position}".encode())
        if answer.error_message:
            raise RuntimeError(f"the slot could not be used: {answer.error_message.decode()}")
        epoch, xid = divmod(xmin, 1 << 32)
        plain.put_copy_data(struct.pack("!cqIIII", b"h", 0, xid, epoch, xid, epoch))
        plain.flush()
        return conn
    except BaseException:
        conn.close()
        raise


@contextmanager
def dump(server: Server) -> Iterator[Hold]:
    """One pg_dump after the other."""
    hold = Hold()
    stopping = threading.Event()
    failures: list[str] = []

    def work() -> None:
        while not stopping.is_set() and not failures:
            done = server.run("pg_dump", "--format=custom", "--compress=0", "--no-sync", "--file=/dev/null")
            if done.returncode == 0:
                hold.dumps += 1
            else:
                failures.append(done.stderr)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield hold
    finally:
        stopping.set()
        thread.join()
    if failures:
        raise RuntimeError(f"pg_dump failed: {failures[0]}")


def _unread(pipe: int) -> int:
    """Bytes that lie in a pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


@contextmanager
def slow_dump(server: Server) -> Iterator[Hold]:
    """One pg_dump that does not end, because its output is not read: it holds a lock on every table."""
    with server.connect() as conn, tempfile.TemporaryDirectory() as directory:
        conn.execute("CREATE TABLE pgaq_ballast AS SELECT repeat(n::text, 1000) AS filler FROM generate_series(1, 1000) n")
        said = (Path(directory) / "stderr").open("w+")
        process = subprocess.Popen([places.program("pg_dump")], env=server.environment(), stdout=subprocess.PIPE, stderr=said, text=True)
        deadline = time.monotonic() + 60
        while _unread(process.stdout.fileno()) < PIPE - 8192:
            if time.monotonic() > deadline or process.poll() is not None:
                process.kill()
                raise RuntimeError(f"pg_dump does not get to its data: {Path(said.name).read_text()}")
            time.sleep(0.01)
        hold = Hold()
        try:
            yield hold
            for _ in process.stdout:
                pass
            if process.wait() != 0:
                raise RuntimeError(f"pg_dump failed: {Path(said.name).read_text()}")
            hold.dumps = 1
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            said.close()
        conn.execute("DROP TABLE pgaq_ballast")


HOLDERS: dict[str, Callable[[Server], object]] = {
    "none": none, "idle": idle, "repeatable-read": repeatable_read, "prepared": prepared, "slot": slot,
    "logical-slot": logical_slot, "dump": dump, "slow-dump": slow_dump,
}  # fmt: skip

# The age of the oldest xmin, in transactions, of whatever kind.
AGE = """
    SELECT max(age) FROM (
        SELECT greatest(age(backend_xmin), age(backend_xid)) AS age FROM pg_stat_activity WHERE backend_type <> 'pgaq worker'
        UNION ALL SELECT greatest(age(xmin), age(catalog_xmin)) FROM pg_replication_slots
        UNION ALL SELECT age(transaction) FROM pg_prepared_xacts) x
"""


def oldest_xmin(conn: db.Connection) -> int:
    """How many transactions ago the oldest xmin of the server is."""
    return db.value(conn, AGE) or 0
