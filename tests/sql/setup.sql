-- The extension, the helpers of all following files, and the roles.
\set VERBOSITY terse
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_ora_admin, regress_ora_user, regress_aq_owner, regress_aq_in, regress_aq_out, regress_aq_none, regress_aq_other;
RESET client_min_messages;
CREATE EXTENSION pgaq_oracle CASCADE;
-- As a publication of all tables does, it refuses UPDATE and DELETE on a table without a replica identity, in all files that follow.
SET client_min_messages = error; SET log_min_messages = error;
CREATE PUBLICATION of_pgaq FOR TABLES IN SCHEMA aq, aq_internal, aq_data;
RESET client_min_messages; RESET log_min_messages;
CREATE SCHEMA t;
GRANT USAGE ON SCHEMA t TO PUBLIC;

-- t.error runs a statement and tells its error: SQLSTATE, message, detail, hint.
CREATE FUNCTION t.error(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', sqlstate, message, nullif(detail, ''), nullif(hint, ''));
END $$;

-- t.rule_errors tells whose rules have failed for messages of a queue, how often and how last.
CREATE FUNCTION t.rule_errors(queue_name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
	SELECT string_agg(format('%s %s %s', consumer, rule_failures, rule_error), ', ' ORDER BY consumer)
	FROM aq.subscribers s WHERE s.queue_name = $1 AND rule_failures > 0
$$;

-- t.drain dequeues all there is and shows the payloads in their order.
CREATE FUNCTION t.drain(queue_name text, consumer text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload #>> '{}', ' ')
	FROM aq.dequeue($1, consumer => $2, max_messages => 1000)
$$;

-- t.look shows the same without taking anything.
CREATE FUNCTION t.look(queue_name text, consumer text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload #>> '{}', ' ')
	FROM aq.browse($1, consumer => $2, max_messages => 1000)
$$;

-- t.put enqueues numbers, one call each.
CREATE FUNCTION t.put(queue_name text, first integer, last integer DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(aq.enqueue($1, to_jsonb(n))) FROM generate_series($2, coalesce($3, $2)) AS n
$$;

-- t.step is one dbms_aq.dequeue; it tells the payload or the error
CREATE FUNCTION t.step(queue text, navigation integer, mode integer DEFAULT 1, consumer text DEFAULT NULL, correlation text DEFAULT NULL, condition text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	mp dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
BEGIN
	CALL dbms_aq.dequeue(queue, dbms_aq.dequeue_options_t(wait => 0, navigation => navigation, dequeue_mode => mode, consumer_name => consumer,
		correlation => correlation, deq_condition => condition), mp, payload, id);
	RETURN payload;
EXCEPTION WHEN OTHERS THEN
	RETURN regexp_replace(sqlerrm, '.*(ORA-\d+).*', '\1');
END $$;

-- t.fail_attempts takes messages by their ids and rolls back, this many times, and waits until that is counted.
CREATE PROCEDURE t.fail_attempts(queue_name text, ids uuid[], times integer DEFAULT 1) LANGUAGE plpgsql AS $$
DECLARE
	id uuid;
	before bigint;
BEGIN
	FOR i IN 1..times LOOP
		SELECT coalesce(sum(attempts), 0) INTO before FROM aq.messages m WHERE m.queue_name = fail_attempts.queue_name;
		FOREACH id IN ARRAY ids LOOP
			PERFORM aq.dequeue(queue_name, msgid => id);
		END LOOP;
		ROLLBACK;
		WHILE (SELECT sum(attempts) FROM aq.messages m WHERE m.queue_name = fail_attempts.queue_name) < before + cardinality(ids) LOOP
			PERFORM pg_sleep(0.002);
			ROLLBACK;
		END LOOP;
	END LOOP;
END $$;
