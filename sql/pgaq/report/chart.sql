-- Charts of the reports: a chart of the report model becomes one <figure> with an SVG, drawn here and not in the
-- browser, so that a report needs no script and prints as it looks.
--
-- A chart: {"kind": "area" | "line" | "bar" | "histogram", "title": text, "x": {"name": text, "values": [...]},
-- "y": {"name": text, "unit": text}, "series": [{"name": text, "values": [number or null, ...]}]}.
--	area		series stacked over x; as columns while they are few, because a value is of an interval and not of a moment
--	line		one line each; a null is a gap
--	bar			horizontal bars for each x, one below the other for each series
--	histogram	columns for each x, series side by side
-- Colours are classes c0 .. c11 of the page (html.sql).  A wait class has the same colour in every chart.

CREATE FUNCTION aq_internal.html(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT replace(replace(replace(replace(aq_internal.report_text(value), '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;')
$$;
COMMENT ON FUNCTION aq_internal.html(text) IS 'Internal: text as it may stand in HTML, also in an attribute';

-- The width of a text of n letters, in SVG units, at the size of the labels.
CREATE FUNCTION aq_internal.chart_width(word text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT ceil(7 * coalesce(length(word), 0)) $$;
COMMENT ON FUNCTION aq_internal.chart_width(text) IS 'Internal: width of a label';

CREATE FUNCTION aq_internal.chart_number(value numeric) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN s IN ('', '-') THEN '0' ELSE s END || unit
	FROM (SELECT rtrim(rtrim(to_char(value / factor, CASE WHEN abs(value) < 0.01 THEN 'FM990.999999' ELSE 'FM999990.99' END), '0'), '.') AS s, unit
		FROM (VALUES (1e9, 'G'), (1e6, 'M'), (1e3, 'k'), (1, '')) u(factor, unit)
		WHERE abs(value) >= factor OR factor = 1 ORDER BY factor DESC LIMIT 1) x
$$;
COMMENT ON FUNCTION aq_internal.chart_number(numeric) IS 'Internal: a number short enough for an axis: 1.5k, 20M';

-- The distance of grid lines: 1, 2 or 5 times a power of ten, four to six of them up to the maximum.
CREATE FUNCTION aq_internal.chart_step(maximum numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN maximum / power / 5 <= 1 THEN 1 WHEN maximum / power / 5 <= 2 THEN 2 WHEN maximum / power / 5 <= 5 THEN 5 ELSE 10 END * power
	FROM (SELECT 10::numeric ^ floor(log(maximum / 5)) AS power) p
$$;
COMMENT ON FUNCTION aq_internal.chart_step(numeric) IS 'Internal: distance of the grid lines of an axis from 0 to a maximum above 0';

CREATE FUNCTION aq_internal.chart_color(series text, place bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'c' || CASE
		WHEN series IN ('CPU', 'ON CPU', 'DB CPU') THEN 0
		WHEN series = 'User I/O' THEN 1
		WHEN series = 'System I/O' THEN 2
		WHEN series = 'Commit' THEN 3
		WHEN series = 'Concurrency' THEN 4
		WHEN series = 'Application' THEN 5
		WHEN series = 'Configuration' THEN 6
		WHEN series = 'Network' THEN 7
		WHEN series = 'Other' THEN 8
		WHEN series IN ('Idle', 'PostgreSQL, not timed') THEN 9
		WHEN series IN ('Scheduler', 'Administrative') THEN 10
		WHEN series = 'Queueing' THEN 11
		-- series that are not wait classes first use colours that differ clearly
		ELSE (ARRAY[1, 3, 0, 4, 10, 11, 6, 7, 5, 2, 8, 9])[1 + (place - 1) % 12]
	END
$$;
COMMENT ON FUNCTION aq_internal.chart_color(text, bigint) IS 'Internal: class of the colour of a series';

-- The values of the chart as rows: index of x, index of the series, value, and sum of the values stacked below it.
CREATE FUNCTION aq_internal.chart_points(chart jsonb)
RETURNS TABLE (x bigint, label text, s bigint, series text, value numeric, below numeric)
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT v.x, chart #>> ARRAY['x', 'values', (v.x - 1)::text], s.place, s.one ->> 'name', v.value::numeric,
		coalesce(sum(greatest(v.value::numeric, 0)) OVER (PARTITION BY v.x ORDER BY s.place ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), 0)
	FROM jsonb_array_elements(chart -> 'series') WITH ORDINALITY s(one, place),
		jsonb_array_elements_text(s.one -> 'values') WITH ORDINALITY v(value, x)
$$;
COMMENT ON FUNCTION aq_internal.chart_points(jsonb) IS 'Internal: the values of a chart, with what is stacked below each';

-- Columns, lines and areas share their axes.  The plot is 640 wide and 200 high.
CREATE FUNCTION aq_internal.chart_upright(chart jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	kind CONSTANT text := chart ->> 'kind';
	width CONSTANT numeric := 640;
	height CONSTANT numeric := 200;
	n CONSTANT bigint := jsonb_array_length(chart #> '{x,values}');
	nseries CONSTANT bigint := jsonb_array_length(chart -> 'series');
	unit CONSTANT text := coalesce(' ' || nullif(chart #>> '{y,unit}', ''), '');
	columns CONSTANT boolean := kind = 'histogram' OR n = 1 OR kind = 'area' AND n <= 24;
	band CONSTANT numeric := width / CASE WHEN columns THEN n ELSE greatest(n - 1, 1) END;
	maximum numeric;
	step numeric;
	every bigint;
	right_margin CONSTANT numeric := 30;
	left_margin numeric;
	svg text;
BEGIN
	SELECT max(CASE WHEN kind = 'area' THEN coalesce(value, 0) + below ELSE value END) INTO maximum FROM aq_internal.chart_points(chart);
	maximum := CASE WHEN maximum > 0 THEN maximum ELSE 1 END;
	step := aq_internal.chart_step(maximum);
	maximum := ceil(maximum / step) * step;
	SELECT 12 + max(aq_internal.chart_width(aq_internal.chart_number(g))) INTO left_margin FROM generate_series(0, maximum, step) g;

	-- grid and y axis
	SELECT string_agg(format('<line class="grid" x1="0" x2="%s" y1="%s" y2="%s"/><text class="y" x="-6" y="%s">%s</text>',
			width, y, y, y + 4, aq_internal.chart_number(g)), '' ORDER BY g)
		INTO svg FROM (SELECT g, round(height - g / maximum * height, 1) AS y FROM generate_series(0, maximum, step) g) grid;

	-- x axis: as many labels as fit; long outer ones are moved inwards
	SELECT ceil(n * (max(aq_internal.chart_width(label)) + 14) / width) INTO every FROM aq_internal.chart_points(chart);
	svg := svg || coalesce((SELECT string_agg(format('<text class="x" x="%s" y="%s">%s</text>',
			round(greatest(aq_internal.chart_width(label) / 2 - left_margin, least(width + right_margin - aq_internal.chart_width(label) / 2,
				(x - 1) * band + CASE WHEN columns THEN band / 2 ELSE 0 END)), 1), height + 16, aq_internal.html(label)), '' ORDER BY x)
		FROM aq_internal.chart_points(chart) WHERE s = 1 AND (x - 1) % every = 0), '');

	IF columns THEN
		svg := svg || coalesce((SELECT string_agg(format('<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s, %s: %s%s</title></rect>',
				aq_internal.chart_color(series, s),
				round((x - 1) * band + band * 0.1 + CASE WHEN kind = 'area' THEN 0 ELSE (s - 1) * band * 0.8 / nseries END, 1),
				round(height - (value + CASE WHEN kind = 'area' THEN below ELSE 0 END) / maximum * height, 1),
				round(band * 0.8 / CASE WHEN kind = 'area' THEN 1 ELSE nseries END, 1), round(value / maximum * height, 1),
				aq_internal.html(label), aq_internal.html(series), aq_internal.chart_number(value), aq_internal.html(unit)), '' ORDER BY x, s)
			FROM aq_internal.chart_points(chart) WHERE value > 0), '');
	ELSIF kind = 'area' THEN
		svg := svg || coalesce((SELECT string_agg(format('<polygon class="%s" points="%s %s"/>', aq_internal.chart_color(series, s), upper, lower), '' ORDER BY s)
			FROM (SELECT s, series,
					string_agg(format('%s,%s', round((x - 1) * band, 1), round(height - (coalesce(value, 0) + below) / maximum * height, 1)), ' ' ORDER BY x) AS upper,
					string_agg(format('%s,%s', round((x - 1) * band, 1), round(height - below / maximum * height, 1)), ' ' ORDER BY x DESC) AS lower
				FROM aq_internal.chart_points(chart) GROUP BY s, series) edge), '');
	ELSE
		-- a null ends a line; a single value between nulls is drawn as a dot
		svg := svg || coalesce((SELECT string_agg(CASE WHEN length > 1 THEN format('<polyline class="%s" points="%s"/>', color, points)
				ELSE format('<circle class="%s" cx="%s" cy="%s" r="2.5"/>', color, split_part(points, ',', 1), split_part(points, ',', 2)) END, '' ORDER BY s)
			FROM (SELECT s, aq_internal.chart_color(series, s) AS color, count(*) AS length,
					string_agg(format('%s,%s', round((x - 1) * band, 1), round(height - value / maximum * height, 1)), ' ' ORDER BY x) AS points
				FROM (SELECT *, count(*) FILTER (WHERE value IS NULL) OVER (PARTITION BY s ORDER BY x) AS part FROM aq_internal.chart_points(chart)) p
				WHERE value IS NOT NULL GROUP BY s, series, part) line), '');
	END IF;

	IF NOT columns THEN
		-- the tooltip: values of all series at this position
		svg := svg || coalesce((SELECT string_agg(format('<rect class="hover" x="%s" y="0" width="%s" height="%s"><title>%s</title></rect>',
				round((x - 1.5) * band, 1), round(band, 1), height, told), '' ORDER BY x)
			FROM (SELECT x, aq_internal.html(min(label)) || string_agg(format(E'\n%s: %s%s', aq_internal.html(series), coalesce(aq_internal.chart_number(value), '-'), aq_internal.html(unit)), '' ORDER BY s) AS told
				FROM aq_internal.chart_points(chart) GROUP BY x) t), '');
	END IF;
	RETURN format('<svg viewBox="%s -22 %s %s" role="img" aria-label="%s"><text class="unit" x="%s" y="-10">%s</text>%s</svg>',
		-left_margin, width + left_margin + right_margin, height + 44, aq_internal.html(chart ->> 'title'), -left_margin,
		aq_internal.html(coalesce(nullif(chart #>> '{y,unit}', ''), chart #>> '{y,name}')), svg);
END $$;
COMMENT ON FUNCTION aq_internal.chart_upright(jsonb) IS 'Internal: the SVG of a chart with areas, lines or columns';

-- Horizontal bars: a label of any length, the bar, the total at its end.
CREATE FUNCTION aq_internal.chart_bars(chart jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	nseries CONSTANT bigint := jsonb_array_length(chart -> 'series');
	bar CONSTANT numeric := CASE WHEN nseries > 1 THEN 13 ELSE 16 END;
	row_height CONSTANT numeric := bar * nseries + 6;
	total CONSTANT numeric := 740;
	unit CONSTANT text := coalesce(' ' || nullif(chart #>> '{y,unit}', ''), '');
	n CONSTANT bigint := jsonb_array_length(chart #> '{x,values}');
	labels numeric;
	numbers numeric;
	maximum numeric;
	svg text;
BEGIN
	SELECT 10 + max(aq_internal.chart_width(label)), 12 + max(aq_internal.chart_width(aq_internal.chart_number(value) || unit)), max(value)
		INTO labels, numbers, maximum FROM aq_internal.chart_points(chart);
	maximum := CASE WHEN maximum > 0 THEN maximum ELSE 1 END;
	SELECT string_agg(CASE WHEN value > 0 THEN format('<rect class="%s" x="0" y="%s" width="%s" height="%s"><title>%s, %s: %s%s</title></rect>',
				aq_internal.chart_color(series, s), y, w, CASE WHEN nseries > 1 THEN bar - 2 ELSE bar END, aq_internal.html(label), aq_internal.html(series), aq_internal.chart_number(value), aq_internal.html(unit)) ELSE '' END
			|| format('<text class="total" x="%s" y="%s">%s%s</text>', w + 5, y + bar / 2 + CASE WHEN nseries > 1 THEN 3 ELSE 4 END, aq_internal.chart_number(value), aq_internal.html(unit)), '' ORDER BY x, s)
		INTO svg FROM (SELECT *, (x - 1) * row_height + 3 + (s - 1) * bar AS y, round(greatest(value, 0) / maximum * (total - labels - numbers), 1) AS w
			FROM aq_internal.chart_points(chart) WHERE value IS NOT NULL) drawn;
	SELECT coalesce(svg, '') || string_agg(format('<text class="y" x="-6" y="%s">%s</text>', (x - 1) * row_height + row_height / 2 + 4, aq_internal.html(label)), '' ORDER BY x)
		INTO svg FROM aq_internal.chart_points(chart) WHERE s = 1;
	RETURN format('<svg viewBox="%s 0 %s %s" role="img" aria-label="%s">%s</svg>', -labels, total, n * row_height, aq_internal.html(chart ->> 'title'), svg);
END $$;
COMMENT ON FUNCTION aq_internal.chart_bars(jsonb) IS 'Internal: the SVG of a chart with horizontal bars';

CREATE FUNCTION aq_internal.chart(chart jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('<figure class="%s"><figcaption>%s</figcaption>', chart ->> 'kind', aq_internal.html(chart ->> 'title'))
		|| CASE
			WHEN NOT EXISTS (SELECT FROM aq_internal.chart_points(chart) WHERE value IS NOT NULL) THEN '<p class="empty">nothing to draw</p>'
			WHEN chart ->> 'kind' = 'bar' THEN aq_internal.chart_bars(chart)
			ELSE aq_internal.chart_upright(chart)
		END
		|| coalesce((SELECT '<ul class="legend">' || string_agg(format('<li><i class="%s"></i>%s</li>', aq_internal.chart_color(s.one ->> 'name', s.place), aq_internal.html(s.one ->> 'name')), '' ORDER BY s.place) || '</ul>'
			FROM jsonb_array_elements(chart -> 'series') WITH ORDINALITY s(one, place) HAVING count(*) > 1), '')
		|| '</figure>'
$$;
COMMENT ON FUNCTION aq_internal.chart(jsonb) IS 'Internal: a chart of the report model as an HTML figure';
