"""What each page shows: a function from a connection and the parameters of the URL to the values of its template.

The queries run as the role that has logged in, in a read-only transaction: it sees what the server shows it.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, Mapping

from pgaq import db
from pgaq.command.doctor import findings
from pgaq.command.output import ask
from pgaq.console import words
from pgaq.console.logins import Login
from pgaq.subjects import (
    CACHE,
    CONSUMERS,
    DEAD_LETTERS,
    EXCEPTION_QUEUES,
    KEYS,
    LATCHES,
    LINKS,
    NODES,
    PARAMETERS,
    PRIVILEGES,
    PROPAGATIONS,
    QUEUE,
    QUEUE_UNITS,
    QUEUES,
    SCHEDULES,
    SERVER,
    SHARDS,
    SNAPSHOTS,
    SUBSCRIBERS,
    WAITS,
    WORKERS,
    Column,
    Subject,
    across_versions,
)

PAGE = 50  # rows
GROUPED, GROUPED_QUEUES = 100_000, 10  # limits of what is grouped on one page: dead letters of a queue, and queues
POINTS = 180  # of a curve
KEPT = 1000  # curves of a login
RECORDS_AGE = 60.0  # seconds for which it is not looked again whether there is a history
ADVICE_AGE = 10.0  # seconds for which the doctor's findings are shown again
SHOWN_PAYLOAD = 65_536  # characters of a payload
STATES = ("READY", "WAITING", "LOCKED", "LEASED", "PROCESSED", "PURGED", "EXPIRED")
ORDERS = {"attention": "attention DESC, backlog DESC NULLS LAST, queue", "queue": "queue"} | {
    name: f"{name} DESC NULLS LAST, queue"
    for name in ("backlog", "ready", "delayed", "in_flight", "oldest", "waiting", "failed", "enqueued")
}

OVERVIEW = f"""
SELECT *, count(*) OVER () AS found, sum(ready) FILTER (WHERE NOT dead) OVER ()::bigint AS all_ready,
       sum(in_flight) OVER ()::bigint AS all_in_flight, sum(delayed) OVER ()::bigint AS all_delayed, sum(backlog) FILTER (WHERE dead) OVER ()::bigint AS all_dead,
       sum(waiting) OVER ()::bigint AS all_waiting, sum(enqueued) FILTER (WHERE NOT dead) OVER ()::bigint AS all_enqueued,
       sum(dequeued) FILTER (WHERE NOT dead) OVER ()::bigint AS all_dequeued, max(oldest) FILTER (WHERE NOT dead) OVER () AS all_oldest
FROM (SELECT q.*, kind ~ '^exception' AS dead, 2 * (queue = ANY (%(problems)s::text[]))::int + (queue = ANY (%(warnings)s::text[]))::int AS attention FROM ({QUEUES.query}) q) q
WHERE (%(all)s OR NOT dead OR backlog > 0) AND (%(q)s = '' OR strpos(lower(queue), lower(%(q)s)) > 0)
ORDER BY {{order}} LIMIT {PAGE} OFFSET %(offset)s"""
# the number of messages of each minute of the last hour in which it changed, of the queues of the page: an object for each delivery mode
RECORDED = f"""
WITH page AS MATERIALIZED ({OVERVIEW})
SELECT page.*, h.recorded FROM page LEFT JOIN (
    SELECT queue_name, jsonb_agg(minutes) AS recorded FROM (
        SELECT queue_name, jsonb_object_agg(floor(extract(epoch FROM now() - sampled_at) / 60)::int, ready + in_flight + delayed ORDER BY sampled_at) AS minutes
        FROM aq.history_minutes WHERE queue_name = ANY (ARRAY (SELECT queue FROM page)) AND sampled_at > now() - interval '1 hour' GROUP BY 1, delivery_mode) m
    GROUP BY 1) h ON h.queue_name = page.queue
