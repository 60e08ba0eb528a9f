"""PREPARE TRANSACTION with messages inside: finished by others, after restarts and crashes."""

from __future__ import annotations

import pytest

from conftest import arrived, drop, look, put, put_many, ready, stopped_worker, take, until
from pgaq import db

FINISH = ["COMMIT PREPARED", "ROLLBACK PREPARED"]


def prepare(server, queue, gid, *, enqueue=(), dequeue=0, consumer=None):
    """One session's transaction, prepared; returns what it dequeued."""
    with server.connect() as conn:
        conn.execute("BEGIN")
        put(conn, queue, *enqueue)
        got = take(conn, queue, consumer, dequeue) if dequeue else []
        conn.execute(f"PREPARE TRANSACTION '{gid}'")
    return got


def disturb(server, how):
    """Between PREPARE and its end: nothing, a restart, a crash."""
    if how == "restart":
        server.restart()
    elif how == "immediate":
        server.restart("immediate")
    elif how == "kill":
        server.kill()
        server.start()
    elif how == "kill twice":
        server.kill()
        server.start()
        server.kill()
        server.start()


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "restart", "immediate", "kill", "kill twice"])
def test_enqueue(server, queue, how, finish):
    prepare(server, queue, "e", enqueue=[1, 2, 3])
    disturb(server, how)
    with server.connect() as conn:
        assert look(conn, queue) == []
        conn.execute(f"{finish} 'e'")
        if finish == "COMMIT PREPARED":
            assert arrived(conn, queue, 3) == [1, 2, 3]
        else:
            put(conn, queue, 9)
            assert arrived(conn, queue, 1) == [9]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "restart", "immediate", "kill", "kill twice"])
def test_dequeue(server, queue, how, finish):
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3, 4)
    assert prepare(server, queue, "d", dequeue=2) == [1, 2]
    disturb(server, how)
    with server.connect() as conn:
        assert take(conn, queue) == look(conn, queue) == []
        assert not ready(conn, queue)
        put(conn, queue, "other session")
        assert take(conn, queue) == ["other session"]
        conn.execute(f"{finish} 'd'")
        got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 100)", [queue]).fetchall()
        assert got == ([(1, 1), (2, 1)] if finish == "ROLLBACK PREPARED" else []) + [(3, 0), (4, 0)]
        assert not ready(conn, queue)


@pytest.mark.parametrize("finish", FINISH)
def test_what_a_crash_gives_back_beside_a_doubt(server, queue, finish):
    """It is there at once and has no attempt more, whatever becomes of the prepared transaction."""
    with server.connect() as conn:
        put(conn, queue, 1, 2, 3, 4)
        conn.execute("BEGIN")
        assert take(conn, queue, number=1) == [1]
        other = server.connect()
        other.execute("BEGIN")
        assert take(other, queue, number=2) == [2, 3]
        conn.execute("PREPARE TRANSACTION 'd'")
    server.kill()
    other.close()
    server.start()
    with server.connect() as conn:
        assert look(conn, queue) == []
        assert (
            db.value(conn, """SELECT coalesce(sum(total_waits), 0) FROM sys."v$system_event" WHERE event = 'aq: retry count write'""") == 0
        )
        conn.execute(f"{finish} 'd'")
        first = [(1, 1)] if finish == "ROLLBACK PREPARED" else []
        got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 100)", [queue]).fetchall()
        assert got == [*first, (2, 0), (3, 0), (4, 0)]


def test_attempts_of_what_was_rolled_back(server, queue):
    """A rolled back prepared removal counts as an attempt, permanently; keeping a message locked does not."""
    with server.connect() as conn:
        put(conn, queue, "removed", "locked")
        conn.execute("BEGIN")
        assert take(conn, queue, number=1) == ["removed"]
        assert db.value(conn, "SELECT payload FROM aq.dequeue(%s, mode => 'locked')", [queue]) == "locked"
        conn.execute("PREPARE TRANSACTION 'a'")
        conn.execute("ROLLBACK PREPARED 'a'")
        until(lambda: len(look(conn, queue)) == 2, "given back")
    server.kill()
    server.start()
    with server.connect() as conn:
        got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 10)", [queue]).fetchall()
        assert got == [("removed", 1), ("locked", 0)]


