-- Temporary queues and subscribers, as their session sees them. What the end of the session does: tests/cluster/test_temporary.py.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_eve;
CREATE ROLE regress_aq_adam;
CREATE ROLE regress_aq_none;
-- every role that takes part can create one; the name is the server's
SELECT aq.create_queue('lasts'), aq.grant_queue('lasts', 'regress_aq_eve', 'enqueue'), aq.grant_queue('lasts', 'regress_aq_adam', 'dequeue');
SET ROLE regress_aq_eve;
SELECT aq.create_temporary_queue() AS q, aq.create_temporary_queue('aq.jms_message', true) AS topic \gset
SELECT :'q' ~ '^temporary_\d+_\d+$', :'q' <> :'topic';
SELECT owner, payload_type, multiple_consumers, shards, exception_queue, max_retries, retry_delay, retry_delay_factor, retry_delay_max, retry_jitter, temporary FROM aq.queues ORDER BY queue_id;
SELECT aq.enqueue(:'q', '1') IS NOT NULL;
SELECT aq.subscribe(:'topic', 'ann'), aq.subscribe(:'topic', 'bob', temporary => true), aq.subscribe(:'topic', 'cid', temporary => NULL);
SELECT consumer, temporary FROM aq.subscribers WHERE queue_name = :'topic' ORDER BY 1;
-- others enqueue, and that is all
SET ROLE regress_aq_adam;
SELECT may_enqueue, may_dequeue, may_subscribe FROM aq.queues WHERE queue_name IN (:'q', :'topic') ORDER BY queue_id;
SELECT aq.enqueue(:'q', '2') IS NOT NULL;
SELECT regexp_replace(t.error(format('SELECT aq.dequeue(%L)', :'q')), 'temporary_\d+_\d+', 'temporary_N', 'g');
SELECT regexp_replace(t.error(format('SELECT aq.subscribe(%L, %L)', :'topic', 'adam')), 'temporary_\d+_\d+', 'temporary_N', 'g');
SELECT regexp_replace(t.error(format('SELECT aq.drop_queue(%L)', :'q')), 'temporary_\d+_\d+', 'temporary_N', 'g');
SELECT t.error($$SELECT aq.create_queue('mine')$$);
-- a role that takes no part neither creates one, nor uses others': temporary queues do not make it take part
SET ROLE regress_aq_none;
SELECT t.error('SELECT aq.create_temporary_queue()');
SELECT count(*) FROM aq.queues;
SELECT regexp_replace(t.error(format('SELECT aq.enqueue(%L, %L)', :'q', '3')), 'temporary_\d+_\d+', 'temporary_N', 'g');
-- it takes part with EXECUTE on one of two functions, as a member of a role that does, or with a right on a consumer, and while it has that
RESET ROLE;
GRANT EXECUTE ON FUNCTION aq.create_temporary_queue TO regress_aq_none;
SET ROLE regress_aq_none;
SELECT aq.create_temporary_queue() IS NOT NULL, aq.enqueue(:'q', '3') IS NOT NULL;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION aq.create_temporary_queue FROM regress_aq_none;
GRANT EXECUTE ON FUNCTION aq.create_queue TO regress_aq_none;
SET ROLE regress_aq_none;
SELECT aq.enqueue(:'q', '3') IS NOT NULL;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION aq.create_queue FROM regress_aq_none;
GRANT regress_aq_adam TO regress_aq_none;
SET ROLE regress_aq_none;
SELECT aq.enqueue(:'q', '3') IS NOT NULL;
RESET ROLE;
REVOKE regress_aq_adam FROM regress_aq_none;
SELECT aq.create_queue('consumed', multiple_consumers => true), aq.grant_consumer('consumed', 'mine', 'regress_aq_none');
SET ROLE regress_aq_none;
SELECT aq.enqueue(:'q', '3') IS NOT NULL;
RESET ROLE;
SELECT aq.revoke_consumer('consumed', 'mine', 'regress_aq_none'), aq.drop_queue('consumed');
SET ROLE regress_aq_none;
SELECT regexp_replace(t.error(format('SELECT aq.enqueue(%L, %L)', :'q', '3')), 'temporary_\d+_\d+', 'temporary_N', 'g');
RESET ROLE;
SELECT aq.drop_queue(queue_name, true) FROM aq.queues WHERE temporary AND owner = 'regress_aq_none';
-- a limit for each session
SET ROLE regress_aq_adam;
SELECT count(aq.create_temporary_queue()) FROM generate_series(1, 8);
SELECT t.error('SELECT aq.create_temporary_queue()');
SELECT t.error('SET pgaq.max_temporary_queues = 100');
SET ROLE regress_aq_eve;
SELECT payload FROM aq.dequeue(:'q', max_messages => 10);
-- its owner cannot give it the name that programs of others use, nor more shards
SELECT regexp_replace(t.error(format('SELECT aq.alter_queue(%L, new_name => %L)', :'q', 'orders')), 'temporary_\d+_\d+', 'temporary_N', 'g');
SELECT aq.stop_queue(:'q');
SELECT regexp_replace(t.error(format('SELECT aq.set_shards(%L, 32)', :'q')), 'temporary_\d+_\d+', 'temporary_N', 'g');
SELECT aq.start_queue(:'q');
-- and not longer than it exists
SELECT aq.drop_queue(:'q');
SELECT aq.create_temporary_queue() AS q \gset
RESET ROLE;
SELECT aq.drop_queue(queue_name, true) FROM aq.queues WHERE temporary AND owner = 'regress_aq_adam';
SET pgaq.max_temporary_queues = 0;
SELECT t.error('SELECT aq.create_temporary_queue()');
RESET pgaq.max_temporary_queues;
-- arguments
SELECT t.error('SELECT aq.create_temporary_queue(NULL)');
SELECT t.error('SELECT aq.create_temporary_queue(multiple_consumers => NULL)');
SELECT t.error($$SELECT aq.create_temporary_queue('integer')$$);
-- another queue does not depend on it
SELECT regexp_replace(t.error(format('SELECT aq.create_queue(%L, exception_queue => %L)', 'lasting', :'q')), 'temporary_\d+_\d+', 'temporary_N', 'g');

