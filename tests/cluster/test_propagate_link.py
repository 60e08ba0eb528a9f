"""Propagation over links: from a database to another one, through whatever can happen to either side.

Both databases are of one server, and the link leads back to it: so a crash
hits both sides, at any point of the protocol.
"""

from __future__ import annotations

import pytest

from conftest import arrived, generation, install, put_many, take, until
from pgaq import db
from pgaq.subjects.advice import RULES
from pgaq_proof import faults
from test_propagate import process

BATCH = 300
DESTINATION = "target@there"
POINTS = [
    "move-taken",
    "propagation-taking",
    "propagation-taken",
    "propagation-sending",
    "propagation-put",
    "propagation-answered",
    "propagation-noted",
]


class Pair:
    """A queue "source" in the server's database, a queue "target" in the database "far", and a link from the one to the other."""

    def __init__(self, server):
        self.server = server
        with server.connect() as conn:
            conn.execute("CREATE DATABASE far")
            host, port = db.value(conn, "SHOW unix_socket_directories"), db.value(conn, "SHOW port")
            conn.execute(
                f"CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '{host}', port '{port}', dbname 'far', connections '1')"
            )
            conn.execute("CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'postgres')")
            conn.execute("SELECT aq.create_queue('source')")
        with server.connect("far") as far:
            install(far)
            far.execute("SELECT aq.create_queue('target')")
        with server.connect() as conn:
            conn.execute("SELECT aq.create_propagation('source', %s)", [DESTINATION])

    def end(self):
        with self.server.connect() as conn:
            conn.execute("SELECT aq.alter_propagation('source', %s, enabled => false)", [DESTINATION])
            conn.execute("SELECT aq.drop_queue('source', force => true)")
            conn.execute("DROP SERVER there CASCADE")
            conn.execute("DROP DATABASE far WITH (FORCE)")

    def here(self, query, *args):
        with self.server.connect() as conn:
            return db.value(conn, query, list(args))

    def there(self, query, *args):
        with self.server.connect("far") as conn:
            return db.value(conn, query, list(args))

    def send(self, first):
        with self.server.connect() as conn:
            for n in range(first, first + BATCH, 20):
                put_many(conn, "source", n, n + 19)

    def check(self, first, what):
        """Each message once, in the order in which they were sent."""
        with self.server.connect("far") as far:
            assert arrived(far, "target", BATCH) == list(range(first, first + BATCH)), what

    def enable(self, enabled=True):
        self.here("SELECT aq.alter_propagation('source', %s, enabled => %s)", DESTINATION, enabled)

    def state(self):
        return self.here("SELECT state FROM aq.propagations")

    def reaches(self, state):
        until(lambda: self.state() == state, f"state {state}")


@pytest.fixture
def pair(server):
    server.expect_log("propagation schedule|there is no transaction in progress|terminating connection")
    made = Pair(server)
    yield made
    made.end()


def test_two_sessions(pair):
    """Messages of two sessions arrive, those of each in its order; the schedule counts them."""
    with pair.server.connect() as one, pair.server.connect() as two:
        for n in range(0, 400, 10):
            put_many(one, "source", n, n + 9)
            put_many(two, "source", 1000 + n, 1000 + n + 9)
    with pair.server.connect("far") as far:
        got = arrived(far, "target", 800)
    assert [n for n in got if n < 1000] == list(range(400))
    assert [n for n in got if n >= 1000] == list(range(1000, 1400))
    until(
        lambda: pair.here("SELECT messages = 800 AND lag = 0 AND failures = 0 AND last_run IS NOT NULL FROM aq.propagations"), "the counts"
    )


def test_small_values_with_large_texts(pair):
    """Numbers of 131,072 digits: messages of 1 kB whose texts together would fill the memory do not go in one batch."""
    with pair.server.connect() as conn:
        conn.execute(
            "SELECT aq.enqueue_array('source', array_agg(m)) FROM (SELECT jsonb_agg('1e131071'::numeric) m FROM generate_series(1, 20) g, generate_series(1, 50) GROUP BY g) m"
        )
    until(lambda: pair.here("SELECT messages FROM aq.propagations") == 20, "the messages")
    assert pair.here("SELECT batches FROM aq.propagations") > 1
    pair.there("SELECT aq.purge_queue('target')")


