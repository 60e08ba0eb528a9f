"""Traces of other sessions: who may, what happens when either side ends, and that every row tells what was done."""

from __future__ import annotations

import itertools
import os
import signal

import pytest

from conftest import at_rest, background, generation, put, take, until
from pgaq import db
from test_wait import Waiter, asleep

SETTINGS = {"pgaq.max_traces": "3", "pgaq.trace_rows": "100", "pgaq.fetch_patience": "-1"}
ROLES = itertools.count(1)


def start(conn, pid):
    db.execute(conn, "SELECT aq.trace_start(%s)", [pid])


def stop(conn, pid):
    db.execute(conn, "SELECT aq.trace_stop(%s)", [pid])


def head(conn, pid):
    return db.row(conn, "SELECT * FROM aq.traces WHERE pid = %s", [pid])


def pid_of(conn):
    return conn.info.backend_pid


def refused(conn, state, query, parameters=()):
    """The query fails with this SQLSTATE; returns the error."""
    with pytest.raises(db.Error) as caught:
        conn.execute(query, parameters)
    assert caught.value.sqlstate == state, f"{caught.value.sqlstate} {caught.value}"
    return caught.value


@pytest.fixture(autouse=True)
def no_traces_left(request):
    """Every test begins with all places free."""
    yield
    if "server" in request.fixturenames:
        with request.getfixturevalue("server").connect() as conn:
            db.execute(conn, "SELECT aq.trace_stop(pid) FROM aq.traces")


@pytest.mark.sharded
def test_another_session_is_traced_from_its_next_operation_on(server, conn, queue):
    """A trace started and stopped by another session, while the traced one is idle, has exactly its actions in
    between."""
    with server.connect() as other:
        put(other, queue, 1, 2, 3)
        assert take(other, queue, number=1) == [1]
        start(conn, pid_of(other))
        assert take(other, queue, number=1) == [2]
        stop(conn, pid_of(other))
        assert take(other, queue, number=1) == [3]
        rows = db.rows(conn, "SELECT * FROM aq.trace(%s)", [pid_of(other)])
        assert [(row["operation"], row["action"], row["object"], row["queue"], row["location"]) for row in rows] == [
            ("latch", "get", "shard stream", queue, "dequeue: take"),
            ("latch", "release", "shard stream", queue, "dequeue: take"),
            ("latch", "get", "shard stream", queue, "dequeue: commit"),
            ("latch", "release", "shard stream", queue, "dequeue: commit"),
        ]
        assert [row["sequence"] for row in rows] == [1, 2, 3, 4]
        times = [row["at_ns"] for row in rows]
        assert times == sorted(times) and times[0] > 0
        assert [row["held_ns"] for row in rows[1::2]] == [times[1] - times[0], times[3] - times[2]]


def test_a_session_that_has_not_used_pgaq_yet(server, conn, queue):
    with server.connect() as other:
        start(conn, pid_of(other))
        put(other, queue, 1)
        assert head(conn, pid_of(other))["publications"] == 1
        operations = {row["operation"] for row in db.rows(conn, "SELECT operation FROM aq.trace(%s)", [pid_of(other)])}
        assert {"lock", "pin", "mutex", "latch", "publish"} <= operations
        stop(conn, pid_of(other))


