-- What holds for all tables of pgaq, also for those that are made for a queue.
\set VERBOSITY terse
SELECT aq.create_queue('tables', multiple_consumers => true, shards => 1);
SELECT aq.subscribe('tables', 'a', delivery_mode => 'persistent_or_buffered');
SELECT count(aq.enqueue('tables', '1', delivery_mode => d)) FROM unnest(ARRAY['persistent', 'buffered']) d;
SELECT aq.create_queue_table('public.tables', 'aq.jms_message', multiple_consumers => true);

-- all kinds are there: messages, logs, buffered messages and their states, queue tables, their states and bodies
SELECT string_agg(DISTINCT kind, ' ' ORDER BY kind) AS kinds FROM pg_class, substr(relname, 1, 1) kind
WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' AND relname <> 'log_template';

-- no index depends on the collation of the database, which can change with the C library or ICU
SELECT i.indexrelid::regclass AS depends_on_provider
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid, unnest(i.indcollation) o
WHERE c.relnamespace IN ('aq'::regnamespace, 'aq_internal'::regnamespace, 'aq_data'::regnamespace) AND c.relkind <> 't'
	AND o NOT IN (0, '"C"'::regcollation)
ORDER BY 1;

-- Without a replica identity, a publication of all tables refuses UPDATE and DELETE. Messages and their states are not
-- changed by such statements, nor are the partitioned tables of the history; setup.sql has made a publication that would refuse them in all tests.
SELECT DISTINCT coalesce(substring(c.oid::regclass::text FROM 'aq_data\.[qltcbd](?=[0-9])'), c.oid::regclass::text) AS without_identity
FROM pg_class c
WHERE c.relnamespace IN ('aq'::regnamespace, 'aq_internal'::regnamespace, 'aq_data'::regnamespace) AND c.relkind = 'r' AND NOT c.relispartition
	AND c.relreplident <> 'f' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
ORDER BY 1;

SELECT aq.drop_queue('tables', force => true);
SELECT aq.drop_queue_table('public.tables', force => true);
