"""Schedules: every time gives one message, whatever ends; what is missed is made up for as catch_up says; errors are recorded."""

from __future__ import annotations

import contextlib
import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import arrived, generation, held, take, until
from pgaq import db
from pgaq_proof import faults
from test_dump import dump, restore
from test_launcher import make_database

SETTINGS = {"max_prepared_transactions": "5"}
POINTS = ("scheduler-connected", "schedule-locked", "schedule-enqueued", "schedule-written", "schedule-committed")


@pytest.fixture
def clean(server):
    """A connection; afterwards no schedule is left."""
    with server.connect() as conn:
        yield conn
        conn.execute("DELETE FROM aq_internal.schedule")


def schedule(conn, name, queue, **arguments):
    named = "".join(f", {key} => %s" for key in arguments)
    return db.value(conn, f"SELECT aq.schedule(%s, %s, to_jsonb(%s::text){named})", [name, queue, name, *arguments.values()])


def soon(conn, name, queue, **arguments):
    """A schedule that is due at once, and then after a day."""
    schedule(conn, name, queue, every="1 day", **arguments)
    make_due(conn, name)


def make_due(conn, name, ago="0 s"):
    conn.execute("UPDATE aq_internal.schedule SET next_run = clock_timestamp() - %s::interval WHERE schedule_name = %s", [ago, name])


def state(conn, name):
    return db.value(conn, "SELECT state FROM aq.schedules WHERE schedule_name = %s", [name])


def runs(conn, name):
    return db.value(conn, "SELECT runs FROM aq.schedules WHERE schedule_name = %s", [name])


def taken(conn, queue):
    """The times of the messages that are there, in the order of dequeue."""
    query = "SELECT (properties->>'scheduled_at')::timestamptz FROM aq.dequeue(%s, max_messages => 100000)"
    return [time for (time,) in conn.execute(query, [queue])]


def scheduler(conn, database="postgres"):
    """The pid of the scheduler; None: there is none."""
    return db.value(conn, "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq scheduler' AND datname = %s", [database])


