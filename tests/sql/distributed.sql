-- Distributed queues: arguments, privileges and errors, as far as one database shows them. tests/cluster/test_distributed.py has the rest.
\pset null null
\pset format unaligned
CREATE ROLE regress_aq_guest;
CREATE ROLE regress_aq_link;
CREATE SERVER near FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1', enabled 'off');
CREATE USER MAPPING FOR current_user SERVER near OPTIONS (user 'u', password 'p');

-- which queues can be distributed
SELECT aq.create_queue('spread', distributed => true), aq.create_queue('own'), aq.create_queue('fan', multiple_consumers => true, distributed => true);
SELECT aq.subscribe('fan', 'x');
SELECT aq.create_queue_table('public.held');
SELECT t.error(statement) FROM unnest(ARRAY[$$SELECT aq.create_queue('no', distributed => NULL)$$, $$SELECT aq.create_queue('no', queue_table => 'public.held', distributed => true)$$,
	$$SELECT aq.create_queue('no', queue_type => 'exception', distributed => true)$$, $$SELECT aq.create_queue('no', queue_type => 'non_persistent', distributed => true)$$]) statement;
SELECT queue_name, distributed FROM aq.queues WHERE queue_name IN ('spread', 'own', 'fan') ORDER BY 1;
-- as any other queue, as long as no other node asks for its messages
SELECT aq.enqueue('spread', '1') IS NOT NULL AS enqueued;
SELECT payload FROM aq.dequeue('spread');
SELECT * FROM aq.node_units;

-- this database is no node yet
CREATE FUNCTION t.calls(caller text, queue text = 'spread', consumer text = NULL, type text = 'pg_catalog.jsonb') RETURNS SETOF text BEGIN ATOMIC
	SELECT format(call, quote_nullable(caller), quote_nullable(queue), quote_nullable(consumer), quote_nullable(type)) FROM unnest(ARRAY['SELECT aq.node_want(%1$s, %2$s, %3$s, %4$s)',
		$$SELECT aq.node_resume(%1$s, 1, '{}', '{}')$$, $$SELECT aq.node_deliver(%1$s, 1, 1, %2$s, 0, %3$s, %4$s, '{1}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')$$,
		'SELECT aq.node_recall(%1$s, 1)', $$SELECT aq.node_finish(%1$s, '{1}', '{NULL}')$$, 'SELECT aq.node_return(%1$s, 1)']) call;
END;
SELECT t.error(statement) FROM t.calls('00000000-0000-4000-8000-00000000000b') statement;
SELECT aq.add_node('near');
UPDATE aq_internal.node SET node_id = '00000000-0000-4000-8000-00000000000b', caller = role;

-- not for PUBLIC, and not for nodes that were not added
SET ROLE regress_aq_guest;
SELECT t.error(statement) FROM unnest(ARRAY['SELECT aq.node_want(NULL, NULL, NULL, NULL)', 'SELECT aq.node_resume(NULL, 1, NULL, NULL)',
	'SELECT aq.node_deliver(NULL, 1, 1, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)', 'SELECT aq.node_recall(NULL, 1)', 'SELECT aq.node_finish(NULL, NULL, NULL)',
	'SELECT aq.node_return(NULL, 1)', $$SELECT aq.reclaim_unit('spread', 0)$$, 'SELECT * FROM aq_internal.node_unit', 'SELECT * FROM aq_internal.node_held']) statement;
RESET ROLE;
SELECT t.error(statement) FROM t.calls('00000000-0000-4000-8000-00000000000c') statement;
SELECT t.error(statement) FROM t.calls(NULL) statement;

-- wishes
CREATE FUNCTION t.wants(queue text, consumer text, type text = 'pg_catalog.jsonb') RETURNS text BEGIN ATOMIC
	SELECT format('SELECT aq.node_want(%L, %s, %s, %s)', '00000000-0000-4000-8000-00000000000b', quote_nullable(queue), quote_nullable(consumer), quote_nullable(type));
END;
SELECT t.error(statement) FROM unnest(ARRAY[t.wants(NULL, NULL), t.wants('spread', NULL, NULL), t.wants('none', NULL), t.wants('own', NULL), t.wants('spread', 'x'), t.wants('spread', NULL, 'pg_catalog.text'),
	t.wants('fan', NULL), t.wants('fan', 'y')]) statement;
GRANT EXECUTE ON FUNCTION aq.node_want, aq.node_resume, aq.node_deliver TO regress_aq_link;
UPDATE aq_internal.node SET caller = 'regress_aq_link'::regrole::oid;
SET ROLE regress_aq_link;
SELECT t.error(statement) FROM unnest(ARRAY[t.wants('spread', NULL), t.wants('fan', 'x')]) statement;
RESET ROLE;
UPDATE aq_internal.node SET caller = role;
SELECT aq.grant_queue('spread', 'regress_aq_link', 'dequeue'), aq.grant_queue('fan', 'regress_aq_link', 'dequeue');