def test_the_last_attempt_is_prepared(conn, server):
    """Rolled back, the message is moved to the exception queue, though no session looks for it."""
    db.execute(conn, "SELECT aq.create_queue('dead'), aq.create_queue('mortal', exception_queue => 'dead', max_retries => 0)")
    put(conn, "mortal", 1)
    assert prepare(server, "mortal", "last", dequeue=1) == [1]
    conn.execute("ROLLBACK PREPARED 'last'")
    assert arrived(conn, "dead", 1) == [1]
    for name in ("mortal", "dead"):
        drop(conn, name)


@pytest.mark.parametrize("finish", FINISH)
def test_settled_when_the_command_returns(server, conn, queue, topic, finish):
    """After COMMIT PREPARED its messages are available, and after ROLLBACK PREPARED those that it took, for every
    session at once."""
    committed = finish == "COMMIT PREPARED"
    put(conn, queue, 1, 2)
    for gid in ("first", "second"):
        prepare(server, queue, gid, enqueue=[gid])
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, topic, "new")
        assert take(other, queue, number=1) == [1]
        other.execute("PREPARE TRANSACTION 'third'")
    with server.connect() as other:
        with stopped_worker(conn):
            for gid in ("first", "second", "third"):
                other.execute(f"{finish} '{gid}'")
            wanted = ["first", "second"] if committed else []
            # a browse would wait until the attempt is counted
            got = look(conn, queue) if committed else []
            assert sorted(m for m in got if m != 2) == wanted
            assert take(other, topic, "a") == take(conn, topic, "b") == (["new"] if committed else [])
        got = conn.execute("SELECT payload, attempts FROM aq.dequeue(%s, max_messages => 10)", [queue]).fetchall()
        assert sorted(got, key=str) == ([("first", 0), ("second", 0), (2, 0)] if committed else [(1, 1), (2, 0)])


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_both_sides_with_savepoints(server, queue, how, finish):
    with server.connect() as conn:
        put(conn, queue, "old 1", "old 2", "old 3")
        conn.execute("BEGIN")
        put(conn, queue, "new 1")
        assert take(conn, queue, number=1) == ["old 1"]
        conn.execute("SAVEPOINT s")
        put(conn, queue, "undone")
        assert take(conn, queue, number=1) == ["old 2"]
        conn.execute("ROLLBACK TO s")
        conn.execute("SAVEPOINT r")
        put(conn, queue, "new 2")
        conn.execute("RELEASE r")
        conn.execute("PREPARE TRANSACTION 'b'")
    disturb(server, how)
    with server.connect() as conn:
        conn.execute(f"{finish} 'b'")
        if finish == "COMMIT PREPARED":
            assert sorted(arrived(conn, queue, 4)) == ["new 1", "new 2", "old 2", "old 3"]
        else:
            until(lambda: len(look(conn, queue)) == 3, "given back")
            assert take(conn, queue) == ["old 1", "old 2", "old 3"]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
