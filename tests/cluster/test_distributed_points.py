"""Distributed queues under load: errors, terminations and crashes at every named point of their protocol, and at random moments. The ledger of clients on three nodes says that each message came once, and in order."""

from __future__ import annotations

import contextlib
import random

import pytest

from conftest import PATIENCE, generation, until
from nodes import EXPECTED, Load, Node, Shared, joined, three_servers, value
from pgaq import db
from pgaq.server import free_port
from pgaq_proof import faults

pytestmark = pytest.mark.test_build

# node a has test points; it is an origin and a holder
FORWARDING = ["node-lent", "node-delivered", "node-resumed", "node-finished", "node-returned"]
HOLDING = ["node-arrived", "node-reporting", "node-reported", "node-returning", "node-ended"]
COME_BACK = {"node-returned", "node-returning", "node-ended"}


@pytest.fixture(scope="module")
def servers(library):
    with three_servers(library, "a") as made:
        yield made


@pytest.fixture
def nodes(servers):
    with joined(servers, "a") as made:
        yield made


@pytest.fixture
def queue(nodes):
    made = Shared(nodes, "loaded")
    yield made
    for node in nodes:
        assert faults.differences(node.server, "20 s") == []
    made.drop()


def provoke(nodes, queue, point):
    """Make it likely that node a gets to the point."""
    if point in COME_BACK:
        for node in nodes:
            queue.ask_back(node)
    if point == "node-resumed":
        value(
            nodes[0],
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'pgaq link' AND backend_start < clock_timestamp() - interval '3 s'",
        )


def befall(nodes, queue, point, action):
    """Node a meets with the action at the point."""
    a = nodes[0]
    before = generation(a.server)
    faults.arm(a.server, point, action)

    def happens():
        with contextlib.suppress(db.Error):  # it is crashing
            provoke(nodes, queue, point)
            if action != "crash":
                return value(a, f"SELECT aq.point_reached('{point}')") > 0
        return generation(a.server) not in (None, before)

    until(happens, f"{action} at {point}")


@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
def test_points(nodes, queue, seed, action):
    """Whatever happens to a node at a named point, each message is consumed once, in order, and consumption goes on."""
    rng = random.Random(seed)
    points = FORWARDING + HOLDING
    rng.shuffle(points)
    with Load(nodes, queue.name, seed) as load:
        for point in points:
            print(f"{action} at {point}")
            befall(nodes, queue, point, action)
            goal = load.got + 50
            until(lambda goal=goal: load.got > goal, f"progress after {point}")
        print(load.finish())


def shake(nodes, queue, load, rng):
    """Something random happens to a random node; True: its server was killed."""
    node = rng.choice(nodes)
    what = rng.choice(("kill", "kill", "kill", "restart", "link", "remote", "consumer", "back"))
    if what == "kill":
        node.server.kill()
        node.server.start()
    elif what == "restart":
        node.server.restart(rng.choice(("fast", "immediate")))
    elif what == "consumer":
        at = rng.randrange(len(nodes))
        load.active[at] = not load.active[at]
    elif what == "back":
        queue.ask_back(node)
    else:
        which = "backend_type = 'pgaq link'" if what == "link" else "usename = 'remote'"
        value(node, f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {which}")
    return what == "kill"


def test_random_kills(nodes, queue, seed, is_long):
    """10 times, or 300, kill -9 of a random server, with restarts, terminations, and consumers that come and go in between."""
    rng = random.Random(seed)
    kills = 0
    while kills < (300 if is_long else 10):
        with Load(nodes, queue.name, rng.randrange(1_000_000)) as load:
            for _ in range(40 if is_long else 20):
                kills += shake(nodes, queue, load, rng)
                load.active[rng.randrange(len(nodes))] = True
                goal = load.got + rng.choice((1, 20, 200))
                until(lambda goal=goal: load.got > goal, "progress", 2 * PATIENCE)
            print(kills, load.finish(2 * PATIENCE))
        for node in nodes:
            assert faults.differences(node.server, "20 s") == []


def test_failover(library, throw_away, seed):
    """A synchronous standby of a node is promoted under load: no message is lost or comes twice."""
    with three_servers(library, "", max_wal_senders="4") as servers, joined(servers, "") as nodes:
        a, b, c = nodes
        primary = a.server
        standby = throw_away(primary.basebackup("standby"))
        standby.expect_log(EXPECTED)
        standby.tcp, standby.port = True, free_port()
        standby.configure()
        standby.start()
        primary.configure(synchronous_standby_names="*", synchronous_commit="on")
        primary.reload()
        until(lambda: value(a, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1, "the synchronous standby")
        queue = Shared(nodes, "loaded")
        with Load(nodes, queue.name, seed) as load:
            until(lambda: load.got > 500, "traffic")
            primary.kill()
            standby.configure(synchronous_standby_names="")
            standby.promote()
            until(lambda: not value(Node(standby), "SELECT pg_is_in_recovery()"), "the promotion")
            a.server = standby
            for node in (b, c):
                with node.connect() as conn:
                    conn.execute(f"ALTER SERVER a OPTIONS (SET port '{standby.port}')")
            goal = load.got + 500
            until(lambda: load.got > goal, "progress")
            # what the primary has lost of its sequence is not used again
            until(
                lambda: queue.ask_back(a) or value(a, "SELECT max(epoch) >> 44 FROM aq_internal.node_unit") == 2,
                "a unit with a number of the new timeline",
            )
            load.finish()
        for node in nodes:
            assert faults.differences(node.server, "20 s") == []
