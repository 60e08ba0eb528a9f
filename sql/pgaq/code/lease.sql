-- Finish, extend or give back messages that were dequeued with a lease.

CREATE FUNCTION aq.acknowledge(queue_name text, msgids anycompatible, receipt bigint,
	consumer text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_acknowledge';
COMMENT ON FUNCTION aq.acknowledge(text, anycompatible, bigint, text) IS
'Finish messages that were dequeued with a lease: they are consumed when the transaction commits.
msgids: an id, or an array of ids
receipt: as returned with the messages
result: for each message: done; stale (no lease with this receipt runs: it has ended, or was
  acknowledged, released or rejected); busy (an open transaction, perhaps this one, has already
  acknowledged, extended, released or rejected it)
Messages that are not done are not changed.
Errors 0A000, 22004, 22023, 42501, 42704, 42809';

CREATE FUNCTION aq.extend(queue_name text, msgids anycompatible, receipt bigint, lease interval,
	consumer text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_extend';
COMMENT ON FUNCTION aq.extend(text, anycompatible, bigint, interval, text) IS
'Extend leases: they end this time after the commit, or later if they were to end later.
msgids, receipt, result: as in aq.acknowledge
Errors as in aq.acknowledge';

CREATE FUNCTION aq.release(queue_name text, msgids anycompatible, receipt bigint,
	consumer text DEFAULT NULL,
	delay interval DEFAULT NULL,
	error text DEFAULT NULL,
	count boolean DEFAULT true)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_release';
COMMENT ON FUNCTION aq.release(text, anycompatible, bigint, text, interval, text, boolean) IS
'Give leased messages back: they are ready again when the transaction commits, at their position in
  the order, or after a delay, and cannot be leased before, not even by msgid.
delay: ''0'' for none; null: the retry delay of the queue for the number of attempts, or none if count
  is false
error: shown as last_error in aq.messages (null or empty: none); at most 600 bytes are kept
count: false does not count the attempt, for messages that were not worked on
msgids, receipt, result: as in aq.acknowledge
A message that has been attempted more often than max_retries, or has expired, fails instead: it
  moves to the exception queue, or is dropped if the queue has no exception queue.
Errors as in aq.acknowledge';

CREATE FUNCTION aq.reject(queue_name text, msgids anycompatible, receipt bigint,
	consumer text DEFAULT NULL,
	error text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_reject';
COMMENT ON FUNCTION aq.reject(text, anycompatible, bigint, text, text) IS
'Fail leased messages: when the transaction has committed, they move to the exception queue, or are
  dropped if the queue has no exception queue.
error: as in aq.release
msgids, receipt, result: as in aq.acknowledge
Errors as in aq.acknowledge';

CREATE FUNCTION aq.end_leases(queue_name text, msgids anycompatible,
	consumer text DEFAULT NULL,
	error text DEFAULT NULL)
RETURNS TABLE (msgid uuid, result text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_lease_calls_end_leases';
COMMENT ON FUNCTION aq.end_leases(text, anycompatible, text, text) IS
'End leases without their receipts, for messages whose worker is gone or whose receipt was lost; the
  effect is the same as if the lease had expired. The message is ready again when the transaction
  commits; one that has been attempted more often than max_retries, or has expired, fails. Later
  calls of the worker return stale.
error: shown as last_error in aq.messages; null or empty: the name of the role that has ended the
  lease
msgids: as in aq.acknowledge
result: as in aq.acknowledge; stale means that no lease runs
For the queue''s owner.
Errors 22004, 22023, 42501, 42704, 42809';

CREATE FUNCTION aq.redrive(queue_name text, max_messages integer DEFAULT NULL,
	condition text DEFAULT NULL,
	exception_queue text DEFAULT NULL)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_redrive';
COMMENT ON FUNCTION aq.redrive(text, integer, text, text) IS
'Put dead letters of the queue back into it, in the caller''s transaction; returns their number. Each
  is a new message without attempts, in a topic for the consumer that failed. It keeps payload,
  priority, correlation, properties and sender, and the exception queue that it named if the caller
  may name it. Its expiration begins again; it has no delay.
max_messages: how many at most (null: all)
condition: as in aq.dequeue, on the dead letters
exception_queue: where they are (null: the queue''s exception queue)
Dead letters that other transactions have locked, and those of a consumer that no longer exists,
  remain. Requires the dequeue privilege on the exception queue, which must be started for dequeue
  (that of a queue table is not), and the enqueue privilege on the queue.
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018';
