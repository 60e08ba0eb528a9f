"""A hostile server behind a link: whatever it answers, this one goes on, says what is wrong, and serves its other links."""

from __future__ import annotations

import contextlib
import itertools
import time

import pytest

from conftest import PATIENCE, background, generation, put, until
from hostile_server import AGREEMENT, EVIL, GREETING, Hostile
from pgaq import db
from pgaq.cluster import CALLS

SETTINGS = {"pgaq.node_heartbeat": "100ms", "pgaq.node_timeout": "1s", "pgaq.max_nodes": "32"}
BEAT, WANT, RESUME, DELIVER = "node_beat", "node_want", "node_resume", "node_deliver"
RECALL, FINISH, RETURN, BEGIN, PUT = "node_recall", "node_finish", "node_return", "propagation_begin", "propagation_put"
UNEXPECTED = ("08P01", "unexpected answer of the other server")
ARRAYS = "'{\"1\"}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{00000000-0000-4000-8000-%012d}'"


@pytest.fixture(scope="module")
def admin(server):
    server.expect_log(r"propagation schedule|extension \"pgaq\" worker|could not|another server has the identity")
    with server.connect() as conn:
        conn.execute(f"CREATE ROLE remote LOGIN; GRANT EXECUTE ON FUNCTION {CALLS} TO remote")
        yield conn


@pytest.fixture
def hostile(admin):
    """Makes servers, each with a link of the same name; they and the queues are gone in the end."""
    made: dict[str, Hostile] = {}

    def make(name, answers):
        made[name] = Hostile(answers)
        admin.execute(
            f"CREATE SERVER {name} FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{made[name].port}', dbname 'x', sslmode 'disable')"
        )
        admin.execute(f"CREATE USER MAPPING FOR postgres SERVER {name} OPTIONS (user 'x')")
        return made[name]

    yield make
    admin.execute("SELECT aq.remove_node(server, force => true) FROM aq.nodes WHERE server IS NOT NULL")
    admin.execute("SELECT aq.drop_queue(queue_name, force => true) FROM aq_internal.queue WHERE queue_type = 'normal'")
    for name, each in made.items():
        admin.execute(f"DROP SERVER {name} CASCADE")
        each.close()


def unchanged(server, admin):
    """The server has not crashed, and its link worker is the same."""
    return generation(server), until(lambda: background(admin, "link"), "the link worker")


@pytest.mark.parametrize("statement", [GREETING, AGREEMENT])
def test_handshake(server, admin, hostile, statement):
    """Each answer to a statement of the handshake is refused with a sentence that says why."""
    made = hostile("there", {})
    check = "SELECT connected, sqlstate, message, detail FROM aq.check_link('there', '30 s')"
    assert admin.execute(check).fetchone()[0]
    before = unchanged(server, admin)
    said = {}
    for name, evil in EVIL.items():
        made.answers = {statement: [evil]}
        connected, sqlstate, message, detail = admin.execute(check).fetchone()
        assert not connected and message.strip() and len(sqlstate) == 5, name
        said[name] = (sqlstate, message, detail)
    columns = {GREETING: 6, AGREEMENT: 4}[statement]
    for name, detail in (
        ("no columns", f"It has the wrong number of columns: 0 instead of {columns}."),
        ("null", "Column 1 of a row is null."),
        ("no rows", "It has too few rows; the least is 1."),
        ("many rows", "It has too many rows; the most is 1."),
        ("binary", "Column 1 of a row is binary."),
        ("a zero byte", "Column 1 of a row contains a zero byte."),
        ("two answers", None),
        ("nothing", f"It has the wrong number of columns: 0 instead of {columns}."),
    ):
        if statement == AGREEMENT or name not in ("many rows", "two answers"):  # of which each row fits
            assert said[name] == (*UNEXPECTED, detail), name
    assert all(
        said[name][0] == "08P01"
        for name in ("no number", "out of range", "negative", "wrong encoding", "large", "an empty query", "a copy", "noise")
    )
    assert said["a row and an error"][:2] == (("22000", "no") if statement == AGREEMENT else UNEXPECTED)
    assert said["an odd error"][1].startswith("?%n%s [31m") and said["an odd error"][0] == "08006"
    assert admin.execute(check).fetchone()[0]
    assert unchanged(server, admin) == before


