-- max_running: at most so many messages of a consumer are in work.
\pset format unaligned
\pset tuples_only on
CREATE VIEW t.running AS SELECT queue_name, consumer, max_running, running FROM aq.subscribers
	WHERE max_running IS NOT NULL ORDER BY 1, 2;
SELECT aq.create_queue('m', max_running => 2, retry_delay => '0');
SELECT max_running FROM aq.queues WHERE queue_name = 'm';
SELECT * FROM t.running;
SELECT t.put('m', 1, 6);
-- an open transaction
BEGIN;
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT payload FROM aq.dequeue('m');
SELECT payload FROM aq.dequeue('m', condition => 'true');
SELECT payload FROM aq.dequeue('m', mode => 'locked');
CALL aq.wait('m', NULL, '0', NULL);
CALL aq.wait('m', NULL, '10 milliseconds', NULL);
CALL aq.listen(ARRAY['m'], NULL, '0', NULL, NULL);
SELECT * FROM t.running;
SAVEPOINT s;
SELECT t.error($$SELECT payload FROM aq.dequeue('m', wait => '1 minute')$$);
SELECT payload FROM aq.browse('m', max_messages => 10);
SELECT payload FROM aq.dequeue('m', mode => 'browse');
SELECT aq.cancel('m', (SELECT msgid FROM aq.messages WHERE queue_name = 'm' AND payload = '6'));
SELECT * FROM t.running;
ROLLBACK TO s;
SELECT * FROM t.running;
COMMIT;
SELECT * FROM t.running;
-- a savepoint and a rollback give places back
BEGIN;
SELECT payload FROM aq.dequeue('m');
SAVEPOINT s;
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT * FROM t.running;
ROLLBACK TO s;
SELECT * FROM t.running;
ROLLBACK;
SELECT * FROM t.running;
CALL aq.wait('m', NULL, '1 minute', NULL);
-- what the transaction has locked, it can dequeue
BEGIN;
SELECT payload FROM aq.dequeue('m', mode => 'locked', max_messages => 10);
SELECT payload FROM aq.dequeue('m', msgid => (SELECT msgid FROM aq.messages WHERE queue_name = 'm' AND payload = '3'));
SELECT payload FROM aq.dequeue('m', msgid => (SELECT msgid FROM aq.messages WHERE queue_name = 'm' AND payload = '5'));
COMMIT;
-- leases
SELECT payload FROM aq.dequeue('m', lease => '1 hour');
SELECT * FROM t.running;
SELECT payload FROM aq.dequeue('m', max_messages => 10, lease => '1 hour');
SELECT payload FROM aq.dequeue('m');
SELECT payload FROM aq.dequeue('m', visibility => 'immediate');
SELECT * FROM t.running;
SELECT count(*) FROM aq.end_leases('m', (SELECT array_agg(msgid) FROM aq.messages WHERE queue_name = 'm' AND payload = '4'));
SELECT * FROM t.running;
SELECT payload FROM aq.dequeue('m', visibility => 'immediate');
SELECT * FROM t.running;
SELECT queue_name, place, what, in_memory, expected FROM aq.check('0');
-- a transaction does not dequeue what it has enqueued itself
BEGIN;
SELECT t.put('m', 7);
SELECT payload FROM aq.dequeue('m', condition => 'payload = ''7''');
COMMIT;
-- changed: lower than what is in work, higher, none
SELECT aq.alter_queue('m', max_running => 1);
SELECT payload FROM aq.dequeue('m');
SELECT aq.alter_queue('m', max_running => 3);
BEGIN;
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT * FROM t.running;
SELECT aq.alter_queue('m', max_running => 1);
SELECT payload FROM aq.dequeue('m');
SELECT * FROM t.running;
ROLLBACK;
SELECT * FROM t.running;
SELECT aq.alter_queue('m', max_running => -1);
SELECT * FROM t.running;
CALL aq.wait('m', NULL, '1 minute', NULL);
SELECT count(*) FROM aq.dequeue('m', max_messages => 10);
SELECT aq.drop_queue('m', force => true);

