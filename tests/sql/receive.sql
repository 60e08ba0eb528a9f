-- aq.receive, as far as one session can tell: it waits and takes in one call.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('r'), aq.create_queue('r_topic', multiple_consumers => true);
SELECT aq.subscribe('r_topic', 'a'), aq.subscribe('r_topic', 'b');
-- empty: the time is over
CALL aq.receive('r', timeout => '0');
CALL aq.receive('r', timeout => '10 ms');
CALL aq.receive('r_topic', 'a', timeout => '10 ms');
-- several messages, in their order
SELECT cardinality(aq.enqueue_array('r', ARRAY['{"n": 1}', '{"n": 2}', '{"n": 3}']::jsonb[], correlation => 'c', properties => '{"p": true}'));
CALL aq.receive('r', max_messages => 2) \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
-- what a message has, with its types in JSON
SELECT key, jsonb_typeof(value) FROM jsonb_each(:'messages'::jsonb -> 0) ORDER BY key COLLATE "C";
SELECT count(DISTINCT m.msgid), bool_and(m.enqueue_time <= now()), min(m.priority), min(m.correlation), min(m.attempts)
FROM jsonb_to_recordset(:'messages') AS m (msgid uuid, enqueue_time timestamptz, priority int, correlation text, attempts int);
-- part of the transaction: rolled back, it comes again
BEGIN;
CALL aq.receive('r') \gset
SELECT :'messages'::jsonb #>> '{0,payload}';
ROLLBACK;
CALL aq.receive('r', timeout => '60 s') \gset
SELECT m -> 'payload', m -> 'attempts' FROM jsonb_array_elements(:'messages') m;
-- a delayed message ends the wait when it is ready
SELECT aq.enqueue('r', '4', delay => '0.1 s') IS NOT NULL;
CALL aq.receive('r', timeout => '60 s') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
-- consumer, correlation, condition, delivery mode
SELECT aq.enqueue('r_topic', '5', correlation => 'five', recipients => ARRAY['a']) IS NOT NULL, aq.enqueue('r_topic', '6') IS NOT NULL;
CALL aq.receive('r_topic', 'b', 10) \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
CALL aq.receive('r_topic', 'a', 10, correlation => 'f%') \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
CALL aq.receive('r_topic', 'a', 10, '10 ms', condition => 'payload = ''7''');
CALL aq.receive('r_topic', 'a', 10, '10 ms', condition => 'payload = ''6''') \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
SELECT aq.enqueue('r', '8', delivery_mode => 'buffered') IS NOT NULL;
CALL aq.receive('r', timeout => '10 ms');
CALL aq.receive('r', delivery_mode => 'buffered') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
-- every payload type; a null payload
CREATE TYPE t.parcel AS (id int, weight numeric, sent timestamptz);
SET TimeZone = 'UTC';
SELECT aq.create_queue('r_text', 'text'), aq.create_queue('r_bytes', 'bytea'), aq.create_queue('r_row', 't.parcel'), aq.create_queue('r_xml', 'xml');
SELECT count(aq.enqueue('r_text', v)) FROM unnest(ARRAY['a "text"', '{"not": "json"}', NULL]) v;
SELECT aq.enqueue('r_bytes', '\x0001ff'::bytea) IS NOT NULL, aq.enqueue('r_xml', '<a/>') IS NOT NULL,
	aq.enqueue('r_row', ROW(1, 2.50, '2026-01-02 03:04:05Z')::t.parcel) IS NOT NULL;
CALL aq.receive('r_text', max_messages => 10) \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
CALL aq.receive('r_bytes') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload', (:'messages'::jsonb #>> '{0,payload}')::bytea;
CALL aq.receive('r_xml') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
CALL aq.receive('r_row') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
SELECT (jsonb_populate_record(NULL::t.parcel, :'messages'::jsonb -> 0 -> 'payload')).*;
RESET TimeZone;
-- a LIMIT cannot lose messages here: the result is one row
SELECT t.put('r', 10, 19);
CALL aq.receive('r', max_messages => 10) \gset
SELECT jsonb_array_length(:'messages');
-- in PL/pgSQL
SELECT t.put('r', 20, 24);
DO $$
DECLARE
	messages jsonb;
	message jsonb;
