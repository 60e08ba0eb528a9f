-- Traces of sessions: every lock, pin, latch, mutex, wait, publication and wake-up.
--
-- Traces are in shared memory. A trace can be read by roles that may trace the session (itself, roles that have the privileges of its role, members
-- of pg_monitor); the C functions check this. A queue's name is shown to roles that may use the queue.

CREATE FUNCTION aq.trace_start(pid integer DEFAULT pg_backend_pid(), operations text[] DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_trace_control_start';
COMMENT ON FUNCTION aq.trace_start(integer, text[]) IS
'Start to trace a session, from its next operation on; an older trace of it is discarded.
pid: its process id (null: this session)
operations: the ones to keep rows of, among lock, pin, latch, mutex, wait, publish and wake-up
  (null: all); counters and histograms cover all operations
Errors 22023, 42704, 53400, 55006';

CREATE FUNCTION aq.trace_stop(pid integer DEFAULT pg_backend_pid())
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_trace_control_stop';
COMMENT ON FUNCTION aq.trace_stop(integer) IS
'Stop the trace of a session.
pid: its process id (null: this session)
It can be read until another trace needs its memory. Stopping it again is a no-op.
Errors 42704';

CREATE FUNCTION aq_internal.traces()
RETURNS TABLE (
	pid integer,
	role oid,
	started_by oid,
	running boolean,
	started timestamptz,
	stopped timestamptz,
	written bigint,
	lost bigint,
	objects bigint,
	unprofiled bigint,
	lock_gets bigint,
	lock_releases bigint,
	pin_gets bigint,
	pin_releases bigint,
	latch_gets bigint,
	latch_releases bigint,
	latch_failures bigint,
	mutex_gets bigint,
	mutex_releases bigint,
	mutex_failures bigint,
	waits bigint,
	timeouts bigint,
	publications bigint,
	wakeups bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4 AS 'MODULE_PATHNAME', 'aq_trace_views_traces';
COMMENT ON FUNCTION aq_internal.traces() IS 'Internal: what aq.traces shows';

CREATE FUNCTION aq_internal.trace_rows(pid integer)
RETURNS TABLE (
	sequence bigint,
	at_ns bigint,
	action text,
	operation text,
	object text,
	number bigint,
	queue_id integer,
	location text,
	mode text,
	elapsed_ns bigint,
	held_ns bigint,
	p1 bigint,
	p2 bigint,
	p3 bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000 AS 'MODULE_PATHNAME', 'aq_trace_views_rows';
COMMENT ON FUNCTION aq_internal.trace_rows(integer) IS 'Internal: what aq.trace shows';

CREATE FUNCTION aq_internal.trace_objects(pid integer)
RETURNS TABLE (
	operation text,
	object text,
	number bigint,
	queue_id integer,
	location text,
	gets bigint,
	releases bigint,
	failures bigint,
	acquire_ns bigint,
	hold_ns bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 30 AS 'MODULE_PATHNAME', 'aq_trace_views_objects';
COMMENT ON FUNCTION aq_internal.trace_objects(integer) IS 'Internal: what aq.trace_objects shows';

CREATE FUNCTION aq_internal.trace_histogram(pid integer)
RETURNS TABLE (
	operation text,
	object text,
	number bigint,
	queue_id integer,
	location text,
	measure text,
	value bigint,
	count bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 200 AS 'MODULE_PATHNAME', 'aq_trace_views_histogram';
COMMENT ON FUNCTION aq_internal.trace_histogram(integer) IS 'Internal: what aq.trace_histogram shows';

CREATE VIEW aq.traces AS
SELECT
	t.pid,
	pg_get_userbyid(t.role) AS role,
	pg_get_userbyid(t.started_by) AS started_by,
	CASE WHEN t.running THEN 'running'
		WHEN EXISTS (SELECT FROM pg_stat_get_activity(t.pid)) THEN 'stopped'
		ELSE 'session ended' END AS state,
	t.started,
	t.stopped,
	t.written AS rows_written,
	t.lost AS rows_lost,
	t.objects,
	t.unprofiled,
	t.lock_gets,
	t.lock_releases,
	t.pin_gets,
	t.pin_releases,
	t.latch_gets,
	t.latch_releases,
	t.latch_failures,
	t.mutex_gets,
	t.mutex_releases,
	t.mutex_failures,
	t.waits,
	t.timeouts,
	t.publications,
	t.wakeups
FROM aq_internal.traces() t;
COMMENT ON VIEW aq.traces IS 'Existing traces of sessions, with their counters';
COMMENT ON COLUMN aq.traces.pid IS 'process id of the traced session';
COMMENT ON COLUMN aq.traces.role IS 'role it has logged in as; null for a background worker';
COMMENT ON COLUMN aq.traces.started_by IS 'role that has started the trace';
COMMENT ON COLUMN aq.traces.state IS 'running, stopped, or session ended';
COMMENT ON COLUMN aq.traces.started IS 'when the trace was started';
COMMENT ON COLUMN aq.traces.stopped IS 'when it was stopped, or the session ended; null while it runs';
COMMENT ON COLUMN aq.traces.rows_written IS 'rows recorded';
COMMENT ON COLUMN aq.traces.rows_lost IS 'the oldest of them, overwritten by newer ones: see pgaq.trace_rows';
COMMENT ON COLUMN aq.traces.objects IS 'sums and histograms, each of an object at a location; from 256 on, further objects are summed by class and location';
COMMENT ON COLUMN aq.traces.unprofiled IS 'gets and waits without sums and histograms, because there are 320 already';
COMMENT ON COLUMN aq.traces.lock_gets IS 'locks of cached objects got';
COMMENT ON COLUMN aq.traces.lock_releases IS 'locks of cached objects released';
COMMENT ON COLUMN aq.traces.pin_gets IS 'pins of cached objects got';
COMMENT ON COLUMN aq.traces.pin_releases IS 'pins of cached objects released';
COMMENT ON COLUMN aq.traces.latch_gets IS 'latches got';
COMMENT ON COLUMN aq.traces.latch_releases IS 'latches released';
COMMENT ON COLUMN aq.traces.latch_failures IS 'requests for a latch that did not wait and did not get it';
COMMENT ON COLUMN aq.traces.mutex_gets IS 'mutexes got';
COMMENT ON COLUMN aq.traces.mutex_releases IS 'mutexes released';
COMMENT ON COLUMN aq.traces.mutex_failures IS 'requests for a mutex that did not wait and did not get it';
COMMENT ON COLUMN aq.traces.waits IS 'waits that have ended';
COMMENT ON COLUMN aq.traces.timeouts IS 'waits that ended by their timeout';
COMMENT ON COLUMN aq.traces.publications IS 'times the session''s commit has made messages ready';
COMMENT ON COLUMN aq.traces.wakeups IS 'sessions it has woken';
GRANT SELECT ON aq.traces TO PUBLIC;

CREATE FUNCTION aq.trace(pid integer DEFAULT pg_backend_pid())
RETURNS TABLE (
	sequence bigint,
	at_ns bigint,
	operation text,
	action text,
	object text,
	number bigint,
	queue text,
	location text,
	mode text,
	elapsed_ns bigint,
	held_ns bigint,
	p1 bigint,
	p2 bigint,
	p3 bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
	SELECT r.sequence, r.at_ns, r.operation, r.action, r.object, r.number, q.queue_name::text,
		r.location, r.mode, r.elapsed_ns, r.held_ns, r.p1, r.p2, r.p3
	FROM aq_internal.trace_rows(pid) r LEFT JOIN (SELECT queue_id, queue_name FROM aq.queues) q USING (queue_id)
	ORDER BY r.sequence;
END;
COMMENT ON FUNCTION aq.trace(integer) IS
'The rows of a session''s trace, the latest pgaq.trace_rows of them.
pid: its process id (null: this session)
at_ns: nanoseconds since the start of the trace
mode: shared, exclusive, examine (of a mutex) or null (of a lock that only registers a user of the
  object)
action: get, release, failed (a no-wait get), begin, end, timeout or post
number: a latch''s child, a mutex''s idn, a cached object''s handle, the number of published
  messages, or the process id of the woken session
elapsed_ns: the time to get or to wait
held_ns: the time held (null: it was got before the trace)
p1, p2, p3: those of the wait that begins
Errors 42704';

CREATE FUNCTION aq.trace_objects(pid integer DEFAULT pg_backend_pid())
RETURNS TABLE (
	operation text,
	object text,
	number bigint,
	queue text,
	location text,
	gets bigint,
	releases bigint,
	failures bigint,
	acquire_ns bigint,
	hold_ns bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 30
BEGIN ATOMIC
	SELECT o.operation, o.object, o.number, q.queue_name::text, o.location, o.gets, o.releases, o.failures, o.acquire_ns, o.hold_ns
	FROM aq_internal.trace_objects(pid) o LEFT JOIN (SELECT queue_id, queue_name FROM aq.queues) q USING (queue_id)
	ORDER BY o.operation, o.object, o.number, o.location;
END;
COMMENT ON FUNCTION aq.trace_objects(integer) IS
'The sums of a session''s trace, by object and location in the code.
pid: its process id (null: this session)
gets: those of an event are its waits
acquire_ns: the time to get or to wait
hold_ns: the time held
Exact, however many rows were lost. In a session that has met more than 256 objects, further ones
  are summed by class: their number and queue are null.
Errors 42704';

CREATE FUNCTION aq.trace_summary(pid integer DEFAULT pg_backend_pid())
RETURNS text LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT format('===== Operations: %s-Counter: [ LOCK: %s/%s, PIN: %s/%s, LATCH: %s/%s, MUTEX: %s/%s ] =====',
		lock_gets + lock_releases + pin_gets + pin_releases + latch_gets + latch_releases + mutex_gets + mutex_releases,
		lock_gets, lock_releases, pin_gets, pin_releases, latch_gets, latch_releases, mutex_gets, mutex_releases)
	FROM (SELECT count(*) FROM aq_internal.trace_objects(trace_summary.pid)) there_is_one
	JOIN aq_internal.traces() t ON t.pid = coalesce(trace_summary.pid, pg_backend_pid());
END;
COMMENT ON FUNCTION aq.trace_summary(integer) IS
'The counters of a session''s trace in one line: gets / releases.
pid: its process id (null: this session)
Errors 42704';

CREATE FUNCTION aq.trace_histogram(pid integer DEFAULT pg_backend_pid())
RETURNS TABLE (
	operation text,
	object text,
	number bigint,
	queue text,
	location text,
	measure text,
	value bigint,
	count bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 200
BEGIN ATOMIC
	SELECT h.operation, h.object, h.number, q.queue_name::text, h.location, h.measure, h.value, h.count
	FROM aq_internal.trace_histogram(pid) h LEFT JOIN (SELECT queue_id, queue_name FROM aq.queues) q USING (queue_id)
	ORDER BY h.operation, h.object, h.number, h.location, h.measure, h.value;
END;
COMMENT ON FUNCTION aq.trace_histogram(integer) IS
'Histograms of a session''s times to get, hold and wait, by object and location in the code.
pid: its process id (null: this session)
measure: acquire (from request to get, or a wait), hold (from get to release) or both
value: a power of two in nanoseconds
count: the number of times from value to less than twice the value
Exact, however many rows were lost.
Errors 42704';

CREATE FUNCTION aq.quantize("values" bigint[], counts bigint[])
RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(cardinality("values"), 0) <> coalesce(cardinality(counts), 0) OR EXISTS (SELECT FROM unnest("values", counts) u (v, c) WHERE v < 0 OR c < 0) THEN
		RAISE invalid_parameter_value USING MESSAGE = 'values and counts are not a histogram', HINT = 'Pass a count for each value; counts must not be negative.';
	END IF;
	RETURN QUERY
	WITH RECURSIVE
		-- a value that is not a power of two is counted in the bucket that contains it
		given AS (SELECT CASE v WHEN 0 THEN 0 ELSE 1::bigint << (64 - position('1' IN v::bit(64)::text)) END AS v, sum(c) AS c
			FROM unnest("values", counts) u (v, c) WHERE c > 0 GROUP BY 1),
		-- with an empty row below the first and above the last
		rows (v) AS (
			SELECT CASE min(v) WHEN 0 THEN 0 ELSE min(v) / 2 END FROM given
			UNION ALL
			SELECT greatest(v * 2, 1) FROM rows WHERE v <= (SELECT max(v) FROM given))
	SELECT '           value  ------------- Distribution ------------- count    '
	UNION ALL
	SELECT format('%16s |%-40s %-9s', v,
		repeat('@', floor(40.0 * coalesce(c, 0) / sum(c) OVER () + 0.5)::integer), coalesce(c, 0))
	FROM (SELECT v, c FROM rows LEFT JOIN given USING (v) WHERE v IS NOT NULL ORDER BY v) ordered;
END $$;
COMMENT ON FUNCTION aq.quantize(bigint[], bigint[]) IS
'A histogram as DTrace''s quantize() prints it.
values: lower bounds, or values
counts: the number of each, in the same order
Includes the empty rows below the first and above the last.';

CREATE FUNCTION aq.trace_quantize(
	pid integer DEFAULT pg_backend_pid(), operation text DEFAULT NULL, object text DEFAULT NULL,
	number bigint DEFAULT NULL, measure text DEFAULT 'both')
RETURNS SETOF text LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF operation NOT IN ('lock', 'pin', 'latch', 'mutex', 'wait') THEN
		RAISE invalid_parameter_value USING MESSAGE = format('there are no histograms of operation "%s"', left(operation, 63)), HINT = 'Operations are lock, pin, latch, mutex and wait; null: all.';
	ELSIF (measure IN ('acquire', 'hold', 'both')) IS NOT TRUE THEN
		RAISE invalid_parameter_value USING MESSAGE = format('there is no measure "%s"', coalesce(left(measure, 63), 'null')), HINT = 'Measures are acquire, hold and both.';
	END IF;
	RETURN QUERY
	SELECT line.text FROM (
		SELECT h.operation, h.object, h.number, array_agg(h.value) AS v, array_agg(h.count) AS c
		FROM aq.trace_histogram(trace_quantize.pid) h
		WHERE h.operation = coalesce(trace_quantize.operation, h.operation)
			AND h.object = coalesce(trace_quantize.object, h.object)
			AND h.number IS NOT DISTINCT FROM coalesce(trace_quantize.number, h.number)
			AND h.measure = CASE WHEN h.operation = 'wait' THEN 'acquire' ELSE trace_quantize.measure END
		GROUP BY h.operation, h.object, h.number) one,
	LATERAL (
		SELECT 1, 1, format('%s %s%s', one.operation, one.object, ' ' || one.number)
		UNION ALL SELECT 2, n, t FROM aq.quantize(one.v, one.c) WITH ORDINALITY q (t, n)
		UNION ALL SELECT 3, 1, '') line (part, n, text)
	ORDER BY one.operation, one.object, one.number, line.part, line.n;
END $$;
COMMENT ON FUNCTION aq.trace_quantize(integer, text, text, bigint, text) IS
'Histograms of a session''s trace as text, one for each latch, mutex, lock, pin and event.
pid: its process id (null: this session)
operation: only of latch, mutex, lock, pin or wait
object: only of objects of this name
number: only of this child, idn or handle
measure: acquire (from request to get), hold (from get to release) or both; for a wait it is always
  its duration
Errors 42704';