-- set while messages are in work
SELECT aq.create_queue('late');
SELECT t.put('late', 1, 4);
SELECT payload FROM aq.dequeue('late', lease => '1 hour');
BEGIN;
SELECT payload FROM aq.dequeue('late');
SELECT aq.alter_queue('late', max_running => 3);
SELECT payload FROM aq.dequeue('late', max_messages => 10);
SELECT * FROM t.running;
COMMIT;
SELECT * FROM t.running;
SELECT queue_name, place, what, in_memory, expected FROM aq.check('0');
SELECT aq.drop_queue('late', force => true);

-- what a call leaves for want of places, in any stream and partition, the next one finds
SELECT aq.create_queue('m', max_running => 2, shards => 2, retry_delay => '0');
SELECT count(aq.enqueue('m', to_jsonb(10 * p + n), priority => p)) FROM generate_series(0, 3) p, generate_series(1, 2) n;
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT payload FROM aq.dequeue('m', max_messages => 10, condition => 'true');
SELECT payload FROM aq.dequeue('m', max_messages => 10, lease => '1 hour');
SELECT payload FROM aq.dequeue('m', max_messages => 10, wait => '0');
SELECT count(*) FROM aq.end_leases('m', (SELECT array_agg(msgid) FROM aq.messages WHERE queue_name = 'm'));
CALL aq.wait('m', NULL, '1 minute', NULL);
SELECT payload FROM aq.dequeue('m', max_messages => 10);
SELECT aq.drop_queue('m', force => true);
-- with aq.pause
SELECT aq.create_queue('news', multiple_consumers => true, max_running => 1);
SELECT aq.subscribe('news', 'ann');
SELECT aq.pause('news', 'ann');
SELECT payload FROM aq.dequeue('news', 'ann');
CALL aq.listen(ARRAY['news'], ARRAY['ann'], '0', NULL, NULL);
SELECT aq.resume('news', 'ann');
CALL aq.listen(ARRAY['news'], ARRAY['ann'], '0', NULL, NULL);
SELECT aq.drop_queue('news');

-- consumers of a topic
SELECT aq.create_queue('news', multiple_consumers => true, max_running => 2);
SELECT aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob');
SELECT aq.limit_subscriber('news', 'bob', 1);
SELECT t.put('news', 1, 4);
BEGIN;
SELECT payload FROM aq.dequeue('news', 'ann', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'bob', max_messages => 10);
SELECT * FROM t.running;
SELECT aq.limit_subscriber('news', 'bob', NULL);
SELECT payload FROM aq.dequeue('news', 'bob', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'ann');
SELECT * FROM t.running;
COMMIT;
SELECT payload FROM aq.dequeue('news', 'ann', max_messages => 10, lease => '1 hour');
SELECT * FROM t.running;
SELECT aq.unsubscribe('news', 'ann');
SELECT aq.subscribe('news', 'ann');
SELECT t.put('news', 5, 6);
SELECT payload FROM aq.dequeue('news', 'ann', max_messages => 10);
SELECT aq.drop_queue('news', force => true);

-- errors
SELECT t.error($$SELECT aq.create_queue('m', max_running => 0)$$);
SELECT t.error($$SELECT aq.create_queue('m', max_running => 1, distributed => true)$$);
SELECT aq.create_queue_table('tab');
SELECT t.error($$SELECT aq.create_queue('m', max_running => 1, queue_table => 'tab')$$);
SELECT aq.create_queue('m', queue_table => 'tab');
SELECT t.error($$SELECT aq.alter_queue('m', max_running => 1)$$);
SELECT t.error($$SELECT aq.alter_queue('m', max_running => -2)$$);
SELECT t.error($$SELECT aq.limit_subscriber('m', 'ann', 1)$$);
SELECT aq.create_queue('topic', multiple_consumers => true);
SELECT aq.subscribe('topic', 'ann');
SELECT t.error($$SELECT aq.limit_subscriber('topic', 'ann', 0)$$);
SELECT t.error($$SELECT aq.limit_subscriber('topic', 'bob', 1)$$);
SELECT aq.drop_queue('m'), aq.drop_queue('topic');
SELECT aq.drop_queue_table('tab');
