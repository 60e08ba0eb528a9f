"""Sessions behind a transaction pooler: every transaction may run in another server session."""

from __future__ import annotations

import random

from conftest import arrived, put, ready, take, until
from pgaq import db


class Pool:
    """Gives each transaction a server session as a transaction pooler does."""

    def __init__(self, server, size, seed):
        self.sessions = [server.connect() for _ in range(size)]
        self.rng = random.Random(seed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for session in self.sessions:
            session.close()

    def transaction(self):
        return self.rng.choice(self.sessions)


def test_alternating_sessions(server, queue, seed):
    """Nothing depends on what an earlier transaction of the same client left in its session."""
    with Pool(server, 5, seed) as pool:
        sent, got = 0, []
        for _ in range(300):
            session = pool.transaction()
            session.execute("BEGIN")
            put(session, queue, sent, sent + 1)
            if pool.rng.random() < 0.2:
                session.execute("ROLLBACK")
            else:
                session.execute("COMMIT")
                sent += 2
            session = pool.transaction()
            session.execute("BEGIN")
            some = take(session, queue, number=2)
            if pool.rng.random() < 0.2:
                session.execute("ROLLBACK")
            else:
                session.execute("COMMIT")
                got += some
        got += arrived(pool.transaction(), queue, sent - len(got))
        assert sorted(got) == list(range(sent))


def test_discard_all_between_transactions(server, queue):
    """Poolers reset a session with DISCARD ALL: rights, caches and prepared statements are found again."""
    with server.connect() as session:
        for number in range(20):
            put(session, queue, number)
            session.execute("DISCARD ALL")
            session._prepared.clear() if hasattr(session, "_prepared") else None
            assert take(session, queue) == [number]
            session.execute("DISCARD ALL")


def test_order_of_a_session_is_that_of_the_server_session(server, conn, queue, seed):
    """Through one server session the order is kept for all clients."""
    with server.connect() as shared:
        put(shared, queue, *range(100))
    assert take(conn, queue) == list(range(100))


def test_wait_needs_no_session_state(server, queue, seed):
    with Pool(server, 3, seed) as pool:
        for number in range(20):
            put(pool.transaction(), queue, number)
            assert ready(pool.transaction(), queue, timeout="30 s")
            assert take(pool.transaction(), queue) == [number]


def test_role_of_the_moment_decides(server, conn, queue):
    """SET ROLE by the pooler's next client: the right is checked at each call."""
    conn.execute("CREATE ROLE pool_in; CREATE ROLE pool_none")
    db.execute(conn, "SELECT aq.grant_queue(%s, 'pool_in', 'enqueue')", [queue])
    for _ in range(3):
        conn.execute("SET ROLE pool_in")
        put(conn, queue, 1)
        conn.execute("SET ROLE pool_none")
        try:
            put(conn, queue, 2)
            raise AssertionError("let in")
        except db.Error as error:
            assert error.sqlstate == "42704"
    conn.execute("RESET ROLE")
    assert take(conn, queue) == [1, 1, 1]
    db.execute(conn, "SELECT aq.revoke_queue(%s, 'pool_in', 'enqueue')", [queue])
    conn.execute("DROP ROLE pool_in; DROP ROLE pool_none")
