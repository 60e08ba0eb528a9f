-- Schedules: aq.schedule and its companions.
SET search_path = public;
SET TimeZone = 'Europe/Berlin';
CREATE ROLE regress_aq_owner;
CREATE ROLE regress_aq_in;
CREATE ROLE regress_aq_other;
SELECT aq.create_queue('plain');
SELECT aq.create_queue('news', multiple_consumers => true);
SELECT aq.subscribe('news', 'big', rule => $$ payload->>'size' = 'big' $$);

-- One that comes: at its start, and never again.
SELECT aq.schedule('once', 'plain', '{"n": 1}', every => '1 day', start_at => clock_timestamp() + interval '50 milliseconds',
	until => clock_timestamp() + interval '1 hour', priority => 3, correlation => 'c', properties => '{"p": null}', comment => 'a test') IS NOT NULL AS scheduled;
SELECT payload, priority, correlation, properties - 'scheduled_at' AS properties, jsonb_typeof(properties->'scheduled_at') AS at FROM aq.dequeue('plain', wait => '60 seconds');
SELECT schedule_name, queue_name, state, cron, every, time_zone, next_run, retry_at, last_run IS NOT NULL AS has_run, runs, failures, last_error, catch_up, owner = current_user AS own,
	payload, options, comment FROM aq.schedules;
SELECT aq.start_schedule('once');
SELECT aq.unschedule('once');

-- What is stored does not depend on the session.
CREATE TYPE t.event AS (at timestamptz, day date, span interval, bytes bytea);
SELECT aq.create_queue('events', 't.event');
SET DateStyle = 'German';
SET IntervalStyle = 'sql_standard';
SET bytea_output = 'escape';
SELECT aq.schedule('events', 'events', ROW('24.12.2026 18:00', '24.12.2026', '-1 2:00', '\x00ff')::t.event, every => '1 month', delay => '-1 2:00', expiration => '3 4:00', start_at => '01.02.2100 00:00');
SELECT aq.schedule('as_text', 'events', '("24.12.2026 18:00",24.12.2026,"-1 2:00",a)', '@monthly', time_zone => 'America/New_York', start_at => '01.02.2100 00:00');
RESET DateStyle;
RESET IntervalStyle;
RESET bytea_output;
SELECT schedule_name, payload, options, time_zone, next_run, start_at FROM aq.schedules ORDER BY 1;
SELECT aq.run_schedule('events') IS NOT NULL AS enqueued;
SELECT payload FROM aq.dequeue('events', as_type => NULL::t.event);
SELECT aq.drop_queue('events', force => true);
SELECT count(*) FROM aq.schedules;
SELECT count(*) FROM aq_internal.schedule;

-- Run now, also while it is stopped; a message that no subscriber wants has no id.
SELECT aq.schedule('small', 'news', '{"size": "small"}', '0 0 1 1 *') IS NOT NULL;
SELECT aq.schedule('big', 'news', jsonb '{"size": "big"}', '0 0 1 1 *', recipients => NULL) IS NOT NULL;
SELECT aq.stop_schedule('big');
SELECT aq.run_schedule('small') IS NULL AS unwanted, aq.run_schedule('big') IS NOT NULL AS enqueued;
SELECT payload, properties->>'schedule' FROM aq.dequeue('news', 'big', 10);
SELECT schedule_name, state, runs FROM aq.schedules ORDER BY 1;
SELECT aq.alter_schedule('big', recipients => '{other,else}') IS NOT NULL;
SELECT aq.run_schedule('big') IS NOT NULL;
SELECT count(*) FROM aq.dequeue('news', 'other');

-- A payload of text, of null, and of bytes.
SELECT aq.create_queue('words', 'text');
SELECT aq.create_queue('raw', 'bytea');
SELECT aq.schedule('words', 'words', 'hello', '@yearly') IS NOT NULL, aq.schedule('nothing', 'words', NULL::text, '@yearly') IS NOT NULL, aq.schedule('raw', 'raw', '\x00ff'::bytea, '@yearly') IS NOT NULL;
SELECT schedule_name, payload FROM aq.schedules WHERE queue_name IN ('words', 'raw') ORDER BY 1;
SELECT aq.run_schedule('words') IS NOT NULL, aq.run_schedule('nothing') IS NOT NULL, aq.run_schedule('raw') IS NOT NULL;
SELECT payload FROM aq.dequeue('words', as_type => NULL::text, max_messages => 2) ORDER BY payload;
SELECT payload FROM aq.dequeue('raw', as_type => NULL::bytea);

-- Altering: what is null stays.
SELECT aq.schedule('work', 'plain', '{"n": 2}', '0 0 1 1 *', time_zone => 'UTC', priority => 2, properties => '{"a": 1}', comment => 'before') IS NOT NULL;
CREATE VIEW t.work AS SELECT cron, every, time_zone, catch_up, until, next_run AT TIME ZONE 'UTC' > now() AT TIME ZONE 'UTC' AS future, payload, options, comment FROM aq.schedules WHERE schedule_name = 'work';
SELECT aq.alter_schedule('work', payload => '{"n": 3}', priority => 5, comment => '', catch_up => 'all') IS NOT NULL;
TABLE t.work;
SELECT aq.alter_schedule('work', every => '1 hour', until => '2100-01-01', correlation => 'x') BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes' AS an_hour;
TABLE t.work;
SELECT aq.alter_schedule('work', start_at => '2099-12-31 12:00', until => 'infinity');
SELECT aq.alter_schedule('work', cron => '5 4 * * *', time_zone => 'Asia/Tokyo');
TABLE t.work;

