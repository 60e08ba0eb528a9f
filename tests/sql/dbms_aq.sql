-- Package dbms_aq: enqueue and dequeue over sharded queues, called as Oracle's programs do.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
SET timezone = 'UTC';
CALL dbms_aqadm.create_sharded_queue('orders', queue_payload_type => 'ORDER_T', max_retries => 2);
CALL dbms_aqadm.create_sharded_queue('raws', queue_payload_type => 'RAW');
CALL dbms_aqadm.create_sharded_queue('docs', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_sharded_queue('texts', queue_payload_type => 'VARCHAR2');
CALL dbms_aqadm.create_sharded_queue('xmls', queue_payload_type => 'XMLTYPE');
CALL dbms_aqadm.create_sharded_queue('topic', multiple_consumers => true, queue_payload_type => 'JSON');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['orders', 'raws', 'docs', 'texts', 'xmls', 'topic']) q \gexec
CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('KSUB_1', NULL, NULL));
CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('KSUB_2', NULL, NULL), rule => 'tab.priority = 0 OR tab.user_data IS NULL');

-- every property in, and out again
DO $$
DECLARE
	eo dbms_aq.enqueue_options_t;
	dopt dbms_aq.dequeue_options_t;
	mp dbms_aq.message_properties_t;
	m order_t;
	id uuid;
	id2 uuid;
BEGIN
	eo.visibility := dbms_aq.on_commit();
	eo.delivery_mode := dbms_aq.persistent();
	mp.priority := 2;
	mp.delay := dbms_aq.no_delay();
	mp.expiration := 60;
	mp.correlation := 'order-1';
	mp.sender_id := sys.aq$_agent('me', NULL, NULL);
	mp.user_property := '{"a": 1}';
	m := ROW(1, 'hello');
	CALL dbms_aq.enqueue(queue_name => 'ora.orders', enqueue_options => eo, message_properties => mp, payload => m, msgid => id);
	COMMIT;
	mp := NULL;
	m := NULL;
	dopt.dequeue_mode := dbms_aq.remove();
	dopt.navigation := dbms_aq.first_message();
	dopt.visibility := dbms_aq.on_commit();
	dopt.wait := dbms_aq.no_wait();
	CALL dbms_aq.dequeue(queue_name => 'ORDERS', dequeue_options => dopt, message_properties => mp, payload => m, msgid => id2);
	RAISE NOTICE '% %', m, id = id2;
	RAISE NOTICE 'priority % delay % expiration % correlation % attempts % state % sender % property % mode %', mp.priority, mp.delay,
		mp.expiration, mp.correlation, mp.attempts, mp.state, (mp.sender_id).name, mp.user_property, mp.delivery_mode;
	RAISE NOTICE 'enqueued lately %, exception queue % original % group % recipients %', mp.enqueue_time > now() - interval '1 minute',
		mp.exception_queue, mp.original_msgid, mp.transaction_group, mp.recipient_list;
	/* the defaults */
	CALL dbms_aq.enqueue('orders', NULL, NULL, m, id);
	CALL dbms_aq.dequeue('orders', dopt, mp, m, id2);
	RAISE NOTICE 'priority % delay % expiration % correlation %', mp.priority, mp.delay, mp.expiration, mp.correlation;
END $$;

-- no message: ORA-25228, which a program can catch
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	m order_t;
	id uuid;
BEGIN
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => dbms_aq.no_wait()), mp, m, id);
EXCEPTION WHEN SQLSTATE 'AQ063' THEN
	RAISE NOTICE '%', sqlerrm;
END $$;

-- payloads of every type; a text payload is read as, and written from, any type
\set take 'dbms_aq.dequeue_options_t(wait => 0, navigation => 1)'
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0);
	id uuid;
	r bytea := '\xcafe';
	j jsonb := '{"n": 1}';
	t text := 'a text';
	v varchar := '{"v": 1}';
	x xml := '<a/>';
	m order_t;
