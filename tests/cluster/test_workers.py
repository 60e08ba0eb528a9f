"""Workers where they are few, and databases that come with queues in them: by CREATE DATABASE, or from a dump."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import (
    PATIENCE,
    arrived,
    at_rest,
    background,
    generation,
    held,
    install,
    put,
    server_with_points,
    stopped_worker,
    take,
    until,
    waiting_for,
)
from pgaq import db
from pgaq_proof import faults
from test_launcher import make_database, stored, workers
from test_reports import report
from test_snapshots import snapshot

FEW = {"max_worker_processes": "8"}  # PostgreSQL's default; three are the server's own and ours
STATES = "SELECT database, state FROM aq.workers ORDER BY 1"


def states(conn):
    return dict(conn.execute(STATES).fetchall())


def make_databases(server, names):
    """Databases with a queue, and one that takes what has expired."""
    for number, name in enumerate(names):
        make_database(server, name, queue=False, like=names[0] if number else None)
    for name in names:
        with server.connect(name) as there:
            there.execute("SELECT aq.create_queue('dead'), aq.create_queue('q', exception_queue => 'dead')")


def one_after_the_other(server, name):
    """The operations of a shop: none fails for lack of a worker."""
    with server.connect(name) as there:
        there.execute("SET statement_timeout = '60 s'")
        for turn in range(3):
            put(there, "q", turn)
            assert take(there, "q") == [turn]
            there.execute("BEGIN")
            put(there, "q", "again")
            there.execute("COMMIT; BEGIN")
            assert take(there, "q") == ["again"]
            there.execute("ROLLBACK")
            put(there, "q", "late", delay="0.5 s")
            assert arrived(there, "q", 2) in (["again", "late"], ["late", "again"])


def test_more_databases_than_slots(new_server):
    """Each enqueues, dequeues, retries, and gets what was delayed; idle workers make room, and leave the last slots to others."""
    own = new_server("few", **FEW)
    names = [f"shop{number}" for number in range(8)]
    make_databases(own, names)
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: one_after_the_other(own, name), names))
    with own.connect() as conn:
        assert len(workers(conn)) <= 5
        assert sorted(states(conn)) == sorted(names)
        # without a session, what expires is moved all the same
        for name in names:
            with own.connect(name) as there:
                put(there, "q", "expired", expiration="0.5 s")
        for name in names:
            with own.connect(name) as there:
                until(lambda: stored(there, "dead") == 1, f"the message in the exception queue of {name}")
                assert take(there, "dead") == ["expired"]
    # the same after a start, when all of them are asked
    for name in names:
        with own.connect(name) as there:
            put(there, "q", "expired", expiration="0.5 s")
    own.restart()
    lag = "SELECT lag FROM aq.subscribers WHERE queue_name = 'dead'"
    with own.connect() as conn:
        for name in names:
            with own.connect(name) as there:
                until(lambda: db.value(there, lag) == 1, f"the message in the exception queue of {name}")
        until(lambda: set(states(conn).values()) <= {"running", "away"}, "all of them rest")
        assert len(workers(conn)) <= 5


def test_a_worker_always_at_work_makes_room(new_server):
    """One slot, and a database whose worker never has nothing to do: the other one gets its turn."""
    own = new_server("turns", max_worker_processes="2", max_logical_replication_workers="0", **{"pgaq.ash_size": "0"})
    make_databases(own, ["busy", "other"])
    with own.connect("busy") as busy, own.connect("other") as other:
        busy.execute("SET statement_timeout = '60 s'")
        other.execute("SET statement_timeout = '60 s'")
        for number in range(400):  # something is due at any moment of the next seconds
            put(busy, "q", number, delay=f"{number * 10} ms")
        for turn in range(3):
            put(other, "q", turn, delay="10 ms")
            assert arrived(other, "q", 1) == [turn]
        assert sorted(arrived(busy, "q", 400)) == list(range(400))


def listen_to(conn):
    """The notices that this session gets, as (message, detail, hint)."""
    told = []
    conn.add_notice_handler(lambda notice: told.append((notice.message_primary, notice.message_detail, notice.message_hint)))
    return told


WAITING = 'waiting for the background worker of pgaq for database "postgres"'


def test_no_launcher(new_server):
    """The server cannot even start the launcher: the session's client, aq.workers and in the end an error say so, and what to do."""
    own = new_server("never", max_worker_processes="0", max_logical_replication_workers="0")
    own.expect_log("too many background workers|canceling statement due to statement timeout")
    with own.connect() as conn:
        told = listen_to(conn)
        conn.execute("SELECT aq.create_queue('q')")
        conn.execute("SET statement_timeout = '60 s'")
        with pytest.raises(db.Error) as caught:
            put(conn, "q", 0)
        assert caught.value.sqlstate == "53000", caught.value
        assert "raise max_worker_processes (now 0) and restart" in caught.value.diag.message_hint
        assert "The launcher, which starts workers, has not run for 10 seconds." == caught.value.diag.message_detail
        assert told == [
            (WAITING, "The launcher, which starts workers, does not run.", "The view aq.workers shows the state of all databases.")
        ]
        shown = db.row(conn, "SELECT state, problem, hint FROM aq.workers")
        assert shown == {
            "state": "starting",
            "problem": "the launcher, which starts workers, is not running",
            "hint": "If this lasts, raise max_worker_processes (now 0) and restart the server.",
        }


