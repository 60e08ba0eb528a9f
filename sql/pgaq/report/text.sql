-- The report model as text.

CREATE FUNCTION aq_internal.text_cell(value jsonb, column_of jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' AND column_of ->> 'type' IN ('number', 'percent')
	THEN aq_internal.report_number(value::numeric, (column_of ->> 'digits')::integer)
	ELSE (SELECT coalesce(CASE WHEN length(t) > 80 THEN aq_internal.clip(t, 78) || '..' ELSE t END, '') FROM (SELECT aq_internal.report_text(value #>> '{}') AS t) s) END;
COMMENT ON FUNCTION aq_internal.text_cell(jsonb, jsonb) IS 'Internal: a cell of a report in text';

CREATE FUNCTION aq_internal.text_wrap(words text, width integer, indent text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN string_to_table(rtrim(regexp_replace(aq_internal.report_text(words), format('(.{1,%s})(\s+|$)', width), indent || E'\\1\n', 'g'), E'\n'), E'\n');
COMMENT ON FUNCTION aq_internal.text_wrap(text, integer, text) IS 'Internal: words in lines';

-- The lines of a table: names, units, rules, rows.
CREATE FUNCTION aq_internal.text_table(section jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH c AS (SELECT c, n, c ->> 'type' IN ('number', 'percent') AS is_right FROM jsonb_array_elements(section -> 'columns') WITH ORDINALITY u(c, n)),
	cells AS (
		SELECT -2 AS line, n, c ->> 'name' AS cell FROM c UNION ALL SELECT -1, n, coalesce('(' || nullif(c ->> 'unit', '') || ')', '') FROM c
		UNION ALL SELECT l.n, c.n, aq_internal.text_cell(l.l -> (c.n - 1)::integer, c.c) FROM jsonb_array_elements(section -> 'rows') WITH ORDINALITY l(l, n), c),
	w AS (SELECT n, max(length(cell))::integer AS width FROM cells GROUP BY n)
	SELECT rtrim(string_agg(format('%*s', CASE WHEN is_right THEN width ELSE -width END, cell), '  ' ORDER BY n))
	FROM (TABLE cells UNION ALL SELECT 0, n, repeat('-', width) FROM w) l JOIN w USING (n) JOIN c USING (n)
	WHERE jsonb_array_length(section -> 'rows') > 0 GROUP BY line HAVING line > 0 OR max(cell) <> '' ORDER BY line
$$;
COMMENT ON FUNCTION aq_internal.text_table(jsonb) IS 'Internal: the table of a section as text';

CREATE FUNCTION aq_internal.text_lines(model jsonb) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	part jsonb;
BEGIN
	RETURN QUERY VALUES (model ->> 'title'), (repeat('=', length(model ->> 'title')));
	RETURN QUERY SELECT format('%s  %s', rpad(h ->> 0, (max(length(h ->> 0)) OVER ())::integer), h ->> 1) FROM jsonb_array_elements(model -> 'header') h;
	IF model -> 'advice' <> '[]' THEN
		RETURN QUERY VALUES (''), ('Advice'), ('======');
		FOR part IN SELECT a FROM jsonb_array_elements(model -> 'advice') a LOOP
			RETURN NEXT format('[%s] %s', part ->> 'severity', part ->> 'title');
			RETURN QUERY SELECT l FROM unnest(ARRAY[format('Why: %s', part ->> 'why'), format('Do: %s', part ->> 'do')]) words, aq_internal.text_wrap(words, 110, '    ') l;
			RETURN QUERY SELECT format('    - %s: %s', f ->> 0, concat_ws(' ', aq_internal.advice_figure(f -> 1), nullif(f ->> 2, ''))) FROM jsonb_array_elements(part -> 'figures') f;
		END LOOP;
	END IF;
	FOR part IN SELECT s FROM jsonb_array_elements(model -> 'sections') s LOOP
		RETURN QUERY VALUES (''), (part ->> 'title'), (repeat('=', length(part ->> 'title')));
		RETURN QUERY SELECT l FROM jsonb_array_elements_text(part -> 'notes') note, aq_internal.text_wrap(note, 118, '  ') l;
		RETURN QUERY SELECT aq_internal.text_table(part);
		IF NOT FOUND THEN
			RETURN NEXT '(none)';
		END IF;
	END LOOP;
END $$;
COMMENT ON FUNCTION aq_internal.text_lines(jsonb) IS 'Internal: a report as lines';

-- Security definer: what it calls is not for other roles. It reads nothing but its argument.
CREATE FUNCTION aq.report_text(model jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.report_text(line) FROM aq_internal.text_lines(aq_internal.report_checked(model)) line
$$;
COMMENT ON FUNCTION aq.report_text(jsonb) IS
'A report as lines of text.
model: the result of aq.report_awr or a similar function';

CREATE FUNCTION aq.report_html(model jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT format(E'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>%s</title></head>\n<body><pre>%s</pre></body>\n</html>\n',
		min(line) FILTER (WHERE n = 1), string_agg(line, E'\n' ORDER BY n))
	FROM (SELECT replace(replace(replace(t, '&', '&amp;'), '<', '&lt;'), '>', '&gt;') AS line, n FROM aq.report_text(model) WITH ORDINALITY r(t, n)) l);
COMMENT ON FUNCTION aq.report_html(jsonb) IS
'The text of aq.report_text in an HTML page; pgaq report with the option --html makes one with charts
  and tables.
model: the result of aq.report_awr or a similar function';
