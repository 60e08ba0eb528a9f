\echo Use "ALTER EXTENSION pgaq UPDATE" to load this file. \quit
-- A server that was not restarted after an installation of files still has the library of the version before.
DO $$
BEGIN
	IF current_setting('pgaq.max_queues', true) IS NOT NULL
		AND string_to_array(coalesce(current_setting('pgaq.library_version', true), '0'), '.')::integer[] < string_to_array('0.2.0', '.')::integer[] THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'version 0.2.0 of the extension "pgaq" needs the library of this version',
			DETAIL = format('The server has loaded the library of %s.', coalesce('version ' || current_setting('pgaq.library_version', true), 'an earlier version')),
			HINT = 'Restart the server. Then repeat the command.';
	END IF;
END $$;

DO $$
BEGIN
	IF to_regnamespace('aq_jms') IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'duplicate_schema', MESSAGE = 'schema "aq_jms" already exists', DETAIL = 'The extension "pgaq" needs this name for a schema of its own.',
			HINT = 'Rename yours with ALTER SCHEMA aq_jms RENAME TO ... . Then repeat the command.';
	END IF;
END $$;

-- It calls what is dropped below; dropped too, it would lose the privileges that were granted on it.
CREATE OR REPLACE FUNCTION aq.report_rtpctx(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT NULL::jsonb';

-- The log of a console.
CREATE TABLE aq_internal.action (
	done_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	role text COLLATE "C" NOT NULL,
	action text NOT NULL,
	object text NOT NULL,
	number bigint,
	detail text
);
CREATE INDEX action_done_at ON aq_internal.action (done_at);
CREATE INDEX action_role ON aq_internal.action (role, done_at);
ALTER TABLE aq_internal.action REPLICA IDENTITY FULL;
COMMENT ON TABLE aq_internal.action IS 'What people have changed through a console; of the last 90 days, 10,000 rows of a role at most, and in no dump';
COMMENT ON COLUMN aq_internal.action.done_at IS 'when';
COMMENT ON COLUMN aq_internal.action.role IS 'role that had logged in';
COMMENT ON COLUMN aq_internal.action.action IS 'what was done';
COMMENT ON COLUMN aq_internal.action.object IS 'queue, schedule or message';
COMMENT ON COLUMN aq_internal.action.number IS 'how many messages it concerned; null: none';
COMMENT ON COLUMN aq_internal.action.detail IS 'arguments';
ALTER TABLE aq_internal.action OWNER TO pgaq;
GRANT ALL ON TABLE aq_internal.action TO pgaq;

-- The history of queues.
CREATE TABLE aq_internal.history_minute (
	sampled_at timestamptz NOT NULL,
	queue_id integer NOT NULL,
	oldest real,
	ready bigint,
	in_flight bigint,
	delayed bigint,
	enqueued bigint NOT NULL,
	dequeued bigint NOT NULL,
	failed bigint NOT NULL,
	buckets integer[]
) PARTITION BY LIST ((extract(epoch FROM sampled_at - timestamptz '2000-01-01 00:00Z')::bigint / 28800 % 8));
CREATE TABLE aq_internal.history_hour (LIKE aq_internal.history_minute) PARTITION BY LIST ((extract(epoch FROM sampled_at - timestamptz '2000-01-01 00:00Z')::bigint / 1296000 % 8));
DO $$
DECLARE
	ring text;
BEGIN
	FOREACH ring IN ARRAY '{history_minute,history_hour}'::text[] LOOP
		EXECUTE format('CREATE INDEX ON aq_internal.%I (queue_id, sampled_at)', ring);
		EXECUTE format('CREATE INDEX ON aq_internal.%I USING brin (sampled_at) WITH (pages_per_range = 16)', ring);
		FOR i IN 0..7 LOOP
			EXECUTE format('CREATE TABLE aq_internal.%I PARTITION OF aq_internal.%I FOR VALUES IN (%s)', ring || '_' || i, ring, i);
			EXECUTE format('COMMENT ON TABLE aq_internal.%I IS %L', ring || '_' || i, 'One of the eight tables of aq_internal.' || ring);
		END LOOP;
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.sampled_at IS %L', ring, 'end of the minute, or of the hour');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.queue_id IS %L', ring, 'the queue; negative: its buffered messages; 0: the sum of the queues beyond pgaq.history_queues');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.oldest IS %L', ring, 'seconds since which a message had been ready');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.ready IS %L', ring, 'ready messages, of all consumers; null: not counted; of an hour: the most');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.in_flight IS %L', ring, 'the same of messages in flight');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.delayed IS %L', ring, 'the same of delayed messages');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.enqueued IS %L', ring, 'messages enqueued since the row before');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.dequeued IS %L', ring, '(message, consumer) pairs done since');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.failed IS %L', ring, 'of these: expired or failed');
		EXECUTE format('COMMENT ON COLUMN aq_internal.%I.buckets IS %L', ring, 'how long those dequeued since had waited, as in aq.latencies; null: none');
	END LOOP;
END $$;
COMMENT ON TABLE aq_internal.history_minute IS 'A row for each queue and minute in which something happened, of two days and up to 16 hours more';
COMMENT ON TABLE aq_internal.history_hour IS 'The same for hours, of 90 days and up to 30 more';
DO $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'aq_internal'::regnamespace AND relname LIKE 'history\_%' AND relkind IN ('r', 'p') LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO pgaq', name);
		EXECUTE format('GRANT ALL ON TABLE %s TO pgaq', name);
	END LOOP;
END $$;

-- Sessions that read definitions of queues wait until the end. None of them fails: this fails if it does not get the lock in time, as below.
DO $$
DECLARE
	setting CONSTANT text := current_setting('lock_timeout');
BEGIN
	PERFORM set_config('lock_timeout', greatest(1, 1000 * extract(epoch FROM current_setting('deadlock_timeout')::interval / 8))::integer::text, true);
	LOCK TABLE aq_internal.queue, aq_internal.subscriber IN ACCESS EXCLUSIVE MODE;
	PERFORM set_config('lock_timeout', setting, true);
END $$;
ALTER TABLE aq_internal.queue ADD default_priority integer CHECK (default_priority >= 0),
	ADD default_delay interval NOT NULL DEFAULT '0',
	ADD default_expiration interval;

-- Its body was parsed when it was created, so it depends on a function that gets more arguments.
CREATE OR REPLACE PROCEDURE aq.send_notification(notification aq.notification) LANGUAGE sql AS 'SELECT NULL';

ALTER TABLE aq_internal.propagation_batch ADD keys text[];

-- aq.pause
ALTER TABLE aq_internal.queue ADD COLUMN paused timestamptz, ADD COLUMN paused_by text, ADD COLUMN pause_reason text;
ALTER TABLE aq_internal.subscriber ADD COLUMN paused timestamptz, ADD COLUMN paused_by text, ADD COLUMN pause_reason text;
ALTER TABLE aq_internal.queue ADD COLUMN max_depth bigint CHECK (max_depth > 0),
	ADD COLUMN on_full text NOT NULL DEFAULT 'wait' CHECK (on_full IN ('wait', 'error'));

-- max_running
ALTER TABLE aq_internal.queue ADD COLUMN max_running integer CHECK (max_running > 0);
ALTER TABLE aq_internal.subscriber ADD COLUMN max_running integer CHECK (max_running > 0);

-- aq.enqueue_unique
CREATE TABLE aq_internal.unique_key (
	queue_id integer NOT NULL,
	unique_key text COLLATE "C" NOT NULL,
	generation bigint NOT NULL,
	msgid uuid NOT NULL,
	until timestamptz NOT NULL,
	created timestamptz NOT NULL,
	PRIMARY KEY (queue_id, unique_key, generation)
);
COMMENT ON TABLE aq_internal.unique_key IS 'The unique keys of messages, by aq.enqueue_unique; the row with the highest generation counts';
COMMENT ON COLUMN aq_internal.unique_key.queue_id IS 'the queue';
COMMENT ON COLUMN aq_internal.unique_key.unique_key IS 'the unique key';
COMMENT ON COLUMN aq_internal.unique_key.generation IS 'how many messages have had the key, up to this one';
COMMENT ON COLUMN aq_internal.unique_key.msgid IS 'the message that has it';
COMMENT ON COLUMN aq_internal.unique_key.until IS 'until when it is in force; infinity: until the message is done';
COMMENT ON COLUMN aq_internal.unique_key.created IS 'when the message was enqueued';
ALTER TABLE aq_internal.unique_key OWNER TO pgaq;
GRANT ALL ON TABLE aq_internal.unique_key TO pgaq;

-- rate
ALTER TABLE aq_internal.queue ADD COLUMN rate text;
ALTER TABLE aq_internal.subscriber ADD COLUMN rate text;

-- Written by tools/upgrade --write from here to the end: functions and views, their comments, owners and rights.
-- Sessions that read these views wait until the end. None of them fails: this fails if it does not get all locks in time.
DO $$
DECLARE
	until CONSTANT timestamptz := clock_timestamp() + current_setting('deadlock_timeout')::interval / 2;
	setting CONSTANT text := current_setting('lock_timeout');
	command text;
BEGIN
	FOR command IN SELECT format('ALTER VIEW %s OWNER TO %s', oid::regclass, relowner::regrole) FROM pg_class WHERE oid = ANY (ARRAY[
		'aq.dead_letters', 'aq.messages', 'aq.nodes', 'aq.queues', 'aq.schedules', 'aq.subscribers']::regclass[]) LOOP
		PERFORM set_config('lock_timeout', (greatest(1, 1000 * extract(epoch FROM until - clock_timestamp())))::integer::text, true);
		EXECUTE command;
	END LOOP;
	-- the transaction may go on behind this script
	PERFORM set_config('lock_timeout', setting, true);
END $$;
-- These functions get more arguments or another result, so they are other ones. The new ones get the privileges that were granted on the old ones or revoked.
DO $$
DECLARE
	users text;
BEGIN
	SELECT string_agg(DISTINCT pg_describe_object(u.classid, u.objid, 0), ', ') INTO users
	FROM pg_depend d LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid,
		LATERAL (SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END AS classid, coalesce(w.ev_class, d.objid) AS objid) u
	WHERE d.refclassid = 'pg_proc'::regclass AND d.deptype = 'n' AND d.refobjid = ANY (ARRAY[
		'aq.alter_queue(pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.regrole,pg_catalog.text,double precision,interval,double precision)',
		'aq.browse(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid)',
		'aq.browse(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid)',
		'aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean)',
		'aq.dequeue(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.dequeue(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.dequeue_full(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.anyelement,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.bytea,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.jsonb,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue_array(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.jsonb,pg_catalog.text)',
		'aq.metrics()',
		'aq.metrics(pg_catalog.text)',
		'aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[])',
		'aq.propagation_put(pg_catalog.uuid,bigint,bigint,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[])']::regprocedure[])
		AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = u.classid AND e.objid = u.objid AND e.deptype = 'e');
	IF users IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist', MESSAGE = 'functions of the extension "pgaq" that get more arguments or columns are in use',
			DETAIL = 'They are called by: ' || users || '.', HINT = 'Drop what calls them. Then repeat the command, and create it again.';
	END IF;
	PERFORM set_config('pgaq_update.privileges', (SELECT jsonb_agg(jsonb_build_object('function', f.new, 'owner', p.proowner, 'acl', coalesce(p.proacl, acldefault('f', p.proowner))::text,
			'initial', i.initprivs::text))
		FROM unnest(ARRAY['aq.alter_queue(pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.regrole,pg_catalog.text,double precision,interval,double precision)',
		'aq.browse(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid)',
		'aq.browse(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid)',
		'aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean)',
		'aq.dequeue(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.dequeue(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.dequeue_full(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.anyelement,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.bytea,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.jsonb,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text)',
		'aq.enqueue_array(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.jsonb,pg_catalog.text)',
		'aq.metrics()',
		'aq.metrics(pg_catalog.text)',
		'aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[])',
		'aq.propagation_put(pg_catalog.uuid,bigint,bigint,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[])']::regprocedure[],
			ARRAY['aq.alter_queue(pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.regrole,pg_catalog.text,double precision,interval,double precision,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text)',
		'aq.browse(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text)',
		'aq.browse(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text)',
		'aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text)',
		'aq.dequeue(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text)',
		'aq.dequeue(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text)',
		'aq.dequeue_full(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.anyelement,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.bytea,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.jsonb,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text)',
		'aq.enqueue(pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text)',
		'aq.enqueue_array(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.jsonb,pg_catalog.text,pg_catalog.text)',
		'aq.metrics()',
		'aq.metrics(pg_catalog.text)',
		'aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[])',
		'aq.propagation_put(pg_catalog.uuid,bigint,bigint,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[])']) f (old, new)
		JOIN pg_proc p ON p.oid = f.old LEFT JOIN pg_init_privs i ON i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass
		WHERE coalesce(p.proacl, i.initprivs) IS NOT NULL)::text, true);
