-- Oracle's performance views on queues. A counter is exact or null, never estimated; counters begin when the server starts. The views show the queues
-- that the current role may use.

CREATE VIEW sys.v$aq AS
SELECT
	q.queue_id AS qid, m.waiting, m.ready, m.expired, m.total_wait, m.average_wait, m.average_msg_age,
	NULL::integer AS con_id
FROM aq.queues q, LATERAL (
	SELECT count(*) FILTER (WHERE state = 'WAITING') AS waiting,
		count(*) FILTER (WHERE state IN ('READY', 'LOCKED', 'LEASED') AND NOT exception) AS ready,
		count(*) FILTER (WHERE exception) AS expired,
		extract(epoch FROM sum(clock_timestamp() - coalesce(ready_at, enqueue_time)) FILTER (WHERE state IN ('READY', 'LOCKED', 'LEASED')))::bigint AS total_wait,
		extract(epoch FROM avg(clock_timestamp() - coalesce(ready_at, enqueue_time)) FILTER (WHERE state IN ('READY', 'LOCKED', 'LEASED')))::bigint AS average_wait,
		extract(epoch FROM avg(clock_timestamp() - enqueue_time))::bigint AS average_msg_age
	FROM (SELECT DISTINCT ON (msgid) msgid, state, ready_at, enqueue_time, q.queue_type = 'exception' AS exception FROM aq.messages a
		WHERE a.queue_name = q.queue_name AND state IN ('READY', 'LOCKED', 'LEASED', 'WAITING', 'EXPIRED')
			AND (state <> 'EXPIRED' OR q.queue_type = 'exception') ORDER BY msgid) x) m
WHERE aq_internal.may((SELECT r.rights_id FROM aq_internal.queue r WHERE r.queue_id = q.queue_id), 'CONSUMER');
COMMENT ON VIEW sys.v$aq IS 'Messages of each queue from which the current role can dequeue, by state. Reads the messages, so restrict it to a queue';
COMMENT ON COLUMN sys.v$aq.qid IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq.waiting IS 'messages whose delay or retry delay is not over';
COMMENT ON COLUMN sys.v$aq.ready IS 'messages that can be dequeued';
COMMENT ON COLUMN sys.v$aq.expired IS 'messages in this exception queue';
COMMENT ON COLUMN sys.v$aq.total_wait IS 'seconds that all ready messages have waited';
COMMENT ON COLUMN sys.v$aq.average_wait IS 'average of this time';
COMMENT ON COLUMN sys.v$aq.average_msg_age IS 'seconds since the enqueue, average of all';
COMMENT ON COLUMN sys.v$aq.con_id IS 'always null';
GRANT SELECT ON sys.v$aq TO PUBLIC;

CREATE VIEW sys.v$persistent_queues AS
SELECT
	q.queue_id, t.queue_table_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name, n.since AS first_activity_time,
	c.enqueued AS enqueued_msgs, CASE WHEN NOT q.multiple_consumers THEN c.dequeued END AS dequeued_msgs,
	n.browsed AS browsed_msgs, n.enqueue_elapsed / 10000000 AS elapsed_enqueue_time, n.dequeue_elapsed / 10000000 AS elapsed_dequeue_time,
	n.enqueue_cpu / 10000000 AS enqueue_cpu_time, n.dequeue_cpu / 10000000 AS dequeue_cpu_time, m.age AS avg_msg_age,
	CASE WHEN n.consumed > 0 THEN n.last_latency / 1000000.0 END::numeric(20, 6) AS dequeued_msg_latency,
	n.transformations_elapsed / 10000000 AS elapsed_transformation_time,
	n.rules_elapsed / 10000000 AS elapsed_rule_evaluation_time, n.enqueued_expiry AS enqueued_expiry_msgs,
	n.enqueued_delay AS enqueued_delay_msgs, n.failed AS msgs_made_expired, n.made_ready AS msgs_made_ready,
	n.last_enqueue AS last_enqueue_time, n.last_dequeue AS last_dequeue_time,
	n.last_failure AS last_tm_expiry_time, n.last_ready AS last_tm_ready_time,
	n.enqueue_transactions, n.dequeue_transactions, n.executions AS execution_count,
	m.oldest_msgid, m.oldest_msg_enqtm, NULL::integer AS con_id
