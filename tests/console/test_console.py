"""pgaq console through HTTP: who sees what, hostile names and payloads, attacks on the login, and a server that is away."""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl


import pytest

from conftest import ROOT, put, take, until
from pgaq import db, demo_console, text

httpx = pytest.importorskip("httpx", reason="missing: python3-httpx")
pytest.importorskip("starlette", reason="missing: python3-starlette")

from starlette.testclient import TestClient  # noqa: E402

from pgaq.command.main import run  # noqa: E402
from pgaq.console import actions, logins, pages, words  # noqa: E402
from pgaq.console.app import Settings, application  # noqa: E402
from pgaq.console.logins import Guard, Logins, Refused  # noqa: E402
from pgaq.console.pages import PAGES  # noqa: E402
from pgaq.console.serve import Server  # noqa: E402
from pgaq.load.workload import LoadError  # noqa: E402

from console_server import HOST, HOSTILE, HOSTILE_PAYLOADS, PATHS, client, console, dsn, log_in, no_failures, people, serve, server  # noqa: E402, F401

# -- without a login


@pytest.mark.parametrize("path", [*PATHS, "/message?queue=tales&id=0", "/report?s=1&s=2"])
def test_closed_by_default(console, path):
    with client(console) as stranger:
        answer = stranger.get(path)
        assert answer.status_code == 303 and answer.headers["location"].startswith("/login?next=") and answer.text == ""
        assert stranger.get(f"/live{path}").status_code in (401, 404)


def test_open_paths(console):
    with client(console) as stranger:
        assert stranger.get("/healthz").text == "ok\n"
        assert stranger.get("/metrics").status_code == stranger.get("/readyz").status_code == 404
        for name in ("console.css", "console.js", "htmx-2.0.11.min.js"):
            assert stranger.get(f"/static/{name}").status_code == 200
        for name in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "SHA256SUMS/../../app.py", "/etc/passwd", "console.css%00"):
            assert stranger.get(f"/static/{name}").status_code == 404


def test_headers(console):
    with client(console) as stranger:
        for path in ("/login", "/queues", "/nothing", "/static/console.css"):
            headers = stranger.get(path).headers
            assert "script-src 'self'" in headers["content-security-policy"] and "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert stranger.get("/login", headers={"Host": "evil.example"}).status_code == 400


def test_nothing_is_inline():
    """The policy forbids it, and so a page with it would be broken."""
    for path in (ROOT / "python/pgaq/console/templates").glob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|\son\w+=|javascript:|<style|<script(?! src=)|\|safe|hx-on|http://|https://", text), path.name


def test_vendored_files_are_those_that_were_released():
    folder = ROOT / "python/pgaq/console/static"
    listed = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert set(listed) == {path.name for path in folder.glob("*.min.js")}
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


# -- login


def test_cookies(console):
    with client(console) as made:
        answer = log_in(made, "viewer", "sees it")
        cookie = next(each for each in answer.headers.get_list("set-cookie") if each.startswith("pgaq="))
        assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Max-Age=" in cookie
        assert "sees it" not in str(answer.headers) and made.get("/queues").status_code == 200
        name, _, signature = made.cookies["pgaq"].partition(".")
        for forged in (name, f"{name}.", f"{name}.{signature[:-1]}0x", f"x{name}.{signature}", "", ".", "é.é"):
            assert httpx.get(console.url + "/queues", headers={"Cookie": f"pgaq={forged}".encode()}).status_code == 303, forged


def test_secure_cookies(server):
    made, url, end = serve(Settings(dsn=dsn(server), secure=True, behind_proxy=True))
    try:
        cookie = httpx.get(url + "/login").headers["set-cookie"]
        assert cookie.startswith("__Host-pgaq-login=") and "Secure" in cookie and "Path=/;" in cookie
    finally:
        end()


def test_wrong_logins(console, server):
    with client(console) as made:
        for role, password in (("boss", "wrong"), ("missing", "of it all"), ("boss'; --", "x")):
            answer = log_in(made, role, password)
            assert answer.status_code == 403 and "Login failed." in answer.text and "pgaq" not in made.cookies
        assert "Name a role" in log_in(made, "boss", "").text
        # the server trusts it: then anybody would be in
        assert "has not asked for the password" in log_in(made, "postgres", "x").text
        token = made.get("/login") and "forged.forged"
        assert made.post("/login", data={"token": token, "role": "boss", "password": "of it all"}).status_code == 403
        assert log_in(made, "boss", "of it all", headers={"Origin": "http://evil.example"}).status_code == 403
    server.expect_log("password authentication failed")


@pytest.mark.parametrize("framework", ["starlette.applications.Starlette", "fastapi.FastAPI"])
def test_mounted(server, framework):
    """In another application: links, cookies and redirects stay below its path, and its end ends the logins."""
    module, _, name = framework.rpartition(".")
    outer = getattr(pytest.importorskip(module, reason=f"missing: python3-{module}"), name)
    console = application(Settings(dsn=dsn(server)))
    app = outer(lifespan=console.state.lifespan)
    app.router.lifespan_context = console.state.lifespan  # FastAPI of Debian 12 does not know the argument yet
    app.mount("/queues", console)
    with TestClient(app, base_url="http://testserver/queues/") as made:
        made.follow_redirects = False
        assert made.get("queues").headers["location"] == "/queues/login?next=%2Fqueues"
        token = re.search('name="token" value="([^"]+)"', made.get("login").text)[1]
        answer = made.post("login", data={"token": token, "role": "boss", "password": "of it all"})
        assert answer.status_code == 303 and answer.headers["location"] == "/queues/" and "Path=/queues/" in answer.headers["set-cookie"]
        page = made.get("queue", params={"name": "tales"})
        assert page.status_code == 200 and "Content-Security-Policy" in page.headers
        assert all(each.startswith("/queues/") for each in re.findall(' (?:href|src|action)="(/[^"]*)"', page.text))
        logins = console.state.console.logins
        assert len(logins._all) == 1
    assert not logins._all and console.state.console.closing


