-- Programs as developers write them for Oracle AQ, ported by docs/oracle.md: each on a queue table and on a sharded queue.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public, sys;
SET timezone = 'UTC';
CREATE TYPE address_t AS (city varchar(20), zip integer);
CREATE TYPE job_t AS (n integer, kind varchar(10), amount numeric, addr address_t);
CREATE SCHEMA "Mixed";
CALL dbms_aqadm.create_queue_table('p_tab', 'ORA.JOB_T', sort_list => 'PRIORITY,ENQ_TIME');
CALL dbms_aqadm.create_queue('p_c', 'p_tab', max_retries => 2);
CALL dbms_aqadm.create_sharded_queue('p_s', queue_payload_type => 'JOB_T', max_retries => 2);
CALL dbms_aqadm.create_queue_table('p_topic_tab', 'job_t', multiple_consumers => true);
CALL dbms_aqadm.create_queue('p_topic_c', 'p_topic_tab');
CALL dbms_aqadm.create_sharded_queue('p_topic_s', multiple_consumers => true, queue_payload_type => 'job_t');
CALL dbms_aqadm.create_queue_table('p_log_tab', 'RAW');
CALL dbms_aqadm.create_queue('p_log', 'p_log_tab');
CALL dbms_aqadm.create_queue_table('p_group_tab', 'job_t', message_grouping => dbms_aqadm.transactional());
CALL dbms_aqadm.create_queue('p_group', 'p_group_tab');
CALL dbms_aqadm.create_queue_table('"Mixed"."E Tab"', 'ora.job_t');
CALL dbms_aqadm.create_queue('"Mixed"."Failed"', '"Mixed"."E Tab"', queue_type => dbms_aqadm.exception_queue());
CALL dbms_aqadm.create_eq_exception_queue('p_s');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['p_c', 'p_s', 'p_topic_c', 'p_topic_s', 'p_log', 'p_group']) q \gexec
SELECT format('CALL dbms_aqadm.start_queue(%L, enqueue => false)', q) FROM unnest(ARRAY['aq$_p_tab_e', 'aq$_p_s_e', '"Mixed"."Failed"']) q \gexec

-- Point to point.  The properties that came with a message go with it into the next queue, the quoted name of its exception queue too.
DO $$
DECLARE
	l_options    dbms_aq.dequeue_options_t;
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
	q            text;
BEGIN
	l_options.wait := dbms_aq.no_wait();
	l_options.navigation := dbms_aq.first_message();
	FOREACH q IN ARRAY ARRAY['ORA.P_C', '"ora"."p_s"'] LOOP
		l_message := ROW(1, 'sale', 12.5, ROW('Bern', 3000));
		l_properties := NULL;
		l_properties.priority := 5;
		l_properties.exception_queue := '"Mixed"."Failed"';
		l_properties.sender_id := sys.aq$_agent('"Shop 1"', NULL, NULL);
		CALL dbms_aq.enqueue(q, NULL, l_properties, l_message, l_id);
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		l_message.n := 2;
		CALL dbms_aq.enqueue(q, NULL, l_properties, l_message, l_id);
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		RAISE NOTICE '% % priority % exception queue % sender %', q, l_message, l_properties.priority, l_properties.exception_queue,
			(l_properties.sender_id).name;
		/* a queue's own exception queue is null; one without quotes is in upper case */
		CALL dbms_aq.enqueue(q, NULL, dbms_aq.message_properties_t(exception_queue => 'aq$_p_tab_e'), l_message, l_id);
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		RAISE NOTICE '%', l_properties.exception_queue;
		CALL dbms_aq.enqueue(q, NULL, NULL, l_message, l_id);
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		RAISE NOTICE '%', l_properties.exception_queue;
	END LOOP;
END $$;

-- A trigger that enqueues with the row, and logs what was tried; errors by their number.
CREATE TABLE p_orders (id integer PRIMARY KEY, total numeric CHECK (total > 0));
CREATE FUNCTION p_order_enqueue() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	l_id uuid;
BEGIN
	CALL dbms_aq.enqueue('ora.p_log', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL,
		convert_to('tried ' || NEW.id, 'UTF8'), l_id);
	CALL dbms_aq.enqueue('ora.p_s', NULL, dbms_aq.message_properties_t(correlation => 'ORDER_' || NEW.id), ROW(NEW.id, 'order', NEW.total, NULL)::job_t, l_id);
	RETURN NEW;
