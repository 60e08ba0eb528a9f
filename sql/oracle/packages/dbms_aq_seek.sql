-- dbms_aq.seek: to the beginning, to the end, or to a message.

CREATE FUNCTION dbms_aq.seek_begin() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aq.seek_begin() IS 'seek_type: to the first message';
CREATE FUNCTION dbms_aq.seek_end() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aq.seek_end() IS 'seek_type: behind the last message';
CREATE FUNCTION dbms_aq.seek_msgid() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aq.seek_msgid() IS 'seek_type: to a message';
CREATE FUNCTION dbms_aq.no_discard_skipped() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aq.no_discard_skipped() IS 'skip_option: the session continues behind the skipped messages';
CREATE FUNCTION dbms_aq.discard_skipped() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aq.discard_skipped() IS 'skip_option: the messages that are passed by count as consumed';

CREATE FUNCTION dbms_aq.seek_input_t(shard numeric DEFAULT NULL, priority numeric DEFAULT NULL, seek_type numeric DEFAULT NULL,
	seek_pos dbms_aq.seek_pos_t DEFAULT NULL)
RETURNS dbms_aq.seek_input_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1, $2, $3, $4)::dbms_aq.seek_input_t;
COMMENT ON FUNCTION dbms_aq.seek_input_t(numeric, numeric, numeric, dbms_aq.seek_pos_t) IS 'Make an element of seek_input_array; name the fields that you set';
CREATE FUNCTION dbms_aq.seek_pos_t(msgid uuid) RETURNS dbms_aq.seek_pos_t LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW($1)::dbms_aq.seek_pos_t;
COMMENT ON FUNCTION dbms_aq.seek_pos_t(uuid) IS 'Make a position from a message id';

CREATE FUNCTION sys._set_position(queue_name text, consumer text, msgid uuid) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_position_set';
COMMENT ON FUNCTION sys._set_position(text, text, uuid) IS 'Internal: the session continues behind this message; null: at the head';

-- The messages that the consumer could dequeue, in order.
CREATE FUNCTION dbms_aq._ahead(native text, consumer text, i dbms_aq.seek_input_t) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	ids uuid[];
BEGIN
	EXECUTE format($query$SELECT array_agg(m.msgid ORDER BY m.ordinality) FROM aq.dequeue_full(%1$L, NULL::%2$s, consumer => $1,
			max_messages => 2147483647, mode => 'browse') WITH ORDINALITY AS m
		WHERE coalesce($2, -1) IN (-1, m.shard) AND coalesce($3, -1) IN (-1, m.priority)$query$,
		native, (SELECT payload_type FROM sys._describe_queue(native))) INTO ids USING consumer, i.shard, i.priority;
	RETURN coalesce(ids, '{}');
END $$;
COMMENT ON FUNCTION dbms_aq._ahead(text, text, dbms_aq.seek_input_t) IS 'Internal: ids of the messages that the consumer could dequeue';