FROM aq.queues q CROSS JOIN LATERAL aq_internal.queue_counters(q.queue_name) c CROSS JOIN LATERAL aq_internal.queue_traffic(q.queue_name) n
	LEFT JOIN aq.queue_tables t ON t.queue_table = q.queue_table
	-- the planner removes this join if none of its columns is used
	LEFT JOIN LATERAL (SELECT (array_agg(a.msgid ORDER BY a.enqueue_time, a.msgid))[1] AS oldest_msgid, min(a.enqueue_time) AS oldest_msg_enqtm,
			extract(epoch FROM avg(clock_timestamp() - a.enqueue_time))::bigint AS age
		FROM (SELECT DISTINCT x.msgid, x.enqueue_time FROM aq.messages x
			WHERE x.queue_name = q.queue_name AND x.state IN ('READY', 'LOCKED', 'LEASED', 'WAITING') AND x.delivery_mode = 'persistent') a) m ON true
WHERE q.queue_type <> 'non_persistent';
COMMENT ON VIEW sys.v$persistent_queues IS 'Traffic of each queue, but non-persistent ones, since it came into use after the start of the server; avg_msg_age and oldest_... read the messages, so restrict queries on them to a queue';
COMMENT ON COLUMN sys.v$persistent_queues.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$persistent_queues.queue_table_id IS 'number of the queue table; null: sharded';
COMMENT ON COLUMN sys.v$persistent_queues.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$persistent_queues.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$persistent_queues.first_activity_time IS 'start of counting: when the queue came into use';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_msgs IS 'messages enqueued and committed';
COMMENT ON COLUMN sys.v$persistent_queues.dequeued_msgs IS 'finished messages: consumed, purged, expired or failed; null for queues with several consumers, see v$persistent_subscribers';
COMMENT ON COLUMN sys.v$persistent_queues.browsed_msgs IS 'messages read by dequeues in mode browse';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_enqueue_time IS 'hundredths of a second in enqueues, including waits, without the commit; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_dequeue_time IS 'hundredths of a second in dequeues, without waits for messages; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$persistent_queues.enqueue_cpu_time IS 'hundredths of a second of CPU in enqueues, estimated from some calls of each session';
COMMENT ON COLUMN sys.v$persistent_queues.dequeue_cpu_time IS 'hundredths of a second of CPU in dequeues, estimated in the same way';
COMMENT ON COLUMN sys.v$persistent_queues.avg_msg_age IS 'seconds since the enqueue, average of the messages to be dequeued; reads them';
COMMENT ON COLUMN sys.v$persistent_queues.dequeued_msg_latency IS 'seconds from the enqueue of the latest consumed message to the commit of its dequeue, including its delay; for all messages: dba_hist_queue';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_transformation_time IS 'hundredths of a second in transformations by dbms_aq; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$persistent_queues.elapsed_rule_evaluation_time IS 'hundredths of a second in rules of subscribers during enqueues; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_expiry_msgs IS 'messages enqueued with an expiration, and committed';
COMMENT ON COLUMN sys.v$persistent_queues.enqueued_delay_msgs IS 'messages enqueued with a delay, and committed';
COMMENT ON COLUMN sys.v$persistent_queues.msgs_made_expired IS 'messages that expired or failed too often, for each consumer';
COMMENT ON COLUMN sys.v$persistent_queues.msgs_made_ready IS 'messages whose delay or retry delay has ended, for each consumer';
COMMENT ON COLUMN sys.v$persistent_queues.last_enqueue_time IS 'latest commit of an enqueue';
COMMENT ON COLUMN sys.v$persistent_queues.last_dequeue_time IS 'latest commit of a dequeue';
COMMENT ON COLUMN sys.v$persistent_queues.last_tm_expiry_time IS 'when a message expired or failed last';
COMMENT ON COLUMN sys.v$persistent_queues.last_tm_ready_time IS 'when a delay or retry delay ended last';
COMMENT ON COLUMN sys.v$persistent_queues.enqueue_transactions IS 'transactions that have enqueued, including those that rolled this back to a savepoint';
COMMENT ON COLUMN sys.v$persistent_queues.dequeue_transactions IS 'transactions that have dequeued, counted in the same way';
COMMENT ON COLUMN sys.v$persistent_queues.execution_count IS 'checks for messages by dequeues: one for each call, and one for each wake-up during its wait';
COMMENT ON COLUMN sys.v$persistent_queues.oldest_msgid IS 'oldest message to be dequeued; reads the messages';
COMMENT ON COLUMN sys.v$persistent_queues.oldest_msg_enqtm IS 'when it was enqueued; reads the messages';
COMMENT ON COLUMN sys.v$persistent_queues.con_id IS 'always null';
GRANT SELECT ON sys.v$persistent_queues TO PUBLIC;

