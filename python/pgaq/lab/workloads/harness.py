"""The sources' harness: N sessions enqueue, each for its own consumer, and N sessions dequeue, by listen or as subscribers.

The loops run inside the server (queue_loop.sql).  A burner keeps each enqueuer
busy between two messages; it is calibrated, because on a machine where it costs
nothing the enqueuers outrun the consumers and no session ever waits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pgaq import db
from pgaq.lab.site import Counters, Sessions, Site, cpu_seconds

PROGRAM = Path(__file__).with_name("queue_loop.sql")
SCHEMA = """
	CREATE SCHEMA lab_aq;
	CREATE TYPE lab_aq.message AS (subject varchar(30), text varchar(256), body text);
	CREATE FUNCTION lab_aq.visibility() RETURNS integer LANGUAGE sql IMMUTABLE RETURN dbms_aq.{visibility}();
"""
# the source's queue, and a sharded one with the same options
QUEUES = {
    "table": """
	CALL dbms_aqadm.create_queue_table(queue_table => 'lab_aq.message_table', queue_payload_type => 'lab_aq.message',
		multiple_consumers => TRUE, compatible => '10.0.0', sort_list => 'PRIORITY,ENQ_TIME');
	CALL dbms_aqadm.create_queue(queue_name => 'lab_aq.messages', queue_table => 'lab_aq.message_table', max_retries => 5, retry_delay => 2,
		retention_time => 86400);
	CALL dbms_aqadm.start_queue(queue_name => 'lab_aq.messages');
""",
    "sharded": """
	SELECT aq.create_queue('lab_aq.messages', 'lab_aq.message', multiple_consumers => true, max_retries => 5, retry_delay => '2 s', retention => '1 day');
""",
}
CHANNEL = "channel operations parent latch"
LINES = "queue table lines"
SUBSCRIBERS = 100  # of the source's queue, whatever the number of sessions
PATH = "SET search_path = public, sys"
OPERATIONS = """SELECT operation, object, location, gets::float8 AS gets, releases::float8 AS releases, (acquire_ns + hold_ns)::float8 AS ns
	FROM aq.trace_objects(%s)"""
HISTOGRAM = """SELECT value::float8, sum(count)::float8 FROM aq.trace_histogram(%s)
	WHERE measure = %s AND operation = %s AND object = %s GROUP BY 1 ORDER BY 1"""
MEASURES = {"both": "ns_histogram", "acquire": "acquire_ns_histogram", "hold": "hold_ns_histogram"}
# samples of the two events; of each event those that carry its parameters: the idn is that of a cached object, the number that of a latch
SAMPLED = """SELECT count(*)::float8 AS samples,
	(count(*) FILTER (WHERE event = 'library cache: mutex X' AND (p1text, p2text, p3text) = ('idn', 'value', 'where')
		AND p1 IN (SELECT hash_value FROM sys."v$db_object_cache") AND p2 IS NOT NULL AND p3 > 0))::float8 AS mutex_x_samples,
	(count(*) FILTER (WHERE event = 'latch free' AND (p1text, p2text, p3text) = ('address', 'number', 'why')
		AND p1 <> 0 AND p2 IN (SELECT "latch#" FROM sys."v$latch") AND p3 > 0))::float8 AS latch_free_samples
	FROM sys."v$active_session_history" WHERE event IN ('library cache: mutex X', 'latch free') AND sample_time > now() - %s * interval '1 s'"""
HASH = """SELECT count(DISTINCT t.number)::float8 FROM aq.trace_objects(%s) t JOIN sys."v$db_object_cache" o ON o.hash_value = t.number
	WHERE t.operation = 'mutex' AND t.object = 'Library Cache' AND upper(o.name) = 'MESSAGES'"""


def calibrate(conn: db.Connection, microseconds: float) -> int:
    """Iterations of the burner that take this time: the fastest of five trials, so that other work does not count."""
    fastest = min(db.value(conn, "SELECT aq_lab.burn(200000)") for _ in range(5))
    return max(1, int(200000 * microseconds / max(1, fastest)))


def prepare(look: db.Connection, number: int, store: str = "table", visibility: str = "immediate") -> None:
    """The queue, new, its subscribers, and the program; all of the source's calls are immediate."""
    look.execute(PATH)
    drop(look)
    look.execute(SCHEMA.format(visibility=visibility))
    look.execute(QUEUES[store])
    look.execute(PROGRAM.read_text())
    for n in range(1, number + 1):
        look.execute("CALL dbms_aqadm.add_subscriber('lab_aq.messages', sys.aq$_agent(%s, NULL, NULL))", [f"KSUB_{n}"])


def drop(look: db.Connection) -> None:
    """The queue with all that is in it."""
    if db.value(look, "SELECT to_regclass('lab_aq.message_table') IS NOT NULL"):
        look.execute("CALL dbms_aqadm.drop_queue_table('lab_aq.message_table', force => true)")
    look.execute("SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = 'lab_aq.messages'")
    look.execute("DROP SCHEMA IF EXISTS lab_aq CASCADE")


