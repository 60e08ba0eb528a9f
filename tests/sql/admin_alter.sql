-- aq.alter_queue and aq.drop_queue.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('a', max_retries => 3, comment => 'first');
SELECT aq.create_queue('a_dead');
CREATE VIEW t.a AS
	SELECT q.queue_name, q.max_retries, q.retry_delay, q.retention, x.queue_name AS exception_queue, q.comment
	FROM aq_internal.queue q LEFT JOIN aq_internal.queue x ON x.queue_id = q.exception_queue_id;
SELECT * FROM t.a ORDER BY 1;

-- null leaves as it is
SELECT aq.alter_queue('a');
SELECT * FROM t.a WHERE queue_name = 'a';
SELECT aq.alter_queue('a', max_retries => 7, retry_delay => '3 s', retention => '1 hour', exception_queue => 'a_dead', comment => 'second');
SELECT * FROM t.a WHERE queue_name = 'a';
SELECT aq.alter_queue('a', comment => 'third');
SELECT * FROM t.a WHERE queue_name = 'a';
-- the values that remove
SELECT aq.alter_queue('a', max_retries => -1, exception_queue => 'none', comment => '', retry_delay => '0', retention => '0');
SELECT * FROM t.a WHERE queue_name = 'a';
-- refused
SELECT t.error($$SELECT aq.alter_queue('no such queue', max_retries => 1)$$);
SELECT t.error($$SELECT aq.alter_queue(NULL)$$);
SELECT t.error($$SELECT aq.alter_queue('a', max_retries => -2)$$);
SELECT t.error($$SELECT aq.alter_queue('a', retry_delay => '-1 s')$$);
SELECT t.error($$SELECT aq.alter_queue('a', retention => '-1 s')$$);
SELECT t.error($$SELECT aq.alter_queue('a', exception_queue => 'a')$$);
SELECT t.error($$SELECT aq.alter_queue('a', exception_queue => 'no such queue')$$);
SELECT t.error($$SELECT aq.alter_queue('a', new_name => 'a_dead')$$);
SELECT t.error($$SELECT aq.alter_queue('a', new_name => '')$$);
SELECT t.error($$SELECT aq.alter_queue('a', new_owner => 'regress_no_such_role')$$);
SELECT * FROM t.a WHERE queue_name = 'a';

-- renaming takes the messages along
SELECT t.put('a', 1, 3);
SELECT aq.alter_queue('a', new_name => 'a_renamed');
SELECT t.error($$SELECT aq.enqueue('a', '1')$$);
SELECT t.put('a_renamed', 4);
SELECT t.drain('a_renamed');
-- and is undone by a rollback
BEGIN;
SELECT aq.alter_queue('a_renamed', new_name => 'a_again', max_retries => 9);
SELECT t.put('a_again', 5);
ROLLBACK;
SELECT t.error($$SELECT t.drain('a_again')$$);
SELECT t.drain('a_renamed');
SELECT * FROM t.a WHERE queue_name = 'a_renamed';

-- an exception queue cannot be dropped while somebody needs it
SELECT aq.alter_queue('a_renamed', exception_queue => 'a_dead');
SELECT t.error($$SELECT aq.drop_queue('a_dead')$$);

-- dropping: empty, or with force
SELECT t.put('a_renamed', 6);
SELECT t.error($$SELECT aq.drop_queue('a_renamed')$$);
SELECT t.error($$SELECT aq.drop_queue('a_renamed', force => NULL)$$);
SELECT t.drain('a_renamed');
SELECT aq.drop_queue('a_renamed');
SELECT t.error($$SELECT aq.drop_queue('a_renamed')$$);
SELECT t.error($$SELECT aq.drop_queue(NULL)$$);
SELECT t.put('a_dead', 7, 9);
SELECT aq.drop_queue('a_dead', force => true);
SELECT count(*) FROM aq_internal.queue;
-- nothing is left behind
SELECT count(*) FROM aq_internal.message_table;
SELECT count(*) FROM aq_internal.subscriber;
SELECT c.relname FROM pg_class c WHERE relnamespace = 'aq_data'::regnamespace AND relkind IN ('r', 'v');
DROP VIEW t.a;

-- the same name again is a new, empty queue
SELECT aq.create_queue('a');
SELECT t.put('a', 1);
SELECT aq.drop_queue('a', force => true);
SELECT aq.create_queue('a', payload_type => 'text');
SELECT count(*) FROM aq.dequeue('a', as_type => NULL::text);
SELECT aq.enqueue('a', 'x') IS NOT NULL;
SELECT payload FROM aq.dequeue('a', as_type => NULL::text);
SELECT aq.drop_queue('a');
