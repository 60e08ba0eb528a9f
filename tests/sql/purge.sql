-- aq.purge_queue: all, of one consumer, by condition; in the caller's transaction.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('g');
SELECT aq.purge_queue('g');
SELECT t.put('g', 1, 10);
SELECT aq.purge_queue('g', condition => 'payload::int % 2 = 0');
SELECT t.look('g');
BEGIN; SELECT aq.purge_queue('g'); SELECT t.look('g') IS NULL; ROLLBACK;
SELECT t.look('g');
SELECT aq.purge_queue('g');
SELECT t.look('g') IS NULL;
-- delayed ones too
SELECT aq.enqueue('g', '1', delay => '1 day') IS NOT NULL;
SELECT aq.purge_queue('g');
-- own uncommitted ones
BEGIN; SELECT t.put('g', 1, 2); SELECT aq.purge_queue('g'); COMMIT;
SELECT t.look('g') IS NULL;
-- many
SELECT cardinality(aq.enqueue_array('g', (SELECT array_agg(n::text) FROM generate_series(1, 20000) n)));
SELECT aq.purge_queue('g');
SELECT t.look('g') IS NULL;
-- a purge that is rolled back is no failed delivery
SELECT t.put('g', 1);
BEGIN; SELECT aq.purge_queue('g'); ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('g');
-- per consumer
SELECT aq.create_queue('g_topic', multiple_consumers => true);
SELECT aq.subscribe('g_topic', 'a'), aq.subscribe('g_topic', 'b');
SELECT t.put('g_topic', 1, 3);
SELECT aq.purge_queue('g_topic', 'a');
SELECT t.look('g_topic', 'a') IS NULL, t.look('g_topic', 'b');
SELECT t.put('g_topic', 4);
SELECT aq.purge_queue('g_topic');
SELECT t.look('g_topic', 'a') IS NULL, t.look('g_topic', 'b') IS NULL;
SELECT aq.purge_queue('g_topic', consumer => 'nobody');
-- refused
SELECT t.error($$SELECT aq.purge_queue('no such queue')$$);
SELECT t.error($$SELECT aq.purge_queue('g', 'a')$$);
SELECT t.error($$SELECT aq.purge_queue('g', condition => 'nonsense =')$$);
-- stopped queues can be purged
SELECT t.put('g', 1);
SELECT aq.stop_queue('g');
SELECT aq.purge_queue('g');
SELECT aq.drop_queue('g'), aq.drop_queue('g_topic');
