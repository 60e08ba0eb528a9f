-- aq.create_queue: names, types, options, and what it refuses.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('c_plain');
SELECT aq.create_queue('c_all', payload_type => 'text', multiple_consumers => true, shards => 3, max_retries => 5,
	retry_delay => '10 s', retention => '1 day', exception_queue => 'c_plain2', comment => 'everything set');  -- no such exception queue
SELECT aq.create_queue('c_all', payload_type => 'jsonb', multiple_consumers => true, shards => 3, max_retries => 5,
	retry_delay => '10 s', retention => '1 day', exception_queue => 'c_plain', comment => 'everything set');
SELECT queue_name, payload_type, multiple_consumers, shards, max_retries, retry_delay, retention, enqueue_enabled, dequeue_enabled, comment
FROM aq_internal.queue WHERE queue_name LIKE 'c\_%' ORDER BY queue_name;

-- the objects of the server that a queue consists of, which a dump or a drop locks
SELECT c.relkind, count(*) FROM pg_class c JOIN aq.queues q ON c.relname ~ ('^[a-z]' || q.queue_id || '(_|$)')
WHERE c.relnamespace = 'aq_data'::regnamespace AND q.queue_name LIKE 'c\_plain%' GROUP BY 1;

-- payload types
SELECT aq.create_queue('c_text', 'text');
SELECT aq.create_queue('c_bytea', 'bytea');
SELECT aq.create_queue('c_xml', 'xml');
CREATE TYPE t.pair AS (a integer, b text);
SELECT aq.create_queue('c_pair', 't.pair');
CREATE TABLE t.person (id integer, name text);
SELECT aq.create_queue('c_table_row', 't.person');
SELECT t.error($$SELECT aq.create_queue('c_bad', 'integer')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', 'json')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', 'text[]')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', 'record')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', 'anyelement')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', 'no_such_type')$$);
SELECT split_part(t.error($$SELECT aq.create_queue('c_bad', 0::oid::regtype)$$), ' | ', 1);
SELECT split_part(t.error($$SELECT aq.create_queue('c_bad', 4294967295::oid::regtype)$$), ' | ', 1);

-- names
SELECT aq.create_queue('c_Größe, "quoted" and spaced');
SELECT aq.enqueue('c_Größe, "quoted" and spaced', '1') IS NOT NULL;
SELECT payload FROM aq.dequeue('c_Größe, "quoted" and spaced');
SELECT aq.create_queue('C_PLAIN');		-- another queue: names are compared as they are
SELECT t.error($$SELECT aq.create_queue('c_plain')$$);
SELECT t.error($$SELECT aq.create_queue('')$$);
SELECT t.error($$SELECT aq.create_queue(NULL)$$);
SELECT t.error(format('SELECT aq.create_queue(%L)', 'c_' || repeat('x', 200)));
SELECT length(n), split_part(t.error(format('SELECT aq.create_queue(%L)', n)), ' | ', 1)
FROM unnest(ARRAY['c_' || repeat('x', 61), 'c_' || repeat('y', 125), 'c_' || repeat('z', 126)]) AS n;

-- options out of range
SELECT t.error($$SELECT aq.create_queue('c_bad', shards => 0)$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', shards => 33)$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', max_retries => -2)$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', max_retries => 256)$$);
SELECT t.error($$SELECT aq.alter_queue('c_plain', max_retries => 256)$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', retry_delay => '-1 s')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', retention => '-1 s')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', retry_delay => '400000 years')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', retention => '100000 years')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', payload_type => NULL)$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', multiple_consumers => NULL)$$);
SELECT t.error($$SELECT aq.create_queue_table('t.c_bad', multiple_consumers => NULL)$$);