CREATE VIEW sys.v$persistent_subscribers AS
SELECT
	q.queue_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name, c."position" AS subscriber_id,
	sys._oracle_case(s.consumer) AS subscriber_name, NULL::text AS subscriber_address, NULL::integer AS protocol,
	CASE WHEN s.consumer IS NULL OR s.subscriber THEN 'SUBSCRIBER' ELSE 'RECIPIENT' END AS subscriber_type,
	n.since AS first_activity_time, c.enqueued AS enqueued_msgs, c.dequeued AS dequeued_msgs,
	c.browsed AS browsed_msgs, c.failed AS expired_msgs, m.age AS avg_msg_age,
	CASE WHEN c.consumed > 0 THEN c.last_latency / 1000000.0 END::numeric(20, 6) AS dequeued_msg_latency,
	c.last_enqueue AS last_enqueue_time, c.last_dequeue AS last_dequeue_time,
	c.dequeue_elapsed / 10000000 AS elapsed_dequeue_time, c.dequeue_cpu / 10000000 AS dequeue_cpu_time, c.dequeue_transactions,
	c.executions AS execution_count, NULL::bigint AS dequeue_memory_locks, NULL::bigint AS dequeue_disk_locks,
	NULL::bigint AS dequeue_disk_deletes, m.oldest_msgid, m.oldest_msg_enqtm,
	NULL::integer AS parent_subscriber_id, NULL::integer AS con_id
FROM aq_internal.consumers() c JOIN aq.queues q ON q.queue_id = c.queue_id
	CROSS JOIN LATERAL aq_internal.queue_traffic(q.queue_name) n
	LEFT JOIN LATERAL sys._queue_consumers(q.queue_name) s ON s."position" = c."position"
	-- left out as in v$persistent_queues
	LEFT JOIN LATERAL (SELECT (array_agg(x.msgid ORDER BY x.enqueue_time, x.msgid))[1] AS oldest_msgid, min(x.enqueue_time) AS oldest_msg_enqtm,
			extract(epoch FROM avg(clock_timestamp() - x.enqueue_time))::bigint AS age
		FROM aq.messages x WHERE x.queue_name = q.queue_name AND x.consumer IS NOT DISTINCT FROM s.consumer
			AND x.state IN ('READY', 'LOCKED', 'LEASED', 'WAITING') AND x.delivery_mode = 'persistent') m ON true
WHERE NOT q.multiple_consumers OR s.consumer IS NOT NULL;
COMMENT ON VIEW sys.v$persistent_subscribers IS 'Traffic of each subscriber and recipient since the server started, also of sharded queues; single-consumer queues have a null name. avg_msg_age and oldest_... read the messages, so restrict queries on them to a queue';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$persistent_subscribers.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_name IS 'name';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_address IS 'always null';
COMMENT ON COLUMN sys.v$persistent_subscribers.protocol IS 'always null';
COMMENT ON COLUMN sys.v$persistent_subscribers.subscriber_type IS 'SUBSCRIBER, or RECIPIENT: named only in recipient lists';
COMMENT ON COLUMN sys.v$persistent_subscribers.first_activity_time IS 'start of counting: when the queue came into use';
COMMENT ON COLUMN sys.v$persistent_subscribers.enqueued_msgs IS 'messages for it, plus those present when the queue came into use';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeued_msgs IS 'messages that it has finished: consumed, purged, expired or failed';
COMMENT ON COLUMN sys.v$persistent_subscribers.browsed_msgs IS 'messages read for it by dequeues in mode browse';
COMMENT ON COLUMN sys.v$persistent_subscribers.expired_msgs IS 'messages that expired or failed too often for it';
COMMENT ON COLUMN sys.v$persistent_subscribers.avg_msg_age IS 'seconds since the enqueue, average of the messages that it is to dequeue; reads them';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeued_msg_latency IS 'seconds from the enqueue of the latest consumed message to the commit of its dequeue, including its delay; for all messages: aq.subscribers.latency_us';
COMMENT ON COLUMN sys.v$persistent_subscribers.last_enqueue_time IS 'latest commit of an enqueue for it';
COMMENT ON COLUMN sys.v$persistent_subscribers.last_dequeue_time IS 'latest commit of a dequeue';
COMMENT ON COLUMN sys.v$persistent_subscribers.elapsed_dequeue_time IS 'hundredths of a second in its dequeues, without waits for messages; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_cpu_time IS 'hundredths of a second of CPU in them, estimated from some calls of each session';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_transactions IS 'transactions that have dequeued for it, including those that rolled this back to a savepoint';
COMMENT ON COLUMN sys.v$persistent_subscribers.execution_count IS 'checks for messages by its dequeues, as in v$persistent_queues';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_memory_locks IS 'always null: a dequeue does not choose between locks in memory and on disk';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_disk_locks IS 'always null, for the same reason';
COMMENT ON COLUMN sys.v$persistent_subscribers.dequeue_disk_deletes IS 'always null: no table is organised as an index here';
COMMENT ON COLUMN sys.v$persistent_subscribers.oldest_msgid IS 'oldest message that it is to dequeue; reads the messages';
COMMENT ON COLUMN sys.v$persistent_subscribers.oldest_msg_enqtm IS 'when it was enqueued; reads the messages';
COMMENT ON COLUMN sys.v$persistent_subscribers.parent_subscriber_id IS 'always null: subscribers have no parents';
COMMENT ON COLUMN sys.v$persistent_subscribers.con_id IS 'always null';
GRANT SELECT ON sys.v$persistent_subscribers TO PUBLIC;

