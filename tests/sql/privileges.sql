-- Rights: nobody gets in without one, each right lets in one side, and who has none learns nothing.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_owner;
CREATE ROLE regress_aq_in;
CREATE ROLE regress_aq_out;
CREATE ROLE regress_aq_none;
CREATE ROLE regress_aq_other;
-- creating queues is a right by itself
SET ROLE regress_aq_owner;
SELECT split_part(t.error($$SELECT aq.create_queue('q')$$), ' | ', 1);
SELECT split_part(t.error($$SELECT aq.create_queue_table('q_tab')$$), ' | ', 1);
SELECT aq.create_queue('q');
DO $$ BEGIN PERFORM aq.create_queue_table('q_tab'); END $$;
RESET ROLE;
-- a function of others with the same name
CREATE FUNCTION t.create_queue() RETURNS void LANGUAGE sql AS '';
REVOKE EXECUTE ON FUNCTION t.create_queue FROM PUBLIC;
SET ROLE regress_aq_owner;
SELECT t.create_queue();
RESET ROLE;
DROP FUNCTION t.create_queue;
DO $$
DECLARE f regprocedure;
BEGIN
	SELECT oid INTO f FROM pg_proc WHERE proname = 'create_queue' AND pronamespace = 'aq'::regnamespace;
	EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO regress_aq_owner', f);
END $$;
SET ROLE regress_aq_owner;
SELECT aq.create_queue('q');
SELECT aq.create_queue('q_topic', multiple_consumers => true);
SELECT aq.create_queue('q_dead');
SELECT aq.subscribe('q_topic', 'ann');
SELECT t.put('q', 1, 2);
SELECT payload FROM aq.dequeue('q');
RESET ROLE;

-- every call of a role without rights is answered as if the queue did not exist
SET ROLE regress_aq_none;
CREATE TEMP TABLE call (n serial, statement text);
INSERT INTO call (statement) VALUES
	($$SELECT aq.enqueue('Q?', '1')$$), ($$SELECT aq.enqueue_array('Q?', ARRAY['1'])$$),
	($$SELECT aq.enqueue('Q?', 'not json')$$), ($$SELECT aq.enqueue('Q?', '1', priority => 77)$$), ($$SELECT aq.enqueue('Q?', '1', recipients => ARRAY['x'])$$),
	($$SELECT * FROM aq.dequeue('Q?')$$), ($$SELECT * FROM aq.dequeue('Q?', 'ann')$$), ($$SELECT * FROM aq.dequeue('Q?', as_type => NULL::text)$$),
	($$SELECT * FROM aq.dequeue('Q?', mode => 'browse')$$), ($$SELECT * FROM aq.dequeue('Q?', condition => 'nonsense =')$$),
	($$SELECT * FROM aq.dequeue_full('Q?', NULL::jsonb)$$), ($$SELECT * FROM aq.browse('Q?')$$),
	($$CALL aq.wait('Q?', NULL, '0', NULL)$$), ($$CALL aq.wait('Q?', 'ann', '0', NULL)$$),
	($$CALL aq.listen(ARRAY['Q?'], ARRAY[NULL], '0', NULL, NULL)$$),
	($$SELECT aq.alter_queue('Q?', max_retries => 1)$$), ($$SELECT aq.drop_queue('Q?')$$), ($$SELECT aq.start_queue('Q?')$$), ($$SELECT aq.stop_queue('Q?')$$),
	($$SELECT aq.purge_queue('Q?')$$), ($$SELECT aq.subscribe('Q?', 'x')$$), ($$SELECT aq.alter_subscriber('Q?', 'ann', NULL)$$), ($$SELECT aq.unsubscribe('Q?', 'ann')$$),
	($$SELECT aq.grant_queue('Q?', 'regress_aq_none')$$), ($$SELECT aq.grant_queue('Q?', 'regress_aq_none', 'nonsense')$$), ($$SELECT aq.revoke_queue('Q?', 'regress_aq_none')$$);
-- the same answer for a queue that exists and one that does not (only the name differs)
SELECT n, statement, t.error(replace(statement, 'Q?', 'q')) AS existing, t.error(replace(statement, 'Q?', 'no')) AS missing
FROM call
WHERE t.error(replace(statement, 'Q?', 'q')) <> replace(t.error(replace(statement, 'Q?', 'no')), '"no"', '"q"')
	OR t.error(replace(statement, 'Q?', 'q_topic')) <> replace(t.error(replace(statement, 'Q?', 'no')), '"no"', '"q_topic"');
