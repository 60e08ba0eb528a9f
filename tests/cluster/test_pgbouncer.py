"""PgBouncer, configured as docs/pgbouncer.md says, with smaller pools."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psycopg
import pytest

from conftest import ROOT, arrived, put, ready, take, until
from pgaq import db, places

PAGE = (ROOT / "docs" / "pgbouncer.md").read_text()
PORT = 6432
SETTINGS = {"max_prepared_transactions": 5}


def program():
    """Of the system, or unpacked by tools/setup."""
    for name in ("pgbouncer", "/usr/sbin/pgbouncer", str(places.UNPACKED / "pgbouncer/usr/sbin/pgbouncer")):
        found = shutil.which(name)
        if found:
            return found
    raise AssertionError("PgBouncer is needed: run tools/setup test")


class PgBouncer:
    """The databases shop and shop_wait of the page are those of the server; each pool has two connections, unless told."""

    def __init__(self, server, pool_size=2, **settings):
        self.server = server
        self.pool_size = pool_size
        self.settings = settings
        self.port = settings.get("listen_port", PORT)
        self.clients = []

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="pgaq-b-", dir="/tmp"))
        (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.S)
        text, pools = re.subn(
            r"host=\S+ dbname=\S+ pool_size=\d+",
            f"host={self.server.socket_dir} port={self.server.port} dbname=postgres pool_size={self.pool_size}",
            text,
        )
        assert pools == 2
        own = {
            "listen_addr": "", "listen_port": self.port, "unix_socket_dir": self.directory, "auth_type": "trust", "auth_file": self.directory / "users",
            "admin_users": "postgres", **self.settings,
        }  # fmt: skip
        (self.directory / "users").write_text('"postgres" ""\n')
        (self.directory / "ini").write_text(text + "".join(f"{key} = {value}\n" for key, value in own.items()))
        for path in (*self.directory.iterdir(), self.directory):
            places.give_to_server(path)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        with open(self.directory / "log", "a") as log:
            self.process = subprocess.Popen(
                [program(), str(self.directory / "ini")], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **places.popen_user()
            )
        self.console = until(self.connect_console, "PgBouncer's console")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect_console(self):
        """None while it does not listen."""
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            return psycopg.connect(self.conninfo("pgbouncer"), autocommit=True)
        except psycopg.OperationalError:
            return None

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def conninfo(self, dbname):
        return f"host={self.directory} port={self.port} dbname={dbname} user=postgres"

    def connect(self, dbname="shop"):
        """A client that does not prepare statements."""
        self.clients.append(psycopg.connect(self.conninfo(dbname), autocommit=True, prepare_threshold=None))
        return self.clients[-1]

    def pool(self, dbname="shop"):
        """A row of SHOW POOLS."""
        cursor = self.console.execute("SHOW POOLS")
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row)) for row in cursor.fetchall()]
        return next((row for row in rows if row["database"] == dbname), {"cl_waiting": 0, "sv_active": 0, "sv_idle": 0})


@pytest.fixture
def bouncer(server):
    with PgBouncer(server) as running:
        yield running


@contextlib.contextmanager
def waiting(bouncer, queue, dbname, timeout="1 minute"):
    """A client waits, and another thread with it; yields its connection and the list of what it has got."""
    client = bouncer.connect(dbname)
    got = []

    def consume():
        with contextlib.suppress(psycopg.Error):
            if client.execute("CALL aq.wait(%s, %s)", [queue, timeout]).fetchone()[0]:
                got.extend(take(client, queue))

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield client, got
    finally:
        thread.join()


def asleep(conn):
    """How many sessions wait for messages."""
    return db.value(conn, "SELECT count(*) FROM sys.v$session_wait WHERE state = 'WAITING' AND event ~ 'waiting for messages'")


def test_clients_share_connections(bouncer, conn, queue):
    """Six clients, two server connections; half of the transactions roll back."""
    clients = [bouncer.connect() for _ in range(6)]
    for number in range(120):
        client = clients[number % 6]
        with contextlib.suppress(psycopg.Rollback), client.transaction():
            put(client, queue, number)
            if number % 2:
                raise psycopg.Rollback
    pids = {db.value(client, "SELECT pg_backend_pid()") for client in clients}
    assert len(pids) <= 2
    assert sorted(arrived(clients[0], queue, 60)) == list(range(0, 120, 2))


def test_trace_context_of_a_command(server, conn, queue):
    """The messages of other clients that use the connection after it do not get it."""
    context = f"00-{'1' * 32}-{'2' * 16}-01"
    with PgBouncer(server, pool_size=1) as bouncer:
        client = bouncer.connect()
        pid = db.value(client, "SELECT pg_backend_pid()")
        words = ["send", "-d", bouncer.conninfo("shop"), queue, "1", "2", "--batch", "1", "--traceparent", context, "--tracestate", "a=1"]
        subprocess.run([sys.executable, "-m", "pgaq", *words], check=True, capture_output=True)
        put(client, queue, 3)
        assert pid == db.value(client, "SELECT pg_backend_pid()")
    rows = conn.execute("SELECT properties FROM aq.dequeue(%s, max_messages => 3) ORDER BY payload", [queue]).fetchall()
    assert rows == [({"traceparent": context, "tracestate": "a=1"},)] * 2 + [(None,)]


def test_a_pool_for_those_that_wait(bouncer, conn, queue):
    """All connections of the other pool wait: enqueues continue, and their messages wake the waiting consumers."""
    with waiting(bouncer, queue, "shop_wait") as (_, first), waiting(bouncer, queue, "shop_wait") as (_, second):
        until(lambda: asleep(conn) == 2, "two clients asleep")
        producer = bouncer.connect("shop")
        put(producer, queue, 1)
        until(lambda: first or second, "a message for a waiting client")
        put(producer, queue, 2)
    assert sorted(first + second) == [1, 2]


def test_a_pool_that_only_waits(bouncer, conn, queue):
    """In the same pool the producer waits for a connection until a wait is over."""
    with waiting(bouncer, queue, "shop") as (_, first), waiting(bouncer, queue, "shop") as (_, second):
        until(lambda: asleep(conn) == 2, "two clients asleep")
        producer = bouncer.connect("shop")
        thread = threading.Thread(target=put, args=(producer, queue, 1, 2))
        thread.start()
        until(lambda: bouncer.pool()["cl_waiting"] == 1, "the producer waits for a connection")
        assert not ready(conn, queue)
        put(conn, queue, 0)
        thread.join()
    assert sorted(first + second + take(conn, queue)) == [0, 1, 2]


def test_a_client_that_goes_while_it_waits(bouncer, conn, queue):
    """Its server connection ends, so the next message wakes the other consumer."""
    script = f"import psycopg; psycopg.connect({bouncer.conninfo('shop_wait')!r}, autocommit=True).execute('CALL aq.wait(%s)', [{queue!r}])"
    client = subprocess.Popen([str(ROOT / "tools" / "python"), "-c", script])
    until(lambda: asleep(conn) == 1, "the client asleep")
    client.send_signal(signal.SIGKILL)
    client.wait()
    until(lambda: asleep(conn) == 0, "the end of its wait")
    with waiting(bouncer, queue, "shop_wait") as (_, got):
        until(lambda: asleep(conn) == 1, "another client asleep")
        put(conn, queue, 1)
    assert got == [1]


def test_order_of_a_producer(server, conn, queue):
    """Its transactions run in the server connections by turns, and its messages come in order."""
    with PgBouncer(server, server_round_robin=1) as bouncer:
        client = bouncer.connect()
        with bouncer.connect().transaction():
            put(client, queue, 0, producer="till 1")
        pids = set()
        for number in range(1, 40):
            with client.transaction():
                put(client, queue, number, producer="till 1")
                pids.add(db.value(client, "SELECT pg_backend_pid()"))
        assert len(pids) == 2
    assert take(conn, queue) == list(range(40))


@pytest.mark.parametrize("mode", ["persistent", "buffered"])
def test_producers_take_turns(server, conn, queue, mode):
    """Transactions of several clients at once: those of a producer in the order of their calls."""
    order = {name: [] for name in "ab"}

    def produce(name, first):
        with server.connect() as client:
            for number in range(first, first + 30):
                with client.transaction():
                    put(client, queue, [name, number], producer=name, delivery_mode=mode)
                    order[name].append(number)  # while the producer's lock is held
                    put(client, queue, [name, -number], producer=name, delivery_mode=mode)

    threads = [threading.Thread(target=produce, args=(name, first)) for name in "ab" for first in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    query = "SELECT payload FROM aq.dequeue(%s, max_messages => 1000, delivery_mode => %s)"
    got = [payload for (payload,) in conn.execute(query, [queue, mode])]
    for name in "ab":
        assert [n for producer, n in got if producer == name] == [m for n in order[name] for m in (n, -n)]


def test_prepared_transaction_of_a_producer(bouncer, conn, queue):
    """The producer's next transaction waits for COMMIT PREPARED, and its messages come later."""
    client = bouncer.connect()
    client.execute("BEGIN")
    put(client, queue, 1, producer="till 1")
    client.execute("PREPARE TRANSACTION 'till'")
    thread = threading.Thread(target=put, args=(client, queue, 2), kwargs={"producer": "till 1"})
    thread.start()
    until(lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 1, "the second transaction waits")
    put(conn, queue, 3, producer="till 2")
    assert take(conn, queue) == [3]
    conn.execute("COMMIT PREPARED 'till'")
    thread.join()
    assert arrived(conn, queue, 2) == [1, 2]


def test_lock_timeout_of_a_producer(server, conn, queue):
    with server.connect() as other, conn.transaction():
        put(conn, queue, 1, producer="till 1")
        other.execute("SET lock_timeout = '10 ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            put(other, queue, 2, producer="till 1")
        put(other, queue, 3, producer="till 2")
        assert take(other, queue) == [3]


def test_session_mode(server, queue, conn):
    """A server connection goes from client to client, with DISCARD ALL between."""
    with PgBouncer(server, pool_mode="session", default_pool_size=1) as bouncer:
        pids = set()
        for number in range(10):
            with psycopg.connect(bouncer.conninfo("shop"), autocommit=True) as client:
                put(client, queue, number)
                assert take(client, queue) == [number]
                pids.add(db.value(client, "SELECT pg_backend_pid()"))
        assert len(pids) <= 2
