"""Streams of a link: requests arrive, also after whatever can happen to the other server, the network or the link worker.

The streams are those of src/link/link_test.c: they send what a table says, and
write down what becomes of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal

import pytest

from conftest import background, end_server, generation, held, install, install_points, server_with_points, until
from pgaq import db
from pgaq.server import Server
from pgaq.subjects.advice import RULES
from tcp_proxy import Proxy
from test_reports import report
from test_snapshots import snapshot

pytestmark = pytest.mark.test_build

EXPECTED = r"terminat|crash|signal 9|there is no transaction in progress|test point|canceling"
TABLES = """
CREATE SCHEMA link_test;
CREATE TABLE link_test.stream (key bigint, server oid, role oid);
CREATE TABLE link_test.request (id bigserial, key bigint, sql text, outcome text);
CREATE TABLE link_test.failure (key bigint, phase int, sqlstate text, message text);
GRANT USAGE ON SCHEMA link_test TO pgaq;
GRANT ALL ON ALL TABLES IN SCHEMA link_test TO pgaq"""
NOT_SENT, REFUSED, LOST = 0, 1, 2


@pytest.fixture(scope="module")
def other():
    """The other server; tests stop it and start it again."""
    made = Server.temporary("other", tcp=True)
    made.expect_log("terminating connection")
    with made.connect() as conn:
        install(conn)
        conn.execute("CREATE ROLE remote LOGIN PASSWORD 'secret'; CREATE TABLE arrived (n int); GRANT ALL ON arrived TO remote")
    yield made
    end_server(made)


@pytest.fixture(scope="module")
def own(library, tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch, server_with_points(monkeypatch, library, "streams", EXPECTED) as server:
        yield server


@pytest.fixture
def proxy(other):
    made = Proxy(other.port)
    yield made
    made.close()


_keys = itertools.count(1)


class Link:
    """A link with one stream from the server of the tests to the other one."""

    def __init__(self, own, other, port):
        self.own, self.other = own, other
        self.key = next(_keys)  # no earlier test's stream has it
        other.start()
        with other.connect() as there:
            there.execute("TRUNCATE arrived")
        self.conn = own.connect()
        self.conn.execute("DROP SCHEMA IF EXISTS link_test CASCADE; DROP SERVER IF EXISTS there CASCADE")
        self.conn.execute(
            f"CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{port}', dbname 'postgres', connections '1')"
        )
        self.conn.execute("CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'remote', password 'secret')")
        self.conn.execute(TABLES)

    def options(self, options):
        self.conn.execute(f"ALTER SERVER there OPTIONS ({options})")

    def begin(self, key=None):
        self.conn.execute(
            "INSERT INTO link_test.stream SELECT %s, oid, 'postgres'::regrole FROM pg_foreign_server WHERE srvname = 'there'",
            [key or self.key],
        )
        self.conn.execute("SELECT aq.link_test_changed()")

    def send(self, *statements, key=None):
        for statement in statements:
            self.conn.execute("INSERT INTO link_test.request (key, sql) VALUES (%s, %s)", [key or self.key, statement])
        self.conn.execute("SELECT aq.link_test_wake()")

    def outcomes(self):
        return [outcome for (outcome,) in self.conn.execute("SELECT outcome FROM link_test.request ORDER BY id").fetchall()]

    def settled(self):
        return until(lambda: None not in self.outcomes(), "the outcomes of all requests") and self.outcomes()

    def failures(self, phase):
        query = "SELECT DISTINCT sqlstate FROM link_test.failure WHERE key = %s AND phase = %s ORDER BY 1"
        return [sqlstate for (sqlstate,) in self.conn.execute(query, [self.key, phase]).fetchall()]

    def now(self):
        return db.row(self.conn, "SELECT * FROM aq.links WHERE server = 'there'")

    def reaches(self, state):
        return until(lambda: (found := self.now())["state"] == state and found, f"state {state}")

    def arrived(self):
        with self.other.connect() as there:
            return [n for (n,) in there.execute("SELECT n FROM arrived").fetchall()]

    def end(self):
        if self.own.running():
            self.conn = self.own.connect()
            self.conn.execute("SELECT aq.point_reset()")
            self.conn.execute("DROP SCHEMA IF EXISTS link_test CASCADE; DROP SERVER IF EXISTS there CASCADE; SELECT aq.link_test_changed()")


@pytest.fixture
def link(own, other):
    made = Link(own, other, other.port)
    yield made
    made.end()


@pytest.fixture
def proxied(own, other, proxy):
    made = Link(own, other, proxy.port)
    yield made
    made.end()


def insert(first, last):
    return [f"INSERT INTO public.arrived VALUES ({n})" for n in range(first, last + 1)]


def test_requests_arrive_in_order(link, other):
    """One after the other, each once; aq.links counts them, and shows the other side."""
    link.begin()
    link.send(*insert(1, 20))
    assert link.settled() == ["done"] * 20
    assert link.arrived() == list(range(1, 21))
    found = link.reaches("connected")
    with other.connect() as there:
        expected = db.row(
            there, "SELECT system_identifier, (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline FROM pg_control_system()"
        )
    assert (found["requests"], found["rows"], found["lost"], found["refused"], found["connections"]) == (20, 20, 0, 0, 1)
    assert (found["system_identifier"], found["timeline"]) == (expected["system_identifier"], expected["timeline"])
    assert found["remote_host"] == f"127.0.0.1:{other.port}" and found["role"] == "postgres"
    assert found["error"] is found["next_attempt"] is found["problem"] is None
    assert found["bytes_sent"] > 20 * len("INSERT INTO public.arrived VALUES (1)") and found["bytes_received"] > 0
    assert 0 < found["latency_us"] and 0 < found["latency_p50_us"]
    assert found["pid"] == background(link.conn, "link")


def test_an_error_of_the_other_side(link):
    """The stream gets its SQLSTATE; the connection stays, and the next request is sent."""
    link.begin()
    link.send("SELECT 1/0", "SELECT 7")
    assert link.settled() == ["22012", "7"]
    assert link.failures(REFUSED) == ["22012"]
    found = link.reaches("connected")
    assert (found["refused"], found["lost"], found["error"], found["sqlstate"]) == (1, 0, "division by zero", "22012")


def test_the_session_there(link):
    """Settings of the role on the other side do not change what a request means."""
    with link.other.connect() as there:
        there.execute(
            "ALTER ROLE remote SET search_path = evil; ALTER ROLE remote SET datestyle = 'SQL, DMY'; ALTER ROLE remote SET default_transaction_read_only = on"
        )
    link.begin()
    link.send(
        "SELECT current_setting('search_path') || '|' || current_setting('datestyle') || '|' || current_setting('transaction_read_only') || '|' || current_setting('client_encoding')"
    )
    assert link.settled() == ["pg_catalog, pg_temp|ISO, DMY|off|UTF8"]
    with link.other.connect() as there:
        there.execute("ALTER ROLE remote RESET ALL")


def test_server_stopped_and_back(link, other):
    """The link backs off, says why, and goes on without help."""
    link.begin()
    link.send(*insert(1, 1))
    link.settled()
    other.stop()
    link.send(*insert(2, 3))
    found = link.reaches("backing off")
    assert found["sqlstate"] in ("57P01", "08001") and found["failures"] >= 1 and found["next_attempt"] is not None
    until(lambda: link.failures(NOT_SENT) == ["08001"], "the failed attempt")
    assert "Connection refused" in link.now()["error"] and "Check that the other server runs" in link.now()["hint"]
    other.start()
    assert link.settled() == ["done"] * 3
    assert link.arrived() == [1, 2, 3]
    assert link.reaches("connected")["failures"] == 0


def test_back_off_grows(link, own, other):
    """Pauses of about 1 s, 2 s, 4 s: never less than 0.8 of that."""
    other.stop()
    link.begin()
    seen = {}

    def look():
        found = db.row(
            link.conn, "SELECT failures, EXTRACT(epoch FROM next_attempt - error_time) AS pause FROM aq.links WHERE server = 'there'"
        )
        if found["pause"] is not None and found["failures"]:
            seen.setdefault(found["failures"], float(found["pause"]))
        return len(seen) >= 3

    until(look, "three attempts")
    for failures, pause in seen.items():
        assert 0.7 * 2 ** (failures - 1) < pause < 1.3 * 2 ** (failures - 1), seen
    other.start()


def test_wrong_password_is_corrected(link):
    """State failed; a change of the user mapping is tried at once, not at the end of the pause."""
    link.conn.execute("ALTER USER MAPPING FOR postgres SERVER there OPTIONS (SET password 'wrong')")
    link.begin()
    link.send(*insert(1, 1))
    found = link.reaches("failed")
    assert found["sqlstate"] == "28P01" and "ALTER USER MAPPING" in found["hint"]
    until(lambda: link.now()["failures"] >= 3, "three attempts")
    link.conn.execute("ALTER USER MAPPING FOR postgres SERVER there OPTIONS (SET password 'secret')")
    assert link.settled() == ["done"]


def test_reports_and_the_doctor_name_it(link, own):
    """A link that fails is advice of a report, with what helps, and a finding of pgaq doctor."""
    link.conn.execute("ALTER USER MAPPING FOR postgres SERVER there OPTIONS (SET password 'wrong')")
    begin = snapshot(link.conn)
    link.begin()
    link.reaches("failed")
    [advice] = [advice for advice in report(link.conn, begin, snapshot(link.conn))["advice"] if advice["rule"] == "link"]
    assert advice["title"] == "Link there does not work" and "28P01" in advice["why"] and "ALTER USER MAPPING" in advice["do"]
    [rule] = [rule for rule in RULES if rule.name == "link"]
    [(case, found, server, hint)] = link.conn.execute(rule.query).fetchall()
    assert case == server == "there" and "it is failed with SQLSTATE 28P01" in found and "ALTER USER MAPPING" in hint


def test_errors_are_for_the_owner(link, own):
    """Another role with USAGE sees the state and the SQLSTATE; the owner and pg_monitor see the text."""
    link.conn.execute(
        "DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; GRANT USAGE ON FOREIGN SERVER there TO guest"
    )
    link.conn.execute("ALTER USER MAPPING FOR postgres SERVER there OPTIONS (SET password 'wrong')")
    link.begin()
    link.reaches("failed")
    query = "SELECT state, sqlstate, error, detail, hint FROM aq.links"
    with own.connect(user="guest") as conn:
        assert conn.execute(query).fetchone() == ("failed", "28P01", None, None, None)
        link.conn.execute("ALTER SERVER there OWNER TO guest")
        assert "password authentication failed" in conn.execute(query).fetchone()[2]
        link.conn.execute("ALTER SERVER there OWNER TO postgres")


def test_backend_killed(link, other):
    """The request is lost, nobody knows whether it was executed, and it is asked for again."""
    link.begin()
    link.send(
        "SELECT count(*) FROM pg_catalog.pg_stat_activity, pg_catalog.pg_sleep(CASE WHEN EXISTS (SELECT FROM public.arrived) THEN 0 ELSE 600 END)"
    )
    with other.connect() as there:
        pid = until(
            lambda: db.value(there, "SELECT pid FROM pg_stat_activity WHERE usename = 'remote' AND wait_event = 'PgSleep'"), "the request"
        )
        there.execute("INSERT INTO arrived VALUES (0)")
        there.execute("SELECT pg_terminate_backend(%s)", [pid])
    link.settled()
    assert link.failures(LOST) == ["57P01"]
    assert link.now()["lost"] == 1


def test_stalled_network(proxied, proxy, own):
    """A peer that is silent is given up after request_timeout; sessions and the worker's transactions do not wait for it."""
    proxied.options("ADD request_timeout '1'")
    proxied.begin()
    proxied.send(*insert(1, 1))
    proxied.settled()
    proxy.stall()
    proxied.send(*insert(2, 2))
    with own.connect() as conn:
        conn.execute("SET statement_timeout = '5 s'")
        until(
            lambda: db.value(conn, """SELECT count(*) FROM sys."v$session_wait" WHERE event = 'aq: link answer' AND state = 'WAITING'"""),
            "the wait for the answer",
        )
        pid = background(conn, "link")
        # no transaction, snapshot or lock is held meanwhile
        assert conn.execute("SELECT backend_xid, backend_xmin, xact_start FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() == (
            None,
            None,
            None,
        )
        assert conn.execute("SELECT * FROM pg_locks WHERE pid = %s", [pid]).fetchall() == []
        for _ in range(20):
            conn.execute("SELECT aq.link_test_wake()")
    until(lambda: proxied.failures(LOST) == ["08006"], "the request given up")
    assert "did not answer a request within 1 s" in proxied.now()["error"]
    proxy.cut()
    proxy.flow()
    assert proxied.settled() == ["done"] * 2
    assert set(proxied.arrived()) == {1, 2}


