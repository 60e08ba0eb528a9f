"""Code of one role does not run on the time of others: turns of schedules and of propagation are limited, and roles take turns."""

from __future__ import annotations

import pytest

from conftest import arrived, put, until
from pgaq import db

SETTINGS = {"pgaq.turn_timeout": "250 ms"}

# how a rule keeps a background process: it sleeps; it catches its cancellation, too; it stays below the limit
RULES = {"sleeps": "pg_sleep(50) IS NOT NULL", "stubborn": "slow.stubborn()", "below": "pg_sleep(0.15) IS NULL"}
STUBBORN = """
    CREATE FUNCTION slow.stubborn() RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        LOOP
            BEGIN
                PERFORM pg_sleep(50);
            EXCEPTION WHEN query_canceled THEN NULL;
            END;
        END LOOP;
    END $$
"""


@pytest.fixture
def slow(request, server):
    """A connection of a role with a topic whose rule takes long, and what the rule does; afterwards all of it is gone."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE slow LOGIN; CREATE SCHEMA slow AUTHORIZATION slow; GRANT EXECUTE ON FUNCTION aq.create_queue TO slow")
    with server.connect(user="slow") as conn:
        conn.execute(STUBBORN)
        conn.execute("SELECT aq.create_queue('slow', multiple_consumers => true)")
        conn.execute("SELECT aq.subscribe('slow', 's', rule => %s)", [RULES[request.param]])
        yield conn, request.param
    with server.connect() as conn:
        conn.execute("SELECT aq.drop_queue('slow', true)")
        conn.execute("DROP OWNED BY slow; DROP ROLE slow")


def error(conn, view, what):
    """The offender waits, and its error is shown; nothing is wrong with one that stays below the limit."""
    if what == "below":
        return None
    query = f"SELECT last_error FROM aq.{view} WHERE (queue_name = 'slow' OR queue_name LIKE 'from%') AND failures > 0 AND last_error LIKE '%took longer than pgaq.turn_timeout (250 ms)'"
    return until(lambda: db.value(conn, query), "the error")


@pytest.mark.parametrize("slow", ["sleeps", "stubborn"], indirect=True)
def test_schedules(server, conn, queue, slow):
    """One that is due every second comes again and again, although many of another role are always due before it."""
    role, what = slow
    role.execute("SELECT aq.schedule('slow' || n, 'slow', '1', every => '1 second', catch_up => 'all') FROM generate_series(1, 8) n")
    conn.execute("SELECT aq.schedule('quick', %s, '1', every => '1 second')", [queue])
    assert len(arrived(conn, queue, 3)) >= 3
    error(conn, "schedules", what)
    conn.execute("SELECT aq.unschedule('quick')")
    log = server.log_text()
    assert "PL/pgSQL function slow.stubborn" not in log
    assert "cannot be interrupted" not in log  # SIGTERM ends it, within a grace of its own


@pytest.mark.parametrize("slow", ["stubborn"], indirect=True)
def test_same_hash(server, conn, queue, slow):
    """The schedule of whose turn a process has died is not another one, also if a hash of the names is the same."""
    role, _ = slow
    report, hog = "every minute, the report", "hog0002132937^~4,rLz5jt]"
    assert db.value(conn, "SELECT hashtextextended(%s, 0) = hashtextextended(%s, 0)", [report, hog])
    conn.execute("SELECT aq.schedule(%s, %s, '1', every => '1 day')", [report, queue])
    role.execute("SELECT aq.schedule(%s, 'slow', '1', every => '1 second')", [hog])
    failures = dict(
        until(lambda: conn.execute("SELECT schedule_name, failures FROM aq.schedules WHERE failures > 0").fetchall(), "a failure")
    )
    assert list(failures) == [hog]
    conn.execute("SELECT aq.unschedule(%s)", [report])


@pytest.mark.parametrize("what", ["schedule", "propagation"])
def test_own_producers(server, conn, queue, what):
    """A transaction that enqueues under a name like those of pgaq's own producers does not keep them waiting."""
    if what == "schedule":
        conn.execute(
            "SELECT aq.schedule('held', %s, to_jsonb('held'::text), every => '1 second', start_at => now() + interval '1 hour')", [queue]
        )
        name = "held"
    else:
        conn.execute("SELECT aq.create_queue('held_from')")
        name = str(db.value(conn, "SELECT aq.create_propagation('held_from', %s)", [queue]))
    with server.connect() as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT aq.enqueue(%s, '0', producer => %s)", [queue, f"{what} {name}"])
        if what == "schedule":
            conn.execute("SELECT aq.alter_schedule('held', start_at => now())")
        else:
            put(conn, "held_from", "held")
        assert arrived(conn, queue, 1) == ["held"]
        assert db.value(conn, f"SELECT sum(failures) FROM aq.{what}s") == 0
        holder.execute("ROLLBACK")
    conn.execute("SELECT aq.unschedule('held')" if what == "schedule" else "SELECT aq.drop_queue('held_from', true)")


@pytest.mark.parametrize("slow", RULES, indirect=True)
def test_propagation(server, conn, queue, slow):
    """Messages of another role go on between the batches of eight slow queues."""
    role, what = slow
    for n in range(8):
        role.execute(f"SELECT aq.create_queue('from{n}')")
        put(role, f"from{n}", *range(20 if what == "below" else 1))
        role.execute(f"SELECT aq.create_propagation('from{n}', 'slow')")
    conn.execute("SELECT aq.create_queue('quick_from')")
    conn.execute("SELECT aq.create_propagation('quick_from', %s)", [queue])
    for n in range(3):
        put(conn, "quick_from", n)
        assert arrived(conn, queue, 1) == [n]
    error(conn, "propagations", what)
    for name in ("quick_from", *(f"from{n}" for n in range(8))):
        conn.execute("SELECT aq.drop_queue(%s, true)", [name])


def test_work_of_another_owner(server, conn, queue):
    """A message's delay ends while the worker makes 90,000 dead letters for the queue of another role: before it has made all."""
    conn.execute("CREATE ROLE busy; GRANT EXECUTE ON FUNCTION aq.create_queue TO busy; SET ROLE busy")
    conn.execute(
        "SELECT aq.create_queue('dead'), aq.create_queue('busy', multiple_consumers => true, shards => 1, exception_queue => 'dead')"
    )
    conn.execute("SELECT aq.subscribe('busy', 's' || n) FROM generate_series(1, 300) n")
    conn.execute("SELECT aq.enqueue_array('busy', array_agg(to_jsonb(n)), expiration => '10 ms') FROM generate_series(1, 300) n")
    conn.execute("RESET ROLE")
    letters = "SELECT ready FROM aq.metrics('dead')"
    until(lambda: db.value(conn, letters) > 0, "the first dead letters")
    conn.execute("SELECT aq.enqueue(%s, '1', delay => '20 ms')", [queue])
    assert arrived(conn, queue, 1) == [1]
    assert db.value(conn, letters) < 90_000
    conn.execute("SELECT aq.drop_queue('busy', true), aq.drop_queue('dead', true)")
    conn.execute("DROP OWNED BY busy; DROP ROLE busy")
