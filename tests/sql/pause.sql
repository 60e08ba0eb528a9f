-- aq.pause and aq.resume: a consumer, or all, get nothing, without errors.
\pset format unaligned
\pset tuples_only on
CREATE VIEW t.paused AS SELECT queue_name, NULL AS consumer, paused = now() AS now, paused_by = current_user AS by_me, pause_reason
	FROM aq.queues WHERE paused IS NOT NULL
	UNION ALL SELECT queue_name, consumer, paused = now(), paused_by = current_user, pause_reason FROM aq.subscribers WHERE paused IS NOT NULL
	ORDER BY 1, 2;
SELECT aq.create_queue('p');
SELECT t.put('p', 1, 3);
BEGIN;
SELECT aq.pause('p', reason => 'the printer is on fire');
SELECT * FROM t.paused;
SELECT payload FROM aq.dequeue('p');
COMMIT;
SELECT payload FROM aq.dequeue('p');
SELECT payload FROM aq.dequeue('p', mode => 'locked');
SELECT payload FROM aq.dequeue('p', condition => 'true');
SELECT payload FROM aq.dequeue('p', lease => '1 minute');
SELECT payload FROM aq.dequeue('p', visibility => 'immediate');
SELECT payload FROM aq.dequeue('p', msgid => (SELECT msgid FROM aq.messages WHERE queue_name = 'p' ORDER BY enqueue_time LIMIT 1));
SELECT payload FROM aq.dequeue('p', wait => '10 milliseconds');
CALL aq.wait('p', NULL, '0', NULL);
CALL aq.wait('p', NULL, '10 milliseconds', NULL);
CALL aq.listen(ARRAY['p'], NULL, '0', NULL, NULL);
-- what does not give messages out
SELECT payload FROM aq.browse('p', max_messages => 10);
SELECT payload FROM aq.dequeue('p', mode => 'browse');
SELECT t.put('p', 4);
SELECT aq.purge_queue('p', condition => 'payload = ''3''');
-- again: the latest one counts
SELECT aq.pause('p');
SELECT queue_name, consumer, by_me, pause_reason FROM t.paused;
SELECT aq.resume('p');
SELECT aq.resume('p');
SELECT count(*) FROM t.paused;
CALL aq.wait('p', NULL, '0', NULL);
-- messages that were taken before
BEGIN;
SELECT payload FROM aq.dequeue('p');
SELECT aq.pause('p');
SELECT payload FROM aq.dequeue('p');
COMMIT;
SELECT payload FROM aq.dequeue('p');
SELECT aq.resume('p');
BEGIN;
SELECT aq.pause('p');
ROLLBACK;
SELECT t.drain('p');
-- a stopped queue raises its error
SELECT aq.pause('p'), aq.stop_queue('p');
SELECT t.error($$SELECT payload FROM aq.dequeue('p')$$);
SELECT aq.drop_queue('p');

-- consumers of a topic
SELECT aq.create_queue('news', multiple_consumers => true);
SELECT aq.subscribe('news', 'ann'), aq.subscribe('news', 'bob');
SELECT t.put('news', 1, 2);
SELECT aq.pause('news', 'ann', 'on leave');
SELECT queue_name, consumer, by_me, pause_reason FROM t.paused;
SELECT payload FROM aq.dequeue('news', consumer => 'ann');
SELECT payload FROM aq.dequeue('news', consumer => 'bob');
CALL aq.listen(ARRAY['news', 'news'], ARRAY['ann', 'bob'], '0', NULL, NULL);
SELECT aq.pause('news');
SELECT payload FROM aq.dequeue('news', consumer => 'bob');
SELECT aq.resume('news');
SELECT payload FROM aq.dequeue('news', consumer => 'ann');
SELECT payload FROM aq.dequeue('news', consumer => 'bob');
-- its next consumer of the name is not paused
SELECT aq.unsubscribe('news', 'ann');
SELECT aq.subscribe('news', 'ann');
SELECT count(*) FROM t.paused;
SELECT t.put('news', 3);
SELECT payload FROM aq.dequeue('news', consumer => 'ann');
-- a role with the subscribe privilege pauses its own subscribers
CREATE ROLE reader;
SELECT aq.grant_queue('news', 'reader', 'subscribe');
SET ROLE reader;
SELECT aq.subscribe('news', 'carl');
SELECT aq.pause('news', 'carl'), aq.resume('news', 'carl'), aq.pause('news', 'carl');
SELECT paused_by FROM aq.subscribers WHERE consumer = 'carl';
SELECT t.error($$SELECT aq.pause('news', 'bob')$$);
SELECT t.error($$SELECT aq.pause('news')$$);
RESET ROLE;
SELECT aq.drop_queue('news', force => true);
DROP ROLE reader;

-- dead letters can be redriven
SELECT aq.create_queue('d', max_retries => 0);
SELECT t.put('d', 1);
SELECT aq.pause('d_exceptions');
CREATE TABLE t.leased AS SELECT msgid, receipt FROM aq.dequeue('d', lease => '1 minute');
SELECT r.result FROM t.leased, aq.reject('d', ARRAY[msgid], receipt) r;
DROP TABLE t.leased;
DO $$
BEGIN
	WHILE aq.redrive('d') = 0 LOOP
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
END $$;
SELECT payload FROM aq.dequeue('d');
SELECT aq.drop_queue('d', force => true);

SELECT aq.create_queue('e');
SELECT t.error($$SELECT aq.pause('no such queue')$$);
SELECT t.error($$SELECT aq.pause(NULL)$$);
SELECT t.error($$SELECT aq.pause('e', 'ann')$$);
SELECT t.error($$SELECT aq.resume('e', 'ann')$$);
SELECT aq.drop_queue('e');
SELECT aq.create_queue('e', queue_type => 'non_persistent');
SELECT t.error($$SELECT aq.pause('e')$$);
SELECT aq.drop_queue('e');
SELECT aq.create_queue('e', multiple_consumers => true);
SELECT t.error($$SELECT aq.pause('e', 'ann')$$);
SELECT t.error($$SELECT aq.pause('e', '')$$);
SELECT aq.drop_queue('e');
DROP VIEW t.paused;
