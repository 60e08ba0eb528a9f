-- Oracle's views of the history: the contents of snapshots as rows. Keys are snap_id, dbid, instance_number (always 1).

-- A helper of this file, dropped at its end. It creates a view on a source of figures (aq_internal.sources) from one line per column: "name type |
-- meaning", "name type = field | meaning" if the field has another name, "name expression = over r.fields | meaning"; "field type" only declares a
-- field.
CREATE PROCEDURE sys._make_history(name text, source text, comment text, columns text, condition text DEFAULT '')
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
DECLARE
	line text;
	part text[];
	fields text[] := '{}';
	list text := E'snap_id = d.snap_id | the snapshot\ndbid = d.dbid | the database\ninstance_number = 1 | always 1';
BEGIN
	FOREACH line IN ARRAY pg_catalog.regexp_split_to_array(pg_catalog.btrim(columns, E' \t\n'), '\s*\n\s*') LOOP
		part := pg_catalog.regexp_match(line, '^(\S+) (\w+)(?: = ([^|]*[^| ]))?(?: \| (.*))?$');
		IF part[2] <> 'expression' THEN
			fields := fields || pg_catalog.format('%I %s', coalesce(part[3], part[1]), part[2]);
			part[3] := pg_catalog.format('r.%I', coalesce(part[3], part[1]));
		END IF;
		IF part[4] IS NOT NULL THEN
			list := list || pg_catalog.format(E'\n%s = %s | %s', part[1], part[3], part[4]);
		END IF;
	END LOOP;
	CALL aq_internal.make_view('sys', name, comment, pg_catalog.format('FROM aq_internal.snapshot_data d, jsonb_to_recordset(d.data) AS r(%s) WHERE d.source = %L %s',
		pg_catalog.array_to_string(fields, ', '), source, condition), list);
END $make$;

CALL aq_internal.make_view('sys', 'dba_hist_snapshot', 'Snapshots',
	'FROM aq_internal.snapshot s', $$
	snap_id = s.snap_id | the snapshot
	dbid = s.dbid | the database
	instance_number = 1 | always 1
	startup_time = s.startup_time
	begin_interval_time = s.begins
	end_interval_time = s.taken
	flush_elapsed = s.elapsed
	snap_level = 1 | always 1
	error_count = s.errors | sources that could not be read, see dba_hist_snap_error
	snap_flag = (NOT s.by_worker)::integer | 0: by the worker, 1: by a call
	snap_timezone = make_interval(secs => extract(timezone FROM s.taken)) | the session's time zone
$$, 'aq.snapshots');

CREATE VIEW sys.dba_hist_wr_control AS
SELECT dbid, every AS snap_interval, retention, coalesce(top_statements::text, 'MAXIMUM') AS topnsql
FROM aq_internal.snapshot_settings()
UNION ALL
SELECT d.dbid, c.every, c.retention, coalesce(c.top_statements::text, CASE WHEN c.dbid IS NOT NULL THEN 'MAXIMUM' END)
FROM (SELECT DISTINCT s.dbid FROM aq_internal.snapshot s) d LEFT JOIN aq_internal.snapshot_control c USING (dbid) WHERE d.dbid <> aq_internal.dbid();
COMMENT ON VIEW sys.dba_hist_wr_control IS 'Settings of the snapshots of this database, and of other databases whose snapshots it has';
COMMENT ON COLUMN sys.dba_hist_wr_control.dbid IS 'the database';
COMMENT ON COLUMN sys.dba_hist_wr_control.snap_interval IS 'time between snapshots; 0: the worker takes none';
COMMENT ON COLUMN sys.dba_hist_wr_control.retention IS 'how long they are kept; 0: forever';
COMMENT ON COLUMN sys.dba_hist_wr_control.topnsql IS 'statements kept of pg_stat_statements, those with the most time; MAXIMUM: all';
GRANT SELECT ON sys.dba_hist_wr_control TO pg_monitor;

