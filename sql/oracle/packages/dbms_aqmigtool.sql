-- Package dbms_aqmigtool: migration from queue tables to sharded queues, with aq.convert_queue.

CREATE FUNCTION dbms_aqmigtool.automatic() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqmigtool.automatic() IS 'mig_mode: the migration ends by itself';
CREATE FUNCTION dbms_aqmigtool.interactive() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqmigtool.interactive() IS 'mig_mode: the same; commit_migration tells whether it has ended';
CREATE FUNCTION dbms_aqmigtool.offline() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aqmigtool.offline() IS 'mig_mode: not supported';
CREATE FUNCTION dbms_aqmigtool.only_definition() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_4';
COMMENT ON FUNCTION dbms_aqmigtool.only_definition() IS 'mig_mode: not supported';
CREATE FUNCTION dbms_aqmigtool.global() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqmigtool.global() IS 'ordering: all old messages before all new ones';
CREATE FUNCTION dbms_aqmigtool.session() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqmigtool.session() IS 'ordering: those of one session in their order; the same as global() here';
CREATE FUNCTION dbms_aqmigtool.current() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqmigtool.current() IS 'checkmode: the queue as it is';
CREATE FUNCTION dbms_aqmigtool.enable_evaluation() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqmigtool.enable_evaluation() IS 'checkmode: not supported';
CREATE FUNCTION dbms_aqmigtool.restore() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqmigtool.restore() IS 'cancelmode: not supported';
CREATE FUNCTION dbms_aqmigtool.norestore() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqmigtool.norestore() IS 'cancelmode: not supported';
CREATE FUNCTION dbms_aqmigtool.q_empty() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aqmigtool.q_empty() IS 'cancelmode: not supported';
CREATE FUNCTION dbms_aqmigtool.only_cq() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_1';
COMMENT ON FUNCTION dbms_aqmigtool.only_cq() IS 'purge_option: not supported';
CREATE FUNCTION dbms_aqmigtool.only_txeventq() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_2';
COMMENT ON FUNCTION dbms_aqmigtool.only_txeventq() IS 'purge_option: not supported';
CREATE FUNCTION dbms_aqmigtool.both_q() RETURNS integer LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'aq_constant_3';
COMMENT ON FUNCTION dbms_aqmigtool.both_q() IS 'purge_option: old and new messages';

CREATE FUNCTION dbms_aqmigtool._queue(cqschema text, cqname text) RETURNS text
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN dbms_aqadm._queue(concat_ws('.', cqschema, cqname));
COMMENT ON FUNCTION dbms_aqmigtool._queue(text, text) IS 'Internal: native name of a queue, or an error';

CREATE PROCEDURE dbms_aqmigtool.check_migration_to_txeventq(cqschema text, cqname text, OUT migration_report text[],
	checkmode numeric DEFAULT 1)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF checkmode = 2 THEN
		PERFORM sys._raise_error('AQ060', 'recording the calls that use a queue is not supported', 'Use dbms_aqmigtool.current().');
	END IF;
	migration_report := ARRAY(SELECT obstacle FROM aq.conversion_obstacles(dbms_aqmigtool._queue(cqschema, cqname)));
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.check_migration_to_txeventq(text, text, text[], numeric) IS
'What the queue has that sharded queues do not, a text each; an empty list: it can be migrated';

CREATE PROCEDURE dbms_aqmigtool.init_migration(cqschema text, cqname text, txeventqschema text DEFAULT NULL,
	txeventqname text DEFAULT NULL, mig_mode numeric DEFAULT 2, ordering numeric DEFAULT 1, suffix text DEFAULT 'M')
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqmigtool._queue(cqschema, cqname);
BEGIN
	IF coalesce(mig_mode, 2) NOT IN (1, 2) THEN
		PERFORM sys._raise_error('AQ060', format('migration mode %s is not supported', mig_mode),
			'Use dbms_aqmigtool.automatic() or interactive().');
	ELSIF txeventqschema IS NOT NULL OR txeventqname IS NOT NULL THEN
		PERFORM sys._raise_error('AQ060', 'a queue keeps its name when it is migrated', 'Leave txeventqschema and txeventqname out.');
	END IF;
	PERFORM aq.convert_queue(native);
	IF sys._name_schema(native) IS NOT NULL
			AND to_regclass(format('%I.%I', sys._name_schema(native), 'aq$' || sys._bare_name(native))) IS NULL THEN
		PERFORM sys._make_queue_view(native);
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.init_migration(text, text, text, text, numeric, numeric, text) IS
'Make a queue of a queue table a sharded queue of the same name, as aq.convert_queue does; suffix has no effect';

