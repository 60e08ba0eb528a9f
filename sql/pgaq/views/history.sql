-- The history: samples of active sessions, and snapshots of all counters.

CALL aq_internal.make_view('aq', 'session_history', 'Active sessions of the whole server, sampled every pgaq.ash_interval; as many rows as pgaq.ash_size holds. A session in an idle wait is not active. Samples, not counts: a wait shorter than the interval is sampled by chance',
	$$FROM aq_internal.ash_rows(0) h
	LEFT JOIN pg_catalog.pg_roles u ON u.oid = h.user_id
	LEFT JOIN pg_catalog.pg_database d ON d.oid = h.database
	LEFT JOIN aq_internal.queue q ON q.queue_id = h.queue_id AND d.datname = current_database()$$, $$
	sample_time = h.sample_time | when the sample was taken
	sample_id = h.sample_id | number of the sample; it also grows over restarts of the server
	session = h.session | number of the session
	pid = h.pid | its process id
	background = h.background | a process of the server itself
	role = u.rolname::text | name of its role
	database = d.datname::text | its database; null: none
	event = h.event_name | its wait; "type: event" is a wait of PostgreSQL's own; null: it was on a processor
	wait_class = h.wait_class | class of the event
	wait_us = h.wait_us | microseconds it had waited when the sample was taken; null: PostgreSQL's own
	time_waited_us = h.time_waited | total microseconds of the wait, in its last sample; null: it continues, is PostgreSQL's own, or has a later sample
	p1_meaning = h.p1text | meaning of P1
	p1 = h.p1 | parameter 1 of the wait
	p2_meaning = h.p2text | meaning of P2
	p2 = h.p2 | parameter 2 of the wait
	p3_meaning = h.p3text | meaning of P3
	p3 = h.p3 | parameter 3 of the wait
	blocking_session = h.blocker | number of the session that blocked it
	blocking_pid = h.blocker_pid | process id of that session
	operation = h.operation | its queue operation
	queue_name = q.queue_name | name of the queue, if it is in this database
	queue_id = h.queue_id | number of the queue
	program = h.program | application_name, or the type of process
	module = coalesce(h.module, h.program) | as set by dbms_application_info of pgaq_oracle, otherwise program
	action = h.action | as set by dbms_application_info
	query_id = h.query_id | identifier of the query, as in pg_stat_statements; null when compute_query_id is off
$$);

CALL aq_internal.make_view('aq', 'stored_session_history', 'One sample in ten of the active sessions of this database, and of processes without a database; each stands for ten intervals of the sampler',
	'FROM aq_internal.active_session h', $$
	sample_time = h.sample_time | when the sample was taken
	sample_id = h.sample_id | number of the sample
	session = h.session | number of the session
	pid = h.pid | its process id
	background = h.background | a process of the server itself
	role = h.role | name of its role at that time
	event = h.event | its wait; "type: event" is a wait of PostgreSQL's own; null: it was on a processor
	wait_class = h.wait_class | class of the event
	time_waited_us = h.time_waited_us | microseconds that the wait took in the end, if that was known when the sample was kept
	p1_meaning = h.p1_meaning | meaning of P1
	p1 = h.p1 | parameter 1 of the wait
	p2_meaning = h.p2_meaning | meaning of P2
	p2 = h.p2 | parameter 2 of the wait
	p3_meaning = h.p3_meaning | meaning of P3
	p3 = h.p3 | parameter 3 of the wait
	blocking_session = h.blocking_session | number of the session that blocked it
	blocking_pid = h.blocking_pid | process id of that session
	operation = h.operation | its queue operation
	queue_name = h.queue_name | name of the queue at that time
	queue_id = h.queue_id | number of the queue
	program = h.program | application_name, or the type of process
	module = h.module | module of dbms_application_info, or program
	action = h.action | action of dbms_application_info
	query_id = h.query_id | identifier of the query
	dbid = h.dbid | the database, as in aq.snapshots
$$);

CALL aq_internal.make_view('aq', 'sampled_waits', 'Estimates: what active sessions waited for of PostgreSQL''s own since the server started, by samples; PostgreSQL keeps no counts of its waits. Statements in pg_sleep() are here, too, because their time is in DB time. The waits of pgaq are not here: aq.waits has them exactly',
	'FROM aq_internal.ash_profile()', $$
	event = coalesce(event_name, 'ON CPU') | the wait as "type: event"; ON CPU: not waiting
	wait_class | class of the event
	background | met in processes of the server's own
	samples | samples of it
	time_us | microseconds that these samples stand for: each for the time since the sample before
	db_samples | of the samples: those of users' sessions that have used pgaq, whose statements are DB time
	db_time_us | microseconds that those stand for
$$);

CALL aq_internal.make_view('aq', 'session_sampler', 'The ring of samples, and their cost', 'FROM aq_internal.ash_info()', $$
	rows_max | maximum number of rows, from pgaq.ash_size
	rows_used = least(rows_written, rows_max) | rows in the ring
	rows_written | rows written since the server started
	samples | samples taken since then
	profile_samples = rounds | samples of aq.sampled_waits since then: these, and those taken between them for a minute after each snapshot or mark
	latest_sample_id = sample_id | the last sample
	time_us = spent_us | microseconds that all samples took
	started | when the ring was created
$$);

CALL aq_internal.make_view('aq', 'snapshots', 'Snapshots of all counters, for aq.report_awr and its like', 'FROM aq_internal.snapshot s', $$
	snap_id = s.snap_id | number of the snapshot
	taken = s.taken | when it was taken
	begins = s.begins | when the snapshot before was taken, or startup_time if that is later
	startup_time = s.startup_time | when the counters started at zero: at the start of the server, or at its recovery from a crash
	by_worker = s.by_worker | taken by the worker, not by a call
	elapsed = s.elapsed | how long it took
	errors = s.errors | sources of figures that could not be read: source error of aq.snapshot_figures says why
	dbid = s.dbid | the database it was taken in
$$);

CALL aq_internal.make_view('aq', 'snapshot_figures', 'What snapshots hold: one row for each row of each source of figures',
	'FROM aq_internal.snapshot_data d, LATERAL jsonb_array_elements(d.data) f(figures)', $$
	snap_id = d.snap_id | the snapshot
	source = d.source | the source, e.g. system_event, queue, subscriber
	figures = f.figures | a row of the source
	dbid = d.dbid | the database
$$);

CALL aq_internal.make_view('aq', 'baselines', 'Baselines: ranges of snapshots kept under a name', 'FROM aq_internal.snapshot_baseline b', $$
	baseline_name = b.baseline_name | its name
	first_snap_id = b.first_snap_id | first snapshot
	last_snap_id = b.last_snap_id | last snapshot
	created = b.created | when the baseline was created
	expires_after_days = b.expires_after_days | days after which it is dropped; null: it is kept
	baseline_id = b.baseline_id | number of the baseline
	dbid = b.dbid | the database
$$);

CALL aq_internal.make_view('aq', 'snapshot_settings', 'When snapshots of this database are taken, and how long they are kept', 'FROM aq_internal.snapshot_settings() s', $$
	every = s.every | time between snapshots; 0: the worker takes none
	retention = s.retention | how long they are kept; 0: forever
	top_statements = s.top_statements | statements kept of pg_stat_statements; null: all
$$);
