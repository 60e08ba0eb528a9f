-- A condition on the state of aq.messages: partitions without such messages are not read.
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION t.state_passed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS off) ' || query LOOP
		RETURN QUERY SELECT regexp_replace(m[1], '\$\d+|\(InitPlan \w+\)\.col1', 'value') FROM regexp_matches(regexp_replace(line, ', \w+\.(table_no|first_block).*', ')'), 'Function Call: aq_internal.(message_rows\(.*)$') m;
	END LOOP;
END $$;
-- payloads of a state, and the rows of tables that were read for them
CREATE FUNCTION t.of_state(wanted text, OUT messages bigint, OUT rows_read bigint) LANGUAGE plpgsql AS $$
BEGIN
	rows_read := (SELECT COALESCE(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE schemaname = 'aq_data');
	messages := (SELECT count(*) FROM aq.messages WHERE queue_name = 'states' AND state = wanted);
	rows_read := (SELECT COALESCE(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE schemaname = 'aq_data') - rows_read;
END $$;

-- as a constant, a parameter, together with a message id; not what is computed for each row
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE state = 'READY'$$);
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE 'READY' = state AND queue_name = 'states' AND msgid = '00000000-0000-0000-0000-000000000001'$$);
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE state = (SELECT current_setting('aq.none', true))$$);
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE state <> 'READY'$$);
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE state = consumer$$);
SELECT t.state_passed($$SELECT * FROM aq.messages WHERE state IN ('READY', 'WAITING')$$);

SELECT aq.create_queue('states', shards => 1, retention => '1 day');
SELECT count(*) FROM unnest(aq.enqueue_array('states', (SELECT array_agg(n::text ORDER BY n) FROM generate_series(1, 40000) n)));
SELECT count(*) FROM aq.dequeue('states', max_messages => 39990);
SELECT count(*) FROM aq.dequeue('states', max_messages => 2, lease => '1 day');
SELECT aq.enqueue('states', '"later"', delay => '1 day') IS NOT NULL;
SELECT messages, rows_read BETWEEN 8 AND 20000 FROM t.of_state('READY');
SELECT messages, rows_read BETWEEN 2 AND 20000 FROM t.of_state('LEASED');
SELECT messages, rows_read BETWEEN 1 AND 100 FROM t.of_state('WAITING');
SELECT messages, rows_read > 40000 FROM t.of_state('PROCESSED');
SELECT messages, rows_read > 40000 FROM t.of_state('LOCKED');
SELECT messages, rows_read > 40000 FROM t.of_state('nonsense');
SET plan_cache_mode = force_generic_plan;
SELECT messages, rows_read FROM t.of_state(NULL);
RESET plan_cache_mode;
BEGIN;
SELECT payload FROM aq.dequeue('states');
SELECT messages FROM t.of_state('LOCKED');
COMMIT;
-- a topic: what one of the consumers has
SELECT aq.create_queue('states_topic', multiple_consumers => true, shards => 1);
SELECT aq.subscribe('states_topic', 'ann'), aq.subscribe('states_topic', 'bob');
SELECT aq.enqueue('states_topic', '1') IS NOT NULL;
SELECT count(*) FROM aq.dequeue('states_topic', 'ann', lease => '1 day');
SELECT consumer, state, payload FROM aq.messages WHERE queue_name = 'states_topic' AND state = 'LEASED';
SELECT consumer, state, payload FROM aq.messages WHERE queue_name = 'states_topic' AND state = 'READY';
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['states', 'states_topic']) q;