def test_stalled_while_connecting(proxied, proxy):
    """A peer that accepts connections and says nothing is given up after connect_timeout."""
    proxied.options("ADD connect_timeout '1'")
    proxy.stall()
    proxied.begin()
    proxied.send(*insert(1, 1))
    until(lambda: proxied.failures(NOT_SENT) == ["08001"], "the attempt given up")
    assert "could not connect to the other server within 1 s" in proxied.now()["error"]
    proxied.options("DROP connect_timeout")
    proxy.cut()
    proxy.flow()
    assert proxied.settled() == ["done"]


def test_a_failure_is_seen_while_it_is_tried_again(proxied, proxy):
    """Reports and the doctor name the link also then."""
    proxy.stall()
    proxied.begin()
    proxied.reaches("connecting")
    before = proxy.accepted
    proxy.cut()
    proxied.reaches("backing off")
    until(lambda: proxy.accepted > before, "the next attempt")
    assert proxied.now()["state"] == "backing off"
    proxy.cut()
    proxy.flow()
    proxied.reaches("connected")


def test_cut_connection(proxied, proxy):
    """A connection that is cut while it is idle is made again without a failure."""
    proxied.begin()
    proxied.send(*insert(1, 1))
    proxied.settled()
    proxy.cut()
    until(lambda: proxied.now()["connections"] == 0, "the end of the connection")
    proxied.send(*insert(2, 2))
    assert proxied.settled() == ["done"] * 2
    assert proxied.failures(NOT_SENT) == proxied.failures(LOST) == [] and proxied.arrived() == [1, 2]


