"""bench/endure: full rate for a long time, alone or while something holds back xmin; see bench/README.md.

    bench/endure --minutes 10                full rate, until every partition was reused 20 times too
    bench/endure --minutes 10 --hold slot    the same load without, with, and again without a held xmin
    bench/endure --minutes 2 --turns 3 --hold slot    three times with, four times without
    bench/endure --minutes 10 --dump         the same with one pg_dump after the other

One queue under load from beginning to end, its clients with one ledger.  A line
per minute says what PostgreSQL itself sees of the tables; the claims at the end
are made from these lines and from the ledger, never from our own views.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pgaq import db, text
from pgaq.bench import program
from pgaq.load import holders, machine, results, tables
from pgaq.load.drivers import PGAQ, Shape
from pgaq.load.results import Claim
from pgaq.load.workload import Options, Workload
from pgaq.server import Server

STALL = 1.0  # seconds
ENOUGH = 0.9  # of the rate compared with
YOUNG = 10_000_000  # transactions
WAL_PER_SECOND = 80 << 20


@dataclass
class Line:
    """The observations at the end of one interval."""

    at: float  # seconds since the measurement began
    seconds: float  # of the interval
    held: str
    delivered: float  # per second
    enqueued: float
    slowest_enqueue: float  # seconds
    slowest_dequeue: float
    bytes: int
    tables: int
    dead: int
    dead_pg_class: int
    frozen_age: int
    xmin_age: int
    reuses: int  # of the least reused partition
    average_uses: float
    dumps: int = 0

    @property
    def slowest(self) -> float:
        return max(self.slowest_enqueue, self.slowest_dequeue)


HEAD = (
    f"{'time':>7}  {'held':<15} {'out/s':>9} {'in/s':>9} {'slowest':>9} {'on disk':>9} {'tables':>6} {'dead':>5} {'pg_class':>8} "
    f"{'frozen':>11} {'xmin':>11} {'reused':>6} {'uses':>7}"
)
LEGEND = (
    "slowest: call of a session. tables: message tables and logs. dead: tuples in them; pg_class: in it. frozen: age of their oldest relfrozenxid;\n"
    "xmin: age of the oldest one in the server, both in transactions. reused: how often the least reused partition; uses: of the average one."
)


def shown(line: Line) -> str:
    return (
        f"{clock(line.at):>7}  {line.held:<15} {line.delivered:>9,.0f} {line.enqueued:>9,.0f} {text.duration(line.slowest * 1e6):>9} "
        f"{megabytes(line.bytes):>9} {line.tables:>6} {line.dead:>5} {line.dead_pg_class:>8} {line.frozen_age:>11,} {line.xmin_age:>11,} "
        f"{line.reuses:>6} {line.average_uses:>7.1f}"
    )


def clock(seconds: float) -> str:
    return f"{int(seconds + 0.5) // 60}:{int(seconds + 0.5) % 60:02d}"


def megabytes(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MB"


class Endurance:
    """A workload, watched at intervals."""

    def __init__(self, server: Server, workload: Workload, given: argparse.Namespace) -> None:
        self.server = server
        self.workload = workload
        self.given = given
        self.lines: list[Line] = []
        self._began = self._last = 0.0
        self._counted = 0, 0

    def begin(self) -> None:
        control = self.workload.control
        self._began = self._last = time.monotonic()
        self._counted = control.delivered, control.produced
        control.slowest()

    def stretch(self, name: str, seconds: float, reuses: int = 0, most: float = 0.0) -> None:
        """Holds something for this time, and longer until every partition was reused often enough, at most `most`
        seconds."""
        with self.server.connect() as conn, holders.HOLDERS[name](self.server) as hold:
            began = time.monotonic()
            while True:
                passed = time.monotonic() - began
                waits = self.lines[-1].reuses < reuses if self.lines else True
                if passed >= seconds - 0.5 and not (waits and passed < most):
                    return
                self.workload.run_for(max(0.1, self._last + self.given.interval - time.monotonic()))
                hold.turn()
                self._look(conn, name, hold)

    def _look(self, conn: db.Connection, name: str, hold: holders.Hold) -> None:
        control = self.workload.control
        now, counted = time.monotonic(), (control.delivered, control.produced)
        seconds = now - self._last
        slowest = control.slowest()
        stored = tables.look(conn)
        line = Line(
            at=now - self._began, seconds=seconds, held=name, delivered=(counted[0] - self._counted[0]) / seconds,
            enqueued=(counted[1] - self._counted[1]) / seconds, slowest_enqueue=slowest[0] / 1e6, slowest_dequeue=slowest[1] / 1e6,
            bytes=stored.bytes, tables=stored.tables, dead=stored.dead, dead_pg_class=stored.dead_pg_class, frozen_age=stored.frozen_age,
            xmin_age=holders.oldest_xmin(conn), reuses=stored.reuses, average_uses=stored.uses, dumps=hold.dumps,
        )  # fmt: skip
        self._last, self._counted = now, counted
        self.lines.append(line)
        print(shown(line), flush=True)


# -- the arithmetic


def rate(lines: list[Line]) -> float:
    """Deliveries per second over several intervals."""
    return sum(line.delivered * line.seconds for line in lines) / sum(line.seconds for line in lines)


def turns(lines: list[Line]) -> list[float]:
    """Deliveries per second of each stretch with something held, as a part of the mean of those before and after it."""
    rates = [(held, rate(list(group))) for held, group in itertools.groupby(lines, key=lambda line: line.held)]
    shares = []
    for i, (held, among) in enumerate(rates):
        if held != "none":
            beside = [without for name, without in rates[max(i - 1, 0) : i + 2] if name == "none"]
            shares.append(among / statistics.mean(beside))
    return shares


def first_and_last(lines: list[Line], interval: float) -> tuple[float, float] | None:
    """Deliveries per second in the first and in the last complete interval; None if there are not two."""
    whole = [line for line in lines if line.seconds >= 0.9 * interval]
    return (whole[0].delivered, whole[-1].delivered) if len(whole) > 1 else None


def growth(lines: list[Line], grace: float) -> tuple[int, int] | None:
    """The most bytes on disk in the first and in the second half of what comes after twice the grace.

    What was consumed waits for the grace when xmin is held; from then on the
    disk must not fill any further.
    """
    if not lines:
        return None
    start = lines[0].at - lines[0].seconds
    settled = [line.bytes for line in lines if line.at - start >= 2 * grace]
    if len(settled) < 2:
        return None
    half = len(settled) // 2
    return max(settled[:half]), max(settled[half:])


def claims_of(lines: list[Line], given: argparse.Namespace, grace: float) -> list[Claim]:
    """The summary of the lines."""
    held = [line for line in lines if line.held != "none"]
    free = [line for line in lines if line.held == "none"]
    found = _rates(lines, held, free, given)
    dead = max(line.dead for line in lines)
    found.append(Claim("dead tuples in our tables", "0", f"{dead}", dead == 0))
    catalog = max(line.dead_pg_class for line in lines)
    made = max(line.tables for line in lines)
    found.append(Claim("dead tuples in pg_class", "at most one per table made", f"{catalog} with {made} tables", catalog <= made + 20))
    found.append(_growth(held or lines, grace))
    frozen = max(line.frozen_age - line.xmin_age for line in lines)
    found.append(Claim("relfrozenxid behind xmin", f"< {YOUNG:,}", f"{frozen:,}", frozen < YOUNG))
    found.append(_stall(held, free))
    return found


def _rates(lines: list[Line], held: list[Line], free: list[Line], given: argparse.Namespace) -> list[Claim]:
    if not held:
        pair = first_and_last(lines, given.interval)
        share = pair[1] / pair[0] if pair and pair[0] else None
        measured = f"{share:.1%} ({pair[1]:,.0f}/s after {pair[0]:,.0f}/s)" if share is not None else "-"
        enough = lines[-1].reuses
        return [
            Claim(
                f"rate of the last {given.interval:g} s, of the first",
                f">= {ENOUGH:.0%}",
                measured,
                None if share is None else share >= ENOUGH,
            ),
            Claim("reuses of the least reused partition", f">= {given.reuses}", f"{enough}", enough >= given.reuses),
        ]
    name = held[0].held
    shares = turns(lines)
    share = statistics.mean(shares)
    measured = f"{share:.1%} ({rate(held):,.0f}/s, {rate(free):,.0f}/s without)"
    if len(shares) > 1:
        measured += ": " + ", ".join(f"{each:.0%}" for each in shares)
    if name == "dump":
        # dumps take processor time of their own, so their rate proves nothing
        dumps = held[-1].dumps
        return [Claim("rate, with dumps of without", "reported", measured, None), Claim("complete dumps", ">= 1", f"{dumps}", dumps >= 1)]
    ages = [line.xmin_age for line in held]
    kept = all(
        _grows([line.xmin_age for line in group]) for what, group in itertools.groupby(lines, key=lambda line: line.held) if what != "none"
    )
    return [
        Claim("rate, held of not held", f">= {ENOUGH:.0%}", measured, share >= ENOUGH),
        Claim("xmin held all the time", "its age grows", f"{ages[0]:,} to {ages[-1]:,}", kept),
    ]


def _grows(ages: list[int]) -> bool:
    return ages[0] > 0 and all(later > earlier for earlier, later in itertools.pairwise(ages))


def _growth(lines: list[Line], grace: float) -> Claim:
    pair = growth(lines, grace)
    what, wanted = "bytes on disk, second half of first", "<= 125 % + 64 MB"
    if pair is None:
        return Claim(what, wanted, "too short", None)
    return Claim(what, wanted, f"{megabytes(pair[1])} after {megabytes(pair[0])}", pair[1] <= 1.25 * pair[0] + (64 << 20))


def _stall(held: list[Line], free: list[Line]) -> Claim:
    """A call that takes a second is one that waited for something; a machine that makes it wait without us is no proof."""
    longest = max(line.slowest for line in held or free)
    usual = max(line.slowest for line in free) if held else 0.0
    measured = text.duration(longest * 1e6) + (f" ({text.duration(usual * 1e6)} without)" if held else "")
    limit = max(STALL, 2 * usual)
    return Claim("slowest call", f"<= {text.duration(limit * 1e6)}", measured, longest <= limit)


# -- the program


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/endure", description="Full rate for a long time; see bench/README.md.")
    parser.add_argument("--minutes", type=program.above_zero, default=10)
    parser.add_argument("--reuses", type=program.at_least(0), default=20, help="go on until every partition was reused so often (20)")
    parser.add_argument("--at-most", type=program.above_zero, help="minutes; default: three times --minutes")
    parser.add_argument(
        "--hold", choices=sorted(holders.HOLDERS), default="none", metavar="WHAT",
        help="hold back xmin: idle (transaction), repeatable-read, prepared, slot, logical-slot (keeps all WAL); dump (again and again), slow-dump (one all the time)",
    )  # fmt: skip
    parser.add_argument("--dump", dest="hold", action="store_const", const="dump", help="the same as --hold dump")
    parser.add_argument(
        "--turns",
        type=program.at_least(1),
        default=1,
        help="with --hold: this many times held for --minutes, half of that without before and after each",
    )
    parser.add_argument("--interval", type=program.above_zero, default=60, help="seconds of a line (60)")
    parser.add_argument("--warm-up", type=program.at_least(0, float), default=10)
    parser.add_argument("--sessions", type=program.at_least(1), default=16, help="on each side (16)")
    parser.add_argument("--batch", type=program.at_least(1), default=10, help="messages per transaction (10)")
    parser.add_argument("--payload", type=program.at_least(program.LEAST_PAYLOAD), default=512)
    program.add_options(parser)
    given = parser.parse_args(arguments)
    if given.interval > given.minutes * 60:
        parser.error("a line (--interval) cannot be longer than the run (--minutes)")
    return given


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("endure", given, lambda: run(given))


def run(given: argparse.Namespace) -> int:
    settings = program.settings(given)
    if given.hold == "logical-slot":
        settings["wal_level"] = "logical"
    parent = program.parent(given)
    results.require_disk(parent, room(given))
    busy = machine.busy()
    about = results.about(settings, busy)
    with Server.temporary("endure", parent=parent, settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
            conn.execute("CREATE EXTENSION pgaq; CREATE EXTENSION pgstattuple")
            grace = db.value(conn, "SELECT setting::int / 1000.0 FROM pg_settings WHERE name = 'pgaq.reuse_grace'")
        print(
            f"{os.cpu_count()} CPUs, {busy:.2f} busy before; {about['server'].split(' on ')[0]}; {given.sessions}+{given.sessions} sessions, "
            f"{given.batch} messages of {given.payload} bytes per transaction, fsync on\n{LEGEND}\n\n{HEAD}"
        )
        shape = Shape(batch=given.batch, sessions=given.sessions, payload=given.payload)
        with Workload(server, PGAQ, shape, queue="endure", directory=server.directory / "load") as workload:
            endurance, claims, content = endure(server, workload, given, float(grace))
        problems = server.problems()
    claims.append(Claim("server log", "nothing unexpected", f"{len(problems)} lines", not problems))
    name = "endure" if given.hold == "none" else f"endure-{given.hold}"
    content = {**about, "options": {k: v for k, v in vars(given).items() if not isinstance(v, Path)}, **content}
    print()
    return program.conclude(name, content, claims, problems, given)


def room(given: argparse.Namespace) -> int:
    """Bytes of disk that the run may need: WAL, of which max_wal_size is kept unless a slot wants more; tables and ledgers."""
    seconds = 60 * given.minutes * (1 if given.hold == "none" else 0.5 + 1.5 * given.turns)
    wal = int(seconds * WAL_PER_SECOND)
    return (wal if given.hold == "logical-slot" else min(wal, 16 << 30)) + (4 << 30)


def endure(server: Server, workload: Workload, given: argparse.Namespace, grace: float) -> tuple[Endurance, list[Claim], dict[str, Any]]:
    """The load from beginning to end, and what came of it."""
    endurance = Endurance(server, workload, given)
    seconds = given.minutes * 60
    workload.setup()
    workload.start()
    workload.run_for(given.warm_up)
    workload.begin_measure()
    endurance.begin()
    if given.hold == "none":
        endurance.stretch("none", seconds, given.reuses, (given.at_most or 3 * given.minutes) * 60)
    else:
        # before and after, so that a drift of the machine counts on both sides
        endurance.stretch("none", seconds / 2)
        for _ in range(given.turns):
            endurance.stretch(given.hold, seconds)
            endurance.stretch("none", seconds / 2)
    workload.end_measure()
    drained = workload.drain(300)
    workload.stop(300)  # the ledgers go to disk now
    print("\nreading the ledgers ...", flush=True)
    report = workload.check()
    metrics = workload.metrics()
    bad = sum(report.counts.values())
    judged = [
        Claim(
            "every message exactly once, in order, every byte",
            "no violation",
            f"{report.deliveries:,} deliveries, {bad} violations",
            report.ok and report.deliveries > 0,
        ),
        Claim("drained at the end", "all", "all" if drained else "not all", drained),
        *claims_of(endurance.lines, given, grace),
    ]
    print(f"{report}\n{metrics.delivered:,.0f} deliveries/s over {clock(metrics.seconds)}, median line {statistics.median(l.delivered for l in endurance.lines):,.0f}/s, "
          f"{metrics.cpu_us_per_message:.1f} us of the server's CPU and {metrics.wal_per_message:,.0f} bytes of WAL per message")  # fmt: skip
    said = workload.said()
    if said:
        print(said[:2000])
    content = {"lines": [asdict(line) for line in endurance.lines], "metrics": asdict(metrics), "ledger": str(report), "said": said[:1000]}
    return endurance, judged, content


if __name__ == "__main__":
    program.leave(main)
