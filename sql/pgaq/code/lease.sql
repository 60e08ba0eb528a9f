-- Finish, extend or give back messages that were dequeued with a lease.

CREATE FUNCTION aq.acknowledge(queue_name text, msgids uuid[], receipt bigint,
	consumer text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_acknowledge';
COMMENT ON FUNCTION aq.acknowledge(text, uuid[], bigint, text) IS
'Finish messages that were dequeued with a lease: they are consumed when the transaction commits. receipt: as returned with the messages. result, for each message: done; stale (no lease with this receipt runs: it has ended, or was acknowledged, released or rejected); busy (another transaction, or this one, has acknowledged, extended, released or rejected it and has not ended). Messages that are not done are not changed. Errors 0A000, 22004, 22023, 42501, 42704, 42809';

CREATE FUNCTION aq.extend(queue_name text, msgids uuid[], receipt bigint, lease interval,
	consumer text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_extend';
COMMENT ON FUNCTION aq.extend(text, uuid[], bigint, interval, text) IS
'Extend leases: they end at this time after the commit at the earliest, and never earlier than before. receipt, result and errors as in aq.acknowledge';

CREATE FUNCTION aq.release(queue_name text, msgids uuid[], receipt bigint,
	consumer text DEFAULT NULL,
	delay interval DEFAULT NULL,
	error text DEFAULT NULL,
	count boolean DEFAULT true)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_release';
COMMENT ON FUNCTION aq.release(text, uuid[], bigint, text, interval, text, boolean) IS
'Give leased messages back: they are ready again when the transaction commits, at their place in the order, or after a delay, and cannot be leased before, not even by msgid. delay: ''0'' for none; null: the retry delay of the queue for the number of attempts, or none if count is false. error: shown as last_error in aq.messages; at most 600 bytes are kept. count: false takes the attempt back, for messages that were not worked on. A message that has been attempted more often than max_retries, or has expired, fails instead: it moves to the exception queue, or is dropped if the queue has no exception queue. receipt, result and errors as in aq.acknowledge';

CREATE FUNCTION aq.reject(queue_name text, msgids uuid[], receipt bigint,
	consumer text DEFAULT NULL,
	error text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_reject';
COMMENT ON FUNCTION aq.reject(text, uuid[], bigint, text, text) IS
'Fail leased messages: when the transaction has committed, they move to the exception queue, or are dropped if the queue has no exception queue. error as in aq.release; receipt, result and errors as in aq.acknowledge';
