CALL aq_internal.make_view('sys', 'v$latchname', 'The kinds of latch', 'FROM aq_internal.sync_latch_names()', $$
	latch# = latch | number of the latch
	latch = latch | the same column, for queries without a quoted name
	name | its name
	display_name = name | its name
	hash | hash of the name
	level# = level | its level: a session that holds a latch waits only for one of a higher level
	protects | what it protects
$$);

-- Three views of the same columns: kinds of latch, parents, children.
DO $do$
DECLARE
	counters text := $$
		gets = %1$sgets%2$s | willing-to-wait requests, however long they waited
		misses = %1$smisses%2$s | of these: the first try failed
		sleeps = %1$ssleeps%2$s | sleeps for it; a get can sleep several times
		immediate_gets = %1$simmediate_gets%2$s | no-wait requests
		immediate_misses = %1$simmediate_misses%2$s | of these: it was not got
		waiters_woken = %1$swaiters_woken%2$s | sleepers that were posted when it was released
		waits_holding_latch = %1$swaits_holding_latch%2$s | sleeps of sessions that held another latch
		spin_gets = %1$sspin_gets%2$s | misses that got it while spinning, without sleeping
	$$ || (SELECT pg_catalog.string_agg(pg_catalog.format('sleep%s = 0::bigint | always 0', n), E'\n' ORDER BY n) FROM pg_catalog.generate_series(1, 11) n) || $$
		wait_time = %1$swait_time%2$s | microseconds that sessions slept for it
		spin_time = %1$sspin_time%2$s | microseconds that sessions spun for it, including yields of its class
	$$;
	kinds text := $$
		addr = l.addr | address, hexadecimal; of the first one, if there are several
		latch# = n.latch | number of the latch
		latch = n.latch | the same column, for queries without a quoted name
		level# = n.level | its level: a session that holds a latch waits only for one of a higher level
		name = n.name | its name
		hash = n.hash | hash of the name
	$$ || pg_catalog.format(counters, 'coalesce(l.', ', 0)');
BEGIN
	CALL aq_internal.make_view('sys', 'v$latch',
		'Latches: one row for each kind, its children added up. Counters are exact, but are read one after the other',
		'FROM aq_internal.sync_latch_names() n JOIN aq_internal.sync_latch_sums() l USING (latch)', kinds);
	CALL aq_internal.make_view('sys', 'v$latch_parent',
		'Latches without their children: one row for each kind. A kind with children has no latch besides them, so all of its counters are 0',
		'FROM aq_internal.sync_latch_names() n LEFT JOIN aq_internal.sync_latch_sums() l ON l.latch = n.latch AND NOT n.has_children', kinds);
	CALL aq_internal.make_view('sys', 'v$latch_children',
		'Each latch of those kinds that have children: one for each queue or shard',
		'FROM aq_internal.sync_latches() WHERE has_children', $$
		addr | address, hexadecimal; P1RAW of a wait for it
		latch# = latch | number of the latch
		latch = latch | the same column, for queries without a quoted name
		child# = child | number of the child
		child = child | the same column, for queries without a quoted name
		level# = level | its level
		name | its name
		hash | hash of the name
		$$ || pg_catalog.format(counters, '', ''));
END $do$;

CALL aq_internal.make_view('sys', 'v$latchholder', 'Latches held at this moment, with their holders; a shared latch has a row for each holder',
	'FROM aq_internal.sync_held() WHERE NOT is_mutex', $$
	pid | process id of the holder
	sid = session | number of the session that holds it
	laddr = addr | address of the latch, hexadecimal
	name | its name
	gets | willing-to-wait requests, however long they waited
	child# = number | number of the child
	child = number | the same column, for queries without a quoted name
	mode | SHARED or EXCLUSIVE
	location | location in the code of the get
$$);

CALL aq_internal.make_view('sys', 'v$mutexholder', 'Mutexes held at this moment, with their holders',
	'FROM aq_internal.sync_held() WHERE is_mutex', $$
	pid | process id of the holder
	sid = session | number of the session that holds it
	mutex_type = name | what the mutex protects
	mutex_identifier = number | hash of the protected object; P1 of a wait for it
	mode | SHARED, EXCLUSIVE or EXAMINE
	location | location in the code of the get
	gets | gets of the mutex until now
$$);

