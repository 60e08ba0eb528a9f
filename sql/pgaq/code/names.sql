-- C functions for the packages: names, errors, and agents.

CREATE FUNCTION aq.raise_error("sqlstate" text, message text, hint text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_raise';
COMMENT ON FUNCTION aq.raise_error(text, text, text) IS
'Raise one of pgaq''s errors, with Oracle''s number where it has one; the view aq.errors lists them';

CREATE FUNCTION aq_internal.errors(OUT "sqlstate" text, OUT ora integer, OUT meaning text)
RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_view';
COMMENT ON FUNCTION aq_internal.errors() IS 'Internal: what aq.errors shows';

CREATE VIEW aq.errors AS SELECT "sqlstate", ora, meaning FROM aq_internal.errors();
COMMENT ON VIEW aq.errors IS 'Every error of pgaq';
COMMENT ON COLUMN aq.errors."sqlstate" IS 'SQLSTATE';
COMMENT ON COLUMN aq.errors.ora IS 'Oracle''s number; null: Oracle has none';
COMMENT ON COLUMN aq.errors.meaning IS 'what it means';
GRANT SELECT ON aq.errors TO PUBLIC;

CREATE FUNCTION aq.sqlcode("sqlstate" text) RETURNS integer
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT -e.ora FROM aq_internal.errors() e WHERE e."sqlstate" = $1;
END;
COMMENT ON FUNCTION aq.sqlcode(text) IS
'What Oracle''s SQLCODE is for an SQLSTATE: its number, negative; null when it has none';

CREATE FUNCTION aq_internal.split_name(name text) RETURNS text[]
LANGUAGE c STRICT IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_split';
COMMENT ON FUNCTION aq_internal.split_name(text) IS
'Internal: [schema.]name as schema (null if none) and name, lower case unless quoted; null if malformed';

-- Functions of the packages resolve operators and functions in pg_catalog, and names passed by the caller in the caller's search_path. They have
-- search_path "pg_catalog, pg_catalog, pg_temp", by which src/queue/catalog/caller_path.c recognizes them.
CREATE FUNCTION aq_internal.callers_path() RETURNS text
LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_view';
COMMENT ON FUNCTION aq_internal.callers_path() IS 'Internal: search_path of the caller of a package';

CREATE FUNCTION aq_internal.callers_schemas(implicit boolean DEFAULT false) RETURNS text[]
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_schema_names';
COMMENT ON FUNCTION aq_internal.callers_schemas(boolean) IS 'Internal: current_schemas() of the caller of a package';

CREATE FUNCTION aq_internal.callers_type(name text) RETURNS regtype
LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_caller_path_type';
COMMENT ON FUNCTION aq_internal.callers_type(text) IS 'Internal: to_regtype() of the caller of a package';

CREATE FUNCTION aq_internal.resolve_queue(name text, privilege text) RETURNS text
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_resolve';
COMMENT ON FUNCTION aq_internal.resolve_queue(text, text) IS
'Internal: native name of a queue that the current role may use (enqueue, dequeue or any); null if there is none';

CREATE FUNCTION aq_internal.describe_queue(name text, OUT payload_type regtype, OUT multiple_consumers boolean,
	OUT enqueue_enabled boolean, OUT dequeue_enabled boolean, OUT exception boolean, OUT queue_table_id integer)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_describe_queue';
COMMENT ON FUNCTION aq_internal.describe_queue(text) IS 'Internal: a queue by its native name, as the session knows it';

CREATE FUNCTION aq_internal.queue_consumers(name text, OUT "position" integer, OUT consumer text, OUT subscriber boolean, OUT rule text,
	OUT transformation text, OUT delivery_mode integer)
RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_consumers';
COMMENT ON FUNCTION aq_internal.queue_consumers(text) IS 'Internal: subscribers and recipients of a queue by its native name';

CREATE FUNCTION aq_internal.queue_counters(name text, OUT enqueued bigint, OUT dequeued bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_counters_queue';
COMMENT ON FUNCTION aq_internal.queue_counters(text) IS
'Internal: messages enqueued, and (message, consumer) pairs done with, since the queue came into use';

CREATE FUNCTION aq_internal.queue_traffic(name text, OUT last_enqueue timestamptz, OUT last_dequeue timestamptz, OUT consumed bigint,
	OUT latency bigint, OUT last_latency bigint, OUT dequeue_transactions bigint, OUT executions bigint, OUT dequeue_elapsed bigint,
	OUT dequeue_cpu bigint, OUT browsed bigint, OUT failed bigint, OUT rule_failures bigint, OUT last_rule_failure timestamptz,
	OUT rule_error bigint, OUT since timestamptz, OUT last_failure timestamptz,
	OUT last_ready timestamptz, OUT made_ready bigint, OUT enqueue_transactions bigint, OUT enqueued_expiry bigint,
	OUT enqueued_delay bigint, OUT enqueue_elapsed bigint, OUT enqueue_cpu bigint, OUT rules_elapsed bigint,
	OUT transformations_elapsed bigint)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_counters_traffic';
COMMENT ON FUNCTION aq_internal.queue_traffic(text) IS 'Internal: what else is counted of a queue since it came into use';

CREATE FUNCTION aq_internal.subscriber_transformation(name text, consumer text, OUT transformation text, OUT chosen_by oid)
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_transformation';
COMMENT ON FUNCTION aq_internal.subscriber_transformation(text, text) IS 'Internal: the transformation of a subscriber and the role that chose it; null: none';

CREATE FUNCTION aq_internal.set_transformation(queue_name text, consumer text, transformation text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_subscriber_set_transformation';
COMMENT ON FUNCTION aq_internal.set_transformation(text, text, text) IS 'Internal: what dbms_aqadm does for a subscriber''s transformation';

CREATE FUNCTION aq_internal.payload_type(name text) RETURNS regtype
LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_names_payload_type';
COMMENT ON FUNCTION aq_internal.payload_type(text) IS 'Internal: payload type of a queue by its native name';

CREATE FUNCTION aq_internal.oracle_delivery(delivery_mode integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE delivery_mode WHEN 1 THEN 'PERSISTENT' WHEN 2 THEN 'BUFFERED' WHEN 3 THEN 'PERSISTENT_OR_BUFFERED' END;
COMMENT ON FUNCTION aq_internal.oracle_delivery(integer) IS 'Internal: a delivery mode as Oracle''s views spell it';

CREATE FUNCTION aq_internal.oracle_case(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN name = lower(name) THEN upper(name) ELSE name END;
COMMENT ON FUNCTION aq_internal.oracle_case(text) IS
'Internal: a name as Oracle''s views spell it: in upper case, unless it had to be quoted';

CREATE FUNCTION aq_internal.oracle_name(native text) RETURNS text
LANGUAGE sql STRICT IMMUTABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT string_agg(CASE WHEN (aq_internal.split_name(upper(part)))[2] = part THEN upper(part)
			ELSE '"' || replace(part, '"', '""') || '"' END, '.' ORDER BY n)
	FROM unnest(CASE WHEN strpos(native, '.') > 0
		THEN ARRAY[split_part(native, '.', 1), substr(native, strpos(native, '.') + 1)]
		ELSE ARRAY[native] END) WITH ORDINALITY AS p (part, n);
END;
COMMENT ON FUNCTION aq_internal.oracle_name(text) IS
'Internal: a native name as a program can give it back: in upper case, or in quotes where it needs them';
