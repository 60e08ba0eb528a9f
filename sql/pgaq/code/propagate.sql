-- Propagation: messages of a queue go on to another one.

CREATE FUNCTION aq.create_propagation(queue_name text, destination text,
	latency interval DEFAULT NULL,
	start_time timestamptz DEFAULT NULL,
	duration interval DEFAULT NULL,
	every interval DEFAULT NULL,
	rule text DEFAULT NULL,
	subscribe boolean DEFAULT true)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_add';
COMMENT ON FUNCTION aq.create_propagation(text, text, interval, timestamptz, interval, interval, text, boolean) IS
'Propagate messages of a queue to another queue from the commit on, each exactly once, by a
  background process with the privileges of the calling role; returns the number of the schedule. A
  single-consumer queue propagates every message. For a topic, the subscriber "-> destination" is
  added, with the rule, if it does not exist.
destination: a queue of this database, or "queue@server": a queue of another database, reached by a
  foreign server of the wrapper pgaq_link with the role''s user mapping. Errors at the destination
  appear in aq.propagations
latency: pause after the queue was found empty (null: no pause)
start_time: beginning of the first window (null: now)
duration: length of a window (null: without end)
every: time between the beginnings of windows (null: one window only)
rule: of the subscriber that is added
subscribe: false adds no subscriber: messages are for existing subscribers, or recipients, whose names
  end with "-> destination". Then a null destination means all queues of this database in such names
  that have no schedule of their own, and "@server" the same for a server
The role needs the privilege to dequeue from the queue (in a topic, for the consumer), and to enqueue
  at the destination (on a server: the role of the user mapping). Both queues must have the same
  payload type.
Errors 0A000, 22004, 22023, 42501, 42704, 42710, 42804, 42809';

CREATE FUNCTION aq.alter_propagation(queue_name text, destination text,
	latency interval DEFAULT NULL,
	start_time timestamptz DEFAULT NULL,
	duration interval DEFAULT NULL,
	every interval DEFAULT NULL,
	enabled boolean DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_alter';
COMMENT ON FUNCTION aq.alter_propagation(text, text, interval, timestamptz, interval, interval, boolean) IS
'Change a propagation schedule; null leaves a property unchanged.
duration, every: ''0'' removes the setting
enabled: false stops the schedule after the batch that has begun; true starts it again and resets its
  count of failures
For the queue''s owner and the role that has scheduled it.
Errors 22004, 22023, 42501, 42704';

CREATE FUNCTION aq.drop_propagation(queue_name text, destination text, unsubscribe boolean DEFAULT true)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_remove';
COMMENT ON FUNCTION aq.drop_propagation(text, text, boolean) IS
'Remove a propagation schedule; a batch that has begun is finished.
unsubscribe: true also removes the subscriber "-> destination" of a topic, with the messages that were
  not propagated yet
Without it, and for a single-consumer queue, the call fails while messages are in transit to a
  server: wait until they have arrived, or forget them with aq.settle_propagation. For the queue''s
  owner and the role that has scheduled it.
Errors 22004, 42501, 42704, 55006';

CREATE FUNCTION aq.settle_propagation(queue_name text, destination text, arrived boolean)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_calls_settle';
COMMENT ON FUNCTION aq.settle_propagation(text, text, boolean) IS
'Say whether the messages that a disabled schedule has in transit have arrived, when the two databases
  no longer agree: after one of them was restored from a backup, or when the other one is gone;
  returns their number.
arrived: true forgets them; the schedule can then be ended. false keeps them; they are sent again
  when the schedule is enabled
A wrong answer loses messages or delivers them twice. For the queue''s owner and the role that has
  scheduled it.
Errors 22004, 42501, 42704, 55006';

-- Called by the link worker of another database. The source's random number is known to that database only.

CREATE FUNCTION aq.propagation_begin(source uuid, epoch bigint, first bigint, last bigint, queue_name text, OUT number bigint, OUT batch uuid)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_arrival_begin';
COMMENT ON FUNCTION aq.propagation_begin(uuid, bigint, bigint, bigint, text) IS
'Called by links of other databases: the number of the last batch of messages that has arrived here,
  and its identity. From now on, only batches of this epoch are accepted; it must be newer than the
  last one.
source: the other database''s schedule
epoch: a number that is greater than the last one
first, last: numbers of the batches that it has kept
queue_name: queue of the first one, on which the role needs the privilege to enqueue
Errors 22004, 42501, 42704, AQ134';

CREATE FUNCTION aq.propagation_put(source uuid, epoch bigint, number bigint, batch uuid, queue_name text, recipient text, payload_type text,
	payloads text[], priorities integer[], lifetimes bigint[], correlations text[], properties jsonb[], senders text[],
	exception_queues text[], originals uuid[], keys text[] DEFAULT NULL)
RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_propagation_arrival_put';
COMMENT ON FUNCTION aq.propagation_put(uuid, bigint, bigint, uuid, text, text, text, text[], integer[], bigint[], text[], jsonb[], text[], text[], uuid[], text[]) IS
'Called by links of other databases: enqueue a batch of messages, unless it has arrived before;
  returns the number of the last batch that has arrived.
source, epoch: as in aq.propagation_begin, which must have been called
number, batch: of the batch, and its identity
recipient: consumer of a topic, null: its subscribers
payload_type: with its schema, must be the queue''s
payloads, priorities, correlations, properties, senders, exception_queues: of the messages
lifetimes: remaining time until expiration, in microseconds
originals: their ids there
keys: of the messages; null: none has a key
The arrays have an element for each message.
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ134';