SELECT t.error(replace(statement, 'Q?', 'q')) FROM call WHERE n = 1;
SELECT DISTINCT split_part(t.error(replace(statement, 'Q?', 'q')), ' | ', 1) FROM call;
-- nor by an exception queue's name
RESET ROLE;
SET ROLE regress_aq_none;
SELECT count(*) FROM aq.queues;
SELECT count(*) FROM aq.messages;
SELECT count(*) FROM aq.subscribers;
SELECT count(*) FROM aq.shards;
SELECT count(*) FROM aq.partitions;
-- nor by the tables themselves
SELECT split_part(t.error(format('SELECT * FROM aq_data.q%s', 1)), ' | ', 1);
SELECT split_part(t.error($$SELECT * FROM aq_internal.queue$$), ' | ', 1), split_part(t.error($$INSERT INTO aq_internal.subscriber VALUES (1, 1, 'x', 'subscriber')$$), ' | ', 1);
SELECT split_part(t.error($$SELECT nextval('aq_internal.session_id_seq')$$), ' | ', 1);
DROP TABLE call;
RESET ROLE;
-- not even the owner touches the tables directly
SELECT format('aq_data.%I', relname) AS message_table FROM pg_class
WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' AND relname LIKE 'q%' ORDER BY oid LIMIT 1 \gset
SELECT format('aq_data.%I', relname) AS log_table FROM pg_class
WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' AND relname LIKE 'l%' ORDER BY oid LIMIT 1 \gset
SET ROLE regress_aq_owner;
SELECT split_part(t.error('SELECT * FROM ' || :'message_table'), ' | ', 1), split_part(t.error('DELETE FROM ' || :'log_table'), ' | ', 1),
	split_part(t.error('TRUNCATE ' || :'message_table'), ' | ', 1), split_part(t.error('DROP TABLE ' || :'message_table'), ' | ', 1);
RESET ROLE;

-- enqueue only
SET ROLE regress_aq_owner;
SELECT aq.grant_queue('q', 'regress_aq_in', 'enqueue');
SELECT aq.grant_queue('q', 'regress_aq_out', 'dequeue');
SET ROLE regress_aq_in;
SELECT t.put('q', 3);
SELECT cardinality(aq.enqueue_array('q', ARRAY['4']));
SELECT t.error($$SELECT * FROM aq.dequeue('q')$$);
SELECT t.error($$SELECT * FROM aq.browse('q')$$);
SELECT t.error($$CALL aq.wait('q', NULL, '0', NULL)$$);
SELECT t.error($$SELECT aq.drop_queue('q')$$);
SELECT queue_name FROM aq.queues;
-- dequeue only
SET ROLE regress_aq_out;
SELECT t.drain('q');
SELECT t.error($$SELECT t.put('q', 5)$$);
SELECT t.error($$SELECT aq.purge_queue('q')$$);
SELECT t.error($$SELECT aq.grant_queue('q', 'regress_aq_none')$$);
SELECT t.error($$SELECT aq.stop_queue('q')$$);
-- shared memory of all queues: superusers only
SELECT t.error($$SELECT * FROM aq.check()$$);
SELECT queue_name FROM aq.queues;
-- both, by 'all'; and taken back
SET ROLE regress_aq_owner;
SELECT aq.grant_queue('q', 'regress_aq_other');
SELECT aq.revoke_queue('q', 'regress_aq_in', 'enqueue');
SET ROLE regress_aq_other;
SELECT t.put('q', 6), t.drain('q');
SET ROLE regress_aq_in;
SELECT t.error($$SELECT t.put('q', 7)$$);
SELECT queue_name FROM aq.queues;
SET ROLE regress_aq_owner;
SELECT aq.revoke_queue('q', 'regress_aq_other', 'dequeue');
SET ROLE regress_aq_other;
SELECT t.put('q', 8);
SELECT t.error($$SELECT * FROM aq.dequeue('q')$$);
SET ROLE regress_aq_owner;
SELECT aq.revoke_queue('q', 'regress_aq_other');
SET ROLE regress_aq_other;
SELECT t.error($$SELECT t.put('q', 9)$$);
-- PUBLIC
SET ROLE regress_aq_owner;
SELECT aq.grant_queue('q', NULL, 'enqueue');
SET ROLE regress_aq_none;
SELECT t.put('q', 10);
SELECT t.error($$SELECT * FROM aq.dequeue('q')$$);
SET ROLE regress_aq_owner;
SELECT aq.revoke_queue('q', NULL, 'enqueue');
SET ROLE regress_aq_none;
SELECT t.error($$SELECT t.put('q', 11)$$);
-- nonsense
SET ROLE regress_aq_owner;
SELECT t.error($$SELECT aq.grant_queue('q', 'regress_aq_in', 'write')$$);
SELECT t.error($$SELECT aq.grant_queue('q', 'regress_aq_in', NULL)$$);
SELECT t.error($$SELECT aq.grant_queue('q', 'regress_no_such_role')$$);
SELECT t.error($$SELECT aq.grant_queue('no such queue', 'regress_aq_in')$$);
SELECT t.drain('q');
-- rights are in force at once in a session that used the queue before, and roll back
BEGIN;
SELECT aq.grant_queue('q', 'regress_aq_in', 'enqueue');
ROLLBACK;
SET ROLE regress_aq_in;
SELECT t.error($$SELECT t.put('q', 12)$$);
-- membership in a role that has the right
RESET ROLE;
SELECT aq.grant_queue('q', 'regress_aq_in', 'enqueue');
GRANT regress_aq_in TO regress_aq_none;
SET ROLE regress_aq_none;
SELECT t.put('q', 13);
RESET ROLE;
REVOKE regress_aq_in FROM regress_aq_none;