@pytest.mark.parametrize("savepoint", [False, True])
def test_own_message_taken_in_the_same_transaction(server, queue, how, finish, savepoint):
    with server.connect() as conn:
        conn.execute("BEGIN")
        if savepoint:
            conn.execute("SAVEPOINT s")
        put(conn, queue, 1, 2)
        if savepoint:
            conn.execute("RELEASE s")
        assert take(conn, queue, number=1) == [1]
        conn.execute("PREPARE TRANSACTION 'own'")
    disturb(server, how)
    with server.connect() as conn:
        assert take(conn, queue) == []
        conn.execute(f"{finish} 'own'")
        if finish == "COMMIT PREPARED":
            assert arrived(conn, queue, 1) == [2]
        else:
            assert not ready(conn, queue, timeout="0.2 s")
        lag = "SELECT lag FROM aq.subscribers WHERE queue_name = %s"
        until(lambda: db.value(conn, lag, [queue]) == 0, "a lag without the own message")


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_own_message_taken_behind_a_doubt(server, topic, how, finish):
    """Messages that wait for a prepared transaction, taken and locked by their own transaction: each is delivered once,
    in order."""
    with server.connect() as conn:
        conn.execute("BEGIN")
        put(conn, topic, "in doubt")
        conn.execute("PREPARE TRANSACTION 'x'")
        conn.execute("BEGIN")
        put(conn, topic, 1, 2)
        assert take(conn, topic, "a", 1) == [1]
        assert db.value(conn, "SELECT payload FROM aq.dequeue(%s, 'a', mode => 'locked')", [topic]) == 2
        conn.execute("COMMIT")
        put(conn, topic, 3)
    disturb(server, how)
    with server.connect() as conn:
        assert look(conn, topic, "a") == [] and look(conn, topic, "b") == []
        conn.execute(f"{finish} 'x'")
        first = ["in doubt"] if finish == "COMMIT PREPARED" else []
        assert arrived(conn, topic, len(first) + 2, "a") == [*first, 2, 3]
        assert arrived(conn, topic, len(first) + 3, "b") == [*first, 1, 2, 3]
        assert not ready(conn, topic, "a") and not ready(conn, topic, "b")


@pytest.mark.parametrize("finish", FINISH)
def test_taken_messages_do_not_wait_for_an_older_doubt(server, conn, queue, finish):
    """The session's older prepared transaction holds back its messages, not what a later one took."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    put(conn, queue, 1, 2)
    with server.connect() as other:
        other.execute("BEGIN")
        put(other, queue, "older")
        other.execute("PREPARE TRANSACTION 'older'")
        other.execute("BEGIN")
        put(other, queue, "later")
        assert take(other, queue, number=1) == [1]
        other.execute("PREPARE TRANSACTION 'later'")
    conn.execute(f"{finish} 'later'")
    committed = finish == "COMMIT PREPARED"
    left = [2] if committed else [1, 2]
    until(lambda: look(conn, queue) == left, "what was taken settled")
    assert take(conn, queue) == left
    conn.execute("COMMIT PREPARED 'older'")
    assert arrived(conn, queue, 2 if committed else 1) == (["older", "later"] if committed else ["older"])
    assert not ready(conn, queue)


@pytest.mark.sharded("a queue table sorts what is committed")
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_the_second_is_committed_first(server, queue, how):
    """The messages of a session's second prepared transaction wait for those of its first."""
    with server.connect() as conn:
        for gid in ("first", "second"):
            conn.execute("BEGIN")
            put(conn, queue, gid)
            conn.execute(f"PREPARE TRANSACTION '{gid}'")
    disturb(server, how)
    with server.connect() as conn:
        conn.execute("COMMIT PREPARED 'second'")
        assert take(conn, queue) == [] and not ready(conn, queue)
        conn.execute("COMMIT PREPARED 'first'")
        assert take(conn, queue) == ["first", "second"]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_topic(server, topic, how, finish):
    with server.connect() as conn:
        put(conn, topic, 1)
        conn.execute("BEGIN")
        put(conn, topic, 2)
        assert take(conn, topic, "a", 1) == [1]
        conn.execute("PREPARE TRANSACTION 't'")
    disturb(server, how)
    with server.connect() as conn:
        assert take(conn, topic, "b") == [1]
        assert take(conn, topic, "a") == []
        conn.execute(f"{finish} 't'")
        if finish == "COMMIT PREPARED":
            assert arrived(conn, topic, 1, "a") == [2]
            assert arrived(conn, topic, 1, "b") == [2]
        else:
            assert arrived(conn, topic, 1, "a") == [1]
            assert take(conn, topic, "b") == []


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "restart"])
def test_the_consumer_is_removed_meanwhile(server, topic, how, finish):
    """A prepared transaction has taken messages for one consumer: the other consumer gets every message once."""
    with server.connect() as conn:
        put(conn, topic, 1, 2, 3)
        assert prepare(server, topic, "r", dequeue=1, consumer="b") == [1]
        db.execute(conn, "SELECT aq.unsubscribe(%s, 'b')", [topic])
    disturb(server, how)
    with server.connect() as conn:
        assert look(conn, topic, "a") == [1, 2, 3]
        conn.execute(f"{finish} 'r'")
        assert db.rows(conn, "SELECT * FROM aq.check('20 s')") == []
        assert take(conn, topic, "a") == [1, 2, 3]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("shards", [1, 4])