CREATE VIEW sys.v$buffered_queues AS
SELECT
	q.queue_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name,
	greatest(pg_postmaster_start_time(), b.created, b.lost_at) AS startup_time,
	s.messages - s.spilled AS num_msgs, s.spilled AS spill_msgs, s.enqueued AS cnum_msgs, NULL::bigint AS cspill_msgs,
	s.failed AS expired_msgs, s.oldest_msgid, s.oldest_time AS oldest_msg_enqtm, NULL::text AS queue_state,
	s.enqueue_elapsed / 10000000 AS elapsed_enqueue_time, s.dequeue_elapsed / 10000000 AS elapsed_dequeue_time,
	extract(epoch FROM s.average_age)::bigint AS avg_msg_age, s.bytes AS queue_size, NULL::integer AS con_id
FROM aq.queues q JOIN aq_internal.buffered_queue b ON b.queue_id = q.queue_id, LATERAL aq_internal.buffered_queue(q.queue_id) s;
COMMENT ON VIEW sys.v$buffered_queues IS 'Queues that have had buffered messages. Reads these messages, so restrict it to a queue';
COMMENT ON COLUMN sys.v$buffered_queues.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$buffered_queues.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$buffered_queues.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$buffered_queues.startup_time IS 'start of its content: start of the server, first buffered message, or last loss';
COMMENT ON COLUMN sys.v$buffered_queues.num_msgs IS 'buffered messages in memory';
COMMENT ON COLUMN sys.v$buffered_queues.spill_msgs IS 'on disk and not in shared buffers';
COMMENT ON COLUMN sys.v$buffered_queues.cnum_msgs IS 'enqueued since the server started';
COMMENT ON COLUMN sys.v$buffered_queues.cspill_msgs IS 'always null: PostgreSQL does not report when it evicts a page from shared buffers';
COMMENT ON COLUMN sys.v$buffered_queues.expired_msgs IS 'expired or failed since the server started; of a topic (message, consumer) pairs';
COMMENT ON COLUMN sys.v$buffered_queues.oldest_msgid IS 'oldest message';
COMMENT ON COLUMN sys.v$buffered_queues.oldest_msg_enqtm IS 'when it was enqueued';
COMMENT ON COLUMN sys.v$buffered_queues.queue_state IS 'always null: see publisher_state in v$buffered_publishers';
COMMENT ON COLUMN sys.v$buffered_queues.elapsed_enqueue_time IS 'hundredths of a second in enqueues of buffered messages, including waits, without the commit; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$buffered_queues.elapsed_dequeue_time IS 'hundredths of a second in dequeues of buffered messages only, without waits for messages; 0 while pgaq.timed_statistics is off';
COMMENT ON COLUMN sys.v$buffered_queues.avg_msg_age IS 'seconds since the enqueue, average of all';
COMMENT ON COLUMN sys.v$buffered_queues.queue_size IS 'bytes';
COMMENT ON COLUMN sys.v$buffered_queues.con_id IS 'always null';
GRANT SELECT ON sys.v$buffered_queues TO PUBLIC;

CREATE VIEW sys.v$buffered_subscribers AS
SELECT
	q.queue_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name, c."position" AS subscriber_id,
	sys._oracle_case(s.consumer) AS subscriber_name, NULL::text AS subscriber_address, NULL::integer AS protocol,
	CASE WHEN s.consumer IS NULL OR s.subscriber THEN 'SUBSCRIBER' ELSE 'RECIPIENT' END AS subscriber_type,
	greatest(pg_postmaster_start_time(), b.created, b.lost_at, u.created) AS startup_time, c.enqueued - c.dequeued AS num_msgs, c.enqueued AS cnum_msgs,
	c.dequeued AS total_dequeued_msg, NULL::bigint AS total_spilled_msg, NULL::bigint AS expired_msgs,
	c.enqueued - c.dequeued AS message_lag, NULL::integer AS con_id
