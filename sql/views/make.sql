-- Two helpers of the files in this folder, which sql/views/made.sql drops again.
--
-- A C function without arguments that returns rows, about so many: _NAME over the C function SYMBOL, for pg_monitor ...
CREATE PROCEDURE aq._make_source(name text, symbol text, comment text, columns text, expected integer DEFAULT 100)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
BEGIN
	EXECUTE pg_catalog.format($$CREATE FUNCTION aq.%I() RETURNS TABLE (%s)
		LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS %s AS 'MODULE_PATHNAME', %L$$, '_' || name, columns, expected, symbol);
	EXECUTE pg_catalog.format('COMMENT ON FUNCTION aq.%I() IS %L', '_' || name, comment);
	EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION aq.%I() FROM PUBLIC', '_' || name);
	EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION aq.%I() TO pg_monitor', '_' || name);
END $make$;

-- ... and a view: a line per column, "name = expression | meaning", "name | meaning".
CREATE PROCEDURE aq._make_view(name text, comment text, source text, columns text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
DECLARE
	lines text[] := pg_catalog.regexp_split_to_array(pg_catalog.btrim(columns, E' \t\n'), '\s*\n\s*');
	list text := '';
	part text[];
BEGIN
	FOR n IN 1 .. pg_catalog.cardinality(lines) LOOP
		part := pg_catalog.regexp_match(lines[n], '^(\S+)(?: = (.*?))? \| (.*)$');
		list := list || pg_catalog.format(E',\n\t%s AS %I', coalesce(part[2], pg_catalog.quote_ident(part[1])), part[1]);
	END LOOP;
	EXECUTE pg_catalog.format(E'CREATE VIEW sys.%I AS\nSELECT%s\n%s', name, pg_catalog.substr(list, 2), source);
	EXECUTE pg_catalog.format('COMMENT ON VIEW sys.%I IS %L', name, comment);
	FOR n IN 1 .. pg_catalog.cardinality(lines) LOOP
		part := pg_catalog.regexp_match(lines[n], '^(\S+)(?: = (.*?))? \| (.*)$');
		EXECUTE pg_catalog.format('COMMENT ON COLUMN sys.%I.%I IS %L', name, part[1], part[3]);
	END LOOP;
	EXECUTE pg_catalog.format('GRANT SELECT ON sys.%I TO pg_monitor', name);
END $make$;
