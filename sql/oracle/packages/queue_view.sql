-- The views on messages with Oracle's columns: schema.aq$<queue> of a sharded queue; schema.<table>,
-- schema.aq$<table>, aq$<table>_s and aq$<table>_r of a queue table. They belong to the role that created the queue or queue table; other roles need
-- grants. Below them: purging by a condition over their columns.

-- dbms_aqadm makes names of the form "schema.name"; names of aq.create_queue have no schema.
CREATE FUNCTION sys._bare_name(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN strpos(native, '.') > 0 THEN substr(native, strpos(native, '.') + 1) ELSE native END;
COMMENT ON FUNCTION sys._bare_name(text) IS 'Internal: a queue''s name without its schema';
CREATE FUNCTION sys._name_schema(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN strpos(native, '.') > 0 THEN split_part(native, '.', 1) END;
COMMENT ON FUNCTION sys._name_schema(text) IS 'Internal: the schema in a queue''s name; null: it has none';

CREATE FUNCTION sys._seconds_between(later timestamptz, earlier timestamptz) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN round(extract(epoch FROM later - earlier));
COMMENT ON FUNCTION sys._seconds_between(timestamptz, timestamptz) IS 'Internal: whole seconds between two times';

-- Sharded queues

CREATE FUNCTION sys._payload(queue_id integer, payload text, as_type anyelement) RETURNS anyelement
LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_enqueue_payload_of_text';
COMMENT ON FUNCTION sys._payload(integer, text, anyelement) IS 'Internal: a payload given as text, with the privileges of the queue''s owner';

-- aq.messages of one queue: as a view's join the condition would not reach the functions that read the messages.
CREATE FUNCTION sys._messages(queue_name text) RETURNS SETOF aq.messages
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
	SELECT * FROM aq.messages m WHERE m.queue_name = $1;
END;
COMMENT ON FUNCTION sys._messages(text) IS 'Internal: the messages of one queue';

CREATE FUNCTION sys._buffered_messages(queue_name text) RETURNS SETOF aq.messages
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
	SELECT * FROM aq.messages m WHERE m.queue_name = $1 AND m.delivery_mode = 'buffered';
END;
COMMENT ON FUNCTION sys._buffered_messages(text) IS 'Internal: the buffered messages of one queue';

-- q is a row of aq.queues, m one of sys._messages or sys._buffered_messages.
CREATE FUNCTION sys._view_columns(payload_type text, multiple_consumers boolean) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN format($view$sys._oracle_case(sys._bare_name(q.queue_name)) AS queue, m.msgid AS msg_id, m.correlation AS corr_id,
	m.priority AS msg_priority,
	CASE WHEN q.queue_type = 'exception' AND m.state IN ('READY', 'LOCKED', 'LEASED') THEN 'EXPIRED'
		WHEN m.state = 'WAITING' THEN 'WAIT' WHEN m.in_memory THEN 'IN MEMORY' WHEN NOT m.in_memory THEN 'SPILLED'
		WHEN m.state IN ('LOCKED', 'LEASED') THEN 'READY' ELSE m.state END AS msg_state,
	m.ready_at AS delay, m.ready_at AS delay_timestamp,
	sys._seconds_between(m.expires_at, coalesce(m.ready_at, m.enqueue_time)) AS expiration,
	m.enqueue_time AS enq_time, m.enqueue_time AS enq_timestamp, NULL::text AS enq_user_id, NULL::text AS enq_txn_id,
	m.dequeue_time AS deq_time, m.dequeue_time AS deq_timestamp, NULL::text AS deq_user_id, NULL::text AS deq_txn_id,
	m.attempts AS retry_count, sys._oracle_case(sys._name_schema(m.exception_queue)) AS exception_queue_owner,
	sys._oracle_case(sys._bare_name(m.exception_queue)) AS exception_queue, sys._payload(q.queue_id, m.payload, NULL::%1$s) AS user_data,
	NULL::uuid AS propagated_msgid, m.sender AS sender_name, NULL::text AS sender_address, NULL::integer AS sender_protocol,
	m.original_msgid, NULL::text AS original_queue_name, NULL::text AS original_queue_owner, NULL::text AS expiration_reason%2$s$view$, payload_type,
	CASE WHEN multiple_consumers THEN
		', sys._oracle_case(m.consumer) AS consumer_name, NULL::text AS address, NULL::integer AS protocol' ELSE '' END);
END $$;
COMMENT ON FUNCTION sys._view_columns(text, boolean) IS 'Internal: columns of a view on messages, from aq.queues q and messages m';

CREATE FUNCTION sys._queue_view_text(native text, of_topics boolean DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	q record;
BEGIN
	SELECT queue_id, payload_type, multiple_consumers INTO q FROM aq.queues WHERE queue_name = native;
	RETURN format($view$SELECT %1$s
FROM aq.queues q, LATERAL sys._messages(q.queue_name) m
WHERE q.queue_id = %2$s AND m.state NOT IN ('PURGED', 'EXPIRED')
	AND (m.state <> 'PROCESSED' OR m.dequeue_time > now() - q.retention)$view$,
	sys._view_columns(q.payload_type::text, coalesce(of_topics, q.multiple_consumers)), q.queue_id);
END $$;
COMMENT ON FUNCTION sys._queue_view_text(text, boolean) IS
'Internal: definition of the view on a sharded queue''s messages, or of the like for a queue of a queue table, of topics or not';

-- There is no view if its name would be too long.
CREATE FUNCTION sys._queue_view_name(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length(sys._bare_name(native)) <= 60 THEN
	format('%I.%I', sys._name_schema(native), 'aq$' || sys._bare_name(native)) END;
COMMENT ON FUNCTION sys._queue_view_name(text) IS 'Internal: name of the view on a queue''s messages; null: there is none';

CREATE FUNCTION sys._make_queue_view(native text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	view text := sys._queue_view_name(native);
BEGIN
	IF view IS NOT NULL THEN
		PERFORM sys._run_ddl(format('CREATE VIEW %s AS %s', view, sys._queue_view_text(native)));
		PERFORM sys._run_ddl(format('COMMENT ON VIEW %s IS %L', view, format('Messages of queue %s', native)));
	END IF;
END $$;
COMMENT ON FUNCTION sys._make_queue_view(text) IS 'Internal: make the view on a queue''s messages';

-- Views of these names, unless another role has created an object of the name: identified by its comment, because a queue and a queue table may
-- have the same name.
CREATE FUNCTION sys._views_named(schema_name text, names text[], of_what text) RETURNS SETOF oid
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT c.oid FROM unnest($2) WITH ORDINALITY x (name, n) JOIN pg_class c ON c.relname = x.name JOIN pg_namespace s ON s.oid = c.relnamespace
	WHERE s.nspname = $1 AND c.relkind = 'v' AND strpos(obj_description(c.oid, 'pg_class'), $3) > 0
		AND EXISTS (SELECT FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
			WHERE r.ev_class = c.oid AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = 'sys._oracle_case(text)'::regprocedure)
	ORDER BY x.n;
END;
COMMENT ON FUNCTION sys._views_named(text, text[], text) IS 'Internal: the views of these names on messages or subscribers';

CREATE FUNCTION sys._queue_views(native text) RETURNS SETOF oid
LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN sys._views_named(sys._name_schema(native), ARRAY['aq$' || sys._bare_name(native)], format('of queue %s', native));
COMMENT ON FUNCTION sys._queue_views(text) IS 'Internal: the view on a queue''s messages, if there is one';

-- Queue tables

CREATE FUNCTION sys._table_consumers(queue_table text, OUT queue_id integer, OUT queue_name text, OUT "position" integer,
	OUT consumer text, OUT subscriber boolean, OUT rule text, OUT transformation text, OUT delivery_mode integer, OUT created timestamptz)
RETURNS SETOF record LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT q.queue_id, q.queue_name, c."position", c.consumer, c.subscriber, c.rule, c.transformation,
		c.delivery_mode, c.created
	FROM aq.queues q, LATERAL sys._queue_consumers(q.queue_name) c
	WHERE q.queue_table = $1;
END;
COMMENT ON FUNCTION sys._table_consumers(text) IS 'Internal: the consumers of all queues of a queue table';

-- In a topic the table c has a row for each consumer of a message; a message in an exception queue has none.  A consumer that is newer
-- than the message has the position of a recipient that is gone.
CREATE FUNCTION sys._table_view_text(native text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	state text := 's.state, s.attempts, s.dequeue_time, s.dequeue_user, s.dequeue_xid';
BEGIN
	SELECT * INTO t FROM aq.queue_tables WHERE queue_table = native;
	RETURN format($view$SELECT sys._oracle_case(sys._bare_name(q.queue_name)) AS queue, m.msgid AS msg_id, m.correlation AS corr_id,
	m.priority AS msg_priority,
	CASE s.state WHEN 0 THEN 'READY' WHEN 1 THEN 'WAIT' WHEN 2 THEN 'PROCESSED' WHEN 5 THEN 'READY' ELSE 'EXPIRED' END AS msg_state,
	m.ready_at AS delay, m.ready_at AS delay_timestamp,
	sys._seconds_between(m.expires_at, coalesce(m.ready_at, m.enqueue_time)) AS expiration,
	m.enqueue_time AS enq_time, m.enqueue_time AS enq_timestamp,
	sys._oracle_case(pg_get_userbyid(m.enqueue_user)) AS enq_user_id, m.enqueue_xid::text AS enq_txn_id,
	s.dequeue_time AS deq_time, s.dequeue_time AS deq_timestamp,
	sys._oracle_case(pg_get_userbyid(s.dequeue_user)) AS deq_user_id, s.dequeue_xid::text AS deq_txn_id,
	s.attempts AS retry_count, sys._oracle_case(sys._name_schema(m.exception_queue)) AS exception_queue_owner,
	sys._oracle_case(sys._bare_name(m.exception_queue)) AS exception_queue, m.payload AS user_data,
	NULL::uuid AS propagated_msgid, m.sender AS sender_name, NULL::text AS sender_address, NULL::integer AS sender_protocol,
	m.original_msgid, sys._oracle_case(sys._bare_name(m.dead_letter ->> 'queue')) AS original_queue_name,
	sys._oracle_case(sys._name_schema(m.dead_letter ->> 'queue')) AS original_queue_owner,
	CASE m.dead_letter ->> 'reason' WHEN 'expired' THEN 'TIME_EXPIRATION' WHEN 'rejected' THEN 'REJECTED'
		WHEN 'retries' THEN 'MAX_RETRY_EXCEEDED' WHEN 'lease' THEN 'MAX_RETRY_EXCEEDED' END AS expiration_reason%3$s
FROM aq_data.t%1$s m %4$s LEFT JOIN aq.queues q ON q.queue_id = m.queue_id WHERE m."position" >= 0 %5$s
UNION ALL SELECT %6$s
FROM aq.queues q, LATERAL sys._buffered_messages(q.queue_name) m WHERE q.queue_table = %2$L AND m.state <> 'EXPIRED'$view$,
	t.queue_table_id, native,
	CASE WHEN t.multiple_consumers THEN
		', sys._oracle_case(n.consumer) AS consumer_name, NULL::text AS address, NULL::integer AS protocol' ELSE '' END,
	CASE WHEN t.multiple_consumers THEN format($join$LEFT JOIN aq_data.c%1$s c USING (queue_id, key1, key2, step)
	CROSS JOIN LATERAL (SELECT coalesce(c.state, m.state) AS state, coalesce(c.attempts, m.attempts) AS attempts,
		coalesce(c.dequeue_time, m.dequeue_time) AS dequeue_time, coalesce(c.dequeue_user, m.dequeue_user) AS dequeue_user,
		coalesce(c.dequeue_xid, m.dequeue_xid) AS dequeue_xid) s
	LEFT JOIN sys._table_consumers(%2$L) n ON n.queue_id = m.queue_id AND n."position" = c."position"
		AND n.created <= m.enqueue_time$join$,
		t.queue_table_id, native)
	ELSE 'CROSS JOIN LATERAL (SELECT m.state, m.attempts, m.dequeue_time, m.dequeue_user, m.dequeue_xid) s' END,
	-- rows of a removed consumer no longer count as messages; the worker deletes them
	CASE WHEN t.multiple_consumers THEN 'AND coalesce(c."position", 0) >= 0 AND NOT (s.state <> 2 AND c."position" IS NOT NULL '
		'AND n."position" IS NULL AND q.queue_id IS NOT NULL)' ELSE '' END,
	sys._view_columns('payload_type', t.multiple_consumers));
END $$;
COMMENT ON FUNCTION sys._table_view_text(text) IS 'Internal: definition of the view aq$... on a queue table''s messages';

CREATE FUNCTION sys._table_views(native text) RETURNS SETOF oid
LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN sys._views_named(sys._name_schema(native), ARRAY['aq$' || sys._bare_name(native) || '_s', 'aq$' || sys._bare_name(native) || '_r',
	'aq$' || sys._bare_name(native), sys._bare_name(native)], format('of queue table %s', native));
COMMENT ON FUNCTION sys._table_views(text) IS 'Internal: the views of a queue table that there are';

-- sys._make_views makes them: it reads the definitions as the role pgaq, which may use aq_data, with the payload's type for "payload_type", and makes
-- the views as the queue table's owner, to which they belong.
CREATE FUNCTION sys._table_view_definitions(native text, OUT view_name text, OUT definition text, OUT comment text)
RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t record;
	schema_name text := sys._name_schema(native);
	table_name text := sys._bare_name(native);
BEGIN
	IF octet_length(table_name) > 58 THEN
		PERFORM sys._raise_error('AQ087', format('queue table name "%s" is too long', table_name),
			'It has at most 58 bytes: its views are named aq$..., aq$..._s and aq$..._r.');
	END IF;
	SELECT * INTO STRICT t FROM aq.queue_tables WHERE queue_table = native;
	IF NOT has_schema_privilege(t.owner, schema_name, 'CREATE') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for schema %s', schema_name),
			HINT = 'The views of a queue table belong to its owner, which needs the CREATE privilege on its schema.';
	END IF;
	RETURN QUERY SELECT table_name, format($view$SELECT
	sys._oracle_case(sys._bare_name(q.queue_name)) AS q_name,
	m.msgid, m.correlation AS corrid, m.priority, CASE m.state WHEN 5 THEN 0 ELSE least(m.state, 3) END AS state, m.ready_at AS delay,
	sys._seconds_between(m.expires_at, coalesce(m.ready_at, m.enqueue_time)) AS expiration, m.next_at AS time_manager_info,
	m.step AS local_order_no, 0 AS chain_no, NULL::bigint AS cscn, NULL::bigint AS dscn, m.enqueue_time AS enq_time,
	sys._oracle_case(pg_get_userbyid(m.enqueue_user)) AS enq_uid, m.enqueue_xid::text AS enq_tid, m.dequeue_time AS deq_time,
	sys._oracle_case(pg_get_userbyid(m.dequeue_user)) AS deq_uid, m.dequeue_xid::text AS deq_tid, m.attempts AS retry_count,
	sys._oracle_case(sys._name_schema(m.exception_queue)) AS exception_qschema,
	sys._oracle_case(sys._bare_name(m.exception_queue)) AS exception_queue, 0 AS step_no, 0 AS recipient_key,
	NULL::uuid AS dequeue_msgid, m.sender AS sender_name, NULL::text AS sender_address, NULL::integer AS sender_protocol,
	m.payload AS user_data, m.properties AS user_prop
FROM aq_data.t%1$s m LEFT JOIN aq.queues q ON q.queue_id = m.queue_id WHERE m."position" >= 0$view$, t.queue_table_id),
		format('Messages of queue table %s', native);
	RETURN QUERY SELECT 'aq$' || table_name, sys._table_view_text(native),
		format('Messages of queue table %s, for each consumer', native);
	IF t.multiple_consumers THEN
		RETURN QUERY SELECT 'aq$' || table_name || '_s', format($view$SELECT
	sys._oracle_case(sys._bare_name(c.queue_name)) AS queue, sys._oracle_case(c.consumer) AS name, NULL::text AS address,
	NULL::integer AS protocol, sys._oracle_case(c.transformation) AS trans_name, sys._oracle_delivery(c.delivery_mode) AS delivery_mode,
	'FALSE' AS queue_to_queue
FROM sys._table_consumers(%L) c WHERE c.subscriber$view$, native), format('Subscribers of queue table %s', native);
		RETURN QUERY SELECT 'aq$' || table_name || '_r', format($view$SELECT
	sys._oracle_case(sys._bare_name(c.queue_name)) AS queue, sys._oracle_case(c.consumer) AS name, NULL::text AS address,
	NULL::integer AS protocol, c.rule, NULL::text AS rule_set, sys._oracle_case(c.transformation) AS trans_name
FROM sys._table_consumers(%L) c WHERE c.subscriber AND c.rule IS NOT NULL$view$, native),
			format('Subscribers with rules of queue table %s', native);
	END IF;
END $$;
COMMENT ON FUNCTION sys._table_view_definitions(text) IS 'Internal: the views of a queue table';

CREATE FUNCTION sys._make_views(native text) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_make_views';
COMMENT ON FUNCTION sys._make_views(text) IS 'Internal: make the views of a queue table, once';

CREATE FUNCTION sys._drop_views(native text, of_table boolean) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_queue_table_drop_views';
COMMENT ON FUNCTION sys._drop_views(text, boolean) IS 'Internal: drop the views of a queue table, or the view of a queue, for every role that can administer it';

-- Oracle's source.user_data.name is (source.user_data).name in PostgreSQL. Quoted parts are not changed.
CREATE FUNCTION sys._in_parentheses(expression text, "table" text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT string_agg(CASE WHEN length(part[1]) > 1 AND part[1] !~ '^[''"]' THEN '(' || part[1] || ')' ELSE part[1] END, '' ORDER BY n)
	FROM regexp_matches(expression,
		'(''[^'']*''|"[^"]*"|\m' || "table" || '\s*\.\s*user_data(?=\s*\.)|.)', 'gi') WITH ORDINALITY AS p (part, n);
END;
COMMENT ON FUNCTION sys._in_parentheses(text, text) IS 'Internal: an expression with Oracle''s way to name an attribute of user_data as PostgreSQL has it';

-- A role that may administer a queue table may have no privilege on its view: then it sees the messages as aq.messages shows them.
-- The view's owner can change its definition, so it is not read here for other roles.
CREATE FUNCTION sys._meeting_condition(native text, in_table text, condition text, OUT consumer text, OUT ids uuid[])
RETURNS SETOF record LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	view text := quote_ident(sys._name_schema(in_table)) || '.' || quote_ident('aq$' || sys._bare_name(in_table));
	source text := CASE WHEN (SELECT pg_get_userbyid(c.relowner) = current_user FROM pg_class c WHERE c.oid = to_regclass(view)) THEN view
		ELSE '(' || sys._queue_view_text(native, (SELECT multiple_consumers FROM aq.queue_tables WHERE queue_table = in_table)) || ')' END;
BEGIN
	IF NOT (SELECT q.may_dequeue FROM aq.queues q WHERE q.queue_name = native) THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied to read the messages of queue %s', native),
			HINT = 'Purging by a condition also requires the dequeue privilege.';
	END IF;
	RETURN QUERY EXECUTE format('SELECT %s, array_agg(msg_id) FROM %s AS qtview '
		'WHERE queue = sys._oracle_case(sys._bare_name(%L)) AND (%s) GROUP BY 1',
		CASE WHEN (SELECT multiple_consumers FROM sys._describe_queue(native)) THEN 'consumer_name' ELSE 'NULL::text' END,
		source, native, sys._in_parentheses(condition, 'qtview'));
EXCEPTION
	WHEN syntax_error_or_access_rule_violation THEN
		IF SQLSTATE = '42501' THEN	-- insufficient_privilege
			RAISE;
		END IF;
		PERFORM sys._raise_error('AQ018', format('condition "%s" is not valid: %s', condition, SQLERRM),
			'A condition is one SQL expression over the columns of the view aq$..., called qtview, as in qtview.msg_state = ''READY''.');
END $$;
COMMENT ON FUNCTION sys._meeting_condition(text, text, text) IS 'Internal: ids of the messages to purge, by consumer';

CREATE FUNCTION sys._consumer_shown_as(native text, name text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	names text[] := (SELECT array_agg(c.consumer) FROM sys._queue_consumers(native) c WHERE sys._oracle_case(c.consumer) = name);
BEGIN
	IF cardinality(names) > 1 THEN
		PERFORM sys._raise_error('AQ060', format('a condition that cannot tell consumers %s of queue "%s" apart is not supported',
				(SELECT string_agg('"' || n || '"', ' and ' ORDER BY n COLLATE "C") FROM unnest(names) n), native),
			'Purge what is before one of them with aq.purge_queue.');
	END IF;
	RETURN names[1];
END $$;
COMMENT ON FUNCTION sys._consumer_shown_as(text, text) IS 'Internal: native name of the consumer that a view shows under this name';

CREATE FUNCTION sys._purge_by_condition(native text, in_table text, condition text, delivery_mode text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	chosen record;
	consumer text;
BEGIN
	FOR chosen IN SELECT * FROM sys._meeting_condition(native, in_table, condition) LOOP
		consumer := sys._consumer_shown_as(native, chosen.consumer);
		PERFORM aq.purge_queue(native, consumer, format('msgid = ANY (%L::pg_catalog.uuid[])', chosen.ids), delivery_mode);
		IF delivery_mode IS DISTINCT FROM 'buffered' THEN
			PERFORM sys._purge_processed(native, consumer, chosen.ids);
		END IF;
	END LOOP;
END $$;
COMMENT ON FUNCTION sys._purge_by_condition(text, text, text, text) IS 'Internal: purge the messages of a queue, also retained ones, that meet a condition';

-- A condition names the columns of the view aq$...; the messages it finds are purged by their ids.
CREATE FUNCTION sys._purge(in_table text, queue_name text, condition text, "block" boolean, delivery_mode text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	native text;
BEGIN
	-- in one order in all sessions that purge, so that they cannot deadlock
	FOR native IN SELECT n FROM (SELECT q.queue_name FROM aq.queues q WHERE q.queue_table = in_table
			UNION ALL SELECT _purge.queue_name WHERE in_table IS NULL) AS x (n) ORDER BY n COLLATE "C" LOOP
		IF nullif(trim(condition), '') IS NULL THEN
			PERFORM aq.purge_queue(native, delivery_mode => _purge.delivery_mode, "block" => _purge."block");
			IF _purge.delivery_mode IS DISTINCT FROM 'buffered' THEN
				PERFORM sys._purge_processed(native, NULL, NULL);
			END IF;
			CONTINUE;
		END IF;
		-- so that no message is found that another session takes meanwhile
		IF "block" THEN
			PERFORM aq.purge_queue(native, condition => 'false', "block" => true);
		END IF;
		PERFORM sys._purge_by_condition(native, in_table, condition, delivery_mode);
	END LOOP;
END $$;
COMMENT ON FUNCTION sys._purge(text, text, text, boolean, text) IS
'Internal: purge the queues of a queue table, or a sharded queue';

-- These run as the role pgaq.
REVOKE EXECUTE ON FUNCTION sys._views_named(text, text[], text), sys._queue_views(text), sys._table_view_text(text), sys._table_views(text),
	sys._table_view_definitions(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sys._views_named(text, text[], text), sys._queue_views(text), sys._table_view_text(text), sys._table_views(text),
	sys._table_view_definitions(text) TO pgaq;
