-- What the Jakarta Messaging provider calls: several sources, acknowledgements with the next dequeue, a dequeue with the commit, the binary form of messages.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('java', 'aq.jms_message', retry_delay => '0');
SELECT aq.create_queue('plain_text', 'text'), aq.create_queue('plain_json'), aq.create_queue('plain_bytes', 'bytea'), aq.create_queue('plain_xml', 'xml');
SELECT aq.create_queue('java_topic', 'aq.jms_message', multiple_consumers => true);
SELECT aq.subscribe('java_topic', 'ann'), aq.subscribe('java_topic', 'bob');

-- reads the binary form as a client does: it relies on nothing but the lengths
CREATE FUNCTION t.int(b bytea, at integer) RETURNS integer LANGUAGE sql AS $$
	SELECT ('x' || encode(substr(b, at + 1, 4), 'hex'))::bit(32)::integer $$;
CREATE FUNCTION t.column_of(b bytea, number integer) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	at integer := 4;
BEGIN
	FOR i IN 2 .. number LOOP
		at := at + 8 + greatest(t.int(b, at + 4), 0);
	END LOOP;
	RETURN CASE WHEN t.int(b, at + 4) >= 0 THEN substr(b, at + 9, t.int(b, at + 4)) END;
END $$;
CREATE TYPE t.jms_row AS (stale integer[], source integer, msgid uuid, receipt bigint, attempts integer, priority integer, types oid[], enqueued boolean, ready boolean, expires boolean, sender text,
	type text, headers text, properties text, text text, bytes bytea);
CREATE FUNCTION t.jms_read(b bytea) RETURNS SETOF t.jms_row LANGUAGE plpgsql AS $$
DECLARE
	at integer := 4;
	r t.jms_row;
	message bytea;
	payload bytea;
BEGIN
	r.stale := ARRAY(SELECT t.int(b, 4 * i) FROM generate_series(1, t.int(b, 0)) i);
	at := 4 + 4 * t.int(b, 0);
	r.source := t.int(b, at);
	IF t.int(b, at + 4) = 0 THEN
		ASSERT length(b) = at + 8;
		RETURN NEXT r;
	END IF;
	FOR i IN 1 .. t.int(b, at + 4) LOOP
		message := substr(b, at + 13, t.int(b, at + 8));
		at := at + 4 + t.int(b, at + 8);
		ASSERT t.int(message, 0) = 9;
		r.msgid := encode(t.column_of(message, 1), 'hex')::uuid;
		r.receipt := ('x' || encode(t.column_of(message, 2), 'hex'))::bit(64)::bigint;
		r.attempts := t.int(t.column_of(message, 3), 0);
		r.priority := t.int(t.column_of(message, 4), 0);
		r.enqueued := length(t.column_of(message, 5)) = 8;
		r.ready := t.column_of(message, 6) IS NOT NULL;
		r.expires := t.column_of(message, 7) IS NOT NULL;
		r.sender := convert_from(t.column_of(message, 8), 'UTF8');
		payload := t.column_of(message, 9);
		IF payload IS NOT NULL THEN
			ASSERT t.int(payload, 0) = 6;
		END IF;
		r.type := convert_from(t.column_of(payload, 1), 'UTF8');
		r.headers := convert_from(substr(t.column_of(payload, 2), 2), 'UTF8');
		r.properties := convert_from(substr(t.column_of(payload, 3), 2), 'UTF8');
		r.text := convert_from(t.column_of(payload, 5), 'UTF8');
		r.bytes := t.column_of(payload, 6);
		RETURN NEXT r;
	END LOOP;
	IF t.int(b, 4 + 4 * t.int(b, 0) + 4) > 0 THEN
		ASSERT length(b) = at + 8;
	END IF;
END $$;
CREATE FUNCTION t.jms(type text, body text, properties jsonb DEFAULT NULL) RETURNS aq.jms_message LANGUAGE sql AS $$
	SELECT ROW(type, '{}', properties, NULL, CASE WHEN type <> 'bytes' THEN body END, CASE WHEN type = 'bytes' THEN convert_to(body, 'UTF8') END)::aq.jms_message $$;

