-- One message by its id: aq.message, aq.messages WHERE msgid = ..., aq.cancel.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_one;
SELECT aq.create_queue('om', max_retries => 2, retry_delay => '0');
SELECT aq.create_queue('om_later', retry_delay => '1 day');
SELECT aq.create_queue('om_topic', multiple_consumers => true, retry_delay => '0');
SELECT aq.subscribe('om_topic', 'ann'), aq.subscribe('om_topic', 'bob'), aq.subscribe('om_topic', 'cid');
CREATE FUNCTION t.one(queue text, id uuid) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(concat_ws(' ', consumer, payload, state, attempts), ', ' ORDER BY consumer) FROM aq.message(queue, id) $$;

-- states
SELECT aq.enqueue('om', '1') AS one \gset
SELECT aq.enqueue('om', '2', delay => '1 day') AS two \gset
SELECT t.one('om', :'one'), t.one('om', :'two');
-- an expired one, before it is committed and the worker removes it
BEGIN;
SELECT aq.enqueue('om', '3', expiration => '1 microsecond') AS three \gset
SELECT t.one('om', :'three');
COMMIT;
SELECT queue_name, payload, state FROM aq.messages WHERE msgid = :'one';
SELECT queue_name, payload, state FROM aq.messages WHERE :'two'::uuid = msgid AND state = 'WAITING';
SELECT t.one('om_later', :'one') IS NULL, t.one('no such queue', :'one') IS NULL, t.one('om', gen_random_uuid()) IS NULL, t.one('om', NULL) IS NULL;
BEGIN;
SELECT payload FROM aq.dequeue('om');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('om', mode => 'browse');
SELECT t.one('om', :'one');
SELECT payload FROM aq.dequeue('om');
SELECT coalesce(t.one('om', :'one'), '1 PROCESSED 1');

