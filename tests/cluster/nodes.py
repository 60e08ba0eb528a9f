"""What tests of nodes share: three servers on the loopback that know each other, queues that are on all of them, and clients with ledgers."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import string
import threading
import time
from collections import Counter
from typing import Any, Callable, Iterator

import psycopg
import pytest

from conftest import PATIENCE, drop, end_server, install_points, installed, put, ready, until
from pgaq import db
from pgaq.cluster import CALLS
from pgaq.server import Server

EXPECTED = r"terminat|crash|signal 9|there is no transaction in progress|test point|canceling|another server has the identity|is not a node"
QUICK = {"pgaq.node_heartbeat": "100ms", "pgaq.node_timeout": "1s"}
NAMES = "abc"


class Node:
    """A server, with the names of the other nodes' foreign servers."""

    def __init__(self, server: Server):
        self.server = server

    def connect(self):
        return self.server.connect()

    def link(self, name, port, password="secret"):
        with self.connect() as conn:
            conn.execute(
                f"CREATE SERVER {name} FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '{port}', dbname 'postgres', connect_timeout '2')"
            )
            conn.execute(f"CREATE USER MAPPING FOR postgres SERVER {name} OPTIONS (user 'remote', password '{password}')")

    def add(self, name):
        with self.connect() as conn:
            conn.execute("SELECT aq.add_node(%s)", [name])

    def remove(self, name):
        with self.connect() as conn:
            conn.execute("SELECT aq.remove_node(%s)", [name])

    def id(self):
        with self.connect() as conn:
            return db.value(conn, "SELECT node_id FROM aq.nodes WHERE server IS NULL")

    def now(self, name):
        with self.connect() as conn:
            return db.row(conn, "SELECT * FROM aq.nodes WHERE server = %s", [name])

    def sees(self, name, state, **columns):
        """Wait until that node has this state, and these values of columns."""

        def found():
            row = self.now(name)
            return row["state"] == state and all(row[column] == value for column, value in columns.items()) and row

        return until(found, f"{name} {state} {columns}")

    def others(self):
        """Name, port and identity of the other nodes."""
        with self.connect() as conn:
            return set(
                conn.execute(
                    "SELECT n.server, (SELECT option_value FROM pg_options_to_table(s.srvoptions) WHERE option_name = 'port'), n.node_id "
                    "FROM aq.nodes n LEFT JOIN pg_foreign_server s ON s.srvname = n.server WHERE n.server IS NOT NULL"
                ).fetchall()
            )

    def forget(self):
        """Remove all nodes and links."""
        with self.connect() as conn:
            conn.execute("SELECT aq.remove_node(server, force => true) FROM aq.nodes WHERE server IS NOT NULL")
            for (name,) in conn.execute("SELECT srvname FROM pg_foreign_server").fetchall():
                conn.execute(f"DROP SERVER {name} CASCADE")


def value(node, query, parameters=None):
    with node.connect() as conn:
        return db.value(conn, query, parameters)


@contextlib.contextmanager
def three_servers(library: str, points: str = "a", expected: str = EXPECTED, **settings: Any) -> Iterator[list[Server]]:
    """Three servers, of which those that are named have test points; the role "remote" is for their links."""
    made = []
    for name in NAMES:
        with pytest.MonkeyPatch.context() as monkeypatch:
            if name in points:
                monkeypatch.setenv("PGAQ_LIBDIR", library)
            made.append(Server.temporary(name, tcp=True, settings={**QUICK, **settings}, copy_of=installed()))
        made[-1].expect_log(expected)
        made[-1].expect_log("is not a PostgreSQL backend process")  # one that was to be terminated has ended
        with made[-1].connect() as conn:
            conn.execute(f"CREATE ROLE remote LOGIN PASSWORD 'secret'; GRANT EXECUTE ON FUNCTION {CALLS} TO remote")
        if name in points:
            install_points(made[-1])
    yield made
    for server in made:
        end_server(server)


@contextlib.contextmanager
def joined(servers: list[Server], points: str = "a") -> Iterator[list[Node]]:
    """Three nodes, each of which has added the others; what the test before has changed is made anew."""
    made = [Node(server) for server in servers]
    for node in made:
        node.server.start()
    identities = {(name, str(node.server.port), node.id()) for name, node in zip(NAMES, made, strict=True)}
    if any(node.others() != {other for other in identities if other[0] != name} for name, node in zip(NAMES, made, strict=True)):
        connect_all(made)
    for node in made:
        for name, other in zip(NAMES, made, strict=True):
            if other is not node:
                node.sees(name, "reachable", mutual=True)
    yield made
    for name, node in zip(NAMES, made, strict=True):
        if name in points:
            node.server.start()
            value(node, "SELECT aq.point_reset()")


def connect_all(nodes: list[Node]) -> None:
    for node in nodes:
        node.forget()
    for node in nodes:
        for name, other in zip(NAMES, nodes, strict=True):
            if other is not node:
                node.link(name, other.server.port)
                node.add(name)


