"""Runs of load and faults, each checked against the ledger.

    python3 -m pgaq_proof.stress --runs 200 --seed 1
    python3 -m pgaq_proof.stress --fault kill_backend --kind topic --seconds 10

Every run prints its seed; the same seed chooses the same shape, options, kinds
and times of faults (what the scheduler of the machine makes of it differs).
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgaq import db, places
from pgaq.load import ledger
from pgaq.load.drivers import DRIVERS, Driver, Shape
from pgaq.load.workload import DRAIN, Options, Workload
from pgaq.server import Server
from pgaq_proof import faults


@dataclass
class Plan:
    """One run, chosen from its seed."""

    seed: int
    shape: Shape
    options: Options
    faults: list[str]
    pauses: list[float]
    kill_clients: bool = False


@dataclass
class Outcome:
    """The result of a run."""

    plan: Plan
    report: ledger.Report
    drained: bool
    seconds: float
    reconnects: int
    log: list[str] = field(default_factory=list)  # unexpected lines, and what aq.check() says
    said: str = ""

    @property
    def ok(self) -> bool:
        return self.report.ok and self.drained and not self.log


def choose(seed: int, *, kind: str | None = None, fault: str | None = None, seconds: float = 4, driver: Driver = DRIVERS["pgaq"]) -> Plan:
    """A plan from a seed; what is given is not left to chance."""
    rng = random.Random(seed)
    names = sorted(faults.FAULTS)
    shape = Shape(
        kind=kind or rng.choice(["queue", "queue", "topic"]),
        batch=rng.choice([1, 3, 10, 10, 50]),
        sessions=rng.choice([1, 4, 8]),
        subscribers=rng.choice([2, 5]),
        single=rng.random() < 0.2,
        payload=rng.choice([60, 512, 512, 3000]),
    )
    if driver.failed:
        shape = dataclasses.replace(shape, **_options_of_queues(random.Random(seed + 1), shape.kind))
    number = rng.choice([1, 2, 3])
    cuts = sorted(rng.uniform(0.1, seconds) for _ in range(number))
    strikes = [fault or rng.choice(names) for _ in range(number)]
    if driver.convert and not fault and random.Random(seed + 2).random() < 0.5:
        strikes.insert(random.Random(seed + 3).randrange(number), "convert")
        del strikes[number:]
    return Plan(
        seed=seed,
        shape=shape,
        options=Options(
            fsync="each", explicit=True, reconnect=True, rollback=rng.choice([0, 5, 20]), savepoint=rng.choice([0, 10]),
            prepare=rng.choice([0, 0, 10]), backlog=rng.choice([500, 5000, 50000]), seed=seed, processes=rng.choice([1, 2]),
            leasers=random.Random(seed + 4).choice([0, 0, 2, 4]),
        ),
        faults=strikes,
        pauses=[b - a for a, b in zip([0.0, *cuts], cuts)] + [seconds - cuts[-1]],
        kill_clients=rng.random() < 0.2,
    )  # fmt: skip


def _options_of_queues(rng: random.Random, kind: str) -> dict[str, Any]:
    """Features of pgaq's queues that other contestants lack."""
    given: dict[str, Any] = {"priorities": rng.random() < 0.25, "delay_ms": rng.choice([0, 0, 0, 300])}
    given["retry_delay_ms"] = rng.choice([0, 0, 50, 300])
    if kind == "queue":  # for a topic's message it is not known which consumer's copy came to the exception queue
        given["max_retries"] = rng.choice([None, None, 0, 1, 2])
        given["expiration_ms"] = rng.choice([0, 0, 0, 200, 2000])
    given["buffered"] = rng.random() < 0.25
    return given


def carry_out(server: Server, driver: Driver, plan: Plan, keep: Path | None = None) -> Outcome:
    """One run on a running server; the ledger is kept in `keep` if it fails."""
    rng = random.Random(plan.seed)
    began = time.monotonic()
    before = len(server.problems())
    with Workload(server, driver, plan.shape, plan.options, queue=f"stress_{plan.seed}") as workload:
        workload.setup()
        workload.start()
        said = ""
        reconnects = 0
        for pause, name in zip(plan.pauses, [*plan.faults, None]):
            workload.run_for(pause)
            if name:
                _strike(server, workload, name, rng)
        if plan.kill_clients:
            # all clients are killed in the middle of their work; new ones finish the rest and continue
            reconnects += workload.control.reconnects
            said += workload.said()
            workload.kill_clients()
            faults.wait_until_up(server)
            faults.await_end_of_sessions(server)
            workload.start()
            workload.run_for(0.5)
        drained = _drain(server, workload, rng, doubts=plan.kill_clients)
        reconnects += workload.control.reconnects
        workload.stop()
        said += workload.said()
        report = _verdict(server, workload)
        log = server.problems()[before:]
        if driver.preload:
            faults.await_end_of_sessions(server)
            log += faults.differences(server)
        outcome = Outcome(plan, report, drained, time.monotonic() - began, reconnects, log, said)
        if outcome.ok:
            workload.teardown()
        elif keep is not None:
            target = keep / f"seed-{plan.seed}"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(workload.directory, target)
            print(f"  ledger kept in {target}")
        return outcome


def _verdict(server: Server, workload: Workload) -> ledger.Report:
    """The ledger's. Some seconds may pass before a worker has moved what was given up, and noted that a crash has lost something."""
    deadline = time.monotonic() + 30
    while True:
        if workload.shape.gives_up:
            workload.take_failed()
        lossy = workload.shape.buffered and _losses(server, workload.queue) > 0
        report = workload.check(lossy=lossy)
        later = workload.shape.gives_up or workload.shape.buffered
        if report.ok or not later or set(report.counts) != {"lost"} or time.monotonic() > deadline:
            return report
        time.sleep(0.2)


