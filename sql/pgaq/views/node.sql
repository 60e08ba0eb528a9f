-- Nodes.

CREATE FUNCTION aq_internal.node_state(node_number integer, OUT state text, OUT last_seen timestamptz, OUT contested timestamptz, OUT latency_us bigint, OUT failures integer,
	OUT mutual boolean, OUT protocol integer, OUT version text, OUT error_time timestamptz, OUT sqlstate text, OUT error text, OUT hint text, OUT forwarded bigint, OUT batches bigint, OUT reported bigint, OUT granted bigint, OUT returned bigint,
	OUT queue_error text, OUT queue_error_time timestamptz)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_node_views_state';
COMMENT ON FUNCTION aq_internal.node_state(integer) IS 'Internal: state of another node in shared memory; errors only for members of pg_monitor';

CREATE FUNCTION aq_internal.node_own(OUT system_identifier bigint, OUT database_id oid, OUT timeline bigint, OUT started timestamptz)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_node_views_own';
COMMENT ON FUNCTION aq_internal.node_own() IS 'Internal: this server and this database';

CALL aq_internal.make_view('aq', 'nodes', 'Nodes: this database, and those that were added with aq.add_node and on whose foreign server the current role has USAGE; members of pg_monitor see all',
	$$FROM (SELECT n.server_name, n.role, n.node_id, n.timeline, n.started, n.added, t.state, t.last_seen, t.contested, t.latency_us, t.failures, t.mutual, t.protocol, t.version,
			t.error_time, t.sqlstate, t.error, t.hint, s.oid AS server, t.forwarded, t.batches, t.reported, t.granted, t.returned, t.queue_error, t.queue_error_time
		FROM aq_internal.node n LEFT JOIN (pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw AND w.fdwname = 'pgaq_link') ON s.srvname = n.server_name
			LEFT JOIN LATERAL aq_internal.node_state(n.node_number) t ON true
		WHERE pg_catalog.pg_has_role('pg_monitor', 'USAGE') OR (s.oid IS NOT NULL AND pg_catalog.has_server_privilege(s.oid, 'USAGE'))
		UNION ALL SELECT NULL, NULL, i.node_id, o.timeline, o.started, i.created, CASE WHEN (i.system_identifier, i.database_id) = (o.system_identifier, o.database_id) THEN 'this node' ELSE 'copy' END,
			NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
		FROM aq_internal.node_identity i CROSS JOIN aq_internal.node_own() o) n$$, $$
	server = n.server_name | foreign server of the link to it; null: this database
	node_id = n.node_id | its identity, which survives restarts and failovers; null: it has never answered
	state = CASE WHEN n.server_name IS NOT NULL AND n.server IS NULL THEN 'unreachable' ELSE coalesce(n.state, 'unknown') END | this node; copy: this database is a copy of the node, and does not act as it: see aq.reset_node; reachable: it has answered a heartbeat within pgaq.node_timeout; refused: it is reached, and one of the two refuses the other, see error; unreachable; unknown: no heartbeat has been sent yet, or pgaq.max_nodes is too small
	mutual = n.mutual | has the other node added this one, too; null: it has not answered
	last_seen = n.last_seen | when it last answered; null: not since this server was started
	lag = pg_catalog.clock_timestamp() - n.last_seen | time since then
	latency_us = n.latency_us | time between the last heartbeat and its answer, in microseconds
	failures = coalesce(n.failures, 0) | heartbeats without a good answer, in a row
	sqlstate = CASE WHEN n.server_name IS NOT NULL AND n.server IS NULL THEN '42704' ELSE n.sqlstate END | SQLSTATE of its latest error; null: none
	error = CASE WHEN n.server_name IS NOT NULL AND n.server IS NULL THEN 'there is no foreign server of this name and of the wrapper pgaq_link' ELSE n.error END | what it says; only for members of pg_monitor
	hint = CASE WHEN n.state = 'copy' THEN 'Call aq.reset_node().' WHEN n.server_name IS NOT NULL AND n.server IS NULL THEN 'Create it, or call aq.remove_node.' ELSE n.hint END | what helps; for the same roles
	error_time = n.error_time | when that was
	queue_error = n.queue_error | latest error with messages of distributed queues; null: there is none now; only for members of pg_monitor
	queue_error_time = n.queue_error_time | when that was
	forwarded = n.forwarded | messages of this node that were sent to it since this server was started, and arrived
	batches = n.batches | requests with these
	reported = n.reported | messages of this node that were consumed there
	granted = n.granted | units that it was given
	returned = n.returned | units that came back
	contested = n.contested | when another server than the one that is known last had its identity; null: not since this server was started
	role = pg_catalog.pg_get_userbyid(n.role) | role that has added it, whose user mapping is used
	version = n.version | version of pgaq there
	protocol = n.protocol | version of the protocol of links that the two have agreed on
	timeline = n.timeline | timeline of its server's WAL: grows when a standby is promoted or a backup is restored
	started = n.started | when its server was started
	added = n.added | when it was added; of this database: when it became a node
$$);
GRANT SELECT ON aq.nodes TO PUBLIC;

