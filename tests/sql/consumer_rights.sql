-- Rights on single consumers, the privilege to subscribe, and the notice for a consumer's name that is not known.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_cr_owner;
CREATE ROLE regress_cr_ann;
CREATE ROLE regress_cr_bob;
CREATE ROLE regress_cr_all;
CREATE ROLE regress_cr_none;
CREATE ROLE regress_cr_team;
GRANT regress_cr_ann TO regress_cr_team;
SELECT aq.create_queue('cr', multiple_consumers => true, retry_delay => '0');
SELECT aq.create_queue('cr_single', retry_delay => '0');
SELECT aq.alter_queue('cr', new_owner => 'regress_cr_owner'), aq.alter_queue('cr_single', new_owner => 'regress_cr_owner');

-- one consumer, dequeue and all that goes with it; not the others, and not the rest of the queue
SET ROLE regress_cr_owner;
SELECT aq.subscribe('cr', 'ann'), aq.subscribe('cr', 'bob');
SELECT aq.grant_consumer('cr', 'ann', 'regress_cr_ann');
SELECT aq.grant_queue('cr', 'regress_cr_all', 'dequeue');
SELECT t.put('cr', 1, 4);
SET ROLE regress_cr_ann;
SELECT t.look('cr', 'ann');
SELECT payload FROM aq.dequeue('cr', 'ann');
SELECT payload FROM aq.dequeue('cr', 'ann', wait => '1 minute');
SELECT payload FROM aq.dequeue('cr', 'ann', mode => 'browse', delivery_mode => 'persistent_or_buffered', wait => '1 minute');
CALL aq.wait('cr', 'ann', '0', NULL);
CALL aq.listen(ARRAY['cr'], ARRAY['ann'], '0', NULL, NULL);
CALL aq.receive('cr', 'ann', timeout => '0') \gset
SELECT jsonb_path_query_array(:'messages', '$[*].payload');
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'bob')$$);
SELECT t.error($$SELECT * FROM aq.browse('cr', 'bob')$$);
SELECT t.error($$CALL aq.wait('cr', 'bob', '0', NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['cr', 'cr'], ARRAY['bob', 'ann'], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.receive('cr', 'bob', timeout => '0')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'nobody')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('cr')$$);
SELECT t.error($$SELECT t.put('cr', 5)$$);
SELECT t.error($$SELECT aq.purge_queue('cr', 'ann')$$);
SELECT t.error($$SELECT aq.subscribe('cr', 'x')$$);
SELECT t.error($$SELECT aq.unsubscribe('cr', 'ann')$$);
SELECT t.error($$SELECT aq.grant_consumer('cr', 'ann', 'regress_cr_none')$$);
SELECT t.error($$SELECT aq.grant_queue('cr', 'regress_cr_none', 'dequeue')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('cr_single')$$);
-- the views show the queue, and its own consumer
SELECT queue_name, may_enqueue, may_dequeue, may_subscribe FROM aq.queues WHERE queue_type = 'normal';
SELECT queue_name, consumer, lag FROM aq.subscribers;
SELECT queue_name, consumer FROM aq.metrics();
SELECT queue_name, consumer, payload, state FROM aq.messages WHERE state IN ('READY', 'PROCESSED') AND payload = '4' ORDER BY consumer, payload;
SELECT queue_name, grantee, privilege, consumer FROM aq.privileges;
-- so do Oracle's
SELECT consumer_name FROM sys.all_queue_subscribers;
SELECT name FROM sys.all_dequeue_queues;
-- and dbms_aq
DO $$
DECLARE
	options dbms_aq.dequeue_options_t;
	properties dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
BEGIN
	options.wait := dbms_aq.no_wait();
	options.consumer_name := 'ann';
	CALL dbms_aq.dequeue('cr', options, properties, payload, id);
	RAISE NOTICE 'dbms_aq: %', payload;
	options.consumer_name := 'bob';
	CALL dbms_aq.dequeue('cr', options, properties, payload, id);