-- Errors: nothing is changed.
SELECT t.error($$ SELECT aq.schedule(NULL, 'plain', '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('', 'plain', '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('aq$x', 'plain', '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('x', NULL, '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'nowhere', '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', 'no json', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', 1, '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', '1 day') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', catch_up => 'some') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', catch_up => NULL) $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', until => '2000-01-01') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', start_at => 'infinity') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', time_zone => 'nowhere') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', recipients => '{a}') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'news', '1', '@daily', recipients => '{a,NULL}') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', properties => '[1]') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', expiration => '-1 day') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily', exception_queue => 'nowhere') $$);
SELECT t.error($$ SELECT aq.schedule('x', 'plain_exceptions', '1', '@daily') $$);
SELECT t.error($$ SELECT aq.schedule('work', 'plain', '1', '@daily') $$);
SELECT aq.schedule('work', 'plain', '1', '@daily', if_not_exists => true);
SELECT t.error($$ SELECT aq.alter_schedule('nowhere') $$);
SELECT t.error($$ SELECT aq.alter_schedule('work', payload => 'no json') $$);
SELECT t.error($$ SELECT aq.alter_schedule('work', cron => 'x') $$);
SELECT t.error($$ SELECT aq.alter_schedule('work', until => '2000-01-01') $$);
SELECT t.error($$ SELECT aq.stop_schedule('nowhere') $$);
SELECT t.error($$ SELECT aq.stop_schedule(NULL) $$);
SELECT t.error($$ SELECT aq.start_schedule('nowhere') $$);
SELECT t.error($$ SELECT aq.unschedule('nowhere') $$);
SELECT t.error($$ SELECT aq.run_schedule('nowhere') $$);
SELECT aq.stop_queue('plain');
SELECT t.error($$ SELECT aq.schedule('x', 'plain', '1', '@daily') $$);
SELECT aq.start_queue('plain');
TABLE t.work;
DROP VIEW t.work;

-- Transactions: a rollback leaves nothing, and changes nothing.
BEGIN;
SELECT aq.schedule('gone', 'plain', '1', '@daily') IS NOT NULL;
SELECT aq.stop_schedule('work');
SELECT aq.unschedule('words');
ROLLBACK;
SELECT schedule_name, state FROM aq.schedules ORDER BY 1;
BEGIN READ ONLY;
SELECT t.error($$ SELECT aq.unschedule('work') $$);
ROLLBACK;

-- Privileges: enqueue is enough; each role sees and changes its own, the queue's owner stops any, others see nothing.
SELECT aq.create_queue('owned');
SELECT aq.alter_queue('owned', new_owner => 'regress_aq_owner');
SELECT aq.grant_queue('owned', 'regress_aq_in', 'enqueue');
SET ROLE regress_aq_other;
SELECT t.error($$ SELECT aq.schedule('mine', 'owned', '1', '@yearly') $$);
SET ROLE regress_aq_in;
SELECT aq.schedule('mine', 'owned', '{"secret": 1}', '@yearly') IS NOT NULL;
SELECT schedule_name, owner, payload FROM aq.schedules;
SELECT aq.run_schedule('mine') IS NOT NULL;
SET ROLE regress_aq_other;
SELECT count(*) FROM aq.schedules;
SELECT t.error($$ SELECT aq.stop_schedule('mine') $$), t.error($$ SELECT aq.run_schedule('mine') $$);
SELECT t.error($$ SELECT * FROM aq_internal.schedule $$);
SET ROLE regress_aq_owner;
SELECT schedule_name, owner, payload FROM aq.schedules;
SELECT t.error($$ SELECT aq.alter_schedule('mine', payload => '2') $$);
SELECT aq.stop_schedule('mine');
RESET ROLE;
-- what works with the privileges of a role goes with its queues
SELECT aq.create_queue('news of mine', multiple_consumers => true), aq.grant_queue('news of mine', 'regress_aq_in', 'dequeue');
SET ROLE regress_aq_in;
SELECT aq.create_propagation('news of mine', 'owned', subscribe => false) IS NOT NULL;
RESET ROLE;
BEGIN;
REASSIGN OWNED BY regress_aq_in TO regress_aq_owner;
SELECT owner FROM aq.schedules WHERE schedule_name = 'mine';
SELECT role::text FROM aq_internal.propagation;
ROLLBACK;
SELECT aq.drop_queue('news of mine', force => true);
-- one that has failed because its queue was stopped does not wait for its next try
SELECT aq.stop_queue('owned');
UPDATE aq_internal.schedule SET failures = 9, retry_at = now() + interval '5 min', last_error = '55000: queue "owned" is stopped' WHERE schedule_name = 'mine';
SELECT aq.start_queue('owned');
SELECT failures, retry_at FROM aq_internal.schedule WHERE schedule_name = 'mine';
SET ROLE regress_aq_owner;
SELECT aq.unschedule('mine');
RESET ROLE;
GRANT pg_monitor TO regress_aq_other;
SET ROLE regress_aq_other;
SELECT schedule_name, payload, options FROM aq.schedules ORDER BY 1 LIMIT 1;
RESET ROLE;

-- A queue's schedules go with it; a rename does not matter to them.
SELECT aq.alter_queue('words', new_name => 'renamed');
SELECT schedule_name, queue_name FROM aq.schedules WHERE schedule_name = 'words';
SELECT aq.run_schedule('words') IS NOT NULL;
SELECT aq.drop_queue(queue, force => true) FROM unnest('{plain,news,renamed,raw,owned}'::text[]) queue;
SELECT count(*) FROM aq_internal.schedule;
DROP TYPE t.event;
REVOKE pg_monitor FROM regress_aq_other;
DROP ROLE regress_aq_owner, regress_aq_in, regress_aq_other;
