-- A program as it is written for Oracle AQ: a queue table with priorities and retention, subscribers, and two ways to
-- dequeue: listen and then dequeue without waiting, or dequeue with a wait.  Ported by docs/differences.md.
CREATE SCHEMA k;
SET search_path = k, public, sys;
CREATE TYPE message_typ AS (subject varchar(30), text varchar(256), return_msg text);

CALL dbms_aqadm.create_queue_table(
	queue_table        => 'Messages_Qtab',
	multiple_consumers => TRUE,
	compatible         => '10.0.0',
	sort_list          => 'PRIORITY,ENQ_TIME',
	queue_payload_type => 'Message_typ');
CALL dbms_aqadm.create_queue(
	queue_name     => 'msg_queue',
	queue_table    => 'Messages_Qtab',
	max_retries    => 5,
	retry_delay    => 2,
	retention_time => 86400);
CALL dbms_aqadm.start_queue(queue_name => 'msg_queue');

CREATE PROCEDURE create_subscribers(p_queue_name text, p_cnt integer) LANGUAGE plpgsql AS $$
DECLARE
	l_subscriber sys.aq$_agent;
BEGIN
	FOR i IN 1 .. p_cnt LOOP
		l_subscriber := sys.aq$_agent('KSUB_' || i, NULL, NULL);
		CALL dbms_aqadm.add_subscriber(queue_name => p_queue_name, subscriber => l_subscriber);
	END LOOP;
END $$;

CREATE PROCEDURE remove_subscribers(p_queue_name text) LANGUAGE plpgsql AS $$
DECLARE
	idx record;
BEGIN
	FOR idx IN SELECT consumer_name FROM dba_queue_subscribers a WHERE a.queue_name = p_queue_name LOOP
		CALL dbms_aqadm.remove_subscriber(p_queue_name, sys.aq$_agent(idx.consumer_name, NULL, NULL));
	END LOOP;
END $$;

CREATE PROCEDURE purge_queue_table() LANGUAGE plpgsql AS $$
DECLARE
	po dbms_aqadm.aq$_purge_options_t;
BEGIN
	CALL dbms_aqadm.purge_queue_table('Messages_Qtab', NULL, po);
END $$;

-- one message for one subscriber, by a recipient list
CREATE PROCEDURE enq(p_sub integer, OUT p_msgid uuid) LANGUAGE plpgsql AS $$
DECLARE
	l_enqueue_options    dbms_aq.enqueue_options_t;
	l_message_properties dbms_aq.message_properties_t;
	l_recipients         dbms_aq.aq$_recipient_list_t;
	l_message            message_typ;
	l_agt_name           text := 'KSUB_' || p_sub;
BEGIN
	l_enqueue_options.visibility := dbms_aq.on_commit();
	l_enqueue_options.delivery_mode := dbms_aq.persistent();
	l_message := ROW('Message for ' || l_agt_name, clock_timestamp() || ' for ' || l_agt_name, rpad('ABC', 4000, 'x'));
	l_recipients[1] := sys.aq$_agent(l_agt_name, NULL, NULL);
	l_message_properties.recipient_list := l_recipients;
	l_message_properties.correlation := l_agt_name;
	CALL dbms_aq.enqueue(
		queue_name         => 'K.MSG_QUEUE',
		enqueue_options    => l_enqueue_options,
		message_properties => l_message_properties,
		payload            => l_message,
		msgid              => p_msgid);
	COMMIT;
END $$;

-- listen may return in vain: somebody else was faster, or will be
CREATE PROCEDURE listen_deq(p_sub integer, p_wait integer, OUT p_msgid uuid) LANGUAGE plpgsql AS $$
DECLARE
	l_dequeue_options    dbms_aq.dequeue_options_t;
	l_message_properties dbms_aq.message_properties_t;
	l_message            message_typ;
	l_listen_list        dbms_aq.aq$_agent_list_t;
	l_agent              sys.aq$_agent;
	l_end                timestamptz := clock_timestamp() + make_interval(secs => p_wait);
BEGIN
	l_listen_list[1] := sys.aq$_agent('KSUB_' || p_sub, 'K.MSG_QUEUE', NULL);
	WHILE p_msgid IS NULL AND clock_timestamp() < l_end LOOP
		BEGIN
			CALL dbms_aq.listen(agent_list => l_listen_list, wait => p_wait, agent => l_agent);
			l_dequeue_options.consumer_name := l_agent.name;
			l_dequeue_options.visibility := dbms_aq.on_commit();
			l_dequeue_options.delivery_mode := dbms_aq.persistent();
			l_dequeue_options.navigation := dbms_aq.first_message();
			l_dequeue_options.wait := dbms_aq.no_wait();
			CALL dbms_aq.dequeue(
				queue_name         => 'K.MSG_QUEUE',
				dequeue_options    => l_dequeue_options,
				message_properties => l_message_properties,
				payload            => l_message,
				msgid              => p_msgid);
			IF l_message.subject <> 'Message for KSUB_' || p_sub OR length(l_message.return_msg) <> 4000
					OR l_message_properties.correlation <> 'KSUB_' || p_sub THEN
				RAISE 'a wrong message: %', l_message;
			END IF;
		EXCEPTION
			WHEN SQLSTATE 'AQ063' THEN NULL;    -- ORA-25228
			WHEN SQLSTATE 'AQ064' THEN NULL;    -- ORA-25254
		END;
		COMMIT;
	END LOOP;
END $$;

CREATE PROCEDURE subscr_deq(p_sub integer, p_wait integer, OUT p_msgid uuid) LANGUAGE plpgsql AS $$
DECLARE
	l_dequeue_options    dbms_aq.dequeue_options_t;
	l_message_properties dbms_aq.message_properties_t;
	l_message            message_typ;
BEGIN
	l_dequeue_options.consumer_name := 'KSUB_' || p_sub;
	l_dequeue_options.navigation := dbms_aq.first_message();
	l_dequeue_options.wait := p_wait;
	BEGIN
		CALL dbms_aq.dequeue('K.MSG_QUEUE', l_dequeue_options, l_message_properties, l_message, p_msgid);
	EXCEPTION WHEN SQLSTATE 'AQ063' THEN
		NULL;
	END;
	COMMIT;
END $$;

-- loops, as jobs would run them: how many messages in so many seconds
CREATE PROCEDURE enq_loop(p_sub integer, p_dur integer, OUT p_count integer) LANGUAGE plpgsql AS $$
DECLARE
	l_end timestamptz := clock_timestamp() + make_interval(secs => p_dur);
	l_msgid uuid;
BEGIN
	p_count := 0;
	WHILE clock_timestamp() < l_end LOOP
		CALL enq(p_sub, l_msgid);
		p_count := p_count + 1;
	END LOOP;
END $$;

CREATE PROCEDURE deq_loop(p_sub integer, p_method integer, p_dur integer, OUT p_count integer) LANGUAGE plpgsql AS $$
DECLARE
	l_end timestamptz := clock_timestamp() + make_interval(secs => p_dur);
	l_msgid uuid;
BEGIN
	p_count := 0;
	WHILE clock_timestamp() < l_end LOOP
		IF p_method = 1 THEN
			CALL listen_deq(p_sub, 1, l_msgid);
		ELSE
			CALL subscr_deq(p_sub, 1, l_msgid);
		END IF;
		IF l_msgid IS NOT NULL THEN
			p_count := p_count + 1;
		END IF;
	END LOOP;
END $$;
