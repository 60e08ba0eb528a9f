-- Schedules: messages that are enqueued at times. Created once; changed only by upgrade scripts.

CREATE SEQUENCE aq_internal.schedule_id_seq AS bigint;
COMMENT ON SEQUENCE aq_internal.schedule_id_seq IS 'Numbers of schedules; never reused';

CREATE TABLE aq_internal.schedule (
	schedule_id bigint NOT NULL DEFAULT nextval('aq_internal.schedule_id_seq'),
	schedule_name text COLLATE "C" PRIMARY KEY,
	queue_id integer NOT NULL,
	owner aq_internal.role NOT NULL,
	payload text,
	options jsonb NOT NULL,
	cron text,
	every interval CHECK ((cron IS NULL) <> (every IS NULL)),
	time_zone text NOT NULL,
	catch_up text NOT NULL CHECK (catch_up IN ('skip', 'one', 'all')),
	start_at timestamptz NOT NULL,
	until timestamptz,
	next_run timestamptz,
	retry_at timestamptz,
	paused boolean NOT NULL DEFAULT false,
	disabled boolean NOT NULL DEFAULT false,
	failures integer NOT NULL DEFAULT 0,
	last_error text,
	error_time timestamptz,
	last_run timestamptz,
	runs bigint NOT NULL DEFAULT 0,
	created timestamptz NOT NULL DEFAULT now(),
	comment text
) WITH (fillfactor = 50);
CREATE INDEX schedule_owner ON aq_internal.schedule ((owner::oid));
COMMENT ON TABLE aq_internal.schedule IS 'Schedules: the scheduler enqueues a message at each of their times, and writes the next time in the same transaction';
COMMENT ON COLUMN aq_internal.schedule.schedule_id IS 'number of the schedule';
COMMENT ON COLUMN aq_internal.schedule.schedule_name IS 'name, unique in the database';
COMMENT ON COLUMN aq_internal.schedule.queue_id IS 'queue of its messages';
COMMENT ON COLUMN aq_internal.schedule.owner IS 'role that made it, which enqueues the messages; empty: dropped';
COMMENT ON COLUMN aq_internal.schedule.payload IS 'payload of the messages, as text with fixed settings (DateStyle ISO, TimeZone UTC and others)';
COMMENT ON COLUMN aq_internal.schedule.options IS 'options of the messages, as in argument options of aq.enqueue_array';
COMMENT ON COLUMN aq_internal.schedule.cron IS 'cron expression; null: an interval';
COMMENT ON COLUMN aq_internal.schedule.every IS 'interval; null: a cron expression';
COMMENT ON COLUMN aq_internal.schedule.time_zone IS 'time zone of the expression, and of the days and months of the interval';
COMMENT ON COLUMN aq_internal.schedule.catch_up IS 'what happens to missed times: skip, one or all';
COMMENT ON COLUMN aq_internal.schedule.start_at IS 'no message before this time; an interval counts from it';
COMMENT ON COLUMN aq_internal.schedule.until IS 'no message after this time; null: no limit';
COMMENT ON COLUMN aq_internal.schedule.next_run IS 'first time for which no message was enqueued yet; null: none is left';
COMMENT ON COLUMN aq_internal.schedule.retry_at IS 'after a failure, when it is tried again';
COMMENT ON COLUMN aq_internal.schedule.paused IS 'by aq.stop_schedule';
COMMENT ON COLUMN aq_internal.schedule.disabled IS 'after too many failures in a row';
COMMENT ON COLUMN aq_internal.schedule.failures IS 'failures in a row';
COMMENT ON COLUMN aq_internal.schedule.last_error IS 'SQLSTATE and message of the last failure';
COMMENT ON COLUMN aq_internal.schedule.error_time IS 'when that was';
COMMENT ON COLUMN aq_internal.schedule.last_run IS 'when it last enqueued a message';
COMMENT ON COLUMN aq_internal.schedule.runs IS 'number of times for which it has enqueued a message';
COMMENT ON COLUMN aq_internal.schedule.created IS 'when it was made';
COMMENT ON COLUMN aq_internal.schedule.comment IS 'the creator''s comment';

SELECT pg_catalog.pg_extension_config_dump('aq_internal.schedule_id_seq', '');
