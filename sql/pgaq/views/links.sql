-- Links to other servers.

CREATE FUNCTION aq_internal.links(OUT server oid, OUT role oid, OUT state text, OUT since timestamptz, OUT next_attempt timestamptz, OUT failures integer,
	OUT connections integer, OUT sqlstate text, OUT error text, OUT detail text, OUT hint text, OUT error_time timestamptz, OUT remote_version text,
	OUT remote_host text, OUT encryption text, OUT system_identifier bigint, OUT timeline bigint, OUT requests bigint, OUT refused bigint, OUT lost bigint, OUT rows bigint,
	OUT bytes_sent bigint, OUT bytes_received bigint, OUT latency_us bigint, OUT latency_p50_us bigint)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'aq_link_views_links';
COMMENT ON FUNCTION aq_internal.links() IS 'Internal: links of this database in shared memory; errors only of servers of the current role, or for members of pg_monitor';

CREATE FUNCTION aq_internal.link_worker(OUT problem text, OUT pid integer)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_link_views_worker';
COMMENT ON FUNCTION aq_internal.link_worker() IS 'Internal: the link worker of this database: why it does not run, its process id';

CALL aq_internal.make_view('aq', 'links', 'Links to other servers: a row for each foreign server of the wrapper pgaq_link on which the current role has USAGE, and for each role whose user mapping is in use. Counts are since the server started',
	$$FROM pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw AND w.fdwname = 'pgaq_link'
	CROSS JOIN aq_internal.link_worker() p LEFT JOIN aq_internal.links() l ON l.server = s.oid
	WHERE pg_catalog.has_server_privilege(s.oid, 'USAGE') OR pg_catalog.pg_has_role('pg_monitor', 'USAGE')$$, $$
	server = s.srvname | name of the foreign server
	owner = pg_catalog.pg_get_userbyid(s.srvowner) | its owner
	role = pg_catalog.pg_get_userbyid(l.role) | role whose user mapping is used; null: the link has not been used
	state = CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_options_to_table(s.srvoptions) o WHERE o.option_name = 'enabled' AND NOT o.option_value::boolean) THEN 'disabled' ELSE coalesce(nullif(l.state, 'disabled'), 'idle') END | disabled: by the option enabled; idle: nothing to send; connecting; connected; backing off: the other server cannot be reached, and is tried again; failed: something must be changed, here or there; it is tried again, too
	since = l.since | when this state began
	next_attempt = l.next_attempt | when it connects again; null: it is connected, or has nothing to send
	failures = coalesce(l.failures, 0) | failed attempts since it last worked
	sqlstate = l.sqlstate | SQLSTATE of its latest error; null: none
	error = l.error | what it says; only for the server's owner and members of pg_monitor
	detail = l.detail | more about it; for the same roles
	hint = l.hint | what helps; for the same roles
	error_time = l.error_time | when that was
	problem = p.problem | why no link of this database works; null: nothing is wrong
	remote_version = l.remote_version | version of pgaq there; null: it has not been connected; likewise the next four
	remote_host = l.remote_host | address and port
	encryption = l.encryption | verified: TLS, and the certificate is that of the host; unverified: TLS with whoever has answered; none; local: not needed, the other server is on this machine
	system_identifier = l.system_identifier | of the server there, as in pg_control_system()
	timeline = l.timeline | of its WAL, when the link connected
	connections = coalesce(l.connections, 0) | connections now
	requests = coalesce(l.requests, 0) | requests that were answered
	refused = coalesce(l.refused, 0) | of them, with an error
	lost = coalesce(l.lost, 0) | requests without an answer
	rows = coalesce(l.rows, 0) | messages in the requests that were executed
	bytes_sent = coalesce(l.bytes_sent, 0) | bytes of requests
	bytes_received = coalesce(l.bytes_received, 0) | bytes of answers, in memory
	latency_us = l.latency_us | average time between a request and its answer, in microseconds
	latency_p50_us = l.latency_p50_us | half of them took at most this long, in microseconds; a power of two
	pid = p.pid | process id of the link worker; null: it does not run
$$);
GRANT SELECT ON aq.links TO PUBLIC;
