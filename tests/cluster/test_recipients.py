"""Recipients that are not subscribers: a name has a position in its queue only while it has messages or is used."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, generation, held, put, server_with_points, take, until, waiting_for
from pgaq import db
from pgaq_proof import faults

GRACE = 1.0
SETTINGS = {"pgaq.recipient_grace": "1s", "pgaq.reuse_grace": "0", "max_prepared_transactions": "5", "pgaq.message_cache_size": "64MB"}
AT_A_TIME = 923
RESERVE = 100

pytestmark = pytest.mark.own_tables

_names = itertools.count(1)


def make(conn, kind):
    """A topic of this kind, without subscribers."""
    name = f"names{next(_names)}"
    if kind == "sharded":
        db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => true)", [name])
    else:
        db.execute(
            conn,
            "SELECT aq.create_queue_table(%s, multiple_consumers => true), aq.create_queue(%s, queue_table => %s)",
            [f"public.t_{name}", name, f"public.t_{name}"],
        )
    return name


@pytest.fixture(params=["sharded", "queue table"])
def kind(request):
    return request.param


@pytest.fixture
def names(conn, kind):
    return make(conn, kind)


def replies(conn, topic, first, last):
    """One reply name per request: each gets its own message, and takes it; all in separate transactions."""
    conn.execute(f"""
    DO $$ BEGIN
        FOR i IN {first}..{last} LOOP
            PERFORM aq.enqueue('{topic}', i::text, recipients => ARRAY['reply' || i]);
            COMMIT;
            IF (SELECT array_agg(payload::int) FROM aq.dequeue('{topic}', 'reply' || i, 10)) IS DISTINCT FROM ARRAY[i] THEN
                RAISE EXCEPTION 'reply% did not get its message', i;
            END IF;
            COMMIT;
        END LOOP;
    END $$""")


def fill(conn, topic, number, prefix="full"):
    """This many names have one message each."""
    conn.execute(
        f"DO $$ BEGIN FOR i IN 1..{number} LOOP PERFORM aq.enqueue('{topic}', i::text, recipients => ARRAY['{prefix}' || i]); COMMIT; END LOOP; END $$"
    )


def recipients(conn, topic):
    return db.value(conn, "SELECT count(*) FROM aq.subscribers WHERE queue_name = %s AND kind = 'recipient'", [topic])


def known(conn, topic, name):
    return db.value(conn, "SELECT count(*) > 0 FROM aq.subscribers WHERE queue_name = %s AND consumer = %s", [topic, name])


def refused(conn, statement, *parameters):
    with pytest.raises(db.Error) as caught:
        conn.execute(statement, parameters)
    assert caught.value.sqlstate == "54000", caught.value
    return caught.value


def no_differences(conn):
    assert conn.execute("SELECT * FROM aq.check('10 s')").fetchall() == []


def test_a_loop_over_more_names_than_there_are_places(conn, names):
    """1,035 names, one after the other, and more; a subscriber with a backlog, which keeps partitions, and its messages, does not matter."""
    db.execute(conn, "SELECT aq.subscribe(%s, 'slow')", [names])
    put(conn, names, "kept")
    replies(conn, names, 1, 1035)
    replies(conn, names, 1036, 2000)
    assert recipients(conn, names) <= AT_A_TIME
    assert take(conn, names, "slow") == ["kept"]
    no_differences(conn)


def test_a_place_is_free_some_time_after_the_last_message(conn, names):
    put(conn, names, 1, 2, recipients=["ann"])
    put(conn, names, 3, recipients=["bob"])
    assert take(conn, names, "ann") == [1, 2]
    until(lambda: not known(conn, names, "ann"), "a place")
    assert known(conn, names, "bob")
    put(conn, names, 4, recipients=["ann"])
    assert take(conn, names, "ann") == [4]
    assert take(conn, names, "bob") == [3]
    until(lambda: recipients(conn, names) == 0, "both places")
    no_differences(conn)


def test_limit_and_reserve(conn, names):
    """Names with messages are not taken their places from; subscribers have places that recipients cannot take."""
    fill(conn, names, AT_A_TIME)
    error = refused(conn, "SELECT aq.enqueue(%s, '0', recipients => ARRAY['more'])", names)
    assert "transaction" in error.diag.message_hint and str(AT_A_TIME) in error.diag.message_detail
    for i in range(RESERVE):
        db.execute(conn, "SELECT aq.subscribe(%s, %s)", [names, f"sub{i}"])
    refused(conn, "SELECT aq.subscribe(%s, 'more')", names)
    assert take(conn, names, "full7") == [7]
    put(conn, names, 8, recipients=["more"])
    assert take(conn, names, "more") == [8]
    assert take(conn, names, "full923") == [923]
    no_differences(conn)


def test_expired_and_purged_messages_leave_no_name(conn, names):
    put(conn, names, 1, recipients=["late"], expiration="200 ms")
    put(conn, names, 2, recipients=["purged"])
    put(conn, names, 3, recipients=["delayed"], delay="1 h")
    assert db.value(conn, "SELECT aq.purge_queue(%s, 'purged')", [names]) == 1
    until(lambda: not known(conn, names, "late") and not known(conn, names, "purged"), "their places")
    assert known(conn, names, "delayed")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "PREPARE", "terminate"])
def test_a_running_transaction_keeps_the_name(server, conn, names, end):
    """Its message is not committed, so no counter shows it; then it is."""
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, names, "late", recipients=["mine"])
        fill(conn, names, AT_A_TIME - 1)
        refused(conn, "SELECT aq.enqueue(%s, '0', recipients => ARRAY['more'])", names)
        assert known(conn, names, "mine")
        if end == "PREPARE":
            other.execute("PREPARE TRANSACTION 'late'")
            assert take(conn, names, "full1") == [1]
            # all of its queue's names keep their places
            refused(conn, "SELECT aq.enqueue(%s, '0', recipients => ARRAY['more'])", names)
            other.execute("COMMIT PREPARED 'late'")
        elif end == "terminate":
            server.expect_log("terminat")
            db.execute(conn, "SELECT pg_terminate_backend(%s, 10000)", [other.info.backend_pid])
            other.close()
        else:
            other.execute(end)
        assert take(conn, names, "mine") == (["late"] if end in ("COMMIT", "PREPARE") else [])
        put(conn, names, 0, recipients=["more"])
        assert take(conn, names, "more") == [0]
    no_differences(conn)


@pytest.mark.parametrize("delivery", ["persistent", "buffered"])
def test_a_session_waits_under_a_name_before_its_first_message(server, conn, names, delivery):
    """By dequeue, wait and listen; while a session waits under a name, it has its place."""
    calls = [
        f"SELECT payload FROM aq.dequeue('{names}', %s, wait => '1 min', delivery_mode => '{delivery}')",
        f"CALL aq.wait('{names}', %s, '1 min', '{delivery}', NULL)",
        f"CALL aq.listen(ARRAY['{names}'], ARRAY[%s], '1 min', '{delivery}', NULL, NULL, NULL)",
    ]
    with server.connect() as first, server.connect() as second, server.connect() as third, ThreadPoolExecutor() as pool:
        waits = [
            pool.submit(lambda c=c, call=call, i=i: c.execute(call, [f"early{i}"]).fetchone())
            for i, (c, call) in enumerate(zip((first, second, third), calls))
        ]
        until(
            lambda: (
                len(
                    waiting_for(conn, "Streams AQ: waiting for messages in the queue")
                    + waiting_for(conn, "wait for unread message on broadcast channel")
                )
                == 3
            ),
            "three that wait",
        )
        for i in range(3):
            put(conn, names, i, recipients=[f"early{i}"], delivery_mode=delivery)
        assert waits[0].result(PATIENCE)[0] == 0
        waits[1].result(PATIENCE)
        waits[2].result(PATIENCE)
        # once more, where the name is known and without messages
        wait = pool.submit(lambda: first.execute(calls[0], ["early0"]).fetchone())
        until(lambda: waiting_for(conn, "Streams AQ: waiting for messages in the queue"), "one that waits")
        time.sleep(3 * GRACE)
        put(conn, names, 9, recipients=["early0"], delivery_mode=delivery)
        assert wait.result(PATIENCE)[0] == 9
    no_differences(conn)


def test_repeatable_read(server, conn, names):
    """A transaction with an old snapshot uses newer names, and positions that other names had at its start."""
    put(conn, names, 1, recipients=["old"])
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert db.value(other, "SELECT count(*) FROM aq.subscribers WHERE queue_name = %s AND consumer = 'old'", [names]) == 1
        assert take(conn, names, "old") == [1]
        until(lambda: not known(conn, names, "old"), "a place")
        put(conn, names, 2, recipients=["new"])
        put(other, names, 3, recipients=["newer", "old"])
        # enqueued after its snapshot
        assert take(other, names, "new") == []
        other.execute("COMMIT")
    assert [take(conn, names, name) for name in ("old", "new", "newer")] == [[3], [2], [3]]


def test_the_condition_of_a_dequeue_enqueues_for_its_consumer(server, conn, names):
    """The hold of the dequeue ends, that of the enqueue inside it does not."""
    body = f"BEGIN PERFORM aq.enqueue('{names}', '2', recipients => ARRAY['ann']); RETURN false; END"
    conn.execute(f"CREATE FUNCTION public.f_{names}() RETURNS boolean LANGUAGE plpgsql AS $$ {body} $$")
    put(conn, names, 1, recipients=["ann"])
    with server.connect() as other:
        other.execute("BEGIN")
        assert other.execute(f"SELECT payload FROM aq.dequeue('{names}', 'ann', condition => 'public.f_{names}()')").fetchall() == []
        assert take(conn, names, "ann") == [1]
        fill(conn, names, AT_A_TIME - 1)
        refused(conn, "SELECT aq.enqueue(%s, '0', recipients => ARRAY['more'])", names)
        other.execute("COMMIT")
    assert take(conn, names, "ann") == [2]
    no_differences(conn)


def test_a_purge_waits_while_the_place_is_given_back(server, conn, names):
    """It purges the messages of its consumer, not those of the one that has the place then."""
    put(conn, names, 0, recipients=["ann"])
    with server.connect() as other, server.connect() as purger, ThreadPoolExecutor() as pool:
        other.execute("BEGIN")
        put(other, names, 1, recipients=["cyd"])
        assert take(conn, names, "ann") == [0]
        purge = pool.submit(db.value, purger, "SELECT aq.purge_queue(%s, 'ann', block => true)", [names])
        until(
            lambda: db.value(conn, "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [purger.info.backend_pid]) > 0,
            "a purge that waits",
        )
        time.sleep(3 * GRACE)
        put(other, names, 2, recipients=["bob"])
        other.execute("COMMIT")
        assert purge.result(PATIENCE) == 0
    assert [take(conn, names, name) for name in ("ann", "bob", "cyd")] == [[], [2], [1]]
    no_differences(conn)


def test_views_do_not_show_a_message_under_the_name_of_another(conn, names):
    db.execute(conn, "SELECT aq.alter_queue(%s, retention => '1 h')", [names])
    put(conn, names, 1, recipients=["old"])
    assert take(conn, names, "old") == [1]
    time.sleep(3 * GRACE)
    assert known(conn, names, "old"), "what is kept has a name"
    db.execute(conn, "SELECT aq.alter_queue(%s, retention => '0')", [names])
    query = "SELECT consumer, payload::int FROM aq.messages WHERE queue_name = %s ORDER BY 2, 1"
    until(lambda: not known(conn, names, "old"), "a place")
    put(conn, names, 2, recipients=["new"])
    assert ("new", 1) not in conn.execute(query, [names]).fetchall()
    assert ("new", 2) in conn.execute(query, [names]).fetchall()


def test_the_view_of_a_queue_table_neither(server, conn):
    """A snapshot sees the message that the old name has taken, and the view reads the names as they are now."""
    names = make(conn, "queue table")
    db.execute(conn, "SELECT aq.alter_queue(%s, retention => '1 h')", [names])
    put(conn, names, 1, recipients=["old"])
    assert take(conn, names, "old") == [1]
    db.execute(conn, "SELECT sys._make_views(%s)", [f"public.t_{names}"])
    query = f"""SELECT consumer_name, user_data::int, msg_state FROM public."aq$t_{names}" ORDER BY 2"""
    assert conn.execute(query).fetchall() == [("OLD", 1, "PROCESSED")]
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(query)
        db.execute(conn, "SELECT aq.alter_queue(%s, retention => '0')", [names])
        until(lambda: not known(conn, names, "old"), "a place")
        put(conn, names, 2, recipients=["new"])
        assert other.execute(query).fetchall() == [(None, 1, "PROCESSED")]
        other.execute("ROLLBACK")
    assert ("NEW", 2, "READY") in conn.execute(query).fetchall()


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_restart(new_server, how, kind):
    """After a restart, messages keep their names, and names without messages lose their positions, even if partitions
    were evicted."""
    own = new_server("names", **{**SETTINGS, "pgaq.message_cache_size": "4MB", "pgaq.recipient_grace": "1h"})
    with own.connect() as conn:
        topic = make(conn, kind)
        put(conn, topic, "kept", recipients=["ann"])
        replies(conn, topic, 1, 1000)
        put(conn, topic, "doubt", recipients=["bob"])
        conn.execute("BEGIN")
        assert take(conn, topic, "bob") == ["doubt"]
        put(conn, topic, "new", recipients=["cyd"])
        conn.execute("PREPARE TRANSACTION 'doubt'")
    if how == "stop":
        own.restart()
    else:
        own.kill()
        own.start()
    with own.connect() as conn:
        fill(conn, topic, AT_A_TIME - recipients(conn, topic))
        # no position is freed while a prepared transaction exists
        refused(conn, "SELECT aq.enqueue(%s, '0', recipients => ARRAY['more'])", topic)
        conn.execute("COMMIT PREPARED 'doubt'")
        put(conn, topic, 0, recipients=["more"])
        assert [take(conn, topic, name) for name in ("ann", "bob", "cyd", "more")] == [["kept"], [], ["new"], [0]]
        conn.execute("ALTER SYSTEM SET pgaq.recipient_grace = '1s'")
        conn.execute("SELECT pg_reload_conf()")
        replies(conn, topic, 2001, 2100)
        no_differences(conn)


# -- subscribers that come and go


def pairs(conn, topic, number, between="NULL", name="'tab' || i"):
    """This many subscribers, one after the other, each in transactions of its own; between: an expression evaluated while it is one."""
    conn.execute(f"""
    DO $$ BEGIN
        FOR i IN 1..{number} LOOP
            PERFORM aq.subscribe('{topic}', {name});
            COMMIT;
            PERFORM {between};
            COMMIT;
            PERFORM aq.unsubscribe('{topic}', {name});
            COMMIT;
        END LOOP;
    END $$""")


def test_removed_subscribers_leave_no_place(conn, names):
    """More than there are places, without messages, with read and with unread ones, while one message waits for another subscriber."""
    db.execute(conn, "SELECT aq.subscribe(%s, 'durable')", [names])
    put(conn, names, "kept")
    pairs(conn, names, 1100)
    own = f"aq.enqueue('{names}', '1', recipients => ARRAY['tab' || i])"
    pairs(conn, names, 300, f"{own}, (SELECT count(*) FROM aq.dequeue('{names}', 'tab' || i, 10))")
    pairs(conn, names, 300, f"aq.enqueue('{names}', '1', recipients => ARRAY['tab' || i])")  # and do not read it
    for i in range(1022):
        db.execute(conn, "SELECT aq.subscribe(%s, %s)", [names, f"now{i}"])
    put(conn, names, "last")
    assert [sorted(take(conn, names, name)) for name in ("durable", "now0", "now500", "now1021")] == [
        ["kept", "last"],
        ["last"],
        ["last"],
        ["last"],
    ]
    no_differences(conn)


def test_subscribers_get_the_places_of_idle_names(new_server, kind):
    own = new_server("places", **{**SETTINGS, "pgaq.recipient_grace": "1h"})
    with own.connect() as conn:
        topic = make(conn, kind)
        put(conn, topic, "kept", recipients=["busy"])
        replies(conn, topic, 1, 300)
        assert recipients(conn, topic) == 301
        for i in range(1022):
            db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, f"now{i}"])
        refused(conn, "SELECT aq.subscribe(%s, 'more')", topic)
        assert take(conn, topic, "busy") == ["kept"]
        no_differences(conn)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "PREPARE"])
def test_a_transaction_that_knows_a_removed_subscriber_keeps_its_place(server, conn, names, end):
    """What it enqueues for the subscriber is not for the next one; what it has taken is not given to that."""
    db.execute(conn, "SELECT aq.subscribe(%s, 'durable'), aq.subscribe(%s, 'old')", [names, names])
    put(conn, names, "before")
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, names, "meanwhile")
        assert sorted(take(other, names, "old")) == ["before", "meanwhile"]
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'old')", [names])
        pairs(conn, names, 50, name="'next' || i")
        db.execute(conn, "SELECT aq.subscribe(%s, 'next')", [names])
        if end == "PREPARE":
            other.execute("PREPARE TRANSACTION 'knows'")
            pairs(conn, names, 5)
        other.execute("COMMIT PREPARED 'knows'" if end == "PREPARE" else end)
    pairs(conn, names, 50)
    for i in range(10):
        db.execute(conn, "SELECT aq.subscribe(%s, %s)", [names, f"new{i}"])
    put(conn, names, "after")
    expected = ["before", "after"] if end == "ROLLBACK" else ["before", "meanwhile", "after"]
    assert sorted(take(conn, names, "durable")) == sorted(expected)
    assert [take(conn, names, name) for name in ["next"] + [f"new{i}" for i in range(10)]] == [["after"]] * 11
    no_differences(conn)


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_places_of_removed_subscribers_after_a_restart(new_server, how, kind):
    """The next ones at their positions get none of their messages, whether read or not."""
    own = new_server("again", **{**SETTINGS, "pgaq.message_cache_size": "4MB"})
    with own.connect() as conn:
        topic = make(conn, kind)
        db.execute(conn, "SELECT aq.subscribe(%s, 'durable'), aq.subscribe(%s, 'read'), aq.subscribe(%s, 'unread')", [topic] * 3)
        put(conn, topic, *range(100))
        assert take(conn, topic, "read") == list(range(100))
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'read'), aq.unsubscribe(%s, 'unread')", [topic, topic])
        until(lambda: not db.value(conn, "SELECT count(*) FROM aq_internal.subscriber WHERE kind = 'removed'"), "their places are free")
        for i in range(3):
            db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, f"new{i}"])
    if how == "stop":
        own.restart()
    else:
        own.kill()
        own.start()
    with own.connect() as conn:
        pairs(conn, topic, 20)
        for i in range(3, 6):
            db.execute(conn, "SELECT aq.subscribe(%s, %s)", [topic, f"new{i}"])
        put(conn, topic, "new")
        assert [take(conn, topic, f"new{i}") for i in range(6)] == [["new"]] * 6
        assert set(take(conn, topic, "durable")) == {*range(100), "new"}
        no_differences(conn)


# -- moments inside the code


@pytest.fixture
def names_server(library, monkeypatch):
    with server_with_points(monkeypatch, library, "points", **{**SETTINGS, "pgaq.recipient_grace": "1h"}) as server:
        yield server


@pytest.fixture
def soon_server(library, monkeypatch):
    """Idle recipients lose their places after a second, from the start: a worker that learns it later may look only after a minute."""
    with server_with_points(monkeypatch, library, "points", **SETTINGS) as server:
        yield server


@pytest.mark.test_build
def test_enqueue_while_the_place_is_given_back(soon_server, kind):
    """A session that knows the name, and one that has got its place just now."""
    with soon_server.connect() as conn, soon_server.connect() as other, ThreadPoolExecutor() as pool:
        topic = make(conn, kind)
        for payload, (point, late) in enumerate((("recipients-closing", False), ("recipients-gone", False), ("recipients-closing", True))):
            put(other, topic, 0, recipients=["ann"])
            assert take(other, topic, "ann") == [0]
            if late:
                other.execute("BEGIN")
                put(other, topic, "mine", recipients=["bob"])
                assert take(conn, topic, "bob") == []
            with held(soon_server, point):
                assert db.value(conn, "SELECT aq.point_await(%s)", [point])
                came = pool.submit(put, other, topic, payload + 1, recipients=["ann"])
                time.sleep(0.5)
            came.result(PATIENCE)
            if late:
                other.execute("COMMIT")
                assert take(conn, topic, "bob") == ["mine"]
            assert take(conn, topic, "ann") == [payload + 1]
        no_differences(conn)


@pytest.mark.test_build
@pytest.mark.parametrize("mode", ["remove", "browse"])
def test_dequeue_while_the_place_is_given_back(names_server, kind, mode):
    """A dequeue does not get the messages of the name that gets the place, nor miss its own."""
    with names_server.connect() as conn, names_server.connect() as other, ThreadPoolExecutor() as pool:
        topic = make(conn, kind)
        put(conn, topic, 0, recipients=["ann"])
        assert take(conn, topic, "ann") == [0]
        got = "SELECT payload FROM aq.dequeue(%s, 'ann', 10, mode => %s)"
        other.execute("SET pgaq.test_point = 'recipient-held:wait'")
        came = pool.submit(lambda: other.execute(got, [topic, mode]).fetchall())
        try:
            assert db.value(conn, "SELECT aq.point_await('recipient-held')")
            fill(conn, topic, AT_A_TIME - 1)
            refused(conn, "SELECT aq.enqueue(%s, '1', recipients => ARRAY['bob'])", topic)
        finally:
            conn.execute("SELECT aq.point_reset()")
        assert came.result(PATIENCE) == []
        put(conn, topic, 1, recipients=["bob"])
        assert not known(conn, topic, "ann")
        other.execute("RESET pgaq.test_point")
        assert other.execute(got, [topic, mode]).fetchall() == []
        assert take(conn, topic, "bob") == [1]
        no_differences(conn)


@pytest.mark.test_build
@pytest.mark.parametrize("options", ["", ", condition => 'true'", ", lease => '1 min'"])
def test_a_dequeue_that_has_begun_gets_nothing_of_a_paused_consumer(names_server, options):
    """Nothing is taken after the commit of aq.pause, which does not wait for it.  (Of a queue table, one that has begun can still get messages.)"""
    with names_server.connect() as conn, names_server.connect() as other, ThreadPoolExecutor() as pool:
        topic = make(conn, "sharded")
        db.execute(conn, "SELECT aq.subscribe(%s, 'ann')", [topic])
        put(conn, topic, 1)
        with held(names_server, "recipient-held"):
            came = pool.submit(lambda: other.execute(f"SELECT payload FROM aq.dequeue(%s, 'ann'{options})", [topic]).fetchall())
            assert db.value(conn, "SELECT aq.point_await('recipient-held')")
            db.execute(conn, "SELECT aq.pause(%s, 'ann')", [topic])
        assert came.result(PATIENCE) == []
        db.execute(conn, "SELECT aq.resume(%s, 'ann')", [topic])
        assert take(conn, topic, "ann") == [1]
        no_differences(conn)


@pytest.mark.test_build
def test_dequeue_of_what_comes_while_the_place_is_closed(soon_server, kind):
    """The worker has closed the place; a message that is there is found."""
    with soon_server.connect() as conn, soon_server.connect() as other, soon_server.connect() as third, ThreadPoolExecutor() as pool:
        topic = make(conn, kind)
        put(conn, topic, 0, recipients=["ann"])
        third.execute("BEGIN")
        put(third, topic, 1, recipients=["bob"])
        with held(soon_server, "recipients-closing"):
            assert take(conn, topic, "ann") == [0]
            assert db.value(conn, "SELECT aq.point_await('recipients-closing')")
            came = pool.submit(take, other, topic, "ann")
            third.execute("COMMIT")
            assert take(third, topic, "bob") == [1]
            time.sleep(0.5)
            assert not came.done()
        assert came.result(PATIENCE) == []
        no_differences(conn)


@pytest.mark.test_build
@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
@pytest.mark.parametrize("point", ["recipients-closing", "recipients-gone"])
def test_the_worker_fails_while_it_gives_places_back(soon_server, kind, point, action):
    soon_server.expect_log(f"terminat|crash|signal 9|{point}")
    with soon_server.connect() as conn:
        topic = make(conn, kind)
        put(conn, topic, 1, recipients=["ann"])
        put(conn, topic, 2, recipients=["bob"])
        before = generation(soon_server)
        faults.arm(soon_server, point, action)
        assert take(conn, topic, "ann") == [1]
        if action == "crash":
            until(lambda: generation(soon_server) not in (None, before), "a crash")
    with soon_server.connect() as conn:
        put(conn, topic, 3, recipients=["ann", "bob"])
        assert take(conn, topic, "ann") == [3]
        assert sorted(take(conn, topic, "bob")) == [2, 3]
        until(lambda: recipients(conn, topic) == 0, "their places")
        no_differences(conn)


@pytest.mark.test_build
@pytest.mark.sharded("the worker deletes the rows of a queue table")
@pytest.mark.parametrize("action", ["error", "terminate", "crash"])
def test_the_worker_fails_while_it_frees_the_place_of_a_subscriber(names_server, action):
    """The next one has none of the messages, also after a crash."""
    names_server.expect_log("terminat|crash|signal 9|positions-told")
    with names_server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true), aq.subscribe('t', 'durable'), aq.subscribe('t', 'old')")
        put(conn, "t", 1)
        before = generation(names_server)
        faults.arm(names_server, "positions-told", action)
        conn.execute("SELECT aq.unsubscribe('t', 'old')")
        if action == "crash":
            until(lambda: generation(names_server) not in (None, before), "a crash")
    with names_server.connect() as conn:
        until(lambda: not db.value(conn, "SELECT count(*) FROM aq_internal.subscriber WHERE kind = 'removed'"), "the place")
        db.execute(conn, "SELECT aq.subscribe('t', 'new')")
        put(conn, "t", 2)
        no_differences(conn)
    names_server.kill()
    names_server.start()
    with names_server.connect() as conn:
        assert [sorted(take(conn, "t", name)) for name in ("new", "durable")] == [[2], [1, 2]]
        no_differences(conn)


@pytest.mark.test_build
def test_a_place_that_the_worker_has_left_closing(soon_server, kind):
    """It has failed, and does not try again because no name is idle for long enough now: who enqueues has the place opened."""
    soon_server.expect_log("recipients-closing")
    with soon_server.connect() as conn:
        topic = make(conn, kind)
        put(conn, topic, 1, recipients=["ann"])
        faults.arm(soon_server, "recipients-closing", "error")
        assert take(conn, topic, "ann") == [1]
        until(lambda: "recipients-closing" in soon_server.log_text(), "the worker's error")
        conn.execute("SET statement_timeout = '30 s'")
        conn.execute("ALTER SYSTEM SET pgaq.recipient_grace = '1h'")
        conn.execute("SELECT pg_reload_conf()")
        put(conn, topic, 2, recipients=["ann"])
        assert take(conn, topic, "ann") == [2]


@pytest.mark.test_build
def test_the_place_goes_before_the_enqueue_has_it(soon_server, kind):
    """An enqueuer that is slow after the worker has given its recipient a place asks again."""
    with soon_server.connect() as conn, soon_server.connect() as other, ThreadPoolExecutor() as pool:
        topic = make(conn, kind)
        other.execute("SET pgaq.test_point = 'recipient-added:wait'")
        came = pool.submit(put, other, topic, 1, recipients=["ann"])
        try:
            assert db.value(conn, "SELECT aq.point_await('recipient-added')")
            until(lambda: not known(conn, topic, "ann"), "its place")
            put(conn, topic, 2, recipients=["bob"])
        finally:
            # it passes the point again with the next place
            until(lambda: conn.execute("SELECT aq.point_reset()") and came.done(), "the enqueue")
        came.result()
        assert take(conn, topic, "ann") == [1]
        assert take(conn, topic, "bob") == [2]


@pytest.mark.test_build
def test_many_sessions(names_server, kind):
    """Sessions with names of their own, more than there are places, get each message once."""
    with names_server.connect() as conn:
        topic = make(conn, kind)
        fill(conn, topic, AT_A_TIME - 20)

    def work(number):
        with names_server.connect() as mine:
            replies(mine, topic, number * 1000 + 1, number * 1000 + 60)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result(4 * PATIENCE)
    with names_server.connect() as conn:
        assert take(conn, topic, "full1") == [1]
        no_differences(conn)
