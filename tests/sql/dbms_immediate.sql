-- Immediate visibility: a transaction of its own, also inside an open one.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
SET timezone = 'UTC';
CALL dbms_aqadm.create_queue_table('i_tab', 'ORDER_T');
CALL dbms_aqadm.create_queue('i_classic', 'i_tab');
CALL dbms_aqadm.create_sharded_queue('i_sharded', queue_payload_type => 'ORDER_T');
CALL dbms_aqadm.create_sharded_queue('i_text', queue_payload_type => 'VARCHAR2');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['i_classic', 'i_sharded', 'i_text']) q \gexec
\set now 'dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate())'
\set take 'dbms_aq.dequeue_options_t(visibility => dbms_aq.immediate(), wait => 0)'

-- what is enqueued stays when the caller rolls back; what is dequeued is gone
BEGIN;
CALL dbms_aq.enqueue('i_classic', :now, NULL, '(1,stays)', NULL) \g /dev/null
CALL dbms_aq.enqueue('i_sharded', :now, dbms_aq.message_properties_t(correlation => 'c', priority => 3), ROW(1, 'stays')::order_t, NULL) \g /dev/null
CALL dbms_aq.enqueue('i_classic', NULL, NULL, '(2,goes)', NULL) \g /dev/null
ROLLBACK;
SELECT user_data FROM aq$i_tab;
SELECT user_data, corr_id, msg_priority FROM aq$i_sharded;
BEGIN;
CALL dbms_aq.dequeue('i_classic', :take, NULL, NULL::order_t, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('i_sharded', :take, NULL, NULL::text, NULL) \gset
SELECT :'payload', (:'message_properties'::dbms_aq.message_properties_t).correlation;
ROLLBACK;
SELECT count(*) FROM aq$i_tab;
SELECT count(*) FROM aq$i_sharded;

-- it sees what is committed, not what its session is about to commit
BEGIN;
CALL dbms_aq.enqueue('i_sharded', NULL, NULL, '(3,not yet)', NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.dequeue('i_sharded', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), NULL, NULL::order_t, NULL)$$);
COMMIT;
CALL dbms_aq.dequeue('i_sharded', :take, NULL, NULL::order_t, NULL) \gset
SELECT :'payload';

-- modes: a browse takes nothing, so nothing is immediate about it
CALL dbms_aq.enqueue('i_classic', :now, NULL, '(4,modes)', NULL) \g /dev/null
CALL dbms_aq.dequeue('i_classic', dbms_aq.dequeue_options_t(visibility => 1, wait => 0, dequeue_mode => dbms_aq.browse()), NULL, NULL::order_t, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('i_classic', dbms_aq.dequeue_options_t(visibility => 1, wait => 0, dequeue_mode => dbms_aq.remove_nodata()), NULL, NULL::text, NULL) \gset
SELECT :{?payload};
SELECT count(*) FROM aq$i_tab;
-- without data, of any type
CALL dbms_aq.enqueue('i_classic', :now, NULL, '(4,modes)', NULL) \g /dev/null
CALL dbms_aq.dequeue('i_classic', dbms_aq.dequeue_options_t(visibility => 1, wait => 0, dequeue_mode => dbms_aq.remove_nodata()), NULL, NULL::bytea, NULL) \gset
SELECT :'payload', (SELECT count(*) FROM aq$i_tab);

-- arrays, long payloads, nulls
DO $$
DECLARE
	mp dbms_aq.message_properties_array_t := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[3]);
	p order_t[] := ARRAY[ROW(1, 'a'), ROW(2, 'b'), NULL]::order_t[];
	ids dbms_aq.msgid_array_t;
	e dbms_aq.error_array_t;
	n integer;
	t text;
	one dbms_aq.message_properties_t;
	id uuid;
BEGIN
	CALL dbms_aq.enqueue_array('i_sharded', dbms_aq.enqueue_options_t(visibility => 1), 3, mp, p, ids, e, n);
	RAISE NOTICE '%', n;
	CALL dbms_aq.dequeue_array('i_sharded', dbms_aq.dequeue_options_t(visibility => 1), 5, mp, p, ids, e, n);
	RAISE NOTICE '% %', n, p;
	CALL dbms_aq.enqueue('i_text', dbms_aq.enqueue_options_t(visibility => 1), NULL, repeat('x', 3000000), id);
	CALL dbms_aq.dequeue('i_text', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), one, t, id);
	RAISE NOTICE '%', length(t);
	CALL dbms_aq.enqueue('i_text', dbms_aq.enqueue_options_t(visibility => 1, transformation => 'upper'), NULL, 'shout', id);
	CALL dbms_aq.dequeue('i_text', dbms_aq.dequeue_options_t(visibility => 1, wait => 0, transformation => 'pg_catalog.initcap'), one, t, id);
	RAISE NOTICE '%', t;
	ROLLBACK;