def test_modes_of_locks_and_pins(new_server):
    """The first session that uses a queue loads it under an exclusive pin; a session that drops it locks it
    exclusively."""
    modes = "SELECT DISTINCT operation, mode FROM aq.trace(%s) WHERE operation IN ('lock', 'pin') AND action = 'get' ORDER BY 1, 2"
    # a change empties the dictionary caches, bucket by bucket: more rows than the others' server keeps
    own = new_server("modes")
    with own.connect() as conn, own.connect() as first, own.connect() as second:
        db.execute(conn, "SELECT aq.create_queue('earlier')")
        put(conn, "earlier", 1)
        # in its first round the worker may be the first that uses a queue
        until(lambda: at_rest(conn, "worker"), "the worker has had its first round")
        db.execute(conn, "SELECT aq.create_queue('modes')")
        for session in (first, second):
            start(conn, pid_of(session))
            put(session, "modes", 1)
            stop(conn, pid_of(session))
        assert [tuple(row.values()) for row in db.rows(conn, modes, [pid_of(first)])] == [("lock", "null"), ("pin", "exclusive")]
        assert [tuple(row.values()) for row in db.rows(conn, modes, [pid_of(second)])] == [("lock", "null"), ("pin", "shared")]
        start(conn, pid_of(second))
        db.execute(second, "SELECT aq.drop_queue('modes', force => true)")
        stop(conn, pid_of(second))
        assert ("lock", "exclusive") in [tuple(row.values()) for row in db.rows(conn, modes, [pid_of(second)])]


def test_a_background_worker(conn, queue):
    """The worker's own waits: idle, until it is posted."""
    put(conn, queue, 1)  # otherwise no worker is needed
    pid = until(lambda: background(conn, "worker"), "a worker")
    start(conn, pid)
    put(conn, queue, 1, delay="0.05 s")
    until(lambda: head(conn, pid)["waits"] > 0, "a wait of the worker")
    stop(conn, pid)
    assert head(conn, pid)["role"] is None
    assert db.value(conn, "SELECT count(*) FROM aq.trace(%s) WHERE object = 'aq: worker idle'", [pid]) > 0


def test_publication_and_wake_up(server, conn, queue):
    """A commit's trace says how many messages became ready and who was woken; the woken session's says when its wait ended."""
    waiter = Waiter(server, queue)
    try:
        put(conn, queue, 0)
        assert take(conn, queue) == [0]
        asleep(conn, [waiter.wait()])
        start(conn, waiter.pid)
        start(conn, pid_of(conn))
        put(conn, queue, 1)
        stop(conn, pid_of(conn))
        assert waiter.answer() == "t"
        stop(conn, waiter.pid)
        posts = "SELECT operation, object, number, queue FROM aq.trace(%s) WHERE action = 'post'"
        assert db.rows(conn, posts, [pid_of(conn)]) == [
            {"operation": "publish", "object": "queue", "number": 1, "queue": queue},
            {"operation": "wake-up", "object": "session", "number": waiter.pid, "queue": None},
        ]
        # the wait began before the trace, but its duration is known
        first = db.row(conn, "SELECT * FROM aq.trace(%s) LIMIT 1", [waiter.pid])
        assert (first["operation"], first["action"]) == ("wait", "end")
        assert first["elapsed_ns"] > 0
    finally:
        waiter.close()


def test_one_message_wakes_a_session_once(server, conn, queue):
    """A session that waits for messages of a pattern is woken by each other message, but only once, even if it waits again
    before all sessions are woken."""
    statement = f"SELECT payload FROM aq.dequeue('{queue}', correlation => 'mine%', wait => '60 s')"
    waiters = [Waiter(server, queue, statement=statement) for _ in range(8)]
    pids = [waiter.pid for waiter in waiters]
    # it may wait for a latch as well
    woken = "SELECT count(*) FROM aq.trace(%s) WHERE object = 'Streams AQ: waiting for messages in the queue' AND action = 'end'"
    try:
        put(conn, queue, 0)
        db.execute(conn, "SELECT aq.trace_start(%s, '{wait}')", [pids[0]])
        asleep(conn, [waiter.wait() for waiter in waiters])
        for number in range(1, 6):
            put(conn, queue, number, correlation="other")
            until(lambda: db.value(conn, woken, [pids[0]]) >= number, "it was woken")
            asleep(conn, waiters)
            assert db.value(conn, woken, [pids[0]]) == number
        for number in range(8):
            put(conn, queue, "it", correlation="mine")
        assert [waiter.answer() for waiter in waiters] == ['"it"'] * 8
        stop(conn, pids[0])
    finally:
        for waiter in waiters:
            waiter.close()