CREATE FUNCTION t.uuid_of(b bytea) RETURNS uuid LANGUAGE sql AS $$ SELECT encode(b, 'hex')::uuid $$;
CREATE FUNCTION t.time_of(b bytea) RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2000-01-01 UTC'::timestamptz + ('x' || encode(b, 'hex'))::bit(64)::bigint * interval '1 microsecond' $$;

-- the columns of a message
SELECT aq.enqueue('java', t.jms('text', 'one', '{"color": "red"}'), priority => 3, sender => 'me', expiration => '1 hour') IS NOT NULL,
	aq.enqueue('java', t.jms('bytes', 'two'), priority => 5) IS NOT NULL, aq.enqueue('java', NULL::aq.jms_message, priority => 9) IS NOT NULL;
SELECT attempts, priority, receipt, enqueued, ready, expires, sender, type, headers, properties, text, bytes FROM t.jms_read(aq_jms.browse('java'));
SELECT text, bytes FROM t.jms_read(aq_jms.browse('java', condition => $$payload.type = 'bytes'$$));
SELECT text, bytes FROM t.jms_read(aq_jms.browse('java', after => (SELECT msgid FROM aq.browse('java', NULL::aq.jms_message, max_messages => 1)), max_messages => 1));
SELECT source, msgid FROM t.jms_read(aq_jms.browse('java', condition => 'false'));
SELECT t.uuid_of(t.column_of(row, 1)) = m.msgid, t.time_of(t.column_of(row, 5)) = m.enqueue_time, t.time_of(t.column_of(row, 7)) = m.expires_at
FROM (SELECT substr(aq_jms.browse('java', max_messages => 1), 17)) f(row), aq.messages m WHERE m.queue_name = 'java' AND m.priority = 3;

-- the first source with messages; without a lease they are consumed
CALL aq_jms.receive(ARRAY['plain_text', 'java'], NULL, NULL, ARRAY[1, 2], '0') \gset
SELECT source, stale, type, text, bytes, receipt FROM t.jms_read(:'messages');
CALL aq_jms.receive(ARRAY['java', 'java'], ARRAY[NULL, NULL], ARRAY[$$payload.type = 'text'$$, $$priority = 9$$], ARRAY[1, 2], '0') \gset
SELECT source, stale, type, text, bytes, receipt FROM t.jms_read(:'messages');
CALL aq_jms.receive(ARRAY['java', 'java'], NULL, NULL, ARRAY[1, 1], '0') \gset
SELECT * FROM t.jms_read(:'messages');
CALL aq_jms.receive('{}', NULL, NULL, '{}') \gset
SELECT * FROM t.jms_read(:'messages');

-- payloads of other types
SELECT aq.enqueue('plain_text', 'a text'::text) IS NOT NULL, aq.enqueue('plain_json', '{"a": [1, "ü"]}', correlation => 'a "b" \ ü', properties => '{"color": "red"}') IS NOT NULL,
	aq.enqueue('plain_bytes', '\x00ff'::bytea) IS NOT NULL, aq.enqueue('plain_text', NULL::text, properties => '{"n": 1}') IS NOT NULL;
SELECT q, type, headers, properties, text, bytes FROM unnest(ARRAY['plain_text', 'plain_json', 'plain_bytes']) q, LATERAL t.jms_read(aq_jms.browse(q));
SELECT t.error($$SELECT aq_jms.browse('plain_xml')$$);
SELECT t.error($$CALL aq_jms.receive('{plain_xml}', NULL, NULL, '{1}', '0')$$);

-- leases and their acknowledgement, in one call with the next dequeue
SELECT aq.enqueue_array('java', ARRAY[t.jms('text', 'a'), t.jms('text', 'b'), t.jms('text', 'c'), t.jms('text', 'd')]) IS NOT NULL;
SELECT aq.enqueue('java_topic', t.jms('text', 'news')) IS NOT NULL;
CREATE TABLE t.held (queue text, consumer text, msgid uuid, receipt bigint, text text);
CREATE PROCEDURE t.receive(queue text, consumer text, n integer, lease interval) LANGUAGE plpgsql AS $$
DECLARE
	messages bytea;
