-- The sections of reports: a list of queries. A column of a query is a column of the section; its name is name|unit|digits, without a unit it is text.
-- s is the span of the report, sampled its samples, other a second span. A chart is kind|title|name of x|name of y|unit of y; its query returns its points as five columns:
-- order and label of x, order and name of the series, value. There lines has the rows of the section.
--	area		series stacked over x, line		one line each, histogram	columns, series side by side
--	bar			horizontal bars for each x, one below the other for each series

-- The most frequent values in samples, as the query of a section.
CREATE FUNCTION aq_internal.ash_top(columns text, groups text, who text, condition text DEFAULT 'true') RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN format('SELECT %s, ratio(sum(seconds), (SELECT sum(x.seconds) FROM unnest(sampled) x WHERE %s), 100) AS "%% Activity|%%|2", ratio(sum(seconds), (s).elapsed) AS "Avg Active|sessions|2",
	count(*) AS "Samples|samples|0" FROM unnest(sampled) WHERE %2$s AND %3$s GROUP BY %4$s ORDER BY sum(seconds) DESC, %4$s LIMIT 15', columns, who, condition, groups);
COMMENT ON FUNCTION aq_internal.ash_top(text, text, text, text) IS 'Internal: query of a section on samples';

CREATE FUNCTION aq_internal.report_sections(OUT reports text[], OUT needs text, OUT id text, OUT title text, OUT notes text[], OUT query text, OUT chart text, OUT points text)
RETURNS SETOF record LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 50 SET search_path = pg_catalog, pg_temp AS $list$
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
$list$;
COMMENT ON FUNCTION aq_internal.report_sections() IS 'Internal: the sections of reports';

-- The queries run with these schemas in their path, and after them the sections are put together.
CREATE FUNCTION aq_internal.section(id text, title text, notes text[], query text, chart text, points text, s aq_internal.span, samples aq_internal.sample[], other aq_internal.span) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, aq, aq_internal, pg_temp AS $$
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
END $$;
COMMENT ON FUNCTION aq_internal.section(text, text, text[], text, text, text, aq_internal.span, aq_internal.sample[], aq_internal.span) IS 'Internal: a section of a report';

CREATE FUNCTION aq_internal.sections(report text, s aq_internal.span, samples aq_internal.sample[] DEFAULT '{}', other aq_internal.span DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_agg(aq_internal.section(l.id, l.title, l.notes, l.query, l.chart, l.points, s, samples, other) ORDER BY n)
	FROM aq_internal.report_sections() WITH ORDINALITY l(reports, needs, id, title, notes, query, chart, points, n)
	WHERE report = ANY (l.reports)
		AND CASE l.needs WHEN 'snapshots' THEN (s).end_snap IS NOT NULL WHEN 'samples' THEN report = 'ash' OR cardinality(samples) > 0 ELSE l.needs IS NULL OR (s).later ? l.needs END
$$;
COMMENT ON FUNCTION aq_internal.sections(text, aq_internal.span, aq_internal.sample[], aq_internal.span) IS 'Internal: the sections of a report';

CREATE FUNCTION aq_internal.columns(names text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT jsonb_agg(jsonb_build_object('name', split_part(c, '|', 1), 'unit', split_part(c, '|', 2), 'digits', coalesce(nullif(split_part(c, '|', 3), ''), '0')::integer,
		'type', CASE split_part(c, '|', 2) WHEN '' THEN 'text' WHEN '%' THEN 'percent' ELSE 'number' END) ORDER BY n)
	FROM unnest(names) WITH ORDINALITY u(c, n));
COMMENT ON FUNCTION aq_internal.columns(text[]) IS 'Internal: columns of a section, each from name|unit|digits';

-- A series has 0 where it has no point. Lines and areas need two points: one is no course.
CREATE FUNCTION aq_internal.chart(spec text, points jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (
	WITH p AS (SELECT (p ->> 0)::numeric AS x, p ->> 1 AS label, p ->> 2 AS s, p ->> 3 AS series, round((p ->> 4)::numeric, 3) AS value FROM jsonb_array_elements(points) p),
	x AS (SELECT x, min(label) AS label FROM p GROUP BY x),
	s AS (SELECT s.s, s.series, (SELECT jsonb_agg(CASE WHEN p.x IS NULL THEN 0 ELSE p.value END ORDER BY x.x) FROM x LEFT JOIN p ON p.x = x.x AND p.series = s.series) AS series_values
		FROM p s WHERE s.series IS NOT NULL GROUP BY s.s, s.series)
	SELECT jsonb_build_object('kind', k[1], 'title', k[2], 'x', jsonb_build_object('name', k[3], 'values', (SELECT jsonb_agg(label ORDER BY x) FROM x)),
		'y', jsonb_build_object('name', k[4], 'unit', k[5]), 'series', (SELECT jsonb_agg(jsonb_build_object('name', series, 'values', series_values) ORDER BY s) FROM s))
	FROM string_to_array(spec, '|') k
	WHERE EXISTS (SELECT FROM s) AND (k[1] NOT IN ('area', 'line') OR (SELECT count(*) > 1 FROM x)));
COMMENT ON FUNCTION aq_internal.chart(text, jsonb) IS 'Internal: a chart of a report; null when there is nothing to draw';

-- The points of a chart that shows columns of its section, by their places from 0 on.
CREATE FUNCTION aq_internal.points(lines jsonb, label integer, series text[], columns integer[]) RETURNS TABLE (x bigint, label_of text, s bigint, name text, value numeric)
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT u.n, u.l ->> label, c.n, c.name, (u.l ->> c.place)::numeric
	FROM jsonb_array_elements(lines) WITH ORDINALITY u(l, n), unnest(series, columns) WITH ORDINALITY c(name, place, n) WHERE u.n <= 12 OR label > 0
$$;
COMMENT ON FUNCTION aq_internal.points(jsonb, integer, text[], integer[]) IS 'Internal: the points of a chart from the rows of its section';

CREATE FUNCTION aq_internal.statistic_unit(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN name ~ 'bytes|size' THEN 'bytes' WHEN name ~ 'reads' THEN 'blocks' ELSE 'times' END;
COMMENT ON FUNCTION aq_internal.statistic_unit(text) IS 'Internal: unit of a statistic';
