"""A queue, or the privilege on it, goes at a named point, while a call, a view or the worker uses it."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, server_with_points, until
from pgaq import db

pytestmark = pytest.mark.test_build

TYPE = "aq.jms_message"


@pytest.fixture(scope="module")
def points_server(library):
    with pytest.MonkeyPatch.context() as patch, server_with_points(patch, library, "jms-points", r"test point|cancel") as server:
        yield server


def leased(conn, *queues):
    """A message of each queue, leased: the lists for aq_jms.acknowledge."""
    rows = []
    for queue in queues:
        conn.execute("SELECT aq.create_queue(%s, %s, retry_delay => '0')", [queue, TYPE])
        conn.execute("SELECT aq.enqueue(%s, ROW('text', '{}', NULL, NULL, 'body', NULL)::aq.jms_message)", [queue])
        rows += db.rows(conn, "SELECT msgid, receipt FROM aq.dequeue(%s, NULL::aq.jms_message, lease => '1 hour')", [queue])
    return [list(queues), [row["msgid"] for row in rows], [row["receipt"] for row in rows]]


def drop(conn, *queues):
    conn.execute("SELECT aq.drop_queue(q.queue_name, true) FROM aq.queues q WHERE q.queue_name = ANY (%s)", [list(queues)])


@pytest.mark.parametrize("call", ["acknowledge", "extend", "release"])
@pytest.mark.parametrize("meanwhile", ["SELECT aq.drop_queue('two', true)", "SELECT aq.revoke_queue('two', 'java')"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_queue_goes_while_leases_end(points_server, call, meanwhile, place):
    """One of three queues is dropped, or the privilege on it revoked, when it has been found: the others' leases end."""
    with points_server.connect() as conn, points_server.connect() as java, ThreadPoolExecutor() as pool:
        queues = ["one", "three"]
        queues.insert(place, "two")
        lists = leased(conn, *queues)
        conn.execute("CREATE ROLE java; SELECT aq.grant_queue(q, 'java') FROM unnest('{one,two,three}'::text[]) q")
        lists = [queues + ["gone"], lists[1] + lists[1][:1], lists[2] + lists[2][:1]]
        statement = f"SELECT aq.jms_{call}(%s::text[], array_fill(NULL::text, '{{4}}'), %s::uuid[], %s::bigint[]{', %s' if call == 'extend' else ''})"
        values = lists + (["2 hours"] if call == "extend" else [])
        java.execute("SET ROLE java")
        conn.execute("SELECT aq.point_arm('lease-found', 'wait', %s)", [place])
        try:
            came = pool.submit(db.value, java, statement, values)
            assert db.value(conn, "SELECT aq.point_await('lease-found')")
            conn.execute(meanwhile)
        finally:
            conn.execute("SELECT aq.point_reset()")
        assert came.result(PATIENCE) == [place, 3]
        # what the others' leases are now, the next call says
        stale = [0, 1, 2, 3] if call != "extend" else [place, 3]
        assert db.value(java, statement, values) == stale
        java.execute("RESET ROLE")
        drop(conn, "one", "two", "three")
        conn.execute("DROP OWNED BY java; DROP ROLE java")
        assert not db.rows(conn, "SELECT * FROM aq.check('20 s')")


@pytest.mark.parametrize("view", ["aq.subscribers", "aq.messages", "aq.shards", "aq.partitions", "aq.metrics()"])
def test_a_queue_goes_while_a_view_reads(points_server, view):
    """A view leaves out a queue that another session drops before the view has pinned it."""
    with points_server.connect() as conn, points_server.connect() as reader, ThreadPoolExecutor() as pool:
        for queue in ("one", "two"):
            conn.execute("SELECT aq.create_queue(%s, multiple_consumers => true), aq.subscribe(%s, 'ann')", [queue, queue])
        conn.execute("SELECT aq.enqueue('one', '1'), aq.enqueue('two', '1')")
        reader.execute("SELECT count(*) FROM aq.enqueue('two', '1')")  # so that it pins only the other one anew
        reader.execute("SET pgaq.test_point = 'object-wanted:wait'")
        try:
            came = pool.submit(db.rows, reader, f"SELECT * FROM {view}")
            assert db.value(conn, "SELECT aq.point_await('object-wanted')")
            conn.execute("SELECT aq.drop_queue('one', true)")
        finally:
            until(lambda: conn.execute("SELECT aq.point_reset()") and came.done(), "the view has been read")
        assert "two" in str(came.result(PATIENCE))
        drop(conn, "one", "two")
        assert not db.rows(conn, "SELECT * FROM aq.check('20 s')")


