-- What Oracle's own drivers assert of AQ in their tests, on queue tables and on sharded queues.  The names in brackets
-- are those of tests/drivers.tsv.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CALL dbms_aqadm.create_queue_table('d_tab', 'JSON');
CALL dbms_aqadm.create_queue('d_classic', 'd_tab');
CALL dbms_aqadm.create_sharded_queue('d_sharded', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_queue_table('d_topic_tab', 'ORDER_T', multiple_consumers => true);
CALL dbms_aqadm.create_queue('d_topic', 'd_topic_tab');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['d_classic', 'd_sharded', 'd_topic']) q \gexec
CREATE TABLE t.both (queue text);
INSERT INTO t.both VALUES ('d_classic'), ('d_sharded');

-- [priority] without a sort list priorities are ignored in a queue table; in a sharded queue they count
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(p), priority => p)) FROM t.both, unnest(ARRAY[5, 3, 1]) p;
SELECT queue, t.step(queue, 1, 3), t.step(queue, 1, 3), t.step(queue, 1, 3) FROM t.both;
-- [own messages] a session dequeues what it has enqueued and not committed
BEGIN;
SELECT count(aq.enqueue('ora.' || queue, '"own"')) FROM t.both;
SELECT queue, t.step(queue, 1, 3) FROM t.both;
COMMIT;
-- [correlation] the position outlives COMMIT: another correlation raises ORA-25241 in the next transaction, too
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(1, 3) n;
SELECT queue, t.step(queue, 1, 3, correlation => 'c1') FROM t.both;
SELECT queue, t.step(queue, 3, 3, correlation => 'c2') FROM t.both;
SELECT queue, t.step(queue, 1, 3, correlation => 'c2') FROM t.both;
-- a correlation that begins or ends is no change, as in Oracle: both must be there, and differ
SELECT count(aq.purge_queue('ora.' || queue)) FROM t.both;
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(1, 4) n;
SELECT queue, t.step(queue, 1, 3), t.step(queue, 3, 3, correlation => 'c2'), t.step(queue, 3, 3, correlation => 'c4'), t.step(queue, 3, 3),
	t.step(queue, 3, 3, correlation => 'c4') FROM t.both;
-- the position is clear after an end of fetch
SELECT queue, t.step(queue, 3, 3) FROM t.both;
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(2, 3) n;
SELECT queue, t.step(queue, 1, 3, correlation => 'c2') FROM t.both;
-- [end of fetch] [array] the end of the messages clears it; an array that merely comes back shorter than asked for does not
SELECT queue, t.step(queue, 3, 3, correlation => 'c2'), t.step(queue, 3, 3, correlation => 'c3') FROM t.both;
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(1, 3) n;
DO $$
DECLARE
	q text;
	mp dbms_aq.message_properties_array_t;
	p jsonb[];
	ids dbms_aq.msgid_array_t;
	e dbms_aq.error_array_t;
	n integer;
BEGIN
	FOR q IN SELECT queue FROM t.both LOOP
		CALL dbms_aq.dequeue_array(q, dbms_aq.dequeue_options_t(wait => 0, navigation => 1, correlation => 'c1'), 5, mp, p, ids, e, n);
		RAISE NOTICE '% % then %', q, n, t.step(q, 3, 3, correlation => 'c2');
	END LOOP;
