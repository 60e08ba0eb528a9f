-- The extension's functions as a whole: what the internal ones do when they are called by themselves, and which names they resolve.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_eve;
CREATE ROLE regress_aq_adam;
CREATE SCHEMA eve AUTHORIZATION regress_aq_eve;
CREATE SCHEMA adam AUTHORIZATION regress_aq_adam;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_eve, regress_aq_adam;

-- arguments that no caller of the extension gives
SET ROLE regress_aq_eve;
SELECT aq.create_queue_table('eve.tab', multiple_consumers => true), aq.create_queue('eve.in_table', queue_table => 'eve.tab'), aq.create_queue('eve_sharded');
SELECT aq.enqueue('eve_sharded', '1', delivery_mode => 'buffered') IS NOT NULL;
SELECT t.error($$SELECT aq._purge_processed('eve.in_table', NULL, NULL)$$);
SELECT t.error($$SELECT aq._transform(NULL, '1'::jsonb, NULL::jsonb)$$);
SELECT queue_id AS id FROM aq.queues WHERE queue_name = 'eve_sharded' \gset
SELECT (SELECT count(*) FROM aq._buffered_queue(x)), (SELECT count(*) FROM aq._buffered_messages(x)), (SELECT count(*) FROM aq._buffered_consumers(x)),
	(SELECT count(*) FROM aq._buffered_publishers(x)), (SELECT count(*) FROM aq._messages(x)), (SELECT count(*) FROM aq._classic_messages(x))
FROM unnest(ARRAY[NULL, 0, -1, -:id, 2147483647, -2147483648]) x;
SELECT count(*) FROM aq._buffered_queue(:id);

-- the views on a queue table are made for its owner only; nothing tells another role which names exist
SET ROLE regress_aq_adam;
SELECT t.error($$SELECT aq._make_views('eve.tab')$$);
SELECT t.error($$SELECT aq._make_views('eve.none')$$);
SELECT t.error($$SELECT aq._make_views('tab')$$);
SELECT t.error($$SELECT aq._make_table_views('eve.tab')$$);
SET ROLE regress_aq_eve;
SELECT aq._make_views('eve.tab');
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.relnamespace = 'eve'::regnamespace AND c.relkind = 'v' ORDER BY 1;

-- a transformation runs with its creator's rights: it is executed by those to whom this was granted
CALL dbms_transform.create_transformation('eve', 'loud', NULL, 'JSON', NULL, 'JSON', 'to_jsonb(upper(source.user_data #>> ''{}''))');
SELECT has_function_privilege('regress_aq_adam', 'eve.loud(jsonb)', 'EXECUTE');
GRANT EXECUTE ON FUNCTION eve.loud TO regress_aq_adam;
CALL dbms_transform.modify_transformation('eve', 'loud', 0, 'source.user_data');
SELECT has_function_privilege('regress_aq_adam', 'eve.loud(jsonb)', 'EXECUTE'), has_function_privilege('public', 'eve.loud(jsonb)', 'EXECUTE');
RESET ROLE;

SELECT aq.drop_queue('eve_sharded', force => true);
DROP FUNCTION eve.loud;
SET client_min_messages = warning;
CALL dbms_aqadm.drop_queue_table('eve.tab', force => true);
DROP SCHEMA eve, adam CASCADE;
DROP OWNED BY regress_aq_eve, regress_aq_adam;
DROP ROLE regress_aq_eve, regress_aq_adam;
