-- Oracle's performance views on queues.  A counter is real or null, never invented; counters begin when the server
-- starts.  They show the queues that the current role may use.

CREATE VIEW sys.v$aq AS
SELECT
	q.queue_id AS qid, m.waiting, m.ready, m.expired, m.total_wait, m.average_wait, m.average_msg_age,
	NULL::integer AS con_id
FROM aq.queues q, LATERAL (
	SELECT count(*) FILTER (WHERE state = 'WAITING') AS waiting,
		count(*) FILTER (WHERE state IN ('READY', 'LOCKED') AND NOT exception) AS ready,
		count(*) FILTER (WHERE exception) AS expired,
		extract(epoch FROM sum(clock_timestamp() - coalesce(ready_at, enqueue_time)) FILTER (WHERE state IN ('READY', 'LOCKED')))::bigint AS total_wait,
		extract(epoch FROM avg(clock_timestamp() - coalesce(ready_at, enqueue_time)) FILTER (WHERE state IN ('READY', 'LOCKED')))::bigint AS average_wait,
		extract(epoch FROM avg(clock_timestamp() - enqueue_time))::bigint AS average_msg_age
	FROM (SELECT DISTINCT ON (msgid) msgid, state, ready_at, enqueue_time, q.queue_type = 'exception' AS exception FROM aq.messages a
		WHERE a.queue_name = q.queue_name AND state IN ('READY', 'LOCKED', 'WAITING', 'EXPIRED')
			AND (state <> 'EXPIRED' OR q.queue_type = 'exception') ORDER BY msgid) x) m;
COMMENT ON VIEW sys.v$aq IS 'Messages of each queue by state; reads the messages, so restrict it to a queue';
COMMENT ON COLUMN sys.v$aq.qid IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq.waiting IS 'messages whose delay or rest is not over';
COMMENT ON COLUMN sys.v$aq.ready IS 'messages that can be dequeued';
COMMENT ON COLUMN sys.v$aq.expired IS 'messages in this exception queue';
COMMENT ON COLUMN sys.v$aq.total_wait IS 'seconds that all ready messages have waited';
COMMENT ON COLUMN sys.v$aq.average_wait IS 'average of that';
COMMENT ON COLUMN sys.v$aq.average_msg_age IS 'seconds since the enqueue, average of all';
COMMENT ON COLUMN sys.v$aq.con_id IS 'always null';
GRANT SELECT ON sys.v$aq TO PUBLIC;

CREATE VIEW sys.v$persistent_queues AS
SELECT
	q.queue_id, t.queue_table_id, aq._oracle_case(aq._name_schema(q.queue_name)) AS queue_schema,
	aq._oracle_case(aq._bare_name(q.queue_name)) AS queue_name, NULL::timestamptz AS first_activity_time,
	c.enqueued AS enqueued_msgs, CASE WHEN NOT q.multiple_consumers THEN c.dequeued END AS dequeued_msgs,
	NULL::bigint AS browsed_msgs, NULL::bigint AS elapsed_enqueue_time, NULL::bigint AS elapsed_dequeue_time,
	NULL::bigint AS enqueue_cpu_time, NULL::bigint AS dequeue_cpu_time, NULL::bigint AS avg_msg_age,
	NULL::bigint AS dequeued_msg_latency, NULL::bigint AS elapsed_transformation_time,
	NULL::bigint AS elapsed_rule_evaluation_time, NULL::bigint AS enqueued_expiry_msgs,
	NULL::bigint AS enqueued_delay_msgs, NULL::bigint AS msgs_made_expired, NULL::bigint AS msgs_made_ready,
	NULL::timestamptz AS last_enqueue_time, NULL::timestamptz AS last_dequeue_time,
	NULL::timestamptz AS last_tm_expiry_time, NULL::timestamptz AS last_tm_ready_time,
	NULL::bigint AS enqueue_transactions, NULL::bigint AS dequeue_transactions, NULL::bigint AS execution_count,
	NULL::uuid AS oldest_msgid, NULL::timestamptz AS oldest_msg_enqtm, NULL::integer AS con_id
