-- Schedules of propagation.

CREATE SEQUENCE aq_internal.propagation_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.propagation_id_seq IS 'Numbers of propagation schedules; never reused';

CREATE TABLE aq_internal.propagation (
	schedule_id bigint PRIMARY KEY DEFAULT nextval('aq_internal.propagation_id_seq'),
	queue_id integer NOT NULL,
	destination text COLLATE "C",
	role aq_internal.role NOT NULL,
	enabled boolean NOT NULL DEFAULT true,
	latency interval NOT NULL,
	start_time timestamptz NOT NULL,
	duration interval,
	every interval,
	created timestamptz NOT NULL DEFAULT now(),
	failures integer NOT NULL DEFAULT 0,
	last_error text,
	last_error_time timestamptz,
	messages bigint NOT NULL DEFAULT 0,
	bytes bigint NOT NULL DEFAULT 0,
	batches bigint NOT NULL DEFAULT 0,
	elapsed bigint NOT NULL DEFAULT 0,
	most_messages bigint NOT NULL DEFAULT 0,
	most_bytes bigint NOT NULL DEFAULT 0,
	last_run timestamptz,
	UNIQUE NULLS NOT DISTINCT (queue_id, destination)
);
CREATE INDEX propagation_role ON aq_internal.propagation ((role::oid));
COMMENT ON TABLE aq_internal.propagation IS 'Schedules of propagation: see aq.propagations';
COMMENT ON COLUMN aq_internal.propagation.schedule_id IS 'number of the schedule';
COMMENT ON COLUMN aq_internal.propagation.queue_id IS 'the queue whose messages go on';
COMMENT ON COLUMN aq_internal.propagation.destination IS 'name of the queue that gets them; null: those at the addresses of its consumers, without a schedule of their own';
COMMENT ON COLUMN aq_internal.propagation.role IS 'role that has scheduled it, whose privileges count; empty: dropped';
COMMENT ON COLUMN aq_internal.propagation.enabled IS 'false: disabled, by a role or after 16 failures in a row';
COMMENT ON COLUMN aq_internal.propagation.latency IS 'pause after the queue was found empty; 0: none';
COMMENT ON COLUMN aq_internal.propagation.start_time IS 'when the first window begins';
COMMENT ON COLUMN aq_internal.propagation.duration IS 'of a window; null: without end';
COMMENT ON COLUMN aq_internal.propagation.every IS 'between the beginnings of windows; null: there is one';
COMMENT ON COLUMN aq_internal.propagation.created IS 'when it was scheduled';
COMMENT ON COLUMN aq_internal.propagation.failures IS 'failures in a row';
COMMENT ON COLUMN aq_internal.propagation.last_error IS 'message of the last error';
COMMENT ON COLUMN aq_internal.propagation.last_error_time IS 'when that was';
COMMENT ON COLUMN aq_internal.propagation.messages IS 'messages that it has moved';
COMMENT ON COLUMN aq_internal.propagation.bytes IS 'their payloads';
COMMENT ON COLUMN aq_internal.propagation.batches IS 'transactions that have moved them';
COMMENT ON COLUMN aq_internal.propagation.elapsed IS 'time of these, microseconds';
COMMENT ON COLUMN aq_internal.propagation.most_messages IS 'messages in the largest batch';
COMMENT ON COLUMN aq_internal.propagation.most_bytes IS 'bytes in the largest batch';
COMMENT ON COLUMN aq_internal.propagation.last_run IS 'when messages were last moved';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.propagation_id_seq', '');

-- Propagation to other databases: src/propagate/README.md has the protocol.

