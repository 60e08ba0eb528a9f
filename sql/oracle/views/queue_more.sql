-- More of Oracle's views on queues: shards, senders, the message cache, backlogs of subscribers.

CREATE VIEW sys.dba_queue_shards AS
SELECT
	sys._oracle_case(sys._name_schema(s.queue_name)) AS owner, sys._oracle_case(sys._bare_name(s.queue_name)) AS name,
	q.queue_id, q.queue_id AS base_queue_id, s.shard AS shard_id, s.shard AS delay_shard_id, 1 AS enqueue_instance,
	'PERSISTENT' AS shard_type, sum(s.enqueued)::bigint AS enqueued_msgs, sum(s.partitions)::bigint AS partitions
FROM aq.shards s JOIN aq_internal.queue q USING (queue_name) GROUP BY s.queue_name, q.queue_id, s.shard;
COMMENT ON VIEW sys.dba_queue_shards IS 'Shards of sharded queues that have been used since the queue came into use';
COMMENT ON COLUMN sys.dba_queue_shards.owner IS 'schema of the queue; null for a queue of aq.create_queue';
COMMENT ON COLUMN sys.dba_queue_shards.name IS 'name of the queue';
COMMENT ON COLUMN sys.dba_queue_shards.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.dba_queue_shards.base_queue_id IS 'the same';
COMMENT ON COLUMN sys.dba_queue_shards.shard_id IS 'number of the shard';
COMMENT ON COLUMN sys.dba_queue_shards.delay_shard_id IS 'shard of the delayed messages: the same';
COMMENT ON COLUMN sys.dba_queue_shards.enqueue_instance IS 'always 1';
COMMENT ON COLUMN sys.dba_queue_shards.shard_type IS 'PERSISTENT';
COMMENT ON COLUMN sys.dba_queue_shards.enqueued_msgs IS 'messages committed into it since the queue came into use';
COMMENT ON COLUMN sys.dba_queue_shards.partitions IS 'partitions that hold its messages';
GRANT SELECT ON sys.dba_queue_shards TO aq_administrator_role;

CALL sys._make_variant('all_queue_shards', 'dba_queue_shards', 'Shards of sharded queues that the current role can use',
	$$aq_internal.may((SELECT q.rights_id FROM aq_internal.queue q WHERE q.queue_id = d.queue_id), 'ANY')$$);

CALL sys._make_variant('user_queue_shards', 'dba_queue_shards', 'Shards of sharded queues that the current role owns',
	$$pg_has_role((SELECT q.owner FROM aq.queues q WHERE q.queue_id = d.queue_id), 'USAGE')$$);

CREATE VIEW sys.v$persistent_publishers AS
SELECT
	q.queue_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name, m.sender AS publisher_name,
	NULL::text AS publisher_address, NULL::integer AS protocol, count(DISTINCT m.msgid) AS enqueued_msgs,
	NULL::bigint AS elapsed_enqueue_time, NULL::bigint AS enqueue_cpu_time, max(m.enqueue_time) AS last_enqueue_time,
	NULL::bigint AS enqueue_transactions, NULL::integer AS con_id
FROM aq.queues q JOIN aq.messages m ON m.queue_name = q.queue_name WHERE m.sender IS NOT NULL
GROUP BY q.queue_id, q.queue_name, m.sender;
COMMENT ON VIEW sys.v$persistent_publishers IS 'Senders of the current messages. Reads the messages';
COMMENT ON COLUMN sys.v$persistent_publishers.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$persistent_publishers.queue_schema IS 'schema of the queue; null for a queue of aq.create_queue';
COMMENT ON COLUMN sys.v$persistent_publishers.queue_name IS 'name of the queue';
COMMENT ON COLUMN sys.v$persistent_publishers.publisher_name IS 'sender, as named at enqueue';
COMMENT ON COLUMN sys.v$persistent_publishers.publisher_address IS 'always null';
COMMENT ON COLUMN sys.v$persistent_publishers.protocol IS 'always null';
COMMENT ON COLUMN sys.v$persistent_publishers.enqueued_msgs IS 'messages of the sender in the queue, including retained ones';
COMMENT ON COLUMN sys.v$persistent_publishers.elapsed_enqueue_time IS 'always null: senders are free names in messages, and times are only kept for queues';
COMMENT ON COLUMN sys.v$persistent_publishers.enqueue_cpu_time IS 'always null, for the same reason';
COMMENT ON COLUMN sys.v$persistent_publishers.last_enqueue_time IS 'time of the latest of them';
COMMENT ON COLUMN sys.v$persistent_publishers.enqueue_transactions IS 'always null, for the same reason';
COMMENT ON COLUMN sys.v$persistent_publishers.con_id IS 'always null';
GRANT SELECT ON sys.v$persistent_publishers TO PUBLIC;

