-- Metrics for monitoring systems. Members of pg_monitor see every queue, but no messages.

CREATE FUNCTION aq.metrics(OUT queue_id integer, OUT queue_name text, OUT consumer text, OUT delivery_mode text, OUT exception_queue text,
	OUT lag bigint, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint, OUT leased bigint, OUT oldest_ready_seconds double precision,
	OUT failed bigint, OUT enqueued bigint, OUT dequeued bigint, OUT enqueue_rate double precision, OUT dequeue_rate double precision,
	OUT waiting integer, OUT last_enqueue timestamptz, OUT last_dequeue timestamptz, OUT since timestamptz, OUT counted_at timestamptz,
	OUT max_depth bigint, OUT enqueues_waited bigint, OUT enqueues_refused bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000 AS 'MODULE_PATHNAME', 'aq_metrics';
COMMENT ON FUNCTION aq.metrics() IS
'One row for each consumer of the queues that the current role can use; members of pg_monitor see all
  queues. A single-consumer queue has one row with a null consumer; buffered messages have separate
  rows (delivery_mode).
lag: committed messages that the consumer has not finished: ready, delayed or in flight
ready: can be dequeued
delayed: wait for their delay or retry delay
in_flight: leased, taken by running or prepared transactions, or being rolled back
leased: those in_flight whose lease runs
oldest_ready_seconds: how long the first ready message of a shard has been ready, the longest of all
  shards; null: none is ready
failed: messages that have expired or exceeded max_retries; they move to exception_queue, whose own
  row counts those in it
waiting: sessions that wait for its messages
since: when the queue came into use after the start of the server; enqueued, dequeued, failed and the
  rates per second count from then on
counted_at: when ready, delayed, in_flight and oldest_ready_seconds were counted: now, or for queues
  in queue tables when the worker has counted them, at most every ten seconds; null: not yet, then
  these four are also null
max_depth: lag with which the queue is full; null: it is never full
enqueues_waited: enqueues into the queue, for any consumer, that have waited because it was full, since
  then; enqueues_refused: those that have failed because of it
After a restart the first call counts what the worker has not counted yet. All figures are null for
  a queue that is not in memory because pgaq.max_queues other queues are.';

CREATE FUNCTION aq.metrics(queue text, OUT queue_id integer, OUT queue_name text, OUT consumer text, OUT delivery_mode text, OUT exception_queue text,
	OUT lag bigint, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint, OUT leased bigint, OUT oldest_ready_seconds double precision,
	OUT failed bigint, OUT enqueued bigint, OUT dequeued bigint, OUT enqueue_rate double precision, OUT dequeue_rate double precision,
	OUT waiting integer, OUT last_enqueue timestamptz, OUT last_dequeue timestamptz, OUT since timestamptz, OUT counted_at timestamptz,
	OUT max_depth bigint, OUT enqueues_waited bigint, OUT enqueues_refused bigint)
RETURNS SETOF record LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_metrics_of_queue';
COMMENT ON FUNCTION aq.metrics(text) IS
'The rows of aq.metrics() of one queue; the others are not read.
Errors 42501, 42704';
