"""Leases: sessions, the worker and the server end while a lease is taken, finished, or ended by time."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

import conftest
from conftest import PATIENCE, arrived, generation, held, put, server_with_points, take, until, waiting_for
from pgaq import db
from pgaq_proof import faults
from test_leases import Leased, states

pytestmark = [pytest.mark.long, pytest.mark.test_build]

# call, what comes behind its receipt, the message's state when it has committed
CALLS = {
    "acknowledge": ("acknowledge", "", []),
    "extend": ("extend", ", '2 hours'", [(1, "LEASED", 1)]),
    "release": ("release", "", [(1, "READY", 1)]),
    "release later": ("release", ", delay => '1 hour'", [(1, "WAITING", 1)]),
    "release unseen": ("release", ", count => false", [(1, "READY", 0)]),
    "reject": ("reject", "", []),
}
ENDS = ["error", "cancel", "terminate", "crash"]
HELD = ["terminate", "crash"]


@pytest.fixture
def leases_server(library, monkeypatch):
    with server_with_points(
        monkeypatch, library, "lease-points", r"test point|terminat|cancel|crash|signal 9", max_prepared_transactions=10
    ) as server:
        yield server


@contextlib.contextmanager
def fresh(server, name="q", **options):
    """A session, and a queue with one message."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('dead')")
        db.execute(conn, "SELECT aq.create_queue(%s, retry_delay => '0', exception_queue => 'dead')", [name])
        put(conn, name, 1, **options)
        yield conn


def drop(server, *queues):
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.drop_queue(q, force => true) FROM unnest(%s::text[]) q", [list(queues) or ["q", "dead"]])


def check_dead(conn, call, committed, where):
    """A rejected message arrives in the exception queue, once; no other does."""
    if committed and call == "reject":
        until(lambda: take(conn, "dead") == [1], f"the rejected message: {where}")
    assert take(conn, "dead") == [], where


def befall(server, point, action, work):
    """A session does the work and meets with the action at the point, which befalls no other session."""
    before = until(lambda: generation(server), "the server")
    with contextlib.suppress(db.Error), server.connect() as other:
        if point == "prepared-finished" or point == "before-prepare":
            other.execute(f"SET pgaq.test_point = '{point}:{action}'")
            work(other)
        else:
            other.execute(f"BEGIN; SET LOCAL pgaq.test_point = '{point}:{action}'")  # the commit of SET would meet with it, too
            work(other)
            other.execute("COMMIT")
    if action == "crash":
        until(lambda: generation(server) not in (None, before), f"a crash at {point}")


def cases(first):
    """Where a call can end, how, and whether it has committed then."""
    for point in (first,) if conftest.on_queue_tables else (first, "before-log", "after-log"):
        for action in ENDS:
            yield point, action, False
    for action in HELD:
        yield "in-commit-callback", action, True


@pytest.mark.parametrize("call", CALLS)
def test_finishing_ends_early(leases_server, call):
    """Before the commit the lease goes on, with its receipt; from the commit on what was asked for is done."""
    name, more, after = CALLS[call]
    for point, action, committed in cases("leases-held"):
        with fresh(leases_server) as conn:
            leased = Leased(conn, "q", "1 hour")
        befall(leases_server, point, action, lambda other: leased.call(other, name, more))
        with leases_server.connect() as conn:
            where = f"{action} at {point}"
            assert states(conn, "q") == (after if committed else [(1, "LEASED", 1)]), where
            assert leased.acknowledge(conn) == ("done" if not committed or call == "extend" else "stale"), where
            check_dead(conn, call, committed, where)
        drop(leases_server)


def test_taking_ends_early(leases_server):
    """Before the commit it is a dequeue that was rolled back; from the commit on the message is leased, and counts once."""
    for point, action, committed in cases("messages-taken"):
        with fresh(leases_server):
            pass
        befall(leases_server, point, action, lambda other: Leased(other, "q", "1 s"))
        with leases_server.connect() as conn:
            where = f"{action} at {point}"
            if committed:
                assert states(conn, "q") == [(1, "LEASED", 1)], where
            query = "SELECT payload, attempts FROM aq.dequeue('q', wait => '60 s')"
            # who is terminated, or crashes, has not failed: as without a lease
            attempts = 1 if committed or action in ("error", "cancel") else 0
            assert conn.execute(query).fetchall() == [(1, attempts)], where
        drop(leases_server)


def test_taking_the_next_ends_early(leases_server):
    """A dequeue that acknowledges does both, or neither."""
    taken = [case for case in cases("messages-taken") if case[0] == "messages-taken"]
    for point, action, committed in [*cases("leases-held"), *taken]:
        with fresh(leases_server) as conn:
            leased = Leased(conn, "q", "1 hour")
            put(conn, "q", 2)
        query = "SELECT payload FROM aq.dequeue('q', lease => '1 hour', acknowledge => %s::uuid[], receipt => %s)"
        befall(leases_server, point, action, lambda other, args=(leased.ids, leased.receipt): other.execute(query, args))
        with leases_server.connect() as conn:
            where = f"{action} at {point}"
            if committed:
                assert states(conn, "q") == [(2, "LEASED", 1)], where
            else:
                assert states(conn, "q")[0] == (1, "LEASED", 1), where
                assert conn.execute("SELECT payload FROM aq.dequeue('q', wait => '60 s')").fetchall() == [(2,)], where
            assert leased.acknowledge(conn) == ("stale" if committed else "done"), where
        drop(leases_server)


