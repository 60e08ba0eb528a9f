"""Rights on single consumers: other sessions, dump and restore."""

from __future__ import annotations

import re

import pytest

from conftest import put, take
from pgaq import db
from test_dump import dump, other, restore  # noqa: F401 (a fixture)
from test_wait import asleep, waiters  # noqa: F401

SETTINGS = {"pgaq.fetch_patience": "-1"}


@pytest.fixture
def role(server):
    with server.connect() as conn:
        conn.execute("CREATE ROLE reader")
    yield "reader"
    with server.connect() as conn:
        conn.execute("DROP OWNED BY reader; DROP ROLE reader")


WAITS = {
    "wait": "CALL aq.wait('{topic}', '{consumer}', NULL, NULL)",
    "dequeue": "SELECT payload FROM aq.dequeue('{topic}', '{consumer}', wait => '1 hour')",
    "buffered": "SELECT payload FROM aq.dequeue('{topic}', '{consumer}', wait => '1 hour', delivery_mode => 'persistent_or_buffered')",
    "receive": "CALL aq.receive('{topic}', '{consumer}')",
    "listen": "CALL aq.listen(ARRAY['{topic}'], ARRAY['{consumer}'], NULL, NULL, NULL)",
}


@pytest.mark.parametrize("consumer", ["a", "not yet"])
@pytest.mark.parametrize("how", list(WAITS))
def test_a_revoke_ends_the_wait(server, conn, topic, role, waiters, how, consumer):  # noqa: F811
    """The session that waits gets an error at once; one whose right stays waits on, and gets the message."""
    conn.execute("SELECT aq.grant_consumer(%s, %s, 'reader'), aq.grant_consumer(%s, 'b', 'reader')", [topic, consumer, topic])
    statement = WAITS[how]
    waiter, = waiters(1, topic, statement=statement.format(topic=topic, consumer=consumer))
    stays, = waiters(1, topic, statement=statement.format(topic=topic, consumer="b"))
    for session in (waiter, stays):
        session.connection.execute("SET ROLE reader")
        session.wait()
    asleep(conn, [waiter, stays])
    conn.execute("SELECT aq.revoke_consumer(%s, %s, 'reader')", [topic, consumer])
    assert waiter.answer() == "42501"
    asleep(conn, [stays])
    put(conn, topic, "for both", recipients=[consumer, "b"])
    assert stays.answer() is not None
    with pytest.raises(db.Error) as caught:
        take(waiter.connection, topic, consumer)
    assert caught.value.sqlstate == "42501"


@pytest.mark.parametrize("how", list(WAITS))
def test_a_revoke_from_the_queue_ends_the_wait(conn, topic, role, waiters, how):  # noqa: F811
    """A session that waits by the privilege on the queue is not served after the revoke."""
    conn.execute("SELECT aq.grant_queue(%s, 'reader', 'dequeue')", [topic])
    waiter, = waiters(1, topic, statement=WAITS[how].format(topic=topic, consumer="a"))
    waiter.connection.execute("SET ROLE reader")
    waiter.wait()
    asleep(conn, [waiter])
    conn.execute("SELECT aq.revoke_queue(%s, 'reader', 'dequeue')", [topic])
    # the queue does not exist for a role without a right
    assert waiter.answer() == ("42501" if how in ("dequeue", "buffered") else "42704")


def test_a_revoke_reaches_sessions_that_have_dequeued(server, conn, topic, role):
    """Their descriptions of the queue are read again; a transaction that has not committed changes nothing for them."""
    conn.execute("SELECT aq.grant_consumer(%s, 'a', 'reader')", [topic])
    put(conn, topic, 1, 2)
    with server.connect() as reader, server.connect() as owner:
        reader.execute("SET ROLE reader")
        assert take(reader, topic, "a", 1) == [1]
        owner.execute("BEGIN")
        owner.execute("SELECT aq.revoke_consumer(%s, 'a', 'reader')", [topic])
        assert take(reader, topic, "a", 1) == [2]
        owner.execute("COMMIT")
        with pytest.raises(db.Error) as caught:
            take(reader, topic, "a")
        assert caught.value.sqlstate == "42704"  # with its last right the queue is gone, too
        conn.execute("SELECT aq.grant_consumer(%s, 'a', 'reader')", [topic])
        assert take(reader, topic, "a") == []
        conn.execute("DROP OWNED BY reader")
        with pytest.raises(db.Error):
            take(reader, topic, "a")


def test_rights_are_dumped_by_the_names_of_roles(server, other, tmp_path):  # noqa: F811
    """A role that was dropped, or is missing in the restore, becomes no other role, and not PUBLIC."""
    roles = ["stays", "renamed", "gone", "missing"]
    rights = "SELECT consumer, grantee::text FROM aq.privileges WHERE privilege = 'consumer' ORDER BY 1"
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('news', multiple_consumers => true)")
        for role in roles:
            conn.execute(f"CREATE ROLE {role}; SELECT aq.grant_consumer('news', 'of {role}', '{role}')")
        conn.execute("SELECT aq.grant_consumer('news', 'of all', NULL), aq.grant_queue('news', 'stays', 'subscribe')")
        conn.execute("SET ROLE stays; SELECT aq.subscribe('news', 'made'); RESET ROLE")
        conn.execute("DROP OWNED BY gone; DROP ROLE gone; ALTER ROLE renamed RENAME TO new_name; REASSIGN OWNED BY missing TO CURRENT_USER")
        expected = [("made", "stays"), ("of all", None), ("of missing", "missing"), ("of renamed", "new_name"), ("of stays", "stays")]
        assert list(conn.execute(rights)) == expected
    dump(server, "plain", tmp_path / "dump")
    text = (tmp_path / "dump").read_text()
    # as an administrator does for a role that the new server does not have
    (tmp_path / "dump").write_text(re.sub(r"GRANT REFERENCES ON TABLE aq_data\.q\d+ TO missing;", "", text))
    with server.connect() as conn:
        conn.execute("DROP OWNED BY missing; DROP ROLE missing")
    restore(server, "plain", tmp_path / "dump", other)
    with server.connect(other) as there:
        assert list(there.execute(rights)) == [row for row in expected if row[0] != "of missing"]
        put(there, "news", 1, recipients=["of stays", "of missing", "of gone", "of all", "made"])
        there.execute("SET ROLE stays")
        assert take(there, "news", "of stays") == [1] and take(there, "news", "of all") == [1] and take(there, "news", "made") == [1]
        for consumer in ("of missing", "of gone", "of renamed"):
            with pytest.raises(db.Error) as caught:
                take(there, "news", consumer)
            assert caught.value.sqlstate == "42501"
        there.execute("SELECT aq.unsubscribe('news', 'made')")
        with pytest.raises(db.Error):
            take(there, "news", "made")
        there.execute("RESET ROLE; DROP OWNED BY stays; DROP OWNED BY new_name")
    with server.connect() as conn:
        conn.execute("SELECT aq.drop_queue('news', true); DROP ROLE stays, new_name")