def is_over(conn):
    """No scheduler runs, and nothing is due."""
    query = """SELECT count(*) = 0 FROM aq_internal.schedule WHERE NOT paused AND NOT disabled AND greatest(next_run, retry_at) <= now()"""
    return db.value(conn, query) and db.value(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pgaq scheduler'")


def regular(times, seconds):
    """Is every time there once, in order?"""
    step = datetime.timedelta(seconds=seconds)
    return all(b - a == step for a, b in zip(times, times[1:]))


@contextlib.contextmanager
def switched_off(server):
    """No schedule runs."""
    server.configure(**{"pgaq.run_schedules": "off"})
    server.reload()
    with server.connect() as conn:
        until(lambda: db.value(conn, "SELECT setting = 'off' FROM pg_settings WHERE name = 'pgaq.run_schedules'"), "the setting")
        until(lambda: scheduler(conn) is None, "the end of the scheduler")
    yield
    server.configure(**{"pgaq.run_schedules": "on"})
    server.reload()


# -- what happens


def test_messages_come_without_any_session(server, clean, queue):
    """Each second one, also while nobody uses the queue; no scheduler stays."""
    schedule(clean, "tick", queue, every="1 second")
    until(lambda: runs(clean, "tick") >= 3, "three messages")
    clean.execute("SELECT aq.stop_schedule('tick')")
    times = taken(clean, queue)
    assert len(times) == runs(clean, "tick") and regular(times, 1)
    until(lambda: scheduler(clean) is None, "the end of the scheduler")
    assert state(clean, "tick") == "stopped"


@pytest.mark.long  # until it has passed 20 times in a row under load
def test_the_worker_learns_of_schedules(server, clean, queue):
    """Also when it has found that nothing is due."""
    for name in ("first", "second", "third"):
        soon(clean, name, queue)
        assert arrived(clean, queue, 1) == [name]
        until(lambda: is_over(clean), "the end of the scheduler")


def test_crash_and_restart(new_server):
    """Through crashes and restarts of the server each time gives one message, in order."""
    own = new_server("schedules_crash")
    with own.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        schedule(conn, "tick", "q", every="1 second", catch_up="all")
    for stop in ("immediate", "fast", "immediate"):
        with own.connect() as conn:
            before = runs(conn, "tick")
            until(lambda: runs(conn, "tick") > before, "a message")
        own.stop(stop)
        own.start()
    with own.connect() as conn:
        before = runs(conn, "tick")
        until(lambda: runs(conn, "tick") > before, "a message")
        conn.execute("SELECT aq.stop_schedule('tick')")
        times = taken(conn, "q")
        assert len(times) == runs(conn, "tick") and regular(sorted(times), 1), times


@pytest.mark.test_build
@pytest.mark.parametrize("action", ["crash", "terminate", "error", "cancel"])
def test_ends_at_each_point(points_server, action):
    """Wherever the scheduler ends, the message comes once."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        schedule(conn, "once", "q", every="1 day")
    for number, point in enumerate(POINTS, 1):
        before = generation(points_server)
        with points_server.connect() as conn:
            conn.execute("UPDATE aq_internal.schedule SET paused = true")
            until(lambda: is_over(conn), "the end of the last one")
            conn.execute("UPDATE aq_internal.schedule SET paused = false, failures = 0, retry_at = NULL")
            faults.arm(points_server, point, action)
            with contextlib.suppress(db.Error):
                make_due(conn, "once")
        if action == "crash":
            until(lambda: generation(points_server) not in (before, None), f"a crash at {point}")
            faults.wait_until_up(points_server)
        with points_server.connect() as conn:
            if action != "crash":
                until(lambda: db.value(conn, "SELECT aq.point_reached(%s) > 0", [point]), f"the scheduler at {point}")
            until(lambda: runs(conn, "once") >= number and is_over(conn), f"the message after {action} at {point}")
            assert runs(conn, "once") == number
            assert len(taken(conn, "q")) == 1, point
            db.execute(conn, "SELECT aq.point_reset()")


@pytest.mark.parametrize("how", ["switched off", "paused"])
@pytest.mark.parametrize(
    "policy, missed, late, messages",
    [
        ("skip", 5, "30 minutes", 0),
        ("skip", 5, "1 second", 1),
        ("one", 3, "30 minutes", 1),
        ("all", 3, "30 minutes", 3),
        ("all", 2001, "30 minutes", 1000),
    ],
)
def test_catch_up(server, clean, queue, how, policy, missed, late, messages):
    """So many hourly times went by, the last one so late: the last of them get messages, as many as the policy says."""
    schedule(clean, "hourly", queue, every="1 hour", catch_up=policy)
    clean.execute("SELECT aq.stop_schedule('hourly')")
    first = db.value(
        clean, "UPDATE aq_internal.schedule SET start_at = t, next_run = t FROM (SELECT clock_timestamp() - %s::interval - %s * interval '1 hour') x(t) RETURNING t",
        [late, missed - 1],
    )  # fmt: skip
    if how == "switched off":
        with switched_off(server):
            clean.execute("SELECT aq.start_schedule('hourly')")
    else:
        clean.execute("SELECT aq.start_schedule('hourly')")
    until(lambda: db.value(clean, "SELECT next_run > now() FROM aq.schedules WHERE schedule_name = 'hourly'"), "what was missed")
    hours = [datetime.timedelta(hours=n) for n in range(missed - messages, missed)]
    assert taken(clean, queue) == [first + hour for hour in hours]
    assert runs(clean, "hourly") == messages
    assert db.value(clean, "SELECT next_run FROM aq.schedules") == first + datetime.timedelta(hours=missed)


def test_a_daily_time_after_a_restart(new_server):
    """A server that was down at the time makes up for it when it starts."""
    own = new_server("schedules_down")
    with own.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        due = schedule(
            conn, "late", "q", every="1 day", start_at=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
        )
    own.stop()
    until(lambda: datetime.datetime.now(datetime.timezone.utc) > due, "the time")
    own.start()
    with own.connect() as conn:
        assert arrived(conn, "q", 1) == ["late"]
        assert runs(conn, "late") == 1


# -- errors


def test_errors_are_recorded_until_it_is_disabled(server, clean, queue):
    """A revoked right: the error is in the view, the next tries come later and later, the sixteenth failure disables it."""
    clean.execute("CREATE ROLE maker")
    try:
        db.execute(clean, "SELECT aq.grant_queue(%s, 'maker', 'enqueue')", [queue])
        clean.execute("SET ROLE maker")
        schedule(clean, "mine", queue, every="1 day")
        clean.execute("RESET ROLE")
        db.execute(clean, "SELECT aq.revoke_queue(%s, 'maker')", [queue])
        make_due(clean, "mine")
        failures = "SELECT failures FROM aq.schedules WHERE schedule_name = 'mine'"
        until(lambda: db.value(clean, failures) >= 2, "two failures")
        row = clean.execute("SELECT state, last_error, retry_at > error_time, next_run < now() FROM aq.schedules").fetchone()
        assert row == ("failing", f'42704: queue "{queue}" does not exist', True, True)
        clean.execute("UPDATE aq_internal.schedule SET failures = 15, retry_at = now()")
        until(lambda: state(clean, "mine") == "disabled", "the last failure")
        assert db.value(clean, failures) == 16
        db.execute(clean, "SELECT aq.grant_queue(%s, 'maker', 'enqueue')", [queue])
        clean.execute("SELECT aq.start_schedule('mine')")
        assert arrived(clean, queue, 1) == ["mine"]
        assert clean.execute("SELECT state, failures, last_error IS NOT NULL FROM aq.schedules").fetchone() == ("active", 0, True)
        db.execute(clean, "SELECT aq.revoke_queue(%s, 'maker')", [queue])
        clean.execute("DROP ROLE maker")
        make_due(clean, "mine")
        until(lambda: "does not exist" in (db.value(clean, "SELECT last_error FROM aq.schedules WHERE failures > 0") or ""), "the error")
        assert db.value(clean, "SELECT last_error FROM aq.schedules") == '42704: the role that made schedule "mine" does not exist'
    finally:
        clean.execute("DELETE FROM aq_internal.schedule")
        if db.value(clean, "SELECT count(*) FROM pg_roles WHERE rolname = 'maker'"):
            clean.execute("DROP OWNED BY maker; DROP ROLE maker")


def test_errors_of_the_server_do_not_disable_it(server, clean, queue):
    """A stopped queue, also for the sixteenth time: it goes on when the queue is started."""
    schedule(clean, "stopped", queue, every="1 day")
    db.execute(clean, "SELECT aq.stop_queue(%s)", [queue])
    make_due(clean, "stopped")
    until(lambda: db.value(clean, "SELECT failures FROM aq.schedules") >= 1, "a failure")
    clean.execute("UPDATE aq_internal.schedule SET failures = 15, retry_at = now()")
    until(lambda: db.value(clean, "SELECT failures FROM aq.schedules") == 16, "the sixteenth failure")
    assert state(clean, "stopped") == "failing"
    db.execute(clean, "SELECT aq.start_queue(%s)", [queue])
    clean.execute("UPDATE aq_internal.schedule SET retry_at = now()")
    assert arrived(clean, queue, 1) == ["stopped"]


def test_one_that_fails_does_not_delay_others(server, clean, queue):
    schedule(clean, "bad", queue, every="1 day")
    clean.execute("UPDATE aq_internal.schedule SET time_zone = 'Nowhere/Else', next_run = now()")
    schedule(clean, "good", queue, every="1 second")
    assert arrived(clean, queue, 3)[:3] == ["good"] * 3
    assert state(clean, "bad") == "failing"
    # when it succeeds, the failure is over
    clean.execute("UPDATE aq_internal.schedule SET time_zone = 'UTC', retry_at = now() WHERE schedule_name = 'bad'")
    until(lambda: state(clean, "bad") == "active", "its message")
    assert clean.execute("SELECT failures, retry_at FROM aq.schedules WHERE schedule_name = 'bad'").fetchone() == (0, None)


# -- other sessions


def test_prepared_transaction_holds_a_schedule(server, clean, queue):
    """Others go on; when it is committed, this one does, as it was changed."""
    with switched_off(server):
        soon(clean, "held", queue)
        clean.execute("BEGIN")
        clean.execute("SELECT aq.alter_schedule('held', payload => '\"changed\"')")
        clean.execute("PREPARE TRANSACTION 'holder'")
    try:
        schedule(clean, "free", queue, every="1 second")
        until(lambda: runs(clean, "free") >= 2, "the other schedule")
        assert runs(clean, "held") == 0
    finally:
        clean.execute("COMMIT PREPARED 'holder'")
    clean.execute("SELECT aq.unschedule('free')")
    until(lambda: runs(clean, "held") == 1, "the schedule that was held")
    payloads = arrived(clean, queue, 3)
    assert payloads.count("changed") == 1 and set(payloads) == {"free", "changed"}


def test_many_that_are_locked_do_not_hold_others(server, clean, queue):
    """A role cannot stop the schedules of others with locks on its own, however many it has."""
    with switched_off(server), server.connect() as holder:
        clean.execute("SELECT aq.schedule('held' || n, %s, '1', every => '1 day') FROM generate_series(1, 150) n", [queue])
        soon(clean, "free", queue)
        clean.execute("UPDATE aq_internal.schedule SET next_run = now() - interval '1 minute' WHERE schedule_name <> 'free'")
        holder.execute("BEGIN")
        holder.execute("SELECT aq.stop_schedule(schedule_name) FROM aq.schedules WHERE schedule_name <> 'free'")
        server.configure(**{"pgaq.run_schedules": "on"})
        server.reload()
        assert arrived(clean, queue, 1) == ["free"]


def test_other_roles_cannot_lock_a_schedule(server, clean, queue):
    """A role that may not stop it gets its error at once, also while another transaction has locked the row."""
    clean.execute("CREATE ROLE stranger")
    try:
        schedule(clean, "mine", queue, every="1 day")
        with server.connect() as holder, server.connect() as other:
            holder.execute("BEGIN")
            holder.execute("SELECT aq.stop_schedule('mine')")
            other.execute("SET ROLE stranger")
            other.execute("SET lock_timeout = '1ms'")
            with pytest.raises(db.Error, match='schedule "mine" does not exist'):
                other.execute("SELECT aq.unschedule('mine')")
    finally:
        clean.execute("DROP ROLE stranger")


@pytest.mark.test_build
def test_rename_while_it_enqueues(points_server):
    """Another queue has got the name meanwhile: the message goes to the queue of the schedule."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        with held(points_server, "schedule-locked") as control:
            soon(conn, "once", "q")
            until(lambda: db.value(control, "SELECT aq.point_reached('schedule-locked') > 0"), "the scheduler")
            conn.execute("SELECT aq.alter_queue('q', new_name => 'renamed')")
            conn.execute("SELECT aq.create_queue('q')")
        assert arrived(conn, "renamed", 1) == ["once"]
        assert take(conn, "q") == []


@pytest.mark.long  # until it has passed 20 times in a row under load
@pytest.mark.test_build
def test_one_that_is_changed_before_its_turn(points_server):
    """The scheduler has read that two are due; what happens to the second one while it does the first counts."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        schedule(conn, "first", "q", every="1 day")
        schedule(conn, "second", "q", every="1 day")
        with held(points_server, "schedule-committed") as control:
            conn.execute(
                "UPDATE aq_internal.schedule SET next_run = now() - CASE schedule_name WHEN 'first' THEN interval '1 minute' ELSE '0' END"
            )
            until(lambda: db.value(control, "SELECT aq.point_reached('schedule-committed') > 0"), "the scheduler")
            conn.execute("SELECT aq.alter_schedule('second', every => '1 day')")
        until(lambda: is_over(conn), "the end of the scheduler")
        assert take(conn, "q") == ["first"]


def test_rollback_prepared_lets_it_go_on(server, clean, queue):
    with switched_off(server):
        soon(clean, "held", queue)
        clean.execute("BEGIN")
        clean.execute("SELECT aq.unschedule('held')")
        clean.execute("PREPARE TRANSACTION 'holder'")
    clean.execute("ROLLBACK PREPARED 'holder'")
    assert arrived(clean, queue, 1) == ["held"]


@pytest.mark.test_build
def test_drop_while_it_enqueues(points_server):
    """DROP QUEUE waits, and takes the schedules along; so does DROP EXTENSION, and DROP DATABASE ends the scheduler."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('q')")
        schedule(conn, "tick", "q", every="1 second", catch_up="all")
    with ThreadPoolExecutor(1) as pool, points_server.connect() as dropper:
        with held(points_server, "schedule-enqueued") as control:
            until(lambda: db.value(control, "SELECT aq.point_reached('schedule-enqueued') > 0"), "the scheduler")
            drop = pool.submit(dropper.execute, "SELECT aq.drop_queue('q', force => true)")
            until(lambda: db.value(control, "SELECT count(*) FROM pg_locks WHERE NOT granted"), "the drop")
        drop.result()
        assert db.value(dropper, "SELECT count(*) FROM aq_internal.schedule") == 0
        dropper.execute("SELECT aq.create_queue('q')")
        schedule(dropper, "tick", "q", every="1 second")
        with held(points_server, "schedule-locked") as control:
            until(
                lambda: scheduler(control) is not None and db.value(control, "SELECT aq.point_reached('schedule-locked') > 0"),
                "the scheduler",
            )
            drop = pool.submit(dropper.execute, "DROP EXTENSION pgaq CASCADE")
            until(lambda: db.value(control, "SELECT count(*) FROM pg_locks WHERE NOT granted"), "the drop")
        drop.result()
        until(lambda: scheduler(dropper) is None, "the end of the scheduler")
    make_database(points_server, "doomed")
    with points_server.connect("doomed") as there:
        schedule(there, "tick", "q", every="1 second")
    # the functions of the test points are gone with the extension
    with points_server.connect() as conn:
        until(lambda: scheduler(conn, "doomed") is not None, "the scheduler of the other database")
        until(
            lambda: db.value(
                conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'doomed' AND backend_type = 'client backend'"
            ),
            "our end",
        )
        conn.execute("DROP DATABASE doomed")
        conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")