-- exception queues
SELECT t.error($$SELECT aq.create_queue('c_bad', exception_queue => 'no such queue')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', exception_queue => 'c_bad')$$);
SELECT t.error($$SELECT aq.create_queue('c_bad', exception_queue => 'c_text')$$);		-- another payload type
SELECT t.error($$SELECT aq.create_queue('c_bad', exception_queue => 'c_all')$$);		-- multi-consumer

-- unless what exists is no error; it stays what it is
SELECT aq.create_queue('c_text', 'jsonb', if_not_exists => true);
SELECT payload_type, count(*) FROM aq_internal.queue WHERE queue_name = 'c_text' GROUP BY 1;
SELECT aq.create_queue('c_maybe', multiple_consumers => true, if_not_exists => true);
SELECT aq.subscribe('c_maybe', 'x', 'priority = 1', if_not_exists => true);
SELECT aq.subscribe('c_maybe', 'x', 'priority = 2', if_not_exists => true);
SELECT consumer, rule FROM aq.subscribers WHERE queue_name = 'c_maybe';
SELECT aq.create_queue_table('t.c_table', 'text', if_not_exists => true);
SELECT aq.create_queue_table('t.c_table', if_not_exists => true);
SELECT payload_type FROM aq.queue_tables WHERE queue_table = 't.c_table';
SELECT aq.drop_queue_table('t.c_table');
SELECT t.error($$SELECT aq.create_queue('c_maybe', if_not_exists => NULL)$$);

-- nothing of the refused ones is left
SELECT count(*) FROM aq_internal.queue WHERE queue_name = 'c_bad';

-- a queue's payload type cannot be pulled away from under it
SELECT split_part(t.error('DROP TYPE t.pair'), ' | ', 1);
SET client_min_messages = warning;
SELECT t.error('DROP TYPE t.pair CASCADE');
SELECT t.error('DROP TABLE t.person CASCADE');
SELECT split_part(t.error('DROP SCHEMA t CASCADE'), ' | ', 1);
SELECT split_part(t.error($$DO 'BEGIN EXECUTE ''DROP TYPE t.pair CASCADE''; END'$$), ' | ', 1);
CREATE ROLE regress_aq_leaver;
GRANT EXECUTE ON FUNCTION aq.create_queue TO regress_aq_leaver;
SET ROLE regress_aq_leaver;
SELECT aq.create_queue('c_left');
RESET ROLE;
SELECT t.error('DROP OWNED BY regress_aq_leaver');
REASSIGN OWNED BY regress_aq_leaver TO CURRENT_USER;
DROP OWNED BY regress_aq_leaver;
DROP ROLE regress_aq_leaver;
RESET client_min_messages;
SELECT aq.enqueue('c_pair', ROW(1, 'still there')::t.pair) IS NOT NULL;
SELECT payload FROM aq.dequeue('c_pair', NULL::t.pair);

-- dropping what was made
SELECT aq.drop_queue(queue_name) FROM aq_internal.queue WHERE queue_name = 'c_all';
SELECT aq.drop_queue(queue_name) FROM aq_internal.queue WHERE queue_name ILIKE 'c\_%' AND queue_type = 'normal';
SELECT count(*) FROM aq_internal.queue;
DROP TYPE t.pair;
DROP TABLE t.person;

-- a function of an event trigger that does not say where its table is: the hint says why it is not found
CREATE TABLE public.ddl_log (what text);
CREATE FUNCTION t.note_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ddl_log VALUES (tg_tag); END $$;
SELECT aq.create_queue('noted');
CREATE EVENT TRIGGER note_ddl ON ddl_command_end EXECUTE FUNCTION t.note_ddl();
SELECT t.error($$ SELECT aq.drop_queue('noted') $$);
ALTER FUNCTION t.note_ddl() SET search_path = public;
SELECT t.error($$ SELECT aq.drop_queue('noted') $$);
GRANT INSERT ON public.ddl_log TO pgaq;
SELECT aq.drop_queue('noted');
DROP EVENT TRIGGER note_ddl;
SELECT count(*) > 0 AS noted FROM public.ddl_log;
DROP FUNCTION t.note_ddl();
DROP TABLE public.ddl_log;