@pytest.mark.parametrize("end", ["SIGTERM", "DROP SERVER", "ALTER SERVER", "DROP USER MAPPING", "disabled"])
def test_cancelled_while_connecting(proxied, proxy, end):
    """The connection attempt ends at once, with the state that says why."""
    proxy.stall()
    proxied.begin()
    proxied.reaches("connecting")
    pid = background(proxied.conn, "link")
    if end == "SIGTERM":
        os.kill(pid, signal.SIGTERM)
        until(lambda: background(proxied.conn, "link") not in (pid, None), "another link worker")
        proxied.reaches("connecting")
    elif end == "DROP SERVER":
        proxied.conn.execute("DROP SERVER there CASCADE")
        until(lambda: "42704" in proxied.failures(NOT_SENT), "the failure")
        assert background(proxied.conn, "link") == pid
    elif end == "ALTER SERVER":
        proxied.options(f"SET port '{proxied.other.port}'")
        proxied.reaches("connected")
    elif end == "DROP USER MAPPING":
        proxied.conn.execute("DROP USER MAPPING FOR postgres SERVER there")
        found = proxied.reaches("failed")
        assert found["sqlstate"] == "42704" and "user mapping" in found["error"]
    else:
        proxied.options("ADD enabled 'off'")
        proxied.reaches("disabled")
        until(lambda: proxied.now()["connections"] == 0, "the end of the connection")
        proxied.options(f"SET enabled 'on', SET port '{proxied.other.port}'")
        proxied.reaches("connected")


