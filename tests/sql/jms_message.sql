-- Messages of Jakarta Messaging, made and read in SQL.
\pset format unaligned
\pset tuples_only on
SELECT aq.jms_construct(type) FROM unnest(ARRAY['text', 'bytes', 'map', 'stream', 'object', 'message']) type;
SELECT aq.jms_construct(), aq.jms_text('a'), aq.jms_bytes('\x01ff'), aq.jms_set_text(aq.jms_bytes('\x01'), 'b'), aq.jms_set_bytes(aq.jms_text('b'), '\x02');
SELECT m, aq.jms_get_header(m, 'type'), aq.jms_get_header(m, 'reply_to') FROM (SELECT aq.jms_set_header(aq.jms_set_header(aq.jms_set_header(aq.jms_text('a'), 'type', 'order'), 'reply_to', 'queue:q'), 'reply_to', NULL)) f(m);

-- properties have the type of the value
CREATE FUNCTION t.all_types() RETURNS aq.jms_message LANGUAGE plpgsql AS $$
DECLARE
	m aq.jms_message := aq.jms_text('a');
BEGIN
	m := aq.jms_set_property(m, 'boolean', true);
	m := aq.jms_set_property(m, 'short', 1::smallint);
	m := aq.jms_set_property(m, 'int', 2);
	m := aq.jms_set_property(m, 'long', 3::bigint);
	m := aq.jms_set_property(m, 'float', 4.5::real);
	m := aq.jms_set_property(m, 'double', 5::double precision);
	m := aq.jms_set_property(m, 'nan', 'NaN'::double precision);
	m := aq.jms_set_property(m, 'infinity', '-Infinity'::real);
	m := aq.jms_set_property(m, 'numeric', 6.25);
	m := aq.jms_set_property(m, 'string', 'seven'::text);
	m := aq.jms_set_property(m, 'date', '2026-01-31'::date);
	RETURN m;
END $$;
SELECT name, value, (m).property_types ->> name, aq.jms_get_property(m, name) FROM t.all_types() m, LATERAL jsonb_each((m).properties) p (name, value) ORDER BY 1;
SELECT (m).properties, (m).property_types FROM (SELECT aq.jms_set_property(aq.jms_set_property(aq.jms_text('a'), 'x', 1::bigint), 'x', 'now a string'::text)) f(m);
SELECT (m).properties, (m).property_types, (m).text, aq.jms_get_property(m, 'int') FROM aq.jms_clear_properties(t.all_types()) m;
DROP FUNCTION t.all_types;

-- items of map and stream messages
SELECT i FROM unnest(ARRAY[aq.jms_item(true), aq.jms_item(1::smallint), aq.jms_item(2), aq.jms_item(3::bigint), aq.jms_item(4.5::real), aq.jms_item(5::float8), aq.jms_item('NaN'::float8), aq.jms_item(6.25), aq.jms_item('s'::text), aq.jms_item('\x01ff'::bytea), aq.jms_item(NULL::text)]) i;
SELECT (m).type, (m).text FROM (SELECT aq.jms_set_item(aq.jms_set_item(aq.jms_construct('map'), 'a', aq.jms_item(5)), 'b', aq.jms_item('x'::text))) f(m);
SELECT i.* FROM (SELECT aq.jms_set_item(aq.jms_set_item(aq.jms_construct('map'), 'a', aq.jms_item(5)), 'b', aq.jms_item(NULL::text))) f(m), LATERAL aq.jms_items(m) i;
SELECT i.* FROM (SELECT aq.jms_add_item(aq.jms_add_item(aq.jms_construct('stream'), aq.jms_item('first'::text)), aq.jms_item('\x01'::bytea))) f(m), LATERAL aq.jms_items(m) i;
SELECT count(*) FROM aq.jms_items(aq.jms_text('a'));

-- a round trip
SELECT aq.create_queue('java', 'aq.jms_message');
SELECT aq.enqueue('java', aq.jms_set_property(aq.jms_text('one'), 'color', 'red'::text)) IS NOT NULL, aq.enqueue('java', aq.jms_set_property(aq.jms_text('two'), 'color', 'blue'::text)) IS NOT NULL;
SELECT (payload).text, aq.jms_get_property(payload, 'color') FROM aq.dequeue('java', NULL::aq.jms_message, condition => $$payload.properties ->> 'color' = 'blue'$$);
SELECT aq.drop_queue('java', true);
