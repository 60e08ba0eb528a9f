-- Propagation: messages of a queue go on to another queue of the database.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
-- t.arrived takes so many messages as they arrive
CREATE FUNCTION t.arrived(queue text, wanted integer, consumer text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	payloads text[] := '{}';
	m record;
BEGIN
	WHILE cardinality(payloads) < wanted LOOP
		FOR m IN SELECT d.payload FROM aq.dequeue(queue, as_type => NULL::text, consumer => consumer, max_messages => wanted, wait => '1 minute') d LOOP
			payloads := payloads || m.payload;
		END LOOP;
		EXIT WHEN NOT FOUND;
	END LOOP;
	RETURN array_to_string(payloads, ' ', 'null');
END $$;
-- t.until waits until a condition is true
CREATE PROCEDURE t.until(condition text) LANGUAGE plpgsql AS $$
DECLARE
	done boolean;
BEGIN
	FOR i IN 1..3000 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		EXIT WHEN done;
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
	RAISE NOTICE '%: %', condition, coalesce(done, false);
END $$;
-- what there is before, and what comes later, in order, with every property
SELECT aq.create_queue('pp_a', 'text'), aq.create_queue('pp_b', 'text'), aq.create_queue('pp_x', 'text');
SELECT aq.enqueue('pp_a', 'first', priority => 3, correlation => 'c', properties => '{"k": 1}', sender => 's', exception_queue => 'pp_x', expiration => '1 day') AS first \gset
SELECT aq.create_propagation('pp_a', 'pp_b') > 0;
SELECT payload, priority, attempts, correlation, properties, sender, exception_queue, original_msgid = :'first', msgid <> :'first', state, expires_at - enqueue_time BETWEEN '86000 s' AND '86400 s'
FROM aq.dequeue_full('pp_b', as_type => NULL::text, wait => '1 minute');
SELECT count(*) FROM aq.enqueue_array('pp_a', ARRAY(SELECT i::text FROM generate_series(1, 9) i)) ids, unnest(ids);
SELECT t.arrived('pp_b', 9);
-- one that was rolled back stays; one with a delay comes when it is ready
BEGIN;
SELECT aq.enqueue('pp_a', 'never') IS NOT NULL;
ROLLBACK;
SELECT aq.enqueue('pp_a', 'later', delay => '0.5 s') IS NOT NULL, aq.enqueue('pp_a', 'null is a payload, too') IS NOT NULL, aq.enqueue('pp_a', NULL::text) IS NOT NULL;
SELECT t.arrived('pp_b', 3);
SELECT state, role = current_user, latency, duration, every, failures, last_error FROM aq.propagations WHERE queue_name = 'pp_a';
CALL t.until($$messages = 13 AND bytes > 0 AND batches > 0 AND last_run IS NOT NULL FROM aq.propagations WHERE queue_name = 'pp_a'$$);
-- a chain, and an exception queue that the destination cannot use
SELECT aq.create_queue('pp_c', 'text');
SELECT aq.create_propagation('pp_b', 'pp_c') > 0;
SELECT aq.enqueue('pp_a', 'on', exception_queue => 'pp_c') AS first \gset
SELECT payload, exception_queue, original_msgid = :'first' FROM aq.dequeue_full('pp_c', as_type => NULL::text, wait => '1 minute');
SELECT aq.drop_propagation('pp_b', 'pp_c');
-- topics: to subscribers, rules on both sides, recipients there
SELECT aq.create_queue('pp_t', 'text', multiple_consumers => true), aq.create_queue('pp_u', 'text', multiple_consumers => true);
SELECT aq.subscribe('pp_u', 'all'), aq.subscribe('pp_u', 'red', rule => $$correlation = 'red'$$);
SELECT aq.create_propagation('pp_t', 'pp_u', rule => 'priority < 5') > 0;
SELECT aq.subscribe('pp_t', 'here');
SELECT consumer, kind, rule FROM aq.subscribers WHERE queue_name = 'pp_t' ORDER BY consumer COLLATE "C";
SELECT aq.enqueue('pp_t', 'one', correlation => 'red') IS NOT NULL, aq.enqueue('pp_t', 'two', priority => 7) IS NOT NULL, aq.enqueue('pp_t', 'three') IS NOT NULL;
SELECT t.arrived('pp_u', 2, 'all'), t.arrived('pp_u', 1, 'red'), t.arrived('pp_t', 3, 'here');
SELECT aq.subscribe('pp_u', 'bob', rule => 'false');
SELECT aq.enqueue('pp_t', 'for one', recipients => '{bob -> pp_u}') IS NOT NULL;
SELECT t.arrived('pp_u', 1, 'bob');
-- any address, by a schedule without destination
SELECT aq.create_propagation('pp_t', NULL) > 0;
SELECT aq.enqueue('pp_t', 'anywhere', recipients => '{-> pp_c, here}') IS NOT NULL;
SELECT t.arrived('pp_c', 1), t.arrived('pp_t', 1, 'here');
-- all four pairs of stores: priorities are limited only where the store limits them
SELECT aq.create_queue_table('t.pp_table', 'text', sort_list => 'priority, enq_time');
SELECT aq.create_queue('pp_d', queue_table => 't.pp_table'), aq.create_queue('pp_e', queue_table => 't.pp_table');
SELECT aq.create_propagation('pp_d', 'pp_e') > 0, aq.create_propagation('pp_e', 'pp_c') > 0, aq.alter_propagation('pp_e', 'pp_c', enabled => false);
SELECT aq.enqueue('pp_d', 'far behind', priority => 100) IS NOT NULL, aq.enqueue('pp_d', 'far ahead', priority => -1) IS NOT NULL;
CALL t.until($$count(*) = 2 FROM aq.browse('pp_e', as_type => NULL::text)$$);
SELECT payload, priority FROM aq.browse('pp_e', as_type => NULL::text);
SELECT aq.alter_propagation('pp_e', 'pp_c', enabled => true);
CALL t.until($$count(*) = 2 FROM aq.browse('pp_c', as_type => NULL::text)$$);
SELECT payload, priority FROM aq.dequeue('pp_c', as_type => NULL::text, max_messages => 2);
SELECT aq.drop_propagation('pp_a', 'pp_b'), aq.create_propagation('pp_a', 'pp_d') > 0;
SELECT aq.enqueue('pp_a', 'through three') IS NOT NULL;
SELECT t.arrived('pp_c', 1);
-- a destination that refuses: nothing is lost or counted as an attempt, the schedule pauses, and goes on
SELECT aq.stop_queue('pp_c', dequeue => false);
SELECT aq.enqueue('pp_a', 'patient') IS NOT NULL;
CALL t.until($$failures > 1 FROM aq.propagations WHERE queue_name = 'pp_e'$$);
SELECT state, last_error, last_error_time IS NOT NULL FROM aq.propagations WHERE queue_name = 'pp_e';
-- what it says is not for those who only enqueue: it can be a part of a payload, or the address of a link
CREATE ROLE regress_pp_sender;
SELECT aq.grant_queue('pp_e', 'regress_pp_sender', 'enqueue');
SET ROLE regress_pp_sender;
SELECT state, last_error, last_error_time IS NOT NULL FROM aq.propagations WHERE queue_name = 'pp_e';
RESET ROLE;
SELECT aq.revoke_queue('pp_e', 'regress_pp_sender');
DROP ROLE regress_pp_sender;
SELECT payload, attempts FROM aq.browse('pp_e', as_type => NULL::text);
SELECT aq.start_queue('pp_c');
SELECT payload, attempts FROM aq.dequeue('pp_c', as_type => NULL::text, wait => '1 minute');
CALL t.until($$failures = 0 AND state = 'enabled' FROM aq.propagations WHERE queue_name = 'pp_e'$$);
-- a stopped destination does not disable it, however long
SELECT aq.stop_queue('pp_c', dequeue => false);
SELECT aq.enqueue('pp_e', 'stays') IS NOT NULL;
UPDATE aq_internal.propagation SET failures = 15 WHERE queue_id = (SELECT queue_id FROM aq.queues WHERE queue_name = 'pp_e');
SELECT aq.alter_propagation('pp_e', 'pp_c', latency => '0');
CALL t.until($$failures > 15 FROM aq.propagations WHERE queue_name = 'pp_e'$$);
SELECT state, last_error FROM aq.propagations WHERE queue_name = 'pp_e';
SELECT aq.start_queue('pp_c'), aq.alter_propagation('pp_e', 'pp_c', enabled => true);
-- an attempt during the commit above can find the queue still stopped; then failures becomes 0 after the arrival
SELECT t.arrived('pp_c', 1);
CALL t.until($$failures = 0 AND state = 'enabled' FROM aq.propagations WHERE queue_name = 'pp_e'$$);
SELECT state, failures FROM aq.propagations WHERE queue_name = 'pp_e';
-- windows and latency
SELECT aq.alter_propagation('pp_a', 'pp_d', start_time => now() + '1 hour');
SELECT aq.enqueue('pp_a', 'in an hour') IS NOT NULL;
SELECT state, lag FROM aq.propagations WHERE queue_name = 'pp_a';
SELECT aq.alter_propagation('pp_a', 'pp_d', start_time => now() - interval '1 day', duration => '1 s', every => '1 day 0.5 s');
SELECT t.arrived('pp_c', 1);
SELECT aq.alter_propagation('pp_a', 'pp_d', duration => '0', every => '0', latency => '0.3 s');
SELECT aq.enqueue('pp_a', 'after the latency') IS NOT NULL;
SELECT t.arrived('pp_c', 1);
SELECT latency, duration, every FROM aq.propagations WHERE queue_name = 'pp_a';
-- privileges: of the role that schedules, with each batch
CREATE ROLE pp_user;
SELECT aq.create_queue('pp_g', 'text'), aq.create_queue('pp_h', 'text');
SET ROLE pp_user;
SELECT aq.create_propagation('pp_g', 'pp_h');
RESET ROLE;
SELECT aq.grant_queue('pp_g', 'pp_user', 'enqueue');
SET ROLE pp_user;
SELECT aq.create_propagation('pp_g', 'pp_h');
RESET ROLE;
SELECT aq.grant_queue('pp_g', 'pp_user', 'dequeue');
SET ROLE pp_user;
SELECT aq.create_propagation('pp_g', 'pp_h');
RESET ROLE;
SELECT aq.grant_queue('pp_h', 'pp_user', 'enqueue');
SET ROLE pp_user;
SELECT aq.create_propagation('pp_g', 'pp_h') > 0;
SELECT queue_name, destination, role FROM aq.propagations;
SELECT aq.drop_propagation('pp_a', 'pp_d');
RESET ROLE;
SELECT aq.enqueue('pp_g', 'allowed') IS NOT NULL;
SELECT t.arrived('pp_h', 1);
-- the sixteenth failure in a row disables it
SELECT aq.revoke_queue('pp_h', 'pp_user');
UPDATE aq_internal.propagation SET failures = 15 WHERE queue_id = (SELECT queue_id FROM aq.queues WHERE queue_name = 'pp_g');
SELECT aq.alter_propagation('pp_g', 'pp_h', latency => '0');
SELECT aq.enqueue('pp_g', 'not any more') IS NOT NULL;
CALL t.until($$state = 'disabled' FROM aq.propagations WHERE queue_name = 'pp_g'$$);
SELECT failures, last_error FROM aq.propagations WHERE queue_name = 'pp_g';
SELECT aq.grant_queue('pp_h', 'pp_user', 'enqueue'), aq.alter_propagation('pp_g', 'pp_h', enabled => true);
SELECT t.arrived('pp_h', 1);
-- only the queue's owner changes and ends what another role has scheduled
SELECT aq.create_propagation('pp_g', 'pp_b', start_time => now() + '1 hour') > 0;
SET ROLE pp_user;
SELECT aq.alter_propagation('pp_g', 'pp_b', enabled => false);
SELECT aq.drop_propagation('pp_g', 'pp_b');
RESET ROLE;
SELECT aq.drop_propagation('pp_g', 'pp_b');
-- a rolled back batch is no attempt, of a sharded queue either
CALL t.until($$failures = 0 FROM aq.propagations WHERE queue_name = 'pp_g'$$);
SELECT aq.stop_queue('pp_h', dequeue => false);
SELECT aq.enqueue('pp_g', 'not counted') IS NOT NULL;
CALL t.until($$failures > 1 FROM aq.propagations WHERE queue_name = 'pp_g'$$);
SELECT payload, attempts FROM aq.browse('pp_g', as_type => NULL::text);
SELECT aq.start_queue('pp_h');
SELECT t.arrived('pp_h', 1);
-- errors
BEGIN;
SELECT aq.alter_propagation('pp_g', 'pp_h', latency => '0');
PREPARE TRANSACTION 'pp';
SELECT aq.create_propagation('pp_g', 'pp_h');
SELECT aq.create_propagation('pp_none', 'pp_h');
SELECT aq.create_propagation('pp_g', 'pp_none');
SELECT aq.create_propagation('pp_g', 'pp_g');
SELECT aq.create_propagation('pp_g', NULL);
SELECT aq.create_propagation(NULL, 'pp_h');
SELECT aq.create_propagation('pp_h', 'pp_b@elsewhere');
SELECT aq.create_propagation('pp_h', 'pp_g_exceptions');
SELECT aq.create_propagation('pp_h', 'pp_b', latency => '-1 s');
SELECT aq.create_propagation('pp_h', 'pp_b', start_time => 'infinity');
SELECT aq.create_propagation('pp_h', 'pp_b', rule => 'true');
SELECT aq.create_queue('pp_json');
SELECT aq.create_propagation('pp_h', 'pp_json');
SELECT aq.alter_propagation('pp_h', 'pp_b', enabled => true);
SELECT aq.drop_propagation('pp_h', 'pp_b');
SELECT aq.create_queue_table('t.pp_groups', 'text', message_grouping => true);
SELECT aq.create_queue('pp_group', queue_table => 't.pp_groups');
SELECT aq.create_propagation('pp_group', 'pp_b');
-- a circle is refused, unless a rule can end it; then a message goes round at most 32 times, and stays
\set VERBOSITY default
SELECT aq.create_queue(q, 'text') FROM unnest(ARRAY['pp_r1', 'pp_r2', 'pp_r3']) q;
SELECT aq.create_propagation('pp_r1', 'pp_r2') > 0, aq.create_propagation('pp_r2', 'pp_r3') > 0;
SELECT aq.create_propagation('pp_r3', 'pp_r1');
SELECT aq.create_queue(q, 'text', multiple_consumers => true) FROM unnest(ARRAY['pp_s1', 'pp_s2']) q;
SELECT aq.create_propagation('pp_s1', 'pp_s2') > 0;
SELECT aq.create_propagation('pp_s2', 'pp_s1');
SELECT aq.create_propagation('pp_s2', 'pp_s1', rule => 'true') > 0;
SELECT aq.enqueue('pp_s1', 'round', properties => '{"k": 1, "aq$hops": 30}') AS first \gset
CALL t.until($$count(*) = 1 FROM aq.propagations WHERE state = 'retrying' AND queue_name LIKE 'pp_s%'$$);
SELECT state, last_error FROM aq.propagations WHERE queue_name LIKE 'pp_s%' ORDER BY state;
SELECT consumer, payload, properties, original_msgid = :'first' FROM aq.messages WHERE queue_name LIKE 'pp_s%' AND state = 'READY';
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['pp_r1', 'pp_r2', 'pp_r3', 'pp_s1', 'pp_s2']) q;
\set VERBOSITY terse
-- a dead letter starts anew, whatever was written there when it was enqueued
SELECT aq.create_queue(q, 'text') FROM unnest(ARRAY['pp_dead', 'pp_saved']) q;
SELECT aq.create_propagation('pp_dead_exceptions', 'pp_saved') > 0;
SELECT count(aq.enqueue('pp_dead', 'not stuck', expiration => '1 ms', properties => '{"aq$hops": 32}'));
CALL t.until($$count(*) = 1 FROM aq.messages WHERE queue_name = 'pp_saved'$$);
SELECT payload, properties FROM aq.messages WHERE queue_name = 'pp_saved';
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['pp_dead', 'pp_saved']) q;
-- a schedule goes with its queue, and the subscriber with the schedule
SELECT aq.drop_propagation('pp_t', 'pp_u');
SELECT consumer, kind FROM aq.subscribers WHERE queue_name = 'pp_t' AND kind = 'subscriber' ORDER BY consumer COLLATE "C";
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['pp_a', 'pp_d', 'pp_e', 'pp_t', 'pp_u', 'pp_b', 'pp_c', 'pp_x', 'pp_g', 'pp_h', 'pp_json', 'pp_group']) q;
SELECT count(*) FROM aq_internal.propagation;
SELECT aq.drop_queue_table('t.pp_table'), aq.drop_queue_table('t.pp_groups');
DROP ROLE pp_user;
DROP FUNCTION t.arrived;
DROP PROCEDURE t.until;
-- without schedules, there is no process
DO $$
BEGIN
	FOR i IN 1..3000 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgaq propagation' AND datname = current_database());
		PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
	END LOOP;
END $$;
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq propagation' AND datname = current_database();