def test_nothing_overtakes_what_is_in_doubt(server, conn, queue, finish, shards):
    """A later message of the same session is not delivered before one in doubt is decided."""
    name = f"{queue}_order"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => %s)", [name, shards])
    with server.connect() as producer:
        put(producer, name, "before")
        producer.execute("BEGIN")
        put(producer, name, "in doubt")
        producer.execute("PREPARE TRANSACTION 'o'")
        put(producer, name, "later")
        assert take(conn, name) == ["before"]
        assert take(conn, name) == []
        assert not ready(conn, name)
        conn.execute(f"{finish} 'o'")
        if finish == "COMMIT PREPARED":
            assert arrived(conn, name, 2) == ["in doubt", "later"]
        else:
            assert arrived(conn, name, 1) == ["later"]
    db.execute(conn, "SELECT aq.drop_queue(%s)", [name])


def test_nothing_overtakes_for_those_who_go_on(server, conn, queue):
    """Also for a reader who begins behind what is in doubt."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    with server.connect() as producer:
        producer.execute("BEGIN")
        put(producer, queue, "in doubt")
        producer.execute("PREPARE TRANSACTION 'on'")
        [behind] = put(conn, queue, "other")
        put(producer, queue, "later")
        query = "SELECT payload FROM aq.browse(%s, max_messages => 10, after => %s)"
        assert conn.execute(query, [queue, behind]).fetchall() == []
        conn.execute("COMMIT PREPARED 'on'")
        until(lambda: conn.execute(query, [queue, behind]).fetchall() == [("later",)], "the end of the doubt")
    assert take(conn, queue) == ["in doubt", "other", "later"]


@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_what_was_taken_holds_back_what_is_later(server, queue, how, finish):
    """For the same consumer, messages of the same session that come later; not those asked for by their ids."""
    topic = f"{queue}_topic"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue(%s, multiple_consumers => true, shards => 1)", [topic])
        db.execute(conn, "SELECT aq.subscribe(%s, c) FROM unnest(ARRAY['a', 'b']) c", [topic])
        put(conn, topic, 1)
        with server.connect() as other:
            put(other, topic, "other")
        _, _, _, five = put(conn, topic, 2, 3, 4, 5)
        conn.execute("BEGIN")
        assert take(conn, topic, "a", 1) == [1]
        query = "SELECT payload FROM aq.dequeue(%s, 'a', condition => 'payload = ''3''', mode => 'locked')"
        assert db.value(conn, query, [topic]) == 3
        conn.execute("PREPARE TRANSACTION 'taken'")
    disturb(server, how)
    with server.connect() as conn:
        assert take(conn, topic, "a") == ["other"]
        assert take(conn, topic, "b") == [1, "other", 2, 3, 4, 5]
        assert conn.execute("SELECT payload FROM aq.dequeue(%s, 'a', condition => 'true', max_messages => 10)", [topic]).fetchall() == []
        assert db.value(conn, "SELECT payload FROM aq.dequeue(%s, 'a', msgid => %s)", [topic, five]) == 5
        conn.execute(f"{finish} 'taken'")
        assert take(conn, topic, "a") == [*([] if finish == "COMMIT PREPARED" else [1]), 2, 3, 4]
        assert not ready(conn, topic, "a")
        db.execute(conn, "SELECT aq.drop_queue(%s)", [topic])


@pytest.mark.sharded("a queue table holds back by its sort list")
@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_delayed_messages_are_not_held_back(server, queue, how, finish):
    """They have no order: neither behind those that a prepared transaction has enqueued, nor behind those it has taken."""
    queue += "_one"
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
        put(conn, queue, 1, delay="0.01 s")
        assert ready(conn, queue, timeout="1 minute")
        for gid in ("first", "second"):
            conn.execute("BEGIN")
            put(conn, queue, gid, delay="0.01 s")
            if gid == "first":
                assert take(conn, queue) == [1]
            conn.execute(f"PREPARE TRANSACTION '{gid}'")
        put(conn, queue, "later", delay="0.01 s")
    disturb(server, how)
    with server.connect() as conn:
        assert arrived(conn, queue, 1) == ["later"]
        conn.execute("COMMIT PREPARED 'second'")
        assert arrived(conn, queue, 1) == ["second"]
        conn.execute(f"{finish} 'first'")
        assert arrived(conn, queue, 1) == (["first"] if finish == "COMMIT PREPARED" else [1])
        db.execute(conn, "SELECT aq.drop_queue(%s)", [queue])


def test_two_prepared_transactions_hold_back_the_same(server, conn, queue):
    """Each end of a transaction releases only messages that the other one does not hold."""
    put(conn, queue, 1, 2, 3, 4)
    for gid, message in (("first", 1), ("second", 3)):
        with server.connect() as other:
            other.execute("BEGIN")
            query = "SELECT payload FROM aq.dequeue(%s, msgid => (SELECT msgid FROM aq.messages WHERE queue_name = %s AND payload = %s))"
            assert db.value(other, query, [queue, queue, str(message)]) == message
            other.execute(f"PREPARE TRANSACTION '{gid}'")
    assert take(conn, queue) == []
    conn.execute("ROLLBACK PREPARED 'first'")
    assert take(conn, queue) == [1, 2]
    assert take(conn, queue) == [] and not ready(conn, queue)
    conn.execute("COMMIT PREPARED 'second'")
    assert take(conn, queue) == [4]


def test_many_sessions_are_held_back(server, conn, queue):
    """More than the table of held back sessions has room for at first."""
    queue += "_one"
    db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
    first = []
    for number in range(70):
        with server.connect() as producer:
            first.append(put(producer, queue, [number, 1], [number, 2])[0])
    with server.connect() as other:
        other.execute("BEGIN")
        for msgid in first:
            other.execute("SELECT aq.dequeue(%s, msgid => %s)", [queue, msgid])
        other.execute("PREPARE TRANSACTION 'many'")
    assert take(conn, queue) == []
    put(conn, queue, "other")
    assert take(conn, queue) == ["other"]
    conn.execute("ROLLBACK PREPARED 'many'")
    assert take(conn, queue) == [[number, n] for number in range(70) for n in (1, 2)]
    db.execute(conn, "SELECT aq.drop_queue(%s)", [queue])


def test_held_back_in_a_queue_made_again(server, conn, queue):
    """A session's data of a dropped queue are not used for the new one."""
    queue += "_again"
    for gid in ("old", "new"):
        db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
        with server.connect() as producer:
            put(producer, queue, 1, 2)
        assert prepare(server, queue, gid, dequeue=1) == [1]
        assert take(conn, queue) == []
        conn.execute(f"COMMIT PREPARED '{gid}'")
        assert take(conn, queue) == [2]
        db.execute(conn, "SELECT aq.drop_queue(%s)", [queue])


