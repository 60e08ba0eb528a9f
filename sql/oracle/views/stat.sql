CALL aq_internal.make_view('sys', 'v$statname', 'Statistics that pgaq counts',
	'FROM aq_internal.stat_names()', $$
	statistic# = statistic | number of the statistic
	name | its name
	class | its class: 1 user, 4 enqueue, 8 cache, 128 debug
	stat_id | hash of the name
	display_name = name | its name
	counts | what is counted
$$);

CREATE VIEW sys."v$sysstat" AS
SELECT
	n.statistic AS "statistic#",
	n.name,
	n.class,
	s.value,
	n.stat_id,
	'pgaq' AS source
FROM aq_internal.stat_names() n JOIN aq_internal.stat_system() s USING (statistic)
UNION ALL
SELECT
	v.statistic,
	v.name,
	v.class,
	v.value,
	hashtext(v.name)::bigint & 4294967295,
	'server'
FROM
	(SELECT sum(xact_commit) AS commits, sum(xact_rollback) AS rollbacks,
		sum(blks_hit + blks_read) AS gets, sum(blks_read) AS reads, sum(sessions) AS sessions
	FROM pg_catalog.pg_stat_database) d,
	(SELECT wal_bytes, wal_records FROM pg_catalog.pg_stat_wal) w,
	LATERAL (VALUES
		(1000, 'user commits', 1, d.commits::bigint),
		(1001, 'user rollbacks', 1, d.rollbacks::bigint),
		(1002, 'logons cumulative', 1, d.sessions::bigint),
		(1003, 'session logical reads', 1, d.gets::bigint),
		(1004, 'physical reads', 8, d.reads::bigint),
		(1005, 'redo size', 2, w.wal_bytes::bigint),
		(1006, 'redo entries', 2, w.wal_records::bigint)) v (statistic, name, class, value);
COMMENT ON VIEW sys."v$sysstat" IS
'Statistics of all sessions since the server started, including sessions that have ended. The rows of source pgaq are exact. Those of source server are PostgreSQL''s own, from pg_stat_database and pg_stat_wal: they can be some seconds late, and start from zero after a reset';
COMMENT ON COLUMN sys."v$sysstat"."statistic#" IS 'number of the statistic; from 1000 on the server''s';
COMMENT ON COLUMN sys."v$sysstat".name IS 'its name; what it counts is in sys."v$statname"';
COMMENT ON COLUMN sys."v$sysstat".class IS 'its class: 1 user, 2 redo, 4 enqueue, 8 cache, 128 debug';
COMMENT ON COLUMN sys."v$sysstat".value IS 'number, or bytes if the name says so';
COMMENT ON COLUMN sys."v$sysstat".stat_id IS 'hash of the name';
COMMENT ON COLUMN sys."v$sysstat".source IS 'counted by: pgaq or server';

CALL aq_internal.make_view('sys', 'v$sesstat', 'Statistics of each running session since it began to use pgaq',
	'FROM aq_internal.stat_sessions(false)', $$
	sid = session | number of the session
	statistic# = statistic | number of the statistic, see sys."v$statname"
	value | number, or bytes if the name says so
	pid | process id of the session, as in pg_stat_activity
$$);

CALL aq_internal.make_view('sys', 'v$mystat', 'Statistics of this session since it began to use pgaq',
	'FROM aq_internal.stat_sessions(true)', $$
	sid = session | number of the session
	statistic# = statistic | number of the statistic, see sys."v$statname"
	value | number, or bytes if the name says so
$$);

CALL aq_internal.make_view('sys', 'v$sys_time_model', 'Where the time of all sessions that use pgaq went since the server started, including sessions that have ended. Idle waits are excluded; the lines overlap and do not add up to DB time',
	'FROM aq_internal.time_system()', $$
	stat_id | Oracle's identifier, or a hash of the name
	stat_name | DB time: statements of users' sessions, including ends of transactions, added at the latest when a statement ends. DB CPU and background cpu time: of the whole processes, exact. Other cpu times: measured in one operation of 64. background elapsed time: jobs of the workers
	value | microseconds
$$);

CALL aq_internal.make_view('sys', 'v$sess_time_model', 'Where the time of each running session went since it began to use pgaq',
	'FROM aq_internal.time_sessions()', $$
	sid = session | number of the session
	stat_id | Oracle's identifier, or a hash of the name
	stat_name | as in sys."v$sys_time_model"
	value | microseconds
	pid | process id of the session, as in pg_stat_activity
$$);

GRANT SELECT ON sys."v$sysstat" TO pg_monitor;
