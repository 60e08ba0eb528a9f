-- The history of queues: a row for each minute, and for each hour, in which something has happened. Created once; changed only by upgrade scripts.
--
-- Each is a ring of eight tables, for eight hours or fifteen days of rows each. The worker empties the table that comes next, so at least six are full.
-- Rows are in the order of their times: the BRIN index finds a range of them.

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
