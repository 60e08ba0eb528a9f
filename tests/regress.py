#!/usr/bin/python3
"""Run pg_regress or pg_isolation_regress on a private server.

    tests/regress.py sql [NAME...]          tests/sql against tests/expected
    tests/regress.py queue_tables           most of tests/sql with queue tables against tests/queue_tables/expected
    tests/regress.py isolation [NAME...]    tests/isolation/specs against tests/isolation/expected

Without names the whole schedule runs; setup.sql always runs first.  What came out
is in tests/results or tests/isolation/results, differences in regression.diffs
beside it.  The server's log must not hold an unexpected line.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

from pgaq import places  # noqa: E402
from pgaq.server import Server  # noqa: E402

SUITES = {
    "sql": ("regress/pg_regress", HERE, "regress_pgaq", []),
    "queue_tables": ("regress/pg_regress", HERE / "queue_tables", "regress_pgaq_tables", []),
    "queue_tables_isolation": (
        "isolation/pg_isolation_regress", HERE / "queue_tables" / "isolation", "isolation_regress_pgaq_tables", ["--load-extension=pgaq"],
    ),  # fmt: skip
    "isolation": ("isolation/pg_isolation_regress", HERE / "isolation", "isolation_regress_pgaq", ["--load-extension=pgaq"]),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    program, directory, database, more = SUITES[given.suite]
    if given.suite == "sql" and given.names and given.names[0] != "setup":
        given.names.insert(0, "setup")
    runner = Path(places.pg_config("pgxs")).parent.parent / "test" / program
    with Server.temporary(f"{given.suite}-regress") as server:
        command = [
            str(runner), f"--host={server.socket_dir}", f"--port={server.port}", "--user=postgres",
            f"--bindir={places.pg_config('bindir')}", f"--inputdir={directory}", f"--outputdir={directory}",
            f"--dbname={database}", *more,
        ]  # fmt: skip
        command += given.names if given.names else [f"--schedule={directory / 'schedule'}"]
        status = subprocess.run(command, cwd=directory).returncode
        problems = server.problems()
    for line in problems:
        print("unexpected line in the server log:", line)
    return status or bool(problems)


if __name__ == "__main__":
    sys.exit(main())
