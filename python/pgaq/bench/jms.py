"""bench/jms: the Jakarta Messaging provider and Apache ActiveMQ Artemis in one run; see bench/README.md."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgaq import db, places, text
from pgaq.load import machine, results
from pgaq.server import Server, free_port

PASSWORD = "throw-away"
MODULE = places.ROOT / "bench" / "jms-load"
CONTESTANTS = {
    "pgaq": "pgaq, each acknowledgement at once",
    "group": "pgaq, acknowledgements in groups (pgaq.ackMode=group)",
    "before": "the build given by --before, in the mode that is compared with Artemis",
    "artemis": "ActiveMQ Artemis",
}
BATCH = 10
FACTORIES = {
    "pgaq": "io.github.pgaq.jms.PgaqConnectionFactory",
    "artemis": "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
}


@dataclass(frozen=True)
class Shape:
    """A workload; the ratio to Artemis that is wanted of the contestant."""

    name: str
    transacted: bool
    listener: bool
    sessions: int
    subscribers: int = 0
    rate: int = 0
    wanted: float = 0.0
    by: str = "pgaq"

    def contestants(self, chosen: list[str]) -> list[str]:
        """Transacted sessions have no acknowledgements of their own."""
        return [name for name in chosen if not (self.transacted and name == "group")]


def shapes() -> list[Shape]:
    found = [Shape(f"transacted-{n}", True, False, n, wanted=2.5) for n in (1, 4, 16)]
    found += [Shape(f"auto-receive-{n}", False, False, n, wanted=1.2, by="group") for n in (1, 4, 16)]
    found += [Shape(f"auto-listener-{n}", False, True, n, wanted=1.2, by="group") for n in (1, 4, 16)]
    found.append(Shape("topic10-4", True, False, 4, subscribers=10, wanted=3))
    found.append(Shape("latency-1000ps", False, True, 4, rate=1000))
    return found


def cpu_of(pid: int) -> float:
    """CPU seconds of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / machine.TICK


def build() -> str:
    """The class path of the load and the broker."""
    command = ["mvn", "-q", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never", "-Pbench", "-DskipTests",
               "-Dmaven.javadoc.skip=true", "-pl", ":pgaq-jms-bench", "-am", "package"]  # fmt: skip
    done = subprocess.run(command, cwd=places.ROOT / "jms", capture_output=True, text=True)
    if done.returncode != 0:
        raise places.SurroundingsError(f"the load was not built:\n{done.stdout}{done.stderr}")
    target = MODULE / "target"
    return f"{target / 'classes'}:{(target / 'classpath').read_text().strip()}"


class Artemis:
    """The broker, a process of its own."""

    def __init__(self, classpath: str, directory: Path) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            ["java", "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "io.github.pgaq.jms.bench.Broker", str(directory), str(self.port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.journal = ""
        for line in self.process.stdout:
            if line.startswith("ready, journal "):
                self.journal = line.split()[-1]
                break

    def stop(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Bench:
    def __init__(self, server: Server, artemis: Artemis | None, classpath: str, given: argparse.Namespace) -> None:
        self.server, self.artemis, self.classpath, self.given = server, artemis, classpath, given
        self.number = 0

    def once(self, shape: Shape, contestant: str) -> dict[str, Any]:
        """One measured period of one contestant."""
        self.number += 1
        name = f"bench{self.number}"
        if contestant == "artemis":
            url = f"tcp://127.0.0.1:{self.artemis.port}"
        else:
            url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/postgres?user=postgres&password={PASSWORD}"
            url += "&pgaq.ackMode=group" if "group" in (contestant, shape.by if contestant == "before" else "") else ""
            with self.server.connect() as conn:
                db.execute(conn, "SELECT aq.create_queue(%s, 'aq.jms_message', multiple_consumers => %s)", [name, shape.subscribers > 0])
                db.execute(conn, "CHECKPOINT")
        classpath = f"{self.given.before}:{self.classpath}" if contestant == "before" else self.classpath
        command = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "io.github.pgaq.jms.bench.Load",
                   FACTORIES.get(contestant, FACTORIES["pgaq"]), url, name, str(BATCH if shape.transacted else 0),
                   "listener" if shape.listener else "receive", str(shape.subscribers), str(shape.sessions), str(shape.rate),
                   str(self.given.warm_up), str(self.given.seconds)]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        marks = {}
        outcome: dict[str, Any] = {}
        for line in process.stdout:
            if line.strip() in ("begin", "end"):
                marks[line.strip()] = (self.server_cpu(contestant), cpu_of(process.pid))
            elif line.startswith("{"):
                outcome = json.loads(line)
        process.wait()
        if contestant != "artemis":
            with self.server.connect() as conn:
                db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])
        if not outcome or outcome["failure"] or outcome["missing"] or outcome["duplicates"]:
            raise places.SurroundingsError(f"{shape.name}, {contestant}: {outcome or 'no result'}")
        delivered = max(outcome["delivered"], 1)
        outcome["delivered_per_s"] = outcome["delivered"] / outcome["seconds"]
        outcome["server_us"] = (marks["end"][0] - marks["begin"][0]) * 1e6 / delivered
        outcome["client_us"] = (marks["end"][1] - marks["begin"][1]) * 1e6 / delivered
        return outcome

    def server_cpu(self, contestant: str) -> float:
        return cpu_of(self.artemis.process.pid) if contestant == "artemis" else machine.cpu(self.server).server


