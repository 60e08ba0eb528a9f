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
'Propagate messages of a queue to another queue from the commit on, each exactly once, by a background process with the privileges of the calling role; returns the number of the schedule. Of a queue with a single consumer, all messages go on. A topic gets the subscriber "-> destination", with the rule, if it does not exist. destination: a queue of this database, or "queue@server", a queue of the database to which a foreign server of the wrapper pgaq_link leads, with the role''s user mapping; what is wrong there is shown by aq.propagations. latency: pause after the queue was found empty (null: none, messages go on as they come); start_time: when the first window begins (null: now); duration: of a window (null: without end); every: between the beginnings of windows (null: there is one); subscribe: false adds no subscriber: consumers whose names end with "-> destination" exist, or are named as recipients; then destination null means all queues of this database in their names that have no schedule of their own, and "@server" the same for a server. The role needs the privileges to dequeue from the queue, of a topic for the consumer, and to enqueue at the destination (on a server: the role of the user mapping), whose payload type must be the same. Errors 0A000, 22004, 22023, 42501, 42704, 42710, 42804, 42809';

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
'Remove a propagation schedule; a batch that has begun is finished. unsubscribe: also remove the subscriber "-> destination" of a topic, with the messages that were not propagated yet. Without it, and of a queue with a single consumer, a schedule is not removed while messages are on their way to a server: wait until they have arrived, or forget them with aq.settle_propagation. For the queue''s owner and the role that has scheduled it. Errors 22004, 42501, 42704, 55006';

CREATE FUNCTION aq.settle_propagation(queue_name text, destination text, arrived boolean)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_settle';
COMMENT ON FUNCTION aq.settle_propagation(text, text, boolean) IS
'Decide about the messages that a disabled schedule has on their way to a server, when the server cannot tell any more: after one of the two databases was restored from a backup, or when the other one is gone; returns their number. arrived: true: forget them, because they are there, or are not wanted; the schedule can be ended then; false: they are not there, and are sent (again) when the schedule is enabled; until then they are on their way. A wrong answer loses messages, or doubles them. For the queue''s owner and the role that has scheduled it. Errors 22004, 42501, 42704, 55006';

-- Called by the link worker of another database. The source's random number is known to that database only.

CREATE FUNCTION aq.propagation_begin(source uuid, epoch bigint, first bigint, last bigint, queue_name text, OUT number bigint, OUT batch uuid)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_arrival_begin';
COMMENT ON FUNCTION aq.propagation_begin(uuid, bigint, bigint, bigint, text) IS
'Called by links of other databases: the number of the last batch of messages that has arrived here, and its identity. From now on, only those are taken that are sent in this epoch, which must be newer than the last one. source: the other database''s schedule; first, last: numbers of the batches that it has kept; queue_name: queue of the first one, on which the role needs the privilege to enqueue. Errors 22004, 42501, 42704, AQ134';

CREATE FUNCTION aq.propagation_put(source uuid, epoch bigint, number bigint, batch uuid, queue_name text, recipient text, payload_type text,
	payloads text[], priorities integer[], lifetimes bigint[], correlations text[], properties jsonb[], senders text[],
	exception_queues text[], originals uuid[])
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_arrival_put';
COMMENT ON FUNCTION aq.propagation_put(uuid, bigint, bigint, uuid, text, text, text, text[], integer[], bigint[], text[], jsonb[], text[], text[], uuid[]) IS
'Called by links of other databases: enqueue a batch of messages, unless it has arrived before; returns the number of the last batch that has arrived. source, epoch: as in aq.propagation_begin, which must have been called; number, batch: of the batch, and its identity; recipient: consumer of a topic, null: its subscribers; payload_type: with its schema, must be the queue''s. The arrays have an element for each message; lifetimes: what is left of expirations, microseconds. Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ134';
