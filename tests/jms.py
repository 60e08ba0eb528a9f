#!/usr/bin/python3
"""Build jms/ with Maven and run its tests against one private server.

    tests/jms.py [--long] [--seed N] [MODULE...]

The first run fetches what the build needs; later ones, without a change of a pom.xml, work offline.  The tests find
the server by the system property pgaq.url.  The whole output of Maven is kept in jms/target/maven.log.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

from pgaq import places  # noqa: E402
from pgaq.load import java  # noqa: E402
from pgaq.server import Server  # noqa: E402
from pgaq_proof import faults  # noqa: E402

JMS = HERE.parent / "jms"
PASSWORD = "throw-away"
MODULE = re.compile(r"^\[INFO\] -+< [\w.]+:([\w-]+) >-+$")
# what Maven says after its own errors: where to read more
ADVICE = re.compile(
    r"^\[ERROR\] *(->|$|To see the full|Re-run Maven|For more information|After correcting|\[Help|mvn <args>|See dump|See .*surefire)"
)
UNREACHABLE = re.compile(r"Could not transfer|Unknown host|in offline mode|Temporary failure in name resolution")
# lines of a stack trace that say where in the test or the provider it was
OURS = re.compile(r"^\s+at io\.github\.pgaq|^Caused by|^\S")


@dataclass
class Module:
    """One module of the build, and its tests as their reports tell."""

    name: str
    began: float = field(default_factory=time.monotonic)
    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def read_reports(self) -> None:
        """The tests that ran in it; a report of an earlier run was deleted before."""
        for path in sorted((JMS / self.name / "target" / "surefire-reports").glob("TEST-*.xml")):
            for case in xml.parse(path).getroot().iter("testcase"):
                problem = next((child for child in case if child.tag in ("failure", "error")), None)
                if problem is not None:
                    self.failures.append(
                        f"{case.get('classname')}.{case.get('name')}\n{_short(problem.text or problem.get('message') or '')}"
                    )
                elif case.find("skipped") is not None:
                    self.skipped += 1
                else:
                    self.passed += 1

    def show(self) -> None:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(
            f"{self.name}: {self.passed} tests passed, {len(self.failures)} failed{skipped}, {time.monotonic() - self.began:.0f} s",
            flush=True,
        )
        for failure in self.failures:
            print(f"  FAILED {failure}", flush=True)


def _short(trace: str) -> str:
    """A stack trace without the frames of JUnit, JDK and driver."""
    lines = [line for line in trace.splitlines() if OURS.match(line)]
    return "\n".join(f"    {line.strip()}" for line in lines[:12])


def poms() -> str:
    """What the build needs from Maven's repository, as a checksum."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(JMS.glob("**/pom.xml")))).hexdigest()


def build(url: str, options: argparse.Namespace) -> tuple[int, list[Module], list[str]]:
    """Maven's status, the modules, and its error lines."""
    fetched = JMS / "target" / "fetched"
    offline = fetched.exists() and fetched.read_text() == poms()
    for reports in JMS.glob("*/target/surefire-reports"):
        shutil.rmtree(reports)
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never", "--fail-at-end", *(["--offline"] if offline else []),
               f"-Dpgaq.url={url}", "-Dmaven.test.failure.ignore=true", *(["-Dpgaq.excluded=none"] if options.long else []),
               *([f"-Dpgaq.seed={options.seed}"] if options.seed is not None else []),
               *(["--also-make", "--projects", ",".join(options.modules)] if options.modules else []), "verify"]  # fmt: skip
    environment = {**os.environ, "MAVEN_OPTS": os.environ.get("MAVEN_OPTS") or " ".join(java.QUICK)}
    modules: list[Module] = []
    errors: list[str] = []
    (JMS / "target").mkdir(exist_ok=True)
    with open(JMS / "target" / "maven.log", "w") as log:
        process = subprocess.Popen(
            command,
            cwd=JMS,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for line in process.stdout:
            log.write(line)
            found = MODULE.match(line)
            if found or line.startswith("[INFO] Reactor Summary"):
                finish(modules)
            if found:
                modules.append(Module(found[1]))
            elif line.startswith("[ERROR]") and not ADVICE.match(line) and line.rstrip() not in errors:
                errors.append(line.rstrip())
        status = process.wait()
    finish(modules)
    if status == 0 and not options.modules:
        fetched.write_text(poms())
    return status, modules, errors


def finish(modules: list[Module]) -> None:
    """The last module has ended: its line."""
    if modules and not modules[-1].passed and not modules[-1].failures:
        modules[-1].read_reports()
        if modules[-1].passed or modules[-1].failures:
            modules[-1].show()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these, and what they need (a folder of jms/)")
    parser.add_argument("--long", action="store_true", help="also the tests with the tag long")
    parser.add_argument("--seed", type=int, help="of the random tests")
    options = parser.parse_args()
    if not shutil.which("mvn") or not shutil.which("javac"):
        print("a JDK and Maven are needed: run tools/setup test")
        return 1
    places.clean_up_when_terminated()
    with Server.temporary("jms", tcp=True, settings={"max_prepared_transactions": 20}) as server:
        # a test ends the sessions of a connection; the client closes the others when it has lost the first one
        server.expect_log(r"PID \d+ is not a PostgreSQL (backend|server) process")
        with server.connect() as conn:
            conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
            conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
        status, modules, errors = build(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=postgres&password={PASSWORD}", options)
        differences = faults.differences(server, "20 s")
        problems = server.problems()
    passed = sum(module.passed for module in modules)
    failed = sum(len(module.failures) for module in modules)
    if status != 0:
        failed += 1
        print("the build failed:")
        for line in errors[:40]:
            print(f"  {line}")
        if any(UNREACHABLE.search(line) for line in errors):
            print("Maven could not fetch what the build needs: no connection to its repository?")
        print(f"see {(JMS / 'target' / 'maven.log').relative_to(HERE.parent)}")
    for difference in differences:
        failed += 1
        print(difference)
    for line in problems:
        failed += 1
        print(f"the server's log: {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