END $$;
DROP FUNCTION aq_internal.diff_intervals(aq_internal.span,aq_internal.span);
DROP FUNCTION aq_internal.diff_parameters(aq_internal.span,aq_internal.span);
DROP FUNCTION aq_internal.rtpctx(aq_internal.span,pg_catalog.text);
DROP FUNCTION aq_internal.report_sections(aq_internal.span);
DROP FUNCTION aq_internal.report_throughput(aq_internal.span);
DROP FUNCTION aq_internal.report_activity(aq_internal.span);
DROP FUNCTION aq_internal.report_server_waits(aq_internal.span);
DROP FUNCTION aq_internal.ash_activity(aq_internal.sample[],timestamp with time zone,timestamp with time zone);
DROP FUNCTION aq_internal.ash_parameters(aq_internal.sample[]);
DROP FUNCTION aq_internal.report_sql(aq_internal.span);
DROP FUNCTION aq_internal.report_wakeups(aq_internal.span);
DROP FUNCTION aq_internal.report_message_cache(aq_internal.span);
DROP FUNCTION aq_internal.report_shards(aq_internal.span);
DROP FUNCTION aq_internal.report_subscribers(aq_internal.span);
DROP FUNCTION aq_internal.report_queues(aq_internal.span);
DROP FUNCTION aq_internal.report_hot_mutexes(aq_internal.span);
DROP FUNCTION aq_internal.report_objects(aq_internal.span);
DROP FUNCTION aq_internal.report_library_cache(aq_internal.span);
DROP FUNCTION aq_internal.report_dictionary_cache(aq_internal.span);
DROP FUNCTION aq_internal.report_spin_time(aq_internal.span);
DROP FUNCTION aq_internal.report_mutex_activity(aq_internal.span);
DROP FUNCTION aq_internal.report_mutex_sleeps(aq_internal.span);
DROP FUNCTION aq_internal.report_latch_children(aq_internal.span);
DROP FUNCTION aq_internal.report_latch_parent(aq_internal.span);
DROP FUNCTION aq_internal.latch_family(aq_internal.span,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[]);
DROP FUNCTION aq_internal.report_latch_misses(aq_internal.span);
DROP FUNCTION aq_internal.report_latch_sleeps(aq_internal.span);
DROP FUNCTION aq_internal.report_latch_activity(aq_internal.span);
DROP FUNCTION aq_internal.report_parameters(aq_internal.span);
DROP FUNCTION aq_internal.report_statistics(aq_internal.span);
DROP FUNCTION aq_internal.report_histogram(aq_internal.span);
DROP FUNCTION aq_internal.report_background(aq_internal.span);
DROP FUNCTION aq_internal.report_time_model(aq_internal.span);
DROP FUNCTION aq_internal.report_wait_classes(aq_internal.span);
DROP FUNCTION aq_internal.report_top_events(aq_internal.span);
DROP FUNCTION aq_internal.report_summary(aq_internal.span);
DROP FUNCTION aq_internal.section(pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.jsonb,pg_catalog.text[],pg_catalog.jsonb);
DROP FUNCTION aq_internal.columns(pg_catalog.text[]);
DROP FUNCTION aq.metrics(pg_catalog.text);
DROP FUNCTION aq.metrics();
DROP FUNCTION aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[]);
DROP FUNCTION aq.propagation_put(pg_catalog.uuid,bigint,bigint,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[]);
DROP FUNCTION aq.browse(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid);
DROP FUNCTION aq.browse(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid);
DROP FUNCTION aq.dequeue_full(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text);
DROP FUNCTION aq.dequeue(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text);
DROP FUNCTION aq.dequeue(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text);
DROP FUNCTION aq.enqueue_array(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.jsonb,pg_catalog.text);
DROP FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.anyelement,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text);
DROP FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.bytea,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text);
DROP FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.jsonb,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text);
DROP FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text);
DROP FUNCTION aq.alter_queue(pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.regrole,pg_catalog.text,double precision,interval,double precision);
DROP FUNCTION aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean);
CREATE SCHEMA aq_jms;
CREATE OR REPLACE FUNCTION aq.create_queue(queue_name text, payload_type regtype DEFAULT 'jsonb'::regtype, multiple_consumers boolean DEFAULT false, shards integer DEFAULT NULL::integer, max_retries integer DEFAULT 5, retry_delay interval DEFAULT '00:00:01'::interval, retention interval DEFAULT '00:00:00'::interval, exception_queue text DEFAULT NULL::text, comment text DEFAULT NULL::text, queue_table text DEFAULT NULL::text, queue_type text DEFAULT 'normal'::text, if_not_exists boolean DEFAULT false, retry_delay_factor double precision DEFAULT 5, retry_delay_max interval DEFAULT '00:10:00'::interval, retry_jitter double precision DEFAULT 0.1, distributed boolean DEFAULT false, default_priority integer DEFAULT NULL::integer, default_delay interval DEFAULT '00:00:00'::interval, default_expiration interval DEFAULT NULL::interval, max_depth bigint DEFAULT NULL::bigint, on_full text DEFAULT 'wait'::text, max_running integer DEFAULT NULL::integer, rate text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE c
AS 'pgaq', $function$aq_admin_create_queue$function$;
CREATE OR REPLACE FUNCTION aq.alter_queue(queue_name text, max_retries integer DEFAULT NULL::integer, retry_delay interval DEFAULT NULL::interval, retention interval DEFAULT NULL::interval, exception_queue text DEFAULT NULL::text, comment text DEFAULT NULL::text, new_owner regrole DEFAULT NULL::regrole, new_name text DEFAULT NULL::text, retry_delay_factor double precision DEFAULT NULL::double precision, retry_delay_max interval DEFAULT NULL::interval, retry_jitter double precision DEFAULT NULL::double precision, default_priority integer DEFAULT NULL::integer, default_delay interval DEFAULT NULL::interval, default_expiration interval DEFAULT NULL::interval, max_depth bigint DEFAULT NULL::bigint, on_full text DEFAULT NULL::text, max_running integer DEFAULT NULL::integer, rate text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_admin_alter_queue$function$;
CREATE OR REPLACE FUNCTION aq.pause(queue_name text, consumer text DEFAULT NULL::text, reason text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_pause$function$;
CREATE OR REPLACE FUNCTION aq.resume(queue_name text, consumer text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_pause_end$function$;
CREATE OR REPLACE FUNCTION aq.limit_subscriber(queue_name text, consumer text, max_running integer DEFAULT NULL::integer, rate text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_subscriber_limit$function$;
CREATE OR REPLACE FUNCTION aq_internal.dump_rows()
 RETURNS SETOF aq_internal.dump_row
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	name text;
BEGIN
	IF pg_has_role('pg_read_all_data', 'USAGE') THEN
		FOREACH name IN ARRAY ARRAY['registration', 'notified', 'posting', 'schedule', 'propagation', 'propagation_link', 'propagation_batch', 'snapshot_data', 'active_session', 'unique_key'] LOOP
			RETURN QUERY EXECUTE format('SELECT %1$L, row_to_json(t) FROM aq_internal.%1$I t', name);
		END LOOP;
	END IF;
END $function$;
CREATE OR REPLACE FUNCTION aq.enqueue(queue_name text, payload text, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_text$function$;
CREATE OR REPLACE FUNCTION aq.enqueue(queue_name text, jsonb jsonb, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_typed$function$;
CREATE OR REPLACE FUNCTION aq.enqueue(queue_name text, bytea bytea, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_typed$function$;
CREATE OR REPLACE FUNCTION aq.enqueue(queue_name text, payload anyelement, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_typed$function$;
CREATE OR REPLACE FUNCTION aq.enqueue_array(queue_name text, payloads anycompatiblearray, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, options jsonb DEFAULT NULL::jsonb, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS uuid[]
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_array$function$;
CREATE OR REPLACE FUNCTION aq.enqueue_unique(queue_name text, payload text, unique_key text, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, on_conflict text DEFAULT 'ignore'::text, OUT msgid uuid, OUT is_new boolean)
 RETURNS record
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_unique_text$function$;
CREATE OR REPLACE FUNCTION aq.enqueue_unique(queue_name text, payload anyelement, unique_key text, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, recipients text[] DEFAULT NULL::text[], sender text DEFAULT NULL::text, exception_queue text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, relative_msgid uuid DEFAULT NULL::uuid, deviation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, producer text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, key text DEFAULT NULL::text, unique_for interval DEFAULT NULL::interval, on_conflict text DEFAULT 'ignore'::text, OUT msgid uuid, OUT is_new boolean)
 RETURNS record
 LANGUAGE c
AS 'pgaq', $function$aq_enqueue_calls_unique_typed$function$;
CREATE OR REPLACE FUNCTION aq.dequeue(queue_name text, consumer text DEFAULT NULL::text, max_messages integer DEFAULT 1, mode text DEFAULT 'remove'::text, correlation text DEFAULT NULL::text, msgid uuid DEFAULT NULL::uuid, condition text DEFAULT NULL::text, wait interval DEFAULT NULL::interval, navigation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, acknowledge uuid[] DEFAULT NULL::uuid[], receipt bigint DEFAULT NULL::bigint, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS TABLE(payload jsonb, priority integer, attempts integer, correlation text, properties jsonb, enqueue_time timestamp with time zone, msgid uuid, receipt bigint)
 LANGUAGE c
 ROWS 10
AS 'pgaq', $function$aq_dequeue_jsonb$function$;
CREATE OR REPLACE FUNCTION aq.dequeue(queue_name text, as_type anyelement, consumer text DEFAULT NULL::text, max_messages integer DEFAULT 1, mode text DEFAULT 'remove'::text, correlation text DEFAULT NULL::text, msgid uuid DEFAULT NULL::uuid, condition text DEFAULT NULL::text, wait interval DEFAULT NULL::interval, navigation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, acknowledge uuid[] DEFAULT NULL::uuid[], receipt bigint DEFAULT NULL::bigint, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS TABLE(payload anyelement, priority integer, attempts integer, correlation text, properties jsonb, enqueue_time timestamp with time zone, msgid uuid, receipt bigint)
 LANGUAGE c
 ROWS 10
AS 'pgaq', $function$aq_dequeue_typed$function$;
CREATE OR REPLACE FUNCTION aq.dequeue_full(queue_name text, as_type anyelement, consumer text DEFAULT NULL::text, max_messages integer DEFAULT 1, mode text DEFAULT 'remove'::text, correlation text DEFAULT NULL::text, msgid uuid DEFAULT NULL::uuid, condition text DEFAULT NULL::text, wait interval DEFAULT NULL::interval, navigation text DEFAULT NULL::text, delivery_mode text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, acknowledge uuid[] DEFAULT NULL::uuid[], receipt bigint DEFAULT NULL::bigint, visibility text DEFAULT NULL::text, key text DEFAULT NULL::text)
 RETURNS TABLE(payload anyelement, priority integer, attempts integer, correlation text, properties jsonb, enqueue_time timestamp with time zone, msgid uuid, receipt bigint, sender text, consumer_name text, ready_at timestamp with time zone, expires_at timestamp with time zone, exception_queue text, original_msgid uuid, shard integer, session_id bigint, state integer, transaction_group text, message_delivery_mode integer, dead_letter jsonb, key text)
 LANGUAGE c
 ROWS 10
AS 'pgaq', $function$aq_dequeue_typed$function$;
CREATE OR REPLACE FUNCTION aq.browse(queue_name text, consumer text DEFAULT NULL::text, max_messages integer DEFAULT 100, correlation text DEFAULT NULL::text, condition text DEFAULT NULL::text, after uuid DEFAULT NULL::uuid, key text DEFAULT NULL::text)
 RETURNS TABLE(payload jsonb, priority integer, attempts integer, correlation text, properties jsonb, enqueue_time timestamp with time zone, msgid uuid)
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_dequeue_browse_jsonb$function$;
CREATE OR REPLACE FUNCTION aq.browse(queue_name text, as_type anyelement, consumer text DEFAULT NULL::text, max_messages integer DEFAULT 100, correlation text DEFAULT NULL::text, condition text DEFAULT NULL::text, after uuid DEFAULT NULL::uuid, key text DEFAULT NULL::text)
 RETURNS TABLE(payload anyelement, priority integer, attempts integer, correlation text, properties jsonb, enqueue_time timestamp with time zone, msgid uuid)
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_dequeue_browse_typed$function$;
CREATE OR REPLACE FUNCTION aq.create_propagation(queue_name text, destination text, latency interval DEFAULT NULL::interval, start_time timestamp with time zone DEFAULT NULL::timestamp with time zone, duration interval DEFAULT NULL::interval, every interval DEFAULT NULL::interval, rule text DEFAULT NULL::text, subscribe boolean DEFAULT true)
 RETURNS bigint
 LANGUAGE c
AS 'pgaq', $function$aq_propagation_calls_add$function$;
CREATE OR REPLACE FUNCTION aq.drop_propagation(queue_name text, destination text, unsubscribe boolean DEFAULT true)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_propagation_calls_remove$function$;
CREATE OR REPLACE FUNCTION aq.propagation_put(source uuid, epoch bigint, number bigint, batch uuid, queue_name text, recipient text, payload_type text, payloads text[], priorities integer[], lifetimes bigint[], correlations text[], properties jsonb[], senders text[], exception_queues text[], originals uuid[], keys text[] DEFAULT NULL::text[])
 RETURNS bigint
 LANGUAGE c
AS 'pgaq', $function$aq_propagation_arrival_put$function$;
CREATE OR REPLACE PROCEDURE aq_jms.receive(IN queue_names text[], IN consumers text[], IN conditions text[], IN max_messages integer[], IN timeout interval DEFAULT NULL::interval, IN lease interval DEFAULT NULL::interval, IN ack_queues text[] DEFAULT NULL::text[], IN ack_consumers text[] DEFAULT NULL::text[], IN ack_msgids uuid[] DEFAULT NULL::uuid[], IN ack_receipts bigint[] DEFAULT NULL::bigint[], IN max_bytes integer DEFAULT NULL::integer, INOUT messages bytea DEFAULT NULL::bytea)
 LANGUAGE c
AS 'pgaq', $procedure$aq_jms_receive$procedure$;
CREATE OR REPLACE FUNCTION aq_jms.browse(queue_name text, consumer text DEFAULT NULL::text, condition text DEFAULT NULL::text, after uuid DEFAULT NULL::uuid, max_messages integer DEFAULT 100, max_bytes integer DEFAULT NULL::integer)
 RETURNS bytea
 LANGUAGE c
AS 'pgaq', $function$aq_jms_receive_browse$function$;
CREATE OR REPLACE FUNCTION aq_jms.send(messages bytea, acknowledge bytea DEFAULT NULL::bytea, affinity text DEFAULT NULL::text, skip_gone boolean DEFAULT NULL::boolean)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_jms_send$function$;
CREATE OR REPLACE FUNCTION aq_jms.enqueue(queue_name text, payloads anycompatiblearray, priority integer DEFAULT NULL::integer, delay interval DEFAULT NULL::interval, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, producer text DEFAULT NULL::text, affinity text DEFAULT NULL::text, options jsonb DEFAULT NULL::jsonb)
 RETURNS uuid[]
 LANGUAGE c
AS 'pgaq', $function$aq_jms_send_enqueue$function$;
CREATE OR REPLACE FUNCTION aq_jms.commit(messages bytea, acknowledge bytea, queue_name text, consumer text, condition text, max_messages integer, lease interval, max_bytes integer DEFAULT NULL::integer, affinity text DEFAULT NULL::text, skip_gone boolean DEFAULT NULL::boolean)
 RETURNS bytea
 LANGUAGE c
AS 'pgaq', $function$aq_jms_receive_commit$function$;
CREATE OR REPLACE FUNCTION aq_jms.acknowledge(queue_names text[], consumers text[], msgids uuid[], receipts bigint[])
 RETURNS integer[]
 LANGUAGE c
AS 'pgaq', $function$aq_jms_lease_acknowledge$function$;
CREATE OR REPLACE FUNCTION aq_jms.extend(queue_names text[], consumers text[], msgids uuid[], receipts bigint[], lease interval)
 RETURNS integer[]
 LANGUAGE c
AS 'pgaq', $function$aq_jms_lease_extend$function$;
CREATE OR REPLACE FUNCTION aq_jms.release(queue_names text[], consumers text[], msgids uuid[], receipts bigint[], delay interval DEFAULT NULL::interval, error text DEFAULT NULL::text, count boolean DEFAULT true)
 RETURNS integer[]
 LANGUAGE c
AS 'pgaq', $function$aq_jms_lease_release$function$;
CREATE OR REPLACE FUNCTION aq_jms.write_chunk(queue_name text, msgid uuid, number integer, data bytea)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_jms_body_write$function$;
CREATE OR REPLACE FUNCTION aq_jms.read_chunk(queue_name text, consumer text, msgid uuid, number integer)
 RETURNS bytea
 LANGUAGE c
AS 'pgaq', $function$aq_jms_body_read$function$;
CREATE OR REPLACE FUNCTION aq_jms.claim(queue_name text, first bigint, count integer)
 RETURNS text[]
 LANGUAGE c
AS 'pgaq', $function$aq_jms_gone_claim$function$;
CREATE OR REPLACE FUNCTION aq_jms.unclaim(name text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_jms_gone_unclaim$function$;
CREATE OR REPLACE FUNCTION aq_jms.construct(type text DEFAULT 'text'::text)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW(type, '{}'::jsonb, NULL::jsonb, NULL::jsonb, CASE type WHEN 'map'::text THEN '{}'::text WHEN 'stream'::text THEN '[]'::text ELSE NULL::text END, NULL::bytea)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.text(body text)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('text'::text, '{}'::jsonb, NULL::jsonb, NULL::jsonb, body, NULL::bytea)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.bytes(body bytea)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('bytes'::text, '{}'::jsonb, NULL::jsonb, NULL::jsonb, NULL::text, body)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.set_text(message aq.jms_message, body text)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('text'::text, (message).headers, (message).properties, (message).property_types, body, NULL::bytea)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.set_bytes(message aq.jms_message, body bytea)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('bytes'::text, (message).headers, (message).properties, (message).property_types, NULL::text, body)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.set_header(message aq.jms_message, name text, value text)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW((message).type, CASE WHEN (value IS NULL) THEN (COALESCE((message).headers, '{}'::jsonb) - name) ELSE (COALESCE((message).headers, '{}'::jsonb) || jsonb_build_object(name, value)) END, (message).properties, (message).property_types, (message).text, (message).bytes)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.get_header(message aq.jms_message, name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN ((message).headers ->> name);
CREATE OR REPLACE FUNCTION aq_jms.set_property(message aq.jms_message, name text, value anyelement)
 RETURNS aq.jms_message
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT ROW((message).type, (message).headers,
		coalesce((message).properties, '{}') || jsonb_build_object(name, CASE WHEN v.special THEN jsonb_build_object(v.java, v.text)
			WHEN v.java IS NOT NULL OR v.type IN ('boolean', 'integer', 'numeric') THEN to_jsonb(value) ELSE to_jsonb(v.text) END),
		nullif(coalesce((message).property_types, '{}') - name || CASE WHEN v.java IS NULL OR v.special THEN '{}' ELSE jsonb_build_object(name, v.java) END, '{}'),
		(message).text, (message).bytes)::aq.jms_message
	FROM (SELECT t.type, value::text, t.type IN ('real', 'double precision') AND value::text ~* '[a-z]{3}', CASE t.type WHEN 'smallint' THEN 'short'
		WHEN 'bigint' THEN 'long' WHEN 'real' THEN 'float' WHEN 'double precision' THEN 'double' END FROM (SELECT pg_typeof(value)::text) t (type)) v (type, text, special, java)
$function$;
CREATE OR REPLACE FUNCTION aq_jms.get_property(message aq.jms_message, name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN COALESCE(CASE WHEN (jsonb_typeof(((message).properties -> name)) = 'object'::text) THEN COALESCE((((message).properties -> name) ->> 'double'::text), (((message).properties -> name) ->> 'float'::text)) ELSE NULL::text END, ((message).properties ->> name));
CREATE OR REPLACE FUNCTION aq_jms.clear_properties(message aq.jms_message)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW((message).type, (message).headers, NULL::jsonb, NULL::jsonb, (message).text, (message).bytes)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.item(value anyelement)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT CASE WHEN value IS NULL THEN 'null' WHEN v.type = 'bytea' THEN jsonb_build_object('bytes', translate(encode(value::text::bytea, 'base64'), E'\n', ''))
		WHEN v.type IN ('real', 'double precision') AND v.text ~* '[a-z]{3}' THEN jsonb_build_object(v.java, v.text)
		WHEN v.java = 'string' THEN jsonb_build_object(v.java, v.text) ELSE jsonb_build_object(v.java, to_jsonb(value)) END
	FROM (SELECT t.type, value::text, CASE t.type WHEN 'boolean' THEN 'boolean' WHEN 'smallint' THEN 'short' WHEN 'integer' THEN 'int' WHEN 'bigint' THEN 'long'
		WHEN 'real' THEN 'float' WHEN 'double precision' THEN 'double' WHEN 'numeric' THEN 'double' ELSE 'string' END
		FROM (SELECT pg_typeof(value)::text) t (type)) v (type, text, java)
$function$;
CREATE OR REPLACE FUNCTION aq_jms.set_item(message aq.jms_message, name text, value jsonb)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('map'::text, (message).headers, (message).properties, (message).property_types, (((COALESCE(NULLIF((message).text, ''::text), '{}'::text))::jsonb || jsonb_build_object(name, value)))::text, NULL::bytea)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.add_item(message aq.jms_message, value jsonb)
 RETURNS aq.jms_message
 LANGUAGE sql
 IMMUTABLE
RETURN ROW('stream'::text, (message).headers, (message).properties, (message).property_types, (((COALESCE(NULLIF((message).text, ''::text), '[]'::text))::jsonb || jsonb_build_array(value)))::text, NULL::bytea)::aq.jms_message;
CREATE OR REPLACE FUNCTION aq_jms.items(message aq.jms_message, OUT name text, OUT type text, OUT value text)
 RETURNS SETOF record
 LANGUAGE sql
 IMMUTABLE ROWS 10
BEGIN ATOMIC
 SELECT i.name,
     t.type,
     t.value
    FROM (( SELECT jsonb_each.key,
             jsonb_each.value,
             0 AS "?column?"
            FROM jsonb_each(
                 CASE
                     WHEN ((items.message).type = 'map'::text) THEN ((items.message).text)::jsonb
                     ELSE NULL::jsonb
                 END) jsonb_each(key, value)
         UNION ALL
          SELECT NULL::text,
             e.value,
             e.number
            FROM jsonb_array_elements(
                 CASE
                     WHEN ((items.message).type = 'stream'::text) THEN ((items.message).text)::jsonb
                     ELSE NULL::jsonb
                 END) WITH ORDINALITY e(value, number)) i(name, item, number)
      LEFT JOIN LATERAL jsonb_each_text(
         CASE
             WHEN (jsonb_typeof(i.item) = 'object'::text) THEN i.item
             ELSE NULL::jsonb
         END) t(type, value) ON (true))
   ORDER BY i.number, i.name;
END;
CREATE OR REPLACE FUNCTION aq_jms.number(properties jsonb, types jsonb, name text)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE
AS 'pgaq', $function$aq_jms_number_of_property$function$;
CREATE OR REPLACE FUNCTION aq_jms.number(value integer)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_of_integer$function$;
CREATE OR REPLACE FUNCTION aq_jms.number(value bigint)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_of_bigint$function$;
CREATE OR REPLACE FUNCTION aq_jms.number(value real)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_of_real$function$;
CREATE OR REPLACE FUNCTION aq_jms.number(value double precision)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_of_double$function$;
CREATE OR REPLACE FUNCTION aq_jms.number(value timestamp with time zone)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_of_time$function$;
CREATE OR REPLACE FUNCTION aq_jms.calculate(left_number bytea, operator text, right_number bytea)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_calculate$function$;
CREATE OR REPLACE FUNCTION aq_jms.negate(number bytea)
 RETURNS bytea
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_negate$function$;
CREATE OR REPLACE FUNCTION aq_jms.compare(left_number bytea, operator text, right_number bytea)
 RETURNS boolean
 LANGUAGE c
 IMMUTABLE PARALLEL SAFE STRICT
AS 'pgaq', $function$aq_jms_number_compare$function$;
CREATE OR REPLACE FUNCTION aq.start_schedule(schedule_name text)
 RETURNS timestamp with time zone
 LANGUAGE c
AS 'pgaq', $function$aq_schedule_calls_resume$function$;
CREATE OR REPLACE FUNCTION aq.stop_schedule(schedule_name text)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_schedule_calls_pause$function$;
CREATE OR REPLACE FUNCTION aq.add_node(server name)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_node_calls_add$function$;
CREATE OR REPLACE FUNCTION aq.remove_node(server name, force boolean DEFAULT false)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_node_calls_remove$function$;
CREATE OR REPLACE FUNCTION aq.reset_node(keep boolean DEFAULT false)
 RETURNS uuid
 LANGUAGE c
AS 'pgaq', $function$aq_node_calls_reset$function$;
CREATE OR REPLACE FUNCTION aq.node_deliver(caller uuid, token bigint, epoch bigint, queue_name text, shard integer, consumer text, payload_type text, payloads text[], priorities integer[], lifetimes bigint[], correlations text[], properties jsonb[], senders text[], exception_queues text[], originals uuid[], keys text[] DEFAULT NULL::text[])
 RETURNS boolean
 LANGUAGE c
AS 'pgaq', $function$aq_node_arrival_deliver$function$;
CREATE OR REPLACE FUNCTION aq.reclaim_unit(queue_name text, shard integer, consumer text DEFAULT NULL::text, force boolean DEFAULT false)
 RETURNS void
 LANGUAGE c
AS 'pgaq', $function$aq_node_unit_break$function$;
CREATE OR REPLACE FUNCTION aq.log_action(action text, object text, number bigint DEFAULT NULL::bigint, detail text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
BEGIN ATOMIC
 DELETE FROM aq_internal.action
   WHERE (action.ctid IN ( SELECT a.ctid
            FROM aq_internal.action a
           WHERE ((a.done_at < (clock_timestamp() - '90 days'::interval)) OR ((a.role = SESSION_USER) AND (a.done_at <= ( SELECT b.done_at
                    FROM aq_internal.action b
                   WHERE (b.role = SESSION_USER)
                   ORDER BY b.done_at DESC
                  OFFSET 9999
                  LIMIT 1))))
          FOR UPDATE OF a SKIP LOCKED));
 INSERT INTO aq_internal.action (role, action, object, number, detail)
   VALUES (SESSION_USER, "left"(log_action.action, 100), "left"(log_action.object, 500), log_action.number, "left"(log_action.detail, 2000));
END;
CREATE OR REPLACE FUNCTION aq.version()
 RETURNS text
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT format('pgaq %s (catalog %s) on PostgreSQL %s'::text, COALESCE(current_setting('pgaq.library_version'::text, true), pg_extension.extversion), pg_extension.extversion, current_setting('server_version'::text)) AS format
    FROM pg_extension
   WHERE (pg_extension.extname = 'pgaq'::name);
END;
CREATE OR REPLACE FUNCTION aq.help(topic text DEFAULT NULL::text, OUT subject text, OUT call text, OUT description text)
 RETURNS SETOF record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	wanted CONSTANT text := regexp_replace(lower(topic), '^aq\.|\(.*', '', 'g');
BEGIN
	FOR subject, call, description IN
		WITH groups (number, name, calls, example) AS (VALUES
			(1, 'queues', '{create_queue,alter_queue,drop_queue,start_queue,stop_queue,purge_queue}'::text[], 'SELECT aq.create_queue(''orders'');'),
			(2, 'enqueuing', '{enqueue,enqueue_array,cancel}', 'SELECT aq.enqueue(''orders'', ''{"order": 1}'');'),
			(3, 'dequeuing', '{dequeue,receive,wait,listen,browse}', 'SELECT payload FROM aq.dequeue(''orders'', wait => ''5 seconds'');'),
			(4, 'leases', '{acknowledge,extend,release,reject,end_leases}', 'SELECT msgid, receipt, payload FROM aq.dequeue(''orders'', lease => ''5 minutes'');'),
			(5, 'failures', '{redrive,message}', 'SELECT aq.redrive(''orders'');'),
			(6, 'topics', '{subscribe,alter_subscriber,unsubscribe}', 'SELECT aq.subscribe(''events'', ''billing'', rule => ''priority < 5'');'),
			(7, 'schedules', '{schedule,alter_schedule,start_schedule,stop_schedule,run_schedule,unschedule,schedule_times}',
				'SELECT aq.schedule(''morning'', ''orders'', ''{}'', cron => ''30 7 * * *'');'),
			(8, 'privileges', '{grant_queue,revoke_queue,grant_consumer,revoke_consumer}', 'SELECT aq.grant_queue(''orders'', ''shop'', ''enqueue'');'),
			(9, 'notification', '{register,unregister,notifications,post}', 'SELECT aq.register(''orders'', ''plsql://public.on_order'');'),
			(10, 'propagation', '{create_propagation,alter_propagation,drop_propagation}', 'SELECT aq.create_propagation(''orders'', ''orders@warehouse'');'),
			(11, 'servers', '{check_link,add_node,remove_node,reset_node,reclaim_unit}', 'SELECT * FROM aq.check_link(''warehouse'');'),
			(12, 'monitoring', '{metrics,keys,check,version}', 'SELECT * FROM aq.metrics(''orders'');')),
		functions AS (SELECT p.oid, n.nspname || '.' || p.proname AS name, p.proname, p.proargnames[1:p.pronargs] AS arguments,
				CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE '' END AS prefix, obj_description(p.oid, 'pg_proc') AS comment
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('aq', 'aq_jms'))
		SELECT g.name, g.example, array_to_string(g.calls, ', ') FROM (SELECT * FROM groups ORDER BY number) g WHERE wanted IS NULL
		UNION ALL
		SELECT * FROM (SELECT g.name, format('%s%s(%s)', f.prefix, f.name, array_to_string(f.arguments, ', ')),
				regexp_replace(split_part(regexp_replace(f.comment, '\n +', ' ', 'g'), E'\n', 1), '(\w)\. .*', '\1.')
			FROM groups g JOIN functions f ON f.name = ANY (ARRAY(SELECT 'aq.' || c FROM unnest(g.calls) c))
			WHERE g.name = wanted ORDER BY array_position(g.calls, f.proname::text), f.oid) f
		UNION ALL
		SELECT * FROM (SELECT f.name, format('%s%s(%s)', f.prefix, f.name, pg_get_function_arguments(f.oid)) || coalesce(' -> ' || pg_get_function_result(f.oid), ''), f.comment
			FROM functions f WHERE wanted IN (f.name, f.proname) ORDER BY f.oid) f LOOP
		RETURN NEXT;
	END LOOP;
	IF NOT FOUND THEN
		RAISE undefined_object USING MESSAGE = format('there is neither a group nor a function "%s"', topic), HINT = 'SELECT * FROM aq.help() lists the groups.';
	END IF;
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.message_rows(queue_id integer, wanted uuid, wanted_state text, table_no integer, first_block bigint, end_block bigint, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer, OUT correlation text, OUT enqueue_time timestamp with time zone, OUT ready_at timestamp with time zone, OUT expires_at timestamp with time zone, OUT dequeue_time timestamp with time zone, OUT attempts integer, OUT sender text, OUT exception_queue text, OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text, OUT leased_since timestamp with time zone, OUT leased_until timestamp with time zone, OUT leased_by text, OUT last_error text, OUT dead_letter jsonb, OUT key text)
 RETURNS SETOF record
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_message_view_rows$function$;
CREATE OR REPLACE FUNCTION aq_internal.classic_message_rows(queue_id integer, wanted uuid, wanted_state text, first_block bigint, end_block bigint, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer, OUT correlation text, OUT enqueue_time timestamp with time zone, OUT ready_at timestamp with time zone, OUT expires_at timestamp with time zone, OUT dequeue_time timestamp with time zone, OUT attempts integer, OUT sender text, OUT exception_queue text, OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text, OUT leased_since timestamp with time zone, OUT leased_until timestamp with time zone, OUT leased_by text, OUT last_error text, OUT dead_letter jsonb, OUT key text)
 RETURNS SETOF record
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_classic_views_messages$function$;
CREATE OR REPLACE FUNCTION aq_internal.buffered_message_rows(queue_id integer, wanted uuid, wanted_state text, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer, OUT correlation text, OUT enqueue_time timestamp with time zone, OUT ready_at timestamp with time zone, OUT expires_at timestamp with time zone, OUT dequeue_time timestamp with time zone, OUT attempts integer, OUT sender text, OUT exception_queue text, OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text, OUT in_memory boolean, OUT key text)
 RETURNS SETOF record
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_classic_views_buffered_messages$function$;
CREATE OR REPLACE FUNCTION aq_internal.running(queue_id integer, "position" integer)
 RETURNS integer
 LANGUAGE c
 STABLE STRICT
AS 'pgaq', $function$aq_shard_views_running$function$;
CREATE OR REPLACE VIEW aq.queues WITH (security_barrier=true) AS
 SELECT q.queue_name,
    q.queue_id,
    ( SELECT pg_get_userbyid(c.relowner) AS pg_get_userbyid
           FROM (pg_class c
             JOIN pg_namespace n ON ((n.oid = c.relnamespace)))
          WHERE ((n.nspname = 'aq_data'::name) AND (c.relname = ('q'::text || q.rights_id)))) AS owner,
    q.payload_type,
    q.multiple_consumers,
    q.shards,
    q.max_retries,
    q.retry_delay,
    q.retry_delay_factor,
    q.retry_delay_max,
    q.retry_jitter,
    q.retention,
    ( SELECT e.queue_name
           FROM aq_internal.queue e
          WHERE (e.queue_id = q.exception_queue_id)) AS exception_queue,
    q.enqueue_enabled,
    q.dequeue_enabled,
    aq_internal.may(q.rights_id, 'INSERT'::text) AS may_enqueue,
    aq_internal.may(q.rights_id, 'DELETE'::text) AS may_dequeue,
    aq_internal.may(q.rights_id, 'UPDATE'::text) AS may_subscribe,
    q.created,
    q.comment,
    ( SELECT ((t.schema_name || '.'::text) || t.table_name)
           FROM aq_internal.queue_table t
          WHERE (t.queue_table_id = q.queue_table_id)) AS queue_table,
    q.queue_type,
    (q.store = 'b'::"char") AS converting,
    q.converted,
    (EXISTS ( SELECT
           FROM aq_internal.temporary t
          WHERE ((t.queue_id = q.queue_id) AND (t.consumer_number = 0)))) AS temporary,
    q.distributed,
    q.default_priority,
    q.default_delay,
    q.default_expiration,
    q.paused,
    q.paused_by,
    q.pause_reason,
    q.max_depth,
    q.on_full,
    q.max_running,
    q.rate
   FROM aq_internal.queue q
  WHERE (pg_has_role('pg_monitor'::name, 'USAGE'::text) OR aq_internal.may(q.rights_id, 'ANY'::text));
CREATE OR REPLACE FUNCTION aq_internal.latencies(queue_id integer, OUT delivery_mode text, OUT messages bigint, OUT total_seconds double precision, OUT buckets bigint[], OUT since timestamp with time zone)
 RETURNS SETOF record
 LANGUAGE c
 STRICT ROWS 1
AS 'pgaq', $function$aq_metrics_latencies$function$;
CREATE OR REPLACE FUNCTION aq.latency_bound(bucket integer)
 RETURNS double precision
 LANGUAGE c
 IMMUTABLE STRICT
AS 'pgaq', $function$aq_metrics_latency_bound$function$;
CREATE OR REPLACE FUNCTION aq.latency_percentile(buckets bigint[], fraction double precision)
 RETURNS double precision
 LANGUAGE c
 IMMUTABLE STRICT
AS 'pgaq', $function$aq_metrics_latency_percentile$function$;
CREATE OR REPLACE VIEW aq.latencies WITH (security_barrier=true) AS
 SELECT q.queue_name,
    l.delivery_mode,
    l.messages,
    l.total_seconds,
    aq.latency_percentile(l.buckets, (0.5)::double precision) AS p50_seconds,
    aq.latency_percentile(l.buckets, (0.99)::double precision) AS p99_seconds,
    l.buckets,
    l.since
   FROM (aq_internal.queue q
     CROSS JOIN LATERAL aq_internal.latencies(q.queue_id) l(delivery_mode, messages, total_seconds, buckets, since));
CREATE OR REPLACE VIEW aq.subscribers WITH (security_barrier=true) AS
 SELECT q.queue_name,
    s.consumer,
    COALESCE(s.kind, 'single'::text) AS kind,
    s.rule,
    c.enqueued,
    c.dequeued,
    (c.enqueued - c.dequeued) AS lag,
    (c.ready +
        CASE
            WHEN (q.store = 's'::"char") THEN (0)::bigint
            ELSE aq_internal.classic_ready(q.queue_id, c."position")
        END) AS ready,
    c.waiting,
    s.created,
    s.comment,
        CASE s.delivery_mode
            WHEN 1 THEN 'persistent'::text
            WHEN 2 THEN 'buffered'::text
            WHEN 3 THEN 'persistent_or_buffered'::text
            ELSE NULL::text
        END AS delivery_mode,
    c.consumed,
    c.latency AS latency_us,
    ( SELECT r.rolname
           FROM pg_roles r
          WHERE (r.oid = (s.rule_role)::oid)) AS rule_role,
    c.rule_failures,
    c.last_rule_failure,
    ( SELECT string_agg(chr(((((c.rule_error >> (6 * i.i)) & (63)::bigint))::integer + ascii('0'::text))), ''::text ORDER BY i.i) AS string_agg
           FROM generate_series(0, 4) i(i)
          WHERE (c.rule_error > 0)) AS rule_error,
    ( SELECT r.rolname
           FROM pg_roles r
          WHERE (r.oid = (s.owner)::oid)) AS owner,
    (EXISTS ( SELECT
           FROM aq_internal.temporary t
          WHERE ((t.queue_id = q.queue_id) AND (t.consumer_number = s.number)))) AS temporary,
    s.paused,
    s.paused_by,
    s.pause_reason,
    COALESCE(s.max_running, q.max_running) AS max_running,
    aq_internal.running(q.queue_id, c."position") AS running,
    COALESCE(s.rate, q.rate) AS rate
   FROM ((aq_internal.queue q
     CROSS JOIN LATERAL aq_internal.consumers(q.queue_id) c(queue_id, "position", enqueued, dequeued, ready, waiting, last_enqueue, last_dequeue, consumed, latency, last_latency, dequeue_transactions, executions, dequeue_elapsed, dequeue_cpu, browsed, failed, rule_failures, last_rule_failure, rule_error))
     LEFT JOIN aq_internal.subscriber s ON (((s.queue_id = q.queue_id) AND (s."position" = c."position"))))
  WHERE ((NOT q.multiple_consumers) OR (s.consumer IS NOT NULL));
CREATE OR REPLACE VIEW aq.messages WITH (security_barrier=true) AS
 SELECT q.queue_name,
    m.consumer,
    m.msgid,
    m.state,
    m.priority,
    m.correlation,
    m.payload,
    m.enqueue_time,
    m.ready_at,
    m.expires_at,
    m.dequeue_time,
    m.attempts,
    m.sender,
    m.exception_queue,
    m.original_msgid,
    m.properties,
    m.shard,
    m.session_id,
        CASE
            WHEN (m.in_memory IS NULL) THEN 'persistent'::text
            ELSE 'buffered'::text
        END AS delivery_mode,
    m.in_memory,
    m.leased_since,
    m.leased_until,
    m.leased_by,
    m.last_error,
    m.dead_letter,
    m.key
   FROM aq_internal.queue q,
    LATERAL ( SELECT s.msgid,
            s.consumer,
            s.state,
            s.priority,
            s.correlation,
            s.enqueue_time,
            s.ready_at,
            s.expires_at,
            s.dequeue_time,
            s.attempts,
            s.sender,
            s.exception_queue,
            s.original_msgid,
            s.properties,
            s.shard,
            s.session_id,
            s.payload,
            s.leased_since,
            s.leased_until,
            s.leased_by,
            s.last_error,
            s.dead_letter,
            s.key,
            NULL::boolean AS in_memory
           FROM aq_internal.message_parts(q.queue_id) p(table_no, first_block, end_block),
            LATERAL aq_internal.message_rows(q.queue_id, NULL::uuid, NULL::text, p.table_no, p.first_block, p.end_block) s(msgid, consumer, state, priority, correlation, enqueue_time, ready_at, expires_at, dequeue_time, attempts, sender, exception_queue, original_msgid, properties, shard, session_id, payload, leased_since, leased_until, leased_by, last_error, dead_letter, key)
          WHERE (q.store <> 'c'::"char")
        UNION ALL
         SELECT c.msgid,
            c.consumer,
            c.state,
            c.priority,
            c.correlation,
            c.enqueue_time,
            c.ready_at,
            c.expires_at,
            c.dequeue_time,
            c.attempts,
            c.sender,
            c.exception_queue,
            c.original_msgid,
            c.properties,
            c.shard,
            c.session_id,
            c.payload,
            c.leased_since,
            c.leased_until,
            c.leased_by,
            c.last_error,
            c.dead_letter,
            c.key,
            NULL::boolean
           FROM aq_internal.classic_message_parts(q.queue_id) p(table_no, first_block, end_block),
            LATERAL aq_internal.classic_message_rows(q.queue_id, NULL::uuid, NULL::text, p.first_block, p.end_block) c(msgid, consumer, state, priority, correlation, enqueue_time, ready_at, expires_at, dequeue_time, attempts, sender, exception_queue, original_msgid, properties, shard, session_id, payload, leased_since, leased_until, leased_by, last_error, dead_letter, key)
          WHERE (q.store <> 's'::"char")
        UNION ALL
         SELECT b.msgid,
            b.consumer,
            b.state,
            b.priority,
            b.correlation,
            b.enqueue_time,
            b.ready_at,
            b.expires_at,
            b.dequeue_time,
            b.attempts,
            b.sender,
            b.exception_queue,
            b.original_msgid,
            b.properties,
            b.shard,
            b.session_id,
            b.payload,
            NULL::timestamp with time zone,
            NULL::timestamp with time zone,
            NULL::text,
            NULL::text,
            NULL::jsonb,
            b.key,
            b.in_memory
           FROM aq_internal.buffered_message_rows(q.queue_id, NULL::uuid, NULL::text) b(msgid, consumer, state, priority, correlation, enqueue_time, ready_at, expires_at, dequeue_time, attempts, sender, exception_queue, original_msgid, properties, shard, session_id, payload, in_memory, key)) m;
CREATE OR REPLACE VIEW aq.dead_letters WITH (security_barrier=true) AS
 SELECT m.queue_name AS exception_queue,
    m.msgid,
    COALESCE(( SELECT q.queue_name
           FROM aq_internal.queue q
          WHERE (q.queue_id = ((m.dead_letter ->> 'queue_id'::text))::integer)), (m.dead_letter ->> 'queue'::text)) AS queue_name,
    (m.dead_letter ->> 'consumer'::text) AS consumer,
    (m.dead_letter ->> 'reason'::text) AS reason,
    (m.dead_letter ->> 'error'::text) AS last_error,
    ((m.dead_letter ->> 'attempts'::text))::integer AS attempts,
    ((m.dead_letter ->> 'first_attempt'::text))::timestamp with time zone AS first_attempt,
    ((m.dead_letter ->> 'last_attempt'::text))::timestamp with time zone AS last_attempt,
    ((m.dead_letter ->> 'died'::text))::timestamp with time zone AS died,
    ((m.dead_letter ->> 'enqueue_time'::text))::timestamp with time zone AS enqueue_time,
    ((m.dead_letter ->> 'expires_at'::text))::timestamp with time zone AS expires_at,
    m.original_msgid,
    m.state,
    m.priority,
    m.correlation,
    m.payload,
    m.properties,
    m.sender,
    m.dead_letter,
    m.key
   FROM aq.messages m
  WHERE ((m.dead_letter IS NOT NULL) AND ((m.state = ANY (ARRAY['READY'::text, 'WAITING'::text, 'LOCKED'::text, 'LEASED'::text])) OR ((m.state = 'EXPIRED'::text) AND (m.queue_name IN ( SELECT q.queue_name
           FROM aq_internal.queue q
          WHERE ((q.queue_type = 'exception'::text) AND (q.store <> 's'::"char")))))));
CREATE OR REPLACE FUNCTION aq.message(queue_name text, msgid uuid)
 RETURNS SETOF aq.messages
 LANGUAGE sql
 ROWS 1
BEGIN ATOMIC
 SELECT m.queue_name,
     m.consumer,
     m.msgid,
     m.state,
     m.priority,
     m.correlation,
     m.payload,
     m.enqueue_time,
     m.ready_at,
     m.expires_at,
     m.dequeue_time,
     m.attempts,
     m.sender,
     m.exception_queue,
     m.original_msgid,
     m.properties,
     m.shard,
     m.session_id,
     m.delivery_mode,
     m.in_memory,
     m.leased_since,
     m.leased_until,
     m.leased_by,
     m.last_error,
     m.dead_letter,
     m.key
    FROM aq.messages m
   WHERE ((m.queue_name = message.queue_name) AND (m.msgid = message.msgid));
END;
CREATE OR REPLACE FUNCTION aq.cancel(queue_name text, msgid uuid)
 RETURNS text
 LANGUAGE sql
BEGIN ATOMIC
 SELECT aq_internal.cancel(queue_name, msgid, ( SELECT count(*) AS count
            FROM aq.message(cancel.queue_name, cancel.msgid) m(queue_name, consumer, msgid, state, priority, correlation, payload, enqueue_time, ready_at, expires_at, dequeue_time, attempts, sender, exception_queue, original_msgid, properties, shard, session_id, delivery_mode, in_memory, leased_since, leased_until, leased_by, last_error, dead_letter, key)
           WHERE (m.state <> ALL (ARRAY['PROCESSED'::text, 'PURGED'::text, 'EXPIRED'::text])))) AS cancel;
END;
CREATE OR REPLACE FUNCTION aq.keys(queue_name text, OUT consumer text, OUT key text, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint, OUT oldest timestamp with time zone)
 RETURNS SETOF record
 LANGUAGE sql
 ROWS 100
BEGIN ATOMIC
 SELECT m.consumer,
     m.key,
     count(*) FILTER (WHERE (m.state = 'READY'::text)) AS count,
     count(*) FILTER (WHERE (m.state = 'WAITING'::text)) AS count,
     count(*) FILTER (WHERE (m.state = ANY (ARRAY['LOCKED'::text, 'LEASED'::text]))) AS count,
     min(m.enqueue_time) AS min
    FROM aq.messages m
   WHERE ((m.queue_name = keys.queue_name) AND (m.key IS NOT NULL) AND (m.state = ANY (ARRAY['READY'::text, 'WAITING'::text, 'LOCKED'::text, 'LEASED'::text])))
   GROUP BY m.consumer, m.key
   ORDER BY (min(m.enqueue_time)), m.key, m.consumer;
END;
CREATE OR REPLACE VIEW aq.schedules WITH (security_barrier=true) AS
 SELECT s.schedule_name,
    s.queue_name,
        CASE
            WHEN s.paused THEN 'stopped'::text
            WHEN s.disabled THEN 'disabled'::text
            WHEN (s.next_run IS NULL) THEN 'ended'::text
            WHEN (s.stuck IS NOT NULL) THEN 'stuck'::text
            WHEN (s.failures > 0) THEN 'failing'::text
            ELSE 'active'::text
        END AS state,
    s.cron,
    s.every,
    s.time_zone,
    s.next_run,
    s.retry_at,
    s.last_run,
    s.runs,
    s.failures,
    COALESCE(('57014: '::text || s.stuck), s.last_error) AS last_error,
    s.error_time,
    s.catch_up,
    s.start_at,
    s.until,
    pg_get_userbyid((s.owner)::oid) AS owner,
        CASE
            WHEN s.shown THEN s.payload
            ELSE NULL::text
        END AS payload,
        CASE
            WHEN s.shown THEN s.options
            ELSE NULL::jsonb
        END AS options,
    s.created,
    s.comment
   FROM ( SELECT s_1.schedule_id,
            s_1.schedule_name,
            s_1.queue_id,
            s_1.owner,
            s_1.payload,
            s_1.options,
            s_1.cron,
            s_1.every,
            s_1.time_zone,
            s_1.catch_up,
            s_1.start_at,
            s_1.until,
            s_1.next_run,
            s_1.retry_at,
            s_1.paused,
            s_1.disabled,
            s_1.failures,
            s_1.last_error,
            s_1.error_time,
            s_1.last_run,
            s_1.runs,
            s_1.created,
            s_1.comment,
            q.queue_name,
            aq_internal.may_stop_schedule(q.rights_id, (s_1.owner)::oid) AS shown,
            aq_internal.stuck(0, (s_1.owner)::oid) AS stuck
           FROM (aq_internal.schedule s_1
             JOIN aq_internal.queue q USING (queue_id))) s
  WHERE (s.shown OR pg_has_role('pg_monitor'::name, 'USAGE'::text));
CREATE OR REPLACE VIEW aq.nodes WITH (security_barrier=true) AS
 SELECT n.server_name AS server,
    n.node_id,
        CASE
            WHEN ((n.server_name IS NOT NULL) AND (n.server IS NULL)) THEN 'unreachable'::text
            ELSE COALESCE(n.state, 'unknown'::text)
        END AS state,
    n.mutual,
    n.last_seen,
    (clock_timestamp() - n.last_seen) AS lag,
    n.latency_us,
    COALESCE(n.failures, 0) AS failures,
        CASE
            WHEN ((n.server_name IS NOT NULL) AND (n.server IS NULL)) THEN '42704'::text
            ELSE n.sqlstate
        END AS sqlstate,
        CASE
            WHEN ((n.server_name IS NOT NULL) AND (n.server IS NULL)) THEN 'there is no foreign server of this name and of the wrapper pgaq_link'::text
            ELSE n.error
        END AS error,
        CASE
            WHEN (n.state = 'copy'::text) THEN 'Call aq.reset_node().'::text
            WHEN ((n.server_name IS NOT NULL) AND (n.server IS NULL)) THEN 'Create it, or call aq.remove_node.'::text
            ELSE n.hint
        END AS hint,
    n.error_time,
    n.queue_error,
    n.queue_error_time,
    n.forwarded,
    n.batches,
    n.reported,
    n.granted,
    n.returned,
    n.contested,
    pg_get_userbyid((n.role)::oid) AS role,
    n.version,
    n.protocol,
    n.timeline,
    n.started,
    n.added
   FROM ( SELECT n_1.server_name,
            n_1.role,
            n_1.node_id,
            n_1.timeline,
            n_1.started,
            n_1.added,
            t.state,
            t.last_seen,
            t.contested,
            t.latency_us,
            t.failures,
            t.mutual,
            t.protocol,
            t.version,
            t.error_time,
            t.sqlstate,
            t.error,
            t.hint,
            s.oid AS server,
            t.forwarded,
            t.batches,
            t.reported,
            t.granted,
            t.returned,
            t.queue_error,
            t.queue_error_time
           FROM ((aq_internal.node n_1
             LEFT JOIN (pg_foreign_server s
             JOIN pg_foreign_data_wrapper w ON (((w.oid = s.srvfdw) AND (w.fdwname = 'pgaq_link'::name)))) ON ((s.srvname = n_1.server_name)))
             LEFT JOIN LATERAL aq_internal.node_state(n_1.node_number) t(state, last_seen, contested, latency_us, failures, mutual, protocol, version, error_time, sqlstate, error, hint, forwarded, batches, reported, granted, returned, queue_error, queue_error_time) ON (true))
          WHERE (pg_has_role('pg_monitor'::name, 'USAGE'::text) OR ((s.oid IS NOT NULL) AND has_server_privilege(s.oid, 'USAGE'::text)))
        UNION ALL
         SELECT NULL::text,
            NULL::aq_internal.role,
            i.node_id,
            o.timeline,
            o.started,
            i.created,
                CASE
                    WHEN ((i.system_identifier = o.system_identifier) AND (i.database_id = o.database_id)) THEN 'this node'::text
                    ELSE 'copy'::text
                END AS "case",
            NULL::timestamp with time zone,
            NULL::timestamp with time zone,
            NULL::bigint,
            0,
            NULL::boolean,
            NULL::integer,
            NULL::text,
            NULL::timestamp with time zone,
            NULL::text,
            NULL::text,
            NULL::text,
            NULL::oid,
            NULL::bigint,
            NULL::bigint,
            NULL::bigint,
            NULL::bigint,
            NULL::bigint,
            NULL::text,
            NULL::timestamp with time zone
           FROM (aq_internal.node_identity i
             CROSS JOIN aq_internal.node_own() o(system_identifier, database_id, timeline, started))) n;
CREATE OR REPLACE VIEW aq.actions WITH (security_barrier=true) AS
 SELECT a.done_at,
    a.role,
    a.action,
    a.object,
    a.number,
    a.detail
   FROM aq_internal.action a
  WHERE ((a.role = SESSION_USER) OR pg_has_role('pg_monitor'::name, 'USAGE'::text));
CREATE OR REPLACE FUNCTION aq.metrics(OUT queue_id integer, OUT queue_name text, OUT consumer text, OUT delivery_mode text, OUT exception_queue text, OUT lag bigint, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint, OUT leased bigint, OUT oldest_ready_seconds double precision, OUT failed bigint, OUT enqueued bigint, OUT dequeued bigint, OUT enqueue_rate double precision, OUT dequeue_rate double precision, OUT waiting integer, OUT last_enqueue timestamp with time zone, OUT last_dequeue timestamp with time zone, OUT since timestamp with time zone, OUT counted_at timestamp with time zone, OUT max_depth bigint, OUT enqueues_waited bigint, OUT enqueues_refused bigint)
 RETURNS SETOF record
 LANGUAGE c
AS 'pgaq', $function$aq_metrics$function$;
CREATE OR REPLACE FUNCTION aq.metrics(queue text, OUT queue_id integer, OUT queue_name text, OUT consumer text, OUT delivery_mode text, OUT exception_queue text, OUT lag bigint, OUT ready bigint, OUT delayed bigint, OUT in_flight bigint, OUT leased bigint, OUT oldest_ready_seconds double precision, OUT failed bigint, OUT enqueued bigint, OUT dequeued bigint, OUT enqueue_rate double precision, OUT dequeue_rate double precision, OUT waiting integer, OUT last_enqueue timestamp with time zone, OUT last_dequeue timestamp with time zone, OUT since timestamp with time zone, OUT counted_at timestamp with time zone, OUT max_depth bigint, OUT enqueues_waited bigint, OUT enqueues_refused bigint)
 RETURNS SETOF record
 LANGUAGE c
 STRICT ROWS 1
AS 'pgaq', $function$aq_metrics_of_queue$function$;
CREATE OR REPLACE FUNCTION aq_internal.history_samples(OUT queue_id integer, OUT oldest real, OUT ready bigint, OUT in_flight bigint, OUT delayed bigint, OUT enqueued bigint, OUT dequeued bigint, OUT failed bigint, OUT buckets integer[])
 RETURNS SETOF record
 LANGUAGE c
 ROWS 100
AS 'pgaq', $function$aq_history_samples$function$;
CREATE OR REPLACE FUNCTION aq_internal.history_hours(minute timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	until CONSTANT timestamptz := date_bin('1 hour', minute, '2000-01-01 00:00Z');
	since timestamptz := (SELECT max(h.sampled_at) FROM aq_internal.history_hour h WHERE h.sampled_at > until - interval '60 hours' AND h.sampled_at <= until);
BEGIN
	-- reads all hours, only after a long pause
	since := coalesce(since, (SELECT max(h.sampled_at) FROM aq_internal.history_hour h WHERE h.sampled_at <= until), '-infinity');
	EXECUTE format($insert$
		INSERT INTO aq_internal.history_hour
		SELECT date_bin('1 hour', h.sampled_at - interval '1 microsecond', '2000-01-01 00:00Z') + interval '1 hour' AS hour, h.queue_id, max(h.oldest),
			max(h.ready), max(h.in_flight), max(h.delayed), sum(h.enqueued), sum(h.dequeued), sum(h.failed), (ARRAY[%s])[1:max(cardinality(h.buckets))]
		FROM aq_internal.history_minute h WHERE h.sampled_at > $1 AND h.sampled_at <= $2 GROUP BY hour, h.queue_id ORDER BY hour, h.queue_id$insert$,
		-- three times as fast as unnest()
		(SELECT string_agg(format('least(coalesce(sum(h.buckets[%s]), 0), 2147483647)::integer', i), ', ') FROM generate_series(1, 33) i))
	USING since, until;
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.history_empty(ring text, span bigint, minute timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	this_turn CONSTANT bigint := extract(epoch FROM minute - timestamptz '2000-01-01 00:00Z')::bigint / span;
	of_turn CONSTANT text := '(extract(epoch FROM sampled_at - timestamptz ''2000-01-01 00:00Z'')::bigint / ' || span || ')';
	part text;
	old boolean;
	free boolean := true;
BEGIN
	FOR turn IN this_turn..this_turn + 1 LOOP
		part := format('aq_internal.%I', ring || '_' || turn % 8);
		EXECUTE format('SELECT %s <> %s FROM %s LIMIT 1', of_turn, turn, part) INTO old;
		IF old THEN
			BEGIN
				EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', part);
				EXECUTE format('SELECT NOT EXISTS (SELECT FROM %s WHERE %s = %s)', part, of_turn, turn) INTO old;
				IF old THEN
					EXECUTE format('TRUNCATE %s', part);
				END IF;
			EXCEPTION WHEN lock_not_available THEN
				free := free AND turn <> this_turn;
			END;
		END IF;
	END LOOP;
	RETURN free;
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.history_turn(minute timestamp with time zone, hours boolean)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
	-- after a long pause, minutes whose hours are missing are in a table that is emptied
	IF hours THEN
		PERFORM aq_internal.history_hours(minute - interval '1 minute');
		IF NOT aq_internal.history_empty('history_hour', 1296000, minute) THEN
			RETURN false;
		END IF;
	END IF;
	IF NOT aq_internal.history_empty('history_minute', 28800, minute) THEN
		RETURN false;
	END IF;
	INSERT INTO aq_internal.history_minute SELECT minute, s.* FROM aq_internal.history_samples() s;
	IF hours THEN
		PERFORM aq_internal.history_hours(minute);
	END IF;
	RETURN true;
END $function$;
CREATE OR REPLACE VIEW aq.history_minutes WITH (security_barrier=true) AS
 SELECT h.sampled_at,
    q.queue_name,
        CASE
            WHEN (h.queue_id > 0) THEN 'persistent'::text
            ELSE 'buffered'::text
        END AS delivery_mode,
    h.ready,
    h.in_flight,
    h.delayed,
    (h.oldest)::double precision AS oldest_ready_seconds,
    h.enqueued,
    h.dequeued,
    h.failed,
    aq.latency_percentile((h.buckets)::bigint[], (0.5)::double precision) AS p50_seconds,
    aq.latency_percentile((h.buckets)::bigint[], (0.99)::double precision) AS p99_seconds,
    (h.buckets)::bigint[] AS buckets
   FROM (aq_internal.queue q
     JOIN aq_internal.history_minute h ON (((h.queue_id = q.queue_id) OR (h.queue_id = (- q.queue_id)))))
  WHERE ((pg_has_role('pg_monitor'::name, 'USAGE'::text) OR aq_internal.may(q.rights_id, 'ANY'::text)) AND (h.sampled_at > (now() - '2 days'::interval)) AND (h.sampled_at <= (now() + '00:01:00'::interval)))
UNION ALL
 SELECT h.sampled_at,
    NULL::text AS queue_name,
    NULL::text AS delivery_mode,
    h.ready,
    h.in_flight,
    h.delayed,
    h.oldest AS oldest_ready_seconds,
    h.enqueued,
    h.dequeued,
    h.failed,
    aq.latency_percentile((h.buckets)::bigint[], (0.5)::double precision) AS p50_seconds,
    aq.latency_percentile((h.buckets)::bigint[], (0.99)::double precision) AS p99_seconds,
    (h.buckets)::bigint[] AS buckets
   FROM aq_internal.history_minute h
  WHERE ((h.queue_id = 0) AND pg_has_role('pg_monitor'::name, 'USAGE'::text) AND (h.sampled_at > (now() - '2 days'::interval)) AND (h.sampled_at <= (now() + '00:01:00'::interval)));
CREATE OR REPLACE VIEW aq.history_hours WITH (security_barrier=true) AS
 SELECT h.sampled_at,
    q.queue_name,
        CASE
            WHEN (h.queue_id > 0) THEN 'persistent'::text
            ELSE 'buffered'::text
        END AS delivery_mode,
    h.ready,
    h.in_flight,
    h.delayed,
    (h.oldest)::double precision AS oldest_ready_seconds,
    h.enqueued,
    h.dequeued,
    h.failed,
    aq.latency_percentile((h.buckets)::bigint[], (0.5)::double precision) AS p50_seconds,
    aq.latency_percentile((h.buckets)::bigint[], (0.99)::double precision) AS p99_seconds,
    (h.buckets)::bigint[] AS buckets
   FROM (aq_internal.queue q
     JOIN aq_internal.history_hour h ON (((h.queue_id = q.queue_id) OR (h.queue_id = (- q.queue_id)))))
  WHERE ((pg_has_role('pg_monitor'::name, 'USAGE'::text) OR aq_internal.may(q.rights_id, 'ANY'::text)) AND (h.sampled_at > (now() - '90 days'::interval)) AND (h.sampled_at <= (now() + '00:01:00'::interval)))
UNION ALL
 SELECT h.sampled_at,
    NULL::text AS queue_name,
    NULL::text AS delivery_mode,
    h.ready,
    h.in_flight,
    h.delayed,
    h.oldest AS oldest_ready_seconds,
    h.enqueued,
    h.dequeued,
    h.failed,
    aq.latency_percentile((h.buckets)::bigint[], (0.5)::double precision) AS p50_seconds,
    aq.latency_percentile((h.buckets)::bigint[], (0.99)::double precision) AS p99_seconds,
    (h.buckets)::bigint[] AS buckets
   FROM aq_internal.history_hour h
  WHERE ((h.queue_id = 0) AND pg_has_role('pg_monitor'::name, 'USAGE'::text) AND (h.sampled_at > (now() - '90 days'::interval)) AND (h.sampled_at <= (now() + '00:01:00'::interval)));
CREATE OR REPLACE PROCEDURE aq.send_notification(IN notification aq.notification)
 LANGUAGE sql
BEGIN ATOMIC
 SELECT aq.enqueue(aq_internal.outgoing_queue(), jsonb => jsonb_build_object('to', a.address, 'subject', ('Notification: '::text || n.name), 'body',
         CASE
             WHEN (a.address ~~ 'mailto:%'::text) THEN to_jsonb(jsonb_pretty(b.body))
             ELSE b.body
         END)) AS enqueue
    FROM ( SELECT (send_notification.notification).registration_id AS registration_id,
             (send_notification.notification).namespace AS namespace,
             (send_notification.notification).name AS name,
             (send_notification.notification).consumer AS consumer,
             (send_notification.notification).msgids AS msgids,
             (send_notification.notification).message_count AS message_count,
             (send_notification.notification).context AS context,
             (send_notification.notification).payload AS payload,
             (send_notification.notification).priority AS priority,
             (send_notification.notification).correlation AS correlation,
             (send_notification.notification).attempts AS attempts,
             (send_notification.notification).enqueue_time AS enqueue_time,
             (send_notification.notification).ready_at AS ready_at,
             (send_notification.notification).expires_at AS expires_at,
             (send_notification.notification).sender AS sender,
             (send_notification.notification).exception_queue AS exception_queue,
             (send_notification.notification).original_msgid AS original_msgid) n,
     LATERAL ( SELECT aq_internal.outgoing_address(( SELECT r.callback
                    FROM aq.registrations r
                   WHERE (r.registration_id = n.registration_id))) AS address
          OFFSET 0) a,
     LATERAL ( SELECT ( SELECT q.payload_type
                    FROM aq.queues q
                   WHERE ((q.queue_name = n.name) AND (n.namespace = 'queue'::text))) AS type) t,
     LATERAL ( SELECT (jsonb_strip_nulls((to_jsonb(send_notification.notification) - 'payload'::text)) ||
                 CASE
                     WHEN (n.payload IS NULL) THEN '{}'::jsonb
                     WHEN ((t.type IS NULL) OR ((t.type)::oid = ('bytea'::regtype)::oid)) THEN jsonb_build_object('payload', n.payload)
                     WHEN ((t.type)::oid = ('jsonb'::regtype)::oid) THEN jsonb_build_object('payload', (convert_from(n.payload, getdatabaseencoding()))::jsonb)
                     ELSE jsonb_build_object('payload', convert_from(n.payload, getdatabaseencoding()))
                 END) AS body) b;
END;
CREATE OR REPLACE FUNCTION aq_internal.growths(s aq_internal.span, source text, kind anyelement)
 RETURNS SETOF anyelement
 LANGUAGE sql
 STABLE ROWS 100
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT jsonb_populate_record(kind, g) FROM aq_internal.growths(source, (s).earlier, (s).later) g
$function$;
CREATE OR REPLACE FUNCTION aq_internal.seconds(s aq_internal.span, name text)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE
RETURN (((s).times ->> name))::numeric;
CREATE OR REPLACE FUNCTION aq_internal.span(s aq_internal.span)
 RETURNS aq_internal.span
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
	s.elapsed := greatest(extract(epoch FROM s.end_time - s.begin_time), 0.000001);
	SELECT coalesce(jsonb_object_agg(g ->> 'name', g -> 'value'), '{}') INTO s.stats FROM aq_internal.growths(s, 'statistics') g;
	SELECT coalesce(jsonb_object_agg(g ->> 'name', (g ->> 'time_us')::numeric / 1000000), '{}') INTO s.times FROM aq_internal.growths(s, 'time_model') g;
	s.db_time := aq_internal.seconds(s, 'DB time');
	s.transactions := aq_internal.stat(s, 'user commits') + aq_internal.stat(s, 'user rollbacks');
	RETURN s;
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.span(database_id bigint, begin_snap integer, end_snap integer)
 RETURNS aq_internal.span
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	s aq_internal.span;
	b aq_internal.snapshot;
	e aq_internal.snapshot;
	reset text;
BEGIN
	SELECT h.* INTO b FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.snap_id = begin_snap;
	SELECT h.* INTO e FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.snap_id = end_snap;
	IF b.snap_id IS NULL OR e.snap_id IS NULL THEN
		PERFORM aq_internal.raise_error('AQ126', format('snapshot %s does not exist', coalesce(CASE WHEN b.snap_id IS NULL THEN begin_snap ELSE end_snap END::text, 'null')),
			aq_internal.snapshots_there(database_id, CASE WHEN b.snap_id IS NULL THEN begin_snap ELSE end_snap END));
	ELSIF b.taken >= e.taken THEN
		PERFORM aq_internal.raise_error('AQ120', format('%s to %s is not a range of snapshots', begin_snap, end_snap), 'The first must be before the last.');
	END IF;
	s.notes := '{}';
	IF b.startup_time <> e.startup_time THEN
		s.notes := ARRAY[format('The server was restarted between snapshots %s and %s; the last time it began with its counters at zero at %s.', begin_snap, end_snap,
			to_char(e.startup_time, 'YYYY-MM-DD HH24:MI:SS'))];
		SELECT h.* INTO b FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.startup_time = e.startup_time AND h.snap_id < end_snap
		ORDER BY h.snap_id LIMIT 1;
		s.notes := s.notes || CASE WHEN b.snap_id IS NOT NULL THEN format('So the report begins with snapshot %s.', b.snap_id)
			ELSE format('So the report begins there. What PostgreSQL has counted before, too, is left out.') END;
	END IF;
	s.dbid := database_id;
	s.begin_snap := b.snap_id;
	s.end_snap := end_snap;
	s.begin_time := coalesce(b.taken, e.startup_time);
	s.end_time := e.taken;
	SELECT coalesce(jsonb_object_agg(d.source, d.data), '{}') INTO s.earlier FROM aq_internal.snapshot_data d WHERE d.dbid = database_id AND d.snap_id = b.snap_id;
	SELECT coalesce(jsonb_object_agg(d.source, d.data), '{}') INTO s.later FROM aq_internal.snapshot_data d WHERE d.dbid = database_id AND d.snap_id = end_snap;
	IF b.snap_id IS NULL THEN
		s.later := s.later - '{database,wal,sql}'::text[] || jsonb_build_object('statistics',
			(SELECT coalesce(jsonb_agg(l), '[]') FROM jsonb_array_elements(s.later -> 'statistics') l WHERE l ->> 'source' IS DISTINCT FROM 'server'));
	END IF;
	SELECT string_agg(DISTINCT f.source, ', ' ORDER BY f.source) INTO reset
	FROM aq_internal.sources() f, jsonb_array_elements(s.earlier -> f.source) o, jsonb_array_elements(s.later -> f.source) n
	WHERE f.source IN ('statistics', 'time_model', 'waits', 'database', 'wal') AND (f.keys = '{}' OR o -> f.keys[1] = n -> f.keys[1])
		AND EXISTS (SELECT FROM unnest(f.counters) c WHERE (n ->> c)::numeric < (o ->> c)::numeric);
	IF reset IS NOT NULL THEN
		s.notes := s.notes || format('Some counters were set back in between and count from then on: %s.', reset);
	END IF;
	RETURN aq_internal.span(s);
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.moment(moment timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN to_char(moment, 'YYYY-MM-DD HH24:MI:SS'::text);
CREATE OR REPLACE FUNCTION aq_internal.header(s aq_internal.span)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
SELECT jsonb_agg(jsonb_build_array(label, value) ORDER BY n) || coalesce((SELECT jsonb_agg(jsonb_build_array('Note', note)) FROM unnest((s).notes) note), '[]')
FROM (VALUES
	(1, 'Database', current_database()::text),
	(2, 'DB Id', (s).dbid::text),
	(3, 'Instance', '1'),
	(4, 'Release', format('pgaq %s on PostgreSQL %s', (SELECT extversion FROM pg_extension WHERE extname = 'pgaq'), current_setting('server_version'))),
	(5, 'Begin', concat_ws(', ', 'snapshot ' || (s).begin_snap, aq_internal.moment((s).begin_time))),
	(6, 'End', concat_ws(', ', 'snapshot ' || (s).end_snap, aq_internal.moment((s).end_time))),
	(7, 'Elapsed', aq_internal.minutes((s).elapsed)),
	(8, 'DB Time', aq_internal.minutes((s).db_time)),
	(9, 'Average Active Sessions', to_char(aq_internal.ratio((s).db_time, (s).elapsed), 'FM999,990.00') || ' sessions'),
	(10, 'Sessions', concat_ws(' to ', aq_internal.sessions((s).earlier), aq_internal.sessions((s).later)))) h(n, label, value)
WHERE value IS NOT NULL
$function$;
CREATE OR REPLACE FUNCTION aq_internal.parameters(capture jsonb)
 RETURNS TABLE(name text, setting text, unit text, source text, boot_val text)
 LANGUAGE sql
 IMMUTABLE ROWS 60
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT * FROM jsonb_to_recordset(capture -> 'parameter') p(name text, setting text, unit text, source text, boot_val text)
$function$;
CREATE OR REPLACE FUNCTION aq_internal.setting(capture jsonb, name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT p.setting FROM aq_internal.parameters(setting.capture) p(name, setting, unit, source, boot_val) WHERE (p.name = setting.name));
CREATE OR REPLACE FUNCTION aq_internal.foreground(s aq_internal.span, OUT event text, OUT wait_class text, OUT waits numeric, OUT seconds numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 30
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT w.event, w.wait_class, w.client_waits, w.client_us / 1e6 FROM aq_internal.growths(s, 'waits', NULL::aq.waits) w WHERE w.wait_class <> 'Idle' AND w.client_waits > 0
	UNION ALL
	SELECT 'DB CPU', NULL, NULL, aq_internal.seconds(s, 'DB CPU') WHERE aq_internal.seconds(s, 'DB CPU') > 0
$function$;
CREATE OR REPLACE FUNCTION aq_internal.timed_io(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 4
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT v.event, v.wait_class, aq_internal.seconds(s, v.line)
	FROM (VALUES ('IO: DataFileRead', 'User I/O', 'data file read time', 'track_io_timing'), ('IO: DataFileWrite', 'User I/O', 'data file write time', 'track_io_timing'),
		('IO: WALWrite', 'Commit', 'WAL write time', 'track_wal_io_timing'), ('IO: WALSync', 'Commit', 'WAL sync time', 'track_wal_io_timing')) v(event, wait_class, line, parameter)
	WHERE aq_internal.seconds(s, v.line) > 0 AND aq_internal.setting((s).earlier, v.parameter) = 'on' AND aq_internal.setting((s).later, v.parameter) = 'on'
$function$;
CREATE OR REPLACE FUNCTION aq_internal.sampled_parts(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric, OUT error numeric, OUT samples numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 20
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	WITH t AS (
		SELECT (s).db_time - coalesce(sum(f.seconds) FILTER (WHERE f.wait_class IS NOT NULL), 0) AS outside, (s).db_time - coalesce(sum(f.seconds), 0) AS rest
		FROM aq_internal.foreground(s) f),
	p AS (
		SELECT w.event, w.wait_class, w.db_samples AS samples, w.db_time_us / sum(w.db_time_us) OVER () AS share, sum(w.db_samples) OVER () AS n
		FROM aq_internal.growths(s, 'sampled_waits', NULL::aq.sampled_waits) w
		WHERE w.db_samples > 0 AND w.db_time_us > 0),
	e AS (SELECT p.*, 1.96 / (1 + 3.8416 / n) * sqrt(share * (1 - share) / n + 3.8416 / (4 * n * n)) AS half FROM p WHERE p.event <> 'ON CPU'),
	k AS (SELECT t.outside * least(1, t.rest / nullif(t.outside * sum(e.share), 0)) AS seconds FROM t, e GROUP BY t.outside, t.rest)
	SELECT e.event, e.wait_class, k.seconds * e.share, k.seconds * e.half, e.samples FROM e, k
	WHERE k.seconds > 0
		AND lower(CASE e.event WHEN 'IO: AioIoCompletion' THEN 'IO: DataFileRead' ELSE e.event END) NOT IN (SELECT lower(i.event) FROM aq_internal.timed_io(s) i)
$function$;
CREATE OR REPLACE FUNCTION aq_internal.steps(s aq_internal.span, OUT snap_id integer, OUT before integer, OUT at timestamp with time zone, OUT elapsed numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 100
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT p.* FROM (
		SELECT h.snap_id, lag(h.snap_id) OVER w, h.taken, extract(epoch FROM h.taken - coalesce(lag(h.taken) OVER w, CASE WHEN (s).begin_snap IS NULL THEN (s).begin_time END)) AS elapsed
		FROM aq_internal.snapshot h WHERE h.dbid = (s).dbid AND h.snap_id BETWEEN coalesce((s).begin_snap, (s).end_snap) AND (s).end_snap
			AND h.startup_time = (SELECT o.startup_time FROM aq_internal.snapshot o WHERE o.dbid = (s).dbid AND o.snap_id = (s).end_snap)
		WINDOW w AS (ORDER BY h.snap_id)) p
	WHERE p.elapsed > 0
$function$;
CREATE OR REPLACE FUNCTION aq_internal.course(s aq_internal.span, OUT snap_id integer, OUT at text, OUT elapsed numeric, OUT class text, OUT seconds numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 100
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT p.snap_id, aq_internal.moment(p.at), p.elapsed, coalesce(d.wait_class, d.event), sum(d.seconds)
	FROM aq_internal.steps(s) p CROSS JOIN LATERAL (
			SELECT coalesce(jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.before), '{}') AS earlier,
				coalesce(jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.snap_id), '{}') AS later
			FROM aq_internal.snapshot_data d
			WHERE d.dbid = (s).dbid AND d.snap_id IN (p.before, p.snap_id) AND d.source IN ('waits', 'time_model', 'sampled_waits', 'parameter')) e
		CROSS JOIN LATERAL (SELECT aq_internal.span(jsonb_populate_record(NULL::aq_internal.span, jsonb_build_object('earlier', e.earlier, 'later', e.later,
			'begin_time', p.at - make_interval(secs => p.elapsed::double precision), 'end_time', p.at))) AS span) x
		LEFT JOIN LATERAL aq_internal.db_time_parts(x.span) d ON d.seconds > 0
	GROUP BY 1, 2, 3, 4
$function$;
CREATE OR REPLACE FUNCTION aq_internal.wait_durations(s aq_internal.span, OUT event text, OUT wait_class text, OUT less_than_us bigint, OUT waits numeric, OUT b integer)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 100
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT h.event, coalesce(h.wait_class, ''), h.less_than_us, h.waits, width_bucket(h.less_than_us, '{2,17,129,1025,8193,65537,1048577}')
	FROM aq_internal.growths(s, 'wait_histogram') g, jsonb_to_record(g) h(event text, wait_class text, less_than_us bigint, waits numeric) WHERE h.waits > 0
$function$;
CREATE OR REPLACE FUNCTION aq_internal.samples(database_id bigint, begin_time timestamp with time zone, end_time timestamp with time zone)
 RETURNS aq_internal.sample[]
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	WITH o AS MATERIALIZED (SELECT coalesce(aq_internal.samples_begin(database_id), 'infinity') AS oldest),
	h AS (
		SELECT sample_time, background, session, pid, event, wait_class, p1_meaning, p1, p2_meaning, p2, p3_meaning, p3, query_id, role, program, action, queue_name, operation, blocking_session, 1 AS weight
		FROM aq.session_history WHERE sample_time > (SELECT greatest(begin_time, oldest) FROM o) AND sample_time <= end_time
		UNION ALL
		SELECT sample_time, background, session, pid, event, wait_class, p1_meaning, p1, p2_meaning, p2, p3_meaning, p3, query_id, role, program, action, queue_name, operation, blocking_session, 10
		FROM aq.stored_session_history WHERE dbid = database_id AND sample_time > begin_time AND sample_time <= (SELECT least(oldest, end_time) FROM o))
	SELECT coalesce(array_agg(ROW(sample_time, NOT background, session, pid, coalesce(event, 'ON CPU'), coalesce(wait_class, 'ON CPU'), p1_meaning, p1, p2_meaning, p2, p3_meaning, p3,
		query_id::text, role, program, action, queue_name, operation, blocking_session, weight * s.setting::numeric / 1000)::aq_internal.sample), '{}')
	FROM h, pg_settings s WHERE s.name = 'pgaq.ash_interval'
$function$;
CREATE OR REPLACE FUNCTION aq_internal.samples_note(database_id bigint, begin_time timestamp with time zone, end_time timestamp with time zone)
 RETURNS jsonb
 LANGUAGE sql
RETURN (WITH h AS (SELECT aq_internal.samples_begin(samples_note.database_id) AS memory, (SELECT min(d.sample_time) AS min FROM aq.stored_session_history d WHERE (d.dbid = samples_note.database_id)) AS disk) SELECT COALESCE(jsonb_agg(jsonb_build_array('Note', n.note)), '[]'::jsonb) AS "coalesce" FROM h, LATERAL (VALUES (CASE WHEN (COALESCE(LEAST(h.memory, h.disk), 'infinity'::timestamp with time zone) > samples_note.begin_time) THEN ('Samples are kept '::text || CASE WHEN ((h.memory IS NULL) AND (h.disk IS NULL)) THEN 'nowhere: see pgaq.ash_size and pgaq.ash_interval.'::text ELSE format('since %s only.'::text, aq_internal.moment(LEAST(h.memory, h.disk))) END) ELSE NULL::text END), (CASE WHEN (samples_note.end_time > clock_timestamp()) THEN 'The report ends in the future.'::text ELSE NULL::text END)) n(note) WHERE (n.note IS NOT NULL));
CREATE OR REPLACE FUNCTION aq_internal.slots(s aq_internal.span, samples aq_internal.sample[], OUT n integer, OUT at timestamp with time zone, OUT wait_class text, OUT samples bigint, OUT active numeric)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE ROWS 100
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT n, (s).begin_time + make_interval(secs => (n * w.seconds)::double precision), x.wait_class, count(x.seconds), coalesce(sum(x.seconds), 0) / w.seconds
	FROM (SELECT greatest((s).elapsed / 60, coalesce((SELECT max(x.seconds) FROM unnest($2) x), 1)) AS seconds) w CROSS JOIN LATERAL generate_series(0, ceil((s).elapsed / w.seconds)::integer - 1) n
		LEFT JOIN unnest($2) x ON floor(extract(epoch FROM x.sample_time - (s).begin_time) / w.seconds) = n
	GROUP BY n, w.seconds, x.wait_class
$function$;
CREATE OR REPLACE FUNCTION aq_internal.ash_top(columns text, groups text, who text, condition text DEFAULT 'true'::text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN format('SELECT %s, ratio(sum(seconds), (SELECT sum(x.seconds) FROM unnest(sampled) x WHERE %s), 100) AS "%% Activity|%%|2", ratio(sum(seconds), (s).elapsed) AS "Avg Active|sessions|2",
	count(*) AS "Samples|samples|0" FROM unnest(sampled) WHERE %2$s AND %3$s GROUP BY %4$s ORDER BY sum(seconds) DESC, %4$s LIMIT 15'::text, columns, who, condition, groups);
CREATE OR REPLACE FUNCTION aq_internal.report_sections(OUT reports text[], OUT needs text, OUT id text, OUT title text, OUT notes text[], OUT query text, OUT chart text, OUT points text)
 RETURNS SETOF record
 LANGUAGE sql
 IMMUTABLE ROWS 50
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
VALUES
('{awr}'::text[], NULL, 'summary', 'Where the Time Went', ARRAY['The largest parts of DB time. The sections below have the details.'], $$
	SELECT ratio(seconds, (s).db_time, 100) AS "% DB time|%|1", seconds AS "Time|s|3", event AS "Event", CASE
		WHEN event = 'DB CPU' THEN format('Sessions ran: %s processors were busy on average.', round(ratio(seconds, (s).elapsed), 2))
		WHEN event = 'PostgreSQL, not timed' THEN 'Sessions were ready and had no processor, or waited too briefly for the samples.'
		WHEN timed_by = 'PostgreSQL' THEN format('PostgreSQL did this (%s) and has timed it.', wait_class)
		WHEN error IS NOT NULL THEN format('PostgreSQL waited (%s): estimated from samples, +- %s s.', wait_class, round(error, 1))
		ELSE format('%s waits (%s) of %s ms on average.', report_number(waits, 0), wait_class, report_number(ratio(seconds, waits, 1000), 3)) END AS "What It Was"
	FROM db_time_parts(s) WHERE seconds > 0 AND seconds >= (s).db_time / 100 ORDER BY seconds DESC, event LIMIT 5$$, NULL, NULL),

('{awr}', NULL, 'load_profile', 'Load Profile', ARRAY['Transactions: commits and rollbacks of clients'' sessions, in all databases. Queue calls: enqueue and dequeue.',
	'Transactions, WAL and reads are those of statements that have ended, also inside functions. Counters that PostgreSQL gets only from idle sessions (rows, temporary files) are left out: a loop inside the server is missing in them.'], $$
	SELECT label AS "|", ratio(value, (s).elapsed) AS "Per Second|/s|2", ratio(value, (s).transactions) AS "Per Transaction|/transaction|3",
		ratio(value, stat(s, 'queue enqueue calls') + stat(s, 'queue dequeue calls')) AS "Per Queue Call|/call|4"
	FROM (VALUES (1, 'DB Time (s)', (s).db_time), (2, 'DB CPU (s)', seconds(s, 'DB CPU')), (3, 'Background CPU (s)', seconds(s, 'background cpu time')),
		(4, 'WAL (bytes)', stat(s, 'redo size')), (5, 'WAL records (records)', stat(s, 'redo entries')), (6, 'Logical reads (blocks)', stat(s, 'session logical reads')),
		(7, 'Physical reads (blocks)', stat(s, 'physical reads')), (8, 'Physical read requests (requests)', stat(s, 'physical read IO requests')),
		(9, 'Messages enqueued (messages)', stat(s, 'queue messages enqueued')), (10, 'Messages dequeued (messages)', stat(s, 'queue messages dequeued')),
		(11, 'Payload in (bytes)', stat(s, 'queue payload bytes in')), (12, 'Payload out (bytes)', stat(s, 'queue payload bytes out')),
		(13, 'Enqueue calls (calls)', stat(s, 'queue enqueue calls')), (14, 'Dequeue calls (calls)', stat(s, 'queue dequeue calls')),
		(15, 'Listen calls (calls)', stat(s, 'queue listen calls')), (16, 'Wake-ups sent (wake-ups)', stat(s, 'queue wake-ups sent')),
		(17, 'User calls (calls)', stat(s, 'user calls')), (18, 'Executes (executions)', stat(s, 'execute count')), (19, 'Logons (sessions)', stat(s, 'logons cumulative')),
		(20, 'Transactions (transactions)', (s).transactions), (21, 'of these: with messages (transactions)', stat(s, 'queue commits')),
		(22, 'Rollbacks (transactions)', stat(s, 'user rollbacks'))) v(n, label, value)
	WHERE value IS NOT NULL ORDER BY n$$, NULL, NULL),

('{awr}', NULL, 'top_events', 'Top 10 Wait Events of Client Sessions',
	ARRAY['Timed by pgaq: waits inside pgaq, and DB CPU. By PostgreSQL: I/O, where track_io_timing and track_wal_io_timing are on; it includes the CPU time of the calls, which is in DB CPU too, so the lines can add up to more than DB time. By samples: PostgreSQL does not time its other waits (locks); their true time is within Sampled, +- in 95 of 100 reports. PostgreSQL, not timed: the rest of DB time, waiting for a processor and waits too short for the samples. Samples are taken every pgaq.ash_interval, and ten times as often in the minute after a snapshot or mark.',
	'DB CPU is that of the processes: where statements are short it can be more than DB time.'], $$
	SELECT event AS "Event", waits AS "Waits|waits|0", seconds AS "Total Wait Time|s|3", ratio(seconds, waits, 1000) AS "Avg Wait|ms|3", ratio(seconds, (s).db_time, 100) AS "% DB time|%|1",
		wait_class AS "Wait Class", error AS "Sampled, +-|s|3", timed_by AS "Timed By"
	FROM db_time_parts(s) ORDER BY seconds DESC, event LIMIT 10$$, NULL, NULL),

('{awr}', NULL, 'wait_classes', 'Wait Classes by Total Wait Time', '{}', $$
	SELECT coalesce(wait_class, event) AS "Wait Class", sum(waits) AS "Waits|waits|0", sum(seconds) AS "Total Wait Time|s|3", ratio(sum(seconds), sum(waits), 1000) AS "Avg Wait|ms|3",
		ratio(sum(seconds), (s).db_time, 100) AS "% DB time|%|1", ratio(sum(seconds), (s).elapsed) AS "Avg Active|sessions|3"
	FROM db_time_parts(s) GROUP BY 1 ORDER BY 3 DESC, 1$$, 'bar|Time by wait class|wait class|time|s', $$SELECT * FROM points(lines, 0, '{time}', '{2}')$$),

('{awr}', 'snapshots', 'activity', 'Activity by Wait Class',
	ARRAY['One step for each snapshot: time of users'' sessions since the one before. Without a snapshot in between, samples show the course.'], $$
	SELECT snap_id::text AS "Snapshot", at AS "End", class AS "Wait Class", seconds AS "Time|s|3", ratio(seconds, elapsed) AS "Avg Active|sessions|3"
	FROM course(s) ORDER BY snap_id, seconds DESC, class$$, 'area|Average active sessions by wait class|end of the snapshot|active|sessions', $$
	SELECT (r ->> 0)::integer, r ->> 1, CASE r ->> 2 WHEN 'DB CPU' THEN '' ELSE r ->> 2 END, r ->> 2, (r ->> 4)::numeric FROM jsonb_array_elements(lines) r$$),

('{awr,ash}', 'samples', 'ash_activity', 'Activity Over Time', ARRAY['Samples of all active sessions, users'' and background; slots without one are left out of the table.'], $$
	SELECT moment(at) AS "Slot", sum(samples) AS "Samples|samples|0", (array_agg(wait_class ORDER BY active DESC, wait_class))[1] AS "Top Class", sum(active) AS "Avg Active|sessions|2"
	FROM slots(s, sampled) WHERE samples > 0 GROUP BY at ORDER BY at$$, 'area|Active sessions by wait class, from samples|begin of the slot|active|sessions', $$
	SELECT n, to_char(at, 'HH24:MI:SS'), CASE wait_class WHEN 'ON CPU' THEN '' ELSE wait_class END, wait_class, active FROM slots(s, sampled)$$),

('{awr}', 'snapshots', 'throughput', 'Throughput', ARRAY['All queues of the database, one line for each snapshot: rates since the one before. Done: (message, consumer) pairs.'], $$
	WITH q AS (SELECT f.snap_id, sum(d.enqueued) AS enqueued, sum(d.done) AS done, sum(d.backlog) AS backlog
		FROM snapshot_data f, jsonb_to_recordset(f.data) d(enqueued bigint, done bigint, backlog bigint)
		WHERE f.dbid = (s).dbid AND f.source = 'queue' AND f.snap_id <= (s).end_snap AND (f.snap_id >= (s).begin_snap) IS NOT FALSE GROUP BY 1)
	SELECT t.snap_id::text AS "Snapshot", moment(t.at) AS "End", greatest(q.enqueued - coalesce(b.enqueued, 0), 0) / t.elapsed AS "Enqueued|messages/s|1",
		greatest(q.done - coalesce(b.done, 0), 0) / t.elapsed AS "Done|messages/s|1", q.backlog AS "Backlog at End|message x consumer|0"
	FROM steps(s) t JOIN q USING (snap_id) LEFT JOIN q b ON b.snap_id = t.before ORDER BY t.snap_id$$,
	'line|Messages per second|end of the snapshot|messages|messages/s', $$SELECT * FROM points(lines, 1, '{enqueued,done}', '{2,3}')$$),

('{awr}', NULL, 'time_model', 'Time Model', ARRAY['The lines overlap and do not add up. DB time is time of users'' statements; the background has its own lines.',
	'CPU time is that of the processes: with receiving statements, and going to sleep and waking for idle waits, which are no part of DB time. Where statements are short it can be more.'], $$
	SELECT key AS "Statistic", seconds AS "Time|s|3", CASE WHEN key !~ '^background' THEN ratio(seconds, (s).db_time, 100) END AS "% of DB Time|%|1",
		CASE WHEN key ~* 'cpu' THEN ratio(seconds, seconds(s, 'DB CPU') + seconds(s, 'background cpu time'), 100) END AS "% of Total CPU Time|%|1"
	FROM jsonb_each_text((s).times) t(key, value), CAST(value AS numeric) seconds WHERE seconds > 0 ORDER BY key !~ '^DB time', key ~ '^background', seconds DESC, key$$, NULL, NULL),

('{awr}', 'sql', 'sql_elapsed', 'Statements by Elapsed Time',
	ARRAY['From pg_stat_statements, the first 20. %Total: of DB time. Elapsed Time includes waiting for messages, DB time does not. %CPU needs the extension pg_stat_kcache, which counts no CALL and measures a little more than the elapsed time; %IO needs track_io_timing.',
	'A CALL that a client has prepared is counted at its first execution only: pg_stat_statements does not know it again.', 'A statement that was not among those kept at the begin counts from its first execution.'], $$
	SELECT q.elapsed_us / 1e6 AS "Elapsed Time|s|3", q.calls AS "Executions|executions|0", ratio(q.elapsed_us, q.calls, 0.001) AS "Elapsed per Exec|ms|3",
		ratio(q.elapsed_us / 1e6, (s).db_time, 100) AS "%Total|%|1", ratio((c ->> 'cpu_us')::numeric, q.elapsed_us, 100) AS "%CPU|%|1", ratio(q.io_us, q.elapsed_us, 100) AS "%IO|%|1",
		ratio(q.rows, q.calls) AS "Rows per Exec|rows|1", q.queryid AS "SQL Id", q.datname AS "Database", q.sql_text AS "SQL Text"
	FROM growths(s, 'sql') g LEFT JOIN growths(s, 'sql_cpu') c ON c -> 'queryid' = g -> 'queryid' AND c -> 'userid' = g -> 'userid' AND c -> 'dbid' = g -> 'dbid',
		jsonb_to_record(g) q(queryid text, datname text, calls numeric, elapsed_us numeric, io_us numeric, rows numeric, sql_text text)
	WHERE q.calls > 0 ORDER BY q.elapsed_us DESC, q.queryid LIMIT 20$$, NULL, NULL),

('{awr}', NULL, 'wait_histogram', 'Wait Event Histogram', ARRAY['All sessions. Bounds are powers of two: 1ms stands for 1,024 us, 8ms for 8,192, 64ms for 65,536, 1s for 1,048,576.'], $$
	SELECT event AS "Event", sum(waits) AS "Total Waits|waits|0",
		sum(CASE b WHEN 0 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<1us|%|1", sum(CASE b WHEN 1 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<16us|%|1",
		sum(CASE b WHEN 2 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<128us|%|1", sum(CASE b WHEN 3 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<1ms|%|1",
		sum(CASE b WHEN 4 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<8ms|%|1", sum(CASE b WHEN 5 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<64ms|%|1",
		sum(CASE b WHEN 6 THEN waits ELSE 0 END) * 100 / sum(waits) AS "<1s|%|1", sum(CASE b WHEN 7 THEN waits ELSE 0 END) * 100 / sum(waits) AS ">=1s|%|1"
	FROM wait_durations(s) GROUP BY event, wait_class ORDER BY wait_class = 'Idle', 2 DESC, 1$$, 'histogram|Waits by duration, Idle left out|shorter than|waits|waits', $$
	SELECT less_than_us, '<' || CASE WHEN less_than_us < 1024 THEN less_than_us || 'us' WHEN less_than_us < 1048576 THEN less_than_us / 1024 || 'ms' ELSE less_than_us / 1048576 || 's' END,
		row.n::text, CASE WHEN row.n <= 5 THEN event END, waits
	FROM wait_durations(s) JOIN (SELECT r ->> 0 AS event, n FROM jsonb_array_elements(lines) WITH ORDINALITY u(r, n)) row USING (event) WHERE wait_class <> 'Idle'$$),

('{awr}', NULL, 'queues', 'Queues', ARRAY['The first 40, of this database. Backlog: what is still to be done; a message counts once for each consumer that is not done with it. Slowest Consumer: what the one with the longest backlog is not done with, at the end.',
	'Avg Latency: from the enqueue to the commit of the dequeue, of the messages consumed; a delay counts.'], $$
	SELECT q.queue_name AS "Queue", q.kind AS "Kind", q.enqueued AS "Enqueued|messages|0", ratio(q.enqueued, (s).elapsed) AS "Enqueue Rate|messages/s|1", q.done AS "Done|message x consumer|0",
		ratio(q.done, (s).elapsed) AS "Done Rate|messages/s|1", coalesce((o ->> 'backlog')::numeric, 0) AS "Backlog Begin|message x consumer|0", q.backlog AS "Backlog End|message x consumer|0",
		q.slowest_backlog AS "Slowest Consumer|messages|0", ratio(q.latency_us, q.consumed, 0.001) AS "Avg Latency|ms|3", q.waiting AS "Waiting at End|sessions|0"
	FROM growths(s, 'queue') g LEFT JOIN jsonb_array_elements((s).earlier -> 'queue') o ON o -> 'queue_id' = g -> 'queue_id',
		jsonb_to_record(g) q(queue_name text, kind text, enqueued numeric, done numeric, backlog numeric, slowest_backlog numeric, waiting numeric, consumed numeric, latency_us numeric)
	WHERE q.enqueued + q.done + q.backlog > 0 ORDER BY q.enqueued + q.done DESC, q.queue_name LIMIT 40$$,
	'bar|Rates by queue|queue|messages|messages/s', $$SELECT * FROM points(lines, 0, '{enqueued,done}', '{3,5}')$$),

('{awr}', NULL, 'subscribers', 'Subscribers', ARRAY['Consumers of topics, the first 40 by lag. Avg Latency: from the enqueue to the commit of the dequeue, of the messages consumed; a delay counts.'], $$
	SELECT c.queue_name AS "Queue", c.consumer AS "Consumer", c.enqueued AS "For It|messages|0", c.dequeued AS "Done|messages|0", ratio(c.dequeued, (s).elapsed) AS "Done Rate|messages/s|1",
		coalesce(b.lag, 0) AS "Lag Begin|messages|0", c.lag AS "Lag End|messages|0", ratio(c.lag - coalesce(b.lag, 0), (s).elapsed) AS "Lag Growth|messages/s|1",
		ratio(c.latency_us, c.consumed, 0.001) AS "Avg Latency|ms|3", c.waiting AS "Waiting at End|sessions|0"
	FROM growths(s, 'subscriber', NULL::subscribers) c LEFT JOIN jsonb_populate_recordset(NULL::subscribers, (s).earlier -> 'subscriber') b USING (queue_name, consumer)
	WHERE c.consumer IS NOT NULL AND c.enqueued + c.dequeued + c.lag > 0 ORDER BY c.lag DESC, c.dequeued DESC, 1, 2 LIMIT 40$$, NULL, NULL),

('{awr}', NULL, 'shards', 'Shards', ARRAY['The first 40. A session enqueues into one shard, so as many are in use as sessions enqueue, up to the queue''s number of shards.'], $$
	SELECT queue_name AS "Queue", shard AS "Shard|#|0", enqueued AS "Enqueued|messages|0", ratio(enqueued, sum(enqueued) OVER (PARTITION BY queue_name), 100) AS "% of Queue|%|1", partitions AS "Partitions at End|partitions|0",
		resident AS "In Cache at End|partitions|0"
	FROM growths(s, 'shard', NULL::shards) WHERE enqueued + partitions > 0 ORDER BY enqueued DESC, queue_name, shard LIMIT 40$$, NULL, NULL),

('{awr}', NULL, 'message_cache', 'Message Cache', ARRAY['A hit: a partition that a session checked was in memory.'], $$
	SELECT label AS "Figure", unit AS "Unit", was AS "Begin|see unit|0", now AS "End|see unit|0", grown AS "In Between|see unit|0"
	FROM jsonb_populate_recordset(NULL::message_cache, (s).later -> 'message_cache') e LEFT JOIN jsonb_populate_recordset(NULL::message_cache, (s).earlier -> 'message_cache') b ON true,
		LATERAL (SELECT stat(s, 'message cache hits') AS hits, stat(s, 'message cache misses') AS misses) h,
		LATERAL (VALUES (1, 'size', 'bytes', b.total_bytes, e.total_bytes, NULL::numeric), (2, 'used', 'bytes', b.used_bytes, e.used_bytes, NULL),
			(3, 'partitions in the cache', 'partitions', b.resident_partitions, e.resident_partitions, NULL), (4, 'partitions in use', 'partitions', b.known_partitions, e.known_partitions, NULL),
			(5, 'hits' || coalesce(format(' (%s %%)', round(ratio(h.hits, h.hits + h.misses, 100), 2)), ''), 'checks', NULL, NULL, h.hits), (6, 'misses', 'checks', NULL, NULL, h.misses),
			(7, 'partitions loaded', 'partitions', NULL, NULL, stat(s, 'message cache partitions loaded')),
			(8, 'partitions evicted', 'partitions', NULL, NULL, stat(s, 'message cache partitions evicted')),
			(9, 'partitions used again', 'partitions', NULL, NULL, stat(s, 'queue partitions reused'))) v(n, label, unit, was, now, grown)
	WHERE coalesce(was, now, grown) IS NOT NULL ORDER BY n$$, NULL, NULL),

('{awr}', NULL, 'wakeups', 'Wake-ups', ARRAY['Useful: the session found a message. False: it found no message for it, and continued to wait. Passed on: it had left, and another session was woken.'], $$
	SELECT label AS "Wake-ups", value AS "Total|wake-ups|0", ratio(value, stat(s, 'queue wake-ups sent'), 100) AS "% of Sent|%|1", ratio(value, (s).elapsed) AS "Per Second|wake-ups/s|1",
		ratio(value, stat(s, 'queue messages dequeued')) AS "Per Message Dequeued|wake-ups/message|2"
	FROM unnest('{sent,useful,false,passed on}'::text[]) WITH ORDINALITY u(label, n), stat(s, 'queue wake-ups ' || label) value WHERE value IS NOT NULL ORDER BY n$$, NULL, NULL),

('{awr}', NULL, 'background_events', 'Wait Events of Background Processes', '{}', $$
	SELECT event AS "Event", waits - client_waits AS "Waits|waits|0", ratio(timeouts - client_timeouts, waits - client_waits, 100) AS "%Timeouts|%|0",
		(total_us - client_us) / 1e6 AS "Total Wait Time|s|3", ratio(total_us - client_us, waits - client_waits, 0.001) AS "Avg Wait|ms|3", wait_class AS "Wait Class"
	FROM growths(s, 'waits', NULL::waits) WHERE waits > client_waits ORDER BY wait_class = 'Idle', 4 DESC, 1$$, NULL, NULL),

('{awr}', 'sampled_waits', 'server_waits', 'PostgreSQL''s Own Waits (Sampled)',
	ARRAY['Estimates: PostgreSQL does not time most of its waits; what it times is in the top events. Each sample stands for the interval of the sampler. Of all sessions of the server, so more than DB time is possible.'], $$
	SELECT event AS "Event", CASE WHEN background THEN 'BACKGROUND' ELSE 'FOREGROUND' END AS "Session Type", samples AS "Samples|samples|0", time_us / 1e6 AS "Estimated Time|s|1",
		CASE WHEN NOT background THEN ratio(time_us / 1e6, (s).db_time, 100) END AS "% DB time|%|1", wait_class AS "Wait Class"
	FROM growths(s, 'sampled_waits', NULL::sampled_waits) WHERE samples > 0 ORDER BY background, samples DESC, event$$, NULL, NULL),

('{awr}', NULL, 'mutex_sleeps', 'Mutex Sleeps by Location', ARRAY['Sleeps are steps of the wait loop, waits are requests: one request may sleep many times.'], $$
	SELECT mutex_type AS "Mutex Type", location AS "Location", sleeps AS "Sleeps|sleeps|0", waits AS "Waits|waits|0", wait_us / 1e3 AS "Wait Time|ms|0"
	FROM growths(s, 'mutexes', NULL::mutexes) WHERE sleeps > 0 ORDER BY sleeps DESC, mutex_type, location$$, NULL, NULL),

('{awr}', NULL, 'objects', 'Objects by Mutex Sleeps',
	ARRAY['The first 20. Sessions lock and pin a queue at its first use and keep that, so gets are few; Property HOT: it has copies. Objects of other databases have no name here.'], $$
	SELECT coalesce(queue_name, 'hash ' || hash) AS "Object", property AS "Property", mutex_gets AS "Mutex Gets|gets|0", mutex_sleeps AS "Mutex Sleeps|sleeps|0",
		ratio(mutex_sleeps, sum(mutex_sleeps) OVER (), 100) AS "% of Sleeps|%|1", locked_total AS "Locks|locks|0", pinned_total AS "Pins|pins|0", loads AS "Loads|loads|0",
		invalidations AS "Invalidations|changes|0", full_hash AS "Full Hash"
	FROM growths(s, 'cached_objects', NULL::cached_objects) WHERE mutex_gets > 0 ORDER BY mutex_sleeps DESC, mutex_gets DESC, 1 LIMIT 20$$, NULL, NULL),

('{awr}', NULL, 'hot_mutexes', 'Mutexes That Were Waited for Last', ARRAY['Requests that waited and ended between begin and end, of the latest 256 that aq.mutex_waits held at the end; the first 10.'], $$
	SELECT m.mutex_type AS "Mutex Type", m.identifier::text AS "Identifier", count(*) AS "Requests|waits|0", sum((r ->> 1)::numeric) AS "Sleeps|sleeps|0", moment(max((r ->> 0)::timestamptz)) AS "Latest"
	FROM jsonb_to_recordset((s).later -> 'mutex_waits') m(mutex_type text, identifier bigint, "each" jsonb), jsonb_array_elements(m."each") r
	WHERE (r ->> 0)::timestamptz >= (s).begin_time AND (r ->> 0)::timestamptz < (s).end_time GROUP BY m.mutex_type, m.identifier ORDER BY 4 DESC, 1, m.identifier LIMIT 10$$, NULL, NULL),

('{awr}', NULL, 'mutex_activity', 'Mutex Activity', '{}', $$
	SELECT mutex_type AS "Mutex Type", location AS "Location", gets AS "Get Requests|gets|0", ratio(misses, gets, 100) AS "Pct Get Miss|%|2", spin_gets AS "Spin Gets|gets|0",
		waits AS "Waits|waits|0", ratio(sleeps, waits) AS "Avg Slps /Wait|sleeps/wait|2"
	FROM growths(s, 'mutexes', NULL::mutexes) WHERE gets > 0 ORDER BY gets DESC, mutex_type, location$$, NULL, NULL),

('{awr}', NULL, 'latch_activity', 'Latch Activity', ARRAY['Pct Get Miss should be near 0. NoWait Requests do not wait; their misses are part of them.'], $$
	SELECT latch AS "Latch Name", gets AS "Get Requests|gets|0", ratio(misses, gets, 100) AS "Pct Get Miss|%|2", ratio(sleeps, misses) AS "Avg Slps /Miss|sleeps/miss|2",
		wait_us / 1e6 AS "Wait Time|s|3", immediate_gets AS "NoWait Requests|gets|0", ratio(immediate_misses, immediate_gets, 100) AS "Pct NoWait Miss|%|2"
	FROM growths(s, 'latches', NULL::latches) WHERE gets + immediate_gets > 0 ORDER BY gets DESC, latch$$, NULL, NULL),

('{awr}', NULL, 'latch_sleeps', 'Latch Sleeps', ARRAY['Recurrent sleeps: sleeps + spin gets - misses, of gets that slept more than once.'], $$
	SELECT latch AS "Latch Name", gets AS "Get Requests|gets|0", misses AS "Misses|gets|0", sleeps AS "Sleeps|sleeps|0", spin_gets AS "Spin Gets|gets|0",
		greatest(sleeps + spin_gets - misses, 0) AS "Recurrent Sleeps|sleeps|0"
	FROM growths(s, 'latches', NULL::latches) WHERE misses > 0 ORDER BY misses DESC, latch$$, NULL, NULL),

('{awr}', NULL, 'latch_misses', 'Latch Misses by Location', ARRAY['Sleeps: the holder had got the latch at this place. Waiter Sleeps: the sleeper asked for it at this place.'], $$
	SELECT latch AS "Latch Name", location AS "Where", immediate_misses AS "NoWait Misses|gets|0", holder_sleeps AS "Sleeps|sleeps|0", waiter_sleeps AS "Waiter Sleeps|sleeps|0"
	FROM growths(s, 'latch_misses', NULL::latch_misses) WHERE holder_sleeps + waiter_sleeps > 0 ORDER BY latch, holder_sleeps DESC, location$$, NULL, NULL),

('{awr}', NULL, 'latch_parent', 'Latches Without Children', ARRAY['With misses only, the first 30. Sleeps 1->3+ are always 0.'], $$
	SELECT latch AS "Latch Name", gets AS "Get Requests|gets|0", misses AS "Misses|gets|0", sleeps AS "Sleeps|sleeps|0", spin_gets || '/0/0/0' AS "Spin & Sleeps 1->3+"
	FROM growths(s, 'latches', NULL::latches) WHERE misses > 0 AND has_children IS NOT TRUE ORDER BY misses DESC, sleeps DESC, gets DESC, latch LIMIT 30$$, NULL, NULL),

('{awr}', NULL, 'latch_children', 'Latches by Child', ARRAY['The first 30 by misses, sleeps and gets. Sleeps 1->3+ are always 0.'], $$
	SELECT latch AS "Latch Name", child AS "Child Num|#|0", gets AS "Get Requests|gets|0", misses AS "Misses|gets|0", sleeps AS "Sleeps|sleeps|0", spin_gets || '/0/0/0' AS "Spin & Sleeps 1->3+"
	FROM growths(s, 'latch_children', NULL::latch_children) WHERE misses > 0 OR gets > 0 ORDER BY misses DESC, sleeps DESC, gets DESC, latch, child LIMIT 30$$, NULL, NULL),

-- CPU spent in gets, which Oracle does not show
('{awr}', NULL, 'spin_time', 'Time in Latch/Mutex Spin', ARRAY['CPU time that sessions spent polling a latch or mutex that another one had. % of CPU: of DB CPU and background CPU.'], $$
	SELECT kind AS "Kind", name AS "Name", us / 1e6 AS "Spin Time|s|3", ratio(us / 1e6, seconds(s, 'DB CPU') + coalesce(seconds(s, 'background cpu time'), 0), 100) AS "% of CPU|%|1",
		spin_gets AS "Spin Gets|gets|0", ratio(us, misses) AS "Avg Spin|us/miss|2"
	FROM (SELECT 'latch', latch, spin_us, spin_gets, misses FROM growths(s, 'latches', NULL::latches)
		UNION ALL SELECT 'mutex', mutex_type, sum(spin_us), sum(spin_gets), sum(misses) FROM growths(s, 'mutexes', NULL::mutexes) GROUP BY mutex_type) x(kind, name, us, spin_gets, misses)
	WHERE us > 0 ORDER BY us DESC, kind, name$$, NULL, NULL),

('{awr}', NULL, 'dictionary_cache', 'Dictionary Cache', '{}', $$
	SELECT cache AS "Cache", gets AS "Get Requests|gets|0", ratio(misses, gets, 100) AS "Pct Miss|%|2", modifications AS "Mod Reqs|changes|0", entries AS "Final Usage|entries|0"
	FROM growths(s, 'dictionary_cache', NULL::dictionary_cache) WHERE gets + modifications > 0 ORDER BY cache$$, NULL, NULL),

('{awr}', NULL, 'library_cache', 'Object Cache', '{}', $$
	SELECT 'QUEUE' AS "Namespace", gets AS "Get Requests|gets|0", ratio(gets - hits, gets, 100) AS "Pct Miss|%|2", pins AS "Pin Requests|pins|0", ratio(pins - pin_hits, pins, 100) AS "Pct Pin Miss|%|2",
		reloads AS "Reloads|loads|0", invalidations AS "Invalidations|changes|0"
	FROM growths(s, 'object_cache', NULL::object_cache) WHERE gets + pins > 0$$, NULL, NULL),

('{awr}', NULL, 'statistics', 'Statistics', '{}', $$
	SELECT key AS "Statistic", statistic_unit(key) AS "Unit", value AS "Total|see unit|0", ratio(value, (s).elapsed) AS "Per Second|/s|2", ratio(value, (s).transactions) AS "Per Transaction|/transaction|2"
	FROM jsonb_each_text((s).stats) t(key, word), CAST(word AS numeric) value ORDER BY key$$, NULL, NULL),

('{awr}', NULL, 'parameters', 'Parameters', ARRAY['Those of pgaq that are not the default, and some of PostgreSQL.'], $$
	SELECT e.name AS "Name", coalesce(b.setting, e.setting) AS "Begin Value", CASE WHEN e.setting <> b.setting THEN e.setting END AS "End Value (if different)", e.unit AS "Unit", e.source AS "Set In"
	FROM parameters((s).later) e LEFT JOIN parameters((s).earlier) b USING (name)
	WHERE e.name NOT LIKE 'pgaq.%' OR e.setting IS DISTINCT FROM e.boot_val OR e.setting <> b.setting ORDER BY e.name$$, NULL, NULL),

('{ash}', NULL, 'ash_user_events', 'Top Events of Client Sessions', '{}', aq_internal.ash_top('event AS "Event", wait_class AS "Event Class"', '1, 2', 'foreground'), NULL, NULL),
('{ash}', NULL, 'ash_background_events', 'Top Events of Background Processes', '{}', aq_internal.ash_top('event AS "Event", wait_class AS "Event Class"', '1, 2', 'NOT foreground'), NULL, NULL),

-- % Event: share of the event in the time of all active samples; % Activity: share of this triple
('{awr,ash}', 'samples', 'top_parameters', 'Top Event P1/P2/P3 Values',
	ARRAY['Samples of users'' sessions. % Event and % Activity are both of all samples: an event with many values has a small % Activity in each.'], $$
	WITH x AS (SELECT *, concat_ws(', ', '"' || p1 || '"', '"' || p2 || '"', '"' || p3 || '"') AS triple FROM unnest(sampled) WHERE foreground),
	a AS (SELECT sum(seconds) AS seconds FROM x),
	e AS (SELECT event, sum(seconds) AS seconds FROM x WHERE wait_class <> 'ON CPU' GROUP BY event ORDER BY 2 DESC, 1 LIMIT 10),
	t AS (SELECT event, triple, min(p1text) AS p1text, min(p2text) AS p2text, min(p3text) AS p3text, sum(seconds) AS seconds,
			row_number() OVER (PARTITION BY event ORDER BY sum(seconds) DESC, triple) AS place FROM x GROUP BY event, triple)
	SELECT e.event AS "Event", ratio(e.seconds, a.seconds, 100) AS "% Event|%|2", t.triple AS "P1, P2, P3 Values", ratio(t.seconds, a.seconds, 100) AS "% Activity|%|2",
		t.p1text AS "Parameter 1", t.p2text AS "Parameter 2", t.p3text AS "Parameter 3"
	FROM e JOIN t USING (event), a WHERE t.place <= 3 ORDER BY e.seconds DESC, e.event, t.place$$, NULL, NULL),

('{ash}', NULL, 'ash_queues', 'Top Queues and Operations', '{}',
	aq_internal.ash_top('queue_name AS "Queue", operation AS "Operation", event AS "Event"', '1, 2, 3', 'foreground', 'operation IS NOT NULL'), NULL, NULL),
('{ash}', NULL, 'ash_sql', 'Top Statements and Events', ARRAY['SQL Id: queryid of pg_stat_statements; there is one when compute_query_id is on.'],
	aq_internal.ash_top('sql_id AS "SQL Id", event AS "Event"', '1, 2', 'foreground', 'sql_id IS NOT NULL'), NULL, NULL),
('{ash}', NULL, 'ash_actions', 'Top Programs and Actions', '{}', aq_internal.ash_top('program AS "Program", action AS "Action", username AS "User"', '1, 2, 3', 'foreground'), NULL, NULL),
('{ash}', NULL, 'ash_sessions', 'Top Sessions', '{}',
	aq_internal.ash_top('sid::text AS "Session", pid::text AS "Process", username AS "User", program AS "Program", event AS "Top Event"', '1, 2, 3, 4, 5', 'foreground'), NULL, NULL),
('{ash}', NULL, 'ash_blockers', 'Top Blocking Sessions', '{}',
	aq_internal.ash_top('blocker::text AS "Blocking Session", event AS "Event Caused"', '1, 2', 'true', 'blocker IS NOT NULL'), NULL, NULL),

('{rtpctx}', NULL, 'response_time', 'Response Time', ARRAY['Waits of all sessions inside pgaq, Idle left out. % RT: of CPU time and these waits.'], $$
	SELECT component AS "RT Component", seconds AS "Time|s|3", ratio(seconds, sum(seconds) OVER (), 100) AS "% RT|%|2", coalesce(ratio(seconds, waits, 1000), 0) AS "Avg Time Waited|ms|3",
		round(waits / 1000.0) AS "Wait Count|1000 waits|0"
	FROM (SELECT 1, 'CPU time: sessions and background', seconds(s, 'DB CPU') + coalesce(seconds(s, 'background cpu time'), 0), 0 WHERE seconds(s, 'DB CPU') IS NOT NULL
		UNION ALL SELECT 2, event, total_us / 1e6, waits FROM growths(s, 'waits', NULL::waits) WHERE wait_class <> 'Idle' AND waits > 0) c(place, component, seconds, waits)
	ORDER BY place, seconds DESC, component$$, 'bar|Time by component|component|time|s', $$SELECT * FROM points(lines, 0, '{time}', '{1}')$$),

('{rtpctx}', NULL, 'work', 'Work', '{}', $$
	SELECT key AS "Statistic", statistic_unit(key) AS "Unit", value AS "Interval Work|see unit|0", ratio(value, (s).elapsed) AS "Work Per Second|/s|2"
	FROM jsonb_each_text((s).stats) t(key, word), CAST(word AS numeric) value WHERE value > 0 ORDER BY key$$, NULL, NULL),

('{intervals}', NULL, 'intervals', 'Intervals', '{}', $$
	SELECT name AS "Interval", concat_ws(', ', 'snapshot ' || (i).begin_snap, moment((i).begin_time)) AS "Begin", concat_ws(', ', 'snapshot ' || (i).end_snap, moment((i).end_time)) AS "End",
		(i).elapsed / 60 AS "Elapsed|min|2", (i).db_time / 60 AS "DB Time|min|2", ratio((i).db_time, (i).elapsed) AS "Average Active|sessions|2",
		concat_ws(' to ', sessions((i).earlier), sessions((i).later)) AS "Sessions"
	FROM (VALUES ('1st', s), ('2nd', other)) v(name, i) ORDER BY name$$, NULL, NULL),

('{differences}', NULL, 'parameters', 'Parameters That Differ', '{}', $$
	SELECT name AS "Name", a.setting AS "1st", b.setting AS "2nd", b.unit AS "Unit"
	FROM parameters((s).later) a JOIN parameters((other).later) b USING (name) WHERE a.setting IS DISTINCT FROM b.setting ORDER BY name$$, NULL, NULL)
$function$;
CREATE OR REPLACE FUNCTION aq_internal.section(id text, title text, notes text[], query text, chart text, points text, s aq_internal.span, samples aq_internal.sample[], other aq_internal.span)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'aq', 'aq_internal', 'pg_temp'
AS $function$
DECLARE
	lines json;
	rows jsonb;
	drawn jsonb;
BEGIN
	-- a query without rows has one of nulls here, because of its columns
	EXECUTE format('WITH p AS MATERIALIZED (SELECT $1 AS s, $2 AS sampled, $3 AS other)
		SELECT json_agg(x ORDER BY x."#") FROM (SELECT l.* FROM p LEFT JOIN LATERAL (SELECT row_number() OVER () AS "#", q.* FROM (%s) q) l ON true) x', query)
		INTO lines USING s, samples, other;
	SELECT coalesce(jsonb_agg(c.line ORDER BY n), '[]') INTO rows FROM json_array_elements(lines) WITH ORDINALITY u(l, n),
		LATERAL (SELECT jsonb_agg(value ORDER BY i) AS line FROM json_each(l) WITH ORDINALITY e(name, value, i) WHERE i > 1) c
	WHERE l ->> '#' IS NOT NULL;
	IF points IS NOT NULL THEN
		EXECUTE format('WITH p AS MATERIALIZED (SELECT $1 AS s, $2 AS sampled, $3 AS lines) SELECT jsonb_agg(jsonb_build_array(x, label, place, series, value))
			FROM p, LATERAL (%s) q(x, label, place, series, value)', points) INTO drawn USING s, samples, rows;
	END IF;
	RETURN jsonb_build_object('id', id, 'title', title, 'notes', to_jsonb(notes), 'rows', rows, 'chart', coalesce(chart(chart, drawn), 'null'),
		'columns', columns(ARRAY(SELECT name FROM json_object_keys(lines -> 0) WITH ORDINALITY k(name, i) WHERE i > 1 ORDER BY i)));
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.sections(report text, s aq_internal.span, samples aq_internal.sample[] DEFAULT '{}'::aq_internal.sample[], other aq_internal.span DEFAULT NULL::aq_internal.span)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT jsonb_agg(aq_internal.section(l.id, l.title, l.notes, l.query, l.chart, l.points, s, samples, other) ORDER BY n)
	FROM aq_internal.report_sections() WITH ORDINALITY l(reports, needs, id, title, notes, query, chart, points, n)
	WHERE report = ANY (l.reports)
		AND CASE l.needs WHEN 'snapshots' THEN (s).end_snap IS NOT NULL WHEN 'samples' THEN report = 'ash' OR cardinality(samples) > 0 ELSE l.needs IS NULL OR (s).later ? l.needs END
$function$;
CREATE OR REPLACE FUNCTION aq_internal.columns(names text[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT jsonb_agg(jsonb_build_object('name', split_part(u.c, '|'::text, 1), 'unit', split_part(u.c, '|'::text, 2), 'digits', (COALESCE(NULLIF(split_part(u.c, '|'::text, 3), ''::text), '0'::text))::integer, 'type', CASE split_part(u.c, '|'::text, 2) WHEN ''::text THEN 'text'::text WHEN '%'::text THEN 'percent'::text ELSE 'number'::text END) ORDER BY u.n) AS jsonb_agg FROM unnest(columns.names) WITH ORDINALITY u(c, n));
CREATE OR REPLACE FUNCTION aq_internal.chart(spec text, points jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
RETURN (WITH p AS (SELECT ((p.value ->> 0))::numeric AS x, (p.value ->> 1) AS label, (p.value ->> 2) AS s, (p.value ->> 3) AS series, round(((p.value ->> 4))::numeric, 3) AS value FROM jsonb_array_elements(chart.points) p(value)), x AS (SELECT p.x, min(p.label) AS label FROM p GROUP BY p.x), s AS (SELECT s.s, s.series, (SELECT jsonb_agg(CASE WHEN (p.x IS NULL) THEN (0)::numeric ELSE p.value END ORDER BY x.x) AS jsonb_agg FROM (x LEFT JOIN p ON (((p.x = x.x) AND (p.series = s.series))))) AS series_values FROM p s WHERE (s.series IS NOT NULL) GROUP BY s.s, s.series) SELECT jsonb_build_object('kind', k.k[1], 'title', k.k[2], 'x', jsonb_build_object('name', k.k[3], 'values', (SELECT jsonb_agg(x.label ORDER BY x.x) AS jsonb_agg FROM x)), 'y', jsonb_build_object('name', k.k[4], 'unit', k.k[5]), 'series', (SELECT jsonb_agg(jsonb_build_object('name', s.series, 'values', s.series_values) ORDER BY s.s) AS jsonb_agg FROM s)) AS jsonb_build_object FROM string_to_array(chart.spec, '|'::text) k(k) WHERE ((EXISTS (SELECT FROM s)) AND ((k.k[1] <> ALL (ARRAY['area'::text, 'line'::text])) OR (SELECT (count(*) > 1) FROM x))));
CREATE OR REPLACE FUNCTION aq_internal.points(lines jsonb, label integer, series text[], columns integer[])
 RETURNS TABLE(x bigint, label_of text, s bigint, name text, value numeric)
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT u.n, u.l ->> label, c.n, c.name, (u.l ->> c.place)::numeric
	FROM jsonb_array_elements(lines) WITH ORDINALITY u(l, n), unnest(series, columns) WITH ORDINALITY c(name, place, n) WHERE u.n <= 12 OR label > 0
$function$;
CREATE OR REPLACE FUNCTION aq_internal.statistic_unit(name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (name ~ 'bytes|size'::text) THEN 'bytes'::text WHEN (name ~ 'reads'::text) THEN 'blocks'::text ELSE 'times'::text END;
CREATE OR REPLACE FUNCTION aq_internal.waited(s aq_internal.span, events text, OUT waits numeric, OUT seconds numeric, OUT share numeric, OUT active numeric)
 RETURNS record
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT sum(f.waits), round(sum(f.seconds), 3), aq_internal.ratio(sum(f.seconds), (s).db_time, 100), aq_internal.ratio(sum(f.seconds), (s).elapsed)
	FROM aq_internal.foreground(s) f WHERE f.event ~ events
$function$;
CREATE OR REPLACE FUNCTION aq_internal.advice_rules(OUT rule text, OUT query text)
 RETURNS SETOF record
 LANGUAGE sql
 IMMUTABLE ROWS 20
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
VALUES
('hot_object', $$
	SELECT severity(w.share), format('One object is hot: %s', h.object),
		format('Sessions wait for the mutexes of objects in the object cache for %s %% of DB time, and %s %% of the sleeps were for this one.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN h.property LIKE 'HOT%' THEN format('It already has copies: raise pgaq.hot_object_copies (it is %s).', setting((s).later, 'pgaq.hot_object_copies'))
			ELSE format('Mark it hot, so that sessions use copies of their own: SELECT aq.mark_hot(%L); pgaq.hot_object_copies sets their number. Also keep sessions connected: they pin a queue once.', h.object) END,
		w.waits AS "waits for mutexes of objects|waits", w.seconds AS "time|s", round(w.share, 1) AS "share|% of DB time", round(w.active, 2) AS "sessions that waited|on average",
		h.sleeps AS "sleeps for this object|sleeps", h.gets AS "gets of its mutex|gets", h.hash::text AS "hash"
	FROM waited(s, '^library cache: mutex') w,
		(SELECT coalesce(queue_name, 'hash ' || hash) AS object, property, hash, mutex_gets AS gets, mutex_sleeps AS sleeps, mutex_sleeps / sum(mutex_sleeps) OVER () AS part
			FROM growths(s, 'cached_objects', NULL::cached_objects) WHERE mutex_sleeps > 0 ORDER BY mutex_sleeps DESC LIMIT 1) h
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.5$$),

('listen_herd', $$
	SELECT severity(share), 'Messages wake the wrong sessions',
		format('%s %% of the wake-ups were false: the session checked, found no message for it, and waited again. Each costs two checks of the queue.', round(share)),
		CASE setting((s).later, 'pgaq.listen_wakeup')
			WHEN 'broadcast' THEN 'Set pgaq.listen_wakeup = targeted, so that a message wakes only sessions that listen for its consumer; or dequeue by consumer name with a wait instead of LISTEN.'
			ELSE 'Dequeue by consumer name with a wait instead of LISTEN, with fewer sessions for a consumer; check whether sessions set pgaq.listen_wakeup = broadcast.' END,
		sent AS "wake-ups sent|wake-ups", wrong AS "false|wake-ups", stat(s, 'queue wake-ups useful') AS "useful|wake-ups", dequeued AS "messages dequeued|messages",
		round(ratio(wrong, dequeued), 2) AS "false per message|wake-ups/message", setting((s).later, 'pgaq.listen_wakeup') AS "pgaq.listen_wakeup"
	FROM stat(s, 'queue wake-ups sent') sent, stat(s, 'queue wake-ups false') wrong, stat(s, 'queue messages dequeued') dequeued, ratio(wrong, sent, 100) share
	WHERE sent >= 100 AND share >= 30 AND wrong >= dequeued / 2$$),

('one_shard', $$
	SELECT severity(w.share), format('One shard of queue %s is busy', h.queue_name),
		format('Sessions wait for the latch of a shard for %s %% of DB time, and %s %% of the messages of this queue went into one of its shards.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN q.shards > 1 THEN 'A session enqueues into one shard: enqueue from more sessions (a connection pooler in transaction mode may use only one), or dequeue more messages with each call.'
			ELSE 'Create the queue with more shards, or change them while it is not used yet, with aq.set_shards; or enqueue and dequeue arrays.' END,
		w.waits AS "waits for latches of shards|waits", w.seconds AS "time|s", round(w.share, 1) AS "share|% of DB time", h.enqueued AS "messages into the shard|messages",
		round(h.part * 100, 1) AS "share of the queue|% of messages", q.shards AS "shards of the queue|shards", h.shards AS "shards in use|shards"
	FROM waited(s, '^latch: shard stream$') w,
		(SELECT queue_name, enqueued, enqueued / sum(enqueued) OVER q AS part, count(*) OVER q AS shards FROM growths(s, 'shard', NULL::shards)
			WHERE enqueued > 0 WINDOW q AS (PARTITION BY queue_name) ORDER BY enqueued DESC LIMIT 1) h
		LEFT JOIN jsonb_to_recordset((s).later -> 'queue') q(queue_name text, shards integer) USING (queue_name)
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.8$$),

('message_cache', $$
	SELECT severity(greatest(w.share, missed)), 'The message cache is too small',
		format('Partitions are evicted before their messages are taken: %s were evicted and %s loaded%s.', evicted, loaded,
			CASE WHEN w.share >= 1 THEN format('; sessions waited for memory for %s %% of DB time', round(w.share, 1)) ELSE '' END),
		format('Raise pgaq.message_cache_size (it is %s) and restart; or find out why the backlog grows: more consumers, or messages in larger batches.', pg_size_pretty(c.total_bytes)),
		evicted AS "partitions evicted|partitions", loaded AS "partitions loaded|partitions", round(missed, 2) AS "misses|% of checks", c.total_bytes AS "size|bytes", c.used_bytes AS "used at the end|bytes",
		c.resident_partitions AS "partitions in the cache|partitions", c.known_partitions AS "partitions in use|partitions", w.seconds AS "waits for memory|s"
	FROM waited(s, '^aq: (message cache full|partition load)$') w, jsonb_populate_recordset(NULL::message_cache, (s).later -> 'message_cache') c,
		stat(s, 'message cache partitions evicted') evicted, stat(s, 'message cache partitions loaded') loaded,
		ratio(stat(s, 'message cache misses'), stat(s, 'message cache misses') + stat(s, 'message cache hits'), 100) missed
	WHERE (evicted >= 4 AND loaded >= 4 AND missed >= 1) OR (w.share >= 5 AND w.active >= 0.05)$$),

-- consumers that are more than two partitions behind, while others of the topic are not, and that do not catch up
('slow_subscriber', $$
	SELECT CASE WHEN c.dequeued = 0 THEN 'high' ELSE 'medium' END, format('Subscriber %s holds back topic %s', c.consumer, c.queue_name),
		format('It is %s messages behind%s, others of the topic at most %s. A partition is reused only when all its subscribers have finished it.', c.lag,
			CASE WHEN c.dequeued = 0 THEN ' and has taken none' END, c.fastest),
		format('Let more sessions dequeue for it, or more messages with each call; if they are not needed, SELECT aq.unsubscribe(%L, %L).', c.queue_name, c.consumer),
		c.lag_before AS "lag at begin|messages", c.lag AS "lag at end|messages", c.fastest AS "smallest lag of the topic|messages", round(ratio(c.enqueued, (s).elapsed), 1) AS "for it|messages/s",
		round(ratio(c.dequeued, (s).elapsed), 1) AS "done|messages/s", p.partitions AS "partitions of the topic|partitions"
	FROM (SELECT e.*, coalesce(b.lag, 0) AS lag_before, min(e.lag) OVER (PARTITION BY e.queue_name) AS fastest
			FROM growths(s, 'subscriber', NULL::subscribers) e LEFT JOIN jsonb_populate_recordset(NULL::subscribers, (s).earlier -> 'subscriber') b USING (queue_name, consumer)
			WHERE e.consumer IS NOT NULL) c
		LEFT JOIN jsonb_to_recordset((s).later -> 'partition') p(queue_name text, partitions integer) USING (queue_name)
	WHERE c.lag >= 32768 AND c.lag >= c.lag_before AND c.fastest <= c.lag / 10 ORDER BY c.lag DESC LIMIT 3$$),

('xmin_holder', $$
	SELECT CASE WHEN dead >= 1000000 OR done >= 64 THEN 'high' ELSE 'medium' END, format('An old %s delays the reuse of space', x.kind),
		format('%s: its snapshot is older than the last dequeue of %s consumed partitions%s. They wait for it, or for pgaq.reuse_grace.', x.who, done,
			CASE WHEN dead > 0 THEN format(', and queue tables have %s dead rows', dead) ELSE '' END),
		CASE x.kind WHEN 'session' THEN 'End the transaction, or the session (pg_terminate_backend); keep transactions short; set idle_in_transaction_session_timeout.'
			WHEN 'prepared transaction' THEN 'COMMIT PREPARED or ROLLBACK PREPARED it.'
			ELSE 'Find out why its client does not advance; drop the slot if it is not used (pg_drop_replication_slot).' END,
		CASE x.kind WHEN 'session' THEN x.who END AS "session", CASE x.kind WHEN 'prepared transaction' THEN x.who END AS "prepared transaction",
		CASE x.kind WHEN 'replication slot' THEN x.who END AS "replication slot", x.seconds AS "open for|s", x.xmin_age AS "transactions begun since|transactions", done AS "partitions that wait|partitions",
		dead AS "dead rows in queue tables|rows"
	FROM (SELECT * FROM jsonb_to_recordset((s).later -> 'xmin') h(kind text, who text, xmin_age bigint, seconds numeric) ORDER BY xmin_age DESC, seconds DESC LIMIT 1) x,
		(SELECT coalesce(sum(p.done), 0) AS done, min(p.done_since) AS since FROM jsonb_to_recordset((s).later -> 'partition') p(done bigint, done_since timestamptz)) p,
		(SELECT coalesce(sum(t.dead_rows), 0) AS dead FROM jsonb_to_recordset((s).later -> 'queue_table') t(dead_rows bigint)) d
	WHERE (done >= 4 AND (x.seconds IS NULL OR (s).end_time - make_interval(secs => x.seconds::double precision) <= p.since)) OR (dead >= 50000 AND x.seconds >= 60)$$),

('commit_bound', $$
	SELECT severity(share - 30), 'Sessions spend their time committing',
		format('%s %% of DB time is in commits, and a transaction has %s messages on average.', round(share), round(batch, 1)),
		'Batch more: enqueue with aq.enqueue_array, dequeue with max_messages, commit once for many. If you can afford to lose the last commits in a crash, set synchronous_commit = off.',
		round(seconds, 3) AS "time in commits|s", round(share, 1) AS "share|% of DB time", commits AS "commits with messages|transactions", round(ratio(seconds, commits, 1000), 3) AS "average commit|ms",
		round(batch, 2) AS "messages per transaction|messages", setting((s).later, 'synchronous_commit') AS "synchronous_commit"
	FROM seconds(s, 'queue commit elapsed time') seconds, stat(s, 'queue commits') commits, ratio(seconds, (s).db_time, 100) share,
		ratio(stat(s, 'queue messages enqueued') + stat(s, 'queue messages dequeued'), commits) batch
	WHERE share >= 40 AND batch <= 2 AND ratio(seconds, (s).elapsed) >= 0.2$$),

('flow_control', $$
	SELECT severity(share), 'Enqueuers of buffered messages wait for consumers',
		format('They waited for %s %% of DB time, because a consumer had a backlog of pgaq.buffered_message_limit buffered messages.', round(share, 1)),
		'Look at messages in aq.buffered_queues: let more sessions dequeue for the consumer with the largest backlog, or more messages with each call; aq.unsubscribe it if it is not needed; or raise the limit.',
		waits AS "waits|waits", seconds AS "time|s", round(share, 1) AS "share|% of DB time", round(active, 2) AS "sessions that waited|on average",
		setting((s).later, 'pgaq.buffered_message_limit') AS "pgaq.buffered_message_limit|messages"
	FROM waited(s, '^Streams AQ: enqueue blocked due to flow control$') WHERE share >= 5 AND active >= 0.05$$),

-- databases that have waited for their worker for some time, or whose worker ends with an error
('worker', $$
	SELECT 'high', format('Database %s has no background worker', database),
		CASE state WHEN 'waiting' THEN format('All background worker slots are in use, and it has waited for one for %s s. Until it gets one, delays, expirations and prepared transactions wait there.', round(seconds))
			ELSE format('Its worker ended with an error: %s.', coalesce(error, 'see the server log')) END,
		hint, state AS "state in aq.workers", round(seconds, 1) AS "for|s"
	FROM jsonb_populate_recordset(NULL::workers, (s).later -> 'worker'), extract(epoch FROM (s).end_time - since) seconds WHERE state = 'failed' OR seconds >= 5 ORDER BY seconds DESC LIMIT 5$$),

-- links that fail, and links for which there is no background worker
('link', $$
	SELECT 'high', format('Link %s does not work', server),
		CASE WHEN problem IS NOT NULL THEN format('What is to be sent waits: %s.', problem)
			ELSE format('It has failed %s times in a row, with SQLSTATE %s: %s.', failures, sqlstate, coalesce(error, 'no message')) END,
		CASE WHEN problem IS NOT NULL THEN 'Raise max_worker_processes, if no slot is free; otherwise the server log says why the worker ends.'
			ELSE coalesce(hint, 'Remove the cause.') || format(' To try it at once: SELECT * FROM aq.check_link(%L).', server) END,
		state AS "state in aq.links", failures AS "failures|in a row"
	FROM jsonb_populate_recordset(NULL::links, (s).later -> 'link') ORDER BY failures DESC, server LIMIT 5$$),

-- nodes that do not answer, and copies of nodes
('node', $$
	SELECT 'high', CASE state WHEN 'copy' THEN 'This database is a copy of a node' ELSE format('Node %s is %s', server, state) END,
		CASE state WHEN 'copy' THEN format('It is a copy of node %s, and does not act as it.', node_id)
			ELSE format('It %s; %s heartbeats in a row have failed, with SQLSTATE %s: %s.', coalesce('last answered at ' || last_seen, 'has not answered since this server was started'),
				failures, sqlstate, coalesce(error, 'no message')) END,
		coalesce(hint, format('Remove the cause. To try the link at once: SELECT * FROM aq.check_link(%L).', server)), state AS "state in aq.nodes", failures AS "failures|in a row"
	FROM jsonb_populate_recordset(NULL::nodes, (s).later -> 'node') WHERE state IN ('unreachable', 'refused', 'copy') ORDER BY failures DESC, server LIMIT 5$$),

-- distributed queues whose messages are not sent to a node
('node_queue', $$
	SELECT 'high', format('Messages of distributed queues are not sent to node %s', server), format('They wait: %s.', rtrim(queue_error, '.')),
		'Remove the cause, on this node or on that one; it is tried again every second.', queue_error AS "queue_error in aq.nodes"
	FROM jsonb_populate_recordset(NULL::nodes, (s).later -> 'node') WHERE queue_error IS NOT NULL ORDER BY server LIMIT 5$$)
$function$;
CREATE OR REPLACE FUNCTION aq_internal.advice(s aq_internal.span)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'aq', 'aq_internal', 'pg_temp'
AS $function$
DECLARE
	found jsonb := '[]';
	r record;
	cells jsonb;
BEGIN
	FOR r IN SELECT * FROM advice_rules() LOOP
		FOR cells IN EXECUTE format('WITH p AS MATERIALIZED (SELECT $1 AS s) SELECT (SELECT jsonb_agg(jsonb_build_array(split_part(name, ''|'', 1), value, split_part(name, ''|'', 2)) ORDER BY i)
				FROM json_each(row_to_json(q)) WITH ORDINALITY e(name, value, i) WHERE i <= 4 OR json_typeof(value) <> ''null'')
			FROM p, LATERAL (%s) q', r.query) USING s LOOP
			found := found || jsonb_build_object('rule', r.rule, 'severity', cells #> '{0,1}', 'title', cells #> '{1,1}', 'why', cells #> '{2,1}', 'do', cells #> '{3,1}',
				'figures', jsonb_path_query_array(cells, '$[4 to last]'));
		END LOOP;
	END LOOP;
	RETURN (SELECT coalesce(jsonb_agg(a ORDER BY array_position('{high,medium,low}', a ->> 'severity'), n), '[]') FROM jsonb_array_elements(found) WITH ORDINALITY u(a, n));
END $function$;
CREATE OR REPLACE FUNCTION aq.report_awr(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL::bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	s aq_internal.span := aq_internal.span(coalesce(dbid, aq_internal.dbid()), begin_snap, end_snap);
BEGIN
	RETURN jsonb_build_object('kind', 'awr', 'title', format('Activity Report, Snapshots %s to %s', begin_snap, end_snap), 'header', aq_internal.header(s), 'advice', aq_internal.advice(s),
		'sections', aq_internal.sections('awr', s, aq_internal.samples(s.dbid, s.begin_time, s.end_time)));
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.rtpctx(s aq_internal.span, title text)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
RETURN jsonb_build_object('kind', 'rtpctx', 'title', title, 'header', aq_internal.header(s), 'advice', aq_internal.advice(s), 'sections', aq_internal.sections('rtpctx'::text, s));
CREATE OR REPLACE FUNCTION aq.report_rtpctx(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL::bigint)
 RETURNS jsonb
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
RETURN aq_internal.rtpctx(aq_internal.span(COALESCE(dbid, aq_internal.dbid()), begin_snap, end_snap), format('Response Time Report, Snapshots %s to %s'::text, begin_snap, end_snap));
CREATE OR REPLACE FUNCTION aq.report_ash(begin_time timestamp with time zone, end_time timestamp with time zone DEFAULT clock_timestamp(), dbid bigint DEFAULT NULL::bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	s aq_internal.span;
	samples aq_internal.sample[];
BEGIN
	IF (begin_time < end_time) IS NOT TRUE THEN
		RAISE invalid_parameter_value USING MESSAGE = 'the report must begin before it ends', HINT = 'Specify begin_time and end_time, e.g. now() - interval ''15 minutes''.';
	END IF;
	IF NOT pg_is_in_recovery() THEN
		PERFORM aq_internal.ash_flush();
	END IF;
	s.dbid := coalesce(dbid, aq_internal.dbid());
	s.begin_time := begin_time;
	s.end_time := end_time;
	s.elapsed := extract(epoch FROM end_time - begin_time);
	samples := aq_internal.samples(s.dbid, begin_time, end_time);
	RETURN jsonb_build_object('kind', 'ash', 'title', 'Active Sessions Report', 'advice', '[]'::jsonb,
		'header', jsonb_build_array(jsonb_build_array('Database', current_database()), jsonb_build_array('DB Id', s.dbid::text),
			jsonb_build_array('Begin', aq_internal.moment(begin_time)), jsonb_build_array('End', aq_internal.moment(end_time)), jsonb_build_array('Elapsed', aq_internal.minutes(s.elapsed)),
			jsonb_build_array('Samples', cardinality(samples) || ' active sessions'),
			jsonb_build_array('Each Stands For', coalesce((SELECT string_agg(DISTINCT trim_scale(x.seconds)::text, ' or ') || ' s' FROM unnest(samples) x), '-')),
			jsonb_build_array('Average Active Sessions', to_char((SELECT coalesce(sum(x.seconds), 0) FROM unnest(samples) x) / s.elapsed, 'FM999,990.00') || ' sessions')) || aq_internal.samples_note(s.dbid, begin_time, end_time),
		'sections', aq_internal.sections('ash', s, samples));
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.diff_section(one jsonb, two jsonb, keys text[], figures text[], seconds numeric[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	WITH f AS (
		SELECT n, c ->> 'name' AS name, spec LIKE '%*' AS rate, (c ->> 'unit') || CASE WHEN spec LIKE '%*' THEN '/s' ELSE '' END AS unit, greatest((c ->> 'digits')::integer, 2) AS digits
		FROM unnest(figures) WITH ORDINALITY u(spec, n) JOIN jsonb_array_elements(coalesce(two, one) -> 'columns') c ON c ->> 'name' = rtrim(spec, '*')),
	l AS (
		SELECT w, n AS place, jsonb_object_agg(c ->> 'name', line -> (i - 1)::integer) AS cells
		FROM unnest(ARRAY[one, two]) WITH ORDINALITY v(section, w), jsonb_array_elements(section -> 'rows') WITH ORDINALITY r(line, n),
			jsonb_array_elements(section -> 'columns') WITH ORDINALITY u(c, i) GROUP BY w, n),
	k AS (SELECT *, (SELECT jsonb_agg(cells -> key ORDER BY i) FROM unnest(keys) WITH ORDINALITY u(key, i)) AS key FROM l),
	p AS (SELECT key, a.cells AS one, b.cells AS two, row_number() OVER (ORDER BY b.place, a.place) AS n FROM (SELECT * FROM k WHERE w = 1) a FULL JOIN (SELECT * FROM k WHERE w = 2) b USING (key)),
	lines AS (
		SELECT coalesce(jsonb_agg(p.key || d.cells ORDER BY p.n), '[]') AS lines
		FROM p, LATERAL (SELECT jsonb_agg(v ORDER BY f.n, m) AS cells
			FROM f, LATERAL (SELECT CASE WHEN f.unit LIKE '_%/s' OR f.name ILIKE ANY ('{Avg Active,\% DB time,\% of DB time}') THEN 0 END AS missing) o,
				LATERAL (SELECT CASE WHEN p.one IS NULL THEN missing ELSE (p.one ->> f.name)::numeric / CASE WHEN f.rate THEN seconds[1] ELSE 1 END END AS x,
					CASE WHEN p.two IS NULL THEN missing ELSE (p.two ->> f.name)::numeric / CASE WHEN f.rate THEN seconds[2] ELSE 1 END END AS y) v,
				unnest(ARRAY[x, y, aq_internal.ratio(y - x, x, 100)]) WITH ORDINALITY u(v, m)) d)
	SELECT coalesce(two, one) || jsonb_build_object('rows', lines, 'notes', jsonb_build_array('Diff: of the second against the first; empty when the first is 0 or one of them is not known.'),
		'columns', aq_internal.columns(keys) || (SELECT jsonb_agg(c || '{"type": "number"}' ORDER BY f.n, m)
			FROM f, jsonb_array_elements(aq_internal.columns(ARRAY[format('%s 1st|%s|%s', name, unit, digits), format('%s 2nd|%s|%s', name, unit, digits), 'Diff|%|1'])) WITH ORDINALITY u(c, m)),
		-- if units begin with a slash, each row has its own unit, so the rows have no common scale
		'chart', (SELECT coalesce(aq_internal.chart(concat_ws('|', 'bar', name, keys[1], name, unit),
				(SELECT jsonb_agg(jsonb_build_array(x, label_of, s, o.name, value)) FROM aq_internal.points(lines, 0, '{1st,2nd}', ARRAY[cardinality(keys), cardinality(keys) + 1]) o)), 'null')
			FROM f WHERE n = 1 AND unit NOT LIKE '/%'))
	FROM lines WHERE coalesce(two, one) IS NOT NULL
$function$;
CREATE OR REPLACE FUNCTION aq_internal.diff_sections()
 RETURNS TABLE(id text, keys text[], figures text[])
 LANGUAGE sql
 IMMUTABLE ROWS 12
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
VALUES ('load_profile', '{""}'::text[], '{Per Second,Per Transaction}'::text[]),
	('top_events', '{Event,Wait Class}', '{Total Wait Time*,Waits*,Avg Wait,% DB time}'),
	('wait_classes', '{Wait Class}', '{Avg Active,% DB time}'),
	('time_model', '{Statistic}', '{Time*,% of DB Time}'),
	('sql_elapsed', '{SQL Id,SQL Text}', '{Elapsed Time*,Executions*,Elapsed per Exec}'),
	('queues', '{Queue}', '{Enqueue Rate,Done Rate,Avg Latency,Backlog End}'),
	('subscribers', '{Queue,Consumer}', '{Done Rate,Avg Latency,Lag End}'),
	('wakeups', '{Wake-ups}', '{Per Second,% of Sent,Per Message Dequeued}'),
	('mutex_sleeps', '{Mutex Type,Location}', '{Sleeps*,Wait Time*}'),
	('latch_activity', '{Latch Name}', '{Get Requests*,Pct Get Miss,Wait Time*}'),
	('dictionary_cache', '{Cache}', '{Get Requests*,Pct Miss}'),
	('statistics', '{Statistic}', '{Per Second,Per Transaction}')
$function$;
CREATE OR REPLACE FUNCTION aq.report_awr_diff(begin_snap_1 integer, end_snap_1 integer, begin_snap_2 integer, end_snap_2 integer, dbid_1 bigint DEFAULT NULL::bigint, dbid_2 bigint DEFAULT NULL::bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	one aq_internal.span := aq_internal.span(coalesce(dbid_1, aq_internal.dbid()), begin_snap_1, end_snap_1);
	two aq_internal.span := aq_internal.span(coalesce(dbid_2, aq_internal.dbid()), begin_snap_2, end_snap_2);
	first jsonb := (SELECT jsonb_object_agg(l ->> 'id', l) FROM jsonb_array_elements(aq_internal.sections('awr', one)) l);
	second jsonb := (SELECT jsonb_object_agg(l ->> 'id', l) FROM jsonb_array_elements(aq_internal.sections('awr', two)) l);
BEGIN
	RETURN jsonb_build_object('kind', 'awr_diff', 'title', format('Activity Comparison, Snapshots %s to %s and %s to %s', begin_snap_1, end_snap_1, begin_snap_2, end_snap_2),
		'header', aq_internal.diff_header(one, two), 'advice', aq_internal.advice(two),
		'sections', aq_internal.sections('intervals', one, '{}', two)
			|| (SELECT jsonb_agg(aq_internal.diff_section(first -> d.id, second -> d.id, d.keys, d.figures, ARRAY[one.elapsed, two.elapsed]) ORDER BY n)
				FROM aq_internal.diff_sections() WITH ORDINALITY d(id, keys, figures, n) WHERE first ? d.id OR second ? d.id)
			|| aq_internal.sections('differences', one, '{}', two));
END $function$;
CREATE OR REPLACE FUNCTION aq_internal.text_wrap(words text, width integer, indent text)
 RETURNS SETOF text
 LANGUAGE sql
 IMMUTABLE
RETURN string_to_table(rtrim(regexp_replace(aq_internal.report_text(words), format('(.{1,%s})(\s+|$)'::text, width), (indent || '\1
'::text), 'g'::text), '
'::text), '
'::text);
CREATE OR REPLACE FUNCTION aq_internal.text_table(section jsonb)
 RETURNS SETOF text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	WITH c AS (SELECT c, n, c ->> 'type' IN ('number', 'percent') AS is_right FROM jsonb_array_elements(section -> 'columns') WITH ORDINALITY u(c, n)),
	cells AS (
		SELECT -2 AS line, n, c ->> 'name' AS cell FROM c UNION ALL SELECT -1, n, coalesce('(' || nullif(c ->> 'unit', '') || ')', '') FROM c
		UNION ALL SELECT l.n, c.n, aq_internal.text_cell(l.l -> (c.n - 1)::integer, c.c) FROM jsonb_array_elements(section -> 'rows') WITH ORDINALITY l(l, n), c),
	w AS (SELECT n, max(length(cell))::integer AS width FROM cells GROUP BY n)
	SELECT rtrim(string_agg(format('%*s', CASE WHEN is_right THEN width ELSE -width END, cell), '  ' ORDER BY n))
	FROM (TABLE cells UNION ALL SELECT 0, n, repeat('-', width) FROM w) l JOIN w USING (n) JOIN c USING (n)
	WHERE jsonb_array_length(section -> 'rows') > 0 GROUP BY line HAVING line > 0 OR max(cell) <> '' ORDER BY line
$function$;
CREATE OR REPLACE FUNCTION aq_internal.text_lines(model jsonb)
 RETURNS SETOF text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	part jsonb;
BEGIN
	RETURN QUERY VALUES (model ->> 'title'), (repeat('=', length(model ->> 'title')));
	RETURN QUERY SELECT format('%s  %s', rpad(h ->> 0, (max(length(h ->> 0)) OVER ())::integer), h ->> 1) FROM jsonb_array_elements(model -> 'header') h;
	IF model -> 'advice' <> '[]' THEN
		RETURN QUERY VALUES (''), ('Advice'), ('======');
		FOR part IN SELECT a FROM jsonb_array_elements(model -> 'advice') a LOOP
			RETURN NEXT format('[%s] %s', part ->> 'severity', part ->> 'title');
			RETURN QUERY SELECT l FROM unnest(ARRAY[format('Why: %s', part ->> 'why'), format('Do: %s', part ->> 'do')]) words, aq_internal.text_wrap(words, 110, '    ') l;
			RETURN QUERY SELECT format('    - %s: %s', f ->> 0, concat_ws(' ', aq_internal.advice_figure(f -> 1), nullif(f ->> 2, ''))) FROM jsonb_array_elements(part -> 'figures') f;
		END LOOP;
	END IF;
	FOR part IN SELECT s FROM jsonb_array_elements(model -> 'sections') s LOOP
		RETURN QUERY VALUES (''), (part ->> 'title'), (repeat('=', length(part ->> 'title')));
		RETURN QUERY SELECT l FROM jsonb_array_elements_text(part -> 'notes') note, aq_internal.text_wrap(note, 118, '  ') l;
		RETURN QUERY SELECT aq_internal.text_table(part);
		IF NOT FOUND THEN
			RETURN NEXT '(none)';
		END IF;
	END LOOP;
END $function$;
CREATE OR REPLACE FUNCTION aq.report_text(model jsonb)
 RETURNS SETOF text
 LANGUAGE sql
 IMMUTABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
	SELECT aq_internal.report_text(line) FROM aq_internal.text_lines(aq_internal.report_checked(model)) line
$function$;
CREATE OR REPLACE FUNCTION aq.report_html(model jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT format('<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>%s</title></head>
<body><pre>%s</pre></body>
</html>
'::text, min(l.line) FILTER (WHERE (l.n = 1)), string_agg(l.line, '
'::text ORDER BY l.n)) AS format FROM (SELECT replace(replace(replace(r.t, '&'::text, '&amp;'::text), '<'::text, '&lt;'::text), '>'::text, '&gt;'::text) AS line, r.n FROM aq.report_text(report_html.model) WITH ORDINALITY r(t, n)) l);
DROP FUNCTION aq_internal.html_advice(pg_catalog.jsonb);
DROP FUNCTION aq_internal.html_table(pg_catalog.jsonb);
DROP FUNCTION aq_internal.html_cell(pg_catalog.jsonb,pg_catalog.jsonb);
DROP FUNCTION aq_internal.html_style();
DROP FUNCTION aq_internal.chart(pg_catalog.jsonb);
DROP FUNCTION aq_internal.chart_bars(pg_catalog.jsonb);
DROP FUNCTION aq_internal.chart_upright(pg_catalog.jsonb);
DROP FUNCTION aq_internal.chart_points(pg_catalog.jsonb);
DROP FUNCTION aq_internal.chart_color(pg_catalog.text,bigint);
DROP FUNCTION aq_internal.chart_step(numeric);
DROP FUNCTION aq_internal.chart_number(numeric);
DROP FUNCTION aq_internal.chart_width(pg_catalog.text);
DROP FUNCTION aq_internal.html(pg_catalog.text);
DROP FUNCTION aq_internal.text_advice(pg_catalog.jsonb);
DROP FUNCTION aq_internal.text_fit(pg_catalog.text,integer,pg_catalog.text);
DROP FUNCTION aq_internal.diff_rows(pg_catalog.jsonb,pg_catalog.text[],pg_catalog.text[],numeric);
DROP FUNCTION aq_internal.diff_section(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text,pg_catalog.text[],pg_catalog.text[],numeric[]);
DROP FUNCTION aq_internal.with_samples(pg_catalog.jsonb,aq_internal.sample[]);
DROP FUNCTION aq_internal.ash_sections(aq_internal.sample[],timestamp with time zone,timestamp with time zone);
DROP FUNCTION aq_internal.ash_top(aq_internal.sample[],numeric,pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text[]);
DROP FUNCTION aq_internal.advice_node_queue(aq_internal.span);
DROP FUNCTION aq_internal.advice_node(aq_internal.span);
DROP FUNCTION aq_internal.advice_link(aq_internal.span);
DROP FUNCTION aq_internal.advice_worker(aq_internal.span);
DROP FUNCTION aq_internal.advice_flow_control(aq_internal.span);
DROP FUNCTION aq_internal.advice_commits(aq_internal.span);
DROP FUNCTION aq_internal.advice_xmin(aq_internal.span);
DROP FUNCTION aq_internal.advice_slow_subscriber(aq_internal.span);
DROP FUNCTION aq_internal.advice_message_cache(aq_internal.span);
DROP FUNCTION aq_internal.advice_one_shard(aq_internal.span);
DROP FUNCTION aq_internal.advice_listen_herd(aq_internal.span);
DROP FUNCTION aq_internal.advice_hot_object(aq_internal.span);
DROP FUNCTION aq_internal.advise(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.jsonb);
DROP FUNCTION aq_internal.shard_growths(aq_internal.span);
DROP FUNCTION aq_internal.consumer_growths(aq_internal.span);
DROP FUNCTION aq_internal.object_growths(aq_internal.span);
DROP FUNCTION aq_internal.bucket(numeric);
DROP FUNCTION aq_internal.was_on(aq_internal.span,pg_catalog.text);
DROP FUNCTION aq_internal.report_load_profile(aq_internal.span);
DROP FUNCTION aq_internal."when"(timestamp with time zone);
DROP FUNCTION aq_internal."time"(aq_internal.span,pg_catalog.text);
DROP FUNCTION aq_internal.chart_of(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.text,pg_catalog.text,pg_catalog.jsonb);
DROP FUNCTION aq_internal.buffered_messages(integer,pg_catalog.uuid,pg_catalog.text);
DROP FUNCTION aq_internal.classic_messages(integer,pg_catalog.uuid,pg_catalog.text,bigint,bigint);
DROP FUNCTION aq_internal.messages(integer,pg_catalog.uuid,pg_catalog.text,integer,bigint,bigint);
COMMENT ON SCHEMA aq_jms IS 'Advanced Queuing: functions of the Jakarta Messaging provider, and its messages for programs in SQL';
REVOKE ALL ON SCHEMA aq_jms FROM PUBLIC;
GRANT CREATE, USAGE ON SCHEMA aq_jms TO CURRENT_USER; GRANT USAGE ON SCHEMA aq_jms TO PUBLIC; GRANT USAGE ON SCHEMA aq_jms TO pgaq;
COMMENT ON COLUMN aq_internal.queue.rate IS 'how many messages each consumer gets in a time; null: no limit';
COMMENT ON COLUMN aq_internal.queue.max_running IS 'how many messages of each consumer may be in work at a time; null: no limit';
COMMENT ON COLUMN aq_internal.queue.on_full IS 'an enqueue into the full queue: wait, at most pgaq.flow_control_timeout, or error';
COMMENT ON COLUMN aq_internal.queue.max_depth IS 'number of unfinished messages of a consumer with which the queue is full; null: it is never full';
COMMENT ON COLUMN aq_internal.queue.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq_internal.queue.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq_internal.queue.paused IS 'since when it is paused for all consumers, by aq.pause; null: it is not';
COMMENT ON COLUMN aq_internal.queue.default_expiration IS 'expiration of messages that are enqueued without one; null: they never expire';
COMMENT ON COLUMN aq_internal.queue.default_delay IS 'delay of messages that are enqueued without one';
COMMENT ON COLUMN aq_internal.queue.default_priority IS 'priority of messages that are enqueued without one; null: 1';
COMMENT ON COLUMN aq_internal.subscriber.rate IS 'how many messages it gets in a time; null: as the queue says';
COMMENT ON COLUMN aq_internal.subscriber.max_running IS 'how many of its messages may be in work at a time; null: as the queue says';
COMMENT ON COLUMN aq_internal.subscriber.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq_internal.subscriber.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq_internal.subscriber.paused IS 'since when it is paused, by aq.pause; null: it is not';
COMMENT ON TABLE aq_internal.consumer_grant IS 'Privileges on single consumers of topics; they count for roles that have REFERENCES on the view aq_data.q<queue_id>';
COMMENT ON COLUMN aq_internal.schedule.paused IS 'by aq.stop_schedule';
COMMENT ON COLUMN aq_internal.propagation_batch.keys IS 'keys; null: none has one';
COMMENT ON TABLE aq_internal.node_identity IS 'The identity of this database as a node: one row, made by the first call of aq.add_node';
COMMENT ON COLUMN aq_internal.node_held.origin IS 'identity of the node to which it belongs; this node: the messages were adopted, see aq.remove_node';
COMMENT ON FUNCTION aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text) IS 'Create a queue, started, owned by the current role; returns its name.
payload_type: jsonb, text, bytea, xml or a composite type
multiple_consumers: true makes a topic
shards: 1 to 32 (null: pgaq.default_shards)
max_retries: number of failed attempts that are retried; the next one moves the message to the
  exception queue (null: no limit; at most 255 in a sharded queue)
retry_delay: delay after the first failed attempt (a rolled back dequeue, or aq.release)
retry_delay_factor: multiplies the delay after each further failed attempt (1: fixed delay)
retry_delay_max: largest delay (null: no limit); a longer retry_delay does not grow
retry_jitter: largest random addition to the delay, as a fraction of it, 0 to 1
retention: time for which consumed messages remain visible
exception_queue: gets messages that have expired, were rejected, or have failed too often; none: such
  messages are dropped; null: a new queue, named after the queue with the suffix _exceptions, with
  the same owner and privileges, or the exception queue of the queue table
queue_table: null for a sharded queue, or a queue table, which determines payload_type and
  multiple_consumers and has an exception queue for it
queue_type: normal; exception (not started; takes only messages that other queues could not deliver,
  and has no exception queue unless one is named); or non_persistent (messages are not stored and
  cannot be dequeued: the registrations of aq.register get them; retries, retention,
  exception_queue, shards and queue_table do not apply)
if_not_exists: true does nothing if a queue of this name exists, whatever its settings
distributed: true shares the queue with the distributed queues of this name on other nodes: consumers
  of any node get messages of all nodes
default_priority: priority of messages that are enqueued without one (null: 1)
default_delay: delay of messages that are enqueued without delay and run_at
default_expiration: expiration of messages that are enqueued without one (null: they never expire)
max_depth: number of messages that are committed and not finished, in a topic by one consumer, with
  which the queue is full (null: it is never full)
on_full: what an enqueue into the full queue does: wait until there is room, at most
  pgaq.flow_control_timeout, or error: fail at once
max_running: how many messages of each consumer may be in work at a time: taken by open or prepared
  transactions, or leased (null: no limit); not for queue tables and distributed queues
rate: how many messages each consumer gets in a time (null: no limit): a number, a slash, and a time in
  milliseconds, seconds, minutes, hours or days, such as ''100/minute'' or ''5/10 seconds''. At once it
  gets at most that number, or as many as ''100/minute burst 10'' says. A message that is dequeued
  again after a rollback counts again; not for queue tables and distributed queues
Errors 0A000, 22004, 22023, 42602, 42704, 42710, 42809';
REVOKE ALL ON ROUTINE aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq.create_queue(pg_catalog.text,pg_catalog.regtype,boolean,integer,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,boolean,double precision,interval,double precision,boolean,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text) TO CURRENT_USER;
COMMENT ON FUNCTION aq.drop_queue_table(pg_catalog.text,boolean) IS 'Drop a queue table, its exception queue and the views on it.
force: true also drops its queues and their messages, and ends waits for these in other sessions at
  once, as aq.drop_queue does
Waits for transactions that use them. For the queue table''s owner.
Errors 2BP01, 42704, 55000';
COMMENT ON FUNCTION aq.alter_queue(pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.regrole,pg_catalog.text,double precision,interval,double precision,integer,interval,interval,bigint,pg_catalog.text,integer,pg_catalog.text) IS 'Change a queue; null leaves a setting unchanged.
max_retries: -1 for no limit; otherwise at most 255 in a sharded queue
retry_delay_max: ''-1'' for no limit
default_priority: -1 for no default
default_expiration: ''-1'' for no default
max_depth: -1 for no limit
max_running: -1 for no limit; a lower limit takes effect as messages in work end
rate: none for no limit
exception_queue: none drops messages that fail
comment: '''' removes it
new_name: also renames the exception queue that was made for the queue and is named after it
new_owner: also owns that exception queue
Messages that wait for their retry delay keep it. For the queue''s owner.
Errors 0A000, 22004, 22023, 42501, 42602, 42704, 42710, 42809';
COMMENT ON FUNCTION aq.drop_queue(pg_catalog.text,boolean) IS 'Drop a queue, its tables and the exception queue that was made for it.
force: true drops them even if one of the queues holds messages, and ends waits for their messages in
  other sessions at once, with error 42704, also if the drop is rolled back
Waits for transactions that use the queue. Until the drop is committed or rolled back, calls of other
  sessions for the queue wait, and with force, waits for messages that begin fail with error 42704. The
  commit ends waits for messages without force, too. For the queue''s owner.
Errors 2BP01, 42501, 42704, 55000';
COMMENT ON FUNCTION aq.pause(pg_catalog.text,pg_catalog.text,pg_catalog.text) IS 'Give a consumer no messages from the commit on, without errors: a dequeue finds nothing, and sessions
  that wait go on waiting, until aq.resume. Enqueue continues, and messages that were dequeued before
  can be committed, rolled back and acknowledged.
consumer: a subscriber of a topic (null: all consumers of the queue)
reason: shown with the role and the time in aq.queues and aq.subscribers
A consumer gets messages when neither it nor the queue is paused. aq.browse, aq.cancel, aq.purge_queue
  and aq.redrive work as always. A distributed queue is paused on this node. For the queue''s owner,
  and, with the subscribe privilege, the role that subscribed the consumer.
Errors 22004, 42501, 42704, 42809';
COMMENT ON FUNCTION aq.resume(pg_catalog.text,pg_catalog.text) IS 'End what aq.pause has begun, and wake the sessions that wait.
consumer: as in aq.pause; null does not resume consumers that were paused by name
For the same roles as aq.pause.
Errors 22004, 42501, 42704, 42809';
COMMENT ON FUNCTION aq."check"(interval) IS 'Compare shared memory with the tables and with itself; one row for each difference. Reads all messages
  of the queues that are in memory. For superusers.
patience: time for which differences are read again, because concurrent work looks like a
  difference';
COMMENT ON FUNCTION aq.limit_subscriber(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text) IS 'Limit how many messages of a subscriber may be in work at a time: taken by open or prepared
  transactions, or leased; and how many it gets in a time. A dequeue gets no others, and sessions that
  wait are woken when it gets the next one. Each call sets both limits.
max_running: instead of the queue''s limit (null: the queue''s limit applies)
rate: instead of the queue''s rate, as in aq.create_queue (null: the queue''s rate applies)
A lower limit takes effect as messages in work end. Not for queue tables and distributed queues. For
  the queue''s owner, and, with the subscribe privilege, the role that subscribed it.
Errors 0A000, 22023, 42501, 42704, 42809';
COMMENT ON FUNCTION aq.revoke_queue(pg_catalog.text,pg_catalog.text,pg_catalog.text) IS 'Revoke enqueue, dequeue, subscribe, a list of these or all on a queue from a role or PUBLIC (also:
  null), and what the role has granted by its grant option. Subscribers of the role and privileges on
  single consumers remain: see aq.unsubscribe and aq.revoke_consumer. The queue''s owner revokes
  grants made in the owner''s name; any other role revokes its own grants.
Errors 22023, 42501, 42704';
COMMENT ON FUNCTION aq.revoke_consumer(pg_catalog.text,pg_catalog.text,pg_catalog.text) IS 'Revoke the privilege of a role or PUBLIC (also: null) on one consumer; its sessions that wait for this
  consumer get an error. For the queue''s owner.
Errors 42501, 42704, 42809';
COMMENT ON FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text) IS 'Enqueue one message, payload as text, read by the payload type''s input function;
  returns its id, or null when no subscriber of a topic wants it.
priority: 0 to 9, smaller first (null: 1)
delay: time until the message is ready (negative: none)
expiration: time from then until the message expires
correlation: any text, by which consumers can select
recipients: consumers of a topic (null: the subscribers)
sender: any text
key: any text of at most 512 bytes: messages with the same key are in one shard, so they keep their
  order whichever sessions enqueue them
exception_queue: null for that of the queue
properties: any JSON object
deviation: in queue tables: top (before all others), or before (before the message relative_msgid)
delivery_mode: persistent (null) or buffered (not logged: faster, and lost in a crash)
producer: a name that orders the messages of several sessions (null: only those of each session have
  an order); the transaction waits until the one before it with the same producer in the queue has
  ended
run_at: time at which the message becomes ready, instead of a delay (in the past: at once)
visibility: on_commit (null), or immediate: in a separate transaction, which is committed before the
  call returns
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ039, AQ053, AQ118';
COMMENT ON FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.jsonb,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text) IS 'The same for a payload of type jsonb. Named, jsonb => $2, it makes a driver send an untyped parameter
  as jsonb.';
COMMENT ON FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.bytea,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text) IS 'The same for a payload of type bytea. Named, bytea => $2, it makes a driver send an untyped parameter
  as bytea.';
COMMENT ON FUNCTION aq.enqueue(pg_catalog.text,pg_catalog.anyelement,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,pg_catalog.text) IS 'Enqueue one message, payload of the queue''s payload type, or json where that is jsonb;
  returns its id, or null when no subscriber of a topic wants it.
priority: 0 to 9, smaller first (null: 1)
delay: time until the message is ready (negative: none)
expiration: time from then until the message expires
correlation: any text, by which consumers can select
recipients: consumers of a topic (null: the subscribers)
sender: any text
key: any text of at most 512 bytes: messages with the same key are in one shard, so they keep their
  order whichever sessions enqueue them
exception_queue: null for that of the queue
properties: any JSON object
deviation: in queue tables: top (before all others), or before (before the message relative_msgid)
delivery_mode: persistent (null) or buffered (not logged: faster, and lost in a crash)
producer: a name that orders the messages of several sessions (null: only those of each session have
  an order); the transaction waits until the one before it with the same producer in the queue has
  ended
run_at: time at which the message becomes ready, instead of a delay (in the past: at once)
visibility: on_commit (null), or immediate: in a separate transaction, which is committed before the
  call returns
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ039, AQ053, AQ118';
COMMENT ON FUNCTION aq.enqueue_array(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.jsonb,pg_catalog.text,pg_catalog.text) IS 'Enqueue one message per array element, in their order; returns their ids in that order, null for
  messages that no subscriber wants. The other arguments are as in aq.enqueue and apply to all
  messages.
payloads: an array of the queue''s payload type or of text, which the payload type''s input function
  reads; json where the payload type is jsonb. An untyped literal or parameter is an array of text
options: an array with one object per payload. Its keys priority, delay, run_at, expiration,
  correlation, key, recipients, properties and exception_queue override the arguments for this message; a
  key that is missing or null, or null instead of an object, leaves the argument
Errors as in aq.enqueue';
COMMENT ON FUNCTION aq.enqueue_unique(pg_catalog.text,pg_catalog.text,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,interval,pg_catalog.text) IS 'Enqueue one message with a unique key, payload as text, read by the payload type''s input function, unless
  another message of the queue has the key; returns
  the id of the message that has it, and whether that is a new one.
unique_key: any text of at most 512 bytes
unique_for: how long no other message gets the key, whatever happens to this one (null: until it is
  done for all its consumers: consumed, also by this transaction, cancelled, expired, or moved to an
  exception queue)
on_conflict: what is done if another message has the key: ignore (nothing), error (23505), or replace
  (that message is cancelled if no transaction or lease holds it; otherwise nothing is done)
msgid: null if no subscriber of a topic wants the message
is_new: false if another message has the key
The other arguments are as in aq.enqueue. A call waits for other transactions that have used the key,
  until they end. Not for queue tables, distributed queues and buffered messages.
Errors as in aq.enqueue';
COMMENT ON FUNCTION aq.enqueue_unique(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.jsonb,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,timestamp with time zone,pg_catalog.text,interval,pg_catalog.text) IS 'Enqueue one message with a unique key, payload of the queue''s payload type, or json where that is
  jsonb, unless another message of the queue has the key; returns
  the id of the message that has it, and whether that is a new one.
unique_key: any text of at most 512 bytes
unique_for: how long no other message gets the key, whatever happens to this one (null: until it is
  done for all its consumers: consumed, also by this transaction, cancelled, expired, or moved to an
  exception queue)
on_conflict: what is done if another message has the key: ignore (nothing), error (23505), or replace
  (that message is cancelled if no transaction or lease holds it; otherwise nothing is done)
msgid: null if no subscriber of a topic wants the message
is_new: false if another message has the key
The other arguments are as in aq.enqueue. A call waits for other transactions that have used the key,
  until they end. Not for queue tables, distributed queues and buffered messages.
Errors as in aq.enqueue';
COMMENT ON FUNCTION aq.dequeue(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text) IS 'Dequeue up to max_messages messages of a jsonb queue.
consumer: its name, in a topic
mode: remove, remove_nodata (the payload comes back null), locked (locked until the end of the
  transaction, not consumed) or browse
correlation: a LIKE pattern
key: only messages with this key
msgid: exactly this message
condition: an SQL condition over priority, correlation, properties, enqueue_time, attempts, payload
  and the fields of a composite payload
wait: null does not wait, a negative interval waits forever; a number without a unit is in seconds
navigation: null and first_message start at the head; next_message continues behind the session''s last
  message; next_transaction continues with the next group; first_message_multi_group and
  next_message_multi_group do not stop at the end of a group
delivery_mode: persistent (null), buffered or persistent_or_buffered
lease: take the messages for this time, from the commit on (in a queue table from the call on), until
  they are acknowledged; not for buffered messages
acknowledge: messages of an earlier dequeue with a lease; they are finished first, as by
  aq.acknowledge, and a notice says how many leases no longer ran
receipt: that of the messages to acknowledge; as result, that of a new lease, null without one
visibility: on_commit (null), or immediate: the messages are taken in a separate transaction, which is
  committed before the call returns; not with mode locked or a lease
A call that acknowledges messages does not wait, so that this is committed. While it waits, the
  statement holds its snapshot, and therefore the xmin horizon; CALL aq.wait does not.
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018, AQ043, AQ044, AQ045, AQ046';
COMMENT ON FUNCTION aq.dequeue(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text) IS 'Dequeue up to max_messages messages.
as_type: a null of the queue''s payload type (name it for text: as_type => null::text)
The other arguments are as in the jsonb form.
Errors as in the jsonb form';
COMMENT ON FUNCTION aq.dequeue_full(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,interval,pg_catalog.uuid[],bigint,pg_catalog.text,pg_catalog.text) IS 'As aq.dequeue, with every property of the message.
state: 0 ready, 1 waiting, 3 expired, when it was dequeued
message_delivery_mode: 1 persistent, 2 buffered
dead_letter: in an exception queue, where it came from and why it failed: see aq.dead_letters
The other columns are sender, consumer_name, ready_at, expires_at, exception_queue, original_msgid,
  shard, session_id, transaction_group and key, which was given at enqueue.';
COMMENT ON FUNCTION aq.browse(pg_catalog.text,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text) IS 'Read the messages of a jsonb queue that the consumer could dequeue, in dequeue order, without taking
  them. Allowed in READ ONLY transactions.
after: continue behind this message
key: only messages with this key';
COMMENT ON FUNCTION aq.browse(pg_catalog.text,pg_catalog.anyelement,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,pg_catalog.text) IS 'As aq.browse for jsonb, for any payload type.
as_type: a null of the payload type';
COMMENT ON FUNCTION aq.create_propagation(pg_catalog.text,pg_catalog.text,interval,timestamp with time zone,interval,interval,pg_catalog.text,boolean) IS 'Propagate messages of a queue to another queue from the commit on, each exactly once, by a
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
COMMENT ON FUNCTION aq.drop_propagation(pg_catalog.text,pg_catalog.text,boolean) IS 'Remove a propagation schedule; a batch that has begun is finished.
unsubscribe: true also removes the subscriber "-> destination" of a topic, with the messages that were
  not propagated yet
Without it, and for a single-consumer queue, the call fails while messages are in transit to a
  server: wait until they have arrived, or forget them with aq.settle_propagation. For the queue''s
  owner and the role that has scheduled it.
Errors 22004, 42501, 42704, 55006';
COMMENT ON FUNCTION aq.propagation_begin(pg_catalog.uuid,bigint,bigint,bigint,pg_catalog.text) IS 'Called by links of other databases: the number of the last batch of messages that has arrived here,
  and its identity. From now on, only batches of this epoch are accepted; it must be newer than the
  last one.
source: the other database''s schedule
epoch: a number that is greater than the last one
first, last: numbers of the batches that it has kept
queue_name: queue of the first one, on which the role needs the privilege to enqueue
Errors 22004, 42501, 42704, AQ134';
COMMENT ON FUNCTION aq.propagation_put(pg_catalog.uuid,bigint,bigint,pg_catalog.uuid,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[]) IS 'Called by links of other databases: enqueue a batch of messages, unless it has arrived before;
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
COMMENT ON PROCEDURE aq_jms.receive(pg_catalog.text[],pg_catalog.text[],pg_catalog.text[],integer[],interval,interval,pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],integer,pg_catalog.bytea) IS 'For the Jakarta Messaging provider: acknowledge leased messages, then dequeue from the first of
  several sources that has messages, or wait for one.
queue_names, consumers, conditions, max_messages: the sources: each has a queue, its consumer (null:
  none), a condition (null: none) and the largest number of messages to dequeue
timeout: null: forever
lease: null: the transaction consumes the messages
ack_queues, ack_consumers, ack_msgids, ack_receipts: the leases to acknowledge, one element for each,
  as in aq_jms.acknowledge
max_bytes: null: no limit; when the payloads together exceed it, the messages behind the first one
  come without payload, to be released
messages: a binary value that jms/README.md describes
Called by CALL outside a transaction block and outside a function, it commits the acknowledgements
  before it waits. It does not wait if one of them is busy. Leases on sharded queues also end soon
  after the session that has taken them, as if they had expired.
Payloads are of type aq.jms_message; text, jsonb and bytea are delivered as text and bytes messages,
  with the correlation and the properties of the server.
Errors 0A000, 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018';
COMMENT ON FUNCTION aq_jms.browse(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,integer,integer) IS 'For the Jakarta Messaging provider: messages that a consumer could dequeue, in the form of
  aq_jms.receive, with receipt 0.
after: continue behind this message (null: from the head)
max_bytes: as in aq_jms.receive
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018';
COMMENT ON FUNCTION aq_jms.send(pg_catalog.bytea,pg_catalog.bytea,pg_catalog.text,boolean) IS 'For the Jakarta Messaging provider: enqueue messages of type aq.jms_message and acknowledge leased
  messages; if a lease has ended, the call fails, so that neither happens.
messages: in binary form; null: none
acknowledge: the leases, in binary form; null: none
affinity: a name that chooses the shard (null: the producer does, or the session; empty: the key does
  first): messages with the same affinity that are sent one after another, each after the commit of
  the one before, keep their order across sessions; nothing waits
skip_gone: true: a message to a temporary destination that has ended is not sent, instead of an error
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ049, AQ053, AQ118';
COMMENT ON FUNCTION aq_jms.enqueue(pg_catalog.text,pg_catalog.anycompatiblearray,integer,interval,interval,pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.jsonb) IS 'For the Jakarta Messaging provider: aq.enqueue_array with an affinity, for messages that aq_jms.send
  does not enqueue: those of other payload types, and large ones.
payloads, priority, delay, expiration, correlation, producer, options: as in aq.enqueue_array
affinity: as in aq_jms.send
Errors as in aq.enqueue';
COMMENT ON FUNCTION aq_jms.commit(pg_catalog.bytea,pg_catalog.bytea,pg_catalog.text,pg_catalog.text,pg_catalog.text,integer,interval,integer,pg_catalog.text,boolean) IS 'For the Jakarta Messaging provider: aq_jms.send(messages, acknowledge), and in the same transaction
  dequeue the messages that a source has, without waiting. The result is as in aq_jms.receive.
messages, acknowledge, affinity, skip_gone: as in aq_jms.send
queue_name, consumer, condition, max_messages, lease, max_bytes: as in aq_jms.receive
Errors 22004, 22023, 42501, 42704, 42804, 42809, 55000, AQ018, AQ049, AQ053, AQ118';
COMMENT ON FUNCTION aq_jms.acknowledge(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[]) IS 'For the Jakarta Messaging provider: aq.acknowledge for messages of several queues and dequeues:
  queue, consumer (null: none), message id and receipt of each. Returns the indexes, from 0 on, of
  those that are not done. The index i stands for a stale lease, a queue that does not exist or has
  no such consumer, or a missing dequeue privilege; -1 - i stands for busy.
Errors 0A000, 22004, 22023';
COMMENT ON FUNCTION aq_jms.extend(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],interval) IS 'For the Jakarta Messaging provider: aq.extend for messages of several queues and dequeues. Lists and
  result as in aq_jms.acknowledge.
Errors 0A000, 22004, 22023';
COMMENT ON FUNCTION aq_jms.release(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],interval,pg_catalog.text,boolean) IS 'For the Jakarta Messaging provider: aq.release for messages of several queues and dequeues. Lists
  and result as in aq_jms.acknowledge.
delay, error, count: as in aq.release
Errors 0A000, 22004, 22023';
COMMENT ON FUNCTION aq_jms.write_chunk(pg_catalog.text,pg_catalog.uuid,integer,pg_catalog.bytea) IS 'For the Jakarta Messaging provider: write a chunk of the body of a large message, which the same
  transaction has enqueued into the queue with the header content_length.
number: of the chunk, from 0 on, without gaps, each once
data: its bytes
The body goes with its message, also to an exception queue. Requires the enqueue privilege on the
  queue.
Errors 22004, 22023, 42704, 42804';
COMMENT ON FUNCTION aq_jms.read_chunk(pg_catalog.text,pg_catalog.text,pg_catalog.uuid,integer) IS 'For the Jakarta Messaging provider: read a chunk of the body of a large message that the consumer
  (null: the queue has a single consumer) can dequeue or has dequeued. Returns null if the body has
  fewer chunks, or if the message no longer exists.
number: of the chunk, from 0 on
Requires the dequeue privilege on the queue, or the privilege on the consumer.
Errors 22004, 22023, 42501, 42704';
COMMENT ON FUNCTION aq_jms.claim(pg_catalog.text,bigint,integer) IS 'For the Jakarta Messaging provider: names for temporary destinations in a temporary queue of this session.
  The session claims them until it ends or calls aq_jms.unclaim. Then they have ended: aq_jms.send no
  longer sends to them.
first: number of the first one; the others follow
count: number of names, at most 100
A claim takes a place in the server''s table of locks. If that is full, none of them is claimed.
Errors 22004, 22023, 42704';
COMMENT ON FUNCTION aq_jms.unclaim(pg_catalog.text) IS 'For the Jakarta Messaging provider: a temporary destination that this session has claimed has ended.
name: the destination, as aq_jms.claim has returned it
Errors 22004';
COMMENT ON FUNCTION aq_jms.construct(pg_catalog.text) IS 'A new message for Java programs without headers, properties and body.
type: text, bytes, map, stream, object, or message for one without a body';
COMMENT ON FUNCTION aq_jms.text(pg_catalog.text) IS 'A text message with this body';
COMMENT ON FUNCTION aq_jms.bytes(pg_catalog.bytea) IS 'A bytes message with this body';
COMMENT ON FUNCTION aq_jms.set_text(aq.jms_message,pg_catalog.text) IS 'Make it a text message with this body';
COMMENT ON FUNCTION aq_jms.set_bytes(aq.jms_message,pg_catalog.bytea) IS 'Make it a bytes message with this body';
COMMENT ON FUNCTION aq_jms.set_header(aq.jms_message,pg_catalog.text,pg_catalog.text) IS 'Set a header: type, correlation_id, reply_to (queue:NAME or topic:NAME); null removes it.';
COMMENT ON FUNCTION aq_jms.get_header(aq.jms_message,pg_catalog.text) IS 'A header as text; null: not set.';
COMMENT ON FUNCTION aq_jms.set_property(aq.jms_message,pg_catalog.text,pg_catalog.anyelement) IS 'Set a property. Its type in Java is that of the value: boolean, smallint (short), integer (int),
  bigint (long), real (float), double precision (double); numeric is an int, a long or a double; all
  other types are strings. Properties of the provider, such as JMSXGroupID, are set in the same way.';
COMMENT ON FUNCTION aq_jms.get_property(aq.jms_message,pg_catalog.text) IS 'A property as text, which a cast turns into its type; null: not set.';
COMMENT ON FUNCTION aq_jms.clear_properties(aq.jms_message) IS 'Remove all properties';
COMMENT ON FUNCTION aq_jms.item(pg_catalog.anyelement) IS 'A value in the form that map and stream messages have: {"int": 5}. Types as in aq_jms.set_property,
  but bytea is bytes, and numeric a double.';
COMMENT ON FUNCTION aq_jms.set_item(aq.jms_message,pg_catalog.text,pg_catalog.jsonb) IS 'Set an item of a map message: aq_jms.set_item(m, ''count'', aq_jms.item(5)).';
COMMENT ON FUNCTION aq_jms.add_item(aq.jms_message,pg_catalog.jsonb) IS 'Add an item to a stream message: aq_jms.add_item(m, aq_jms.item(5)).';
COMMENT ON FUNCTION aq_jms.items(aq.jms_message) IS 'The items of a map or stream message, in the order of the stream: name (null in a stream), type in
  Java, and value as text; bytes in base64.';
COMMENT ON FUNCTION aq_jms.number(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text) IS 'For conditions made from JMS selectors: a number with its Java type, from a property of an
  aq.jms_message; null if the property is not a number.
properties, types: the fields properties and property_types of the message
name: of the property';
COMMENT ON FUNCTION aq_jms.number(integer) IS 'An int.
For conditions made from JMS selectors.';
COMMENT ON FUNCTION aq_jms.number(bigint) IS 'A long.
For conditions made from JMS selectors.';
COMMENT ON FUNCTION aq_jms.number(real) IS 'A float.
For conditions made from JMS selectors.';
COMMENT ON FUNCTION aq_jms.number(double precision) IS 'A double.
For conditions made from JMS selectors.';
COMMENT ON FUNCTION aq_jms.number(timestamp with time zone) IS 'A long: milliseconds since 1970.
For conditions made from JMS selectors.';
COMMENT ON FUNCTION aq_jms.calculate(pg_catalog.bytea,pg_catalog.text,pg_catalog.bytea) IS 'For conditions made from JMS selectors: + - * / with Java''s numeric promotion; null for a division
  by zero.
left_number, right_number: as aq_jms.number makes them
operator: one of these characters';
COMMENT ON FUNCTION aq_jms.negate(pg_catalog.bytea) IS 'For conditions made from JMS selectors: the number with the other sign.
number: as aq_jms.number makes it';
COMMENT ON FUNCTION aq_jms.compare(pg_catalog.bytea,pg_catalog.text,pg_catalog.bytea) IS 'For conditions made from JMS selectors: = <> < <= > >= with Java''s numeric promotion.
left_number, right_number: as aq_jms.number makes them
operator: one of these operators';
COMMENT ON FUNCTION aq.schedule(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text,interval,pg_catalog.text,pg_catalog.text,timestamp with time zone,timestamp with time zone,integer,interval,interval,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.jsonb,pg_catalog.text,boolean) IS 'Enqueue a message repeatedly, at the times of a cron expression or of an interval; returns the first
  of these times. Give either cron or every.
payload: text that is read by the queue''s payload type
cron: five fields: minute, hour, day of the month, month and day of the week; or @hourly, @daily,
  @weekly, @monthly, @yearly
every: an interval from one second to a hundred years
time_zone: of the cron expression, and of the interval''s days and months (null: the session''s)
catch_up: messages for times that are missed while the server is down or the schedule stopped: one
  (a single message, at once), skip (none, unless it is less than a minute late) or all (one for
  each time, at most for the last 1000)
start_at: earliest time. For an interval it is the first time, from which the others are counted
  (null: now, and the first time is one interval later)
until: latest time (null: no limit)
priority, delay, expiration, correlation, recipients, exception_queue: of each message, as in
  aq.enqueue
properties: of each message; the keys schedule (the name) and scheduled_at (the time) are added
comment: shown by aq.schedules
if_not_exists: true does nothing and returns null if a schedule of this name exists
The scheduler, a background worker, enqueues with the privileges of the current role. It records an
  error and retries after a pause that grows from 1 second to 5 minutes. After 16 failures in a row
  the schedule is disabled. For roles with the enqueue privilege.
Errors 22004, 22023, 42501, 42602, 42704, 42710, 42804, 42809, 55000';
COMMENT ON FUNCTION aq.start_schedule(pg_catalog.text) IS 'Start a schedule that was stopped, or disabled after failures; returns its next time, null if none is
  left. Missed times are handled as catch_up of aq.schedule says. For the role that made it, its
  members, and the queue''s owner.
Errors 22004, 42704';
COMMENT ON FUNCTION aq.stop_schedule(pg_catalog.text) IS 'Stop a schedule until aq.start_schedule. For the role that made it, its members, and the queue''s
  owner.
Errors 22004, 42704';
COMMENT ON FUNCTION aq.run_schedule(pg_catalog.text) IS 'Enqueue a schedule''s message now, in the caller''s transaction and with its privileges; returns its
  id, or null when no subscriber of a topic wants it. The schedule''s times do not change; it may be
  stopped. For the role that made it, its members, and the queue''s owner.
Errors 22004, 42704, and those of aq.enqueue';
COMMENT ON FUNCTION aq.add_node(pg_catalog.name) IS 'Add the database of a link as a node: heartbeats are sent to it with the current role''s user
  mapping. It does not wait for the other server; aq.nodes shows the result. Call it on both nodes.
  The first call makes this database a node.
server: a foreign server of the wrapper pgaq_link
For superusers, and roles to which they grant it.
Errors 22004, 42501, 42704, 42710, 42809, AQ182';
REVOKE ALL ON ROUTINE aq.add_node(pg_catalog.name) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq.add_node(pg_catalog.name) TO CURRENT_USER;
COMMENT ON FUNCTION aq.remove_node(pg_catalog.name,boolean) IS 'Stop the heartbeats to a node and forget its identity. Fails while one of the two nodes holds
  messages of the other: see aq.node_units.
server: as in aq.nodes; the foreign server may have been dropped
force: true removes the node although it is unreachable. Units lent to it return to this node, as
  with aq.reclaim_unit; its messages held here stay here
For superusers, and roles to which they grant it.
Errors 22004, 42704, 55006';
REVOKE ALL ON ROUTINE aq.remove_node(pg_catalog.name,boolean) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq.remove_node(pg_catalog.name,boolean) TO CURRENT_USER;
COMMENT ON FUNCTION aq.reset_node(boolean) IS 'In a copy of a node: make this database a node of its own, and return its identity.
keep: true keeps the identity, because this database replaces the original, for example after
  pg_upgrade; the original must never run again. false: units lent to other nodes return, so that
  their messages are ready here again; messages of other nodes held here stay here
For superusers, and roles to which they grant it.
Errors 22004, 55000';
REVOKE ALL ON ROUTINE aq.reset_node(boolean) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq.reset_node(boolean) TO CURRENT_USER;
COMMENT ON FUNCTION aq.node_resume(pg_catalog.uuid,bigint,bigint[],pg_catalog.uuid[]) IS 'Called by links of other nodes: the numbers, from 1 on, of those messages of theirs that have not
  arrived here. From now on, only messages that are sent with this token are taken.
caller: identity of the calling node
token: a number that is greater than the last one
epochs: of the unit of each message
ids: of the messages there
Errors 22004, 42704, 55000, AQ182';
COMMENT ON FUNCTION aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[]) IS 'Called by links of other nodes: messages of theirs for a consumer here.
caller: identity of the calling node
token: of the last aq.node_resume
epoch, shard: of their unit
payload_type: with its schema, must be the queue''s
payloads, priorities, correlations, properties, senders, exception_queues: of the messages
lifetimes: remaining time until expiration, in microseconds
originals: their ids there
keys: of the messages; null: none has a key
The arrays have an element for each message. Returns false, and takes nothing, if an earlier grant of
  the unit has not ended here; it ends now. The role needs the privilege to enqueue.
Errors 0A000, 22004, 22023, 42501, 42704, 53400, 55000, AQ182';
REVOKE ALL ON ROUTINE aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[]) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq.node_deliver(pg_catalog.uuid,bigint,bigint,pg_catalog.text,integer,pg_catalog.text,pg_catalog.text,pg_catalog.text[],integer[],bigint[],pg_catalog.text[],pg_catalog.jsonb[],pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],pg_catalog.text[]) TO CURRENT_USER;
COMMENT ON FUNCTION aq.reclaim_unit(pg_catalog.text,integer,pg_catalog.text,boolean) IS 'Take a unit of a distributed queue back from the node that holds it, when that node is down for
  good, or for too long: its messages are ready here again, at their positions. Messages that the
  node consumed but had not yet reported are delivered twice.
queue_name, shard, consumer: as in aq.node_units
force: true also takes it from a reachable node, which keeps consuming its messages until it learns
  of this
For the queue''s owner.
Errors 22004, 22023, 42501, 42704, 55000';
COMMENT ON FUNCTION aq.log_action(pg_catalog.text,pg_catalog.text,bigint,pg_catalog.text) IS 'Write what is done in this transaction to the log that aq.actions shows, as the role that has logged in.
action: what is done
object: the queue, schedule or message
number: how many messages it concerns
detail: arguments
pgaq console calls it. Rows older than 90 days are removed, and all but the newest 10,000 of a
role. Long texts are cut';
ALTER ROUTINE aq.log_action(pg_catalog.text,pg_catalog.text,bigint,pg_catalog.text) OWNER TO pgaq;
COMMENT ON FUNCTION aq.version() IS 'Version of the library that the server has loaded, of the extension''s catalog in this database, and
  of the server. The library is the newer one until ALTER EXTENSION pgaq UPDATE.';
COMMENT ON FUNCTION aq.help(pg_catalog.text) IS 'What can be called.
topic: null: the groups of functions, each with an example; a group: its functions, each with the
  first sentence of its description; a function: its forms, with all arguments and the description
Errors 42704';
COMMENT ON FUNCTION aq_internal.message_parts(integer) IS 'Internal: the parts in which aq_internal.message_rows reads a queue: a query with LIMIT reads the small first one, if that has enough rows';
COMMENT ON FUNCTION aq_internal.message_rows(integer,pg_catalog.uuid,pg_catalog.text,integer,bigint,bigint) IS 'Internal: what aq.messages shows of a part of one queue, all messages or the wanted ones; the planner sets wanted from a condition on msgid, and wanted_state from one on state';
COMMENT ON FUNCTION aq_internal.classic_message_parts(integer) IS 'Internal: the same for aq_internal.classic_message_rows';
COMMENT ON FUNCTION aq_internal.classic_message_rows(integer,pg_catalog.uuid,pg_catalog.text,bigint,bigint) IS 'Internal: what aq.messages shows of a part of one queue of a queue table';
COMMENT ON FUNCTION aq_internal.buffered_message_rows(integer,pg_catalog.uuid,pg_catalog.text) IS 'Internal: the buffered messages of one queue';
COMMENT ON FUNCTION aq_internal.running(integer,integer) IS 'Internal: messages of a limited consumer that are in work; null: it has no limit, or they are not counted yet';
COMMENT ON COLUMN aq.queues.rate IS 'how many messages each consumer gets in a time; null: no limit';
COMMENT ON COLUMN aq.queues.max_running IS 'how many messages of each consumer may be in work at a time; null: no limit';
COMMENT ON COLUMN aq.queues.on_full IS 'an enqueue into the full queue: wait, at most pgaq.flow_control_timeout, or error';
COMMENT ON COLUMN aq.queues.max_depth IS 'number of unfinished messages of a consumer with which the queue is full; null: it is never full';
COMMENT ON COLUMN aq.queues.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq.queues.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq.queues.paused IS 'since when it is paused for all consumers, by aq.pause; null: it is not';
COMMENT ON COLUMN aq.queues.default_expiration IS 'expiration of messages that are enqueued without one; null: they never expire';
COMMENT ON COLUMN aq.queues.default_delay IS 'delay of messages that are enqueued without one';
COMMENT ON COLUMN aq.queues.default_priority IS 'priority of messages that are enqueued without one; null: 1';
COMMENT ON COLUMN aq.queues.may_dequeue IS 'the current role can dequeue, for every consumer; aq.privileges shows privileges on single consumers';
COMMENT ON FUNCTION aq_internal.latencies(integer) IS 'Internal: what aq.latencies shows of one queue';
COMMENT ON FUNCTION aq.latency_bound(integer) IS 'The upper bound of a bucket of aq.latencies, in seconds: 128 microseconds for the first one, and
  twice that of the bucket before for each other one; null for the last one, 33, which has none.
bucket: number of the bucket, from 1';
COMMENT ON FUNCTION aq.latency_percentile(bigint[],double precision) IS 'How long messages waited, in seconds: this fraction of them did not wait longer. Null: the buckets
  are empty.
buckets: as in aq.latencies, or the difference of two of them; missing ones are empty
fraction: 0.5 for the median, 0.99 for the 99th percentile
In the bucket in which the sum of the buckets reaches fraction * messages, the messages are taken
to lie evenly between its bounds: with B messages in the bucket, and A in those before it, the
result is lower + (upper - lower) * (fraction * messages - A) / B. So it is wrong by less than a
factor of two. If it is in the last bucket, the result is its lower bound.
Errors 22023';
COMMENT ON COLUMN aq.latencies.since IS 'when the counters began';
COMMENT ON COLUMN aq.latencies.buckets IS 'how many waited less than aq.latency_bound(n), and not less than half of it; without empty ones at the end';
COMMENT ON COLUMN aq.latencies.p99_seconds IS 'the same of 99 in 100';
COMMENT ON COLUMN aq.latencies.p50_seconds IS 'half of them did not wait longer, see aq.latency_percentile; null: none';
COMMENT ON COLUMN aq.latencies.total_seconds IS 'seconds that they waited, in all; those of a prepared transaction count until its commit was noticed, each with the mean';
COMMENT ON COLUMN aq.latencies.messages IS 'messages dequeued, for each consumer; null: the queue is not in memory, see aq.subscribers';
COMMENT ON COLUMN aq.latencies.delivery_mode IS 'persistent or buffered';
COMMENT ON COLUMN aq.latencies.queue_name IS 'the queue';
COMMENT ON VIEW aq.latencies IS 'How long messages had waited when they were dequeued, for each queue that the current role can use; members of pg_monitor see all. A wait begins with the enqueue call, or at the end of the delay, and ends with the call that takes the message. The time until the commit of the enqueue is part of it, because a message does not have that moment. A wait counts when the dequeue is committed: one that is rolled back does not count, and the message counts with the whole time when it is dequeued again. A lease counts when it is taken, for other consumers of a topic the message counts again. The counters begin when the queue comes into use after the start of the server';
REVOKE ALL ON TABLE aq.latencies FROM PUBLIC;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE aq.latencies TO CURRENT_USER; GRANT SELECT ON TABLE aq.latencies TO PUBLIC;
COMMENT ON COLUMN aq.subscribers.waiting IS 'sessions that wait for its messages, except while it is paused';
COMMENT ON COLUMN aq.subscribers.rate IS 'how many messages it gets in a time, by aq.limit_subscriber or rate of the queue; null: no limit';
COMMENT ON COLUMN aq.subscribers.running IS 'messages in work: taken by running and prepared transactions, or leased; null: it has no limit, or has not dequeued since the restart';
COMMENT ON COLUMN aq.subscribers.max_running IS 'how many of its messages may be in work at a time, by aq.limit_subscriber or max_running of the queue; null: no limit';
COMMENT ON COLUMN aq.subscribers.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq.subscribers.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq.subscribers.paused IS 'since when it is paused by name, by aq.pause; null: it is not, but its queue can be, see aq.queues';
COMMENT ON COLUMN aq.role_usage.resource IS 'queues: those in use, which are in memory, not those that exist (aq.queues lists these, with their owners); streams, partitions, message_cache: what running and prepared transactions keep in it, in kB; dequeues: entries of running and prepared transactions that dequeue from queue tables; schedules, propagations, registrations; sources: propagation schedules of other databases that send messages as the role';
COMMENT ON COLUMN aq.role_usage.role IS 'owner of the queues, or of the schedules; for dequeues: role of the transactions';
COMMENT ON COLUMN aq.messages.key IS 'key given at enqueue; null: none';
COMMENT ON COLUMN aq.dead_letters.key IS 'its key';
COMMENT ON VIEW aq.privileges IS 'Privileges granted on queues and on single consumers; default exception queues, which have the privileges of their queues, are left out; a role sees its own, those of PUBLIC and of the queues that it can administer, members of pg_monitor see all';
COMMENT ON FUNCTION aq.keys(pg_catalog.text) IS 'The keys that have messages which are not finished, the key with the oldest first; in a topic for each
  consumer. No rows for a queue or consumer from which the current role cannot dequeue. Reads the
  tables of the queue, as aq.messages does.
consumer: the consumer; null in single-consumer queues
key: the key
ready: can be dequeued
delayed: wait for their delay or retry delay
in_flight: taken by running or prepared transactions, or leased
oldest: time of the enqueue call of the oldest';
COMMENT ON COLUMN aq.schedules.state IS 'active; stopped: by aq.stop_schedule; failing: the last try failed, and it is tried again; stuck: a process that runs code for the role cannot be interrupted, and its schedules wait until that ends; disabled: after 16 failures in a row, until aq.start_schedule; ended: no time is left';
COMMENT ON COLUMN aq.nodes.state IS 'this node; copy: this database is a copy of the node, and does not act as it: see aq.reset_node; reachable: it has answered a heartbeat within pgaq.node_timeout; refused: it is reached, and one of the two refuses the other, see error; unreachable; unknown: no heartbeat has been sent yet, or pgaq.max_nodes is too small';
COMMENT ON VIEW aq.nodes IS 'Nodes: this database, and those that were added with aq.add_node and on whose foreign server the current role has USAGE; members of pg_monitor see all';
COMMENT ON COLUMN aq.actions.detail IS 'arguments';
COMMENT ON COLUMN aq.actions.number IS 'how many messages it concerned; null: none';
COMMENT ON COLUMN aq.actions.object IS 'queue, schedule or message';
COMMENT ON COLUMN aq.actions.action IS 'what was done';
COMMENT ON COLUMN aq.actions.role IS 'role that had logged in';
COMMENT ON COLUMN aq.actions.done_at IS 'when';
COMMENT ON VIEW aq.actions IS 'What was changed through a console in the last 90 days: a role sees what it has done, members of pg_monitor see all';
REVOKE ALL ON TABLE aq.actions FROM PUBLIC;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE aq.actions TO CURRENT_USER; GRANT SELECT ON TABLE aq.actions TO PUBLIC; GRANT SELECT ON TABLE aq.actions TO pg_monitor;
COMMENT ON FUNCTION aq.metrics() IS 'One row for each consumer of the queues that the current role can use; members of pg_monitor see all
  queues. A single-consumer queue has one row with a null consumer; buffered messages have separate
  rows (delivery_mode).
lag: committed messages that the consumer has not finished: ready, delayed or in flight
ready: can be dequeued
delayed: wait for their delay or retry delay
in_flight: leased, taken by running or prepared transactions, or being rolled back
leased: those in_flight whose lease runs
oldest_ready_seconds: how long the first ready message of a shard has been ready, the longest of all
  shards; null: none is ready
failed: messages that have expired or exceeded max_retries; they move to exception_queue, whose own
  row counts those in it
waiting: sessions that wait for its messages
since: when the queue came into use after the start of the server; enqueued, dequeued, failed and the
  rates per second count from then on
counted_at: when ready, delayed, in_flight and oldest_ready_seconds were counted: now, or for queues
  in queue tables when the worker has counted them, at most every ten seconds; null: not yet, then
  these four are also null
max_depth: lag with which the queue is full; null: it is never full
enqueues_waited: enqueues into the queue, for any consumer, that have waited because it was full, since
  then; enqueues_refused: those that have failed because of it
After a restart the first call counts what the worker has not counted yet. All figures are null for
  a queue that is not in memory because pgaq.max_queues other queues are.';
COMMENT ON FUNCTION aq.metrics(pg_catalog.text) IS 'The rows of aq.metrics() of one queue; the others are not read.
Errors 42501, 42704';
COMMENT ON FUNCTION aq_internal.history_samples() IS 'Internal: what the worker has found in this minute; in other processes no row';
REVOKE ALL ON ROUTINE aq_internal.history_samples() FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.history_samples() TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.history_samples() TO pgaq;
COMMENT ON FUNCTION aq_internal.history_hours(timestamp with time zone) IS 'Internal: make the rows of the hours that ended since the last one';
REVOKE ALL ON ROUTINE aq_internal.history_hours(timestamp with time zone) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.history_hours(timestamp with time zone) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.history_hours(timestamp with time zone) TO pgaq;
COMMENT ON FUNCTION aq_internal.history_empty(pg_catalog.text,bigint,timestamp with time zone) IS 'Internal: empty the tables of the ring that are needed next; false: a reader of earlier rows keeps the present one';
REVOKE ALL ON ROUTINE aq_internal.history_empty(pg_catalog.text,bigint,timestamp with time zone) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.history_empty(pg_catalog.text,bigint,timestamp with time zone) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.history_empty(pg_catalog.text,bigint,timestamp with time zone) TO pgaq;
COMMENT ON FUNCTION aq_internal.history_turn(timestamp with time zone,boolean) IS 'Internal: keep what the worker has found in this minute, and first, if an hour has ended, make the rows of the hour; false: nothing was kept';
REVOKE ALL ON ROUTINE aq_internal.history_turn(timestamp with time zone,boolean) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.history_turn(timestamp with time zone,boolean) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.history_turn(timestamp with time zone,boolean) TO pgaq;
COMMENT ON COLUMN aq.history_minutes.buckets IS 'how many had waited how long, as in aq.latencies';
COMMENT ON COLUMN aq.history_minutes.p99_seconds IS 'the same of 99 in 100';
COMMENT ON COLUMN aq.history_minutes.p50_seconds IS 'half of the messages dequeued since had not waited longer, see aq.latencies; null: none was dequeued';
COMMENT ON COLUMN aq.history_minutes.delayed IS 'messages whose delay or retry delay was not over';
COMMENT ON COLUMN aq.history_minutes.in_flight IS 'messages in flight: leased, or taken by transactions that had not ended';
COMMENT ON COLUMN aq.history_minutes.ready IS 'messages that could be dequeued, by all consumers; null: not counted yet, in a queue table';
COMMENT ON COLUMN aq.history_minutes.delivery_mode IS 'persistent or buffered';
COMMENT ON COLUMN aq.history_minutes.queue_name IS 'the queue; null: the sum of the queues without a row of their own, for members of pg_monitor';
COMMENT ON COLUMN aq.history_minutes.sampled_at IS 'when the minute ended; two rows can have the same time if the clock was set back';
COMMENT ON VIEW aq.history_minutes IS 'Minutes of the last two days in which something happened in a queue that the current role can use; members of pg_monitor see all. A queue has no row for a minute in which nothing was enqueued or dequeued and no number has changed: then ready, in_flight and delayed are those of its row before. In a minute, at most pgaq.history_queues queues have a row, those with the most messages enqueued and dequeued; the sum of the others has a null queue_name. pgaq.history = off ends the recording. On a standby it shows the history of the primary';
COMMENT ON COLUMN aq.history_minutes.failed IS 'of these: expired, or over max_retries';
COMMENT ON COLUMN aq.history_minutes.dequeued IS '(message, consumer) pairs done since: consumed, purged, expired or failed';
COMMENT ON COLUMN aq.history_minutes.enqueued IS 'messages enqueued since the row before';
COMMENT ON COLUMN aq.history_minutes.oldest_ready_seconds IS 'how long the oldest ready message had been ready; null: none was ready';
REVOKE ALL ON TABLE aq.history_minutes FROM PUBLIC;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE aq.history_minutes TO CURRENT_USER; GRANT SELECT ON TABLE aq.history_minutes TO PUBLIC;
COMMENT ON COLUMN aq.history_hours.buckets IS 'how many had waited how long, as in aq.latencies';
COMMENT ON COLUMN aq.history_hours.p99_seconds IS 'the same of 99 in 100';
COMMENT ON COLUMN aq.history_hours.p50_seconds IS 'half of the messages dequeued since had not waited longer, see aq.latencies; null: none was dequeued';
COMMENT ON COLUMN aq.history_hours.failed IS 'of these: expired, or over max_retries';
COMMENT ON COLUMN aq.history_hours.dequeued IS '(message, consumer) pairs done since: consumed, purged, expired or failed';
COMMENT ON COLUMN aq.history_hours.enqueued IS 'messages enqueued since the row before';
COMMENT ON COLUMN aq.history_hours.oldest_ready_seconds IS 'how long the oldest ready message had been ready, the most of the hour; null: none was ready';
COMMENT ON COLUMN aq.history_hours.delayed IS 'messages whose delay or retry delay was not over, the most of the hour';
COMMENT ON COLUMN aq.history_hours.in_flight IS 'messages in flight: leased, or taken by transactions that had not ended, the most of the hour';
COMMENT ON COLUMN aq.history_hours.ready IS 'messages that could be dequeued, by all consumers, the most of the hour; null: not counted yet, in a queue table';
COMMENT ON COLUMN aq.history_hours.delivery_mode IS 'persistent or buffered';
COMMENT ON COLUMN aq.history_hours.queue_name IS 'the queue; null: the sum of the queues without a row of their own, for members of pg_monitor';
COMMENT ON COLUMN aq.history_hours.sampled_at IS 'when the hour ended';
COMMENT ON VIEW aq.history_hours IS 'The same as aq.history_minutes for the hours of the last 90 days; ready, in_flight and delayed are the most of the hour, and not known for an hour without a row';
REVOKE ALL ON TABLE aq.history_hours FROM PUBLIC;
GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE aq.history_hours TO CURRENT_USER; GRANT SELECT ON TABLE aq.history_hours TO PUBLIC;
COMMENT ON COLUMN aq.notifiers.state IS 'starting; busy; stuck: its call cannot be interrupted, and another notifier has its place; idle: it ends after pgaq.notifier_idle_timeout; backing off: it ended with an error, and is started again after a pause';
COMMENT ON FUNCTION aq_internal.growths(aq_internal.span,pg_catalog.text,pg_catalog.anyelement) IS 'Internal: the same as rows of a view';
REVOKE ALL ON ROUTINE aq_internal.growths(aq_internal.span,pg_catalog.text,pg_catalog.anyelement) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.growths(aq_internal.span,pg_catalog.text,pg_catalog.anyelement) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.growths(aq_internal.span,pg_catalog.text,pg_catalog.anyelement) TO pgaq;
COMMENT ON FUNCTION aq_internal.seconds(aq_internal.span,pg_catalog.text) IS 'Internal: seconds that a line of the time model has grown by; null where it is not counted';
REVOKE ALL ON ROUTINE aq_internal.seconds(aq_internal.span,pg_catalog.text) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.seconds(aq_internal.span,pg_catalog.text) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.seconds(aq_internal.span,pg_catalog.text) TO pgaq;
COMMENT ON FUNCTION aq_internal.moment(timestamp with time zone) IS 'Internal: a time as reports show it';
REVOKE ALL ON ROUTINE aq_internal.moment(timestamp with time zone) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.moment(timestamp with time zone) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.moment(timestamp with time zone) TO pgaq;
COMMENT ON FUNCTION aq_internal.parameters(pg_catalog.jsonb) IS 'Internal: the parameters at a capture';
REVOKE ALL ON ROUTINE aq_internal.parameters(pg_catalog.jsonb) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.parameters(pg_catalog.jsonb) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.parameters(pg_catalog.jsonb) TO pgaq;
COMMENT ON FUNCTION aq_internal.steps(aq_internal.span) IS 'Internal: the snapshots of a span after the first';
REVOKE ALL ON ROUTINE aq_internal.steps(aq_internal.span) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.steps(aq_internal.span) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.steps(aq_internal.span) TO pgaq;
COMMENT ON FUNCTION aq_internal.course(aq_internal.span) IS 'Internal: DB time by wait class, for each snapshot of a span';
REVOKE ALL ON ROUTINE aq_internal.course(aq_internal.span) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.course(aq_internal.span) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.course(aq_internal.span) TO pgaq;
COMMENT ON FUNCTION aq_internal.wait_durations(aq_internal.span) IS 'Internal: the histogram of waits over a span; b: its column in the report';
REVOKE ALL ON ROUTINE aq_internal.wait_durations(aq_internal.span) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.wait_durations(aq_internal.span) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.wait_durations(aq_internal.span) TO pgaq;
COMMENT ON FUNCTION aq_internal.slots(aq_internal.span,aq_internal.sample[]) IS 'Internal: samples by time and wait class';
REVOKE ALL ON ROUTINE aq_internal.slots(aq_internal.span,aq_internal.sample[]) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.slots(aq_internal.span,aq_internal.sample[]) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.slots(aq_internal.span,aq_internal.sample[]) TO pgaq;
COMMENT ON FUNCTION aq_internal.ash_top(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text) IS 'Internal: query of a section on samples';
REVOKE ALL ON ROUTINE aq_internal.ash_top(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.ash_top(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.ash_top(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.text) TO pgaq;
COMMENT ON FUNCTION aq_internal.report_sections() IS 'Internal: the sections of reports';
REVOKE ALL ON ROUTINE aq_internal.report_sections() FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.report_sections() TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.report_sections() TO pgaq;
COMMENT ON FUNCTION aq_internal.section(pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) IS 'Internal: a section of a report';
REVOKE ALL ON ROUTINE aq_internal.section(pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.section(pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.section(pg_catalog.text,pg_catalog.text,pg_catalog.text[],pg_catalog.text,pg_catalog.text,pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) TO pgaq;
COMMENT ON FUNCTION aq_internal.sections(pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) IS 'Internal: the sections of a report';
REVOKE ALL ON ROUTINE aq_internal.sections(pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.sections(pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.sections(pg_catalog.text,aq_internal.span,aq_internal.sample[],aq_internal.span) TO pgaq;
COMMENT ON FUNCTION aq_internal.columns(pg_catalog.text[]) IS 'Internal: columns of a section, each from name|unit|digits';
REVOKE ALL ON ROUTINE aq_internal.columns(pg_catalog.text[]) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.columns(pg_catalog.text[]) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.columns(pg_catalog.text[]) TO pgaq;
COMMENT ON FUNCTION aq_internal.chart(pg_catalog.text,pg_catalog.jsonb) IS 'Internal: a chart of a report; null when there is nothing to draw';
REVOKE ALL ON ROUTINE aq_internal.chart(pg_catalog.text,pg_catalog.jsonb) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.chart(pg_catalog.text,pg_catalog.jsonb) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.chart(pg_catalog.text,pg_catalog.jsonb) TO pgaq;
COMMENT ON FUNCTION aq_internal.points(pg_catalog.jsonb,integer,pg_catalog.text[],integer[]) IS 'Internal: the points of a chart from the rows of its section';
REVOKE ALL ON ROUTINE aq_internal.points(pg_catalog.jsonb,integer,pg_catalog.text[],integer[]) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.points(pg_catalog.jsonb,integer,pg_catalog.text[],integer[]) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.points(pg_catalog.jsonb,integer,pg_catalog.text[],integer[]) TO pgaq;
COMMENT ON FUNCTION aq_internal.statistic_unit(pg_catalog.text) IS 'Internal: unit of a statistic';
REVOKE ALL ON ROUTINE aq_internal.statistic_unit(pg_catalog.text) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.statistic_unit(pg_catalog.text) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.statistic_unit(pg_catalog.text) TO pgaq;
COMMENT ON FUNCTION aq_internal.advice_rules() IS 'Internal: the rules for advice';
REVOKE ALL ON ROUTINE aq_internal.advice_rules() FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.advice_rules() TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.advice_rules() TO pgaq;
COMMENT ON FUNCTION aq.report_awr(integer,integer,bigint) IS 'The report between two snapshots, as a document for aq.report_text and pgaq report.
dbid: the database of the snapshots, if not this one';
COMMENT ON FUNCTION aq_internal.rtpctx(aq_internal.span,pg_catalog.text) IS 'Internal: the response time report of a span';
REVOKE ALL ON ROUTINE aq_internal.rtpctx(aq_internal.span,pg_catalog.text) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.rtpctx(aq_internal.span,pg_catalog.text) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.rtpctx(aq_internal.span,pg_catalog.text) TO pgaq;
COMMENT ON FUNCTION aq.rtpctx_report(pg_catalog.jsonb) IS 'The response time report from a mark until now: where the time went, as a document for
  aq.report_text and pgaq report.
mark: the result of aq.rtpctx_start';
COMMENT ON FUNCTION aq.report_ash(timestamp with time zone,timestamp with time zone,bigint) IS 'The activity of sessions between two times, from samples, as a document for aq.report_text and
  pgaq report.
dbid: the database, if not this one';
COMMENT ON FUNCTION aq_internal.diff_section(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text[],pg_catalog.text[],numeric[]) IS 'Internal: a section of two reports side by side';
REVOKE ALL ON ROUTINE aq_internal.diff_section(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text[],pg_catalog.text[],numeric[]) FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.diff_section(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text[],pg_catalog.text[],numeric[]) TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.diff_section(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text[],pg_catalog.text[],numeric[]) TO pgaq;
COMMENT ON FUNCTION aq_internal.diff_sections() IS 'Internal: what aq.report_awr_diff compares';
REVOKE ALL ON ROUTINE aq_internal.diff_sections() FROM PUBLIC;
GRANT EXECUTE ON ROUTINE aq_internal.diff_sections() TO CURRENT_USER; GRANT EXECUTE ON ROUTINE aq_internal.diff_sections() TO pgaq;
COMMENT ON FUNCTION aq.report_awr_diff(integer,integer,integer,integer,bigint,bigint) IS 'Two intervals compared, as a document for aq.report_text and pgaq report; its advice is on the
  second.
dbid_1 and dbid_2: the databases of the snapshots, if not this one';
COMMENT ON FUNCTION aq_internal.text_table(pg_catalog.jsonb) IS 'Internal: the table of a section as text';
COMMENT ON FUNCTION aq.report_html(pg_catalog.jsonb) IS 'The text of aq.report_text in an HTML page; pgaq report with the option --html makes one with charts
  and tables.
model: the result of aq.report_awr or a similar function';
ALTER ROUTINE aq.report_html(pg_catalog.jsonb) OWNER TO CURRENT_USER;
GRANT ALL ON ROUTINE aq.report_html(pg_catalog.jsonb) TO CURRENT_USER;
COMMENT ON FUNCTION aq.propagate(pg_catalog.text,pg_catalog.text,interval,timestamp with time zone,interval,interval,pg_catalog.text,boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.create_propagation.';
COMMENT ON FUNCTION aq.end_propagation(pg_catalog.text,pg_catalog.text,boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.drop_propagation.';
COMMENT ON PROCEDURE aq.jms_receive(pg_catalog.text[],pg_catalog.text[],pg_catalog.text[],integer[],interval,interval,pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],integer,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.receive.';
COMMENT ON FUNCTION aq.jms_browse(pg_catalog.text,pg_catalog.text,pg_catalog.text,pg_catalog.uuid,integer,integer) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.browse.';
COMMENT ON FUNCTION aq.jms_send(pg_catalog.bytea,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.send.';
COMMENT ON FUNCTION aq.jms_commit(pg_catalog.bytea,pg_catalog.bytea,pg_catalog.text,pg_catalog.text,pg_catalog.text,integer,interval,integer) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.commit.';
COMMENT ON FUNCTION aq.jms_acknowledge(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[]) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.acknowledge.';
COMMENT ON FUNCTION aq.jms_extend(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],interval) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.extend.';
COMMENT ON FUNCTION aq.jms_release(pg_catalog.text[],pg_catalog.text[],pg_catalog.uuid[],bigint[],interval,pg_catalog.text,boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.release.';
COMMENT ON FUNCTION aq.jms_write_chunk(pg_catalog.text,pg_catalog.uuid,integer,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.write_chunk.';
COMMENT ON FUNCTION aq.jms_read_chunk(pg_catalog.text,pg_catalog.text,pg_catalog.uuid,integer) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.read_chunk.';
COMMENT ON FUNCTION aq.jms_construct(pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.construct.';
COMMENT ON FUNCTION aq.jms_text(pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.text.';
COMMENT ON FUNCTION aq.jms_bytes(pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.bytes.';
COMMENT ON FUNCTION aq.jms_set_text(aq.jms_message,pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.set_text.';
COMMENT ON FUNCTION aq.jms_set_bytes(aq.jms_message,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.set_bytes.';
COMMENT ON FUNCTION aq.jms_set_header(aq.jms_message,pg_catalog.text,pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.set_header.';
COMMENT ON FUNCTION aq.jms_get_header(aq.jms_message,pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.get_header.';
COMMENT ON FUNCTION aq.jms_set_property(aq.jms_message,pg_catalog.text,pg_catalog.anyelement) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.set_property.';
COMMENT ON FUNCTION aq.jms_get_property(aq.jms_message,pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.get_property.';
COMMENT ON FUNCTION aq.jms_clear_properties(aq.jms_message) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.clear_properties.';
COMMENT ON FUNCTION aq.jms_item(pg_catalog.anyelement) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.item.';
COMMENT ON FUNCTION aq.jms_set_item(aq.jms_message,pg_catalog.text,pg_catalog.jsonb) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.set_item.';
COMMENT ON FUNCTION aq.jms_add_item(aq.jms_message,pg_catalog.jsonb) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.add_item.';
COMMENT ON FUNCTION aq.jms_items(aq.jms_message) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.items.';
COMMENT ON FUNCTION aq.jms_number(pg_catalog.jsonb,pg_catalog.jsonb,pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_number(integer) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_number(bigint) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_number(real) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_number(double precision) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_number(timestamp with time zone) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.number.';
COMMENT ON FUNCTION aq.jms_calculate(pg_catalog.bytea,pg_catalog.text,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.calculate.';
COMMENT ON FUNCTION aq.jms_negate(pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.negate.';
COMMENT ON FUNCTION aq.jms_compare(pg_catalog.bytea,pg_catalog.text,pg_catalog.bytea) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq_jms.compare.';
COMMENT ON FUNCTION aq.resume_schedule(pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.start_schedule.';
COMMENT ON FUNCTION aq.pause_schedule(pg_catalog.text) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.stop_schedule.';
COMMENT ON FUNCTION aq.node_add(pg_catalog.name) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.add_node.';
COMMENT ON FUNCTION aq.node_remove(pg_catalog.name,boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.remove_node.';
COMMENT ON FUNCTION aq.node_reset(boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.reset_node.';
COMMENT ON FUNCTION aq.break_lease(pg_catalog.text,integer,pg_catalog.text,boolean) IS 'Deprecated since 0.2.0, removed in 0.3.0: use aq.reclaim_unit.';
DO $$
DECLARE
	function record;
	given record;
	initial aclitem[];
BEGIN
	FOR function IN SELECT p.oid, p.oid::regprocedure AS name, r.owner, r.acl, r.initial, p.proacl, p.proowner
		FROM jsonb_to_recordset(nullif(current_setting('pgaq_update.privileges', true), '')::jsonb) AS r (function text, owner oid, acl aclitem[], initial aclitem[])
		JOIN pg_proc p ON p.oid = r.function::regprocedure LOOP
		initial := function.initial;
		IF function.owner <> function.proowner THEN
			initial := (SELECT initprivs FROM pg_init_privs WHERE objoid = function.oid AND classoid = 'pg_proc'::regclass);
		END IF;
		FOR given IN SELECT DISTINCT grantee FROM aclexplode(coalesce(function.proacl, acldefault('f', function.proowner))) WHERE grantee <> function.proowner LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', function.name, CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END);
		END LOOP;
		FOR given IN SELECT grantee, bool_or(is_grantable) AS is_grantable FROM aclexplode(nullif(function.acl, '{}'))
			WHERE grantee NOT IN (function.owner, function.proowner) GROUP BY grantee LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', function.name, CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END,
				CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' END);
		END LOOP;
		DELETE FROM pg_init_privs WHERE objoid = function.oid AND classoid = 'pg_proc'::regclass;
		DELETE FROM pg_shdepend WHERE classid = 'pg_proc'::regclass AND objid = function.oid AND deptype = 'i' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND refobjid <> ALL (ARRAY(SELECT grantee FROM aclexplode(initial)));
		IF initial IS NOT NULL THEN
			INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs) VALUES (function.oid, 'pg_proc'::regclass, 0, 'e', initial);
		END IF;
		IF current_setting('server_version_num')::integer >= 170000 THEN
			-- roles whose privileges were revoked since; the oids of pinned ones are lower
			INSERT INTO pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
			SELECT DISTINCT d.oid, 'pg_proc'::regclass, function.oid, 0, 'pg_authid'::regclass, i.grantee, 'i'::"char"
			FROM pg_database d, aclexplode(initial) i WHERE d.datname = current_database() AND i.grantee >= 12000 AND NOT EXISTS (SELECT FROM pg_shdepend s
				WHERE s.dbid = d.oid AND s.classid = 'pg_proc'::regclass AND s.objid = function.oid AND s.refobjid = i.grantee AND s.deptype = 'i');
		END IF;
	END LOOP;
END $$;