def test_pause_on_a_busy_link(pair):
    """A schedule that fails waits longer each time, also while messages of another one go over the link; altered, it is tried at once."""
    with pair.server.connect() as conn, pair.server.connect("far") as far:
        conn.execute("SELECT aq.create_queue('wrong'), aq.create_propagation('wrong', 'nope@there'), aq.enqueue('wrong', '1')")
        of_wrong = "FROM aq.propagations WHERE queue_name = 'wrong'"
        until(lambda: db.value(conn, f"SELECT failures > 0 {of_wrong}"), "the first failure")
        for n in range(30):
            put_many(conn, "source", n, n)
            assert arrived(far, "target", 1) == [n]
        assert db.value(conn, f"SELECT failures < 16 {of_wrong}")
        far.execute("SELECT aq.create_queue('nope')")
        conn.execute("SELECT aq.alter_propagation('wrong', 'nope@there', enabled => true)")
        assert arrived(far, "nope", 1) == [1]
        conn.execute("SELECT aq.drop_queue('wrong', force => true)")


def test_destination_is_wrong(pair):
    """What is wrong there is in last_error; when it is mended, the messages arrive."""
    pair.there("SELECT aq.stop_queue('target', dequeue => false)")
    pair.send(1)
    pair.reaches("retrying")
    assert "stopped" in pair.here("SELECT last_error FROM aq.propagations")
    pair.there("SELECT aq.start_queue('target')")
    pair.enable()
    pair.check(1, "a queue that was stopped")
    pair.there("SELECT aq.drop_queue('target', force => true)")
    pair.there("SELECT aq.create_queue('target', 'text')")
    pair.send(1)
    pair.reaches("retrying")
    assert "pg_catalog.jsonb" in pair.here("SELECT last_error FROM aq.propagations")
    pair.there("SELECT aq.drop_queue('target', force => true)")
    pair.there("SELECT aq.create_queue('target')")
    pair.enable()
    pair.check(1, "a queue of another type")


def test_other_database_is_gone(pair):
    """Messages on their way wait for the link, of which the doctor knows; by a link of the same name they come back to this database."""
    with pair.server.connect() as conn:
        conn.execute("ALTER SERVER there OPTIONS (ADD enabled 'false')")
        pair.send(1)
        until(lambda: pair.here("SELECT count(*) FROM aq_internal.propagation_batch"), "messages on their way")
        [rule] = [rule for rule in RULES if rule.name == "link_disabled"]
        [(_, found, server)] = conn.execute(rule.query).fetchall()
        assert found == f"{BATCH} messages wait, because the link is disabled" and server == "there"
        conn.execute("DROP SERVER there CASCADE")
        pair.enable(False)
        assert pair.here("SELECT aq.settle_propagation('source', %s, arrived => false)", DESTINATION) > 0
        host, port = db.value(conn, "SHOW unix_socket_directories"), db.value(conn, "SHOW port")
        conn.execute(
            f"CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '{host}', port '{port}', dbname '{conn.info.dbname}')"
        )
        conn.execute("CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'postgres')")
        conn.execute("SELECT aq.create_queue('target')")
        pair.enable()
        assert arrived(conn, "target", BATCH) == list(range(1, 1 + BATCH))
        conn.execute("SELECT aq.drop_queue('target', force => true)")


