"""Random operations of several sessions, compared step by step with a model.

One shard, so that the order is that of the calls.  The model is a list of
messages; everything else follows from what the reference promises: what a
session may see, in which order, how often a message was given back, and whose
lease runs.  Leases of an hour end by a call, those of 0.4 s by themselves.
A failing run prints its seed and its last steps; --seed repeats it.
"""

from __future__ import annotations

import random
import time

import conftest
import pytest
from conftest import PATIENCE, arrived, make_server, until
from pgaq import db

LEASES = {False: True, True: True}  # on queue tables: are there leases?
CONSUMERS = {"a": None, "b": None, "urgent": "priority < 2"}


class Message:
    def __init__(self, number, priority, owner, session, consumers):
        self.number, self.priority = number, priority
        self.owner = owner  # the transaction that enqueued it, until that commits
        self.session = session
        self.left = set(consumers)  # who has not consumed it
        self.held = {}  # consumer -> (transaction, mode)
        self.leases = {}  # consumer -> receipt, from the commit on until the lease has ended
        self.msgid = None
        self.attempts = dict.fromkeys(consumers, 0)
        self.dead = False

    @property
    def place(self):
        return self.priority, self.number


class Transaction:
    """A session's open (or prepared) transaction; level counts savepoints."""

    def __init__(self):
        self.level = 0
        self.put = []  # (level, message)
        self.taken = []  # (level, message, consumer, mode, receipt)
        self.prepared = False


class Model:
    def __init__(self, topic):
        self.consumers = CONSUMERS if topic else {None: None}
        self.messages = []
        self.rejected = []
        self.count = 0

    def put(self, transaction, session, priority):
        self.count += 1
        wanted = [c for c, rule in self.consumers.items() if rule is None or priority < 2]
        message = Message(self.count, priority, transaction, session, wanted)
        transaction.put.append((transaction.level, message))
        self.messages.append(message)
        return message

    def visible(self, transaction, consumer):
        """What the transaction could dequeue for the consumer, in order."""
        found = []
        doubts = [other for other in self.messages if not other.dead and self.in_doubt(other, consumer)]
        for message in sorted(self.messages, key=lambda m: m.place):
            if message.dead or consumer not in message.left or consumer in message.held or consumer in message.leases:
                continue
            if message.owner is not None and message.owner is not transaction:
                continue
            if message.owner is None and any(self.behind(message, other) for other in doubts):
                continue
            found.append(message)
        return found

    def in_doubt(self, message, consumer):
        """A prepared transaction has enqueued it, or taken it for the consumer."""
        return (message.owner is not None and message.owner.prepared) or (consumer in message.held and message.held[consumer][0].prepared)

    def behind(self, message, other):
        return other.session == message.session and other.priority == message.priority and other.number < message.number

    def batch(self, found, consumer, number):
        """Those that a call for so many takes: each attempt of one of them makes it smaller."""
        got, limit = [], number
        for message in found:
            attempts = message.attempts[consumer]
            allowed = max(number >> 2 * attempts, 1) if attempts else number
            if len(got) >= min(limit, allowed):
                break
            got.append(message)
            limit = min(limit, allowed)
        return got

    def take(self, transaction, consumer, number, mode):
        found = self.visible(transaction, consumer)
        found = self.batch(found, consumer, number) if mode in ("remove", "remove_nodata") else found[:number]
        if mode != "browse":
            for message in found:
                self.hold(transaction, message, consumer, mode)
        return found

    def hold(self, transaction, message, consumer, mode, receipt=None):
        message.held[consumer] = (transaction, mode)
        transaction.taken.append((transaction.level, message, consumer, mode, receipt))

    def leasable(self, transaction, consumer):
        """What it could take with a lease: not its own messages."""
        return [message for message in self.visible(transaction, consumer) if message.owner is None]

    def answer(self, message, consumer, receipt):
        """What an acknowledgement, release, rejection or extension gets."""
        if message.leases.get(consumer) != receipt:
            return "stale"
        return "busy" if consumer in message.held else "done"

    def back(self, transaction, level, counts):
        """Undo what was done at that level or deeper."""
        for at, message in transaction.put:
            if at >= level:
                message.dead = True
        for at, message, consumer, mode, _ in transaction.taken:
            if at >= level:
                message.held.pop(consumer, None)
                own = message.owner is transaction
                if mode in ("remove", "remove_nodata", "lease") and counts and not own:
                    message.attempts[consumer] += 1
        transaction.put = [x for x in transaction.put if x[0] < level]
        transaction.taken = [x for x in transaction.taken if x[0] < level]

    def commit(self, transaction):
        for _, message in transaction.put:
            message.owner = None
        for _, message, consumer, mode, receipt in transaction.taken:
            message.held.pop(consumer, None)
            if mode == "lease":
                message.leases[consumer] = receipt
                message.attempts[consumer] += 1
            elif mode in ("release", "unseen"):
                message.leases.pop(consumer)
                message.attempts[consumer] -= mode == "unseen"
            elif mode not in ("locked", "extend"):
                message.leases.pop(consumer, None)
                message.left.discard(consumer)
                if mode == "reject":
                    self.rejected.append(message.number)
        transaction.put, transaction.taken = [], []

    def rollback(self, transaction, counts=True):
        self.back(transaction, 0, counts)


