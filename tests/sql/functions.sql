-- The extension's functions as a whole: what the internal ones do when they are called by themselves, and which names they resolve.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_eve;
CREATE ROLE regress_aq_adam;
CREATE SCHEMA eve AUTHORIZATION regress_aq_eve;
CREATE SCHEMA adam AUTHORIZATION regress_aq_adam;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_eve, regress_aq_adam;

-- arguments that no caller of the extension gives
GRANT USAGE ON SCHEMA aq_internal TO regress_aq_eve;
SET ROLE regress_aq_eve;
SELECT aq.create_queue_table('eve.tab', multiple_consumers => true), aq.create_queue('eve.in_table', queue_table => 'eve.tab'), aq.create_queue('eve_sharded');
SELECT aq.enqueue('eve_sharded', '1', delivery_mode => 'buffered') IS NOT NULL;
SELECT t.error($$SELECT sys._purge_processed('eve_sharded', NULL, '{NULL}')$$);
SELECT t.error($$SELECT sys._transform(NULL, '1'::jsonb, NULL::jsonb)$$);
SELECT t.error(call) FROM unnest(ARRAY['SELECT sys._jms_begin(NULL, NULL, NULL, NULL, NULL, NULL)', $$SELECT sys._jms_begin(NULL, 'map', NULL, '{1}', NULL, true)$$,
	$$SELECT sys._jms_begin(NULL, 'map', '{NULL}', '{1}', NULL, true)$$, $$SELECT sys._jms_begin(NULL, 'stream', '{a}', '{1}', NULL, true)$$, $$SELECT sys._jms_begin(NULL, 'stream', NULL, '{NULL}', NULL, true)$$,
	$$SELECT sys._jms_put(sys._jms_begin(NULL, 'map', NULL, NULL, NULL, true), 'a', NULL)$$, $$SELECT sys._jms_read(sys._jms_begin(NULL, 'bytes', NULL, NULL, NULL, false), NULL)$$,
	$$SELECT sys._jms_write(sys._jms_begin(NULL, 'bytes', NULL, NULL, NULL, true), 'int', NULL)$$, $$SELECT sys._jms_write_bytes(sys._jms_begin(NULL, 'bytes', NULL, NULL, NULL, true), NULL)$$]) call;
SELECT queue_id AS id FROM aq.queues WHERE queue_name = 'eve_sharded' \gset
SELECT (SELECT count(*) FROM aq_internal.buffered_queue(x)), (SELECT count(*) FROM aq_internal.buffered_message_rows(x, NULL, NULL)), (SELECT count(*) FROM aq_internal.buffered_consumers(x)),
	(SELECT count(*) FROM aq_internal.buffered_publishers(x)), (SELECT count(*) FROM aq_internal.message_parts(x)), (SELECT count(*) FROM aq_internal.message_rows(x, NULL, NULL, 1, 0, NULL)), (SELECT count(*) FROM aq_internal.classic_message_rows(x, NULL, NULL, 0, NULL))
FROM unnest(ARRAY[NULL, 0, -1, -:id, 2147483647, -2147483648]) x;
SELECT count(*) FROM aq_internal.buffered_queue(:id);
CALL dbms_aq.listen(ARRAY[ARRAY[sys.aq$_agent(NULL, 'eve_sharded', NULL)], ARRAY[sys.aq$_agent('ann', 'eve.in_table', NULL)]], 0, 3, NULL, NULL);

-- the views on a queue table are made for its owner only; nothing tells another role which names exist
SET ROLE regress_aq_adam;
SELECT t.error($$SELECT sys._make_views('eve.tab')$$);
SELECT t.error($$SELECT sys._make_views('eve.none')$$);
SELECT t.error($$SELECT sys._make_views('tab')$$);
SELECT t.error($$SELECT sys._table_view_definitions('eve.tab')$$);
SET ROLE regress_aq_eve;
SELECT sys._make_views('eve.tab');
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.relnamespace = 'eve'::regnamespace AND c.relkind = 'v' ORDER BY 1;

