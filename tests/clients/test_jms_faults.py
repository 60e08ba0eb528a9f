"""jms/: kill -9 of clients, ended server sessions and crashes of the server under load, with a ledger.

The clients are processes of LedgerClient.java.  Each writes down what it knows, and the test compares the ledgers; the
views of pgaq are not asked.  With --long, random faults happen for twenty seconds in each acknowledge mode; otherwise
nothing happens to the clients of one transacted queue.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

import pytest

from conftest import ROOT, db, end_server, retry_at_once, until
from pgaq.load import java
from pgaq.load.workload import NoSource
from pgaq.server import Server

JMS = ROOT / "jms"
LEDGER_CLIENT = JMS / "pgaq-jms-clients/src/test/java/io/github/pgaq/jms/clients/LedgerClient.java"
JAVA = ["java", "-Xmx96m", *java.QUICK]
PASSWORD = "throw-away"
SECONDS = 20
CRASHES = (6, 13)  # seconds after the beginning
NUMBERS = itertools.count(1)


# -- what the ledgers say


@dataclass
class Ledgers:
    """All ledgers of one run."""

    sent: set[str] = field(default_factory=set)  # certainly
    begun: set[str] = field(default_factory=set)
    unsent: set[str] = field(default_factory=set)  # certainly rolled back
    received: dict[str, list[tuple[int, bool, int]]] = field(default_factory=lambda: defaultdict(list))  # time, redelivered, count
    orders: list[list[str]] = field(default_factory=list)  # for each process, the ids in its order that were not redelivered
    finishing: dict[str, int] = field(
        default_factory=lambda: defaultdict(int)
    )  # commits or acknowledgements that began and were not undone
    finished: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # those that certainly succeeded

    @classmethod
    def read(cls, files: list[Path]) -> "Ledgers":
        found = cls()
        for file in files:
            order: list[str] = []
            receives = False
            for line in file.read_text().splitlines(keepends=True):
                if not line.endswith("\n"):
                    break  # being written
                at, event, message, *more = line.split()
                receives = receives or event == "got"
                if event == "begin":
                    found.begun.add(message)
                elif event == "sent":
                    found.sent.add(message)
                elif event == "undone":
                    if receives:
                        found.finishing[message] -= 1
                    else:
                        found.unsent.add(message)
                elif event == "got":
                    redelivered = more[0] == "true"
                    found.received[message].append((int(at), redelivered, int(more[1])))
                    if not redelivered:
                        order.append(message)
                elif event in ("committing", "acknowledging"):
                    found.finishing[message] += 1
                elif event in ("committed", "acknowledged"):
                    found.finished[message] += 1
            found.orders.append(order)
        return found

    def pending(self, mode: str) -> set[str]:
        """Messages that are still to be received."""
        done = {message for message, n in self.finishing.items() if n > 0} if mode in ("transacted", "client") else set(self.received)
        return self.sent - done

    def findings(self, mode: str, single: bool, left: list[str] = ()) -> list[str]:
        """What must not be, if all has been received except for the messages that are left in the queue."""
        problems = [f"{message} was sent and is lost" for message in self.pending(mode) - set(left)]
        problems += [f"{message} was sent and is still in the queue" for message in self.pending(mode) & set(left)]
        problems += [f"{message} was not sent by any client" for message in self.received.keys() - self.begun]
        problems += [f"{message} was rolled back, and received" for message in self.unsent & self.received.keys()]
        problems += [f"{message} is committed, and still in the queue" for message in left if self.finished[message]]
        problems += [f"{message} is twice in the queue" for message in set(left) if left.count(message) > 1]
        if mode == "transacted":
            problems += [f"{message} was received in {n} transactions that committed" for message, n in self.finished.items() if n > 1]
        for message, receipts in self.received.items():
            receipts.sort()
            if any(redelivered != (count > 1) for _, redelivered, count in receipts):
                problems.append(f"{message}: JMSRedelivered and JMSXDeliveryCount disagree: {receipts}")
            # not always the first: a client that has not noticed that its session was ended goes on with its buffer
            if sum(not redelivered for _, redelivered, _ in receipts) > 1:
                problems.append(f"{message} came again and is not marked as redelivered: {receipts}")
        if single:
            problems += [f"{second} came after {first}" for order in self.orders for first, second in inversions(order)]
        return sorted(problems)


def inversions(order: list[str]) -> Iterator[tuple[str, str]]:
    """Messages of one producer that came before an earlier one of it."""
    last: dict[str, int] = {}
    for message in order:
        producer, n = message.rsplit(":", 1)
        if int(n) < last.get(producer, -1):
            yield f"{producer}:{last[producer]}", message
        last[producer] = int(n)


# -- the clients


class Clients:
    """Processes of LedgerClient, and what is done to them."""

    def __init__(
        self, server: Server, class_path: str, folder: Path, mode: str, kind: str, prefetch: int, seed: int, sessions: dict[str, int]
    ):
        self.sessions = sessions  # of each client, by role
        self.server, self.class_path, self.folder, self.mode, self.kind = server, class_path, folder, mode, kind
        self.random = random.Random(seed)
        self.name = f"faults_{mode}_{kind}_{prefetch}_{next(NUMBERS)}"
        self.url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=postgres&password={PASSWORD}&pgaq.lease=2000&pgaq.prefetch={prefetch}&pgaq.reconnectAttempts=-1&pgaq.reconnectDelay=100"
        self.running: dict[str, subprocess.Popen] = {}
        self.files: list[Path] = []
        with server.connect() as conn:
            db.execute(conn, "SELECT aq.create_queue(%s, 'aq.jms_message', multiple_consumers => %s)", [self.name, kind == "topic"])

    def start(self, role: str, client: str) -> Path:
        ledger = self.folder / f"{client}.{len(self.files)}.ledger"
        ledger.touch()
        self.files.append(ledger)
        command = [
            *JAVA,
            "-cp",
            self.class_path,
            "io.github.pgaq.jms.clients.LedgerClient",
            role,
            self.mode,
            self.kind,
            self.name,
            ledger.stem,
            str(ledger),
            str(self.random.randrange(2**31)),
            str(self.sessions[role]),
        ]
        with ledger.with_suffix(".log").open("w") as log:
            self.running[client] = subprocess.Popen(
                command, env={**os.environ, "PGAQ_URL": self.url}, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        return ledger

    def start_all(self, senders: int, receivers: int) -> None:
        # a topic keeps messages once it has the subscription
        for role, number in (("receive", receivers), ("send", senders)):
            ledgers = [self.start(role, f"{role}{n}") for n in range(number)]
            until(lambda: self.alive() and all(" ready " in ledger.read_text() for ledger in ledgers), f"clients that {role}")

    def alive(self) -> bool:
        for client, process in self.running.items():
            assert process.poll() is None, f"{client} has ended: {self.tail(client)}"
        return True

    def tail(self, client: str) -> str:
        logs = [file.with_suffix(".log") for file in self.files if file.name.startswith(f"{client}.")]
        return "\n".join(logs[-1].read_text().splitlines()[-30:])

    def received(self) -> int:
        """Receipts up to now."""
        return sum(file.read_text().count(" got ") for file in self.files if file.name.startswith("receive"))

    def progress(self, messages: int) -> None:
        before = self.received()
        until(lambda: self.alive() and self.received() >= before + messages, f"{messages} more messages after {before}")

    def load(self, seconds: float, crashes: tuple[int, ...]) -> None:
        """Random faults, each after some messages; without crashes none."""
        begin = time.monotonic()
        disturbed, crashes = bool(crashes), list(crashes)
        while (at := time.monotonic() - begin) < seconds:
            self.progress(self.random.randrange(1, 200))
            if crashes and at > crashes[0]:
                crashes.pop(0)
                self.server.stop("immediate")
                self.server.start()
            elif disturbed:
                self.random.choice([self.kill_client, self.kill_client, self.end_sessions])()

    def kill_client(self) -> None:
        client = self.random.choice(sorted(self.running))
        self.running[client].kill()
        self.running[client].wait()
        self.start("send" if client.startswith("send") else "receive", client)

    def end_sessions(self) -> None:
        """Some of the clients' sessions on the server."""
        with self.server.connect() as conn:
            pids = [
                pid
                for (pid,) in conn.execute(
                    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND client_addr IS NOT NULL ORDER BY backend_start"
                ).fetchall()
            ]
            for pid in self.random.sample(pids, min(len(pids), self.random.randrange(1, 4))):
                conn.execute("SELECT pg_terminate_backend(%s)", [pid])

    def end(self, role: str) -> None:
        """The clients of one role end by themselves."""
        ending = {client: self.running.pop(client) for client in list(self.running) if client.startswith(role)}
        for process in ending.values():
            process.stdin.close()
        for client, process in ending.items():
            assert process.wait(60) == 0, f"{client}: {self.tail(client)}"

    def left(self) -> list[str]:
        """Takes what is left in the queue: commits of which the clients cannot know the outcome."""
        query = "SELECT (payload).text FROM aq.dequeue_full(%s, NULL::aq.jms_message, max_messages => 1000, consumer => %s)"

        def empty() -> bool:
            with self.server.connect() as conn:
                found.extend(
                    text for (text,) in conn.execute(query, [self.name, "shared:ledger" if self.kind == "topic" else None]).fetchall()
                )
            return time.monotonic() > deadline

        found: list[str] = []
        deadline = time.monotonic() + 2.5  # leases of clients that were killed
        until(empty)
        return found

    def ledgers(self) -> Ledgers:
        return Ledgers.read(self.files)

    def drain(self) -> None:
        """Waits while the receivers get further: what is missing when they no longer do is a finding."""
        left, before = self.pending(), None
        while left and left != before:
            before = left
            with contextlib.suppress(pytest.fail.Exception):
                until(lambda: self.alive() and self.pending() < before, "more is received", 20)
            left = self.pending()

    def pending(self) -> int:
        return len(self.ledgers().pending(self.mode))

    def run(self, senders: int, receivers: int, seconds: float, crashes: tuple[int, ...]) -> list[str]:
        try:
            self.start_all(senders, receivers)
            self.load(seconds, crashes)
            self.end("send")
            self.drain()
            self.end("receive")
        finally:
            for process in self.running.values():
                process.kill()
                process.wait()
        left = self.left()
        found = self.ledgers()
        receipts = sum(len(receipts) for receipts in found.received.values())
        print(
            f"{self.name}: {len(found.sent)} sent, {receipts} receipts, {receipts - len(found.received)} again, {len(left)} left, {len(self.files)} processes"
        )
        # a sender that has connected again writes into another stream
        return found.findings(self.mode, receivers == 1 and not crashes, left)


