-- aq.enqueue_unique: one message with a unique key at a time.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('u', retry_delay => '0');
CREATE TABLE t.sent (n serial, msgid uuid, is_new boolean);
-- the number of the message in the order of its first mention
CREATE FUNCTION t.send(text, text, VARIADIC more text[] DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	got record;
BEGIN
	EXECUTE format('SELECT * FROM aq.enqueue_unique(%L, %L, %L%s)', 'u', $1, $2, (SELECT string_agg(', ' || m, '') FROM unnest(more) m)) INTO got;
	INSERT INTO t.sent (msgid, is_new) SELECT got.msgid, got.is_new;
	RETURN (SELECT min(n) FROM t.sent WHERE msgid = got.msgid) || CASE WHEN got.is_new THEN ' new' ELSE ' old' END;
END $$;
-- until it is done
SELECT t.send('1', 'a');
SELECT t.send('2', 'a');
SELECT t.send('3', 'b');
BEGIN;
SELECT payload FROM aq.dequeue('u');
SELECT t.send('4', 'a');
ROLLBACK;
SELECT t.send('5', 'a');
BEGIN;
SELECT payload FROM aq.dequeue('u');
COMMIT;
SELECT t.send('6', 'a');
SELECT t.send('7', 'a');
-- in one transaction, and statement
BEGIN;
SELECT t.send('8', 'c'), t.send('9', 'c');
SAVEPOINT s;
SELECT t.send('10', 'd');
ROLLBACK TO s;
SELECT t.send('11', 'd');
SELECT payload FROM aq.dequeue('u', msgid => (SELECT max(msgid::text)::uuid FROM t.sent WHERE is_new));
SELECT t.send('12', 'd');
ROLLBACK;
SELECT t.send('13', 'd');
SELECT count(*) FILTER (WHERE is_new), count(DISTINCT msgid) FROM generate_series(1, 6) i, aq.enqueue_unique('u', to_jsonb(i), 'i' || i / 2);
-- leased, released, rejected, acknowledged
SELECT aq.purge_queue('u');
SELECT t.send('20', 'a');
SELECT msgid AS id, receipt FROM aq.dequeue_full('u', NULL::jsonb, lease => '1 hour') \gset
SELECT t.send('21', 'a');
SELECT t.send('22', 'a', 'on_conflict => ''replace''');
SELECT result FROM aq.release('u', :'id', :receipt);
SELECT t.send('23', 'a');
SELECT msgid AS id, receipt FROM aq.dequeue_full('u', NULL::jsonb, lease => '1 hour') \gset
SELECT result FROM aq.reject('u', :'id', :receipt);
CREATE PROCEDURE t.done(text) LANGUAGE plpgsql AS $$
BEGIN
	WHILE (SELECT lag FROM aq.metrics($1)) > 0 LOOP
		PERFORM pg_sleep(0.005);
		COMMIT;
	END LOOP;
END $$;
CALL t.done('u');
SELECT t.send('24', 'a');
SELECT aq.cancel('u', (SELECT msgid FROM aq.messages WHERE queue_name = 'u' AND payload = '24'));
SELECT t.send('25', 'a', 'expiration => ''1 millisecond''');
CALL t.done('u');
SELECT t.send('26', 'a', 'delay => ''1 hour''', 'priority => 3');
SELECT t.send('27', 'a');
-- replace: the message that waits, also a delayed one, and one of this transaction
SELECT t.send('28', 'a', 'delay => ''2 hours''', 'on_conflict => ''replace''');
SELECT t.send('29', 'a', 'on_conflict => ''replace''');
BEGIN;
SELECT t.send('30', 'a', 'on_conflict => ''replace''');
SELECT t.send('31', 'a', 'on_conflict => ''replace''');
SAVEPOINT s;
SELECT t.send('32', 'a', 'on_conflict => ''replace''');
ROLLBACK TO s;
SELECT t.send('33', 'a');
COMMIT;
SELECT payload FROM aq.messages WHERE queue_name = 'u' AND state NOT IN ('PROCESSED', 'PURGED', 'FAILED', 'EXPIRED') ORDER BY 1;
BEGIN;
SELECT t.send('34', 'a', 'on_conflict => ''replace''');
ROLLBACK;
SELECT payload FROM aq.dequeue('u', max_messages => 10);
-- for a time
SELECT t.send('40', 't', 'unique_for => ''1 hour''');
SELECT payload FROM aq.dequeue('u');
SELECT t.send('41', 't');
SELECT t.send('42', 't', 'on_conflict => ''replace''');
SELECT t.send('43', 's', 'unique_for => ''1 millisecond''');
SELECT pg_sleep(0.002);
SELECT t.send('44', 's', 'unique_for => ''1 hour''');
SELECT t.send('45', 's', 'unique_for => ''1 hour''', 'on_conflict => ''replace''');
SELECT payload FROM aq.dequeue('u', max_messages => 10);
-- an error
SELECT t.send('50', 'e');
SELECT regexp_replace(t.error($$SELECT aq.enqueue_unique('u', '51', 'e', on_conflict => 'error')$$), 'message [-0-9a-f]{36}', 'message ID');
\set VERBOSITY terse
-- a topic: until all subscribers are done; and a message that no subscriber wants
SELECT aq.create_queue('news', multiple_consumers => true);
SELECT (aq.enqueue_unique('news', '2', 'k')).*;
SELECT aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob');
SELECT is_new FROM aq.enqueue_unique('news', '1'::jsonb, 'k');
SELECT payload FROM aq.dequeue('news', 'ann');
SELECT is_new FROM aq.enqueue_unique('news', '2', 'k');
BEGIN;
SELECT payload FROM aq.dequeue('news', 'bob');
SELECT is_new FROM aq.enqueue_unique('news', '2', 'k', on_conflict => 'replace');
ROLLBACK;
CALL aq.wait('news', 'bob', '1 minute', NULL);
SELECT is_new FROM aq.enqueue_unique('news', '2', 'k', on_conflict => 'replace');
SELECT payload FROM aq.dequeue('news', 'ann');
SELECT payload FROM aq.dequeue('news', 'bob');
SELECT is_new FROM aq.enqueue_unique('news', '2', 'k');
-- one that this transaction has enqueued, and dequeued for one of two subscribers
SELECT aq.purge_queue('news');
BEGIN;
SELECT is_new FROM aq.enqueue_unique('news', '3', 'own');
SELECT payload FROM aq.dequeue('news', 'ann');
SELECT is_new FROM aq.enqueue_unique('news', '4', 'own');
SELECT is_new FROM aq.enqueue_unique('news', '5', 'own', on_conflict => 'replace');
SELECT is_new FROM aq.enqueue_unique('news', '6', 'own', on_conflict => 'replace');
SELECT payload FROM aq.dequeue('news', 'ann');
SELECT payload FROM aq.dequeue('news', 'bob');
SELECT is_new FROM aq.enqueue_unique('news', '7', 'own');
COMMIT;
SELECT payload FROM aq.dequeue('news', 'ann', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'bob', max_messages => 10);
-- what is unique in one queue is not in another; nor after a drop
SELECT t.send('60', 'k');
SELECT aq.drop_queue('news', force => true);
SELECT count(*) > 0 AS rows, count(DISTINCT queue_id) FROM aq_internal.unique_key;
-- rights
CREATE ROLE regress_unique;
SELECT aq.grant_queue('u', 'regress_unique', 'enqueue');
SET ROLE regress_unique;
SELECT is_new FROM aq.enqueue_unique('u', '70', 'r');
SELECT is_new FROM aq.enqueue_unique('u', '71', 'r', on_conflict => 'replace');
SELECT count(*) FROM aq_internal.unique_key;
RESET ROLE;
SELECT aq.revoke_queue('u', 'regress_unique', 'enqueue');
SET ROLE regress_unique;
SELECT is_new FROM aq.enqueue_unique('u', '72', 'r');
RESET ROLE;
DROP ROLE regress_unique;
-- errors
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', NULL)$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', repeat('x', 513))$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', on_conflict => 'none')$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', on_conflict => NULL)$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', unique_for => '0')$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', unique_for => '-1 second')$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', unique_for => '-1 microsecond')$$);
SELECT t.error($$SELECT aq.enqueue_unique('u', '1', 'k', delivery_mode => 'buffered')$$);
SELECT t.error($$SELECT aq.enqueue_unique('nowhere', '1', 'k')$$);
SELECT t.error($$SELECT aq.enqueue_unique(NULL, '1', 'k')$$);
SELECT aq.create_queue_table('tab');
SELECT aq.create_queue('q', queue_table => 'tab');
SELECT t.error($$SELECT aq.enqueue_unique('q', '1', 'k')$$);
SELECT aq.drop_queue('q'), aq.drop_queue_table('tab'), aq.drop_queue('u', force => true);
SELECT count(*) FROM aq_internal.unique_key;
SELECT aq.create_queue('q', queue_type => 'non_persistent');
SELECT t.error($$SELECT aq.enqueue_unique('q', '1', 'k')$$);
SELECT aq.drop_queue('q');
DROP TABLE t.sent;
DROP FUNCTION t.send;
DROP PROCEDURE t.done;
