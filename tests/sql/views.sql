-- The views of schema aq: what they say about queues in a known state.
\pset null null
\pset format unaligned
SELECT aq.create_queue('v_dead', retry_delay => '0');
SELECT aq.create_queue('v', max_retries => 5, exception_queue => 'v_dead', comment => 'a queue', shards => 1, retention => '1 hour', retry_delay => '0');
SELECT aq.create_queue('v_topic', multiple_consumers => true, shards => 2, retry_delay => '0');
SELECT aq.subscribe('v_topic', 'ann'), aq.subscribe('v_topic', 'bob', 'priority < 3', 'urgent ones');
SELECT queue_name, payload_type, multiple_consumers, shards, max_retries, retry_delay, retention, exception_queue,
	enqueue_enabled, dequeue_enabled, may_enqueue, may_dequeue, comment
FROM aq.queues WHERE queue_name LIKE 'v%' ORDER BY 1;
-- every state of a message
SELECT t.put('v', 1, 3);
SELECT aq.enqueue('v', '4', delay => '1 day') IS NOT NULL;
SELECT payload FROM aq.dequeue('v');
BEGIN; SELECT payload FROM aq.dequeue('v'); SELECT payload, state FROM aq.messages WHERE queue_name = 'v' ORDER BY payload; ROLLBACK;
SELECT payload FROM aq.dequeue('v', max_messages => 1);
SELECT payload, state, attempts, dequeue_time IS NOT NULL AS dequeued, ready_at IS NOT NULL AS delayed FROM aq.messages WHERE queue_name = 'v' ORDER BY payload;
SELECT aq.purge_queue('v');
SELECT payload, state FROM aq.messages WHERE queue_name = 'v' ORDER BY payload;
-- a row per message and consumer
SELECT aq.enqueue('v_topic', '"calm"', priority => 5, correlation => 'c', sender => 's', properties => '{"k": 1}') IS NOT NULL,
	aq.enqueue('v_topic', '"urgent"', priority => 1) IS NOT NULL, aq.enqueue('v_topic', '"to carl"', recipients => '{carl}') IS NOT NULL;
SELECT payload FROM aq.dequeue('v_topic', 'bob');
SELECT consumer, payload, state, priority, correlation, sender, properties FROM aq.messages WHERE queue_name = 'v_topic' ORDER BY 1, 2;
-- lag is what a consumer is not done with
SELECT consumer, kind, rule, enqueued, dequeued, lag, ready, waiting, comment FROM aq.subscribers WHERE queue_name = 'v_topic' ORDER BY 1;
SELECT consumer, kind, enqueued, dequeued, lag FROM aq.subscribers WHERE queue_name = 'v';
SELECT aq.unsubscribe('v_topic', 'ann');
SELECT consumer, lag FROM aq.subscribers WHERE queue_name = 'v_topic' ORDER BY 1;
SELECT consumer, payload FROM aq.messages WHERE queue_name = 'v_topic' ORDER BY 1, 2;
-- streams: a shard's messages of a priority, delayed ones apart
BEGIN; SELECT t.put('v', 5); SELECT shard, priority, delayed, enqueued, pending, in_flight, partitions, resident FROM aq.shards WHERE queue_name = 'v' ORDER BY 1, 2, 3; ROLLBACK;
SELECT state, shard, priority, delayed, slots, outstanding, pending, in_flight, resident, messages::text LIKE 'aq_data.q%' AS named, bytes > 0 AS sized
FROM aq.partitions WHERE queue_name = 'v' ORDER BY delayed, state;
SELECT total_bytes = used_bytes + free_bytes AS adds_up, used_bytes > 0 AS used, chunk_bytes, resident_partitions <= known_partitions AS resident, known_partitions <= max_partitions AS known
FROM aq.message_cache;
SELECT size, size_mb >= 4 AS fits, size_factor > 0 AS relative, resident_partitions + other_partitions >= 0 AS counted, partition_bytes > 0 AS assumed FROM aq.message_cache_advice;
SELECT size_mb = (SELECT ceil(total_bytes / 1048576.0) FROM aq.message_cache) AS right_size, size_factor FROM aq.message_cache_advice WHERE size = 'current';
-- a message is not locked through its view
SELECT t.error(statement) FROM unnest(ARRAY['SELECT * FROM aq.messages FOR UPDATE', 'SELECT * FROM aq.messages LIMIT 1 FOR UPDATE SKIP LOCKED',
	'SELECT 1 FROM (SELECT * FROM aq.messages FOR SHARE) m', 'SELECT 1 FROM (SELECT * FROM aq.messages) m FOR UPDATE',
	'WITH m AS (SELECT * FROM aq.messages FOR UPDATE) SELECT 1 FROM m', 'SELECT 1 WHERE EXISTS (SELECT FROM aq.messages FOR UPDATE)',
	'DECLARE c CURSOR FOR SELECT * FROM aq.messages FOR UPDATE', 'EXPLAIN SELECT * FROM aq.messages FOR UPDATE',
	'CREATE TABLE t.locked AS SELECT * FROM aq.messages FOR UPDATE', 'EXPLAIN CREATE TABLE t.locked AS SELECT * FROM aq.messages FOR UPDATE',
	'EXPLAIN DECLARE c CURSOR FOR SELECT * FROM aq.messages FOR UPDATE', 'PREPARE locked AS SELECT * FROM aq.messages FOR UPDATE']) statement;
