-- aq_jms.send: messages and acknowledgements of a transaction, in binary form.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('java', 'aq.jms_message', retry_delay => '0');
SELECT aq.create_queue('java_topic', 'aq.jms_message', multiple_consumers => true);
SELECT aq.create_queue('plain', 'text');
SELECT aq.subscribe('java_topic', 'ann'), aq.subscribe('java_topic', 'bob', rule => $$payload.text = 'both'$$);

CREATE FUNCTION t.jms_packed(t text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(int4send(octet_length(t)) || convert_to(t, 'UTF8'), int4send(-1)) $$;
CREATE FUNCTION t.jms_group(queue text, n integer, messages bytea, priority integer DEFAULT 4, delay bigint DEFAULT 0, expiration bigint DEFAULT 0,
	correlation text DEFAULT NULL, producer text DEFAULT NULL, mode text DEFAULT NULL) RETURNS bytea LANGUAGE sql AS $$
	SELECT t.jms_packed(queue) || int4send(priority) || int8send(delay) || int8send(expiration) || t.jms_packed(correlation) || t.jms_packed(producer)
		|| t.jms_packed(mode) || int4send(n) || messages $$;
CREATE FUNCTION t.jms_text(body text, headers text DEFAULT '{"message_id": "ID:1"}', properties text DEFAULT NULL) RETURNS bytea LANGUAGE sql AS $$
	SELECT t.jms_packed('text') || t.jms_packed(headers) || t.jms_packed(properties) || t.jms_packed(NULL) || t.jms_packed(body) || t.jms_packed(NULL) $$;
CREATE FUNCTION t.jms_leases(queue text, receipt bigint, ids uuid[], consumer text DEFAULT NULL) RETURNS bytea LANGUAGE sql AS $$
	SELECT t.jms_packed(queue) || t.jms_packed(consumer) || int8send(receipt) || int4send(cardinality(ids)) || (SELECT string_agg(uuid_send(i), '') FROM unnest(ids) i) $$;

-- several groups, in order; all options
SELECT aq_jms.send(t.jms_group('java', 2, t.jms_text('one') || t.jms_text('täxt', '{"b": [1, null], "a": 1}', '{"color": "red"}'))
	|| t.jms_group('java', 1, t.jms_packed('bytes') || t.jms_packed(NULL) || t.jms_packed(NULL) || t.jms_packed(NULL) || t.jms_packed(NULL) || int4send(3) || '\x00ff0a'::bytea,
		priority => 0, expiration => 3600000, correlation => 'c1', producer => 'p')
	|| t.jms_group('java', 1, t.jms_text('later'), delay => 3600000));
SELECT priority, correlation, (payload).type, (payload).headers, (payload).properties, (payload).property_types, (payload).text, (payload).bytes
	FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 10);
SELECT state, ready_at - enqueue_time > '59 minutes' FROM aq.messages WHERE queue_name = 'java' AND state = 'WAITING';
-- the trace context of the session, unless the message has one
BEGIN;
SET LOCAL pgaq.traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
SELECT aq_jms.send(t.jms_group('java', 2, t.jms_text('traced', properties => '{"a": 1}')
	|| t.jms_text('has its own', properties => '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}')));
COMMIT;
SELECT (payload).text, (payload).properties, properties FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 10, condition => $$payload.properties ? 'traceparent'$$);
-- a topic: rules apply; a message without a subscriber is dropped silently
SELECT aq_jms.send(t.jms_group('java_topic', 2, t.jms_text('both') || t.jms_text('ann only')));
SELECT c, (m.payload).text FROM unnest(ARRAY['ann', 'bob']) c, aq.dequeue('java_topic', NULL::aq.jms_message, consumer => c, max_messages => 10) m;
SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('kept in memory'), mode => 'buffered'));
SELECT (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, delivery_mode => 'buffered');
-- affinity chooses the shard
SELECT aq.create_queue('java_shards', 'aq.jms_message', shards => 4);
SELECT count(aq_jms.send(t.jms_group('java_shards', 1, t.jms_text(n)), affinity => n)), sum(cardinality(aq_jms.enqueue('java_shards', ARRAY[aq_jms.text(n)], affinity => n)))
	FROM (SELECT 'x' || n AS n FROM generate_series(1, 20) n) o;
