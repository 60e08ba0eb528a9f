-- aq.register, aq.unregister and aq.post: options, errors, privileges, and what a procedure gets.
-- The calls themselves are in cluster/test_notification.py.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_n_ann LOGIN;
CREATE ROLE regress_n_bob LOGIN;
CREATE ROLE regress_n_group;
CREATE SCHEMA n;
GRANT ALL ON SCHEMA n TO regress_n_ann, regress_n_bob, regress_n_group;
SELECT aq.create_queue('n'), aq.create_queue('n_topic', multiple_consumers => true), aq.create_queue('n_results');
SELECT aq.subscribe('n_topic', 'c');
SELECT aq.grant_queue('n', 'regress_n_ann', 'dequeue'), aq.grant_queue('n_topic', 'regress_n_ann', 'dequeue'), aq.grant_queue('n_results', 'regress_n_ann', 'enqueue');
SELECT aq.grant_queue('n', 'regress_n_group', 'dequeue');
CREATE PROCEDURE n.tell(n aq.notification) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.enqueue('n_results', jsonb_build_object('namespace', n.namespace, 'name', n.name, 'consumer', n.consumer, 'messages', cardinality(n.msgids),
		'count', n.message_count, 'context', convert_from(n.context, 'UTF8'), 'payload', convert_from(n.payload, 'UTF8'), 'priority', n.priority,
		'correlation', n.correlation, 'attempts', n.attempts, 'sender', n.sender, 'role', current_user));
END $$;
CREATE PROCEDURE n.hidden(n aq.notification) LANGUAGE sql AS $$ SELECT $$;
REVOKE EXECUTE ON PROCEDURE n.hidden FROM PUBLIC;
CREATE PROCEDURE n.other(n text) LANGUAGE sql AS $$ SELECT $$;
CREATE FUNCTION n.function(n aq.notification) RETURNS void LANGUAGE sql AS $$ SELECT $$;
CREATE PROCEDURE n."Odd name"(n aq.notification) LANGUAGE sql AS $$ SELECT $$;

