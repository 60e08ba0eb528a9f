-- Non-persistent queues: their messages are passed to registrations, and are in no store.
-- Procedures, stops and restarts are in cluster/test_notification.py.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_np_ann LOGIN;
CREATE ROLE regress_np_bob;
SELECT aq.create_queue('np', queue_type => 'non_persistent', comment => 'alarms'),
	aq.create_queue('np_topic', 'text', multiple_consumers => true, queue_type => 'non_persistent'), aq.create_queue('np_normal');
SELECT queue_name, queue_type, payload_type, multiple_consumers, shards, max_retries, retry_delay, retention, exception_queue, enqueue_enabled, dequeue_enabled, comment
FROM aq.queues WHERE queue_name LIKE 'np%' ORDER BY 1;

-- settings that do not apply
SELECT t.error($$SELECT aq.create_queue('x', queue_type => 'nonpersistent')$$);
SELECT t.error($$SELECT aq.create_queue('x', queue_type => 'non_persistent', shards => 2)$$);
SELECT t.error($$SELECT aq.create_queue('x', queue_type => 'non_persistent', exception_queue => 'none')$$);
SELECT t.error($$SELECT aq.create_queue('x', queue_type => 'non_persistent', queue_table => 'x')$$);
SELECT t.error($$SELECT aq.create_queue('x', exception_queue => 'np')$$);
SELECT t.error($$SELECT aq.alter_queue('np', max_retries => 1)$$);
SELECT t.error($$SELECT aq.alter_queue('np', retry_delay => '1 second')$$);
SELECT t.error($$SELECT aq.alter_queue('np', retention => '1 second')$$);
SELECT t.error($$SELECT aq.alter_queue('np', exception_queue => 'none')$$);
SELECT t.error($$SELECT aq.alter_queue('np', retry_jitter => 0)$$);
SELECT aq.alter_queue('np', comment => 'all alarms');
SELECT comment FROM aq.queues WHERE queue_name = 'np';

