-- Sections of the report: queues, subscribers, shards, message cache, wake-ups.

CREATE FUNCTION aq_internal.report_queues(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('queues', 'Queues',
		ARRAY['Queue', 'Kind', 'Enqueued|messages|number|0', 'Enqueue Rate|messages/s|number|1', 'Done|message x consumer|number|0', 'Done Rate|messages/s|number|1',
			'Backlog Begin|message x consumer|number|0', 'Backlog End|message x consumer|number|0', 'Slowest Consumer|messages|number|0', 'Avg Latency|ms|number|3', 'Waiting at End|sessions|number|0'],
		jsonb_agg(jsonb_build_array(q.queue_name, q.kind, q.enqueued, aq_internal.ratio(q.enqueued, (s).elapsed), q.done, aq_internal.ratio(q.done, (s).elapsed), q.backlog_before, q.backlog, q.slowest_backlog,
			aq_internal.ratio(q.latency_us, q.consumed, 0.001), q.waiting) ORDER BY q.enqueued + q.done DESC, q.queue_name),
		ARRAY['The first 40, of this database. Backlog: what is still to be done; a message counts once for each consumer that is not done with it. Slowest Consumer: what the one with the longest backlog is not done with, at the end.',
			'Avg Latency: from the enqueue to the commit of the dequeue, of the messages consumed; a delay counts.'],
		aq_internal.chart_of('bar', 'Rates by queue', 'queue', jsonb_agg(q.queue_name ORDER BY q.enqueued + q.done DESC, q.queue_name) FILTER (WHERE q.place <= 12), 'messages', 'messages/s', jsonb_build_array(
			jsonb_build_object('name', 'enqueued', 'values', jsonb_agg(round(q.enqueued / (s).elapsed, 1) ORDER BY q.enqueued + q.done DESC, q.queue_name) FILTER (WHERE q.place <= 12)),
			jsonb_build_object('name', 'done', 'values', jsonb_agg(round(q.done / (s).elapsed, 1) ORDER BY q.enqueued + q.done DESC, q.queue_name) FILTER (WHERE q.place <= 12)))))
	FROM (SELECT q.*, coalesce((o.l ->> 'backlog')::numeric, 0) AS backlog_before, row_number() OVER (ORDER BY q.enqueued + q.done DESC, q.queue_name) AS place
		FROM aq_internal.growths(s, 'queue') g, jsonb_to_record(g) q(queue_id integer, queue_name text, kind text, enqueued numeric, done numeric, backlog numeric, slowest_backlog numeric, waiting numeric, consumed numeric, latency_us numeric)
			LEFT JOIN jsonb_array_elements((s).earlier -> 'queue') o(l) ON (o.l ->> 'queue_id')::integer = q.queue_id
		WHERE q.enqueued + q.done + q.backlog > 0) q
	WHERE q.place <= 40);