-- errors
SET ROLE regress_n_ann;
SELECT t.error($$SELECT aq.register(NULL, 'plsql://n.tell')$$);
SELECT t.error($$SELECT aq.register('missing', 'plsql://n.tell')$$);
SELECT t.error($$SELECT aq.register('n_results', 'plsql://n.tell')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', consumer => 'c')$$);
SELECT t.error($$SELECT aq.register('n_topic', 'plsql://n.tell')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', namespace => 'x')$$);
SELECT t.error($$SELECT aq.register('', 'plsql://n.tell', namespace => 'anonymous')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', consumer => 'c', namespace => 'anonymous')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', timeout => '1 millisecond')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', group_time => '-1 second')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', group_time => '1 second', group_type => 'x')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', group_time => '1 second', group_repeat => 0)$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', group_time => '1 second', namespace => 'anonymous')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell', reliable => NULL)$$);
SELECT t.error($$SELECT aq.register('n', 'n.tell')$$);
SELECT t.error($$SELECT aq.register('n', 'ftp://example.com')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://tell')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell?PR=1')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell?PR=2')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.missing')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://missing.tell')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.other')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.function')$$);
SELECT t.error($$SELECT aq.register('n', 'plsql://n.hidden')$$);
SELECT left(t.error($$SELECT aq.register('n', 'plsql://' || repeat('x', 1000))$$), 60);
SELECT t.error($$SELECT aq.unregister(NULL)$$);
SELECT t.error($$SELECT aq.unregister(0)$$);
SELECT t.error($$SELECT aq.post('news')$$);
SET ROLE regress_n_group;
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell')$$);
RESET ROLE;
SELECT t.error($$SELECT aq.post(NULL)$$);
BEGIN READ ONLY;
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell')$$);
SELECT t.error($$SELECT aq.post('news')$$);
ROLLBACK;

-- the view: own registrations only; registering again replaces
SET ROLE regress_n_ann;
SELECT aq.register('n_topic', 'plsql://N."Odd name"?PR=0', consumer => 'c', context => 'secret', once => true, reliable => false, timeout => '1 hour') AS first \gset
SELECT aq.register('n_topic', 'plsql://N."Odd name"?PR=0', consumer => 'c', context => 'secret', group_time => '1 minute', group_type => 'last', group_repeat => 3) = :first;
SELECT role, namespace, name, consumer, callback, convert_from(context, 'UTF8'), reliable, once, with_payload, expires_at, group_time, group_type,
	group_start IS NULL, groups_left, status, failures, last_error FROM aq.registrations;
RESET ROLE;
SET ROLE regress_n_bob;
SELECT count(*) FROM aq.registrations;
SELECT replace(t.error(format($$SELECT aq.unregister(%s)$$, :first)), ' ' || :first || ' ', ' N ');
RESET ROLE;
SET ROLE regress_n_bob;
SELECT t.error($$SELECT count(*) FROM aq_internal.registration$$);
RESET ROLE;
-- the owner of the queue can end it
SELECT aq.alter_queue('n_topic', new_owner => 'regress_n_bob');
SET ROLE regress_n_bob;
SELECT aq.unregister(:first);
RESET ROLE;
SELECT count(*) FROM aq.registrations;

-- a rollback, also to a savepoint
BEGIN;
SELECT aq.register('n', 'plsql://n.tell') > 0;
SAVEPOINT s;
SELECT aq.register('news', 'plsql://n.tell', namespace => 'anonymous') > 0;
ROLLBACK TO s;
SELECT count(*) FROM aq.registrations;
ROLLBACK;
SELECT count(*) FROM aq.registrations;

-- the maximum
BEGIN;
SELECT count(aq.register('n' || i, 'plsql://n.tell', namespace => 'anonymous')) FROM generate_series(1, 1024) i;
SELECT t.error($$SELECT aq.register('n', 'plsql://n.tell')$$);
ROLLBACK;

-- what a procedure gets
SET ROLE regress_n_ann;
SELECT aq.register('n', 'plsql://n.tell', context => 'of n', with_payload => true) > 0, aq.register('news', 'plsql://n.tell', namespace => 'anonymous') > 0;
RESET ROLE;
SELECT aq.enqueue('n', '{"a": 1}', priority => 3, correlation => 'corr', sender => 'me') IS NOT NULL;
CALL aq.wait('n_results', '1 minute');
SELECT payload FROM aq.dequeue('n_results');
SELECT aq.post('news', 'posted'), aq.post('nobody', 'posted');
CALL aq.wait('n_results', '1 minute');
SELECT payload FROM aq.dequeue('n_results');

-- addresses: the notification is enqueued for pgaq notify
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
SELECT aq.create_queue('pgaq_outgoing', multiple_consumers => true);
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
SELECT aq.drop_queue('pgaq_outgoing');
SELECT aq.create_queue('pgaq_outgoing', 'bytea');
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
SELECT aq.drop_queue('pgaq_outgoing');
SELECT aq.create_queue('pgaq_outgoing');
SELECT aq.grant_queue('pgaq_outgoing', 'regress_n_ann', 'enqueue'), aq.alter_queue('pgaq_outgoing', new_owner => 'regress_n_bob');
SET ROLE regress_n_ann;
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
RESET ROLE;
SELECT aq.alter_queue('pgaq_outgoing', new_owner => current_user::regrole), aq.revoke_queue('pgaq_outgoing', 'regress_n_ann', 'enqueue');
SET ROLE regress_n_ann;
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
RESET ROLE;
SELECT aq.grant_queue('pgaq_outgoing', 'regress_n_ann', 'enqueue'), aq.grant_queue('pgaq_outgoing', 'regress_n_group', 'enqueue');
SET ROLE regress_n_group;
SELECT t.error($$SELECT aq.register('n', 'https://example.com/')$$);
SET ROLE regress_n_ann;
SELECT t.error(format('SELECT aq.register(%L, %L)', 'n', address)) FROM unnest(ARRAY['https://', 'http:///', 'https:example.com', 'https://example.com/a b',
	E'https://example.com/\n', 'mailto:', 'mailto:ann', 'mailto://ann@example.com?PR=1', 'mailto:ann@example.com?cc=bob']) address;
SELECT t.error($$CALL aq.send_notification(NULL)$$);
SELECT t.error(format($$CALL aq.send_notification(ROW(%s, 'queue', 'n', NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::aq.notification)$$,
	registration_id)) FROM aq.registrations LIMIT 1;
SELECT aq.unregister(registration_id) FROM aq.registrations;
SELECT aq.register('n', 'https://example.com/n?PR=1', with_payload => true, context => 'c', once => true) AS id \gset
RESET ROLE;
CREATE FUNCTION n.sent(id bigint) RETURNS TABLE (address text, subject text, body text) LANGUAGE sql AS $$
	SELECT payload->>'to', payload->>'subject', CASE jsonb_typeof(payload->'body') WHEN 'string' THEN payload->>'body'
		ELSE (jsonb_set((payload->'body') - 'enqueue_time', '{msgids}', to_jsonb(jsonb_array_length(payload->'body'->'msgids')))
			|| jsonb_build_object('registration_id', (payload->'body'->'registration_id')::bigint - id))::text END
	FROM aq.dequeue('pgaq_outgoing')
$$;
CALL aq.wait('pgaq_outgoing', '1 minute');
SELECT * FROM n.sent(:id);
SELECT aq.register('news', 'MAILTO://ann@example.com?PR=0', namespace => 'anonymous') AS id \gset
SELECT aq.post('news', 'posted');
CALL aq.wait('pgaq_outgoing', '1 minute');
SELECT address, subject, replace(body, :'id', 'N') FROM n.sent(:id);
SELECT aq.unregister(:id), aq.drop_queue('pgaq_outgoing', force => true);

-- a dropped queue takes its registrations along
SELECT aq.drop_queue('n', force => true), aq.drop_queue('n_topic', force => true), aq.drop_queue('n_results', force => true);
SELECT namespace, name FROM aq.registrations;
SELECT aq.unregister(registration_id) FROM aq.registrations;
DROP OWNED BY regress_n_ann, regress_n_bob, regress_n_group;
DROP SCHEMA n CASCADE;
DROP ROLE regress_n_ann, regress_n_bob, regress_n_group;
