"""The families of metrics, as data: a query for each collector, and what its columns become.

docs/sql_exporter.yml has the same names and labels for a part of them, and docs/grafana the panels; tests compare.
A queue, schedule or destination is a label only up to a limit: the rest is summed in one series with the label `other`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgaq.subjects.queues import PAUSES

LATENCY_BOUNDS = tuple(0.000256 * 4**n for n in range(16))  # seconds: those of every second bucket of aq.latencies but the last
CONSUMERS_OF_A_QUEUE = 100  # consumers of a queue that are labels; the rest is summed


@dataclass(frozen=True)
class Family:
    """Samples of one name.  Rows with the same labels are added up; no value, no sample."""

    name: str  # as a query names its samples: a counter's ends in _total
    kind: str  # gauge, counter, info, or histogram
    text: str
    value: str = ""  # the column of the collector's query; of a histogram: its buckets, and `total` is the sum
    labels: tuple[str, ...] = ()  # its columns, too
    unit: str = ""  # a base unit, with which the name ends
    total: str = ""


@dataclass(frozen=True)
class Collector:
    """A query and its families.  The query has the parameters limit and consumers."""

    name: str
    query: str
    families: tuple[Family, ...]


CONSUMER = ("database", "queue", "consumer", "delivery_mode")

# Queues that are labels: the oldest ones, so that which ones they are changes only when one is dropped.  Exception queues come last.
NAMED = """q AS MATERIALIZED (SELECT queue_id, queue_name, queue_type, exception_queue FROM aq.queues),
named AS (
    SELECT q.queue_id, q.queue_name, e.exception_queue IS NOT NULL AS is_exception_queue,
           row_number() OVER (ORDER BY q.queue_type = 'exception' OR e.exception_queue IS NOT NULL, q.queue_id) <= %(limit)s AS named
    FROM q LEFT JOIN (SELECT DISTINCT exception_queue FROM q) e ON e.exception_queue = q.queue_name)"""


def _limited(columns: str, table: str, key: str, sums: str) -> str:
    """Rows of a view in the order of their keys; those beyond the limit have the label other."""
    labels = ", ".join(f"CASE WHEN number <= %(limit)s THEN {column} ELSE 'other' END AS {column}" for column in columns.split(", "))
    positions = ", ".join(str(number + 2) for number in range(columns.count(",") + 1))
    return f"""
SELECT current_database() AS database, {labels}, {sums}
FROM (SELECT *, row_number() OVER (ORDER BY {key}) AS number FROM {table}) t GROUP BY 1, {positions}"""


COLLECTORS: tuple[Collector, ...] = (
    Collector(
        "queues",
        f"""
WITH m AS MATERIALIZED (SELECT * FROM aq.metrics()),
p AS MATERIALIZED ({PAUSES}),
{NAMED},
labelled AS (
    SELECT m.*, n.is_exception_queue, CASE WHEN n.named THEN m.queue_name ELSE 'other' END AS queue,
           COALESCE(extract(epoch FROM clock_timestamp() - LEAST(whole.paused, one.paused)), 0)::float8 AS paused_seconds,
           CASE WHEN n.named IS NOT TRUE THEN ''
                WHEN dense_rank() OVER (PARTITION BY m.queue_id ORDER BY m.consumer) > %(consumers)s THEN 'other'
                ELSE COALESCE(m.consumer, '') END AS of_consumer
    FROM m LEFT JOIN named n USING (queue_id) LEFT JOIN p whole ON whole.queue_name = m.queue_name AND whole.consumer IS NULL
        LEFT JOIN p one ON one.queue_name = m.queue_name AND one.consumer = m.consumer)
SELECT current_database() AS database, queue, of_consumer AS consumer, delivery_mode, sum(lag)::bigint AS lag, sum(ready)::bigint AS ready,
       sum(delayed)::bigint AS delayed, sum(in_flight)::bigint AS in_flight, sum(leased)::bigint AS leased, sum(failed)::bigint AS failed,
       sum(enqueued)::bigint AS enqueued, sum(dequeued)::bigint AS dequeued, sum(waiting)::bigint AS waiting,
       max(paused_seconds) AS paused_seconds,
       CASE WHEN count(ready) > 0 THEN COALESCE(max(oldest_ready_seconds), 0) END AS oldest_ready_seconds,
       max(extract(epoch FROM clock_timestamp() - counted_at))::float8 AS counted_age,
       (sum(lag) FILTER (WHERE is_exception_queue))::bigint AS exception_messages