def compiled(folder: Path, client: Path) -> str:
    """The class path of the provider and the client; the libraries are those that Maven has fetched."""
    try:
        path = java.class_path()
    except NoSource as error:
        pytest.skip(f"missing: {error}")
    done = subprocess.run([*java.JAVAC, "-nowarn", "-cp", path, "-d", str(folder), str(client)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return f"{folder}:{path}"


@pytest.fixture(scope="module")
def class_path(tmp_path_factory) -> str:
    return compiled(tmp_path_factory.mktemp("classes"), LEDGER_CLIENT)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server.temporary("jms_faults", tcp=True)
    made.expect_log(r"terminat|crash|was not properly shut down|signal|is not a PostgreSQL (backend|server) process")
    with made.connect() as conn:
        conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        conn.execute("CREATE EXTENSION pgaq")
        retry_at_once(conn)
    yield made
    end_server(made)


def check(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} findings\n" + "\n".join(problems[:40])


@pytest.mark.long
def test_without_faults(server: Server, class_path: str, tmp_path: Path, seed: int) -> None:
    """One receiver, so also the order. Sessions of a client commit together."""
    print(f"--seed {seed}")
    check(Clients(server, class_path, tmp_path, "transacted", "queue", 100, seed, {"send": 4, "receive": 1}).run(2, 1, 1, ()))


@pytest.mark.long
@pytest.mark.parametrize("mode, kind, prefetch, receivers", [
    ("transacted", "queue", 100, 3), ("transacted", "topic", 10, 3), ("transacted", "queue", 0, 1), ("auto", "queue", 100, 3),
    ("auto", "topic", 10, 1), ("client", "topic", 10, 3), ("client", "queue", 0, 3), ("dups", "queue", 100, 3),
])  # fmt: skip
def test_faults(server: Server, class_path: str, tmp_path: Path, seed: int, mode: str, kind: str, prefetch: int, receivers: int) -> None:
    """Nothing is lost; nothing twice in transactions; what comes again is marked as redelivered."""
    print(f"--seed {seed}")
    # they commit together
    sessions = 4 if mode == "transacted" and receivers > 1 else 1
    check(
        Clients(server, class_path, tmp_path, mode, kind, prefetch, seed, {"send": sessions, "receive": sessions}).run(
            3, receivers, SECONDS, CRASHES
        )
    )


WITHOUT_FAULTS: dict[str, list[str]] = {
    "send": ["begin a:0", "begin a:1", "sent a:0", "sent a:1", "begin a:2", "undone a:2"],
    "receive": ["got a:0 false 1", "got a:1 false 1", "committing a:0", "committing a:1", "committed a:0", "committed a:1"],
}


@pytest.mark.parametrize("file, line, with_line, finding", [
    ("send", "", "", ""),
    ("receive", "got a:0 false 1", "got a:0 true 1", "a:0: JMSRedelivered and JMSXDeliveryCount disagree"),
    ("receive", "committing a:1", "ready x", "a:1 was sent and is lost"),
    ("receive", "committed a:1", "undone a:1", "a:1 was sent and is lost"),
    ("receive", "committed a:1", "committed a:0", "a:0 was received in 2 transactions"),
    ("receive", "committed a:1", "got a:1 false 1", "a:1 came again and is not marked"),
    ("receive", "committed a:1", "got a:1 true 2", ""),
    ("receive", "committed a:1", "got a:2 false 1", "a:2 was rolled back, and received"),
    ("receive", "committed a:1", "got a:3 false 1", "a:3 was not sent"),
    ("receive", "got a:0 false 1", "got a:1 false 1", "a:1 came again"),
])  # fmt: skip
def test_the_check_notices(tmp_path: Path, file: str, line: str, with_line: str, finding: str) -> None:
    """One line of ledgers that are right is changed."""
    for name, lines in WITHOUT_FAULTS.items():
        assert file != name or not line or line in lines
        (tmp_path / name).write_text(
            "".join(f"{n} {with_line if (name, each) == (file, line) else each}\n" for n, each in enumerate(lines))
        )
    problems = Ledgers.read([tmp_path / name for name in WITHOUT_FAULTS]).findings("transacted", True)
    assert any(problem.startswith(finding) for problem in problems) if finding else not problems


def test_the_check_notices_disorder() -> None:
    assert list(inversions(["a:0", "b:0", "a:2", "a:1", "b:1"])) == [("a:2", "a:1")]