@pytest.mark.sharded
def test_rows_are_lost_and_counted(server, conn, queue):
    """A hundred rows are kept, the latest; counters and histograms are of all."""
    with server.connect() as other:
        put(other, queue, *range(70))
        start(conn, pid_of(other))
        for number in range(70):
            assert take(other, queue, number=1) == [number]
        stop(conn, pid_of(other))
        trace = head(conn, pid_of(other))
        assert (trace["latch_gets"], trace["latch_releases"]) == (140, 140)
        assert (trace["rows_written"], trace["rows_lost"]) == (280, 180)
        kept = [row["sequence"] for row in db.rows(conn, "SELECT sequence FROM aq.trace(%s)", [pid_of(other)])]
        assert kept == list(range(181, 281))
        counts = "SELECT measure, sum(count)::int AS n FROM aq.trace_histogram(%s) GROUP BY 1 ORDER BY 1"
        assert db.rows(conn, counts, [pid_of(other)]) == [{"measure": m, "n": 140} for m in ("acquire", "both", "hold")]
        gets = "SELECT location, gets::int, releases::int FROM aq.trace_objects(%s)"
        assert sorted(tuple(row.values()) for row in db.rows(conn, gets, [pid_of(other)])) == [
            ("dequeue: commit", 70, 70),
            ("dequeue: take", 70, 70),
        ]


@pytest.mark.sharded
def test_more_objects_than_profiles(server, conn):
    """The counters stay exact; further objects are summed by class; gets and releases still find each other."""
    db.execute(conn, "SELECT aq.create_queue('many' || n, shards => 1) FROM generate_series(1, 24) n")
    with server.connect() as other:
        start(conn, pid_of(other))
        db.execute(other, "SELECT aq.enqueue('many' || n, '1') FROM generate_series(1, 24) n")
        db.execute(other, "SELECT q.payload FROM generate_series(1, 24) n, LATERAL aq.dequeue('many' || n) q")
        stop(conn, pid_of(other))
        trace = head(conn, pid_of(other))
        assert 256 < trace["objects"] < 320 and trace["unprofiled"] == 0
        assert trace["latch_gets"] == trace["latch_releases"] and trace["mutex_gets"] == trace["mutex_releases"]
        sums = "SELECT sum(gets + failures)::int AS gets, count(*) FILTER (WHERE object = 'shard stream' AND number IS NULL AND queue IS NULL) AS classes FROM aq.trace_objects(%s)"
        counted = sum(
            trace[name] for name in ("lock_gets", "pin_gets", "latch_gets", "latch_failures", "mutex_gets", "mutex_failures", "waits")
        )
        found = db.row(conn, sums, [pid_of(other)])
        assert found["gets"] == counted and found["classes"] > 0
        rows = "SELECT count(*) FROM aq.trace(%s) WHERE operation = 'latch' AND action = 'release' AND held_ns IS NULL"
        assert db.value(conn, rows, [pid_of(other)]) == 0
    db.execute(conn, "SELECT aq.drop_queue('many' || n, force => true) FROM generate_series(1, 24) n")


def test_times_held_however_many_pins(server, conn, queue):
    """A transaction that has a pin for each of many checks: latches and mutexes still tell how long they were held."""
    with server.connect() as other:
        put(other, queue, *range(50))
        db.execute(other, "SET pgaq.session_pins = off")
        db.execute(other, "BEGIN")
        start(conn, pid_of(other))
        for number in range(50):
            assert take(other, queue, number=1) == [number]
        stop(conn, pid_of(other))
        db.execute(other, "COMMIT")
        trace = head(conn, pid_of(other))
        assert trace["pin_gets"] > 64
        unknown = "SELECT count(*) FROM aq.trace(%s) WHERE operation IN ('latch', 'mutex') AND action = 'release' AND held_ns IS NULL"
        assert db.value(conn, unknown, [pid_of(other)]) == 0
        assert trace["latch_gets"] == trace["latch_releases"] and trace["mutex_gets"] == trace["mutex_releases"]


