CALL aq_internal.make_view('sys', 'v$db_object_cache', 'Objects in the object cache: queues in use, of all databases, and the copies of hot ones. Each number is exact, but two numbers of a row are read one after the other',
	$$FROM aq_internal.cache_objects() o
	LEFT JOIN (aq_internal.queue q JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database())
		ON q.queue_id = abs(o.queue_id) AND d.oid = o.database$$, $$
	owner = sys._oracle_case(sys._name_schema(q.queue_name)) | schema of the queue; null for a queue of aq.create_queue, and for one of another database
	name = sys._oracle_case(sys._bare_name(q.queue_name)) | = queue_name
	db_link = NULL::text | always null
	namespace = 'QUEUE'::text | QUEUE, the only one there is (its number is 10)
	type = CASE WHEN o.queue_id < 0 THEN 'BUFFERED QUEUE' ELSE 'QUEUE' END | QUEUE, or BUFFERED QUEUE for the buffered messages of a queue
	sharable_mem = o.sharable_mem | = shared_bytes
	loads = o.loads
	executions = 0::bigint | always 0
	locks = o.locks
	pins = o.pins
	kept = sys._yes_no(o.property = 'HOT') | YES: it is never evicted, because it is hot
	child_latch = o.bucket
	invalidations = o.invalidations
	hash_value = o.hash
	lock_mode = o.lock_mode
	pin_mode = o.pin_mode
	status = o.status
	timestamp = o.loaded
	previous_timestamp = o.loaded_before | when it was loaded before that
	locked_total = o.locked_total
	pinned_total = o.pinned_total
	property = o.property
	full_hash_value = o.full_hash | 128-bit hash that identifies it in dbms_shared_pool.markhot
	addr = o.addr | address of the handle: P1 of library cache lock and library cache pin, hexadecimal
	database_id = o.database
	queue_id = o.queue_id | number of the queue; negative for its buffered messages
	mutex_gets = o.mutex_gets
	mutex_sleeps = o.mutex_sleeps
$$, 'aq.cached_objects');

CALL aq_internal.make_view('sys', 'v$libcache_locks', 'Locks and pins of objects, held and waited for',
	'FROM aq_internal.cache_locks() l', $$
	type = l.type
	addr = l.addr
	holding_user_session = l.session
	holding_session = l.session
	object_handle = l.object_handle | address of the object in sys."v$db_object_cache"
	lock_held = NULL::text | always null
	refcount = 1 | always 1: a session's locks of an object are one lock
	mode_held = l.mode_held | 0 none, 1 null (the session knows the object), 2 share, 3 exclusive
	mode_requested = l.mode_requested | the mode that the session waits for, or 0
	savepoint_number = NULL::bigint | always null
	pid = l.pid
$$, 'aq.object_locks');

CALL aq_internal.make_view('sys', 'v$librarycache', 'Use of the object cache since the server started, of all databases',
	'FROM aq.object_cache', $$
	namespace = 'QUEUE'::text | QUEUE, the only one there is
	gets
	gethits = hits
	gethitratio = CASE WHEN gets = 0 THEN 1 ELSE round(hits::numeric / gets, 4) END | gethits / gets; 1 when there were no gets
	pins
	pinhits = pin_hits
	pinhitratio = CASE WHEN pins = 0 THEN 1 ELSE round(pin_hits::numeric / pins, 4) END | pinhits / pins; 1 when there were no pins
	reloads
	invalidations
	dlm_lock_requests = 0::bigint | always 0
	dlm_pin_requests = 0::bigint | always 0
	dlm_pin_releases = 0::bigint | always 0
	dlm_invalidation_requests = 0::bigint | always 0
	dlm_invalidations = 0::bigint | always 0
	aged_out
$$);

CALL aq_internal.make_view('sys', 'v$rowcache', 'The dictionary caches. Gets and misses are exact: every request is counted once, under the mutex or latch of the row',
	'FROM aq_internal.cache_rows() r', $$
	cache# = r.cache | Oracle's number of the cache: P1 of row cache mutex
	type = 'PARENT'::text | PARENT
	subordinate# = NULL::integer | always null
	parameter = r.name | = cache
	count = r.usage | = entries
	usage = r.usage | equal to num_msgs: all of them are valid
	fixed = 0 | always 0
	gets = r.gets
	fastgets = 0::bigint | always 0
	getmisses = r.misses
	scans = 0::bigint | always 0: rows are requested one by one
	scanmisses = 0::bigint | always 0
	scancompletes = 0::bigint | always 0
	modifications = r.modifications
	flushes = r.flushes
	dlm_requests = 0::bigint | always 0
	dlm_conflicts = 0::bigint | always 0
	dlm_releases = 0::bigint | always 0
	clones = r.clones
	mutex_sleeps = r.sleeps
	latch_child = r.latch_child | number of the cache's latch in sys."v$latch_children", row cache objects
$$, 'aq.dictionary_cache');

-- What Oracle's own scripts read to find a cache by its latch.
CALL aq_internal.make_view('sys', 'x$kqrst', 'The dictionary caches, with the numbers of their latches',
	'FROM aq_internal.cache_rows() r', $$
	indx = r.cache | Oracle's number of the cache
	kqrstcid = r.cache | the same number
	kqrsttxt = r.name | name of the cache
	kqrstcln = r.latch_child | number of the cache's latch in sys."v$latch_children", row cache objects
	kqrstgrq = r.gets | requests for rows
	kqrstgmi = r.misses | of these: the row was not in the cache
$$);

CREATE VIEW sys.database_properties AS
SELECT p.name AS property_name, p.value AS property_value, p.description FROM aq_internal.properties() p;
COMMENT ON VIEW sys.database_properties IS
'Properties of the database. Each row of each query is one get of dc_props in the dictionary cache';
COMMENT ON COLUMN sys.database_properties.property_name IS 'name';
COMMENT ON COLUMN sys.database_properties.property_value IS 'value: what aq.set_property has set, or the default';
COMMENT ON COLUMN sys.database_properties.description IS 'what it is';
GRANT SELECT ON sys.database_properties TO PUBLIC;

CREATE VIEW sys.nls_database_parameters AS
SELECT p.name AS parameter, left(p.value, 64) AS value FROM aq_internal.properties() p WHERE p.name LIKE 'NLS\_%';
COMMENT ON VIEW sys.nls_database_parameters IS
'Language settings that Oracle''s clients read; they have no effect on PostgreSQL. Reads all properties, as Oracle''s view does: each query gets as many rows of dc_props as sys.database_properties has';
COMMENT ON COLUMN sys.nls_database_parameters.parameter IS 'name';
COMMENT ON COLUMN sys.nls_database_parameters.value IS 'value';
GRANT SELECT ON sys.nls_database_parameters TO PUBLIC;
