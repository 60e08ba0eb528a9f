CALL aq_internal.make_view('sys', 'v$latchname', 'The kinds of latch', 'FROM aq_internal.sync_latch_names()', $$
	latch# = latch | number of the latch
	latch = latch | the same column, for queries without a quoted name
	name | its name
	display_name = name | its name
	hash | hash of the name
	level# = level | its level: a session that holds a latch waits only for one of a higher level
	protects | what it protects
$$);

-- What Oracle's own scripts read of latches.
CALL aq_internal.make_view('sys', 'x$ksllclass', 'The classes of latches, by which this session waits for a latch',
	'FROM aq_internal.sync_latch_classes() c', $$
	indx = c.class | = class
	spin = c.spin | = spin_count
	yield = c.yields | = yields
	waittime = c.timed::integer | 1: sleeps have a time limit; 0: they end only when the session is posted
	sleep0 = c.sleep0 | time limit of the first sleep, in microseconds
	sleep1 = c.sleep1 | of the second
	sleep2 = c.sleep2 | of the third
	sleep3 = c.sleep3 | of the fourth
	sleep4 = c.sleep4 | of the fifth
	sleep5 = c.sleep5 | of the sixth
	sleep6 = c.sleep6 | of the seventh
	sleep7 = c.sleep7 | of all others
$$, 'aq.latch_classes');

CALL aq_internal.make_view('sys', 'x$kslltr', 'The kinds of latch, with their classes',
	'FROM aq_internal.sync_latch_names() n', $$
	indx = n.latch | number of the latch
	kslltnum = n.latch | the same number
	kslltnam = n.name | its name
	kslltlvl = n.level | its level: a session that holds a latch waits only for one of a higher level
	kslltcnm = 0 | always 0: the row stands for all children
	class_ksllt = n.class | number of its class in sys."x$ksllclass"
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
		spin_time = %1$sspin_time%2$s | microseconds of CPU time that sessions spun for it, including yields of its class
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
		'Each latch of those kinds that have children: one for each queue, shard or broadcast channel',
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
	'FROM aq.latch_holders', $$
	pid
	sid = session
	laddr = addr
	name = latch
	gets
	child# = child
	child | the same column, for queries without a quoted name
	mode
	location
$$);

CALL aq_internal.make_view('sys', 'v$mutexholder', 'Mutexes held at this moment, with their holders',
	'FROM aq.mutex_holders', $$
	pid
	sid = session
	mutex_type
	mutex_identifier = identifier
	mode
	location
	gets
$$);

CALL aq_internal.make_view('sys', 'v$latch_misses', 'Missed latches by location in the code', 'FROM aq.latch_misses', $$
	parent_name = latch
	where = location
	nwfail_count = immediate_misses
	sleep_count = holder_sleeps
	wtr_slp_count = waiter_sleeps
	longhold_count = long_holds | of sleep_count: the same holder had it during the whole sleep
	location
$$);

CALL aq_internal.make_view('sys', 'v$mutex', 'Requests for mutexes since the server started, by location in the code', 'FROM aq.mutexes', $$
	mutex_type
	location
	location_id
	gets
	misses
	spin_gets
	waits
	sleeps
	wait_time = wait_us
	spin_time = spin_us
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep', 'Waits for mutexes, by location in the code of the request',
	'FROM aq.mutexes WHERE sleeps > 0', $$
	mutex_type
	location
	sleeps | steps of the wait loop; a request makes one or more
	wait_time = wait_us
	location_id
	waits | requests that had to wait
	spin_time = spin_us | microseconds of CPU time spent spinning, whether the request had to wait or not
$$);

CALL aq_internal.make_view('sys', 'v$mutex_sleep_history', 'The latest 256 requests for a mutex that had to wait', 'FROM aq_internal.sync_mutex_history()', $$
	mutex_identifier | = identifier
	sleep_timestamp | = ended
	mutex_type
	gets
	sleeps
	requesting_session | = waiting_session
	blocking_session
	location
	mutex_value | the mutex when the wait began: session in the high half, references in the low half, hexadecimal
	p1 | P3 of the wait: object id, namespace and location
	p1raw | the same, hexadecimal
	p2 = NULL::text | always null
	p3 = NULL::text | always null
	p4 = NULL::text | always null
	p5 = NULL::text | always null
	mode
	wait_time | = wait_us
$$, 'aq.mutex_waits');

CALL aq_internal.make_view('sys', 'v$latch_location', 'Locations in the code that request a latch or a mutex', 'FROM aq_internal.sync_locations()', $$
	location_id | number of the location; P3 of a latch wait, low bits of P3 of a mutex wait
	location | name of the location
$$);

