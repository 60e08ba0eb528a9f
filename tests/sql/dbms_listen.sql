-- dbms_aq.listen, in all its forms.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
SELECT aq.purge_queue('ora.topic') >= 0;

DO $$
DECLARE
	l_listen_list dbms_aq.aq$_agent_list_t;
	l_agent sys.aq$_agent;
	mode integer;
	id uuid;
BEGIN
	l_listen_list[1] := sys.aq$_agent('KSUB_1', 'ORA.TOPIC', NULL);
	l_listen_list[2] := sys.aq$_agent(NULL, 'docs', NULL);
	CALL dbms_aq.enqueue('docs', NULL, NULL, '1', id);
	COMMIT;
	CALL dbms_aq.listen(agent_list => l_listen_list, wait => 10, agent => l_agent);
	RAISE NOTICE '%', l_agent;
	/* the first in list order */
	CALL dbms_aq.enqueue('topic', NULL, NULL, '1', id);
	COMMIT;
	CALL dbms_aq.listen(l_listen_list, l_agent);
	RAISE NOTICE '%', l_agent;
	CALL dbms_aq.listen(l_listen_list, dbms_aq.no_wait()::bigint, dbms_aq.persistent()::numeric, l_agent, mode);
	RAISE NOTICE '% %', l_agent, mode;
	/* the name comes back as the views spell it */
	l_listen_list[1] := sys.aq$_agent('ksub_1', 'topic', NULL);
	CALL dbms_aq.listen(l_listen_list, l_agent);
	RAISE NOTICE '% %', l_agent, l_agent.name IN (SELECT consumer_name FROM sys.all_queue_subscribers);
	l_listen_list[1] := sys.aq$_agent('"Mixed"', 'topic', NULL);
	CALL dbms_aq.enqueue('topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[l_listen_list[1]]), '2', id);
	CALL dbms_aq.listen(l_listen_list, l_agent);
	RAISE NOTICE '%', l_agent;
END $$;
-- it consumes nothing
CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'ksub_1'), NULL, NULL::text, NULL) \gset
CALL dbms_aq.dequeue('docs', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::text, NULL) \gset
CALL dbms_aq.dequeue('topic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, consumer_name => '"Mixed"'), NULL, NULL::text, NULL) \gset
-- nothing within the time: ORA-25254
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('KSUB_1', 'topic', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('KSUB_1', 'topic', NULL), sys.aq$_agent(NULL, 'docs', NULL)], 1, NULL)$$);
-- what is refused
SELECT t.error($$CALL dbms_aq.listen(NULL, 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('KSUB_1', NULL, NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('KSUB_1', 'topic@elsewhere', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('KSUB_1', 'nothing', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'topic', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'docs', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'topic', NULL), sys.aq$_agent('x', 'ora.topic', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'topic', NULL)], -2, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'topic', NULL)], 0, dbms_aq.buffered(), NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'topic', NULL)], 0, 9, NULL, NULL)$$);
CALL dbms_aqadm.stop_queue('topic', enqueue => false);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('X', 'topic', NULL)], 0, NULL)$$);
CALL dbms_aqadm.start_queue('topic');