CREATE FUNCTION dbms_aq._discard(native text, consumer text, ids uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE format($query$SELECT count(*) FROM unnest($2) id, LATERAL aq.dequeue_full(%L, NULL::%s, consumer => $1, mode => 'remove_nodata', msgid => id)$query$,
		native, (SELECT payload_type FROM sys._describe_queue(native))) USING consumer, ids;
END $$;
COMMENT ON FUNCTION dbms_aq._discard(text, text, uuid[]) IS 'Internal: consume these messages';

-- Moves to the message, and handles the skipped ones as requested.
CREATE FUNCTION dbms_aq._seek(native text, consumer text, i dbms_aq.seek_input_t, skip_option numeric) RETURNS dbms_aq.seek_output_t
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	sharded boolean := (SELECT queue_table_id IS NULL FROM sys._describe_queue(native));
	ahead uuid[];
	skipped integer := 0;
BEGIN
	IF i.seek_type IS NULL OR i.seek_type NOT IN (1, 2, 3) THEN
		PERFORM sys._raise_error('AQ005', format('seek type %s does not exist', coalesce(i.seek_type::text, 'null')),
			'Use dbms_aq.seek_begin(), seek_end() or seek_msgid().');
	ELSIF NOT sharded AND coalesce(i.shard, -1) > 0 THEN
		PERFORM sys._raise_error('AQ060', format('queue "%s" is in a queue table and has no shards', native), 'Leave shard null.');
	END IF;
	ahead := dbms_aq._ahead(native, consumer, i);
	IF i.seek_type = 2 THEN
		skipped := cardinality(ahead);
	ELSIF i.seek_type = 3 THEN
		skipped := array_position(ahead, (i.seek_pos).msgid) - 1;
		IF skipped IS NULL THEN
			PERFORM sys._raise_error('AQ017', format('there is no message %s for this consumer in queue "%s"', coalesce((i.seek_pos).msgid::text, 'null'), native),
				'Consumed messages cannot be restored.');
		END IF;
	END IF;
	IF skipped > 0 AND skip_option IS NULL THEN
		PERFORM sys._raise_error('AQ111', format('%s messages of queue "%s" would be skipped', skipped, native),
			'Specify skip_option: dbms_aq.discard_skipped() or no_discard_skipped().');
	ELSIF skipped > 0 AND skip_option = 2 THEN
		PERFORM dbms_aq._discard(native, consumer, ahead[:skipped]);
	ELSIF skipped > 0 AND sharded THEN
		PERFORM sys._raise_error('AQ060', format('skipping messages of sharded queue "%s" without discarding them is not supported', native),
			'Use dbms_aq.discard_skipped().');
	END IF;
	PERFORM sys._set_position(native, consumer, CASE WHEN skipped > 0 AND skip_option = 1 THEN ahead[skipped] END);
	RETURN ROW(i.shard, i.priority, i.seek_type, CASE WHEN skipped < cardinality(ahead) THEN ROW(ahead[skipped + 1])::dbms_aq.seek_pos_t END,
		skipped)::dbms_aq.seek_output_t;
END $$;
COMMENT ON FUNCTION dbms_aq._seek(text, text, dbms_aq.seek_input_t, numeric) IS 'Internal: one element of dbms_aq.seek';

CREATE PROCEDURE dbms_aq.seek(queue_name text, consumer_name text, seek_input_array dbms_aq.seek_input_array_t, skip_option numeric,
	OUT seek_output_array dbms_aq.seek_output_array_t)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aq._queue(queue_name);
	consumer text := coalesce((sys._split_name(consumer_name))[2], consumer_name);
	found dbms_aq.seek_output_t[];
	i dbms_aq.seek_input_t;
BEGIN
	IF skip_option NOT IN (1, 2) THEN
		PERFORM sys._raise_error('AQ005', format('skip option %s does not exist', skip_option),
			'Use dbms_aq.discard_skipped(), no_discard_skipped(), or null.');
	ELSIF coalesce(cardinality(seek_input_array), 0) = 0 THEN
		PERFORM sys._raise_error('AQ069', 'seek_input_array is empty', 'Pass an element for each target position.');
	END IF;
	FOREACH i IN ARRAY seek_input_array::dbms_aq.seek_input_t[] LOOP
		found := found || dbms_aq._seek(native, consumer, i, skip_option);
	END LOOP;
	seek_output_array := found;
END $$;
COMMENT ON PROCEDURE dbms_aq.seek(text, text, dbms_aq.seek_input_array_t, numeric, dbms_aq.seek_output_array_t) IS
'Set the position at which a consumer continues: at the first message (seek_begin: the session''s
  position is cleared), behind the last one (seek_end) or at a message (seek_msgid).
skip_option: what happens to skipped messages: discard_skipped consumes them, in the caller''s
  transaction; no_discard_skipped only moves the session''s position, in queue tables; null raises an
  error if there are any';
