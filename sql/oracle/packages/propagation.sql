-- dbms_aqadm: propagation to queues of the database, and to those of others: the name of a database link is that of a foreign server. A subscriber or recipient with an address is a consumer "[name ]-> address", see
-- src/queue/catalog/address.c; a schedule moves its messages.

-- Names of another database cannot be looked up here, only folded.
CREATE FUNCTION dbms_aqadm._folded(name text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	parts text[] := sys._split_name(name);
BEGIN
	IF parts IS NULL THEN
		PERFORM sys._raise_error('AQ003', format('name "%s" is not valid', name),
			'Specify [schema.]name; a part that is not an identifier must be in double quotes.');
	END IF;
	RETURN array_to_string(parts, '.');
END $$;
COMMENT ON FUNCTION dbms_aqadm._folded(text) IS 'Internal: a name of another database';

CREATE FUNCTION dbms_aqadm._destination(destination text, destination_queue text) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF destination <> '' THEN
		RETURN concat(CASE WHEN destination_queue <> '' THEN dbms_aqadm._folded(destination_queue) END, '@', dbms_aqadm._folded(destination));
	END IF;
	RETURN CASE WHEN destination_queue <> '' THEN dbms_aqadm._queue(destination_queue) END;
END $$;
COMMENT ON FUNCTION dbms_aqadm._destination(text, text) IS 'Internal: native address of a destination; null, @server: all addresses in this database, or at the server';

CREATE FUNCTION dbms_aqadm._seconds(seconds numeric) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN make_interval(secs => $1::double precision);
COMMENT ON FUNCTION dbms_aqadm._seconds(numeric) IS 'Internal: an interval; null: null';

-- Oracle computes next_time at the end of a window: the next one begins after that difference.
CREATE FUNCTION dbms_aqadm._every(next_time text, duration numeric) RETURNS interval
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	days numeric := 0;
	product numeric;
	term text[];
	factor text[];
	number CONSTANT text := '(?:\d+(?:\.\d*)?|\.\d+)';
	expression text := upper(regexp_replace(next_time, '\s', '', 'g'));
BEGIN
	IF expression IS NULL OR expression = '' OR duration IS NULL THEN
		RETURN NULL;
	ELSIF expression !~ format('^SYSDATE([+-]%1$s([*/]%1$s)*)*$', number) THEN
		PERFORM sys._raise_error('AQ060', format('next_time "%s" is not supported', next_time),
			'It is SYSDATE, plus or minus numbers of days: SYSDATE + 15/1440.');
	END IF;
	FOR term IN SELECT regexp_matches(expression, format('([+-])(%1$s(?:[*/]%1$s)*)', number), 'g') LOOP
		product := 1;
		FOR factor IN SELECT regexp_matches('*' || term[2], format('([*/])(%s)', number), 'g') LOOP
			IF factor[1] = '/' AND factor[2]::numeric = 0 THEN
				PERFORM sys._raise_error('AQ005', format('next_time "%s" divides by zero', next_time));
			END IF;
			product := CASE factor[1] WHEN '*' THEN product * factor[2]::numeric ELSE product / factor[2]::numeric END;
		END LOOP;
		days := days + CASE term[1] WHEN '+' THEN product ELSE -product END;
	END LOOP;
	RETURN dbms_aqadm._seconds(greatest(days * 86400 + duration, duration));
END $$;
COMMENT ON FUNCTION dbms_aqadm._every(text, numeric) IS 'Internal: time from one window to the next, by an expression for the time of the next one and the seconds of one; null: there is one';

CREATE PROCEDURE dbms_aqadm.schedule_propagation(queue_name text, destination text DEFAULT NULL, start_time timestamptz DEFAULT NULL,
	duration numeric DEFAULT NULL, next_time text DEFAULT NULL, latency numeric DEFAULT 60,
	destination_queue text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.create_propagation(dbms_aqadm._queue(queue_name), dbms_aqadm._destination(destination, destination_queue),
		latency => dbms_aqadm._seconds(coalesce(latency, 60)), start_time => start_time, duration => dbms_aqadm._seconds(duration),
		every => dbms_aqadm._every(next_time, duration), subscribe => false);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.schedule_propagation(text, text, timestamptz, numeric, text, numeric, text) IS
'Propagate messages to queues which subscribers or recipients have as their addresses: to one, or,
  with destination_queue null, to all without a schedule of their own.
destination: null: queues of this database; otherwise a foreign server of the wrapper pgaq_link, as
  in addresses queue@server
duration: seconds of a window, null: without end
next_time: SYSDATE plus or minus numbers of days, at the end of a window
latency: seconds after the queue was found empty';

CREATE PROCEDURE dbms_aqadm.unschedule_propagation(queue_name text, destination text DEFAULT NULL, destination_queue text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.drop_propagation(dbms_aqadm._queue(queue_name), dbms_aqadm._destination(destination, destination_queue), unsubscribe => false);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.unschedule_propagation(text, text, text) IS 'Remove a propagation schedule; subscribers and their messages stay';

CREATE PROCEDURE dbms_aqadm.alter_propagation_schedule(queue_name text, destination text DEFAULT NULL, duration numeric DEFAULT NULL,
	next_time text DEFAULT NULL, latency numeric DEFAULT 60, destination_queue text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.alter_propagation(dbms_aqadm._queue(queue_name), dbms_aqadm._destination(destination, destination_queue),
		latency => dbms_aqadm._seconds(coalesce(latency, 60)), duration => dbms_aqadm._seconds(coalesce(duration, 0)),
		every => coalesce(dbms_aqadm._every(next_time, duration), '0'));
END $$;
COMMENT ON PROCEDURE dbms_aqadm.alter_propagation_schedule(text, text, numeric, text, numeric, text) IS
'Change a propagation schedule; what is left out gets its default';

CREATE FUNCTION dbms_aqadm._enable_propagation(queue_name text, destination text, destination_queue text, enable boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	native text := dbms_aqadm._queue(queue_name);
	target text := dbms_aqadm._destination(destination, destination_queue);
	disabled boolean := (SELECT p.state = 'disabled' FROM aq.propagations p WHERE p.queue_name = native AND p.destination IS NOT DISTINCT FROM target);
BEGIN
	IF enable <> disabled THEN
		PERFORM sys._raise_error(CASE WHEN enable THEN 'AQ132' ELSE 'AQ133' END,
			format('propagation of queue "%s" is already %s', native, CASE WHEN enable THEN 'enabled' ELSE 'disabled' END));
	END IF;
	PERFORM aq.alter_propagation(native, target, enabled => enable);
END $$;
COMMENT ON FUNCTION dbms_aqadm._enable_propagation(text, text, text, boolean) IS 'Internal: enable or disable a schedule that is not';

CREATE PROCEDURE dbms_aqadm.enable_propagation_schedule(queue_name text, destination text DEFAULT NULL, destination_queue text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._enable_propagation(queue_name, destination, destination_queue, true);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.enable_propagation_schedule(text, text, text) IS 'Start a disabled propagation schedule again, without its failures';

CREATE PROCEDURE dbms_aqadm.disable_propagation_schedule(queue_name text, destination text DEFAULT NULL, destination_queue text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqadm._enable_propagation(queue_name, destination, destination_queue, false);
END $$;
COMMENT ON PROCEDURE dbms_aqadm.disable_propagation_schedule(text, text, text) IS 'Stop a propagation schedule; its messages wait';
