-- aq.wait on registrations and aq.notifications: programs that wait for notifications.
-- Waits that sleep are in cluster/test_notification_client.py.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_c_ann;
CREATE ROLE regress_c_bob;
SELECT aq.create_queue('c', retry_delay => '0'), aq.create_queue('c_topic', multiple_consumers => true);
SELECT aq.subscribe('c_topic', 'x'), aq.subscribe('c_topic', 'y');
SELECT aq.grant_queue('c', 'regress_c_ann', 'dequeue'), aq.grant_queue('c_topic', 'regress_c_ann', 'dequeue'), aq.grant_queue('c', 'regress_c_bob', 'dequeue');

-- a role that cannot log in can register; the callback has no procedure
SET ROLE regress_c_ann;
SELECT aq.register('c', NULL, with_payload => true, context => 'ctx') AS c \gset
SELECT aq.register('c', 'client://second') AS second \gset
SELECT aq.register('c_topic', 'client://', consumer => 'x') AS x \gset
SELECT aq.register('c_topic', 'client://', consumer => 'y', once => true) AS y \gset
SELECT aq.register('news', 'client://', namespace => 'anonymous') AS news \gset
SELECT name, consumer, callback, status FROM aq.registrations ORDER BY registration_id;
SELECT aq.register('c', NULL) = :c;
SELECT aq.register('c', NULL, with_payload => true, context => 'ctx') = :c;

-- nothing yet
CALL aq.wait(ARRAY[:c, :x]::bigint[], '0');
CALL aq.wait(NULL::bigint[], '0');
SELECT * FROM aq.notifications();

-- messages: each registration has its own
RESET ROLE;
SELECT aq.enqueue('c', '{"a": 1}', priority => 3, correlation => 'k', sender => 'me') IS NOT NULL, aq.enqueue('c', '2') IS NOT NULL, aq.enqueue('c_topic', '3') IS NOT NULL;
SELECT aq.post('news', 'posted'), aq.post('news', NULL);
SET ROLE regress_c_ann;
CALL aq.wait(ARRAY[:c, :x, :news]::bigint[], '1 minute') \gset
SELECT cardinality(:'registration_ids'::bigint[]) > 0;
-- without a timeout, all are looked at
CALL aq.wait(ARRAY[:c, :x, :news]::bigint[], '0') \gset
SELECT :'registration_ids'::bigint[] = ARRAY[:c, :x, :news]::bigint[];
CALL aq.wait(NULL::bigint[], '0') \gset
SELECT :'registration_ids'::bigint[] = ARRAY[:c, :second, :x, :y, :news]::bigint[];
SELECT namespace, name, consumer, cardinality(msgids), message_count, convert_from(context, 'UTF8'), convert_from(payload, 'UTF8'), priority, correlation, attempts, sender
FROM aq.notifications(ARRAY[:c]::bigint[]);
SELECT count(*) FROM aq.notifications(ARRAY[:c]::bigint[]);
-- at most so many, and in the order of the registrations
SELECT registration_id = :second, name, consumer FROM aq.notifications(max_notifications => 1);
SELECT name, consumer, convert_from(payload, 'UTF8') FROM aq.notifications(max_notifications => 3);
SELECT name, consumer, convert_from(payload, 'UTF8') FROM aq.notifications();
-- once: the registration has ended
SELECT name, consumer, notifications FROM aq.registrations ORDER BY registration_id;
CALL aq.wait(NULL::bigint[], '0');

-- a rollback brings them back, also to a savepoint, and also after a wait that found nothing
RESET ROLE;
SELECT aq.enqueue('c', '4') IS NOT NULL;
SET ROLE regress_c_ann;
BEGIN;
SELECT count(*) FROM aq.notifications(ARRAY[:c]::bigint[]);
CALL aq.wait(ARRAY[:c]::bigint[], '0');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT count(*) FROM aq.notifications(ARRAY[:c]::bigint[]);
CALL aq.wait(ARRAY[:c]::bigint[], '0');
ROLLBACK TO s;
CALL aq.wait(ARRAY[:c]::bigint[], '0') \gset
SELECT :'registration_ids'::bigint[] = ARRAY[:c]::bigint[];
COMMIT;
SELECT convert_from(payload, 'UTF8') FROM aq.notifications(ARRAY[:c]::bigint[]);

-- after a failed attempt to dequeue it, a message is new again
BEGIN;
SELECT payload FROM aq.dequeue('c', condition => 'payload = ''4''::jsonb');
ROLLBACK;
CALL aq.wait(ARRAY[:c]::bigint[], '1 minute') \gset
SELECT convert_from(payload, 'UTF8'), attempts FROM aq.notifications(ARRAY[:c]::bigint[]);
-- what is not in the queue any more is forgotten
SELECT count(*) FROM aq.dequeue('c', max_messages => 10);
SELECT count(*) FROM aq.dequeue('c', max_messages => 10);
RESET ROLE;
SELECT aq.enqueue('c', '5') IS NOT NULL;
SELECT count(*) FROM aq.notifications(ARRAY[:c, :second]::bigint[]);
SELECT count(*) FROM aq_internal.notified WHERE registration_id = :c;

-- a stopped queue has none
SELECT aq.enqueue('c', '6') IS NOT NULL;
SELECT aq.stop_queue('c', dequeue => true);
CALL aq.wait(ARRAY[:c]::bigint[], '0');
SELECT aq.start_queue('c');
CALL aq.wait(ARRAY[:c]::bigint[], '0') \gset
SELECT :'registration_ids'::bigint[] = ARRAY[:c]::bigint[];

-- errors and privileges: others' registrations, and those with a procedure
SELECT t.error($$CALL aq.wait(ARRAY[0]::bigint[])$$);
SELECT t.error($$CALL aq.wait(ARRAY[NULL]::bigint[])$$);
SELECT t.error($$SELECT aq.notifications(ARRAY[0]::bigint[])$$);
SELECT t.error($$SELECT aq.notifications(max_notifications => 0)$$);
SELECT t.error($$SELECT aq.notifications(max_notifications => NULL)$$);
SELECT t.error($$SELECT aq.register('c', 'client:/x')$$);
SET ROLE regress_c_bob;
SELECT replace(t.error(format('CALL aq.wait(ARRAY[%s]::bigint[])', :c)), ' ' || :c || ' ', ' N ');
SELECT replace(t.error(format('SELECT aq.notifications(ARRAY[%s]::bigint[])', :c)), ' ' || :c || ' ', ' N ');
CALL aq.wait(NULL::bigint[], '0');
RESET ROLE;
SELECT aq.revoke_queue('c', 'regress_c_ann', 'dequeue');
SET ROLE regress_c_ann;
SELECT t.error(format('CALL aq.wait(ARRAY[%s]::bigint[])', :c));
SELECT t.error(format('SELECT aq.notifications(ARRAY[%s]::bigint[])', :c));
RESET ROLE;
BEGIN READ ONLY;
SELECT t.error('SELECT aq.notifications()');
CALL aq.wait(NULL::bigint[], '0');
ROLLBACK;

SELECT aq.drop_queue('c', force => true), aq.drop_queue('c_topic', force => true);
SELECT aq.unregister(registration_id) FROM aq.registrations;
DROP OWNED BY regress_c_ann, regress_c_bob;
DROP ROLE regress_c_ann, regress_c_bob;
