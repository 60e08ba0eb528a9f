"""Queues, consumers and shards."""

from __future__ import annotations

from pgaq.subjects.model import Column, Subject, across_versions

STATE = """concat_ws(', ', CASE WHEN NOT (q.enqueue_enabled OR q.dequeue_enabled) THEN 'stopped' WHEN NOT q.dequeue_enabled THEN 'no dequeue'
        WHEN NOT q.enqueue_enabled THEN 'no enqueue' WHEN paused IS NULL THEN 'started' END, CASE WHEN paused IS NOT NULL THEN 'paused' END)"""
# of all consumers of a queue (consumer is null), or of one
PAUSES = across_versions("""
SELECT queue_name, NULL AS consumer, paused, paused_by, pause_reason FROM aq.queues WHERE paused IS NOT NULL
UNION ALL SELECT queue_name, consumer, paused, paused_by, pause_reason FROM aq.subscribers WHERE paused IS NOT NULL""")
PAUSED = (
    Column("paused", "Paused", "time", "since when it gets no messages, by pgaq queue pause", rank=7),
    Column("paused_by", "Paused by", text="role that paused it", rank=8),
    Column("pause_reason", "Pause reason", text="reason that it gave", rank=8),
)
KIND = """concat_ws(', ', CASE WHEN q.queue_type = 'exception' THEN 'exception queue' WHEN q.multiple_consumers THEN 'topic' ELSE 'queue' END,
        CASE WHEN q.queue_type = 'non_persistent' THEN 'non-persistent' END,
        CASE WHEN q.converting THEN 'converting' WHEN q.queue_table IS NOT NULL THEN 'queue table' END,
        CASE WHEN q.temporary THEN 'temporary' END, CASE WHEN q.distributed THEN 'distributed' END)"""

# a topic's messages are enqueued once, and finished once by each consumer
QUEUES = Subject(
    name="queues",
    title="Queues",
    text="Queues that the role can use, with their rates and backlogs; members of pg_monitor see all.",
    query=across_versions(f"""
SELECT q.queue_name AS queue, {KIND} AS kind, {STATE} AS state, m.enqueue_rate, m.dequeue_rate, m.backlog, m.ready,
       m.delayed, m.in_flight, m.leased, m.oldest, m.consumers, m.waiting, m.failed, q.exception_queue,
       m.enqueued, m.dequeued, paused, paused_by, pause_reason
FROM aq.queues q LEFT JOIN (
    SELECT queue_id, max(enqueue_rate) AS enqueue_rate, sum(dequeue_rate) AS dequeue_rate, sum(lag)::bigint AS backlog,
           sum(ready)::bigint AS ready, sum(delayed)::bigint AS delayed, sum(in_flight)::bigint AS in_flight, sum(leased)::bigint AS leased,
           max(oldest_ready_seconds) AS oldest, count(DISTINCT consumer) AS consumers, sum(waiting)::bigint AS waiting, sum(failed)::bigint AS failed,
           max(enqueued) AS enqueued, sum(dequeued)::bigint AS dequeued
    FROM aq.metrics() GROUP BY queue_id) m USING (queue_id)""")
    + "ORDER BY backlog DESC NULLS LAST, queue",
    columns=(
        Column("queue", "Queue", text="name"),
        Column("kind", "Kind", text="queue, topic or exception queue; with a queue table or not; distributed or not", rank=5),
        Column("state", "State", text="started, paused, stopped, or stopped for one side", rank=3),
        Column(
            "enqueue_rate",
            "Avg in/s",
            "rate",
            "messages enqueued per second, since the queue came into use",
            rank=1,
            rate_of="enqueued",
            live="In/s",
        ),
        Column(
            "dequeue_rate",
            "Avg out/s",
            "rate",
            "messages finished per second by all consumers, since then",
            rank=1,
            rate_of="dequeued",
            live="Out/s",
        ),
        Column("backlog", "Backlog", "count", "committed messages that are not finished, of all consumers"),
        Column("ready", "Ready", "count", "of the backlog: can be dequeued now", rank=2),
        Column("delayed", "Delayed", "count", "of the backlog: the delay or retry delay is not over", rank=7),
        Column("in_flight", "In flight", "count", "of the backlog: leased, or taken by transactions that have not ended", rank=4),
        Column("leased", "Leased", "count", "of those in flight: the lease runs", rank=9),
        Column("oldest", "Oldest", "seconds", "age of the oldest ready message"),
        Column("consumers", "Consumers", "count", "consumers of a topic", rank=6),
        Column("waiting", "Waiting", "count", "sessions that wait for messages", rank=2),
        Column("failed", "Failed", "count", "messages that expired or exceeded max_retries since the queue came into use", rank=3),
        Column("exception_queue", "Exception queue", text="where failed messages go; none: they are deleted", rank=8),
        Column("enqueued", "Enqueued", "count", "messages enqueued since the queue came into use", rank=9),
        Column("dequeued", "Dequeued", "count", "messages finished since, by all consumers", rank=9),
        *PAUSED,
    ),
    key="queue",
    order="backlog",
    empty="no queue that this role can use",
)

