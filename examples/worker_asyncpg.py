"""A job worker: Python, asyncpg.

    python3 worker_asyncpg.py

Copy it, and replace handle(), save() and the settings.  examples/README.md explains the parts, which have the same
names in every language.
"""

import asyncio
import json
import os
import signal
import time
from datetime import timedelta

import asyncpg

# through PgBouncer: transaction pooling, and a pool of its own for the connection that waits, see docs/pgbouncer.md
DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql:///shop")
WAIT_URL = os.environ.get("WAIT_URL", DATABASE_URL)
QUEUE = os.environ.get("QUEUE", "jobs")
WORKERS = int(os.environ.get("WORKERS", 4))  # tasks, each with a connection
BATCH = int(os.environ.get("BATCH", 1))  # messages that a worker takes at a time
LEASE = float(os.environ.get("LEASE", 60))  # seconds until a dead worker's messages come back
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0  # between attempts to connect, growing
IDS = "CAST($2::text[] AS uuid[])"  # for uuid[] itself asyncpg reads the catalog first: slow

stopping = asyncio.Event()


class Reject(Exception):
    """The message can never succeed: no more attempts."""


async def handle(message):
    """Your work, outside of any transaction.  An exception is the message's error: it is tried again later."""
    job = message.payload
    await asyncio.sleep(job.get("seconds", 0))
    if job.get("reject"):
        raise Reject("no such job")
    if message.attempts < job.get("failures", 0):
        raise RuntimeError(f"failure {message.attempts + 1} of {job['failures']}")
    return 2 * job["n"]


async def save(db, message, result):
    """Your results, in the transaction of the acknowledgement: they are saved exactly once."""
    await db.execute("INSERT INTO job_result (msgid, attempts, result) VALUES ($1, $2, $3)", message.msgid, message.attempts, result)


def log(*words):
    print(f"{time.time():.3f}", *words, flush=True)


class Message:
    def __init__(self, row):
        self.msgid, self.attempts, self.payload = str(row["msgid"]), row["attempts"], json.loads(row["payload"])


class Batch:
    """Messages that were taken together, until they are settled."""

    def __init__(self, receipt, until, messages):
        self.receipt, self.until = receipt, until
        self.open = {message.msgid: message for message in messages}


