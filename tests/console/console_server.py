"""One console for the files of tests/console, on their server, and people who have logged in.

Each file imports what it uses; the server is furnished by the first.
"""

from __future__ import annotations

import re
import threading

import pytest

from conftest import until
from pgaq import db

httpx = pytest.importorskip("httpx", reason="missing: python3-httpx")
pytest.importorskip("starlette", reason="missing: python3-starlette")

from pgaq.console.app import Settings, application  # noqa: E402
from pgaq.console.logins import Guard  # noqa: E402
from pgaq.console.serve import Server  # noqa: E402

HOSTILE = '<script>alert("x")</script>\'"><img src=x onerror=alert(1)>'
HOSTILE_PAYLOADS = [
    HOSTILE,
    "\x1b[31mred\x07",
    "\u202egnp.exe\u202c",
    "{ no json",
    "</pre></textarea><svg onload=alert(1)>",
    "a\nb\r\nc",
    "x" * 100_000,
]
HOST = "127.0.0.1"
PATHS = [
    "/queues",
    "/queue?name=tales",
    "/messages?queue=tales",
    "/keys?queue=tales",
    "/dead",
    "/waits",
    "/schedules",
    "/cluster",
    "/reports",
    "/log",
]


@pytest.fixture(scope="module")
def server(shared_server):
    """Passwords are demanded of three roles; postgres does not need one: the console must not let it in."""
    with shared_server.connect() as conn:
        if db.value(conn, "SELECT count(*) FROM pg_roles WHERE rolname = 'boss'"):
            return shared_server
    hba = shared_server.data / "pg_hba.conf"
    hba.write_text(f"local all boss,viewer,nobody,missing scram-sha-256\n{hba.read_text()}")
    shared_server.reload()
    with shared_server.connect() as conn:
        conn.execute("""
            CREATE ROLE boss LOGIN PASSWORD 'of it all'; GRANT pg_monitor TO boss;
            CREATE ROLE viewer LOGIN PASSWORD 'sees it' IN ROLE pg_monitor;
            CREATE ROLE nobody LOGIN PASSWORD 'sees little';
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA aq TO boss""")
        db.execute(conn, "SELECT aq.create_queue('tales', payload_type => 'text', max_retries => 0)")
        db.execute(conn, "SELECT aq.create_queue(%s)", [HOSTILE])
        db.execute(conn, "SELECT aq.alter_queue(q, new_owner => 'boss') FROM unnest(%s::text[]) q", [["tales", HOSTILE]])
        for word in HOSTILE_PAYLOADS:
            db.execute(conn, "SELECT aq.enqueue('tales', %s::text, correlation => %s, key => %s)", [word, HOSTILE, HOSTILE])
        conn.execute("BEGIN")
        db.execute(conn, "SELECT count(*) FROM aq.dequeue('tales', as_type => NULL::text)")
        conn.execute("ROLLBACK")
        until(lambda: db.value(conn, "SELECT sum(lag) FROM aq.metrics('tales_exceptions')") == 1, "the dead letter")
        db.execute(conn, "SELECT aq.schedule('every_night', 'tales', 'x'::text, cron => '0 3 * * *')")
        db.execute(conn, "SELECT aq.take_snapshot() FROM generate_series(1, 2)")
    return shared_server


def dsn(server):
    return f"host='{server.socket_dir}' port='{server.port}' dbname='postgres'"


def serve(settings):
    """A console in a thread; its URL, and what ends it."""
    made = Server(application(settings), HOST, 0)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    until(lambda: made.started, "the console")

    def end():
        made.handle_exit(15, None)
        thread.join(20)
        assert not thread.is_alive()

    return made, f"http://{HOST}:{made.address[1]}", end


@pytest.fixture(scope="module")
def console(server):
    made, url, end = serve(Settings(dsn=dsn(server), hosts=(HOST, "localhost"), every=0.2))
    made.url = url
    yield made
    end()


@pytest.fixture(autouse=True)
def no_failures(console):
    console._console.logins.guard = Guard()


def client(console, role=None, password=None):
    made = httpx.Client(base_url=console.url, timeout=30)
    if role:
        assert log_in(made, role, password).status_code == 303
    return made


def log_in(made, role, password, **more):
    token = re.search('name="token" value="([^"]+)"', made.get("/login").text)[1]
    return made.post("/login", data={"token": token, "role": role, "password": password}, **more)


@pytest.fixture(scope="module")
def people(console):
    made = {
        "boss": client(console, "boss", "of it all"), "viewer": client(console, "viewer", "sees it"),
        "nobody": client(console, "nobody", "sees little"),
    }  # fmt: skip
    yield made
    for each in made.values():
        each.close()