def test_the_launcher_is_started_again(new_server):
    """A wait that begins meanwhile neither fails nor says anything."""
    own = new_server("back")
    make_databases(own, ["used"])
    own.expect_log("terminating")
    with own.connect("used") as conn:
        told = listen_to(conn)
        for number in range(3):
            db.execute(conn, "SELECT aq.create_queue(%s)", [f"new{number}"])
            for kind in ("launcher", "worker"):
                pid = until(lambda: background(conn, kind), kind)
                conn.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            put(conn, f"new{number}", number)
            assert take(conn, f"new{number}") == [number]
        assert told == []


@pytest.mark.sharded("queue tables are made by the session")
def test_a_worker_that_does_not_leave_is_not_waited_for(new_server):
    """It was asked to leave first, and its round takes long: another one leaves."""
    # the history is due each minute
    own = new_server("long", max_worker_processes="3", max_logical_replication_workers="0", **{"pgaq.ash_size": "0", "pgaq.history": "off"})
    own.expect_log("WARNING:  could not start the background worker of pgaq")  # on a busy machine
    with own.connect() as conn:
        conn.execute("CREATE DATABASE third")
    make_databases(own, ["long", "idle"])
    with own.connect("long") as slow, own.connect("idle") as there, own.connect("third") as third:
        for conn in (slow, there):
            put(conn, "q", 1)
            assert take(conn, "q") == [1]
        # the worker whose work is later is asked first
        put(there, "q", "late", delay="10 minutes")
        query = "SELECT array_agg(database ORDER BY due) FROM aq.workers WHERE state = 'running' AND due > now() + interval '5 minutes'"
        until(lambda: db.value(there, query) == ["idle", "long"], "two workers at rest")
        install(third)
        third.execute("SELECT aq.create_queue('q')")
        third.execute("SET statement_timeout = '30 s'")
        with stopped_worker(slow):
            put(third, "q", 1)
            assert take(third, "q") == [1]
            assert sorted(workers(third)) == ["long", "third"]


def test_no_slot_at_all(new_server):
    """An enqueue that needs the worker waits, under a name; its client, the log, aq.workers and the report's advice say what to do."""
    own = new_server("none", max_worker_processes="2", max_logical_replication_workers="0")
    own.expect_log("WARNING:  could not start the background worker of pgaq|canceling statement due to statement timeout")
    with own.connect() as conn, own.connect() as other, ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as waits:
        waits.callback(conn.cancel)
        conn.execute("SELECT aq.create_queue('q')")
        # until the transaction has failed: the timeout could also hit the statement that resets it
        with pytest.raises(db.Error) as caught, conn.transaction():
            conn.execute("SET LOCAL statement_timeout = '50 ms'")
            put(conn, "q", 0)
        assert caught.value.sqlstate == "57014"
        told = listen_to(conn)
        found = pool.submit(put, conn, "q", "kept")
        until(lambda: waiting_for(other, "aq: waiting for the worker"), "a named wait")
        begin = snapshot(other)
        until(lambda: "Raise max_worker_processes (now 2)" in own.log_text(), "a line in the log")
        shown = db.row(other, "SELECT database, state, problem, hint, pid, since < clock_timestamp() AS since FROM aq.workers")
        assert shown == {
            "database": "postgres", "state": "waiting", "problem": "no background worker slot is free", "hint": "Raise max_worker_processes (now 2).", "pid": None, "since": True,
        }  # fmt: skip
        end = snapshot(other)
        [advice] = [advice for advice in report(other, begin, end)["advice"] if advice["rule"] == "worker"]
        assert advice["rule"] == "worker" and "max_worker_processes" in advice["do"], advice
        until(lambda: told, "a notice")
        time.sleep(2.5)
        assert told == [
            (
                WAITING,
                "No background worker slot is free.",
                "Raise max_worker_processes (now 2). The view aq.workers shows the state of all databases.",
            )
        ]
        conn.cancel()
        with pytest.raises(db.Error):
            found.result()
    assert own.log_text().count('could not start the background worker of pgaq for database "postgres"') == 1
    own.configure(max_worker_processes="8")
    own.restart()
    with own.connect() as conn:
        put(conn, "q", 1)
        assert take(conn, "q") == [1]
        assert states(conn) == {"postgres": "running"}


