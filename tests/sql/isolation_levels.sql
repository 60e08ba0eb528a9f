-- One session's view of isolation levels and of READ ONLY transactions; two sessions' is in the isolation specs.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('i', retry_delay => '0');
SELECT t.put('i', 1, 3);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT payload FROM aq.dequeue('i');
SELECT t.put('i', 4);
SELECT t.look('i');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT payload FROM aq.dequeue('i');
SELECT t.put('i', 5);
SELECT t.drain('i');
ROLLBACK;
SELECT t.drain('i');
-- READ ONLY: refused at the call, before anything is read or reserved
SELECT t.put('i', 6);
BEGIN READ ONLY;
SELECT t.error($$SELECT aq.enqueue('i', '1')$$);
SELECT t.error($$SELECT aq.enqueue_array('i', ARRAY['1'])$$);
SELECT t.error($$SELECT * FROM aq.dequeue('i')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('i', mode => 'locked')$$);
SELECT t.error($$SELECT * FROM aq.dequeue_full('i', NULL::jsonb)$$);
SELECT t.error($$SELECT aq.purge_queue('i')$$);
SELECT t.error($$SELECT aq.create_queue('i2')$$);
SELECT t.error($$SELECT aq.alter_queue('i', max_retries => 1)$$);
SELECT t.error($$SELECT aq.drop_queue('i')$$);
SELECT t.error($$SELECT aq.stop_queue('i')$$);
SELECT t.error($$SELECT aq.subscribe('i', 'x')$$);
SELECT t.error($$SELECT aq.grant_queue('i', 'pg_monitor')$$);
CALL aq.wait('i', NULL, '0', NULL);
SELECT t.look('i');
SELECT count(*) FROM aq.queues WHERE queue_name = 'i';
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT t.error($$SELECT * FROM aq.dequeue('i')$$);
ROLLBACK;
SET default_transaction_read_only = on;
SELECT t.error($$SELECT aq.enqueue('i', '1')$$);
RESET default_transaction_read_only;
SELECT payload, attempts FROM aq.dequeue('i');		-- nothing of this counted as an attempt
SELECT aq.drop_queue('i');
