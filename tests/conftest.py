"""Fixtures and helpers of all pytest files in this directory: servers, queues, timeouts.

No test sleeps to wait for something: `until` looks at an observable event until
a deadline, `arrived` waits by aq.wait.  Servers come from pgaq.server; a server
is thrown away after its test file, and its log must not hold an unexpected line.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import functools
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from pgaq import places  # noqa: E402

sys.path.append(str(places.PSYCOPG_C))

from pgaq import db  # noqa: E402
from pgaq.load import build  # noqa: E402
from pgaq.server import Server  # noqa: E402
from pgaq_proof import faults  # noqa: E402

PATIENCE = float(os.environ.get("PGAQ_PATIENCE") or 60)
HUNG = 15 * PATIENCE  # seconds; far more than a test takes that is not long
LOOK = 5.0  # seconds; what counts at most of the time between two looks
_numbers = itertools.count(1)
_stderr = 2
on_queue_tables = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run what takes minutes; more rounds of what is random")
    parser.addoption("--queue-tables", action="store_true", help="every queue is made in a queue table of its own")
    parser.addoption("--seed", type=int, default=0, help="seed of random tests (0: a new one, printed)")


def pytest_configure(config: pytest.Config) -> None:
    global on_queue_tables, _stderr
    _stderr = os.dup(2)  # not captured yet
    on_queue_tables = config.getoption("--queue-tables")
    # programs that tests start find the package, not pgaq.so where it was built
    os.environ |= {"PYTHONPATH": f"{ROOT / 'python'}:{places.PSYCOPG_C}", "PYTHONSAFEPATH": "1"}
    # a shell starts programs in the background with SIGINT ignored, and all that they start inherits it; a worker of
    # pytest-xdist, whose parent has done this, may be here in another thread, which cannot do it
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "sharded(reason): says something of sharded queues only")
    config.addinivalue_line("markers", "own_tables: makes its queue tables itself, so it says the same with --queue-tables")
    config.addinivalue_line("markers", "long: takes minutes; runs with --long only")
    config.addinivalue_line("markers", "test_build: needs a library built with TEST_POINTS=1")


# Files that take a minute or more start first, the longest one at the very beginning, so that the run does not end with a
# single busy process.
LONGEST = [
    "test_workers.py",
    "test_limits.py",
    "test_distributed.py",
    "test_points.py",
    "test_reuse.py",
    "test_distributed_points.py",
    "test_leases.py",
    "test_dump.py",
    "test_crash.py",
    "test_launcher.py",
    "test_demo.py",
    "test_link_streams.py",
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
    for item in items:
        if not on_queue_tables:
            break
        for mark in (*item.iter_markers("sharded"), *item.iter_markers("own_tables")):
            item.add_marker(pytest.mark.skip(reason=mark.args[0] if mark.args else "makes its queue tables itself"))
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="runs with --long"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Ends the process if a test waits for ever, which then fails, and shows where its threads are."""
    if "long" not in item.keywords:
        faulthandler.dump_traceback_later(HUNG, exit=True, file=_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def is_long(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of all random choices in this run; printed in the head of a failing test's output."""
    return pytestconfig.getoption("--seed") or time.time_ns() % 1_000_000


# -- servers


def make_server(name: str, parent: str | None = None, **settings: Any) -> Server:
    """A server with the extension in database postgres, below the folder parent or that of the run.  All have the same system identifier."""
    return Server.temporary(name, parent=parent, settings=settings, copy_of=installed())


@functools.cache
def installed() -> Path:
    """Data directory of a server with the extension, made once in a run."""
    run = os.environ.get("PGAQ_RUN_DIR")
    parent = Path(run or tempfile.mkdtemp(prefix="pgaq-installed-"))
    if not run:
        places.give_to_server(parent)
        atexit.register(shutil.rmtree, parent, ignore_errors=True)
    made = parent / ("installed-queue-tables" if on_queue_tables else "installed")
    with open(parent / f"{made.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            server = Server.temporary("installed", parent=parent)
            with server.connect() as conn:
                install(conn)
            server.stop()
            server.data.rename(made)
            server.destroy()
    return made


def install(conn: db.Connection) -> None:
    """The extension, in a database that has none."""
    conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
    if on_queue_tables:
        use_queue_tables(conn)
    retry_at_once(conn)


def retry_at_once(conn: db.Connection) -> None:
    """Queues of this database have no limit of retries and no retry delay, unless a test asks for them."""
    defaults = {
        "max_retries integer DEFAULT 5": "max_retries integer DEFAULT NULL",
        "retry_delay interval DEFAULT '00:00:01'": "retry_delay interval DEFAULT '0'",
    }
    definition = db.value(conn, "SELECT pg_get_functiondef('aq.create_queue'::regproc)")
    for default, other in defaults.items():
        assert default in definition, definition
        definition = definition.replace(default, other)
    conn.execute(definition)


def use_queue_tables(conn: db.Connection) -> None:
    """Makes aq.create_queue of this database create queue tables from now on."""
    conn.execute((ROOT / "tests/sql/on_queue_tables.sql").read_text())
    # as members of the extension they are in no dump
    conn.execute("ALTER EXTENSION pgaq ADD FUNCTION aq.create_queue; ALTER EXTENSION pgaq ADD FUNCTION aq.drop_queue")


def differences(server: Server) -> list[str]:
    """The findings of aq.check() on a running server; a test must leave no differences."""
    try:
        with server.connect(connect_timeout="5") as conn:
            if not db.value(conn, "SELECT count(*) FROM pg_extension WHERE extname = 'pgaq'"):
                return []
        return faults.differences(server, "20 s")
    except db.OperationalError:
        return []


def end_server(server: Server) -> None:
    """Stop it; complain about what it logged, and what it has left in shared memory."""
    problems = [*server.problems(), *(differences(server) if server.running() else [])]
    text = server.log_text()
    server.destroy()
    if problems:
        tail = "\n".join(text.splitlines()[-40:])
        pytest.fail("unexpected lines in the server log:\n" + "\n".join(problems) + "\n-- the log's end:\n" + tail)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One server for the file; its variable SETTINGS may hold settings, PARENT a folder for it."""
    stem = request.module.__name__.split(".")[-1].removeprefix("test_")
    made = make_server(stem, getattr(request.module, "PARENT", None), **getattr(request.module, "SETTINGS", {}))
    yield made
    end_server(made)


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """One server for all files of tests/console."""
    made = make_server("console", max_prepared_transactions="10")
    yield made
    end_server(made)


@pytest.fixture(scope="session")
def library() -> Iterator[str]:
    """Directory with a pgaq.so that has test points; a server loads it when PGAQ_LIBDIR says so."""
    given, run = os.environ.get("PGAQ_TEST_POINTS_DIR"), os.environ.get("PGAQ_RUN_DIR")
    if given:
        yield given
        return
    if run:
        yield str(build.shared_library("test_points", "TEST_POINTS=1", parent=run))  # goes with the directory of the run
        return
    made = build.make_library("TEST_POINTS=1")
    yield str(made)
    shutil.rmtree(made, ignore_errors=True)


def install_points(server: Server) -> None:
    """The functions by which a test arms test points."""
    script = (ROOT / "sql" / "test_points.sql").read_text().replace("$libdir/", "")
    with server.connect() as conn:
        conn.execute(script)


@contextlib.contextmanager
def server_with_points(
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    name: str,
    expected: str = r"terminat|crash|signal 9|there is no transaction in progress",
    **settings: Any,
) -> Iterator[Server]:
    """Yields it, and proves in the end that its log holds nothing but what is expected, and that its memory agrees with the tables."""
    monkeypatch.setenv("PGAQ_LIBDIR", library)
    server = make_server(name, **settings)
    server.expect_log(expected)
    install_points(server)
    try:
        yield server
    except BaseException:
        server.destroy()
        raise
    end_server(server)


@pytest.fixture
def points_server(library: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with server_with_points(monkeypatch, library, "points", **{"pgaq.reuse_grace": "0"}) as server:
        yield server


@contextlib.contextmanager
def held(server: Server, point: str) -> Iterator[db.Connection]:
    """Sessions that arrive at the test point stay there."""
    with server.connect() as other:
        db.execute(other, "SELECT aq.point_hold(%s)", [point])
        try:
            yield other
        finally:
            db.execute(other, "SELECT aq.point_reset()")


@pytest.fixture
def new_server(request: pytest.FixtureRequest) -> Iterator[Callable[..., Server]]:
    """Makes servers for one test only."""
    made: list[Server] = []

    def make(name: str = "own", **settings: Any) -> Server:
        made.append(make_server(name, **settings))
        return made[-1]

    yield make
    for each in made:
        end_server(each)


@pytest.fixture
def throw_away() -> Iterator[Callable[[Server], Server]]:
    """Takes over servers made by other means (base backups) and removes them."""
    made: list[Server] = []

    def take(server: Server) -> Server:
        made.append(server)
        return server

    yield take
    for each in made:
        end_server(each)


@pytest.fixture
def conn(server: Server) -> Iterator[db.Connection]:
    with server.connect() as connection:
        yield connection


@pytest.fixture
def queue(server: Server) -> Iterator[str]:
    """A fresh queue of the file's server; dropped afterwards if it is still there."""
    name = f"q{next(_numbers)}"
    with server.connect() as connection:
        db.execute(connection, "SELECT aq.create_queue(%s)", [name])
    yield name
    if server.running():
        with server.connect() as connection:
            drop(connection, name)


@pytest.fixture
def topic(server: Server) -> Iterator[str]:
    """A fresh multi-consumer queue with the subscribers a and b."""
    name = f"topic{next(_numbers)}"
    with server.connect() as connection:
        db.execute(connection, "SELECT aq.create_queue(%s, multiple_consumers => true)", [name])
        db.execute(connection, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [name])
    yield name
    if server.running():
        with server.connect() as connection:
            drop(connection, name)


# -- what tests do all the time


def drop(conn: db.Connection, name: str) -> None:
    """Drop a queue, and first what a failed test may have left in its way."""
    for (gid,) in conn.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall():
        conn.execute(f"ROLLBACK PREPARED '{gid}'")
    conn.execute("SET lock_timeout = '20 s'; SET statement_timeout = '60 s'")
    db.execute(conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq_internal.queue WHERE queue_name = %s", [name])


def put(conn: db.Connection, queue: str, *payloads: Any, **options: Any) -> list[str]:
    """Enqueue payloads (anything JSON can say), one call each; returns their ids."""
    import json

    more = "".join(f", {name} => %s" for name in options)
    query = f"SELECT aq.enqueue(%s, %s{more})::text"
    return [db.value(conn, query, [queue, json.dumps(payload), *options.values()]) for payload in payloads]


def put_many(conn: db.Connection, queue: str, first: int, last: int, **options: Any) -> None:
    """Enqueue the numbers first..last by one call."""
    more = "".join(f", {name} => %s" for name in options)
    query = (
        f"SELECT cardinality(aq.enqueue_array(%s, (SELECT array_agg(n::text ORDER BY n) FROM generate_series(%s::int, %s::int) n){more}))"
    )
    db.execute(conn, query, [queue, first, last, *options.values()])


def generation(server: Server) -> int | None:
    """Changes with every start of shared memory; None while there is none.

    It is read in the log: a connection costs more than most of what is waited for.
    """
    text = server.log_text()
    last = max(text.rfind(line) for line in ("starting PostgreSQL", "terminating any other active server processes", "reinitializing"))
    if "ready to accept" not in text[last:] or not server.running():
        return None
    return text.count("starting PostgreSQL") + text.count("reinitializing")


BACKGROUND = "backend_type = 'pgaq ' || %(kind)s AND datname IS NOT DISTINCT FROM CASE WHEN %(kind)s IN ('worker', 'link') THEN current_database() END"


def background(conn: db.Connection, kind: str) -> int | None:
    """The pid of this database's worker, or of the server's launcher or sampler; None while there is none.

    The launcher starts workers in the other databases, too, for a moment: to learn whether they have queues.
    """
    return db.value(conn, f"SELECT max(pid) FROM pg_stat_activity WHERE {BACKGROUND}", {"kind": kind})


def at_rest(conn: db.Connection, kind: str) -> int | None:
    """The same, but None also while it is doing something."""
    query = f"""SELECT max(pid) FROM pg_stat_activity JOIN sys."v$session_wait" w USING (pid)
        WHERE {BACKGROUND} AND w.event = 'aq: ' || %(kind)s || ' idle' AND w.state = 'WAITING'"""
    return db.value(conn, query, {"kind": kind})


@contextlib.contextmanager
def stopped_worker(conn: db.Connection, kind: str = "worker") -> Iterator[None]:
    """The database's worker, or the server's sampler, does nothing for a while, and holds nothing that others wait for."""
    with ThreadPoolExecutor(1) as pool:
        process = until(lambda: stop_at_rest(conn, kind, pool), f"the {kind} stopped at rest")
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def stop_at_rest(conn: db.Connection, kind: str, pool: ThreadPoolExecutor) -> int | None:
    """Stop it; None, and nothing is done, when it was no longer at rest by then.

    Then it may hold a lock of PostgreSQL's that the question itself waits for.
    """
    process = at_rest(conn, kind)
    if process is None:
        return None
    os.kill(process, signal.SIGSTOP)
    answer = pool.submit(at_rest, conn, kind)
    with contextlib.suppress(FutureTimeout):
        if answer.result(timeout=1) == process:
            return process
    os.kill(process, signal.SIGCONT)
    answer.result()
    return None


def take(conn: db.Connection, queue: str, consumer: str | None = None, number: int = 100_000) -> list[Any]:
    """Dequeue what is ready now; the payloads."""
    query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => %s)"
    return [row[0] for row in conn.execute(query, [queue, consumer, number])]


def look(conn: db.Connection, queue: str, consumer: str | None = None) -> list[Any]:
    """Browse; the payloads."""
    query = "SELECT payload FROM aq.browse(%s, consumer => %s, max_messages => 100000)"
    return [row[0] for row in conn.execute(query, [queue, consumer])]


def ready(conn: db.Connection, queue: str, consumer: str | None = None, timeout: str = "0") -> bool:
    """The result of CALL aq.wait."""
    return bool(db.value(conn, "CALL aq.wait(%s, %s, %s, NULL)", [queue, consumer, timeout]))


class Waiting:
    """How long a test has waited, according to its looks.

    If much more time has passed between two looks, the whole machine stood still, such as a virtual machine that was
    paused, and the server with it: this is no time in which the server could have done anything.
    """

    def __init__(self, patience: float) -> None:
        self.seconds = 0.0
        self._patience = patience
        self._latest = time.monotonic()

    def is_over(self) -> bool:
        now = time.monotonic()
        self.seconds += min(now - self._latest, LOOK)
        self._latest = now
        return self.seconds > self._patience


def arrived(conn: db.Connection, queue: str, number: int, consumer: str | None = None, patience: float = PATIENCE) -> list[Any]:
    """Dequeue until that many messages have come (or time is up), then whatever else is there."""
    got: list[Any] = []
    waiting = Waiting(patience)
    while len(got) < number and not waiting.is_over():
        if ready(conn, queue, consumer, "1 s"):
            got += take(conn, queue, consumer)
    return got + take(conn, queue, consumer)


def waiting_for(conn: db.Connection, event: str) -> list[int]:
    """P3 of each wait for this event."""
    query = """SELECT p3 FROM sys."v$session_wait" WHERE event = %s AND state = 'WAITING'"""
    return [p3 for (p3,) in conn.execute(query, [event]).fetchall()]


def until(condition: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """Look until condition() is true and return its value; fail at the deadline.

    It looks again after a tenth of the time that has passed: looking takes the processor from what is waited for.
    """
    waiting = Waiting(patience)
    while not (found := condition()):
        if waiting.is_over():
            pytest.fail(f"not within {patience:g} s: {what or condition}")
        time.sleep(min(max(0.005, waiting.seconds / 10), 0.05))
    return found
