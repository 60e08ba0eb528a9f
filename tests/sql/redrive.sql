-- aq.redrive puts dead letters back to where they came from.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('rd_named', 'text'), aq.create_queue('rd', 'text', max_retries => 3);
-- t.fail rejects everything, and waits until so many dead letters are there
CREATE PROCEDURE t.fail(queue text, consumer text, exceptions text, wanted integer) LANGUAGE plpgsql AS $$
DECLARE
	ids uuid[];
	receipt bigint;
BEGIN
	SELECT array_agg(d.msgid), max(d.receipt) INTO ids, receipt
	FROM aq.dequeue(queue, as_type => NULL::text, consumer => consumer, max_messages => 100000, lease => '1 hour') d;
	COMMIT;
	PERFORM aq.reject(queue, ids, receipt, consumer);
	COMMIT;
	FOR i IN 1..500 LOOP
		EXIT WHEN (SELECT count(*) FROM aq.browse(exceptions, as_type => NULL::text, max_messages => 100000)) >= wanted;
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
END $$;
SELECT aq.enqueue('rd', 'one', priority => 3, correlation => 'c', properties => '{"k": 1}', sender => 's', exception_queue => 'rd_named', expiration => '1 day') IS NOT NULL;
SELECT count(*) FROM aq.enqueue_array('rd', ARRAY['two', 'three', 'four']) ids, unnest(ids);
CALL t.fail('rd', NULL, 'rd_exceptions', 3);
CALL aq.wait('rd_named', NULL, '60 s', NULL);
-- so many, by a condition, in the caller's transaction
BEGIN;
SELECT aq.redrive('rd', 2);
ROLLBACK;
SELECT aq.redrive('rd', condition => $$payload LIKE 't%' AND dead_letter ->> 'reason' = 'rejected'$$);
SELECT string_agg(payload, ' ' ORDER BY payload) FROM aq.browse('rd', as_type => NULL::text);
SELECT string_agg(payload, ' ') FROM aq.browse('rd_exceptions', as_type => NULL::text);
SELECT aq.redrive('rd', 5), aq.redrive('rd');
-- with the properties that it had, as a new message without attempts; the expiration begins again
SELECT aq.redrive('rd', exception_queue => 'rd_named');
SELECT payload, priority, attempts, correlation, properties, sender, exception_queue, original_msgid, dead_letter, expires_at - enqueue_time BETWEEN '86399 s' AND '86401 s'
FROM aq.dequeue_full('rd', as_type => NULL::text, condition => $$payload = 'one'$$);
SELECT attempts, expires_at FROM aq.dequeue_full('rd', as_type => NULL::text, max_messages => 10);
-- only those that came from the queue, whatever else is in the exception queue
SELECT aq.create_queue('rd_other', 'text', max_retries => 3, exception_queue => 'rd_exceptions');
SELECT aq.enqueue('rd', 'mine') IS NOT NULL, aq.enqueue('rd_other', 'other') IS NOT NULL;
CALL t.fail('rd', NULL, 'rd_exceptions', 1);
CALL t.fail('rd_other', NULL, 'rd_exceptions', 2);
SELECT aq.redrive('rd'), aq.redrive('rd_other');
SELECT payload FROM aq.dequeue('rd', as_type => NULL::text, max_messages => 10);
SELECT payload FROM aq.dequeue('rd_other', as_type => NULL::text, max_messages => 10);
-- a topic: for the consumer for which it failed, not for others; what a consumer that is gone has left remains
SELECT aq.create_queue('rd_topic', 'text', multiple_consumers => true, max_retries => 3);
SELECT aq.subscribe('rd_topic', 'ann'), aq.subscribe('rd_topic', 'bob');
SELECT aq.enqueue('rd_topic', 'news') IS NOT NULL;
CALL t.fail('rd_topic', 'bob', 'rd_topic_exceptions', 0);
CALL t.fail('rd_topic', 'ann', 'rd_topic_exceptions', 2);
SELECT aq.unsubscribe('rd_topic', 'bob');
SELECT aq.redrive('rd_topic');
SELECT consumer, payload, attempts FROM aq.messages WHERE queue_name = 'rd_topic' AND state = 'READY';
SELECT consumer FROM aq.dead_letters WHERE exception_queue = 'rd_topic_exceptions';
-- a dead letter of an exception queue is what it was before, when it is back there
SELECT aq.enqueue('rd', 'twice', exception_queue => 'rd_named') IS NOT NULL;
CALL t.fail('rd', NULL, 'rd_named', 1);
CALL t.fail('rd_named', NULL, 'rd_named_exceptions', 1);
SELECT aq.redrive('rd_named');
SELECT queue_name, reason, dead_letter ? 'before' FROM aq.dead_letters WHERE exception_queue = 'rd_named';
SELECT aq.redrive('rd', exception_queue => 'rd_named');
SELECT payload FROM aq.dequeue('rd', as_type => NULL::text);
-- those that have failed in the exception queue, too, come in smaller batches, but all are put back
SELECT aq.alter_queue('rd_named', max_retries => 1, retry_delay => '0');
SELECT aq.enqueue('rd', 'again', exception_queue => 'rd_named') IS NOT NULL FROM generate_series(1, 3);
CALL t.fail('rd', NULL, 'rd_named', 3);
BEGIN;
SELECT count(*) FROM aq.dequeue('rd_named', as_type => NULL::text, max_messages => 10);
ROLLBACK;
SELECT aq.redrive('rd', exception_queue => 'rd_named');
SELECT payload FROM aq.dequeue('rd', as_type => NULL::text, max_messages => 10);
-- thousands
SELECT cardinality(aq.enqueue_array('rd', array_agg(n::text))) FROM generate_series(1, 5000) n;
CALL t.fail('rd', NULL, 'rd_exceptions', 5000);
SELECT aq.redrive('rd', 4000), aq.redrive('rd');
SELECT count(*), count(DISTINCT payload), max(attempts) FROM aq.dequeue('rd', as_type => NULL::text, max_messages => 100000);
-- rights: to dequeue there and to enqueue here
CREATE ROLE regress_rd_in;
CREATE ROLE regress_rd_both;
SELECT aq.grant_queue('rd', 'regress_rd_in', 'enqueue'), aq.grant_queue('rd', 'regress_rd_both', 'enqueue, dequeue');
SELECT aq.grant_queue('rd_named', 'regress_rd_in', 'enqueue'), aq.grant_queue('rd_named', 'regress_rd_both', 'dequeue');
SELECT aq.alter_queue('rd', exception_queue => 'rd_named');
SELECT aq.enqueue('rd', 'back') IS NOT NULL;
CALL t.fail('rd', NULL, 'rd_named', 1);
SET ROLE regress_rd_in;
SELECT t.error($$SELECT aq.redrive('rd')$$);
SET ROLE regress_rd_both;
SELECT aq.redrive('rd');
RESET ROLE;
-- a dead letter whose exception queue is gone, and another queue has its name, or one without the privilege, keeps no other one back
SELECT aq.create_queue('rd_trap', 'text');
SELECT aq.enqueue('rd', 'named', exception_queue => 'rd_trap') IS NOT NULL, aq.enqueue('rd', 'plain') IS NOT NULL;
SELECT aq.drop_queue('rd_trap');
CALL t.fail('rd', NULL, 'rd_named', 2);
SELECT aq.create_queue('rd_trap', 'text', multiple_consumers => true);
BEGIN;
SELECT aq.redrive('rd');
ROLLBACK;
SELECT aq.drop_queue('rd_trap');
SELECT aq.create_queue('rd_trap', 'text');
SET ROLE regress_rd_both;
SELECT aq.redrive('rd');
RESET ROLE;
SELECT payload, exception_queue FROM aq.dequeue_full('rd', as_type => NULL::text, max_messages => 10) WHERE payload <> 'back';
SELECT aq.drop_queue('rd_trap');
-- errors
SELECT t.error($$SELECT aq.redrive('rd', 0)$$);
SELECT t.error($$SELECT aq.redrive('rd', condition => 'no_such = 1')$$);
SELECT t.error($$SELECT aq.redrive('rd_exceptions')$$);
SELECT t.error($$SELECT aq.redrive('rd_exceptions', exception_queue => 'rd_named')$$);
SELECT aq.alter_queue('rd', exception_queue => 'none');
SELECT t.error($$SELECT aq.redrive('rd')$$);
SELECT aq.stop_queue('rd', dequeue => false);
SELECT t.error($$SELECT aq.redrive('rd', exception_queue => 'rd_named')$$);
SELECT aq.revoke_queue(q, r) FROM unnest(ARRAY['rd', 'rd_named']) q, unnest(ARRAY['regress_rd_in', 'regress_rd_both']) r;
DROP ROLE regress_rd_in, regress_rd_both;
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['rd_other', 'rd', 'rd_named', 'rd_topic']) q;
DROP PROCEDURE t.fail;