def test_a_login_without_end(server, admin, hostile):
    """A password is to be proved with an hour's work: that link fails, the others go on, and the worker can be ended."""
    server.expect_log("terminating")
    evil = hostile("evil", {})
    hostile("good", {})
    admin.execute(
        "ALTER SERVER evil OPTIONS (ADD connect_timeout '1'); ALTER USER MAPPING FOR postgres SERVER evil OPTIONS (ADD password 'x')"
    )
    check = "SELECT connected, message FROM aq.check_link(%s, '30 s')"
    evil.rounds = 2**31 - 1
    assert admin.execute(check, ["evil"]).fetchone() == (False, "could not connect to the other server within 1 s")
    assert admin.execute(check, ["good"]).fetchone() == (True, None)
    assert admin.execute(check, ["evil"]).fetchone() == (False, "an earlier attempt to connect has not ended")
    before = generation(server)
    worker = background(admin, "link")
    admin.execute("SELECT pg_terminate_backend(%s)", [worker])
    until(lambda: background(admin, "link") != worker, "the end of the worker")
    evil.rounds = 0
    until(lambda: admin.execute(check, ["evil"]).fetchone()[0], "the next worker's attempt")
    assert generation(server) == before


def test_many_links_to_a_silent_server(new_server):
    """They wait for an answer, up to a limit; the link of another role, which comes later, works."""
    own = new_server("silent", **{"max_files_per_process": "150"})
    own.expect_log("propagation schedule")
    silent, good = Hostile(), Hostile()
    silent.silent = True
    with own.connect() as conn, contextlib.closing(silent), contextlib.closing(good):
        conn.execute("""CREATE ROLE many; GRANT USAGE ON FOREIGN DATA WRAPPER pgaq_link TO many;
                        GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_propagation TO many; SET ROLE many; SELECT aq.create_queue('q')""")
        for i in range(45):
            conn.execute(
                f"CREATE SERVER s{i} FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{silent.port}', dbname 'x', sslmode 'disable', connect_timeout '3600')"
            )
            conn.execute(f"CREATE USER MAPPING FOR many SERVER s{i} OPTIONS (user 'x', password 'x')")
            conn.execute(f"SELECT aq.create_propagation('q', 'd@s{i}')")
        put(conn, "q", 1)
        refused = "SELECT count(*) FROM aq.links WHERE error LIKE 'the links have too many connections%'"
        conn.execute("RESET ROLE")
        until(lambda: db.value(conn, refused), "the limit")
        conn.execute(
            f"CREATE SERVER good FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{good.port}', dbname 'x', sslmode 'disable')"
        )
        conn.execute("CREATE USER MAPPING FOR postgres SERVER good OPTIONS (user 'x')")
        assert db.rows(conn, "SELECT connected, message FROM aq.check_link('good', '30 s')") == [{"connected": True, "message": None}]
        assert db.value(conn, "SELECT count(*) FROM aq.links WHERE state = 'connecting'") > 10


