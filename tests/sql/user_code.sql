-- What a queue's owner writes and others run: rules, payload types, transformations, views.  It has the owner's rights, never theirs,
-- and what it does to the queue meanwhile does no harm.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_mallory;
CREATE ROLE regress_aq_carol;
CREATE SCHEMA mallory AUTHORIZATION regress_aq_mallory;
CREATE SCHEMA carol AUTHORIZATION regress_aq_carol;
GRANT USAGE ON SCHEMA mallory, carol TO PUBLIC;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_mallory, regress_aq_carol;

-- the constraint of a domain in a rule; it fails where anybody else runs it
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.is_me(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN current_user = 'regress_aq_mallory'; END $$;
CREATE DOMAIN mallory.d AS text CONSTRAINT mine CHECK (mallory.is_me(VALUE));
CREATE TYPE mallory.pair AS (a int, b mallory.d);
SELECT aq.create_queue('m_topic', multiple_consumers => true);
SELECT aq.subscribe('m_topic', 'cast', $$ (properties ->> 'x')::mallory.d IS NOT NULL $$);
SELECT aq.subscribe('m_topic', 'row', $$ (ROW(1, properties ->> 'x')::mallory.pair).a = 1 $$);
SELECT aq.subscribe('m_topic', 'array', $$ cardinality(ARRAY[properties ->> 'x']::mallory.d[]) = 1 $$);
RESET ROLE;
SELECT aq.enqueue('m_topic', '1', properties => '{"x": "y"}') IS NOT NULL;
SELECT t.drain('m_topic', 'cast'), t.drain('m_topic', 'row'), t.drain('m_topic', 'array');
-- and in a payload type, when the payload is given as text
SET ROLE regress_aq_mallory;
SELECT aq.create_queue('m_pairs', 'mallory.pair');
RESET ROLE;
SELECT aq.enqueue('m_pairs', '(1,text)') IS NOT NULL, cardinality(aq.enqueue_array('m_pairs', ARRAY['(2,x)', '(3,y)']));
-- and where others look for messages by a condition
CALL dbms_aqadm.purge_queue_table('m_pairs', '(user_data).a = 3', NULL);
SELECT count(*) FROM aq.dequeue('m_pairs', NULL::mallory.pair, max_messages => 10);

-- a rule that changes its own queue and uses it: the description that the enqueue goes on with stays where it is
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.meddle() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.alter_queue('m_busy', comment => 'changed');
	PERFORM aq.alter_subscriber('m_busy', 's' || n, 'priority < ' || n) FROM generate_series(2, 9) n;
	PERFORM count(*) FROM aq.browse('m_busy', 's1');
	PERFORM repeat('x', 100000);
	RETURN true;
END $$;
SELECT aq.create_queue('m_busy', multiple_consumers => true);
SELECT count(aq.subscribe('m_busy', 's' || n, CASE WHEN n IN (1, 10) THEN 'mallory.meddle()' ELSE 'true' END)) FROM generate_series(1, 20) n;
SELECT t.put('m_busy', 1, 3);
SELECT t.drain('m_busy', 's1'), t.drain('m_busy', 's10'), t.drain('m_busy', 's20');
-- so does a condition's, and that of a purge
SELECT t.put('m_busy', 4);
SELECT payload FROM aq.dequeue('m_busy', 's1', condition => 'mallory.meddle()');
SELECT aq.purge_queue('m_busy', 's20', condition => 'mallory.meddle()');
-- a rule that enqueues into its own queue is evaluated within itself
CREATE FUNCTION mallory.again(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF $1 <> 'inner' THEN
		PERFORM aq.enqueue('m_loop', '"inner"', correlation => 'INNER');
	END IF;
	RETURN $1;
END $$;
SELECT aq.create_queue('m_loop', multiple_consumers => true);
SELECT aq.subscribe('m_loop', 's', $$ lower(correlation) || repeat('.', 1000) = mallory.again(lower(correlation)) || repeat('.', 1000) $$);
SELECT aq.enqueue('m_loop', '"outer"', correlation => 'OUTER') IS NOT NULL;
SELECT t.drain('m_loop', 's');
-- also before the rule has looked at all of its own message
CREATE FUNCTION mallory.first(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = 'OUTER' THEN
		PERFORM aq.enqueue('m_twice', '"inner"', correlation => 'INNER');
	END IF;
	RETURN true;
END $$;
SELECT aq.create_queue('m_twice', multiple_consumers => true);
SELECT aq.subscribe('m_twice', 's', $$ mallory.first(correlation) AND correlation = 'OUTER' AND payload = '"outer"' $$), aq.subscribe('m_twice', 'all');
SELECT aq.enqueue('m_twice', '"outer"', correlation => 'OUTER') IS NOT NULL;
SELECT t.drain('m_twice', 's'), t.drain('m_twice', 'all');
-- and a payload type's constraint that reads another payload of the type
CREATE FUNCTION mallory.nested(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = 'outer' THEN
		PERFORM aq.enqueue('m_nested', '(inner,inner)');
	END IF;
	RETURN $1 IN ('outer', 'inner');
END $$;
CREATE DOMAIN mallory.n AS text CHECK (mallory.nested(VALUE)) CHECK (length(VALUE) = 5);
CREATE TYPE mallory.nested_pair AS (a mallory.n, b mallory.n);
SELECT aq.create_queue('m_nested', 'mallory.nested_pair');
SELECT aq.enqueue('m_nested', '(outer,outer)') IS NOT NULL;
SELECT string_agg((payload).a || ' ' || (payload).b, ', ') FROM aq.dequeue('m_nested', NULL::mallory.nested_pair, max_messages => 10);
-- one that makes another queue of the same name does not have the payload put into that one
CREATE FUNCTION mallory.swap(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.drop_queue('m_swapped', true);
	PERFORM aq.create_queue('m_swapped', multiple_consumers => true), aq.subscribe('m_swapped', 's', delivery_mode => 'persistent_or_buffered');
	RETURN true;
END $$;
CREATE DOMAIN mallory.swapped AS text CHECK (mallory.swap(VALUE));
CREATE TYPE mallory.with_swapped AS (a mallory.swapped);
SELECT aq.create_queue('m_swapped', 'mallory.with_swapped', multiple_consumers => true), aq.subscribe('m_swapped', 's', delivery_mode => 'persistent_or_buffered');
SET statement_timeout = '1 min';
SELECT t.error(format($$SELECT aq.enqueue('m_swapped', '(x)', %s)$$, option))
	FROM unnest(ARRAY['NULL', $$recipients => '{new}'$$, $$delivery_mode => 'buffered'$$]) option;
RESET statement_timeout;
SELECT payload_type FROM aq.queues WHERE queue_name = 'm_swapped';
SELECT aq.drop_queue('m_swapped');
RESET ROLE;

-- the transformation of a subscriber leaves nothing behind that runs with the consumer's rights: no deferred trigger, no setting
SET ROLE regress_aq_mallory;
CREATE TABLE mallory.trap (who text);
CREATE FUNCTION mallory.spring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'run by %', current_user; END $$;
CREATE CONSTRAINT TRIGGER spring AFTER INSERT ON mallory.trap DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mallory.spring();
CREATE FUNCTION mallory.set_trap(jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	INSERT INTO mallory.trap VALUES (current_user);
	RETURN $1;
END $$;
CREATE FUNCTION mallory.set_path(jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM set_config('search_path', 'mallory', false);
	RETURN $1;
END $$;
CALL dbms_aqadm.add_subscriber('m_topic', sys.aq$_agent('TRAP', NULL, NULL), rule => 'false', transformation => 'mallory.set_trap');
CALL dbms_aqadm.add_subscriber('m_topic', sys.aq$_agent('PATH', NULL, NULL), rule => 'false', transformation => 'mallory.set_path');
RESET ROLE;
SELECT aq.enqueue('m_topic', '1', recipients => ARRAY['trap', 'path']) IS NOT NULL;
SELECT t.error($$CALL dbms_aq.dequeue('m_topic', dbms_aq.dequeue_options_t(consumer_name => 'TRAP', wait => 0), NULL, NULL::jsonb, NULL)$$);
CALL dbms_aq.dequeue('m_topic', dbms_aq.dequeue_options_t(consumer_name => 'PATH', wait => 0, navigation => 1), NULL, NULL::jsonb, NULL) \g /dev/null
SHOW search_path;
-- nor does it reach what its chooser may not call, though the consumer may
CREATE FUNCTION carol.sign(jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS $$ SELECT '"signed"'::jsonb $$;
REVOKE EXECUTE ON FUNCTION carol.sign FROM PUBLIC;
SET ROLE regress_aq_mallory;
SELECT t.error($$CALL dbms_aqadm.alter_subscriber('m_topic', sys.aq$_agent('PATH', NULL, NULL), NULL, 'carol.sign')$$);
SELECT sys._set_transformation('m_topic', 'path', 'carol.sign');
RESET ROLE;
SELECT t.error($$CALL dbms_aq.dequeue('m_topic', dbms_aq.dequeue_options_t(consumer_name => 'PATH', wait => 0, navigation => 1), NULL, NULL::jsonb, NULL)$$);
-- the function behind it takes only what is such a transformation
SELECT t.error($$SELECT sys._transform('pg_catalog.int4out(integer)'::regprocedure, 1, 1)$$);

-- views show what the caller may see also to a function that looks at each row
CREATE ROLE regress_aq_spy;
CREATE SCHEMA spy AUTHORIZATION regress_aq_spy;
SET ROLE regress_aq_spy;
CREATE FUNCTION spy.see(text) RETURNS boolean LANGUAGE plpgsql STRICT COST 0.000001 AS $$ BEGIN RAISE WARNING 'seen: %', $1; RETURN true; END $$;
SELECT count(*) FROM aq.queues WHERE spy.see(queue_name);
SELECT count(*) FROM aq.subscribers WHERE spy.see(rule);
SELECT count(*) FROM aq.messages WHERE spy.see(queue_name);
SELECT count(*) FROM aq.queue_tables WHERE spy.see(queue_table);
SELECT count(*) FROM sys.all_queues WHERE spy.see(name);
SELECT count(*) FROM sys.user_queue_subscribers WHERE spy.see(rule);
RESET ROLE;
-- none is forgotten
SELECT count(*) FROM pg_class c WHERE relnamespace IN ('aq'::regnamespace, 'sys'::regnamespace) AND relkind = 'v'
	AND has_table_privilege('regress_aq_spy', oid, 'SELECT') AND 'security_barrier=true' <> ALL (coalesce(reloptions, '{}'));

-- names in a schema are for those who may create there
SET ROLE regress_aq_mallory;
SELECT t.error($$SELECT aq.create_queue('carol.orders')$$);
SELECT t.error($$SELECT aq.create_queue_table('carol.orders')$$);
SELECT t.error($$SELECT aq.alter_queue('m_busy', new_name => 'carol.orders')$$);
SELECT aq.create_queue('no_schema.orders'), aq.drop_queue('no_schema.orders');
RESET ROLE;
-- dropping one's own queue does not drop another's view
GRANT CREATE ON SCHEMA carol TO regress_aq_mallory;
SET ROLE regress_aq_carol;
CALL dbms_aqadm.create_queue_table('carol.orders', 'JSON');
SET ROLE regress_aq_mallory;
SELECT aq.create_queue('carol.orders');
SELECT sys._drop_views('carol.orders', false);
SELECT to_regclass('carol.aq$orders');
-- what its owner has made of a queue table's view is not run by others who purge the queue table
RESET ROLE;
GRANT aq_administrator_role TO regress_aq_mallory;
SET ROLE regress_aq_mallory;
CALL dbms_aqadm.create_queue_table('mallory.purged', 'JSON');
DROP VIEW mallory.aq$purged;
CREATE VIEW mallory.aq$purged AS SELECT 'PURGED' AS queue, NULL::uuid AS msg_id, mallory.is_me('') AS mine;
GRANT SELECT ON mallory.aq$purged TO PUBLIC;
CALL dbms_aqadm.create_queue('mallory.purged', 'mallory.purged');
RESET ROLE;
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('mallory.purged', 'mine', NULL)$$);

-- another role's type is kept from being dropped by a queue only if its owner has agreed to that: by a grant that names the role
SET ROLE regress_aq_carol;
CREATE TYPE carol.own AS (a int);
CREATE TABLE carol.own_table (a int);
SET ROLE regress_aq_mallory;
SELECT t.error($$SELECT aq.create_queue('m_own', 'carol.own')$$);
SELECT split_part(t.error($$SELECT aq.create_queue('m_own', 'carol.own_table')$$), ' | ', 2);
SELECT split_part(t.error($$SELECT aq.create_queue_table('mallory.m_own', 'carol.own')$$), ' | ', 2);
SET ROLE regress_aq_carol;
GRANT USAGE ON TYPE carol.own TO PUBLIC;
REVOKE USAGE ON TYPE carol.own_table FROM PUBLIC;
SET ROLE regress_aq_mallory;
SELECT split_part(t.error($$SELECT aq.create_queue('m_own', 'carol.own')$$), ' | ', 2), split_part(t.error($$SELECT aq.create_queue('m_own', 'carol.own_table')$$), ' | ', 2);
SET ROLE regress_aq_carol;
GRANT USAGE ON TYPE carol.own, carol.own_table TO regress_aq_mallory;
SET ROLE regress_aq_mallory;
SELECT aq.create_queue('m_own', 'carol.own'), t.error($$SELECT aq.create_queue('m_own_table', 'carol.own_table')$$) LIKE '%belongs to another role%';
-- and learns whom to ask, if it may not see the queue
SELECT t.error('DROP TYPE carol.own CASCADE') LIKE '%must be owner%';
SET ROLE regress_aq_carol;
SET client_min_messages = warning;
SELECT t.error('DROP TYPE carol.own CASCADE');
RESET ROLE;
SELECT aq.grant_queue('m_own', 'regress_aq_carol', 'enqueue');
SET ROLE regress_aq_carol;
SELECT t.error('DROP TYPE carol.own CASCADE');
RESET client_min_messages;

-- nor is a type that goes away with a session, neither itself nor what goes away with it
SET ROLE regress_aq_mallory;
CREATE TYPE pg_temp.short AS (a int);
CREATE TEMP TABLE short_table (a int);
CREATE TABLE mallory.of_short OF pg_temp.short;
SELECT t.error(format($$SELECT aq.create_queue('m_short', %L)$$, type)) FROM unnest(ARRAY['pg_temp.short', 'short_table', 'mallory.of_short']) type;
SELECT t.error($$SELECT aq.create_queue('m_short', 'short_table'::regtype::oid)$$) LIKE '%is temporary%';
SELECT split_part(t.error($$SELECT aq.create_queue_table('mallory.m_short', 'pg_temp.short')$$), ' | ', 3);
SET client_min_messages = warning;
DISCARD TEMP;
RESET client_min_messages;
-- one that has become such a type after the queue was made does not keep it: there, the queue cannot be saved
CREATE TABLE mallory.becomes (a int);
SELECT aq.create_queue('m_becomes', 'mallory.becomes');
CREATE TYPE pg_temp.short AS (a int);
ALTER TABLE mallory.becomes OF pg_temp.short;
SET client_min_messages = warning;
DISCARD TEMP;
RESET client_min_messages;
SELECT to_regtype('pg_temp.short'), to_regclass('mallory.becomes');
SELECT split_part(t.error($$SELECT aq.enqueue('m_becomes', '(1)')$$), ' | ', 2);
RESET ROLE;
SELECT split_part(t.error($$SELECT aq.enqueue('m_becomes', '(1)')$$), ' | ', 2);
SELECT count(*) FROM aq_internal.queue WHERE queue_name = 'm_becomes';
SELECT aq.drop_queue('m_becomes', true);

SET client_min_messages = error;
SELECT count(aq.drop_queue(queue_name, true)) FROM aq.queues WHERE queue_type = 'normal' AND (queue_name ~ '^m_' OR queue_name = 'carol.orders');
SELECT aq.drop_queue_table('mallory.purged', true);
CALL dbms_aqadm.drop_queue_table('carol.orders', true);
REVOKE aq_administrator_role FROM regress_aq_mallory;
REVOKE EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table FROM regress_aq_mallory, regress_aq_carol;
DROP SCHEMA mallory, carol, spy CASCADE;
DROP ROLE regress_aq_mallory, regress_aq_carol, regress_aq_spy;
