-- Every call form of the documentation, from psql and from plpgsql.  The same
-- forms by psycopg and pgjdbc are in tests/clients.
\pset format unaligned
\pset tuples_only on
CREATE TYPE t.parcel AS (id integer, weight numeric, destination text);
SELECT aq.create_queue('forms');
SELECT aq.create_queue('forms_failed', comment => 'those that fail');
SELECT aq.create_queue('forms_topic', multiple_consumers => true);
SELECT aq.create_queue('forms_typed', 't.parcel');
SELECT aq.create_queue(queue_name => 'forms_text', payload_type => 'text', shards => 2);
SELECT aq.create_queue('forms_bytea', 'bytea'::regtype);
SELECT aq.alter_queue('forms', max_retries => 3, retry_delay => '0', exception_queue => 'forms_failed');
SELECT aq.subscribe('forms_topic', 'billing');
SELECT aq.subscribe('forms_topic', 'alerts', rule => $$ payload->>'kind' = 'failure' OR priority = 0 $$);
SELECT aq.alter_subscriber('forms_topic', 'alerts', $$ payload->>'kind' = 'failure' $$);
-- enqueue
SELECT aq.enqueue('forms', '{"n": 1}') IS NOT NULL;
SELECT aq.enqueue('forms', '{"n": 2}'::jsonb) IS NOT NULL;
SELECT aq.enqueue('forms', jsonb_build_object('n', 3), priority => 0) IS NOT NULL;
SELECT aq.enqueue('forms', '{"n": 4}', priority => 0, delay => '0 hours', expiration => '1 day', correlation => 'customer-17', properties => '{"source": "web"}') IS NOT NULL;
SELECT aq.enqueue(queue_name => 'forms', payload => '{"n": 5}') IS NOT NULL;
SELECT aq.enqueue('forms', payload => '{"n": 6}') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('forms', ARRAY['{"n": 7}', '{"n": 8}']));
SELECT cardinality(aq.enqueue_array('forms', ARRAY['{"n": 9}', '{"n": 10}']::jsonb[], priority => 2));
SELECT cardinality(aq.enqueue_array(queue_name => 'forms', payloads => '{11,12}'));
SELECT aq.enqueue('forms_typed', ROW(1, 2.5, 'Oslo')::t.parcel) IS NOT NULL;
SELECT aq.enqueue('forms_typed', '(2,3.5,Rome)') IS NOT NULL;
SELECT aq.enqueue('forms_text', 'hello') IS NOT NULL;
SELECT aq.enqueue('forms_bytea', '\xcafe'::bytea) IS NOT NULL;
SELECT aq.enqueue('forms_topic', '{"kind": "sale"}') IS NOT NULL;
SELECT aq.enqueue('forms_topic', '{"kind": "failure"}') IS NOT NULL;
SELECT aq.enqueue('forms_topic', '{"kind": "other"}', recipients => ARRAY['audit', 'billing']) IS NOT NULL;
-- dequeue
SELECT payload FROM aq.browse('forms', max_messages => 1);
SELECT payload FROM aq.browse('forms', NULL::jsonb, max_messages => 1);
SELECT payload, priority FROM aq.dequeue('forms');
SELECT msgid IS NOT NULL, payload FROM aq.dequeue('forms', max_messages => 2);
SELECT payload FROM aq.dequeue('forms', NULL::jsonb);
SELECT payload FROM aq.dequeue('forms', as_type => NULL::jsonb, max_messages => 2);
SELECT payload FROM aq.dequeue('forms', correlation => 'customer-%');
SELECT payload FROM aq.dequeue('forms', condition => $$payload->>'n' = '10'$$);
SELECT payload FROM aq.dequeue('forms', NULL, 1, 'remove', NULL, NULL, NULL, NULL);
SELECT payload FROM aq.dequeue(queue_name => 'forms', consumer => NULL, max_messages => 100, mode => 'remove', wait => '0');
SELECT (payload).destination, (payload).weight FROM aq.dequeue('forms_typed', NULL::t.parcel);
SELECT payload, sender, consumer_name, attempts, original_msgid FROM aq.dequeue_full('forms_typed', NULL::t.parcel);
SELECT payload FROM aq.dequeue('forms_text', as_type => NULL::text);
SELECT payload FROM aq.dequeue('forms_bytea', as_type => NULL::bytea);
SELECT payload FROM aq.dequeue('forms_topic', 'billing', 10);
SELECT payload FROM aq.dequeue('forms_topic', 'alerts');
SELECT payload FROM aq.dequeue('forms_topic', consumer => 'audit', max_messages => 10, wait => '1 second');
CALL aq.wait('forms', NULL, '0', NULL);
CALL aq.wait('forms_topic', 'billing', '0.01 seconds', NULL);
CALL aq.listen(ARRAY['forms', 'forms_topic'], ARRAY[NULL, 'billing'], '0', NULL, NULL);
-- the same from plpgsql, with variables of every type
DO $$
DECLARE
	q text := 'forms';
	a_text text := '{"v": "text"}';
	a_jsonb jsonb := '{"v": "jsonb"}';
	a_varchar varchar := '{"v": "varchar"}';
	a_parcel t.parcel := ROW(3, 4.5, 'Bern');
	some_text text[] := ARRAY['{"v": "a"}', '{"v": "b"}'];
	some_jsonb jsonb[] := ARRAY['{"v": "c"}', '{"v": "d"}'];
	id uuid;
	ids uuid[];
	ready boolean;
	who text;
	m record;
