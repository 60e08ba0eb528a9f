-- A helper of the files in this folder, dropped by made.sql. It creates function NAME for the C function SYMBOL, without arguments, which returns
-- about this number of rows, for pg_monitor.
CREATE PROCEDURE aq_internal.make_source(name text, symbol text, comment text, columns text, expected integer DEFAULT 100)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
BEGIN
	EXECUTE pg_catalog.format($$CREATE FUNCTION aq_internal.%I() RETURNS TABLE (%s)
		LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS %s AS 'MODULE_PATHNAME', %L$$, name, columns, expected, symbol);
	EXECUTE pg_catalog.format('COMMENT ON FUNCTION aq_internal.%I() IS %L', name, comment);
	EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION aq_internal.%I() FROM PUBLIC', name);
	EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION aq_internal.%I() TO pg_monitor', name);
END $make$;