QUEUE = Subject(
    name="queue",
    title="Queue",
    text="The settings of a queue.",
    query=across_versions(f"""
SELECT q.queue_name AS queue, q.owner, {KIND} AS kind, {STATE} AS state, q.payload_type::text AS payload_type, q.shards, q.queue_table, q.max_retries,
       q.retry_delay, q.retry_delay_factor, q.retry_delay_max, q.retry_jitter, q.retention, max_depth,
       CASE WHEN max_depth IS NOT NULL THEN on_full END AS on_full, max_running, rate, q.exception_queue, q.created, q.comment,
       concat_ws(', ', CASE WHEN q.may_enqueue THEN 'enqueue' END, CASE WHEN q.may_dequeue THEN 'dequeue' END, CASE WHEN q.may_subscribe THEN 'subscribe' END) AS rights,
       paused, paused_by, pause_reason
FROM aq.queues q WHERE q.queue_name = %(queue)s"""),
    columns=(
        Column("queue", "Queue", text="name"),
        Column("owner", "Owner", text="role that owns it"),
        Column("kind", "Kind", text="queue, topic or exception queue; distributed or not"),
        Column("state", "State", text="started, paused, stopped, or stopped for one side"),
        Column("payload_type", "Payload type", text="type of the payload"),
        Column("shards", "Shards", "count", "number of shards"),
        Column("queue_table", "Queue table", text="its queue table; none: a sharded queue"),
        Column("max_retries", "Max retries", "count", "failed attempts before a message goes to the exception queue; none: no limit"),
        Column("retry_delay", "Retry delay", "interval", "delay after the first failed attempt"),
        Column("retry_delay_factor", "Retry delay factor", "count", "the delay is multiplied by this for each further attempt"),
        Column("retry_delay_max", "Retry delay max", "interval", "the delay grows up to this"),
        Column("retry_jitter", "Retry jitter", "share", "largest random addition to the delay"),
        Column("retention", "Retention", "interval", "time for which consumed messages remain visible"),
        Column("max_depth", "Max depth", "count", "unfinished messages of a consumer with which the queue is full; none: no limit"),
        Column("on_full", "On full", text="what an enqueue into the full queue does: wait, or error"),
        Column("max_running", "Max running", "count", "messages of each consumer that may be in work at a time; none: no limit"),
        Column("rate", "Rate", text="how many messages each consumer gets in a time; none: no limit"),
        Column("exception_queue", "Exception queue", text="where failed messages go; none: they are deleted"),
        Column("created", "Created", "time", "when it was created"),
        Column("comment", "Comment", text="given at its creation"),
        Column("rights", "Your privileges", text="privileges of the current role"),
        *PAUSED,
    ),
    key="queue",
    parameters=("queue",),
)

CONSUMERS = Subject(
    name="consumers",
    title="Consumers",
    text="The consumers of a queue with their backlogs.",
    query="""
SELECT consumer, delivery_mode, enqueue_rate, dequeue_rate, lag AS backlog, ready, delayed, in_flight, leased, oldest_ready_seconds AS oldest,
       waiting, failed, enqueued, dequeued, last_dequeue
FROM aq.metrics(%(queue)s) ORDER BY lag DESC NULLS LAST, consumer""",
    columns=(
        Column("consumer", "Consumer", text="name; none: the queue has a single consumer"),
        Column("delivery_mode", "Messages", text="persistent or buffered", rank=6),
        Column(
            "enqueue_rate",
            "Avg in/s",
            "rate",
            "messages enqueued for it per second, since the queue came into use",
            rank=1,
            rate_of="enqueued",
            live="In/s",
        ),
        Column(
            "dequeue_rate", "Avg out/s", "rate", "messages it has finished per second, since then", rank=1, rate_of="dequeued", live="Out/s"
        ),
        Column("backlog", "Backlog", "count", "committed messages that it has not finished"),
        Column("ready", "Ready", "count", "of the backlog: it can dequeue them now", rank=2),
        Column("delayed", "Delayed", "count", "of the backlog: the delay or retry delay is not over", rank=5),
        Column("in_flight", "In flight", "count", "of the backlog: leased, or taken by transactions that have not ended", rank=3),
        Column("leased", "Leased", "count", "of those in flight: the lease runs", rank=7),
        Column("oldest", "Oldest", "seconds", "age of the oldest ready message"),
        Column("waiting", "Waiting", "count", "sessions that wait for its messages", rank=2),
        Column("failed", "Failed", "count", "messages that expired or exceeded max_retries", rank=4),
        Column("enqueued", "Enqueued", "count", "messages for it since the queue came into use", rank=8),
        Column("dequeued", "Dequeued", "count", "messages it has finished since", rank=8),
        Column("last_dequeue", "Last dequeue", "time", "when it last finished one", rank=7),
    ),
    key="consumer",
    within=("delivery_mode",),
    order="backlog",
    parameters=("queue",),
    empty="no consumer has used the queue yet",
)