BEGIN
	id := aq.enqueue(q, a_text);
	PERFORM aq.enqueue(q, a_jsonb, priority => 1);
	PERFORM aq.enqueue(q, a_varchar);
	PERFORM aq.enqueue(q, '{"v": "literal"}');
	PERFORM aq.enqueue('forms_typed', a_parcel);
	ids := aq.enqueue_array(q, some_text);
	ids := ids || aq.enqueue_array(q, some_jsonb);
	RAISE NOTICE '% ids', cardinality(ids);
	CALL aq.wait(q, NULL, '1 s', ready);
	CALL aq.listen(ARRAY['forms_topic', q], ARRAY['billing', NULL], '1 s', q, who);
	RAISE NOTICE 'ready %, listen says % %', ready, q, who;
	FOR m IN SELECT d.msgid = id AS first, d.payload FROM aq.dequeue(q, max_messages => 100) d LOOP
		RAISE NOTICE '% %', m.first, m.payload;
	END LOOP;
	SELECT (payload).* INTO a_parcel FROM aq.dequeue('forms_typed', a_parcel);
	RAISE NOTICE '%', a_parcel;
	SELECT (payload).* INTO m FROM aq.dequeue('forms_typed', NULL::t.parcel);
	RAISE NOTICE 'found: %', FOUND;
END $$;
SELECT aq.purge_queue('forms'), aq.purge_queue('forms_topic', 'billing'), aq.purge_queue('forms_topic', condition => 'priority > 5');
SELECT aq.stop_queue('forms'), aq.start_queue('forms'), aq.stop_queue('forms', dequeue => false), aq.start_queue('forms', enqueue => true);
SELECT aq.grant_queue('forms', 'pg_monitor', 'enqueue'), aq.revoke_queue('forms', 'pg_monitor', 'enqueue'), aq.grant_queue('forms', NULL), aq.revoke_queue('forms', NULL);
SELECT aq.grant_consumer('forms_topic', 'billing', 'pg_monitor'), aq.revoke_consumer('forms_topic', 'billing', 'pg_monitor'), aq.grant_queue('forms', 'pg_monitor', 'enqueue, subscribe'), aq.revoke_queue('forms', 'pg_monitor', 'subscribe, enqueue');
SELECT aq.unsubscribe('forms_topic', 'alerts');
SELECT aq.drop_queue('forms'), aq.drop_queue('forms_failed'), aq.drop_queue('forms_topic', force => true),
	aq.drop_queue('forms_typed', true), aq.drop_queue('forms_text'), aq.drop_queue('forms_bytea');
DROP TYPE t.parcel;
-- SELECT * begins with the payload and ends with the wide columns
SELECT proname, proargnames[pronargs + 1 : pronargs + 7] FROM pg_proc
WHERE pronamespace = 'aq'::regnamespace AND proname IN ('dequeue', 'dequeue_full', 'browse') ORDER BY 1, pronargs;
