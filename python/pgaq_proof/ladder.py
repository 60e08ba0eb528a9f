"""./test: every rung, each with its own runner; the counts at the end.

Three rungs run at a time: the longest one, and beside it the others.  Output
appears in the order of the rungs: the first unfinished rung is shown live, the
others when their turns come.
A rung fails when its runner says so, when a test failed, or when no test ran.
The logs of all servers that the rungs start are read at the end: an unexpected
WARNING, PANIC, failed assertion or crash fails the run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from pgaq import places, text
from pgaq.server import log_problems

ROOT = places.ROOT
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
LANES = 3  # rungs at a time, each of several processes: they wait a good part of their time
# the run directory is in memory if there is that much: files of servers that live for seconds need not go to a disk
MEMORY = Path("/dev/shm")
MEMORY_WANTED = 6 << 30


@dataclass
class Rung:
    """One runner."""

    name: str
    what: str
    command: list[str]
    takes_long: bool = False  # understands --long and --seed
    named: bool = False  # runs only if it is named
    after: str = ""  # the rung that must have ended before, if it runs


@dataclass
class Result:
    rung: Rung
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    missing: list[str] = field(default_factory=list)  # what tests were skipped for, because it is not here
    failures: list[str] = field(default_factory=list)  # the runner's lines about failed tests
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of all processes of the rung
    status: int = 0

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.failed == 0 and self.passed > 0

    @property
    def verdict(self) -> str:
        if self.ok:
            return "ok"
        if self.passed + self.failed == 0:
            return "FAILED: no test ran"
        return "FAILED" if self.failed else f"FAILED: status {self.status}"


# what depends most on the store; the others run on queue tables by hand, see tests/README.md
ON_QUEUE_TABLES = [
    "test_prepare.py", "test_dump.py", "test_model.py",
    "test_crash.py::test_state_after_restart", "test_wait.py::test_isolation_levels_wait_as_well", "test_scale.py::test_times_by_the_thousand",
    "test_leases.py::test_prepared_end", "test_leases.py::test_promotion", "test_leases.py::test_extended_while_it_is_acknowledged",
    "test_dead_letters.py::test_crash_dump_and_redrive", "test_dead_letters.py::test_redrive_is_undone",
]  # fmt: skip


# It uses the clients of Jakarta Messaging, which the rung jms makes possible, and is longer than other files of cluster.
LAB = "test_lab_run.py"

# ./test quick: two minutes of processor time
QUICK = ("check", "unit", "regress", "python")


def pytest_rung(name: str, what: str, workers: int, *arguments: str, psycopg: str | None = None, after: str = "") -> Rung:
    """Each of the workers runs one file of tests at a time, with the fastest implementation of psycopg, or the given one."""
    implementation = ["env", f"PSYCOPG_IMPL={psycopg}"] if psycopg else []
    return Rung(name, what, [*implementation, *PYTEST, "-n", str(workers), "--dist", "loadfile", *arguments], takes_long=True, after=after)


def rungs(long: bool, quick: bool = False) -> list[Rung]:
    """The ladder, the longest rung first, and what is short while jms fetches what clients and lab use of it."""
    regress = str(ROOT / "tests" / "regress.py")
    unit = next((d for d in (ROOT / "tests" / "unit", ROOT / "test" / "unit") if (d / "Makefile").exists()), ROOT / "tests" / "unit")
    cluster = ROOT / "tests" / "cluster"
    lab = str(cluster / LAB)
    return [
        pytest_rung("cluster", "crash, restart, standby, load", 3, str(cluster), f"--ignore={lab}"),
        Rung("jms", "Jakarta Messaging (Maven, JUnit)", [sys.executable, str(ROOT / "tests" / "jms.py")], takes_long=True),
        pytest_rung(
            "cluster_tables", "a part of cluster on queue tables", 2, "--queue-tables", *(str(cluster / name) for name in ON_QUEUE_TABLES)
        ),
        Rung("python", "the Python package", [*PYTEST, "-n", "2", "--dist", "loadfile", str(ROOT / "python" / "tests")]),
        pytest_rung("console", "metrics and the console over HTTP", 1, str(ROOT / "tests" / "console")),
        Rung("check", "form and documentation", [sys.executable, str(ROOT / "tools" / "check.py")]),
        Rung(
            "unit",
            "protocols without a server",
            ["make", "-s", "-C", str(unit), "check", *(["SEEDS=100000"] if long else ["SEEDS=300", "ROUNDS=1"] if quick else [])],
        ),
        pytest_rung("lab", "the experiments of the lab", 1, lab, after="jms"),
        pytest_rung("clients", "psycopg and pgjdbc", 2, str(ROOT / "tests" / "clients"), psycopg="python", after="jms"),
        Rung("regress", "one session (pg_regress)", [sys.executable, regress, "sql"]),
        Rung("queue_tables", "the same on queue tables", [sys.executable, regress, "queue_tables"]),
        Rung("isolation", "several sessions in order", [sys.executable, regress, "isolation"]),
        Rung("tables_isolation", "the same on queue tables", [sys.executable, regress, "queue_tables_isolation"]),
        Rung(
            "packages",
            "packages and images in fresh roots",
            [*PYTEST, "-n", "2", "--dist", "loadgroup", str(ROOT / "tests" / "packages")],
            named=True,
        ),
    ]


COUNT = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
PYTEST_LINE = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s", re.M)
# tests that need something that is not installed skip with such a reason
MISSING = re.compile(r"^SKIPPED \[(\d+)\] (\S+?)(?::\d+)?: missing: (.*)$", re.M)
# lines of a runner that name a failed test: pytest, Maven, the unit tests; pg_regress before and since 16; tools/check.py and its reasons
FAILURE = re.compile(r"^(?: *FAILED .*|ERROR \S+::.*|test \S+ +\.\.\. FAILED.*|not ok .*(?:\n {8}.*){0,5})", re.M)
REGRESS_ALL = re.compile(r"^\W*All (\d+) tests? passed", re.M)
REGRESS_SOME = re.compile(r"^\W*(\d+) of (\d+) tests? failed", re.M)


def count(output: str) -> tuple[int, int, int]:
    """Passed, failed, skipped, as the runner itself said."""
    passed = failed = skipped = 0
    summaries = PYTEST_LINE.findall(output)
    if summaries:
        # pytest may show what other runners said, so only its own last line counts
        for number, what in re.findall(r"(\d+) ([a-z]+)", summaries[-1]):
            if what == "passed":
                passed += int(number)
            elif what in ("failed", "error", "errors"):
                failed += int(number)
            elif what == "skipped":
                skipped += int(number)
        return passed, failed, skipped
    for found in COUNT.finditer(output):
        passed += int(found[1])
        failed += int(found[2])
    for found in REGRESS_ALL.finditer(output):
        passed += int(found[1])
    for found in REGRESS_SOME.finditer(output):
        failed += int(found[1])
        passed += int(found[2]) - int(found[1])
    return passed, failed, skipped


def climb(rung: Rung, environment: dict[str, str], more: list[str], show: Callable[[str], object]) -> Result:
    """Run one rung; show() gets each line of its output as it comes."""
    began = time.monotonic()
    result = Result(rung)
    lines: list[str] = []
    try:
        process = subprocess.Popen(
            [*rung.command, *(more if rung.takes_long else [])], cwd=ROOT, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        show(f"{rung.command[0]}: {error.strerror}\n")
        result.status = 127
        return result
    for line in process.stdout:
        lines.append(line)
        show(line)
    _, status, used = os.wait4(process.pid, 0)
    result.status = process.returncode = os.waitstatus_to_exitcode(status)
    result.cpu = used.ru_utime + used.ru_stime
    result.passed, result.failed, result.skipped = count("".join(lines))
    result.failures = [line.strip() for line in FAILURE.findall("".join(lines))]
    result.missing = [f"{found[2]}: {found[3]} ({found[1]} skipped)" for found in MISSING.finditer("".join(lines))]
    result.seconds = time.monotonic() - began
    return result


class Climb:
    """A rung that runs, or is to run, in a thread of the pool."""

    def __init__(
        self, pool: ThreadPoolExecutor, rung: Rung, environment: dict[str, str], more: list[str], before: Climb | None = None
    ) -> None:
        self.rung = rung
        self._output: queue.SimpleQueue[str | None] = queue.SimpleQueue()

        def run() -> Result:
            if before is not None:
                before.wait()
            return climb(rung, environment, more, self._output.put)

        self._result = pool.submit(run)
        self._result.add_done_callback(lambda _: self._output.put(None))

    def wait(self) -> None:
        """Until it has ended."""
        concurrent.futures.wait([self._result])

    def follow(self) -> Result:
        """Show its output until it ends."""
        print(f"\n=== {self.rung.name}: {self.rung.what}", flush=True)
        for line in iter(self._output.get, None):
            sys.stdout.write(line)
            sys.stdout.flush()
        return self._result.result()


def climb_all(chosen: list[Rung], environment: dict[str, str], more: list[str]) -> list[Result]:
    """Run the rungs in their order, LANES at a time.  An interrupt cancels those that have not started."""
    pool = ThreadPoolExecutor(LANES)
    climbs: dict[str, Climb] = {}
    try:
        for rung in chosen:
            climbs[rung.name] = Climb(pool, rung, environment, more, climbs.get(rung.after))
        return [climbing.follow() for climbing in climbs.values()]
    finally:
        pool.shutdown(cancel_futures=True)


def has_memory() -> bool:
    """Is there room in memory for the files of all servers?"""
    try:
        available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
        return shutil.disk_usage(MEMORY).free >= MEMORY_WANTED and int(available[1]) << 10 >= 2 * MEMORY_WANTED
    except (OSError, TypeError):
        return False


def run_directory() -> Path:
    """Where servers of this run live: reachable for the server's user, not too long a path."""
    parent = os.environ.get("PGAQ_RUN_DIR") or (MEMORY if has_memory() else None)
    directory = Path(tempfile.mkdtemp(prefix="pgaq-test-", dir=parent))
    directory.chmod(0o711)
    if not places.server_can_reach(directory):
        directory.rmdir()
        directory = Path(tempfile.mkdtemp(prefix="pgaq-test-", dir="/var/tmp"))
        directory.chmod(0o711)
    return directory