CALL aq_internal.make_view('sys', 'dba_hist_baseline', 'Baselines: ranges of snapshots kept under a name',
	$$FROM aq_internal.snapshot_baseline b
	LEFT JOIN aq_internal.snapshot s ON s.dbid = b.dbid AND s.snap_id = b.first_snap_id
	LEFT JOIN aq_internal.snapshot e ON e.dbid = b.dbid AND e.snap_id = b.last_snap_id$$, $$
	dbid = b.dbid
	baseline_id = b.baseline_id
	baseline_name = b.baseline_name
	baseline_type = 'STATIC' | always STATIC
	start_snap_id = b.first_snap_id
	start_snap_time = s.taken | when that was taken
	end_snap_id = b.last_snap_id
	end_snap_time = e.taken | when that was taken
	creation_time = b.created
	expiration = b.expires_after_days
$$, 'aq.baselines');

CALL sys._make_history('dba_hist_snap_error', 'error', 'Sources that snapshots could not read', $$
	source_name text = source | source
	error_message text = error | the error
$$);

CALL sys._make_history('dba_hist_system_event', 'waits', 'Waits of all sessions, as v$system_event', $$
	event_id bigint | hash of the event
	event_name text = event | the event
	wait_class_id bigint | identifier of the class
	wait_class text | class; Idle does not count as lost time
	total_waits bigint = waits | waits since startup
	total_timeouts bigint = timeouts | waits that ended by their timeout
	time_waited_micro bigint = total_us | microseconds waited
	total_waits_fg bigint = client_waits | waits, only of users' sessions
	total_timeouts_fg bigint = client_timeouts | timeouts, only of users' sessions
	time_waited_micro_fg bigint = client_us | microseconds waited, only of users' sessions
$$);

CALL sys._make_history('dba_hist_bg_event_summary', 'waits', 'Waits of background workers', $$
	event_id bigint | hash of the event
	event_name text = event | the event
	wait_class_id bigint | identifier of the class
	wait_class text | class; Idle does not count as lost time
	total_waits expression = r.waits - r.client_waits | waits since startup
	total_timeouts expression = r.timeouts - r.client_timeouts | waits that ended by their timeout
	time_waited_micro expression = r.total_us - r.client_us | microseconds waited
	waits bigint
	client_waits bigint
	timeouts bigint
	client_timeouts bigint
	total_us bigint
	client_us bigint
$$);

CALL sys._make_history('dba_hist_sampled_event', 'sampled_waits', 'Estimates of PostgreSQL''s own waits, as v$sampled_event', $$
	event_name text = event | the event
	wait_class text | its class
	session_type expression = CASE WHEN r.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	background boolean
	samples bigint | samples that met it since startup
	time_waited_micro bigint = time_us | microseconds that these samples stand for
$$);

CALL sys._make_history('dba_hist_event_histogram', 'wait_histogram', 'Waits by duration, as v$event_histogram_micro', $$
	event_id bigint | hash of the event
	event_name text = event | the event
	wait_class text | its class
	wait_time_milli expression = round(r.less_than_us / 1000.0, 3) | upper bound in milliseconds; the last row includes all longer waits
	wait_count bigint = waits | waits since startup
	wait_time_micro bigint = less_than_us | upper bound in microseconds
$$);

DO $do$
DECLARE
	counters text := $$
		gets bigint | willing-to-wait requests
		misses bigint | of these: the first try failed
		sleeps bigint | sleeps
		immediate_gets bigint | requests without waiting
		immediate_misses bigint | of these: not got
		spin_gets bigint | misses that got it while spinning
		wait_time bigint = wait_us | microseconds slept
		spin_time bigint = spin_us | microseconds of CPU time spun for it
	$$;
	-- a kind with children has no latch besides them
	parents text := (SELECT string_agg(format(E'%s expression = CASE WHEN r.has_children THEN 0 ELSE r.%s END | %s\n%2$s bigint', p[1], coalesce(p[2], p[1]), p[3]), E'\n')
		FROM regexp_matches(counters, '(\w+) bigint(?: = (\w+))? \| ([^\n]*)', 'g') p) || E'\nhas_children boolean';
BEGIN
	CALL sys._make_history('dba_hist_latch', 'latches', 'Latches, children added up, as v$latch', $$
		latch_hash bigint = hash | hash of the name
		latch_name text = latch | the latch
		level# integer = level | its level
		$$ || counters);
	CALL sys._make_history('dba_hist_latch_parent', 'latches', 'Parent latches, as v$latch_parent', $$
		latch_hash bigint = hash | hash of the name
		latch_name text = latch | the latch
		level# integer = level | its level
		$$ || parents);
	CALL sys._make_history('dba_hist_latch_children', 'latch_children', 'Child latches that were got, as v$latch_children', $$
		latch_hash bigint = hash | hash of the name
		child# integer = child | number of the child
		latch_name text = latch | the latch
		addr text | address, hexadecimal
		$$ || counters);