FROM aq.queues q CROSS JOIN LATERAL aq._queue_counters(q.queue_name) c
	LEFT JOIN aq.queue_tables t ON t.queue_table = q.queue_table;
COMMENT ON VIEW sys.v$persistent_queues IS 'Traffic of each queue since the server started';
COMMENT ON COLUMN sys.v$persistent_queues.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$persistent_queues.queue_table_id IS 'number of the queue table; null: sharded';
COMMENT ON COLUMN sys.v$persistent_queues.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$persistent_queues.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$persistent_queues.first_activity_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_msgs IS 'messages enqueued and committed';
COMMENT ON COLUMN sys.v$persistent_queues.dequeued_msgs IS 'messages done with: consumed, purged, expired or failed; null for queues with several consumers, see v$persistent_subscribers';
COMMENT ON COLUMN sys.v$persistent_queues.browsed_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_enqueue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.enqueue_cpu_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.dequeue_cpu_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.avg_msg_age IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.dequeued_msg_latency IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_transformation_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_rule_evaluation_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_expiry_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_delay_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.msgs_made_expired IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.msgs_made_ready IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.last_enqueue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.last_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.last_tm_expiry_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.last_tm_ready_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.enqueue_transactions IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.dequeue_transactions IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.execution_count IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.oldest_msgid IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.oldest_msg_enqtm IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_queues.con_id IS 'always null';
GRANT SELECT ON sys.v$persistent_queues TO PUBLIC;

CREATE VIEW sys.v$persistent_subscribers AS
SELECT
	q.queue_id, aq._oracle_case(aq._name_schema(q.queue_name)) AS queue_schema,
	aq._oracle_case(aq._bare_name(q.queue_name)) AS queue_name, c."position" AS subscriber_id,
	aq._oracle_case(s.consumer) AS subscriber_name, NULL::text AS subscriber_address, NULL::integer AS protocol,
	CASE WHEN s.consumer IS NULL OR s.subscriber THEN 'SUBSCRIBER' ELSE 'RECIPIENT' END AS subscriber_type,
	NULL::timestamptz AS first_activity_time, c.enqueued AS enqueued_msgs, c.dequeued AS dequeued_msgs,
	NULL::bigint AS browsed_msgs, NULL::bigint AS expired_msgs, NULL::bigint AS avg_msg_age,
	NULL::bigint AS dequeued_msg_latency, NULL::timestamptz AS last_enqueue_time, NULL::timestamptz AS last_dequeue_time,
	NULL::bigint AS elapsed_dequeue_time, NULL::bigint AS dequeue_cpu_time, NULL::bigint AS dequeue_transactions,
	NULL::bigint AS execution_count, NULL::bigint AS dequeue_memory_locks, NULL::bigint AS dequeue_disk_locks,
	NULL::bigint AS dequeue_disk_deletes, NULL::uuid AS oldest_msgid, NULL::timestamptz AS oldest_msg_enqtm,
	NULL::integer AS parent_subscriber_id, NULL::integer AS con_id
FROM aq._consumers() c JOIN aq.queues q ON q.queue_id = c.queue_id
	LEFT JOIN LATERAL aq._queue_consumers(q.queue_name) s ON s."position" = c."position"
WHERE NOT q.multiple_consumers OR s.consumer IS NOT NULL;
COMMENT ON VIEW sys.v$persistent_subscribers IS 'Traffic of each subscriber and recipient since the server started; of sharded queues too, and of those that are single-consumer with a null name';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_name IS 'name';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_address IS 'always null';
COMMENT ON COLUMN sys.v$persistent_subscribers.protocol IS 'always null';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_type IS 'SUBSCRIBER, or RECIPIENT: named in a recipient list only';
COMMENT ON COLUMN sys.v$persistent_subscribers.first_activity_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.enqueued_msgs IS 'messages for it, plus those found when the queue came into use';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeued_msgs IS 'messages it was done with: consumed, purged, expired or failed';
COMMENT ON COLUMN sys.v$persistent_subscribers.browsed_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.expired_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.avg_msg_age IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeued_msg_latency IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.last_enqueue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.last_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.elapsed_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_cpu_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_transactions IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.execution_count IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_memory_locks IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_disk_locks IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_disk_deletes IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.oldest_msgid IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.oldest_msg_enqtm IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.parent_subscriber_id IS 'always null: not counted';
COMMENT ON COLUMN sys.v$persistent_subscribers.con_id IS 'always null';
GRANT SELECT ON sys.v$persistent_subscribers TO PUBLIC;

