"""Messages and dead letters."""

from __future__ import annotations

from pgaq.subjects.model import Column, Subject, across_versions


MESSAGES = Subject(
    name="messages",
    title="Messages",
    text="Messages of a queue that the role can dequeue, in any state, one row for each consumer.",
    query=across_versions("""
SELECT msgid::text AS msgid, consumer, state, priority, attempts, enqueue_time, correlation, key, payload, properties, sender, ready_at, expires_at,
       leased_by, leased_until, last_error, delivery_mode
FROM aq.messages WHERE queue_name = %(queue)s AND (%(state)s::text IS NULL OR state = %(state)s) AND (%(consumer)s::text IS NULL OR consumer = %(consumer)s)
  AND (%(msgid)s::uuid IS NULL OR msgid = %(msgid)s::uuid)""")
    + "LIMIT %(limit)s",
    columns=(
        Column("msgid", "Message id", text="identifier of the message", rank=1),
        Column("consumer", "Consumer", text="the consumer, of a topic", rank=3),
        Column("state", "State", text="READY, WAITING, LOCKED, LEASED, PROCESSED, PURGED or EXPIRED"),
        Column("priority", "Priority", "count", "smaller goes first", rank=5),
        Column("attempts", "Attempts", "count", "failed attempts and leases", rank=2),
        Column("enqueue_time", "Enqueued", "time", "time of the enqueue call", rank=2),
        Column("correlation", "Correlation", text="given at enqueue", rank=6),
        Column("key", "Key", text="messages of one key keep their order", rank=6),
        Column("payload", "Payload", text="payload as text"),
        Column("properties", "Properties", "json", "free properties given at enqueue", rank=8),
        Column("sender", "Sender", text="named at enqueue", rank=8),
        Column("ready_at", "Ready at", "time", "end of its delay or retry delay", rank=7),
        Column("expires_at", "Expires", "time", "when it expires", rank=8),
        Column("leased_by", "Leased by", text="application_name of the session that took the lease", rank=7),
        Column("leased_until", "Leased until", "time", "end of the lease", rank=7),
        Column("last_error", "Last error", text="given when it was released or rejected", rank=4),
        Column("delivery_mode", "Messages", text="persistent or buffered", rank=9),
    ),
    key="msgid",
    within=("consumer",),
    parameters=("queue", "state", "consumer", "msgid", "limit"),
    empty="no message",
)

KEYS = Subject(
    name="keys",
    title="Keys",
    text="Keys of a queue whose messages are not finished, the hundred with the oldest messages.",
    query="SELECT key, consumer, ready, delayed, in_flight, oldest FROM aq.keys(%(queue)s) LIMIT 100",
    columns=(
        Column("key", "Key", text="given at enqueue"),
        Column("consumer", "Consumer", text="the consumer, of a topic", rank=1),
        Column("ready", "Ready", "count", "messages that can be dequeued"),
        Column("delayed", "Delayed", "count", "messages whose delay or retry delay is not over", rank=2),
        Column("in_flight", "In flight", "count", "messages that are leased, or taken by transactions that have not ended", rank=2),
        Column("oldest", "Oldest", "time", "when its oldest message was enqueued"),
    ),
    key="key",
    within=("consumer",),
    parameters=("queue",),
    empty="no key with messages that this role can dequeue",
)

EXCEPTION_QUEUES = Subject(
    name="exception_queues",
    title="Exception queues",
    text="Exception queues with the number of dead letters in each.",
    query="""
SELECT e.queue_name AS exception_queue, sum(m.lag)::bigint AS dead_letters, max(m.oldest_ready_seconds) AS oldest,
       min(u.queues) AS queues
FROM aq.queues e LEFT JOIN aq.metrics() m ON m.queue_id = e.queue_id
    LEFT JOIN (SELECT exception_queue AS queue_name, string_agg(queue_name, ', ' ORDER BY queue_name) AS queues FROM aq.queues GROUP BY exception_queue) u ON u.queue_name = e.queue_name
WHERE e.queue_type = 'exception' OR u.queues IS NOT NULL
GROUP BY e.queue_name ORDER BY 2 DESC NULLS LAST, 1""",
    columns=(
        Column("exception_queue", "Exception queue", text="name"),
        Column("dead_letters", "Dead letters", "count", "messages in it"),
        Column("oldest", "Oldest", "seconds", "how long the oldest has been there", rank=1),
        Column("queues", "Of the queues", text="queues whose failed messages go there", rank=2),
    ),
    key="exception_queue",
    empty="no exception queue that this role can see",
)

DEAD_LETTERS = Subject(
    name="dead_letters",
    title="Dead letters",
    text="Dead letters of a queue: where they came from and why they failed.",
    query=across_versions("""
SELECT msgid::text AS msgid, queue_name AS queue, consumer, reason, last_error, attempts, died, payload, correlation, key, priority, first_attempt, last_attempt,
       enqueue_time, original_msgid::text AS original_msgid, sender, properties, state, dead_letter
FROM aq.dead_letters WHERE exception_queue = %(exception_queue)s AND (%(queue)s::text IS NULL OR queue_name = %(queue)s)
  AND (%(msgid)s::uuid IS NULL OR msgid = %(msgid)s::uuid OR original_msgid = %(msgid)s::uuid)""")
    + "ORDER BY died DESC LIMIT %(limit)s",
    columns=(
        Column("msgid", "Message id", text="its id in the exception queue", rank=2),
        Column("queue", "Queue", text="queue that it came from", rank=3),
        Column("consumer", "Consumer", text="consumer for which it failed", rank=4),
        Column("reason", "Reason", text="retries, expired, rejected or lease"),
        Column("last_error", "Last error", text="given when it was released or rejected"),
        Column("attempts", "Attempts", "count", "attempts when it failed", rank=1),
        Column("died", "Failed at", "time", "when it failed", rank=1),
        Column("payload", "Payload", text="payload as text"),
        Column("correlation", "Correlation", text="given at enqueue", rank=5),
        Column("key", "Key", text="messages of one key keep their order", rank=5),
        Column("priority", "Priority", "count", "its priority", rank=7),
        Column("first_attempt", "First attempt", "time", "when its first attempt was counted", rank=7),
        Column("last_attempt", "Last attempt", "time", "when the last one was counted", rank=6),
        Column("enqueue_time", "Enqueued", "time", "when it was enqueued", rank=6),
        Column("original_msgid", "Original id", text="its id in the queue that it came from", rank=8),
        Column("sender", "Sender", text="its sender", rank=8),
        Column("properties", "Properties", "json", "its free properties", rank=8),
        Column("state", "State", text="as of other messages", rank=9),
        Column("dead_letter", "Dead letter", "json", "all that is kept of it", rank=9),
    ),
    key="msgid",
    parameters=("exception_queue", "queue", "msgid", "limit"),
    empty="no dead letter",
)
