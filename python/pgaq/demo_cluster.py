"""./demo cluster: one queue on three servers of this machine, one of which is killed; what was consumed is checked and shown in one table."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections import Counter
from pathlib import Path

from pgaq import db, text
from pgaq.cluster import Cluster
from pgaq.load import ledger
from pgaq.load.drivers import DISTRIBUTED, Shape
from pgaq.load.workload import Options, Workload
from pgaq.server import Server

SECONDS = 40
NODES = ("a", "b", "c")
QUEUE = "demo_orders"
SHAPE = Shape(batch=10, sessions=6, rate=3000)
CONSUMERS = 2  # on each node that has some
SETTINGS = {"shared_buffers": "64MB", "max_wal_size": "1GB", "pgaq.node_heartbeat": "200ms", "pgaq.node_timeout": "2s"}


def servers_at(home: Path) -> dict[str, Server]:
    """The demo's servers, as they are or will be on disk."""
    return {name: Server(home / "cluster" / name, name=f"demo-{name}", tcp=True, settings=SETTINGS) for name in NODES}


def stop(home: Path) -> bool:
    """Stop those that run; were there any?"""
    running = [server for server in servers_at(home).values() if server.running()]
    for server in running:
        server.stop("fast")
    return bool(running)


def remove(home: Path) -> None:
    for server in servers_at(home).values():
        server.destroy()
    shutil.rmtree(home / "cluster", ignore_errors=True)


def prepare(home: Path, dbname: str) -> Cluster:
    """Three new servers that are nodes of each other, with the queue."""
    remove(home)
    cluster = Cluster(servers_at(home), dbname)
    for server in cluster.servers.values():
        server.create()
        server.start()
        with server.connect() as conn:
            db.execute(conn, f"CREATE DATABASE {dbname}")
        with server.connect(dbname) as conn:
            db.execute(conn, "CREATE EXTENSION pgaq")
    cluster.join()
    return cluster


class Play:
    """The load, step by step."""

    def __init__(self, cluster: Cluster, home: Path, seconds: float) -> None:
        self.cluster, self.seconds = cluster, seconds
        first, *others = cluster.servers.values()
        directory = home / "ledger" / QUEUE
        shutil.rmtree(directory, ignore_errors=True)
        self.workload = Workload(
            first,
            DISTRIBUTED,
            SHAPE,
            Options(reconnect=True, consumer_sessions=CONSUMERS),
            queue=QUEUE,
            dbname=cluster.dbname,
            directory=directory,
            nodes=others,
        )
        self.workload.producers_at = list(cluster.servers.values())
        self.progress = text.Progress(seconds + 5)
        self.down = 0  # messages that the others have consumed while a node was down
        self.took = 0.0
        self._last = (time.monotonic(), 0, 0)
        self._rates = (0.0, 0.0)

    def _run(self, what: str, share: float) -> None:
        def show(workload: Workload) -> None:
            now, (then, produced, delivered) = time.monotonic(), self._last
            if now - then >= 0.5:
                control = workload.control
                self._rates = ((control.produced - produced) / (now - then), (control.delivered - delivered) / (now - then))
                self._last = (now, control.produced, control.delivered)
            self.progress.show(what, f"{self._rates[0]:>7,.0f}/s in {self._rates[1]:>7,.0f}/s out")

        self.progress.show(what)
        self.workload.run_for(self.seconds * share, show)

    def play(self) -> None:
        """Producers on all nodes all the time; consumers on one, then on others, then on all while one node is killed."""
        a, b, c = self.cluster.servers.values()
        workload, began = self.workload, time.monotonic()
        workload.setup()
        workload.start()
        self._run("producers on a, b and c, consumers on a", 0.25)
        workload.consume_at([b, c], CONSUMERS)
        self._run("consumers on b and c instead", 0.25)
        workload.consume_at([a, b, c], CONSUMERS)
        self._run("consumers on all nodes", 0.15)
        before = workload.control.delivered
        c.kill()
        self._run("kill -9 of node c: the others go on", 0.15)
        self.down = workload.control.delivered - before
        c.start()
        self._run("node c is back", 0.2)
        self.took = time.monotonic() - began
        self.progress.show("taking what is left")
        workload.drain(60, quiet=10, patience=30)
        workload.stop()
        self.progress.show("checking every message")

    def per_node(self) -> dict[str, Counter[str]]:
        """Messages by node, from the ledgers: enqueued, consumed, of these from other nodes, and consumed on others."""
        names = {server: name for name, server in self.cluster.servers.items()}
        found: dict[str, Counter[str]] = {name: Counter() for name in NODES}
        for path in self.workload.ledger_dir.glob("*.led"):
            client = ledger.read(path)
            at = names[self.workload.placed[client.role, client.number]]
            for span in (span for transaction in client.transactions if transaction.outcome == "C" for span in transaction.spans):
                if client.role == "producer":
                    found[at]["enqueued"] += span.count
                    continue
                origin = names[self.workload.placed["producer", span.session >> 12]]
                found[at]["consumed"] += span.count
                if origin != at:
                    found[at]["from others"] += span.count
                    found[origin]["forwarded"] += span.count
        return found


