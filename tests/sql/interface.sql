-- What the extension consists of, and the promises that hold for all of it.

\pset format unaligned
-- the functions and procedures a user may call
SELECT n.nspname || '.' || p.proname || '(' || pg_get_function_arguments(p.oid) || ')' AS routine
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'pgaq'
WHERE n.nspname IN ('aq', 'aq_jms') AND has_function_privilege('public', p.oid, 'EXECUTE') AND obj_description(p.oid, 'pg_proc') NOT LIKE 'Deprecated%'
ORDER BY n.nspname || '.' || p.proname || '(' || pg_get_function_arguments(p.oid) || ')' COLLATE "C";

-- the views
SELECT c.oid::regclass AS view
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('aq', 'sys') AND c.relkind = 'v'
ORDER BY c.oid::regclass::text COLLATE "C";

-- everything has its comment: schemas, relations, columns, routines, types
SELECT 'schema ' || n.nspname AS without_comment
FROM pg_namespace n
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'aq_data', 'sys', 'dbms_aq', 'dbms_aqadm', 'dbms_transform', 'dbms_aqmigtool', 'dbms_aqelm', 'dbms_aqjms', 'dbms_jms_plsql', 'dbms_shared_pool',
	'dbms_application_info', 'dbms_workload_repository') AND obj_description(n.oid, 'pg_namespace') IS NULL
UNION ALL
SELECT 'relation ' || c.oid::regclass
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys') AND c.relkind IN ('r', 'p', 'v', 'S', 'm')
	AND obj_description(c.oid, 'pg_class') IS NULL
UNION ALL
SELECT 'column ' || c.oid::regclass || '.' || a.attname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys', 'dbms_aq', 'dbms_aqadm') AND c.relname NOT LIKE '\_%' AND NOT c.relispartition AND (c.relkind IN ('r', 'p', 'v', 'm') OR c.relkind = 'c' AND n.nspname <> 'aq_internal')
	AND col_description(c.oid, a.attnum) IS NULL
UNION ALL
SELECT 'routine ' || p.oid::regprocedure
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys', 'dbms_aq', 'dbms_aqadm', 'dbms_transform', 'dbms_aqmigtool', 'dbms_aqelm', 'dbms_aqjms', 'dbms_jms_plsql', 'dbms_shared_pool',
	'dbms_application_info', 'dbms_workload_repository') AND obj_description(p.oid, 'pg_proc') IS NULL
UNION ALL
SELECT 'type ' || y.oid::regtype
FROM pg_type y JOIN pg_namespace n ON n.oid = y.typnamespace
LEFT JOIN pg_class c ON c.oid = y.typrelid
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys', 'dbms_aq', 'dbms_aqadm') AND y.typelem = 0 AND coalesce(c.relkind, 'c') = 'c'
	AND obj_description(y.oid, 'pg_type') IS NULL
ORDER BY 1;

-- no function may run in a parallel worker, except the arithmetic of selectors; none is STRICT by accident, none is SECURITY DEFINER
SELECT p.oid::regprocedure AS not_parallel_unsafe
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys') AND p.proparallel <> 'u' AND obj_description(p.oid, 'pg_proc') NOT LIKE 'Deprecated%'
ORDER BY 1;
SELECT p.oid::regprocedure AS security_definer
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal', 'sys') AND p.prosecdef AND p.proconfig IS NULL
ORDER BY 1;
SELECT p.oid::regprocedure AS not_volatile
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'aq' AND p.proname IN ('enqueue', 'enqueue_array', 'dequeue', 'dequeue_full', 'browse', 'purge_queue')
	AND p.provolatile <> 'v'
ORDER BY 1;

-- a query plan with our functions in it never goes parallel
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT aq.enqueue('nothing', relname::text) FROM pg_class;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;

-- the catalog and the message schema are not open to everybody
SELECT n.nspname, c.relname, has_table_privilege('public', c.oid, 'SELECT') AS read,
	has_table_privilege('public', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS write
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('aq', 'aq_jms', 'aq_internal') AND c.relkind IN ('r', 'p', 'S')
ORDER BY 1, 2;
SELECT has_schema_privilege('public', 'aq', 'USAGE') AS aq_usage,
	has_schema_privilege('public', 'aq', 'CREATE') AS aq_create,
	has_schema_privilege('public', 'aq_data', 'USAGE') AS aq_data_usage,
	has_schema_privilege('public', 'aq_data', 'CREATE') AS aq_data_create,
	has_schema_privilege('public', 'sys', 'CREATE') AS sys_create;

-- the parameters: all described, all in our group of names
SELECT name, vartype, unit, context, short_desc <> '' AS described
FROM pg_settings WHERE name LIKE 'pgaq.%' ORDER BY name COLLATE "C";