-- grants: no session dequeues here, so the node gets all
UPDATE aq_internal.node SET caller = 'regress_aq_link'::regrole::oid;
SET ROLE regress_aq_link;
SELECT aq.node_want('00000000-0000-4000-8000-00000000000b', 'fan', 'x', 'pg_catalog.jsonb');
SELECT aq.node_want('00000000-0000-4000-8000-00000000000b', 'fan', 'x', 'pg_catalog.jsonb');
RESET ROLE;
UPDATE aq_internal.node SET caller = role;
SELECT queue_name, shard, consumer, direction, server, origin_shard, returns, sent, ready FROM aq.node_units ORDER BY shard;
SELECT granted, returned, forwarded, batches, reported, queue_error FROM aq.nodes WHERE server = 'near';
SET ROLE regress_aq_guest;
SELECT count(*) FROM aq.node_units;
RESET ROLE;
-- nothing is dequeued here any more
SELECT aq.enqueue('fan', '1') IS NOT NULL AS enqueued;
SELECT payload FROM aq.dequeue('fan', consumer => 'x');
SELECT payload FROM aq.browse('fan', consumer => 'x');
-- reports: unknown grants, messages that were not sent
SELECT aq.node_finish('00000000-0000-4000-8000-00000000000b', ARRAY[epoch, 0, epoch], ARRAY[NULL, gen_random_uuid(), gen_random_uuid()]) AS unknown FROM aq.node_units WHERE shard = 0;
SELECT aq.node_return('00000000-0000-4000-8000-00000000000b', 0);
SELECT t.error(statement) FROM unnest(ARRAY[$$SELECT aq.node_finish('00000000-0000-4000-8000-00000000000b', NULL, '{}')$$, $$SELECT aq.node_finish('00000000-0000-4000-8000-00000000000b', '{}', NULL)$$,
	$$SELECT aq.node_finish('00000000-0000-4000-8000-00000000000b', '{1}', '{}')$$, $$SELECT aq.node_return('00000000-0000-4000-8000-00000000000b', NULL)$$]) statement;
-- the node is not removed, but its units can be taken back
SELECT t.error(statement) FROM unnest(ARRAY[$$SELECT aq.remove_node('near')$$, $$SELECT aq.remove_node('near', NULL)$$, $$SELECT aq.reclaim_unit(NULL, 0)$$, $$SELECT aq.reclaim_unit('none', 0)$$,
	$$SELECT aq.reclaim_unit('spread', NULL)$$, $$SELECT aq.reclaim_unit('spread', 0, force => NULL)$$, $$SELECT aq.reclaim_unit('own', 0)$$, $$SELECT aq.reclaim_unit('spread', 0)$$,
	$$SELECT aq.reclaim_unit('fan', 0)$$, $$SELECT aq.reclaim_unit('fan', 0, 'y')$$, $$SELECT aq.reclaim_unit('fan', 99, 'x')$$]) statement;
SELECT aq.reclaim_unit('fan', shard, 'x') FROM generate_series(0, 3) shard;
SELECT t.error($$SELECT aq.reclaim_unit('fan', 0, 'x')$$);

-- messages of the other node
SELECT t.error(statement) FROM unnest(ARRAY[$$SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', NULL, '{}', '{}')$$, $$SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 1, NULL, '{}')$$,
	$$SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 1, '{}', NULL)$$, $$SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 1, '{1}', '{}')$$,
	$$SELECT aq.node_recall('00000000-0000-4000-8000-00000000000b', NULL)$$]) statement;
SELECT aq.node_recall('00000000-0000-4000-8000-00000000000b', 1);
SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 7, '{5, 6}', ARRAY[gen_random_uuid(), gen_random_uuid()]);
CREATE FUNCTION t.delivers(queue text, consumer text, token bigint = 7, epoch bigint = 5, type text = 'pg_catalog.jsonb', original text = '{00000000-0000-4000-8000-000000000001}', payloads text = '{1}', shard int = 2)
RETURNS text BEGIN ATOMIC
	SELECT format($$SELECT aq.node_deliver('00000000-0000-4000-8000-00000000000b', %s, %s, %s, %s, %s, %s, %s, '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', %s)$$,
		coalesce(token::text, 'NULL'), coalesce(epoch::text, 'NULL'), quote_nullable(queue), coalesce(shard::text, 'NULL'), quote_nullable(consumer), quote_nullable(type), quote_nullable(payloads), quote_nullable(original));
