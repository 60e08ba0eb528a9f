-- Notification: dbms_aq.register, unregister and post, on aq.register, aq.unregister and aq.post.

CREATE FUNCTION sys.aq$_reg_info(name text, namespace numeric, callback text, context bytea DEFAULT NULL) RETURNS sys.aq$_reg_info
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::sys.aq$_reg_info;
COMMENT ON FUNCTION sys.aq$_reg_info(text, numeric, text, bytea) IS 'Make a registration';
CREATE FUNCTION sys.aq$_reg_info(name text, namespace numeric, callback text, context bytea, anyctx jsonb, ctxtype numeric) RETURNS sys.aq$_reg_info
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, $5, $6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::sys.aq$_reg_info;
COMMENT ON FUNCTION sys.aq$_reg_info(text, numeric, text, bytea, jsonb, numeric) IS 'Make a registration';
CREATE FUNCTION sys.aq$_reg_info(name text, namespace numeric, callback text, context bytea, qosflags numeric, timeout numeric) RETURNS sys.aq$_reg_info
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, NULL, NULL, $5, NULL, $6, NULL, NULL, NULL, NULL, NULL)::sys.aq$_reg_info;
COMMENT ON FUNCTION sys.aq$_reg_info(text, numeric, text, bytea, numeric, numeric) IS 'Make a registration with a quality of service and a timeout';
CREATE FUNCTION sys.aq$_reg_info(name text, namespace numeric, callback text, context bytea, qosflags numeric, timeout numeric,
	ntfn_grouping_class numeric, ntfn_grouping_value numeric, ntfn_grouping_type numeric, ntfn_grouping_start_time timestamptz,
	ntfn_grouping_repeat_count numeric) RETURNS sys.aq$_reg_info
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, NULL, NULL, $5, NULL, $6, $7, $8, $9, $10, $11)::sys.aq$_reg_info;
COMMENT ON FUNCTION sys.aq$_reg_info(text, numeric, text, bytea, numeric, numeric, numeric, numeric, numeric, timestamptz, numeric) IS
'Make a registration with grouping by time';
CREATE FUNCTION sys.aq$_post_info(name text, namespace numeric, payload bytea) RETURNS sys.aq$_post_info
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3)::sys.aq$_post_info;
COMMENT ON FUNCTION sys.aq$_post_info(text, numeric, bytea) IS 'Make a notification for dbms_aq.post';

CREATE FUNCTION sys._check_count(given integer, wanted numeric, what text) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF wanted IS NULL OR wanted < 0 OR wanted > coalesce(given, 0) THEN
		PERFORM sys._raise_error('AQ069', format('%s has %s elements, not %s', what, coalesce(given, 0), coalesce(wanted::text, 'null')),
			'Pass the number of elements.');
	END IF;
END $$;
COMMENT ON FUNCTION sys._check_count(integer, numeric, text) IS 'Internal: has a list as many elements as the call says?';

