-- Counters of sharded queues in Oracle's views: partitions in the message cache, tables made, expected of other sizes of it.
\pset format unaligned
SET search_path = sys, public;
SELECT aq.create_queue('lost'), aq.create_queue('counted', shards => 1, max_retries => 0, exception_queue => 'lost', retry_delay => '0');
PREPARE cache AS SELECT priority, enqueued_msgs, browsed_msgs, msgs_made_expired, msgs_made_ready, num_chunks, num_free_chunks,
	used_memory_size = num_chunks * chunk_size AS used, state
	FROM v$aq_message_cache JOIN aq.queues USING (queue_id) WHERE queue_name = 'counted' AND shard_id IS NOT NULL ORDER BY priority, enqueued_msgs;

-- 65 messages: the frame, a bitmap, two segments of 64
SELECT t.put('counted', 1, 65);
EXECUTE cache;
-- one more for the bitmap of what is rolled back
SELECT payload FROM aq.dequeue('counted');
EXECUTE cache;
-- browsing counts what is seen, whatever becomes of the transaction
BEGIN;
SELECT count(*) FROM aq.browse('counted', max_messages => 10);
SELECT payload FROM aq.dequeue('counted', mode => 'browse');
ROLLBACK;
SELECT count(*) FROM aq.browse('counted', max_messages => 10, condition => 'payload = to_jsonb(10)');
EXECUTE cache;
-- rolled back once too often; counts have a chunk for 2048 messages; with max_retries 0 each consumer has a directory and a bitmap before
BEGIN;
SELECT payload FROM aq.dequeue('counted');
ROLLBACK;
SELECT payload FROM aq.dequeue('counted');
EXECUTE cache;
-- the end of a delay, and of a life; other priorities are other partitions
SELECT count(aq.enqueue('counted', '"late"', delay => '1 millisecond', priority => 8));
SELECT payload FROM aq.dequeue('counted', wait => '30 s', condition => 'priority = 8');
SELECT count(aq.enqueue('counted', '"short"', expiration => '1 millisecond', priority => 9));
SELECT payload FROM aq.dequeue('lost', wait => '30 s');
SELECT payload FROM aq.dequeue('lost', wait => '30 s');
SELECT priority, enqueued_msgs, msgs_made_expired, msgs_made_ready FROM v$aq_message_cache JOIN aq.queues USING (queue_id)
	WHERE queue_name = 'counted' AND shard_id IS NOT NULL ORDER BY priority;
-- what partitions have is a part of what is used
SELECT sum(used_memory_size) BETWEEN 4 * 2048 AND (SELECT used_bytes FROM aq.message_cache) FROM v$aq_message_cache;

-- tables that the worker made; none was truncated
SELECT add_partition_fg, add_partition_bg >= 3, trunc_partition_qt, trunc_partition_dq FROM v$aq_partition_stats JOIN aq.queues USING (queue_id)
	WHERE queue_name = 'counted';
-- those that the transaction made which created the queue, but for what it took back
BEGIN;
SELECT aq.create_queue('own', shards => 1);
SELECT t.put('own', 1);
SAVEPOINT s;
SELECT count(aq.enqueue('own', '2', priority => 2));
SELECT add_partition_fg FROM v$aq_partition_stats JOIN aq.queues USING (queue_id) WHERE queue_name = 'own';
ROLLBACK TO s;
COMMIT;
SELECT add_partition_fg, add_partition_bg FROM v$aq_partition_stats JOIN aq.queues USING (queue_id) WHERE queue_name = 'own';

-- sizes of partitions are numbers of messages
SELECT min_subsh_size >= 1, mean_subsh_size BETWEEN min_subsh_size AND max_subsh_size, max_subsh_size BETWEEN 65 AND 16384 FROM v$aq_message_cache_stat;
-- nothing was evicted, so the most that was ever used is enough, whatever size the cache has
SELECT estd_size_type, size_factor = 1 AS current, estd_cached_subshards > 0 AS cached, estd_uncached_subshards AS uncached,
	estd_evictions, estd_eviction_rate, estd_fg_unevictions, estd_fg_uneviction_rate, estd_bg_unevictions, estd_bg_uneviction_rate,
	avg_subshard_size BETWEEN 1 AND 16384 AS messages, avg_subshard_memory BETWEEN 4 * 2048 AND 600000 AS memory
	FROM v$aq_message_cache_advice WHERE estd_size_type = 'CURRENT';
-- of a size below that nothing is known
SELECT size_for_estimate, (estd_evictions IS NOT NULL) = (size_for_estimate >= (SELECT size_for_estimate FROM v$aq_message_cache_advice WHERE estd_size_type = 'MAXIMUM')) AS known
	FROM v$aq_message_cache_advice WHERE estd_size_type = 'MINIMUM';
SELECT estd_size_type, size_for_estimate BETWEEN 4 AND (SELECT total_bytes / 1048576 FROM aq.message_cache) AS enough, estd_evictions
	FROM v$aq_message_cache_advice WHERE estd_size_type IN ('PREFERRED', 'MAXIMUM');
SELECT aq.drop_queue('own', force => true), aq.drop_queue('counted', force => true), aq.drop_queue('lost', force => true);
