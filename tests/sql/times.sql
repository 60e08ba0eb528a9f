-- Delay, expiration, retention.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('w_dead');
SELECT aq.create_queue('w', exception_queue => 'w_dead');
SELECT aq.create_queue('w_drop');
-- delay: not before its time, then by itself
SELECT aq.enqueue('w', '"far"', delay => '1 day') AS far \gset
SELECT aq.enqueue('w', '"soon"', delay => '0.2 s') IS NOT NULL;
SELECT aq.enqueue('w', '"now"') IS NOT NULL;
SELECT payload FROM aq.dequeue('w');
CALL aq.wait('w', NULL, '60 s', NULL);
SELECT payload, round(extract(epoch FROM ready_at - enqueue_time), 1) FROM aq.dequeue_full('w', NULL::jsonb);
SELECT payload FROM aq.dequeue('w');
SELECT payload FROM aq.dequeue('w', msgid => :'far');		-- by its id it does not wait
SELECT aq.enqueue('w', '"far"', delay => '1 day') IS NOT NULL;
SELECT state, count(*) FROM aq.messages WHERE queue_name = 'w' GROUP BY 1;
SELECT aq.purge_queue('w');
-- delayed and rolled back, in a savepoint, delayed messages of one's own transaction
BEGIN; SELECT aq.enqueue('w', '"no"', delay => '0.05 s') IS NOT NULL; ROLLBACK;
BEGIN; SELECT aq.enqueue('w', '"own"', delay => '1 hour') IS NOT NULL; SELECT payload FROM aq.dequeue('w'); ROLLBACK;
-- expiration: into the exception queue, with its properties
SELECT aq.enqueue('w', '"short-lived"', expiration => '0.05 s', correlation => 'e', priority => 7) AS id \gset
SELECT aq.enqueue('w', '"long-lived"', expiration => '1 day') IS NOT NULL;
CALL aq.wait('w_dead', NULL, '60 s', NULL);
SELECT payload, correlation, priority, original_msgid = :'id' FROM aq.dequeue_full('w_dead', NULL::jsonb);
SELECT t.drain('w');
-- expired is invisible at once, moved or not; without exception queue it is gone
SELECT aq.enqueue('w_drop', '"gone"', expiration => '0.05 s') IS NOT NULL;
SELECT aq.enqueue('w', '"clock"', delay => '0.3 s') IS NOT NULL;
CALL aq.wait('w', NULL, '60 s', NULL);
SELECT t.drain('w'), t.drain('w_drop') IS NULL, t.look('w_drop') IS NULL;
CALL aq.wait('w_drop', NULL, '0', NULL);
SELECT aq.drop_queue('w_drop', force => true);
-- counted from ready, not from enqueue
SELECT aq.create_queue('w_late');
SELECT aq.enqueue('w_late', '1', delay => '0.2 s', expiration => '1 hour') IS NOT NULL;
CALL aq.wait('w_late', NULL, '60 s', NULL);
SELECT payload, expires_at - ready_at AS life, round(extract(epoch FROM ready_at - enqueue_time), 1) AS delay FROM aq.dequeue_full('w_late', NULL::jsonb);
-- a message in somebody's hands does not expire under them
SELECT aq.enqueue('w_late', '2', expiration => '0.5 s') IS NOT NULL;
SELECT aq.enqueue('w', '"clock"', delay => '0.7 s') IS NOT NULL;
BEGIN;
SELECT payload FROM aq.dequeue('w_late');
CALL aq.wait('w', NULL, '60 s', NULL);
COMMIT;
SELECT t.drain('w'), t.look('w_late') IS NULL;
-- given back after its time it has expired
SELECT aq.enqueue('w_late', '3', expiration => '0.5 s') IS NOT NULL;
SELECT aq.enqueue('w', '"clock"', delay => '0.7 s') IS NOT NULL;
BEGIN;
SELECT payload FROM aq.dequeue('w_late');
CALL aq.wait('w', NULL, '60 s', NULL);
ROLLBACK;
SELECT t.drain('w'), t.drain('w_late') IS NULL;
-- several consumers: expiry for each that has not consumed
SELECT aq.create_queue('w_topic', multiple_consumers => true, exception_queue => 'w_dead');
SELECT aq.subscribe('w_topic', 'a'), aq.subscribe('w_topic', 'b');
SELECT t.put('w_topic', 1);
SELECT aq.enqueue('w_topic', '2', expiration => '1 s') IS NOT NULL;
SELECT t.drain('w_topic', 'a');
CALL aq.wait('w_dead', NULL, '60 s', NULL);
SELECT t.drain('w_dead'), t.drain('w_topic', 'b'), t.drain('w_topic', 'a') IS NULL;
-- many at once
SELECT count(aq.enqueue('w', to_jsonb(n), delay => '0.1 s')) FROM generate_series(1, 2000) n;
SELECT count(aq.enqueue('w', to_jsonb(n), delay => '1 day')) FROM generate_series(2001, 4000) n;
DO $$
DECLARE
	ready boolean;
	got integer := 0;
	n integer;
	wrong integer := 0;
	bad integer;
BEGIN
	WHILE got < 2000 LOOP
		CALL aq.wait('w', NULL, '60 s', ready);
		EXIT WHEN NOT ready;
		SELECT count(*), count(*) FILTER (WHERE payload::int > 2000) INTO n, bad FROM aq.dequeue('w', max_messages => 700);
		got := got + n;
		wrong := wrong + bad;
		COMMIT;
	END LOOP;
	RAISE NOTICE 'got %, of those early %', got, wrong;
END $$;
SELECT aq.purge_queue('w');
SELECT count(aq.enqueue('w', to_jsonb(n), expiration => '0.001 s')) FROM generate_series(1, 2000) n;
DO $$
DECLARE ready boolean; got integer := 0; n integer;
BEGIN
	WHILE got < 2000 LOOP
		CALL aq.wait('w_dead', NULL, '60 s', ready);
		EXIT WHEN NOT ready;
		SELECT count(*) INTO n FROM aq.dequeue('w_dead', max_messages => 700);
		got := got + n;
		COMMIT;
	END LOOP;
	RAISE NOTICE 'expired into the exception queue: %', got;
END $$;
SELECT t.look('w') IS NULL;
-- retention: consumed messages stay to be seen, not to be taken
SELECT aq.alter_queue('w', retention => '1 day');
SELECT aq.enqueue('w', '"kept"') AS id \gset
SELECT payload FROM aq.dequeue('w');
SELECT state FROM aq.messages WHERE queue_name = 'w' AND msgid = :'id';
SELECT t.look('w') IS NULL;
SELECT payload FROM aq.dequeue('w', msgid => :'id');
SELECT aq.drop_queue('w');
SELECT aq.drop_queue('w_topic'), aq.drop_queue('w_late', force => true), aq.drop_queue('w_dead');
