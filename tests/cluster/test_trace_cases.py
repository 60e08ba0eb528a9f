"""The four cases of the AQ study (listen, then dequeue) as traces, and what they cost: a sum of phases.

        1	the message is there already
        2	the session listens first, the message comes then
        3	a message for somebody else comes first
        4	nothing comes, the time is over

S is what a listen does until it waits, W what it does each time the wait ends, L the look that finds the message, U how it
leaves, Q the dequeue.  Counted are gets and releases of every object by place in the code, and waits.
"""

from __future__ import annotations

from collections import Counter

import pytest

from conftest import put, take, until
from pgaq import db
from test_wait import Waiter

SETTINGS = {"pgaq.fetch_patience": "-1"}
MINE, ANOTHER = "ksub_1", "ksub_31"

pytestmark = pytest.mark.sharded


class Study:
    """One traced session that listens for MINE, and one that enqueues."""

    def __init__(self, server, conn, mode, pins="on"):
        self.conn = conn
        db.execute(conn, "SELECT aq.create_queue('msg', multiple_consumers => true, shards => 1)")
        db.execute(conn, "SELECT aq.subscribe('msg', c) FROM unnest(%s::text[]) c", [[MINE, ANOTHER]])
        self.session = Waiter(server, "msg", MINE)
        db.execute(self.session.connection, f"SET pgaq.listen_wakeup = {mode}; SET pgaq.session_pins = {pins}")
        # everything has been used once
        self.listen("0.01 s")
        assert self.session.answer() is None
        self.publish(MINE, ANOTHER)
        assert self.dequeue() == [MINE]
        take(conn, "msg", ANOTHER)

    def close(self):
        self.session.close()
        db.execute(self.conn, "SELECT aq.trace_stop(pid) FROM aq.traces; SELECT aq.drop_queue('msg', force => true)")

    def listen(self, timeout):
        self.session.statement = f"CALL aq.listen(ARRAY['msg'], ARRAY['{MINE}'], '{timeout}', NULL, NULL)"
        self.session.wait()

    def publish(self, *consumers):
        for consumer in consumers:
            put(self.conn, "msg", consumer, recipients=[consumer])

    def dequeue(self):
        return take(self.session.connection, "msg", MINE, number=1)

    def counts(self):
        rows = db.rows(self.conn, "SELECT * FROM aq.trace_objects(%s)", [self.session.pid])
        found = Counter()
        for row in rows:
            place = (row["operation"], row["object"], row["location"])
            found[*place, "get"] += row["gets"]
            found[*place, "release"] += row["releases"]
        return +found

    def waits_begun(self):
        return db.value(self.conn, "SELECT count(*) FROM aq.trace(%s) WHERE operation = 'wait' AND action = 'begin'", [self.session.pid])

    def run(self, *, before=(), others=0, own=1, timeout="60 s", false_wakeups=0):
        """Counts when it waits for the first time, and at the end."""
        # the look that finds out that there is nothing takes the stream's latch, those that follow do not
        self.listen("0.01 s")
        assert self.session.answer() is None
        self.publish(*before)
        db.execute(self.conn, "SELECT aq.trace_start(%s)", [self.session.pid])
        self.listen(timeout)
        waiting = None
        if not before:
            until(lambda: self.waits_begun() == 1, "the session listens")
            waiting = self.counts()
            for number in range(others):
                self.publish(ANOTHER)
                until(lambda: self.waits_begun() == 1 + min(number + 1, false_wakeups), "it listens again")
            self.publish(*[MINE] * own)
        if before or own:
            assert self.session.answer() == "msg"
            assert self.dequeue() == [MINE]
        else:
            assert self.session.answer() is None
        db.execute(self.conn, "SELECT aq.trace_stop(%s)", [self.session.pid])
        assert len(take(self.conn, "msg", ANOTHER)) == others
        return waiting, self.counts()


@pytest.fixture
def study(request, server, conn):
    made = Study(server, conn, *request.param.split())
    yield made
    made.close()