FROM labelled GROUP BY queue, of_consumer, delivery_mode""",
        (
            Family("pgaq_lag", "gauge", "Committed messages that the consumer has not finished.", "lag", CONSUMER),
            Family("pgaq_ready", "gauge", "Messages that the consumer can dequeue now.", "ready", CONSUMER),
            Family("pgaq_delayed", "gauge", "Messages with a delay or a retry delay that is not over.", "delayed", CONSUMER),
            Family(
                "pgaq_in_flight",
                "gauge",
                "Messages taken by transactions that run or are prepared, and leased ones.",
                "in_flight",
                CONSUMER,
            ),
            Family("pgaq_leased", "gauge", "Messages in flight whose lease runs.", "leased", CONSUMER),
            Family(
                "pgaq_oldest_ready_seconds",
                "gauge",
                "How long the oldest ready message has been ready; 0 if none is ready.",
                "oldest_ready_seconds",
                CONSUMER,
                "seconds",
            ),
            Family("pgaq_enqueued_total", "counter", "Messages enqueued for the consumer.", "enqueued", CONSUMER),
            Family(
                "pgaq_dequeued_total",
                "counter",
                "Messages that the consumer has finished: consumed, purged, expired or failed.",
                "dequeued",
                CONSUMER,
            ),
            Family("pgaq_failed_total", "counter", "Messages that expired or exceeded max_retries.", "failed", CONSUMER),
            Family("pgaq_waiting_sessions", "gauge", "Sessions that wait for messages of the consumer.", "waiting", CONSUMER),
            Family(
                "pgaq_paused_seconds",
                "gauge",
                "How long the consumer has been paused, by name or with all of its queue; 0: it is not.",
                "paused_seconds",
                CONSUMER,
                "seconds",
            ),
            Family(
                "pgaq_counted_age_seconds",
                "gauge",
                "How old the numbers of ready, delayed and in-flight messages are; above 0 for queue tables only.",
                "counted_age",
                CONSUMER,
                "seconds",
            ),
            Family(
                "pgaq_exception_messages",
                "gauge",
                "Messages in a queue that is the exception queue of others.",
                "exception_messages",
                ("database", "queue"),
            ),
        ),
    ),
    Collector(
        "latencies",
        f"""
WITH {NAMED}
SELECT current_database() AS database, CASE WHEN n.named THEN queue_name ELSE 'other' END AS queue, l.delivery_mode, l.buckets, l.total_seconds
FROM aq.latencies l LEFT JOIN named n USING (queue_name) WHERE l.messages > 0""",
        (
            Family(
                "pgaq_latency_seconds",
                "histogram",
                "How long messages waited from their enqueue, or the end of their delay, until they were dequeued; no series before the first one.",
                "buckets",
                ("database", "queue", "delivery_mode"),
                "seconds",
                "total_seconds",
            ),
        ),
    ),
    Collector(
        "message_cache",
        """
SELECT state, bytes, partitions FROM aq.message_cache, LATERAL (VALUES ('total', total_bytes, NULL), ('used', used_bytes, NULL),
    ('known', NULL, known_partitions), ('resident', NULL, resident_partitions), ('limit', NULL, max_partitions)) s(state, bytes, partitions)""",
        (
            Family(
                "pgaq_message_cache_bytes",
                "gauge",
                "Size of the message cache of the server, and the part in use.",
                "bytes",
                ("state",),
                "bytes",
            ),
            Family(
                "pgaq_partitions",
                "gauge",
                "Partitions of all queues in use, those in the message cache, and pgaq.max_partitions.",
                "partitions",
                ("state",),
            ),
        ),
    ),
    Collector(
        "workers",
        """
SELECT database::text AS database, (problem IS NOT NULL)::int AS problem, (pid IS NOT NULL)::int AS running
FROM aq.workers WHERE database IS NOT NULL""",
        (
            Family(
                "pgaq_worker_problem",
                "gauge",
                "1 if the background worker of the database cannot run, or has ended with an error; one series for each database of the server.",
                "problem",
                ("database",),
            ),
            Family(
                "pgaq_worker_running",
                "gauge",
                "1 if the background worker of the database has a process; it leaves when it has nothing to do and its slot is needed.",
                "running",
                ("database",),
            ),
        ),
    ),
    Collector(
        "waits",
        "SELECT event, wait_class, waits, total_us / 1000000.0::float8 AS seconds FROM aq.waits WHERE wait_class <> 'Idle'",
        (
            Family(
                "pgaq_waits_total",
                "counter",
                "Waits of sessions in pgaq, without those for messages and for work.",
                "waits",
                ("event", "wait_class"),
            ),
            Family(
                "pgaq_wait_seconds_total",
                "counter",
                "Seconds that sessions waited in pgaq, without waits for messages and for work.",
                "seconds",
                ("event", "wait_class"),
                "seconds",
            ),
        ),
    ),
    Collector(
        "latches",
        "SELECT latch, gets, misses, sleeps, wait_us / 1000000.0::float8 AS seconds FROM aq.latches WHERE gets > 0",
        (
            Family("pgaq_latch_gets_total", "counter", "Times a latch was acquired.", "gets", ("latch",)),
            Family("pgaq_latch_misses_total", "counter", "Times the first try to acquire a latch failed.", "misses", ("latch",)),
            Family("pgaq_latch_sleeps_total", "counter", "Times a session slept for a latch.", "sleeps", ("latch",)),
            Family(
                "pgaq_latch_sleep_seconds_total", "counter", "Seconds that sessions slept for a latch.", "seconds", ("latch",), "seconds"
            ),
        ),
    ),
    Collector(
        "statistics",
        "SELECT name, value FROM aq.statistics WHERE source = 'pgaq'",
        (Family("pgaq_statistic_total", "counter", "Statistics of pgaq, as in the view aq.statistics.", "value", ("name",)),),
    ),
    Collector(
        "sessions",
        """
