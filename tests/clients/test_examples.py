"""examples/: each worker survives kill -9 of itself, of the server and of the pooler, under a ledger.

Each is also suspended for longer than a lease, while another process goes on with its work.  All that is for --long;
otherwise the workers work, get SIGTERM within a batch, start again without the pooler, and end.
All workers run at the same time, each with a queue of its own, beside one server and one PgBouncer.  The ledger is
what the workers write to their logs, and the rows that they save; the views of pgaq are not asked.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from conftest import ROOT, end_server, until
from pgaq import places
from pgaq.load import java
from pgaq.server import Server, free_port

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from test_pgbouncer import PgBouncer  # noqa: E402

EXAMPLES = ROOT / "examples"
LEASE = 4
RETRY_DELAY, FACTOR, LONGEST_DELAY = 0.3, 2, 1
JOBS = 120
LONG = JOBS + 1  # a job that is longer than the lease
FRESH = range(JOBS + 2, JOBS + 22)  # enqueued right before SIGTERM, and taken first
REJECTED, UNSAVED, FAILS_TWICE = 13, 17, 7
TOO_LARGE = 2_000_000_000  # twice this is no integer: its result cannot be saved
PASSWORD = "throw-away"
URL = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{{port}}/{{database}}"
JDBC_URL = f"jdbc:postgresql://127.0.0.1:{{port}}/{{database}}?user=postgres&password={PASSWORD}"
LINE = re.compile(r"^(\d+\.\d+) (\w+) ?(.*)$", re.M)


# -- what starts each of them; a string says what is missing


def psycopg_worker(_):
    return [sys.executable, str(EXAMPLES / "worker_psycopg.py")]


def asyncpg_worker(_):
    return [sys.executable, str(EXAMPLES / "worker_asyncpg.py")]


def node_worker(_):
    os.environ.setdefault("NODE_PATH", str(places.DRIVERS / "nodejs"))
    if not shutil.which("node") or subprocess.run(["node", "-e", "require('pg')"], capture_output=True).returncode != 0:
        return "node, or its package pg (NODE_PATH)"
    return ["node", str(EXAMPLES / "worker_node_postgres.js")]


def pgx_worker(folder):
    """With pgx v5 if there is a module that requires it, otherwise with Debian's pgx v4, which differs in two lines."""
    module = os.environ.get("PGAQ_GO_MODULE")
    debian = next(
        (path for path in (Path("/usr/share/gocode"), places.DRIVERS / "gocode") if (path / "src/github.com/jackc/pgx").exists()), None
    )
    if not shutil.which("go") or not (module or debian):
        return "go, or pgx: Debian's, or a Go module that requires it (PGAQ_GO_MODULE)"
    place = folder / "worker_pgx"
    place.mkdir()
    text = (EXAMPLES / "worker_pgx.go").read_text()
    environment = {**os.environ, "GO111MODULE": "on"}
    if module:
        for name in ("go.mod", "go.sum"):
            shutil.copy(Path(module) / name, place)
    else:
        environment.update({"GO111MODULE": "off", "GOPATH": str(debian)})
        for old, new in (
            ("pgx/v5", "pgx/v4"),
            ("config.DefaultQueryExecMode = pgx.QueryExecModeExec", "config.PreferSimpleProtocol = true"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
    (place / "main.go").write_text(text)
    done = subprocess.run(["go", "build", "-o", "worker", "."], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [str(place / "worker")]


def pgjdbc_worker(folder):
    driver = os.environ.get("PGJDBC", "/usr/share/java/postgresql.jar")
    done = subprocess.run(
        [*java.JAVAC, "-Xlint:all,-serial", "-Werror", "-cp", driver, "-d", str(folder), str(EXAMPLES / "WorkerPgjdbc.java")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return ["java", *java.QUICK, "-cp", f"{driver}:{folder}", "WorkerPgjdbc"]


COMMANDS = {"psycopg": psycopg_worker, "asyncpg": asyncpg_worker, "node-postgres": node_worker, "pgx": pgx_worker, "pgjdbc": pgjdbc_worker}


class Worker:
    """The processes of one example, one after the other, and what they have written."""

    def __init__(self, driver, command, folder):
        self.driver, self.command = driver, command
        self.queue = "jobs_" + re.sub(r"\W", "_", driver)
        self.folder = folder
        self.logs, self.processes, self.exits = [], [], []

    @property
    def process(self):
        return self.processes[-1]

    def start(self, port, databases, batch):
        url = JDBC_URL if self.driver == "pgjdbc" else URL
        urls = [url.format(port=port, database=name) for name in databases]
        environment = {
            **os.environ,
            "DATABASE_URL": urls[0],
            "WAIT_URL": urls[1],
            "QUEUE": self.queue,
            "WORKERS": "3",
            "BATCH": str(batch),
            "LEASE": str(LEASE),
        }
        self.logs.append(self.folder / f"{self.queue}.{len(self.logs)}.log")
        with self.logs[-1].open("a") as log:
            self.processes.append(subprocess.Popen(self.command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def wait(self, process):
        try:
            self.exits.append(process.wait(30))
        except subprocess.TimeoutExpired:
            process.kill()
            self.exits.append(f"did not end\n{self.tail()}")

    def tail(self):
        return f"-- {self.driver}\n" + "\n".join(self.logs[-1].read_text(errors="replace").splitlines()[-15:])

    def lines(self, process=None):
        """(time, event, details, process) of one of its processes, or of all, in order."""
        return sorted(
            (float(at), event, details.split(), number)
            for number, log in enumerate(self.logs) if process in (None, number)
            for at, event, details in LINE.findall(log.read_text(errors="replace"))
        )  # fmt: skip


class Story:
    """What has been done to all workers together; they are started again by hand where they were killed."""

    def __init__(self, server, bouncer, workers):
        self.server, self.bouncer, self.workers = server, bouncer, workers
        self.enqueued = {}  # driver and number of each message
        self.dead = {worker.driver: [] for worker in workers}

    def ask(self, query, values=()):
        with self.server.connect() as conn:
            return conn.execute(query, values).fetchall()

    def prepare(self):
        with self.server.connect() as conn:
            conn.execute("CREATE TABLE job_result (msgid uuid, attempts int, result int)")
            for worker in self.workers:
                conn.execute(
                    """SELECT aq.create_queue(%s, max_retries => 5, retry_delay => make_interval(secs => %s), retry_delay_factor => %s,
                        retry_delay_max => make_interval(secs => %s))""",
                    [worker.queue, RETRY_DELAY, FACTOR, LONGEST_DELAY],
                )
        self.enqueue(1, JOBS, 0.2)

    def enqueue(self, first, last, seconds, priority=1):
        """Jobs: one is rejected, the result of one cannot be saved, one fails twice."""
        query = f"""SELECT aq.enqueue(%s, jsonb_build_object('n', CASE n WHEN {UNSAVED} THEN {TOO_LARGE} ELSE n END, 'seconds', {seconds},
            'failures', CASE n WHEN {FAILS_TWICE} THEN 2 ELSE 0 END, 'reject', n = {REJECTED}), priority => {priority})::text, n FROM generate_series({first}, {last}) n"""
        for worker in self.workers:
            for msgid, n in self.ask(query, [worker.queue]):
                self.enqueued[msgid] = (worker.driver, n)

    def saved(self):
        """By driver: the numbers of the jobs whose results are saved, and the attempts."""
        found = {worker.driver: [] for worker in self.workers}
        for msgid, attempts in self.ask("SELECT msgid::text, attempts FROM job_result"):
            driver, n = self.enqueued[msgid]
            found[driver].append((n, attempts))
        return found

    def all_have(self, number):
        """Every worker has saved that many results."""

        def late():
            saved = self.saved()
            return [worker for worker in self.workers if len(saved[worker.driver]) < number]

        deadline = time.monotonic() + 60
        while slow := late():
            if time.monotonic() > deadline:
                pytest.fail(f"not within a minute: {number} results\n" + "\n".join(worker.tail() for worker in slow))
            time.sleep(0.1)

    def end_at(self, n):
        """Sends SIGTERM to each worker as soon as it has begun this job."""
        running = list(self.workers)

        def all_told():
            for worker in list(running):
                if any(event == "begin" and self.enqueued[details[0]][1] == n for _, event, details, _ in worker.lines()):
                    worker.process.send_signal(signal.SIGTERM)
                    running.remove(worker)
            return not running

        until(all_told, f"job {n} begun")
        for worker in self.workers:
            worker.wait(worker.process)

    def start(self, batch, pooled=True):
        for worker in self.workers:
            if pooled:
                worker.start(self.bouncer.port, ("shop", "shop_wait"), batch)
            else:
                worker.start(self.server.port, ("postgres", "postgres"), batch)

    def signal(self, number, process=-1):
        for worker in self.workers:
            worker.processes[process].send_signal(number)

    def end(self, number, process=-1):
        self.signal(number, process)
        for worker in self.workers:
            worker.wait(worker.processes[process])

    def crash(self):
        self.server.stop("immediate")
        self.server.start()

    def tell(self, disturbed):
        """disturbed: the workers are suspended and killed, the server twice and the pooler once."""
        self.prepare()
        self.start(batch=4)
        if disturbed:
            self.disturb()
        self.all_have(70)
        self.enqueue(FRESH[0], FRESH[-1], f"CASE n WHEN {FRESH[0]} THEN 2.5 ELSE 0.2 END", priority=0)
        self.end_at(FRESH[0])  # the first of a batch
        self.start(batch=1, pooled=False)
        self.all_have(80 + len(FRESH))
        if disturbed:
            self.crash()
        self.enqueue(LONG, LONG, 1.5 * LEASE)
        self.all_have(JOBS - 2 + 1 + len(FRESH))
        until(self.all_failed, "two failed jobs in each exception queue")
        self.end(signal.SIGTERM)
        self.saved_in_the_end = self.saved()

    def disturb(self):
        self.all_have(15)
        self.signal(signal.SIGSTOP)
        suspended = time.monotonic()
        self.start(batch=4)
        self.all_have(35)
        self.crash()
        self.all_have(50)
        time.sleep(max(0, suspended + LEASE + 0.5 - time.monotonic()))  # the leases of the suspended ones are over
        self.signal(signal.SIGCONT, 0)
        for worker in self.workers:
            until(lambda: any(event == "stale" for _, event, _, _ in worker.lines(0)), f"{worker.driver} finds that its lease is over")
        self.end(signal.SIGKILL, 0)
        self.all_have(60)
        self.bouncer.kill()
        self.bouncer.start()

    def all_failed(self):
        """Takes them from the exception queues."""
        for worker in self.workers:
            query = """SELECT (payload->>'n')::int, dead_letter->>'reason', dead_letter->>'error'
                FROM aq.dequeue_full(%s, as_type => null::jsonb, max_messages => 100) ORDER BY 1"""
            rows = self.ask(query, [worker.queue + "_exceptions"])
            self.dead[worker.driver] += rows
        return all(len(dead) >= 2 for dead in self.dead.values())


@pytest.fixture(scope="module")
def story(tmp_path_factory, is_long):
    folder = tmp_path_factory.mktemp("examples")
    commands = {driver: make(folder) for driver, make in COMMANDS.items()}
    server = Server.temporary("examples", tcp=True)
    with server.connect() as conn:
        conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        conn.execute("CREATE EXTENSION pgaq")
    server.expect_log(r"terminat|crash|was not properly shut down|signal")
    with PgBouncer(server, 10, listen_addr="127.0.0.1", listen_port=free_port(), server_login_retry=1) as bouncer:
        workers = [Worker(driver, command, folder) for driver, command in commands.items() if isinstance(command, list)]
        story = Story(server, bouncer, workers)
        story.disturbed = is_long
        story.missing = {driver: command for driver, command in commands.items() if isinstance(command, str)}
        try:
            story.tell(story.disturbed)
        finally:
            for worker in workers:
                for process in worker.processes:
                    if process.poll() is None:
                        process.kill()
                        process.wait()
    yield story
    end_server(server)


@pytest.fixture(params=COMMANDS)
def worker(story, request):
    if request.param in story.missing:
        pytest.skip(f"missing: {story.missing[request.param]}")
    return next(worker for worker in story.workers if worker.driver == request.param)


def begins(story, worker):
    """For each message: (time, attempts, the earliest time for the next attempt, whether this one is told to fail)."""
    found, begun = defaultdict(list), {}
    for at, event, details, process in worker.lines():
        if event == "begin":
            begun[details[0]] = process
            msgid, attempts, until = details[0], int(details[1]), float(details[2])
            n = story.enqueued[msgid][1]
            failing = n in (UNSAVED, REJECTED) or (n == FAILS_TWICE and attempts < 2)
            found[msgid].append([at, attempts, at + min(RETRY_DELAY * FACTOR**attempts, LONGEST_DELAY) if failing else until, failing])
        elif event == "extended" and begun.get(details[0]) == process:  # otherwise taken, but not begun
            last = found[details[0]][-1]
            if not last[3]:
                last[2] = max(last[2], float(details[1]))
    return found


def test_nothing_is_lost(story, worker):
    """Every result is saved once; the job that cannot succeed, and the one that never does, are dead letters that say why."""
    wanted = {*range(1, LONG + 1), *FRESH} - {REJECTED, UNSAVED}
    saved = sorted(n for n, _ in story.saved_in_the_end[worker.driver])
    assert saved == sorted(wanted)
    (rejected, unsaved) = sorted(story.dead[worker.driver])
    assert rejected[:2] == (REJECTED, "rejected") and "no such job" in rejected[2]
    assert unsaved[0] == TOO_LARGE and unsaved[1] in ("retries", "lease") and "range" in unsaved[2]  # killed at the last attempt: lease


def test_attempts(story, worker):
    """They grow; a result has those of the last attempt; what is not counted otherwise is a lease that was over."""
    last = {}
    for msgid, attempts in ((msgid, [b[1] for b in found]) for msgid, found in begins(story, worker).items()):
        assert attempts == sorted(set(attempts)), (story.enqueued[msgid], attempts)
        last[story.enqueued[msgid][1]] = attempts[-1]
    assert {n: attempts for n, attempts in story.saved_in_the_end[worker.driver]} == {
        n: a for n, a in last.items() if n not in (REJECTED, UNSAVED)
    }
    assert last[FAILS_TWICE] >= 2 and last[LONG] == 0
    # with the reason lease the last take was one of which the worker did not hear, or in which it was killed
    assert last[UNSAVED] == 5 or max(story.dead[worker.driver])[1] == "lease"


@pytest.mark.long
def test_no_redelivery_before_its_time(story, worker):
    """When the lease is over, or after the growing retry delay."""
    checked = 0
    for msgid, found in begins(story, worker).items():
        for (_, attempts, earliest, failing), (at, again, _, _) in zip(found, found[1:]):
            lost = again - attempts - 1  # takes of which the worker did not hear, or whose messages it did not begin
            assert at >= earliest + LEASE * lost, (story.enqueued[msgid], found)
            checked += not failing
    assert checked, "no lease has ended"


def test_sigterm(story, worker):
    """It ends without an error, finishes what it has begun, and gives back what it has not: nothing of this is an attempt."""
    assert worker.exits == [-signal.SIGKILL] * story.disturbed + [0, 0], worker.exits
    events = [event for _, event, _, _ in worker.lines()]
    assert events.count("stopped") == 2
    asked, ended = (at for at, event, _, _ in worker.lines(1 + story.disturbed) if event in ("stopping", "stopped"))
    assert ended - asked < 10, "a worker that waits is not woken"
    assert "reconnect" in events or not story.disturbed
    fresh = {msgid for msgid, (driver, n) in story.enqueued.items() if driver == worker.driver and n in FRESH}
    assert [b[1] for msgid in fresh for b in begins(story, worker)[msgid]] == [0] * len(FRESH)
    given_back = {details[1] for _, event, details, _ in worker.lines() if event == "done" and details[0] == "release"}
    assert given_back & fresh