EXCEPTION WHEN OTHERS THEN
	RAISE NOTICE '%', sqlerrm;
END $$;
CALL dbms_aq.listen(ARRAY[sys.aq$_agent('ANN', 'cr', NULL)], 0, NULL);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('BOB', 'cr', NULL), sys.aq$_agent('ANN', 'cr', NULL)], 0, NULL)$$);
SELECT t.error(format('CALL dbms_aq.dequeue(%L, dbms_aq.dequeue_options_t(consumer_name => %L, wait => 0, visibility => %s), NULL, NULL::text, NULL)',
	queue, consumer, visibility)) FROM (VALUES ('cr', 'bob'), ('cr', NULL), ('cr_single', NULL)) q (queue, consumer), generate_series(1, 2) visibility;
-- a member has it, too; a role without it sees nothing; the privilege on the queue is for all consumers, as before
SET ROLE regress_cr_team;
SELECT t.look('cr', 'ann');
SET ROLE regress_cr_none;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'ann')$$);
SELECT count(*) FROM aq.queues;
SELECT count(*) FROM aq.privileges;
SET ROLE regress_cr_all;
SELECT t.look('cr', 'ann'), t.look('cr', 'bob');
SELECT consumer FROM aq.subscribers WHERE queue_name = 'cr' ORDER BY 1;

-- by name: before it is a recipient, while it is one, and after
SET ROLE regress_cr_owner;
SELECT aq.grant_consumer('cr', 'reply', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT count(*) FROM aq.dequeue('cr', 'reply');
SELECT consumer FROM aq.subscribers;
SET ROLE regress_cr_owner;
SELECT aq.enqueue('cr', '"answer"', recipients => ARRAY['reply']) IS NOT NULL;
SET ROLE regress_cr_bob;
SELECT consumer FROM aq.subscribers;
SELECT t.drain('cr', 'reply');
-- given twice, it is one; taken back, it is gone, in a session that has used it; a rollback brings it back
SET ROLE regress_cr_owner;
SELECT aq.grant_consumer('cr', 'reply', 'regress_cr_bob'), aq.grant_consumer('cr', 'ann', 'regress_cr_bob');
SELECT queue_name, grantee, privilege, consumer, grantor, is_grantable FROM aq.privileges ORDER BY 1, 2, 3, 4;
BEGIN;
SELECT aq.revoke_consumer('cr', 'reply', 'regress_cr_bob');
SET LOCAL ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'reply')$$);
ROLLBACK;
SET ROLE regress_cr_bob;
SELECT count(*) FROM aq.dequeue('cr', 'reply');
SET ROLE regress_cr_owner;
BEGIN;
SAVEPOINT s;
SELECT aq.revoke_consumer('cr', 'reply', 'regress_cr_bob');
ROLLBACK TO s;
SET LOCAL ROLE regress_cr_bob;
SELECT count(*) FROM aq.dequeue('cr', 'reply');
COMMIT;
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'reply', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'reply')$$);
SELECT t.look('cr', 'ann');
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'ann', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'ann')$$);
-- taking back what was never given is no error
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'ann', 'regress_cr_bob');
-- PUBLIC
SELECT aq.grant_consumer('cr', 'ann', NULL);
SET ROLE regress_cr_none;
SELECT t.look('cr', 'ann');
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'bob')$$);
SELECT queue_name, grantee, privilege, consumer FROM aq.privileges;
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'ann', NULL);
SET ROLE regress_cr_none;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'ann')$$);
-- ... by its name, as GRANT takes it; it is one grant
SET ROLE regress_cr_owner;
SELECT aq.grant_consumer('cr', 'ann', 'public'), aq.grant_consumer('cr', 'ann', 'PUBLIC'), aq.grant_consumer('cr', 'ann', NULL);
SELECT aq.grant_queue('cr_single', 'Public', 'dequeue');
SET ROLE regress_cr_none;
SELECT queue_name, grantee, privilege, consumer FROM aq.privileges ORDER BY 1;
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'ann', 'public'), aq.revoke_queue('cr_single', 'public');
SET ROLE regress_cr_none;
SELECT count(*) FROM aq.privileges;
-- a role's name is taken as it is; what is no role is not PUBLIC
RESET ROLE;
CREATE ROLE "Regress CR App";
SET ROLE regress_cr_owner;
SELECT aq.grant_consumer('cr', 'x', 'Regress CR App'), aq.grant_queue('cr_single', 'Regress CR App', 'enqueue');
SET ROLE "Regress CR App";
SELECT queue_name, grantee, privilege, consumer FROM aq.privileges ORDER BY 1;
SELECT t.error($$SELECT * FROM aq.dequeue('cr_single')$$);
SET ROLE regress_cr_owner;
SELECT aq.revoke_consumer('cr', 'x', 'Regress CR App'), aq.revoke_queue('cr_single', 'Regress CR App');
SELECT count(*) FROM aq.privileges WHERE grantee = '"Regress CR App"'::regrole;
RESET ROLE;
DROP ROLE "Regress CR App";
SET ROLE regress_cr_owner;
SELECT grantee, t.error(format('SELECT aq.grant_consumer(''cr'', ''ann'', %L)', grantee)), t.error(format('SELECT aq.revoke_queue(''cr'', %L)', grantee))
FROM unnest(ARRAY['-', '0', '', '"Public"', '"regress_cr_none"', 'Regress_CR_none', 'no_such_role', 'two names', '4294967295']) grantee;
-- nonsense
SET ROLE regress_cr_owner;
SELECT t.error($$SELECT aq.grant_consumer('cr_single', 'ann', 'regress_cr_ann')$$);
SELECT t.error($$SELECT aq.grant_consumer('cr', '', 'regress_cr_ann')$$);
SELECT t.error($$SELECT aq.grant_consumer('cr', NULL, 'regress_cr_ann')$$);
SELECT t.error($$SELECT aq.grant_consumer('no such queue', 'ann', 'regress_cr_ann')$$);

