-- Defaults of a queue: what a message has that is enqueued without a priority, a delay or an expiration.
\pset format unaligned
\pset tuples_only on
CREATE VIEW t.qd AS
SELECT queue_name, payload, priority, date_trunc('minute', ready_at - enqueue_time + '30 s') AS delay,
	date_trunc('minute', justify_hours(expires_at - coalesce(ready_at, enqueue_time) + '30 s')) AS expiration
FROM aq.messages WHERE queue_name LIKE 'qd%' AND state IN ('READY', 'WAITING') ORDER BY 1, 2;

SELECT aq.create_queue('qd_none');
SELECT aq.create_queue('qd', default_priority => 4, default_delay => '1 hour', default_expiration => '2 days');
SELECT queue_name, default_priority, default_delay, default_expiration FROM aq.queues WHERE queue_name LIKE 'qd%' ORDER BY 1;

-- what a call says goes first; a time in the past and a delay of 0 are said
SELECT count(aq.enqueue('qd_none', '1'));
SELECT count(aq.enqueue('qd', '10')), count(aq.enqueue('qd', jsonb => '11', priority => 0)), count(aq.enqueue('qd', '12'::jsonb, delay => '0')),
	count(aq.enqueue('qd', '13', run_at => now() - interval '1 s')), count(aq.enqueue('qd', '14', expiration => '5 minutes')),
	count(aq.enqueue('qd', '15', priority => 1, delay => '3 minutes', expiration => '5 minutes')),
	count(aq.enqueue('qd', '16', visibility => 'immediate'));
SELECT cardinality(aq.enqueue_array('qd', ARRAY['20', '21', '22', '23'], priority => 2,
	options => '[{}, {"priority": 3}, {"delay": "0"}, {"expiration": "5 minutes"}]'));
SELECT cardinality(aq.enqueue_array('qd', ARRAY['24', '25'], options => '[null, {"priority": 1}]'));
SELECT * FROM t.qd;
SELECT aq.purge_queue('qd');

-- Jakarta Messaging says what each message has, and its values are not replaced; so does what is put back or moved
SELECT cardinality(aq_jms.enqueue('qd', ARRAY['30']));
SELECT aq.alter_queue('qd', default_delay => '0', max_retries => 0);
SELECT aq.enqueue('qd', '31', priority => 9) AS id \gset
CALL t.fail_attempts('qd', ARRAY[:'id'::uuid]);
SELECT payload, priority FROM aq.dequeue('qd_exceptions', mode => 'browse', wait => '60 s');
SELECT aq.redrive('qd');
SELECT * FROM t.qd WHERE queue_name = 'qd';
SELECT aq.purge_queue('qd');

-- changed for the messages enqueued from then on, and removed
SELECT aq.alter_queue('qd', default_priority => 0);
SELECT count(aq.enqueue('qd', '40'));
SELECT aq.alter_queue('qd', default_priority => -1, default_expiration => '-1');
SELECT default_priority, default_delay, default_expiration FROM aq.queues WHERE queue_name = 'qd';
SELECT count(aq.enqueue('qd', '41'));
SELECT * FROM t.qd WHERE queue_name = 'qd';

-- a rule sees the priority that the message gets
SELECT aq.create_queue('qd_topic', multiple_consumers => true, default_priority => 7), aq.subscribe('qd_topic', 'low', 'priority > 5');
SELECT count(aq.enqueue('qd_topic', '50')), count(aq.enqueue('qd_topic', '51', priority => 1));

-- messages of a schedule, and buffered ones
SELECT aq.alter_queue('qd_topic', default_expiration => '1 hour');
SELECT aq.schedule('qd_tick', 'qd_topic', '"tick"'::text, every => '1 second') IS NOT NULL;
SELECT msgid IS NOT NULL AS done FROM aq.dequeue('qd_topic', 'low', condition => 'payload = ''"tick"''', mode => 'browse', wait => '60 s');
SELECT aq.unschedule('qd_tick');
SELECT DISTINCT * FROM t.qd WHERE payload LIKE '%tick%';
SELECT aq.alter_queue('qd', default_priority => 8, default_expiration => '1 day');
SELECT count(aq.enqueue('qd', '60', delivery_mode => 'buffered'));
SELECT * FROM t.qd WHERE payload IN ('50', '60');

-- Oracle's packages: a null is the default, dbms_aq.no_delay() and never() are not
SELECT aq.alter_queue('qd', default_delay => '1 hour');
DO $$
DECLARE
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('qd', NULL, NULL, '80'::jsonb, id);
	CALL dbms_aq.enqueue('qd', NULL, dbms_aq.message_properties_t(priority => 1), '81'::jsonb, id);
	CALL dbms_aq.enqueue('qd', NULL, dbms_aq.message_properties_t(delay => dbms_aq.no_delay()), '82'::jsonb, id);
	CALL dbms_aq.enqueue('qd', NULL, dbms_aq.message_properties_t(expiration => dbms_aq.never()), '83'::jsonb, id);
	CALL dbms_aq.enqueue('qd', NULL, dbms_aq.message_properties_t(delay => 60, expiration => 60), '84'::jsonb, id);
END $$;
SELECT * FROM t.qd WHERE payload LIKE '8_';

-- queue tables: any priority, but no negative default
SELECT aq.create_queue_table('public.qd_table', sort_list => 'priority'), aq.create_queue('qd_tabled', queue_table => 'public.qd_table', default_priority => 100,
	default_delay => '10 minutes', default_expiration => '20 minutes');
SELECT count(aq.enqueue('qd_tabled', '70')), count(aq.enqueue('qd_tabled', '71', priority => -3, delay => '-1 s'));
SELECT * FROM t.qd WHERE queue_name = 'qd_tabled';
SELECT aq.purge_queue('qd_tabled') > 0;
SELECT obstacle, hint FROM aq.conversion_obstacles('qd_tabled');
SELECT aq.alter_queue('qd_tabled', default_priority => 9);
SELECT count(*) FROM aq.conversion_obstacles('qd_tabled');

-- a non-persistent queue has none; an exception queue does not use them
SELECT aq.create_queue('qd_np', queue_type => 'non_persistent', default_priority => 3, default_delay => '1 hour');
SELECT default_priority, default_delay FROM aq.queues WHERE queue_name = 'qd_np';
SELECT t.error($$SELECT aq.alter_queue('qd_np', default_delay => '1 hour')$$);
SELECT t.error($$SELECT aq.alter_queue('qd', default_priority => 10)$$);
SELECT t.error($$SELECT aq.alter_queue('qd', default_priority => -2)$$);
SELECT t.error($$SELECT aq.create_queue('qd_bad', default_priority => -1)$$);
SELECT t.error($$SELECT aq.create_queue('qd_bad', default_delay => NULL)$$);
SELECT t.error($$SELECT aq.create_queue('qd_bad', default_delay => '-1 s')$$);
SELECT t.error($$SELECT aq.create_queue('qd_bad', default_expiration => '0')$$);
SELECT t.error($$SELECT aq.alter_queue('qd', default_expiration => '-2')$$);

SELECT count(aq.drop_queue(queue_name, force => true)) FROM unnest(ARRAY['qd_none', 'qd', 'qd_topic', 'qd_tabled', 'qd_np']) queue_name;
SELECT aq.drop_queue_table('public.qd_table');
DROP VIEW t.qd;
