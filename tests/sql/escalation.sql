-- Attempts to act with the rights of another role.  The trap says who runs it: it has to be the role that has written it.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
CREATE ROLE regress_aq_mallory;
CREATE ROLE regress_aq_victim;
CREATE SCHEMA mallory AUTHORIZATION regress_aq_mallory;
CREATE SCHEMA victim AUTHORIZATION regress_aq_victim;
GRANT USAGE ON SCHEMA mallory, victim TO PUBLIC;
GRANT aq_administrator_role TO regress_aq_mallory;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_mallory, regress_aq_victim;
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
CREATE FUNCTION mallory.trap(text) RETURNS boolean LANGUAGE sql AS $$ SELECT mallory.trap() $$;
RESET ROLE;

-- a manager's rule on a superuser's topic
SELECT aq.create_queue('e_topic', multiple_consumers => true);
SET ROLE regress_aq_mallory;
SELECT aq.subscribe('e_topic', 'm', 'mallory.trap()');
SELECT aq.subscribe('e_topic', 'altered', 'priority < 3');
SELECT aq.alter_subscriber('e_topic', 'altered', 'mallory.trap(correlation)');
CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('PACKAGE', NULL, NULL), rule => 'mallory.trap()');
RESET ROLE;
SELECT aq.enqueue('e_topic', '1') IS NOT NULL;
-- another owner of the queue changes nothing of that
SELECT aq.alter_queue('e_topic', new_owner => 'regress_aq_victim');
SET ROLE regress_aq_victim;
SELECT aq.enqueue('e_topic', '2') IS NOT NULL;
RESET ROLE;
SELECT consumer, rule_role FROM aq_internal.subscriber s JOIN aq_internal.queue USING (queue_id) WHERE queue_name = 'e_topic' ORDER BY 1;
-- the type of this column reads a name, never a number, and finds no role without an error
SELECT 'regress_aq_mallory'::aq_internal.role = 'regress_aq_mallory'::regrole, text::aq_internal.role::oid
FROM unnest('{10,-,"",regress_aq_nobody,"\"regress_aq_mallory\"",REGRESS_AQ_MALLORY}'::text[]) text;
-- a rule whose writer is not known, from a dump of an older version, has nobody's rights
UPDATE aq_internal.subscriber SET rule_role = NULL WHERE consumer <> 'm' AND rule IS NOT NULL;
SELECT aq.alter_queue('e_topic', comment => 'read again');
SELECT aq.enqueue('e_topic', '3') IS NULL, t.rule_errors('e_topic');
SELECT aq.unsubscribe('e_topic', 'altered'), aq.unsubscribe('e_topic', 'package'), aq.unsubscribe('e_topic', 'm');
-- nor has one whose writer is gone
CREATE ROLE regress_aq_gone IN ROLE aq_administrator_role;
SET ROLE regress_aq_gone;
SELECT aq.subscribe('e_topic', 'gone', $$current_user || priority = 'aq_user_role1'$$), aq.subscribe('e_topic', 'plain', 'priority = 1');
RESET ROLE;
DROP ROLE regress_aq_gone;
SELECT t.put('e_topic', 4);
SELECT t.drain('e_topic', 'gone'), t.drain('e_topic', 'plain');
SELECT aq.drop_queue('e_topic', true);

