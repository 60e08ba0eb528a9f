"""A job worker: Python, psycopg 3.

    python3 worker_psycopg.py

Copy it, and replace handle(), save() and the settings.  examples/README.md explains the parts, which have the same
names in every language.
"""

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

import psycopg

# through PgBouncer: transaction pooling, and a pool of its own for the connection that waits, see docs/pgbouncer.md
DATABASE_URL = os.environ.get("DATABASE_URL", "dbname=shop")
WAIT_URL = os.environ.get("WAIT_URL", DATABASE_URL)
QUEUE = os.environ.get("QUEUE", "jobs")
WORKERS = int(os.environ.get("WORKERS", 4))  # threads, each with a connection
BATCH = int(os.environ.get("BATCH", 1))  # messages that a worker takes at a time
LEASE = float(os.environ.get("LEASE", 60))  # seconds until a dead worker's messages come back
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0  # between attempts to connect, growing

stopping = threading.Event()


class Reject(Exception):
    """The message can never succeed: no more attempts."""


def handle(message):
    """Your work, outside of any transaction.  An exception is the message's error: it is tried again later."""
    job = message.payload
    time.sleep(job.get("seconds", 0))
    if job.get("reject"):
        raise Reject("no such job")
    if message.attempts < job.get("failures", 0):
        raise RuntimeError(f"failure {message.attempts + 1} of {job['failures']}")
    return 2 * job["n"]


def save(db, message, result):
    """Your results, in the transaction of the acknowledgement: they are saved exactly once."""
    db.execute("INSERT INTO job_result (msgid, attempts, result) VALUES (%s, %s, %s)", [message.msgid, message.attempts, result])


def log(*words):
    logging.info(" ".join(map(str, words)))


class Message:
    def __init__(self, msgid, attempts, payload):
        self.msgid, self.attempts, self.payload = msgid, attempts, payload


class Batch:
    """Messages that were taken together, until they are settled."""

    def __init__(self, receipt, until, messages):
        self.receipt, self.until = receipt, until
        self.open = {message.msgid: message for message in messages}