END $$;
SELECT count(aq.purge_queue('ora.' || queue)) FROM t.both;
-- [condition] [bare names] [bad names] a condition may change, with and without tab.; a name that does not exist is an error of the dequeue
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), priority => n)) FROM t.both, generate_series(4, 6) n;
SELECT queue, t.step(queue, 1, 3, condition => 'priority = 5'), t.step(queue, 3, 3, condition => 'tab.priority = 6') FROM t.both;
SELECT t.error($$CALL dbms_aq.dequeue('d_classic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'no_such_column = 1'), NULL, NULL::jsonb, NULL)$$);
SELECT count(aq.purge_queue('ora.' || queue)) FROM t.both;

-- deq_condition and rules: all columns of a queue table (reference 10.9), on both stores; wrong names are called by their names
DO $$
DECLARE
	queue text;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0, navigation => dbms_aq.first_message());
	p dbms_aq.message_properties_t := dbms_aq.message_properties_t(correlation => 'c', expiration => 3600,
		user_property => '{"u": 1}', sender_id => sys.aq$_agent('S', NULL, NULL));
	m dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
BEGIN
	FOREACH queue IN ARRAY ARRAY['d_classic', 'd_sharded'] LOOP
		CALL dbms_aq.enqueue(queue, NULL, p, '{"a": 7}'::jsonb, id);
		o.deq_condition := format('tab.msgid = %L AND tab.corrid = ''c'' AND tab.priority = 1 AND tab.state = 0 AND tab.delay IS NULL '
			'AND tab.expiration = 3600 AND tab.enq_time <= clock_timestamp() AND tab.retry_count = 0 AND tab.exception_queue IS NULL '
			'AND tab.original_msgid IS NULL AND tab.sender_name = ''S'' AND tab.user_prop->''u'' = ''1'' AND (tab.user_data->>''a'')::int = 7', id);
		CALL dbms_aq.dequeue(queue, o, m, payload, id);
		RAISE NOTICE '% %', queue, payload;
	END LOOP;
END $$;
CALL dbms_aqadm.add_subscriber('d_topic', sys.aq$_agent('LATE', NULL, NULL), rule => 'tab.delay > tab.enq_time AND tab.state = 1 AND tab.expiration = 60');
SELECT split_part(t.error($$CALL dbms_aq.enqueue('d_topic', NULL, NULL, '(1,x)'::order_t, NULL)$$), ' | ', 2);
SELECT aq.enqueue('ora.d_topic', '(1,x)'::order_t, delay => '1 hour', expiration => '1 minute') IS NOT NULL;
SELECT split_part(t.error(format('CALL dbms_aqadm.add_subscriber(%L, sys.aq$_agent(%L, NULL, NULL), rule => %L)', 'd_topic', 'X', rule)), ' | ', 2)
	FROM unnest(ARRAY['tab.no_such = 1', 'tab.user_data.no_such = 1', 'user_data.no_such = 1', 'tab.priority.no_such = 1', 'no_such.column = 1']) rule;
CALL dbms_aqadm.remove_subscriber('d_topic', sys.aq$_agent('LATE', NULL, NULL));

-- [no such message] [expiration] a wait of its own time, a message id that is not there, options that do not exist
SELECT t.error($$CALL dbms_aq.dequeue('d_sharded', dbms_aq.dequeue_options_t(msgid => '00000000-0000-0000-0000-000000000000'), NULL, NULL::jsonb, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('d_classic', NULL, dbms_aq.message_properties_t(expiration => -2), '1', NULL)$$);
-- [drop queue] a queue is dropped by the name that it was made by, whatever its store
CALL dbms_aqadm.stop_queue('d_sharded');
CALL dbms_aqadm.drop_queue('d_sharded');
-- [stopped] stopped for dequeue: ORA-25226
CALL dbms_aqadm.stop_queue('d_classic', enqueue => false);
SELECT t.step('d_classic', 1);
CALL dbms_aqadm.start_queue('d_classic');
-- [recipients twice] [unknown consumer] recipients need not be subscribers; twice the same is refused; an unknown consumer finds nothing
SELECT t.error($$CALL dbms_aq.enqueue('d_topic', NULL, NULL, '(1,x)', NULL)$$);
CALL dbms_aq.enqueue('d_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('sub1', NULL, NULL), sys.aq$_agent('sub3', NULL, NULL)]), '(1,x)', NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.enqueue('d_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('sub1', NULL, NULL), sys.aq$_agent('SUB1', NULL, NULL)]), '(1,x)', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub2'), NULL, NULL::ora.order_t, NULL)$$);
-- [no data] remove_nodata: an object with all attributes null
CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub1', navigation => 1, dequeue_mode => dbms_aq.remove_nodata()), NULL, NULL::text, NULL) \gset
SELECT :{?payload};
CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub3', navigation => 1), NULL, NULL::order_t, NULL) \gset
SELECT :'payload';
-- the same for RAW: no bytes
CALL dbms_aqadm.create_queue_table('d_raw_tab', 'RAW');
CALL dbms_aqadm.create_queue('d_raw', 'd_raw_tab');
CALL dbms_aqadm.start_queue('d_raw');
CALL dbms_aq.enqueue('d_raw', NULL, NULL, '\x0102'::bytea, NULL) \g /dev/null
CALL dbms_aq.dequeue('d_raw', dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => dbms_aq.remove_nodata()), NULL, NULL::bytea, NULL) \gset
SELECT length(:'payload'::bytea);
-- [consumer] another consumer raises ORA-25242, also in the next transaction
CALL dbms_aq.enqueue('d_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('sub1', NULL, NULL), sys.aq$_agent('sub3', NULL, NULL)]), '(2,y)', NULL) \g /dev/null
BEGIN;
CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub1', navigation => 1), NULL, NULL::ora.order_t, NULL) \g /dev/null
COMMIT;
SELECT t.error($$CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub3', navigation => 3), NULL, NULL::ora.order_t, NULL)$$);
-- [agent names] an agent has a plain name
SELECT t.error($$CALL dbms_aqadm.add_subscriber('d_topic', sys.aq$_agent('sub@#1', NULL, NULL))$$);
-- [recipients] at most 1024
SELECT t.error($e$DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	p order_t := ROW(3, 'z');
	id uuid;
BEGIN
	mp.recipient_list := (SELECT array_agg(sys.aq$_agent('r' || n, NULL, NULL)) FROM generate_series(1, 1025) n);
	CALL dbms_aq.enqueue('d_topic', NULL, mp, p, id);
END $$$e$);
-- [message id length] a message id of another length is none: the type uuid says so
SELECT t.error($$CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(msgid => 'abcd'), NULL, NULL::ora.order_t, NULL)$$);
-- [position] it is the session's, whoever calls: the second caller goes on where the first one was
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n))) FROM t.both, generate_series(1, 3) n WHERE queue = 'd_classic';
SELECT t.step('d_classic', 1);
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	p jsonb;
	id uuid;
