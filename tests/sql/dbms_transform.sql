-- Transformations, at enqueue and at dequeue.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CREATE TYPE short_t AS (n integer, note text);
CALL dbms_transform.create_transformation('ORA', 'to_order', 'ora', 'short_t', 'ora', 'ORDER_T',
	'ROW((source.user_data).n * 10, upper((source.user_data).note))');
CALL dbms_transform.create_transformation('ora', 'to_short', NULL, 'order_t', NULL, 'short_t');
CALL dbms_transform.modify_transformation('ora', 'to_short', 1, '(source.user_data).id / 10');
-- attributes that are not set are null
SELECT to_short(ROW(50, 'x')::order_t);
CALL dbms_transform.modify_transformation('ora', 'to_short', 2, 'lower((source.user_data).note)');
SELECT to_short(ROW(50, 'LOUD')::order_t);

DO $$
DECLARE
	eo dbms_aq.enqueue_options_t;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0);
	mp dbms_aq.message_properties_t;
	s short_t := ROW(5, 'in');
	m order_t;
	id uuid;
	a short_t[];
	mps dbms_aq.message_properties_array_t;
	ids dbms_aq.msgid_array_t;
	errors dbms_aq.error_array_t;
	n integer;
BEGIN
	eo.transformation := 'ora.to_order';
	CALL dbms_aq.enqueue('orders', eo, NULL, s, id);
	CALL dbms_aq.dequeue('orders', o, mp, m, id);
	RAISE NOTICE '%', m;
	CALL dbms_aq.enqueue('orders', eo, NULL, '(6,literal)', id);
	o.transformation := 'To_Short';
	CALL dbms_aq.dequeue('orders', o, mp, s, id);
	RAISE NOTICE '% priority %', s, mp.priority;
	mps := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[2]);
	CALL dbms_aq.enqueue_array('orders', eo, 2, mps, ARRAY[ROW(7, 'a'), ROW(8, 'b')]::short_t[], ids, errors, n);
	CALL dbms_aq.dequeue_array('orders', o, 2, mps, a, ids, errors, n);
	RAISE NOTICE '%', a;
	/* any function of one argument will do */
	CALL dbms_aq.enqueue('texts', dbms_aq.enqueue_options_t(transformation => 'upper'), NULL, 'shout', id);
	CALL dbms_aq.dequeue('texts', dbms_aq.dequeue_options_t(wait => 0), mp, s.note, id);
	RAISE NOTICE '%', s.note;
END $$;
-- their time is counted for the queue
SELECT q, (aq_internal.queue_traffic('ora.' || q)).transformations_elapsed > 0 AS transformed FROM unnest(ARRAY['orders', 'texts', 'docs']) q;
-- types that do not fit, names that do not exist, transformations that fail
SELECT t.error($$CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(transformation => 'to_order'), NULL, ROW(1, 'x')::ora.order_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('docs', dbms_aq.enqueue_options_t(transformation => 'to_order'), NULL, ROW(1, 'x')::ora.short_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0, transformation => 'to_short'), NULL, NULL::ora.short_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(transformation => 'no_such'), NULL, ROW(1, 'x')::ora.short_t, NULL)$$);
SELECT t.error($$CALL dbms_transform.create_transformation('ora', 'to_order', NULL, 'short_t', NULL, 'order_t', 'NULL')$$);
SELECT t.error($$CALL dbms_transform.modify_transformation('ora', 'no_such', 1, 'NULL')$$);
SELECT t.error($$CALL dbms_transform.create_transformation('ora', 'bad', NULL, 'no_such_type', NULL, 'order_t', 'NULL')$$);
CALL dbms_transform.modify_transformation('ora', 'to_order', 0, 'ROW(1 / (source.user_data).n, NULL)');
SELECT t.error($$CALL dbms_aq.enqueue('orders', dbms_aq.enqueue_options_t(transformation => 'to_order'), NULL, ROW(0, 'x')::ora.short_t, NULL)$$);
CALL dbms_aq.enqueue('orders', NULL, NULL, '(1,kept)', NULL) \g /dev/null
CALL dbms_transform.modify_transformation('ora', 'to_short', 1, '1 / ((source.user_data).id - 1)');
SELECT t.error($$CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0, transformation => 'to_short'), NULL, NULL::ora.short_t, NULL)$$);
CALL dbms_aq.dequeue('orders', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::text, NULL) \gset
SELECT :'payload';
-- an error of the transaction keeps its SQLSTATE: programs look for it to try again
CREATE FUNCTION t.conflict(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE serialization_failure; END $$;
SELECT t.error($$CALL dbms_aq.enqueue('texts', dbms_aq.enqueue_options_t(transformation => 't.conflict'), NULL, 'x'::text, NULL)$$);
-- a subscriber's own transformation; null in alter_subscriber clears it
CALL dbms_transform.create_transformation('ora', 'twice', NULL, 'JSON', NULL, 'JSON', 'to_jsonb((source.user_data::text)::integer * 2)');
CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('DOUBLE', NULL, NULL), transformation => 'ora.twice');
SELECT consumer_name, transformation FROM sys.dba_queue_subscribers WHERE consumer_name = 'DOUBLE';
CALL dbms_aq.enqueue('topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('double', NULL, NULL)]), '21', NULL) \g /dev/null
CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'double'), NULL, NULL::jsonb, NULL) \gset
SELECT :'payload';
CALL dbms_aqadm.alter_subscriber('topic', sys.aq$_agent('DOUBLE', NULL, NULL), NULL, NULL);
CALL dbms_aq.enqueue('topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('double', NULL, NULL)]), '21', NULL) \g /dev/null
CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => 'double'), NULL, NULL::jsonb, NULL) \gset
SELECT :'payload';
SELECT t.error($$CALL dbms_aqadm.alter_subscriber('topic', sys.aq$_agent('DOUBLE', NULL, NULL), NULL, 'to_short')$$);
SELECT t.error($$CALL dbms_aqadm.alter_subscriber('topic', sys.aq$_agent('DOUBLE', NULL, NULL), NULL, 'jsonb_typeof')$$);
CALL dbms_aqadm.remove_subscriber('topic', sys.aq$_agent('DOUBLE', NULL, NULL));
CALL dbms_transform.drop_transformation('ora', 'twice');

CALL dbms_transform.drop_transformation('ora', 'to_order');
CALL dbms_transform.drop_transformation('ora', 'to_short');
SELECT t.error($$CALL dbms_transform.drop_transformation('ora', 'to_short')$$);
