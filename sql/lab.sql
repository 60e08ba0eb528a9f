-- The functions of the extension pgaq_lab, in schema aq_lab: deliberate contention. Superusers only.

-- Names are not resolved in schemas in which other roles may have created objects.
SET LOCAL search_path TO pg_catalog, pg_temp;

CREATE FUNCTION aq_lab.hold_latch(latch text, seconds double precision, mode text DEFAULT 'exclusive', child integer DEFAULT 0)
RETURNS void LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_hold_latch';
COMMENT ON FUNCTION aq_lab.hold_latch(text, double precision, text, integer) IS
'Get a latch, sleep while holding it, and release it. Sessions that need a real latch wait until its
  release and cannot be cancelled meanwhile.
latch: its name, as in aq.latches; "lab" protects nothing
seconds: how long; a cancelled or terminated session releases it at once
mode: exclusive or shared
child: its number, 1 to 8 of "lab", 0 of a latch without children';

CREATE FUNCTION aq_lab.hold_mutex(mutex text, seconds double precision, mode text DEFAULT 'exclusive')
RETURNS void LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_hold_mutex';
COMMENT ON FUNCTION aq_lab.hold_mutex(text, double precision, text) IS
'Get a mutex, sleep while holding it, and release it.
mutex: "lab 1" to "lab 8", which protect nothing, or the hash value of an object of the object cache
seconds: how long; a cancelled or terminated session releases it at once
mode: exclusive, shared or examine';

CREATE FUNCTION aq_lab._settings() RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(array_agg(word), '{}')
	FROM pg_catalog.pg_settings, unnest(ARRAY[name, setting]) word
	WHERE name LIKE 'pgaq.%' AND source = 'session' AND context IN ('user', 'superuser')
$$;
COMMENT ON FUNCTION aq_lab._settings() IS
'Internal: what this session has set, for the sessions of an experiment.';

CREATE FUNCTION aq_lab.hammer_latch(latch text, child integer DEFAULT 1, mode text DEFAULT 'exclusive', sessions integer DEFAULT 2,
	seconds double precision DEFAULT 1, hold_us bigint DEFAULT 0, pause_us bigint DEFAULT 0, settings text[] DEFAULT aq_lab._settings())
RETURNS TABLE (session integer, pid integer, gets bigint, elapsed_us bigint, cpu_us bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 16 AS 'MODULE_PATHNAME', 'aq_hammer_latch';
COMMENT ON FUNCTION aq_lab.hammer_latch(text, integer, text, integer, double precision, bigint, bigint, text[]) IS
'Several sessions get and release one latch as often as they can; one row for each, with its number in
  the views (session), its process id, its gets, and the microseconds it took, by the clock and of a
  processor.
latch, child: its name and number
mode: exclusive or shared
sessions: background workers, 1 to 256
seconds: how long
hold_us: microseconds that the latch is held each time, busily
pause_us: microseconds of work between two gets
settings: parameters of those sessions, as name, value, ...; by default the settings of this session';

CREATE FUNCTION aq_lab.hammer_mutex(mutex text, mode text DEFAULT 'exclusive', sessions integer DEFAULT 2,
	seconds double precision DEFAULT 1, hold_us bigint DEFAULT 0, pause_us bigint DEFAULT 0, settings text[] DEFAULT aq_lab._settings())
RETURNS TABLE (session integer, pid integer, gets bigint, elapsed_us bigint, cpu_us bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 16 AS 'MODULE_PATHNAME', 'aq_hammer_mutex';
COMMENT ON FUNCTION aq_lab.hammer_mutex(text, text, integer, double precision, bigint, bigint, text[]) IS
'The same with a mutex.
mutex: "lab 1" to "lab 8", or the hash value of an object of the object cache
mode: exclusive, shared or examine';

CREATE FUNCTION aq_lab.burn(iterations bigint) RETURNS bigint
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_hold_burn';
COMMENT ON FUNCTION aq_lab.burn(bigint) IS 'Keep a processor busy for a number of iterations; returns the microseconds it took.';

CREATE FUNCTION aq_lab.fail_holding(number integer, fatal boolean DEFAULT false)
RETURNS void LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_hold_fail';
COMMENT ON FUNCTION aq_lab.fail_holding(integer, boolean) IS
'Get a latch and a mutex of the lab and fail without releasing them, to show that nothing remains held.
number: which, 1 to 8
fatal: true also ends the session';

CREATE FUNCTION aq_lab.cost(gets integer DEFAULT 10000)
RETURNS TABLE (what text, mode text, nanoseconds double precision, of_lwlock double precision)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 11 AS 'MODULE_PATHNAME', 'aq_hold_cost';
COMMENT ON FUNCTION aq_lab.cost(integer) IS
'The cost of an uncontended get and release of a latch or mutex, and of a pin and its unpin, compared
  with PostgreSQL''s LWLock and spinlock: nanoseconds, and how many times that of an LWLock in such a
  mode; medians of 101 rounds, each of which measures all of them.
gets: number of gets or pins in each round';

CREATE FUNCTION aq_lab.memory()
RETURNS TABLE (what text, bytes integer)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 4 AS 'MODULE_PATHNAME', 'aq_hold_memory';
COMMENT ON FUNCTION aq_lab.memory() IS
'The shared memory of a latch, of a mutex, and of PostgreSQL''s LWLock and spinlock, in bytes: what
  each takes in an array of them.';

DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'aq_lab'::regnamespace LOOP
		EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END $$;
