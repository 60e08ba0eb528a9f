-- From plpgsql: exception blocks, triggers, procedures with COMMIT, cursors, DO, dynamic SQL.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('l', retry_delay => '0');
-- exception block that undoes what it enqueued and dequeued
SELECT t.put('l', 1, 2);
DO $$
DECLARE got jsonb;
BEGIN
	BEGIN
		SELECT payload INTO got FROM aq.dequeue('l');
		PERFORM aq.enqueue('l', '99');
		RAISE NOTICE 'took %', got;
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		RAISE NOTICE 'undone';
	END;
	SELECT payload INTO got FROM aq.dequeue('l');
	RAISE NOTICE 'took % again', got;
END $$;
SELECT t.drain('l');
-- our own errors are caught by their SQLSTATE
DO $$
BEGIN
	PERFORM aq.enqueue('no such queue', '1');
EXCEPTION WHEN undefined_object THEN
	RAISE NOTICE 'caught: %', sqlerrm;
END $$;
-- trigger: the message goes with the row
CREATE TABLE t.account (id integer PRIMARY KEY, balance numeric);
CREATE FUNCTION t.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.enqueue('l', to_jsonb(NEW), correlation => TG_OP);
	RETURN NEW;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE ON t.account FOR EACH ROW EXECUTE FUNCTION t.tell();
INSERT INTO t.account VALUES (1, 10), (2, 20);
UPDATE t.account SET balance = balance + 1;
BEGIN;
UPDATE t.account SET balance = 0;
ROLLBACK;
INSERT INTO t.account VALUES (1, 5);
SELECT correlation, payload FROM aq.dequeue('l', max_messages => 10);
-- deferred trigger: at commit
CREATE CONSTRAINT TRIGGER late AFTER DELETE ON t.account DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION t.tell();
BEGIN;
DELETE FROM t.account WHERE id = 1;
SELECT t.look('l') IS NULL;
COMMIT;
SELECT count(*) FROM aq.dequeue('l');
DROP TABLE t.account;
DROP FUNCTION t.tell();
-- a procedure that consumes in transactions of its own
SELECT t.put('l', 1, 25);
CREATE TABLE t.done (batch integer, n integer);
CREATE PROCEDURE t.consume(size integer) LANGUAGE plpgsql AS $$
DECLARE
	batch integer := 0;
	taken integer;
BEGIN
	LOOP
		batch := batch + 1;
		INSERT INTO t.done SELECT batch, payload::int FROM aq.dequeue('l', max_messages => size);
		GET DIAGNOSTICS taken = ROW_COUNT;
		IF batch = 2 THEN
			ROLLBACK;			-- the second batch goes back
		ELSE
			COMMIT;
		END IF;
		EXIT WHEN taken = 0;
	END LOOP;
END $$;
CALL t.consume(10);
SELECT batch, count(*), min(n), max(n) FROM t.done GROUP BY 1 ORDER BY 1;
TRUNCATE t.done;
-- a loop over the messages with a commit each
SELECT t.put('l', 1, 5);
DO $$
DECLARE m record;
BEGIN
	LOOP
		SELECT * INTO m FROM aq.dequeue('l');
		EXIT WHEN NOT FOUND;
		INSERT INTO t.done VALUES (m.attempts, m.payload::int);
		IF m.payload = '3' AND m.attempts = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
	END LOOP;
END $$;
SELECT * FROM t.done ORDER BY n;
TRUNCATE t.done;
-- aq.wait called in a procedure, in a DO block, in a block with an exception handler
SELECT t.put('l', 1);
DO $$
DECLARE ready boolean;
BEGIN
	CALL aq.wait('l', NULL, '10 s', ready);
	RAISE NOTICE 'ready %', ready;
	PERFORM aq.purge_queue('l');
	COMMIT;
	CALL aq.wait('l', NULL, '0', ready);
	RAISE NOTICE 'ready %', ready;
	BEGIN
		CALL aq.wait('l', NULL, '1 ms', ready);
		RAISE NOTICE 'ready %', ready;
	EXCEPTION WHEN OTHERS THEN
		RAISE NOTICE 'refused in an atomic block: %', sqlstate;
	END;