END $do$;

CALL aq_internal.make_view('sys', 'dba_hist_latch_name', 'Names of latches',
	$$FROM aq_internal.snapshot_data d, jsonb_to_recordset(d.data) AS r(hash bigint, latch text)
WHERE d.source = 'latches' AND d.snap_id = (SELECT max(s.snap_id) FROM aq_internal.snapshot s WHERE s.dbid = d.dbid)$$, $$
	dbid = DISTINCT d.dbid | the database
	latch_hash = r.hash | hash of the name
	latch_name = r.latch | the latch
$$);

CALL sys._make_history('dba_hist_latch_misses_summary', 'latch_misses', 'Missed latches by location in the code, as v$latch_misses', $$
	parent_name text = latch | the latch
	where_in_code text = location | the location
	nwfail_count bigint = immediate_misses | no-wait requests at this location that failed
	sleep_count bigint = holder_sleeps | sleeps while the holder had got it here
	wtr_slp_count bigint = waiter_sleeps | sleeps of requests at this location
	longhold_count bigint = long_holds | of sleep_count: one holder kept it during the whole sleep
$$);

CALL sys._make_history('dba_hist_mutex_sleep', 'mutexes', 'Waits for mutexes by location in the code, as v$mutex_sleep', $$
	mutex_type text | what the mutex protects
	location text | location in the code
	sleeps bigint | steps of the wait loop
	wait_time bigint = wait_us | microseconds waited
	waits bigint | requests that waited
$$, 'AND r.sleeps > 0');

CALL sys._make_history('dba_hist_mutex', 'mutexes', 'Requests for mutexes by location in the code, as v$mutex', $$
	mutex_type text | what the mutex protects
	location text | location in the code
	gets bigint | requests that got it
	misses bigint | requests whose first try failed
	spin_gets bigint | of these: got it while spinning
	waits bigint | requests that waited
	sleeps bigint | steps of the wait loop
	wait_time bigint = wait_us | microseconds waited
	spin_time bigint = spin_us | microseconds of CPU time spent spinning
$$);

CALL sys._make_history('dba_hist_mutex_hot', 'mutex_waits', 'The latest waits for mutexes, by object, as v$mutex_sleep_history held them', $$
	mutex_type text | what the mutex protects
	mutex_identifier bigint = identifier | hash of the object
	requests bigint | requests that waited
	sleeps bigint | steps of their wait loops
	latest timestamptz | the last of them
$$);

CALL sys._make_history('dba_hist_rowcache_summary', 'dictionary_cache', 'Dictionary caches, as v$rowcache', $$
	parameter text = cache | the cache
	total_usage bigint = entries | entries
	usage expression = r.entries | entries with data
	gets bigint | requests
	getmisses bigint = misses | requests that found nothing
	scans expression = 0::bigint | always 0
	scanmisses expression = 0::bigint | always 0
	scancompletes expression = 0::bigint | always 0
	modifications bigint | changes
	flushes bigint | changes written
$$);

CALL sys._make_history('dba_hist_librarycache', 'object_cache', 'The object cache by kind of object, as v$librarycache', $$
	namespace expression = 'QUEUE' | kind of object
	gets bigint | locks requested
	gethits bigint = hits | of these: the handle was found
	pins bigint | pins requested
	pinhits bigint = pin_hits | of these: the object was loaded
	reloads bigint | objects loaded again
	invalidations bigint | objects whose definition changed
$$);

CALL sys._make_history('dba_hist_sys_time_model', 'time_model', 'Time of sessions, as v$sys_time_model', $$
	stat_id bigint | hash of the name
	stat_name text = name | what the time was spent on
	value bigint = time_us | microseconds since startup
$$);

CALL sys._make_history('dba_hist_sysstat', 'statistics', 'Statistics, as v$sysstat', $$
	stat_id bigint | hash of the name
	stat_name text = name | the statistic
	value bigint | its value since startup
$$);