-- A registration's name is schema.queue or schema.queue:consumer.
CREATE FUNCTION sys._registration_name(info sys.aq$_reg_info, OUT namespace text, OUT name text, OUT consumer text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	part text[];
BEGIN
	IF info.name IS NULL THEN
		PERFORM sys._raise_error('AQ150', 'the name of a registration must not be null');
	ELSIF info.namespace = 0 THEN
		namespace := 'anonymous';
		name := info.name;
		RETURN;
	ELSIF info.namespace IS DISTINCT FROM 1 THEN
		PERFORM sys._raise_error('AQ153', format('namespace %s does not exist', coalesce(info.namespace::text, 'null')),
			'Use dbms_aq.namespace_aq() or dbms_aq.namespace_anonymous().');
	END IF;
	part := regexp_match(info.name, '^((?:"[^"]*"|[^":])+)(?::("[^"]+"|[^":]+))?$');
	IF part IS NULL THEN
		PERFORM sys._raise_error('AQ150', format('the name of a registration "%s" is not valid', info.name),
			'Specify [schema.]queue, or [schema.]queue:consumer for a queue with several consumers.');
	END IF;
	namespace := 'queue';
	name := dbms_aq._queue(part[1]);
	consumer := coalesce((sys._split_name(part[2]))[2], part[2]);
	-- "C" is c, as in Oracle, unless there is a consumer of this name
	IF part[2] LIKE '"%' AND consumer = upper(consumer) AND NOT EXISTS (SELECT FROM sys._queue_consumers(name) c
			WHERE c.consumer = _registration_name.consumer) THEN
		consumer := lower(consumer);
	END IF;
END $$;
COMMENT ON FUNCTION sys._registration_name(sys.aq$_reg_info) IS 'Internal: native name and consumer of a registration, or an error';

-- A procedure without a schema is in the caller's current one.
CREATE FUNCTION sys._registration_callback(callback text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	part text[] := regexp_match(callback, '^(plsql://)([^.?]+)(\?.*)?$', 'i');
BEGIN
	IF part IS NULL OR (sys._callers_schemas())[1] IS NULL THEN
		RETURN callback;
	END IF;
	RETURN part[1] || quote_ident((sys._callers_schemas())[1]) || '.' || part[2] || coalesce(part[3], '');
END $$;
COMMENT ON FUNCTION sys._registration_callback(text) IS 'Internal: the callback of a registration, with a schema';

CREATE FUNCTION sys._add_registration(queue_name text, callback text, consumer text, context bytea, reliable boolean, once boolean,
	with_payload boolean, timeout interval, group_time interval, group_type text, group_start timestamptz, group_repeat integer,
	namespace text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_registration_add_early';
COMMENT ON FUNCTION sys._add_registration(text, text, text, bytea, boolean, boolean, boolean, interval, interval, text, timestamptz, integer, text) IS
'Internal: aq.register, also of a procedure that does not exist yet';

CREATE FUNCTION sys._register(info sys.aq$_reg_info) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	subject record := sys._registration_name(info);
	qos integer := coalesce(info.qosflags, 0);
	grouped boolean := coalesce(info.ntfn_grouping_class, 0) <> 0;
BEGIN
	IF qos & ~19 <> 0 THEN
		PERFORM sys._raise_error('AQ005', format('qosflags %s has an unknown bit', qos),
			'Add dbms_aq.ntfn_qos_reliable(), ntfn_qos_payload() and ntfn_qos_purge_on_ntfn().');
	ELSIF info.payloadcbk IS NOT NULL THEN
		PERFORM sys._raise_error('AQ060', 'a callback for payloads is not supported', 'Add dbms_aq.ntfn_qos_payload() to qosflags.');
	ELSIF grouped AND info.ntfn_grouping_class <> 1 THEN
		PERFORM sys._raise_error('AQ005', format('grouping class %s does not exist', info.ntfn_grouping_class),
			'Use dbms_aq.ntfn_grouping_class_time().');
	ELSIF grouped AND coalesce(info.ntfn_grouping_type, 1) NOT IN (1, 2) THEN
		PERFORM sys._raise_error('AQ005', format('grouping type %s does not exist', info.ntfn_grouping_type),
			'Use dbms_aq.ntfn_grouping_type_summary() or ntfn_grouping_type_last().');
	ELSIF coalesce(info.timeout, 0) < 0 OR (grouped AND (coalesce(info.ntfn_grouping_value, 0) < 0 OR coalesce(info.ntfn_grouping_repeat_count, 0) < -1)) THEN
		PERFORM sys._raise_error('AQ005', 'timeout, ntfn_grouping_value and ntfn_grouping_repeat_count must not be negative');
	END IF;
	RETURN sys._add_registration(subject.name, sys._registration_callback(info.callback), subject.consumer, info.context,
		reliable => qos & 1 <> 0, with_payload => qos & 2 <> 0, once => qos & 16 <> 0,
		timeout => make_interval(secs => nullif(info.timeout, 0)),
		group_time => CASE WHEN grouped THEN make_interval(secs => coalesce(nullif(info.ntfn_grouping_value, 0), 600)) END,
		group_type => CASE WHEN info.ntfn_grouping_type = 2 THEN 'last' ELSE 'summary' END,
		group_start => info.ntfn_grouping_start_time, group_repeat => nullif(nullif(info.ntfn_grouping_repeat_count, 0), -1),
		namespace => subject.namespace);
END $$;
COMMENT ON FUNCTION sys._register(sys.aq$_reg_info) IS 'Internal: one registration';

CREATE FUNCTION sys._unregister(info sys.aq$_reg_info) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	subject record := sys._registration_name(info);
	wanted text := sys._registration_callback(info.callback);
	ids bigint[];
BEGIN
	ids := ARRAY(SELECT r.registration_id FROM aq.registrations r WHERE r.role = current_user::text AND r.namespace = subject.namespace
		AND r.name = subject.name AND r.consumer IS NOT DISTINCT FROM subject.consumer AND (wanted IS NULL OR r.callback = wanted));
	IF ids = '{}' THEN
		PERFORM sys._raise_error('AQ155', format('there is no registration "%s" of role "%s" for this callback', info.name, current_user),
			'The view sys.user_subscr_registrations lists the registrations.');
	END IF;
	PERFORM aq.unregister(id) FROM unnest(ids) id;
END $$;
COMMENT ON FUNCTION sys._unregister(sys.aq$_reg_info) IS 'Internal: ends one registration';

CREATE PROCEDURE dbms_aq.register(reg_list sys.aq$_reg_info_list, reg_count numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._check_count(cardinality(reg_list::sys.aq$_reg_info[]), reg_count, 'reg_list');
	PERFORM sys._register(reg_list[number]) FROM generate_series(1, reg_count::integer) number;
END $$;
COMMENT ON PROCEDURE dbms_aq.register(sys.aq$_reg_info_list, numeric) IS
'Have procedures (callback plsql://schema.procedure, which may be made later) called in the
  background, addresses (http://..., https://..., mailto:...) or programs notified (callback null:
  see aq.wait), when queues have messages (namespace_aq(); name schema.queue or
  schema.queue:consumer), or when dbms_aq.post posts the name (namespace_anonymous()); see
  aq.register.';

CREATE PROCEDURE dbms_aq.unregister(reg_list sys.aq$_reg_info_list, reg_count numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._check_count(cardinality(reg_list::sys.aq$_reg_info[]), reg_count, 'reg_list');
	PERFORM sys._unregister(reg_list[number]) FROM generate_series(1, reg_count::integer) number;
END $$;
COMMENT ON PROCEDURE dbms_aq.unregister(sys.aq$_reg_info_list, numeric) IS
'End registrations of the current role with this name and callback; a null callback means any';

CREATE PROCEDURE dbms_aq.post(post_list sys.aq$_post_info_list, post_count numeric)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	info sys.aq$_post_info;
BEGIN
	PERFORM sys._check_count(cardinality(post_list::sys.aq$_post_info[]), post_count, 'post_list');
	FOR number IN 1 .. post_count LOOP
		info := post_list[number];
		IF info.namespace IS DISTINCT FROM 0 THEN
			PERFORM sys._raise_error('AQ153', format('notifications cannot be posted to namespace %s', coalesce(info.namespace::text, 'null')),
				'Use dbms_aq.namespace_anonymous().');
		END IF;
		PERFORM aq.post(info.name, info.payload);
	END LOOP;
END $$;
COMMENT ON PROCEDURE dbms_aq.post(sys.aq$_post_info_list, numeric) IS
'Send notifications, at the commit, to the registrations for these names in namespace_anonymous().
  For members of aq_user_role and aq_administrator_role.';
GRANT EXECUTE ON FUNCTION aq.post(text, bytea) TO aq_user_role, aq_administrator_role;

-- The arguments of a procedure of Oracle's form: src/notify/callback.c.

CREATE FUNCTION sys._notification_queue(n aq.notification) RETURNS text
LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN CASE WHEN (n).namespace = 'queue' THEN sys._oracle_quoted((n).name) ELSE (n).name END;
COMMENT ON FUNCTION sys._notification_queue(aq.notification) IS 'Internal: the name of the queue in quotes, as a program can give it back';

CREATE FUNCTION sys._notification_reg_info(n aq.notification) RETURNS sys.aq$_reg_info
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT ROW(sys._notification_queue(n) || coalesce(':' || sys._oracle_quoted_part((n).consumer), ''),
		CASE (n).namespace WHEN 'queue' THEN 1 ELSE 0 END, r.callback, (n).context, NULL, NULL,
		r.reliable::integer + 2 * r.with_payload::integer + 16 * r.once::integer, NULL, NULL,
		CASE WHEN r.group_time IS NOT NULL THEN 1 END, extract(epoch FROM r.group_time)::integer,
		CASE r.group_type WHEN 'summary' THEN 1 WHEN 'last' THEN 2 END, r.group_start, r.groups_left)::sys.aq$_reg_info
	FROM (SELECT) one LEFT JOIN aq.registrations r ON r.registration_id = (n).registration_id;
END;
COMMENT ON FUNCTION sys._notification_reg_info(aq.notification) IS 'Internal: the registration of a notification';

CREATE FUNCTION sys._notification_descriptor(n aq.notification) RETURNS sys.aq$_descriptor
LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN ROW(sys._notification_queue(n), sys._oracle_name((n).consumer),
	CASE WHEN (n).enqueue_time IS NOT NULL THEN (n).msgids[1] END,
	CASE WHEN (n).enqueue_time IS NOT NULL THEN ROW((n).priority,
		coalesce(extract(epoch FROM (n).ready_at - (n).enqueue_time)::integer, 0),
		coalesce(extract(epoch FROM (n).expires_at - coalesce((n).ready_at, (n).enqueue_time))::integer, -1),
		(n).correlation, (n).attempts, sys._oracle_name((n).exception_queue), (n).enqueue_time, 0,
		CASE WHEN (n).sender IS NOT NULL THEN ROW(sys._oracle_name((n).sender), NULL, NULL)::sys.aq$_agent END, (n).original_msgid, 1)::sys.msg_prop_t END,
	ROW(0)::sys.aq$_ntfn_descriptor, (n).msgids, (n).message_count)::sys.aq$_descriptor;
COMMENT ON FUNCTION sys._notification_descriptor(aq.notification) IS 'Internal: what the notification is of';
