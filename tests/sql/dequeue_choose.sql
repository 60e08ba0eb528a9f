-- Choosing: correlation, message id, condition; and what does not fit together.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('f');
SELECT count(aq.enqueue('f', jsonb_build_object('n', n, 'kind', CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END), correlation => 'c' || n,
	priority => CASE WHEN n > 8 THEN 0 END, properties => jsonb_build_object('big', n > 5))) FROM generate_series(1, 10) n;
-- correlation is a LIKE pattern
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'c3', mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'c1%', max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'c_', max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'nothing%', max_messages => 10);
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'c7');
SELECT payload->'n' FROM aq.dequeue('f', correlation => 'c7');
-- condition over properties of the message
SELECT payload->'n' FROM aq.dequeue('f', condition => 'priority = 0', max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', condition => 'priority > 0 AND correlation < ''c3''', max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', condition => $$(properties->>'big')::boolean$$, max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', condition => 'attempts = 0 AND enqueue_time <= now()', max_messages => 2, mode => 'browse');
-- and over the payload
SELECT payload->'n' FROM aq.dequeue('f', condition => $$payload->>'kind' = 'even'$$, max_messages => 10, mode => 'browse');
SELECT payload->'n' FROM aq.dequeue('f', condition => $$(payload->>'n')::int BETWEEN 4 AND 6$$, max_messages => 2);
SELECT payload->'n' FROM aq.dequeue('f', condition => 'payload->>''no such key'' = ''1''');		-- null is not true
SELECT payload->'n' FROM aq.dequeue('f', condition => 'true', correlation => 'c9');		-- both
-- what the condition cannot be
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'no_such_column = 1')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'priority =')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'priority')$$);
-- what PostgreSQL advises depends on its version
SELECT split_part(t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'payload -> ''n'' > 3')$$), ' | ', 2);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'EXISTS (SELECT 1)')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'count(*) > 1')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'payload = ''x''')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => '')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'true); DROP TABLE x; --')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => 'true) OR (true')$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('f', condition => '1/0 = 1')$$);
SELECT t.look('f') IS NOT NULL;
-- an error in the condition took nothing
SELECT count(*) FROM aq.browse('f');
-- by id
SELECT msgid AS third FROM aq.browse('f') LIMIT 1 OFFSET 2 \gset
SELECT payload->'n' FROM aq.dequeue('f', msgid => :'third');
SELECT payload FROM aq.dequeue('f', msgid => :'third');		-- what is not there is not found
SELECT payload FROM aq.dequeue('f', msgid => '00000000-0000-0000-0000-000000000000');
SELECT msgid AS last FROM aq.browse('f') OFFSET 2 LIMIT 1 \gset
-- an id together with other choices is refused
SELECT split_part(t.error(format('SELECT payload FROM aq.dequeue(''f'', msgid => %L, correlation => ''c%%'')', :'last')), ' | ', 1);
SELECT split_part(t.error(format('SELECT payload FROM aq.dequeue(''f'', msgid => %L, condition => ''true'')', :'last')), ' | ', 1);
SELECT t.error(format('SELECT payload FROM aq.dequeue(''f'', msgid => %L, max_messages => 2)', :'last'));
SELECT t.error($$SELECT payload FROM aq.dequeue('f', msgid => '00000000-0000-0000-0000-000000000000', correlation => 'c%')$$);
-- an id of another queue
SELECT aq.create_queue('f2');
SELECT aq.enqueue('f2', '1') AS other \gset
SELECT payload FROM aq.dequeue('f', msgid => :'other');
SELECT t.drain('f2');
-- consumer on a single-consumer queue, unknown queue, nulls
SELECT t.error($$SELECT payload FROM aq.dequeue('f', 'me')$$);
SELECT t.error($$SELECT payload FROM aq.dequeue('f', consumer => '')$$);
SELECT t.error($$SELECT payload FROM aq.dequeue('no such queue')$$);
SELECT t.error($$SELECT payload FROM aq.dequeue(NULL)$$);
-- choosing from the middle leaves the others in their order
SELECT t.drain('f') IS NOT NULL;
SELECT t.put('f', 1, 200);
SELECT payload FROM aq.dequeue('f', condition => 'payload::int = 150');
SELECT payload FROM aq.dequeue('f', condition => 'payload::int > 197', max_messages => 10);
SELECT count(*), min(payload::int), max(payload::int) FROM aq.dequeue('f', max_messages => 1000);
-- composite payload: its fields by name
CREATE TYPE t.item AS (sku text, amount integer);
SELECT aq.create_queue('f3', 't.item');
SELECT count(aq.enqueue('f3', ROW('s' || n, n * 10)::t.item)) FROM generate_series(1, 5) n;
SELECT payload FROM aq.dequeue('f3', NULL::t.item, condition => 'amount > 20 AND sku <> ''s4''', max_messages => 10);
SELECT payload FROM aq.dequeue('f3', NULL::t.item, condition => '(payload).amount = 40');
SELECT t.error($$SELECT payload FROM aq.dequeue('f3', NULL::t.item, condition => 'colour = 1')$$);
SELECT aq.drop_queue('f3', true);
SELECT aq.drop_queue('f2');
SELECT aq.drop_queue('f');
DROP TYPE t.item;
