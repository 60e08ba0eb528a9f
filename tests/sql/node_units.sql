-- Units of a node that other nodes hold: the origin's rules of the protocol in src/link/NODES.md.
\pset null null
\pset format unaligned
\set a '00000000-0000-4000-8000-00000000000a'
\set b '00000000-0000-4000-8000-00000000000b'
CREATE ROLE regress_aq_guest;
CREATE SERVER a FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1', enabled 'off');
CREATE SERVER b FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1', enabled 'off');
CREATE USER MAPPING FOR current_user SERVER a OPTIONS (user 'u', password 'p');
CREATE USER MAPPING FOR current_user SERVER b OPTIONS (user 'u', password 'p');
SELECT aq.create_queue('units', multiple_consumers => true, shards => 2);
SELECT aq.subscribe('units', 'c1'), aq.subscribe('units', 'c2');
SELECT aq.create_queue('one');

-- a database that is no node gives nothing away
SELECT t.error(statement) FROM unnest(ARRAY[format('SELECT * FROM aq_internal.unit_acquire(''one'', 0, NULL, %L, true)', :'a'),
	format('SELECT aq_internal.unit_release(''one'', 0, NULL, %L, 1)', :'a')]) statement;
SELECT aq.node_add('a'), aq.node_add('b');
SELECT t.error(format('SELECT * FROM aq_internal.unit_acquire(''one'', 0, NULL, %L, true)', :'a'));
UPDATE aq_internal.node SET node_id = CASE server_name WHEN 'a' THEN :'a'::uuid ELSE :'b' END, timeline = 1, started = now();

-- one holder: it gets the same epoch again, not as new; others get nothing
SELECT epoch, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', false);
SELECT epoch AS first, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', true) \gset
SELECT :'is_new' AS is_new;
SELECT epoch = :first AS same, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', true);
SELECT epoch = :first AS same, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', false);
SELECT epoch, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'b', true);
SELECT epoch, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'b', false);
-- units are independent
SELECT epoch > :first AS higher, is_new FROM aq_internal.unit_acquire('units', 1, 'c1', :'b', true);
SELECT epoch > :first AS higher, is_new FROM aq_internal.unit_acquire('units', 0, 'c2', :'b', true);
SELECT epoch > :first AS higher, is_new FROM aq_internal.unit_acquire('one', 0, NULL, :'b', true);

-- only the holder releases it, with the current epoch; a release that arrives late changes nothing
SELECT aq_internal.unit_release('units', 0, 'c1', :'b', :first), aq_internal.unit_release('units', 0, 'c1', :'a', :first - 1), aq_internal.unit_release('units', 1, 'c1', :'a', :first);
SELECT aq_internal.unit_release('units', 0, 'c1', :'a', :first);
SELECT aq_internal.unit_release('units', 0, 'c1', :'a', :first);
SELECT epoch AS second, epoch > :first AS higher, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', true) \gset
SELECT :'higher' AS higher, :'is_new' AS is_new;
SELECT aq_internal.unit_release('units', 0, 'c1', :'a', :first);
SELECT epoch = :second AS kept FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', false);

-- what is rolled back is not granted, and its epoch is not used again
BEGIN;
SELECT aq_internal.unit_release('units', 0, 'c1', :'a', :second);
SELECT epoch AS undone FROM aq_internal.unit_acquire('units', 0, 'c1', :'b', true) \gset
ROLLBACK;
SELECT epoch = :second AS kept FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', false);

-- a broken lease: the old holder has nothing, and cannot release what the next one holds
SELECT aq_internal.unit_break('units', 0, 'c1');
SELECT t.error('SELECT aq_internal.unit_break(''units'', 0, ''c1'')');
SELECT epoch, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', false);
SELECT epoch > :undone AS higher, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'b', true);
SELECT aq_internal.unit_release('units', 0, 'c1', :'a', :second);