COMMENT ON FUNCTION aq_internal.report_queues(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.consumer_growths(s aq_internal.span, OUT queue_name text, OUT consumer text, OUT enqueued numeric, OUT dequeued numeric, OUT lag_before numeric, OUT lag numeric, OUT waiting numeric, OUT consumed numeric, OUT latency_us numeric)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.queue_name, c.consumer, c.enqueued, c.dequeued, coalesce((o.l ->> 'lag')::numeric, 0), c.lag, c.waiting, c.consumed, c.latency_us
	FROM aq_internal.growths(s, 'subscriber') g, jsonb_to_record(g) c(queue_name text, consumer text, enqueued numeric, dequeued numeric, lag numeric, waiting numeric, consumed numeric, latency_us numeric)
		LEFT JOIN jsonb_array_elements((s).earlier -> 'subscriber') o(l) ON o.l ->> 'queue_name' = c.queue_name AND o.l ->> 'consumer' = c.consumer
	WHERE c.consumer IS NOT NULL
$$;
COMMENT ON FUNCTION aq_internal.consumer_growths(aq_internal.span) IS 'Internal: consumers of topics over a span';

CREATE FUNCTION aq_internal.report_subscribers(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('subscribers', 'Subscribers',
		ARRAY['Queue', 'Consumer', 'For It|messages|number|0', 'Done|messages|number|0', 'Done Rate|messages/s|number|1', 'Lag Begin|messages|number|0', 'Lag End|messages|number|0',
			'Lag Growth|messages/s|number|1', 'Avg Latency|ms|number|3', 'Waiting at End|sessions|number|0'],
		jsonb_agg(jsonb_build_array(queue_name, consumer, enqueued, dequeued, aq_internal.ratio(dequeued, (s).elapsed), lag_before, lag, aq_internal.ratio(lag - lag_before, (s).elapsed),
			aq_internal.ratio(latency_us, consumed, 0.001), waiting) ORDER BY lag DESC, dequeued DESC, queue_name, consumer),
		ARRAY['Consumers of topics, the first 40 by lag. Avg Latency: from the enqueue to the commit of the dequeue, of the messages consumed; a delay counts.'])
	FROM (SELECT c.* FROM aq_internal.consumer_growths(s) c WHERE c.enqueued + c.dequeued + c.lag > 0 ORDER BY c.lag DESC, c.dequeued DESC, c.queue_name, c.consumer LIMIT 40) c);
COMMENT ON FUNCTION aq_internal.report_subscribers(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.shard_growths(s aq_internal.span, OUT queue_name text, OUT shard integer, OUT enqueued numeric, OUT partitions numeric, OUT resident numeric, OUT part numeric, OUT shards bigint)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT h.queue_name, h.shard, h.enqueued, h.partitions, h.resident, h.enqueued / nullif(sum(h.enqueued) OVER w, 0), count(*) FILTER (WHERE h.enqueued > 0) OVER w
	FROM aq_internal.growths(s, 'shard') g, jsonb_to_record(g) h(queue_name text, shard integer, enqueued numeric, partitions numeric, resident numeric)
	WINDOW w AS (PARTITION BY h.queue_name)
$$;
COMMENT ON FUNCTION aq_internal.shard_growths(aq_internal.span) IS 'Internal: shards over a span, with their part of the queue''s messages';

CREATE FUNCTION aq_internal.report_shards(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('shards', 'Shards',
		ARRAY['Queue', 'Shard|#|number|0', 'Enqueued|messages|number|0', '% of Queue|%|percent|1', 'Partitions at End|partitions|number|0', 'In Cache at End|partitions|number|0'],
		jsonb_agg(jsonb_build_array(queue_name, shard, enqueued, part * 100, partitions, resident) ORDER BY enqueued DESC, queue_name, shard),
		ARRAY['The first 40. A session enqueues into one shard, so as many are in use as sessions enqueue, up to the queue''s number of shards.'])
	FROM (SELECT h.* FROM aq_internal.shard_growths(s) h WHERE h.enqueued + h.partitions > 0 ORDER BY h.enqueued DESC, h.queue_name, h.shard LIMIT 40) h);
COMMENT ON FUNCTION aq_internal.report_shards(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_message_cache(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH m AS (SELECT b.l AS was, e.l AS is_now FROM jsonb_array_elements((s).later -> 'message_cache') e(l) LEFT JOIN jsonb_array_elements((s).earlier -> 'message_cache') b(l) ON true),
	hits AS (SELECT aq_internal.stat(s, 'message cache hits') AS hits, aq_internal.stat(s, 'message cache misses') AS misses)
	SELECT aq_internal.section('message_cache', 'Message Cache', ARRAY['Figure', 'Unit', 'Begin|see unit|number|0', 'End|see unit|number|0', 'In Between|see unit|number|0'],
		jsonb_agg(jsonb_build_array(label, unit, before, after, growth) ORDER BY n) FILTER (WHERE coalesce(before, after, growth) IS NOT NULL),
		ARRAY[(SELECT format('Hit ratio: %s %% of %s looks into a partition found it in memory.', round(aq_internal.ratio(hits, hits + misses, 100), 2), hits + misses) FROM hits WHERE hits + misses > 0)])
	FROM m CROSS JOIN LATERAL (VALUES
		(1, 'size', 'bytes', (was ->> 'total_bytes')::numeric, (is_now ->> 'total_bytes')::numeric, NULL::numeric),
		(2, 'used', 'bytes', (was ->> 'used_bytes')::numeric, (is_now ->> 'used_bytes')::numeric, NULL),
		(3, 'partitions in the cache', 'partitions', (was ->> 'resident_partitions')::numeric, (is_now ->> 'resident_partitions')::numeric, NULL),
		(4, 'partitions in use', 'partitions', (was ->> 'known_partitions')::numeric, (is_now ->> 'known_partitions')::numeric, NULL),
		(5, 'hits', 'looks', NULL, NULL, aq_internal.stat(s, 'message cache hits')),
		(6, 'misses', 'looks', NULL, NULL, aq_internal.stat(s, 'message cache misses')),
		(7, 'partitions loaded', 'partitions', NULL, NULL, aq_internal.stat(s, 'message cache partitions loaded')),
		(8, 'partitions evicted', 'partitions', NULL, NULL, aq_internal.stat(s, 'message cache partitions evicted')),
		(9, 'partitions used again', 'partitions', NULL, NULL, aq_internal.stat(s, 'queue partitions reused'))) v(n, label, unit, before, after, growth));
COMMENT ON FUNCTION aq_internal.report_message_cache(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_wakeups(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('wakeups', 'Wake-ups', ARRAY['Wake-ups', 'Total|wake-ups|number|0', '% of Sent|%|percent|1', 'Per Second|wake-ups/s|number|1', 'Per Message Dequeued|wake-ups/message|number|2'],
		jsonb_agg(jsonb_build_array(label, value, aq_internal.ratio(value, aq_internal.stat(s, 'queue wake-ups sent'), 100), aq_internal.ratio(value, (s).elapsed),
			aq_internal.ratio(value, aq_internal.stat(s, 'queue messages dequeued'))) ORDER BY n) FILTER (WHERE value IS NOT NULL),
		ARRAY['Useful: the session found a message. False: it found no message for it, and continued to wait. Passed on: it had left, and another session was woken.'])
	FROM (VALUES (1, 'sent', aq_internal.stat(s, 'queue wake-ups sent')), (2, 'useful', aq_internal.stat(s, 'queue wake-ups useful')),
		(3, 'false', aq_internal.stat(s, 'queue wake-ups false')), (4, 'passed on', aq_internal.stat(s, 'queue wake-ups passed on'))) v(n, label, value));
COMMENT ON FUNCTION aq_internal.report_wakeups(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_sql(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT CASE WHEN (s).later ? 'sql' THEN aq_internal.section('sql_elapsed', 'Statements by Elapsed Time',
		ARRAY['Elapsed Time|s|number|3', 'Executions|executions|number|0', 'Elapsed per Exec|ms|number|3', '%Total|%|percent|1', '%CPU|%|percent|1', '%IO|%|percent|1', 'Rows per Exec|rows|number|1', 'SQL Id', 'Database', 'SQL Text'],
		jsonb_agg(jsonb_build_array(q.elapsed_us / 1000000, q.calls, aq_internal.ratio(q.elapsed_us, q.calls, 0.001), aq_internal.ratio(q.elapsed_us / 1000000, (s).db_time, 100),
			aq_internal.ratio(q.cpu_us, q.elapsed_us, 100), aq_internal.ratio(q.io_us, q.elapsed_us, 100), aq_internal.ratio(q.rows, q.calls), q.queryid, q.datname, q.sql_text) ORDER BY q.elapsed_us DESC, q.queryid),
		ARRAY['From pg_stat_statements, the first 20. %Total: of DB time. Elapsed Time includes waiting for messages, DB time does not. %CPU needs the extension pg_stat_kcache, which counts no CALL and measures a little more than the elapsed time; %IO needs track_io_timing.',
			'A CALL that a client has prepared is counted at its first execution only: pg_stat_statements does not know it again.',
			'A statement that was not among those kept at the begin counts from its first execution.']) END
	FROM (SELECT q.*, (c ->> 'cpu_us')::numeric AS cpu_us FROM aq_internal.growths(s, 'sql') g LEFT JOIN aq_internal.growths(s, 'sql_cpu') c
			ON c -> 'queryid' = g -> 'queryid' AND c -> 'userid' = g -> 'userid' AND c -> 'dbid' = g -> 'dbid', jsonb_to_record(g) q(queryid text, datname text, calls numeric, elapsed_us numeric, io_us numeric, rows numeric, sql_text text)
		WHERE q.calls > 0 ORDER BY q.elapsed_us DESC, q.queryid LIMIT 20) q);
COMMENT ON FUNCTION aq_internal.report_sql(aq_internal.span) IS 'Internal: section of the report';