class Database:
    """A connection that is made again when it is lost."""

    def __init__(self, url):
        self.url, self.db = url, None

    def run(self, work, until_done=False):
        """work(connection), again after a lost connection: so it must be safe to repeat.  When the worker stops, only
        what must be done is tried again."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self.db is None or self.db.closed:
                    self.db = psycopg.connect(
                        self.url,
                        autocommit=True,
                        connect_timeout=10,
                        keepalives_idle=30,
                        prepare_threshold=None,
                        application_name=f"worker {os.getpid()}",
                    )
                return work(self.db)
            except psycopg.Error as error:
                if (self.db is not None and not self.db.closed) or (stopping.is_set() and not until_done):
                    raise
                log("reconnect", str(error).partition("\n")[0])
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)


class Waiting:
    """One connection on which a worker waits for messages.  The other workers without messages queue for the turn."""

    def __init__(self):
        self.turn, self.database = threading.Lock(), Database(WAIT_URL)

    def take(self, worker):
        """The next messages, or None when the worker stops."""
        with self.turn:
            while not stopping.is_set():
                batch = worker.take()
                if batch:
                    return batch
                try:
                    self.database.run(lambda db: db.execute("CALL aq.wait(%s, %s)", [QUEUE, timedelta(seconds=30)]))
                except psycopg.errors.QueryCanceled:
                    pass  # by stop(), or by an administrator
        return None

    def stop(self):
        if self.database.db is not None:
            with suppress(psycopg.Error):  # nothing is left to release
                self.database.db.cancel()


class Worker(threading.Thread):
    def __init__(self, waiting):
        super().__init__()
        self.waiting, self.database, self.batch = waiting, Database(DATABASE_URL), None

    def run(self):
        while not stopping.is_set():
            try:
                self.batch = self.waiting.take(self)
                if self.batch:
                    self.work(self.batch)
            except Exception as error:  # for instance a stopped queue, or a missing privilege
                log("error", repr(error))
                stopping.wait(LAST_PAUSE)
            finally:
                self.batch = None  # the heartbeat extends its leases no longer

    def take(self):
        def work(db):
            until = time.time() + LEASE
            rows = db.execute(
                "SELECT receipt, msgid, attempts, payload FROM aq.dequeue(%s, max_messages => %s, lease => %s)",
                [QUEUE, BATCH, timedelta(seconds=LEASE)],
            ).fetchall()
            return Batch(rows[0][0], until, [Message(*row[1:]) for row in rows]) if rows else None

        return self.database.run(work)

    def work(self, batch):
        results = {}
        for message in list(batch.open.values()):
            if stopping.is_set() or time.time() > batch.until:
                break
            if message.msgid not in batch.open:  # the heartbeat has found that the lease is over
                continue
            log("begin", message.msgid, message.attempts, f"{batch.until:.3f}")
            try:
                results[message.msgid] = handle(message)
            except Reject as error:
                self.settle(batch, "reject", [message.msgid], "error => %s", repr(error))
            except Exception as error:
                self.fail(batch, message.msgid, error)
        self.finish(batch, results)
        self.settle(batch, "release", list(batch.open), "count => %s", False)  # not begun: given back unseen

    def finish(self, batch, results):
        """Saves results and acknowledges their messages."""
        try:
            self.settle(batch, "acknowledge", list(results), then=lambda db, msgid: save(db, batch.open[msgid], results[msgid]))
        except Exception as error:  # of save(): for which message?
            for msgid in results:
                if len(results) > 1:
                    self.finish(batch, {msgid: results[msgid]})
                else:
                    self.fail(batch, msgid, error)

    def fail(self, batch, msgid, error):
        """Gives the message back; it rests for the queue's retry delay."""
        self.settle(batch, "release", [msgid], "error => %s", repr(error))

    def settle(self, batch, how, msgids, option="", *value, then=None):
        """Ends leases by aq.acknowledge, aq.release or aq.reject, and calls then() for each in the same transaction."""

        def work(db):
            with db.transaction():
                query = f"SELECT msgid, result FROM aq.{how}(%s, %s, %s{', ' + option if option else ''})"
                answers = db.execute(query, [QUEUE, msgids, batch.receipt, *value]).fetchall()
                for msgid, answer in answers:
                    if answer == "done" and then:
                        then(db, msgid)
            return answers

        msgids = [msgid for msgid in msgids if msgid in batch.open]
        while msgids:
            busy = []
            for msgid, answer in self.database.run(work, until_done=True):
                if answer == "busy":  # the heartbeat, or what a lost connection has left
                    busy.append(msgid)
                else:
                    log("done" if answer == "done" else "stale", how, msgid)
                    batch.open.pop(msgid, None)
            msgids = busy
            if msgids:
                time.sleep(FIRST_PAUSE)


class Heartbeat(threading.Thread):
    """Extends the leases of all workers."""

    def __init__(self, workers):
        super().__init__(daemon=True)
        self.workers, self.database = workers, Database(DATABASE_URL)

    def run(self):
        while True:
            time.sleep(LEASE / 3)
            for batch in [worker.batch for worker in self.workers]:
                try:
                    if batch:
                        self.extend(batch)
                except Exception as error:
                    log("error", repr(error))

    def extend(self, batch):
        def work(db):
            return time.time() + LEASE, db.execute(
                "SELECT msgid, result FROM aq.extend(%s, %s, %s, %s)", [QUEUE, list(batch.open), batch.receipt, timedelta(seconds=LEASE)]
            ).fetchall()

        until, answers = self.database.run(work)
        for msgid, answer in answers:
            if answer == "stale":
                log("stale extend", msgid)
                batch.open.pop(msgid, None)
            elif answer == "done":
                batch.until = until
                log("extended", msgid, f"{until:.3f}")


def main():
    logging.basicConfig(level=logging.INFO, format="%(created).3f %(message)s", stream=sys.stdout)
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, lambda *_: stopping.set())
    waiting = Waiting()
    workers = [Worker(waiting) for _ in range(WORKERS)]
    for thread in *workers, Heartbeat(workers):
        thread.start()
    log("started")
    stopping.wait()
    log("stopping")
    for worker in workers:
        while worker.is_alive():
            waiting.stop()
            worker.join(1)
    log("stopped")


if __name__ == "__main__":
    main()
