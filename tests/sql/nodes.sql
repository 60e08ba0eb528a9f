-- Nodes: arguments, privileges, and what they show before any heartbeat.
\pset null null
\pset format unaligned
CREATE ROLE regress_aq_guest;
CREATE SERVER near FOREIGN DATA WRAPPER pgaq_link OPTIONS (host '127.0.0.1', port '1', enabled 'off');
CREATE USER MAPPING FOR current_user SERVER near OPTIONS (user 'u', password 'p');
CREATE SERVER unmapped FOREIGN DATA WRAPPER pgaq_link;
CREATE FOREIGN DATA WRAPPER regress_aq_wrapper;
CREATE SERVER other FOREIGN DATA WRAPPER regress_aq_wrapper;

-- a database is no node until it adds one
SELECT count(*) FROM aq.nodes;
SELECT t.error(statement) FROM unnest(ARRAY['SELECT aq.node_beat(gen_random_uuid(), 1, now())', 'SELECT aq.reset_node()', $$SELECT aq.remove_node('near')$$,
	'SELECT aq.add_node(NULL)', 'SELECT aq.remove_node(NULL)', 'SELECT aq.reset_node(NULL)', 'SELECT aq.node_beat(NULL, 1, now())', 'SELECT aq.node_beat(gen_random_uuid(), NULL, now())',
	'SELECT aq.node_beat(gen_random_uuid(), 1, NULL)', $$SELECT aq.add_node('none')$$, $$SELECT aq.add_node('other')$$, $$SELECT aq.add_node('unmapped')$$]) statement;
SELECT count(*) FROM aq.nodes;

-- only superusers, and those to whom they grant it
SET ROLE regress_aq_guest;
SELECT t.error(statement) FROM unnest(ARRAY[$$SELECT aq.add_node('near')$$, $$SELECT aq.remove_node('near')$$, 'SELECT aq.reset_node()', 'SELECT aq.node_beat(gen_random_uuid(), 1, now())',
	'SELECT * FROM aq_internal.node', 'SELECT * FROM aq_internal.node_identity']) statement;
RESET ROLE;
GRANT EXECUTE ON FUNCTION aq.add_node, aq.remove_node TO regress_aq_guest;
SET ROLE regress_aq_guest;
SELECT t.error($$SELECT aq.add_node('near')$$);
RESET ROLE;

-- a node
BEGIN;
SELECT aq.add_node('near');
SELECT count(*) FROM aq.nodes;
ROLLBACK;
SELECT count(*) FROM aq.nodes;
SELECT aq.add_node('near');
SELECT t.error($$SELECT aq.add_node('near')$$);
SELECT server, node_id IS NOT NULL AS has_identity, state IN ('unknown', 'this node') AS is_new, mutual, last_seen, lag, failures, sqlstate, error, hint, contested, role = current_user AS own,
	version, protocol, timeline, started IS NOT NULL AS is_started, added <= now() AS is_added FROM aq.nodes ORDER BY server;
SELECT node_id = (SELECT node_id FROM aq.nodes WHERE server IS NULL) AS own, timeline, started IS NOT NULL AS is_started, mutual FROM aq.node_beat(gen_random_uuid(), 1, now());
-- the identity remains, or is replaced
SELECT aq.reset_node(keep => true) = (SELECT node_id FROM aq.nodes WHERE server IS NULL) AS kept;
SELECT n.node_id AS before FROM aq.nodes n WHERE server IS NULL \gset
SELECT aq.reset_node() <> :'before' AS replaced;
-- roles without USAGE see this database only
SET ROLE regress_aq_guest;
SELECT server, state FROM aq.nodes;
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER near TO regress_aq_guest;
SET ROLE regress_aq_guest;
SELECT server FROM aq.nodes ORDER BY server;
RESET ROLE;

-- a server that is gone
DROP SERVER near CASCADE;
SELECT state, sqlstate, error, hint FROM aq.nodes WHERE server = 'near';
SELECT aq.remove_node('near');
SELECT t.error($$SELECT aq.remove_node('near')$$);
SELECT server, state FROM aq.nodes;

DELETE FROM aq_internal.node_identity;
DROP SERVER unmapped;
DROP FOREIGN DATA WRAPPER regress_aq_wrapper CASCADE;
REVOKE ALL ON FUNCTION aq.add_node, aq.remove_node FROM regress_aq_guest;
DROP ROLE regress_aq_guest;
