-- Views of schema aq. Their functions show only queues on which the current role has a privilege; members of pg_monitor see the counters of all
-- queues, but no messages.

CREATE FUNCTION aq_internal.consumers(of integer DEFAULT NULL, OUT queue_id integer, OUT "position" integer, OUT enqueued bigint,
	OUT dequeued bigint, OUT ready bigint, OUT waiting integer, OUT last_enqueue timestamptz, OUT last_dequeue timestamptz,
	OUT consumed bigint, OUT latency bigint, OUT last_latency bigint, OUT dequeue_transactions bigint, OUT executions bigint,
	OUT dequeue_elapsed bigint, OUT dequeue_cpu bigint, OUT browsed bigint, OUT failed bigint,
	OUT rule_failures bigint, OUT last_rule_failure timestamptz, OUT rule_error bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 2 AS 'MODULE_PATHNAME', 'aq_shard_views_consumers';
COMMENT ON FUNCTION aq_internal.consumers(integer) IS 'Internal: of one queue, or of all: what is in shared memory of consumers; latency in microseconds, elapsed and CPU in nanoseconds, rule_error a packed SQLSTATE';

CREATE FUNCTION aq_internal.queue_counters(name text, OUT enqueued bigint, OUT dequeued bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_counters_queue';
COMMENT ON FUNCTION aq_internal.queue_counters(text) IS
'Internal: messages enqueued, and (message, consumer) pairs done with, since the queue came into use';

CREATE FUNCTION aq_internal.queue_traffic(name text, OUT last_enqueue timestamptz, OUT last_dequeue timestamptz, OUT consumed bigint,
	OUT latency bigint, OUT last_latency bigint, OUT dequeue_transactions bigint, OUT executions bigint, OUT dequeue_elapsed bigint,
	OUT dequeue_cpu bigint, OUT browsed bigint, OUT failed bigint, OUT rule_failures bigint, OUT last_rule_failure timestamptz,
	OUT rule_error bigint, OUT since timestamptz, OUT last_failure timestamptz,
	OUT last_ready timestamptz, OUT made_ready bigint, OUT enqueue_transactions bigint, OUT enqueued_expiry bigint,
	OUT enqueued_delay bigint, OUT enqueue_elapsed bigint, OUT enqueue_cpu bigint, OUT rules_elapsed bigint,
	OUT transformations_elapsed bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_counters_traffic';
COMMENT ON FUNCTION aq_internal.queue_traffic(text) IS 'Internal: what else is counted of a queue since it came into use';

CREATE FUNCTION aq_internal.listeners(OUT queue_id integer, OUT "position" integer)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_waiters_view_listeners';
COMMENT ON FUNCTION aq_internal.listeners() IS 'Internal: what sessions listen to, a row for each';

CREATE FUNCTION aq_internal.streams(of integer DEFAULT NULL, OUT queue_id integer, OUT shard integer, OUT priority integer, OUT delayed boolean,
	OUT enqueued bigint, OUT partitions integer, OUT resident integer, OUT pending bigint, OUT in_flight bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 2 AS 'MODULE_PATHNAME', 'aq_shard_views_streams';
COMMENT ON FUNCTION aq_internal.streams(integer) IS 'Internal: of one queue, or of all: what aq.shards shows';

CREATE FUNCTION aq_internal.partitions(of integer DEFAULT NULL, OUT queue_id integer, OUT table_no integer, OUT messages regclass, OUT log regclass,
	OUT state text, OUT shard integer, OUT priority integer, OUT delayed boolean, OUT first_ordinal bigint,
	OUT slots integer, OUT pending integer, OUT in_flight integer, OUT outstanding integer, OUT resident boolean,
	OUT next_timer timestamptz, OUT last_dequeue timestamptz, OUT chunks bigint, OUT browsed bigint, OUT expired bigint,
	OUT made_ready bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4 AS 'MODULE_PATHNAME', 'aq_shard_views_partitions';
COMMENT ON FUNCTION aq_internal.partitions(integer) IS 'Internal: of one queue, or of all: what aq.partitions shows';

CREATE FUNCTION aq_internal.message_cache(OUT total_bytes bigint, OUT free_bytes bigint, OUT chunk_bytes integer,
	OUT resident_partitions bigint, OUT known_partitions bigint, OUT max_partitions bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_shard_views_cache';
COMMENT ON FUNCTION aq_internal.message_cache() IS 'Internal: what aq.message_cache shows';

CREATE FUNCTION aq_internal.role_usage(OUT role oid, OUT resource text, OUT used bigint, OUT role_limit bigint, OUT used_by_all bigint,
	OUT total bigint, OUT parameter text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40 AS 'MODULE_PATHNAME', 'aq_share_view';
COMMENT ON FUNCTION aq_internal.role_usage() IS 'Internal: what aq.role_usage shows';

CREATE FUNCTION aq_internal.message_cache_use(OUT partitions bigint, OUT slots bigint, OUT frames bigint, OUT frame_bytes bigint,
	OUT seen bigint, OUT seen_slots bigint, OUT most_slots bigint, OUT fewest_slots bigint, OUT evictions bigint,
	OUT since timestamptz, OUT most_used_bytes bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_shard_views_cache_use';
COMMENT ON FUNCTION aq_internal.message_cache_use() IS 'Internal: partitions with messages, those in the message cache and their size, and what was seen since the server started';

CREATE FUNCTION aq_internal.message_cache_returns(OUT more bigint, OUT to_sessions bigint, OUT to_worker bigint, OUT not_back bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_shard_views_cache_returns';
COMMENT ON FUNCTION aq_internal.message_cache_returns() IS 'Internal: partitions that were evicted, by how many more the message cache had to hold to keep them: those that came back, and those that did not yet';

CREATE FUNCTION aq_internal.table_counters(of integer DEFAULT NULL, OUT queue_id integer, OUT added_by_sessions bigint, OUT added_by_worker bigint,
	OUT truncated_messages bigint, OUT truncated_logs bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_shard_views_table_counters';
COMMENT ON FUNCTION aq_internal.table_counters(integer) IS 'Internal: of one queue, or of all: tables of sharded queues made and truncated';

CREATE FUNCTION aq_internal.message_parts(queue_id integer, OUT table_no integer, OUT first_block bigint, OUT end_block bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 2 AS 'MODULE_PATHNAME', 'aq_message_view_parts';
COMMENT ON FUNCTION aq_internal.message_parts(integer) IS 'Internal: the parts in which aq_internal.message_rows reads a queue: a query with LIMIT reads the small first one, if that has enough rows';

CREATE FUNCTION aq_internal.message_rows(queue_id integer, wanted uuid, wanted_state text, table_no integer, first_block bigint, end_block bigint, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer,
	OUT correlation text, OUT enqueue_time timestamptz, OUT ready_at timestamptz, OUT expires_at timestamptz,
	OUT dequeue_time timestamptz, OUT attempts integer, OUT sender text, OUT exception_queue text,
	OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text,
	OUT leased_since timestamptz, OUT leased_until timestamptz, OUT leased_by text, OUT last_error text, OUT dead_letter jsonb, OUT key text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_message_view_rows';
COMMENT ON FUNCTION aq_internal.message_rows(integer, uuid, text, integer, bigint, bigint) IS 'Internal: what aq.messages shows of a part of one queue, all messages or the wanted ones; the planner sets wanted from a condition on msgid, and wanted_state from one on state';

CREATE FUNCTION aq_internal.classic_message_parts(queue_id integer, OUT table_no integer, OUT first_block bigint, OUT end_block bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 2 AS 'MODULE_PATHNAME', 'aq_classic_views_parts';
COMMENT ON FUNCTION aq_internal.classic_message_parts(integer) IS 'Internal: the same for aq_internal.classic_message_rows';

CREATE FUNCTION aq_internal.classic_message_rows(queue_id integer, wanted uuid, wanted_state text, first_block bigint, end_block bigint, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer,
	OUT correlation text, OUT enqueue_time timestamptz, OUT ready_at timestamptz, OUT expires_at timestamptz,
	OUT dequeue_time timestamptz, OUT attempts integer, OUT sender text, OUT exception_queue text,
	OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text,
	OUT leased_since timestamptz, OUT leased_until timestamptz, OUT leased_by text, OUT last_error text, OUT dead_letter jsonb, OUT key text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_classic_views_messages';
COMMENT ON FUNCTION aq_internal.classic_message_rows(integer, uuid, text, bigint, bigint) IS 'Internal: what aq.messages shows of a part of one queue of a queue table';

CREATE FUNCTION aq_internal.buffered_message_rows(queue_id integer, wanted uuid, wanted_state text, OUT msgid uuid, OUT consumer text, OUT state text, OUT priority integer,
	OUT correlation text, OUT enqueue_time timestamptz, OUT ready_at timestamptz, OUT expires_at timestamptz,
	OUT dequeue_time timestamptz, OUT attempts integer, OUT sender text, OUT exception_queue text,
	OUT original_msgid uuid, OUT properties jsonb, OUT shard integer, OUT session_id bigint, OUT payload text,
	OUT in_memory boolean, OUT key text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_classic_views_buffered_messages';
COMMENT ON FUNCTION aq_internal.buffered_message_rows(integer, uuid, text) IS 'Internal: the buffered messages of one queue';

CREATE FUNCTION aq_internal.buffered_queue(queue_id integer, OUT messages bigint, OUT spilled bigint, OUT oldest_msgid uuid,
	OUT oldest_time timestamptz, OUT average_age interval, OUT bytes bigint, OUT enqueued bigint, OUT dequeued bigint,
	OUT failed bigint, OUT enqueue_elapsed bigint, OUT dequeue_elapsed bigint)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_classic_views_buffered_queue';
COMMENT ON FUNCTION aq_internal.buffered_queue(integer) IS 'Internal: what aq.buffered_queues shows of one queue';

CREATE FUNCTION aq_internal.buffered_consumers(queue_id integer, OUT "position" integer, OUT enqueued bigint, OUT dequeued bigint,
	OUT waiting integer)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_classic_views_buffered_consumers';
COMMENT ON FUNCTION aq_internal.buffered_consumers(integer) IS 'Internal: traffic of buffered messages by consumer';

CREATE FUNCTION aq_internal.buffered_publishers(queue_id integer, OUT sender text, OUT messages bigint, OUT spilled bigint,
	OUT latest_msgid uuid, OUT latest_time timestamptz, OUT memory_percent numeric, OUT in_flow_control boolean)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_classic_views_buffered_publishers';
COMMENT ON FUNCTION aq_internal.buffered_publishers(integer) IS 'Internal: the buffered messages of one queue by sender';

-- STABLE, so that it is not called by queries that do not select its column
CREATE FUNCTION aq_internal.classic_ready(queue_id integer, "position" integer) RETURNS bigint
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_classic_views_ready';
COMMENT ON FUNCTION aq_internal.classic_ready(integer, integer) IS 'Internal: what a consumer of a queue in a queue table could have now';

-- As in privilege.c: the privileges on all queues are those on a view that pgaq_oracle makes.
CREATE FUNCTION aq_internal.may_any(privilege text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'aq_internal' AND c.relname = 'system_privilege' AND has_table_privilege(c.oid, privilege));
END;
COMMENT ON FUNCTION aq_internal.may_any(text) IS
'Internal: may the current role enqueue into all queues (INSERT), dequeue from them (DELETE), administer them (TRIGGER)?';

CREATE FUNCTION aq_internal.takes_part() RETURNS boolean
LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_privilege_takes_part_now';
COMMENT ON FUNCTION aq_internal.takes_part() IS 'Internal: has the current role a privilege on a queue that is not temporary, or may it create queues?';

-- The owner views are looked up once per query, not per row. MANAGE_ANY includes neither the enqueue nor the dequeue privilege.
-- The privileges are those on the view aq_data.q<rights_id>: INSERT is enqueue, DELETE dequeue, UPDATE subscribe; REFERENCES is
-- the right on at least one consumer; TRUNCATE is enqueue for all roles that take part.
CREATE FUNCTION aq_internal.may(rights_id integer, privilege text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT COALESCE((SELECT pg_has_role(c.relowner, 'USAGE')
			OR has_table_privilege(c.oid, CASE privilege WHEN 'ANY' THEN 'INSERT, DELETE, UPDATE, REFERENCES'
				WHEN 'CONSUMER' THEN 'DELETE, REFERENCES' ELSE privilege END)
			OR (privilege IN ('ANY', 'INSERT') AND has_table_privilege(c.oid, 'TRUNCATE') AND aq_internal.takes_part())
			OR aq_internal.may_any(CASE privilege WHEN 'UPDATE' THEN 'TRIGGER' WHEN 'CONSUMER' THEN 'DELETE'
				WHEN 'ANY' THEN 'INSERT, DELETE, TRIGGER' ELSE privilege END)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'aq_data' AND c.relname = 'q' || rights_id), false);
END;
COMMENT ON FUNCTION aq_internal.may(integer, text) IS
'Internal: may the current role enqueue into the queue with this rights_id (INSERT), dequeue from it (DELETE), for at least one of its consumers (CONSUMER), subscribe to it (UPDATE), or any of these, or administer it (ANY)?';

CREATE FUNCTION aq_internal.shows_consumer(queue_id integer, "position" integer) RETURNS boolean
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_counters_shows_consumer';
COMMENT ON FUNCTION aq_internal.shows_consumer(integer, integer) IS 'Internal: does the current role see this consumer in views?';

-- STABLE, so that it is not called by queries that do not select its column
CREATE FUNCTION aq_internal.running(queue_id integer, "position" integer) RETURNS integer
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_shard_views_running';
COMMENT ON FUNCTION aq_internal.running(integer, integer) IS 'Internal: messages of a limited consumer that are in work; null: it has no limit, or they are not counted yet';

CREATE VIEW aq.queues AS
SELECT q.queue_name, q.queue_id,
	(SELECT pg_get_userbyid(c.relowner) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'aq_data' AND c.relname = 'q' || q.rights_id) AS owner,
	q.payload_type, q.multiple_consumers, q.shards, q.max_retries, q.retry_delay,
	q.retry_delay_factor, q.retry_delay_max, q.retry_jitter, q.retention,
	(SELECT e.queue_name FROM aq_internal.queue e WHERE e.queue_id = q.exception_queue_id) AS exception_queue,
	q.enqueue_enabled, q.dequeue_enabled,
	aq_internal.may(q.rights_id, 'INSERT') AS may_enqueue,
	aq_internal.may(q.rights_id, 'DELETE') AS may_dequeue,
	aq_internal.may(q.rights_id, 'UPDATE') AS may_subscribe,
	q.created, q.comment,
	(SELECT t.schema_name || '.' || t.table_name FROM aq_internal.queue_table t WHERE t.queue_table_id = q.queue_table_id) AS queue_table,
	q.queue_type, q.store = 'b' AS converting, q.converted,
	EXISTS (SELECT FROM aq_internal.temporary t WHERE t.queue_id = q.queue_id AND t.consumer_number = 0) AS temporary,
	q.distributed, q.default_priority, q.default_delay, q.default_expiration, q.paused, q.paused_by, q.pause_reason, q.max_depth, q.on_full, q.max_running, q.rate
FROM aq_internal.queue q
WHERE pg_has_role('pg_monitor', 'USAGE') OR aq_internal.may(q.rights_id, 'ANY');
COMMENT ON VIEW aq.queues IS 'Queues that the current role can use; members of pg_monitor see all';
COMMENT ON COLUMN aq.queues.queue_name IS 'name';
COMMENT ON COLUMN aq.queues.queue_id IS 'number, part of its tables'' names in aq_data';
COMMENT ON COLUMN aq.queues.owner IS 'role that owns the queue';
COMMENT ON COLUMN aq.queues.multiple_consumers IS 'true: a topic';
COMMENT ON COLUMN aq.queues.shards IS 'number of shards';
COMMENT ON COLUMN aq.queues.exception_queue IS 'queue for expired and failed messages; null: they are dropped';
COMMENT ON COLUMN aq.queues.enqueue_enabled IS 'false while stopped for enqueue';
COMMENT ON COLUMN aq.queues.dequeue_enabled IS 'false while stopped for dequeue';
COMMENT ON COLUMN aq.queues.may_enqueue IS 'the current role can enqueue';
COMMENT ON COLUMN aq.queues.may_dequeue IS 'the current role can dequeue, for every consumer; aq.privileges shows privileges on single consumers';
COMMENT ON COLUMN aq.queues.may_subscribe IS 'the current role can subscribe consumers';
COMMENT ON COLUMN aq.queues.created IS 'when it was created';
COMMENT ON COLUMN aq.queues.comment IS 'comment given at creation';
COMMENT ON COLUMN aq.queues.queue_table IS 'its queue table; null: a sharded queue';
COMMENT ON COLUMN aq.queues.queue_type IS 'normal, exception or non_persistent';
COMMENT ON COLUMN aq.queues.converting IS 'true: converted to a sharded queue, with messages left in the queue table';
COMMENT ON COLUMN aq.queues.temporary IS 'true: it is dropped when the session that created it ends';
-- The other columns mean what they mean in the table.
DO $$
DECLARE
	name text;
	meaning text;
BEGIN
	FOR name, meaning IN SELECT v.attname, col_description(t.attrelid, t.attnum) FROM pg_attribute v JOIN pg_attribute t USING (attname)
			WHERE v.attrelid = 'aq.queues'::regclass AND t.attrelid = 'aq_internal.queue'::regclass AND v.attnum > 0
			AND col_description(v.attrelid, v.attnum) IS NULL LOOP
		EXECUTE format('COMMENT ON COLUMN aq.queues.%I IS %L', name, meaning);
	END LOOP;
END $$;

CREATE VIEW aq.queue_tables AS
SELECT t.schema_name || '.' || t.table_name AS queue_table, t.queue_table_id, (SELECT r.rolname FROM pg_roles r WHERE r.oid = t.owner) AS owner,
	t.payload_type, t.sort_list, t.multiple_consumers, t.message_grouping, t.created, t.comment
FROM aq_internal.queue_table t
WHERE pg_has_role(t.owner, 'USAGE') OR pg_has_role('pg_monitor', 'USAGE')
	OR EXISTS (SELECT FROM aq_internal.queue q WHERE q.queue_table_id = t.queue_table_id
		AND aq_internal.may(q.rights_id, 'ANY'));
COMMENT ON VIEW aq.queue_tables IS 'Queue tables that the current role owns, or of which it can use a queue; members of pg_monitor see all';
COMMENT ON COLUMN aq.queue_tables.queue_table IS 'name: schema.table';
COMMENT ON COLUMN aq.queue_tables.queue_table_id IS 'number, part of its tables'' names in aq_data';
COMMENT ON COLUMN aq.queue_tables.owner IS 'role that created it; null: dropped';
COMMENT ON COLUMN aq.queue_tables.payload_type IS 'type of the payload';
COMMENT ON COLUMN aq.queue_tables.sort_list IS 'order of dequeue; empty: the order of the enqueue calls';
COMMENT ON COLUMN aq.queue_tables.multiple_consumers IS 'true: its queues are topics';
COMMENT ON COLUMN aq.queue_tables.message_grouping IS 'true: the messages of one transaction are a group';
COMMENT ON COLUMN aq.queue_tables.created IS 'when it was created';
COMMENT ON COLUMN aq.queue_tables.comment IS 'comment given at creation';
GRANT SELECT ON aq.queue_tables TO PUBLIC;

CREATE VIEW aq.buffered_queues AS
SELECT q.queue_name, s.messages, s.spilled, s.enqueued, s.dequeued, s.failed, s.bytes, b.created, b.losses, b.lost_at
FROM aq_internal.buffered_queue b JOIN aq_internal.queue q ON q.queue_id = b.queue_id, LATERAL aq_internal.buffered_queue(q.queue_id) s;
COMMENT ON VIEW aq.buffered_queues IS 'Queues that have had buffered messages. Reads these messages, so restrict it to a queue';
COMMENT ON COLUMN aq.buffered_queues.queue_name IS 'the queue';
COMMENT ON COLUMN aq.buffered_queues.messages IS 'its buffered messages';
COMMENT ON COLUMN aq.buffered_queues.spilled IS 'of these: on disk and not in shared buffers';
COMMENT ON COLUMN aq.buffered_queues.enqueued IS 'buffered messages enqueued since the start of the server, or since the queue came into use';
COMMENT ON COLUMN aq.buffered_queues.dequeued IS '(message, consumer) pairs done since: consumed, purged, expired or failed';
COMMENT ON COLUMN aq.buffered_queues.failed IS 'of these: expired or failed';
COMMENT ON COLUMN aq.buffered_queues.bytes IS 'size of its tables';
COMMENT ON COLUMN aq.buffered_queues.created IS 'when it got its first buffered message';
COMMENT ON COLUMN aq.buffered_queues.losses IS 'number of possible losses of its buffered messages: crashes, promotions, restored backups';
COMMENT ON COLUMN aq.buffered_queues.lost_at IS 'when this was detected last, after the start; null: never';

CREATE FUNCTION aq_internal.latencies(queue_id integer, OUT delivery_mode text, OUT messages bigint,
	OUT total_seconds double precision, OUT buckets bigint[], OUT since timestamptz)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_metrics_latencies';
COMMENT ON FUNCTION aq_internal.latencies(integer) IS 'Internal: what aq.latencies shows of one queue';

CREATE FUNCTION aq.latency_bound(bucket integer) RETURNS double precision
LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_metrics_latency_bound';
COMMENT ON FUNCTION aq.latency_bound(integer) IS
'The upper bound of a bucket of aq.latencies, in seconds: 128 microseconds for the first one, and
  twice that of the bucket before for each other one; null for the last one, 33, which has none.
bucket: number of the bucket, from 1';

CREATE FUNCTION aq.latency_percentile(buckets bigint[], fraction double precision) RETURNS double precision
LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_metrics_latency_percentile';
COMMENT ON FUNCTION aq.latency_percentile(bigint[], double precision) IS
'How long messages waited, in seconds: this fraction of them did not wait longer. Null: the buckets
  are empty.
buckets: as in aq.latencies, or the difference of two of them; missing ones are empty
fraction: 0.5 for the median, 0.99 for the 99th percentile
In the bucket in which the sum of the buckets reaches fraction * messages, the messages are taken
to lie evenly between its bounds: with B messages in the bucket, and A in those before it, the
result is lower + (upper - lower) * (fraction * messages - A) / B. So it is wrong by less than a
factor of two. If it is in the last bucket, the result is its lower bound.
Errors 22023';

CREATE VIEW aq.latencies AS
SELECT q.queue_name, l.delivery_mode, l.messages, l.total_seconds, aq.latency_percentile(l.buckets, 0.5) AS p50_seconds,
	aq.latency_percentile(l.buckets, 0.99) AS p99_seconds, l.buckets, l.since
FROM aq_internal.queue q CROSS JOIN LATERAL aq_internal.latencies(q.queue_id) l;
COMMENT ON VIEW aq.latencies IS 'How long messages had waited when they were dequeued, for each queue that the current role can use; members of pg_monitor see all. A wait begins with the enqueue call, or at the end of the delay, and ends with the call that takes the message. The time until the commit of the enqueue is part of it, because a message does not have that moment. A wait counts when the dequeue is committed: one that is rolled back does not count, and the message counts with the whole time when it is dequeued again. A lease counts when it is taken, for other consumers of a topic the message counts again. The counters begin when the queue comes into use after the start of the server';
COMMENT ON COLUMN aq.latencies.queue_name IS 'the queue';
COMMENT ON COLUMN aq.latencies.delivery_mode IS 'persistent or buffered';
COMMENT ON COLUMN aq.latencies.messages IS 'messages dequeued, for each consumer; null: the queue is not in memory, see aq.subscribers';
COMMENT ON COLUMN aq.latencies.total_seconds IS 'seconds that they waited, in all; those of a prepared transaction count until its commit was noticed, each with the mean';
COMMENT ON COLUMN aq.latencies.p50_seconds IS 'half of them did not wait longer, see aq.latency_percentile; null: none';
COMMENT ON COLUMN aq.latencies.p99_seconds IS 'the same of 99 in 100';
COMMENT ON COLUMN aq.latencies.buckets IS 'how many waited less than aq.latency_bound(n), and not less than half of it; without empty ones at the end';
COMMENT ON COLUMN aq.latencies.since IS 'when the counters began';
GRANT SELECT ON aq.latencies TO PUBLIC;

CREATE VIEW aq.subscribers AS
SELECT q.queue_name, s.consumer, COALESCE(s.kind, 'single') AS kind, s.rule,
	c.enqueued, c.dequeued, c.enqueued - c.dequeued AS lag,
	c.ready + CASE WHEN q.store = 's' THEN 0 ELSE aq_internal.classic_ready(q.queue_id, c."position") END AS ready, c.waiting, s.created, s.comment,
	CASE s.delivery_mode WHEN 1 THEN 'persistent' WHEN 2 THEN 'buffered' WHEN 3 THEN 'persistent_or_buffered' END AS delivery_mode,
	c.consumed, c.latency AS latency_us, (SELECT r.rolname FROM pg_roles r WHERE r.oid = s.rule_role) AS rule_role,
	c.rule_failures, c.last_rule_failure,
	(SELECT string_agg(chr((c.rule_error >> 6 * i & 63)::integer + ascii('0')), '' ORDER BY i) FROM generate_series(0, 4) i
		WHERE c.rule_error > 0) AS rule_error,
	(SELECT r.rolname FROM pg_roles r WHERE r.oid = s.owner) AS owner,
	EXISTS (SELECT FROM aq_internal.temporary t WHERE t.queue_id = q.queue_id AND t.consumer_number = s.number) AS temporary,
	s.paused, s.paused_by, s.pause_reason, COALESCE(s.max_running, q.max_running) AS max_running,
	aq_internal.running(q.queue_id, c."position") AS running, COALESCE(s.rate, q.rate) AS rate
FROM aq_internal.queue q
	CROSS JOIN LATERAL aq_internal.consumers(q.queue_id) c
	LEFT JOIN aq_internal.subscriber s ON s.queue_id = q.queue_id AND s."position" = c."position"
WHERE NOT q.multiple_consumers OR s.consumer IS NOT NULL;
COMMENT ON VIEW aq.subscribers IS 'Consumers of the queues that the current role can use; a single-consumer queue has one row with a null name. The counters are null while the queue is not in memory because (nearly) pgaq.max_queues others are';
COMMENT ON COLUMN aq.subscribers.queue_name IS 'the queue';
COMMENT ON COLUMN aq.subscribers.consumer IS 'name; null: the only consumer of a single-consumer queue';
COMMENT ON COLUMN aq.subscribers.kind IS 'subscriber, recipient (named only in recipient lists) or single';
COMMENT ON COLUMN aq.subscribers.rule IS 'condition that messages must meet; null: none';
COMMENT ON COLUMN aq.subscribers.rule_role IS 'role that wrote the rule, which runs with its privileges; null: not known or dropped';
COMMENT ON COLUMN aq.subscribers.temporary IS 'true: it is removed when the sessions that subscribed it have ended';
COMMENT ON COLUMN aq.subscribers.owner IS 'role that subscribed it, and can alter and unsubscribe it while it has the subscribe privilege; null: not a subscriber, or the role was dropped';
COMMENT ON COLUMN aq.subscribers.paused IS 'since when it is paused by name, by aq.pause; null: it is not, but its queue can be, see aq.queues';
COMMENT ON COLUMN aq.subscribers.paused_by IS 'name of the role that paused it';
COMMENT ON COLUMN aq.subscribers.pause_reason IS 'reason given with aq.pause';
COMMENT ON COLUMN aq.subscribers.max_running IS 'how many of its messages may be in work at a time, by aq.limit_subscriber or max_running of the queue; null: no limit';
COMMENT ON COLUMN aq.subscribers.running IS 'messages in work: taken by running and prepared transactions, or leased; null: it has no limit, or has not dequeued since the restart';
COMMENT ON COLUMN aq.subscribers.rate IS 'how many messages it gets in a time, by aq.limit_subscriber or rate of the queue; null: no limit';
COMMENT ON COLUMN aq.subscribers.rule_failures IS 'messages that it did not get since the start of the server, or since the queue came into use, because its rule raised an error';
COMMENT ON COLUMN aq.subscribers.last_rule_failure IS 'time of the last such error; null: none';
COMMENT ON COLUMN aq.subscribers.rule_error IS 'SQLSTATE of that error; the server log has the message of the first error of each rule';
COMMENT ON COLUMN aq.subscribers.enqueued IS 'messages for it since the start of the server, or since the queue came into use, plus those present at that time';
COMMENT ON COLUMN aq.subscribers.dequeued IS 'messages that it has finished since: consumed, purged, expired or failed';
COMMENT ON COLUMN aq.subscribers.lag IS 'messages that it has not finished; after a restart it grows to the true number while the worker counts';
COMMENT ON COLUMN aq.subscribers.ready IS 'messages ready for it: of a sharded queue those resident in the message cache; of a queue table those in its index, counted each time the column is selected, about half a second for a million; lag costs nothing';
COMMENT ON COLUMN aq.subscribers.waiting IS 'sessions that wait for its messages, except while it is paused';
COMMENT ON COLUMN aq.subscribers.created IS 'when it was first named';
COMMENT ON COLUMN aq.subscribers.comment IS 'comment given with aq.subscribe';
COMMENT ON COLUMN aq.subscribers.delivery_mode IS 'which messages it gets: persistent, buffered or persistent_or_buffered; the counters are of persistent ones';
COMMENT ON COLUMN aq.subscribers.consumed IS 'messages that it has consumed, part of dequeued, since the start of the server, or since the queue came into use';
COMMENT ON COLUMN aq.subscribers.latency_us IS 'total microseconds from their enqueues to the commits of their dequeues, including delays: divide by consumed';

CREATE VIEW aq.shards AS
SELECT q.queue_name, s.shard, s.priority, s.delayed, s.enqueued, s.pending, s.in_flight, s.partitions, s.resident
FROM aq_internal.queue q CROSS JOIN LATERAL aq_internal.streams(q.queue_id) s;
COMMENT ON VIEW aq.shards IS 'Streams of messages: one per shard and priority in use, delayed messages apart; no row of a queue that is not in memory, see aq.subscribers';
COMMENT ON COLUMN aq.shards.queue_name IS 'the queue';
COMMENT ON COLUMN aq.shards.shard IS 'number of the shard, from 0';
COMMENT ON COLUMN aq.shards.priority IS 'priority of its messages';
COMMENT ON COLUMN aq.shards.delayed IS 'true: of messages enqueued with a delay';
COMMENT ON COLUMN aq.shards.enqueued IS 'messages committed since the queue came into use';
COMMENT ON COLUMN aq.shards.pending IS 'messages of running and prepared transactions';
COMMENT ON COLUMN aq.shards.in_flight IS '(message, consumer) pairs locked by such transactions';
COMMENT ON COLUMN aq.shards.partitions IS 'partitions that hold its messages';
COMMENT ON COLUMN aq.shards.resident IS 'those of them in the message cache';

CREATE VIEW aq.partitions AS
SELECT q.queue_name, p.table_no, p.messages, p.log, p.state, p.shard, p.priority, p.delayed, p.first_ordinal,
	p.slots, p.outstanding, p.pending, p.in_flight, p.resident, p.next_timer, p.last_dequeue,
	pg_total_relation_size(p.messages) + pg_total_relation_size(p.log) AS bytes
FROM aq_internal.queue q CROSS JOIN LATERAL aq_internal.partitions(q.queue_id) p;
COMMENT ON VIEW aq.partitions IS 'Partitions: up to 16384 messages each, in a pair of tables that is truncated and reused when all are consumed';
COMMENT ON COLUMN aq.partitions.queue_name IS 'the queue';
COMMENT ON COLUMN aq.partitions.table_no IS 'number of the pair of tables';
COMMENT ON COLUMN aq.partitions.messages IS 'table of the messages';
COMMENT ON COLUMN aq.partitions.log IS 'table of the dequeue log';
COMMENT ON COLUMN aq.partitions.state IS 'empty, taken (about to be opened), open (accepts messages), closed (full), done (all consumed; waits for snapshots, retention or a lock), truncating; null: the queue is not in memory, see aq.subscribers';
COMMENT ON COLUMN aq.partitions.shard IS 'its shard; null: empty';
COMMENT ON COLUMN aq.partitions.priority IS 'priority of its messages';
COMMENT ON COLUMN aq.partitions.delayed IS 'true: of delayed messages';
COMMENT ON COLUMN aq.partitions.first_ordinal IS 'ordinal of its first message';
COMMENT ON COLUMN aq.partitions.slots IS 'messages written into it';
COMMENT ON COLUMN aq.partitions.outstanding IS '(message, consumer) pairs not done, plus pending messages; null: not counted since the restart';
COMMENT ON COLUMN aq.partitions.pending IS 'messages of running and prepared transactions';
COMMENT ON COLUMN aq.partitions.in_flight IS '(message, consumer) pairs locked by such transactions';
COMMENT ON COLUMN aq.partitions.resident IS 'in the message cache';
COMMENT ON COLUMN aq.partitions.next_timer IS 'when the next delay, expiration or retry delay ends';
COMMENT ON COLUMN aq.partitions.last_dequeue IS 'when a message was last consumed';
COMMENT ON COLUMN aq.partitions.bytes IS 'size of both tables on disk, bytes';

CREATE VIEW aq.message_cache AS
SELECT total_bytes, total_bytes - free_bytes AS used_bytes, free_bytes, chunk_bytes,
	resident_partitions, known_partitions, max_partitions
FROM aq_internal.message_cache();
COMMENT ON VIEW aq.message_cache IS 'Use of the shared memory for messages, of all databases';
COMMENT ON COLUMN aq.message_cache.total_bytes IS 'size, from pgaq.message_cache_size';
COMMENT ON COLUMN aq.message_cache.used_bytes IS 'in use, or reserved by a session for its next messages';
COMMENT ON COLUMN aq.message_cache.free_bytes IS 'not in use';
COMMENT ON COLUMN aq.message_cache.chunk_bytes IS 'unit of allocation, bytes';
COMMENT ON COLUMN aq.message_cache.resident_partitions IS 'partitions in the cache';
COMMENT ON COLUMN aq.message_cache.known_partitions IS 'partitions of all queues in use';
COMMENT ON COLUMN aq.message_cache.max_partitions IS 'pgaq.max_partitions';

CREATE VIEW aq.role_usage AS
SELECT u.role::regrole::text AS role, u.resource, u.used, u.role_limit, u.used_by_all, u.total, u.parameter
FROM (SELECT * FROM aq_internal.role_usage()
	UNION ALL SELECT r.role, r.resource, count(*), CASE WHEN NOT a.rolsuper THEN r.role_limit END, sum(count(*)) OVER (PARTITION BY r.resource)::bigint, NULL, r.parameter
	FROM (SELECT owner::oid AS role, 'schedules' AS resource, current_setting('pgaq.role_schedules')::bigint AS role_limit, 'pgaq.role_schedules' AS parameter
			FROM aq_internal.schedule
		UNION ALL SELECT role::oid, 'propagations', current_setting('pgaq.role_schedules')::bigint, 'pgaq.role_schedules' FROM aq_internal.propagation
		UNION ALL SELECT role::oid, 'sources', current_setting('pgaq.role_schedules')::bigint, 'pgaq.role_schedules' FROM aq_internal.propagation_arrival
		UNION ALL SELECT role::oid, 'registrations', 1024, NULL FROM aq_internal.registration) r JOIN pg_roles a ON a.oid = r.role
	GROUP BY r.role, r.resource, r.role_limit, r.parameter, a.rolsuper) u
WHERE pg_catalog.pg_has_role(u.role, 'USAGE') OR pg_catalog.pg_has_role('pg_monitor', 'USAGE');
COMMENT ON VIEW aq.role_usage IS 'What the queues of each role use of the memory that all queues share, in all databases, and how many schedules, propagation schedules, sources and registrations it has in this one. Members of pg_monitor see all roles, others those that they are members of';
COMMENT ON COLUMN aq.role_usage.role IS 'owner of the queues, or of the schedules; for dequeues: role of the transactions';
COMMENT ON COLUMN aq.role_usage.resource IS 'queues: those in use, which are in memory, not those that exist (aq.queues lists these, with their owners); streams, partitions, message_cache: what running and prepared transactions keep in it, in kB; dequeues: entries of running and prepared transactions that dequeue from queue tables; schedules, propagations, registrations; sources: propagation schedules of other databases that send messages as the role';
COMMENT ON COLUMN aq.role_usage.used IS 'use by the queues of the role';
COMMENT ON COLUMN aq.role_usage.role_limit IS 'limit of the role; of a superuser: the total, or null';
COMMENT ON COLUMN aq.role_usage.used_by_all IS 'use by all roles; of the memory, the last eighth of the total is only for roles that use less than one part in 64';
COMMENT ON COLUMN aq.role_usage.total IS 'limit of the server; null: none';
COMMENT ON COLUMN aq.role_usage.parameter IS 'parameter that sets the total, or the role''s limit; null: it is fixed';

-- Estimates for other sizes. All frames are assumed to have the average size; if there are none, that of a full frame of a single consumer.
CALL aq_internal.make_view('aq', 'message_cache_advice', 'Estimates for message caches of other sizes since the server started, from the number of other partitions that were evicted before an evicted one was loaded again',
	$$FROM (
	WITH u AS (
		SELECT x.*, coalesce(x.frame_bytes / nullif(x.frames, 0)::numeric, 532480) / 1048576 AS each,
			trim_scale(c.total_bytes / 1048576.0) AS megabytes, x.most_used_bytes / 1048576.0 AS most_used,
			extract(epoch FROM clock_timestamp() - x.since)::numeric / 60 AS minutes
		FROM aq_internal.message_cache_use() x, aq.message_cache c
	), r AS (
		SELECT x.*, sum(x.to_sessions + x.to_worker) OVER (ORDER BY x.more) >= 0.8 * sum(x.to_sessions + x.to_worker) OVER () AS enough
		FROM aq_internal.message_cache_returns() x
	), s AS (
		SELECT u.*, l.line, l.type, ceil(greatest(4, l.mb)) AS mb
		FROM u, LATERAL (VALUES (1, 'minimum', 4), (2, 'current', u.megabytes),
			(3, 'preferred', CASE WHEN u.evictions = 0 THEN u.most_used
				ELSE u.megabytes + u.each * (SELECT coalesce(min(r.more) FILTER (WHERE r.enough), 0) FROM r WHERE r.to_sessions + r.to_worker > 0) END),
			(4, 'maximum', CASE WHEN u.evictions = 0 THEN u.most_used
				ELSE greatest(u.each * u.partitions, u.megabytes + u.each * (SELECT max(r.more) FROM r)) END)) l (line, type, mb)
	)
	SELECT s.*, e.evictions AS evicted, e.sessions, e.worker
	FROM s LEFT JOIN LATERAL (
		SELECT s.evictions - coalesce(sum(r.to_sessions + r.to_worker + r.not_back) FILTER (WHERE r.kept), 0)::bigint AS evictions,
			coalesce(sum(r.to_sessions) FILTER (WHERE NOT r.kept), 0)::bigint AS sessions,
			coalesce(sum(r.to_worker) FILTER (WHERE NOT r.kept), 0)::bigint AS worker
		FROM (SELECT r.*, r.more <= (s.mb - s.megabytes) / s.each AS kept FROM r) r
	) e ON s.mb >= s.megabytes OR s.evictions = 0 AND s.mb >= s.most_used
	) s ORDER BY s.line$$, $$
	size = s.type | minimum: the smallest value of pgaq.message_cache_size; current; preferred: would have avoided four fifths of the loads after an eviction; maximum: would have avoided all of them, and holds every existing partition. While nothing was evicted, the last two are the highest use so far
	size_mb = s.mb | size, MB
	size_factor = round(s.mb / s.megabytes, 4) | the size divided by the current one
	resident_partitions = least(s.partitions, floor(s.mb / s.each))::bigint | existing partitions with messages that would be in the cache
	other_partitions = greatest(s.partitions - floor(s.mb / s.each), 0)::bigint | partitions that would not be in it
	evictions = s.evicted | partitions that would have been evicted; null: not known, because the size is smaller than the current one
	evictions_per_minute = round(s.evicted / s.minutes, 3) | the same per minute
	session_loads = s.sessions | partitions that sessions would have loaded again; null for the same reason
	session_loads_per_minute = round(s.sessions / s.minutes, 3) | the same per minute
	worker_loads = s.worker | partitions that the worker would have loaded again, for its timers and retries; null for the same reason
	worker_loads_per_minute = round(s.worker / s.minutes, 3) | the same per minute
	partition_messages = round(s.slots / nullif(s.partitions, 0)::numeric)::bigint | average number of messages in the existing partitions; null: there are none
	partition_bytes = round(s.each * 1048576)::bigint | assumed size of a partition in bytes: the average of those in the cache, or 520 kB while there are none
$$);
GRANT SELECT ON aq.message_cache_advice TO PUBLIC;

CREATE VIEW aq.messages AS
SELECT q.queue_name, m.consumer, m.msgid, m.state, m.priority, m.correlation, m.payload, m.enqueue_time, m.ready_at,
	m.expires_at, m.dequeue_time, m.attempts, m.sender, m.exception_queue, m.original_msgid, m.properties,
	m.shard, m.session_id, CASE WHEN m.in_memory IS NULL THEN 'persistent' ELSE 'buffered' END AS delivery_mode, m.in_memory,
	m.leased_since, m.leased_until, m.leased_by, m.last_error, m.dead_letter, m.key
FROM aq_internal.queue q, LATERAL (SELECT s.*, NULL::boolean AS in_memory FROM aq_internal.message_parts(q.queue_id) p,
			LATERAL aq_internal.message_rows(q.queue_id, NULL, NULL, p.table_no, p.first_block, p.end_block) s WHERE q.store <> 'c'
	UNION ALL SELECT c.*, NULL FROM aq_internal.classic_message_parts(q.queue_id) p,
			LATERAL aq_internal.classic_message_rows(q.queue_id, NULL, NULL, p.first_block, p.end_block) c WHERE q.store <> 's'
	UNION ALL SELECT b.msgid, b.consumer, b.state, b.priority, b.correlation, b.enqueue_time, b.ready_at, b.expires_at,
		b.dequeue_time, b.attempts, b.sender, b.exception_queue, b.original_msgid, b.properties, b.shard, b.session_id, b.payload,
		NULL, NULL, NULL, NULL, NULL, b.key, b.in_memory
		FROM aq_internal.buffered_message_rows(q.queue_id, NULL, NULL) b) m;
COMMENT ON VIEW aq.messages IS 'Messages that the current role can dequeue, one row per message and consumer. Reads the tables, so restrict it to a queue, to a message by msgid = value, which reads one partition or uses an index, or to a state by state = value, which reads only partitions that may have such messages';
COMMENT ON COLUMN aq.messages.queue_name IS 'the queue';
COMMENT ON COLUMN aq.messages.consumer IS 'the consumer; null in single-consumer queues';
COMMENT ON COLUMN aq.messages.msgid IS 'message id';
COMMENT ON COLUMN aq.messages.state IS 'READY, WAITING (delayed, or waiting for its retry delay), LOCKED (taken by a running or prepared transaction), LEASED (dequeued with a lease that runs), PROCESSED (consumed), PURGED, EXPIRED (expired, or its retries are exhausted)';
COMMENT ON COLUMN aq.messages.priority IS 'priority, smaller first';
COMMENT ON COLUMN aq.messages.correlation IS 'correlation given at enqueue';
COMMENT ON COLUMN aq.messages.payload IS 'payload as text';
COMMENT ON COLUMN aq.messages.enqueue_time IS 'time of the enqueue call';
COMMENT ON COLUMN aq.messages.ready_at IS 'end of the delay, or of the retry delay for which it waits; null: it has none';
COMMENT ON COLUMN aq.messages.expires_at IS 'when it expires; null: never';
COMMENT ON COLUMN aq.messages.dequeue_time IS 'when this consumer finished it';
COMMENT ON COLUMN aq.messages.attempts IS 'rolled back dequeues of it, and dequeues with a lease';
COMMENT ON COLUMN aq.messages.sender IS 'sender named at enqueue';
COMMENT ON COLUMN aq.messages.exception_queue IS 'exception queue named at enqueue';
COMMENT ON COLUMN aq.messages.original_msgid IS 'in an exception queue: its id in the original queue; null if it has kept its id, within a queue table';
COMMENT ON COLUMN aq.messages.properties IS 'free properties given at enqueue';
COMMENT ON COLUMN aq.messages.shard IS 'shard it is in; null in queue tables';
COMMENT ON COLUMN aq.messages.session_id IS 'identity of the session that enqueued it, or, if negative, of its producer';
COMMENT ON COLUMN aq.messages.delivery_mode IS 'persistent or buffered';
COMMENT ON COLUMN aq.messages.in_memory IS 'of a buffered message: it is in shared buffers; otherwise it is only on disk';
COMMENT ON COLUMN aq.messages.leased_since IS 'when the lease that runs was taken; null: its state is not LEASED';
COMMENT ON COLUMN aq.messages.leased_until IS 'when it ends; in the past: the worker has not ended it yet';
COMMENT ON COLUMN aq.messages.leased_by IS 'application_name of the session that took it';
COMMENT ON COLUMN aq.messages.last_error IS 'error given with the latest aq.release, aq.reject or aq.end_leases; null: none was given';
COMMENT ON COLUMN aq.messages.key IS 'key given at enqueue; null: none';
COMMENT ON COLUMN aq.messages.dead_letter IS 'in an exception queue: where it came from and why it failed, see aq.dead_letters; null: it is no dead letter';

CREATE VIEW aq.dead_letters AS
SELECT m.queue_name AS exception_queue, m.msgid,
	coalesce((SELECT q.queue_name FROM aq_internal.queue q WHERE q.queue_id = (m.dead_letter ->> 'queue_id')::integer),
		m.dead_letter ->> 'queue') AS queue_name,
	m.dead_letter ->> 'consumer' AS consumer, m.dead_letter ->> 'reason' AS reason, m.dead_letter ->> 'error' AS last_error,
	(m.dead_letter ->> 'attempts')::integer AS attempts, (m.dead_letter ->> 'first_attempt')::timestamptz AS first_attempt,
	(m.dead_letter ->> 'last_attempt')::timestamptz AS last_attempt, (m.dead_letter ->> 'died')::timestamptz AS died,
	(m.dead_letter ->> 'enqueue_time')::timestamptz AS enqueue_time, (m.dead_letter ->> 'expires_at')::timestamptz AS expires_at,
	m.original_msgid, m.state, m.priority, m.correlation, m.payload, m.properties, m.sender, m.dead_letter, m.key
FROM aq.messages m WHERE m.dead_letter IS NOT NULL AND (m.state IN ('READY', 'WAITING', 'LOCKED', 'LEASED')
	OR m.state = 'EXPIRED' AND m.queue_name IN (SELECT q.queue_name FROM aq_internal.queue q WHERE q.queue_type = 'exception' AND q.store <> 's'));
COMMENT ON VIEW aq.dead_letters IS 'Dead letters that the current role can dequeue: messages in exception queues, with where they came from and why they failed. Reads the tables, so restrict it to an exception queue';
COMMENT ON COLUMN aq.dead_letters.exception_queue IS 'the exception queue in which it is';
COMMENT ON COLUMN aq.dead_letters.msgid IS 'its message id there';
COMMENT ON COLUMN aq.dead_letters.queue_name IS 'queue that it came from';
COMMENT ON COLUMN aq.dead_letters.consumer IS 'consumer of a topic for which it failed; null: a queue with a single consumer, or the consumer was removed';
COMMENT ON COLUMN aq.dead_letters.reason IS 'retries: too many attempts; expired; rejected: by aq.reject; lease: too many attempts, the last one a lease that was not acknowledged in time';
COMMENT ON COLUMN aq.dead_letters.last_error IS 'error given with the latest aq.release, aq.reject or aq.end_leases; null: none was given';
COMMENT ON COLUMN aq.dead_letters.attempts IS 'attempts when it failed';
COMMENT ON COLUMN aq.dead_letters.first_attempt IS 'when the first failed attempt was counted, or the first lease was taken; null: it was not tried';
COMMENT ON COLUMN aq.dead_letters.last_attempt IS 'the same of the last one';
COMMENT ON COLUMN aq.dead_letters.died IS 'when it failed';
COMMENT ON COLUMN aq.dead_letters.enqueue_time IS 'when it was enqueued into the queue that it came from';
COMMENT ON COLUMN aq.dead_letters.expires_at IS 'its expiration there; null: none';
COMMENT ON COLUMN aq.dead_letters.original_msgid IS 'its message id in the queue that it came from; null if it has kept its id, within a queue table';
COMMENT ON COLUMN aq.dead_letters.state IS 'READY, WAITING, LOCKED or LEASED, as in aq.messages; EXPIRED: in an exception queue of a queue table, ready';
COMMENT ON COLUMN aq.dead_letters.priority IS 'its priority';
COMMENT ON COLUMN aq.dead_letters.correlation IS 'its correlation';
COMMENT ON COLUMN aq.dead_letters.payload IS 'its payload as text';
COMMENT ON COLUMN aq.dead_letters.properties IS 'its free properties';
COMMENT ON COLUMN aq.dead_letters.sender IS 'its sender';
COMMENT ON COLUMN aq.dead_letters.key IS 'its key';
COMMENT ON COLUMN aq.dead_letters.dead_letter IS 'all that is kept of it: also ready_at and exception_queue, if they were given, and before, if it had been a dead letter before';
GRANT SELECT ON aq.dead_letters TO PUBLIC;

CREATE VIEW aq.privileges AS
SELECT q.queue_name, nullif(a.grantee, 0)::regrole AS grantee, p.privilege, p.consumer, a.grantor::regrole AS grantor, a.is_grantable
FROM aq_internal.queue q
	JOIN pg_class c ON c.relname = 'q' || q.rights_id
	JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'aq_data',
	LATERAL aclexplode(c.relacl) a,
	LATERAL (SELECT x.privilege, NULL::text AS consumer
		FROM (VALUES ('INSERT', 'enqueue'), ('DELETE', 'dequeue'), ('UPDATE', 'subscribe')) AS x (acl, privilege)
		WHERE x.acl = a.privilege_type
		UNION ALL SELECT 'consumer', g.consumer FROM aq_internal.consumer_grant g
		WHERE a.privilege_type = 'REFERENCES' AND g.queue_id = q.queue_id
			AND CASE WHEN g.role IS NULL THEN a.grantee = 0 ELSE a.grantee = nullif(g.role::oid, 0::oid) END) p
WHERE q.rights_id = q.queue_id AND a.grantee <> c.relowner AND (a.grantee = 0 OR pg_has_role(a.grantee, 'USAGE') OR pg_has_role(c.relowner, 'USAGE')
	OR pg_has_role('pg_monitor', 'USAGE') OR aq_internal.may_any('TRIGGER'));
COMMENT ON VIEW aq.privileges IS 'Privileges granted on queues and on single consumers; default exception queues, which have the privileges of their queues, are left out; a role sees its own, those of PUBLIC and of the queues that it can administer, members of pg_monitor see all';
COMMENT ON COLUMN aq.privileges.queue_name IS 'the queue';
COMMENT ON COLUMN aq.privileges.grantee IS 'role that has the privilege; null: PUBLIC';
COMMENT ON COLUMN aq.privileges.privilege IS 'enqueue, dequeue, subscribe, or consumer: dequeue for one consumer';
COMMENT ON COLUMN aq.privileges.consumer IS 'of the privilege consumer: its name';
COMMENT ON COLUMN aq.privileges.grantor IS 'role that granted it; the queue''s owner, or a role with the grant option';
COMMENT ON COLUMN aq.privileges.is_grantable IS 'true: with grant option';

GRANT SELECT ON aq.privileges, aq.queues, aq.buffered_queues, aq.subscribers, aq.shards, aq.partitions, aq.message_cache, aq.role_usage, aq.messages TO PUBLIC;