FROM aq.queues q JOIN aq_internal.buffered_queue b ON b.queue_id = q.queue_id CROSS JOIN LATERAL aq_internal.buffered_consumers(q.queue_id) c
	LEFT JOIN LATERAL sys._queue_consumers(q.queue_name) s ON s."position" = c."position"
	LEFT JOIN aq_internal.subscriber u ON u.queue_id = q.queue_id AND u."position" = c."position"
WHERE s.delivery_mode IS DISTINCT FROM 1;
COMMENT ON VIEW sys.v$buffered_subscribers IS 'Traffic of buffered messages by subscriber and recipient since the server started; single-consumer queues have a null name';
COMMENT ON COLUMN sys.v$buffered_subscribers.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$buffered_subscribers.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$buffered_subscribers.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$buffered_subscribers.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$buffered_subscribers.subscriber_name IS 'name';
COMMENT ON COLUMN sys.v$buffered_subscribers.subscriber_address IS 'always null';
COMMENT ON COLUMN sys.v$buffered_subscribers.protocol IS 'always null';
COMMENT ON COLUMN sys.v$buffered_subscribers.subscriber_type IS 'SUBSCRIBER, or RECIPIENT: named only in recipient lists';
COMMENT ON COLUMN sys.v$buffered_subscribers.startup_time IS 'earliest possible messages for it: start of the server, first buffered message, last loss, or its own creation';
COMMENT ON COLUMN sys.v$buffered_subscribers.num_msgs IS 'messages that it has not finished';
COMMENT ON COLUMN sys.v$buffered_subscribers.cnum_msgs IS 'messages for it, plus those present when the queue came into use';
COMMENT ON COLUMN sys.v$buffered_subscribers.total_dequeued_msg IS 'messages that it has finished: consumed, purged, expired or failed';
COMMENT ON COLUMN sys.v$buffered_subscribers.total_spilled_msg IS 'always null: PostgreSQL does not report when it evicts a page from shared buffers';
COMMENT ON COLUMN sys.v$buffered_subscribers.expired_msgs IS 'always null: not counted';
COMMENT ON COLUMN sys.v$buffered_subscribers.message_lag IS 'equal to num_msgs';
COMMENT ON COLUMN sys.v$buffered_subscribers.con_id IS 'always null';
GRANT SELECT ON sys.v$buffered_subscribers TO PUBLIC;

CREATE VIEW sys.v$buffered_publishers AS
SELECT
	q.queue_id, sys._oracle_case(sys._name_schema(q.queue_name)) AS queue_schema,
	sys._oracle_case(sys._bare_name(q.queue_name)) AS queue_name,
	p.sender AS sender_name, NULL::text AS sender_address, NULL::integer AS sender_protocol,
	coalesce(p.messages, 0) AS num_msgs, NULL::bigint AS cnum_msgs, p.latest_msgid AS last_enqueued_msg,
	coalesce(p.messages, 0) AS unbrowsed_msgs, coalesce(p.spilled, 0) AS overspilled_msgs,
	round(coalesce(p.memory_percent, 0), 3) AS memory_usage, NULL::bigint AS elapsed_enqueue_time,
	NULL::bigint AS enqueue_cpu_time, p.latest_time AS last_enqueue_time,
	CASE WHEN p.in_flow_control THEN 'IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES' ELSE 'PUBLISHING MESSAGES' END AS publisher_state,
	NULL::integer AS con_id
FROM aq.queues q JOIN aq_internal.buffered_queue b ON b.queue_id = q.queue_id
	LEFT JOIN LATERAL aq_internal.buffered_publishers(q.queue_id) p ON true;
