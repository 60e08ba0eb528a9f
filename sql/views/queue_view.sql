-- The views schema.aq$<queue> on the messages of one queue, with Oracle's columns.

CREATE FUNCTION aq._queue_view_text(native text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE AS $$
DECLARE
	q record;
BEGIN
	SELECT queue_id, queue_name, payload_type, multiple_consumers INTO q FROM aq.queues WHERE queue_name = native;
	RETURN format($view$SELECT aq._oracle_case(aq._bare_name(q.queue_name)) AS queue, m.msgid AS msg_id, m.correlation AS corr_id,
	m.priority AS msg_priority,
	CASE WHEN m.original_msgid IS NOT NULL AND m.state IN ('READY', 'LOCKED') THEN 'EXPIRED'
		WHEN m.state = 'LOCKED' THEN 'READY' WHEN m.state = 'WAITING' THEN 'WAIT' ELSE m.state END AS msg_state,
	m.ready_at AS delay, m.ready_at AS delay_timestamp,
	round(extract(epoch FROM m.expires_at - coalesce(m.ready_at, m.enqueue_time)))::integer AS expiration,
	m.enqueue_time AS enq_time, m.enqueue_time AS enq_timestamp, NULL::text AS enq_user_id, NULL::text AS enq_txn_id,
	m.dequeue_time AS deq_time, m.dequeue_time AS deq_timestamp, NULL::text AS deq_user_id, NULL::text AS deq_txn_id,
	m.attempts AS retry_count, aq._oracle_case(aq._name_schema(m.exception_queue)) AS exception_queue_owner,
	aq._oracle_case(aq._bare_name(m.exception_queue)) AS exception_queue, m.payload::%1$s AS user_data,
	NULL::uuid AS propagated_msgid, m.sender AS sender_name, NULL::text AS sender_address, NULL::integer AS sender_protocol,
	m.original_msgid, NULL::text AS original_queue_name, NULL::text AS original_queue_owner, NULL::text AS expiration_reason,
	aq._oracle_case(m.consumer) AS consumer_name, NULL::text AS address, NULL::integer AS protocol
FROM aq.queues q, LATERAL aq._messages(q.queue_id) m
WHERE q.queue_id = %2$s AND m.state NOT IN ('PURGED', 'EXPIRED')
	AND (m.state <> 'PROCESSED' OR m.dequeue_time > now() - q.retention)$view$, q.payload_type, q.queue_id);
END $$;
COMMENT ON FUNCTION aq._queue_view_text(text) IS 'Internal: definition of the view on a queue''s messages';

-- "schema.name" is what dbms_aqadm makes; the names of aq.create_queue have no schema.
CREATE FUNCTION aq._bare_name(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN strpos(native, '.') > 0 THEN substr(native, strpos(native, '.') + 1) ELSE native END;
COMMENT ON FUNCTION aq._bare_name(text) IS 'Internal: a queue''s name without its schema';
CREATE FUNCTION aq._name_schema(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN strpos(native, '.') > 0 THEN split_part(native, '.', 1) END;
COMMENT ON FUNCTION aq._name_schema(text) IS 'Internal: the schema in a queue''s name; null: it has none';

-- Names too long for a view's have none.
CREATE FUNCTION aq._queue_view_name(native text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN octet_length(aq._bare_name(native)) <= 60 THEN
	format('%I.%I', aq._name_schema(native), 'aq$' || aq._bare_name(native)) END;
COMMENT ON FUNCTION aq._queue_view_name(text) IS 'Internal: name of the view on a queue''s messages; null: there is none';

CREATE FUNCTION aq._make_queue_view(native text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
	view text := aq._queue_view_name(native);
BEGIN
	IF view IS NOT NULL THEN
		EXECUTE format('CREATE VIEW %s AS %s', view, aq._queue_view_text(native));
		EXECUTE format('COMMENT ON VIEW %s IS %L', view, format('Messages of queue %s', native));
	END IF;
END $$;
COMMENT ON FUNCTION aq._make_queue_view(text) IS 'Internal: make the view on a queue''s messages';

CREATE FUNCTION aq._drop_queue_view(native text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
	IF to_regclass(aq._queue_view_name(native)) IS NOT NULL THEN
		EXECUTE format('DROP VIEW %s', aq._queue_view_name(native));
	END IF;
END $$;
COMMENT ON FUNCTION aq._drop_queue_view(text) IS 'Internal: drop the view on a queue''s messages';