END;
SELECT t.error(statement) FROM unnest(ARRAY[t.delivers('spread', NULL, token => 6), t.delivers('spread', NULL, token => NULL), t.delivers('spread', NULL, epoch => NULL), t.delivers('spread', NULL, shard => NULL),
	t.delivers(NULL, NULL), t.delivers('none', NULL), t.delivers('own', NULL), t.delivers('fan', NULL), t.delivers('fan', 'y'), t.delivers('spread', 'x'), t.delivers('spread', NULL, type => 'pg_catalog.text'),
	t.delivers('spread', NULL, payloads => '{1,2}'), t.delivers('spread', NULL, payloads => '{no}')]) statement;
UPDATE aq_internal.node SET caller = 'regress_aq_link'::regrole::oid;
SET ROLE regress_aq_link;
SELECT t.error(t.delivers('spread', NULL));
RESET ROLE;
UPDATE aq_internal.node SET caller = role;
SELECT t.error(t.delivers('spread', NULL, payloads => '{11}'));
SELECT t.error(t.delivers('spread', NULL, payloads => '{12}', original => '{00000000-0000-4000-8000-000000000002}'));
SELECT queue_name, shard, consumer, direction, server, epoch, origin_shard, returns, sent, ready FROM aq.node_units;
SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 8, '{5, 5, 6}',
	'{00000000-0000-4000-8000-000000000001, 00000000-0000-4000-8000-000000000003, 00000000-0000-4000-8000-000000000001}');
SELECT t.error($$SELECT aq.node_resume('00000000-0000-4000-8000-00000000000b', 8, '{}', '{}')$$);
-- a session of this node consumes one
SELECT payload FROM aq.dequeue('spread');
-- the unit belongs to another queue
SELECT aq.node_deliver('00000000-0000-4000-8000-00000000000b', 8, 5, 'fan', 2, 'x', 'pg_catalog.jsonb', '{14}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{00000000-0000-4000-8000-000000000006}');
-- another grant of the same unit: the earlier one is over
SELECT aq.node_deliver('00000000-0000-4000-8000-00000000000b', 8, 9, 'spread', 2, NULL, 'pg_catalog.jsonb', '{13}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{00000000-0000-4000-8000-000000000004}');
SELECT epoch, returns FROM aq.node_units;
SELECT payload FROM aq.dequeue('spread');
SELECT aq.node_recall('00000000-0000-4000-8000-00000000000b', 5) AS still_held;
-- nothing arrives for a unit that goes back
SELECT aq.node_deliver('00000000-0000-4000-8000-00000000000b', 8, 5, 'spread', 2, NULL, 'pg_catalog.jsonb', '{14}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{00000000-0000-4000-8000-000000000006}');
-- code of the payload type runs as its owner, not as the role of the link; no setting of the session changes what arrives
CREATE SCHEMA regress_code AUTHORIZATION regress_aq_guest;
SET ROLE regress_aq_guest;
CREATE FUNCTION regress_code.is_good(integer) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'checked as %', current_user; RETURN true; END$$;
CREATE DOMAIN regress_code.number AS integer CHECK (regress_code.is_good(VALUE));
CREATE TYPE regress_code.box AS (n regress_code.number, words text[]);
RESET ROLE;
SELECT aq.create_queue('typed', 'regress_code.box', distributed => true);
SET array_nulls = off;
SELECT aq.node_deliver('00000000-0000-4000-8000-00000000000b', 8, 20, 'typed', 0, NULL, 'regress_code.box', ARRAY['(1,"{a,NULL}")'], '{1}', ARRAY[NULL::bigint], ARRAY[NULL::text], ARRAY[NULL::jsonb], ARRAY[NULL::text], ARRAY[NULL::text], '{00000000-0000-4000-8000-000000000005}');
RESET array_nulls;
SELECT payload, (payload).words[2] IS NULL AS has_null FROM aq.browse('typed', as_type => NULL::regress_code.box);
SELECT t.error(t.delivers('spread', NULL, token => 8, shard => 32));
SELECT aq.drop_queue('typed', force => true);
SELECT queue_id IN (SELECT queue_id FROM aq_internal.queue) AS has_queue, returns FROM aq_internal.node_held ORDER BY 1;
DROP SCHEMA regress_code CASCADE;
-- what is held of a node that is removed stays here
SELECT t.error($$SELECT aq.remove_node('near')$$);
SELECT aq.remove_node('near', force => true);
SELECT * FROM aq.node_units;
SELECT payload FROM aq.dequeue('spread');

SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['spread', 'own', 'fan']) q;
SELECT aq.drop_queue_table('public.held');
DELETE FROM aq_internal.node_identity;
DROP SERVER near CASCADE;
DROP FUNCTION t.calls, t.wants, t.delivers;
REVOKE ALL ON FUNCTION aq.node_want, aq.node_resume, aq.node_deliver FROM regress_aq_link;
DROP ROLE regress_aq_guest, regress_aq_link;