def test_circle(pair):
    """Two queues that send each other everything over links: each message stops after 32 times, in one of them, and the schedule says why."""
    with pair.server.connect("far") as far:
        port = db.value(far, "SHOW port")
        far.execute(
            f"CREATE SERVER back FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '{db.value(far, 'SHOW unix_socket_directories')}', port '{port}', dbname 'postgres')"
        )
        far.execute("CREATE USER MAPPING FOR postgres SERVER back OPTIONS (user 'postgres')")
        far.execute("SELECT aq.create_propagation('target', 'source@back')")
    with pair.server.connect() as conn:
        put_many(conn, "source", 1, 1)
    error = "SELECT max(last_error) FROM aq.propagations WHERE failures > 0"
    ended = until(lambda: pair.here(error) or pair.there(error), "the end of the circle")
    assert ended == "a message has been propagated 32 times"
    left = "SELECT count(*) FROM aq.messages WHERE state = 'READY' AND properties = '{\"aq$hops\": 32}'"
    assert pair.here(left) + pair.there(left) == 1


@pytest.mark.parametrize("restored", ["destination", "source"])
def test_restored_from_an_older_backup(pair, restored):
    """A side that is older than the other is noticed: the schedule stops, and nothing is lost or doubled before somebody decides."""
    arrivals = "SELECT (epoch, number, batch)::text FROM aq_internal.propagation_arrival"
    pair.send(1)
    pair.check(1, "before the backup")
    until(lambda: pair.here("SELECT lag = 0 FROM aq.propagations"), "an empty source")
    epoch, number, batch = pair.there(arrivals).strip("()").split(",")
    link = pair.here("SELECT to_jsonb(l)::text FROM aq_internal.propagation_link l")
    pair.send(1)
    pair.check(1, "after the backup")
    until(lambda: pair.here("SELECT lag = 0 FROM aq.propagations"), "an empty source")
    pair.enable(False)
    if restored == "destination":
        with pair.server.connect("far") as far:
            far.execute("UPDATE aq_internal.propagation_arrival SET epoch = %s, number = %s, batch = %s", [epoch, number, batch])
    else:
        pair.here(
            "UPDATE aq_internal.propagation_link SET (epoch, number, arrived) = (SELECT epoch, number, arrived FROM jsonb_populate_record(NULL::aq_internal.propagation_link, %s)) RETURNING 1",
            link,
        )
    pair.enable()
    pair.send(1)
    pair.reaches("diverged")
    assert "another batch" in pair.here("SELECT last_error FROM aq.propagations")
    with pair.server.connect("far") as far:
        assert take(far, "target") == []
    until(lambda: pair.here("SELECT lag FROM aq.propagations") == BATCH, "the lag, which follows the commit that has moved the messages")
    pair.enable()
    pair.reaches("diverged")
    assert 0 < pair.here("SELECT aq.settle_propagation('source', %s, false)", DESTINATION) <= BATCH
    pair.enable()
    pair.check(1, "after the decision")


@pytest.mark.long
def test_sessions_hold_the_schedule(pair):
    """A session that has changed a schedule and does not commit holds back its messages, but not the link worker."""
    with pair.server.connect() as conn, conn.transaction():
        conn.execute("SELECT aq.alter_propagation('source', %s, latency => '0')", [DESTINATION])
        pair.send(1)
        with pair.server.connect() as other:
            assert db.value(other, "SELECT connected FROM aq.check_link('there')")
    pair.check(1, "after the commit")


@pytest.mark.long
@pytest.mark.test_build
def test_ends_at_points(points_server):
    """An error, a termination and a crash of both sides at each point of the protocol: each message arrives once, in order."""
    points_server.expect_log("test point|canceling|terminating|crash|signal 9|propagation|link")
    pair = Pair(points_server)
    first = 1
    for point in POINTS:
        for action in ("error", "terminate", "crash"):
            before = generation(points_server)
            pair.enable(False)
            with points_server.connect() as conn:
                until(lambda: process(conn) is None, "no process")
            pair.send(first)
            faults.arm(points_server, point, action)
            pair.enable()
            if action == "crash":
                until(lambda: generation(points_server) not in (None, before), f"a crash at {point}")
            else:
                until(lambda: pair.here("SELECT aq.point_reached(%s)", point) > 0, f"{action} at {point}")
            pair.check(first, f"{action} at {point}")
            first += BATCH
    pair.end()
