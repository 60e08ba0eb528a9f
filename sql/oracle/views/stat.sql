CALL aq_internal.make_view('sys', 'v$statname', 'Statistics that pgaq counts',
	'FROM aq_internal.stat_names()', $$
	statistic# = statistic
	name
	class | its class: 1 user, 2 redo, 4 enqueue, 8 cache, 64 SQL, 128 debug
	stat_id
	display_name = name
	counts
$$, 'aq.statistics');

CALL aq_internal.make_view('sys', 'v$sysstat', 'Statistics of all sessions since the server started, including sessions that have ended. The rows of source pgaq, on work with queues, and sessions, on all sessions'' statements, are exact. Those of source server are PostgreSQL''s own: they can be some seconds late, and start from zero after a reset', 'FROM aq.statistics', $$
	statistic# = statistic
	name
	class
	value
	stat_id
	source
$$);

CALL aq_internal.make_view('sys', 'v$sesstat', 'Statistics of each running session that uses pgaq; those of its transactions, statements and reads since it began, the others since it used pgaq',
	'FROM aq_internal.stat_sessions(false)', $$
	sid = session
	statistic# = statistic | number of the statistic, see sys."v$statname"
	value
	pid
$$, 'aq.session_statistics');

CALL aq_internal.make_view('sys', 'v$mystat', 'Statistics of this session; those of work with queues since it used pgaq',
	'FROM aq_internal.stat_sessions(true)', $$
	sid = session
	statistic# = statistic | number of the statistic, see sys."v$statname"
	value
$$, 'aq.session_statistics');

CALL aq_internal.make_view('sys', 'v$sys_time_model', 'Where the time of all sessions that use pgaq went since the server started, including sessions that have ended. Idle waits are excluded; the lines overlap and do not add up to DB time',
	'FROM aq.time_model', $$
	stat_id | Oracle's identifier, or a hash of the name
	stat_name = name
	value = time_us
$$);

CALL aq_internal.make_view('sys', 'v$sess_time_model', 'Where the time of each running session went since it began to use pgaq',
	'FROM aq_internal.time_sessions()', $$
	sid = session
	stat_id | Oracle's identifier, or a hash of the name
	stat_name | as in sys."v$sys_time_model"
	value | = time_us
	pid
$$, 'aq.session_time');
