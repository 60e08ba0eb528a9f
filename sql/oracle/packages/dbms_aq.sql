-- Package dbms_aq: enqueue and dequeue with Oracle's interface.
-- The procedures use schema aq; those that wait are in C (src/queue/calls/packages.c)
-- and call the functions named _... here for each attempt.

-- Records with named fields, for calls outside of PL/pgSQL.

CREATE FUNCTION dbms_aq.enqueue_options_t(visibility numeric DEFAULT NULL, relative_msgid uuid DEFAULT NULL,
	sequence_deviation numeric DEFAULT NULL, transformation text DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.enqueue_options_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, $5)::dbms_aq.enqueue_options_t;
COMMENT ON FUNCTION dbms_aq.enqueue_options_t(numeric, uuid, numeric, text, numeric) IS
'Make a record of enqueue options; name the fields that you set';

CREATE FUNCTION dbms_aq.dequeue_options_t(consumer_name text DEFAULT NULL, dequeue_mode numeric DEFAULT NULL,
	navigation numeric DEFAULT NULL, visibility numeric DEFAULT NULL, wait numeric DEFAULT NULL, msgid uuid DEFAULT NULL,
	correlation text DEFAULT NULL, deq_condition text DEFAULT NULL, signature sys.aq$_sig_prop DEFAULT NULL,
	transformation text DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.dequeue_options_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)::dbms_aq.dequeue_options_t;
COMMENT ON FUNCTION dbms_aq.dequeue_options_t(text, numeric, numeric, numeric, numeric, uuid, text, text, sys.aq$_sig_prop,
	text, numeric) IS
'Make a record of dequeue options; name the fields that you set';

CREATE FUNCTION dbms_aq.message_properties_t(priority numeric DEFAULT NULL, delay numeric DEFAULT NULL,
	expiration numeric DEFAULT NULL, correlation text DEFAULT NULL, attempts numeric DEFAULT NULL,
	recipient_list dbms_aq.aq$_recipient_list_t DEFAULT NULL, exception_queue text DEFAULT NULL,
	enqueue_time timestamptz DEFAULT NULL, state numeric DEFAULT NULL, sender_id sys.aq$_agent DEFAULT NULL,
	original_msgid uuid DEFAULT NULL, signature sys.aq$_sig_prop DEFAULT NULL, transaction_group text DEFAULT NULL,
	user_property jsonb DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.message_properties_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)::dbms_aq.message_properties_t;
COMMENT ON FUNCTION dbms_aq.message_properties_t(numeric, numeric, numeric, text, numeric, dbms_aq.aq$_recipient_list_t,
	text, timestamptz, numeric, sys.aq$_agent, uuid, sys.aq$_sig_prop, text, jsonb, numeric) IS
'Make a record of message properties; name the fields that you set';

-- Checks and translations. Checks that most calls need are inlined in the functions: a call within the package costs as much as checking ten options.