class Shared:
    """A queue of this name on all nodes, and what happens to its messages."""

    def __init__(self, nodes: list[Node], name: str, consumers: tuple[str, ...] = (), **options: Any):
        self.nodes, self.name = nodes, name
        more = "".join(f", {option} => %s" for option in options)
        for node in nodes:
            with node.connect() as conn:
                conn.execute(
                    f"SELECT aq.create_queue(%s, distributed => true, multiple_consumers => %s{more})",
                    [name, bool(consumers), *options.values()],
                )
                conn.execute("SELECT aq.grant_queue(%s, 'remote', 'enqueue, dequeue')", [name])
                conn.execute("SELECT aq.subscribe(%s, c) FROM unnest(%s::text[]) c", [name, list(consumers)])

    def drop(self) -> None:
        for node in self.nodes:
            with node.connect() as conn:
                drop(conn, self.name)

    def lend(self, node: Node, consumer: str | None = None) -> None:
        """A session of that node asks for messages, and takes none: they are sent there."""
        with node.connect() as conn:
            conn.execute("SELECT FROM aq.dequeue(%s, consumer => %s, correlation => 'none')", [self.name, consumer])

    def put_and_lend(self, conn: db.Connection, node: Node, *payloads: Any, **options: Any) -> list[str]:
        """Messages are enqueued, and sent to that node; returns their ids."""
        ids = put(conn, self.name, *payloads, **options)
        self.lend(node)
        self.holds(node, len(payloads))
        return ids

    def units(self, node: Node, direction: str) -> list[dict[str, Any]]:
        with node.connect() as conn:
            return db.rows(
                conn,
                "SELECT * FROM aq.node_units WHERE queue_name = %s AND direction = %s ORDER BY consumer, origin_shard",
                [self.name, direction],
            )

    def holds(self, node: Node, number: int) -> None:
        """Wait until that many messages of other nodes are ready there."""
        until(lambda: sum(unit["ready"] for unit in self.units(node, "held")) == number, f"{number} messages at the holder")

    def settled(self, node: Node) -> None:
        """Wait until nothing of this node's messages is with others."""
        until(lambda: sum(unit["sent"] for unit in self.units(node, "lent")) == 0, "reports of all messages")

    def ask_back(self, node: Node, at_once: bool = False) -> None:
        """The node wants its units back: those that it has lent for a moment, or all at once."""
        with node.connect() as conn:
            conn.execute(
                "UPDATE aq_internal.node_unit SET recalled = clock_timestamp() WHERE recalled IS NULL AND holder <> (SELECT node_id FROM aq_internal.node_identity) AND granted < clock_timestamp() - %s::interval AND queue_id = (SELECT queue_id FROM aq_internal.queue WHERE queue_name = %s)",
                ["0" if at_once else "0.2 s", self.name],
            )

    def states(self, node: Node) -> dict[str, int]:
        """Number of messages that are not done, by state."""
        with node.connect() as conn:
            return dict(
                conn.execute(
                    "SELECT state, count(*) FROM aq.messages WHERE queue_name = %s AND state NOT IN ('PROCESSED', 'EXPIRED', 'PURGED', 'FAILED') GROUP BY state",
                    [self.name],
                ).fetchall()
            )


