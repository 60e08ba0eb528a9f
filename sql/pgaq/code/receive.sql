-- Waits for messages and dequeues them in one call.

CREATE PROCEDURE aq.receive(queue_name text,
	consumer text DEFAULT NULL,
	max_messages integer DEFAULT 1,
	timeout anycompatible DEFAULT NULL,
	correlation text DEFAULT NULL,
	condition text DEFAULT NULL,
	delivery_mode text DEFAULT NULL,
	lease interval DEFAULT NULL,
	acknowledge uuid[] DEFAULT NULL,
	receipt bigint DEFAULT NULL,
	INOUT messages jsonb DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_receive';
COMMENT ON PROCEDURE aq.receive(text, text, integer, anycompatible, text, text, text, interval, uuid[], bigint, jsonb) IS
'Wait until there are messages, and dequeue up to max_messages of them.
timeout: an interval with a unit; null or negative: forever
consumer, correlation, condition, delivery_mode, lease, acknowledge, receipt: as in aq.dequeue
messages: a JSON array with an object for each message, empty after the timeout
A call that acknowledges messages does not wait. Holds no snapshot while it waits when called by CALL
  outside a function.
Errors 0A000, 22004, 22023, 42501, 42704, 42809, 55000, AQ018';
