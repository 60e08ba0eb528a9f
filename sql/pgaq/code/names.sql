-- Errors.

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
