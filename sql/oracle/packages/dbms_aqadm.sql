-- Package dbms_aqadm: administration with Oracle's interface. Unlike in Oracle, everything is transactional: no subprogram commits.

-- Records with named fields, for calls outside of PL/pgSQL.

CREATE FUNCTION dbms_aqadm.queue_props_t(queue_type numeric DEFAULT NULL, retry_delay numeric DEFAULT NULL,
	retention_time numeric DEFAULT NULL, sort_list numeric DEFAULT NULL, cache_hint numeric DEFAULT NULL)
RETURNS dbms_aqadm.queue_props_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, $5)::dbms_aqadm.queue_props_t;
COMMENT ON FUNCTION dbms_aqadm.queue_props_t(numeric, numeric, numeric, numeric, numeric) IS
'Make a record of queue properties; name the fields that you set';

CREATE FUNCTION dbms_aqadm.aq$_purge_options_t("block" boolean DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aqadm.aq$_purge_options_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2)::dbms_aqadm.aq$_purge_options_t;
COMMENT ON FUNCTION dbms_aqadm.aq$_purge_options_t(boolean, numeric) IS
'Make a record of purge options; name the fields that you set';

-- Checks and translations

CREATE FUNCTION dbms_aqadm._queue(queue_name text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	native text := sys._resolve_queue(queue_name, 'any');
BEGIN
	IF native IS NULL THEN
		IF sys._split_name(queue_name) IS NULL THEN
			PERFORM sys._raise_error('AQ003', CASE WHEN queue_name IS NULL THEN 'queue name must not be null'
				ELSE format('queue name "%s" is not valid', queue_name) END,
				'Specify [schema.]name; a part that is not an identifier must be in double quotes.');
		END IF;
		PERFORM sys._raise_error('AQ001', format('queue "%s" does not exist', queue_name),
			'The view sys.all_queues lists the queues that you can use.');
	END IF;
	RETURN native;
END $$;
COMMENT ON FUNCTION dbms_aqadm._queue(text) IS 'Internal: native name of a queue, or an error';

-- The schema must exist, and the caller must have the CREATE privilege on it, so that roles cannot occupy names in other roles' schemas.
CREATE FUNCTION dbms_aqadm._new_name(name text, what text, OUT schema_name text, OUT object_name text, OUT native text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	parts text[] := sys._split_name(name);
BEGIN
	IF parts IS NULL THEN
		PERFORM sys._raise_error('AQ003', CASE WHEN name IS NULL THEN format('%s name must not be null', what)
			ELSE format('%s name "%s" is not valid', what, name) END,
			'Specify [schema.]name; a part that is not an identifier must be in double quotes.');
	END IF;
	schema_name := coalesce(parts[1], (sys._callers_schemas())[1]);
	object_name := parts[2];
	native := schema_name || '.' || object_name;
	IF strpos(schema_name, '.') > 0 THEN
		PERFORM sys._raise_error('AQ003', format('schema "%s" cannot hold queues: there is a dot in its name', schema_name),
			'The native name of a queue is schema.queue: use another schema.');
	ELSIF schema_name IS NULL OR to_regnamespace(quote_ident(schema_name)) IS NULL THEN
		RAISE invalid_schema_name USING MESSAGE = format('schema "%s" does not exist', coalesce(left(schema_name, 63), '')),
			HINT = 'Create it, or qualify the name with another schema.';
	ELSIF NOT has_schema_privilege(schema_name, 'CREATE') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for schema %s', schema_name),
			HINT = 'Creating a queue requires the CREATE privilege on its schema.';
	ELSIF octet_length(native) > 127 THEN
		PERFORM sys._raise_error('AQ087', format('%s name "%s" is too long', what, native),
			'Schema and name together have at most 126 bytes.');
	ELSIF object_name ILIKE 'aq$%' AND what <> 'exception queue' THEN
		PERFORM sys._raise_error('AQ003', format('%s name "%s" is reserved', what, object_name),
			'Names must not begin with AQ$.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aqadm._new_name(text, text) IS 'Internal: native name of a new queue or queue table';

CREATE FUNCTION dbms_aqadm._payload_type(type_name text) RETURNS regtype
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	found regtype;
BEGIN
	IF upper(type_name) ~ '^JMS(_TYPE)?$|^(SYS\.)?AQ\$_JMS_((TEXT|BYTES|MAP|STREAM|OBJECT)_)?MESSAGE$' THEN
		RETURN 'aq.jms_message'::regtype;
	ELSIF upper(type_name) ~ '^(SYS\.)?ANYDATA$' THEN
		PERFORM sys._raise_error('AQ060', 'ANYDATA payloads are not supported', 'JSON holds values of any type.');
	END IF;
	found := sys._type_named(NULL, type_name);
	IF found NOT IN ('bytea', 'jsonb', 'xml', 'text')
			AND NOT EXISTS (SELECT FROM pg_type WHERE oid = found AND typtype = 'c') THEN
		PERFORM sys._raise_error('AQ084', format('type %s cannot be a payload type', found),
			'Use RAW, JSON, XMLTYPE, text or a composite type.');
	END IF;
	RETURN found;
END $$;
COMMENT ON FUNCTION dbms_aqadm._payload_type(text) IS 'Internal: a payload type by Oracle''s or PostgreSQL''s name';

CREATE FUNCTION dbms_aqadm._seconds(value numeric, code text, what text, infinite boolean) RETURNS interval
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF infinite AND value = -1 THEN
		RETURN interval '1000 years';
	ELSIF value < 0 THEN
		PERFORM sys._raise_error(code, format('%s must not be negative', what),
			CASE WHEN infinite THEN 'Specify seconds, or dbms_aqadm.infinite().' ELSE 'Specify seconds.' END);
	END IF;
	RETURN make_interval(secs => value::float8);
END $$;
COMMENT ON FUNCTION dbms_aqadm._seconds(numeric, text, text, boolean) IS 'Internal: seconds as an interval';

CREATE FUNCTION dbms_aqadm._max_retries(value numeric) RETURNS integer
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF value < 0 THEN
		PERFORM sys._raise_error('AQ077', 'max_retries must not be negative');
	END IF;
	RETURN value;
END $$;
COMMENT ON FUNCTION dbms_aqadm._max_retries(numeric) IS 'Internal: a valid retry limit';

CREATE FUNCTION dbms_aqadm._no_limits(max_retries numeric, retry_delay numeric, retention_time numeric) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(retention_time, 0) <> 0 THEN
		PERFORM sys._raise_error('AQ093', 'an exception queue has no retention time', 'Leave retention_time out.');
	ELSIF coalesce(max_retries, 0) <> 0 OR coalesce(retry_delay, 0) <> 0 THEN
		PERFORM sys._raise_error('AQ094', 'an exception queue has no retries', 'Leave max_retries and retry_delay out.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aqadm._no_limits(numeric, numeric, numeric) IS 'Internal: settings that an exception queue does not have';

-- Queue tables and their queues

CREATE FUNCTION dbms_aqadm._queue_table(name text, missing_ok boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	parts text[] := sys._split_name(name);
	native text;
BEGIN
	IF parts IS NULL THEN
		PERFORM sys._raise_error('AQ003', CASE WHEN name IS NULL THEN 'queue table name must not be null'
			ELSE format('queue table name "%s" is not valid', name) END,
			'Specify [schema.]name; a part that is not an identifier must be in double quotes.');
	END IF;
	SELECT t.queue_table INTO native
		FROM unnest(CASE WHEN parts[1] IS NULL THEN sys._callers_schemas() ELSE parts[1:1] END)
			WITH ORDINALITY AS s (schema_name, n)
			JOIN aq.queue_tables t ON t.queue_table = s.schema_name || '.' || parts[2]
		ORDER BY s.n LIMIT 1;
	IF native IS NULL AND NOT missing_ok THEN
		PERFORM sys._raise_error('AQ032', format('queue table "%s" does not exist', name),
			'The view sys.all_queue_tables lists the queue tables that you can use.');
	END IF;
	RETURN native;
END $$;
COMMENT ON FUNCTION dbms_aqadm._queue_table(text, boolean) IS 'Internal: native name of a queue table, or an error';

CREATE FUNCTION dbms_aqadm._instances(primary_instance numeric, secondary_instance numeric) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(secondary_instance, 0) <> 0 AND coalesce(primary_instance, 0) = 0 THEN
		PERFORM sys._raise_error(CASE WHEN primary_instance IS NULL THEN 'AQ106' ELSE 'AQ092' END,
			'secondary_instance requires a primary_instance', 'Leave both out: there is one instance.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aqadm._instances(numeric, numeric) IS 'Internal: an error for contradictory instances';

CREATE PROCEDURE dbms_aqadm.create_queue_table(queue_table text, queue_payload_type text, storage_clause text DEFAULT NULL,
	sort_list text DEFAULT NULL, multiple_consumers boolean DEFAULT false, message_grouping numeric DEFAULT 0,
	comment text DEFAULT NULL, auto_commit boolean DEFAULT true, primary_instance numeric DEFAULT 0,
	secondary_instance numeric DEFAULT 0, compatible text DEFAULT NULL, secure boolean DEFAULT false,
	replication_mode numeric DEFAULT 0)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	new record := dbms_aqadm._new_name(queue_table, 'queue table');
BEGIN
	PERFORM dbms_aqadm._instances(primary_instance, secondary_instance);
	IF secure THEN
		PERFORM sys._raise_error('AQ060', 'secure queue tables are not supported', 'Leave secure false.');
	ELSIF message_grouping NOT IN (0, 1) THEN
		PERFORM sys._raise_error('AQ005', format('message grouping %s does not exist', message_grouping),
			'Use dbms_aqadm.none() or dbms_aqadm.transactional().');
	END IF;
	PERFORM aq.create_queue_table(new.native, dbms_aqadm._payload_type(queue_payload_type), sort_list => sort_list,
		multiple_consumers => coalesce(multiple_consumers, false), message_grouping => coalesce(message_grouping, 0) = 1,
		comment => comment);
	PERFORM sys._make_views(new.native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_queue_table(text, text, text, text, boolean, numeric, text, boolean, numeric, numeric,
	text, boolean, numeric) IS
'Create a queue table, its exception queue aq$_table_e, and the views on it: table, aq$table and, for several consumers, aq$table_s and aq$table_r';

CREATE PROCEDURE dbms_aqadm.alter_queue_table(queue_table text, comment text DEFAULT NULL, primary_instance numeric DEFAULT NULL,
	secondary_instance numeric DEFAULT NULL, replication_mode numeric DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue_table(queue_table);
BEGIN
	PERFORM dbms_aqadm._instances(primary_instance, secondary_instance);
	IF comment IS NOT NULL THEN
		PERFORM aq.alter_queue_table(native, comment);
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_queue_table(text, text, numeric, numeric, numeric) IS
'Change the comment of a queue table; null leaves it unchanged';

CREATE PROCEDURE dbms_aqadm.enable_jms_types(queue_table text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._queue_table(queue_table);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.enable_jms_types(text) IS
'Check that the queue table exists: messages of all JMS types can be in every queue of such a type, without this call';

CREATE PROCEDURE dbms_aqadm.drop_queue_table(queue_table text, force boolean DEFAULT false, auto_commit boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue_table(queue_table);
BEGIN
	PERFORM sys._drop_views(native, true);
	PERFORM aq.drop_queue_table(native, coalesce(force, false));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_queue_table(text, boolean, boolean) IS
'Drop a queue table, its exception queue and its views; force: with its queues and their messages';

CREATE PROCEDURE dbms_aqadm.create_queue(queue_name text, queue_table text, queue_type numeric DEFAULT 0,
	max_retries numeric DEFAULT NULL, retry_delay numeric DEFAULT 0, retention_time numeric DEFAULT 0,
	dependency_tracking boolean DEFAULT false, comment text DEFAULT NULL, auto_commit boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	new record := dbms_aqadm._new_name(queue_name, 'queue');
	in_table text := dbms_aqadm._queue_table(queue_table);
BEGIN
	IF sys._name_schema(in_table) <> new.schema_name THEN
		PERFORM sys._raise_error('AQ105', format('queue "%s" cannot be in queue table "%s"', new.native, in_table),
			'A queue and its queue table have the same schema.');
	ELSIF queue_type NOT IN (0, 1) THEN
		PERFORM sys._raise_error('AQ080', format('queue type %s is not supported', queue_type),
			'Use dbms_aqadm.normal_queue() or dbms_aqadm.exception_queue().');
	ELSIF queue_type = 1 THEN
		PERFORM dbms_aqadm._no_limits(max_retries, retry_delay, retention_time);
		PERFORM aq.create_queue(new.native, queue_table => in_table, queue_type => 'exception', comment => comment,
			max_retries => NULL, retry_delay => '0');
		RETURN;
	END IF;
	PERFORM aq.create_queue(new.native, queue_table => in_table,
		max_retries => coalesce(dbms_aqadm._max_retries(max_retries), 5),
		retry_delay => dbms_aqadm._seconds(coalesce(retry_delay, 0), 'AQ078', 'retry_delay', false),
		retry_delay_factor => 1, retry_delay_max => NULL, retry_jitter => 0,
		retention => dbms_aqadm._seconds(coalesce(retention_time, 0), 'AQ079', 'retention_time', true), comment => comment);
	PERFORM aq.stop_queue(new.native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_queue(text, text, numeric, numeric, numeric, numeric, boolean, text, boolean) IS
'Create a queue in a queue table, stopped';

-- Transactional event queues (sharded queues)

CREATE PROCEDURE dbms_aqadm.create_transactional_event_queue(queue_name text, storage_clause text DEFAULT NULL,
	multiple_consumers boolean DEFAULT false, max_retries numeric DEFAULT NULL, comment text DEFAULT NULL,
	queue_payload_type text DEFAULT 'JMS_TYPE', queue_properties dbms_aqadm.queue_props_t DEFAULT NULL,
	replication_mode numeric DEFAULT 0)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	new record := dbms_aqadm._new_name(queue_name, 'queue');
BEGIN
	IF coalesce(queue_properties.queue_type, 0) <> 0 THEN
		PERFORM sys._raise_error('AQ080', format('queue type %s is not supported here', queue_properties.queue_type),
			'Make exception queues with dbms_aqadm.create_eq_exception_queue.');
	END IF;
	PERFORM aq.create_queue(new.native, dbms_aqadm._payload_type(queue_payload_type),
		multiple_consumers => coalesce(multiple_consumers, false),
		max_retries => coalesce(dbms_aqadm._max_retries(max_retries), 5),
		retry_delay => dbms_aqadm._seconds(coalesce(queue_properties.retry_delay, 0), 'AQ078', 'retry_delay', false),
		retry_delay_factor => 1, retry_delay_max => NULL, retry_jitter => 0,
		retention => dbms_aqadm._seconds(coalesce(queue_properties.retention_time, 0), 'AQ079', 'retention_time', true),
		exception_queue => 'none', comment => comment);
	PERFORM aq.stop_queue(new.native);
	PERFORM sys._make_queue_view(new.native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_transactional_event_queue(text, text, boolean, numeric, text, text,
	dbms_aqadm.queue_props_t, numeric) IS
'Create a sharded queue schema.name, stopped, and the view schema.aq$name on its messages';

CREATE PROCEDURE dbms_aqadm.create_sharded_queue(queue_name text, storage_clause text DEFAULT NULL,
	multiple_consumers boolean DEFAULT false, max_retries numeric DEFAULT NULL, comment text DEFAULT NULL,
	queue_payload_type text DEFAULT 'JMS_TYPE', queue_properties dbms_aqadm.queue_props_t DEFAULT NULL,
	replication_mode numeric DEFAULT 0)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL dbms_aqadm.create_transactional_event_queue(queue_name, storage_clause, multiple_consumers, max_retries, comment,
		queue_payload_type, queue_properties, replication_mode);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_sharded_queue(text, text, boolean, numeric, text, text, dbms_aqadm.queue_props_t,
	numeric) IS 'The older name of create_transactional_event_queue';

CREATE PROCEDURE dbms_aqadm.alter_transactional_event_queue(queue_name text, max_retries numeric DEFAULT NULL,
	comment text DEFAULT NULL, queue_properties dbms_aqadm.queue_props_t DEFAULT NULL, replication_mode numeric DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL dbms_aqadm.alter_queue(queue_name, max_retries, queue_properties.retry_delay, queue_properties.retention_time,
		true, comment);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_transactional_event_queue(text, numeric, text, dbms_aqadm.queue_props_t, numeric) IS
'Change a sharded queue; null leaves a setting unchanged';

CREATE PROCEDURE dbms_aqadm.alter_sharded_queue(queue_name text, max_retries numeric DEFAULT NULL, comment text DEFAULT NULL,
	queue_properties dbms_aqadm.queue_props_t DEFAULT NULL, replication_mode numeric DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL dbms_aqadm.alter_transactional_event_queue(queue_name, max_retries, comment, queue_properties, replication_mode);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_sharded_queue(text, numeric, text, dbms_aqadm.queue_props_t, numeric) IS
'The older name of alter_transactional_event_queue';

CREATE FUNCTION dbms_aqadm._only_sharded(native text, what text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF (SELECT queue_table_id IS NOT NULL FROM sys._describe_queue(native)) THEN
		PERFORM sys._raise_error('AQ060', format('%s is for sharded queues, and "%s" is in a queue table', what, native),
			'Use the procedures for queue tables and queues.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aqadm._only_sharded(text, text) IS 'Internal: an error for queues of queue tables';

CREATE FUNCTION dbms_aqadm._drop_queue(native text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	q record;
BEGIN
	SELECT * INTO q FROM sys._describe_queue(native);
	IF q.enqueue_enabled OR q.dequeue_enabled THEN
		PERFORM sys._raise_error('AQ081', format('queue "%s" is not stopped', native), 'Stop it with dbms_aqadm.stop_queue.');
	END IF;
	IF q.queue_table_id IS NULL THEN
		PERFORM sys._drop_views(native, false);
	END IF;
	PERFORM aq.drop_queue(native, force => true);
END $$;
COMMENT ON FUNCTION dbms_aqadm._drop_queue(text) IS 'Internal: drop a stopped queue, its messages and its view';

CREATE PROCEDURE dbms_aqadm.drop_transactional_event_queue(queue_name text, force boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	PERFORM dbms_aqadm._only_sharded(native, 'drop_transactional_event_queue');
	IF force THEN
		PERFORM aq.stop_queue(native);
	END IF;
	PERFORM dbms_aqadm._drop_queue(native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_transactional_event_queue(text, boolean) IS
'Drop a sharded queue and its messages; it must be stopped, unless force';

CREATE PROCEDURE dbms_aqadm.drop_sharded_queue(queue_name text, force boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL dbms_aqadm.drop_transactional_event_queue(queue_name, force);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_sharded_queue(text, boolean) IS 'The older name of drop_transactional_event_queue';

CREATE PROCEDURE dbms_aqadm.create_eq_exception_queue(queue_name text, exception_queue_name text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
	parts text[] := sys._split_name(queue_name);
	new record;
BEGIN
	PERFORM dbms_aqadm._only_sharded(native, 'create_eq_exception_queue');
	IF exception_queue_name IS NULL THEN
		exception_queue_name := concat_ws('.', quote_ident(parts[1]), quote_ident('aq$_' || parts[2] || '_e'));
	END IF;
	new := dbms_aqadm._new_name(exception_queue_name, 'exception queue');
	PERFORM aq.create_queue(new.native, sys._payload_type(native), queue_type => 'exception', max_retries => NULL,
		retry_delay => '0');
	PERFORM aq.alter_queue(native, exception_queue => new.native);
	PERFORM sys._make_queue_view(new.native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_eq_exception_queue(text, text) IS
'Create the exception queue of a sharded queue, stopped; without a name it is called aq$_queue_e';

CREATE PROCEDURE dbms_aqadm.create_exception_queue(sharded_queue_name text, exception_queue_name text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	CALL dbms_aqadm.create_eq_exception_queue(sharded_queue_name, exception_queue_name);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_exception_queue(text, text) IS 'The older name of create_eq_exception_queue';

-- Non-persistent queues

CREATE PROCEDURE dbms_aqadm.create_np_queue(queue_name text, multiple_consumers boolean DEFAULT false, comment text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	new record := dbms_aqadm._new_name(queue_name, 'queue');
BEGIN
	IF char_length(new.object_name) > 24 THEN
		PERFORM sys._raise_error('AQ087', format('queue name "%s" is too long', new.object_name),
			'Names of non-persistent queues have at most 24 characters.');
	END IF;
	PERFORM aq.create_queue(new.native, 'bytea', multiple_consumers => coalesce(multiple_consumers, false), comment => comment,
		queue_type => 'non_persistent');
	PERFORM aq.stop_queue(new.native);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.create_np_queue(text, boolean, text) IS
'Create a non-persistent queue of RAW, stopped: its messages, enqueued with immediate visibility, are
  passed to the registrations of dbms_aq.register only, and cannot be dequeued.';

-- All queues

CREATE PROCEDURE dbms_aqadm.alter_queue(queue_name text, max_retries numeric DEFAULT NULL, retry_delay numeric DEFAULT NULL,
	retention_time numeric DEFAULT NULL, auto_commit boolean DEFAULT true, comment text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
	q record;
BEGIN
	SELECT * INTO q FROM sys._describe_queue(native);
	IF q.non_persistent THEN
		PERFORM sys._raise_error('AQ190', format('cannot alter non-persistent queue "%s"', native));
	ELSIF q.exception THEN
		PERFORM dbms_aqadm._no_limits(max_retries, retry_delay, retention_time);
	END IF;
	PERFORM aq.alter_queue(native, max_retries => dbms_aqadm._max_retries(max_retries),
		retry_delay => dbms_aqadm._seconds(retry_delay, 'AQ078', 'retry_delay', false),
		retry_delay_factor => CASE WHEN retry_delay IS NOT NULL THEN 1 END,
		retry_jitter => CASE WHEN retry_delay IS NOT NULL THEN 0 END,
		retention => dbms_aqadm._seconds(retention_time, 'AQ079', 'retention_time', true), comment => comment);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_queue(text, numeric, numeric, numeric, boolean, text) IS
'Change a queue; null leaves a setting as it is';

CREATE PROCEDURE dbms_aqadm.drop_queue(queue_name text, auto_commit boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._drop_queue(dbms_aqadm._queue(queue_name));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.drop_queue(text, boolean) IS 'Drop a stopped queue and its messages';

CREATE PROCEDURE dbms_aqadm.start_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.start_queue(dbms_aqadm._queue(queue_name), coalesce(enqueue, false), coalesce(dequeue, false));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.start_queue(text, boolean, boolean) IS 'Allow enqueue and dequeue; false leaves that side as it is';

CREATE PROCEDURE dbms_aqadm.stop_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true,
	wait boolean DEFAULT true, free_memory boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	IF NOT wait AND sys._queue_in_use(native) THEN
		PERFORM sys._raise_error('AQ086', format('running transactions use queue "%s"', native),
			'Try again, or stop it with wait => true.');
	END IF;
	PERFORM aq.stop_queue(native, coalesce(enqueue, false), coalesce(dequeue, false), coalesce(wait, true));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.stop_queue(text, boolean, boolean, boolean, boolean) IS
'Refuse enqueue and dequeue from the commit on; false leaves that setting unchanged.
wait: true waits until transactions that have enqueued or dequeued have ended; false is refused while
  there are any';

-- Subscribers

CREATE FUNCTION dbms_aqadm._subscriber(native text, subscriber sys.aq$_agent) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	q record;
BEGIN
	SELECT * INTO q FROM sys._describe_queue(native);
	IF q.exception THEN
		PERFORM sys._raise_error('AQ091', format('queue "%s" is an exception queue, which has no subscribers', native));
	ELSIF NOT q.multiple_consumers THEN
		PERFORM sys._raise_error('AQ010', format('queue "%s" has a single consumer', native),
			'Only a queue created with multiple_consumers => true has subscribers.');
	ELSIF subscriber IS NULL THEN
		PERFORM sys._raise_error('AQ004', '"subscriber" must not be null', 'Use sys.aq$_agent(name, null, null).');
	END IF;
	RETURN sys._check_agent(native, subscriber);
END $$;
COMMENT ON FUNCTION dbms_aqadm._subscriber(text, sys.aq$_agent) IS 'Internal: native name of a subscriber';

CREATE PROCEDURE dbms_aqadm.add_subscriber(queue_name text, subscriber sys.aq$_agent, rule text DEFAULT NULL,
	transformation text DEFAULT NULL, queue_to_queue boolean DEFAULT false, delivery_mode numeric DEFAULT 1)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	PERFORM aq.subscribe(native, dbms_aqadm._subscriber(native, subscriber), nullif(rule, ''),
		delivery_mode => dbms_aq._delivery_mode(delivery_mode));
	IF transformation <> '' THEN
		PERFORM sys._set_transformation(native, dbms_aqadm._subscriber(native, subscriber),
			sys._check_subscriber_transformation(native, transformation, quote_ident(current_user)::regrole));
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.add_subscriber(text, sys.aq$_agent, text, text, boolean, numeric) IS
'Add a subscriber: it gets the messages enqueued after this commits that meet its rule';

CREATE PROCEDURE dbms_aqadm.alter_subscriber(queue_name text, subscriber sys.aq$_agent, rule text, transformation text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	PERFORM aq.alter_subscriber(native, dbms_aqadm._subscriber(native, subscriber), nullif(rule, ''));
	PERFORM sys._set_transformation(native, dbms_aqadm._subscriber(native, subscriber),
		sys._check_subscriber_transformation(native, nullif(transformation, ''), quote_ident(current_user)::regrole));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_subscriber(text, sys.aq$_agent, text, text) IS 'Replace a subscriber''s rule and transformation; null: every message, as it is';

CREATE PROCEDURE dbms_aqadm.remove_subscriber(queue_name text, subscriber sys.aq$_agent)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	PERFORM aq.unsubscribe(native, dbms_aqadm._subscriber(native, subscriber));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.remove_subscriber(text, sys.aq$_agent) IS 'Remove a subscriber and what waits for it';

CREATE FUNCTION dbms_aqadm.queue_subscribers(queue_name text) RETURNS dbms_aqadm.aq$_subscriber_list_t
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	RETURN (SELECT array_agg(sys._agent_of(s.consumer) ORDER BY s.consumer COLLATE "C")
		FROM sys._queue_consumers(native) s WHERE s.subscriber);
END $$;
COMMENT ON FUNCTION dbms_aqadm.queue_subscribers(text) IS 'The subscribers of a queue';

-- Rights

CREATE FUNCTION dbms_aqadm._role(name text) RETURNS regrole
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	role regrole;
BEGIN
	IF upper(name) = 'PUBLIC' THEN
		RETURN NULL;
	ELSIF name IS NULL THEN
		PERFORM sys._raise_error('AQ004', '"grantee" must not be null', 'PUBLIC means every role.');
	END IF;
	RETURN quote_ident(sys._fold(name))::regrole;
END $$;
COMMENT ON FUNCTION dbms_aqadm._role(text) IS 'Internal: a role by its name; null: PUBLIC';

-- Oracle's ALL is not aq.grant_queue's, which includes subscribe.
CREATE FUNCTION dbms_aqadm._queue_privilege(privilege text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF upper(privilege) NOT IN ('ENQUEUE', 'DEQUEUE', 'ALL') THEN
		PERFORM sys._raise_error('AQ027', format('privilege "%s" does not exist', privilege),
			'The privileges are ENQUEUE, DEQUEUE and ALL; aq.grant_queue has others.');
	END IF;
	RETURN CASE upper(privilege) WHEN 'ALL' THEN 'enqueue, dequeue' ELSE lower(privilege) END;
END $$;
COMMENT ON FUNCTION dbms_aqadm._queue_privilege(text) IS 'Internal: the privileges of aq.grant_queue for one of Oracle''s';

CREATE PROCEDURE dbms_aqadm.grant_queue_privilege(privilege text, queue_name text, grantee text,
	grant_option boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.grant_queue(dbms_aqadm._queue(queue_name), pg_get_userbyid(dbms_aqadm._role(grantee)),
		dbms_aqadm._queue_privilege(privilege), coalesce(grant_option, false));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.grant_queue_privilege(text, text, text, boolean) IS
'Grant ENQUEUE, DEQUEUE or ALL on a queue to a role or PUBLIC. For the queue''s owner, and for those with the grant option';

CREATE PROCEDURE dbms_aqadm.revoke_queue_privilege(privilege text, queue_name text, grantee text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.revoke_queue(dbms_aqadm._queue(queue_name), pg_get_userbyid(dbms_aqadm._role(grantee)),
		dbms_aqadm._queue_privilege(privilege));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.revoke_queue_privilege(text, text, text) IS
'Revoke ENQUEUE, DEQUEUE or ALL on a queue from a role or PUBLIC. For the queue''s owner';

CREATE PROCEDURE dbms_aqadm.grant_type_access(user_name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._role(user_name);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.grant_type_access(text) IS 'Checks that the role exists: every role can use the types of the packages';

CREATE FUNCTION dbms_aqadm._system_role(privilege text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF privilege IS NULL THEN
		PERFORM sys._raise_error('AQ004', '"privilege" must not be null', 'The system privileges are ENQUEUE_ANY, DEQUEUE_ANY and MANAGE_ANY.');
	ELSIF upper(privilege) IN ('ENQUEUE_ANY', 'DEQUEUE_ANY', 'MANAGE_ANY') THEN
		RETURN 'aq_' || lower(privilege);
	END IF;
	PERFORM sys._raise_error('AQ027', format('privilege "%s" does not exist', privilege),
		'The system privileges are ENQUEUE_ANY, DEQUEUE_ANY and MANAGE_ANY.');
END $$;
COMMENT ON FUNCTION dbms_aqadm._system_role(text) IS 'Internal: the role behind a system privilege';

-- System privileges are memberships, which cannot be granted to PUBLIC.
CREATE FUNCTION dbms_aqadm._one_role(name text) RETURNS regrole
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	role regrole := dbms_aqadm._role(name);
BEGIN
	IF role IS NULL THEN
		PERFORM sys._raise_error('AQ060', 'system privileges of PUBLIC are not supported',
			'Name a role. Privileges on a queue can be granted to PUBLIC with dbms_aqadm.grant_queue_privilege.');
	END IF;
	RETURN role;
END $$;
COMMENT ON FUNCTION dbms_aqadm._one_role(text) IS 'Internal: a role by its name, not PUBLIC';

CREATE PROCEDURE dbms_aqadm.grant_system_privilege(privilege text, grantee text, admin_option boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	EXECUTE format('GRANT %I TO %s%s', dbms_aqadm._system_role(privilege), dbms_aqadm._one_role(grantee),
		CASE WHEN admin_option THEN ' WITH ADMIN OPTION' ELSE '' END);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.grant_system_privilege(text, text, boolean) IS
'Grant ENQUEUE_ANY, DEQUEUE_ANY or MANAGE_ANY: membership in the roles aq_enqueue_any, aq_dequeue_any, aq_manage_any';

CREATE PROCEDURE dbms_aqadm.revoke_system_privilege(privilege text, grantee text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	command text := format('REVOKE %I FROM %s', dbms_aqadm._system_role(privilege), dbms_aqadm._one_role(grantee));
	grantor name;
BEGIN
	-- revoke it for each grantor: from PostgreSQL 16 on, REVOKE alone revokes only the current role's grant
	FOR grantor IN SELECT r.rolname FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.grantor
			WHERE m.roleid = dbms_aqadm._system_role(privilege)::regrole AND m.member = dbms_aqadm._role(grantee) LOOP
		EXECUTE format('%s GRANTED BY %I', command, grantor);
	END LOOP;
	IF NOT FOUND THEN
		EXECUTE command;
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.revoke_system_privilege(text, text) IS
'Revoke ENQUEUE_ANY, DEQUEUE_ANY or MANAGE_ANY';

-- Purging

CREATE PROCEDURE dbms_aqadm.purge_queue_table(queue_table text, purge_condition text,
	purge_options dbms_aqadm.aq$_purge_options_t)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	in_table text := dbms_aqadm._queue_table(queue_table, missing_ok => true);
BEGIN
	PERFORM sys._purge(in_table, CASE WHEN in_table IS NULL THEN dbms_aqadm._queue(queue_table) END, purge_condition,
		coalesce(purge_options."block", false), dbms_aq._delivery_mode(purge_options.delivery_mode));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.purge_queue_table(text, text, dbms_aqadm.aq$_purge_options_t) IS
'Remove messages, also retained ones, in the caller''s transaction: all, or those that meet a
  condition over the columns of the view aq$..., called qtview in it. queue_table is a queue table,
  or a sharded queue.';

CREATE PROCEDURE dbms_aqadm.verify_queue_types(src_queue_name text, dest_queue_name text, OUT rc integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	rc := (sys._payload_type(dbms_aqadm._queue(src_queue_name)) = sys._payload_type(dbms_aqadm._queue(dest_queue_name)))::integer;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.verify_queue_types(text, text) IS 'Return 1 if two queues have the same payload type, else 0';

CREATE FUNCTION dbms_aqadm._only_local(destination text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF destination <> '' THEN
		PERFORM sys._raise_error('AQ060', format('queues of another database are not supported: "%s"', destination), 'Leave destination null.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aqadm._only_local(text) IS 'Internal: refuse a destination in another database';

CREATE PROCEDURE dbms_aqadm.verify_queue_types(src_queue_name text, dest_queue_name text, destination text, OUT rc integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._only_local(destination);
	CALL dbms_aqadm.verify_queue_types(src_queue_name, dest_queue_name, rc);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.verify_queue_types(text, text, text) IS 'Return 1 if two queues have the same payload type, else 0';

-- Parameters of queues and of the server

CREATE FUNCTION dbms_aqadm._parameter(queue_name text, param_name text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
BEGIN
	IF upper(param_name) IN ('SHARD_NUM', 'KEY_BASED_ENQUEUE', 'STICKY_DEQUEUE') THEN
		PERFORM dbms_aqadm._only_sharded(native, upper(param_name));
		RETURN native;
	END IF;
	PERFORM sys._raise_error('AQ005', format('queue parameter %s does not exist', coalesce('"' || param_name || '"', 'null')),
		'The parameters are SHARD_NUM, KEY_BASED_ENQUEUE and STICKY_DEQUEUE.');
END $$;
COMMENT ON FUNCTION dbms_aqadm._parameter(text, text) IS 'Internal: native name of a queue with this parameter';

CREATE PROCEDURE dbms_aqadm.get_queue_parameter(queue_name text, param_name text, OUT param_value numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._parameter(queue_name, param_name);
BEGIN
	param_value := CASE upper(param_name) WHEN 'SHARD_NUM' THEN (SELECT q.shards FROM aq.queues q WHERE q.queue_name = native) ELSE 0 END;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.get_queue_parameter(text, text) IS
'SHARD_NUM of a sharded queue; KEY_BASED_ENQUEUE and STICKY_DEQUEUE are always 0';

CREATE PROCEDURE dbms_aqadm.set_queue_parameter(queue_name text, param_name text, param_value numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._parameter(queue_name, param_name);
BEGIN
	IF upper(param_name) <> 'SHARD_NUM' THEN
		IF param_value <> 0 THEN
			PERFORM sys._raise_error('AQ060', format('%s is not supported', upper(param_name)),
				'A session enqueues into one shard; a queue with SHARD_NUM 1 has one order for all.');
		END IF;
	ELSE
		PERFORM aq.set_shards(native, param_value::integer);
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.set_queue_parameter(text, text, numeric) IS
'Set SHARD_NUM of a sharded queue, 1 to 32; the queue must be stopped for enqueue and never have been used';

CREATE PROCEDURE dbms_aqadm.unset_queue_parameter(queue_name text, param_name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqadm._parameter(queue_name, param_name);
BEGIN
	IF upper(param_name) = 'SHARD_NUM' THEN
		PERFORM aq.set_shards(native, current_setting('pgaq.default_shards')::integer);
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqadm.unset_queue_parameter(text, text) IS 'Set SHARD_NUM back to the parameter pgaq.default_shards';

CREATE PROCEDURE dbms_aqadm.get_min_streams_pool(OUT value numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT round(total_bytes / 1048576.0) FROM aq.message_cache $$;
COMMENT ON PROCEDURE dbms_aqadm.get_min_streams_pool() IS 'Size of the message cache in MB';
CREATE PROCEDURE dbms_aqadm.get_max_streams_pool(OUT value numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT round(total_bytes / 1048576.0) FROM aq.message_cache $$;
COMMENT ON PROCEDURE dbms_aqadm.get_max_streams_pool() IS 'Size of the message cache in MB';

CREATE FUNCTION dbms_aqadm._not_at_run_time() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sys._raise_error('AQ060', 'the size of the message cache cannot be changed while the server runs',
		'Set pgaq.message_cache_size and restart the server.');
END $$;
COMMENT ON FUNCTION dbms_aqadm._not_at_run_time() IS 'Internal: an error';

CREATE PROCEDURE dbms_aqadm.set_min_streams_pool(value numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT dbms_aqadm._not_at_run_time() $$;
COMMENT ON PROCEDURE dbms_aqadm.set_min_streams_pool(numeric) IS 'Refused: the parameter pgaq.message_cache_size is the size of the message cache';
CREATE PROCEDURE dbms_aqadm.set_max_streams_pool(value numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT dbms_aqadm._not_at_run_time() $$;
COMMENT ON PROCEDURE dbms_aqadm.set_max_streams_pool(numeric) IS 'Refused: the parameter pgaq.message_cache_size is the size of the message cache';

CREATE PROCEDURE dbms_aqadm.get_watermark(OUT wmvalue numeric)
LANGUAGE sql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT round(pg_size_bytes(current_setting('shared_buffers')) / 1048576.0) $$;
COMMENT ON PROCEDURE dbms_aqadm.get_watermark() IS 'Memory that buffered messages can be in before they go to disk, MB: the server''s shared buffers';
CREATE PROCEDURE dbms_aqadm.set_watermark(wmvalue numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._raise_error('AQ060', 'the memory for buffered messages cannot be changed while the server runs',
		'They are in the server''s buffers: set shared_buffers and restart the server.');
END $$;
COMMENT ON PROCEDURE dbms_aqadm.set_watermark(numeric) IS 'Refused: the parameter shared_buffers is the memory that buffered messages are in';

CREATE PROCEDURE dbms_aqadm.migrate_queue_table(queue_table text, compatible text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._queue_table(queue_table);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.migrate_queue_table(text, text) IS 'Accepted: queue tables have one format';

-- Only some roles may create queues.
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO aq_administrator_role;
