-- The tables of the history of queues: which ones are emptied, and the rows of hours.  The worker's part is tested in cluster/test_queue_history.py.
\pset format unaligned
SELECT aq.create_queue('history_q');
SELECT queue_id AS id FROM aq.queues WHERE queue_name = 'history_q' \gset
-- the worker leaves the tables alone; all is rolled back
ALTER SYSTEM SET pgaq.history = off;
SELECT pg_reload_conf();
BEGIN;
TRUNCATE aq_internal.history_minute, aq_internal.history_hour;
CREATE FUNCTION pg_temp.add(at text, latencies integer[] DEFAULT NULL, of integer DEFAULT 1) RETURNS void LANGUAGE sql AS
	$$INSERT INTO aq_internal.history_minute VALUES (at::timestamptz, of, 1.5, 10, 1, 2, 5, 4, 3, latencies)$$;
CREATE FUNCTION pg_temp.minutes() RETURNS text LANGUAGE sql AS
	$$SELECT string_agg(to_char(sampled_at AT TIME ZONE 'UTC', 'DD HH24:MI'), ', ' ORDER BY sampled_at) FROM aq_internal.history_minute$$;

-- a table is for eight hours: the next one and that of the turn are emptied, six are kept
SELECT pg_temp.add(at) FROM unnest('{2030-01-01 00:00Z,2030-01-01 07:59Z,2030-01-01 08:00Z,2030-01-01 16:00Z,2030-01-02 00:00Z,2030-01-02 08:00Z,2030-01-02 16:00Z,2030-01-03 00:00Z}'::text[]) at;
SELECT tableoid::regclass, count(*) FROM aq_internal.history_minute GROUP BY 1 ORDER BY min(sampled_at);
SELECT aq_internal.history_turn('2030-01-03 07:59Z', false), pg_temp.minutes();
SELECT aq_internal.history_turn('2030-01-03 08:00Z', false), pg_temp.minutes();
SELECT aq_internal.history_turn('2030-01-03 15:59Z', false), pg_temp.minutes();
-- the clock was set back: nothing is lost
SELECT pg_temp.add('2030-01-03 15:59Z'), aq_internal.history_turn('2030-01-03 07:00Z', false), pg_temp.minutes();
-- and for days forward: old rows leave the tables that are needed
SELECT aq_internal.history_turn('2030-02-01 00:00Z', false), pg_temp.minutes();

-- hours: sums, and the most of what there was at a time; a minute belongs to the hour in which it ends
TRUNCATE aq_internal.history_minute;
SELECT pg_temp.add('2030-03-01 10:00Z', '{1,0,2}'), pg_temp.add('2030-03-01 10:01Z', '{1,0,2}'), pg_temp.add('2030-03-01 11:00Z', '{0,1,0,7}'), pg_temp.add('2030-03-01 11:00Z', NULL, 2),
	pg_temp.add('2030-03-01 11:01Z', '{100}');
SELECT aq_internal.history_turn('2030-03-01 11:02Z', true);
SELECT * FROM aq_internal.history_hour ORDER BY sampled_at, queue_id;
SELECT aq_internal.history_turn('2030-03-01 11:59Z', true), aq_internal.history_turn('2030-03-01 12:00Z', true);
SELECT sampled_at, queue_id, enqueued, buckets FROM aq_internal.history_hour ORDER BY sampled_at, queue_id;
-- after a long pause, before the minutes are lost
SELECT pg_temp.add('2030-03-01 13:00Z'), aq_internal.history_turn('2030-03-04 06:00Z', true);
SELECT max(sampled_at) FROM aq_internal.history_hour;
-- a table is for fifteen days: six are kept
SELECT pg_temp.add('2030-03-16 00:00Z'), aq_internal.history_turn('2030-03-16 00:01Z', true);
SELECT aq_internal.history_turn('2030-06-10 00:00Z', true);
SELECT count(*) FROM aq_internal.history_hour;
SELECT aq_internal.history_turn('2030-06-25 00:00Z', true);
SELECT sampled_at FROM aq_internal.history_hour;

-- the views: of the queue, of the last two days
TRUNCATE aq_internal.history_minute, aq_internal.history_hour;
SELECT pg_temp.add((now() + age)::text, '{1,1,1,1}', of) FROM unnest('{-3 days,-1 hour,0,2 hours}'::interval[]) age, unnest(ARRAY[:id, -:id, 0, 1000000000]) of;
INSERT INTO aq_internal.history_hour SELECT * FROM aq_internal.history_minute;
SELECT 'minutes' AS of, now() - sampled_at AS age, queue_name, delivery_mode, ready, in_flight, delayed, oldest_ready_seconds, enqueued, dequeued, failed, round(p50_seconds::numeric, 5) AS p50, round(p99_seconds::numeric, 5) AS p99, buckets FROM aq.history_minutes ORDER BY age, queue_name, delivery_mode;
SELECT now() - sampled_at AS age, queue_name, delivery_mode FROM aq.history_hours ORDER BY age, queue_name, delivery_mode;
CREATE ROLE regress_aq_historian;
SET ROLE regress_aq_historian;
SELECT count(*) FROM aq.history_minutes;
SELECT aq_internal.history_turn(now(), true);
ROLLBACK;
ALTER SYSTEM RESET pgaq.history;
SELECT pg_reload_conf();
SELECT aq.drop_queue('history_q');
