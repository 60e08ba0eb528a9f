"""LISTEN against dequeue by subscriber, with 16 + 16 sessions: the first contention study of the AQ documents.

Where every message wakes everybody who listens, the report of the interval shows the channel's latch and wake-ups in vain;
dequeue by subscriber has neither.  program.sql is the study's program; what a single session does is in a trace.
"""

from __future__ import annotations

import time

import pytest

from conftest import until
from pgaq import db
from test_program import METHODS, PROGRAM, Clients

SETTINGS = {"max_connections": "100", "pgaq.listen_wakeup": "broadcast", "pgaq.fetch_patience": "-1"}
SESSIONS, MESSAGES = 16, 10
CHANNEL = "channel operations parent latch"
WAITS = {"listen": "wait for unread message on broadcast channel", "subscriber": "Streams AQ: waiting for messages in the queue"}

pytestmark = pytest.mark.sharded  # the program has a queue table of its own


def statistic(conn, name):
    return db.value(conn, 'SELECT value::bigint FROM sys."v$sysstat" WHERE name = %s', [name])


def interval(server, conn, method):
    """Everybody waits, then everybody is sent messages; the report, what a trace of one session adds up to, false wake-ups."""
    clients = Clients(server)
    pids = []

    def dequeuer(number):
        def work(session):
            pids.append(session.info.backend_pid)
            got = 0
            while got != clients.numbers.get(number) and not clients.errors:
                got += db.value(session, f"CALL {METHODS[method]}(%s, 2, NULL)", [number]) is not None

        return work

    waiting = """SELECT count(*) FROM sys."v$session_wait" WHERE event = %s AND state = 'WAITING' AND pid = ANY (%s)"""
    first = db.value(conn, "SELECT dbms_workload_repository.create_snapshot()")
    false = statistic(conn, "queue wake-ups false")
    for number in range(1, SESSIONS + 1):
        clients.start(dequeuer(number))
    until(lambda: db.value(conn, waiting, [WAITS[method], list(pids)]) == SESSIONS, "everybody waits")
    db.execute(conn, "SELECT aq.trace_start(%s)", [pids[0]])
    clients.enqueue(1, MESSAGES)
    if method == "listen":
        # the others are woken by what is not for them; what is comes later, so that none finds it when it looks
        until(lambda: statistic(conn, "queue wake-ups false") - false >= SESSIONS - 1, "the herd")
    for number in range(2, SESSIONS + 1):
        clients.enqueue(number, MESSAGES)
    clients.join()
    objects = db.rows(conn, "SELECT object, location, gets, releases FROM aq.trace_objects(%s)", [pids[0]])
    false = statistic(conn, "queue wake-ups false") - false
    last = db.value(conn, "SELECT dbms_workload_repository.create_snapshot()")
    return db.value(conn, "SELECT aq.report_awr(%s, %s)", [first, last]), objects, false


def lines(report, word):
    """The report's rows that name it, by section."""
    return {section["id"]: row for section in report["sections"] for row in section["rows"] if word in row}


def test_listen_has_a_herd_that_subscribers_do_not_have(new_server):
    server = new_server("study", **SETTINGS)
    with server.connect() as conn:
        conn.execute(PROGRAM)
        conn.execute("CALL create_subscribers('msg_queue', %s)", [SESSIONS])

        report, objects, false = interval(server, conn, "listen")
        assert false >= SESSIONS - 1
        gets = lines(report, CHANNEL)["latch_activity"][1]
        print(f"listen: {gets} gets of the channel's latch and {false} wake-ups in vain for {SESSIONS * MESSAGES} messages")
        assert gets >= 2 * false
        assert "wait_histogram" in lines(report, WAITS["listen"])
        # one session: as often out of the channel's list as into it, but for the wait that it was in when the trace began
        times = {row["location"]: row["gets"] for row in objects if row["object"] == CHANNEL}
        assert times["wait: leave"] - times["wait: register"] in (0, 1)
        assert all(row["gets"] == row["releases"] for row in objects if row["object"] == CHANNEL)

        report, objects, false = interval(server, conn, "subscriber")
        assert false == 0
        assert CHANNEL not in {row["object"] for row in objects}
        assert not lines(report, CHANNEL) and not lines(report, WAITS["listen"])
        assert lines(report, WAITS["subscriber"])


def channel_of_one(server, sessions, seconds):
    """As many sessions listen as enqueue, for a time; what one that listens has got of the channel's latch."""
    clients = Clients(server)
    end = time.monotonic() + seconds
    found = {}

    def enqueuer(number):
        def work(session):
            sent = 0
            while time.monotonic() < end:
                session.execute("SELECT count(*) FROM generate_series(1, 20000)")
                session.execute("CALL enq(%s, NULL)", [number])
                sent += 1
            clients.numbers[number] = sent

        return work

    def dequeuer(number):
        def work(session):
            got = 0
            if number == sessions:
                db.execute(session, "SELECT aq.trace_start(operations => '{wait}')")
            while got != clients.numbers.get(number) and not clients.errors:
                got += db.value(session, "CALL listen_deq(%s, 1, NULL)", [number]) is not None
            if number == sessions:
                db.execute(session, "SELECT aq.trace_stop()")
                found.update(
                    db.row(
                        session,
                        "SELECT sum(gets)::int AS gets, sum(acquire_ns + hold_ns)::int8 AS ns FROM aq.trace_objects() WHERE object = %s",
                        [CHANNEL],
                    )
                )
                found["histogram"] = db.rows(
                    session,
                    "SELECT value, sum(count)::int AS n FROM aq.trace_histogram() WHERE object = %s AND measure = 'both' GROUP BY 1 ORDER BY 1",
                    [CHANNEL],
                )
                found["waits"] = db.value(session, "SELECT waits FROM aq.traces WHERE pid = pg_backend_pid()")
                found["own"] = got

        return work

    for number in range(1, sessions + 1):
        clients.start(dequeuer(number))
        clients.start(enqueuer(number))
    clients.join()
    return found | {"total": sum(clients.numbers.values())}


@pytest.mark.long
def test_gets_of_the_channel_by_sessions(new_server):
    """The third study: gets for a dequeue grow with the sessions, but less than they do, and most take as long as ever."""
    server = new_server("sessions", **SETTINGS)
    per_dequeue, usual = {}, {}
    with server.connect() as conn:
        conn.execute(PROGRAM)
        conn.execute("CALL create_subscribers('msg_queue', 32)")
        for sessions in (1, 2, 4, 8, 16, 32):
            found = channel_of_one(server, sessions, 5)
            per_dequeue[sessions] = found["gets"] / found["own"]
            usual[sessions] = max(found["histogram"], key=lambda row: row["n"])["value"]
            print(
                f"| {sessions} | {found['total']} | {found['own']} | {found['waits'] / found['own']:.2f} | {per_dequeue[sessions]:.2f} "
                f"| {found['ns'] / found['gets']:.0f} | {usual[sessions]} | {found['histogram'][-1]['value']} |"
            )
            # into the list and out of it, once for the listen and once for each wait, and a time-out now and then
            assert found["gets"] <= 2 * (found["waits"] + found["own"]) + 20
            conn.execute("CALL purge_queue_table()")
    assert per_dequeue[1] < per_dequeue[4] < per_dequeue[16] < 4 * per_dequeue[4]
    assert max(usual.values()) <= 8 * min(usual.values())
