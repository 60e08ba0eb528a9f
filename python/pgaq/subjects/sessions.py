"""Sessions, waits, latches and traces."""

from __future__ import annotations

from pgaq.subjects.model import Column, Subject

MONITOR = "membership in pg_monitor"

SESSIONS = Subject(
    name="sessions",
    title="Sessions",
    text="Sessions that use pgaq, and what each waits for now.",
    query="""
SELECT s.pid, s.role, s.database, s.application_name AS program, s.active, s.operation, q.queue_name AS queue,
       CASE WHEN s.waiting THEN s.event WHEN s.active THEN 'on CPU' END AS event, CASE WHEN s.waiting THEN s.wait_class END AS wait_class,
       CASE WHEN s.waiting THEN s.wait_us END AS wait_us, b.pid AS blocker, s.query_id
FROM aq.sessions s LEFT JOIN aq.queues q ON q.queue_id = s.queue_id AND s.database = current_database()
    LEFT JOIN aq.sessions b ON b.session = s.blocking_session
WHERE s.backend_type = 'client backend' AND s.pid <> pg_backend_pid() AND (s.attached OR s.active)
ORDER BY s.active DESC, s.wait_us DESC NULLS LAST, s.pid""",
    columns=(
        Column("pid", "Pid", "text", "process id"),
        Column("role", "Role", text="its role", rank=4),
        Column("database", "Database", text="its database", rank=6),
        Column("program", "Program", text="application_name", rank=2),
        Column("active", "Active", "flag", "it runs, or its wait is not idle", rank=5),
        Column("operation", "Operation", text="queue operation it is in", rank=3),
        Column("queue", "Queue", text="queue of that operation", rank=3),
        Column("event", "Waits for", text="wait event; on CPU: it waits for nothing"),
        Column("wait_class", "Class", text="class of the wait", rank=5),
        Column("wait_us", "For", "us", "length of the wait so far"),
        Column("blocker", "Blocked by", "text", "process id of the session that blocks it", rank=1),
        Column("query_id", "Query", "text", "identifier of the query", rank=7),
    ),
    key="pid",
    order="wait_us",
    needs=MONITOR,
    empty="no session uses pgaq",
)

WAIT_TIMES = (
    Column("total_us", "Time", "us", "time waited"),
    Column("average_us", "Average", "us", "average of a wait", rank=1),
    Column("max_us", "Longest", "us", "longest wait", rank=2),
)

SESSION_WAITS = Subject(
    name="session_waits",
    title="Waits of the session",
    text="The waits of one session since it began to use pgaq.",
    query="""
SELECT event, wait_class, waits, timeouts, total_us, max_us, total_us / NULLIF(waits, 0) AS average_us
FROM aq.session_waits WHERE pid = %(pid)s AND waits > 0 ORDER BY total_us DESC""",
    columns=(
        Column("event", "Wait event", text="name"),
        Column("wait_class", "Class", text="Idle does not count as lost time", rank=2),
        Column("waits", "Waits", "count", "number of waits", counter=True),
        Column("timeouts", "Timeouts", "count", "of these: ended by their timeout", rank=3, counter=True),
        *WAIT_TIMES,
    ),
    key="event",
    order="total_us",
    parameters=("pid",),
    needs=MONITOR,
    empty="it has not waited in pgaq",
)

SESSION_STATISTICS = Subject(
    name="session_statistics",
    title="Statistics of the session",
    text="What one session has done since it began, or began to use pgaq.",
    query="SELECT name, value FROM aq.session_statistics WHERE pid = %(pid)s AND value <> 0 ORDER BY value DESC",
    columns=(
        Column("name", "Statistic", text="name"),
        Column("value", "Value", "count", "number, or bytes if the name says so", counter=True),
    ),
    key="name",
    order="value",
    parameters=("pid",),
    needs=MONITOR,
    empty="it has done nothing in pgaq",
)

WAITS = Subject(
    name="waits",
    title="Waits",
    text="Waits of all sessions in pgaq since the server started, idle ones left out.",
    query="""
SELECT event, wait_class, waits, timeouts, total_us, max_us, total_us / NULLIF(waits, 0) AS average_us
FROM aq.waits WHERE waits > 0 AND wait_class <> 'Idle' ORDER BY total_us DESC""",
    columns=(
        Column("event", "Wait event", text="name"),
        Column("wait_class", "Class", text="class of the event", rank=3),
        Column("waits", "Waits", "count", "number of waits", counter=True),
        Column("timeouts", "Timeouts", "count", "of these: ended by their timeout", rank=4, counter=True),
        *WAIT_TIMES,
    ),
    key="event",
    order="total_us",
    needs=MONITOR,
    empty="no session has waited in pgaq",
)