BEGIN
	CALL dbms_aq.enqueue('raws', NULL, NULL, r, id);
	CALL dbms_aq.enqueue('docs', NULL, NULL, j, id);
	CALL dbms_aq.enqueue('docs', NULL, NULL, v, id);
	CALL dbms_aq.enqueue('docs', NULL, NULL, '{"literal": 1}', id);
	CALL dbms_aq.enqueue('texts', NULL, NULL, t, id);
	CALL dbms_aq.enqueue('xmls', NULL, NULL, x, id);
	CALL dbms_aq.enqueue('orders', NULL, NULL, '(5,literal)', id);
	CALL dbms_aq.enqueue('orders', NULL, NULL, NULL::order_t, id);
	CALL dbms_aq.dequeue('raws', o, mp, r, id);
	CALL dbms_aq.dequeue('docs', o, mp, j, id);
	CALL dbms_aq.dequeue('docs', o, mp, v, id);
	CALL dbms_aq.dequeue('texts', o, mp, t, id);
	CALL dbms_aq.dequeue('xmls', o, mp, x, id);
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE '% % % % % %', r, j, v, t, x, m;
	CALL dbms_aq.dequeue('docs', o, mp, t, id);
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE '% %', t, m;
END $$;
SELECT t.error($$CALL dbms_aq.enqueue('docs', NULL, NULL, '\xcafe'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('docs', NULL, NULL, NULL::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('docs', NULL, NULL, 'no json', NULL)$$);

-- modes: browse leaves it, locked keeps it, remove_nodata takes it without its payload
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0);
	id uuid;
	m order_t;
	r bytea;
BEGIN
	CALL dbms_aq.enqueue('orders', NULL, NULL, ROW(7, 'modes')::order_t, id);
	CALL dbms_aq.enqueue('raws', NULL, NULL, '\x01', id);
	COMMIT;
	o.dequeue_mode := dbms_aq.browse();
	o.navigation := dbms_aq.first_message();
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE 'browse %', m;
	o.dequeue_mode := dbms_aq.locked();
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE 'locked %', m;
	COMMIT;
	o.dequeue_mode := dbms_aq.remove_nodata();
	o.msgid := id;
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE 'remove_nodata % %', m, m IS NULL;
	o.msgid := NULL;
	CALL dbms_aq.dequeue('raws', o, mp, r, id);
	RAISE NOTICE 'remove_nodata of RAW: % bytes', length(r);
END $$;
SELECT (SELECT count(*) FROM "aq$orders"), (SELECT count(*) FROM "aq$raws");
-- a variable of any type will do, also in an array; the other modes need the queue's
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	mps dbms_aq.message_properties_array_t;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => dbms_aq.remove_nodata(), navigation => 1);
	id uuid;
	ids dbms_aq.msgid_array_t;
	m order_t;
	r bytea;
	rs bytea[];
	j jsonb;
	n integer;
BEGIN
	FOR i IN 1 .. 4 LOOP
		CALL dbms_aq.enqueue('orders', NULL, NULL, ROW(i, 'any type')::order_t, id);
	END LOOP;
	CALL dbms_aq.enqueue('raws', NULL, NULL, '\x01', id);
	CALL dbms_aq.dequeue('orders', o, mp, r, id);
	RAISE NOTICE 'RAW of % bytes', length(r);
	CALL dbms_aq.dequeue('orders', o, mp, j, id);
	RAISE NOTICE 'JSON %', j;
	CALL dbms_aq.dequeue_array('orders', o, 10, mps, rs, ids, n);
	RAISE NOTICE 'array of %: %', n, rs;
	CALL dbms_aq.dequeue('raws', o, mp, m, id);
	RAISE NOTICE 'object %', m;
END $$;
SELECT (SELECT count(*) FROM "aq$orders"), (SELECT count(*) FROM "aq$raws");
SELECT t.error(format('CALL dbms_aq.dequeue(%L, dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => %s), NULL, NULL::bytea, NULL)', 'orders', mode))
	FROM unnest(ARRAY[dbms_aq.browse(), dbms_aq.locked(), dbms_aq.remove()]) mode;

-- choosing: correlation pattern, condition over tab, message id
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	m order_t;
	id uuid;
	first uuid;
BEGIN
	FOR i IN 1 .. 4 LOOP
		CALL dbms_aq.enqueue('orders', NULL, dbms_aq.message_properties_t(correlation => 'c' || i, priority => i), ROW(i, 'choose')::order_t, id);
		first := coalesce(first, id);
	END LOOP;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, correlation => '%3'), mp, m, id);
	RAISE NOTICE 'correlation %', m;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'tab.user_data.id > 2 AND tab.corrid = ''c4'''), mp, m, id);
	RAISE NOTICE 'condition %', m;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'priority = 2'), mp, m, id);
	RAISE NOTICE 'condition %', m;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(msgid => first), mp, m, id);
	RAISE NOTICE 'msgid %', m;
	/* a message that is not there is not waited for */
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(msgid => first), mp, m, id);
EXCEPTION WHEN SQLSTATE 'AQ017' THEN
	RAISE NOTICE '%', replace(sqlerrm, first::text, '...');
