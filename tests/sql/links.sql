-- Links: options of servers and user mappings, who may set them, and what is visible.
\pset null null
\pset format unaligned
CREATE ROLE regress_aq_owner;
CREATE ROLE regress_aq_user;
SELECT fdwname, fdwhandler::regproc, fdwvalidator::regproc FROM pg_foreign_data_wrapper WHERE fdwname = 'pgaq_link';

-- servers: libpq's options and ours
CREATE SERVER there FOREIGN DATA WRAPPER pgaq_link OPTIONS (host 'localhost', port '1', dbname 'd', sslmode 'require', service 's', application_name 'a',
	target_session_attrs 'read-write', keepalives_idle '5', connect_timeout '3', request_timeout '5', idle_timeout '7', connections '4', enabled 'off');
CREATE FUNCTION pg_temp.said(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text;
BEGIN
	EXECUTE statement;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(' ', state, message, nullif(detail, ''));
END $$;
SELECT option, pg_temp.said(format('ALTER SERVER there OPTIONS (ADD %s %L)', option, 'x')) FROM unnest(ARRAY['user', 'password', 'sslpassword', 'password_required', 'client_encoding',
	'fallback_application_name', 'replication', 'nonsense']) option;
SELECT option, value, pg_temp.said(format('ALTER SERVER there OPTIONS (SET %s %L)', option, value)) FROM (VALUES ('connections', '0'), ('connections', '17'), ('connections', 'x'),
	('connections', ''), ('connect_timeout', '0'), ('request_timeout', '1e3'), ('idle_timeout', '-1'), ('enabled', 'maybe')) v(option, value);

-- user mappings: users and secrets
CREATE USER MAPPING FOR regress_aq_user SERVER there OPTIONS (user 'u', password 'p', password_required 'true');
SELECT option, pg_temp.said(format('ALTER USER MAPPING FOR regress_aq_user SERVER there OPTIONS (ADD %s %L)', option, 'x')) FROM unnest(ARRAY['host', 'dbname', 'sslmode', 'enabled', 'nonsense']) option;
SELECT pg_temp.said($$ALTER USER MAPPING FOR regress_aq_user SERVER there OPTIONS (SET password '')$$), pg_temp.said($$ALTER USER MAPPING FOR regress_aq_user SERVER there OPTIONS (SET password_required 'x')$$);
-- nothing else has options
SELECT pg_temp.said($$ALTER FOREIGN DATA WRAPPER pgaq_link OPTIONS (ADD host 'x')$$), pg_temp.said($$CREATE FOREIGN TABLE f (a int) SERVER there OPTIONS (queue 'x')$$);
CREATE FOREIGN TABLE f (a int) SERVER there;
SELECT pg_temp.said('SELECT * FROM f');
DROP FOREIGN TABLE f;

-- a role that is not a superuser: neither files of the server's account, nor a link without a password
SET ROLE regress_aq_owner;
SELECT pg_temp.said('CREATE SERVER mine FOREIGN DATA WRAPPER pgaq_link');
RESET ROLE;
GRANT USAGE ON FOREIGN DATA WRAPPER pgaq_link TO regress_aq_owner;
SET ROLE regress_aq_owner;
CREATE SERVER mine FOREIGN DATA WRAPPER pgaq_link OPTIONS (host 'localhost', port '1');
SELECT option, pg_temp.said(format('ALTER SERVER mine OPTIONS (ADD %s %L)', option, 'x')) FROM unnest(ARRAY['passfile', 'service', 'sslcert', 'sslkey', 'gssencmode', 'sslrootcert']) option;
CREATE USER MAPPING FOR regress_aq_owner SERVER mine OPTIONS (user 'u');
SELECT option, pg_temp.said(format('ALTER USER MAPPING FOR regress_aq_owner SERVER mine OPTIONS (ADD %s %L)', option, value)) FROM (VALUES ('password_required', 'false'), ('password_required', 'off'),
	('password_required', 'true'), ('sslcert', 'x'), ('sslkey', 'x'), ('sslpassword', 'x')) v(option, value);
SELECT connected, sqlstate, message, detail, hint FROM aq.check_link('mine');
ALTER USER MAPPING FOR regress_aq_owner SERVER mine OPTIONS (ADD password 'p');
ALTER SERVER mine OPTIONS (DROP sslrootcert);
SELECT connected, sqlstate, message ~ 'port 1 failed', hint FROM aq.check_link('mine');

-- what is wrong with a call
RESET ROLE;
CREATE FOREIGN DATA WRAPPER regress_aq_wrapper;
CREATE SERVER other FOREIGN DATA WRAPPER regress_aq_wrapper;
SELECT t.error(statement) FROM unnest(ARRAY['SELECT aq.check_link(NULL)', $$SELECT aq.check_link('mine', NULL)$$, $$SELECT aq.check_link('mine', '0')$$, $$SELECT aq.check_link('mine', '-1 s')$$,
	$$SELECT aq.check_link('mine', '2 days')$$, $$SELECT aq.check_link('none')$$, $$SELECT aq.check_link('other')$$, $$SELECT aq.check_link('mine')$$,
	'SELECT aq.link_hello(NULL, 1)', 'SELECT aq.link_hello(1000, 1001)', 'SELECT aq.link_hello(0, 0)']) statement;
SET ROLE regress_aq_user;
SELECT t.error($$SELECT aq.check_link('mine')$$);
RESET ROLE;
SELECT protocol, system_identifier = (SELECT system_identifier FROM pg_control_system()), timeline > 0, database_id = (SELECT oid FROM pg_database WHERE datname = current_database()) AS ours FROM aq.link_hello(1, 7);

-- the view: servers that the role may use
SELECT server, owner, state, role, requests, connections FROM aq.links ORDER BY 1;
SET ROLE regress_aq_user;
SELECT count(*) FROM aq.links;
SET ROLE regress_aq_owner;
SELECT server, owner, state, sqlstate FROM aq.links;
RESET ROLE;

DROP SERVER there CASCADE;
DROP SERVER mine CASCADE;
DROP FOREIGN DATA WRAPPER regress_aq_wrapper CASCADE;
REVOKE USAGE ON FOREIGN DATA WRAPPER pgaq_link FROM regress_aq_owner;
DROP ROLE regress_aq_owner, regress_aq_user;
