-- Names of the previous version. Each is a function with the arguments of that version, the body and the privileges of the one that replaces it, and is dropped in the next
-- version. Rules of subscribers (aq_internal.subscriber) can call those of aq_jms by these names: the script that drops them must change the rules.
DO $$
DECLARE
	function record;
	definition text;
	signature text;
BEGIN
	FOR function IN
		SELECT p.oid, p.proname AS name, coalesce(n.old, 'jms_' || p.proname) AS old
		FROM pg_proc p LEFT JOIN (VALUES ('create_propagation', 'propagate'), ('drop_propagation', 'end_propagation'), ('start_schedule', 'resume_schedule'),
			('stop_schedule', 'pause_schedule'), ('add_node', 'node_add'), ('remove_node', 'node_remove'), ('reset_node', 'node_reset'),
			('reclaim_unit', 'break_lease')) n (name, old) ON n.name = p.proname
		WHERE p.pronamespace = 'aq_jms'::regnamespace AND p.proname NOT IN ('enqueue', 'claim', 'unclaim') OR p.pronamespace = 'aq'::regnamespace AND n.old IS NOT NULL
		ORDER BY 1 LOOP
		-- in its body, arguments can be qualified with the function's name; affinity and skip_gone are newer than the old names
		definition := regexp_replace(regexp_replace(pg_get_functiondef(function.oid), ', affinity text DEFAULT NULL::text(, skip_gone boolean DEFAULT NULL::boolean)?', ''), '\m' || function.name || '\.', function.old || '.', 'g');
		EXECUTE regexp_replace(definition, '^CREATE OR REPLACE (\w+) [^(]*\(', format('CREATE \1 aq.%s(', function.old));
		signature := format('ROUTINE aq.%s(%s)', function.old, regexp_replace(pg_get_function_identity_arguments(function.oid), ', affinity text(, skip_gone boolean)?', ''));
		EXECUTE format('COMMENT ON %s IS ''Deprecated since 0.2.0, removed in 0.3.0: use %s.''', signature, function.oid::regproc);
		IF NOT has_function_privilege('public', function.oid, 'EXECUTE') THEN
			EXECUTE format('REVOKE EXECUTE ON %s FROM PUBLIC', signature);
		END IF;
	END LOOP;
END $$;
