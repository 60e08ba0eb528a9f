-- The object cache, the dictionary cache, and the properties of the database.

CALL aq_internal.make_source('cache_objects', 'aq_cache_views_objects', 'Objects in the object cache',
	'addr text, database oid, queue_id integer, sharable_mem bigint, loads bigint, locks integer, pins integer, bucket integer,
	 invalidations bigint, hash bigint, lock_mode text, pin_mode text, status text, loaded timestamptz, loaded_before timestamptz,
	 locked_total bigint, pinned_total bigint, property text, full_hash text, mutex_gets bigint, mutex_sleeps bigint');

CALL aq_internal.make_source('cache_locks', 'aq_cache_views_locks', 'Locks and pins of the object cache',
	'type text, addr text, session integer, object_handle text, mode_held integer, mode_requested integer, pid integer');

CALL aq_internal.make_source('cache_library', 'aq_cache_views_library', 'Use of the object cache since the server started',
	'gets bigint, gethits bigint, pins bigint, pinhits bigint, reloads bigint, invalidations bigint, aged_out bigint', 1);

CALL aq_internal.make_source('cache_rows', 'aq_cache_views_rows', 'Use of the dictionary cache since the server started',
	'cache integer, name text, usage integer, clones integer, gets bigint, misses bigint, modifications bigint, flushes bigint,
	 sleeps bigint, latch_child integer', 3);

CREATE FUNCTION aq_internal.properties()
RETURNS TABLE (
	name text,
	value text,
	description text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 30 AS 'MODULE_PATHNAME', 'aq_property_view';
COMMENT ON FUNCTION aq_internal.properties() IS 'Properties of the database, one get of dc_props for each';

CREATE FUNCTION aq_internal.property_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_property_changed';
COMMENT ON FUNCTION aq_internal.property_changed() IS 'Internal: the dictionary cache is not to show what was';
REVOKE EXECUTE ON FUNCTION aq_internal.property_changed() FROM PUBLIC;
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON aq_internal.property
FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.property_changed();

CREATE VIEW aq.database_properties AS
SELECT p.name, p.value, p.description FROM aq_internal.properties() p;
COMMENT ON VIEW aq.database_properties IS
'Properties of the database. Each row of each query is one get of dc_props in the dictionary cache';
COMMENT ON COLUMN aq.database_properties.name IS 'its name';
COMMENT ON COLUMN aq.database_properties.value IS 'what aq.set_property has set, or the default';
COMMENT ON COLUMN aq.database_properties.description IS 'what it is';
GRANT SELECT ON aq.database_properties TO PUBLIC;

CREATE FUNCTION aq.set_property(name text, value text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM aq_internal.properties() p WHERE p.name = set_property.name) THEN
		PERFORM aq_internal.raise_error('AQ005', format('there is no property "%s"', name), 'The view aq.database_properties lists them.');
	END IF;
	IF length(value) NOT BETWEEN 1 AND 200 THEN
		PERFORM aq_internal.raise_error('AQ005', format('the value of property "%s" must have 1 to 200 characters', name), 'Null gives it its default.');
	END IF;
	IF value IS NULL THEN
		DELETE FROM aq_internal.property p WHERE p.name = set_property.name;
	ELSE
		INSERT INTO aq_internal.property VALUES (name, value)
		ON CONFLICT ON CONSTRAINT property_pkey DO UPDATE SET value = excluded.value;
	END IF;
END $$;
COMMENT ON FUNCTION aq.set_property(text, text) IS
'Set a property of the database, as aq.database_properties and, for Oracle''s clients, the views of
  pgaq_oracle show it; null restores its default. Superusers grant EXECUTE.';
REVOKE EXECUTE ON FUNCTION aq.set_property(text, text) FROM PUBLIC;

CALL aq_internal.make_view('aq', 'cached_objects', 'Objects in the object cache: queues in use, of all databases, and the copies of hot ones. Each number is exact, but two numbers of a row are read one after the other',
	$$FROM aq_internal.cache_objects() o
	LEFT JOIN (aq_internal.queue q JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database())
		ON q.queue_id = abs(o.queue_id) AND d.oid = o.database$$, $$
	queue_name = q.queue_name | name of the queue; null for a queue of another database
	database_id = o.database | OID of its database
	queue_id = abs(o.queue_id) | number of the queue
	buffered = o.queue_id < 0 | it is the side of the queue that keeps its buffered messages
	status = o.status | VALID; LOADING: a session is loading it; AGING: it can be evicted; DROPPED: only a pin keeps it in memory
	property = o.property | HOT, or HOTCOPY and the number of the copy, or null
	locks = o.locks | sessions that know the object (they have the null lock or a stronger one)
	pins = o.pins | sessions that have it pinned
	lock_mode = o.lock_mode | strongest lock that a session has: NONE, NULL, SHARE or EXCLUSIVE
	pin_mode = o.pin_mode | strongest pin that a session has: NONE, SHARE or EXCLUSIVE
	loads = o.loads | how often it was loaded while it had this handle
	loaded = o.loaded | when it was loaded
	invalidations = o.invalidations | number of changes of its definition, including rolled back ones
	locked_total = o.locked_total | how often it was locked in share or exclusive mode
	pinned_total = o.pinned_total | how often it was pinned
	mutex_gets = o.mutex_gets | how often its mutex was got
	mutex_sleeps = o.mutex_sleeps | steps of waiting for its mutex
	shared_bytes = o.sharable_mem | bytes of shared memory for the handle and the fixed part of its value; a copy does not have its own value
	bucket = o.bucket | number of its hash bucket, whose mutex protects the chain it is in
	hash = o.hash | its hash: P1 of waits for its mutex
	full_hash = o.full_hash | 128 bits that name it
	addr = o.addr | address of the handle: P1 of waits for its lock and pin, hexadecimal
$$);

CALL aq_internal.make_view('aq', 'object_locks', 'Locks and pins of cached objects, held and waited for', 'FROM aq_internal.cache_locks() l', $$
	session = l.session | number of the session
	pid = l.pid | its process id, as in pg_stat_activity
	type = l.type | LOCK or PIN
	mode_held = (ARRAY['NONE', 'NULL', 'SHARE', 'EXCLUSIVE'])[l.mode_held + 1] | NONE, NULL (the session knows the object), SHARE or EXCLUSIVE
	mode_requested = (ARRAY['NONE', 'NULL', 'SHARE', 'EXCLUSIVE'])[l.mode_requested + 1] | the mode that the session waits for, or NONE
	object = l.object_handle | address of the object, addr in aq.cached_objects
	addr = l.addr | address of the lock or pin: P2 of the wait, hexadecimal
$$);

CALL aq_internal.make_view('aq', 'object_cache', 'Use of the object cache since the server started, of all databases', 'FROM aq_internal.cache_library() l', $$
	gets = l.gets | searches of the hash for an object
	hits = l.gethits | of these: found
	pins = l.pins | how often an object was pinned
	pin_hits = l.pinhits | of these: it did not have to be loaded
	reloads = l.reloads | objects that were loaded again after an eviction; a lower bound
	invalidations = l.invalidations | committed and rolled back changes of definitions of objects in the cache; one for each copy
	aged_out = l.aged_out | objects that were evicted
$$);

CALL aq_internal.make_view('aq', 'dictionary_cache', 'The dictionary caches. Gets and misses are exact: every request is counted once, under the mutex or latch of the row', 'FROM aq_internal.cache_rows() r', $$
	cache = r.name | name: dc_objects (names of queues), dc_users (owner and privileges of a queue), dc_props (properties of the database)
	entries = r.usage | rows in the cache, including clones
	clones = r.clones | of the rows: clones of hot ones
	gets = r.gets | requests for a row
	misses = r.misses | of these: not found, or changed by the session itself, and read from the catalog
	modifications = r.modifications | commands that have changed data that the cache holds, in all databases
	flushes = r.flushes | rows removed from the cache because of a change
	mutex_sleeps = r.sleeps | steps of waiting for the mutexes of the current rows
$$);
