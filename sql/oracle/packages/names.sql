-- C functions for the packages, names and agents. The packages run with the privileges of their callers, so the functions that they call are in a
-- schema that all roles may use; each function checks its arguments and the privileges of the role.

CREATE FUNCTION sys._split_name(name text) RETURNS text[]
LANGUAGE c STRICT IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_split';
COMMENT ON FUNCTION sys._split_name(text) IS
'Internal: [schema.]name as schema (null if none) and name, lower case unless quoted; null if malformed';

-- Functions of the packages resolve operators and functions in pg_catalog, and names passed by the caller in the caller's search_path. They have
-- search_path "pg_catalog, pg_catalog, pg_temp", by which src/oracle/caller_path.c recognizes them.
CREATE FUNCTION sys._callers_path() RETURNS text
LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_view';
COMMENT ON FUNCTION sys._callers_path() IS 'Internal: search_path of the caller of a package';

CREATE FUNCTION sys._callers_schemas(implicit boolean DEFAULT false) RETURNS text[]
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_schema_names';
COMMENT ON FUNCTION sys._callers_schemas(boolean) IS 'Internal: current_schemas() of the caller of a package';

CREATE FUNCTION sys._callers_type(name text) RETURNS regtype
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_type';
COMMENT ON FUNCTION sys._callers_type(text) IS 'Internal: to_regtype() of the caller of a package';

CREATE FUNCTION sys._resolve_queue(name text, privilege text) RETURNS text
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_resolve';
COMMENT ON FUNCTION sys._resolve_queue(text, text) IS
'Internal: native name of a queue that the current role may use (enqueue, dequeue or any); null if there is none';

CREATE FUNCTION sys._describe_queue(name text, OUT payload_type regtype, OUT multiple_consumers boolean,
	OUT enqueue_enabled boolean, OUT dequeue_enabled boolean, OUT exception boolean, OUT queue_table_id integer, OUT non_persistent boolean)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_describe_queue';
COMMENT ON FUNCTION sys._describe_queue(text) IS 'Internal: a queue by its native name, as the session knows it';

CREATE FUNCTION sys._queue_consumers(name text, OUT "position" integer, OUT consumer text, OUT subscriber boolean, OUT rule text,
	OUT transformation text, OUT delivery_mode integer, OUT created timestamptz)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_consumers';
COMMENT ON FUNCTION sys._queue_consumers(text) IS 'Internal: subscribers and recipients of a queue by its native name';

CREATE FUNCTION sys._run_ddl(command text) RETURNS void
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_sql_run_ddl';
COMMENT ON FUNCTION sys._run_ddl(text) IS 'Internal: run a command that makes or drops an object of this node; Citus leaves it alone';

