-- Creates the queue and the table that the workers in this folder use, and adds some jobs: psql -d shop -f setup.sql

CREATE EXTENSION IF NOT EXISTS pgaq;
SELECT aq.create_queue('jobs', if_not_exists => true);

CREATE TABLE IF NOT EXISTS job_result (
	msgid uuid,
	attempts int,
	result int,
	saved_at timestamptz DEFAULT clock_timestamp());

-- twenty jobs of half a second; one fails twice, one can never succeed
SELECT cardinality(aq.enqueue_array('jobs', array_agg(jsonb_build_object(
	'n', n, 'seconds', 0.5, 'failures', CASE n WHEN 7 THEN 2 ELSE 0 END, 'reject', n = 13))))
FROM generate_series(1, 20) n;
