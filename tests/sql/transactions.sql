-- Commit, rollback, savepoints, errors in the middle: on the enqueuing and on the dequeuing side.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('x', retry_delay => '0');
-- enqueue: commit, rollback
BEGIN; SELECT t.put('x', 1); COMMIT;
BEGIN; SELECT t.put('x', 2); ROLLBACK;
SELECT t.drain('x');
-- savepoints: released, rolled back, nested in every way
BEGIN;
SELECT t.put('x', 1);
SAVEPOINT a; SELECT t.put('x', 2); RELEASE a;
SAVEPOINT b; SELECT t.put('x', 3); ROLLBACK TO b; SELECT t.put('x', 4);
SAVEPOINT c; SELECT t.put('x', 5); SAVEPOINT d; SELECT t.put('x', 6); RELEASE d; ROLLBACK TO c;
SAVEPOINT e; SELECT t.put('x', 7); SAVEPOINT f; SELECT t.put('x', 8); ROLLBACK TO f; RELEASE e;
SELECT t.look('x');
COMMIT;
SELECT t.drain('x');
-- dequeue: rollback gives back at the old place and counts an attempt
SELECT t.put('x', 1, 4);
BEGIN;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 2);
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);
-- savepoints on the dequeuing side
SELECT t.put('x', 1, 8);
BEGIN;
SELECT payload FROM aq.dequeue('x');							-- 1, kept
SAVEPOINT a; SELECT payload FROM aq.dequeue('x'); ROLLBACK TO a;	-- 2, given back
SELECT payload, attempts FROM aq.dequeue('x');					-- 2 again
SAVEPOINT b; SELECT payload FROM aq.dequeue('x'); RELEASE b;		-- 3, kept
SAVEPOINT c; SELECT payload FROM aq.dequeue('x');				-- 4
SAVEPOINT d; SELECT payload FROM aq.dequeue('x'); RELEASE d;		-- 5
ROLLBACK TO c;												-- 4 and 5 given back
SAVEPOINT e; SELECT payload, attempts FROM aq.dequeue('x');		-- 4 again
SAVEPOINT f; SELECT payload, attempts FROM aq.dequeue('x');		-- 5 again
ROLLBACK TO f; RELEASE e;
COMMIT;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);	-- 5 6 7 8
-- the whole transaction rolled back after savepoints: one attempt each, not more
SELECT t.put('x', 1, 2);
BEGIN;
SAVEPOINT a; SELECT payload FROM aq.dequeue('x', max_messages => 2); RELEASE a;
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);
-- enqueue and dequeue of one's own message in all combinations with rollback
BEGIN;
SELECT t.put('x', 1);
SELECT t.drain('x');
COMMIT;
SELECT t.look('x') IS NULL;
BEGIN;
SELECT t.put('x', 2);
SELECT t.drain('x');
ROLLBACK;
SELECT t.look('x') IS NULL;
BEGIN;
SELECT t.put('x', 3);
SAVEPOINT a; SELECT t.drain('x'); ROLLBACK TO a;
COMMIT;
SELECT t.drain('x');
BEGIN;
SAVEPOINT a; SELECT t.put('x', 4); SELECT t.drain('x'); ROLLBACK TO a;
SELECT t.look('x') IS NULL;
COMMIT;
BEGIN;
SAVEPOINT a; SELECT t.put('x', 5); SAVEPOINT b; SELECT t.drain('x'); RELEASE b; ROLLBACK TO a;
SELECT t.look('x') IS NULL;
COMMIT;
BEGIN;
SELECT t.put('x', 6); SAVEPOINT a; SELECT t.drain('x'); SAVEPOINT b; SELECT t.put('x', 7); RELEASE b; ROLLBACK TO a; SELECT t.put('x', 8);
COMMIT;
SELECT t.drain('x');
-- its own messages, for each subscriber: what one of them has taken the other one can still have
SELECT aq.create_queue('own_topic', 'jsonb', multiple_consumers => true, retry_delay => '0');
SELECT aq.subscribe('own_topic', name) FROM unnest(ARRAY['one', 'two']) name;
BEGIN;
SELECT t.put('own_topic', 1, 3);
SELECT payload FROM aq.dequeue('own_topic', 'one', max_messages => 2);
SAVEPOINT a;
SELECT t.put('own_topic', 4, 5);
SELECT payload FROM aq.dequeue('own_topic', 'one', max_messages => 100);
SELECT payload FROM aq.dequeue('own_topic', 'two', condition => 'payload::int % 2 = 0', max_messages => 100);
ROLLBACK TO a;
SELECT t.put('own_topic', 6);
SELECT payload FROM aq.dequeue('own_topic', 'one');
SELECT payload FROM aq.dequeue('own_topic', 'two');
COMMIT;
SELECT payload FROM aq.dequeue('own_topic', 'one', max_messages => 100);
SELECT payload FROM aq.dequeue('own_topic', 'two', max_messages => 100);
SELECT aq.drop_queue('own_topic');
-- an error in the middle of a transaction
SELECT t.put('x', 1, 3);
BEGIN;
SELECT payload FROM aq.dequeue('x');
SELECT t.put('x', 99);
SELECT 1 / 0;
SELECT t.put('x', 100);
COMMIT;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);
-- an error in the middle of a statement that enqueued and dequeued
SELECT t.put('x', 1, 3);
SELECT count(id), max(d) FROM (SELECT aq.enqueue('x', to_jsonb(n)) AS id, 1 / (50 - n) AS d FROM generate_series(10, 60) n) s;
SELECT payload, 1 / (2 - payload::int) FROM aq.dequeue('x', max_messages => 100);
SELECT t.drain('x');
-- an error in the middle with a savepoint to return to
SELECT t.put('x', 1, 3);
BEGIN;
SELECT payload FROM aq.dequeue('x');
SAVEPOINT a;
SELECT payload FROM aq.dequeue('x');
SELECT 1 / 0;
ROLLBACK TO a;
SELECT payload, attempts FROM aq.dequeue('x');
COMMIT;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);
-- statement timeout in the middle
SELECT t.put('x', 1, 2);
BEGIN;
SELECT payload FROM aq.dequeue('x');
SET LOCAL statement_timeout = '50 ms';
SELECT payload FROM aq.dequeue('x'), LATERAL (SELECT pg_sleep(20)) AS until_cancelled;
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('x', max_messages => 100);
-- a transaction of thousands of savepoints
BEGIN;
DO $$ BEGIN
	FOR i IN 1..3000 LOOP
		BEGIN
			PERFORM aq.enqueue('x', to_jsonb(i));
			IF i % 3 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
	END LOOP;
