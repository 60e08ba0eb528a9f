-- Schedules: messages that are enqueued at times.

CREATE FUNCTION aq_internal.schedules_changed() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_job_changed';
COMMENT ON FUNCTION aq_internal.schedules_changed() IS 'Internal: the worker looks for the next time of a schedule';
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON aq_internal.schedule FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.schedules_changed();

CREATE FUNCTION aq.schedule(schedule_name text, queue_name text, payload text,
	cron text DEFAULT NULL,
	every interval DEFAULT NULL,
	time_zone text DEFAULT NULL,
	catch_up text DEFAULT 'one',
	start_at timestamptz DEFAULT NULL,
	until timestamptz DEFAULT NULL,
	priority integer DEFAULT NULL,
	delay interval DEFAULT NULL,
	expiration interval DEFAULT NULL,
	correlation text DEFAULT NULL,
	recipients text[] DEFAULT NULL,
	exception_queue text DEFAULT NULL,
	properties jsonb DEFAULT NULL,
	comment text DEFAULT NULL,
	if_not_exists boolean DEFAULT false)
RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_create_text';
COMMENT ON FUNCTION aq.schedule(text, text, text, text, interval, text, text, timestamptz, timestamptz, integer, interval, interval, text, text[], text, jsonb, text, boolean) IS
'Enqueue a message repeatedly, at the times of a cron expression or of an interval; returns the first
  of these times. Give either cron or every.
payload: text that is read by the queue''s payload type
cron: five fields: minute, hour, day of the month, month and day of the week; or @hourly, @daily,
  @weekly, @monthly, @yearly
every: an interval from one second to a hundred years
time_zone: of the cron expression, and of the interval''s days and months (null: the session''s)
catch_up: messages for times that are missed while the server is down or the schedule stopped: one
  (a single message, at once), skip (none, unless it is less than a minute late) or all (one for
  each time, at most for the last 1000)
start_at: earliest time. For an interval it is the first time, from which the others are counted
  (null: now, and the first time is one interval later)
until: latest time (null: no limit)
priority, delay, expiration, correlation, recipients, exception_queue: of each message, as in
  aq.enqueue
properties: of each message; the keys schedule (the name) and scheduled_at (the time) are added
comment: shown by aq.schedules
if_not_exists: true does nothing and returns null if a schedule of this name exists
The scheduler, a background worker, enqueues with the privileges of the current role. It records an
  error and retries after a pause that grows from 1 second to 5 minutes. After 16 failures in a row
  the schedule is disabled. For roles with the enqueue privilege.
Errors 22004, 22023, 42501, 42602, 42704, 42710, 42804, 42809, 55000';

CREATE FUNCTION aq.schedule(schedule_name text, queue_name text, payload anyelement,
	cron text DEFAULT NULL,
	every interval DEFAULT NULL,
	time_zone text DEFAULT NULL,
	catch_up text DEFAULT 'one',
	start_at timestamptz DEFAULT NULL,
	until timestamptz DEFAULT NULL,
	priority integer DEFAULT NULL,
	delay interval DEFAULT NULL,
	expiration interval DEFAULT NULL,
	correlation text DEFAULT NULL,
	recipients text[] DEFAULT NULL,
	exception_queue text DEFAULT NULL,
	properties jsonb DEFAULT NULL,
	comment text DEFAULT NULL,
	if_not_exists boolean DEFAULT false)
RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_create_typed';
COMMENT ON FUNCTION aq.schedule(text, text, anyelement, text, interval, text, text, timestamptz, timestamptz, integer, interval, interval, text, text[], text, jsonb, text, boolean) IS
'The same for a payload of the queue''s payload type';

CREATE FUNCTION aq.alter_schedule(schedule_name text,
	payload text DEFAULT NULL,
	cron text DEFAULT NULL,
	every interval DEFAULT NULL,
	time_zone text DEFAULT NULL,
	catch_up text DEFAULT NULL,
	start_at timestamptz DEFAULT NULL,
	until timestamptz DEFAULT NULL,
	priority integer DEFAULT NULL,
	delay interval DEFAULT NULL,
	expiration interval DEFAULT NULL,
	correlation text DEFAULT NULL,
	recipients text[] DEFAULT NULL,
	exception_queue text DEFAULT NULL,
	properties jsonb DEFAULT NULL,
	comment text DEFAULT NULL)
RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_alter';
COMMENT ON FUNCTION aq.alter_schedule(text, text, text, interval, text, text, timestamptz, timestamptz, integer, interval, interval, text, text[], text, jsonb, text) IS
'Change a schedule; null leaves a setting unchanged; returns its next time, null if none is left.
cron: replaces an interval
every: replaces a cron expression; an interval counts from now on, or from start_at
until: infinity for no limit
comment: '''' removes it
After a change of the times, the next one is the first one in the future. The count of failures is
  reset, so a disabled schedule runs again. For the role that made it, and its members.
Errors 22023, 42704, and those of aq.schedule';

CREATE FUNCTION aq.unschedule(schedule_name text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_drop';
COMMENT ON FUNCTION aq.unschedule(text) IS
'Drop a schedule; messages that it has enqueued remain. For the role that made it, its members, and
  the queue''s owner.
Errors 22004, 42704';

CREATE FUNCTION aq.start_schedule(schedule_name text)
RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_resume';
COMMENT ON FUNCTION aq.start_schedule(text) IS
'Start a schedule that was stopped, or disabled after failures; returns its next time, null if none is
  left. Missed times are handled as catch_up of aq.schedule says. For the role that made it, its
  members, and the queue''s owner.
Errors 22004, 42704';

CREATE FUNCTION aq.stop_schedule(schedule_name text)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_pause';
COMMENT ON FUNCTION aq.stop_schedule(text) IS
'Stop a schedule until aq.start_schedule. For the role that made it, its members, and the queue''s
  owner.
Errors 22004, 42704';

CREATE FUNCTION aq.run_schedule(schedule_name text)
RETURNS uuid LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_schedule_calls_run';
COMMENT ON FUNCTION aq.run_schedule(text) IS
'Enqueue a schedule''s message now, in the caller''s transaction and with its privileges; returns its
  id, or null when no subscriber of a topic wants it. The schedule''s times do not change; it may be
  stopped. For the role that made it, its members, and the queue''s owner.
Errors 22004, 42704, and those of aq.enqueue';

CREATE FUNCTION aq.schedule_times(cron text DEFAULT NULL, every interval DEFAULT NULL, time_zone text DEFAULT NULL,
	"from" timestamptz DEFAULT NULL, count integer DEFAULT 10, OUT run_at timestamptz, OUT local_time timestamp)
RETURNS SETOF record LANGUAGE c STABLE PARALLEL SAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_timing_preview';
COMMENT ON FUNCTION aq.schedule_times(text, interval, text, timestamptz, integer) IS
'The next times of a cron expression or an interval, as in aq.schedule.
time_zone: null for the session''s
from: null for now
count: at most 10000
local_time: the same time in the time zone
Errors 22023';