SUBSCRIBERS = Subject(
    name="subscribers",
    title="Subscribers",
    text="The subscribers and named recipients of topics.",
    query=across_versions("""
SELECT queue_name AS queue, consumer, kind, rule, delivery_mode, lag AS backlog, rule_failures, rule_error, owner, temporary, created, comment,
       paused, paused_by, pause_reason
FROM aq.subscribers WHERE consumer IS NOT NULL AND (%(queue)s::text IS NULL OR queue_name = %(queue)s)""")
    + "ORDER BY queue, consumer",
    columns=(
        Column("queue", "Topic", text="the topic"),
        Column("consumer", "Consumer", text="name"),
        Column("kind", "Kind", text="subscriber, or recipient: named only in recipient lists", rank=4),
        Column("rule", "Rule", text="condition that messages must meet; none: all messages"),
        Column("delivery_mode", "Messages", text="persistent, buffered or both", rank=5),
        Column("backlog", "Backlog", "count", "messages that it has not finished", rank=1),
        Column("rule_failures", "Rule errors", "count", "messages that it did not get because its rule raised an error", rank=3),
        Column("rule_error", "SQLSTATE", text="of the latest such error", rank=6),
        Column("owner", "Owner", text="role that subscribed it", rank=5),
        Column("temporary", "Temporary", "flag", "it is removed when its sessions have ended", rank=6),
        Column("created", "Created", "time", "when it was first named", rank=7),
        Column("comment", "Comment", text="given with the subscription", rank=6),
        *PAUSED,
    ),
    key="consumer",
    within=("queue",),
    order="backlog",
    parameters=("queue",),
    empty="no subscriber",
)

PRIVILEGES = Subject(
    name="privileges",
    title="Privileges",
    text="Privileges that were granted on a queue, as far as the role may see them.",
    query="""
SELECT COALESCE(grantee::text, 'public') AS role, privilege, consumer, grantor::text AS grantor, is_grantable AS grant_option FROM aq.privileges
WHERE queue_name = %(queue)s ORDER BY 1, 2, 3""",
    columns=(
        Column("role", "Role", text="the role that has it"),
        Column("privilege", "Privilege", text="enqueue, dequeue, subscribe, or consumer: dequeue for one consumer"),
        Column("consumer", "Consumer", text="that consumer", rank=1),
        Column("grantor", "Granted by", text="the role that granted it", rank=3),
        Column("grant_option", "Grant option", "flag", "the role may grant it to others", rank=2),
    ),
    key="role",
    within=("privilege", "consumer"),
    parameters=("queue",),
    empty="none is granted",
)

SHARDS = Subject(
    name="shards",
    title="Shards",
    text="The streams of a sharded queue: one for each shard and priority in use.",
    query="""
SELECT shard, priority, delayed, enqueued, pending, in_flight, partitions, resident FROM aq.shards
WHERE queue_name = %(queue)s ORDER BY shard, priority, delayed""",
    columns=(
        Column("shard", "Shard", "count", "number of the shard"),
        Column("priority", "Priority", "count", "priority of its messages"),
        Column("delayed", "Delayed", "flag", "of messages enqueued with a delay", rank=2),
        Column("enqueued", "Enqueued", "count", "messages committed since the queue came into use", counter=True),
        Column("pending", "Pending", "count", "messages of transactions that have not ended", rank=1),
        Column("in_flight", "In flight", "count", "taken by transactions that have not ended", rank=1),
        Column("partitions", "Partitions", "count", "partitions that hold its messages", rank=2),
        Column("resident", "In memory", "count", "of the partitions: in the message cache", rank=3),
    ),
    key="shard",
    within=("priority", "delayed"),
    order="enqueued",
    parameters=("queue",),
    empty="no stream in memory",
)

