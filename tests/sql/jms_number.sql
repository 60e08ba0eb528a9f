-- Numbers in conditions made from selectors of Jakarta Messaging: Java's types and arithmetic, and no errors.
\pset format unaligned
\pset tuples_only on
\pset null null
CREATE FUNCTION t.number(properties jsonb, types jsonb DEFAULT NULL) RETURNS bytea LANGUAGE sql
	AS $$ SELECT aq_jms.number(properties, types, 'n') $$;
-- the type: of an entry in types, of the value without one; 0 int, 1 long, 2 float, 3 double
SELECT left(value::text, 22), type, get_byte(t.number(jsonb_build_object('n', value), '{}' || jsonb_build_object('n', type)), 0)
FROM (VALUES ('5'::jsonb, NULL), ('5', 'byte'), ('5', 'short'), ('5', 'long'), ('5', 'float'), ('5', 'double'), ('5', 'text'),
	('2147483647', NULL), ('2147483648', NULL), ('2147483648', 'int'), ('-2147483648', NULL), ('9223372036854775807', NULL),
	('9223372036854775808', NULL), ('9223372036854775808', 'long'), ('1e400', NULL), ('-1e-400', NULL), ('5.0', NULL), ('5.5', 'int'),
	('{"double": "NaN"}', NULL), ('{"float": "-Infinity"}', NULL), ('{"double": "-0.0"}', NULL), ('{"double": "x"}', NULL),
	('{"double": 5}', NULL), ('{}', NULL), ('[5]', NULL), ('"5"', NULL), ('true', NULL), ('null', NULL)) v (value, type);
SELECT t.number(NULL), t.number('{}'), t.number('[]'), t.number('"n"'), t.number('[1]', '5'), aq_jms.number('{"n": 5}', NULL, NULL);
SELECT t.number('{"n": 5}', '[]') = t.number('{"n": 5}'), t.number('{"n": 5}', '{"n": []}') = aq_jms.number(5);
-- arithmetic: promoted to the wider type; integers wrap, floats become infinite, a division by zero is null
SELECT a, op, b, c, aq_jms.compare(aq_jms.calculate(aq_jms.number(a), op, aq_jms.number(b)), '=', aq_jms.number(c)) FROM (VALUES
	(5, '/', 2, 2), (-5, '/', 2, -2), (2147483647, '+', 1, -2147483648), (-2147483648, '-', 1, 2147483647), (65536, '*', 65536, 0),
	(-2147483648, '/', -1, -2147483648), (5, '/', 0, 0), (5, '%', 2, 1), (5, '', 2, 7), (5, '++', 2, 7)) v (a, op, b, c);
SELECT a, op, b, c, aq_jms.compare(aq_jms.calculate(aq_jms.number(a), op, aq_jms.number(b)), '=', aq_jms.number(c)) FROM (VALUES
	(9223372036854775807, '+', 1, (-9223372036854775808)::bigint), (-9223372036854775808, '/', -1, -9223372036854775808),
	(4294967296, '*', 4294967296, 0), (7, '-', 9, -2)) v (a, op, b, c);
SELECT a, op, b, c, aq_jms.compare(aq_jms.calculate(aq_jms.number(a), op, aq_jms.number(b)), '=', aq_jms.number(c)) FROM (VALUES
	(0.1::float8, '+', 0.2::float8, 0.30000000000000004::float8), (1e308, '*', 10, 'Infinity'), (-1e308, '-', 1e308, '-Infinity'),
	(4.9e-324, '/', 2, 0), (1, '/', 0, 'Infinity'), (0, '/', 0, 'NaN')) v (a, op, b, c);
