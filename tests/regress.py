#!/usr/bin/python3
"""Run pg_regress or pg_isolation_regress on a private server.

    tests/regress.py sql [NAME...]          tests/sql against tests/expected
    tests/regress.py isolation [NAME...]    tests/isolation/specs against tests/isolation/expected
    tests/regress.py queue_tables           most of tests/sql on queue tables
    tests/regress.py queue_tables_isolation most of tests/isolation/specs on queue tables

Without names the whole schedule runs; with names, first the files that they need.  What came out
is in results beside the schedule, differences in regression.diffs.  On queue tables
the same results are expected, changed by tests/queue_tables/.../expected/NAME.diff.
The server's log must not hold an unexpected line.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

from pgaq import places  # noqa: E402
from pgaq.server import Server  # noqa: E402


@dataclass
class Suite:
    """A schedule and what is expected of it."""

    directory: Path
    database: str
    isolation: bool = False
    like: Path | None = None  # whose files run here as well; expected here has the differences

    @property
    def runner(self) -> Path:
        name = "isolation/pg_isolation_regress" if self.isolation else "regress/pg_regress"
        return Path(places.pg_config("pgxs")).parent.parent / "test" / name

    def inputs(self) -> Path:
        """The folder that pg_regress reads from."""
        if self.like is None:
            return self.directory
        gathered = self.directory / "results" / "input"
        shutil.rmtree(gathered, ignore_errors=True)
        (gathered / "expected").mkdir(parents=True)
        files = "specs" if self.isolation else "sql"
        (gathered / files).symlink_to(self.like / files)
        for path in (self.like / "expected").iterdir():
            (gathered / "expected" / path.name).symlink_to(path)
        for path in (self.directory / "expected").iterdir():
            expected = gathered / "expected" / f"{path.stem}.out"
            if path.suffix == ".diff":
                expected.unlink()
                subprocess.run(
                    ["patch", "--silent", "--fuzz=0", f"--output={expected}", self.like / "expected" / expected.name, path], check=True
                )
            else:
                expected.symlink_to(path)
        return gathered


SUITES = {
    "sql": Suite(HERE, "regress_pgaq"),
    "queue_tables": Suite(HERE / "queue_tables", "regress_pgaq_tables", like=HERE),
    "isolation": Suite(HERE / "isolation", "isolation_regress_pgaq", isolation=True),
    "queue_tables_isolation": Suite(
        HERE / "queue_tables" / "isolation", "isolation_regress_pgaq_tables", isolation=True, like=HERE / "isolation"
    ),
}


def needed(suite: str, names: list[str]) -> list[str]:
    """The files with those that they need before them: roles and types, and the queues of dbms_aq."""
    first = {"sql": ["setup"], "queue_tables": ["setup", "on_queue_tables"], "queue_tables_isolation": ["on-queue-tables"]}.get(suite, [])
    if any(name.startswith("dbms_") for name in names):
        first += ["dbms_names"]
    if not {"dbms_array", "dbms_listen", "dbms_transform"}.isdisjoint(names):
        first += ["dbms_aq"]
    return [*first, *(name for name in names if name not in first)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    suite = SUITES[given.suite]
    # a file whose enqueue failed would wait for the message
    with Server.temporary(f"{given.suite}-regress", settings={"statement_timeout": "5min"}) as server:
        command = [
            str(suite.runner), f"--host={server.socket_dir}", f"--port={server.port}", "--user=postgres",
            f"--bindir={places.pg_config('bindir')}", f"--inputdir={suite.inputs()}", f"--outputdir={suite.directory}",
            f"--dbname={suite.database}", *(["--load-extension=pgaq", "--load-extension=pgaq_oracle"] if suite.isolation else []),
        ]  # fmt: skip
        command += needed(given.suite, given.names) if given.names else [f"--schedule={suite.directory / 'schedule'}"]
        status = subprocess.run(command, cwd=suite.directory).returncode
        problems = server.problems()
    for line in problems:
        print("unexpected line in the server log:", line)
    return status or bool(problems)


if __name__ == "__main__":
    sys.exit(main())
