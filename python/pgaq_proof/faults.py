"""Faults injected into a server under load: kills, stops, restarts, crashes at test points."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from typing import Callable

from pgaq import db, places
from pgaq.server import Server


def _client_backends(server: Server) -> list[int]:
    """Pids of the load's sessions; empty when the server cannot be asked."""
    try:
        with server.connect(connect_timeout="5") as conn:
            found = db.rows(
                conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name LIKE 'load%'"
            )
    except db.OperationalError:
        return []
    return [row["pid"] for row in found]


def kill_backend(server: Server, rng: random.Random) -> None:
    """kill -9 of one session: the server restarts all of them."""
    pids = _client_backends(server)
    if pids:
        _kill(rng.choice(pids))


def kill_worker(server: Server, rng: random.Random) -> None:
    """kill -9 of a background process that is no session."""
    pids = sorted(set(server.child_pids()) - set(_client_backends(server)))
    if pids:
        _kill(rng.choice(pids))


def terminate_backend(server: Server, rng: random.Random) -> None:
    """SIGTERM to one session, as pg_terminate_backend sends."""
    pids = _client_backends(server)
    if pids:
        _signal(rng.choice(pids), signal.SIGTERM)


def cancel_backend(server: Server, rng: random.Random) -> None:
    """SIGINT to one session, as a cancelled statement."""
    pids = _client_backends(server)
    if pids:
        _signal(rng.choice(pids), signal.SIGINT)


def kill_postmaster(server: Server, rng: random.Random) -> None:
    """kill -9 of the postmaster, then a start."""
    server.kill_postmaster()
    server.start()


def crash(server: Server, rng: random.Random) -> None:
    """kill -9 of all processes, then a start."""
    server.kill()
    server.start()


def immediate(server: Server, rng: random.Random) -> None:
    """pg_ctl stop -m immediate, then a start."""
    server.restart("immediate")


def restart(server: Server, rng: random.Random) -> None:
    """pg_ctl restart."""
    server.restart("fast")


def rewrite(server: Server, rng: random.Random) -> None:
    """VACUUM FULL of some message tables and logs: their rows move."""
    with server.connect() as conn:
        names = [
            row["name"]
            for row in db.rows(
                conn,
                "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' ORDER BY 1",
            )
        ]
        conn.execute("SET lock_timeout = '2 s'")
        for name in rng.sample(names, min(12, len(names))):
            try:
                conn.execute(f"VACUUM FULL {name}")
            except db.Error as error:
                if error.sqlstate not in ("55P03", "40P01", "42P01"):  # another session holds it for a long time, or it was dropped
                    raise


FAULTS: dict[str, Callable[[Server, random.Random], None]] = {
    function.__name__: function
    for function in (kill_backend, kill_worker, terminate_backend, cancel_backend, kill_postmaster, crash, immediate, restart, rewrite)
}


# the parts of the source that every queue's messages go through; the others have tests of their own for their points
TRAFFIC = ("base", "sync", "cache", "jobs", "queue", "shard", "classic")


def _points_of(pattern: str, parts: tuple[str, ...]) -> list[str]:
    folders = [places.ROOT / "src" / part for part in parts] or [places.ROOT / "src"]
    text = "".join(path.read_text() for folder in folders for path in folder.rglob("*.c"))
    return sorted(set(re.findall(pattern, text)))


def test_points(*parts: str) -> list[str]:
    """Names of the test points in the source, or in these parts of it."""
    return _points_of(r'aq_point(?:_held)?\("([^"]+)"\)', parts)


def held_points() -> list[str]:
    """Those under a latch or in a commit callback, where no error may be raised."""
    return _points_of(r'aq_point_held\("([^"]+)"\)', ())


def arm(server: Server, point: str, action: str, skip: int = 0) -> None:
    """Let `action` befall the session that reaches the point after `skip` others (TEST_POINTS builds)."""
    try:
        with server.connect() as conn:
            db.execute(conn, "SELECT aq.point_arm(%s, %s, %s)", [point, action, skip])
    except db.OperationalError as error:
        # under load the point may be reached before the answer is
        if "closed the connection" not in str(error) and "terminat" not in str(error):
            raise


def wait_until_up(server: Server, timeout: float = 60) -> None:
    """Wait until the server takes connections again after a crash of a session."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            with server.connect(connect_timeout="5"):
                return
        except db.OperationalError:
            if time.monotonic() > deadline:
                raise
            if not server.running():
                server.start()
            time.sleep(0.02)


def finish_prepared(server: Server, older_than: float = 0.0, rng: random.Random | None = None) -> int:
    """Commit (or, with rng, finish either way) what clients left prepared."""
    with server.connect() as conn:
        found = db.rows(
            conn,
            "SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'load-%%' AND prepared < now() - make_interval(secs => %s)",
            [older_than],
        )
        for row in found:
            verb = "ROLLBACK" if rng is not None and rng.random() < 0.5 else "COMMIT"
            try:
                db.execute(conn, f"{verb} PREPARED '{row['gid']}'")
            except db.Error:
                pass  # its client was faster
    return len(found)


def await_end_of_sessions(server: Server, timeout: float = 30) -> None:
    """Sessions of load clients that have ended end by themselves; wait for it."""
    deadline = time.monotonic() + timeout
    with server.connect() as conn:
        while time.monotonic() < deadline:
            if db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'load%%'") == 0:
                return
            time.sleep(0.02)


def differences(server: Server, patience: str = "3 s") -> list[str]:
    """The result of aq.check(), a line for each row."""
    with server.connect(connect_timeout="5") as conn:
        rows = db.rows(conn, "SELECT * FROM aq.check(%s)", [patience])
    return ["aq.check(): " + ", ".join(f"{key} {value}" for key, value in row.items() if value is not None) for row in rows]


def _kill(pid: int) -> None:
    """Returns when the postmaster has noticed: from then on it takes no connection until the server is up again."""
    _signal(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.005)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
