-- Bodies of large messages: written by the transaction that enqueues the message, deleted after it is gone.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('jc', 'aq.jms_message', max_retries => 0, retry_delay => '0'), aq.create_queue('jc_topic', 'aq.jms_message', multiple_consumers => true);
SELECT aq.subscribe('jc_topic', 'a'), aq.subscribe('jc_topic', 'b');
-- sends a message with a body of three chunks
CREATE PROCEDURE t.send(queue text, content uuid) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0..2 LOOP
		PERFORM aq.jms_write_chunk(queue, content, i, convert_to('chunk ' || i, 'UTF8'));
	END LOOP;
	PERFORM aq.enqueue(queue, ROW('bytes', jsonb_build_object('content', content, 'content_length', 21), NULL, NULL, NULL, NULL)::aq.jms_message);
END $$;
-- the worker's job, as often as it needs to find and to forget; its patience is over at once
CREATE FUNCTION t.sweep() RETURNS TABLE (content text, queue text, missed boolean, chunks bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq_internal.jms_sweep('0');
	PERFORM aq_internal.jms_sweep('0');
	RETURN QUERY SELECT right(c.content::text, 1), (SELECT q.queue_name FROM aq_internal.queue q WHERE q.queue_id = c.queue_id), c.missed IS NOT NULL,
		(SELECT count(*) FROM aq_internal.jms_chunk k WHERE k.content = c.content) FROM aq_internal.jms_content c ORDER BY 1;
END $$;
BEGIN;
CALL t.send('jc', '00000000-0000-4000-8000-000000000001');
ROLLBACK;
SELECT count(*) FROM aq_internal.jms_chunk;
CALL t.send('jc', '00000000-0000-4000-8000-000000000001');
CALL t.send('jc', '00000000-0000-4000-8000-000000000002');
CALL t.send('jc_topic', '00000000-0000-4000-8000-000000000003');
SELECT convert_from(aq.jms_read_chunk('00000000-0000-4000-8000-000000000001', n), 'UTF8') FROM generate_series(0, 3) n;
SELECT * FROM t.sweep();
-- consumed; by one of two subscribers
SELECT (payload).headers ->> 'content' FROM aq.dequeue('jc', NULL::aq.jms_message);
SELECT count(*) FROM aq.dequeue('jc_topic', NULL::aq.jms_message, 'a');
SELECT * FROM t.sweep();
-- failed: the exception queue has it
BEGIN;
SELECT count(*) FROM aq.dequeue('jc', NULL::aq.jms_message);
ROLLBACK;
CALL aq.wait('jc_exceptions', '10 s', NULL);
SELECT * FROM t.sweep();
-- and back
SELECT aq.redrive('jc');
SELECT * FROM t.sweep();
SELECT count(*) FROM aq.dequeue('jc_topic', NULL::aq.jms_message, 'b');
SELECT aq.purge_queue('jc');
SELECT * FROM t.sweep();
-- text that looks like the header of a large message
SELECT aq.enqueue('jc', aq.jms_text('{"content": "------------------------------------"}')) IS NOT NULL;
CALL t.send('jc', '00000000-0000-4000-8000-000000000007');
SELECT * FROM t.sweep();
SELECT aq.purge_queue('jc');
SELECT * FROM t.sweep();
-- a queue whose messages cannot be read keeps its bodies; the others do not
CREATE TYPE t.color AS ENUM ('red');
CREATE TYPE t.colored AS (headers jsonb, color t.color);
SELECT aq.create_queue('jc_red', 't.colored');
BEGIN;
SELECT aq.jms_write_chunk('jc_red', '00000000-0000-4000-8000-000000000009', 0, '\x00'), aq.jms_write_chunk('jc_red', '00000000-0000-4000-8000-00000000000a', 0, '\x00');
SELECT aq.enqueue('jc_red', ROW('{"content": "00000000-0000-4000-8000-000000000009"}', 'red')::t.colored) IS NOT NULL;
COMMIT;
SELECT aq_internal.jms_sweep('1 hour') IS NOT NULL;
CREATE TEMP TABLE label AS SELECT * FROM pg_enum WHERE enumtypid = 't.color'::regtype;
DELETE FROM pg_enum WHERE enumtypid = 't.color'::regtype;
CALL t.send('jc', '00000000-0000-4000-8000-00000000000b');
SELECT aq.purge_queue('jc');
SELECT * FROM t.sweep();
INSERT INTO pg_enum SELECT * FROM label;
SELECT * FROM t.sweep();
SELECT aq.drop_queue('jc_red', true);
SELECT * FROM t.sweep();
DROP TABLE label;
DROP TYPE t.colored, t.color;
-- a dead letter of a queue table, which is ready although its state is EXPIRED
SELECT aq.create_queue_table('jc_table', 'aq.jms_message'), aq.create_queue('jc_old', 'aq.jms_message', queue_table => 'jc_table', max_retries => 0);
CALL t.send('jc_old', '00000000-0000-4000-8000-000000000008');
BEGIN;
SELECT count(*) FROM aq.dequeue('jc_old', NULL::aq.jms_message);
ROLLBACK;
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN EXISTS (SELECT FROM aq.messages WHERE queue_name = 'public.aq$_jc_table_e'); PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT state FROM aq.messages WHERE queue_name = 'public.aq$_jc_table_e';
SELECT * FROM t.sweep();
SELECT aq.start_queue('public.aq$_jc_table_e', enqueue => false);
SELECT count(*) FROM aq.dequeue('public.aq$_jc_table_e', NULL::aq.jms_message);
SELECT * FROM t.sweep();
SELECT aq.drop_queue_table('jc_table', true);
-- a queue that was dropped
CALL t.send('jc', '00000000-0000-4000-8000-000000000004');
SELECT * FROM t.sweep();
SELECT aq.drop_queue('jc', force => true);
SELECT * FROM t.sweep();
-- there is a next time only while there are bodies
SELECT aq_internal.jms_sweep('0');
-- errors and privileges
CALL t.send('jc_topic', '00000000-0000-4000-8000-000000000005');
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000005', 0, '\x00');
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000006', -1, '\x00');
SELECT aq.jms_write_chunk('jc_topic', NULL, 0, '\x00');
SELECT aq.jms_write_chunk('absent', '00000000-0000-4000-8000-000000000006', 0, '\x00');
-- chunks of a body that this transaction has not begun, or not for this queue
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000006', 1, '\x00');
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000005', 3, '\x00');
SELECT aq.create_temporary_queue() AS temporary \gset
BEGIN;
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000006', 0, '\x00');
SAVEPOINT s;
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000006', 1, '\x00');
SELECT regexp_replace(t.error(format($q$SELECT aq.jms_write_chunk(%L, '00000000-0000-4000-8000-000000000006', 2, '\x00')$q$, :'temporary')), 'temporary_\d+_\d+', 'temporary_N', 'g');
ROLLBACK;
SELECT aq.drop_queue(:'temporary');
CREATE ROLE regress_aq_content;
SET ROLE regress_aq_content;
SELECT aq.jms_write_chunk('jc_topic', '00000000-0000-4000-8000-000000000006', 0, '\x00');
SELECT count(*) FROM aq_internal.jms_chunk;
SELECT aq_internal.jms_sweep('0');
RESET ROLE;
SELECT aq.grant_queue('jc_topic', 'regress_aq_content', 'enqueue');
SET ROLE regress_aq_content;
CALL t.send('jc_topic', '00000000-0000-4000-8000-000000000006');
RESET ROLE;
SELECT aq.drop_queue('jc_topic', force => true);
SELECT * FROM t.sweep();
DROP PROCEDURE t.send;
DROP FUNCTION t.sweep;
DROP ROLE regress_aq_content;
