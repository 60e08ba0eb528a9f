-- Sections of the report: latches, mutexes, object cache and dictionary cache.

CREATE FUNCTION aq_internal.report_latch_activity(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('latch_activity', 'Latch Activity',
		ARRAY['Latch Name', 'Get Requests|gets|number|0', 'Pct Get Miss|%|percent|2', 'Avg Slps /Miss|sleeps/miss|number|2', 'Wait Time|s|number|3',
			'NoWait Requests|gets|number|0', 'Pct NoWait Miss|%|percent|2'],
		jsonb_agg(jsonb_build_array(l.latch, l.gets, aq_internal.ratio(l.misses, l.gets, 100), aq_internal.ratio(l.sleeps, l.misses), l.wait_us / 1000000,
			l.immediate_gets, aq_internal.ratio(l.immediate_misses, l.immediate_gets, 100)) ORDER BY l.gets DESC, l.latch),
		ARRAY['Pct Get Miss should be near 0. NoWait Requests do not wait; their misses are part of them.'])
	FROM aq_internal.growths(s, 'latches') g, jsonb_to_record(g) l(latch text, gets numeric, misses numeric, sleeps numeric, wait_us numeric, immediate_gets numeric, immediate_misses numeric)
	WHERE l.gets + l.immediate_gets > 0);
