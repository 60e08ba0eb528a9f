-- Queue tables sorted by commit_time: savepoints, own dequeues, priorities, topics, ids.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue_table('t.ct', sort_list => 'commit_time'), aq.create_queue_table('t.pct', sort_list => 'priority, commit_time', multiple_consumers => true);
SELECT aq.create_queue('ct', queue_table => 't.ct', retry_delay => '0'), aq.create_queue('pct', queue_table => 't.pct', retry_delay => '0');
SELECT aq.subscribe('pct', 'a'), aq.subscribe('pct', 'b');
BEGIN;
SELECT t.put('ct', 1, 3);
SAVEPOINT s;
SELECT t.put('ct', 4, 5);
ROLLBACK TO s;
SELECT t.put('ct', 6);
SELECT payload FROM aq.dequeue('ct');
COMMIT;
SELECT t.put('ct', 7);
SELECT t.look('ct');
-- committed ones go before those of the running transaction
BEGIN;
SELECT t.put('ct', 8);
SELECT t.look('ct');
SELECT t.drain('ct');
ROLLBACK;
SELECT t.drain('ct');
-- by id, and before another one
BEGIN;
SELECT t.put('ct', 1);
SELECT aq.enqueue('ct', '3') AS id \gset
SELECT aq.enqueue('ct', '2', deviation => 'before', relative_msgid => :'id') IS NOT NULL;
COMMIT;
SELECT t.look('ct');
SELECT payload FROM aq.dequeue('ct', msgid => :'id');
SELECT t.drain('ct');
-- a topic, by priority first
BEGIN;
SELECT aq.enqueue('pct', to_jsonb(p), priority => p) IS NOT NULL FROM unnest('{3,1,2}'::int[]) p;
COMMIT;
SELECT aq.enqueue('pct', '"1b"', priority => 1) IS NOT NULL;
SELECT t.drain('pct', 'a'), t.drain('pct', 'b');
SELECT count(*) FROM aq.messages WHERE queue_name IN ('ct', 'pct');
-- a rolled back dequeue gives back at the place
SELECT t.put('ct', 1, 2);
BEGIN;
SELECT payload FROM aq.dequeue('ct');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('ct', max_messages => 8);
SELECT aq.drop_queue_table('t.ct', true), aq.drop_queue_table('t.pct', true);
