-- Subscriber rules: evaluated at enqueue over priority, correlation, properties and payload.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('r', multiple_consumers => true);
SELECT aq.subscribe('r', 'urgent', 'priority <= 2');
SELECT aq.subscribe('r', 'corr', 'correlation LIKE ''a%''');
SELECT aq.subscribe('r', 'prop', 'properties->>''colour'' = ''red''');
SELECT aq.subscribe('r', 'load', '(payload->>''amount'')::int > 100');
SELECT aq.subscribe('r', 'mixed', 'priority BETWEEN 3 AND 5 AND coalesce(correlation, '''') <> ''skip'' OR payload ? ''always''');
CREATE FUNCTION t.who() RETURNS TABLE (consumer text, got text) LANGUAGE sql AS $$
	SELECT s.consumer, t.drain('r', s.consumer) FROM aq_internal.subscriber s JOIN aq_internal.queue USING (queue_id)
	WHERE queue_name = 'r' AND s.kind = 'subscriber' ORDER BY 1
$$;
SELECT aq.enqueue('r', '{"n": 1}', priority => 0) IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.enqueue('r', '{"n": 2}', priority => 9, correlation => 'abc') IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.enqueue('r', '{"n": 3}', priority => 9, properties => '{"colour": "red"}') IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.enqueue('r', '{"n": 4, "amount": 101}', priority => 9) IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.enqueue('r', '{"n": 5}', priority => 4) IS NOT NULL;
SELECT aq.enqueue('r', '{"n": 6, "always": 1}', priority => 4, correlation => 'skip') IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
-- no rule is true: no id, and nothing is stored
SELECT aq.enqueue('r', '{"n": 7}', priority => 9) IS NULL;
SELECT count(*) FROM aq.messages WHERE queue_name = 'r' AND state = 'READY';
-- null is not true
SELECT aq.enqueue('r', '{"amount": null}', priority => 9) IS NULL;
-- nor is a rule that fails; the others get the message
SELECT aq.enqueue('r', '{"amount": "many"}', priority => 9) IS NULL, aq.enqueue('r', '{"amount": "many"}', priority => 0) IS NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
-- an array is judged element by element
SELECT array_agg(id IS NULL) FROM unnest(aq.enqueue_array('r', ARRAY['{"amount": 5}', '{"amount": 500}', '{"amount": 6}', '{"amount": 501}'], priority => 9)) id;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.enqueue_array('r', ARRAY['{"amount": 5}', '{"amount": 6}'], priority => 9);
SELECT aq.subscribe('r', 'all');
SELECT cardinality(aq.enqueue_array('r', ARRAY['{"amount": 5}', '{"amount": 500}', '{"amount": 6}'], priority => 9));
SELECT * FROM t.who() WHERE got IS NOT NULL;
-- the rule is fixed at enqueue: changing it does not touch what is stored
SELECT aq.enqueue('r', '{"n": 8}', priority => 0) IS NOT NULL;
SELECT aq.alter_subscriber('r', 'urgent', 'priority = 7');
SELECT aq.enqueue('r', '{"n": 9}', priority => 0) IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
SELECT aq.alter_subscriber('r', 'urgent', NULL);
SELECT aq.enqueue('r', '{"n": 10}', priority => 9) IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
-- alter in a transaction that is rolled back
BEGIN;
SELECT aq.alter_subscriber('r', 'urgent', 'false');
SELECT aq.enqueue('r', '{"n": 11}', priority => 9) IS NOT NULL;
SELECT t.drain('r', 'urgent') IS NULL;
ROLLBACK;
SELECT aq.enqueue('r', '{"n": 12}', priority => 9) IS NOT NULL;
SELECT * FROM t.who() WHERE got IS NOT NULL;
-- rules that are refused
SELECT t.error($$SELECT aq.subscribe('r', 'bad', 'priority =')$$);
SELECT t.error($$SELECT aq.subscribe('r', 'bad', 'no_such = 1')$$);
SELECT t.error($$SELECT aq.subscribe('r', 'bad', 'priority + 1')$$);
SELECT t.error($$SELECT aq.subscribe('r', 'bad', '')$$);
SELECT t.error($$SELECT aq.subscribe('r', 'bad', 'true; SELECT 1')$$);
SELECT t.error($$SELECT aq.subscribe('r', 'bad', 'true) UNION SELECT (true')$$);
SELECT split_part(t.error($$SELECT aq.subscribe('r', 'bad', 'EXISTS (SELECT 1 FROM pg_class)')$$), ' | ', 1);
SELECT split_part(t.error($$SELECT aq.subscribe('r', 'bad', 'sum(priority) > 1')$$), ' | ', 1);
SELECT t.error($$SELECT aq.alter_subscriber('r', 'all', 'priority =')$$);
SELECT count(*) FROM aq_internal.subscriber WHERE consumer = 'bad';
-- names are looked up in pg_catalog: a caller's search_path changes nothing
CREATE FUNCTION t.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'hijacked' $$;
SET search_path = t, public, pg_catalog;
SELECT aq.subscribe('r', 'path', 'lower(correlation) = ''x''');
SELECT aq.enqueue('r', '{"n": 13}', correlation => 'X') IS NOT NULL;
RESET search_path;
SELECT * FROM t.who() WHERE got IS NOT NULL AND consumer = 'path';
DROP FUNCTION t.lower(text);
SELECT aq.drop_queue('r', true);
DROP FUNCTION t.who();
-- composite payload: fields by name; a field called as a property gives way to the property or is reached by payload
CREATE TYPE t.sale AS (region text, amount numeric, priority integer);
SELECT aq.create_queue('r', 't.sale', multiple_consumers => true);
SELECT aq.subscribe('r', 'north', 'region = ''north''');
SELECT aq.subscribe('r', 'large', 'amount > 1000 AND (payload).region IS NOT NULL');
SELECT aq.enqueue('r', ROW('north', 5, 1)::t.sale) IS NOT NULL;
SELECT aq.enqueue('r', ROW('south', 5000, 1)::t.sale) IS NOT NULL;
SELECT aq.enqueue('r', ROW('north', 5000, 1)::t.sale) IS NOT NULL;
SELECT payload FROM aq.dequeue('r', NULL::t.sale, 'north', 10);
SELECT payload FROM aq.dequeue('r', NULL::t.sale, 'large', 10);
SELECT aq.drop_queue('r');
DROP TYPE t.sale;
-- the state in which the message is stored: 0 ready, 1 waiting for its delay
SELECT aq.create_queue('r_state', multiple_consumers => true);
SELECT aq.subscribe('r_state', 'ready', 'state = 0'), aq.subscribe('r_state', 'delayed', 'state = 1');
SELECT aq.enqueue('r_state', '"now"') IS NOT NULL, aq.enqueue('r_state', '"later"', delay => '1 hour') IS NOT NULL;
SELECT consumer, state, payload FROM aq.messages WHERE queue_name = 'r_state' ORDER BY consumer;
SELECT aq.drop_queue('r_state', force => true);
