-- Bodies of large messages: written by the transaction that enqueues the message, kept with it.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('jb', 'aq.jms_message', max_retries => 0, retry_delay => '0'), aq.create_queue('jb_topic', 'aq.jms_message', multiple_consumers => true);
SELECT aq.subscribe('jb_topic', 'a'), aq.subscribe('jb_topic', 'b');
-- sends a message with a body of three chunks
CREATE FUNCTION t.send(queue text, body text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
	id uuid = aq.enqueue(queue, ROW('bytes', '{"content_length": 21}', NULL, NULL, NULL, NULL)::aq.jms_message);
BEGIN
	FOR i IN 0..2 LOOP
		PERFORM aq_jms.write_chunk(queue, id, i, convert_to(body || i || ' ', 'UTF8'));
	END LOOP;
	RETURN id;
END $$;
CREATE FUNCTION t.body(queue text, id uuid, consumer text DEFAULT NULL) RETURNS text LANGUAGE sql AS
$$SELECT string_agg(convert_from(aq_jms.read_chunk(queue, consumer, id, n), 'UTF8'), '' ORDER BY n) FROM generate_series(0, 3) n$$;
-- committed, rolled back, rolled back to a savepoint
SELECT t.send('jb', 'one') AS one \gset
SELECT t.body('jb', :'one');
BEGIN;
SELECT t.send('jb', 'lost') AS lost \gset
SELECT t.body('jb', :'lost');
ROLLBACK;
SELECT t.body('jb', :'lost');
BEGIN;
SAVEPOINT s;
SELECT t.send('jb', 'lost') AS lost \gset
ROLLBACK TO s;
SELECT t.body('jb', :'lost');
SELECT t.send('jb', 'two') AS two \gset
SAVEPOINT s;
SELECT aq_jms.write_chunk('jb', :'two', 3, 'undone');
SELECT t.body('jb', :'two');
ROLLBACK TO s;
SELECT regexp_replace(t.error(format('SELECT aq_jms.write_chunk(''jb'', %L, 3, ''x'')', :'lost')), '[0-9a-f-]{36}', 'ID');
COMMIT;
SELECT t.body('jb', :'two');
-- each number once, in any order; a number that was rolled back can be written again
BEGIN;
SELECT aq.enqueue('jb', ROW('bytes', '{"content_length": 4}', NULL, NULL, NULL, NULL)::aq.jms_message) AS once, aq.enqueue('jb', aq_jms.text('other')) AS other \gset
SELECT aq_jms.write_chunk('jb', :'once', n, convert_to(n::text, 'UTF8')) FROM unnest(ARRAY[2, 0, 3]) n;
SELECT aq_jms.write_chunk('jb', :'other', 0, 'other');
SELECT n, regexp_replace(t.error(format('SELECT aq_jms.write_chunk(''jb'', %L, %s, ''again'')', :'once', n)), '[0-9a-f-]{36}', 'ID') FROM generate_series(0, 3) n WHERE n <> 1;
SAVEPOINT s;
SELECT aq_jms.write_chunk('jb', :'once', 1, 'undone');
SELECT t.body('jb', :'once');
ROLLBACK TO s;
SELECT t.body('jb', :'once');
SELECT aq_jms.write_chunk('jb', :'once', 1, '1');
SELECT regexp_replace(t.error(format('SELECT aq_jms.write_chunk(''jb'', %L, 1, ''again'')', :'once')), '[0-9a-f-]{36}', 'ID');
SELECT t.body('jb', :'once'), t.body('jb', :'other');
SELECT aq_jms.write_chunk('jb', :'other', 1, ' and more');
SELECT t.body('jb', :'other');
COMMIT;
SELECT t.body('jb', :'once'), t.body('jb', :'other');
SELECT aq.purge_queue('jb') > 0;
SELECT t.send('jb', 'one') AS one, t.send('jb', 'two') AS two \gset
-- readable while the message is leased, and for the transaction that has dequeued it
SELECT msgid = :'one' AS right_one, receipt AS receipt FROM aq.dequeue('jb', NULL::aq.jms_message, lease => '1 min') \gset
SELECT :'right_one', t.body('jb', :'one');
SELECT result FROM aq.acknowledge('jb', ARRAY[:'one'::uuid], :receipt);
BEGIN;
SELECT msgid = :'two' FROM aq.dequeue('jb', NULL::aq.jms_message);
SELECT t.body('jb', :'two');
COMMIT;
-- enqueued and dequeued by one transaction
BEGIN;
SELECT t.send('jb', 'own') AS own \gset
SELECT msgid = :'own' FROM aq.dequeue('jb', NULL::aq.jms_message);
SELECT t.body('jb', :'own');
COMMIT;
-- failed, put back, failed again
SELECT t.send('jb', 'bad') AS bad \gset
CREATE PROCEDURE t.fail() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.dequeue('jb', NULL::aq.jms_message);
	ROLLBACK;
	FOR i IN 1..1000 LOOP
		EXIT WHEN EXISTS (SELECT FROM aq.messages m JOIN aq.queues q USING (queue_name) WHERE q.queue_type = 'exception' AND m.state <> 'PROCESSED' AND m.payload LIKE '%content_length%');
		COMMIT;
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;
CALL t.fail();
SELECT t.body(queue_name, msgid) FROM aq.messages WHERE state <> 'PROCESSED' AND queue_name = (SELECT coalesce(exception_queue, 'jb_exceptions') FROM aq.queues WHERE queue_name = 'jb');
SELECT aq.redrive('jb');
SELECT msgid AS bad FROM aq.messages WHERE queue_name = 'jb' AND state = 'READY' \gset
SELECT t.body('jb', :'bad');
CALL t.fail();
SELECT t.body(queue_name, msgid) FROM aq.messages WHERE state <> 'PROCESSED' AND queue_name = (SELECT coalesce(exception_queue, 'jb_exceptions') FROM aq.queues WHERE queue_name = 'jb');
-- each consumer of a topic
SELECT t.send('jb_topic', 'all') AS all \gset
SELECT count(*) FROM aq.dequeue('jb_topic', NULL::aq.jms_message, 'a');
SELECT t.body('jb_topic', :'all', 'b'), t.body('jb_topic', :'all', 'c');
BEGIN;
SELECT count(*) FROM aq.dequeue('jb_topic', NULL::aq.jms_message, 'b');
SELECT t.body('jb_topic', :'all', 'b');
COMMIT;
-- a message that is for one of them
BEGIN;
SELECT aq.enqueue('jb_topic', ROW('bytes', '{"content_length": 3}', NULL, NULL, NULL, NULL)::aq.jms_message, recipients => '{a}') AS some \gset
SELECT aq_jms.write_chunk('jb_topic', :'some', 0, 'abc');
COMMIT;
SELECT t.body('jb_topic', :'some', 'a'), t.body('jb_topic', :'some', 'b');
-- messages behind chunks are found, and chunks are not counted as messages
SELECT aq.enqueue('jb_topic', aq_jms.text('after')) IS NOT NULL;
SELECT consumer, payload FROM aq.messages WHERE queue_name = 'jb_topic' AND state = 'READY' ORDER BY 1, 2;
SELECT * FROM aq.check();
-- errors
SELECT regexp_replace(t.error(format('SELECT aq_jms.write_chunk(''jb'', %L, 3, ''x'')', :'bad')), '[0-9a-f-]{36}', 'ID');
SELECT aq_jms.write_chunk('jb', '00000000-0000-4000-8000-000000000006', 0, 'x');
SELECT aq_jms.write_chunk('jb', :'bad', -1, 'x');
SELECT aq_jms.write_chunk('jb', NULL, 0, 'x');
SELECT aq_jms.write_chunk('jb', :'bad', 0, NULL);
SELECT aq_jms.write_chunk('absent', :'bad', 0, 'x');
SELECT aq_jms.read_chunk('jb', NULL, NULL, 0);
SELECT aq_jms.read_chunk('jb', NULL, :'bad', -1);
SELECT aq_jms.read_chunk('jb', NULL, '00000000-0000-4000-8000-000000000006', 0) IS NULL;
SELECT aq_jms.read_chunk('jb_topic', NULL, :'some', 0) IS NULL;
SELECT aq.create_queue('jb_text', 'text');
SELECT aq_jms.write_chunk('jb_text', :'bad', 0, 'x');
SELECT aq_jms.read_chunk('jb_text', NULL, :'bad', 0) IS NULL;
-- privileges: to enqueue, to dequeue, of one consumer
CREATE ROLE regress_aq_body;
GRANT USAGE ON SCHEMA t TO regress_aq_body;
SET ROLE regress_aq_body;
SELECT aq_jms.read_chunk('jb_topic', 'a', :'some', 0);
RESET ROLE;
SELECT aq.grant_queue('jb_topic', 'regress_aq_body', 'enqueue');
SET ROLE regress_aq_body;
SELECT t.send('jb_topic', 'sent') AS sent \gset
SELECT aq_jms.read_chunk('jb_topic', 'a', :'sent', 0);
RESET ROLE;
SELECT aq.grant_consumer('jb_topic', 'a', 'regress_aq_body');
SET ROLE regress_aq_body;
SELECT t.body('jb_topic', :'sent', 'a');
SELECT aq_jms.read_chunk('jb_topic', 'b', :'sent', 0);
RESET ROLE;
-- a chunk whose message does not exist, which only damage leaves
DO $$
DECLARE
	name text = (SELECT format('aq_data.q%s_%s', queue_id, table_no) FROM aq_internal.message_table JOIN aq_internal.queue USING (queue_id)
		WHERE queue_name = 'jb_topic' ORDER BY pg_relation_size(format('aq_data.q%s_%s', queue_id, table_no)) DESC LIMIT 1);
BEGIN
	IF name IS NULL THEN
		EXECUTE format('INSERT INTO aq_data.k%s VALUES (gen_random_uuid(), 0, ''x'')', (SELECT queue_table_id FROM aq_internal.queue WHERE queue_name = 'jb_topic'));
	ELSE
		EXECUTE format('INSERT INTO %1$s (ordinal, session_id, enqueue_time, stream, targets) SELECT ordinal - 1000, 0, now(), stream, ''x'' FROM %1$s WHERE ordinal < 0 LIMIT 1', name);
	END IF;
END $$;
-- a queue that changes while it is read is not compared
DO $$ BEGIN
	FOR i IN 1..200 LOOP
		IF EXISTS (SELECT FROM aq.check('0.1 s') WHERE what = 'bodies without their message') THEN
			RAISE NOTICE 'found';
			RETURN;
		END IF;
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;
-- purged, dropped
SELECT aq.purge_queue('jb_topic');
SELECT t.send('jb', 'dropped') IS NOT NULL;
SELECT aq.drop_queue('jb', force => true);
SELECT aq.drop_queue('jb_topic', force => true);
SELECT aq.drop_queue('jb_text', force => true);
DROP PROCEDURE t.fail;
DROP FUNCTION t.send, t.body;
DROP OWNED BY regress_aq_body;
DROP ROLE regress_aq_body;
