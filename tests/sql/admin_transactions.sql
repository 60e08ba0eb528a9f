-- Queues inside transactions: created, used, dropped and rolled back like any other object.
\pset format unaligned
\pset tuples_only on
-- created and used in one transaction
BEGIN;
SELECT aq.create_queue('d');
SELECT t.put('d', 1, 2);
SELECT payload FROM aq.dequeue('d');
COMMIT;
SELECT t.drain('d');
-- rolled back: no queue, no messages
BEGIN;
SELECT aq.create_queue('d2', multiple_consumers => true);
SELECT aq.subscribe('d2', 'x');
SELECT t.put('d2', 1, 100);
ROLLBACK;
SELECT t.error($$SELECT t.put('d2', 1)$$);
-- created in a savepoint that is rolled back, then made again with another type
BEGIN;
SAVEPOINT a;
SELECT aq.create_queue('d2');
SELECT t.put('d2', 1);
ROLLBACK TO a;
SELECT t.error($$SELECT t.put('d2', 1)$$);
SELECT aq.create_queue('d2', 'text');
SELECT aq.enqueue('d2', 'text now') IS NOT NULL;
COMMIT;
SELECT payload FROM aq.dequeue('d2', as_type => NULL::text);
-- a drop that is rolled back loses nothing
SELECT t.put('d', 1, 3);
BEGIN;
SELECT aq.drop_queue('d', force => true);
SELECT t.error($$SELECT t.put('d', 4)$$);
ROLLBACK;
SELECT t.drain('d');
-- nor one in a savepoint
SELECT t.put('d', 4, 5);
BEGIN;
SAVEPOINT a;
SELECT aq.drop_queue('d', force => true);
ROLLBACK TO a;
SELECT t.put('d', 6);
COMMIT;
SELECT t.drain('d');
-- drop and create under the same name in one transaction
BEGIN;
SELECT t.put('d', 7);
SELECT aq.drop_queue('d', force => true);
SELECT aq.create_queue('d');
SELECT t.put('d', 8);
SELECT t.drain('d');
SELECT t.put('d', 9);
COMMIT;
SELECT t.drain('d');
-- used in the transaction that drops it
BEGIN;
SELECT t.put('d', 10, 12);
SELECT payload FROM aq.dequeue('d');
SELECT aq.drop_queue('d', force => true);
COMMIT;
SELECT t.error($$SELECT t.drain('d')$$);
-- subscribe and enqueue in one transaction, undone together
SELECT aq.create_queue('d3', multiple_consumers => true);
BEGIN;
SELECT aq.subscribe('d3', 's1');
SELECT t.put('d3', 1);
SELECT t.drain('d3', 's1');
ROLLBACK;
SELECT t.put('d3', 1);
BEGIN;
SELECT aq.subscribe('d3', 's1');
SELECT t.put('d3', 2);
SAVEPOINT a;
SELECT aq.subscribe('d3', 's2');
SELECT t.put('d3', 3);
ROLLBACK TO a;
SELECT t.put('d3', 4);
COMMIT;
SELECT t.drain('d3', 's1');
SELECT t.drain('d3', 's2') IS NULL;
-- PREPARE TRANSACTION after DDL on queues is refused
BEGIN;
SELECT aq.create_queue('d4');
PREPARE TRANSACTION 'regress_d4';
\echo :LAST_ERROR_SQLSTATE
SELECT t.error($$SELECT t.put('d4', 1)$$);
SELECT aq.drop_queue('d2');
SELECT aq.drop_queue('d3');
-- many queues, dropped by their names: those that the role owns; an exception queue of another one comes later
CREATE ROLE regress_aq_drops;
SELECT count(aq.create_queue('batch' || n)) FROM generate_series(1, 3) n;
SELECT aq.create_queue('batch', exception_queue => 'batch1');
SELECT aq.create_queue('batch4'), aq.alter_queue('batch4', new_owner => 'regress_aq_drops');
SELECT aq.create_queue('batch5'), aq.alter_queue('batch5', new_owner => 'regress_aq_drops');
SELECT aq.create_queue('few');
SELECT t.put('batch4', 1);
SET ROLE regress_aq_drops;
CALL aq.drop_queues('b_tch%');
CALL aq.drop_queues('b_tch%', force => true);
RESET ROLE;
CALL aq.drop_queues('b_tch%', owner => 'regress_aq_drops');
-- on queue tables there are more exception queues
SET client_min_messages = warning;
CALL aq.drop_queues('b_tch%');
RESET client_min_messages;
CALL aq.drop_queues('b_tch%');
SELECT count(*) FROM aq.queues WHERE queue_name LIKE 'batch%';
-- an exception queue of a queue that stays; no COMMIT is possible; no role
SELECT aq.create_queue('stays', exception_queue => 'few');
CALL aq.drop_queues('few');
BEGIN;
CALL aq.drop_queues('stays');
ROLLBACK;
SELECT t.error($$CALL aq.drop_queues('stays')$$);
DO $$BEGIN CALL aq.drop_queues('stays'); CALL aq.drop_queues('few'); END$$;
CALL aq.drop_queues(NULL);
CALL aq.drop_queues('few', owner => 'nobody at all');
DROP ROLE regress_aq_drops;