def test_sigterm_during_a_request(link, other):
    """The worker ends at once; the next one sends the request again."""
    link.begin()
    link.send("SELECT count(*) FROM pg_catalog.pg_sleep(CASE WHEN EXISTS (SELECT FROM public.arrived) THEN 0 ELSE 600 END)")
    pid = background(link.conn, "link")
    with other.connect() as there:
        until(
            lambda: db.value(there, "SELECT pid FROM pg_stat_activity WHERE usename = 'remote' AND wait_event = 'PgSleep'"), "the request"
        )
        there.execute("INSERT INTO arrived VALUES (0)")
        os.kill(pid, signal.SIGTERM)
        assert link.settled() == ["1"]
        assert background(link.conn, "link") != pid
        there.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")


def test_a_check_ends_the_pause(link, other):
    """After a check that succeeds, the link does not wait for its next attempt."""
    other.stop()
    link.begin()
    link.send(*insert(1, 1))
    until(lambda: link.now()["failures"] >= 4, "four attempts, so that the next pause is 8 s or longer")
    other.start()
    assert db.value(link.conn, "SELECT connected FROM aq.check_link('there')")
    assert link.settled() == ["done"]


def test_many_streams_share_connections(link):
    """Streams beyond the limit of connections wait in line; all are served."""
    link.options("SET connections '3'")
    for key in range(1001, 1013):
        link.begin(key)
    for n in range(5):
        for key in range(1001, 1013):
            link.send(f"INSERT INTO public.arrived VALUES ({key * 100 + n})", key=key)
    assert set(link.settled()) == {"done"}
    numbers = link.arrived()
    assert sorted(numbers) == sorted(key * 100 + n for key in range(1001, 1013) for n in range(5))
    for key in range(1001, 1013):
        assert [n for n in numbers if n // 100 == key] == [key * 100 + n for n in range(5)]
    assert 1 <= link.now()["connections"] <= 3


POINTS = ["link-worker-connected", "link-connect", "link-connected", "link-send", "link-sent", "link-answered", "link-settled"]


@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
@pytest.mark.parametrize("point", POINTS)
def test_points(link, own, point, action):
    """Whatever happens to the link worker at a named point, the requests are executed in the end, none before an earlier one."""
    if point == "link-worker-connected":
        # of an earlier test
        link.conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq link'")
        until(lambda: background(link.conn, "link") is None, "the end of the link worker")
    link.conn.execute("SELECT aq.point_arm(%s, %s)", [point, action])
    before = generation(own)
    with contextlib.suppress(db.OperationalError):  # the crash can end either call
        link.begin()
        link.send(*insert(1, 5))
    if action == "crash":
        until(lambda: generation(own) not in (None, before), "the restart")
        link.conn = own.connect()
        link.conn.execute("DELETE FROM link_test.request WHERE outcome IS NULL")
        link.send(*insert(6, 9))
    assert set(link.settled()) <= {"done"}
    if action != "crash":
        assert db.value(link.conn, "SELECT aq.point_reached(%s)", [point]) > 0
    numbers = link.arrived()
    assert sorted(numbers) == numbers and (action == "crash" or set(numbers) == set(range(1, 6)))


def test_a_definition_that_cannot_be_read_now(link):
    """An error of the moment while the link's definition is read, such as a lack of memory, ends with the next try: nobody has to alter anything."""
    link.begin()
    link.send("SELECT 'before'")
    assert link.settled() == ["before"]
    link.conn.execute("SELECT aq.point_arm('link-definition', 'error=53200')")
    link.options("SET connections '2'")
    until(lambda: db.value(link.conn, "SELECT aq.point_reached('link-definition')") > 0, "the error")
    link.conn.execute("SELECT aq.point_reset()")
    link.send("SELECT 'after'")
    assert link.settled() == ["before", "after"]


def test_a_stream_comes_while_the_worker_asks(link, own):
    """A stream that is added when the database's worker has just found that there is none: the link worker comes all the same."""
    with held(own, "link-job-asked") as other:
        link.conn.execute("SELECT pg_terminate_backend(pid) FROM aq.links WHERE pid IS NOT NULL")
        link.conn.execute("SELECT aq.link_test_changed()")
        until(lambda: db.value(other, "SELECT aq.point_waiting('link-job-asked')") == 1, "the worker")
        until(lambda: not background(other, "link"), "no link worker")
        link.begin()
        link.send("SELECT 'here'")
    assert link.settled() == ["here"]


def test_the_worker_ends_when_nothing_needs_it(link):
    """Without streams and checks, the link worker leaves its slot."""
    link.begin()
    link.send(*insert(1, 1))
    link.settled()
    link.conn.execute("DELETE FROM link_test.stream")
    link.conn.execute("SELECT aq.link_test_changed()")
    until(lambda: background(link.conn, "link") is None, "the end of the link worker")
    link.begin()
    link.send(*insert(2, 2))
    assert link.settled() == ["done"] * 2


def test_drop_extension_under_a_request(link, other):
    """DROP EXTENSION does not wait for the other server."""
    link.begin()
    link.send("SELECT pg_catalog.pg_sleep(600)")
    with other.connect() as there:
        until(
            lambda: db.value(there, "SELECT pid FROM pg_stat_activity WHERE usename = 'remote' AND wait_event = 'PgSleep'"), "the request"
        )
        link.conn.execute("SET statement_timeout = '20 s'")
        link.conn.execute("DROP EXTENSION pgaq CASCADE")
        link.conn.execute("RESET statement_timeout")
        until(lambda: background(link.conn, "link") is None, "the end of the link worker")
        there.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    install(link.conn)
    install_points(link.own)
