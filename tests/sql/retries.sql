-- Rolled back dequeues: attempts, the limit, the exception queue, the retry delay.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('y_dead', retry_delay => '0');
SELECT aq.create_queue('y', max_retries => 2, exception_queue => 'y_dead', retry_delay => '0');
SELECT aq.enqueue('y', '"poison"', priority => 4, correlation => 'c', sender => 's', properties => '{"k": "v"}') AS id \gset
SELECT t.put('y', 1, 2);
-- third rollback is one more than max_retries allows
BEGIN; SELECT attempts, payload FROM aq.dequeue('y', msgid => :'id'); ROLLBACK;
BEGIN; SELECT attempts, payload FROM aq.dequeue('y', msgid => :'id'); ROLLBACK;
BEGIN; SELECT attempts, payload FROM aq.dequeue('y', msgid => :'id'); ROLLBACK;
CALL aq.wait('y_dead', NULL, '60 s', NULL);
SELECT t.look('y');
SELECT payload, priority, correlation, sender, properties, original_msgid = :'id' AS original_id_kept, msgid <> :'id' AS id_is_new
FROM aq.dequeue_full('y_dead', NULL::jsonb);
SELECT t.drain('y');
-- browse, locked and a commit do not count
SELECT t.put('y', 3);
BEGIN; SELECT payload FROM aq.dequeue('y', mode => 'browse'); ROLLBACK;
BEGIN; SELECT payload FROM aq.dequeue('y', mode => 'locked'); ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('y');
-- remove_nodata counts, and so does a rollback to a savepoint
SELECT t.put('y', 4);
BEGIN; SELECT payload FROM aq.dequeue('y', mode => 'remove_nodata'); ROLLBACK;
BEGIN; SAVEPOINT a; SELECT attempts FROM aq.dequeue('y'); ROLLBACK TO a; SELECT attempts FROM aq.dequeue('y'); COMMIT;
-- max_retries 0: the first rollback is one too many; without exception queue the message is dropped
SELECT aq.alter_queue('y', max_retries => 0, exception_queue => 'none');
SELECT t.put('y', 5, 6);
BEGIN; SELECT payload FROM aq.dequeue('y'); ROLLBACK;
SELECT t.drain('y');
-- a message's own exception queue
SELECT aq.create_queue('y_own', retry_delay => '0');
SELECT aq.enqueue('y', '7', exception_queue => 'y_own') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('y'); ROLLBACK;
CALL aq.wait('y_own', NULL, '60 s', NULL);
SELECT t.drain('y_own'), t.drain('y_dead') IS NULL, t.look('y') IS NULL;
-- no limit: as often as it likes
SELECT aq.alter_queue('y', max_retries => -1);
SELECT t.put('y', 8);
-- a message that expires later is retried like others
SELECT aq.enqueue('y', '9', expiration => '1 hour', priority => 0) IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('y'); ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('y', wait => '60 s');
DO $$ BEGIN FOR i IN 1..25 LOOP PERFORM aq.dequeue('y'); ROLLBACK; END LOOP; END $$;
SELECT payload, attempts FROM aq.dequeue('y');
-- rolled back messages keep their place, whichever of them it was
SELECT t.put('y', 1, 6);
BEGIN; SELECT payload FROM aq.dequeue('y', condition => 'payload::int IN (2, 4)', max_messages => 2); ROLLBACK;
BEGIN; SELECT payload FROM aq.dequeue('y', max_messages => 12); ROLLBACK;
SELECT string_agg(payload::text || '/' || attempts, ' ') FROM aq.dequeue('y', max_messages => 100);
-- locked and then removed by its id: counts once, in a sharded queue also with a savepoint between
SELECT t.put('y', 10);
SELECT msgid AS id FROM aq.browse('y') \gset
BEGIN; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); SELECT attempts FROM aq.dequeue('y', msgid => :'id'); ROLLBACK;
BEGIN; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); SAVEPOINT a; SELECT attempts FROM aq.dequeue('y', msgid => :'id'); ROLLBACK;
BEGIN; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); SAVEPOINT a; SELECT attempts FROM aq.dequeue('y', msgid => :'id'); RELEASE a; ROLLBACK;
BEGIN; SAVEPOINT b; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); SAVEPOINT a; SELECT attempts FROM aq.dequeue('y', msgid => :'id'); ROLLBACK TO b; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); COMMIT;
BEGIN; SELECT attempts FROM aq.dequeue('y', mode => 'locked'); SAVEPOINT a; SELECT attempts FROM aq.dequeue('y', msgid => :'id'); ROLLBACK TO a;
SELECT attempts FROM aq.dequeue('y', msgid => :'id'); ROLLBACK TO a; COMMIT;
SELECT attempts FROM aq.dequeue('y');
-- the highest limit of a sharded queue is one
SELECT t.put('y', 11);
SELECT aq.alter_queue('y', max_retries => 255);
DO $$ BEGIN FOR i IN 1..255 LOOP PERFORM aq.dequeue('y'); ROLLBACK; END LOOP; END $$;
BEGIN; SELECT payload, attempts FROM aq.dequeue('y'); ROLLBACK;
SELECT t.drain('y');
SELECT aq.alter_queue('y', max_retries => -1);
-- taken by two subtransactions by turns, in a table whose pages are full: each counts once
SELECT t.put('y', 1, 300);
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM aq.dequeue('y', condition => 'payload::int IN (1, 3)', max_messages => 2);
SAVEPOINT b;
SELECT count(*) FROM aq.dequeue('y', condition => 'payload::int IN (2, 4)', max_messages => 2);
ROLLBACK;
SELECT string_agg(payload::text || '/' || attempts, ' ') FROM aq.dequeue('y', max_messages => 20);
SELECT aq.purge_queue('y');
-- purges that are rolled back between the dequeues do not count
SELECT t.put('y', 1, 40);
DO $$ BEGIN
	FOR i IN 1..40 LOOP
		BEGIN
			IF i % 2 = 1 THEN
				PERFORM aq.dequeue('y', condition => 'payload::int = ' || i);
			ELSE
				PERFORM aq.purge_queue('y', condition => 'payload::int = ' || i);
				RAISE 'rolled back';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
	ROLLBACK;