CREATE FUNCTION sys._set_transformation(queue_name text, consumer text, transformation text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_set_transformation';
COMMENT ON FUNCTION sys._set_transformation(text, text, text) IS 'Internal: what dbms_aqadm does for a subscriber''s transformation';

CREATE FUNCTION sys._payload_type(name text) RETURNS regtype
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_payload_type';
COMMENT ON FUNCTION sys._payload_type(text) IS 'Internal: payload type of a queue by its native name';

CREATE FUNCTION sys._oracle_delivery(delivery_mode integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE delivery_mode WHEN 1 THEN 'PERSISTENT' WHEN 2 THEN 'BUFFERED' WHEN 3 THEN 'PERSISTENT_OR_BUFFERED' END;
COMMENT ON FUNCTION sys._oracle_delivery(integer) IS 'Internal: a delivery mode as Oracle''s views spell it';

CREATE FUNCTION sys._oracle_case(name text) RETURNS text
LANGUAGE c STRICT IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_oracle_case_view';
COMMENT ON FUNCTION sys._oracle_case(text) IS
'Internal: a name as Oracle''s views spell it: in upper case, unless it had to be quoted';

CREATE FUNCTION sys._oracle_name(native text) RETURNS text
LANGUAGE c STRICT IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_oracle_view';
COMMENT ON FUNCTION sys._oracle_name(text) IS
'Internal: a native name as a program can give it back: in upper case, or in quotes where it needs them';

CREATE FUNCTION sys._oracle_quoted_part(name text) RETURNS text
LANGUAGE sql STRICT IMMUTABLE PARALLEL UNSAFE
RETURN '"' || replace(sys._oracle_case($1), '"', '""') || '"';
COMMENT ON FUNCTION sys._oracle_quoted_part(text) IS 'Internal: a name in quotes, in upper case unless it had to be quoted';

CREATE FUNCTION sys._oracle_quoted(native text) RETURNS text
LANGUAGE sql STRICT IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN strpos($1, '.') > 0 THEN sys._oracle_quoted_part(split_part($1, '.', 1)) || '.' || sys._oracle_quoted_part(substr($1, strpos($1, '.') + 1))
	ELSE sys._oracle_quoted_part($1) END;
COMMENT ON FUNCTION sys._oracle_quoted(text) IS
'Internal: a native name as Oracle''s notifications spell it: all parts in quotes, in upper case unless they had to be quoted';

CREATE FUNCTION sys._queue_in_use(queue_name text) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_stop_in_use';
COMMENT ON FUNCTION sys._queue_in_use(text) IS 'Internal: do running transactions use the queue?';

CREATE FUNCTION sys._purge_processed(queue_name text, consumer text, ids uuid[]) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_admin_purge_processed';
COMMENT ON FUNCTION sys._purge_processed(text, text, uuid[]) IS 'Internal: purge processed messages that are retained: those with these ids for a consumer; ids null: all of the queue';

-- Errors

CREATE VIEW sys.oracle_errors AS SELECT code AS "sqlstate", ora, meaning FROM aq_internal.errors();
COMMENT ON VIEW sys.oracle_errors IS 'Every error that Oracle''s packages raise';
COMMENT ON COLUMN sys.oracle_errors."sqlstate" IS 'SQLSTATE';
COMMENT ON COLUMN sys.oracle_errors.ora IS 'Oracle''s number; null: Oracle has none';
COMMENT ON COLUMN sys.oracle_errors.meaning IS 'what it means';
GRANT SELECT ON sys.oracle_errors TO PUBLIC;

CREATE FUNCTION sys.sqlcode("sqlstate" text) RETURNS integer
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT -e.ora FROM aq_internal.errors() e WHERE e.code = $1;
END;
COMMENT ON FUNCTION sys.sqlcode(text) IS
'What Oracle''s SQLCODE is for an SQLSTATE: its number, negative; null when it has none';

CREATE FUNCTION sys._raise_error(code text, message text, hint text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_raise';
COMMENT ON FUNCTION sys._raise_error(text, text, text) IS 'Internal: raise the error that has this code';

-- Agents

CREATE FUNCTION sys.aq$_agent(name text, address text, protocol numeric) RETURNS sys.aq$_agent
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ROW(nullif($1, ''), nullif($2, ''), $3)::sys.aq$_agent;
COMMENT ON FUNCTION sys.aq$_agent(text, text, numeric) IS 'Make an agent, as Oracle''s constructor; an empty text is a null';

CREATE FUNCTION sys._oracle_address(native text) RETURNS text
LANGUAGE sql STRICT IMMUTABLE PARALLEL UNSAFE
RETURN concat(sys._oracle_name(nullif(split_part($1, '@', 1), '')), '@' || sys._oracle_name(substring($1, '@(.*)$')));
COMMENT ON FUNCTION sys._oracle_address(text) IS 'Internal: the same of an address: a queue, queue@server, or @server';

CREATE FUNCTION sys._agent_of(consumer text) RETURNS sys.aq$_agent
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN $1 ~ '(^| )-> ' THEN sys.aq$_agent(sys._oracle_case(substring($1, '^(.*?) -> ')), sys._oracle_address(substring($1, '(?:^| )-> (.*)$')), 0)
	ELSE sys.aq$_agent(sys._oracle_case($1), NULL, NULL) END;
COMMENT ON FUNCTION sys._agent_of(text) IS 'Internal: the agent that a consumer of a queue stands for, by its native name; with an address if it is at another queue';

CREATE FUNCTION sys._check_agent(queue text, agent sys.aq$_agent) RETURNS text
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_oracle_options_agent';
COMMENT ON FUNCTION sys._check_agent(text, sys.aq$_agent) IS
'Internal: native name of a consumer of this queue, or an error';
