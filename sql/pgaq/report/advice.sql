-- Advice: rules over the figures of a report. Each says what to change and why, with the figures on which it is based. A rule applies if a share of
-- DB time or of the messages is higher than in a healthy system, and large enough to matter.

CREATE FUNCTION aq_internal.advise(rule text, severity text, title text, why text, what text, figures jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN jsonb_build_object('rule', rule, 'severity', severity, 'title', title, 'why', why, 'do', what,
	'figures', (SELECT coalesce(jsonb_agg(f ORDER BY n), '[]') FROM jsonb_array_elements(figures) WITH ORDINALITY u(f, n) WHERE f ->> 1 IS NOT NULL));
COMMENT ON FUNCTION aq_internal.advise(text, text, text, text, text, jsonb) IS 'Internal: a piece of advice';

CREATE FUNCTION aq_internal.severity(share numeric) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN share >= 30 THEN 'high' WHEN share >= 10 THEN 'medium' ELSE 'low' END;
COMMENT ON FUNCTION aq_internal.severity(numeric) IS 'Internal: severity of a percentage';

-- Waits of users' sessions for matching events: share of DB time in percent, and average number of waiting sessions.
CREATE FUNCTION aq_internal.waited(s aq_internal.span, events text, OUT waits numeric, OUT seconds numeric, OUT share numeric, OUT active numeric)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sum(f.waits), sum(f.seconds), aq_internal.ratio(sum(f.seconds), (s).db_time, 100), aq_internal.ratio(sum(f.seconds), (s).elapsed)
	FROM aq_internal.foreground(s) f WHERE f.event ~ events
$$;
COMMENT ON FUNCTION aq_internal.waited(aq_internal.span, text) IS 'Internal: waits for some events over a span';

CREATE FUNCTION aq_internal.setting(capture jsonb, name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT l ->> 'setting' FROM jsonb_array_elements(capture -> 'parameter') l WHERE l ->> 'name' = $2);
COMMENT ON FUNCTION aq_internal.setting(jsonb, text) IS 'Internal: a parameter at a capture';

CREATE FUNCTION aq_internal.advice_hot_object(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('hot_object', aq_internal.severity(w.share), format('One object is hot: %s', h.object),
		format('Sessions wait for the mutexes of objects in the object cache for %s %% of DB time, and %s %% of the sleeps were for this one.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN h.property LIKE 'HOT%' THEN format('It already has copies: raise pgaq.hot_object_copies (it is %s).', aq_internal.setting((s).later, 'pgaq.hot_object_copies'))
			ELSE format('Mark it hot, so that sessions use copies of their own: SELECT aq.mark_hot(%L); pgaq.hot_object_copies sets their number. Also keep sessions connected: they pin a queue once.',
				h.object) END,
		jsonb_build_array(jsonb_build_array('waits for mutexes of objects', w.waits, 'waits'), jsonb_build_array('time', round(w.seconds, 3), 's'), jsonb_build_array('share', round(w.share, 1), '% of DB time'),
			jsonb_build_array('sessions that waited', round(w.active, 2), 'on average'), jsonb_build_array('sleeps for this object', h.sleeps, 'sleeps'),
			jsonb_build_array('gets of its mutex', h.gets, 'gets'), jsonb_build_array('hash', h.hash::text, '')))
	FROM aq_internal.waited(s, '^library cache: mutex') w, (SELECT o.* FROM aq_internal.object_growths(s) o WHERE o.sleeps > 0 ORDER BY o.sleeps DESC LIMIT 1) h
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.5
$$;
COMMENT ON FUNCTION aq_internal.advice_hot_object(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_listen_herd(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('listen_herd', aq_internal.severity(f.share), 'Messages wake the wrong sessions',
		format('%s %% of the wake-ups were false: the session checked, found no message for it, and waited again. Each costs two checks of the queue.', round(f.share)),
		CASE aq_internal.setting((s).later, 'pgaq.listen_wakeup')
			WHEN 'broadcast' THEN 'Set pgaq.listen_wakeup = targeted, so that a message wakes only sessions that listen for its consumer; or dequeue by consumer name with a wait instead of LISTEN.'
			ELSE 'Dequeue by consumer name with a wait instead of LISTEN, with fewer sessions for a consumer; check whether sessions set pgaq.listen_wakeup = broadcast.' END,
		jsonb_build_array(jsonb_build_array('wake-ups sent', f.sent, 'wake-ups'), jsonb_build_array('false', f.false, 'wake-ups'), jsonb_build_array('useful', aq_internal.stat(s, 'queue wake-ups useful'), 'wake-ups'),
			jsonb_build_array('messages dequeued', f.dequeued, 'messages'), jsonb_build_array('false per message', round(aq_internal.ratio(f.false, f.dequeued), 2), 'wake-ups/message'),
			jsonb_build_array('pgaq.listen_wakeup', aq_internal.setting((s).later, 'pgaq.listen_wakeup'), '')))
	FROM (SELECT aq_internal.stat(s, 'queue wake-ups sent') AS sent, aq_internal.stat(s, 'queue wake-ups false') AS false, aq_internal.stat(s, 'queue messages dequeued') AS dequeued,
			aq_internal.ratio(aq_internal.stat(s, 'queue wake-ups false'), aq_internal.stat(s, 'queue wake-ups sent'), 100) AS share) f
	WHERE f.sent >= 100 AND f.share >= 30 AND f.false >= f.dequeued / 2
$$;
COMMENT ON FUNCTION aq_internal.advice_listen_herd(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_one_shard(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('one_shard', aq_internal.severity(w.share), format('One shard of queue %s is busy', h.queue_name),
		format('Sessions wait for the latch of a shard for %s %% of DB time, and %s %% of the messages of this queue went into one of its shards.', round(w.share, 1), round(h.part * 100)),
		CASE WHEN q.shards > 1 THEN 'A session enqueues into one shard: enqueue from more sessions (a connection pooler in transaction mode may use only one), or dequeue more messages with each call.'
			ELSE 'Create the queue with more shards, or change them while it is not used yet, with aq.set_shards; or enqueue and dequeue arrays.' END,
		jsonb_build_array(jsonb_build_array('waits for latches of shards', w.waits, 'waits'), jsonb_build_array('time', round(w.seconds, 3), 's'), jsonb_build_array('share', round(w.share, 1), '% of DB time'),
			jsonb_build_array('messages into the shard', h.enqueued, 'messages'), jsonb_build_array('share of the queue', round(h.part * 100, 1), '% of messages'),
			jsonb_build_array('shards of the queue', q.shards, 'shards'), jsonb_build_array('shards in use', h.shards, 'shards')))
	FROM aq_internal.waited(s, '^latch: shard stream$') w, (SELECT g.* FROM aq_internal.shard_growths(s) g ORDER BY g.enqueued DESC LIMIT 1) h
		LEFT JOIN (SELECT l ->> 'queue_name' AS queue_name, (l ->> 'shards')::integer AS shards FROM jsonb_array_elements((s).later -> 'queue') l) q USING (queue_name)
	WHERE w.share >= 5 AND w.active >= 0.05 AND h.part >= 0.8
$$;
COMMENT ON FUNCTION aq_internal.advice_one_shard(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_message_cache(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('message_cache', aq_internal.severity(greatest(w.share, c.missed)), 'The message cache is too small',
		format('Partitions are evicted before their messages are taken: %s were evicted and %s loaded%s.', c.evicted, c.loaded,
			CASE WHEN w.share >= 1 THEN format('; sessions waited for memory for %s %% of DB time', round(w.share, 1)) ELSE '' END),
		format('Raise pgaq.message_cache_size (it is %s) and restart; or find out why the backlog grows: more consumers, or messages in larger batches.', pg_size_pretty(c.bytes)),
		jsonb_build_array(jsonb_build_array('partitions evicted', c.evicted, 'partitions'), jsonb_build_array('partitions loaded', c.loaded, 'partitions'),
			jsonb_build_array('misses', round(c.missed, 2), '% of checks'), jsonb_build_array('size', c.bytes, 'bytes'), jsonb_build_array('used at the end', c.used, 'bytes'),
			jsonb_build_array('partitions in the cache', c.resident, 'partitions'), jsonb_build_array('partitions in use', c.known, 'partitions'),
			jsonb_build_array('waits for memory', round(w.seconds, 3), 's')))
	FROM aq_internal.waited(s, '^aq: (message cache full|partition load)$') w, (
		SELECT aq_internal.stat(s, 'message cache partitions evicted') AS evicted, aq_internal.stat(s, 'message cache partitions loaded') AS loaded,
			aq_internal.ratio(aq_internal.stat(s, 'message cache misses'), aq_internal.stat(s, 'message cache misses') + aq_internal.stat(s, 'message cache hits'), 100) AS missed,
			(l ->> 'total_bytes')::bigint AS bytes, (l ->> 'used_bytes')::bigint AS used, (l ->> 'resident_partitions')::bigint AS resident, (l ->> 'known_partitions')::bigint AS known
		FROM jsonb_array_elements((s).later -> 'message_cache') l) c
	WHERE (c.evicted >= 4 AND c.loaded >= 4 AND c.missed >= 1) OR (w.share >= 5 AND w.active >= 0.05)
$$;
COMMENT ON FUNCTION aq_internal.advice_message_cache(aq_internal.span) IS 'Internal: rule of the report';

-- Consumers that are more than two partitions behind, while others of the topic are not, and that do not catch up.
CREATE FUNCTION aq_internal.advice_slow_subscriber(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('slow_subscriber', CASE WHEN c.dequeued = 0 THEN 'high' ELSE 'medium' END, format('Subscriber %s holds back topic %s', c.consumer, c.queue_name),
		format('It is %s messages behind%s, others of the topic at most %s. A partition is reused only when all its subscribers have finished it.', c.lag,
			CASE WHEN c.dequeued = 0 THEN ' and has taken none' END, c.fastest),
		format('Let more sessions dequeue for it, or more messages with each call; if they are not needed, SELECT aq.unsubscribe(%L, %L).', c.queue_name, c.consumer),
		jsonb_build_array(jsonb_build_array('lag at begin', c.lag_before, 'messages'), jsonb_build_array('lag at end', c.lag, 'messages'), jsonb_build_array('smallest lag of the topic', c.fastest, 'messages'),
			jsonb_build_array('for it', round(aq_internal.ratio(c.enqueued, (s).elapsed), 1), 'messages/s'), jsonb_build_array('done', round(aq_internal.ratio(c.dequeued, (s).elapsed), 1), 'messages/s'),
			jsonb_build_array('partitions of the topic', p.partitions, 'partitions')))
	FROM (SELECT g.*, min(g.lag) OVER (PARTITION BY g.queue_name) AS fastest FROM aq_internal.consumer_growths(s) g) c
		LEFT JOIN (SELECT l ->> 'queue_name' AS queue_name, (l ->> 'partitions')::integer AS partitions FROM jsonb_array_elements((s).later -> 'partition') l) p USING (queue_name)
	WHERE c.lag >= 32768 AND c.lag >= c.lag_before AND c.fastest <= c.lag / 10
	ORDER BY c.lag DESC LIMIT 3
$$;
COMMENT ON FUNCTION aq_internal.advice_slow_subscriber(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_xmin(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('xmin_holder', CASE WHEN d.dead >= 1000000 OR p.done >= 64 THEN 'high' ELSE 'medium' END, format('An old %s delays the reuse of space', x.kind),
		format('%s: its snapshot is older than the last dequeue of %s consumed partitions%s. They wait for it, or for pgaq.reuse_grace.', x.who, p.done,
			CASE WHEN d.dead > 0 THEN format(', and queue tables have %s dead rows', d.dead) ELSE '' END),
		CASE x.kind WHEN 'session' THEN 'End the transaction, or the session (pg_terminate_backend); keep transactions short; set idle_in_transaction_session_timeout.'
			WHEN 'prepared transaction' THEN 'COMMIT PREPARED or ROLLBACK PREPARED it.'
			ELSE 'Find out why its client does not advance; drop the slot if it is not used (pg_drop_replication_slot).' END,
		jsonb_build_array(jsonb_build_array(x.kind, x.who, ''), jsonb_build_array('open for', x.seconds, 's'), jsonb_build_array('transactions begun since', x.xmin_age, 'transactions'),
			jsonb_build_array('partitions that wait', p.done, 'partitions'), jsonb_build_array('dead rows in queue tables', d.dead, 'rows')))
	FROM (SELECT h.* FROM jsonb_array_elements((s).later -> 'xmin') l, jsonb_to_record(l) h(kind text, who text, xmin_age bigint, seconds numeric) ORDER BY h.xmin_age DESC, h.seconds DESC LIMIT 1) x,
		(SELECT coalesce(sum((l ->> 'done')::bigint), 0) AS done, min((l ->> 'done_since')::timestamptz) AS since FROM jsonb_array_elements((s).later -> 'partition') l) p,
		(SELECT coalesce(sum((l ->> 'dead_rows')::bigint), 0) AS dead FROM jsonb_array_elements((s).later -> 'queue_table') l) d
	WHERE (p.done >= 4 AND (x.seconds IS NULL OR (s).end_time - make_interval(secs => x.seconds::double precision) <= p.since)) OR (d.dead >= 50000 AND x.seconds >= 60)
$$;
COMMENT ON FUNCTION aq_internal.advice_xmin(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_commits(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('commit_bound', aq_internal.severity(c.share - 30), 'Sessions spend their time committing',
		format('%s %% of DB time is in commits, and a transaction has %s messages on average.', round(c.share), round(c.batch, 1)),
		'Batch more: enqueue with aq.enqueue_array, dequeue with max_messages, commit once for many. If you can afford to lose the last commits in a crash, set synchronous_commit = off.',
		jsonb_build_array(jsonb_build_array('time in commits', round(c.seconds, 3), 's'), jsonb_build_array('share', round(c.share, 1), '% of DB time'),
			jsonb_build_array('commits with messages', c.commits, 'transactions'), jsonb_build_array('average commit', round(aq_internal.ratio(c.seconds, c.commits, 1000), 3), 'ms'),
			jsonb_build_array('messages per transaction', round(c.batch, 2), 'messages'), jsonb_build_array('synchronous_commit', aq_internal.setting((s).later, 'synchronous_commit'), '')))
	FROM (SELECT t.seconds, t.commits, aq_internal.ratio(t.seconds, (s).db_time, 100) AS share, aq_internal.ratio(t.messages, t.commits) AS batch
		FROM (SELECT aq_internal.time(s, 'queue commit elapsed time') AS seconds, aq_internal.stat(s, 'queue commits') AS commits,
			aq_internal.stat(s, 'queue messages enqueued') + aq_internal.stat(s, 'queue messages dequeued') AS messages) t) c
	WHERE c.share >= 40 AND c.batch <= 2 AND aq_internal.ratio(c.seconds, (s).elapsed) >= 0.2
$$;
COMMENT ON FUNCTION aq_internal.advice_commits(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice_flow_control(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('flow_control', aq_internal.severity(w.share), 'Enqueuers of buffered messages wait for consumers',
		format('They waited for %s %% of DB time, because a consumer had a backlog of pgaq.buffered_message_limit buffered messages.', round(w.share, 1)),
		'Look at messages in aq.buffered_queues: let more sessions dequeue for the consumer with the largest backlog, or more messages with each call; aq.unsubscribe it if it is not needed; or raise the limit.',
		jsonb_build_array(jsonb_build_array('waits', w.waits, 'waits'), jsonb_build_array('time', round(w.seconds, 3), 's'), jsonb_build_array('share', round(w.share, 1), '% of DB time'),
			jsonb_build_array('sessions that waited', round(w.active, 2), 'on average'), jsonb_build_array('pgaq.buffered_message_limit', aq_internal.setting((s).later, 'pgaq.buffered_message_limit'), 'messages')))
	FROM aq_internal.waited(s, '^Streams AQ: enqueue blocked due to flow control$') w
	WHERE w.share >= 5 AND w.active >= 0.05
$$;
COMMENT ON FUNCTION aq_internal.advice_flow_control(aq_internal.span) IS 'Internal: rule of the report';

-- Databases that have waited for their worker for some time, or whose worker ends with an error.
CREATE FUNCTION aq_internal.advice_worker(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('worker', 'high', format('Database %s has no background worker', w.database),
		CASE w.state WHEN 'waiting' THEN format('All background worker slots are in use, and it has waited for one for %s s. Until it gets one, delays, expirations and prepared transactions wait there.', round(w.seconds))
			ELSE format('Its worker ended with an error: %s.', coalesce(w.error, 'see the server log')) END,
		w.hint,
		jsonb_build_array(jsonb_build_array('state in aq.workers', w.state, ''), jsonb_build_array('for', round(w.seconds, 1), 's')))
	FROM (SELECT r.*, extract(epoch FROM (s).end_time - r.since) AS seconds
		FROM jsonb_array_elements((s).later -> 'worker') l, jsonb_to_record(l) r(database text, state text, since timestamptz, hint text, error text)) w
	WHERE w.state = 'failed' OR w.seconds >= 5
	ORDER BY w.seconds DESC LIMIT 5
$$;
COMMENT ON FUNCTION aq_internal.advice_worker(aq_internal.span) IS 'Internal: rule of the report';

-- Links that fail, and links for which there is no background worker.
CREATE FUNCTION aq_internal.advice_link(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('link', 'high', format('Link %s does not work', r.server),
		CASE WHEN r.problem IS NOT NULL THEN format('What is to be sent waits: %s.', r.problem)
			ELSE format('It has failed %s times in a row, with SQLSTATE %s: %s.', r.failures, r.sqlstate, coalesce(r.error, 'no message')) END,
		CASE WHEN r.problem IS NOT NULL THEN 'Raise max_worker_processes, if no slot is free; otherwise the server log says why the worker ends.'
			ELSE coalesce(r.hint, 'Remove the cause.') || format(' To try it at once: SELECT * FROM aq.check_link(%L).', r.server) END,
		jsonb_build_array(jsonb_build_array('state in aq.links', r.state, ''), jsonb_build_array('failures', r.failures, 'in a row')))
	FROM jsonb_array_elements((s).later -> 'link') l, jsonb_to_record(l) r(server text, state text, failures integer, sqlstate text, error text, hint text, problem text)
	ORDER BY r.failures DESC, r.server LIMIT 5
$$;
COMMENT ON FUNCTION aq_internal.advice_link(aq_internal.span) IS 'Internal: rule of the report';

-- Nodes that do not answer, and copies of nodes.
CREATE FUNCTION aq_internal.advice_node(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('node', 'high', CASE r.state WHEN 'copy' THEN 'This database is a copy of a node' ELSE format('Node %s is %s', r.server, r.state) END,
		CASE r.state WHEN 'copy' THEN format('It is a copy of node %s, and does not act as it.', r.node_id)
			ELSE format('It %s; %s heartbeats in a row have failed, with SQLSTATE %s: %s.', coalesce('last answered at ' || r.last_seen, 'has not answered since this server was started'),
				r.failures, r.sqlstate, coalesce(r.error, 'no message')) END,
		coalesce(r.hint, format('Remove the cause. To try the link at once: SELECT * FROM aq.check_link(%L).', r.server)),
		jsonb_build_array(jsonb_build_array('state in aq.nodes', r.state, ''), jsonb_build_array('failures', r.failures, 'in a row')))
	FROM jsonb_array_elements((s).later -> 'node') l, jsonb_to_record(l) r(server text, node_id uuid, state text, failures integer, last_seen timestamptz, sqlstate text, error text, hint text)
	WHERE r.state IN ('unreachable', 'refused', 'copy')
	ORDER BY r.failures DESC, r.server LIMIT 5
$$;
COMMENT ON FUNCTION aq_internal.advice_node(aq_internal.span) IS 'Internal: rule of the report';

-- Distributed queues whose messages are not sent to a node.
CREATE FUNCTION aq_internal.advice_node_queue(s aq_internal.span) RETURNS SETOF jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.advise('node_queue', 'high', format('Messages of distributed queues are not sent to node %s', r.server), format('They wait: %s.', rtrim(r.queue_error, '.')),
		'Remove the cause, on this node or on that one; it is tried again every second.', jsonb_build_array(jsonb_build_array('queue_error in aq.nodes', r.queue_error, '')))
	FROM jsonb_array_elements((s).later -> 'node') l, jsonb_to_record(l) r(server text, queue_error text)
	WHERE r.queue_error IS NOT NULL ORDER BY r.server LIMIT 5
$$;
COMMENT ON FUNCTION aq_internal.advice_node_queue(aq_internal.span) IS 'Internal: rule of the report';

CREATE FUNCTION aq_internal.advice(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(jsonb_agg(a ORDER BY array_position('{high,medium,low}', a ->> 'severity'), n), '[]') FROM (
		SELECT 1 AS n, a FROM aq_internal.advice_hot_object(s) a UNION ALL SELECT 2, a FROM aq_internal.advice_listen_herd(s) a UNION ALL SELECT 3, a FROM aq_internal.advice_one_shard(s) a
		UNION ALL SELECT 4, a FROM aq_internal.advice_message_cache(s) a UNION ALL SELECT 5, a FROM aq_internal.advice_slow_subscriber(s) a
		UNION ALL SELECT 6, a FROM aq_internal.advice_xmin(s) a UNION ALL SELECT 7, a FROM aq_internal.advice_commits(s) a
		UNION ALL SELECT 8, a FROM aq_internal.advice_flow_control(s) a UNION ALL SELECT 9, a FROM aq_internal.advice_worker(s) a
		UNION ALL SELECT 10, a FROM aq_internal.advice_link(s) a UNION ALL SELECT 11, a FROM aq_internal.advice_node(s) a
		UNION ALL SELECT 12, a FROM aq_internal.advice_node_queue(s) a) r(n, a)
$$;
COMMENT ON FUNCTION aq_internal.advice(aq_internal.span) IS 'Internal: advice of a report, the most important first';
