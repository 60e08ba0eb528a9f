-- A helper of the installation, dropped by the made.sql of each extension. It creates a view for pg_monitor from one line per column, "name =
-- expression | meaning" or "name | meaning".
CREATE PROCEDURE aq_internal.make_view(schema text, name text, comment text, source text, columns text)
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
	EXECUTE pg_catalog.format(E'CREATE VIEW %I.%I AS\nSELECT%s\n%s', schema, name, pg_catalog.substr(list, 2), source);
	EXECUTE pg_catalog.format('COMMENT ON VIEW %I.%I IS %L', schema, name, comment);
	FOR n IN 1 .. pg_catalog.cardinality(lines) LOOP
		part := pg_catalog.regexp_match(lines[n], '^(\S+)(?: = (.*?))? \| (.*)$');
		EXECUTE pg_catalog.format('COMMENT ON COLUMN %I.%I.%I IS %L', schema, name, part[1], part[3]);
	END LOOP;
	EXECUTE pg_catalog.format('GRANT SELECT ON %I.%I TO pg_monitor', schema, name);
END $make$;