def test_few_worker_slots(new_server):
    """Two databases' workers and their schedulers share two slots; PostgreSQL's own launcher, ours and the sampler have three."""
    own = new_server("schedules_slots", max_worker_processes="5")
    make_database(own, "second")
    with own.connect() as conn, own.connect("second") as there:
        conn.execute("SELECT aq.create_queue('q')")
        schedule(conn, "tick", "q", every="1 second")
        schedule(there, "tick", "q", every="1 second")
        until(lambda: runs(conn, "tick") >= 2 and runs(there, "tick") >= 2, "messages in both")


# -- standby and dump


def test_standby_and_promotion(server, clean, queue, throw_away):
    """A standby runs nothing; after its promotion it goes on where the primary was."""
    schedule(clean, "tick", queue, every="1 second", catch_up="all")
    copy = throw_away(server.basebackup("schedules_standby"))
    copy.expect_log(r"WARNING:.*standby")
    copy.start()
    until(lambda: runs(clean, "tick") >= 3, "messages")
    with copy.connect() as there:
        assert scheduler(there) is None
        with pytest.raises(db.Error, match="recovery|read-only"):
            there.execute("SELECT aq.stop_schedule('tick')")
    clean.execute("SELECT aq.stop_schedule('tick')")
    clean.execute("SELECT aq.start_schedule('tick')")
    with switched_off(server):
        copy.wait_for_replay(server)
        copy.promote()
        with copy.connect() as there:
            before = runs(there, "tick")
            there.execute("ALTER SYSTEM SET pgaq.run_schedules = on")
            there.execute("SELECT pg_reload_conf()")
            until(lambda: runs(there, "tick") > before + 1, "messages of the new primary")
            there.execute("SELECT aq.stop_schedule('tick')")
            times = taken(there, queue)
            assert len(times) == runs(there, "tick") and regular(sorted(times), 1)


