-- The source's program in our own words: one queue, named recipients, loops that run as jobs would.
-- harness.py creates the queue, and lab_aq.visibility() with the option that all of its calls have.

-- what each session has dequeued: its first and its last message
CREATE TABLE lab_aq.windows (number integer, first_enqueued timestamptz, last_enqueued timestamptz, first_dequeued timestamptz, last_dequeued timestamptz);

CREATE PROCEDURE lab_aq.put(number integer) LANGUAGE plpgsql AS $$
DECLARE
	options dbms_aq.enqueue_options_t;
	properties dbms_aq.message_properties_t;
	recipients dbms_aq.aq$_recipient_list_t;
	message lab_aq.message;
	msgid uuid;
	name text := 'KSUB_' || number;
BEGIN
	options.visibility := lab_aq.visibility();
	recipients[1] := sys.aq$_agent(name, NULL, NULL);
	properties.recipient_list := recipients;
	properties.correlation := name;
	message := ROW('for ' || name, clock_timestamp() || ' for ' || name, rpad('ABC', 4000, 'x'));
	CALL dbms_aq.enqueue('lab_aq.messages', options, properties, message, msgid);
	COMMIT;
END $$;

CREATE PROCEDURE lab_aq.enqueue(number integer, seconds double precision, burn bigint, OUT sent bigint) LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
BEGIN
	sent := 0;
	WHILE clock_timestamp() < ends LOOP
		PERFORM aq_lab.burn(burn);
		CALL lab_aq.put(number);
		sent := sent + 1;
	END LOOP;
END $$;

-- listen, then dequeue without waiting; finds nothing when another session was faster or nothing came
CREATE PROCEDURE lab_aq.listen_once(number integer, wait integer, OUT got integer, OUT enqueued timestamptz) LANGUAGE plpgsql AS $$
DECLARE
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	message lab_aq.message;
	agents dbms_aq.aq$_agent_list_t;
	agent sys.aq$_agent;
	msgid uuid;
BEGIN
	agents[1] := sys.aq$_agent('KSUB_' || number, 'lab_aq.messages', NULL);
	options.consumer_name := 'KSUB_' || number;
	options.visibility := lab_aq.visibility();
	options.navigation := dbms_aq.first_message();
	options.wait := dbms_aq.no_wait();
	got := 0;
	BEGIN
		CALL dbms_aq.listen(agent_list => agents, wait => wait, agent => agent);
		CALL dbms_aq.dequeue('lab_aq.messages', options, properties, message, msgid);
		got := 1;
		enqueued := properties.enqueue_time;
	EXCEPTION
		WHEN SQLSTATE 'AQ063' OR SQLSTATE 'AQ064' THEN NULL;
	END;
	COMMIT;
END $$;

CREATE PROCEDURE lab_aq.listen(number integer, seconds double precision, OUT got bigint) LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	found integer;
	enqueued timestamptz;
	seen lab_aq.windows;
BEGIN
	got := 0;
	WHILE clock_timestamp() < ends LOOP
		CALL lab_aq.listen_once(number, 1, found, enqueued);
		got := got + found;
		IF found = 1 THEN
			seen.first_enqueued := coalesce(seen.first_enqueued, enqueued);
			seen.last_enqueued := enqueued;
			seen.last_dequeued := clock_timestamp();
			seen.first_dequeued := coalesce(seen.first_dequeued, seen.last_dequeued);
		END IF;
	END LOOP;
	seen.number := number;
	INSERT INTO lab_aq.windows SELECT seen.*;
END $$;

-- one dequeue that waits
CREATE PROCEDURE lab_aq.subscriber_once(number integer, wait integer, OUT got integer) LANGUAGE plpgsql AS $$
DECLARE
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	message lab_aq.message;
	msgid uuid;
BEGIN
	options.consumer_name := 'KSUB_' || number;
	options.visibility := lab_aq.visibility();
	options.navigation := dbms_aq.first_message();
	options.wait := wait;
	got := 0;
	BEGIN
		CALL dbms_aq.dequeue('lab_aq.messages', options, properties, message, msgid);
		got := 1;
	EXCEPTION
		WHEN SQLSTATE 'AQ063' THEN NULL;
	END;
	COMMIT;
END $$;

CREATE PROCEDURE lab_aq.subscriber(number integer, seconds double precision, OUT got bigint) LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	message lab_aq.message;
	msgid uuid;
	seen lab_aq.windows;
BEGIN
	options.consumer_name := 'KSUB_' || number;
	options.visibility := lab_aq.visibility();
	options.navigation := dbms_aq.first_message();
	options.wait := 1;
	got := 0;
	WHILE clock_timestamp() < ends LOOP
		BEGIN
			CALL dbms_aq.dequeue('lab_aq.messages', options, properties, message, msgid);
			got := got + 1;
			seen.first_enqueued := coalesce(seen.first_enqueued, properties.enqueue_time);
			seen.last_enqueued := properties.enqueue_time;
			seen.last_dequeued := clock_timestamp();
			seen.first_dequeued := coalesce(seen.first_dequeued, seen.last_dequeued);
		EXCEPTION
			WHEN SQLSTATE 'AQ063' THEN NULL;
		END;
		COMMIT;
	END LOOP;
	seen.number := number;
	INSERT INTO lab_aq.windows SELECT seen.*;
END $$;

CREATE PROCEDURE lab_aq.browse(number integer, seconds double precision, OUT got bigint) LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	message lab_aq.message;
	msgid uuid;
BEGIN
	options.consumer_name := 'KSUB_' || number;
	options.visibility := lab_aq.visibility();
	options.navigation := dbms_aq.first_message();
	options.dequeue_mode := dbms_aq.browse();
	options.wait := dbms_aq.no_wait();
	got := 0;
	WHILE clock_timestamp() < ends LOOP
		BEGIN
			CALL dbms_aq.dequeue('lab_aq.messages', options, properties, message, msgid);
		EXCEPTION
			WHEN SQLSTATE 'AQ063' THEN NULL;
		END;
		got := got + 1;
		COMMIT;
	END LOOP;
END $$;
