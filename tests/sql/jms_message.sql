-- Messages of Jakarta Messaging, made and read in SQL.
\pset format unaligned
\pset tuples_only on
SELECT aq_jms.construct(type) FROM unnest(ARRAY['text', 'bytes', 'map', 'stream', 'object', 'message']) type;
SELECT aq_jms.construct(), aq_jms.text('a'), aq_jms.bytes('\x01ff'), aq_jms.set_text(aq_jms.bytes('\x01'), 'b'), aq_jms.set_bytes(aq_jms.text('b'), '\x02');
SELECT m, aq_jms.get_header(m, 'type'), aq_jms.get_header(m, 'reply_to') FROM (SELECT aq_jms.set_header(aq_jms.set_header(aq_jms.set_header(aq_jms.text('a'), 'type', 'order'), 'reply_to', 'queue:q'), 'reply_to', NULL)) f(m);

-- properties have the type of the value
CREATE FUNCTION t.all_types() RETURNS aq.jms_message LANGUAGE plpgsql AS $$
DECLARE
	m aq.jms_message := aq_jms.text('a');
BEGIN
	m := aq_jms.set_property(m, 'boolean', true);
	m := aq_jms.set_property(m, 'short', 1::smallint);
	m := aq_jms.set_property(m, 'int', 2);
	m := aq_jms.set_property(m, 'long', 3::bigint);
	m := aq_jms.set_property(m, 'float', 4.5::real);
	m := aq_jms.set_property(m, 'double', 5::double precision);
	m := aq_jms.set_property(m, 'nan', 'NaN'::double precision);
	m := aq_jms.set_property(m, 'infinity', '-Infinity'::real);
	m := aq_jms.set_property(m, 'numeric', 6.25);
	m := aq_jms.set_property(m, 'string', 'seven'::text);
	m := aq_jms.set_property(m, 'date', '2026-01-31'::date);
	RETURN m;
END $$;
SELECT name, value, (m).property_types ->> name, aq_jms.get_property(m, name) FROM t.all_types() m, LATERAL jsonb_each((m).properties) p (name, value) ORDER BY 1;
SELECT (m).properties, (m).property_types FROM (SELECT aq_jms.set_property(aq_jms.set_property(aq_jms.text('a'), 'x', 1::bigint), 'x', 'now a string'::text)) f(m);
SELECT (m).properties, (m).property_types, (m).text, aq_jms.get_property(m, 'int') FROM aq_jms.clear_properties(t.all_types()) m;
DROP FUNCTION t.all_types;

-- items of map and stream messages
SELECT i FROM unnest(ARRAY[aq_jms.item(true), aq_jms.item(1::smallint), aq_jms.item(2), aq_jms.item(3::bigint), aq_jms.item(4.5::real), aq_jms.item(5::float8), aq_jms.item('NaN'::float8), aq_jms.item(6.25), aq_jms.item('s'::text), aq_jms.item('\x01ff'::bytea), aq_jms.item(NULL::text)]) i;
SELECT (m).type, (m).text FROM (SELECT aq_jms.set_item(aq_jms.set_item(aq_jms.construct('map'), 'a', aq_jms.item(5)), 'b', aq_jms.item('x'::text))) f(m);
SELECT i.* FROM (SELECT aq_jms.set_item(aq_jms.set_item(aq_jms.construct('map'), 'a', aq_jms.item(5)), 'b', aq_jms.item(NULL::text))) f(m), LATERAL aq_jms.items(m) i;
SELECT i.* FROM (SELECT aq_jms.add_item(aq_jms.add_item(aq_jms.construct('stream'), aq_jms.item('first'::text)), aq_jms.item('\x01'::bytea))) f(m), LATERAL aq_jms.items(m) i;
SELECT count(*) FROM aq_jms.items(aq_jms.text('a'));

-- a round trip
SELECT aq.create_queue('java', 'aq.jms_message');
SELECT aq.enqueue('java', aq_jms.set_property(aq_jms.text('one'), 'color', 'red'::text)) IS NOT NULL, aq.enqueue('java', aq_jms.set_property(aq_jms.text('two'), 'color', 'blue'::text)) IS NOT NULL;
SELECT (payload).text, aq_jms.get_property(payload, 'color') FROM aq.dequeue('java', NULL::aq.jms_message, condition => $$payload.properties ->> 'color' = 'blue'$$);
SELECT aq.drop_queue('java', true);