LATCH_COLUMNS = (
    Column("gets", "Gets", "count", "times it was got", counter=True),
    Column("misses", "Misses", "count", "gets whose first try failed", rank=1, counter=True),
    Column("spin_gets", "Spin gets", "count", "misses that got it while spinning", rank=3, counter=True),
    Column("sleeps", "Sleeps", "count", "sleeps for it", counter=True),
    Column("wait_us", "Slept", "us", "time that sessions slept for it", rank=1),
    Column("spin_us", "Spun", "us", "CPU time that sessions spun for it", rank=2),
)

LATCHES = Subject(
    name="latches",
    title="Latches",
    text="Latches by kind since the server started: how often they were got, missed and slept for.",
    query="SELECT latch, gets, misses, spin_gets, sleeps, wait_us, spin_us, protects FROM aq.latches WHERE gets > 0 ORDER BY sleeps DESC, misses DESC, gets DESC",
    columns=(Column("latch", "Latch", text="name"), *LATCH_COLUMNS, Column("protects", "Protects", text="what it protects", rank=6)),
    key="latch",
    order="sleeps",
    needs=MONITOR,
    empty="no latch was got",
)

LATCH_CHILDREN = Subject(
    name="latch_children",
    title="Children of the latch",
    text="Each latch of a kind that has several.",
    query="""
SELECT child, gets, misses, spin_gets, sleeps, wait_us, spin_us FROM aq.latch_children
WHERE latch = %(latch)s AND gets > 0 ORDER BY sleeps DESC, misses DESC, gets DESC""",
    columns=(Column("child", "Child", "text", "number"), *LATCH_COLUMNS),
    key="child",
    order="sleeps",
    parameters=("latch",),
    needs=MONITOR,
    empty="the latch has no children that were got",
)

LATCH_MISSES = Subject(
    name="latch_misses",
    title="Misses by location",
    text="Where in the code a latch was missed.",
    query="""
SELECT location, immediate_misses, holder_sleeps, waiter_sleeps, long_holds FROM aq.latch_misses WHERE latch = %(latch)s ORDER BY waiter_sleeps DESC""",
    columns=(
        Column("location", "Location", text="location in the code"),
        Column("immediate_misses", "No-wait misses", "count", "no-wait requests that failed there", rank=2, counter=True),
        Column("holder_sleeps", "Sleeps for it", "count", "sleeps while the holder had got it there", rank=1, counter=True),
        Column("waiter_sleeps", "Sleeps", "count", "sleeps of requests there", counter=True),
        Column("long_holds", "Long holds", "count", "sleeps during which one holder had it all the time", rank=3, counter=True),
    ),
    key="location",
    order="waiter_sleeps",
    parameters=("latch",),
    needs=MONITOR,
    empty="it was never missed",
)

TRACE_OBJECTS = Subject(
    name="trace_objects",
    title="By object and location",
    text="The sums of a session's trace.",
    query="""
SELECT operation, object, number, queue, location, gets, releases, failures, acquire_ns, hold_ns FROM aq.trace_objects(%(pid)s)
ORDER BY acquire_ns DESC, gets DESC""",
    columns=(
        Column("operation", "Operation", text="lock, pin, latch, mutex or wait"),
        Column("object", "Object", text="name"),
        Column("number", "Number", "text", "child, idn or handle", rank=5),
        Column("queue", "Queue", text="its queue", rank=3),
        Column("location", "Location", text="location in the code", rank=2),
        Column("gets", "Gets", "count", "gets, or waits"),
        Column("releases", "Releases", "count", "releases", rank=6),
        Column("failures", "Failures", "count", "no-wait gets that failed", rank=6),
        Column("acquire_ns", "To get", "ns", "time to get, or to wait"),
        Column("hold_ns", "Held", "ns", "time held", rank=1),
    ),
    key="object",
    parameters=("pid",),
    empty="it did nothing in pgaq during the trace",
)

TRACE_ROWS = Subject(
    name="trace_rows",
    title="Rows",
    text="The latest rows of a session's trace.",
    query="""
SELECT * FROM (SELECT sequence, at_ns, operation, action, object, number, queue, location, mode, elapsed_ns, held_ns FROM aq.trace(%(pid)s)
    ORDER BY sequence DESC LIMIT %(limit)s) r ORDER BY sequence""",
    columns=(
        Column("sequence", "Row", "count", "number", rank=4),
        Column("at_ns", "At", "ns", "time since the start of the trace"),
        Column("operation", "Operation", text="lock, pin, latch, mutex, wait, publish or wake-up"),
        Column("action", "Action", text="get, release, failed, begin, end, timeout or post"),
        Column("object", "Object", text="name"),
        Column("number", "Number", "text", "child, idn, handle, number of messages or process id", rank=5),
        Column("queue", "Queue", text="its queue", rank=3),
        Column("location", "Location", text="location in the code", rank=2),
        Column("mode", "Mode", text="shared, exclusive or examine", rank=4),
        Column("elapsed_ns", "Took", "ns", "time to get or to wait", rank=1),
        Column("held_ns", "Held", "ns", "time held", rank=1),
    ),
    key="sequence",
    parameters=("pid", "limit"),
    empty="no rows",
)
