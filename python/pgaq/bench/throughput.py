"""bench/run: ours, PgQ, a SKIP LOCKED table and a yardstick in one run, on one server; see bench/README.md."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pgaq import db, text
from pgaq.bench import program
from pgaq.load import machine, results
from pgaq.load.drivers import DRIVERS, Driver, Shape
from pgaq.load.workload import LoadError, Options, Workload
from pgaq.server import Server

# The project's goals: shape without sessions -> (metric, at least or at most).
WANTED: list[tuple[str, str, str, float]] = [
    ("queue-1x", "delivered", ">=", 15_000),
    ("queue-10x", "delivered", ">=", 90_000),
    ("queue-100x", "delivered", ">=", 200_000),
    ("topic10-10x", "delivered", ">=", 120_000),
    ("queue-1x4-2000ps", "p50", "<=", 500),
    ("queue-1x4-2000ps", "p99", "<=", 3_000),
    ("queue-10x", "wal_per_message", "<=", 750),
]


def shapes(long: bool) -> list[Shape]:
    """The measured workloads."""
    sessions = [4, 16, 64] if long else [4, 16]
    # small transactions profit from shared WAL flushes, so every form is measured with many sessions
    found = [Shape(batch=batch, sessions=n) for batch in (10, 100, 1) for n in (sessions if batch == 100 else [4, 16, 64])]
    found += [Shape(kind="topic", sessions=n) for n in sessions]
    found += [Shape(single=True, sessions=n) for n in ([4, 16, 64] if long else [16])]
    # consumers that take more per transaction than the producers put
    found.append(Shape(batch=1, sessions=16, take=100, consumer_sessions=2))
    found.append(Shape(kind="topic", sessions=16, take=100))
    found.append(Shape(batch=1, sessions=4, rate=2000))
    return found


def suits(driver: Driver, shape: Shape) -> bool:
    """Can the contestant play this shape? The yardstick delivers nothing, so it has no topics and no latency."""
    return not (driver.yardstick and (shape.kind == "topic" or shape.rate))


class Bench:
    """One benchmark: a server, contestants, rounds."""

    def __init__(self, server: Server, contestants: list[Driver], given: argparse.Namespace) -> None:
        self.server = server
        self.contestants = contestants
        self.given = given
        self.rounds: dict[str, dict[str, list[dict[str, Any]]]] = {}

    def play(self, shape: Shape, progress: text.Progress, done: int, total: int) -> None:
        """All rounds of one shape, the contestants taking turns."""
        contestants = [driver for driver in self.contestants if suits(driver, shape)]
        mine = self.rounds[shape.name] = {driver.name: [] for driver in contestants}
        for number in range(self.given.rounds):
            # the order changes too, so that no contestant always follows the same one
            at = number % len(contestants) if contestants else 0
            for driver in contestants[at:] + contestants[:at]:
                progress.show(f"{shape.name} round {number + 1} {driver.title}", f"run {done + 1} of {total}")
                mine[driver.name].append(self.once(driver, shape))
                done += 1

    def measure(self, shape: Shape) -> dict[str, list[dict[str, Any]]]:
        """All rounds of one shape, by contestant; an error if messages were lost or doubled."""
        turns = len(self.contestants) * self.given.rounds
        self.play(shape, text.Progress(turns * (self.given.seconds + self.given.warm_up + 1.5)), 0, turns)
        found = self.rounds[shape.name]
        wrong = [f"{name}: {r['checked']} {r.get('said', '')}" for name, rounds in found.items() for r in rounds if r["checked"] != "ok"]
        if wrong:
            raise LoadError(f"the ledger is wrong: {', '.join(wrong)}")
        return found

    def once(self, driver: Driver, shape: Shape) -> dict[str, Any]:
        """One measured period of one contestant."""
        given = self.given
        with self.server.connect() as conn:
            db.execute(conn, "CHECKPOINT")
        options = Options(binary=not given.text, processes=given.processes, backlog=given.backlog)
        with Workload(self.server, driver, shape, options, queue="bench") as workload:
            metrics, drained = workload.play(given.warm_up, given.seconds, drain=120)
            report = None if driver.yardstick else workload.check()
            said = workload.said()
            workload.teardown()
        result = asdict(metrics)
        if report is not None:
            result["checked"] = "ok" if report.ok and drained else "not drained" if report.ok else str(report)
            result["messages"] = report.committed
        if said:
            result["said"] = said[:1000]
        return result


def middle(rounds: list[dict[str, Any]], name: str) -> float | None:
    """Median over the rounds."""
    values = [r[name] for r in rounds if r[name] is not None]
    return statistics.median(values) if values else None


def rows_of(shape_name: str, contestants: list[Driver], rounds: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """The table's rows of one shape."""
    ours = middle(rounds["pgaq"], "delivered") if "pgaq" in rounds else None
    rows = []
    for i, driver in enumerate(driver for driver in contestants if driver.name in rounds):
        mine = rounds[driver.name]
        out = middle(mine, "delivered")
        ratio = f"{ours / out:.2f}" if ours and out else "-"
        checked = "-" if driver.yardstick else "ok" if all(r["checked"] == "ok" for r in mine) else "FAILED"
        spread = f"{min(r['delivered'] for r in mine):,.0f}-{max(r['delivered'] for r in mine):,.0f}" if len(mine) > 1 else ""
        rows.append(
            [
                shape_name if i == 0 else "", driver.title, text.number(middle(mine, "enqueued")), text.number(out), ratio, spread,
                text.duration(middle(mine, "p50")), text.duration(middle(mine, "p99")), f"{middle(mine, 'server_cpu'):.2f}",
                f"{middle(mine, 'client_cpu'):.2f}", f"{middle(mine, 'other_cpu'):.2f}", f"{middle(mine, 'stolen_cpu'):.2f}",
                text.number(middle(mine, "cpu_us_per_message"), 1), text.number(middle(mine, "wal_per_message")), checked,
            ]
        )  # fmt: skip
    return rows