CREATE FUNCTION dbms_aq._queue(queue_name text, privilege text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	native text := sys._resolve_queue(queue_name, privilege);
BEGIN
	IF native IS NULL THEN
		IF sys._split_name(queue_name) IS NULL THEN
			PERFORM sys._raise_error('AQ061', CASE WHEN queue_name IS NULL THEN 'queue name must not be null'
				ELSE format('queue name "%s" is not valid', queue_name) END,
				'Specify [schema.]name; a part that is not an identifier must be in double quotes.');
		END IF;
		PERFORM sys._raise_error('AQ062', format('queue "%s" does not exist', queue_name),
			format('Create it with dbms_aqadm, or ask its owner for the %s privilege (dbms_aqadm.grant_queue_privilege).', privilege));
	END IF;
	RETURN native;
END $$;
COMMENT ON FUNCTION dbms_aq._queue(text, text) IS 'Internal: native name of a queue, or an error';

CREATE FUNCTION sys._check_gap(list sys.aq$_agent[], code text, what text) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF array_ndims(list) = 1 AND array_position(list, NULL) IS NOT NULL THEN
		PERFORM sys._raise_error(code, format('the %s list has a gap: element %s is null', what, array_position(list, NULL)),
			'Lists are arrays: number their elements 1, 2, 3, ...');
	END IF;
END $$;
COMMENT ON FUNCTION sys._check_gap(sys.aq$_agent[], text, text) IS 'Internal: an error when an element of a list is missing';

CREATE FUNCTION dbms_aq._recipients(queue text, list sys.aq$_agent[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	agent sys.aq$_agent;
	names text[];
BEGIN
	IF cardinality(list) > 1024 THEN
		PERFORM sys._raise_error('AQ074', format('a recipient list has at most 1024 agents, not %s', cardinality(list)));
	END IF;
	PERFORM sys._check_gap(list, 'AQ073', 'recipient');
	FOREACH agent IN ARRAY list LOOP
		IF agent.name IS NULL AND agent.address IS NULL THEN
			PERFORM sys._raise_error('AQ073', format('recipient %s of the list has neither name nor address',
				coalesce(cardinality(names), 0) + 1));
		END IF;
		PERFORM sys._check_local(queue, agent);
		names := names || sys._agent_name(agent.name);
	END LOOP;
	RETURN names;
END $$;
COMMENT ON FUNCTION dbms_aq._recipients(text, sys.aq$_agent[]) IS 'Internal: native names of the recipients';

CREATE FUNCTION sys._check_local(queue text, agent sys.aq$_agent) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF agent.address IS NOT NULL AND sys._resolve_queue(agent.address, 'any') IS DISTINCT FROM queue THEN
		IF sys._split_name(split_part(agent.address, '@', 1)) IS NULL THEN
			PERFORM sys._raise_error('AQ088', format('agent address "%s" is not valid', agent.address),
				'An address is [schema.]queue.');
		END IF;
		PERFORM sys._raise_error('AQ060', format('propagation to "%s" is not supported', agent.address),
			'Leave the address null: the consumer dequeues from the queue itself.');
	ELSIF agent.name IS NULL THEN
		PERFORM sys._raise_error('AQ089', 'the agent has no name', 'Specify the name of a consumer.');
	ELSIF coalesce(agent.protocol, 0) <> 0 THEN
		PERFORM sys._raise_error('AQ060', format('protocol %s of agent "%s" is not supported', agent.protocol, agent.name),
			'Leave the protocol null.');
	END IF;
END $$;
COMMENT ON FUNCTION sys._check_local(text, sys.aq$_agent) IS 'Internal: the agent must be a consumer of this queue';

CREATE FUNCTION dbms_aq._delivery_mode(delivery_mode numeric) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF delivery_mode NOT IN (1, 2, 3) THEN
		PERFORM sys._raise_error('AQ115', format('delivery mode %s does not exist', delivery_mode),
			'Use dbms_aq.persistent(), buffered() or persistent_or_buffered().');
	END IF;
	RETURN CASE delivery_mode WHEN 2 THEN 'buffered' WHEN 3 THEN 'persistent_or_buffered' END;
END $$;
COMMENT ON FUNCTION dbms_aq._delivery_mode(numeric) IS 'Internal: what schema aq calls it; null: persistent';

CREATE FUNCTION dbms_aq._check_immediate(visibility integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF visibility IS DISTINCT FROM 1 THEN
		PERFORM sys._raise_error('AQ116', 'buffered messages require immediate visibility', 'Set visibility to dbms_aq.immediate().');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aq._check_immediate(integer) IS 'Internal: buffered messages are no part of the caller''s transaction';

CREATE FUNCTION dbms_aq._put(queue_name text, o dbms_aq.enqueue_options_t, p dbms_aq.message_properties_t)
RETURNS dbms_aq._put_t
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	put dbms_aq._put_t;
BEGIN
	put.queue := coalesce(sys._resolve_queue(queue_name, 'enqueue'), dbms_aq._queue(queue_name, 'enqueue'));
	IF o.visibility NOT IN (1, 2) THEN
		PERFORM sys._raise_error('AQ065', format('visibility %s does not exist', o.visibility),
			'Use dbms_aq.on_commit() or dbms_aq.immediate().');
	END IF;
	IF o.sequence_deviation NOT IN (2, 3) THEN
		PERFORM sys._raise_error('AQ075', format('sequence deviation %s does not exist', o.sequence_deviation),
			'Use dbms_aq.before(), dbms_aq.top() or null.');
	ELSIF o.sequence_deviation = 2 AND o.relative_msgid IS NULL THEN
		PERFORM sys._raise_error('AQ076', 'sequence deviation before requires a message', 'Specify its id as relative_msgid.');
	END IF;
	put.deviation := CASE o.sequence_deviation WHEN 2 THEN 'before' WHEN 3 THEN 'top' END;
	IF put.deviation = 'before' THEN
		put.relative_msgid := o.relative_msgid;
	END IF;
	IF o.delivery_mode = 2 THEN
		PERFORM dbms_aq._check_immediate(o.visibility);
		put.delivery_mode := 'buffered';
	ELSIF o.delivery_mode <> 1 THEN
		PERFORM dbms_aq._delivery_mode(o.delivery_mode);
	END IF;
	put.transformation := nullif(o.transformation, '');

	put.priority := p.priority;
	IF p.delay < 0 THEN
		PERFORM sys._raise_error('AQ021', format('delay %s is negative', p.delay), 'Specify seconds, or dbms_aq.no_delay().');
	ELSIF p.delay > 0 THEN
		put.delay := make_interval(secs => p.delay);
	END IF;
	IF p.expiration < -1 THEN
		PERFORM sys._raise_error('AQ022', format('expiration %s is negative', p.expiration),
			'Specify seconds, or dbms_aq.never().');
	ELSIF p.expiration = 0 THEN
		put.expiration := '1 microsecond';
	ELSIF p.expiration > 0 THEN
		put.expiration := make_interval(secs => p.expiration);
	END IF;
	put.correlation := nullif(p.correlation, '');
	IF cardinality(p.recipient_list) > 0 THEN
		put.recipients := dbms_aq._recipients(put.queue, p.recipient_list);
	END IF;
	put.sender := (p.sender_id).name;
	IF p.exception_queue <> '' THEN
		put.exception_queue := dbms_aq._queue(p.exception_queue, 'enqueue');
	END IF;
	put.properties := p.user_property;
	RETURN put;
END $$;
COMMENT ON FUNCTION dbms_aq._put(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t) IS
'Internal: the arguments of aq.enqueue';

CREATE FUNCTION dbms_aq._take(queue_name text, o dbms_aq.dequeue_options_t) RETURNS dbms_aq._take_t
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	take dbms_aq._take_t;
BEGIN
	/* an empty text is a null, as in Oracle */
	o.consumer_name := nullif(o.consumer_name, '');
	o.correlation := nullif(o.correlation, '');
	o.deq_condition := nullif(o.deq_condition, '');
	o.transformation := nullif(o.transformation, '');
	take.queue := coalesce(sys._resolve_queue(queue_name, 'dequeue'), dbms_aq._queue(queue_name, 'dequeue'));
	take.mode := CASE coalesce(o.dequeue_mode, 3) WHEN 1 THEN 'browse' WHEN 2 THEN 'locked' WHEN 3 THEN 'remove'
		WHEN 4 THEN 'remove_nodata' END;
	IF take.mode IS NULL THEN
		PERFORM sys._raise_error('AQ066', format('dequeue mode %s does not exist', o.dequeue_mode),
			'Use dbms_aq.browse(), locked(), remove() or remove_nodata().');
	END IF;
	take.navigation := CASE coalesce(o.navigation, 3) WHEN 1 THEN 'first_message' WHEN 2 THEN 'next_transaction'
		WHEN 3 THEN 'next_message' WHEN 4 THEN 'first_message_multi_group' WHEN 5 THEN 'next_message_multi_group' END;
	IF take.navigation IS NULL THEN
		PERFORM sys._raise_error('AQ067', format('navigation %s does not exist', o.navigation),
			'Use dbms_aq.first_message(), next_message() or next_transaction().');
	END IF;
	IF o.visibility NOT IN (1, 2) THEN
		PERFORM sys._raise_error('AQ065', format('visibility %s does not exist', o.visibility),
			'Use dbms_aq.on_commit() or dbms_aq.immediate().');
	END IF;
	take.delivery := coalesce(o.delivery_mode, 1);
	IF take.delivery <> 1 THEN
		take.delivery_mode := dbms_aq._delivery_mode(o.delivery_mode);
		IF take.mode <> 'browse' THEN
			PERFORM dbms_aq._check_immediate(o.visibility);
		END IF;
	END IF;
	take.timeout := coalesce(o.wait, -1);
	IF take.timeout < -1 THEN
		PERFORM sys._raise_error('AQ068', format('wait time %s is negative', o.wait),
			'Specify seconds, dbms_aq.no_wait() or dbms_aq.forever().');
	END IF;
	IF o.msgid IS NOT NULL AND (o.correlation IS NOT NULL OR o.deq_condition IS NOT NULL) THEN
		PERFORM sys._raise_error('AQ070', 'msgid cannot be combined with correlation or deq_condition',
			'A message id names exactly one message: leave the others null.');
	END IF;
	IF o.consumer_name IS NOT NULL THEN
		IF (SELECT exception FROM sys._describe_queue(take.queue)) THEN
			PERFORM sys._raise_error('AQ072', format('queue "%s" is an exception queue, which has no consumers', take.queue),
				'Leave consumer_name null.');
		END IF;
		/* a text that is not a name matches no consumer */
		take.consumer := coalesce((sys._split_name(o.consumer_name))[2], o.consumer_name);
		take.transformation := (SELECT sys._check_subscriber_transformation(take.queue, t.transformation, t.chosen_by)
			FROM sys._subscriber_transformation(take.queue, take.consumer) t);
	END IF;
	take.correlation := o.correlation;
	take.condition := o.deq_condition;
	take.msgid := o.msgid;
	take.selective := take.correlation IS NOT NULL OR take.condition IS NOT NULL;
	/* the call's own comes first */
	take.restricted := o.transformation IS NULL;
	take.transformation := coalesce(o.transformation, take.transformation);
	RETURN take;
END $$;
COMMENT ON FUNCTION dbms_aq._take(text, dbms_aq.dequeue_options_t) IS 'Internal: the arguments of aq.dequeue_full';

CREATE FUNCTION dbms_aq._properties(m record) RETURNS dbms_aq.message_properties_t
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	p dbms_aq.message_properties_t;
BEGIN
	p.priority := m.priority;
	p.delay := coalesce(round(extract(epoch FROM m.ready_at - m.enqueue_time)), 0);
	p.expiration := coalesce(round(extract(epoch FROM m.expires_at - coalesce(m.ready_at, m.enqueue_time))), -1);
	p.correlation := m.correlation;
	p.attempts := m.attempts;
	p.exception_queue := sys._oracle_name(m.exception_queue);
	p.enqueue_time := m.enqueue_time;
	p.state := CASE WHEN m.state <> 0 THEN m.state WHEN m.original_msgid IS NOT NULL THEN 3
		WHEN m.ready_at > clock_timestamp() THEN 1 ELSE 0 END;
	IF m.sender IS NOT NULL THEN
		p.sender_id := ROW(m.sender, NULL, NULL);
	END IF;
	p.original_msgid := m.original_msgid;
	p.user_property := m.properties;
	p.transaction_group := m.transaction_group;
	p.delivery_mode := m.message_delivery_mode;
	RETURN p;
END $$;
COMMENT ON FUNCTION dbms_aq._properties(record) IS 'Internal: properties of a row of aq.dequeue_full';

CREATE FUNCTION dbms_aq._not_found(take dbms_aq._take_t) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF take.msgid IS NOT NULL THEN
		PERFORM sys._raise_error('AQ017', format('there is no message %s for this consumer in queue "%s"', take.msgid, take.queue),
			'It may have been consumed, or locked by another transaction.');
	END IF;
END $$;
COMMENT ON FUNCTION dbms_aq._not_found(dbms_aq._take_t) IS 'Internal: a message that is named by its id is not waited for';

-- enqueue

-- In schema aq, a message that matches no subscriber has a null id; in Oracle it is an error.
CREATE FUNCTION dbms_aq._no_recipients(queue text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	PERFORM sys._raise_error('AQ011', format('no subscriber of queue "%s" matches the message', queue),
		'Name recipients, or add a subscriber with dbms_aqadm.add_subscriber.');
END $$;
COMMENT ON FUNCTION dbms_aq._no_recipients(text) IS 'Internal: the error of a message that goes to no consumer';

CREATE FUNCTION sys._put_message(put dbms_aq._put_t, payload anyelement) RETURNS uuid
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	id uuid;
BEGIN
	IF put.transformation IS NOT NULL THEN
		RETURN sys._enqueue_transformed(put, payload);
	END IF;
	id := aq.enqueue(put.queue, payload, put.priority, put.delay, put.expiration, put.correlation, put.recipients,
		put.sender, put.exception_queue, put.properties, put.relative_msgid, put.deviation, put.delivery_mode);
	IF id IS NULL THEN
		PERFORM dbms_aq._no_recipients(put.queue);
	END IF;
	RETURN id;
END $$;
COMMENT ON FUNCTION sys._put_message(dbms_aq._put_t, anyelement) IS 'Internal: enqueue what dbms_aq._put has prepared';

CREATE FUNCTION sys._put_immediately(put dbms_aq._put_t, payload anyelement) RETURNS uuid
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_autonomous_put';
COMMENT ON FUNCTION sys._put_immediately(dbms_aq._put_t, anyelement) IS 'Internal: sys._put_message in a transaction of its own';

CREATE PROCEDURE dbms_aq.enqueue(queue_name text, enqueue_options dbms_aq.enqueue_options_t,
	message_properties dbms_aq.message_properties_t, payload text, OUT msgid uuid)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	put dbms_aq._put_t := dbms_aq._put(queue_name, enqueue_options, message_properties);
BEGIN
	IF enqueue_options.visibility = 1 THEN
		msgid := sys._put_immediately(put, payload);
	ELSIF put.transformation IS NOT NULL THEN
		msgid := sys._enqueue_transformed(put, payload);
	ELSE
		msgid := aq.enqueue(put.queue, payload, put.priority, put.delay, put.expiration, put.correlation, put.recipients,
			put.sender, put.exception_queue, put.properties, put.relative_msgid, put.deviation, put.delivery_mode);
		IF msgid IS NULL THEN
			PERFORM dbms_aq._no_recipients(put.queue);
		END IF;
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aq.enqueue(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t, text) IS
'Enqueue a message; a payload given as text, or as a literal, is read by the payload type''s input function';

CREATE PROCEDURE dbms_aq.enqueue(queue_name text, enqueue_options dbms_aq.enqueue_options_t,
	message_properties dbms_aq.message_properties_t, payload anyelement, OUT msgid uuid)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	put dbms_aq._put_t := dbms_aq._put(queue_name, enqueue_options, message_properties);
BEGIN
	IF enqueue_options.visibility = 1 THEN
		msgid := sys._put_immediately(put, payload);
	ELSIF put.transformation IS NOT NULL THEN
		msgid := sys._enqueue_transformed(put, payload);
	ELSE
		msgid := aq.enqueue(put.queue, payload, put.priority, put.delay, put.expiration, put.correlation, put.recipients,
			put.sender, put.exception_queue, put.properties, put.relative_msgid, put.deviation, put.delivery_mode);
		IF msgid IS NULL THEN
			PERFORM dbms_aq._no_recipients(put.queue);
		END IF;
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aq.enqueue(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t, anyelement) IS
'Enqueue a message; the payload is of the queue''s payload type, or what the transformation takes';

-- Properties of message i: one element for all, or one for each.
CREATE FUNCTION dbms_aq._enqueue_array(queue_name text, o dbms_aq.enqueue_options_t, array_size integer,
	properties dbms_aq.message_properties_t[], payloads anyarray) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	put dbms_aq._put_t;
	ids uuid[];
	first integer := 1;
	last integer;
	base integer := array_lower(payloads, 1) - 1;
	base_p integer := array_lower(properties, 1) - 1;
BEGIN
	IF array_size IS NULL OR array_size < 1 THEN
		PERFORM sys._raise_error('AQ069', format('array_size must be positive, not %s', coalesce(array_size::text, 'null')));
	ELSIF coalesce(cardinality(payloads), 0) < array_size THEN
		PERFORM sys._raise_error('AQ069', format('payload_array has %s elements, not %s',
			coalesce(cardinality(payloads), 0), array_size));
	ELSIF coalesce(cardinality(properties), 0) < array_size THEN
		PERFORM sys._raise_error('AQ069', format('message_properties_array has %s elements, not %s',
			coalesce(cardinality(properties), 0), array_size), 'Pass the properties of each message, null for the defaults.');
	END IF;
	/* messages with the same properties go in one call */
	WHILE first <= array_size LOOP
		last := first;
		WHILE last < array_size
				AND properties[base_p + last + 1] IS NOT DISTINCT FROM properties[base_p + first] LOOP
			last := last + 1;
		END LOOP;
		put := dbms_aq._put(queue_name, o, properties[base_p + first]);
		IF put.transformation IS NOT NULL THEN
			FOR i IN first .. last LOOP
				ids := ids || sys._enqueue_transformed(put, payloads[base + i]);
			END LOOP;
		ELSE
			ids := ids || aq.enqueue_array(put.queue, payloads[base + first : base + last], put.priority, put.delay,
				put.expiration, put.correlation, put.recipients, put.sender, put.exception_queue, put.properties, put.relative_msgid, put.deviation,
				put.delivery_mode);
		END IF;
		first := last + 1;
	END LOOP;
	IF array_position(ids, NULL) IS NOT NULL THEN
		PERFORM dbms_aq._no_recipients(put.queue);
	END IF;
	RETURN ids;
END $$;
COMMENT ON FUNCTION dbms_aq._enqueue_array(text, dbms_aq.enqueue_options_t, integer, dbms_aq.message_properties_t[], anyarray) IS
'Internal: what dbms_aq.enqueue_array does';

CREATE FUNCTION sys._put_array_immediately(queue_name text, o dbms_aq.enqueue_options_t, array_size integer,
	properties dbms_aq.message_properties_t[], payloads anyarray) RETURNS uuid[]
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_autonomous_put_array';
COMMENT ON FUNCTION sys._put_array_immediately(text, dbms_aq.enqueue_options_t, integer, dbms_aq.message_properties_t[], anyarray) IS
'Internal: dbms_aq._enqueue_array in a transaction of its own';

CREATE PROCEDURE dbms_aq.enqueue_array(queue_name text, enqueue_options dbms_aq.enqueue_options_t, array_size numeric,
	message_properties_array dbms_aq.message_properties_array_t, payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT error_array dbms_aq.error_array_t, OUT enqueued integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF enqueue_options.visibility = 1 THEN
		msgid_array := sys._put_array_immediately(queue_name, enqueue_options, array_size::integer,
			message_properties_array::dbms_aq.message_properties_t[], payload_array);
	ELSE
		msgid_array := dbms_aq._enqueue_array(queue_name, enqueue_options, array_size::integer, message_properties_array, payload_array);
	END IF;
	enqueued := cardinality(msgid_array);
END $$;
COMMENT ON PROCEDURE dbms_aq.enqueue_array(text, dbms_aq.enqueue_options_t, numeric, dbms_aq.message_properties_array_t, anyarray,
	dbms_aq.msgid_array_t, dbms_aq.error_array_t, integer) IS
'Enqueue the first array_size messages of the arrays; enqueued is what Oracle''s function returns';

-- Without error_array. The input arguments of the two forms must differ in a type, so the list is an array here, and a compatible array in
-- dequeue_array.
CREATE PROCEDURE dbms_aq.enqueue_array(queue_name text, enqueue_options dbms_aq.enqueue_options_t, array_size numeric,
	message_properties_array dbms_aq.message_properties_t[], payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT enqueued integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	error_array dbms_aq.error_array_t;
BEGIN
	CALL dbms_aq.enqueue_array(queue_name, enqueue_options, array_size, message_properties_array, payload_array, msgid_array, error_array, enqueued);
END $$;
COMMENT ON PROCEDURE dbms_aq.enqueue_array(text, dbms_aq.enqueue_options_t, numeric, dbms_aq.message_properties_t[], anyarray,
	dbms_aq.msgid_array_t, integer) IS 'The same without error_array, which is never filled';

-- dequeue

CREATE FUNCTION dbms_aq._dequeue(queue_name text, options dbms_aq.dequeue_options_t, as_type anyelement,
	OUT success boolean, OUT queue text, OUT consumer text, OUT timeout integer, OUT selective boolean, OUT delivery integer,
	OUT message_properties dbms_aq.message_properties_t, OUT payload anyelement, OUT msgid uuid)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	take dbms_aq._take_t := dbms_aq._take(queue_name, options);
	m record;
BEGIN
	queue := take.queue;
	consumer := take.consumer;
	timeout := take.timeout;
	selective := take.selective;
	delivery := take.delivery;
	IF take.transformation IS NOT NULL THEN
		SELECT * INTO m FROM sys._dequeue_transformed(take, as_type, 1);
	ELSE
		SELECT * INTO m FROM aq.dequeue_full(take.queue, as_type, take.consumer, 1, take.mode, take.correlation,
			take.msgid, take.condition, NULL, take.navigation, take.delivery_mode);
	END IF;
	success := m.msgid IS NOT NULL;
	IF NOT success THEN
		PERFORM dbms_aq._not_found(take);
		RETURN;
	END IF;
	msgid := m.msgid;
	payload := m.payload;
	IF take.mode = 'remove_nodata' AND pg_typeof(as_type) = 'bytea'::regtype THEN
		payload := '';
	END IF;
	message_properties := dbms_aq._properties(m);
END $$;
COMMENT ON FUNCTION dbms_aq._dequeue(text, dbms_aq.dequeue_options_t, anyelement) IS 'Internal: one attempt to dequeue';

CREATE FUNCTION dbms_aq._dequeue_text(queue_name text, options dbms_aq.dequeue_options_t, as_text text,
	OUT success boolean, OUT queue text, OUT consumer text, OUT timeout integer, OUT selective boolean, OUT delivery integer,
	OUT message_properties dbms_aq.message_properties_t, OUT payload text, OUT msgid uuid)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	m record;
BEGIN
	EXECUTE format('SELECT *, payload::text AS as_text FROM dbms_aq._dequeue($1, $2, NULL::%s)',
			sys._payload_type(dbms_aq._queue(queue_name, 'dequeue')))
		INTO m USING queue_name, options;
	success := m.success;
	queue := m.queue;
	consumer := m.consumer;
	timeout := m.timeout;
	selective := m.selective;
	delivery := m.delivery;
	message_properties := m.message_properties;
	payload := m.as_text;
	msgid := m.msgid;
END $$;
COMMENT ON FUNCTION dbms_aq._dequeue_text(text, dbms_aq.dequeue_options_t, text) IS
'Internal: one attempt to dequeue, the payload as text';

CREATE FUNCTION dbms_aq._dequeue_array(queue_name text, options dbms_aq.dequeue_options_t, array_size numeric, as_type anyarray,
	OUT success boolean, OUT queue text, OUT consumer text, OUT timeout integer, OUT selective boolean, OUT delivery integer,
	OUT message_properties_array dbms_aq.message_properties_array_t, OUT payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT error_array dbms_aq.error_array_t, OUT dequeued integer)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	take dbms_aq._take_t := dbms_aq._take(queue_name, options);
BEGIN
	IF array_size IS NULL OR array_size < 1 THEN
		PERFORM sys._raise_error('AQ069', format('array_size must be positive, not %s', coalesce(array_size::text, 'null')));
	ELSIF take.msgid IS NOT NULL THEN
		PERFORM sys._raise_error('AQ060', 'an array dequeue by message id is not supported', 'Use dbms_aq.dequeue.');
	END IF;
	queue := take.queue;
	consumer := take.consumer;
	timeout := take.timeout;
	selective := take.selective;
	delivery := take.delivery;
	IF take.transformation IS NOT NULL THEN
		SELECT array_agg(dbms_aq._properties(m)), array_agg(m.payload), array_agg(m.msgid)
			INTO message_properties_array, payload_array, msgid_array
			FROM sys._dequeue_transformed(take, as_type[1], array_size::integer) m;
	ELSE
		SELECT array_agg(dbms_aq._properties(m)), array_agg(m.payload), array_agg(m.msgid)
			INTO message_properties_array, payload_array, msgid_array
			FROM aq.dequeue_full(take.queue, as_type[1], take.consumer, array_size::integer, take.mode, take.correlation, NULL,
				take.condition, NULL, take.navigation, take.delivery_mode) m;
	END IF;
	dequeued := coalesce(cardinality(msgid_array), 0);
	success := dequeued > 0;
END $$;
COMMENT ON FUNCTION dbms_aq._dequeue_array(text, dbms_aq.dequeue_options_t, numeric, anyarray) IS
'Internal: one attempt to dequeue several messages';

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload anyelement, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, anyelement) IS
'Dequeue a message; payload goes in as a null of the payload''s type. Waits without holding a snapshot, unless in a function';

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload text, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, text) IS
'Dequeue a message, its payload as text, whatever the payload''s type';

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload varchar, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, varchar) IS
'Dequeue a message, its payload as text; for variables and drivers that say varchar';

CREATE PROCEDURE dbms_aq.dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT error_array dbms_aq.error_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.dequeue_array(text, dbms_aq.dequeue_options_t, numeric, dbms_aq.message_properties_array_t, anyarray,
	dbms_aq.msgid_array_t, dbms_aq.error_array_t, integer) IS
'Dequeue 1 to array_size messages; waits only while there is none. dequeued is what Oracle''s function returns';

CREATE PROCEDURE dbms_aq.dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anycompatiblearray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.dequeue_array(text, dbms_aq.dequeue_options_t, numeric, dbms_aq.message_properties_array_t, anycompatiblearray,
	dbms_aq.msgid_array_t, integer) IS 'The same without error_array, which is never filled';

-- The same without an error if there is no message, so that the client's transaction is not aborted.

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload anyelement, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, anyelement) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload text, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, text) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload varchar, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, varchar) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.try_dequeue_array(text, dbms_aq.dequeue_options_t, numeric, anyarray) IS
'As dequeue_array, but dequeued is 0 instead of ORA-25228 when there is no message within the wait time';

-- listen

CREATE FUNCTION dbms_aq._listen_targets(agent_list dbms_aq.aq$_agent_list_t, wait numeric, listen_delivery_mode numeric,
	OUT queues text[], OUT consumers text[], OUT timeout integer, OUT delivery integer, OUT agents sys.aq$_agent[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	agent sys.aq$_agent;
	queue text;
	consumer text;
	info record;
BEGIN
	IF coalesce(cardinality(agent_list), 0) = 0 THEN
		PERFORM sys._raise_error('AQ069', 'agent_list must not be empty', 'Pass an agent for each queue and consumer.');
	END IF;
	PERFORM dbms_aq._delivery_mode(listen_delivery_mode);
	delivery := coalesce(listen_delivery_mode, 1);
	timeout := coalesce(wait, -1);
	IF timeout < -1 THEN
		PERFORM sys._raise_error('AQ068', format('wait time %s is negative', wait),
			'Specify seconds, dbms_aq.no_wait() or dbms_aq.forever().');
	END IF;
	PERFORM sys._check_gap(agent_list, 'AQ100', 'agent');
	FOREACH agent IN ARRAY agent_list::sys.aq$_agent[] LOOP
		IF agent.address IS NULL OR agent.address LIKE '%@%' OR coalesce(agent.protocol, 0) <> 0 THEN
			PERFORM sys._raise_error('AQ100', format('agent %s of the list names no local queue',
				coalesce(cardinality(queues), 0) + 1), 'The address is [schema.]queue.');
		END IF;
		queue := dbms_aq._queue(agent.address, 'dequeue');
		consumer := coalesce((sys._split_name(agent.name))[2], agent.name);
		SELECT * INTO info FROM sys._describe_queue(queue);
		IF NOT info.dequeue_enabled THEN
			PERFORM sys._raise_error('AQ102', format('queue "%s" is stopped for dequeue', queue),
				'Start it with dbms_aqadm.start_queue.');
		ELSIF info.multiple_consumers AND consumer IS NULL THEN
			PERFORM sys._raise_error('AQ103', format('queue "%s" has multiple consumers: name one', queue),
				'Set the agent''s name to the consumer''s name.');
		ELSIF NOT info.multiple_consumers AND consumer IS NOT NULL THEN
			PERFORM sys._raise_error('AQ019', format('queue "%s" has a single consumer, which has no name', queue),
				'Leave the agent''s name null.');
		END IF;
		FOR i IN 1 .. coalesce(cardinality(queues), 0) LOOP
			IF queues[i] = queue AND consumers[i] IS NOT DISTINCT FROM consumer THEN
				PERFORM sys._raise_error('AQ101', format('queue "%s" is in the list twice for the same consumer', queue));
			END IF;
		END LOOP;
		queues := queues || queue;
		consumers := consumers || consumer;
		agents := agents || sys.aq$_agent(sys._oracle_case(consumer), agent.address, agent.protocol);
	END LOOP;
END $$;
COMMENT ON FUNCTION dbms_aq._listen_targets(dbms_aq.aq$_agent_list_t, numeric, numeric) IS 'Internal: arguments of aq.listen';

CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t) IS
'Wait forever until one of the agents has a message; the first in list order is returned. Consumes nothing';
CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t, numeric) IS
'Wait up to so many seconds until one of the agents has a message; the first in list order is returned. Consumes nothing';
CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, listen_delivery_mode numeric,
	OUT agent sys.aq$_agent, OUT message_delivery_mode integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t, numeric, numeric) IS
'Wait until one of the agents has a message of this delivery mode; the first in list order is returned. Consumes nothing';

CREATE PROCEDURE dbms_aq.try_listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_listen';
COMMENT ON PROCEDURE dbms_aq.try_listen(dbms_aq.aq$_agent_list_t, numeric) IS
'As listen, but returns a null agent instead of raising ORA-25254 when there is no message within the wait time';
