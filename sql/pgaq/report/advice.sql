-- Advice: rules over the figures of a report. Each says what to change and why, with the figures on which it is based. A rule applies if a share of
-- DB time or of the messages is higher than in a healthy system, and large enough to matter.

CREATE FUNCTION aq_internal.severity(share numeric) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN share >= 30 THEN 'high' WHEN share >= 10 THEN 'medium' ELSE 'low' END;
COMMENT ON FUNCTION aq_internal.severity(numeric) IS 'Internal: severity of a percentage';

-- Waits of users' sessions for matching events: share of DB time in percent, and average number of waiting sessions.
CREATE FUNCTION aq_internal.waited(s aq_internal.span, events text, OUT waits numeric, OUT seconds numeric, OUT share numeric, OUT active numeric)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sum(f.waits), round(sum(f.seconds), 3), aq_internal.ratio(sum(f.seconds), (s).db_time, 100), aq_internal.ratio(sum(f.seconds), (s).elapsed)
	FROM aq_internal.foreground(s) f WHERE f.event ~ events
$$;
COMMENT ON FUNCTION aq_internal.waited(aq_internal.span, text) IS 'Internal: waits for some events over a span';

-- A query returns severity, title, reason and what to do; then its figures, whose columns are named name|unit. s is the span of the report.
CREATE FUNCTION aq_internal.advice_rules(OUT rule text, OUT query text) RETURNS SETOF record LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $list$
VALUES
('hot_object', $$
	SELECT severity(w.share), format('One object is hot: %s', h.object),
		format('Sessions wait for the mutexes of objects in the object cache for %s %% of DB time, and %s %% of the sleeps were for this one.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN h.property LIKE 'HOT%' THEN format('It already has copies: raise pgaq.hot_object_copies (it is %s).', setting((s).later, 'pgaq.hot_object_copies'))
			ELSE format('Mark it hot, so that sessions use copies of their own: SELECT aq.mark_hot(%L); pgaq.hot_object_copies sets their number. Also keep sessions connected: they pin a queue once.', h.object) END,
		w.waits AS "waits for mutexes of objects|waits", w.seconds AS "time|s", round(w.share, 1) AS "share|% of DB time", round(w.active, 2) AS "sessions that waited|on average",
		h.sleeps AS "sleeps for this object|sleeps", h.gets AS "gets of its mutex|gets", h.hash::text AS "hash"
	FROM waited(s, '^library cache: mutex') w,
		(SELECT coalesce(queue_name, 'hash ' || hash) AS object, property, hash, mutex_gets AS gets, mutex_sleeps AS sleeps, mutex_sleeps / sum(mutex_sleeps) OVER () AS part
			FROM growths(s, 'cached_objects', NULL::cached_objects) WHERE mutex_sleeps > 0 ORDER BY mutex_sleeps DESC LIMIT 1) h
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.5$$),

('listen_herd', $$
	SELECT severity(share), 'Messages wake the wrong sessions',
		format('%s %% of the wake-ups were false: the session checked, found no message for it, and waited again. Each costs two checks of the queue.', round(share)),
		CASE setting((s).later, 'pgaq.listen_wakeup')
			WHEN 'broadcast' THEN 'Set pgaq.listen_wakeup = targeted, so that a message wakes only sessions that listen for its consumer; or dequeue by consumer name with a wait instead of LISTEN.'
			ELSE 'Dequeue by consumer name with a wait instead of LISTEN, with fewer sessions for a consumer; check whether sessions set pgaq.listen_wakeup = broadcast.' END,
		sent AS "wake-ups sent|wake-ups", wrong AS "false|wake-ups", stat(s, 'queue wake-ups useful') AS "useful|wake-ups", dequeued AS "messages dequeued|messages",
		round(ratio(wrong, dequeued), 2) AS "false per message|wake-ups/message", setting((s).later, 'pgaq.listen_wakeup') AS "pgaq.listen_wakeup"
	FROM stat(s, 'queue wake-ups sent') sent, stat(s, 'queue wake-ups false') wrong, stat(s, 'queue messages dequeued') dequeued, ratio(wrong, sent, 100) share
	WHERE sent >= 100 AND share >= 30 AND wrong >= dequeued / 2$$),

('one_shard', $$
	SELECT severity(w.share), format('One shard of queue %s is busy', h.queue_name),
		format('Sessions wait for the latch of a shard for %s %% of DB time, and %s %% of the messages of this queue went into one of its shards.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN q.shards > 1 THEN 'A session enqueues into one shard: enqueue from more sessions (a connection pooler in transaction mode may use only one), or dequeue more messages with each call.'
			ELSE 'Create the queue with more shards, or change them while it is not used yet, with aq.set_shards; or enqueue and dequeue arrays.' END,
		w.waits AS "waits for latches of shards|waits", w.seconds AS "time|s", round(w.share, 1) AS "share|% of DB time", h.enqueued AS "messages into the shard|messages",
		round(h.part * 100, 1) AS "share of the queue|% of messages", q.shards AS "shards of the queue|shards", h.shards AS "shards in use|shards"
	FROM waited(s, '^latch: shard stream$') w,
		(SELECT queue_name, enqueued, enqueued / sum(enqueued) OVER q AS part, count(*) OVER q AS shards FROM growths(s, 'shard', NULL::shards)
			WHERE enqueued > 0 WINDOW q AS (PARTITION BY queue_name) ORDER BY enqueued DESC LIMIT 1) h
		LEFT JOIN jsonb_to_recordset((s).later -> 'queue') q(queue_name text, shards integer) USING (queue_name)
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.8$$),

('message_cache', $$
	SELECT severity(greatest(w.share, missed)), 'The message cache is too small',
		format('Partitions are evicted before their messages are taken: %s were evicted and %s loaded%s.', evicted, loaded,
			CASE WHEN w.share >= 1 THEN format('; sessions waited for memory for %s %% of DB time', round(w.share, 1)) ELSE '' END),
		format('Raise pgaq.message_cache_size (it is %s) and restart; or find out why the backlog grows: more consumers, or messages in larger batches.', pg_size_pretty(c.total_bytes)),
		evicted AS "partitions evicted|partitions", loaded AS "partitions loaded|partitions", round(missed, 2) AS "misses|% of checks", c.total_bytes AS "size|bytes", c.used_bytes AS "used at the end|bytes",
		c.resident_partitions AS "partitions in the cache|partitions", c.known_partitions AS "partitions in use|partitions", w.seconds AS "waits for memory|s"
	FROM waited(s, '^aq: (message cache full|partition load)$') w, jsonb_populate_recordset(NULL::message_cache, (s).later -> 'message_cache') c,
		stat(s, 'message cache partitions evicted') evicted, stat(s, 'message cache partitions loaded') loaded,
		ratio(stat(s, 'message cache misses'), stat(s, 'message cache misses') + stat(s, 'message cache hits'), 100) missed
	WHERE (evicted >= 4 AND loaded >= 4 AND missed >= 1) OR (w.share >= 5 AND w.active >= 0.05)$$),

-- consumers that are more than two partitions behind, while others of the topic are not, and that do not catch up
('slow_subscriber', $$
	SELECT CASE WHEN c.dequeued = 0 THEN 'high' ELSE 'medium' END, format('Subscriber %s holds back topic %s', c.consumer, c.queue_name),
		format('It is %s messages behind%s, others of the topic at most %s. A partition is reused only when all its subscribers have finished it.', c.lag,
			CASE WHEN c.dequeued = 0 THEN ' and has taken none' END, c.fastest),
		format('Let more sessions dequeue for it, or more messages with each call; if they are not needed, SELECT aq.unsubscribe(%L, %L).', c.queue_name, c.consumer),
		c.lag_before AS "lag at begin|messages", c.lag AS "lag at end|messages", c.fastest AS "smallest lag of the topic|messages", round(ratio(c.enqueued, (s).elapsed), 1) AS "for it|messages/s",
		round(ratio(c.dequeued, (s).elapsed), 1) AS "done|messages/s", p.partitions AS "partitions of the topic|partitions"
	FROM (SELECT e.*, coalesce(b.lag, 0) AS lag_before, min(e.lag) OVER (PARTITION BY e.queue_name) AS fastest
			FROM growths(s, 'subscriber', NULL::subscribers) e LEFT JOIN jsonb_populate_recordset(NULL::subscribers, (s).earlier -> 'subscriber') b USING (queue_name, consumer)
			WHERE e.consumer IS NOT NULL) c
		LEFT JOIN jsonb_to_recordset((s).later -> 'partition') p(queue_name text, partitions integer) USING (queue_name)
	WHERE c.lag >= 32768 AND c.lag >= c.lag_before AND c.fastest <= c.lag / 10 ORDER BY c.lag DESC LIMIT 3$$),

('xmin_holder', $$
	SELECT CASE WHEN dead >= 1000000 OR done >= 64 THEN 'high' ELSE 'medium' END, format('An old %s delays the reuse of space', x.kind),
		format('%s: its snapshot is older than the last dequeue of %s consumed partitions%s. They wait for it, or for pgaq.reuse_grace.', x.who, done,
			CASE WHEN dead > 0 THEN format(', and queue tables have %s dead rows', dead) ELSE '' END),
		CASE x.kind WHEN 'session' THEN 'End the transaction, or the session (pg_terminate_backend); keep transactions short; set idle_in_transaction_session_timeout.'
			WHEN 'prepared transaction' THEN 'COMMIT PREPARED or ROLLBACK PREPARED it.'
			ELSE 'Find out why its client does not advance; drop the slot if it is not used (pg_drop_replication_slot).' END,
		CASE x.kind WHEN 'session' THEN x.who END AS "session", CASE x.kind WHEN 'prepared transaction' THEN x.who END AS "prepared transaction",
		CASE x.kind WHEN 'replication slot' THEN x.who END AS "replication slot", x.seconds AS "open for|s", x.xmin_age AS "transactions begun since|transactions", done AS "partitions that wait|partitions",
		dead AS "dead rows in queue tables|rows"
	FROM (SELECT * FROM jsonb_to_recordset((s).later -> 'xmin') h(kind text, who text, xmin_age bigint, seconds numeric) ORDER BY xmin_age DESC, seconds DESC LIMIT 1) x,
		(SELECT coalesce(sum(p.done), 0) AS done, min(p.done_since) AS since FROM jsonb_to_recordset((s).later -> 'partition') p(done bigint, done_since timestamptz)) p,
		(SELECT coalesce(sum(t.dead_rows), 0) AS dead FROM jsonb_to_recordset((s).later -> 'queue_table') t(dead_rows bigint)) d
	WHERE (done >= 4 AND (x.seconds IS NULL OR (s).end_time - make_interval(secs => x.seconds::double precision) <= p.since)) OR (dead >= 50000 AND x.seconds >= 60)$$),

('commit_bound', $$
	SELECT severity(share - 30), 'Sessions spend their time committing',
		format('%s %% of DB time is in commits, and a transaction has %s messages on average.', round(share), round(batch, 1)),
		'Batch more: enqueue with aq.enqueue_array, dequeue with max_messages, commit once for many. If you can afford to lose the last commits in a crash, set synchronous_commit = off.',
		round(seconds, 3) AS "time in commits|s", round(share, 1) AS "share|% of DB time", commits AS "commits with messages|transactions", round(ratio(seconds, commits, 1000), 3) AS "average commit|ms",
		round(batch, 2) AS "messages per transaction|messages", setting((s).later, 'synchronous_commit') AS "synchronous_commit"
	FROM seconds(s, 'queue commit elapsed time') seconds, stat(s, 'queue commits') commits, ratio(seconds, (s).db_time, 100) share,
		ratio(stat(s, 'queue messages enqueued') + stat(s, 'queue messages dequeued'), commits) batch
	WHERE share >= 40 AND batch <= 2 AND ratio(seconds, (s).elapsed) >= 0.2$$),

('flow_control', $$
	SELECT severity(share), 'Enqueuers of buffered messages wait for consumers',
		format('They waited for %s %% of DB time, because a consumer had a backlog of pgaq.buffered_message_limit buffered messages.', round(share, 1)),
		'Look at messages in aq.buffered_queues: let more sessions dequeue for the consumer with the largest backlog, or more messages with each call; aq.unsubscribe it if it is not needed; or raise the limit.',
		waits AS "waits|waits", seconds AS "time|s", round(share, 1) AS "share|% of DB time", round(active, 2) AS "sessions that waited|on average",
		setting((s).later, 'pgaq.buffered_message_limit') AS "pgaq.buffered_message_limit|messages"
	FROM waited(s, '^Streams AQ: enqueue blocked due to flow control$') WHERE share >= 5 AND active >= 0.05$$),

-- databases that have waited for their worker for some time, or whose worker ends with an error
('worker', $$
	SELECT 'high', format('Database %s has no background worker', database),
		CASE state WHEN 'waiting' THEN format('All background worker slots are in use, and it has waited for one for %s s. Until it gets one, delays, expirations and prepared transactions wait there.', round(seconds))
			ELSE format('Its worker ended with an error: %s.', coalesce(error, 'see the server log')) END,
		hint, state AS "state in aq.workers", round(seconds, 1) AS "for|s"
	FROM jsonb_populate_recordset(NULL::workers, (s).later -> 'worker'), extract(epoch FROM (s).end_time - since) seconds WHERE state = 'failed' OR seconds >= 5 ORDER BY seconds DESC LIMIT 5$$),

-- links that fail, and links for which there is no background worker
('link', $$
	SELECT 'high', format('Link %s does not work', server),
		CASE WHEN problem IS NOT NULL THEN format('What is to be sent waits: %s.', problem)
			ELSE format('It has failed %s times in a row, with SQLSTATE %s: %s.', failures, sqlstate, coalesce(error, 'no message')) END,
		CASE WHEN problem IS NOT NULL THEN 'Raise max_worker_processes, if no slot is free; otherwise the server log says why the worker ends.'
			ELSE coalesce(hint, 'Remove the cause.') || format(' To try it at once: SELECT * FROM aq.check_link(%L).', server) END,
		state AS "state in aq.links", failures AS "failures|in a row"
	FROM jsonb_populate_recordset(NULL::links, (s).later -> 'link') ORDER BY failures DESC, server LIMIT 5$$),

-- nodes that do not answer, and copies of nodes
('node', $$
	SELECT 'high', CASE state WHEN 'copy' THEN 'This database is a copy of a node' ELSE format('Node %s is %s', server, state) END,
		CASE state WHEN 'copy' THEN format('It is a copy of node %s, and does not act as it.', node_id)
			ELSE format('It %s; %s heartbeats in a row have failed, with SQLSTATE %s: %s.', coalesce('last answered at ' || last_seen, 'has not answered since this server was started'),
				failures, sqlstate, coalesce(error, 'no message')) END,
		coalesce(hint, format('Remove the cause. To try the link at once: SELECT * FROM aq.check_link(%L).', server)), state AS "state in aq.nodes", failures AS "failures|in a row"
	FROM jsonb_populate_recordset(NULL::nodes, (s).later -> 'node') WHERE state IN ('unreachable', 'refused', 'copy') ORDER BY failures DESC, server LIMIT 5$$),

-- distributed queues whose messages are not sent to a node
('node_queue', $$
	SELECT 'high', format('Messages of distributed queues are not sent to node %s', server), format('They wait: %s.', rtrim(queue_error, '.')),
		'Remove the cause, on this node or on that one; it is tried again every second.', queue_error AS "queue_error in aq.nodes"
	FROM jsonb_populate_recordset(NULL::nodes, (s).later -> 'node') WHERE queue_error IS NOT NULL ORDER BY server LIMIT 5$$)
$list$;
COMMENT ON FUNCTION aq_internal.advice_rules() IS 'Internal: the rules for advice';

CREATE FUNCTION aq_internal.advice(s aq_internal.span) RETURNS jsonb LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, aq, aq_internal, pg_temp AS $$
DECLARE
	found jsonb := '[]';
	r record;
	cells jsonb;
BEGIN
	FOR r IN SELECT * FROM advice_rules() LOOP
		FOR cells IN EXECUTE format('WITH p AS MATERIALIZED (SELECT $1 AS s) SELECT (SELECT jsonb_agg(jsonb_build_array(split_part(name, ''|'', 1), value, split_part(name, ''|'', 2)) ORDER BY i)
				FROM json_each(row_to_json(q)) WITH ORDINALITY e(name, value, i) WHERE i <= 4 OR json_typeof(value) <> ''null'')
			FROM p, LATERAL (%s) q', r.query) USING s LOOP
			found := found || jsonb_build_object('rule', r.rule, 'severity', cells #> '{0,1}', 'title', cells #> '{1,1}', 'why', cells #> '{2,1}', 'do', cells #> '{3,1}',
				'figures', jsonb_path_query_array(cells, '$[4 to last]'));
		END LOOP;
	END LOOP;
	RETURN (SELECT coalesce(jsonb_agg(a ORDER BY array_position('{high,medium,low}', a ->> 'severity'), n), '[]') FROM jsonb_array_elements(found) WITH ORDINALITY u(a, n));
END $$;
COMMENT ON FUNCTION aq_internal.advice(aq_internal.span) IS 'Internal: advice of a report, the most important first';
