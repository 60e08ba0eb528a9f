-- What others have left in a session, and what is evaluated before anybody could check it: nothing of it runs with another role's rights.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
CREATE ROLE regress_aq_mallory;
CREATE ROLE regress_aq_victim;
CREATE SCHEMA mallory AUTHORIZATION regress_aq_mallory;
CREATE SCHEMA victim AUTHORIZATION regress_aq_victim;
GRANT USAGE ON SCHEMA mallory, victim TO PUBLIC;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_mallory, regress_aq_victim;
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.trap(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN $1; END $$;

-- a cast that PL/pgSQL has made ready for the enqueuer earlier in the transaction: in an assignment, in a RETURN
CREATE TYPE mallory.state AS ENUM ('new');
CREATE FUNCTION mallory.as_text(mallory.state) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN mallory.trap('new'); END $$;
CREATE CAST (mallory.state AS text) WITH FUNCTION mallory.as_text AS ASSIGNMENT;
CREATE TYPE mallory.ticket AS (s mallory.state);
GRANT USAGE ON TYPE mallory.ticket TO regress_aq_victim;
SET ROLE regress_aq_victim;
CREATE FUNCTION victim.assign(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE shown text; BEGIN shown := $1; RETURN shown <> ''; END $$;
CREATE FUNCTION victim.give(anyelement) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN $1; END $$;
SELECT aq.create_queue('a_tickets', 'mallory.ticket', multiple_consumers => true);
SELECT aq.subscribe('a_tickets', 'assign', 'priority = 1 AND victim.assign(s)'), aq.subscribe('a_tickets', 'give', $$priority = 2 AND victim.give(s) <> ''$$), aq.subscribe('a_tickets', 'all');
SELECT aq.grant_queue('a_tickets', 'regress_aq_mallory', 'enqueue');
SET ROLE regress_aq_mallory;
SET search_path = pg_catalog, pg_temp;
SELECT aq.enqueue('a_tickets', ROW('new')::mallory.ticket, priority => 3) IS NOT NULL;
BEGIN;
SELECT victim.assign('new'::mallory.state), victim.give('new'::mallory.state);
SAVEPOINT s;
SELECT aq.enqueue('a_tickets', ROW('new')::mallory.ticket, priority => 1) IS NOT NULL, t.rule_errors('a_tickets');
ROLLBACK TO s;
SELECT victim.assign('new'::mallory.state), victim.give('new'::mallory.state);
SAVEPOINT s;
SELECT aq.enqueue('a_tickets', ROW('new')::mallory.ticket, priority => 2) IS NOT NULL, t.rule_errors('a_tickets');
ROLLBACK;
RESET search_path;

-- literals in a rule, which the parser reads
CREATE DOMAIN mallory.reads AS text CHECK (query_to_xml('SELECT 1 / 0', true, true, '') IS NOT NULL);
CREATE TYPE mallory.pair AS (a int, d mallory.reads);
RESET ROLE;
SELECT aq.create_queue('a_rules', multiple_consumers => true);
SELECT split_part(t.error(format($$SELECT aq.subscribe('a_rules', 's', %L)$$, rule)), ' | ', 2) FROM unnest(ARRAY[$$'(1,x)'::mallory.pair IS NOT NULL$$, $$'x'::mallory.reads IS NOT NULL$$,
	$$'{x}'::mallory.reads[] IS NOT NULL$$, $$'(1,x)' IS DISTINCT FROM NULL::mallory.pair$$, $$CASE WHEN priority = 3 THEN NULL::mallory.pair ELSE '(1,x)' END IS NOT NULL$$,
	$$mallory.pair '(1,x)' IS NOT NULL$$, $$mallory.pair('(1,x)') IS NOT NULL$$, $$jsonb_populate_record(NULL::mallory.pair, payload) IS NOT NULL$$]) rule;
-- a range type's function that makes its values canonical, which the server has ready since another role used it
-- the notices differ from version to version
SET client_min_messages = warning;
CREATE TYPE t.span;
CREATE FUNCTION mallory.canonical(t.span) RETURNS t.span LANGUAGE internal IMMUTABLE STRICT AS 'int4range_canonical';
CREATE TYPE t.span AS RANGE (subtype = int4, canonical = mallory.canonical);
RESET client_min_messages;
ALTER FUNCTION mallory.canonical OWNER TO regress_aq_mallory;
SELECT '(1,3]'::t.span;
SELECT split_part(t.error(format($$SELECT aq.subscribe('a_rules', 's', %L)$$, rule)), ' | ', 2) FROM unnest(ARRAY[$$'(1,3]'::t.span @> priority$$, $$t.span(1, priority) @> 1$$]) rule;
-- what is meant by a literal is what its writer has meant
SELECT aq.subscribe('a_rules', 'null', 'correlation = NULL'), aq.subscribe('a_rules', 'backslash', $$correlation = '\\'$$), aq.subscribe('a_rules', 'others', $$correlation IN ('a', 'b') AND payload['k'] = '"v"' AND correlation LIKE 'a%' ESCAPE '!'$$);
SELECT t.error($$SELECT aq.subscribe('a_rules', 'parameter', '$1 = 1')$$);
BEGIN;
SET LOCAL transform_null_equals = on;
-- in PostgreSQL 19 the one is gone, and the other always on
SELECT set_config(name, 'off', true) FROM unnest(ARRAY['escape_string_warning', 'standard_conforming_strings']) name WHERE current_setting('escape_string_warning', true) IS NOT NULL \g /dev/null
SELECT aq.enqueue('a_rules', '1') IS NULL, aq.enqueue('a_rules', '1', correlation => chr(92)) IS NULL, aq.enqueue('a_rules', '1', correlation => chr(92) || chr(92)) IS NOT NULL, aq.enqueue('a_rules', '{"k": "v"}', correlation => 'a') IS NOT NULL;
SELECT count(*) FILTER (WHERE consumer = 'backslash'), count(*) FILTER (WHERE consumer = 'others') FROM aq.messages WHERE queue_name = 'a_rules';
ROLLBACK;

-- a rule reads none of the enqueuer's cursors, and closes none; its own it does
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.peek(what text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	theirs refcursor := 'theirs';
	mine CURSOR FOR SELECT 1 AS n;
	r record;
BEGIN
	CASE what
		WHEN 'fetch' THEN FETCH theirs INTO r;
		WHEN 'held' THEN EXECUTE 'FETCH held' INTO r;
		WHEN 'move' THEN EXECUTE 'MOVE theirs';
		WHEN 'close' THEN CLOSE theirs;
		WHEN 'xml' THEN PERFORM cursor_to_xml('theirs', 1, true, true, '');
		ELSE EXECUTE 'CLOSE ALL';
	END CASE;
	RETURN true;
EXCEPTION WHEN OTHERS THEN
	OPEN mine;
	FETCH mine INTO r;
	CLOSE mine;
	RAISE NOTICE '%: %, %', what, sqlerrm, r;
	RETURN false;
END $$;
SELECT aq.create_queue('a_cursors', multiple_consumers => true), aq.subscribe('a_cursors', 'peek', 'mallory.peek(correlation)'), aq.subscribe('a_cursors', 'all');
RESET ROLE;
DECLARE held CURSOR WITH HOLD FOR SELECT 'secret ' || n FROM generate_series(1, 5) n;
BEGIN;
DECLARE theirs CURSOR FOR SELECT 'secret ' || n FROM generate_series(1, 5) n;
FETCH theirs;
SELECT count(aq.enqueue('a_cursors', '1', correlation => what)) FROM unnest(ARRAY['fetch', 'held', 'move', 'close', 'xml', 'all']) what;
FETCH theirs;
COMMIT;
FETCH held;
CLOSE held;
-- also while the enqueuer is in a loop over a query
DO $$ DECLARE n int; BEGIN FOR n IN SELECT generate_series(1, 3) LOOP PERFORM aq.enqueue('a_cursors', '1', correlation => 'all'); END LOOP; END $$;
SELECT count(*) FROM aq.dequeue('a_cursors', 'all', 100);

-- nor the large objects that the enqueuer has opened
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.load() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', loread(0, 100); RETURN true; END $$;
SELECT aq.create_queue('a_large', multiple_consumers => true), aq.subscribe('a_large', 's', 'mallory.load()');
RESET ROLE;
BEGIN;
SELECT lo_from_bytea(4711, 'secret');
SELECT lo_open(4711, 262144);
SELECT aq.enqueue('a_large', '1') IS NULL, t.rule_errors('a_large');
ROLLBACK;

-- nor does it trace the enqueuer's session
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.trace() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM aq.trace_start(); RETURN true; END $$;
SELECT aq.create_queue('a_trace', multiple_consumers => true), aq.subscribe('a_trace', 's', 'mallory.trace()');
RESET ROLE;
SELECT aq.enqueue('a_trace', '1') IS NULL, t.rule_errors('a_trace');

-- what reads a payload type's values is made ready again when the type gets another owner
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.check(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
RESET ROLE;
CREATE DOMAIN t.d AS text CHECK (mallory.check(VALUE));
SET ROLE regress_aq_mallory;
CREATE TYPE mallory.note AS (d t.d);
SELECT aq.create_queue('a_notes', 'mallory.note'), aq.grant_queue('a_notes', 'regress_aq_victim', 'enqueue');
RESET ROLE;
SELECT aq.enqueue('a_notes', '(x)') IS NOT NULL;
ALTER TYPE mallory.note OWNER TO regress_aq_victim;
SELECT aq.enqueue('a_notes', '(x)');

-- a function of a third role that a subscriber's transformation does not name: here, a cast
SET ROLE regress_aq_victim;
CREATE FUNCTION victim.transform(mallory.ticket) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$ DECLARE shown text := $1.s; BEGIN RETURN to_jsonb(shown); END $$;
SELECT sys._set_transformation('a_tickets', 'all', 'victim.transform');
RESET ROLE;
SELECT aq.enqueue('a_tickets', ROW('new')::mallory.ticket, priority => 3) IS NOT NULL;
SELECT split_part(t.error($$CALL dbms_aq.dequeue('a_tickets', dbms_aq.dequeue_options_t(consumer_name => 'ALL', wait => 0), NULL, NULL::jsonb, NULL)$$), ' | ', 2);

-- a table or a view of another role is no payload type: a temporary type could take it away, and the queue with it
SET ROLE regress_aq_mallory;
CREATE TABLE mallory.tab (a int);
CREATE VIEW mallory.vista AS SELECT 1 AS a;
GRANT USAGE ON TYPE mallory.tab, mallory.vista TO regress_aq_victim;
SET ROLE regress_aq_victim;
SELECT t.error($$SELECT aq.create_queue('a_tab', 'mallory.tab')$$);
SELECT t.error(format($$SELECT aq.create_queue_table('victim.a_tab', %L)$$, type)) LIKE '%belongs to another role%' FROM unnest(ARRAY['mallory.tab', 'mallory.vista']) type;
RESET ROLE;
SELECT t.error($$SELECT aq.create_queue('a_tab', 'mallory.tab')$$) LIKE '%belongs to another role%';

-- a cast that the type's owner has made, where a consumer wants the payload as text
SET ROLE regress_aq_mallory;
CREATE TYPE mallory.letter AS (body text);
CREATE FUNCTION mallory.letter_text(mallory.letter) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN mallory.trap($1.body); END $$;
CREATE CAST (mallory.letter AS text) WITH FUNCTION mallory.letter_text;
SELECT aq.create_queue('a_letters', 'mallory.letter');
SELECT aq.enqueue('a_letters', '(a)') IS NOT NULL, aq.enqueue('a_letters', '(b)') IS NOT NULL;
RESET ROLE;
CALL dbms_aq.dequeue('a_letters', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::text, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('a_letters', dbms_aq.dequeue_options_t(wait => 0, visibility => 1), NULL, NULL::text, NULL) \gset
SELECT :'payload';

SET client_min_messages = error;
SELECT count(aq.drop_queue(queue_name, true)) FROM aq.queues WHERE queue_type = 'normal' AND queue_name ~ '^a_';
REVOKE EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table FROM regress_aq_mallory, regress_aq_victim;
DROP DOMAIN t.d CASCADE;
DROP TYPE t.span CASCADE;
DROP SCHEMA mallory, victim CASCADE;
DROP ROLE regress_aq_mallory, regress_aq_victim;

-- Two payload types exchange their names between the check of a queue's type and the definition of its view and tables: these have the type that was checked.
CREATE SCHEMA swap_a;
CREATE SCHEMA swap_b;
CREATE TYPE swap_a.pair AS (x int, y text);
CREATE DOMAIN swap_b.pair AS bigint;
SELECT 'swap_a.pair'::regtype::oid AS pair \gset
CREATE FUNCTION t.exchange() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN
	ALTER SCHEMA swap_a RENAME TO swap_c; ALTER SCHEMA swap_b RENAME TO swap_a; ALTER SCHEMA swap_c RENAME TO swap_b;
END $$;
CREATE EVENT TRIGGER regress_exchange ON ddl_command_start WHEN TAG IN ('CREATE TABLE', 'CREATE VIEW') EXECUTE FUNCTION t.exchange();
BEGIN;
SELECT aq.create_queue('a_swapped', :pair::regtype);
SELECT aq.enqueue('a_swapped', '(1,abc)') IS NOT NULL, aq.enqueue('a_swapped', '(2,def)', delivery_mode => 'buffered') IS NOT NULL;
COMMIT;
SELECT aq.create_queue_table('public.a_swapped_table', :pair::regtype);
DROP EVENT TRIGGER regress_exchange;
SELECT DISTINCT c.relkind, a.atttypid = :pair FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'payload'
	WHERE c.relnamespace = 'aq_data'::regnamespace AND c.relkind IN ('r', 'v') AND a.atttypid >= (SELECT min(v) FROM unnest(ARRAY[:pair, 'swap_a.pair'::regtype::oid, 'swap_b.pair'::regtype::oid]) v) ORDER BY 1;
SELECT payload::text FROM aq.messages WHERE queue_name = 'a_swapped' ORDER BY 1;
-- a table that got another type, by whatever way, is not read and not written
SELECT set_config('t.pair', :'pair', false) <> '';
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'payload'
			WHERE c.relnamespace = 'aq_data'::regnamespace AND c.relkind = 'r' AND a.atttypid::text = current_setting('t.pair') LOOP
		EXECUTE format('ALTER TABLE aq_data.%I ALTER payload TYPE bigint USING 1', name);
	END LOOP;
END $$;
SELECT regexp_replace(t.error(format($$SELECT * FROM aq.dequeue('a_swapped', as_type => NULL::%s, delivery_mode => '%s')$$, :pair::regtype, delivery)), 'swap_.', 'swap') FROM unnest(ARRAY['persistent', 'buffered']) delivery;
SELECT regexp_replace(t.error(format($$SELECT aq.enqueue('a_swapped', '(3,ghi)', delivery_mode => '%s')$$, delivery)), 'swap_.', 'swap') FROM unnest(ARRAY['persistent', 'buffered']) delivery;
SELECT aq.drop_queue('a_swapped', force => true), aq.drop_queue_table('public.a_swapped_table', force => true);
DROP SCHEMA swap_a, swap_b CASCADE;
