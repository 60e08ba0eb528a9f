"""bench/profile: where the server's CPU time of a message goes; see bench/README.md.

One round of a shape while perf samples the processes of the server with their
stacks.  A sample belongs to the first function of its stack, from the leaf
upwards, that says what is being done; the server's CPU time per message, by the
kernel's account, is divided in proportion.  Stacks are unwound by DWARF: the C
library has no frame pointers, and what sleeps or sends is seen in it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from pgaq import db, text
from pgaq.bench import program
from pgaq.bench.throughput import shapes
from pgaq.load import machine, results
from pgaq.load.drivers import DRIVERS, Shape
from pgaq.load.workload import Metrics, Options, Workload
from pgaq.places import SurroundingsError
from pgaq.server import Server

FLUSH = "WAL flush at commit: writing, syncing, waiting for each other"
ROWS = "inserting rows: messages, and the dequeue log"
SOCKETS = "sockets"
COMMIT = "the rest of beginning and ending transactions"
OURS = "pgaq: slots, latches, taking, reading rows, commit callbacks"
WORKERS = "pgaq's worker, launcher and sampler"
BACKGROUND = "PostgreSQL's background processes"
EXECUTOR = "protocol, plans, executor"
ORDER = [FLUSH, EXECUTOR, ROWS, OURS, SOCKETS, COMMIT, WORKERS, BACKGROUND]

# Functions that say what a sample is about.
ABOUT = {
    **dict.fromkeys(["XLogFlush", "XLogBackgroundFlush"], FLUSH),
    **dict.fromkeys(["heap_insert", "heap_multi_insert", "heap_delete", "heap_update", "ExecInsertIndexTuples"], ROWS),
    **dict.fromkeys(["secure_read", "secure_write", "__send", "__libc_recv"], SOCKETS),
    **dict.fromkeys(["CommitTransactionCommand", "StartTransactionCommand", "AbortCurrentTransaction"], COMMIT),
}
# Ours on the stack of everything, as they call the server's own function.
HOOKS = {"executor_run", "utility_hook"}

FRAME = re.compile(r"^\s+[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)? \((.*)\)$")


@dataclass
class Sample:
    pid: int
    frames: list[tuple[str, str]]  # symbol and library, from the leaf upwards


def samples(script: Iterator[str]) -> Iterator[Sample]:
    """Parses the output of `perf script`: a line with the process, a line for each frame, an empty line."""
    sample = None
    for line in script:
        frame = FRAME.match(line)
        if sample is not None and frame is not None:
            sample.frames.append((frame[1], frame[2].rsplit("/", 1)[-1]))
        elif line.strip():
            sample = Sample(int(line.split()[-1]), [])
        elif sample is not None:
            yield sample
            sample = None
    if sample is not None:
        yield sample


def belongs_to(sample: Sample, kinds: dict[int, str]) -> tuple[str, str | None]:
    """The subject of the sample, and for pgaq's code the running function."""
    if kinds[sample.pid] != "client backend":
        return (WORKERS if kinds[sample.pid].startswith("pgaq") else BACKGROUND), None
    for symbol, library in sample.frames:
        if symbol in ABOUT:
            return ABOUT[symbol], None
        if library == "pgaq.so" and symbol not in HOOKS:
            return OURS, symbol
    return EXECUTOR, None


