"""bench/backlog: millions of messages, a restart, ten subscribers at ten places; see bench/README.md.

    bench/backlog --messages 5000000

A topic gets a backlog that exceeds the message cache at least ten times; its
subscribers take different shares of it; the server is stopped and started; then
everybody takes the rest at full speed.  Whatever is counted is counted from the
clients' ledgers: what each subscriber must still get, and that it got it once
and in order.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pgaq import db, text
from pgaq.bench import program
from pgaq.bench.endure import clock, megabytes
from pgaq.load import ledger, machine, payload, results, tables
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import LoadError, Options, Workload
from pgaq.server import Server

QUEUE = "backlog"
SLOT_BYTES = 32  # of the message cache, for a message
PAIR_BITS = 2  # and for a message and a consumer
LEAST_CACHE = 4 << 20
USABLE = 10.0  # seconds
ENOUGH = 0.9  # of the rate from memory
SESSION_MEMORY = 64 << 20


def needed_cache(messages: int, subscribers: int) -> int:
    """Bytes of message cache with which all of the backlog would be resident."""
    return messages * SLOT_BYTES + messages * subscribers * PAIR_BITS // 8


def quotas(messages: int, subscribers: list[str]) -> dict[str, int]:
    """The share of messages that each subscriber takes before the restart: nothing, a tenth, two tenths, ..."""
    shares = {name: messages * i // len(subscribers) for i, name in enumerate(subscribers)}
    return {name: share for name, share in shares.items() if share > 0}


@dataclass
class Subscriber:
    """One of the ten, and what came of it."""

    name: str
    taken: int = 0  # before the restart, and by the first dequeue after it
    due: int = 0  # messages it must still get, by the ledger
    lag: int | None = None  # what aq.subscribers says
    first_dequeue: float = 0.0  # seconds of its first dequeue after the restart


@dataclass
class Memory:
    """The resources that the server's processes use."""

    shared: int  # allocated by pgaq at server start
    cache_used: int
    cache_total: int
    resident: int  # partitions
    partitions: int
    largest: int  # private memory of one process
    largest_is: str

    @classmethod
    def look(cls, server: Server, conn: db.Connection) -> "Memory":
        shared = db.value(conn, "SELECT sum(allocated_size)::bigint FROM pg_shmem_allocations WHERE name ILIKE 'pgaq%'") or 0
        cache = db.row(conn, "SELECT * FROM aq.message_cache") or {}
        kinds = dict(conn.execute("SELECT pid, backend_type FROM pg_stat_activity").fetchall())
        sizes = [(machine.private_memory(pid), kinds.get(pid, "")) for pid in server.child_pids()]
        largest, kind = max(sizes, default=(0, ""))
        return cls(
            shared, cache["used_bytes"], cache["total_bytes"], cache["resident_partitions"], cache["known_partitions"], largest, kind
        )


