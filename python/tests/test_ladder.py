"""Reading the counts of each kind of runner."""

import os
import subprocess
import sys

import pytest

from pgaq import places
from pgaq_proof import ladder
from pgaq_proof.ladder import Result, Rung, count

RUNG = Rung("x", "", [])


@pytest.mark.parametrize(
    "output, expected",
    [
        ("18 passed, 0 failed\nok threads\n3 passed, 1 failed\n", (21, 1, 0)),
        ("....F\n== 2 failed, 12 passed, 3 skipped in 3.20s ==\n", (12, 2, 3)),
        ("218 passed, 0 failed\nF\n1 failed, 4 passed in 2.00s\n", (4, 1, 0)),
        ("34 passed in 0.13s\n", (34, 0, 0)),
        ("== 5 passed, 1 skipped, 1 error in 61.02s (0:01:01) ==\n", (5, 1, 1)),
        ("=======\n All 24 tests passed. \n=======\n", (24, 0, 0)),
        ("======\n 3 of 24 tests failed. \n=====\n", (21, 3, 0)),
        ("# All 2 tests passed.\n", (2, 0, 0)),
        ("no tests ran in 0.01s\n", (0, 0, 0)),
        ("make: *** [check] Error 1\n", (0, 0, 0)),
    ],
)
def test_count(output, expected):
    assert count(output) == expected


def test_no_test_is_a_failure():
    assert not Result(RUNG).ok
    assert "no test ran" in Result(RUNG).verdict


def test_a_runner_that_breaks_is_a_failure():
    assert not Result(RUNG, passed=5, status=2).ok
    assert Result(RUNG, passed=5).ok


def test_climb_counts_what_the_runner_prints(capfd):
    result = ladder.climb(Rung("x", "", ["sh", "-c", "echo 3 passed, 0 failed; exit 1"]), {"PATH": "/usr/bin:/bin"}, [], print)
    assert (result.passed, result.status, result.ok) == (3, 1, False)


@pytest.mark.parametrize(
    "output, expected",
    [
        ("FAILED tests/a.py::test_b[c-d] - assert 1\n1 failed in 1.0s\n", ["FAILED tests/a.py::test_b[c-d] - assert 1"]),
        ("ERROR tests/a.py::test_b - Failed: the log\nERROR:  a line of a server\n", ["ERROR tests/a.py::test_b - Failed: the log"]),
        ("ok      a: x\nnot ok  b: y\n        f:1: why\nok      c: z\n", ["not ok  b: y\n        f:1: why"]),
        ("test a                ... ok\ntest b                ... FAILED       12 ms\n", ["test b                ... FAILED       12 ms"]),
        ("core: 3 tests passed, 1 failed\n  FAILED org.pgaq.A.b\n    at c\n", ["FAILED org.pgaq.A.b"]),
    ],
)
def test_the_end_names_what_failed(output, expected):
    result = ladder.climb(Rung("x", "", ["printf", "%s", output]), {"PATH": "/usr/bin:/bin"}, [], lambda line: None)
    assert result.failures == expected


def test_rungs_at_a_time(tmp_path, capfd):
    """Each of three waits for the next one; a fourth that comes after one of them begins when that one has ended; their lines are not mixed."""

    def rung(name, meets, after=""):
        meeting = f"touch {name}; echo {name} begins; until [ -e {meets} ]; do sleep 0.01; done"
        done = f"echo $([ -e {after or name} ] && echo 1 || echo 0) passed, 0 failed; touch {name}.ended"
        return Rung(name, "", ["sh", "-c", f"cd {tmp_path}; {meeting}; {done}"], after=after.removesuffix(".ended"))

    chosen = [rung("one", "two"), rung("two", "three"), rung("three", "one"), rung("four", "four", "one.ended")]
    results = ladder.climb_all(chosen, {"PATH": "/usr/bin:/bin"}, [])
    names = ("one", "two", "three", "four")
    assert [(result.rung.name, result.passed, result.ok) for result in results] == [(name, 1, True) for name in names]
    shown = [line for line in capfd.readouterr().out.splitlines() if line]
    assert shown == [line for name in names for line in (f"=== {name}: ", f"{name} begins", "1 passed, 0 failed")]


def test_what_is_missing_is_collected(capfd):
    """Only what is not installed: other tests are skipped on purpose."""
    lines = "SKIPPED [2] tests/clients/test_drivers.py:72: missing: node (NODE_PATH)\nSKIPPED [1] tests/cluster/test_x.py:8: runs with --long\n1 passed, 3 skipped in 1.00s"
    result = ladder.climb(Rung("x", "", ["printf", lines]), {"PATH": "/usr/bin:/bin"}, [], print)
    assert (result.skipped, result.missing) == (3, ["tests/clients/test_drivers.py: node (NODE_PATH) (2 skipped)"])


def test_logs_are_read(tmp_path):
    (tmp_path / "a.log").write_text("LOG: fine\nWARNING:  odd\n2026 [1] PANIC:  worse\nWARNING:  meant\n")
    (tmp_path / "a.log.allow").write_text("meant\n")
    number, problems = ladder.read_logs(tmp_path)
    assert number == 1
    assert [line.split(": ", 1)[1] for line in problems] == ["WARNING:  odd", "2026 [1] PANIC:  worse"]


def test_a_test_that_hangs_fails(tmp_path):
    """With the name of the test and the line where it waits, and the other tests of the run go on."""
    (tmp_path / "test_some.py").write_text(
        "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n\n\ndef test_passes():\n    pass\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(places.ROOT / "tests"), "PGAQ_PATIENCE": "0.1"}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-n", "1", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "crashed while running 'test_some.py::test_hangs'" in run.stdout
    assert 'test_some.py", line 5 in test_hangs' in run.stderr
    assert "1 failed, 1 passed" in run.stdout