class Load:
    """Producers on all nodes, and a consumer on each that is active; what they do is committed together with their ledgers."""

    def __init__(self, nodes: list[Node], queue: str, seed: int, producers: int = 2, pause: float = 0.01):
        self.nodes, self.queue, self.seed, self.pause = nodes, queue, seed, pause
        self.active = [True] * len(nodes)
        self.got = 0  # with those of transactions that were rolled back
        self._tried: set[str] = set()  # taken by transactions that were rolled back
        self._lost: list[float] = []  # when transactions failed that may have taken messages
        self._over, self._all_sent = threading.Event(), threading.Event()
        self._left: set[int] = set()  # nodes with no producers any more
        self._producers = [self._thread(self._produce, node, n) for node in range(len(nodes)) for n in range(producers)]
        self._consumers = [self._thread(self._consume, node) for node in range(len(nodes))]
        for node in nodes:
            self._make_ledgers(node)

    def _thread(self, work: Callable[..., int], node: int, n: int = 0) -> threading.Thread:
        return threading.Thread(target=self._run, args=(work, node, n), name=f"{work.__name__} {node} {n}", daemon=True)

    def _make_ledgers(self, node: Node) -> None:
        with node.connect() as conn:
            conn.execute(
                "DROP TABLE IF EXISTS sent, got; CREATE TABLE sent (message text, at timestamptz DEFAULT clock_timestamp()); CREATE TABLE got (message text, began float, ended float)"
            )

    def join(self, node: Node) -> int:
        """One more node, with a producer and a consumer; its number."""
        number = len(self.nodes)
        self._make_ledgers(node)
        self.nodes, self.active = [*self.nodes, node], [*self.active, True]
        self._producers.append(self._thread(self._produce, number))
        self._consumers.append(self._thread(self._consume, number))
        self._producers[-1].start()
        self._consumers[-1].start()
        return number

    def leave(self, number: int) -> None:
        """That node sends no more, and goes on to consume."""
        self._left.add(number)
        for thread in self._producers:
            if thread.name.startswith(f"{self._produce.__name__} {number} "):
                thread.join(PATIENCE)

    def __enter__(self) -> "Load":
        for thread in [*self._producers, *self._consumers]:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._all_sent.set()
        self._over.set()
        for thread in [*self._producers, *self._consumers]:
            thread.join(PATIENCE)

    def _run(self, work: Callable[..., int], node: int, n: int) -> None:
        """Work until it is over, in many sessions: each has one shard for its messages."""
        rng = random.Random(f"{self.seed} {node} {n} {work.__name__}")
        over = self._all_sent if work == self._produce else self._over
        for session in itertools.count():
            with contextlib.suppress(db.Error, psycopg.Rollback), self.nodes[node].connect() as conn:  # also when it crashes in a rollback
                number = 0
                while number < 50 and not over.is_set():
                    number = work(conn, rng, node, f"{string.ascii_lowercase[node]}{n}.{session}", number)
            if over.wait(0.02) or (work == self._produce and node in self._left):
                break

    def note(self, conn: db.Connection, ledger: str, *row: Any) -> None:
        """Write a row into a ledger of the node, in the transaction that sends or gets a message."""
        conn.execute(f"INSERT INTO {ledger} VALUES ({', '.join(['%s'] * len(row))})", row)

    def _produce(self, conn: db.Connection, rng: random.Random, node: int, session: str, number: int) -> int:
        producer = session if session[-1] in "02468" else None  # a name finds other shards than the session
        with conn.transaction():
            for _ in range(rng.randint(1, 5)):
                number += 1
                message = f"{session} {rng.choice((1, 1, 1, 2))} {number}"
                conn.execute(
                    "SELECT aq.enqueue(%s, %s, priority => %s, producer => %s)",
                    [self.queue, json.dumps(message), int(message.split()[1]), producer],
                )
                self.note(conn, "sent", message)
            if rng.random() < 0.05:
                raise psycopg.Rollback
        self._all_sent.wait(self.pause)
        return number

    def _consume(self, conn: db.Connection, rng: random.Random, node: int, session: str, number: int) -> int:
        if not self.active[node]:
            self._over.wait(0.02)
            return 0
        ready(conn, self.queue, timeout="0.2 s")
        messages: list[str] = []
        try:
            with conn.transaction():
                query = "SELECT payload #>> '{}', extract(epoch FROM statement_timestamp()), extract(epoch FROM clock_timestamp()) FROM aq.dequeue(%s, max_messages => %s)"
                rows = conn.execute(query, [self.queue, rng.choice((1, 10, 50))]).fetchall()
                messages = [row[0] for row in rows]
                for row in rows:
                    self.note(conn, "got", *row)
                if rng.random() < 0.1:
                    raise Undo
        except Undo:
            self._tried.update(messages)
        except db.Error:
            self._tried.update(messages)
            self._lost.append(time.time())
            raise
        self.got += len(messages)
        return 0

    def finish(self, patience: float = PATIENCE) -> Counter[str]:
        """No more are sent, and the rest is taken: each once, and those of a session with one priority in order.  Returns how many of whose messages each node has got."""
        self._all_sent.set()
        self.active = [True] * len(self.nodes)
        for thread in self._producers:
            thread.join(PATIENCE)
        sent = dict(row for node in self.nodes for row in _rows(node, "SELECT message, extract(epoch FROM at)::float FROM sent"))
        until(lambda: sum(value(node, "SELECT count(*) FROM got") for node in self.nodes) >= len(sent), "all messages", patience)
        self._over.set()
        for thread in self._consumers:
            thread.join(PATIENCE)
        got = [
            (*row, name)
            for node, name in zip(self.nodes, string.ascii_lowercase, strict=False)
            for row in _rows(node, "SELECT message, began, ended FROM got")
        ]
        double = {message: n for message, n in Counter(row[0] for row in got).items() if n > 1}
        assert not double, f"more than once: {double}"
        assert {row[0] for row in got} == set(sent)
        self._check_order(sent, got)
        return Counter(f"{row[0][0]} to {row[3]}" for row in got)

    def _check_order(self, sent: dict[str, float], got: list[tuple[str, float, float, str]]) -> None:
        """A dequeue that got a message had begun when a later message of its session was there; unless the message was in a transaction that was rolled back, and went to another node then."""
        next_ended: dict[str, tuple[float, str, str]] = {}
        for message, began, ended, node in sorted(got, key=lambda row: int(row[0].rsplit(" ", 1)[1]), reverse=True):
            stream = message.rsplit(" ", 1)[0]
            earliest = next_ended.get(stream, (began + 1, "", ""))
            if began > earliest[0] and message not in self._tried and not any(sent[message] < lost < began for lost in self._lost):
                pytest.fail(
                    f"{message}, sent at {sent[message]}, came on {node} at {began} after {earliest}; transactions were lost at {self._lost}"
                )
            next_ended[stream] = min(earliest, (ended, message, node))


class Undo(Exception):
    """Rolls back a consumer's transaction."""


def _rows(node: Node, query: str) -> list[tuple[Any, ...]]:
    with node.connect() as conn:
        return conn.execute(query).fetchall()
