-- Traces of this session: rows, counters, histograms.  Traces of others: tests/cluster/test_trace.py.
\pset null null
\pset format unaligned
SELECT aq.create_queue('tr', shards => 1);
SELECT t.put('tr', 1, 2);
SELECT payload FROM aq.dequeue('tr');
-- nothing is traced
SELECT count(*) FROM aq.traces WHERE pid = pg_backend_pid();
SELECT replace(t.error('SELECT * FROM aq.trace()'), pg_backend_pid()::text, 'PID');
SELECT replace(t.error('SELECT aq.trace_stop()'), pg_backend_pid()::text, 'PID');
SELECT replace(t.error('SELECT aq.trace_summary()'), pg_backend_pid()::text, 'PID');
SELECT replace(t.error('SELECT * FROM aq.trace_quantize()'), pg_backend_pid()::text, 'PID');
-- one dequeue of a message that is there
SELECT aq.trace_start();
SELECT t.error(format('SELECT aq.trace_start(%s)', pg_backend_pid())) ~ 'is already being traced' AS one_at_a_time;
SELECT payload FROM aq.dequeue('tr');
SELECT aq.trace_stop();
SELECT operation, action, object, queue, location, mode, elapsed_ns IS NOT NULL AS elapsed, held_ns IS NOT NULL AS held
FROM aq.trace() ORDER BY sequence;
SELECT aq.trace_summary();
SELECT operation, object, queue, location, gets, releases, failures FROM aq.trace_objects();
SELECT state, role = current_user AS role, started_by = current_user AS started_by, stopped >= started AS stopped,
	rows_written, rows_lost, objects, unprofiled FROM aq.traces WHERE pid = pg_backend_pid();
-- stopped is stopped
SELECT aq.trace_stop();
SELECT t.put('tr', 3);
SELECT aq.trace_summary();
-- a publication, and rows of some operations only: the counters are of all
SELECT aq.trace_start(operations => '{publish,wait}');
SELECT t.put('tr', 4, 6);
CALL aq.wait('tr', NULL, '0', NULL);
SELECT aq.trace_stop();
SELECT operation, action, object, number, queue FROM aq.trace();
SELECT latch_gets > 0 AS latches, latch_gets = latch_releases AS all_given_back, publications, wakeups FROM aq.traces WHERE pid = pg_backend_pid();
SELECT payload FROM aq.dequeue('tr', max_messages => 10);
-- a wait that ends by its time
SELECT aq.trace_start(operations => ARRAY['wait']);
CALL aq.wait('tr', NULL, '0.02 s', NULL);
SELECT aq.trace_stop();
SELECT operation, action, object, p1 IS NOT NULL AS p1, elapsed_ns >= 19000000 AS elapsed FROM aq.trace();
SELECT waits, timeouts FROM aq.traces WHERE pid = pg_backend_pid();
-- the histograms count what the counters count
SELECT measure, sum(count) = max(t.latch_gets) AS as_counted
FROM aq.trace_histogram() h, aq.traces t WHERE t.pid = pg_backend_pid() AND operation = 'latch' GROUP BY measure ORDER BY measure;
SELECT bool_and(value = 0 OR value & (value - 1) = 0) AS powers_of_two FROM aq.trace_histogram();
SELECT bool_and(least >= total / 2 AND least <= total) AS sums_fit
FROM (SELECT location, object, sum(value * count) AS least FROM aq.trace_histogram() WHERE measure = 'hold' GROUP BY 1, 2) h
JOIN (SELECT location, object, sum(hold_ns) AS total FROM aq.trace_objects() GROUP BY 1, 2) o USING (location, object);
SELECT count(*) FILTER (WHERE text ~ '^ +value  -+ Distribution -+ count') > 0 AS headers,
	count(*) FILTER (WHERE text ~ '^latch queue waiters \d+$') AS queue_waiters
FROM aq.trace_quantize(operation => 'latch') q (text);
SELECT count(*) FROM aq.trace_quantize(object => 'no such latch');
-- what cannot be
SELECT t.error($$SELECT aq.trace_start(operations => '{latch,lunch}')$$);
SELECT t.error($$SELECT aq.trace_start(operations => '{null}')$$);
SELECT t.error('SELECT aq.trace_start(-1)');
SELECT aq.drop_queue('tr', force => true);

-- the layout of DTrace's quantize(): the four histograms of the AQ study, from their counts
CREATE FUNCTION t.histogram(first bigint, variadic counts bigint[]) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT rtrim(q) FROM aq.quantize(ARRAY(SELECT (first * 2::numeric ^ (n - 1))::bigint FROM generate_series(1, cardinality(counts)) n), counts) q
$$;
\pset tuples_only on
SELECT t.histogram(1024, 94257, 42290, 17383, 1127, 287, 158, 337, 17, 2, 4);
SELECT t.histogram(2048, 235503, 98902, 3262, 947, 568, 119, 44, 14, 12, 9, 6, 5, 14);
SELECT t.histogram(1024, 64970, 21078, 5382, 459, 680, 483, 302, 114, 26, 26, 11, 9, 17, 10, 4, 4, 4, 3, 2);
SELECT t.histogram(2048, 166007, 40643, 2751, 1731, 1890, 891, 405, 211, 158, 73, 31, 59, 47, 17, 18, 7, 5, 5, 2);
-- zero is a value; empty rows in between are printed; nothing at all
SELECT rtrim(aq.quantize('{0,4}', '{1,3}'));
SELECT rtrim(aq.quantize('{1}', '{1}'));
SELECT rtrim(aq.quantize('{}', '{}'));
SELECT rtrim(aq.quantize('{3,9}', '{1,1}'));
SELECT t.error($$SELECT aq.quantize('{1,2}', '{1}')$$);
SELECT t.error($$SELECT aq.quantize('{1}', '{-1}')$$);
SELECT t.error($$SELECT aq.trace_quantize(operation => 'foo')$$);
SELECT t.error($$SELECT aq.trace_quantize(measure => 'foo')$$);
\pset tuples_only off
DROP FUNCTION t.histogram;
