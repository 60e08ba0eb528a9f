-- Message properties at enqueue: kept, returned, or refused with a reason.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('e');
SELECT aq.create_queue('e_dead');
SELECT aq.create_queue('e_topic', multiple_consumers => true);

-- everything set, everything comes back
SELECT aq.enqueue(queue_name => 'e', payload => '{"n": 1}'::jsonb, priority => 3, delay => '0', expiration => '1 hour',
	correlation => 'order-17', sender => 'shop', exception_queue => 'e_dead', properties => '{"k": [1, 2]}') IS NOT NULL;
SELECT payload, priority, correlation, attempts, properties, enqueue_time BETWEEN now() - interval '1 hour' AND clock_timestamp()
FROM aq.dequeue('e');
SELECT aq.enqueue('e', '{"n": 1}', 3, '0', '1 hour', 'order-17', NULL, 'shop', 'e_dead', '{"k": 1}') IS NOT NULL;		-- by position
SELECT payload, priority, correlation, attempts, properties, sender, consumer_name, exception_queue, original_msgid IS NULL AS original,
	round(extract(epoch FROM expires_at - enqueue_time)) AS life, shard >= 0, session_id > 0
FROM aq.dequeue_full('e', NULL::jsonb);
-- nothing set
SELECT aq.enqueue('e', '{}') IS NOT NULL;
SELECT payload, priority, correlation, attempts, properties, sender, consumer_name, exception_queue, original_msgid, expires_at
FROM aq.dequeue_full('e', NULL::jsonb);

-- ids differ and are the ids that come out
SELECT aq.enqueue('e', '1') AS first \gset
SELECT aq.enqueue('e', '2') AS second \gset
SELECT :'first' <> :'second';
SELECT payload, msgid = :'first'::uuid FROM aq.dequeue('e');
SELECT payload, msgid = :'second'::uuid FROM aq.dequeue('e');

-- priority
SELECT t.error(format($$SELECT aq.enqueue('e', '0', priority => %s)$$, p)) FROM unnest(ARRAY[-1, 0, 9, 10]) p;
SELECT aq.purge_queue('e');
-- times
SELECT aq.enqueue('e', '0', delay => '-1 s') IS NOT NULL, aq.enqueue('e', '1', delay => '2001-01-01' - now()) IS NOT NULL;
SELECT string_agg(payload::text, ' ') FROM aq.dequeue('e', max_messages => 10);
SELECT t.error($$SELECT aq.enqueue('e', '0', expiration => '0')$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', expiration => '-1 s')$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', delay => '400000 years')$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', expiration => '100000 years')$$);
SELECT aq.enqueue('e', '"far"', delay => '99999 years', expiration => '99999 years') IS NOT NULL;
SELECT payload, expires_at > ready_at FROM aq.dequeue_full('e', NULL::jsonb, msgid => (SELECT msgid FROM aq.messages WHERE queue_name = 'e' AND state = 'WAITING'));
-- correlation and sender
SELECT aq.enqueue('e', '0', correlation => '', sender => '') IS NOT NULL;
SELECT correlation, sender FROM aq.dequeue_full('e', NULL::jsonb);
SELECT aq.enqueue('e', '0', correlation => repeat('ö', 128)) IS NOT NULL;
SELECT length(correlation) FROM aq.dequeue('e');
SELECT t.error(format('SELECT aq.enqueue(''e'', ''0'', correlation => %L)', repeat('x', 100000)));
SELECT aq.purge_queue('e') >= 0;
-- properties are jsonb objects or anything jsonb can say
SELECT t.error($$SELECT aq.enqueue('e', '0', properties => '[1]')$$);
SELECT aq.purge_queue('e') >= 0;
-- exception queue by name
SELECT t.error($$SELECT aq.enqueue('e', '0', exception_queue => 'no such queue')$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', exception_queue => 'e')$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', exception_queue => 'e_topic')$$);
-- queue
SELECT t.error($$SELECT aq.enqueue('no such queue', '0')$$);
SELECT t.error($$SELECT aq.enqueue(NULL, '0')$$);
SELECT t.error($$SELECT aq.enqueue_array('no such queue', ARRAY['0'])$$);
-- recipients on a single-consumer queue
SELECT t.error($$SELECT aq.enqueue('e', '0', recipients => ARRAY['x'])$$);
SELECT t.error($$SELECT aq.enqueue_array('e', ARRAY['0'], recipients => ARRAY['x'])$$);
SELECT t.error($$SELECT aq.enqueue('e', '0', recipients => '{}')$$);		-- an empty list is no list
SELECT t.drain('e');

-- one array, one set of properties
SELECT cardinality(aq.enqueue_array('e', ARRAY['1', '2'], priority => 0, correlation => 'c', properties => '{"a": 1}', sender => 's'));
SELECT payload, priority, correlation, properties, sender FROM aq.dequeue_full('e', NULL::jsonb, max_messages => 10);

-- enqueue in a query: one message a row, in the query's order
SELECT count(aq.enqueue('e', to_jsonb(n))) FROM (SELECT n FROM generate_series(1, 20) n ORDER BY n DESC) s;
SELECT t.drain('e');
-- more than a partition's chunk in one call
SELECT cardinality(aq.enqueue_array('e', (SELECT array_agg(n::text ORDER BY n) FROM generate_series(1, 20000) n)));
SELECT count(*), min(payload::int), max(payload::int), bool_and(payload::int = n)
FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue('e', max_messages => 30000)) s;
SELECT t.drain('e') IS NULL;
SELECT aq.drop_queue(q) FROM unnest(ARRAY['e', 'e_dead', 'e_topic']) q;