class Backlog:
    """The run, step by step; each step says what it does and how it went."""

    def __init__(self, server: Server, workload: Workload, given: argparse.Namespace) -> None:
        self.server = server
        self.workload = workload
        self.given = given
        self.shape = workload.shape
        self.subscribers = {name: Subscriber(name) for name in self.shape.consumers}
        self.stored = 0
        self.claims: list[Claim] = []
        self.facts: dict[str, Any] = {}
        self.lines: list[dict[str, Any]] = []
        self.memory: list[Memory] = []

    def say(self, what: str) -> None:
        print(what, flush=True)

    def claim(self, what: str, wanted: str, measured: str, ok: bool) -> None:
        self.claims.append(Claim(what, wanted, measured, ok))

    def look(self) -> Memory:
        with self.server.connect() as conn:
            self.memory.append(Memory.look(self.server, conn))
        return self.memory[-1]

    def waits(self) -> str:
        """The extension's own, since the server started."""
        query = """SELECT event, waits, total_us FROM aq.waits
            WHERE wait_class <> 'Idle' ORDER BY total_us DESC LIMIT 5"""
        with self.server.connect() as conn:
            rows = [[event, text.number(number), text.duration(float(micro))] for event, number, micro in conn.execute(query)]
        return text.table(["waits of the extension", "waits", "time"], rows)

    # -- before the restart

    def fill(self, messages: int) -> float:
        """Enqueues without consumers; returns messages per second."""
        work = self.workload
        work.shape = replace(self.shape, batch=self.given.fill_batch, sessions=16)
        work.options = Options(consumer_sessions=0, messages=messages, backlog=0, seed=work.options.seed + 1)
        work.start()
        began = time.monotonic()
        work.until(lambda: work.control.quiet >= work.producers, 3600, "the backlog was not filled within an hour")
        seconds = time.monotonic() - began
        work.stop(300)
        self.stored += sum(result["messages"] for result in work.results)
        work.shape = self.shape
        for one in self.subscribers.values():
            one.due = self.stored - one.taken
        return messages / seconds

    def take(self, shares: dict[str, int]) -> float:
        """Lets these subscribers take about this many messages; returns deliveries per second of the first nine tenths,
        because some subscribers finish earlier."""
        work = self.workload
        sessions = self.given.sessions * len(shares)
        work.options = Options(producer_sessions=0, consumer_sessions=sessions, quotas=shares, seed=work.options.seed + 1)
        work.start()
        began = time.monotonic()
        wanted = sum(min(share, self.subscribers[name].due) for name, share in shares.items())
        self._watch(wanted * 9 // 10, wanted)
        seconds = time.monotonic() - began
        self._watch(wanted, wanted)
        work.stop(300)
        for name, result in zip(shares, work.results):
            one = self.subscribers[name]
            one.taken += result["messages"]
            one.due = self.stored - one.taken
        return wanted * 9 // 10 / seconds

    def _watch(self, until: int, wanted: int) -> None:
        """Yields a line every interval until this many of the wanted messages were delivered; fails when no more
        arrive."""
        work, control = self.workload, self.workload.control
        last_at = last_look = time.monotonic()
        last = looked = control.delivered
        while control.delivered < until:
            work.run_for(0.1)
            now, delivered = time.monotonic(), control.delivered
            if delivered > last:
                last, last_at = delivered, now
            if now - last_look >= self.given.interval:
                memory = self.look()
                rate = (delivered - looked) / (now - last_look)
                last_look, looked = now, delivered
                self.lines.append({"delivered": delivered, "rate": rate, **asdict(memory)})
                self.say(
                    f"  {rate:>9,.0f}/s  {wanted - delivered:>12,} to go  cache {megabytes(memory.cache_used)} of {megabytes(memory.cache_total)}, "
                    f"{memory.resident} of {memory.partitions} partitions; largest process {megabytes(memory.largest)} ({memory.largest_is})"
                )
            if now - last_at > 60:
                raise LoadError(f"nothing was delivered for 60 s, {wanted - delivered:,} messages are missing")

    # -- the restart

    def restart(self) -> None:
        given, server = self.given, self.server
        began = time.monotonic()
        if given.kill:
            server.expect_log("terminat|crash")
            server.kill()
        else:
            server.stop("fast")
        stopped = time.monotonic()
        server.start()
        ready = time.monotonic()
        self.facts.update(stop_seconds=stopped - began, start_seconds=ready - stopped)
        for one in self.subscribers.values():
            at = time.monotonic()
            self._first_dequeue(one)
            one.first_dequeue = time.monotonic() - at
            if "usable_seconds" not in self.facts:
                self.facts["usable_seconds"] = time.monotonic() - stopped
        everybody = time.monotonic() - stopped
        self.facts["all_usable_seconds"] = everybody
        usable = self.facts["usable_seconds"]
        how = "killed" if given.kill else f"stopped in {stopped - began:.1f} s"
        self.say(
            f"{how}, started in {ready - stopped:.2f} s; first dequeue {usable:.2f} s after the start began, by all subscribers {everybody:.2f} s"
        )
        self.claim("first dequeue after the restart", f"within {USABLE:g} s", f"{usable:.2f} s", usable <= USABLE)
        self.claim("first dequeue of every subscriber", f"within {USABLE:g} s", f"{everybody:.2f} s", everybody <= USABLE)
        self._await_lags(stopped)

    def _first_dequeue(self, one: Subscriber) -> None:
        """Acts like an ordinary client, with its own ledger."""
        book = ledger.Writer(self.workload.ledger_dir, "consumer", 0, consumer=one.name)
        with self.server.connect(autocommit=False) as conn:
            found = db.rows(conn, "SELECT payload FROM aq.dequeue(%s, null::text, consumer => %s, max_messages => 10)", [QUEUE, one.name])
            for row in found:
                sent = payload.read(row["payload"], self.shape.payload)
                if sent is None:
                    book.bad_payload()
                else:
                    book.delivered(sent.session, sent.number)
            conn.commit()
            book.outcome("C")
        book.close()
        one.taken += len(found)
        one.due = self.stored - one.taken

    def _await_lags(self, since: float) -> None:
        """aq.subscribers must come to agree with the ledger."""
        deadline = time.monotonic() + 600
        with self.server.connect() as conn:
            while time.monotonic() < deadline:
                lags = dict(conn.execute("SELECT consumer, lag FROM aq.subscribers WHERE queue_name = %s", [QUEUE]).fetchall())
                for one in self.subscribers.values():
                    one.lag = lags.get(one.name)
                if all(one.lag == one.due for one in self.subscribers.values()):
                    break
                time.sleep(0.1)
        seconds = time.monotonic() - since
        wrong = [one for one in self.subscribers.values() if one.lag != one.due]
        self.facts["lag_seconds"] = seconds
        self.say("\n" + self.places())
        measured = (
            f"exact after {seconds:.1f} s"
            if not wrong
            else ", ".join(f"{one.name}: {one.lag:,} instead of {one.due:,}" for one in wrong[:3])
        )
        self.claim("lag of every subscriber", "as the ledger says", measured, not wrong)

    def places(self) -> str:
        rows = [
            [one.name, text.number(one.taken), text.number(one.due), text.number(one.lag), text.duration(one.first_dequeue * 1e6)]
            for one in self.subscribers.values()
        ]
        return text.table(["subscriber", "has taken", "due (ledger)", "lag (view)", "first dequeue"], rows)

    # -- after it

    def await_space(self) -> None:
        """The space of consumed messages is reused."""
        grace = float(self.facts["reuse_grace"])
        began = time.monotonic()
        most = 64 << 20
        with self.server.connect() as conn:
            before = tables.size(conn)[0]
            while (left := tables.size(conn)[0]) > most and time.monotonic() - began < 60 + 2 * grace:
                time.sleep(0.2)
        self.facts["bytes_left"] = left
        self.claim(
            "space given back",
            f"<= {megabytes(most)}",
            f"{megabytes(left)} of {megabytes(before)} after {time.monotonic() - began:.0f} s",
            left <= most,
        )

    def judge_memory(self, cache: int, need: int) -> None:
        shared = {memory.shared for memory in self.memory}
        over = [memory for memory in self.memory if memory.cache_used > memory.cache_total]
        largest = max(self.memory, key=lambda memory: memory.largest)
        self.claim("backlog to message cache", ">= 10", f"{need / cache:.1f} ({megabytes(need)} to {megabytes(cache)})", need >= 10 * cache)
        self.claim(
            "shared memory of pgaq",
            "one size all the time",
            " ".join(megabytes(size) for size in sorted(shared)),
            len(shared) == 1 and 0 not in shared,
        )
        used = max(memory.cache_used for memory in self.memory)
        self.claim("message cache in use", f"<= {megabytes(cache)}", megabytes(used), not over and used <= cache + (1 << 20))
        self.claim(
            "private memory of a process", f"<= {megabytes(SESSION_MEMORY)}", f"{megabytes(largest.largest)} ({largest.largest_is})",
            largest.largest <= SESSION_MEMORY,
        )  # fmt: skip


# -- the program


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/backlog", description="Millions of messages, a restart, ten subscribers at ten places; see bench/README.md."
    )
    parser.add_argument("--messages", type=program.at_least(1000), default=5_000_000)
    parser.add_argument("--subscribers", type=program.at_least(1), default=10)
    parser.add_argument("--cache", help="pgaq.message_cache_size (default: a tenth of what the backlog would need)")
    parser.add_argument("--kill", action="store_true", help="kill -9 of the whole server instead of a stop")
    parser.add_argument("--sessions", type=program.at_least(1), default=2, help="of each subscriber (2)")
    parser.add_argument("--batch", type=program.at_least(1), default=10, help="messages of a dequeue (10)")
    parser.add_argument("--fill-batch", type=program.at_least(1), default=100, help="messages of an enqueue (100)")
    parser.add_argument("--payload", type=program.at_least(program.LEAST_PAYLOAD), default=512)
    parser.add_argument("--interval", type=program.above_zero, default=10, help="seconds of a line (10)")
    program.add_options(parser)
    given = parser.parse_args(arguments)
    if given.subscribers > 100:
        parser.error("--subscribers must be at most 100")
    return given


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("backlog", given, lambda: run(given))


