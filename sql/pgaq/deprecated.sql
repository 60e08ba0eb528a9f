-- Names of the previous version. Each is a function with the arguments, the body and the privileges of the one that replaces it, and is dropped in the next
-- version.
DO $$
DECLARE
	function record;
	definition text;
	signature text;
BEGIN
	FOR function IN
		SELECT p.oid, p.proname AS name, 'aq' AS schema, 'jms_' || p.proname AS old FROM pg_proc p WHERE p.pronamespace = 'aq_jms'::regnamespace
		ORDER BY 1 LOOP
		-- in its body, arguments can be qualified with the function's name
		definition := regexp_replace(pg_get_functiondef(function.oid), '\m' || function.name || '\.', function.old || '.', 'g');
		EXECUTE regexp_replace(definition, '^CREATE OR REPLACE (\w+) [^(]*\(', format('CREATE \1 aq.%s(', function.old));
		signature := format('ROUTINE aq.%s(%s)', function.old, pg_get_function_identity_arguments(function.oid));
		EXECUTE format('COMMENT ON %s IS ''Deprecated since 0.2.0, removed in 0.3.0: use %s.''', signature, function.oid::regproc);
		IF NOT has_function_privilege('public', function.oid, 'EXECUTE') THEN
			EXECUTE format('REVOKE EXECUTE ON %s FROM PUBLIC', signature);
		END IF;
	END LOOP;
END $$;