COMMENT ON VIEW sys.v$buffered_publishers IS 'Queues that have had buffered messages, by sender of the current ones. Reads these messages, so restrict it to a queue';
COMMENT ON COLUMN sys.v$buffered_publishers.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$buffered_publishers.queue_schema IS 'its schema';
COMMENT ON COLUMN sys.v$buffered_publishers.queue_name IS 'its name';
COMMENT ON COLUMN sys.v$buffered_publishers.sender_name IS 'sender named at enqueue; null: messages without a sender, or no messages';
COMMENT ON COLUMN sys.v$buffered_publishers.sender_address IS 'always null';
COMMENT ON COLUMN sys.v$buffered_publishers.sender_protocol IS 'always null';
COMMENT ON COLUMN sys.v$buffered_publishers.num_msgs IS 'its messages that a consumer has not finished';
COMMENT ON COLUMN sys.v$buffered_publishers.cnum_msgs IS 'always null: a sender is only a name in messages';
COMMENT ON COLUMN sys.v$buffered_publishers.last_enqueued_msg IS 'the latest of them';
COMMENT ON COLUMN sys.v$buffered_publishers.unbrowsed_msgs IS 'equal to num_msgs: browsing is not recorded';
COMMENT ON COLUMN sys.v$buffered_publishers.overspilled_msgs IS 'of these: on disk and not in shared buffers';
COMMENT ON COLUMN sys.v$buffered_publishers.memory_usage IS 'percentage of shared buffers that hold the queue''s buffered messages';
COMMENT ON COLUMN sys.v$buffered_publishers.elapsed_enqueue_time IS 'always null: a sender is only a name in messages';
COMMENT ON COLUMN sys.v$buffered_publishers.enqueue_cpu_time IS 'always null: a sender is only a name in messages';
COMMENT ON COLUMN sys.v$buffered_publishers.last_enqueue_time IS 'when the latest was enqueued';
COMMENT ON COLUMN sys.v$buffered_publishers.publisher_state IS 'of the queue: PUBLISHING MESSAGES, or IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES while a consumer has pgaq.buffered_message_limit or more before it, so that an enqueue for it waits';
COMMENT ON COLUMN sys.v$buffered_publishers.con_id IS 'always null';
GRANT SELECT ON sys.v$buffered_publishers TO PUBLIC;

CREATE VIEW sys.v$aq_message_cache AS
SELECT
	q.queue_id, p.shard AS shard_id, p.priority, p.first_ordinal / 16384 AS subshard_id, p.table_no AS partition_id,
	16384 AS max_msgs, p.slots::bigint AS enqueued_msgs, p.browsed AS browsed_msgs, p.expired AS msgs_made_expired,
	p.made_ready AS msgs_made_ready, c.chunk_bytes AS chunk_size, p.chunks AS num_chunks,
	0::bigint AS num_free_chunks, p.chunks * c.chunk_bytes AS used_memory_size,
	CASE WHEN p.resident THEN 'CACHED' WHEN p.state = 'empty' THEN 'UNCACHED_FREE' ELSE 'UNCACHED' END AS state,
	NULL::integer AS con_id
FROM aq_internal.partitions() p JOIN aq.queues q ON q.queue_id = p.queue_id CROSS JOIN aq.message_cache c;
COMMENT ON VIEW sys.v$aq_message_cache IS 'Partitions of sharded queues and their memory in the message cache. Counters start when the partition is opened, or when the queue comes into use after a start';
COMMENT ON COLUMN sys.v$aq_message_cache.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_message_cache.shard_id IS 'number of the shard';
COMMENT ON COLUMN sys.v$aq_message_cache.priority IS 'priority of its messages';
COMMENT ON COLUMN sys.v$aq_message_cache.subshard_id IS 'which partition of the shard it is';
COMMENT ON COLUMN sys.v$aq_message_cache.partition_id IS 'number of its pair of tables';
COMMENT ON COLUMN sys.v$aq_message_cache.max_msgs IS 'messages it can hold';
COMMENT ON COLUMN sys.v$aq_message_cache.enqueued_msgs IS 'messages written into it';
COMMENT ON COLUMN sys.v$aq_message_cache.browsed_msgs IS 'messages read by dequeues in mode browse';
COMMENT ON COLUMN sys.v$aq_message_cache.msgs_made_expired IS 'messages that expired or failed too often, for each consumer';
COMMENT ON COLUMN sys.v$aq_message_cache.msgs_made_ready IS 'messages whose delay or retry delay has ended while the partition was in memory, for each consumer';
COMMENT ON COLUMN sys.v$aq_message_cache.chunk_size IS 'unit of allocation, bytes';
COMMENT ON COLUMN sys.v$aq_message_cache.num_chunks IS 'chunks of the message cache that it has; 0: it is not in memory';
COMMENT ON COLUMN sys.v$aq_message_cache.num_free_chunks IS 'always 0: a partition takes chunks from the common pool when it needs them and keeps none in reserve';
COMMENT ON COLUMN sys.v$aq_message_cache.used_memory_size IS 'the same in bytes';
COMMENT ON COLUMN sys.v$aq_message_cache.state IS 'CACHED, UNCACHED or UNCACHED_FREE (empty)';
COMMENT ON COLUMN sys.v$aq_message_cache.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_message_cache TO PUBLIC;

