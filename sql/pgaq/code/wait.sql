-- Waiting is a procedure: only CALL can wait without a snapshot.

CREATE PROCEDURE aq.wait(queue_name text, consumer text, timeout interval, INOUT ready boolean)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, interval, boolean) IS
'Wait until the consumer has a message.
consumer: null for a single-consumer queue
timeout: null or negative: forever
ready: true if there is a message, false after the timeout
Holds no snapshot while it waits, when called by CALL outside a function. Consumes nothing: dequeue
  afterwards. Another session may be faster.
Errors 22004, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.wait(queue_name text, timeout interval DEFAULT NULL, INOUT ready boolean DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, interval, boolean) IS
'The same for a single-consumer queue: CALL aq.wait(''orders'', ''1 minute'').
Errors 22004, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.wait(queue_name text, consumer text, timeout interval, delivery_mode text, INOUT ready boolean)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, interval, text, boolean) IS
'The same for messages of a delivery mode: persistent (null), buffered or persistent_or_buffered.
Errors also 22023';

CREATE PROCEDURE aq.listen(queue_names text[], consumers text[], timeout interval, INOUT queue_name text, INOUT consumer text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait_listen';
COMMENT ON PROCEDURE aq.listen(text[], text[], interval, text, text) IS
'Wait until one of several (queue, consumer) pairs has a message, and return the first one in list
  order, or nulls after the timeout. Consumes nothing.
consumers: one element per queue, null for single-consumer queues
timeout: null or negative: forever
Errors 22004, 22023, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.listen(queue_names text[], consumers text[], timeout interval, delivery_mode text,
	INOUT queue_name text, INOUT consumer text, INOUT message_delivery_mode text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait_listen';
COMMENT ON PROCEDURE aq.listen(text[], text[], interval, text, text, text, text) IS
'The same for messages of a delivery mode: persistent (null), buffered or persistent_or_buffered;
  message_delivery_mode tells which kind was found, persistent ones first.
Errors also 22023';
