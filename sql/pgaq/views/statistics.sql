-- Statistics and the time model.
--
-- A session counts in its own slot and adds its counts to the totals when it ends, so nothing is lost. Only members of pg_monitor may read the views.

CALL aq_internal.make_source('stat_names', 'aq_stat_views_names', 'Statistics',
	'statistic integer, name text, class integer, stat_id bigint, counts text', 50);

CALL aq_internal.make_source('stat_system', 'aq_stat_views_system', 'Counts of all sessions since the server started',
	'statistic integer, value bigint', 50);

CREATE FUNCTION aq_internal.stat_sessions(only_own boolean)
RETURNS TABLE (
	session integer,
	pid integer,
	statistic integer,
	value bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000 AS 'MODULE_PATHNAME', 'aq_stat_views_sessions';
COMMENT ON FUNCTION aq_internal.stat_sessions(boolean) IS 'Counts of each running session';

CALL aq_internal.make_source('time_system', 'aq_stat_views_time_system', 'Time model of all sessions',
	'stat_id bigint, stat_name text, value bigint', 20);

CALL aq_internal.make_source('time_sessions', 'aq_stat_views_time_sessions', 'Time model of each running session',
	'session integer, pid integer, stat_id bigint, stat_name text, value bigint', 500);

REVOKE EXECUTE ON FUNCTION aq_internal.stat_sessions(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq_internal.stat_sessions(boolean) TO pg_monitor;

CALL aq_internal.make_view('aq', 'statistics', 'Statistics of all sessions since the server started, exact but for those of source server',
	$$FROM (SELECT n.statistic, n.name, n.class, s.value, n.stat_id, n.counts, CASE WHEN n.statistic < 1000 THEN 'pgaq' ELSE 'sessions' END AS source
	FROM aq_internal.stat_names() n JOIN aq_internal.stat_system() s USING (statistic)
	UNION ALL
	SELECT 1100, 'logons cumulative', 1, sum(sessions)::bigint, hashtext('logons cumulative')::bigint & 4294967295, 'connections, in the sum of pg_stat_database', 'server'
	FROM pg_catalog.pg_stat_database) s$$, $$
	name = s.name | its name
	value = s.value | number, or bytes if the name says so
	counts = s.counts | what is counted
	source = s.source | pgaq: work with queues. sessions: all statements of all sessions, current to the last one that ended. server: counters of PostgreSQL, which can be some seconds late, and start from zero after a reset
	statistic = s.statistic | number of the statistic
	class = s.class | its class: 1 user, 2 redo, 4 enqueue, 8 cache, 64 SQL, 128 debug
	stat_id = s.stat_id | hash of the name
$$);

CALL aq_internal.make_view('aq', 'session_statistics', 'Statistics of each running session that uses pgaq; those of its transactions, statements and reads since it began, the others since it used pgaq',
	'FROM aq_internal.stat_sessions(false) s JOIN aq_internal.stat_names() n USING (statistic)', $$
	session = s.session | number of the session
	pid = s.pid | its process id, as in pg_stat_activity
	name = n.name | name of the statistic
	value = s.value | number, or bytes if the name says so
$$);

CALL aq_internal.make_view('aq', 'time_model', 'Where the time of all sessions that use pgaq went since the server started, including sessions that have ended. Idle waits are excluded; the lines overlap and do not add up to DB time',
	'FROM aq_internal.time_system()', $$
	name = stat_name | what the time was spent on. DB time: statements of users' sessions, including ends of transactions. DB CPU and background cpu time: of the whole processes, exact. Other cpu times: measured in one operation of 64
	time_us = value | microseconds
	stat_id | identifier
$$);

CALL aq_internal.make_view('aq', 'session_time', 'Where the time of each running session went since it began to use pgaq, as in aq.time_model',
	'FROM aq_internal.time_sessions()', $$
	session | number of the session
	pid | its process id, as in pg_stat_activity
	name = stat_name | what the time was spent on
	time_us = value | microseconds
$$);
