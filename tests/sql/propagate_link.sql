-- Propagation to other databases: the functions that the other side calls, called by hand; schedules without a connection.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
\set one '\'11111111-1111-1111-1111-111111111111\''
\set two '\'22222222-2222-2222-2222-222222222222\''
CREATE ROLE pl_far;
CREATE TYPE t.pl_pair AS (a integer, b text);
SELECT aq.create_queue('pl_in', 'text'), aq.create_queue('pl_pairs', 't.pl_pair'), aq.create_queue('pl_x', 'text');
-- t.pl_put sends a batch with these payloads; t.pl_id is the identity of a batch
CREATE FUNCTION t.pl_id(n bigint) RETURNS uuid LANGUAGE sql AS $$ SELECT lpad(n::text, 32, '0')::uuid $$;
CREATE FUNCTION t.pl_put(source uuid, epoch bigint, number bigint, VARIADIC payloads text[]) RETURNS bigint LANGUAGE sql AS $$
	SELECT aq.propagation_put(source, epoch, number, t.pl_id(number), 'pl_in', NULL, 'pg_catalog.text', payloads, array_fill(1, ARRAY[n]),
		array_fill(NULL::bigint, ARRAY[n]), array_fill(NULL::text, ARRAY[n]), array_fill(NULL::jsonb, ARRAY[n]), array_fill(NULL::text, ARRAY[n]),
		array_fill(NULL::text, ARRAY[n]), array_fill(NULL::uuid, ARRAY[n]))
	FROM cardinality(payloads) n $$;
CREATE FUNCTION t.pl_took(queue text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload, ' ' ORDER BY ordinality) FROM aq.dequeue(queue, as_type => NULL::text, max_messages => 100) WITH ORDINALITY $$;
-- t.until waits until a condition is true
CREATE PROCEDURE t.until(condition text) LANGUAGE plpgsql AS $$
DECLARE
	done boolean;
BEGIN
	FOR i IN 1..3000 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		EXIT WHEN done;
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
	RAISE NOTICE '%: %', condition, coalesce(done, false);
