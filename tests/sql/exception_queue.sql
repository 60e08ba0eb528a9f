-- What an exception queue is: a queue like others, that others point to.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('k_dead', 'text');
SELECT aq.create_queue('k', 'text', max_retries => 0, exception_queue => 'k_dead');
SELECT aq.enqueue('k', 'one') IS NOT NULL, aq.enqueue('k', 'two') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text, max_messages => 2); ROLLBACK;
CALL aq.wait('k_dead', NULL, '60 s', NULL);
SELECT payload FROM aq.dequeue('k_dead', as_type => NULL::text) ;
CALL aq.wait('k_dead', NULL, '60 s', NULL);
SELECT payload FROM aq.dequeue('k_dead', as_type => NULL::text);
-- a rollback there counts like anywhere, and a message is not moved in a circle
SELECT aq.enqueue('k', 'three') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
CALL aq.wait('k_dead', NULL, '60 s', NULL);
BEGIN; SELECT payload, attempts FROM aq.dequeue('k_dead', as_type => NULL::text); ROLLBACK;
SELECT payload FROM aq.dequeue('k_dead', as_type => NULL::text);
-- stopped for dequeue or enqueue, the exception queue still takes what comes
SELECT aq.stop_queue('k_dead');
SELECT aq.enqueue('k', 'four') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
SELECT count(*) FROM aq.dequeue('k', as_type => NULL::text);
SELECT aq.start_queue('k_dead');
CALL aq.wait('k_dead', NULL, '60 s', NULL);
SELECT payload FROM aq.dequeue('k_dead', as_type => NULL::text);
-- dropped together
SELECT t.error($$SELECT aq.drop_queue('k_dead', force => true)$$);
SELECT aq.drop_queue('k'), aq.drop_queue('k_dead');
