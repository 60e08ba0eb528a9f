"""A crash at every named test point.  Needs a library built with TEST_POINTS=1,
found through $PGAQ_LIBDIR; without one it is built into a directory of its own.

The points are read from the source, so that a new one is covered at once.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, ROOT, make_server, until
from pgaq import db, places
from pgaq.lab import faults
from pgaq.lab.drivers import PGAQ, Shape
from pgaq.lab.load import Options, Workload

POINTS = faults.test_points()
LONG_RUNS = 200

pytestmark = pytest.mark.test_build


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Directory with a pgaq.so that has test points."""
    given = os.environ.get("PGAQ_TEST_POINTS_DIR")
    if given:
        return given
    build = tmp_path_factory.mktemp("points")
    for parent in [build, *build.parents]:
        if parent == Path("/tmp"):
            break
        parent.chmod(0o755)
    for name in ("src", "sql", "Makefile", "pgaq.control"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, build / name, ignore=shutil.ignore_patterns("*.o", "*.bc", "*.so"))
        else:
            shutil.copy(source, build / name)
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "TEST_POINTS=1", f"PG_CONFIG={places.pg_config_program()}"], cwd=build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(build)


@pytest.fixture
def points_server(library, monkeypatch):
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    server = make_server("points", **{"pgaq.reuse_grace": "0"})
    server.expect_log(r"terminat|crash|signal 9|there is no transaction in progress")
    install_points(server)
    yield server
    problems = server.problems()
    server.destroy()
    assert problems == []


def install_points(server):
    script = (ROOT / "sql" / "test_points.sql").read_text().replace("$libdir/", "")
    with server.connect() as conn:
        conn.execute(script)


def generation(server):
    """Changes with every start of shared memory; None while the server does not answer."""
    try:
        with server.connect() as conn:
            return db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    except db.OperationalError:
        return None


def crash_once(server, work, point, skip):
    """Arm the point and wait until the server has crashed there; False when nobody came by."""
    before = until(lambda: generation(server), "the server")
    faults.arm_crash(server, point, skip)
    goal = work.control.delivered + 60_000

    def over():
        work._check_clients()
        return generation(server) != before or work.control.delivered > goal

    until(over, f"a crash at {point}", 120)
    return generation(server) != before


def run(server, shape, points, rng, name, skip=20):
    """A workload that turns partitions over, crashing at these points; returns those never reached."""
    options = Options(rollback=5, savepoint=5, prepare=5, reconnect=True, backlog=4000, seed=rng.randrange(1, 10_000))
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
        assert work.drain(timeout=PATIENCE), f"not drained after {points}"
        work.stop()
        report = work.check()
        assert report.ok, f"{points}: {report}"
        work.teardown()
    return missed


def test_points_exist():
    assert len(POINTS) >= 5, POINTS


def test_crash_at_points(points_server, seed):
    """Each point once (the long form: two hundred random crashes)."""
    rng = random.Random(seed)
    shape = Shape(sessions=3, batch=20, payload=40)
    points = list(POINTS)
    rng.shuffle(points)
    missed = run(points_server, shape, points, rng, "points")
    # rare ones are reached by tests of their own; most must be reached by plain traffic
    print("never reached:", missed)
    assert len(missed) <= len(POINTS) // 3, missed


@pytest.mark.long
def test_two_hundred_crashes(library, monkeypatch, seed):
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    rng = random.Random(seed)
    done = 0
    while done < LONG_RUNS:
        server = make_server("points", **{"pgaq.reuse_grace": "0"})
        server.expect_log(r"terminat|crash|signal 9|there is no transaction in progress")
        install_points(server)
        shape = rng.choice([Shape(sessions=3, batch=20, payload=40), Shape(kind="topic", sessions=2, batch=20, subscribers=3, payload=40)])
        points = [rng.choice(POINTS) for _ in range(10)]
        try:
            missed = run(server, shape, points, rng, f"points{done}", skip=2000)
            done += len(points) - len(missed)
            assert server.problems() == []
        finally:
            server.destroy()