-- a manager's choice of a transformation that the owner and the consumers may execute, and the manager may not
CREATE FUNCTION victim.run(jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN $1; END $$;
ALTER FUNCTION victim.run OWNER TO regress_aq_victim;
REVOKE EXECUTE ON FUNCTION victim.run FROM PUBLIC;
SET ROLE regress_aq_victim;
SELECT aq.create_queue('e_transformed', multiple_consumers => true);
CALL dbms_aqadm.add_subscriber('e_transformed', sys.aq$_agent('OWN', NULL, NULL), transformation => 'victim.run');
SET ROLE regress_aq_mallory;
CALL dbms_aqadm.add_subscriber('e_transformed', sys.aq$_agent('THEFT', NULL, NULL), transformation => 'victim.run');
SELECT aq.subscribe('e_transformed', 'theft'), sys._set_transformation('e_transformed', 'theft', 'victim.run');
SELECT aq.enqueue('e_transformed', '1') IS NOT NULL;
SET ROLE regress_aq_victim;
CALL dbms_aq.dequeue('e_transformed', dbms_aq.dequeue_options_t(consumer_name => 'OWN', wait => 0), NULL, NULL::jsonb, NULL) \g /dev/null
CALL dbms_aq.dequeue('e_transformed', dbms_aq.dequeue_options_t(consumer_name => 'THEFT', wait => 0), NULL, NULL::jsonb, NULL) \g /dev/null
RESET ROLE;
SELECT aq.drop_queue('e_transformed', true);

-- names without a schema in what the owner has written: found neither in the enqueuer's schemas nor among its temporary objects
SET ROLE regress_aq_victim;
CREATE TABLE victim.allowed (kind text);
INSERT INTO victim.allowed VALUES ('good');
CREATE TABLE victim.journal (kind text);
CREATE FUNCTION victim.is_allowed(text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = 'journal' THEN
		INSERT INTO journal VALUES ($1);
	ELSIF $1 = 'type' THEN
		EXECUTE 'SELECT $1::marked' USING $1;
	ELSIF $1 = 'truncate' THEN
		TRUNCATE journal;
	END IF;
	RETURN EXISTS (SELECT FROM allowed a WHERE a.kind = $1);
END $$;
CREATE DOMAIN victim.kind AS text CHECK (victim.is_allowed(VALUE));
CREATE TYPE victim.note AS (kind victim.kind);
SELECT aq.create_queue('e_notes', 'victim.note');
SELECT aq.create_queue('e_note_topic', multiple_consumers => true);
SELECT aq.subscribe('e_note_topic', 's', 'victim.is_allowed(correlation)');
SELECT aq.grant_queue(q, 'regress_aq_mallory') FROM unnest(ARRAY['e_notes', 'e_note_topic']) q;
SET search_path = victim;
SELECT aq.enqueue('e_notes', ROW('good')::victim.note) IS NOT NULL;
RESET search_path;
SET ROLE regress_aq_mallory;
CREATE VIEW mallory.allowed AS SELECT 'bad' AS kind WHERE mallory.trap();
SET search_path = mallory, public;
SELECT aq.enqueue('e_notes', '(bad)');
SELECT aq.enqueue('e_note_topic', '1', correlation => 'bad');
RESET search_path;
CREATE TEMP VIEW allowed AS SELECT * FROM mallory.allowed;
GRANT ALL ON allowed TO PUBLIC;
SELECT aq.enqueue('e_notes', '(bad)');
SELECT aq.enqueue('e_note_topic', '1', correlation => 'bad'), t.rule_errors('e_note_topic');
DROP VIEW allowed;
-- not even to make a refusal a consent
CREATE TEMP TABLE allowed (kind text);
INSERT INTO allowed VALUES ('bad');
GRANT ALL ON allowed TO PUBLIC;
SELECT aq.enqueue('e_notes', '(bad)');
-- functions that tables call: in a trigger, a default, a generated column, an index, a constraint
CREATE FUNCTION mallory.spring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.trap(); RETURN NEW; END $$;
CREATE FUNCTION mallory.still(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.trap(); RETURN $1; END $$;
CREATE TEMP TABLE journal (kind text CHECK (mallory.trap()), a boolean DEFAULT mallory.trap(), b text GENERATED ALWAYS AS (mallory.still(kind)) STORED);
CREATE INDEX ON journal (mallory.still(kind));
CREATE TRIGGER spring BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION mallory.spring();
CREATE TRIGGER emptied AFTER TRUNCATE ON journal EXECUTE FUNCTION mallory.spring();
GRANT ALL ON journal TO PUBLIC;
SELECT aq.enqueue('e_notes', '(journal)');
SELECT aq.enqueue('e_notes', '(truncate)');
-- and a type
CREATE DOMAIN pg_temp.marked AS text CHECK (mallory.trap());
SELECT aq.enqueue('e_notes', '(type)');
DISCARD TEMP;
RESET ROLE;
SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['e_notes', 'e_note_topic']) q;

-- functions that a superuser's rule does not name: a cast that the payload type's owner adds
SET ROLE regress_aq_mallory;
CREATE TYPE mallory.state AS ENUM ('new');
CREATE FUNCTION mallory.as_text(mallory.state) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.trap(); RETURN 'new'; END $$;
CREATE FUNCTION mallory.inlined(mallory.state) RETURNS text LANGUAGE sql AS $$ SELECT set_config('mallory.was', current_user, false) $$;
CREATE FUNCTION mallory.with_setting(mallory.state) RETURNS text LANGUAGE sql SET work_mem = '1MB' AS $$ SELECT current_user::text $$;
CREATE TYPE mallory.ticket AS (id int);
SELECT aq.create_queue('e_tickets', 'mallory.ticket', multiple_consumers => true);
RESET ROLE;
SELECT aq.subscribe('e_tickets', 's', $$corrid LIKE 'n%'$$);
SET ROLE regress_aq_mallory;
ALTER TYPE mallory.ticket ADD ATTRIBUTE corrid mallory.state;
CREATE CAST (mallory.state AS text) WITH FUNCTION mallory.as_text AS IMPLICIT;
SELECT aq.alter_queue('e_tickets', comment => 'read again');
SELECT aq.enqueue('e_tickets', '(1,new)'), t.rule_errors('e_tickets');
DROP CAST (mallory.state AS text);
CREATE CAST (mallory.state AS text) WITH FUNCTION mallory.inlined AS IMPLICIT;
SELECT aq.alter_queue('e_tickets', comment => 'and again');
SELECT aq.enqueue('e_tickets', '(1,new)'), t.rule_errors('e_tickets');
SELECT current_setting('mallory.was', true);
DROP CAST (mallory.state AS text);
CREATE CAST (mallory.state AS text) WITH FUNCTION mallory.with_setting AS IMPLICIT;
SELECT aq.alter_queue('e_tickets', comment => 'and once more');
SELECT aq.enqueue('e_tickets', '(1,new)'), t.rule_errors('e_tickets');
RESET ROLE;
-- a cast to json, which aq.receive would call in the consumer's session
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.as_json(mallory.state) RETURNS json LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.trap(); RETURN to_json(current_user); END $$;
CREATE CAST (mallory.state AS json) WITH FUNCTION mallory.as_json;
SELECT aq.create_queue('e_json', 'mallory.ticket'), aq.enqueue('e_json', '(1,new)') IS NOT NULL;
RESET ROLE;
CALL aq.receive('e_json') \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
CREATE TYPE t.with_state AS (state mallory.state);
SELECT aq.create_queue('e_json_own', 't.with_state'), aq.enqueue('e_json_own', '(new)') IS NOT NULL;
SELECT t.error($$CALL aq.receive('e_json_own')$$);
SELECT aq.drop_queue(q, true) FROM unnest(ARRAY['e_json', 'e_json_own']) q;
DROP TYPE t.with_state;
DROP CAST (mallory.state AS json);
-- and the constraint of a domain within a superuser's type
SET ROLE regress_aq_mallory;
CREATE DOMAIN mallory.d AS text CHECK (mallory.trap());
RESET ROLE;
CREATE TYPE t.with_domain AS (d mallory.d);
CREATE TABLE t.secret AS SELECT 1;
CREATE FUNCTION t.who() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
CREATE DOMAIN t.d AS text CHECK (t.who());
CREATE TYPE t.checked AS (d t.d);
GRANT USAGE ON TYPE t.checked TO regress_aq_victim;
SELECT aq.create_queue('e_domain', 't.with_domain');
SELECT aq.grant_queue('e_domain', 'regress_aq_mallory');
SET ROLE regress_aq_mallory;
SELECT aq.enqueue('e_domain', '(x)');
-- also one that needs no function of its writer's
CREATE DOMAIN mallory.reads AS text CHECK (query_to_xml('SELECT 1 / 0 FROM t.secret', true, true, '') IS NOT NULL);
RESET ROLE;
CREATE TYPE t.that_reads AS (d mallory.reads[]);
SELECT aq.create_queue('e_reads', 't.that_reads'), aq.create_queue('e_reads_topic', multiple_consumers => true), aq.grant_queue('e_reads', 'regress_aq_mallory');
SET ROLE regress_aq_mallory;
SELECT t.error($$SELECT aq.enqueue('e_reads', '({x})')$$);
-- a domain below a multirange
CREATE TYPE mallory.reads_range AS RANGE (subtype = mallory.reads, multirange_type_name = mallory.reads_ranges);
RESET ROLE;
CREATE TYPE t.that_reads_ranges AS (d mallory.reads_ranges);
SELECT aq.create_queue('e_ranges', 't.that_reads_ranges'), aq.grant_queue('e_ranges', 'regress_aq_mallory');
SET ROLE regress_aq_mallory;
SELECT t.error($$SELECT aq.enqueue('e_ranges', '("{[a,b]}")')$$);
RESET ROLE;
SELECT split_part(t.error(format($$SELECT aq.subscribe('e_reads_topic', 's', %L)$$, rule)), ' | ', 2) FROM unnest(ARRAY['correlation::mallory.reads IS NOT NULL',
	'ROW(ARRAY[correlation])::t.that_reads IS NOT NULL', '(ARRAY[correlation]::mallory.reads[])[1] IS NOT NULL', '(''('' || correlation)::t.that_reads IS NOT NULL']) rule;
SET ROLE regress_aq_mallory;
-- a queue that a superuser has taken over with another role's type
CREATE TYPE mallory.trapped AS (d mallory.d);
SELECT aq.create_queue('e_taken', 'mallory.trapped');
RESET ROLE;
SELECT aq.alter_queue('e_taken', new_owner => quote_ident(current_user)::regrole);
SET ROLE regress_aq_mallory;
SELECT aq.enqueue('e_taken', '(x)') IS NOT NULL;
RESET ROLE;

-- code that is ready to run is made anew when what it calls has changed: a function that comes into other hands
CREATE FUNCTION mallory.given(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
CREATE FUNCTION mallory.lent_out(text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN true; END $$;
CREATE FUNCTION mallory.inline(text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
ALTER FUNCTION mallory.given OWNER TO regress_aq_victim;
ALTER FUNCTION mallory.lent_out OWNER TO regress_aq_victim;
ALTER FUNCTION mallory.inline OWNER TO regress_aq_victim;
CREATE ROLE regress_aq_member IN ROLE regress_aq_victim;
CREATE FUNCTION mallory.members(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
ALTER FUNCTION mallory.members OWNER TO regress_aq_member;
SET ROLE regress_aq_victim;
CREATE DOMAIN victim.word AS text;
CREATE DOMAIN victim.given AS text CHECK (mallory.given(VALUE));
CREATE DOMAIN victim.inline AS text CHECK (mallory.inline(VALUE));
CREATE TYPE victim.with_given AS (a victim.given);
CREATE TYPE victim.with_inline AS (a victim.inline);
SELECT aq.create_queue('e_with_given', 'victim.with_given'), aq.create_queue('e_with_inline', 'victim.with_inline');
SELECT aq.create_queue('e_' || rule, multiple_consumers => true), aq.subscribe('e_' || rule, 's', format('mallory.%s(correlation)', rule))
	FROM unnest(ARRAY['given', 'lent_out', 'inline', 'members']) rule;
SELECT aq.create_queue('e_word', multiple_consumers => true), aq.subscribe('e_word', 's', 'correlation::victim.word IS NOT NULL');
SELECT aq.grant_queue(q, 'regress_aq_mallory') FROM unnest(ARRAY['e_with_given', 'e_with_inline', 'e_given', 'e_lent_out', 'e_inline', 'e_members', 'e_word']) q;
SET ROLE regress_aq_mallory;
SELECT t.error(format($$SELECT aq.enqueue('e_%s', '1', correlation => 'bad')$$, rule)) FROM unnest(ARRAY['given', 'lent_out', 'inline', 'members', 'word']) rule;
SELECT t.error(format($$SELECT aq.enqueue('e_with_%s', '(x)')$$, rule)) FROM unnest(ARRAY['given', 'inline']) rule;
RESET ROLE;
ALTER FUNCTION mallory.given OWNER TO regress_aq_mallory;
ALTER FUNCTION mallory.lent_out OWNER TO regress_aq_mallory;
ALTER FUNCTION mallory.inline OWNER TO regress_aq_mallory;
REVOKE regress_aq_victim FROM regress_aq_member;
SET ROLE regress_aq_mallory;
CREATE OR REPLACE FUNCTION mallory.given(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
CREATE OR REPLACE FUNCTION mallory.lent_out(text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
CREATE OR REPLACE FUNCTION mallory.inline(text) RETURNS boolean LANGUAGE sql AS $$ SELECT mallory.trap() $$;
SELECT rule, aq.enqueue('e_' || rule, '2', correlation => 'bad') IS NULL, t.rule_errors('e_' || rule) FROM unnest(ARRAY['given', 'lent_out', 'inline', 'members']) rule;
SELECT split_part(t.error(format($$SELECT aq.enqueue('e_with_%s', '(x)')$$, rule)), ' | ', 2) FROM unnest(ARRAY['given', 'inline']) rule;
-- also what the session itself has used before
SELECT 'x'::victim.inline;
SELECT split_part(t.error($$SELECT aq.enqueue('e_with_inline', '(x)')$$), ' | ', 2);
-- a domain that gets a constraint
RESET ROLE;
ALTER DOMAIN victim.word ADD CHECK (VALUE <> 'bad');
SET ROLE regress_aq_mallory;
SELECT aq.enqueue('e_word', '2', correlation => 'bad') IS NULL, t.rule_errors('e_word');
-- a composite type that gets another column
CREATE TYPE mallory.shape AS (a text);
RESET ROLE;
SELECT aq.create_queue('e_shape', multiple_consumers => true), aq.subscribe('e_shape', 's', $$('(' || correlation || ')')::mallory.shape IS NOT NULL$$);
SELECT aq.grant_queue('e_shape', 'regress_aq_mallory');
SET ROLE regress_aq_mallory;
SELECT aq.enqueue('e_shape', '1', correlation => 'x') IS NOT NULL;
ALTER TYPE mallory.shape ADD ATTRIBUTE b mallory.reads;
SELECT aq.enqueue('e_shape', '2', correlation => 'x,x') IS NULL, t.rule_errors('e_shape');
-- a writer that goes
RESET ROLE;
CREATE ROLE regress_aq_gone IN ROLE aq_administrator_role;
SET ROLE regress_aq_gone;
SELECT aq.subscribe('e_shape', 'gone', $$current_user || priority = 'aq_user_role1'$$);
RESET ROLE;
SELECT aq.unsubscribe('e_shape', 's');
SELECT aq.enqueue('e_shape', '3') IS NULL, t.rule_errors('e_shape');
DROP ROLE regress_aq_gone;
SELECT aq.enqueue('e_shape', '4') IS NOT NULL;

-- settings are not the enqueuer's, nor the consumer's
CREATE FUNCTION t.settings() RETURNS text LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	SELECT string_agg(name || '=' || current_setting(name), ' ') FROM unnest(ARRAY['DateStyle', 'IntervalStyle', 'TimeZone', 'timezone_abbreviations',
		'array_nulls', 'xmloption', 'lc_monetary', 'lc_numeric', 'lc_time', 'default_text_search_config', 'extra_float_digits', 'bytea_output', 'xmlbinary',
		'standard_conforming_strings', 'backslash_quote', 'transform_null_equals', 'quote_all_identifiers', 'gin_fuzzy_search_limit', 'row_security']) name $$;
SET ROLE regress_aq_victim;
CREATE FUNCTION victim.show(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', t.settings(); RETURN true; END $$;
CREATE FUNCTION victim.transform(jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RAISE NOTICE '%', t.settings(); RETURN $1; END $$;
CREATE DOMAIN victim.shown AS text CHECK (victim.show(VALUE));
CREATE TYPE victim.dated AS (a victim.shown, at timestamptz);
SELECT aq.create_queue('e_dated', 'victim.dated'), aq.create_queue('e_settings', multiple_consumers => true);
SELECT aq.subscribe('e_settings', 's', 'victim.show(correlation)'), aq.subscribe('e_settings', 'february', $$(properties ->> 'on')::date = '02/01/2026'$$);
CALL dbms_aqadm.add_subscriber('e_settings', sys.aq$_agent('T', NULL, NULL), rule => 'false', transformation => 'victim.transform');
SELECT aq.grant_queue(q, 'regress_aq_mallory') FROM unnest(ARRAY['e_dated', 'e_settings']) q;
SET ROLE regress_aq_mallory;
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = iso_8601;
SET TimeZone = 'Europe/Berlin';
SET timezone_abbreviations = 'India';
SET array_nulls = off;
SET xmloption = document;
SET lc_monetary = 'POSIX';
SET lc_numeric = 'POSIX';
SET lc_time = 'POSIX';
SET default_text_search_config = 'pg_catalog.german';
SET extra_float_digits = -5;
SET bytea_output = escape;
SET xmlbinary = hex;
-- in PostgreSQL 19 the one is gone, and the other always on
SELECT set_config(name, 'off', false) FROM unnest(ARRAY['escape_string_warning', 'standard_conforming_strings']) name WHERE current_setting('escape_string_warning', true) IS NOT NULL \g /dev/null
SELECT 'standard_conforming_strings=' || current_setting('standard_conforming_strings') AS strings \gset
SET backslash_quote = on;
SET transform_null_equals = on;
SET quote_all_identifiers = on;
SET gin_fuzzy_search_limit = 5;
SET row_security = off;
SELECT aq.enqueue('e_settings', '1', properties => '{"on": "01/02/2026"}') IS NOT NULL;
SELECT aq.enqueue('e_settings', '2', properties => '{"on": "02/01/2026"}') IS NOT NULL;
SELECT aq.enqueue('e_settings', '3', recipients => ARRAY['t']) IS NOT NULL;
-- but a payload's text is the session's
SELECT aq.enqueue('e_dated', '(x,01/02/2026 10:00)') IS NOT NULL;
CALL dbms_aq.dequeue('e_settings', dbms_aq.dequeue_options_t(consumer_name => 'T', wait => 0), NULL, NULL::jsonb, NULL) \g /dev/null
SELECT replace(t.settings(), :'strings', 'standard_conforming_strings as set');
RESET ALL;
SELECT payload FROM aq.dequeue('e_settings', 'february', max_messages => 10);
SET TimeZone = 'UTC';
SELECT (payload).at FROM aq.dequeue('e_dated', NULL::victim.dated);
RESET TimeZone;
RESET ROLE;

-- a parallel worker, which checks nothing, does not run it, whatever the enqueuer has set
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.trap_in_view() RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN true; END $$;
CREATE VIEW mallory.viewed AS SELECT 1 WHERE mallory.trap_in_view();
GRANT SELECT ON mallory.viewed TO PUBLIC;
SET ROLE regress_aq_victim;
CREATE TABLE victim.numbers AS SELECT n FROM generate_series(1, 10) n;
CREATE FUNCTION victim.looks(int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RETURN EXISTS (SELECT FROM mallory.viewed); END $$;
CREATE FUNCTION victim.counts() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM victim.numbers WHERE victim.looks(n); RETURN true; END $$;
SELECT aq.create_queue('e_parallel', multiple_consumers => true), aq.subscribe('e_parallel', 's', 'victim.counts()');
SELECT aq.grant_queue('e_parallel', 'regress_aq_mallory');
SET ROLE regress_aq_mallory;
SET parallel_leader_participation = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT aq.enqueue('e_parallel', '1') IS NULL, t.rule_errors('e_parallel');
SHOW max_parallel_workers;
RESET ALL;

-- what others may run as a role by choice: its own functions, a superuser's, SECURITY DEFINER
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.lent() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN mallory.trap(); END $$;
SET ROLE regress_aq_victim;
SELECT aq.create_queue('e_trust', multiple_consumers => true);
-- a superuser's type lends nothing of the superuser's
SELECT aq.create_queue('e_lent', 't.checked') IS NOT NULL, aq.enqueue('e_lent', '(x)') IS NOT NULL;
SELECT t.error($$SELECT aq.subscribe('e_trust', 's', 'mallory.trap()')$$);
SELECT aq.subscribe('e_trust', 's', 'mallory.lent()');
RESET ROLE;
SELECT t.put('e_trust', 1);
-- a condition has the rights of the consumer, a purge's those of the manager
GRANT aq_dequeue_any TO regress_aq_victim;
SELECT aq.enqueue('e_taken', '(x)') IS NOT NULL;
SET ROLE regress_aq_victim;
SELECT t.error($$SELECT * FROM aq.dequeue('e_trust', 's', condition => 'query_to_xml(''SELECT * FROM t.secret'', true, true, '''') IS NOT NULL')$$);
SET ROLE regress_aq_mallory;
SELECT t.error($$SELECT aq.purge_queue('e_trust', 's', condition => 'query_to_xml(''SELECT * FROM t.secret'', true, true, '''') IS NOT NULL')$$);
RESET ROLE;

-- the extension's own commands: operators, a method of access and a tablespace of the caller's choice
SET ROLE regress_aq_mallory;
CREATE FUNCTION mallory.eq(int2, int2) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN $1 OPERATOR(pg_catalog.=) $2; END $$;
CREATE FUNCTION mallory.eq(int4, int4) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'run by %', current_user; RETURN $1 OPERATOR(pg_catalog.=) $2; END $$;
CREATE OPERATOR mallory.= (FUNCTION = mallory.eq, LEFTARG = int2, RIGHTARG = int2);
CREATE OPERATOR mallory.= (FUNCTION = mallory.eq, LEFTARG = int4, RIGHTARG = int4);
SELECT aq.create_queue('e_commands', multiple_consumers => true), aq.subscribe('e_commands', 's');
SET search_path = mallory, pg_catalog;
SELECT 1 = 1;
SELECT aq.alter_subscriber('e_commands', 's', 'true'), aq.alter_queue('e_commands', comment => 'changed'), aq.unsubscribe('e_commands', 's');
RESET search_path;
RESET ROLE;
CREATE ACCESS METHOD regress_aq_heap TYPE TABLE HANDLER heap_tableam_handler;
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE regress_aq_space LOCATION '';
SET ROLE regress_aq_mallory;
SET default_table_access_method = regress_aq_heap;
SET default_tablespace = regress_aq_space;
BEGIN;
SELECT aq.create_queue('e_stored'), aq.enqueue('e_stored', '1') IS NOT NULL, aq.create_queue_table('mallory.e_stored');
COMMIT;
RESET default_table_access_method;
RESET ROLE;
SELECT count(*), array_agg(DISTINCT amname), array_agg(DISTINCT reltablespace) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' AND relname ~ (SELECT format('^[ql]%s_|^t%s$', queue_id, t.queue_table_id)
		FROM aq_internal.queue, aq_internal.queue_table t WHERE queue_name = 'e_stored' AND table_name = 'e_stored');
-- a role that may create there does
GRANT CREATE ON TABLESPACE regress_aq_space TO regress_aq_mallory;
SET ROLE regress_aq_mallory;
SELECT aq.create_queue_table('mallory.e_placed');
RESET default_tablespace;
RESET ROLE;
SELECT spcname FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace
	WHERE c.oid = (SELECT format('aq_data.t%s', queue_table_id)::regclass FROM aq_internal.queue_table WHERE table_name = 'e_placed');
-- no function of the extension lends its owner's rights with the search_path of its caller
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname LIKE 'pgaq%' AND p.prosecdef AND NOT coalesce(p.proconfig::text ~ 'search_path=.*pg_temp"', false);

-- aq.messages shows payloads by their type's output function: a role's cast to text does not run as the extension's owner
SET ROLE regress_aq_mallory;
CREATE TYPE mallory.cast_to_text AS (x integer, y text);
CREATE FUNCTION mallory.to_text(mallory.cast_to_text) RETURNS text LANGUAGE sql RETURN 'cast as ' || current_user;
CREATE CAST (mallory.cast_to_text AS text) WITH FUNCTION mallory.to_text(mallory.cast_to_text) AS ASSIGNMENT;
SELECT aq.create_queue('e_cast', 'mallory.cast_to_text'), aq.create_queue_table('mallory.e_cast', 'mallory.cast_to_text'),
	aq.create_queue('e_cast_table', queue_table => 'mallory.e_cast');
SELECT count(aq.enqueue(queue_name, payload, delivery_mode => mode)) FROM unnest(ARRAY['e_cast', 'e_cast_table']) queue_name,
	unnest(ARRAY['persistent', 'buffered']) mode, unnest(ARRAY['(1,"a b")', '(,)', NULL]) payload;
SELECT queue_name, delivery_mode, payload FROM aq.messages WHERE queue_name LIKE 'e_cast%' ORDER BY 1, 2, payload COLLATE "C";
RESET ROLE;

SET client_min_messages = error;
SELECT aq.drop_queue_table('mallory.' || name, true) FROM unnest(ARRAY['e_stored', 'e_placed', 'e_cast']) name;
DROP TABLESPACE regress_aq_space;
DROP ACCESS METHOD regress_aq_heap;
SELECT count(aq.drop_queue(queue_name, true)) FROM aq.queues WHERE queue_type = 'normal' AND queue_name ~ '^e_';
REVOKE aq_administrator_role FROM regress_aq_mallory;
REVOKE aq_dequeue_any FROM regress_aq_victim;
REVOKE EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table FROM regress_aq_mallory, regress_aq_victim;
DROP TYPE t.with_domain, t.that_reads, t.that_reads_ranges, t.checked;
DROP DOMAIN t.d;
DROP FUNCTION t.who, t.settings;
DROP TABLE t.secret;
DROP SCHEMA mallory, victim CASCADE;
DROP ROLE regress_aq_mallory, regress_aq_victim, regress_aq_member;