BEGIN
	LOOP
		CALL aq.receive('r', max_messages => 2, timeout => '10 ms', messages => messages);
		EXIT WHEN messages = '[]';
		FOR message IN SELECT jsonb_array_elements(messages) LOOP
			RAISE NOTICE 'got %', message -> 'payload';
		END LOOP;
		COMMIT;
	END LOOP;
END $$;
-- a wait is cancelled by statement_timeout, and the session goes on
SET statement_timeout = '30 ms';
CALL aq.receive('r');
RESET statement_timeout;
SELECT t.put('r', 25);
CALL aq.receive('r', timeout => '60 s') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
-- the queue becomes another one, with another payload type
SELECT aq.drop_queue('r'), aq.create_queue('r', 'text'), aq.enqueue('r', 'words') IS NOT NULL;
CALL aq.receive('r') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
-- messages of an earlier call with a lease are acknowledged first; then it does not wait, so that this is committed
SELECT aq.create_queue('r_ack', multiple_consumers => true), aq.subscribe('r_ack', 'a');
SELECT count(aq.enqueue('r_ack', to_jsonb(n))) FROM generate_series(1, 2) n;
CALL aq.receive('r_ack', 'a', lease => '1 hour') \gset
CALL aq.receive('r_ack', 'a', lease => '1 hour', acknowledge => ARRAY[(:'messages'::jsonb #>> '{0,msgid}')::uuid], receipt => (:'messages'::jsonb #>> '{0,receipt}')::bigint) \gset
SELECT :'messages'::jsonb #> '{0,payload}', jsonb_array_length(:'messages');
SET statement_timeout = '30 s';
CALL aq.receive('r_ack', 'a', acknowledge => ARRAY[(:'messages'::jsonb #>> '{0,msgid}')::uuid], receipt => (:'messages'::jsonb #>> '{0,receipt}')::bigint) \gset next_
RESET statement_timeout;
SELECT :'next_messages';
SELECT count(*) FROM aq.messages WHERE queue_name = 'r_ack' AND state <> 'PROCESSED';
-- none is left to be acknowledged: it waits
CALL aq.receive('r_ack', 'a', timeout => '10 ms', acknowledge => ARRAY[(:'messages'::jsonb #>> '{0,msgid}')::uuid], receipt => (:'messages'::jsonb #>> '{0,receipt}')::bigint);
SELECT t.error($$CALL aq.receive('r_ack', 'a', receipt => 1)$$);
SELECT t.error($$CALL aq.receive('r_ack', 'a', acknowledge => ARRAY[gen_random_uuid()])$$);
SELECT aq.drop_queue('r_ack', true);
-- refused, without a word about what the procedure executes
SELECT t.error($$CALL aq.receive('no such queue')$$);
SELECT t.error($$CALL aq.receive(NULL)$$);
SELECT t.error($$CALL aq.receive('r', 'consumer')$$);
SELECT t.error($$CALL aq.receive('r_topic')$$);
SELECT t.error($$CALL aq.receive('r', max_messages => 0)$$);
SELECT t.error($$CALL aq.receive('r', max_messages => NULL)$$);
SELECT t.error($$CALL aq.receive('r', condition => 'no_such = 1')$$);
SELECT t.error($$CALL aq.receive('r', delivery_mode => 'quick')$$);
CALL aq.receive('r', max_messages => 0);
BEGIN READ ONLY;
CALL aq.receive('r', timeout => '0');
ROLLBACK;
SELECT aq.stop_queue('r', enqueue => false);
SELECT t.error($$CALL aq.receive('r')$$);
SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['r', 'r_topic', 'r_text', 'r_bytes', 'r_row', 'r_xml']) q;
DROP TYPE t.parcel;