ORDER BY {{order}}"""
CAN_PAUSE = "SELECT to_regprocedure('aq.pause(text, text, text)') IS NOT NULL"  # not in a catalog of 0.1.0
# name: view, length of a point in seconds, their number
SPANS = {"1 h": ("minutes", 60, 60), "2 d": ("minutes", 600, 288), "90 d": ("hours", 21600, 360)}
HISTORY = """
SELECT delivery_mode, floor(extract(epoch FROM now() - sampled_at) / %(step)s::int)::int AS age, sum(enqueued)::float8 AS enqueued, sum(dequeued)::float8 AS dequeued,
       sum(failed)::float8 AS failed, max(ready + in_flight + delayed) AS most, (array_agg(ready + in_flight + delayed ORDER BY sampled_at DESC))[1] AS last,
       max(p50_seconds) AS p50, max(p99_seconds) AS p99
FROM aq.history_{view} WHERE queue_name = %(queue)s AND sampled_at > now() - %(step)s::int * %(points)s::int * interval '1 second'
GROUP BY 1, 2"""
GROUPS = """
SELECT queue_name AS queue, consumer, reason, left(last_error, 300) AS error, count(*) AS messages, min(died) AS first, max(died) AS last,
       (array_agg(msgid::text ORDER BY died DESC))[1] AS msgid
FROM aq.dead_letters WHERE exception_queue = %(exception_queue)s GROUP BY 1, 2, 3, 4 ORDER BY messages DESC, last DESC LIMIT 100"""
MESSAGES = (
    across_versions("""
SELECT msgid::text AS msgid, consumer, state, priority, attempts, enqueue_time, correlation, key, left(payload, 200) AS payload, length(payload) AS length,
       ready_at, expires_at, leased_by, last_error
FROM aq.messages WHERE queue_name = %(queue)s AND (%(state)s = '' OR state = %(state)s) AND (%(consumer)s = '' OR consumer = %(consumer)s)
  AND (%(correlation)s = '' OR correlation = %(correlation)s) AND (%(key)s = '' OR key = %(key)s) AND (%(text)s = '' OR strpos(payload, %(text)s) > 0)
  AND (%(priority)s::int IS NULL OR priority = %(priority)s::int)""")
    + f"LIMIT {PAGE + 1} OFFSET %(offset)s"
)
MESSAGE = (
    across_versions(f"""
SELECT queue_name AS queue, consumer, msgid::text AS msgid, state, priority, correlation, key, left(payload, {SHOWN_PAYLOAD}) AS payload,
       octet_length(payload) AS bytes, enqueue_time, ready_at, expires_at, dequeue_time, attempts, sender, exception_queue,
       original_msgid::text AS original_msgid, properties, shard, delivery_mode, leased_since, leased_until, leased_by, last_error, dead_letter,
       context ->> 'traceparent' AS traceparent, context ->> 'tracestate' AS tracestate
FROM aq.message(%(queue)s, %(msgid)s::uuid) m, LATERAL (SELECT CASE WHEN m.properties ? 'traceparent' THEN m.properties
    WHEN (SELECT q.payload_type FROM aq.queues q WHERE q.queue_name = m.queue_name) = to_regtype('aq.jms_message') THEN (m.payload::aq.jms_message).properties END AS context) c""")
    + "ORDER BY consumer"
)
# pg_blocking_pids costs a look at all locks, so it is asked only for sessions that wait for one
SESSIONS = """
SELECT s.pid, s.role, s.database, s.application_name AS program, s.backend_type, s.active, s.operation, q.queue_name AS queue, s.query_id,
       CASE WHEN s.waiting THEN s.event WHEN s.active THEN 'on CPU' END AS event, s.wait_class, CASE WHEN s.waiting THEN s.wait_us END AS wait_us,
       s.p1_meaning, s.p1, s.p2_meaning, s.p2, s.p3_meaning, s.p3, a.query, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS open,
       COALESCE(b.pid, CASE WHEN s.waiting AND a.wait_event_type = 'Lock' THEN (pg_blocking_pids(s.pid))[1] END) AS blocker
