#!/usr/bin/python3
"""Break the extension in one place at a time, and see which test notices.

    tests/mutants/run.py [--baseline] [--check] [--list] [--kind KIND] [--file TEXT] [--name NAME] [--sample N] [--seed N]

mutants.tsv has a row for each: name, kind, file, function (of a C file), the text as it
is, what it becomes, and the tests that should notice, the cheapest first.  Texts have
\\n and \\t for line ends and tabs; leading blanks do not count; "-" is nothing.

A mutant is applied to a copy of the sources, built without optimization and with test
points, installed into the server of PG_CONFIG (which must be a copy of your own, see
README.md), and the tests run one after the other until one fails, hangs, or all have
passed.  What a test that fails said is in the copy's folder failures.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPIED = (
    "src",
    "sql",
    "tests",
    "python",
    "tools",
    "docs",
    "bench",
    "Makefile",
    "pgaq.control",
    "pgaq_oracle.control",
    "pgaq_lab.control",
    "README.md",
)


@dataclass
class Mutant:
    name: str
    kind: str
    file: str
    function: str
    old: str
    new: str
    tests: list[str]

    def span(self, text: str) -> tuple[int, int]:
        """Where the function stands; without one, the whole file."""
        if self.function == "-":
            return 0, len(text)
        found = [m.start() for m in re.finditer(rf"^{re.escape(self.function)}\([^;]*?\n{{$", text, re.MULTILINE)]
        if len(found) != 1:
            return 0, 0
        return found[0], text.index("\n}\n", found[0])

    def apply(self, text: str) -> str | None:
        """The file with the defect; None when the old text is not there exactly once."""
        start, end = self.span(text)
        if text[start:end].count(self.old) != 1:
            return None
        at = text.index(self.old, start, end)
        return text[:at] + self.new + text[at + len(self.old) :]


def plain(text: str) -> str:
    return "" if text == "-" else text.replace("\\n", "\n").replace("\\t", "\t")


def read_mutants() -> list[Mutant]:
    with open(HERE / "mutants.tsv", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Mutant(*row[:4], plain(row[4]), plain(row[5]), row[6].split()) for row in rows[1:]]


def path_of(root: Path, mutant: Mutant) -> Path:
    return root / ("sql" if mutant.file.endswith(".sql") else "src") / mutant.file


def stale_mutants(mutants: list[Mutant]) -> list[Mutant]:
    """Those whose text is not in the source exactly once."""
    return [m for m in mutants if not path_of(ROOT, m).exists() or m.apply(path_of(ROOT, m).read_text()) is None]


class Bench:
    """A copy of the sources, and a server to install into."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pg_config = os.environ.get("PG_CONFIG", "")
        where = self.pg_config and subprocess.run([self.pg_config, "--pkglibdir"], capture_output=True, text=True).stdout.strip()
        if not where or where.startswith("/usr/"):
            sys.exit(
                "PG_CONFIG must name the pg_config of a copy of the server: broken libraries are installed there. See tests/mutants/README.md."
            )
        directory.mkdir(parents=True, exist_ok=True)
        self.temporary = directory / "tmp"
        # the library has test points, so no test builds another; who waits in vain gives up soon
        self.environment = {"PGAQ_RUN_DIR": str(self.temporary), "PGAQ_TEST_POINTS_DIR": str(directory), "PGAQ_PATIENCE": "15"}
        self.end_servers()
        # make would take it for up to date although all objects are missing: PostgreSQL's makefiles say .SECONDARY
        (directory / "pgaq.so").unlink(missing_ok=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.rmtree(directory / name, ignore_errors=True)
                shutil.copytree(
                    source, directory / name, symlinks=True, ignore=shutil.ignore_patterns("*.bc", "*.o", "results", "__pycache__")
                )
            else:
                shutil.copy2(source, directory / name)
        self.baseline = self.read_baseline()

    def read_baseline(self) -> dict[str, float]:
        """Seconds that each test takes without a defect, of those that were measured."""
        file = self.directory / "baseline.tsv"
        rows = [line.split("\t") for line in file.read_text().splitlines()] if file.exists() else []
        return {spec: float(seconds) for spec, seconds in rows}

    def measure(self, spec: str) -> bool:
        """Does it pass without a defect?  Its time is the measure for the mutants."""
        began = time.monotonic()
        passed, _ = self.test(spec)
        if passed:
            with open(self.directory / "baseline.tsv", "a") as file:
                print(spec, f"{time.monotonic() - began:.1f}", sep="\t", file=file)
        return passed

    def limit(self, spec: str) -> float:
        """Three times what it takes without a defect; more, because other programs may have the processors."""
        return 3 * self.baseline.get(spec, 90) + 30

    def run(self, command: list[str], limit: float) -> tuple[bool, str]:
        """Did it work within so many seconds?  And the end of what it said."""
        process = subprocess.Popen(
            command,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env={**os.environ, **self.environment},
        )
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode == 0, output[-8000:]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return False, output[-8000:] + "time limit"
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            self.end_servers()

    def end_servers(self) -> None:
        """Servers that the tests have left behind; their data directories are in a place that only this program uses."""
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if words[0].endswith(b"/postgres") and any(w.startswith(str(self.temporary).encode() + b"/") for w in words[1:]):
                os.kill(int(entry.name), signal.SIGQUIT)
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()

    def build(self) -> tuple[bool, str]:
        return self.run(
            ["make", "-s", "-j2", "install", "TEST_POINTS=1", f"PG_CONFIG={self.pg_config}", "PG_CFLAGS=-std=gnu11 -w -O0"], 600
        )

    def test(self, spec: str) -> tuple[bool, str]:
        rung, _, names = spec.partition(":")
        if rung.startswith("cluster"):
            file, _, chosen = names.partition(":")
            command = ["tools/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/cluster/{file}"]
            command += ["--queue-tables"] if rung == "cluster_tables" else []
            command += ["-k", chosen.replace(",", " or ")] if chosen else []
        else:
            command = ["tools/python", "tests/regress.py", rung, *filter(None, names.split(","))]
        return self.run(command, self.limit(spec))

    def keep_failure(self, mutant: Mutant, output: str) -> None:
        """What a test said that noticed a mutant, to see whether the mutant was the cause."""
        folder = self.directory / "failures"
        folder.mkdir(exist_ok=True)
        differences = [path.read_text(errors="replace") for path in (self.directory / "tests").rglob("regression.diffs")]
        (folder / f"{mutant.name}.out").write_text("\n".join([output, *(text[:8000] for text in differences)]))


def judge(bench: Bench, mutant: Mutant) -> tuple[str, str]:
    """noticed, survived or broken (it cannot be built), and by which test."""
    path = path_of(bench.directory, mutant)
    source = path.read_text()
    changed = mutant.apply(source)
    if changed is None:
        return "stale", ""
    try:
        path.write_text(changed)
        built, output = bench.build()
        if not built:
            return "broken", output.strip().splitlines()[-1] if output.strip() else ""
        for spec in mutant.tests:
            passed, output = bench.test(spec)
            if not passed:
                bench.keep_failure(mutant, output)
                return "noticed", spec + (" (time limit)" if output.endswith("time limit") else "")
        return "survived", " ".join(mutant.tests)
    finally:
        path.write_text(source)


def chosen_mutants(given: argparse.Namespace) -> list[Mutant]:
    mutants = [
        m
        for m in read_mutants()
        if given.kind in (None, m.kind) and (given.file or "") in m.file and (given.name is None or m.name in given.name.split(","))
    ]
    if given.sample:
        random.Random(given.seed).shuffle(mutants)
        mutants = mutants[given.skip : given.skip + given.sample]
    if given.tests:
        mutants = [replace(m, tests=given.tests.split()) for m in mutants]
    return mutants


def say(spec: str, passed: bool) -> bool:
    print("passed" if passed else "FAILED", spec, sep="\t", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--baseline", action="store_true", help="run the tests of the chosen mutants without a defect")
    parser.add_argument("--check", action="store_true", help="only see whether each still applies")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--kind")
    parser.add_argument("--file", help="part of the file's name")
    parser.add_argument("--name", help="one, or more with commas between them")
    parser.add_argument("--sample", type=int, help="so many of them, by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="the sample begins behind so many of this seed")
    parser.add_argument("--tests", help='run these instead of the tests in mutants.tsv; "sql: isolation:" is all of both')
    parser.add_argument("--minutes", type=float, help="begin no mutant after that")
    parser.add_argument("--directory", type=Path, default=Path("/tmp/pgaq-mutants"))
    given = parser.parse_args()
    mutants = chosen_mutants(given)
    if given.check:
        stale = stale_mutants(mutants)
        for mutant in stale:
            print(f"stale\t{mutant.name}\t{mutant.file}\t{mutant.function}\t{mutant.old!r}")
        print(f"{len(mutants)} mutants, {len(stale)} stale")
        return 1 if stale else 0
    if given.list:
        for mutant in mutants:
            print(mutant.name, mutant.kind, mutant.file, mutant.function, " ".join(mutant.tests), sep="\t")
        return 0
    bench = Bench(given.directory)
    specs = sorted({spec for m in mutants for spec in m.tests})
    began = time.monotonic()
    built, output = bench.build()
    if not built:
        sys.exit(f"the sources cannot be built:\n{output}")
    print(f"{len(mutants)} mutants, {len(specs)} tests", flush=True)
    if given.baseline:
        failed = [spec for spec in specs if not say(spec, bench.measure(spec))]
        return 1 if failed else 0
    counts: dict[str, int] = {}
    with open(given.directory / "results.tsv", "a") as results:
        for mutant in mutants:
            if given.minutes and time.monotonic() - began > 60 * given.minutes:
                break
            start = time.monotonic()
            verdict, by = judge(bench, mutant)
            counts[verdict] = counts.get(verdict, 0) + 1
            line = f"{verdict}\t{mutant.name}\t{mutant.kind}\t{mutant.file}\t{mutant.function}\t{by}\t{time.monotonic() - start:.0f} s"
            print(line, flush=True)
            print(line, file=results, flush=True)
    bench.build()
    print(", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items())))
    return 1 if counts.get("survived") else 0


if __name__ == "__main__":
    sys.exit(main())
