"""Load on one queue: workload = setup, start, check, metrics.

The same class serves the demo, the benchmark and the stress tests.  The clients
are processes of bench/load, steered through a mapped control file; what they
did is read from their ledgers, never from the database.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence

from pgaq import db, places
from pgaq.load import leasers, ledger, machine, payload, tally
from pgaq.load.drivers import Driver, Shape
from pgaq.server import Server

MAGIC = 0x31716167705F6C64
FIELDS = (
    "magic phase subscribers ready produced produced_measured delivered delivered_measured idle quiet errors "
    "reconnects unknown bad_payloads rollbacks slowest_producing slowest_consuming acknowledged"
).split()
SIZE = 32 * 8
LARGE_LEDGER = 64 << 20  # bytes; the full check needs some hundred times as much memory
CONNECT, RUN, MEASURE, DRAIN, STOP = range(5)


class LoadError(Exception):
    """A client failed, or a run did not get anywhere."""


class NoSource(LoadError):
    """The package is installed, without the source of the load client."""


class Control:
    """struct control of bench/load: counters that clients add to, a phase that we set."""

    def __init__(self, path: Path, subscribers: int) -> None:
        self.path = path
        path.write_bytes(struct.pack("<3Q", MAGIC, CONNECT, subscribers).ljust(SIZE, b"\0"))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SIZE)

    def __getattr__(self, name: str) -> int:
        if name not in FIELDS:
            raise AttributeError(name)
        at = FIELDS.index(name) * 8
        return struct.unpack_from("<Q", self._map, at)[0]

    def _set(self, name: str, value: int) -> None:
        struct.pack_into("<Q", self._map, FIELDS.index(name) * 8, value)

    def set_phase(self, phase: int) -> None:
        self._set("phase", phase)

    def slowest(self) -> tuple[int, int]:
        """The slowest statement of a producer and of a consumer since this was asked last, microseconds."""
        found = self.slowest_producing, self.slowest_consuming
        self._set("slowest_producing", 0)
        self._set("slowest_consuming", 0)
        return found


def build_client() -> Path:
    """Compile bench/load if that was not done, and return the program."""
    given = os.environ.get("PGAQ_LOAD")
    if given:
        return Path(given)
    source = places.source()
    if source is None:
        raise NoSource(
            "bench/load is built from source, and there is no source here: run it in a clone of the project, or set PGAQ_SOURCE to one"
        )
    bench = source / "bench"
    build = bench / "build"
    if not os.access(bench, os.W_OK) and not build.exists():
        build = Path(tempfile.gettempdir()) / f"pgaq-load-{os.geteuid()}"
    command = ["make", "-s", "-C", str(bench), f"BUILD={build}", f"PG_CONFIG={places.pg_config_program()}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise LoadError(f"the load client did not compile:\n{done.stderr}")
    return build / "pgaq-load"


class Histogram:
    """Microseconds in the buckets of bench/load."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, buckets: dict[str, int]) -> None:
        for index, count in buckets.items():
            self.counts[int(index)] += count

    @staticmethod
    def middle(index: int) -> float:
        """The middle of a bucket."""
        if index < 64:
            return float(index)
        exponent, sub = divmod(index - 64, 32)
        width = 1 << (exponent + 1)
        return (32 + sub) * width + width / 2

    def total(self) -> int:
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float | None:
        """In microseconds; None when nothing was counted."""
        total = self.total()
        if total == 0:
            return None
        wanted = total * percent / 100
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                return self.middle(index)
        return None


@dataclass
class Options:
    """How a workload is driven, beyond its shape."""

    ledger: bool = True
    fsync: str = "end"  # none, end or each
    explicit: bool = False
    rollback: int = 0  # per cent of transactions
    savepoint: int = 0
    prepare: int = 0
    reconnect: bool = False
    backlog: int | None = None
    messages: int = 0  # producers stop after about this many messages
    binary: bool = True
    producer_sessions: int | None = None
    consumer_sessions: int | None = None
    quotas: dict[str, int] = field(default_factory=dict)  # only these subscribers consume, each about this many messages
    seed: int = 1
    processes: int = 1  # client processes on each side
    leasers: int = 0  # sessions of pgaq/load/leasers.py beside them, where the driver has leases


