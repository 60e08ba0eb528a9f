-- Views of latches, mutexes and waits, under Oracle's names in small letters.
--
-- The functions return what part sync counts, the views give it Oracle's columns.
-- A session's number (SID) is its slot's, from 1; PID is what the rest of
-- PostgreSQL knows it by.  Only members of pg_monitor may look.

CREATE FUNCTION aq._sync_latch_names()
RETURNS TABLE (
	latch integer,
	name text,
	hash bigint,
	level integer,
	has_children boolean,
	protects text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_latch_names';
COMMENT ON FUNCTION aq._sync_latch_names() IS 'Kinds of latch; under sys."v$latchname"';
REVOKE EXECUTE ON FUNCTION aq._sync_latch_names() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_latch_names() TO pg_monitor;

CREATE FUNCTION aq._sync_latches()
RETURNS TABLE (
	latch integer,
	name text,
	hash bigint,
	level integer,
	has_children boolean,
	child integer,
	addr text,
	gets bigint,
	misses bigint,
	sleeps bigint,
	immediate_gets bigint,
	immediate_misses bigint,
	spin_gets bigint,
	wait_time bigint,
	holder integer,
	holder_pid integer,
	location text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 200 AS 'MODULE_PATHNAME', 'aq_sync_latches';
COMMENT ON FUNCTION aq._sync_latches() IS 'Every latch with its counters; under sys."v$latch"';
REVOKE EXECUTE ON FUNCTION aq._sync_latches() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_latches() TO pg_monitor;

CREATE FUNCTION aq._sync_latch_misses()
RETURNS TABLE (
	name text,
	location text,
	nwfail_count bigint,
	sleep_count bigint,
	wtr_slp_count bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_latch_misses';
COMMENT ON FUNCTION aq._sync_latch_misses() IS 'Missed latches by place in the code; under sys."v$latch_misses"';
REVOKE EXECUTE ON FUNCTION aq._sync_latch_misses() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_latch_misses() TO pg_monitor;

CREATE FUNCTION aq._sync_mutex_sleeps()
RETURNS TABLE (
	mutex_type text,
	location_id integer,
	location text,
	sleeps bigint,
	waits bigint,
	wait_time bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_mutex_sleeps';
COMMENT ON FUNCTION aq._sync_mutex_sleeps() IS 'Mutexes that slept by place in the code; under sys."v$mutex_sleep"';
REVOKE EXECUTE ON FUNCTION aq._sync_mutex_sleeps() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_mutex_sleeps() TO pg_monitor;

CREATE FUNCTION aq._sync_mutex_history()
RETURNS TABLE (
	mutex_identifier bigint,
	sleep_timestamp timestamptz,
	mutex_type text,
	gets bigint,
	sleeps bigint,
	requesting_session integer,
	blocking_session integer,
	location text,
	mutex_value text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_mutex_history';
COMMENT ON FUNCTION aq._sync_mutex_history() IS 'Latest requests for a mutex that slept; under sys."v$mutex_sleep_history"';
REVOKE EXECUTE ON FUNCTION aq._sync_mutex_history() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_mutex_history() TO pg_monitor;

CREATE FUNCTION aq._sync_event_names()
RETURNS TABLE (
	event integer,
	event_id bigint,
	name text,
	parameter1 text,
	parameter2 text,
	parameter3 text,
	wait_class_id bigint,
	wait_class_number integer,
	wait_class text,
	waits_for text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_event_names';
COMMENT ON FUNCTION aq._sync_event_names() IS 'Wait events; under sys."v$event_name"';
REVOKE EXECUTE ON FUNCTION aq._sync_event_names() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_event_names() TO pg_monitor;

CREATE FUNCTION aq._sync_events()
RETURNS TABLE (
	event integer,
	waits bigint,
	timeouts bigint,
	time_us bigint,
	max_us bigint,
	waits_fg bigint,
	timeouts_fg bigint,
	time_us_fg bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_events';
COMMENT ON FUNCTION aq._sync_events() IS 'Waits of all sessions since the server started; under sys."v$system_event"';
REVOKE EXECUTE ON FUNCTION aq._sync_events() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_events() TO pg_monitor;

CREATE FUNCTION aq._sync_histogram()
RETURNS TABLE (
	event integer,
	bound_us bigint,
	waits bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_histogram';
COMMENT ON FUNCTION aq._sync_histogram() IS 'Waits by duration; under sys."v$event_histogram_micro"';
REVOKE EXECUTE ON FUNCTION aq._sync_histogram() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_histogram() TO pg_monitor;

CREATE FUNCTION aq._sync_session_events()
RETURNS TABLE (
	session integer,
	pid integer,
	event integer,
	waits bigint,
	timeouts bigint,
	time_us bigint,
	max_us bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_session_events';
COMMENT ON FUNCTION aq._sync_session_events() IS 'Waits of each running session; under sys."v$session_event"';
REVOKE EXECUTE ON FUNCTION aq._sync_session_events() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_session_events() TO pg_monitor;

CREATE FUNCTION aq._sync_session_waits()
RETURNS TABLE (
	session integer,
	serial bigint,
	pid integer,
	sequence bigint,
	event integer,
	waiting boolean,
	p1 bigint,
	p2 bigint,
	p3 bigint,
	p1raw text,
	p2raw text,
	p3raw text,
	wait_us bigint,
	ago_us bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_session_waits';
COMMENT ON FUNCTION aq._sync_session_waits() IS 'Current or latest wait of each running session; under sys."v$session_wait"';
REVOKE EXECUTE ON FUNCTION aq._sync_session_waits() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_session_waits() TO pg_monitor;

CREATE FUNCTION aq._sync_locations()
RETURNS TABLE (
	location_id integer,
	location text)
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50 AS 'MODULE_PATHNAME', 'aq_sync_locations';
COMMENT ON FUNCTION aq._sync_locations() IS 'Places in the code that ask for a latch or mutex; under sys."v$latch_location"';
REVOKE EXECUTE ON FUNCTION aq._sync_locations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq._sync_locations() TO pg_monitor;

CREATE VIEW sys."v$latchname" AS
SELECT
	latch AS "latch#",
	name,
	name AS display_name,
	hash,
	level AS "level#",
	protects
FROM aq._sync_latch_names();
COMMENT ON VIEW sys."v$latchname" IS
'The kinds of latch';
COMMENT ON COLUMN sys."v$latchname"."latch#" IS 'number of the latch';
COMMENT ON COLUMN sys."v$latchname".name IS 'its name';
COMMENT ON COLUMN sys."v$latchname".display_name IS 'its name';
COMMENT ON COLUMN sys."v$latchname".hash IS 'hash of the name';
COMMENT ON COLUMN sys."v$latchname"."level#" IS 'its level: a session that holds a latch waits only for one of a higher level';
COMMENT ON COLUMN sys."v$latchname".protects IS 'what it protects';
GRANT SELECT ON sys."v$latchname" TO pg_monitor;

CREATE VIEW sys."v$latch" AS
SELECT
	min(l.addr) AS addr,
	n.latch AS "latch#",
	n.level AS "level#",
	n.name AS name,
	n.hash AS hash,
	coalesce(sum(l.gets), 0)::bigint AS gets,
	coalesce(sum(l.misses), 0)::bigint AS misses,
	coalesce(sum(l.sleeps), 0)::bigint AS sleeps,
	coalesce(sum(l.immediate_gets), 0)::bigint AS immediate_gets,
	coalesce(sum(l.immediate_misses), 0)::bigint AS immediate_misses,
	0::bigint AS waiters_woken,
	0::bigint AS waits_holding_latch,
	coalesce(sum(l.spin_gets), 0)::bigint AS spin_gets,
	0::bigint AS sleep1,
	0::bigint AS sleep2,
	0::bigint AS sleep3,
	0::bigint AS sleep4,
	0::bigint AS sleep5,
	0::bigint AS sleep6,
	0::bigint AS sleep7,
	0::bigint AS sleep8,
	0::bigint AS sleep9,
	0::bigint AS sleep10,
	0::bigint AS sleep11,
	coalesce(sum(l.wait_time), 0)::bigint AS wait_time
FROM aq._sync_latch_names() n LEFT JOIN aq._sync_latches() l USING (latch)
GROUP BY n.latch, n.level, n.name, n.hash;
COMMENT ON VIEW sys."v$latch" IS
'Latches: one row for each kind, its children added up. Counters are exact, but two of them may differ by what happened between reading them';
COMMENT ON COLUMN sys."v$latch".addr IS 'address of the first one, hexadecimal';
COMMENT ON COLUMN sys."v$latch"."latch#" IS 'number of the latch';
COMMENT ON COLUMN sys."v$latch"."level#" IS 'its level: a session that holds a latch waits only for one of a higher level';
COMMENT ON COLUMN sys."v$latch".name IS 'its name';
COMMENT ON COLUMN sys."v$latch".hash IS 'hash of the name';
COMMENT ON COLUMN sys."v$latch".gets IS 'times the latch was got by a session willing to wait, however long it took';
COMMENT ON COLUMN sys."v$latch".misses IS 'of these: the first try failed';
COMMENT ON COLUMN sys."v$latch".sleeps IS 'times a session slept for it; more than one for a get that slept again';
COMMENT ON COLUMN sys."v$latch".immediate_gets IS 'times it was asked for without waiting';
COMMENT ON COLUMN sys."v$latch".immediate_misses IS 'of these: it was not got';
COMMENT ON COLUMN sys."v$latch".waiters_woken IS 'always 0';
COMMENT ON COLUMN sys."v$latch".waits_holding_latch IS 'always 0';
COMMENT ON COLUMN sys."v$latch".spin_gets IS 'misses that ended while the session spun, without sleeping';
COMMENT ON COLUMN sys."v$latch".sleep1 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep2 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep3 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep4 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep5 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep6 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep7 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep8 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep9 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep10 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".sleep11 IS 'always 0';
COMMENT ON COLUMN sys."v$latch".wait_time IS 'microseconds that sessions slept for it';
GRANT SELECT ON sys."v$latch" TO pg_monitor;

CREATE VIEW sys."v$latch_children" AS
SELECT
	addr,
	latch AS "latch#",
	child AS "child#",
	level AS "level#",
	name,
	hash,
	gets,
	misses,
	sleeps,
	immediate_gets,
	immediate_misses,
	0::bigint AS waiters_woken,
	0::bigint AS waits_holding_latch,
	spin_gets,
	0::bigint AS sleep1,
	0::bigint AS sleep2,
	0::bigint AS sleep3,
	0::bigint AS sleep4,
	0::bigint AS sleep5,
	0::bigint AS sleep6,
	0::bigint AS sleep7,
	0::bigint AS sleep8,
	0::bigint AS sleep9,
	0::bigint AS sleep10,
	0::bigint AS sleep11,
	wait_time
FROM aq._sync_latches()
WHERE has_children;
COMMENT ON VIEW sys."v$latch_children" IS
'Each latch of those kinds that have children: one for each queue or shard';
COMMENT ON COLUMN sys."v$latch_children".addr IS 'address, hexadecimal; P1RAW of a wait for it';
COMMENT ON COLUMN sys."v$latch_children"."latch#" IS 'number of the latch';
COMMENT ON COLUMN sys."v$latch_children"."child#" IS 'number of the child';
COMMENT ON COLUMN sys."v$latch_children"."level#" IS 'its level';
COMMENT ON COLUMN sys."v$latch_children".name IS 'its name';
COMMENT ON COLUMN sys."v$latch_children".hash IS 'hash of the name';
COMMENT ON COLUMN sys."v$latch_children".gets IS 'times the latch was got by a session willing to wait, however long it took';
COMMENT ON COLUMN sys."v$latch_children".misses IS 'of these: the first try failed';
COMMENT ON COLUMN sys."v$latch_children".sleeps IS 'times a session slept for it; more than one for a get that slept again';
COMMENT ON COLUMN sys."v$latch_children".immediate_gets IS 'times it was asked for without waiting';
COMMENT ON COLUMN sys."v$latch_children".immediate_misses IS 'of these: it was not got';
COMMENT ON COLUMN sys."v$latch_children".waiters_woken IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".waits_holding_latch IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".spin_gets IS 'misses that ended while the session spun, without sleeping';
COMMENT ON COLUMN sys."v$latch_children".sleep1 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep2 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep3 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep4 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep5 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep6 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep7 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep8 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep9 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep10 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".sleep11 IS 'always 0';
COMMENT ON COLUMN sys."v$latch_children".wait_time IS 'microseconds that sessions slept for it';
GRANT SELECT ON sys."v$latch_children" TO pg_monitor;

CREATE VIEW sys."v$latchholder" AS
SELECT
	holder_pid AS pid,
	holder AS sid,
	addr AS laddr,
	name,
	gets,
	location
FROM aq._sync_latches()
WHERE holder IS NOT NULL;
COMMENT ON VIEW sys."v$latchholder" IS
'Latches held exclusively at this moment, and by whom';
COMMENT ON COLUMN sys."v$latchholder".pid IS 'process id of the holder';
COMMENT ON COLUMN sys."v$latchholder".sid IS 'number of the session that holds it';
COMMENT ON COLUMN sys."v$latchholder".laddr IS 'address of the latch, hexadecimal';
COMMENT ON COLUMN sys."v$latchholder".name IS 'its name';
COMMENT ON COLUMN sys."v$latchholder".gets IS 'times the latch was got by a session willing to wait, however long it took';
COMMENT ON COLUMN sys."v$latchholder".location IS 'place in the code that got it';
GRANT SELECT ON sys."v$latchholder" TO pg_monitor;

CREATE VIEW sys."v$latch_misses" AS
SELECT
	name AS parent_name,
	location AS "where",
	nwfail_count,
	sleep_count,
	wtr_slp_count,
	location
FROM aq._sync_latch_misses();
COMMENT ON VIEW sys."v$latch_misses" IS
'Where latches were missed: by the place in the code';
COMMENT ON COLUMN sys."v$latch_misses".parent_name IS 'name of the latch';
COMMENT ON COLUMN sys."v$latch_misses"."where" IS 'place in the code';
COMMENT ON COLUMN sys."v$latch_misses".nwfail_count IS 'times a request here did not wait and did not get it';
COMMENT ON COLUMN sys."v$latch_misses".sleep_count IS 'times a session slept while the holder had got it here';
COMMENT ON COLUMN sys."v$latch_misses".wtr_slp_count IS 'times a session slept that had asked for it here';
COMMENT ON COLUMN sys."v$latch_misses".location IS 'place in the code';
GRANT SELECT ON sys."v$latch_misses" TO pg_monitor;

CREATE VIEW sys."v$mutex_sleep" AS
SELECT
	mutex_type,
	location,
	sleeps,
	wait_time,
	location_id,
	waits
FROM aq._sync_mutex_sleeps();
COMMENT ON VIEW sys."v$mutex_sleep" IS
'Mutexes that sessions had to wait for, by the place in the code that asked';
COMMENT ON COLUMN sys."v$mutex_sleep".mutex_type IS 'what the mutex protects';
COMMENT ON COLUMN sys."v$mutex_sleep".location IS 'place in the code that asked';
COMMENT ON COLUMN sys."v$mutex_sleep".sleeps IS 'steps of the wait loop; a request makes one or more';
COMMENT ON COLUMN sys."v$mutex_sleep".wait_time IS 'microseconds waited; 0 in a wait scheme that only spins';
COMMENT ON COLUMN sys."v$mutex_sleep".location_id IS 'number of the place; low bits of P3 of a wait';
COMMENT ON COLUMN sys."v$mutex_sleep".waits IS 'requests that had to wait';
GRANT SELECT ON sys."v$mutex_sleep" TO pg_monitor;

CREATE VIEW sys."v$mutex_sleep_history" AS
SELECT
	mutex_identifier,
	sleep_timestamp,
	mutex_type,
	gets,
	sleeps,
	requesting_session,
	blocking_session,
	location,
	mutex_value
FROM aq._sync_mutex_history();
COMMENT ON VIEW sys."v$mutex_sleep_history" IS
'The latest 256 requests for a mutex that had to wait';
COMMENT ON COLUMN sys."v$mutex_sleep_history".mutex_identifier IS 'hash of the protected object; P1 of the wait';
COMMENT ON COLUMN sys."v$mutex_sleep_history".sleep_timestamp IS 'when the wait ended';
COMMENT ON COLUMN sys."v$mutex_sleep_history".mutex_type IS 'what the mutex protects';
COMMENT ON COLUMN sys."v$mutex_sleep_history".gets IS 'gets of the mutex until then';
COMMENT ON COLUMN sys."v$mutex_sleep_history".sleeps IS 'steps of this wait';
COMMENT ON COLUMN sys."v$mutex_sleep_history".requesting_session IS 'number of the session that waited';
COMMENT ON COLUMN sys."v$mutex_sleep_history".blocking_session IS 'number of the session that had the mutex when the wait began; null: it was shared';
COMMENT ON COLUMN sys."v$mutex_sleep_history".location IS 'place in the code that asked';
COMMENT ON COLUMN sys."v$mutex_sleep_history".mutex_value IS 'the mutex when the wait began: session in the high half, references in the low half, hexadecimal';
GRANT SELECT ON sys."v$mutex_sleep_history" TO pg_monitor;

CREATE VIEW sys."v$event_name" AS
SELECT
	event AS "event#",
	event_id,
	name,
	parameter1,
	parameter2,
	parameter3,
	wait_class_id,
	wait_class_number AS "wait_class#",
	wait_class,
	name AS display_name,
	waits_for
FROM aq._sync_event_names();
COMMENT ON VIEW sys."v$event_name" IS
'Wait events';
COMMENT ON COLUMN sys."v$event_name"."event#" IS 'number of the event';
COMMENT ON COLUMN sys."v$event_name".event_id IS 'hash of the name';
COMMENT ON COLUMN sys."v$event_name".name IS 'name of the event';
COMMENT ON COLUMN sys."v$event_name".parameter1 IS 'what P1 is';
COMMENT ON COLUMN sys."v$event_name".parameter2 IS 'what P2 is';
COMMENT ON COLUMN sys."v$event_name".parameter3 IS 'what P3 is';
COMMENT ON COLUMN sys."v$event_name".wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN sys."v$event_name"."wait_class#" IS 'number of the class';
COMMENT ON COLUMN sys."v$event_name".wait_class IS 'class; Idle is no lost time';
COMMENT ON COLUMN sys."v$event_name".display_name IS 'name of the event';
COMMENT ON COLUMN sys."v$event_name".waits_for IS 'what is waited for';
GRANT SELECT ON sys."v$event_name" TO pg_monitor;

CREATE VIEW sys."v$system_event" AS
SELECT
	n.name AS event,
	e.waits AS total_waits,
	e.timeouts AS total_timeouts,
	e.time_us / 10000 AS time_waited,
	round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) AS average_wait,
	e.time_us AS time_waited_micro,
	e.waits_fg AS total_waits_fg,
	e.timeouts_fg AS total_timeouts_fg,
	e.time_us_fg / 10000 AS time_waited_fg,
	round(e.time_us_fg::numeric / nullif(e.waits_fg, 0) / 10000, 2) AS average_wait_fg,
	e.time_us_fg AS time_waited_micro_fg,
	e.max_us AS max_wait_micro,
	n.event_id AS event_id,
	n.wait_class_id AS wait_class_id,
	n.wait_class_number AS "wait_class#",
	n.wait_class AS wait_class
FROM aq._sync_events() e JOIN aq._sync_event_names() n USING (event)
WHERE e.waits > 0;
COMMENT ON VIEW sys."v$system_event" IS
'What all sessions have waited for in pgaq since the server started, including sessions that have ended';
COMMENT ON COLUMN sys."v$system_event".event IS 'name of the event';
COMMENT ON COLUMN sys."v$system_event".total_waits IS 'waits';
COMMENT ON COLUMN sys."v$system_event".total_timeouts IS 'waits that ended because their time was over';
COMMENT ON COLUMN sys."v$system_event".time_waited IS 'time waited in hundredths of a second';
COMMENT ON COLUMN sys."v$system_event".average_wait IS 'average in hundredths of a second';
COMMENT ON COLUMN sys."v$system_event".time_waited_micro IS 'microseconds waited';
COMMENT ON COLUMN sys."v$system_event".total_waits_fg IS 'waits, sessions of users only';
COMMENT ON COLUMN sys."v$system_event".total_timeouts_fg IS 'waits that ended because their time was over, sessions of users only';
COMMENT ON COLUMN sys."v$system_event".time_waited_fg IS 'time waited in hundredths of a second, sessions of users only';
COMMENT ON COLUMN sys."v$system_event".average_wait_fg IS 'average in hundredths of a second, sessions of users only';
COMMENT ON COLUMN sys."v$system_event".time_waited_micro_fg IS 'microseconds waited, sessions of users only';
COMMENT ON COLUMN sys."v$system_event".max_wait_micro IS 'longest wait in microseconds';
COMMENT ON COLUMN sys."v$system_event".event_id IS 'hash of the name';
COMMENT ON COLUMN sys."v$system_event".wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN sys."v$system_event"."wait_class#" IS 'number of the class';
COMMENT ON COLUMN sys."v$system_event".wait_class IS 'class; Idle is no lost time';
GRANT SELECT ON sys."v$system_event" TO pg_monitor;

CREATE VIEW sys."v$session_event" AS
SELECT
	e.session AS sid,
	e.pid AS pid,
	n.name AS event,
	e.waits AS total_waits,
	e.timeouts AS total_timeouts,
	e.time_us / 10000 AS time_waited,
	round(e.time_us::numeric / nullif(e.waits, 0) / 10000, 2) AS average_wait,
	e.time_us AS time_waited_micro,
	e.max_us / 10000 AS max_wait,
	n.event_id AS event_id,
	n.wait_class_id AS wait_class_id,
	n.wait_class_number AS "wait_class#",
	n.wait_class AS wait_class
FROM aq._sync_session_events() e JOIN aq._sync_event_names() n USING (event);
COMMENT ON VIEW sys."v$session_event" IS
'What each running session has waited for in pgaq since it began';
COMMENT ON COLUMN sys."v$session_event".sid IS 'number of the session';
COMMENT ON COLUMN sys."v$session_event".pid IS 'its process id, as in pg_stat_activity';
COMMENT ON COLUMN sys."v$session_event".event IS 'name of the event';
COMMENT ON COLUMN sys."v$session_event".total_waits IS 'waits';
COMMENT ON COLUMN sys."v$session_event".total_timeouts IS 'waits that ended because their time was over';
COMMENT ON COLUMN sys."v$session_event".time_waited IS 'time waited in hundredths of a second';
COMMENT ON COLUMN sys."v$session_event".average_wait IS 'average in hundredths of a second';
COMMENT ON COLUMN sys."v$session_event".time_waited_micro IS 'microseconds waited';
COMMENT ON COLUMN sys."v$session_event".max_wait IS 'longest wait in hundredths of a second';
COMMENT ON COLUMN sys."v$session_event".event_id IS 'hash of the name';
COMMENT ON COLUMN sys."v$session_event".wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN sys."v$session_event"."wait_class#" IS 'number of the class';
COMMENT ON COLUMN sys."v$session_event".wait_class IS 'class; Idle is no lost time';
GRANT SELECT ON sys."v$session_event" TO pg_monitor;

CREATE VIEW sys."v$session_wait" AS
SELECT
	w.session AS sid,
	w.sequence AS "seq#",
	w.event AS "event#",
	n.name AS event,
	n.parameter1 AS p1text,
	w.p1 AS p1,
	w.p1raw AS p1raw,
	n.parameter2 AS p2text,
	w.p2 AS p2,
	w.p2raw AS p2raw,
	n.parameter3 AS p3text,
	w.p3 AS p3,
	w.p3raw AS p3raw,
	n.wait_class_id AS wait_class_id,
	n.wait_class_number AS "wait_class#",
	n.wait_class AS wait_class,
	CASE WHEN w.waiting THEN 0 WHEN w.wait_us < 10000 THEN -1 ELSE w.wait_us / 10000 END AS wait_time,
	CASE WHEN w.waiting THEN w.wait_us / 1000000 ELSE w.ago_us / 1000000 END AS seconds_in_wait,
	CASE WHEN w.waiting THEN 'WAITING' WHEN w.wait_us < 10000 THEN 'WAITED SHORT TIME' ELSE 'WAITED KNOWN TIME' END AS state,
	w.wait_us AS wait_time_micro,
	NULL::bigint AS time_remaining_micro,
	w.ago_us AS time_since_last_wait_micro,
	w.pid AS pid,
	w.serial AS "serial#"
FROM aq._sync_session_waits() w JOIN aq._sync_event_names() n USING (event);
COMMENT ON VIEW sys."v$session_wait" IS
'What each running session waits for in pgaq, or waited for last';
COMMENT ON COLUMN sys."v$session_wait".sid IS 'number of the session';
COMMENT ON COLUMN sys."v$session_wait"."seq#" IS 'which wait of the session this is';
COMMENT ON COLUMN sys."v$session_wait"."event#" IS 'number of the event';
COMMENT ON COLUMN sys."v$session_wait".event IS 'name of the event';
COMMENT ON COLUMN sys."v$session_wait".p1text IS 'what P1 is';
COMMENT ON COLUMN sys."v$session_wait".p1 IS 'parameter 1 of the wait';
COMMENT ON COLUMN sys."v$session_wait".p1raw IS 'parameter 1, hexadecimal';
COMMENT ON COLUMN sys."v$session_wait".p2text IS 'what P2 is';
COMMENT ON COLUMN sys."v$session_wait".p2 IS 'parameter 2 of the wait';
COMMENT ON COLUMN sys."v$session_wait".p2raw IS 'parameter 2, hexadecimal';
COMMENT ON COLUMN sys."v$session_wait".p3text IS 'what P3 is';
COMMENT ON COLUMN sys."v$session_wait".p3 IS 'parameter 3 of the wait';
COMMENT ON COLUMN sys."v$session_wait".p3raw IS 'parameter 3, hexadecimal';
COMMENT ON COLUMN sys."v$session_wait".wait_class_id IS 'identifier of the class';
COMMENT ON COLUMN sys."v$session_wait"."wait_class#" IS 'number of the class';
COMMENT ON COLUMN sys."v$session_wait".wait_class IS 'class; Idle is no lost time';
COMMENT ON COLUMN sys."v$session_wait".wait_time IS '0: it waits now; otherwise how long it waited last in hundredths of a second, -1 if shorter';
COMMENT ON COLUMN sys."v$session_wait".seconds_in_wait IS 'seconds since the wait began, or, when it is over, since it ended';
COMMENT ON COLUMN sys."v$session_wait".state IS 'WAITING, WAITED SHORT TIME (under a hundredth of a second) or WAITED KNOWN TIME';
COMMENT ON COLUMN sys."v$session_wait".wait_time_micro IS 'microseconds of the wait, so far when it still waits';
COMMENT ON COLUMN sys."v$session_wait".time_remaining_micro IS 'always null: not known';
COMMENT ON COLUMN sys."v$session_wait".time_since_last_wait_micro IS 'microseconds since the wait ended; 0 when it still waits';
COMMENT ON COLUMN sys."v$session_wait".pid IS 'process id of the session, as in pg_stat_activity';
COMMENT ON COLUMN sys."v$session_wait"."serial#" IS 'which process this is among those that have had this session number';
GRANT SELECT ON sys."v$session_wait" TO pg_monitor;

CREATE VIEW sys."v$event_histogram_micro" AS
SELECT
	h.event AS "event#",
	n.name AS event,
	h.bound_us AS wait_time_micro,
	h.waits AS wait_count,
	CASE WHEN h.bound_us < 1000 THEN h.bound_us || ' microseconds' WHEN h.bound_us < 1000000 THEN round(h.bound_us / 1000.0) || ' milliseconds' ELSE round(h.bound_us / 1000000.0) || ' seconds' END AS wait_time_format
FROM aq._sync_histogram() h JOIN aq._sync_event_names() n USING (event);
COMMENT ON VIEW sys."v$event_histogram_micro" IS
'How long waits took, by powers of two';
COMMENT ON COLUMN sys."v$event_histogram_micro"."event#" IS 'number of the event';
COMMENT ON COLUMN sys."v$event_histogram_micro".event IS 'name of the event';
COMMENT ON COLUMN sys."v$event_histogram_micro".wait_time_micro IS 'upper bound: waits shorter than this and not shorter than half of it; the last one has all longer waits too';
COMMENT ON COLUMN sys."v$event_histogram_micro".wait_count IS 'how many';
COMMENT ON COLUMN sys."v$event_histogram_micro".wait_time_format IS 'the bound in words';
GRANT SELECT ON sys."v$event_histogram_micro" TO pg_monitor;

CREATE VIEW sys."v$latch_location" AS
SELECT
	location_id,
	location
FROM aq._sync_locations();
COMMENT ON VIEW sys."v$latch_location" IS
'Places in the code that ask for a latch or a mutex';
COMMENT ON COLUMN sys."v$latch_location".location_id IS 'number of the place; P3 of a latch wait, low bits of P3 of a mutex wait';
COMMENT ON COLUMN sys."v$latch_location".location IS 'name of the place';
GRANT SELECT ON sys."v$latch_location" TO pg_monitor;