@pytest.mark.parametrize("finish", FINISH)
def test_order_behind_doubt_survives_a_crash(server, queue, finish):
    with server.connect() as producer:
        producer.execute("BEGIN")
        put(producer, queue, "in doubt")
        producer.execute("PREPARE TRANSACTION 'oc'")
        put(producer, queue, "later")
    server.kill()
    server.start()
    with server.connect() as conn:
        assert take(conn, queue) == []
        conn.execute(f"{finish} 'oc'")
        wanted = ["in doubt", "later"] if finish == "COMMIT PREPARED" else ["later"]
        assert arrived(conn, queue, len(wanted)) == wanted


def test_other_sessions_are_not_held_up(server, conn, queue):
    """Only the same session's messages wait behind a doubt."""
    prepare(server, queue, "slow", enqueue=["in doubt"])
    with server.connect() as other:
        put(other, queue, *range(20))
        assert arrived(conn, queue, 20) == list(range(20))
    conn.execute("COMMIT PREPARED 'slow'")
    assert arrived(conn, queue, 1) == ["in doubt"]


@pytest.mark.parametrize("what", ["put", "take"])
def test_waiter_is_woken_by_commit_prepared(server, conn, queue, what):
    """Whichever session finishes it, although no commit callback runs; also for messages that were held back."""
    import threading

    if what == "put":
        prepare(server, queue, "w", enqueue=[7])
    else:
        put(conn, queue, 6, 7)
        prepare(server, queue, "w", dequeue=1)
    answer = []
    with server.connect() as waiter:
        thread = threading.Thread(target=lambda: answer.append(ready(waiter, queue, timeout="60 s")))
        thread.start()
        pid = waiter.info.backend_pid
        until(lambda: db.value(conn, "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = %s", [pid]), "waiting")
        conn.execute("COMMIT PREPARED 'w'")
        thread.join(60)
    assert answer == [True]
    assert take(conn, queue) == [7]