COPY (SELECT * FROM aq.messages FOR UPDATE) TO STDOUT;
CREATE TABLE t.own AS SELECT 1 AS n;
CREATE VIEW t.own_view AS SELECT n FROM t.own;
SELECT DISTINCT n FROM (SELECT o.n FROM t.own o, t.own_view v, aq.queues FOR UPDATE OF o, v) locked;
-- nor is anything changed through a view
SELECT t.error(statement) FROM unnest(ARRAY['UPDATE aq.queues SET max_retries = 3', 'DELETE FROM aq.queues WHERE false',
	'INSERT INTO aq.messages (queue_name) VALUES (''v'')', 'INSERT INTO aq.queues (queue_name) VALUES (''v'') ON CONFLICT DO NOTHING',
	'WITH u AS (UPDATE aq.queues SET max_retries = 3 RETURNING 1) SELECT 1 FROM u',
	'WITH u AS (DELETE FROM aq.queues RETURNING 1) INSERT INTO t.own SELECT 1 FROM u',
	'EXPLAIN DELETE FROM aq.queues', 'PREPARE deleted AS DELETE FROM aq.queues', 'UPDATE aq.latches SET misses = 0']) statement;
COPY (DELETE FROM aq.queues RETURNING 1) TO STDOUT;
SELECT left(t.error('MERGE INTO aq.queues USING t.own ON false WHEN NOT MATCHED THEN INSERT (queue_name) VALUES (''x'')'), 5) IN ('42809', '0A000') AS refused;
SELECT split_part(t.error(statement), ' | ', 2) FROM unnest(ARRAY['COPY aq.queues FROM ''/dev/null''', 'TRUNCATE aq.queues']) statement;
CREATE FUNCTION t.deletes_queues() RETURNS void LANGUAGE sql AS 'DELETE FROM aq.queues';
SELECT t.error('SELECT t.deletes_queues()');
-- a view on a single view stands for it
CREATE VIEW t.my_queues AS SELECT queue_name, max_retries FROM aq.queues;
CREATE VIEW t.few_queues AS SELECT * FROM t.my_queues WHERE queue_name >= 'v';
SELECT t.error(statement) FROM unnest(ARRAY['UPDATE t.my_queues SET max_retries = 3', 'DELETE FROM t.few_queues', 'SELECT * FROM t.few_queues FOR UPDATE',
	'INSERT INTO t.few_queues (queue_name) VALUES (''v'')']) statement;
-- a view of one's own can be changed, also if it reads one of pgaq's, and a trigger or rule can replace the change
UPDATE t.own_view SET n = 2;
CREATE VIEW t.own_of_queues AS SELECT n FROM t.own WHERE n IN (SELECT 2 FROM aq.queues);
UPDATE t.own_of_queues SET n = 3 RETURNING n;
CREATE FUNCTION t.replaced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% of %', lower(tg_op), tg_table_name; RETURN NULL; END $$;
CREATE TRIGGER replaced INSTEAD OF INSERT OR UPDATE ON t.my_queues FOR EACH ROW EXECUTE FUNCTION t.replaced();
UPDATE t.few_queues SET max_retries = 3;
INSERT INTO t.my_queues VALUES ('v', 1);
SELECT t.error('DELETE FROM t.my_queues');
CREATE RULE replaced AS ON DELETE TO t.few_queues DO INSTEAD NOTHING;
DELETE FROM t.few_queues;
DROP RULE replaced ON t.few_queues;
CREATE RULE replaced AS ON DELETE TO t.few_queues WHERE old.max_retries = 3 DO INSTEAD NOTHING;
SELECT t.error('DELETE FROM t.few_queues');
-- definitions are not refused, so that they can be restored
CREATE VIEW t.locking AS SELECT queue_name FROM aq.messages FOR UPDATE;
CREATE MATERIALIZED VIEW t.locking_now AS SELECT queue_name FROM aq.messages FOR UPDATE WITH NO DATA;
DO 'BEGIN CREATE MATERIALIZED VIEW t.locking_in_code AS SELECT queue_name FROM aq.messages FOR UPDATE WITH NO DATA; END';
DO $$ BEGIN EXECUTE 'EXPLAIN CREATE MATERIALIZED VIEW t.explained AS SELECT queue_name FROM aq.messages FOR UPDATE WITH NO DATA'; END $$;
CREATE RULE locking AS ON INSERT TO t.own DO ALSO SELECT 1 FROM aq.messages FOR UPDATE;
CREATE FUNCTION t.locking() RETURNS SETOF text LANGUAGE sql BEGIN ATOMIC SELECT queue_name FROM aq.messages FOR UPDATE; END;
-- two views that read each other
CREATE VIEW t.round AS SELECT 1 AS n FROM t.own;
CREATE VIEW t.round_again AS SELECT n FROM t.round;
CREATE OR REPLACE VIEW t.round AS SELECT n FROM t.round_again;
SELECT t.error('DELETE FROM t.round');
DROP VIEW t.round CASCADE;
DROP MATERIALIZED VIEW t.locking_now, t.locking_in_code;
DROP VIEW t.locking, t.few_queues, t.my_queues;
DROP FUNCTION t.locking, t.replaced, t.deletes_queues;
DROP TABLE t.own CASCADE;
SELECT aq.drop_queue('v', force => true), aq.drop_queue('v_dead'), aq.drop_queue('v_topic', force => true);
SELECT count(*) FROM aq.partitions WHERE queue_name LIKE 'v%';
-- who does not select what has to be counted does not wait for it
CREATE FUNCTION t.counts_rows(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found boolean := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS off) ' || query LOOP
		found := found OR line LIKE '%_classic_ready%';
	END LOOP;
	RETURN found;
END $$;
SELECT t.counts_rows('SELECT queue_name, lag, waiting FROM aq.subscribers'), t.counts_rows('SELECT ready FROM aq.subscribers');
DROP FUNCTION t.counts_rows;