CREATE VIEW sys.v$buffered_queues AS
SELECT
	q.queue_id, aq._oracle_case(aq._name_schema(q.queue_name)) AS queue_schema,
	aq._oracle_case(aq._bare_name(q.queue_name)) AS queue_name, NULL::timestamptz AS startup_time,
	NULL::bigint AS num_msgs, NULL::bigint AS spill_msgs, NULL::bigint AS cnum_msgs, NULL::bigint AS cspill_msgs,
	NULL::bigint AS expired_msgs, NULL::uuid AS oldest_msgid, NULL::timestamptz AS oldest_msg_enqtm,
	NULL::text AS queue_state, NULL::bigint AS elapsed_enqueue_time, NULL::bigint AS elapsed_dequeue_time,
	NULL::bigint AS avg_msg_age, NULL::bigint AS queue_size, NULL::integer AS con_id
FROM aq.queues q WHERE false;
COMMENT ON VIEW sys.v$buffered_queues IS 'Queues with buffered messages: none, as long as there are no buffered messages';
COMMENT ON COLUMN sys.v$buffered_queues.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$buffered_queues.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$buffered_queues.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$buffered_queues.startup_time IS 'always null';
COMMENT ON COLUMN sys.v$buffered_queues.num_msgs IS 'buffered messages in memory';
COMMENT ON COLUMN sys.v$buffered_queues.spill_msgs IS 'on disk';
COMMENT ON COLUMN sys.v$buffered_queues.cnum_msgs IS 'ever enqueued';
COMMENT ON COLUMN sys.v$buffered_queues.cspill_msgs IS 'ever spilled';
COMMENT ON COLUMN sys.v$buffered_queues.expired_msgs IS 'expired';
COMMENT ON COLUMN sys.v$buffered_queues.oldest_msgid IS 'oldest message';
COMMENT ON COLUMN sys.v$buffered_queues.oldest_msg_enqtm IS 'when it was enqueued';
COMMENT ON COLUMN sys.v$buffered_queues.queue_state IS 'state';
COMMENT ON COLUMN sys.v$buffered_queues.elapsed_enqueue_time IS 'not counted';
COMMENT ON COLUMN sys.v$buffered_queues.elapsed_dequeue_time IS 'not counted';
COMMENT ON COLUMN sys.v$buffered_queues.avg_msg_age IS 'not counted';
COMMENT ON COLUMN sys.v$buffered_queues.queue_size IS 'bytes';
COMMENT ON COLUMN sys.v$buffered_queues.con_id IS 'always null';
GRANT SELECT ON sys.v$buffered_queues TO PUBLIC;

CREATE VIEW sys.v$aq_message_cache AS
SELECT
	q.queue_id, p.shard AS shard_id, p.priority, p.first_ordinal / 16384 AS subshard_id, p.table_no AS partition_id,
	16384 AS max_msgs, p.slots AS enqueued_msgs, NULL::bigint AS browsed_msgs, NULL::bigint AS msgs_made_expired,
	NULL::bigint AS msgs_made_ready, c.chunk_bytes AS chunk_size, NULL::bigint AS num_chunks,
	NULL::bigint AS num_free_chunks, NULL::bigint AS used_memory_size,
	CASE WHEN p.resident THEN 'CACHED' WHEN p.state = 'empty' THEN 'UNCACHED_FREE' ELSE 'UNCACHED' END AS state,
	NULL::integer AS con_id