CALL aq_internal.make_view('sys', 'dba_hist_sqlstat', 'Statements, as pg_stat_statements counts them: since its last reset, and since the snapshot before',
	$$FROM aq_internal.snapshot_data d CROSS JOIN LATERAL jsonb_to_recordset(d.data) AS r(queryid text, userid bigint, dbid bigint, datname text, calls bigint, elapsed_us bigint,
	rows bigint, io_us bigint, sql_text text)
	LEFT JOIN (SELECT c.dbid AS of_dbid, c.snap_id, k.* FROM aq_internal.snapshot_data c, jsonb_to_recordset(c.data) AS k(queryid text, userid bigint, dbid bigint, cpu_us bigint)
		WHERE c.source = 'sql_cpu') k ON k.of_dbid = d.dbid AND k.snap_id = d.snap_id AND k.queryid = r.queryid AND k.userid = r.userid AND k.dbid = r.dbid
WHERE d.source = 'sql'
WINDOW w AS (PARTITION BY d.dbid, r.queryid, r.userid, r.dbid ORDER BY d.snap_id)$$, $$
	snap_id = d.snap_id | the snapshot
	dbid = d.dbid | the database
	instance_number = 1 | always 1
	sql_id = r.queryid::bigint | the statement: queryid of pg_stat_statements
	parsing_schema_name = r.datname | database it ran in
	parsing_user_id = r.userid | oid of the role
	executions_total = r.calls | executions
	executions_delta = CASE WHEN r.calls >= lag(r.calls) OVER w THEN r.calls - lag(r.calls) OVER w ELSE r.calls END | of these: since the snapshot before
	elapsed_time_total = r.elapsed_us | microseconds elapsed
	elapsed_time_delta = CASE WHEN r.elapsed_us >= lag(r.elapsed_us) OVER w THEN r.elapsed_us - lag(r.elapsed_us) OVER w ELSE r.elapsed_us END | of these: since the snapshot before
	cpu_time_total = k.cpu_us | microseconds of CPU time; null without the extension pg_stat_kcache
	cpu_time_delta = CASE WHEN k.cpu_us >= lag(k.cpu_us) OVER w THEN k.cpu_us - lag(k.cpu_us) OVER w ELSE k.cpu_us END | of these: since the snapshot before
	rows_processed_total = r.rows | rows
	rows_processed_delta = CASE WHEN r.rows >= lag(r.rows) OVER w THEN r.rows - lag(r.rows) OVER w ELSE r.rows END | of these: since the snapshot before
	iowait_total = r.io_us | microseconds of reading and writing, where track_io_timing counts them
	iowait_delta = CASE WHEN r.io_us >= lag(r.io_us) OVER w THEN r.io_us - lag(r.io_us) OVER w ELSE r.io_us END | of these: since the snapshot before
	sql_text = r.sql_text | its first 200 characters
$$);

CALL aq_internal.make_view('sys', 'dba_hist_sqltext', 'Statements of the latest snapshot',
	$$FROM aq_internal.snapshot_data d, jsonb_to_recordset(d.data) AS r(queryid text, sql_text text)
WHERE d.source = 'sql' AND d.snap_id = (SELECT max(s.snap_id) FROM aq_internal.snapshot s WHERE s.dbid = d.dbid)$$, $$
	dbid = DISTINCT d.dbid | the database
	sql_id = r.queryid::bigint | the statement
	sql_text = r.sql_text | its first 200 characters
$$);

CALL sys._make_history('dba_hist_queue', 'queue', 'Traffic and backlog of each queue', $$
	queue_id integer | number of the queue
	queue_name text | the queue
	queue_type text = kind | queue or topic
	shards integer | shards; of a queue table 1
	enqueued_msgs bigint = enqueued | messages enqueued since startup, plus those present at startup
	done_msgs bigint = done | (message, consumer) pairs that are done
	consumed_msgs bigint = consumed | of these: consumed, neither purged nor failed
	latency_us bigint | total microseconds from their enqueues to the commits of their dequeues
	backlog bigint | messages that consumers have not finished; a message counts once for each
	slowest_backlog bigint | messages that the consumer with the longest backlog has not finished
	ready bigint | ready (message, consumer) pairs in the message cache
	waiting bigint | sessions that waited
$$);