CALL aq_internal.make_view('sys', 'v$latch_misses', 'Missed latches by location in the code', 'FROM aq_internal.sync_latch_misses()', $$
	parent_name = name | name of the latch
	where = location | location in the code
	nwfail_count | no-wait requests at this location that failed
	sleep_count | sleeps while the holder had got it at this location
	wtr_slp_count | sleeps of requests at this location
	longhold_count | of sleep_count: one holder kept it during the whole sleep
	location | location in the code
$$);

CALL aq_internal.make_view('sys', 'v$mutex', 'Requests for mutexes since the server started, by location in the code', 'FROM aq_internal.sync_mutexes()', $$
	mutex_type | what the mutex protects
	location | location in the code of the request
	location_id | number of the location; low bits of P3 of a wait
	gets | requests that got it, without waiting or not
	misses | requests willing to wait whose first try failed
	spin_gets = misses - waits | of these: got it while spinning, without a step of the wait scheme
	waits | of these: had to wait
	sleeps | steps of their wait loops
	wait_time | microseconds waited; 0 in a wait scheme that only spins
	spin_time | microseconds spent spinning, including between the steps
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep', 'Waits for mutexes, by location in the code of the request',
	'FROM aq_internal.sync_mutexes() WHERE sleeps > 0', $$
	mutex_type | what the mutex protects
	location | location in the code of the request
	sleeps | steps of the wait loop; a request makes one or more
	wait_time | microseconds waited; 0 in a wait scheme that only spins
	location_id | number of the location; low bits of P3 of a wait
	waits | requests that had to wait
	spin_time | microseconds spent spinning, whether the request had to wait or not
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep_history', 'The latest 256 requests for a mutex that had to wait', 'FROM aq_internal.sync_mutex_history()', $$
	mutex_identifier | hash of the protected object; P1 of the wait
	sleep_timestamp | when the wait ended
	mutex_type | what the mutex protects
	gets | gets of the mutex until then
	sleeps | steps of this wait
	requesting_session | number of the session that waited
	blocking_session | number of the session that had the mutex when the wait began; null: it was shared
	location | location in the code of the request
	mutex_value | the mutex when the wait began: session in the high half, references in the low half, hexadecimal
	p1 | P3 of the wait: object id, namespace and location
	p1raw | the same, hexadecimal
	p2 = NULL::text | always null
	p3 = NULL::text | always null
	p4 = NULL::text | always null
	p5 = NULL::text | always null
	mode | requested mode: SHARED, EXCLUSIVE or EXAMINE
	wait_time | microseconds waited
$$);

CALL aq_internal.make_view('sys', 'v$latch_location', 'Locations in the code that request a latch or a mutex', 'FROM aq_internal.sync_locations()', $$
	location_id | number of the location; P3 of a latch wait, low bits of P3 of a mutex wait
	location | name of the location
$$);

CALL aq_internal.make_view('sys', 'v$event_name', 'Wait events',
	'FROM aq_internal.sync_event_names()', $$
	event# = event | number of the event
	event_id | hash of the name
	name | name of the event
	parameter1 | meaning of P1
	parameter2 | meaning of P2
	parameter3 | meaning of P3
	wait_class_id | identifier of the class
	wait_class# = wait_class_number | number of the class
	wait_class | class; Idle does not count as lost time
	display_name = name | name of the event
	waits_for | what the wait is for
$$);