CREATE FUNCTION dbms_aqmigtool._pending(native text) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN (SELECT count(*) FROM aq.messages m
	WHERE m.queue_name = $1 AND m.delivery_mode = 'persistent' AND m.shard IS NULL AND m.state NOT IN ('PROCESSED', 'EXPIRED'));
COMMENT ON FUNCTION dbms_aqmigtool._pending(text) IS 'Internal: what is still to be dequeued from the queue table, once for each consumer';

CREATE PROCEDURE dbms_aqmigtool.check_migrated_messages(cqschema text, cqname text, OUT txeventq_migrated_message bigint,
	OUT cq_pending_messages bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqmigtool._queue(cqschema, cqname);
BEGIN
	cq_pending_messages := dbms_aqmigtool._pending(native);
	txeventq_migrated_message := (SELECT count(*) FROM aq.messages m
		WHERE m.queue_name = native AND m.delivery_mode = 'persistent' AND m.shard IS NOT NULL AND m.state = 'READY');
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.check_migrated_messages(text, text, bigint, bigint) IS
'Messages still to be dequeued from the queue table, and those ready in the sharded store, once for each consumer';

CREATE PROCEDURE dbms_aqmigtool.check_status(cqschema text, cqname text, OUT status text, OUT migration_comment text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqmigtool._queue(cqschema, cqname);
	q record;
BEGIN
	SELECT converting, converted INTO q FROM aq.queues WHERE queue_name = native;
	status := CASE WHEN q.converted IS NULL THEN 'Not migrated' WHEN q.converting THEN 'Migration in progress' ELSE 'Migrated' END;
	migration_comment := CASE WHEN q.converting THEN format('%s messages in the queue table', dbms_aqmigtool._pending(native)) END;
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.check_status(text, text, text, text) IS 'How far the migration of a queue is';

CREATE PROCEDURE dbms_aqmigtool.commit_migration(cqschema text, cqname text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	native text := dbms_aqmigtool._queue(cqschema, cqname);
	pending bigint := dbms_aqmigtool._pending(native);
BEGIN
	IF (SELECT converted IS NULL FROM aq.queues WHERE queue_name = native) THEN
		PERFORM sys._raise_error('AQ005', format('queue "%s" is not being migrated', native),
			'Begin with dbms_aqmigtool.init_migration.');
	ELSIF pending > 0 THEN
		PERFORM sys._raise_error('AQ110', format('queue "%s" still has %s messages in its queue table', native, pending),
			'Dequeue or purge them; the migration then ends by itself.');
	END IF;
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.commit_migration(text, text) IS
'An error while messages are to be dequeued from the queue table; without them the migration ends by itself';

CREATE PROCEDURE dbms_aqmigtool.cancel_migration(cqschema text, cqname text, cancelmode numeric DEFAULT 1)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._raise_error('AQ060', 'a migration cannot be canceled once it is committed',
		'Call init_migration in a transaction and roll that back, or continue the migration.');
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.cancel_migration(text, text, numeric) IS 'Not supported: a committed migration cannot be canceled; init_migration can be rolled back';

CREATE PROCEDURE dbms_aqmigtool.recover_migration(cqschema text, cqname text, OUT recovery_message text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM dbms_aqmigtool._queue(cqschema, cqname);
	recovery_message := 'There is nothing to recover: a migration is begun and ended in one transaction each.';
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.recover_migration(text, text, text) IS 'Nothing to do: no failure leaves a migration half begun or half ended';

CREATE PROCEDURE dbms_aqmigtool.purge_queue_messages(cqschema text, cqname text, purge_option numeric DEFAULT 3)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF purge_option <> 3 THEN
		PERFORM sys._raise_error('AQ060', format('purge option %s is not supported', purge_option),
			'Use dbms_aqmigtool.both_q(), or aq.purge_queue with a condition.');
	END IF;
	PERFORM aq.purge_queue(dbms_aqmigtool._queue(cqschema, cqname));
END $$;
COMMENT ON PROCEDURE dbms_aqmigtool.purge_queue_messages(text, text, numeric) IS 'Purge old and new messages of the queue; the default differs from Oracle''s';