HEAD = [
    "shape", "", "in/s", "out/s", "ours/it", "out/s of rounds", "p50", "p99", "server", "client", "other", "stolen", "us/msg", "WAL/msg", "ledger",
]  # fmt: skip


def verdicts(rounds: dict[str, dict[str, list[dict[str, Any]]]]) -> list[list[str]]:
    """Wanted against measured: the best of the sessions for rates, as the shapes come."""
    rows = []
    for prefix, metric, sense, wanted in WANTED:
        names = [n for n in rounds if (n == prefix or (n.startswith(prefix) and n[len(prefix) :].isdigit())) and "pgaq" in rounds[n]]
        values = [(middle(rounds[n]["pgaq"], metric), n) for n in names]
        values = [(v, n) for v, n in values if v is not None]
        if not values:
            continue
        value, name = max(values) if sense == ">=" else min(values)
        ok = value >= wanted if sense == ">=" else value <= wanted
        show = text.duration if metric in ("p50", "p99") else text.number
        miss = "" if ok else f"missed by {abs(value - wanted) / wanted:.0%}"
        rows.append([name, metric, f"{sense} {show(wanted)}", show(value), "reached" if ok else miss])
    best: dict[str, dict[int, float]] = {}
    for name in rounds:
        if name.startswith("queue-10x") and name[9:].isdigit() and "pgaq" in rounds[name]:
            best.setdefault("queue-10x", {})[int(name[9:])] = middle(rounds[name]["pgaq"], "delivered") or 0.0
    for prefix, by_sessions in best.items():
        top = max(by_sessions.values())
        for sessions, value in by_sessions.items():
            if sessions >= 16 and top:
                share = value / top
                rows.append(
                    [
                        f"{prefix}{sessions}",
                        "of the best",
                        ">= 90%",
                        f"{share:.0%}",
                        "reached" if share >= 0.9 else f"missed by {0.9 - share:.0%}",
                    ]
                )
    return rows


def save(shape: Shape, bench: Bench, about: dict[str, Any], directory: Path) -> Path:
    """One JSON file per shape."""
    contestants = {}
    for driver in bench.contestants:
        rounds = bench.rounds[shape.name].get(driver.name)
        if not rounds:
            continue
        numeric = [key for key, value in rounds[0].items() if isinstance(value, (int, float)) or key in ("p50", "p99")]
        contestants[driver.name] = {
            "title": driver.title, "note": driver.note, "median": {key: middle(rounds, key) for key in numeric}, "rounds": rounds,
        }  # fmt: skip
    content = {**about, "shape": {**asdict(shape), "name": shape.name, "fan_out": shape.fan_out}, "contestants": contestants}
    return results.save(shape.name, content, directory=directory)