def claim(shape: Shape, medians: dict[str, dict[str, float]]) -> results.Claim | None:
    """What the shape is to show."""
    ours, theirs = medians.get(shape.by), medians.get("artemis")
    if ours is None or theirs is None:
        return None
    if shape.rate:
        return results.Claim(
            f"{shape.name}: p50",
            f"at most {theirs['p50_us']:.0f} us (Artemis)",
            f"{ours['p50_us']:.0f} us",
            ours["p50_us"] <= theirs["p50_us"],
        )
    ratio = ours["delivered_per_s"] / theirs["delivered_per_s"]
    return results.Claim(f"{shape.name}: {shape.by} / Artemis", f"at least {shape.wanted}", f"{ratio:.2f}", ratio >= shape.wanted)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/jms", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of 3 seconds")
    parser.add_argument("--rounds", type=int, help="of each shape (3)")
    parser.add_argument("--seconds", type=float, help="that are measured (6)")
    parser.add_argument("--warm-up", type=float, default=6, help="seconds before, in which Java compiles the client (6)")
    parser.add_argument("--before", default="", help="classes of another build of the provider, which take part as `before`")
    parser.add_argument("--shapes", default="", help="only shapes whose name contains one of these")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help=", ".join(CONTESTANTS))
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 3)
    given.seconds = given.seconds or (3 if given.quick else 6)
    chosen = [name for name in given.contestants.split(",") if name != "before" or given.before]
    wanted = [shape for shape in shapes() if any(part in shape.name for part in given.shapes.split(","))]
    places.clean_up_when_terminated()
    busy = machine.busy()
    classpath = build()
    claims: list[results.Claim] = []
    report: dict[str, Any] = {}
    with (
        Server.temporary("bench-jms", tcp=True, settings=results.SETTINGS) as server,
        tempfile.TemporaryDirectory(prefix="pgaq-artemis-", dir=server.directory.parent) as directory,
    ):
        with server.connect() as conn:
            conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
            conn.execute("CREATE EXTENSION pgaq")
        artemis = Artemis(classpath, Path(directory)) if "artemis" in chosen else None
        bench = Bench(server, artemis, classpath, given)
        try:
            for shape in wanted:
                rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in shape.contestants(chosen)}
                for number in range(given.rounds):
                    order = list(rounds)
                    at = number % len(order)
                    for name in order[at:] + order[:at]:
                        rounds[name].append(bench.once(shape, name))
                medians = {
                    name: {
                        key: statistics.median(r[key] for r in found)
                        for key in ("delivered_per_s", "p50_us", "p99_us", "server_us", "client_us")
                    }
                    for name, found in rounds.items()
                }
                report[shape.name] = {"rounds": rounds, "medians": medians}
                print(f"\n{shape.name}", flush=True)
                rows = [
                    [
                        CONTESTANTS[name],
                        text.number(m["delivered_per_s"]),
                        text.duration(m["p50_us"]),
                        text.duration(m["p99_us"]),
                        text.number(m["server_us"]),
                        text.number(m["client_us"]),
                    ]
                    for name, m in medians.items()
                ]
                print(text.table(["", "delivered/s", "p50", "p99", "server us/message", "client us/message"], rows), flush=True)
                found = claim(shape, medians)
                claims += [found] if found else []
        finally:
            if artemis:
                artemis.stop()
        about = {**results.about(results.SETTINGS, busy), "artemis_journal": artemis.journal if artemis else None}
    print("\n" + results.verdict_table(claims))
    print(results.save("jms", {**about, "shapes": report}, claims))
    return 1 if results.failed(claims) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except places.SurroundingsError as error:
        print(f"bench/jms: {error}", file=sys.stderr)
        sys.exit(1)
