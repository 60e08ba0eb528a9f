-- Schedules of propagation.

CREATE SEQUENCE aq_internal.propagation_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.propagation_id_seq IS 'Numbers of propagation schedules; never reused';

CREATE TABLE aq_internal.propagation (
	schedule_id bigint PRIMARY KEY DEFAULT nextval('aq_internal.propagation_id_seq'),
	queue_id integer NOT NULL,
	destination text,
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

SELECT pg_catalog.pg_extension_config_dump('aq_internal.propagation', '');
SELECT pg_catalog.pg_extension_config_dump('aq_internal.propagation_id_seq', '');