END $$;
CREATE TRIGGER enqueue BEFORE INSERT ON p_orders FOR EACH ROW EXECUTE FUNCTION p_order_enqueue();
INSERT INTO p_orders VALUES (1, 10);
INSERT INTO p_orders VALUES (2, -10);
CREATE FUNCTION p_next_order(OUT id integer, OUT status text) LANGUAGE plpgsql AS $$
DECLARE
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
BEGIN
	CALL dbms_aq.dequeue('p_s', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, correlation => 'ORDER_%'), l_properties, l_message, l_id);
	id := l_message.n;
EXCEPTION
	WHEN OTHERS THEN
		IF sys.sqlcode(SQLSTATE) = -25228 THEN
			status := sqlerrm;
		ELSE
			RAISE;
		END IF;
END $$;
SELECT * FROM p_next_order();
SELECT * FROM p_next_order();
SELECT convert_from(user_data, 'UTF8') FROM aq$p_log_tab ORDER BY enq_time;

-- Publish and subscribe: rules on properties and on attributes.  What is '' is null, as in Oracle.
DO $$
DECLARE
	l_options    dbms_aq.dequeue_options_t;
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
	l_got        text;
	q            text;
	l_agent      sys.aq$_agent;
BEGIN
	FOREACH q IN ARRAY ARRAY['p_topic_c', 'p_topic_s'] LOOP
		CALL dbms_aqadm.add_subscriber(q, sys.aq$_agent('ALL_SUB', NULL, NULL), rule => '', transformation => '');
		CALL dbms_aqadm.add_subscriber(q, sys.aq$_agent('URGENT', q, 0), rule => 'priority BETWEEN 1 AND 2');
		CALL dbms_aqadm.add_subscriber(q, sys.aq$_agent('EUROPE', '', NULL), rule => 'corrid LIKE ''EU%''');
		CALL dbms_aqadm.add_subscriber(q, sys.aq$_agent('BERN', 'ORA.' || q, NULL), rule => 'TAB.USER_DATA.ADDR.CITY = ''Bern'' AND tab.user_data.amount > 100');
		CALL dbms_aqadm.add_subscriber(q, sys.aq$_agent('"Quoted Sub"', NULL, NULL), rule => 'tab.user_data.kind = ''gift''');
		FOR i IN 1 .. 4 LOOP
			l_properties := dbms_aq.message_properties_t(priority => i, correlation => CASE WHEN i % 2 = 0 THEN 'EU' ELSE '' END);
			CALL dbms_aq.enqueue(q, NULL, l_properties, ROW(i, CASE i WHEN 3 THEN 'gift' ELSE 'sale' END, i * 60, ROW('Bern', 3000))::job_t, l_id);
		END LOOP;
		FOREACH l_agent IN ARRAY dbms_aqadm.queue_subscribers(q)::sys.aq$_agent[] LOOP
			l_options.consumer_name := l_agent.name;
			l_options.wait := 0;
			l_options.navigation := dbms_aq.first_message();
			l_options.correlation := '';
			l_options.deq_condition := '';
			l_options.transformation := '';
			l_got := '';
			LOOP
				BEGIN                       -- of its own: what happened in it is rolled back when the error is caught
					CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
				EXCEPTION WHEN SQLSTATE 'AQ063' THEN
					EXIT;
				END;
				l_got := l_got || ' ' || l_message.n || coalesce(l_properties.correlation, '');
			END LOOP;
			RAISE NOTICE '% %:%', q, l_agent.name, l_got;
		END LOOP;
	END LOOP;
END $$;

-- A function is named with its schema.
CREATE FUNCTION p_is_big(job_t) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1.amount > 1000';
SELECT t.error($$CALL dbms_aqadm.add_subscriber('p_topic_c', sys.aq$_agent('BIG', NULL, NULL), 'p_is_big(tab.user_data)')$$);
CALL dbms_aqadm.add_subscriber('p_topic_c', sys.aq$_agent('BIG', NULL, NULL), 'ora.p_is_big(tab.user_data)');
CALL dbms_aqadm.remove_subscriber('p_topic_c', sys.aq$_agent('BIG', NULL, NULL));