def test_who_guesses_waits(console):
    with client(console) as made:
        for _ in range(logins.FAILURES):
            assert "Login failed." in log_in(made, "boss", "wrong").text
        assert "Too many failed logins" in log_in(made, "boss", "of it all").text


def guess(made, role, password, address):
    with pytest.raises(Refused) as error:
        made.log_in(role, password, address)
    return str(error.value)


def test_a_stranger_cannot_keep_a_role_from_logging_in(server, monkeypatch):
    server.expect_log("password authentication failed")
    made = Logins(dsn(server))
    with contextlib.closing(made):
        for _ in range(logins.FAILURES):
            assert guess(made, "boss", "wrong", "192.0.2.1") == "Login failed."
        assert "Too many" in guess(made, "boss", "of it all", "192.0.2.1") and "Too many" in guess(
            made, "boss", "of it all", "::ffff:192.0.2.1"
        )
        assert made.log_in("boss", "of it all", "192.0.2.2") and made.log_in("viewer", "sees it", "192.0.2.1")
        # what succeeds takes nothing from the count of others, but from its own
        for _ in range(2):
            assert guess(made, "viewer", "wrong", "192.0.2.1") == "Login failed."
            assert made.log_in("viewer", "sees it", "192.0.2.1")
        assert made.guard._tries.keys() == {"role boss at 192.0.2.1", "address 192.0.2.1", "role boss", "role viewer"}
        monkeypatch.setattr(logins, "FAILURES_OF_ROLE", logins.FAILURES + 2)
        for host in range(2):  # one network of IPv6 counts as one address
            assert guess(made, "boss", "wrong", f"2001:db8::{host}") == "Login failed."
        assert {key for key in made.guard._tries if "2001" in key} == {"role boss at 2001:db8::/64", "address 2001:db8::/64"}
        assert "Too many" in guess(made, "boss", "of it all", "192.0.2.2")
        monkeypatch.setattr(logins, "FAILURES_OF_ADDRESS", logins.FAILURES)
        assert "Too many" in guess(made, "nobody", "sees little", "192.0.2.1") and "Login failed." in guess(
            made, "x" * 64, "x", "192.0.2.3"
        )


def test_many_guesses_at_once_are_not_more(server):
    server.expect_log("password authentication failed")
    with contextlib.closing(Logins(dsn(server))) as made, ThreadPoolExecutor(20) as pool:
        said = list(pool.map(lambda i: guess(made, "boss", f"wrong {i}", "192.0.2.1"), range(40)))
    assert said.count("Login failed.") == logins.FAILURES


def test_guesses_count_in_each_language_of_the_server(server, monkeypatch):
    server.expect_log("password authentication failed")

    class Translated(db.Error):
        pass

    real = db.connect

    def connect(*arguments, **more):
        try:
            return real(*arguments, **more)
        except db.Error as error:
            raise Translated("FATAL:  Passwort-Authentifizierung fehlgeschlagen", pgconn=error.pgconn) from None

    monkeypatch.setattr(db, "connect", connect)
    with contextlib.closing(Logins(dsn(server))) as made:
        for _ in range(logins.FAILURES):
            assert guess(made, "boss", "wrong", "192.0.2.1") == "Login failed."
        assert "Too many" in guess(made, "boss", "wrong", "192.0.2.1")


def test_the_guard_forgets_the_oldest(monkeypatch):
    monkeypatch.setattr(logins, "REMEMBERED", 10)
    guard = Guard()
    for i in range(100):
        assert guard.begin({f"address {i}": 1}) == 0
    assert len(guard._tries) == 10 and guard.begin({"address 99": 1}) > 0 and guard.begin({"address 1": 1}) == 0


def test_a_password_is_forgotten_without_a_further_request(server, monkeypatch):
    monkeypatch.setattr(logins, "SWEEP", 0.01)
    with contextlib.closing(Logins(dsn(server))) as made:
        login = made.find(made.log_in("viewer", "sees it", "here"))
        monkeypatch.setattr(logins, "IDLE", -1)
        until(lambda: login.ended and not made._all, "the end of the login")
        assert login.pool._idle == []


def test_a_role_cannot_use_up_the_logins(server, monkeypatch):
    monkeypatch.setattr(logins, "LOGINS_OF_ROLE", 2)
    monkeypatch.setattr(logins, "LOGINS", 3)
    with contextlib.closing(Logins(dsn(server))) as made:
        cookies = [made.log_in("nobody", "sees little", "here") for _ in range(4)]
        assert [made.find(cookie) is not None for cookie in cookies] == [False, False, True, True]
        assert made.log_in("viewer", "sees it", "here")
        assert "Too many people" in guess(made, "boss", "of it all", "here")


def test_what_cannot_be_read_is_refused(console):
    """Not an error of the console with a traceback in its log, also for strangers."""
    with client(console) as made:
        assert made.get("/login", headers={"Host": "["}).status_code == 400
        token = re.search('name="token" value="([^"]+)"', made.get("/login").text)[1]
        form = {"token": token, "role": "viewer", "password": "sees it"}
        assert made.post("/login", data={f"a{i}": "x" for i in range(200)}).status_code == 403
        assert made.post("/login", data=form, headers={"Origin": "http://["}).status_code == 403
        assert log_in(made, "viewer", "sees it", params={"next": "//["}).headers["location"] == "/"