-- a new owner; the old one keeps nothing
SELECT aq.alter_queue('q', new_owner => 'regress_aq_other');
SET ROLE regress_aq_other;
SELECT t.drain('q');
SELECT aq.stop_queue('q', dequeue => false), aq.start_queue('q');
SET ROLE regress_aq_owner;
SELECT t.error($$SELECT t.put('q', 14)$$);
SELECT t.error($$SELECT aq.drop_queue('q')$$);
RESET ROLE;
-- giving a queue to a role one is not a member of is refused as PostgreSQL does
SET ROLE regress_aq_other;
SELECT split_part(t.error($$SELECT aq.alter_queue('q', new_owner => 'regress_aq_owner')$$), ' | ', 1);
RESET ROLE;

-- rules and conditions run with the rights of the queue's owner, not of the caller, and not as superuser
SET ROLE regress_aq_owner;
SELECT t.error($$SELECT * FROM aq.dequeue('q_topic', 'ann', condition => 'pg_read_file(''/etc/passwd'') IS NOT NULL')$$) NOT LIKE '%root%';
SELECT split_part(t.error($$SELECT aq.subscribe('q_topic', 'spy', 'length(pg_catalog.pg_read_file(''/etc/passwd'')) > 0')$$), ' | ', 1);
-- not even through a built-in function that runs queries: the enqueuing superuser lends the owner nothing
SELECT aq.subscribe('q_topic', 'thief', 'pg_catalog.length(pg_catalog.query_to_xml(''SELECT * FROM t.secret'', true, true, '''')::text) > 0');
SELECT aq.subscribe('q_topic', 'who', 'current_user = ''regress_aq_owner''');
RESET ROLE;
CREATE TABLE t.secret (word text);
SELECT aq.enqueue('q_topic', '"superuser''s call, owner''s rights"') IS NOT NULL, t.rule_errors('q_topic');
SELECT aq.unsubscribe('q_topic', 'thief');
SELECT t.put('q_topic', 15);
SELECT t.drain('q_topic', 'who'), t.drain('q_topic', 'ann');
SELECT aq.unsubscribe('q_topic', 'who');
DROP TABLE t.secret;

-- views show what the caller may see
SELECT queue_name FROM aq.queues ORDER BY 1;
SET ROLE regress_aq_owner;
SELECT t.put('q_topic', 1);
SELECT queue_name FROM aq.queues ORDER BY 1;
SELECT DISTINCT queue_name, consumer FROM aq.messages ORDER BY 1, 2;
SELECT DISTINCT queue_name, consumer FROM aq.subscribers ORDER BY 1, 2;
SET ROLE regress_aq_other;
SELECT queue_name FROM aq.queues ORDER BY 1;
SELECT DISTINCT queue_name, consumer FROM aq.messages ORDER BY 1, 2;
SELECT DISTINCT queue_name, consumer FROM aq.subscribers ORDER BY 1, 2;
RESET ROLE;