def test_dump_and_restore(server, clean, queue, tmp_path):
    """A schedule of a dump goes on in the new database, as its role."""
    clean.execute("CREATE ROLE dumped")
    clean.execute("CREATE DATABASE schedules_target")
    try:
        db.execute(clean, "SELECT aq.grant_queue(%s, 'dumped', 'enqueue')", [queue])
        clean.execute("SET ROLE dumped")
        schedule(clean, "daily", queue, cron="@daily", time_zone="Asia/Tokyo", priority=2)
        clean.execute("RESET ROLE")
        with switched_off(server):
            make_due(clean, "daily", "1 day")
            dump(server, "plain", tmp_path / "dump")
            restore(server, "plain", tmp_path / "dump", "schedules_target")
        with server.connect("schedules_target") as there:
            assert arrived(there, queue, 1) == ["daily"]
            assert there.execute("SELECT owner::text, runs, time_zone, options->>'priority' FROM aq.schedules").fetchone() == (
                "dumped",
                1,
                "Asia/Tokyo",
                "2",
            )
        until(lambda: runs(clean, "daily") == 1, "the original")
    finally:
        clean.execute("DROP DATABASE schedules_target")
        clean.execute("SELECT aq.drop_queue(%s, force => true)", [queue])
        clean.execute("DROP ROLE dumped")