@dataclass(frozen=True)
class Program:
    """Parameters of the source's program: N sessions that dequeue by a method, and N that enqueue, each busy for this time between two messages."""

    sessions: int = 8
    method: str = "listen"
    store: str = "table"
    visibility: str = "immediate"
    burn_us: float = 4000
    hot: bool = False  # ten copies of the queue's object

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Program":
        """From the options and axes of a run of the lab."""
        return cls(**{each.name: type(each.default)(given[each.name]) for each in fields(cls) if each.name in given})


class Jobs:
    """The source's jobs: the queue and the program, new, and a session for each job."""

    def __init__(self, look: db.Connection, sessions: Sessions, program: Program) -> None:
        self.sessions, self.program = sessions, program
        prepare(look, max(program.sessions, SUBSCRIBERS), program.store, program.visibility)
        if program.hot:
            look.execute("CALL dbms_shared_pool.markhot('LAB_AQ', 'MESSAGES', 10)")
        self.burn = calibrate(look, program.burn_us)
        browses = program.method == "browse"
        self.numbers = range(1, program.sessions + 1)
        self.enqueuers = [] if browses else self.numbers
        sessions.prepare([("deq", n) for n in self.numbers] + [("enq", n) for n in self.enqueuers])
        for conn in sessions.connections.values():
            conn.execute(PATH)
            conn.execute(f"CALL lab_aq.{'browse' if browses else 'subscriber'}(1, 0.0, NULL)")
        look.execute("TRUNCATE lab_aq.windows")

    def start(self, seconds: float) -> None:
        """All sessions at once; each returns the number of its messages."""
        for n in self.numbers:
            self.sessions.start(
                ("deq", n), lambda conn, n=n: db.value(conn, f"CALL lab_aq.{self.program.method}(%s, %s, NULL)", [n, seconds])
            )
        for n in self.enqueuers:
            self.sessions.start(
                ("enq", n), lambda conn, n=n: db.value(conn, "CALL lab_aq.enqueue(%s, %s, %s, NULL)", [n, seconds, self.burn])
            )


def messages(results: dict[Any, Any]) -> tuple[int, int]:
    """Enqueued and dequeued, by the clients' count."""
    enqueued, dequeued = (sum(value for key, value in results.items() if key[0] == kind) for kind in ("enq", "deq"))
    return enqueued, dequeued


