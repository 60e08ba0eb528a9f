-- dbms_aq.seek: where a consumer goes on, in sharded queues and in queue tables.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CALL dbms_aqadm.create_queue_table('s_tab', 'JSON', multiple_consumers => true, sort_list => 'priority,enq_time');
CALL dbms_aqadm.create_queue('s_classic', 's_tab');
CALL dbms_aqadm.create_sharded_queue('s_sharded', queue_payload_type => 'JSON', multiple_consumers => true);
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest('{s_classic,s_sharded}'::text[]) q \gexec
SELECT format('CALL dbms_aqadm.add_subscriber(%L, sys.aq$_agent(%L, NULL, NULL))', q, c) FROM unnest('{s_classic,s_sharded}'::text[]) q, unnest('{ann,bob}'::text[]) c \gexec
SELECT count(aq.enqueue('ora.' || q, to_jsonb(n), priority => 1)) FROM unnest('{s_classic,s_sharded}'::text[]) q, generate_series(1, 6) n;
-- types dbms_aq.seek_input_t, seek_pos_t, seek_input_array_t, seek_output_t, seek_output_array_t
CREATE FUNCTION t.seek(queue text, consumer text, seek_type integer, skip_option integer, payload jsonb DEFAULT NULL, shard integer DEFAULT NULL, priority integer DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found dbms_aq.seek_output_array_t;
	target uuid := (SELECT b.msgid FROM aq.browse('ora.' || queue, consumer => seek.consumer) b WHERE b.payload = seek.payload);
BEGIN
	CALL dbms_aq.seek(queue, consumer, ARRAY[dbms_aq.seek_input_t(shard, priority, seek_type, dbms_aq.seek_pos_t(target))], skip_option, found);
	RETURN format('skipped %s, next %s', (found[1]).skipped,
		coalesce((SELECT b.payload::text FROM aq.browse('ora.' || queue, consumer => seek.consumer) b WHERE b.msgid = ((found[1]).seek_pos).msgid), 'none'));
END $$;
CREATE FUNCTION t.next(queue text, consumer text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	properties dbms_aq.message_properties_t;
	payload jsonb;
	msgid uuid;
BEGIN
	CALL dbms_aq.dequeue(queue, dbms_aq.dequeue_options_t(consumer_name => consumer, wait => dbms_aq.no_wait()), properties, payload, msgid);
	RETURN payload;
END $$;
-- nothing is skipped without being asked
SELECT q, t.error(format('SELECT t.seek(%L, %L, dbms_aq.seek_end(), NULL)', q, 'ann')) FROM unnest('{s_classic,s_sharded}'::text[]) q;
SELECT q, t.seek(q, 'ann', dbms_aq.seek_msgid(), NULL, '1') FROM unnest('{s_classic,s_sharded}'::text[]) q;
-- to a message; what is skipped is consumed, by this consumer
SELECT q, t.seek(q, 'ann', dbms_aq.seek_msgid(), dbms_aq.discard_skipped(), '3') FROM unnest('{s_classic,s_sharded}'::text[]) q;
SELECT q, t.next(q, 'ann'), t.look('ora.' || q, 'ann'), t.look('ora.' || q, 'bob') FROM unnest('{s_classic,s_sharded}'::text[]) q;
-- a rollback brings it back
BEGIN;
SELECT q, t.seek(q, 'ann', dbms_aq.seek_end(), dbms_aq.discard_skipped()) FROM unnest('{s_classic,s_sharded}'::text[]) q;
SELECT q, t.look('ora.' || q, 'ann') FROM unnest('{s_classic,s_sharded}'::text[]) q;
ROLLBACK;
SELECT q, t.look('ora.' || q, 'ann') FROM unnest('{s_classic,s_sharded}'::text[]) q;
-- without discarding: the session goes on there, and comes back to the others in its next round
SELECT t.error($$SELECT t.seek('s_sharded', 'ann', dbms_aq.seek_msgid(), dbms_aq.no_discard_skipped(), '5')$$);
SELECT t.seek('s_classic', 'bob', dbms_aq.seek_msgid(), dbms_aq.no_discard_skipped(), '5');
SELECT t.error($$SELECT t.next('s_classic', 'ann')$$);
SELECT t.next('s_classic', 'bob') AS fifth, t.next('s_classic', 'bob') AS sixth, t.next('s_classic', 'bob') AS first;
-- back to the beginning
SELECT t.seek('s_classic', 'bob', dbms_aq.seek_end(), dbms_aq.no_discard_skipped());
SELECT t.seek('s_classic', 'ann', dbms_aq.seek_begin(), NULL);
SELECT t.next('s_classic', 'ann');
-- one priority, one shard
SELECT count(aq.enqueue('ora.s_sharded', to_jsonb(n), priority => 0)) FROM generate_series(7, 8) n;
SELECT t.seek('s_sharded', 'ann', dbms_aq.seek_end(), dbms_aq.discard_skipped(), NULL, NULL, 0);
SELECT t.look('ora.s_sharded', 'ann'), t.look('ora.s_sharded', 'bob');
SELECT t.seek('s_sharded', 'ann', dbms_aq.seek_end(), dbms_aq.discard_skipped(), NULL, (SELECT shard FROM aq.messages WHERE queue_name = 'ora.s_sharded' LIMIT 1));
SELECT t.look('ora.s_sharded', 'ann') IS NULL;
-- what makes no sense
SELECT t.error(s) FROM unnest(ARRAY[
	$$SELECT t.seek('s_classic', 'ann', 4, 1)$$, $$SELECT t.seek('s_classic', 'ann', NULL, 1)$$, $$SELECT t.seek('s_classic', 'ann', 1, 3)$$,
	$$SELECT t.seek('s_classic', 'ann', 3, 1)$$, $$SELECT t.seek('s_classic', 'ann', 1, 1, NULL, 2)$$, $$CALL dbms_aq.seek('nothing', 'ann', ARRAY[dbms_aq.seek_input_t(seek_type => 1)], 1, NULL)$$,
	$$SELECT t.seek('s_classic', NULL, 1, 1)$$, $$CALL dbms_aq.seek('s_classic', 'ann', NULL, 1, NULL)$$]) s;
SELECT format('CALL dbms_aqadm.stop_queue(%L)', q) FROM unnest('{s_classic,s_sharded}'::text[]) q \gexec
CALL dbms_aqadm.drop_queue('s_sharded');
CALL dbms_aqadm.drop_queue_table('s_tab', force => true);
DROP FUNCTION t.seek, t.next;
