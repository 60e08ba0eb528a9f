-- The history of active sessions under Oracle's names.

CALL aq_internal.make_view('sys', 'v$active_session_history', 'Active sessions of the whole server, sampled every pgaq.ash_interval; as many rows as pgaq.ash_size holds. A session in an idle wait is not active. Samples, not counts: a wait shorter than the interval is sampled by chance',
	$$FROM aq_internal.ash_rows(0) h
	LEFT JOIN pg_catalog.pg_roles u ON u.oid = h.user_id
	LEFT JOIN pg_catalog.pg_database d ON d.oid = h.database
	LEFT JOIN aq_internal.queue q ON q.queue_id = h.queue_id AND d.datname = current_database()$$, $$
	sample_id = h.sample_id
	sample_time = h.sample_time | when it was taken
	is_awr_sample = CASE WHEN h.sample_id % 10 = 0 THEN 'Y' ELSE 'N' END | Y: it is kept in sys.dba_hist_active_sess_history
	session_id = h.session
	session_serial# = h.pid
	session_type = CASE WHEN h.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	user_id = h.user_id | oid of its role
	sql_id = h.query_id
	top_level_sql_id = h.query_id | the same
	event = h.event_name
	event_id = h.event_id | hash of the name
	event# = h.event | number of the event; null: PostgreSQL's own
	seq# = h.sequence | which wait of the session; null: PostgreSQL's own
	p1text = h.p1text | = p1_meaning
	p1 = h.p1
	p2text = h.p2text | = p2_meaning
	p2 = h.p2
	p3text = h.p3text | = p3_meaning
	p3 = h.p3
	wait_class = h.wait_class
	wait_class_id = h.wait_class_id | identifier of the class
	wait_time = 0 | always 0
	session_state = CASE WHEN h.event_name IS NULL THEN 'ON CPU' ELSE 'WAITING' END | WAITING, or ON CPU (not waiting)
	time_waited = h.time_waited | = time_waited_us
	blocking_session_status = CASE WHEN h.blocker IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: blocking_session is known
	blocking_session = h.blocker
	blocking_session_serial# = h.blocker_pid | = blocking_pid
	current_obj# = h.queue_id | queue id of its queue operation
	program = h.program
	module = coalesce(h.module, h.program) | as set by dbms_application_info, otherwise program
	action = h.action
	username = u.rolname::text | = role
	database = d.datname::text
	queue_name = q.queue_name
	operation = h.operation
	waited_micro = h.wait_us
$$, 'aq.session_history');

CALL aq_internal.make_view('sys', 'v$sampled_event', 'Estimates: PostgreSQL''s own waits of active sessions since the server started, from samples, because PostgreSQL keeps no counts of its waits. The waits of pgaq are in sys."v$system_event", exactly',
	'FROM aq_internal.ash_profile()', $$
	event = coalesce(event_name, 'ON CPU')
	session_type = CASE WHEN background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	samples
	time_waited_micro = time_us
	event_id | hash of the name
	wait_class_id | identifier of the class
	wait_class# = wait_class_number | number of the class
	wait_class
$$, 'aq.sampled_waits');

CALL aq_internal.make_view('sys', 'v$ash_info', 'The ring of samples, and their cost',
	'FROM aq.session_sampler', $$
	total_size = rows_max
	used_rows = rows_used
	sample_rows = rows_written
	sample_count = samples
	latest_sample_id
	sampling_time_micro = time_us
	started
$$);

CALL aq_internal.make_view('sys', 'dba_hist_active_sess_history', 'One sample in ten of the active sessions of this database, and of processes without a database; each stands for ten intervals of the sampler',
	$$FROM aq_internal.active_session h
	LEFT JOIN aq_internal.snapshot s ON s.dbid = h.dbid AND h.sample_time > s.begins AND h.sample_time <= s.taken$$, $$
	snap_id = s.snap_id | the snapshot whose interval contains it; null: none yet
	dbid = h.dbid | the database
	instance_number = 1 | always 1
	sample_id = h.sample_id
	sample_time = h.sample_time | when it was taken
	session_id = h.session
	session_serial# = h.pid
	session_type = CASE WHEN h.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	user_id = h.user_id | oid of its role
	sql_id = h.query_id
	top_level_sql_id = h.query_id | the same
	event = h.event
	event_id = h.event_id | hash of the name
	seq# = h.sequence | which wait of the session
	p1text = h.p1_meaning
	p1 = h.p1
	p2text = h.p2_meaning
	p2 = h.p2
	p3text = h.p3_meaning
	p3 = h.p3
	wait_class = h.wait_class
	wait_class_id = h.wait_class_id | identifier of the class
	wait_time = 0 | always 0
	session_state = CASE WHEN h.event IS NULL THEN 'ON CPU' ELSE 'WAITING' END | WAITING, or ON CPU (not waiting)
	time_waited = h.time_waited_us | total microseconds of the wait, if known when the sample was kept
	blocking_session_status = CASE WHEN h.blocking_session IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: blocking_session is known
	blocking_session = h.blocking_session
	blocking_session_serial# = h.blocking_pid
	current_obj# = h.queue_id | queue id of its queue operation
	program = h.program
	module = h.module
	action = h.action
	username = h.role
	queue_name = h.queue_name
	operation = h.operation
$$, 'aq.stored_session_history');