-- a transformation runs with its creator's rights: it is executed by those to whom this was granted
CALL dbms_transform.create_transformation('eve', 'loud', NULL, 'JSON', NULL, 'JSON', 'to_jsonb(upper(source.user_data #>> ''{}''))');
SELECT has_function_privilege('regress_aq_adam', 'eve.loud(jsonb)', 'EXECUTE');
GRANT EXECUTE ON FUNCTION eve.loud TO regress_aq_adam;
CALL dbms_transform.modify_transformation('eve', 'loud', 0, 'source.user_data');
SELECT has_function_privilege('regress_aq_adam', 'eve.loud(jsonb)', 'EXECUTE'), has_function_privilege('public', 'eve.loud(jsonb)', 'EXECUTE');
RESET ROLE;

-- Internal functions that PUBLIC may execute: functions and views that are for all roles call them with the caller's rights.
REVOKE USAGE ON SCHEMA aq_internal FROM regress_aq_eve;
SELECT string_agg(DISTINCT p.proname, ' ' ORDER BY p.proname)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname LIKE 'pgaq%' AND (p.proname LIKE '\_%' OR n.nspname = 'aq_internal') AND has_function_privilege('public', p.oid, 'EXECUTE')
GROUP BY n.nspname, left(p.proname, 4) ORDER BY n.nspname, 1;
-- but none can be called by its name, by any role that is not the extension's or the database's owner
CREATE FUNCTION t.callable(role regrole) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	call record;
BEGIN
	EXECUTE format('SET LOCAL ROLE %s', role);
	FOR call IN SELECT format('%s aq_internal.%I(%s)', CASE prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, proname, array_to_string(array_fill('NULL'::text, ARRAY[pronargs::int]), ', ')) AS text
			FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'aq_internal') LOOP
		BEGIN
			EXECUTE call.text;
			RETURN NEXT call.text;
		EXCEPTION WHEN OTHERS THEN
			IF SQLERRM <> 'permission denied for schema aq_internal' THEN
				RETURN NEXT call.text || ': ' || SQLERRM;
			END IF;
		END;
	END LOOP;
	RESET ROLE;
END $$;
CREATE ROLE regress_aq_watcher IN ROLE pg_monitor;
SELECT count(*) > 100 FROM pg_proc WHERE pronamespace = 'aq_internal'::regnamespace;
SELECT role, t.callable(role) FROM unnest(ARRAY['regress_aq_eve', 'regress_aq_watcher', 'aq_administrator_role']::regrole[]) role;
DROP FUNCTION t.callable;
-- what is called by its name, in a body that is not parsed before it runs, runs with the rights of the extension's owner, or is called so; pg_dump, whose role has USAGE on the schema, calls dump_rows
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'pgaq%') AND p.prosqlbody IS NULL AND p.prosrc LIKE '%aq\_internal.%' AND NOT p.prosecdef AND p.proname <> 'dump_rows'
	AND (has_function_privilege('public', p.oid, 'EXECUTE') OR has_function_privilege('regress_aq_watcher', p.oid, 'EXECUTE') OR has_function_privilege('aq_administrator_role', p.oid, 'EXECUTE'));
DROP ROLE regress_aq_watcher;
-- none of them has the rights of the extension's owner, but those for settings that a view shows, for the log of actions, and for reports
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid IN (SELECT oid FROM pg_extension WHERE extname LIKE 'pgaq%') AND p.prosecdef AND has_function_privilege('public', p.oid, 'EXECUTE');

-- Functions resolve operators and functions in pg_catalog, whatever the caller's search_path is: their bodies are parsed at creation, or they pin it.
SELECT p.oid::regprocedure
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname LIKE 'pgaq%' AND l.lanname NOT IN ('c', 'internal') AND p.prosqlbody IS NULL AND NOT EXISTS (
	SELECT FROM unnest(p.proconfig) c WHERE c ~ '^search_path=(pg_catalog, )+(aq, aq_internal, )?pg_temp$')
