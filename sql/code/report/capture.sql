-- Figures: where they come from, what they are at a moment, and how much they have grown between two.
--
-- A capture is one jsonb: for each source an array of rows.  Snapshots store captures, reports compare two of them; so a report works between
-- two snapshots as between a mark and now.

-- The sources.  Nothing but views is read.  A source that needs a relation or an extension that is not there has no rows.
-- keys: what a row is known by; counters: columns that only grow while the server runs.  The others are what they are at the moment.
CREATE FUNCTION aq._sources() RETURNS TABLE (source text, needs text, keys text[], counters text[], query text)
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 30 SET search_path = pg_catalog, pg_temp AS $$
VALUES
('system_event', 'sys.v$system_event', '{event}'::text[],
	'{total_waits,total_timeouts,time_waited_micro,total_waits_fg,total_timeouts_fg,time_waited_micro_fg}'::text[],
	'SELECT event, event_id, wait_class, wait_class_id, total_waits, total_timeouts, time_waited_micro, total_waits_fg,
		total_timeouts_fg, time_waited_micro_fg FROM sys.v$system_event'),
('event_histogram', 'sys.v$event_histogram_micro', '{event,wait_time_micro}', '{wait_count}',
	'SELECT h.event, n.event_id, n.wait_class, h.wait_time_micro, h.wait_count FROM sys.v$event_histogram_micro h
		JOIN sys.v$event_name n ON n.name = h.event WHERE h.wait_count > 0'),
('sampled_event', 'sys.v$sampled_event', '{event,session_type}', '{samples,time_waited_micro}',
	'SELECT event, session_type, samples, time_waited_micro, wait_class FROM sys.v$sampled_event WHERE samples > 0'),
('latch', 'sys.v$latch', '{name}',
	'{gets,misses,sleeps,immediate_gets,immediate_misses,waiters_woken,waits_holding_latch,spin_gets,wait_time,spin_time}',
	'SELECT to_jsonb(l) - ''{addr,latch,sleep1,sleep2,sleep3,sleep4,sleep5,sleep6,sleep7,sleep8,sleep9,sleep10,sleep11}''::text[] AS line
		FROM sys.v$latch l'),
('latch_parent', 'sys.v$latch_parent', '{name,addr}',
	'{gets,misses,sleeps,immediate_gets,immediate_misses,waiters_woken,waits_holding_latch,spin_gets,wait_time,spin_time}',
	'SELECT to_jsonb(l) - ''{latch,sleep1,sleep2,sleep3,sleep4,sleep5,sleep6,sleep7,sleep8,sleep9,sleep10,sleep11}''::text[] AS line
		FROM sys.v$latch_parent l'),
('latch_children', 'sys.v$latch_children', '{name,child#,addr}',
	'{gets,misses,sleeps,immediate_gets,immediate_misses,waiters_woken,waits_holding_latch,spin_gets,wait_time,spin_time}',
	'SELECT to_jsonb(l) - ''{latch,child,sleep1,sleep2,sleep3,sleep4,sleep5,sleep6,sleep7,sleep8,sleep9,sleep10,sleep11}''::text[] AS line
		FROM sys.v$latch_children l WHERE gets > 0 OR immediate_gets > 0'),
('latch_misses', 'sys.v$latch_misses', '{parent_name,where}', '{nwfail_count,sleep_count,wtr_slp_count,longhold_count}',
	'SELECT * FROM sys.v$latch_misses WHERE nwfail_count + sleep_count + wtr_slp_count > 0'),
('mutex', 'sys.v$mutex', '{mutex_type,location}', '{gets,misses,spin_gets,waits,sleeps,wait_time,spin_time}',
	'SELECT * FROM sys.v$mutex WHERE gets + misses > 0'),
('mutex_hot', 'sys.v$mutex_sleep_history', '{mutex_type,mutex_identifier}', '{}',
	'SELECT mutex_type, mutex_identifier, count(*) AS requests, sum(sleeps) AS sleeps, max(sleep_timestamp) AS latest
		FROM sys.v$mutex_sleep_history GROUP BY mutex_type, mutex_identifier'),
('object', 'sys.v$db_object_cache', '{addr,full_hash_value}', '{loads,locked_total,pinned_total,invalidations,mutex_gets,mutex_sleeps}',
	'SELECT addr, full_hash_value, namespace, owner, name, hash_value, property, loads, locked_total, pinned_total, invalidations, mutex_gets, mutex_sleeps
	FROM sys.v$db_object_cache WHERE mutex_gets > 0'),
('library_cache', 'sys.v$librarycache', '{namespace}', '{gets,gethits,pins,pinhits,reloads,invalidations}',
	'SELECT * FROM sys.v$librarycache'),
('row_cache', 'sys.v$rowcache', '{parameter,type}', '{gets,getmisses,scans,scanmisses,scancompletes,modifications,flushes}',
	'SELECT * FROM sys.v$rowcache'),
('time_model', 'sys.v$sys_time_model', '{stat_name}', '{value}', 'SELECT * FROM sys.v$sys_time_model'),
('sysstat', 'sys.v$sysstat', '{name}', '{value}', 'SELECT * FROM sys.v$sysstat'),
('queue', NULL, '{queue_id}', '{enqueued,done,consumed,latency_us}',
	'SELECT q.queue_id, q.queue_name, CASE WHEN q.multiple_consumers THEN ''topic'' ELSE ''queue'' END AS kind, q.shards, max(n.enqueued) AS enqueued,
		sum(c.dequeued) AS done, max(c.enqueued - c.dequeued) AS backlog, sum(c.ready) AS ready, sum(c.waiting) AS waiting,
		max(t.consumed) AS consumed, max(t.latency) AS latency_us
	FROM aq.queue q LEFT JOIN aq._consumers() c USING (queue_id) CROSS JOIN LATERAL aq._queue_counters(q.queue_name) n
		CROSS JOIN LATERAL aq._queue_traffic(q.queue_name) t
	GROUP BY q.queue_id'),
('subscriber', NULL, '{queue_name,consumer}', '{enqueued,dequeued,consumed,latency_us}',
	'SELECT queue_name, consumer, kind, enqueued, dequeued, lag, ready, waiting, consumed, latency_us FROM aq.subscribers'),
('shard', NULL, '{queue_name,shard}', '{enqueued}',
	'SELECT queue_name, shard, sum(enqueued) AS enqueued, sum(pending) AS pending, sum(in_hand) AS in_hand, sum(partitions) AS partitions,
		sum(resident) AS resident FROM aq.shards GROUP BY queue_name, shard'),
('partition', NULL, '{queue_name}', '{}',
	'SELECT q.queue_name, count(*) AS partitions, count(*) FILTER (WHERE p.resident) AS resident,
		count(*) FILTER (WHERE p.state = ''done'') AS done, count(*) FILTER (WHERE p.state = ''closed'') AS closed, min(p.last_dequeue) FILTER (WHERE p.state = ''done'') AS done_since
	FROM aq._partitions() p JOIN aq.queue q USING (queue_id) WHERE p.state <> ''empty'' GROUP BY q.queue_name'),
('queue_table', NULL, '{relname}', '{}',
	'SELECT s.relname, s.n_live_tup AS live_rows, s.n_dead_tup AS dead_rows FROM pg_stat_all_tables s
	WHERE s.schemaname = ''aq_data'' AND s.relname ~ ''^[tc][0-9]+$'' '),
('message_cache', NULL, '{}', '{}', 'SELECT * FROM aq.message_cache'),
('database', NULL, '{datname}', '{xact_commit,xact_rollback,blks_read,blks_hit,tup_inserted,tup_updated,tup_deleted,temp_bytes,deadlocks,sessions,active_time}',
	'SELECT datname, xact_commit, xact_rollback, blks_read, blks_hit, tup_inserted, tup_updated, tup_deleted, temp_bytes, deadlocks, sessions,
		active_time FROM pg_stat_database WHERE datname IS NOT NULL'),
('wal', NULL, '{}', '{wal_records,wal_fpi,wal_bytes,wal_buffers_full,wal_write,wal_sync,wal_write_time,wal_sync_time}', 'SELECT to_jsonb(w) - ''stats_reset'' AS line FROM pg_stat_wal w'),
('session', NULL, '{backend_type}', '{}',
	'SELECT backend_type, count(*) AS sessions, count(*) FILTER (WHERE state = ''active'') AS active,
		count(*) FILTER (WHERE state LIKE ''idle in%'') AS idle_in_transaction FROM pg_stat_activity
	WHERE backend_type IN (''client backend'', ''pgaq worker'') GROUP BY backend_type'),
('xmin', NULL, '{kind,who}', '{}',
	'SELECT * FROM (
		SELECT ''session'' AS kind, format(''pid %s, %s, %s'', pid, coalesce(nullif(application_name, ''''), ''no application name''), state) AS who, age(backend_xmin) AS xmin_age,
			extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
		FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
			AND xact_start < clock_timestamp() - interval ''1 second''
		UNION ALL SELECT ''prepared transaction'', gid, age(transaction), extract(epoch FROM clock_timestamp() - prepared)::bigint
		FROM pg_prepared_xacts WHERE database = current_database()
		UNION ALL SELECT ''replication slot'', slot_name, greatest(age(xmin), age(catalog_xmin)), NULL
		FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL) x
	ORDER BY xmin_age DESC LIMIT 10'),
('parameter', NULL, '{name}', '{}',
	'SELECT name, setting, unit, source, boot_val FROM pg_settings WHERE name LIKE ''pgaq.%'' OR name IN (''synchronous_commit'', ''fsync'',
		''shared_buffers'', ''commit_delay'', ''max_connections'', ''wal_level'', ''max_wal_size'', ''checkpoint_timeout'', ''track_io_timing'')'),
('sql', 'extension pg_stat_statements', '{queryid,userid,dbid}', '{calls,elapsed_us,rows,io_us,wal_bytes}',
	'SELECT s.queryid::text AS queryid, s.userid::bigint AS userid, s.dbid::bigint AS dbid,
		(SELECT d.datname FROM pg_database d WHERE d.oid = s.dbid) AS datname, sum(s.calls) AS calls, round((sum(s.total_exec_time) * 1000)::numeric) AS elapsed_us,
		sum(s.rows) AS rows, sum(s.wal_bytes) AS wal_bytes, round(sum((coalesce(j ->> ''blk_read_time'', j ->> ''shared_blk_read_time'')::numeric
			+ coalesce(j ->> ''blk_write_time'', j ->> ''shared_blk_write_time'')::numeric) * 1000)) AS io_us,
		left(regexp_replace(min(s.query), ''\s+'', '' '', ''g''), 200) AS sql_text
	FROM %s.pg_stat_statements s, to_jsonb(s) j GROUP BY s.queryid, s.userid, s.dbid ORDER BY elapsed_us DESC LIMIT (SELECT topnsql FROM aq._snapshot_settings())'),
('sql_cpu', 'extension pg_stat_kcache', '{queryid,userid,dbid}', '{cpu_us}',
	'SELECT k.queryid::text AS queryid, k.userid::bigint AS userid, k.dbid::bigint AS dbid, round(sum(coalesce(j ->> ''exec_user_time'', j ->> ''user_time'')::numeric
			+ coalesce(j ->> ''exec_system_time'', j ->> ''system_time'')::numeric) * 1000000) AS cpu_us
	FROM %s.pg_stat_kcache() k, to_jsonb(k) j GROUP BY 1, 2, 3 ORDER BY cpu_us DESC LIMIT (SELECT topnsql FROM aq._snapshot_settings())')
$$;
COMMENT ON FUNCTION aq._sources() IS 'Internal: where the figures of a snapshot come from';

CREATE FUNCTION aq._dbid() RETURNS bigint LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT hashint8extended(system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())::bigint) & 4294967295
	FROM pg_control_system());
COMMENT ON FUNCTION aq._dbid() IS 'Internal: number of this database of this server, as long as both last; a copy by physical backup has the same';

-- Not pg_postmaster_start_time(): after a crash of a session shared memory begins anew, and the postmaster goes on.
CREATE FUNCTION aq._startup_time() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN coalesce((SELECT max(backend_start) FROM pg_stat_activity WHERE backend_type = 'checkpointer'), pg_postmaster_start_time());
COMMENT ON FUNCTION aq._startup_time() IS 'Internal: when the counters in shared memory were zero';

-- A restored or upgraded database has another number; until somebody gives it settings of its own, those that came with its history hold.
CREATE FUNCTION aq._snapshot_settings(OUT dbid bigint, OUT snap_interval interval, OUT retention interval, OUT topnsql integer)
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT d.dbid, coalesce(c.snap_interval, interval '60 minutes'), coalesce(c.retention, interval '8 days'),
		CASE WHEN c.dbid IS NULL THEN 200 ELSE c.topnsql END
	FROM aq._dbid() d(dbid) LEFT JOIN LATERAL (SELECT o.* FROM aq.snapshot_control o
		ORDER BY o.dbid = d.dbid DESC, (SELECT max(s.end_interval_time) FROM aq.snapshot s WHERE s.dbid = o.dbid) DESC NULLS LAST LIMIT 1) c ON true;
END;
COMMENT ON FUNCTION aq._snapshot_settings() IS 'Internal: settings of the snapshots of this database';

CREATE FUNCTION aq._source_query(needs text, query text) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN CASE
	WHEN needs LIKE 'extension %' THEN (SELECT format(query, quote_ident(n.nspname)) FROM pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = substr(needs, 11))
	WHEN needs IS NULL OR EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = split_part(needs, '.', 1) AND c.relname = split_part(needs, '.', 2)) THEN query END;
COMMENT ON FUNCTION aq._source_query(text, text) IS 'Internal: query of a source; null: what it needs is not there';

-- A source that cannot be read costs its own figures, never the capture: e.g. queues, when there is no place for one in the object cache, or
-- pg_stat_statements without its library.
CREATE FUNCTION aq._capture(sources text[] DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s record;
	data jsonb;
	done jsonb := '{}';
	errors jsonb := '[]';
BEGIN
	-- the server's own statistics of this moment, not of the transaction's first look
	PERFORM pg_stat_clear_snapshot();
	FOR s IN SELECT f.source, aq._source_query(f.needs, f.query) AS query FROM aq._sources() f
		WHERE sources IS NULL OR f.source = ANY (sources) LOOP
		CONTINUE WHEN s.query IS NULL;
		BEGIN
			EXECUTE format('SELECT jsonb_agg(x) FROM (%s) x', s.query) INTO data;
			-- a query may give its rows as one column "line"
			IF data #> '{0,line}' IS NOT NULL THEN
				SELECT jsonb_agg(r -> 'line') INTO data FROM jsonb_array_elements(data) r;
			END IF;
			done := done || jsonb_build_object(s.source, coalesce(data, '[]'));
		EXCEPTION WHEN OTHERS THEN
			errors := errors || jsonb_build_object('source', s.source, 'error', sqlerrm);
		END;
	END LOOP;
	RETURN CASE WHEN errors = '[]' THEN done ELSE done || jsonb_build_object('error', errors) END;
END $$;
COMMENT ON FUNCTION aq._capture(text[]) IS 'Internal: figures of all sources at this moment';

-- The rows of a source as they are later, their counters replaced by what these have grown by.  A counter that is smaller has begun at zero in
-- between; so it has grown by what it is.  (Written out, as this runs for thousands of rows; a source has three keys at most.)
CREATE FUNCTION aq._growths(source text, earlier jsonb, later jsonb) RETURNS SETOF jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	k text[];
	counters text[];
BEGIN
	SELECT f.keys, f.counters INTO STRICT k, counters FROM aq._sources() f WHERE f.source = $1;
	RETURN QUERY
	SELECT e.line || coalesce((SELECT jsonb_object_agg(c, CASE
			WHEN jsonb_typeof(e.line -> c) <> 'number' OR jsonb_typeof(b.line -> c) IS DISTINCT FROM 'number' OR (e.line -> c)::numeric < (b.line -> c)::numeric THEN e.line -> c
			ELSE to_jsonb((e.line -> c)::numeric - (b.line -> c)::numeric) END)
		FROM unnest(counters) c WHERE e.line ? c), '{}')
	FROM (SELECT jsonb_build_array(l -> k[1], l -> k[2], l -> k[3]) AS key, l AS line FROM jsonb_array_elements(later -> source) l) e
		LEFT JOIN (SELECT jsonb_build_array(l -> k[1], l -> k[2], l -> k[3]) AS key, l AS line FROM jsonb_array_elements(earlier -> source) l) b USING (key);
END $$;
COMMENT ON FUNCTION aq._growths(text, jsonb, jsonb) IS 'Internal: rows of a source, with what its counters have grown by between two captures';