BEGIN
	CALL dbms_aq.dequeue('d_classic', dbms_aq.dequeue_options_t(wait => 0, dequeue_mode => 1), mp, p, id);
	RAISE NOTICE 'then %', p;
END $$;
-- [message state] the view tells
SELECT msg_state, count(*) FROM ora.aq$d_tab GROUP BY 1;
SELECT count(aq.purge_queue('ora.d_classic'));
-- [buffered correlation] a buffered message is found by its correlation
CALL dbms_aq.enqueue('d_classic', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), dbms_aq.message_properties_t(correlation => 'b1'), '"b1"', NULL) \g /dev/null
CALL dbms_aq.enqueue('d_classic', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), dbms_aq.message_properties_t(correlation => 'b2'), '"b2"', NULL) \g /dev/null
CALL dbms_aq.dequeue('d_classic', dbms_aq.dequeue_options_t(visibility => 1, delivery_mode => 2, navigation => 1, wait => 0, correlation => 'b2'), NULL, NULL::jsonb, NULL) \gset
SELECT :'payload';
SELECT count(aq.purge_queue('ora.d_classic', delivery_mode => 'buffered'));
-- [both modes] persistent_or_buffered is accepted at enqueue
CALL dbms_aq.enqueue('d_classic', dbms_aq.enqueue_options_t(delivery_mode => dbms_aq.persistent_or_buffered()), NULL, '7', NULL) \g /dev/null
SELECT t.step('d_classic', 1, 3);
CALL dbms_aqadm.drop_queue_table('d_raw_tab', force => true);
CALL dbms_aqadm.drop_queue_table('d_tab', force => true);
CALL dbms_aqadm.drop_queue_table('d_topic_tab', force => true);