class Database:
    """A connection that is made again when it is lost."""

    def __init__(self, url):
        self.url, self.db = url, None

    async def run(self, work, until_done=False):
        """work(connection), again after a lost connection: so it must be safe to repeat.  When the worker stops, only
        what must be done is tried again."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self.db is None or self.db.is_closed():
                    self.db = None
                    self.db = await asyncpg.connect(
                        self.url, timeout=10, statement_cache_size=0, server_settings={"application_name": f"worker {os.getpid()}"}
                    )
                return await work(self.db)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncio.TimeoutError) as error:
                if (self.db is not None and not self.db.is_closed()) or (stopping.is_set() and not until_done):
                    raise
                log("reconnect", repr(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)


class Waiting:
    """One connection on which a worker waits for messages.  The other workers without messages queue for the turn."""

    def __init__(self):
        self.turn, self.database, self.task = asyncio.Lock(), Database(WAIT_URL), None

    async def take(self, worker):
        """The next messages, or None when the worker stops."""
        async with self.turn:
            while not stopping.is_set():
                batch = await worker.take()
                if batch:
                    return batch
                if stopping.is_set():
                    break
                self.task = asyncio.create_task(self.database.run(lambda db: db.execute("CALL aq.wait($1, '30 seconds')", QUEUE)))
                await asyncio.wait([self.task])
                if not self.task.cancelled():
                    self.task.result()
        return None

    def stop(self):
        if self.task:
            self.task.cancel()


class Worker:
    def __init__(self, waiting):
        self.waiting, self.database, self.batch = waiting, Database(DATABASE_URL), None

    async def run(self):
        while not stopping.is_set():
            try:
                self.batch = await self.waiting.take(self)
                if self.batch:
                    await self.work(self.batch)
            except Exception as error:  # for instance a stopped queue, or a missing privilege
                log("error", repr(error))
                if not stopping.is_set():
                    await asyncio.sleep(LAST_PAUSE)
            finally:
                self.batch = None  # the heartbeat extends its leases no longer

    async def take(self):
        async def work(db):
            until = time.time() + LEASE
            rows = await db.fetch(
                "SELECT receipt, msgid, attempts, payload FROM aq.dequeue($1, max_messages => $2, lease => $3)",
                QUEUE,
                BATCH,
                timedelta(seconds=LEASE),
            )
            return Batch(rows[0]["receipt"], until, [Message(row) for row in rows]) if rows else None

        return await self.database.run(work)

    async def work(self, batch):
        results = {}
        for message in list(batch.open.values()):
            if stopping.is_set() or time.time() > batch.until:
                break
            if message.msgid not in batch.open:  # the heartbeat has found that the lease is over
                continue
            log("begin", message.msgid, message.attempts, f"{batch.until:.3f}")
            try:
                results[message.msgid] = await handle(message)
            except Reject as error:
                await self.settle(batch, "reject", [message.msgid], "error => $4", repr(error))
            except Exception as error:
                await self.fail(batch, message.msgid, error)
        await self.finish(batch, results)
        await self.settle(batch, "release", list(batch.open), "count => $4", False)  # not begun: given back unseen

    async def finish(self, batch, results):
        """Saves results and acknowledges their messages."""
        try:
            await self.settle(batch, "acknowledge", list(results), then=lambda db, msgid: save(db, batch.open[msgid], results[msgid]))
        except Exception as error:  # of save(): for which message?
            for msgid in results:
                if len(results) > 1:
                    await self.finish(batch, {msgid: results[msgid]})
                else:
                    await self.fail(batch, msgid, error)

    async def fail(self, batch, msgid, error):
        """Gives the message back; it rests for the queue's retry delay."""
        await self.settle(batch, "release", [msgid], "error => $4", repr(error))

    async def settle(self, batch, how, msgids, option="", *value, then=None):
        """Ends leases by aq.acknowledge, aq.release or aq.reject, and calls then() for each in the same transaction."""

        async def work(db):
            async with db.transaction():
                query = f"SELECT msgid, result FROM aq.{how}($1, {IDS}, $3{', ' + option if option else ''})"
                answers = await db.fetch(query, QUEUE, msgids, batch.receipt, *value)
                for msgid, answer in answers:
                    if answer == "done" and then:
                        await then(db, str(msgid))
            return answers

        msgids = [msgid for msgid in msgids if msgid in batch.open]
        while msgids:
            busy = []
            for msgid, answer in await self.database.run(work, until_done=True):
                msgid = str(msgid)
                if answer == "busy":  # the heartbeat, or what a lost connection has left
                    busy.append(msgid)
                else:
                    log("done" if answer == "done" else "stale", how, msgid)
                    batch.open.pop(msgid, None)
            msgids = busy
            if msgids:
                await asyncio.sleep(FIRST_PAUSE)


class Heartbeat:
    """Extends the leases of all workers."""

    def __init__(self, workers):
        self.workers, self.database = workers, Database(DATABASE_URL)

    async def run(self):
        while True:
            await asyncio.sleep(LEASE / 3)
            for batch in [worker.batch for worker in self.workers]:
                try:
                    if batch:
                        await self.extend(batch)
                except Exception as error:
                    log("error", repr(error))

    async def extend(self, batch):
        async def work(db):
            return time.time() + LEASE, await db.fetch(
                f"SELECT msgid, result FROM aq.extend($1, {IDS}, $3, $4)", QUEUE, list(batch.open), batch.receipt, timedelta(seconds=LEASE)
            )

        until, answers = await self.database.run(work)
        for msgid, answer in answers:
            if answer == "stale":
                log("stale extend", msgid)
                batch.open.pop(str(msgid), None)
            elif answer == "done":
                batch.until = until
                log("extended", msgid, f"{until:.3f}")


async def main():
    for number in signal.SIGTERM, signal.SIGINT:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    waiting = Waiting()
    workers = [Worker(waiting) for _ in range(WORKERS)]
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    heartbeat = asyncio.create_task(Heartbeat(workers).run())
    log("started")
    await stopping.wait()
    log("stopping")
    waiting.stop()
    await asyncio.gather(*tasks)
    heartbeat.cancel()
    log("stopped")


asyncio.run(main())
