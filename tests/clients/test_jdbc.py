"""Compiles and runs CallForms.java and PackageCalls.java: the documented calls through pgjdbc."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import end_server, until
from pgaq import db
from pgaq.load import java
from pgaq.server import Server

DRIVERS = ["/usr/share/java/postgresql.jar"]
PASSWORD = "throw-away"


@pytest.fixture(scope="module")
def server():
    made = Server.temporary("jdbc", tcp=True)
    with made.connect() as conn:
        conn.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        conn.execute("CREATE EXTENSION pgaq_oracle CASCADE")
    yield made
    end_server(made)


def run(name, server, tmp_path, capsys):
    """The number of checks that the program has passed."""
    driver = os.environ.get("PGJDBC") or next((path for path in DRIVERS if Path(path).exists()), None)
    assert driver and shutil.which("javac"), "a JDK and pgjdbc are needed: run tools/setup"
    source = Path(__file__).parent / f"{name}.java"
    done = subprocess.run(
        [*java.JAVAC, "-Xlint:all", "-Werror", "-cp", driver, "-d", str(tmp_path), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    done = subprocess.run(
        ["java", *java.QUICK, "-cp", f"{driver}:{tmp_path}", name, url, "postgres", PASSWORD], capture_output=True, text=True
    )
    with capsys.disabled():
        print("\n" + (done.stdout.strip().splitlines()[-1] if done.stdout else "pgjdbc: no output"))
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^(\d+) passed, 0 failed$", done.stdout, re.M)
    assert found, done.stdout
    return int(found.group(1))


def test_call_forms(server, tmp_path, capsys):
    assert run("CallForms", server, tmp_path, capsys) > 200
    with server.connect() as conn:
        active = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'PostgreSQL JDBC Driver' AND state = 'active'"
        until(lambda: db.value(conn, active) == 0, "the end of all calls")


def test_packages(server, tmp_path, capsys):
    """dbms_aq and dbms_aqadm by CallableStatement."""
    assert run("PackageCalls", server, tmp_path, capsys) == 92


def test_junit(server, tmp_path):
    """The test for JUnit in docs/testing.md passes, with the server of these tests in place of a container."""
    page = (Path(__file__).resolve().parents[2] / "docs/testing.md").read_text()
    [program] = re.findall(r"```java OrderTest.java\n(.*?)```", page, re.S)
    (tmp_path / "OrderTest.java").write_text(program)
    jars = ":".join(map(str, [os.environ.get("PGJDBC", DRIVERS[0]), *sorted(Path("/usr/share/java").glob("junit-*.jar")), tmp_path]))
    subprocess.run([*java.JAVAC, "-cp", jars, "OrderTest.java"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["java", *java.QUICK, "-cp", jars, "org.junit.platform.console.ConsoleLauncher", "--select-class=OrderTest"],
        env={**os.environ, "TEST_JDBC_URL": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=postgres&password={PASSWORD}"},
        capture_output=True,
        text=True,
    )
    assert "1 tests successful" in done.stdout, done.stdout + done.stderr