END $$;

-- errors come over as they are, and the helper goes on
SELECT t.error($$CALL dbms_aq.enqueue('i_classic', dbms_aq.enqueue_options_t(visibility => 1), NULL, 'no order', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('i_classic', dbms_aq.enqueue_options_t(visibility => 1), NULL, '\x00'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('no_such', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(1,x)', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('i_classic', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), NULL, NULL::order_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('i_classic', dbms_aq.dequeue_options_t(visibility => 1, msgid => '00000000-0000-0000-0000-000000000000'), NULL, NULL::order_t, NULL)$$);
BEGIN READ ONLY;
SELECT t.error($$CALL dbms_aq.enqueue('i_classic', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(1,x)', NULL)$$);
ROLLBACK;

-- it works with the rights of the current role, not of the session's
CALL dbms_aqadm.grant_queue_privilege('ENQUEUE', 'i_classic', 'regress_ora_user');
SET ROLE regress_ora_user;
SET search_path = ora, public;
CALL dbms_aq.enqueue('i_classic', :now, NULL, '(5,user)', NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.enqueue('ora.i_sharded', dbms_aq.enqueue_options_t(visibility => 1), NULL, '(1,x)', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('ora.i_classic', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), NULL, NULL::order_t, NULL)$$);
RESET ROLE;
SELECT enq_user_id, user_data FROM aq$i_tab;
-- nor does a transformation get more than that in a helper
CREATE FUNCTION ora.who(order_t) RETURNS order_t LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		SET ROLE postgres;
	EXCEPTION WHEN OTHERS THEN
		RETURN ROW(0, current_user || ': ' || sqlerrm);
	END;
	RETURN ROW(1, current_user);
END $$;
SET ROLE regress_ora_user;
BEGIN;
CALL dbms_aq.enqueue('i_classic', dbms_aq.enqueue_options_t(visibility => 1, transformation => 'ora.who'), NULL, ROW(6, 'x')::order_t, NULL) \g /dev/null
ROLLBACK;
RESET ROLE;
SELECT user_data FROM aq$i_tab ORDER BY user_data;
-- not by what is done for a superuser who refreshes a view or analyzes a table
CREATE FUNCTION t.immediately() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('ora.i_text', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, 'x'::text, id);
	RETURN 'enqueued';
END $$;
SELECT t.error('CREATE MATERIALIZED VIEW t.immediate AS SELECT t.immediately()');
DROP FUNCTION t.immediately;

DROP FUNCTION ora.who;
CALL dbms_aqadm.drop_queue_table('i_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('i_sharded', force => true);
CALL dbms_aqadm.drop_sharded_queue('i_text', force => true);

-- values are read and written as the session does it, also by a helper
CREATE TYPE ora.moment_t AS (at timestamptz, day date, rest interval);
CALL dbms_aqadm.create_sharded_queue('i_moments', queue_payload_type => 'MOMENT_T');
CALL dbms_aqadm.start_queue('i_moments');
SET timezone = 'America/New_York';
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
BEGIN;
CALL dbms_aq.enqueue('i_moments', :now, NULL, '("02/01/2026 10:00:00",02/01/2026,-1 00:00:05)', NULL) \g /dev/null
COMMIT;
CALL dbms_aq.enqueue('i_moments', NULL, NULL, '("02/01/2026 10:00:00",02/01/2026,-1 00:00:05)', NULL) \g /dev/null
SELECT payload = lead(payload) OVER () FROM aq.browse('ora.i_moments', NULL::ora.moment_t);
BEGIN;
CALL dbms_aq.dequeue('i_moments', :take, NULL, NULL::text, NULL) \gset
COMMIT;
SELECT :'payload', :'payload'::ora.moment_t = ROW('2026-01-02 15:00:00+00', '2026-01-02', '-1 day -5 s')::ora.moment_t;
-- and so are conditions
SET transform_null_equals = on;
BEGIN;
CALL dbms_aq.dequeue('i_moments', dbms_aq.dequeue_options_t(visibility => dbms_aq.immediate(), wait => 0, deq_condition => 'corrid = NULL'), NULL, NULL::text, NULL) \g /dev/null
COMMIT;
RESET transform_null_equals;
RESET datestyle;
RESET intervalstyle;
SET timezone = 'UTC';
CALL dbms_aqadm.drop_sharded_queue('i_moments', true);