def table(play: Play) -> str:
    """A row for each node."""
    rows = []
    messages = play.per_node()
    for name in NODES:
        with play.cluster.connect(name) as conn:
            units = db.row(
                conn,
                "SELECT count(*) FILTER (WHERE direction = 'lent') AS lent, count(*) FILTER (WHERE direction = 'held') AS held FROM aq.node_units",
            )
            lag = db.value(conn, "SELECT extract(epoch FROM max(lag)) * 1000000 FROM aq.nodes WHERE server IS NOT NULL")
        own = messages[name]
        rows.append([
            name, text.number(own["enqueued"]), text.number(own["consumed"]), text.number(own["from others"]), text.number(own["forwarded"] / play.took),
            units["lent"], units["held"], text.duration(None if lag is None else float(lag)),
        ])  # fmt: skip
    return text.table(["node", "enqueued", "consumed", "from others", "forwarded/s", "units lent", "held", "lag"], rows)


def hints(cluster: Cluster) -> str:
    """How to get in, what to look at, and how to end it."""
    lines = ["The servers run on:"]
    lines += [
        f"  {name}:  psql -h {shlex.quote(str(server.socket_dir))} -p {server.port} -U postgres {cluster.dbname}"
        for name, server in cluster.servers.items()
    ]
    lines += [
        "Look at these, and dequeue on one node what you enqueue on another:",
        "  SELECT server, state, forwarded, reported, granted, returned, queue_error FROM aq.nodes WHERE server IS NOT NULL;",
        "  SELECT queue_name, shard, direction, server, since, returns, sent, ready FROM aq.node_units;",
        f"  SELECT aq.enqueue('{QUEUE}', 'hello');          SELECT payload FROM aq.dequeue('{QUEUE}', as_type => NULL::text, wait => '5 s');",
        "How it works: docs/distributed.md. ./demo stop stops the servers, ./demo remove removes them.",
    ]
    return "\n".join(lines)


def run(home: Path, dbname: str, seconds: float) -> int:
    print("Three servers are made, and linked as nodes ...", flush=True)
    try:
        cluster = prepare(home, dbname)
        play = Play(cluster, home, seconds)
        with play.workload:
            try:
                play.play()
                report = play.workload.check()
            finally:
                play.progress.clear()
    except BaseException:
        stop(home)
        raise
    print(
        f"\n{SHAPE.rate:,.0f} messages of {SHAPE.payload} bytes per second, {SHAPE.batch} per transaction, fsync and synchronous_commit on, {os.cpu_count()} CPUs:\n"
    )
    print(table(play))
    print(
        "\nfrom others: of the consumed ones, those that were enqueued on other nodes. forwarded/s: messages of the node that others\n"
        "have consumed. units lent, held: shards of the node that others hold, and of others that it holds. lag: since the last answer.\n"
    )
    if report.ok:
        print(
            f"Checked against the clients' ledgers: {report.committed:,} messages, every one consumed exactly once, on whatever node, in the\n"
            f"order of its session. While c was down, a and b consumed {play.down:,}.\n"
        )
        play.workload.forget()
    else:
        print(f"CHECK FAILED; the ledger is in {play.workload.ledger_dir}\n{report}\n{play.workload.said()}\n")
    print(hints(cluster))
    return 0 if report.ok else 1