FROM aq.sessions s LEFT JOIN aq.queues q ON q.queue_id = s.queue_id AND s.database = current_database()
    LEFT JOIN aq.sessions b ON b.session = s.blocking_session LEFT JOIN pg_stat_activity a ON a.pid = s.pid
WHERE s.pid <> pg_backend_pid() AND (s.attached OR s.active OR a.wait_event_type = 'Lock' OR a.xact_start < clock_timestamp() - interval '1 minute')
ORDER BY s.active DESC, s.wait_us DESC NULLS LAST, s.pid LIMIT 200"""
OLDEST = """
SELECT * FROM (
    SELECT 'session' AS kind, pid::text AS name, concat_ws(', ', usename, NULLIF(application_name, ''), state) AS what, query,
           GREATEST(age(backend_xmin), age(backend_xid)) AS age, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
    FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL SELECT 'prepared transaction', gid, concat_ws(', ', owner, database), NULL, age(transaction), extract(epoch FROM clock_timestamp() - prepared)::float8
    FROM pg_prepared_xacts
    UNION ALL SELECT 'replication slot', slot_name, concat_ws(', ', slot_type, CASE WHEN active THEN 'active' ELSE 'not active' END), NULL,
           GREATEST(age(xmin), age(catalog_xmin)), NULL FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
    UNION ALL SELECT 'standby', COALESCE(application_name, pid::text), host(client_addr), NULL, age(backend_xmin), NULL
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL) h
ORDER BY age DESC, seconds DESC NULLS LAST LIMIT 10"""
MUTEXES = Subject(
    name="mutexes",
    title="Mutexes",
    text="Requests for mutexes since the server started, by location in the code.",
    query="""SELECT mutex_type, location, gets, misses, waits, sleeps, wait_us, spin_us FROM aq.mutexes WHERE misses > 0
        ORDER BY wait_us DESC, misses DESC LIMIT 10""",
    columns=(
        Column("mutex_type", "Mutex", text="what it protects"),
        Column("location", "Location", text="where in the code it was requested"),
        Column("gets", "Gets", "count", "requests that got it"),
        Column("misses", "Misses", "count", "of these: the first try failed"),
        Column("waits", "Waits", "count", "of these: had to wait"),
        Column("wait_us", "Waited", "us", "time waited"),
        Column("spin_us", "Spun", "us", "CPU time spent spinning"),
    ),
    key="mutex_type",
    within=("location",),
    needs="membership in pg_monitor",
    empty="no request had to wait",
)


# columns of the overview, with what they mean
OVERVIEW_COLUMNS = [
    (each.live or each.title, each.text)
    for each in QUEUES.columns
    if each.name in ("ready", "in_flight", "delayed", "oldest", "backlog", "waiting", "failed")
]


class NotFound(Exception):
    """There is no such thing, or the role may not see it: the server does not say which."""


class Wrong(Exception):
    """A parameter of the URL is not what it should be."""


@dataclass
class Table:
    """A subject with its rows, for the template."""

    subject: Subject
    rows: list[dict[str, Any]]
    note: str = ""
    links: dict[str, str] = field(default_factory=dict)  # column -> path of its page, to which the value is added

    @property
    def columns(self) -> list[Column]:
        """Without those that say nothing in any row."""
        return [
            each
            for each in self.subject.columns
            if each.rank < 9 and (each.rank == 0 or any(row.get(each.name) not in (None, "") for row in self.rows))
        ]


@dataclass
class Page:
    """A page: its function, its template, and whether it is shown live."""

    title: str
    template: str
    show: Callable[[db.Connection, Login, Mapping[str, str]], dict[str, Any]]
    live: bool = True


def listed(conn: db.Connection, subject: Subject, *, limit: int | None = None, links: dict[str, str] | None = None, **given: Any) -> Table:
    """A subject; without the privilege for it, a sentence instead of rows."""
    try:
        with conn.transaction():
            rows, note = ask(conn, subject, **given), ""
    except db.Error as error:
        if db.said(error)[0] != "42501":
            raise
        rows, note = [], f"Permission denied; it takes {subject.needs or 'a privilege'}."
    return Table(subject, rows[:limit], note, links or {})


def number(given: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    word = given.get(name, "")
    if not word:
        return default
    if not word.removeprefix("-").isdecimal() or len(word) > 9:
        raise Wrong(f"{name} is not a number")
    return int(word)


def offset(given: Mapping[str, str]) -> int:
    return max(0, (number(given, "page", 1) or 1) - 1) * PAGE


# -- readings: rates and curves since the login


def advice(conn: db.Connection, login: Login) -> list[dict[str, Any]]:
    """The doctor's findings, at most every ten seconds."""
    at, found = login.kept.get("advice", (-ADVICE_AGE, []))
    if time.monotonic() - at >= ADVICE_AGE:
        try:
            with conn.transaction():
                found, _ = findings(conn, thorough=False)
        except db.Error as error:
            if db.said(error)[0] not in ("57014", "25P02"):
                raise
            found = []  # not in time: the page is shown without
        login.kept["advice"] = (time.monotonic(), found)
    return found