END $$;
-- nothing is taken before the source has asked
SELECT t.pl_put(:one, 10, 1, 'too early');
-- batches come one after the other, and none twice
SELECT * FROM aq.propagation_begin(:one, 10, 1, 3, 'pl_in');
SELECT t.pl_put(:one, 10, 1, 'a', 'b'), t.pl_put(:one, 10, 2, 'c'), t.pl_put(:one, 10, 2, 'c');
SELECT t.pl_took('pl_in');
SELECT t.pl_put(:one, 10, 4, 'a gap');
SELECT t.pl_put(:one, 10, 1, 'too late');
SELECT aq.propagation_put(:one, 10, 2, t.pl_id(77), 'pl_in', NULL, 'pg_catalog.text', '{another of this number}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
-- a rollback takes the number with it
BEGIN;
SELECT t.pl_put(:one, 10, 3, 'never');
ROLLBACK;
SELECT t.pl_put(:one, 10, 3, 'd'), t.pl_took('pl_in');
-- a new epoch: what was sent before is refused, so is an epoch that is not newer
SELECT * FROM aq.propagation_begin(:one, 11, 3, 4, 'pl_in');
SELECT t.pl_put(:one, 10, 4, 'of the old epoch');
SELECT aq.propagation_begin(:one, 11, 3, 4, 'pl_in');
SELECT t.pl_put(:one, 11, 4, 'e'), t.pl_took('pl_in');
-- the source has kept batch 5 and later ones: 4 has arrived; it says that it has kept 6, or that it has had 3 only
SELECT * FROM aq.propagation_begin(:one, 12, 5, 6, 'pl_in');
SELECT aq.propagation_begin(:one, 13, 6, 6, 'pl_in');
SELECT aq.propagation_begin(:one, 13, 3, 3, 'pl_in');
-- refused questions change nothing
SELECT t.pl_put(:one, 12, 5, 'f'), t.pl_took('pl_in');
-- a source that must be known, because it has had batches before
SELECT aq.propagation_begin(:two, 1, 8, 9, 'pl_in');
SELECT count(*) FROM aq_internal.propagation_arrival WHERE source = :two;
-- all that a message has; a priority beyond those of the queue; what has expired on the way expires here
SELECT * FROM aq.propagation_begin(:two, 1, 1, 1, 'pl_in');
SELECT aq.propagation_put(:two, 1, 1, t.pl_id(1), 'pl_in', 'nobody', 'pg_catalog.text', '{x,NULL}', '{42,NULL}', '{3600000000,NULL}', '{c,NULL}', ARRAY['{"k": 1}'::jsonb, NULL], '{s,NULL}', '{pl_x,pl_none}', ARRAY[t.pl_id(5), NULL]);
SELECT payload, priority, correlation, properties, sender, exception_queue, original_msgid, expires_at - enqueue_time BETWEEN '59 min' AND '61 min' FROM aq.dequeue_full('pl_in', as_type => NULL::text, max_messages => 2) ORDER BY priority;
SELECT aq.propagation_put(:two, 1, 2, t.pl_id(2), 'pl_in', NULL, 'pg_catalog.text', '{over}', '{1}', '{-5}', '{NULL}', '{NULL}', '{NULL}', '{pl_x}', '{NULL}');
SELECT payload FROM aq.dequeue('pl_x', as_type => NULL::text, wait => '1 minute');
-- types have the same names on both sides
SELECT aq.propagation_put(:two, 1, 3, t.pl_id(3), 'pl_pairs', NULL, 'pg_catalog.text', '{x}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
SELECT aq.propagation_put(:two, 1, 3, t.pl_id(3), 'pl_pairs', NULL, 't.pl_pair', '{"(1,\"a b\")"}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
SELECT (payload).a, (payload).b FROM aq.dequeue('pl_pairs', as_type => NULL::t.pl_pair);
SELECT aq.propagation_put(:two, 1, 4, t.pl_id(4), 'pl_pairs', NULL, 't.pl_pair', '{"(x,y)"}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
-- malformed calls
SELECT aq.propagation_put(:two, 1, 4, t.pl_id(4), 'pl_in', NULL, 'pg_catalog.text', '{x,y}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
SELECT aq.propagation_put(:two, 1, 4, t.pl_id(4), 'pl_in', NULL, 'pg_catalog.text', '{{x},{y}}', '{1,1}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}');
SELECT aq.propagation_put(:two, 1, 4, t.pl_id(4), 'pl_in', NULL, 'pg_catalog.text', '{x}', NULL, '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
SELECT aq.propagation_put(NULL, 1, 4, t.pl_id(4), 'pl_in', NULL, 'pg_catalog.text', '{x}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
SELECT aq.propagation_begin(:two, NULL, 1, 1, 'pl_in');
SELECT aq.propagation_begin(:two, 2, 1, 1, 'pl_none');
SELECT aq.propagation_put(:two, 1, 4, t.pl_id(4), 'pl_in', NULL, 'pg_catalog.text', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
-- rights: of the role that calls; who has none leaves no row
SET ROLE pl_far;
SELECT aq.propagation_begin('33333333-3333-3333-3333-333333333333', 1, 1, 1, 'pl_in');
SELECT aq.propagation_put(:two, 1, 5, '55555555-5555-5555-5555-555555555555', 'pl_in', NULL, 'pg_catalog.text', '{x}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
RESET ROLE;
SELECT source, number FROM aq_internal.propagation_arrival WHERE source IN (:one, :two, '33333333-3333-3333-3333-333333333333') ORDER BY 1;
SELECT aq.grant_queue('pl_in', 'pl_far', 'enqueue');
-- a source belongs to the role that began it: others, also with rights on the queue, cannot lock, move or end it
SET ROLE pl_far;
SELECT aq.propagation_begin(:two, 99, 1, 5, 'pl_in');
SELECT aq.propagation_put(:two, 1, 5, '55555555-5555-5555-5555-555555555555', 'pl_in', NULL, 'pg_catalog.text', '{x}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
RESET ROLE;
UPDATE aq_internal.propagation_arrival SET role = 'pl_far' WHERE source = :two;
SET ROLE pl_far;
SELECT aq.propagation_put(:two, 1, 5, '55555555-5555-5555-5555-555555555555', 'pl_in', NULL, 'pg_catalog.text', '{mine}', '{1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
RESET ROLE;
SELECT t.pl_took('pl_in');
-- schedules: the server, its mapping and the role's right on it are checked at once
SELECT aq.create_queue('pl_out', 'text'), aq.create_queue('pl_topic', 'text', multiple_consumers => true);
SELECT aq.create_propagation('pl_out', 'there@pl_server');
CREATE SERVER pl_server FOREIGN DATA WRAPPER pgaq_link OPTIONS (enabled 'false');
SELECT aq.create_propagation('pl_out', 'there@pl_server');
CREATE USER MAPPING FOR CURRENT_USER SERVER pl_server;
SELECT aq.create_propagation('pl_out', '@pl_server');
SELECT aq.create_propagation('pl_out', 'there@pl_server') > 0, aq.create_propagation('pl_topic', 'there@pl_server') > 0, aq.create_propagation('pl_topic', '@pl_server', subscribe => false) > 0;
SELECT consumer FROM aq.subscribers WHERE queue_name = 'pl_topic';
-- messages wait for the link, and count as not propagated; what the queues count of them follows the commit
SELECT aq.enqueue('pl_out', 'one') IS NOT NULL, aq.enqueue('pl_topic', 'two', recipients => '{"-> there@pl_server", "x -> other@pl_server", "-> far@another"}') IS NOT NULL;
CALL t.until($$count(*) = 3 FROM aq_internal.propagation_batch$$);
CALL t.until($$sum(lag) = 1 FROM aq.subscribers WHERE queue_name IN ('pl_out', 'pl_topic')$$);
SELECT p.queue_name, p.destination, b.number, b.destination, b.recipient, b.payloads, p.lag, p.state FROM aq.propagations p JOIN aq_internal.propagation_batch b USING (schedule_id) ORDER BY 1, 2;
SELECT consumer, lag FROM aq.subscribers WHERE queue_name = 'pl_topic' ORDER BY consumer COLLATE "C";
-- a schedule with messages on their way does not end before somebody has decided
SELECT aq.drop_propagation('pl_out', 'there@pl_server');
SELECT aq.drop_propagation('pl_out', 'there@pl_server', unsubscribe => false);
\set VERBOSITY default
SELECT aq.drop_propagation('pl_out', 'there@pl_server');
-- neither is its queue dropped without force
SELECT aq.drop_queue('pl_out');
\set VERBOSITY terse
SELECT aq.settle_propagation('pl_out', 'there@pl_server', true);
SELECT aq.settle_propagation('pl_out', 'there@pl_server', NULL);
SELECT aq.settle_propagation('pl_out', 'there', true);
SELECT aq.alter_propagation('pl_out', 'there@pl_server', enabled => false);
UPDATE aq_internal.propagation_batch b SET number = 7 FROM aq.propagations p WHERE p.schedule_id = b.schedule_id AND queue_name = 'pl_out';
SELECT aq.settle_propagation('pl_out', 'there@pl_server', false);
SELECT b.number, l.number, b.payloads FROM aq_internal.propagation_batch b JOIN aq_internal.propagation_link l USING (schedule_id) JOIN aq.propagations p USING (schedule_id) WHERE p.queue_name = 'pl_out';
-- these messages are on their way still
SELECT aq.drop_propagation('pl_out', 'there@pl_server');
SELECT aq.settle_propagation('pl_out', 'there@pl_server', true);
-- DROP SERVER says that schedules use it, and does it
BEGIN;
SET LOCAL log_min_messages = error;
\set VERBOSITY default
DROP SERVER pl_server CASCADE;
\set VERBOSITY terse
ROLLBACK;
SELECT aq.drop_propagation('pl_out', 'there@pl_server');
-- with the subscriber, its messages go
SELECT aq.drop_propagation('pl_topic', 'there@pl_server');
SELECT count(*) FROM aq_internal.propagation_batch;
SELECT aq.drop_queue(q, force => true) FROM unnest('{pl_in,pl_pairs,pl_x,pl_out,pl_topic}'::text[]) q;
SELECT count(*) FROM aq_internal.propagation_batch, aq_internal.propagation_link;
DROP SERVER pl_server CASCADE;
DROP PROCEDURE t.until;
DROP FUNCTION t.pl_put, t.pl_took, t.pl_id;
DELETE FROM aq_internal.propagation_arrival WHERE source IN (:one, :two);
DROP TYPE t.pl_pair;
DROP ROLE pl_far;
