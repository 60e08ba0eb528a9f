-- Conversion of a queue of a queue table to a sharded queue.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue_table('t.convert');
SELECT aq.create_queue('t.old', queue_table => 't.convert', retry_delay => '0');
SELECT t.put('t.old', 1, 3);
SELECT aq.enqueue('t.old', '4', correlation => 'later', delay => '1 hour', properties => '{"a": 1}') AS delayed \gset
BEGIN;
SELECT payload FROM aq.dequeue('t.old');
ROLLBACK;
-- rolled back, nothing has changed
BEGIN;
SELECT aq.convert_queue('t.old');
SELECT t.put('t.old', 99);
SELECT t.look('t.old');
ROLLBACK;
SELECT queue_table, converting FROM aq.queues WHERE queue_name = 't.old';
SELECT t.look('t.old');
-- in the transaction itself it goes on as before; from the commit on new messages are the sharded store's
BEGIN;
SELECT aq.convert_queue('t.old', shards => 2);
SELECT t.put('t.old', 5);
COMMIT;
SELECT queue_table, converting, shards FROM aq.queues WHERE queue_name = 't.old';
SELECT t.put('t.old', 6, 7);
SELECT payload, state, attempts, shard IS NULL AS in_table FROM aq.messages WHERE queue_name = 't.old' ORDER BY payload;
SELECT t.look('t.old');
-- a browse goes on behind any of them
SELECT (SELECT string_agg(payload::text, ' ') FROM aq.browse('t.old', after => b.msgid)) FROM aq.browse('t.old') b;
-- the old ones first, with their attempts; by id each in its place; a rollback gives back to the right place
SELECT payload, attempts FROM aq.dequeue('t.old', max_messages => 2);
BEGIN;
SELECT payload FROM aq.dequeue('t.old', max_messages => 3);
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('t.old', max_messages => 2);
SELECT msgid AS new FROM aq.browse('t.old') WHERE payload = '7' \gset
SELECT payload FROM aq.dequeue('t.old', msgid => :'new');
SELECT payload, correlation, properties FROM aq.dequeue('t.old', msgid => :'delayed');
SELECT payload, attempts FROM aq.dequeue('t.old', max_messages => 10);
-- what is in the sharded store has the limits of the sharded store
SELECT t.error($$SELECT aq.enqueue('t.old', '1', priority => 10)$$);
SELECT t.error($$SELECT aq.enqueue('t.old', '1', deviation => 'top')$$);
SELECT t.error($$SELECT aq.convert_queue('t.old')$$);
-- when the queue table has nothing more of it, it leaves
CREATE PROCEDURE t.until_converted(name text) LANGUAGE plpgsql AS $$
BEGIN
	WHILE (SELECT converting FROM aq.queues WHERE queue_name = name) LOOP
		COMMIT;
		PERFORM pg_sleep(0.01);
	END LOOP;
END $$;
CALL t.until_converted('t.old');
SELECT queue_table, converting, queue_type FROM aq.queues WHERE queue_name = 't.old';
SELECT t.put('t.old', 8);
SELECT t.drain('t.old');
SELECT t.error($$SELECT aq.drop_queue_table('t.convert')$$);
SELECT aq.alter_queue('t.old', exception_queue => 'none');
SELECT aq.drop_queue_table('t.convert');
SELECT t.put('t.old', 9);
SELECT t.drain('t.old');
SELECT aq.drop_queue('t.old');

-- by priority: new ones that are more urgent come first
SELECT aq.create_queue_table('t.convert', sort_list => 'priority, enq_time');
SELECT aq.create_queue('t.old', queue_table => 't.convert', retry_delay => '0');
SELECT count(aq.enqueue('t.old', to_jsonb('old ' || p), priority => p)) FROM unnest('{9,3,5}'::int[]) p;
SELECT aq.convert_queue('t.old');
SELECT count(aq.enqueue('t.old', to_jsonb('new ' || p), priority => p)) FROM unnest('{9,4,5,1}'::int[]) p;
SELECT payload FROM aq.dequeue('t.old', condition => 'priority > 3', max_messages => 2);
SELECT t.drain('t.old');
SELECT aq.drop_queue('t.old', force => true);

