CALL aq_internal.make_view('sys', 'v$latchname', 'The kinds of latch', 'FROM aq_internal.sync_latch_names()', $$
	latch# = latch | number of the latch
	latch = latch | the same, for queries that do not quote the name
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
		gets = %1$sgets%2$s | times the latch was got by a session willing to wait, however long it took
		misses = %1$smisses%2$s | of these: the first try failed
		sleeps = %1$ssleeps%2$s | times a session slept for it; more than one for a get that slept again
		immediate_gets = %1$simmediate_gets%2$s | times it was asked for without waiting
		immediate_misses = %1$simmediate_misses%2$s | of these: it was not got
		waiters_woken = %1$swaiters_woken%2$s | sleepers that were posted when it was freed
		waits_holding_latch = %1$swaits_holding_latch%2$s | sleeps of sessions that held another latch
		spin_gets = %1$sspin_gets%2$s | misses that ended while the session spun, without sleeping
	$$ || (SELECT pg_catalog.string_agg(pg_catalog.format('sleep%s = 0::bigint | always 0', n), E'\n' ORDER BY n) FROM pg_catalog.generate_series(1, 11) n) || $$
		wait_time = %1$swait_time%2$s | microseconds that sessions slept for it
		spin_time = %1$sspin_time%2$s | microseconds that sessions spun for it, yields of its class included
	$$;
	kinds text := $$
		addr = l.addr | address, hexadecimal; of the first one, if there are several
		latch# = n.latch | number of the latch
		latch = n.latch | the same, for queries that do not quote the name
		level# = n.level | its level: a session that holds a latch waits only for one of a higher level
		name = n.name | its name
		hash = n.hash | hash of the name
	$$ || pg_catalog.format(counters, 'coalesce(l.', ', 0)');
BEGIN
	CALL aq_internal.make_view('sys', 'v$latch',
		'Latches: one row for each kind, its children added up. Counters are exact, but two of them may differ by what happened between reading them',
		'FROM aq_internal.sync_latch_names() n JOIN aq_internal.sync_latch_sums() l USING (latch)', kinds);
	CALL aq_internal.make_view('sys', 'v$latch_parent',
		'The latches themselves without their children: one row for each kind. A kind that has children has no latch beside them, so all of its counters are 0',
		'FROM aq_internal.sync_latch_names() n LEFT JOIN aq_internal.sync_latch_sums() l ON l.latch = n.latch AND NOT n.has_children', kinds);
	CALL aq_internal.make_view('sys', 'v$latch_children',
		'Each latch of those kinds that have children: one for each queue or shard',
		'FROM aq_internal.sync_latches() WHERE has_children', $$
		addr | address, hexadecimal; P1RAW of a wait for it
		latch# = latch | number of the latch
		latch = latch | the same, for queries that do not quote the name
		child# = child | number of the child
		child = child | the same, for queries that do not quote the name
		level# = level | its level
		name | its name
		hash | hash of the name
		$$ || pg_catalog.format(counters, '', ''));
END $do$;

CALL aq_internal.make_view('sys', 'v$latchholder', 'Latches held at this moment, and by whom; a shared one has a row for each holder',
	'FROM aq_internal.sync_held() WHERE NOT is_mutex', $$
	pid | process id of the holder
	sid = session | number of the session that holds it
	laddr = addr | address of the latch, hexadecimal
	name | its name
	gets | times the latch was got by a session willing to wait, however long it took
	child# = number | number of the child
	child = number | the same, for queries that do not quote the name
	mode | SHARED or EXCLUSIVE
	location | place in the code that got it
$$);

CALL aq_internal.make_view('sys', 'v$mutexholder', 'Mutexes held at this moment, and by whom',
	'FROM aq_internal.sync_held() WHERE is_mutex', $$
	pid | process id of the holder
	sid = session | number of the session that holds it
	mutex_type = name | what the mutex protects
	mutex_identifier = number | hash of the protected object; P1 of a wait for it
	mode | SHARED, EXCLUSIVE or EXAMINE
	location | place in the code that got it
	gets | gets of the mutex until now
$$);

CALL aq_internal.make_view('sys', 'v$latch_misses', 'Where latches were missed: by the place in the code', 'FROM aq_internal.sync_latch_misses()', $$
	parent_name = name | name of the latch
	where = location | place in the code
	nwfail_count | times a request here did not wait and did not get it
	sleep_count | times a session slept while the holder had got it here
	wtr_slp_count | times a session slept that had asked for it here
	longhold_count | of sleep_count: the same holder had it all through the sleep
	location | place in the code
$$);

CALL aq_internal.make_view('sys', 'v$mutex', 'Requests for mutexes since the server started, by the place in the code that asked', 'FROM aq_internal.sync_mutexes()', $$
	mutex_type | what the mutex protects
	location | place in the code that asked
	location_id | number of the place; low bits of P3 of a wait
	gets | requests that got it, without waiting or not
	misses | requests willing to wait whose first try failed
	spin_gets = misses - waits | of these: got it while spinning, without a step of the wait scheme
	waits | of these: had to wait
	sleeps | steps of their wait loops
	wait_time | microseconds waited; 0 in a wait scheme that only spins
	spin_time | microseconds spent spinning, between the steps too
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep', 'Mutexes that sessions had to wait for, by the place in the code that asked',
	'FROM aq_internal.sync_mutexes() WHERE sleeps > 0', $$
	mutex_type | what the mutex protects
	location | place in the code that asked
	sleeps | steps of the wait loop; a request makes one or more
	wait_time | microseconds waited; 0 in a wait scheme that only spins
	location_id | number of the place; low bits of P3 of a wait
	waits | requests that had to wait
	spin_time | microseconds spent spinning, in requests that had to wait or not
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep_history', 'The latest 256 requests for a mutex that had to wait', 'FROM aq_internal.sync_mutex_history()', $$
	mutex_identifier | hash of the protected object; P1 of the wait
	sleep_timestamp | when the wait ended
	mutex_type | what the mutex protects
	gets | gets of the mutex until then
	sleeps | steps of this wait
	requesting_session | number of the session that waited
	blocking_session | number of the session that had the mutex when the wait began; null: it was shared
	location | place in the code that asked
	mutex_value | the mutex when the wait began: session in the high half, references in the low half, hexadecimal
	p1 | P3 of the wait: object id, namespace and location
	p1raw | the same, hexadecimal
	p2 = NULL::text | always null
	p3 = NULL::text | always null
	p4 = NULL::text | always null
	p5 = NULL::text | always null
	mode | what was asked for: SHARED, EXCLUSIVE or EXAMINE
	wait_time | microseconds waited
$$);

CALL aq_internal.make_view('sys', 'v$latch_location', 'Places in the code that ask for a latch or a mutex', 'FROM aq_internal.sync_locations()', $$
	location_id | number of the place; P3 of a latch wait, low bits of P3 of a mutex wait
	location | name of the place
$$);

CALL aq_internal.make_view('sys', 'v$event_name', 'Wait events',
	'FROM aq_internal.sync_event_names()', $$
	event# = event | number of the event
	event_id | hash of the name
	name | name of the event
	parameter1 | what P1 is
	parameter2 | what P2 is
	parameter3 | what P3 is
	wait_class_id | identifier of the class
	wait_class# = wait_class_number | number of the class
	wait_class | class; Idle is no lost time
	display_name = name | name of the event
	waits_for | what is waited for
$$);

CALL aq_internal.make_view('sys', 'v$system_event', 'What all sessions have waited for in pgaq since the server started, including sessions that have ended',
	'FROM aq_internal.sync_events() e JOIN aq_internal.sync_event_names() n USING (event) WHERE e.waits > 0', $$
	event = n.name | name of the event
	total_waits = e.waits | waits
	total_timeouts = e.timeouts | waits that ended because their time was over
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	time_waited_micro = e.time_us | microseconds waited
	total_waits_fg = e.waits_fg | waits, sessions of users only
	total_timeouts_fg = e.timeouts_fg | waits that ended because their time was over, sessions of users only
	time_waited_fg = e.time_us_fg / 10000 | time waited in hundredths of a second, sessions of users only
	average_wait_fg = round(e.time_us_fg::numeric / nullif(e.waits_fg, 0) / 10000, 2) | average in hundredths of a second, sessions of users only
	time_waited_micro_fg = e.time_us_fg | microseconds waited, sessions of users only
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle is no lost time
	max_wait_micro = e.max_us | longest wait in microseconds
$$);

CALL aq_internal.make_view('sys', 'v$session_event', 'What each running session has waited for in pgaq since it began',
	'FROM aq_internal.sync_session_events() e JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = e.session | number of the session
	event = n.name | name of the event
	total_waits = e.waits | waits
	total_timeouts = e.timeouts | waits that ended because their time was over
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	max_wait = e.max_us / 10000 | longest wait in hundredths of a second
	time_waited_micro = e.time_us | microseconds waited
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle is no lost time
	pid = e.pid | its process id, as in pg_stat_activity
$$);

CALL aq_internal.make_view('sys', 'v$session_wait', 'What each running session waits for in pgaq, or waited for last',
	'FROM aq_internal.sync_session_waits() w JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = w.session | number of the session
	seq# = w.sequence | which wait of the session this is
	event# = w.event | number of the event
	event = n.name | name of the event
	p1text = n.parameter1 | what P1 is
	p1 = w.p1 | parameter 1 of the wait
	p1raw = w.p1raw | parameter 1, hexadecimal
	p2text = n.parameter2 | what P2 is
	p2 = w.p2 | parameter 2 of the wait
	p2raw = w.p2raw | parameter 2, hexadecimal
	p3text = n.parameter3 | what P3 is
	p3 = w.p3 | parameter 3 of the wait
	p3raw = w.p3raw | parameter 3, hexadecimal
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class | class; Idle is no lost time
	wait_time = CASE WHEN w.waiting THEN 0 WHEN w.wait_us < 10000 THEN -1 ELSE w.wait_us / 10000 END | 0: it waits now; otherwise how long it waited last in hundredths of a second, -1 if shorter
	seconds_in_wait = CASE WHEN w.waiting THEN w.wait_us / 1000000 ELSE w.ago_us / 1000000 END | seconds since the wait began, or, when it is over, since it ended
	state = CASE WHEN w.waiting THEN 'WAITING' WHEN w.wait_us < 10000 THEN 'WAITED SHORT TIME' ELSE 'WAITED KNOWN TIME' END | WAITING, WAITED SHORT TIME (under a hundredth of a second) or WAITED KNOWN TIME
	wait_time_micro = w.wait_us | microseconds of the wait, so far when it still waits
	time_remaining_micro = w.left_us | microseconds until its time is over: -1 when it has no limit, 0 when it is over; null when it does not wait
	time_since_last_wait_micro = w.ago_us | microseconds since the wait ended; 0 when it still waits
	pid = w.pid | process id of the session, as in pg_stat_activity
	serial# = w.pid | process id: tells the session from others that have had its number
	blocking_session = w.blocker | number of the session that holds the latch or mutex it waits for, one of them if several share it
$$);

CALL aq_internal.make_view('sys', 'v$event_histogram_micro', 'How long waits took, by powers of two',
	'FROM aq_internal.sync_histogram() h JOIN aq_internal.sync_event_names() n USING (event)', $$
	event# = h.event | number of the event
	event = n.name | name of the event
	wait_time_micro = h.bound_us | upper bound: waits shorter than this and not shorter than half of it; the last one has all longer waits too
	wait_time_format = CASE WHEN h.bound_us < 1000 THEN h.bound_us || ' microseconds' WHEN h.bound_us < 1000000 THEN round(h.bound_us / 1000.0) || ' milliseconds' ELSE round(h.bound_us / 1000000.0) || ' seconds' END | the bound in words
	wait_count = h.waits | how many
	last_update_time = NULL::timestamptz | always null: not known
$$);
