-- aq.release without a delay: the queue's retry delay for the message's attempts.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('rr', max_retries => 5, retry_delay => '0');
CREATE PROCEDURE t.release(delay interval DEFAULT NULL, count boolean DEFAULT true, times integer DEFAULT 1) LANGUAGE plpgsql AS $$
DECLARE
	ids uuid[];
	receipt bigint;
BEGIN
	FOR i IN 1..times LOOP
		SELECT array_agg(d.msgid), max(d.receipt) INTO ids, receipt FROM aq.dequeue('rr', lease => '1 hour', max_messages => 100000) d;
		COMMIT;
		RAISE INFO '%', (SELECT string_agg(result, ' ') FROM aq.release('rr', ids, receipt, delay => release.delay, count => release.count));
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION t.rests() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(format('%s: %s %s %s', payload, attempts, state,
		round(extract(epoch FROM ready_at - clock_timestamp()) / 60)), ', ' ORDER BY payload)
	FROM aq.messages m WHERE m.queue_name = 'rr' AND state IN ('READY', 'WAITING', 'LEASED')
$$;
-- a retry delay of 0
SELECT t.put('rr', 1);
CALL t.release();
SELECT t.rests();
SELECT t.put('rr', 2);
CALL t.release();
SELECT t.rests();
-- messages of one call with 3, 2 and 1 attempts
SELECT aq.alter_queue('rr', retry_delay => '1 hour', retry_delay_factor => 5, retry_delay_max => '10 days', retry_jitter => 0);
SELECT t.put('rr', 3, 4);
CALL t.release(delay => '0');
SELECT t.rests();
CALL t.release();
SELECT t.rests();
SELECT t.look('rr') IS NULL, aq.purge_queue('rr');
-- given back unseen, or for a time of its own: the retry delay does not matter
SELECT t.put('rr', 5);
CALL t.release(count => false);
SELECT t.rests();
CALL t.release(delay => '2 days');
SELECT t.rests();
SELECT aq.purge_queue('rr');
-- the first fails, alone in its call, the other waits
SELECT t.put('rr', 6);
CALL t.release(delay => '0', times => 5);
SELECT t.put('rr', 7);
CALL t.release(times => 2);
SELECT t.rests();
SELECT aq.drop_queue('rr', force => true);
DROP FUNCTION t.rests; DROP PROCEDURE t.release;