CREATE VIEW sys.v$aq_sharded_subscriber_stat AS
SELECT
	q.queue_id, c."position" AS subscriber_id, NULL::integer AS shard_id, NULL::integer AS priority,
	NULL::bigint AS dequeue_subshard, c.enqueued AS enqueued_msgs, c.dequeued AS dequeued_msgs,
	NULL::bigint AS elapsed_dequeue_time, NULL::bigint AS cpu_dequeue_time, round(r.dequeue_rate, 3) AS dequeue_rate,
	extract(epoch FROM clock_timestamp() - c.last_dequeue)::bigint AS time_since_last_dequeue,
	CASE WHEN r.lag = 0 THEN 0 WHEN r.dequeue_rate > r.enqueue_rate THEN ceil(r.lag / (r.dequeue_rate - r.enqueue_rate))::bigint END AS estd_time_to_drain,
	CASE WHEN r.lag = 0 THEN 0 ELSE ceil(r.lag / nullif(r.dequeue_rate, 0))::bigint END AS estd_time_to_drain_no_enq,
	NULL::integer AS con_id
FROM aq_internal.consumers() c JOIN aq.queues q ON q.queue_id = c.queue_id
	CROSS JOIN LATERAL aq_internal.queue_traffic(q.queue_name) t CROSS JOIN LATERAL aq_internal.queue_counters(q.queue_name) n
	CROSS JOIN LATERAL (SELECT greatest(extract(epoch FROM clock_timestamp() - t.since), 0.000001) AS seconds) s
	CROSS JOIN LATERAL (SELECT c.enqueued - c.dequeued AS lag, c.dequeued / s.seconds AS dequeue_rate, n.enqueued / s.seconds AS enqueue_rate) r
WHERE q.queue_table IS NULL OR q.converting;
COMMENT ON VIEW sys.v$aq_sharded_subscriber_stat IS 'Subscribers of sharded queues: one row for each, over all shards and priorities';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.shard_id IS 'always null: all shards';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.priority IS 'always null: all priorities';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeue_subshard IS 'always null: its position differs in each shard';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.enqueued_msgs IS 'messages for it, plus those present when the queue came into use';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeued_msgs IS 'messages that it has finished; the difference is its lag';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.elapsed_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.cpu_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.dequeue_rate IS 'messages per second that it has finished, since the queue came into use';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.time_since_last_dequeue IS 'seconds since the latest commit of a dequeue; null: none';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.estd_time_to_drain IS 'seconds until it has caught up, at the rates since the queue came into use; null: never';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.estd_time_to_drain_no_enq IS 'the same, if no more messages are enqueued';
COMMENT ON COLUMN sys.v$aq_sharded_subscriber_stat.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_sharded_subscriber_stat TO PUBLIC;

CREATE VIEW sys.v$aq_partition_stats AS
SELECT
	q.queue_id, count(*) AS partitions_qt, count(*) FILTER (WHERE p.state NOT IN ('empty', 'taken')) AS used_partitions_qt,
	count(*) FILTER (WHERE p.state IN ('empty', 'taken')) AS cached_partitions_qt, count(*) AS partitions_dq,
	sum(p.bytes)::bigint AS bytes, c.added_by_sessions AS add_partition_fg, c.added_by_worker AS add_partition_bg,
	c.truncated_messages AS trunc_partition_qt, c.truncated_logs AS trunc_partition_dq, NULL::integer AS con_id
FROM aq.partitions p JOIN aq.queues q ON q.queue_name = p.queue_name JOIN aq_internal.table_counters() c ON c.queue_id = q.queue_id
GROUP BY q.queue_id, c.added_by_sessions, c.added_by_worker, c.truncated_messages, c.truncated_logs;
COMMENT ON VIEW sys.v$aq_partition_stats IS 'Tables of each sharded queue. Counters start when the queue comes into use after the start of the server';
COMMENT ON COLUMN sys.v$aq_partition_stats.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$aq_partition_stats.partitions_qt IS 'pairs of tables';
COMMENT ON COLUMN sys.v$aq_partition_stats.used_partitions_qt IS 'of these: with messages';
COMMENT ON COLUMN sys.v$aq_partition_stats.cached_partitions_qt IS 'of these: empty, to be used next';
COMMENT ON COLUMN sys.v$aq_partition_stats.partitions_dq IS 'dequeue logs: one for each';
COMMENT ON COLUMN sys.v$aq_partition_stats.bytes IS 'size of all on disk';
COMMENT ON COLUMN sys.v$aq_partition_stats.add_partition_fg IS 'pairs of tables created by sessions, for a queue that their transaction has created';
COMMENT ON COLUMN sys.v$aq_partition_stats.add_partition_bg IS 'pairs of tables created by the worker';
COMMENT ON COLUMN sys.v$aq_partition_stats.trunc_partition_qt IS 'truncations of message tables, all by the worker';
COMMENT ON COLUMN sys.v$aq_partition_stats.trunc_partition_dq IS 'truncations of dequeue logs, all by the worker';
COMMENT ON COLUMN sys.v$aq_partition_stats.con_id IS 'always null';
GRANT SELECT ON sys.v$aq_partition_stats TO PUBLIC;