-- The longest name of an agent has 127 bytes.
SELECT left(t.error(format('CALL dbms_aqadm.add_subscriber(%L, sys.aq$_agent(%L, NULL, NULL), %L)', 'p_topic_c', repeat('x', n), 'priority < 0')), 8) FROM unnest(ARRAY[127, 128]) n;
CALL dbms_aqadm.remove_subscriber('p_topic_c', sys.aq$_agent(repeat('X', 127), NULL, NULL));

-- A recipient list instead; a subscriber is removed with what is before him, the others get theirs, and the views count no more.
DO $$
DECLARE
	l_recipients dbms_aq.aq$_recipient_list_t;
	l_properties dbms_aq.message_properties_t;
	l_options    dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0, navigation => 1);
	l_message    job_t := ROW(7, 'list', NULL, NULL);
	l_id         uuid;
	q            text;
BEGIN
	l_recipients[1] := sys.aq$_agent('ALL_SUB', NULL, NULL);
	l_recipients[2] := sys.aq$_agent('GUEST', '', NULL);
	l_recipients[3] := sys.aq$_agent('"Guest"', NULL, 0);
	l_properties.recipient_list := l_recipients;
	FOREACH q IN ARRAY ARRAY['p_topic_c', 'p_topic_s'] LOOP
		PERFORM aq.purge_queue('ora.' || q);
		CALL dbms_aq.enqueue(q, NULL, l_properties, l_message, l_id);
		CALL dbms_aqadm.remove_subscriber(q, sys.aq$_agent('all_sub', NULL, NULL));
		l_options.consumer_name := 'guest';
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		RAISE NOTICE '% % of "Guest", % of nobody', q,
			(SELECT count(*) FROM aq$p_topic_tab WHERE consumer_name = 'Guest') + (SELECT count(*) FROM aq$p_topic_s WHERE consumer_name = 'Guest'),
			(SELECT count(*) FROM aq$p_topic_tab WHERE consumer_name IS NULL) + (SELECT count(*) FROM aq$p_topic_s WHERE consumer_name IS NULL);
		l_options.consumer_name := '"Guest"';
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		l_properties.recipient_list := l_recipients;
	END LOOP;
END $$;

-- All messages, group by group.
BEGIN;
SELECT count(aq.enqueue('ora.p_group', ROW(n, 'a', NULL, NULL)::job_t)) FROM generate_series(1, 2) n;
COMMIT;
SELECT count(aq.enqueue('ora.p_group', ROW(3, 'b', NULL, NULL)::job_t));
DO $$
DECLARE
	l_options    dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0, navigation => dbms_aq.first_message());
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
	l_report     text := '';
BEGIN
	LOOP
		BEGIN
			CALL dbms_aq.dequeue('p_group', l_options, l_properties, l_message, l_id);
			l_report := l_report || ' ' || l_message.n;
			l_options.navigation := dbms_aq.next_message();
		EXCEPTION
			WHEN SQLSTATE 'AQ043' THEN               -- ORA-25235
				l_report := l_report || ' /';
				l_options.navigation := dbms_aq.next_transaction();
			WHEN SQLSTATE 'AQ063' THEN               -- ORA-25228
				EXIT;
		END;
	END LOOP;
	RAISE NOTICE '%', l_report;
END $$;

-- A worker that rolls back what fails: two retries, then the exception queue, which a second worker empties.
CREATE PROCEDURE p_work(p_queue text, p_fail boolean) LANGUAGE plpgsql AS $$
DECLARE
	l_options    dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 30, navigation => dbms_aq.first_message());
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
BEGIN
	CALL dbms_aq.dequeue(p_queue, l_options, l_properties, l_message, l_id);
	RAISE NOTICE '% % attempts % state %', p_queue, l_message.n, l_properties.attempts, l_properties.state;
	IF p_fail THEN
		ROLLBACK;
	ELSE
		COMMIT;
	END IF;
END $$;
SELECT count(aq.enqueue('ora.' || q, ROW(8, 'fails', NULL, NULL)::job_t)) FROM unnest(ARRAY['p_c', 'p_s']) q;
SELECT format('CALL p_work(%L, true)', q) FROM unnest(ARRAY['p_c', 'p_s']) q, generate_series(0, 2) \gexec
SELECT format('CALL p_work(%L, false)', q) FROM unnest(ARRAY['aq$_p_tab_e', 'aq$_p_s_e']) q \gexec

