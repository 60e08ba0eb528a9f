-- A helper of the installation, dropped by the made.sql of each extension. It creates a view for pg_monitor from one line per column, "name =
-- expression | meaning" or "name | meaning". A column of a view of sys that shows a column of a view of aq takes its meaning from there: a line without
-- one means the column of that view that has the same name or is the expression, and "| = column" names another. That view of aq is the one that the
-- source begins with, or as_view.
CREATE PROCEDURE aq_internal.make_view(schema text, name text, comment text, source text, columns text, as_view text DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
DECLARE
	model regclass := coalesce(as_view, pg_catalog.substring(source, '^FROM (aq\.\w+)'));
	list text := '';
	meanings text[] := '{}';
	columns_of text[] := '{}';
	line text;
	part text[];
	meaning text;
BEGIN
	FOREACH line IN ARRAY pg_catalog.regexp_split_to_array(pg_catalog.btrim(columns, E' \t\n'), '\s*\n\s*') LOOP
		part := pg_catalog.regexp_match(pg_catalog.regexp_replace(line, '( \| .*)?$', ''), '^(\S+)(?: = (.*))?$');
		meaning := pg_catalog.substring(line, ' \| (.*)$');
		IF meaning IS NULL OR meaning ^@ '= ' THEN
			meaning := (SELECT pg_catalog.col_description(model, a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = model
				AND a.attname::text IN (coalesce(pg_catalog.substr(meaning, 3), part[1]), CASE WHEN meaning IS NULL THEN pg_catalog.substring(part[2], '^(?:\w+\.)?(\w+)$') END)
				ORDER BY a.attname::text = part[1] DESC LIMIT 1);
			IF meaning IS NULL THEN
				RAISE 'no meaning of column "%" of view %.%', part[1], schema, name;
			END IF;
		END IF;
		columns_of := columns_of || part[1];
		meanings := meanings || meaning;
		list := list || pg_catalog.format(E',\n\t%s AS %I', coalesce(part[2], pg_catalog.quote_ident(part[1])), part[1]);
	END LOOP;
	EXECUTE pg_catalog.format(E'CREATE VIEW %I.%I AS\nSELECT%s\n%s', schema, name, pg_catalog.substr(list, 2), source);
	EXECUTE pg_catalog.format('COMMENT ON VIEW %I.%I IS %L', schema, name, comment);
	FOR n IN 1 .. pg_catalog.cardinality(meanings) LOOP
		EXECUTE pg_catalog.format('COMMENT ON COLUMN %I.%I.%I IS %L', schema, name, columns_of[n], meanings[n]);
	END LOOP;
	EXECUTE pg_catalog.format('GRANT SELECT ON %I.%I TO pg_monitor', schema, name);
END $make$;