def test_a_worker_that_cannot_start(new_server):
    """aq.workers shows the error, the pauses grow, and the worker runs when the cause is removed."""
    own = new_server("cannot")
    make_database(own, "broken")
    own.expect_log("FATAL|terminating")
    with own.connect() as conn:
        until(lambda: workers(conn) == ["broken"], "the worker")
        version = own.data / "base" / str(db.value(conn, "SELECT oid::bigint FROM pg_database WHERE datname = 'broken'")) / "PG_VERSION"
        version.rename(version.with_name("away"))
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq worker'")
        until(
            lambda: db.value(
                conn, "SELECT count(*) FROM aq.workers WHERE state = 'failed' AND error LIKE '%%is not a valid data directory%%'", []
            ),
            "the error",
        )
        version.with_name("away").rename(version)
        until(lambda: workers(conn) == ["broken"], "the worker")


POINTS = ["worker-connected", "worker-last-round", "worker-leaves"]


@pytest.mark.test_build
@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
@pytest.mark.parametrize("point", POINTS)
def test_workers_end_at_points(library, monkeypatch, point, action):
    """While they take turns in two slots: all databases get what was delayed."""
    with server_with_points(
        monkeypatch, library, "ends", expected="terminat|crash|signal 9|test point|reinitializ", max_worker_processes="5"
    ) as own:
        names = [f"shop{number}" for number in range(4)]
        make_databases(own, names)
        before = generation(own)
        faults.arm(own, point, action, 2)

        def over():
            # how often they take turns depends on when the messages expire
            for name in names:
                until(lambda: put_expiring(own, name), "the server is back")
            if action == "crash":
                return generation(own) not in (None, before)
            with own.connect() as conn:
                return db.value(conn, "SELECT aq.point_reached(%s)", [point]) > 2

        until(over, "the point")
        for name in names:
            with until(lambda: connect_to(own, name), "the server is back") as there:
                until(lambda: stored(there, "dead") > 0, f"the message in the exception queue of {name}")


def put_expiring(server, name):
    """False when the server crashes meanwhile: the message may be there or not."""
    try:
        with server.connect(name) as there:
            put(there, "q", name, expiration="0.2 s")
        return True
    except db.OperationalError:
        return False


def connect_to(server, name):
    try:
        return server.connect(name)
    except db.Error:
        return None


HELD_UP = """SELECT count(*) FROM sys."v$session_wait"
             WHERE state = 'WAITING' AND event IN ('aq: waiting for a partition', 'aq: waiting for the worker')"""


@pytest.mark.test_build
def test_a_post_to_a_worker_that_leaves(library, monkeypatch):
    """It has looked for work for the last time: another one comes for what is posted then."""
    with server_with_points(monkeypatch, library, "leaves", **FEW) as own:
        names = [f"shop{number}" for number in range(6)]
        make_databases(own, names[:5])
        with ThreadPoolExecutor(len(names)) as pool, held(own, "worker-leaves") as conn:
            for name in names[:5]:
                with own.connect(name) as there:
                    put(there, "q", 1)
                    assert take(there, "q") == [1]
            make_databases(own, names[5:])
            with own.connect(names[5]) as there:
                calls = [pool.submit(put, there, "q", 1)]
                until(lambda: db.value(conn, "SELECT aq.point_reached('worker-leaves')"), "a worker that leaves")
                calls += [pool.submit(put_expiring, own, name) for name in names[:5]]
                # those that need tables wait for a worker that is held: for one of them, or for more if this takes long
                until(lambda: sum(call.done() for call in calls) + db.value(conn, HELD_UP) == len(calls), "posts")
                db.execute(conn, "SELECT aq.point_reset()")
                for call in calls:
                    call.result(PATIENCE)
            for name in names[:5]:
                with own.connect(name) as there:
                    until(lambda: stored(there, "dead") == 1, f"the message in the exception queue of {name}")


