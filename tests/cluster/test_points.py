"""A crash at every named test point.  Needs a library built with TEST_POINTS=1,
found through $PGAQ_LIBDIR; without one it is built into a directory of its own.

The points are read from the source, so that a new one is covered at once.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import conftest
from conftest import PATIENCE, ROOT, arrived, generation, make_server, put_many, ready, take, until
from pgaq import db, places
from pgaq.lab import faults
from pgaq.lab.drivers import PGAQ, Shape
from pgaq.lab.load import Options, Workload

POINTS = faults.test_points()
# these need more than plain traffic, and have tests of their own below
RARE = {"timers-fired", "failed-moved", "loading", "candidates-found", "counts-written-out"}
# these are only on the way of sharded queues
SHARDED = {
    "slots-reserved", "before-log", "after-log", "before-truncation", "between-truncations", "after-truncation",
    "candidates-found", "counts-written-out", "loading",
}  # fmt: skip
LONG_RUNS = 200
PARTITION = 16384

pytestmark = pytest.mark.test_build


@pytest.fixture(scope="module")
def library():
    """Directory with a pgaq.so that has test points."""
    given = os.environ.get("PGAQ_TEST_POINTS_DIR")
    if given:
        yield given
        return
    build = Path(tempfile.mkdtemp(prefix="pgaq-points-build-", dir=os.environ.get("PGAQ_RUN_DIR")))
    build.chmod(0o755)
    for name in ("src", "sql", "Makefile", "pgaq.control"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, build / name, ignore=shutil.ignore_patterns("*.o", "*.bc", "*.so"))
        else:
            shutil.copy(source, build / name)
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "TEST_POINTS=1", f"PG_CONFIG={places.pg_config_program()}"], cwd=build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    yield str(build)
    shutil.rmtree(build, ignore_errors=True)


def server_with_points(monkeypatch, library, name, expected, **settings):
    """Yields it, and proves in the end that its log holds nothing but what is expected."""
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    server = make_server(name, **settings)
    server.expect_log(expected)
    install_points(server)
    yield server
    problems = server.problems()
    server.destroy()
    assert problems == []


@pytest.fixture
def points_server(library, monkeypatch):
    expected = r"terminat|crash|signal 9|there is no transaction in progress"
    yield from server_with_points(monkeypatch, library, "points", expected, **{"pgaq.reuse_grace": "0"})


def install_points(server):
    script = (ROOT / "sql" / "test_points.sql").read_text().replace("$libdir/", "")
    with server.connect() as conn:
        conn.execute(script)


def crash_once(server, work, point, skip):
    """Arm the point and wait until the server has crashed there; False when nobody came by."""
    before = until(lambda: generation(server), "the server")
    faults.arm_crash(server, point, skip)
    goal = work.control.delivered + 200_000

    def over():
        work._check_clients()
        return generation(server) != before or work.control.delivered > goal

    until(over, f"a crash at {point}", 120)
    return generation(server) != before


def drain(server, work, rng):
    """Let the consumers take the rest, finishing what clients have left prepared."""
    deadline = time.monotonic() + 2 * PATIENCE
    while not work.drain(timeout=3):
        faults.finish_prepared(server, 1.0, rng)
        assert time.monotonic() < deadline, "not drained"
    faults.finish_prepared(server)


def run(server, shape, points, rng, name, skip=3):
    """A workload that turns partitions over, crashing at these points; returns those never reached."""
    options = Options(rollback=5, savepoint=5, prepare=5, reconnect=True, explicit=True, backlog=4000, seed=rng.randrange(1, 10_000))
    missed = []
    with Workload(server, PGAQ, shape, options, queue=name) as work:
        work.setup()
        work.start()
        for point in points:
            began = time.monotonic()
            crashed = crash_once(server, work, point, rng.randrange(skip))
            print(f"{point}: {'crashed' if crashed else 'never reached'} after {time.monotonic() - began:.1f} s")
            if not crashed:
                missed.append(point)
                with server.connect() as conn:
                    conn.execute("SELECT aq.point_reset()")
            goal = work.control.delivered + 500
            until(lambda: work.control.delivered >= goal or work._check_clients(), f"progress after {point}")
        drain(server, work, rng)
        work.stop()
        report = work.check()
        assert report.ok, f"{points}: {report}"
        work.teardown()
    return missed


def test_points_exist():
    assert len(POINTS) >= 5 and RARE <= set(POINTS), POINTS


def test_crash_at_points(points_server, seed):
    """Each point once (the long form: two hundred random crashes)."""
    rng = random.Random(seed)
    points = sorted(set(POINTS) - RARE - (SHARDED if conftest.on_queue_tables else set()))
    rng.shuffle(points)
    assert run(points_server, Shape(sessions=3, batch=20, payload=40), points, rng, "points") == []


def test_crash_when_timers_fire(points_server, seed):
    """Delayed messages become ready once, however often the worker dies over it."""
    shape = Shape(sessions=2, batch=10, payload=40, delay_ms=100)
    assert run(points_server, shape, ["timers-fired", "timers-fired"], random.Random(seed), "timers") == []


def test_crash_when_failed_messages_are_moved(points_server):
    """What expires is in the exception queue once, and not in its own any more."""
    with points_server.connect() as conn:
        conn.execute("SELECT aq.create_queue('dead'), aq.create_queue('mortal', exception_queue => 'dead')")
        faults.arm_crash(points_server, "failed-moved", 2)
        before = generation(points_server)
        put_many(conn, "mortal", 1, 1000, expiration="0.3 s")
    until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        assert sorted(arrived(conn, "dead", 1000)) == list(range(1, 1001))
        assert db.value(conn, "SELECT count(*) FROM aq.browse('mortal')") == 0


@pytest.mark.sharded
def test_crash_while_loading(points_server):
    """The first session after a restart dies while it reads what is there; the next reads it all the same."""
    with points_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('loaded')")
        put_many(conn, "loaded", 1, 30_000)
        assert take(conn, "loaded", number=10_000) == list(range(1, 10_001))
    for skip in (0, 1):
        points_server.restart("immediate")
        before = until(lambda: generation(points_server), "the server")
        faults.arm_crash(points_server, "loading", skip)
        try:
            with points_server.connect() as conn:
                conn.execute("BEGIN")
                take(conn, "loaded")
        except db.OperationalError:
            pass
        until(lambda: generation(points_server) not in (None, before), "a crash")
    with points_server.connect() as conn:
        conn.execute("SELECT aq.point_reset()")
        assert arrived(conn, "loaded", 20_000) == list(range(10_001, 30_001))


@pytest.fixture
def small_cache(library, monkeypatch):
    """A server with test points whose message cache holds seven partitions."""
    yield from server_with_points(monkeypatch, library, "small", r"terminat|crash|signal 9", **{"pgaq.message_cache_size": "4MB"})


@pytest.mark.sharded
def test_evicted_between_look_and_take(small_cache):
    """A selective dequeue gets what it has found, though the partition has left the cache meanwhile."""
    server = small_cache
    with server.connect() as conn, server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('looked_at', shards => 1), aq.create_queue('large')")
        put_many(conn, "looked_at", 1, 20_000)
        for start in range(1, 150_000, 10_000):
            put_many(conn, "large", start, start + 9_999)
        db.execute(conn, "SELECT aq.point_hold('candidates-found')")
        query = "SELECT payload FROM aq.dequeue('looked_at', max_messages => 3, condition => 'priority = 1')"
        found = pool.submit(lambda: other.execute(query).fetchall())
        try:
            assert db.value(conn, "SELECT aq.point_await('candidates-found')")
            conn.execute("BEGIN")
            assert db.value(conn, "SELECT count(*) FROM aq.dequeue('large', max_messages => 110000, mode => 'locked')") == 110_000
            assert db.value(conn, "SELECT bool_or(NOT resident) FROM aq.partitions WHERE queue_name = 'looked_at' AND state = 'closed'")
            conn.execute("ROLLBACK")
        finally:
            with server.connect() as third:
                third.execute("SELECT aq.point_reset()")
        assert found.result(PATIENCE) == [(1,), (2,), (3,)]
        assert take(conn, "looked_at") == list(range(4, 20_001))


@pytest.mark.sharded
@pytest.mark.parametrize("action", ["error", "crash"])
def test_counts_are_written_out(small_cache, action):
    """Retry counts for which there is no memory: an error or a crash while they are written loses none and counts none twice."""
    with small_cache.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', retry_delay => '1 s')")  # whose timers do not fit
        for start in range(1, 120_000, 10_000):
            put_many(conn, "q", start, start + 9_999)
        conn.execute("BEGIN")
        assert take(conn, "q", number=110_000) == list(range(1, 110_001))
        with small_cache.connect() as other:
            other.execute("SELECT aq.point_arm('counts-written-out', %s, 2)", [action])
        before = generation(small_cache)
        conn.execute("ROLLBACK")
        if action == "error":
            until(lambda: "test point" in small_cache.log_text(), "the error")
    if action == "crash":
        until(lambda: generation(small_cache) not in (None, before), "a crash")
    found = []
    with small_cache.connect() as conn:
        while len(found) < 120_000 and ready(conn, "q", timeout="20 s"):
            found += conn.execute("SELECT payload, attempts FROM aq.dequeue('q', max_messages => 5000)").fetchall()
    assert sorted(number for number, _ in found) == list(range(1, 120_001))
    once = [number for number, attempts in found if attempts == 1]
    assert all(attempts <= 1 for _, attempts in found)
    # a crash is no rollback: what was not written then does not count
    assert once == list(range(1, 110_001)) if action == "error" else len(once) == 2 * PARTITION


@pytest.mark.long
def test_two_hundred_crashes(library, monkeypatch, seed):
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    rng = random.Random(seed)
    common = sorted(set(POINTS) - RARE)
    done = 0
    while done < LONG_RUNS:
        server = make_server("points", **{"pgaq.reuse_grace": "0", "pgaq.message_cache_size": rng.choice(["4MB", "128MB"])})
        server.expect_log(r"terminat|crash|signal 9|there is no transaction in progress")
        install_points(server)
        shape = rng.choice([Shape(sessions=3, batch=20, payload=40), Shape(kind="topic", sessions=2, batch=20, subscribers=3, payload=40)])
        points = [rng.choice(common) for _ in range(10)]
        try:
            missed = run(server, shape, points, rng, f"points{done}", skip=rng.choice([2, 20, 2000]))
            done += len(points) - len(missed)
            assert server.problems() == []
        finally:
            server.destroy()
