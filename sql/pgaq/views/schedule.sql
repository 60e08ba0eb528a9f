-- A role sees the schedules that it may change or stop; members of pg_monitor see all, without payloads.

CREATE FUNCTION aq_internal.may_stop_schedule(rights_id integer, role oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT EXISTS (SELECT FROM pg_roles r WHERE r.oid = role AND pg_has_role(r.oid, 'USAGE')) OR aq_internal.may_any('TRIGGER')
		OR EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'aq_data' AND c.relname = 'q' || rights_id AND pg_has_role(c.relowner, 'USAGE'));
END;
COMMENT ON FUNCTION aq_internal.may_stop_schedule(integer, oid) IS
'Internal: is the current role a member of this one, or may it administer the queue with this rights_id?';

CALL aq_internal.make_view('aq', 'schedules', 'Schedules of the current role, of roles of which it is a member, and of its queues; members of pg_monitor see all',
	$$FROM (SELECT s.*, q.queue_name, aq_internal.may_stop_schedule(q.rights_id, s.owner) AS shown, aq_internal.stuck(0, s.owner) AS stuck FROM aq_internal.schedule s JOIN aq_internal.queue q USING (queue_id)) s
WHERE s.shown OR pg_has_role('pg_monitor', 'USAGE')$$, $$
	schedule_name = s.schedule_name | name
	queue_name = s.queue_name | queue of its messages
	state = CASE WHEN s.paused THEN 'stopped' WHEN s.disabled THEN 'disabled' WHEN s.next_run IS NULL THEN 'ended' WHEN s.stuck IS NOT NULL THEN 'stuck' WHEN s.failures > 0 THEN 'failing' ELSE 'active' END | active; stopped: by aq.stop_schedule; failing: the last try failed, and it is tried again; stuck: a process that runs code for the role cannot be interrupted, and its schedules wait until that ends; disabled: after 16 failures in a row, until aq.start_schedule; ended: no time is left
	cron = s.cron | its cron expression; null: an interval
	every = s.every | its interval; null: a cron expression
	time_zone = s.time_zone | time zone of the expression, and of the interval's days and months
	next_run = s.next_run | the first time for which no message was enqueued yet; null: none is left
	retry_at = s.retry_at | after a failure, when it is tried again; null: it did not fail
	last_run = s.last_run | when it last enqueued a message; null: never
	runs = s.runs | number of times for which it has enqueued a message
	failures = s.failures | failures in a row; 0: the last try succeeded
	last_error = coalesce('57014: ' || s.stuck, s.last_error) | SQLSTATE and message of its last failure; null: none
	error_time = s.error_time | when that was
	catch_up = s.catch_up | what happens to missed times: skip, one or all
	start_at = s.start_at | no message before this time; an interval counts from it
	until = s.until | no message after this time; null: no limit
	owner = pg_get_userbyid(s.owner) | role that made it, with whose privileges it enqueues
	payload = CASE WHEN s.shown THEN s.payload END | payload of its messages, as text; null also for members of pg_monitor who may not stop the schedule
	options = CASE WHEN s.shown THEN s.options END | other options of its messages, by the names of aq.enqueue's arguments
	created = s.created | when it was made
	comment = s.comment | comment given with it
$$);
GRANT SELECT ON aq.schedules TO PUBLIC;