CALL aq_internal.make_view('sys', 'v$event_name', 'Wait events',
	'FROM aq_internal.sync_event_names()', $$
	event# = event | number of the event
	event_id
	name | = event
	parameter1 | = p1_meaning
	parameter2 | = p2_meaning
	parameter3 | = p3_meaning
	wait_class_id
	wait_class# = wait_class_number | number of the class
	wait_class
	display_name = name | = event
	waits_for
$$, 'aq.wait_events');

CALL aq_internal.make_view('sys', 'v$system_event', 'Waits of all sessions in pgaq since the server started, including sessions that have ended',
	'FROM aq_internal.sync_events() e JOIN aq_internal.sync_event_names() n USING (event) WHERE e.waits > 0', $$
	event = n.name
	total_waits = e.waits
	total_timeouts = e.timeouts
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	time_waited_micro = e.time_us | = total_us
	total_waits_fg = e.waits_fg | = client_waits
	total_timeouts_fg = e.timeouts_fg | = client_timeouts
	time_waited_fg = e.time_us_fg / 10000 | time waited in hundredths of a second, only of users' sessions
	average_wait_fg = round(e.time_us_fg::numeric / nullif(e.waits_fg, 0) / 10000, 2) | average in hundredths of a second, only of users' sessions
	time_waited_micro_fg = e.time_us_fg | = client_us
	event_id = n.event_id
	wait_class_id = n.wait_class_id
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class
	max_wait_micro = e.max_us
$$, 'aq.waits');

CALL aq_internal.make_view('sys', 'v$session_event', 'Waits of each running session in pgaq since it began',
	'FROM aq_internal.sync_session_events() e JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = e.session
	event = n.name
	total_waits = e.waits
	total_timeouts = e.timeouts
	time_waited = e.time_us / 10000 | time waited in hundredths of a second
	average_wait = round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) | average in hundredths of a second
	max_wait = e.max_us / 10000 | longest wait in hundredths of a second
	time_waited_micro = e.time_us | = total_us
	event_id = n.event_id | hash of the name
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class
	pid = e.pid
$$, 'aq.session_waits');

CALL aq_internal.make_view('sys', 'v$session_wait', 'The current or last wait of each running session in pgaq',
	'FROM aq_internal.sync_session_waits() w JOIN aq_internal.sync_event_names() n USING (event)', $$
	sid = w.session | number of the session
	seq# = w.sequence | which wait of the session this is
	event# = w.event | number of the event
	event = n.name | name of the event
	p1text = n.parameter1 | = p1_meaning
	p1 = w.p1
	p1raw = w.p1raw | parameter 1, hexadecimal
	p2text = n.parameter2 | = p2_meaning
	p2 = w.p2
	p2raw = w.p2raw | parameter 2, hexadecimal
	p3text = n.parameter3 | = p3_meaning
	p3 = w.p3
	p3raw = w.p3raw | parameter 3, hexadecimal
	wait_class_id = n.wait_class_id | identifier of the class
	wait_class# = n.wait_class_number | number of the class
	wait_class = n.wait_class
	wait_time = CASE WHEN w.waiting THEN 0 WHEN w.wait_us < 10000 THEN -1 ELSE w.wait_us / 10000 END | 0: it is waiting; otherwise the duration of its last wait in hundredths of a second, -1 if shorter
	seconds_in_wait = CASE WHEN w.waiting THEN w.wait_us / 1000000 ELSE w.ago_us / 1000000 END | seconds since the wait began, or since it ended
	state = CASE WHEN w.waiting THEN 'WAITING' WHEN w.wait_us < 10000 THEN 'WAITED SHORT TIME' ELSE 'WAITED KNOWN TIME' END | WAITING, WAITED SHORT TIME (under a hundredth of a second) or WAITED KNOWN TIME
	wait_time_micro = w.wait_us | microseconds of the wait, so far if it is still waiting
	time_remaining_micro = w.left_us | microseconds until its timeout: -1 without a timeout, 0 after it; null when it does not wait
	time_since_last_wait_micro = w.ago_us | = since_wait_us
	pid = w.pid
	serial# = w.pid | process id: distinguishes the session from others with the same number
	blocking_session = w.blocker | number of the session that holds the latch or mutex it waits for, one of them if several share it
$$, 'aq.sessions');

CALL aq_internal.make_view('sys', 'v$event_histogram_micro', 'Waits by duration, in powers of two of a microsecond',
	'FROM aq_internal.sync_histogram() h JOIN aq_internal.sync_event_names() n USING (event)', $$
	event# = h.event | number of the event
	event = n.name
	wait_time_micro = h.bound_us | = less_than_us
	wait_time_format = CASE WHEN h.bound_us < 1000 THEN h.bound_us || ' microseconds' WHEN h.bound_us < 1000000 THEN round(h.bound_us / 1000.0) || ' milliseconds' ELSE round(h.bound_us / 1000000.0) || ' seconds' END | the bound in words
	wait_count = h.waits
	last_update_time = NULL::timestamptz | always null: not known
$$, 'aq.wait_histogram');