-- a consumer that is removed, and one with its name
SELECT aq.unsubscribe('units', 'c1');
SELECT epoch, is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'b', false);
SELECT aq_internal.unit_release('units', 1, 'c1', :'b', 1);
SELECT t.error(format('SELECT * FROM aq_internal.unit_acquire(''units'', 0, ''c1'', %L, true)', :'b'));
SELECT aq.subscribe('units', 'c1');
SELECT is_new FROM aq_internal.unit_acquire('units', 0, 'c1', :'a', true);
SELECT count(*) FROM aq_internal.node_unit JOIN aq_internal.queue USING (queue_id) WHERE queue_name = 'units';

-- arguments
SELECT aq.create_queue_table('table1', 'jsonb');
SELECT aq.create_queue('classic', queue_table => 'table1');
SELECT t.error(format('SELECT * FROM aq_internal.unit_acquire(%s)', arguments)) FROM unnest(ARRAY['NULL, 0, NULL, gen_random_uuid(), true', '''one'', NULL, NULL, gen_random_uuid(), true',
	'''one'', 0, NULL, NULL, true', '''one'', 0, NULL, gen_random_uuid(), NULL', '''one'', -1, NULL, gen_random_uuid(), true',
	'''one'', 32, NULL, gen_random_uuid(), true', '''one'', 0, ''c1'', gen_random_uuid(), true', '''units'', 0, NULL, gen_random_uuid(), true', '''none'', 0, NULL, gen_random_uuid(), true',
	'''classic'', 0, NULL, gen_random_uuid(), true']) arguments;
SELECT t.error(statement) FROM unnest(ARRAY['SELECT aq_internal.unit_release(''one'', 0, NULL, gen_random_uuid(), NULL)', 'SELECT aq_internal.unit_break(''one'', 1, NULL)',
	'SELECT aq_internal.unit_break(''none'', 0, NULL)', 'SELECT aq_internal.unit_break(''one'', NULL, NULL)']) statement;
-- a copy of the node does not act as the node
UPDATE aq_internal.node_identity SET database_id = 0;
SELECT regexp_replace(t.error(format('SELECT * FROM aq_internal.unit_acquire(''one'', 0, NULL, %L, true)', :'a')), '[-0-9a-f]{36}', '<id>');
UPDATE aq_internal.node_identity SET database_id = (SELECT oid FROM pg_database WHERE datname = current_database());
-- the functions are for the extension's owner; beside that, requests need the privilege to dequeue, and a break the queue's owner
SET ROLE regress_aq_guest;
SELECT t.error(format('SELECT * FROM aq_internal.unit_acquire(''one'', 0, NULL, %L, true)', :'a'));
RESET ROLE;
GRANT USAGE ON SCHEMA aq_internal TO regress_aq_guest;
GRANT EXECUTE ON FUNCTION aq_internal.unit_acquire, aq_internal.unit_release, aq_internal.unit_break TO regress_aq_guest;
SELECT aq.grant_queue('units', 'regress_aq_guest', 'dequeue');
SET ROLE regress_aq_guest;
SELECT t.error(format('SELECT * FROM aq_internal.unit_acquire(''one'', 0, NULL, %L, true)', :'a'));
SELECT is_new FROM aq_internal.unit_acquire('units', 1, 'c2', :'a', true);
SELECT t.error('SELECT aq_internal.unit_break(''units'', 1, ''c2'')');
RESET ROLE;
REVOKE USAGE ON SCHEMA aq_internal FROM regress_aq_guest;
REVOKE EXECUTE ON FUNCTION aq_internal.unit_acquire, aq_internal.unit_release, aq_internal.unit_break FROM regress_aq_guest;

-- a queue that is dropped
SELECT aq.drop_queue('one', force => true), aq.drop_queue('units', force => true), aq.drop_queue('classic', force => true), aq.drop_queue_table('table1');
SELECT count(*) FROM aq_internal.node_unit;

SELECT aq.node_remove('a'), aq.node_remove('b');
DELETE FROM aq_internal.node_identity;
DROP SERVER a CASCADE;
DROP SERVER b CASCADE;
DROP ROLE regress_aq_guest;