CREATE FUNCTION aq_internal.unit_messages(queue_id integer, shard integer, consumer_number bigint, OUT leased bigint, OUT ready bigint)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_node_views_unit';
COMMENT ON FUNCTION aq_internal.unit_messages(integer, integer, bigint) IS 'Internal: messages of a consumer in a shard, as far as memory knows them';

CALL aq_internal.make_view('aq', 'node_units', 'Units of distributed queues that are not at their origin: those of this node that others hold, and those of others that this one holds. Of the queues that the current role can use; members of pg_monitor see all',
	$$FROM (SELECT queue_id, shard, consumer_number, 'lent' AS direction, holder AS node_id, shard AS origin_shard, epoch, granted AS since, recalled IS NOT NULL AS returns FROM aq_internal.node_unit WHERE holder NOT IN (SELECT node_id FROM aq_internal.node_identity)
		UNION ALL SELECT queue_id, shard, consumer_number, 'held', origin, origin_shard, epoch, begun, returns FROM aq_internal.node_held WHERE origin NOT IN (SELECT node_id FROM aq_internal.node_identity)) u
		JOIN aq_internal.queue q ON q.queue_id = u.queue_id AND (pg_catalog.pg_has_role('pg_monitor', 'USAGE') OR aq_internal.may(q.rights_id, 'ANY'))
		LEFT JOIN aq_internal.subscriber s ON s.queue_id = u.queue_id AND s.number = u.consumer_number
		LEFT JOIN LATERAL (SELECT server_name FROM aq_internal.node n WHERE n.node_id = u.node_id ORDER BY node_number LIMIT 1) n ON true
		LEFT JOIN LATERAL aq_internal.unit_messages(u.queue_id, u.shard, u.consumer_number) m ON true$$, $$
	queue_name = q.queue_name | the queue
	shard = u.shard::integer | number of the shard on this node
	consumer = s.consumer | the consumer; null: the queue has one, without a name
	direction = u.direction | lent: another node holds it; held: it belongs to another node
	server = n.server_name | foreign server of the link to that node; null: it was removed
	node_id = u.node_id | identity of that node
	origin_shard = u.origin_shard::integer | number of the shard on the node to which it belongs
	epoch = u.epoch | number of the grant
	since = u.since | when it was granted; held: when its first messages came
	returns = u.returns | it is on its way back to its origin
	sent = CASE u.direction WHEN 'lent' THEN m.leased END | messages that the other node has, and not reported as consumed; only of units that are lent
	ready = m.ready | lent: messages not sent yet; held: messages that can be dequeued here
$$);
GRANT SELECT ON aq.node_units TO PUBLIC;