class Session:
    """One connection, in a transaction or not."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.generation = 0
        self.transaction = None
        self.conn = server.connect()

    @property
    def identity(self):
        return self.name, self.generation

    def reconnect(self):
        try:
            self.conn.close()
        except db.Error:
            pass
        self.generation += 1
        self.transaction = None
        self.conn = self.server.connect()


class Run:
    def __init__(self, server, seed, topic, restarts):
        self.server, self.rng = server, random.Random(seed)
        self.model = Model(topic)
        self.topic, self.restarts = topic, restarts
        self.queue = f"model_{seed}_{topic:d}{restarts:d}"
        self.sessions = [Session(server, n) for n in range(3)]
        self.watcher = server.connect()
        self.prepared = {}
        self.leased = []  # (receipt, consumer, messages) of all takes with a lease
        self.log = []
        db.execute(
            self.watcher,
            "SELECT aq.create_queue(%s, shards => 1, multiple_consumers => %s, max_retries => NULL, retry_delay => '0')",
            [self.queue, topic],
        )
        if topic:
            for consumer, rule in CONSUMERS.items():
                db.execute(self.watcher, "SELECT aq.subscribe(%s, %s, %s)", [self.queue, consumer, rule])

    def say(self, *what):
        self.log.append(" ".join(map(str, what)))

    # -- operations

    def op_put(self, session):
        own = session.transaction is None
        transaction = session.transaction or Transaction()
        priority = self.rng.choice([0, 1, 1, 1, 5])
        number = self.rng.choice([1, 1, 2, 5, 200])
        put = [self.model.put(transaction, session.identity, priority) for _ in range(number)]
        self.say(session.name, "put", number, "at", priority, f"({put[0].number}..)")
        payloads = [str(message.number) for message in put]
        db.execute(session.conn, "SELECT aq.enqueue_array(%s, %s::text[], priority => %s)", [self.queue, payloads, priority])
        if own:
            self.model.commit(transaction)

    def op_take(self, session):
        own = session.transaction is None
        transaction = session.transaction or Transaction()
        consumer = self.rng.choice(list(self.model.consumers))
        number = self.rng.choice([1, 1, 3, 50])
        mode = self.rng.choice(["remove", "remove", "remove", "locked", "browse", "remove_nodata"])
        wanted = self.model.take(transaction, consumer, number, mode)
        self.say(session.name, mode, number, "for", consumer, "expecting", [m.number for m in wanted])
        rows = session.conn.execute(
            "SELECT payload, attempts, priority FROM aq.dequeue(%s, consumer => %s, max_messages => %s, mode => %s)",
            [self.queue, consumer, number, mode],
        ).fetchall()
        found = [(payload, attempts, priority) for payload, attempts, priority in rows]
        expected = [(None if mode == "remove_nodata" else m.number, m.attempts[consumer], m.priority) for m in wanted]
        assert found == expected, self.report(found, expected)
        if own:
            self.model.commit(transaction)

    def op_choose(self, session):
        """By a condition, from the middle."""
        own = session.transaction is None
        transaction = session.transaction or Transaction()
        consumer = self.rng.choice(list(self.model.consumers))
        rest = self.rng.randrange(3)
        visible = [m for m in self.model.visible(transaction, consumer) if m.number % 3 == rest]
        wanted = self.model.batch(visible, consumer, 4)
        for message in wanted:
            self.model.hold(transaction, message, consumer, "remove")
        self.say(session.name, "choose", rest, "for", consumer, "expecting", [m.number for m in wanted])
        rows = session.conn.execute(
            "SELECT payload, attempts FROM aq.dequeue(%s, consumer => %s, max_messages => 4, condition => %s)",
            [self.queue, consumer, f"payload::int %% 3 = {rest}".replace("%%", "%")],
        ).fetchall()
        expected = [(m.number, m.attempts[consumer]) for m in wanted]
        assert rows == expected, self.report(rows, expected)
        if own:
            self.model.commit(transaction)

    def lease(self, session, transaction, consumer, number, lease):
        """A dequeue with a lease."""
        wanted = self.model.batch(self.model.leasable(transaction, consumer), consumer, number)
        self.say(session.name, "lease", number, "for", consumer, lease, "expecting", [m.number for m in wanted])
        rows = session.conn.execute(
            "SELECT payload, attempts, priority, msgid::text, receipt FROM aq.dequeue(%s, consumer => %s, max_messages => %s, lease => %s)",
            [self.queue, consumer, number, lease],
        ).fetchall()
        found = [row[:3] for row in rows]
        expected = [(m.number, m.attempts[consumer], m.priority) for m in wanted]
        assert found == expected, self.report(found, expected)
        receipts = {row[4] for row in rows}
        assert len(receipts) == bool(rows) and receipts.isdisjoint(receipt for receipt, _, _ in self.leased), self.report(receipts, [])
        for message, row in zip(wanted, rows):
            message.msgid = row[3]
            self.model.hold(transaction, message, consumer, "lease", row[4])
        if rows:
            self.leased.append((rows[0][4], consumer, wanted))
        return wanted

    def op_lease(self, session):
        transaction = session.transaction or Transaction()
        self.lease(session, transaction, self.rng.choice(list(self.model.consumers)), self.rng.choice([1, 1, 3, 50]), "1 hour")
        if session.transaction is None:
            self.model.commit(transaction)

    def use(self, session, transaction, mode, receipt, consumer, messages):
        """Acknowledge, release, reject or extend; the results."""
        call, more = {
            "acknowledge": ("acknowledge", ""), "extend": ("extend", ", '2 hours'"), "reject": ("reject", ""),
            "release": ("release", f", delay => '{self.rng.choice(['0', '0', '0.2 s'])}'"), "unseen": ("release", ", delay => '0', count => false"),
        }[mode]  # fmt: skip
        expected = [self.model.answer(message, consumer, receipt) for message in messages]
        self.say(session.name, mode, receipt, [m.number for m in messages], "for", consumer, "expecting", sorted(set(expected)))
        query = f"SELECT result FROM aq.{call}(%s, %s::uuid[], %s{more}, consumer => %s)"
        found = [row[0] for row in session.conn.execute(query, [self.queue, [m.msgid for m in messages], receipt, consumer])]
        for message, result in zip(messages, found):
            if result == "done" and message.leases.get(consumer) == receipt:
                self.model.hold(transaction, message, consumer, mode)
        return found, expected

    def op_use(self, session):
        """With a receipt of any age: the lease may run, be used by another transaction, or have ended."""
        if not self.leased:
            return
        own = session.transaction is None
        transaction = session.transaction or Transaction()
        receipt, consumer, messages = self.rng.choice(self.leased[-12:])
        some = self.rng.sample(messages, self.rng.randint(1, len(messages)))
        mode = self.rng.choice(["acknowledge", "acknowledge", "acknowledge", "release", "release", "unseen", "reject", "extend"])
        found, expected = self.use(session, transaction, mode, receipt, consumer, some)
        assert found == expected, self.report(list(zip(found, (m.number for m in some))), expected)
        if own:
            self.model.commit(transaction)
            self.settle()

    def op_over(self, session):
        """A lease whose time is over: by itself, or when the transaction that has acknowledged it rolls back."""
        if session.transaction is not None:
            return
        transaction = Transaction()
        consumer = self.rng.choice(list(self.model.consumers))
        messages = self.lease(session, transaction, consumer, 3, "0.4 s")
        self.model.commit(transaction)
        if not messages:
            return
        receipt = self.leased[-1][0]
        over = time.monotonic() + 0.45
        how = self.rng.choice(["by itself", "rollback", "prepared"])
        if how != "by itself":
            session.conn.execute("BEGIN")
            found, _ = self.use(session, transaction, "acknowledge", receipt, consumer, messages)
            # where the machine was too slow, the lease has ended by itself
            assert set(found) <= {"done", "stale", "busy"}, found
            if how == "prepared":
                session.conn.execute(f"PREPARE TRANSACTION '{self.queue}_over'")
            time.sleep(max(0.0, over - time.monotonic()))
            if found == ["done"] * len(messages):
                # the transaction keeps it from ending
                transaction.prepared = how == "prepared"
                self.settle()
                transaction.prepared = False
            session.conn.execute(f"ROLLBACK PREPARED '{self.queue}_over'" if how == "prepared" else "ROLLBACK")
            self.model.rollback(transaction)
        self.say(session.name, "over", how)
        for message in messages:
            message.leases.pop(consumer)
        self.settle()
        found, expected = self.use(session, transaction, "acknowledge", receipt, consumer, messages)
        assert found == expected == ["stale"] * len(messages), found

    def op_begin(self, session):
        if session.transaction is None:
            self.say(session.name, "begin")
            session.conn.execute("BEGIN")
            session.transaction = Transaction()

    def op_savepoint(self, session):
        if session.transaction:
            session.transaction.level += 1
            self.say(session.name, "savepoint", session.transaction.level)
            session.conn.execute(f"SAVEPOINT s{session.transaction.level}")

    def op_back(self, session):
        transaction = session.transaction
        if transaction and transaction.level:
            level = self.rng.randint(1, transaction.level)
            self.say(session.name, "back to", level)
            session.conn.execute(f"ROLLBACK TO s{level}")
            self.model.back(transaction, level, True)
            transaction.level = level
            self.settle()

    def op_release(self, session):
        transaction = session.transaction
        if transaction and transaction.level:
            level = self.rng.randint(1, transaction.level)
            self.say(session.name, "release", level)
            session.conn.execute(f"RELEASE s{level}")
            transaction.level = level - 1
            transaction.put = [(min(at, level - 1), m) for at, m in transaction.put]
            transaction.taken = [(min(at, level - 1), *rest) for at, *rest in transaction.taken]

    def op_end(self, session):
        if session.transaction is None:
            return
        transaction, session.transaction = session.transaction, None
        if self.rng.random() < 0.6:
            self.say(session.name, "commit")
            session.conn.execute("COMMIT")
            self.model.commit(transaction)
        else:
            self.say(session.name, "rollback")
            session.conn.execute("ROLLBACK")
            self.model.rollback(transaction)
        self.settle()

    def op_error(self, session):
        if session.transaction:
            self.say(session.name, "error")
            with pytest.raises(db.Error):
                session.conn.execute("SELECT 1 / 0")
            session.conn.execute("ROLLBACK")
            self.model.rollback(session.transaction)
            session.transaction = None
            self.settle()

    def op_terminate(self, session):
        if session.transaction:
            self.say(session.name, "terminate")
            pid = session.conn.info.backend_pid
            db.execute(self.watcher, "SELECT pg_terminate_backend(%s)", [pid])
            until(lambda: db.value(self.watcher, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", [pid]), "the session's end")
            self.model.rollback(session.transaction, counts=False)
            session.reconnect()
            self.settle()

    def op_prepare(self, session):
        if session.transaction:
            gid = f"{self.queue}_{len(self.log)}"
            self.say(session.name, "prepare", gid)
            session.conn.execute(f"PREPARE TRANSACTION '{gid}'")
            session.transaction.prepared = True
            self.prepared[gid] = session.transaction
            session.transaction = None

    def op_finish(self, session):
        if self.prepared and session.transaction is None:
            gid = self.rng.choice(list(self.prepared))
            transaction = self.prepared.pop(gid)
            verb = self.rng.choice(["COMMIT", "ROLLBACK"])
            self.say(session.name, verb, gid)
            session.conn.execute(f"{verb} PREPARED '{gid}'")
            transaction.prepared = False
            if verb == "COMMIT":
                self.model.commit(transaction)
            else:
                self.model.rollback(transaction)
            self.settle()

    def op_restart(self, session):
        if not self.restarts or self.rng.random() > 0.15:
            return
        how = self.rng.choice(["fast", "immediate", "kill"])
        self.say("restart", how)
        if how == "kill":
            self.server.kill()
            self.server.start()
        else:
            self.server.restart(how)
        self.watcher.close()
        self.watcher = self.server.connect()
        for each in self.sessions:
            if each.transaction:
                self.model.rollback(each.transaction, counts=False)
            each.reconnect()
        self.settle()

    # -- checks

    def settle(self):
        """What a worker does later has been done: the watcher sees what the model says."""
        for consumer in self.model.consumers:
            expected = [(m.number, m.attempts[consumer]) for m in self.model.visible(None, consumer)]
            query = "SELECT payload, attempts FROM aq.browse(%s, consumer => %s, max_messages => 1000000)"
            deadline = time.monotonic() + PATIENCE / 3
            while (found := self.watcher.execute(query, [self.queue, consumer]).fetchall()) != expected:
                assert time.monotonic() < deadline, self.report(found, expected)
                time.sleep(0.002)

    def report(self, found, expected):
        missing = [x for x in expected if x not in found][:10]
        surplus = [x for x in found if x not in expected][:10]
        return f"\nmissing {missing}, surplus {surplus}\nfound {found[:20]}\nexpected {expected[:20]}\nlast steps:\n  " + "\n  ".join(
            self.log[-400:]
        )

    def go(self, steps):
        operations = [
            (self.op_put, 20), (self.op_take, 20), (self.op_choose, 6), (self.op_begin, 18), (self.op_savepoint, 8), (self.op_back, 5),
            (self.op_release, 5), (self.op_end, 12), (self.op_error, 2), (self.op_terminate, 1), (self.op_prepare, 2), (self.op_finish, 2),
            (self.op_restart, 1), (self.op_lease, 10), (self.op_use, 14), (self.op_over, 1),
        ]  # fmt: skip
        if not LEASES[conftest.on_queue_tables]:
            operations = [each for each in operations if each[0] not in (self.op_lease, self.op_use, self.op_over)]
        names, weights = zip(*operations)
        for _ in range(steps):
            operation = self.rng.choices(names, weights)[0]
            operation(self.rng.choice(self.sessions))
        for session in self.sessions:
            if session.transaction:
                self.op_end(session)
        while self.prepared:
            self.op_finish(self.sessions[0])
        self.settle()
        for receipt, consumer, messages in self.leased:
            transaction = Transaction()
            found, expected = self.use(self.sessions[0], transaction, "unseen", receipt, consumer, messages)
            assert found == expected, self.report(found, expected)
            self.model.commit(transaction)
        self.settle()
        for consumer in self.model.consumers:
            expected = [None]
            while expected:
                transaction = Transaction()
                expected = [m.number for m in self.model.take(transaction, consumer, 1_000_000, "remove")]
                query = "SELECT payload FROM aq.dequeue(%s, consumer => %s, max_messages => 1000000)"
                found = [row[0] for row in self.watcher.execute(query, [self.queue, consumer])]
                assert found == expected, self.report(found, expected)
                self.model.commit(transaction)
        rejected = self.model.rejected  # a topic's message once for each consumer that has rejected it
        dead = arrived(self.watcher, self.queue + "_exceptions", len(rejected))
        assert sorted(dead) == sorted(rejected), self.report(dead, sorted(rejected))
        db.execute(self.watcher, "SELECT aq.drop_queue(%s)", [self.queue])
        for session in self.sessions:
            session.conn.close()
        self.watcher.close()


@pytest.mark.parametrize("topic", [False, True], ids=["queue", "topic"])
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_random_operations(server, seed, topic, restarts):
    server.expect_log("terminat|crash")
    Run(server, seed, topic, restarts).go(250)


@pytest.mark.long
def test_random_operations_at_length(seed):
    for number in range(40):
        server = make_server("model", **{"pgaq.reuse_grace": "0", "pgaq.message_cache_size": "4MB"})
        server.expect_log("terminat|crash")
        try:
            Run(server, seed * 1000 + number, number % 2 == 1, number % 3 == 0).go(1500)
        finally:
            server.destroy()
