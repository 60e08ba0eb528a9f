-- aq.start_queue and aq.stop_queue: both sides apart.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('s');
SELECT t.put('s', 1, 2);
-- enqueue only
SELECT aq.stop_queue('s', enqueue => true, dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
SELECT t.error($$SELECT t.put('s', 3)$$);
SELECT t.error($$SELECT aq.enqueue_array('s', ARRAY['3'])$$);
SELECT payload FROM aq.dequeue('s');
-- both
SELECT aq.stop_queue('s');
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
SELECT t.error($$SELECT payload FROM aq.dequeue('s')$$);
SELECT t.error($$CALL aq.wait('s', NULL, '0', NULL)$$);
SELECT t.error($$SELECT payload FROM aq.browse('s')$$);
-- false leaves a side as it is
SELECT aq.start_queue('s', enqueue => false, dequeue => true);
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
SELECT t.error($$SELECT t.put('s', 3)$$);
SELECT aq.start_queue('s', enqueue => true, dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
SELECT t.put('s', 3);
SELECT t.drain('s');
-- neither side: nothing to do is nothing done, or refused, but never a change
SELECT t.error($$SELECT aq.stop_queue('s', enqueue => false, dequeue => false)$$);
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
-- twice is once
SELECT aq.stop_queue('s');
SELECT aq.stop_queue('s');
SELECT aq.start_queue('s');
SELECT aq.start_queue('s');
SELECT enqueue_enabled, dequeue_enabled FROM aq_internal.queue WHERE queue_name = 's';
-- transactional, and seen at once by the session itself
BEGIN;
SELECT aq.stop_queue('s');
SELECT t.error($$SELECT t.put('s', 4)$$);
ROLLBACK;
SELECT t.put('s', 4);
SELECT t.drain('s');
SELECT t.error($$SELECT aq.stop_queue('no such queue')$$);
SELECT t.error($$SELECT aq.start_queue(NULL)$$);
SELECT aq.drop_queue('s');