def minus(a, b):
    """Every count of b is in a, too."""
    assert not b - a, f"{b - a} too much"
    return a - b


def times(n, counts):
    return Counter({key: n * count for key, count in counts.items()})


@pytest.mark.parametrize("study", ["broadcast"], indirect=True)
def test_broadcast_costs_a_phase_for_each_false_wake_up(study):
    """Fitted from the four cases, the phases predict a fifth and a sixth exactly."""
    _, case1 = study.run(before=[MINE])
    waiting, case2 = study.run()
    _, case3 = study.run(others=1, false_wakeups=1)
    _, case4 = study.run(own=0, timeout="0.3 s")

    wake = minus(case3, case2)
    found = minus(case2, case4)
    leave = minus(minus(case4, waiting), wake)
    # the phases are what they are called
    channel = ("latch", "channel operations parent latch")
    listen = ("wait", "wait for unread message on broadcast channel", None, "get")
    assert wake[*channel, "wait: register", "get"] == wake[*channel, "wait: leave", "get"] == 1 == wake[listen]
    assert waiting[*channel, "wait: register", "get"] == 1 and waiting[listen] == 0
    assert leave == Counter({(*channel, "wait: leave", action): 1 for action in ("get", "release")})
    assert found == case1 and not any(key[:2] == channel or key[0] == "wait" for key in found)
    # nothing but the channel's latch is got for what is not there
    assert {key[1] for key in waiting + wake + leave if key[0] == "latch"} == {"channel operations parent latch"}

    _, case5 = study.run(others=4, false_wakeups=4)
    assert case5 == waiting + times(5, wake) + leave + found
    _, case6 = study.run(others=2, false_wakeups=2, own=0, timeout="5 s")
    assert case6 == waiting + times(3, wake) + leave
    # and the line of the study, in which a get and its release are two operations
    line = db.value(study.conn, "SELECT aq.trace_summary(%s)", [study.session.pid])
    assert f" {sum(n for key, n in case6.items() if key[0] != 'wait')}-Counter" in line


@pytest.mark.parametrize("study", ["broadcast off"], indirect=True)
def test_a_lock_and_a_pin_for_each_check(study):
    """With pgaq.session_pins = off each check of the queue locks and pins it, as in the study; the phases add up as well."""
    _, case2 = study.run()
    _, case3 = study.run(others=1, false_wakeups=1)
    _, case4 = study.run(own=0, timeout="0.3 s")
    wake = minus(case3, case2)

    def number(counts, operation, action="get"):
        return sum(n for key, n in counts.items() if key[0] == operation and key[3] == action)

    # a look checks twice: a lock and a pin each, and four gets of the queue's mutex; the rights are a row of a dictionary cache
    assert [number(wake, operation) for operation in ("lock", "pin", "latch")] == [2, 2, 2]
    mutexes = {
        name: sum(n for key, n in wake.items() if key[:2] == ("mutex", name) and key[3] == "get") for name in ("Library Cache", "Row Cache")
    }
    assert mutexes == {"Library Cache": 8, "Row Cache": 3} and sum(mutexes.values()) == number(wake, "mutex")
    for case in (case2, case3, case4):
        for operation in ("lock", "pin", "mutex", "latch"):
            assert number(case, operation) == number(case, operation, "release") > 0
    _, case5 = study.run(others=4, false_wakeups=4)
    assert case5 == case2 + times(4, wake)
    _, case6 = study.run(others=2, false_wakeups=2, own=0, timeout="5 s")
    assert case6 == case4 + times(2, wake)


@pytest.mark.parametrize("study", ["targeted"], indirect=True)
def test_targeted_has_no_false_wake_up(study):
    """Messages for others cost the listening session nothing."""
    _, case2 = study.run()
    _, case3 = study.run(others=1)
    _, case5 = study.run(others=4)
    assert case2 == case3 == case5
    assert sum(n for key, n in case2.items() if key[0] == "wait") == 1
    assert not any(key[1] == "channel operations parent latch" for key in case2)
