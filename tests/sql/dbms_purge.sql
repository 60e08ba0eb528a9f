-- dbms_aqadm.purge_queue_table: messages that are consumed and retained are purged, too.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CALL dbms_aqadm.create_queue_table('pt_topic', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue_table('pt_single', 'JSON');
CALL dbms_aqadm.create_queue('pq_topic', 'pt_topic', retention_time => 86400);
CALL dbms_aqadm.create_queue('pq_single', 'pt_single', retention_time => dbms_aqadm.infinite());
CALL dbms_aqadm.create_sharded_queue('ps_topic', queue_payload_type => 'JSON', multiple_consumers => true,
	queue_properties => dbms_aqadm.queue_props_t(retention_time => 86400));
CALL dbms_aqadm.create_sharded_queue('ps_single', queue_payload_type => 'JSON', queue_properties => dbms_aqadm.queue_props_t(retention_time => 86400));
CREATE TABLE t.purged (queue text, "table" text, topic boolean);
INSERT INTO t.purged VALUES ('pq_topic', 'pt_topic', true), ('pq_single', 'pt_single', false), ('ps_topic', 'ps_topic', true), ('ps_single', 'ps_single', false);
SELECT format('CALL dbms_aqadm.start_queue(%L)', queue) FROM t.purged \gexec
-- n messages for KSUB_1 to KSUB_n, in a queue without consumers n messages; all but one are dequeued
CREATE PROCEDURE t.round(queue text, topic boolean, n integer) LANGUAGE plpgsql AS $$
DECLARE
	properties dbms_aq.message_properties_t;
	payload jsonb;
	msgid uuid;
BEGIN
	FOR i IN 1 .. n LOOP
		CALL dbms_aq.enqueue(queue, NULL, dbms_aq.message_properties_t(correlation => 'KSUB_' || i,
			recipient_list => CASE WHEN topic THEN ARRAY[sys.aq$_agent('KSUB_' || i, NULL, NULL)] END), to_jsonb(i), msgid);
		COMMIT;
		CONTINUE WHEN i = n;
		CALL dbms_aq.dequeue(queue, dbms_aq.dequeue_options_t(consumer_name => CASE WHEN topic THEN 'KSUB_' || i END, wait => 0, navigation => 1),
			properties, payload, msgid);
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION t.shown("table" text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	EXECUTE format('SELECT format(%L, %L, count(DISTINCT corr_id), string_agg(DISTINCT msg_state, %L)) FROM %I', '%s: %s %s', "table", ',', 'aq$' || "table") INTO line;
	RETURN line;
END $$;
-- the loop of a test program: purge, enqueue and dequeue, count
CREATE PROCEDURE t.purge("table" text, condition text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
	po dbms_aqadm.aq$_purge_options_t;
BEGIN
	CALL dbms_aqadm.purge_queue_table("table", condition, po);
END $$;
SELECT format('CALL t.round(%L, %L, 3)', queue, topic) FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
-- a rollback brings them back
BEGIN;
SELECT format('CALL t.purge(%L)', "table") FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
ROLLBACK;
SELECT t.shown("table") FROM t.purged;
-- and a savepoint
BEGIN;
SAVEPOINT s;
SELECT format('CALL t.purge(%L)', "table") FROM t.purged \gexec
ROLLBACK TO s;
COMMIT;
SELECT t.shown("table") FROM t.purged;
-- by a condition
SELECT format('CALL t.purge(%L, %L)', "table", $c$ qtview.corr_id = 'KSUB_1' $c$) FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
-- only buffered messages
SELECT format('CALL dbms_aqadm.purge_queue_table(%L, NULL, dbms_aqadm.aq$_purge_options_t(delivery_mode => dbms_aqadm.buffered()))', "table") FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
-- all, twice, with and without exclusive locks; the next round is as the first
SELECT format('CALL t.purge(%L)', "table") FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
SELECT format('CALL dbms_aqadm.purge_queue_table(%L, %L, dbms_aqadm.aq$_purge_options_t("block" => true))', "table", '') FROM t.purged \gexec
SELECT format('CALL t.round(%L, %L, 2)', queue, topic) FROM t.purged \gexec
SELECT t.shown("table") FROM t.purged;
-- aq.messages keeps them until their partition is truncated, and no longer after a change of the retention
SELECT state, count(*) FROM aq.messages WHERE queue_name = 'ora.ps_single' GROUP BY 1 ORDER BY 1;
CALL dbms_aqadm.alter_queue('ps_single', retention_time => dbms_aqadm.infinite());
SELECT t.shown('ps_single');
-- more messages than a row of the log holds
CREATE PROCEDURE t.many() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.enqueue('ora.ps_single', to_jsonb(n), correlation => 'many') FROM generate_series(1, 2000) n;
	COMMIT;
	PERFORM aq.dequeue('ora.ps_single', max_messages => 2000);
	COMMIT;
END $$;
CALL t.many();
SELECT count(*) FROM aq$ps_single;
CALL t.purge('ps_single');
SELECT t.shown('ps_single');
SELECT * FROM aq.check() WHERE queue_name LIKE 'ora.p%';
SELECT count(aq.drop_queue(queue_name, force => true)) FROM aq.queues WHERE queue_name LIKE 'ora.ps%';
CALL dbms_aqadm.drop_queue_table('pt_topic', force => true);
CALL dbms_aqadm.drop_queue_table('pt_single', force => true);
DROP TABLE t.purged;