CALL aq_internal.make_view('sys', 'v$system_event', 'Waits of all sessions in pgaq since the server started, including sessions that have ended',
	'FROM aq_internal.sync_events() e JOIN aq_internal.sync_event_names() n USING (event) WHERE e.waits > 0', $$
	event = n.name | name of the event
	total_waits = e.waits | waits
	total_timeouts = e.timeouts | waits that ended by their timeout
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	time_waited_micro = e.time_us | microseconds waited
	total_waits_fg = e.waits_fg | waits, only of users' sessions
	total_timeouts_fg = e.timeouts_fg | waits that ended by their timeout, only of users' sessions
	time_waited_fg = e.time_us_fg / 10000 | time waited in hundredths of a second, only of users' sessions
	average_wait_fg = round(e.time_us_fg::numeric / nullif(e.waits_fg, 0) / 10000, 2) | average in hundredths of a second, only of users' sessions
	time_waited_micro_fg = e.time_us_fg | microseconds waited, only of users' sessions
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle does not count as lost time
	max_wait_micro = e.max_us | longest wait in microseconds
$$);

CALL aq_internal.make_view('sys', 'v$session_event', 'Waits of each running session in pgaq since it began',
	'FROM aq_internal.sync_session_events() e JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = e.session | number of the session
	event = n.name | name of the event
	total_waits = e.waits | waits
	total_timeouts = e.timeouts | waits that ended by their timeout
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	max_wait = e.max_us / 10000 | longest wait in hundredths of a second
	time_waited_micro = e.time_us | microseconds waited
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle does not count as lost time
	pid = e.pid | its process id, as in pg_stat_activity
$$);

CALL aq_internal.make_view('sys', 'v$session_wait', 'The current or last wait of each running session in pgaq',
	'FROM aq_internal.sync_session_waits() w JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = w.session | number of the session
	seq# = w.sequence | which wait of the session this is
	event# = w.event | number of the event
	event = n.name | name of the event
	p1text = n.parameter1 | meaning of P1
	p1 = w.p1 | parameter 1 of the wait
	p1raw = w.p1raw | parameter 1, hexadecimal
	p2text = n.parameter2 | meaning of P2
	p2 = w.p2 | parameter 2 of the wait
	p2raw = w.p2raw | parameter 2, hexadecimal
	p3text = n.parameter3 | meaning of P3
	p3 = w.p3 | parameter 3 of the wait
	p3raw = w.p3raw | parameter 3, hexadecimal
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle does not count as lost time
	wait_time = CASE WHEN w.waiting THEN 0 WHEN w.wait_us < 10000 THEN -1 ELSE w.wait_us / 10000 END | 0: it is waiting; otherwise the duration of its last wait in hundredths of a second, -1 if shorter
	seconds_in_wait = CASE WHEN w.waiting THEN w.wait_us / 1000000 ELSE w.ago_us / 1000000 END | seconds since the wait began, or since it ended
	state = CASE WHEN w.waiting THEN 'WAITING' WHEN w.wait_us < 10000 THEN 'WAITED SHORT TIME' ELSE 'WAITED KNOWN TIME' END | WAITING, WAITED SHORT TIME (under a hundredth of a second) or WAITED KNOWN TIME
	wait_time_micro = w.wait_us | microseconds of the wait, so far if it is still waiting
	time_remaining_micro = w.left_us | microseconds until its timeout: -1 without a timeout, 0 after it; null when it does not wait
	time_since_last_wait_micro = w.ago_us | microseconds since the wait ended; 0 if it is still waiting
	pid = w.pid | process id of the session, as in pg_stat_activity
	serial# = w.pid | process id: distinguishes the session from others with the same number
	blocking_session = w.blocker | number of the session that holds the latch or mutex it waits for, one of them if several share it
$$);

CALL aq_internal.make_view('sys', 'v$event_histogram_micro', 'Waits by duration, in powers of two of a microsecond',
	'FROM aq_internal.sync_histogram() h JOIN aq_internal.sync_event_names() n USING (event)', $$
	event# = h.event | number of the event
	event = n.name | name of the event
	wait_time_micro = h.bound_us | upper bound: waits shorter than this and not shorter than half of it; the last row includes all longer waits
	wait_time_format = CASE WHEN h.bound_us < 1000 THEN h.bound_us || ' microseconds' WHEN h.bound_us < 1000000 THEN round(h.bound_us / 1000.0) || ' milliseconds' ELSE round(h.bound_us / 1000000.0) || ' seconds' END | the bound in words
	wait_count = h.waits | how many
	last_update_time = NULL::timestamptz | always null: not known
$$);
