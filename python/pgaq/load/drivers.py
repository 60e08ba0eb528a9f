"""How each contestant is spoken to: the SQL of its queue, producers and consumers.

A driver is data and two functions; the load client (bench/load) runs the
statements.  Parameters: enqueue ($1 queue, $2 payload or array of payloads,
$3 priority, $4 delay), dequeue, open, finish and wait ($1 queue, $2 consumer;
with leases $3 ids and $4 receipt of the messages that were dequeued before).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable

from pgaq import cluster, db


RETRY_FACTOR = 2
RETRY_MAX_MS = 1000


@dataclass(frozen=True)
class Shape:
    """The measured or tested operations, independent of the contestant."""

    kind: str = "queue"  # queue or topic
    batch: int = 10  # messages per transaction
    sessions: int = 4  # on each side
    take: int = 0  # messages that a consumer's transaction takes at most; 0: batch
    consumer_sessions: int = 0  # 0: sessions
    subscribers: int = 10  # of a topic
    single: bool = False  # one call per message, in one transaction
    payload: int = 512
    rate: float = 0  # messages per second; 0: as fast as it goes
    priorities: bool = False
    delay_ms: int = 0
    expiration_ms: int = 0
    retry_delay_ms: int = 0
    max_retries: int | None = None
    buffered: bool = False

    @property
    def gives_up(self) -> bool:
        """Some messages end in the exception queue."""
        return self.max_retries is not None or self.expiration_ms > 0

    @property
    def consumers(self) -> list[str]:
        """Names of the subscribers; one without a name for a queue."""
        return [f"s{i:02d}" for i in range(self.subscribers)] if self.kind == "topic" else []

    @property
    def most(self) -> int:
        """Messages that a consumer's transaction takes at most."""
        return self.take or self.batch

    @property
    def fan_out(self) -> int:
        return max(1, len(self.consumers))

    @property
    def name(self) -> str:
        text = self.kind if self.kind == "queue" else f"topic{self.subscribers}"
        text += f"-{self.batch}x{self.sessions}"
        if self.take or self.consumer_sessions:
            text += f"-{self.most}x{self.consumer_sessions or self.sessions}"
        if self.single:
            text += "-single"
        if self.rate:
            text += f"-{self.rate:g}ps"
        return text

    def rest(self, attempts: int) -> float:
        """The shortest retry delay after this number of failed attempts, in seconds."""
        return min(self.retry_delay_ms * RETRY_FACTOR ** (attempts - 1), max(RETRY_MAX_MS, self.retry_delay_ms)) / 1000


@dataclass(frozen=True)
class Driver:
    """One contestant."""

    name: str
    title: str
    setup: Callable[[db.Connection, str, Shape], None]
    teardown: Callable[[db.Connection, str], None]
    enqueue: Callable[[Shape], str]
    dequeue: Callable[[Shape], str]
    open: str | None = None  # of a batch
    close: str | None = None
    finish: str | None = None  # acknowledges what was dequeued, in a transaction of its own
    wait: str | None = None  # None: poll
    failed: str | None = None  # takes some of the exception queue's messages
    convert: str | None = None  # makes a queue of another kind of it, in use
    tick: str | None = None  # maintenance that must be called all the time
    tick_seconds: float = 1.0
    latency_tick_seconds: float = 0.1
    poll_seconds: float = 0.005
    one_consumer: bool = False  # a subscriber cannot be shared by sessions
    ordered: bool = True
    yardstick: bool = False  # no queue: sessions of both sides insert, and nothing is delivered
    leases: str = ""  # they last from the commit, or from the call; empty: there are none
    explicit: bool = True  # can be driven with BEGIN ... ROLLBACK
    backlog: int = 20_000  # messages the producers may be ahead,
    topic_backlog: int = 4_000  # and those of a topic, of the average subscriber
    session_setup: str | None = None
    preload: bool = False
    extension: str | None = None
    note: str = ""
    settings: dict[str, str] = field(default_factory=dict)


# -- pgaq


def _pgaq_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    _pgaq_create(conn, queue, shape, f"payload_type => 'text', multiple_consumers => {shape.kind == 'topic'}")


