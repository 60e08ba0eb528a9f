CALL aq_internal.make_view('sys', 'v$session', 'All processes of the server. Waits of pgaq are exact and have P1 to P3; an event of the form "type: event" is a wait of PostgreSQL''s own, seen at this moment',
	'FROM aq_internal.sessions() s JOIN pg_catalog.pg_stat_activity a ON a.pid = s.pid', $$
	sid = s.session
	serial# = s.pid | process id: distinguishes the session from others with the same number
	user# = a.usesysid | oid of the role
	username = a.usename::text | = role
	status = CASE WHEN a.state IN ('idle', 'idle in transaction', 'idle in transaction (aborted)', 'disabled') THEN 'INACTIVE' ELSE 'ACTIVE' END | ACTIVE: it runs a statement, or is a background process; INACTIVE: it waits for its client
	machine = coalesce(a.client_hostname, host(a.client_addr)) | address of the client; null: a local socket
	port = a.client_port | port of the client; -1: a local socket
	program = coalesce(nullif(a.application_name, ''), a.backend_type) | application_name, or the type of process
	type = CASE WHEN s.background THEN 'BACKGROUND' ELSE 'USER' END | USER (including parallel workers of users' sessions) or BACKGROUND
	sql_id = a.query_id | = query_id
	sql_exec_start = a.query_start | when the statement began, or the last one if there is none
	module = coalesce(s.module, nullif(a.application_name, '')) | as set by dbms_application_info, otherwise application_name
	action = s.action | as set by dbms_application_info
	client_info = s.client_info | as set by dbms_application_info
	logon_time = a.backend_start | when the process began
	last_call_et = extract(epoch FROM clock_timestamp() - a.state_change)::bigint | seconds since the session became active, or inactive
	blocking_session_status = CASE WHEN s.blocker IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: blocking_session is known; NO HOLDER: it is not blocked
	blocking_session = s.blocker
	final_blocking_session_status = CASE WHEN s.final_blocker IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: final_blocking_session is known
	final_blocking_session = s.final_blocker
	seq# = s.sequence | which wait of the session this is
	event# = s.event | number of the event; null: PostgreSQL's own
	event = s.event_name | = event
	p1text = s.p1text | = p1_meaning
	p1 = s.p1
	p1raw = CASE WHEN s.p1 IS NOT NULL THEN upper(lpad(to_hex(s.p1), 16, '0')) END | parameter 1, hexadecimal
	p2text = s.p2text | = p2_meaning
	p2 = s.p2
	p2raw = CASE WHEN s.p2 IS NOT NULL THEN upper(lpad(to_hex(s.p2), 16, '0')) END | parameter 2, hexadecimal
	p3text = s.p3text | = p3_meaning
	p3 = s.p3
	p3raw = CASE WHEN s.p3 IS NOT NULL THEN upper(lpad(to_hex(s.p3), 16, '0')) END | parameter 3, hexadecimal
	wait_class_id = s.wait_class_id | identifier of the class
	wait_class# = s.wait_class_number | number of the class
	wait_class = s.wait_class
	wait_time = CASE WHEN s.waiting THEN 0 WHEN s.wait_us < 10000 THEN -1 WHEN s.wait_us IS NULL THEN -2 ELSE s.wait_us / 10000 END | 0: it is waiting; otherwise the duration of its last wait in hundredths of a second, -1 if shorter, -2 if not known
	seconds_in_wait = CASE WHEN s.waiting THEN s.wait_us ELSE s.ago_us END / 1000000 | seconds since the wait began, or since it ended
	state = CASE WHEN s.waiting THEN 'WAITING' WHEN s.wait_us < 10000 THEN 'WAITED SHORT TIME' WHEN s.wait_us IS NULL THEN 'WAITED UNKNOWN TIME' ELSE 'WAITED KNOWN TIME' END | WAITING, WAITED SHORT TIME (under a hundredth of a second), WAITED KNOWN TIME or WAITED UNKNOWN TIME
	wait_time_micro = s.wait_us | = wait_us
	time_remaining_micro = s.left_us | = left_us
	time_since_last_wait_micro = s.ago_us | = since_wait_us
	pid = s.pid
	database = a.datname::text
	server_state = a.state | its state in pg_stat_activity
	backend_type = a.backend_type
	xact_start = a.xact_start | when its transaction began
	operation = s.operation
	queue_id = s.queue_id
	attached = s.attached
	active = s.active
$$, 'aq.sessions');

CALL aq_internal.make_view('sys', 'v$event_histogram', 'Waits by duration, in powers of two of a millisecond, which has 1024 microseconds here',
	$$FROM
	(SELECT event, least(greatest(bound_us / 1024, 1), 4194304) AS milli, sum(waits)::bigint AS waits
	FROM aq_internal.sync_histogram() GROUP BY 1, 2) h
	JOIN aq_internal.sync_event_names() n USING (event)$$, $$
	event# = n.event | number of the event
	event = n.name
	wait_time_milli = h.milli | upper bound: waits shorter than this and not shorter than half of it; the first row includes all shorter waits, the last row all longer ones
	wait_count = h.waits
	last_update_time = NULL::timestamptz | always null: not known
$$, 'aq.wait_histogram');