CREATE VIEW sys.v$aq_message_cache_stat AS
SELECT
	(SELECT s.value FROM sys.v$sysstat s WHERE s.name = 'message cache partitions evicted') AS num_evicted,
	NULL::bigint AS num_prefetched,
	(SELECT s.value FROM sys.v$sysstat s WHERE s.name = 'message cache partitions loaded') AS num_unevicted,
	c.known_partitions - c.resident_partitions AS num_uncached, c.known_partitions AS num_tracked,
	c.resident_partitions AS num_cached, u.most_slots AS max_subsh_size, u.fewest_slots AS min_subsh_size,
	round(u.seen_slots / nullif(u.seen, 0)::numeric)::bigint AS mean_subsh_size,
	(SELECT round(m.value / nullif(h.value + m.value, 0)::numeric, 6) FROM sys.v$sysstat h, sys.v$sysstat m
		WHERE h.name = 'message cache hits' AND m.name = 'message cache misses') AS avg_miss_ratio,
	NULL::integer AS con_id
FROM aq.message_cache c, aq_internal.message_cache_use() u;
COMMENT ON VIEW sys.v$aq_message_cache_stat IS 'Counters of the message cache since the server started, and its content';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_evicted IS 'partitions that were evicted';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_prefetched IS 'always null: nothing is loaded in advance';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_unevicted IS 'partitions loaded';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_uncached IS 'partitions that are not in the cache';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_tracked IS 'partitions known to the queue';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.num_cached IS 'partitions in the cache';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.max_subsh_size IS 'highest number of messages in a partition since the server started; null: none was opened';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.min_subsh_size IS 'the fewest';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.mean_subsh_size IS 'on average';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.avg_miss_ratio IS 'dequeues that had to load a partition, as a share of those that found messages';
COMMENT ON COLUMN sys.v$aq_message_cache_stat.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_message_cache_stat TO pg_monitor, aq_administrator_role;

CALL aq_internal.make_view('sys', 'v$aq_message_cache_advice', 'Estimates for message caches of other sizes since the server started, from the number of other partitions that were evicted before an evicted one was loaded again',
	'FROM aq.message_cache_advice', $$
	size_for_estimate = size_mb
	size_factor
	estd_size_type = upper(size) | as aq.message_cache_advice.size, in upper case: MINIMUM, CURRENT, PREFERRED, MAXIMUM
	estd_cached_subshards = resident_partitions
	estd_uncached_subshards = other_partitions
	estd_evictions = evictions
	estd_eviction_rate = evictions_per_minute
	estd_fg_unevictions = session_loads
	estd_fg_uneviction_rate = session_loads_per_minute
	estd_bg_unevictions = worker_loads
	estd_bg_uneviction_rate = worker_loads_per_minute
	avg_subshard_size = partition_messages
	avg_subshard_memory = partition_bytes
	con_id = NULL::integer | always null
$$);
GRANT SELECT ON sys.v$aq_message_cache_advice TO PUBLIC;

CREATE VIEW sys.v$aq_subscriber_load AS
SELECT
	q.queue_id, c."position" AS subscriber_id,
	CASE WHEN t.estd_time_to_drain IS NOT NULL THEN 'FINITE' WHEN c.dequeued = 0 THEN 'UNKNOWN' ELSE 'INFINITE' END AS latency_state,
	t.estd_time_to_drain AS latency, c.enqueued - c.dequeued AS dequeue_requests,
	(SELECT count(DISTINCT s.shard) FROM aq.shards s WHERE s.queue_name = q.queue_name) AS active_shards,
	CASE WHEN EXISTS (SELECT FROM aq_internal.listeners() n WHERE n.queue_id = q.queue_id AND n."position" = c."position") THEN 'TRUE' ELSE 'FALSE' END AS active_listener,
	c.waiting AS dequeue_sessions, NULL::integer AS con_id
FROM aq.queues q JOIN aq_internal.consumers() c ON c.queue_id = q.queue_id
	JOIN sys.v$aq_sharded_subscriber_stat t ON t.queue_id = c.queue_id AND t.subscriber_id = c."position";
COMMENT ON VIEW sys.v$aq_subscriber_load IS 'The backlog of each subscriber of a sharded queue';
COMMENT ON COLUMN sys.v$aq_subscriber_load.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_subscriber_load.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$aq_subscriber_load.latency_state IS 'FINITE: the subscriber catches up, judged by the rates since the queue came into use; INFINITE: it does not; UNKNOWN: it has not dequeued yet';
COMMENT ON COLUMN sys.v$aq_subscriber_load.latency IS 'seconds until all messages are dequeued, as estd_time_to_drain in v$aq_sharded_subscriber_stat; null unless FINITE';
COMMENT ON COLUMN sys.v$aq_subscriber_load.dequeue_requests IS 'messages that it has not finished';
COMMENT ON COLUMN sys.v$aq_subscriber_load.active_shards IS 'shards of the queue in use';
COMMENT ON COLUMN sys.v$aq_subscriber_load.active_listener IS 'TRUE while a session listens for its messages, persistent or buffered (aq.wait, aq.listen, dbms_aq.listen), otherwise FALSE';
COMMENT ON COLUMN sys.v$aq_subscriber_load.dequeue_sessions IS 'sessions that wait for its messages, including listening ones unless pgaq.listen_wakeup is broadcast';
COMMENT ON COLUMN sys.v$aq_subscriber_load.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_subscriber_load TO PUBLIC;
