"""The programs in the documentation that are not SQL (that is executed by tools/docs.py --run)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conftest import put, take, until
from pgaq import db

DOCS = Path(__file__).resolve().parents[2] / "docs"
START = DOCS / "start.md"
ASLEEP = "SELECT count(*) FROM sys.v$session_wait WHERE state = 'WAITING' AND event ~ 'waiting for messages'"


class CannotSend(Exception):
    pass


def test_consumer(server, conn):
    """It sleeps until something comes, takes it, and sleeps again; what it fails at is still there."""
    (program,) = re.findall(r"```python\n(.*?)```", START.read_text(), re.S)
    assert "dbname=shop" in program
    sent = []

    def send(payload):
        if payload == "unwanted":
            raise CannotSend
        sent.append(payload)

    def produce():
        with server.connect() as producer:
            for payload in ("first", "second", "unwanted"):
                until(lambda: db.value(producer, ASLEEP), "the consumer asleep")
                put(producer, "parcels", payload)
                until(lambda: payload == "unwanted" or payload in sent, f"{payload} sent")

    conn.execute("SELECT aq.create_queue('parcels')")
    producer = threading.Thread(target=produce)
    producer.start()
    with pytest.raises(CannotSend):
        exec(program.replace("dbname=shop", server.conninfo()), {"send": send})
    producer.join()
    assert sent == ["first", "second"]
    assert until(lambda: take(conn, "parcels")) == ["unwanted"]


def program_for(*words):
    """The block of docs/testing.md whose fence has these words."""
    [program] = re.findall(rf"```{' '.join(map(re.escape, words))}\n(.*?)```", (DOCS / "testing.md").read_text(), re.S)
    return program


def test_tests(server, tmp_path):
    """The tests for pytest in docs/testing.md pass."""
    (tmp_path / "test_parcels.py").write_text(program_for("python").replace("parcels", "tested"))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_parcels.py"],
        cwd=tmp_path,
        env={**os.environ, "TEST_DATABASE": server.conninfo()},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "3 passed" in result.stdout, result.stdout + result.stderr


def test_tests_of_django(server, tmp_path):
    """The tests for Django in docs/testing.md pass, in the test database that Django makes by their migration."""
    settings = """
SECRET_KEY, USE_TZ, INSTALLED_APPS = "x", True, ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "TEST": {"NAME": "django_test"}}}
"""
    (tmp_path / "settings.py").write_text(settings)
    (tmp_path / "shop/migrations").mkdir(parents=True)
    for name in ("shop/__init__.py", "shop/migrations/__init__.py"):
        (tmp_path / name).write_text("")
    for name in ("shop/migrations/0001_queues.py", "shop/orders.py", "shop/tests.py"):
        (tmp_path / name).write_text(program_for("python", name))
    result = subprocess.run(
        [sys.executable, "-m", "django", "test", "--noinput"],
        cwd=tmp_path,
        env={**server.environment(), "PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "settings"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Ran 3 tests" in result.stderr and result.returncode == 0, result.stdout + result.stderr
