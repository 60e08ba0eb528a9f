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
    "dbms_aq.dequeue": """CALL dbms_aq.dequeue('{topic}', dbms_aq.dequeue_options_t(consumer_name => '"{consumer}"'), NULL, NULL::text, NULL)""",
    "immediate": """CALL dbms_aq.dequeue('{topic}', dbms_aq.dequeue_options_t(consumer_name => '"{consumer}"', visibility => 1), NULL, NULL::text, NULL)""",
    "dbms_aq.listen": """CALL dbms_aq.listen(ARRAY[sys.aq$_agent('"{consumer}"', '{topic}', NULL)], NULL)""",
}


@pytest.mark.parametrize("consumer", ["a", "not yet"])
@pytest.mark.parametrize("how", list(WAITS))
def test_a_revoke_ends_the_wait(server, conn, topic, role, waiters, how, consumer):  # noqa: F811
    """The session that waits gets an error at once; one whose right stays waits on, and gets the message."""
    conn.execute("SELECT aq.grant_consumer(%s, %s, 'reader'), aq.grant_consumer(%s, 'b', 'reader')", [topic, consumer, topic])
    statement = WAITS[how]
    (waiter,) = waiters(1, topic, statement=statement.format(topic=topic, consumer=consumer))
    (stays,) = waiters(1, topic, statement=statement.format(topic=topic, consumer="b"))
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