SELECT aq_jms.compare(aq_jms.calculate(aq_jms.number(0.1::real), '+', aq_jms.number(0.2::real)), '=', aq_jms.number(0.3::real)),
	aq_jms.compare(aq_jms.number(0.1::real), '=', aq_jms.number(0.1::float8)), aq_jms.compare(aq_jms.number(16777217), '=', aq_jms.number(16777216::real)),
	aq_jms.compare(aq_jms.number(16777217), '=', aq_jms.number(16777216::float8)),
	aq_jms.compare(aq_jms.number(9007199254740993), '=', aq_jms.number(9007199254740992::float8)),
	aq_jms.compare(aq_jms.negate(aq_jms.number((-2147483648)::integer)), '=', aq_jms.number((-2147483648)::integer)),
	aq_jms.compare(aq_jms.negate(aq_jms.number(2.5::real)), '=', aq_jms.number((-2.5)::float8));
SELECT op, aq_jms.compare(aq_jms.number(1), op, aq_jms.number(2)), aq_jms.compare(aq_jms.number(2), op, aq_jms.number(2::bigint)),
	aq_jms.compare(aq_jms.number(3::real), op, aq_jms.number(2)), aq_jms.compare(aq_jms.number('NaN'::float8), op, aq_jms.number('NaN'::float8)),
	aq_jms.compare(aq_jms.number('-0'::float8), op, aq_jms.number(0))
FROM unnest(ARRAY['=', '<>', '<', '<=', '>', '>=', '', '!', 'LIKE']) op;
-- bytes that are no number
SELECT aq_jms.compare(b, '=', aq_jms.number(1)), aq_jms.compare(aq_jms.number(1), '=', b), aq_jms.negate(b), aq_jms.calculate(b, '+', b)
FROM unnest(ARRAY['\x', '\x00', '\x0400000000000000', '\x040000000000000000', '\xff0000000000000000', '\x00000000000000000000']::bytea[]) b;
-- time: milliseconds since 1970
SELECT aq_jms.number('1970-01-01 00:00:00.0019+00'::timestamptz) = aq_jms.number(1::bigint), aq_jms.number('1969-12-31 23:59:59.9999+00'::timestamptz) = aq_jms.number((-1)::bigint),
	aq_jms.number('2026-11-23 12:00:00+00'::timestamptz) = aq_jms.number((extract(epoch FROM '2026-11-23 12:00:00+00'::timestamptz) * 1000)::bigint),
	aq_jms.number('infinity'::timestamptz) IS NOT NULL, aq_jms.number('-infinity'::timestamptz) IS NOT NULL;
-- a rule with them counts as one of built-in functions only: it needs no role that runs it, and cannot fail
CREATE ROLE regress_aq_selector;
SELECT aq.create_queue('selected', 'aq.jms_message', multiple_consumers => true);
SELECT aq.grant_queue('selected', 'regress_aq_selector', 'subscribe');
SET ROLE regress_aq_selector;
SELECT aq.subscribe('selected', 'heavy', $$aq_jms.compare(aq_jms.number((payload).properties, (payload).property_types, 'n'), '>', aq_jms.number(5))$$);
SELECT aq.subscribe('selected', 'odd', $$(payload).properties ->> 's'::text LIKE E'%\\_%'::text$$);
RESET ROLE;
SELECT aq.enqueue('selected', ROW('text', NULL, properties, NULL, NULL, NULL)::aq.jms_message) IS NOT NULL
FROM unnest(ARRAY['{"n": 5}', '{"n": 6}', '{"n": "6"}', '{"n": 5.1, "s": "a_b"}', '[]', '{"s": "ab"}', NULL]::jsonb[]) properties;
SELECT (payload).properties FROM aq.dequeue('selected', NULL::aq.jms_message, 'heavy', 9);
SELECT (payload).properties FROM aq.dequeue('selected', NULL::aq.jms_message, 'odd', 9);
SELECT consumer, rule_failures FROM aq.subscribers WHERE queue_name = 'selected' ORDER BY 1;
SELECT aq.drop_queue('selected', force => true);
DROP ROLE regress_aq_selector;
DROP FUNCTION t.number(jsonb, jsonb);
