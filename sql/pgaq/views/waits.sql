-- Waits, latches and mutexes: the counters of part sync, and the views on them.
--
-- A session's number is that of its slot, from 1; pid is its process id in PostgreSQL's views. Only members of pg_monitor may read the views.

CALL aq_internal.make_source('sync_latch_names', 'aq_sync_views_latch_names', 'Kinds of latch',
	'latch integer, name text, hash bigint, level integer, has_children boolean, protects text, class integer');

CALL aq_internal.make_source('sync_latch_classes', 'aq_sync_views_latch_classes', 'The classes of latches',
	'class integer, spin integer, yields integer, timed boolean, sleep0 integer, sleep1 integer, sleep2 integer, sleep3 integer, sleep4 integer,
	sleep5 integer, sleep6 integer, sleep7 integer');

CALL aq_internal.make_source('sync_latches', 'aq_sync_views_latches', 'Every latch with its counters',
	'latch integer, name text, hash bigint, level integer, has_children boolean, child integer, addr text,
	gets bigint, misses bigint, sleeps bigint, immediate_gets bigint, immediate_misses bigint,
	waiters_woken bigint, waits_holding_latch bigint, spin_gets bigint, wait_time bigint, spin_time bigint');

CALL aq_internal.make_source('sync_latch_sums', 'aq_sync_views_latch_sums', 'Kinds of latch, all of their latches added up',
	'latch integer, addr text, gets bigint, misses bigint, sleeps bigint, immediate_gets bigint, immediate_misses bigint,
	waiters_woken bigint, waits_holding_latch bigint, spin_gets bigint, wait_time bigint, spin_time bigint');

CALL aq_internal.make_source('sync_held', 'aq_sync_views_held', 'Latches and mutexes held at this moment',
	'session integer, pid integer, is_mutex boolean, addr text, name text, number bigint, mode text, location text, gets bigint');

CALL aq_internal.make_source('sync_latch_misses', 'aq_sync_views_latch_misses', 'Missed latches by place in the code',
	'name text, location text, nwfail_count bigint, sleep_count bigint, wtr_slp_count bigint, longhold_count bigint');

CALL aq_internal.make_source('sync_mutexes', 'aq_sync_views_mutexes', 'Requests for mutexes by place in the code',
	'mutex_type text, location_id integer, location text, gets bigint, misses bigint, waits bigint, sleeps bigint, wait_time bigint, spin_time bigint');

CALL aq_internal.make_source('sync_mutex_history', 'aq_sync_views_mutex_history', 'Latest requests for a mutex that slept',
	'mutex_identifier bigint, sleep_timestamp timestamptz, mutex_type text, gets bigint, sleeps bigint, requesting_session integer,
	blocking_session integer, location text, mutex_value text, p1 bigint, p1raw text, mode text, wait_time bigint');

CALL aq_internal.make_source('sync_locations', 'aq_sync_views_locations', 'Places in the code that ask for a latch or mutex',
	'location_id integer, location text');

CALL aq_internal.make_source('sync_event_names', 'aq_sync_views_event_names', 'Wait events',
	'event integer, event_id bigint, name text, parameter1 text, parameter2 text, parameter3 text, wait_class_id bigint,
	wait_class_number integer, wait_class text, waits_for text');

CALL aq_internal.make_source('sync_events', 'aq_sync_views_events', 'Waits of all sessions since the server started',
	'event integer, waits bigint, timeouts bigint, time_us bigint, max_us bigint, waits_fg bigint, timeouts_fg bigint,
	time_us_fg bigint');

CALL aq_internal.make_source('sync_histogram', 'aq_sync_views_histogram', 'Waits by duration',
	'event integer, bound_us bigint, waits bigint');

CALL aq_internal.make_source('sync_session_events', 'aq_sync_views_session_events', 'Waits of each running session',
	'session integer, pid integer, event integer, waits bigint, timeouts bigint, time_us bigint, max_us bigint');

CALL aq_internal.make_source('sync_session_waits', 'aq_sync_views_session_waits', 'Current or latest wait of each running session',
	'session integer, serial bigint, pid integer, sequence bigint, event integer, waiting boolean, p1 bigint, p2 bigint,
	p3 bigint, p1raw text, p2raw text, p3raw text, wait_us bigint, ago_us bigint, left_us bigint, blocker integer');

CALL aq_internal.make_view('aq', 'wait_events', 'Wait events', 'FROM aq_internal.sync_event_names()', $$
	event = name | name of the event
	wait_class | class; Idle does not count as lost time
	waits_for | what the wait is for
	p1_meaning = parameter1 | what P1 of such a wait is
	p2_meaning = parameter2 | meaning of P2
	p3_meaning = parameter3 | meaning of P3
	event_id | hash of the name
	wait_class_id | identifier of the class
	number = event | number of the event, as the static probes have it
$$);

CALL aq_internal.make_view('aq', 'waits', 'Waits of all sessions in pgaq since the server started, including sessions that have ended',
	'FROM aq_internal.sync_events() e JOIN aq_internal.sync_event_names() n USING (event) WHERE e.waits > 0', $$
	event = n.name | name of the event
	wait_class = n.wait_class | class; Idle does not count as lost time
	waits = e.waits | waits
	timeouts = e.timeouts | waits that ended by their timeout
	total_us = e.time_us | microseconds waited
	max_us = e.max_us | longest wait, microseconds
	client_waits = e.waits_fg | waits of clients' sessions
	client_timeouts = e.timeouts_fg | waits of clients' sessions that ended by their timeout
	client_us = e.time_us_fg | microseconds that clients' sessions waited
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
$$);

CALL aq_internal.make_view('aq', 'wait_histogram', 'Waits by duration, in powers of two of a microsecond',
	'FROM aq_internal.sync_histogram() h JOIN aq_internal.sync_event_names() n USING (event)', $$
	event = n.name | name of the event
	less_than_us = h.bound_us | upper bound in microseconds: waits shorter than this and not shorter than half of it; the last row includes all longer waits
	waits = h.waits | how many
$$);

CALL aq_internal.make_view('aq', 'session_waits', 'Waits of each running session in pgaq since it began; aq.sessions shows what it waits for now',
	'FROM aq_internal.sync_session_events() e JOIN aq_internal.sync_event_names() n USING (event)', $$
	session = e.session | number of the session
	pid = e.pid | its process id, as in pg_stat_activity
	event = n.name | name of the event
	wait_class = n.wait_class | class; Idle does not count as lost time
	waits = e.waits | waits
	timeouts = e.timeouts | waits that ended by their timeout
	total_us = e.time_us | microseconds waited
	max_us = e.max_us | longest wait, microseconds
$$);

-- Kinds of latch, and each latch of those that have several.
DO $do$
DECLARE
	counters text := $$
		gets | times a latch was got by a session willing to wait, however long it took
		misses | of these: the first try failed
		sleeps | sleeps for it; a get can sleep several times
		immediate_gets | no-wait requests
		immediate_misses | of these: it was not got
		waiters_woken | sleepers that were posted when it was released
		waits_holding_latch | sleeps of sessions that held another latch
		spin_gets | misses that got it while spinning, without sleeping
		wait_us = wait_time | microseconds that sessions slept for it
		spin_us = spin_time | microseconds of CPU time that sessions spun for it, including yields of its class
	$$;
BEGIN
	CALL aq_internal.make_view('aq', 'latches',
		'Latches: one row for each kind, its latches added up. Each counter is exact, but two of them may differ by what happened between reading them',
		'FROM aq_internal.sync_latch_names() n JOIN aq_internal.sync_latch_sums() l USING (latch)', $$
		latch = n.name | its name
		level = n.level | its level: a session that holds a latch waits only for one of a higher level
		protects = n.protects | what it protects
		has_children = n.has_children | there are several of the kind, see aq.latch_children
		$$ || counters || $$
		addr = l.addr | address, hexadecimal; of the first one, if there are several
		hash = n.hash | hash of the name
		number = n.latch | number of the kind: P2 of a wait for it
	$$);
	CALL aq_internal.make_view('aq', 'latch_children', 'Each latch of the kinds that have several: one for each queue, shard or broadcast channel',
		'FROM aq_internal.sync_latches() WHERE has_children', $$
		latch = name | its name
		child | number of the child
		level | its level
		$$ || counters || $$
		addr | address, hexadecimal; P1 of a wait for it
		hash | hash of the name
	$$);
END $do$;

CALL aq_internal.make_view('aq', 'latch_misses', 'Missed latches by location in the code', 'FROM aq_internal.sync_latch_misses()', $$
	latch = name | name of the latch
	location | location in the code
	immediate_misses = nwfail_count | no-wait requests at this location that failed
	holder_sleeps = sleep_count | sleeps while the holder had got it at this location
	waiter_sleeps = wtr_slp_count | sleeps of requests at this location
	long_holds = longhold_count | of holder_sleeps: the same holder had it during the whole sleep
$$);

CALL aq_internal.make_view('aq', 'latch_classes', 'The classes of latches, by which this session waits for a latch: pgaq.latch_class_1 to 7, and class 0 with the defaults',
	'FROM aq_internal.sync_latch_classes() c', $$
	class = c.class | number of the class
	spin_count = c.spin | polls before the session yields or sleeps; twice as many for shared mode
	yields = c.yields | times that it yields the processor and polls again before it sleeps
	timed = c.timed | sleeps have a time limit; false: they end only when the session is posted
	sleep_us = CASE WHEN c.timed THEN ARRAY[c.sleep0, c.sleep1, c.sleep2, c.sleep3, c.sleep4, c.sleep5, c.sleep6, c.sleep7] END | limits of the first sleep, the second, ..., in microseconds; the last one is also that of all following sleeps
	latches = ARRAY(SELECT n.name FROM aq_internal.sync_latch_names() n WHERE n.class = c.class ORDER BY n.latch) | names of the latches of this class, as pgaq.latch_classes assigns them
$$);

CALL aq_internal.make_view('aq', 'latch_holders', 'Latches held at this moment; a shared one has a row for each holder',
	'FROM aq_internal.sync_held() WHERE NOT is_mutex', $$
	pid | process id of the holder
	session | number of the holder's session
	latch = name | name of the latch
	child = number | number of the child
	mode | SHARED or EXCLUSIVE
	location | location in the code of the get
	gets | times the latch was got by a session willing to wait
	addr | address of the latch, hexadecimal
$$);

CALL aq_internal.make_view('aq', 'mutexes', 'Requests for mutexes since the server started, by location in the code', 'FROM aq_internal.sync_mutexes()', $$
	mutex_type | what the mutex protects
	location | location in the code of the request
	gets | requests that got it, without waiting or not
	misses | requests willing to wait whose first try failed
	spin_gets = misses - waits | of these: got it while spinning, without a step of the wait scheme
	waits | of these: had to wait
	sleeps | steps of their wait loops
	wait_us = wait_time | microseconds waited; 0 in a wait scheme that only spins
	spin_us = spin_time | microseconds of CPU time spent spinning, including between the steps; in a wait scheme that only spins, all of the wait
	location_id | number of the location; low bits of P3 of a wait
$$);

CALL aq_internal.make_view('aq', 'mutex_waits', 'The latest 256 requests for a mutex that had to wait', 'FROM aq_internal.sync_mutex_history()', $$
	ended = sleep_timestamp | when the wait ended
	mutex_type | what the mutex protects
	identifier = mutex_identifier | hash of the protected object; P1 of the wait
	location | location in the code of the request
	mode | requested mode: SHARED, EXCLUSIVE or EXAMINE
	wait_us = wait_time | microseconds waited
	sleeps | steps of this wait
	gets | gets of the mutex until then
	waiting_session = requesting_session | number of the session that waited
	blocking_session | number of the session that had the mutex when the wait began; null: it was shared
$$);

CALL aq_internal.make_view('aq', 'mutex_holders', 'Mutexes held at this moment', 'FROM aq_internal.sync_held() WHERE is_mutex', $$
	pid | process id of the holder
	session | number of the holder's session
	mutex_type = name | what the mutex protects
	identifier = number | hash of the protected object; P1 of a wait for it
	mode | SHARED, EXCLUSIVE or EXAMINE
	location | location in the code of the get
	gets | gets of the mutex until now
$$);
