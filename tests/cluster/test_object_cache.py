"""The object cache with room for few queues: loading, making room, changing and dropping at the same time."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

import conftest
from conftest import arrived, generation, make_server, put, take, until
from pgaq import db

SETTINGS = {"pgaq.max_queues": "16"}
QUEUES = 40


def names():
    return [f"q{n}" for n in range(QUEUES)]


@pytest.fixture
def forty(server):
    with server.connect() as conn:
        for name in names():
            db.execute(conn, "SELECT aq.create_queue(%s)", [name])
    yield names()
    with server.connect() as conn:
        for (name,) in conn.execute("SELECT queue_name FROM aq_internal.queue WHERE queue_type = 'normal'").fetchall():
            db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


def in_memory(conn):
    return db.value(conn, """SELECT count(*) FROM sys."v$db_object_cache" """)


def test_more_queues_than_places(conn, forty):
    """Each has what was put into it, in order, however often it has left memory."""
    for round in range(3):
        for n, name in enumerate(forty):
            put(conn, name, [n, round])
        assert in_memory(conn) <= 16
    for n, name in enumerate(forty):
        assert take(conn, name) == [[n, 0], [n, 1], [n, 2]]
    # reloads is a lower bound: of objects with one place in the hash table it remembers only the last that was evicted
    aged_out, reloads = conn.execute("""SELECT aged_out, reloads FROM sys."v$librarycache" """).fetchone()
    assert aged_out >= 4 * QUEUES - 16
    assert aged_out >= reloads > 0


def test_what_is_pinned_stays(server, conn, forty):
    """A queue used by an open transaction, or with a waiting session, is not evicted; if all are pinned, there is an
    error."""
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, "q0", "open")
        for name in forty[1:]:
            put(conn, name, 1)
        addresses = """SELECT addr, loads FROM sys."v$db_object_cache" WHERE name = 'Q0'"""
        assert db.value(conn, """SELECT pins FROM sys."v$db_object_cache" WHERE name = 'Q0'""") == 1
        before = conn.execute(addresses).fetchall()
        for name in forty[1:]:
            assert take(conn, name) == [1]
        assert conn.execute(addresses).fetchall() == before
        other.execute("COMMIT")
        assert take(conn, "q0") == ["open"]
        other.execute("BEGIN")
        with pytest.raises(db.Error) as caught:
            for name in forty:
                put(other, name, 2)
        assert caught.value.sqlstate == "53400" and "pgaq.max_queues" in caught.value.diag.message_hint
        other.execute("ROLLBACK")
        for name in forty:
            put(other, name, 2)
            assert take(conn, name) == [2]


def test_views_push_nothing_out(server, conn, forty):
    """Views of more queues than fit into memory show all of them, do not fail, keep no pins and block no session."""
    partitions = 0 if conftest.on_queue_tables else QUEUES
    with server.connect() as first:  # an idle session would keep up to twelve pins
        for name in forty:
            put(first, name, name)
    with server.connect() as other, server.connect() as user:
        # places that no view may wait for
        user.execute("BEGIN")
        for name in forty[:11]:
            put(user, name, "open")
        aged_out = """SELECT aged_out FROM sys."v$librarycache" """
        before = db.value(conn, aged_out)
        other.execute("SET statement_timeout = '20 s'; BEGIN")
        views = [
            name
            for (name,) in conn.execute("""SELECT oid::regclass::text FROM pg_class WHERE relkind = 'v'
                 AND relnamespace IN ('aq'::regnamespace, 'sys'::regnamespace) AND pg_get_viewdef(oid) ~ 'queue|subscriber'""").fetchall()
        ]
        assert {"aq.subscribers", "aq.partitions", "aq.shards", "aq.messages", 'sys."v$persistent_queues"'} <= set(views)
        for view in views:
            other.execute(f"SELECT * FROM {view}")
        shown = other.execute("SELECT count(*), count(lag) FROM aq.subscribers").fetchone()
        assert shown[0] == db.value(conn, "SELECT count(*) FROM aq_internal.queue") and 11 <= shown[1] < 17, shown
        assert other.execute("SELECT count(DISTINCT queue_name) FROM aq.partitions").fetchone() == (partitions,)
        read = other.execute("SELECT queue_name, payload FROM aq.messages WHERE queue_name ~ '^q'").fetchall()
        assert sorted(read) == sorted((name, f'"{name}"') for name in forty)
        assert db.value(conn, aged_out) == before
        # the view's transaction is open, and so is the user's
        for name in forty[11:]:
            put(conn, name, 2)
        other.execute("COMMIT")
        user.execute("COMMIT")


def test_what_has_something_to_do_stays(conn, forty):
    """Delayed messages, expirations and retries are on time though the queue was not used for longest."""
    db.execute(conn, "SELECT aq.create_queue('dead'), aq.alter_queue('q1', exception_queue => 'dead')")
    put(conn, "q0", "delayed", delay="0.5 s")
    put(conn, "q1", "mortal", expiration="0.5 s")
    db.execute(conn, "SELECT aq.alter_queue('q2', retry_delay => '0.3 s')")
    put(conn, "q2", "again")
    conn.execute("BEGIN")
    assert take(conn, "q2") == ["again"]
    conn.execute("ROLLBACK")
    for name in forty[3:]:
        put(conn, name, 1)
    assert arrived(conn, "q0", 1) == ["delayed"]
    assert arrived(conn, "dead", 1) == ["mortal"]
    assert arrived(conn, "q2", 1) == ["again"]


class Users:
    """Sessions that use random queues and keep a ledger; every number is unique."""

    def __init__(self, server, forty, rng, kept):
        self.server, self.names, self.seed, self.kept = server, forty, rng.randrange(1 << 30), kept
        self.sent, self.doubtful, self.got, self.failures, self.pids = set(), set(), [], [], []
        self.lock = threading.Lock()
        self.over = threading.Event()

    def use(self, number):
        rng = random.Random(self.seed + number)
        count = 0
        try:
            with self.server.connect() as conn:
                self.pids.append(conn.info.backend_pid)
                conn.execute(f"SET pgaq.session_pins = {rng.choice(['on', 'off']) if self.kept is None else self.kept}")
                while not self.over.is_set():
                    count += 1
                    self.step(conn, rng, number * 1_000_000 + count)
        except db.OperationalError:
            pass  # the server was killed
        except Exception as error:  # noqa: BLE001
            self.failures.append(repr(error))

    def step(self, conn, rng, value):
        name = rng.choice(self.names)
        what = rng.random()
        if what < 0.45:
            self.doubtful.add(value)
            put(conn, name, value)
            with self.lock:
                self.sent.add(value)
            self.doubtful.discard(value)
        elif what < 0.55:
            conn.execute("BEGIN")
            put(conn, name, -value)
            taken = take(conn, rng.choice(self.names), number=2)
            assert all(n > 0 or n == -value for n in taken)
            conn.execute("ROLLBACK")
        elif what < 0.6:
            conn.execute("BEGIN")
            db.execute(conn, "SELECT aq.alter_queue(%s, comment => 'changed')", [name])
            conn.execute(rng.choice(["COMMIT", "ROLLBACK"]))
        elif what < 0.63:
            db.execute(
                conn, rng.choice(["CALL dbms_shared_pool.markhot(NULL, %s)", "CALL dbms_shared_pool.unmarkhot(NULL, %s)"]), [self.names[0]]
            )
        else:
            taken = take(conn, name, number=3)
            with self.lock:
                self.got += taken

    def run(self, sessions, enough):
        threads = [threading.Thread(target=self.use, args=[number]) for number in range(1, sessions + 1)]
        for thread in threads:
            thread.start()
        enough(self)
        self.over.set()
        for thread in threads:
            thread.join()
        assert self.failures == []

    def check(self, conn, missing=0):
        """All that was sent, once; of what was under way when the server died, either."""
        for name in self.names:
            self.got += arrived_all(conn, name)
        assert len(self.got) == len(set(self.got)), "delivered twice"
        assert len(self.sent - set(self.got)) <= missing, "lost"
        assert set(self.got) <= self.sent | self.doubtful, "from nowhere"


def arrived_all(conn, name):
    """The existing messages.  A dequeue leaves those out whose retry count the worker cannot write yet, for lack of memory."""
    taken = []

    def nothing_left():
        taken.extend(take(conn, name))
        return db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state <> 'PROCESSED'", [name]) == 0

    until(nothing_left, f"{name} empty")
    return taken


@pytest.mark.parametrize("kept", ["off", None])
def test_load_change_and_make_room_at_the_same_time(server, conn, forty, seed, kept):
    users = Users(server, forty[:24], random.Random(seed), kept)
    # at most at a time: two queues of each session, one of the worker, the hot one with its copies; more would be an error
    users.run(5, lambda u: until(lambda: len(u.sent) > 1000 or u.failures, "a thousand messages"))
    users.check(conn)
    until(lambda: in_memory(conn) > 0, "the cache")
    query = """SELECT count(*) FROM sys."v$libcache_locks" WHERE mode_requested > 0 OR mode_held = 3"""
    assert db.value(conn, query) == 0


def test_kill_in_the_middle(seed):
    """kill -9 of a session: the cache begins anew, nothing is lost or delivered twice."""
    own = make_server("killed", **SETTINGS)
    own.expect_log("terminat|crash|signal 9")
    sessions = 4
    try:
        with own.connect() as conn:
            for name in names():
                db.execute(conn, "SELECT aq.create_queue(%s)", [name])
        users = Users(own, names()[:24], random.Random(seed), "off")

        def enough(users):
            until(lambda: len(users.sent) > 300 or users.failures, "messages")
            before = generation(own)
            os.kill(users.pids[0], signal.SIGKILL)
            until(lambda: generation(own) not in (None, before), "a restart")

        users.run(sessions, enough)
        with own.connect() as conn:
            # each session may have lost the answer to one dequeue, of up to three messages
            users.check(conn, missing=3 * sessions)
        assert own.problems() == []
    finally:
        own.destroy()
