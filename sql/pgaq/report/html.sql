-- The report model drawn as one HTML page: without scripts and external resources, with light and dark mode, printable.
-- aq.report_text draws the same model as text.

CREATE FUNCTION aq_internal.html_style() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $css$
SELECT $$
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1d2329; --soft: #5d6873; --line: #dfe3e7; --head: #f1f3f5; --bar: #dbe9f8; --link: #0b5cad;
	--high: #b3261e; --medium: #a05a00; --low: #39703f;
	--c0: #2e9e4f; --c1: #1f6fc4; --c2: #6db3f2; --c3: #e08a1e; --c4: #b3261e; --c5: #e0655c; --c6: #8a5a36; --c7: #9b8f2e; --c8: #d670a8; --c9: #a9b1b9; --c10: #6a51a3; --c11: #17a2a2; }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --card: #1b2025; --ink: #e4e8ec; --soft: #9aa5b0; --line: #333b43; --head: #232a31; --bar: #23405f; --link: #7ab8f5;
	--high: #ff8a80; --medium: #ffb454; --low: #7fcf8a;
	--c0: #4cc26f; --c1: #4a95e6; --c2: #9accf7; --c3: #f0a545; --c4: #e5554b; --c5: #f29a93; --c6: #b98a62; --c7: #c9bd5a; --c8: #ec9cc8; --c9: #737d87; --c10: #a08be0; --c11: #46c7c7; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
