-- Deprecated names have the arguments, results and privileges of the functions that replace them, except for arguments that are newer.
\pset format unaligned
\pset tuples_only on
CREATE TEMPORARY TABLE deprecated AS
SELECT p.oid, substring(obj_description(p.oid, 'pg_proc') FROM '^Deprecated since 0\.2\.0, removed in 0\.3\.0: use (.*)\.$') AS instead
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname = 'pgaq' AND obj_description(p.oid, 'pg_proc') LIKE 'Deprecated%';
SELECT oid::regprocedure, instead FROM deprecated ORDER BY oid::regprocedure::text COLLATE "C";
CREATE FUNCTION pg_temp.described(oid) RETURNS jsonb LANGUAGE sql AS $$
	SELECT to_jsonb(p) - '{oid,proname,pronamespace,proargdefaults,prosqlbody}'::text[] || jsonb_build_object('arguments', pg_get_function_arguments(p.oid), 'result', pg_get_function_result(p.oid))
	FROM pg_proc p WHERE p.oid = $1
$$;
SELECT d.oid::regprocedure FROM deprecated d
WHERE NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace::regnamespace || '.' || p.proname = d.instead AND pg_temp.described(p.oid) = pg_temp.described(d.oid));

SELECT aq.jms_get_property(aq.jms_set_property(aq.jms_text('a'), 'price', 9.5), 'price'), aq.jms_text('a') = aq_jms.text('a');
SELECT has_function_privilege('public', 'aq.node_add(name)', 'EXECUTE');
SELECT * FROM aq.jms_items(aq.jms_set_item(aq.jms_construct('map'), 'count', aq.jms_item(5)));

-- rules of 0.1.0 have these names
SELECT aq.create_queue('prices', 'aq.jms_message', multiple_consumers => true);
SELECT aq.subscribe('prices', 'ann', $$aq.jms_compare(aq.jms_number(payload.properties, payload.property_types, 'price'), '>', aq.jms_number(5))$$);
SELECT aq.enqueue('prices', aq_jms.set_property(aq_jms.text(price::text), 'price', price)) IS NOT NULL FROM unnest(ARRAY[4, 6]) price;
SELECT (payload).text FROM aq.dequeue('prices', NULL::aq.jms_message, 'ann', max_messages => 10);
SELECT aq.drop_queue('prices', force => true);