END $$;
-- names in a condition are the caller's, also in a function that it calls, and in the background
CREATE FUNCTION ora.wanted(order_t) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1 = ROW(9, 'named')::order_t; END $$;
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	m order_t;
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, ROW(8, 'named')::order_t, id);
	CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, ROW(9, 'named')::order_t, id);
	CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(visibility => 1), NULL, ROW(9, 'named')::order_t, id);
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'wanted(tab.user_data)'), mp, m, id);
	RAISE NOTICE 'wanted %', m;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, visibility => 1, deq_condition => 'wanted(tab.user_data)'), mp, m, id);
	RAISE NOTICE 'wanted %', m;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'tab.user_data = ROW(8, ''named'')::order_t'), mp, m, id);
	RAISE NOTICE 'the other %', m;
END $$;
DROP FUNCTION ora.wanted;

-- a delayed message is reached by its id only; a state is told
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	m order_t;
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('orders', NULL, dbms_aq.message_properties_t(delay => 3600, expiration => 10), ROW(8, 'delayed')::order_t, id);
	COMMIT;
	CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(msgid => id), mp, m, id);
	RAISE NOTICE '% delay % expiration % state %', m, mp.delay, mp.expiration, mp.state;
END $$;

-- recipients and consumers; an unknown consumer finds nothing
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	l_recipients dbms_aq.aq$_recipient_list_t;
	id uuid;
	j jsonb;
BEGIN
	l_recipients[1] := sys.aq$_agent('ksub_2', NULL, NULL);
	l_recipients[2] := sys.aq$_agent('GUEST', 'ora.topic', 0);
	mp.recipient_list := l_recipients;
	CALL dbms_aq.enqueue('topic', NULL, mp, '{"to": "list"}', id);
	CALL dbms_aq.enqueue('topic', NULL, NULL, '{"to": "subscribers"}', id);
	CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'guest'), mp, j, id);
	RAISE NOTICE 'guest % %', j, mp.recipient_list;
	CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'KSUB_2'), mp, j, id);
	RAISE NOTICE 'ksub_2 %', j;
	CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'KSUB_1'), mp, j, id);
	RAISE NOTICE 'ksub_1 %', j;
	CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'no such/consumer'), mp, j, id);
EXCEPTION WHEN SQLSTATE 'AQ063' THEN
	RAISE NOTICE '%', sqlerrm;
END $$;

-- retries: a rolled back dequeue comes back with its attempts counted
BEGIN;
CALL dbms_aq.enqueue('orders', NULL, NULL, '(9,retry)', NULL) \g /dev/null
COMMIT;
BEGIN;
CALL dbms_aq.dequeue('orders', :take, NULL, NULL::order_t, NULL) \g /dev/null
ROLLBACK;
CALL dbms_aq.dequeue('orders', :take, NULL, NULL::text, NULL) \gset
SELECT (:'message_properties'::dbms_aq.message_properties_t).attempts, :'payload';

-- a message that could not be processed is dropped, or goes to its exception queue
CALL dbms_aqadm.create_eq_exception_queue('orders', 'failed');
CALL dbms_aqadm.start_queue('failed', enqueue => false);
CALL dbms_aq.enqueue('orders', NULL, dbms_aq.message_properties_t(expiration => 0), '(10,late)', NULL) \gset
CALL dbms_aq.dequeue('failed', dbms_aq.dequeue_options_t(wait => 30), NULL, NULL::order_t, NULL) \gset failed_
SELECT :'failed_payload', (:'failed_message_properties'::dbms_aq.message_properties_t).state,
	(:'failed_message_properties'::dbms_aq.message_properties_t).original_msgid = :'msgid';

-- a wait without a message ends after its time
SELECT t.error($$CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 1), NULL, NULL::order_t, NULL)$$);
-- messages of the transaction itself are seen
BEGIN;
CALL dbms_aq.enqueue('docs', NULL, NULL, '1', NULL) \g /dev/null
CALL dbms_aq.dequeue('docs', NULL, NULL, NULL::jsonb, NULL) \gset
SELECT :'payload';
ROLLBACK;
-- a long payload survives the transaction that took it
CALL dbms_aq.enqueue('texts', NULL, NULL, repeat('x', 1000000), NULL) \g /dev/null
CALL dbms_aq.dequeue('texts', dbms_aq.dequeue_options_t(wait => 1), NULL, NULL::text, NULL) \gset
SELECT length(:'payload');
-- READ ONLY: browsing only
BEGIN READ ONLY;
SELECT t.error($$CALL dbms_aq.enqueue('docs', NULL, NULL, '1', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => 1), NULL, NULL::jsonb, NULL)$$);
ROLLBACK;