-- what serves a dequeue
SELECT t.error($$SELECT * FROM aq.dequeue('np')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('np', wait => '0')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('np', mode => 'browse')$$);
SELECT t.error($$SELECT * FROM aq.browse('np')$$);
SELECT t.error($$CALL aq.wait('np', '0')$$);
SELECT t.error($$CALL aq.listen(ARRAY['np_normal', 'np'], ARRAY[NULL, NULL]::text[], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.receive('np', NULL, '0')$$);
SELECT t.error($$SELECT aq.cancel('np', gen_random_uuid())$$);
SELECT t.error($$SELECT aq.acknowledge('np', ARRAY[gen_random_uuid()], 1)$$);
SELECT t.error($$SELECT aq.redrive('np')$$);
SELECT t.error($$SELECT aq.purge_queue('np')$$);
SELECT t.error($$SELECT aq.create_propagation('np', 'np_normal')$$);
SELECT t.error($$SELECT aq.create_propagation('np_topic', 'np_normal')$$);

-- what an enqueue cannot have
SELECT t.error($$SELECT aq.enqueue('np', '1', delay => '1 second')$$);
SELECT t.error($$SELECT aq.enqueue('np', '1', run_at => now() + interval '1 hour')$$);
SELECT t.error($$SELECT aq.enqueue_array('np', ARRAY['1'], options => '[{"delay": "1 second"}]')$$);
SELECT t.error($$SELECT aq.enqueue('np', '1', deviation => 'top')$$);
SELECT t.error($$SELECT aq.enqueue('np', '1', delivery_mode => 'buffered')$$);
SELECT t.error($$SELECT aq.enqueue('np', 'a'::bytea)$$);
SELECT t.error($$SELECT aq.enqueue('np_topic', 'a', recipients => ARRAY['me -> np_normal'])$$);
SELECT t.error($$SELECT aq.subscribe('np_topic', '-> np_normal')$$);
SELECT t.error($$SELECT aq.subscribe('np_topic', 'x', delivery_mode => 'buffered')$$);
SELECT t.error($$SELECT aq.enqueue('np_normal', '1', exception_queue => 'np')$$);
SELECT t.error($$SELECT aq.register('np', 'client://', group_time => '1 minute')$$);
-- those that are now
SELECT aq.enqueue('np', '1', delay => '-1 second') IS NOT NULL, aq.enqueue('np', '1', run_at => '2020-01-01') IS NOT NULL;

-- a role that may dequeue can register; the payload is always passed
SELECT aq.grant_queue('np', 'regress_np_ann', 'dequeue'), aq.grant_queue('np', 'regress_np_bob', 'enqueue');
SET ROLE regress_np_bob;
SELECT t.error($$SELECT aq.register('np', 'client://')$$);
SET ROLE regress_np_ann;
SELECT t.error($$SELECT aq.enqueue('np', '1')$$);
SELECT aq.register('np', 'client://') AS first \gset
SELECT aq.register('np', 'client://second', context => 'ctx') AS second \gset
CALL aq.wait(NULL::bigint[], '0');
RESET ROLE;
SET ROLE regress_np_bob;
SELECT aq.enqueue('np', '{"a": 1}', priority => 3, correlation => 'k', sender => 'me', expiration => '1 hour', properties => '{"b": 2}') AS id \gset
-- there is nothing of what was enqueued before
BEGIN;
SELECT aq.enqueue('np', '2') IS NOT NULL;
SAVEPOINT s;
SELECT aq.enqueue('np', '3') IS NOT NULL;
ROLLBACK TO s;
SELECT cardinality(aq.enqueue_array('np', ARRAY['4', NULL, '5'], options => '[{"correlation": "c4"}, {}, {"priority": 0}]'));
COMMIT;
BEGIN;
SELECT aq.enqueue('np', '6') IS NOT NULL;
ROLLBACK;
SET ROLE regress_np_ann;
CALL aq.wait(NULL::bigint[], '1 minute') \gset
SELECT cardinality(:'registration_ids'::bigint[]) > 0;
SELECT namespace, name, consumer, msgids = ARRAY[:'id'::uuid], message_count, convert_from(payload, 'UTF8'), priority, correlation, attempts,
	expires_at - enqueue_time BETWEEN '59 minutes' AND '1 hour', ready_at, sender, original_msgid
FROM aq.notifications(ARRAY[:first]::bigint[], 1);
SELECT convert_from(context, 'UTF8'), convert_from(payload, 'UTF8'), priority, correlation FROM aq.notifications(ARRAY[:second]::bigint[]);
-- a rollback of the program brings them back
BEGIN;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:first]::bigint[]);
ROLLBACK;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:first]::bigint[]);
SELECT * FROM aq.notifications();
CALL aq.wait(NULL::bigint[], '0');
RESET ROLE;

-- nothing is stored, and there are no tables
SELECT count(*) FROM aq.messages WHERE queue_name LIKE 'np%';
SELECT count(*) FROM aq_internal.message_table WHERE queue_id IN (SELECT queue_id FROM aq.queues WHERE queue_name LIKE 'np%');
SELECT enqueued, dequeued, lag FROM aq.metrics() WHERE queue_name = 'np';
SELECT enqueue_transactions FROM aq_internal.queue_traffic('np');

-- expired messages are not passed on
SELECT aq.enqueue('np', '7', expiration => '1 microsecond') IS NOT NULL, aq.enqueue('np', '8', expiration => '1 hour') IS NOT NULL;
SET ROLE regress_np_ann;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:first]::bigint[]);
RESET ROLE;
SELECT count(*) FROM aq_internal.posting WHERE registration_id = :first;
SELECT aq.enqueue('np', '9', expiration => '1 microsecond') IS NOT NULL;
SET ROLE regress_np_ann;
CALL aq.wait(ARRAY[:first]::bigint[], '0');

