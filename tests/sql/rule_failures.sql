-- A rule that raises an error counts against its subscriber, not against the transaction that enqueues.
\pset format unaligned
\pset tuples_only on
CREATE VIEW t.failures AS SELECT queue_name, consumer, rule_failures, rule_error FROM aq.subscribers WHERE rule_failures > 0;
SELECT aq.create_queue('f', multiple_consumers => true);
SELECT aq.subscribe('f', 'amount', '(payload->>''amount'')::int > 100'), aq.subscribe('f', 'all'), aq.subscribe('f', 'ratio', '100 / priority > 20');
SELECT aq.enqueue('f', '{"amount": "many"}', priority => 0) IS NOT NULL;
SELECT consumer, rule_failures, last_rule_failure <= clock_timestamp(), rule_error FROM aq.subscribers WHERE queue_name = 'f' ORDER BY 1;
SELECT t.drain('f', 'amount'), t.drain('f', 'all'), t.drain('f', 'ratio');
-- in an array it fails for the messages that it fails for
SELECT cardinality(aq.enqueue_array('f', ARRAY['{"amount": "x"}', '{"amount": 101}', '{"amount": "y"}', '{"amount": 102}', '{"amount": 1}']));
SELECT t.drain('f', 'amount'), t.drain('f', 'all'), t.drain('f', 'ratio');
SELECT * FROM t.failures ORDER BY 2;
-- the transaction goes on, with what it did before
CREATE TABLE t.journal (at serial, what text);
BEGIN;
INSERT INTO t.journal (what) VALUES ('before');
SAVEPOINT s;
SELECT aq.enqueue('f', '{"amount": "z"}', priority => 0) IS NOT NULL;
INSERT INTO t.journal (what) VALUES ('after');
RELEASE s;
COMMIT;
SELECT what FROM t.journal ORDER BY at;
SELECT t.drain('f', 'all');
-- a rule that writes: what it wrote is undone when it fails, and only that
TRUNCATE t.journal;
CREATE FUNCTION t.note(text, fails boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t.journal (what) VALUES ($1);
	IF fails THEN
		RAISE division_by_zero;
	END IF;
	RETURN true;
END $$;
SELECT aq.unsubscribe('f', c) FROM unnest(ARRAY['amount', 'ratio']) c;
SELECT aq.subscribe('f', 'good', 't.note(''good '' || payload::text, false)'), aq.subscribe('f', 'bad', 't.note(''bad '' || payload::text, payload = ''2'')');
SELECT cardinality(aq.enqueue_array('f', ARRAY['1', '2', '3']));
SELECT what FROM t.journal ORDER BY what;
SELECT t.drain('f', 'all'), t.drain('f', 'good'), t.drain('f', 'bad');
SELECT * FROM t.failures ORDER BY 2;
-- a rule that cannot be compiled any more
DROP FUNCTION t.note;
SELECT cardinality(aq.enqueue_array('f', ARRAY['4', '5']));
SELECT t.drain('f', 'all'), t.drain('f', 'good'), t.drain('f', 'bad');
SELECT * FROM t.failures ORDER BY 2;
-- another rule, and it works again
SELECT aq.alter_subscriber('f', 'good', 'true'), aq.alter_subscriber('f', 'bad', 'payload = ''7''');
SELECT cardinality(aq.enqueue_array('f', ARRAY['6', '7']));
SELECT t.drain('f', 'all'), t.drain('f', 'good'), t.drain('f', 'bad');
SELECT * FROM t.failures ORDER BY 2;
-- a consumer that begins at the place of another begins without failures
SELECT aq.unsubscribe('f', 'good'), aq.unsubscribe('f', 'bad');
-- errors that concern the transaction reach it, and only its own subtransactions end
CREATE FUNCTION t.raises(code text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = code; END $$;
SELECT aq.subscribe('f', 'raises', 't.raises(correlation)');
TRUNCATE t.journal;
DO $$
DECLARE
	code text;
BEGIN
	FOREACH code IN ARRAY ARRAY['40001', '53100', '57014', '58030', 'XX001', 'XX000', '55P03', '55000', '08006', '54001', 'AQ053', 'AQ118', 'P0001', 'AQ001', '0A000', '23505', '54000', 'ZZ001'] LOOP
		BEGIN
			INSERT INTO t.journal (what) VALUES ('within ' || code);
			PERFORM aq.enqueue('f', to_jsonb(code), correlation => code);
		EXCEPTION WHEN OTHERS OR query_canceled THEN
			INSERT INTO t.journal (what) VALUES ('caught ' || sqlstate);
		END;
	END LOOP;
END $$;
SELECT what FROM t.journal ORDER BY at;
SELECT t.drain('f', 'all');
SELECT * FROM t.failures ORDER BY 2;
-- as does a timeout
SELECT aq.alter_subscriber('f', 'raises', 'pg_sleep(60) IS NOT NULL');
SET statement_timeout = '50 ms';
SELECT aq.enqueue('f', '8');
RESET statement_timeout;
SELECT t.drain('f', 'all');
-- a rule that enqueues into its own queue, where it fails
CREATE FUNCTION t.again(depth int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF depth = 2 THEN
		RAISE division_by_zero;
	END IF;
	RETURN aq.enqueue('f', to_jsonb(depth + 1), priority => depth + 1) IS NOT NULL;
END $$;
SELECT aq.alter_subscriber('f', 'raises', 't.again(priority)');
SELECT aq.enqueue('f', '0', priority => 0) IS NOT NULL;
SELECT t.drain('f', 'all'), t.drain('f', 'raises');
SELECT * FROM t.failures ORDER BY 2;
-- it was the only one: no consumer is left, which is an error in dbms_aq only
SELECT aq.unsubscribe('f', 'all'), aq.alter_subscriber('f', 'raises', '1 / priority > 0');
SELECT aq.enqueue('f', '9', priority => 0) IS NULL, aq.enqueue_array('f', ARRAY['9', '10'], priority => 0);
CREATE FUNCTION t.by_package() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('f', NULL, dbms_aq.message_properties_t(priority => 0), '9'::jsonb, id);
END $$;
SELECT split_part(t.error('SELECT t.by_package()'), ' | ', 1);
SELECT * FROM t.failures ORDER BY 2;
-- a rule whose function was dropped is no other error
CREATE FUNCTION t.gone(int) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true;
SELECT aq.alter_subscriber('f', 'raises', 't.gone(priority)');
DROP FUNCTION t.gone;
SELECT split_part(t.error('SELECT t.by_package()'), ' | ', 1);
SELECT * FROM t.failures ORDER BY 2;
-- buffered messages, too
SELECT aq.alter_subscriber('f', 'raises', NULL), aq.subscribe('f', 'buffered', '1 / priority > 0', delivery_mode => 'buffered');
SELECT aq.enqueue('f', '11', priority => 0, delivery_mode => 'buffered') IS NULL;
SELECT * FROM t.failures ORDER BY 2;
-- REASSIGN OWNED takes the function, its schema, and the role whose privileges the rule runs with
CREATE ROLE regress_rf_old;
CREATE ROLE regress_rf_new;
CREATE SCHEMA rf AUTHORIZATION regress_rf_old;
SELECT aq.grant_queue('f', 'regress_rf_old', 'subscribe');
SET ROLE regress_rf_old;
CREATE FUNCTION rf.rule(n int) RETURNS boolean LANGUAGE sql AS 'SELECT n = 1';
SELECT aq.subscribe('f', 'owned', 'rf.rule(priority)');
RESET ROLE;
SELECT aq.enqueue('f', '12', priority => 1) IS NOT NULL;
REASSIGN OWNED BY regress_rf_old TO regress_rf_new;
BEGIN;
SET LOCAL log_min_messages = error;
REASSIGN OWNED BY regress_rf_new TO CURRENT_USER;
ROLLBACK;
SELECT aq.enqueue('f', '13', priority => 1) IS NOT NULL;
SELECT t.drain('f', 'owned');
SELECT consumer, rule_failures FROM t.failures WHERE consumer = 'owned';
DROP OWNED BY regress_rf_old;
SELECT aq.drop_queue('f', true);
DROP OWNED BY regress_rf_new;
DROP ROLE regress_rf_old, regress_rf_new;
DROP VIEW t.failures;
DROP TABLE t.journal;
DROP FUNCTION t.raises, t.again, t.by_package;
