-- Figures: their sources, their values at one moment, and their growth between two.
--
-- A capture is one jsonb: for each source an array of rows. Snapshots store captures, reports compare two of them; so a report works between two
-- snapshots in the same way as between a mark and now.

-- Snapshots keep no secrets. pg_stat_statements replaces constants, but not those of utility statements (ALTER ROLE ... PASSWORD), and not always those of a
-- statement that it has just forgotten. So of a statement that does not begin as a query does, the first two words are kept, and any text ends at its first
-- string constant. A comment that ends unexpectedly makes a statement a utility statement.
CREATE FUNCTION aq_internal.statement_shown(query text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL UNSAFE
RETURN (SELECT CASE
		WHEN q !~* '^(\(\s*)*(select|insert|update|delete|merge|with|values|table)\M' THEN coalesce(substring(q FROM '^[[:alpha:]]+(?: [[:alpha:]_][[:alnum:]_.]*)?'), 'utility statement')
		ELSE regexp_replace(q, '(''|\$[^0-9]).*', '..') END
	FROM (SELECT regexp_replace(regexp_replace(query, '^(\s|--[^\n]*(\n|$)|/\*([^*]|\*+[^*/])*\*+/)+', ''), '\s+', ' ', 'g') AS q) s);
COMMENT ON FUNCTION aq_internal.statement_shown(text) IS 'Internal: text of a statement without what its author may not want to show';

-- The sources. Only views are read. A source that needs a missing extension has no rows.
-- keys: columns that identify a row; counters: columns that only grow while the server runs. The other columns are current values.
-- A source that is read from a view has the name of the view, and its columns.
CREATE FUNCTION aq_internal.sources() RETURNS TABLE (source text, needs text, keys text[], counters text[], query text)
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 30 SET search_path = pg_catalog, pg_temp AS $$
VALUES
('waits', NULL, '{event}'::text[], '{waits,timeouts,total_us,client_waits,client_timeouts,client_us}'::text[], 'SELECT * FROM aq.waits'),
('wait_histogram', NULL, '{event,less_than_us}', '{waits}',
	'SELECT h.event, n.event_id, n.wait_class, h.less_than_us, h.waits FROM aq.wait_histogram h JOIN aq.wait_events n USING (event) WHERE h.waits > 0'),
('sampled_waits', NULL, '{event,background}', '{samples,time_us,db_samples,db_time_us}', 'SELECT * FROM aq.sampled_waits WHERE samples > 0'),
('latches', NULL, '{latch}', '{gets,misses,sleeps,immediate_gets,immediate_misses,waiters_woken,waits_holding_latch,spin_gets,wait_us,spin_us}',
	'SELECT to_jsonb(l) - ''protects'' AS line FROM aq.latches l'),
('latch_children', NULL, '{latch,child,addr}', '{gets,misses,sleeps,immediate_gets,immediate_misses,waiters_woken,waits_holding_latch,spin_gets,wait_us,spin_us}',
	'SELECT * FROM aq.latch_children WHERE gets > 0 OR immediate_gets > 0'),
('latch_misses', NULL, '{latch,location}', '{immediate_misses,holder_sleeps,waiter_sleeps,long_holds}',
	'SELECT * FROM aq.latch_misses WHERE immediate_misses + holder_sleeps + waiter_sleeps > 0'),
('mutexes', NULL, '{mutex_type,location}', '{gets,misses,spin_gets,waits,sleeps,wait_us,spin_us}', 'SELECT * FROM aq.mutexes WHERE gets + misses > 0'),
('mutex_waits', NULL, '{mutex_type,identifier}', '{}',
	'SELECT mutex_type, identifier, count(*) AS requests, sum(sleeps) AS sleeps, max(ended) AS latest,
		-- each of the requests, because a report counts those of its interval only
		jsonb_agg(jsonb_build_array(ended, sleeps) ORDER BY ended) AS each
	FROM aq.mutex_waits GROUP BY mutex_type, identifier'),
('cached_objects', NULL, '{addr,full_hash}', '{loads,locked_total,pinned_total,invalidations,mutex_gets,mutex_sleeps}',
	'SELECT addr, full_hash, queue_name, hash, property, loads, locked_total, pinned_total, invalidations, mutex_gets, mutex_sleeps
		FROM aq.cached_objects WHERE mutex_gets > 0'),
('object_cache', NULL, '{}', '{gets,hits,pins,pin_hits,reloads,invalidations,aged_out}', 'SELECT * FROM aq.object_cache'),
('dictionary_cache', NULL, '{cache}', '{gets,misses,modifications,flushes}', 'SELECT * FROM aq.dictionary_cache'),
('time_model', NULL, '{name}', '{time_us}', 'SELECT * FROM aq.time_model'),
('statistics', NULL, '{name}', '{value}', 'SELECT stat_id, name, class, value, source FROM aq.statistics'),
('queue', NULL, '{queue_id}', '{enqueued,done,consumed,latency_us}',
	'SELECT q.queue_id, q.queue_name, CASE WHEN q.multiple_consumers THEN ''topic'' ELSE ''queue'' END AS kind, q.shards, n.enqueued,
		c.done, c.backlog, c.slowest_backlog, c.ready, c.waiting, t.consumed, t.latency AS latency_us
	FROM aq_internal.queue q LEFT JOIN (SELECT queue_id, sum(dequeued) AS done, sum(enqueued - dequeued) AS backlog, max(enqueued - dequeued) AS slowest_backlog,
			sum(ready) AS ready, sum(waiting) AS waiting FROM aq_internal.consumers() GROUP BY queue_id) c USING (queue_id)
		CROSS JOIN LATERAL aq_internal.queue_counters(q.queue_name) n CROSS JOIN LATERAL aq_internal.queue_traffic(q.queue_name) t'),
('subscriber', NULL, '{queue_name,consumer}', '{enqueued,dequeued,consumed,latency_us}',
	'SELECT queue_name, consumer, kind, enqueued, dequeued, lag, ready, waiting, consumed, latency_us FROM aq.subscribers'),
('shard', NULL, '{queue_name,shard}', '{enqueued}',
	'SELECT queue_name, shard, sum(enqueued) AS enqueued, sum(pending) AS pending, sum(in_flight) AS in_flight, sum(partitions) AS partitions,
		sum(resident) AS resident FROM aq.shards GROUP BY queue_name, shard'),
('partition', NULL, '{queue_name}', '{}',
	'SELECT q.queue_name, count(*) AS partitions, count(*) FILTER (WHERE p.resident) AS resident,
		count(*) FILTER (WHERE p.state = ''done'') AS done, count(*) FILTER (WHERE p.state = ''closed'') AS closed, min(p.last_dequeue) FILTER (WHERE p.state = ''done'') AS done_since
	FROM aq_internal.partitions() p JOIN aq_internal.queue q USING (queue_id) WHERE p.state <> ''empty'' GROUP BY q.queue_name'),
('queue_table', NULL, '{relname}', '{}',
	'SELECT s.relname, s.n_live_tup AS live_rows, s.n_dead_tup AS dead_rows FROM pg_stat_all_tables s
	WHERE s.schemaname = ''aq_data'' AND s.relname ~ ''^[tc][0-9]+$'' '),
('message_cache', NULL, '{}', '{}', 'SELECT * FROM aq.message_cache'),
('worker', NULL, '{database_id}', '{}',
	'SELECT database, database_id::bigint, state, since, hint, error, error_time FROM aq.workers WHERE state IN (''waiting'', ''failed'')'),
('link', NULL, '{server,role}', '{}',
	'SELECT server, role, state, failures, sqlstate, error, hint, error_time, problem FROM aq.links WHERE state = ''failed'' OR failures > 3 OR problem IS NOT NULL'),
('node', NULL, '{server}', '{}',
	'SELECT server, node_id, state, failures, last_seen, sqlstate, error, hint, queue_error FROM aq.nodes WHERE state IN (''unreachable'', ''refused'', ''copy'') OR queue_error IS NOT NULL'),
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
		''shared_buffers'', ''commit_delay'', ''max_connections'', ''wal_level'', ''max_wal_size'', ''checkpoint_timeout'', ''track_io_timing'', ''track_wal_io_timing'')'),
('sql', 'pg_stat_statements', '{queryid,userid,dbid}', '{calls,elapsed_us,rows,io_us,wal_bytes}',
	'SELECT s.queryid::text AS queryid, s.userid::bigint AS userid, s.dbid::bigint AS dbid,
		(SELECT d.datname FROM pg_database d WHERE d.oid = s.dbid) AS datname, sum(s.calls) AS calls, round((sum(s.total_exec_time) * 1000)::numeric) AS elapsed_us,
		sum(s.rows) AS rows, sum(s.wal_bytes) AS wal_bytes, round(sum((coalesce(j ->> ''blk_read_time'', j ->> ''shared_blk_read_time'')::numeric
			+ coalesce(j ->> ''blk_write_time'', j ->> ''shared_blk_write_time'')::numeric) * 1000)) AS io_us,
		aq_internal.clip(aq_internal.statement_shown(min(s.query)), 200) AS sql_text
	FROM %s.pg_stat_statements s, to_jsonb(s) j GROUP BY s.queryid, s.userid, s.dbid ORDER BY elapsed_us DESC LIMIT (SELECT top_statements FROM aq_internal.snapshot_settings())'),
('sql_cpu', 'pg_stat_kcache', '{queryid,userid,dbid}', '{cpu_us}',
	'SELECT k.queryid::text AS queryid, k.userid::bigint AS userid, k.dbid::bigint AS dbid, round(sum(coalesce(j ->> ''exec_user_time'', j ->> ''user_time'')::numeric
			+ coalesce(j ->> ''exec_system_time'', j ->> ''system_time'')::numeric) * 1000000) AS cpu_us
	FROM %s.pg_stat_kcache() k, to_jsonb(k) j GROUP BY 1, 2, 3 ORDER BY cpu_us DESC LIMIT (SELECT top_statements FROM aq_internal.snapshot_settings())')
$$;
COMMENT ON FUNCTION aq_internal.sources() IS 'Internal: where the figures of a snapshot come from';

CREATE FUNCTION aq_internal.dbid() RETURNS bigint LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT hashint8extended(system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())::bigint) & 4294967295
	FROM pg_control_system());
COMMENT ON FUNCTION aq_internal.dbid() IS 'Internal: number of this database of this server, as long as both last; a copy by physical backup has the same';

-- Not pg_postmaster_start_time(): after a crash of a session, shared memory is reinitialized while the postmaster keeps running.
CREATE FUNCTION aq_internal.startup_time() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN coalesce((SELECT max(backend_start) FROM pg_stat_activity WHERE backend_type = 'checkpointer'), pg_postmaster_start_time());
COMMENT ON FUNCTION aq_internal.startup_time() IS 'Internal: when the counters in shared memory were zero';

-- A restored or upgraded database has another id; until its settings are changed, those restored with its history apply.
CREATE FUNCTION aq_internal.snapshot_settings(OUT dbid bigint, OUT every interval, OUT retention interval, OUT top_statements integer)
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT d.dbid, coalesce(c.every, interval '60 minutes'), coalesce(c.retention, interval '8 days'),
		CASE WHEN c.dbid IS NULL THEN 200 ELSE c.top_statements END
	FROM aq_internal.dbid() d(dbid) LEFT JOIN LATERAL (SELECT o.* FROM aq_internal.snapshot_control o
		ORDER BY o.dbid = d.dbid DESC, (SELECT max(s.taken) FROM aq_internal.snapshot s WHERE s.dbid = o.dbid) DESC NULLS LAST LIMIT 1) c ON true;
END;
COMMENT ON FUNCTION aq_internal.snapshot_settings() IS 'Internal: settings of the snapshots of this database';

CREATE FUNCTION aq_internal.source_query(needs text, query text) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN CASE
	WHEN needs IS NULL THEN query
	ELSE (SELECT format(query, quote_ident(n.nspname)) FROM pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = needs) END;
COMMENT ON FUNCTION aq_internal.source_query(text, text) IS 'Internal: query of a source; null: what it needs is not there';

-- A source that cannot be read loses its own figures, but does not make the capture fail: for example queues, if the object cache is full, or
-- pg_stat_statements without its library.
CREATE FUNCTION aq_internal.capture(sources text[] DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s record;
	data jsonb;
	names text[] := '{}';
	figures jsonb[] := '{}'; -- put together at the end, because each copy takes long if there are many consumers
	errors jsonb := '[]';
BEGIN
	-- the server's current statistics, not those cached by the transaction
	PERFORM pg_stat_clear_snapshot();
	FOR s IN SELECT f.source, aq_internal.source_query(f.needs, f.query) AS query FROM aq_internal.sources() f
		WHERE sources IS NULL OR f.source = ANY (sources) LOOP
		CONTINUE WHEN s.query IS NULL;
		BEGIN
			EXECUTE format('SELECT jsonb_agg(x) FROM (%s) x', s.query) INTO data;
			-- a query may return its rows as one column "line"
			IF data #> '{0,line}' IS NOT NULL THEN
				SELECT jsonb_agg(r -> 'line') INTO data FROM jsonb_array_elements(data) r;
			END IF;
			names := array_append(names, s.source);
			figures := array_append(figures, coalesce(data, '[]'));
		EXCEPTION WHEN OTHERS THEN
			errors := errors || jsonb_build_object('source', s.source, 'error', sqlerrm);
		END;
	END LOOP;
	IF errors <> '[]' THEN
		names := array_append(names, 'error');
		figures := array_append(figures, errors);
	END IF;
	RETURN (SELECT coalesce(jsonb_object_agg(f.name, f.lines), '{}') FROM unnest(names, figures) f(name, lines));
END $$;
COMMENT ON FUNCTION aq_internal.capture(text[]) IS 'Internal: figures of all sources at this moment';

-- The later rows of a source, with counters replaced by their growth. A counter that is smaller than before was reset to zero in between, so its
-- growth is its value. (Written without a loop over keys, because it runs for thousands of rows; a source has at most three keys.)
CREATE FUNCTION aq_internal.growths(source text, earlier jsonb, later jsonb) RETURNS SETOF jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	k text[];
	counters text[];
BEGIN
	SELECT f.keys, f.counters INTO STRICT k, counters FROM aq_internal.sources() f WHERE f.source = $1;
	RETURN QUERY
	SELECT e.line || coalesce((SELECT jsonb_object_agg(c, CASE
			WHEN jsonb_typeof(e.line -> c) <> 'number' OR jsonb_typeof(b.line -> c) IS DISTINCT FROM 'number' OR (e.line -> c)::numeric < (b.line -> c)::numeric THEN e.line -> c
			ELSE to_jsonb((e.line -> c)::numeric - (b.line -> c)::numeric) END)
		FROM unnest(counters) c WHERE e.line ? c), '{}')
	FROM (SELECT jsonb_build_array(l -> k[1], l -> k[2], l -> k[3]) AS key, l AS line FROM jsonb_array_elements(later -> source) l) e
		LEFT JOIN (SELECT jsonb_build_array(l -> k[1], l -> k[2], l -> k[3]) AS key, l AS line FROM jsonb_array_elements(earlier -> source) l) b USING (key);
END $$;
COMMENT ON FUNCTION aq_internal.growths(text, jsonb, jsonb) IS 'Internal: rows of a source, with what its counters have grown by between two captures';