def test_a_login_ends(server, monkeypatch):
    made = Logins(dsn(server))
    cookie = made.log_in("viewer", "sees it", "here")
    login = made.find(cookie)
    assert login and "sees it" not in repr(login)
    monkeypatch.setattr(logins, "IDLE", -1)
    assert made.find(cookie) is None and login.ended and login.pool._idle == []
    monkeypatch.undo()
    assert made.find(made.log_in("viewer", "sees it", "here")) is not None
    monkeypatch.setattr(logins, "LONGEST", -1)
    made.sweep()
    assert made._all == {}
    with pytest.raises(Refused):
        made.log_in("viewer", "sees\0it", "here")


def test_log_out(console):
    with contextlib.closing(client(console, "viewer", "sees it")) as made:
        csrf = re.search('name="csrf" value="([^"]+)"', made.get("/queues").text)[1]
        assert made.post("/logout").status_code == 403 and made.get("/queues").status_code == 200
        assert made.post("/logout", data={"csrf": csrf}, headers={"Origin": "http://evil.example"}).status_code == 403
        cookie = made.cookies["pgaq"]
        assert made.post("/logout", data={"csrf": csrf}).status_code == 303
        assert httpx.get(console.url + "/queues", headers={"Cookie": f"pgaq={cookie}"}).status_code == 303


def test_no_redirect_to_others(console):
    for target in ("//evil.example", "https://evil.example", "/\\evil.example", "/x\r\nSet-Cookie: a=b", "javascript:alert(1)", "\\\\evil"):
        with client(console) as made:
            token = re.search('name="token" value="([^"]+)"', made.get("/login").text)[1]
            answer = made.post("/login", params={"next": target}, data={"token": token, "role": "viewer", "password": "sees it"})
            assert answer.headers["location"] == "/" and "a=b" not in str(answer.headers.get_list("set-cookie")), target


# -- pages


@pytest.mark.parametrize("role", ["boss", "viewer"])
@pytest.mark.parametrize("path", PATHS)
def test_pages(people, role, path):
    answer = people[role].get(path)
    assert answer.status_code == 200 and "<h1>" in answer.text
    assert not re.search(r"<script(?! src=)|<img|<svg onload", answer.text)
    assert 'role="alert"' not in answer.text


def test_an_error_of_the_console(people, console, monkeypatch):
    """A page, with all of its headers, that says so."""
    monkeypatch.setattr(words, "tree", None)
    answer = people["boss"].get("/waits")
    assert (
        answer.status_code == 500
        and "The console has failed" in answer.text
        and "script-src 'self'" in answer.headers["content-security-policy"]
    )


def test_a_role_without_privileges_sees_nothing(people):
    assert "There is no queue that this role can use" in people["nobody"].get("/queues").text
    assert people["nobody"].get("/queue?name=tales").status_code == people["nobody"].get("/messages?queue=tales").status_code == 404
    assert "pg_monitor" in people["nobody"].get("/waits").text


def test_payloads_are_for_those_who_may_dequeue(people):
    assert "no json" in people["boss"].get("/messages?queue=tales").text
    seen = people["viewer"].get("/messages?queue=tales").text
    assert "no json" not in seen and "cannot dequeue" in seen
    msgid = re.search(r"id=([0-9a-f-]{36})", people["boss"].get("/messages?queue=tales").text)[1]
    assert people["boss"].get(f"/message?queue=tales&id={msgid}").status_code == 200
    assert people["viewer"].get(f"/message?queue=tales&id={msgid}").status_code == 404
    assert "no json" not in people["viewer"].get("/dead").text


def test_hostile_messages_are_text(people, server):
    text = people["boss"].get("/messages?queue=tales").text
    assert "&lt;script&gt;" in text and "\x1b" not in text and "\u202e" not in text and "\\x1b[31mred" in text
    ids = set(re.findall(r"id=([0-9a-f-]{36})", text))
    assert len(ids) >= len(HOSTILE_PAYLOADS) - 1
    for msgid in ids:
        for form in ("json", "text", "hex", HOSTILE):
            answer = people["boss"].get("/message", params={"queue": "tales", "id": msgid, "as": form})
            assert answer.status_code == 200 and not re.search(r"<img|<svg onload|<script(?! src=)", answer.text)
            assert "\x1b" not in answer.text and "\u202e" not in answer.text
    page = people["boss"].get("/queue", params={"name": HOSTILE})
    assert page.status_code == 200 and "<img" not in page.text and "&lt;img" in page.text


def test_keys(people, own, conn):
    """A page lists the keys of a queue, and leads to the messages of each."""
    db.execute(
        conn,
        "SELECT aq.enqueue('own', '1'), aq.enqueue('own', '2', key => 'a&b'), aq.enqueue('own', '3', key => 'c'), aq.enqueue('own', '4', key => 'a&b', delay => '1 hour')",
    )
    boss = people["boss"]
    assert f'href="{link(boss.get("/queue?name=own").text, "Keys")}"' in boss.get("/queue?name=own").text
    page = boss.get("/keys?queue=own").text
    assert page.index("a&amp;b</a>") < page.index(">c</a>") and page.count('<tr><th scope="row"') == 2
    shown = boss.get(link(page, "a&amp;b")).text
    assert shown.count("<small>key a&amp;b</small>") == 2 and "key c" not in shown and 'name="key" value="a&amp;b"' in shown
    one = boss.get("/message?" + re.search(r'/message\?([^"]+)"', shown)[1].replace("&amp;", "&")).text
    assert "<dt>Key</dt><dd>a&amp;b</dd>" in one
    assert people["viewer"].get("/keys?queue=own").text.count("<tr>") == 0 and people["nobody"].get("/keys?queue=own").status_code == 404