ORDER BY 1;

-- The calls of dbms_aq are in C, without steps in SQL before those of schema aq.
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'dbms_aq'::regnamespace AND p.proname ~ '^(try_)?(enqueue|dequeue|listen)(_array)?$' AND l.lanname <> 'c';

-- Names given to a package are those of its caller, also from one of its functions to the next; another function's search_path is its own.
CREATE FUNCTION eve.found(text) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN RETURN dbms_aqadm._queue($1); END $$;
SET search_path = eve, t;
SELECT dbms_aqadm._queue('in_table');
SELECT t.error($$SELECT eve.found('in_table')$$);
-- also when it is spelt as that of the packages, whose schemas names.c lists
SELECT string_agg(DISTINCT pronamespace::regnamespace::text, ' ' ORDER BY pronamespace::regnamespace::text) FROM pg_proc
	WHERE 'search_path=pg_catalog, pg_catalog, pg_temp' = ANY (proconfig);
CREATE FUNCTION eve.spelt_alike(text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_catalog, pg_temp
	AS $$ BEGIN RETURN dbms_aqadm._queue($1); END $$;
SELECT t.error($$SELECT eve.spelt_alike('in_table')$$);
SELECT dbms_aqadm._queue('in_table');
RESET search_path;

-- A trap for every operator, and for every function whose name occurs in the extension, in front of pg_catalog in a superuser's search_path.
CREATE SCHEMA traps;
CREATE FUNCTION t.make_traps() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	body text := ' RETURNS %s LANGUAGE plpgsql AS ''BEGIN RAISE INFO ''''trapped''''; RAISE ''''trapped''''; END''';
	words text[] := (SELECT array_agg(DISTINCT w[1]) FROM pg_proc p, regexp_matches(p.prosrc, '(\w+)\(', 'g') w
		WHERE p.pronamespace = ANY (ARRAY['aq', 'aq_jms', 'aq_internal', 'sys', 'dbms_aq', 'dbms_aqadm', 'dbms_transform', 'dbms_aqmigtool', 'dbms_aqelm', 'dbms_jms_plsql']::regnamespace[]));
	o record;
BEGIN
	FOR o IN SELECT oprleft::regtype AS l, oprright::regtype AS r, array_agg(oprname) AS names FROM pg_operator
			WHERE oprkind = 'b' AND oprnamespace = 'pg_catalog'::regnamespace
				AND (oprleft::regtype::text || ' ' || oprright::regtype::text) ~ '^((text|name|integer|bigint|numeric|double precision|boolean|jsonb|uuid|oid|interval|timestamp with time zone|any\w*)( |$))+$'
			GROUP BY 1, 2 LOOP
		EXECUTE format('CREATE FUNCTION traps.trap(%s, %s)' || body, o.l, o.r, 'boolean');
		FOR i IN 1 .. cardinality(o.names) LOOP
			EXECUTE format('CREATE OPERATOR traps.%s (FUNCTION = traps.trap, LEFTARG = %s, RIGHTARG = %s)', o.names[i], o.l, o.r);
		END LOOP;
	END LOOP;
	FOR o IN SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments, format_type(p.prorettype, NULL) AS result FROM pg_proc p
			WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.proname = ANY (words)
				AND pg_get_function_identity_arguments(p.oid) !~ '"any"|internal|cstring' LOOP
		EXECUTE format('CREATE FUNCTION traps.%I(%s)' || body, o.name, o.arguments, o.result);
	END LOOP;
END $$;
SELECT t.make_traps();
-- null: it works, and walks into no trap
CREATE FUNCTION t.trapped(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('search_path', 'trapped, traps, pg_catalog', true);
	EXECUTE statement;
	PERFORM pg_catalog.set_config('search_path', 'public', true);
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	RETURN statement || ': ' || SQLERRM;
END $$;
SELECT count(*) > 200 FROM pg_operator WHERE oprnamespace = 'traps'::regnamespace;
SELECT count(*) > 10 FROM pg_proc WHERE pronamespace = 'traps'::regnamespace AND proname IN ('round', 'upper', 'strpos', 'quote_ident', 'length', 'repeat');
SELECT count(*) > 50 FROM pg_proc WHERE pronamespace = 'traps'::regnamespace AND proname <> 'trap';
CREATE SCHEMA trapped;
CREATE TYPE trapped.pair AS (n integer, word text);
SELECT t.trapped('SELECT 1 + 1');
SELECT t.trapped('SELECT upper(''x'')');
SELECT trapped FROM string_to_table($calls$CALL dbms_aqadm.create_queue_table('tab', 'PAIR', multiple_consumers => true)
CALL dbms_aqadm.create_queue('in_tab', 'tab', max_retries => 3, retry_delay => 1.5)
CALL dbms_aqadm.create_sharded_queue('sharded', queue_payload_type => 'JSON', max_retries => 3)
CALL dbms_aqadm.create_exception_queue('sharded', 'failed')
CALL dbms_aqadm.start_queue('in_tab')
CALL dbms_aqadm.start_queue('sharded')
CALL dbms_aqadm.add_subscriber('in_tab', sys.aq$_agent('ann', NULL, NULL), 'priority < 3')
CALL dbms_aqadm.alter_subscriber('in_tab', sys.aq$_agent('ann', NULL, NULL), NULL, NULL)
CALL dbms_transform.create_transformation('trapped', 'swap', NULL, 'PAIR', NULL, 'PAIR', 'ROW((source.user_data).n, (source.user_data).word)')
CALL dbms_transform.modify_transformation('trapped', 'swap', 0, 'ROW(source.user_data.n, source.user_data.word)')
CALL dbms_aq.enqueue('in_tab', dbms_aq.enqueue_options_t(transformation => 'swap'), dbms_aq.message_properties_t(delay => 0, expiration => 100, correlation => 'c', recipient_list => ARRAY[sys.aq$_agent('ann', NULL, NULL)]), ROW(1, 'a')::trapped.pair, NULL)
CALL dbms_aq.enqueue('in_tab', NULL, NULL, '(2,b)', NULL)
CALL dbms_aq.enqueue('sharded', dbms_aq.enqueue_options_t(visibility => 2), NULL, '1', NULL)
CALL dbms_aq.enqueue_array('sharded', NULL, 2, array_fill(NULL::dbms_aq.message_properties_t, ARRAY[2]), ARRAY['1', '2']::jsonb[], NULL, NULL, NULL)
CALL dbms_aq.listen(ARRAY[sys.aq$_agent('ann', 'in_tab', NULL)], 0, NULL)
CALL dbms_aq.dequeue('in_tab', dbms_aq.dequeue_options_t(consumer_name => 'ann', wait => 0, transformation => 'swap'), NULL, NULL::trapped.pair, NULL)
CALL dbms_aq.dequeue('in_tab', dbms_aq.dequeue_options_t(consumer_name => 'ann', wait => 0, dequeue_mode => 1), NULL, NULL::text, NULL)
CALL dbms_aq.dequeue_array('sharded', dbms_aq.dequeue_options_t(wait => 0), 2, NULL, NULL::jsonb[], NULL, NULL, NULL)
CALL dbms_aq.seek('in_tab', 'ann', ARRAY[dbms_aq.seek_input_t(seek_type => 2)], 1, NULL)
CALL dbms_aqadm.purge_queue_table('tab', 'qtview.user_data.n = 2 AND upper(qtview.msg_state) = ''READY''', NULL)
CALL dbms_aqadm.purge_queue_table('sharded', 'msg_priority >= 0', NULL)
CALL dbms_aqadm.grant_queue_privilege('ALL', 'sharded', 'regress_aq_eve')
CALL dbms_aqadm.revoke_queue_privilege('ALL', 'sharded', 'regress_aq_eve')
CALL dbms_aqadm.grant_system_privilege('ENQUEUE_ANY', 'regress_aq_eve', false)
CALL dbms_aqadm.revoke_system_privilege('ENQUEUE_ANY', 'regress_aq_eve')
CALL dbms_aqadm.get_queue_parameter('sharded', 'SHARD_NUM', NULL)
CALL dbms_aqadm.get_min_streams_pool(NULL)
CALL dbms_aqadm.get_watermark(NULL)
CALL dbms_aqmigtool.check_migration_to_txeventq('trapped', 'in_tab', NULL)
CALL dbms_aqmigtool.check_status('trapped', 'in_tab', NULL, NULL)
CALL dbms_shared_pool.markhot('trapped', 'sharded', 10)
CALL dbms_shared_pool.unmarkhot('trapped', 'sharded', 10)
CALL dbms_application_info.set_module('m', 'a')
CALL dbms_application_info.read_module(NULL, NULL)
SELECT aq.trace_start()
SELECT aq.enqueue('trapped.sharded', '1')
SELECT * FROM aq.trace_summary()
SELECT * FROM aq.trace()
SELECT * FROM aq.trace_histogram()
SELECT aq.trace_quantize()
SELECT aq.trace_stop()
SELECT dbms_workload_repository.create_snapshot()
SELECT dbms_workload_repository.create_snapshot()
SELECT dbms_workload_repository.create_baseline((SELECT min(snap_id) FROM aq_internal.snapshot), (SELECT max(snap_id) FROM aq_internal.snapshot), 'trapped')
SELECT dbms_workload_repository.awr_report_text((SELECT min(snap_id) FROM aq_internal.snapshot), (SELECT max(snap_id) FROM aq_internal.snapshot))
SELECT dbms_workload_repository.awr_report_html((SELECT min(snap_id) FROM aq_internal.snapshot), (SELECT max(snap_id) FROM aq_internal.snapshot))
SELECT aq.report_html(aq.report_awr_diff((SELECT min(snap_id) FROM aq_internal.snapshot), (SELECT max(snap_id) FROM aq_internal.snapshot), (SELECT min(snap_id) FROM aq_internal.snapshot), (SELECT max(snap_id) FROM aq_internal.snapshot)))
SELECT aq.report_text(aq.report_ash(pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 hour', pg_catalog.now()))
SELECT aq.report_html(aq.report_ash(pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 hour', pg_catalog.now()))
SELECT aq.report_text(aq.rtpctx_report(aq.rtpctx_start()))
CALL dbms_workload_repository.drop_baseline('trapped')
SELECT aq.quantize(ARRAY[1, 2, 4], ARRAY[1, 5, 2])
SELECT aq.conversion_obstacles('trapped.in_tab')
SELECT sys.sqlcode('AQ001')
SELECT count(*) FROM aq.queues
CALL dbms_transform.drop_transformation('trapped', 'swap')
CALL dbms_aqadm.remove_subscriber('in_tab', sys.aq$_agent('ann', NULL, NULL))
CALL dbms_aqadm.stop_queue('in_tab')
CALL dbms_aqadm.drop_queue('in_tab')
CALL dbms_aqadm.drop_queue_table('tab', force => true)
CALL dbms_aqadm.drop_sharded_queue('sharded', force => true)
CALL dbms_aqadm.drop_sharded_queue('failed', force => true)$calls$, E'\n') statement, t.trapped(statement) WHERE trapped IS NOT NULL;
SET client_min_messages = warning;
DROP SCHEMA traps, trapped CASCADE;
DROP FUNCTION t.make_traps, t.trapped;
RESET client_min_messages;

SELECT aq.drop_queue('eve_sharded', force => true);
DROP FUNCTION eve.loud;
SET client_min_messages = warning;
CALL dbms_aqadm.drop_queue_table('eve.tab', force => true);
DROP SCHEMA eve, adam CASCADE;
DROP OWNED BY regress_aq_eve, regress_aq_adam;
DROP ROLE regress_aq_eve, regress_aq_adam;
