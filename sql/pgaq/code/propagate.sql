-- Propagation: messages of a queue go on to another one.

CREATE FUNCTION aq.propagate(queue_name text, destination text,
	latency interval DEFAULT NULL,
	start_time timestamptz DEFAULT NULL,
	duration interval DEFAULT NULL,
	every interval DEFAULT NULL,
	rule text DEFAULT NULL,
	subscribe boolean DEFAULT true)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_add';
COMMENT ON FUNCTION aq.propagate(text, text, interval, timestamptz, interval, interval, text, boolean) IS
'Propagate messages of a queue to another queue of this database from the commit on, each exactly once, by a background process with the privileges of the calling role; returns the number of the schedule. Of a queue with a single consumer, all messages go on. A topic gets the subscriber "-> destination", with the rule, if it does not exist. latency: pause after the queue was found empty (null: none, messages go on as they come); start_time: when the first window begins (null: now); duration: of a window (null: without end); every: between the beginnings of windows (null: there is one); subscribe: false adds no subscriber: consumers whose names end with "-> destination" exist, or are named as recipients; then destination null means all queues of this database in their names that have no schedule of their own. The role needs the privileges to dequeue from the queue, of a topic for the consumer, and to enqueue at the destination, whose payload type must be the same. Errors 0A000, 22004, 22023, 42501, 42704, 42710, 42804, 42809';

CREATE FUNCTION aq.alter_propagation(queue_name text, destination text,
	latency interval DEFAULT NULL,
	start_time timestamptz DEFAULT NULL,
	duration interval DEFAULT NULL,
	every interval DEFAULT NULL,
	enabled boolean DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_alter';
COMMENT ON FUNCTION aq.alter_propagation(text, text, interval, timestamptz, interval, interval, boolean) IS
'Change a propagation schedule; null leaves a property unchanged. duration, every: ''0'' for none. enabled: false stops it, a batch that has begun is finished; true starts it again, without its failures. For the queue''s owner and the role that has scheduled it. Errors 22004, 22023, 42501, 42704';

CREATE FUNCTION aq.end_propagation(queue_name text, destination text, unsubscribe boolean DEFAULT true)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_remove';
COMMENT ON FUNCTION aq.end_propagation(text, text, boolean) IS
'Remove a propagation schedule; a batch that has begun is finished. unsubscribe: also remove the subscriber "-> destination" of a topic, with the messages that were not propagated yet. For the queue''s owner and the role that has scheduled it. Errors 22004, 42501, 42704';