def run(given: argparse.Namespace) -> int:
    need = needed_cache(given.messages, given.subscribers)
    cache = given.cache or f"{max(LEAST_CACHE, need // 10) >> 10}kB"
    settings = program.settings(given, **{"pgaq.message_cache_size": cache})
    parent = program.parent(given)
    # the tables, the WAL of filling and of taking, the ledgers
    results.require_disk(parent, given.messages * (2 * (given.payload + 200) + 200 * given.subscribers) + (4 << 30))
    busy = machine.busy()
    about = results.about(settings, busy)
    shape = Shape(kind="topic", subscribers=given.subscribers, batch=given.batch, payload=given.payload)
    with Server.temporary("backlog", parent=parent, settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
        print(
            f"{os.cpu_count()} CPUs, {busy:.2f} busy before; {about['server'].split(' on ')[0]}; {given.messages:,} messages of {given.payload} bytes, "
            f"{given.subscribers} subscribers, {given.sessions} sessions each; message cache {cache}, all would need {megabytes(need)}"
        )
        with Workload(server, PGAQ, shape, queue=QUEUE, directory=server.directory / "load") as workload:
            backlog = Backlog(server, workload, given)
            carry_out(backlog, need)
        problems = server.problems()
    backlog.claim("server log", "nothing unexpected", f"{len(problems)} lines", not problems)
    content = {
        **about, "options": {k: v for k, v in vars(given).items() if not isinstance(v, Path)}, **backlog.facts,
        "subscribers": [asdict(one) for one in backlog.subscribers.values()], "lines": backlog.lines,
    }  # fmt: skip
    print()
    return program.conclude("backlog", content, backlog.claims, problems, given)


def carry_out(backlog: Backlog, need: int) -> None:
    """All steps in order."""
    given, facts, names = backlog.given, backlog.facts, list(backlog.subscribers)
    backlog.workload.setup()
    with backlog.server.connect() as conn:
        facts["reuse_grace"] = float(db.value(conn, "SELECT setting::int / 1000.0 FROM pg_settings WHERE name = 'pgaq.reuse_grace'"))
    memory = backlog.look()

    resident = max(1000, min(given.messages // 10, memory.cache_total // 3 // (need // given.messages)))
    backlog.say(f"\nfor comparison: {resident:,} messages, which the cache holds, to all subscribers")
    backlog.fill(resident)
    facts["rate_from_memory"] = backlog.take({name: resident * 2 for name in names})
    backlog.say(f"  {facts['rate_from_memory']:,.0f} deliveries/s")

    backlog.say(f"\nfilling: {given.messages:,} messages")
    facts["fill_rate"] = backlog.fill(given.messages)
    backlog.say(f"  {facts['fill_rate']:,.0f} messages/s; the tables have {megabytes(_size(backlog.server))}")

    backlog.say("\nputting the subscribers to different places")
    facts["places_rate"] = backlog.take(quotas(given.messages, names))
    backlog.say(f"  {facts['places_rate']:,.0f} deliveries/s")

    backlog.say("\nrestarting")
    backlog.restart()

    # as many for each: as long as all are at it, the rate is theirs
    least = min(one.due for one in backlog.subscribers.values())
    backlog.say(f"\n{least:,} messages to each subscriber at its place")
    facts["drain_rate"] = backlog.take({name: least for name in names})
    share = facts["drain_rate"] / facts["rate_from_memory"]
    backlog.say(f"  {facts['drain_rate']:,.0f} deliveries/s\n{backlog.waits()}")
    backlog.say(f"\ntaking the rest: {sum(one.due for one in backlog.subscribers.values()):,} deliveries")
    facts["rest_rate"] = backlog.take({name: given.messages * 2 for name in names})
    backlog.say(f"  {facts['rest_rate']:,.0f} deliveries/s")
    backlog.claim(
        "rate of the drain, of that from memory", f">= {ENOUGH:.0%}",
        f"{share:.0%} ({facts['drain_rate']:,.0f}/s, {facts['rate_from_memory']:,.0f}/s from memory)", share >= ENOUGH,
    )  # fmt: skip
    backlog.look()
    backlog.await_space()
    backlog.judge_memory(memory.cache_total, need)

    backlog.say("\nreading the ledgers ...")
    report = backlog.workload.check()
    facts["ledger"] = str(report)
    backlog.say(str(report))
    wanted = backlog.stored * len(names)
    backlog.claim(
        "every message once to every subscriber, in order", f"{wanted:,}", f"{report.deliveries:,}, {sum(report.counts.values())} violations",
        report.ok and report.deliveries == wanted,
    )  # fmt: skip


def _size(server: Server) -> int:
    with server.connect() as conn:
        return tables.size(conn)[0]


if __name__ == "__main__":
    program.leave(main)