def test_trace_context_of_a_message(people, conn):
    """Of any message, and of those of Java programs, which have it in their payload."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    db.execute(conn, "SELECT aq.create_queue('plain', 'text'), aq.create_queue('java', 'aq.jms_message')")
    db.execute(conn, "SELECT aq.alter_queue(q, new_owner => 'boss') FROM unnest('{plain,java}'::text[]) q")
    try:
        for name, payload in (("plain", "'x'::text"), ("java", "aq_jms.text('x')")):
            untraced = db.value(conn, f"SELECT aq.enqueue('{name}', {payload})::text")
            with conn.transaction():
                db.execute(conn, "SELECT set_config('pgaq.traceparent', %s, true), set_config('pgaq.tracestate', 'a=1', true)", [trace])
                traced = db.value(conn, f"SELECT aq.enqueue('{name}', {payload})::text")
            shown = [people["boss"].get("/message", params={"queue": name, "id": each}).text for each in (traced, untraced)]
            assert [f"<dt>Trace context</dt><dd>{trace}</dd>" in each for each in shown] == [True, False]
            assert ["<dt>Trace state</dt><dd>a=1</dd>" in each for each in shown] == [True, False]
    finally:
        db.execute(conn, "SELECT aq.drop_queue(q, force => true) FROM unnest('{plain,java}'::text[]) q")


def test_dead_letters_are_grouped(people):
    text = people["boss"].get("/dead").text
    assert "tales_exceptions" in text and "retries" in text and ">tales<" in text
    assert "the latest" in text and people["boss"].get("/dead?queue=tales_exceptions").status_code == 200


def test_schedule_in_words(people):
    text = people["boss"].get("/schedules").text
    assert "every day at 03:00" in text and text.count(":00:00") >= 5
    assert words.timing("*/5 * * * *") == "every 5 minutes" and words.timing("0 9 * * 1-5") == "Monday to Friday at 09:00"
    assert words.timing("30 7 * * mon-fri") == "Monday to Friday at 07:30" and words.timing("0 9 * * Sun") == "every Sunday at 09:00"
    assert words.timing("1,2 3 * 4 5") == "1,2 3 * 4 5"


@pytest.mark.parametrize(
    "path, status",
    [
        ("/queues?sort=queue;drop", 400), ("/queues?page=x", 400), ("/queues?page=99999999999999999", 400), ("/queues?page=-5", 200), ("/queues?page=--5", 400),
        ("/queues?q=%27%22%3Cscript%3E%25", 200), ("/queue?name=", 404), ("/queue", 404), ("/messages?queue=tales&state=X'", 400),
        ("/messages?queue=tales&priority=1e9", 400), ("/messages?queue=tales&text=%27%25_", 200), ("/message?queue=tales&id='", 400),
        ("/message?queue=tales&id=00000000-0000-0000-0000-000000000000", 404), ("/report?s=1", 400), ("/report?s=a&s=b", 400), ("/report?s=998&s=999", 500),
        ("/queues?sort=failed&all=1", 200),
    ],
)  # fmt: skip
def test_parameters(people, path, status):
    answer = people["boss"].get(path)
    assert answer.status_code == status and not re.search("<script(?! src=)", answer.text)


def test_report(people, server):
    with server.connect() as conn:
        first, last = conn.execute("SELECT min(snap_id), max(snap_id) FROM aq.snapshots").fetchone()
    answer = people["boss"].get(f"/report?s={first}&s={last}&download=1")
    assert answer.status_code == 200 and "attachment" in answer.headers["content-disposition"]
    assert "sandbox" in answer.headers["content-security-policy"] and "<script" not in answer.text


def test_blockers(people, server):
    """A tree of who waits for whom, with the statement of the one that blocks."""
    with server.connect() as one, server.connect() as two:
        one.execute("CREATE TABLE contended ()")
        pid = db.value(one, "SELECT pg_backend_pid()")
        one.execute("BEGIN; LOCK TABLE contended /* the culprit */")
        with ThreadPoolExecutor() as pool:
            two.execute("BEGIN")
            waiter = pool.submit(two.execute, "LOCK TABLE contended")
            try:
                until(lambda: f"<strong>{pid}</strong>" in people["boss"].get("/waits").text, "the blocker")
                text = people["boss"].get("/waits").text
                assert "blocks 1 session" in text and "the culprit" in text
            finally:
                one.execute("COMMIT")
            waiter.result(60)
        two.execute("ROLLBACK")
        one.execute("DROP TABLE contended")


def test_sessions_of_a_queue(people, server):
    """A session that waits for messages is on the page of its queue and among the waits, with the queue's name in the wait."""
    with server.connect() as waiter, server.connect() as conn, ThreadPoolExecutor() as pool:
        pid = db.value(waiter, "SELECT pg_backend_pid()")
        db.execute(conn, "SELECT aq.create_queue('awaited')")
        call = pool.submit(waiter.execute, "SELECT * FROM aq.dequeue('awaited', wait => '5 minutes')")
        try:
            for path in ("/queue?name=awaited", "/waits"):
                row = until(
                    lambda: re.search(f"<tr[^>]*><th[^>]*>{pid}</th>.*?</tr>", people["viewer"].get(path).text, re.DOTALL), "the session"
                )[0]
                assert "waiting for messages" in row and "<small>queue awaited," in row
        finally:
            db.execute(conn, "SELECT aq.enqueue('awaited', 'null'::jsonb)")
        call.result(60)
        db.execute(conn, "SELECT aq.drop_queue('awaited', force => true)")


def test_durations():
    """Never with an exponent."""
    shown = {0: "0 us", 999: "999 us", 999.7: "1 ms", 1500: "1.5 ms", 999_998: "1 s", 60_000_000: "60 s", 999_900_000: "1,000 s", 3_600_000_000: "3,600 s"}  # fmt: skip
    assert {each: text.duration(each) for each in shown} == shown