-- a condition on msgid reaches the functions: as a constant, a parameter, and a subquery's value
CREATE FUNCTION t.called_with(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS off) ' || query LOOP
		RETURN QUERY SELECT regexp_replace(m[1], '''[-0-9a-f]{36}''::uuid|\$\d+|\(InitPlan \w+\)\.col1', 'ID') FROM regexp_matches(regexp_replace(line, ', \w+\.(table_no|first_block).*', ')'), 'Function Call: aq_internal.(\w*message_rows\(.*)$') m;
	END LOOP;
END $$;
SELECT t.called_with($$SELECT * FROM aq.messages WHERE msgid = '$$ || :'two' || $$'$$);
SELECT t.called_with($$SELECT * FROM aq.messages WHERE queue_name = 'om' AND msgid = (SELECT original_msgid FROM aq.messages LIMIT 1)$$);
SELECT t.called_with($$SELECT * FROM aq.messages WHERE msgid <> '$$ || :'two' || $$'$$);
SELECT t.called_with($$SELECT * FROM aq.messages WHERE msgid = gen_random_uuid()$$);
SELECT t.called_with($$SELECT * FROM aq.messages WHERE msgid = original_msgid$$);
PREPARE by_id (uuid) AS SELECT payload FROM aq.messages WHERE msgid = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_id(:'two');
EXECUTE by_id(NULL);
RESET plan_cache_mode;
SELECT payload FROM aq.messages WHERE msgid = (SELECT :'two'::uuid);
SELECT u.id = m.msgid, m.payload FROM (VALUES (:'two'::uuid)) u (id) JOIN aq.messages m ON m.msgid = u.id;
-- in the second of several partitions
SELECT ids[3] AS low, ids[20000] AS high FROM aq.enqueue_array('om', (SELECT array_agg(n::text ORDER BY n) FROM generate_series(1, 30000) n)) ids \gset
SELECT t.one('om', :'low'), t.one('om', :'high');
-- a query that wants a few messages does not read them all
CREATE FUNCTION t.rows_read(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT sum((node ->> 'Actual Rows')::numeric * (node ->> 'Actual Loops')::numeric)
		FROM jsonb_path_query(plan::jsonb, 'strict $.**?(@."Function Name" like_regex "message_rows$")') node);
END $$;
SELECT t.rows_read($$SELECT * FROM aq.messages WHERE queue_name = 'om' LIMIT 10$$) BETWEEN 10 AND 3000;
SELECT count(*), count(DISTINCT payload) FROM aq.messages WHERE queue_name = 'om' AND state = 'READY';
SELECT aq.cancel('om', :'high');
SELECT aq.cancel('om', :'high');
SELECT count(*) FROM aq.dequeue('om', max_messages => 40000);

-- cancel: ready, delayed, waiting for its retry delay
SELECT aq.enqueue('om', '4') AS four \gset
SELECT aq.cancel('om', :'four'), aq.cancel('om', :'two');
SELECT count(*) FROM aq.dequeue('om', max_messages => 10);
SELECT aq.cancel('om', :'four'), aq.cancel('om', :'one'), aq.cancel('om', gen_random_uuid()), aq.cancel('om_topic', :'four');
SELECT aq.enqueue('om_later', '1') AS rests \gset
BEGIN;
SELECT payload FROM aq.dequeue('om_later');
ROLLBACK;
SELECT count(*) FROM aq.dequeue('om_later');
SELECT t.one('om_later', :'rests');
SELECT aq.cancel('om_later', :'rests');
SELECT aq.cancel('om_later', :'rests');
-- rolled back: it is there again, without an attempt
SELECT aq.enqueue('om', '5') AS five \gset
BEGIN;
SELECT aq.cancel('om', :'five');
SELECT count(*) FROM aq.dequeue('om');
ROLLBACK;
SELECT t.one('om', :'five');
BEGIN;
SAVEPOINT s;
SELECT aq.cancel('om', :'five');
ROLLBACK TO s;
SELECT t.one('om', :'five');
SELECT aq.cancel('om', :'five');
COMMIT;
SELECT aq.cancel('om', :'five');
-- its own: enqueued, and locked
BEGIN;
SELECT aq.enqueue('om', '6') AS six \gset
SELECT aq.cancel('om', :'six');
SELECT count(*) FROM aq.dequeue('om');
COMMIT;
SELECT aq.cancel('om', :'six');
SELECT aq.enqueue('om', '7') AS seven \gset
BEGIN;
SELECT payload FROM aq.dequeue('om', mode => 'locked');
SELECT aq.cancel('om', :'seven');
COMMIT;
SELECT t.one('om', :'seven');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT aq.cancel('om', :'seven');
COMMIT;
-- buffered
SELECT aq.enqueue('om', '8', delivery_mode => 'buffered') AS eight \gset
SELECT t.one('om', :'eight'), (SELECT string_agg(delivery_mode, ' ') FROM aq.message('om', :'eight'));
SELECT aq.cancel('om', :'eight');
SELECT aq.cancel('om', :'eight');
SELECT count(*) FROM aq.dequeue('om', delivery_mode => 'buffered');

-- a topic: for all consumers, subscribers and recipients
SELECT aq.enqueue('om_topic', '1') AS one \gset
SELECT aq.enqueue('om_topic', '2', recipients => ARRAY['ann', 'guest']) AS two \gset
SELECT t.one('om_topic', :'one'), t.one('om_topic', :'two');
SELECT payload FROM aq.dequeue('om_topic', 'ann', msgid => :'one');
SELECT aq.cancel('om_topic', :'one'), aq.cancel('om_topic', :'two');
SELECT count(*) FROM aq.dequeue('om_topic', 'bob');
SELECT count(*) FROM aq.dequeue('om_topic', 'ann');
SELECT count(*) FROM aq.dequeue('om_topic', 'guest');
SELECT aq.cancel('om_topic', :'one'), aq.cancel('om_topic', :'two');

-- refused
SELECT t.error($$SELECT aq.cancel('om', NULL)$$);
SELECT t.error($$SELECT aq.cancel(NULL, gen_random_uuid())$$);
SELECT t.error($$SELECT aq.cancel('no such queue', gen_random_uuid())$$);
SELECT aq.enqueue('om', '9') AS nine \gset
SELECT aq.enqueue('om_topic', '9') AS tnine \gset
SET ROLE regress_aq_one;
SELECT t.error(format('SELECT aq.cancel(%L, %L)', 'om', :'nine'));
SELECT t.one('om', :'nine');
RESET ROLE;
SELECT aq.grant_queue('om', 'regress_aq_one', 'enqueue'), aq.grant_consumer('om_topic', 'ann', 'regress_aq_one');
SET ROLE regress_aq_one;
SELECT t.error(format('SELECT aq.cancel(%L, %L)', 'om', :'nine')), t.error(format('SELECT aq.cancel(%L, %L)', 'om_topic', :'tnine'));
SELECT t.one('om', :'nine'), t.one('om_topic', :'tnine');
RESET ROLE;
SELECT aq.grant_queue('om', 'regress_aq_one', 'dequeue');
SET ROLE regress_aq_one;
SELECT t.one('om', :'nine');
SELECT aq.cancel('om', :'nine');
RESET ROLE;
SELECT aq.enqueue('om', '10') AS ten \gset
SELECT aq.stop_queue('om');
SELECT t.error(format('SELECT aq.cancel(%L, %L)', 'om', :'ten'));
SELECT t.one('om', :'ten');
BEGIN READ ONLY;
SELECT t.one('om', :'ten');
SELECT t.error(format('SELECT aq.cancel(%L, %L)', 'om_topic', :'tnine'));
COMMIT;
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['om', 'om_later', 'om_topic']) q;
DROP ROLE regress_aq_one;
