-- The payload type of Jakarta Messaging: any role that may create queues can use it, and conditions reach its fields.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_java;
GRANT EXECUTE ON FUNCTION aq.create_queue TO regress_aq_java;
SET ROLE regress_aq_java;
SELECT aq.create_queue('java', 'aq.jms_message');
SELECT aq.create_queue('java_topic', 'aq.jms_message', multiple_consumers => true);
SELECT aq.subscribe('java_topic', 'red', $$payload.properties ->> 'color' = 'red'$$), aq.subscribe('java_topic', 'orders', $$payload.headers ->> 'type' = 'order'$$),
	aq.subscribe('java_topic', 'heavy', $$jsonb_typeof(payload.properties -> 'weight') = 'number' AND (payload.properties -> 'weight')::numeric > 5$$);

CREATE TEMP TABLE message AS SELECT * FROM (VALUES
	(1, ROW('text', '{"message_id": "ID:1", "type": "order"}', '{"color": "red", "weight": 7}', '{"weight": "short"}', 'one', NULL)::aq.jms_message),
	(2, ROW('bytes', '{"message_id": "ID:2"}', '{"color": "blue"}', NULL, NULL, '\x0102')::aq.jms_message),
	(3, ROW('map', '{"message_id": "ID:3", "type": "order"}', NULL, NULL, '{"a": {"int": 5}}', NULL)::aq.jms_message),
	(4, ROW('message', NULL, NULL, NULL, NULL, NULL)::aq.jms_message)) m (number, payload);
SELECT aq.enqueue('java', payload) IS NOT NULL FROM message ORDER BY number;
SELECT number, aq.enqueue('java_topic', payload) IS NOT NULL FROM message ORDER BY number;

-- the fields of the payload; properties alone are those of pgaq
SELECT (payload).text FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$payload.properties ->> 'color' = 'red'$$);
SELECT (payload).bytes FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$tab.payload.properties ->> 'color' = 'blue'$$);
SELECT (payload).type FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$payload.headers ->> 'type' = 'order'$$);
SELECT (payload).type FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$payload.properties IS NULL$$);
SELECT (payload).type FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$properties ->> 'color' = 'red'$$);
SELECT count(*) FROM aq.browse('java', NULL::aq.jms_message, max_messages => 9, condition => $$properties IS NULL$$);
SELECT payload FROM aq.dequeue('java', NULL::aq.jms_message, max_messages => 9);
SELECT consumer, (payload).headers ->> 'message_id' FROM unnest(ARRAY['red', 'orders', 'heavy']) consumer, LATERAL aq.dequeue('java_topic', NULL::aq.jms_message, consumer, max_messages => 9);

-- it is the one exception: types of other roles need a grant by name, and so do the extension's views
RESET ROLE;
CREATE TYPE t.foreign_message AS (a integer);
SET ROLE regress_aq_java;
SELECT t.error($$SELECT aq.create_temporary_queue('aq.queues')$$);
SELECT t.error($$SELECT aq.create_queue('other', 't.foreign_message')$$);
SELECT aq.drop_queue('java', true), aq.drop_queue('java_topic', true);
RESET ROLE;
DROP TABLE message;
DROP TYPE t.foreign_message;
REVOKE EXECUTE ON FUNCTION aq.create_queue FROM regress_aq_java;
DROP ROLE regress_aq_java;