def test_tree_with_a_cycle():
    def session(pid, blocker):
        return {"pid": pid, "blocker": blocker}

    found = words.tree([session(1, 2), session(2, 1), session(3, 1), session(4, 5)])
    assert sorted(each[1]["pid"] for each in found) == [1, 2, 3, 4, 5]
    assert [(depth, each["pid"], count) for depth, each, count in found][:2] == [(0, 5, 1), (1, 4, 0)]


def test_the_oldest_snapshot(people, server):
    """The session that holds it, with what ends it."""
    with server.connect() as one:
        pid = db.value(one, "SELECT pg_backend_pid()")
        one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 /* the holder */")
        text = until(lambda: f"session {pid}</th>" in (found := people["viewer"].get("/waits").text) and found, "the holder")
        row = re.search(f"<tr><th[^>]*>session {pid}</th>.*?</tr>", text, re.DOTALL)[0]
        assert "the holder" in row and f"SELECT pg_terminate_backend({pid})" in row and "idle in transaction" in row
        one.execute("ROLLBACK")
    assert words.to_end({"kind": "prepared transaction", "name": "it's"}) == "COMMIT PREPARED 'it''s' or ROLLBACK PREPARED 'it''s'"


# -- live


def test_live_page(console, people, server):
    with people["boss"].stream("GET", "/live/queue?name=tales") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(line for line in lines if line.strip()).strip() == "event: page"
        with server.connect() as conn:
            db.execute(conn, "SELECT aq.alter_queue('tales', comment => 'just changed')")
        assert next(line for line in lines if "just changed" in line)
    # nobody's stream shows what boss sees
    with people["nobody"].stream("GET", "/live/queue?name=tales") as answer:
        seen = next(line for line in answer.iter_lines() if line.startswith("data: "))
        assert "just changed" not in seen
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.alter_queue('tales', comment => '')")


def test_live_page_ends_with_the_login(console):
    with contextlib.closing(client(console, "viewer", "sees it")) as made:
        with made.stream("GET", "/live/queues") as answer:
            lines = answer.iter_lines()
            next(lines)
            console._console.logins.log_out(made.cookies["pgaq"])
            assert next(line for line in lines if "event: end" in line)
        assert made.get("/live/queues").status_code == 401


# -- changes


def act(made, name, expect=303, csrf=None, **parameters):
    """Asks, and does it; the question."""
    question = made.get(f"/act/{name}", params=parameters)
    if question.status_code != 200:
        assert question.status_code == expect, question.text
        return question.text
    # as a browser: the fields of the form, with the line ends of the network, to the address of the page
    fields = fields_of(question)
    fields |= {"csrf": csrf} if csrf is not None else {}
    answer = made.post(question.url, data={key: re.sub("\r\n|\r|\n", "\r\n", value) for key, value in fields.items()})
    assert answer.status_code == expect, answer.text
    return question.text if expect == 303 else answer.text


def fields_of(question):
    """The fields of the form."""
    return {key: html.unescape(value) for key, value in re.findall('<input[^>]* name="([^"]+)" value="([^"]*)"', question.text)}


def reject(conn, queue, *consumers):
    """Makes a message a dead letter, for each of these consumers."""
    before = db.value(conn, "SELECT sum(lag) FROM aq.metrics(%s)", [f"{queue}_exceptions"]) or 0
    for consumer in consumers:
        (msgid, receipt) = conn.execute(
            "SELECT msgid, receipt FROM aq.dequeue(%s, consumer => %s, lease => '1 minute')", [queue, consumer]
        ).fetchone()
        db.execute(conn, "SELECT aq.reject(%s, %s, %s, consumer => %s)", [queue, [msgid], receipt, consumer])
    until(
        lambda: db.value(conn, "SELECT sum(lag) FROM aq.metrics(%s)", [f"{queue}_exceptions"]) == before + len(consumers),
        "the dead letters",
    )


def logged(conn):
    """The newest row."""
    return conn.execute("SELECT role, action, object, number FROM aq.actions ORDER BY done_at DESC LIMIT 1").fetchone()


@pytest.fixture
def own(server, conn):
    """A queue of boss with three messages, one of which is a dead letter."""
    db.execute(conn, "SELECT aq.create_queue('own', max_retries => 5)")
    db.execute(conn, "SELECT aq.alter_queue('own', new_owner => 'boss')")
    put(conn, "own", *range(3))
    (msgid, receipt) = conn.execute("SELECT msgid, receipt FROM aq.dequeue('own', lease => '1 minute')").fetchone()
    db.execute(conn, "SELECT aq.reject('own', %s, %s, error => %s)", [[msgid], receipt, f"{HOSTILE} %s it's\n\tat line\r\n2\r"])
    until(lambda: db.value(conn, "SELECT sum(lag) FROM aq.metrics('own_exceptions')") == 1, "the dead letter")
    yield "own"
    db.execute(conn, "SELECT aq.drop_queue('own', force => true)")


