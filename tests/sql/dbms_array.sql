-- dbms_aq.enqueue_array and dequeue_array.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;

DO $$
DECLARE
	mp dbms_aq.message_properties_array_t;
	p order_t[];
	ids dbms_aq.msgid_array_t;
	taken dbms_aq.msgid_array_t;
	errors dbms_aq.error_array_t;
	n integer;
BEGIN
	FOR i IN 1 .. 5 LOOP
		p[i] := ROW(i, 'array');
		mp[i].priority := CASE WHEN i > 3 THEN 0 ELSE 1 END;
		mp[i].correlation := 'a' || i / 4;
	END LOOP;
	CALL dbms_aq.enqueue_array(queue_name => 'orders', enqueue_options => NULL, array_size => 5, message_properties_array => mp,
		payload_array => p, msgid_array => ids, error_array => errors, enqueued => n);
	RAISE NOTICE '% enqueued, % ids, errors %', n, cardinality(ids), errors;
	COMMIT;
	/* as many as there are, in their order, without waiting for more */
	p := NULL;
	CALL dbms_aq.dequeue_array(queue_name => 'orders', dequeue_options => NULL, array_size => 4, message_properties_array => mp,
		payload_array => p, msgid_array => taken, error_array => errors, dequeued => n);
	RAISE NOTICE '% dequeued: %', n, p;
	RAISE NOTICE '% % %', mp[1].correlation, mp[4].correlation, taken[1] = ids[4];
	CALL dbms_aq.dequeue_array('orders', NULL, 4, mp, p, taken, errors, n);
	RAISE NOTICE '% dequeued: %', n, p;
	/* fewer than the arrays hold */
	mp := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[3]);
	CALL dbms_aq.enqueue_array('orders', NULL, 2, mp, ARRAY[ROW(6, 'x'), ROW(7, 'y'), ROW(8, 'z')]::order_t[], ids, errors, n);
	RAISE NOTICE '% enqueued', n;
	CALL dbms_aq.dequeue_array('orders', dbms_aq.dequeue_options_t(wait => 1, deq_condition => 'tab.user_data.id = 7'), 10, mp, p, taken, errors, n);
	RAISE NOTICE '% dequeued: %', n, p;
	CALL dbms_aq.dequeue_array('orders', dbms_aq.dequeue_options_t(wait => 0), 10, mp, p, taken, errors, n);
	RAISE NOTICE '% dequeued: %', n, p;
END $$;
-- numbers of any exact type, and without error_array
DO $$
DECLARE
	mp dbms_aq.message_properties_array_t := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[2]);
	p order_t[] := ARRAY[ROW(9, 'n'), ROW(10, 'n')];
	ids dbms_aq.msgid_array_t;
	n integer;
	l_size numeric := 2;
	l_wait bigint := 1;
BEGIN
	CALL dbms_aq.enqueue_array('orders', dbms_aq.enqueue_options_t(visibility => 2.0), l_size, mp, p, ids, n);
	CALL dbms_aq.dequeue_array(queue_name => 'orders', dequeue_options => dbms_aq.dequeue_options_t(wait => l_wait, navigation => 1::numeric),
		array_size => l_size, message_properties_array => mp, payload_array => p, msgid_array => ids, dequeued => n);
	RAISE NOTICE '% dequeued: %', n, p;
END $$;
SELECT t.error($$CALL dbms_aq.dequeue_array('orders', dbms_aq.dequeue_options_t(wait => 0::numeric), 2::numeric, NULL, NULL::ora.order_t[], NULL, NULL)$$);
-- try_...: nothing is no error, and the transaction goes on
BEGIN;
CALL dbms_aq.enqueue('docs', NULL, NULL, '"try"', NULL) \gset
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL) \gset first_
SELECT :'first_payload', :'first_msgid' = :'msgid';
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL);
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 1, visibility => 1), NULL, NULL::text, NULL);
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::varchar, NULL);
CALL dbms_aq.try_dequeue_array('orders', dbms_aq.dequeue_options_t(wait => 0), 10, NULL, NULL::ora.order_t[], NULL, NULL);
CALL dbms_aq.try_listen(ARRAY[sys.aq$_agent(NULL, 'docs', NULL)], 0, NULL);
COMMIT;
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL);
SELECT t.error($$CALL dbms_aq.try_dequeue('nothing', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL)$$);
-- the savepoint idiom of docs/oracle.md: what was dequeued before the error is committed
CALL dbms_aq.enqueue('docs', NULL, NULL, '"kept"', NULL) \gset
BEGIN;
CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL) \gset
SAVEPOINT next_message;
CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL);
ROLLBACK TO next_message;
COMMIT;
CALL dbms_aq.try_dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL);
-- nothing: ORA-25228
SELECT t.error($$CALL dbms_aq.dequeue_array('orders', dbms_aq.dequeue_options_t(wait => 0), 10, NULL, NULL::ora.order_t[], NULL, NULL, NULL)$$);
-- what is refused
SELECT t.error($$CALL dbms_aq.dequeue_array('orders', dbms_aq.dequeue_options_t(msgid => gen_random_uuid()), 10, NULL, NULL::ora.order_t[], NULL, NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue_array('orders', NULL, 0, NULL, NULL::ora.order_t[], NULL, NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue_array('orders', NULL, NULL, NULL, NULL::ora.order_t[], NULL, NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue_array('orders', NULL, 1, NULL, ARRAY[ROW(1, 'x')]::ora.order_t[], NULL, NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue_array('orders', NULL, 2, ARRAY[NULL, NULL]::dbms_aq.message_properties_t[], ARRAY[ROW(1, 'x')]::ora.order_t[], NULL, NULL, NULL)$$);
-- text, JSON and RAW, with recipient lists
DO $$
DECLARE
	mp dbms_aq.message_properties_array_t := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[2]);
	ids dbms_aq.msgid_array_t;
	errors dbms_aq.error_array_t;
	n integer;
	r bytea[];
	j jsonb[];
BEGIN
	CALL dbms_aq.enqueue_array('raws', NULL, 2, mp, ARRAY['\x01', '\x02']::bytea[], ids, errors, n);
	CALL dbms_aq.dequeue_array('raws', NULL, 2, mp, r, ids, errors, n);
	RAISE NOTICE '% %', n, r;
	mp[1] := dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('X1', NULL, NULL)]);
	mp[2] := dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('X2', NULL, NULL)]);
	CALL dbms_aq.enqueue_array('topic', NULL, 2, mp, ARRAY['1', '2']::jsonb[], ids, errors, n);
	CALL dbms_aq.dequeue_array('topic', dbms_aq.dequeue_options_t(consumer_name => 'x2'), 2, mp, j, ids, errors, n);
	RAISE NOTICE '% %', n, j;
	mp[1] := dbms_aq.message_properties_t(user_property => '{"a": 1}');
	mp[2] := dbms_aq.message_properties_t(user_property => '{"a": 1.0}');
	CALL dbms_aq.enqueue_array('raws', NULL, 2, mp, ARRAY['\x03', '\x04']::bytea[], ids, errors, n);
	CALL dbms_aq.dequeue_array('raws', NULL, 2, mp, r, ids, errors, n);
	RAISE NOTICE '% %', mp[1].user_property, mp[2].user_property;
END $$;