@dataclass
class Metrics:
    """The results of a measured period."""

    seconds: float
    enqueued: float  # messages per second
    delivered: float  # deliveries per second
    p50: float | None = None  # microseconds from the enqueue call to the receipt
    p99: float | None = None
    server_cpu: float = 0.0  # CPU seconds per second
    client_cpu: float = 0.0
    other_cpu: float = 0.0  # whatever else ran on the machine
    stolen_cpu: float = 0.0  # what the machine's host kept for others
    wal_per_message: float = 0.0
    cpu_us_per_message: float = 0.0
    enqueue_p50: float | None = None  # a producer's transaction
    dequeue_p50: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Workload:
    """One queue of one driver under load."""

    def __init__(
        self,
        server: Server,
        driver: Driver,
        shape: Shape,
        options: Options | None = None,
        *,
        queue: str = "load",
        dbname: str = "postgres",
        directory: Path | None = None,
        nodes: Sequence[Server] = (),
    ) -> None:
        self.server = server
        self.nodes = [server, *nodes]  # servers with the queue
        self.producers_at = [server]
        self.consumers_at = [server]
        self.driver = driver
        self.shape = shape
        self.options = options or Options()
        self.queue = queue
        self.dbname = dbname
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pgaq-load-"))
        self._own_directory = directory is None
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ledger_dir = self.directory / "ledger"
        self.processes: list[subprocess.Popen[str]] = []
        self.placed: dict[tuple[str, int], Server] = {}  # role and number of a session: where it is
        self.results: list[dict[str, Any]] = []
        self.control: Control | None = None
        self.producers = 0
        self.consumers = 0
        self._generation = 0
        self._failed = 0
        self._marks: list[dict[str, Any]] = []
        self._leasers: leasers.Leasers | None = None

    @property
    def leases(self) -> bool:
        """Some clients take messages with leases."""
        return self.options.leasers > 0 and self.driver.leases != "" and not self.shape.buffered

    # -- setup

    def setup(self) -> None:
        """Create the queue and its subscribers."""
        for node in self.nodes:
            with node.connect(self.dbname) as conn:
                if self.driver.extension:
                    db.execute(conn, f"CREATE EXTENSION IF NOT EXISTS {self.driver.extension}")
                self.driver.setup(conn, self.queue, self.shape)

    def teardown(self) -> None:
        """Drop the queue and forget the ledger."""
        for node in self.nodes:
            with node.connect(self.dbname) as conn:
                # with a transaction left prepared, this would wait forever
                conn.execute("SET lock_timeout = '20s'")
                self.driver.teardown(conn, self.queue)
        self.forget()

    def forget(self) -> None:
        """Remove the ledger and other files of this workload."""
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            shutil.rmtree(self.ledger_dir, ignore_errors=True)

    # -- start

    def start(self, *, run: bool = True, timeout: float = 60) -> None:
        """Start the clients; they connect, and begin at once if run is true."""
        self.ledger_dir.mkdir(exist_ok=True)
        self._generation += 1
        self.control = Control(self.directory / f"control-{self._generation}", self.shape.fan_out)
        self.processes = []
        self.results = []
        self._marks = []
        names = self.shape.consumers
        if self.options.consumer_sessions is not None:
            sessions = self.options.consumer_sessions
        elif self.driver.one_consumer:
            sessions = len(names) or 1
        else:
            sessions = max(self.shape.consumer_sessions or self.shape.sessions, len(names))
            if names:  # the same number for every subscriber
                sessions = -(-sessions // len(names)) * len(names)
        self.producers = self.shape.sessions if self.options.producer_sessions is None else self.options.producer_sessions
        self.consumers = sessions
        if self.driver.yardstick:
            self.producers, self.consumers = self.producers + sessions, 0
        elif self.options.quotas:
            share = sessions // len(self.options.quotas)
            self.consumers = share * len(self.options.quotas)
            for number, (name, quota) in enumerate(self.options.quotas.items()):
                self._spawn("consumer", share, number * share, [name], quota)
        else:
            self._spread("consumer", sessions, self.consumers_at, names=names)
        self._spread("producer", self.producers, self.producers_at, messages=self.options.messages)
        if self.driver.tick:
            self._spawn("ticker", 1)
        ticker = 1 if self.driver.tick else 0
        self.until(lambda: self.control.ready >= self.producers + self.consumers + ticker, timeout, "the clients did not connect")
        if self.leases and self._leasers is None:
            self._leasers = leasers.Leasers(self)
        if run:
            self.control.set_phase(RUN)

    def end_leases(self) -> None:
        """The clients with leases finish what they have, before the rest is drained."""
        if self._leasers is not None:
            self._leasers.stop()
            self._leasers = None

    def _spread(self, role: str, sessions: int, servers: Sequence[Server], names: list[str] | None = None, messages: int = 0) -> None:
        """The same number of sessions on each of the servers, as far as that goes."""
        offset = 0
        for number, server in enumerate(servers):
            share = sessions // len(servers) + (1 if number < sessions % len(servers) else 0)
            if share:
                self._spawn(role, share, offset, names, -(-messages * share // sessions), server)
            offset += share

    def _spawn(
        self, role: str, sessions: int, offset: int = 0, names: list[str] | None = None, messages: int = 0, server: Server | None = None
    ) -> None:
        shape, options, driver = self.shape, self.options, self.driver
        server = server or self.server
        count = min(options.processes, sessions) if role != "ticker" else 1
        # numbers are never used twice: a session of an earlier start is another session
        first = (self._generation - 1) * 1000 + offset
        for number in range(count):
            share = sessions // count + (1 if number < sessions % count else 0)
            begin = first % 1000
            command = [
                str(build_client()), "--conninfo", server.conninfo(self.dbname, application_name=f"load {role}"),
                "--control", str(self.control.path), "--role", role, "--queue", self.queue,
                "--sessions", str(share), "--first-session", str(first), "--batch", str(shape.most if role == "consumer" else shape.batch),
                "--payload", str(shape.payload), "--seed", str(options.seed * 1000 + number + (500 if role == "consumer" else 0)),
                "--fsync", options.fsync,
            ]  # fmt: skip
            if options.ledger and role != "ticker":
                command += ["--ledger", str(self.ledger_dir), "--label", f"{self._generation}-"]
            command += self._statements(role)
            if names:
                for i in range(len(names)):
                    command += ["--consumer", names[(begin + i) % len(names)]]
            if role == "producer":
                own = driver.topic_backlog if shape.consumers else driver.backlog
                backlog = own if options.backlog is None else options.backlog
                command += ["--backlog", str(backlog), "--rate", str(shape.rate * share / self.producers)]
            if messages:
                command += ["--messages", str(-(-messages // count))]
            if role != "ticker":
                command += self._behaviour(role)
            first += share
            # standard error goes to a file, because a pipe would not be read while the clients run
            err = (self.directory / f"{self._generation}-{role}-{offset + number}.err").open("w+")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True)
            process.err_path, process.role, process.server = Path(err.name), role, server  # type: ignore[attr-defined]
            self.placed.update({(role, client): server for client in range(first - share, first)})
            err.close()
            self.processes.append(process)

    def _statements(self, role: str) -> list[str]:
        shape, driver = self.shape, self.driver
        topic = shape.kind == "topic"

        def text(template: str) -> str:
            mode = "'buffered', " if shape.buffered else ""
            return template.format(queue=self.queue, consumer="$2" if topic else "null", consumer_or_c="$2" if topic else "'c'", mode=mode)

        given: list[str] = ["--setup", driver.session_setup] if driver.session_setup else []
        if role == "producer":
            return [*given, "--enqueue", text(driver.enqueue(shape))]
        if role == "ticker":
            seconds = driver.latency_tick_seconds if shape.rate else driver.tick_seconds
            return [*given, "--wait", text(driver.tick or ""), "--tick-us", str(int(seconds * 1e6))]
        given += ["--dequeue", text(driver.dequeue(shape)), "--poll-us", str(int(driver.poll_seconds * 1e6))]
        for name in ("open", "close", "finish", "wait"):
            template = getattr(driver, name)
            if template:
                given += [f"--{name}", text(template)]
        return given

    def _behaviour(self, role: str) -> list[str]:
        options, shape = self.options, self.shape
        given = []
        for name in ("rollback", "savepoint", "prepare"):
            if getattr(options, name):
                given += [f"--{name}", str(getattr(options, name))]
        if self.leases and role == "consumer":
            given.append("--times")
        for name in ("reconnect", "explicit", "binary"):
            if getattr(options, name) and (name != "explicit" or self.driver.explicit):
                given.append(f"--{name}")
        if shape.single and (role == "producer" or not self.driver.open):
            given.append("--single")
        if shape.priorities:
            given.append("--priorities")
        if shape.delay_ms:
            given += ["--delay-ms", str(shape.delay_ms)]
        return given

    # -- run

    def run_for(self, seconds: float, progress: Callable[["Workload"], None] | None = None) -> None:
        """Let it run, looking after the clients."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            self._check_clients()
            if progress:
                progress(self)

    def measure(self, seconds: float, progress: Callable[["Workload"], None] | None = None) -> None:
        """Count what happens in this period (once per start)."""
        self.begin_measure()
        self.run_for(seconds, progress)
        self.end_measure()

    def begin_measure(self) -> None:
        self._mark()
        self.control.set_phase(MEASURE)

    def end_measure(self) -> None:
        self._mark()
        self.control.set_phase(RUN)

    def _mark(self) -> None:
        with self.server.connect(self.dbname) as conn:
            wal = db.value(conn, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        control = self.control
        self._marks.append(
            {
                "time": time.monotonic(), "cpu": machine.cpu(self.server), "wal": int(wal), "others": [machine.cpu(node).server for node in self.nodes[1:]],
                "produced": control.produced, "delivered": control.delivered,
            }
        )  # fmt: skip

    def play(self, warm_up: float, seconds: float, drain: float = 60) -> tuple[Metrics, bool]:
        """Runs from the setup to the end of the clients; returns the measurements, and whether all messages were taken
        within `drain` seconds."""
        self.setup()
        self.start()
        self.run_for(warm_up)
        self.measure(seconds)
        drained = self.drain(drain)
        self.stop()
        return self.metrics(), drained

    def drain(self, timeout: float = 120, quiet: float = 2.0, patience: float = 15.0) -> bool:
        """Stop the producers and let the consumers take what is left.

        Done when every consumer found nothing and, if no transaction is in doubt,
        all that was produced was delivered.  With doubts: when nothing was delivered
        for `quiet` seconds.  False when nothing more came for `patience` seconds.
        """
        self.end_leases()
        control = self.control
        control.set_phase(DRAIN)
        deadline = time.monotonic() + timeout
        last, since = -1, time.monotonic()
        while time.monotonic() < deadline:
            self._check_clients()
            now = time.monotonic()
            if control.delivered != last:
                last, since = control.delivered, now
            settled = control.quiet >= self.producers and control.idle >= self.consumers
            if settled and control.unknown == 0 and control.delivered == control.produced * self.shape.fan_out:
                return True
            if settled and self.driver.yardstick:
                return True
            if settled and control.unknown > 0 and now - since > quiet:
                return True
            if now - since > patience:
                return False
            time.sleep(0.01)
        return False

    def stop(self, timeout: float = 30) -> None:
        """End the clients and collect their results."""
        self.end_leases()
        self.control.set_phase(STOP)
        for process in self.processes:
            self._collect(process, timeout)

    def _collect(self, process: subprocess.Popen[str], timeout: float) -> None:
        """The result of a client that ends."""
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise LoadError("a client did not stop") from None
        if process.returncode != 0:
            raise LoadError(f"a client failed: {self._said(process)}")
        self.results.append(json.loads(out))

    def consume_at(self, servers: Sequence[Server], sessions: int, timeout: float = 30) -> None:
        """From now on this number of consumers on each of these servers, and none elsewhere; those that end finish their transaction."""
        leaving = [process for process in self.processes if process.role == "consumer" and process.server not in servers]  # type: ignore[attr-defined]
        for process in leaving:
            process.terminate()
        for process in leaving:
            self._collect(process, timeout)
            self.processes.remove(process)
        self._generation += 1
        for number, server in enumerate(server for server in servers if server not in self.consumers_at):
            self._spawn("consumer", sessions, number * sessions, self.shape.consumers, server=server)
        self.consumers_at, self.consumers = list(servers), sessions * len(servers)

    def kill_clients(self) -> None:
        """kill -9 of every client process: their transactions are left to the server."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

    def __enter__(self) -> "Workload":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_clients()
        if self._own_directory:
            self.forget()

    def said(self) -> str:
        """The clients' standard error, mostly SQL errors."""
        return "".join(self._said(process) for process in self.processes)

    @staticmethod
    def _said(process: subprocess.Popen[str]) -> str:
        return process.err_path.read_text()[:4000]  # type: ignore[attr-defined]

    def _check_clients(self) -> None:
        for process in self.processes:
            if process.poll() not in (None, 0):
                raise LoadError(f"a client ended with status {process.returncode}: {self._said(process)}")

    def until(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait for something that the clients do; an error that says what when it does not come."""
        deadline = time.monotonic() + timeout
        while not condition():
            self._check_clients()
            if time.monotonic() > deadline:
                raise LoadError(what)
            time.sleep(0.005)

    # -- check and metrics

    def take_failed(self) -> None:
        """Enters the current messages of the exception queue into a ledger, too."""
        self._failed += 1
        writer = ledger.Writer(self.ledger_dir, "consumer", 9000 + self._failed, moved=True)
        with self.server.connect(self.dbname) as conn:
            while rows := conn.execute(self.driver.failed, [self.queue]).fetchall():
                for (text,) in rows:
                    sent = payload.read(text, self.shape.payload)
                    writer.delivered(*sent) if sent else writer.bad_payload()
                writer.outcome("C")
        writer.close()

    def check(self, *, drained: bool = True, lossy: bool = False) -> ledger.Report:
        """Compare all ledgers of this workload."""
        names = self.shape.consumers or [""]
        if sum(path.stat().st_size for path in self.ledger_dir.glob("*.led")) > LARGE_LEDGER:
            report = tally.check(self.ledger_dir, subscribers=names, order=self.driver.ordered, drained=drained)
            if report is not None:
                return report
        rests = self.shape.retry_delay_ms > 0
        rest = self.shape.rest if rests and self.leases else None
        return ledger.check(
            self.ledger_dir, subscribers=names, order=self.driver.ordered, drained=drained, retry_delay=rests, lossy=lossy, rest=rest,
            leased_from_call=self.driver.leases == "call",
        )  # fmt: skip

    def metrics(self) -> Metrics:
        """The results of `measure`; call it after `stop`."""
        first, last = self._marks[0], self._marks[-1]
        seconds = last["time"] - first["time"]
        latency, enqueue, dequeue = Histogram(), Histogram(), Histogram()
        client = 0.0
        for result in self.results:
            client += result["cpu_user"] + result["cpu_system"]
            latency.add(result["latency"])
            if result["role"] == "producer":
                enqueue.add(result["duration"])
            elif result["role"] == "consumer":
                dequeue.add(result["duration"])
        produced = sum(r["measured_messages"] for r in self.results if r["role"] == "producer")
        delivered = sum(r["measured_messages"] for r in self.results if r["role"] == "consumer")
        if self.driver.yardstick:
            produced = delivered = produced / 2
        server = last["cpu"].server - first["cpu"].server
        others = [end - begin for begin, end in zip(first["others"], last["others"], strict=True)]
        everything = last["cpu"].machine - first["cpu"].machine
        per = max(1, produced)
        return Metrics(
            seconds=seconds,
            enqueued=produced / seconds,
            delivered=delivered / seconds,
            p50=latency.percentile(50),
            p99=latency.percentile(99),
            server_cpu=server / seconds,
            client_cpu=client / seconds,
            other_cpu=max(0.0, everything - server - sum(others) - client) / seconds,
            stolen_cpu=(last["cpu"].steal - first["cpu"].steal) / seconds,
            wal_per_message=(last["wal"] - first["wal"]) / per,
            cpu_us_per_message=server / per * 1e6,
            enqueue_p50=enqueue.percentile(50),
            dequeue_p50=dequeue.percentile(50),
            extra={
                "empty_dequeues": sum(r["empty_dequeues"] for r in self.results),
                "waits": sum(r["waits"] for r in self.results),
                "node_cpu_us": [used / per * 1e6 for used in (server, *others)],
                "p90": latency.percentile(90), "p999": latency.percentile(99.9), "max": latency.percentile(100),
            },
        )  # fmt: skip