-- a topic: consumers, rules, each consumer's own state; retention
SELECT aq.create_queue_table('t.topics', multiple_consumers => true);
SELECT aq.create_queue('t.topic', queue_table => 't.topics', retention => '1 hour', retry_delay => '0');
SELECT aq.subscribe('t.topic', 'a');
SELECT aq.subscribe('t.topic', 'even', rule => 'payload::int % 2 = 0');
SELECT t.put('t.topic', 1, 3);
SELECT t.drain('t.topic', 'even');
SELECT aq.convert_queue('t.topic');
SELECT t.put('t.topic', 4, 5);
SELECT aq.enqueue('t.topic', '6', recipients => '{b}') IS NOT NULL;
SELECT t.look('t.topic', 'a');
SELECT t.drain('t.topic', 'a'), t.drain('t.topic', 'even'), t.drain('t.topic', 'b');
SELECT payload, string_agg(consumer || ' ' || state, ', ' ORDER BY consumer) FROM aq.messages WHERE queue_name = 't.topic' GROUP BY 1 ORDER BY 1;
SELECT aq.unsubscribe('t.topic', 'even');
-- what is retained keeps it in the queue table
SELECT converting FROM aq.queues WHERE queue_name = 't.topic';
SELECT aq.drop_queue('t.topic', force => true);
SELECT count(*) FROM aq.queues WHERE queue_name = 't.topic';

-- NEXT_MESSAGE goes from the old ones to the new ones, and begins again
SELECT aq.create_queue('t.old', queue_table => 't.convert', retry_delay => '0');
SELECT t.put('t.old', 1, 3);
SELECT payload FROM aq.dequeue('t.old', mode => 'browse', navigation => 'first_message');
SELECT aq.convert_queue('t.old');
SELECT t.put('t.old', 4, 5);
SELECT payload FROM aq.dequeue('t.old', mode => 'browse', navigation => 'next_message', max_messages => 2);
SELECT payload FROM aq.dequeue('t.old', mode => 'browse', navigation => 'next_message');
SELECT payload FROM aq.dequeue('t.old', mode => 'browse', navigation => 'next_message');
SELECT payload FROM aq.dequeue('t.old', navigation => 'next_message');
SELECT aq.purge_queue('t.old');
SELECT aq.drop_queue('t.old');

-- what sharded queues do not have
SELECT aq.create_queue_table('t.groups', message_grouping => true);
SELECT aq.create_queue('t.grouped', queue_table => 't.groups', retry_delay => '0');
SELECT aq.create_queue_table('t.commits', sort_list => 'commit_time');
SELECT aq.create_queue('t.by_commit', queue_table => 't.commits', retry_delay => '0');
SELECT aq.create_queue('t.odd', queue_table => 't.convert', max_retries => 256, retry_delay => '0');
SELECT aq.enqueue('t.odd', '1', priority => 42) IS NOT NULL;
SELECT t.error(format('SELECT aq.convert_queue(%L)', q)) FROM unnest('{t.grouped,t.by_commit,t.odd,t.aq$_groups_e,nothing}'::text[]) q;
SELECT t.error($$SELECT aq.convert_queue('t.odd', shards => 0)$$);
SELECT obstacle FROM aq.conversion_obstacles('t.odd');
SELECT aq.purge_queue('t.odd');
SELECT aq.alter_queue('t.odd', max_retries => 255);
SELECT count(*) FROM aq.conversion_obstacles('t.odd');
CREATE ROLE regress_aq_none;
GRANT USAGE ON SCHEMA t TO regress_aq_none;
SET ROLE regress_aq_none;
SELECT t.error($$SELECT aq.convert_queue('t.odd')$$);
RESET ROLE;
REVOKE USAGE ON SCHEMA t FROM regress_aq_none;
DROP ROLE regress_aq_none;