def test_changes(people, conn, own):
    """Each asks with its number, runs as the role, and is in the log with what it has done."""
    boss = people["boss"]
    assert "2 messages in it" in act(boss, "stop", queue=own, side="")
    assert logged(conn) == ("boss", "stop", own, 2)
    assert db.value(conn, "SELECT enqueue_enabled OR dequeue_enabled FROM aq.queues WHERE queue_name = 'own'") is False
    act(boss, "start", queue=own)
    assert db.value(conn, "SELECT enqueue_enabled AND dequeue_enabled FROM aq.queues WHERE queue_name = 'own'") is True
    act(boss, "pause", queue=own, consumer="", reason="under repair")
    assert logged(conn) == ("boss", "pause", own, 2)
    page = boss.get("/queue?name=own").text
    assert "/act/resume" in page and "/act/pause" not in page and all(word in page for word in ("paused", "under repair", "Paused by"))
    assert 'class="word warn">paused<' in boss.get("/queues?q=own").text
    act(boss, "resume", queue=own, consumer="")
    page = boss.get("/queue?name=own").text
    assert logged(conn)[1] == "resume" and "/act/resume" not in page and "/act/pause" in page
    for name in ("own_exceptions", "tales_exceptions"):
        assert "/act/pause" not in boss.get(f"/queue?name={name}").text
    given = {"max_retries": "7", "retry_delay": "2 minutes", "max_depth": "9000", "on_full": "error", "max_running": "3", "rate": "5/day"}
    asked = act(boss, "alter", queue=own, retention="", exception_queue="", **given)
    assert re.findall(r">now ([^<]+)<", asked) == ["5", "0 s", "0 s", "own_exceptions", "-1", "wait", "-1", "none"]
    assert "<button>Change settings</button>" in asked
    changed = db.row(conn, "SELECT max_retries, max_depth, on_full, max_running, rate FROM aq.queues WHERE queue_name = 'own'")
    assert list(changed.values()) == [7, 9000, "error", 3, "5/day"]
    assert "<dt>Max depth</dt><dd>9000" in boss.get("/queue?name=own").text.replace(",", "")
    page = boss.get("/dead").text
    link = next(each for each in re.findall(r'/act/redrive\?([^"]+)"', page) if "queue=own&" in each)
    parameters = dict(parse_qsl(html.unescape(link)))
    assert "1 dead letter goes back to queue own" in act(boss, "redrive", **parameters)
    assert logged(conn) == ("boss", "redrive", own, 1) and db.value(conn, "SELECT lag FROM aq.metrics('own')") == 3
    msgid = db.value(conn, "SELECT msgid::text FROM aq.browse('own') LIMIT 1")
    assert "1 message is removed" in act(boss, "cancel", queue=own, id=msgid)
    assert logged(conn) == ("boss", "cancel", own, 1)
    act(boss, "cancel", 400, queue=own, id=msgid)
    assert "2 messages are removed" in act(boss, "purge", queue=own, consumer="")
    assert logged(conn) == ("boss", "purge", own, 2) and db.value(conn, "SELECT lag FROM aq.metrics('own')") == 0
    act(boss, "snapshot")
    assert logged(conn)[1] == "snapshot" and "purge" in boss.get("/log").text


def test_a_question_that_is_out_of_date(people, conn, own):
    """What would concern more messages than the question has said is not done, and is asked again; fewer are no reason to ask."""
    boss, before = people["boss"], db.value(conn, "SELECT count(*) FROM aq.actions")
    purge = boss.get("/act/purge", params={"queue": own})
    redrive = boss.get("/act/redrive", params={"queue": own, "exception_queue": "own_exceptions"})
    assert "2 messages are removed" in purge.text and "1 dead letter goes back" in redrive.text
    put(conn, own, 3, 4)
    reject(conn, own, None)
    for question, now, number_now in ((purge, "3 messages are removed", 3), (redrive, "2 dead letters go back to queue own", 2)):
        fields = fields_of(question)
        for number in (fields["number"], "", "-1", "x", "9" * 30):
            answer = boss.post(question.url, data={**fields, "number": number})
            assert answer.status_code == 409 and "Nothing was done" in answer.text and now in answer.text
            assert fields_of(answer)["number"] == str(number_now)
        assert db.value(conn, "SELECT lag FROM aq.metrics('own')") == 3
    assert db.value(conn, "SELECT count(*) FROM aq.actions") == before
    # fewer than asked; a limit that was entered needs no number
    assert boss.post(redrive.url, data={**fields_of(redrive), "most": "1"}).status_code == 303
    assert logged(conn) == ("boss", "redrive", own, 1)
    fields = fields_of(boss.get(purge.url))
    take(conn, own, number=1)
    assert boss.post(purge.url, data=fields).status_code == 303 and logged(conn) == ("boss", "purge", own, 3)


def test_messages_that_come_after_the_count(people, conn, own, monkeypatch):
    """They are not removed without having been asked for."""
    boss, counted = people["boss"], actions.count
    purge = boss.get("/act/purge", params={"queue": own})

    def count(*arguments):
        number = counted(*arguments)
        put(conn, own, "late")
        return number

    monkeypatch.setattr(actions, "count", count)
    answer = boss.post(purge.url, data=fields_of(purge))
    assert answer.status_code == 409 and "3 messages are removed" in answer.text
    assert db.value(conn, "SELECT lag FROM aq.metrics('own')") == 3


def test_a_message_that_is_not_there(people, own):
    """It is said at once, not asked about with the number 0."""
    answer = people["boss"].get("/act/cancel", params={"queue": own, "id": "00000000-0000-0000-0000-000000000001"})
    assert answer.status_code == 404 and "There is no such message" in answer.text
    assert "0 messages are removed" in people["boss"].get("/act/purge", params={"queue": own, "consumer": "x"}).text


def test_a_queue_that_is_dropped_meanwhile(people, conn, monkeypatch):
    """Between two queries of its page."""
    db.execute(conn, "SELECT aq.create_queue('brief')")
    found = pages.one_queue

    def one_queue(*arguments):
        settings = found(*arguments)
        db.execute(conn, "SELECT aq.drop_queue('brief')")
        return settings

    monkeypatch.setattr(pages, "one_queue", one_queue)
    answer = people["boss"].get("/queue?name=brief")
    assert answer.status_code == 404 and "There is no queue" in answer.text


def test_cancel_leads_back(people, own):
    """The link beside the button leads to the page of what is asked about."""
    asked = {"snapshot": "/reports?", "purge": "/queue?name=own", "run-schedule": "/schedules?"}
    for name, back in asked.items():
        page = people["boss"].get(f"/act/{name}", params={"queue": own, "schedule": "every_night"}).text
        assert re.search('<a href="([^"]+)">Cancel</a>', page)[1].startswith(back)


