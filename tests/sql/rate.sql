-- rate: at most so many messages of a consumer in a time.
\pset format unaligned
\pset tuples_only on
CREATE VIEW t.rates AS SELECT queue_name, consumer, rate FROM aq.subscribers WHERE rate IS NOT NULL ORDER BY 1, 2;
-- a new queue's consumer gets as many at once as the burst says; these tests do not wait for a day
SELECT aq.create_queue('r', rate => '3/day', retry_delay => '0');
SELECT rate FROM aq.queues WHERE queue_name = 'r';
SELECT * FROM t.rates;
SELECT t.put('r', 1, 9);
SELECT payload FROM aq.dequeue('r', max_messages => 2);
SELECT payload FROM aq.dequeue('r', max_messages => 2);
SELECT payload FROM aq.dequeue('r');
SELECT payload FROM aq.dequeue('r', condition => 'true');
SELECT payload FROM aq.dequeue('r', msgid => (SELECT min(msgid::text)::uuid FROM aq.messages WHERE queue_name = 'r' AND state = 'READY'));
SELECT payload FROM aq.dequeue('r', lease => '1 minute');
SELECT payload FROM aq.dequeue('r', visibility => 'immediate');
CALL aq.wait('r', NULL, '0', NULL);
CALL aq.wait('r', NULL, '10 milliseconds', NULL);
CALL aq.listen(ARRAY['r'], NULL, '10 milliseconds', NULL, NULL);
-- what needs no token
SELECT count(*) FROM aq.browse('r', max_messages => 10);
SELECT aq.cancel('r', (SELECT msgid FROM aq.messages WHERE queue_name = 'r' AND payload = '9'));
SELECT aq.purge_queue('r', condition => 'payload = ''8''');
-- another rate, with a burst of its own: what was used stays used
SELECT aq.alter_queue('r', rate => '1/day burst 2');
SELECT payload FROM aq.dequeue('r');
SELECT aq.alter_queue('r', rate => '1000/millisecond burst 2');
SELECT count(*) > 0 FROM aq.dequeue('r', max_messages => 2, wait => '1 minute');
SELECT aq.alter_queue('r', rate => 'none');
SELECT rate FROM aq.queues WHERE queue_name = 'r';
CALL aq.wait('r', NULL, '1 minute', NULL);
SELECT aq.drop_queue('r', force => true);

-- a message that is dequeued again counts again, and a transaction's own messages wait for its commit
SELECT aq.create_queue('r', rate => '3/day', retry_delay => '0');
SELECT t.put('r', 1, 9);
BEGIN;
SELECT payload FROM aq.dequeue('r', max_messages => 2);
ROLLBACK;
CALL aq.wait('r', NULL, '1 minute', NULL);
BEGIN;
SELECT t.put('r', 10);
SELECT payload FROM aq.dequeue('r', condition => 'payload = ''10''');
SELECT payload FROM aq.dequeue('r', max_messages => 2);
SELECT payload FROM aq.dequeue('r', max_messages => 2);
COMMIT;
SELECT aq.drop_queue('r', force => true);

-- sessions that wait are woken when it is time
SELECT aq.create_queue('r', rate => '2/100 milliseconds burst 1');
SELECT t.put('r', 1, 5);
SELECT payload FROM aq.dequeue('r', wait => '1 minute');
SELECT payload FROM aq.dequeue('r', wait => '1 minute', condition => 'true');
CALL aq.wait('r', NULL, '1 minute', NULL);
SELECT payload FROM aq.dequeue('r', wait => '1 minute');
CALL aq.listen(ARRAY['r'], NULL, '1 minute', NULL, NULL);
SELECT payload FROM aq.dequeue('r', wait => '1 minute');
SELECT payload FROM aq.dequeue('r', wait => '1 minute', lease => '1 minute');
-- with max_running
SELECT aq.alter_queue('r', max_running => 2, rate => '1000/second');
SELECT t.put('r', 6, 9);
SELECT count(*) FROM aq.dequeue('r', lease => '1 minute', wait => '1 minute');
SELECT count(*) FROM aq.dequeue('r', lease => '1 minute');
SELECT running FROM aq.subscribers WHERE queue_name = 'r';
SELECT queue_name, place, what, in_memory, expected FROM aq.check('0');
SELECT aq.drop_queue('r', force => true);

-- consumers of a topic have buckets of their own
SELECT aq.create_queue('news', multiple_consumers => true, rate => '2/hour');
SELECT aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob'), aq.subscribe('news', 'eve');
SELECT aq.limit_subscriber('news', 'bob', rate => '1/day');
SELECT aq.limit_subscriber('news', 'eve', max_running => 1);
SELECT * FROM t.rates;
SELECT t.put('news', 1, 4);
SELECT payload FROM aq.dequeue('news', 'ann', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'bob', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'eve', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'eve', max_messages => 10);
SELECT payload FROM aq.dequeue('news', 'eve', max_messages => 10);
SELECT aq.limit_subscriber('news', 'bob');
SELECT * FROM t.rates;
SELECT aq.drop_queue('news', force => true);

-- rates as they are written, and errors
SELECT aq.create_queue('r' || i, rate => r) FROM unnest(ARRAY['1/second', '7/10 seconds', '1/2 days', '5/ minute burst 2', '9/hours',
	'1000/millisecond', '1/366 days', '2147483647/second']) WITH ORDINALITY AS u (r, i);
SELECT aq.drop_queue('r' || i) FROM generate_series(1, 8) i;
SELECT t.error(format('SELECT aq.create_queue(''r'', rate => %L)', r)) FROM unnest(ARRAY['', 'none', '5', '/minute', '0/minute', '-1/minute',
	'1.5/minute', '5/', '5/minutess', '5/month', '5/0 seconds', '5/minute burst', '5/minute burst 0', '5/minute burst 1 x',
	'5/minute 3', '1/367 days', '1/day burst 400', '99999999999/second', 'five/minute', ' 5/minute']) r;
SELECT t.error($$SELECT aq.create_queue('r', rate => '1/day', distributed => true)$$);
SELECT aq.create_queue_table('tab');
SELECT t.error($$SELECT aq.create_queue('r', rate => '1/day', queue_table => 'tab')$$);
SELECT aq.create_queue('r', queue_table => 'tab');
SELECT t.error($$SELECT aq.alter_queue('r', rate => '1/day')$$);
SELECT aq.alter_queue('r', rate => 'none');
SELECT aq.create_queue('topic', multiple_consumers => true);
SELECT aq.subscribe('topic', 'ann');
SELECT t.error($$SELECT aq.limit_subscriber('topic', 'ann', rate => 'none')$$);
SELECT t.error($$SELECT aq.limit_subscriber('topic', 'bob', rate => '1/day')$$);
SELECT aq.drop_queue('r'), aq.drop_queue('topic');
SELECT aq.drop_queue_table('tab');
DROP VIEW t.rates;
