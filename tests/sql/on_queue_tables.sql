-- From here on aq.create_queue makes queues in queue tables of their own, ordered as sharded queues are, with an
-- exception queue there: the files that follow in tests/queue_tables/schedule are those of the sharded store.
ALTER FUNCTION aq.create_queue RENAME TO create_queue_as_it_is;
ALTER FUNCTION aq.drop_queue RENAME TO drop_queue_as_it_is;
CREATE FUNCTION aq.create_queue(queue_name text, payload_type regtype DEFAULT 'jsonb',
	multiple_consumers boolean DEFAULT false, shards integer DEFAULT NULL,
	max_retries integer DEFAULT 5, retry_delay interval DEFAULT '1 second',
	retention interval DEFAULT '0', exception_queue text DEFAULT NULL,
	comment text DEFAULT NULL, queue_table text DEFAULT NULL, queue_type text DEFAULT 'normal', if_not_exists boolean DEFAULT false,
	retry_delay_factor double precision DEFAULT 5, retry_delay_max interval DEFAULT '10 minutes', retry_jitter double precision DEFAULT 0.1)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF queue_type = 'non_persistent' THEN
		RETURN aq.create_queue_as_it_is(queue_name, payload_type, multiple_consumers, comment => comment, queue_type => queue_type);
	END IF;
	IF queue_table IS NULL THEN
		PERFORM aq.create_queue_table('public.qt_' || queue_name, payload_type, 'priority, enq_time', multiple_consumers,
			if_not_exists => if_not_exists);
	END IF;
	PERFORM aq.create_queue_as_it_is(queue_name, payload_type, multiple_consumers, NULL, max_retries, retry_delay, retention,
		exception_queue, comment, coalesce(queue_table, 'public.qt_' || queue_name), queue_type, if_not_exists,
		retry_delay_factor, retry_delay_max, retry_jitter);
	IF queue_table IS NULL AND exception_queue IS NULL THEN
		PERFORM aq.create_queue_as_it_is(queue_name || '_exceptions', queue_table => 'public.qt_' || queue_name, queue_type => 'exception');
		PERFORM aq.start_queue(queue_name || '_exceptions', enqueue => false);
		PERFORM aq.alter_queue(queue_name, exception_queue => queue_name || '_exceptions');
	END IF;
	RETURN queue_name;
END $$;
CREATE FUNCTION aq.drop_queue(queue_name text, force boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	qt text := (SELECT q.queue_table FROM aq.queues q WHERE q.queue_name = drop_queue.queue_name);
BEGIN
	PERFORM aq.drop_queue_as_it_is(queue_name, force);
	IF qt LIKE 'public.qt\_%' THEN
		PERFORM aq.drop_queue_as_it_is(q.queue_name, force) FROM aq.queues q WHERE q.queue_table = qt AND q.queue_name LIKE '%\_exceptions';
		PERFORM aq.drop_queue_table(qt);
	END IF;
END $$;