def test_redrive_of_one_consumer(people, conn):
    """The groups of Dead letters are by consumer, and so is what each redrives."""
    db.execute(conn, "SELECT aq.create_queue('both', multiple_consumers => true, max_retries => 5)")
    db.execute(conn, "SELECT aq.alter_queue('both', new_owner => 'boss'), aq.subscribe('both', 'x'), aq.subscribe('both', 'y')")
    try:
        put(conn, "both", 1)
        reject(conn, "both", "x", "y")
        page = people["boss"].get("/dead", params={"queue": "both_exceptions"}).text
        links = [dict(parse_qsl(html.unescape(each))) for each in re.findall(r'/act/redrive\?([^"]+)"', page)]
        assert sorted(each["consumer"] for each in links) == ["x", "y"]
        assert "1 dead letter goes back" in act(people["boss"], "redrive", **next(each for each in links if each["consumer"] == "y"))
        assert logged(conn) == ("boss", "redrive", "both", 1)
        assert (take(conn, "both", "x"), take(conn, "both", "y")) == ([], [1])
    finally:
        db.execute(conn, "SELECT aq.drop_queue('both', force => true)")


def test_many_dead_letters_are_not_left_out_silently(people, own, monkeypatch):
    """The queue is named, and its own page groups them."""
    monkeypatch.setattr(pages, "GROUPED", 0)
    text = people["boss"].get("/dead").text
    assert re.search(r'Not grouped here.*href="/dead\?queue=own_exceptions"', text) and "queue=own&" not in text
    text = people["boss"].get("/dead", params={"queue": "own_exceptions"}).text
    assert "Not grouped here" not in text and "/act/redrive?queue=own&" in text


def test_a_change_that_is_refused_is_not_in_the_log(people, conn, own):
    before = db.value(conn, "SELECT count(*) FROM aq.actions")
    for role, name in (("viewer", "purge"), ("viewer", "stop"), ("viewer", "alter"), ("nobody", "purge"), ("viewer", "redrive")):
        parameters = {"queue": own, "exception_queue": "own_exceptions"}
        text = act(
            people[role],
            name,
            403 if role == "viewer" else 404,
            **{key: value for key, value in parameters.items() if name != "alter" or key == "queue"},
        )
        assert 'role="alert"' in text
    assert db.value(conn, "SELECT lag FROM aq.metrics('own')") == 2
    for csrf in ("", "x", "é"):
        act(people["boss"], "purge", 403, csrf=csrf, queue=own)
    with client_without(people["boss"]) as stranger:
        assert stranger.post("/act/purge", data={"queue": own}).status_code == 303
    assert people["boss"].post("/act/purge", data={"queue": own, "csrf": "x" * 200_000}).status_code == 403
    assert db.value(conn, "SELECT lag FROM aq.metrics('own')") == 2
    assert db.value(conn, "SELECT count(*) FROM aq.actions") == before
    for path, status in (
        ("/act/drop?queue=own", 404),
        ("/act/purge", 404),
        ("/act/cancel?queue=own&id='", 400),
        ("/act/redrive?queue=own&most=1e9", 400),
    ):
        assert people["boss"].get(path).status_code == status
    assert people["nobody"].get("/log").text.count("<tr>") <= 1


def test_the_log_names_who_has_logged_in(server, conn):
    """Also under SET ROLE; and others do not see it."""
    conn.execute("GRANT boss TO nobody")
    with server.connect(user="nobody", password="sees little") as nobody, server.connect(user="viewer", password="sees it") as viewer:
        nobody.execute("SET ROLE boss")
        db.execute(nobody, "SELECT aq.log_action(repeat('x', 1000), 'y', 5)")
        assert logged(conn) == ("nobody", "x" * 100, "y", 5)
        nobody.execute("RESET ROLE")
        conn.execute("REVOKE boss FROM nobody")
        assert {row[0] for row in nobody.execute("SELECT role FROM aq.actions").fetchall()} == {"nobody"}
        assert db.value(viewer, "SELECT count(*) FROM aq.actions WHERE role = 'nobody'") >= 1
        conn.execute(
            "INSERT INTO aq_internal.action (done_at, role, action, object) SELECT now() - i * interval '1 s', 'nobody', 'x', 'y' FROM generate_series(1, 10000) i"
        )
        db.execute(nobody, "SELECT aq.log_action('last', 'y')")
        assert db.value(conn, "SELECT count(*) FROM aq_internal.action WHERE role = 'nobody'") == 10000
        assert nobody.execute("SELECT action FROM aq.actions ORDER BY done_at DESC LIMIT 1").fetchone() == ("last",)
        conn.execute("UPDATE aq_internal.action SET done_at = done_at - interval '91 days' WHERE role = 'nobody'")
        db.execute(viewer, "SELECT aq.log_action('z', 'y')")
        assert db.value(conn, "SELECT count(*) FROM aq_internal.action WHERE role = 'nobody'") == 0
        with pytest.raises(db.Error, match="permission denied"):
            viewer.execute("DELETE FROM aq_internal.action")


def client_without(made):
    return httpx.Client(base_url=made.base_url)


def test_read_only_changes_nothing(server, conn, own):
    made, url, end = serve(Settings(dsn=dsn(server), read_only=True))
    try:
        with contextlib.closing(httpx.Client(base_url=url, timeout=30)) as boss:
            assert log_in(boss, "boss", "of it all").status_code == 303
            assert boss.get("/act/purge?queue=own").status_code == boss.post("/act/purge", data={"queue": own}).status_code == 403
            assert "/act/" not in boss.get("/queue?name=own").text
            login = next(iter(made._console.logins._all.values()))
            with pytest.raises(db.Error, match="read-only"):
                login.ask(lambda conn: db.value(conn, "SELECT aq.purge_queue('own')"), change=True)
    finally:
        end()


