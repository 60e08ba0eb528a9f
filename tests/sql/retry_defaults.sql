-- What aq.create_queue does by default: five retries, after 1 s, 5 s, 25 s, 125 s and 10 minutes.
\pset format unaligned
\pset tuples_only on
-- the defaults: the first failure rests for a second, others do not wait for it, and the sixth is the last
SELECT aq.create_queue('rd_default');
SELECT max_retries, retry_delay, retry_delay_factor, retry_delay_max, retry_jitter FROM aq.queues WHERE queue_name = 'rd_default';
SELECT aq.enqueue('rd_default', '8') AS id \gset
SELECT t.put('rd_default', 9);
SELECT clock_timestamp() AS started \gset
CALL t.fail_attempts('rd_default', ARRAY[:'id'::uuid]);
SELECT payload, attempts FROM aq.dequeue('rd_default', condition => 'payload::int = 9');
SELECT payload, attempts FROM aq.dequeue('rd_default', wait => '60 s');
SELECT clock_timestamp() - :'started' > '1 s';
SELECT aq.enqueue('rd_default', '10') AS id \gset
CALL t.fail_attempts('rd_default', ARRAY[:'id'::uuid], 5);
SELECT attempts, state, ready_at > clock_timestamp() + '9 min', ready_at < clock_timestamp() + '11 min' FROM aq.messages WHERE queue_name = 'rd_default' AND msgid = :'id';
BEGIN; SELECT payload, attempts FROM aq.dequeue('rd_default', msgid => :'id'); ROLLBACK;
SELECT payload FROM aq.dequeue((SELECT exception_queue FROM aq.queues WHERE queue_name = 'rd_default'), wait => '60 s');
SELECT t.look('rd_default') IS NULL;
-- no limit
SELECT aq.alter_queue('rd_default', max_retries => -1, retry_delay => '0');
SELECT aq.enqueue('rd_default', '11') AS id \gset
CALL t.fail_attempts('rd_default', ARRAY[:'id'::uuid], 8);
SELECT payload, attempts FROM aq.dequeue('rd_default');
SELECT aq.drop_queue('rd_default', force => true);