SELECT count(aq_jms.commit(t.jms_group('java_shards', 1, t.jms_text(n)), NULL, 'plain', NULL, NULL, 1, NULL, affinity => n)) FROM (SELECT 'x' || n AS n FROM generate_series(1, 20) n) o;
SELECT count(DISTINCT ((payload::aq.jms_message).text, shard)), count(DISTINCT shard) > 1, count(*) FROM aq.messages WHERE queue_name = 'java_shards';
SELECT aq.drop_queue('java_shards', force => true);
-- messages of other types
SELECT cardinality(aq_jms.enqueue('plain', ARRAY['one', 'two'], 3, '0', '1 hour', 'c', 'p', 'x1', '[{"properties": {"a": 1}}, null]'));
SELECT payload, priority, correlation, properties FROM aq.dequeue('plain', as_type => NULL::text, max_messages => 10);
SELECT t.error($$SELECT aq_jms.enqueue(NULL, ARRAY['a'])$$);
SELECT t.error($$SELECT aq_jms.enqueue('plain', NULL::text[])$$);
SELECT t.error($$SELECT aq_jms.enqueue('plain', ARRAY['a'], options => '[]')$$);
SELECT t.error($$SELECT aq_jms.enqueue('plain', ARRAY[1])$$);
-- nothing at all
SELECT aq_jms.send(NULL), aq_jms.send(NULL, NULL), aq_jms.send('', ''), aq_jms.send(t.jms_group('java', 0, ''));

-- with acknowledgements: all or none
SELECT aq_jms.send(t.jms_group('java', 2, t.jms_text('a') || t.jms_text('b')));
CREATE TABLE t.jms_held AS SELECT msgid, receipt, (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 10, lease => '1 hour');
SELECT text FROM t.jms_held ORDER BY text;
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('never')), t.jms_leases('java', receipt, ARRAY[msgid, gen_random_uuid()])) FROM t.jms_held WHERE text = 'a'$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('never')), t.jms_leases('java', receipt, ARRAY[msgid]) || t.jms_leases('gone', 1, ARRAY[msgid])) FROM t.jms_held WHERE text = 'a'$$);
SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('reply')), t.jms_leases('java', receipt, array_agg(msgid))) FROM t.jms_held GROUP BY receipt;
SELECT (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 10);
SELECT t.error($$SELECT aq_jms.send(NULL, t.jms_leases('java', receipt, ARRAY[msgid])) FROM t.jms_held WHERE text = 'a'$$);
-- what is acknowledged makes room for what is sent; the other message has a delay
SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('only')));
TRUNCATE t.jms_held;
INSERT INTO t.jms_held SELECT msgid, receipt, (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, lease => '1 hour');
SELECT aq.alter_queue('java', max_depth => 2, on_full => 'error');
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('too many')))$$);
SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('next')), t.jms_leases('java', receipt, ARRAY[msgid])) FROM t.jms_held;
SELECT aq.alter_queue('java', max_depth => -1);
SELECT (payload).text FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 10);
-- of a subscriber
SELECT aq_jms.send(t.jms_group('java_topic', 1, t.jms_text('both')));
CREATE TABLE t.jms_of AS SELECT c, m.msgid, m.receipt FROM unnest(ARRAY['ann', 'bob']) c, aq.dequeue('java_topic', NULL::aq.jms_message, consumer => c, lease => '1 hour') m;
SELECT aq_jms.send(NULL, string_agg(t.jms_leases('java_topic', receipt, ARRAY[msgid], c), '')) FROM t.jms_of;
SELECT count(*) FROM aq.messages WHERE queue_name = 'java_topic' AND state <> 'PROCESSED';

