-- Waiting is a procedure: only CALL can wait without a snapshot.
--
-- A timeout is anycompatible, an interval or a value whose text is one: the type interval itself would read a number without a unit as seconds. Among several
-- forms PostgreSQL prefers text for literals and parameters without a type, so CALL aq.wait('events', 'billing', '1 minute') needs a form with text.

CREATE PROCEDURE aq.wait(queue_name text, consumer text, timeout anycompatible, INOUT ready boolean DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, anycompatible, boolean) IS
'Wait until the consumer has a message.
consumer: null for a single-consumer queue
timeout: an interval with a unit; null or negative: forever
ready: true if there is a message, false after the timeout
Holds no snapshot while it waits, when called by CALL outside a function. Consumes nothing: dequeue
  afterwards. Another session may be faster.
Errors 22004, 22023, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.wait(queue_name text, consumer text, timeout text, INOUT ready boolean DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, text, boolean) IS
'The same for literals and parameters without a type';

CREATE PROCEDURE aq.wait(queue_name text, timeout anycompatible DEFAULT NULL, INOUT ready boolean DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, anycompatible, boolean) IS
'The same for a single-consumer queue: CALL aq.wait(''orders'', ''1 minute'').
Errors 22004, 22023, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.wait(queue_name text, timeout text, INOUT ready boolean DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, boolean) IS
'The same for literals and parameters without a type';

CREATE PROCEDURE aq.wait(queue_name text, consumer text, timeout anycompatible, delivery_mode text, INOUT ready boolean)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait';
COMMENT ON PROCEDURE aq.wait(text, text, anycompatible, text, boolean) IS
'The same for messages of a delivery mode: persistent (null), buffered or persistent_or_buffered.
Errors also 22023';

CREATE PROCEDURE aq.listen(queue_names text[], consumers text[] DEFAULT NULL, timeout anycompatible DEFAULT NULL,
	INOUT queue_name text DEFAULT NULL, INOUT consumer text DEFAULT NULL)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait_listen';
COMMENT ON PROCEDURE aq.listen(text[], text[], anycompatible, text, text) IS
'Wait until one of several (queue, consumer) pairs has a message, and return the first one in list
  order, or nulls after the timeout. Consumes nothing.
consumers: one element per queue, null for single-consumer queues
timeout: an interval with a unit; null or negative: forever
Errors 22004, 22023, 42501, 42704, 42809, 55000';

CREATE PROCEDURE aq.listen(queue_names text[], consumers text[], timeout anycompatible, delivery_mode text,
	INOUT queue_name text, INOUT consumer text, INOUT message_delivery_mode text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_wait_listen';
COMMENT ON PROCEDURE aq.listen(text[], text[], anycompatible, text, text, text, text) IS
'The same for messages of a delivery mode: persistent (null), buffered or persistent_or_buffered;
  message_delivery_mode tells which kind was found, persistent ones first.
Errors also 22023';
