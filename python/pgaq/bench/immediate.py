"""bench/immediate: calls with IMMEDIATE visibility beside those with ON_COMMIT; see bench/README.md.

Each call is a transaction, of pgbench.  The two visibilities take turns on one server
in every combination of form, store, call and number of clients.
"""

from __future__ import annotations

import argparse
import re
import statistics
from dataclasses import dataclass
from itertools import product
from typing import Any

from pgaq import db, text
from pgaq.bench import program
from pgaq.load import machine, results
from pgaq.load.results import Claim
from pgaq.load.workload import LoadError
from pgaq.server import Server

WANTED = 0.7  # of the rate of ON_COMMIT
FILL = 30_000  # messages for each second of dequeues
VISIBILITIES = {"on_commit": 2, "immediate": 1}
STORES = ("sharded", "table")
FORMS = ("call", "block")
CALLS = ("enqueue", "dequeue")
STATEMENTS = {
    "enqueue": "CALL dbms_aq.enqueue('bench.{store}', dbms_aq.enqueue_options_t(visibility => {visibility}), NULL, '{{\"a\": 1}}'::jsonb, {id})",
    "dequeue": "CALL dbms_aq.dequeue('bench.{store}', dbms_aq.dequeue_options_t(visibility => {visibility}, wait => 0), {properties}, {payload}, {id})",
}
BLOCK = "DO $$ DECLARE i uuid; m dbms_aq.message_properties_t; p jsonb; BEGIN {statement}; END $$"
SETUP = """
CREATE EXTENSION pgaq_oracle CASCADE;
CREATE SCHEMA bench;
CALL dbms_aqadm.create_sharded_queue('bench.sharded', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_queue_table('bench.queue_table', 'JSON');
CALL dbms_aqadm.create_queue('bench.table', 'bench.queue_table');
CALL dbms_aqadm.start_queue('bench.sharded');
CALL dbms_aqadm.start_queue('bench.table')
"""


@dataclass(frozen=True)
class Turn:
    """What both visibilities play."""

    form: str
    store: str
    call: str
    clients: int

    @property
    def name(self) -> str:
        return f"{self.form}, {self.store}, {self.call}, {self.clients} clients"

    def script(self, visibility: str) -> str:
        block = self.form == "block"
        statement = STATEMENTS[self.call].format(
            store=self.store,
            visibility=VISIBILITIES[visibility],
            id="i" if block else "NULL",
            properties="m" if block else "NULL",
            payload="p" if block else "NULL::jsonb",
        )
        return (BLOCK.format(statement=statement) if block else statement) + ";\n"


class Bench:
    def __init__(self, server: Server, seconds: float) -> None:
        self.server, self.seconds = server, seconds
        self.script = server.directory / "call.sql"

    def fill(self, store: str, messages: int) -> None:
        with self.server.connect() as conn:
            db.execute(conn, "SELECT aq.purge_queue(%s)", [f"bench.{store}"])
            for _ in range(messages // 1000):
                db.execute(conn, "SELECT aq.enqueue_array(%s, array_fill('{\"a\": 1}'::jsonb, ARRAY[1000]))", [f"bench.{store}"])

    def play(self, turn: Turn, visibility: str) -> float:
        """Calls per second."""
        self.fill(turn.store, int(FILL * self.seconds) if turn.call == "dequeue" else 0)
        self.script.write_text(turn.script(visibility))
        self.script.chmod(0o644)
        done = self.server.run("pgbench", "-n", "-f", str(self.script), "-c", str(turn.clients), "-j", "2", "-T", str(round(self.seconds)))
        found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
        if done.returncode != 0 or found is None:
            raise LoadError(f"{turn.name}, {visibility}: {done.stderr.strip()[-500:]}")
        return float(found.group(1))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/immediate", description="IMMEDIATE visibility beside ON_COMMIT; see bench/README.md.")
    parser.add_argument("--rounds", type=program.at_least(1), default=3, help="of each contestant (3)")
    parser.add_argument("--seconds", type=program.at_least(1), default=3, help="measured in a round (3)")
    parser.add_argument(
        "--clients", type=lambda word: [int(each) for each in word.split(",")], default=[1, 4, 16, 32], metavar="N,...", help="(1,4,16,32)"
    )
    for name, known in (("forms", FORMS), ("stores", STORES), ("calls", CALLS)):
        parser.add_argument(
            f"--{name}", type=lambda word: word.split(","), default=list(known), metavar="NAME,...", help=f"of {', '.join(known)}"
        )
    program.add_options(parser)
    given = parser.parse_args(arguments)
    for name, known in (("forms", FORMS), ("stores", STORES), ("calls", CALLS)):
        if not set(getattr(given, name)) <= set(known):
            parser.error(f"--{name}: there are {', '.join(known)}")
    return given


def judge(rates: dict[str, dict[str, list[float]]]) -> list[Claim]:
    claims = []
    for name, found in rates.items():
        ratios = [immediate / on_commit for immediate, on_commit in zip(found["immediate"], found["on_commit"])]
        ratio = statistics.median(ratios)
        claims.append(
            Claim(
                f"{name}: immediate / on_commit",
                f">= {WANTED} x",
                f"{ratio:.2f} x ({min(ratios):.2f} to {max(ratios):.2f})",
                ratio >= WANTED,
            )
        )
    return claims


def table(rates: dict[str, dict[str, list[float]]]) -> str:
    rows = [[name, *(text.number(statistics.median(found[visibility])) for visibility in VISIBILITIES)] for name, found in rates.items()]
    return text.table(["calls/s, medians", *VISIBILITIES], rows, left=1)


def run(given: argparse.Namespace) -> int:
    settings = {**program.settings(given), "shared_preload_libraries": "pgaq"}
    about: dict[str, Any] = {**results.about(settings, machine.busy()), "seconds": given.seconds, "rounds": given.rounds}
    turns = [Turn(*each) for each in product(given.forms, given.stores, given.calls, given.clients)]
    rates: dict[str, dict[str, list[float]]] = {turn.name: {visibility: [] for visibility in VISIBILITIES} for turn in turns}
    with Server.temporary("immediate", parent=program.parent(given), settings=settings) as server:
        with server.connect() as conn:
            about["server"] = db.value(conn, "SELECT version()")
            for statement in SETUP.split(";"):
                conn.execute(statement)
        bench = Bench(server, given.seconds)
        for number in range(given.rounds):
            for turn in turns:
                # the order changes, so that none always follows the same one
                for visibility in list(VISIBILITIES)[:: 1 if number % 2 == 0 else -1]:
                    rates[turn.name][visibility].append(bench.play(turn, visibility))
                print(
                    f"{turn.name}: " + ", ".join(f"{visibility} {found[-1]:,.0f}/s" for visibility, found in rates[turn.name].items()),
                    flush=True,
                )
        problems = server.problems()
    claims = judge(rates)
    print(f"\n{about['cpus_busy_before']:.2f} CPUs were busy before\n")
    print(table(rates) + "\n")
    return program.conclude("immediate", {**about, "rates": rates}, claims, problems, given)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    return program.carry_out("immediate", given, lambda: run(given))


if __name__ == "__main__":
    program.leave(main)