SELECT state, count(*) FILTER (WHERE is_in) AS sessions
FROM aq.sessions s, LATERAL (VALUES ('waiting', s.waiting AND s.active), ('running', s.active AND NOT s.waiting),
    ('idle', NOT s.active)) v(state, is_in) WHERE s.attached OR s.active GROUP BY state""",
        (
            Family(
                "pgaq_sessions",
                "gauge",
                "Sessions of the server that use pgaq: running, waiting for something other than messages, or idle.",
                "sessions",
                ("state",),
            ),
        ),
    ),
    Collector(
        "propagation",
        _limited(
            "queue, destination",
            "(SELECT schedule_id, queue_name AS queue, COALESCE(destination, '') AS destination, lag, messages, bytes, failures FROM aq.propagations) p",
            "schedule_id",
            "sum(lag)::bigint AS lag, sum(messages)::bigint AS messages, sum(bytes)::bigint AS bytes, sum(failures)::bigint AS failures",
        ),
        (
            Family("pgaq_propagation_lag", "gauge", "Messages that are not propagated yet.", "lag", ("database", "queue", "destination")),
            Family(
                "pgaq_propagation_messages_total",
                "counter",
                "Messages that were propagated.",
                "messages",
                ("database", "queue", "destination"),
            ),
            Family(
                "pgaq_propagation_bytes_total",
                "counter",
                "Size of the payloads of propagated messages.",
                "bytes",
                ("database", "queue", "destination"),
                "bytes",
            ),
            Family(
                "pgaq_propagation_failures",
                "gauge",
                "Errors in a row, since messages were last propagated.",
                "failures",
                ("database", "queue", "destination"),
            ),
        ),
    ),
    Collector(
        "schedules",
        _limited(
            "schedule",
            """(SELECT schedule_name AS schedule, created, runs, failures,
                CASE WHEN state NOT IN ('stopped', 'ended') THEN GREATEST(extract(epoch FROM clock_timestamp() - next_run), 0) END AS overdue
              FROM aq.schedules) s""",
            "created, schedule",
            "sum(runs)::bigint AS runs, sum(failures)::bigint AS failures, max(overdue)::float8 AS overdue",
        ),
        (
            Family("pgaq_schedule_runs_total", "counter", "Times for which a message was enqueued.", "runs", ("database", "schedule")),
            Family("pgaq_schedule_failures", "gauge", "Failures in a row.", "failures", ("database", "schedule")),
            Family(
                "pgaq_schedule_overdue_seconds",
                "gauge",
                "How long the message of the next time has been due; stopped schedules have none.",
                "overdue",
                ("database", "schedule"),
                "seconds",
            ),
        ),
    ),
    Collector(
        "links",
        """
SELECT server::text AS server, min((problem IS NULL AND state NOT IN ('failed', 'backing off'))::int) AS up FROM aq.links GROUP BY server""",
        (Family("pgaq_link_up", "gauge", "0 if the link to the foreign server fails.", "up", ("server",)),),
    ),
    Collector(
        "nodes",
        """
SELECT server, (state = 'reachable')::int AS up, extract(epoch FROM lag)::float8 AS lag, (queue_error IS NOT NULL)::int AS waits
FROM aq.nodes WHERE server IS NOT NULL""",
        (
            Family("pgaq_node_up", "gauge", "1 if the node answers heartbeats.", "up", ("server",)),
            Family("pgaq_node_lag_seconds", "gauge", "Time since the node last answered.", "lag", ("server",), "seconds"),
            Family(
                "pgaq_node_messages_wait",
                "gauge",
                "1 if messages of distributed queues wait for the node after an error.",
                "waits",
                ("server",),
            ),
        ),
    ),
)

# what the exporter says of itself
BUILD = Family(
    "pgaq_build_info", "info", "Versions: of the command, the extension, and PostgreSQL.", labels=("version", "extension", "server")
)
UP = Family("pgaq_up", "gauge", "1 if the database answered and has the extension.")
SUCCESS = Family("pgaq_collector_success", "gauge", "0 if this part could not be read.", labels=("collector",))
DURATION = Family("pgaq_scrape_duration_seconds", "gauge", "How long it took to read the numbers.", unit="seconds")
FAMILIES = (BUILD, UP, SUCCESS, DURATION, *(family for collector in COLLECTORS for family in collector.families))
