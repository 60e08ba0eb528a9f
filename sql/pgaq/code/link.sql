-- Links to other servers: foreign servers of the wrapper pgaq_link.

CREATE FUNCTION aq_internal.link_options(options text[], catalog oid)
RETURNS void LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_link_options_validator';
COMMENT ON FUNCTION aq_internal.link_options(text[], oid) IS 'Internal: the validator of the foreign data wrapper pgaq_link';

CREATE FOREIGN DATA WRAPPER pgaq_link NO HANDLER VALIDATOR aq_internal.link_options;
COMMENT ON FOREIGN DATA WRAPPER pgaq_link IS 'Links to databases with pgaq, of this server or others. GRANT USAGE ON it to roles that may create links';

CREATE FUNCTION aq.link_hello(oldest integer, newest integer, OUT protocol integer, OUT system_identifier bigint, OUT timeline bigint, OUT database_id oid)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_link_views_hello';
COMMENT ON FUNCTION aq.link_hello(integer, integer) IS
'The handshake, called by links of other servers.
oldest, newest: versions of the protocol that the caller knows
protocol: the one to use
system_identifier: of this server
timeline: of its WAL
database_id: OID of this database
Errors 22004, AQ160';

CREATE FUNCTION aq.check_link(server name, timeout interval DEFAULT '30 seconds', OUT connected boolean, OUT sqlstate text, OUT message text,
	OUT detail text, OUT hint text, OUT remote_version text, OUT remote_host text, OUT encryption text, OUT milliseconds double precision)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_link_check';
COMMENT ON FUNCTION aq.check_link(name, interval) IS
'Try a link now, as the current role, with a connection of its own, and wait for the result.
server: a foreign server of the wrapper pgaq_link
timeout: at most a day
connected: does the link work, and is it enabled
sqlstate, message, detail, hint: why it does not
remote_version: version of pgaq there
remote_host: address and port
encryption: as in aq.links
milliseconds: time to connect
Errors 22004, 22023, 42501, 42704, 42809, 53400';
