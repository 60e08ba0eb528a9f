-- Package dbms_shared_pool: marking queues that many sessions lock and pin at the same time.

GRANT EXECUTE ON FUNCTION aq.mark_hot(text, boolean) TO aq_administrator_role;

CREATE FUNCTION sys._mark_hot_by_hash(hash text, hot boolean) RETURNS boolean
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_shared_pool_mark_hot_by_hash';
COMMENT ON FUNCTION sys._mark_hot_by_hash(text, boolean) IS 'Internal: the same, by the full hash value';
REVOKE EXECUTE ON FUNCTION sys._mark_hot_by_hash(text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sys._mark_hot_by_hash(text, boolean) TO aq_administrator_role;

CREATE FUNCTION sys._mark_object(schema text, objname text, namespace numeric, hot boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
DECLARE
	name text := concat_ws('.', nullif(schema, ''), objname);
	native text;
BEGIN
	IF namespace IS DISTINCT FROM 10 THEN
		PERFORM sys._raise_error('AQ005', format('namespace %s has no objects', namespace), 'Queues are in namespace 10.');
	END IF;
	native := coalesce(sys._resolve_queue(name, 'any'), name);
	PERFORM aq.mark_hot(native, hot);
END $$;
COMMENT ON FUNCTION sys._mark_object(text, text, numeric, boolean) IS 'Internal: makes or drops the hot copies of a queue named as Oracle''s packages name it';
REVOKE EXECUTE ON FUNCTION sys._mark_object(text, text, numeric, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sys._mark_object(text, text, numeric, boolean) TO aq_administrator_role;

CREATE FUNCTION sys._mark_hash(hash text, namespace numeric, hot boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_catalog, pg_temp AS $$
BEGIN
	IF namespace IS DISTINCT FROM 10 OR sys._mark_hot_by_hash(hash, hot) IS NOT TRUE THEN
		PERFORM sys._raise_error('AQ005', format('there is no object "%s" in namespace %s', hash, namespace),
			'FULL_HASH_VALUE in sys."v$db_object_cache" names the objects of namespace 10 that are in memory.');
	END IF;
END $$;
COMMENT ON FUNCTION sys._mark_hash(text, numeric, boolean) IS 'Internal: makes or drops the hot copies of an object named by its full hash value';
REVOKE EXECUTE ON FUNCTION sys._mark_hash(text, numeric, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sys._mark_hash(text, numeric, boolean) TO aq_administrator_role;

CREATE PROCEDURE dbms_shared_pool.markhot(schema text, objname text, namespace numeric DEFAULT 10, global boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._mark_object(schema, objname, namespace, true);
END $$;
COMMENT ON PROCEDURE dbms_shared_pool.markhot(text, text, numeric, boolean) IS
'Give a queue copies in the object cache, pgaq.hot_object_copies of them: sessions that lock and pin
  it then meet at their copy''s mutex, not all at one. The mark lasts until the server restarts or
  the queue is dropped; a hot queue never leaves memory.';

CREATE PROCEDURE dbms_shared_pool.markhot(hash text, namespace numeric DEFAULT 10, global boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._mark_hash(hash, namespace, true);
END $$;
COMMENT ON PROCEDURE dbms_shared_pool.markhot(text, numeric, boolean) IS
'The same for the object with this full_hash_value in sys."v$db_object_cache"';

CREATE PROCEDURE dbms_shared_pool.unmarkhot(schema text, objname text, namespace numeric DEFAULT 10, global boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._mark_object(schema, objname, namespace, false);
END $$;
COMMENT ON PROCEDURE dbms_shared_pool.unmarkhot(text, text, numeric, boolean) IS 'Take the copies of a queue away: sessions use the one object again';

CREATE PROCEDURE dbms_shared_pool.unmarkhot(hash text, namespace numeric DEFAULT 10, global boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM sys._mark_hash(hash, namespace, false);
END $$;
COMMENT ON PROCEDURE dbms_shared_pool.unmarkhot(text, numeric, boolean) IS
'The same for the object with this full_hash_value in sys."v$db_object_cache"';

REVOKE EXECUTE ON PROCEDURE dbms_shared_pool.markhot(text, text, numeric, boolean), dbms_shared_pool.markhot(text, numeric, boolean),
	dbms_shared_pool.unmarkhot(text, text, numeric, boolean), dbms_shared_pool.unmarkhot(text, numeric, boolean) FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE dbms_shared_pool.markhot(text, text, numeric, boolean), dbms_shared_pool.markhot(text, numeric, boolean),
	dbms_shared_pool.unmarkhot(text, text, numeric, boolean), dbms_shared_pool.unmarkhot(text, numeric, boolean) TO aq_administrator_role;