BEGIN
	CALL aq_jms.receive(ARRAY[queue], ARRAY[consumer], NULL, ARRAY[n], '0', lease, messages => messages);
	INSERT INTO t.held SELECT queue, consumer, r.msgid, r.receipt, r.text FROM t.jms_read(messages) r;
END $$;
CALL t.receive('java', NULL, 2, '1 hour');
CALL t.receive('java', NULL, 1, '1 hour');
CALL t.receive('java_topic', 'ann', 1, '1 hour');
CALL t.receive('java_topic', 'bob', 1, '1 hour');
SELECT queue, consumer, text, receipt > 0, count(*) OVER (PARTITION BY queue, receipt) FROM t.held ORDER BY 1, 2, 3;
SELECT array_agg(queue ORDER BY text) AS queues, array_agg(consumer ORDER BY text) AS consumers, array_agg(msgid ORDER BY text) AS ids, array_agg(receipt ORDER BY text) AS receipts
FROM t.held WHERE text IN ('a', 'c', 'news') AND consumer IS DISTINCT FROM 'bob' \gset
CALL aq_jms.receive('{java}', NULL, NULL, '{1}', '0', NULL, :'queues', :'consumers', :'ids', :'receipts') \gset
SELECT source, stale, text FROM t.jms_read(:'messages');
-- a second time they are stale
SELECT aq_jms.acknowledge(:'queues', :'consumers', :'ids', :'receipts');
CALL aq_jms.receive('{}', NULL, NULL, '{}', '0', NULL, :'queues', :'consumers', :'ids', :'receipts') \gset
SELECT source, stale, text FROM t.jms_read(:'messages');

-- extend, release; the rest is not touched
SELECT aq_jms.extend(array_agg(queue ORDER BY text), array_agg(consumer ORDER BY text), array_agg(msgid ORDER BY text), array_agg(receipt ORDER BY text), '2 hours') FROM t.held;
SELECT aq_jms.release(array_agg(queue ORDER BY text), array_agg(consumer ORDER BY text), array_agg(msgid ORDER BY text), array_agg(receipt ORDER BY text), count => false) FROM t.held WHERE text = 'b';
SELECT text, attempts FROM t.jms_read(aq_jms.browse('java'));
CALL t.receive('java', NULL, 1, '1 hour');
SELECT aq_jms.release(array_agg(queue), array_agg(consumer), array_agg(msgid), array_agg(receipt), '0', 'broken') FROM (SELECT * FROM t.held WHERE text = 'b' ORDER BY receipt DESC LIMIT 1) h;
SELECT text, attempts FROM t.jms_read(aq_jms.browse('java'));
SELECT last_error FROM aq.messages WHERE queue_name = 'java' AND state = 'READY';

-- a queue that does not exist any more; another role's queue
SELECT aq_jms.acknowledge('{gone,java}', '{NULL,NULL}', ARRAY[msgid, msgid], ARRAY[receipt, receipt]) FROM t.held WHERE text = 'a';
SELECT aq_jms.acknowledge('{}', '{}', '{}', '{}'), aq_jms.acknowledge(NULL, NULL, NULL, NULL);
CREATE ROLE regress_aq_eve;
SET ROLE regress_aq_eve;
SELECT aq_jms.acknowledge('{java}', '{NULL}', '{00000000-0000-0000-0000-000000000000}', '{1}');
RESET ROLE;
SELECT aq.grant_queue('java', 'regress_aq_eve', 'enqueue');
SET ROLE regress_aq_eve;
SELECT aq_jms.acknowledge('{java}', '{NULL}', '{00000000-0000-0000-0000-000000000000}', '{1}');
RESET ROLE;
SELECT aq.revoke_queue('java', 'regress_aq_eve', 'enqueue');
SET ROLE regress_aq_eve;
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, '{1}', '0')$$);
SELECT t.error($$SELECT aq_jms.browse('java')$$);
RESET ROLE;