@pytest.mark.parametrize("finish", ["COMMIT PREPARED", "ROLLBACK PREPARED"])
@pytest.mark.parametrize("call", CALLS)
def test_preparing_ends_early(leases_server, call, finish):
    """A call that is not prepared has done nothing; one whose COMMIT PREPARED does not come to settle it is settled by the worker."""
    name, more, after = CALLS[call]
    finished = () if conftest.on_queue_tables else ("error", "terminate", "crash")  # nothing is settled there by the session
    for point, action in [("before-prepare", action) for action in ENDS] + [("prepared-finished", action) for action in finished]:
        with fresh(leases_server) as conn:
            leased = Leased(conn, "q", "1 hour")

        def prepare(other, leased=leased):
            other.execute("BEGIN")
            assert leased.call(other, name, more) == "done"
            other.execute("PREPARE TRANSACTION 'p'")

        prepared = point == "prepared-finished"
        if prepared:
            with leases_server.connect() as conn:
                prepare(conn)
        befall(
            leases_server,
            point,
            action,
            lambda other, work=prepare, prepared=prepared: other.execute(f"{finish} 'p'") if prepared else work(other),
        )
        with leases_server.connect() as conn:
            where = f"{action} at {point}"
            assert conn.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == [], where
            committed = prepared and finish == "COMMIT PREPARED"
            wanted = after if committed else [(1, "LEASED", 1)]
            until(lambda c=conn, w=wanted: states(c, "q") == w, f"the end of what was prepared: {where}")
            until(lambda c=conn, x=leased: (r := x.acknowledge(c)) != "busy" and r, where)
            assert leased.acknowledge(conn) == "stale", where
            check_dead(conn, call, committed, where)
        drop(leases_server)


@pytest.mark.parametrize(
    "point", [pytest.param("leases-found", marks=pytest.mark.sharded("is about memory")), "leases-over", "in-commit-callback"]
)
def test_the_worker_ends_early(leases_server, point):
    """A lease whose end is interrupted ends all the same, once: one attempt, and its receipt is worth nothing."""
    for action in HELD if point in faults.held_points() else ENDS:
        with fresh(leases_server) as conn:
            before = generation(leases_server)
            leased = Leased(conn, "q", "1 s")
            faults.arm(leases_server, point, action)
            with contextlib.suppress(db.Error):
                # no COMMIT meanwhile but the worker's
                assert db.value(conn, "SELECT aq.point_await(%s)", [point])
        if action == "crash":
            until(lambda b=before: generation(leases_server) not in (None, b), f"a crash at {point}")
        with leases_server.connect() as conn:
            conn.execute("SELECT aq.point_reset()")
            got = conn.execute("SELECT payload, attempts FROM aq.dequeue('q', wait => '60 s')").fetchall()
            assert got == [(1, 1)], f"{action} at {point}"
            assert leased.acknowledge(conn) == "stale", f"{action} at {point}"
        drop(leases_server)


def test_acknowledged_while_the_worker_ends_it(leases_server):
    """It is too late."""
    with fresh(leases_server) as conn, held(leases_server, "leases-over") as other:
        leased = Leased(conn, "q", "1 s")
        assert db.value(other, "SELECT aq.point_await('leases-over')")
        assert states(conn, "q") == [(1, "LOCKED", 1)]
        assert leased.acknowledge(conn) == "busy"
        other.execute("SELECT aq.point_reset()")
        assert arrived(conn, "q", 1) == [1]
        assert leased.acknowledge(conn) == "stale"
    drop(leases_server)


def test_acknowledged_when_the_worker_has_failed(leases_server):
    """The lease goes on, with its receipt, until the worker tries again some seconds later."""
    with fresh(leases_server) as conn, held(leases_server, "leases-found") as other:
        leased = Leased(conn, "q", "1 s")
        assert db.value(other, "SELECT aq.point_await('leases-found')")
        assert leased.acknowledge(conn) == "busy"
        faults.arm(leases_server, "leases-over", "error")
        other.execute("SELECT aq.point_release('leases-found')")
        until(lambda: leased.acknowledge(conn) == "done", "the lease")
        assert states(conn, "q") == []
    drop(leases_server)


def test_unsubscribed_while_the_worker_ends_it(leases_server):
    """The message is done for the consumer, and the other one gets it."""
    with leases_server.connect() as conn, held(leases_server, "leases-over") as other:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'a'), aq.subscribe('t', 'b')")
        put(conn, "t", 1)
        Leased(conn, "t", "1 s", consumer="a")
        assert db.value(other, "SELECT aq.point_await('leases-over')")
        db.execute(conn, "SELECT aq.unsubscribe('t', 'a')")
        other.execute("SELECT aq.point_reset()")
        db.execute(conn, "SELECT aq.subscribe('t', 'a')")
        assert arrived(conn, "t", 1, "b") == [1]
        until(lambda: db.value(conn, "SELECT sum(lag) FROM aq.metrics() WHERE queue_name = 't'") == 0, "the end of the lease")
    drop(leases_server, "t")


def test_dropped_while_the_worker_ends_it(leases_server):
    """A drop waits for the worker, and the worker finds what it was about to do."""
    with fresh(leases_server) as conn, ThreadPoolExecutor() as pool, held(leases_server, "leases-over") as other:
        Leased(conn, "q", "1 s")
        assert db.value(other, "SELECT aq.point_await('leases-over')")
        dropped = pool.submit(drop, leases_server)
        until(
            lambda: (
                db.value(other, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0
                or waiting_for(other, "aq: object lock")
                or dropped.done()
            ),
            "the drop",
        )
        other.execute("SELECT aq.point_reset()")
        dropped.result(PATIENCE)
        assert conn.execute("SELECT * FROM aq.check('20 s')").fetchall() == []