-- subscribing is a privilege of its own
SET ROLE regress_cr_ann;
SELECT t.error($$SELECT aq.subscribe('cr', 'mine')$$);
SET ROLE regress_cr_owner;
SELECT aq.grant_queue('cr', 'regress_cr_bob', 'subscribe');
SET ROLE regress_cr_bob;
SELECT queue_name, may_enqueue, may_dequeue, may_subscribe FROM aq.queues WHERE queue_type = 'normal';
SELECT aq.subscribe('cr', 'mine', 'current_user = ''regress_cr_bob'''), aq.subscribe('cr', 'mine too');
SELECT t.error($$SELECT aq.subscribe('cr', 'ann')$$);
SELECT t.error($$SELECT aq.alter_subscriber('cr', 'ann', 'false')$$);
SELECT t.error($$SELECT aq.unsubscribe('cr', 'ann')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'ann')$$);
SELECT t.error($$SELECT t.put('cr', 5)$$);
SELECT t.error($$SELECT aq.drop_queue('cr')$$);
SELECT t.error($$SELECT aq.grant_consumer('cr', 'mine', 'regress_cr_none')$$);
RESET ROLE;
-- its rules run with its privileges, whoever enqueues
SELECT t.put('cr', 6), t.rule_errors('cr');
SET ROLE regress_cr_bob;
SELECT t.drain('cr', 'mine'), t.drain('cr', 'mine too');
SELECT aq.alter_subscriber('cr', 'mine', 'current_user <> ''regress_cr_bob''');
SELECT consumer, owner, rule_role FROM aq.subscribers WHERE queue_name = 'cr' ORDER BY 1;
RESET ROLE;
SELECT t.put('cr', 7);
SET ROLE regress_cr_bob;
SELECT t.drain('cr', 'mine'), t.drain('cr', 'mine too');
SELECT privilege, consumer FROM aq.privileges ORDER BY 1, 2;
-- another one's rule is the owner's to change, and then runs as the owner; the right to dequeue stays
SET ROLE regress_cr_owner;
SELECT aq.alter_subscriber('cr', 'mine', 'current_user = ''regress_cr_owner''');
RESET ROLE;
SELECT t.put('cr', 8);
SET ROLE regress_cr_bob;
SELECT t.drain('cr', 'mine');
-- not a name that is used by a recipient or given to another role; but one that is its own already
SET ROLE regress_cr_owner;
SELECT aq.enqueue('cr', '"private"', recipients => ARRAY['guest']) IS NOT NULL, aq.grant_consumer('cr', 'later', 'regress_cr_ann');
SELECT aq.grant_consumer('cr', 'granted', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT aq.subscribe('cr', 'guest')$$);
SELECT t.error($$SELECT aq.subscribe('cr', 'later')$$);
SELECT aq.subscribe('cr', 'granted');
-- with the subscriber goes the right that came with it, not one that was granted before
SELECT aq.unsubscribe('cr', 'mine'), aq.unsubscribe('cr', 'granted');
SELECT privilege, consumer FROM aq.privileges ORDER BY 1, 2;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'mine')$$);
-- without the privilege it keeps the right to dequeue, and nothing else
SET ROLE regress_cr_owner;
SELECT aq.revoke_queue('cr', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT aq.unsubscribe('cr', 'mine too')$$);
SELECT t.error($$SELECT aq.subscribe('cr', 'new')$$);
SELECT t.drain('cr', 'mine too');
SET ROLE regress_cr_owner;
SELECT aq.unsubscribe('cr', 'mine too'), aq.revoke_consumer('cr', 'granted', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT count(*) FROM aq.queues;
-- all is all, and a list is each of it; Oracle's ALL is enqueue and dequeue
SET ROLE regress_cr_owner;
SELECT aq.grant_queue('cr', 'regress_cr_bob'), aq.grant_queue('cr_single', 'regress_cr_bob', ' subscribe,Enqueue ');
SELECT t.error($$SELECT aq.grant_queue('cr', 'regress_cr_bob', 'enqueue, ')$$);
SET ROLE regress_cr_bob;
SELECT queue_name, privilege FROM aq.privileges ORDER BY 1, 2;
SET ROLE regress_cr_owner;
SELECT aq.revoke_queue('cr', 'regress_cr_bob'), aq.revoke_queue('cr_single', 'regress_cr_bob');
CALL dbms_aqadm.grant_queue_privilege('ALL', 'cr', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT queue_name, privilege FROM aq.privileges ORDER BY 1, 2;
SET ROLE regress_cr_owner;
CALL dbms_aqadm.revoke_queue_privilege('all', 'cr', 'regress_cr_bob');
SELECT t.error($$CALL dbms_aqadm.grant_queue_privilege('SUBSCRIBE', 'cr', 'regress_cr_bob')$$);
SELECT t.error($$CALL dbms_aqadm.revoke_queue_privilege('ENQUEUE, DEQUEUE', 'cr', 'regress_cr_bob')$$);
-- a right of the owner stays, also while the view has no ACL
RESET ROLE;
SELECT aq.create_queue('cr_own', multiple_consumers => true, retry_delay => '0');
SELECT aq.grant_consumer('cr_own', 'a', quote_ident(current_user)), aq.grant_consumer('cr_own', 'b', quote_ident(current_user));
SELECT consumer FROM aq_internal.consumer_grant JOIN aq_internal.queue USING (queue_id) WHERE queue_name = 'cr_own' ORDER BY 1;
SELECT aq.drop_queue('cr_own');
SET ROLE regress_cr_owner;

-- DROP ROLE is refused, DROP OWNED takes the rights, and none comes back with another
RESET ROLE;
SELECT aq.grant_consumer('cr', 'bob', 'regress_cr_bob');
SELECT split_part(t.error('DROP ROLE regress_cr_bob'), ' | ', 2);
DROP OWNED BY regress_cr_bob;
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'bob')$$);
RESET ROLE;
SELECT aq.grant_consumer('cr', 'other', 'regress_cr_bob');
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'bob')$$);
RESET ROLE;
-- a right is there once; only roles that do not exist any more can have it several times, until the next grant
SELECT split_part(t.error('INSERT INTO aq_internal.consumer_grant TABLE aq_internal.consumer_grant'), ' | ', 2);
SELECT aq.grant_consumer('cr', 'all', 'public');
SELECT split_part(t.error($$INSERT INTO aq_internal.consumer_grant SELECT * FROM aq_internal.consumer_grant WHERE consumer = 'all'$$), ' | ', 2);
INSERT INTO aq_internal.consumer_grant SELECT queue_id, 'all', '', false FROM aq_internal.queue, generate_series(1, 2) WHERE queue_name = 'cr';
SELECT count(*), count(role) FROM aq_internal.consumer_grant WHERE consumer = 'all';
SELECT aq.revoke_consumer('cr', 'all', 'public'), aq.grant_consumer('cr', 'other', 'regress_cr_bob');
SELECT count(*) FROM aq_internal.consumer_grant WHERE consumer = 'all';
-- not even as a member of a role that has one
-- (DROP OWNED comes last: each grant removes the rows of rights that are lost)
SELECT aq.grant_consumer('cr', 'team', 'regress_cr_team');
GRANT regress_cr_team TO regress_cr_bob;
SELECT aq.grant_consumer('cr', 'bob', 'regress_cr_bob');
DROP OWNED BY regress_cr_bob;
SET ROLE regress_cr_bob;
SELECT t.error($$SELECT * FROM aq.dequeue('cr', 'bob')$$);
SELECT count(*) FROM aq.dequeue('cr', 'team');
RESET ROLE;
REVOKE regress_cr_team FROM regress_cr_bob;
-- a new owner
SELECT aq.alter_queue('cr', new_owner => 'regress_cr_team');
SET ROLE regress_cr_ann;
SELECT t.look('cr', 'ann');
RESET ROLE;
SELECT aq.alter_queue('cr', new_owner => 'regress_cr_owner');
SET ROLE regress_cr_ann;
SELECT t.look('cr', 'ann');

