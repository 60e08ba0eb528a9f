-- The report model drawn as text.

CREATE FUNCTION aq_internal.text_cell(value jsonb, column_of jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' AND column_of ->> 'type' IN ('number', 'percent')
	THEN aq_internal.report_number(value::numeric, (column_of ->> 'digits')::integer)
	ELSE (SELECT coalesce(CASE WHEN length(t) > 80 THEN aq_internal.clip(t, 78) || '..' ELSE t END, '') FROM (SELECT aq_internal.report_text(value #>> '{}') AS t) s) END;
COMMENT ON FUNCTION aq_internal.text_cell(jsonb, jsonb) IS 'Internal: a cell of a report in text';

CREATE FUNCTION aq_internal.text_wrap(words text, width integer, indent text) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	word text;
	line text := '';
BEGIN
	FOREACH word IN ARRAY regexp_split_to_array(words, '\s+') LOOP
		IF line <> '' AND length(line) + 1 + length(word) > width THEN
			RETURN NEXT indent || line;
			line := word;
		ELSE
			line := CASE WHEN line = '' THEN word ELSE line || ' ' || word END;
		END IF;
	END LOOP;
	RETURN NEXT indent || line;
END $$;
COMMENT ON FUNCTION aq_internal.text_wrap(text, integer, text) IS 'Internal: words in lines';

-- The lines of a table: names, units, rules, rows.
CREATE FUNCTION aq_internal.text_table(section jsonb) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	columns jsonb := section -> 'columns';
	count_of integer := jsonb_array_length(columns);
	widths integer[] := '{}';
	cells text[][];
	line text;
	row_of jsonb;
	head text[];
BEGIN
	IF jsonb_array_length(section -> 'rows') = 0 THEN
		RETURN NEXT '(none)';
		RETURN;
	END IF;
	FOR c IN 0 .. count_of - 1 LOOP
		SELECT widths || greatest(length(columns -> c ->> 'name'), length(coalesce(columns -> c ->> 'unit', '')) + 2,
			max(length(aq_internal.text_cell(r -> c, columns -> c)))) INTO widths FROM jsonb_array_elements(section -> 'rows') r;
	END LOOP;
	head := ARRAY[(SELECT string_agg(aq_internal.text_fit(c ->> 'name', widths[n], c ->> 'type'), '  ' ORDER BY n) FROM jsonb_array_elements(columns) WITH ORDINALITY u(c, n)),
		(SELECT string_agg(aq_internal.text_fit(coalesce('(' || nullif(c ->> 'unit', '') || ')', ''), widths[n], c ->> 'type'), '  ' ORDER BY n) FROM jsonb_array_elements(columns) WITH ORDINALITY u(c, n)),
		(SELECT string_agg(repeat('-', w), '  ' ORDER BY n) FROM unnest(widths) WITH ORDINALITY u(w, n))];
	FOREACH line IN ARRAY head LOOP
		IF line !~ '^ *$' THEN
			RETURN NEXT rtrim(line);
		END IF;
	END LOOP;
	FOR row_of IN SELECT r FROM jsonb_array_elements(section -> 'rows') r LOOP
		SELECT string_agg(aq_internal.text_fit(aq_internal.text_cell(row_of -> (n - 1)::integer, c), widths[n], c ->> 'type'), '  ' ORDER BY n) INTO line
		FROM jsonb_array_elements(columns) WITH ORDINALITY u(c, n);
		RETURN NEXT rtrim(line);
	END LOOP;
END $$;
COMMENT ON FUNCTION aq_internal.text_table(jsonb) IS 'Internal: the table of a section in text';

CREATE FUNCTION aq_internal.text_fit(cell text, width integer, type text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN type IN ('number', 'percent') THEN repeat(' ', greatest(width - length(cell), 0)) || cell ELSE cell || repeat(' ', greatest(width - length(cell), 0)) END;
COMMENT ON FUNCTION aq_internal.text_fit(text, integer, text) IS 'Internal: a cell as wide as its column';

CREATE FUNCTION aq_internal.text_advice(advice jsonb) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	a jsonb;
BEGIN
	IF jsonb_array_length(advice) = 0 THEN
		RETURN;
	END IF;
	RETURN NEXT '';
	RETURN NEXT 'Advice';
	RETURN NEXT '======';
	FOR a IN SELECT x FROM jsonb_array_elements(advice) x LOOP
		RETURN NEXT format('[%s] %s', a ->> 'severity', a ->> 'title');
		RETURN QUERY SELECT aq_internal.text_wrap(format('Why: %s', a ->> 'why'), 110, '    ');
		RETURN QUERY SELECT aq_internal.text_wrap(format('Do:  %s', a ->> 'do'), 110, '    ');
		RETURN QUERY SELECT format('    - %s: %s', f ->> 0, concat_ws(' ', aq_internal.advice_figure(f -> 1), nullif(f ->> 2, ''))) FROM jsonb_array_elements(a -> 'figures') f;
	END LOOP;
END $$;
COMMENT ON FUNCTION aq_internal.text_advice(jsonb) IS 'Internal: the advice of a report in text';

CREATE FUNCTION aq_internal.text_lines(model jsonb) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s jsonb;
BEGIN
	RETURN NEXT aq_internal.report_checked(model) ->> 'title';
	RETURN NEXT repeat('=', length(model ->> 'title'));
	RETURN QUERY SELECT format('%s  %s', rpad(h ->> 0, (max(length(h ->> 0)) OVER ())::integer), h ->> 1) FROM jsonb_array_elements(model -> 'header') h;
	RETURN QUERY SELECT aq_internal.text_advice(coalesce(model -> 'advice', '[]'));
	FOR s IN SELECT x FROM jsonb_array_elements(model -> 'sections') x LOOP
		RETURN NEXT '';
		RETURN NEXT s ->> 'title';
		RETURN NEXT repeat('=', length(s ->> 'title'));
		RETURN QUERY SELECT line FROM jsonb_array_elements_text(s -> 'notes') n, aq_internal.text_wrap(n, 118, '  ') line;
		RETURN QUERY SELECT aq_internal.text_table(s);
	END LOOP;
END $$;
COMMENT ON FUNCTION aq_internal.text_lines(jsonb) IS 'Internal: a report as lines';

-- Security definer: what it calls is not for other roles. It reads nothing but its argument.
CREATE FUNCTION aq.report_text(model jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.report_text(line) FROM aq_internal.text_lines(model) line
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