def test_many_prepared_at_once(server, conn, queue, seed):
    """Fifty of them, finished in random order by several sessions, with a crash in the middle."""
    import random

    rng = random.Random(seed)
    wanted = []
    for number in range(50):
        prepare(server, queue, f"m{number}", enqueue=[[number, 1], [number, 2]])
    numbers = list(range(50))
    rng.shuffle(numbers)
    for position, number in enumerate(numbers):
        if position == 25:
            server.kill()
            server.start()
        verb = rng.choice(FINISH)
        if verb == "COMMIT PREPARED":
            wanted += [[number, 1], [number, 2]]
        with server.connect() as finisher:
            finisher.execute(f"{verb} 'm{number}'")
    with server.connect() as again:
        got = arrived(again, queue, len(wanted))
        assert sorted(got) == sorted(wanted)
        places = {tuple(m): i for i, m in enumerate(got)}
        assert all(places[n, 1] < places[n, 2] for n in {m[0] for m in wanted})


@pytest.mark.sharded("a queue table has one entry for each transaction")
def test_more_partitions_in_doubt_than_fit(new_server):
    """After a restart with a smaller table of them: queues that do not fit are refused until the transaction is finished."""
    server = new_server("doubts", max_prepared_transactions=2)
    queues = [f"d{number}" for number in range(9)]  # with a partition for each of ten priorities
    with server.connect() as conn:
        conn.execute("BEGIN")
        for queue in queues:
            db.execute(conn, "SELECT aq.create_queue(%s, shards => 1)", [queue])
        conn.execute("COMMIT")
        for queue in queues:
            for priority in range(10):
                put(conn, queue, 1, 2, priority=priority)
        conn.execute("BEGIN")
        for queue in queues:
            query = "SELECT payload FROM aq.dequeue(%s, condition => 'payload = ''1''', max_messages => 10)"
            assert conn.execute(query, [queue]).fetchall() == [(1,)] * 10
        conn.execute("PREPARE TRANSACTION 'large'")
    server.configure(max_prepared_transactions=1)
    server.expect_log("too many partitions are in use by prepared transactions")
    server.restart()
    refused = 0
    with server.connect() as conn:
        for queue in queues:
            try:
                assert take(conn, queue) == []
            except db.Error as error:
                assert error.diag.message_hint == "Finish some of them, or raise max_prepared_transactions (now 1) and restart the server."
                refused += 1
        assert refused == 1
        conn.execute("COMMIT PREPARED 'large'")
        for queue in queues:
            assert take(conn, queue) == [2] * 10


def test_queue_ddl_is_refused(server, conn, queue):
    for statement in (
        "SELECT aq.create_queue('never')",
        f"SELECT aq.alter_queue('{queue}', max_retries => 1)",
        f"SELECT aq.stop_queue('{queue}')",
        f"SELECT aq.drop_queue('{queue}')",
    ):
        conn.execute("BEGIN")
        conn.execute(statement)
        try:
            conn.execute("PREPARE TRANSACTION 'ddl'")
            state = "prepared"
        except db.Error as error:
            state = error.sqlstate
        assert state == "0A000", statement
    put(conn, queue, 1)
    assert take(conn, queue) == [1]