class Attack:
    """Servers that answer one statement each with all that is evil, and what makes this one send it."""

    def __init__(self, server, admin, hostile):
        self.server, self.admin, self.hostile = server, admin, hostile
        self.made: dict[str, Hostile] = {}
        self.remote = server.connect(user="remote")
        self.numbers = itertools.count(1)

    def node(self, name, answers):
        self.made[name] = made = self.hostile(name, answers)
        self.admin.execute("SELECT aq.add_node(%s)", [name])
        return made

    def known(self):
        """The nodes' identities are known, so they can call."""
        ids = {made.id for name, made in self.made.items() if "propagation" not in name}
        until(lambda: ids <= {str(id) for (id,) in self.admin.execute("SELECT node_id FROM aq.nodes").fetchall()}, "all identities")

    def queues(self, name, number):
        """Distributed queues with a message each."""
        made = [f"{name}_{n}" for n in range(number)]
        for queue in made:
            self.admin.execute("SELECT aq.create_queue(%s, distributed => true, shards => 1)", [queue])
            self.admin.execute("SELECT aq.grant_queue(%s, 'remote', 'enqueue, dequeue')", [queue])
        return made

    def call(self, function, caller, arguments):
        return db.value(self.remote, f"SELECT aq.{function}('{self.made[caller].id}', {arguments})")

    def lend(self, caller, number, messages=1):
        """The node gets queues of this one."""
        for queue in self.queues(caller, number):
            for n in range(messages):
                put(self.admin, queue, n)
            self.call(WANT, caller, f"'{queue}', NULL, 'pg_catalog.jsonb'")

    def bring(self, caller):
        """The node lends this one a message."""
        assert self.call(DELIVER, caller, f"1, 1, '{caller}_0', 0, NULL, 'pg_catalog.jsonb', {ARRAYS % next(self.numbers)}")

    def propagation(self, name, answers):
        self.made[name] = self.hostile(name, answers)
        self.admin.execute("SELECT aq.create_queue(%s), aq.create_propagation(%s, %s)", [name, name, f"x@{name}"])
        put(self.admin, name, 1)

    def left(self):
        """What a failure shows of the servers whose answers are not used up."""
        return {
            name: (
                made.left,
                made.last,
                db.row(self.admin, "SELECT * FROM aq.links WHERE server = %s", [name]),
                db.rows(self.admin, "SELECT * FROM aq.nodes WHERE server = %s", [name]),
            )
            for name, made in self.made.items()
            if made.left
        }

    def until_used_up(self, again):
        """The links try at once whenever the server behind them can be reached; returns what they have said."""
        said = set()
        deadline = time.monotonic() + PATIENCE
        while any(made.left for made in self.made.values()):
            if time.monotonic() > deadline:
                pytest.fail(f"answers that nobody has asked for: {self.left()}")
            for name in [name for name, made in self.made.items() if made.left]:
                self.admin.execute("SELECT aq.check_link(%s)", [name])
            said |= set(self.admin.execute("SELECT server, sqlstate, error FROM aq.links").fetchall())
            again()
            time.sleep(0.02)  # the servers answer in their own time
        return said


def test_requests(server, admin, hostile):
    """All evil answers to each statement of nodes and of propagation, at the same time: no crash, the same worker, a clear error, and another link works meanwhile and in the end."""
    evil = list(EVIL.values())
    attack = Attack(server, admin, hostile)
    good = hostile("good", {})
    admin.execute("SELECT aq.add_node('good')")
    before = unchanged(server, admin)
    attack.node(BEAT, {BEAT: [None, *evil]})
    attack.node(WANT, {WANT: [*evil]})
    # some of the answers are good ones: then a lost delivery makes it ask again
    attack.node(RESUME, {DELIVER: [EVIL["no columns"]] * 6, RESUME: [None, *evil]})
    attack.node(DELIVER, {DELIVER: [*evil]})
    attack.node(RECALL, {RECALL: [*evil]})
    attack.node(FINISH, {FINISH: [*evil]})
    attack.node(RETURN, {RETURN: [*evil]})
    attack.known()
    attack.propagation(BEGIN, {BEGIN: [*evil]})
    attack.propagation(PUT, {PUT: [*evil]})
    attack.queues(WANT, 1)
    attack.lend(RESUME, 6, messages=5)
    attack.lend(DELIVER, len(evil) + 1)
    attack.lend(RECALL, len(evil) + 1)
    admin.execute(
        "UPDATE aq_internal.node_unit u SET recalled = clock_timestamp() FROM aq_internal.queue q WHERE q.queue_id = u.queue_id AND queue_name LIKE 'node_recall%'"
    )
    for caller in (FINISH, RETURN):
        attack.queues(caller, 1)
        attack.call(RESUME, caller, "1, '{}', '{}'")
        attack.bring(caller)
    attack.call(RECALL, RETURN, "1")
    requests = db.value(admin, "SELECT requests FROM aq.links WHERE server = 'good'")

    def again():
        # there is always something to send (what was sent once has arrived, as the servers say later), and to report
        for caller, number in ((RESUME, 6), (DELIVER, len(evil) + 1)):
            put(admin, f"{caller}_{next(attack.numbers) % number}", 1)
        attack.bring(FINISH)
        for queue in ("node_want_0", "node_finish_0"):
            admin.execute("SELECT FROM aq.dequeue(%s)", [queue])
        admin.execute(
            "SELECT aq.alter_propagation(queue_name, destination, enabled => true) FROM aq.propagations WHERE failures > 0 OR state IN ('disabled', 'diverged')"
        )

    said = attack.until_used_up(again)
    for name in attack.made:
        assert (name, *UNEXPECTED) in said, name
    until(lambda: db.value(admin, "SELECT bool_and(state = 'reachable') FROM aq.nodes WHERE server IS NOT NULL"), "all nodes")
    assert db.value(admin, "SELECT requests FROM aq.links WHERE server = 'good'") > requests + 5
    assert db.row(admin, "SELECT failures, lost, sqlstate, encryption FROM aq.links WHERE server = 'good'") == {
        "failures": 0,
        "lost": 0,
        "sqlstate": None,
        "encryption": "local",
    }
    assert unchanged(server, admin) == before and good.id


