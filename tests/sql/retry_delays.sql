-- Retry delays: how they grow, their limit, their random part.  Delays are hours: no test waits for one.
\pset format unaligned
\pset tuples_only on
-- t.rests tells, for each message that is not done, its attempts and the rest of its retry delay in minutes.
CREATE FUNCTION t.rests(queue_name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(format('%s: %s %s %s', payload, attempts, state,
		round(extract(epoch FROM ready_at - clock_timestamp()) / 60)), ', ' ORDER BY payload)
	FROM aq.messages m WHERE m.queue_name = $1 AND state IN ('READY', 'WAITING', 'LOCKED')
$$;
-- arguments that are refused
SELECT t.error($$SELECT aq.create_queue('rd', retry_delay => '-1 s')$$);
SELECT t.error($$SELECT aq.create_queue('rd', retry_delay => NULL)$$);
SELECT t.error($$SELECT aq.create_queue('rd', retry_delay => '200000 years')$$);
SELECT t.error(format('SELECT aq.create_queue(%L, retry_delay_factor => %L)', 'rd', x)) FROM unnest('{0.99,-1,NaN,Infinity,-Infinity,NULL}'::float8[]) x;
SELECT t.error(format('SELECT aq.create_queue(%L, retry_delay_max => %L)', 'rd', x)) FROM unnest('{0,-1 s,200000 years}'::interval[]) x;
SELECT t.error(format('SELECT aq.create_queue(%L, retry_jitter => %L)', 'rd', x)) FROM unnest('{-0.01,1.01,NaN,Infinity,NULL}'::float8[]) x;
SELECT aq.create_queue('rd', max_retries => NULL, retry_delay => '1 hour', retry_delay_factor => 5, retry_delay_max => '2 days', retry_jitter => 0);
SELECT t.error($$SELECT aq.alter_queue('rd', retry_delay => '-1 s')$$);
SELECT t.error($$SELECT aq.alter_queue('rd', retry_delay_factor => 0.5)$$);
SELECT t.error($$SELECT aq.alter_queue('rd', retry_delay_max => '0')$$);
SELECT t.error($$SELECT aq.alter_queue('rd', retry_delay_max => '-2')$$);
SELECT t.error($$SELECT aq.alter_queue('rd', retry_jitter => 'NaN')$$);
-- growing, up to the limit
SELECT aq.enqueue('rd', '1') AS id \gset
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]); SELECT t.rests('rd');
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]); SELECT t.rests('rd');
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]); SELECT t.rests('rd');
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]); SELECT t.rests('rd');
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid], 3); SELECT t.rests('rd');
SELECT aq.purge_queue('rd');
-- it does not stop those behind it, and the same transaction has others with other delays
SELECT aq.enqueue('rd', '2') AS two \gset
SELECT aq.enqueue('rd', '3') AS three \gset
SELECT t.put('rd', 4);
CALL t.fail_attempts('rd', ARRAY[:'two'::uuid], 2);
CALL t.fail_attempts('rd', ARRAY[:'two', :'three']::uuid[]);
SELECT t.rests('rd');
SELECT t.drain('rd');
SELECT aq.purge_queue('rd');
-- fixed; a retry delay above the limit does not grow
SELECT aq.alter_queue('rd', retry_delay_factor => 1);
SELECT aq.enqueue('rd', '5') AS id \gset
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid], 2); SELECT t.rests('rd');
SELECT aq.alter_queue('rd', retry_delay_factor => 2, retry_delay_max => '10 minutes');
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid], 2); SELECT t.rests('rd');
-- no limit, and a growth beyond all numbers
SELECT aq.alter_queue('rd', retry_delay_max => '-1');
SELECT retry_delay, retry_delay_factor, retry_delay_max, retry_jitter FROM aq.queues WHERE queue_name = 'rd';
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]); SELECT t.rests('rd');
SELECT aq.alter_queue('rd', retry_delay_factor => 1e300, retry_jitter => 1);
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]);
SELECT attempts, state, extract(year FROM ready_at) BETWEEN 90000 AND 103000 FROM aq.messages WHERE queue_name = 'rd' AND msgid = :'id';
SELECT aq.purge_queue('rd');
-- chance: between the delay and twice the delay, and not the same for all
SELECT aq.alter_queue('rd', retry_delay_factor => 5);
SELECT array_agg(aq.enqueue('rd', to_jsonb(n))) AS ids FROM generate_series(1, 40) n \gset
CALL t.fail_attempts('rd', :'ids');
SELECT count(*), min(ready_at) > clock_timestamp() + '59 min', max(ready_at) < clock_timestamp() + '2 h', count(DISTINCT ready_at) > 1
FROM aq.messages WHERE queue_name = 'rd' AND state = 'WAITING';
SELECT aq.purge_queue('rd');
-- a retry delay that is changed: those that wait keep theirs
SELECT aq.alter_queue('rd', retry_jitter => 0);
SELECT aq.enqueue('rd', '6') AS id \gset
CALL t.fail_attempts('rd', ARRAY[:'id'::uuid]);
SELECT aq.alter_queue('rd', retry_delay => '0');
SELECT t.rests('rd');
SELECT aq.purge_queue('rd');
-- a topic: each consumer with its own delays
SELECT aq.create_queue('rd_topic', multiple_consumers => true, max_retries => NULL, retry_delay => '1 hour', retry_jitter => 0);
SELECT aq.subscribe('rd_topic', 'a'), aq.subscribe('rd_topic', 'b');
SELECT t.put('rd_topic', 7);
BEGIN; SELECT payload FROM aq.dequeue('rd_topic', 'a'); ROLLBACK;
SELECT t.drain('rd_topic', 'a') IS NULL, t.drain('rd_topic', 'b');
SELECT consumer, state, attempts, round(extract(epoch FROM ready_at - clock_timestamp()) / 60) FROM aq.messages WHERE queue_name = 'rd_topic' AND consumer = 'a';
SELECT aq.drop_queue('rd_topic', force => true), aq.drop_queue('rd');
DROP FUNCTION t.rests;