@pytest.mark.test_build
def test_a_worker_that_leaves_is_cut_short(library, monkeypatch):
    """SIGTERM comes before the jobs of its last round: another worker runs them."""
    few = {"max_worker_processes": "2", "max_logical_replication_workers": "0", "pgaq.ash_size": "0"}
    with server_with_points(monkeypatch, library, "cut", **few) as own, ThreadPoolExecutor(1) as pool:
        make_databases(own, ["first"])
        with own.connect("first") as there:
            put(there, "q", 1)
            assert take(there, "q") == [1]
            pid = until(lambda: background(there, "worker"), "the worker")
            put(there, "q", "expired", expiration="3 s")
        with held(own, "worker-last-round") as control:
            make_databases(own, ["second"])
            with own.connect("second") as there:
                came = pool.submit(put, there, "q", 2)
                assert db.value(control, "SELECT aq.point_await('worker-last-round')")
                control.execute("SELECT pg_terminate_backend(%s)", [pid])
                control.execute("SELECT aq.point_reset()")
                came.result(PATIENCE)
        with own.connect("first") as there:
            until(lambda: stored(there, "dead") == 1, "the message in the exception queue")


@pytest.mark.test_build
def test_a_database_is_copied_while_it_is_asked(library, monkeypatch):
    """CREATE DATABASE ends the worker that looks for queues: it is asked again, and so is the copy."""
    with server_with_points(monkeypatch, library, "asked") as own:
        make_databases(own, ["source"])
        with own.connect() as conn:
            conn.execute("ALTER DATABASE source ALLOW_CONNECTIONS false")
        own.restart()
        with held(own, "worker-connected") as conn:
            conn.execute("ALTER DATABASE source ALLOW_CONNECTIONS true")
            until(lambda: db.value(conn, "SELECT aq.point_reached('worker-connected')"), "a worker that asks")
            conn.execute("CREATE DATABASE copy TEMPLATE source")
        with own.connect() as conn:
            until(lambda: workers(conn) == ["copy", "source"], "the workers")


# -- databases that come with queues in them


def fill(server, name):
    """A topic with three messages for one of two consumers, and a message that expires."""
    make_databases(server, [name])
    with server.connect(name) as conn:
        conn.execute("SELECT aq.create_queue('news', multiple_consumers => true), aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob')")
        put(conn, "news", 1, 2, 3)
        assert take(conn, "news", "bob") == [1, 2, 3]
        put(conn, "news", "late", delay="3 s")
        put(conn, "q", "expired", expiration="3 s")


def served(server, name):
    """Without a session that uses the queues: the lag is right, the delay ends, the expired message is moved."""
    lag = "SELECT lag FROM aq.subscribers WHERE queue_name = 'news' AND consumer = %s"
    with server.connect(name) as conn:
        until(lambda: db.value(conn, lag, ["ann"]) == 4 and db.value(conn, lag, ["bob"]) == 1, "their messages")
        until(lambda: stored(conn, "dead") == 1, "the message in the exception queue")
        assert sorted(map(str, take(conn, "news", "ann"))) == ["1", "2", "3", "late"] and take(conn, "news", "bob") == ["late"]
        assert take(conn, "dead") == ["expired"]


@pytest.mark.parametrize("how", ["template", "named template"])
def test_copied_databases_are_served(new_server, how):
    own = new_server("copied")
    fill(own, "source")
    with own.connect() as conn:
        if how == "template":
            conn.execute("ALTER DATABASE source IS_TEMPLATE true")
        conn.execute("CREATE DATABASE copy TEMPLATE source")
    served(own, "copy")


DUMPS = {
    "plain": ["--format=plain"],
    "inserts": ["--format=plain", "--rows-per-insert=10"],
    "custom": ["--format=custom"],
    "parallel": ["--format=directory"],
}


def catalog_first(listed):
    """The contents of a dump, with the rows of queues before their messages, and a slow table in between."""
    lines = listed.splitlines()
    early = [line for line in lines if " TABLE DATA aq_internal " in line] + [line for line in lines if " TABLE DATA slow " in line]
    first = next(number for number, line in enumerate(lines) if " TABLE DATA " in line)
    return "\n".join([*lines[:first], *early, *(line for line in lines[first:] if line not in early)])