FROM aq.partitions p JOIN aq.queues q ON q.queue_name = p.queue_name CROSS JOIN aq.message_cache c;
COMMENT ON VIEW sys.v$aq_message_cache IS 'Partitions of sharded queues and their place in the message cache';
COMMENT ON COLUMN sys.v$aq_message_cache.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_message_cache.shard_id IS 'number of the shard';
COMMENT ON COLUMN sys.v$aq_message_cache.priority IS 'priority of its messages';
COMMENT ON COLUMN sys.v$aq_message_cache.subshard_id IS 'which partition of the shard it is';
COMMENT ON COLUMN sys.v$aq_message_cache.partition_id IS 'number of its pair of tables';
COMMENT ON COLUMN sys.v$aq_message_cache.max_msgs IS 'messages it can hold';
COMMENT ON COLUMN sys.v$aq_message_cache.enqueued_msgs IS 'messages given a place in it';
COMMENT ON COLUMN sys.v$aq_message_cache.browsed_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.msgs_made_expired IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.msgs_made_ready IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.chunk_size IS 'unit of allocation, bytes';
COMMENT ON COLUMN sys.v$aq_message_cache.num_chunks IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.num_free_chunks IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.used_memory_size IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_message_cache.state IS 'CACHED, UNCACHED or UNCACHED_FREE (empty)';
COMMENT ON COLUMN sys.v$aq_message_cache.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_message_cache TO PUBLIC;

CREATE VIEW sys.v$aq_sharded_subscriber_stat AS
SELECT
	q.queue_id, c."position" AS subscriber_id, NULL::integer AS shard_id, NULL::integer AS priority,
	NULL::bigint AS dequeue_subshard, c.enqueued AS enqueued_msgs, c.dequeued AS dequeued_msgs,
	NULL::bigint AS elapsed_dequeue_time, NULL::bigint AS cpu_dequeue_time, NULL::numeric AS dequeue_rate,
	NULL::bigint AS time_since_last_dequeue, NULL::bigint AS estd_time_to_drain, NULL::bigint AS estd_time_to_drain_no_enq,
	NULL::integer AS con_id
FROM aq._consumers() c JOIN aq.queues q ON q.queue_id = c.queue_id WHERE q.queue_table IS NULL;
COMMENT ON VIEW sys.v$aq_sharded_subscriber_stat IS 'Subscribers of sharded queues: one row for each, over all shards and priorities';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.shard_id IS 'always null: all shards';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.priority IS 'always null: all priorities';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeue_subshard IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.enqueued_msgs IS 'messages for it, plus those found when the queue came into use';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeued_msgs IS 'messages it was done with; the difference is its lag';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.elapsed_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.cpu_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeue_rate IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.time_since_last_dequeue IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.estd_time_to_drain IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.estd_time_to_drain_no_enq IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_sharded_subscriber_stat TO PUBLIC;

CREATE VIEW sys.v$aq_partition_stats AS
SELECT
	q.queue_id, count(*) AS partitions_qt, count(*) FILTER (WHERE p.state NOT IN ('empty', 'taken')) AS used_partitions_qt,
	count(*) FILTER (WHERE p.state IN ('empty', 'taken')) AS cached_partitions_qt, count(*) AS partitions_dq,
	sum(p.bytes)::bigint AS bytes, NULL::bigint AS add_partition_fg, NULL::bigint AS add_partition_bg,
	NULL::bigint AS trunc_partition_qt, NULL::bigint AS trunc_partition_dq, NULL::integer AS con_id
FROM aq.partitions p JOIN aq.queues q ON q.queue_name = p.queue_name GROUP BY q.queue_id;
COMMENT ON VIEW sys.v$aq_partition_stats IS 'Tables of each sharded queue';
COMMENT ON COLUMN sys.v$aq_partition_stats.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_partition_stats.partitions_qt IS 'pairs of tables';
COMMENT ON COLUMN sys.v$aq_partition_stats.used_partitions_qt IS 'of these: with messages';
COMMENT ON COLUMN sys.v$aq_partition_stats.cached_partitions_qt IS 'of these: empty, to be used next';
COMMENT ON COLUMN sys.v$aq_partition_stats.partitions_dq IS 'dequeue logs: one for each';
COMMENT ON COLUMN sys.v$aq_partition_stats.bytes IS 'size of all on disk';
COMMENT ON COLUMN sys.v$aq_partition_stats.add_partition_fg IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_partition_stats.add_partition_bg IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_partition_stats.trunc_partition_qt IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_partition_stats.trunc_partition_dq IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_partition_stats.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_partition_stats TO PUBLIC;