-- errors
SELECT t.error($$SELECT aq_jms.send(t.jms_group(NULL, 0, ''))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('nowhere', 1, t.jms_text('a')))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('plain', 1, t.jms_text('a')))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a'), priority => 10))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a'), expiration => -1))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a'), delay => 9223372036854775807))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a'), mode => 'fast'))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a', '{"open"')))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1000000000, t.jms_text('a')))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', -1, t.jms_text('a')))$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 2, t.jms_text('a')))$$);
SELECT t.error($$SELECT aq_jms.send('\x7fffffff')$$);
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_packed('text') || t.jms_packed('{}') || t.jms_packed(NULL) || t.jms_packed(NULL) || int4send(2) || '\xc328'::bytea || t.jms_packed(NULL)))$$);
SELECT t.error($$SELECT aq_jms.send(NULL, t.jms_packed('java') || t.jms_packed(NULL) || int8send(1) || int4send(100))$$);
CREATE ROLE regress_aq_eve;
GRANT USAGE ON SCHEMA t TO regress_aq_eve;
SET ROLE regress_aq_eve;
SELECT t.error($$SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('a')))$$);
RESET ROLE;
SELECT count(*) FROM aq.messages WHERE queue_name = 'java' AND state = 'READY';
-- a lease without the privilege
SELECT aq_jms.send(t.jms_group('java', 1, t.jms_text('held')));
CREATE TABLE t.jms_eve AS SELECT msgid, receipt FROM aq.dequeue('java', NULL::aq.jms_message, lease => '1 hour');
GRANT SELECT ON t.jms_eve TO regress_aq_eve;
SET ROLE regress_aq_eve;
SELECT t.error(format('SELECT aq_jms.send(NULL, %L)', t.jms_leases('java', receipt, ARRAY[msgid]))) FROM t.jms_eve;
RESET ROLE;
DROP TABLE t.jms_eve;
SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['java', 'java_topic', 'plain']) q;
REVOKE USAGE ON SCHEMA t FROM regress_aq_eve;
DROP ROLE regress_aq_eve;

-- temporary destinations in a temporary queue: those that its session has claimed are sent to
SELECT aq.create_temporary_queue('aq.jms_message') AS temporary \gset
CREATE FUNCTION t.jms_reply(queue text, number text) RETURNS bytea LANGUAGE sql AS $$
	SELECT t.jms_group(queue, 1, t.jms_text('reply to ' || number, json_build_object('destination', format('temporary-queue:%s/%s', queue, number))::text)) $$;
SELECT array_agg(replace(name, :'temporary', 'QUEUE')) FROM unnest(aq_jms.claim(:'temporary', 4, 3)) name;
SELECT aq_jms.claim(:'temporary', 7, 0), count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT aq_jms.send(t.jms_reply(:'temporary', n)) FROM unnest(ARRAY['05', '04', '1']) n;
SELECT aq_jms.unclaim(:'temporary' || '/05'), aq_jms.unclaim(:'temporary' || '/05');
SELECT replace(t.error(format('SELECT aq_jms.send(t.jms_reply(%L, %L))', :'temporary', n)), :'temporary', 'QUEUE') FROM unnest(ARRAY['05', '07', '04']) n;
SELECT aq_jms.send(t.jms_reply(:'temporary', '05'), skip_gone => true);
BEGIN;
SELECT cardinality(aq_jms.claim(:'temporary', 7, 1));
ROLLBACK;
SELECT aq_jms.send(t.jms_reply(:'temporary', '07'));
SELECT (payload).text FROM aq.dequeue(:'temporary', NULL::aq.jms_message, max_messages => 10);
SELECT replace(t.error(format('SELECT aq_jms.claim(%L, %L, %L)', coalesce(q, :'temporary'), first, n)), :'temporary', 'QUEUE')
	FROM (VALUES (NULL, 1, 101), (NULL, 1, -1), (NULL, NULL, 1), (NULL, 1, NULL), ('java', 1, 1), ('gone', 1, 1)) a (q, first, n);
SELECT t.error('SELECT aq_jms.unclaim(NULL)');
SELECT aq.drop_queue(:'temporary', force => true);
-- a claim has no effect without its queue
SELECT aq_jms.send(t.jms_reply(:'temporary', '04'), skip_gone => true);
SELECT aq_jms.unclaim(:'temporary' || '/0' || n) FROM unnest(ARRAY[4, 6, 7]) n;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