-- as Oracle calls it, with no more rights than the queue's owner has
CREATE ROLE regress_aq_migrator;
GRANT USAGE, CREATE ON SCHEMA t TO regress_aq_migrator;
GRANT EXECUTE ON FUNCTION aq.create_queue, aq.create_queue_table TO regress_aq_migrator;
SET ROLE regress_aq_migrator;
CALL dbms_aqadm.create_queue_table('t.mig_tab', 'JSON');
CALL dbms_aqadm.create_queue('t.mig', 't.mig_tab');
CALL dbms_aqadm.start_queue('t.mig');
SELECT t.put('t.mig', 1);
CALL dbms_aqmigtool.check_migration_to_txeventq('T', 'MIG', NULL);
CALL dbms_aqmigtool.check_migration_to_txeventq('T', 'MIG', NULL, dbms_aqmigtool.current());
SELECT t.error($$CALL dbms_aqmigtool.check_migration_to_txeventq('T', 'MIG', NULL, dbms_aqmigtool.enable_evaluation())$$);
SELECT t.error($$CALL dbms_aqmigtool.init_migration('t', 'mig', mig_mode => dbms_aqmigtool.offline())$$);
SELECT t.error($$CALL dbms_aqmigtool.commit_migration('t', 'mig')$$);
CALL dbms_aqmigtool.init_migration('t', 'mig', mig_mode => dbms_aqmigtool.automatic());
SELECT t.put('t.mig', 2, 3);
CALL dbms_aqmigtool.check_migrated_messages(cqschema => 't', cqname => 'mig', txeventq_migrated_message => NULL, cq_pending_messages => NULL);
CALL dbms_aqmigtool.check_status('t', 'mig', NULL, NULL);
SELECT t.error($$CALL dbms_aqmigtool.commit_migration('t', 'mig')$$);
SELECT t.error($$CALL dbms_aqmigtool.cancel_migration('t', 'mig')$$);
CALL dbms_aqmigtool.recover_migration('t', 'mig', NULL);
SELECT msg_state, user_data FROM t.aq$mig ORDER BY user_data;
RESET ROLE;
SELECT queue_table, sharded, queue_category FROM sys.dba_queues WHERE owner = 'T' AND name = 'MIG';
SET ROLE regress_aq_migrator;
SELECT t.error($$CALL dbms_aqmigtool.purge_queue_messages('t', 'mig', 1)$$);
CALL dbms_aqmigtool.purge_queue_messages('t', 'mig');
CALL dbms_aqmigtool.commit_migration('t', 'mig');
RESET ROLE;
CALL t.until_converted('t.mig');
SET ROLE regress_aq_migrator;
CALL dbms_aqmigtool.check_status('t', 'mig', NULL, NULL);
CALL dbms_aqadm.stop_queue('t.mig');
CALL dbms_aqadm.drop_queue('t.mig');
SELECT to_regclass('t.aq$mig') IS NULL;
CALL dbms_aqadm.drop_queue_table('t.mig_tab');
RESET ROLE;
DROP OWNED BY regress_aq_migrator;
DROP ROLE regress_aq_migrator;
SELECT dbms_aqmigtool.automatic(), dbms_aqmigtool.interactive(), dbms_aqmigtool.offline(), dbms_aqmigtool.only_definition(),
	dbms_aqmigtool.global(), dbms_aqmigtool.session(), dbms_aqmigtool.restore(), dbms_aqmigtool.norestore(), dbms_aqmigtool.q_empty(),
	dbms_aqmigtool.only_cq(), dbms_aqmigtool.only_txeventq(), dbms_aqmigtool.both_q();
SELECT count(aq.drop_queue_table(queue_table, force => true)) FROM aq.queue_tables WHERE queue_table IN ('t.convert', 't.topics', 't.groups', 't.commits', 't.mig_tab');
DROP PROCEDURE t.until_converted;
