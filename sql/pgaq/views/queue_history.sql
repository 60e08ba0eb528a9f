-- The history of queues, which the worker writes: src/queue/calls/history.c.

CREATE FUNCTION aq_internal.history_samples(OUT queue_id integer, OUT oldest real, OUT ready bigint, OUT in_flight bigint, OUT delayed bigint,
	OUT enqueued bigint, OUT dequeued bigint, OUT failed bigint, OUT buckets integer[])
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'aq_history_samples';
COMMENT ON FUNCTION aq_internal.history_samples() IS 'Internal: what the worker has found in this minute; in other processes no row';

-- Makes the rows of the hours since the last one.
CREATE FUNCTION aq_internal.history_hours(minute timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	until CONSTANT timestamptz := date_bin('1 hour', minute, '2000-01-01 00:00Z');
	since timestamptz := (SELECT max(h.sampled_at) FROM aq_internal.history_hour h WHERE h.sampled_at > until - interval '60 hours' AND h.sampled_at <= until);
BEGIN
	-- reads all hours, only after a long pause
	since := coalesce(since, (SELECT max(h.sampled_at) FROM aq_internal.history_hour h WHERE h.sampled_at <= until), '-infinity');
	EXECUTE format($insert$
		INSERT INTO aq_internal.history_hour
		SELECT date_bin('1 hour', h.sampled_at - interval '1 microsecond', '2000-01-01 00:00Z') + interval '1 hour' AS hour, h.queue_id, max(h.oldest),
			max(h.ready), max(h.in_flight), max(h.delayed), sum(h.enqueued), sum(h.dequeued), sum(h.failed), (ARRAY[%s])[1:max(cardinality(h.buckets))]
		FROM aq_internal.history_minute h WHERE h.sampled_at > $1 AND h.sampled_at <= $2 GROUP BY hour, h.queue_id ORDER BY hour, h.queue_id$insert$,
		-- three times as fast as unnest()
		(SELECT string_agg(format('least(coalesce(sum(h.buckets[%s]), 0), 2147483647)::integer', i), ', ') FROM generate_series(1, 33) i))
	USING since, until;
END $$;
COMMENT ON FUNCTION aq_internal.history_hours(timestamptz) IS 'Internal: make the rows of the hours that ended since the last one';

-- Empties the table of the turn, and the next one, if their rows are of an earlier turn. It waits for no reader: it is called again in the next minute,
-- for as long as the turn before lasts. Returns false if the table of the turn has rows of an earlier one even then: nothing is added, so that no reader
-- makes the ring grow. After the clock was set back, the next table has rows of this turn.
CREATE FUNCTION aq_internal.history_empty(ring text, span bigint, minute timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	this_turn CONSTANT bigint := extract(epoch FROM minute - timestamptz '2000-01-01 00:00Z')::bigint / span;
	of_turn CONSTANT text := '(extract(epoch FROM sampled_at - timestamptz ''2000-01-01 00:00Z'')::bigint / ' || span || ')';
	part text;
	old boolean;
	free boolean := true;
BEGIN
	FOR turn IN this_turn..this_turn + 1 LOOP
		part := format('aq_internal.%I', ring || '_' || turn % 8);
		EXECUTE format('SELECT %s <> %s FROM %s LIMIT 1', of_turn, turn, part) INTO old;
		IF old THEN
			BEGIN
				EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', part);
				EXECUTE format('SELECT NOT EXISTS (SELECT FROM %s WHERE %s = %s)', part, of_turn, turn) INTO old;
				IF old THEN
					EXECUTE format('TRUNCATE %s', part);
				END IF;
			EXCEPTION WHEN lock_not_available THEN
				free := free AND turn <> this_turn;
			END;
		END IF;
	END LOOP;
	RETURN free;
END $$;
COMMENT ON FUNCTION aq_internal.history_empty(text, bigint, timestamptz) IS 'Internal: empty the tables of the ring that are needed next; false: a reader of earlier rows keeps the present one';

CREATE FUNCTION aq_internal.history_turn(minute timestamptz, hours boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	-- after a long pause, minutes whose hours are missing are in a table that is emptied
	IF hours THEN
		PERFORM aq_internal.history_hours(minute - interval '1 minute');
		IF NOT aq_internal.history_empty('history_hour', 1296000, minute) THEN
			RETURN false;
		END IF;
	END IF;
	IF NOT aq_internal.history_empty('history_minute', 28800, minute) THEN
		RETURN false;
	END IF;
	INSERT INTO aq_internal.history_minute SELECT minute, s.* FROM aq_internal.history_samples() s;
	IF hours THEN
		PERFORM aq_internal.history_hours(minute);
	END IF;
	RETURN true;
END $$;
COMMENT ON FUNCTION aq_internal.history_turn(timestamptz, boolean) IS 'Internal: keep what the worker has found in this minute, and first, if an hour has ended, make the rows of the hour; false: nothing was kept';

REVOKE EXECUTE ON FUNCTION aq_internal.history_samples(), aq_internal.history_hours(timestamptz), aq_internal.history_empty(text, bigint, timestamptz),
	aq_internal.history_turn(timestamptz, boolean) FROM PUBLIC;

DO $$
DECLARE
	name text;
	ring text;
	age text;
	most text;
BEGIN
	FOR name, ring, age, most IN VALUES ('minutes', 'history_minute', '2 days', ''), ('hours', 'history_hour', '90 days', ', the most of the hour') LOOP
		EXECUTE format($view$
			CREATE VIEW aq.history_%1$s AS
			SELECT h.sampled_at, q.queue_name, CASE WHEN h.queue_id > 0 THEN 'persistent' ELSE 'buffered' END AS delivery_mode,
				h.ready, h.in_flight, h.delayed, h.oldest::double precision AS oldest_ready_seconds, h.enqueued, h.dequeued, h.failed,
				aq.latency_percentile(h.buckets::bigint[], 0.5) AS p50_seconds, aq.latency_percentile(h.buckets::bigint[], 0.99) AS p99_seconds,
				h.buckets::bigint[] AS buckets
			FROM aq_internal.queue q JOIN aq_internal.%2$s h ON h.queue_id IN (q.queue_id, -q.queue_id)
			WHERE (pg_has_role('pg_monitor', 'USAGE') OR aq_internal.may(q.rights_id, 'ANY'))
				AND h.sampled_at > now() - interval '%3$s' AND h.sampled_at <= now() + interval '1 minute'
			UNION ALL
			SELECT h.sampled_at, NULL, NULL, h.ready, h.in_flight, h.delayed, h.oldest, h.enqueued, h.dequeued, h.failed,
				aq.latency_percentile(h.buckets::bigint[], 0.5), aq.latency_percentile(h.buckets::bigint[], 0.99), h.buckets::bigint[]
			FROM aq_internal.%2$s h
			WHERE h.queue_id = 0 AND pg_has_role('pg_monitor', 'USAGE')
				AND h.sampled_at > now() - interval '%3$s' AND h.sampled_at <= now() + interval '1 minute'$view$, name, ring, age);
		EXECUTE format('COMMENT ON VIEW aq.history_%s IS %L', name, CASE name WHEN 'minutes' THEN
			'Minutes of the last two days in which something happened in a queue that the current role can use; members of pg_monitor see all. A queue has no row for a minute in which nothing was enqueued or dequeued and no number has changed: then ready, in_flight and delayed are those of its row before. In a minute, at most pgaq.history_queues queues have a row, those with the most messages enqueued and dequeued; the sum of the others has a null queue_name. pgaq.history = off ends the recording. On a standby it shows the history of the primary'
			ELSE 'The same as aq.history_minutes for the hours of the last 90 days; ready, in_flight and delayed are the most of the hour, and not known for an hour without a row' END);
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.sampled_at IS %L', name, CASE name WHEN 'minutes' THEN 'when the minute ended; two rows can have the same time if the clock was set back' ELSE 'when the hour ended' END);
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.queue_name IS %L', name, 'the queue; null: the sum of the queues without a row of their own, for members of pg_monitor');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.delivery_mode IS %L', name, 'persistent or buffered');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.ready IS %L', name, 'messages that could be dequeued, by all consumers' || most || '; null: not counted yet, in a queue table');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.in_flight IS %L', name, 'messages in flight: leased, or taken by transactions that had not ended' || most);
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.delayed IS %L', name, 'messages whose delay or retry delay was not over' || most);
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.oldest_ready_seconds IS %L', name, 'how long the oldest ready message had been ready' || most || '; null: none was ready');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.enqueued IS %L', name, 'messages enqueued since the row before');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.dequeued IS %L', name, '(message, consumer) pairs done since: consumed, purged, expired or failed');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.failed IS %L', name, 'of these: expired, or over max_retries');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.p50_seconds IS %L', name, 'half of the messages dequeued since had not waited longer, see aq.latencies; null: none was dequeued');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.p99_seconds IS %L', name, 'the same of 99 in 100');
		EXECUTE format('COMMENT ON COLUMN aq.history_%s.buckets IS %L', name, 'how many had waited how long, as in aq.latencies');
	END LOOP;
END $$;
GRANT SELECT ON aq.history_minutes, aq.history_hours TO PUBLIC;
