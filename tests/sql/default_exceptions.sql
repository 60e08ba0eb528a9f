-- Every queue has an exception queue, unless it says none: its name, its cost, its rights, what becomes of it.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('de', 'text', max_retries => 0, retry_delay => '0');
SELECT queue_name, exception_queue, payload_type, queue_type, max_retries, enqueue_enabled, dequeue_enabled FROM aq.queues WHERE queue_name LIKE 'de%' ORDER BY 1;
-- it has neither a table nor another relation, and is not in memory
SELECT c.relname FROM pg_class c JOIN aq.queues q ON q.queue_name = 'de_exceptions'
WHERE c.relnamespace = 'aq_data'::regnamespace AND c.relname ~ ('^[a-z]' || q.queue_id || '(_|$)');
-- until its first message
SELECT aq.enqueue('de', 'one') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('de', as_type => NULL::text); ROLLBACK;
CALL aq.wait('de_exceptions', NULL, '60 s', NULL);
SELECT count(*) > 0 FROM pg_class c JOIN aq.queues q ON q.queue_name = 'de_exceptions'
WHERE c.relnamespace = 'aq_data'::regnamespace AND c.relname ~ ('^q' || q.queue_id || '_');
-- a dead letter is not dropped by retries, whatever max_retries is
SELECT aq.alter_queue('de_exceptions', max_retries => 0);
BEGIN; SELECT payload FROM aq.dequeue('de_exceptions', as_type => NULL::text); ROLLBACK;
BEGIN; SELECT payload FROM aq.dequeue('de_exceptions', as_type => NULL::text, wait => '60 s'); ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('de_exceptions', as_type => NULL::text, wait => '60 s', mode => 'browse');
-- only the worker enqueues
SELECT t.error($$SELECT aq.enqueue('de_exceptions', 'x')$$);
-- rights are those of its queue
CREATE ROLE regress_de_in;
CREATE ROLE regress_de_out;
SELECT t.error($$SELECT aq.grant_queue('de_exceptions', 'regress_de_out')$$);
SELECT t.error($$SELECT aq.alter_queue('de_exceptions', new_owner => 'regress_de_out')$$);
SELECT aq.grant_queue('de', 'regress_de_in', 'enqueue'), aq.grant_queue('de', 'regress_de_out', 'dequeue');
SET ROLE regress_de_in;
SELECT t.error($$SELECT * FROM aq.dequeue('de_exceptions', as_type => NULL::text)$$);
SET ROLE regress_de_out;
BEGIN; SELECT payload FROM aq.dequeue('de_exceptions', as_type => NULL::text); ROLLBACK;
RESET ROLE;
-- only its owner can name it for another queue, which keeps it from being dropped
GRANT EXECUTE ON FUNCTION aq.create_queue TO regress_de_in;
SET ROLE regress_de_in;
SELECT t.error($$SELECT aq.create_queue('de_other', exception_queue => 'de_exceptions')$$);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION aq.create_queue FROM regress_de_in;
SELECT aq.alter_queue('de', new_owner => 'regress_de_in');
SELECT queue_name, owner FROM aq.queues WHERE queue_name LIKE 'de%' ORDER BY 1;
DROP OWNED BY regress_de_out;
SET ROLE regress_de_out;
SELECT t.error($$SELECT * FROM aq.dequeue('de_exceptions', as_type => NULL::text)$$);
RESET ROLE;
REASSIGN OWNED BY regress_de_in TO CURRENT_USER;
SELECT aq.revoke_queue('de', 'regress_de_in');
DROP ROLE regress_de_in, regress_de_out;
-- it is renamed with its queue; a name that is taken is passed over
SELECT aq.alter_queue('de', new_name => 'de2');
SELECT aq.create_queue('de3_exceptions', exception_queue => 'none'), aq.create_queue('de3');
SELECT queue_name, exception_queue FROM aq.queues WHERE queue_name LIKE 'de%' ORDER BY 1;
SELECT aq.alter_queue('de2', new_name => 'de');
SELECT t.error($$SELECT aq.create_queue('de_exceptions')$$);
SELECT aq.create_queue('de_exceptions', if_not_exists => true);
SELECT aq.create_queue(rpad('de', 60, 'é') || 'xxxxxxxxx') IS NOT NULL;
SELECT octet_length(exception_queue), exception_queue ~ 'é_exceptions$' FROM aq.queues WHERE queue_name = rpad('de', 60, 'é') || 'xxxxxxxxx';
SELECT aq.drop_queue(rpad('de', 60, 'é') || 'xxxxxxxxx'), aq.drop_queue('de3'), aq.drop_queue('de3_exceptions');
-- the queue, which holds dead letters, is not dropped without force; the exception queue alone, while it is used, not at all
SELECT t.error($$SELECT aq.drop_queue('de')$$);
SELECT t.error($$SELECT aq.drop_queue('de_exceptions', force => true)$$);
-- none: messages that fail are deleted
SELECT aq.alter_queue('de', exception_queue => 'none');
SELECT aq.enqueue('de', 'two') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('de', as_type => NULL::text); ROLLBACK;
SELECT count(*) FROM aq.dequeue('de', as_type => NULL::text);
SELECT count(*) FROM aq.browse('de_exceptions', as_type => NULL::text);
-- and back again
SELECT aq.alter_queue('de', exception_queue => 'de_exceptions');
SELECT aq.create_queue('de_other', 'text', exception_queue => 'de_exceptions');
SELECT t.error($$SELECT aq.drop_queue('de', force => true)$$);
SELECT aq.drop_queue('de_other'), aq.drop_queue('de', force => true);
-- in one transaction
BEGIN;
SELECT aq.create_queue('de'), aq.drop_queue('de'), aq.create_queue('de');
SELECT aq.alter_queue('de', new_name => 'de2');
SELECT aq.drop_queue('de2');
ROLLBACK;
BEGIN;
SELECT aq.create_queue('de');
SAVEPOINT s;
SELECT aq.drop_queue('de', force => true);
ROLLBACK TO s;
COMMIT;
SELECT queue_name FROM aq.queues WHERE queue_name LIKE 'de%' ORDER BY 1;
SELECT aq.alter_queue('de', exception_queue => 'none');
SELECT aq.drop_queue('de_exceptions');
SELECT aq.drop_queue('de');
SELECT count(*) FROM aq.queues WHERE queue_name LIKE 'de%';
-- none is no queue's name, and not for a message
SELECT t.error($$SELECT aq.create_queue('none')$$);
SELECT aq.create_queue('de', exception_queue => 'none');
SELECT t.error($$SELECT aq.alter_queue('de', new_name => 'none')$$);
SELECT t.error($$SELECT aq.enqueue('de', '1', exception_queue => 'none')$$);
SELECT aq.drop_queue('de');