def test_a_prepare_that_fails_leaves_nothing(conn, queue):
    """PostgreSQL refuses it after the queue has prepared itself: nothing is in doubt then."""
    put(conn, queue, 1)
    conn.execute("BEGIN")
    assert take(conn, queue) == [1]
    put(conn, queue, 2)
    with pytest.raises(db.Error, match="too long"):
        conn.execute(f"PREPARE TRANSACTION '{'g' * 300}'")
    until(lambda: not conn.execute("SELECT * FROM aq.check()").fetchall(), "no finding")
    assert arrived(conn, queue, 1) == [1]


@pytest.mark.parametrize("finish", FINISH)
def test_what_others_have_locked_leaves_nothing(server, conn, queue, finish):
    """The transaction has dequeued nothing of the queue: another session holds the only message."""
    put(conn, queue, 1)
    with server.connect() as other:
        other.execute("BEGIN")
        assert db.value(other, "SELECT payload FROM aq.dequeue(%s, mode => 'locked')", [queue]) == 1
        conn.execute("BEGIN")
        assert take(conn, queue) == []
        conn.execute("LOCK TABLE pg_class IN ACCESS SHARE MODE; PREPARE TRANSACTION 'nothing'")
        conn.execute(f"{finish} 'nothing'")
        until(lambda: not conn.execute("SELECT * FROM aq.check()").fetchall(), "no finding")
        other.execute("COMMIT")
    assert take(conn, queue) == [1]


def test_a_grant_can_be_prepared(server, conn, queue):
    """It is a grant on a view, which PostgreSQL itself prepares and finishes."""
    conn.execute("CREATE ROLE later_in")
    conn.execute("BEGIN")
    db.execute(conn, "SELECT aq.grant_queue(%s, 'later_in', 'enqueue')", [queue])
    conn.execute("PREPARE TRANSACTION 'grant'")
    with server.connect() as other:
        other.execute("COMMIT PREPARED 'grant'")
        other.execute("SET ROLE later_in")
        put(other, queue, 1)
    assert take(conn, queue) == [1]
    db.execute(conn, "SELECT aq.revoke_queue(%s, 'later_in')", [queue])
    conn.execute("DROP ROLE later_in")


def test_drop_queue_waits_for_prepared(server, conn, queue):
    prepare(server, queue, "hold", enqueue=[1])
    conn.execute("SET lock_timeout = '100 ms'")
    with pytest.raises(db.Error) as caught:
        db.execute(conn, "SELECT aq.drop_queue(%s, true)", [queue])
    assert caught.value.sqlstate == "55P03"
    conn.execute("RESET lock_timeout")
    conn.execute("COMMIT PREPARED 'hold'")
    assert arrived(conn, queue, 1) == [1]


@pytest.mark.parametrize("finish", FINISH)
def test_drop_right_after_the_end(server, conn, finish):
    """Whether the queue is empty is known although the worker has not looked at the finished transaction yet."""
    db.execute(conn, "SELECT aq.create_queue('brief')")
    put(conn, "brief", 1)
    conn.execute("BEGIN")
    assert take(conn, "brief") == [1]
    put(conn, "brief", 2)
    assert take(conn, "brief") == [2]
    conn.execute("PREPARE TRANSACTION 'brief'")
    with stopped_worker(conn):
        conn.execute(f"{finish} 'brief'")
        if finish == "COMMIT PREPARED":
            db.execute(conn, "SELECT aq.drop_queue('brief')")
        else:
            with pytest.raises(db.Error, match="holds messages"):
                db.execute(conn, "SELECT aq.drop_queue('brief')")
    if finish == "ROLLBACK PREPARED":
        assert arrived(conn, "brief", 1) == [1]
        db.execute(conn, "SELECT aq.drop_queue('brief')")


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("what", ["put", "take"])
def test_the_lag_of_prepared_transactions(server, queue, what, end, restart):
    """A message whose enqueue is prepared does not count; one whose dequeue is prepared counts until the commit."""
    here = "SELECT lag FROM aq.subscribers WHERE queue_name = %s"
    with server.connect() as conn:
        put_many(conn, queue, 1, 10)
        conn.execute("BEGIN")
        if what == "put":
            put_many(conn, queue, 11, 14)
        else:
            assert len(take(conn, queue, number=4)) == 4
        conn.execute("PREPARE TRANSACTION 'lag'")
        assert db.value(conn, here, [queue]) == 10
    if restart:
        server.restart("immediate")
    with server.connect() as conn:
        # what is prepared to be taken holds back the others
        assert len(take(conn, queue, number=1)) == (what == "put")
        until(lambda: db.value(conn, here, [queue]) == 10 - (what == "put"), "the lag")
        conn.execute(f"{end} PREPARED 'lag'")
        left = {"put COMMIT": 13, "put ROLLBACK": 9, "take COMMIT": 6, "take ROLLBACK": 10}[f"{what} {end}"]
        # the worker is done with it
        until(lambda: db.value(conn, "SELECT coalesce(sum(pending + in_flight), 0) FROM aq.shards WHERE queue_name = %s", [queue]) == 0)
        until(lambda: db.value(conn, here, [queue]) == left, "the lag")
        assert len(arrived(conn, queue, left)) == left
        until(lambda: db.value(conn, here, [queue]) == 0, "the end")