def read_logs(directory: Path) -> tuple[int, list[str]]:
    """How many server logs there are, and their unexpected lines."""
    logs = sorted(directory.glob("*.log"))
    return len(logs), [f"{log.name}: {line}" for log in logs for line in log_problems(log)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./test", description="Run the tests; without names, every rung.")
    names = [rung.name for rung in rungs(False)]
    parser.add_argument(
        "rungs",
        nargs="*",
        metavar="RUNG",
        help=f"{', '.join(names)} (packages only if named); or quick: {', '.join(QUICK)}, with fewer seeds; or build, which only builds and installs",
    )
    parser.add_argument("--long", action="store_true", help="also what takes minutes or hours")
    parser.add_argument("--seed", type=int, help="of the random tests")
    parser.add_argument("--keep", action="store_true", help="keep the servers' logs")
    given = parser.parse_args(arguments)
    quick = given.rungs == ["quick"]
    wanted = QUICK if quick else given.rungs or [rung.name for rung in rungs(False) if not rung.named]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"there is no rung {unknown[0]}; there are {', '.join(names)}")
    places.clean_up_when_terminated()
    chosen = [rung for rung in rungs(given.long, quick) if rung.name in wanted]
    try:
        places.pg_major()
        directory = run_directory()
    except places.SurroundingsError as error:
        print(f"test: {error}", file=sys.stderr)
        return 1
    logs = directory / "logs"
    logs.mkdir()
    # every server's log is kept here, also those of servers that tests throw away
    environment = {
        **os.environ, "PGAQ_RUN_DIR": str(directory), "PGAQ_LOG_DIR": str(logs), "PG_CONFIG": places.pg_config_program(),
        "PYTHONPATH": str(ROOT / "python"), "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    # each of dozens of processes would compile all tests again
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    more = (["--long"] if given.long else []) + ([f"--seed={given.seed}"] if given.seed is not None else [])
    began = time.monotonic()
    try:
        results = climb_all(chosen, environment, more)
    except KeyboardInterrupt:
        print("\ninterrupted")
        return 130
    number, problems = read_logs(logs)
    failed_log = bool(problems)
    print(f"\n=== server logs: {number} read, {len(problems)} unexpected lines")
    for line in problems[:40]:
        print(f"  {line}")
    if given.keep or failed_log:
        print(f"  kept in {logs}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    rows = [
        [r.rung.name, r.rung.what, r.passed, r.failed, r.skipped or "", f"{r.seconds:.0f} s", f"{r.cpu:.0f} s", r.verdict] for r in results
    ]
    print("\n" + text.table(["rung", "", "passed", "failed", "skipped", "time", "CPU", ""], rows, left=2))
    missing = [line for r in results for line in r.missing]
    if missing:
        print("\nNOT TESTED, because something is missing on this machine:")
        for line in missing:
            print(f"  {line}")
    broken = [f"{r.rung.name}: {failure}" for r in results for failure in r.failures]
    if broken:
        print("\nFAILED:")
        for failure in broken[:40]:
            print(f"  {failure}")
    passed = sum(r.passed for r in results)
    # a rung that broke without a failed test, and a log with surprises, count as failures
    failed = sum(r.failed + (1 if not r.ok and r.failed == 0 else 0) for r in results) + (1 if failed_log else 0)
    print(f"\n{(time.monotonic() - began) / 60:.1f} minutes")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and results else 1


if __name__ == "__main__":
    sys.exit(main())
