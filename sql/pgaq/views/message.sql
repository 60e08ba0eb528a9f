-- One message by its id, and the keys of a queue.

CREATE FUNCTION aq.message(queue_name text, msgid uuid) RETURNS SETOF aq.messages
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1
BEGIN ATOMIC
	SELECT m.* FROM aq.messages m WHERE m.queue_name = message.queue_name AND m.msgid = message.msgid;
END;
COMMENT ON FUNCTION aq.message(text, uuid) IS
'Show one message, with its state and attempts, as aq.messages shows it: one row for each consumer,
  no row for an unknown or truncated message and for a queue or consumer from which the current role
  cannot dequeue. Reads one partition of a sharded queue, and uses an index of a queue table.';

CREATE FUNCTION aq_internal.cancel(queue_name text, msgid uuid, unfinished bigint) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_cancel';
COMMENT ON FUNCTION aq_internal.cancel(text, uuid, bigint) IS 'Internal: removes a message; unfinished: the number of its consumers that had not finished it';

CREATE FUNCTION aq.cancel(queue_name text, msgid uuid) RETURNS text
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT aq_internal.cancel(cancel.queue_name, cancel.msgid, (SELECT count(*) FROM aq.message(cancel.queue_name, cancel.msgid) m
		WHERE m.state NOT IN ('PROCESSED', 'PURGED', 'EXPIRED')));
END;
COMMENT ON FUNCTION aq.cancel(text, uuid) IS
'Remove a message that no transaction holds, in the caller''s transaction, for all its consumers, also
  one that is delayed or waits for a retry. Returns done; busy: a transaction, maybe this one, holds
  it, or a lease runs, in a topic for any of its consumers, so nothing is changed (aq.end_leases
  ends leases); gone: it was already consumed, removed or failed, or never existed. A rollback is
  not an attempt. For roles with the dequeue privilege on the queue.
Errors 22004, 42501, 42704, 55000';

CREATE FUNCTION aq.keys(queue_name text, OUT consumer text, OUT key text, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint,
	OUT oldest timestamptz)
RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 100
BEGIN ATOMIC
	SELECT m.consumer, m.key, count(*) FILTER (WHERE m.state = 'READY'), count(*) FILTER (WHERE m.state = 'WAITING'),
		count(*) FILTER (WHERE m.state IN ('LOCKED', 'LEASED')), min(m.enqueue_time)
	FROM aq.messages m
	WHERE m.queue_name = keys.queue_name AND m.key IS NOT NULL AND m.state IN ('READY', 'WAITING', 'LOCKED', 'LEASED')
	GROUP BY m.consumer, m.key ORDER BY min(m.enqueue_time), m.key, m.consumer;
END;
COMMENT ON FUNCTION aq.keys(text) IS
'The keys that have messages which are not finished, the key with the oldest first; in a topic for each
  consumer. No rows for a queue or consumer from which the current role cannot dequeue. Reads the
  tables of the queue, as aq.messages does.
consumer: the consumer; null in single-consumer queues
key: the key
ready: can be dequeued
delayed: wait for their delay or retry delay
in_flight: taken by running or prepared transactions, or leased
oldest: time of the enqueue call of the oldest';