def queue_loop(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Messages, gets, waits, false wake-ups of all sessions; a trace of one that dequeues."""
    program = Program.of({**site.options, **point})
    number = program.sessions
    with site.server.connect() as look, Sessions(site) as sessions:
        jobs = Jobs(look, sessions, program)
        traced = sessions.pid(("deq", number))
        look.execute("SELECT aq.trace_stop(pid) FROM aq.traces WHERE state = 'running'")
        pids = [sessions.pid(key) for key in sessions.connections]
        before, began, used = Counters(look), time.monotonic(), sum(map(cpu_seconds, pids))
        look.execute("SELECT aq.trace_start(%s, '{wait}')", [traced])
        jobs.start(seconds)
        results = sessions.join()
        took = time.monotonic() - began
        look.execute("SELECT aq.trace_stop(%s)", [traced])
        change = Counters(look) - before
        found = _totals(results, change, number, took) | {"sessions_cpu_s": sum(map(cpu_seconds, pids)) - used}
        found |= _traced(look, traced, float(results["deq", number]))
        found |= _windows(look, number, seconds)
        found |= db.row(look, SAMPLED, [seconds]) or {}
        found["hash_values"] = db.value(look, HASH, [traced])
        found["locks_seen"] = float(db.value(look, 'SELECT count(*) FROM sys."v$libcache_locks"'))
        found["subscribers_seen"] = float(db.value(look, "SELECT count(*) FROM dba_queue_subscribers WHERE upper(queue_name) = 'MESSAGES'"))
        sessions.close()
        drop(look)
    return found


def _totals(results: dict[Any, Any], change: Counters, number: int, took: float) -> dict[str, Any]:
    """What all sessions did, by the clients' count and by the views."""
    enqueued, dequeued = map(float, messages(results))
    db_time = change("time", "DB time") / 1e6
    found: dict[str, Any] = {
        "enqueued": enqueued, "dequeued": dequeued, "total": dequeued, "total_per_s": dequeued / took, "enqueued_per_s": enqueued / took,
        "counted_in": change("statistic", "queue messages enqueued"), "counted_out": change("statistic", "queue messages dequeued"),
        "false_wakeups": change("statistic", "queue wake-ups false"), "useful_wakeups": change("statistic", "queue wake-ups useful"),
        "listens": change("statistic", "queue listen calls"), "db_time_s": db_time,
    }  # fmt: skip
    per = max(1.0, dequeued)
    found["false_per_message"] = found["false_wakeups"] / per
    for name, event in (
        ("mutex_x", "library cache: mutex X"),
        ("latch_free", "latch free"),
        ("listen", "wait for unread message on broadcast channel"),
        ("subscriber", "Streams AQ: waiting for messages in the queue"),
    ):
        found[f"{name}_waits"], found[f"{name}_s"] = change("event", event, "waits"), change("event", event, "wait_us") / 1e6
        found[f"{name}_percent"] = 100 * found[f"{name}_s"] / db_time if db_time else 0.0
    for figure in ("gets", "misses", "sleeps", "spin_gets"):
        found[f"channel_{figure}"] = change("latch", CHANNEL, figure)
        found[f"object_{figure}"] = change("mutex", "Library Cache", figure)
    found["channel_percent"] = 100 * change("latch", CHANNEL, "wait_us") / 1e6 / db_time if db_time else 0.0
    found["lines_gets"], found["lines_s"] = change("latch", LINES, "gets"), change("latch", LINES, "wait_us") / 1e6
    found["channel_recurrent"] = found["channel_sleeps"] + found["channel_spin_gets"] - found["channel_misses"]
    found["channel_per_message"], found["object_per_message"] = found["channel_gets"] / per, found["object_gets"] / per
    waits = found["listen_waits"]
    found["channel_expected"] = 2 * (waits + found["listens"]) + enqueued
    found["blog_latch"], found["blog_mutex"] = 6 * number * dequeued, 12 * number * dequeued
    return found


def _windows(look: db.Connection, number: int, seconds: float) -> dict[str, float]:
    """From the first to the last message of the last session: enqueued, and dequeued."""
    row = db.row(
        look,
        "SELECT first_enqueued, last_enqueued, first_dequeued, last_dequeued FROM lab_aq.windows WHERE number = %s AND first_dequeued IS NOT NULL",
        [number],
    )
    if row is None:
        return {"enqueue_window_s": 0.0, "dequeue_window_s": 0.0, "dequeue_window_percent": 0.0, "first_dequeue_s": 0.0}
    window = (row["last_dequeued"] - row["first_dequeued"]).total_seconds()
    return {
        "enqueue_window_s": (row["last_enqueued"] - row["first_enqueued"]).total_seconds(), "dequeue_window_s": window,
        "dequeue_window_percent": 100 * window / seconds, "first_dequeue_s": (row["first_dequeued"] - row["first_enqueued"]).total_seconds(),
    }  # fmt: skip


def _traced(look: db.Connection, pid: int, own: float) -> dict[str, Any]:
    """What the traced session did, by message."""
    rows = db.rows(look, OPERATIONS, [pid])
    per = max(1.0, own)

    def total(figure: str, operation: str, obj: str | None = None, location: str | None = None) -> float:
        return sum(
            r[figure] for r in rows if r["operation"] == operation and obj in (None, r["object"]) and location in (None, r["location"])
        )

    found: dict[str, Any] = {"own": own, "own_waits": float(db.value(look, "SELECT waits FROM aq.traces WHERE pid = %s", [pid]) or 0)}
    for kind in ("lock", "pin", "latch", "mutex"):
        found[f"own_{kind}"] = total("gets", kind)
    found["own_channel"] = total("gets", "latch", CHANNEL)
    objects = total("gets", "mutex", "Library Cache")
    found |= {
        "own_object_gets": objects, "own_object_releases": total("releases", "mutex", "Library Cache"),
        "latch_gets_per_deq": found["own_channel"] / per, "mutex_gets_per_deq": objects / per,
        "ns_per_latch_get": total("ns", "latch", CHANNEL) / max(1.0, found["own_channel"]), "ns_per_mutex_get": total("ns", "mutex", "Library Cache") / max(1.0, objects),
        "mutex_releases_per_get": total("releases", "mutex", "Library Cache") / objects if objects else 0.0,
        "object_lock": total("gets", "mutex", "Library Cache", "object: lock"), "object_pin": total("gets", "mutex", "Library Cache", "object: pin"),
        "object_unpin": total("gets", "mutex", "Library Cache", "object: unpin"), "object_unlock": total("gets", "mutex", "Library Cache", "object: unlock"),
    }  # fmt: skip
    found["latch_ns_per_deq"], found["mutex_ns_per_deq"] = (
        found["ns_per_latch_get"] * found["latch_gets_per_deq"],
        found["ns_per_mutex_get"] * found["mutex_gets_per_deq"],
    )
    for name, operation, obj in (("latch", "latch", CHANNEL), ("mutex", "mutex", "Library Cache")):
        curves = {
            metric: {float(value): float(count) for value, count in look.execute(HISTOGRAM, [pid, measure, operation, obj]).fetchall()}
            for measure, metric in MEASURES.items()
        }
        found |= {f"{name}_{metric}": curve for metric, curve in curves.items() if curve}
        whole = curves[MEASURES["both"]]
        if whole:
            found[f"{name}_mode_ns"] = max(whole, key=lambda x: whole[x])
            found[f"{name}_longest_ns"] = max(whole)
    return found