-- an exception queue needs no right of the one who fails a message, but of the one who names it
SET ROLE regress_aq_other;
SELECT t.error($$SELECT aq.enqueue('q', '1', exception_queue => 'q_dead')$$);
SELECT t.error($$SELECT aq.alter_queue('q', exception_queue => 'q_dead')$$);
RESET ROLE;

SELECT aq.grant_queue('q_dead', 'regress_aq_other', 'dequeue');
SET ROLE regress_aq_other;
SELECT t.error($$SELECT aq.enqueue('q', '1', exception_queue => 'q_dead')$$);
RESET ROLE;
-- the function behind the views on messages shows the payload to a role that may dequeue only
SELECT queue_id FROM aq.queues WHERE queue_name = 'q_dead' \gset
SELECT aq.grant_queue('q_dead', 'regress_aq_in', 'enqueue');
SET ROLE regress_aq_in;
SELECT split_part(t.error(format('SELECT sys._payload(%s, ''1'', NULL::jsonb)', :queue_id)), ' | ', 1);
SET ROLE regress_aq_other;
SELECT sys._payload(:queue_id, '1', NULL::jsonb);
RESET ROLE;

-- SECURITY DEFINER functions are how rights are lent
SET ROLE regress_aq_owner;
SELECT aq.create_queue('q_lent');
RESET ROLE;
CREATE FUNCTION t.lent(jsonb) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$ SELECT aq.enqueue('q_lent', $1) IS NOT NULL $$;
ALTER FUNCTION t.lent(jsonb) OWNER TO regress_aq_owner;
SET ROLE regress_aq_none;
SELECT t.lent('1');
SELECT t.error($$SELECT t.put('q_lent', 1)$$);
RESET ROLE;
SELECT t.drain('q_lent');
DROP FUNCTION t.lent(jsonb);

-- a right with grant option can be handed on, and is taken back with what was handed on
SET ROLE regress_aq_owner;
SELECT aq.grant_queue('q_lent', 'regress_aq_in', 'enqueue', grant_option => true);
SET ROLE regress_aq_in;
SELECT aq.grant_queue('q_lent', 'regress_aq_none', 'enqueue');
SELECT aq.grant_queue('q_lent', 'regress_aq_other', 'enqueue', grant_option => true);
SELECT t.error($$SELECT aq.grant_queue('q_lent', 'regress_aq_none', 'dequeue')$$);
SELECT t.error($$SELECT aq.grant_queue('q_lent', 'regress_aq_none', 'all')$$);
SET ROLE regress_aq_none;
SELECT t.put('q_lent', 1);
SELECT t.error($$SELECT aq.grant_queue('q_lent', 'regress_aq_out', 'enqueue')$$);
SET ROLE regress_aq_other;
SELECT aq.grant_queue('q_lent', 'regress_aq_none', 'enqueue');
-- only the grantor takes it back: it stays by the other's grant
SET ROLE regress_aq_in;
SELECT aq.revoke_queue('q_lent', 'regress_aq_none', 'enqueue');
SET ROLE regress_aq_none;
SELECT t.put('q_lent', 2);
SET ROLE regress_aq_owner;
SELECT t.error($$SELECT aq.grant_queue('q_lent', NULL, 'enqueue', grant_option => true)$$);
SELECT aq.revoke_queue('q_lent', 'regress_aq_in', 'enqueue');
SET ROLE regress_aq_none;
SELECT split_part(t.error($$SELECT t.put('q_lent', 3)$$), ' | ', 1);
RESET ROLE;
SELECT t.drain('q_lent');

-- a role that owns queues is not dropped silently
SELECT split_part(t.error('DROP ROLE regress_aq_owner'), ' | ', 1);
SELECT aq.drop_queue('q', true), aq.drop_queue('q_topic', true), aq.drop_queue('q_dead', true), aq.drop_queue('q_lent', true);
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA aq FROM regress_aq_owner;
DROP ROLE regress_aq_owner, regress_aq_in, regress_aq_out, regress_aq_none, regress_aq_other;