@pytest.mark.parametrize("how", DUMPS)
def test_restored_databases_are_served(new_server, tmp_path, how):
    """Also when a table that is restored between the rows of the queues and their messages takes long."""
    own = new_server("restored")
    fill(own, "source")
    with own.connect("source") as conn:
        conn.execute("CREATE SCHEMA slow; CREATE TABLE slow.t AS SELECT 1 AS n")
        conn.execute(
            """CREATE FUNCTION slow.slow(n int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$SELECT pg_catalog.pg_sleep(2) IS NOT NULL$$;
               ALTER TABLE slow.t ADD CHECK (slow.slow(n))"""
        )
    path, contents = str(tmp_path / "dump"), tmp_path / "contents"
    done = own.run("pg_dump", *DUMPS[how], f"--file={path}", dbname="source")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with own.connect() as conn:
        conn.execute("CREATE DATABASE restored")
    if "--format=plain" in DUMPS[how]:
        done = own.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path, dbname="restored")
    else:
        contents.write_text(catalog_first(own.run("pg_restore", "-l", path).stdout))
        more = ["--jobs=2"] if how == "parallel" else ["-L", str(contents)]
        done = own.run("pg_restore", "--exit-on-error", "-d", "restored", *more, path, dbname="restored")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    served(own, "restored")


@pytest.mark.test_build
def test_a_worker_that_knows_of_a_restore_ends(library, monkeypatch, tmp_path):
    """The next one sees the lock of a session that copies messages, and nothing else, and does not regard the table as free."""
    with server_with_points(monkeypatch, library, "known") as own, ThreadPoolExecutor(1) as pool:
        make_databases(own, ["source"])
        with own.connect("source") as conn:
            put(conn, "q", 1, 2, 3)
        path, script, copying = str(tmp_path / "dump"), tmp_path / "messages.sql", tmp_path / "copying.sql"
        assert own.run("pg_dump", "--format=custom", f"--file={path}", dbname="source").returncode == 0
        lines = own.run("pg_restore", "-l", path).stdout.splitlines()
        data = next(number for number, line in enumerate(lines) if " TABLE DATA " in line)

        def restored(part, *arguments):
            contents = tmp_path / "contents"
            contents.write_text("\n".join(part))
            done = own.run("pg_restore", "--exit-on-error", "-L", str(contents), *arguments, path)
            assert done.returncode == 0 and done.stderr == "", done.stderr

        with own.connect() as conn:
            conn.execute("CREATE DATABASE restored")
        with held(own, "queues-restoring") as control:
            restored([*lines[:data], *(line for line in lines if " TABLE DATA aq_internal " in line)], "-d", "restored")
            assert db.value(control, "SELECT aq.point_await('queues-restoring')")
        restored([line for line in lines if " TABLE DATA aq_data " in line], "-f", str(script))
        # as COPY does before its first rows
        copying.write_text(
            f"""BEGIN;
            SELECT format('LOCK TABLE %s IN ROW EXCLUSIVE MODE', oid::regclass) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' \\gexec
            SELECT pg_advisory_lock(7);
            \\i {script}
            COMMIT;
            """.replace("            ", "")
        )
        with own.connect("restored") as conn:
            conn.execute("SELECT pg_advisory_lock(7)")
            copies = pool.submit(own.run, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copying), dbname="restored")
            until(
                lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
                "the session that copies",
            )
            restored([line for line in lines if " SEQUENCE SET " in line], "-d", "restored")
            old = until(lambda: background(conn, "worker"), "the worker")
            conn.execute("SELECT pg_terminate_backend(%s)", [old])
            until(lambda: at_rest(conn, "worker") not in (None, old), "another worker, and its first round")
            conn.execute("SELECT pg_advisory_unlock(7)")
            done = copies.result(PATIENCE)
            assert done.returncode == 0 and done.stderr == "", done.stderr
            until(lambda: db.value(conn, "SELECT lag FROM aq.subscribers WHERE queue_name = 'q'") == 3, "the messages")
            assert take(conn, "q") == [1, 2, 3]


def test_a_database_is_copied_beyond_the_directory(new_server):
    """The directory of databases is full: the log says so once, and the copy is served when there is room."""
    own = new_server("full", **{"pgaq.max_databases": "2"})
    own.expect_log("WARNING:  too many databases use pgaq")
    fill(own, "source")
    make_databases(own, ["second"])
    with own.connect("second") as there:
        put(there, "q", 1)
    with own.connect() as conn:
        conn.execute("CREATE DATABASE copy TEMPLATE source")
        until(lambda: "Raise pgaq.max_databases (now 2)" in own.log_text(), "a line in the log")
        conn.execute("DROP DATABASE second")
    served(own, "copy")
    assert own.log_text().count("WARNING:  too many databases") == 1
