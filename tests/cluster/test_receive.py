"""CALL aq.receive: waits without a snapshot and takes what it was woken for; a session that ends loses nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from conftest import PATIENCE, look, put, put_many, take, until
from pgaq import db
from test_wait import asleep, pause, waiters  # noqa: F401 (a fixture)

SETTINGS = {"max_connections": "100", "pgaq.fetch_patience": "-1"}


def payloads(waiter):
    """The received messages, or the SQLSTATE."""
    answer = waiter.answer()
    return [message["payload"] for message in json.loads(answer)] if answer.startswith("[") else answer


def in_vain(conn, queue, waiter):
    """A message wakes the session, which finds that another one has taken it."""
    before = waiter.switches()
    os.kill(waiter.pid, signal.SIGSTOP)
    try:
        put(conn, queue, "taken by another")
        assert take(conn, queue) == ["taken by another"]
    finally:
        os.kill(waiter.pid, signal.SIGCONT)
    until(lambda: waiter.switches() > before, "the wake-up")
    asleep(conn, [waiter])


@pytest.mark.parametrize("block", [False, True])
def test_holds_no_snapshot(server, conn, queue, waiters, block):  # noqa: F811
    """While it waits, also after an attempt that found nothing, and in a transaction block."""
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}', max_messages => 10, timeout => '5 min')")
    if block:
        waiter.connection.execute("BEGIN")
    held = "SELECT backend_xmin IS NOT NULL OR backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = %s"
    asleep(conn, [waiter.wait()])
    assert db.value(conn, held, [waiter.pid]) is False
    in_vain(conn, queue, waiter)
    assert db.value(conn, held, [waiter.pid]) is False
    put_many(conn, queue, 1, 3)
    assert payloads(waiter) == [1, 2, 3]
    if block:
        waiter.connection.execute("ROLLBACK")
    assert look(conn, queue) == ([1, 2, 3] if block else [])


def test_waits_for_the_rest_of_the_time(server, conn, queue, waiters):  # noqa: F811
    """A spurious wake-up does not restart the timeout: each sleep is shorter by the time that has passed."""
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}', timeout => '10 min')")
    left = """SELECT p3 FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING' AND event ~ 'message'"""
    asleep(conn, [waiter.wait()])
    for _ in range(3):
        before = db.value(conn, left, [waiter.pid])
        began = time.monotonic()
        pause(conn)
        passed = time.monotonic() - began
        in_vain(conn, queue, waiter)
        assert db.value(conn, left, [waiter.pid]) <= before - passed * 1_000_000
    assert not waiter.done()


def test_timeout(server, conn, queue, waiters):  # noqa: F811
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}', timeout => '0.5 s')")
    began = time.monotonic()
    assert payloads(waiter.wait()) == []
    assert time.monotonic() - began > 0.49


@pytest.mark.parametrize("option", ["condition => 'payload > ''5'''", "correlation => 'wanted%'"])
def test_only_what_it_chooses(server, conn, queue, waiters, option):  # noqa: F811
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}', {option})")
    asleep(conn, [waiter.wait()])
    put(conn, queue, 1, 2, correlation="another")
    asleep(conn, [waiter])
    assert not waiter.done()
    put(conn, queue, 6, correlation="wanted too")
    assert payloads(waiter) == [6]
    assert take(conn, queue) == [1, 2]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_levels(server, conn, queue, waiters, level):  # noqa: F811
    """Messages enqueued during the wait are received, although the statement's snapshot cannot see them."""
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}')")
    waiter.connection.execute(f"SET default_transaction_isolation = '{level}'")
    asleep(conn, [waiter.wait()])
    put(conn, queue, 1)
    assert payloads(waiter) == [1]


@pytest.mark.parametrize("how", ["cancel", "terminate"])
@pytest.mark.parametrize("woken", [False, True])
def test_a_session_that_ends_while_it_waits(server, conn, queue, waiters, how, woken):  # noqa: F811
    """It takes neither a message nor a wake-up with it, also when it was woken already."""
    server.expect_log("terminat|cancel")
    first, second = waiters(2, queue, statement=f"CALL aq.receive('{queue}')")
    asleep(conn, [first.wait()])
    if woken:
        asleep(conn, [second.wait()])
    os.kill(first.pid, signal.SIGSTOP)
    try:
        if woken:
            put(conn, queue, 1)
        db.execute(conn, f"SELECT pg_{how}_backend(%s)", [first.pid])
    finally:
        os.kill(first.pid, signal.SIGCONT)
    if not woken:
        if how == "cancel":
            assert payloads(first) == "57014"
        else:
            until(lambda: db.value(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", [first.pid]), "gone")
        asleep(conn, [second.wait()])
        put(conn, queue, 1)
    assert payloads(second) == [1]
    if how == "cancel" and not woken:
        put(conn, queue, 2)
        assert payloads(first.wait()) == [2]


def test_terminated_in_a_block_after_it_has_received(server, conn, queue, waiters):  # noqa: F811
    """The messages come back, without an attempt."""
    server.expect_log("terminat")
    (waiter,) = waiters(1, queue, statement=f"CALL aq.receive('{queue}', max_messages => 2)")
    put_many(conn, queue, 1, 2)
    waiter.connection.execute("BEGIN")
    assert payloads(waiter.wait()) == [1, 2]
    db.execute(conn, "SELECT pg_terminate_backend(%s)", [waiter.pid])
    until(lambda: look(conn, queue) == [1, 2], "the messages")
    assert [row[0] for row in conn.execute("SELECT attempts FROM aq.dequeue(%s, max_messages => 2)", [queue])] == [0, 0]


def test_each_message_is_received_once(server, conn, queue):
    """Eight consumers and two thousand messages: none twice, none left."""
    found, errors = [], []

    def consume():
        try:
            with server.connect() as mine:
                while True:
                    [messages] = mine.execute("CALL aq.receive(%s, max_messages => 3, timeout => '20 s')", [queue]).fetchone()
                    got = [message["payload"] for message in messages]
                    found.extend(n for n in got if n >= 0)
                    if not got:
                        errors.append("a consumer waited in vain")
                    if not got or -1 in got:
                        put(mine, queue, *[-1] * (got.count(-1) - 1))  # for the others
                        return
        except Exception as error:  # noqa: BLE001
            errors.append(repr(error))

    threads = [threading.Thread(target=consume) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        put(conn, queue, number)
    until(lambda: errors or len(found) == 2000, "all received")
    put(conn, queue, *[-1] * len(threads))
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    assert sorted(found) == list(range(2000))