def present(server: Server, names: list[str]) -> list[Driver]:
    """The contestants that are installed here."""
    found = []
    with server.connect() as conn:
        for name in names:
            driver = DRIVERS[name]
            if driver.extension:
                known = db.value(conn, "SELECT 1 FROM pg_available_extensions WHERE name = %s", [driver.extension])
                if not known:
                    print(f"{driver.title} is not installed here and is left out.")
                    continue
                db.execute(conn, f"CREATE EXTENSION IF NOT EXISTS {driver.extension}")
            found.append(driver)
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Ours, PgQ, SKIP LOCKED and two INSERTs side by side; see bench/README.md."
    )
    parser.add_argument(
        "--contestants", default="pgaq,classic,pgq,skip,bare", help="of pgaq, classic, pgq, skip, bare, separated by commas"
    )
    parser.add_argument("--shapes", default="", help="only shapes whose name contains one of these, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the shapes and end")
    parser.add_argument("--rounds", type=program.at_least(1), default=3)
    parser.add_argument("--seconds", type=program.above_zero, default=6, help="measured in each round (6)")
    parser.add_argument("--warm-up", type=program.at_least(0, float), default=2)
    parser.add_argument("--quick", action="store_true", help="one round of 3 seconds")
    parser.add_argument("--long", action="store_true", help="64 sessions too, 5 rounds of 20 seconds")
    parser.add_argument("--payload", type=program.at_least(program.LEAST_PAYLOAD), default=512)
    parser.add_argument("--text", action="store_true", help="send arrays and fetch results as text rather than binary")
    parser.add_argument("--processes", type=program.at_least(1), default=1, help="client processes on each side")
    parser.add_argument("--backlog", type=program.at_least(1), help="how far producers may be ahead (default: what suits each contestant)")
    program.add_options(parser)
    given = parser.parse_args(arguments)
    if given.quick:
        given.rounds, given.seconds, given.warm_up = 1, 3.0, 1.0
    if given.long:
        given.rounds, given.seconds = 5, 20.0
    for name in given.contestants.split(","):
        if name not in DRIVERS:
            parser.error(f"there is no contestant {name!r}; there are {', '.join(DRIVERS)}")
    return given


def shapes_of(given: argparse.Namespace) -> list[Shape]:
    """The shapes that are asked for; ends the program if there is none."""
    wanted = [name for name in given.shapes.split(",") if name]
    chosen = [replace(s, payload=given.payload) for s in shapes(given.long) if not wanted or any(w in s.name for w in wanted)]
    if not chosen and not given.list:
        print("bench: no shape has such a name; see bench/run --list", file=sys.stderr)
        sys.exit(2)
    return chosen


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    chosen = shapes_of(given)
    if given.list:
        print("\n".join(shape.name for shape in chosen))
        return 0
    return program.carry_out("bench", given, lambda: run(given, chosen))


def run(given: argparse.Namespace, chosen: list[Shape]) -> int:
    names = given.contestants.split(",")
    settings = program.settings(given)
    settings["shared_preload_libraries"] = "pgaq" if any(DRIVERS[name].preload for name in names) else ""
    load_before = machine.busy()
    about: dict[str, Any] = {
        **results.about(settings, load_before), "seconds": given.seconds, "warm_up": given.warm_up,
        "results_format": "text" if given.text else "binary",
    }  # fmt: skip
    if load_before > 0.1:
        print(f"Attention: {load_before:.2f} CPUs of {os.cpu_count()} are busy before the benchmark begins.")
    with Server.temporary("bench", parent=program.parent(given), settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
        contestants = present(server, names)
        bench = Bench(server, contestants, given)
        total = len(chosen) * given.rounds * len(contestants)
        progress = text.Progress(total * (given.seconds + given.warm_up + 1.5))
        rows: list[list[str]] = []
        failures: list[str] = []
        print(
            f"{about['machine']['cpus']} CPUs ({about['machine']['cpu_model']}), {load_before:.2f} busy before; {about['server'].split(' on ')[0]}; "
            f"{given.payload}-byte payloads; {given.rounds} round{'s' if given.rounds > 1 else ''} of {given.seconds:g} s, medians"
        )
        for number, shape in enumerate(chosen):
            bench.play(shape, progress, number * given.rounds * len(contestants), total)
            progress.clear()
            rows += rows_of(shape.name, contestants, bench.rounds[shape.name])
            if progress.live:
                print(text.table(HEAD, rows_of(shape.name, contestants, bench.rounds[shape.name]), left=2) + "\n")
            for driver in contestants:
                for r in bench.rounds[shape.name].get(driver.name, []):
                    if r.get("checked", "ok") != "ok":
                        failures.append(f"{shape.name} {driver.title}: {r['checked']} {r.get('said', '')}")
            if not given.no_save:
                save(shape, bench, about, given.output)
        problems = server.problems()
    print("\n" + text.table(HEAD, rows, left=2))
    print(
        "\nserver, client, other, stolen (by the machine's host): CPUs busy. us/msg: the server's CPU, WAL/msg: bytes, both per message enqueued and delivered to all."
    )
    print("p50, p99: from the enqueue call to the receipt; at full load that is the time in the queue.")
    found = verdicts(bench.rounds)
    if found:
        print("\n" + text.table(["wanted", "", "", "measured", ""], found, left=2))
    for line in [*failures, *problems[:20]]:
        print(line)
    if not given.no_save:
        print(f"\nwritten: {given.output}/{about['date']}-*.json")
    return 1 if failures or problems else 0


if __name__ == "__main__":
    program.leave(main)