def test_log_of_failures(server, clean, queue):
    """Many schedules of a role fail, each for the first time: the log gets a few lines of them."""
    clean.execute("CREATE ROLE noisy LOGIN")
    clean.execute("SELECT aq.grant_queue(%s, 'noisy', 'enqueue')", [queue])
    with server.connect(user="noisy") as noisy:
        noisy.execute("SELECT aq.schedule('noise' || n, %s, '1', every => '1 day') FROM generate_series(1, 40) n", [queue])
    clean.execute("SELECT aq.revoke_queue(%s, 'noisy', 'enqueue')", [queue])
    clean.execute("UPDATE aq_internal.schedule SET next_run = clock_timestamp() WHERE schedule_name LIKE 'noise%'")
    clean.execute("SELECT aq.stop_schedule('noise1'), aq.start_schedule('noise1')")
    until(
        lambda: db.value(clean, "SELECT count(*) FROM aq.schedules WHERE schedule_name LIKE 'noise%' AND last_error IS NOT NULL") >= 39,
        "the failures",
    )
    assert 1 <= server.log_text().count('schedule "noise') <= 11
    clean.execute("SELECT aq.unschedule(schedule_name) FROM aq.schedules WHERE schedule_name LIKE 'noise%'")
    clean.execute("DROP ROLE noisy")