-- Browse, choose, remove by id; another session's message would be passed by.
SELECT count(aq.enqueue('ora.' || q, ROW(n, 'browse', n * 100, NULL)::job_t)) FROM unnest(ARRAY['p_c', 'p_s']) q, generate_series(1, 3) n;
DO $$
DECLARE
	l_options    dbms_aq.dequeue_options_t;
	l_properties dbms_aq.message_properties_t;
	l_message    job_t;
	l_id         uuid;
	q            text;
BEGIN
	FOREACH q IN ARRAY ARRAY['p_c', 'p_s'] LOOP
		l_options := dbms_aq.dequeue_options_t(wait => 0, navigation => dbms_aq.first_message(), dequeue_mode => dbms_aq.browse());
		LOOP
			CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
			EXIT WHEN l_message.amount = 200;
			l_options.navigation := dbms_aq.next_message();
		END LOOP;
		l_options.msgid := l_id;
		l_options.dequeue_mode := dbms_aq.locked();
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		l_options.dequeue_mode := dbms_aq.remove_nodata();
		CALL dbms_aq.dequeue(q, l_options, l_properties, l_message, l_id);
		RAISE NOTICE '% without data: %', q, l_message IS NULL;
	END LOOP;
END $$;

-- Purge by attributes of the payload, called as in Oracle.
DO $$
DECLARE
	po dbms_aqadm.aq$_purge_options_t;
BEGIN
	po.block := false;
	po.delivery_mode := dbms_aq.persistent();
	CALL dbms_aqadm.purge_queue_table('p_tab', 'qtview.queue = ''P_C'' AND qtview.user_data.n = 1', po);
	CALL dbms_aqadm.purge_queue_table('p_s', 'qtview.user_data.kind = ''browse'' and qtview.user_data.n = 3', po);
END $$;
SELECT queue, (user_data).n, msg_state FROM aq$p_tab WHERE queue = 'P_C' UNION ALL SELECT queue, (user_data).n, msg_state FROM aq$p_s WHERE msg_state <> 'PROCESSED';
CALL dbms_aqadm.purge_queue_table('p_tab', '', NULL);
CALL dbms_aqadm.purge_queue_table('p_s', NULL, NULL);

-- Two consumers whose names the view spells alike: neither loses what the condition meant of the other.
CALL dbms_aqadm.add_subscriber('p_topic_c', sys.aq$_agent('fred', NULL, NULL));
CALL dbms_aqadm.add_subscriber('p_topic_c', sys.aq$_agent('"FRED"', NULL, NULL));
SELECT count(aq.enqueue('ora.p_topic_c', ROW(1, 'x', NULL, NULL)::job_t, recipients => ARRAY['fred', 'FRED']));
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('p_topic_tab', 'qtview.consumer_name = ''FRED''', NULL)$$);
SELECT aq.purge_queue('ora.p_topic_c', 'FRED'), aq.purge_queue('ora.p_topic_c', 'fred');
CALL dbms_aqadm.remove_subscriber('p_topic_c', sys.aq$_agent('fred', NULL, NULL));
CALL dbms_aqadm.remove_subscriber('p_topic_c', sys.aq$_agent('"FRED"', NULL, NULL));