-- a temporary subscriber of a queue that lasts
SELECT aq.create_queue('news', multiple_consumers => true), aq.grant_queue('news', 'regress_aq_adam', 'subscribe');
SELECT aq.enqueue('news', '0', recipients => '{recipient}') IS NOT NULL;
SET ROLE regress_aq_adam;
SELECT aq.subscribe('news', 'lasts'), aq.subscribe('news', 'ends', 'priority = 1', temporary => true);
RESET ROLE;
SELECT aq.subscribe('news', 'recipient', temporary => true), aq.subscribe('news', 'lasts', if_not_exists => true, temporary => true);
SELECT consumer, kind, temporary FROM aq.subscribers WHERE queue_name = 'news' ORDER BY 1;
-- for its role: it belongs to this session a second time, which is the same; for another role: not
SET ROLE regress_aq_adam;
SELECT aq.subscribe('news', 'ends', if_not_exists => true, temporary => true);
SELECT t.error($$SELECT aq.subscribe('news', 'recipient', if_not_exists => true, temporary => true)$$);
-- subscribed again without temporary, it becomes lasting, for such a role only, and stays so
SELECT t.error($$SELECT aq.subscribe('news', 'recipient', if_not_exists => true)$$);
SELECT aq.subscribe('news', 'ends', if_not_exists => true);
SELECT aq.subscribe('news', 'ends', if_not_exists => true, temporary => true);
RESET ROLE;
SELECT consumer, temporary FROM aq.subscribers WHERE queue_name = 'news' ORDER BY 1;
SELECT aq.unsubscribe('news', 'ends');
SELECT aq.subscribe('news', 'ends');
SELECT consumer, kind, temporary FROM aq.subscribers WHERE queue_name = 'news' ORDER BY 1;
-- removed explicitly, or rolled back, nothing is left
SELECT count(*) FROM aq_internal.temporary t JOIN aq_internal.queue q USING (queue_id) WHERE q.queue_name = 'news';
BEGIN;
SELECT aq.create_temporary_queue() IS NOT NULL, aq.subscribe('news', 'rolled back', temporary => true);
ROLLBACK;
SELECT count(*) FROM aq_internal.temporary t JOIN aq_internal.queue q USING (queue_id) WHERE q.queue_name = 'news';
SELECT aq.drop_queue('news', true);
SELECT aq.drop_queue(queue_name, true) FROM aq.queues WHERE temporary;
SELECT count(*) FROM aq_internal.temporary;
-- a hundred of them, one after the other
CREATE PROCEDURE t.hundred() LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	FOR i IN 1 .. 100 LOOP
		name := aq.create_temporary_queue('aq.jms_message');
		COMMIT;
		IF i % 10 = 0 THEN
			PERFORM aq.enqueue(name, ROW('text', '{}', NULL, NULL, 'reply', NULL)::aq.jms_message);
			COMMIT;
			ASSERT (SELECT (payload).text = 'reply' FROM aq.dequeue(name, NULL::aq.jms_message));
			COMMIT;
		END IF;
		PERFORM aq.drop_queue(name, true);
		COMMIT;
	END LOOP;
END $$;
SELECT (SELECT count(*) FROM pg_class) AS classes, (SELECT count(*) FROM pg_type) AS types, (SELECT count(*) FROM pg_depend) AS depends, (SELECT count(*) FROM pg_shdepend) AS shdepends \gset
CALL t.hundred();
SELECT (SELECT count(*) FROM pg_class) - :classes AS classes, (SELECT count(*) FROM pg_type) - :types AS types, (SELECT count(*) FROM pg_depend) - :depends AS depends,
	(SELECT count(*) FROM pg_shdepend) - :shdepends AS shdepends, (SELECT count(*) FROM aq_internal.temporary) AS rows, (SELECT count(*) FROM aq.queues WHERE temporary) AS queues;
-- and the session keeps nothing of them, nor of queues that it only creates and drops
DO $$
BEGIN
	FOR i IN 1..100 LOOP
		PERFORM aq.create_queue('short' || i);
		COMMIT;
		PERFORM aq.drop_queue('short' || i);
		COMMIT;
	END LOOP;
END $$;
SELECT count(*) < 20 AS few FROM pg_backend_memory_contexts WHERE name = 'pgaq queue';
DROP PROCEDURE t.hundred;
-- a transaction that has made one cannot be prepared
BEGIN;
SELECT aq.create_temporary_queue() IS NOT NULL;
PREPARE TRANSACTION 'temporary';
SELECT aq.drop_queue('lasts');
DROP ROLE regress_aq_none;
DROP ROLE regress_aq_eve;
DROP ROLE regress_aq_adam;