def _pgaq_create(conn: db.Connection, queue: str, shape: Shape, options: str) -> None:
    """A queue with its exception queue and its subscribers."""
    options += f", retry_delay => '{shape.retry_delay_ms} milliseconds'"
    options += f", retry_delay_factor => {RETRY_FACTOR}, retry_delay_max => '{RETRY_MAX_MS} milliseconds'" if shape.retry_delay_ms else ""
    options += f", max_retries => {'NULL' if shape.max_retries is None else shape.max_retries}"
    if shape.gives_up:
        db.execute(conn, "SELECT aq.create_queue(%s || '_failed', 'text')", [queue])
        options += f", exception_queue => '{queue}_failed'"
    db.execute(conn, f"SELECT aq.create_queue(%s, {options})", [queue])
    mode = "buffered" if shape.buffered else None
    for consumer in shape.consumers:
        db.execute(conn, "SELECT aq.subscribe(queue_name => %s, consumer => %s, delivery_mode => %s)", [queue, consumer, mode])


def _pgaq_teardown(conn: db.Connection, queue: str) -> None:
    for name in (queue, f"{queue}_failed"):
        db.execute(conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = %s", [name])


def _pgaq_enqueue(shape: Shape) -> str:
    options = ", priority => $3" if shape.priorities or shape.delay_ms else ""
    options += ", delay => $4" if shape.delay_ms else ""
    options += f", expiration => '{shape.expiration_ms} milliseconds'" if shape.expiration_ms else ""
    options += ", delivery_mode => 'buffered'" if shape.buffered else ""
    if shape.single or shape.batch == 1:
        return f"SELECT aq.enqueue($1, $2{options})"
    return f"SELECT aq.enqueue_array($1, $2::text[]{options})"


def _pgaq_dequeue(shape: Shape, lease: str = "") -> str:
    number = 1 if shape.single else shape.most
    consumer = ", consumer => $2" if shape.kind == "topic" or lease else ""
    # where latency counts, the wait and the dequeue are one call: no round trip after the wake-up
    more = ", wait => '1 s'" if shape.rate else ""
    more += ", delivery_mode => 'buffered'" if shape.buffered else ""
    return f"SELECT * FROM aq.dequeue($1, as_type => null::text{consumer}, max_messages => {number}{more}{lease})"


LEASE = ", lease => '1 hour'"
PGAQ = Driver(
    name="pgaq",
    title="pgaq",
    setup=_pgaq_setup,
    teardown=_pgaq_teardown,
    enqueue=_pgaq_enqueue,
    dequeue=_pgaq_dequeue,
    wait="CALL aq.wait($1, {consumer}, '1 s', {mode}null)",
    failed="SELECT payload FROM aq.dequeue(%s || '_failed', as_type => null::text, max_messages => 1000)",
    leases="commit",
    preload=True,
    extension="pgaq",
    note="enqueue_array and dequeue of the extension; an empty queue is waited for with CALL aq.wait, "
    "where latency is measured in the dequeue itself",
)


# the same with leases: a message is acknowledged after its dequeue was committed
LEASE1 = replace(
    PGAQ,
    name="lease1",
    title="pgaq, leases, one statement",
    dequeue=lambda shape: _pgaq_dequeue(shape, f"{LEASE}, acknowledge => $3, receipt => $4"),
    explicit=False,
    note="dequeue with a lease, which acknowledges the messages of the dequeue before",
)
LEASE2 = replace(
    PGAQ,
    name="lease2",
    title="pgaq, leases, two statements",
    dequeue=lambda shape: _pgaq_dequeue(shape, LEASE),
    finish="SELECT result FROM aq.acknowledge($1, $3::uuid[], $4, consumer => $2)",
    explicit=False,
    note="dequeue with a lease, then aq.acknowledge, each in a transaction of its own",
)


# the same, with propagation between producers and consumers


def _propagated_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    for name in (queue, f"{queue}_target"):
        _pgaq_setup(conn, name, shape)
    db.execute(conn, "SELECT aq.create_propagation(%s, %s)", [queue, f"{queue}_target"])


def _propagated_teardown(conn: db.Connection, queue: str) -> None:
    for name in (queue, f"{queue}_target"):
        _pgaq_teardown(conn, name)


PROPAGATED = replace(
    PGAQ,
    name="propagated",
    title="pgaq, propagated",
    setup=_propagated_setup,
    teardown=_propagated_teardown,
    dequeue=lambda shape: _pgaq_dequeue(shape).replace("$1", "$1::text || '_target'"),
    wait=PGAQ.wait.replace("$1", "$1::text || '_target'"),
    leases="",
    note="the same calls; messages are enqueued into one queue, propagated to another, and dequeued there",
)


# the same on several nodes


def _distributed_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    _pgaq_create(conn, queue, shape, f"payload_type => 'text', multiple_consumers => {shape.kind == 'topic'}, distributed => true")
    db.execute(conn, "SELECT aq.grant_queue(%s, rolname, 'all') FROM pg_roles WHERE rolname = %s", [queue, cluster.ROLE])


DISTRIBUTED = replace(
    PGAQ,
    name="distributed",
    title="pgaq, distributed",
    setup=_distributed_setup,
    leases="",
    note="the same calls, on a queue that spans nodes",
)


def _classic_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    sort = "priority, enq_time" if shape.priorities else None
    db.execute(conn, "SELECT aq.create_queue_table('public.' || %s, 'text', %s, %s)", [queue, sort, shape.kind == "topic"])
    _pgaq_create(conn, queue, shape, f"queue_table => 'public.{queue}'")


def _classic_teardown(conn: db.Connection, queue: str) -> None:
    _pgaq_teardown(conn, queue)
    db.execute(conn, "SELECT aq.drop_queue_table('public.' || %s, force => true)", [queue])


CLASSIC = Driver(
    name="classic",
    title="pgaq, queue table",
    setup=_classic_setup,
    teardown=_classic_teardown,
    enqueue=_pgaq_enqueue,
    dequeue=_pgaq_dequeue,
    wait=PGAQ.wait,
    failed=PGAQ.failed,
    convert="SELECT aq.convert_queue(%s)",
    ordered=False,
    leases="call",
    preload=True,
    extension="pgaq",
    note="the same calls as pgaq, on a queue in a queue table",
)


# -- PgQ


def _pgq_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    db.execute(conn, "SELECT pgq.create_queue(%s)", [queue])
    for consumer in shape.consumers or ["c"]:
        db.execute(conn, "SELECT pgq.register_consumer(%s, %s)", [queue, consumer])
    db.execute(conn, "SELECT pgq.ticker(%s)", [queue])


def _pgq_teardown(conn: db.Connection, queue: str) -> None:
    db.execute(conn, "SELECT pgq.drop_queue(%s, true)", [queue])


def _pgq_enqueue(shape: Shape) -> str:
    if shape.single or shape.batch == 1:
        return "SELECT pgq.insert_event($1, 'm', $2)"
    return "SELECT count(pgq.insert_event($1, 'm', p)) FROM unnest($2::text[]) p"


PGQ = Driver(
    name="pgq",
    title="PgQ",
    setup=_pgq_setup,
    teardown=_pgq_teardown,
    enqueue=_pgq_enqueue,
    dequeue=lambda shape: "SELECT * FROM pgq.get_batch_events($1)",
    open="SELECT pgq.next_batch($1, {consumer_or_c})",
    close="SELECT pgq.finish_batch($1)",
    tick="SELECT pgq.ticker($1)",
    one_consumer=True,
    ordered=False,
    explicit=False,
    backlog=400_000,
    topic_backlog=400_000,
    poll_seconds=0.02,
    extension="pgq",
    note="one consumer session per subscriber takes whole batches and acknowledges a batch as a whole; "
    "a tick every second (pgqd's default), every 0.1 s where latency is measured",
)


# -- a plain table


def _skip_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    topic = shape.kind == "topic"
    db.execute(
        conn,
        f"""CREATE TABLE {queue} (id bigint GENERATED ALWAYS AS IDENTITY, {"consumer text NOT NULL," if topic else ""}
            payload text NOT NULL, enqueued_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY ({"consumer, id" if topic else "id"}))
            WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
                  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0)""",
    )


def _skip_teardown(conn: db.Connection, queue: str) -> None:
    db.execute(conn, f"DROP TABLE {queue}")


def _skip_enqueue(shape: Shape) -> str:
    many = not (shape.single or shape.batch == 1)
    source = "unnest($2::text[]) WITH ORDINALITY m (p, n)" if many else "(VALUES ($2::text, 1)) m (p, n)"
    if shape.kind == "topic":
        names = ",".join(shape.consumers)
        return (
            "INSERT INTO {queue} (consumer, payload) "
            f"SELECT c, p FROM {source}, unnest('{{{{{names}}}}}'::text[]) c WHERE $1::text IS NOT NULL ORDER BY n"
        )
    return f"INSERT INTO {{queue}} (payload) SELECT p FROM {source} WHERE $1::text IS NOT NULL ORDER BY n"


def _skip_dequeue(shape: Shape) -> str:
    number = 1 if shape.single else shape.most
    mine = "consumer = $2 AND " if shape.kind == "topic" else ""
    return (
        f"DELETE FROM {{queue}} WHERE {mine}id = ANY (ARRAY("
        f"SELECT id FROM {{queue}} WHERE {mine}$1::text IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED LIMIT {number}"
        ")) RETURNING id, payload, enqueued_at"
    )


SKIP = Driver(
    name="skip",
    title="SKIP LOCKED",
    setup=_skip_setup,
    teardown=_skip_teardown,
    enqueue=_skip_enqueue,
    dequeue=_skip_dequeue,
    ordered=False,
    poll_seconds=0.002,
    note="a table with one index, DELETE of rows chosen by FOR UPDATE SKIP LOCKED, one row per subscriber; "
    "autovacuum tuned to run all the time; an empty queue is polled every 2 ms",
)


# -- the same with a time until which a message is not visible, as pgmq does it


def _vt_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    db.execute(
        conn,
        f"""CREATE TABLE {queue} (msg_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, read_ct int NOT NULL DEFAULT 0,
            enqueued_at timestamptz NOT NULL DEFAULT now(), vt timestamptz NOT NULL DEFAULT clock_timestamp(), payload text)
            WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
                  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0)""",
    )
    db.execute(conn, f"CREATE INDEX ON {queue} (vt)")


def _vt_dequeue(shape: Shape) -> str:
    number = 1 if shape.single else shape.most
    return (
        f"WITH next AS (SELECT msg_id FROM {{queue}} WHERE vt <= clock_timestamp() AND $1::text IS NOT NULL "
        f"ORDER BY msg_id LIMIT {number} FOR UPDATE SKIP LOCKED) "
        "UPDATE {queue} m SET vt = clock_timestamp() + interval '1 hour', read_ct = read_ct + 1 FROM next "
        "WHERE m.msg_id = next.msg_id RETURNING m.msg_id AS msgid, m.read_ct, m.enqueued_at, m.vt, m.payload"
    )


VT = Driver(
    name="vt",
    title="UPDATE vt, DELETE",
    setup=_vt_setup,
    teardown=_skip_teardown,
    enqueue=_skip_enqueue,
    dequeue=_vt_dequeue,
    finish="DELETE FROM {queue} WHERE msg_id = ANY ($3::bigint[]) AND $1::text IS NOT NULL AND ($2::text IS NULL OR true) RETURNING msg_id",
    ordered=False,
    explicit=False,
    poll_seconds=0.002,
    note="as pgmq does it: a table with a time until which a row is not visible, UPDATE of rows chosen by FOR UPDATE SKIP LOCKED, "
    "then DELETE, each in a transaction of its own; autovacuum tuned to run all the time; an empty queue is polled every 2 ms",
)

# -- no queue at all: what the server's commits and inserts leave room for


def _bare_setup(conn: db.Connection, queue: str, shape: Shape) -> None:
    # the columns that a message of pgaq has, so that a row has the same bytes
    db.execute(
        conn,
        f"""CREATE TABLE {queue} (ordinal bigint NOT NULL, session_id bigint NOT NULL, enqueue_time timestamptz NOT NULL,
            stream smallint NOT NULL, payload text) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)""",
    )


def _bare_enqueue(shape: Shape) -> str:
    source = "(VALUES ($2::text)) m (p)" if shape.single or shape.batch == 1 else "unnest($2::text[]) m (p)"
    return f"INSERT INTO {{queue}} SELECT 0, 0, now(), 0, p FROM {source} WHERE $1::text IS NOT NULL"


BARE = Driver(
    name="bare",
    title="two INSERTs",
    setup=_bare_setup,
    teardown=_skip_teardown,
    enqueue=_bare_enqueue,
    dequeue=lambda shape: "",
    yardstick=True,
    ordered=False,
    explicit=False,
    backlog=0,
    note="a yardstick, no queue: the producers, and as many sessions more in place of consumers, insert the messages into a "
    "table without an index; two rows count as one message enqueued and delivered",
)

DRIVERS = {driver.name: driver for driver in (PGAQ, CLASSIC, PGQ, SKIP, BARE, LEASE1, LEASE2, PROPAGATED, VT)}