-- each message has its own result: of a queue without the privilege, of one that is a topic now, of one that is done
SELECT aq.create_queue('java_eve', 'aq.jms_message');
SELECT aq.grant_queue('java_eve', 'regress_aq_eve'), aq.grant_queue('java', 'regress_aq_eve', 'enqueue');
SELECT aq.enqueue('java_eve', t.jms('text', 'eve')) IS NOT NULL;
CALL t.receive('java_eve', NULL, 1, '1 hour');
SELECT msgid AS eve, receipt FROM t.held WHERE text = 'eve' \gset
SET ROLE regress_aq_eve;
SELECT aq_jms.extend('{java,java_eve,java_topic,java_eve,gone}', '{NULL,NULL,NULL,ann,NULL}', array_fill(:'eve'::uuid, '{5}'), array_fill(:receipt, '{5}')::bigint[], '1 hour');
SELECT aq_jms.release('{java,java_eve,java_eve}', '{NULL,ann,NULL}', array_fill(:'eve'::uuid, '{3}'), array_fill(:receipt, '{3}')::bigint[], count => false);
RESET ROLE;
CALL t.receive('java_eve', NULL, 1, '1 hour');
SELECT receipt FROM t.held WHERE text = 'eve' ORDER BY receipt DESC LIMIT 1 \gset
-- a busy one is not stale: here, this transaction has extended it
BEGIN;
SELECT aq_jms.extend('{java_eve}', '{NULL}', ARRAY[:'eve'::uuid], ARRAY[:receipt]::bigint[], '2 hours');
SELECT aq_jms.acknowledge('{gone,java_eve}', '{NULL,NULL}', array_fill(:'eve'::uuid, '{2}'), array_fill(:receipt, '{2}')::bigint[]);
CALL aq_jms.receive('{java_eve}', NULL, NULL, '{1}', NULL, NULL, '{gone,java_eve}', '{NULL,NULL}', array_fill(:'eve'::uuid, '{2}'), array_fill(:receipt, '{2}')::bigint[]) \gset
SELECT source, stale FROM t.jms_read(:'messages');
ROLLBACK;
SET ROLE regress_aq_eve;
SELECT aq_jms.acknowledge('{java,java_eve}', '{NULL,NULL}', array_fill(:'eve'::uuid, '{2}'), array_fill(:receipt, '{2}')::bigint[]);
RESET ROLE;
SELECT aq.drop_queue('java_eve', true), aq.revoke_queue('java', 'regress_aq_eve', 'enqueue');