CALL aq_internal.make_view('sys', 'dba_hist_channel_waits', 'Waits of consumers for messages: LISTEN and dequeue, Oracle''s broadcast channels',
	$$FROM sys.dba_hist_system_event e
WHERE e.event_name IN ('wait for unread message on broadcast channel', 'Streams AQ: waiting for messages in the queue')$$, $$
	snap_id = e.snap_id | the snapshot
	dbid = e.dbid | the database
	instance_number = 1 | always 1
	channel = e.event_name | the wait: LISTEN or dequeue
	messages_published = (SELECT sum(q.enqueued_msgs) FROM sys.dba_hist_queue q WHERE q.snap_id = e.snap_id AND q.dbid = e.dbid) | messages enqueued into all queues of the database
	wait_count = e.total_waits | waits
	wait_time_usec = e.time_waited_micro | microseconds waited
$$);

CALL sys._make_history('dba_hist_subscriber', 'subscriber', 'Traffic and lag of each consumer', $$
	queue_name text | the queue
	consumer text | the consumer; null: the only one
	kind text | subscriber, recipient or single
	enqueued_msgs bigint = enqueued | messages for it
	dequeued_msgs bigint = dequeued | messages that it has finished
	consumed_msgs bigint = consumed | of these: consumed, neither purged nor failed
	latency_us bigint | total microseconds from their enqueues to the commits of their dequeues
	lag bigint | messages that it has not finished
	ready bigint | of these: ready and in the message cache
	waiting integer | sessions that waited for its messages
$$);

CALL sys._make_history('dba_hist_shard', 'shard', 'Traffic of each shard', $$
	queue_name text | the queue
	shard_id integer = shard | number of the shard
	enqueued_msgs bigint = enqueued | messages committed
	pending bigint | messages of transactions that were running
	in_flight bigint | (message, consumer) pairs locked by such transactions
	partitions bigint | partitions that held its messages
	resident bigint | of these: in the message cache
$$);

CALL sys._make_history('dba_hist_partition', 'partition', 'Partitions of each queue', $$
	queue_name text | the queue
	partitions bigint | partitions in use
	resident bigint | of these: in the message cache
	closed bigint | of these: full
	done bigint | of these: all consumed, and not yet free
	done_since timestamptz | oldest last dequeue of these
$$);

CALL sys._make_history('dba_hist_message_cache', 'message_cache', 'The message cache', $$
	total_bytes bigint | size
	used_bytes bigint | in use
	free_bytes bigint | not in use
	resident_partitions bigint | partitions in the cache
	known_partitions bigint | partitions of all queues in use
	max_partitions bigint | pgaq.max_partitions
$$);

CALL sys._make_history('dba_hist_database', 'database', 'Transactions and blocks of each database, as pg_stat_database', $$
	datname text | the database
	xact_commit bigint | commits
	xact_rollback bigint | rollbacks
	blks_read bigint | blocks read
	blks_hit bigint | blocks found in memory
	tup_inserted bigint | rows inserted
	tup_updated bigint | rows updated
	tup_deleted bigint | rows deleted
	temp_bytes bigint | bytes in temporary files
	deadlocks bigint | deadlocks
	sessions bigint | sessions begun
$$);

CALL sys._make_history('dba_hist_wal', 'wal', 'Write-ahead log, as pg_stat_wal', $$
	wal_records numeric | records
	wal_fpi numeric | full page images
	wal_bytes numeric | bytes
	wal_write numeric | writes; null where pg_stat_wal does not have it
	wal_sync numeric | flushes; null where pg_stat_wal does not have it
$$);

CALL sys._make_history('dba_hist_session', 'session', 'Sessions at the moment of the snapshot', $$
	backend_type text | client backend or worker
	sessions bigint | sessions
	active bigint | of these: active
	idle_in_transaction bigint | of these: idle in a transaction
$$);

CALL sys._make_history('dba_hist_xmin_holder', 'xmin', 'The oldest holders of the xmin horizon, which delay the reuse of space', $$
	kind text | session, prepared transaction or replication slot
	holder text = who | which one
	xmin_age bigint | transactions begun since
	seconds bigint | duration so far; null: not known
$$);

CALL sys._make_history('dba_hist_parameter', 'parameter', 'Parameters', $$
	parameter_name text = name | name
	value text = setting | setting
	unit text | unit of the setting
	source text | where it was set
	boot_val text | default
$$);

DROP PROCEDURE sys._make_history(text, text, text, text, text);