def concerns(found: dict[str, Any]) -> str:
    """The queue that a finding is about, if it is one: its case is the queue, or "queue (consumer)"."""
    return (found["case"] or "").rpartition(" (")[0] or found["case"] or ""


def reading(login: Login, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Notes counters, and gives rates since the reading before, and curves.  At most one point a second is kept."""
    with login.lock:
        kept: dict[str, deque[tuple[float, Any, Any, Any]]] = login.kept.setdefault("readings", {})
        points = kept.setdefault(name, deque(maxlen=POINTS))
        now = time.monotonic()
        if not points or now - points[-1][0] >= 1:
            points.append((now, row["enqueued"], row["dequeued"], row["backlog"]))
        if len(kept) > KEPT:
            kept.pop(next(iter(kept)))
        points = deque(points)
    into, out = _rates(points, 1), _rates(points, 2)
    return {
        "in": into[-1] if into else None,
        "out": out[-1] if out else None,
        "ins": into,
        "outs": out,
        "backlogs": [each[3] for each in points],
    }


def _rates(points: deque[tuple[float, Any, Any, Any]], column: int) -> list[float | None]:
    rates: list[float | None] = []
    before = None
    for point in points:
        if before is not None:
            a, b = before[column], point[column]
            rates.append(None if a is None or b is None or b < a else (b - a) / (point[0] - before[0]))
        before = point
    return rates


# -- the history that the server has recorded


def records(conn: db.Connection, login: Login) -> bool:
    """Does the server record one?  A catalog of an earlier version has none.  Looked at once a minute."""
    at, found = login.kept.get("records", (-RECORDS_AGE, False))
    if time.monotonic() - at >= RECORDS_AGE:
        found = bool(
            db.value(conn, "SELECT to_regclass('aq.history_minutes') IS NOT NULL AND current_setting('pgaq.history', true) = 'on'")
        )
        login.kept["records"] = (time.monotonic(), found)
    return found


def held(modes: Iterable[Mapping[int, tuple[Any, Any]]], points: int, now: Any, hold: bool = True) -> list[Any]:
    """Values by age, the oldest first: the sum of what is known of each delivery mode.

    Of each age it knows the most, and the last number, which holds until the next one.
    """
    curves = []
    for known in modes:
        values, last = [], None
        for age in reversed(range(points)):
            most, last = known.get(age, (last, last) if hold else (None, None))
            values.append(most)
        curves.append(values)
    sums = ([value for value in each if value is not None] for each in zip(*curves))
    return [*(sum(each) if each else None for each in sums), now]


def history(conn: db.Connection, name: str, span: str, backlog: Any) -> dict[str, list[Any]] | None:
    """What happened to a queue in a span of time: points, the oldest first.  None: nothing was recorded."""
    view, step, points = SPANS[span]
    modes: dict[str, dict[int, dict[str, Any]]] = {}
    for row in db.rows(conn, HISTORY.format(view=view), {"queue": name, "step": step, "points": points}):
        modes.setdefault(row["delivery_mode"], {})[row["age"]] = row
    if not modes:
        return None

    def of(age: int, column: str) -> list[Any]:
        return [rows[age][column] for rows in modes.values() if age in rows and rows[age][column] is not None]

    ages = list(reversed(range(points)))
    rates = {each: [sum(of(age, each)) / step for age in ages] for each in ("enqueued", "dequeued", "failed")}
    waits = {each: [max(of(age, each), default=None) for age in ages] for each in ("p50", "p99")}
    # the number at the end of an hour is not known
    numbers = [{age: (row["most"], row["last"]) for age, row in rows.items()} for rows in modes.values()]
    return {**rates, **waits, "backlogs": held(numbers, points, backlog, hold=view == "minutes")}


# -- pages


def overview(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    found = advice(conn, login)
    about: dict[str, list[dict[str, Any]]] = {}
    for each in found:
        about.setdefault(concerns(each), []).append(each)
    order = given.get("sort", "attention")
    if order not in ORDERS:
        raise Wrong("sort is not the name of a column")
    asked = {
        "problems": [name for name, each in about.items() if any(one["level"] == "problem" for one in each)],
        "warnings": [name for name, each in about.items() if any(one["level"] == "warning" for one in each)],
        "q": given.get("q", ""), "all": given.get("all") == "1", "offset": offset(given),
    }  # fmt: skip
    recorded = records(conn, login)
    rows = db.rows(conn, (RECORDED if recorded else OVERVIEW).format(order=ORDERS[order]), asked)
    for row in rows:
        row.update(advice=about.pop(row["queue"], []), **reading(login, row["queue"], row))
        if recorded and row["recorded"]:
            modes = [{int(age): (value, value) for age, value in minutes.items()} for minutes in row["recorded"]]
            row["backlogs"] = held(modes, 60, row["backlog"])
    totals = {name.removeprefix("all_"): value for name, value in rows[0].items() if name.startswith("all_")} if rows else None
    whole = None
    if totals:
        whole = reading(login, f"\0{asked['q']}\0{asked['all']}", {**totals, "backlog": totals["ready"]})
    return {
        "server": ask(conn, SERVER)[0], "cache": listed(conn, CACHE), "rows": rows, "meanings": OVERVIEW_COLUMNS, "totals": totals, "whole": whole, "sort": order,
        "advice": [each for rest in about.values() for each in rest], "pages": -(-rows[0]["found"] // PAGE) if rows else 0,
        "found": rows[0]["found"] if rows else 0, "page": number(given, "page", 1),
    }  # fmt: skip


def no_queue(name: str) -> NotFound:
    return NotFound(f'There is no queue "{name}", or this role cannot use it.')


def one_queue(conn: db.Connection, given: Mapping[str, str]) -> dict[str, Any]:
    rows = ask(conn, QUEUE, queue=given.get("name", ""))
    if not rows:
        raise no_queue(given.get("name", ""))
    return rows[0]


def queue(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    settings = one_queue(conn, given)
    name = settings["queue"]
    row = next(iter(db.rows(conn, f"SELECT * FROM ({QUEUES.query}) q WHERE queue = %s", [name])), None)
    if row is None:
        raise no_queue(name)  # it was dropped after the first query
    # a standby has none
    waited = db.row(conn, "SELECT min(p50_seconds) AS p50, min(p99_seconds) AS p99 FROM aq.latencies WHERE queue_name = %s AND delivery_mode = 'persistent'", [name])  # fmt: skip
    links = {"consumer": f"messages?queue={words.quoted(name)}&consumer="}
    sessions = [each for each in _sessions(conn)[0] if each["queue"] == name]
    span = given.get("span", "1 h")
    if span not in SPANS:
        raise Wrong("span is not 1 h, 2 d or 90 d")
    recording = records(conn, login)
    return {
        "recorded": history(conn, name, span, row["backlog"]) if recording else None, "span": span, "spans": list(SPANS) if recording else [],
        "can_pause": db.value(conn, CAN_PAUSE),
        "queue": settings, "row": row, "waited": waited, "heading": name, "settings_columns": QUEUE.columns, "advice": [each for each in advice(conn, login) if concerns(each) == name],
        **{"curves": reading(login, name, row)}, "sessions": sessions,
        "tables": [
            listed(conn, CONSUMERS, queue=name, links=links), listed(conn, SUBSCRIBERS, queue=name, links=links), listed(conn, SCHEDULES, queue=name),
            listed(conn, PROPAGATIONS, queue=name), listed(conn, SHARDS, queue=name, limit=64), listed(conn, QUEUE_UNITS, queue=name, limit=64),
            listed(conn, PRIVILEGES, queue=name),
        ],
    }  # fmt: skip


def messages(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    settings = one_queue(conn, {"name": given.get("queue", "")})
    state = given.get("state", "")
    if state and state not in STATES:
        raise Wrong("state is not a state of a message")
    asked = {name: given.get(name, "") for name in ("state", "consumer", "correlation", "key", "text")}
    rows = db.rows(conn, MESSAGES, {"queue": settings["queue"], "priority": number(given, "priority"), "offset": offset(given), **asked})
    consumers = [row["consumer"] for row in db.rows(conn, "SELECT DISTINCT consumer FROM aq.subscribers WHERE queue_name = %s AND consumer IS NOT NULL ORDER BY 1 LIMIT 200", [settings["queue"]])]  # fmt: skip
    return {
        "queue": settings, "heading": f"Messages of {settings['queue']}", "rows": rows[:PAGE], "more": len(rows) > PAGE, "page": number(given, "page", 1), "states": STATES, "consumers": consumers,
        "hidden": "dequeue" not in (settings["rights"] or ""),
    }  # fmt: skip


def keys(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    name = one_queue(conn, {"name": given.get("queue", "")})["queue"]
    links = {"key": f"messages?queue={words.quoted(name)}&key="}
    return {"heading": f"Keys of {name}", "tables": [listed(conn, KEYS, queue=name, links=links)]}


def message(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    msgid = given.get("id", "")
    if not words.is_uuid(msgid):
        raise Wrong("id is not the id of a message")
    rows = db.rows(conn, MESSAGE, {"queue": given.get("queue", ""), "msgid": msgid})
    if not rows:
        raise NotFound("There is no such message, or this role cannot dequeue it.")
    form = given.get("as", "json")
    row = rows[0]
    return {"message": row, "heading": f"Message of {row['queue']}", "rows": rows, "form": form, "payload": words.payload(row["payload"], form), "cut": (row["bytes"] or 0) > len((row["payload"] or "").encode()), "timelines": [(each["consumer"], words.timeline(each)) for each in rows]}  # fmt: skip


def dead(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    queues = listed(conn, EXCEPTION_QUEUES, links={"exception_queue": "dead?queue="})
    chosen = given.get("queue", "")
    filled = [row for row in queues.rows if row["dead_letters"]]
    names = [chosen] if chosen else [row["exception_queue"] for row in filled if row["dead_letters"] <= GROUPED][:GROUPED_QUEUES]
    left_out = [] if chosen else [row["exception_queue"] for row in filled if row["exception_queue"] not in names]
    groups = []
    for name in names:
        for row in db.rows(conn, GROUPS, {"exception_queue": name}):
            groups.append({"exception_queue": name, **row})
    letters = ask(conn, DEAD_LETTERS, exception_queue=chosen, limit=PAGE) if chosen else []
    queues.rows = filled or queues.rows[:PAGE]
    return {
        "queues": queues,
        "groups": sorted(groups, key=lambda each: -each["messages"]),
        "chosen": chosen,
        "letters": letters,
        "left_out": left_out,
    }


def _sessions(conn: db.Connection) -> tuple[list[dict[str, Any]], str]:
    """Sessions of pgaq, with the parameters of their waits in words."""
    try:
        with conn.transaction():
            sessions = db.rows(conn, SESSIONS)
    except db.Error as error:
        if db.said(error)[0] != "42501":
            raise
        return [], "Permission denied; it takes membership in pg_monitor."
    ids = {each[name] for each in sessions for name in ("p1", "p2", "p3") if each[f"{name}_meaning"] == "queue id"}
    names = (
        dict(conn.execute("SELECT queue_id, queue_name FROM aq.queues WHERE queue_id = ANY (%s)", [list(ids)]).fetchall()) if ids else {}
    )
    for each in sessions:
        each["parameters"] = words.parameters(each, names)
    return sessions, ""


def waits(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    sessions, note = _sessions(conn)
    # a short statement beside the one that holds the snapshot says nothing, even if its snapshot is as old
    oldest = [each for i, each in enumerate(db.rows(conn, OLDEST)) if i == 0 or each["seconds"] is None or each["seconds"] >= 1]
    return {
        "sessions": sessions, "note": note, "tree": words.tree(sessions), "oldest": oldest,
        "tables": [listed(conn, WAITS, limit=15), listed(conn, LATCHES, limit=10), listed(conn, MUTEXES)],
    }  # fmt: skip


def schedules(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    table = listed(conn, SCHEDULES, limit=PAGE)
    for row in table.rows:
        row["words"] = words.timing(row["timing"])
        row["times"] = []
        if row["state"] in ("active", "failing") and row["next_run"]:
            cron, every = (None, row["timing"].removeprefix("every ")) if row["timing"].startswith("every ") else (row["timing"], None)
            times = """SELECT run_at FROM aq.schedule_times(%s::text, %s::text::interval, %s::text, count => 5)"""
            row["times"] = [each["run_at"] for each in db.rows(conn, times, [cron, every, row["time_zone"]])] if cron else []
    return {"table": table}


def cluster(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    return {"tables": [listed(conn, each, queue=None) for each in (NODES, LINKS, PROPAGATIONS, WORKERS)]}


def reports(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    table = listed(conn, SNAPSHOTS, limit=100)
    return {"snapshots": table, "parameters": listed(conn, PARAMETERS), "server": ask(conn, SERVER)[0]}


ACTIONS = Subject(
    name="actions",
    title="Changes",
    text="What was changed through a console.",
    query="SELECT done_at, role, action, object, number, detail FROM aq.actions ORDER BY done_at DESC LIMIT 200",
    columns=(
        Column("done_at", "When", "time", "when it was done"),
        Column("role", "Who", text="role that had logged in"),
        Column("action", "What", text="what was done"),
        Column("object", "On", text="queue, schedule or message"),
        Column("number", "Messages", "count", "how many messages it concerned"),
        Column("detail", "Arguments", text="arguments"),
    ),
    key="done_at",
    empty="nothing was changed in the last 90 days by this role",
)


def log(conn: db.Connection, login: Login, given: Mapping[str, str]) -> dict[str, Any]:
    return {"tables": [listed(conn, ACTIONS)]}


PAGES = {
    "queues": Page("Overview", "overview.html", overview),
    "queue": Page("Queue", "queue.html", queue),
    "messages": Page("Messages", "messages.html", messages, live=False),
    "keys": Page("Keys", "cluster.html", keys, live=False),
    "message": Page("Message", "message.html", message, live=False),
    "dead": Page("Dead letters", "dead.html", dead, live=False),
    "waits": Page("Waits and blockers", "waits.html", waits),
    "schedules": Page("Schedules", "schedules.html", schedules),
    "cluster": Page("Cluster", "cluster.html", cluster),
    "log": Page("Log", "cluster.html", log),
    "reports": Page("Reports", "reports.html", reports, live=False),
}