COMMENT ON FUNCTION aq_internal.report_latch_activity(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_latch_sleeps(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('latch_sleeps', 'Latch Sleeps',
		ARRAY['Latch Name', 'Get Requests|gets|number|0', 'Misses|gets|number|0', 'Sleeps|sleeps|number|0', 'Spin Gets|gets|number|0', 'Recurrent Sleeps|sleeps|number|0'],
		jsonb_agg(jsonb_build_array(l.latch, l.gets, l.misses, l.sleeps, l.spin_gets, greatest(l.sleeps + l.spin_gets - l.misses, 0)) ORDER BY l.misses DESC, l.latch),
		ARRAY['Recurrent sleeps: sleeps + spin gets - misses, of gets that slept more than once.'])
	FROM aq_internal.growths(s, 'latches') g, jsonb_to_record(g) l(latch text, gets numeric, misses numeric, sleeps numeric, spin_gets numeric)
	WHERE l.misses > 0);
COMMENT ON FUNCTION aq_internal.report_latch_sleeps(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_latch_misses(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('latch_misses', 'Latch Misses by Location',
		ARRAY['Latch Name', 'Where', 'NoWait Misses|gets|number|0', 'Sleeps|sleeps|number|0', 'Waiter Sleeps|sleeps|number|0'],
		jsonb_agg(jsonb_build_array(l.latch, l.location, l.immediate_misses, l.holder_sleeps, l.waiter_sleeps) ORDER BY l.latch, l.holder_sleeps DESC, l.location),
		ARRAY['Sleeps: the holder had got the latch at this place. Waiter Sleeps: the sleeper asked for it at this place.'])
	FROM aq_internal.growths(s, 'latch_misses') g, jsonb_to_record(g) l(latch text, location text, immediate_misses numeric, holder_sleeps numeric, waiter_sleeps numeric)
	WHERE l.holder_sleeps + l.waiter_sleeps > 0);
COMMENT ON FUNCTION aq_internal.report_latch_misses(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.latch_family(s aq_internal.span, source text, id text, title text, columns text[]) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section(id, title, columns || ARRAY['Get Requests|gets|number|0', 'Misses|gets|number|0', 'Sleeps|sleeps|number|0', 'Spin & Sleeps 1->3+'],
		jsonb_agg(to_jsonb(array_remove(ARRAY[to_jsonb(l.latch), to_jsonb(l.child), to_jsonb(l.gets), to_jsonb(l.misses), to_jsonb(l.sleeps),
			to_jsonb(format('%s/0/0/0', l.spin_gets))], NULL)) ORDER BY l.misses DESC, l.sleeps DESC, l.gets DESC, l.latch, l.child),
		ARRAY[CASE WHEN source = 'latches' THEN 'With misses only, the first 30.' ELSE 'The first 30 by misses, sleeps and gets.' END || ' Sleeps 1->3+ are always 0.'])
	FROM (SELECT l.* FROM aq_internal.growths(s, source) g, jsonb_to_record(g) l(latch text, child integer, has_children boolean, gets numeric, misses numeric, sleeps numeric, spin_gets numeric)
		WHERE (l.misses > 0 OR source <> 'latches' AND l.gets > 0) AND l.has_children IS NOT TRUE ORDER BY l.misses DESC, l.sleeps DESC, l.gets DESC, l.latch, l.child LIMIT 30) l);
COMMENT ON FUNCTION aq_internal.latch_family(aq_internal.span, text, text, text, text[]) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_latch_parent(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN aq_internal.latch_family(s, 'latches', 'latch_parent', 'Latches Without Children', ARRAY['Latch Name']);
COMMENT ON FUNCTION aq_internal.report_latch_parent(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_latch_children(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN aq_internal.latch_family(s, 'latch_children', 'latch_children', 'Latches by Child', ARRAY['Latch Name', 'Child Num|#|number|0']);
COMMENT ON FUNCTION aq_internal.report_latch_children(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_mutex_sleeps(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('mutex_sleeps', 'Mutex Sleeps by Location',
		ARRAY['Mutex Type', 'Location', 'Sleeps|sleeps|number|0', 'Waits|waits|number|0', 'Wait Time|ms|number|0'],
		jsonb_agg(jsonb_build_array(m.mutex_type, m.location, m.sleeps, m.waits, m.wait_us / 1000) ORDER BY m.sleeps DESC, m.mutex_type, m.location),
		ARRAY['Sleeps are steps of the wait loop, waits are requests: one request may sleep many times.'])
	FROM aq_internal.growths(s, 'mutexes') g, jsonb_to_record(g) m(mutex_type text, location text, sleeps numeric, waits numeric, wait_us numeric)
	WHERE m.sleeps > 0);
COMMENT ON FUNCTION aq_internal.report_mutex_sleeps(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_mutex_activity(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('mutex_activity', 'Mutex Activity',
		ARRAY['Mutex Type', 'Location', 'Get Requests|gets|number|0', 'Pct Get Miss|%|percent|2', 'Spin Gets|gets|number|0', 'Waits|waits|number|0', 'Avg Slps /Wait|sleeps/wait|number|2'],
		jsonb_agg(jsonb_build_array(m.mutex_type, m.location, m.gets, aq_internal.ratio(m.misses, m.gets, 100), m.spin_gets, m.waits, aq_internal.ratio(m.sleeps, m.waits)) ORDER BY m.gets DESC, m.mutex_type, m.location))
	FROM aq_internal.growths(s, 'mutexes') g, jsonb_to_record(g) m(mutex_type text, location text, gets numeric, misses numeric, spin_gets numeric, waits numeric, sleeps numeric)
	WHERE m.gets > 0);
COMMENT ON FUNCTION aq_internal.report_mutex_activity(aq_internal.span) IS 'Internal: section of the report';

-- CPU spent in gets, which Oracle does not show.
CREATE FUNCTION aq_internal.report_spin_time(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('spin_time', 'Time in Latch/Mutex Spin',
		ARRAY['Kind', 'Name', 'Spin Time|s|number|3', '% of CPU|%|percent|1', 'Spin Gets|gets|number|0', 'Avg Spin|us/miss|number|2'],
		jsonb_agg(jsonb_build_array(kind, name, seconds, aq_internal.ratio(seconds, aq_internal.time(s, 'DB CPU') + coalesce(aq_internal.time(s, 'background cpu time'), 0), 100), spin_gets, aq_internal.ratio(seconds, misses, 1000000)) ORDER BY seconds DESC, kind, name),
		ARRAY['CPU time that sessions spent polling a latch or mutex that another one had. % of CPU: of DB CPU and background CPU.'])
	FROM (
		SELECT 'latch' AS kind, l.latch AS name, l.spin_us / 1000000 AS seconds, l.spin_gets, l.misses
		FROM aq_internal.growths(s, 'latches') g, jsonb_to_record(g) l(latch text, spin_us numeric, spin_gets numeric, misses numeric)
		UNION ALL
		SELECT 'mutex', m.mutex_type, sum(m.spin_us) / 1000000, sum(m.spin_gets), sum(m.misses)
		FROM aq_internal.growths(s, 'mutexes') g, jsonb_to_record(g) m(mutex_type text, spin_us numeric, spin_gets numeric, misses numeric) GROUP BY m.mutex_type) x
	WHERE seconds > 0);
COMMENT ON FUNCTION aq_internal.report_spin_time(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_dictionary_cache(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('dictionary_cache', 'Dictionary Cache',
		ARRAY['Cache', 'Get Requests|gets|number|0', 'Pct Miss|%|percent|2', 'Mod Reqs|changes|number|0', 'Final Usage|entries|number|0'],
		jsonb_agg(jsonb_build_array(r.cache, r.gets, aq_internal.ratio(r.misses, r.gets, 100), r.modifications, r.entries) ORDER BY r.cache))
	FROM aq_internal.growths(s, 'dictionary_cache') g, jsonb_to_record(g) r(cache text, gets numeric, misses numeric, modifications numeric, entries numeric)
	WHERE r.gets + r.modifications > 0);
COMMENT ON FUNCTION aq_internal.report_dictionary_cache(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_library_cache(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('library_cache', 'Object Cache',
		ARRAY['Namespace', 'Get Requests|gets|number|0', 'Pct Miss|%|percent|2', 'Pin Requests|pins|number|0', 'Pct Pin Miss|%|percent|2', 'Reloads|loads|number|0', 'Invalidations|changes|number|0'],
		jsonb_agg(jsonb_build_array('QUEUE', l.gets, aq_internal.ratio(l.gets - l.hits, l.gets, 100), l.pins, aq_internal.ratio(l.pins - l.pin_hits, l.pins, 100), l.reloads, l.invalidations)))
	FROM aq_internal.growths(s, 'object_cache') g, jsonb_to_record(g) l(gets numeric, hits numeric, pins numeric, pin_hits numeric, reloads numeric, invalidations numeric)
	WHERE l.gets + l.pins > 0);
COMMENT ON FUNCTION aq_internal.report_library_cache(aq_internal.span) IS 'Internal: section of the report';

-- Objects of the object cache, with their share of the sleeps.
CREATE FUNCTION aq_internal.object_growths(s aq_internal.span, OUT object text, OUT property text, OUT full_hash text, OUT hash bigint, OUT locks numeric, OUT pins numeric,
	OUT gets numeric, OUT sleeps numeric, OUT loads numeric, OUT invalidations numeric, OUT part numeric)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(o.queue_name, 'hash ' || o.hash), o.property, o.full_hash, o.hash,
		o.locked_total, o.pinned_total, o.mutex_gets, o.mutex_sleeps, o.loads, o.invalidations, o.mutex_sleeps / nullif(sum(o.mutex_sleeps) OVER (), 0)
	FROM aq_internal.growths(s, 'cached_objects') g, jsonb_to_record(g) o(queue_name text, property text, full_hash text, hash bigint, locked_total numeric,
		pinned_total numeric, mutex_gets numeric, mutex_sleeps numeric, loads numeric, invalidations numeric)
$$;
COMMENT ON FUNCTION aq_internal.object_growths(aq_internal.span) IS 'Internal: objects of the object cache over a span';

CREATE FUNCTION aq_internal.report_objects(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('objects', 'Objects by Mutex Sleeps',
		ARRAY['Object', 'Property', 'Mutex Gets|gets|number|0', 'Mutex Sleeps|sleeps|number|0', '% of Sleeps|%|percent|1', 'Locks|locks|number|0', 'Pins|pins|number|0',
			'Loads|loads|number|0', 'Invalidations|changes|number|0', 'Full Hash'],
		jsonb_agg(jsonb_build_array(object, property, gets, sleeps, part * 100, locks, pins, loads, invalidations, full_hash) ORDER BY sleeps DESC, gets DESC, object),
		ARRAY['The first 20. Sessions lock and pin a queue at its first use and keep that, so gets are few; Property HOT: it has copies. Objects of other databases have no name here.'])
	FROM (SELECT o.* FROM aq_internal.object_growths(s) o WHERE o.gets > 0 ORDER BY o.sleeps DESC, o.gets DESC, o.object LIMIT 20) o);
COMMENT ON FUNCTION aq_internal.report_objects(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_hot_mutexes(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('hot_mutexes', 'Mutexes That Were Waited for Last', ARRAY['Mutex Type', 'Identifier', 'Requests|waits|number|0', 'Sleeps|sleeps|number|0', 'Latest'],
		jsonb_agg(jsonb_build_array(mutex_type, identifier::text, requests, sleeps, aq_internal.when(latest)) ORDER BY sleeps DESC, mutex_type, identifier),
		ARRAY['Requests that waited and ended between begin and end, of the latest 256 that aq.mutex_waits held at the end; the first 10.'])
	FROM (SELECT m.mutex_type, m.identifier, count(*) AS requests, sum((r ->> 1)::numeric) AS sleeps, max((r ->> 0)::timestamptz) AS latest
		FROM jsonb_array_elements((s).later -> 'mutex_waits') g, jsonb_to_record(g) m(mutex_type text, identifier bigint, "each" jsonb), jsonb_array_elements(m."each") r
		WHERE (r ->> 0)::timestamptz >= (s).begin_time AND (r ->> 0)::timestamptz < (s).end_time
		GROUP BY m.mutex_type, m.identifier ORDER BY sleeps DESC, m.mutex_type, m.identifier LIMIT 10) h);
COMMENT ON FUNCTION aq_internal.report_hot_mutexes(aq_internal.span) IS 'Internal: section of the report';
