-- Errors.

CREATE FUNCTION aq_internal.raise_error(code text, message text, hint text DEFAULT NULL)
RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_raise';
COMMENT ON FUNCTION aq_internal.raise_error(text, text, text) IS 'Internal: raise the error that has this code in aq_internal.errors';

CREATE FUNCTION aq_internal.clip(value text, length integer)
RETURNS text LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_clip';
COMMENT ON FUNCTION aq_internal.clip(text, integer) IS 'Internal: the beginning of a text, also in a database with encoding SQL_ASCII without a part of a character';

CREATE FUNCTION aq_internal.errors(OUT code text, OUT "sqlstate" text, OUT ora integer, OUT meaning text)
RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_errors_view';
COMMENT ON FUNCTION aq_internal.errors() IS
'Internal: every error, also those that only Oracle''s packages raise, which have no SQLSTATE but their code';

CREATE VIEW aq.errors AS SELECT code, "sqlstate", meaning FROM aq_internal.errors() WHERE "sqlstate" IS NOT NULL;
COMMENT ON VIEW aq.errors IS 'The errors of pgaq';
COMMENT ON COLUMN aq.errors.code IS 'what identifies the error: several errors can have the same SQLSTATE';
COMMENT ON COLUMN aq.errors."sqlstate" IS 'SQLSTATE: a standard one where one fits, otherwise the code';
COMMENT ON COLUMN aq.errors.meaning IS 'what it means';
GRANT SELECT ON aq.errors TO PUBLIC;
