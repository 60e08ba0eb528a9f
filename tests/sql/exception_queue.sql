-- What an exception queue is: a queue like others, that others point to.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('k_dead', 'text', retry_delay => '0');
SELECT aq.create_queue('k', 'text', max_retries => 0, exception_queue => 'k_dead');
SELECT aq.enqueue('k', 'one') IS NOT NULL, aq.enqueue('k', 'two') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
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
-- the exception queue that a message names is the one of this name when it is enqueued: renamed, it still is; dropped, another one of its name is not
SELECT count(aq.create_queue(name, 'text', retry_delay => '0')) FROM unnest(ARRAY['k_dead', 'k_named', 'k_spare', 'k_gone']) name;
SELECT aq.create_queue('k', 'text', max_retries => 0, exception_queue => 'k_dead');
SELECT aq.enqueue('k', 'renamed', exception_queue => 'k_named') IS NOT NULL;
SELECT aq.alter_queue('k_named', new_name => 'k_other'), aq.alter_queue('k_spare', new_name => 'k_named');
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
CALL aq.wait('k_other', NULL, '60 s', NULL);
SELECT payload FROM aq.dequeue('k_other', as_type => NULL::text);
SELECT aq.enqueue('k', 'dropped', exception_queue => 'k_gone') IS NOT NULL;
SELECT aq.drop_queue('k_gone');
SELECT aq.create_queue('k_gone', 'text', retry_delay => '0');
BEGIN; SELECT payload FROM aq.dequeue('k', as_type => NULL::text); ROLLBACK;
CALL aq.wait('k_dead', NULL, '60 s', NULL);
SELECT payload FROM aq.dequeue('k_dead', as_type => NULL::text);
SELECT count(*) FROM aq.dequeue('k_gone', as_type => NULL::text);
SELECT aq.alter_queue('k_named', new_name => 'k_spare'), aq.alter_queue('k_other', new_name => 'k_named');
SELECT count(aq.drop_queue(name)) FROM unnest(ARRAY['k', 'k_dead', 'k_named', 'k_spare', 'k_gone']) name;
