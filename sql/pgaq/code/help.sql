-- What is installed, and what can be called: the descriptions are the comments of the functions.

CREATE FUNCTION aq.version() RETURNS text
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT format('pgaq %s (catalog %s) on PostgreSQL %s', coalesce(current_setting('pgaq.library_version', true), extversion), extversion,
		current_setting('server_version')) FROM pg_extension WHERE extname = 'pgaq';
END;
COMMENT ON FUNCTION aq.version() IS
'Version of the library that the server has loaded, of the extension''s catalog in this database, and
  of the server. The library is the newer one until ALTER EXTENSION pgaq UPDATE.';

CREATE FUNCTION aq.help(topic text DEFAULT NULL, OUT subject text, OUT call text, OUT description text) RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	wanted CONSTANT text := regexp_replace(lower(topic), '^aq\.|\(.*', '', 'g');
BEGIN
	FOR subject, call, description IN
		WITH groups (number, name, calls, example) AS (VALUES
			(1, 'queues', '{create_queue,alter_queue,drop_queue,start_queue,stop_queue,purge_queue}'::text[], 'SELECT aq.create_queue(''orders'');'),
			(2, 'enqueuing', '{enqueue,enqueue_array,cancel}', 'SELECT aq.enqueue(''orders'', ''{"order": 1}'');'),
			(3, 'dequeuing', '{dequeue,receive,wait,listen,browse}', 'SELECT payload FROM aq.dequeue(''orders'', wait => ''5 seconds'');'),
			(4, 'leases', '{acknowledge,extend,release,reject,end_leases}', 'SELECT msgid, receipt, payload FROM aq.dequeue(''orders'', lease => ''5 minutes'');'),
			(5, 'failures', '{redrive,message}', 'SELECT aq.redrive(''orders'');'),
			(6, 'topics', '{subscribe,alter_subscriber,unsubscribe}', 'SELECT aq.subscribe(''events'', ''billing'', rule => ''priority < 5'');'),
			(7, 'schedules', '{schedule,alter_schedule,start_schedule,stop_schedule,run_schedule,unschedule,schedule_times}',
				'SELECT aq.schedule(''morning'', ''orders'', ''{}'', cron => ''30 7 * * *'');'),
			(8, 'privileges', '{grant_queue,revoke_queue,grant_consumer,revoke_consumer}', 'SELECT aq.grant_queue(''orders'', ''shop'', ''enqueue'');'),
			(9, 'notification', '{register,unregister,notifications,post}', 'SELECT aq.register(''orders'', ''plsql://public.on_order'');'),
			(10, 'propagation', '{create_propagation,alter_propagation,drop_propagation}', 'SELECT aq.create_propagation(''orders'', ''orders@warehouse'');'),
			(11, 'servers', '{check_link,add_node,remove_node,reset_node,reclaim_unit}', 'SELECT * FROM aq.check_link(''warehouse'');'),
			(12, 'monitoring', '{metrics,keys,check,version}', 'SELECT * FROM aq.metrics(''orders'');')),
		functions AS (SELECT p.oid, n.nspname || '.' || p.proname AS name, p.proname, p.proargnames[1:p.pronargs] AS arguments,
				CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE '' END AS prefix, obj_description(p.oid, 'pg_proc') AS comment
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('aq', 'aq_jms'))
		SELECT g.name, g.example, array_to_string(g.calls, ', ') FROM (SELECT * FROM groups ORDER BY number) g WHERE wanted IS NULL
		UNION ALL
		SELECT * FROM (SELECT g.name, format('%s%s(%s)', f.prefix, f.name, array_to_string(f.arguments, ', ')),
				regexp_replace(split_part(regexp_replace(f.comment, '\n +', ' ', 'g'), E'\n', 1), '(\w)\. .*', '\1.')
			FROM groups g JOIN functions f ON f.name = ANY (ARRAY(SELECT 'aq.' || c FROM unnest(g.calls) c))
			WHERE g.name = wanted ORDER BY array_position(g.calls, f.proname::text), f.oid) f
		UNION ALL
		SELECT * FROM (SELECT f.name, format('%s%s(%s)', f.prefix, f.name, pg_get_function_arguments(f.oid)) || coalesce(' -> ' || pg_get_function_result(f.oid), ''), f.comment
			FROM functions f WHERE wanted IN (f.name, f.proname) ORDER BY f.oid) f LOOP
		RETURN NEXT;
	END LOOP;
	IF NOT FOUND THEN
		RAISE undefined_object USING MESSAGE = format('there is neither a group nor a function "%s"', topic), HINT = 'SELECT * FROM aq.help() lists the groups.';
	END IF;
END $$;
COMMENT ON FUNCTION aq.help(text) IS
'What can be called.
topic: null: the groups of functions, each with an example; a group: its functions, each with the
  first sentence of its description; a function: its forms, with all arguments and the description
Errors 42704';