CREATE TABLE aq_internal.propagation_link (
	schedule_id bigint PRIMARY KEY REFERENCES aq_internal.propagation ON DELETE CASCADE,
	source uuid NOT NULL DEFAULT gen_random_uuid(),
	epoch bigint NOT NULL DEFAULT 0,
	number bigint NOT NULL DEFAULT 0,
	arrived uuid,
	diverged boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE aq_internal.propagation_link IS 'Schedules whose destinations are in other databases: one row for each';
COMMENT ON COLUMN aq_internal.propagation_link.schedule_id IS 'number of the schedule';
COMMENT ON COLUMN aq_internal.propagation_link.source IS 'under which the destination knows it';
COMMENT ON COLUMN aq_internal.propagation_link.epoch IS 'grows each time the destination is asked what has arrived: microseconds since 1970; 0: never';
COMMENT ON COLUMN aq_internal.propagation_link.number IS 'of the last batch; 0: none';
COMMENT ON COLUMN aq_internal.propagation_link.arrived IS 'identity of the last batch that has arrived; null: none';
COMMENT ON COLUMN aq_internal.propagation_link.diverged IS 'true: the destination has other batches than it should have';

CREATE TABLE aq_internal.propagation_batch (
	schedule_id bigint NOT NULL REFERENCES aq_internal.propagation ON DELETE CASCADE,
	number bigint NOT NULL,
	batch uuid NOT NULL DEFAULT gen_random_uuid(),
	destination text NOT NULL,
	recipient text,
	payload_type text NOT NULL,
	messages integer NOT NULL,
	bytes bigint NOT NULL,
	payloads text[] NOT NULL,
	priorities integer[] NOT NULL,
	expirations timestamptz[] NOT NULL,
	correlations text[] NOT NULL,
	properties jsonb[] NOT NULL,
	senders text[] NOT NULL,
	exception_queues text[] NOT NULL,
	originals uuid[] NOT NULL,
	keys text[],
	PRIMARY KEY (schedule_id, number)
);
COMMENT ON TABLE aq_internal.propagation_batch IS 'Messages that have left their queue for another database and are not known to have arrived there. The arrays have an element for each message';
COMMENT ON COLUMN aq_internal.propagation_batch.schedule_id IS 'number of the schedule';
COMMENT ON COLUMN aq_internal.propagation_batch.number IS 'number of the batch: they arrive one after the other';
COMMENT ON COLUMN aq_internal.propagation_batch.batch IS 'its identity: no other one has it, although an older backup may use the number again';
COMMENT ON COLUMN aq_internal.propagation_batch.destination IS 'name of the queue there';
COMMENT ON COLUMN aq_internal.propagation_batch.recipient IS 'consumer there; null: its subscribers';
COMMENT ON COLUMN aq_internal.propagation_batch.payload_type IS 'name of the payloads'' type, with its schema';
COMMENT ON COLUMN aq_internal.propagation_batch.messages IS 'number of messages';
COMMENT ON COLUMN aq_internal.propagation_batch.bytes IS 'size of their payloads';
COMMENT ON COLUMN aq_internal.propagation_batch.payloads IS 'payloads as text';
COMMENT ON COLUMN aq_internal.propagation_batch.priorities IS 'priorities';
COMMENT ON COLUMN aq_internal.propagation_batch.expirations IS 'when they expire; null: never';
COMMENT ON COLUMN aq_internal.propagation_batch.correlations IS 'correlations';
COMMENT ON COLUMN aq_internal.propagation_batch.properties IS 'properties';
COMMENT ON COLUMN aq_internal.propagation_batch.senders IS 'senders';
COMMENT ON COLUMN aq_internal.propagation_batch.exception_queues IS 'exception queues that they name';
COMMENT ON COLUMN aq_internal.propagation_batch.originals IS 'their ids in the first queue';
COMMENT ON COLUMN aq_internal.propagation_batch.keys IS 'keys; null: none has one';

CREATE TABLE aq_internal.propagation_arrival (
	source uuid PRIMARY KEY,
	epoch bigint NOT NULL DEFAULT 0,
	number bigint NOT NULL DEFAULT 0,
	batch uuid,
	arrived timestamptz NOT NULL DEFAULT now(),
	role aq_internal.role
);
CREATE INDEX propagation_arrival_role ON aq_internal.propagation_arrival ((role::oid));
COMMENT ON TABLE aq_internal.propagation_arrival IS 'Batches received from other databases: one row for each of their schedules';
COMMENT ON COLUMN aq_internal.propagation_arrival.source IS 'source in aq_internal.propagation_link there';
COMMENT ON COLUMN aq_internal.propagation_arrival.epoch IS 'epoch in which it has asked last';
COMMENT ON COLUMN aq_internal.propagation_arrival.number IS 'of the last batch that has arrived; 0: none';
COMMENT ON COLUMN aq_internal.propagation_arrival.batch IS 'its identity; null: none';
COMMENT ON COLUMN aq_internal.propagation_arrival.arrived IS 'when that was; before: when it was asked for the first time';
COMMENT ON COLUMN aq_internal.propagation_arrival.role IS 'role that has asked for the first time; empty: dropped';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.propagation_arrival', '');