def test_the_traced_session_ends(server, conn, queue):
    """Its trace stays; its number's next owner is not traced."""
    with server.connect() as other:
        pid = pid_of(other)
        start(conn, pid)
        put(other, queue, 1)
    until(lambda: head(conn, pid)["state"] == "session ended", "the end of the session")
    assert db.value(conn, "SELECT count(*) FROM aq.trace(%s) WHERE operation = 'publish'", [pid]) == 1
    written = head(conn, pid)["rows_written"]
    stop(conn, pid)
    with server.connect() as other:
        assert take(other, queue) == [1]
        assert head(conn, pid_of(other)) is None
    assert head(conn, pid)["rows_written"] == written


def test_a_session_that_ends_without_having_used_pgaq(server, conn):
    """The place is not lost."""
    for _ in range(4):
        with server.connect() as other:
            pid = pid_of(other)
            start(conn, pid)
        until(lambda: head(conn, pid)["state"] == "session ended", "the end of the session")


def test_the_tracing_session_ends(server, conn, queue):
    """The trace continues, and another session stops it."""
    with server.connect() as traced:
        with server.connect() as tracer:
            tracer_pid = pid_of(tracer)
            start(tracer, pid_of(traced))
        until(lambda: not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [tracer_pid]), "the tracer's end")
        put(traced, queue, 1)
        assert head(conn, pid_of(traced))["state"] == "running"
        stop(conn, pid_of(traced))
        assert head(conn, pid_of(traced))["publications"] == 1


def test_two_at_once_and_all_places_taken(server, conn):
    """One trace a session; running traces are never given up, stopped ones are, the oldest first."""
    others = [server.connect() for _ in range(5)]
    try:
        pids = [pid_of(other) for other in others]
        start(conn, pids[0])
        assert "aq.trace_stop" in refused(others[1], "55006", "SELECT aq.trace_start(%s)", [pids[0]]).diag.message_hint
        start(conn, pids[1])
        start(conn, pids[2])
        assert "pgaq.max_traces" in refused(conn, "53400", "SELECT aq.trace_start(%s)", [pids[3]]).diag.message_hint
        stop(conn, pids[1])
        stop(conn, pids[0])
        start(conn, pids[3])
        assert {row["pid"] for row in db.rows(conn, "SELECT pid FROM aq.traces")} == {pids[0], pids[2], pids[3]}
        refused(conn, "42704", "SELECT * FROM aq.trace(%s)", [pids[1]])
        # the same session again: its old trace is forgotten, not another's
        stop(conn, pids[2])
        start(conn, pids[2])
        assert {row["pid"] for row in db.rows(conn, "SELECT pid FROM aq.traces")} == {pids[0], pids[2], pids[3]}
    finally:
        for other in others:
            other.close()


def test_the_last_trace_is_reserved_for_monitors(server, conn):
    """Roles without grants cannot keep pg_monitor from tracing, and one cannot keep another one from it."""
    names = [f"tracer{next(ROLES)}" for _ in range(3)]
    for name in names:
        db.execute(conn, f"CREATE ROLE {name} LOGIN")
    db.execute(conn, f"GRANT pg_monitor TO {names[1]}")
    others = [server.connect(user=name) for name in (names[0], names[2], names[0])]
    with server.connect(user=names[1]) as monitor:
        pids = [pid_of(other) for other in others]
        start(others[0], pids[0])
        assert "can trace at most 1 at a time" in refused(others[2], "53400", "SELECT aq.trace_start(%s)", [pids[2]]).diag.message_detail
        start(others[1], pids[1])
        assert "pg_monitor" in refused(others[2], "53400", "SELECT aq.trace_start(%s)", [pids[2]]).diag.message_detail
        start(monitor, pids[2])
        stop(monitor, pids[0])
        refused(others[0], "53400", "SELECT aq.trace_start(%s)", [pids[0]])
        for pid in pids:
            stop(conn, pid)
    for other in others:
        other.close()
    for name in names:
        db.execute(conn, f"DROP ROLE {name}")