@pytest.mark.own_tables
def test_worker_does_not_wait_for_a_commit_order(server, conn):
    """The exception queue is sorted by commit_time, and a prepared transaction has its turn: the worker does what else there is."""
    db.execute(conn, "SELECT aq.create_queue_table('public.dead', sort_list => 'commit_time'), aq.create_queue_table('public.mortal')")
    db.execute(conn, "SELECT aq.create_queue('dead', queue_table => 'public.dead'), aq.create_queue('other')")
    db.execute(conn, "SELECT aq.create_queue('mortal', queue_table => 'public.mortal', exception_queue => 'dead', max_retries => 0)")
    prepare(server, "dead", "turn", enqueue=["first"])
    put(conn, "mortal", "second")
    conn.execute("BEGIN")
    assert take(conn, "mortal") == ["second"]
    conn.execute("ROLLBACK")
    assert take(conn, "mortal") == []
    put(conn, "other", 1, delay="0.1 s")
    assert arrived(conn, "other", 1) == [1]
    conn.execute("COMMIT PREPARED 'turn'")
    until(lambda: len(look(conn, "dead")) == 2, "the message in the exception queue")
    assert db.value(conn, "SELECT max(dead_letter ->> 'reason') FROM aq.messages WHERE queue_name = 'dead'") == "retries"
    assert take(conn, "dead") == ["first", "second"]


@pytest.mark.sharded("the rows of a queue table are deleted")
@pytest.mark.parametrize("finish", FINISH)
@pytest.mark.parametrize("how", ["nothing", "kill twice"])
def test_purge_of_retained_messages(server, queue, how, finish):
    """It is no doubt about them: they were consumed before."""
    states = f"SELECT payload::int, state FROM aq.messages WHERE queue_name = '{queue}' ORDER BY 1"
    with server.connect() as conn:
        conn.execute("SELECT aq.alter_queue(%s, retention => '1 day')", [queue])
        put(conn, queue, 1, 2, 3)
        assert take(conn, queue, number=2) == [1, 2]
        assert take(conn, queue, number=1) == [3]
        put(conn, queue, 4)
        conn.execute("BEGIN")
        purged = conn.execute(
            "SELECT sys._purge_processed(%s, NULL, (SELECT array_agg(msgid) FROM aq.messages WHERE queue_name = %s AND payload::int > 1))",
            [queue, queue],
        ).fetchone()
        assert purged == (2,)
        conn.execute("PREPARE TRANSACTION 'p'")
    disturb(server, how)
    with server.connect() as conn:
        assert conn.execute(states).fetchall() == [(1, "PROCESSED"), (2, "PROCESSED"), (3, "PROCESSED"), (4, "READY")]
        conn.execute(f"{finish} 'p'")
        left = "PURGED" if finish == "COMMIT PREPARED" else "PROCESSED"
        assert conn.execute(states).fetchall() == [(1, "PROCESSED"), (2, left), (3, left), (4, "READY")]
        assert take(conn, queue) == [4]
        assert not ready(conn, queue)
