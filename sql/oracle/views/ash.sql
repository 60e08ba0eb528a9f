-- The history of active sessions under Oracle's names.

CALL aq_internal.make_view('sys', 'v$active_session_history', 'Active sessions of the whole server, sampled every pgaq.ash_interval; as many rows as pgaq.ash_size holds. A session in an idle wait is not active. Samples, not counts: a wait shorter than the interval is sampled by chance',
	$$FROM aq_internal.ash_rows(0) h
	LEFT JOIN pg_catalog.pg_roles u ON u.oid = h.user_id
	LEFT JOIN pg_catalog.pg_database d ON d.oid = h.database
	LEFT JOIN aq_internal.queue q ON q.queue_id = h.queue_id AND d.datname = current_database()$$, $$
	sample_id = h.sample_id | number of the sample; it also grows over restarts of the server
	sample_time = h.sample_time | when it was taken
	is_awr_sample = CASE WHEN h.sample_id % 10 = 0 THEN 'Y' ELSE 'N' END | Y: it is kept in sys.dba_hist_active_sess_history
	session_id = h.session | number of the session
	session_serial# = h.pid | its process id
	session_type = CASE WHEN h.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	user_id = h.user_id | oid of its role
	sql_id = h.query_id | identifier of the query, as in pg_stat_statements; null when compute_query_id is off
	top_level_sql_id = h.query_id | the same
	event = h.event_name | its wait; "type: event" is a wait of PostgreSQL's own; null: it was on a processor
	event_id = h.event_id | hash of the name
	event# = h.event | number of the event; null: PostgreSQL's own
	seq# = h.sequence | which wait of the session; null: PostgreSQL's own
	p1text = h.p1text | meaning of P1
	p1 = h.p1 | parameter 1 of the wait
	p2text = h.p2text | meaning of P2
	p2 = h.p2 | parameter 2 of the wait
	p3text = h.p3text | meaning of P3
	p3 = h.p3 | parameter 3 of the wait
	wait_class = h.wait_class | class of the event
	wait_class_id = h.wait_class_id | identifier of the class
	wait_time = 0 | always 0
	session_state = CASE WHEN h.event_name IS NULL THEN 'ON CPU' ELSE 'WAITING' END | WAITING, or ON CPU (not waiting)
	time_waited = h.time_waited | total microseconds of the wait, in its last sample; null: it continues, is PostgreSQL's own, or has a later sample
	blocking_session_status = CASE WHEN h.blocker IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: blocking_session is known
	blocking_session = h.blocker | number of the session that blocked it
	blocking_session_serial# = h.blocker_pid | process id of that session
	current_obj# = h.queue_id | queue id of its queue operation
	program = h.program | application_name, or the type of process
	module = coalesce(h.module, h.program) | as set by dbms_application_info, otherwise program
	action = h.action | as set by dbms_application_info
	username = u.rolname::text | name of its role
	database = d.datname::text | its database; null: none
	queue_name = q.queue_name | name of the queue, if it is in this database
	operation = h.operation | its queue operation
	waited_micro = h.wait_us | microseconds it had waited when the sample was taken; null: PostgreSQL's own
$$);

CALL aq_internal.make_view('sys', 'v$sampled_event', 'Estimates: PostgreSQL''s own waits of active sessions since the server started, from samples, because PostgreSQL keeps no counts of its waits. The waits of pgaq are in sys."v$system_event", exactly',
	'FROM aq_internal.ash_profile()', $$
	event = coalesce(event_name, 'ON CPU') | the wait as "type: event"; ON CPU: not waiting
	session_type = CASE WHEN background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	samples | samples of it
	time_waited_micro = time_us | microseconds that these samples stand for: each for an interval of the sampler
	event_id | hash of the name
	wait_class_id | identifier of the class
	wait_class# = wait_class_number | number of the class
	wait_class | class of the event
$$);

CALL aq_internal.make_view('sys', 'v$ash_info', 'The ring of samples, and their cost',
	'FROM aq_internal.ash_info()', $$
	total_size = rows_max | maximum number of rows, from pgaq.ash_size
	used_rows = least(rows_written, rows_max) | rows in the ring
	sample_rows = rows_written | rows written since the server started
	sample_count = samples | samples taken since then
	latest_sample_id = sample_id | the last sample
	sampling_time_micro = spent_us | microseconds that all samples took
	started | when the ring was created
$$);

CALL aq_internal.make_view('sys', 'dba_hist_active_sess_history', 'One sample in ten of the active sessions of this database, and of processes without a database; each stands for ten intervals of the sampler',
	$$FROM aq_internal.active_session h
	LEFT JOIN aq_internal.snapshot s ON s.dbid = h.dbid AND h.sample_time > s.begin_interval_time AND h.sample_time <= s.end_interval_time$$, $$
	snap_id = s.snap_id | the snapshot whose interval contains it; null: none yet
	dbid = h.dbid | the database
	instance_number = 1 | always 1
	sample_id = h.sample_id | number of the sample
	sample_time = h.sample_time | when it was taken
	session_id = h.session_id | number of the session
	session_serial# = h.session_serial | its process id
	session_type = CASE WHEN h.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END | FOREGROUND or BACKGROUND
	user_id = h.user_id | oid of its role
	sql_id = h.sql_id | identifier of the query
	top_level_sql_id = h.sql_id | the same
	event = h.event | its wait; "type: event" is a wait of PostgreSQL's own; null: it was on a processor
	event_id = h.event_id | hash of the name
	seq# = h.seq | which wait of the session
	p1text = h.p1text | meaning of P1
	p1 = h.p1 | parameter 1 of the wait
	p2text = h.p2text | meaning of P2
	p2 = h.p2 | parameter 2 of the wait
	p3text = h.p3text | meaning of P3
	p3 = h.p3 | parameter 3 of the wait
	wait_class = h.wait_class | class of the event
	wait_class_id = h.wait_class_id | identifier of the class
	wait_time = 0 | always 0
	session_state = CASE WHEN h.event IS NULL THEN 'ON CPU' ELSE 'WAITING' END | WAITING, or ON CPU (not waiting)
	time_waited = h.time_waited | total microseconds of the wait, if known when the sample was kept
	blocking_session_status = CASE WHEN h.blocking_session IS NOT NULL THEN 'VALID' ELSE 'NO HOLDER' END | VALID: blocking_session is known
	blocking_session = h.blocking_session | number of the session that blocked it
	blocking_session_serial# = h.blocking_session_serial | process id of that session
	current_obj# = h.queue_id | queue id of its queue operation
	program = h.program | application_name, or the type of process
	module = h.module | module of dbms_application_info, or program
	action = h.action | action of dbms_application_info
	username = h.username | name of its role at that time
	queue_name = h.queue_name | name of the queue at that time
	operation = h.operation | its queue operation
$$);