@pytest.fixture
def team(server, role):
    """A group role that the role is a member of."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE team; GRANT team TO reader")
    yield "team"
    with server.connect() as conn:
        conn.execute("DROP OWNED BY team; DROP ROLE team")


def waits(conn, topic, waiters, how, grant, *settings):  # noqa: F811
    """A session of the role that waits for a by this right alone."""
    conn.execute(grant.format(topic=topic))
    (waiter,) = waiters(1, topic, statement=WAITS[how].format(topic=topic, consumer="a"))
    for setting in ("SET ROLE reader", *settings):
        waiter.connection.execute(setting)
    asleep(conn, [waiter.wait()])
    return waiter


RIGHTS = {
    "consumer": ("SELECT aq.grant_consumer('{topic}', 'a', 'reader')", "SELECT aq.revoke_consumer('{topic}', 'a', 'reader')"),
    "queue": ("SELECT aq.grant_queue('{topic}', 'reader', 'dequeue')", "SELECT aq.revoke_queue('{topic}', 'reader')"),
    "consumer, public": ("SELECT aq.grant_consumer('{topic}', 'a', 'public')", "SELECT aq.revoke_consumer('{topic}', 'a', 'public')"),
    "queue, public": ("SELECT aq.grant_queue('{topic}', 'public', 'dequeue')", "SELECT aq.revoke_queue('{topic}', 'public')"),
    "consumer, group": ("SELECT aq.grant_consumer('{topic}', 'a', 'team')", "SELECT aq.revoke_consumer('{topic}', 'a', 'team')"),
    "queue, group": ("SELECT aq.grant_queue('{topic}', 'team', 'dequeue')", "SELECT aq.revoke_queue('{topic}', 'team')"),
}
SESSIONS = {
    "default": (),
    "without pins": ("SET pgaq.session_pins = off",),
    "repeatable read": ("SET default_transaction_isolation = 'repeatable read'",),
}


def chosen(rights, elsewhere):
    """Every wait by every right in an ordinary session, and some in the others."""
    ordinary = [(how, right, "default") for how in WAITS for right in rights]
    others = [session for session in SESSIONS if session != "default"]
    return ordinary + [(how, right, session) for how in ("wait", "dequeue", "dbms_aq.dequeue") for right in elsewhere for session in others]


@pytest.mark.parametrize("how, right, session", chosen(RIGHTS, ("consumer", "queue, public")))
def test_a_revoke_of_the_only_right_ends_the_wait(conn, topic, team, waiters, how, right, session):  # noqa: F811
    """At once and with the same error, although the queue does not exist for the role any more."""
    grant, revoke = RIGHTS[right]
    waiter = waits(conn, topic, waiters, how, grant, *SESSIONS[session])
    conn.execute(revoke.format(topic=topic))
    assert waiter.answer() == "42501"
    put(conn, topic, 1)
    assert take(conn, topic, "a") == [1]


REVOKED = {
    "membership": ("SELECT aq.grant_consumer('{topic}', 'a', 'team')", "REVOKE team FROM reader"),
    "membership, queue": ("SELECT aq.grant_queue('{topic}', 'team', 'dequeue')", "REVOKE team FROM reader"),
    "drop owned": ("SELECT aq.grant_consumer('{topic}', 'a', 'reader')", "DROP OWNED BY reader"),
    "drop owned, queue": ("SELECT aq.grant_queue('{topic}', 'reader', 'dequeue')", "DROP OWNED BY reader"),
}


@pytest.mark.parametrize("how, revoked, session", chosen(REVOKED, ("membership, queue", "drop owned")))
def test_a_right_lost_by_a_command_of_the_server_gets_no_message(conn, topic, team, waiters, how, revoked, session):  # noqa: F811
    """Such a command wakes no waiter.  With the next message the session gets the error, and the one behind it the message."""
    grant, revoke = REVOKED[revoked]
    waiter = waits(conn, topic, waiters, how, grant, *SESSIONS[session])
    (behind,) = waiters(1, topic, statement=WAITS["dequeue"].format(topic=topic, consumer="a"))
    asleep(conn, [behind.wait()])
    conn.execute(revoke)
    put(conn, topic, 1)
    assert waiter.answer() == "42501"
    assert behind.answer() == "1"


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
        # two roles that will not exist have the same right
        conn.execute("SELECT aq.grant_consumer('news', 'of gone', 'missing')")
        conn.execute("DROP OWNED BY gone; DROP ROLE gone; ALTER ROLE renamed RENAME TO new_name; REASSIGN OWNED BY missing TO CURRENT_USER")
        expected = [
            ("made", "stays"),
            ("of all", None),
            ("of gone", "missing"),
            ("of missing", "missing"),
            ("of renamed", "new_name"),
            ("of stays", "stays"),
        ]
        assert list(conn.execute(rights)) == expected
    dump(server, "plain", tmp_path / "dump")
    text = (tmp_path / "dump").read_text()
    # as an administrator does for a role that the new server does not have
    (tmp_path / "dump").write_text(re.sub(r"GRANT REFERENCES ON TABLE aq_data\.q\d+ TO missing;", "", text))
    with server.connect() as conn:
        conn.execute("DROP OWNED BY missing; DROP ROLE missing")
    restore(server, "plain", tmp_path / "dump", other)
    with server.connect(other) as there:
        assert list(there.execute(rights)) == [row for row in expected if row[1] != "missing"]
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


def test_hints_name_the_role_as_it_is_granted(server, conn):
    """What the hint says, executed by the owner, grants it: also to a role whose name must be quoted."""
    conn.execute(
        """CREATE ROLE "Some Body"; SELECT aq.create_queue('hinted', multiple_consumers => true), aq.subscribe('hinted', 'Con''s')"""
    )
    conn.execute("""SELECT aq.grant_queue('hinted', 'Some Body', 'subscribe')""")
    with server.connect() as other:
        other.execute('SET ROLE "Some Body"')
        for attempt in ("SELECT aq.enqueue('hinted', '1')", "SELECT aq.dequeue('hinted', 'Con''s')"):
            with pytest.raises(db.Error) as caught:
                other.execute(attempt)
            assert caught.value.sqlstate == "42501"
            granted = re.search(r"aq\.grant_\w+\(.*\)", caught.value.diag.message_hint)
            conn.execute(f"SELECT {granted[0]}")
            other.execute(attempt)
    conn.execute("""SELECT aq.drop_queue('hinted', true); DROP ROLE "Some Body" """)