def test_the_name_of_a_temporary_queue_is_used_again(points_server):
    """The worker has found the queue, which a session then drops; it creates another one of this name, which stays."""
    with points_server.connect() as conn:
        with points_server.connect() as owner:
            queue = db.value(owner, "SELECT aq.create_temporary_queue()")
            conn.execute("SELECT aq.point_arm('temporary-found', 'wait')")
        try:
            assert db.value(conn, "SELECT aq.point_await('temporary-found')")
            conn.execute("SELECT aq.drop_queue(%s, true)", [queue])
            conn.execute("SELECT aq.create_queue(%s)", [queue])
        finally:
            conn.execute("SELECT aq.point_reset()")
        until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.temporary") == 0, "the worker has forgotten it")
        conn.execute("SELECT aq.create_temporary_queue()")  # its removal comes after that of the other one
        assert db.value(conn, "SELECT count(*) FROM aq.queues WHERE queue_name = %s", [queue]) == 1
        drop(conn, queue)


def test_a_cancelled_receive_counts_as_an_attempt(points_server):
    """Between the take and the commit; otherwise a message whose delivery is cancelled each time would never fail."""
    with points_server.connect() as conn, points_server.connect() as java:
        conn.execute("SELECT aq.create_queue('one', %s, retry_delay => '0', max_retries => 1)", [TYPE])
        conn.execute("SELECT aq.enqueue('one', ROW('text', '{}', NULL, NULL, 'body', NULL)::aq.jms_message)")
        java.execute("SET pgaq.test_point = 'before-log:cancel'")
        for attempts in (1, 2):
            with pytest.raises(psycopg.errors.QueryCanceled):
                java.execute("CALL aq_jms.receive('{one}', NULL, NULL, '{1}', '0', '1 hour')")
            state = [{"state": "READY", "attempts": 1}] if attempts == 1 else []
            until(
                lambda: (
                    db.rows(
                        conn, "SELECT state, attempts FROM aq.messages WHERE queue_name = 'one' AND state IN ('READY', 'LOCKED', 'LEASED')"
                    )
                    == state
                ),
                attempts,
            )
        drop(conn, "one")


# -- aq_jms.send: all or nothing

OUT = ("first", "second")


def packed(text):
    return struct.pack(">i", -1) if text is None else struct.pack(">i", len(text)) + text.encode()


def group(queue, number):
    """Messages for aq_jms.send."""
    message = packed("text") + packed("{}") + packed(None) + packed(None) + packed("body") + packed(None)
    return packed(queue) + struct.pack(">iqq", 4, 0, 0) + 3 * packed(None) + struct.pack(">i", number) + number * message


class Sending:
    """Two messages for one queue and one for another one, and the acknowledgement of a message of a third one."""

    def __init__(self, conn, store):
        self.conn = conn
        self.queues = [*OUT, "source"]
        if store == "queue table":
            conn.execute("SELECT aq.create_queue_table('sending', %s)", [TYPE])
        for queue in self.queues:
            if store == "queue table":
                conn.execute("SELECT aq.create_queue(%s, queue_table => 'sending', retry_delay => '0')", [queue])
            else:
                conn.execute("SELECT aq.create_queue(%s, %s, retry_delay => '0')", [queue, TYPE])
        conn.execute("SELECT aq.enqueue('source', ROW('text', '{}', NULL, NULL, 'body', NULL)::aq.jms_message)")
        (row,) = db.rows(conn, "SELECT msgid, receipt FROM aq.dequeue('source', NULL::aq.jms_message, lease => '1 hour')")
        acknowledge = packed("source") + packed(None) + struct.pack(">qi", row["receipt"], 1) + row["msgid"].bytes
        self.values = [group("first", 2) + group("second", 1), acknowledge]

    def send(self, conn):
        conn.execute("SELECT aq_jms.send(%s, %s)", self.values)

    def state(self):
        return [
            db.value(
                self.conn,
                "SELECT count(*) FROM aq.messages WHERE queue_name = %s AND state = %s",
                [queue, "LEASED" if queue == "source" else "READY"],
            )
            for queue in self.queues
        ]

    def nothing_was_done(self):
        """And the same call does all of it."""
        until(lambda: self.state() == [0, 0, 1], "nothing is sent, the lease goes on")
        assert (
            db.value(self.conn, "SELECT count(*) FROM aq.messages WHERE queue_name = ANY (%s) AND state <> 'PROCESSED'", [self.queues]) == 1
        )
        self.send(self.conn)
        self.all_was_done()

    def all_was_done(self):
        until(lambda: self.state() == [2, 1, 0], "all is sent, the lease has ended")
        for queue, number in zip(self.queues, (2, 1, 0)):
            assert len(db.rows(self.conn, "SELECT FROM aq.dequeue(%s, NULL::aq.jms_message, max_messages => 9)", [queue])) == number
        # the worker clears up after a PREPARE that has failed
        until(lambda: not db.rows(self.conn, "SELECT * FROM aq.check()"), "no finding")