CREATE VIEW sys.v$eq_message_cache AS SELECT queue_id, shard_id AS event_stream_id, priority, subshard_id AS event_stream_partition_id, partition_id, max_msgs, enqueued_msgs, msgs_made_expired, chunk_size, num_chunks, num_free_chunks, used_memory_size, state, con_id
FROM sys.v$aq_message_cache;
COMMENT ON VIEW sys.v$eq_message_cache IS 'The same as v$aq_message_cache, with the names of 21c';
COMMENT ON COLUMN sys.v$eq_message_cache.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$eq_message_cache.event_stream_id IS 'number of the shard';
COMMENT ON COLUMN sys.v$eq_message_cache.priority IS 'priority of its messages';
COMMENT ON COLUMN sys.v$eq_message_cache.event_stream_partition_id IS 'which partition of the shard it is';
COMMENT ON COLUMN sys.v$eq_message_cache.partition_id IS 'number of its pair of tables';
COMMENT ON COLUMN sys.v$eq_message_cache.max_msgs IS 'messages it can hold';
COMMENT ON COLUMN sys.v$eq_message_cache.enqueued_msgs IS 'messages written into it';
COMMENT ON COLUMN sys.v$eq_message_cache.msgs_made_expired IS 'messages that expired or failed too often, for each consumer';
COMMENT ON COLUMN sys.v$eq_message_cache.chunk_size IS 'unit of allocation, bytes';
COMMENT ON COLUMN sys.v$eq_message_cache.num_chunks IS 'chunks of the message cache that it has; 0: it is not in memory';
COMMENT ON COLUMN sys.v$eq_message_cache.num_free_chunks IS 'always 0: a partition takes chunks from the common pool when it needs them and keeps none in reserve';
COMMENT ON COLUMN sys.v$eq_message_cache.used_memory_size IS 'the same in bytes';
COMMENT ON COLUMN sys.v$eq_message_cache.state IS 'CACHED, UNCACHED or UNCACHED_FREE (empty)';
COMMENT ON COLUMN sys.v$eq_message_cache.con_id IS 'always null';
GRANT SELECT ON sys.v$eq_message_cache TO PUBLIC;

CREATE VIEW sys.v$eq_subscriber_stat AS SELECT queue_id, subscriber_id, shard_id AS event_stream_id, priority, NULL::bigint AS msg_sn, dequeue_subshard AS dequeue_partition_id, enqueued_msgs, dequeued_msgs, elapsed_dequeue_time, cpu_dequeue_time, dequeue_rate, NULL::uuid AS dequeue_position, time_since_last_dequeue, estd_time_to_drain, estd_time_to_drain_no_enq, con_id
FROM sys.v$aq_sharded_subscriber_stat;
COMMENT ON VIEW sys.v$eq_subscriber_stat IS 'The same as v$aq_sharded_subscriber_stat, with the names of 21c';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.queue_id IS 'number of the queue';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.subscriber_id IS 'number of the subscriber in its queue';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.event_stream_id IS 'always null: all shards';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.priority IS 'always null: all priorities';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.msg_sn IS 'always null: its position differs in each shard';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.dequeue_partition_id IS 'always null: its position differs in each shard';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.enqueued_msgs IS 'messages for it, plus those present when the queue came into use';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.dequeued_msgs IS 'messages that it has finished; the difference is its lag';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.elapsed_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.cpu_dequeue_time IS 'always null: not counted';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.dequeue_rate IS 'messages per second that it has finished, since the queue came into use';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.dequeue_position IS 'always null: its position differs in each shard';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.time_since_last_dequeue IS 'seconds since the latest commit of a dequeue; null: none';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.estd_time_to_drain IS 'seconds until it has caught up, at the rates since the queue came into use; null: never';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.estd_time_to_drain_no_enq IS 'the same, if no more messages are enqueued';
COMMENT ON COLUMN sys.v$eq_subscriber_stat.con_id IS 'always null';
GRANT SELECT ON sys.v$eq_subscriber_stat TO PUBLIC;