def test_who_may_trace(server, conn, queue):
    """A session its own; a role those of roles whose rights it has; pg_monitor and superusers all."""
    names = [f"tracer{next(ROLES)}" for _ in range(4)]
    owner, member, stranger, monitor = names
    for name in names:
        db.execute(conn, f"CREATE ROLE {name} LOGIN")
    db.execute(conn, f"GRANT {owner} TO {member}; GRANT pg_monitor TO {monitor}")
    with (
        server.connect(user=owner) as traced,
        server.connect(user=stranger) as no,
        server.connect(user=member) as yes,
        server.connect(user=monitor) as mon,
    ):
        pid = pid_of(traced)
        hint = refused(no, "42501", "SELECT aq.trace_start(%s)", [pid]).diag.message_hint
        assert "pg_monitor" in hint
        for tracer in (yes, mon, traced, conn):
            start(tracer, pid)
            refused(no, "42501", "SELECT aq.trace_stop(%s)", [pid])
            refused(no, "42501", "SELECT * FROM aq.trace(%s)", [pid])
            refused(no, "42501", "SELECT * FROM aq.trace_histogram(%s)", [pid])
            refused(no, "42501", "SELECT * FROM aq.trace_objects(%s)", [pid])
            assert head(no, pid) is None
            assert head(tracer, pid)["state"] == "running"
            stop(tracer, pid)
        # a queue's name is for roles that may use the queue, and for members of pg_monitor
        db.execute(conn, "SELECT aq.grant_queue(%s, %s, 'enqueue')", [queue, owner])
        start(traced, pid)
        put(traced, queue, 1)
        stop(traced, pid)
        names = "SELECT DISTINCT queue FROM aq.trace(%s) WHERE operation = 'publish'"
        assert db.value(traced, names, [pid]) == queue
        assert db.rows(mon, names, [pid]) == [{"queue": queue}]
    for name in (owner, member, stranger, monitor):
        db.execute(conn, f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_started_and_stopped_while_it_works(server, conn, queue):
    """Traces come and go under a session that never pauses: what was got was given back, and no row is half written."""
    with server.connect() as other:
        pid = pid_of(other)
        put(other, queue, *range(3))
        other.pgconn.send_query(
            b"DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM aq.enqueue('%s', '1'); PERFORM aq.dequeue('%s'); END LOOP; END $$"
            % (queue.encode(), queue.encode())
        )
        other.pgconn.flush()
        seen = 0
        while other.pgconn.is_busy():
            start(conn, pid)
            db.value(conn, "SELECT count(*) FROM aq.trace(%s)", [pid])
            stop(conn, pid)
            trace = head(conn, pid)
            rows = db.rows(conn, "SELECT * FROM aq.trace(%s)", [pid])
            # at most those it held at the start and at the end
            assert abs(trace["latch_gets"] - trace["latch_releases"]) <= 8
            assert len(rows) == min(trace["rows_written"], 100)
            assert [row["sequence"] for row in rows] == list(range(trace["rows_lost"] + 1, trace["rows_written"] + 1))
            assert all(row["object"] and row["operation"] for row in rows)
            seen += len(rows)
            other.pgconn.consume_input()
        assert seen > 0
        while other.pgconn.get_result():
            pass
        assert len(take(other, queue)) == 3


def test_a_restart_forgets_all(new_server):
    """So does a crash; and the server traces again."""
    own = new_server("restart")
    for crash in (False, True):
        with own.connect() as conn, own.connect() as other:
            start(conn, pid_of(other))
            assert head(conn, pid_of(other))["state"] == "running"
            before = generation(own)
            if crash:
                own.expect_log("terminated by signal 9")
                own.expect_log("terminating connection because of crash")
                os.kill(pid_of(other), signal.SIGKILL)
        if not crash:
            own.restart()
        until(lambda: generation(own) not in (None, before), "a new generation of shared memory")
        with own.connect() as conn:
            assert db.rows(conn, "SELECT * FROM aq.traces") == []
            start(conn, pid_of(conn))
            assert head(conn, pid_of(conn))["state"] == "running"