-- arguments
SELECT t.error($$CALL aq_jms.receive(NULL, NULL, NULL, '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{NULL}', NULL, NULL, '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', '{NULL,NULL}', NULL, '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, '{}', '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, NULL, '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, '{1,2}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, '{NULL}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, '{0}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, NULL, '{1}', '0', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java}', NULL, '{nothing}', '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{java_topic}', NULL, NULL, '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{none}', NULL, NULL, '{1}', '0')$$);
SELECT t.error($$CALL aq_jms.receive('{}', NULL, NULL, '{}', '0', NULL, '{java}', '{}', '{}', '{}')$$);
SELECT t.error($$CALL aq_jms.receive('{}', NULL, NULL, '{}', '0', NULL, '{NULL}', '{NULL}', '{NULL}', '{NULL}')$$);
SELECT t.error($$SELECT aq_jms.extend('{}', '{}', '{}', '{}', NULL)$$);
SELECT t.error($$SELECT aq_jms.extend('{}', '{}', '{}', '{}', '0')$$);
SELECT t.error($$SELECT aq_jms.browse('java', max_messages => 0)$$);

-- in a transaction block the acknowledgement belongs to it, also if the call waits
TRUNCATE t.held;
SELECT aq.purge_queue('java') >= 0;
SELECT aq.enqueue('java', t.jms('text', 'x')) IS NOT NULL;
CALL t.receive('java', NULL, 1, '1 hour');
SELECT array_agg(queue) AS queues, array_agg(consumer) AS consumers, array_agg(msgid) AS ids, array_agg(receipt) AS receipts FROM t.held \gset
BEGIN;
CALL aq_jms.receive('{java}', NULL, NULL, '{1}', '10 ms', NULL, :'queues', :'consumers', :'ids', :'receipts') \gset
SELECT source, stale FROM t.jms_read(:'messages');
ROLLBACK;
-- outside, it is committed before the wait, which statement_timeout does not end: an error in the wait leaves it
SELECT aq.enqueue('java', t.jms('text', 'later'), delay => '200 ms', priority => 7) IS NOT NULL;
SET statement_timeout = '100 ms';
CALL aq_jms.receive('{java}', NULL, '{1 / (priority - 7) > 0}', '{1}', NULL, NULL, :'queues', :'consumers', :'ids', :'receipts') \gset
RESET statement_timeout;
SELECT aq_jms.acknowledge(:'queues', :'consumers', :'ids', :'receipts');
SELECT aq.purge_queue('java');
-- after the wait the transaction goes on, with a snapshot
CALL aq_jms.receive('{java,java_topic}', '{NULL,ann}', '{true,NULL}', '{1,1}', '1 ms', '1 hour', :'queues', :'consumers', :'ids', :'receipts') \gset
SELECT source, stale FROM t.jms_read(:'messages');

-- a limit of bytes: the first message always, those behind the limit without payload, to be released
SELECT aq.create_queue('sized', 'aq.jms_message'), aq.create_queue_table('sized_tables', 'aq.jms_message'), aq.create_queue('sized_table', queue_table => 'sized_tables');
SELECT count(aq.enqueue(q, t.jms('text', repeat('x', size)))) FROM unnest(ARRAY['sized', 'sized_table']) q, unnest(ARRAY[9000, 3000, 3000, 20, 3000, 20]) WITH ORDINALITY s(size, n);
CREATE TABLE t.sized (n bigint, queue text, msgid uuid, receipt bigint, length integer);
CREATE PROCEDURE t.receive_bytes(queue text, bytes integer, condition text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
	messages bytea;
BEGIN
	CALL aq_jms.receive(ARRAY[queue], NULL, ARRAY[condition], '{10}', '0', '1 hour', max_bytes => bytes, messages => messages);
	INSERT INTO t.sized SELECT row_number() OVER (), queue, r.msgid, r.receipt, length(r.text) FROM t.jms_read(messages) r;
END $$;
-- the lengths; releases them
CREATE FUNCTION t.sized() RETURNS text LANGUAGE sql AS $$
	SELECT aq_jms.release(array_agg(queue), array_agg(NULL::text), array_agg(msgid), array_agg(receipt), count => false) FROM t.sized;
	WITH gone AS (DELETE FROM t.sized RETURNING n, length) SELECT string_agg(coalesce(length::text, 'none'), ' ' ORDER BY n) FROM gone $$;
CALL t.receive_bytes('sized', 1);
SELECT t.sized();
CALL t.receive_bytes('sized', 16000);
SELECT t.sized();
CALL t.receive_bytes('sized', 1000000);
SELECT t.sized();
CALL t.receive_bytes('sized', 7000, 'length((payload).text) < 5000');
SELECT t.sized();
CALL t.receive_bytes('sized_table', 16000);
SELECT t.sized();
SELECT count(text), count(*) FROM t.jms_read(aq_jms.browse('sized', max_bytes => 13000));
SELECT count(text), count(*) FROM t.jms_read(aq_jms.browse('sized'));
SELECT t.error($$CALL aq_jms.receive('{sized}', NULL, NULL, '{1}', '0', max_bytes => 0)$$);
SELECT t.error($$SELECT aq_jms.browse('sized', max_bytes => -1)$$);
SELECT aq.drop_queue('sized', true), aq.drop_queue('sized_table', true), aq.drop_queue_table('sized_tables');
DROP PROCEDURE t.receive_bytes;
DROP FUNCTION t.sized();
DROP TABLE t.sized;

-- aq_jms.commit: sends, acknowledges and dequeues in one transaction; messages and leases as in aq_jms.send
CREATE FUNCTION t.jms_one(queue text, body text) RETURNS bytea LANGUAGE sql AS $$
	SELECT int4send(length(queue)) || convert_to(queue, 'UTF8') || int4send(4) || int8send(0) || int8send(0) || int4send(-1) || int4send(-1) || int4send(-1) || int4send(1)
		|| int4send(4) || 'text' || int4send(2) || '{}' || int4send(-1) || int4send(-1) || int4send(length(body)) || convert_to(body, 'UTF8') || int4send(-1) $$;
CREATE FUNCTION t.jms_leased(wanted text) RETURNS bytea LANGUAGE sql AS $$
	SELECT string_agg(int4send(length(queue)) || convert_to(queue, 'UTF8') || coalesce(int4send(length(consumer)) || convert_to(consumer, 'UTF8'), int4send(-1))
		|| int8send(receipt) || int4send(1) || uuid_send(msgid), '') FROM t.held WHERE text = wanted $$;
TRUNCATE t.held;
SELECT aq.purge_queue('java') >= 0, aq.purge_queue('java_topic') >= 0;
SELECT count(aq.enqueue('java', t.jms('text', body))) FROM unnest(ARRAY['first', 'second', 'third', 'fourth']) WITH ORDINALITY b(body, n);
CALL t.receive('java', NULL, 1, '1 hour');
WITH taken AS (SELECT r.* FROM t.jms_read(aq_jms.commit(t.jms_one('java_topic', 'sent'), t.jms_leased('first'), 'java', NULL, NULL, 2, '1 hour')) r),
	kept AS (INSERT INTO t.held SELECT 'java', NULL, msgid, receipt, text FROM taken)
SELECT stale, source, text, attempts, receipt > 0 AS leased FROM taken;
SELECT (payload).text, state FROM aq.messages WHERE queue_name = 'java' AND state IN ('READY', 'LEASED') ORDER BY 1;
SELECT text FROM t.jms_read(aq_jms.browse('java_topic', 'ann'));
-- with a condition, for a consumer, within a limit of bytes, without a lease, and nothing at all
SELECT text FROM t.jms_read(aq_jms.commit(NULL, NULL, 'java', NULL, $$payload.text = 'fourth'$$, 5, '1 hour'));
SELECT text FROM t.jms_read(aq_jms.commit(t.jms_one('java_topic', 'again'), NULL, 'java_topic', 'bob', NULL, 2, NULL, 1));
SELECT source, text FROM t.jms_read(aq_jms.commit(NULL, NULL, 'java', NULL, NULL, 2, '1 hour'));
-- a lease that has ended, or a source that is not there: nothing happens
SELECT t.error($$SELECT aq_jms.commit(t.jms_one('java', 'never'), t.jms_leased('first'), 'java_topic', 'ann', NULL, 1, '1 hour')$$);
SELECT t.error($$SELECT aq_jms.commit(t.jms_one('java', 'never'), t.jms_leased('second'), 'gone', NULL, NULL, 1, '1 hour')$$);
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, NULL, NULL, NULL, 1, '1 hour')$$);
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, 'java', NULL, NULL, NULL, '1 hour')$$);
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, 'java', NULL, NULL, 0, '1 hour')$$);
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, 'java', NULL, NULL, 1, '0')$$);
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, 'java', NULL, NULL, 1, '1 hour', 0)$$);
SET ROLE regress_aq_eve;
SELECT t.error($$SELECT aq_jms.commit(NULL, NULL, 'java', NULL, NULL, 1, '1 hour')$$);
RESET ROLE;
SELECT text FROM t.jms_read(aq_jms.browse('java_topic', 'ann'));
SELECT text FROM t.jms_read(aq_jms.commit(NULL, t.jms_leased('second') || t.jms_leased('third'), 'java', NULL, NULL, 2, '1 hour'));
SELECT (payload).text, state FROM aq.messages WHERE queue_name = 'java' AND state IN ('READY', 'LEASED') ORDER BY 1;

SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['java', 'java_topic', 'plain_text', 'plain_json', 'plain_bytes', 'plain_xml']) q;
DROP ROLE regress_aq_eve;
DROP PROCEDURE t.receive;
DROP TABLE t.held;
DROP FUNCTION t.jms, t.jms_read, t.column_of, t.int, t.uuid_of, t.time_of;
DROP TYPE t.jms_row;