@pytest.fixture
def sending(request, points_server):
    store = request.node.callspec.params["store"]
    with points_server.connect() as conn:
        made = Sending(conn, store)
        conn.execute("SELECT aq.point_reset()")  # what it enqueued has arrived at points
        yield made
        conn.execute("SELECT aq.point_reset()")
        drop(conn, *OUT, "source")
        if store == "queue table":
            conn.execute("SELECT aq.drop_queue_table('sending', force => true)")


@pytest.mark.long
@pytest.mark.parametrize("action", ["error", "cancel", "terminate"])
@pytest.mark.parametrize(
    ("store", "point", "skip"),
    [
        (store, *place)
        for store in ("sharded", "queue table")
        for place in (("rows-inserted", 0), ("rows-inserted", 1), ("lease-found", 0), ("leases-held", 0))
    ]
    + [("sharded", "slots-reserved", 1), ("sharded", "rows-formed", 1), ("sharded", "before-log", 0), ("sharded", "after-log", 0)],
)
def test_a_send_ends_early(points_server, sending, store, point, skip, action):
    """At the first or the second queue, at the acknowledgement, and before the commit: nothing is half sent."""
    points_server.expect_log("test point|cancel|terminating")
    with points_server.connect() as java:
        if skip:
            sending.conn.execute("SELECT aq.point_arm(%s, %s, %s)", [point, action, skip])
        else:
            java.execute(f"SET pgaq.test_point = '{point}:{action}'")
        with pytest.raises(psycopg.Error):
            sending.send(java)
        assert java.closed == (action == "terminate")
    sending.nothing_was_done()


@pytest.mark.parametrize("store", ["sharded", "queue table"])
@pytest.mark.parametrize(("revoked", "error"), [("first", None), ("second", "42704"), ("source", None)])
def test_a_privilege_is_revoked_during_a_send(points_server, sending, store, revoked, error):
    """It does not wait for the send: that goes on if it has used the queue, otherwise nothing is sent or acknowledged."""
    conn = sending.conn
    conn.execute("CREATE ROLE java")
    conn.execute("SELECT aq.grant_queue(q, 'java') FROM unnest(%s::text[]) q", [sending.queues])
    try:
        with points_server.connect() as java, ThreadPoolExecutor() as pool:
            java.execute("SET ROLE java")
            conn.execute("SELECT aq.point_arm('rows-inserted', 'wait')")
            sent = pool.submit(sending.send, java)
            try:
                assert db.value(conn, "SELECT aq.point_await('rows-inserted')")
                conn.execute("SELECT aq.revoke_queue(%s, 'java')", [revoked])
            finally:
                conn.execute("SELECT aq.point_reset()")
            if error is None:
                sent.result(PATIENCE)
            else:
                with pytest.raises(psycopg.Error) as raised:
                    sent.result(PATIENCE)
                assert raised.value.sqlstate == error
    finally:
        conn.execute("DROP OWNED BY java")
        conn.execute("DROP ROLE java")
    if error is None:
        sending.all_was_done()
    else:
        sending.nothing_was_done()


@pytest.mark.long
@pytest.mark.parametrize("store", ["sharded", "queue table"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "error", "terminate"])
def test_a_send_is_prepared(points_server, sending, store, end):
    points_server.expect_log("test point|terminating")
    with points_server.connect() as java:
        java.execute("BEGIN")
        sending.send(java)
        if end in ("error", "terminate"):
            java.execute(f"SET LOCAL pgaq.test_point = 'before-prepare:{end}'")
            with pytest.raises(psycopg.Error):
                java.execute("PREPARE TRANSACTION 'sent'")
        else:
            java.execute("PREPARE TRANSACTION 'sent'")
            assert sending.state()[:2] == [0, 0]
    if end in ("COMMIT", "ROLLBACK"):
        sending.conn.execute(f"{end} PREPARED 'sent'")
    if end == "COMMIT":
        sending.all_was_done()
    else:
        sending.nothing_was_done()