END $$;
SELECT attempts, count(*), min(payload::int), max(payload::int) FROM aq.dequeue('y', max_messages => 160) GROUP BY attempts ORDER BY attempts;
-- retry delay: rests, then comes back without anybody asking
SELECT aq.alter_queue('y', retry_delay => '1 hour');
SELECT t.put('y', 9, 10);
BEGIN; SELECT payload FROM aq.dequeue('y'); ROLLBACK;
SELECT t.drain('y');
SELECT payload, attempts FROM aq.dequeue('y');
SELECT aq.purge_queue('y');
SELECT aq.alter_queue('y', retry_delay => '0.1 s');
SELECT t.put('y', 11);
BEGIN; SELECT payload FROM aq.dequeue('y'); ROLLBACK;
CALL aq.wait('y', NULL, '60 s', NULL);
SELECT payload, attempts FROM aq.dequeue('y');
-- messages that fail, where others would rest, do not make the worker forget who is delayed
SELECT aq.create_queue('y_late', max_retries => 0, retry_delay => '1 hour', shards => 1);
SELECT aq.enqueue('y_late', '"late"', delay => '2 s') IS NOT NULL, aq.enqueue('y_late', '"fails"', correlation => 'fails') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('y_late', correlation => 'fails'); ROLLBACK;
SELECT payload FROM aq.dequeue('y_late', wait => '1 min');
SELECT aq.drop_queue('y_late', force => true);
-- a delayed message that was fetched by its id and rolled back still has its delay
SELECT aq.alter_queue('y', retry_delay => '0');
SELECT aq.enqueue('y', '"later"', delay => '1 hour') AS later \gset
BEGIN; SELECT payload FROM aq.dequeue('y', msgid => :'later'); ROLLBACK;
SELECT t.drain('y') IS NULL;
SELECT payload, attempts FROM aq.dequeue('y', msgid => :'later');
-- several consumers: each with its own count; the message goes to the exception queue for the one that failed
SELECT aq.create_queue('y_topic', multiple_consumers => true, max_retries => 0, exception_queue => 'y_dead');
SELECT aq.subscribe('y_topic', 'good'), aq.subscribe('y_topic', 'bad');
SELECT t.put('y_topic', 12);
BEGIN; SELECT payload FROM aq.dequeue('y_topic', 'bad'); ROLLBACK;
SELECT t.drain('y_topic', 'bad') IS NULL, t.drain('y_topic', 'good');
CALL aq.wait('y_dead', NULL, '60 s', NULL);
SELECT t.drain('y_dead'), t.drain('y_topic', 'good') IS NULL;
SELECT aq.drop_queue(q) FROM unnest(ARRAY['y_topic', 'y', 'y_own', 'y_dead']) q;