-- while the queue is stopped for dequeue, they wait; stopped for enqueue, there are none
RESET ROLE;
SELECT count(*) FROM aq.notifications((SELECT array_agg(registration_id) FROM aq.registrations));
SELECT aq.stop_queue('np', enqueue => false);
SELECT aq.enqueue('np', '10') IS NOT NULL;
SET ROLE regress_np_ann;
CALL aq.wait(NULL::bigint[], '0');
SELECT count(*) FROM aq.notifications();
RESET ROLE;
SELECT aq.start_queue('np', enqueue => false);
SELECT aq.stop_queue('np', dequeue => false);
SELECT t.error($$SELECT aq.enqueue('np', '11')$$);
SET ROLE regress_np_ann;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:first]::bigint[]);
RESET ROLE;
SELECT aq.start_queue('np');

-- without the right, there are none any more
SELECT aq.enqueue('np', '12') IS NOT NULL;
SELECT aq.revoke_queue('np', 'regress_np_ann', 'dequeue');
SET ROLE regress_np_ann;
SELECT t.error($$SELECT * FROM aq.notifications()$$);
SELECT t.error($$CALL aq.wait(NULL::bigint[], '0')$$);
RESET ROLE;
SELECT aq.grant_queue('np', 'regress_np_ann', 'dequeue');
SET ROLE regress_np_ann;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:first]::bigint[]);
RESET ROLE;

-- a topic: rules, recipients, a consumer's right; once; the default text of other types
SET datestyle = 'German';
CREATE TYPE t.np_date AS (at date);
SELECT aq.create_queue('np_dates', 't.np_date', queue_type => 'non_persistent');
SELECT aq.register('np_dates', 'client://dates') AS dates \gset
SELECT aq.enqueue('np_dates', ROW(date '2026-05-01')::t.np_date) IS NOT NULL;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:dates]::bigint[]);
RESET datestyle;
SELECT aq.drop_queue('np_dates');
DROP TYPE t.np_date;
SELECT aq.enqueue('np_topic', 'for none');
SELECT aq.subscribe('np_topic', 'all'), aq.subscribe('np_topic', 'urgent', rule => 'priority = 0');
SELECT t.error($$SELECT aq.register('np_topic', 'client://')$$);
SELECT aq.register('np_topic', 'client://', consumer => 'all') AS all \gset
SELECT aq.register('np_topic', 'client://', consumer => 'urgent', once => true) AS urgent \gset
SELECT aq.register('np_topic', 'client://', consumer => 'named') AS named \gset
SELECT aq.enqueue('np_topic', 'a') IS NOT NULL, aq.enqueue('np_topic', 'b', priority => 0) IS NOT NULL, aq.enqueue('np_topic', 'c', priority => 0) IS NOT NULL;
SELECT aq.enqueue('np_topic', 'd', recipients => ARRAY['named']) IS NOT NULL, aq.enqueue('np_topic', NULL::text, recipients => ARRAY['named', 'all']) IS NOT NULL;
SELECT consumer, convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:all, :urgent, :named]::bigint[]);
SELECT count(*) FROM aq.registrations WHERE registration_id = :urgent;
SELECT consumer, enqueued, lag FROM aq.subscribers WHERE queue_name = 'np_topic' ORDER BY 1;

-- a destination of propagation
SELECT aq.create_propagation('np_normal', 'np') IS NOT NULL;
SELECT aq.register('np', 'client://') AS own \gset
SELECT aq.enqueue('np_normal', '"far"', expiration => '1 hour', correlation => 'k2') AS far \gset
CALL aq.wait(ARRAY[:own]::bigint[], '1 minute') \gset
SELECT convert_from(payload, 'UTF8'), correlation, original_msgid = :'far'::uuid FROM aq.notifications(ARRAY[:own]::bigint[]);

-- a dropped queue takes its registrations and their notifications along
SELECT aq.enqueue('np', '13') IS NOT NULL;
SELECT count(*) FROM aq_internal.posting WHERE registration_id = :own;
SELECT aq.drop_queue('np'), aq.drop_queue('np_topic'), aq.drop_queue('np_normal', force => true);
SELECT count(*) FROM aq_internal.posting WHERE registration_id = :own;
SELECT * FROM aq.check();
DROP ROLE regress_np_ann, regress_np_bob;