END $$;
CREATE PROCEDURE t.take_one(INOUT got jsonb) LANGUAGE plpgsql AS $$
DECLARE ready boolean;
BEGIN
	CALL aq.wait('l', NULL, '10 s', ready);
	SELECT payload INTO got FROM aq.dequeue('l');
	COMMIT;
END $$;
SELECT t.put('l', 7);
CALL t.take_one(NULL);
-- cursors over dequeue
SELECT t.put('l', 1, 10);
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM aq.dequeue('l', max_messages => 5);
FETCH 2 FROM c;
FETCH ALL FROM c;
CLOSE c;
COMMIT;
SELECT t.look('l');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT payload FROM aq.dequeue('l', max_messages => 3);
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
SELECT t.look('l');
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT payload FROM aq.dequeue('l', max_messages => 12);	-- three: 6 and 7 were rolled back
COMMIT;
FETCH ALL FROM c;
CLOSE c;
SELECT t.drain('l');
-- a cursor that was opened and never read took nothing or everything, but loses nothing
SELECT t.put('l', 1, 3);
BEGIN;
DECLARE c CURSOR FOR SELECT payload FROM aq.dequeue('l', max_messages => 3);
ROLLBACK;
SELECT t.drain('l');
-- FOR loop over dequeue (a portal) with an EXIT in the middle
SELECT t.put('l', 1, 3);
DO $$
DECLARE m record;
BEGIN
	FOR m IN SELECT payload FROM aq.dequeue('l', max_messages => 3) LOOP
		RAISE NOTICE 'one of them: %', m.payload;
		EXIT;
	END LOOP;
END $$;
SELECT t.look('l') IS NULL;
-- dynamic SQL with parameters
DO $$
DECLARE got jsonb; id uuid;
BEGIN
	EXECUTE 'SELECT aq.enqueue($1, $2, priority => $3)' INTO id USING 'l', '{"dynamic": true}'::jsonb, 2;
	EXECUTE 'SELECT payload FROM aq.dequeue($1, msgid => $2)' INTO got USING 'l', id;
	RAISE NOTICE '%', got;
END $$;
-- prepared statements with inferred parameter types, executed often enough for a generic plan
PREPARE put AS SELECT aq.enqueue($1, $2) IS NOT NULL;
PREPARE take AS SELECT payload FROM aq.dequeue($1, max_messages => $2);
EXECUTE put('l', '1'); EXECUTE put('l', '2'); EXECUTE put('l', '3'); EXECUTE put('l', '4'); EXECUTE put('l', '5'); EXECUTE put('l', '6'); EXECUTE put('l', '7');
EXECUTE take('l', 1); EXECUTE take('l', 1); EXECUTE take('l', 1); EXECUTE take('l', 1); EXECUTE take('l', 1); EXECUTE take('l', 1); EXECUTE take('l', 9);
-- the queue dropped and made again under a prepared statement
SELECT aq.drop_queue('l');
EXECUTE put('l', '8');
SELECT aq.create_queue('l', retry_delay => '0');
EXECUTE put('l', '9');
EXECUTE take('l', 1);
DEALLOCATE ALL;
-- dequeue in a CTE, a join, an INSERT ... SELECT, a LATERAL over several queues
SELECT aq.create_queue('l2', retry_delay => '0');
SELECT t.put('l', 1, 3), t.put('l2', 11, 13);
WITH m AS (SELECT * FROM aq.dequeue('l', max_messages => 2)) SELECT a.payload FROM m a JOIN m b USING (msgid);
SELECT q, payload FROM unnest(ARRAY['l', 'l2']) AS q, LATERAL aq.dequeue(q, max_messages => 2);
WITH moved AS (SELECT payload FROM aq.dequeue('l2', max_messages => 10)) SELECT count(aq.enqueue('l', payload)) FROM moved;
SELECT t.drain('l');
-- a function in SQL, inlined or not
CREATE FUNCTION t.next() RETURNS jsonb LANGUAGE sql AS $$ SELECT payload FROM aq.dequeue('l') $$;
SELECT t.put('l', 1, 2);
SELECT t.next(), t.next(), t.next() IS NULL;
DROP FUNCTION t.next();
DROP PROCEDURE t.consume(integer);
DROP PROCEDURE t.take_one(jsonb);
DROP TABLE t.done;
SELECT aq.drop_queue('l');
SELECT aq.drop_queue('l2');