def clear_the_demo(conn):
    db.execute(conn, "SELECT aq.unschedule('every morning')")
    db.execute(
        conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name IN ('payments', 'mails', 'demo_live')"
    )


def follow_the_demo(boss):
    """As somebody who has read nothing: from the overview by links to why messages failed, and to the question before they are redriven."""
    page = boss.get("/queues").text
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<a[^>]*>)?([^<]+)<", page))
    assert figures["Dead letters"] >= "24" and "What the columns mean" in page
    page = boss.get(link(page, "See why they failed, and redrive them", "payments_exceptions")).text
    assert "no such customer: 4711" in page and "its consumer has rejected it" in page
    question = boss.get(link(page, "Redrive 12")).text
    assert "12 dead letters go back to queue payments" in question
    page = boss.get(link(page, "the latest")).text
    steps = re.findall(r"<li><time>[^<]+</time> ([^<]+)</li>", page)
    assert steps == ["enqueued into payments", "first attempt", "failed: rejected", "moved to the exception queue"]
    assert "rejected: its consumer has rejected it" in page and "queue_id" not in page and "dead letter</span>, 1 attempt" in page
    page = boss.get("/queue?name=payments_exceptions").text
    assert link(page, "Dead letters: why they failed") == "/dead?queue=payments_exceptions" and "/act/start" not in page


def link(page, words, about=""):
    """Where a link leads."""
    return html.unescape(
        next(href for href, said in re.findall(r'<a[^>]* ?href="([^"]+)"[^>]*>([^<]+)</a>', page) if said == words and about in href)
    )


def test_what_the_demo_shows(console, people, server, conn):
    demo_console.furnish(conn)
    demo_console.furnish(conn)  # a second run begins again
    try:
        until(lambda: db.value(conn, "SELECT sum(lag) FROM aq.metrics('payments_exceptions')") == 24, "the dead letters")
        conn.execute("GRANT pg_read_all_data TO viewer")
        assert db.value(conn, "SELECT lag FROM aq.metrics('payments')") == 6
        db.execute(conn, "SELECT aq.grant_queue('payments', 'boss', 'dequeue')")
        with contextlib.closing(client(console, "boss", "of it all")) as boss:  # the doctor has not been asked for this login
            follow_the_demo(boss)
        assert "Monday to Friday at 07:30" in people["viewer"].get("/schedules").text
    finally:
        conn.execute("REVOKE pg_read_all_data FROM viewer")
        clear_the_demo(conn)


def test_the_demo_after_one_that_was_killed(server, conn, tmp_path, monkeypatch, capsys):
    """Its load has left files."""
    (tmp_path / "password").write_text("secret\n")
    ledger = tmp_path / "ledger" / demo_console.QUEUE / "ledger"
    ledger.mkdir(parents=True)
    for name in ("1-consumer-0000.led", "1-producer-0000.led"):
        (ledger / name).touch()
    seen = []

    def interrupt(workload, seconds):
        seen.extend(each for each in workload.processes if each.poll() is None)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_console.Workload, "run_for", interrupt)
    try:
        assert demo_console.run(server, "postgres", tmp_path, "127.0.0.1:0") == 0
        assert seen and "password secret" in capsys.readouterr().out and not ledger.exists()
    finally:
        clear_the_demo(conn)


def test_the_demo_while_its_server_is_stopped(new_server, tmp_path, monkeypatch):
    """It says so, and ends."""
    server = new_server("stopped")
    server.expect_log("terminating connection due to administrator command")
    (tmp_path / "password").write_text("secret\n")
    run_for = demo_console.Workload.run_for

    def stop(workload, seconds):
        server.stop()
        while True:
            run_for(workload, seconds)

    monkeypatch.setattr(demo_console.Workload, "run_for", stop)
    with pytest.raises(LoadError, match="the server was stopped"):
        demo_console.run(server, "postgres", tmp_path, "127.0.0.1:0")


# -- the server is away, and comes back


def test_restart_of_the_server(people, server):
    server.expect_log("terminating connection due to administrator command")
    assert people["boss"].get("/queues").status_code == 200
    server.restart()
    assert people["boss"].get("/queues").status_code == 200
    server.stop()
    try:
        answer = people["boss"].get("/queues")
        assert answer.status_code == 503 and "The database does not answer" in answer.text and str(server.socket_dir) not in answer.text
    finally:
        server.start()
    assert people["boss"].get("/queues").status_code == 200


# -- the command


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--listen", "0.0.0.0:0"], "clear text"), (["--tls-cert", "x"], "belong together"), (["--listen", "nonsense"], "HOST:PORT, such as 127.0.0.1:8410"),
        (["-d", "host=a b=c"], "invalid"),
    ],
)  # fmt: skip
def test_command_refuses(arguments, said, capsys):
    assert run(["console", *arguments]) == 2 and said in capsys.readouterr().err


def test_command(server):
    words = [sys.executable, "-m", "pgaq", "console", "-d", dsn(server), "--listen", "127.0.0.1:0", "--read-only", "--metrics"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "PGUSER": "postgres"}) as process:
        url = re.search(r"http://[\d.:]+", process.stderr.readline())[0]
        until(lambda: answers(url), "the console")
        with httpx.Client(base_url=url, timeout=30) as made:
            assert "pgaq_up 1" in made.get("/metrics").text and made.get("/readyz").status_code == 200
            assert log_in(made, "boss", "of it all").status_code == 303
            assert "read only" in made.get("/queues").text
        process.terminate()
        said = process.communicate(timeout=20)[1]
    assert process.returncode in (0, -15, 130) and "of it all" not in said


def answers(url):
    try:
        return httpx.get(url + "/healthz").status_code == 200
    except httpx.TransportError:
        return False