def record(server: Server, workload: Workload, seconds: float, file: Path) -> dict[int, str]:
    """Measure while perf samples; returns which process is what."""
    with server.connect() as conn:
        kinds = dict(conn.execute("SELECT pid, backend_type FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall())
    # of all processes: one buffer for each processor, so that nothing is lost
    command = ["perf", "record", "-q", "-a", "-m", "16M", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,16384", "-o", str(file)]
    perf = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        workload.measure(seconds)
    finally:
        perf.send_signal(signal.SIGINT)
        _, said = perf.communicate(timeout=60)
    if not file.exists() or file.stat().st_size == 0:
        raise SurroundingsError(f"perf has recorded nothing: {said.strip()}")
    return kinds


def evaluate(file: Path, kinds: dict[int, str]) -> tuple[Counter[str], Counter[str]]:
    """Samples by what they are about; those of ours by function."""
    whole: Counter[str] = Counter()
    ours: Counter[str] = Counter()
    with subprocess.Popen(
        ["perf", "script", "--no-inline", "-i", str(file), "-F", "pid,ip,sym,symoff,dso"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as script:
        for sample in samples(iter(script.stdout)):
            if sample.pid not in kinds:
                continue
            about, function = belongs_to(sample, kinds)
            whole[about] += 1
            if function:
                ours[function] += 1
    return whole, ours


def play(server: Server, shape: Shape, given: argparse.Namespace, file: Path) -> tuple[Metrics, dict[int, str]]:
    with Workload(server, DRIVERS[given.contestant], shape, Options(), queue="profile") as workload:
        workload.setup()
        workload.start()
        workload.run_for(given.warm_up)
        kinds = record(server, workload, given.seconds, file)
        drained = workload.drain()
        workload.stop()
        report = workload.check()
        workload.teardown()
    if not (drained and report.ok):
        raise SystemExit(f"bench/profile: the ledger is wrong: {report}")
    return workload.metrics(), kinds


def run(given: argparse.Namespace, chosen: list[Shape]) -> int:
    if shutil.which("perf") is None:
        raise SurroundingsError("perf is needed (Debian: linux-perf).")
    settings = program.settings(given)
    about = {**results.about(settings, machine.busy()), "seconds": given.seconds, "contestant": given.contestant}
    parts: dict[str, dict[str, float]] = {}
    functions: dict[str, dict[str, float]] = {}
    with Server.temporary("profile", parent=program.parent(given), settings=settings) as server:
        for shape in chosen:
            with tempfile.TemporaryDirectory(prefix="pgaq-profile-") as directory:
                file = Path(directory) / "perf.data"
                metrics, kinds = play(server, shape, given, file)
                whole, ours = evaluate(file, kinds)
            each = metrics.cpu_us_per_message / max(whole.total(), 1)
            parts[shape.name] = {
                **{what: whole[what] * each for what in ORDER},
                "sum": metrics.cpu_us_per_message,
                "beside it, the client": metrics.client_cpu * 1e6 * shape.fan_out / max(metrics.delivered, 1),
                "samples": whole.total(),
            }
            functions[shape.name] = {name: count * each for name, count in ours.most_common()}
    print(f"CPU microseconds per message; {about['cpus_busy_before']:.2f} CPUs were busy before\n")
    rows = [
        [what, *(text.number(part[what], 0 if what == "samples" else 1) for part in parts.values())] for what in next(iter(parts.values()))
    ]
    print(text.table(["", *parts], rows, left=1))
    for name, found in functions.items():
        if given.functions:
            print(f"\nOf pgaq in {name}, microseconds per message, with what each function calls of the server:\n")
            print(text.table(["function", "us"], [[f, f"{us:.2f}"] for f, us in list(found.items())[: given.functions]], left=1))
    if not given.no_save:
        print(f"\nwritten: {results.save('profile', {**about, 'parts': parts, 'functions': functions}, directory=given.output)}")
    return 0


def parse(arguments: list[str] | None) -> tuple[argparse.Namespace, list[Shape]]:
    known = {shape.name: shape for shape in shapes(True)}
    parser = argparse.ArgumentParser(
        prog="bench/profile", description="Where the server's CPU time of a message goes; see bench/README.md."
    )
    parser.add_argument(
        "--shapes", default="queue-1x16,queue-10x16,queue-100x16,topic10-10x16", help="names of shapes, as bench/run --long --list has them"
    )
    parser.add_argument("--contestant", default="pgaq", choices=[name for name, driver in DRIVERS.items() if not driver.yardstick])
    parser.add_argument("--seconds", type=program.above_zero, default=4, help="measured of each shape (4)")
    parser.add_argument("--warm-up", type=program.above_zero, default=1.0)
    parser.add_argument("--functions", type=program.at_least(0), default=0, help="also show this number of pgaq's functions")
    program.add_options(parser)
    given = parser.parse_args(arguments)
    for name in given.shapes.split(","):
        if name not in known:
            parser.error(f"there is no shape {name}; see bench/run --long --list")
    return given, [known[name] for name in given.shapes.split(",")]


def main(arguments: list[str] | None = None) -> int:
    given, chosen = parse(arguments)
    return program.carry_out("profile", given, lambda: run(given, chosen))


if __name__ == "__main__":
    program.leave(main)