END $$;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE payload::int % 3 = 0), bool_and(ordered)
FROM (SELECT payload, payload::int > lag(payload::int, 1, 0) OVER () AS ordered FROM aq.dequeue('x', max_messages => 5000)) s;
-- a deep nest
BEGIN;
DO $$
DECLARE depth int;
BEGIN
	CREATE PROCEDURE pg_temp.nest(n int) LANGUAGE plpgsql AS $f$
	BEGIN
		PERFORM aq.enqueue('x', to_jsonb(n));
		IF n < 50 THEN
			BEGIN
				CALL pg_temp.nest(n + 1);
				IF n % 10 = 9 THEN RAISE EXCEPTION 'undo'; END IF;
			EXCEPTION WHEN raise_exception THEN NULL;
			END;
		END IF;
	END $f$;
	CALL pg_temp.nest(1);
END $$;
COMMIT;
SELECT t.drain('x');
-- COMMIT AND CHAIN
BEGIN;
SELECT t.put('x', 1);
COMMIT AND CHAIN;
SELECT t.drain('x');
ROLLBACK AND CHAIN;
SELECT payload, attempts FROM aq.dequeue('x');
COMMIT;
-- several statements in one simple query message are one transaction
SELECT t.put('x', 2) \; SELECT 1 / 0;
SELECT t.look('x') IS NULL;
-- asynchronous commit changes nothing that can be seen
SET synchronous_commit = off;
SELECT t.put('x', 3);
SELECT t.drain('x');
RESET synchronous_commit;
SELECT aq.drop_queue('x');

-- a cursor from before a savepoint that has dequeued after it: a rollback to the savepoint ends it, with its other rows
SELECT aq.create_queue('cursor', exception_queue => 'none'), t.put('cursor', 1, 3);
-- not one that has dequeued before it
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM aq.dequeue('cursor', max_messages => 3);
SAVEPOINT r;
FETCH c;
RELEASE r;
SAVEPOINT s;
FETCH c;
ROLLBACK TO s;
FETCH c;
COMMIT;
SELECT t.put('cursor', 4, 6);
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM aq.dequeue('cursor', max_messages => 3);
SAVEPOINT s;
FETCH c;
ROLLBACK TO s;
FETCH c;
ROLLBACK TO s;
CLOSE c;
COMMIT;
SELECT t.put('cursor', 7);
BEGIN;
DECLARE c CURSOR FOR SELECT payload <> '0' FROM aq.dequeue('cursor');
SAVEPOINT s;
FETCH c;
ROLLBACK TO s;
COMMIT;
SELECT aq.drop_queue('cursor', force => true);