-- a name that is not known: a notice, once, and none for names that are meant
SET ROLE regress_cr_owner;
SELECT count(*) FROM aq.dequeue('cr', 'Ann');
SELECT count(*) FROM aq.dequeue('cr', 'Ann');
CALL aq.wait('cr', 'Ann', '0', NULL);
CALL aq.wait('cr', 'an', '0', NULL);
CALL aq.listen(ARRAY['cr', 'cr'], ARRAY['amn', 'ann'], '0', NULL, NULL);
SELECT count(*) FROM aq.browse('cr', 'ANN');
SELECT count(*) FROM aq.dequeue('cr', 'later');
SELECT count(*) FROM aq.dequeue('cr', 'guest');
SELECT count(*) FROM aq.dequeue('cr_single');
-- and no more of them than are remembered
SET client_min_messages = error;
SELECT sum((SELECT count(*) FROM aq.dequeue('cr', 'name ' || n))) FROM generate_series(1, 40) n;
RESET client_min_messages;
SELECT count(*) FROM aq.dequeue('cr', 'one more');

-- all goes with the queue
RESET ROLE;
SELECT aq.drop_queue('cr', true), aq.drop_queue('cr_single', true);
SELECT count(*) FROM aq_internal.consumer_grant;
DROP ROLE regress_cr_owner, regress_cr_ann, regress_cr_bob, regress_cr_all, regress_cr_none, regress_cr_team;