main { max-width: 1280px; margin: 0 auto; padding: 0 20px 60px; }
h1 { font-size: 24px; margin: 28px 0 12px; } h2 { font-size: 17px; margin: 0 0 8px; } h3 { font-size: 14px; margin: 0; }
dl.head { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 6px 0; margin: 0 0 16px; }
dl.head div { padding: 4px 16px; } dt { color: var(--soft); font-size: 12px; } dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
nav { columns: 220px; margin: 0 0 20px; font-size: 13px; } nav a { display: block; padding: 1px 0; break-inside: avoid; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px; margin: 0 0 16px; }
.note, .empty { color: var(--soft); margin: 0 0 6px; font-size: 13px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; min-width: 40%; }
th { background: var(--head); text-align: left; font-weight: 600; vertical-align: bottom; } th small { display: block; color: var(--soft); font-weight: 400; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); } td { vertical-align: top; overflow-wrap: break-word; max-width: 480px; }
.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; } td.long { overflow-wrap: anywhere; min-width: 240px; }
td.p { background: linear-gradient(90deg, var(--bar) var(--share), transparent var(--share)); }
tbody tr:hover { background: var(--head); }
figure { margin: 8px 0 14px; max-width: 860px; overflow-x: auto; } figcaption { color: var(--soft); font-size: 13px; margin-bottom: 4px; }
svg { width: 100%; min-width: 560px; height: auto; display: block; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); } svg .y { text-anchor: end; } svg .x { text-anchor: middle; }
.grid { stroke: var(--line); } .hover { fill: transparent; } .hover:hover { fill: var(--ink); fill-opacity: .07; }
polyline { fill: none !important; stroke-width: 2; stroke-linejoin: round; } polygon { stroke: var(--card); stroke-width: .6; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0; margin: 6px 0 0; font-size: 12px; } .legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.advice { border-left: 4px solid var(--edge); padding: 2px 0 2px 12px; margin: 10px 0; } .advice b { color: var(--edge); text-transform: uppercase; font-size: 11px; letter-spacing: .04em; }
.advice p { margin: 2px 0; } .advice ul { margin: 2px 0; padding-left: 18px; color: var(--soft); font-size: 13px; }
.high { --edge: var(--high); } .medium { --edge: var(--medium); } .low { --edge: var(--low); }
footer { color: var(--soft); font-size: 12px; }
$$ || string_agg(format(E'.c%s { fill: var(--c%s); background: var(--c%s); } polyline.c%s { stroke: var(--c%s); }\n', i, i, i, i, i), '' ORDER BY i) || $$
@media print { :root { color-scheme: light; --page: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --head: #eee; }
	body, dt, .note, .empty, figcaption, .legend, .advice ul { font-size: 10px; } h2 { font-size: 13px; } nav { display: none; } section { border: 0; padding: 6px 0; } main { max-width: none; padding: 0; }
	figure, tr, .advice { break-inside: avoid; } h2 { break-after: avoid; } thead { display: table-header-group; } .scroll, figure { overflow: visible; }
	@page { size: landscape; margin: 10mm; } table { font-size: 9px; min-width: 0; } th, td { padding: 2px 4px; } td.long { min-width: 120px; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
$$ FROM generate_series(0, 11) i
$css$;
COMMENT ON FUNCTION aq_internal.html_style() IS 'Internal: the style sheet of a report';

CREATE FUNCTION aq_internal.html_cell(value jsonb, column_of jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN column_of ->> 'type' IN ('number', 'percent') THEN
			format('<td class="n%s">%s</td>',
				CASE WHEN column_of ->> 'type' = 'percent' AND jsonb_typeof(value) = 'number'
					THEN format(' p" style="--share:%s%%', round(least(greatest(value::numeric, 0), 100), 1)) END,
				CASE WHEN jsonb_typeof(value) = 'number' THEN
					aq_internal.report_number(value::numeric, (column_of ->> 'digits')::integer)
					ELSE aq_internal.html(value #>> '{}') END)
		ELSE format('<td%s>%s</td>', CASE WHEN length(value #>> '{}') > 40 THEN ' class="long"' END, aq_internal.html(value #>> '{}'))
	END
$$;
COMMENT ON FUNCTION aq_internal.html_cell(jsonb, jsonb) IS 'Internal: a cell of a report''s table';

CREATE FUNCTION aq_internal.html_table(section jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN coalesce(jsonb_array_length(section -> 'columns'), 0) = 0 THEN ''
		WHEN coalesce(jsonb_array_length(section -> 'rows'), 0) = 0 THEN '<p class="empty">no rows</p>'
		ELSE '<div class="scroll"><table><thead><tr>'
			|| (SELECT string_agg(format('<th%s>%s%s</th>', CASE WHEN c.one ->> 'type' IN ('number', 'percent') THEN ' class="n"' END,
					aq_internal.html(c.one ->> 'name'), '<small>' || aq_internal.html(nullif(c.one ->> 'unit', '')) || '</small>'), '' ORDER BY c.place)
				FROM jsonb_array_elements(section -> 'columns') WITH ORDINALITY c(one, place))
			|| '</tr></thead><tbody>'
			|| (SELECT string_agg('<tr>' || r.cells || '</tr>', E'\n' ORDER BY r.place)
				FROM (SELECT r.place, string_agg(coalesce(aq_internal.html_cell(r.one -> (c.place - 1)::integer, c.one), '<td></td>'), '' ORDER BY c.place) AS cells
					FROM jsonb_array_elements(section -> 'rows') WITH ORDINALITY r(one, place),
						jsonb_array_elements(section -> 'columns') WITH ORDINALITY c(one, place)
					GROUP BY r.place) r)
			|| '</tbody></table></div>'
	END
$$;
COMMENT ON FUNCTION aq_internal.html_table(jsonb) IS 'Internal: the table of a section';

CREATE FUNCTION aq_internal.html_advice(advice jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('<section id="advice"><h2>Advice</h2>%s</section>', string_agg(
		format('<div class="advice %s"><b>%s</b><h3>%s</h3><p>%s</p><p>%s</p>%s</div>',
			CASE WHEN a.one ->> 'severity' IN ('high', 'medium', 'low') THEN a.one ->> 'severity' ELSE 'low' END,
			aq_internal.html(a.one ->> 'severity'), aq_internal.html(a.one ->> 'title'), aq_internal.html(a.one ->> 'why'), aq_internal.html(a.one ->> 'do'),
			(SELECT '<ul>' || string_agg(format('<li>%s: %s</li>', aq_internal.html(f.one ->> 0), aq_internal.html(concat_ws(' ', aq_internal.advice_figure(f.one -> 1), nullif(f.one ->> 2, '')))), '' ORDER BY f.place) || '</ul>'
				FROM jsonb_array_elements(a.one -> 'figures') WITH ORDINALITY f(one, place))),
		E'\n' ORDER BY a.place))
	FROM jsonb_array_elements(advice) WITH ORDINALITY a(one, place)
	HAVING count(*) > 0
$$;
COMMENT ON FUNCTION aq_internal.html_advice(jsonb) IS 'Internal: the advice of a report, null without any';

-- Security definer: what it calls is not for other roles. It reads nothing but its argument.
CREATE FUNCTION aq.report_html(model jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT format($page$<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%1$s</title>
<style>%2$s</style>
</head>
<body>
<main>
<h1>%1$s</h1>
<dl class="head">%3$s</dl>
%4$s
<nav aria-label="Sections">%5$s</nav>
%6$s
<footer>Made by pgaq. A figure that is not there could not be computed from the two snapshots.</footer>
</main>
</body>
</html>
$page$,
		aq_internal.html(aq_internal.report_checked(model) ->> 'title'), aq_internal.html_style(),
		(SELECT string_agg(format('<div><dt>%s</dt><dd>%s</dd></div>', aq_internal.html(h.one ->> 0), aq_internal.html(h.one ->> 1)), '' ORDER BY h.place)
			FROM jsonb_array_elements(model -> 'header') WITH ORDINALITY h(one, place)),
		aq_internal.html_advice(coalesce(model -> 'advice', '[]')),
		(SELECT string_agg(format('<a href="#%s">%s</a>', aq_internal.html(s.one ->> 'id'), aq_internal.html(s.one ->> 'title')), E'\n' ORDER BY s.place)
			FROM jsonb_array_elements(model -> 'sections') WITH ORDINALITY s(one, place)),
		(SELECT string_agg(format(E'<section id="%s"><h2>%s</h2>%s%s%s</section>', aq_internal.html(s.one ->> 'id'), aq_internal.html(s.one ->> 'title'),
				(SELECT string_agg(format('<p class="note">%s</p>', aq_internal.html(note)), '') FROM jsonb_array_elements_text(s.one -> 'notes') note),
				CASE WHEN jsonb_typeof(s.one -> 'chart') = 'object' THEN aq_internal.chart(s.one -> 'chart') END,
				aq_internal.html_table(s.one)), E'\n' ORDER BY s.place)
			FROM jsonb_array_elements(model -> 'sections') WITH ORDINALITY s(one, place)))
$$;
COMMENT ON FUNCTION aq.report_html(jsonb) IS
'A report as one HTML page.
model: the result of aq.report_awr or a similar function
The page needs no network and no script, adapts to a light or dark browser, and prints well. Save it
  with: psql -XAtc "SELECT aq.report_html(aq.report_awr(1, 2))" > report.html';