def test_calls(server, admin, hostile):
    """What a hostile node sends: arguments that no node has are refused, or do what they say, and nothing crashes."""
    attack = Attack(server, admin, hostile)
    attack.node("caller", {})
    attack.known()
    before = unchanged(server, admin)
    [queue] = attack.queues("caller", 1)
    numbers = ["NULL", "0", "-1", "9223372036854775807", "-9223372036854775808"]
    lists = [
        "NULL",
        "'{}'",
        "'{NULL}'",
        "'{{1,2},{3,4}}'",
        "'[5:6]={1,2}'",
        "array_fill(1::bigint, ARRAY[100000])",
        "'{9223372036854775807,-1}'",
    ]
    ids = [
        "NULL",
        "'{}'",
        "'{NULL}'",
        "array_fill(gen_random_uuid(), ARRAY[2,2])",
        "array_fill(gen_random_uuid(), ARRAY[2])",
        "array_fill(gen_random_uuid(), ARRAY[100000])",
    ]
    names = ["NULL", "''", f"'{queue}'", "repeat('x', 1000000)", "E'\\x1b'"]
    calls = [
        (BEAT, [["1"], ["now()", "'infinity'"]]),
        (BEAT, [numbers, ["now()"]]),
        (WANT, [names, names, ["'pg_catalog.jsonb'", *names]]),
        (RESUME, [numbers, lists, ids]),
        (RECALL, [numbers]),
        (FINISH, [lists, ids]),
        (RETURN, [numbers]),
    ]
    errors = set()

    def call(function, arguments):
        try:
            attack.call(function, "caller", arguments)
        except db.Error as caught:
            errors.add(caught.sqlstate)

    for function, kinds in calls:
        for arguments in itertools.product(*kinds):
            call(function, ", ".join(arguments))
    good = [
        "7",
        "7",
        f"'{queue}'",
        "0",
        "NULL",
        "'pg_catalog.jsonb'",
        "'{1}'",
        "'{1}'",
        "'{NULL}'",
        "'{NULL}'",
        "'{NULL}'",
        "'{NULL}'",
        "'{NULL}'",
        "'{NULL}'",
    ]
    odd = {0: numbers, 1: numbers, 2: names, 3: ["NULL", "-1", "32", "2147483647", "-2147483648"], 4: names, 5: names}
    for n in range(len(good)):
        for value in odd.get(
            n,
            [
                "NULL",
                "'{}'",
                "'{NULL,NULL}'",
                "'{{NULL},{NULL}}'",
                *(["'{2147483647}'", "'{-2147483648}'"] if n == 7 else []),
                *(["'{9223372036854775807}'", "'{-1}'"] if n == 8 else []),
            ],
        ):
            call(DELIVER, ", ".join([*good[:n], value, *good[n + 1 :]]))
    source = "00000000-0000-4000-8000-000000000001"
    admin.execute("GRANT EXECUTE ON FUNCTION aq.propagation_begin, aq.propagation_put TO remote")
    for function, kinds in (
        (BEGIN, [numbers, numbers, numbers, [f"'{queue}'"]]),
        (PUT, [numbers, numbers, [f"'{source}'"], [f"'{queue}'"], names, ["'pg_catalog.jsonb'"], [", ".join(good[6:])]]),
    ):
        for arguments in itertools.product(*kinds):
            with contextlib.suppress(db.Error):
                attack.remote.execute(f"SELECT aq.{function}('{source}', {', '.join(arguments)})")
    assert not any(sqlstate.startswith(("XX", "57", "08")) for sqlstate in errors), errors
    assert unchanged(server, admin) == before
