"""The programs in the documentation that are not SQL (that is executed by tools/docs.py --run)."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from conftest import put, take, until
from pgaq import db

START = Path(__file__).resolve().parents[2] / "docs" / "start.md"
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
