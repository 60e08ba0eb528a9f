-- Flow control of buffered messages, as one session sees it: the limit, who counts, what gives room, the error.
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION t.buffer(queue_name text, n integer, recipients text[] DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(aq.enqueue($1, to_jsonb(i), recipients => $3, delivery_mode => 'buffered')) FROM generate_series(1, $2) AS i
$$;
CREATE FUNCTION t.unbuffer(queue_name text, n integer, consumer text DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM aq.dequeue($1, consumer => $3, max_messages => $2, delivery_mode => 'buffered')
$$;
CREATE VIEW t.publishers AS SELECT queue_name, sender_name, num_msgs, unbrowsed_msgs, overspilled_msgs, memory_usage > 0 AS uses_memory,
	last_enqueued_msg IS NOT NULL AND last_enqueue_time < now() + '1 hour' AS has_last, publisher_state FROM sys.v$buffered_publishers;
SHOW pgaq.buffered_message_limit;
SHOW pgaq.flow_control_timeout;
SET pgaq.buffered_message_limit = 3;
SET pgaq.flow_control_timeout = 0;
SELECT aq.create_queue('flow', max_retries => 0);
SELECT t.buffer('flow', 2);
SELECT * FROM t.publishers WHERE queue_name = 'FLOW';
SELECT aq.enqueue('flow', '3', sender => 'ann', delivery_mode => 'buffered') IS NOT NULL;
SELECT * FROM t.publishers WHERE queue_name = 'FLOW' ORDER BY sender_name;
-- full: nothing is enqueued; persistent messages have no limit
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
SELECT t.error($$SELECT aq.enqueue_array('flow', '{4,5}'::jsonb[], delivery_mode => 'buffered')$$);
SELECT count(aq.enqueue('flow', '0')) FROM generate_series(1, 5);
SELECT messages FROM aq.buffered_queues WHERE queue_name = 'flow';
-- taking gives room when it commits
BEGIN;
SELECT t.unbuffer('flow', 1);
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
COMMIT;
SELECT t.buffer('flow', 1);
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
-- so does purging, expiring, failing
SELECT aq.purge_queue('flow', condition => 'payload = ''2''', delivery_mode => 'buffered');
SELECT aq.enqueue('flow', '"late"', expiration => '1 microsecond', delivery_mode => 'buffered') IS NOT NULL;
SET pgaq.flow_control_timeout = '10 s';
SELECT t.buffer('flow', 1);
BEGIN;
SELECT t.unbuffer('flow', 1);
ROLLBACK;
SELECT t.buffer('flow', 1);
SET pgaq.flow_control_timeout = 0;
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
SELECT aq.purge_queue('flow', delivery_mode => 'persistent_or_buffered');
SELECT * FROM t.publishers WHERE queue_name = 'FLOW';
-- a transaction has the limit, too, without waiting; what it rolls back does not count
SET pgaq.flow_control_timeout = '1 h';
SELECT t.error($$SELECT t.buffer('flow', 4)$$);
BEGIN;
SELECT t.buffer('flow', 2);
SAVEPOINT a;
SELECT t.buffer('flow', 1);
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
ROLLBACK TO a;
SELECT t.buffer('flow', 1);
SAVEPOINT b;
RELEASE b;
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
ROLLBACK;
SELECT t.buffer('flow', 3);
SELECT t.unbuffer('flow', 10);
-- an array comes whole, where there is room for one message
SELECT t.buffer('flow', 2);
SELECT cardinality(aq.enqueue_array('flow', '{4,5,6,7}'::jsonb[], delivery_mode => 'buffered'));
SET pgaq.flow_control_timeout = 0;
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
SELECT t.unbuffer('flow', 3);
SELECT t.error($$SELECT t.buffer('flow', 1)$$);
SELECT t.unbuffer('flow', 1);
SELECT t.buffer('flow', 1);
-- a higher limit, none
SET pgaq.buffered_message_limit = 4;
SELECT t.buffer('flow', 1);
SET pgaq.buffered_message_limit = 0;
SELECT t.buffer('flow', 10);
SELECT * FROM t.publishers WHERE queue_name = 'FLOW';
SET pgaq.buffered_message_limit = 3;
SELECT * FROM t.publishers WHERE queue_name = 'FLOW';
-- of a topic: the messages before the consumer that has the most, of those that the message is for
SELECT aq.create_queue('flowt', multiple_consumers => true);
SELECT aq.subscribe('flowt', 'a', delivery_mode => 'buffered'), aq.subscribe('flowt', 'b', rule => 'priority = 0', delivery_mode => 'persistent_or_buffered');
SELECT t.buffer('flowt', 3);
SELECT t.error($$SELECT t.buffer('flowt', 1)$$);
SELECT t.error($$SELECT aq.enqueue('flowt', '1', priority => 0, delivery_mode => 'buffered')$$);
SELECT t.buffer('flowt', 3, '{b}');
SELECT t.error($$SELECT t.buffer('flowt', 1, '{c,b}')$$);
SELECT t.buffer('flowt', 1, '{c}');
SELECT * FROM t.publishers WHERE queue_name = 'FLOWT';
SELECT t.unbuffer('flowt', 1, 'a');
SELECT t.buffer('flowt', 1);
-- a subscriber that is removed does not count
SELECT t.error($$SELECT aq.enqueue('flowt', '1', priority => 0, delivery_mode => 'buffered')$$);
SELECT aq.unsubscribe('flowt', 'b'), aq.unsubscribe('flowt', 'a');
SELECT t.buffer('flowt', 2, '{c}');
SELECT publisher_state FROM t.publishers WHERE queue_name = 'FLOWT';
SELECT t.unbuffer('flowt', 1, 'c');
SELECT publisher_state FROM t.publishers WHERE queue_name = 'FLOWT';
-- who sets the limit
CREATE ROLE regress_flow;
SET ROLE regress_flow;
SET pgaq.flow_control_timeout = '1 s';
SELECT t.error($$SET pgaq.buffered_message_limit = 0$$);
SELECT count(*) FROM sys.v$buffered_publishers;
RESET ROLE;
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['flow', 'flowt']) q;
DROP ROLE regress_flow;
DROP VIEW t.publishers;
DROP FUNCTION t.buffer, t.unbuffer;