-- Transformations, attribute by attribute and as a whole, with Oracle's source.user_data.<attribute>; quotes are left alone.
CREATE TYPE short_job_t AS (n integer, city text, note text);
CALL dbms_transform.create_transformation('ORA', 'SHORTEN', 'ORA', 'JOB_T', 'ORA', 'SHORT_JOB_T', '');
CALL dbms_transform.modify_transformation('ORA', 'SHORTEN', 1, 'source.user_data.n');
CALL dbms_transform.modify_transformation('ORA', 'SHORTEN', 2, 'upper(Source.User_Data.addr.city)');
CALL dbms_transform.modify_transformation('ORA', 'SHORTEN', 3, '''source.user_data.n is '' || source . user_data . n');
CALL dbms_transform.create_transformation('ora', 'lengthen', 'ora', 'short_job_t', 'ora', 'job_t',
	'ROW(source.user_data.n, ''long'', (source.user_data).n / 2.0, ROW(source.user_data.city, NULL))');
SELECT name, attribute, attribute_transformation FROM sys.user_attribute_transformations WHERE name = 'SHORTEN' ORDER BY attribute;
DO $$
DECLARE
	l_properties dbms_aq.message_properties_t;
	l_short      short_job_t := ROW(9, 'Bern', NULL);
	l_id         uuid;
	q            text;
BEGIN
	FOREACH q IN ARRAY ARRAY['p_c', 'p_s'] LOOP
		CALL dbms_aq.enqueue(q, dbms_aq.enqueue_options_t(transformation => 'ORA.LENGTHEN'), NULL, l_short, l_id);
		CALL dbms_aq.dequeue(q, dbms_aq.dequeue_options_t(wait => 0, navigation => 1, transformation => 'ora.shorten'), l_properties, l_short, l_id);
		RAISE NOTICE '% %', q, l_short;
	END LOOP;
END $$;

-- NULL, empty and long payloads.
DO $$
DECLARE
	l_properties dbms_aq.message_properties_t;
	l_raw        bytea;
	l_id         uuid;
	l_got        text := '';
BEGIN
	PERFORM aq.purge_queue('ora.p_log');
	CALL dbms_aq.enqueue('p_log', NULL, NULL, NULL::bytea, l_id);
	CALL dbms_aq.enqueue('p_log', NULL, NULL, ''::bytea, l_id);
	CALL dbms_aq.enqueue('p_log', NULL, NULL, convert_to(repeat('0123456789', 10000), 'UTF8'), l_id);
	FOR i IN 1 .. 3 LOOP
		CALL dbms_aq.dequeue('p_log', dbms_aq.dequeue_options_t(wait => 0, navigation => 1), l_properties, l_raw, l_id);
		l_got := l_got || coalesce(length(l_raw)::text, 'null') || ' ';
	END LOOP;
	RAISE NOTICE '%', l_got;
END $$;

-- What a DBA joins.
SELECT q.owner, q.name, trim(q.enqueue_enabled), t.object_type, t.sort_order, a.ready, p.enqueued_msgs > 0
	FROM dba_queues q JOIN dba_queue_tables t ON t.owner = q.owner AND t.queue_table = q.queue_table
		LEFT JOIN v$aq a ON a.qid = q.qid LEFT JOIN v$persistent_queues p ON p.queue_id = q.qid
	WHERE q.owner = 'ORA' AND q.name LIKE 'P#_%' ESCAPE '#' AND q.queue_type = 'NORMAL_QUEUE' ORDER BY q.name;
SELECT s.queue_name, s.consumer_name, s.rule, p.enqueued_msgs - p.dequeued_msgs AS lag
	FROM dba_queue_subscribers s JOIN v$persistent_subscribers p ON p.queue_schema = s.owner AND p.queue_name = s.queue_name AND p.subscriber_name = s.consumer_name
	WHERE s.queue_name = 'P_TOPIC_C' ORDER BY s.consumer_name COLLATE "C";

-- Numbers of errors; types by Oracle's names, and those that are not there; a schema whose name has a dot cannot be told from a queue's.
CALL dbms_aqadm.create_queue_table('p_xml_tab', 'SYS.XMLTYPE');
SELECT object_type FROM dba_queue_tables WHERE queue_table = 'P_XML_TAB';
SELECT sys.sqlcode('AQ017'), sys.sqlcode('AQ020') IS NULL, sys.sqlcode('22012') IS NULL;
SELECT t.error($$CALL dbms_aqadm.create_queue_table('x', 'SYS.ANYDATA')$$);
CREATE SCHEMA "a.b";
SELECT t.error($$CALL dbms_aqadm.create_sharded_queue('"a.b".c', queue_payload_type => 'RAW')$$);
DROP SCHEMA "a.b";

CALL dbms_transform.drop_transformation('ora', 'shorten');
CALL dbms_transform.drop_transformation('ora', 'lengthen');
DROP TABLE p_orders;
CALL dbms_aqadm.drop_queue_table('p_xml_tab', force => true);
CALL dbms_aqadm.drop_queue_table('p_tab', force => true);
CALL dbms_aqadm.drop_queue_table('p_topic_tab', force => true);
CALL dbms_aqadm.drop_queue_table('p_log_tab', force => true);
CALL dbms_aqadm.drop_queue_table('p_group_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('p_s', force => true);
CALL dbms_aqadm.drop_sharded_queue('aq$_p_s_e', force => true);
CALL dbms_aqadm.drop_sharded_queue('p_topic_s', force => true);
CALL dbms_aqadm.drop_queue_table('"Mixed"."E Tab"', force => true);
DROP SCHEMA "Mixed";
