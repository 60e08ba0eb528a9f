-- Positions, groups, and places against the order.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue_table('t.pos', sort_list => 'priority'), aq.create_queue_table('t.plain'),
	aq.create_queue_table('t.grouped', message_grouping => true);
SELECT aq.create_queue('pos', queue_table => 't.pos', retry_delay => '0'), aq.create_queue('plain', queue_table => 't.plain', retry_delay => '0'),
	aq.create_queue('grouped', queue_table => 't.grouped', retry_delay => '0'), aq.create_queue('sharded', shards => 1, retry_delay => '0');
CREATE FUNCTION t.go(queue_name text, navigation text, mode text DEFAULT 'remove', number int DEFAULT 1, correlation text DEFAULT NULL)
RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(payload #>> '{}', ' '), 'nothing')
	FROM aq.dequeue(queue_name, mode => mode, max_messages => number, correlation => correlation, navigation => navigation)
$$;
-- next_message goes on behind the last one: what is more urgent comes in the next round
SELECT aq.enqueue('pos', to_jsonb(p), priority => p) IS NOT NULL FROM generate_series(3, 6) p;
SELECT t.go('pos', 'next_message'), t.go('pos', 'next_message');
SELECT aq.enqueue('pos', '1', priority => 1) IS NOT NULL;
SELECT t.go('pos', 'next_message'), t.go('pos', 'next_message'), t.go('pos', 'next_message'), t.go('pos', 'next_message');
-- first_message and no navigation see it at once
SELECT aq.enqueue('pos', to_jsonb(p), priority => p) IS NOT NULL FROM generate_series(3, 6) p;
SELECT t.go('pos', 'next_message');
SELECT aq.enqueue('pos', to_jsonb(p), priority => p) IS NOT NULL FROM generate_series(1, 2) p;
SELECT t.go('pos', NULL), t.go('pos', 'first_message'), t.go('pos', 'next_message');
SELECT t.drain('pos');
-- browsing from end to end, then it begins anew
SELECT t.put('plain', 1, 3);
SELECT t.go('plain', 'first_message', 'browse'), t.go('plain', 'next_message', 'browse'), t.go('plain', 'next_message', 'browse'),
	t.go('plain', 'next_message', 'browse'), t.go('plain', 'next_message', 'browse');
SELECT t.go('plain', 'first_message', 'browse', 2), t.go('plain', 'next_message', 'browse', 2), t.go('plain', 'next_message', 'browse', 2);
-- the same on a sharded queue
SELECT t.put('sharded', 1, 3);
SELECT t.go('sharded', 'first_message', 'browse'), t.go('sharded', 'next_message', 'browse', 2), t.go('sharded', 'next_message', 'browse');
SELECT t.go('sharded', 'first_message'), t.go('sharded', 'next_message'), t.go('sharded', 'next_message'), t.go('sharded', 'next_message');
-- a rolled back message comes in the next round
BEGIN;
SELECT t.go('plain', 'first_message');
ROLLBACK;
SELECT t.go('plain', 'next_message'), t.go('plain', 'next_message'), t.go('plain', 'next_message'), t.go('plain', 'next_message');
-- correlation and consumer must not change in between; without one is no change
SELECT aq.enqueue('plain', to_jsonb(n), correlation => 'c' || n % 2) IS NOT NULL FROM generate_series(1, 4) n;
SELECT t.go('plain', 'first_message', correlation => 'c1');
SELECT t.error($$SELECT t.go('plain', 'next_message', correlation => 'c0')$$);
SELECT t.error($$SELECT t.go('plain', 'next_message')$$);
SELECT t.go('plain', 'next_message', correlation => 'c1'), t.go('plain', 'next_message', correlation => 'c1');
SELECT t.go('plain', 'next_message', correlation => 'c0'), t.go('plain', 'first_message'), t.go('plain', 'next_message');
SELECT t.error($$SELECT t.go('plain', 'next_transaction')$$);
SELECT t.error($$SELECT t.go('plain', 'backwards')$$);
SELECT t.error($$SELECT t.go('sharded', 'next_transaction')$$);
-- groups: what a transaction has enqueued
BEGIN; SELECT t.put('grouped', 1, 3); COMMIT;
BEGIN; SELECT t.put('grouped', 4, 5); COMMIT;
SELECT t.put('grouped', 6);
SELECT t.error($$SELECT t.go('grouped', 'next_transaction')$$);
SELECT t.go('grouped', 'next_message'), t.go('grouped', 'next_message'), t.go('grouped', 'next_message');
SELECT t.error($$SELECT t.go('grouped', 'next_message')$$);
SELECT t.error($$SELECT t.go('grouped', 'next_message')$$);
SELECT t.go('grouped', 'next_transaction', number => 10);
SELECT t.go('grouped', 'next_transaction'), t.go('grouped', 'next_transaction');
-- skipping the rest of a group; coming back to it
BEGIN; SELECT t.put('grouped', 1, 3); COMMIT;
BEGIN; SELECT t.put('grouped', 4, 5); COMMIT;
SELECT t.go('grouped', 'first_message'), t.go('grouped', 'next_transaction', number => 10), t.go('grouped', 'first_message', number => 10);
-- over the ends of groups; without navigation one group a call
BEGIN; SELECT t.put('grouped', 1, 2); COMMIT;
BEGIN; SELECT t.put('grouped', 3, 4); COMMIT;
BEGIN; SELECT t.put('grouped', 5, 6); COMMIT;
SELECT t.go('grouped', 'first_message_multi_group', number => 3), t.go('grouped', NULL, number => 10), t.go('grouped', NULL, number => 10);
SELECT transaction_group IS NULL, state, message_delivery_mode FROM (SELECT aq.enqueue('grouped', '1') OFFSET 0) e, LATERAL aq.dequeue_full('grouped', as_type => (CASE WHEN e IS NULL THEN NULL END)::jsonb);
-- against the order
SELECT t.put('plain', 1, 2);
SELECT aq.enqueue('plain', '3') AS ref \gset
SELECT aq.enqueue('plain', to_jsonb('before ' || n), deviation => 'before', relative_msgid => :'ref') IS NOT NULL FROM generate_series(1, 20) n;
SELECT aq.enqueue('plain', to_jsonb('top ' || n), deviation => 'top') IS NOT NULL FROM generate_series(1, 3) n;
SELECT t.look('plain');
SELECT aq.enqueue('plain', '"last top"', deviation => 'top') AS top \gset
SELECT payload FROM aq.dequeue('plain', msgid => :'top');
SELECT cardinality(aq.enqueue_array('plain', '{"\"a\"", "\"b\""}'::jsonb[], deviation => 'before', relative_msgid => :'ref'));
SELECT t.drain('plain');
-- many before the same message: at the head, behind another one, behind its neighbour of an array
CREATE FUNCTION t.put_before(name text, ref uuid, n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM aq.enqueue(name, to_jsonb(i), deviation => 'before', relative_msgid => ref);
	END LOOP;
END $$;
-- each before the latest
CREATE FUNCTION t.put_down(name text, ref uuid, n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		ref := aq.enqueue(name, to_jsonb(n + 1 - i), deviation => 'before', relative_msgid => ref);
	END LOOP;
END $$;
-- the numbers 1 to n stand between '"front"', if there is one, and '"last"'
CREATE FUNCTION t.in_order(name text) RETURNS text LANGUAGE sql AS $$
	SELECT count(*) || CASE WHEN array_agg(payload ORDER BY number) = array_agg(payload ORDER BY
		CASE payload WHEN '"front"' THEN 0 WHEN '"last"' THEN 9999 ELSE payload::text::int END) THEN ' in order' ELSE ' in disorder' END
	FROM (SELECT payload, row_number() OVER () AS number FROM aq.dequeue(name, max_messages => 5000)) d $$;
SELECT aq.enqueue('plain', '"last"') AS ref \gset
SELECT t.put_before('plain', :'ref', 2000);
SELECT t.in_order('plain');
SELECT aq.enqueue('plain', '"front"') IS NOT NULL;
SELECT aq.enqueue('plain', '"last"') AS ref \gset
SELECT t.put_before('plain', :'ref', 2000);
SELECT t.in_order('plain');
SELECT (aq.enqueue_array('plain', '{"\"front\"", "\"last\""}'::jsonb[]))[2] AS ref \gset
SELECT t.put_before('plain', :'ref', 800);
SELECT t.in_order('plain');
SELECT aq.enqueue('plain', '"last"') AS ref \gset
SELECT t.put_down('plain', :'ref', 300);
SELECT t.in_order('plain');
SELECT (aq.enqueue_array('plain', '{"\"front\"", "\"last\""}'::jsonb[]))[2] AS ref \gset
SELECT t.error(format('SELECT t.put_down(%L, %L, 1000)', 'plain', :'ref'));
SELECT t.in_order('plain');
SELECT aq.enqueue('pos', '10', priority => 10) AS ref \gset
SELECT t.error(format($$SELECT aq.enqueue('pos', '11', priority => 11, deviation => 'before', relative_msgid => %L)$$, :'ref'));
SELECT t.error(format($$SELECT aq.enqueue('pos', '9', priority => 9, delay => '1 s', deviation => 'before', relative_msgid => %L)$$, :'ref'));
SELECT aq.enqueue('pos', '9', priority => 10, deviation => 'before', relative_msgid => :'ref') IS NOT NULL;
SELECT t.drain('pos');
SELECT t.error(format($$SELECT aq.enqueue('pos', '9', deviation => 'before', relative_msgid => %L)$$, :'ref'));
SELECT t.error($$SELECT aq.enqueue('pos', '9', deviation => 'before')$$);
SELECT t.error($$SELECT aq.enqueue('pos', '9', deviation => 'after')$$);
SELECT t.error($$SELECT aq.enqueue('sharded', '9', deviation => 'top')$$);
SELECT aq.drop_queue_table('t.pos', true), aq.drop_queue_table('t.plain', true), aq.drop_queue_table('t.grouped', true), aq.drop_queue('sharded', true);
DROP FUNCTION t.go;
DROP FUNCTION t.put_before, t.put_down, t.in_order;