QUEUE_UNITS = Subject(
    name="units",
    title="Units",
    text="Shards of a distributed queue that other nodes hold, and those of other nodes that this one holds.",
    query="""
SELECT shard, consumer, direction, server, since, returns, sent, ready FROM aq.node_units
WHERE queue_name = %(queue)s ORDER BY direction DESC, shard, consumer""",
    columns=(
        Column("shard", "Shard", "count", "number of the shard"),
        Column("consumer", "Consumer", text="name; none: the queue has a single consumer"),
        Column("direction", "Direction", text="lent: another node holds it; held: it belongs to another node"),
        Column("server", "Node", text="foreign server of the link to that node; none: it was removed"),
        Column("since", "Since", "time", "when it was granted, or when its first messages came", rank=2),
        Column("returns", "Returns", "flag", "it is on its way back", rank=1),
        Column("sent", "Sent", "count", "messages that the other node has, and has not reported as consumed"),
        Column("ready", "Ready", "count", "lent: messages not sent yet; held: messages that can be dequeued here"),
    ),
    key="shard",
    within=("consumer", "direction"),
    parameters=("queue",),
    empty="every shard is at home",
)

_SCHEDULE = """SELECT schedule_name AS schedule, queue_name AS queue, state, COALESCE(cron, 'every ' || every) AS timing, time_zone, next_run, retry_at,
       last_run, runs, failures, last_error, error_time, catch_up, start_at, until, owner, payload, options, created, comment
FROM aq.schedules"""
_COLUMNS = (
    Column("schedule", "Schedule", text="name"),
    Column("queue", "Queue", text="queue of its messages", rank=1),
    Column("state", "State", text="active, stopped, failing, disabled after failures, or ended"),
    Column("timing", "Timing", text="cron expression or interval"),
    Column("time_zone", "Time zone", text="of the expression, and of the interval's days and months", rank=4),
    Column("next_run", "Next", "time", "the first time without a message; none: no time is left"),
    Column("retry_at", "Retry", "time", "when it is tried again after a failure", rank=3),
    Column("last_run", "Last", "time", "when it last enqueued a message", rank=2),
    Column("runs", "Runs", "count", "times for which it has enqueued a message", rank=2),
    Column("failures", "Failures", "count", "failures in a row", rank=2),
    Column("last_error", "Last error", text="SQLSTATE and message of its last failure", rank=3),
    Column("error_time", "Error time", "time", "when that was", rank=9),
    Column("catch_up", "Catch up", text="what happens to missed times: skip, one or all", rank=6),
    Column("start_at", "Start", "time", "no message before it", rank=9),
    Column("until", "Until", "time", "no message after it; none: no limit", rank=7),
    Column("owner", "Owner", text="role with whose privileges it enqueues", rank=5),
    Column("payload", "Payload", text="payload of its messages; none also for a role that sees only the schedule", rank=9),
    Column("options", "Options", "json", "other options of its messages", rank=9),
    Column("created", "Created", "time", "when it was made", rank=9),
    Column("comment", "Comment", text="given with the schedule", rank=8),
)

SCHEDULES = Subject(
    name="schedules",
    title="Schedules",
    text="Recurring messages: the schedules that the role may see.",
    query=f"{_SCHEDULE} WHERE %(queue)s::text IS NULL OR queue_name = %(queue)s ORDER BY next_run, schedule_name",
    columns=_COLUMNS,
    key="schedule",
    parameters=("queue",),
    empty="no schedule",
)

SCHEDULE = Subject(
    name="schedule",
    title="Schedule",
    text="One schedule.",
    query=f"{_SCHEDULE} WHERE schedule_name = %(schedule)s",
    columns=_COLUMNS,
    key="schedule",
    parameters=("schedule",),
)

SCHEDULE_TIMES = Subject(
    name="schedule_times",
    title="Times",
    text="The next times of a cron expression or an interval.",
    query="""
SELECT run_at, to_char(local_time, 'Dy YYYY-MM-DD HH24:MI:SS') AS local_time
FROM aq.schedule_times(%(cron)s::text, %(every)s::text::interval, %(zone)s::text, count => %(limit)s::int)""",
    columns=(
        Column("run_at", "Time", "time", "when a message comes"),
        Column("local_time", "Clock", text="what clocks in the time zone show then"),
    ),
    key="run_at",
    parameters=("cron", "every", "zone", "limit"),
    empty="no time is left",
)