def _losses(server: Server, queue: str) -> int:
    with server.connect() as conn:
        return db.value(conn, "SELECT coalesce(max(losses), 0) FROM aq.buffered_queues WHERE queue_name = %s", [queue])


def _strike(server: Server, workload: Workload, name: str, rng: random.Random) -> None:
    if name == "convert":
        with server.connect() as conn:
            db.execute(conn, workload.driver.convert, [workload.queue])
    elif name.startswith("point:"):
        faults.arm(server, name[6:], "crash", rng.randrange(50))
        # the load reaches the point sooner or later; if not, that is no failure
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            time.sleep(0.05)
            try:
                server.connect(connect_timeout="2").close()
            except db.OperationalError:
                break
    else:
        faults.FAULTS[name](server, rng)
    faults.wait_until_up(server)


def _rest(server: Server, workload: Workload) -> int:
    """Messages that consumers will get, or the exception queue, when their time has come or the worker to it."""
    if not workload.driver.failed:
        return 0
    with server.connect() as conn:
        return db.value(
            conn,
            "SELECT (SELECT coalesce(sum(lag), 0) FROM aq.subscribers WHERE queue_name = %s)::bigint"
            " + (SELECT coalesce(sum(messages), 0) FROM aq.buffered_queues WHERE queue_name = %s)::bigint",
            [workload.queue, workload.queue],
        )


def _drain(server: Server, workload: Workload, rng: random.Random, *, doubts: bool) -> bool:
    """Stop producing, finish what is prepared, and let the consumers take the rest."""
    faults.wait_until_up(server)
    workload.end_leases()
    control = workload.control
    control.set_phase(DRAIN)
    deadline = time.monotonic() + 120
    last, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        workload._check_clients()
        left = faults.finish_prepared(server, 1.0, rng)
        now = time.monotonic()
        if control.delivered != last:
            last, since = control.delivered, now
        settled = control.quiet >= workload.producers and control.idle >= workload.consumers and left == 0
        exact = not doubts and control.unknown == 0 and control.delivered == control.produced * workload.shape.fan_out
        if settled and (exact or (now - since > 2.5 and not _rest(server, workload))):
            return True
        time.sleep(0.1)
    return False


def line(outcome: Outcome) -> str:
    """One run in one line."""
    plan = outcome.plan
    options = plan.options
    marks = "".join(
        letter
        for letter, on in (
            ("r", options.rollback), ("s", options.savepoint), ("2", options.prepare), ("p", plan.shape.priorities),
            ("d", plan.shape.delay_ms), ("w", plan.shape.retry_delay_ms), ("m", plan.shape.max_retries is not None),
            ("e", plan.shape.expiration_ms), ("b", plan.shape.buffered), ("k", plan.kill_clients),
            ("l", options.leasers and outcome.report.leases),
        )
        if on
    )  # fmt: skip
    return (
        f"{plan.seed:>6}  {plan.shape.name:<22} {marks:<8} {'+'.join(plan.faults):<48.48} "
        f"{outcome.report.committed:>9,} {outcome.report.deliveries:>9,} {outcome.report.in_doubt:>6,} {outcome.report.late:>6,} "
        f"{outcome.seconds:>5.1f}s  {'ok' if outcome.ok else 'FAILED'}"
    )


def _explain(outcome: Outcome) -> None:
    """The failures, indented."""
    if not outcome.drained:
        print("  the queue was not drained")
    print("  " + str(outcome.report).replace("\n", "\n  "))
    errors = [text for text in outcome.said.splitlines() if "ERROR" in text]
    for text in [*outcome.log[:10], *errors[:10]]:
        print(f"  {text}")


HEAD = f"{'seed':>6}  {'shape':<22} {'opt':<8} {'faults':<48} {'committed':>9} {'delivered':>9} {'doubt':>6} {'late':>6} {'time':>6}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pgaq_proof.stress", description="Load, faults, and the ledger's verdict.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the first run; default: from the clock")
    parser.add_argument("--seconds", type=float, default=4, help="of load in a run")
    parser.add_argument("--driver", choices=sorted(DRIVERS), default="pgaq")
    parser.add_argument("--kind", choices=["queue", "topic"])
    parser.add_argument("--fault", help=f"one of {', '.join(sorted(faults.FAULTS))}, or point:NAME (TEST_POINTS builds)")
    parser.add_argument("--points", action="store_true", help="every named test point in turn")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "pgaq-stress", help="where ledgers of failures go")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a server setting")
    given = parser.parse_args(arguments)
    places.clean_up_when_terminated()
    driver = DRIVERS[given.driver]
    settings: dict[str, object] = {"fsync": "on", **dict(item.split("=", 1) for item in given.set)}
    if not driver.preload:
        settings["shared_preload_libraries"] = ""
    points = faults.test_points() if given.points else []
    first = given.seed if given.seed is not None else int(time.time()) % 1_000_000
    failed = 0
    print(HEAD)
    with Server.temporary("stress", settings=settings) as server:
        server.expect_log("WARNING:  there is (already a|no) transaction in progress")
        server.expect_log("WARNING:  buffered messages of queue .* may have been lost")
        for number in range(given.runs):
            fault = f"point:{points[number % len(points)]}" if points else given.fault
            plan = choose(first + number, kind=given.kind, fault=fault, seconds=given.seconds, driver=driver)
            outcome = carry_out(server, driver, plan, given.keep)
            print(line(outcome), flush=True)
            if not outcome.ok:
                failed += 1
                _explain(outcome)
        if failed:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(server.log, given.keep / "server.log")
    print(f"{given.runs - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
